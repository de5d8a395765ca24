// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the OpenCL backend only. Nothing above the seam includes this.
#ifndef CLV_BACKENDS_OPENCL_H
#define CLV_BACKENDS_OPENCL_H

#include <CL/cl.h>
#include <pthread.h>

#include "base/memory.h"
#include "device/backend.h"

/** A device as enumerate found it. Lives until shutdown. */
typedef struct clv__ocl_handle {
    cl_device_id id;
    const char *label;
    bool keep;        // a sub-device that is not to be released at shutdown
    bool host_memory; // see clv__traits
    struct clv__ocl_handle *next;
} clv__ocl_handle;

typedef struct clv__ocl_state {
    clv__arena arena;       // handles and strings
    clv__ocl_handle *parts; // sub-devices
    const clv_runtime_config *config;
    pthread_mutex_t gemm_lock; // the library's cache is not safe for threads before CLBlast 1.6.1
    bool gemm_used;
} clv__ocl_state;

struct clv__bdevice {
    clv__ocl_state *state;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue[CLV__QUEUES];
    const char *label;
    bool host_memory;
    cl_ulong local_bytes;
    size_t max_group;
    size_t max_items[3]; // work-items of a group in each dimension
    pthread_mutex_t event_lock;
    clv__bevent *free_events; // kept for reuse: a step asks for some
};

struct clv__bbuffer {
    clv__bdevice *device;
    cl_mem memory;
    size_t bytes;
    void *pointer; // where the host sees it; NULL on devices with memory of their own
};

struct clv__bprogram {
    clv__bdevice *device;
    cl_program program;
};

struct clv__bkernel {
    clv__bdevice *device;
    cl_kernel kernel;
    char name[96];
    cl_uint dims;
    size_t global[3], local[3];
    bool local_given, empty; // empty: nothing to run
};

struct clv__bevent {
    clv__bdevice *device;
    cl_event event;
    clv__queue queue;  // where it happens
    clv__bevent *next; // among the free ones
};

/** `CL_OUT_OF_RESOURCES`; "an unknown OpenCL error" for numbers we do not know. */
const char *clv__ocl_error_name(cl_int code);
/** The status that an OpenCL error becomes. */
clv_status clv__ocl_error_status(cl_int code);
/** Keep the sentence "<call> on <label>: <error>" and return the status. */
clv_status clv__ocl_fail(clv__error *error, const char *label, const char *call, cl_int code);

/** Return from the function if an OpenCL call failed. */
#define CLV__OCL_TRY(error, label, call, code)                                                               \
    do {                                                                                                     \
        cl_int clv_code_ = (code);                                                                           \
        if (clv_code_ != CL_SUCCESS) return clv__ocl_fail((error), (label), (call), clv_code_);              \
    } while (0)

/** What is known of a driver beyond what it says: quirks.c. */
typedef struct clv__ocl_quirk {
    clv__traits traits;
    bool keep_parts; // never release sub-devices: the driver's threads still use them when all work is done
} clv__ocl_quirk;

clv__ocl_quirk clv__ocl_quirks(const char *platform, const char *driver);

// device.c
clv_status clv__ocl_startup(const clv_runtime_config *config, void **state, clv__error *error);
void clv__ocl_shutdown(void *state);
clv_status clv__ocl_enumerate(void *state, clv_status (*tell)(void *user, const clv__found *found),
                              void *user, clv__error *error);
clv_status clv__ocl_partition(void *state, void *handle, int parts,
                              clv_status (*tell)(void *user, const clv__found *found), void *user,
                              clv__error *error);
clv_status clv__ocl_open(void *state, void *handle, clv__error *error, clv__bdevice **out);
void clv__ocl_close(clv__bdevice *device);

// buffer.c
clv_status clv__ocl_buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out);
clv_status clv__ocl_buffer_part(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                                clv__bbuffer **out);
void clv__ocl_buffer_destroy(clv__bbuffer *buffer);
void *clv__ocl_buffer_pointer(clv__bbuffer *buffer);
clv_status clv__ocl_buffer_over(clv__bdevice *device, void *pointer, size_t bytes, clv__error *error,
                                clv__bbuffer **out);

// program.c
clv_status clv__ocl_program_build(clv__bdevice *device, const char *source, const char *options,
                                  clv__error *error, clv__bprogram **out);
clv_status clv__ocl_program_load(clv__bdevice *device, const void *binary, size_t bytes, clv__error *error,
                                 clv__bprogram **out);
clv_status clv__ocl_program_binary(clv__bprogram *program, void **binary, size_t *bytes, clv__error *error);
void clv__ocl_program_destroy(clv__bprogram *program);
clv_status clv__ocl_kernel_create(clv__bprogram *program, const char *name, const clv__barg *args, int n_args,
                                  const clv__grid *grid, clv__error *error, clv__bkernel **out);
void clv__ocl_kernel_destroy(clv__bkernel *kernel);

// queue.c
clv_status clv__ocl_write(clv__bdevice *device, clv__queue queue, clv__bbuffer *to, size_t offset,
                          size_t bytes, const void *source, clv__bevent *after, clv__bevent **event,
                          clv__error *error);
clv_status clv__ocl_read(clv__bdevice *device, clv__queue queue, clv__bbuffer *from, size_t offset,
                         size_t bytes, void *target, clv__bevent *after, clv__bevent **event,
                         clv__error *error);
clv_status clv__ocl_copy(clv__bdevice *device, clv__bbuffer *from, size_t from_offset, clv__bbuffer *to,
                         size_t to_offset, size_t bytes, clv__error *error);
clv_status clv__ocl_fill(clv__bdevice *device, clv__bbuffer *to, size_t offset, size_t bytes,
                         uint32_t pattern, clv__error *error);
clv_status clv__ocl_launch(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event,
                           clv__error *error);
clv_status clv__ocl_wait_on_queue(clv__bdevice *device, clv__queue queue, clv__bevent *event,
                                  clv__error *error);
clv_status clv__ocl_record(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error);
clv_status clv__ocl_event_wait(clv__bevent *event, clv__error *error);
clv_status clv__ocl_elapsed(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error);
void clv__ocl_event_destroy(clv__bevent *event);
clv_status clv__ocl_flush(clv__bdevice *device, clv__error *error);
/** Wait for all that is on the queue, also where clFinish alone does not. *call: what was called last. */
cl_int clv__ocl_finish(cl_command_queue queue, const char **call);
clv_status clv__ocl_synchronize(clv__bdevice *device, clv__error *error);

#ifdef CLEAVE_CLBLAST
// gemm_clblast.c
clv_status clv__ocl_gemm(clv__bdevice *device, bool transpose_a, bool transpose_b, int m, int n, int k,
                         float alpha, clv__bbuffer *a, int lda, int64_t stride_a, clv__bbuffer *b, int ldb,
                         int64_t stride_b, float beta, clv__bbuffer *c, int ldc, int64_t stride_c,
                         int n_batch, clv__error *error);
void clv__ocl_gemm_forget(clv__ocl_state *state);
#endif

#endif
