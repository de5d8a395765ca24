// SPDX-License-Identifier: Apache-2.0
// Text: bytes as people read them, and a string that grows.
#ifndef CLV_BASE_TEXT_H
#define CLV_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A short text returned by value, so that it can stand among printf's arguments. */
typedef struct clv__short_text {
    char text[32];
} clv__short_text;

/** `17 B`, `1.5 KiB`, `512.0 MiB`, `80.0 GiB`: one decimal above bytes. */
clv__short_text clv__bytes_text(uint64_t bytes);

/** A string that grows. Zero-initialised is empty. Once memory is out it stays `failed` and appends nothing.
 */
typedef struct clv__text {
    char *data; // ends in a zero byte; NULL while empty
    size_t n, room;
    bool failed;
} clv__text;

void clv__text_add(clv__text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void clv__text_add_bytes(clv__text *text, const char *bytes, size_t n);
/** What has been gathered, "" if nothing. Borrowed. */
const char *clv__text_get(const clv__text *text);
void clv__text_reset(clv__text *text);

/** An ASCII letter in lower case, in every locale the same; any other character as it is. */
char clv__lower(char letter);
/** Are the first `n` bytes of both the same, in any case of ASCII letters? A text that ends before is not. */
bool clv__same_letters(const char *a, const char *b, size_t n);
/** The same of whole texts. */
bool clv__same_word(const char *a, const char *b);

/** Does `text` hold `part`, in any case of ASCII letters? An empty part is in every text. */
bool clv__text_holds(const char *text, const char *part);

/** Cut the blanks off a text's end; what it returns is where its first other character is. */
char *clv__text_trim(char *text);

#endif
