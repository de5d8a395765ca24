// SPDX-License-Identifier: Apache-2.0
// A text's tokens in an array of the caller's.
#ifndef CLV_TESTS_TOKENS_H
#define CLV_TESTS_TOKENS_H

#include "cleave/data.h"

/** *n: how many there are; none after an error. */
static inline clv_status encode_into(const clv_vocabulary *vocabulary, const char *text, size_t bytes,
                                     int32_t *tokens, size_t *n) {
    clv_array all;
    const clv_status status = clv_vocabulary_encode(vocabulary, text, bytes, &all);
    *n = status == CLV_OK ? (size_t)all.shape.dims[0] : 0;
    if (*n) memcpy(tokens, all.data, *n * sizeof *tokens);
    clv_array_reset(&all);
    return status;
}

#endif
