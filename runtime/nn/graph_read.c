// SPDX-License-Identifier: Apache-2.0
// A graph from a file (graph_file.h), by builders alone: what a file says is looked at here for its form, and by them for its sense.
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "cleave/io.h"
#include "cleave/custom_op.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "io/array.h"
#include "io/formats.h"
#include "io/shown.h"
#include "nn/graph_file.h"
#include "tensor/dtype.h"

typedef struct reading {
    clv_graph *graph;
    const clv_archive *archive;
    const char *path;
    clv__error *error;
    char at[64];       // where it is: "node 3"
    clv_tensor **node; // results by number
    size_t n_nodes;
} reading;

#define BAD(r, ...) return bad((r), CLV_E_FORMAT, __VA_ARGS__)

__attribute__((format(printf, 3, 4))) static clv_status bad(reading *r, clv_status status, const char *format,
                                                            ...) {
    char text[CLV__ERROR_BYTES / 2];
    va_list args;
    va_start(args, format);
    clv__format_list(text, sizeof text, format, args);
    va_end(args);
    CLV_FAIL(r->error, status, "'%s', %s: %s", r->path, r->at, text);
}

/** What a builder has refused. */
static clv_status built(reading *r) {
    const clv__error *mistake = &r->graph->error;
    return mistake->status == CLV_OK ? CLV_OK : bad(r, mistake->status, "%s", mistake->text);
}

// ---- members --------------------------------------------------------------------------------------------------------

static clv_status text_of(reading *r, const json_t *object, const char *key, const char **out) {
    *out = json_string_value(json_object_get(object, key));
    if (!*out) BAD(r, "no text '%s'", key);
    return CLV_OK;
}

static int word_of(const char *text, const char *const *words) {
    for (int i = 0; text && words[i]; i++)
        if (!strcmp(text, words[i])) return i;
    return -1;
}

static clv_dtype dtype_of(const char *text) {
    for (clv_dtype dtype = CLV_DTYPE_F32; text && clv_dtype_bytes(dtype); dtype++)
        if (!strcmp(text, clv_dtype_name(dtype))) return dtype;
    return CLV_DTYPE_NONE;
}

static clv_status want_dtype(reading *r, const json_t *object, clv_dtype *out) {
    const char *text;
    CLV_TRY(text_of(r, object, "dtype", &text));
    *out = dtype_of(text);
    if (*out == CLV_DTYPE_NONE) BAD(r, "there is no type '%s'", clv__shown(text, &(clv__shown_text){0}));
    return CLV_OK;
}

/** Whole numbers, at most CLV_MAX_RANK. */
static clv_status list_of(reading *r, const json_t *value, const char *key, int64_t *out, int *n) {
    const size_t size = json_array_size(value);
    if (!json_is_array(value) || size > CLV_MAX_RANK)
        BAD(r, "'%s' is no list of at most %d whole numbers", clv__shown(key, &(clv__shown_text){0}),
            CLV_MAX_RANK);
    for (size_t i = 0; i < size; i++) {
        const json_t *number = json_array_get(value, i);
        if (!json_is_integer(number))
            BAD(r, "'%s' holds what is no whole number", clv__shown(key, &(clv__shown_text){0}));
        out[i] = json_integer_value(number);
    }
    *n = (int)size;
    return CLV_OK;
}

static clv_status want_shape(reading *r, const json_t *object, clv_shape *out) {
    int64_t dims[CLV_MAX_RANK];
    int rank;
    CLV_TRY(list_of(r, json_object_get(object, "shape"), "shape", dims, &rank));
    *out = clv_shape_make(rank, dims);
    return CLV_OK;
}

/** A number, or one that JSON has not, as text. */
static bool number_of(const json_t *value, double *out) {
    const char *text = json_string_value(value);
    static const char *const words[] = {"inf", "-inf", "nan", NULL};
    const int word = word_of(text, words);
    if (word >= 0) *out = word == 2 ? NAN : word ? -INFINITY : INFINITY;
    if (json_is_number(value)) *out = json_number_value(value);
    return word >= 0 || json_is_number(value);
}

static clv_status want_list(reading *r, const json_t *root, const char *key, const json_t **out) {
    *out = json_object_get(root, key);
    if (!json_is_array(*out)) BAD(r, "no list '%s'", key);
    return CLV_OK;
}

/** requires_grad, where the file has it. */
static clv_status set_gradient(reading *r, const json_t *object, clv_tensor *tensor) {
    const json_t *value = json_object_get(object, "requires_grad");
    if (value && !json_is_boolean(value)) BAD(r, "'requires_grad' is neither true nor false");
    if (value) clv_requires_grad(tensor, json_is_true(value));
    return built(r);
}

// ---- inputs and state -----------------------------------------------------------------------------------------------

static clv_status read_input(reading *r, const json_t *object) {
    const char *name;
    clv_dtype dtype;
    clv_shape shape;
    CLV_TRY(text_of(r, object, "name", &name));
    CLV_TRY(want_dtype(r, object, &dtype));
    CLV_TRY(want_shape(r, object, &shape));
    return set_gradient(r, object, clv_input(r->graph, name, dtype, shape));
}

static clv_status init_of(reading *r, const json_t *object, clv_init *out) {
    const json_t *list = json_object_get(object, "init");
    double a, b;
    const int kind = word_of(json_string_value(json_array_get(list, 0)), clv__init_words);
    if (kind < 0 || json_array_size(list) != 3 || !number_of(json_array_get(list, 1), &a) ||
        !number_of(json_array_get(list, 2), &b))
        BAD(r, "'init' is no list of zeros, ones, uniform or normal, and two numbers");
    if (!isfinite((float)a) || !isfinite((float)b)) BAD(r, "'init' has a number that is too large for f32");
    *out = (clv_init){(clv_init_kind)kind, (float)a, (float)b};
    return CLV_OK;
}

static clv_status read_constant(reading *r, const json_t *object, const char *name, clv_dtype dtype,
                                clv_shape shape) {
    const clv_array *array;
    CLV_TRY(clv__archive_require(r->archive, name, dtype, &shape, &array));
    const clv_tensor *tensor = clv_constant(r->graph, dtype, shape, array->data);
    if (tensor && strcmp(clv_tensor_name(tensor), name))
        BAD(r, "the values are those of '%s'", clv_tensor_name(tensor)); // nodes name it
    return set_gradient(r, object, (clv_tensor *)tensor);
}

static clv_status read_state(reading *r, const json_t *object) {
    const char *kind, *name;
    clv_dtype dtype;
    clv_shape shape;
    clv_init init;
    CLV_TRY(text_of(r, object, "kind", &kind));
    CLV_TRY(text_of(r, object, "name", &name));
    CLV_TRY(want_dtype(r, object, &dtype));
    CLV_TRY(want_shape(r, object, &shape));
    if (clv_graph_find(r->graph, name))
        BAD(r, "'%s' is there already", clv__shown(name, &(clv__shown_text){0}));
    if (!strcmp(kind, "constant")) return read_constant(r, object, name, dtype, shape);
    CLV_TRY(init_of(r, object, &init));
    const bool trained = !strcmp(kind, "parameter");
    if (!trained && strcmp(kind, "buffer")) BAD(r, "'kind' is none of parameter, buffer and constant");
    if (dtype != CLV_DTYPE_F32 && (trained || clv__is_half(dtype)))
        BAD(r, "a %s cannot be %s", kind, clv_dtype_name(dtype));
    return set_gradient(r, object,
                        trained ? clv_parameter(r->graph, name, shape, init)
                                : clv_buffer(r->graph, name, dtype, shape, init));
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

static clv_status value_of(reading *r, const json_t *value, clv_tensor **out) {
    const char *name = json_string_value(value);
    const json_t *node = json_is_array(value) ? json_array_get(value, 0) : value;
    const json_int_t output = json_is_array(value) ? json_integer_value(json_array_get(value, 1)) : 0;
    *out = NULL;
    if (json_is_null(value)) return CLV_OK;
    if (name) *out = clv_graph_find(r->graph, name);
    if (name && !*out) BAD(r, "there is no '%s' to read", clv__shown(name, &(clv__shown_text){0}));
    if (name) return CLV_OK;
    const json_int_t number = json_integer_value(node);
    if (!json_is_integer(node) || number < 0 || (size_t)number >= r->n_nodes || output < 0 ||
        output >= CLV__MAX_OUT)
        BAD(r, "it reads a result that is not there yet");
    clv_tensor *made = r->node[number];
    *out = output ? clv__sibling(made, (int)output) : made;
    if (!*out) BAD(r, "it reads output %d of node %d, which has fewer", (int)output, (int)number);
    return CLV_OK;
}

/** The attributes of a call, and what they point to. */
typedef struct arguments {
    clv_op_argument at[CLV_NODE_ARGUMENTS];
    int64_t lists[CLV_NODE_ARGUMENTS][CLV_MAX_RANK];
    int n;
} arguments;

/** Of an op that there is not, nothing is known: clv_op_call says so. */
static int kind_of(const char *op, const char *name) {
    const clv_op_signature *signature = clv_op_find(op);
    const clv_op_attribute *at = signature ? signature->attributes : NULL;
    for (; at && at->name; at++)
        if (!strcmp(at->name, name)) return at->kind;
    return 0;
}

static clv_status attributes_of(reading *r, const char *op, json_t *object, arguments *out) {
    const char *name;
    json_t *value;
    out->n = 0;
    if (object && !json_is_object(object)) BAD(r, "'attributes' is no object");
    json_object_foreach(object, name, value) {
        if (out->n == sizeof out->at / sizeof *out->at) BAD(r, "too many attributes");
        clv_op_argument *argument = &out->at[out->n];
        const char *text = json_string_value(value);
        *argument = (clv_op_argument){.name = name};
        const int kind = kind_of(op, name);
        if (kind == CLV_ATTRIBUTE_DTYPE) {
            argument->number = dtype_of(text);
            if (!text || argument->number == 0) BAD(r, "'%s' is no type", name);
        } else if (json_is_array(value)) {
            CLV_TRY(list_of(r, value, name, out->lists[out->n], &argument->n));
            argument->list = out->lists[out->n];
            if (kind == CLV_ATTRIBUTE_PAIR && argument->n == 2 && argument->list[1] == -1)
                out->lists[out->n][1] = 0; // as files before version 0.2 have it: none along W
        } else if (kind == CLV_ATTRIBUTE_TEXT || !number_of(value, &argument->number)) {
            argument->text = text;
            if (!text) BAD(r, "'%s' is no number, list or text", clv__shown(name, &(clv__shown_text){0}));
        }
        out->n++;
    }
    return CLV_OK;
}

/** What is around a call: its layer, the device it is asked for. */
static clv_status call(reading *r, const json_t *object, const char *op, clv_tensor *const *in, int n,
                       const arguments *a, clv_tensor **out) {
    const char *layer = json_string_value(json_object_get(object, "layer")),
               *place = json_string_value(json_object_get(object, "place"));
    clv_graph *graph = r->graph;
    if (layer) clv_scope_push(graph, layer);
    if (place) clv_graph_set_place(graph, place);
    CLV_TRY(built(r));
    *out = clv_op_call(graph, op, in, n, a->at, a->n);
    if (place) clv_graph_set_place(graph, NULL);
    if (layer) clv_scope_pop(graph);
    CLV_TRY(built(r));
    if (!*out) BAD(r, "%s gives nothing with these inputs", op);
    if (json_object_get(object, "dtype")) {
        clv_dtype dtype;
        CLV_TRY(want_dtype(r, object, &dtype));
        *out = clv_cast(*out, dtype);
    }
    return built(r);
}

static clv_status read_node(reading *r, const json_t *object) {
    clv_tensor *in[CLV__MAX_IN];
    arguments a;
    const char *op;
    const json_t *inputs;
    CLV_TRY(text_of(r, object, "op", &op));
    CLV_TRY(want_list(r, object, "inputs", &inputs));
    const size_t n = json_array_size(inputs);
    if (n > CLV__MAX_IN) BAD(r, "%zu inputs, the most is %d", n, CLV__MAX_IN);
    for (size_t i = 0; i < n; i++) CLV_TRY(value_of(r, json_array_get(inputs, i), &in[i]));
    CLV_TRY(attributes_of(r, op, json_object_get(object, "attributes"), &a));
    CLV_TRY(call(r, object, op, in, (int)n, &a, &r->node[r->n_nodes]));
    return set_gradient(r, object, r->node[r->n_nodes++]);
}

static clv_status read_output(reading *r, const json_t *pair) {
    clv_tensor *tensor;
    const char *name = json_string_value(json_array_get(pair, 1));
    if (!json_is_array(pair) || !name || json_is_string(json_array_get(pair, 0)))
        BAD(r, "it is no pair of a result and a name");
    CLV_TRY(value_of(r, json_array_get(pair, 0), &tensor));
    if (!tensor) BAD(r, "it is no pair of a result and a name");
    clv_output(tensor, name);
    return built(r);
}

// ---- the whole ------------------------------------------------------------------------------------------------------

static clv_status each(reading *r, const json_t *root, const char *key, const char *title,
                       clv_status (*read)(reading *r, const json_t *object)) {
    const json_t *list;
    snprintf(r->at, sizeof r->at, "the graph");
    CLV_TRY(want_list(r, root, key, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        snprintf(r->at, sizeof r->at, "%s %zu", title, i);
        CLV_TRY(read(r, json_array_get(list, i)));
    }
    return CLV_OK;
}

static clv_status build(reading *r, const json_t *root) {
    const json_t *version = json_object_get(root, "version"), *training = json_object_get(root, "training");
    const int precision =
        word_of(json_string_value(json_object_get(root, "precision")), clv__precision_words);
    if (!json_is_integer(version)) BAD(r, "no whole number 'version'");
    if (json_integer_value(version) != CLV__GRAPH_VERSION)
        return bad(r, CLV_E_UNSUPPORTED, "it is of version %lld; this Cleave reads version %d",
                   (long long)json_integer_value(version), CLV__GRAPH_VERSION);
    if (!json_is_boolean(training)) BAD(r, "'training' is neither true nor false");
    if (precision < 0) BAD(r, "'precision' is none of f32, mixed and mixed-bf16");
    clv_graph_set_training(r->graph, json_is_true(training));
    clv_graph_set_precision(r->graph, (clv_precision)precision);
    r->node = clv__alloc(json_array_size(json_object_get(root, "nodes")) + 1, sizeof *r->node);
    if (!r->node) return bad(r, CLV_E_HOST_MEMORY, "no host memory for its nodes");
    CLV_TRY(each(r, root, "inputs", "input", read_input));
    CLV_TRY(each(r, root, "state", "state tensor", read_state));
    CLV_TRY(each(r, root, "nodes", "node", read_node));
    return each(r, root, "outputs", "output", read_output);
}

static clv_status parse(reading *r) {
    json_error_t fault;
    const char *text = clv_archive_text(r->archive, CLV__GRAPH_KEY);
    if (!text)
        CLV_FAIL(r->error, CLV_E_FORMAT, "'%s' holds no graph: its metadata has no '%s'", r->path,
                 CLV__GRAPH_KEY);
    snprintf(r->at, sizeof r->at, "the graph");
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &fault);
    if (!root) BAD(r, "it is no JSON: %s", clv__shown(fault.text, &(clv__shown_text){0}));
    const clv_status status = build(r, root);
    json_decref(root);
    free(r->node);
    return status;
}

clv_status clv__graph_from_archive(clv_graph *graph, const clv_archive *archive, const char *path) {
    clv__error *error = clv__runtime_error_of(graph->runtime);
    CLV_TRY(clv__graph_built(graph));
    if (graph->n_tensors)
        CLV_FAIL(error, CLV_E_STATE, "a graph is read into an empty one; this one has tensors");
    reading r = {.graph = graph, .archive = archive, .path = path, .error = error};
    const clv_status status = parse(&r);
    if (status != CLV_OK) clv__graph_fail(graph, status, "the graph of '%s' could not be read", path);
    return status;
}

clv_status clv_graph_read(clv_graph *graph, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, graph));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(graph->runtime), path));
    clv_archive *archive;
    CLV_TRY(clv_safetensors_read(graph->runtime, path, &archive));
    const clv_status status = clv__graph_from_archive(graph, archive, path);
    clv_archive_destroy(archive);
    return status;
}
