// SPDX-License-Identifier: Apache-2.0
// Every pass with several devices, replicas, one memory, recomputation, tensors in pieces and micro-batches: runtime/plan/passes.def says
// in which plans a pass still does its work. Each cell is a plan of a small model on null devices, in which the pass is seen at
// work, or not; no two values lie over each other, the plan is the same when it is made again, and a step holds what was predicted. On
// devices that compute, trainings in all these ways come to the same losses.
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/train.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/print.h"
#include "unit/world.h"

enum { BATCH = 8, WIDTH = 24, BLOCKS = 9, LAYERS = 4, WIDE = 512, WIDER = 1024, CLASSES = 5, STEPS = 2 };
enum {
    LARGEST = 7 << 18
}; // bytes of an allocation, where tensors are to lie in pieces: one weight has 2 MiB

// ---- a model with something to do for each pass ---------------------------------------------------------------------

/** More small parameters than a launch takes gradients, and a large one behind them. */
static clv_tensor *build(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    char name[16];
    for (int i = 0; i < BLOCKS; i++) {
        snprintf(name, sizeof name, "block%d", i);
        clv_scope_push(graph, name);
        for (int k = 0; k < LAYERS; k++) {
            snprintf(name, sizeof name, "fc%d", k);
            x = clv_relu(clv_nn_linear(x, name, WIDTH, NULL));
        }
        clv_scope_pop(graph);
    }
    clv_scope_push(graph, "tail");
    x = clv_relu(clv_nn_linear(x, "wide", WIDE, NULL));
    x = clv_relu(clv_nn_linear(x, "wider", WIDER, NULL));
    x = clv_nn_linear(x, "logits", CLASSES, NULL);
    if (!clv_graph_modes_get(graph).training) // made of a parameter alone
        x = clv_add(x, clv_square(clv_parameter(graph, "shift", CLV_SHAPE(CLASSES),
                                                (clv_init){CLV_INIT_ONES, 0, 0})));
    clv_scope_pop(graph);
    return x;
}

static const clv_model model = {.name = "deep", .build = build, .input = {WIDTH}, .classes = CLASSES};

/** What is on in a plan. */
typedef struct ways {
    bool devices, replicas, memory, recompute, pieces, micro_batches; // in the order of the table's columns
    bool clips, no_fuse, evaluates;
} ways;
enum { COLUMNS = 6 };

static void turn_on(ways *w, int column) {
    switch (column) {
    case 0: w->devices = true, w->replicas = false; break;             // layers on two devices
    case 1: w->replicas = true, w->devices = w->memory = false; break; // whose values are copied
    case 2: w->replicas = w->memory = true, w->devices = false; break;
    case 3: w->recompute = true; break;
    case 4: w->pieces = true; break;
    default: w->micro_batches = true; break;
    }
}

static clv_graph *graph_of(const ways *w, const char *const *devices) {
    clv_graph *graph;
    const clv_train_config config = {
        .model = &model,
        .batch = BATCH,
        .optimizer = {.kind = CLV_SGD, .momentum = 0.9f, .clip_norm = w->clips ? 0.5f : 0},
        .micro_batches = w->micro_batches ? 2 : 0,
        .placement = {.replicas = w->replicas ? devices : NULL, .n_replicas = w->replicas ? 2 : 0}};
    assert_status(
        clv_pass_graph(runtime, &config, w->evaluates ? CLV_PASS_PREDICT : CLV_PASS_TRAIN, BATCH, &graph),
        CLV_OK, runtime);
    return graph;
}

/** The plan, while the devices are as it wants them; `largest`: what their allocations may be at most. */
static clv_plan *plan_of(const ways *w, clv_graph *graph, const char *const *devices) {
    char place[128];
    snprintf(place, sizeof place, "*=%s,tail.*=%s", devices[0], devices[1]);
    const clv_plan_config config = {.device = find(devices[0]),
                                    .place = w->devices ? place : NULL,
                                    .recompute = w->recompute ? "block*" : NULL,
                                    .no_fuse = w->no_fuse,
                                    .variants = "sum_squares=groups"}; // which chains are of
    return clv__test_plan(runtime, graph, &config);
}

// ---- what is seen of a pass -----------------------------------------------------------------------------------------

static bool any_node(const clv_plan *plan) {
    return plan->n_nodes > 0;
}

static bool any_slice(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].slices > 1) return true;
    return false;
}

static bool any_epilogue(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].fused && plan->nodes[i].fused->epilogue.n_steps) return true;
    return false;
}

static bool is_update(const clv__plan_node *at) {
    return at->work == CLV__COMPUTE && at->node->phase == CLV__UPDATE && at->node->io.op->groups.sum > 0;
}

static bool any_two_terms(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        const clv__groups *groups = is_update(at) ? &at->node->io.op->groups : NULL;
        if (groups && at->in[groups->first + groups->sum + 1] >= 0) return true;
    }
    return false;
}

static bool any_group(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (is_update(&plan->nodes[i]) && clv__groups_of(&plan->nodes[i].node->io) > 1) return true;
    return false;
}

static bool any_table(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++)
        if (plan->values[i].writer == &clv__pass_chains) return true;
    return false;
}

static bool any_again(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].again) return true;
    return false;
}

static bool any_once(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].once) return true;
    return false;
}

static bool any_early(const clv_plan *plan) {
    bool updated = false;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        updated |= is_update(at);
        if (updated && at->work == CLV__COMPUTE && at->node->phase == CLV__BACKWARD) return true;
    }
    return false;
}

static bool any_shared(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_transfers; i++)
        if (plan->transfers[i].shared) return true;
    return false;
}

static bool any_over_another(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        if (at->work != CLV__COMPUTE || at->node->io.op->view || at->out[0] < 0) continue;
        for (int k = 0; k < CLV__MAX_IN; k++)
            if (at->in[k] >= 0 && plan->values[at->in[k]].root == plan->values[at->out[0]].root) return true;
    }
    return false;
}

static bool any_await(const clv_plan *plan) {
    for (int i = 0; i < plan->n_places; i++)
        if (plan->places[i].awaits) return true;
    return false;
}

/** By pass: the plan in which it has something to do, and how it is seen there. */
static const struct row {
    ways ways;
    bool (*at_work)(const clv_plan *plan);
} rows[CLV__PASSES] = {
    [CLV__PASS_place] = {{0}, any_node},
    [CLV__PASS_split] = {{.pieces = true}, any_slice},
    [CLV__PASS_epilogues] = {{0}, any_epilogue},
    [CLV__PASS_sums] = {{.replicas = true, .memory = true}, any_two_terms},
    [CLV__PASS_groups] = {{0}, any_group},
    [CLV__PASS_select] = {{0}, any_node},
    [CLV__PASS_chains] = {{.clips = true}, any_table},
    [CLV__PASS_recompute] = {{.recompute = true}, any_again},
    [CLV__PASS_once] = {{.evaluates = true}, any_once},
    [CLV__PASS_roots] = {{0}, any_node},
    [CLV__PASS_early] = {{0}, any_early},
    [CLV__PASS_lives] = {{0}, any_node},
    [CLV__PASS_share] = {{.replicas = true, .memory = true}, any_shared},
    [CLV__PASS_in_place] = {{.no_fuse = true}, any_over_another}, // else relu is done by other ops
    [CLV__PASS_layout] = {{0}, any_node},
    [CLV__PASS_await] = {{.devices = true, .memory = true}, any_await},
};

// ---- each cell ------------------------------------------------------------------------------------------------------

/** Values that live at one time do not lie over each other. */
static void nothing_is_overwritten(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *a = &plan->values[i];
        if (a->root != (int)i || !a->bytes) continue;
        if (a->segment != CLV__IN_ACTIVATIONS && a->segment != CLV__IN_GRADIENTS &&
            a->segment != CLV__IN_ONCE)
            continue;
        for (size_t k = 0; k < i; k++) {
            const clv__value *b = &plan->values[k];
            if (b->root != (int)k || b->segment != a->segment || b->place != a->place) continue;
            if (b->first > a->last || a->first > b->last) continue;
            if (a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
                fail_msg("values %zu '%s' and %zu '%s' lie over each other", k, b->tensor->name, i,
                         a->tensor->name);
        }
    }
}

static void is_the_same_anew(clv_plan *plan) {
    clv__text before = {0}, after = {0};
    clv__plan_print(plan, &before);
    assert_status(clv__plan_again(plan), CLV_OK, runtime);
    clv__plan_print(plan, &after);
    assert_string_equal(clv__text_get(&before), clv__text_get(&after));
    clv__text_reset(&before);
    clv__text_reset(&after);
}

/** Feed and do some steps; the losses, if anybody wants them. Devices hold what was predicted. */
static void do_steps(clv_graph *graph, clv_plan *plan, float *losses) {
    float x[BATCH * WIDTH], hyper[CLV_HYPER_VALUES];
    int32_t labels[BATCH];
    int64_t ticket;
    for (int i = 0; i < plan->n_places; i++) clv_device_memory_reset_peak(plan->places[i].device);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * WIDTH; i++) x[i] = (float)((i * 13 + step * 5) % 29) / 14 - 1;
        for (int i = 0; i < BATCH; i++) labels[i] = (i * 3 + step) % CLASSES;
        if (plan->trains) clv_optimizer_hyper_values(graph, step + 1, 0.1, hyper);
        assert_status(clv_run_feed(run, clv_graph_find(graph, "x"), x, sizeof x), CLV_OK, runtime);
        if (plan->trains) {
            assert_status(clv_run_feed(run, clv_graph_find(graph, "labels"), labels, sizeof labels), CLV_OK,
                          runtime);
            assert_status(clv_run_feed(run, clv_optimizer_hyper(graph), hyper, sizeof hyper), CLV_OK,
                          runtime);
        }
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        if (losses)
            assert_status(
                clv_run_fetch(run, ticket, clv_graph_find(graph, "loss"), &losses[step], sizeof *losses),
                CLV_OK, runtime);
    }
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    for (int i = 0; i < plan->n_places; i++) {
        clv_device *device = plan->places[i].device;
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
    }
    clv_run_destroy(run);
    clv_session_destroy(session);
}

/** Two devices of one kind, for the time of a plan. */
typedef struct lent {
    clv_device *device[2];
    clv_device_info info[2];
    bool memory[2];
} lent;

static void lend(lent *l, const char *const *names, int n, const ways *w, bool of_null) {
    for (int i = 0; i < n; i++) {
        clv_device *device = l->device[i] = find(names[i]);
        l->info[i] = device->info;
        l->memory[i] = device->traits.host_memory;
        if (of_null) {
            device->info.type = l->info[0].type;
            device->info.execution = CLV_EXECUTION_THREADS;
            device->info.compute_units = l->info[0].compute_units;
            device->traits.host_memory = w->memory;
        } else if (!w->memory) {
            device->traits.host_memory = false;
        }
        if (w->pieces) device->info.max_alloc_bytes = LARGEST;
    }
}

static void take_back(lent *l, int n) {
    for (int i = 0; i < n; i++) {
        l->device[i]->info = l->info[i];
        l->device[i]->traits.host_memory = l->memory[i];
    }
}

static bool is_at_work(int pass, int column) {
    static const char *const devices[] = {"null:0", "null:1"};
    ways w = rows[pass].ways;
    lent l;
    turn_on(&w, column);
    lend(&l, devices, 2, &w, true);
    clv_graph *graph = graph_of(&w, devices);
    clv_plan *plan = plan_of(&w, graph, devices);
    const bool at_work = rows[pass].at_work(plan);
    nothing_is_overwritten(plan);
    is_the_same_anew(plan);
    if (!w.memory) do_steps(graph, plan, NULL); // null devices only pretend to compute in the host's memory
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    take_back(&l, 2);
    return at_work;
}

TEST(test_every_cell) {
    enum cell { NONE, OFF, ON };
    static const struct {
        const char *name;
        enum cell cells[COLUMNS];
    } table[] = {
#define CLV__PASS(name, ...) [CLV__PASS_##name] = {#name, {__VA_ARGS__}},
#include "plan/passes.def"
#undef CLV__PASS
    };
    int wrong = 0;
    for (int pass = 0; pass < CLV__PASSES; pass++) {
        for (int column = 0; column < COLUMNS; column++) {
            const bool at_work = is_at_work(pass, column);
            if (at_work == (table[pass].cells[column] == ON)) continue;
            print_error("%s, column %d: the pass %s, and the table says otherwise\n", table[pass].name,
                        column + 1, at_work ? "does its work" : "does nothing");
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

// ---- and trainings --------------------------------------------------------------------------------------------------

static void losses_of(const ways *w, const char *const *devices, int n, float losses[STEPS]) {
    lent l;
    lend(&l, devices, n, w, false);
    clv_graph *graph = graph_of(w, devices);
    clv_plan *plan = plan_of(w, graph, devices);
    do_steps(graph, plan, losses);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    take_back(&l, n);
}

/** With layers on two devices, or results computed again, losses are the same to the bit; where sums are in another order, nearly so. */
TEST(test_losses_are_the_same) {
    static const bool exact[COLUMNS] = {true, false, false, true, false, false};
    const char *devices[2];
    int n = 0, at = -1;
    for (clv_device *device; n < 2 && (device = clv__test_next_device(runtime, &at));)
        if (!strcmp(clv_device_info_get(device)->backend, "opencl") &&
            (!n || device->info.type == find(devices[0])->info.type))
            devices[n++] = device->name;
    for (int clips = 0; n && clips < 2; clips++) {
        float plain[STEPS], losses[STEPS];
        losses_of(&(ways){.clips = clips, .no_fuse = true}, (const char *[]){devices[0], devices[0]}, 1,
                  plain);
        for (int column = 0; column < COLUMNS; column++) {
            ways w = {.clips = clips};
            turn_on(&w, column);
            const int wanted = w.devices || w.replicas ? 2 : 1;
            if (n < wanted ||
                (w.memory && !(find(devices[0])->traits.host_memory && find(devices[1])->traits.host_memory)))
                continue;
            losses_of(&w, (const char *[]){devices[0], devices[n - 1]}, wanted, losses);
            for (int step = 0; step < STEPS; step++) {
                const double far = fabs((double)losses[step] - (double)plain[step]);
                if (exact[column] ? far != 0 : !(far <= 1e-5))
                    fail_msg("column %d, step %d: a loss of %.9g instead of %.9g", column + 1, step,
                             (double)losses[step], (double)plain[step]);
            }
        }
    }
}

TEST_MAIN(setup, teardown)
