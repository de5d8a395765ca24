// SPDX-License-Identifier: Apache-2.0
// Two in-order queues of a device: compute and transfer. Nothing here waits but event_wait and synchronize.
// An event of one queue is flushed before the other queue waits for it: OpenCL promises progress only then.
#include <stdlib.h>

#include "opencl.h"

// ---- Events -----------------------------------------------------------------------------------------------

static clv__bevent *event_take(clv__bdevice *device, clv__queue queue) {
    pthread_mutex_lock(&device->event_lock);
    clv__bevent *event = device->free_events;
    if (event) device->free_events = event->next;
    pthread_mutex_unlock(&device->event_lock);
    if (!event) event = clv__alloc(1, sizeof *event);
    if (event) *event = (clv__bevent){.device = device, .queue = queue};
    return event;
}

static void event_give_back(clv__bevent *event) {
    clv__bdevice *device = event->device;
    pthread_mutex_lock(&device->event_lock);
    event->next = device->free_events;
    device->free_events = event;
    pthread_mutex_unlock(&device->event_lock);
}

void clv__ocl_event_destroy(clv__bevent *event) {
    if (!event) return;
    clReleaseEvent(event->event);
    event_give_back(event);
}

/** An event for the caller's `event`, before the enqueue so that a lack of memory leaves nothing enqueued. */
static clv_status event_prepare(clv__bdevice *device, clv__queue queue, clv__bevent **event,
                                clv__error *error) {
    if (!event) return CLV_OK;
    *event = event_take(device, queue);
    if (!*event) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an event");
    return CLV_OK;
}

/** After the enqueue: keep the event, or take it back if there is none. */
static clv_status event_finish(clv__bdevice *device, const char *call, cl_int code, clv__bevent **event,
                               clv__error *error) {
    if (code == CL_SUCCESS) return CLV_OK;
    if (event) {
        event_give_back(*event);
        *event = NULL;
    }
    return clv__ocl_fail(error, device->label, call, code);
}

/** The wait list for `after` on `queue`: its length, 0 or 1. */
static clv_status wait_list(clv__bdevice *device, clv__queue queue, const clv__bevent *after, cl_uint *n,
                            clv__error *error) {
    *n = 0;
    if (!after || after->queue == queue) return CLV_OK; // in order anyway
    CLV__OCL_TRY(error, device->label, "clFlush", clFlush(device->queue[after->queue]));
    *n = 1;
    return CLV_OK;
}

// ---- Transfers --------------------------------------------------------------------------------------------

clv_status clv__ocl_write(clv__bdevice *device, clv__queue queue, clv__bbuffer *to, size_t offset,
                          size_t bytes, const void *source, clv__bevent *after, clv__bevent **event,
                          clv__error *error) {
    if (event) *event = NULL;
    cl_uint n;
    CLV_TRY(wait_list(device, queue, after, &n, error));
    if (bytes == 0) return event ? clv__ocl_record(device, queue, event, error) : CLV_OK;
    CLV_TRY(event_prepare(device, queue, event, error));
    cl_int code = clEnqueueWriteBuffer(device->queue[queue], to->memory, CL_FALSE, offset, bytes, source, n,
                                       n ? &after->event : NULL, event ? &(*event)->event : NULL);
    return event_finish(device, "clEnqueueWriteBuffer", code, event, error);
}

clv_status clv__ocl_read(clv__bdevice *device, clv__queue queue, clv__bbuffer *from, size_t offset,
                         size_t bytes, void *target, clv__bevent *after, clv__bevent **event,
                         clv__error *error) {
    if (event) *event = NULL;
    cl_uint n;
    CLV_TRY(wait_list(device, queue, after, &n, error));
    if (bytes == 0) return event ? clv__ocl_record(device, queue, event, error) : CLV_OK;
    CLV_TRY(event_prepare(device, queue, event, error));
    cl_int code = clEnqueueReadBuffer(device->queue[queue], from->memory, CL_FALSE, offset, bytes, target, n,
                                      n ? &after->event : NULL, event ? &(*event)->event : NULL);
    return event_finish(device, "clEnqueueReadBuffer", code, event, error);
}

clv_status clv__ocl_copy(clv__bdevice *device, clv__bbuffer *from, size_t from_offset, clv__bbuffer *to,
                         size_t to_offset, size_t bytes, clv__error *error) {
    if (bytes == 0) return CLV_OK;
    cl_int code = clEnqueueCopyBuffer(device->queue[CLV__QUEUE_COMPUTE], from->memory, to->memory,
                                      from_offset, to_offset, bytes, 0, NULL, NULL);
    CLV__OCL_TRY(error, device->label, "clEnqueueCopyBuffer", code);
    return CLV_OK;
}

clv_status clv__ocl_fill(clv__bdevice *device, clv__bbuffer *to, size_t offset, size_t bytes,
                         uint32_t pattern, clv__error *error) {
    if (bytes == 0) return CLV_OK;
    size_t unit = bytes % sizeof pattern ? sizeof pattern / 2 : sizeof pattern;
    cl_int code = clEnqueueFillBuffer(device->queue[CLV__QUEUE_COMPUTE], to->memory, &pattern, unit, offset,
                                      bytes, 0, NULL, NULL);
    CLV__OCL_TRY(error, device->label, "clEnqueueFillBuffer", code);
    return CLV_OK;
}

// ---- Kernels ----------------------------------------------------------------------------------------------

clv_status clv__ocl_launch(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event,
                           clv__error *error) {
    if (event) *event = NULL;
    if (kernel->empty) return event ? clv__ocl_record(device, CLV__QUEUE_COMPUTE, event, error) : CLV_OK;
    CLV_TRY(event_prepare(device, CLV__QUEUE_COMPUTE, event, error));
    cl_int code = clEnqueueNDRangeKernel(device->queue[CLV__QUEUE_COMPUTE], kernel->kernel, kernel->dims,
                                         NULL, kernel->global, kernel->local_given ? kernel->local : NULL, 0,
                                         NULL, event ? &(*event)->event : NULL);
    clv_status status = event_finish(device, "clEnqueueNDRangeKernel", code, event, error);
    if (status != CLV_OK) clv__error_prefix(error, "kernel '%s': ", kernel->name);
    return status;
}

// ---- Order ------------------------------------------------------------------------------------------------

clv_status clv__ocl_wait_on_queue(clv__bdevice *device, clv__queue queue, clv__bevent *event,
                                  clv__error *error) {
    cl_uint n;
    CLV_TRY(wait_list(device, queue, event, &n, error));
    if (n == 0) return CLV_OK;
    cl_int code = clEnqueueBarrierWithWaitList(device->queue[queue], 1, &event->event, NULL);
    CLV__OCL_TRY(error, device->label, "clEnqueueBarrierWithWaitList", code);
    return CLV_OK;
}

clv_status clv__ocl_record(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error) {
    *event = NULL;
    CLV_TRY(event_prepare(device, queue, event, error));
    cl_int code = clEnqueueMarkerWithWaitList(device->queue[queue], 0, NULL, &(*event)->event);
    return event_finish(device, "clEnqueueMarkerWithWaitList", code, event, error);
}

clv_status clv__ocl_event_wait(clv__bevent *event, clv__error *error) {
    clv__bdevice *device = event->device;
    CLV__OCL_TRY(error, device->label, "clFlush", clFlush(device->queue[event->queue]));
    cl_int code = clWaitForEvents(1, &event->event);
    if (code != CL_SUCCESS && code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        return clv__ocl_fail(error, device->label, "clWaitForEvents", code);
    // The event itself knows what went wrong; some drivers do not say so when waited for.
    cl_int result = CL_COMPLETE;
    cl_int asked =
        clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof result, &result, NULL);
    CLV__OCL_TRY(error, device->label, "clGetEventInfo", asked);
    if (result < 0) return clv__ocl_fail(error, device->label, "running a command", result);
    CLV__OCL_TRY(error, device->label, "clWaitForEvents", code);
    return CLV_OK;
}

clv_status clv__ocl_elapsed(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error) {
    cl_ulong start = 0, end = 0;
    *start_ns = *end_ns = 0;
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
    for (int q = 0; q < CLV__QUEUES; q++)
        CLV__OCL_TRY(error, device->label, "clFlush", clFlush(device->queue[q]));
    return CLV_OK;
}

cl_int clv__ocl_finish(cl_command_queue queue, const char **call) {
    // rusticl 22.3 returns from clFinish at once when everything has been flushed before, finished or not: a
    // marker gives it something to wait for.
    cl_int marked = clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL), finished = clFinish(queue);
    *call = marked != CL_SUCCESS ? "clEnqueueMarkerWithWaitList" : "clFinish";
    return marked != CL_SUCCESS ? marked : finished;
}

clv_status clv__ocl_synchronize(clv__bdevice *device, clv__error *error) {
    // one queue may wait for the other; and one that fails is no reason not to wait for the other
    clv_status status = clv__ocl_flush(device, error);
    for (int q = 0; q < CLV__QUEUES; q++) {
        const char *call;
        cl_int code = clv__ocl_finish(device->queue[q], &call);
        if (code != CL_SUCCESS && status == CLV_OK) status = clv__ocl_fail(error, device->label, call, code);
    }
    return status;
}
