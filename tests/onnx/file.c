// SPDX-License-Identifier: Apache-2.0
// ONNX files: what the format's own package writes is decoded, field by field; what breaks a rule gets its sentence, of which
// the whole is compared. Files with faults are made here, a field at a time.
#include "io/support.h"

#include <unistd.h>

#include "base/text.h"
#include "onnx/reader.h"
#include "message.h"

// ---- what the package writes ------------------------------------------------------------------------------------------

static const char *file_path(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/tests/onnx/files/%s", CLV_TEST_SOURCE_DIR, name);
    return path;
}

static clv__onnx_model *open_file(const char *name) {
    clv__onnx_model *model = NULL;
    expect_ok(clv__onnx_open(support_runtime, file_path(name), &model));
    assert_non_null(model);
    return model;
}

#define assert_text(text, as) assert_text_at((text), (as), __FILE__, __LINE__)
static void assert_text_at(clv__onnx_text text, const char *as, const char *file, int line) {
    if (clv__onnx_text_is(text, as)) return;
    print_error("'%.*s' is not '%s'\n", (int)text.n, text.data, as);
    _fail(file, line);
}

static const clv__onnx_tensor *initializer(const clv__onnx_graph *g, const char *name) {
    for (size_t i = 0; i < g->n_initializers; i++)
        if (clv__onnx_text_is(g->initializers[i].name, name)) return &g->initializers[i];
    fail_msg("no initializer '%s'", name);
    return NULL;
}

TEST(reads_a_model) {
    clv__onnx_model *m = open_file("plain.onnx");
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->version, 5);
    assert_text(m->producer_name, "maker");
    assert_text(m->producer_version, "1.0");
    assert_text(m->domain, "some.where");
    assert_int_equal(m->n_opsets, 2);
    assert_text(m->opsets[0].domain, "");
    assert_int_equal(m->opsets[0].version, 17);
    assert_text(m->opsets[1].domain, "of.somebody");
    assert_int_equal(m->opsets[1].version, 3);
    assert_int_equal(m->n_metadata, 2);
    assert_text(m->metadata[0].key, "key");
    assert_text(m->metadata[0].value, "its value");
    assert_text(m->metadata[1].value, "");
    assert_text(m->graph.name, "plain");
    clv__onnx_close(m);
}

TEST(reads_nodes) {
    clv__onnx_model *m = open_file("plain.onnx");
    const clv__onnx_graph *g = &m->graph;
    clv__onnx_node_text room;
    assert_int_equal(g->n_nodes, 4);
    assert_text(g->nodes[0].name, "product");
    assert_text(g->nodes[0].op_type, "MatMul");
    assert_int_equal(g->nodes[0].n_inputs, 2);
    assert_text(g->nodes[0].inputs[1], "w");
    assert_int_equal(g->nodes[0].opset, 17);
    assert_text(g->nodes[2].name, "");
    assert_int_equal(g->nodes[2].n_inputs, 3);
    assert_int_equal(g->nodes[2].input_values[1], CLV__ONNX_NO_VALUE);
    assert_int_equal(g->nodes[2].output_values[1], CLV__ONNX_NO_VALUE);
    assert_text(g->nodes[3].domain, "");
    assert_int_equal(g->nodes[3].opset, 17);
    assert_string_equal(clv__onnx_node_shown(&g->nodes[0], &room), "node 'product' (MatMul)");
    assert_string_equal(clv__onnx_node_shown(&g->nodes[2], &room), "node (Dropout) of 'd'");
    clv__onnx_close(m);
}

TEST(reads_values) {
    clv__onnx_model *m = open_file("plain.onnx");
    const clv__onnx_graph *g = &m->graph;
    assert_int_equal(m->n_values, 7); // x b w m s d y
    assert_int_equal(g->n_inputs, 2);
    assert_int_equal(g->inputs[0].kind, CLV__ONNX_OF_TENSOR);
    assert_int_equal(g->inputs[0].dtype, CLV__ONNX_FLOAT);
    assert_int_equal(g->inputs[0].rank, 2);
    assert_int_equal(g->inputs[0].dims[0].size, -1);
    assert_text(g->inputs[0].dims[0].name, "N");
    assert_int_equal(g->inputs[0].dims[1].size, 4);
    assert_int_equal(g->outputs[0].dims[1].size, -1);
    assert_text(g->outputs[0].dims[1].name, "");
    assert_int_equal(g->outputs[1].value, g->inputs[0].value);
    const clv__onnx_value *b = &m->values[g->inputs[1].value]; // an input that has a value if none is given
    assert_true(b->input && b->initializer && b->initializer->value == g->inputs[1].value);
    const clv__onnx_value *product = &m->values[g->nodes[1].input_values[0]];
    assert_ptr_equal(product->node, &g->nodes[0]);
    assert_ptr_equal(product->info, &g->value_infos[0]);
    assert_ptr_equal(product->graph, g);
    assert_int_equal(g->value_infos[1].has_shape, false);
    assert_int_equal(g->value_infos[2].kind, CLV__ONNX_OF_SEQUENCE);
    assert_int_equal(g->value_infos[3].value, CLV__ONNX_NO_VALUE);
    const clv__onnx_tensor *w = initializer(g, "w");
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->dims[0], 4);
    assert_int_equal(w->numel, 12);
    for (int i = 0; i < 12; i++) {
        float value;
        memcpy(&value, w->bytes + 4 * i, 4);
        assert_true(value == (float)((i * 7 + 3) % 11));
    }
    // Weights stay in the mapping of the file, a list of floats too.
    const clv__onnx_mapping *file = &m->memory->file;
    assert_in_range((uintptr_t)w->bytes, (uintptr_t)file->bytes, (uintptr_t)file->bytes + file->n);
    assert_in_range((uintptr_t)initializer(g, "b")->bytes, (uintptr_t)file->bytes,
                    (uintptr_t)file->bytes + file->n);
    clv__onnx_close(m);
}

TEST(reads_attributes) {
    clv__onnx_model *m = open_file("attributes.onnx");
    const clv__onnx_node *node = &m->graph.nodes[0];
    const clv__onnx_attribute *a = clv__onnx_attribute_find(node, "f");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_FLOAT && a->f == 1.5f);
    a = clv__onnx_attribute_find(node, "i");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_INT && a->i == -7 && a->n == 0 && !a->ints);
    a = clv__onnx_attribute_find(node, "s");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_STRING && a->s.n == 3 && memcmp(a->s.data, "a\0b", 3) == 0);
    a = clv__onnx_attribute_find(node, "t");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_TENSOR && a->t->numel == 2);
    int64_t second;
    memcpy(&second, a->t->bytes + 8, 8);
    assert_int_equal(second, -6);
    assert_int_equal(a->t->value, CLV__ONNX_NO_VALUE);
    a = clv__onnx_attribute_find(node, "g");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_GRAPH && a->g->n_nodes == 1);
    assert_int_equal(a->g->nodes[0].input_values[0], m->graph.inputs[0].value);
    a = clv__onnx_attribute_find(node, "floats");
    assert_true(a->n == 3 && a->floats[0] == 0.25f && a->floats[1] == -2 && a->floats[2] == 1e30f);
    a = clv__onnx_attribute_find(node, "ints");
    assert_true(a->n == 3 && a->ints[0] == 1 && a->ints[1] == -1 && a->ints[2] == INT64_C(1) << 62);
    a = clv__onnx_attribute_find(node, "strings");
    assert_int_equal(a->n, 3);
    assert_text(a->strings[0], "first");
    assert_text(a->strings[1], "");
    a = clv__onnx_attribute_find(node, "tensors");
    assert_true(a->n == 2 && a->tensors[1].numel == 12);
    a = clv__onnx_attribute_find(node, "graphs");
    assert_int_equal(a->n, 2);
    assert_text(a->graphs[1].nodes[0].op_type, "Neg");
    a = clv__onnx_attribute_find(node, "empty");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_INTS && a->n == 0);
    assert_int_equal(clv__onnx_attribute_find(node, "type")->type, CLV__ONNX_ATTRIBUTE_TYPE);
    a = clv__onnx_attribute_find(node, "old");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_INT && a->i == 3);
    a = clv__onnx_attribute_find(node, "zero");
    assert_true(a->type == CLV__ONNX_ATTRIBUTE_FLOAT && a->f == 0);
    assert_null(clv__onnx_attribute_find(node, "none"));
    clv__onnx_close(m);
}

TEST(reads_each_type) {
    clv__onnx_model *m = open_file("types.onnx");
    int types = 0;
    for (size_t i = 0; i < m->graph.n_initializers; i++) {
        const clv__onnx_tensor *t = &m->graph.initializers[i];
        if (t->rank != 1 || t->dims[0] != 5) continue;
        types++;
        assert_int_equal(t->n_bytes, (5 * (size_t)clv__onnx_dtype_bits(t->dtype) + 7) / 8);
        for (size_t k = 0; k < t->n_bytes; k++) assert_int_equal(t->bytes[k], (k * 37 + 11) % 128);
    }
    assert_int_equal(types, 2 * 25);
    const clv__onnx_tensor *texts = initializer(&m->graph, "texts");
    assert_int_equal(texts->numel, 3);
    assert_text(texts->strings[0], "one");
    assert_text(texts->strings[1], "");
    assert_true(texts->strings[2].n == 6 && memcmp(texts->strings[2].data, "th\0ree", 6) == 0);
    assert_memory_equal(initializer(&m->graph, "negative")->bytes, "\xff\x80\x05", 3);
    const clv__onnx_tensor *scalar = initializer(&m->graph, "scalar");
    assert_true(scalar->rank == 0 && scalar->numel == 1 && scalar->n_bytes == 4);
    const clv__onnx_tensor *nothing = initializer(&m->graph, "nothing");
    assert_true(nothing->rank == 3 && nothing->numel == 0 && nothing->n_bytes == 0);
    assert_string_equal(clv__onnx_dtype_name(CLV__ONNX_BFLOAT16), "bfloat16");
    clv__onnx_close(m);
}

TEST(reads_graphs_in_graphs) {
    clv__onnx_model *m = open_file("nested.onnx");
    const clv__onnx_graph *g = &m->graph;
    // `branch` stands first in the file, and a graph in it reads what `late` makes.
    assert_text(g->nodes[0].name, "late");
    assert_text(g->nodes[1].name, "branch");
    const clv__onnx_graph *then = clv__onnx_attribute_find(&g->nodes[1], "then_branch")->g;
    assert_int_equal(then->nodes[0].input_values[0], g->inputs[0].value);
    assert_int_equal(then->nodes[0].input_values[1], then->initializers[0].value);
    const clv__onnx_value *late = &m->values[then->nodes[1].input_values[1]];
    assert_ptr_equal(late->graph, g);
    assert_ptr_equal(late->node, &g->nodes[0]);
    assert_ptr_equal(m->values[then->outputs[0].value].node, &then->nodes[1]);
    assert_int_equal(then->nodes[1].opset, 17);
    clv__onnx_close(m);
}

TEST(puts_nodes_in_order) {
    clv__onnx_model *m = open_file("unordered.onnx");
    for (size_t i = 0; i < 6; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%zu", i);
        assert_text(m->graph.nodes[i].name, name);
        const clv__onnx_value *made = &m->values[m->graph.nodes[i].output_values[0]];
        assert_ptr_equal(made->node, &m->graph.nodes[i]);
    }
    clv__onnx_close(m);
}

static const clv__onnx_node *node_of(const clv__onnx_graph *g, const char *name) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (clv__onnx_text_is(g->nodes[i].name, name)) return &g->nodes[i];
    fail_msg("no node '%s'", name);
    return NULL;
}

/** Two calls of Outer, which calls Leaf twice, once in a branch of an If. */
TEST(expands_functions) {
    clv__onnx_model *m = open_file("functions.onnx");
    const clv__onnx_graph *g = &m->graph;
    assert_int_equal(m->n_functions, 2);
    assert_text(m->functions[1].name, "Outer");
    assert_int_equal(m->functions[1].n_nodes, 3);
    assert_int_equal(g->n_nodes, 2 * 4 + 1); // Add, LeakyRelu, If, Identity of each
    const clv__onnx_node *add = node_of(g, "first/leaf/add");
    assert_text(add->inputs[0], "x"); // p of Outer, which is both inputs of Leaf
    assert_text(add->inputs[1], "x");
    assert_int_equal(add->n_attributes, 0); // `nowhere` is not given
    assert_int_equal(add->opset, 18);       // the function's, not the model's
    assert_text(add->outputs[0], "first/leaf/mid");
    const clv__onnx_node *leaky = node_of(g, "first/leaf/LeakyRelu");
    assert_true(clv__onnx_attribute_find(leaky, "alpha")->f == 4); // the default of Outer
    // The second call has the same name, and an attribute.
    const clv__onnx_node *last = &g->nodes[0];
    for (size_t i = 0; i < g->n_nodes; i++)
        if (clv__onnx_text_is(g->nodes[i].op_type, "LeakyRelu")) last = &g->nodes[i];
    assert_ptr_not_equal(last, leaky);
    assert_true(clv__onnx_attribute_find(last, "alpha")->f == 9);
    // In the branch Leaf's `a` is the call's p, and `b` its q; alpha is given by nobody.
    const clv__onnx_graph *body = clv__onnx_attribute_find(node_of(g, "first/choose"), "then_branch")->g;
    assert_int_equal(body->n_nodes, 2);
    assert_text(body->nodes[0].inputs[0], "x");
    assert_text(body->nodes[0].inputs[1], "z");
    assert_int_equal(body->nodes[1].n_attributes, 0);
    assert_ptr_equal(m->values[body->outputs[0].value].node, &body->nodes[1]);
    assert_text(node_of(g, "first/choose")->outputs[0], "y1");
    assert_text(node_of(g, "taken")->outputs[0], "first/mid");
    clv__onnx_close(m);
}

TEST(reads_external_data) {
    clv__onnx_model *m = open_file("external.onnx");
    const float wanted[] = {1, -2, 3.5f, 4};
    assert_memory_equal(initializer(&m->graph, "far")->bytes, wanted, sizeof wanted);
    assert_memory_equal(initializer(&m->graph, "rest")->bytes, "\1\2\3", 3);
    assert_int_equal(m->memory->n_beside, 1); // one mapping
    clv__onnx_close(m);
}

// ---- files that are made here -------------------------------------------------------------------------------------------

/** The model is refused, with this sentence. */
static void refuse(message *model, clv_status status, const char *sentence) {
    clv__onnx_model *out = NULL;
    clv__error error;
    clv__error_init(&error);
    uint8_t *exact = malloc(model->n + !model->n); // so that a read past the end is seen
    assert_non_null(exact);
    if (model->n) memcpy(exact, model->bytes, model->n);
    const clv_status got = clv__onnx_open_bytes(&error, "m.onnx", exact, model->n, &out);
    assert_null(out);
    if (sentence) assert_string_equal(error.text, sentence);
    assert_int_equal(got, status);
    assert_non_null(strstr(error.text, "m.onnx"));
    clv__error_destroy(&error);
    free(exact);
    free(model->bytes);
    *model = (message){0};
}

static void refuse_graph(message *graph, clv_status status, const char *sentence) {
    message m = model_of(graph, 17);
    refuse(&m, status, sentence);
}

static void accept(message *model) {
    clv__onnx_model *out = NULL;
    clv__error error;
    clv__error_init(&error);
    const clv_status got = clv__onnx_open_bytes(&error, "m.onnx", model->bytes, model->n, &out);
    assert_string_equal(error.text, "");
    assert_int_equal(got, CLV_OK);
    clv__onnx_close(out);
    clv__error_destroy(&error);
    free(model->bytes);
    *model = (message){0};
}

/** Every beginning of a file is refused, but for one that a field begins behind which nothing is needed. */
TEST(refuses_what_is_cut) {
    static const char *const names[] = {"plain.onnx", "attributes.onnx", "types.onnx", "functions.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t size, whole = 0;
        uint8_t *bytes = read_file(file_path(names[i]), &size);
        for (size_t n = 0; n < size; n++) {
            clv__error error;
            clv__onnx_model *out = NULL;
            uint8_t *exact = malloc(n + !n);
            assert_non_null(exact);
            memcpy(exact, bytes, n);
            clv__error_init(&error);
            const clv_status status = clv__onnx_open_bytes(&error, "x.onnx", exact, n, &out);
            if (status == CLV_OK)
                whole++; // metadata or opsets of somebody stand behind all that is needed
            else
                assert_true(status == CLV_E_FORMAT && strncmp(error.text, "'x.onnx'", 8) == 0);
            clv__onnx_close(out);
            clv__error_destroy(&error);
            free(exact);
        }
        assert_in_range(whole, 0, 3);
        free(bytes);
    }
    message m = {0};
    refuse(&m, CLV_E_FORMAT, "'m.onnx': it is empty");
    put_int(&m, 1, 8);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': it is no ONNX model, or cut: it has no graph");
}

TEST(refuses_a_broken_wire) {
    message m = {0};
    put_bytes(put_int(&m, 1, 8), "\x3a\x10\x0a", 3);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx': it is cut or damaged: a field is longer than what is left (byte 2, in the model)");
    put_bytes(put_int(&m, 1, 8), "\x3b", 1); // a group
    refuse(
        &m, CLV_E_FORMAT,
        "'m.onnx': it is cut or damaged: a field has a type that ONNX does not have (byte 2, in the model)");
    put_bytes(put_int(&m, 1, 8), "\x02\x01", 2);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx': it is cut or damaged: a field has a number that none has (byte 2, in the model)");
    put_bytes(put_int(&m, 1, 8), "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx': it is cut or damaged: a number has more than ten bytes (byte 3, in the model)");
    put_bytes(put_int(&m, 1, 8), "\x28\x80", 2);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': it is cut or damaged: a number has no end (byte 3, in the model)");
    put_text(put_int(&m, 1, 8), 5, "text");
    refuse(
        &m, CLV_E_FORMAT,
        "'m.onnx': it is cut or damaged: a field has another type than ONNX gives it (byte 8, in the model)");
    message g = small_graph(), h = small_graph();
    put(put(put_int(&m, 1, 8), 7, &g), 7, &h);
    refuse(&m, CLV_E_FORMAT, NULL);
    // Unknown fields of each type are passed over.
    g = small_graph();
    m = model_of(&g, 17);
    put_text(put_int(&m, 1000, 5), 1001, "new");
    put_bytes(put_varint(&m, 1002 << 3 | 1), "12345678", 8);
    put_bytes(put_varint(&m, 1003 << 3 | 5), "1234", 4);
    accept(&m);
}

TEST(names_other_files) {
    message m = {0};
    put_text(put_int(put_int(&m, 1, 2), 2, 1), 8, "w");
    put_data(&m, 9, "12345678", 8);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': it holds a tensor (TensorProto), and a model is wanted (ModelProto)");
    put_bytes(&m, "PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\10\0\0\0a.weight", 38);
    refuse(&m, CLV_E_FORMAT, "'m.onnx' is a workbook or another ZIP; an ONNX model is wanted");
    put_bytes(&m, "\10\0\0\0\0\0\0\0{\"a\":{}}", 16);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx' is a safetensors file; an ONNX model is wanted: it holds weights alone; an ONNX file "
           "holds the "
           "nodes too, and torch.onnx.export writes one");
    put_bytes(&m, "some words of a text", 20);
    refuse(&m, CLV_E_FORMAT, "'m.onnx' is a text; an ONNX model is wanted");
}

TEST(refuses_names) {
    message g = {0};
    put_node(put_info(&g, 11, "x"), "a", "Relu", "z", "y");
    refuse_graph(&g, CLV_E_FORMAT, "'m.onnx': node 'a' (Relu) reads 'z', which nothing makes");
    g = small_graph();
    put_node(&g, "b", "Neg", "x", "y");
    refuse_graph(&g, CLV_E_FORMAT,
                 "'m.onnx': 'y' is made twice: by node 'relu' (Relu) and by node 'b' (Neg)");
    g = small_graph();
    put_node(&g, "", "Neg", "y", "x");
    refuse_graph(&g, CLV_E_FORMAT, "'m.onnx': 'x' is made twice: by an input and by node (Neg) of 'x'");
    g = small_graph();
    put_info(&g, 12, "z");
    refuse_graph(&g, CLV_E_FORMAT, "'m.onnx': 'z' is an output of a graph, and nothing makes it");
    g = small_graph();
    put_info(&g, 12, "");
    refuse_graph(&g, CLV_E_FORMAT, NULL); // two bytes are no value
    put_node(put_node(put_info(&g, 11, "x"), "a", "Relu", "c", "b"), "b", "Neg", "b", "c");
    refuse_graph(&g, CLV_E_FORMAT,
                 "'m.onnx': its nodes form a cycle: node 'a' (Relu) reads what comes of it");
    put_node(&g, "a", "Relu", "b", "b");
    refuse_graph(&g, CLV_E_FORMAT,
                 "'m.onnx': its nodes form a cycle: node 'a' (Relu) reads what comes of it");
    message n = {0};
    put_text(&n, 3, "nothing");
    put(&g, 1, &n);
    refuse_graph(&g, CLV_E_FORMAT, "'m.onnx': node 'nothing' () has no op_type");
    message t = {0}, sparse = {0}; // of which the name alone is read
    put_text(put_int(&t, 2, 1), 8, "w");
    put(&sparse, 1, &t);
    put(&g, 15, &sparse);
    put_node(&g, "a", "Relu", "w", "y");
    refuse_graph(&g, CLV_E_UNSUPPORTED,
                 "'m.onnx': node 'a' (Relu) reads 'w', a sparse tensor, and such are not read here");
    put_text(&n, 3, "a\n\x1b[2Jb");
    put_text(put_text(&n, 4, "Op"), 1, "\xff");
    put(&g, 1, &n);
    refuse_graph(&g, CLV_E_FORMAT, "'m.onnx': node 'a??[2Jb' (Op) reads '?', which nothing makes");
}

TEST(refuses_opsets) {
    message g = small_graph(), m = model_of(&g, 29);
    refuse(&m, CLV_E_UNSUPPORTED,
           "'m.onnx': it is of opset 29, and 7 to 28 are read; onnx.version_converter.convert_version(model, "
           "28) makes "
           "one of it");
    g = small_graph();
    m = model_of(&g, 6);
    refuse(&m, CLV_E_UNSUPPORTED, NULL);
    for (int64_t opset = CLV__ONNX_OLDEST_OPSET; opset <= CLV__ONNX_NEWEST_OPSET; opset++) {
        g = small_graph();
        m = model_of(&g, opset);
        accept(&m);
    }
    g = small_graph();
    put(put_int(&m, 1, 8), 7, &g);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx': node 'relu' (Relu) is an op of ONNX, and the file does not say of which opset");
}

TEST(refuses_attributes) {
    static const struct {
        const char *what;
        const char *sentence;
    } cases[] = {
        {"none", "node 'n' (Op): attribute 'a' has no type"},
        {"unknown", "node 'n' (Op): attribute 'a' has a type that ONNX does not have"},
        {"no tensor", "node 'n' (Op): attribute 'a' has no value"},
        {"lists", "node 'n' (Op): attribute 'a' has lists of several types"},
        {"reference", "node 'n' (Op) refers to an attribute of a function, and is in none"},
        {"twice", "node 'n' (Op) has twice the attribute 'a'"},
        {"tensor",
         "node 'n' (Op): attribute 'a': tensor '' has 0 bytes of data; its shape [2] of float wants 8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *what = cases[i].what;
        message a = {0}, t = {0}, n = node("n", "Op", NULL, "y"), g = {0};
        char sentence[256];
        put_text(&a, 1, "a");
        if (!strcmp(what, "unknown")) put_int(&a, 20, 15);
        if (!strcmp(what, "no tensor")) put_int(&a, 20, 4);
        if (!strcmp(what, "lists")) put_text(put_int(put_int(&a, 20, 7), 8, 1), 9, "s");
        if (!strcmp(what, "reference")) put_text(put_int(&a, 20, 2), 21, "b");
        if (!strcmp(what, "twice")) put_int(put_int(&a, 20, 2), 3, 1);
        if (!strcmp(what, "tensor")) put(&a, 5, put_int(put_int(&t, 1, 2), 2, 1));
        message copy = {0};
        put_bytes(&copy, a.bytes, a.n);
        put(&n, 5, &a);
        if (!strcmp(what, "twice")) put(&n, 5, &copy);
        free(copy.bytes);
        put(&g, 1, &n);
        snprintf(sentence, sizeof sentence, "'m.onnx': %s", cases[i].sentence);
        refuse_graph(&g, CLV_E_FORMAT, sentence);
    }
}

static void refuse_tensor(message *t, clv_status status, const char *sentence) {
    message g = small_graph();
    char text[512];
    put(&g, 5, t);
    snprintf(text, sizeof text, "'m.onnx': %s", sentence);
    refuse_graph(&g, status, text);
}

TEST(refuses_tensors) {
    const int64_t three[] = {3}, negative[] = {2, -1}, large[] = {INT64_C(1) << 40, INT64_C(1) << 40},
                  hidden[] = {0, INT64_C(1) << 40, INT64_C(1) << 40};
    message t = tensor(1, 1, three);
    put_data(&t, 9, "12345678", 8);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has 8 bytes of data; its shape [3] of float wants 12");
    t = tensor(1, 1, three);
    put_data(&t, 9, "1234567890123456", 16);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has 16 bytes of data; its shape [3] of float wants 12");
    t = tensor(7, 1, three);
    put_data(&t, 7, "\1\2\3\4", 4);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has 32 bytes of data; its shape [3] of int64 wants 24");
    t = tensor(7, 1, three);
    put_data(&t, 7, "\1\2\x80", 3);
    refuse_tensor(&t, CLV_E_FORMAT,
                  "it is cut or damaged: a list of numbers has no end (byte 45, in tensor 'w')");
    t = tensor(1, 1, three); // floats in the list of integers
    put_data(&t, 7, "\1\2\3", 3);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has 0 bytes of data; its shape [3] of float wants 12");
    t = tensor(8, 1, three);
    put_text(&t, 6, "one");
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has 1 texts of data; its shape [3] of string wants 3");
    t = tensor(1, 2, negative);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w': dimension 1 is -1");
    t = tensor(1, 2, large);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has more elements than can be counted");
    t = tensor(1, 3, hidden);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has more elements than can be counted");
    t = tensor(27, 1, three);
    refuse_tensor(&t, CLV_E_UNSUPPORTED, "tensor 'w' is of type 27, which is not known");
    t = tensor(0, 1, three);
    refuse_tensor(&t, CLV_E_UNSUPPORTED, "tensor 'w' is of type 0, which is not known");
    t = tensor(2, 1, three);
    put_data(put_data(&t, 9, "123", 3), 5, "\1\2\3", 3);
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' has data in more than one place");
    t = tensor(2, 1, three);
    put_text(&t, 3, "");
    refuse_tensor(&t, CLV_E_FORMAT, "tensor 'w' is a segment of one, and such are not read");
    // A list of numbers that are not packed.
    t = tensor(7, 1, three);
    put_int(put_int(put_int(&t, 7, 1), 7, -2), 7, 3);
    message g = small_graph(), m;
    put(&g, 5, &t);
    m = model_of(&g, 17);
    accept(&m);
}

// ---- external data ------------------------------------------------------------------------------------------------------

/** A model in `models/m.onnx` whose tensor of 4 bytes lies elsewhere. NULL: without that entry. */
static clv_status open_external(const char *location, const char *offset, const char *length) {
    const int64_t four[] = {4};
    message t = tensor(2, 1, four), g = small_graph();
    const char *const keys[] = {"location", "offset", "length"}, *values[] = {location, offset, length};
    for (int i = 0; i < 3; i++) {
        message entry = {0};
        if (!values[i]) continue;
        put_text(put_text(&entry, 1, keys[i]), 2, values[i]);
        put(&t, 13, &entry);
    }
    put(&g, 5, put_int(&t, 14, 1));
    message m = model_of(&g, 17);
    write_file("models/m.onnx", m.bytes, m.n);
    free(m.bytes);
    clv__onnx_model *model = NULL;
    const clv_status status = clv__onnx_open(support_runtime, "models/m.onnx", &model);
    assert_true((status == CLV_OK) == (model != NULL));
    clv__onnx_close(model);
    return status;
}

#define expect_sentence(status, expected, sentence)                                                          \
    do {                                                                                                     \
        assert_int_equal((status), (expected));                                                              \
        assert_string_equal(clv_runtime_error(support_runtime), (sentence));                                 \
    } while (0)

TEST(holds_external_data_in_the_folder) {
    const char *const outside = "'models/m.onnx': tensor 'w' has its data in a file outside the model's "
                                "folder, and such a file is not read";
    const char *const linked =
        "'models/m.onnx': tensor 'w' has its data in a file that is a link out of the model's "
        "folder, and such a file is not read; copy the file into the folder";
    assert_int_equal(mkdir("models", 0700), 0);
    assert_int_equal(mkdir("models/below", 0700), 0);
    assert_int_equal(mkdir("models2", 0700), 0);
    write_file("secret", "secret", 6);
    write_file("models2/w.bin", "other", 5);
    write_file("models/w.bin", "12345678", 8);
    write_file("models/below/w.bin", "1234", 4);
    char absolute[1200], here[1024];
    assert_non_null(getcwd(here, sizeof here));
    snprintf(absolute, sizeof absolute, "%s/models/w.bin", here);
    assert_int_equal(symlink("../secret", "models/link"), 0);
    assert_int_equal(symlink("w.bin", "models/inner"), 0);
    assert_int_equal(symlink("../models2", "models/folder"), 0);

    expect_ok(open_external("w.bin", "4", "4"));
    expect_ok(open_external("w.bin", NULL, NULL));
    expect_ok(open_external("below/w.bin", "0", NULL));
    expect_ok(open_external("inner", NULL, NULL));
    expect_sentence(open_external("../secret", NULL, NULL), CLV_E_FORMAT, outside);
    expect_sentence(open_external("below/../../secret", NULL, NULL), CLV_E_FORMAT, outside);
    expect_sentence(open_external("..", NULL, NULL), CLV_E_FORMAT, outside);
    expect_sentence(open_external(absolute, NULL, NULL), CLV_E_FORMAT, outside);
    expect_sentence(open_external("link", NULL, NULL), CLV_E_FORMAT, linked);
    expect_sentence(open_external("folder/w.bin", NULL, NULL), CLV_E_FORMAT, linked);
    expect_sentence(
        open_external(NULL, NULL, NULL), CLV_E_FORMAT,
        "'models/m.onnx': tensor 'w' has its data in another file, which has no name that a file can have");
    expect_failure(open_external("missing", NULL, NULL), CLV_E_IO,
                   "'models/m.onnx': data of tensor 'w': cannot read '", "/models/missing': No such file");
    expect_failure(open_external("below", NULL, NULL), CLV_E_IO, "it is a folder, and a file is wanted");
    expect_sentence(
        open_external("w.bin", "5", NULL), CLV_E_FORMAT,
        "'models/m.onnx': tensor 'w' has 4 bytes of data at 5 of the file 'w.bin', which has 8 bytes");
    expect_sentence(
        open_external("w.bin", "18446744073709551615", NULL), CLV_E_FORMAT,
        "'models/m.onnx': tensor 'w' has 4 bytes of data at 18446744073709551615 of the file 'w.bin', which "
        "has 8 bytes");
    expect_sentence(open_external("w.bin", "18446744073709551616", NULL), CLV_E_FORMAT,
                    "'models/m.onnx': tensor 'w' has an offset or a length of its data that is no number");
    expect_sentence(open_external("w.bin", "-1", NULL), CLV_E_FORMAT,
                    "'models/m.onnx': tensor 'w' has an offset or a length of its data that is no number");
    expect_sentence(open_external("w.bin", NULL, "3"), CLV_E_FORMAT,
                    "'models/m.onnx': tensor 'w' has 3 bytes of data; its shape [4] of uint8 wants 4");

    size_t size;
    message m = {0};
    expect_ok(open_external("w.bin", NULL, NULL));
    uint8_t *bytes = read_file("models/m.onnx", &size);
    put_bytes(&m, bytes, size);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx': tensor 'w' has its data in another file, and these are bytes without a folder");
    free(bytes);
    static const char *const made[] = {"models/link",   "models/inner", "models/folder", "models/below/w.bin",
                                       "models/m.onnx", "models/w.bin", "models2/w.bin"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) assert_int_equal(unlink(made[i]), 0);
    assert_int_equal(rmdir("models/below"), 0);
}

TEST(refuses_files_that_cannot_be_read) {
    clv__onnx_model *model = NULL;
    expect_failure(clv__onnx_open(support_runtime, "missing.onnx", &model), CLV_E_IO,
                   "cannot read 'missing.onnx'");
    expect_failure(clv__onnx_open(support_runtime, ".", &model), CLV_E_IO, "it is a folder");
    expect_failure(clv__onnx_open(support_runtime, NULL, &model), CLV_E_VALUE, "path is NULL");
    write_file("empty.onnx", "", 0);
    expect_sentence(clv__onnx_open(support_runtime, "empty.onnx", &model), CLV_E_FORMAT,
                    "'empty.onnx': it is empty");
    assert_null(model);
}

// ---- too deep, too many, too often --------------------------------------------------------------------------------------

/** An If in an If in an If ..., each the last thing of the one around it, so that the file is their beginnings. */
static message nested(int depth) {
    message *begins = calloc((size_t)depth, sizeof *begins), g = {0};
    assert_non_null(begins);
    put_node(&g, "c", "Constant", NULL, "y");
    put_info(&g, 12, "y");
    size_t inner = g.n;
    for (int i = 0; i < depth; i++) {
        message a = {0}, n = node("if", "If", NULL, "y");
        put_varint(put_varint(put_int(put_text(&a, 1, "then_branch"), 20, 5), 6 << 3 | 2), inner);
        put_varint(put_varint(&n, 5 << 3 | 2), a.n + inner);
        put_info(&begins[i], 12, "y");
        put_varint(put_varint(&begins[i], 1 << 3 | 2), n.n + a.n + inner);
        put_bytes(put_bytes(&begins[i], n.bytes, n.n), a.bytes, a.n);
        inner += begins[i].n;
        free(a.bytes);
        free(n.bytes);
    }
    message all = {0};
    for (int i = depth; i-- > 0;) {
        put_bytes(&all, begins[i].bytes, begins[i].n);
        free(begins[i].bytes);
    }
    put_bytes(&all, g.bytes, g.n);
    free(begins);
    free(g.bytes);
    return all;
}

TEST(refuses_what_is_too_deep) {
    message g = nested(CLV__ONNX_DEEPEST - 1), m = model_of(&g, 17);
    accept(&m);
    const char *const sentence =
        "'m.onnx': node 'if' (If): attribute 'then_branch': graphs lie in each other more than 64 deep";
    g = nested(CLV__ONNX_DEEPEST);
    refuse_graph(&g, CLV_E_UNSUPPORTED, sentence);
    g = nested(10000);
    refuse_graph(&g, CLV_E_UNSUPPORTED, sentence);
}

static message function(const char *name, const char *calls, int times) {
    message f = {0};
    put_text(put_text(put_text(put_text(&f, 1, name), 4, "a"), 5, "r"), 10, "mine");
    for (int i = 0; i < times; i++) {
        char from[16] = "a", to[16] = "r";
        if (i > 0) snprintf(from, sizeof from, "m%d", i);
        if (i + 1 < times) snprintf(to, sizeof to, "m%d", i + 1);
        message n = node("", calls, from, to);
        if (calls[0] == 'F') put_text(&n, 7, "mine");
        put(&f, 7, &n);
    }
    return f;
}

static message calling(const char *name) {
    message n = node("call", name, "x", "y"), g = {0};
    put(&g, 1, put_text(&n, 7, "mine"));
    put_info(put_info(&g, 11, "x"), 12, "y");
    return model_of(&g, 17);
}

TEST(bounds_functions) {
    message m = calling("F0"), f = function("F0", "F0", 2);
    put(&m, 25, &f);
    refuse(&m, CLV_E_UNSUPPORTED, "'m.onnx': function 'F0' calls itself, or calls lie more than 64 deep");
    m = calling("F0"); // 2^40 nodes
    for (int i = 0; i < 40; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, i == 39 ? "Neg" : "F%d", i + 1);
        f = function(name, next, 2);
        put(&m, 25, &f);
    }
    const size_t size = m.n;
    char sentence[200];
    snprintf(sentence, sizeof sentence,
             "'m.onnx': decoded it takes more than %s: its functions are called too often",
             clv__bytes_text(64 * size + 16 * 1024 * 1024).text);
    refuse(&m, CLV_E_FORMAT, sentence);
    m = calling("F0");
    f = function("F0", "Neg", 1);
    put(&m, 25, &f);
    f = function("F0", "Neg", 1);
    put(&m, 25, &f);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': function 'F0' is there twice");
    m = calling("F0");
    f = function("F0", "Neg", 0);
    put(&m, 25, &f);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': function 'F0': 'r' is an output, and nothing makes it");
    m = calling("F0");
    f = function("F0", "Neg", 1);
    message n = node("n", "Neg", "x", "other"); // a function does not see what is around its call
    put(&f, 7, &n);
    put(&m, 25, &f);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': function 'F0': 'x' is read, and nothing makes it");
    m = calling("F0");
    f = function("F0", "Neg", 1);
    n = node("n", "Neg", "a", "r");
    put(&f, 7, &n);
    put(&m, 25, &f);
    refuse(&m, CLV_E_FORMAT, "'m.onnx': function 'F0': 'r' is made twice");
}

/** A million nodes of no byte, which would be 136 MB of structures, are refused before one is made. The
 *  smallest ones that a file can have take no more than it is worth. */
TEST(takes_no_more_than_a_file_is_worth) {
    enum { CLAIMED = 1000000 };
    message m = {0}, g = {0};
    for (int i = 0; i < CLAIMED; i++) put_bytes(&g, "\x0a\x00", 2);
    m = model_of(&g, 17);
    refuse(&m, CLV_E_FORMAT,
           "'m.onnx': it is cut or damaged: a node of 0 bytes is none (byte 8, in a graph)");
    for (int i = 0; i < 100000; i++) put_bytes(&g, "\x0a\x03\x22\x01N", 5);
    m = model_of(&g, 17);
    clv__onnx_model *model = NULL;
    clv__error error;
    clv__error_init(&error);
    assert_int_equal(clv__onnx_open_bytes(&error, "m.onnx", m.bytes, m.n, &model), CLV_OK);
    assert_int_equal(model->graph.n_nodes, 100000);
    assert_true(model->held_bytes <= CLV__ONNX_FACTOR * m.n);
    clv__onnx_close(model);
    clv__error_destroy(&error);
    free(m.bytes);
}

/** A chain of a hundred thousand nodes, the last first: no recursion goes along it. */
TEST(orders_a_long_chain) {
    enum { LONG = 100000 };
    message g = {0}, m;
    for (int i = LONG; i-- > 0;) {
        char from[16], to[16];
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        put_node(&g, "n", "Neg", from, to);
    }
    put_info(&g, 11, "v0");
    m = model_of(&g, 17);
    accept(&m);
}

TEST_MAIN(support_begin, support_end)
