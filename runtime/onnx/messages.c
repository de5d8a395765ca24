// SPDX-License-Identifier: Apache-2.0
// The messages of ONNX as tables, and what must be true of each alone. Fields that are not here are passed
// over.
// Source: onnx/onnx.proto of ONNX 1.23.
#include <string.h>

#include "io/shown.h"
#include "onnx/reader.h"
#include "onnx/wire.h"

// Lists that a program goes through once for each thing it looks for: longer ones are no real model's.
enum { MOST_ATTRIBUTES = 256, MOST_OPSETS = 256 };

#define FIELD(no, of_kind, type, member)                                                                     \
    { .number = (no), .kind = CLV__ONNX_FIELD_##of_kind, .at = offsetof(type, member) }
#define LIST(no, of_kind, type, member, count)                                                               \
    {                                                                                                        \
        .number = (no), .kind = CLV__ONNX_FIELD_##of_kind, .list = true, .at = offsetof(type, member),       \
        .n_at = offsetof(type, count)                                                                        \
    }
#define ONE(no, of_kind, type, member, message)                                                              \
    { .number = (no), .kind = CLV__ONNX_FIELD_##of_kind, .at = offsetof(type, member), .of = &(message) }
#define MANY(no, type, member, count, message)                                                               \
    {                                                                                                        \
        .number = (no), .kind = CLV__ONNX_FIELD_MESSAGE, .list = true, .at = offsetof(type, member),         \
        .n_at = offsetof(type, count), .of = &(message)                                                      \
    }
#define INLINE(no, message)                                                                                  \
    { .number = (no), .kind = CLV__ONNX_FIELD_INLINE, .of = &(message) }
#define MARK(no, type, member, value)                                                                        \
    { .number = (no), .kind = CLV__ONNX_FIELD_MARK, .at = offsetof(type, member), .mark = (value) }
#define FIELDS(list) .n_fields = sizeof(list) / sizeof *(list), .fields = (list)

static const char *shown(clv__onnx_text text, clv__shown_text *room) {
    return clv__shown_bytes(text.data, text.n, room);
}

/** "ai.onnx" is a name of "". */
static void simplify_domain(clv__onnx_text *domain) {
    if (clv__onnx_text_is(*domain, "ai.onnx")) *domain = (clv__onnx_text){.data = ""};
}

// ---- texts, opsets, types --------------------------------------------------------------------------------

static const clv__onnx_field property_fields[] = {FIELD(1, TEXT, clv__onnx_property, key),
                                                  FIELD(2, TEXT, clv__onnx_property, value)};
static const clv__onnx_message property_message = {
    .what = "a property", .bytes = sizeof(clv__onnx_property), FIELDS(property_fields)};

static clv_status finish_opset(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)r, (void)bytes, (void)n;
    clv__onnx_opset *opset = structure;
    simplify_domain(&opset->domain);
    return CLV_OK;
}

static const clv__onnx_field opset_fields[] = {FIELD(1, TEXT, clv__onnx_opset, domain),
                                               FIELD(2, INT64, clv__onnx_opset, version)};
static const clv__onnx_message opset_message = {
    .what = "an opset", .bytes = sizeof(clv__onnx_opset), FIELDS(opset_fields), .finish = finish_opset};

/** A negative dimension is one that some exporters write where none is known. */
static clv_status finish_dim(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)r;
    clv__onnx_dim *dim = structure;
    if (dim->size < 0 || !(clv__onnx_fields(bytes, n) & 1u << 1)) dim->size = -1;
    return CLV_OK;
}

static const clv__onnx_field dim_fields[] = {FIELD(1, INT64, clv__onnx_dim, size),
                                             FIELD(2, TEXT, clv__onnx_dim, name)};
static const clv__onnx_message dim_message = {
    .what = "a dimension", .bytes = sizeof(clv__onnx_dim), FIELDS(dim_fields), .finish = finish_dim};

static clv_status finish_shape(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)r, (void)bytes, (void)n;
    clv__onnx_info *info = structure;
    info->has_shape = true;
    return CLV_OK;
}

static const clv__onnx_field shape_fields[] = {MANY(1, clv__onnx_info, dims, rank, dim_message)};
static const clv__onnx_message shape_message = {
    .what = "a shape", FIELDS(shape_fields), .finish = finish_shape};

static clv_status finish_tensor_type(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)bytes, (void)n;
    clv__onnx_info *info = structure;
    info->kind = CLV__ONNX_OF_TENSOR;
    if ((int)info->dtype < 0 || info->dtype >= CLV__ONNX_DTYPES) {
        clv__shown_text room;
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "'%s' is of type %d, which is not known",
                 shown(info->name, &room), (int)info->dtype);
    }
    return CLV_OK;
}

static const clv__onnx_field tensor_type_fields[] = {FIELD(1, INT32, clv__onnx_info, dtype),
                                                     INLINE(2, shape_message)};
static const clv__onnx_message tensor_type_message = {
    .what = "a tensor's type", FIELDS(tensor_type_fields), .finish = finish_tensor_type};
static const clv__onnx_field type_fields[] = {INLINE(1, tensor_type_message),
                                              MARK(4, clv__onnx_info, kind, CLV__ONNX_OF_SEQUENCE),
                                              MARK(5, clv__onnx_info, kind, CLV__ONNX_OF_MAP),
                                              MARK(7, clv__onnx_info, kind, CLV__ONNX_OF_OPAQUE),
                                              MARK(8, clv__onnx_info, kind, CLV__ONNX_OF_SPARSE),
                                              MARK(9, clv__onnx_info, kind, CLV__ONNX_OF_OPTIONAL)};
static const clv__onnx_message type_message = {.what = "a type", FIELDS(type_fields)};

/** Has a property this key and this value? */
static bool property_is(const clv__wire_field *property, const char *key, const char *value) {
    clv__wire wire = {.at = property->bytes, .end = property->bytes + property->n};
    clv__onnx_text texts[2] = {{"", 0}, {"", 0}};
    for (clv__wire_field f; clv__wire_next(&wire, &f);)
        if (f.type == CLV__WIRE_BYTES && (f.number == 1 || f.number == 2))
            texts[f.number - 1] = (clv__onnx_text){(const char *)f.bytes, f.n};
    return clv__onnx_text_is(texts[0], key) && clv__onnx_text_is(texts[1], value);
}

/** PyTorch's newer exporter says which initializers are buffers of the module (torch.onnx, _core.py of 2.15). */
static bool is_buffer(const uint8_t *bytes, size_t n) {
    enum { METADATA = 9 };
    clv__wire wire = {.at = bytes, .end = bytes + n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);)
        if (f.number == METADATA && f.type == CLV__WIRE_BYTES &&
            property_is(&f, "pkg.torch.export.graph_signature.InputSpec.kind", "BUFFER"))
            return true;
    return false;
}

static clv_status finish_info(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)r;
    clv__onnx_info *info = structure;
    info->value = CLV__ONNX_NO_VALUE;
    info->buffer = is_buffer(bytes, n);
    return CLV_OK;
}

static const clv__onnx_field info_fields[] = {FIELD(1, TEXT, clv__onnx_info, name), INLINE(2, type_message)};
static const clv__onnx_message info_message = {.what = "a value",
                                               .bytes = sizeof(clv__onnx_info),
                                               .least_bytes = 3,
                                               FIELDS(info_fields),
                                               .finish = finish_info};

// ---- tensors ---------------------------------------------------------------------------------------------

static const clv__onnx_field tensor_fields[] = {
    LIST(1, INT64, clv__onnx_tensor, dims, rank), FIELD(2, INT32, clv__onnx_tensor, dtype),
    LIST(6, TEXT, clv__onnx_tensor, strings, n_bytes), FIELD(8, TEXT, clv__onnx_tensor, name)};
static const clv__onnx_message tensor_message = {.what = "a tensor",
                                                 .bytes = sizeof(clv__onnx_tensor),
                                                 .least_bytes = 2,
                                                 FIELDS(tensor_fields),
                                                 .finish = clv__onnx_finish_tensor};

/** Of a sparse one the name alone, which its values have. */
static const clv__onnx_field sparse_values_fields[] = {{.number = 8, .kind = CLV__ONNX_FIELD_TEXT}};
static const clv__onnx_message sparse_values_message = {.what = "a sparse tensor",
                                                        FIELDS(sparse_values_fields)};
static const clv__onnx_field sparse_fields[] = {INLINE(1, sparse_values_message)};
static const clv__onnx_message sparse_message = {
    .what = "a sparse tensor", .bytes = sizeof(clv__onnx_text), .least_bytes = 2, FIELDS(sparse_fields)};

// ---- attributes, nodes, graphs: each in the other --------------------------------------------------------

static const clv__onnx_message graph_message;

/** The field that holds a type's value. */
static const uint8_t field_of_type[CLV__ONNX_ATTRIBUTE_TYPES_END] = {
    [CLV__ONNX_ATTRIBUTE_FLOAT] = 2,          [CLV__ONNX_ATTRIBUTE_INT] = 3,
    [CLV__ONNX_ATTRIBUTE_STRING] = 4,         [CLV__ONNX_ATTRIBUTE_TENSOR] = 5,
    [CLV__ONNX_ATTRIBUTE_GRAPH] = 6,          [CLV__ONNX_ATTRIBUTE_FLOATS] = 7,
    [CLV__ONNX_ATTRIBUTE_INTS] = 8,           [CLV__ONNX_ATTRIBUTE_STRINGS] = 9,
    [CLV__ONNX_ATTRIBUTE_TENSORS] = 10,       [CLV__ONNX_ATTRIBUTE_GRAPHS] = 11,
    [CLV__ONNX_ATTRIBUTE_SPARSE_TENSOR] = 22, [CLV__ONNX_ATTRIBUTE_SPARSE_TENSORS] = 23,
    [CLV__ONNX_ATTRIBUTE_TYPE] = 14,          [CLV__ONNX_ATTRIBUTE_TYPES] = 15};

static clv_status bad_attribute(clv__onnx_reader *r, const clv__onnx_attribute *a, const char *why) {
    clv__shown_text room;
    CLV_FAIL(r->error, CLV_E_FORMAT, "attribute '%s' %s", shown(a->name, &room), why);
}

/** Nothing is left of what is not of its type. */
static void keep_own_value(clv__onnx_attribute *a) {
    const clv__onnx_attribute given = *a;
    *a = (clv__onnx_attribute){
        .name = given.name, .ref_attr_name = given.ref_attr_name, .type = given.type, .s = {.data = ""}};
    switch (given.type) {
    case CLV__ONNX_ATTRIBUTE_FLOAT: a->f = given.f; break;
    case CLV__ONNX_ATTRIBUTE_INT: a->i = given.i; break;
    case CLV__ONNX_ATTRIBUTE_STRING: a->s = given.s; break;
    case CLV__ONNX_ATTRIBUTE_TENSOR: a->t = given.t; break;
    case CLV__ONNX_ATTRIBUTE_GRAPH: a->g = given.g; break;
    case CLV__ONNX_ATTRIBUTE_FLOATS: a->floats = given.floats; break;
    case CLV__ONNX_ATTRIBUTE_INTS: a->ints = given.ints; break;
    case CLV__ONNX_ATTRIBUTE_STRINGS: a->strings = given.strings; break;
    case CLV__ONNX_ATTRIBUTE_TENSORS: a->tensors = given.tensors; break;
    case CLV__ONNX_ATTRIBUTE_GRAPHS: a->graphs = given.graphs; break;
    default: break;
    }
    if (a->floats || a->ints || a->strings || a->tensors || a->graphs) a->n = given.n;
}

static clv_status finish_attribute(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    clv__onnx_attribute *a = structure;
    const uint32_t there = clv__onnx_fields(bytes, n);
    if (a->name.n == 0) CLV_FAIL(r->error, CLV_E_FORMAT, "an attribute has no name");
    if ((a->floats != NULL) + (a->ints != NULL) + (a->strings != NULL) + (a->tensors != NULL) +
            (a->graphs != NULL) >
        1)
        return bad_attribute(r, a, "has lists of several types");
    if ((int)a->type < 0 || a->type >= CLV__ONNX_ATTRIBUTE_TYPES_END)
        return bad_attribute(r, a, "has a type that ONNX does not have");
    for (int type = 1; a->type == 0 && type < CLV__ONNX_ATTRIBUTE_TYPES_END; type++) // up to IR version 1
        if (there & UINT32_C(1) << field_of_type[type]) a->type = (clv__onnx_attribute_type)type;
    if (a->ref_attr_name.n == 0) {
        if (a->type == CLV__ONNX_ATTRIBUTE_NONE) return bad_attribute(r, a, "has no type");
        if ((a->type == CLV__ONNX_ATTRIBUTE_TENSOR && !a->t) ||
            (a->type == CLV__ONNX_ATTRIBUTE_GRAPH && !a->g))
            return bad_attribute(r, a, "has no value");
    }
    keep_own_value(a);
    return CLV_OK;
}

static void label_attribute(clv__onnx_reader *r, const void *structure) {
    const clv__onnx_attribute *a = structure;
    clv__shown_text room;
    if (!r->node_told) clv__error_prefix(r->error, "attribute '%s': ", shown(a->name, &room));
}

static const clv__onnx_field attribute_fields[] = {FIELD(1, TEXT, clv__onnx_attribute, name),
                                                   FIELD(2, FLOAT, clv__onnx_attribute, f),
                                                   FIELD(3, INT64, clv__onnx_attribute, i),
                                                   FIELD(4, TEXT, clv__onnx_attribute, s),
                                                   ONE(5, POINTER, clv__onnx_attribute, t, tensor_message),
                                                   ONE(6, POINTER, clv__onnx_attribute, g, graph_message),
                                                   LIST(7, FLOAT, clv__onnx_attribute, floats, n),
                                                   LIST(8, INT64, clv__onnx_attribute, ints, n),
                                                   LIST(9, TEXT, clv__onnx_attribute, strings, n),
                                                   MANY(10, clv__onnx_attribute, tensors, n, tensor_message),
                                                   MANY(11, clv__onnx_attribute, graphs, n, graph_message),
                                                   FIELD(20, INT32, clv__onnx_attribute, type),
                                                   FIELD(21, TEXT, clv__onnx_attribute, ref_attr_name)};
static const clv__onnx_message attribute_message = {.what = "an attribute",
                                                    .bytes = sizeof(clv__onnx_attribute),
                                                    .least_bytes = 3,
                                                    FIELDS(attribute_fields),
                                                    .finish = finish_attribute,
                                                    .label = label_attribute};

static clv_status bad_node(clv__onnx_reader *r, const clv__onnx_node *node, const char *why,
                           clv__onnx_text name) {
    clv__onnx_node_text node_room;
    clv__shown_text room;
    r->node_told = true;
    CLV_FAIL(r->error, CLV_E_FORMAT, "%s %s '%s'", clv__onnx_node_shown(node, &node_room), why,
             shown(name, &room));
}

static clv_status finish_node(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)bytes, (void)n;
    clv__onnx_node *node = structure;
    clv__onnx_node_text room;
    simplify_domain(&node->domain);
    if (node->op_type.n == 0)
        CLV_FAIL(r->error, CLV_E_FORMAT, "%s has no op_type", clv__onnx_node_shown(node, &room));
    if (node->n_attributes > MOST_ATTRIBUTES)
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "%s has %zu attributes; %d are read at most",
                 clv__onnx_node_shown(node, &room), node->n_attributes, MOST_ATTRIBUTES);
    for (size_t i = 1; i < node->n_attributes; i++)
        for (size_t k = 0; k < i; k++)
            if (clv__onnx_text_equal(node->attributes[i].name, node->attributes[k].name))
                return bad_node(r, node, "has twice the attribute", node->attributes[i].name);
    return CLV_OK;
}

static void label_node(clv__onnx_reader *r, const void *structure) {
    const clv__onnx_node *node = structure;
    clv__onnx_node_text room;
    if (!r->node_told) clv__error_prefix(r->error, "%s: ", clv__onnx_node_shown(node, &room));
    r->node_told = true;
}

static const clv__onnx_field node_fields[] = {
    LIST(1, TEXT, clv__onnx_node, inputs, n_inputs),
    LIST(2, TEXT, clv__onnx_node, outputs, n_outputs),
    FIELD(3, TEXT, clv__onnx_node, name),
    FIELD(4, TEXT, clv__onnx_node, op_type),
    MANY(5, clv__onnx_node, attributes, n_attributes, attribute_message),
    FIELD(7, TEXT, clv__onnx_node, domain),
    FIELD(8, TEXT, clv__onnx_node, overload)};
static const clv__onnx_message node_message = {.what = "a node",
                                               .bytes = sizeof(clv__onnx_node),
                                               .least_bytes = 3,
                                               FIELDS(node_fields),
                                               .finish = finish_node,
                                               .label = label_node};

static const clv__onnx_field graph_fields[] = {
    MANY(1, clv__onnx_graph, nodes, n_nodes, node_message),
    FIELD(2, TEXT, clv__onnx_graph, name),
    MANY(5, clv__onnx_graph, initializers, n_initializers, tensor_message),
    MANY(11, clv__onnx_graph, inputs, n_inputs, info_message),
    MANY(12, clv__onnx_graph, outputs, n_outputs, info_message),
    MANY(13, clv__onnx_graph, value_infos, n_value_infos, info_message),
    MANY(15, clv__onnx_graph, sparse, n_sparse, sparse_message)};
static const clv__onnx_message graph_message = {.what = "a graph",
                                                .bytes = sizeof(clv__onnx_graph),
                                                .least_bytes = 3,
                                                FIELDS(graph_fields),
                                                .is_graph = true};

// ---- functions, the model --------------------------------------------------------------------------------

static clv_status finish_function(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure) {
    (void)bytes, (void)n;
    clv__onnx_function *f = structure;
    clv__shown_text room;
    simplify_domain(&f->domain);
    if (f->name.n == 0) CLV_FAIL(r->error, CLV_E_FORMAT, "a function has no name");
    if (f->n_defaults > MOST_ATTRIBUTES || f->n_opsets > MOST_OPSETS)
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "function '%s' has more attributes or opsets than are read",
                 shown(f->name, &room));
    return CLV_OK;
}

static void label_function(clv__onnx_reader *r, const void *structure) {
    const clv__onnx_function *f = structure;
    clv__shown_text room;
    clv__error_prefix(r->error, "function '%s': ", shown(f->name, &room));
}

static const clv__onnx_field function_fields[] = {
    FIELD(1, TEXT, clv__onnx_function, name),
    LIST(4, TEXT, clv__onnx_function, inputs, n_inputs),
    LIST(5, TEXT, clv__onnx_function, outputs, n_outputs),
    LIST(6, TEXT, clv__onnx_function, attributes, n_attributes),
    MANY(7, clv__onnx_function, nodes, n_nodes, node_message),
    MANY(9, clv__onnx_function, opsets, n_opsets, opset_message),
    FIELD(10, TEXT, clv__onnx_function, domain),
    MANY(11, clv__onnx_function, defaults, n_defaults, attribute_message),
    FIELD(13, TEXT, clv__onnx_function, overload)};
static const clv__onnx_message function_message = {.what = "a function",
                                                   .bytes = sizeof(clv__onnx_function),
                                                   .least_bytes = 3,
                                                   FIELDS(function_fields),
                                                   .finish = finish_function,
                                                   .label = label_function};

static const clv__onnx_field model_fields[] = {
    FIELD(1, INT64, clv__onnx_model, ir_version),
    FIELD(2, TEXT, clv__onnx_model, producer_name),
    FIELD(3, TEXT, clv__onnx_model, producer_version),
    FIELD(4, TEXT, clv__onnx_model, domain),
    FIELD(5, INT64, clv__onnx_model, version),
    ONE(7, MESSAGE, clv__onnx_model, graph, graph_message),
    MANY(8, clv__onnx_model, opsets, n_opsets, opset_message),
    MANY(14, clv__onnx_model, metadata, n_metadata, property_message),
    MANY(25, clv__onnx_model, functions, n_functions, function_message)};
static const clv__onnx_message model_message = {
    .what = "the model", .bytes = sizeof(clv__onnx_model), FIELDS(model_fields)};

_Static_assert(sizeof attribute_fields / sizeof *attribute_fields <= CLV__ONNX_FIELDS, "room for its counts");

/** A tensor has a number, its type, where a model has a text. */
static bool looks_like_a_tensor(const clv__onnx_reader *r) {
    clv__wire wire = {.at = r->bytes, .end = r->bytes + r->n};
    for (clv__wire_field f; clv__wire_next(&wire, &f);)
        if (f.number == 2) return f.type == CLV__WIRE_VARINT;
    return false;
}

clv_status clv__onnx_decode_model(clv__onnx_reader *r) {
    clv__onnx_model *model = r->model;
    if (r->n == 0) CLV_FAIL(r->error, CLV_E_FORMAT, "it is empty");
    if (looks_like_a_tensor(r))
        CLV_FAIL(r->error, CLV_E_FORMAT,
                 "it holds a tensor (TensorProto), and a model is wanted (ModelProto)");
    clv__onnx_model decoded;
    CLV_TRY(clv__onnx_decode(r, &model_message, r->bytes, r->n, &decoded));
    if (!(clv__onnx_fields(r->bytes, r->n) & 1u << 7))
        CLV_FAIL(r->error, CLV_E_FORMAT, "it is no ONNX model, or cut: it has no graph");
    if (decoded.n_opsets > MOST_OPSETS)
        CLV_FAIL(r->error, CLV_E_UNSUPPORTED, "it imports %zu opsets; %d are read at most", decoded.n_opsets,
                 MOST_OPSETS);
    decoded.memory = model->memory;
    decoded.path = model->path;
    decoded.held_bytes = model->held_bytes;
    *model = decoded;
    return CLV_OK;
}
