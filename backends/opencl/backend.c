// SPDX-License-Identifier: Apache-2.0
// The table of verbs of the OpenCL backend, and what its errors are called.
#include "opencl.h"

static const struct {
    const char *name;
    cl_int code;
    clv_status status;
} errors[] = {
#define X(name, code, status) {#name, code, CLV_##status},
#include "errors.def"
#undef X
};

const char *clv__ocl_error_name(cl_int code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].code == code) return errors[i].name;
    }
    return "an unknown OpenCL error";
}

clv_status clv__ocl_error_status(cl_int code) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].code == code) return errors[i].status;
    }
    return CLV_E_DEVICE;
}

clv_status clv__ocl_fail(clv__error *error, const char *label, const char *call, cl_int code) {
    clv_status status = clv__ocl_error_status(code);
    const char *hint =
        status == CLV_E_DEVICE_MEMORY ? "; the driver is out of memory: a smaller batch needs less"
        : status == CLV_E_DEVICE_LOST ? "; the device is of no more use to this process: start again"
                                      : "";
    CLV_FAIL(error, status, "%s on '%s': %s (%d)%s", call, label, clv__ocl_error_name(code), (int)code, hint);
}

const clv__backend clv__backend_opencl = {
    .name = "opencl",
    .startup = clv__ocl_startup,
    .shutdown = clv__ocl_shutdown,
    .enumerate = clv__ocl_enumerate,
    .partition = clv__ocl_partition,
    .open = clv__ocl_open,
    .close = clv__ocl_close,
    .buffer_create = clv__ocl_buffer_create,
    .buffer_part = clv__ocl_buffer_part,
    .buffer_destroy = clv__ocl_buffer_destroy,
    .buffer_pointer = clv__ocl_buffer_pointer,
    .buffer_block = clv__ocl_buffer_block,
    .buffer_over = clv__ocl_buffer_over,
    .write = clv__ocl_write,
    .read = clv__ocl_read,
    .copy = clv__ocl_copy,
    .fill = clv__ocl_fill,
    .program_build = clv__ocl_program_build,
    .program_load = clv__ocl_program_load,
    .program_binary = clv__ocl_program_binary,
    .program_destroy = clv__ocl_program_destroy,
    .kernel_create = clv__ocl_kernel_create,
    .kernel_destroy = clv__ocl_kernel_destroy,
    .launch = clv__ocl_launch,
#ifdef CLEAVE_CLBLAST
    .gemm = clv__ocl_gemm,
#endif
    .wait_on_queue = clv__ocl_wait_on_queue,
    .record = clv__ocl_record,
    .event_wait = clv__ocl_event_wait,
    .elapsed = clv__ocl_elapsed,
    .event_destroy = clv__ocl_event_destroy,
    .flush = clv__ocl_flush,
    .synchronize = clv__ocl_synchronize,
    .still_runs = clv__ocl_still_runs,
    .silent = clv__ocl_silent,
    .abandon = clv__ocl_abandon,
};
