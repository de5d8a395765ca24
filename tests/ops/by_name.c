// SPDX-License-Identifier: Apache-2.0
// Each op of ops.h built by its name is the graph that its C call builds, none of the header is forgotten, and what cannot be called is
// refused with a sentence.
#include <math.h>

#include "cleave/cleave.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "harness/same_node.h"

enum { NONE, X, Y, XT, CONDITION, LABELS, ROWS, IMAGES, KERNEL_, CHANNELS, SEQUENCE, SQUARE_, N_TENSORS, MOST = 6 };

#define NUM(attribute, value)                                                                                \
    { .name = #attribute, .number = value }
#define LIST(attribute, ...)                                                                                 \
    {                                                                                                        \
        .name = #attribute, .list = (const int64_t[]){__VA_ARGS__},                                          \
        .n = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)                                        \
    }

typedef struct example {
    const char *name;
    int in[MOST];
    clv_op_argument arguments[MOST];
    clv_tensor *(*call)(clv_graph *graph, clv_tensor **in);
} example;

static clv_tensor *call_add(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_add(in[0], in[1]);
}
static clv_tensor *call_sub(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_sub(in[0], in[1]);
}
static clv_tensor *call_mul(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_mul(in[0], in[1]);
}
static clv_tensor *call_div(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_div(in[0], in[1]);
}
static clv_tensor *call_neg(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_neg(in[0]);
}
static clv_tensor *call_exp(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_exp(in[0]);
}
static clv_tensor *call_log(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_log(in[0]);
}
static clv_tensor *call_sqrt(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_sqrt(in[0]);
}
static clv_tensor *call_square(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_square(in[0]);
}
static clv_tensor *call_abs(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_abs(in[0]);
}
static clv_tensor *call_relu(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_relu(in[0]);
}
static clv_tensor *call_relu6(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_relu6(in[0]);
}
static clv_tensor *call_leaky_relu(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_leaky_relu(in[0], 0.3f);
}
static clv_tensor *call_sigmoid(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_sigmoid(in[0]);
}
static clv_tensor *call_logsigmoid(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_logsigmoid(in[0]);
}
static clv_tensor *call_tanh(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_tanh(in[0]);
}
static clv_tensor *call_gelu(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_gelu(in[0]);
}
static clv_tensor *call_gelu_tanh(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_gelu_tanh(in[0]);
}
static clv_tensor *call_silu(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_silu(in[0]);
}
static clv_tensor *call_clamp(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_clamp(in[0], -2, INFINITY);
}
static clv_tensor *call_pow_scalar(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_pow_scalar(in[0], 3);
}
static clv_tensor *call_add_scalar(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_add_scalar(in[0], 3);
}
static clv_tensor *call_mul_scalar(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_mul_scalar(in[0], 3);
}
static clv_tensor *call_eq(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_eq(in[0], in[1]);
}
static clv_tensor *call_ne(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_ne(in[0], in[1]);
}
static clv_tensor *call_lt(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_lt(in[0], in[1]);
}
static clv_tensor *call_le(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_le(in[0], in[1]);
}
static clv_tensor *call_gt(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_gt(in[0], in[1]);
}
static clv_tensor *call_ge(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_ge(in[0], in[1]);
}
static clv_tensor *call_where(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_where(in[0], in[1], in[2]);
}
static clv_tensor *call_cast(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_cast(in[0], CLV_DTYPE_I32);
}
static clv_tensor *call_full(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(4, 5), 7);
}
static clv_tensor *call_sum(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_sum(in[0], (int[]){2, -4}, 2, true);
}
static clv_tensor *call_mean(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_mean(in[0], NULL, 0, false);
}
static clv_tensor *call_max(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_max(in[0], (int[]){1}, 1, false);
}
static clv_tensor *call_argmax(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_argmax(in[0], -1, true);
}
static clv_tensor *call_sum_to(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_sum_to(in[0], CLV_SHAPE(1, 3));
}
static clv_tensor *call_reshape(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_reshape(in[0], CLV_SHAPE(3, -1));
}
static clv_tensor *call_detach(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_detach(in[0]);
}
static clv_tensor *call_flatten(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_flatten(in[0], 1);
}
static clv_tensor *call_transpose(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_transpose(in[0], 0, 1);
}
static clv_tensor *call_permute(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_permute(in[0], (int[]){2, 0, 1}, 3);
}
static clv_tensor *call_broadcast_to(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_broadcast_to(in[0], CLV_SHAPE(5, 2, 3));
}
static clv_tensor *call_slice(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_slice(in[0], 1, 1, 2);
}
static clv_tensor *call_concat(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_concat(in, 3, 1);
}
static clv_tensor *call_to(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_to(in[0], "host");
}
static clv_tensor *call_matmul(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_matmul(in[0], in[1]);
}
static clv_tensor *call_matmul_t(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_matmul_t(in[0], false, in[1], true);
}
static clv_tensor *call_linear(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_linear(in[0], in[1], NULL);
}
static clv_tensor *call_conv2d(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_conv2d(in[0], in[1], in[2], &(clv_conv2d_config){.stride = {2}, .padding = {1, -1}});
}
static clv_tensor *call_max_pool2d(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_max_pool2d(in[0], &(clv_pool2d_config){.kernel = {3, 2}, .stride = {2}, .ceil_mode = true});
}
static clv_tensor *call_avg_pool2d(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_avg_pool2d(in[0],
                          &(clv_pool2d_config){.kernel = {2}, .padding = {1}, .exclude_padding = true});
}
static clv_tensor *call_global_avg_pool2d(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_global_avg_pool2d(in[0]);
}
static clv_tensor *call_adaptive_avg_pool2d(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_adaptive_avg_pool2d(in[0], 4, 5);
}
static clv_tensor *call_softmax(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_softmax(in[0], 0);
}
static clv_tensor *call_log_softmax(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_log_softmax(in[0], -1);
}
static clv_tensor *call_cross_entropy(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_cross_entropy(in[0], in[1]);
}
static clv_tensor *call_cross_entropy_weighted(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_cross_entropy_weighted(in[0], in[1], in[2]);
}
static clv_tensor *call_mse_loss(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_mse_loss(in[0], in[1]);
}
static clv_tensor *call_batch_norm(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_batch_norm(in[0], in[1], in[2], in[3], in[4], false, 0.1f, 0.5f);
}
static clv_tensor *call_layer_norm(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_layer_norm(in[0], NULL, NULL, 0.5f);
}
static clv_tensor *call_rms_norm(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_rms_norm(in[0], NULL, 0.5f);
}
static clv_tensor *call_embedding(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_embedding(in[0], in[1]);
}
static clv_tensor *call_causal_mask(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_causal_mask(in[0], -3);
}
static clv_tensor *call_causal_softmax(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_causal_softmax(in[0], 0.5f);
}
static clv_tensor *call_scaled_dot_product_attention(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_scaled_dot_product_attention(in[0], in[1], in[2],
                                            &(clv_attention_config){.causal = true, .scale = 2});
}
static clv_tensor *call_self_attention(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_self_attention(in[0], 2, &(clv_attention_config){.causal = true});
}
static clv_tensor *call_dropout(clv_graph *graph, clv_tensor **in) {
    (void)graph, (void)in;
    return clv_dropout(in[0], 0.25f);
}

static const example examples[] = {
    {"add", {X, Y}, {{0}}, call_add},
    {"sub", {X, Y}, {{0}}, call_sub},
    {"mul", {X, Y}, {{0}}, call_mul},
    {"div", {X, Y}, {{0}}, call_div},
    {"neg", {X}, {{0}}, call_neg},
    {"exp", {X}, {{0}}, call_exp},
    {"log", {X}, {{0}}, call_log},
    {"sqrt", {X}, {{0}}, call_sqrt},
    {"square", {X}, {{0}}, call_square},
    {"abs", {X}, {{0}}, call_abs},
    {"relu", {X}, {{0}}, call_relu},
    {"relu6", {X}, {{0}}, call_relu6},
    {"leaky_relu", {X}, {NUM(negative_slope, 0.3f)}, call_leaky_relu},
    {"sigmoid", {X}, {{0}}, call_sigmoid},
    {"logsigmoid", {X}, {{0}}, call_logsigmoid},
    {"tanh", {X}, {{0}}, call_tanh},
    {"gelu", {X}, {{0}}, call_gelu},
    {"gelu_tanh", {X}, {{0}}, call_gelu_tanh},
    {"silu", {X}, {{0}}, call_silu},
    {"clamp", {X}, {NUM(min, -2)}, call_clamp},
    {"pow_scalar", {X}, {NUM(exponent, 3)}, call_pow_scalar},
    {"add_scalar", {X}, {NUM(value, 3)}, call_add_scalar},
    {"mul_scalar", {X}, {NUM(value, 3)}, call_mul_scalar},
    {"eq", {X, Y}, {{0}}, call_eq},
    {"ne", {X, Y}, {{0}}, call_ne},
    {"lt", {X, Y}, {{0}}, call_lt},
    {"le", {X, Y}, {{0}}, call_le},
    {"gt", {X, Y}, {{0}}, call_gt},
    {"ge", {X, Y}, {{0}}, call_ge},
    {"where", {CONDITION, X, Y}, {{0}}, call_where},
    {"cast", {X}, {NUM(dtype, CLV_DTYPE_I32)}, call_cast},
    {"full", {0}, {LIST(shape, 4, 5), NUM(value, 7)}, call_full},
    {"sum", {IMAGES}, {LIST(axes, 2, -4), NUM(keepdim, 1)}, call_sum},
    {"mean", {IMAGES}, {{0}}, call_mean},
    {"max", {IMAGES}, {LIST(axes, 1)}, call_max},
    {"argmax", {X}, {NUM(axis, -1), NUM(keepdim, 1)}, call_argmax},
    {"sum_to", {X}, {LIST(shape, 1, 3)}, call_sum_to},
    {"reshape", {X}, {LIST(shape, 3, -1)}, call_reshape},
    {"detach", {X}, {{0}}, call_detach},
    {"flatten", {IMAGES}, {NUM(start_axis, 1)}, call_flatten},
    {"transpose", {X}, {NUM(axis0, 0), NUM(axis1, 1)}, call_transpose},
    {"permute", {SEQUENCE}, {LIST(axes, 2, 0, 1)}, call_permute},
    {"broadcast_to", {X}, {LIST(shape, 5, 2, 3)}, call_broadcast_to},
    {"slice", {X}, {NUM(axis, 1), NUM(start, 1), NUM(length, 2)}, call_slice},
    {"concat", {X, Y, X}, {NUM(axis, 1)}, call_concat},
    {"to", {X}, {{.name = "device", .text = "host"}}, call_to},
    {"matmul", {X, XT}, {{0}}, call_matmul},
    {"matmul_t", {X, Y}, {NUM(transpose_b, 1)}, call_matmul_t},
    {"linear", {X, Y}, {{0}}, call_linear},
    {"conv2d", {IMAGES, KERNEL_, CHANNELS}, {NUM(stride, 2), LIST(padding, 1, -1)}, call_conv2d},
    {"max_pool2d", {IMAGES}, {LIST(kernel, 3, 2), NUM(stride, 2), NUM(ceil_mode, 1)}, call_max_pool2d},
    {"avg_pool2d", {IMAGES}, {NUM(kernel, 2), NUM(padding, 1), NUM(exclude_padding, 1)}, call_avg_pool2d},
    {"global_avg_pool2d", {IMAGES}, {{0}}, call_global_avg_pool2d},
    {"adaptive_avg_pool2d", {IMAGES}, {NUM(OH, 4), NUM(OW, 5)}, call_adaptive_avg_pool2d},
    {"softmax", {X}, {NUM(axis, 0)}, call_softmax},
    {"log_softmax", {X}, {{0}}, call_log_softmax},
    {"cross_entropy", {X, LABELS}, {{0}}, call_cross_entropy},
    {"cross_entropy_weighted", {X, LABELS, ROWS}, {{0}}, call_cross_entropy_weighted},
    {"mse_loss", {X, Y}, {{0}}, call_mse_loss},
    {"batch_norm", {IMAGES, CHANNELS, CHANNELS, CHANNELS, CHANNELS}, {NUM(eps, 0.5f)}, call_batch_norm},
    {"layer_norm", {X}, {NUM(eps, 0.5f)}, call_layer_norm},
    {"rms_norm", {X}, {NUM(eps, 0.5f)}, call_rms_norm},
    {"embedding", {X, LABELS}, {{0}}, call_embedding},
    {"causal_mask", {SQUARE_}, {NUM(fill, -3)}, call_causal_mask},
    {"causal_softmax", {SQUARE_}, {NUM(scale, 0.5f)}, call_causal_softmax},
    {"scaled_dot_product_attention",
     {SEQUENCE, SEQUENCE, SEQUENCE},
     {NUM(causal, 1), NUM(scale, 2)},
     call_scaled_dot_product_attention},
    {"self_attention", {SEQUENCE}, {NUM(heads, 2), NUM(causal, 1)}, call_self_attention},
    {"dropout", {X}, {NUM(p, 0.25f)}, call_dropout},
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

static void make_tensors(clv_graph *graph, clv_tensor **all) {
    const clv_init zeros = {0};
    all[NONE] = NULL;
    all[X] = clv_parameter(graph, "x", CLV_SHAPE(2, 3), zeros);
    all[Y] = clv_input(graph, "y", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
    all[XT] = clv_input(graph, "xt", CLV_DTYPE_F32, CLV_SHAPE(3, 2));
    all[CONDITION] = clv_input(graph, "condition", CLV_DTYPE_I32, CLV_SHAPE(2, 3));
    all[LABELS] = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(2));
    all[ROWS] = clv_input(graph, "rows", CLV_DTYPE_F32, CLV_SHAPE(2));
    all[IMAGES] = clv_input(graph, "images", CLV_DTYPE_F32, CLV_SHAPE(2, 4, 6, 7));
    all[KERNEL_] = clv_parameter(graph, "kernel", CLV_SHAPE(4, 4, 3, 3), zeros);
    all[CHANNELS] = clv_parameter(graph, "channels", CLV_SHAPE(4), zeros);
    all[SEQUENCE] = clv_input(graph, "sequence", CLV_DTYPE_F32, CLV_SHAPE(2, 5, 12));
    all[SQUARE_] = clv_input(graph, "square", CLV_DTYPE_F32, CLV_SHAPE(2, 5, 5));
    for (int i = X; i < N_TENSORS; i++) assert_non_null(all[i]);
}

/** The graph of an example, by the C call or by its name. */
static clv_graph *graph_of(clv_runtime *runtime, const example *e, bool by_name, const char **result) {
    clv_graph *graph;
    clv_tensor *all[N_TENSORS], *in[MOST] = {0};
    int n = 0, n_arguments = 0;
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_graph_set_training(graph, true);
    make_tensors(graph, all);
    for (; e->in[n]; n++) in[n] = all[e->in[n]];
    while (e->arguments[n_arguments].name) n_arguments++;
    clv_tensor *y =
        by_name ? clv_op_call(graph, e->name, in, n, e->arguments, n_arguments) : e->call(graph, in);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_non_null(y);
    *result = clv_tensor_name(y);
    return graph;
}

/** The graph of each example in a file. */
static void comes_back(clv_runtime *runtime, const clv_graph *graph) {
    char *folder = clv__test_folder(), path[512];
    clv_graph *read;
    snprintf(path, sizeof path, "%s/graph.safetensors", folder);
    assert_status(clv_graph_create(runtime, &read), CLV_OK, runtime);
    assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
    assert_status(clv_graph_read(read, path), CLV_OK, runtime);
    assert_int_equal(read->n_nodes, graph->n_nodes);
    for (size_t k = 0; k < read->n_nodes; k++) clv__test_same_node(graph->nodes[k], read->nodes[k]);
    clv_graph_destroy(read);
    free(folder);
}

static void same_graphs(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = 0; i < N_EXAMPLES; i++) {
        const char *p, *q;
        clv_graph *a = graph_of(runtime, &examples[i], false, &p);
        clv_graph *b = graph_of(runtime, &examples[i], true, &q);
        assert_string_equal(p, q);
        assert_int_equal(a->n_nodes, b->n_nodes);
        for (size_t k = 0; k < a->n_nodes; k++) clv__test_same_node(a->nodes[k], b->nodes[k]);
        clv_graph_destroy(b);
        comes_back(runtime, a);
        clv_graph_destroy(a);
    }
    clv_runtime_destroy(runtime);
}

/** The header's builders, the list and the examples are in one order, and none is without another. */
static void none_is_forgotten(void **state) {
    (void)state;
    static const char before[] = "CLV_API clv_tensor *clv_";
    char line[512];
    int n = 0;
    FILE *header = fopen(CLV_OPS_H, "r");
    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        if (strncmp(line, before, sizeof before - 1) != 0) continue;
        char *name = line + sizeof before - 1;
        name[strcspn(name, "(")] = 0;
        assert_true(n < N_EXAMPLES);
        assert_string_equal(clv_op_get(n)->name, name);
        assert_string_equal(examples[n].name, name);
        assert_ptr_equal(clv_op_find(name), clv_op_get(n));
        n++;
    }
    fclose(header);
    assert_int_equal(n, N_EXAMPLES);
    assert_int_equal(clv_op_count(), n + clv_own_op_count());
    assert_null(clv_op_get(-1));
    assert_null(clv_op_get(clv_op_count()));
    assert_null(clv_op_find("no_such_op"));
}

static void refused(clv_runtime *runtime, const char *name, int n, clv_op_argument argument,
                    clv_status status, const char *sentence) {
    clv_graph *graph;
    clv_tensor *all[N_TENSORS];
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    make_tensors(graph, all);
    assert_null(clv_op_call(graph, name, &all[X], n, &argument, argument.name != NULL));
    assert_status(clv_graph_status(graph), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(graph);
}

/** A pair of two numbers says both of them, zeros too, as in PyTorch. */
static void pairs_say_zero(void **state) {
    (void)state;
    const struct {
        const char *op;
        clv_op_argument arguments[3];
        int64_t rows, columns; // of the result
    } cases[] = {
        {"conv2d", {LIST(padding, 3, 0)}, 10, 5},
        {"conv2d", {LIST(padding, 0, 3)}, 4, 11},
        {"conv2d", {LIST(padding, 3)}, 10, 11},
        {"conv2d", {NUM(padding, 3)}, 10, 11},
        {"conv2d", {LIST(padding, 3, -1)}, 10, 5},
        {"conv2d", {LIST(padding, 0, 0)}, 4, 5},
        {"max_pool2d", {NUM(kernel, 4), NUM(stride, 1), LIST(padding, 2, 0)}, 7, 4},
        {"avg_pool2d", {NUM(kernel, 4), NUM(stride, 1), LIST(padding, 0, 2)}, 3, 8},
        {"max_pool2d", {LIST(kernel, 2, 3), NUM(stride, 0)}, 3, 2}, // its default is the kernel
    };
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_graph *graph;
        int n = 0;
        assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
        clv_tensor *in[] = {clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, 1, 6, 7)),
                            clv_input(graph, "w", CLV_DTYPE_F32, CLV_SHAPE(1, 1, 3, 3))};
        while (n < 3 && cases[i].arguments[n].name) n++;
        clv_tensor *y = clv_op_call(graph, cases[i].op, in, i < 6 ? 2 : 1, cases[i].arguments, n);
        assert_status(clv_graph_status(graph), CLV_OK, runtime);
        const clv_shape shape = clv_tensor_shape(y);
        assert_int_equal(shape.dims[2], cases[i].rows);
        assert_int_equal(shape.dims[3], cases[i].columns);
        comes_back(runtime, graph);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

static void mistakes(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    refused(runtime, "rellu", 1, (clv_op_argument){0}, CLV_E_NOT_FOUND, "did you mean 'relu'?");
    refused(runtime, "relu", 2, (clv_op_argument){0}, CLV_E_VALUE,
            "relu has the inputs 'x', and 2 are given");
    refused(runtime, "concat", 0, (clv_op_argument){0}, CLV_E_VALUE, "'inputs...', and 0 are given");
    refused(runtime, "linear", 1, (clv_op_argument){0}, CLV_E_VALUE, "'x weight bias?', and 1 are given");
    refused(runtime, "pow_scalar", 1, (clv_op_argument){0}, CLV_E_VALUE, "pow_scalar wants 'exponent'");
    refused(runtime, "relu", 1, (clv_op_argument)NUM(axis, 1), CLV_E_NOT_FOUND, "it has: none");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 0.5), CLV_E_VALUE,
            "'axis' wants a whole number");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 1e300), CLV_E_VALUE,
            "'axis' wants a whole number");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 4294967296.0), CLV_E_VALUE,
            "'axis' is too large");
    refused(runtime, "sum", 1, (clv_op_argument)NUM(keepdim, 2), CLV_E_VALUE, "'keepdim' is 0 or 1");
    refused(runtime, "sum", 1, (clv_op_argument){.name = "axes", .n = 3}, CLV_E_VALUE, "'axes' is a list");
    refused(runtime, "sum", 1, (clv_op_argument)LIST(axes, 4294967296), CLV_E_VALUE, "'axes' holds a number");
    refused(runtime, "to", 1, (clv_op_argument)NUM(device, 1), CLV_E_VALUE, "'device' wants a text");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 7), CLV_E_VALUE, "axis 7");
    refused(runtime, "conv2d", 2, (clv_op_argument)LIST(stride, 2, 0), CLV_E_VALUE,
            "conv2d: 'stride' is 0, and must be at least 1");
    refused(runtime, "conv2d", 2, (clv_op_argument)LIST(stride, 0, 2), CLV_E_VALUE, "'stride' is 0");
    refused(runtime, "conv2d", 2, (clv_op_argument)NUM(dilation, 0), CLV_E_VALUE, "'dilation' is 0");
    refused(runtime, "conv2d", 2, (clv_op_argument)NUM(groups, 0), CLV_E_VALUE, "'groups' is 0");
    refused(runtime, "conv2d", 2, (clv_op_argument)LIST(padding, -1, 3), CLV_E_VALUE, "padding -1");
    refused(runtime, "max_pool2d", 1, (clv_op_argument)LIST(kernel, 3, 0), CLV_E_VALUE, "'kernel' is 0");
    assert_null(clv_op_call(NULL, "relu", NULL, 0, NULL, 0));
    clv_runtime_destroy(runtime);
}

static clv_tensor *twice(clv_tensor *const *in, int n, const double *attributes) {
    (void)n;
    return clv_mul_scalar(in[0], (float)(2 * attributes[0]));
}

static void own_ops_too(void **state) {
    (void)state;
    static const clv_attribute attributes[] = {{"by", 1.5}, {0}};
    const clv_own_op op = {
        .bytes = sizeof op, .name = "twice", .n_inputs = 1, .attributes = attributes, .build = twice};
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_graph *graph;
    assert_status(clv_op_register(runtime, &op), CLV_OK, runtime);
    const clv_op_signature *signature = clv_op_find("twice");
    assert_non_null(signature);
    assert_string_equal(signature->inputs, "in0");
    assert_string_equal(signature->attributes, "by:number=1.5");
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3));
    assert_non_null(clv_op_call(graph, "twice", &x, 1, &(clv_op_argument)NUM(by, 3), 1));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_graphs), cmocka_unit_test(none_is_forgotten),
                                       cmocka_unit_test(pairs_say_zero), cmocka_unit_test(mistakes),
                                       cmocka_unit_test(own_ops_too)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
