// SPDX-License-Identifier: Apache-2.0
// What tests of shared values have in common (shared.c, replicas.c): a small model over two devices, by layers or replicated; null devices
// that are told to share the host's memory; and a training on devices that really do, with copies and without.
#ifndef CLV_TESTS_UNIT_LOANS_H
#define CLV_TESTS_UNIT_LOANS_H

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "harness/parallel.h"
#include "plan/plan.h"
#include "unit/world.h"

/** Let null devices pretend to compute in the host's memory, or not. */
static inline void null_devices_share(bool share) {
    find("null:0")->traits.host_memory = find("null:1")->traits.host_memory = share;
}

static inline clv_plan *plan_of(clv_graph *graph, const char *first, const char *place) {
    clv_plan *plan =
        clv__test_plan(runtime, graph, &(clv_plan_config){.device = find(first), .place = place});
    return plan;
}

enum { BATCH = 12, WIDTH = 96 };

static bool own_losses; // of replicas, instead of one of what they all made

static inline clv_tensor *layer(clv_tensor *x, const char *name) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, name);
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(WIDTH, WIDTH), (clv_init){CLV_INIT_UNIFORM, -0.2, 0.2});
    x = clv_matmul(x, weight);
    clv_scope_pop(graph);
    return x;
}

static inline clv_tensor *two_layers(clv_tensor *x, void *user) {
    return layer(clv_relu(layer(x, "a")), "b");
}

static inline clv_tensor *mean_square(clv_tensor *const *tensors, void *user) {
    clv_tensor *x = tensors[0], *labels = tensors[1];
    (void)labels;
    return clv_mean(clv_square(two_layers(x, user)), NULL, 0, false);
}

/** A training step: x goes through `a` and `b`; split over two devices by layers (then placed by the plan) or replicated. */
typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *loss, *hyper;
} model;

static inline model build(const char *const *replicas) {
    model m = {.graph = new_graph()};
    clv_graph_set_training(m.graph, true);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, WIDTH));
    const double shares[] = {0.75, 0.25};
    if (own_losses) {
        m.loss =
            clv_data_parallel_loss((clv_tensor *[]){m.x, m.x}, 2, replicas, shares, 2, mean_square, NULL);
    } else {
        clv_tensor *y =
            replicas ? parallel_of(m.x, replicas, shares, 2, two_layers, NULL) : two_layers(m.x, NULL);
        m.loss = clv_mean(clv_square(y), NULL, 0, false);
    }
    clv_output(m.loss, "loss");
    clv_backward(m.loss);
    clv_optimizer_add(m.graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.5f});
    m.hyper = clv_optimizer_hyper(m.graph);
    return m;
}

static inline int count_shared(const clv_plan *plan) {
    int n = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_transfers; i++) n += clv_plan_transfer_get(plan, i).shared;
    return n;
}

static inline const clv__transfer *transfer_of(const clv_plan *plan, const char *tensor, int to) {
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *t = &plan->transfers[i];
        if (strcmp(plan->values[t->from].tensor->name, tensor) == 0 && plan->values[t->to].place == to)
            return t;
    }
    fail_msg("'%s' does not go to place %d", tensor, to);
    return NULL;
}

/** The one node of a place that waits until the other has finished the last step. */
static inline const clv__plan_node *waiting_node(const clv_plan *plan, int place) {
    const clv__plan_node *found = NULL;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->place != place || !node->awaits) continue;
        assert_null(found);
        assert_int_equal(node->awaits, 1 << !place);
        found = node;
    }
    return found;
}

enum { STEPS = 12 };

/** What a training leaves: the loss of each step, then both weights. */
typedef struct outcome {
    float losses[STEPS], weights[2][WIDTH * WIDTH];
} outcome;

static inline void train(const char *const *replicas, const char *first, const char *place, int shared,
                         outcome *out) {
    model m = build(replicas);
    clv_plan *plan = plan_of(m.graph, first, place);
    int64_t ticket;
    static float x[BATCH * WIDTH];
    const size_t bytes[] = {(size_t)(BATCH * WIDTH) * sizeof *x, (size_t)(WIDTH * WIDTH) * sizeof *x};
    assert_int_equal(count_shared(plan), shared < 0 ? clv_plan_info_get(plan).n_transfers : shared);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        clv_device_memory_reset_peak(clv_plan_device_get(plan, i));
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)((i * 13 + step * 5) % 23) / 23 - 0.5f;
        const float hyper[CLV_HYPER_VALUES] = {0.05f, step == 0};
        assert_status(clv_run_feed(run, m.x, x, bytes[0]), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.hyper, hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        if (step > 0) // one step late, so that two are always under way
            assert_status(clv_run_fetch(run, ticket - 1, m.loss, &out->losses[step - 1], 4), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, m.loss, &out->losses[STEPS - 1], 4), CLV_OK, runtime);
    for (int i = 0; i < 2; i++) {
        int index = clv_session_find(session, i ? "b.weight" : "a.weight");
        assert_status(clv_session_read(session, index, out->weights[i], bytes[1]), CLV_OK, runtime);
    }
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++) {
        clv_device *device = clv_plan_device_get(plan, i);
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
    }
    clv__test_end(run, session, plan, m.graph);
}

static inline void compare(const char *a, const char *b, bool replicated) {
    static outcome copied, shared;
    char place[128];
    snprintf(place, sizeof place, "a=%s,b=%s", a, b);
    const char *replicas[] = {a, b};
    const char *const *on = replicated ? replicas : NULL;
    find(b)->traits.host_memory = false; // copies as ever
    train(on, a, replicated ? NULL : place, 0, &copied);
    find(b)->traits.host_memory = true;
    train(on, a, replicated ? NULL : place, -1, &shared);
    print_message("%s and %s, %s: loss %g to %g\n", a, b, replicated ? "replicas" : "layers",
                  copied.losses[0], copied.losses[STEPS - 1]);
    assert_true(copied.losses[STEPS - 1] < 0.97f * copied.losses[0]);
    assert_memory_equal(&shared, &copied, sizeof copied);
}

/** Devices that compute in the host's memory; the host itself, which is slow, only where there are not two others. */
static inline int sharers(clv_device **out, int room) {
    int n = 0, i = -1;
    for (clv_device *device; n < room && (device = clv__test_next_device(runtime, &i));) {
        bool is_host = device->info.type == CLV_DEVICE_HOST;
        if (device->traits.host_memory && !(is_host && n >= 2)) out[n++] = device;
    }
    return n;
}

#endif
