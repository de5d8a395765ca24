// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdlib.h>

#include "base/shown.h"

void clv__log_write(void (*log)(void *user, clv_log_level level, const char *sentence), void *user,
                    clv_log_level level, const char *format, va_list args) {
    if (!log) return;
    unsigned flags = level == CLV_LOG_DEBUG ? 0 : CLV__SHOWN_NAMES;
    char small[1024];
    int n = clv__format_shown(small, sizeof small, flags, format, args);
    char *big = (size_t)n >= sizeof small ? malloc((size_t)n + 1) : NULL; // kernel sources are long
    if (big) clv__format_shown(big, (size_t)n + 1, flags, format, args);
    log(user, level, big ? big : small);
    free(big);
}
