// SPDX-License-Identifier: Apache-2.0
// A model with an op that sleeps, for tests of what is told of time: a sleep never ends early, so its times are known from below
// and nothing depends on how fast the machine is.
#ifndef CLV_TESTS_UNIT_SLOW_MODEL_H
#define CLV_TESTS_UNIT_SLOW_MODEL_H

#include "harness/harness.h"

#include "cleave/ops.h"
#include "cleave/profile.h"
#include "unit/toy_ops.h"

enum { SLEEP_MS = 4, SLOW_MS = 100 };

static clv_runtime *runtime;
static clv_device *host;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.null_devices = true});
    host = clv__test_device(runtime, "host");
}

FIXTURE(teardown) {
    clv_runtime_destroy(runtime);
}

static void sleep_ms(long ms) {
    struct timespec time = {0, ms * 1000000};
    while (nanosleep(&time, &time) != 0) continue;
}

static int calls, slow_calls; // the first `slow_calls` take much longer

static void slow_reference(const clv__ref *ref) {
    sleep_ms(++calls <= slow_calls ? SLOW_MS : SLEEP_MS);
    for (int64_t i = 0; i < clv__numel(&ref->io->in[0]); i++) ref->out[0][i] = ref->in[0][i];
}

static void slow_cost(const clv__op_io *io, clv__cost *cost) {
    *cost = (clv__cost){.flops = 1000, .bytes = 500};
}

/** The identity, on the host, and in no hurry. */
static const clv__op slow = {.name = "slow",
                             .infer = toy_same_shape,
                             .reference = slow_reference,
                             .variants = toy_variants,
                             .cost = slow_cost};

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *y;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} model;

/** y = relu(slow(relu(x))): layers before, middle, after. profile NULL: none. */
static model build(const char *place, clv_profile *profile) {
    model m = {0};
    m.graph = clv__test_graph(runtime);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64));
    clv_scope_push(m.graph, "before");
    m.y = clv_relu(m.x);
    clv_scope_pop(m.graph);
    clv_scope_push(m.graph, "middle");
    m.y = strstr(place, "null") ? clv_relu(m.y) : toy(&slow, m.y, NULL);
    clv_scope_pop(m.graph);
    clv_scope_push(m.graph, "after");
    m.y = clv_relu(m.y);
    clv_scope_pop(m.graph);
    clv_output(m.y, "y");
    m.plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.place = place});
    m.session = clv__test_session(runtime, NULL);
    clv_session_set_profile(m.session, profile);
    m.run = clv__test_run(runtime, m.session, m.plan);
    calls = slow_calls = 0;
    return m;
}

static void destroy(model *m) {
    clv__test_end(m->run, m->session, m->plan, m->graph);
}

#endif
