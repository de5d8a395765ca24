// SPDX-License-Identifier: Apache-2.0
// The OpenCL loader, opened when it is first called: for a library that must load where there is none
// (-DCLEAVE_OPENCL_DLOPEN=ON). Each function that the backend calls stands here under its own name, seen by
// this library alone, and passes its call on. Without a loader there is no platform.
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

static void *loader;

static void open_loader(void) {
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    for (int i = 0; !loader && i < 2; i++) loader = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
}

static void *function_of(_Atomic(void *) *kept, const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *found = atomic_load_explicit(kept, memory_order_acquire);
    if (found || pthread_once(&once, open_loader) || !loader) return found;
    found = dlsym(loader, name);
    atomic_store_explicit(kept, found, memory_order_release);
    return found;
}

// POSIX lets a pointer to data be one to a function.
#define FUNCTION(result, name, params)                                                                       \
    static _Atomic(void *) kept;                                                                             \
    result(CL_API_CALL *function) params;                                                                    \
    *(void **)&function = function_of(&kept, #name);
#define STATUS(name, params, args)                                                                           \
    cl_int CL_API_CALL name params {                                                                         \
        FUNCTION(cl_int, name, params)                                                                       \
        return function ? function args : CL_PLATFORM_NOT_FOUND_KHR;                                         \
    }
#define HANDLE(result, name, params, args)                                                                   \
    result CL_API_CALL name params {                                                                         \
        FUNCTION(result, name, params)                                                                       \
        return function ? function args : NULL;                                                              \
    }
#define NOTHING(name, params, args)                                                                          \
    void CL_API_CALL name params {                                                                           \
        FUNCTION(void, name, params)                                                                         \
        if (function) function args;                                                                         \
    }

STATUS(clBuildProgram,
       (cl_program program, cl_uint num_devices, const cl_device_id *device_list, const char *options,
        void (*pfn_notify)(cl_program program, void *user_data), void *user_data),
       (program, num_devices, device_list, options, pfn_notify, user_data))
HANDLE(cl_mem, clCreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t size, void *host_ptr, cl_int *errcode_ret),
       (context, flags, size, host_ptr, errcode_ret))
HANDLE(cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *errcode_ret),
       (context, device, properties, errcode_ret))
HANDLE(cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint num_devices, const cl_device_id *devices,
        void (*pfn_notify)(const char *errinfo, const void *private_info, size_t cb, void *user_data),
        void *user_data, cl_int *errcode_ret),
       (properties, num_devices, devices, pfn_notify, user_data, errcode_ret))
HANDLE(cl_kernel, clCreateKernel, (cl_program program, const char *kernel_name, cl_int *errcode_ret),
       (program, kernel_name, errcode_ret))
STATUS(clCreateKernelsInProgram,
       (cl_program program, cl_uint num_kernels, cl_kernel *kernels, cl_uint *num_kernels_ret),
       (program, num_kernels, kernels, num_kernels_ret))
HANDLE(cl_program, clCreateProgramWithBinary,
       (cl_context context, cl_uint num_devices, const cl_device_id *device_list, const size_t *lengths,
        const unsigned char **binaries, cl_int *binary_status, cl_int *errcode_ret),
       (context, num_devices, device_list, lengths, binaries, binary_status, errcode_ret))
HANDLE(cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **strings, const size_t *lengths, cl_int *errcode_ret),
       (context, count, strings, lengths, errcode_ret))
HANDLE(cl_mem, clCreateSubBuffer,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type buffer_create_type,
        const void *buffer_create_info, cl_int *errcode_ret),
       (buffer, flags, buffer_create_type, buffer_create_info, errcode_ret))
STATUS(clCreateSubDevices,
       (cl_device_id in_device, const cl_device_partition_property *properties, cl_uint num_devices,
        cl_device_id *out_devices, cl_uint *num_devices_ret),
       (in_device, properties, num_devices, out_devices, num_devices_ret))
STATUS(clEnqueueBarrierWithWaitList,
       (cl_command_queue command_queue, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
        cl_event *event),
       (command_queue, num_events_in_wait_list, event_wait_list, event))
STATUS(clEnqueueCopyBuffer,
       (cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer, size_t src_offset,
        size_t dst_offset, size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
        cl_event *event),
       (command_queue, src_buffer, dst_buffer, src_offset, dst_offset, size, num_events_in_wait_list,
        event_wait_list, event))
STATUS(clEnqueueFillBuffer,
       (cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size,
        size_t offset, size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
        cl_event *event),
       (command_queue, buffer, pattern, pattern_size, offset, size, num_events_in_wait_list, event_wait_list,
        event))
HANDLE(void *, clEnqueueMapBuffer,
       (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map, cl_map_flags map_flags,
        size_t offset, size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
        cl_event *event, cl_int *errcode_ret),
       (command_queue, buffer, blocking_map, map_flags, offset, size, num_events_in_wait_list,
        event_wait_list, event, errcode_ret))
STATUS(clEnqueueMarkerWithWaitList,
       (cl_command_queue command_queue, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
        cl_event *event),
       (command_queue, num_events_in_wait_list, event_wait_list, event))
STATUS(clEnqueueNDRangeKernel,
       (cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim, const size_t *global_work_offset,
        const size_t *global_work_size, const size_t *local_work_size, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event),
       (command_queue, kernel, work_dim, global_work_offset, global_work_size, local_work_size,
        num_events_in_wait_list, event_wait_list, event))
STATUS(clEnqueueReadBuffer,
       (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read, size_t offset, size_t size,
        void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
       (command_queue, buffer, blocking_read, offset, size, ptr, num_events_in_wait_list, event_wait_list,
        event))
STATUS(clEnqueueSVMMemFill,
       (cl_command_queue command_queue, void *svm_ptr, const void *pattern, size_t pattern_size, size_t size,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
       (command_queue, svm_ptr, pattern, pattern_size, size, num_events_in_wait_list, event_wait_list, event))
STATUS(clEnqueueSVMMemcpy,
       (cl_command_queue command_queue, cl_bool blocking_copy, void *dst_ptr, const void *src_ptr,
        size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
       (command_queue, blocking_copy, dst_ptr, src_ptr, size, num_events_in_wait_list, event_wait_list,
        event))
STATUS(clEnqueueUnmapMemObject,
       (cl_command_queue command_queue, cl_mem memobj, void *mapped_ptr, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event),
       (command_queue, memobj, mapped_ptr, num_events_in_wait_list, event_wait_list, event))
STATUS(clEnqueueWriteBuffer,
       (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_write, size_t offset, size_t size,
        const void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
       (command_queue, buffer, blocking_write, offset, size, ptr, num_events_in_wait_list, event_wait_list,
        event))
STATUS(clFinish, (cl_command_queue command_queue), (command_queue))
STATUS(clFlush, (cl_command_queue command_queue), (command_queue))
STATUS(clGetDeviceIDs,
       (cl_platform_id platform, cl_device_type device_type, cl_uint num_entries, cl_device_id *devices,
        cl_uint *num_devices),
       (platform, device_type, num_entries, devices, num_devices))
STATUS(clGetDeviceInfo,
       (cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value,
        size_t *param_value_size_ret),
       (device, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clGetEventInfo,
       (cl_event event, cl_event_info param_name, size_t param_value_size, void *param_value,
        size_t *param_value_size_ret),
       (event, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clGetEventProfilingInfo,
       (cl_event event, cl_profiling_info param_name, size_t param_value_size, void *param_value,
        size_t *param_value_size_ret),
       (event, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clGetKernelWorkGroupInfo,
       (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info param_name, size_t param_value_size,
        void *param_value, size_t *param_value_size_ret),
       (kernel, device, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clGetPlatformIDs, (cl_uint num_entries, cl_platform_id *platforms, cl_uint *num_platforms),
       (num_entries, platforms, num_platforms))
STATUS(clGetPlatformInfo,
       (cl_platform_id platform, cl_platform_info param_name, size_t param_value_size, void *param_value,
        size_t *param_value_size_ret),
       (platform, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clGetProgramBuildInfo,
       (cl_program program, cl_device_id device, cl_program_build_info param_name, size_t param_value_size,
        void *param_value, size_t *param_value_size_ret),
       (program, device, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clGetProgramInfo,
       (cl_program program, cl_program_info param_name, size_t param_value_size, void *param_value,
        size_t *param_value_size_ret),
       (program, param_name, param_value_size, param_value, param_value_size_ret))
STATUS(clReleaseCommandQueue, (cl_command_queue command_queue), (command_queue))
STATUS(clReleaseContext, (cl_context context), (context))
STATUS(clReleaseDevice, (cl_device_id device), (device))
STATUS(clReleaseEvent, (cl_event event), (event))
STATUS(clReleaseKernel, (cl_kernel kernel), (kernel))
STATUS(clReleaseMemObject, (cl_mem memobj), (memobj))
STATUS(clReleaseProgram, (cl_program program), (program))
HANDLE(void *, clSVMAlloc, (cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment),
       (context, flags, size, alignment))
NOTHING(clSVMFree, (cl_context context, void *svm_pointer), (context, svm_pointer))
STATUS(clSetEventCallback,
       (cl_event event, cl_int command_exec_callback_type,
        void (*pfn_notify)(cl_event event, cl_int event_command_status, void *user_data), void *user_data),
       (event, command_exec_callback_type, pfn_notify, user_data))
STATUS(clSetKernelArg, (cl_kernel kernel, cl_uint arg_index, size_t arg_size, const void *arg_value),
       (kernel, arg_index, arg_size, arg_value))
STATUS(clSetKernelArgSVMPointer, (cl_kernel kernel, cl_uint arg_index, const void *arg_value),
       (kernel, arg_index, arg_value))
STATUS(clSetMemObjectDestructorCallback,
       (cl_mem memobj, void (*pfn_notify)(cl_mem memobj, void *user_data), void *user_data),
       (memobj, pfn_notify, user_data))
STATUS(clWaitForEvents, (cl_uint num_events, const cl_event *event_list), (num_events, event_list))
