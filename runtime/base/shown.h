// SPDX-License-Identifier: Apache-2.0
// Texts that come from elsewhere (files, drivers, variables) as they may stand in a sentence: nothing in them
// moves a terminal's cursor or fills its screen. Every sentence of the library and every line of the command
// line is put together here.
#ifndef CLV_BASE_SHOWN_H
#define CLV_BASE_SHOWN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV__NAME_BYTES = 200 }; // that are shown of a name

/** Bytes of the UTF-8 character at `s`, of which `left` bytes are there; 0 if it is none. */
size_t clv__utf8_length(const uint8_t *s, size_t left);

/** Control characters and broken UTF-8 become '?', in place; lines and tabs too unless `lines`. */
void clv__show(char *text, int lines);

/** A name of any length as it is shown: clv__show, and its middle left out where it is long. */
void clv__show_name(const char *name, size_t bytes, char out[CLV__NAME_BYTES + 1]);

/** Flags of clv__format_shown. */
enum {
    CLV__SHOWN_NAMES =
        1, /**< a text in quotes, '%s', is a name: one line, at most 200 bytes, its middle left out */
    CLV__SHOWN_COLOURS = 2 /**< colours (ESC [ digits m) in texts are meant, and pass */
};

/**
 * vsnprintf for what people read: of the texts among the arguments (%s), which may come from files,
 * drivers or variables, control characters, marks of direction and broken UTF-8 become '?'; line ends and
 * tabs pass, but in names. The format itself is taken as it is. Sentences of a runtime are made so, with
 * CLV__SHOWN_NAMES. No %n, no wide characters.
 *
 * result  bytes that the whole text takes, as vsnprintf counts them
 */
int clv__format_shown(char *text, size_t bytes, unsigned flags, const char *format, va_list args);

#endif
