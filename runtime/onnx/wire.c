// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire.h"

#include <string.h>

enum { LONGEST_VARINT = 10, LARGEST_NUMBER = (1 << 29) - 1 };

static bool fail(clv__wire *wire, const uint8_t *at, const char *why) {
    wire->at = at;
    wire->fault = why;
    return false;
}

static bool take_varint(clv__wire *wire, uint64_t *out) {
    const uint8_t *at = wire->at;
    uint64_t value = 0;
    for (unsigned i = 0; i < LONGEST_VARINT; i++) {
        if (at == wire->end) return fail(wire, wire->at, "a number has no end");
        const uint8_t byte = *at++;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80) {
            wire->at = at;
            *out = value;
            return true;
        }
    }
    return fail(wire, wire->at, "a number has more than ten bytes");
}

static bool take_fixed(clv__wire *wire, size_t n, uint64_t *out) {
    if ((size_t)(wire->end - wire->at) < n) return fail(wire, wire->at, "a number has no end");
    *out = 0;
    memcpy(out, wire->at, n);
    wire->at += n;
    return true;
}

bool clv__wire_number(clv__wire *wire, clv__wire_type type, uint64_t *out) {
    if (wire->fault || wire->at == wire->end) return false;
    if (type == CLV__WIRE_VARINT) return take_varint(wire, out);
    return take_fixed(wire, type == CLV__WIRE_FIXED64 ? 8 : 4, out);
}

bool clv__wire_next(clv__wire *wire, clv__wire_field *field) {
    if (wire->fault || wire->at == wire->end) return false;
    const uint8_t *begin = wire->at;
    uint64_t tag;
    if (!take_varint(wire, &tag)) return false;
    if (tag >> 3 == 0 || tag >> 3 > LARGEST_NUMBER)
        return fail(wire, begin, "a field has a number that none has");
    *field = (clv__wire_field){.number = (uint32_t)(tag >> 3), .type = (clv__wire_type)(tag & 7)};
    switch (field->type) {
    case CLV__WIRE_VARINT: return take_varint(wire, &field->value);
    case CLV__WIRE_FIXED64: return take_fixed(wire, 8, &field->value);
    case CLV__WIRE_FIXED32: return take_fixed(wire, 4, &field->value);
    case CLV__WIRE_BYTES: break;
    default: return fail(wire, begin, "a field has a type that ONNX does not have");
    }
    uint64_t n;
    if (!take_varint(wire, &n)) return false;
    if (n > (uint64_t)(wire->end - wire->at)) return fail(wire, begin, "a field is longer than what is left");
    field->bytes = wire->at;
    field->n = (size_t)n;
    wire->at += n;
    return true;
}

bool clv__wire_count(clv__wire *wire, const clv__wire_field *field, clv__wire_type type, size_t *out) {
    *out = 1;
    if (field->type == type) return true;
    if (field->type != CLV__WIRE_BYTES) return fail(wire, wire->at, "a list of numbers has another type");
    if (type != CLV__WIRE_VARINT) {
        const size_t size = type == CLV__WIRE_FIXED64 ? 8 : 4;
        *out = field->n / size;
        return field->n % size == 0 || fail(wire, field->bytes, "a list of numbers has no end");
    }
    *out = 0; // each number has one byte below 0x80, its last
    for (size_t i = 0; i < field->n; i++) *out += field->bytes[i] < 0x80;
    return field->n == 0 || field->bytes[field->n - 1] < 0x80 ||
           fail(wire, field->bytes, "a list of numbers has no end");
}

// ---- writing --------------------------------------------------------------------------------------------------------

static void put_varint(clv__text *to, uint64_t value) {
    char bytes[10];
    size_t n = 0;
    for (; value > 127; value >>= 7) bytes[n++] = (char)(value | 128);
    bytes[n++] = (char)value;
    clv__text_add_bytes(to, bytes, n);
}

static void put_tag(clv__text *to, uint32_t number, clv__wire_type type) {
    put_varint(to, (uint64_t)number << 3 | type);
}

void clv__wire_put_int(clv__text *to, uint32_t number, int64_t value) {
    put_tag(to, number, CLV__WIRE_VARINT);
    put_varint(to, (uint64_t)value);
}

void clv__wire_put_float(clv__text *to, uint32_t number, float value) {
    put_tag(to, number, CLV__WIRE_FIXED32);
    clv__text_add_bytes(to, (const char *)&value, sizeof value);
}

void clv__wire_put_length(clv__text *to, uint32_t number, uint64_t n) {
    put_tag(to, number, CLV__WIRE_BYTES);
    put_varint(to, n);
}

void clv__wire_put_bytes(clv__text *to, uint32_t number, const void *bytes, size_t n) {
    clv__wire_put_length(to, number, n);
    clv__text_add_bytes(to, bytes, n);
}

void clv__wire_put_text(clv__text *to, uint32_t number, const char *text) {
    clv__wire_put_bytes(to, number, text, strlen(text));
}

void clv__wire_put_message(clv__text *to, uint32_t number, clv__text *message) {
    clv__wire_put_bytes(to, number, clv__text_get(message), message->n);
    to->failed |= message->failed;
    clv__text_reset(message);
}
