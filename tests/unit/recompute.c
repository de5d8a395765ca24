// SPDX-License-Identifier: Apache-2.0
// Results that are dropped and computed again: the same gradients bit for bit, in less memory, whatever is dropped; and what a
// budget makes of it.
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/remake.h"

TEST_RUNTIME
static clv_device *device;

FIXTURE(setup) {
    int i = -1;
    runtime = clv__test_runtime(&(clv_runtime_config){.null_devices = true});
    device = clv__test_next_device(runtime, &i);
    assert_non_null(device);
}

enum { ROWS = 16, BLOCKS = 4, STEPS = 3 };

static const clv_optimizer_config sgd = {.kind = CLV_SGD, .momentum = 0.9f};

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss, *hyper;
} model;

/** Convolution, batch norm, relu, dropout, and a view: in place, with statistics, with random numbers, twice read. */
static clv_tensor *block(clv_tensor *x, int i) {
    char name[16];
    clv_graph *graph = clv_tensor_graph(x);
    snprintf(name, sizeof name, "block%d", i);
    clv_scope_push(graph, name);
    clv_tensor *y = clv_nn_conv2d(x, "conv", 8, &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1}});
    y = clv_nn_dropout(clv_relu(clv_nn_batch_norm(y, "norm", NULL)), 0.3f);
    clv_shape shape = clv_tensor_shape(y);
    y = clv_reshape(clv_reshape(y, CLV_SHAPE(ROWS, clv_tensor_numel(y) / ROWS)), shape);
    if (i > 0) y = clv_relu(clv_add(y, x));
    clv_scope_pop(graph);
    return y;
}

static model build(void) {
    model m = {0};
    m.graph = clv__test_graph(runtime);
    clv_graph_set_training(m.graph, true);
    clv_tensor *t = m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, 3, 12, 12));
    m.labels = clv_input(m.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(ROWS));
    for (int i = 0; i < BLOCKS; i++) t = block(t, i);
    t = clv_nn_linear(clv_reshape(t, CLV_SHAPE(ROWS, 8 * 12 * 12)), "fc", 5, NULL);
    m.loss = clv_cross_entropy(t, m.labels);
    clv_output(m.loss, "loss");
    clv_backward(m.loss);
    clv_optimizer_add(m.graph, &sgd);
    m.hyper = clv_optimizer_hyper(m.graph);
    assert_status(clv_graph_status(m.graph), CLV_OK, runtime);
    return m;
}

static clv_plan *planned(const model *m, const clv_plan_config *config) {
    return clv__test_plan(runtime, m->graph, config);
}

/** Any fates whatever. */
static void disturb(clv_plan *plan, uint64_t seed) {
    size_t n_nodes = plan->n_nodes;
    clv__remake remake;
    clv__random random;
    clv__random_init(&random, seed, CLV__STREAM_TEST, 0);
    assert_status(clv__remake_init(&remake, plan), CLV_OK, runtime);
    for (size_t i = 0; i < remake.n_base; i++) remake.fate[i] = (clv__fate)clv__random_below(&random, 3);
    assert_status(clv__remake_apply(&remake), CLV_OK, runtime);
    assert_false(remake.too_many);
    assert_status(clv__remake_finish(&remake), CLV_OK, runtime);
    assert_status(clv__passes_run(plan, CLV__PASS_roots, CLV__PASS_await), CLV_OK, runtime);
    assert_true(plan->n_nodes > n_nodes);
}

/** Everything that a training leaves in the session, after a few steps; the caller frees it. Memory is as predicted.
 *  fates: seed of random ones; 0: as the plan has them. */
static float *train(const clv_plan_config *config, uint64_t fates, size_t *n_floats) {
    model m = build();
    clv_plan *plan = planned(&m, config);
    if (fates) disturb(plan, fates);
    static float x[ROWS * 3 * 12 * 12], hyper[CLV_HYPER_VALUES];
    int32_t labels[ROWS];
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        clv_device_memory_reset_peak(clv_plan_device_get(plan, i));
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < sizeof x / sizeof *x; i++)
            x[i] = (float)((i * 13 + (size_t)step * 5) % 29) / 14 - 1;
        for (int i = 0; i < ROWS; i++) labels[i] = (i + step) % 5;
        clv_optimizer_hyper_values(m.graph, step + 1, 0.05, hyper);
        assert_status(clv_run_feed(run, m.x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.labels, labels, sizeof labels), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.hyper, hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, NULL), CLV_OK, runtime);
    }
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        clv_device *at = clv_plan_device_get(plan, i);
        assert_int_equal(clv_device_memory(at).all.peak, clv_plans_memory(&plan, 1, at).predicted_peak_bytes);
    }
    size_t n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++)
        n += clv_session_get(session, i).bytes / 4;
    float *all = calloc(n, sizeof *all);
    *n_floats = n;
    n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        size_t bytes = clv_session_get(session, i).bytes;
        assert_status(clv_session_read(session, i, all + n, bytes), CLV_OK, runtime);
        n += bytes / 4;
    }
    clv__test_end(run, session, plan, m.graph);
    return all;
}

static void assert_same_training(const clv_plan_config *one, const clv_plan_config *other) {
    size_t n, n_other;
    float *a = train(one, 0, &n), *b = train(other, 0, &n_other);
    assert_int_equal(n, n_other);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
}

static uint64_t peak_of(const clv_plan_config *config, clv_plan_recomputed *recomputed) {
    model m = build();
    clv_plan *plan = planned(&m, config);
    uint64_t peak = clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes;
    if (recomputed) *recomputed = clv_plan_info_get(plan).recomputed;
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    return peak;
}

TEST(test_modules_by_name) {
    static const char *const patterns[] = {"block?.*", "block1", "block0.*,block2.*", "block1.norm,block?",
                                           "*"};
    clv_plan_config plain = {.device = device};
    clv_plan_recomputed none;
    uint64_t before = peak_of(&plain, &none);
    assert_int_equal(none.nodes, 0);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        clv_plan_config config = {.device = device, .recompute = patterns[i]};
        clv_plan_recomputed recomputed;
        assert_true(peak_of(&config, &recomputed) < before);
        assert_true(recomputed.nodes > 0);
        assert_true(recomputed.extra_time > 0 && recomputed.extra_time < 1);
        assert_true(recomputed.saved_bytes > 0);
        if (i % 2 == 0) assert_same_training(&plain, &config);
    }
}

/** What is inside a module is computed once more, what leaves it is not; as in torch.utils.checkpoint. */
TEST(test_what_leaves_a_module_stays) {
    model m = build();
    clv_plan *plan = planned(&m, &(clv_plan_config){.device = device, .recompute = "block1.*"});
    int convolutions = 0, last = -1, first_backward = -1;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (strcmp(node.phase, "backward") == 0 && strncmp(node.layer, "block1", 6) == 0 &&
            first_backward < 0)
            first_backward = i;
        if (strcmp(node.phase, "recompute") != 0) continue;
        assert_int_equal(strncmp(node.layer, "block1", 6), 0);
        assert_string_not_equal(node.op, "add"); // the last relu reads its own result, which leaves
        convolutions += strcmp(node.op, "conv2d") == 0;
        last = i;
    }
    assert_int_equal(convolutions, 1);
    assert_true(last > first_backward);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
}

/** Whatever is kept, computed again once, or for each reader: the same bits. */
TEST(test_any_fates_give_the_same_bits) {
    size_t n, n_other;
    float *want = train(&(clv_plan_config){.device = device}, 0, &n);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        float *got = train(&(clv_plan_config){.device = device}, seed, &n_other);
        assert_int_equal(n, n_other);
        assert_memory_equal(want, got, n * sizeof *got);
        free(got);
    }
    free(want);
}

TEST(test_it_can_be_taken_out_again) {
    model m = build();
    clv_plan *plan = planned(&m, &(clv_plan_config){.device = device});
    size_t n_nodes = plan->n_nodes, n_values = plan->n_values;
    uint64_t peak = clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes;
    disturb(plan, 5);
    assert_true(clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes != peak);
    assert_status(clv__plan_again(plan), CLV_OK, runtime);
    assert_int_equal(plan->n_nodes, n_nodes);
    assert_int_equal(plan->n_values, n_values);
    assert_int_equal(clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes, peak);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
}

/** Under smaller and smaller budgets: the same bits, never above the budget, and nothing is dropped without need. */
TEST(test_budgets) {
    clv_plan_config plain = {.device = device}, automatic = {.device = device, .recompute = "auto"};
    clv_plan_recomputed recomputed;
    size_t n;
    float *want = train(&plain, 0, &n);
    uint64_t whole = peak_of(&automatic, &recomputed);
    assert_int_equal(recomputed.nodes, 0);
    assert_true(whole <= peak_of(&plain, NULL)); // less, if workspaces fit in better
    clv_device_set_budget(device, 1);
    uint64_t least = peak_of(&automatic, NULL); // what needs least, though it does not fit
    clv_device_set_budget(device, 0);
    assert_true(least < whole - (whole / 5));
    double time_before = 0;
    for (int i = 1; i <= 3; i++) {
        uint64_t budget = whole - (whole - least) * (uint64_t)i / 4;
        clv_device_set_budget(device, budget);
        assert_true(peak_of(&automatic, &recomputed) <= budget);
        assert_true(recomputed.nodes > 0 && recomputed.extra_time >= time_before / 2);
        time_before = recomputed.extra_time;
        size_t n_other;
        float *got = i == 2 ? train(&automatic, 0, &n_other) : NULL; // the budget holds there too
        if (got) assert_memory_equal(want, got, n * sizeof *got);
        free(got);
    }
    free(want);
    clv_device_set_budget(device, 0);
}

/** A smaller batch's plan beside a larger one's needs no more than the larger one has. */
TEST(test_plans_of_one_session) {
    model m = build(), other = build();
    clv_plan *plans[2];
    clv_plan_config automatic = {.device = device, .recompute = "auto"};
    uint64_t whole = peak_of(&(clv_plan_config){.device = device}, NULL), budget = whole - whole / 6;
    clv_device_set_budget(device, budget);
    plans[0] = planned(&m, &automatic);
    automatic.same_session = plans[0];
    plans[1] = planned(&other, &automatic);
    assert_status(clv_plans_fit(plans, 2), CLV_OK, runtime);
    clv_device_set_budget(device, 0);
    clv_plan_destroy(plans[1]);
    clv_plan_destroy(plans[0]);
    clv_graph_destroy(other.graph);
    clv_graph_destroy(m.graph);
}

TEST(test_on_two_devices) {
    char place[128];
    const char *name = clv_device_info_get(device)->name;
    if (strcmp(name, "host") == 0) skip(); // nothing but the host here
    snprintf(place, sizeof place, "*=%s,block2.*=host", name);
    clv_plan_config plain = {.place = place}, some = {.place = place, .recompute = "block?.*"};
    assert_same_training(&plain, &some);
    model m = build();
    clv_plan *plan = planned(&m, &plain);
    uint64_t whole = clv_plans_memory(&plan, 1, device).predicted_peak_bytes;
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    clv_device_set_budget(device, whole - whole / 8);
    clv_plan_config automatic = {.place = place, .recompute = "auto"};
    assert_same_training(&some, &automatic);
    clv_device_set_budget(device, 0);
}

static void refuse(const char *recompute, clv_status status, const char *sentence) {
    model m = build();
    clv_plan *plan;
    assert_status(
        clv_plan_create(m.graph, &(clv_plan_config){.device = device, .recompute = recompute}, &plan), status,
        runtime);
    assert_null(plan);
    assert_string_equal(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(m.graph);
}

TEST(test_bad_patterns_are_refused) {
    refuse("block0.*,nothing", CLV_E_NOT_FOUND, "recompute: no layer matches 'nothing'");
    refuse("block0.*,auto", CLV_E_VALUE,
           "recompute: auto cannot be combined with names of layers, as in 'block0.*,auto'");
    refuse(",,", CLV_E_VALUE, "recompute: ',,' names no layer");
}

TEST_MAIN(setup, end_runtime)
