// SPDX-License-Identifier: Apache-2.0
// Signatures taken apart (include/cleave/own_op.h has their grammar).
#ifndef CLV_OPS_BY_NAME_H
#define CLV_OPS_BY_NAME_H

#include "cleave/own_op.h"

enum { CLV__MOST_ATTRIBUTES = 8, CLV__WORD_BYTES = 48 };

/** One of a signature's attributes: `name:kind=default`. */
typedef struct clv__attribute {
    char name[CLV__WORD_BYTES], kind[CLV__WORD_BYTES], fallback[CLV__WORD_BYTES];
    bool has_fallback;
} clv__attribute;

/** The next one from *at on, or false at the end. */
bool clv__attribute_next(const char **at, clv__attribute *out);
bool clv__attribute_is(const clv__attribute *attribute, const char *kind);

#endif
