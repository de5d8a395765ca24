// SPDX-License-Identifier: Apache-2.0
// What two replicas share besides the batch: updates that add up gradients in shared buffers (plan/shared/sums.c), and losses of their own
// (nn/data_parallel.c). As in shared.c, rules on null devices, runs on real ones.
#include "unit/shared.h"

#include <math.h>

#include "nn/parallel_layers.h"

// ---- the rules ----------------------------------------------------------------------------------------------------

static int count_ops(const clv_plan *plan, const char *op) {
    int n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].work == CLV__COMPUTE && strcmp(plan->nodes[i].node->io.op->name, op) == 0;
    return n;
}

static int count_ops_at(const clv_plan *plan, const char *op, int place) {
    int n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].place == place && plan->nodes[i].work == CLV__COMPUTE &&
             strcmp(plan->nodes[i].node->io.op->name, op) == 0;
    return n;
}

/** Position of a place's last node that is no update. */
static int end_of_work(const clv_plan *plan, int place) {
    int end = -1;
    for (int i = 0; i < (int)plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        if (node->place == place && node->work == CLV__COMPUTE && node->node->phase != CLV__UPDATE) end = i;
    }
    return end;
}

/** Two replicas' gradients are added up by the updates, and received when all else is done; where they are copied, or
 *  somebody else reads the sums, they are added one by one as they come. */
TEST(test_updates_add_up_what_is_lent) {
    model m = build((const char *[]){"null:0", "null:1"});
    clv_plan *plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops(plan, "add"), 2);
    clv_plan_destroy(plan);
    null_devices_share(true);
    plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.device = find("null:0"), .no_fuse = true});
    assert_int_equal(count_ops(plan, "add"), 2);
    clv_plan_destroy(plan);

    plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops(plan, "add"), 0);
    assert_int_equal(count_ops(plan, "sgd_update"), 1);
    const clv_plan_node update = clv_plan_node_get(plan, clv_plan_info_get(plan).n_nodes - 1);
    assert_string_equal(update.also, "add");
    assert_int_equal(update.fused, 4);
    const char *const names[] = {"a.weight", "b.weight"};
    for (int i = 0; i < 2; i++) {
        clv_tensor *gradient = clv_gradient(clv_graph_find(m.graph, names[i]));
        const clv__transfer *term = transfer_of(plan, gradient->node->in[0]->name, 0);
        assert_true(term->shared);
        assert_int_equal(plan->values[term->from].segment, CLV__IN_GRADIENTS);
        for (int at = 0; at < (int)plan->n_nodes; at++) {
            if (plan->nodes[at].work == CLV__RECEIVE && plan->nodes[at].out[0] == term->to)
                assert_true(at > end_of_work(plan, 0));
        }
    }
    assert_true(plan->places[0].gradients.bytes >= 2 * WIDTH * WIDTH * sizeof(float));
    clv_plan_destroy(plan);

    clv_output(clv_gradient(clv_graph_find(m.graph, "a.weight")), "fetched");
    plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops(plan, "add"), 1);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    null_devices_share(false);
}

/** Replicas that have their own losses wait for nothing between what they get first, the parameters, and the gradients: the
 *  constant at the loss is made by each, and the losses are added up when all else is done. */
TEST(test_replicas_with_their_losses_do_not_wait) {
    const char *const replicas[] = {"null:0", "null:1"};
    own_losses = true;
    model m = build(replicas);
    own_losses = false;
    null_devices_share(true);
    clv_plan *plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(clv_plan_info_get(plan).n_transfers, 2 + 2 + 1); // parameters, gradients, a loss
    assert_int_equal(count_ops_at(plan, "full", 0), 1);
    assert_int_equal(count_ops_at(plan, "full", 1), 1);
    assert_int_equal(count_ops(plan, "concat"), 0);
    for (int place = 0; place < 2; place++) {
        int end = end_of_work(plan, place), received = 0;
        for (int at = 0; at < end; at++)
            received += plan->nodes[at].work == CLV__RECEIVE && plan->nodes[at].place == place;
        assert_int_equal(received,
                         place ? 2 : 1); // parameters; the loss just before the end, which is the sum of both
        if (!place) assert_ptr_equal(plan->nodes[end].node, m.loss->node);
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    null_devices_share(false);
}

TEST(test_labels_that_do_not_fit) {
    const char *const replicas[] = {"host", "null:0"};
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 2)),
               *labels = clv_input(graph, "labels", CLV_DTYPE_F32, CLV_SHAPE(3, 2));
    assert_null(clv_data_parallel_loss((clv_tensor *[]){x, labels}, 2, replicas, NULL, 2, mean_square, NULL));
    assert_status(clv_graph_status(graph), CLV_E_SHAPE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "data parallel: x [4,2] and labels [3,2] must have the same number of rows");
    clv_graph_destroy(graph);
}

static clv_tensor *sum_of_all(clv_tensor *const *tensors, void *user) {
    return clv_mean(clv_add(tensors[0], clv_add(tensors[1], tensors[2])), NULL, 0, false);
}

static void two_results(clv_tensor *const *inputs, clv_tensor **results, void *user) {
    results[0] = clv_relu(inputs[0]);
    results[1] = clv_square(inputs[1]);
}

/** Calls on three tensors, of which one has other rows or is a number: what a graph says. */
static void refuse_tensors(clv_shape third, bool unnamed, clv_status status, const char *said) {
    const char *const replicas[] = {"host", "null:0"};
    for (int call = 0; call < 3; call++) {
        clv_graph *graph = new_graph();
        clv_tensor *tensors[] = {clv_input(graph, "a", CLV_DTYPE_F32, CLV_SHAPE(4, 2)),
                                 clv_input(graph, "b", CLV_DTYPE_F32, CLV_SHAPE(4, 2)),
                                 clv_input(graph, "c", CLV_DTYPE_F32, third)},
                   *results[2] = {tensors[0], tensors[0]};
        if (unnamed) tensors[2] = clv_relu(tensors[2]);
        if (call == 0) assert_null(clv_micro_batches(tensors, 3, 2, sum_of_all, NULL));
        if (call == 1) assert_null(clv_data_parallel_loss(tensors, 3, replicas, NULL, 2, sum_of_all, NULL));
        if (call == 2) clv_data_parallel(tensors, 3, replicas, NULL, 2, two_results, NULL, results, 2);
        if (call == 2) assert_true(!results[0] && !results[1]);
        assert_status(clv_graph_status(graph), status, runtime);
        char sentence[256];
        snprintf(sentence, sizeof sentence, "%s: %s", call ? "data parallel" : "micro-batches", said);
        assert_string_equal(clv_runtime_error(runtime), sentence);
        clv_graph_destroy(graph);
    }
}

TEST(test_several_tensors) {
    const char *const replicas[] = {"host", "null:0"};
    refuse_tensors(CLV_SHAPE(3, 2), false, CLV_E_SHAPE,
                   "a [4,2] and c [3,2] must have the same number of rows");
    refuse_tensors(CLV_SHAPE(3), true, CLV_E_SHAPE,
                   "a [4,2] and relu#0 [3] must have the same number of rows");
    refuse_tensors(clv_shape_make(0, NULL), false, CLV_E_SHAPE,
                   "a [4,2] and c [] must have the same number of rows");
    clv_graph *graph = new_graph();
    clv_tensor *many[3 * CLV_MAX_PORTS + 1], *results[CLV_MAX_PORTS + 1];
    for (int i = 0; i < 3 * CLV_MAX_PORTS + 1; i++)
        many[i] = i ? many[0] : clv_input(graph, "a", CLV_DTYPE_F32, CLV_SHAPE(4, 2));
    assert_null(clv_micro_batches(many, 0, 2, sum_of_all, NULL));
    assert_null(clv_micro_batches(NULL, 2, 2, sum_of_all, NULL));
    assert_null(clv_micro_batches((clv_tensor *[]){many[0], NULL}, 2, 2, sum_of_all, NULL));
    assert_null(clv_data_parallel_loss((clv_tensor *[]){NULL}, 1, replicas, NULL, 2, sum_of_all, NULL));
    clv_data_parallel(many, 2, replicas, NULL, 2, two_results, NULL, results, 2);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_int_equal(clv_tensor_shape(results[1]).dims[0], 4);
    assert_null(clv_micro_batches(many, 3 * CLV_MAX_PORTS + 1, 2, sum_of_all, NULL));
    assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "micro-batches: 49 tensors, 48 are possible");
    clv_graph_destroy(graph);
    graph = new_graph();
    many[0] = clv_input(graph, "a", CLV_DTYPE_F32, CLV_SHAPE(4, 2));
    clv_data_parallel(many, 1, replicas, NULL, 2, two_results, NULL, results, CLV_MAX_PORTS + 1);
    assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "data parallel: 17 results, from 1 to 16 are possible");
    clv_graph_destroy(graph);
}

// ---- some layers replicated, others placed ------------------------------------------------------------------------------

/** a, then what `user` does to it, then b. */
typedef clv_tensor *between(clv_tensor *x);
static between *change;

static void a_and_b(clv_tensor *const *inputs, clv_tensor **results, void *user) {
    clv_tensor *x = change(clv_nn_linear(inputs[0], "a", 6, NULL));
    results[0] = clv_nn_linear(x, "b", 2, NULL);
}
static clv_tensor *keep(clv_tensor *x) {
    return clv_relu(x);
}
/** [N, 6] as [N * 3, 2] and back: samples stay outermost. */
static clv_tensor *fold(clv_tensor *x) {
    return clv_relu(clv_reshape(x, CLV_SHAPE(clv_tensor_shape(x).dims[0] * 3, 2)));
}
/** [N, 6] as [6, N], and that as [6 * N / 2, 2]: a dimension with the batch in it that begins with something else. */
static clv_tensor *turn(clv_tensor *x) {
    const int64_t n = clv_tensor_shape(x).dims[0];
    return clv_reshape(clv_transpose(x, 0, 1), CLV_SHAPE(3 * n, 2));
}
static clv_tensor *average(clv_tensor *x) {
    return clv_mean(x, (int[]){0}, 1, true);
}
static clv_tensor *depend(clv_tensor *x) {
    return clv_tensor_shape(x).dims[0] == 8 ? x : clv_relu(x);
}

static void refuse_parts(between *with, const char *place, clv_status status, const char *said) {
    const char *const replicas[] = {"host", "null:0"};
    const clv__parallel how = {place, replicas, NULL, 2};
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 4)), *y = x;
    change = with;
    clv__parallel_layers(&x, 1, &how, a_and_b, NULL, &y, 1, false);
    if (status == CLV_OK)
        assert_non_null(y);
    else
        assert_null(y);
    assert_status(clv_graph_status(graph), status, runtime);
    if (status != CLV_OK && !strstr(clv_runtime_error(runtime), said))
        fail_msg("'%s' does not hold '%s'", clv_runtime_error(runtime), said);
    clv_graph_destroy(graph);
}

TEST(test_parts_that_cannot_be) {
    refuse_parts(keep, "b=null:0", CLV_OK, "");
    refuse_parts(fold, "b=null:0", CLV_OK, "");
    refuse_parts(fold, "a=null:0", CLV_OK, "");
    refuse_parts(turn, "b=null:0", CLV_E_SHAPE, "its first dimension does not count the 8 samples");
    refuse_parts(average, "b=null:0", CLV_E_SHAPE,
                 "[1,6] goes between layers that are replicated and layers");
    refuse_parts(depend, "b=null:0", CLV_E_UNSUPPORTED, "the model builds other nodes for 4 rows than for 8");
    refuse_parts(keep, "c=null:0", CLV_E_NOT_FOUND, "placement: no layer matches 'c'");
    refuse_parts(keep, "*=null:0", CLV_E_VALUE,
                 "names a device for every layer, so none is left for the replicas");
    refuse_parts(keep, "b", CLV_E_VALUE, "is not of the form pattern=device");
}

/** Dropout of parts is that of the whole, and what stands for all samples is built once for each device. */
static void build_dropped(clv_tensor *const *inputs, clv_tensor **results, void *user) {
    clv_graph *graph = clv_tensor_graph(inputs[0]);
    clv_tensor *x = clv_dropout(inputs[0], 0.5f);
    x = clv_mul(x, clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(4), (float[]){1, 2, 3, 4}));
    x = clv_nn_linear(x, "a", 4, NULL);
    results[0] = clv_nn_linear(clv_dropout(x, 0.5f), "b", 2, NULL);
}

static void forward_dropped(const char *const *replicas, float y[16]) {
    const clv__parallel how = {"b=host", replicas, (const double[]){0.75, 0.25}, 2};
    float samples[32];
    clv_graph *graph = new_graph();
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 4)), *out = NULL;
    for (int i = 0; i < 32; i++) samples[i] = 1 + (float)i;
    if (replicas)
        clv__parallel_layers(&x, 1, &how, build_dropped, NULL, &out, 1, false);
    else
        build_dropped(&x, &out, NULL);
    clv_output(out, "y");
    int64_t ticket;
    clv_device *host = clv__test_device(runtime, "host");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, x, samples, sizeof samples), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, out, y, 16 * sizeof *y), CLV_OK, runtime);
    clv__test_end(run, session, plan, graph);
}

TEST(test_parts_draw_what_the_whole_draws) {
    float whole[16], parts[16];
    clv_device *device = NULL;
    if (sharers(&device, 1) < 1 || strcmp(device->info.name, "host") == 0) skip();
    forward_dropped(NULL, whole);
    forward_dropped((const char *[]){"host", device->info.name}, parts);
    for (int i = 0; i < 16; i++) assert_float_equal(whole[i], parts[i], 1e-5f * fabsf(whole[i]));
}

// ---- the same bits ------------------------------------------------------------------------------------------------

static void expect_close(const float *a, const float *b, int n, float tolerance) {
    for (int i = 0; i < n; i++) assert_float_equal(a[i], b[i], tolerance);
}

/** Losses of their own give replicas the training that one loss gives, to rounding: shares of 9 and 3 rows. */
TEST(test_own_losses_train_alike) {
    clv_device *devices[2];
    if (sharers(devices, 2) < 2) {
        print_message("skipped: no two devices here compute in the host's memory\n");
        skip();
    }
    static outcome joined, own;
    const char *replicas[] = {devices[0]->info.name, devices[1]->info.name};
    train(replicas, replicas[0], NULL, -1, &joined);
    own_losses = true;
    train(replicas, replicas[0], NULL, -1, &own);
    own_losses = false;
    expect_close(own.losses, joined.losses, STEPS, 1e-6f * joined.losses[0]);
    for (int i = 0; i < 2; i++) expect_close(own.weights[i], joined.weights[i], WIDTH * WIDTH, 1e-6f);
}

/** Two alike, whose updates add up gradients that are shared or copied: many steps, two under way at once. Not PoCL 3.1's basic devices, which
 *  fail an assertion when two of them launch the same kernel for the first time at once. */
TEST(test_updates_with_lent_terms_compute_the_same_bits) {
    clv_device *devices[8];
    int n = sharers(devices, 8), pairs = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (i == j || strcmp(devices[i]->info.driver, devices[j]->info.driver) != 0 ||
                strstr(devices[i]->info.label, "basic"))
                continue;
            compare(devices[i]->info.name, devices[j]->info.name, true);
            pairs++;
        }
    }
    if (pairs > 0) return;
    print_message("skipped: no two devices here are of one kind\n");
    skip();
}

TEST_MAIN(setup, teardown)
