// SPDX-License-Identifier: Apache-2.0
// Profiles, of a model whose times are known from below.
#include "cleave/bench.h"
#include "device/kernel_sources.h"
#include "unit/slow_model.h"

enum { STEPS = 6 };
#define MS 1e6

/** Do steps; each is handed over before the one before is waited for, as in a training. */
static void steps(model *m, int n) {
    float x[64] = {1, 2, 3}, y[64];
    int64_t ticket = -1;
    for (int i = 0; i < n; i++) {
        int64_t before = ticket;
        assert_status(clv_run_feed(m->run, m->x, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_step(m->run, &ticket), CLV_OK, runtime);
        if (before >= 0) assert_status(clv_run_fetch(m->run, before, m->y, y, sizeof y), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(m->run, ticket, m->y, y, sizeof y), CLV_OK, runtime);
    assert_true(y[2] == 3);
}

static clv_profile *make_profile(int64_t warm_up, int64_t slices) {
    clv_profile *profile =
        clv__test_profile(runtime, &(clv_profile_config){.warm_up = warm_up, .slices = slices});
    return profile;
}

/** The node of that op and layer in a run. */
static clv_profile_node find(const clv_profile *profile, int run, const char *op, const char *layer) {
    for (int i = 0; i < clv_profile_run_get(profile, run).n_nodes; i++) {
        clv_profile_node node = clv_profile_node_get(profile, run, i);
        if (!strcmp(node.node.op, op) && !strcmp(node.node.layer, layer)) return node;
    }
    fail_msg("no %s of '%s'", op, layer);
    return (clv_profile_node){0};
}

/** Everything is told when run, plan and graph are gone: it belongs to the profile. */
TEST(test_times_are_the_ops_own) {
    clv_profile *profile = make_profile(0, 0);
    model m = build("*=host", profile);
    steps(&m, STEPS);
    destroy(&m);
    assert_int_equal(clv_profile_info_get(profile).n_runs, 1);
    assert_int_equal(clv_profile_info_get(profile).main_run, 0);
    clv_profile_run run = clv_profile_run_get(profile, 0);
    assert_false(run.trains);
    assert_true(run.warm);
    assert_int_equal(run.steps, STEPS - 2); // without the warm-up
    assert_int_equal(run.n_devices, 1);
    assert_true(run.step_ns >= SLEEP_MS * MS);
    clv_profile_node node = find(profile, 0, "slow", "middle");
    assert_true(node.ns >= SLEEP_MS * MS && node.ns <= run.step_ns);
    assert_true(node.node.flops == 1000 && node.node.traffic == 500);
    assert_string_equal(node.node.phase, "forward");
    assert_string_equal(node.node.variant, "reference");
    assert_true(node.node.device == host);
    assert_true(find(profile, 0, "relu", "before").ns < SLEEP_MS * MS);
    assert_string_equal(find(profile, 0, "upload", "").node.phase, "transfer");
    assert_true(find(profile, 0, "upload", "").node.traffic >= 64 * sizeof(float));
    assert_true(find(profile, 0, "read", "").node.traffic == 64 * sizeof(float));
    clv_profile_device device = clv_profile_device_get(profile, 0, 0);
    assert_true(device.device == host && device.known);
    assert_true(device.busy_ns >= node.ns && device.busy_ns + device.idle_ns <= run.step_ns + 1);
    // past the ends
    assert_int_equal(clv_profile_run_get(profile, 1).steps, 0);
    assert_null(clv_profile_device_get(profile, 0, 1).device);
    assert_null(clv_profile_node_get(profile, 0, clv_profile_run_get(profile, 0).n_nodes).node.op);
    assert_null(clv_profile_node_get(profile, 0, -1).node.op);
    assert_int_equal(clv_profile_run_get(profile, 7).n_nodes, 0);
    clv_profile_destroy(profile);
}

/** Slow first steps are left out when others follow, and told when none do. */
TEST(test_the_warm_up_is_left_out) {
    clv_profile *profile = make_profile(3, 0);
    model m = build("*=host", profile);
    slow_calls = 3;
    steps(&m, 2);
    assert_false(clv_profile_run_get(profile, 0).warm);
    assert_int_equal(clv_profile_run_get(profile, 0).steps, 2);
    assert_true(find(profile, 0, "slow", "middle").ns >= SLOW_MS * MS);
    steps(&m, 1);
    assert_false(clv_profile_run_get(profile, 0).warm);
    steps(&m, 4);
    assert_true(clv_profile_run_get(profile, 0).warm);
    assert_int_equal(clv_profile_run_get(profile, 0).steps, 4);
    double average = find(profile, 0, "slow", "middle").ns;
    print_message("%.3f ms\n", average / 1e6);
    assert_true(average >= SLEEP_MS * MS);
    assert_true(average < (3.0 * SLOW_MS + 4 * SLEEP_MS) / 7 * MS); // that it would be with them, at least
    destroy(&m);
    clv_profile_destroy(profile);
}

TEST(test_a_run_without_a_profile_tells_nothing) {
    clv_profile *profile = make_profile(0, 100);
    model m = build("*=host", NULL);
    clv_session_set_profile(m.session, profile); // too late for this run
    steps(&m, 3);
    assert_int_equal(clv_profile_info_get(profile).n_runs, 0);
    assert_int_equal(clv_profile_info_get(profile).main_run, -1);
    destroy(&m);
    assert_status(clv_profile_trace(profile, "trace.json"), CLV_E_STATE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "nothing was kept for a trace: no step was done, or its slices "
                        "were more than there is room for");
    clv_profile_destroy(profile);
}

/** One device waits for the other: it is idle meanwhile, and together they are so for the bubble. */
TEST(test_waiting_for_another_device_is_idle) {
    int i = -1;
    clv_device *device = clv__test_next_device(runtime, &i);
    if (device == host) skip();
    char place[128];
    const char *name = clv_device_info_get(device)->name;
    snprintf(place, sizeof place, "before=%s,middle=host,after=%s", name, name);
    clv_profile *profile = make_profile(0, 10000);
    model m = build(place, profile);
    steps(&m, STEPS);
    destroy(&m);
    clv_profile_run run = clv_profile_run_get(profile, 0);
    assert_int_equal(run.n_devices, 2);
    clv_profile_device first = clv_profile_device_get(profile, 0, 0),
                       second = clv_profile_device_get(profile, 0, 1);
    assert_true(first.device == device && second.device == host);
    print_message("step %.3f ms, host %.3f, %s: busy %.3f, carries %.3f, idle %.3f; bubble %.3f\n",
                  run.step_ns / 1e6, second.busy_ns / 1e6, name, first.busy_ns / 1e6, first.transfer_ns / 1e6,
                  first.idle_ns / 1e6, run.bubble);
    assert_true(second.busy_ns >= SLEEP_MS * MS);
    assert_true(find(profile, 0, "slow", "middle").node.device == host);
    if (first.known) {
        assert_true(first.idle_ns >= SLEEP_MS * MS / 2);
        double busy = (first.busy_ns + second.busy_ns) / (2 * run.step_ns);
        assert_true(run.bubble > 0 && run.bubble < 1 && run.bubble > 0.99 - busy && run.bubble < 1.01 - busy);
    }
    clv_profile_destroy(profile);
}

TEST(test_a_driver_without_a_clock) {
    if (!clv__kernel_sources[0].stem) skip(); // a null device is told of kernels, and this library has none
    clv_profile *profile = make_profile(0, 100);
    model m = build("*=null", profile);
    float x[64] = {0}, y[64];
    int64_t ticket;
    assert_status(clv_run_feed(m.run, m.x, x, sizeof x), CLV_OK, runtime);
    assert_status(clv_run_step(m.run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(m.run, ticket, m.y, y, sizeof y), CLV_OK, runtime);
    assert_false(clv_profile_device_get(profile, 0, 0).known);
    assert_true(clv_profile_device_get(profile, 0, 0).busy_ns == 0);
    assert_int_equal(clv_profile_run_get(profile, 0).steps, 1);
    destroy(&m);
    clv_profile_destroy(profile);
}

/** A peak is measured with memory of the device, and none of it is told as the training's. */
TEST(test_measuring_a_peak_leaves_the_account_alone) {
    clv_bench_peak peak = {0};
    clv_device *device = clv__test_device_or_skip(runtime, "gpu|accelerator|cpu");
    const clv_memory_info before = clv_device_memory(device);
    assert_status(clv_bench_peak_raise(device, &peak), CLV_OK, runtime);
    assert_true(peak.gbps > 0);
    const clv_memory_info after = clv_device_memory(device);
    assert_true(after.all.total_allocated > before.all.total_allocated);
    assert_true(after.all.peak == before.all.peak && after.all.current == before.all.current);
    for (int c = 0; c < CLV_CATEGORIES; c++) assert_true(after.category[c].peak == before.category[c].peak);
}

// ---- sums -----------------------------------------------------------------------------------------------------------

TEST(test_sums_by_layer_and_by_op) {
    const clv_profile_node nodes[] = {
        {.node =
             {.layer = "a", .op = "conv", .variant = "tile", .phase = "forward", .flops = 10, .traffic = 1},
         .ns = 5},
        {.node = {.layer = "", .op = "relu", .variant = "plain", .phase = "forward", .flops = 1}, .ns = 1},
        {.node = {.layer = "a", .op = "conv", .variant = "tile", .phase = "recompute", .flops = 10}, .ns = 4},
        {.node = {.layer = "a", .op = "conv_dx", .variant = "tile", .phase = "backward", .flops = 20},
         .ns = 8},
        {.node = {.layer = "a", .op = "sgd", .variant = "plain", .phase = "update"}, .ns = 2},
        {.node = {.layer = "a", .op = "send", .variant = "transfer", .phase = "transfer", .traffic = 7},
         .ns = 3},
        {.node = {.layer = "b", .op = "conv", .variant = "plain", .phase = "forward", .flops = 10}, .ns = 50},
    };
    enum { N = sizeof nodes / sizeof *nodes };
    clv_profile_row rows[N];
    assert_int_equal(clv_profile_sum(nodes, N, CLV_PROFILE_LAYERS, rows), 3);
    assert_string_equal(rows[0].name, "a");
    assert_string_equal(rows[1].name, "relu");
    assert_string_equal(rows[2].name, "b");
    assert_true(rows[0].forward.ns == 5 && rows[0].forward.flops == 10 && rows[0].forward.bytes == 1);
    assert_true(rows[0].backward.ns == 12 && rows[0].backward.flops == 30 && rows[0].backward.nodes == 2);
    assert_true(rows[0].update.ns == 2 && rows[0].transfer.ns == 3 && rows[0].transfer.bytes == 7);
    assert_true(rows[0].all.ns == 22 && rows[0].all.nodes == 5);
    assert_int_equal(clv_profile_sum(nodes, N, CLV_PROFILE_OPS, rows), 6); // conv: two variants
    assert_string_equal(rows[0].name, "conv");
    assert_string_equal(rows[0].variant, "plain");
    assert_true(rows[0].all.ns == 50);
    assert_string_equal(rows[1].variant, "tile");
    assert_true(rows[1].all.ns == 9 && rows[1].all.nodes == 2 && rows[1].backward.ns == 4);
    for (int i = 1; i < 6; i++) assert_true(rows[i - 1].all.ns >= rows[i].all.ns);
    assert_int_equal(clv_profile_sum(nodes, 0, CLV_PROFILE_OPS, rows), 0);
}

// ---- trace ----------------------------------------------------------------------------------------------------------

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static int count(const char *text, const char *part) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) n++;
    return n;
}

TEST(test_a_trace_holds_every_slice) {
    clv_profile *profile = make_profile(0, 10000);
    model m = build("*=host", profile);
    steps(&m, STEPS);
    destroy(&m);
    char *folder = clv__test_folder(), path[512];
    snprintf(path, sizeof path, "%s/trace.json", folder);
    assert_status(clv_profile_trace(profile, path), CLV_OK, runtime);
    char *text = read_text(path);
    assert_int_equal(count(text, "\"name\":\"slow middle\""), STEPS); // the warm-up too
    assert_int_equal(count(text, "\"name\":\"relu before\""), STEPS);
    assert_int_equal(count(text, "\"name\":\"upload\""), STEPS);
    assert_int_equal(count(text, "\"name\":\"feed\""), STEPS);
    assert_int_equal(count(text, "\"name\":\"fetch\""), STEPS);
    assert_holds(text, "\"variant\":\"reference\",\"bytes\":500,\"flops\":1000");
    assert_holds(text, "\"name\":\"memory (bytes)\"");
    assert_int_equal(clv_profile_info_get(profile).traced_steps, STEPS);
    assert_int_equal(clv_profile_info_get(profile).left_out_steps, 0);
    free(text);
    // a folder that is not there: one sentence
    snprintf(path, sizeof path, "%s/nowhere/trace.json", folder);
    assert_status(clv_profile_trace(profile, path), CLV_E_IO, runtime);
    clv_profile_destroy(profile);
    free(folder);
}

/** When there is no more room, whole steps are left out, and figures go on. */
TEST(test_a_trace_that_is_full_has_whole_steps) {
    clv_profile *profile = make_profile(0, 100);
    model m = build("*=host", profile);
    steps(&m, 12);
    destroy(&m);
    char *folder = clv__test_folder(), path[512];
    snprintf(path, sizeof path, "%s/trace.json", folder);
    assert_status(clv_profile_trace(profile, path), CLV_OK, runtime);
    char *text = read_text(path);
    const clv_profile_info info = clv_profile_info_get(profile);
    const int64_t kept = info.traced_steps, left_out = info.left_out_steps;
    print_message("%d steps kept, %d left out\n", (int)kept, (int)left_out);
    assert_true(kept > 0 && left_out > 0 && kept + left_out == 12);
    assert_int_equal(count(text, "\"name\":\"slow middle\""), kept);
    assert_int_equal(count(text, "\"name\":\"read\""), kept);
    assert_int_equal(clv_profile_run_get(profile, 0).steps, 10);
    free(text);
    clv_profile_destroy(profile);
    free(folder);
}

TEST(test_mistakes) {
    clv_profile *profile;
    assert_status(clv_profile_create(runtime, &(clv_profile_config){.warm_up = -1}, &profile), CLV_E_VALUE,
                  runtime);
    assert_string_equal(clv_runtime_error(runtime), "a profile of -1 warm-up steps and 0 slices");
    assert_null(profile);
    assert_status(clv_profile_create(runtime, &(clv_profile_config){.slices = -2}, &profile), CLV_E_VALUE,
                  runtime);
    assert_status(clv_profile_create(runtime, &(clv_profile_config){.slices = INT64_MAX / 2}, &profile),
                  CLV_E_HOST_MEMORY, runtime);
    profile = clv__test_profile(runtime, NULL);
    assert_status(clv_profile_trace(profile, "trace.json"), CLV_E_STATE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "nothing was kept for a trace: the profile has room for no slices");
    clv_profile_destroy(profile);
    clv_profile_destroy(NULL);
}

TEST_MAIN(setup, teardown)
