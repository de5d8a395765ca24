// SPDX-License-Identifier: Apache-2.0
// Cases as graphs; see cases.h. Operands are parameters, so that nothing is uploaded in a step, and of the result one element
// is read back, through a launch that costs next to nothing: so the device does the op and little else.
#include "bench/cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/train.h"
#include "device/device.h"
#include "graph/graph.h"
#include "nn/models.h"
#include "infer/losses.h"

typedef clv_tensor *(*op_builder)(clv_tensor *x);

static clv_tensor *operand_as(clv_graph *graph, const char *name, clv_shape shape, clv_dtype dtype) {
    return clv__persistent(graph, name, (clv__desc){dtype, shape}, (clv_init){CLV_INIT_UNIFORM, -1, 1},
                           CLV_PARAMETERS, true);
}

/** As the graph's precision stores what ops make of it. */
static clv_tensor *operand(clv_graph *graph, const char *name, clv_shape shape) {
    static const clv_dtype stored[] = {[CLV_PRECISION_F32] = CLV_DTYPE_F32,
                                       [CLV_PRECISION_MIXED] = CLV_DTYPE_F16,
                                       [CLV_PRECISION_MIXED_BF16] = CLV_DTYPE_BF16};
    return operand_as(graph, name, shape, stored[clv_graph_modes_get(graph).precision]);
}

/** The work of nodes from..to of the graph. */
static void count(clv__bench_graph *g, size_t from, size_t to) {
    g->n_nodes = to;
    for (size_t i = from; i < to; i++) {
        clv__cost cost = {0};
        const clv__node *node = g->graph->nodes[i];
        if (node->io.op->view) continue;
        clv__op_cost(&node->io, &cost);
        g->flops += cost.flops;
        g->bytes += cost.bytes;
    }
}

/** Make one element of y the output. */
static void probe(clv_tensor *y) {
    int64_t n = clv_tensor_numel(y);
    clv_tensor *flat = clv_reshape(y, CLV_SHAPE(n));
    clv_output(n > 1 ? clv_slice(flat, 0, 0, 1) : y, "probe");
}

// ---- products ---------------------------------------------------------------------------------------------------------

static clv_shape matrix(int64_t batch, int64_t rows, int64_t columns, bool transposed) {
    int64_t r = transposed ? columns : rows, c = transposed ? rows : columns;
    return batch > 1 ? CLV_SHAPE(batch, r, c) : CLV_SHAPE(r, c);
}

static void build_gemm(const clv__bench_case *c, clv__bench_graph *g) {
    const int64_t *p = c->numbers;
    clv_tensor *a = operand(g->graph, "a", matrix(p[0], p[1], p[3], p[4]));
    clv_tensor *b = operand(g->graph, "b", matrix(p[0], p[3], p[2], p[5]));
    clv_tensor *y = clv_matmul_t(a, p[4], b, p[5]);
    count(g, 0, g->graph->n_nodes);
    probe(y);
}

// ---- convolutions -----------------------------------------------------------------------------------------------------

static clv_tensor *convolve(const clv__bench_case *c, clv_graph *graph, clv_tensor **x, clv_tensor **weight) {
    const int64_t *p = c->numbers;
    clv_conv2d_config config = {
        .stride = {(int)p[6], (int)p[6]}, .padding = {(int)p[7], (int)p[7]}, .groups = (int)p[8]};
    *x = operand(graph, "x", CLV_SHAPE(p[0], p[1], p[2], p[3]));
    *weight = operand_as(graph, "weight", CLV_SHAPE(p[4], p[8] ? p[1] / p[8] : 0, p[5], p[5]), CLV_DTYPE_F32);
    return clv_conv2d(*x, *weight, NULL, &config);
}

static void build_conv(const clv__bench_case *c, clv__bench_graph *g) {
    clv_tensor *x, *weight, *y = convolve(c, g->graph, &x, &weight);
    count(g, 0, g->graph->n_nodes);
    probe(y);
}

/** The node that makes a gradient, alone: it is taken out of a whole backward pass, and gets parameters for its inputs. */
static void build_conv_back(const clv__bench_case *c, clv__bench_graph *g) {
    clv_graph *whole = NULL;
    clv_tensor *x, *weight, *in[CLV__MAX_IN] = {0};
    if (clv_graph_create(g->graph->runtime, &whole) != CLV_OK) {
        clv__graph_fail(g->graph, CLV_E_HOST_MEMORY, "no memory for a graph");
        return;
    }
    clv_graph_set_precision(whole, clv_graph_modes_get(g->graph).precision);
    clv_tensor *y = convolve(c, whole, &x, &weight);
    clv_backward(clv_sum(clv_square(y), NULL, 0, false));
    clv_tensor *gradient = clv_gradient(strcmp(c->mode, "backward_data") ? weight : x);
    const clv__node *node = gradient ? gradient->node : NULL;
    for (int i = 0; node && i < node->io.n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        if (clv__has_in(&node->io, i))
            in[i] = operand_as(g->graph, name, node->io.in[i].shape, node->io.in[i].dtype);
    }
    clv_tensor *result = NULL;
    if (node)
        result = clv__node_add_to(g->graph, node->io.op, node->attrs, in, node->io.n_in, ~UINT64_C(0));
    else
        clv__graph_fail(g->graph, whole->error.status, "%s", whole->error.text);
    count(g, 0, g->graph->n_nodes);
    probe(result);
    clv_graph_destroy(whole);
}

// ---- ops ----------------------------------------------------------------------------------------------------------------

static clv_tensor *build_add(clv_tensor *x) {
    return clv_add(x, operand(clv_tensor_graph(x), "other", clv_tensor_shape(x)));
}
static clv_tensor *build_relu(clv_tensor *x) {
    return clv_relu(x);
}
static clv_tensor *build_gelu(clv_tensor *x) {
    return clv_gelu(x);
}
static clv_tensor *build_exp(clv_tensor *x) {
    return clv_exp(x);
}
static clv_tensor *build_sum(clv_tensor *x) {
    return clv_sum(x, NULL, 0, false);
}
static clv_tensor *build_sum_rows(clv_tensor *x) {
    return clv_sum(x, (int[]){1}, 1, false);
}
static clv_tensor *build_softmax(clv_tensor *x) {
    return clv_softmax(x, -1);
}
static clv_tensor *build_log_softmax(clv_tensor *x) {
    return clv_log_softmax(x, -1);
}
static clv_tensor *build_transpose(clv_tensor *x) {
    return clv_transpose(x, 0, 1);
}
static clv_tensor *build_batch_norm(clv_tensor *x) {
    return clv_nn_batch_norm(x, "norm", NULL);
}
static clv_tensor *build_layer_norm(clv_tensor *x) {
    return clv_nn_layer_norm(x, "norm", 0);
}
static clv_tensor *build_dropout(clv_tensor *x) {
    return clv_dropout(x, 0.5f);
}
static clv_tensor *build_self_attention(clv_tensor *x) {
    return clv_self_attention(x, 6, &(clv_attention_config){.causal = true});
}
static clv_tensor *build_max_pool(clv_tensor *x) {
    return clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
}
static clv_tensor *build_avg_pool(clv_tensor *x) {
    return clv_avg_pool2d(x, &(clv_pool2d_config){.kernel = {2, 2}, .stride = {2, 2}});
}

static clv_tensor *build_lstm(clv_tensor *x) {
    return clv_nn_lstm(x, NULL, "lstm", clv_tensor_shape(x).dims[2], &(clv_recurrent_config){.layers = 2},
                       NULL);
}

typedef struct op_row {
    const char *name;
    op_builder build;
    clv_shape shape;
} op_row;

static const op_row op_rows[] = {
#define OP(name, build, ...) {#name, build, CLV__DIMS(__VA_ARGS__)},
#include "bench/cases.def"
#undef OP
};

static const op_row layer_rows[] = {
#define LAYER(name, build, ...) {#name, build, CLV__DIMS(__VA_ARGS__)},
#include "bench/cases.def"
#undef LAYER
};

static void build_op(const clv__bench_case *c, clv__bench_graph *g) {
    const op_row *row = c->what;
    clv_graph_set_training(g->graph, true);
    clv_tensor *y = row->build(operand(g->graph, "x", row->shape));
    count(g, 0, g->graph->n_nodes);
    probe(y);
}

/** Forward, the mean of squares, all gradients of parameters, and their updates with momentum. */
static void build_layer(const clv__bench_case *c, clv__bench_graph *g) {
    const op_row *row = c->what;
    clv_graph_set_training(g->graph, true);
    clv_tensor *y = row->build(clv_detach(operand(g->graph, "x", row->shape)));
    clv_tensor *loss = clv_mean(clv_square(y), NULL, 0, false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(g->graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f});
    count(g, 0, g->graph->n_nodes);
}

// ---- models -------------------------------------------------------------------------------------------------------------

/** A training step with momentum on the logits; or the logits. */
static void finish_model(clv__bench_graph *g, const clv_model *model, clv_tensor *logits, int64_t batch) {
    if (clv__graph_training(g->graph)) {
        const clv_loss *given = clv__loss_for(model);
        clv_tensor *loss = given->build(logits, clv_model_target(g->graph, model, batch), given);
        clv_output(loss, "loss");
        clv_backward(loss);
        clv_optimizer_add(g->graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f});
    } else {
        clv_output(logits, "logits");
    }
    count(g, 0, g->graph->n_nodes);
}

static void build_model(const clv__bench_case *c, clv__bench_graph *g) {
    const clv_model *model = c->what;
    clv_graph_set_training(g->graph, !strcmp(c->mode, "train"));
    clv_tensor *in[CLV_MAX_PORTS], *out[CLV_MAX_PORTS];
    clv_model_tensors(g->graph, model, CLV_PORT_INPUT, c->numbers[0], in);
    clv_model_build_all(model, in, clv_model_port_count(model, CLV_PORT_INPUT), out, 1);
    finish_model(g, model, out[0], c->numbers[0]);
}

clv_status clv__bench_build(clv_runtime *runtime, const clv__bench_case *c, clv_precision precision,
                            clv__bench_graph *out) {
    *out = (clv__bench_graph){0};
    CLV_TRY(clv_graph_create(runtime, &out->graph));
    clv_graph_set_precision(out->graph, precision);
    c->build(c, out);
    return clv_graph_status(out->graph);
}

// ---- the list -----------------------------------------------------------------------------------------------------------

typedef struct listing {
    const clv_bench_config *config;
    clv__bench_cases *cases;
    bool out_of_memory;
} listing;

static bool wants(const char *asked, const char *given) {
    return !asked || !strcmp(asked, given);
}

/** Append a case if it is asked for. */
static void add(listing *l, clv__bench_case *c, const char *suite, const char *mode,
                void (*build)(const clv__bench_case *, clv__bench_graph *)) {
    c->suite = suite, c->mode = mode, c->build = build;
    if (!wants(l->config->suite, suite) || !wants(l->config->mode, mode) || !wants(l->config->name, c->name))
        return;
    if (!clv__grow(&l->cases->items, &l->cases->room, l->cases->n + 1, sizeof *c))
        l->out_of_memory = true;
    else
        l->cases->items[l->cases->n++] = *c;
}

static void add_gemm(listing *l, const int64_t numbers[6]) {
    static const char *const transposes[] = {"", " nt", " tn", " tt"};
    clv__bench_case c = {0};
    memcpy(c.numbers, numbers, 6 * sizeof *numbers);
    char batch[32] = "";
    if (numbers[0] > 1) snprintf(batch, sizeof batch, "%" PRId64 "*", numbers[0]);
    snprintf(c.name, sizeof c.name, "%s%" PRId64 "x%" PRId64 "x%" PRId64 "%s", batch, numbers[1], numbers[2],
             numbers[3], transposes[2 * (numbers[4] != 0) + (numbers[5] != 0)]);
    add(l, &c, "gemm", "forward", build_gemm);
}

static void add_conv(listing *l, const int64_t p[CLV__BENCH_NUMBERS]) {
    clv__bench_case c = {0};
    memcpy(c.numbers, p, CLV__BENCH_NUMBERS * sizeof *p);
    snprintf(c.name, sizeof c.name,
             "n%" PRId64 " c%" PRId64 " %" PRId64 "x%" PRId64 " o%" PRId64 " k%" PRId64 " s%" PRId64
             " p%" PRId64 " g%" PRId64,
             p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]);
    add(l, &c, "conv", "forward", build_conv);
    add(l, &c, "conv", "backward_data", build_conv_back);
    add(l, &c, "conv", "backward_weight", build_conv_back);
}

static void add_op(listing *l, const op_row *row, const char *mode,
                   void (*build)(const clv__bench_case *, clv__bench_graph *)) {
    clv__bench_case c = {.what = row};
    int at = snprintf(c.name, sizeof c.name, "%s", row->name);
    for (int i = 0; i < row->shape.rank; i++)
        at += snprintf(c.name + at, sizeof c.name - (size_t)at, "%c%" PRId64, i ? 'x' : ' ',
                       row->shape.dims[i]);
    add(l, &c, "ops", mode, build);
}

static void add_model(listing *l, const clv_model *model, int64_t batch) {
    clv__bench_case c = {.what = model};
    if (!wants(l->config->model, model->name)) return;
    c.numbers[0] = l->config->batch ? l->config->batch : batch;
    const char *slash = strrchr(model->name, '/'); // of a file's model
    snprintf(c.name, sizeof c.name, "%s b%" PRId64, slash ? slash + 1 : model->name, c.numbers[0]);
    add(l, &c, "models", "train", build_model);
    add(l, &c, "models", "infer", build_model);
}

/** Texts of a batch: fewer where their logits would be more than 128 MiB, or of classes alone. */
static int64_t texts(const clv_model *model) {
    enum { MOST = 16, LOGITS = 1 << 25 };
    const clv_shape one = clv__model_input_shape(model, 1);
    const int64_t fit = model->build_all ? 2 : LOGITS / (clv_shape_numel(&one) * model->classes);
    return fit < 1 ? 1 : fit < MOST ? fit : MOST;
}

static void add_models(listing *l) {
    bool own = l->config->model != NULL;
    for (int i = 0; clv_model_get(i); i++) own = own && strcmp(l->config->model, clv_model_get(i)->name);
    for (int i = 0; own ? i < 1 : clv_model_get(i) != NULL; i++) {
        const clv_model *model = own ? clv_model_find(l->config->model) : clv_model_get(i);
        const clv_shape one = clv__model_input_shape(model, 1);
        const int64_t images = clv_shape_numel(&one) > 10000 ? 8 : 64;
        const bool is_text = clv_model_port_get(model, CLV_PORT_INPUT, 0).dtype == CLV_DTYPE_I32;
        add_model(l, model, is_text ? texts(model) : images);
    }
}

static clv_status unknown_model(const char *name, clv__error *error) {
    char names[512] = "";
    clv__nearest nearest = {.word = name};
    for (int i = 0; clv_model_get(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", clv_model_get(i)->name);
        clv__nearest_offer(&nearest, clv_model_get(i)->name);
    }
    CLV_FAIL(error, CLV_E_NOT_FOUND, "unknown model '%s'; there are %s%s", name, names,
             clv__nearest_text(&nearest));
}

static clv_status check_config(const clv_bench_config *config, clv__error *error) {
    static const char *const suites[] = {"gemm", "conv", "ops", "models"};
    clv__nearest nearest = {.word = config->suite};
    bool known = !config->suite;
    for (size_t i = 0; config->suite && i < sizeof suites / sizeof *suites; i++) {
        known |= !strcmp(config->suite, suites[i]);
        clv__nearest_offer(&nearest, suites[i]);
    }
    if (!known)
        CLV_FAIL(error, CLV_E_NOT_FOUND, "no suite '%s'; there are gemm, conv, ops, models%s", config->suite,
                 clv__nearest_text(&nearest));
    if (config->model && !clv_model_find(config->model)) return unknown_model(config->model, error);
    const int64_t *s = config->size;
    if ((s[0] || s[1] || s[2]) && (s[0] < 1 || s[1] < 1 || s[2] < 1))
        CLV_FAIL(error, CLV_E_VALUE, "a product of size %" PRId64 "x%" PRId64 "x%" PRId64, s[0], s[1], s[2]);
    if (config->batch < 0 || config->runs < 0 || !(config->seconds >= 0))
        CLV_FAIL(error, CLV_E_VALUE, "batch, runs and seconds cannot be negative");
    return CLV_OK;
}

clv_status clv__bench_cases_init(clv_runtime *runtime, const clv_bench_config *config,
                                 clv__bench_cases *out) {
    static const int64_t gemms[][6] = {
#define GEMM(...) {__VA_ARGS__},
#include "bench/cases.def"
#undef GEMM
    };
    static const int64_t convs[][CLV__BENCH_NUMBERS] = {
#define CONV(...) {__VA_ARGS__},
#include "bench/cases.def"
#undef CONV
    };
    clv__error *error = clv__runtime_error_of(runtime);
    *out = (clv__bench_cases){0};
    CLV_TRY(check_config(config, error));
    listing l = {.config = config, .cases = out};
    const int64_t *size = config->size;
    if (size[0]) add_gemm(&l, (int64_t[]){1, size[0], size[1], size[2], 0, 0});
    for (size_t i = 0; !size[0] && i < sizeof gemms / sizeof *gemms; i++) add_gemm(&l, gemms[i]);
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++) add_conv(&l, convs[i]);
    for (size_t i = 0; i < sizeof op_rows / sizeof *op_rows; i++)
        add_op(&l, &op_rows[i], "forward", build_op);
    for (size_t i = 0; i < sizeof layer_rows / sizeof *layer_rows; i++)
        add_op(&l, &layer_rows[i], "train", build_layer);
    add_models(&l);
    if (l.out_of_memory) {
        clv__bench_cases_reset(out);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the cases");
    }
    if (!out->n)
        CLV_FAIL(error, CLV_E_NOT_FOUND, "no case '%s'%s%s%s%s", config->name ? config->name : "*",
                 config->mode ? " of mode " : "", config->mode ? config->mode : "",
                 config->suite ? " in suite " : "", config->suite ? config->suite : "");
    return CLV_OK;
}

void clv__bench_cases_reset(clv__bench_cases *cases) {
    free(cases->items);
    *cases = (clv__bench_cases){0};
}
