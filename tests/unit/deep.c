// SPDX-License-Identifier: Apache-2.0
// Deep networks: 100,000 nodes are planned in 6 KiB each, and 10,000 layers train on the host. Searches that take a node's time
// for each other node would not end within the test's time.
#include "harness/harness.h"

#include <malloc.h>
#include <math.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "cleave/runtime.h"
#include "graph/graph.h"

#ifdef CLEAVE_SANITIZED // which is slow, and counts otherwise
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif
static const clv_optimizer_config sgd = {.kind = CLV_SGD};

static clv_tensor *build(clv_runtime *runtime, int layers, clv_graph **graph, clv_tensor **x) {
    assert_status(clv_graph_create(runtime, graph), CLV_OK, runtime);
    clv_graph_set_training(*graph, true);
    clv_tensor *h = *x = clv_input(*graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4));
    for (int i = 0; i < layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "fc%d", i);
        h = clv_relu(clv_nn_linear(h, name, 4, NULL));
    }
    clv_tensor *loss = clv_mean(h, NULL, 0, false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(*graph, &sgd);
    assert_status(clv_graph_status(*graph), CLV_OK, runtime);
    return loss;
}

static size_t held(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

TEST(test_plan) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true});
    clv_graph *graph;
    clv_tensor *x;
    size_t before = held();
    clv_device *device = clv__test_device(runtime, "null:0");
    build(runtime, SANITIZED ? 300 : 12500, &graph, &x);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    size_t each = (held() - before) / graph->n_nodes;
    print_message("%zu nodes, %zu bytes each\n", graph->n_nodes, each);
    if (!SANITIZED) {
        assert_true(graph->n_nodes >= 100000);
        assert_true(each <= 6 * 1024);
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

TEST(test_train) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_graph *graph;
    clv_tensor *x;
    float values[8] = {1, 2, 3, 4, 5, 6, 7, 8}, hyper[CLV_HYPER_VALUES], loss = NAN;
    int64_t ticket;
    clv_device *device = clv__test_device(runtime, "host");
    clv_tensor *mean = build(runtime, SANITIZED ? 300 : 10000, &graph, &x);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    clv_optimizer_hyper_values(graph, 1, 0.1, hyper);
    for (int step = 0; step < 2; step++) {
        assert_status(clv_run_feed(run, x, values, sizeof values), CLV_OK, runtime);
        assert_status(clv_run_feed(run, clv_optimizer_hyper(graph), hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, mean, &loss, sizeof loss), CLV_OK, runtime);
    assert_true(isfinite(loss));
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes);
    clv__test_end(run, session, plan, graph);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
