// SPDX-License-Identifier: Apache-2.0
// Pooling against PyTorch; the cases stand in make_pool.py in the same order.
#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(pool)

typedef clv_tensor *(*pooling)(clv_tensor *, const clv_pool2d_config *);
typedef struct pool_case {
    const char *name;
    clv_pool2d_config config;
} pool_case;

static void each(void **state, const pool_case *cases, size_t n, pooling build) {
    for (size_t i = 0; i < n; i++) {
        golden *g = golden_begin(state, cases[i].name);
        golden_expect(g, build(golden_input(g, "x"), &cases[i].config), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void max_pool2d(void **state) {
    static const pool_case cases[] = {
        {"max_2x2", {.kernel = {2, 2}}},
        {"max_2x2_rest", {.kernel = {2, 2}}},
        {"max_2x2_ceil", {.kernel = {2, 2}, .ceil_mode = true}},
        {"max_overlap", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
        {"max_overlap_ceil", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}},
        {"max_dilation", {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}, .dilation = {2, 3}}},
        {"max_ties_2x2", {.kernel = {2, 2}}},
        {"max_ties", {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}},
        {"max_nan", {.kernel = {2, 2}}},
        {"max_nan_overlap", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
    };
    each(state, cases, sizeof cases / sizeof *cases, clv_max_pool2d);
}

static void avg_pool2d(void **state) {
    static const pool_case cases[] = {
        {"avg_2x2", {.kernel = {2, 2}}},
        {"avg_padding", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
        {"avg_padding_excluded",
         {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .exclude_padding = true}},
        {"avg_ceil", {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true}},
        {"avg_ceil_excluded",
         {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .ceil_mode = true, .exclude_padding = true}},
        {"avg_uneven", {.kernel = {4, 2}, .stride = {3, 1}, .padding = {2, -1}}},
    };
    each(state, cases, sizeof cases / sizeof *cases, clv_avg_pool2d);
}

static void global_avg_pool2d(void **state) {
    golden *g = golden_begin(state, "global_avg");
    golden_expect(g, clv_global_avg_pool2d(golden_input(g, "x")), "y");
    golden_on_devices(g);
    golden_end(g);
}

static void adaptive_avg_pool2d(void **state) {
    static const struct {
        const char *name;
        int64_t OH, OW;
    } cases[] = {{"adaptive_narrower", 7, 4}, {"adaptive_wider", 7, 7}, {"adaptive_even", 4, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        golden_expect(g, clv_adaptive_avg_pool2d(golden_input(g, "x"), cases[i].OH, cases[i].OW), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_pool2d),
        cmocka_unit_test(avg_pool2d),
        cmocka_unit_test(global_avg_pool2d),
        cmocka_unit_test(adaptive_avg_pool2d),
    };
    return cmocka_run_group_tests(tests, golden_open_pool, golden_close);
}
