// SPDX-License-Identifier: Apache-2.0
// Layers on devices: who goes where, what is carried, and that the result stays the same. Two host devices would be one, so
// the runs here use the host and whatever OpenCL device there is; the rules are looked at on null devices.
#include <time.h>
#include <math.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "harness/parallel.h"
#include "nn/replicas.h"
#include "plan/plan.h"
#include "unit/toy_ops.h"
#include "unit/world.h"

typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *loss, *weight[2];
} model;

/** loss = mean((relu(x * a.weight) * b.weight)^2), with its gradients, updates left out. */
static model build(void) {
    model m = {0};
    m.graph = clv__test_graph(runtime);
    clv_tensor *t = m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 16));
    for (int i = 0; i < 2; i++) {
        clv_scope_push(m.graph, i ? "b" : "a");
        m.weight[i] =
            clv_parameter(m.graph, "weight", CLV_SHAPE(16, 16), (clv_init){CLV_INIT_UNIFORM, -1, 1});
        t = clv_matmul(t, m.weight[i]);
        clv_scope_pop(m.graph);
        if (i == 0) t = clv_relu(t);
    }
    m.loss = clv_mean(clv_square(t), NULL, 0, false);
    clv_backward(m.loss);
    clv_output(m.loss, "loss");
    for (int i = 0; i < 2; i++) clv_output(clv_gradient(m.weight[i]), i ? "gb" : "ga");
    return m;
}

TEST(test_layers_go_where_patterns_say) {
    model m = build();
    clv_plan *plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.place = "a=host,b=null"});
    assert_int_equal(clv_plan_info_get(plan).n_devices, 2);
    int carried = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        const char *device = clv_device_info_get(node.device)->name;
        if (strcmp(node.variant, "transfer") == 0) {
            carried++;
        } else if (strcmp(node.layer, "a") == 0) {
            assert_string_equal(device, "host");
        } else if (strcmp(node.layer, "b") == 0) {
            assert_string_equal(device, "null:0");
        } else if (strcmp(node.op, "relu") == 0 || strcmp(node.op, "relu_backward") == 0) {
            assert_string_equal(device, "host"); // follows its data; the gradient follows the forward node
        }
    }
    assert_int_equal(clv_plan_info_get(plan).n_transfers, 2); // relu's result, and its gradient
    assert_int_equal(carried, 4);
    clv_plan_transfer transfer = clv_plan_transfer_get(plan, 0);
    assert_string_equal(clv_device_info_get(transfer.from)->name, "host");
    assert_string_equal(clv_device_info_get(transfer.to)->name, "null:0");
    assert_int_equal(transfer.bytes, 8 * 16 * 4);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
}

TEST(test_the_last_match_wins) {
    model m = build();
    clv_plan *plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.place = "*=host,b=null,b=host"});
    assert_int_equal(clv_plan_info_get(plan).n_transfers, 0);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
}

/** y = a(x); y = y + b(y); y = y + c(y): sums have no layer of their own, and stay where the work is. */
TEST(test_sums_stay_with_the_work) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *y = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 16));
    for (int i = 0; i < 3; i++) {
        clv_tensor *branch = clv_nn_linear(y, i == 0 ? "a" : i == 1 ? "b" : "c", 16, NULL);
        y = i ? clv_add(y, branch) : branch;
    }
    clv_output(y, "y");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.place = "a=host,b=null,c=null"});
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (strcmp(node.op, "add") == 0)
            assert_string_equal(clv_device_info_get(node.device)->name, "null:0");
    }
    assert_int_equal(clv_plan_info_get(plan).n_transfers,
                     1); // a's result, once, for both the layer and the sum
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

static void refuse(const char *place, bool explicit_transfers, clv_status status, const char *part) {
    model m = build();
    clv_plan *plan;
    assert_status(
        clv_plan_create(m.graph, &(clv_plan_config){.place = place, .explicit_transfers = explicit_transfers},
                        &plan),
        status, runtime);
    assert_null(plan);
    assert_holds(clv_runtime_error(runtime), part);
    clv_graph_destroy(m.graph);
}

TEST(test_bad_placements_are_refused) {
    refuse("a=host", false, CLV_E_VALUE, "'b'");
    refuse("a=host,b=host,c=host", false, CLV_E_NOT_FOUND, "'c'");
    refuse("a=host,b", false, CLV_E_VALUE, "pattern=device");
    refuse("a=host,b=gpu:99", false, CLV_E_NOT_FOUND, "gpu:99");
    refuse("a=host,b=null", true, CLV_E_MISMATCH, "clv_to");
}

/** Loss and gradients of one step, in the order loss, ga, gb. */
static double seconds_now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/** Five steps on a device since `before`: each was counted, and it was busy for some of the time, not for more than all. */
static void check_activity(const clv_device *device, clv_activity before, double seconds) {
    clv_activity now = clv_device_activity(device);
    assert_int_equal(now.steps - before.steps, 5);
    assert_true(now.busy_ns > before.busy_ns);
    assert_true((double)(now.busy_ns - before.busy_ns) * 1e-9 <= seconds);
}

static void run_one(const char *place, float *out, bool check_memory) {
    model m = build();
    clv_activity before[2];
    float x[8 * 16];
    int64_t ticket;
    clv_plan *plan = clv__test_plan(runtime, m.graph, &(clv_plan_config){.place = place});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        clv_device_memory_reset_peak(clv_plan_device_get(plan, i));
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        assert_status(clv_device_activity_start(clv_plan_device_get(plan, i)), CLV_OK, runtime);
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        before[i] = clv_device_activity(clv_plan_device_get(plan, i));
    double start = seconds_now();
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 8 * 16; i++) x[i] = (float)((i * 7 + step) % 11) - 5;
        assert_status(clv_run_feed(run, m.x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, m.loss, out, 4), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, clv_gradient(m.weight[0]), out + 1, 1024), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, clv_gradient(m.weight[1]), out + 257, 1024), CLV_OK, runtime);
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    for (int i = 0; i < clv_plan_info_get(plan).n_devices; i++)
        check_activity(clv_plan_device_get(plan, i), before[i], seconds_now() - start);
    for (int i = 0; check_memory && i < clv_plan_info_get(plan).n_devices; i++) {
        clv_device *device = clv_plan_device_get(plan, i);
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
    }
    clv__test_end(run, session, plan, m.graph);
}

TEST(test_split_over_devices_computes_the_same) {
    int i = -1;
    clv_device *device = clv__test_next_device(runtime, &i);
    if (strcmp(clv_device_info_get(device)->name, "host") == 0) skip(); // nothing but the host here
    char place[128];
    float whole[513], split[513];
    run_one("*=host", whole, true);
    snprintf(place, sizeof place, "a=host,b=%s", clv_device_info_get(device)->name);
    run_one(place, split, true);
    for (int k = 0; k < 513; k++)
        assert_float_equal(split[k], whole[k], 1e-5f * (1 + (whole[k] < 0 ? -whole[k] : whole[k])));
    snprintf(place, sizeof place, "b=host,a=%s", clv_device_info_get(device)->name);
    run_one(place, split, true);
    for (int k = 0; k < 513; k++)
        assert_float_equal(split[k], whole[k], 1e-5f * (1 + (whole[k] < 0 ? -whole[k] : whole[k])));
}

static clv_tensor *layer_a(clv_tensor *x, void *user) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, "a");
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(16, 16), (clv_init){CLV_INIT_UNIFORM, -1, 1});
    clv_tensor *y = clv_relu(clv_matmul(x, weight));
    clv_scope_pop(graph);
    return y;
}

/** Loss and the gradient of a.weight when a is computed on n devices, and b after it; strictly. */
static void run_parallel(const char *const *devices, const double *shares, int n, float *out) {
    int64_t ticket;
    float x[8 * 16];
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *input = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 16));
    clv_tensor *loss =
        clv_mean(clv_square(parallel_of(input, devices, shares, n, layer_a, NULL)), NULL, 0, false);
    clv_backward(loss);
    clv_output(loss, "loss");
    clv_tensor *gradient = clv_gradient(clv_parameter_get(graph, 0));
    clv_output(gradient, "ga");
    clv_device *first = clv__test_device(runtime, devices[0]);
    clv_plan *plan =
        clv__test_plan(runtime, graph, &(clv_plan_config){.device = first, .explicit_transfers = true});
    assert_int_equal(clv_plan_info_get(plan).n_devices, n);
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < 8 * 16; i++) x[i] = (float)((i * 7 + step) % 11) - 5;
        assert_status(clv_run_feed(run, input, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, loss, out, 4), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, gradient, out + 1, 1024), CLV_OK, runtime);
    clv__test_end(run, session, plan, graph);
}

TEST(test_replicas_compute_the_same) {
    int i = -1;
    const char *name = clv_device_info_get(clv__test_next_device(runtime, &i))->name;
    if (strcmp(name, "host") == 0) skip();
    float one[257], two[257];
    run_parallel((const char *[]){"host"}, NULL, 1, one);
    run_parallel((const char *[]){"host", name}, NULL, 2, two);
    for (int k = 0; k < 257; k++)
        assert_float_equal(two[k], one[k], 1e-5f * (1 + (one[k] < 0 ? -one[k] : one[k])));
    run_parallel((const char *[]){name, "host"}, (const double[]){0.7, 0.3}, 2, two);
    for (int k = 0; k < 257; k++)
        assert_float_equal(two[k], one[k], 1e-5f * (1 + (one[k] < 0 ? -one[k] : one[k])));
}

static void refuse_replicas(const char *const *devices, const double *shares, int n, const char *part) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 16));
    assert_null(parallel_of(x, devices, shares, n, layer_a, NULL));
    assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), part);
    clv_graph_destroy(graph);
}

TEST(test_bad_replicas_are_refused) {
    const char *twice[] = {"host", "HOST"}, *two[] = {"host", "null"};
    refuse_replicas(twice, NULL, 2, "data parallel: host is named twice, as 'host' and as 'HOST'");
    refuse_replicas(two, (const double[]){0.7, 0.4}, 2,
                    "data parallel: the shares sum to 1.1, they must sum to 1");
    refuse_replicas(two, (const double[]){1, 0}, 2,
                    "data parallel: the share of null is 0, it must be above 0");
    refuse_replicas(two, (const double[]){2, -1}, 2,
                    "data parallel: the share of null is -1, it must be above 0");
    refuse_replicas(two, (const double[]){0.5, NAN}, 2,
                    "data parallel: the share of null is nan, it must be above 0");
    refuse_replicas(two, NULL, 0, "data parallel: 0 devices, from 1 to 16 are possible");
    refuse_replicas(two, NULL, 17, "data parallel: 17 devices, from 1 to 16 are possible");
}

/** Whole rows, the nearest to the shares; the first, where parameters live, always has one. */
TEST(test_rows_of_replicas) {
    static const struct {
        int64_t batch;
        int n;
        double shares[3];
        int64_t rows[3];
    } cases[] = {
        {64, 2, {0.5, 0.5}, {32, 32}},
        {65, 2, {0.5, 0.5}, {33, 32}},
        {8, 2, {0.7, 0.3}, {6, 2}},
        {100, 2, {0.29, 0.71}, {29, 71}},
        {100, 3, {0.33, 0.33, 0.34}, {33, 33, 34}},
        {32, 2, {0.41, 0.59}, {13, 19}},
        {1, 2, {0.1, 0.9}, {1, 0}},
        {2, 3, {0.1, 0.45, 0.45}, {1, 0, 1}},
        {10, 2, {0.05, 0.95}, {1, 9}},
        {1, 1, {1}, {1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t rows[3] = {0};
        clv__replica_rows(cases[i].batch, cases[i].shares, cases[i].n, rows);
        for (int r = 0; r < cases[i].n; r++) assert_int_equal(rows[r], cases[i].rows[r]);
    }
    for (int64_t batch = 2; batch < 300; batch++) { // a share made from whole rows gives them again
        for (int64_t k = 1; k < batch; k++) {
            double shares[] = {(double)k / (double)batch, (double)(batch - k) / (double)batch};
            int64_t rows[2];
            clv__replica_rows(batch, shares, 2, rows);
            assert_int_equal(rows[0], k);
            assert_int_equal(rows[1], batch - k);
        }
    }
}

static clv_tensor *normalised(clv_tensor *x, void *user) {
    return clv_nn_batch_norm(clv_nn_linear(x, "fc", 16, NULL), "norm", NULL);
}

/** Statistics move with the parameters, when everything that crosses has arrived: a step that fails before changes nothing
 *  that lasts. Of two replicas the first one's batch moves them. */
TEST(test_updates_come_last) {
    for (int replicas = 0; replicas < 2; replicas++) {
        clv_graph *graph = clv__test_graph(runtime);
        clv_graph_set_training(graph, true);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 16));
        static const char *const devices[] = {"host", "null"};
        x = replicas ? parallel_of(x, devices, NULL, 2, normalised, NULL) : normalised(x, NULL);
        clv_backward(clv_mean(clv_square(clv_nn_linear(x, "last", 4, NULL)), NULL, 0, false));
        clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
        clv_plan_config config = {.place = replicas ? "*=host" : "*=host,norm=null"};
        clv_plan *plan = clv__test_plan(runtime, graph, &config);
        int updates = 0, statistics = 0, moved = 0;
        for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
            clv_plan_node node = clv_plan_node_get(plan, i);
            moved += strcmp(node.variant, "transfer") == 0;
            if (strcmp(node.op, "batch_norm_update") == 0) {
                statistics++;
                assert_string_equal(node.phase, "update");
                assert_string_equal(clv_device_info_get(node.device)->name, replicas ? "host" : "null:0");
            }
            if (strcmp(node.phase, "update") == 0) updates += node.fused ? node.fused : 1;
            if (updates) assert_string_equal(node.phase, "update");
        }
        assert_int_equal(statistics, 1);
        assert_int_equal(updates, 7); // two parameters of each of three layers, and the statistics
        assert_true(moved > 0);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
}

TEST_MAIN(setup, teardown)
