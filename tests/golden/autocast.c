// SPDX-License-Identifier: Apache-2.0
// In which type a graph of mixed precision stores the result of each op, against PyTorch's autocast. See make_autocast.py.
#include <stdio.h>
#include <string.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "harness/harness.h"

#define IMAGES CLV__DIMS(2, 4, 8, 8)

typedef clv_tensor *const *inputs;

#define CALL(name, call)                                                                                     \
    static clv_tensor *name(inputs x) {                                                                      \
        return call;                                                                                         \
    }
CALL(add, clv_add(x[0], x[1]))
CALL(sub, clv_sub(x[0], x[1]))
CALL(mul, clv_mul(x[0], x[1]))
CALL(div_, clv_div(x[0], x[1]))
CALL(neg, clv_neg(x[0]))
CALL(add_scalar, clv_add_scalar(x[0], 1.5f))
CALL(mul_scalar, clv_mul_scalar(x[0], 1.5f))
CALL(exp_, clv_exp(x[0]))
CALL(log_, clv_log(x[0]))
CALL(sqrt_, clv_sqrt(x[0]))
CALL(square, clv_square(x[0]))
CALL(abs_, clv_abs(x[0]))
CALL(clamp, clv_clamp(x[0], -0.5f, 0.5f))
CALL(pow_scalar, clv_pow_scalar(x[0], 2.5f))
CALL(relu, clv_relu(x[0]))
CALL(relu6, clv_relu6(x[0]))
CALL(leaky_relu, clv_leaky_relu(x[0], 0.01f))
CALL(sigmoid, clv_sigmoid(x[0]))
CALL(logsigmoid, clv_logsigmoid(x[0]))
CALL(tanh_, clv_tanh(x[0]))
CALL(silu, clv_silu(x[0]))
CALL(gelu, clv_gelu(x[0]))
CALL(gelu_tanh, clv_gelu_tanh(x[0]))
CALL(where, clv_where(clv_full(clv_tensor_graph(x[0]), CLV_DTYPE_I32, CLV_SHAPE(2, 3), 1), x[0], x[1]))
CALL(sum, clv_sum(x[0], NULL, 0, false))
CALL(mean, clv_mean(x[0], NULL, 0, false))
CALL(max, clv_max(x[0], NULL, 0, false))
CALL(reshape, clv_reshape(x[0], CLV_SHAPE(6)))
CALL(permute, clv_permute(x[0], (int[]){1, 0}, 2))
CALL(broadcast_to, clv_broadcast_to(x[0], CLV_SHAPE(2, 3)))
CALL(slice, clv_slice(x[0], 0, 0, 1))
CALL(concat, clv_concat(x, 2, 0))
CALL(matmul, clv_matmul(x[0], x[1]))
CALL(linear, clv_linear(x[0], x[1], x[2]))
CALL(conv2d, clv_conv2d(x[0], x[1], x[2], NULL))
CALL(max_pool2d, clv_max_pool2d(x[0], &(clv_pool2d_config){.kernel = {2}}))
CALL(avg_pool2d, clv_avg_pool2d(x[0], &(clv_pool2d_config){.kernel = {2}}))
CALL(adaptive_avg_pool2d, clv_adaptive_avg_pool2d(x[0], 3, 3))
CALL(softmax, clv_softmax(x[0], 1))
CALL(log_softmax, clv_log_softmax(x[0], 1))
CALL(cross_entropy, clv_cross_entropy(x[0], clv_full(clv_tensor_graph(x[0]), CLV_DTYPE_I32, CLV_SHAPE(2), 0)))
CALL(mse_loss, clv_mse_loss(x[0], x[1]))
CALL(layer_norm, clv_layer_norm(x[0], x[1], x[2], 1e-5f))
CALL(embedding, clv_embedding(x[0], clv_full(clv_tensor_graph(x[0]), CLV_DTYPE_I32, CLV_SHAPE(2), 0)))
CALL(causal_mask, clv_causal_mask(x[0], -1e4f))
CALL(dropout, clv_dropout(x[0], 0.5f))

static clv_tensor *batch_norm_in(inputs x, bool training) {
    clv_graph *graph = clv_tensor_graph(x[0]);
    clv_tensor *mean =
        clv_buffer(graph, "mean", CLV_DTYPE_F32, CLV_SHAPE(4), (clv_init){.kind = CLV_INIT_ZEROS});
    clv_tensor *var =
        clv_buffer(graph, "var", CLV_DTYPE_F32, CLV_SHAPE(4), (clv_init){.kind = CLV_INIT_ONES});
    return clv_batch_norm(x[0], x[1], x[2], mean, var, training, 0.1f, 1e-5f);
}
CALL(batch_norm, batch_norm_in(x, true))
CALL(batch_norm_eval, batch_norm_in(x, false))

#define PAIR                                                                                                 \
    { CLV__DIMS(2, 3), CLV__DIMS(2, 3) }
#define ONE                                                                                                  \
    { CLV__DIMS(2, 3) }
#define CHANNELS CLV__DIMS(4), CLV__DIMS(4)

static const struct autocast_case {
    const char *op;
    clv_tensor *(*build)(inputs x);
    clv_shape shapes[3];
    int n;
} cases[] = {
    {"add", add, PAIR, 2},
    {"sub", sub, PAIR, 2},
    {"mul", mul, PAIR, 2},
    {"div", div_, PAIR, 2},
    {"neg", neg, ONE, 1},
    {"add_scalar", add_scalar, ONE, 1},
    {"mul_scalar", mul_scalar, ONE, 1},
    {"exp", exp_, ONE, 1},
    {"log", log_, ONE, 1},
    {"sqrt", sqrt_, ONE, 1},
    {"square", square, ONE, 1},
    {"abs", abs_, ONE, 1},
    {"clamp", clamp, ONE, 1},
    {"pow_scalar", pow_scalar, ONE, 1},
    {"relu", relu, ONE, 1},
    {"relu6", relu6, ONE, 1},
    {"leaky_relu", leaky_relu, ONE, 1},
    {"sigmoid", sigmoid, ONE, 1},
    {"logsigmoid", logsigmoid, ONE, 1},
    {"tanh", tanh_, ONE, 1},
    {"silu", silu, ONE, 1},
    {"gelu", gelu, ONE, 1},
    {"gelu_tanh", gelu_tanh, ONE, 1},
    {"where", where, PAIR, 2},
    {"sum", sum, ONE, 1},
    {"mean", mean, ONE, 1},
    {"max", max, ONE, 1},
    {"reshape", reshape, ONE, 1},
    {"permute", permute, ONE, 1},
    {"broadcast_to", broadcast_to, {CLV__DIMS(1, 3)}, 1},
    {"slice", slice, ONE, 1},
    {"concat", concat, PAIR, 2},
    {"matmul", matmul, {CLV__DIMS(2, 3), CLV__DIMS(3, 4)}, 2},
    {"linear", linear, {CLV__DIMS(2, 3), CLV__DIMS(4, 3), CLV__DIMS(4)}, 3},
    {"conv2d", conv2d, {IMAGES, CLV__DIMS(4, 4, 3, 3), CLV__DIMS(4)}, 3},
    {"max_pool2d", max_pool2d, {IMAGES}, 1},
    {"avg_pool2d", avg_pool2d, {IMAGES}, 1},
    {"adaptive_avg_pool2d", adaptive_avg_pool2d, {IMAGES}, 1},
    {"softmax", softmax, ONE, 1},
    {"log_softmax", log_softmax, ONE, 1},
    {"cross_entropy", cross_entropy, ONE, 1},
    {"mse_loss", mse_loss, PAIR, 2},
    {"batch_norm", batch_norm, {IMAGES, CHANNELS}, 3},
    {"batch_norm_eval", batch_norm_eval, {IMAGES, CHANNELS}, 3},
    {"layer_norm", layer_norm, {CLV__DIMS(2, 3), CLV__DIMS(3), CLV__DIMS(3)}, 3},
    {"embedding", embedding, {CLV__DIMS(5, 3)}, 1},
    {"causal_mask", causal_mask, {CLV__DIMS(3, 3)}, 1},
    {"dropout", dropout, ONE, 1},
};

/** Where we do otherwise than one of the two, on purpose; graph.h and docs/design.md say why. */
static const char *const otherwise[] = {
    // the two differ, we do as the GPU's list says: it has these in f32
    "exp half f32, not cpu",
    "log half f32, not cpu",
    "square half f32, not cpu",
    "pow_scalar half f32, not cpu",
    "sum half f32, not cpu",
    "softmax half f32, not cpu",
    "log_softmax half f32, not cpu",
    // always in two bytes
    "layer_norm f32 half, not cpu or cuda",
    "layer_norm half half, not cuda",
    "layer_norm both half, not cuda",
    // tables are parameters, which are f32
    "embedding half f32, not cpu or cuda",
};

/** The type of the op's result: inputs `f32`, `half`, or `both`, the first half and the others f32. */
static const char *ours(clv_runtime *runtime, const struct autocast_case *c, const char *kinds,
                        clv_precision precision) {
    clv_dtype half = precision == CLV_PRECISION_MIXED ? CLV_DTYPE_F16 : CLV_DTYPE_BF16;
    clv_tensor *in[3];
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_graph_set_precision(graph, precision);
    for (int i = 0; i < c->n; i++) {
        char name[8];
        bool is_half = strcmp(kinds, "half") == 0 || (strcmp(kinds, "both") == 0 && i == 0);
        snprintf(name, sizeof name, "x%d", i);
        in[i] = clv_input(graph, name, is_half ? half : CLV_DTYPE_F32, c->shapes[i]);
    }
    clv_dtype dtype = clv_tensor_dtype(c->build(in));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    clv_graph_destroy(graph);
    assert_true(dtype == CLV_DTYPE_F32 || dtype == half);
    return dtype == half ? "half" : "f32";
}

static const struct autocast_case *find(const char *op) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].op, op) == 0) return &cases[i];
    fail_msg("PyTorch's '%s' is none of the cases here", op);
    return NULL;
}

static bool is_otherwise(const char *line) {
    for (size_t i = 0; i < sizeof otherwise / sizeof *otherwise; i++)
        if (strcmp(otherwise[i], line) == 0) return true;
    return false;
}

/** Every line of the file is what we do, or one of those where we do otherwise; and these are as many as are listed. */
TEST(as_pytorch) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    FILE *file = fopen(CLV_TEST_SOURCE_DIR "/tests/golden/autocast.txt", "r");
    assert_non_null(file);
    char op[32], kinds[8], cpu[8], cuda[8];
    size_t differ = 0, wrong = 0, seen = 0;
    bool asked[sizeof cases / sizeof *cases] = {0};
    for (; fscanf(file, "%31s %7s %7s %7s", op, kinds, cpu, cuda) == 4; seen++) {
        const struct autocast_case *c = find(op);
        const char *got = ours(runtime, c, kinds, CLV_PRECISION_MIXED_BF16);
        assert_string_equal(ours(runtime, c, kinds, CLV_PRECISION_MIXED), got);
        asked[c - cases] = true;
        if (strcmp(got, cpu) == 0 && strcmp(got, cuda) == 0) continue;
        char line[64];
        snprintf(line, sizeof line, "%s %s %s, not %s%s%s", op, kinds, got, strcmp(got, cpu) ? "cpu" : "",
                 strcmp(got, cpu) && strcmp(got, cuda) ? " or " : "", strcmp(got, cuda) ? "cuda" : "");
        differ++;
        if (is_otherwise(line)) continue;
        print_error("%s\n", line);
        wrong++;
    }
    fclose(file);
    clv_runtime_destroy(runtime);
    assert_true(seen > 100);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!asked[i]) fail_msg("'%s' is not in autocast.txt", cases[i].op);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(differ, sizeof otherwise / sizeof *otherwise);
}

TEST_MAIN(NULL, NULL)
