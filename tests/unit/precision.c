// SPDX-License-Identifier: Apache-2.0
// How floats are stored: the two-byte types on the host, and which tensors of a graph get them.
#include <math.h>
#include <string.h>

#include "cleave/cleave.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "tensor/half.h"

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/** Every f16 and bf16 goes to float and back; between two neighbours the nearer one is taken, and the even one half way. */
TEST(conversions) {
    for (uint32_t h = 0; h < 0x10000; h++) {
        float value = clv__f16_to_float((uint16_t)h), wide = clv__bf16_to_float((uint16_t)h);
        if (isnan(value))
            assert_true(isnan(clv__f16_to_float(clv__f16_of_float(value))));
        else
            assert_int_equal(clv__f16_of_float(value), h);
        if (isnan(wide))
            assert_true(isnan(clv__bf16_to_float(clv__bf16_of_float(wide))));
        else
            assert_int_equal(clv__bf16_of_float(wide), h);
    }
    for (uint16_t h = 0; h < 0x7bff; h++) {
        float low = clv__f16_to_float(h), high = clv__f16_to_float((uint16_t)(h + 1)),
              middle = (low + high) / 2;
        assert_int_equal(clv__f16_of_float(middle), h + (h & 1));
        assert_int_equal(clv__f16_of_float(nextafterf(middle, 0)), h);
        assert_int_equal(clv__f16_of_float(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(clv__f16_of_float(65519.0f), 0x7bff);
    assert_int_equal(clv__f16_of_float(65520.0f), 0x7c00);
    assert_int_equal(clv__f16_of_float(-INFINITY), 0xfc00);
    assert_int_equal(clv__f16_of_float(1e-8f), 0);
    assert_int_equal(clv__bf16_of_float(float_of(0x3f808000)), 0x3f80);
    assert_int_equal(clv__bf16_of_float(float_of(0x3f818000)), 0x3f82);
    assert_int_equal(clv__bf16_of_float(float_of(0x7f7fffff)), 0x7f80);
}

static clv_runtime *runtime;
static clv_graph *graph;

FIXTURE(begin) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    graph = clv__test_graph(runtime);
}

FIXTURE(end) {
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

/** Results are stored as the inputs are, f32 if one of them is; casts go where they are asked for. */
TEST_WITHIN(promotion, begin, end) {
    clv_tensor *h = clv_input(graph, "h", CLV_DTYPE_F16, CLV_SHAPE(2, 3));
    clv_tensor *b = clv_input(graph, "b", CLV_DTYPE_BF16, CLV_SHAPE(2, 3));
    clv_tensor *f = clv_input(graph, "f", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
    assert_int_equal(clv_tensor_dtype(clv_relu(h)), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(clv_exp(b)), CLV_DTYPE_BF16);
    assert_int_equal(clv_tensor_dtype(clv_add(h, h)), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(clv_add(h, f)), CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(clv_add(h, b)), CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(clv_lt(h, f)), CLV_DTYPE_I32);
    assert_int_equal(clv_tensor_dtype(clv_reshape(b, CLV_SHAPE(6))), CLV_DTYPE_BF16);
    assert_int_equal(clv_tensor_dtype(clv_cast(h, CLV_DTYPE_F32)), CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(clv_cast(h, CLV_DTYPE_BF16)), CLV_DTYPE_BF16);
    assert_int_equal(clv_tensor_dtype(clv_cast(clv_cast(f, CLV_DTYPE_I32), CLV_DTYPE_F16)), CLV_DTYPE_F16);
    assert_ptr_equal(clv_cast(h, CLV_DTYPE_F16), h);
    assert_int_equal((int)clv_tensor_bytes(h), 12);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
}

/** In a graph of mixed precision, ops store by their lists, and every gradient has the type of its tensor. */
TEST_WITHIN(autocast, begin, end) {
    clv_graph_set_precision(graph, CLV_PRECISION_MIXED);
    assert_int_equal(clv_graph_modes_get(graph).precision, CLV_PRECISION_MIXED);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F16, CLV_SHAPE(4, 3));
    clv_tensor *w = clv_parameter(graph, "w", CLV_SHAPE(3), (clv_init){.kind = CLV_INIT_ONES});
    clv_requires_grad(x, true);
    clv_tensor *h = clv_relu(x), *e = clv_exp(h), *y = clv_mul(e, w);
    assert_int_equal(clv_tensor_dtype(h), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(e), CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(y), CLV_DTYPE_F32);
    clv_backward(clv_sum(y, NULL, 0, false));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_int_equal(clv_tensor_dtype(clv_gradient(x)), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(clv_gradient(h)), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(clv_gradient(e)), CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(clv_gradient(w)), CLV_DTYPE_F32);
    clv_graph_set_precision(graph, (clv_precision)7);
    assert_int_equal(clv_graph_status(graph), CLV_E_VALUE);
    assert_string_equal(clv_runtime_error(runtime), "there is no precision number 7");
}

/** Layers of a model in mixed precision: products and norms store halves, half of the bytes; weights and statistics stay. A
 *  norm's running statistics are updated in nodes of their own, which a scaler must not take for a backward pass. */
TEST_WITHIN(layers, begin, end) {
    clv_graph_set_training(graph, true);
    clv_graph_set_precision(graph, CLV_PRECISION_MIXED);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 8, 8));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(2));
    clv_tensor *c = clv_nn_conv2d(x, "conv", 4, &(clv_nn_conv2d_config){.kernel = {3}});
    clv_tensor *n = clv_nn_batch_norm(c, "norm", NULL);
    clv_tensor *y = clv_nn_linear(clv_flatten(clv_relu(n), 1), "fc", 5, NULL);
    clv_tensor *loss = clv_cross_entropy(y, labels);
    assert_int_equal(clv_tensor_dtype(c), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(n), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(y), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(loss), CLV_DTYPE_F32);
    clv_scaler_add(graph, NULL);
    clv_backward(loss);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_int_equal(clv_tensor_dtype(clv_gradient(c)), CLV_DTYPE_F16);
    assert_int_equal(clv_tensor_dtype(clv_gradient(y)), CLV_DTYPE_F16);
    for (int i = 0; i < clv_graph_info_get(graph).n_parameters; i++) {
        const clv_tensor *parameter = clv_parameter_get(graph, i);
        assert_int_equal(clv_tensor_dtype(parameter), CLV_DTYPE_F32);
        assert_int_equal(clv_tensor_dtype(clv_gradient(parameter)), CLV_DTYPE_F32);
    }
}

TEST_MAIN(NULL, NULL)
