// SPDX-License-Identifier: Apache-2.0
// A file's nodes, one after the other: what is known is computed, what is not is built.
#include "onnx/import.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "device/device.h"
#include "graph/graph.h"
#include "io/shown.h"
#include "onnx/known.h"

typedef struct clv__import {
    const clv__onnx_model *model;
    clv_graph *graph;
    clv__made *made; // by the model's numbers of values
    struct {
        const clv__onnx_tensor *data;
        int axis;
    } last[2];       // of the last layer: initializers whose axis is of classes
    int64_t classes; // of those; 0: as they stand
    char layer[256]; // of the last node; "": of none yet
} importer;

// ---- failures -------------------------------------------------------------------------------------------------------

bool clv__onnx_failed(const clv__onnx_use *use) {
    return use->graph->error.status != CLV_OK;
}

void clv__onnx_fail(clv__onnx_use *use, clv_status status, const char *format, ...) {
    if (clv__onnx_failed(use)) return;
    char text[CLV__ERROR_BYTES / 2];
    clv__onnx_node_text node;
    va_list args;
    va_start(args, format);
    clv__format_list(text, sizeof text, format, args);
    va_end(args);
    clv__graph_fail(use->graph, status, "%s: %s", clv__onnx_node_shown(use->node, &node), text);
}

// ---- inputs ---------------------------------------------------------------------------------------------------------

bool clv__onnx_is_float(int type) {
    return type == CLV__ONNX_FLOAT || type == CLV__ONNX_FLOAT16 || type == CLV__ONNX_DOUBLE ||
           type == CLV__ONNX_BFLOAT16;
}

bool clv__onnx_of_floats(const clv__onnx_use *use) {
    return use->n_in > 0 && use->in[0] && clv__onnx_is_float(use->in[0]->type);
}

static clv_shape shape_of_data(const clv__onnx_tensor *data) {
    clv_shape shape = {.rank = (int)data->rank};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = data->dims[i];
    return shape;
}

/** An initializer of floats with a rank is a parameter, one that is a number alone a constant. */
static clv_tensor *persistent_of(clv__onnx_use *use, const clv__made *value, bool trained) {
    char name[512];
    if (value->name.n >= sizeof name) {
        clv__onnx_fail(use, CLV_E_VALUE, "the name of an initializer is longer than %zu bytes",
                       sizeof name - 1);
        return NULL;
    }
    memcpy(name, value->name.data, value->name.n);
    name[value->name.n] = 0;
    const clv__desc desc = {.dtype = CLV_DTYPE_F32, .shape = shape_of_data(value->data)};
    return clv__persistent(use->graph, name, desc, (clv_init){.kind = CLV_INIT_ZEROS}, CLV_PARAMETERS,
                           trained);
}

static clv_tensor *tensor_of(clv__onnx_use *use, clv__made *value) {
    if (value->tensor || clv__onnx_failed(use)) return value->tensor;
    const bool parameter = value->data && clv__onnx_is_float(value->type) && value->data->rank > 0;
    if (parameter) return value->tensor = persistent_of(use, value, true);
    if (!value->known && value->data) value->known = clv__known_of(use, value->data, INT64_MAX);
    if (value->known) value->tensor = clv__onnx_constant(use, value->known);
    return value->tensor;
}

clv_tensor *clv__onnx_in(clv__onnx_use *use, int i) {
    return clv__onnx_has(use, i) ? tensor_of(use, use->in[i]) : NULL;
}

clv_tensor *clv__onnx_buffer(clv__onnx_use *use, int i) {
    clv__made *value = clv__onnx_has(use, i) ? use->in[i] : NULL;
    if (value && !value->tensor && value->data && clv__onnx_is_float(value->type))
        value->tensor = persistent_of(use, value, false);
    return value ? tensor_of(use, value) : NULL;
}

clv_tensor *clv__onnx_float(clv__onnx_use *use, int i) {
    return clv__onnx_as_float(clv__onnx_in(use, i));
}

clv_tensor *clv__onnx_i32(clv__onnx_use *use, int i) {
    return clv__onnx_as_i32(clv__onnx_in(use, i));
}

const clv__known *clv__onnx_if_known(clv__onnx_use *use, int i) {
    clv__made *value = clv__onnx_has(use, i) ? use->in[i] : NULL;
    if (value && !value->known && value->data)
        value->known = clv__known_of(use, value->data, CLV__MOST_KNOWN);
    return value ? value->known : NULL;
}

const clv__known *clv__onnx_known(clv__onnx_use *use, int i) {
    const clv__known *known = clv__onnx_if_known(use, i);
    clv__shown_text shown;
    if (!known && clv__onnx_has(use, i))
        clv__onnx_fail(
            use, CLV_E_UNSUPPORTED,
            "'%s' depends on the values that are fed; a graph has fixed shapes, so it must be known",
            clv__shown_bytes(use->in[i]->name.data, use->in[i]->name.n, &shown));
    else if (!known)
        clv__onnx_fail(use, CLV_E_VALUE, "input %d is left out", i);
    return known;
}

double clv__onnx_number(clv__onnx_use *use, int i, double fallback) {
    if (!clv__onnx_has(use, i)) return fallback;
    const clv__known *known = clv__onnx_known(use, i);
    if (!known) return fallback;
    if (clv_shape_numel(&known->shape) != 1) {
        clv__onnx_fail(use, CLV_E_SHAPE, "input %d must be one number", i);
        return fallback;
    }
    return known->v[0];
}

/** A double as a whole number: what is past the ends of i64 is that end. */
static int64_t whole(double value) {
    return value >= 9.2e18 ? INT64_MAX : value <= -9.2e18 ? INT64_MIN : (int64_t)value;
}

int clv__onnx_numbers(clv__onnx_use *use, int i, int64_t *out, int most) {
    const clv__known *known = clv__onnx_known(use, i);
    if (!known) return -1;
    const int64_t n = clv_shape_numel(&known->shape);
    if (known->shape.rank > 1 || n > most) {
        clv__onnx_fail(use, CLV_E_SHAPE, "input %d must be a list of at most %d numbers", i, most);
        return -1;
    }
    for (int64_t k = 0; k < n; k++) out[k] = whole(known->v[k]);
    return (int)n;
}

clv_shape clv__onnx_shape(clv__onnx_use *use, int i) {
    const clv__made *value = clv__onnx_has(use, i) ? use->in[i] : NULL;
    if (value && value->known) return value->known->shape;
    if (value && value->data) return shape_of_data(value->data);
    return value && value->tensor ? clv_tensor_shape(value->tensor) : (clv_shape){0};
}

// ---- attributes -----------------------------------------------------------------------------------------------------

int64_t clv__onnx_int(const clv__onnx_use *use, const char *name, int64_t fallback) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    return one ? one->i : fallback;
}

double clv__onnx_real(const clv__onnx_use *use, const char *name, double fallback) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    return one ? (double)one->f : fallback;
}

bool clv__onnx_word(const clv__onnx_use *use, const char *name, const char *word, bool is_default) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    return one ? one->s.n == strlen(word) && !memcmp(one->s.data, word, one->s.n) : is_default;
}

int clv__onnx_ints(clv__onnx_use *use, const char *name, int64_t *out, int most) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    if (!one) return 0;
    if (one->n > (size_t)most) {
        clv__onnx_fail(use, CLV_E_VALUE, "%s has %zu numbers, and %d are the most", name, one->n, most);
        return 0;
    }
    for (size_t i = 0; i < one->n; i++) out[i] = one->ints[i];
    return (int)one->n;
}

int clv__onnx_axis(clv__onnx_use *use, int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) {
        clv__onnx_fail(use, CLV_E_VALUE, "axis %lld of rank %d", (long long)axis, rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

// ---- outputs --------------------------------------------------------------------------------------------------------

void clv__onnx_give_type(clv__onnx_use *use, int i, clv_tensor *tensor, int type) {
    if (i >= use->n_out || !use->out[i]) return;
    use->out[i]->tensor = tensor;
    use->out[i]->type = type;
}

void clv__onnx_give(clv__onnx_use *use, int i, clv_tensor *tensor) {
    clv__onnx_give_type(use, i, tensor, use->n_in && use->in[0] ? use->in[0]->type : CLV__ONNX_FLOAT);
}

clv__known *clv__onnx_new_known(clv__onnx_use *use, int type, clv_shape shape) {
    const int64_t n = clv_shape_numel(&shape);
    clv__known *known = n >= 0 ? clv__arena_alloc(&use->graph->arena, 1, sizeof *known) : NULL;
    if (known)
        *known =
            (clv__known){type, shape, clv__arena_alloc(&use->graph->arena, (size_t)n + 1, sizeof(double))};
    if (!known || !known->v) {
        clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %lld numbers", (long long)n);
        return NULL;
    }
    return known;
}

void clv__onnx_give_known(clv__onnx_use *use, int i, const clv__known *known) {
    if (i >= use->n_out || !use->out[i] || !known) return;
    use->out[i]->known = known;
    use->out[i]->type = known->type;
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

const clv__onnx_row *clv__onnx_row_of(const clv__onnx_node *node) {
    static const clv__onnx_row *const tables[] = {
        clv__onnx_elementwise, clv__onnx_moves,     clv__onnx_products, clv__onnx_norms,
        clv__onnx_reductions,  clv__onnx_attention, clv__onnx_einsum,   clv__onnx_losses,
        clv__onnx_quantized,   clv__onnx_recurrent, clv__onnx_resize,   clv__onnx_scans,
        clv__onnx_signal,      clv__onnx_bits,      clv__onnx_newer};
    if (node->domain.n) return NULL;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const clv__onnx_row *row = tables[t]; row->op; row++)
            if (clv__onnx_text_is(node->op_type, row->op)) return row;
    return NULL;
}

/** Are all inputs known? Then the result may be, too. Initializers of floats are not looked at: they are parameters. */
static bool all_known(clv__onnx_use *use) {
    for (int i = 0; i < use->n_in; i++) {
        const clv__made *value = use->in[i];
        if (!value) continue;
        const bool parameter = value->data && clv__onnx_is_float(value->type) && value->data->rank > 0;
        if (parameter || !clv__onnx_if_known(use, i)) return false;
    }
    return true;
}

static const clv__onnx_fold *fold_of(const clv__onnx_node *node) {
    static const clv__onnx_fold *const tables[] = {clv__onnx_folds, clv__onnx_more_folds};
    for (int t = 0; t < 2 && !node->domain.n; t++)
        for (const clv__onnx_fold *row = tables[t]; row->op; row++)
            if (clv__onnx_text_is(node->op_type, row->op)) return row;
    return NULL;
}

bool clv__onnx_folds_it(const clv__onnx_node *node) {
    return fold_of(node) != NULL;
}

static bool fold(clv__onnx_use *use) {
    const clv__onnx_fold *row = fold_of(use->node);
    return row && row->fold(use);
}

/** The layer of a node: what the name of its first parameter has before the last dot; without one, that of the node before. */
static const char *layer_of(importer *im, const clv__onnx_use *use) {
    for (int i = 0; i < use->n_in; i++) {
        const clv__made *value = use->in[i];
        if (!value || !value->data || !clv__onnx_is_float(value->type) || !value->data->rank) continue;
        size_t n = value->name.n;
        while (n && value->name.data[n - 1] != '.') n--;
        if (n < 2 || n > sizeof im->layer) continue;
        memcpy(im->layer, value->name.data, n - 1);
        im->layer[n - 1] = 0;
        break;
    }
    return im->layer;
}

static void build_node(importer *im, const clv__onnx_node *node) {
    clv__onnx_use use = {.import = im, .graph = im->graph, .node = node, .opset = (int)node->opset};
    use.in = clv__arena_alloc(&im->graph->arena, node->n_inputs + 1, sizeof(void *));
    use.out = clv__arena_alloc(&im->graph->arena, node->n_outputs + 1, sizeof(void *));
    if (!use.in || !use.out) {
        clv__graph_fail(im->graph, CLV_E_HOST_MEMORY, "no memory for a node");
        return;
    }
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (node->input_values[i] == CLV__ONNX_NO_VALUE) continue;
        use.in[i] = &im->made[node->input_values[i]];
        use.n_in = (int)i + 1;
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (node->output_values[i] == CLV__ONNX_NO_VALUE) continue;
        use.out[i] = &im->made[node->output_values[i]];
        use.n_out = (int)i + 1;
    }
    if (all_known(&use) && fold(&use)) return;
    const clv__onnx_row *row = clv__onnx_row_of(node);
    if (!row) { // a model is asked for such before anything is built (clv__onnx_missing)
        clv__onnx_fail(&use, CLV_E_UNSUPPORTED, "Cleave has no such op");
        return;
    }
    const bool has_layer = *layer_of(im, &use);
    if (has_layer) clv_scope_push(im->graph, im->layer);
    row->build(&use);
    if (has_layer) clv_scope_pop(im->graph);
    if (use.n_out && use.out[0] && !use.out[0]->tensor && !use.out[0]->known)
        clv__onnx_fail(&use, CLV_E_UNSUPPORTED, "its result cannot be built");
}

/** The last layer: the node that the only result is made by, behind what only moves numbers. */
static void find_last(importer *im) {
    const clv__onnx_model *model = im->model;
    const clv__onnx_node *node = model->values[model->graph.outputs[0].value].node;
    int n = 0;
    while (node && node->n_inputs) {
        const bool gemm = clv__onnx_text_is(node->op_type, "Gemm"),
                   sum = clv__onnx_text_is(node->op_type, "Add"),
                   product = clv__onnx_text_is(node->op_type, "MatMul");
        const clv__onnx_attribute *turned = clv__onnx_attribute_find(node, "transB");
        for (size_t i = 0; i < node->n_inputs; i++) {
            const clv__onnx_tensor *data = node->input_values[i] == CLV__ONNX_NO_VALUE
                                               ? NULL
                                               : model->values[node->input_values[i]].initializer;
            if (!data || !data->rank || n == 2) continue;
            im->last[n].data = data;
            im->last[n++].axis = gemm && i == 1 && turned && turned->i ? 0 : (int)data->rank - 1;
        }
        if (gemm || product || !(sum || clv__onnx_text_is(node->op_type, "Identity"))) return;
        size_t from = 0; // a sum with a bias: the other one
        if (sum && model->values[node->input_values[0]].initializer) from = 1;
        node = model->values[node->input_values[from]].node;
    }
}

void clv__onnx_build(const clv__onnx_model *model, int64_t classes, clv_tensor *const *inputs,
                     clv_tensor **outputs) {
    clv_graph *graph = clv_tensor_graph(inputs[0]);
    const clv__onnx_graph *file = &model->graph;
    importer im = {.model = model, .graph = graph, .classes = classes};
    if (classes && file->n_outputs == 1) find_last(&im);
    im.made = clv__arena_alloc(&graph->arena, (size_t)model->n_values + 1, sizeof *im.made);
    if (!im.made) {
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no memory for %zu values", (size_t)model->n_values);
        return;
    }
    for (uint32_t i = 0; i < model->n_values; i++) {
        const clv__onnx_tensor *data = model->values[i].initializer;
        im.made[i] =
            (clv__made){.name = model->values[i].name, .data = data, .type = data ? (int)data->dtype : 0};
    }
    size_t fed = 0;
    for (size_t i = 0; i < file->n_inputs; i++) {
        clv__made *value = &im.made[file->inputs[i].value];
        if (value->data) continue; // an initializer that may be fed, and is not
        value->tensor = inputs[fed++];
        value->type = (int)file->inputs[i].dtype;
    }
    for (size_t i = 0; i < file->n_nodes && graph->error.status == CLV_OK; i++)
        build_node(&im, &file->nodes[i]);
    for (size_t i = 0; i < file->n_outputs && graph->error.status == CLV_OK; i++) {
        const clv__onnx_node none = {.name = file->outputs[i].name};
        clv__onnx_use use = {.import = &im, .graph = graph, .node = &none};
        outputs[i] = tensor_of(&use, &im.made[file->outputs[i].value]);
        if (outputs[i] && !outputs[i]->node) outputs[i] = clv_detach(outputs[i]); // nothing computes it
        if (!outputs[i]) clv__onnx_fail(&use, CLV_E_VALUE, "nothing makes this output");
    }
}
