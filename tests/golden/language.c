// SPDX-License-Identifier: Apache-2.0
// Language models against those of others: loss, logits, every gradient, and the loss after ten steps. See make_language.py.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/nn.h"
#include "cleave/plan.h"
#include "cleave/train.h"
#include "golden/golden.h"
#include "graph/graph.h"
#include "nn/models.h"

GOLDEN_OPEN(language)

enum { V = 11, STEPS = 10 };

typedef clv_tensor *build(golden *g, clv_graph *graph, const void *config);

static clv_tensor *loss_of(clv_tensor *logits, clv_tensor *labels) {
    const clv_shape shape = clv_tensor_shape(logits), l = clv_tensor_shape(labels);
    const int64_t rows = clv_shape_numel(&l);
    return clv_cross_entropy(clv_reshape(logits, CLV_SHAPE(rows, clv_shape_numel(&shape) / rows)),
                             clv_reshape(labels, CLV_SHAPE(rows)));
}

static const clv_array *in_file(const golden *g, const char *of, const char *name) {
    char full[256];
    snprintf(full, sizeof full, "%s/%s", of, name);
    const clv_array *array = clv_archive_find(g->archive, full);
    if (!array) fail_msg("there is no %s", full);
    return array;
}

/** An input of a graph of one's own, as golden_input for the case's. */
static clv_tensor *input(golden *g, clv_graph *graph, const char *name) {
    if (graph == g->graph) return golden_input(g, name);
    char of[64];
    snprintf(of, sizeof of, "%.*s", (int)strlen(g->prefix) - 1, g->prefix);
    const clv_array *array = in_file(g, of, name);
    return clv_input(graph, name, array->type, array->shape);
}

/** The loss after ten steps of SGD from the same weights is PyTorch's. */
static void learns_alike(golden *g, const char *name, build *layers, const void *config, int n_inputs,
                         const char *const *inputs) {
    clv_plan *plan = NULL;
    clv_feed feeds[8];
    float loss_now = 0;
    clv_device *device = clv__test_device(g->runtime, "gpu|cpu|host");
    clv_graph *graph = clv__test_graph(g->runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *logits = layers(g, graph, config), *labels = input(g, graph, "labels");
    clv_tensor *loss = loss_of(logits, labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
    if (clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan) != CLV_OK)
        fail_msg("%s", clv_runtime_error(g->runtime));
    clv_session *session = clv__test_session(g->runtime, NULL);
    clv_run *run = clv__test_run(g->runtime, session, plan);
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != CLV_PARAMETERS) continue;
        assert_int_equal(clv_session_write(session, i, in_file(g, name, tensor.name)->data, tensor.bytes),
                         CLV_OK);
    }
    for (int i = 0; i < n_inputs; i++) {
        const clv_array *array = in_file(g, name, inputs[i]);
        clv_tensor *fed = NULL;
        for (size_t k = 0; !fed && k < graph->n_tensors; k++)
            if (graph->tensors[k]->kind == CLV__INPUT && !strcmp(graph->tensors[k]->name, inputs[i]))
                fed = graph->tensors[k];
        assert_non_null(fed);
        feeds[i] = (clv_feed){fed, array->data, clv_array_bytes(array)};
    }
    const clv_fetch fetch = {loss, &loss_now, sizeof loss_now};
    for (int step = 0; step <= STEPS; step++)
        if (clv_run_do(run, &(clv_step){feeds, n_inputs, 0.1, &fetch, 1}) != CLV_OK)
            fail_msg("%s", clv_runtime_error(g->runtime));
    char after[64];
    snprintf(after, sizeof after, "%s_10", name);
    const double want = (double)*(const float *)in_file(g, after, "loss")->data;
    print_message("%s: the loss after %d steps is %.7f, PyTorch's %.7f\n", name, STEPS, (double)loss_now,
                  want);
    assert_true(fabs((double)loss_now - want) <= 1e-4 * fabs(want));
    clv__test_end(run, session, plan, graph);
}

static void like_the_others(void **state, const char *name, build *layers, const void *config, int n_inputs,
                            const char *const *inputs) {
    golden *g = golden_begin(state, name);
    clv_tensor *logits = layers(g, g->graph, config);
    golden_expect(g, loss_of(logits, golden_input(g, "labels")), "loss");
    golden_expect(g, logits, "logits");
    golden_prepare(g);
    int gradients = clv_graph_info_get(g->graph).n_parameters;
    for (int i = 0; i < clv_graph_info_get(g->graph).n_parameters;
         i++) // no softmax sees what keys have in common
        gradients -= strstr(clv_tensor_name(clv_parameter_get(g->graph, i)), "key.bias") ||
                     strstr(clv_tensor_name(clv_parameter_get(g->graph, i)), "k_proj.bias");
    assert_int_equal(g->subject.n_targets, 2 + gradients);
    golden_on_devices(g);
    learns_alike(g, name, layers, config, n_inputs, inputs);
    golden_end(g);
}

static clv_tensor *of_tokens(golden *g, clv_graph *graph, const void *config) {
    return clv_gpt(input(g, graph, "tokens"), config);
}

static void decoder(void **state, const char *name, const clv_gpt_config *config) {
    static const char *const inputs[] = {"tokens", "labels"};
    like_the_others(state, name, of_tokens, config, 2, inputs);
}

TEST(gpt2) {
    decoder(state, "gpt2",
            &(clv_gpt_config){.model = "gpt2",
                              .vocabulary = V,
                              .context = 7,
                              .width = 12,
                              .heads = 3,
                              .layers = 2,
                              .hidden = 20});
}

static clv_gpt_config llama_sizes(int tied) {
    return (clv_gpt_config){.model = "llama",
                            .vocabulary = V,
                            .context = 7,
                            .width = 24,
                            .heads = 6,
                            .kv_heads = 2,
                            .layers = 2,
                            .hidden = 20,
                            .eps = 1e-5f,
                            .rope_theta = 500,
                            .tied = tied};
}

TEST(llama) {
    const clv_gpt_config sizes = llama_sizes(0), tied = llama_sizes(1);
    static const float scaling[] = {8, 0.05f, 0.25f, 2};
    clv_gpt_config stretched = sizes;
    stretched.head_dim = 10;
    memcpy(stretched.rope_scaling, scaling, sizeof scaling);
    decoder(state, "llama_stretched", &stretched);
    decoder(state, "llama", &sizes);
    decoder(state, "llama_tied", &tied);
    clv_gpt_config biased = sizes;
    biased.qkv_bias = 1;
    decoder(state, "qwen2", &biased);
}

TEST(lstm_lm) {
    decoder(state, "lstm_lm",
            &(clv_gpt_config){
                .model = "lstm_lm", .vocabulary = V, .context = 7, .width = 6, .hidden = 9, .layers = 2});
    decoder(state, "lstm_lm_tied",
            &(clv_gpt_config){
                .model = "lstm_lm", .vocabulary = V, .context = 7, .width = 6, .layers = 1, .tied = 1});
}

enum { PLACES = 5 }; // of a text for BERT

static clv_tensor *of_masked_tokens(golden *g, clv_graph *graph, const void *config) {
    static const clv_port inputs[] = {{.name = "input_ids", .dtype = CLV_DTYPE_I32, .dims = {PLACES}},
                                      {.name = "attention_mask", .dtype = CLV_DTYPE_I32, .dims = {PLACES}},
                                      {.name = "token_type_ids", .dtype = CLV_DTYPE_I32, .dims = {PLACES}}};
    static const clv_port targets[] = {{.name = "labels", .classes = 3}};
    clv_model model = *clv_model_find("bert_base");
    clv_tensor *in[3], *logits = NULL;
    model.user = config;
    model.inputs = inputs;
    model.targets = targets;
    for (int i = 0; i < 3; i++) in[i] = input(g, graph, inputs[i].name);
    clv_model_build_all(&model, in, 3, &logits, 1);
    return logits;
}

TEST(bert) {
    static const char *const inputs[] = {"input_ids", "attention_mask", "token_type_ids", "labels"};
    const clv_gpt_config sizes = {
        .vocabulary = V, .context = 7, .width = 12, .heads = 3, .layers = 2, .hidden = 20};
    like_the_others(state, "bert", of_masked_tokens, &sizes, 4, inputs);
}

TEST_MAIN(golden_open_language, golden_close)
