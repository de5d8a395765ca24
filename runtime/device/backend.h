// SPDX-License-Identifier: Apache-2.0
// The device seam: all that the runtime asks of a kind of device, in one table of verbs.
// Above this line no OpenCL type, below it no op name. tests/device/contract.c runs over every backend.
//
// Words used at each verb:
//   blocks      returns when the work is done
//   enqueues    returns at once; work runs in order on the queue
//   any thread  may be called at the same time from many threads
//   worker      called only by the one thread that owns the device's queue (or before that thread runs)
#ifndef CLV_DEVICE_BACKEND_H
#define CLV_DEVICE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "cleave/device.h"

typedef struct clv__backend clv__backend;
typedef struct clv__bdevice clv__bdevice;   // an open device; each backend defines its own
typedef struct clv__bbuffer clv__bbuffer;   // device memory, or a part of a buffer
typedef struct clv__bprogram clv__bprogram; // a compiled program
typedef struct clv__bkernel clv__bkernel;   // a kernel with its arguments; one per command
typedef struct clv__bevent clv__bevent;     // a point on a queue

/** The queues of a device, each in order. Transfers may overlap computing, and each other: they have a queue
 *  for each direction, so that the next batch does not wait behind results. A backend may map all to one. */
typedef enum clv__queue {
    CLV__QUEUE_COMPUTE,
    CLV__QUEUE_UPLOAD,
    CLV__QUEUE_DOWNLOAD,
    CLV__QUEUES
} clv__queue;

/** An argument of a kernel. LOCAL asks for that many bytes of local memory. */
typedef struct clv__barg {
    enum { CLV__BARG_BUFFER, CLV__BARG_I32, CLV__BARG_F32, CLV__BARG_LOCAL } kind;
    clv__bbuffer *buffer; // NULL is a null pointer in the kernel
    int32_t i32;
    float f32;
    size_t bytes;
} clv__barg;

/** A range of work-items. local all zero: the driver chooses. A zero in global: there is nothing to do. */
typedef struct clv__grid {
    int dims;
    size_t global[3], local[3];
    bool any_local; // local is a wish: where a kernel allows fewer work-items in a group, fewer they are
} clv__grid;

/** A host function run in queue order over device memory seen as host memory. See call. */
typedef void (*clv__bcall)(void *context, void *const *pointers);

/** What is known of a driver beyond the public record; a backend's quirk table says it. Zero is the usual. */
typedef struct clv__traits {
    bool caches_programs; // the driver keeps built programs itself, better than we could
    // a kernel is compiled at its first launch, one at a time in a process, and kept on disk: others may
    // compile ahead (ahead.h). Only where there is host_memory
    bool compiles_at_launch;
    // whether it has a compiler, and one that may end the process: one that thousands of programs went
    // through here is `sound`
    enum { CLV__NO_COMPILER, CLV__COMPILER_MAY_DIE, CLV__COMPILER_SOUND } compiler;
    int build_threads;   // programs worth building at once; 0: as many as the host has threads, at most 4
    uint32_t loop_turns; // see clv_device_info
    enum { CLV__BY_TRAITS, CLV__AS_LANES, CLV__AS_THREADS } execution; // see clv_device_info
    bool local_doubled;                                                // the same
    // it computes in the host's memory: kernels see at once what the host, or another device, wrote there,
    // and the host what they wrote. Then it has the verbs buffer_pointer and buffer_over
    bool host_memory;
    bool ptx;    // its compiler may take PTX in inline assembly, as NVIDIA's does
    bool amdgcn; // it may take builtin functions of AMD's machines
    bool dpas;   // it says that its sub-groups multiply matrices, as Intel's do
} clv__traits;

/** What enumerate tells of one device. Strings are copied by the runtime. */
typedef struct clv__found {
    clv_device_info info; // index and execution are filled in by the runtime, name where it is NULL
    clv__traits traits;
    void *handle; // passed to open; owned by the backend, lives as long as the backend's state
} clv__found;

/** For backends, which have no runtime: hand a sentence to the log, as clv__log does. */
void clv__log_to(const clv_runtime_config *config, clv_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct clv__backend {
    const char *name;

    /** Start the backend. *state is passed to enumerate, open and shutdown. `config` has its NULLs filled in
     *  and stays until shutdown. */
    clv_status (*startup)(const clv_runtime_config *config, void **state, clv__error *error);
    /** After every device is closed. NULL state is fine. */
    void (*shutdown)(void *state);

    /** List every device by calling `tell` once for each, unusable ones with info.usable false and a reason.
     *  Blocks. A platform without devices is skipped; one that fails is listed as one unusable device of type
     *  OTHER. */
    clv_status (*enumerate)(void *state, clv_status (*tell)(void *user, const clv__found *found), void *user,
                            clv__error *error);

    /** (optional) Split a device into equal parts of `parts` sub-devices; tells each. Sub-devices live until
     *  shutdown. */
    clv_status (*partition)(void *state, void *handle, int parts,
                            clv_status (*tell)(void *user, const clv__found *found), void *user,
                            clv__error *error);

    /** Open a device: context and queues. Blocks. Any thread. */
    clv_status (*open)(void *state, void *handle, clv__error *error, clv__bdevice **out);
    /** Close it; NULL is fine. Every buffer, program, kernel and event of it is gone before. False: commands
     *  may still run, because its driver does not say that they are done; memory of the host that they use
     *  must stay. */
    bool (*close)(clv__bdevice *device);

    /** Memory of `bytes` (>= 1), contents undefined. The runtime has checked its budget and limits before.
     *  Blocks, any thread. */
    clv_status (*buffer_create)(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out);
    /** A part of `parent` at an offset that is a multiple of info.alignment_bytes. It must be destroyed
     *  before its parent. */
    clv_status (*buffer_part)(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                              clv__bbuffer **out);
    /** NULL is fine. Commands that were enqueued before may still use it. Any thread. */
    void (*buffer_destroy)(clv__bbuffer *buffer);
    /** (optional: traits.host_memory) Where a buffer's bytes are, for as long as it lives; not a part: at a
     *  multiple of 4096. What commands wrote is there when an event after them was waited for. Any thread. */
    void *(*buffer_pointer)(clv__bbuffer *buffer);
    /** (with buffer_pointer) The pages that the buffer lies in; borrowed. */
    clv__pages *(*buffer_block)(clv__bbuffer *buffer);
    /** (optional: traits.host_memory) A buffer over memory of another, at a multiple of info.alignment_bytes.
     *  `block`: the pages it lies in, used until the last command over this buffer is done; NULL: the memory
     *  outlives that. Commands enqueued after something was written there see it. Blocks, any thread. */
    clv_status (*buffer_over)(clv__bdevice *device, clv__pages *block, void *pointer, size_t bytes,
                              clv__error *error, clv__bbuffer **out);

    /** (optional) Memory of the host for write and read, at *pointer for as long as it lives, which the
     *  device reaches by itself: no copy of the driver's own lies between. At most info.max_alloc_bytes.
     *  Commands that use it are done before it is destroyed. Blocks, for no longer than
     *  clv_runtime_config.device_timeout. Any thread. */
    clv_status (*staging_create)(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out,
                                 void **pointer);
    void (*staging_destroy)(clv__bbuffer *staging); // (with staging_create) NULL is fine

    /** Copy host -> device. Enqueues; `source` must stay until *event. The device first waits for `after`
     *  (NULL: nothing). `after` is an event of the same device, of any queue; bytes 0 moves nothing. event
     *  NULL: not wanted. Worker. */
    clv_status (*write)(clv__bdevice *device, clv__queue queue, clv__bbuffer *to, size_t offset, size_t bytes,
                        const void *source, clv__bevent *after, clv__bevent **event, clv__error *error);
    /** Copy device -> host. Enqueues; `target` is valid at *event. Worker. */
    clv_status (*read)(clv__bdevice *device, clv__queue queue, clv__bbuffer *from, size_t offset,
                       size_t bytes, void *target, clv__bevent *after, clv__bevent **event,
                       clv__error *error);
    /** Copy device -> device, same device, parts do not overlap. Enqueues on the compute queue. Worker. */
    clv_status (*copy)(clv__bdevice *device, clv__bbuffer *from, size_t from_offset, clv__bbuffer *to,
                       size_t to_offset, size_t bytes, clv__error *error);
    /** Fill with a 4-byte pattern; bytes is a multiple of 4, or of 2 if the pattern is twice the same.
     *  Enqueues on the compute queue. Worker. */
    clv_status (*fill)(clv__bdevice *device, clv__bbuffer *to, size_t offset, size_t bytes, uint32_t pattern,
                       clv__error *error);

    /** Compile source text with the driver's compiler. Blocks, any thread. On CLV_E_BUILD the sentence holds
     *  the log's start. */
    clv_status (*program_build)(clv__bdevice *device, const char *source, const char *options,
                                clv__error *error, clv__bprogram **out);
    /** (optional) Load a binary got from program_binary on the same device and driver. Any failure:
     *  CLV_E_BUILD. */
    clv_status (*program_load)(clv__bdevice *device, const void *binary, size_t bytes, clv__error *error,
                               clv__bprogram **out);
    /** (optional) The program's binary, malloc'd; the caller frees. */
    clv_status (*program_binary)(clv__bprogram *program, void **binary, size_t *bytes, clv__error *error);
    void (*program_destroy)(clv__bprogram *program); // NULL is fine; its kernels are gone before

    /** A kernel object of its own, arguments set once. Blocks. Any thread (different programs at a time).
     *  Errors  CLV_E_UNSUPPORTED  the kernel does not allow the local size or local memory on this device:
     *  choose another variant. CLV_E_DEVICE  the program has no such kernel. */
    clv_status (*kernel_create)(clv__bprogram *program, const char *name, const clv__barg *args, int n_args,
                                const clv__grid *grid, clv__error *error, clv__bkernel **out);
    void (*kernel_destroy)(clv__bkernel *kernel); // NULL is fine
    /** Run a kernel with the grid it was created with. Enqueues on the compute queue. event NULL: not wanted.
     *  Worker. */
    clv_status (*launch)(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event, clv__error *error);

    /** (optional: a device that runs host functions instead of kernels) Run call(context, pointers of the
     *  buffers) in order. Enqueues or blocks. Worker. */
    clv_status (*call)(clv__bdevice *device, clv__bcall call, void *context, clv__bbuffer *const *buffers,
                       int n, clv__error *error);

    /** (optional: a vendor library) C[b] = alpha op(A[b]) op(B[b]) + beta C[b], row-major, n_batch of them at
     *  element strides. Enqueues on the compute queue. Worker. */
    clv_status (*gemm)(clv__bdevice *device, bool transpose_a, bool transpose_b, int m, int n, int k,
                       float alpha, clv__bbuffer *a, int lda, int64_t stride_a, clv__bbuffer *b, int ldb,
                       int64_t stride_b, float beta, clv__bbuffer *c, int ldc, int64_t stride_c, int n_batch,
                       clv__error *error);

    /** Make a queue's later work wait until this event of another queue. Enqueues. Worker. */
    clv_status (*wait_on_queue)(clv__bdevice *device, clv__queue queue, clv__bevent *event,
                                clv__error *error);
    /** An event that is reached when all enqueued so far on the queue is done. While events have no times, it
     *  may be that of the last command. Worker. */
    clv_status (*record)(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error);
    /** Block until the event is reached. An error of any command that was enqueued before it and is done,
     *  with an event or without, is told here, by name and code, until a synchronize has told it.
     *  CLV_E_DEVICE_LOST, once clv_runtime_config.device_timeout is over: it was not reached. Any thread. */
    clv_status (*event_wait)(clv__bevent *event, clv__error *error);
    /** (optional; NULL: events always have times, or never) From now on events know when their work began and
     *  ended, which costs time on some drivers. Blocks until all enqueued is done. Worker. */
    clv_status (*keep_times)(clv__bdevice *device, clv__error *error);
    /** Start and end of the event's work on the device's clock, nanoseconds; after event_wait, and only of
     *  events since keep_times. */
    clv_status (*elapsed)(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error);
    void (*event_destroy)(clv__bevent *event); // NULL is fine
    /** Hand what is enqueued to the device. Returns at once. Worker. */
    clv_status (*flush)(clv__bdevice *device, clv__error *error);
    /** Block until all enqueued on every queue is done. An error of any command before it is told here, once.
     *  Worker. */
    clv_status (*synchronize)(clv__bdevice *device, clv__error *error);
    /** (optional) Was it waited for in vain, for as long as clv_runtime_config.device_timeout? Any thread. */
    bool (*silent)(clv__bdevice *device);
    /** (optional) It does not answer: from now on no call of its driver is made, nothing that it may use is
     *  freed, and a thread that comes back from a call that hung does not return. Any thread. */
    void (*abandon)(clv__bdevice *device);
    /** (optional) After a synchronize that failed: may commands still run? Then what they use of the host's
     *  memory must stay. Worker. */
    bool (*still_runs)(clv__bdevice *device);
};

extern const clv__backend clv__backend_host;
extern const clv__backend clv__backend_null;
#ifdef CLEAVE_OPENCL
extern const clv__backend clv__backend_opencl;
#endif

#endif
