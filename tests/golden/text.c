// SPDX-License-Identifier: Apache-2.0
// Ops of language models, and a tiny GPT, against PyTorch; see make_text.py.
#include <math.h>
#include <stdlib.h>

#include "cleave/nn.h"
#include "golden/golden.h"
#include "ops/attention_step.h"

GOLDEN_OPEN(text)

static void finish(golden *g) {
    golden_on_devices(g);
    golden_end(g);
}

static void layer_norm(void **state) {
    golden *g = golden_begin(state, "layer_norm");
    clv_tensor *x = golden_input(g, "x"), *weight = golden_input(g, "weight"),
               *bias = golden_input(g, "bias");
    golden_expect(g, clv_layer_norm(x, weight, bias, 1e-5f), "y");
    finish(g);
    g = golden_begin(state, "layer_norm_alone");
    golden_expect(g, clv_layer_norm(golden_input(g, "x"), NULL, NULL, 0.25f), "y");
    finish(g);
}

static void embedding(void **state) {
    golden *g = golden_begin(state, "embedding");
    clv_tensor *weight = golden_input(g, "weight");
    golden_expect(g, clv_embedding(weight, golden_input(g, "indices")), "y");
    finish(g);
}

static void causal_mask(void **state) {
    const char *const names[] = {"mask", "mask_wide"};
    for (int i = 0; i < 2; i++) {
        golden *g = golden_begin(state, names[i]);
        golden_expect(g, clv_softmax(clv_causal_mask(golden_input(g, "x"), -INFINITY), -1), "y");
        finish(g);
    }
}

static void attention(void **state) {
    static const struct {
        const char *name;
        clv_attention_config config;
    } cases[] = {
        {"attention", {0}}, {"attention_causal", {.causal = true}}, {"attention_scale", {.scale = 0.75f}}};
    for (int i = 0; i < 3; i++) {
        golden *g = golden_begin(state, cases[i].name);
        clv_tensor *q = golden_input(g, "q"), *k = golden_input(g, "k"), *v = golden_input(g, "v");
        golden_expect(g, clv_scaled_dot_product_attention(q, k, v, &cases[i].config), "y");
        finish(g);
    }
}

static void self_attention(void **state) {
    static const struct {
        const char *name;
        int64_t heads;
        bool causal;
    } cases[] = {
        {"self_attention_causal", 3, true}, {"self_attention", 2, false}, {"self_attention_long", 1, true}};
    for (int i = 0; i < 3; i++) {
        golden *g = golden_begin(state, cases[i].name);
        clv_tensor *y = clv_self_attention(golden_input(g, "x"), cases[i].heads,
                                           &(clv_attention_config){.causal = cases[i].causal});
        assert_string_equal(y->node->io.op->name, "self_attention");
        golden_expect(g, y, "y");
        finish(g);
    }
}

static void attention_step(void **state) {
    golden *g = golden_begin(state, "attention_step");
    clv_tensor *x = golden_input(g, "x"), *position = golden_input(g, "position");
    clv_tensor *keys = golden_buffer(g, "keys"), *values = golden_buffer(g, "values");
    golden_expect(g, clv__attention_step(x, keys, values, position, 3), "y");
    finish(g);
}

static void causal_softmax(void **state) {
    static const struct {
        const char *name;
        float scale;
    } cases[] = {{"causal_softmax", 0.5f}, {"causal_softmax_keys", 1.5f}, {"causal_softmax_queries", 2}};
    for (int i = 0; i < 3; i++) {
        golden *g = golden_begin(state, cases[i].name);
        golden_expect(g, clv_causal_softmax(golden_input(g, "x"), cases[i].scale), "y");
        finish(g);
    }
}

static void gpt(void **state) {
    golden *g = golden_begin(state, "gpt");
    clv_tensor *tokens = golden_input(g, "tokens"), *labels = golden_input(g, "labels");
    clv_tensor *logits = clv_gpt(
        tokens, &(clv_gpt_config){.vocabulary = 11, .context = 7, .width = 12, .heads = 3, .layers = 2});
    golden_expect(g, clv_cross_entropy(clv_reshape(logits, CLV_SHAPE(10, 11)), labels), "loss");
    golden_expect(g, logits, "logits");
    golden_prepare(g);
    assert_int_equal(clv_parameter_count(g->graph), 29);
    assert_int_equal(g->subject.n_targets, 2 + 29);
    finish(g);
}

/** 1.8 million parameters, as minGPT counts them. */
static void default_size(void **state) {
    golden *g = *state;
    clv_graph *graph;
    int64_t n = 0;
    assert_int_equal(clv_graph_create(g->runtime, &graph), CLV_OK);
    clv_tensor *logits = clv_gpt(clv_input(graph, "tokens", CLV_DTYPE_I32, CLV_SHAPE(16, 128)), NULL);
    assert_non_null(logits);
    for (int i = 0; i < clv_parameter_count(graph); i++) n += clv_tensor_numel(clv_parameter_get(graph, i));
    // 2 tables of tokens, one of positions; a block: 12 D^2 weights, 13 D biases and norms; the last norm.
    assert_int_equal(n, 2 * 65 * 192 + 128 * 192 + 4 * (12 * 192 * 192 + 13 * 192) + 2 * 192);
    clv_graph_destroy(graph);
    assert_int_equal(clv_graph_create(g->runtime, &graph), CLV_OK);
    assert_null(clv_gpt(clv_input(graph, "tokens", CLV_DTYPE_I32, CLV_SHAPE(1, 129)), NULL));
    assert_int_equal(clv_graph_status(graph), CLV_E_SHAPE);
    clv_graph_destroy(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layer_norm),
        cmocka_unit_test(embedding),
        cmocka_unit_test(causal_mask),
        cmocka_unit_test(default_size),
        cmocka_unit_test(gpt),
        cmocka_unit_test(attention),
        cmocka_unit_test(self_attention),
        cmocka_unit_test(attention_step),
        cmocka_unit_test(causal_softmax),
    };
    return cmocka_run_group_tests(tests, golden_open_text, golden_close);
}
