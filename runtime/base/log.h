// SPDX-License-Identifier: Apache-2.0
// Sentences to whoever listens: a callback, or nobody. The library never prints.
#ifndef CLV_BASE_LOG_H
#define CLV_BASE_LOG_H

#include <stdarg.h>

#include "cleave/runtime.h"

/** Make the sentence, with names and control characters as they may be shown, and hand it to the callback;
 *  NULL: nobody listens. */
void clv__log_write(void (*log)(void *user, clv_log_level level, const char *sentence), void *user,
                    clv_log_level level, const char *format, va_list args);

#endif
