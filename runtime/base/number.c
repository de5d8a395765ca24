// SPDX-License-Identifier: Apache-2.0
// Source: POSIX.1-2017, newlocale() and uselocale(): a locale of this thread alone. The C libraries that we
// know hand out a constant object for "C", so nothing is kept here, and asking for it costs no allocation.
#include "base/number.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct numbers {
    locale_t plain, before;
} numbers;

/** From here on this thread writes and reads numbers with a point. */
static numbers begin(void) {
    numbers n = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    if (n.plain) n.before = uselocale(n.plain);
    return n;
}

static void end_of(numbers n) {
    if (!n.plain) return;
    uselocale(n.before);
    freelocale(n.plain);
}

int clv__format_list(char *out, size_t bytes, const char *format, va_list args) {
    const numbers n = begin();
    const int length = vsnprintf(out, bytes, format, args);
    end_of(n);
    return length;
}

int clv__format(char *out, size_t bytes, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int length = clv__format_list(out, bytes, format, args);
    va_end(args);
    return length;
}

double clv__number_read(const char *text, char **end) {
    const numbers n = begin();
    const double value = strtod(text, end);
    end_of(n);
    return value;
}
