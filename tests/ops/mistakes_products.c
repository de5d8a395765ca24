// SPDX-License-Identifier: Apache-2.0
// Every input that matmul, linear and conv2d must refuse: its status, and what the sentence says. One row each.
#include "cleave/ops.h"
#include "harness/mistake.h"

/** Inputs at hand; digits are dimensions. */
static struct {
    clv_tensor *scalar, *v3, *m23, *m34, *m42, *i23, *b234, *b345;
    clv_tensor *x, *weight, *bias, *xi, *v2; // x [2,4,5,6], weight [3,4,3,3], bias [3]
} in;

static void make_inputs(void) {
    in.scalar = clv_input(graph, "scalar", CLV_DTYPE_F32, (clv_shape){0});
    in.v3 = clv_input(graph, "v3", CLV_DTYPE_F32, CLV_SHAPE(3));
    in.m23 = clv_input(graph, "m23", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
    in.m34 = clv_input(graph, "m34", CLV_DTYPE_F32, CLV_SHAPE(3, 4));
    in.m42 = clv_input(graph, "m42", CLV_DTYPE_F32, CLV_SHAPE(4, 2));
    in.i23 = clv_input(graph, "i23", CLV_DTYPE_I32, CLV_SHAPE(2, 3));
    in.b234 = clv_input(graph, "b234", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 4));
    in.b345 = clv_input(graph, "b345", CLV_DTYPE_F32, CLV_SHAPE(3, 4, 5));
    in.x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4, 5, 6));
    in.weight = clv_input(graph, "weight", CLV_DTYPE_F32, CLV_SHAPE(3, 4, 3, 3));
    in.bias = clv_input(graph, "bias", CLV_DTYPE_F32, CLV_SHAPE(3));
    in.xi = clv_input(graph, "xi", CLV_DTYPE_I32, CLV_SHAPE(2, 4, 5, 6));
    in.v2 = clv_input(graph, "v2", CLV_DTYPE_F32, CLV_SHAPE(2));
}

/** Calls on the NULL of a failed build are quiet. */
static void pass_on(void) {
    assert_null(clv_matmul(clv_linear(clv_conv2d(NULL, in.weight, NULL, NULL), NULL, NULL), in.m23));
}

#define CONFIG(...) (&(clv_conv2d_config){__VA_ARGS__})
#define TURNED(...) (&(clv_conv_transpose2d_config){__VA_ARGS__})
#define TURNED_WEIGHT clv_reshape(in.weight, CLV_SHAPE(4, 3, 3, 3))
#define SOLID(...) clv_reshape(in.x, CLV_SHAPE(__VA_ARGS__))             // of 240 elements
#define SOLID_WEIGHT(...) clv_reshape(in.weight, CLV_SHAPE(__VA_ARGS__)) // of 108

TEST(every_mistake_is_told) {
    MISTAKE(clv_matmul(in.m23, in.m42), CLV_E_SHAPE, "width of a is 3, height of b is 4");
    MISTAKE(clv_matmul_t(in.m23, true, in.m34, true), CLV_E_SHAPE, "height of a is 2, width of b is 4");
    MISTAKE(clv_matmul(in.scalar, in.m23), CLV_E_SHAPE, "a has no rows and columns");
    MISTAKE(clv_matmul(in.m23, NULL), CLV_E_VALUE, "b is NULL");
    MISTAKE(clv_matmul(NULL, in.m23), CLV_E_VALUE, "a is NULL");
    MISTAKE(clv_matmul(in.v2, in.m34), CLV_E_SHAPE, "width of a is 2, height of b is 3");
    MISTAKE(clv_matmul(in.b234, in.b345), CLV_E_SHAPE, "the batch dimensions of a and b do not match");
    MISTAKE(clv_linear(in.m34, in.m34, in.m34), CLV_E_SHAPE, "bias has 2 dimensions");
    MISTAKE(clv_linear(in.m23, NULL, NULL), CLV_E_VALUE, "weight is NULL");
    MISTAKE(clv_conv2d(in.x, clv_reshape(in.weight, CLV_SHAPE(4, 3, 3, 3)), NULL, NULL), CLV_E_SHAPE,
            "weight wants 3 input channels, x has 4");
    MISTAKE(clv_conv2d(in.b234, in.weight, NULL, NULL), CLV_E_SHAPE, "x has 3 dimensions");
    MISTAKE(clv_conv2d(in.x, in.b234, NULL, NULL), CLV_E_SHAPE, "weight has 3 dimensions");
    MISTAKE(clv_conv2d(in.x, in.weight, in.m23, NULL), CLV_E_SHAPE, "bias has 2 dimensions");
    MISTAKE(clv_conv2d(in.x, NULL, in.bias, NULL), CLV_E_VALUE, "weight is NULL");
    MISTAKE(clv_conv2d(in.x, in.weight, in.bias, CONFIG(.groups = 2)), CLV_E_SHAPE,
            "groups 2 does not divide 4 input and 3 output channels");
    MISTAKE(clv_conv2d(in.x, in.weight, in.bias, CONFIG(.dilation = {3, 1})), CLV_E_SHAPE,
            "the kernel covers 7 rows, x has only 5");
    MISTAKE(clv_conv2d(in.x, in.weight, in.bias, CONFIG(.dilation = {1, 3})), CLV_E_SHAPE,
            "the kernel covers 7 columns, x has only 6");
    MISTAKE(clv_conv_transpose2d(in.x, clv_reshape(in.weight, CLV_SHAPE(3, 4, 3, 3)), NULL, NULL),
            CLV_E_SHAPE, "weight is [3,4,3,3], it must be [4,_,KH,KW] as x is");
    MISTAKE(clv_conv_transpose2d(in.x, TURNED_WEIGHT, NULL, TURNED(.groups = 3)), CLV_E_SHAPE,
            "groups 3 does not divide 4 input channels");
    MISTAKE(clv_conv_transpose2d(in.x, TURNED_WEIGHT, in.bias, TURNED(.groups = 2)), CLV_E_SHAPE,
            "bias has 3 elements, y has 6 channels");
    MISTAKE(clv_conv_transpose2d(in.x, TURNED_WEIGHT, NULL, TURNED(.output_padding = {1})), CLV_E_VALUE,
            "output_padding is 1, it must be below the stride 1");
    MISTAKE(clv_conv_transpose2d(in.x, TURNED_WEIGHT, NULL, TURNED(.padding = {1, 4})), CLV_E_SHAPE,
            "padding 4 leaves none of the 8 columns");
    MISTAKE(clv_conv_transpose2d(in.b234, in.weight, NULL, NULL), CLV_E_SHAPE, "x has 3 dimensions");
    MISTAKE(clv_conv1d(in.x, in.b234, NULL, NULL), CLV_E_SHAPE, "x has 4 dimensions, it must have 3");
    MISTAKE(clv_conv1d(in.b234, in.b234, NULL, &(clv_conv1d_config){.padding = -1}), CLV_E_VALUE,
            "padding is -1, it must be at least 0");
    MISTAKE(clv_conv3d(in.x, SOLID_WEIGHT(1, 4, 3, 3, 3), NULL, NULL), CLV_E_SHAPE, "x has 4 dimensions");
    MISTAKE(clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(4, 3, 1, 3, 3), NULL, NULL), CLV_E_SHAPE,
            "weight wants 3 input channels, x has 4");
    MISTAKE(clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(3, 4, 1, 3, 3), NULL,
                       &(clv_conv3d_config){.groups = 3}),
            CLV_E_SHAPE, "groups 3 does not divide 4 input channels");
    MISTAKE(clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(3, 4, 1, 3, 3), NULL, NULL), CLV_E_SHAPE,
            "the kernel covers 3 along W, x has only 2");
    MISTAKE(clv_conv3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(3, 4, 1, 3, 3), NULL,
                       &(clv_conv3d_config){.stride = {1, -1}}),
            CLV_E_VALUE, "stride is -1");
    MISTAKE(clv_conv_transpose3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(4, 3, 1, 3, 3), NULL,
                                 &(clv_conv_transpose3d_config){.output_padding = {1}}),
            CLV_E_VALUE, "output_padding is 1, it must be below the stride 1");
    MISTAKE(clv_conv_transpose3d(SOLID(2, 4, 5, 3, 2), SOLID_WEIGHT(4, 3, 1, 3, 3), NULL,
                                 &(clv_conv_transpose3d_config){.padding = {0, 3, -1}}),
            CLV_E_SHAPE, "padding 3 leaves nothing of 5 along H");
    MISTAKE(clv_conv_transpose1d(in.b234, in.x, NULL, NULL), CLV_E_SHAPE,
            "weight has 4 dimensions, it must have 3");
}

TEST_MAIN(setup, teardown)
