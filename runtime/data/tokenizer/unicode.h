// SPDX-License-Identifier: Apache-2.0
// What Unicode says of characters, as Hugging Face's tokenizers take it: normal forms and small letters by utf8proc (CLEAVE_UTF8PROC), and
// tables of what they count as (unicode.def), since their versions of Unicode are not the library's.
#ifndef CLV_DATA_UNICODE_H
#define CLV_DATA_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

typedef enum clv__unicode_set {
    CLV__UNICODE_UNKNOWN,     // newer than the normal forms' tables
    CLV__UNICODE_MARK,        // of StripAccents
    CLV__UNICODE_NONSPACING,  // accents, of BertNormalizer
    CLV__UNICODE_REMOVED,     // by clean_text of BertNormalizer
    CLV__UNICODE_PUNCTUATION, // of Punctuation and BertPreTokenizer
    CLV__UNICODE_NUMERIC,     // of Digits
    CLV__UNICODE_WORD         // of Whitespace
} clv__unicode_set;

typedef enum clv__unicode_form { CLV__NFC, CLV__NFD, CLV__NFKC, CLV__NFKD } clv__unicode_form;

/** The character at a place in a text that is UTF-8, and its bytes. */
uint32_t clv__utf8_code(const char *text, size_t *bytes);
/** Append a character. */
void clv__utf8_put(clv__text *out, uint32_t code);

bool clv__unicode_in(clv__unicode_set set, uint32_t code);
bool clv__unicode_is_space(uint32_t code);
/** The character that an expression sees in its place: an older one, of the same length. */
uint32_t clv__unicode_stand_in(uint32_t code);

/** Is utf8proc there? The functions below need it. */
bool clv__unicode_there(void);
/** Append a text in a normal form; false: no memory. */
bool clv__unicode_normalize(clv__unicode_form form, const char *text, size_t bytes, clv__text *out);
/** Append a character in small letters. */
void clv__unicode_lower(uint32_t code, clv__text *out);
/** Bytes of the first grapheme of a text. */
size_t clv__unicode_grapheme(const char *text, size_t bytes);

#endif
