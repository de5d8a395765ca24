// SPDX-License-Identifier: Apache-2.0
// Feeding, stepping and fetching: two slots, values that stay, tickets that grow old, runs that take turns.
#include <stdio.h>
#include <string.h>

#include "harness/harness.h"

#include "cleave/ops.h"
#include "device/device.h"
#include "exec/session.h"
#include "unit/toy_ops.h"

TEST_RUNTIME
static clv_device *host;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    host = clv__test_device(runtime, "host");
}

/** total += x;  y = a + x */
typedef struct toy_model {
    clv_graph *graph;
    clv_tensor *x, *a, *y;
    clv_plan *plan;
    clv_run *run;
} toy_model;

static toy_model build(clv_session *session, int64_t n) {
    toy_model m = {0};
    m.graph = clv__test_graph(runtime);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(n));
    m.a = clv_input(m.graph, "a", CLV_DTYPE_F32, CLV_SHAPE(n));
    clv_tensor *total = clv_parameter(m.graph, "total", CLV_SHAPE(4), (clv_init){CLV_INIT_ZEROS, 0, 0});
    m.y = toy(&toy_sum, m.a, m.x);
    clv_output(m.y, "y");
    if (n == 4) toy(&toy_accumulate, total, m.x);
    m.plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.device = host});
    if (session) m.run = clv__test_run(runtime, session, m.plan);
    return m;
}

static void destroy(toy_model *m) {
    clv_run_destroy(m->run);
    clv_plan_destroy(m->plan);
    clv_graph_destroy(m->graph);
}

static void feed(toy_model *m, clv_tensor *input, float value) {
    float values[16];
    for (int i = 0; i < 16; i++) values[i] = value;
    assert_int_equal(clv_run_feed(m->run, input, values, clv_tensor_bytes(input)), CLV_OK);
}

static float step(toy_model *m) {
    int64_t ticket;
    float values[16];
    assert_int_equal(clv_run_step(m->run, &ticket), CLV_OK);
    assert_int_equal(clv_run_fetch(m->run, ticket, m->y, values, clv_tensor_bytes(m->y)), CLV_OK);
    return values[clv_tensor_numel(m->y) - 1];
}

TEST(test_inputs_keep_their_values) {
    clv_session *session = clv__test_session(runtime, NULL);
    toy_model m = build(session, 4);
    assert_int_equal(clv_run_step(m.run, NULL), CLV_E_STATE); // nothing was fed
    assert_non_null(strstr(clv_runtime_error(runtime), "was not fed"));
    feed(&m, m.a, 100);
    assert_int_equal(clv_run_step(m.run, NULL), CLV_E_STATE); // x is missing, and a stays as it was fed
    feed(&m, m.x, 1);
    assert_float_equal(step(&m), 100 + 1, 0);
    for (int i = 2; i <= 5; i++) {
        if (i != 4) feed(&m, m.x, (float)i);
        assert_float_equal(step(&m), 100 + (i == 4 ? 3 : i), 0);
    }
    float total[4];
    assert_int_equal(clv_session_read(session, clv_session_find(session, "total"), total, sizeof total),
                     CLV_OK);
    assert_float_equal(total[2], 1 + 2 + 3 + 3 + 5, 0);
    assert_int_equal(clv_session_info_get(session).step, 5);
    destroy(&m);
    clv_session_destroy(session);
}

/** The same with x fed first: whichever stands first among the inputs. */
TEST(test_a_refused_step_forgets_nothing) {
    clv_session *session = clv__test_session(runtime, NULL);
    toy_model m = build(session, 4);
    feed(&m, m.x, 7);
    assert_int_equal(clv_run_step(m.run, NULL), CLV_E_STATE);
    feed(&m, m.a, 100);
    assert_float_equal(step(&m), 107, 0);
    assert_int_equal(clv_session_info_get(session).step, 1);
    destroy(&m);
    clv_session_destroy(session);
}

TEST(test_steps_in_flight_and_old_tickets) {
    clv_session *session = clv__test_session(runtime, NULL);
    toy_model m = build(session, 4);
    int64_t tickets[6];
    float values[4];
    feed(&m, m.a, 10);
    for (int i = 0; i < 6; i++) {
        feed(&m, m.x, (float)i);
        assert_int_equal(clv_run_step(m.run, &tickets[i]), CLV_OK);
    }
    for (int i = 4; i < 6; i++) {
        assert_int_equal(clv_run_fetch(m.run, tickets[i], m.y, values, sizeof values), CLV_OK);
        assert_float_equal(values[0], 10 + i, 0);
    }
    assert_int_equal(clv_run_fetch(m.run, tickets[3], m.y, values, sizeof values), CLV_E_STATE);
    assert_int_equal(clv_run_fetch(m.run, tickets[5] + 1, m.y, values, sizeof values), CLV_E_STATE);
    assert_int_equal(clv_run_fetch(m.run, tickets[5], m.y, values, 8), CLV_E_SHAPE);
    assert_int_equal(clv_run_fetch(m.run, tickets[5], m.x, values, sizeof values), CLV_E_VALUE);
    assert_int_equal(clv_run_feed(m.run, m.y, values, sizeof values), CLV_E_VALUE);
    assert_int_equal(clv_run_feed(m.run, m.x, values, 4), CLV_E_SHAPE);
    destroy(&m);
    clv_session_destroy(session);
}

TEST(test_runs_of_a_session_share_and_take_turns) {
    clv_session *session = clv__test_session(runtime, NULL);
    toy_model large = build(NULL, 16), small = build(NULL, 4);
    clv_plan *plans[2] = {small.plan, large.plan};
    clv_device_memory_reset_peak(host);
    assert_int_equal(clv_session_reserve(session, plans, 2), CLV_OK);
    assert_int_equal(clv_device_memory(host).all.peak, clv_plans_memory(plans, 2, NULL).predicted_peak_bytes);
    small.run = clv__test_run(runtime, session, small.plan);
    large.run = clv__test_run(runtime, session, large.plan);
    assert_int_equal(clv_device_memory(host).all.peak, clv_plans_memory(plans, 2, NULL).predicted_peak_bytes);
    for (int i = 0; i < 3; i++) {
        toy_model *m = i % 2 ? &large : &small;
        feed(m, m->a, 1);
        feed(m, m->x, (float)i);
        assert_float_equal(step(m), 1 + i, 0);
    }
    destroy(&large);
    destroy(&small);
    clv_session_destroy(session);
}

TEST(test_a_session_does_not_grow_under_its_runs) {
    clv_session *session = clv__test_session(runtime, NULL);
    toy_model small = build(session, 4), large = build(NULL, 16);
    assert_int_equal(clv_run_create(session, large.plan, &large.run), CLV_E_STATE);
    clv_run_destroy(small.run);
    small.run = NULL;
    large.run = clv__test_run(runtime, session, large.plan);
    destroy(&large);
    destroy(&small);
    clv_session_destroy(session);
}

/** Past the ends there is nothing, not memory of others. */
TEST(test_nothing_past_the_ends) {
    clv_session *session = clv__test_session(runtime, NULL);
    toy_model m = build(session, 4);
    clv_plan *plan = m.plan;
    const int past[] = {-1, clv_session_info_get(session).n_tensors, clv_plan_info_get(plan).n_nodes,
                        clv_plan_info_get(plan).n_transfers, 1 << 20};
    assert_int_equal(clv_plan_info_get(plan).n_transfers, 0);
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        if (past[i] < 0 || past[i] >= clv_session_info_get(session).n_tensors)
            assert_null(clv_session_get(session, past[i]).name);
        if (past[i] < 0 || past[i] >= clv_plan_info_get(plan).n_nodes)
            assert_null(clv_plan_node_get(plan, past[i]).op);
        if (past[i] < 0 || past[i] >= clv_plan_info_get(plan).n_devices)
            assert_null(clv_plan_device_get(plan, past[i]));
        assert_null(clv_plan_transfer_get(plan, past[i]).from);
    }
    destroy(&m);
    clv_session_destroy(session);
}

typedef struct heard {
    int calls, done, total;
} heard;

static void hear(void *user, int done, int total) {
    heard *h = user;
    *h = (heard){h->calls + 1, done, total};
}

/** Where kernels are compiled at their first launch, the first step says how far it is, and no other. */
TEST(test_a_first_step_tells_how_far_it_is) {
    heard h = {0};
    clv_runtime *listened =
        clv__test_runtime(&(clv_runtime_config){.build_progress = hear, .build_progress_user = &h});
    clv_device *device;
    if (clv_device_find(listened, "cpu", &device) != CLV_OK || !device->traits.compiles_at_launch) {
        print_message("skipped: no driver here compiles kernels when they are launched\n");
        clv_runtime_destroy(listened);
        skip();
    }
    int64_t ticket;
    float values[64] = {0};
    clv_graph *graph = clv__test_graph(listened);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64)),
               *y = clv_sum(clv_exp(x), NULL, 0, false);
    clv_output(y, "y");
    clv_plan *plan = clv__test_plan(listened, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(listened, NULL);
    clv_run *run = clv__test_run(listened, session, plan);
    const int built = h.calls;
    for (int step = 0, after = 0; step < 3; step++) {
        assert_status(clv_run_feed(run, x, values, sizeof values), CLV_OK, listened);
        assert_status(clv_run_step(run, &ticket), CLV_OK, listened);
        assert_status(clv_run_fetch(run, ticket, y, values, sizeof *values), CLV_OK, listened);
        if (step == 0) after = h.calls;
        assert_true(h.calls == after && h.calls >= built + 2); // a launch each at least
        assert_true(h.done == h.total && h.total == h.calls - built);
    }
    clv__test_end(run, session, plan, graph);
    clv_runtime_destroy(listened);
}

TEST_MAIN(setup, end_runtime)
