// SPDX-License-Identifier: Apache-2.0
// The sums of clipping and loss scaling over more gradients than a launch takes: that they are few launches, which ones are, and that a
// training comes to the same bits with a launch for each gradient, in the memory that the plan says.
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "unit/world.h"

enum { ROWS = 4, WIDTH = 24, LAYERS = 40, WIDE = 700, STEPS = 3 };

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *loss, *hyper;
} model;

/** More than two groups of parameters; one of several parts (common: 8,192 elements), one of no whole vector, an empty one. */
static model build(float clip_norm, bool scales) {
    model m = {.graph = new_graph()};
    clv_graph_set_training(m.graph, true);
    if (scales) clv_graph_set_precision(m.graph, CLV_PRECISION_MIXED);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, WIDTH));
    clv_tensor *t = m.x;
    for (int i = 0; i < LAYERS; i++) {
        char name[8];
        snprintf(name, sizeof name, "fc%d", i);
        t = clv_nn_linear(t, name, i == 3 ? WIDE : i == 7 ? 23 : WIDTH, NULL);
    }
    clv_tensor *none =
        clv_sum(clv_parameter(m.graph, "none", CLV_SHAPE(0, 3), (clv_init){0}), NULL, 0, false);
    m.loss = clv_add(clv_mean(clv_square(t), NULL, 0, false), none);
    clv_output(m.loss, "loss");
    if (scales) clv_scaler_add(m.graph, NULL);
    clv_backward(m.loss);
    clv_optimizer_add(m.graph, &(clv_optimizer_config){.kind = CLV_ADAM, .clip_norm = clip_norm});
    m.hyper = clv_optimizer_hyper(m.graph);
    assert_status(clv_graph_status(m.graph), CLV_OK, runtime);
    return m;
}

static clv_plan *planned(clv_graph *graph, clv_plan_config config) {
    if (!config.device && !config.place) config.device = find("null:0");
    return clv__test_plan(runtime, graph, &config);
}

/** The launches of all nodes of an op. */
static int launches_of(const clv_plan *plan, const char *op) {
    int n = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (!strcmp(node.op, op)) n += node.launches;
    }
    return n;
}

TEST(test_launches_are_few) {
    model m = build(1, true);
    enum { GRADIENTS = 2 * LAYERS + 1 };
    const struct {
        const char *what;
        clv_plan_config config;
        int launches;
    } cases[] = {
        {"as it is", {0}, 2},
        {"a use for each",
         {.no_fuse = true},
         2 * GRADIENTS - 1}, // nothing is done for an empty one but its end
        {"an item for each part", {.variants = "sum_squares=plain,count_nonfinite=plain"}, -1},
        {"with results that are computed again", {.recompute = "fc1"}, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_plan *plan = planned(m.graph, cases[i].config);
        for (int again = 0; again < 2; again++) {
            const int squares = launches_of(plan, "sum_squares"),
                      count = launches_of(plan, "count_nonfinite");
            if (cases[i].launches >= 0) {
                if (squares != cases[i].launches)
                    fail_msg("%s: %d launches, not %d", cases[i].what, squares, cases[i].launches);
            } else {
                assert_true(squares > 2);
            }
            assert_int_equal(count, squares);
            assert_status(clv__plan_again(plan), CLV_OK, runtime); // as after a quarantine
        }
        clv_plan_destroy(plan);
    }
    clv_graph_destroy(m.graph);
}

/** The node that reads a table, which the pass writes. */
static clv__plan_node *reader_of_table(clv_plan *plan, int *table) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        clv__plan_node *at = &plan->nodes[i];
        *table = at->work == CLV__COMPUTE ? at->in[at->node->io.n_in] : -1;
        if (*table >= 0 && plan->values[*table].writer) return at;
    }
    return NULL;
}

/** Gradients that nobody names any more live until they are read by way of the table. */
TEST(test_what_a_table_tells_of_lives) {
    model m = build(1, false);
    clv_plan *plan = planned(m.graph, (clv_plan_config){0});
    int table = -1;
    const int *values;
    const clv__plan_node *reader = reader_of_table(plan, &table);
    assert_non_null(reader);
    const int n = plan->values[table].writer->reads(plan, table, &values);
    assert_int_equal(n, 2 * LAYERS + 1);
    for (size_t i = 0; i < plan->n_nodes; i++) {
        clv__plan_node *at = &plan->nodes[i];
        if (at->work != CLV__COMPUTE || at->node->io.op->view) continue;
        for (int k = 0; k < at->node->io.n_in; k++)
            for (int v = 0; v < n; v++)
                if (at->in[k] == values[v]) at->in[k] = -1;
    }
    assert_status(clv__passes_run(plan, CLV__PASS_roots, CLV__PASS_lives), CLV_OK, runtime);
    for (int v = 0; v < n; v++)
        assert_true(plan->values[plan->values[values[v]].root].last >= (int)(reader - plan->nodes));
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
}

/** In more chunks than a launch takes, each use has launches of its own. */
TEST(test_small_allocations) {
    model m = build(1, false);
    clv_device_info *info = &find("null:0")->info;
    const uint64_t largest = info->max_alloc_bytes;
    const struct {
        uint64_t bytes;
        bool few;
    } cases[] = {{512 << 10, true}, {160 << 10, true}, {70 << 10, false}}; // of 250 KiB, 66 KiB the largest
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        info->max_alloc_bytes = cases[i].bytes;
        clv_plan *plan = planned(m.graph, (clv_plan_config){0});
        assert_int_equal(launches_of(plan, "sum_squares"), cases[i].few ? 2 : 6);
        clv_plan_destroy(plan);
    }
    info->max_alloc_bytes = largest;
    clv_graph_destroy(m.graph);
}

/** What a few steps leave in the session, for the caller to free; NULL: the device cannot. */
static float *train(clv_device *device, bool no_fuse, bool scales, int *launches, size_t *n) {
    model m = build(0.01f, scales);
    clv_plan *plan =
        planned(m.graph, (clv_plan_config){.device = device,
                                           .no_fuse = no_fuse,
                                           .variants = "sum_squares=groups,count_nonfinite=groups"});
    clv_run *run;
    static float x[ROWS * WIDTH];
    float hyper[CLV_HYPER_VALUES];
    clv_device_memory_reset_peak(device);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    const clv_status status = clv_run_create(session, plan, &run);
    if (status == CLV_E_UNSUPPORTED) { // a kernel that is allowed smaller groups than the device says
        clv_session_destroy(session);
        clv_plan_destroy(plan);
        clv_graph_destroy(m.graph);
        return NULL;
    }
    assert_status(status, CLV_OK, runtime);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < sizeof x / sizeof *x; i++)
            x[i] = (float)((i * 13 + (size_t)step * 5) % 29) / 14 - 1;
        clv_optimizer_hyper_values(m.graph, step + 1, 0.01, hyper);
        assert_status(clv_run_feed(run, m.x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.hyper, hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, NULL), CLV_OK, runtime);
    }
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes);
    *launches = launches_of(plan, "sum_squares");
    float *all = session_values(session, n);
    clv__test_end(run, session, plan, m.graph);
    return all;
}

TEST(test_training_is_the_same) {
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl")) continue;
        clv_device_info *info = &device->info;
        const uint64_t largest = info->max_alloc_bytes;
        for (int mode = 0; mode < 3;
             mode++) { // as it is, with loss scaling, with gradients in several chunks
            int many, few;
            size_t n, n_fused;
            if (mode == 2) info->max_alloc_bytes = 160 << 10;
            float *apart = train(device, true, mode == 1, &many, &n);
            float *fused = apart ? train(device, false, mode == 1, &few, &n_fused) : NULL;
            info->max_alloc_bytes = largest;
            if (!apart) {
                printf("%s: left out: %s\n", info->name, clv_runtime_error(runtime));
                break;
            }
            assert_int_equal(n, n_fused);
            assert_memory_equal(apart, fused, n * sizeof *apart);
            assert_int_equal(few, 2);
            assert_true(many > 80);
            free(apart);
            free(fused);
        }
    }
}

TEST_MAIN(setup, teardown)
