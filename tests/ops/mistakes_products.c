// SPDX-License-Identifier: Apache-2.0
// Every input that matmul, linear and conv2d must refuse: its status, and what the sentence says. One row each.
#include "cleave/ops.h"
#include "harness/harness.h"

/** Inputs at hand; digits are dimensions. */
typedef struct inputs {
    clv_tensor *scalar, *v3, *m23, *m34, *m42, *i23, *b234, *b345;
    clv_tensor *x, *weight, *bias, *xi, *v2; // x [2,4,5,6], weight [3,4,3,3], bias [3]
} inputs;

typedef clv_tensor *(*build)(const inputs *in);

#define MISTAKE(name, expression)                                                                            \
    static clv_tensor *name(const inputs *in) {                                                              \
        return expression;                                                                                   \
    }
MISTAKE(matmul_sizes, clv_matmul(in->m23, in->m42))
MISTAKE(matmul_sizes_t, clv_matmul_t(in->m23, true, in->m34, true))
MISTAKE(matmul_scalar, clv_matmul(in->scalar, in->m23))
MISTAKE(matmul_null, clv_matmul(in->m23, NULL))
MISTAKE(matmul_null_a, clv_matmul(NULL, in->m23))
MISTAKE(matmul_vector, clv_matmul(in->v2, in->m34))
MISTAKE(matmul_batches, clv_matmul(in->b234, in->b345))
MISTAKE(linear_bias_rank, clv_linear(in->m34, in->m34, in->m34))
MISTAKE(linear_null, clv_linear(in->m23, NULL, NULL))
MISTAKE(conv2d_channels, clv_conv2d(in->x, clv_reshape(in->weight, CLV_SHAPE(4, 3, 3, 3)), NULL, NULL))
MISTAKE(conv2d_rank, clv_conv2d(in->b234, in->weight, NULL, NULL))
MISTAKE(conv2d_weight_rank, clv_conv2d(in->x, in->b234, NULL, NULL))
MISTAKE(conv2d_bias_rank, clv_conv2d(in->x, in->weight, in->m23, NULL))
MISTAKE(conv2d_null, clv_conv2d(in->x, NULL, in->bias, NULL))
#define CONFIG(...) (&(clv_conv2d_config){__VA_ARGS__})
MISTAKE(conv2d_groups_divide, clv_conv2d(in->x, in->weight, in->bias, CONFIG(.groups = 2)))
MISTAKE(conv2d_rows, clv_conv2d(in->x, in->weight, in->bias, CONFIG(.dilation = {3, 1})))
#define TURNED(...) (&(clv_conv_transpose2d_config){__VA_ARGS__})
#define TURNED_WEIGHT clv_reshape(in->weight, CLV_SHAPE(4, 3, 3, 3))
MISTAKE(transpose_channels,
        clv_conv_transpose2d(in->x, clv_reshape(in->weight, CLV_SHAPE(3, 4, 3, 3)), NULL, NULL))
MISTAKE(transpose_groups, clv_conv_transpose2d(in->x, TURNED_WEIGHT, NULL, TURNED(.groups = 3)))
MISTAKE(transpose_bias, clv_conv_transpose2d(in->x, TURNED_WEIGHT, in->bias, TURNED(.groups = 2)))
MISTAKE(transpose_more, clv_conv_transpose2d(in->x, TURNED_WEIGHT, NULL, TURNED(.output_padding = {1})))
MISTAKE(transpose_padding, clv_conv_transpose2d(in->x, TURNED_WEIGHT, NULL, TURNED(.padding = {1, 4})))
MISTAKE(transpose_rank, clv_conv_transpose2d(in->b234, in->weight, NULL, NULL))
MISTAKE(conv1d_rank, clv_conv1d(in->x, in->b234, NULL, NULL))
MISTAKE(conv1d_padding, clv_conv1d(in->b234, in->b234, NULL, &(clv_conv1d_config){.padding = -1}))
MISTAKE(transpose1d_rank, clv_conv_transpose1d(in->b234, in->x, NULL, NULL))
#define SOLID(...) clv_reshape(in->x, CLV_SHAPE(__VA_ARGS__))             // of 240 elements
#define SOLID_WEIGHT(...) clv_reshape(in->weight, CLV_SHAPE(__VA_ARGS__)) // of 108
MISTAKE(solid_rank, clv_conv3d(in->x, SOLID_WEIGHT(1, 4, 3, 3, 3), NULL, NULL))
MISTAKE(solid_channels, clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(4, 3, 1, 3, 3), NULL, NULL))
MISTAKE(solid_groups, clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(3, 4, 1, 3, 3), NULL,
                                 &(clv_conv3d_config){.groups = 3}))
MISTAKE(solid_reach, clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(3, 4, 1, 3, 3), NULL, NULL))
MISTAKE(solid_stride, clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(3, 4, 1, 3, 3), NULL,
                                 &(clv_conv3d_config){.stride = {1, -1}}))
MISTAKE(solid_turned, clv_conv_transpose3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(4, 3, 1, 3, 3), NULL,
                                           &(clv_conv_transpose3d_config){.output_padding = {1}}))
MISTAKE(solid_nothing, clv_conv_transpose3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(4, 3, 1, 3, 3), NULL,
                                            &(clv_conv_transpose3d_config){.padding = {0, 3, -1}}))
MISTAKE(conv2d_columns, clv_conv2d(in->x, in->weight, in->bias, CONFIG(.dilation = {1, 3})))

static const struct {
    build call;
    clv_status status;
    const char *says;
} mistakes[] = {
    {matmul_sizes, CLV_E_SHAPE, "width of a is 3, height of b is 4"},
    {matmul_sizes_t, CLV_E_SHAPE, "height of a is 2, width of b is 4"},
    {matmul_scalar, CLV_E_SHAPE, "a has no rows and columns"},
    {matmul_null, CLV_E_VALUE, "b is NULL"},
    {matmul_null_a, CLV_E_VALUE, "a is NULL"},
    {matmul_vector, CLV_E_SHAPE, "width of a is 2, height of b is 3"},
    {matmul_batches, CLV_E_SHAPE, "the batch dimensions of a and b do not match"},
    {linear_bias_rank, CLV_E_SHAPE, "bias has 2 dimensions"},
    {linear_null, CLV_E_VALUE, "weight is NULL"},
    {conv2d_channels, CLV_E_SHAPE, "weight wants 3 input channels, x has 4"},
    {conv2d_rank, CLV_E_SHAPE, "x has 3 dimensions"},
    {conv2d_weight_rank, CLV_E_SHAPE, "weight has 3 dimensions"},
    {conv2d_bias_rank, CLV_E_SHAPE, "bias has 2 dimensions"},
    {conv2d_null, CLV_E_VALUE, "weight is NULL"},
    {conv2d_groups_divide, CLV_E_SHAPE, "groups 2 does not divide 4 input and 3 output channels"},
    {conv2d_rows, CLV_E_SHAPE, "the kernel covers 7 rows, x has only 5"},
    {conv2d_columns, CLV_E_SHAPE, "the kernel covers 7 columns, x has only 6"},
    {transpose_channels, CLV_E_SHAPE, "weight is [3,4,3,3], it must be [4,_,KH,KW] as x is"},
    {transpose_groups, CLV_E_SHAPE, "groups 3 does not divide 4 input channels"},
    {transpose_bias, CLV_E_SHAPE, "bias has 3 elements, y has 6 channels"},
    {transpose_more, CLV_E_VALUE, "output_padding is 1, it must be below the stride 1"},
    {transpose_padding, CLV_E_SHAPE, "padding 4 leaves none of the 8 columns"},
    {transpose_rank, CLV_E_SHAPE, "x has 3 dimensions"},
    {conv1d_rank, CLV_E_SHAPE, "x has 4 dimensions, it must have 3"},
    {conv1d_padding, CLV_E_VALUE, "padding is -1, it must be at least 0"},
    {solid_rank, CLV_E_SHAPE, "x has 4 dimensions"},
    {solid_channels, CLV_E_SHAPE, "weight wants 3 input channels, x has 4"},
    {solid_groups, CLV_E_SHAPE, "groups 3 does not divide 4 input channels"},
    {solid_reach, CLV_E_SHAPE, "the kernel covers 3 along W, x has only 2"},
    {solid_stride, CLV_E_VALUE, "stride is -1"},
    {solid_turned, CLV_E_VALUE, "output_padding is 1, it must be below the stride 1"},
    {solid_nothing, CLV_E_SHAPE, "padding 3 leaves nothing of 5 along H"},
    {transpose1d_rank, CLV_E_SHAPE, "weight has 4 dimensions, it must have 3"},
};

static void every_mistake_is_told(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
        clv_graph *graph;
        assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
        const inputs in = {
            .scalar = clv_input(graph, "scalar", CLV_DTYPE_F32, (clv_shape){0}),
            .v3 = clv_input(graph, "v3", CLV_DTYPE_F32, CLV_SHAPE(3)),
            .m23 = clv_input(graph, "m23", CLV_DTYPE_F32, CLV_SHAPE(2, 3)),
            .m34 = clv_input(graph, "m34", CLV_DTYPE_F32, CLV_SHAPE(3, 4)),
            .m42 = clv_input(graph, "m42", CLV_DTYPE_F32, CLV_SHAPE(4, 2)),
            .i23 = clv_input(graph, "i23", CLV_DTYPE_I32, CLV_SHAPE(2, 3)),
            .b234 = clv_input(graph, "b234", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4)),
            .b345 = clv_input(graph, "b345", CLV_DTYPE_F32, CLV_SHAPE(3, 4, 5)),
            .x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4, 5, 6)),
            .weight = clv_input(graph, "weight", CLV_DTYPE_F32, CLV_SHAPE(3, 4, 3, 3)),
            .bias = clv_input(graph, "bias", CLV_DTYPE_F32, CLV_SHAPE(3)),
            .xi = clv_input(graph, "xi", CLV_DTYPE_I32, CLV_SHAPE(2, 4, 5, 6)),
            .v2 = clv_input(graph, "v2", CLV_DTYPE_F32, CLV_SHAPE(2)),
        };
        assert_null(mistakes[k].call(&in));
        clv_status status = clv_graph_status(graph);
        if (status != mistakes[k].status) print_error("row %zu: '%s'\n", k, mistakes[k].says);
        assert_status(status, mistakes[k].status, runtime);
        assert_holds(clv_runtime_error(runtime), mistakes[k].says);
        // The first mistake stays, and calls on its NULL are quiet.
        assert_null(clv_matmul(clv_linear(clv_conv2d(NULL, in.weight, NULL, NULL), NULL, NULL), in.m23));
        assert_int_equal(clv_graph_status(graph), mistakes[k].status);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_mistake_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
