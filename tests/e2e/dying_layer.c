// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that makes a driver die: asking the platform of number CLV_TEST_DIE_AT for its devices
// ends the process. Without that variable asking for platforms does.
#include <stdlib.h>

#include "device/layer.h"

static cl_int CL_API_CALL my_clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint room,
                                            cl_device_id *devices, cl_uint *n) {
    cl_platform_id platforms[64];
    cl_uint n_platforms = 0, doomed = (cl_uint)atoi(getenv("CLV_TEST_DIE_AT"));
    below.clGetPlatformIDs(64, platforms, &n_platforms);
    if (doomed < n_platforms && platform == platforms[doomed]) abort();
    return below.clGetDeviceIDs(platform, type, room, devices, n);
}

static cl_int CL_API_CALL my_clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *n) {
    if (!getenv("CLV_TEST_DIE_AT")) abort();
    return below.clGetPlatformIDs(room, platforms, n);
}

CL_API_ENTRY API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *out, size_t *size) {
    return layer_info("clv dying layer", what, n, out, size);
}

CL_API_ENTRY API cl_int CL_API_CALL clInitLayer(cl_uint n, const struct _cl_icd_dispatch *target,
                                                cl_uint *n_out, const struct _cl_icd_dispatch **out) {
    layer_begin(n, target, n_out, out);
    LAYER_TAKE(clGetDeviceIDs)
    LAYER_TAKE(clGetPlatformIDs)
    return CL_SUCCESS;
}
