// SPDX-License-Identifier: Apache-2.0
// The elementwise family against PyTorch; the cases stand in make_elementwise.py in the same order.
#include <math.h>
#include <stdio.h>

#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(elementwise)

static clv_tensor *leaky(clv_tensor *x) {
    return clv_leaky_relu(x, 0.125f);
}
static clv_tensor *clamp(clv_tensor *x) {
    return clv_clamp(x, -1.5f, 2);
}
static clv_tensor *clamp_crossed(clv_tensor *x) {
    return clv_clamp(x, 1, -1);
}
static clv_tensor *clamp_one(clv_tensor *x) {
    return clv_clamp(x, -1, 1);
}
static clv_tensor *pow_2_5(clv_tensor *x) {
    return clv_pow_scalar(x, 2.5f);
}
static clv_tensor *pow_minus_1(clv_tensor *x) {
    return clv_pow_scalar(x, -1);
}
static clv_tensor *pow_0(clv_tensor *x) {
    return clv_pow_scalar(x, 0);
}
static clv_tensor *pow_2(clv_tensor *x) {
    return clv_pow_scalar(x, 2);
}
static clv_tensor *pow_3(clv_tensor *x) {
    return clv_pow_scalar(x, 3);
}
static clv_tensor *pow_half(clv_tensor *x) {
    return clv_pow_scalar(x, 0.5f);
}
static clv_tensor *add_scalar(clv_tensor *x) {
    return clv_add_scalar(x, 1.5f);
}
static clv_tensor *mul_scalar(clv_tensor *x) {
    return clv_mul_scalar(x, -2.5f);
}

static void unary(void **state) {
    static const struct {
        const char *name;
        clv_tensor *(*build)(clv_tensor *);
    } cases[] = {
        {"neg", clv_neg},
        {"exp", clv_exp},
        {"log", clv_log},
        {"sqrt", clv_sqrt},
        {"square", clv_square},
        {"abs", clv_abs},
        {"relu", clv_relu},
        {"leaky_relu", leaky},
        {"sigmoid", clv_sigmoid},
        {"logsigmoid", clv_logsigmoid},
        {"logsigmoid_edges", clv_logsigmoid},
        {"tanh", clv_tanh},
        {"gelu", clv_gelu},
        {"gelu_tanh", clv_gelu_tanh},
        {"silu", clv_silu},
        {"clamp", clamp},
        {"clamp_crossed", clamp_crossed},
        {"pow_2_5", pow_2_5},
        {"pow_minus_1", pow_minus_1},
        {"pow_0", pow_0},
        {"pow_2", pow_2},
        {"pow_3", pow_3},
        {"pow_half", pow_half},
        {"add_scalar", add_scalar},
        {"mul_scalar", mul_scalar},
        {"relu_edges", clv_relu},
        {"leaky_relu_edges", leaky},
        {"clamp_edges", clamp_one},
        {"abs_edges", clv_abs},
        {"sigmoid_edges", clv_sigmoid},
        {"tanh_edges", clv_tanh},
        {"exp_edges", clv_exp},
        {"log_edges", clv_log},
        {"sqrt_edges", clv_sqrt},
        {"relu6", clv_relu6},
        {"relu6_edges", clv_relu6},
        {"relu6_nan", clv_relu6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        golden_expect(g, cases[i].build(golden_input(g, "x")), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void binary(void **state) {
    static const struct {
        const char *name;
        clv_tensor *(*build)(clv_tensor *, clv_tensor *);
    } ops[] = {{"add", clv_add}, {"sub", clv_sub}, {"mul", clv_mul}, {"div", clv_div}};
    static const char *const shapes[] = {"same", "channels", "outer", "with_scalar"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            char name[64];
            snprintf(name, sizeof name, "%s_%s", ops[i].name, shapes[j]);
            golden *g = golden_begin(state, name);
            clv_tensor *a = golden_input(g, "a");
            golden_expect(g, ops[i].build(a, golden_input(g, "b")), "y");
            golden_on_devices(g);
            golden_end(g);
        }
    }
}

static void compare(void **state) {
    static const struct {
        const char *name;
        clv_tensor *(*build)(clv_tensor *, clv_tensor *);
    } cases[] = {{"eq", clv_eq}, {"ne", clv_ne}, {"lt", clv_lt},
                 {"le", clv_le}, {"gt", clv_gt}, {"ge", clv_ge}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        clv_tensor *a = golden_input(g, "a");
        golden_expect(g, cases[i].build(a, golden_input(g, "b")), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void where(void **state) {
    static const char *const cases[] = {"where", "where_nan"};
    for (int i = 0; i < 2; i++) {
        golden *g = golden_begin(state, cases[i]);
        clv_tensor *condition = golden_input(g, "condition"), *a = golden_input(g, "a");
        golden_expect(g, clv_where(condition, a, golden_input(g, "b")), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void cast(void **state) {
    golden *g = golden_begin(state, "cast_i32");
    golden_expect(g, clv_cast(golden_input(g, "x"), CLV_DTYPE_I32), "y");
    golden_on_devices(g);
    golden_end(g);
    g = golden_begin(state, "cast_f32");
    golden_expect(g, clv_cast(golden_input(g, "x"), CLV_DTYPE_F32), "y");
    golden_on_devices(g);
    golden_end(g);
}

static void full(void **state) {
    golden *g = golden_begin(state, "full");
    golden_expect(g, clv_full(g->graph, CLV_DTYPE_F32, CLV_SHAPE(2, 3), -1.25f), "y");
    golden_on_devices(g);
    golden_end(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary), cmocka_unit_test(binary), cmocka_unit_test(compare),
        cmocka_unit_test(where), cmocka_unit_test(cast),   cmocka_unit_test(full),
    };
    return cmocka_run_group_tests(tests, golden_open_elementwise, golden_close);
}
