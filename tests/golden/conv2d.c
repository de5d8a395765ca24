// SPDX-License-Identifier: Apache-2.0
// Convolution against PyTorch; the cases stand in make_conv2d.py in the same order.
#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(conv2d)

static void conv2d(void **state) {
    static const struct {
        const char *name;
        bool bias;
        clv_conv2d_config config;
    } cases[] = {
        {"kernel_1", true, {.groups = 1}},
        {"kernel_3", true, {.groups = 1}},
        {"no_bias", false, {.groups = 1}},
        {"kernel_2x3", true, {.groups = 1}},
        {"stride", true, {.stride = {2, 3}}},
        {"stride_past_kernel", true, {.stride = {2, 3}}},
        {"padding", true, {.padding = {1, 2}}},
        {"dilation", true, {.dilation = {2, 3}}},
        {"all", true, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {1, 2}}},
        {"stride_dilation", true, {.stride = {2, 2}, .dilation = {2, 2}}},
        {"groups", true, {.groups = 2, .padding = {1, 1}}},
        {"depthwise", true, {.groups = 3, .padding = {1, 1}, .stride = {2, 2}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        clv_tensor *x = golden_input(g, "x"), *weight = golden_input(g, "weight");
        clv_tensor *bias = cases[i].bias ? golden_input(g, "bias") : NULL;
        golden_expect(g, clv_conv2d(x, weight, bias, &cases[i].config), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(conv2d)};
    return cmocka_run_group_tests(tests, golden_open_conv2d, golden_close);
}
