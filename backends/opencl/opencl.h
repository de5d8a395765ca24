// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the OpenCL backend only. Nothing above the seam includes this.
#ifndef CLV_BACKENDS_OPENCL_H
#define CLV_BACKENDS_OPENCL_H

#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "device/backend.h"

/** A device as enumerate found it. Lives until shutdown. */
typedef struct clv__ocl_handle {
    cl_device_id id;
    const char *label;
    bool keep;        // a sub-device that is not to be released at shutdown
    bool host_memory; // see clv__traits
    bool pointers;    // its memory is had by pointers: see buffer.c
    bool polled;      // events are asked again and again: see queue.c
    struct clv__ocl_handle *next;
} clv__ocl_handle;

/** Where a driver keeps machine code on disk, as its documentation says. */
typedef struct clv__ocl_store {
    const char *driver, *folder;    // in sentences; of the folder that it is given instead
    const char *platform;           // the platform's name begins so
    const char *variable;           // names the folder
    const char *in_xdg, *in_home;   // else below XDG_CACHE_HOME (NULL: not asked), else below HOME
    const char *off_variable, *off; // keep nothing, while this variable has this value
    bool touches;                   // it makes a file there as soon as it starts
    bool maps;                      // it loads the code as libraries, which a noexec mount does not allow
} clv__ocl_store;

enum { CLV__OCL_STORES = 2 };
extern const clv__ocl_store clv__ocl_stores[CLV__OCL_STORES]; // quirks.c

/** What became of a store in this process. */
typedef struct clv__ocl_kept {
    char *sentence; // why it is another folder than usual; NULL: it is the usual one; in the arena
    char *folder;   // the other one; NULL: there is none, and the driver must not be used
    bool temporary; // made for this process alone
    bool told;
} clv__ocl_kept;

typedef struct clv__ocl_state {
    clv__arena arena; // handles and strings
    clv__ocl_kept kept[CLV__OCL_STORES];
    clv__ocl_handle *parts; // sub-devices
    const clv_runtime_config *config;
    pthread_mutex_t gemm_lock; // the library's cache is not safe for threads before CLBlast 1.6.1
    bool gemm_used;
} clv__ocl_state;

struct clv__bdevice {
    clv__ocl_state *state;
    cl_device_id id;
    cl_context context;
    _Atomic(cl_command_queue) queue[CLV__QUEUES];
    cl_command_queue untimed[CLV__QUEUES]; // those before keep_times: other threads may still flush them
    bool timed;                            // the worker's
    const char *label;
    bool host_memory, pointers, polled; // see clv__ocl_handle
    cl_ulong local_bytes;
    size_t max_group;
    size_t max_items[3];                 // work-items of a group in each dimension
    atomic_bool abandoned, silent;       // see clv__backend
    pthread_mutex_t reach_lock;          // of the next two; callbacks take it
    pthread_cond_t reached;              // an event that somebody waits for
    int n_calls;                         // callbacks that are still to come
    pthread_mutex_t event_lock;          // of all below
    clv__bevent *free_events;            // kept for reuse: a step asks for some
    clv__bevent *pending, **pending_end; // of commands that were not asked yet how they went, in their order
    size_t n_pending;
    clv__bevent *last[CLV__QUEUES];    // of the pending ones, the last of each queue; NULL: none
    clv__bevent *awaited[CLV__QUEUES]; // that the queue's next command is to wait for; NULL: none
    uint64_t n_enqueued;               // commands so far
    bool unsure;                       // a command was asked in vain whether it is done
    bool still_runs;                   // see clv__backend
    clv__bbuffer *dropped;             // whose memory, had by pointers, is still to be freed
    struct {                           // the first command that failed and was not told by a synchronize
        cl_int code;                   // CL_SUCCESS: none
        uint64_t number;
        const char *call;
    } failed;
};

struct clv__bbuffer {
    clv__bdevice *device;
    cl_mem memory; // NULL on devices whose memory is had by pointers
    size_t bytes;
    void *pointer;         // where the host sees it; NULL on devices with memory of their own
    char *at;              // where kernels see it, on devices whose memory is had by pointers
    bool whole;            // not a part of another
    clv__pages *block;     // that it lies in; used by the OpenCL object
    uint64_t last_command; // of a dropped one: the last that may touch it
    clv__bbuffer *next;    // among the dropped ones
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
    uint64_t number;   // of its command on the device
    const char *call;  // that enqueued it
    cl_event waits[2]; // for the enqueue: events of other queues that its command waits for
    cl_uint n_waits;
    int users;          // who asked for it, the list of pending ones, a callback
    atomic_int n_calls; // callbacks that are still to come
    bool reached;       // told by a callback
    bool aside;         // of a command that any thread enqueues
    clv__bevent *next;  // among the pending or the free ones
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
    bool pointers;   // sub-buffers do not work; shared virtual memory does
} clv__ocl_quirk;

clv__ocl_quirk clv__ocl_quirks(const char *platform, const char *driver);

// stores.c
/** Before the first OpenCL call: see that no driver takes code out of a folder that others can write to. */
void clv__ocl_stores_guard(clv__ocl_state *state);
/** Of a platform: NULL if its driver may be used, else why not. */
const char *clv__ocl_store_refusal(clv__ocl_state *state, const char *platform);
/** After a platform was asked for its devices: does its driver keep code where it should? Tells once if that
 *  is not the usual place. */
bool clv__ocl_store_holds(clv__ocl_state *state, const char *platform);

// icd.c
/** Tell each driver that the loader should have found and did not: its file's name and why. After the loader
 *  has looked. */
void clv__ocl_look_at_drivers(void (*tell)(void *user, const char *name, const char *reason), void *user);

// device.c
clv_status clv__ocl_startup(const clv_runtime_config *config, void **state, clv__error *error);
void clv__ocl_shutdown(void *state);
clv_status clv__ocl_enumerate(void *state, clv_status (*tell)(void *user, const clv__found *found),
                              void *user, clv__error *error);
clv_status clv__ocl_partition(void *state, void *handle, int parts,
                              clv_status (*tell)(void *user, const clv__found *found), void *user,
                              clv__error *error);
clv_status clv__ocl_open(void *state, void *handle, clv__error *error, clv__bdevice **out);
bool clv__ocl_close(clv__bdevice *device);

// buffer.c
clv_status clv__ocl_buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out);
clv_status clv__ocl_buffer_part(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                                clv__bbuffer **out);
void clv__ocl_buffer_destroy(clv__bbuffer *buffer);
void *clv__ocl_buffer_pointer(clv__bbuffer *buffer);
clv__pages *clv__ocl_buffer_block(clv__bbuffer *buffer);
/** Does the loader have the functions for memory by pointers? */
bool clv__ocl_knows_pointers(void);
/** Free the dropped buffers whose last commands have numbers below this. Any thread. */
void clv__ocl_free_pointers(clv__bdevice *device, uint64_t below);
/** Make a buffer an argument; `call` is the one that was made. */
cl_int clv__ocl_buffer_arg(cl_kernel kernel, cl_uint index, const clv__bbuffer *buffer, const char **call);
clv_status clv__ocl_buffer_over(clv__bdevice *device, clv__pages *block, void *pointer, size_t bytes,
                                clv__error *error, clv__bbuffer **out);

clv_status clv__ocl_staging_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out,
                                   void **pointer);
void clv__ocl_staging_destroy(clv__bbuffer *staging);

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
/** Where the next command cannot wait for what wait_on_queue was given: let a barrier do so. */
clv_status clv__ocl_wait_now(clv__bdevice *device, clv__queue queue, clv__error *error);
clv_status clv__ocl_record(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error);
clv_status clv__ocl_event_wait(clv__bevent *event, clv__error *error);
clv_status clv__ocl_keep_times(clv__bdevice *device, clv__error *error);
clv_status clv__ocl_elapsed(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error);
void clv__ocl_event_destroy(clv__bevent *event);
clv_status clv__ocl_flush(clv__bdevice *device, clv__error *error);
clv_status clv__ocl_synchronize(clv__bdevice *device, clv__error *error);
bool clv__ocl_still_runs(clv__bdevice *device);
bool clv__ocl_silent(clv__bdevice *device);
void clv__ocl_abandon(clv__bdevice *device);
/** May calls of its driver be made? */
static inline bool clv__ocl_answers(const clv__bdevice *device) {
    return !atomic_load(&device->abandoned);
}
/** The number of the first command that is not known to be done: all below are. Any thread. */
uint64_t clv__ocl_first_running(clv__bdevice *device);
/** Forget the first command that was not asked. */
void clv__ocl_pending_drop(clv__bdevice *device);

/** Around an enqueue: an event for the command, taken before, so that a lack of memory leaves nothing
 *  enqueued. The command waits for the event's `waits`: what its queue is to wait for, and `after` (NULL:
 *  nothing). */
clv_status clv__ocl_command_begin(clv__bdevice *device, clv__queue queue, const clv__bevent *after,
                                  clv__error *error, clv__bevent **out);
/** The same for a command that any thread enqueues, beside the worker: it waits for nothing, whoever wants it
 *  done waits for its event, and for its queue it is neither the last nor the next. */
clv_status clv__ocl_aside_begin(clv__bdevice *device, clv__queue queue, clv__error *error, clv__bevent **out);
/** The wait list, as an enqueue wants it. */
const cl_event *clv__ocl_waits(const clv__bevent *event);
/** `code` is what `call` returned: the event is asked how the command went when somebody waits. wanted: NULL,
 *  or whoever gets it too. */
clv_status clv__ocl_command_end(clv__bevent *event, const char *call, cl_int code, clv__bevent **wanted,
                                clv__error *error);
/** The command was not enqueued, and why is told elsewhere. */
void clv__ocl_command_drop(clv__bevent *event);

#ifdef CLEAVE_CLBLAST
// gemm_clblast.c
clv_status clv__ocl_gemm(clv__bdevice *device, bool transpose_a, bool transpose_b, int m, int n, int k,
                         float alpha, clv__bbuffer *a, int lda, int64_t stride_a, clv__bbuffer *b, int ldb,
                         int64_t stride_b, float beta, clv__bbuffer *c, int ldc, int64_t stride_c,
                         int n_batch, clv__error *error);
void clv__ocl_gemm_forget(clv__ocl_state *state);
#endif

#endif
