// SPDX-License-Identifier: Apache-2.0
// Ops that move elements against PyTorch; the cases stand in make_shape.py in the same order.
#include <stdio.h>

#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(shape)

static clv_tensor *reshape(clv_tensor *x) {
    return clv_reshape(x, CLV_SHAPE(3, 1, 4));
}
static clv_tensor *flatten(clv_tensor *x) {
    return clv_flatten(x, 1);
}
static clv_tensor *flatten_scalar(clv_tensor *x) {
    return clv_flatten(x, 0);
}
static clv_tensor *transpose(clv_tensor *x) {
    return clv_transpose(x, -1, 0);
}
static clv_tensor *permute(clv_tensor *x) {
    return clv_permute(x, (int[]){0, 2, 3, 1}, 4);
}
static clv_tensor *permute_i32(clv_tensor *x) {
    return clv_permute(x, (int[]){1, 0}, 2);
}
static clv_tensor *broadcast_to(clv_tensor *x) {
    return clv_broadcast_to(x, CLV_SHAPE(2, 3, 4));
}
static clv_tensor *slice(clv_tensor *x) {
    return clv_slice(x, 1, 2, 3);
}
static clv_tensor *slice_nothing(clv_tensor *x) {
    return clv_slice(x, 0, 3, 0);
}

static void moves(void **state) {
    static const struct {
        const char *name;
        clv_tensor *(*build)(clv_tensor *);
    } cases[] = {
        {"reshape", reshape},           {"flatten", flatten}, {"flatten_scalar", flatten_scalar},
        {"transpose", transpose},       {"permute", permute}, {"permute_i32", permute_i32},
        {"broadcast_to", broadcast_to}, {"slice", slice},     {"slice_nothing", slice_nothing},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden *g = golden_begin(state, cases[i].name);
        golden_expect(g, cases[i].build(golden_input(g, "x")), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void concat(golden *g, int n, int axis) {
    clv_tensor *parts[40];
    char name[40][8];
    for (int i = 0; i < n; i++) {
        snprintf(name[i], sizeof name[i], "x%d", i);
        parts[i] = golden_input(g, name[i]);
    }
    golden_expect(g, clv_concat(parts, n, axis), "y");
}

static void concat_three(void **state) {
    golden *g = golden_begin(state, "concat");
    concat(g, 3, -2);
    golden_on_devices(g);
    golden_end(g);
}

/** More than a node takes: joined in groups. */
static void concat_many(void **state) {
    golden *g = golden_begin(state, "concat_many");
    concat(g, 33, 0);
    golden_end(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves),
        cmocka_unit_test(concat_three),
        cmocka_unit_test(concat_many),
    };
    return cmocka_run_group_tests(tests, golden_open_shape, golden_close);
}
