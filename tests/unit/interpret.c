// SPDX-License-Identifier: Apache-2.0
// The interpreter, tolerances, and differences: what the checker stands on, against numbers worked out by hand.
#include <float.h>
#include <math.h>

#include "check/differences.h"
#include "check/subject.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "harness/harness.h"

static clv_runtime *runtime;
static clv_graph *graph;
static clv__values values;

FIXTURE(begin) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    graph = clv__test_graph(runtime);
}

FIXTURE(end) {
    clv__values_reset(&values);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

static clv__error *error_of(void) {
    return clv__runtime_error_of(runtime);
}

static clv_tensor *vector(const char *name, int64_t n) {
    return clv_input(graph, name, CLV_DTYPE_F32, CLV_SHAPE(n));
}

static void values_of_graph(void) {
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_status(clv__values_init(&values, graph, error_of()), CLV_OK, runtime);
}

static void put(clv_tensor *tensor, const float *elements) {
    clv__values_set(&values, tensor, elements);
}

TEST_WITHIN(a_chain_with_a_view, begin, end) {
    clv_tensor *x = vector("x", 4);
    clv_tensor *y = clv_add_scalar(
        clv_mul(clv_reshape(x, CLV_SHAPE(2, 2)), clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(2, 1), 3)), 1);
    values_of_graph();
    put(x, (float[]){1, 2, 3, 4});
    assert_status(clv__interpret(&values, NULL, error_of()), CLV_OK, runtime);
    float got[4];
    clv__values_get(&values, y, got);
    assert_memory_equal(got, ((float[]){4, 7, 10, 13}), sizeof got);
    // In double: nothing is rounded to float on the way.
    put(x, (float[]){0x1p-30f, 0, 0, 0});
    assert_status(clv__interpret(&values, NULL, error_of()), CLV_OK, runtime);
    assert_true(clv__values_of(&values, y)[0] == 1 + 3 * 0x1p-30);
}

TEST_WITHIN(whole_numbers_stay_whole, begin, end) {
    clv_tensor *i = clv_input(graph, "i", CLV_DTYPE_I32, CLV_SHAPE(3));
    clv_tensor *j = clv_add(i, i);
    values_of_graph();
    clv__values_set(&values, i, (int32_t[]){-5, 0, 1000000001});
    assert_status(clv__interpret(&values, &(clv__noise){.size = 1, .seed = 1}, error_of()), CLV_OK, runtime);
    int32_t got[3];
    clv__values_get(&values, j, got);
    assert_int_equal(got[0], -10);
    assert_int_equal(got[2], 2000000002);
}

TEST_WITHIN(a_graph_that_has_grown_is_refused, begin, end) {
    clv_tensor *x = vector("x", 2);
    values_of_graph();
    clv_neg(x);
    assert_status(clv__interpret(&values, NULL, error_of()), CLV_E_STATE, runtime);
}

TEST_WITHIN(noise_is_small_and_repeats, begin, end) {
    clv_tensor *x = vector("x", 3), *y = clv_mul(x, x);
    values_of_graph();
    double seen[2];
    for (int i = 0; i < 2; i++) {
        put(x, (float[]){2, 0, 1});
        assert_status(clv__interpret(&values, &(clv__noise){.size = 1, .seed = 5}, error_of()), CLV_OK,
                      runtime);
        seen[i] = clv__values_of(&values, y)[0];
    }
    assert_true(seen[0] == seen[1]);
    assert_true(seen[0] != 4);
    assert_true(fabs(seen[0] - 4) <= 4 * 3.01 * FLT_EPSILON); // twice x, once the product
    assert_true(clv__values_of(&values, y)[1] == 0);
}

// ---- tolerance ------------------------------------------------------------------------------------------------------

static void expect(clv__expected *expected, clv_tensor *target) {
    assert_status(clv__expected_init(expected, &values, &target, 1, NULL, error_of()), CLV_OK, runtime);
}

TEST_WITHIN(tolerance_of_one_operation_is_some_roundings, begin, end) {
    clv__expected expected;
    clv_tensor *x = vector("x", 2), *y = vector("y", 2), *z = clv_mul(x, y);
    values_of_graph();
    put(x, (float[]){3, 0.5f});
    put(y, (float[]){5, 0.25f});
    expect(&expected, z);
    assert_true(clv__tolerance(&expected, z, 0) >= 16 * FLT_EPSILON * 15);
    assert_true(clv__tolerance(&expected, z, 0) <= 64 * FLT_EPSILON * 15);
    assert_true(clv__tolerance(&expected, z, 1) <= 32 * FLT_EPSILON);
    clv__expected_reset(&expected);
}

TEST_WITHIN(roundings_of_one_way_add_up, begin, end) {
    clv_tensor *sum = clv_sum(vector("x", 4096), (int[]){0}, 1, false);
    assert_true(clv__rounding_reach(&sum->node->io, false) == 64);
    assert_true(clv__rounding_reach(&sum->node->io, true) == 4096 / CLV__SWAY_FACTOR);
    sum = clv_sum(vector("y", 4), (int[]){0}, 1, false);
    assert_true(clv__rounding_reach(&sum->node->io, true) == 2); // no less than of either way
}

TEST_WITHIN(tolerance_grows_where_a_graph_cancels, begin, end) {
    clv__expected expected;
    clv_tensor *x = vector("x", 2), *y = vector("y", 2), *d = clv_sub(clv_mul(x, y), clv_mul(y, x));
    values_of_graph();
    put(x, (float[]){1000, 1e-3f});
    put(y, (float[]){1000, 1e-3f});
    expect(&expected, d);
    assert_true(clv__values_of(&expected.want, d)[0] == 0);
    assert_true(clv__tolerance(&expected, d, 0) >= 1e6 * FLT_EPSILON); // a rounding of the products shows
    assert_true(clv__tolerance(&expected, d, 0) <= 1e6 * FLT_EPSILON * 64);
    assert_true(clv__tolerance(&expected, d, 1) <= 0.25 * clv__tolerance(&expected, d, 0));
    clv__expected_reset(&expected);
}

TEST_WITHIN(tolerance_of_a_sum_grows_slower_than_its_terms, begin, end) {
    clv__expected small, large;
    enum { N = 100, MANY = 10000 };
    clv_tensor *x = vector("x", N), *y = vector("y", MANY);
    clv_tensor *a = clv_sum(x, NULL, 0, false), *b = clv_sum(y, NULL, 0, false);
    values_of_graph();
    for (int i = 0; i < N; i++) clv__values_of(&values, x)[i] = 1;
    for (int i = 0; i < MANY; i++) clv__values_of(&values, y)[i] = 1;
    expect(&small, a);
    expect(&large, b);
    // Per unit of the result: sqrt(K), so 10 times, with some play.
    double t = clv__tolerance(&small, a, 0) / N, u = clv__tolerance(&large, b, 0) / MANY;
    assert_true(u > t && u < 20 * t);
    assert_true(u < 1e-4); // a missing term (1/MANY) is seen
    clv__expected_reset(&small);
    clv__expected_reset(&large);
}

TEST_WITHIN(a_jump_gives_no_room, begin, end) {
    clv__expected expected;
    clv_tensor *x = vector("x", 2), *y = vector("y", 2), *e = clv_cast(clv_eq(x, y), CLV_DTYPE_F32);
    values_of_graph();
    put(x, (float[]){0.7f, 2});
    put(y, (float[]){0.7f, 3});
    expect(&expected, e);
    assert_true(clv__values_of(&expected.want, e)[0] == 1);
    assert_true(clv__tolerance(&expected, e, 0) < 1e-4);
    float wrong[2] = {0, 0}, right[2] = {1, 0};
    assert_true(clv__expected_distance(&expected, e, wrong).ratio > 1);
    assert_true(clv__expected_distance(&expected, e, right).ratio == 0);
    clv__expected_reset(&expected);
}

TEST_WITHIN(what_is_not_finite, begin, end) {
    clv__expected expected;
    clv_tensor *x = vector("x", 4), *y = clv_exp(x);
    values_of_graph();
    put(x, (float[]){0, 100, -INFINITY, NAN});
    expect(&expected, y);
    float got[4] = {1, INFINITY, 0, NAN}; // exp(100) does not fit into a float
    assert_true(clv__expected_distance(&expected, y, got).ratio <= 1);
    got[1] = FLT_MAX;
    assert_int_equal(clv__expected_distance(&expected, y, got).index, 1);
    assert_true(clv__expected_distance(&expected, y, got).ratio > 1);
    got[1] = INFINITY, got[0] = NAN;
    assert_int_equal(clv__expected_distance(&expected, y, got).index, 0);
    got[0] = 1, got[3] = 0;
    assert_int_equal(clv__expected_distance(&expected, y, got).index, 3);
    clv__expected_reset(&expected);
}

TEST_WITHIN(whole_numbers_are_exact, begin, end) {
    clv__expected expected;
    clv_tensor *i = clv_input(graph, "i", CLV_DTYPE_I32, CLV_SHAPE(1)), *j = clv_add(i, i);
    values_of_graph();
    clv__values_of(&values, i)[0] = 1 << 24;
    expect(&expected, j);
    assert_true(clv__expected_distance(&expected, j, &(int32_t){1 << 25}).ratio == 0);
    assert_true(clv__expected_distance(&expected, j, &(int32_t){(1 << 25) + 1}).ratio > 1);
    clv__expected_reset(&expected);
}

// ---- fills, differences -----------------------------------------------------------------------------------------------

TEST_WITHIN(fills_keep_their_promises, begin, end) {
    enum { N = 333 };
    double v[N], w[N];
    clv__desc desc = clv__f32(CLV_SHAPE(N));
    clv__fill_values(&(clv__fill){0}, &desc, 1, 2, v);
    clv__fill_values(&(clv__fill){0}, &desc, 1, 2, w);
    assert_memory_equal(v, w, sizeof v);
    clv__fill_values(&(clv__fill){0}, &desc, 2, 2, w);
    assert_memory_not_equal(v, w, sizeof v);
    for (int i = 0; i < N; i++) assert_true(v[i] >= -1 && v[i] < 1 && v[i] == (float)v[i]);
    clv__fill_values(&(clv__fill){CLV__FILL_INTEGER, 0, 3}, &desc, 1, 0, v);
    int seen[4] = {0};
    for (int i = 0; i < N; i++) seen[(int)v[i]] += v[i] == floor(v[i]);
    assert_int_equal(seen[0] + seen[1] + seen[2] + seen[3], N);
    assert_true(seen[0] && seen[3]);
    clv__fill_values(&(clv__fill){CLV__FILL_DISTINCT, -2, 2}, &desc, 1, 0, v);
    for (int i = 0; i < N; i++) {
        assert_true(fabs(v[i]) >= 0.9 / N); // no kink at zero
        for (int j = 0; j < i; j++) assert_true(fabs(v[i] - v[j]) >= 3.9 / N);
    }
    desc.dtype = CLV_DTYPE_I32;
    clv__fill_values(&(clv__fill){CLV__FILL_INTEGER, -7, 7}, &desc, 1, 0, v);
    for (int i = 0; i < N; i++) assert_true(v[i] == floor(v[i]) && fabs(v[i]) <= 7);
}

TEST_WITHIN(differences_agree_with_a_right_gradient, begin, end) {
    clv__distance worst;
    clv_tensor *x = vector("x", 5), *y = vector("y", 5);
    clv_requires_grad(x, true);
    clv_requires_grad(y, true);
    clv_tensor *loss = clv_sum(clv_mul(clv_exp(x), clv_tanh(clv_mul(x, y))), NULL, 0, false);
    clv_backward(loss);
    values_of_graph();
    put(x, (float[]){1, -0.5f, 0.25f, 2, -1});
    put(y, (float[]){0.3f, 1, -2, 0.1f, 0.7f});
    clv_tensor *wrt[] = {x, y};
    assert_status(clv__differences(&values, loss, wrt, 2, 0, 1, error_of(), &worst), CLV_OK, runtime);
    assert_true(worst.ratio < 0.1);
    assert_true(worst.got != 0);
    x->gradient = NULL; // as if none had come
    assert_status(clv__differences(&values, loss, wrt, 2, 0, 1, error_of(), &worst), CLV_OK, runtime);
    assert_true(worst.ratio > 1);
}

TEST_MAIN(NULL, NULL)
