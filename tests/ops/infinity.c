// SPDX-License-Identifier: Apache-2.0
// A convolution whose weights are not finite: padding is zeros that are multiplied, on the host as on every device, in every variant
// but those that ops.h leaves free.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "cleave/plan.h"
#include "graph/op.h"
#include "harness/harness.h"

enum { SIZE = 8, CHANNELS = 4 };

static clv_runtime *runtime;

typedef struct shape {
    int64_t groups;
    int stride;
} shape;

/** y of a convolution of ones, of 3x3 with padding 1, whose first weight is `first`. False: the variant does not take it. */
static bool run_on(clv_device *device, const char *variant, shape of, float first, float *y_values,
                   int64_t *n) {
    clv_plan *plan = NULL;
    int64_t ticket;
    char pin[64];
    float x_values[CHANNELS * SIZE * SIZE], w_values[CHANNELS * CHANNELS * 9];
    for (size_t i = 0; i < sizeof x_values / sizeof *x_values; i++) x_values[i] = 1;
    for (size_t i = 0; i < sizeof w_values / sizeof *w_values; i++) w_values[i] = 1;
    w_values[0] = first;
    snprintf(pin, sizeof pin, "conv2d=%s", variant ? variant : "");
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, CHANNELS, SIZE, SIZE));
    clv_tensor *w = clv_input(graph, "w", CLV_DTYPE_F32, CLV_SHAPE(CHANNELS, CHANNELS / of.groups, 3, 3));
    clv_tensor *y = clv_conv2d(
        x, w, NULL, &(clv_conv2d_config){.padding = {1}, .stride = {of.stride}, .groups = (int)of.groups});
    clv_output(y, "y");
    *n = clv_tensor_numel(y);
    clv_status status =
        clv_plan_create(graph, &(clv_plan_config){.device = device, .variants = variant ? pin : NULL}, &plan);
    if (status == CLV_OK) {
        clv_session *session = clv__test_session(runtime, NULL);
        clv_run *run = clv__test_run(runtime, session, plan);
        assert_status(clv_run_feed(run, x, x_values, clv_tensor_bytes(x)), CLV_OK, runtime);
        assert_status(clv_run_feed(run, w, w_values, clv_tensor_bytes(w)), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        assert_status(clv_run_fetch(run, ticket, y, y_values, clv_tensor_bytes(y)), CLV_OK, runtime);
        clv_run_destroy(run);
        clv_session_destroy(session);
    } else {
        assert_int_equal(status, CLV_E_UNSUPPORTED);
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    return status == CLV_OK;
}

/** Is the variant free to leave padding out, or to spread what is not finite? */
static bool is_free(const char *variant) {
    return variant && (!strcmp(variant, "images") || !strncmp(variant, "winograd", 8));
}

/** The first weight meets padding in the first row and the first column of the first channel. */
static void hold(const clv_device *device, const char *variant, shape of, float first, const float *y,
                 int64_t n) {
    const int64_t width = of.stride == 1 ? SIZE : SIZE / of.stride;
    for (int64_t i = 0; i < n; i++) {
        const bool of_channel = i < width * width, in_padding = i < width || i % width == 0;
        const bool right = !of_channel                  ? isfinite(y[i])
                           : is_free(variant)           ? in_padding || !isfinite(y[i])
                           : isnan(first) || in_padding ? isnan(y[i]) != 0
                                                        : y[i] == first;
        if (!right)
            fail_msg("%s, %s, groups %d, stride %d, first weight %g: element %d is %g",
                     clv_device_info_get(device)->name, variant ? variant : "the plan's own", (int)of.groups,
                     of.stride, (double)first, (int)i, (double)y[i]);
    }
}

TEST(padding_is_zeros_that_are_multiplied) {
    static const shape shapes[] = {{1, 1}, {CHANNELS, 1}, {1, 2}};
    static const float firsts[] = {INFINITY, -INFINITY, NAN};
    float y[CHANNELS * SIZE * SIZE];
    int64_t n;
    int at = -1;
    runtime = clv__test_runtime(NULL);
    for (clv_device *device; (device = clv__test_next_device(runtime, &at));) {
        const bool host = clv_device_info_get(device)->type == CLV_DEVICE_HOST;
        for (int s = 0; s < 3; s++)
            for (int f = 0; f < 3; f++) {
                if (host && run_on(device, NULL, shapes[s], firsts[f], y, &n))
                    hold(device, NULL, shapes[s], firsts[f], y, n);
                for (const clv__variant *v = clv__op_find("conv2d")->variants; !host && v->name; v++)
                    if (run_on(device, v->name, shapes[s], firsts[f], y, &n))
                        hold(device, v->name, shapes[s], firsts[f], y, n);
            }
    }
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
