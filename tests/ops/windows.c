// SPDX-License-Identifier: Apache-2.0
// One number for H and W: what zero, a single number and a negative one mean to convolution and pooling, told by shapes.
#include "cleave/nn.h"
#include "harness/harness.h"

static clv_graph *graph;
static clv_runtime *runtime;

static void expect(const clv_tensor *y, int64_t H, int64_t W) {
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    clv_shape shape = clv_tensor_shape(y);
    assert_int_equal(shape.dims[2], H);
    assert_int_equal(shape.dims[3], W);
}

static clv_tensor *conv(clv_tensor *x, clv_conv2d_config config) {
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(1, 1, 3, 3), (clv_init){.kind = CLV_INIT_ONES});
    return clv_conv2d(x, weight, NULL, &config);
}

TEST(one_number_is_for_both_axes) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, 1, 11, 12));
    expect(conv(x, (clv_conv2d_config){0}), 9, 10);
    expect(conv(x, (clv_conv2d_config){.stride = {2}}), 5, 5);
    expect(conv(x, (clv_conv2d_config){.stride = {2, 1}}), 5, 10);
    expect(conv(x, (clv_conv2d_config){.stride = {0, 2}}), 9, 5);
    expect(conv(x, (clv_conv2d_config){.dilation = {2}}), 7, 8);
    expect(conv(x, (clv_conv2d_config){.dilation = {0, 2}}), 9, 8);
    expect(conv(x, (clv_conv2d_config){.padding = {1}}), 11, 12);
    expect(conv(x, (clv_conv2d_config){.padding = {0, 1}}), 9, 12);
    expect(conv(x, (clv_conv2d_config){.padding = {1, -1}}), 11, 10);
    expect(clv_nn_conv2d(x, "a", 1, &(clv_nn_conv2d_config){.kernel = {3}, .stride = {2}, .padding = {1}}), 6,
           6);
    expect(clv_nn_conv2d(x, "b", 1, &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1, -1}}), 11, 10);
    clv_tensor *turned =
        clv_parameter(graph, "turned", CLV_SHAPE(1, 1, 3, 3), (clv_init){.kind = CLV_INIT_ONES});
    expect(clv_conv_transpose2d(x, turned, NULL, NULL), 13, 14);
    expect(clv_conv_transpose2d(
               x, turned, NULL,
               &(clv_conv_transpose2d_config){.stride = {2}, .padding = {1}, .output_padding = {1}}),
           22, 24);
    expect(clv_conv_transpose2d(x, turned, NULL,
                                &(clv_conv_transpose2d_config){
                                    .stride = {2, 3}, .padding = {1, -1}, .output_padding = {1, -1}}),
           22, 36);
    expect(
        clv_nn_conv_transpose2d(x, "d", 4, &(clv_nn_conv_transpose2d_config){.kernel = {2}, .stride = {2}}),
        22, 24);
    const clv_shape solid = clv_tensor_shape(
        clv_max_pool3d(clv_reshape(x, CLV_SHAPE(1, 1, 3, 11, 4)),
                       &(clv_pool3d_config){.kernel = {3, 4}, .stride = {1, 2}, .padding = {1, -1, 1}}));
    assert_int_equal(solid.dims[2], 3); // kernel 3x4x3, stride 1x2x1
    assert_int_equal(solid.dims[3], 4);
    assert_int_equal(solid.dims[4], 4);
    clv_tensor *(*const pools[])(clv_tensor *, const clv_pool2d_config *) = {clv_max_pool2d, clv_avg_pool2d};
    for (int i = 0; i < 2; i++) {
        expect(pools[i](x, &(clv_pool2d_config){.kernel = {2}}), 5, 6);
        expect(pools[i](x, &(clv_pool2d_config){.kernel = {3, 2}}), 3, 6);
        expect(pools[i](x, &(clv_pool2d_config){.kernel = {3}, .stride = {1}}), 9, 10);
        expect(pools[i](x, &(clv_pool2d_config){.kernel = {3}, .stride = {0, 1}}), 3, 10);
        expect(pools[i](x, &(clv_pool2d_config){.kernel = {3}, .stride = {1}, .padding = {1}}), 11, 12);
        expect(pools[i](x, &(clv_pool2d_config){.kernel = {3}, .stride = {1}, .padding = {1, -1}}), 11, 10);
    }
    expect(clv_max_pool2d(x, &(clv_pool2d_config){.kernel = {3}, .stride = {1}, .dilation = {2}}), 7, 8);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
