// SPDX-License-Identifier: Apache-2.0
// Convolutions of many channels on threads lose few digits: their sums are of blocks of terms, and a chain of all terms would be twice
// as far off, which is within the bounds of `cleave check`.
#include <math.h>

#include "cleave/ops.h"
#include "cleave/plan.h"
#include "cleave/runtime.h"
#include "harness/harness.h"

enum { SIDE = 7, OUT = 32 };

TEST_RUNTIME_OF(NULL)

/** How far off a convolution of C channels with kernels of K x K is: the root of the mean square, of that of the results. */
static double off(clv_device *device, const char *variant, int64_t C, int64_t K) {
    static float x[1024 * SIDE * SIDE], y[OUT * SIDE * SIDE];
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *in = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, C, SIDE, SIDE));
    clv_tensor *weight =
        clv_parameter(graph, "w", CLV_SHAPE(OUT, C, K, K), (clv_init){CLV_INIT_NORMAL, 0, 1});
    const clv_conv2d_config config = {.padding = {(int)K / 2, (int)K / 2}};
    clv_tensor *out = clv_conv2d(in, weight, NULL, &config);
    clv_output(out, "y");
    clv_plan *plan =
        clv__test_plan(runtime, graph, &(clv_plan_config){.device = device, .variants = variant});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 1});
    clv_run *run = clv__test_run(runtime, session, plan);
    const size_t bytes = (size_t)(OUT * C * K * K) * sizeof(float);
    float *w = malloc(bytes);
    assert_status(clv_session_read(session, clv_session_find(session, "w"), w, bytes), CLV_OK, runtime);
    for (int64_t i = 0; i < C * SIDE * SIDE; i++) x[i] = (float)sin(12.9898 * (double)i * (double)i);
    int64_t ticket;
    assert_status(clv_run_feed(run, in, x, (size_t)(C * SIDE * SIDE) * sizeof(float)), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, out, y, sizeof y), CLV_OK, runtime);
    double wrong = 0, all = 0;
    for (int64_t i = 0; i < OUT * SIDE * SIDE; i++) {
        const int64_t o = i / (SIDE * SIDE), top = i / SIDE % SIDE - K / 2, left = i % SIDE - K / 2;
        double sum = 0;
        for (int64_t k = 0; k < C * K * K; k++) {
            const int64_t row = top + k / K % K, column = left + k % K;
            if (row < 0 || row >= SIDE || column < 0 || column >= SIDE) continue;
            sum += (double)x[(k / K / K * SIDE + row) * SIDE + column] * (double)w[o * C * K * K + k];
        }
        wrong += (sum - (double)y[i]) * (sum - (double)y[i]);
        all += sum * sum;
    }
    free(w);
    clv__test_end(run, session, plan, graph);
    print_message("%s, %d channels, %dx%d: %.2g\n", variant, (int)C, (int)K, (int)K, sqrt(wrong / all));
    return sqrt(wrong / all);
}

TEST(test_convolutions) {
    bool any = false;
    int at = -1;
    for (clv_device *device; (device = clv__test_next_device(runtime, &at));) {
        const clv_device_info *info = clv_device_info_get(device);
        if (info->type == CLV_DEVICE_HOST || info->execution != CLV_EXECUTION_THREADS) continue;
        any = true;
        assert_true(off(device, "conv2d=tile", 1024, 1) < 4e-7);
        assert_true(off(device, "conv2d=tile", 512, 3) < 4e-7);
        assert_true(off(device, "conv2d=winograd", 512, 3) < 1.5e-6);
    }
    if (!any) skip();
}

TEST_MAIN(begin_runtime, end_runtime)
