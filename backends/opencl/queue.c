// SPDX-License-Identifier: Apache-2.0
// The in-order queues of a device: compute, upload and download. Only event_wait and synchronize wait, and
// both ask every command how it went. An event of one queue is flushed before another queue waits for it,
// because OpenCL promises progress only then.
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/patience.h"
#include "opencl.h"

// ---- Events -----------------------------------------------------------------------------------------------
// Every command has an event, wanted or not. Whoever waits asks the events of all commands before how they
// went, because a driver need not pass an error on to the commands behind it, and clFinish need not report
// it. README.md tells what this costs.

enum {
    MANY_PENDING = 1024
}; // then those that are done are asked, so that a queue without waits does not keep all

static clv__bevent *event_take(clv__bdevice *device, clv__queue queue) {
    pthread_mutex_lock(&device->event_lock);
    clv__bevent **at = &device->free_events;
    while (*at && atomic_load(&(*at)->n_calls)) at = &(*at)->next; // that the driver will still call us for
    clv__bevent *event = *at;
    if (event) *at = event->next;
    pthread_mutex_unlock(&device->event_lock);
    if (!event) event = clv__alloc(1, sizeof *event);
    if (event) *event = (clv__bevent){.device = device, .queue = queue};
    return event;
}

static void event_give_back(clv__bevent *event) {
    clv__bdevice *device = event->device;
    event->next = device->free_events;
    device->free_events = event;
}

/** One user less; the lock is held. */
static void event_drop(clv__bevent *event) {
    if (--event->users) return;
    if (clv__ocl_answers(event->device)) clReleaseEvent(event->event);
    event_give_back(event);
}

void clv__ocl_event_destroy(clv__bevent *event) {
    if (!event) return;
    clv__bdevice *device = event->device;
    pthread_mutex_lock(&device->event_lock);
    event_drop(event);
    pthread_mutex_unlock(&device->event_lock);
}

/** Ask the commands up to a number how they went. Those that are not done stay. The lock is held. */
static void ask_pending(clv__bdevice *device, uint64_t number) {
    clv__bevent **at = &device->pending;
    while (*at && (*at)->number <= number) {
        clv__bevent *event = *at;
        cl_int result = CL_COMPLETE;
        const char *call = event->call;
        cl_int asked =
            clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof result, &result, NULL);
        if (asked != CL_SUCCESS) { // it may have failed
            result = asked;
            call = "clGetEventInfo";
            device->unsure = true;
        }
        if (result > 0) {
            at = &event->next;
            continue;
        }
        if (result < 0 && device->failed.code == CL_SUCCESS) {
            device->failed.code = result;
            device->failed.number = event->number;
            device->failed.call = call;
        }
        *at = event->next;
        if (!*at) device->pending_end = at;
        if (device->last[event->queue] == event) device->last[event->queue] = NULL;
        device->n_pending--;
        event_drop(event);
    }
}

uint64_t clv__ocl_first_running(clv__bdevice *device) {
    pthread_mutex_lock(&device->event_lock);
    ask_pending(device, UINT64_MAX);
    uint64_t first = device->unsure ? 0 : device->pending ? device->pending->number : device->n_enqueued + 1;
    pthread_mutex_unlock(&device->event_lock);
    return first;
}

void clv__ocl_pending_drop(clv__bdevice *device) {
    pthread_mutex_lock(&device->event_lock);
    clv__bevent *event = device->pending;
    device->pending = event->next;
    event_drop(event);
    pthread_mutex_unlock(&device->event_lock);
}

bool clv__ocl_silent(clv__bdevice *device) {
    return atomic_load(&device->silent);
}

void clv__ocl_abandon(clv__bdevice *device) {
    atomic_store(&device->abandoned, true);
}

/** A call came back after its device was given up: what it was made for may be gone. */
static void stop_if_abandoned(const clv__bdevice *device) {
    while (!clv__ocl_answers(device)) pause();
}

clv_status clv__ocl_command_begin(clv__bdevice *device, clv__queue queue, const clv__bevent *after,
                                  clv__error *error, clv__bevent **out) {
    stop_if_abandoned(device);
    if (after && after->queue == queue) after = NULL; // in order anyway
    if (after) CLV__OCL_TRY(error, device->label, "clFlush", clFlush(device->queue[after->queue]));
    clv__bevent *event = *out = event_take(device, queue);
    if (!event) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an event");
    if (device->awaited[queue]) event->waits[event->n_waits++] = device->awaited[queue]->event;
    if (after) event->waits[event->n_waits++] = after->event;
    return CLV_OK;
}

clv_status clv__ocl_aside_begin(clv__bdevice *device, clv__queue queue, clv__error *error,
                                clv__bevent **out) {
    stop_if_abandoned(device);
    clv__bevent *event = *out = event_take(device, queue);
    if (!event) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an event");
    event->aside = true;
    return CLV_OK;
}

const cl_event *clv__ocl_waits(const clv__bevent *event) {
    return event->n_waits ? event->waits : NULL; // OpenCL refuses an empty list that is not NULL
}

void clv__ocl_command_drop(clv__bevent *event) {
    clv__bdevice *device = event->device;
    pthread_mutex_lock(&device->event_lock);
    event_give_back(event);
    pthread_mutex_unlock(&device->event_lock);
}

clv_status clv__ocl_command_end(clv__bevent *event, const char *call, cl_int code, clv__bevent **wanted,
                                clv__error *error) {
    clv__bdevice *device = event->device;
    stop_if_abandoned(device);
    if (wanted) *wanted = NULL;
    if (code != CL_SUCCESS) {
        clv__ocl_command_drop(event);
        return clv__ocl_fail(error, device->label, call, code);
    }
    pthread_mutex_lock(&device->event_lock);
    event->call = call;
    event->number = ++device->n_enqueued;
    event->users = wanted ? 2 : 1;
    event->next = NULL;
    *device->pending_end = event;
    device->pending_end = &event->next;
    if (!event->aside) {
        device->last[event->queue] = event;
        clv__bevent *awaited = device->awaited[event->queue]; // from here on by way of this command
        device->awaited[event->queue] = NULL;
        if (awaited) event_drop(awaited);
    }
    if (++device->n_pending % MANY_PENDING == 0) ask_pending(device, UINT64_MAX);
    pthread_mutex_unlock(&device->event_lock);
    if (wanted) *wanted = event;
    return CLV_OK;
}

// ---- Transfers --------------------------------------------------------------------------------------------

/** No bytes: nothing is enqueued for them, and an event is reached when `after` is, too. */
static clv_status move_nothing(clv__bdevice *device, clv__queue queue, clv__bevent *after,
                               clv__bevent **event, clv__error *error) {
    if (!event) return CLV_OK;
    CLV_TRY(clv__ocl_wait_on_queue(device, queue, after, error));
    return clv__ocl_record(device, queue, event, error);
}

/** Between pointers: the host's, or a device's whose memory is had by them. */
static clv_status move(clv__bevent *command, void *to, const void *from, size_t bytes, clv__bevent **event,
                       clv__error *error) {
    cl_int code = clEnqueueSVMMemcpy(command->device->queue[command->queue], CL_FALSE, to, from, bytes,
                                     command->n_waits, clv__ocl_waits(command), &command->event);
    return clv__ocl_command_end(command, "clEnqueueSVMMemcpy", code, event, error);
}

clv_status clv__ocl_write(clv__bdevice *device, clv__queue queue, clv__bbuffer *to, size_t offset,
                          size_t bytes, const void *source, clv__bevent *after, clv__bevent **event,
                          clv__error *error) {
    if (event) *event = NULL;
    if (bytes == 0) return move_nothing(device, queue, after, event, error);
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, queue, after, error, &command));
    if (to->at) return move(command, to->at + offset, source, bytes, event, error);
    cl_int code = clEnqueueWriteBuffer(device->queue[queue], to->memory, CL_FALSE, offset, bytes, source,
                                       command->n_waits, clv__ocl_waits(command), &command->event);
    return clv__ocl_command_end(command, "clEnqueueWriteBuffer", code, event, error);
}

clv_status clv__ocl_read(clv__bdevice *device, clv__queue queue, clv__bbuffer *from, size_t offset,
                         size_t bytes, void *target, clv__bevent *after, clv__bevent **event,
                         clv__error *error) {
    if (event) *event = NULL;
    if (bytes == 0) return move_nothing(device, queue, after, event, error);
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, queue, after, error, &command));
    if (from->at) return move(command, target, from->at + offset, bytes, event, error);
    cl_int code = clEnqueueReadBuffer(device->queue[queue], from->memory, CL_FALSE, offset, bytes, target,
                                      command->n_waits, clv__ocl_waits(command), &command->event);
    return clv__ocl_command_end(command, "clEnqueueReadBuffer", code, event, error);
}

clv_status clv__ocl_copy(clv__bdevice *device, clv__bbuffer *from, size_t from_offset, clv__bbuffer *to,
                         size_t to_offset, size_t bytes, clv__error *error) {
    if (bytes == 0) return CLV_OK;
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, CLV__QUEUE_COMPUTE, NULL, error, &command));
    if (to->at) return move(command, to->at + to_offset, from->at + from_offset, bytes, NULL, error);
    cl_int code =
        clEnqueueCopyBuffer(device->queue[CLV__QUEUE_COMPUTE], from->memory, to->memory, from_offset,
                            to_offset, bytes, command->n_waits, clv__ocl_waits(command), &command->event);
    return clv__ocl_command_end(command, "clEnqueueCopyBuffer", code, NULL, error);
}

clv_status clv__ocl_fill(clv__bdevice *device, clv__bbuffer *to, size_t offset, size_t bytes,
                         uint32_t pattern, clv__error *error) {
    if (bytes == 0) return CLV_OK;
    const size_t unit = bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1; // the pattern repeats itself in elements
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, CLV__QUEUE_COMPUTE, NULL, error, &command));
    if (to->at) {
        cl_int filled =
            clEnqueueSVMMemFill(device->queue[CLV__QUEUE_COMPUTE], to->at + offset, &pattern, unit, bytes,
                                command->n_waits, clv__ocl_waits(command), &command->event);
        return clv__ocl_command_end(command, "clEnqueueSVMMemFill", filled, NULL, error);
    }
    cl_int code = clEnqueueFillBuffer(device->queue[CLV__QUEUE_COMPUTE], to->memory, &pattern, unit, offset,
                                      bytes, command->n_waits, clv__ocl_waits(command), &command->event);
    return clv__ocl_command_end(command, "clEnqueueFillBuffer", code, NULL, error);
}

// ---- Kernels ----------------------------------------------------------------------------------------------

clv_status clv__ocl_launch(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event,
                           clv__error *error) {
    if (event) *event = NULL;
    if (kernel->empty) return event ? clv__ocl_record(device, CLV__QUEUE_COMPUTE, event, error) : CLV_OK;
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, CLV__QUEUE_COMPUTE, NULL, error, &command));
    cl_int code = clEnqueueNDRangeKernel(device->queue[CLV__QUEUE_COMPUTE], kernel->kernel, kernel->dims,
                                         NULL, kernel->global, kernel->local_given ? kernel->local : NULL,
                                         command->n_waits, clv__ocl_waits(command), &command->event);
    clv_status status = clv__ocl_command_end(command, "clEnqueueNDRangeKernel", code, event, error);
    if (status != CLV_OK) clv__error_prefix(error, "kernel '%s': ", kernel->name);
    return status;
}

// ---- Order ------------------------------------------------------------------------------------------------

clv_status clv__ocl_wait_on_queue(clv__bdevice *device, clv__queue queue, clv__bevent *event,
                                  clv__error *error) {
    if (!event || event->queue == queue) return CLV_OK; // in order anyway
    CLV_TRY(clv__ocl_wait_now(device, queue, error));
    CLV__OCL_TRY(error, device->label, "clFlush", clFlush(device->queue[event->queue]));
    pthread_mutex_lock(&device->event_lock);
    event->users++;
    pthread_mutex_unlock(&device->event_lock);
    device->awaited[queue] = event;
    return CLV_OK;
}

clv_status clv__ocl_wait_now(clv__bdevice *device, clv__queue queue, clv__error *error) {
    if (!device->awaited[queue]) return CLV_OK;
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, queue, NULL, error, &command));
    cl_int code = clEnqueueBarrierWithWaitList(device->queue[queue], command->n_waits,
                                               clv__ocl_waits(command), &command->event);
    return clv__ocl_command_end(command, "clEnqueueBarrierWithWaitList", code, NULL, error);
}

/** The event of the queue's last command, which is reached when all before it is. NULL: that is known to be
 *  done; or events have times, and this one begins where the command does, a marker's where it ends. */
static clv__bevent *last_event(clv__bdevice *device, clv__queue queue) {
    pthread_mutex_lock(&device->event_lock);
    clv__bevent *last = device->timed ? NULL : device->last[queue];
    if (last) last->users++;
    pthread_mutex_unlock(&device->event_lock);
    return last;
}

clv_status clv__ocl_record(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error) {
    *event = NULL;
    CLV_TRY(clv__ocl_wait_now(device, queue, error));
    if ((*event = last_event(device, queue))) return CLV_OK;
    clv__bevent *command;
    CLV_TRY(clv__ocl_command_begin(device, queue, NULL, error, &command));
    cl_int code = clEnqueueMarkerWithWaitList(device->queue[queue], 0, NULL, &command->event);
    return clv__ocl_command_end(command, "clEnqueueMarkerWithWaitList", code, event, error);
}

// ---- Waiting ----------------------------------------------------------------------------------------------

static double timeout_of(const clv__bdevice *device) {
    return device->state->config->device_timeout;
}

/** A driver may hold locks of its own while it calls (rusticl 22.3 holds the event's): so this makes no call
 *  of it, and takes no lock that is held around one. */
static void CL_CALLBACK on_reached(cl_event event, cl_int status, void *user) {
    (void)event, (void)status; // how it went is asked of all events together
    clv__bevent *reached = user;
    clv__bdevice *device = reached->device;
    // all at once: whoever wakes up would hold the lock when the driver's thread wants it again
    pthread_mutex_lock(&device->reach_lock);
    reached->reached = true;
    atomic_fetch_sub(&reached->n_calls, 1); // from now on it may be another's
    device->n_calls--;
    pthread_cond_broadcast(&device->reached);
    pthread_mutex_unlock(&device->reach_lock);
}

/** Is it reached, well or not? */
static bool is_over(const clv__bevent *event) {
    cl_int status = CL_QUEUED;
    return clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL) ==
               CL_SUCCESS &&
           status <= CL_COMPLETE;
}

/** Ask until the event is reached, at first without a pause. As wait_until_reached. */
static cl_int poll(const clv__bevent *event, const char **call) {
    enum { BUSY_NS = 100000, PAUSE_NS = 20000, LONGEST_NS = 1000000000 };
    const double limit = timeout_of(event->device);
    uint64_t last = clv__nanoseconds(), spent = 0;
    while (clv__ocl_answers(event->device) && !(limit > 0 && (double)spent * 1e-9 > limit)) {
        cl_int status = CL_QUEUED;
        cl_int code =
            clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
        *call = "clGetEventInfo";
        if (code != CL_SUCCESS || status <= CL_COMPLETE) return code;
        if (spent < BUSY_NS)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
        const uint64_t now = clv__nanoseconds(), pause = now - last;
        spent += pause < LONGEST_NS ? pause : LONGEST_NS; // a process that was stopped uses up a second
        last = now;
    }
    *call = NULL;
    atomic_store(&event->device->silent, true);
    return CL_DEVICE_NOT_AVAILABLE;
}

/** A call for an event is to come, or is not after all. */
static void count_call(clv__bevent *event, int n) {
    pthread_mutex_lock(&event->device->reach_lock);
    event->device->n_calls += n;
    atomic_fetch_add(&event->n_calls, n);
    pthread_mutex_unlock(&event->device->reach_lock);
}

/** Wait until the event is reached; `call` is what failed. CL_DEVICE_NOT_AVAILABLE with "an answer": it was
 *  not in time. */
static cl_int wait_until_reached(clv__bevent *event, const char **call) {
    clv__bdevice *device = event->device;
    clv__patience patience = {.limit = timeout_of(device)};
    *call = "clFlush";
    if (!clv__ocl_answers(device)) {
        *call = NULL;
        return CL_DEVICE_NOT_AVAILABLE;
    }
    cl_int code = clFlush(device->queue[event->queue]);
    if (code != CL_SUCCESS) return code;
    if (device->polled) return poll(event, call);
    // A thread inside clWaitForEvents cannot be called back, so with an end to the wait the driver calls us.
    bool called = patience.limit > 0;
    if (called) {
        if (is_over(event)) return CL_SUCCESS; // Oclgrind is done with it by now, and does not call back then
        count_call(event, 1);
        called = clSetEventCallback(event->event, CL_COMPLETE, on_reached, event) == CL_SUCCESS;
        if (!called) count_call(event, -1);
    }
    if (called) {
        bool waits = true, over = false;
        while (waits && !over) {
            pthread_mutex_lock(&device->reach_lock);
            if (!event->reached) waits = clv__patience_wait(&patience, &device->reached, &device->reach_lock);
            over = event->reached;
            pthread_mutex_unlock(&device->reach_lock);
            if (!over) over = is_over(event); // a driver may forget to call
        }
        *call = NULL;
        if (!over) atomic_store(&device->silent, true);
        return over ? CL_SUCCESS : CL_DEVICE_NOT_AVAILABLE;
    }
    *call = "clWaitForEvents";
    code = clWaitForEvents(1, &event->event);
    // the event itself knows what went wrong; some drivers do not say so when waited for
    return code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST ? CL_SUCCESS : code;
}

static clv_status fail_to_wait(const clv__bdevice *device, const char *call, cl_int code, clv__error *error) {
    if (call) return clv__ocl_fail(error, device->label, call, code);
    CLV_FAIL(error, CLV_E_DEVICE_LOST, "'%s' has not answered for %g s (clv_runtime_config.device_timeout)",
             device->label, timeout_of(device));
}

/** What went wrong up to a command, as a sentence; the lock is held. */
static clv_status failure_until(const clv__bdevice *device, uint64_t number, clv__error *error) {
    if (device->failed.code == CL_SUCCESS || device->failed.number > number) return CLV_OK;
    clv_status status = clv__ocl_fail(error, device->label, device->failed.call, device->failed.code);
    clv__error_prefix(error, "a command failed while it ran: ");
    return status;
}

clv_status clv__ocl_event_wait(clv__bevent *event, clv__error *error) {
    clv__bdevice *device = event->device;
    const char *call;
    cl_int code = wait_until_reached(event, &call);
    if (code != CL_SUCCESS) return fail_to_wait(device, call, code, error);
    pthread_mutex_lock(&device->event_lock);
    ask_pending(device, event->number);
    clv_status status = failure_until(device, event->number, error);
    pthread_mutex_unlock(&device->event_lock);
    return status;
}

clv_status clv__ocl_elapsed(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error) {
    cl_ulong start = 0, end = 0;
    *start_ns = *end_ns = 0;
    if (!clv__ocl_answers(event->device)) return CLV_E_DEVICE_LOST;
    cl_int code =
        clGetEventProfilingInfo(event->event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    if (code == CL_SUCCESS)
        code = clGetEventProfilingInfo(event->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    CLV__OCL_TRY(error, event->device->label, "clGetEventProfilingInfo", code);
    *start_ns = start;
    *end_ns = end;
    return CLV_OK;
}

clv_status clv__ocl_flush(clv__bdevice *device, clv__error *error) {
    stop_if_abandoned(device);
    for (int q = 0; q < CLV__QUEUES; q++)
        CLV__OCL_TRY(error, device->label, "clFlush", clFlush(device->queue[q]));
    return CLV_OK;
}

/** Wait for all that is on a queue by an event at its end: rusticl 22.3 returns from clFinish before that,
 *  and clFinish tells no errors. */
static clv_status drain(clv__bdevice *device, clv__queue queue, clv__error *error) {
    clv__bevent *end;
    const char *call;
    CLV_TRY(clv__ocl_record(device, queue, &end, error));
    cl_int code = wait_until_reached(end, &call);
    clv__ocl_event_destroy(end);
    return code == CL_SUCCESS ? CLV_OK : fail_to_wait(device, call, code, error);
}

/** Where that fails: a marker without a flush, so that clFinish has something to wait for everywhere. False:
 *  it is not known to be done. */
static bool finish(clv__bdevice *device, clv__queue queue) {
    return clEnqueueMarkerWithWaitList(device->queue[queue], 0, NULL, NULL) == CL_SUCCESS &&
           clFinish(device->queue[queue]) == CL_SUCCESS;
}

clv_status clv__ocl_synchronize(clv__bdevice *device, clv__error *error) {
    // one queue may wait for the other; and one that fails is no reason not to wait for the other
    clv_status status = clv__ocl_flush(device, error);
    bool known = true;
    for (int q = 0; q < CLV__QUEUES; q++) {
        clv_status drained = drain(device, (clv__queue)q, status == CLV_OK ? error : NULL);
        if (drained == CLV_OK) continue;
        if (status == CLV_OK) status = drained;
        // who was silent for so long would be silent in clFinish for ever; one that told an error need not
        known &= clv__ocl_answers(device) && !clv__ocl_silent(device) && finish(device, (clv__queue)q);
    }
    pthread_mutex_lock(&device->event_lock);
    ask_pending(device, UINT64_MAX);
    if (known) device->unsure = false;
    device->still_runs = !known && (device->pending || device->unsure);
    // a command says how it went better than the wait for it
    clv_status failed = failure_until(device, UINT64_MAX, error);
    if (failed != CLV_OK) status = failed;
    device->failed.code = CL_SUCCESS;
    pthread_mutex_unlock(&device->event_lock);
    return status;
}

bool clv__ocl_still_runs(clv__bdevice *device) {
    return device->still_runs;
}
