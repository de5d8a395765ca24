// SPDX-License-Identifier: Apache-2.0
// The frame of an OpenCL layer (OPENCL_LAYERS), a module between a program and its drivers: what it says of itself, the table of
// what lies below, and ours above it, which begins as a copy. A layer defines my_NAME for each call that it takes and puts it
// into the table with LAYER_TAKE.
// Source: the cl_loader_layers extension of Khronos' ICD loader, version 1.0.
#ifndef CLV_TESTS_DEVICE_LAYER_H
#define CLV_TESTS_DEVICE_LAYER_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <string.h>

#define API __attribute__((visibility("default")))

static struct _cl_icd_dispatch below, above;

#define LAYER_TAKE(name, ...) above.name = my_##name;

/** Enqueueing calls but that of kernels, X(name, parameters, arguments): q is the queue, event where one is given. */
#define LAYER_ENQUEUES(X)                                                                                    \
    X(clEnqueueWriteBuffer,                                                                                  \
      (cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t n, const void *from, cl_uint n_list,    \
       const cl_event *list, cl_event *event),                                                               \
      (q, m, wait, at, n, from, n_list, list, event))                                                        \
    X(clEnqueueReadBuffer,                                                                                   \
      (cl_command_queue q, cl_mem m, cl_bool wait, size_t at, size_t n, void *to, cl_uint n_list,            \
       const cl_event *list, cl_event *event),                                                               \
      (q, m, wait, at, n, to, n_list, list, event))                                                          \
    X(clEnqueueCopyBuffer,                                                                                   \
      (cl_command_queue q, cl_mem a, cl_mem b, size_t at_a, size_t at_b, size_t n, cl_uint n_list,           \
       const cl_event *list, cl_event *event),                                                               \
      (q, a, b, at_a, at_b, n, n_list, list, event))                                                         \
    X(clEnqueueFillBuffer,                                                                                   \
      (cl_command_queue q, cl_mem m, const void *pattern, size_t pattern_n, size_t at, size_t n,             \
       cl_uint n_list, const cl_event *list, cl_event *event),                                               \
      (q, m, pattern, pattern_n, at, n, n_list, list, event))                                                \
    X(clEnqueueSVMMemcpy,                                                                                    \
      (cl_command_queue q, cl_bool wait, void *to, const void *from, size_t n, cl_uint n_list,               \
       const cl_event *list, cl_event *event),                                                               \
      (q, wait, to, from, n, n_list, list, event))                                                           \
    X(clEnqueueSVMMemFill,                                                                                   \
      (cl_command_queue q, void *to, const void *pattern, size_t pattern_n, size_t n, cl_uint n_list,        \
       const cl_event *list, cl_event *event),                                                               \
      (q, to, pattern, pattern_n, n, n_list, list, event))                                                   \
    X(clEnqueueMarkerWithWaitList,                                                                           \
      (cl_command_queue q, cl_uint n_list, const cl_event *list, cl_event *event), (q, n_list, list, event)) \
    X(clEnqueueBarrierWithWaitList,                                                                          \
      (cl_command_queue q, cl_uint n_list, const cl_event *list, cl_event *event), (q, n_list, list, event))

/** Calls that make an object of a context or a program, X(type, name, context, parameters, arguments). */
#define LAYER_CREATES(X)                                                                                     \
    X(cl_mem, clCreateBuffer, c, (cl_context c, cl_mem_flags flags, size_t n, void *host, cl_int *code),     \
      (c, flags, n, host, code))                                                                             \
    X(cl_mem, clCreateSubBuffer, of_memory(m),                                                               \
      (cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *code),            \
      (m, flags, type, info, code))                                                                          \
    X(cl_program, clCreateProgramWithSource, c,                                                              \
      (cl_context c, cl_uint n, const char **texts, const size_t *sizes, cl_int *code),                      \
      (c, n, texts, sizes, code))                                                                            \
    X(cl_kernel, clCreateKernel, of_program(p), (cl_program p, const char *name, cl_int *code),              \
      (p, name, code))
#define LAYER_TAKE_CREATE(type, name, ...) LAYER_TAKE(name)

static inline cl_int layer_info(const char *name, cl_layer_info what, size_t n, void *out, size_t *size) {
    const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *value = what == CL_LAYER_API_VERSION ? (const void *)&version : name;
    size_t bytes = what == CL_LAYER_API_VERSION ? sizeof version : strlen(name) + 1;
    if (what != CL_LAYER_API_VERSION && what != CL_LAYER_NAME) return CL_INVALID_VALUE;
    if (out && n < bytes) return CL_INVALID_VALUE;
    if (out) memcpy(out, value, bytes);
    if (size) *size = bytes;
    return CL_SUCCESS;
}

/** What lies below has n entries, ours is handed out with as many. */
static inline void layer_begin(cl_uint n, const struct _cl_icd_dispatch *target, cl_uint *n_out,
                               const struct _cl_icd_dispatch **out) {
    size_t bytes = n * sizeof(void *);
    memcpy(&below, target, bytes < sizeof below ? bytes : sizeof below);
    above = below;
    *n_out = n;
    *out = &above;
}

/** A layer of that name. The body takes what it stands before: `LAYER("name") { LAYER_TAKE(clFinish) return CL_SUCCESS; }` */
#define LAYER(name)                                                                                          \
    static cl_int layer_take(void);                                                                          \
    CL_API_ENTRY API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *out,              \
                                                       size_t *size) {                                       \
        return layer_info(name, what, n, out, size);                                                         \
    }                                                                                                        \
    CL_API_ENTRY API cl_int CL_API_CALL clInitLayer(cl_uint n, const struct _cl_icd_dispatch *target,        \
                                                    cl_uint *n_out, const struct _cl_icd_dispatch **out) {   \
        layer_begin(n, target, n_out, out);                                                                  \
        return layer_take();                                                                                 \
    }                                                                                                        \
    static cl_int layer_take(void)

#endif
