// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX file: refused with a sentence, or decoded to a model in which every number leads somewhere, every byte can be
// read, each node stands after those that it reads, and which is no larger than the file is worth.
#include "fuzz/fuzz.h"

#include "cleave/cleave.h"
#include "onnx/import.h"
#include "onnx/reader.h"

static unsigned sum; // of all bytes that a model leads to

static void touch(const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) sum += ((const unsigned char *)bytes)[i];
}

static void touch_text(clv__onnx_text text) {
    REQUIRE(text.data);
    touch(text.data, text.n);
}

static void touch_tensor(const clv__onnx_tensor *t) {
    int64_t numel = 1;
    touch_text(t->name);
    for (size_t i = 0; i < t->rank; i++) numel *= t->dims[i];
    REQUIRE(numel == t->numel && numel >= 0);
    if (t->dtype == CLV__ONNX_STRING) {
        for (int64_t i = 0; i < numel; i++) touch_text(t->strings[i]);
        return;
    }
    const size_t bits = (size_t)numel * (size_t)clv__onnx_dtype_bits(t->dtype);
    REQUIRE(t->n_bytes == (bits + 7) / 8 && t->bytes);
    touch(t->bytes, t->n_bytes);
}

static void touch_infos(const clv__onnx_model *m, const clv__onnx_info *infos, size_t n, bool must_be) {
    for (size_t i = 0; i < n; i++) {
        touch_text(infos[i].name);
        REQUIRE((infos[i].value == CLV__ONNX_NO_VALUE && !must_be) || infos[i].value < m->n_values);
        for (size_t k = 0; k < infos[i].rank; k++) {
            REQUIRE(infos[i].dims[k].size >= -1);
            touch_text(infos[i].dims[k].name);
        }
    }
}

static void walk(const clv__onnx_model *m, const clv__onnx_graph *g, int depth);

static void touch_attribute(const clv__onnx_model *m, const clv__onnx_attribute *a, int depth) {
    touch_text(a->name);
    touch_text(a->s);
    REQUIRE(a->ref_attr_name.n == 0 && a->type != CLV__ONNX_ATTRIBUTE_NONE);
    if (a->t) touch_tensor(a->t);
    if (a->g) walk(m, a->g, depth + 1);
    REQUIRE(a->n == 0 || a->floats || a->ints || a->strings || a->tensors || a->graphs);
    for (size_t i = 0; i < a->n; i++) {
        if (a->floats) touch(&a->floats[i], sizeof(float));
        if (a->ints) touch(&a->ints[i], sizeof(int64_t));
        if (a->strings) touch_text(a->strings[i]);
        if (a->tensors) touch_tensor(&a->tensors[i]);
        if (a->graphs) walk(m, &a->graphs[i], depth + 1);
    }
}

static void touch_node(const clv__onnx_model *m, const clv__onnx_graph *g, const clv__onnx_node *node,
                       int depth) {
    clv__onnx_node_text room;
    touch(&room, strlen(clv__onnx_node_shown(node, &room)));
    REQUIRE(node->op_type.n > 0);
    for (size_t i = 0; i < node->n_inputs; i++) {
        touch_text(node->inputs[i]);
        REQUIRE((node->inputs[i].n == 0) == (node->input_values[i] == CLV__ONNX_NO_VALUE));
        if (node->inputs[i].n == 0) continue;
        REQUIRE(node->input_values[i] < m->n_values);
        const clv__onnx_value *v = &m->values[node->input_values[i]];
        const bool renamed = v->initializer && v->graph != &m->graph && v->name.n > node->inputs[i].n &&
                             !memcmp(v->name.data, node->inputs[i].data, node->inputs[i].n);
        REQUIRE((renamed || clv__onnx_text_equal(v->name, node->inputs[i])) && !v->sparse);
        if (v->graph == g && v->node) REQUIRE(v->node < node);
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        touch_text(node->outputs[i]);
        if (node->outputs[i].n == 0) continue;
        REQUIRE(node->output_values[i] < m->n_values);
        const clv__onnx_value *v = &m->values[node->output_values[i]];
        REQUIRE(v->node == node && v->output == i && v->graph == g);
    }
    for (size_t i = 0; i < node->n_attributes; i++) touch_attribute(m, &node->attributes[i], depth);
}

static void walk(const clv__onnx_model *m, const clv__onnx_graph *g, int depth) {
    REQUIRE(depth <= CLV__ONNX_DEEPEST);
    for (size_t i = 0; i < g->n_nodes; i++) touch_node(m, g, &g->nodes[i], depth);
    for (size_t i = 0; i < g->n_initializers; i++) {
        touch_tensor(&g->initializers[i]);
        REQUIRE(g->initializers[i].value < m->n_values);
        REQUIRE(m->values[g->initializers[i].value].initializer == &g->initializers[i]);
    }
    touch_infos(m, g->inputs, g->n_inputs, true);
    touch_infos(m, g->outputs, g->n_outputs, true);
    touch_infos(m, g->value_infos, g->n_value_infos, false);
    for (size_t i = 0; i < g->n_sparse; i++) touch_text(g->sparse[i]);
}

/** A graph of it, with inputs of few numbers: built, or refused with a sentence. */
static void build(const clv__onnx_model *model) {
    static clv_runtime *runtime;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_tensor *inputs[8], *outputs[8] = {NULL};
    clv_graph *graph;
    int n = 0;
    if (!runtime) REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    REQUIRE(clv_graph_create(runtime, &graph) == CLV_OK);
    for (size_t i = 0; i < model->graph.n_inputs && n < 8; i++) {
        const clv__onnx_info *info = &model->graph.inputs[i];
        clv_shape shape = {.rank = info->rank <= 4 ? (int)info->rank : 4};
        char name[16];
        if (model->values[info->value].initializer) continue;
        for (int d = 0; d < shape.rank; d++)
            shape.dims[d] = info->dims[d].size > 0 && info->dims[d].size < 6 ? info->dims[d].size : 2;
        snprintf(name, sizeof name, "%d", n);
        const bool is_float = clv__onnx_is_float((int)info->dtype);
        inputs[n++] = clv_input(graph, name, is_float ? CLV_DTYPE_F32 : CLV_DTYPE_I32, shape);
    }
    if (n && n < 8 && model->graph.n_outputs <= 8) {
        clv__onnx_build(model, model->graph.n_nodes % 3 == 0 ? 3 : 0, inputs, outputs);
        if (clv_graph_status(graph) != CLV_OK) REQUIRE(*clv_runtime_error(runtime));
    }
    clv_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clv__error error;
    clv__onnx_model *model = NULL;
    clv__error_init(&error);
    clv_status status = clv__onnx_open_bytes(&error, "x", data, size, &model);
    REQUIRE((status == CLV_OK) == (model != NULL));
    if (status == CLV_OK) {
        walk(model, &model->graph, 1);
        build(model);
        const size_t fair = CLV__ONNX_FACTOR * size + 4096; // of a file without calls
        REQUIRE(model->held_bytes <= fair + (model->n_functions ? CLV__ONNX_MORE_BYTES : 0));
    } else {
        require_sentence(&error, status);
    }
    clv__onnx_close(model);
    clv__error_destroy(&error);
    return 0;
}
