// SPDX-License-Identifier: Apache-2.0
// Every input that an op must refuse: its status, and what the sentence says. One row each.
#include <math.h>

#include "cleave/ops.h"
#include "harness/harness.h"

/** Inputs at hand: f32 a [2,3], b [4], s [], i32 i [2,3], f32 empty e [2,0], f32 r9-like x [2,3,4]. */
typedef struct inputs {
    clv_graph *graph;
    clv_tensor *a, *b, *s, *i, *e, *x;
} inputs;

typedef clv_tensor *(*build)(const inputs *in);

#define MISTAKE(name, expression)                                                                            \
    static clv_tensor *name(const inputs *in) {                                                              \
        return expression;                                                                                   \
    }
MISTAKE(add_shapes, clv_add(in->a, in->b))
MISTAKE(add_null, clv_add(in->a, NULL))
MISTAKE(cast_none, clv_cast(in->a, CLV_DTYPE_NONE))
MISTAKE(full_half, clv_full(in->graph, CLV_DTYPE_I32, CLV_SHAPE(2), 0.5f))
MISTAKE(full_large, clv_full(in->graph, CLV_DTYPE_I32, CLV_SHAPE(2), 3e9f))
MISTAKE(full_negative, clv_full(in->graph, CLV_DTYPE_F32, CLV_SHAPE(2, -1), 0))
MISTAKE(full_none, clv_full(in->graph, CLV_DTYPE_NONE, CLV_SHAPE(2), 0))
MISTAKE(sum_axis, clv_sum(in->a, (int[]){2}, 1, false))
MISTAKE(sum_negative_axis, clv_sum(in->a, (int[]){-3}, 1, false))
MISTAKE(sum_twice, clv_sum(in->a, (int[]){1, -1}, 2, false))
MISTAKE(max_nothing, clv_max(in->e, (int[]){1}, 1, false))
MISTAKE(argmax_axis, clv_argmax(in->a, 2, false))
MISTAKE(argmax_scalar, clv_argmax(in->s, 0, false))
MISTAKE(argmax_nothing, clv_argmax(in->e, -1, false))
MISTAKE(cumsum_axis, clv_cumsum(in->a, 2, false, false))
MISTAKE(cumsum_scalar, clv_cumsum(in->s, 0, false, false))
MISTAKE(topk_many, clv_topk(in->a, 4, 1, true, NULL))
MISTAKE(topk_negative, clv_topk(in->a, -1, 1, true, NULL))
MISTAKE(topk_axis, clv_topk(in->a, 1, -3, true, NULL))
MISTAKE(sort_axis, clv_sort(in->a, 2, true, NULL))
MISTAKE(argsort_scalar, clv_argsort(in->s, 0, true))
MISTAKE(min_nothing, clv_min(in->e, (int[]){1}, 1, false))
MISTAKE(argmin_axis, clv_argmin(in->a, 2, false))
MISTAKE(var_axis, clv_var(in->a, (int[]){2}, 1, 1, false))
MISTAKE(vector_norm_nan, clv_vector_norm(in->a, NAN, NULL, 0, false))
MISTAKE(pad_odd, clv_pad(in->a, (int[]){1, 1, 1}, 3, CLV_PAD_CONSTANT, 0))
MISTAKE(pad_many, clv_pad(in->b, (int[]){1, 1, 1, 1}, 4, CLV_PAD_CONSTANT, 0))
MISTAKE(pad_reflect, clv_pad(in->a, (int[]){3, 0}, 2, CLV_PAD_REFLECT, 0))
MISTAKE(pad_nothing, clv_pad(in->e, (int[]){1, 0}, 2, CLV_PAD_REPLICATE, 0))
MISTAKE(pad_less, clv_pad(in->a, (int[]){-2, -2}, 2, CLV_PAD_CONSTANT, 0))
MISTAKE(pad_mode, clv_pad(in->a, (int[]){1, 1}, 2, (clv_pad_mode)4, 0))
MISTAKE(tile_negative, clv_tile(in->a, (int[]){-1}, 1))
MISTAKE(flip_axis, clv_flip(in->a, 2))
MISTAKE(roll_axis, clv_roll(in->a, 1, -3))
MISTAKE(stack_axis, clv_stack((clv_tensor *[]){in->a, in->a}, 2, 3))
MISTAKE(stack_shapes, clv_stack((clv_tensor *[]){in->a, in->b}, 2, 0))
MISTAKE(glu_odd, clv_glu(in->a, 1))
MISTAKE(glu_axis, clv_glu(in->a, 2))
MISTAKE(prelu_weights, clv_prelu(in->x, in->b))
MISTAKE(bitwise_floats, clv_bitwise_and(in->a, in->a))
MISTAKE(bitwise_not_floats, clv_bitwise_not(in->a))
MISTAKE(tril_scalar, clv_tril(in->s, 0))
MISTAKE(triu_scalar, clv_triu(in->s, 0))
MISTAKE(one_hot_floats, clv_one_hot(in->a, 3))
MISTAKE(one_hot_none, clv_one_hot(in->i, 0))
MISTAKE(cumprod_axis, clv_cumprod(in->a, 2, false, false))
MISTAKE(prod_axis, clv_prod(in->a, (int[]){1, -1}, 2, false))
MISTAKE(nan_to_num_nan, clv_nan_to_num(in->a, 0, NAN, 0))
MISTAKE(arange_away, clv_arange(in->graph, 0, 5, -1, CLV_DTYPE_F32))
MISTAKE(arange_half, clv_arange(in->graph, 0.5, 5, 1, CLV_DTYPE_I32))
MISTAKE(arange_dtype, clv_arange(in->graph, 0, 5, 1, CLV_DTYPE_U8))
MISTAKE(uniform_endless, clv_random_uniform(in->graph, CLV_SHAPE(3), 0, INFINITY))
MISTAKE(normal_negative, clv_random_normal(in->graph, CLV_SHAPE(3), 0, -1))
MISTAKE(bernoulli_whole, clv_bernoulli(in->i))
MISTAKE(multinomial_rank, clv_multinomial(in->x, 1, true))
MISTAKE(multinomial_many, clv_multinomial(in->a, 4, false))
MISTAKE(multinomial_none, clv_multinomial(in->a, 0, true))
MISTAKE(interpolate_rank, clv_interpolate(in->a, (clv_shape){0}, NULL))
MISTAKE(interpolate_sizes, clv_interpolate(in->x, CLV_SHAPE(4, 4), NULL))
MISTAKE(interpolate_none, clv_interpolate(in->x, CLV_SHAPE(0), NULL))
MISTAKE(interpolate_scale, clv_interpolate(in->x, (clv_shape){0}, &(clv_interpolate_config){.scale = {0.1}}))
MISTAKE(resample_axis, clv_resample(in->a, 2, in->i, in->a))
MISTAKE(resample_table, clv_resample(in->a, 1, clv_reshape(in->i, CLV_SHAPE(6)), in->a))
MISTAKE(grid_rank, clv_grid_sample(in->a, in->a, CLV_GRID_BILINEAR, CLV_GRID_ZEROS, false))
MISTAKE(grid_numbers, clv_grid_sample(in->x, in->x, CLV_GRID_BILINEAR, CLV_GRID_ZEROS, false))
MISTAKE(grid_mode, clv_grid_sample(in->x, in->x, (clv_grid_mode)3, CLV_GRID_ZEROS, false))
MISTAKE(adaptive_max_rank, clv_adaptive_max_pool2d(in->x, 1, 1))
MISTAKE(adaptive_max_none, clv_adaptive_max_pool1d(in->x, 0))
MISTAKE(logical_types, clv_logical_or(in->a, in->i))
MISTAKE(sum_to_shape, clv_sum_to(in->a, CLV_SHAPE(2)))
MISTAKE(sum_to_longer, clv_sum_to(in->a, CLV_SHAPE(1, 2, 3)))
MISTAKE(reshape_numel, clv_reshape(in->a, CLV_SHAPE(4)))
MISTAKE(reshape_negative, clv_reshape(in->a, CLV_SHAPE(-2, -3)))
MISTAKE(reshape_two, clv_reshape(in->a, CLV_SHAPE(-1, -1)))
MISTAKE(reshape_uneven, clv_reshape(in->a, CLV_SHAPE(4, -1)))
MISTAKE(reshape_any, clv_reshape(in->e, CLV_SHAPE(0, -1)))
MISTAKE(flatten_axis, clv_flatten(in->a, 2))
MISTAKE(transpose_axis, clv_transpose(in->a, 0, 2))
MISTAKE(permute_few, clv_permute(in->a, (int[]){0}, 1))
MISTAKE(permute_twice, clv_permute(in->a, (int[]){1, -1}, 2))
MISTAKE(permute_axis, clv_permute(in->a, (int[]){0, 5}, 2))
MISTAKE(permute_many, clv_permute(in->a, (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9))
MISTAKE(broadcast_shape, clv_broadcast_to(in->a, CLV_SHAPE(2, 4)))
MISTAKE(broadcast_shorter, clv_broadcast_to(in->a, CLV_SHAPE(3)))
MISTAKE(slice_axis, clv_slice(in->a, 2, 0, 1))
MISTAKE(slice_start, clv_slice(in->a, 0, -1, 1))
MISTAKE(slice_end, clv_slice(in->a, 1, 2, 2))
MISTAKE(slice_overflow, clv_slice(in->a, 1, INT64_MAX, INT64_MAX))
MISTAKE(concat_shapes, clv_concat((clv_tensor *[]){in->a, in->x}, 2, 0))
MISTAKE(concat_types, clv_concat((clv_tensor *[]){in->a, in->i}, 2, 0))
MISTAKE(concat_axis, clv_concat((clv_tensor *[]){in->a, in->a}, 2, 2))
MISTAKE(gather_axis, clv_gather(in->a, 2, in->i))
MISTAKE(gather_scalar, clv_gather(in->s, 0, in->i))
MISTAKE(gather_rank, clv_gather(in->x, 0, in->i))
MISTAKE(gather_beside, clv_gather(clv_slice(in->a, 1, 0, 2), 0, in->i))
MISTAKE(select_rank,
        clv_index_select(in->x, 0,
                         clv_input(in->graph, "long", CLV_DTYPE_I32, CLV_SHAPE(1, 1, 1, 1, 1, 1, 1))))
MISTAKE(scatter_shape, clv_scatter(in->a, 1, in->i, in->x))
MISTAKE(scatter_type, clv_scatter(in->a, 1, in->i, in->i))
MISTAKE(index_add_shape, clv_index_add(in->x, 1, in->i, in->a))
MISTAKE(index_add_axis, clv_index_add(in->a, -3, in->i, in->a))
MISTAKE(nd_batch, clv_gather_nd(in->a, 2, in->i))
MISTAKE(nd_beside, clv_gather_nd(in->b, 1, in->i))
MISTAKE(nd_shared, clv_gather_nd(clv_reshape(in->a, CLV_SHAPE(3, 2)), 1, in->i))
MISTAKE(nd_tuple, clv_gather_nd(in->a, 0, in->i))
MISTAKE(nd_updates, clv_scatter_nd(in->x, 0, in->i, in->a))

static const struct {
    build call;
    clv_status status;
    const char *says;
} mistakes[] = {
    {add_shapes, CLV_E_SHAPE, "shapes [2,3] and [4] do not broadcast: 3 and 4 meet"},
    {add_null, CLV_E_VALUE, "b is NULL"},
    {cast_none, CLV_E_DTYPE, "to none is not possible"},
    {full_half, CLV_E_VALUE, "0.5 is no i32"},
    {full_large, CLV_E_VALUE, "3e+09 is no i32"},
    {full_negative, CLV_E_SHAPE, "shape [2,-1] is not possible"},
    {full_none, CLV_E_DTYPE, "the type is none"},
    {sum_axis, CLV_E_VALUE, "axis 2 is outside rank 2"},
    {sum_negative_axis, CLV_E_VALUE, "axis -3 is outside rank 2"},
    {sum_twice, CLV_E_VALUE, "axis -1 is named twice"},
    {max_nothing, CLV_E_SHAPE, "the largest of no elements"},
    {argmax_axis, CLV_E_VALUE, "axis 2"},
    {argmax_scalar, CLV_E_VALUE, "axis 0"},
    {argmax_nothing, CLV_E_SHAPE, "the largest of no elements"},
    {cumsum_axis, CLV_E_VALUE, "axis 2"},
    {cumsum_scalar, CLV_E_VALUE, "axis 0"},
    {topk_many, CLV_E_VALUE, "k is 4, the axis has 3 elements"},
    {topk_negative, CLV_E_VALUE, "k is -1, it must be at least 0"},
    {topk_axis, CLV_E_VALUE, "axis -3"},
    {sort_axis, CLV_E_VALUE, "axis 2"},
    {argsort_scalar, CLV_E_VALUE, "axis 0"},
    {min_nothing, CLV_E_SHAPE, "max"},
    {argmin_axis, CLV_E_VALUE, "axis 2"},
    {var_axis, CLV_E_VALUE, "axis 2"},
    {vector_norm_nan, CLV_E_VALUE, "p is not a number"},
    {pad_odd, CLV_E_VALUE, "3 numbers"},
    {pad_many, CLV_E_VALUE, "4 numbers, two are wanted for each of at most 1 dimensions"},
    {pad_reflect, CLV_E_VALUE, "3 and 0 elements around 3 are not possible"},
    {pad_nothing, CLV_E_VALUE, "1 and 0 elements around 0 are not possible"},
    {pad_less, CLV_E_VALUE, "not possible"},
    {pad_mode, CLV_E_VALUE, "mode is 4"},
    {tile_negative, CLV_E_VALUE, "-1 times"},
    {flip_axis, CLV_E_VALUE, "flip: axis 2 is outside of rank 2"},
    {roll_axis, CLV_E_VALUE, "roll: axis -3 is outside of rank 2"},
    {stack_axis, CLV_E_VALUE, "stack: axis 3 is outside of rank 3"},
    {stack_shapes, CLV_E_SHAPE, "stack: input 1 has another shape than the first"},
    {glu_odd, CLV_E_SHAPE, "glu: the axis has 3 elements, which is odd"},
    {glu_axis, CLV_E_VALUE, "glu: axis 2 is outside of rank 2"},
    {prelu_weights, CLV_E_SHAPE, "do not broadcast: 3 and 4 meet"},
    {bitwise_floats, CLV_E_DTYPE, "a is f32"},
    {tril_scalar, CLV_E_SHAPE, "tril: x has 0 dimensions, a matrix has two"},
    {triu_scalar, CLV_E_SHAPE, "triu: x has 0 dimensions, a matrix has two"},
    {one_hot_floats, CLV_E_DTYPE, "x is f32, it must be int|bool"},
    {one_hot_none, CLV_E_VALUE, "classes is 0, it must be at least 1"},
    {cumprod_axis, CLV_E_VALUE, "axis 2"},
    {prod_axis, CLV_E_VALUE, "prod: axis -1 is outside of rank 2, or named twice"},
    {nan_to_num_nan, CLV_E_VALUE, "posinf"},
    {arange_away, CLV_E_VALUE, "arange: from 0 to 5 by -1 is not possible"},
    {arange_half, CLV_E_VALUE, "arange: from 0.5 to 5 by 1"},
    {arange_dtype, CLV_E_DTYPE, "arange: u8 is not possible"},
    {uniform_endless, CLV_E_VALUE, "0 and inf are no limits"},
    {normal_negative, CLV_E_VALUE, "0 and -1 are no mean and standard deviation"},
    {bernoulli_whole, CLV_E_DTYPE, "p is i32"},
    {multinomial_rank, CLV_E_SHAPE, "multinomial: weights must be"},
    {multinomial_many, CLV_E_VALUE, "multinomial: 4 of 3 classes without replacement"},
    {multinomial_none, CLV_E_VALUE, "n is 0"},
    {interpolate_rank, CLV_E_SHAPE, "interpolate: 0 sizes for x of 2 dimensions"},
    {interpolate_sizes, CLV_E_SHAPE, "interpolate: 2 sizes for x of 3 dimensions"},
    {interpolate_none, CLV_E_VALUE, "interpolate: 4 places cannot become 0"},
    {interpolate_scale, CLV_E_VALUE, "interpolate: 4 places cannot become 0"},
    {resample_axis, CLV_E_SHAPE, "start"},
    {resample_table, CLV_E_SHAPE, "weight"},
    {grid_rank, CLV_E_SHAPE, "x has 2 dimensions, it must have 3, 4 or 5"},
    {grid_numbers, CLV_E_SHAPE, "grid must have 3 dimensions, the last one of 1 numbers"},
    {grid_mode, CLV_E_VALUE, "mode"},
    {adaptive_max_rank, CLV_E_SHAPE, "x has 3 dimensions, it must have 4"},
    {adaptive_max_none, CLV_E_VALUE, "OL is 0, it must be at least 1"},
    {bitwise_not_floats, CLV_E_DTYPE, "x is f32, it must be i32|i8|u8|bool"},
    {logical_types, CLV_E_DTYPE, "b is i32"},
    {sum_to_shape, CLV_E_SHAPE, "[2] does not broadcast to [2,3]"},
    {sum_to_longer, CLV_E_SHAPE, "[1,2,3] does not broadcast to [2,3]"},
    {reshape_numel, CLV_E_SHAPE, "shape [4] has 4 elements, x has 6"},
    {reshape_negative, CLV_E_SHAPE, "shape [-2,-3] is not possible"},
    {reshape_two, CLV_E_SHAPE,
     "shape [-1,-1] is not possible: a dimension is negative; one dimension may be -1"},
    {reshape_uneven, CLV_E_SHAPE,
     "shape [4,-1] is not possible: a dimension is negative; one dimension may be -1, if the "
     "others divide 6"},
    {reshape_any, CLV_E_SHAPE, "shape [0,-1] is not possible"},
    {flatten_axis, CLV_E_VALUE, "axis 2 is outside rank 2"},
    {transpose_axis, CLV_E_VALUE, "axes 0 and 2, the rank is 2"},
    {permute_few, CLV_E_VALUE, "1 axes are named, x has rank 2"},
    {permute_twice, CLV_E_VALUE, "axis -1 is named twice"},
    {permute_axis, CLV_E_VALUE, "axis 5"},
    {permute_many, CLV_E_VALUE, "'axes' is a list that is too long, or NULL"},
    {broadcast_shape, CLV_E_SHAPE, "[2,3] does not broadcast to [2,4]"},
    {broadcast_shorter, CLV_E_SHAPE, "[2,3] does not broadcast to [3]"},
    {slice_axis, CLV_E_VALUE, "axis 2"},
    {slice_start, CLV_E_VALUE, "1 elements from -1 on are not all inside axis 0 of length 2"},
    {slice_end, CLV_E_VALUE, "2 elements from 2 on are not all inside axis 1 of length 3"},
    {slice_overflow, CLV_E_VALUE, "'start' is too large"},
    {concat_shapes, CLV_E_SHAPE, "input 1 is [2,3,4], the first is [2,3]: they may differ in axis 0 only"},
    {concat_types, CLV_E_DTYPE, "input 1 is i32, the first is f32"},
    {concat_axis, CLV_E_VALUE, "axis 2"},
    {gather_axis, CLV_E_VALUE, "axis 2 is outside a tensor of 2 dimensions"},
    {gather_scalar, CLV_E_VALUE, "axis 0 is outside a tensor of 0 dimensions"},
    {gather_rank, CLV_E_SHAPE,
     "index is [2,3], it must have x's rank, and be no longer than x, [2,3,4], outside of axis 0"},
    {gather_beside, CLV_E_SHAPE,
     "index is [2,3], it must have x's rank, and be no longer than x, [2,2], outside of axis 0"},
    {select_rank, CLV_E_SHAPE, "there would be 9 dimensions, the most is 8"},
    {scatter_shape, CLV_E_SHAPE, "src is [2,3,4], it must be [2,3]"},
    {scatter_type, CLV_E_DTYPE, "src is i32, it must be f32 as x is"},
    {index_add_shape, CLV_E_SHAPE, "source is [2,3], it must be [2,2,3,4]"},
    {index_add_axis, CLV_E_VALUE, "axis -3 is outside a tensor of 2 dimensions"},
    {nd_batch, CLV_E_VALUE,
     "batch_dims is 2, it must be at least 0, and below the ranks 2 of x and 2 of indices"},
    {nd_beside, CLV_E_VALUE,
     "batch_dims is 1, it must be at least 0, and below the ranks 1 of x and 2 of indices"},
    {nd_shared, CLV_E_SHAPE, "indices is [2,3], with batch_dims 1 it must begin as x does, [3,2]"},
    {nd_tuple, CLV_E_SHAPE, "the last dimension of indices is 3, it must be 1 to 2"},
    {nd_updates, CLV_E_SHAPE, "updates is [2,3], it must be [2]"},
};

static void every_mistake_is_told(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
        clv_graph *graph;
        assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
        const inputs in = {
            graph,
            clv_input(graph, "a", CLV_DTYPE_F32, CLV_SHAPE(2, 3)),
            clv_input(graph, "b", CLV_DTYPE_F32, CLV_SHAPE(4)),
            clv_input(graph, "s", CLV_DTYPE_F32, (clv_shape){0}),
            clv_input(graph, "i", CLV_DTYPE_I32, CLV_SHAPE(2, 3)),
            clv_input(graph, "e", CLV_DTYPE_F32, CLV_SHAPE(2, 0)),
            clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4)),
        };
        assert_null(mistakes[k].call(&in));
        clv_status status = clv_graph_status(graph);
        if (status != mistakes[k].status) print_error("row %zu: '%s'\n", k, mistakes[k].says);
        assert_status(status, mistakes[k].status, runtime);
        assert_holds(clv_runtime_error(runtime), mistakes[k].says);
        // The first mistake stays, and calls on its NULL are quiet.
        assert_null(clv_relu(
            clv_reshape(clv_sum(clv_concat((clv_tensor *[]){NULL}, 1, 0), NULL, 0, false), CLV_SHAPE(1))));
        assert_int_equal(clv_graph_status(graph), mistakes[k].status);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

static void a_length_is_filled_in(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_graph *graph;
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4)),
               *e = clv_input(graph, "e", CLV_DTYPE_F32, CLV_SHAPE(2, 0)),
               *s = clv_input(graph, "s", CLV_DTYPE_F32, (clv_shape){0});
    const struct {
        clv_tensor *of;
        clv_shape asked, made;
    } cases[] = {
        {x, CLV_SHAPE(-1), CLV_SHAPE(24)},
        {x, CLV_SHAPE(6, -1), CLV_SHAPE(6, 4)},
        {x, CLV_SHAPE(2, -1, 4), CLV_SHAPE(2, 3, 4)},
        {x, CLV_SHAPE(-1, 24), CLV_SHAPE(1, 24)},
        {e, CLV_SHAPE(-1), CLV_SHAPE(0)},
        {s, CLV_SHAPE(1, -1), CLV_SHAPE(1, 1)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_shape made = clv_tensor_shape(clv_reshape(cases[i].of, cases[i].asked));
        assert_status(clv_graph_status(graph), CLV_OK, runtime);
        assert_true(clv_shape_equal(&made, &cases[i].made));
    }
    assert_true(clv_reshape(x, CLV_SHAPE(2, -1, 4)) == x); // nothing to do
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_is_told),
                                       cmocka_unit_test(a_length_is_filled_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
