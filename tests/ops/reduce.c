// SPDX-License-Identifier: Apache-2.0
// Long sums: how exact they are, in every variant on every device. Samples are short; here are a million elements.
#include <math.h>

#include "base/random.h"
#include "cleave/ops.h"
#include "cleave/plan.h"
#include "harness/harness.h"

enum { N = 1000003 };

static float sum_on(clv_runtime *runtime, clv_device *device, const char *variants, clv_shape shape,
                    const float *values, int64_t out_n, float *out) {
    int64_t ticket;
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, shape);
    clv_tensor *y = clv_sum(x, (int[]){0}, 1, false);
    clv_output(y, "y");
    clv_plan *plan =
        clv__test_plan(runtime, graph, &(clv_plan_config){.device = device, .variants = variants});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, x, values, clv_tensor_bytes(x)), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, out, (size_t)out_n * sizeof *out), CLV_OK, runtime);
    clv__test_end(run, session, plan, graph);
    return out[0];
}

TEST(long_sums_are_exact) {
    static const char *const variants[] = {"sum=plain", "sum=staged"};
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv__random random;
    clv__random_init(&random, clv__test_seed(), CLV__STREAM_TEST, 0);
    float *values = malloc(N * sizeof *values);
    assert_non_null(values);
    double want = 0;
    for (int i = 0; i < N; i++) want += values[i] = clv__random_uniform(&random);
    for (int i = -1; clv__test_next_device(runtime, &i);) {
        clv_device *device = clv_device_get(runtime, i);
        const clv_device_info *info = clv_device_info_get(device);
        for (int k = 0; k < (info->type == CLV_DEVICE_HOST ? 0 : 2); k++) {
            float got;
            sum_on(runtime, device, variants[k], CLV_SHAPE(N), values, 1, &got);
            print_message("%s %s: relative error %.2g\n", info->name, variants[k], fabs(got / want - 1));
            assert_true(fabs(got / want - 1) < 1e-6);
            // along a column the elements are far apart, and other kernels run
            float columns[3];
            double first = 0;
            for (int r = 0; r < N / 3; r++) first += values[3 * r];
            sum_on(runtime, device, variants[k], CLV_SHAPE(N / 3, 3), values, 3, columns);
            assert_true(fabs(columns[0] / first - 1) < 1e-6);
        }
    }
    free(values);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
