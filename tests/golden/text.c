// SPDX-License-Identifier: Apache-2.0
// Ops of language models, and a tiny GPT, against PyTorch; see make_text.py.
#include <math.h>
#include <stdlib.h>

#include "cleave/nn.h"
#include "golden/golden.h"
#include "ops/attention/attention_step.h"

GOLDEN_OPEN(text)

static void finish(golden *g) {
    golden_on_devices(g);
    golden_end(g);
}

TEST(causal_mask) {
    const char *const names[] = {"mask", "mask_wide"};
    for (int i = 0; i < 2; i++) {
        golden *g = golden_begin(state, names[i]);
        golden_expect(g, clv_softmax(clv_causal_mask(golden_input(g, "x"), -INFINITY), -1), "y");
        finish(g);
    }
}

TEST(attention_step) {
    golden *g = golden_begin(state, "attention_step");
    clv_tensor *x = golden_input(g, "x"), *position = golden_input(g, "position");
    clv_tensor *keys = golden_buffer(g, "keys"), *values = golden_buffer(g, "values");
    golden_expect(g, clv__attention_step(x, keys, values, position, 3, 3), "y");
    finish(g);
}

TEST(gpt) {
    golden *g = golden_begin(state, "gpt");
    clv_tensor *tokens = golden_input(g, "tokens"), *labels = golden_input(g, "labels");
    clv_tensor *logits = clv_gpt(
        tokens, &(clv_gpt_config){.vocabulary = 11, .context = 7, .width = 12, .heads = 3, .layers = 2});
    golden_expect(g, clv_cross_entropy(clv_reshape(logits, CLV_SHAPE(10, 11)), labels), "loss");
    golden_expect(g, logits, "logits");
    golden_prepare(g);
    assert_int_equal(clv_graph_info_get(g->graph).n_parameters, 29);
    assert_int_equal(g->subject.n_targets, 2 + 29);
    finish(g);
}

/** 1.8 million parameters, as minGPT counts them. */
TEST(default_size) {
    golden *g = *state;
    int64_t n = 0;
    clv_graph *graph = clv__test_graph(g->runtime);
    clv_tensor *logits = clv_gpt(clv_input(graph, "tokens", CLV_DTYPE_I32, CLV_SHAPE(16, 128)), NULL);
    assert_non_null(logits);
    for (int i = 0; i < clv_graph_info_get(graph).n_parameters; i++)
        n += clv_tensor_numel(clv_parameter_get(graph, i));
    // 2 tables of tokens, one of positions; a block: 12 D^2 weights, 13 D biases and norms; the last norm.
    assert_int_equal(n, 2 * 65 * 192 + 128 * 192 + 4 * (12 * 192 * 192 + 13 * 192) + 2 * 192);
    clv_graph_destroy(graph);
    graph = clv__test_graph(g->runtime);
    assert_null(clv_gpt(clv_input(graph, "tokens", CLV_DTYPE_I32, CLV_SHAPE(1, 129)), NULL));
    assert_int_equal(clv_graph_status(graph), CLV_E_SHAPE);
    clv_graph_destroy(graph);
}

TEST_MAIN(golden_open_text, golden_close)
