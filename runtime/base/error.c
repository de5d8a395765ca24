// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cleave/runtime.h"

static const struct {
    const char *name, *text;
} statuses[] = {
#define X(name, number, text) [number] = {#name, text},
#include "cleave/status.def"
#undef X
};

static bool known(clv_status status) {
    return (int)status >= 0 && (size_t)status < sizeof statuses / sizeof *statuses;
}

const char *clv_status_name(clv_status status) {
    return known(status) ? statuses[status].name : "E_UNKNOWN";
}

const char *clv_status_text(clv_status status) {
    return known(status) ? statuses[status].text : "not a Cleave status";
}

void clv__error_init(clv__error *error) {
    memset(error, 0, sizeof *error);
    pthread_mutex_init(&error->lock, NULL);
    error->process = error->lock_made = getpid();
}

void clv__error_destroy(clv__error *error) {
    if (error) pthread_mutex_destroy(&error->lock);
}

static void take_lock(clv__error *error) {
    pid_t here = getpid();
    if (error->lock_made != here) {
        pthread_mutex_init(&error->lock, NULL);
        error->lock_made = here;
    }
    pthread_mutex_lock(&error->lock);
}

bool clv__error_at_home(const clv__error *error) {
    return !error || error->process == getpid();
}

clv_status clv__given(clv__error *error, const char *function, const char *name, const void *pointer) {
    if (pointer) return CLV_OK;
    return clv__error_set(error, CLV_E_VALUE, "%s: %s is NULL", function, name);
}

clv_status clv__usable(clv__error *error, const char *function, const char *name, const void *pointer) {
    if (clv__error_at_home(error)) return clv__given(error, function, name, pointer);
    return clv__error_set(
        error, CLV_E_STATE,
        "%s: the runtime was made by process %ld, and this is a fork of it (%ld), without its "
        "threads and drivers; make a runtime after the fork",
        function, (long)error->process, (long)getpid());
}

clv_status clv__error_set(clv__error *error, clv_status status, const char *format, ...) {
    if (!error) return status;
    char text[CLV__ERROR_BYTES]; // the arguments may point into error->text
    va_list args;
    va_start(args, format);
    clv_format_shown(text, sizeof text, CLV_SHOWN_NAMES, format, args);
    va_end(args);
    take_lock(error);
    error->status = status;
    memcpy(error->text, text, sizeof text);
    pthread_mutex_unlock(&error->lock);
    return status;
}

void clv__error_read(clv__error *error, char out[CLV__ERROR_BYTES]) {
    take_lock(error);
    memcpy(out, error->text, sizeof error->text);
    pthread_mutex_unlock(&error->lock);
}

clv_status clv__error_prefix(clv__error *error, const char *format, ...) {
    if (!error) return CLV_E_INTERNAL;
    char text[CLV__ERROR_BYTES];
    va_list args;
    va_start(args, format);
    int n = clv_format_shown(text, sizeof text, CLV_SHOWN_NAMES, format, args);
    va_end(args);
    take_lock(error);
    if (n >= 0 && (size_t)n < sizeof text) snprintf(text + n, sizeof text - (size_t)n, "%s", error->text);
    memcpy(error->text, text, sizeof text);
    clv_status status = error->status;
    pthread_mutex_unlock(&error->lock);
    return status;
}
