// SPDX-License-Identifier: Apache-2.0
// Text that comes from files: is it UTF-8, and how to show it in a sentence without trusting it.
#ifndef CLV_IO_SHOWN_H
#define CLV_IO_SHOWN_H

#include <stdbool.h>
#include <stddef.h>

enum { CLV__SHOWN_BYTES = 100 };

/** Room for a piece of foreign text, for the length of one expression: clv__shown(name,
 * &(clv__shown_text){0}). */
typedef struct clv__shown_text {
    char text[CLV__SHOWN_BYTES];
} clv__shown_text;

/** The text with control characters and broken UTF-8 replaced by '?', cut (with "...") where it is long. */
const char *clv__shown(const char *text, clv__shown_text *room);
const char *clv__shown_bytes(const void *text, size_t bytes, clv__shown_text *room);
/** What the system calls an errno. Any thread. */
const char *clv__system_reason(int code, clv__shown_text *room);

bool clv__utf8_valid(const char *text);

#endif
