// SPDX-License-Identifier: Apache-2.0
// Nodes of a graph of ONNX Runtime as a model of ONNX, which Cleave reads: a ModelProto in memory, weights included.
//
// Source: onnx/onnx.proto of ONNX 1.23; the Protocol Buffers documentation, "Encoding".
#include <stdlib.h>
#include <string.h>

#include "provider.h"

// ---- bytes ----------------------------------------------------------------------------------------------------------

static void put(model *m, const void *bytes, size_t n) {
    if (!m->failed && m->room - m->n < n) {
        const size_t room = m->n + n + m->room / 2 + 4096;
        uint8_t *grown = realloc(m->bytes, room);
        if (grown) m->bytes = grown, m->room = room;
        m->failed = !grown;
    }
    if (m->failed || !n) return;
    memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

static void put_varint(model *m, uint64_t value) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; value > 127; value >>= 7) bytes[n++] = (uint8_t)(value | 128);
    bytes[n++] = (uint8_t)value;
    put(m, bytes, n);
}

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 };

static void put_int(model *m, int field, int64_t value) {
    put_varint(m, (uint64_t)field << 3 | VARINT);
    put_varint(m, (uint64_t)value);
}

static void put_float(model *m, int field, float value) {
    put_varint(m, (uint64_t)field << 3 | FIXED32);
    put(m, &value, sizeof value);
}

static void put_bytes(model *m, int field, const void *bytes, size_t n) {
    put_varint(m, (uint64_t)field << 3 | LENGTH);
    put_varint(m, n);
    put(m, bytes, n);
}

static void put_text(model *m, int field, const char *text) {
    put_bytes(m, field, text, strlen(text));
}

enum { LENGTH_BYTES = 6 }; // of a message whose length is written behind it: 2^42 bytes at most

/** A message begins; the place that close_message wants. */
static size_t open_message(model *m, int field) {
    static const uint8_t zeros[LENGTH_BYTES];
    put_varint(m, (uint64_t)field << 3 | LENGTH);
    put(m, zeros, LENGTH_BYTES);
    return m->n;
}

static void close_message(model *m, size_t begin) {
    if (m->failed) return;
    size_t n = m->n - begin;
    for (int i = 0; i < LENGTH_BYTES; i++, n >>= 7)
        m->bytes[begin - LENGTH_BYTES + (size_t)i] = (uint8_t)((n & 127) | (i + 1 < LENGTH_BYTES ? 128 : 0));
}

// ---- messages ---------------------------------------------------------------------------------------------------------

/** A TensorProto: name may be NULL. */
static OrtStatus *put_tensor(const view *v, model *m, int field, const char *name, const OrtValue *tensor) {
    const ort_functions *ort = &v->factory->ort;
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type = 0;
    int64_t dims[CLV_MAX_RANK] = {0};
    size_t rank = 0, bytes = 0;
    const void *data = NULL;
    ORT_TRY(ort->GetTensorTypeAndShape(tensor, &info));
    OrtStatus *status = ort->GetTensorElementType(info, &type);
    if (!status) status = ort->GetDimensionsCount(info, &rank);
    if (!status && rank > CLV_MAX_RANK)
        status = ort->CreateStatus(ERROR_ARGUMENT, "an initializer has more dimensions than Cleave has");
    if (!status) status = ort->GetDimensions(info, dims, rank);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    if (!status) status = ort->GetTensorSizeInBytes(tensor, &bytes);
    if (!status && bytes) status = ort->GetTensorData(tensor, &data);
    if (status) return status;
    const size_t begin = open_message(m, field);
    for (size_t d = 0; d < rank; d++) put_int(m, 1, dims[d]);
    put_int(m, 2, (int64_t)type);
    if (name) put_text(m, 8, name);
    put_bytes(m, 9, data, bytes);
    close_message(m, begin);
    return NULL;
}

/** What an attribute holds, as ONNX Runtime copies it; the caller frees it. */
static OrtStatus *read_attribute(const view *v, const OrtOpAttr *attribute, OrtOpAttrType type, void **out,
                                 size_t *n) {
    const ort_functions *ort = &v->factory->ort;
    *n = 0;
    *out = NULL;
    passed(v->factory,
           ort->ReadOpAttr(attribute, type, NULL, 0, n)); // fails, and tells how much room it wants
    *out = malloc(*n + 8);
    if (!*out) return no_memory(v->factory);
    return ort->ReadOpAttr(attribute, type, *out, *n, n);
}

/** One after the other, each with a zero behind it. */
static void put_texts(model *m, const char *texts, size_t n) {
    for (const char *end = texts + n; texts < end;) {
        const size_t length = strnlen(texts, (size_t)(end - texts));
        put_bytes(m, 9, texts, length);
        texts += length + 1;
    }
}

static void put_values(model *m, OrtOpAttrType type, const void *data, size_t bytes) {
    const int64_t *ints = data;
    const float *floats = data;
    const char *text = data;
    switch (type) {
    case ATTRIBUTE_INT: put_int(m, 3, *ints); break;
    case ATTRIBUTE_FLOAT: put_float(m, 2, *floats); break;
    case ATTRIBUTE_STRING: put_bytes(m, 4, text, bytes && !text[bytes - 1] ? bytes - 1 : bytes); break;
    case ATTRIBUTE_INTS:
        for (size_t i = 0; i < bytes / sizeof *ints; i++) put_int(m, 8, ints[i]);
        break;
    case ATTRIBUTE_FLOATS:
        for (size_t i = 0; i < bytes / sizeof *floats; i++) put_float(m, 7, floats[i]);
        break;
    default: put_texts(m, text, bytes);
    }
}

static OrtStatus *put_attribute(const view *v, model *m, const OrtOpAttr *attribute) {
    static const uint8_t numbers[] = {
        [ATTRIBUTE_INT] = 2,    [ATTRIBUTE_INTS] = 7,    [ATTRIBUTE_FLOAT] = 1, [ATTRIBUTE_FLOATS] = 6,
        [ATTRIBUTE_STRING] = 3, [ATTRIBUTE_STRINGS] = 8, [ATTRIBUTE_TENSOR] = 4}; // of AttributeProto
    const ort_functions *ort = &v->factory->ort;
    OrtOpAttrType type = 0;
    const char *name = NULL;
    ORT_TRY(ort->OpAttr_GetType(attribute, &type));
    ORT_TRY(ort->OpAttr_GetName(attribute, &name));
    if (type >= sizeof numbers || !numbers[type])
        return ort->CreateStatus(ERROR_ARGUMENT, "an attribute of a type that Cleave does not know");
    const size_t begin = open_message(m, 5);
    put_text(m, 1, name);
    put_int(m, 20, numbers[type]);
    OrtStatus *status;
    if (type == ATTRIBUTE_TENSOR) {
        OrtValue *tensor = NULL;
        status = ort->OpAttr_GetTensorAttributeAsOrtValue(attribute, &tensor);
        if (!status) status = put_tensor(v, m, 5, NULL, tensor);
        if (tensor) ort->ReleaseValue(tensor);
    } else {
        void *data;
        size_t bytes;
        status = read_attribute(v, attribute, type, &data, &bytes);
        if (!status) put_values(m, type, data, bytes);
        free(data);
    }
    close_message(m, begin);
    return status;
}

static OrtStatus *put_node(const view *v, model *m, const view_node *node) {
    const ort_functions *ort = &v->factory->ort;
    const char *name = NULL;
    size_t n = 0;
    ORT_TRY(ort->Node_GetName(node->node, &name));
    ORT_TRY(ort->Node_GetNumAttributes(node->node, &n));
    const OrtOpAttr **attributes = calloc(n + 1, sizeof *attributes);
    OrtStatus *status =
        attributes ? ort->Node_GetAttributes(node->node, attributes, n) : no_memory(v->factory);
    const size_t begin = open_message(m, 1);
    for (int i = 0; i < node->n_in; i++) put_text(m, 1, node->in[i] < 0 ? "" : v->values[node->in[i]].name);
    for (int i = 0; i < node->n_out; i++)
        put_text(m, 2, node->out[i] < 0 ? "" : v->values[node->out[i]].name);
    put_text(m, 3, name ? name : "");
    put_text(m, 4, node->op);
    for (size_t i = 0; !status && i < n; i++) status = put_attribute(v, m, attributes[i]);
    put_text(m, 7, node->domain ? node->domain : "");
    close_message(m, begin);
    free(attributes);
    return status;
}

/** A ValueInfoProto without a shape: any will do. */
static void put_value(model *m, int field, const view_value *value) {
    const size_t info = open_message(m, field);
    put_text(m, 1, value->name);
    const size_t type = open_message(m, 2), tensor = open_message(m, 1);
    put_int(m, 1, value->type);
    close_message(m, tensor);
    close_message(m, type);
    close_message(m, info);
}

static OrtStatus *put_opsets(const view *v, model *m) {
    const ort_functions *ort = &v->factory->ort;
    size_t n = 0;
    ORT_TRY(ort->Graph_GetNumOperatorSets(v->graph, &n));
    const char **domains = calloc(n + 1, sizeof *domains);
    int64_t *versions = calloc(n + 1, sizeof *versions);
    OrtStatus *status = domains && versions ? ort->Graph_GetOperatorSets(v->graph, domains, versions, n)
                                            : no_memory(v->factory);
    for (size_t i = 0; !status && i < n; i++) {
        const size_t begin = open_message(m, 8);
        put_text(m, 1, domains[i]);
        put_int(m, 2, versions[i]);
        close_message(m, begin);
    }
    free(domains);
    free(versions);
    return status;
}

// ---- the model ------------------------------------------------------------------------------------------------------------

/** What is known of a value: is it an input, or given, or read by nodes that are not marked? */
enum { READ = 1, MADE = 2, WANTED = 4 };

static void look(const view *v, const bool *marked, uint8_t *seen) {
    for (int i = 0; i < v->n_nodes; i++) {
        const view_node *node = &v->nodes[i];
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] >= 0) seen[node->in[k]] |= marked[i] ? READ : WANTED;
        for (int k = 0; k < node->n_inner; k++)
            if (node->inner[k] >= 0) seen[node->inner[k]] |= WANTED;
        for (int k = 0; k < node->n_out && marked[i]; k++)
            if (node->out[k] >= 0) seen[node->out[k]] |= MADE;
    }
    for (int i = 0; i < v->n_values; i++)
        if (v->values[i].result) seen[i] |= WANTED;
}

static OrtStatus *put_initializers(const view *v, model *m, const uint8_t *seen) {
    const ort_functions *ort = &v->factory->ort;
    for (int i = 0; i < v->n_values; i++) {
        const OrtValue *tensor = NULL;
        if (!v->values[i].constant || !(seen[i] & READ)) continue;
        ORT_TRY(ort->ValueInfo_GetInitializerValue(v->values[i].info, &tensor));
        if (!tensor) return ort->CreateStatus(ERROR_FAIL, "an initializer has no value");
        ORT_TRY(put_tensor(v, m, 5, v->values[i].name, tensor));
    }
    return NULL;
}

static OrtStatus *write(const view *v, const bool *marked, const uint8_t *seen, model *m) {
    int64_t ir_version = 8;
    ORT_TRY(v->factory->ort.Graph_GetOnnxIRVersion(v->graph, &ir_version));
    put_int(m, 1, ir_version);
    ORT_TRY(put_opsets(v, m));
    const size_t graph = open_message(m, 7);
    for (int i = 0; i < v->n_nodes; i++)
        if (marked[i]) ORT_TRY(put_node(v, m, &v->nodes[i]));
    ORT_TRY(put_initializers(v, m, seen));
    for (int i = 0; i < v->n_values; i++) {
        if ((seen[i] & (READ | MADE)) == READ && !v->values[i].constant) {
            m->inputs[m->n_inputs++] = i;
            put_value(m, 11, &v->values[i]);
        }
        if ((seen[i] & (MADE | WANTED)) == (MADE | WANTED)) {
            m->outputs[m->n_outputs++] = i;
            put_value(m, 12, &v->values[i]);
        }
    }
    close_message(m, graph);
    return m->failed ? no_memory(v->factory) : NULL;
}

OrtStatus *model_write(const view *v, const bool *marked, model *out) {
    *out = (model){.inputs = calloc((size_t)v->n_values + 1, sizeof(int)),
                   .outputs = calloc((size_t)v->n_values + 1, sizeof(int))};
    uint8_t *seen = calloc((size_t)v->n_values + 1, 1);
    const bool room = seen && out->inputs && out->outputs;
    if (room) look(v, marked, seen);
    OrtStatus *status = room ? write(v, marked, seen, out) : no_memory(v->factory);
    free(seen);
    if (status) model_reset(out);
    return status;
}

void model_reset(model *m) {
    free(m->bytes);
    free(m->inputs);
    free(m->outputs);
    *m = (model){0};
}
