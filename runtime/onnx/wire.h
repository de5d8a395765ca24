// SPDX-License-Identifier: Apache-2.0
// The wire format of Protocol Buffers. Reading: a cursor that goes over a message's fields, each length held
// against what is left; it knows no message, allocates nothing and calls itself nowhere. Writing: fields
// appended to a text.
// Source: the Protocol Buffers documentation, "Encoding".
#ifndef CLV_ONNX_WIRE_H
#define CLV_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/** How a field lies on the wire, by the format's numbers. 3 and 4, groups, are refused. */
typedef enum clv__wire_type {
    CLV__WIRE_VARINT,
    CLV__WIRE_FIXED64,
    CLV__WIRE_BYTES,
    CLV__WIRE_FIXED32 = 5
} clv__wire_type;

/** What is left of a message. Begin with its first byte and the one behind its last. */
typedef struct clv__wire {
    const uint8_t *at, *end;
    const char *fault; // why it ended early, `at` is where; NULL: it did not. Static
} clv__wire;

typedef struct clv__wire_field {
    uint32_t number;
    clv__wire_type type;
    uint64_t value;       // of VARINT and FIXED
    const uint8_t *bytes; // of BYTES
    size_t n;
} clv__wire_field;

/** The next field; false: there is none, or `fault` says why. */
bool clv__wire_next(clv__wire *wire, clv__wire_field *field);

/** One number of a packed list, which lies as `type`; false: there is none, or `fault` says why. */
bool clv__wire_number(clv__wire *wire, clv__wire_type type, uint64_t *out);

/**
 * Numbers in a field of a repeated one, which is packed (BYTES) or has one number itself.
 * false: it is neither, or its bytes are not whole numbers; `fault` says it.
 */
bool clv__wire_count(clv__wire *wire, const clv__wire_field *field, clv__wire_type type, size_t *out);

/** Append a field. Without memory the text has `failed`. */
void clv__wire_put_int(clv__text *to, uint32_t number, int64_t value);
void clv__wire_put_float(clv__text *to, uint32_t number, float value);
void clv__wire_put_bytes(clv__text *to, uint32_t number, const void *bytes, size_t n);
void clv__wire_put_text(clv__text *to, uint32_t number, const char *text);
/** What a field of n bytes begins with, whose bytes follow in another way. */
void clv__wire_put_length(clv__text *to, uint32_t number, uint64_t n);
/** A message within one. It is emptied. */
void clv__wire_put_message(clv__text *to, uint32_t number, clv__text *message);

#endif
