// SPDX-License-Identifier: Apache-2.0
// Matrix products against PyTorch; the cases stand in make_matmul.py in the same order.
#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(matmul)

static void matmul(void **state) {
    static const struct {
        const char *name;
        bool transpose_a, transpose_b;
    } cases[] = {
        {"matrices", false, false},
        {"a_transposed", true, false},
        {"b_transposed", false, true},
        {"both_transposed", true, true},
        {"vector_vector", false, false},
        {"vector_matrix", false, false},
        {"matrix_vector", false, false},
        {"batch_vector", false, false},
        {"vector_batch", false, false},
        {"batch", false, false},
        {"batch_one_b", false, false},
        {"batch_one_b_transposed", true, true},
        {"batch_one_a", false, false},
        {"batch_broadcast", false, false},
        {"batch_broadcast_transposed", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        clv_tensor *a = golden_input(g, "a"), *b = golden_input(g, "b");
        golden_expect(g, clv_matmul_t(a, cases[i].transpose_a, b, cases[i].transpose_b), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void linear(void **state) {
    static const struct {
        const char *name;
        bool bias;
    } cases[] = {
        {"linear", true}, {"linear_no_bias", false}, {"linear_vector", true}, {"linear_three", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        clv_tensor *x = golden_input(g, "x"), *weight = golden_input(g, "weight");
        golden_expect(g, clv_linear(x, weight, cases[i].bias ? golden_input(g, "bias") : NULL), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul),
        cmocka_unit_test(linear),
    };
    return cmocka_run_group_tests(tests, golden_open_matmul, golden_close);
}
