// SPDX-License-Identifier: Apache-2.0
// Device memory. A part of a buffer is an OpenCL sub-buffer: kernels see a pointer to its start.
// A device that computes in the host's memory gets buffers over memory that is ours (CL_MEM_USE_HOST_PTR), so that we know
// where the bytes are and another such device can be given a buffer over the same.
#include <stdlib.h>

#include "opencl.h"

enum { PAGE = 4096 };

static clv_status wrap(clv__bdevice *device, cl_mem memory, size_t bytes, void *pointer, clv__error *error,
                       clv__bbuffer **out) {
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    if (!buffer) {
        clReleaseMemObject(memory);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    }
    *buffer = (clv__bbuffer){device, memory, bytes, pointer};
    *out = buffer;
    return CLV_OK;
}

clv_status clv__ocl_buffer_over(clv__bdevice *device, void *pointer, size_t bytes, clv__error *error,
                                clv__bbuffer **out) {
    *out = NULL;
    cl_int code = CL_SUCCESS;
    cl_mem memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, pointer, &code);
    CLV__OCL_TRY(error, device->label, "clCreateBuffer", code);
    return wrap(device, memory, bytes, pointer, error, out);
}

/** Called when the last command that uses the buffer is done. */
static void CL_CALLBACK free_pointer(cl_mem memory, void *pointer) {
    (void)memory;
    free(pointer);
}

static clv_status create_in_host_memory(clv__bdevice *device, size_t bytes, clv__error *error,
                                        clv__bbuffer **out) {
    void *pointer = aligned_alloc(PAGE, clv__size_align(bytes, PAGE));
    if (!pointer)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for %zu bytes of '%s'", bytes, device->label);
    cl_int code = CL_SUCCESS;
    cl_mem memory =
        clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, pointer, &code);
    if (code != CL_SUCCESS) {
        free(pointer);
        return clv__ocl_fail(error, device->label, "clCreateBuffer", code);
    }
    code = clSetMemObjectDestructorCallback(memory, free_pointer, pointer);
    if (code != CL_SUCCESS) {
        clReleaseMemObject(memory);
        free(pointer);
        return clv__ocl_fail(error, device->label, "clSetMemObjectDestructorCallback", code);
    }
    return wrap(device, memory, bytes, pointer, error, out);
}

clv_status clv__ocl_buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    *out = NULL;
    if (device->host_memory) return create_in_host_memory(device, bytes, error, out);
    cl_int code = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    CLV__OCL_TRY(error, device->label, "clCreateBuffer", code);
    return wrap(device, memory, bytes, NULL, error, out);
}

clv_status clv__ocl_buffer_part(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                                clv__bbuffer **out) {
    *out = NULL;
    if (bytes == 0 || offset > parent->bytes || bytes > parent->bytes - offset) // not every driver checks
        CLV_FAIL(error, CLV_E_INTERNAL, "a part at %zu of %zu bytes does not lie in a buffer of %zu", offset,
                 bytes, parent->bytes);
    cl_int code = CL_SUCCESS;
    cl_buffer_region region = {offset, bytes};
    cl_mem memory =
        clCreateSubBuffer(parent->memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    CLV__OCL_TRY(error, parent->device->label, "clCreateSubBuffer", code);
    return wrap(parent->device, memory, bytes, parent->pointer ? (char *)parent->pointer + offset : NULL,
                error, out);
}

void *clv__ocl_buffer_pointer(clv__bbuffer *buffer) {
    return buffer->pointer;
}

void clv__ocl_buffer_destroy(clv__bbuffer *buffer) {
    if (!buffer) return;
    clReleaseMemObject(buffer->memory);
    free(buffer);
}
