// SPDX-License-Identifier: Apache-2.0
// Any message into its structure, by the table of its fields. A message is gone over twice: its fields are
// counted, then filled into lists of these lengths, so that nothing is allocated that the file does not
// have.
#include <string.h>

#include "onnx/reader.h"
#include "onnx/wire.h"

static const clv__onnx_field *field_of(const clv__onnx_message *m, uint32_t number) {
    for (size_t i = 0; i < m->n_fields; i++)
        if (m->fields[i].number == number) return &m->fields[i];
    return NULL;
}

static bool is_message(const clv__onnx_field *field) {
    return field->kind == CLV__ONNX_FIELD_MESSAGE || field->kind == CLV__ONNX_FIELD_POINTER ||
           field->kind == CLV__ONNX_FIELD_INLINE;
}

static clv__wire_type wire_type(const clv__onnx_field *field) {
    switch (field->kind) {
    case CLV__ONNX_FIELD_INT64:
    case CLV__ONNX_FIELD_INT32: return CLV__WIRE_VARINT;
    case CLV__ONNX_FIELD_FLOAT: return CLV__WIRE_FIXED32;
    default: return CLV__WIRE_BYTES;
    }
}

static bool is_number(const clv__onnx_field *field) {
    return wire_type(field) != CLV__WIRE_BYTES;
}

static size_t element_bytes(const clv__onnx_field *field) {
    switch (field->kind) {
    case CLV__ONNX_FIELD_TEXT: return sizeof(clv__onnx_text);
    case CLV__ONNX_FIELD_INT64: return sizeof(int64_t);
    case CLV__ONNX_FIELD_INT32: return sizeof(int32_t);
    case CLV__ONNX_FIELD_FLOAT: return sizeof(float);
    default: return field->of->bytes;
    }
}

static clv_status damaged(clv__onnx_reader *r, const clv__onnx_message *m, const uint8_t *at,
                          const char *why) {
    CLV_FAIL(r->error, CLV_E_FORMAT, "it is cut or damaged: %s (byte %zu, in %s)", why,
             (size_t)(at - r->bytes), m->what);
}

static clv_status count(clv__onnx_reader *r, const clv__onnx_message *m, clv__wire wire,
                        size_t counts[CLV__ONNX_FIELDS]) {
    clv__wire_field f;
    while (clv__wire_next(&wire, &f)) {
        const clv__onnx_field *field = field_of(m, f.number);
        if (!field) continue;
        size_t n = 1;
        if (field->list && is_number(field)) {
            if (!clv__wire_count(&wire, &f, wire_type(field), &n)) break;
        } else if (f.type != wire_type(field)) {
            return damaged(r, m, wire.at, "a field has another type than ONNX gives it");
        }
        size_t *total = &counts[field - m->fields];
        *total += n;
        if (is_message(field) && !field->list && *total > 1)
            return damaged(r, m, f.bytes, "a field that can be there once is there twice");
        if (is_message(field) && f.n < field->of->least_bytes)
            CLV_FAIL(r->error, CLV_E_FORMAT,
                     "it is cut or damaged: %s of %zu bytes is none (byte %zu, in %s)", field->of->what, f.n,
                     (size_t)(f.bytes - r->bytes), m->what);
    }
    return wire.fault ? damaged(r, m, wire.at, wire.fault) : CLV_OK;
}

static void set_defaults(const clv__onnx_message *m, char *structure) {
    static const clv__onnx_text none = {.data = "", .n = 0};
    for (size_t i = 0; i < m->n_fields; i++) {
        const clv__onnx_field *field = &m->fields[i];
        if (field->kind == CLV__ONNX_FIELD_TEXT && !field->list)
            memcpy(structure + field->at, &none, sizeof none);
        if (field->kind == CLV__ONNX_FIELD_INLINE) set_defaults(field->of, structure);
    }
}

static void store_number(const clv__onnx_field *field, uint64_t value, char *to) {
    const uint32_t low = (uint32_t)value;
    memcpy(to, element_bytes(field) == sizeof low ? (const void *)&low : (const void *)&value,
           element_bytes(field));
}

static clv_status fill(clv__onnx_reader *r, const clv__onnx_message *m, const uint8_t *bytes, size_t n,
                       char *structure);

/** A message in a message; what it is in stands before the sentence of its failure. */
static clv_status fill_message(clv__onnx_reader *r, const clv__onnx_message *m, const clv__onnx_field *field,
                               const clv__wire_field *f, char *structure, char *to) {
    clv_status status;
    if (field->kind == CLV__ONNX_FIELD_INLINE) return fill(r, field->of, f->bytes, f->n, structure);
    if (field->kind == CLV__ONNX_FIELD_POINTER) {
        void *made = clv__onnx_take(r, 1, field->of->bytes);
        if (!made) return r->status;
        memcpy(to, &made, sizeof made);
        to = made;
    }
    status = clv__onnx_decode(r, field->of, f->bytes, f->n, to);
    if (status != CLV_OK && m->label) m->label(r, structure);
    return status;
}

/** A field's value, or its values from *used on, into the place or the list for it. */
static clv_status fill_field(clv__onnx_reader *r, const clv__onnx_message *m, const clv__onnx_field *field,
                             const clv__wire_field *f, char *structure, size_t *used) {
    char *to = structure + field->at;
    if (field->kind == CLV__ONNX_FIELD_MARK) {
        memcpy(to, &field->mark, sizeof field->mark);
        return CLV_OK;
    }
    if (field->list) {
        memcpy(&to, structure + field->at, sizeof to);
        if (to) to += *used * element_bytes(field); // NULL: packed, and empty
    }
    if (is_message(field)) {
        ++*used;
        return fill_message(r, m, field, f, structure, to);
    }
    if (field->kind == CLV__ONNX_FIELD_TEXT) {
        const clv__onnx_text text = {.data = (const char *)f->bytes, .n = f->n};
        memcpy(to, &text, sizeof text);
        ++*used;
        return CLV_OK;
    }
    if (f->type != CLV__WIRE_BYTES) {
        store_number(field, f->value, to);
        ++*used;
        return CLV_OK;
    }
    clv__wire packed = {.at = f->bytes, .end = f->bytes + f->n};
    for (uint64_t value; clv__wire_number(&packed, wire_type(field), &value); ++*used) {
        store_number(field, value, to);
        to += element_bytes(field);
    }
    return packed.fault ? damaged(r, m, packed.at, packed.fault) : CLV_OK;
}

/** Into a structure that has its defaults. */
static clv_status fill(clv__onnx_reader *r, const clv__onnx_message *m, const uint8_t *bytes, size_t n,
                       char *structure) {
    size_t counts[CLV__ONNX_FIELDS] = {0}, used[CLV__ONNX_FIELDS] = {0};
    clv__wire wire = {.at = bytes, .end = bytes + n};
    CLV_TRY(count(r, m, wire, counts));
    for (size_t i = 0; i < m->n_fields; i++) {
        const clv__onnx_field *field = &m->fields[i];
        if (!field->list || counts[i] == 0) continue;
        void *list = clv__onnx_take(r, counts[i], element_bytes(field));
        if (!list) return r->status;
        memcpy(structure + field->at, &list, sizeof list);
        memcpy(structure + field->n_at, &counts[i], sizeof counts[i]);
    }
    clv__wire_field f;
    while (clv__wire_next(&wire, &f)) {
        const clv__onnx_field *field = field_of(m, f.number);
        if (field) CLV_TRY(fill_field(r, m, field, &f, structure, &used[field - m->fields]));
    }
    return m->finish ? m->finish(r, bytes, n, structure) : CLV_OK;
}

clv_status clv__onnx_decode(clv__onnx_reader *r, const clv__onnx_message *message, const uint8_t *bytes,
                            size_t n, void *structure) {
    memset(structure, 0, message->bytes);
    set_defaults(message, structure);
    if (message->is_graph && r->depth == CLV__ONNX_DEEPEST)
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "graphs lie in each other more than %d deep",
                 CLV__ONNX_DEEPEST);
    r->depth += message->is_graph;
    clv_status status = fill(r, message, bytes, n, structure);
    r->depth -= message->is_graph;
    return status;
}

uint32_t clv__onnx_fields(const uint8_t *bytes, size_t n) {
    uint32_t fields = 0;
    clv__wire wire = {.at = bytes, .end = bytes + n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);)
        if (f.number < 32) fields |= UINT32_C(1) << f.number;
    return fields;
}
