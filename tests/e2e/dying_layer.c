// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that makes a driver die: asking the platform of number CLV_TEST_DIE_AT for its devices
// ends the process. Without that variable asking for platforms does.
// Source: the cl_loader_layers extension of Khronos' ICD loader, version 1.0.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <stdlib.h>
#include <string.h>

static struct _cl_icd_dispatch ours;
static const struct _cl_icd_dispatch *theirs;

static CL_API_ENTRY cl_int CL_API_CALL get_device_ids(cl_platform_id platform, cl_device_type type,
                                                      cl_uint room, cl_device_id *devices, cl_uint *n) {
    cl_platform_id platforms[64];
    cl_uint n_platforms = 0, doomed = (cl_uint)atoi(getenv("CLV_TEST_DIE_AT"));
    theirs->clGetPlatformIDs(64, platforms, &n_platforms);
    if (doomed < n_platforms && platform == platforms[doomed]) abort();
    return theirs->clGetDeviceIDs(platform, type, room, devices, n);
}

static CL_API_ENTRY cl_int CL_API_CALL get_platform_ids(cl_uint room, cl_platform_id *platforms, cl_uint *n) {
    if (!getenv("CLV_TEST_DIE_AT")) abort();
    return theirs->clGetPlatformIDs(room, platforms, n);
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t bytes, void *value, size_t *size) {
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    if (name != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
    if (value && bytes >= sizeof version) memcpy(value, &version, sizeof version);
    if (size) *size = sizeof version;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint n, const struct _cl_icd_dispatch *target, cl_uint *n_ours,
                                            const struct _cl_icd_dispatch **out) {
    theirs = target;
    memcpy(&ours, target, n * sizeof(void *) < sizeof ours ? n * sizeof(void *) : sizeof ours);
    ours.clGetDeviceIDs = get_device_ids;
    ours.clGetPlatformIDs = get_platform_ids;
    *n_ours = (cl_uint)(sizeof ours / sizeof(void *));
    *out = &ours;
    return CL_SUCCESS;
}
