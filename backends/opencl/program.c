// SPDX-License-Identifier: Apache-2.0
// Programs from source and from binaries, and kernels with their arguments and grid, checked once so that a
// launch is only an enqueue.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum { LOG_BYTES = 1400 }; // of the compiler's log, in the sentence

static clv_status wrap(clv__bdevice *device, cl_program program, clv__error *error, clv__bprogram **out) {
    clv__bprogram *wrapped = clv__alloc(1, sizeof *wrapped);
    if (!wrapped) {
        clReleaseProgram(program);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a program");
    }
    *wrapped = (clv__bprogram){device, program};
    *out = wrapped;
    return CLV_OK;
}

/** The sentence of a failed build: the driver's error and the start of the compiler's log. */
static clv_status build_failed(clv__bdevice *device, cl_program program, cl_int code, clv__error *error) {
    clv_status status = clv__ocl_error_status(code);
    if (status != CLV_E_DEVICE_MEMORY && status != CLV_E_DEVICE_LOST) status = CLV_E_BUILD;
    size_t bytes = 0;
    char *log = NULL;
    if (clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) == CL_SUCCESS &&
        bytes > 1)
        log = clv__alloc(bytes + 1, 1);
    if (log &&
        clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) != CL_SUCCESS)
        *log = 0;
    clv__error_set(error, status, "clBuildProgram on '%s': %s (%d)%s%.*s", device->label,
                   clv__ocl_error_name(code), (int)code, log && *log ? "; the compiler says: " : "",
                   LOG_BYTES, log ? log : "");
    free(log);
    return status;
}

clv_status clv__ocl_program_build(clv__bdevice *device, const char *source, const char *options,
                                  clv__error *error, clv__bprogram **out) {
    *out = NULL;
    cl_int code = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    CLV__OCL_TRY(error, device->label, "clCreateProgramWithSource", code);
    code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        clv_status status = build_failed(device, program, code, error);
        clReleaseProgram(program);
        return status;
    }
    return wrap(device, program, error, out);
}

clv_status clv__ocl_program_load(clv__bdevice *device, const void *binary, size_t bytes, clv__error *error,
                                 clv__bprogram **out) {
    *out = NULL;
    cl_int code = CL_SUCCESS, loaded = CL_SUCCESS;
    const unsigned char *data = binary;
    cl_program program =
        clCreateProgramWithBinary(device->context, 1, &device->id, &bytes, &data, &loaded, &code);
    const char *call = "clCreateProgramWithBinary";
    if (code == CL_SUCCESS) code = loaded;
    if (code == CL_SUCCESS) {
        call = "clBuildProgram";
        code = clBuildProgram(program, 1, &device->id, NULL, NULL, NULL);
    }
    if (code != CL_SUCCESS) {
        if (program) clReleaseProgram(program);
        clv__ocl_fail(error, device->label, call, code);
        return CLV_E_BUILD; // whatever it was, building from source is the answer
    }
    return wrap(device, program, error, out);
}

clv_status clv__ocl_program_binary(clv__bprogram *program, void **binary, size_t *bytes, clv__error *error) {
    *binary = NULL;
    *bytes = 0;
    const char *label = program->device->label;
    // Some drivers compile only when a kernel is created, and would give a binary that holds nothing
    // compiled.
    cl_uint n = 0;
    cl_kernel *kernels = NULL;
    if (clCreateKernelsInProgram(program->program, 0, NULL, &n) == CL_SUCCESS && n > 0)
        kernels = calloc(n, sizeof *kernels);
    if (kernels && clCreateKernelsInProgram(program->program, n, kernels, NULL) == CL_SUCCESS) {
        for (cl_uint i = 0; i < n; i++) clReleaseKernel(kernels[i]);
    }
    free(kernels);
    size_t size = 0;
    CLV__OCL_TRY(error, label, "clGetProgramInfo",
                 clGetProgramInfo(program->program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL));
    if (size == 0) CLV_FAIL(error, CLV_E_UNSUPPORTED, "the driver of '%s' gives no binary", label);
    unsigned char *data = malloc(size);
    if (!data) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a program's binary");
    cl_int code = clGetProgramInfo(program->program, CL_PROGRAM_BINARIES, sizeof data, &data, NULL);
    if (code != CL_SUCCESS) {
        free(data);
        return clv__ocl_fail(error, label, "clGetProgramInfo", code);
    }
    *binary = data;
    *bytes = size;
    return CLV_OK;
}

void clv__ocl_program_destroy(clv__bprogram *program) {
    if (!program) return;
    if (clv__ocl_answers(program->device)) clReleaseProgram(program->program);
    free(program);
}

// ---- Kernels ----------------------------------------------------------------------------------------------

/** `call` is the one that was made. */
static cl_int set_arg(cl_kernel kernel, cl_uint i, const clv__barg *arg, const char **call) {
    *call = "clSetKernelArg";
    switch (arg->kind) {
    case CLV__BARG_BUFFER: return clv__ocl_buffer_arg(kernel, i, arg->buffer, call);
    case CLV__BARG_I32: return clSetKernelArg(kernel, i, sizeof arg->i32, &arg->i32);
    case CLV__BARG_F32: return clSetKernelArg(kernel, i, sizeof arg->f32, &arg->f32);
    case CLV__BARG_LOCAL: return clSetKernelArg(kernel, i, arg->bytes, NULL);
    }
    return CL_INVALID_ARG_VALUE;
}

/** Does the kernel allow the grid here? What the device says of itself may be more than one kernel gets. */
static clv_status check_grid(clv__bkernel *kernel, const clv__grid *grid, clv__error *error) {
    clv__bdevice *device = kernel->device;
    kernel->dims = (cl_uint)grid->dims;
    size_t given = 1;
    for (int d = 0; d < grid->dims; d++) {
        kernel->global[d] = grid->global[d];
        kernel->local[d] = grid->local[d];
        kernel->local_given |= grid->local[d] != 0;
        kernel->empty |= grid->global[d] == 0;
    }
    size_t fixed[3] = {0, 0, 0};
    cl_int code = clGetKernelWorkGroupInfo(kernel->kernel, device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                           sizeof fixed, fixed, NULL);
    if (code == CL_SUCCESS && fixed[0] && !kernel->local_given) { // reqd_work_group_size says it
        kernel->local_given = true;
        memcpy(kernel->local, fixed, sizeof fixed);
    }
    if (!kernel->local_given && device->max_group == 1) { // PoCL 3.1 asserts when it has to choose 1 itself
        kernel->local_given = true;
        for (int d = 0; d < 3; d++) kernel->local[d] = 1;
    }
    if (!kernel->local_given) return CLV_OK;
    for (int d = 0; d < grid->dims; d++) {
        given *= kernel->local[d];
        if (kernel->local[d] == 0 || kernel->global[d] % kernel->local[d] != 0)
            CLV_FAIL(error, CLV_E_INTERNAL,
                     "kernel '%s': %zu work-items do not fall into groups of %zu (dimension %d)",
                     kernel->name, kernel->global[d], kernel->local[d], d);
        if (device->max_items[d] && kernel->local[d] > device->max_items[d])
            CLV_FAIL(error, CLV_E_UNSUPPORTED,
                     "kernel '%s' wants groups of %zu in dimension %d, '%s' allows %zu", kernel->name,
                     kernel->local[d], d, device->label, device->max_items[d]);
    }
    size_t allowed = 0;
    CLV__OCL_TRY(error, device->label, "clGetKernelWorkGroupInfo",
                 clGetKernelWorkGroupInfo(kernel->kernel, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                          sizeof allowed, &allowed, NULL));
    for (int d = 0; grid->any_local && given > allowed && d < grid->dims; d++) {
        while (given > allowed && kernel->local[d] % 2 == 0) kernel->local[d] /= 2, given /= 2;
    }
    if (given > allowed && grid->any_local) { // as for kernels that say nothing of their groups
        kernel->local_given = false;
        return CLV_OK;
    }
    if (given > allowed)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "kernel '%s' wants groups of %zu work-items, '%s' allows it %zu",
                 kernel->name, given, device->label, allowed);
    return CLV_OK;
}

/** Local memory of the kernel's own arrays and of its arguments. */
static clv_status check_local_memory(const clv__bkernel *kernel, const clv__barg *args, int n_args,
                                     clv__error *error) {
    clv__bdevice *device = kernel->device;
    cl_ulong asked = 0, used = 0;
    for (int i = 0; i < n_args; i++) {
        if (args[i].kind == CLV__BARG_LOCAL) asked += args[i].bytes;
    }
    cl_int code = clGetKernelWorkGroupInfo(kernel->kernel, device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof used,
                                           &used, NULL);
    if (code != CL_SUCCESS || used < asked) used = asked; // not every driver counts arguments
    if (used > device->local_bytes)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "kernel '%s' wants %llu bytes of local memory, '%s' has %llu",
                 kernel->name, (unsigned long long)used, device->label,
                 (unsigned long long)device->local_bytes);
    return CLV_OK;
}

static clv_status set_up(clv__bkernel *kernel, const clv__barg *args, int n_args, const clv__grid *grid,
                         clv__error *error) {
    for (int i = 0; i < n_args; i++) {
        const char *call;
        cl_int code = set_arg(kernel->kernel, (cl_uint)i, &args[i], &call);
        if (code == CL_SUCCESS) continue;
        clv_status status = clv__ocl_fail(error, kernel->device->label, call, code);
        clv__error_prefix(error, "kernel '%s', argument %d: ", kernel->name, i);
        return status;
    }
    CLV_TRY(check_grid(kernel, grid, error));
    return check_local_memory(kernel, args, n_args, error);
}

clv_status clv__ocl_kernel_create(clv__bprogram *program, const char *name, const clv__barg *args, int n_args,
                                  const clv__grid *grid, clv__error *error, clv__bkernel **out) {
    *out = NULL;
    clv__bdevice *device = program->device;
    clv__bkernel *kernel = clv__alloc(1, sizeof *kernel);
    if (!kernel) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a kernel");
    kernel->device = device;
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    cl_int code = CL_SUCCESS;
    kernel->kernel = clCreateKernel(program->program, name, &code);
    clv_status status = CLV_OK;
    if (code != CL_SUCCESS) {
        kernel->kernel = NULL;
        status = clv__ocl_fail(error, device->label, "clCreateKernel", code);
        clv__error_prefix(error, "kernel '%s': ", name);
    } else {
        status = set_up(kernel, args, n_args, grid, error);
    }
    if (status != CLV_OK) {
        clv__ocl_kernel_destroy(kernel);
        return status;
    }
    *out = kernel;
    return CLV_OK;
}

void clv__ocl_kernel_destroy(clv__bkernel *kernel) {
    if (!kernel) return;
    if (!clv__ocl_answers(kernel->device)) { // a launch that hangs reads its grid
        clv__leave(kernel);
        return;
    }
    if (kernel->kernel) clReleaseKernel(kernel->kernel);
    free(kernel);
}
