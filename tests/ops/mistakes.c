// SPDX-License-Identifier: Apache-2.0
// Every input that an op must refuse: its status, and what the sentence says. One row each.
#include <math.h>

#include "cleave/ops.h"
#include "harness/mistake.h"

/** Inputs at hand: f32 a [2,3], b [4], s [], i32 i [2,3], f32 empty e [2,0], f32 r9-like x [2,3,4]. */
static struct { clv_tensor *a, *b, *s, *i, *e, *x; } in;

static void make_inputs(void) {
    in.a = clv_input(graph, "a", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
    in.b = clv_input(graph, "b", CLV_DTYPE_F32, CLV_SHAPE(4));
    in.s = clv_input(graph, "s", CLV_DTYPE_F32, (clv_shape){0});
    in.i = clv_input(graph, "i", CLV_DTYPE_I32, CLV_SHAPE(2, 3));
    in.e = clv_input(graph, "e", CLV_DTYPE_F32, CLV_SHAPE(2, 0));
    in.x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4));
}

/** Calls on the NULL of a failed build are quiet. */
static void pass_on(void) {
    assert_null(clv_relu(
        clv_reshape(clv_sum(clv_concat((clv_tensor *[]){NULL}, 1, 0), NULL, 0, false), CLV_SHAPE(1))));
}

TEST(every_mistake_is_told) {
    MISTAKE(clv_add(in.a, in.b), CLV_E_SHAPE, "shapes [2,3] and [4] do not broadcast: 3 and 4 meet");
    MISTAKE(clv_add(in.a, NULL), CLV_E_VALUE, "b is NULL");
    MISTAKE(clv_cast(in.a, CLV_DTYPE_NONE), CLV_E_DTYPE, "to none is not possible");
    MISTAKE(clv_full(graph, CLV_DTYPE_I32, CLV_SHAPE(2), 0.5f), CLV_E_VALUE, "0.5 is no i32");
    MISTAKE(clv_full(graph, CLV_DTYPE_I32, CLV_SHAPE(2), 3e9f), CLV_E_VALUE, "3e+09 is no i32");
    MISTAKE(clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(2, -1), 0), CLV_E_SHAPE, "shape [2,-1] is not possible");
    MISTAKE(clv_full(graph, CLV_DTYPE_NONE, CLV_SHAPE(2), 0), CLV_E_DTYPE, "the type is none");
    MISTAKE(clv_sum(in.a, (int[]){2}, 1, false), CLV_E_VALUE, "axis 2 is outside rank 2");
    MISTAKE(clv_sum(in.a, (int[]){-3}, 1, false), CLV_E_VALUE, "axis -3 is outside rank 2");
    MISTAKE(clv_sum(in.a, (int[]){1, -1}, 2, false), CLV_E_VALUE, "axis -1 is named twice");
    MISTAKE(clv_max(in.e, (int[]){1}, 1, false), CLV_E_SHAPE, "the largest of no elements");
    MISTAKE(clv_argmax(in.a, 2, false), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_argmax(in.s, 0, false), CLV_E_VALUE, "axis 0");
    MISTAKE(clv_argmax(in.e, -1, false), CLV_E_SHAPE, "the largest of no elements");
    MISTAKE(clv_cumsum(in.a, 2, false, false), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_cumsum(in.s, 0, false, false), CLV_E_VALUE, "axis 0");
    MISTAKE(clv_topk(in.a, 4, 1, true, NULL), CLV_E_VALUE, "k is 4, the axis has 3 elements");
    MISTAKE(clv_topk(in.a, -1, 1, true, NULL), CLV_E_VALUE, "k is -1, it must be at least 0");
    MISTAKE(clv_topk(in.a, 1, -3, true, NULL), CLV_E_VALUE, "axis -3");
    MISTAKE(clv_sort(in.a, 2, true, NULL), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_argsort(in.s, 0, true), CLV_E_VALUE, "axis 0");
    MISTAKE(clv_min(in.e, (int[]){1}, 1, false), CLV_E_SHAPE, "max");
    MISTAKE(clv_argmin(in.a, 2, false), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_var(in.a, (int[]){2}, 1, 1, false), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_vector_norm(in.a, NAN, NULL, 0, false), CLV_E_VALUE, "p is not a number");
    MISTAKE(clv_pad(in.a, (int[]){1, 1, 1}, 3, CLV_PAD_CONSTANT, 0), CLV_E_VALUE, "3 numbers");
    MISTAKE(clv_pad(in.b, (int[]){1, 1, 1, 1}, 4, CLV_PAD_CONSTANT, 0), CLV_E_VALUE,
            "4 numbers, two are wanted for each of at most 1 dimensions");
    MISTAKE(clv_pad(in.a, (int[]){3, 0}, 2, CLV_PAD_REFLECT, 0), CLV_E_VALUE,
            "3 and 0 elements around 3 are not possible");
    MISTAKE(clv_pad(in.e, (int[]){1, 0}, 2, CLV_PAD_REPLICATE, 0), CLV_E_VALUE,
            "1 and 0 elements around 0 are not possible");
    MISTAKE(clv_pad(in.a, (int[]){-2, -2}, 2, CLV_PAD_CONSTANT, 0), CLV_E_VALUE, "not possible");
    MISTAKE(clv_pad(in.a, (int[]){1, 1}, 2, (clv_pad_mode)4, 0), CLV_E_VALUE, "mode is 4");
    MISTAKE(clv_tile(in.a, (int[]){-1}, 1), CLV_E_VALUE, "-1 times");
    MISTAKE(clv_flip(in.a, 2), CLV_E_VALUE, "flip: axis 2 is outside of rank 2");
    MISTAKE(clv_roll(in.a, 1, -3), CLV_E_VALUE, "roll: axis -3 is outside of rank 2");
    MISTAKE(clv_stack((clv_tensor *[]){in.a, in.a}, 2, 3), CLV_E_VALUE, "stack: axis 3 is outside of rank 3");
    MISTAKE(clv_stack((clv_tensor *[]){in.a, in.b}, 2, 0), CLV_E_SHAPE,
            "stack: input 1 has another shape than the first");
    MISTAKE(clv_glu(in.a, 1), CLV_E_SHAPE, "glu: the axis has 3 elements, which is odd");
    MISTAKE(clv_glu(in.a, 2), CLV_E_VALUE, "glu: axis 2 is outside of rank 2");
    MISTAKE(clv_prelu(in.x, in.b), CLV_E_SHAPE, "do not broadcast: 3 and 4 meet");
    MISTAKE(clv_bitwise_and(in.a, in.a), CLV_E_DTYPE, "a is f32");
    MISTAKE(clv_tril(in.s, 0), CLV_E_SHAPE, "tril: x has 0 dimensions, a matrix has two");
    MISTAKE(clv_triu(in.s, 0), CLV_E_SHAPE, "triu: x has 0 dimensions, a matrix has two");
    MISTAKE(clv_one_hot(in.a, 3), CLV_E_DTYPE, "x is f32, it must be int|bool");
    MISTAKE(clv_one_hot(in.i, 0), CLV_E_VALUE, "classes is 0, it must be at least 1");
    MISTAKE(clv_cumprod(in.a, 2, false, false), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_prod(in.a, (int[]){1, -1}, 2, false), CLV_E_VALUE,
            "prod: axis -1 is outside of rank 2, or named twice");
    MISTAKE(clv_nan_to_num(in.a, 0, NAN, 0), CLV_E_VALUE, "posinf");
    MISTAKE(clv_arange(graph, 0, 5, -1, CLV_DTYPE_F32), CLV_E_VALUE,
            "arange: from 0 to 5 by -1 is not possible");
    MISTAKE(clv_arange(graph, 0.5, 5, 1, CLV_DTYPE_I32), CLV_E_VALUE, "arange: from 0.5 to 5 by 1");
    MISTAKE(clv_arange(graph, 0, 5, 1, CLV_DTYPE_U8), CLV_E_DTYPE, "arange: u8 is not possible");
    MISTAKE(clv_random_uniform(graph, CLV_SHAPE(3), 0, INFINITY), CLV_E_VALUE, "0 and inf are no limits");
    MISTAKE(clv_random_normal(graph, CLV_SHAPE(3), 0, -1), CLV_E_VALUE,
            "0 and -1 are no mean and standard deviation");
    MISTAKE(clv_bernoulli(in.i), CLV_E_DTYPE, "p is i32");
    MISTAKE(clv_multinomial(in.x, 1, true), CLV_E_SHAPE, "multinomial: weights must be");
    MISTAKE(clv_multinomial(in.a, 4, false), CLV_E_VALUE, "multinomial: 4 of 3 classes without replacement");
    MISTAKE(clv_multinomial(in.a, 0, true), CLV_E_VALUE, "n is 0");
    MISTAKE(clv_interpolate(in.a, (clv_shape){0}, NULL), CLV_E_SHAPE,
            "interpolate: 0 sizes for x of 2 dimensions");
    MISTAKE(clv_interpolate(in.x, CLV_SHAPE(4, 4), NULL), CLV_E_SHAPE,
            "interpolate: 2 sizes for x of 3 dimensions");
    MISTAKE(clv_interpolate(in.x, CLV_SHAPE(0), NULL), CLV_E_VALUE, "interpolate: 4 places cannot become 0");
    MISTAKE(clv_interpolate(in.x, (clv_shape){0}, &(clv_interpolate_config){.scale = {0.1}}), CLV_E_VALUE,
            "interpolate: 4 places cannot become 0");
    MISTAKE(clv_resample(in.a, 2, in.i, in.a), CLV_E_SHAPE, "start");
    MISTAKE(clv_resample(in.a, 1, clv_reshape(in.i, CLV_SHAPE(6)), in.a), CLV_E_SHAPE, "weight");
    MISTAKE(clv_grid_sample(in.a, in.a, CLV_GRID_BILINEAR, CLV_GRID_ZEROS, false), CLV_E_SHAPE,
            "x has 2 dimensions, it must have 3, 4 or 5");
    MISTAKE(clv_grid_sample(in.x, in.x, CLV_GRID_BILINEAR, CLV_GRID_ZEROS, false), CLV_E_SHAPE,
            "grid must have 3 dimensions, the last one of 1 numbers");
    MISTAKE(clv_grid_sample(in.x, in.x, (clv_grid_mode)3, CLV_GRID_ZEROS, false), CLV_E_VALUE, "mode");
    MISTAKE(clv_adaptive_max_pool2d(in.x, 1, 1), CLV_E_SHAPE, "x has 3 dimensions, it must have 4");
    MISTAKE(clv_adaptive_max_pool1d(in.x, 0), CLV_E_VALUE, "OL is 0, it must be at least 1");
    MISTAKE(clv_bitwise_not(in.a), CLV_E_DTYPE, "x is f32, it must be i32|i8|u8|bool");
    MISTAKE(clv_logical_or(in.a, in.i), CLV_E_DTYPE, "b is i32");
    MISTAKE(clv_sum_to(in.a, CLV_SHAPE(2)), CLV_E_SHAPE, "[2] does not broadcast to [2,3]");
    MISTAKE(clv_sum_to(in.a, CLV_SHAPE(1, 2, 3)), CLV_E_SHAPE, "[1,2,3] does not broadcast to [2,3]");
    MISTAKE(clv_reshape(in.a, CLV_SHAPE(4)), CLV_E_SHAPE, "shape [4] has 4 elements, x has 6");
    MISTAKE(clv_reshape(in.a, CLV_SHAPE(-2, -3)), CLV_E_SHAPE, "shape [-2,-3] is not possible");
    MISTAKE(clv_reshape(in.a, CLV_SHAPE(-1, -1)), CLV_E_SHAPE,
            "shape [-1,-1] is not possible: a dimension is negative; one dimension may be -1");
    MISTAKE(clv_reshape(in.a, CLV_SHAPE(4, -1)), CLV_E_SHAPE,
            "shape [4,-1] is not possible: a dimension is negative; one dimension may be -1, if the "
            "others divide 6");
    MISTAKE(clv_reshape(in.e, CLV_SHAPE(0, -1)), CLV_E_SHAPE, "shape [0,-1] is not possible");
    MISTAKE(clv_flatten(in.a, 2), CLV_E_VALUE, "axis 2 is outside rank 2");
    MISTAKE(clv_transpose(in.a, 0, 2), CLV_E_VALUE, "axes 0 and 2, the rank is 2");
    MISTAKE(clv_permute(in.a, (int[]){0}, 1), CLV_E_VALUE, "1 axes are named, x has rank 2");
    MISTAKE(clv_permute(in.a, (int[]){1, -1}, 2), CLV_E_VALUE, "axis -1 is named twice");
    MISTAKE(clv_permute(in.a, (int[]){0, 5}, 2), CLV_E_VALUE, "axis 5");
    MISTAKE(clv_permute(in.a, (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9), CLV_E_VALUE,
            "'axes' is a list that is too long, or NULL");
    MISTAKE(clv_broadcast_to(in.a, CLV_SHAPE(2, 4)), CLV_E_SHAPE, "[2,3] does not broadcast to [2,4]");
    MISTAKE(clv_broadcast_to(in.a, CLV_SHAPE(3)), CLV_E_SHAPE, "[2,3] does not broadcast to [3]");
    MISTAKE(clv_slice(in.a, 2, 0, 1), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_slice(in.a, 0, -1, 1), CLV_E_VALUE,
            "1 elements from -1 on are not all inside axis 0 of length 2");
    MISTAKE(clv_slice(in.a, 1, 2, 2), CLV_E_VALUE,
            "2 elements from 2 on are not all inside axis 1 of length 3");
    MISTAKE(clv_slice(in.a, 1, INT64_MAX, INT64_MAX), CLV_E_VALUE, "'start' is too large");
    MISTAKE(clv_concat((clv_tensor *[]){in.a, in.x}, 2, 0), CLV_E_SHAPE,
            "input 1 is [2,3,4], the first is [2,3]: they may differ in axis 0 only");
    MISTAKE(clv_concat((clv_tensor *[]){in.a, in.i}, 2, 0), CLV_E_DTYPE, "input 1 is i32, the first is f32");
    MISTAKE(clv_concat((clv_tensor *[]){in.a, in.a}, 2, 2), CLV_E_VALUE, "axis 2");
    MISTAKE(clv_gather(in.a, 2, in.i), CLV_E_VALUE, "axis 2 is outside a tensor of 2 dimensions");
    MISTAKE(clv_gather(in.s, 0, in.i), CLV_E_VALUE, "axis 0 is outside a tensor of 0 dimensions");
    MISTAKE(clv_gather(in.x, 0, in.i), CLV_E_SHAPE,
            "index is [2,3], it must have x's rank, and be no longer than x, [2,3,4], outside of axis 0");
    MISTAKE(clv_gather(clv_slice(in.a, 1, 0, 2), 0, in.i), CLV_E_SHAPE,
            "index is [2,3], it must have x's rank, and be no longer than x, [2,2], outside of axis 0");
    MISTAKE(
        clv_index_select(in.x, 0, clv_input(graph, "long", CLV_DTYPE_I32, CLV_SHAPE(1, 1, 1, 1, 1, 1, 1))),
        CLV_E_SHAPE, "there would be 9 dimensions, the most is 8");
    MISTAKE(clv_scatter(in.a, 1, in.i, in.x), CLV_E_SHAPE, "src is [2,3,4], it must be [2,3]");
    MISTAKE(clv_scatter(in.a, 1, in.i, in.i), CLV_E_DTYPE, "src is i32, it must be f32 as x is");
    MISTAKE(clv_index_add(in.x, 1, in.i, in.a), CLV_E_SHAPE, "source is [2,3], it must be [2,2,3,4]");
    MISTAKE(clv_index_add(in.a, -3, in.i, in.a), CLV_E_VALUE, "axis -3 is outside a tensor of 2 dimensions");
    MISTAKE(clv_gather_nd(in.a, 2, in.i), CLV_E_VALUE,
            "batch_dims is 2, it must be at least 0, and below the ranks 2 of x and 2 of indices");
    MISTAKE(clv_gather_nd(in.b, 1, in.i), CLV_E_VALUE,
            "batch_dims is 1, it must be at least 0, and below the ranks 1 of x and 2 of indices");
    MISTAKE(clv_gather_nd(clv_reshape(in.a, CLV_SHAPE(3, 2)), 1, in.i), CLV_E_SHAPE,
            "indices is [2,3], with batch_dims 1 it must begin as x does, [3,2]");
    MISTAKE(clv_gather_nd(in.a, 0, in.i), CLV_E_SHAPE,
            "the last dimension of indices is 3, it must be 1 to 2");
    MISTAKE(clv_scatter_nd(in.x, 0, in.i, in.a), CLV_E_SHAPE, "updates is [2,3], it must be [2]");
}

TEST(a_length_is_filled_in) {
    graph = clv__test_graph(runtime);
    make_inputs();
    const struct {
        clv_tensor *of;
        clv_shape asked, made;
    } cases[] = {
        {in.x, CLV_SHAPE(-1), CLV_SHAPE(24)},
        {in.x, CLV_SHAPE(6, -1), CLV_SHAPE(6, 4)},
        {in.x, CLV_SHAPE(2, -1, 4), CLV_SHAPE(2, 3, 4)},
        {in.x, CLV_SHAPE(-1, 24), CLV_SHAPE(1, 24)},
        {in.e, CLV_SHAPE(-1), CLV_SHAPE(0)},
        {in.s, CLV_SHAPE(1, -1), CLV_SHAPE(1, 1)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_shape made = clv_tensor_shape(clv_reshape(cases[i].of, cases[i].asked));
        assert_status(clv_graph_status(graph), CLV_OK, runtime);
        assert_true(clv_shape_equal(&made, &cases[i].made));
    }
    assert_true(clv_reshape(in.x, CLV_SHAPE(2, -1, 4)) == in.x); // nothing to do
    clv_graph_destroy(graph);
}

TEST_MAIN(setup, teardown)
