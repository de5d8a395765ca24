// SPDX-License-Identifier: Apache-2.0
// What pooling, softmax, losses, norms and dropout must refuse: status, and what the sentence says. One row each.
#include <math.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "harness/harness.h"
#include "ops/attention/attention_step.h"

/** Inputs at hand: f32 x [2,3,4,5], m [4,6], v [3], s [], none [2,0]; i32 labels [4], i [4,6]. */
typedef struct inputs {
    clv_graph *graph;
    clv_tensor *x, *m, *v, *s, *none, *labels, *i;
} inputs;

typedef clv_tensor *(*build)(const inputs *in);

#define MISTAKE(name, expression)                                                                            \
    static clv_tensor *name(const inputs *in) {                                                              \
        return expression;                                                                                   \
    }
#define POOL(...) (&(clv_pool2d_config){__VA_ARGS__})
MISTAKE(pool_config, clv_max_pool2d(in->x, NULL))
MISTAKE(pool_padding_half, clv_max_pool2d(in->x, POOL(.kernel = {3, 3}, .padding = {0, 2})))
MISTAKE(pool_dilated_mean, clv_avg_pool2d(in->x, POOL(.kernel = {2, 2}, .dilation = {2, 1})))
MISTAKE(pool_window, clv_max_pool2d(in->x, POOL(.kernel = {5, 2})))
MISTAKE(pool_dilated_window, clv_max_pool2d(in->x, POOL(.kernel = {2, 3}, .dilation = {1, 3})))
MISTAKE(pool_huge, clv_max_pool2d(in->x, POOL(.kernel = {1 << 20, 1}, .dilation = {1 << 20, 1})))
MISTAKE(pool_large, clv_avg_pool2d(in->x, POOL(.kernel = {400}, .padding = {200})))
MISTAKE(pool_huge_stride, clv_max_pool2d(in->x, POOL(.kernel = {1, 1}, .stride = {1, INT32_MAX})))
MISTAKE(linear_none, clv_nn_linear(in->m, "fc", 0, NULL))
MISTAKE(linear_negative, clv_nn_linear(in->m, "fc", -3, NULL))
MISTAKE(conv_none, clv_nn_conv2d(in->x, "c", 0, &(clv_nn_conv2d_config){.kernel = {3}}))
MISTAKE(conv_groups, clv_nn_conv2d(in->x, "c", 2, &(clv_nn_conv2d_config){.kernel = {3}, .groups = -1}))
MISTAKE(conv_kernel, clv_nn_conv2d(in->x, "c", 2, NULL))
MISTAKE(transpose_none,
        clv_nn_conv_transpose2d(in->x, "c", 0, &(clv_nn_conv_transpose2d_config){.kernel = {3}}))
MISTAKE(transpose_groups,
        clv_nn_conv_transpose2d(in->x, "c", 3, &(clv_nn_conv_transpose2d_config){.kernel = {3}, .groups = 2}))
MISTAKE(transpose_kernel, clv_nn_conv_transpose2d(in->x, "c", 2, NULL))
MISTAKE(table_rows, clv_nn_embedding(in->i, "e", 0, 4, NULL))
MISTAKE(table_features, clv_nn_embedding(in->i, "e", 5, 0, NULL))
MISTAKE(row_pool_rank, clv_max_pool1d(in->x, &(clv_pool1d_config){.kernel = 2}))
MISTAKE(row_pool_kernel, clv_avg_pool1d(clv_reshape(in->x, CLV_SHAPE(-1, 2, 6)), &(clv_pool1d_config){0}))
MISTAKE(solid_pool_rank, clv_max_pool3d(in->x, &(clv_pool3d_config){.kernel = {2}}))
MISTAKE(solid_pool_config, clv_avg_pool3d(in->x, NULL))
MISTAKE(adaptive_empty, clv_adaptive_avg_pool2d(clv_slice(in->x, 2, 0, 0), 3, 3))
MISTAKE(attention_rank, clv_scaled_dot_product_attention(in->s, in->m, in->m, NULL))
MISTAKE(attention_groups, clv_scaled_dot_product_attention(clv_reshape(in->m, CLV_SHAPE(3, 2, 4)),
                                                           clv_reshape(in->m, CLV_SHAPE(2, 3, 4)),
                                                           clv_reshape(in->m, CLV_SHAPE(2, 3, 4)),
                                                           &(clv_attention_config){.enable_gqa = true}))
MISTAKE(rotary_pairs, clv_rotary_embedding(in->m, in->m, in->m, false))
MISTAKE(self_attention_mask, clv_self_attention(clv_reshape(in->m, CLV_SHAPE(1, 2, 12)), 2,
                                                &(clv_attention_config){.attn_mask = in->m}))
MISTAKE(self_attention_heads, clv_self_attention(clv_reshape(in->m, CLV_SHAPE(1, 2, 12)), 3, NULL))
MISTAKE(self_attention_no_heads, clv_self_attention(clv_reshape(in->m, CLV_SHAPE(1, 2, 12)), 0, NULL))
MISTAKE(self_attention_dropout, clv_self_attention(clv_reshape(in->m, CLV_SHAPE(1, 2, 12)), 2,
                                                   &(clv_attention_config){.dropout = 1.5f}))
static clv_tensor *named(const inputs *in, const char *name, clv_shape shape) {
    return clv_input(in->graph, name, CLV_DTYPE_F32, shape);
}
/** Steps [T,2,12] and weights [rows,4]. */
static clv_tensor *recurrence(const inputs *in, int64_t T, int64_t rows, clv_cell cell, bool c) {
    clv_recurrent_state state = {.c = c ? named(in, "c", CLV_SHAPE(2, 4)) : NULL};
    return clv_recurrence(named(in, "z", CLV_SHAPE(T, 2, 12)), named(in, "w", CLV_SHAPE(rows, 4)), NULL, NULL,
                          cell, false, &state);
}
MISTAKE(recurrence_steps, recurrence(in, 0, 12, CLV_CELL_GRU, false))
MISTAKE(recurrence_rows, recurrence(in, 3, 12, CLV_CELL_LSTM, false))
MISTAKE(recurrence_gates, recurrence(in, 3, 16, CLV_CELL_GRU, false))
MISTAKE(recurrence_c, recurrence(in, 3, 12, CLV_CELL_GRU, true))
MISTAKE(recurrence_cell, recurrence(in, 3, 12, (clv_cell)4, false))
MISTAKE(recurrence_empty, clv_recurrence(named(in, "z", CLV_SHAPE(1, 2, 0)), named(in, "w", CLV_SHAPE(0, 0)),
                                         NULL, NULL, CLV_CELL_GRU, false, NULL))
/** x [3,2,5], and of weights the first n of weight_ih [16,5], weight_hh [16,4], and two biases. */
static clv_tensor *lstm(const inputs *in, int n, const clv_recurrent_config *config, clv_tensor *h) {
    clv_tensor *weights[] = {named(in, "ih", CLV_SHAPE(16, 5)), named(in, "hh", CLV_SHAPE(16, 4)),
                             named(in, "b", CLV_SHAPE(16)), named(in, "d", CLV_SHAPE(16))};
    clv_recurrent_state state = {h, NULL};
    clv_tensor *y = clv_lstm(named(in, "z", CLV_SHAPE(3, 2, 5)), NULL, weights, n, config, &state);
    return y || state.h || state.c ? in->x : NULL;
}
MISTAKE(lstm_rank, clv_lstm(in->m, NULL, &in->m, 2, NULL, NULL))
MISTAKE(lstm_three, lstm(in, 3, NULL, NULL))
MISTAKE(lstm_none, clv_lstm(named(in, "z", CLV_SHAPE(3, 2, 5)), NULL, NULL, 2, NULL, NULL))
MISTAKE(lstm_directions, lstm(in, 2, &(clv_recurrent_config){.bidirectional = true}, NULL))
MISTAKE(lstm_layers, lstm(in, 4, &(clv_recurrent_config){.layers = -1}, NULL))
MISTAKE(lstm_many_layers, lstm(in, 4, &(clv_recurrent_config){.layers = 33, .bidirectional = true}, NULL))
MISTAKE(lstm_state, lstm(in, 4, NULL, named(in, "h", CLV_SHAPE(2, 4))))
MISTAKE(lstm_first_axis,
        lstm(in, 4, &(clv_recurrent_config){.batch_first = true}, named(in, "h", CLV_SHAPE(1, 2, 4))))
MISTAKE(rnn_hidden, clv_nn_rnn(in->x, NULL, "r", 0, NULL, NULL))
MISTAKE(gru_layers, clv_nn_gru(named(in, "z", CLV_SHAPE(3, 2, 5)), NULL, "g", 3,
                               &(clv_recurrent_config){.layers = 65}, NULL))
MISTAKE(lstm_image, clv_nn_lstm(in->x, NULL, "l", 3, NULL, NULL))
/** rows: of values, where they are not those of keys; position NULL: the first label. */
static clv_tensor *step(const inputs *in, clv_tensor *x, clv_shape keys, int64_t rows, clv_tensor *position,
                        int64_t heads) {
    clv_tensor *k = clv_buffer(in->graph, "keys", CLV_DTYPE_F32, keys, (clv_init){0});
    if (rows) keys.dims[1] = rows;
    clv_tensor *v = clv_buffer(in->graph, "values", CLV_DTYPE_F32, keys, (clv_init){0});
    return clv__attention_step(x, k, v, position ? position : clv_slice(in->labels, 0, 0, 1), heads, heads);
}
MISTAKE(step_dtype, step(in, in->i, CLV_SHAPE(4, 5, 2), 0, NULL, 2))
MISTAKE(step_rank, step(in, in->v, CLV_SHAPE(4, 5, 2), 0, NULL, 2))
MISTAKE(step_keys, step(in, in->m, CLV_SHAPE(4, 2), 0, NULL, 2))
MISTAKE(step_values, step(in, in->m, CLV_SHAPE(4, 5, 2), 6, NULL, 2))
MISTAKE(step_columns, step(in, in->m, CLV_SHAPE(4, 5, 3), 0, NULL, 3))
MISTAKE(step_sequences, step(in, in->m, CLV_SHAPE(3, 5, 2), 0, NULL, 2))
MISTAKE(step_no_row, step(in, in->m, CLV_SHAPE(4, 0, 2), 0, NULL, 2))
MISTAKE(step_positions, step(in, in->m, CLV_SHAPE(4, 5, 2), 0, in->labels, 2))
MISTAKE(step_position_dtype, step(in, in->m, CLV_SHAPE(4, 5, 2), 0, in->v, 2))
MISTAKE(step_heads, step(in, in->m, CLV_SHAPE(4, 5, 2), 0, NULL, 3))
MISTAKE(step_no_heads, step(in, in->m, CLV_SHAPE(4, 5, 2), 0, NULL, 0))
MISTAKE(softmax_axis, clv_softmax(in->m, 2))
MISTAKE(softmax_scalar, clv_softmax(in->s, 0))
MISTAKE(log_softmax_axis, clv_log_softmax(in->m, -3))
MISTAKE(entropy_rank, clv_cross_entropy(in->v, in->labels))
MISTAKE(entropy_rows, clv_cross_entropy(in->m, in->i))
MISTAKE(entropy_pixels, clv_cross_entropy(in->x, in->labels))
MISTAKE(entropy_classes,
        clv_cross_entropy(in->none, clv_input(in->graph, "two", CLV_DTYPE_I32, CLV_SHAPE(2))))
MISTAKE(entropy_weight, clv_cross_entropy_weighted(in->m, in->labels, in->m))
MISTAKE(entropy_weight_infinite, clv_nn_label_weights(in->labels, (const float[]){1, -1}, 2, -100))
MISTAKE(group_norm_groups, clv_group_norm(in->m, 4, NULL, NULL, 1e-5F))
MISTAKE(group_norm_none, clv_group_norm(in->m, 0, NULL, NULL, 1e-5F))
MISTAKE(group_norm_weight, clv_group_norm(in->m, 2, in->v, NULL, 1e-5F))
MISTAKE(instance_norm_single, clv_instance_norm(in->m, NULL, NULL, 1e-5F))
MISTAKE(response_size, clv_local_response_norm(in->x, 0, 1, 1, 1))
MISTAKE(shuffle_channels, clv_pixel_shuffle(in->x, 2))
MISTAKE(unshuffle_sides, clv_pixel_unshuffle(in->x, 2))
MISTAKE(shuffle_rank, clv_pixel_shuffle(in->m, 1))
MISTAKE(l1_shapes, clv_l1_loss(in->m, in->v, CLV_REDUCTION_MEAN))
MISTAKE(l1_reduction, clv_l1_loss(in->m, in->m, (clv_reduction)7))
MISTAKE(l1_no_batch, clv_l1_loss(in->s, in->s, CLV_REDUCTION_BATCHMEAN))
MISTAKE(huber_delta, clv_huber_loss(in->m, in->m, 0, CLV_REDUCTION_SUM))
MISTAKE(focal_gamma, clv_sigmoid_focal_loss(in->m, in->m, 0.25F, -1, CLV_REDUCTION_SUM))
MISTAKE(nll_rows, clv_nll_loss(in->m, in->i, NULL, CLV_REDUCTION_SUM))
MISTAKE(triplet_margin,
        clv_triplet_margin_loss(in->m, in->m, in->m, &(clv_triplet_config){.margin = -1}, CLV_REDUCTION_SUM))
static clv_tensor *ctc(const inputs *in, clv_shape targets, clv_shape lengths, int64_t steps, int blank) {
    clv_graph *g = in->graph;
    return clv_ctc_loss(clv_input(g, "steps", CLV_DTYPE_F32, CLV_SHAPE(steps, 2, 3)),
                        clv_input(g, "t", CLV_DTYPE_I32, targets), clv_input(g, "n", CLV_DTYPE_I32, lengths),
                        clv_input(g, "l", CLV_DTYPE_I32, CLV_SHAPE(2)), blank, false, CLV_REDUCTION_MEAN);
}
MISTAKE(ctc_blank, ctc(in, CLV_SHAPE(2, 4), CLV_SHAPE(2), 5, 3))
MISTAKE(ctc_negative, ctc(in, CLV_SHAPE(2, 4), CLV_SHAPE(2), 5, -1))
MISTAKE(ctc_targets, ctc(in, CLV_SHAPE(3, 4), CLV_SHAPE(2), 5, 0))
MISTAKE(ctc_targets_rank, ctc(in, CLV_SHAPE(2, 4, 1), CLV_SHAPE(2), 5, 0))
MISTAKE(ctc_lengths, ctc(in, CLV_SHAPE(2, 4), CLV_SHAPE(3), 5, 0))
MISTAKE(ctc_no_steps, ctc(in, CLV_SHAPE(2, 4), CLV_SHAPE(2), 0, 0))
MISTAKE(ctc_large, ctc(in, CLV_SHAPE(2, 1 << 20), CLV_SHAPE(2), 2000, 0))
MISTAKE(mse_shapes, clv_mse_loss(in->m, in->v))
MISTAKE(norm_single,
        clv_batch_norm(clv_reshape(in->v, CLV_SHAPE(1, 3)), NULL, NULL, NULL, NULL, true, 0.1f, 1e-5f))
MISTAKE(dropout_p, clv_dropout(in->m, 1.5f))
MISTAKE(dropout_nan, clv_dropout(in->m, NAN))

static const struct {
    build call;
    clv_status status;
    const char *says;
} mistakes[] = {
    {pool_config, CLV_E_VALUE, "max_pool2d wants 'kernel'"},
    {pool_padding_half, CLV_E_VALUE, "padding 2 is more than half of the kernel 3 along W"},
    {pool_dilated_mean, CLV_E_NOT_FOUND, "avg_pool2d has no attribute 'dilation'"},
    {pool_window, CLV_E_SHAPE, "a window of 5 elements does not fit into H = 4 with padding 0"},
    {pool_dilated_window, CLV_E_SHAPE, "a window of 7 elements does not fit into W = 5"},
    {pool_huge, CLV_E_VALUE, "is too large"},
    {pool_large, CLV_E_VALUE,
     "windows of 400 x 400 with stride 400 x 400 and dilation 1 x 1 are too large to pool"},
    {pool_huge_stride, CLV_E_VALUE, "is too large"},
    {linear_none, CLV_E_VALUE, "linear 'fc': out_features is 0, it must be at least 1"},
    {linear_negative, CLV_E_VALUE, "linear 'fc': out_features is -3"},
    {conv_none, CLV_E_VALUE, "conv2d 'c': out_channels is 0"},
    {conv_groups, CLV_E_VALUE, "conv2d 'c': groups is -1"},
    {conv_kernel, CLV_E_VALUE, "conv2d 'c': kernel is 0"},
    {transpose_none, CLV_E_VALUE, "conv_transpose2d 'c': out_channels is 0"},
    {transpose_groups, CLV_E_VALUE, "conv_transpose2d 'c': groups 2 does not divide 3 output channels"},
    {transpose_kernel, CLV_E_VALUE, "conv_transpose2d 'c': kernel is 0"},
    {table_rows, CLV_E_VALUE, "embedding 'e': rows is 0"},
    {table_features, CLV_E_VALUE, "embedding 'e': features is 0"},
    {row_pool_rank, CLV_E_SHAPE, "x has 4 dimensions, it must have 3"},
    {row_pool_kernel, CLV_E_VALUE, "kernel is 0, it must be at least 1"},
    {solid_pool_rank, CLV_E_SHAPE, "x has 4 dimensions, it must have 5"},
    {solid_pool_config, CLV_E_VALUE, "avg_pool3d wants 'kernel'"},
    {adaptive_empty, CLV_E_SHAPE, "x must have at least one row and column"},
    {attention_rank, CLV_E_SHAPE, "query has 0 dimensions, it must have at least 2"},
    {attention_groups, CLV_E_SHAPE, "3 query heads cannot share 2 key heads"},
    {rotary_pairs, CLV_E_SHAPE, "rotary_embedding: "},
    {self_attention_mask, CLV_E_SHAPE, "must be [N,H,T,T], all but the last of them perhaps 1"},
    {self_attention_heads, CLV_E_VALUE,
     "12 columns cannot be divided into queries of 3 heads, and keys and values of 3"},
    {self_attention_no_heads, CLV_E_VALUE,
     "12 columns cannot be divided into queries of 0 heads, and keys and values of 0"},
    {self_attention_dropout, CLV_E_VALUE, "p is 1.5, it must be at most 1"},
    {recurrence_steps, CLV_E_SHAPE, "z has no steps"},
    {recurrence_rows, CLV_E_SHAPE, "weight_hh has 12 rows, 4 gates of 4 need 16"},
    {recurrence_gates, CLV_E_SHAPE, "weight_hh is [16,4], it must be [12,H] as z is [3,2,12]"},
    {recurrence_c, CLV_E_VALUE, "c0 is given, and only an LSTM has such a state"},
    {recurrence_cell, CLV_E_VALUE, "cell is 4, it must be at most 3"},
    {recurrence_empty, CLV_E_SHAPE, "weight_hh has no columns"},
    {lstm_rank, CLV_E_SHAPE, "lstm: x must be [T,N,F], or with batch_first [N,T,F]"},
    {lstm_three, CLV_E_SHAPE,
     "3 weights are given, there must be 2, weight_ih and weight_hh of each layer and direction, or 4"},
    {lstm_none, CLV_E_SHAPE, "0 weights are given"},
    {lstm_directions, CLV_E_SHAPE, "2 weights are given, there must be 4"},
    {lstm_layers, CLV_E_VALUE, "layers is -1, it must be from 1 to 64"},
    {lstm_many_layers, CLV_E_VALUE, "layers is 33, it must be from 1 to 32"},
    {lstm_state, CLV_E_SHAPE, "h0 must be [1,N,H]: a state for each layer and direction"},
    {lstm_first_axis, CLV_E_SHAPE, "h0 is [2,4], it must be [3,4] as z is [2,3,16]"},
    {rnn_hidden, CLV_E_VALUE, "rnn 'r': hidden is 0, it must be at least 1"},
    {gru_layers, CLV_E_VALUE, "layers is 65, it must be from 1 to 64"},
    {lstm_image, CLV_E_SHAPE, "x must be [T,N,F]"},
    {step_dtype, CLV_E_DTYPE, "x is i32, it must be f32"},
    {step_rank, CLV_E_SHAPE, "x has 1 dimension, it must have 2"},
    {step_keys, CLV_E_SHAPE, "keys has 2 dimensions, it must have 3"},
    {step_values, CLV_E_SHAPE, "values is [4,6,2], it must be [4,5,2] as keys is [4,5,2]"},
    {step_columns, CLV_E_SHAPE, "x must be [N,Q+2D], Q 3 for 3 heads, for keys of [N,T,D]"},
    {step_sequences, CLV_E_SHAPE, "keys is [3,5,2], it must be [4,T,D] as x is [4,6]"},
    {step_no_row, CLV_E_SHAPE, "keys have no row to write to"},
    {step_positions, CLV_E_SHAPE, "position is [4], it must be [1]"},
    {step_position_dtype, CLV_E_DTYPE, "position is f32, it must be int"},
    {step_heads, CLV_E_VALUE,
     "2 columns cannot be divided into 3 heads, or the 3 query heads cannot share them"},
    {step_no_heads, CLV_E_VALUE,
     "2 columns cannot be divided into 0 heads, or the 0 query heads cannot share them"},
    {softmax_axis, CLV_E_VALUE, "axis 2"},
    {softmax_scalar, CLV_E_VALUE, "axis 0"},
    {log_softmax_axis, CLV_E_VALUE, "axis -3"},
    {entropy_rank, CLV_E_SHAPE, "logits has 1 dimension, it must have at least 2"},
    {entropy_rows, CLV_E_SHAPE, "labels is [4,6], it must be [4] as logits is [4,6]"},
    {entropy_pixels, CLV_E_SHAPE, "labels is [4], it must be [2,4,5] as logits is [2,3,4,5]"},
    {entropy_classes, CLV_E_SHAPE, "logits have no classes"},
    {entropy_weight, CLV_E_SHAPE, "weight is [4,6], it must be [4] as logits is [4,6]"},
    {entropy_weight_infinite, CLV_E_VALUE, "the weight of class 1 is -1: it must be finite, and at least 0"},
    {group_norm_groups, CLV_E_VALUE, "6 channels cannot be divided into 4 groups"},
    {group_norm_none, CLV_E_VALUE, "groups is 0"},
    {group_norm_weight, CLV_E_SHAPE, "weight is [3], it must be [6]"},
    {instance_norm_single, CLV_E_SHAPE, "needs more than one value"},
    {response_size, CLV_E_VALUE, "size is 0"},
    {shuffle_channels, CLV_E_SHAPE, "3 channels are no multiple of 2 x 2"},
    {unshuffle_sides, CLV_E_SHAPE, "4 x 5 is no multiple of 2"},
    {shuffle_rank, CLV_E_SHAPE, "x has 2 dimensions"},
    {l1_shapes, CLV_E_SHAPE, "target is [3], it must be [4,6] as x is [4,6]"},
    {l1_reduction, CLV_E_VALUE, "reduction is 7"},
    {l1_no_batch, CLV_E_SHAPE, "a loss without dimensions is of no batch"},
    {huber_delta, CLV_E_VALUE, "delta is 0"},
    {focal_gamma, CLV_E_VALUE, "gamma is -1"},
    {nll_rows, CLV_E_SHAPE, "labels is [4,6], it must be [4]"},
    {triplet_margin, CLV_E_VALUE, "margin is -1"},
    {ctc_blank, CLV_E_VALUE, "blank is 3, x has 3 classes"},
    {ctc_negative, CLV_E_VALUE, "blank is -1"},
    {ctc_targets, CLV_E_SHAPE, "targets have 3 rows, x has 2 samples"},
    {ctc_targets_rank, CLV_E_SHAPE, "targets have 3 dimensions, they must have 1 or 2"},
    {ctc_lengths, CLV_E_SHAPE, "input_lengths is [3], it must be [2] as x is [5,2,3]"},
    {ctc_no_steps, CLV_E_SHAPE, "x has no steps"},
    {ctc_large, CLV_E_SHAPE, "2000 steps of 2 samples with 1048576 labels are too many"},
    {mse_shapes, CLV_E_SHAPE, "target is [3], it must be [4,6] as x is [4,6]"},
    {norm_single, CLV_E_VALUE, "training needs more than one value for each channel, x has 1"},
    {dropout_p, CLV_E_VALUE, "p is 1.5, it must be at most 1"},
    {dropout_nan, CLV_E_VALUE, "p is not a number"},
};

static void every_mistake_is_told(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
        clv_graph *graph;
        assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
        clv_graph_set_training(graph, true);
        const inputs in = {
            graph,
            clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4, 5)),
            clv_input(graph, "m", CLV_DTYPE_F32, CLV_SHAPE(4, 6)),
            clv_input(graph, "v", CLV_DTYPE_F32, CLV_SHAPE(3)),
            clv_input(graph, "s", CLV_DTYPE_F32, (clv_shape){0}),
            clv_input(graph, "none", CLV_DTYPE_F32, CLV_SHAPE(2, 0)),
            clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(4)),
            clv_input(graph, "i", CLV_DTYPE_I32, CLV_SHAPE(4, 6)),
        };
        assert_null(mistakes[k].call(&in));
        clv_status status = clv_graph_status(graph);
        if (status != mistakes[k].status) print_error("row %zu: '%s'\n", k, mistakes[k].says);
        assert_status(status, mistakes[k].status, runtime);
        assert_holds(clv_runtime_error(runtime), mistakes[k].says);
        // Calls on the NULL of a failed build are quiet.
        clv_tensor *x = clv_global_avg_pool2d(clv_avg_pool2d(clv_max_pool2d(NULL, NULL), NULL));
        x = clv_dropout(clv_batch_norm(clv_log_softmax(clv_softmax(x, 0), 0), x, x, x, x, true, 0, 0), 2);
        assert_null(clv_mse_loss(clv_cross_entropy(x, x), x));
        assert_int_equal(clv_graph_status(graph), mistakes[k].status);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

/** Images of one pixel less than a model takes: how many it takes is said. torchvision's models have these
 *  sizes, too. */
static void smallest_images_are_told(void **state) {
    (void)state;
    static const struct {
        const char *model;
        int64_t least;
    } models[] = {{"linear", 1}, {"mlp", 1},      {"cnn", 6},      {"alexnet", 63},    {"vgg11", 32},
                  {"vgg16", 32}, {"resnet18", 1}, {"resnet50", 1}, {"mobilenet_v2", 1}};
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const clv_model *model = clv_model_find(models[i].model);
        const int64_t channels = model->input[0], least = models[i].least;
        for (int64_t less = 0; less < 2 && less < least; less++) { // higher than wide, and large enough
            char said[200];
            clv_graph *graph;
            assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
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
    clv_graph *graph; // another mistake than the size
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    assert_null(clv_model_build(clv_model_find("vgg11"),
                                clv_input(graph, "x", CLV_DTYPE_I32, CLV_SHAPE(1, 3, 32, 32))));
    assert_int_not_equal(clv_graph_status(graph), CLV_OK);
    assert_null(strstr(clv_runtime_error(runtime), "takes images"));
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_is_told),
                                       cmocka_unit_test(smallest_images_are_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
