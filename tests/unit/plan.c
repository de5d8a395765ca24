// SPDX-License-Identifier: Apache-2.0
// The plan's promises: nothing that lives at the same time shares bytes, nothing crosses a chunk, what is predicted is
// what is taken.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/harness.h"

#include "base/random.h"
#include "cleave/cleave.h"
#include "plan/plan.h"
#include "unit/toy_ops.h"

TEST_RUNTIME_OF(&(clv_runtime_config){.no_opencl = true, .null_devices = true})

static clv_device *device_named(const char *name) {
    return clv__test_device(runtime, name);
}

/** A random graph: each node adds two earlier tensors of one size; some results are `gradients`, which have their own arena. */
static clv_graph *random_graph(uint64_t seed, int n_nodes, bool gradients) {
    clv_graph *graph = clv__test_graph(runtime);
    clv__random random;
    clv__random_init(&random, seed, CLV__STREAM_TEST, 0);
    clv_tensor *made[3][200];
    int n_made[3] = {1, 1, 1};
    for (int size = 0; size < 3; size++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", size);
        made[size][0] = clv_input(graph, name, CLV_DTYPE_F32, CLV_SHAPE(100 + size * 77));
    }
    for (int i = 0; i < n_nodes; i++) {
        int size = (int)clv__random_below(&random, 3), n = n_made[size];
        clv_tensor *a = made[size][clv__random_below(&random, (uint32_t)n)];
        clv_tensor *b = made[size][clv__random_below(&random, (uint32_t)n)];
        static const clv__op *const ops[] = {&toy_sum, &toy_sum_apart, &toy_sum, &toy_sum_wide};
        clv_tensor *sum = toy(ops[clv__random_below(&random, 4)], a, b);
        if (gradients && clv__random_below(&random, 3) == 0) sum->category = CLV_GRADIENTS;
        made[size][n_made[size]++] = sum;
    }
    for (int size = 0; size < 3; size++) {
        if (n_made[size] > 1) clv_output(made[size][n_made[size] - 1], NULL);
    }
    return graph;
}

typedef struct arena {
    const clv__layout *layout;
    int *owner;   // by byte: the value there, plus 1; -1: a workspace
    int n_shared; // workspaces that lie there
} arena;

/** 0: of activations, 1: of gradients. NULL: it lies in none. */
static arena *arena_of(arena arenas[2], clv__segment segment) {
    return segment == CLV__IN_ACTIVATIONS ? &arenas[0] : segment == CLV__IN_GRADIENTS ? &arenas[1] : NULL;
}

static void check_place(const arena *in, size_t start, size_t bytes) {
    assert_true(start + bytes <= in->layout->bytes);
    assert_true(in->layout->chunk >= bytes);
    assert_int_equal(start / in->layout->chunk, (start + bytes - 1) / in->layout->chunk);
}

/** A node's workspace: some of an arena that nobody needs meanwhile, or of a place of its own. */
static void check_workspace(const clv_plan *plan, const clv__plan_node *node, arena arenas[2]) {
    const size_t bytes = node->launches.workspace_bytes, start = node->workspace_at;
    arena *in = arena_of(arenas, node->workspace_in);
    if (bytes == 0) return;
    if (!in) {
        assert_true(plan->places[0].workspace_bytes >= bytes);
        return;
    }
    check_place(in, start, bytes);
    for (size_t b = start; b < start + bytes; b++) in->owner[b] = -1;
    in->n_shared++;
}

/** Run the plan on paper: mark every byte with the tensor written there, and see each input intact when it is read. Adds
 *  how many workspaces lie in each arena. */
static void check_bytes(const clv_plan *plan, int n_shared[2]) {
    const clv__place *place = &plan->places[0];
    arena arenas[2] = {{.layout = &place->activations}, {.layout = &place->gradients}};
    for (int i = 0; i < 2; i++)
        arenas[i].owner = calloc(arenas[i].layout->bytes + 1, sizeof *arenas[i].owner);
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        check_workspace(plan, node, arenas);
        for (int i = 0; i < node->node->io.n_in; i++) {
            const clv__value *in = &plan->values[node->in[i]];
            const arena *from = arena_of(arenas, in->segment);
            for (size_t b = in->offset; from && b < in->offset + in->bytes; b++)
                assert_int_equal(from->owner[b], node->in[i] + 1);
        }
        const clv__value *out = &plan->values[node->out[0]];
        const arena *to = arena_of(arenas, out->segment);
        if (!to) continue;
        check_place(to, out->offset, out->bytes);
        for (size_t b = out->offset; b < out->offset + out->bytes; b++) {
            assert_true(to->owner[b] != -1 || node->workspace_in != out->segment || b < node->workspace_at ||
                        b >= node->workspace_at + node->launches.workspace_bytes);
            to->owner[b] = node->out[0] + 1;
        }
    }
    for (int i = 0; i < 2; i++) {
        free(arenas[i].owner);
        n_shared[i] += arenas[i].n_shared;
    }
}

TEST(test_live_tensors_never_share_bytes) {
    clv_device *device = device_named("null");
    uint64_t whole = device->info.max_alloc_bytes;
    int n_shared[2] = {0, 0};
    for (uint64_t seed = 1; seed <= 90; seed++) {
        device->info.max_alloc_bytes = seed % 2 ? whole : 4096; // small: the arena is cut into chunks
        clv_graph *graph = random_graph(seed, 100, seed > 60);
        const clv_plan_config config = {.device = device, .own_session = seed % 3 == 0};
        clv_plan *plan = clv__test_plan(runtime, graph, &config);
        check_bytes(plan, n_shared);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    assert_true(n_shared[0] > 100 && n_shared[1] > 10);
    device->info.max_alloc_bytes = whole;
}

TEST(test_a_chain_in_place_is_one_block) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *t = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1000));
    for (int i = 0; i < 6; i++) t = toy(&toy_sum, t, NULL);
    clv_output(toy(&toy_sum_apart, t, NULL), "y");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device_named("null")});
    size_t one = clv__size_align(4000, plan->places[0].device->info.alignment_bytes);
    assert_int_equal(plan->places[0].activations.bytes, one);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

/** Where little lives while the node with the workspace runs, the arena is as long as that needs, and there is no second one. */
TEST(test_a_large_workspace_sticks_out_of_the_arena) {
    clv_device *device = device_named("null");
    uint64_t whole = device->info.max_alloc_bytes;
    size_t one = clv__size_align(4000, device->info.alignment_bytes),
           three = clv__size_align(12000, device->info.alignment_bytes);
    for (int small = 0; small < 2; small++) {
        device->info.max_alloc_bytes = small ? three : whole; // it is an allocation by itself then
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *t = toy(&toy_sum_wide, clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1000)), NULL);
        for (int i = 0; i < 3; i++) t = toy(&toy_sum_apart, t, NULL);
        clv_output(toy(&toy_sum_apart, t, NULL), "y");
        for (int alone = 0; alone < 2; alone++) {
            clv_plan_config config = {.device = device, .own_session = alone};
            clv_plan *plan = clv__test_plan(runtime, graph, &config);
            bool out = alone && !small;
            assert_int_equal(plan->places[0].activations.bytes, out ? one + three : 2 * one);
            assert_int_equal(plan->places[0].workspace_bytes, out ? 0 : three);
            int n_shared[2] = {0, 0};
            check_bytes(plan, n_shared);
            assert_int_equal(n_shared[0], out);
            clv_plan_destroy(plan);
        }
        clv_graph_destroy(graph);
    }
    device->info.max_alloc_bytes = whole;
}

/** `n` results of 1000 floats that live until they are added up, the first sum with a workspace of three times as much. */
static clv_graph *wide_graph(int n) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1000)), *kept[8], *sum;
    for (int i = 0; i < n; i++) kept[i] = toy(&toy_sum_apart, i ? kept[i - 1] : x, NULL);
    sum = kept[n - 1];
    for (int i = 0; i < n; i++) sum = toy(i ? &toy_sum : &toy_sum_wide, sum, kept[i]);
    clv_output(toy(&toy_sum_apart, sum, NULL), "y");
    return graph;
}

/** A workspace that finds no room among a plan's own activations goes where a larger plan of the session has its own. */
TEST(test_workspaces_lie_where_another_plan_has_activations) {
    clv_device *device = device_named("null");
    size_t three = clv__size_align(12000, device->info.alignment_bytes);
    clv_graph *large_graph = wide_graph(7), *small_graph = wide_graph(2);
    clv_plan *plans[2], *alone, *tight;
    plans[0] = clv__test_plan(runtime, large_graph, &(clv_plan_config){.device = device});
    alone = clv__test_plan(runtime, small_graph, &(clv_plan_config){.device = device});
    assert_int_equal(alone->places[0].workspace_bytes, three);
    const clv_plan_config config = {.device = device, .same_session = plans[0]};
    plans[1] = clv__test_plan(runtime, small_graph, &config);
    assert_int_equal(plans[1]->places[0].workspace_bytes, 0);
    int n_shared[2] = {0, 0};
    check_bytes(plans[1], n_shared);
    assert_int_equal(n_shared[0], 1);
    assert_true(plans[1]->places[0].activations.bytes <= plans[0]->places[0].activations.bytes);
    assert_int_equal(clv_plans_memory(plans, 2, NULL).category[CLV_ACTIVATIONS],
                     plans[0]->places[0].activations.bytes);
    // beside one that is no larger there is none
    tight = clv__test_plan(runtime, small_graph, &(clv_plan_config){.device = device, .same_session = alone});
    assert_int_equal(tight->places[0].workspace_bytes, three);
    assert_int_equal(tight->places[0].activations.bytes, alone->places[0].activations.bytes);
    clv_plan_destroy(tight);
    clv_plan_destroy(plans[1]);
    clv_plan_destroy(alone);
    clv_plan_destroy(plans[0]);
    clv_graph_destroy(small_graph);
    clv_graph_destroy(large_graph);
}

TEST(test_what_nobody_needs_is_not_planned) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8));
    clv_tensor *unused = clv_input(graph, "unused", CLV_DTYPE_F32, CLV_SHAPE(8));
    toy(&toy_sum, unused, NULL);
    clv_output(toy(&toy_sum, x, NULL), "y");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device_named("host")});
    assert_int_equal(clv_plan_info_get(plan).n_nodes, 1);
    assert_int_equal(plan->places[0].n_inputs, 1);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

TEST(test_a_graph_without_results_is_refused) {
    clv_graph *graph = clv__test_graph(runtime);
    toy(&toy_sum, clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8)), NULL);
    clv_plan *plan;
    assert_int_equal(clv_plan_create(graph, NULL, &plan), CLV_E_VALUE);
    assert_null(plan);
    assert_non_null(strstr(clv_runtime_error(runtime), "clv_output"));
    clv_graph_destroy(graph);
}

TEST(test_pins_are_checked) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_output(toy(&toy_sum, clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8)), NULL), "y");
    clv_plan *plan;
    clv_plan_config config = {.device = device_named("null"), .variants = "no_such_op=plain"};
    assert_int_equal(clv_plan_create(graph, &config, &plan), CLV_E_VALUE);
    assert_holds(clv_runtime_error(runtime), "variants 'no_such_op=plain': there is no op 'no_such_op'");
    config.variants = "nonsense";
    assert_int_equal(clv_plan_create(graph, &config, &plan), CLV_E_VALUE);
    config.variants = NULL;
    assert_int_equal(clv_variants_check(runtime, "sum=plain,nothing=plain"), CLV_E_VALUE);
    assert_int_equal(clv_variants_check(runtime, "sum=plain,*=plain"), CLV_OK);
    assert_int_equal(clv_variants_check(runtime, NULL), CLV_OK);
    config.variants = "*=plain";
    plan = clv__test_plan(runtime, graph, &config);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

/** CLEAVE_VARIANTS is read when the runtime is made, and pins where a plan has no pins of its own. */
TEST(test_a_runtime_pins) {
    const clv_runtime_config config = {.no_opencl = true, .null_devices = true};
    clv_runtime *own;
    setenv("CLEAVE_VARIANTS", "*=odd", 1);
    assert_int_equal(clv_runtime_create(&config, &own), CLV_OK);
    assert_int_equal(clv_variants_check(runtime, NULL), CLV_OK); // it was made before
    assert_int_equal(clv_variants_check(own, NULL), CLV_E_VALUE);
    assert_holds(clv_runtime_error(own), "CLEAVE_VARIANTS '*=odd': * has no variant 'odd'");
    assert_int_equal(clv_variants_check(own, ""), CLV_OK);
    clv_runtime_destroy(own);
    setenv("CLEAVE_VARIANTS", "*=plain", 1);
    assert_int_equal(clv_runtime_create(&config, &own), CLV_OK);
    unsetenv("CLEAVE_VARIANTS");
    for (int pinned = 0; pinned < 2; pinned++) {
        clv_graph *graph = clv__test_graph(own);
        clv_output(clv_relu(clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8))), "y");
        clv_device *device = clv__test_device(own, "null");
        const clv_plan_config planned = {.device = device, .variants = pinned ? NULL : ""};
        clv_plan *plan = clv__test_plan(runtime, graph, &planned);
        assert_string_equal(clv_plan_node_get(plan, 0).chosen, pinned ? "pinned" : "ranked");
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(own);
}

/** A variant whose sums are coarser than f32's: pinned, for inference, and in no other case. */
TEST(test_coarse_sums_are_asked_for) {
    const struct {
        const char *variants;
        clv_precision precision;
        bool training;
        const char *variant, *refused;
    } cases[] = {
        {NULL, CLV_PRECISION_MIXED, false, NULL, NULL},
        {"linear=half_sums", CLV_PRECISION_MIXED, false, "half_sums", NULL},
        {"*=half_sums", CLV_PRECISION_MIXED, true, NULL, NULL},
        {"*=half_sums", CLV_PRECISION_F32, false, NULL, NULL},
        {"linear=half_sums", CLV_PRECISION_MIXED, true, NULL,
         "linear 'fc': the pinned variant 'half_sums' is for inference, its sums are not in f32; pin another "
         "one"},
        {"linear=half_sums", CLV_PRECISION_MIXED_BF16, false, NULL, "cannot run on null:0 with these shapes"},
        {"conv2d=half_sums", CLV_PRECISION_MIXED, false, "half_sums", NULL},
        {"conv2d=half_sums", CLV_PRECISION_MIXED, true, NULL,
         "conv2d 'c': the pinned variant 'half_sums' is for inference, its sums are not in f32; pin another "
         "one"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_plan *plan;
        clv_graph *graph = clv__test_graph(runtime);
        clv_graph_set_precision(graph, cases[i].precision);
        clv_graph_set_training(graph, cases[i].training);
        if (cases[i].variants && strncmp(cases[i].variants, "conv2d", 6) == 0) {
            clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 32, 20, 20));
            clv_output(clv_nn_conv2d(x, "c", 64, &(clv_nn_conv2d_config){.kernel = {3, 3}}), "y");
        } else {
            clv_output(
                clv_nn_linear(clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(512, 512)), "fc", 512, NULL),
                "y");
        }
        const clv_plan_config config = {.device = device_named("null"), .variants = cases[i].variants};
        const clv_status status = clv_plan_create(graph, &config, &plan);
        if (cases[i].refused) {
            assert_int_equal(status, CLV_E_UNSUPPORTED);
            assert_holds(clv_runtime_error(runtime), cases[i].refused);
        } else {
            assert_int_equal(status, CLV_OK);
            bool found = false;
            for (int k = 0; k < clv_plan_info_get(plan).n_nodes; k++)
                found |= strcmp(clv_plan_node_get(plan, k).variant, "half_sums") == 0;
            assert_int_equal(found, cases[i].variant != NULL);
        }
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
}

TEST(test_prediction_is_what_is_taken) {
    clv_device *device = device_named("host");
    for (uint64_t seed = 1; seed <= 10; seed++) {
        clv_graph *graph = random_graph(seed, 50, false);
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
        clv_plan_memory predicted = clv_plans_memory(&plan, 1, NULL);
        clv_device_memory_reset_peak(device);
        clv_session *session = clv__test_session(runtime, NULL);
        clv_run *run = clv__test_run(runtime, session, plan);
        clv_memory_info taken = clv_device_memory(device);
        assert_int_equal(taken.all.peak, predicted.predicted_peak_bytes);
        for (int c = 0; c < CLV_CATEGORIES; c++)
            assert_int_equal(taken.category[c].peak, predicted.category[c]);
        clv__test_end(run, session, plan, graph);
        assert_int_equal(clv_device_memory(device).all.current, 0);
    }
}

/** What is kept and made is what memory is predicted by. */
TEST(test_what_is_kept_and_made) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 3, 8, 8));
    x = clv_nn_batch_norm(clv_nn_conv2d(x, "conv", 5, &(clv_nn_conv2d_config){.kernel = {3}}), "norm", NULL);
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(4));
    clv_tensor *loss = clv_cross_entropy(clv_nn_linear(clv_flatten(x, 1), "fc", 7, NULL), labels);
    clv_requires_grad(clv_graph_find(graph, "conv.weight"), false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_config adam = {.kind = CLV_ADAM};
    clv_optimizer_add(graph, &adam);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device_named("host")});
    clv_plan_memory memory = clv_plans_memory(&plan, 1, NULL);
    uint64_t bytes[CLV_CATEGORIES] = {0}, made[CLV_CATEGORIES] = {0};
    int n_frozen = 0, n_buffers = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_kept; i++) {
        clv_plan_kept kept = clv_plan_kept_get(plan, i);
        bytes[kept.category] += kept.bytes;
        n_frozen += kept.frozen;
        n_buffers += kept.category == CLV_PARAMETERS && !kept.parameter;
        assert_int_equal(kept.frozen, !strcmp(kept.name, "conv.weight"));
        assert_ptr_equal(kept.device, device_named("host"));
    }
    assert_int_equal(n_frozen, 1);
    assert_int_equal(n_buffers, 2); // running mean and variance
    assert_int_equal(bytes[CLV_PARAMETERS], memory.category[CLV_PARAMETERS]);
    assert_int_equal(bytes[CLV_OPTIMIZER], memory.category[CLV_OPTIMIZER]);
    assert_null(clv_plan_kept_get(plan, clv_plan_info_get(plan).n_kept).name);
    assert_null(clv_plan_kept_get(plan, -1).name);
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        for (int c = 0; c < CLV_CATEGORIES; c++) made[c] += node.made[c];
    }
    assert_true(made[CLV_ACTIVATIONS] >= memory.category[CLV_ACTIVATIONS] &&
                memory.category[CLV_ACTIVATIONS] > 0);
    assert_true(made[CLV_GRADIENTS] > 0 && made[CLV_WORKSPACE] >= memory.category[CLV_WORKSPACE]);
    assert_int_equal(made[CLV_PARAMETERS] + made[CLV_OPTIMIZER], 0); // kept, not made
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

TEST(test_a_budget_is_never_exceeded) {
    clv_device *device = device_named("host");
    clv_graph *graph = random_graph(3, 50, false);
    clv_run *run;
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    uint64_t bytes = clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes;
    clv_session *session = clv__test_session(runtime, NULL);
    clv_device_set_budget(device, bytes - 1);
    assert_int_equal(clv_run_create(session, plan, &run), CLV_E_BUDGET);
    assert_null(run);
    assert_non_null(strstr(clv_runtime_error(runtime), "budget"));
    assert_int_equal(clv_device_memory(device).all.current, 0);
    clv_device_set_budget(device, bytes);
    run = clv__test_run(runtime, session, plan);
    clv_device_set_budget(device, 0);
    clv__test_end(run, session, plan, graph);
}

TEST_MAIN(begin_runtime, end_runtime)
