// SPDX-License-Identifier: Apache-2.0
// Inputs that are fed in the middle of a step: what is fetched before and after, steps that are dropped, what is refused. And memory that
// the program and the device have in common: tensors of a session, and outputs.
#include <stdlib.h>
#include <string.h>

#include "backends/null/null.h"
#include "cleave/ops.h"
#include "cleave/profile.h"
#include "device/device.h"
#include "misuse/world.h"

enum { N = 16 };

TEST_RUNTIME_OF(&(clv_runtime_config){.null_devices = true})

/** y = 2 x w; then with dy from outside dw = 2 x dy, and both are in the host's memory. */
typedef struct halves {
    clv_graph *graph;
    clv_tensor *x, *w, *y, *dy, *dw;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} halves;

static halves build(clv_device *device, clv_session *session) {
    halves h = {.session = session};
    h.graph = clv__test_graph(runtime);
    clv_graph_set_training(h.graph, true);
    h.x = clv_input(h.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N));
    h.dy = clv_input(h.graph, "dy", CLV_DTYPE_F32, CLV_SHAPE(N));
    clv_input_late(h.dy);
    h.w = clv_buffer(h.graph, "w", CLV_DTYPE_F32, CLV_SHAPE(N), (clv_init){CLV_INIT_ONES, 0, 0});
    clv_requires_grad(h.w, true);
    h.y = clv_mul(clv_mul_scalar(h.x, 2), h.w);
    clv_output(h.y, "y");
    clv_backward(clv_sum(clv_mul(h.y, h.dy), NULL, 0, false));
    h.dw = clv_gradient(h.w);
    clv_output(h.dw, "dw");
    h.plan = clv__test_plan(runtime, h.graph, &(clv_plan_config){.device = device});
    if (!session) h.session = clv__test_session(runtime, NULL);
    clv_device_memory_reset_peak(device);
    const uint64_t before = clv_device_memory(device).all.current;
    assert_status(clv_session_reserve(h.session, &h.plan, 1), CLV_OK, runtime);
    if (!session)
        assert_int_equal(clv_device_memory(device).all.peak - before,
                         clv_plans_memory(&h.plan, 1, NULL).predicted_peak_bytes);
    return h;
}

static void destroy(halves *h, bool session) {
    clv_run_destroy(h->run);
    if (session) clv_session_destroy(h->session);
    clv_plan_destroy(h->plan);
    clv_graph_destroy(h->graph);
}

static clv_status feed(halves *h, clv_tensor *input, float value) {
    float values[N];
    for (int i = 0; i < N; i++) values[i] = value;
    return clv_run_feed(h->run, input, values, sizeof values);
}

static int64_t begin(halves *h, float x) {
    int64_t ticket;
    assert_status(feed(h, h->x, x), CLV_OK, runtime);
    assert_status(clv_run_step(h->run, &ticket), CLV_OK, runtime);
    return ticket;
}

static float fetch(halves *h, int64_t ticket, clv_tensor *output) {
    float values[N];
    assert_status(clv_run_fetch(h->run, ticket, output, values, sizeof values), CLV_OK, runtime);
    for (int i = 1; i < N; i++) assert_float_equal(values[i], values[0], 0);
    return values[0];
}

static void refused(clv_status status, clv_status expected, const char *sentence) {
    assert_status(status, expected, runtime);
    assert_non_null(strstr(clv_runtime_error(runtime), sentence));
}

static void on_each_device(void (*test)(clv_device *device)) {
    clv_device *device;
    for (int i = 0; i < 2; i++)
        if (clv_device_find(runtime, i ? "cpu" : "host", &device) == CLV_OK) test(device);
}

static void resume_on(clv_device *device) {
    halves h = build(device, NULL);
    float values[N];
    h.run = clv__test_run(runtime, h.session, h.plan);
    refused(feed(&h, h.dy, 1), CLV_E_STATE,
            "'dy' is late: it is fed between clv_run_step and clv_run_resume");
    refused(clv_run_resume(h.run, 0), CLV_E_STATE, "step 0 cannot be resumed");
    int64_t ticket = begin(&h, 3);
    assert_float_equal(fetch(&h, ticket, h.y), 6, 0);
    refused(clv_run_fetch(h.run, ticket, h.dw, values, sizeof values), CLV_E_STATE,
            "'dw' is made of late inputs");
    refused(clv_run_resume(h.run, ticket), CLV_E_STATE, "'dy' was not fed");
    for (int step = 0; step < 5; step++) {
        if (step != 3)
            assert_status(feed(&h, h.dy, (float)step), CLV_OK, runtime); // else it keeps its values
        assert_status(clv_run_resume(h.run, ticket), CLV_OK, runtime);
        assert_float_equal(fetch(&h, ticket, h.dw), (float)(6 + 2 * step) * (float)(step == 3 ? 2 : step), 0);
        assert_float_equal(fetch(&h, ticket, h.y), (float)(6 + 2 * step), 0); // it is still there
        refused(clv_run_resume(h.run, ticket), CLV_E_STATE, "it was already");
        ticket = begin(&h, (float)(4 + step));
    }
    destroy(&h, true); // in the middle of a step
}

TEST(test_a_step_in_two_parts) {
    on_each_device(resume_on);
}

static int count(const char *text, const char *word) {
    int n = 0;
    while ((text = strstr(text, word))) n++, text++;
    return n;
}

/** What a null device saw since the last call: nothing is uploaded, launched or read twice. */
static void saw(clv_device *device, int uploads, int launches, int reads) {
    char *trace = clv__null_trace(device->open);
    if (count(trace, ":256\nwait compute for upload") != uploads || count(trace, "launch ") != launches ||
        count(trace, "read download") != reads)
        fail_msg("%d uploads, %d launches, %d reads were expected of\n%s", uploads, launches, reads, trace);
    free(trace);
    clv__null_trace_reset(device->open);
}

TEST(test_nothing_is_done_twice) {
    clv_device *device = clv__test_device(runtime, "null");
    halves h = build(device, NULL);
    h.run = clv__test_run(runtime, h.session, h.plan);
    for (int step = 0; step < 3; step++) {
        clv__null_trace_reset(device->open);
        const int64_t ticket = begin(&h, 1);
        assert_status(clv_run_finish(h.run), CLV_OK, runtime);
        saw(device, 1, 3, 1); // the third is what sum's gradient begins with
        assert_status(feed(&h, h.dy, 1), CLV_OK, runtime);
        assert_status(clv_run_resume(h.run, ticket), CLV_OK, runtime);
        assert_status(clv_run_finish(h.run), CLV_OK, runtime);
        saw(device, 1, 1, 1);
    }
    destroy(&h, true);
}

/** Another step of the run, and another run of the session, drop what was not resumed. */
static void drop_on(clv_device *device) {
    halves h = build(device, NULL), other = build(device, h.session);
    float values[N];
    h.run = clv__test_run(runtime, h.session, h.plan);
    other.run = clv__test_run(runtime, h.session, other.plan);
    const int64_t first = begin(&h, 1), second = begin(&h, 2);
    assert_float_equal(fetch(&h, first, h.y), 2, 0); // it was computed
    refused(clv_run_fetch(h.run, first, h.dw, values, sizeof values), CLV_E_STATE, "was not resumed");
    refused(clv_run_resume(h.run, first), CLV_E_STATE, "a later step took its place");
    assert_status(feed(&h, h.dy, 5), CLV_OK, runtime);
    assert_status(clv_run_resume(h.run, second), CLV_OK, runtime);
    assert_float_equal(fetch(&h, second, h.dw), 20, 0);
    const int64_t third = begin(&h, 3);
    begin(&other, 9);
    refused(clv_run_resume(h.run, third), CLV_E_STATE, "cannot be resumed");
    refused(feed(&h, h.dy, 1), CLV_E_STATE, "is late");
    const int64_t fourth = begin(&h, 4);
    assert_status(feed(&h, h.dy, 1), CLV_OK, runtime);
    assert_status(clv_run_resume(h.run, fourth), CLV_OK, runtime);
    assert_float_equal(fetch(&h, fourth, h.dw), 8, 0);
    destroy(&other, false);
    destroy(&h, true);
}

TEST(test_steps_are_dropped) {
    on_each_device(drop_on);
}

/** A profile counts a step in two parts as one, and one that was dropped not at all. */
TEST(test_profiled) {
    clv_device *device = clv__test_device(runtime, "cpu|host");
    halves h = build(device, NULL);
    clv_profile *profile = clv__test_profile(runtime, &(clv_profile_config){.warm_up = 1});
    clv_session_set_profile(h.session, profile);
    h.run = clv__test_run(runtime, h.session, h.plan);
    for (int step = 0; step < 5; step++) {
        const int64_t ticket = begin(&h, 1);
        if (step == 3) continue;
        assert_status(feed(&h, h.dy, 1), CLV_OK, runtime);
        assert_status(clv_run_resume(h.run, ticket), CLV_OK, runtime);
    }
    assert_status(clv_run_finish(h.run), CLV_OK, runtime);
    clv_run_destroy(h.run);
    h.run = NULL;
    assert_int_equal(clv_profile_run_get(profile, 0).steps, 3); // after the warm-up
    clv_profile_destroy(profile);
    destroy(&h, true);
}

static void share_on(clv_device *device) {
    halves h = build(device, NULL);
    float values[N], *seen, *w = aligned_alloc(64, N * sizeof *w);
    void *at = NULL;
    for (int i = 0; i < N; i++) w[i] = 10;
    const int index = clv_session_find(h.session, "w");
    refused(clv_session_use(h.session, index, w, 4), CLV_E_SHAPE, "has 64 bytes");
    refused(clv_session_use(h.session, 99, w, N * sizeof *w), CLV_E_NOT_FOUND, "no number 99");
    refused(clv_session_use(h.session, index, w + 1, N * sizeof *w), CLV_E_VALUE, "at multiples of 64 bytes");
    assert_status(clv_session_use(h.session, index, w, N * sizeof *w), CLV_OK, runtime);
    h.run = clv__test_run(runtime, h.session, h.plan);
    refused(clv_session_use(h.session, index, w, N * sizeof *w), CLV_E_STATE, "is used by runs");
    refused(clv_run_see(h.run, h.x, &at), CLV_E_VALUE, "is not an output");
    assert_status(clv_run_see(h.run, h.dw, &at), CLV_OK, runtime);
    seen = at;
    int64_t ticket = begin(&h, 1);
    refused(clv_run_see(h.run, h.y, &at), CLV_E_STATE, "first step");
    assert_float_equal(fetch(&h, ticket, h.y), 20, 0);
    for (int step = 1; step < 4; step++) {
        assert_status(feed(&h, h.dy, (float)step), CLV_OK, runtime);
        assert_status(clv_run_resume(h.run, ticket), CLV_OK, runtime);
        assert_status(clv_run_finish(h.run), CLV_OK, runtime);
        const float was = (float)(2 * step * step);
        assert_float_equal(seen[N - 1], was, 0);
        assert_float_equal(fetch(&h, ticket, h.dw), was, 0);
        for (int i = 0; i < N; i++) w[i] = 10 + (float)step;
        const int64_t last = ticket;
        ticket = begin(&h, (float)step + 1);
        assert_float_equal(fetch(&h, ticket, h.y), 2 * (float)(step + 1) * (10 + (float)step), 0);
        assert_float_equal(seen[N - 1], was, 0); // until the rest
        refused(clv_run_fetch(h.run, last, h.dw, values, sizeof values), CLV_E_STATE, "is not kept");
    }
    assert_status(clv_session_read(h.session, index, values, sizeof values), CLV_OK, runtime);
    assert_float_equal(values[5], 13, 0);
    destroy(&h, true);
    assert_float_equal(w[0], 13, 0); // it is the program's
    free(w);
}

TEST(test_memory_in_common) {
    on_each_device(share_on);
}

TEST(test_a_device_with_memory_of_its_own) {
    void *at;
    float *w = aligned_alloc(64, N * sizeof *w);
    clv_device *device = clv__test_device(runtime, "null");
    halves h = build(device, NULL);
    refused(clv_session_use(h.session, clv_session_find(h.session, "w"), w, N * sizeof *w), CLV_E_UNSUPPORTED,
            "memory of its own");
    h.run = clv__test_run(runtime, h.session, h.plan);
    refused(clv_run_see(h.run, h.dw, &at), CLV_E_UNSUPPORTED, "memory of its own");
    assert_null(at);
    destroy(&h, true);
    free(w);
}

/** z, of the second part, is a view of what the first part makes: seen, it would change too early. */
TEST(test_memory_that_the_first_part_uses) {
    void *at;
    clv_device *host = clv__test_device(runtime, "host");
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N)),
               *late = clv_input(graph, "late", CLV_DTYPE_F32, CLV_SHAPE(N));
    clv_input_late(late);
    clv_tensor *e = clv_exp(x), *y = clv_add(e, late), *z = clv_reshape(e, CLV_SHAPE(4, N / 4));
    clv_output(y, "y");
    clv_output(z, "z");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_see(run, y, &at), CLV_OK, runtime);
    refused(clv_run_see(run, z, &at), CLV_E_UNSUPPORTED, "its memory is used for other values, too");
    clv__test_end(run, session, plan, graph);
}

TEST(test_what_cannot_be_late) {
    clv_plan *plan;
    clv_input_late(NULL);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, N));
    clv_scope_push(graph, "a");
    clv_tensor *a =
        clv_relu(clv_matmul(x, clv_parameter(graph, "w", CLV_SHAPE(N, N), (clv_init){CLV_INIT_ONES, 0, 0})));
    clv_scope_pop(graph);
    clv_scope_push(graph, "b");
    clv_tensor *b =
        clv_matmul(a, clv_parameter(graph, "w", CLV_SHAPE(N, N), (clv_init){CLV_INIT_ONES, 0, 0}));
    clv_scope_pop(graph);
    clv_output(b, "y");
    clv_input_late(x);
    refused(clv_plan_create(graph, &(clv_plan_config){.place = "a=null:0,b=null:1"}, &plan),
            CLV_E_UNSUPPORTED, "input 'x' is fed late, which a plan on several devices or ranks cannot do");
    clv_input_late(b);
    refused(clv_graph_status(graph), CLV_E_VALUE, "'y' is not an input, so it cannot be fed late");
    clv_graph_destroy(graph);
}

TEST_MAIN(begin_runtime, end_runtime)
