// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 on every device, to the bit: the checker's tolerance would let a truncation pass for a rounding. Every stored
// value is loaded; floats near and half way between neighbours, huge, tiny and not numbers, are stored. And integers: each cast
// at the ends of what both dtypes hold; as indices, labels and conditions; compared.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/plan.h"
#include "harness/harness.h"
#include "tensor/half.h"

enum { VALUES = 0x10000 };

typedef struct on_device {
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    int64_t ticket;
} on_device;

/** Run a graph that is whole, with x fed. */
static void start(on_device *on, clv_runtime *runtime, clv_device *device, const char *variants,
                  clv_graph *graph, clv_tensor *x, const void *in) {
    const clv_plan_config config = {.device = device, .variants = variants};
    on->plan = clv__test_plan(runtime, graph, &config);
    on->session = clv__test_session(runtime, NULL);
    on->run = clv__test_run(runtime, on->session, on->plan);
    assert_status(clv_run_feed(on->run, x, in, clv_tensor_bytes(x)), CLV_OK, runtime);
    assert_status(clv_run_step(on->run, &on->ticket), CLV_OK, runtime);
}

static void stop(on_device *on) {
    clv__test_end(on->run, on->session, on->plan, NULL);
}

/** Feed x of a graph, and fetch y. */
static void run_on(clv_runtime *runtime, clv_device *device, const char *variants, clv_graph *graph,
                   clv_tensor *x, const void *in, clv_tensor *y, void *out) {
    on_device on = {0};
    clv_output(y, "y");
    start(&on, runtime, device, variants, graph, x, in);
    assert_status(clv_run_fetch(on.run, on.ticket, y, out, clv_tensor_bytes(y)), CLV_OK, runtime);
    stop(&on);
}

static void cast_on(clv_runtime *runtime, clv_device *device, const char *variants, clv_dtype from,
                    clv_dtype to, int n, const void *in, void *out) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", from, CLV_SHAPE(n));
    run_on(runtime, device, variants, graph, x, in, clv_cast(x, to), out);
    clv_graph_destroy(graph);
}

static float widen(clv_dtype dtype, uint16_t stored) {
    return dtype == CLV_DTYPE_F16 ? clv__f16_to_float(stored) : clv__bf16_to_float(stored);
}

static uint16_t narrow(clv_dtype dtype, float value) {
    return dtype == CLV_DTYPE_F16 ? clv__f16_of_float(value) : clv__bf16_of_float(value);
}

/** A float around stored value h: itself, or between it and the next one, half way or next to that. */
static float around(clv_dtype dtype, int h) {
    float low = widen(dtype, (uint16_t)h), high = widen(dtype, (uint16_t)(h + 1));
    float middle = low + (high - low) / 2;
    switch (h % 4) {
    case 0: return middle;
    case 1: return nextafterf(middle, low);
    case 2: return nextafterf(middle, high);
    default: return low;
    }
}

static void compare(clv_dtype dtype, clv_runtime *runtime, clv_device *device, const char *variants) {
    static uint16_t stored[VALUES], back[VALUES];
    static float values[VALUES], got[VALUES];
    for (int h = 0; h < VALUES; h++) stored[h] = (uint16_t)h;
    cast_on(runtime, device, variants, dtype, CLV_DTYPE_F32, VALUES, stored, got);
    for (int h = 0; h < VALUES; h++) {
        float want = widen(dtype, (uint16_t)h);
        bool flushed = fabsf(want) < 0x1p-126f && got[h] == 0; // a small bf16 may be a denormal float
        if (isnan(want) ? !isnan(got[h]) : !flushed && memcmp(&want, &got[h], sizeof want) != 0)
            fail_msg("%s: %s 0x%04x is loaded as %a, not %a", clv_device_info_get(device)->name,
                     clv_dtype_name(dtype), (unsigned)h, (double)got[h], (double)want);
        values[h] = around(dtype, h);
    }
    cast_on(runtime, device, variants, CLV_DTYPE_F32, dtype, VALUES, values, back);
    for (int h = 0; h < VALUES; h++) {
        uint16_t want = narrow(dtype, values[h]);
        bool flushed = fabsf(values[h]) < 0x1p-126f && widen(dtype, back[h]) == 0;
        if (isnan(values[h]) ? !isnan(widen(dtype, back[h])) : !flushed && want != back[h])
            fail_msg("%s: %a is stored as %s 0x%04x, not 0x%04x", clv_device_info_get(device)->name,
                     (double)values[h], clv_dtype_name(dtype), (unsigned)back[h], (unsigned)want);
    }
}

TEST(conversions_are_exact) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        bool host = clv_device_info_get(device)->type == CLV_DEVICE_HOST;
        for (int k = 0; k < (host ? 1 : 2); k++) {
            const char *variants = host ? NULL : k ? "cast=rows" : "cast=plain";
            compare(CLV_DTYPE_F16, runtime, device, variants);
            compare(CLV_DTYPE_BF16, runtime, device, variants);
        }
    }
    clv_runtime_destroy(runtime);
}

// ---- integers -----------------------------------------------------------------------------------------------------------

static const double ends[] = {0,
                              -0.0,
                              0.5,
                              -0.5,
                              1,
                              -1,
                              2.9,
                              -2.9,
                              127,
                              127.5,
                              128,
                              -128,
                              -129,
                              254.9,
                              255,
                              256,
                              300,
                              -300,
                              0x1p31 - 1,
                              0x1p31,
                              -0x1p31,
                              -0x1p31 - 1,
                              0x1p32,
                              0x1p40,
                              -0x1p40,
                              0x1p63,
                              -0x1p63,
                              0x1p70,
                              (double)INFINITY,
                              (double)-INFINITY,
                              (double)NAN,
                              7,
                              8,
                              9,
                              10,
                              11,
                              12}; // more than two vectors
enum { ENDS = sizeof ends / sizeof *ends };

static bool is_same(clv_dtype dtype, const void *a, const void *b) {
    float x, y;
    if (dtype != CLV_DTYPE_F32) return !memcmp(a, b, clv_dtype_bytes(dtype));
    memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);
    return x == y || (isnan(x) && isnan(y));
}

static void hold_cast(const char *device, clv_dtype from, clv_dtype to, const double *values,
                      const char *got) {
    uint64_t want[ENDS];
    const size_t bytes = clv_dtype_bytes(to);
    clv__elements_narrow(to, values, ENDS, want);
    for (size_t i = 0; i < ENDS; i++) {
        double is;
        if (is_same(to, got + i * bytes, (char *)want + i * bytes)) continue;
        clv__elements_widen(to, got + i * bytes, 1, &is);
        fail_msg("%s: %.17g of %s becomes %.17g of %s", device, values[i], clv_dtype_name(from), is,
                 clv_dtype_name(to));
    }
}

/** From one dtype to all others, in one graph: compilers take their time. Vectors, and what is left over one by one. */
static void cast_from(clv_runtime *runtime, clv_device *device, clv_dtype from) {
    enum { MOST = 16 };
    const clv_device_info *info = clv_device_info_get(device);
    uint64_t in[ENDS], got[ENDS]; // room for any dtype
    double values[ENDS];
    clv_tensor *y[MOST] = {0};
    on_device on = {0};
    clv__elements_narrow(from, ends, ENDS, in);
    if (from == CLV_DTYPE_BOOL) *(uint8_t *)in = 2; // any byte but 0 is true
    clv__elements_widen(from, in, ENDS, values);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", from, CLV_SHAPE(ENDS));
    for (clv_dtype to = CLV_DTYPE_F32; clv_dtype_bytes(to); to++) {
        assert_true((int)to < MOST);
        if (clv__is_half(to) || from == to || (info->no_int64 && to == CLV_DTYPE_I64)) continue;
        clv_output(y[to] = clv_cast(x, to), clv_dtype_name(to));
    }
    start(&on, runtime, device, info->type == CLV_DEVICE_HOST ? NULL : "convert=rows", graph, x, in);
    for (clv_dtype to = CLV_DTYPE_F32; clv_dtype_bytes(to); to++) {
        if (!y[to]) continue;
        assert_status(clv_run_fetch(on.run, on.ticket, y[to], got, clv_tensor_bytes(y[to])), CLV_OK, runtime);
        hold_cast(info->name, from, to, values, (const char *)got);
    }
    stop(&on);
    clv_graph_destroy(graph);
}

TEST(integers_are_cast) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        for (clv_dtype from = CLV_DTYPE_F32; clv_dtype_bytes(from); from++)
            if (!clv__is_half(from) && !(from == CLV_DTYPE_I64 && clv_device_info_get(device)->no_int64))
                cast_from(runtime, device, from);
    }
    clv_runtime_destroy(runtime);
}

/** Other integers where i32 is wanted: what is beyond i32 names nothing, and does not wrap to what is there. */
TEST(integers_are_indices) {
    static const float table[] = {10, 11, 12, 13};
    static const int64_t longs[] = {3, 0, INT64_C(1) << 32, -1};
    static const uint8_t bytes[] = {3, 0, 255, 4}, truths[] = {1, 0, 7, 0};
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        for (int k = 0; k < 3; k++) {
            static const clv_dtype dtypes[] = {CLV_DTYPE_U8, CLV_DTYPE_BOOL, CLV_DTYPE_I64};
            const void *const in[] = {bytes, truths, longs};
            float got[4], one = 1, zero = 0;
            if (k == 2 && clv_device_info_get(device)->no_int64) continue;
            clv_graph *graph = clv__test_graph(runtime);
            clv_tensor *x = clv_input(graph, "x", dtypes[k], CLV_SHAPE(4)),
                       *rows = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(4, 1), table),
                       *a = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(1), &one),
                       *b = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(1), &zero);
            const bool truth = dtypes[k] == CLV_DTYPE_BOOL;
            run_on(runtime, device, NULL, graph, x, in[k],
                   truth ? clv_where(x, a, b) : clv_embedding(rows, x), got);
            assert_true(truth ? got[0] == 1 && got[1] == 0 && got[2] == 1 && got[3] == 0
                              : got[0] == 13 && got[1] == 10 && isnan(got[2]) && isnan(got[3]));
            clv_graph_destroy(graph);
        }
    }
    clv_runtime_destroy(runtime);
}

/** A loss of labels of 64 bits is that of labels of 32, class weights and ignored labels too. */
TEST(labels_are_integers) {
    static const int64_t labels[] = {2, -100, 0};
    static const float weights[] = {0.5f, 1, 2}, logits[9] = {1, 2, 3, 3, 2, 1, 0.5f, 0, -1};
    clv_runtime *runtime = clv__test_runtime(NULL);
    float got[2];
    clv_device *device = clv__test_device(runtime, "host");
    for (int k = 0; k < 2; k++) {
        const int32_t narrow_labels[] = {2, -100, 0};
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *x = clv_input(graph, "labels", k ? CLV_DTYPE_I64 : CLV_DTYPE_I32, CLV_SHAPE(3)),
                   *z = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(3, 3), logits),
                   *w = clv_nn_label_weights(x, weights, 3, -100);
        run_on(runtime, device, NULL, graph, x, k ? (const void *)labels : narrow_labels,
               clv_cross_entropy_weighted(z, x, w), &got[k]);
        clv_graph_destroy(graph);
    }
    assert_true(got[0] > 0 && got[0] == got[1]);
    clv_runtime_destroy(runtime);
}

/** Not as floats, which are alike beyond 2^24, nor as doubles beyond 2^53. */
TEST(longs_are_compared) {
    enum { N = 20 };
    int64_t a[N], b[N];
    int32_t got[N];
    for (int64_t i = 0; i < N; i++) a[i] = (INT64_C(1) << 53) + i % 3, b[i] = (INT64_C(1) << 53) + i % 2;
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        const clv_device_info *info = clv_device_info_get(device);
        if (info->no_int64 || info->type == CLV_DEVICE_HOST) continue; // the host computes in double
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_I64, CLV_SHAPE(N)),
                   *y = clv_constant(graph, CLV_DTYPE_I64, CLV_SHAPE(N), b);
        run_on(runtime, device, NULL, graph, x, a, clv_lt(x, y), got);
        for (int k = 0; k < N; k++) assert_int_equal(got[k], a[k] < b[k]);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
