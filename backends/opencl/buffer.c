// SPDX-License-Identifier: Apache-2.0
// Device memory. A part of a buffer is an OpenCL sub-buffer: kernels see a pointer to its start.
#include <stdlib.h>

#include "opencl.h"

static clv_status wrap(clv__bdevice *device, cl_mem memory, size_t bytes, clv__error *error,
                       clv__bbuffer **out) {
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    if (!buffer) {
        clReleaseMemObject(memory);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    }
    *buffer = (clv__bbuffer){device, memory, bytes};
    *out = buffer;
    return CLV_OK;
}

clv_status clv__ocl_buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    *out = NULL;
    cl_int code = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    CLV__OCL_TRY(error, device->label, "clCreateBuffer", code);
    return wrap(device, memory, bytes, error, out);
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
    return wrap(parent->device, memory, bytes, error, out);
}

void clv__ocl_buffer_destroy(clv__bbuffer *buffer) {
    if (!buffer) return;
    clReleaseMemObject(buffer->memory);
    free(buffer);
}
