// SPDX-License-Identifier: Apache-2.0
// What a runtime says: its log, and the sentence of its last failure. Every file of the device layer may call
// this one, so it calls none of them.
#include <stdarg.h>

#include "base/log.h"
#include "device/device.h"

clv__error *clv__runtime_error_of(clv_runtime *runtime) {
    return runtime ? &runtime->error : NULL;
}

const char *clv_runtime_error(const clv_runtime *runtime) {
    if (!runtime) return "";
    clv_runtime *r = (clv_runtime *)(uintptr_t)runtime; // asking changes nothing that anybody sees
    return clv__error_text(&r->error);
}

void clv__log(clv_runtime *runtime, clv_log_level level, const char *format, ...) {
    va_list args;
    va_start(args, format);
    clv__log_write(runtime->config.log, runtime->config.log_user, level, format, args);
    va_end(args);
}

void clv__log_to(const clv_runtime_config *config, clv_log_level level, const char *format, ...) {
    va_list args;
    va_start(args, format);
    clv__log_write(config->log, config->log_user, level, format, args);
    va_end(args);
}
