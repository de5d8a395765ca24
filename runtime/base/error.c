// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/shown.h"
#include "cleave/runtime.h"

clv_status_info clv_status_info_get(clv_status status) {
    static const clv_status_info all[] = {
#define X(name, number, text) [number] = {#name, text},
#include "cleave/status.def"
#undef X
    };
    const bool known = (int)status >= 0 && (size_t)status < sizeof all / sizeof *all;
    return known ? all[status] : (clv_status_info){"E_UNKNOWN", "not a Cleave status"};
}

/** What one thread knows of failures. */
struct clv__thread_error {
    clv__error *error;
    struct clv__thread_error *next;
    clv_status status; // OK: it had none
    char text[CLV__ERROR_BYTES];
    char told[CLV__ERROR_BYTES]; // what was handed out
};

void clv__error_init(clv__error *error) {
    memset(error, 0, sizeof *error);
    pthread_mutex_init(&error->lock, NULL);
    error->process = error->lock_made = getpid();
}

static void take_lock(clv__error *error);

/** A thread ends. */
static void drop(void *ending) {
    struct clv__thread_error *own = ending, **at = &own->error->sentences;
    take_lock(own->error);
    while (*at && *at != own) at = &(*at)->next;
    if (*at) *at = own->next;
    pthread_mutex_unlock(&own->error->lock);
    free(own);
}

void clv__error_init_by_thread(clv__error *error) {
    clv__error_init(error);
    error->by_thread = pthread_key_create(&error->key, drop) == 0;
}

void clv__error_destroy(clv__error *error) {
    if (!error) return;
    if (error->by_thread) pthread_key_delete(error->key);
    for (struct clv__thread_error *own = error->sentences, *next; own; own = next) {
        next = own->next;
        free(own);
    }
    pthread_mutex_destroy(&error->lock);
}

/** This thread's own, made when it is first wanted; NULL: there is none, or no memory for it. The lock is
 *  held. */
static struct clv__thread_error *own_of(clv__error *error) {
    if (!error->by_thread) return NULL;
    struct clv__thread_error *own = pthread_getspecific(error->key);
    if (own) return own;
    own = calloc(1, sizeof *own);
    if (!own) return NULL;
    own->error = error;
    if (pthread_setspecific(error->key, own) != 0) {
        free(own);
        return NULL;
    }
    own->next = error->sentences;
    error->sentences = own;
    return own;
}

/** The sentence that this thread is to be told. The lock is held. */
static const char *text_for(const clv__error *error, const struct clv__thread_error *own) {
    return own && own->status != CLV_OK ? own->text : error->text;
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

/** The lock is held. */
static void keep(clv__error *error, clv_status status, const char *text) {
    struct clv__thread_error *own = own_of(error);
    error->status = status;
    snprintf(error->text, sizeof error->text, "%s", text);
    if (!own) return;
    own->status = status;
    memcpy(own->text, error->text, sizeof own->text);
}

clv_status clv__error_set(clv__error *error, clv_status status, const char *format, ...) {
    if (!error) return status;
    char text[CLV__ERROR_BYTES]; // the arguments may point into error->text
    va_list args;
    va_start(args, format);
    clv__format_shown(text, sizeof text, CLV__SHOWN_NAMES, format, args);
    va_end(args);
    take_lock(error);
    keep(error, status, text);
    pthread_mutex_unlock(&error->lock);
    return status;
}

void clv__error_read(clv__error *error, char out[CLV__ERROR_BYTES]) {
    *out = 0;
    if (!error) return;
    take_lock(error);
    memcpy(out, text_for(error, own_of(error)), CLV__ERROR_BYTES);
    pthread_mutex_unlock(&error->lock);
}

const char *clv__error_text(clv__error *error) {
    take_lock(error);
    struct clv__thread_error *own = own_of(error);
    if (own) memcpy(own->told, text_for(error, own), sizeof own->told);
    pthread_mutex_unlock(&error->lock);
    return own ? own->told : error->text;
}

void clv__error_forget(clv__error *error) {
    take_lock(error);
    keep(error, CLV_OK, "");
    pthread_mutex_unlock(&error->lock);
}

clv_status clv__error_prefix(clv__error *error, const char *format, ...) {
    if (!error) return CLV_E_INTERNAL;
    char text[CLV__ERROR_BYTES];
    va_list args;
    va_start(args, format);
    int n = clv__format_shown(text, sizeof text, CLV__SHOWN_NAMES, format, args);
    va_end(args);
    take_lock(error);
    const struct clv__thread_error *own = own_of(error);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, "%s", text_for(error, own));
    clv_status status = own && own->status != CLV_OK ? own->status : error->status;
    keep(error, status, text);
    pthread_mutex_unlock(&error->lock);
    return status;
}
