// SPDX-License-Identifier: Apache-2.0
// The sentence behind a status. One clv__error lives in each runtime; whoever fails writes into it. There
// each thread has a sentence of its own, which failures of other threads leave alone; a thread that works for
// another hands its sentence over (exec/worker.c).
#ifndef CLV_BASE_ERROR_H
#define CLV_BASE_ERROR_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cleave/status.h"

enum { CLV__ERROR_BYTES = 2048 };

typedef struct clv__error {
    pthread_mutex_t lock;
    pid_t process;   // that made it; a fork of that has neither its threads nor its drivers
    pid_t lock_made; // in which process: a fork's copy may be held by a thread that is not there
    clv_status status; // of the newest failure
    char text[CLV__ERROR_BYTES];
    bool by_thread;
    pthread_key_t key; // by_thread: a thread's own sentence
    struct clv__thread_error *sentences; // all of those
} clv__error;

void clv__error_init(clv__error *error);
/** One that keeps a sentence for each thread; without room for that as the other. */
void clv__error_init_by_thread(clv__error *error);
void clv__error_destroy(clv__error *error);

/** Keep a printf-made sentence and return `status`. `error` may be NULL: then only the status is returned. */
clv_status clv__error_set(clv__error *error, clv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Put a printf-made text before the sentence that is kept: "layer 'fc1': " and the like. Returns the kept
 *  status. */
clv_status clv__error_prefix(clv__error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Is this the process that made it, and no fork of that? NULL: yes. */
bool clv__error_at_home(const clv__error *error);

/** What a public function asks first: CLV_E_VALUE if the pointer is NULL. `error` is NULL where the runtime
 *  is not known yet. */
#define CLV__GIVEN(error, pointer) clv__given((error), __func__, #pointer, (pointer))
/** The same where threads or drivers are used: CLV_E_STATE in a fork of the process that made `error`. */
#define CLV__USABLE(error, pointer) clv__usable((error), __func__, #pointer, (pointer))
clv_status clv__given(clv__error *error, const char *function, const char *name, const void *pointer);
clv_status clv__usable(clv__error *error, const char *function, const char *name, const void *pointer);

/** Copy the sentence of this thread's newest failure, whole; of a thread without one, the newest of all. */
void clv__error_read(clv__error *error, char out[CLV__ERROR_BYTES]);
/** The same, borrowed until this thread fails or asks again. */
const char *clv__error_text(clv__error *error);
/** Nothing has failed. */
void clv__error_forget(clv__error *error);

/** Return from the function with a status and a sentence. */
#define CLV_FAIL(error, status, ...) return clv__error_set((error), (status), __VA_ARGS__)

/** Return from the function if the expression is not CLV_OK. */
#define CLV_TRY(expression)                                                                                  \
    do {                                                                                                     \
        clv_status clv_try_ = (expression);                                                                  \
        if (clv_try_ != CLV_OK) return clv_try_;                                                             \
    } while (0)

#endif
