// SPDX-License-Identifier: Apache-2.0
// What OpenCL's errors are called, and the status that each becomes.
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
        : status == CLV_E_DEVICE_LOST ? "; this process cannot use the device any more: start again"
                                      : "";
    CLV_FAIL(error, status, "%s on '%s': %s (%d)%s", call, label, clv__ocl_error_name(code), (int)code, hint);
}
