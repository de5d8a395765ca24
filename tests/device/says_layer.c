// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) under which devices say something else of themselves than they do, CLV_TEST_SAYS from the
// environment, words between blanks:
//
//   embedded     an embedded profile, without 64-bit integers, with its smallest limits; programs that say long or ulong do not build
//   int64        with them
//   toward-zero  floats are rounded toward zero
//   finite       floats have no infinities and NaN
//   arguments    kernels take 256 bytes of arguments
//   names        device, platform, vendor and driver have names that would move a cursor, in 10,000 bytes
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/layer.h"

static int says(const char *word) {
    const char *all = getenv("CLV_TEST_SAYS");
    size_t n = strlen(word);
    for (const char *at = all ? all : ""; *at; at += *at != 0) {
        size_t length = strcspn(at, " ");
        if (length == n && !strncmp(at, word, n)) return 1;
        at += length;
    }
    return 0;
}

static cl_int answer(const void *value, size_t bytes, size_t room, void *out, size_t *size) {
    if (out && room < bytes) return CL_INVALID_VALUE;
    if (out) memcpy(out, value, bytes);
    if (size) *size = bytes;
    return CL_SUCCESS;
}

static cl_int hostile_name(size_t room, void *out, size_t *size) {
    static char name[10000];
    static const char piece[] = "\033]0;title\a\033[2J\r\n\x9b\xc2\x9b"
                                "31m\x7f<b>&\xff";
    for (size_t i = 0; i + sizeof piece < sizeof name; i += sizeof piece - 1)
        memcpy(name + i, piece, sizeof piece);
    return answer(name, strlen(name) + 1, room, out, size);
}

static cl_int CL_API_CALL my_clGetPlatformInfo(cl_platform_id platform, cl_platform_info what, size_t room,
                                               void *out, size_t *size) {
    if (says("names") && what == CL_PLATFORM_VENDOR) return hostile_name(room, out, size);
    return below.clGetPlatformInfo(platform, what, room, out, size);
}

static cl_int CL_API_CALL my_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *out,
                                             size_t *size) {
    if (says("names") && (what == CL_DEVICE_NAME || what == CL_DEVICE_VENDOR || what == CL_DRIVER_VERSION))
        return hostile_name(room, out, size);
    if (!says("embedded")) return below.clGetDeviceInfo(device, what, room, out, size);
    const cl_device_fp_config floats = says("toward-zero") ? CL_FP_ROUND_TO_ZERO | CL_FP_INF_NAN
                                       : says("finite")    ? CL_FP_ROUND_TO_NEAREST
                                                           : CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN;
    const size_t arguments = 256;
    const cl_ulong local = 16 << 10, largest = 16 << 20;
    const char profile[] = "EMBEDDED_PROFILE", *extensions = says("int64") ? "cles_khr_int64" : "cl_khr_icd";
    switch (what) {
    case CL_DEVICE_PROFILE: return answer(profile, sizeof profile, room, out, size);
    case CL_DEVICE_EXTENSIONS: return answer(extensions, strlen(extensions) + 1, room, out, size);
    case CL_DEVICE_SINGLE_FP_CONFIG: return answer(&floats, sizeof floats, room, out, size);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer(&local, sizeof local, room, out, size);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer(&largest, sizeof largest, room, out, size);
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        if (says("arguments")) return answer(&arguments, sizeof arguments, room, out, size);
        break;
    default: break;
    }
    return below.clGetDeviceInfo(device, what, room, out, size);
}

static cl_program CL_API_CALL my_clCreateProgramWithSource(cl_context context, cl_uint n, const char **texts,
                                                           const size_t *sizes, cl_int *code) {
    static const char none[] =
        "#define long no_64_bits\n#define ulong no_64_bits\n#define ulong8 no_64_bits\n"
        "#define long8 no_64_bits\n#define double no_64_bits\n";
    char *whole = NULL;
    if (says("embedded") && !says("int64") && n == 1 && (whole = malloc(sizeof none + strlen(texts[0])))) {
        memcpy(whole, none, sizeof none - 1);
        strcpy(whole + sizeof none - 1, texts[0]);
        const char *text = whole;
        cl_program program = below.clCreateProgramWithSource(context, 1, &text, NULL, code);
        free(whole);
        return program;
    }
    return below.clCreateProgramWithSource(context, n, texts, sizes, code);
}

CL_API_ENTRY API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *out, size_t *size) {
    return layer_info("clv says layer", what, n, out, size);
}

CL_API_ENTRY API cl_int CL_API_CALL clInitLayer(cl_uint n, const struct _cl_icd_dispatch *target,
                                                cl_uint *n_out, const struct _cl_icd_dispatch **out) {
    layer_begin(n, target, n_out, out);
    LAYER_TAKE(clGetPlatformInfo)
    LAYER_TAKE(clGetDeviceInfo)
    LAYER_TAKE(clCreateProgramWithSource)
    return CL_SUCCESS;
}
