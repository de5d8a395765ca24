// SPDX-License-Identifier: Apache-2.0
// The one way in and out for numbers. A program's locale may write a comma where files, kernels and
// sentences want a point, so nothing else in the library reads real numbers from text or writes them
// (`lint.words`).
#ifndef CLV_BASE_NUMBER_H
#define CLV_BASE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>

/** As snprintf in the "C" locale, whatever the locale of the program or of this thread is. */
int clv__format(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
int clv__format_list(char *out, size_t bytes, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/** As strtod in the "C" locale: decimal and hexadecimal, correctly rounded. `end` may be NULL. */
double clv__number_read(const char *text, char **end);

#endif
