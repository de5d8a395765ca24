// SPDX-License-Identifier: Apache-2.0
// Moving what a session keeps: values and names stay, bytes change their device in the account, plans for the new device go on
// from there. Between the host and the best other device, or a null device for what needs no values.
#include "cleave/nn.h"
#include "cleave/optim.h"
#include "exec/session.h"
#include "harness/harness.h"

TEST_RUNTIME
static clv_device *host, *other, *null_device;

FIXTURE(setup) {
    int i = -1;
    runtime = clv__test_runtime(&(clv_runtime_config){.null_devices = true});
    host = clv__test_device(runtime, "host");
    null_device = clv__test_device(runtime, "null:0");
    other = clv__test_next_device(runtime, &i);
}

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *y, *loss;
    clv_plan *plan;
} model;

enum { PARAMETERS = (4 * 3 + 4 + 2 * 4 + 2) * 4 };

/** fc1, relu, fc2; trained by momentum, or only computed. */
static model build(clv_device *device, bool train) {
    model m = {0};
    m.graph = clv__test_graph(runtime);
    clv_graph_set_training(m.graph, train);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(5, 3));
    m.y = clv_nn_linear(clv_relu(clv_nn_linear(m.x, "fc1", 4, NULL)), "fc2", 2, NULL);
    if (train) {
        m.loss = clv_mean(clv_square(m.y), NULL, 0, false);
        clv_output(m.loss, "loss");
        clv_backward(m.loss);
        clv_optimizer_add(m.graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f});
    } else {
        clv_output(m.y, "y");
    }
    m.plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.device = device});
    return m;
}

static void destroy(model *m) {
    clv_plan_destroy(m->plan);
    clv_graph_destroy(m->graph);
}

static void step(clv_session *session, const model *m, const clv_tensor *wanted, float *out, size_t bytes) {
    int64_t ticket;
    float x[15], hyper[CLV_HYPER_VALUES];
    for (int i = 0; i < 15; i++) x[i] = (float)(i % 7) - 3;
    clv_optimizer_hyper_values(m->graph, 1, 0.1, hyper);
    clv_run *run = clv__test_run(runtime, session, m->plan);
    assert_status(clv_run_feed(run, m->x, x, sizeof x), CLV_OK, runtime);
    const clv_tensor *rate = clv_optimizer_hyper(m->graph);
    if (rate) assert_status(clv_run_feed(run, rate, hyper, sizeof hyper), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, wanted, out, bytes), CLV_OK, runtime);
    clv_run_destroy(run);
}

static uint64_t held(const clv_device *device) {
    return clv_device_memory(device).all.current;
}

/** A session that has been trained a step on the device. */
static clv_session *trained(clv_device *device) {
    float loss;
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 5});
    model m = build(device, true);
    step(session, &m, m.loss, &loss, sizeof loss);
    destroy(&m);
    return session;
}

static void read_all(clv_session *session, float values[PARAMETERS / 2]) {
    size_t at = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        size_t bytes = clv_session_get(session, i).bytes;
        assert_status(clv_session_read(session, i, values + at, bytes), CLV_OK, runtime);
        at += bytes / 4;
    }
    assert_int_equal(at, PARAMETERS / 2); // and as much momentum
}

TEST(test_there_and_back) {
    if (other == host) skip(); // nothing but the host here
    clv_session *session = trained(host);
    float before[PARAMETERS / 2], there[PARAMETERS / 2], back[PARAMETERS / 2], here[10], away[10];
    read_all(session, before);
    model at_home = build(host, false), abroad = build(other, false);
    step(session, &at_home, at_home.y, here, sizeof here);

    assert_int_equal(held(other), 0);
    assert_status(clv_session_move(session, NULL, other), CLV_OK, runtime);
    assert_int_equal(held(host), 0); // arenas too: nothing is kept there
    clv_memory_info memory = clv_device_memory(other);
    assert_int_equal(memory.all.current, 2 * PARAMETERS);
    assert_int_equal(memory.category[CLV_PARAMETERS].current, PARAMETERS);
    assert_int_equal(memory.category[CLV_OPTIMIZER].current, PARAMETERS);
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++)
        assert_ptr_equal(clv_session_get(session, i).device, other);
    read_all(session, there);
    assert_memory_equal(there, before, sizeof before);

    step(session, &abroad, abroad.y, away, sizeof away); // finds its parameters there, takes only arenas
    for (int i = 0; i < 10; i++) assert_float_equal(away[i], here[i], 1e-5f);
    assert_int_equal(clv_device_memory(other).category[CLV_PARAMETERS].current, PARAMETERS);

    assert_status(clv_session_move(session, "*", host), CLV_OK, runtime);
    assert_int_equal(held(other), 0);
    read_all(session, back);
    assert_memory_equal(back, before, sizeof before);
    float again[10];
    step(session, &at_home, at_home.y, again, sizeof again);
    assert_memory_equal(again, here, sizeof here);
    clv_session_destroy(session);
    destroy(&at_home);
    destroy(&abroad);
    assert_int_equal(held(host), 0);
}

static clv_device *device_of(const clv_session *session, const char *name) {
    return clv_session_get(session, clv_session_find(session, name)).device;
}

TEST(test_a_layer_moves_alone) {
    clv_session *session = trained(host);
    assert_status(clv_session_move(session, "fc2", null_device), CLV_OK, runtime);
    assert_ptr_equal(device_of(session, "fc2.weight"), null_device);
    assert_ptr_equal(device_of(session, "fc2.bias"), null_device);
    assert_ptr_equal(device_of(session, "fc2.weight.momentum_buffer"), null_device);
    assert_ptr_equal(device_of(session, "fc1.weight"), host);
    assert_int_equal(clv_device_memory(null_device).all.current, 2 * (2 * 4 + 2) * 4);
    assert_true(clv_device_memory(host).category[CLV_ACTIVATIONS].current >
                0); // something is kept there: it stays
    assert_status(clv_session_move(session, "fc1.weight", null_device), CLV_OK, runtime);
    assert_ptr_equal(device_of(session, "fc1.weight"), null_device);
    assert_ptr_equal(device_of(session, "fc1.bias"), host);
    assert_status(clv_session_move(session, "fc1.weight", null_device), CLV_OK, runtime); // it is there
    clv_session_destroy(session);
    assert_int_equal(held(null_device), 0);
}

TEST(test_values_replace_what_is_there) {
    if (other == host) skip();
    clv_session *session = trained(host);
    model m = build(other, false);
    assert_status(clv_session_reserve(session, &m.plan, 1), CLV_OK,
                  runtime); // first values, under the same names
    int n = clv_session_info_get(session).n_tensors;
    uint64_t before = clv_device_memory(other).category[CLV_PARAMETERS].current;
    float moved[12], there[12];
    assert_status(clv_session_read(session, clv_session_find(session, "fc1.weight"), moved, sizeof moved),
                  CLV_OK, runtime);
    assert_status(clv_session_move(session, "fc1", other), CLV_OK, runtime);
    assert_int_equal(clv_session_info_get(session).n_tensors,
                     n - 2); // weight and bias once; their momentum was not there
    assert_int_equal(clv_device_memory(other).category[CLV_PARAMETERS].current, before);
    assert_ptr_equal(device_of(session, "fc1.weight"), other);
    assert_status(clv_session_read(session, clv_session_find(session, "fc1.weight"), there, sizeof there),
                  CLV_OK, runtime);
    assert_memory_equal(moved, there, sizeof there);
    // fc2.weight has two values now, and a third device could get either
    assert_status(clv_session_move(session, "fc2.*", null_device), CLV_E_STATE, runtime);
    char wanted[160];
    snprintf(wanted, sizeof wanted,
             "'fc2.weight' is kept on host and on %s: which values are to move to null:0?",
             clv_device_info_get(other)->name);
    assert_string_equal(clv_runtime_error(runtime), wanted);
    clv_session_destroy(session);
    destroy(&m);
}

TEST(test_refusals_move_nothing) {
    clv_session *session = trained(host);
    uint64_t before = held(host);
    assert_status(clv_session_move(session, "fc3", null_device), CLV_E_NOT_FOUND, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "nothing that the session keeps matches 'fc3'; did you mean 'fc1'?");
    clv_device_set_budget(null_device, 2 * PARAMETERS - 1);
    assert_status(clv_session_move(session, NULL, null_device), CLV_E_BUDGET, runtime);
    assert_holds(clv_runtime_error(runtime), "what is moved wants 208 B (208 bytes) on null:0");
    assert_int_equal(held(null_device), 0);
    assert_int_equal(held(host), before);
    clv_device_set_budget(null_device, 2 * PARAMETERS);
    assert_status(clv_session_move(session, NULL, null_device), CLV_OK, runtime);
    clv_device_set_budget(null_device, 0);
    assert_status(clv_session_move(session, NULL, host), CLV_OK, runtime);

    model m = build(host, true);
    clv_run *run = clv__test_run(runtime, session, m.plan);
    assert_status(clv_session_move(session, NULL, null_device), CLV_E_STATE, runtime);
    assert_string_equal(
        clv_runtime_error(runtime),
        "1 run of the session computes where its tensors are now: destroy it before moving them");
    clv_run_destroy(run);
    clv_session_destroy(session);
    destroy(&m);
}

TEST(test_inference_holds_no_gradients) {
    model training = build(host, true), inference = build(host, false);
    clv_plan_memory with = clv_plans_memory(&training.plan, 1, NULL),
                    without = clv_plans_memory(&inference.plan, 1, NULL);
    assert_true(with.category[CLV_GRADIENTS] > 0 && with.category[CLV_OPTIMIZER] == PARAMETERS);
    assert_int_equal(without.category[CLV_GRADIENTS], 0);
    assert_int_equal(without.category[CLV_OPTIMIZER], 0);
    assert_int_equal(without.category[CLV_PARAMETERS], PARAMETERS);
    destroy(&training);
    destroy(&inference);
}

TEST_MAIN(setup, end_runtime)
