// SPDX-License-Identifier: Apache-2.0
// Device memory. A part of a buffer is an OpenCL sub-buffer: kernels get a pointer to its start. Where
// sub-buffers do not work (quirks.c) a buffer is shared virtual memory, a part is a pointer into it, and
// the host reads and writes it by copies, as elsewhere. A device that computes in the host's memory gets
// buffers over memory of ours (CL_MEM_USE_HOST_PTR), so that another such device can be given a buffer over
// the same bytes. The pages are freed when the driver is done with the last buffer over them, so commands
// of a device that does not answer cannot write over memory of others. Staging is a buffer that the driver
// allocates where the device reaches it (CL_MEM_ALLOC_HOST_PTR), mapped once: the vendors' guides name no
// other way to memory that is pinned.
#include <stdlib.h>

#include "opencl.h"

// Loaders of OpenCL 1.2 do not have these.
#pragma weak clSVMAlloc
#pragma weak clSVMFree
#pragma weak clEnqueueSVMMemcpy
#pragma weak clEnqueueSVMMemFill
#pragma weak clSetKernelArgSVMPointer

bool clv__ocl_knows_pointers(void) {
    return clSVMAlloc && clSVMFree && clEnqueueSVMMemcpy && clEnqueueSVMMemFill && clSetKernelArgSVMPointer;
}

static clv_status wrap(clv__bdevice *device, cl_mem memory, size_t bytes, clv__pages *block, void *pointer,
                       clv__error *error, clv__bbuffer **out) {
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    if (!buffer) {
        clReleaseMemObject(memory);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    }
    *buffer = (clv__bbuffer){
        .device = device, .memory = memory, .bytes = bytes, .pointer = pointer, .block = block};
    *out = buffer;
    return CLV_OK;
}

/** Called when the last command that uses the buffer is done. */
static void CL_CALLBACK drop_block(cl_mem memory, void *block) {
    (void)memory;
    clv__pages_drop(block);
}

clv_status clv__ocl_buffer_over(clv__bdevice *device, clv__pages *block, void *pointer, size_t bytes,
                                clv__error *error, clv__bbuffer **out) {
    *out = NULL;
    cl_int code = CL_SUCCESS;
    cl_mem memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, pointer, &code);
    CLV__OCL_TRY(error, device->label, "clCreateBuffer", code);
    if (block) { // the OpenCL object is a user of the pages
        clv__pages_take(block);
        code = clSetMemObjectDestructorCallback(memory, drop_block, block);
        if (code != CL_SUCCESS) {
            clReleaseMemObject(memory);
            clv__pages_drop(block);
            return clv__ocl_fail(error, device->label, "clSetMemObjectDestructorCallback", code);
        }
    }
    return wrap(device, memory, bytes, block, pointer, error, out);
}

static clv_status create_in_host_memory(clv__bdevice *device, size_t bytes, clv__error *error,
                                        clv__bbuffer **out) {
    clv__pages *block = clv__pages_create(bytes);
    if (!block)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for %zu bytes of '%s'", bytes, device->label);
    clv_status status = clv__ocl_buffer_over(device, block, block->pointer, bytes, error, out);
    clv__pages_drop(block); // from now on it goes with the OpenCL object
    return status;
}

static clv_status wrap_pointer(clv__bdevice *device, char *at, size_t bytes, bool whole, clv__error *error,
                               clv__bbuffer **out) {
    clv__bbuffer *buffer = *out = clv__alloc(1, sizeof *buffer);
    if (!buffer) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    *buffer = (clv__bbuffer){.device = device, .bytes = bytes, .at = at, .whole = whole};
    return CLV_OK;
}

void clv__ocl_free_pointers(clv__bdevice *device, uint64_t below) {
    clv__bbuffer *unused = NULL;
    pthread_mutex_lock(&device->event_lock);
    for (clv__bbuffer **at = &device->dropped; *at;) {
        clv__bbuffer *buffer = *at;
        if (buffer->last_command >= below) {
            at = &buffer->next;
            continue;
        }
        *at = buffer->next;
        buffer->next = unused;
        unused = buffer;
    }
    pthread_mutex_unlock(&device->event_lock);
    while (unused) {
        clv__bbuffer *next = unused->next;
        clSVMFree(device->context, unused->at);
        free(unused);
        unused = next;
    }
}

/** clSVMFree waits for nothing. A buffer that commands may still touch stays until later ones are made or
 *  destroyed, or the device is closed. This may be any thread, so nothing is enqueued: what a queue waits for
 *  next and which command is its last are the worker's. */
static void drop_pointer(clv__bdevice *device, clv__bbuffer *buffer) {
    pthread_mutex_lock(&device->event_lock);
    buffer->last_command = device->n_enqueued;
    buffer->next = device->dropped;
    device->dropped = buffer;
    pthread_mutex_unlock(&device->event_lock);
    clv__ocl_free_pointers(device, clv__ocl_first_running(device));
}

static clv_status create_pointer(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    pthread_mutex_lock(&device->event_lock);
    const bool any_dropped = device->dropped;
    pthread_mutex_unlock(&device->event_lock);
    if (any_dropped) clv__ocl_free_pointers(device, clv__ocl_first_running(device));
    CLV_TRY(wrap_pointer(device, NULL, bytes, true, error, out));
    if (((*out)->at = clSVMAlloc(device->context, CL_MEM_READ_WRITE, bytes, 0))) return CLV_OK;
    free(*out);
    *out = NULL;
    return clv__ocl_fail(error, device->label, "clSVMAlloc", CL_MEM_OBJECT_ALLOCATION_FAILURE);
}

clv_status clv__ocl_buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    *out = NULL;
    if (device->pointers) return create_pointer(device, bytes, error, out);
    if (device->host_memory) return create_in_host_memory(device, bytes, error, out);
    cl_int code = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    CLV__OCL_TRY(error, device->label, "clCreateBuffer", code);
    return wrap(device, memory, bytes, NULL, NULL, error, out);
}

clv_status clv__ocl_buffer_part(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                                clv__bbuffer **out) {
    *out = NULL;
    if (bytes == 0 || offset > parent->bytes || bytes > parent->bytes - offset) // not every driver checks
        CLV_FAIL(error, CLV_E_INTERNAL, "a part at %zu of %zu bytes does not lie in a buffer of %zu", offset,
                 bytes, parent->bytes);
    if (parent->at) return wrap_pointer(parent->device, parent->at + offset, bytes, false, error, out);
    cl_int code = CL_SUCCESS;
    cl_buffer_region region = {offset, bytes};
    cl_mem memory =
        clCreateSubBuffer(parent->memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    CLV__OCL_TRY(error, parent->device->label, "clCreateSubBuffer", code);
    return wrap(parent->device, memory, bytes, parent->block,
                parent->pointer ? (char *)parent->pointer + offset : NULL, error, out);
}

void *clv__ocl_buffer_pointer(clv__bbuffer *buffer) {
    return buffer->pointer;
}

clv__pages *clv__ocl_buffer_block(clv__bbuffer *buffer) {
    return buffer->block;
}

void clv__ocl_buffer_destroy(clv__bbuffer *buffer) {
    if (!buffer) return;
    if (clv__ocl_answers(buffer->device)) {
        if (buffer->whole) {
            drop_pointer(buffer->device, buffer);
            return;
        }
        if (buffer->memory) clReleaseMemObject(buffer->memory);
    }
    free(buffer);
}

cl_int clv__ocl_buffer_arg(cl_kernel kernel, cl_uint index, const clv__bbuffer *buffer, const char **call) {
    if (buffer && buffer->at) {
        *call = "clSetKernelArgSVMPointer";
        return clSetKernelArgSVMPointer(kernel, index, buffer->at);
    }
    cl_mem memory = buffer ? buffer->memory : NULL;
    *call = "clSetKernelArg";
    return clSetKernelArg(kernel, index, sizeof memory, &memory);
}

// ---- Staging ----------------------------------------------------------------------------------------------

/** Where the driver put the buffer. The wait is one of ours, which ends where a device is silent. */
static clv_status map(clv__bdevice *device, cl_mem memory, size_t bytes, clv__error *error, void **pointer) {
    clv__bevent *mapped;
    CLV_TRY(clv__ocl_aside_begin(device, CLV__QUEUE_UPLOAD, error, &mapped));
    cl_int code = CL_SUCCESS;
    *pointer = clEnqueueMapBuffer(device->queue[CLV__QUEUE_UPLOAD], memory, CL_FALSE,
                                  CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL, &mapped->event, &code);
    CLV_TRY(clv__ocl_command_end(mapped, "clEnqueueMapBuffer", code, &mapped, error));
    clv_status status = clv__ocl_event_wait(mapped, error);
    clv__ocl_event_destroy(mapped);
    if (status == CLV_OK && !*pointer)
        status =
            clv__error_set(error, CLV_E_DEVICE, "clEnqueueMapBuffer on '%s' gave no memory", device->label);
    return status;
}

clv_status clv__ocl_staging_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out,
                                   void **pointer) {
    *out = NULL;
    *pointer = NULL;
    cl_int code = CL_SUCCESS;
    cl_mem memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
    CLV__OCL_TRY(error, device->label, "clCreateBuffer", code);
    clv_status status = map(device, memory, bytes, error, pointer);
    if (status != CLV_OK) {
        *pointer = NULL;
        if (clv__ocl_answers(device)) clReleaseMemObject(memory);
        return status;
    }
    return wrap(device, memory, bytes, NULL, *pointer, error, out);
}

void clv__ocl_staging_destroy(clv__bbuffer *staging) {
    if (!staging) return;
    const clv__bdevice *device = staging->device;
    if (clv__ocl_answers(device)) { // the driver frees it when it is done with the unmapping
        clEnqueueUnmapMemObject(device->queue[CLV__QUEUE_UPLOAD], staging->memory, staging->pointer, 0, NULL,
                                NULL);
        clFlush(device->queue[CLV__QUEUE_UPLOAD]);
        clReleaseMemObject(staging->memory);
    }
    free(staging);
}
