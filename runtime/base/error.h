// SPDX-License-Identifier: Apache-2.0
// The sentence behind a status. One clv__error lives in each runtime; whoever fails writes into it.
// Thread-safe: workers and loaders fail too. The reader gets the newest sentence.
#ifndef CLV_BASE_ERROR_H
#define CLV_BASE_ERROR_H

#include <pthread.h>

#include "cleave/status.h"

enum { CLV__ERROR_BYTES = 2048 };

typedef struct clv__error {
    pthread_mutex_t lock;
    clv_status status;
    char text[CLV__ERROR_BYTES];
} clv__error;

void clv__error_init(clv__error *error);
void clv__error_destroy(clv__error *error);

/** Keep a printf-made sentence and return `status`. `error` may be NULL: then only the status is returned. */
clv_status clv__error_set(clv__error *error, clv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Put a printf-made text before the sentence that is kept: "layer 'fc1': " and the like. Returns the kept status. */
clv_status clv__error_prefix(clv__error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Copy the newest sentence, whole. */
void clv__error_read(clv__error *error, char out[CLV__ERROR_BYTES]);

/** Return from the function with a status and a sentence. */
#define CLV_FAIL(error, status, ...) return clv__error_set((error), (status), __VA_ARGS__)

/** Return from the function if the expression is not CLV_OK. */
#define CLV_TRY(expression)                                                                                  \
    do {                                                                                                     \
        clv_status clv_try_ = (expression);                                                                  \
        if (clv_try_ != CLV_OK) return clv_try_;                                                             \
    } while (0)

#endif
