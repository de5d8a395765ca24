// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) under which devices say something else of themselves than they do, CLV_TEST_SAYS from the
// environment, words between blanks:
//
//   embedded     an embedded profile, without 64-bit integers, with its smallest limits; programs that say long or ulong do not build
//   int64        with them
//   toward-zero  with floats that are rounded toward zero: on x86-64 each kernel begins with an instruction that makes it so
//   tiny         with groups of 12 work-items, 4 KiB of local memory, and 16 MiB of memory, 4 MiB in a piece; more is refused
//   finite       floats have no infinities and NaN
//   arguments    kernels take 256 bytes of arguments
//   nvidia       a card of NVIDIA's driver, whose sub-buffers do not work: there are none here
//   rusticl      a card of Mesa's driver
//   names        device, platform, vendor and driver have names that would move a cursor, in 10,000 bytes
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/layer.h"

enum { TINY_GROUP = 12, TINY_LOCAL = 4 << 10, TINY_LARGEST = 4 << 20, TINY_MEMORY = 16 << 20 };

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
    static const char nvidia[] = "NVIDIA CUDA", rusticl[] = "rusticl";
    if (says("names") && what == CL_PLATFORM_VENDOR) return hostile_name(room, out, size);
    if (says("nvidia") && what == CL_PLATFORM_NAME) return answer(nvidia, sizeof nvidia, room, out, size);
    if (says("rusticl") && what == CL_PLATFORM_NAME) return answer(rusticl, sizeof rusticl, room, out, size);
    return below.clGetPlatformInfo(platform, what, room, out, size);
}

static cl_int CL_API_CALL my_clGetDeviceInfo(cl_device_id device, cl_device_info what, size_t room, void *out,
                                             size_t *size) {
    if (says("names") && (what == CL_DEVICE_NAME || what == CL_DEVICE_VENDOR || what == CL_DRIVER_VERSION))
        return hostile_name(room, out, size);
    const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
    const cl_device_local_mem_type local_memory = CL_LOCAL;
    const cl_bool unified = CL_FALSE;
    const bool card = says("nvidia") || says("rusticl");
    if (card && what == CL_DEVICE_TYPE) return answer(&gpu, sizeof gpu, room, out, size);
    if (card && what == CL_DEVICE_LOCAL_MEM_TYPE)
        return answer(&local_memory, sizeof local_memory, room, out, size);
    if (card && what == CL_DEVICE_HOST_UNIFIED_MEMORY)
        return answer(&unified, sizeof unified, room, out, size);
    if (!says("embedded")) return below.clGetDeviceInfo(device, what, room, out, size);
    const cl_device_fp_config floats = says("toward-zero") ? CL_FP_ROUND_TO_ZERO | CL_FP_INF_NAN
                                       : says("finite")    ? CL_FP_ROUND_TO_NEAREST
                                                           : CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN;
    const size_t arguments = 256;
    const cl_ulong local = says("tiny") ? TINY_LOCAL : 16 << 10,
                   largest = says("tiny") ? TINY_LARGEST : 16 << 20;
    const cl_ulong memory = TINY_MEMORY;
    const size_t group = TINY_GROUP, groups[3] = {group, group, group};
    const char profile[] = "EMBEDDED_PROFILE", *extensions = says("int64") ? "cles_khr_int64" : "cl_khr_icd";
    switch (what) {
    case CL_DEVICE_PROFILE: return answer(profile, sizeof profile, room, out, size);
    case CL_DEVICE_EXTENSIONS: return answer(extensions, strlen(extensions) + 1, room, out, size);
    case CL_DEVICE_SINGLE_FP_CONFIG: return answer(&floats, sizeof floats, room, out, size);
    case CL_DEVICE_LOCAL_MEM_SIZE: return answer(&local, sizeof local, room, out, size);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return answer(&largest, sizeof largest, room, out, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        if (says("tiny")) return answer(&memory, sizeof memory, room, out, size);
        break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        if (says("tiny")) return answer(&group, sizeof group, room, out, size);
        break;
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        if (says("tiny")) return answer(groups, sizeof groups, room, out, size);
        break;
    case CL_DEVICE_MAX_PARAMETER_SIZE:
        if (says("arguments")) return answer(&arguments, sizeof arguments, room, out, size);
        break;
    default: break;
    }
    return below.clGetDeviceInfo(device, what, room, out, size);
}

/** The text with `first` before it and `begin` at the beginning of each kernel; malloc'd, NULL if memory is out. */
static char *with(const char *first, const char *begin, const char *text) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, "kernel void")); at++) n++;
    char *whole = malloc(strlen(first) + strlen(text) + n * strlen(begin) + 1), *to = whole;
    if (!whole) return NULL;
    to = stpcpy(to, first);
    for (const char *at = text, *kernel; *at;) {
        kernel = strstr(at, "kernel void");
        const char *body = kernel ? strchr(kernel, '{') : NULL;
        const size_t length = body ? (size_t)(body + 1 - at) : strlen(at);
        memcpy(to, at, length);
        to += length;
        at += length;
        *to = 0;
        if (body) to = stpcpy(to, begin);
    }
    return whole;
}

static cl_program CL_API_CALL my_clCreateProgramWithSource(cl_context context, cl_uint n, const char **texts,
                                                           const size_t *sizes, cl_int *code) {
    static const char none[] =
        "#define long no_64_bits\n#define ulong no_64_bits\n#define ulong8 no_64_bits\n"
        "#define long8 no_64_bits\n#define double no_64_bits\n";
#ifdef __x86_64__
    static const char round[] =
        " { uint mode = 0x7f80u; __asm__ volatile(\"ldmxcsr %0\" : : \"m\"(mode) : \"memory\"); } ";
#else
    static const char round[] = "";
#endif
    char *whole = says("embedded") && n == 1 && (!says("int64") || says("toward-zero"))
                      ? with(says("int64") ? "" : none, says("toward-zero") ? round : "", texts[0])
                      : NULL;
    if (!whole) return below.clCreateProgramWithSource(context, n, texts, sizes, code);
    const char *text = whole;
    cl_program program = below.clCreateProgramWithSource(context, 1, &text, NULL, code);
    free(whole);
    return program;
}

// ---- what a tiny device refuses ---------------------------------------------------------------------------------------

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t held; // bytes of buffers

static void CL_CALLBACK give_back(cl_mem memory, void *bytes) {
    pthread_mutex_lock(&lock);
    held -= (size_t)(uintptr_t)bytes;
    pthread_mutex_unlock(&lock);
}

static cl_mem CL_API_CALL my_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                            cl_int *code) {
    if (!says("tiny")) return below.clCreateBuffer(context, flags, bytes, host, code);
    pthread_mutex_lock(&lock);
    const int refused = bytes > TINY_LARGEST || held + bytes > TINY_MEMORY;
    if (!refused) held += bytes;
    pthread_mutex_unlock(&lock);
    cl_mem memory = refused ? NULL : below.clCreateBuffer(context, flags, bytes, host, code);
    if (refused && code)
        *code = bytes > TINY_LARGEST ? CL_INVALID_BUFFER_SIZE : CL_MEM_OBJECT_ALLOCATION_FAILURE;
    if (memory)
        below.clSetMemObjectDestructorCallback(memory, give_back, (void *)(uintptr_t)bytes);
    else if (!refused)
        give_back(NULL, (void *)(uintptr_t)bytes);
    return memory;
}

static cl_mem CL_API_CALL my_clCreateSubBuffer(cl_mem whole, cl_mem_flags flags, cl_buffer_create_type type,
                                               const void *region, cl_int *code) {
    if (!says("nvidia")) return below.clCreateSubBuffer(whole, flags, type, region, code);
    if (code) *code = CL_INVALID_OPERATION;
    return NULL;
}

static cl_int CL_API_CALL my_clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                      cl_kernel_work_group_info what, size_t room, void *out,
                                                      size_t *size) {
    const size_t group = TINY_GROUP;
    if (says("tiny") && what == CL_KERNEL_WORK_GROUP_SIZE)
        return answer(&group, sizeof group, room, out, size);
    return below.clGetKernelWorkGroupInfo(kernel, device, what, room, out, size);
}

static cl_int CL_API_CALL my_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                    const size_t *offset, const size_t *global,
                                                    const size_t *local, cl_uint n_list, const cl_event *list,
                                                    cl_event *event) {
    size_t group = 1;
    for (cl_uint d = 0; local && d < dims; d++) group *= local[d];
    if (says("tiny") && group > TINY_GROUP) return CL_INVALID_WORK_GROUP_SIZE;
    return below.clEnqueueNDRangeKernel(queue, kernel, dims, offset, global, local, n_list, list, event);
}

LAYER("clv says layer") {
    LAYER_TAKE(clGetPlatformInfo)
    LAYER_TAKE(clGetDeviceInfo)
    LAYER_TAKE(clCreateProgramWithSource)
    LAYER_TAKE(clCreateBuffer)
    LAYER_TAKE(clCreateSubBuffer)
    LAYER_TAKE(clGetKernelWorkGroupInfo)
    LAYER_TAKE(clEnqueueNDRangeKernel)
    return CL_SUCCESS;
}
