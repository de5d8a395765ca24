// SPDX-License-Identifier: Apache-2.0
// Texts that come from elsewhere (files, drivers, variables) as they may stand in a sentence: nothing in them
// moves a terminal's cursor or fills its screen. Every sentence of the library and every line of the command
// line is put together here.
#ifndef CLV_BASE_SHOWN_H
#define CLV_BASE_SHOWN_H

#include <stddef.h>
#include <stdint.h>

enum { CLV__NAME_BYTES = 200 }; // that are shown of a name

/** Bytes of the UTF-8 character at `s`, of which `left` bytes are there; 0 if it is none. */
size_t clv__utf8_length(const uint8_t *s, size_t left);

/** Control characters and broken UTF-8 become '?', in place; lines and tabs too unless `lines`. */
void clv__show(char *text, int lines);

/** A name of any length as it is shown: clv__show, and its middle left out where it is long. */
void clv__show_name(const char *name, size_t bytes, char out[CLV__NAME_BYTES + 1]);

#endif
