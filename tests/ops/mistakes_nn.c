// SPDX-License-Identifier: Apache-2.0
// What pooling, softmax, losses, norms and dropout must refuse: status, and what the sentence says. One row each.
#include <math.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "harness/mistake.h"
#include "ops/attention/attention_step.h"

/** Inputs at hand: f32 x [2,3,4,5], m [4,6], v [3], s [], none [2,0]; i32 labels [4], i [4,6]. */
static struct { clv_tensor *x, *m, *v, *s, *none, *labels, *i; } in;

static void make_inputs(void) {
    clv_graph_set_training(graph, true);
    in.x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4, 5));
    in.m = clv_input(graph, "m", CLV_DTYPE_F32, CLV_SHAPE(4, 6));
    in.v = clv_input(graph, "v", CLV_DTYPE_F32, CLV_SHAPE(3));
    in.s = clv_input(graph, "s", CLV_DTYPE_F32, (clv_shape){0});
    in.none = clv_input(graph, "none", CLV_DTYPE_F32, CLV_SHAPE(2, 0));
    in.labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(4));
    in.i = clv_input(graph, "i", CLV_DTYPE_I32, CLV_SHAPE(4, 6));
}

/** Calls on the NULL of a failed build are quiet. */
static void pass_on(void) {
    clv_tensor *x = clv_global_avg_pool2d(clv_avg_pool2d(clv_max_pool2d(NULL, NULL), NULL));
    x = clv_dropout(clv_batch_norm(clv_log_softmax(clv_softmax(x, 0), 0), x, x, x, x, true, 0, 0), 2);
    assert_null(clv_mse_loss(clv_cross_entropy(x, x), x));
}

#define POOL(...) (&(clv_pool2d_config){__VA_ARGS__})
static clv_tensor *named(const char *name, clv_shape shape) {
    return clv_input(graph, name, CLV_DTYPE_F32, shape);
}
/** Steps [T,2,12] and weights [rows,4]. */
static clv_tensor *recurrence(int64_t T, int64_t rows, clv_cell cell, bool c) {
    clv_recurrent_state state = {.c = c ? named("c", CLV_SHAPE(2, 4)) : NULL};
    return clv_recurrence(named("z", CLV_SHAPE(T, 2, 12)), named("w", CLV_SHAPE(rows, 4)), NULL, NULL, cell,
                          false, &state);
}
/** x [3,2,5], and of weights the first n of weight_ih [16,5], weight_hh [16,4], and two biases. */
static clv_tensor *lstm(int n, const clv_recurrent_config *config, clv_tensor *h) {
    clv_tensor *weights[] = {named("ih", CLV_SHAPE(16, 5)), named("hh", CLV_SHAPE(16, 4)),
                             named("b", CLV_SHAPE(16)), named("d", CLV_SHAPE(16))};
    clv_recurrent_state state = {h, NULL};
    clv_tensor *y = clv_lstm(named("z", CLV_SHAPE(3, 2, 5)), NULL, weights, n, config, &state);
    return y || state.h || state.c ? in.x : NULL;
}
/** rows: of values, where they are not those of keys; position NULL: the first label. */
static clv_tensor *step(clv_tensor *x, clv_shape keys, int64_t rows, clv_tensor *position, int64_t heads) {
    clv_tensor *k = clv_buffer(graph, "keys", CLV_DTYPE_F32, keys, (clv_init){0});
    if (rows) keys.dims[1] = rows;
    clv_tensor *v = clv_buffer(graph, "values", CLV_DTYPE_F32, keys, (clv_init){0});
    return clv__attention_step(x, k, v, position ? position : clv_slice(in.labels, 0, 0, 1), heads, heads);
}
static clv_tensor *ctc(clv_shape targets, clv_shape lengths, int64_t steps, int blank) {
    return clv_ctc_loss(clv_input(graph, "steps", CLV_DTYPE_F32, CLV_SHAPE(steps, 2, 3)),
                        clv_input(graph, "t", CLV_DTYPE_I32, targets),
                        clv_input(graph, "n", CLV_DTYPE_I32, lengths),
                        clv_input(graph, "l", CLV_DTYPE_I32, CLV_SHAPE(2)), blank, false, CLV_REDUCTION_MEAN);
}

TEST(every_mistake_is_told) {
    MISTAKE(clv_max_pool2d(in.x, NULL), CLV_E_VALUE, "max_pool2d wants 'kernel'");
    MISTAKE(clv_max_pool2d(in.x, POOL(.kernel = {3, 3}, .padding = {0, 2})), CLV_E_VALUE,
            "padding 2 is more than half of the kernel 3 along W");
    MISTAKE(clv_avg_pool2d(in.x, POOL(.kernel = {2, 2}, .dilation = {2, 1})), CLV_E_NOT_FOUND,
            "avg_pool2d has no attribute 'dilation'");
    MISTAKE(clv_max_pool2d(in.x, POOL(.kernel = {5, 2})), CLV_E_SHAPE,
            "a window of 5 elements does not fit into H = 4 with padding 0");
    MISTAKE(clv_max_pool2d(in.x, POOL(.kernel = {2, 3}, .dilation = {1, 3})), CLV_E_SHAPE,
            "a window of 7 elements does not fit into W = 5");
    MISTAKE(clv_max_pool2d(in.x, POOL(.kernel = {1 << 20, 1}, .dilation = {1 << 20, 1})), CLV_E_VALUE,
            "is too large");
    MISTAKE(clv_avg_pool2d(in.x, POOL(.kernel = {400}, .padding = {200})), CLV_E_VALUE,
            "windows of 400 x 400 with stride 400 x 400 and dilation 1 x 1 are too large to pool");
    MISTAKE(clv_max_pool2d(in.x, POOL(.kernel = {1, 1}, .stride = {1, INT32_MAX})), CLV_E_VALUE,
            "is too large");
    MISTAKE(clv_nn_linear(in.m, "fc", 0, NULL), CLV_E_VALUE,
            "linear 'fc': out_features is 0, it must be at least 1");
    MISTAKE(clv_nn_linear(in.m, "fc", -3, NULL), CLV_E_VALUE, "linear 'fc': out_features is -3");
    MISTAKE(clv_nn_conv2d(in.x, "c", 0, &(clv_nn_conv2d_config){.kernel = {3}}), CLV_E_VALUE,
            "conv2d 'c': out_channels is 0");
    MISTAKE(clv_nn_conv2d(in.x, "c", 2, &(clv_nn_conv2d_config){.kernel = {3}, .groups = -1}), CLV_E_VALUE,
            "conv2d 'c': groups is -1");
    MISTAKE(clv_nn_conv2d(in.x, "c", 2, NULL), CLV_E_VALUE, "conv2d 'c': kernel is 0");
    MISTAKE(clv_nn_conv_transpose2d(in.x, "c", 0, &(clv_nn_conv_transpose2d_config){.kernel = {3}}),
            CLV_E_VALUE, "conv_transpose2d 'c': out_channels is 0");
    MISTAKE(
        clv_nn_conv_transpose2d(in.x, "c", 3, &(clv_nn_conv_transpose2d_config){.kernel = {3}, .groups = 2}),
        CLV_E_VALUE, "conv_transpose2d 'c': groups 2 does not divide 3 output channels");
    MISTAKE(clv_nn_conv_transpose2d(in.x, "c", 2, NULL), CLV_E_VALUE, "conv_transpose2d 'c': kernel is 0");
    MISTAKE(clv_nn_embedding(in.i, "e", 0, 4, NULL), CLV_E_VALUE, "embedding 'e': rows is 0");
    MISTAKE(clv_nn_embedding(in.i, "e", 5, 0, NULL), CLV_E_VALUE, "embedding 'e': features is 0");
    MISTAKE(clv_max_pool1d(in.x, &(clv_pool1d_config){.kernel = 2}), CLV_E_SHAPE,
            "x has 4 dimensions, it must have 3");
    MISTAKE(clv_avg_pool1d(clv_reshape(in.x, CLV_SHAPE(-1, 2, 6)), &(clv_pool1d_config){0}), CLV_E_VALUE,
            "kernel is 0, it must be at least 1");
    MISTAKE(clv_max_pool3d(in.x, &(clv_pool3d_config){.kernel = {2}}), CLV_E_SHAPE,
            "x has 4 dimensions, it must have 5");
    MISTAKE(clv_avg_pool3d(in.x, NULL), CLV_E_VALUE, "avg_pool3d wants 'kernel'");
    MISTAKE(clv_adaptive_avg_pool2d(clv_slice(in.x, 2, 0, 0), 3, 3), CLV_E_SHAPE,
            "x must have at least one row and column");
    MISTAKE(clv_scaled_dot_product_attention(in.s, in.m, in.m, NULL), CLV_E_SHAPE,
            "query has 0 dimensions, it must have at least 2");
    MISTAKE(clv_scaled_dot_product_attention(
                clv_reshape(in.m, CLV_SHAPE(3, 2, 4)), clv_reshape(in.m, CLV_SHAPE(2, 3, 4)),
                clv_reshape(in.m, CLV_SHAPE(2, 3, 4)), &(clv_attention_config){.enable_gqa = true}),
            CLV_E_SHAPE, "3 query heads cannot share 2 key heads");
    MISTAKE(clv_rotary_embedding(in.m, in.m, in.m, false), CLV_E_SHAPE,
            "6 pairs cannot be turned in 6 features");
    MISTAKE(clv_self_attention(clv_reshape(in.m, CLV_SHAPE(1, 2, 12)), 2,
                               &(clv_attention_config){.attn_mask = in.m}),
            CLV_E_SHAPE, "must be [N,H,T,T], all but the last of them perhaps 1");
    MISTAKE(clv_self_attention(clv_reshape(in.m, CLV_SHAPE(1, 2, 12)), 3, NULL), CLV_E_VALUE,
            "12 columns cannot be divided into queries of 3 heads, and keys and values of 3");
    MISTAKE(clv_self_attention(clv_reshape(in.m, CLV_SHAPE(1, 2, 12)), 0, NULL), CLV_E_VALUE,
            "12 columns cannot be divided into queries of 0 heads, and keys and values of 0");
    MISTAKE(clv_self_attention(clv_reshape(in.m, CLV_SHAPE(1, 2, 12)), 2,
                               &(clv_attention_config){.dropout = 1.5f}),
            CLV_E_VALUE, "p is 1.5, it must be at most 1");
    MISTAKE(recurrence(0, 12, CLV_CELL_GRU, false), CLV_E_SHAPE, "z has no steps");
    MISTAKE(recurrence(3, 12, CLV_CELL_LSTM, false), CLV_E_SHAPE,
            "weight_hh has 12 rows, 4 gates of 4 need 16");
    MISTAKE(recurrence(3, 16, CLV_CELL_GRU, false), CLV_E_SHAPE,
            "weight_hh is [16,4], it must be [12,H] as z is [3,2,12]");
    MISTAKE(recurrence(3, 12, CLV_CELL_GRU, true), CLV_E_VALUE,
            "c0 is given, and only an LSTM has such a state");
    MISTAKE(recurrence(3, 12, (clv_cell)4, false), CLV_E_VALUE, "cell is 4, it must be at most 3");
    MISTAKE(clv_recurrence(named("z", CLV_SHAPE(1, 2, 0)), named("w", CLV_SHAPE(0, 0)), NULL, NULL,
                           CLV_CELL_GRU, false, NULL),
            CLV_E_SHAPE, "weight_hh has no columns");
    MISTAKE(clv_lstm(in.m, NULL, &in.m, 2, NULL, NULL), CLV_E_SHAPE,
            "lstm: x must be [T,N,F], or with batch_first [N,T,F]");
    MISTAKE(
        lstm(3, NULL, NULL), CLV_E_SHAPE,
        "3 weights are given, there must be 2, weight_ih and weight_hh of each layer and direction, or 4");
    MISTAKE(clv_lstm(named("z", CLV_SHAPE(3, 2, 5)), NULL, NULL, 2, NULL, NULL), CLV_E_SHAPE,
            "0 weights are given");
    MISTAKE(lstm(2, &(clv_recurrent_config){.bidirectional = true}, NULL), CLV_E_SHAPE,
            "2 weights are given, there must be 4");
    MISTAKE(lstm(4, &(clv_recurrent_config){.layers = -1}, NULL), CLV_E_VALUE,
            "layers is -1, it must be from 1 to 64");
    MISTAKE(lstm(4, &(clv_recurrent_config){.layers = 33, .bidirectional = true}, NULL), CLV_E_VALUE,
            "layers is 33, it must be from 1 to 32");
    MISTAKE(lstm(4, NULL, named("h", CLV_SHAPE(2, 4))), CLV_E_SHAPE,
            "h0 must be [1,N,H]: a state for each layer and direction");
    MISTAKE(lstm(4, &(clv_recurrent_config){.batch_first = true}, named("h", CLV_SHAPE(1, 2, 4))),
            CLV_E_SHAPE, "h0 is [2,4], it must be [3,4] as z is [2,3,16]");
    MISTAKE(clv_nn_rnn(in.x, NULL, "r", 0, NULL, NULL), CLV_E_VALUE,
            "rnn 'r': hidden is 0, it must be at least 1");
    MISTAKE(
        clv_nn_gru(named("z", CLV_SHAPE(3, 2, 5)), NULL, "g", 3, &(clv_recurrent_config){.layers = 65}, NULL),
        CLV_E_VALUE, "layers is 65, it must be from 1 to 64");
    MISTAKE(clv_nn_lstm(in.x, NULL, "l", 3, NULL, NULL), CLV_E_SHAPE, "x must be [T,N,F]");
    MISTAKE(step(in.i, CLV_SHAPE(4, 5, 2), 0, NULL, 2), CLV_E_DTYPE, "x is i32, it must be f32");
    MISTAKE(step(in.v, CLV_SHAPE(4, 5, 2), 0, NULL, 2), CLV_E_SHAPE, "x has 1 dimension, it must have 2");
    MISTAKE(step(in.m, CLV_SHAPE(4, 2), 0, NULL, 2), CLV_E_SHAPE, "keys has 2 dimensions, it must have 3");
    MISTAKE(step(in.m, CLV_SHAPE(4, 5, 2), 6, NULL, 2), CLV_E_SHAPE,
            "values is [4,6,2], it must be [4,5,2] as keys is [4,5,2]");
    MISTAKE(step(in.m, CLV_SHAPE(4, 5, 3), 0, NULL, 3), CLV_E_SHAPE,
            "x must be [N,Q+2D], Q 3 for 3 heads, for keys of [N,T,D]");
    MISTAKE(step(in.m, CLV_SHAPE(3, 5, 2), 0, NULL, 2), CLV_E_SHAPE,
            "keys is [3,5,2], it must be [4,T,D] as x is [4,6]");
    MISTAKE(step(in.m, CLV_SHAPE(4, 0, 2), 0, NULL, 2), CLV_E_SHAPE, "keys have no row to write to");
    MISTAKE(step(in.m, CLV_SHAPE(4, 5, 2), 0, in.labels, 2), CLV_E_SHAPE, "position is [4], it must be [1]");
    MISTAKE(step(in.m, CLV_SHAPE(4, 5, 2), 0, in.v, 2), CLV_E_DTYPE, "position is f32, it must be int");
    MISTAKE(step(in.m, CLV_SHAPE(4, 5, 2), 0, NULL, 3), CLV_E_VALUE,
            "2 columns cannot be divided into 3 heads, or the 3 query heads cannot share them");
    MISTAKE(step(in.m, CLV_SHAPE(4, 5, 2), 0, NULL, 0), CLV_E_VALUE,
            "2 columns cannot be divided into 0 heads, or the 0 query heads cannot share them");
    MISTAKE(clv_softmax(in.m, 2), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_softmax(in.s, 0), CLV_E_VALUE, "axis 0");
    MISTAKE(clv_log_softmax(in.m, -3), CLV_E_VALUE, "axis -3");
    MISTAKE(clv_cross_entropy(in.v, in.labels), CLV_E_SHAPE,
            "logits has 1 dimension, it must have at least 2");
    MISTAKE(clv_cross_entropy(in.m, in.i), CLV_E_SHAPE, "labels is [4,6], it must be [4] as logits is [4,6]");
    MISTAKE(clv_cross_entropy(in.x, in.labels), CLV_E_SHAPE,
            "labels is [4], it must be [2,4,5] as logits is [2,3,4,5]");
    MISTAKE(clv_cross_entropy(in.none, clv_input(graph, "two", CLV_DTYPE_I32, CLV_SHAPE(2))), CLV_E_SHAPE,
            "logits have no classes");
    MISTAKE(clv_cross_entropy_weighted(in.m, in.labels, in.m), CLV_E_SHAPE,
            "weight is [4,6], it must be [4] as logits is [4,6]");
    MISTAKE(clv_nn_label_weights(in.labels, (const float[]){1, -1}, 2, -100), CLV_E_VALUE,
            "the weight of class 1 is -1: it must be finite, and at least 0");
    MISTAKE(clv_group_norm(in.m, 4, NULL, NULL, 1e-5F), CLV_E_VALUE,
            "6 channels cannot be divided into 4 groups");
    MISTAKE(clv_group_norm(in.m, 0, NULL, NULL, 1e-5F), CLV_E_VALUE, "groups is 0");
    MISTAKE(clv_group_norm(in.m, 2, in.v, NULL, 1e-5F), CLV_E_SHAPE, "weight is [3], it must be [6]");
    MISTAKE(clv_instance_norm(in.m, NULL, NULL, 1e-5F), CLV_E_SHAPE, "needs more than one value");
    MISTAKE(clv_local_response_norm(in.x, 0, 1, 1, 1), CLV_E_VALUE, "size is 0");
    MISTAKE(clv_pixel_shuffle(in.x, 2), CLV_E_SHAPE, "3 channels are no multiple of 2 x 2");
    MISTAKE(clv_pixel_unshuffle(in.x, 2), CLV_E_SHAPE, "4 x 5 is no multiple of 2");
    MISTAKE(clv_pixel_shuffle(in.m, 1), CLV_E_SHAPE, "x has 2 dimensions");
    MISTAKE(clv_l1_loss(in.m, in.v, CLV_REDUCTION_MEAN), CLV_E_SHAPE,
            "target is [3], it must be [4,6] as x is [4,6]");
    MISTAKE(clv_l1_loss(in.m, in.m, (clv_reduction)7), CLV_E_VALUE, "reduction is 7");
    MISTAKE(clv_l1_loss(in.s, in.s, CLV_REDUCTION_BATCHMEAN), CLV_E_SHAPE,
            "a loss without dimensions is of no batch");
    MISTAKE(clv_huber_loss(in.m, in.m, 0, CLV_REDUCTION_SUM), CLV_E_VALUE, "delta is 0");
    MISTAKE(clv_sigmoid_focal_loss(in.m, in.m, 0.25F, -1, CLV_REDUCTION_SUM), CLV_E_VALUE, "gamma is -1");
    MISTAKE(clv_nll_loss(in.m, in.i, NULL, CLV_REDUCTION_SUM), CLV_E_SHAPE,
            "labels is [4,6], it must be [4]");
    MISTAKE(clv_triplet_margin_loss(in.m, in.m, in.m, &(clv_triplet_config){.margin = -1}, CLV_REDUCTION_SUM),
            CLV_E_VALUE, "margin is -1");
    MISTAKE(ctc(CLV_SHAPE(2, 4), CLV_SHAPE(2), 5, 3), CLV_E_VALUE, "blank is 3, x has 3 classes");
    MISTAKE(ctc(CLV_SHAPE(2, 4), CLV_SHAPE(2), 5, -1), CLV_E_VALUE, "blank is -1");
    MISTAKE(ctc(CLV_SHAPE(3, 4), CLV_SHAPE(2), 5, 0), CLV_E_SHAPE, "targets have 3 rows, x has 2 samples");
    MISTAKE(ctc(CLV_SHAPE(2, 4, 1), CLV_SHAPE(2), 5, 0), CLV_E_SHAPE,
            "targets have 3 dimensions, they must have 1 or 2");
    MISTAKE(ctc(CLV_SHAPE(2, 4), CLV_SHAPE(3), 5, 0), CLV_E_SHAPE,
            "input_lengths is [3], it must be [2] as x is [5,2,3]");
    MISTAKE(ctc(CLV_SHAPE(2, 4), CLV_SHAPE(2), 0, 0), CLV_E_SHAPE, "x has no steps");
    MISTAKE(ctc(CLV_SHAPE(2, 1 << 20), CLV_SHAPE(2), 2000, 0), CLV_E_SHAPE,
            "2000 steps of 2 samples with 1048576 labels are too many");
    MISTAKE(clv_mse_loss(in.m, in.v), CLV_E_SHAPE, "target is [3], it must be [4,6] as x is [4,6]");
    MISTAKE(clv_batch_norm(clv_reshape(in.v, CLV_SHAPE(1, 3)), NULL, NULL, NULL, NULL, true, 0.1f, 1e-5f),
            CLV_E_VALUE, "training needs more than one value for each channel, x has 1");
    MISTAKE(clv_dropout(in.m, 1.5f), CLV_E_VALUE, "p is 1.5, it must be at most 1");
    MISTAKE(clv_dropout(in.m, NAN), CLV_E_VALUE, "p is not a number");
}

/** Images of one pixel less than a model takes: how many it takes is said. torchvision's models have these
 *  sizes, too. */
TEST(smallest_images_are_told) {
    static const struct {
        const char *model;
        int64_t least;
    } models[] = {{"linear", 1}, {"mlp", 1},      {"cnn", 6},      {"alexnet", 63},    {"vgg11", 32},
                  {"vgg16", 32}, {"resnet18", 1}, {"resnet50", 1}, {"mobilenet_v2", 1}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const clv_model *model = clv_model_find(models[i].model);
        const int64_t channels = model->input[0], least = models[i].least;
        for (int64_t less = 0; less < 2 && less < least; less++) { // higher than wide, and large enough
            char said[200];
            graph = clv__test_graph(runtime);
            clv_tensor *x =
                clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, channels, least + 1, least - less));
            const bool built = clv_model_build(model, x) != NULL;
            if (built == (less != 0)) print_error("%s, %d less\n", model->name, (int)less);
            assert_int_equal(built, less == 0);
            assert_status(clv_graph_status(graph), less ? CLV_E_SHAPE : CLV_OK, runtime);
            snprintf(said, sizeof said, "; model '%s' takes images of %dx%d at least, and these are %dx%d",
                     model->name, (int)least, (int)least, (int)least + 1, (int)least - 1);
            if (less) assert_holds(clv_runtime_error(runtime), said);
            clv_graph_destroy(graph);
        }
    }
    graph = clv__test_graph(runtime); // another mistake than the size
    assert_null(clv_model_build(clv_model_find("vgg11"),
                                clv_input(graph, "x", CLV_DTYPE_I32, CLV_SHAPE(1, 3, 32, 32))));
    assert_int_not_equal(clv_graph_status(graph), CLV_OK);
    assert_null(strstr(clv_runtime_error(runtime), "takes images"));
    clv_graph_destroy(graph);
}

TEST_MAIN(setup, teardown)
