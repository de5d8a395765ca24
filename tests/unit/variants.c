// SPDX-License-Identifier: Apache-2.0
// An op may have any number of variants: the checker has a case for each, and the planner passes over as many as it has to.
#include <stdio.h>
#include <string.h>

#include "harness/harness.h"

#include "cleave/check.h"
#include "plan/plan.h"
#include "unit/toy_ops.h"

enum { MANY = 40 };

static char names[MANY][8];
static clv__variant many[MANY + 1];
static const clv__sample_row samples[] = {{"eight", .in = {CLV__DIMS(8)}}, {0}};
static const clv__op toy_many = {.name = "toy_many",
                                 .infer = toy_same_shape,
                                 .reference = toy_sum_reference,
                                 .variants = many,
                                 .samples = samples};

TEST_RUNTIME
static clv_device *device;

static int setup(void **state) {
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "v%d", i);
        // all but the last need a workspace that is larger than an allocation may be
        many[i] = (clv__variant){i ? names[i] : "plain", .lower = i + 1 < MANY ? toy_wide_lower : toy_lower,
                                 .relative = 1 + i};
    }
    if (clv_runtime_create(&(clv_runtime_config){.no_opencl = true, .null_devices = true}, &runtime) ||
        clv_device_find(runtime, "null", &device))
        return -1;
    return clv__op_enlist(&toy_many) ? 0 : -1;
}

TEST(test_each_is_checked) {
    const char *const ops[] = {"toy_many", NULL};
    clv_check_report *report;
    bool listed[MANY] = {false};
    const char *backend = device->info.backend;
    device->info.backend = "any"; // nothing is run
    assert_status(clv_check(runtime, device, &(clv_check_config){.ops = ops, .list = true}, &report), CLV_OK,
                  runtime);
    for (int i = 0; i < report->n_list; i++)
        for (int k = 0; k < MANY; k++) listed[k] |= !strcmp(report->list[i].variant, many[k].name);
    for (int k = 0; k < MANY; k++) assert_true(listed[k]);
    clv_free(report);
    device->info.backend = backend;
}

TEST(test_the_last_is_chosen) {
    const uint64_t largest = device->info.max_alloc_bytes;
    clv_graph *graph = clv__test_graph(runtime);
    clv_output(toy(&toy_many, clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1 << 16)), NULL), "y");
    device->info.max_alloc_bytes =
        1 << 19; // the tensors are half as large, the workspace is three times a tensor
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    assert_string_equal(clv_plan_node_get(plan, 0).variant, many[MANY - 1].name);
    device->info.max_alloc_bytes = largest;
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

TEST_MAIN(setup, end_runtime)
