// SPDX-License-Identifier: Apache-2.0
// How a training step is handed to a device, as a null device saw it: no call that waits for the device, batches on the queue of
// uploads, results on that of downloads, and no command of the compute queue over bytes that another queue still writes or reads.
// And staging that the driver allocates, on devices that are here.
#include "backends/null/null.h"
#include "cleave/nn.h"
#include "cleave/optim.h"
#include "cleave/profile.h"
#include "cleave/train.h"
#include "exec/run.h"
#include "exec/session.h"
#include "harness/harness.h"

enum { BATCH = 8, MOST = 512, STEPS = 3 };

TEST_RUNTIME
static const char *const specs[] = {"null:0", "null:1"};

static clv_device *find(const char *name) {
    return clv__test_device(runtime, name);
}

FIXTURE(setup) {
    runtime =
        clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true, .tuning = "none"});
}

// ---- reading a trace --------------------------------------------------------------------------------------------------

/** Bytes that another queue still works on. */
typedef struct pending {
    unsigned buffer;
    size_t from, bytes;
    bool up;       // an upload, else a download
    bool recorded; // there is an event behind it
} pending;

typedef struct reader {
    pending list[MOST];
    int n, uploads, downloads, launches, waits;
} reader;

static bool begins(const char *line, const char *start) {
    return strncmp(line, start, strlen(start)) == 0;
}

static void add_pending(reader *r, const char *range, bool up) {
    pending *p = &r->list[r->n++];
    assert_true(r->n < MOST);
    *p = (pending){.up = up};
    assert_int_equal(sscanf(range, "b%u+%zu:%zu", &p->buffer, &p->from, &p->bytes), 3);
}

/** All of a queue that was recorded is done before what the compute queue gets next. */
static void await(reader *r, bool up) {
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        if (r->list[i].up != up || (!up && !r->list[i].recorded)) r->list[n++] = r->list[i];
    }
    r->n = n;
    r->waits++;
}

/** A command of the compute queue: are its bytes free? */
static void check_free(const reader *r, const char *line) {
    for (const char *at = line; (at = strstr(at, " b")) != NULL; at++) {
        unsigned buffer;
        size_t from, bytes;
        if (sscanf(at, " b%u+%zu:%zu", &buffer, &from, &bytes) != 3) continue;
        for (int i = 0; i < r->n; i++) {
            const pending *p = &r->list[i];
            if (p->buffer == buffer && from < p->from + p->bytes && p->from < from + bytes)
                fail_msg("'%s' touches bytes that are still being %s", line, p->up ? "written" : "read");
        }
    }
}

static void look_at(reader *r, const char *line) {
    if (begins(line, "write upload ")) {
        add_pending(r, line + strlen("write upload "), true);
        r->uploads++;
    } else if (begins(line, "read download ")) {
        add_pending(r, line + strlen("read download "), false);
        r->downloads++;
    } else if (begins(line, "record download")) {
        for (int i = 0; i < r->n; i++) r->list[i].recorded = true;
    } else if (begins(line, "wait compute for ")) {
        await(r, strcmp(line, "wait compute for upload") == 0);
    } else if (begins(line, "launch") || begins(line, "fill") || begins(line, "copy") ||
               begins(line, "write b")) {
        check_free(r, line);
        r->launches++;
    } else if (begins(line, "read b") || begins(line, "synchronize") || begins(line, "blocks") ||
               begins(line, "keep times")) {
        fail_msg("a step has '%s'", line);
    }
}

static int count_lines(clv_device *device, const char *wanted) {
    char *trace = clv__null_trace(device->open), *rest = trace;
    int n = 0;
    assert_non_null(trace);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) n += strcmp(line, wanted) == 0;
    free(trace);
    return n;
}

/** What a device was told, from the first line to the last. */
static reader check_trace(clv_device *device) {
    reader *r = calloc(1, sizeof *r);
    char *trace = clv__null_trace(device->open), *rest = trace;
    assert_true(r && trace);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) look_at(r, line);
    const reader found = *r;
    free(trace);
    free(r);
    return found;
}

// ---- ways to train ----------------------------------------------------------------------------------------------------

typedef struct way {
    const char *name, *place;
    int replicas, micro_batches;
} way;

static clv_graph *graph_of(const char *model, const way *w) {
    clv_graph *graph;
    const clv_train_config config = {
        .model = clv_model_find(model),
        .batch = BATCH,
        .optimizer = {.kind = CLV_ADAM},
        .micro_batches = w->micro_batches,
        .placement = {.replicas = w->replicas ? specs : NULL, .n_replicas = w->replicas},
    };
    assert_non_null(config.model);
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, BATCH, &graph), CLV_OK, runtime);
    for (int i = 0; i < clv_graph_info_get(graph).n_parameters;
         i += 3) { // gradients and parameters are read as well
        char name[32];
        snprintf(name, sizeof name, "gradient %d", i);
        clv_output(clv_gradient(clv_parameter_get(graph, i)), name);
    }
    return graph;
}

static void feed_all(clv_run *run) {
    static union {
        float f[1 << 18];
        int32_t i[1 << 18];
    } data;
    const clv_plan *plan = run->plan;
    for (int p = 0; p < plan->n_places; p++) {
        for (int i = 0; i < plan->places[p].n_inputs; i++) {
            const clv_tensor *input = plan->values[plan->places[p].inputs[i]].tensor;
            if (input == plan->graph->random) continue;
            assert_true(clv_tensor_bytes(input) <= sizeof data);
            for (int k = 0; k < (int)(clv_tensor_bytes(input) / 4); k++) {
                if (clv_tensor_dtype(input) == CLV_DTYPE_F32)
                    data.f[k] = 0.05f * (float)(k % 7 + 1);
                else
                    data.i[k] = k % 10;
            }
            assert_status(clv_run_feed(run, input, &data, clv_tensor_bytes(input)), CLV_OK, runtime);
        }
    }
}

static void check_way(const char *model, const way *w) {
    clv_graph *graph = graph_of(model, w);
    clv_plan *plan =
        clv__test_plan(runtime, graph, &(clv_plan_config){.device = find("null:0"), .place = w->place});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int p = 0; p < plan->n_places; p++) {
        assert_int_equal(count_lines(plan->places[p].device, "keep times"), 0); // nobody has asked
        clv__null_trace_reset(plan->places[p].device->open);
    }
    for (int i = 0; i < STEPS; i++) {
        feed_all(run);
        assert_status(clv_run_step(run, NULL), CLV_OK, runtime);
    }
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    for (int p = 0; p < plan->n_places; p++) {
        const reader r = check_trace(plan->places[p].device);
        print_message("%s, %s, place %d: %d uploads, %d downloads, %d commands, %d waits\n", model, w->name,
                      p, r.uploads, r.downloads, r.launches, r.waits);
        assert_true(r.launches > 0 && (plan->places[p].n_inputs == 0 || r.uploads >= STEPS));
        assert_true(plan->places[p].n_outputs == 0 || r.downloads >= STEPS);
    }
    clv__test_end(run, session, plan, graph);
}

TEST(test_a_step_waits_for_nothing) {
    static const way ways[] = {
        {.name = "plain"},
        {.name = "micro-batches", .micro_batches = 4},
        {.name = "replicas", .replicas = 2},
        {.name = "replicas, micro-batches", .replicas = 2, .micro_batches = 2},
        {.name = "placed", .place = "*=null:0,fc2*=null:1"},
        {.name = "placed, micro-batches", .place = "*=null:0,fc2*=null:1", .micro_batches = 4},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        check_way("mlp", &ways[i]);
        check_way("cnn", &ways[i]);
    }
}

/** Queues keep times from the first who asks on: a program, or a profile's run. */
TEST(test_times_are_kept_when_asked_for) {
    clv_device *device = find("null:0");
    assert_status(clv_device_activity_start(device), CLV_OK, runtime);
    assert_int_equal(count_lines(device, "keep times"), 1);
    assert_status(clv_device_activity_start(device), CLV_OK, runtime);
    assert_int_equal(count_lines(device, "keep times"), 1);
    clv_graph *graph = graph_of("mlp", &(way){.name = "profiled"});
    device = find("null:1");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_profile *profile = clv__test_profile(runtime, NULL);
    clv_session_set_profile(session, profile);
    clv__null_trace_reset(device->open);
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_int_equal(count_lines(device, "keep times"), 1);
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_profile_destroy(profile);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

// ---- staging ----------------------------------------------------------------------------------------------------------

/** Losses of a few steps, with staging of the driver's or ours. */
static void train(clv_device *device, bool drivers, float *losses) {
    clv_graph *graph;
    const bool host_memory = device->traits.host_memory;
    device->traits.host_memory = !drivers;
    const clv_train_config config = {
        .model = clv_model_find("mlp"), .batch = BATCH, .optimizer = {.kind = CLV_SGD}};
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, BATCH, &graph), CLV_OK, runtime);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    const clv__memory *staging = &session->arenas[0]->staging;
    assert_true((staging->buffer != NULL) == drivers && staging->pointer);
    const clv_tensor *loss = plan->values[plan->places[0].outputs[0]].tensor;
    assert_int_equal(clv_tensor_bytes(loss), sizeof *losses);
    for (int i = 0; i < STEPS; i++) {
        int64_t ticket;
        feed_all(run);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        assert_status(clv_run_fetch(run, ticket, loss, &losses[i], sizeof *losses), CLV_OK, runtime);
    }
    assert_int_equal(clv_device_memory(device).category[CLV_STAGING].current, staging->bytes);
    assert_int_equal(clv_device_memory(device).all.current,
                     clv_plans_memory(&plan, 1, device).predicted_peak_bytes);
    clv__test_end(run, session, plan, graph);
    assert_int_equal(clv_device_memory(device).all.current, 0);
    device->traits.host_memory = host_memory;
}

/** Where the device reaches it by itself: the same bits through it, each of its bytes in the account. */
TEST(test_staging_of_the_drivers) {
    clv_runtime *real = clv__test_runtime(&(clv_runtime_config){.tuning = "none"}), *null = runtime;
    float ours[STEPS], theirs[STEPS];
    runtime = real;
    for (int i = 0; i < clv_runtime_info_get(real).n_devices; i++) {
        clv_device *device = clv_device_get(real, i);
        if (!device->info.usable || !device->backend->staging_create) continue;
        train(device, false, ours);
        train(device, true, theirs);
        print_message("%s: losses %g, %g, %g\n", device->info.name, (double)ours[0], (double)ours[1],
                      (double)ours[2]);
        assert_true(ours[0] > 0 && ours[0] != ours[2]);
        assert_memory_equal(ours, theirs, sizeof ours);
    }
    runtime = null;
    clv_runtime_destroy(real);
}

TEST_MAIN(setup, end_runtime)
