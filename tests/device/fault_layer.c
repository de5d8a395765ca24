// SPDX-License-Identifier: Apache-2.0
// An OpenCL layer (OPENCL_LAYERS) that makes one call fail and counts the objects that live: faults.c drives it through
// the functions at the end. The n-th call since fault_arm, of whatever function, is not made and returns the error.
#include <stdatomic.h>
#include <stdlib.h>

#include "device/layer.h"

static atomic_long calls, fail_at;
static atomic_int live, error_code;
static const char *_Atomic failed_call;

/** Is this the call that fails? */
static int fails(const char *name) {
    if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&fail_at)) return 0;
    atomic_store(&failed_call, name);
    return 1;
}

// A call that returns a code.
#define CODE(name, parameters, arguments)                                                                    \
    static cl_int CL_API_CALL my_##name parameters {                                                         \
        return fails(#name) ? atomic_load(&error_code) : below.name arguments;                               \
    }
// One that may also give an event, which then lives.
#define ENQUEUE(name, parameters, arguments)                                                                 \
    static cl_int CL_API_CALL my_##name parameters {                                                         \
        if (fails(#name)) return atomic_load(&error_code);                                                   \
        cl_int code = below.name arguments;                                                                  \
        if (code == CL_SUCCESS && event) atomic_fetch_add(&live, 1);                                         \
        return code;                                                                                         \
    }
// One that returns an object and a code.
#define CREATE(type, name, context, parameters, arguments)                                                   \
    static type CL_API_CALL my_##name parameters {                                                           \
        if (fails(#name)) {                                                                                  \
            if (code) *code = atomic_load(&error_code);                                                      \
            return NULL;                                                                                     \
        }                                                                                                    \
        type object = below.name arguments;                                                                  \
        if (object) atomic_fetch_add(&live, 1);                                                              \
        return object;                                                                                       \
    }
// Releasing never fails here: what would a program do about it?
#define RELEASE(type, name)                                                                                  \
    static cl_int CL_API_CALL my_##name(type object) {                                                       \
        atomic_fetch_sub(&live, 1);                                                                          \
        return below.name(object);                                                                           \
    }

CODE(clGetPlatformIDs, (cl_uint n, cl_platform_id *ids, cl_uint *count), (n, ids, count))
CODE(clGetPlatformInfo, (cl_platform_id p, cl_platform_info what, size_t n, void *out, size_t *size),
     (p, what, n, out, size))
CODE(clGetDeviceIDs, (cl_platform_id p, cl_device_type type, cl_uint n, cl_device_id *ids, cl_uint *count),
     (p, type, n, ids, count))
CODE(clGetDeviceInfo, (cl_device_id d, cl_device_info what, size_t n, void *out, size_t *size),
     (d, what, n, out, size))
CODE(clBuildProgram,
     (cl_program p, cl_uint n, const cl_device_id *ids, const char *options,
      void(CL_CALLBACK *done)(cl_program, void *), void *user),
     (p, n, ids, options, done, user))
CODE(clGetProgramBuildInfo,
     (cl_program p, cl_device_id d, cl_program_build_info what, size_t n, void *out, size_t *size),
     (p, d, what, n, out, size))
CODE(clGetProgramInfo, (cl_program p, cl_program_info what, size_t n, void *out, size_t *size),
     (p, what, n, out, size))
CODE(clSetKernelArg, (cl_kernel k, cl_uint i, size_t n, const void *value), (k, i, n, value))
CODE(clGetKernelWorkGroupInfo,
     (cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t n, void *out, size_t *size),
     (k, d, what, n, out, size))
CODE(clFlush, (cl_command_queue q), (q))
CODE(clFinish, (cl_command_queue q), (q))
CODE(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))
CODE(clGetEventInfo, (cl_event e, cl_event_info what, size_t n, void *out, size_t *size),
     (e, what, n, out, size))
CODE(clGetEventProfilingInfo, (cl_event e, cl_profiling_info what, size_t n, void *out, size_t *size),
     (e, what, n, out, size))

LAYER_ENQUEUES(ENQUEUE)
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue q, cl_kernel k, cl_uint dims, const size_t *offset, const size_t *global,
         const size_t *local, cl_uint n_list, const cl_event *list, cl_event *event),
        (q, k, dims, offset, global, local, n_list, list, event))

LAYER_CREATES(CREATE)
CREATE(cl_context, clCreateContext, NULL,
       (const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user, cl_int *code),
       (properties, n, ids, notify, user, code))
CREATE(cl_command_queue, clCreateCommandQueue, c,
       (cl_context c, cl_device_id d, cl_command_queue_properties properties, cl_int *code),
       (c, d, properties, code))
CREATE(cl_program, clCreateProgramWithBinary, c,
       (cl_context c, cl_uint n, const cl_device_id *ids, const size_t *sizes, const unsigned char **data,
        cl_int *status, cl_int *code),
       (c, n, ids, sizes, data, status, code))

static cl_int CL_API_CALL my_clCreateKernelsInProgram(cl_program p, cl_uint n, cl_kernel *kernels,
                                                      cl_uint *count) {
    if (fails("clCreateKernelsInProgram")) return atomic_load(&error_code);
    cl_uint made = 0;
    cl_int code = below.clCreateKernelsInProgram(p, n, kernels, &made);
    if (code == CL_SUCCESS && kernels) atomic_fetch_add(&live, (int)made);
    if (count) *count = made;
    return code;
}

// Sub-devices are not counted: on some drivers they are kept until the process ends (quirks.c).
CODE(clCreateSubDevices,
     (cl_device_id d, const cl_device_partition_property *how, cl_uint n, cl_device_id *ids, cl_uint *count),
     (d, how, n, ids, count))

CODE(clSetMemObjectDestructorCallback, (cl_mem m, void(CL_CALLBACK *call)(cl_mem, void *), void *user),
     (m, call, user))

RELEASE(cl_context, clReleaseContext)
RELEASE(cl_command_queue, clReleaseCommandQueue)
RELEASE(cl_mem, clReleaseMemObject)
RELEASE(cl_program, clReleaseProgram)
RELEASE(cl_kernel, clReleaseKernel)
RELEASE(cl_event, clReleaseEvent)

CL_API_ENTRY API cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t n, void *out, size_t *size) {
    return layer_info("clv fault layer", what, n, out, size);
}

CL_API_ENTRY API cl_int CL_API_CALL clInitLayer(cl_uint n, const struct _cl_icd_dispatch *target,
                                                cl_uint *n_out, const struct _cl_icd_dispatch **out) {
    layer_begin(n, target, n_out, out);
    LAYER_ENQUEUES(LAYER_TAKE)
    LAYER_CREATES(LAYER_TAKE_CREATE)
    LAYER_TAKE(clGetPlatformIDs)
    LAYER_TAKE(clGetPlatformInfo)
    LAYER_TAKE(clGetDeviceIDs)
    LAYER_TAKE(clGetDeviceInfo)
    LAYER_TAKE(clBuildProgram)
    LAYER_TAKE(clGetProgramBuildInfo)
    LAYER_TAKE(clGetProgramInfo)
    LAYER_TAKE(clSetKernelArg)
    LAYER_TAKE(clGetKernelWorkGroupInfo)
    LAYER_TAKE(clFlush)
    LAYER_TAKE(clFinish)
    LAYER_TAKE(clWaitForEvents)
    LAYER_TAKE(clGetEventInfo)
    LAYER_TAKE(clGetEventProfilingInfo)
    LAYER_TAKE(clEnqueueNDRangeKernel)
    LAYER_TAKE(clCreateContext)
    LAYER_TAKE(clCreateCommandQueue)
    LAYER_TAKE(clCreateProgramWithBinary)
    LAYER_TAKE(clCreateKernelsInProgram)
    LAYER_TAKE(clCreateSubDevices)
    LAYER_TAKE(clSetMemObjectDestructorCallback)
    LAYER_TAKE(clReleaseContext)
    LAYER_TAKE(clReleaseCommandQueue)
    LAYER_TAKE(clReleaseMemObject)
    LAYER_TAKE(clReleaseProgram)
    LAYER_TAKE(clReleaseKernel)
    LAYER_TAKE(clReleaseEvent)
    return CL_SUCCESS;
}

// ---- What faults.c calls; it opens this same library --------------------------------------------------------------

API void fault_arm(long n, int code);
API const char *fault_fired(void);
API long fault_calls(void);
API int fault_live(void);

/** Let the n-th call from now fail with `code`; 0 lets all pass. */
void fault_arm(long n, int code) {
    atomic_store(&failed_call, NULL);
    atomic_store(&error_code, code);
    atomic_store(&calls, 0);
    atomic_store(&fail_at, n);
}

/** The call that was made to fail, NULL if none was yet. */
const char *fault_fired(void) {
    return atomic_load(&failed_call);
}

long fault_calls(void) {
    return atomic_load(&calls);
}

/** Objects made and not yet released. */
int fault_live(void) {
    return atomic_load(&live);
}
