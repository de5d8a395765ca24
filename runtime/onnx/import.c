// SPDX-License-Identifier: Apache-2.0
// A file's nodes, one after the other: what is known is computed, what is not is built.
#include "onnx/import.h"

#include <string.h>

#include "graph/graph.h"
#include "onnx/shapes.h"

typedef struct clv__import {
    const clv__onnx_model *model;
    clv_graph *graph;
    clv__made *made; // by the model's numbers of values
    clv__flow flow;
    int64_t known_left;
    clv__batches batches;
    char layer[256]; // of the last node; "": of none yet
} importer;

// ---- nodes ----------------------------------------------------------------------------------------------------------

const clv__onnx_table clv__onnx_tables[] = {
    {clv__onnx_elementwise, CLV__ONNX_EITHER}, {clv__onnx_moves, CLV__ONNX_EITHER},
    {clv__onnx_known_rows, CLV__ONNX_HOST},    {clv__onnx_products, CLV__ONNX_DEVICE},
    {clv__onnx_norms, CLV__ONNX_DEVICE},       {clv__onnx_reductions, CLV__ONNX_EITHER},
    {clv__onnx_scans, CLV__ONNX_EITHER},       {clv__onnx_attention, CLV__ONNX_DEVICE},
    {clv__onnx_einsum, CLV__ONNX_DEVICE},      {clv__onnx_losses, CLV__ONNX_DEVICE},
    {clv__onnx_quantized, CLV__ONNX_DEVICE},   {clv__onnx_recurrent, CLV__ONNX_DEVICE},
    {clv__onnx_resize, CLV__ONNX_DEVICE},      {clv__onnx_signal, CLV__ONNX_DEVICE},
    {clv__onnx_windows, CLV__ONNX_HOST},       {clv__onnx_bits, CLV__ONNX_DEVICE},
    {clv__onnx_newer, CLV__ONNX_DEVICE},       {clv__onnx_sequences, CLV__ONNX_DEVICE},
    {clv__onnx_control, CLV__ONNX_FLOW},       {clv__onnx_random, CLV__ONNX_DEVICE},
    {clv__onnx_microsoft, CLV__ONNX_DEVICE},   {NULL, CLV__ONNX_DEVICE},
};

const clv__onnx_row *clv__onnx_row_of(const clv__onnx_node *node, clv__onnx_side *side) {
    const bool microsoft = clv__onnx_text_is(node->domain, "com.microsoft");
    for (const clv__onnx_table *table = clv__onnx_tables; table->rows; table++) {
        const bool of_domain = table->rows == clv__onnx_microsoft ? microsoft : !node->domain.n;
        for (const clv__onnx_row *row = table->rows; of_domain && row->op; row++)
            if (clv__onnx_text_is(node->op_type, row->op)) {
                *side = table->side;
                return row;
            }
    }
    return NULL;
}

static bool all_known(clv__onnx_use *use) {
    for (int i = 0; i < use->n_in; i++)
        if (use->in[i] && (!clv__onnx_may_look(use->in[i]) || !clv__onnx_if_known(use, i))) return false;
    return true;
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

/** Is it a constant that a turn before has made? Its numbers count once. */
static bool is_there(const importer *im, const clv__onnx_node *node) {
    return im->flow.loops && !node->n_inputs && node->n_outputs == 1 &&
           clv__onnx_text_is(node->op_type, "Constant") && node->output_values[0] != CLV__ONNX_NO_VALUE &&
           im->made[node->output_values[0]].known;
}

/**
 * Quantised weights become floats just before the first node that reads them, not where the file has that: so those of one layer are there
 * at a time. `now`: this is the time.
 */
static bool waits(importer *im, const clv__onnx_node *node, bool now) {
    if (now || !clv__onnx_text_is(node->op_type, "DequantizeLinear") || node->n_outputs != 1 ||
        !node->n_inputs || node->input_values[0] == CLV__ONNX_NO_VALUE ||
        node->output_values[0] == CLV__ONNX_NO_VALUE ||
        !clv__onnx_stays_small(&im->made[node->input_values[0]]))
        return false;
    clv__made *value = &im->made[node->output_values[0]];
    *value = (clv__made){.name = value->name, .later = node};
    return true;
}

static void build_node(importer *im, const clv__onnx_node *node, bool now);

static void build_waiting(importer *im, clv__made *value) {
    const clv__onnx_node *node = value->later;
    value->later = NULL;
    if (node) build_node(im, node, true);
}

/** What an op of ours says gets the file's node before it, as what rows say has. */
static void tell_node(clv_graph *graph, const clv__onnx_node *node) {
    clv__onnx_node_text room;
    if (graph->error.status != CLV_OK && graph->error.status != CLV_E_HOST_MEMORY &&
        strncmp(clv__error_text(&graph->error), "node ", 5) != 0)
        clv__error_prefix(&graph->error, "%s: ", clv__onnx_node_shown(node, &room));
}

static void build_node(importer *im, const clv__onnx_node *node, bool now) {
    if (is_there(im, node) || waits(im, node, now)) return;
    clv__onnx_use use = {.import = im,
                         .known_left = &im->known_left,
                         .batches = im->batches,
                         .graph = im->graph,
                         .node = node,
                         .flow = &im->flow,
                         .opset = (int)node->opset};
    use.in = clv__arena_alloc(&im->graph->arena, node->n_inputs + 1, sizeof(void *));
    use.out = clv__arena_alloc(&im->graph->arena, node->n_outputs + 1, sizeof(void *));
    if (!use.in || !use.out) {
        clv__graph_fail(im->graph, CLV_E_HOST_MEMORY, "no memory for a node");
        return;
    }
    bool fed = false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        if (node->input_values[i] == CLV__ONNX_NO_VALUE) continue;
        use.in[i] = &im->made[node->input_values[i]];
        build_waiting(im, use.in[i]);
        use.n_in = (int)i + 1;
        fed = fed || use.in[i]->fed;
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (node->output_values[i] == CLV__ONNX_NO_VALUE) continue;
        use.out[i] = &im->made[node->output_values[i]];
        *use.out[i] = (clv__made){.name = use.out[i]->name, .fed = fed}; // of the turn before, too
        use.n_out = (int)i + 1;
    }
    clv__onnx_side side;
    const clv__onnx_row *row = use.row = clv__onnx_row_of(node, &side);
    if (!row) { // clv__onnx_check_ops found most before
        clv__onnx_fail(&use, CLV_E_UNSUPPORTED, "Cleave has no such op");
        return;
    }
    if (side == CLV__ONNX_EITHER && all_known(&use) && clv__onnx_fold(&use)) return;
    if (side == CLV__ONNX_FLOW) {
        row->build(&use);
    } else {
        const size_t before = im->graph->n_nodes;
        const bool has_layer = *layer_of(im, &use);
        if (has_layer) clv_scope_push(im->graph, im->layer);
        row->build(&use);
        if (has_layer) clv_scope_pop(im->graph);
        clv__onnx_follow_batch(&use);
        if (im->flow.loops) im->flow.left -= (int64_t)(im->graph->n_nodes - before);
    }
    const clv__made *made = use.n_out ? use.out[0] : NULL;
    if (made && !made->tensor && !made->known && !made->data && !made->parts && !made->none)
        clv__onnx_fail(&use, CLV_E_UNSUPPORTED, "its result cannot be built");
    tell_node(im->graph, node);
}

// ---- the whole file -------------------------------------------------------------------------------------------------

size_t clv__onnx_class_values(const clv__onnx_model *model,
                              clv__onnx_class_value out[CLV__ONNX_CLASS_VALUES]) {
    const clv__onnx_node *node = model->values[model->graph.outputs[0].value].node;
    size_t n = 0;
    while (node && node->n_inputs) {
        const bool gemm = clv__onnx_text_is(node->op_type, "Gemm"),
                   sum = clv__onnx_text_is(node->op_type, "Add"),
                   product = clv__onnx_text_is(node->op_type, "MatMul");
        const clv__onnx_attribute *turned = clv__onnx_attribute_find(node, "transB");
        if (!gemm && !sum && !product && !clv__onnx_text_is(node->op_type, "Identity")) break;
        const clv__onnx_node *before = NULL;
        for (size_t i = 0; i < node->n_inputs; i++) {
            if (node->input_values[i] == CLV__ONNX_NO_VALUE) continue;
            const clv__onnx_value *value = &model->values[node->input_values[i]];
            const clv__onnx_tensor *data = value->initializer;
            if (data && data->rank && n < CLV__ONNX_CLASS_VALUES)
                out[n++] = (clv__onnx_class_value){
                    node->input_values[i], gemm && i == 1 && turned && turned->i ? 0 : (int)data->rank - 1};
            else if (!data && !before)
                before = value->node;
        }
        if (gemm || product) break;
        node = before;
    }
    return n;
}

int64_t clv__onnx_batch_of(const clv__onnx_model *model) {
    const clv__onnx_graph *file = &model->graph;
    int64_t batch = 0;
    for (size_t i = 0; i < file->n_inputs; i++) {
        const clv__onnx_info *input = &file->inputs[i];
        if (model->values[input->value].initializer) continue;
        const int64_t size = input->rank ? input->dims[0].size : 0;
        if (size < 1 || (batch && size != batch)) return 0;
        batch = size;
    }
    return batch;
}

/** What a file says for its own batch was carried over to another where that can be seen; a result that was not is refused. */
static void check_batch(clv__onnx_use *use, clv_tensor *output) {
    const clv__batches b = use->batches;
    const clv_shape shape = output ? clv_tensor_shape(output) : (clv_shape){0};
    const bool follows = (shape.rank && shape.dims[0] == b.now) || (shape.rank > 1 && shape.dims[1] == b.now);
    if (output && b.of_file && b.of_file != b.now && !follows)
        clv__onnx_fail(
            use, CLV_E_UNSUPPORTED,
            "the file was written for a batch of %lld, and this result does not follow one of %lld: export "
            "the model with a batch that varies (dynamic_shapes or dynamic_axes), or use batches of %lld",
            (long long)b.of_file, (long long)b.now, (long long)b.of_file);
}

/** Which of a graph's nodes; -1: of another graph, or none. */
static int64_t number_of(const clv__onnx_graph *file, const clv__onnx_node *node) {
    return node >= file->nodes && node < file->nodes + file->n_nodes ? node - file->nodes : -1;
}

int64_t clv__onnx_build_in(const clv__onnx_model *model, clv_graph *graph, int64_t classes,
                           clv_tensor *const *inputs, clv_tensor **outputs) {
    const clv__onnx_graph *file = &model->graph;
    importer im = {.model = model,
                   .graph = graph,
                   .known_left = CLV__KNOWN_IN_ALL,
                   .flow = {.build = build_node, .left = CLV__MOST_LOOPED}};
    im.made = clv__arena_alloc(&graph->arena, (size_t)model->n_values + 1, sizeof *im.made);
    if (!im.made) {
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no memory for %zu values", (size_t)model->n_values);
        return -1;
    }
    for (uint32_t i = 0; i < model->n_values; i++) {
        const clv__onnx_tensor *data = model->values[i].initializer;
        im.made[i] =
            (clv__made){.name = model->values[i].name, .data = data, .type = data ? (int)data->dtype : 0};
        im.made[i].buffer = model->values[i].info && model->values[i].info->buffer;
    }
    im.flow.made = im.made;
    clv__onnx_class_value last[CLV__ONNX_CLASS_VALUES];
    const size_t n_last = classes && file->n_outputs == 1 ? clv__onnx_class_values(model, last) : 0;
    for (size_t i = 0; i < n_last; i++) {
        im.made[last[i].value].classes = classes;
        im.made[last[i].value].class_axis = last[i].axis;
    }
    size_t fed = 0;
    for (size_t i = 0; i < file->n_inputs; i++) {
        clv__made *value = &im.made[file->inputs[i].value];
        if (value->data) continue; // an initializer that may be fed, and is not
        value->tensor = inputs[fed++];
        value->type = (int)file->inputs[i].dtype;
        value->fed = true;
    }
    const clv_shape first = fed ? clv_tensor_shape(inputs[0]) : (clv_shape){0};
    im.batches = (clv__batches){clv__onnx_batch_of(model), first.rank ? first.dims[0] : 0};
    for (size_t i = 0; i < file->n_nodes; i++) {
        build_node(&im, &file->nodes[i], false);
        if (graph->error.status != CLV_OK) return (int64_t)i;
    }
    int64_t failed = -1;
    for (size_t i = 0; i < file->n_outputs && graph->error.status == CLV_OK; i++) {
        const clv__onnx_node none = {.name = file->outputs[i].name};
        clv__onnx_use use = {.import = &im,
                             .known_left = &im.known_left,
                             .batches = im.batches,
                             .graph = graph,
                             .node = &none};
        build_waiting(&im, &im.made[file->outputs[i].value]);
        outputs[i] = clv__onnx_tensor_of(&use, &im.made[file->outputs[i].value]);
        if (outputs[i] && !outputs[i]->node) outputs[i] = clv_detach(outputs[i]); // nothing computes it
        if (!outputs[i]) clv__onnx_fail(&use, CLV_E_VALUE, "nothing makes this output");
        check_batch(&use, outputs[i]);
        if (graph->error.status != CLV_OK)
            failed = number_of(file, model->values[file->outputs[i].value].node);
    }
    return failed;
}
