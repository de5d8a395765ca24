// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
} statuses[] = {
#define X(name, text) {#name, text},
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
}

void clv__error_destroy(clv__error *error) {
    if (error) pthread_mutex_destroy(&error->lock);
}

clv_status clv__error_set(clv__error *error, clv_status status, const char *format, ...) {
    if (!error) return status;
    char text[CLV__ERROR_BYTES]; // the arguments may point into error->text
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&error->lock);
    error->status = status;
    memcpy(error->text, text, sizeof text);
    pthread_mutex_unlock(&error->lock);
    return status;
}

void clv__error_read(clv__error *error, char out[CLV__ERROR_BYTES]) {
    pthread_mutex_lock(&error->lock);
    memcpy(out, error->text, sizeof error->text);
    pthread_mutex_unlock(&error->lock);
}

clv_status clv__error_prefix(clv__error *error, const char *format, ...) {
    if (!error) return CLV_E_INTERNAL;
    char text[CLV__ERROR_BYTES];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&error->lock);
    if (n >= 0 && (size_t)n < sizeof text) snprintf(text + n, sizeof text - (size_t)n, "%s", error->text);
    memcpy(error->text, text, sizeof text);
    clv_status status = error->status;
    pthread_mutex_unlock(&error->lock);
    return status;
}
