// SPDX-License-Identifier: Apache-2.0
// Reductions against PyTorch; the cases stand in make_reduce.py in the same order.
#include <stdio.h>

#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(reduce)

typedef clv_tensor *(*reduction)(clv_tensor *, const int *, int, bool);
static const struct {
    const char *name;
    reduction build;
} ops[] = {{"sum", clv_sum}, {"mean", clv_mean}, {"max", clv_max}};

static void one(void **state, const char *name, reduction build, const int *axes, int n, bool keepdim) {
    golden *g = golden_begin(state, name);
    golden_expect(g, build(golden_input(g, "x"), axes, n, keepdim), "y");
    golden_on_devices(g);
    golden_end(g);
}

static void over_axes(void **state) {
    static const struct {
        const char *name;
        int n, axes[3];
        bool keepdim;
    } cases[] = {
        {"last", 1, {-1}, false},  {"first", 1, {0}, true},   {"channels", 3, {0, 2, 3}, false},
        {"middle", 1, {1}, false}, {"all", 2, {0, 1}, false}, {"scalar", 0, {0}, false},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        for (size_t j = 0; j < sizeof cases / sizeof *cases; j++) {
            char name[64];
            snprintf(name, sizeof name, "%s_%s", ops[i].name, cases[j].name);
            one(state, name, ops[i].build, cases[j].axes, cases[j].n, cases[j].keepdim);
        }
    }
}

static void special(void **state) {
    static const int last[] = {1};
    one(state, "max_ties", clv_max, last, 1, false);
    one(state, "max_ties_all", clv_max, NULL, 0, false);
    one(state, "max_nan", clv_max, last, 1, false);
    one(state, "max_infinite", clv_max, last, 1, false);
    one(state, "sum_nothing", clv_sum, last, 1, false);
    one(state, "mean_nothing", clv_mean, last, 1, false);
    one(state, "sum_infinite", clv_sum, last, 1, false);
}

static void argmax(void **state) {
    static const struct {
        const char *name;
        int axis;
        bool keepdim;
    } cases[] = {{"argmax_last", -1, false},
                 {"argmax_first_keepdim", 0, true},
                 {"argmax_ties", 1, false},
                 {"argmax_nan", 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        golden_expect(g, clv_argmax(golden_input(g, "x"), cases[i].axis, cases[i].keepdim), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void sum_to(void **state) {
    golden *g = golden_begin(state, "sum_to");
    golden_expect(g, clv_sum_to(golden_input(g, "x"), CLV_SHAPE(3, 1, 5)), "y");
    golden_on_devices(g);
    golden_end(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_axes),
        cmocka_unit_test(special),
        cmocka_unit_test(argmax),
        cmocka_unit_test(sum_to),
    };
    return cmocka_run_group_tests(tests, golden_open_reduce, golden_close);
}
