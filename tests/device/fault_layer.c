// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that makes calls fail and counts the objects that live: tests drive it through the functions at
// the end. A fault is the n-th call since fault_arm, of one function or of whatever function, and how it fails:
//
//   once         it is not made and returns the error
//   from then on so do all calls after it
//   in the event it returns well, the command is not done, and only its event tells the error
//   all after it the same, and so do the commands after it on its queue, and those that wait for them
//   unseen       it returns well, the command is not done, and nothing tells
//   silent       it returns well, and it and all after it on its queue are never done
//   stuck        it does not return
//   runs on      not one call: all that wait (clFlush, clFinish, clWaitForEvents) return the error, while what is enqueued goes on, and is
//                done when the next fault is armed
//
// Commands that fail late are markers in the driver below: they keep their place.
//
// Memory by pointers is an object too. It and staging go when the device is done with them: neither clSVMFree nor the release of a
// mapped buffer waits for commands that use their address. Once every call fails nothing tells that any more, and what a program keeps of
// them then is not counted.
//
// Who asks for an event's state until it is over asks an unknown number of times: only the first is counted.
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/fault_layer.h"
#include "device/kept_programs.h"
#include "device/layer.h"

API void fault_arm(long n, int code);
API void fault_arm_call(const char *call, long n, int code, fault_kind kind);

enum { MOST_FAILED = 1 << 16, MOST_CALLS = 64, MOST_HELD = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    fault_kind kind;
    char call[64]; // "" is any
    long n;        // of the call that fails; 0: none
    int code;
    long seen;         // calls of that kind so far
    const char *fired; // its name
    cl_event failed[MOST_FAILED];
    int n_failed;
    cl_command_queue queue;   // the one that failed, with all after it
    cl_event held[MOST_HELD]; // user events that hold silent queues up
    int n_held;
    struct {
        const char *name;
        long n;
    } calls[MOST_CALLS];
    int n_calls;
} state;
static atomic_int live;
static int careful;       // of them, those that go when the device is done with them
static atomic_bool armed; // nothing to look at otherwise

static void count(const char *name) {
    for (int i = 0; i < state.n_calls; i++) {
        if (strcmp(state.calls[i].name, name)) continue;
        state.calls[i].n++;
        return;
    }
    if (state.n_calls == MOST_CALLS) return;
    state.calls[state.n_calls].name = name;
    state.calls[state.n_calls++].n = 1;
}

/** Is this the call? The lock is held. */
static int is_it(const char *name) {
    count(name);
    if (*state.call && strcmp(state.call, name)) return 0;
    if (++state.seen != state.n) return 0;
    state.fired = name;
    return 1;
}

static bool waits(const char *name) {
    return !strcmp(name, "clFlush") || !strcmp(name, "clFinish") || !strcmp(name, "clWaitForEvents");
}

/** Does this call fail at once, and with what? A call that enqueues is looked at by fails_late instead, once it passed here. */
static cl_int fails(const char *name, int enqueues) {
    pthread_mutex_lock(&lock);
    cl_int code = state.kind == FAULT_RUNS_ON && waits(name) ? state.code : CL_SUCCESS;
    bool late = state.kind > FAULT_ON;
    if (!late || !enqueues) {
        bool now = is_it(name);
        if (!late && (now || (state.kind == FAULT_ON && state.fired))) code = state.code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/** Does every call fail by now, and with what? */
static cl_int fails_again(void) {
    pthread_mutex_lock(&lock);
    cl_int code = state.kind == FAULT_ON && state.fired ? state.code : CL_SUCCESS;
    pthread_mutex_unlock(&lock);
    return code;
}

static int has_failed(cl_event event) {
    for (int i = 0; i < state.n_failed; i++)
        if (state.failed[i] == event) return 1;
    return 0;
}

static cl_context of_queue(cl_command_queue queue) {
    cl_context context = NULL;
    below.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
    return context;
}

/** A user event that is set when the next fault is armed; NULL: there are too many. The lock is held. */
static cl_event hold(cl_command_queue queue) {
    cl_int code;
    if (state.n_held == MOST_HELD) return NULL;
    return state.held[state.n_held++] = below.clCreateUserEvent(of_queue(queue), &code);
}

/** How an enqueue fails late; FAULT_ONCE: it does not. */
static fault_kind fails_late(const char *name, cl_command_queue queue, cl_uint n, const cl_event *list) {
    fault_kind kind = FAULT_ONCE;
    if (!atomic_load(&armed)) return kind;
    pthread_mutex_lock(&lock);
    if (state.kind == FAULT_RUNS_ON) {
        cl_event held = state.queue == queue ? NULL : hold(queue);
        if (held) below.clEnqueueMarkerWithWaitList(queue, 1, &held, NULL);
        state.queue = queue;
    } else if (state.kind > FAULT_ON) {
        bool now = is_it(name);
        if (now) kind = state.kind;
        if (now && (kind == FAULT_ALL_AFTER || kind == FAULT_SILENT)) state.queue = queue;
        if (!now && state.fired && state.queue == queue) kind = state.kind;
        for (cl_uint i = 0; i < n && state.kind == FAULT_ALL_AFTER; i++)
            if (has_failed(list[i])) kind = FAULT_ALL_AFTER;
    }
    pthread_mutex_unlock(&lock);
    return kind;
}

static void keep_failed(cl_event event) {
    pthread_mutex_lock(&lock);
    if (state.n_failed < MOST_FAILED) state.failed[state.n_failed++] = event;
    pthread_mutex_unlock(&lock);
}

/** What stands for a command that fails late. */
static cl_int stand_in(fault_kind kind, cl_command_queue queue, cl_uint n, const cl_event *list,
                       cl_event *event) {
    cl_event own = NULL, held[1];
    while (kind == FAULT_STUCK) pause();
    pthread_mutex_lock(&lock);
    if (kind == FAULT_SILENT &&
        (held[0] = hold(queue))) { // on this queue nothing goes on after a wait for ever
        n = 1;
        list = held;
    }
    pthread_mutex_unlock(&lock);
    cl_int code = below.clEnqueueMarkerWithWaitList(queue, n, list, &own);
    if (code != CL_SUCCESS) return code;
    if (kind == FAULT_IN_EVENT || kind == FAULT_ALL_AFTER) keep_failed(own);
    if (event) {
        *event = own;
        atomic_fetch_add(&live, 1);
    } else {
        below.clReleaseEvent(own);
    }
    return CL_SUCCESS;
}

/** n more of those that go when the device is done with them. */
static void count_careful(int n) {
    pthread_mutex_lock(&lock);
    careful += n;
    pthread_mutex_unlock(&lock);
}

static int is_staging(const char *maker, void *object) {
    cl_mem_flags flags = 0;
    if (strcmp(maker, "clCreateBuffer") != 0) return 0;
    below.clGetMemObjectInfo(object, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    return (flags & CL_MEM_ALLOC_HOST_PTR) != 0;
}

// A call that returns a code.
#define CODE(name, parameters, arguments)                                                                    \
    static cl_int CL_API_CALL my_##name parameters {                                                         \
        cl_int code = fails(#name, 0);                                                                       \
        return code == CL_SUCCESS ? below.name arguments : code;                                             \
    }
// One that may also give an event, which then lives.
#define ENQUEUE(name, parameters, arguments)                                                                 \
    static cl_int CL_API_CALL my_##name parameters {                                                         \
        cl_int code = fails(#name, 1);                                                                       \
        if (code != CL_SUCCESS) return code;                                                                 \
        fault_kind late = fails_late(#name, q, n_list, list);                                                \
        if (late != FAULT_ONCE) return stand_in(late, q, n_list, list, event);                               \
        code = below.name arguments;                                                                         \
        if (code == CL_SUCCESS && event) atomic_fetch_add(&live, 1);                                         \
        return code;                                                                                         \
    }
// One that returns an object and a code.
#define CREATE(type, name, context, parameters, arguments)                                                   \
    static type CL_API_CALL my_##name parameters {                                                           \
        cl_int refusal = fails(#name, 0);                                                                    \
        if (refusal != CL_SUCCESS) {                                                                         \
            if (code) *code = refusal;                                                                       \
            return NULL;                                                                                     \
        }                                                                                                    \
        type object = below.name arguments;                                                                  \
        if (object) atomic_fetch_add(&live, 1);                                                              \
        if (object && is_staging(#name, object)) count_careful(1);                                           \
        return object;                                                                                       \
    }
// Releasing never fails here: what would a program do about it?
#define RELEASE(type, name)                                                                                  \
    static cl_int CL_API_CALL my_##name(type object) {                                                       \
        atomic_fetch_sub(&live, 1);                                                                          \
        return below.name(object);                                                                           \
    }

CODE(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *count), (n, ids, count))
CODE(clGetPlatformInfo, (cl_platform_id p, cl_platform_info what, size_t n, void *out, size_t *size),
     (p, what, n, out, size))
CODE(clGetDeviceIDs, (cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *count),
     (p, type, n, ids, count))
CODE(clGetDeviceInfo, (cl_device_id d, cl_device_info what, size_t n, void *out, size_t *size),
     (d, what, n, out, size))
CODE(clBuildProgram,
     (cl_program p, cl_uint n, const cl_device_id *ids, const char *options,
      void(CL_CALLBACK *done)(cl_program, void *), void *user),
     (p, n, ids, options, done, user))
CODE(clGetProgramBuildInfo,
     (cl_program p, cl_device_id d, cl_program_build_info what, size_t n, void *out, size_t *size),
     (p, d, what, n, out, size))
CODE(clGetProgramInfo, (cl_program p, cl_program_info what, size_t n, void *out, size_t *size),
     (p, what, n, out, size))
CODE(clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void *value), (k, i, n, value))
CODE(clSetKernelArgSVMPointer, (cl_kernel k, cl_uint i, const void *value), (k, i, value))
CODE(clGetKernelWorkGroupInfo,
     (cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t n, void *out, size_t *size),
     (k, d, what, n, out, size))
CODE(clFlush, (cl_command_queue q), (q))
CODE(clFinish, (cl_command_queue q), (q))
CODE(clSetEventCallback,
     (cl_event e, cl_int when, void(CL_CALLBACK *call)(cl_event, cl_int, void *), void *user),
     (e, when, call, user))

/** The error of an event, CL_SUCCESS if it has none. */
static cl_int error_of(cl_event event) {
    if (!atomic_load(&armed)) return CL_SUCCESS;
    pthread_mutex_lock(&lock);
    cl_int code = has_failed(event) ? state.code : CL_SUCCESS;
    pthread_mutex_unlock(&lock);
    return code;
}

static cl_int CL_API_CALL my_clWaitForEvents(cl_uint n, const cl_event *events) {
    cl_int code = fails("clWaitForEvents", 0);
    if (code == CL_SUCCESS) code = below.clWaitForEvents(n, events);
    for (cl_uint i = 0; i < n && code == CL_SUCCESS; i++)
        if (error_of(events[i]) != CL_SUCCESS) code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return code;
}

static cl_int CL_API_CALL my_clGetEventInfo(cl_event e, cl_event_info what, size_t n, void *out,
                                            size_t *size) {
    static _Thread_local cl_event asked; // in vain, by the last call
    cl_int code = e == asked ? fails_again() : fails("clGetEventInfo", 0), error = error_of(e),
           status = CL_COMPLETE;
    asked = NULL;
    if (code == CL_SUCCESS) code = below.clGetEventInfo(e, what, n, out, size);
    if (code != CL_SUCCESS || what != CL_EVENT_COMMAND_EXECUTION_STATUS || !out) return code;
    memcpy(&status, out, sizeof status);
    if (status > CL_COMPLETE) asked = e;
    if (status == CL_COMPLETE && error != CL_SUCCESS) memcpy(out, &error, sizeof error);
    return code;
}

static cl_int CL_API_CALL my_clGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t n, void *out,
                                                     size_t *size) {
    cl_int code = fails("clGetEventProfilingInfo", 0);
    if (code == CL_SUCCESS && error_of(e) != CL_SUCCESS) code = CL_PROFILING_INFO_NOT_AVAILABLE;
    return code == CL_SUCCESS ? below.clGetEventProfilingInfo(e, what, n, out, size) : code;
}

LAYER_ENQUEUES(ENQUEUE)
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset, const size_t *global,
         const size_t *local, cl_uint n_list, const cl_event *list, cl_event *event),
        (q, k, dims, offset, global, local, n_list, list, event))

/** An event lives, no object does. */
static void *CL_API_CALL my_clEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool wait, cl_map_flags flags,
                                               size_t at, size_t n, cl_uint n_list, const cl_event *list,
                                               cl_event *event, cl_int *code) {
    *code = fails("clEnqueueMapBuffer", 0);
    if (*code != CL_SUCCESS) return NULL;
    void *pointer = below.clEnqueueMapBuffer(q, m, wait, flags, at, n, n_list, list, event, code);
    if (*code == CL_SUCCESS && event) atomic_fetch_add(&live, 1);
    return pointer;
}

LAYER_CREATES(CREATE)
CREATE(cl_context, clCreateContext, NULL,
       (const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code),
       (properties, n, ids, notify, user, code))
CREATE(cl_command_queue, clCreateCommandQueue, c,
       (cl_context c, cl_device_id d, cl_command_queue_properties properties, cl_int *code),
       (c, d, properties, code))
CREATE(cl_program, clCreateProgramWithBinary, c,
       (cl_context c, cl_uint n, const cl_device_id *ids, const size_t *sizes, const unsigned char **data,
        cl_int *status, cl_int *code),
       (c, n, ids, sizes, data, status, code))

static cl_int CL_API_CALL my_clCreateKernelsInProgram(cl_program p, cl_uint n, cl_kernel *kernels,
                                                      cl_uint *count) {
    cl_uint made = 0;
    cl_int code = fails("clCreateKernelsInProgram", 0);
    if (code != CL_SUCCESS) return code;
    code = below.clCreateKernelsInProgram(p, n, kernels, &made);
    if (code == CL_SUCCESS && kernels) atomic_fetch_add(&live, (int)made);
    if (count) *count = made;
    return code;
}

/** It says no code. */
static void *CL_API_CALL my_clSVMAlloc(cl_context c, cl_svm_mem_flags flags, size_t n, cl_uint alignment) {
    if (fails("clSVMAlloc", 0) != CL_SUCCESS) return NULL;
    void *pointer = below.clSVMAlloc(c, flags, n, alignment);
    if (pointer) count_careful(1);
    if (pointer) atomic_fetch_add(&live, 1);
    return pointer;
}

/** It cannot fail. */
static void CL_API_CALL my_clSVMFree(cl_context c, void *pointer) {
    if (pointer) count_careful(-1);
    if (pointer) atomic_fetch_sub(&live, 1);
    below.clSVMFree(c, pointer);
}

// Sub-devices are not counted: on some drivers they are kept until the process ends (quirks.c).
CODE(clCreateSubDevices,
     (cl_device_id d, const cl_device_partition_property *how, cl_uint n, cl_device_id *ids, cl_uint *count),
     (d, how, n, ids, count))

CODE(clSetMemObjectDestructorCallback, (cl_mem m, void(CL_CALLBACK *call)(cl_mem, void *), void *user),
     (m, call, user))

RELEASE(cl_context, clReleaseContext)
RELEASE(cl_command_queue, clReleaseCommandQueue)
RELEASE(cl_program, clReleaseProgram)
RELEASE(cl_kernel, clReleaseKernel)

static cl_int CL_API_CALL my_clReleaseMemObject(cl_mem object) {
    if (is_staging("clCreateBuffer", object)) count_careful(-1);
    atomic_fetch_sub(&live, 1);
    return below.clReleaseMemObject(object);
}

static cl_int CL_API_CALL my_clReleaseEvent(cl_event event) {
    atomic_fetch_sub(&live, 1);
    if (error_of(event) != CL_SUCCESS) { // its address may be another's soon
        cl_uint users = 0;
        below.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof users, &users, NULL);
        pthread_mutex_lock(&lock);
        for (int i = 0; users == 1 && i < state.n_failed; i++)
            if (state.failed[i] == event) state.failed[i] = state.failed[--state.n_failed];
        pthread_mutex_unlock(&lock);
    }
    return below.clReleaseEvent(event);
}

LAYER("clv fault layer") {
    kept_begin();
    LAYER_ENQUEUES(LAYER_TAKE)
    LAYER_CREATES(LAYER_TAKE_CREATE)
    LAYER_TAKE(clGetPlatformIDs)
    LAYER_TAKE(clGetPlatformInfo)
    LAYER_TAKE(clGetDeviceIDs)
    LAYER_TAKE(clGetDeviceInfo)
    LAYER_TAKE(clBuildProgram)
    LAYER_TAKE(clGetProgramBuildInfo)
    LAYER_TAKE(clGetProgramInfo)
    LAYER_TAKE(clSetKernelArg)
    LAYER_TAKE(clSetKernelArgSVMPointer)
    LAYER_TAKE(clSVMAlloc)
    LAYER_TAKE(clSVMFree)
    LAYER_TAKE(clGetKernelWorkGroupInfo)
    LAYER_TAKE(clFlush)
    LAYER_TAKE(clFinish)
    LAYER_TAKE(clWaitForEvents)
    LAYER_TAKE(clSetEventCallback)
    LAYER_TAKE(clGetEventInfo)
    LAYER_TAKE(clGetEventProfilingInfo)
    LAYER_TAKE(clEnqueueNDRangeKernel)
    LAYER_TAKE(clEnqueueMapBuffer)
    LAYER_TAKE(clCreateContext)
    LAYER_TAKE(clCreateCommandQueue)
    LAYER_TAKE(clCreateProgramWithBinary)
    LAYER_TAKE(clCreateKernelsInProgram)
    LAYER_TAKE(clCreateSubDevices)
    LAYER_TAKE(clSetMemObjectDestructorCallback)
    LAYER_TAKE(clReleaseContext)
    LAYER_TAKE(clReleaseCommandQueue)
    LAYER_TAKE(clReleaseMemObject)
    LAYER_TAKE(clReleaseProgram)
    LAYER_TAKE(clReleaseKernel)
    LAYER_TAKE(clReleaseEvent)
    // For a program that knows nothing of this: CALL:N:CODE:silent or :stuck
    const char *given = getenv("CLV_TEST_FAULT");
    char call[64], how[16];
    long number;
    int error;
    if (given) {
        if (sscanf(given, "%63[^:]:%ld:%d:%15s", call, &number, &error, how) != 4) return CL_INVALID_VALUE;
        fault_arm_call(call, number, error, strcmp(how, "stuck") ? FAULT_SILENT : FAULT_STUCK);
    }
    return CL_SUCCESS;
}

// ---- What tests call; they open this same library -------------------------------------------------------------------

API const char *fault_fired(void);
API long fault_calls(void);
API const char *fault_name(int i, long *n);
API int fault_live(void);
API void fault_keep_programs(void);

/** Let the n-th call from now, of this function ("": any), fail with `code`; 0 lets all pass. Silent queues go on. */
void fault_arm_call(const char *call, long n, int code, fault_kind kind) {
    pthread_mutex_lock(&lock);
    if (state.kind == FAULT_ON && state.fired) { // whoever was not sure then is gone
        atomic_fetch_sub(&live, careful);
        careful = 0;
    }
    int held = state.n_held;
    for (int i = 0; i < held; i++) {
        below.clSetUserEventStatus(state.held[i], CL_COMPLETE);
        below.clReleaseEvent(state.held[i]);
    }
    memset(&state, 0, sizeof state);
    snprintf(state.call, sizeof state.call, "%s", call);
    state.n = n;
    state.code = code;
    state.kind = kind;
    atomic_store(&armed, kind > FAULT_ON);
    pthread_mutex_unlock(&lock);
}

void fault_arm(long n, int code) {
    fault_arm_call("", n, code, FAULT_ONCE);
}

/** The call that was made to fail, NULL if none was yet. */
const char *fault_fired(void) {
    pthread_mutex_lock(&lock);
    const char *fired = state.fired;
    pthread_mutex_unlock(&lock);
    return fired;
}

/** Calls since, of what fails. */
long fault_calls(void) {
    pthread_mutex_lock(&lock);
    long seen = state.seen;
    pthread_mutex_unlock(&lock);
    return seen;
}

/** The i-th function that was called since, and how often; NULL past the last. */
const char *fault_name(int i, long *n) {
    pthread_mutex_lock(&lock);
    const char *name = i < state.n_calls ? state.calls[i].name : NULL;
    if (name) *n = state.calls[i].n;
    pthread_mutex_unlock(&lock);
    return name;
}

/** Objects made and not yet released. */
int fault_live(void) {
    pthread_mutex_lock(&lock);
    int n = atomic_load(&live) - (state.kind == FAULT_ON && state.fired ? careful : 0);
    pthread_mutex_unlock(&lock);
    return n;
}

/** From now on the driver makes a device, a context, a program once, see kept_programs.h. */
void fault_keep_programs(void) {
    kept.wanted = true;
}
