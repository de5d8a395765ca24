// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that loses a device: from the n-th enqueue on it every call on it fails, but releasing.
// The devices are numbered by the order in which contexts were made for them. Work that was enqueued before runs on in
// the driver below; flushing and finishing fail only after it is done, so that memory may be freed then: a CPU's driver
// computes in the host's memory.
//
// It can also make a device slow (lost_slow).
//
// Driven by lost_arm and lost_calls from a test in this process, or, for a program that knows nothing of it, by
// CLV_TEST_LOSE=DEVICE:ENQUEUE:CODE from the environment: 1:500:-5.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/layer.h"

enum { MOST_CONTEXTS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    cl_context contexts[MOST_CONTEXTS];
    cl_device_id devices[MOST_CONTEXTS];
    int n;
    int doomed;          // the device; -1: none
    long calls, dies_at; // enqueues on it so far, and the one it does not survive
    cl_int code;
    int late; // enqueues go through, and fail when they are waited for
    int dead;
    int slow; // a device, and how long each work-item holds up an enqueue there
    long ns_per_item;
} state = {.doomed = -1, .slow = -1};

/** The number of a context's device: contexts are few. -1: made before this layer looked. */
static int number_of(cl_context context) {
    cl_device_id device = NULL;
    for (int i = state.n; i-- > 0 && !device;)
        if (state.contexts[i] == context) device = state.devices[i];
    int number = 0;
    for (int i = 0; i < state.n && device; i++) {
        if (state.devices[i] == device) return number;
        int known = 0;
        for (int j = 0; j < i; j++) known |= state.devices[j] == state.devices[i];
        number += !known;
    }
    return -1;
}

/** What a call on this context returns instead of being made; CL_SUCCESS: it is made. */
static cl_int refuses(cl_context context, int enqueues, int waits) {
    pthread_mutex_lock(&lock);
    cl_int code = CL_SUCCESS;
    if (number_of(context) == state.doomed && state.doomed >= 0) {
        if (enqueues && ++state.calls == state.dies_at) state.dead = 1;
        if (state.dead && (!state.late || waits)) code = state.code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static cl_context of_queue(cl_command_queue queue) {
    cl_context context = NULL;
    below.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    return context;
}

static cl_context of_event(cl_event event) {
    cl_context context = NULL;
    below.clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL);
    return context;
}

static cl_context of_memory(cl_mem memory) {
    cl_context context = NULL;
    below.clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    return context;
}

static cl_context of_program(cl_program program) {
    cl_context context = NULL;
    below.clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL);
    return context;
}

#define ENQUEUE(name, parameters, arguments)                                                                 \
    static cl_int CL_API_CALL my_##name parameters {                                                         \
        cl_int code = refuses(of_queue(q), 1, 0);                                                            \
        return code == CL_SUCCESS ? below.name arguments : code;                                             \
    }
#define CODE(name, context, waits, parameters, arguments)                                                    \
    static cl_int CL_API_CALL my_##name parameters {                                                         \
        cl_int code = refuses(context, 0, waits);                                                            \
        return code == CL_SUCCESS ? below.name arguments : code;                                             \
    }
#define CREATE(type, name, context, parameters, arguments)                                                   \
    static type CL_API_CALL my_##name parameters {                                                           \
        cl_int refusal = refuses(context, 0, 0);                                                             \
        if (refusal == CL_SUCCESS) return below.name arguments;                                              \
        if (code) *code = refusal;                                                                           \
        return NULL;                                                                                         \
    }

LAYER_ENQUEUES(ENQUEUE)
LAYER_CREATES(CREATE)

/** A slow device: its kernels are enqueued late, the more so the larger they are. */
static void hold_up(cl_context context, cl_uint dims, const size_t *global) {
    pthread_mutex_lock(&lock);
    long ns = state.slow >= 0 && number_of(context) == state.slow ? state.ns_per_item : 0;
    pthread_mutex_unlock(&lock);
    for (cl_uint d = 0; d < dims; d++) ns *= (long)global[d];
    if (ns) nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static cl_int CL_API_CALL my_clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims,
                                                    const size_t *offset, const size_t *global,
                                                    const size_t *local, cl_uint n_list, const cl_event *list,
                                                    cl_event *event) {
    cl_int code = refuses(of_queue(q), 1, 0);
    if (code != CL_SUCCESS) return code;
    hold_up(of_queue(q), dims, global);
    return below.clEnqueueNDRangeKernel(q, k, dims, offset, global, local, n_list, list, event);
}

ENQUEUE(clEnqueueUnmapMemObject,
        (cl_command_queue q, cl_mem m, void *pointer, cl_uint n_list, const cl_event *list, cl_event *event),
        (q, m, pointer, n_list, list, event))

static void *CL_API_CALL my_clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool wait, cl_map_flags flags,
                                               size_t at, size_t n, cl_uint n_list, const cl_event *list,
                                               cl_event *event, cl_int *code) {
    cl_int refusal = refuses(of_queue(q), 1, 0);
    if (refusal == CL_SUCCESS)
        return below.clEnqueueMapBuffer(q, m, wait, flags, at, n, n_list, list, event, code);
    if (code) *code = refusal;
    return NULL;
}

#define DRAIN(name, waits)                                                                                   \
    static cl_int CL_API_CALL my_##name(cl_command_queue q) {                                                \
        cl_int code = refuses(of_queue(q), 0, waits);                                                        \
        if (code != CL_SUCCESS) below.clFinish(q);                                                           \
        return code == CL_SUCCESS ? below.name(q) : code;                                                    \
    }
DRAIN(clFlush, 0)
DRAIN(clFinish, 1)
CODE(clWaitForEvents, of_event(events[0]), 1, (cl_uint n, const cl_event *events), (n, events))
CODE(clGetEventProfilingInfo, of_event(e), 0,
     (cl_event e, cl_profiling_info what, size_t n, void *out, size_t *size), (e, what, n, out, size))
CODE(clBuildProgram, of_program(p), 0,
     (cl_program p, cl_uint n, const cl_device_id *ids, const char *options,
      void(CL_CALLBACK *done)(cl_program, void *), void *user),
     (p, n, ids, options, done, user))

/** A command of a lost device has failed, once it is over below. */
static cl_int CL_API_CALL my_clGetEventInfo(cl_event e, cl_event_info what, size_t n, void *out,
                                            size_t *size) {
    cl_int code = refuses(of_event(e), 0, 1);
    if (code == CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return below.clGetEventInfo(e, what, n, out, size);
    below.clWaitForEvents(1, &e);
    if (out) memcpy(out, &code, sizeof code);
    return CL_SUCCESS;
}

static cl_context CL_API_CALL my_clCreateContext(
    const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
    void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code) {
    cl_context context = below.clCreateContext(properties, n, ids, notify, user, code);
    pthread_mutex_lock(&lock);
    if (context && n && state.n < MOST_CONTEXTS) {
        state.contexts[state.n] = context;
        state.devices[state.n++] = ids[0];
    }
    pthread_mutex_unlock(&lock);
    return context;
}

LAYER("clv lost layer") {
    LAYER_ENQUEUES(LAYER_TAKE)
    LAYER_CREATES(LAYER_TAKE_CREATE)
    LAYER_TAKE(clEnqueueNDRangeKernel)
    LAYER_TAKE(clEnqueueMapBuffer)
    LAYER_TAKE(clEnqueueUnmapMemObject)
    LAYER_TAKE(clFlush)
    LAYER_TAKE(clFinish)
    LAYER_TAKE(clWaitForEvents)
    LAYER_TAKE(clGetEventProfilingInfo)
    LAYER_TAKE(clGetEventInfo)
    LAYER_TAKE(clBuildProgram)
    LAYER_TAKE(clCreateContext)
    const char *given = getenv("CLV_TEST_LOSE");
    if (given && sscanf(given, "%d:%ld:%d", &state.doomed, &state.dies_at, &state.code) != 3)
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

// ---- What a test calls; it opens this same library ------------------------------------------------------------------

API void lost_arm(int device, long enqueue, int code, int late);
API long lost_calls(void);
API void lost_slow(int device, long ns_per_item);

/** Lose a device (-1: none) at its n-th enqueue from now (0: count only; -1: now) with this code; late: enqueues go through, waiting
 *  fails. What was lost before comes back. */
void lost_arm(int device, long enqueue, int code, int late) {
    pthread_mutex_lock(&lock);
    state.doomed = device;
    state.calls = 0;
    state.dead = enqueue < 0;
    state.dies_at = enqueue;
    state.code = code;
    state.late = late;
    pthread_mutex_unlock(&lock);
}

/** Enqueues on that device since. */
long lost_calls(void) {
    pthread_mutex_lock(&lock);
    long calls = state.calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

/** Make a device slow (-1: none). */
void lost_slow(int device, long ns_per_item) {
    pthread_mutex_lock(&lock);
    state.slow = device;
    state.ns_per_item = ns_per_item;
    pthread_mutex_unlock(&lock);
}
