// SPDX-License-Identifier: Apache-2.0
// A tensor's data: where they lie in the file, as they are, or in lists of numbers, of which bytes are
// made; or in a file of their own (memory.c).
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/shown.h"
#include "onnx/reader.h"
#include "onnx/wire.h"

/** Fields of a TensorProto. */
enum {
    NO_LIST = 0,
    SEGMENT = 3,
    FLOATS = 4,
    INT32S = 5,
    STRINGS = 6,
    INT64S = 7,
    RAW = 9,
    DOUBLES = 10,
    UINT64S = 11,
    EXTERNAL = 13,
    LOCATION = 14
};

/** Where the file has the data. */
typedef struct source {
    uint32_t field; // FLOATS to UINT64S, RAW, EXTERNAL; 0: none
    bool many;      // of them, which no file may have
    clv__onnx_text raw;
    bool external; // LOCATION says so
    clv__onnx_text location, offset, length;
} source;

/** The texts of an entry of external_data that mean something. */
static void take_entry(const clv__wire_field *entry, source *s) {
    clv__onnx_text key = {.data = ""}, value = {.data = ""};
    clv__wire wire = {.at = entry->bytes, .end = entry->bytes + entry->n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);) {
        if (f.type != CLV__WIRE_BYTES) continue;
        if (f.number == 1) key = (clv__onnx_text){.data = (const char *)f.bytes, .n = f.n};
        if (f.number == 2) value = (clv__onnx_text){.data = (const char *)f.bytes, .n = f.n};
    }
    if (clv__onnx_text_is(key, "location")) s->location = value;
    if (clv__onnx_text_is(key, "offset")) s->offset = value;
    if (clv__onnx_text_is(key, "length")) s->length = value;
}

static void take_source(source *s, uint32_t field) {
    s->many |= s->field && s->field != field;
    s->field = field;
}

static clv_status find_source(clv__onnx_reader *r, const clv__onnx_tensor *t, const uint8_t *bytes, size_t n,
                              source *s) {
    static const clv__onnx_text none = {.data = "", .n = 0};
    *s = (source){.raw = none, .location = none, .offset = none, .length = none};
    clv__wire wire = {.at = bytes, .end = bytes + n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);) {
        if (f.number == SEGMENT)
            return clv__onnx_bad_tensor(r, t, "is a segment of one, and such are not read");
        if (f.number == LOCATION && f.type == CLV__WIRE_VARINT) s->external = f.value == 1;
        if (f.number == EXTERNAL && f.type == CLV__WIRE_BYTES) take_entry(&f, s);
        if (f.number < FLOATS || f.number > UINT64S || f.number == 8) continue;
        if (f.type == CLV__WIRE_BYTES && f.n == 0) continue; // an empty list is none
        take_source(s, f.number);
        if (f.number != RAW) continue;
        if (f.type != CLV__WIRE_BYTES)
            return clv__onnx_bad_tensor(r, t, "has data of another type than ONNX gives them");
        s->raw = (clv__onnx_text){.data = (const char *)f.bytes, .n = f.n};
    }
    if (s->external) take_source(s, EXTERNAL);
    return s->many ? clv__onnx_bad_tensor(r, t, "has data in more than one place") : CLV_OK;
}

// ---- lists of numbers ------------------------------------------------------------------------------------

/** How a type's elements lie in the list for it. */
static const struct {
    uint32_t field;
    clv__wire_type type;
    size_t bytes; // of the data that a number of the list becomes: its low ones
} lists[CLV__ONNX_DTYPES] = {
#define D(id, name, bits, list, ours)                                                                        \
    {list,                                                                                                   \
     list == FLOATS    ? CLV__WIRE_FIXED32                                                                   \
     : list == DOUBLES ? CLV__WIRE_FIXED64                                                                   \
                       : CLV__WIRE_VARINT,                                                                   \
     list == FLOATS    ? 4                                                                                   \
     : list == DOUBLES ? 8                                                                                   \
                       : (bits + 7) / 8},
#include "onnx/dtypes.def"
#undef D
};

static clv_status damaged(clv__onnx_reader *r, const clv__onnx_tensor *t, const clv__wire *wire) {
    clv__shown_text shown;
    CLV_FAIL(r->error, CLV_E_FORMAT, "it is cut or damaged: %s (byte %zu, in tensor '%s')", wire->fault,
             (size_t)(wire->at - r->bytes), clv__shown_bytes(t->name.data, t->name.n, &shown));
}

/** Numbers of all the list's fields; *whole is the only one, if it is packed. */
static clv_status count_list(clv__onnx_reader *r, const clv__onnx_tensor *t, const uint8_t *bytes, size_t n,
                             size_t *numbers, clv__onnx_text *whole) {
    size_t fields = 0, more;
    *numbers = 0;
    *whole = (clv__onnx_text){.data = ""};
    clv__wire wire = {.at = bytes, .end = bytes + n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);) {
        if (f.number != lists[t->dtype].field) continue;
        if (!clv__wire_count(&wire, &f, lists[t->dtype].type, &more)) break;
        *numbers += more;
        if (f.type == CLV__WIRE_BYTES && ++fields == 1)
            *whole = (clv__onnx_text){.data = (const char *)f.bytes, .n = f.n};
        else
            *whole = (clv__onnx_text){.data = ""};
    }
    return wire.fault ? damaged(r, t, &wire) : CLV_OK;
}

/** The list's numbers, as bytes of the type. */
static clv_status read_list(clv__onnx_reader *r, clv__onnx_tensor *t, const uint8_t *bytes, size_t n) {
    size_t numbers;
    clv__onnx_text whole;
    CLV_TRY(count_list(r, t, bytes, n, &numbers, &whole));
    const size_t size = lists[t->dtype].bytes;
    const clv__wire_type type = lists[t->dtype].type;
    t->n_bytes = numbers * size;
    if (type != CLV__WIRE_VARINT && whole.n == t->n_bytes) { // it lies as it should
        t->bytes = (const uint8_t *)whole.data;
        return CLV_OK;
    }
    uint8_t *to = clv__onnx_take(r, numbers, size);
    if (!to) return r->status;
    t->bytes = to;
    clv__wire wire = {.at = bytes, .end = bytes + n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);) {
        if (f.number != lists[t->dtype].field) continue;
        if (f.type != CLV__WIRE_BYTES) {
            memcpy(to, &f.value, size);
            to += size;
            continue;
        }
        clv__wire packed = {.at = f.bytes, .end = f.bytes + f.n};
        for (uint64_t value; clv__wire_number(&packed, type, &value); to += size) memcpy(to, &value, size);
        if (packed.fault) return damaged(r, t, &packed);
    }
    return CLV_OK;
}

// ---- external data ---------------------------------------------------------------------------------------

/** A number of decimal digits; false: it is none. "" is `otherwise`. */
static bool read_number(clv__onnx_text text, uint64_t otherwise, uint64_t *out) {
    *out = text.n ? 0 : otherwise;
    for (size_t i = 0; i < text.n; i++) {
        const unsigned digit = (unsigned char)text.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, digit, out))
            return false;
    }
    return true;
}

static clv_status read_external(clv__onnx_reader *r, clv__onnx_tensor *t, const source *s, size_t wanted) {
    uint64_t offset, length;
    const clv__onnx_mapping *file;
    if (!read_number(s->offset, 0, &offset) || !read_number(s->length, wanted, &length))
        return clv__onnx_bad_tensor(r, t, "has an offset or a length of its data that is no number");
    t->n_bytes = length > SIZE_MAX ? SIZE_MAX : (size_t)length;
    if (t->n_bytes != wanted) return CLV_OK; // which is said by the caller
    CLV_TRY(clv__onnx_map_beside(r, t, s->location, &file));
    if (offset > file->n || wanted > file->n - offset) {
        clv__shown_text shown, location;
        CLV_FAIL(r->error, CLV_E_FORMAT,
                 "tensor '%s' has %zu bytes of data at %" PRIu64 " of the file '%s', which has %zu bytes",
                 clv__shown_bytes(t->name.data, t->name.n, &shown), wanted, offset,
                 clv__shown_bytes(s->location.data, s->location.n, &location), file->n);
    }
    t->bytes = file->bytes + offset;
    return CLV_OK;
}

// ---- all of it -------------------------------------------------------------------------------------------

/** Elements, and bytes that they take. */
static clv_status measure(clv__onnx_reader *r, clv__onnx_tensor *t, size_t *wanted) {
    const size_t bits = (size_t)clv__onnx_dtype_bits(t->dtype);
    int64_t of_others = 1; // a dimension of 0 hides no overflow
    size_t all_bits = 0;
    t->numel = 1;
    for (size_t i = 0; i < t->rank; i++) {
        if (t->dims[i] < 0) {
            clv__shown_text shown;
            CLV_FAIL(r->error, CLV_E_FORMAT, "tensor '%s': dimension %zu is %" PRId64,
                     clv__shown_bytes(t->name.data, t->name.n, &shown), i, t->dims[i]);
        }
        if (t->dims[i] == 0) t->numel = 0;
        if (t->dims[i] != 0 &&
            (__builtin_mul_overflow(of_others, t->dims[i], &of_others) || of_others > INT64_MAX / 128))
            return clv__onnx_bad_tensor(r, t, "has more elements than can be counted");
    }
    if (t->numel) t->numel = of_others;
    if ((uint64_t)t->numel > SIZE_MAX || !clv__size_mul((size_t)t->numel, bits, &all_bits))
        return clv__onnx_bad_tensor(r, t, "has more elements than can be counted");
    *wanted = all_bits / 8 + (all_bits % 8 != 0);
    return CLV_OK;
}

/** The shape as text, of its first dimensions. */
static const char *shape_shown(const clv__onnx_tensor *t, char *text, size_t room) {
    size_t used = 0;
    text[used++] = '[';
    for (size_t i = 0; i < t->rank && used + 24 < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64, i ? "," : "", t->dims[i]);
    snprintf(text + used, room - used, "]");
    return text;
}

static clv_status hold_against_shape(clv__onnx_reader *r, const clv__onnx_tensor *t, size_t wanted,
                                     const char *unit, size_t there) {
    if (there == wanted) return CLV_OK;
    char shape[160];
    clv__shown_text shown;
    CLV_FAIL(r->error, CLV_E_FORMAT, "tensor '%s' has %zu %s of data; its shape %s of %s wants %zu",
             clv__shown_bytes(t->name.data, t->name.n, &shown), there, unit,
             shape_shown(t, shape, sizeof shape), clv__onnx_dtype_name(t->dtype), wanted);
}

clv_status clv__onnx_finish_tensor(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    clv__onnx_tensor *t = structure;
    const size_t n_strings = t->n_bytes; // of STRING, where the decoder counted them
    size_t wanted = 0;
    source s;
    t->value = CLV__ONNX_NO_VALUE;
    t->n_bytes = 0;
    if ((int)t->dtype <= 0 || t->dtype >= CLV__ONNX_DTYPES) {
        clv__shown_text shown;
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "tensor '%s' is of type %d, which is not known",
                 clv__shown_bytes(t->name.data, t->name.n, &shown), (int)t->dtype);
    }
    CLV_TRY(measure(r, t, &wanted));
    CLV_TRY(find_source(r, t, bytes, n, &s));
    if (t->dtype == CLV__ONNX_STRING) {
        if (s.field && s.field != STRINGS)
            return clv__onnx_bad_tensor(r, t, "is of texts and has other data");
        return hold_against_shape(r, t, (size_t)t->numel, "texts", n_strings);
    }
    t->strings = NULL;
    t->bytes = (const uint8_t *)"";
    if (s.field == RAW) {
        t->bytes = (const uint8_t *)s.raw.data;
        t->n_bytes = s.raw.n;
    } else if (s.field == EXTERNAL && wanted > 0) {
        CLV_TRY(read_external(r, t, &s, wanted));
    } else if (s.field == lists[t->dtype].field) {
        CLV_TRY(read_list(r, t, bytes, n));
    }
    return hold_against_shape(r, t, wanted, "bytes", t->n_bytes);
}
