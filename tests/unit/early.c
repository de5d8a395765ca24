// SPDX-License-Identifier: Apache-2.0
// Updates of large parameters that do not wait for the end of the backward pass: which, where they go, that what reads the
// parameter comes before them, what is saved; and that nothing but memory shows it.
#include <stdlib.h>
#include <string.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "unit/world.h"

// 520 x 520 and 4 bytes each: a little more than a mebibyte
enum { ROWS = 3, WIDE = 520, LAYERS = 3, EARLY = LAYERS + 2, CLASSES = 5, STEPS = 3 };
enum { WEIGHT = WIDE * WIDE * 4 };

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss, *hyper, *gradient, *size;
} model;

/** What differs between the cases. */
typedef struct options {
    bool no_fuse, fetch, measure; // fetch: a gradient; measure: a weight, when all gradients are there
    float clip;
    const char *recompute, *device, *place;
} options;

static clv_tensor *layer(clv_tensor *t, int i) {
    char name[8];
    snprintf(name, sizeof name, "fc%d", i);
    clv_scope_push(clv_tensor_graph(t), name);
    t = clv_nn_batch_norm(clv_nn_linear(t, "linear", WIDE, NULL), "norm", NULL);
    t = clv_relu(t);
    clv_scope_pop(clv_tensor_graph(t));
    return t;
}

static clv_tensor *weight(clv_graph *graph, const char *name) {
    return clv_parameter(graph, name, CLV_SHAPE(WIDE, WIDE),
                         (clv_init){.kind = CLV_INIT_UNIFORM, .a = -0.05f, .b = 0.05f});
}

/** Wide layers, a weight that is used on both sides of them, two that have one gradient, and small parameters. */
static model build(const options *o) {
    model m = {.graph = new_graph()};
    clv_graph_set_training(m.graph, true);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, WIDE));
    m.labels = clv_input(m.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(ROWS));
    clv_tensor *tied = weight(m.graph, "tied"), *t = clv_matmul(m.x, tied);
    for (int i = 0; i < LAYERS; i++) t = layer(t, i);
    t = clv_matmul(t, clv_add(weight(m.graph, "one"), weight(m.graph, "other")));
    t = clv_matmul(t, tied);
    m.loss = clv_cross_entropy(clv_nn_linear(t, "last", CLASSES, NULL), m.labels);
    clv_output(m.loss, "loss");
    clv_backward(m.loss);
    clv_tensor *w = clv_graph_find(m.graph, "fc1.linear.weight");
    m.gradient = clv_gradient(w);
    if (o->fetch) clv_output(m.gradient, "gradient");
    m.size = o->measure ? clv_sum(clv_square(w), NULL, 0, false) : NULL;
    if (m.size) clv_output(m.size, "size");
    clv_optimizer_add(m.graph,
                      &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f, .clip_norm = o->clip});
    m.hyper = clv_optimizer_hyper(m.graph);
    assert_status(clv_graph_status(m.graph), CLV_OK, runtime);
    return m;
}

static clv_plan *planned(const model *m, const options *o) {
    clv_plan_config config = {.no_fuse = o->no_fuse, .recompute = o->recompute, .place = o->place};
    if (!o->place) config.device = find(o->device);
    return clv__test_plan(runtime, m->graph, &config);
}

// ---- the order ----------------------------------------------------------------------------------------------------------

static bool is_update(const clv__plan_node *node) {
    return node->work == CLV__COMPUTE && node->node->io.op->groups.sum > 0; // an optimizer's
}

/** Updates that stand before some node of the backward pass. Each comes after all else that touches what it changes. */
static int early_updates(const clv_plan *plan) {
    int n = 0;
    size_t last_backward = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        if (plan->nodes[at].work == CLV__COMPUTE && plan->nodes[at].node->phase == CLV__BACKWARD)
            last_backward = at;
    }
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *update = &plan->nodes[at];
        if (!is_update(update)) continue;
        n += at < last_backward;
        for (size_t later = at + 1; later < plan->n_nodes; later++) {
            for (int i = 0; i < update->node->io.n_in; i++) {
                if (update->in[i] < 0 || !(update->node->io.op->mutates >> i & 1)) continue;
                for (int k = 0; k < CLV__MAX_IN; k++) {
                    int in = plan->nodes[later].in[k];
                    if (in >= 0)
                        assert_int_not_equal(plan->values[in].root, plan->values[update->in[i]].root);
                }
            }
        }
    }
    return n;
}

static int early_in(const options *o, uint64_t *gradients) {
    model m = build(o);
    clv_plan *plan = planned(&m, o);
    const int n = early_updates(plan);
    *gradients = clv_plans_memory(&plan, 1, NULL).category[CLV_GRADIENTS];
    const size_t bytes = plan->n_nodes * sizeof *plan->nodes;
    clv__plan_node *before = malloc(bytes);
    assert_non_null(before);
    memcpy(before, plan->nodes, bytes);
    assert_status(clv__passes_run(plan, CLV__PASS_roots, CLV__PASS_await), CLV_OK,
                  runtime); // laid out once more, all stay where they are
    assert_memory_equal(before, plan->nodes, bytes);
    free(before);
    assert_status(clv__plan_again(plan), CLV_OK, runtime); // as after a quarantine
    assert_int_equal(early_updates(plan), n);
    assert_int_equal(clv_plans_memory(&plan, 1, NULL).category[CLV_GRADIENTS], *gradients);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    return n;
}

TEST(test_large_parameters_are_updated_early) {
    uint64_t gradients, all;
    // not the tied one, whose gradient is only there at the end, and not the small ones
    assert_int_equal(early_in(&(options){.device = "null:0"}, &gradients), EARLY);
    assert_int_equal(early_in(&(options){.device = "null:0", .no_fuse = true}, &all), 0);
    assert_true(all > (LAYERS + 2) * (uint64_t)WEIGHT); // two share theirs
    assert_true(gradients < 3 * (uint64_t)WEIGHT);      // the tied one's first term, and one of a layer
    assert_int_equal(early_in(&(options){.device = "null:0", .recompute = "fc*"}, &gradients), EARLY);
    assert_true(gradients < 3 * (uint64_t)WEIGHT);
}

static int updates_in(const options *o) {
    model m = build(o);
    clv_plan *plan = planned(&m, o);
    int n = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) n += is_update(&plan->nodes[at]);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    return n;
}

TEST(test_what_keeps_them_last) {
    uint64_t gradients;
    // what waits for the norm of all has no reason to leave its group, of thirteen at most
    const int each = updates_in(&(options){.device = "null:0", .clip = 1, .no_fuse = true});
    assert_int_equal(updates_in(&(options){.device = "null:0", .clip = 1}), (each + 12) / 13);
    assert_int_equal(early_in(&(options){.device = "null:0", .clip = 1}, &gradients), 0); // the norm of all
    assert_true(gradients > (LAYERS + 2) * (uint64_t)WEIGHT);
    assert_int_equal(early_in(&(options){.place = "*=null:0,fc1=null:1"}, &gradients), 0); // two devices
    assert_int_equal(early_in(&(options){.device = "null:0", .fetch = true}, &gradients), EARLY);
    // a weight that is read once more after the backward pass, before it changes
    assert_int_equal(early_in(&(options){.device = "null:0", .measure = true}, &gradients), EARLY - 1);
}

// ---- that nothing else shows it -----------------------------------------------------------------------------------------

/** All that a session keeps after a few steps, for the caller to free; and of the last step what the options ask for. */
static float *train(const options *o, float *gradient, float *size, size_t *n) {
    static float x[ROWS * WIDE];
    float hyper[CLV_HYPER_VALUES], loss;
    int32_t labels[ROWS];
    int64_t ticket = 0;
    model m = build(o);
    clv_plan *plan = planned(&m, o);
    clv_device *device = clv_plan_device_get(plan, 0);
    clv_device_memory_reset_peak(device);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < sizeof x / sizeof *x; i++)
            x[i] = (float)((i * 13 + (size_t)step * 5) % 29) / 14 - 1;
        for (int i = 0; i < ROWS; i++) labels[i] = (i + step) % CLASSES;
        clv_optimizer_hyper_values(m.graph, step + 1, 0.05, hyper);
        assert_status(clv_run_feed(run, m.x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.labels, labels, sizeof labels), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.hyper, hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    }
    if (o->fetch) assert_status(clv_run_fetch(run, ticket, m.gradient, gradient, WEIGHT), CLV_OK, runtime);
    if (m.size) assert_status(clv_run_fetch(run, ticket, m.size, size, sizeof *size), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, m.loss, &loss, sizeof loss), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes);
    *n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) *n += clv_session_get(session, i).bytes;
    char *all = malloc(*n), *to = all;
    assert_non_null(all);
    for (int i = 0; i < clv_session_info_get(session).n_tensors; to += clv_session_get(session, i++).bytes)
        assert_status(clv_session_read(session, i, to, clv_session_get(session, i).bytes), CLV_OK, runtime);
    clv__test_end(run, session, plan, m.graph);
    return (float *)all;
}

TEST(test_training_is_the_same) {
    float *last = malloc(WEIGHT), *early = malloc(WEIGHT);
    assert_true(last && early);
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        const char *name = clv_device_info_get(device)->name;
        const options cases[] = {{.device = name},
                                 {.device = name, .fetch = true},
                                 {.device = name, .recompute = "fc*"},
                                 {.device = name, .recompute = "fc1", .fetch = true},
                                 {.device = name, .measure = true}};
        size_t n, n_now;
        float size, size_now;
        float *expected = train(&(options){.device = name, .no_fuse = true, .fetch = true, .measure = true},
                                last, &size, &n);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            float *now = train(&cases[c], early, &size_now, &n_now);
            assert_int_equal(n, n_now);
            assert_memory_equal(expected, now, n);
            if (cases[c].measure) assert_memory_equal(&size, &size_now, sizeof size);
            if (cases[c].fetch) assert_memory_equal(last, early, WEIGHT);
            free(now);
        }
        free(expected);
    }
    free(last);
    free(early);
}

TEST_MAIN(setup, teardown)
