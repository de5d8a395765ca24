// SPDX-License-Identifier: Apache-2.0
// Micro-batches: the order in which each place works (1F1B), what it holds meanwhile, and that losses, gradients, dropout and
// running statistics are those of the batch that is not cut. Orders are looked at on null devices; runs use the host and what
// OpenCL devices there are, two parts of a CPU among them (unit_schedule_parts).
#include <math.h>

#include "backends/null/null.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "device/kernel_sources.h"
#include "harness/parallel.h"
#include "placement/pace.h"
#include "unit/world.h"

// ---- a model of three layers ------------------------------------------------------------------------------------------

enum { WIDTH = 24, CLASSES = 5, BATCH = 10, MOST = 4096 };

/** What the model is to have besides. */
typedef struct features {
    bool dropout, norm, tied, logarithm, adam;
} features;

/** Tests about memory want activations that are large beside the weights. */
static int64_t width_of_batch = BATCH;

static clv_tensor *layer(clv_tensor *x, const char *name, int64_t out, const char *weight_of) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!weight_of) return clv_nn_linear(x, name, out, NULL);
    clv_scope_push(graph, weight_of); // computed where `name` is, with the weight of another
    clv_tensor *weight = clv_parameter(graph, "weight", CLV_SHAPE(out, WIDTH), (clv_init){0});
    clv_scope_pop(graph);
    clv_scope_push(graph, name);
    x = clv_linear(x, weight, NULL);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *body(clv_tensor *const *tensors, void *user) {
    clv_tensor *x = tensors[0], *labels = tensors[1];
    const features *with = user;
    x = clv_relu(layer(x, "a", WIDTH, NULL));
    if (with->norm) x = clv_nn_batch_norm(x, "a_norm", NULL);
    if (with->dropout) x = clv_nn_dropout(x, 0.4f);
    x = clv_relu(layer(x, "b", WIDTH, NULL));
    x = clv_relu(layer(x, "c", WIDTH, with->tied ? "a" : NULL));
    if (with->dropout) x = clv_nn_dropout(x, 0.2f);
    return clv_cross_entropy(clv_nn_linear(x, "c_out", CLASSES, NULL), labels);
}

typedef struct step {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss;
    clv_plan *plan;
} step;

static step make(const char *place, int64_t n, features with) {
    step s = {0};
    s.graph = clv__test_graph(runtime);
    clv_graph_set_training(s.graph, true);
    s.x = clv_input(s.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(width_of_batch, WIDTH));
    s.labels = clv_input(s.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(width_of_batch));
    s.loss = clv_micro_batches((clv_tensor *[]){s.x, s.labels}, 2, n, body, &with);
    if (with.logarithm) s.loss = clv_log(s.loss);
    clv_output(s.loss, "loss");
    clv_backward(s.loss);
    for (int i = 0; i < clv_graph_info_get(s.graph).n_parameters; i++) {
        char name[64];
        clv_tensor *parameter = clv_parameter_get(s.graph, i);
        snprintf(name, sizeof name, "gradient.%s", clv_tensor_name(parameter));
        clv_output(clv_gradient(parameter), name);
    }
    if (with.adam) clv_optimizer_add(s.graph, &(clv_optimizer_config){.kind = CLV_ADAM});
    s.plan = clv__test_plan(runtime, s.graph, &(clv_plan_config){.place = place});
    return s;
}

static void unmake(step *s) {
    clv_plan_destroy(s->plan);
    clv_graph_destroy(s->graph);
}

// ---- orders -----------------------------------------------------------------------------------------------------------

/** What a place does, as "F0 F1 B0 ...", U for updates; constants that belong to no micro-batch are left out. */
static void tell_order(const clv_plan *plan, int place, char *text, size_t bytes) {
    size_t used = 0;
    char last[16] = "";
    *text = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        if (node->work != CLV__COMPUTE || node->place != place || node->node->io.n_in == 0) continue;
        char now[16] = "U";
        if (node->node->phase != CLV__UPDATE)
            snprintf(now, sizeof now, "%c%d", node->node->phase == CLV__FORWARD ? 'F' : 'B',
                     node->node->micro_batch);
        if (strcmp(now, last) == 0) continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " " : "", now);
        strcpy(last, now);
    }
}

static void check_order(const char *places, int n, const char *const *wanted) {
    step s = make(places, n, (features){.dropout = true, .adam = true});
    char text[512];
    for (int place = 0; place < s.plan->n_places; place++) {
        tell_order(s.plan, place, text, sizeof text);
        assert_string_equal(text, wanted[place]);
    }
    unmake(&s);
}

TEST(test_one_forward_one_backward) {
    check_order("*=null", 4, (const char *[]){"F0 B0 F1 B1 F2 B2 F3 B3 U"});
    check_order("a*=null:0,b=null:0,c*=null:1", 4,
                (const char *[]){"F0 F1 B0 F2 B1 F3 B2 B3 U", "F0 B0 F1 B1 F2 B2 F3 B3 U"});
    check_order("a*=null:0,b=null:1,c*=host", 5,
                (const char *[]){"F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 U", "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 U",
                                 "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 U"});
    // fewer micro-batches than stages
    check_order("a*=null:0,b=null:1,c*=host", 2,
                (const char *[]){"F0 F1 B0 B1 U", "F0 F1 B0 B1 U", "F0 B0 F1 B1 U"});
    // the placement names the last stage first: stages are found from the data
    check_order("c*=null:1,a*=null:0,b=null:0", 3,
                (const char *[]){"F0 B0 F1 B1 F2 B2 U", "F0 F1 B0 F2 B1 B2 U"});
    // a device that has the first and the last stage
    check_order("a*=null:0,b=null:1,c*=null:0", 3,
                (const char *[]){"F0 F1 F0 B0 F1 B1 F2 B0 F2 B2 B1 B2 U", "F0 F1 B0 F2 B1 B2 U"});
}

/** What a null device was told in a step: F for the slice that each forward pass begins with, B for each gradient of a bias,
 *  which the kernel `sum` makes, < received, > sent or read back. */
static void tell_trace(const char *device, const char *sum, char *text, size_t bytes) {
    size_t used = 0;
    char *trace = clv__null_trace(find(device)->open), *rest = trace;
    assert_non_null(trace);
    *text = 0;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        const char *what = strncmp(line, "write b", 7) == 0          ? "<"
                           : strncmp(line, "read download", 13) == 0 ? ">"
                           : strncmp(line, "launch copy_", 12) == 0  ? "F"
                           : strncmp(line, sum, strlen(sum)) == 0    ? "B"
                                                                     : "";
        used += (size_t)snprintf(text + used, bytes - used, "%s", what);
    }
    free(trace);
}

static void feed(clv_run *run, const step *s, int turn) {
    float *x = malloc((size_t)width_of_batch * WIDTH * sizeof *x);
    int32_t *labels = malloc((size_t)width_of_batch * sizeof *labels);
    assert_true(x && labels);
    for (int64_t i = 0; i < width_of_batch * WIDTH; i++) x[i] = (float)((i * 7 + turn * 3) % 23) / 11 - 1;
    for (int64_t i = 0; i < width_of_batch; i++) labels[i] = (int32_t)((i * 3 + turn) % CLASSES);
    assert_status(clv_run_feed(run, s->x, x, clv_tensor_bytes(s->x)), CLV_OK, runtime);
    assert_status(clv_run_feed(run, s->labels, labels, clv_tensor_bytes(s->labels)), CLV_OK, runtime);
    free(x);
    free(labels);
}

/** The commands come in the plan's order: values are sent as soon as they are made, received just before they are used. */
TEST(test_devices_are_told_so) {
    if (!clv__kernel_sources[0].stem) skip(); // a null device is told of kernels, and this library has none
    step s = make("a*=null:0,b=null:0,c*=null:1", 4, (features){0});
    char text[256];
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, s.plan);
    clv__null_trace_reset(find("null:0")->open);
    clv__null_trace_reset(find("null:1")->open);
    feed(run, &s, 0);
    assert_status(clv_run_step(run, NULL), CLV_OK, runtime);
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    tell_trace("null:0", "launch row ", text, sizeof text); // at the end it gives back four gradients
    assert_string_equal(text, "F>F><BBF><BBF><BB<BB>>>>");
    tell_trace("null:1", "launch reduce_", text,
               sizeof text); // sent before the bias of c is added up; at the end the loss too
    assert_string_equal(text, "F<B>BF<B>BF<B>BF<B>B>>>>>");
    clv_run_destroy(run);
    clv_session_destroy(session);
    unmake(&s);
}

/** relu on the host and relu on a null device: the parts of the step that each is foreseen to take. */
static void foresee(clv_runtime *with, double *host_part, double *null_part) {
    clv_device *host = clv__test_device(with, "host");
    clv_device *null = clv__test_device(with, "null:0");
    clv_graph *graph = clv__test_graph(with);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, WIDTH));
    clv_output(clv_relu(clv_to(clv_relu(clv_to(x, "host")), "null:0")), "y");
    clv_plan *plan = clv__test_plan(with, graph, &(clv_plan_config){.device = host});
    *host_part = clv_plan_device_info_get(plan, host).busy;
    *null_part = clv_plan_device_info_get(plan, null).busy;
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

/** By measured speeds, as soon as all of the plan's devices have one. */
TEST(test_measured_speeds_count) {
    char *folder = clv__test_folder();
    clv_runtime *with = clv__test_runtime(
        &(clv_runtime_config){.no_opencl = true, .null_devices = true, .cache_dir = folder});
    double a, b;
    clv_device *host = clv__test_device(with, "host");
    clv_device *null = clv__test_device(with, "null:0");
    foresee(with, &a, &b);
    assert_true(fabs(a - 0.5) < 1e-9 && fabs(b - 0.5) < 1e-9);
    clv__speed speed = {.flops = 1e12, .bytes = 1e6, .read = 1e12, .write = 1e12, .launch = 1e-12}, kept;
    assert_false(clv__speed_kept(host, &kept));
    clv__speed_keep(host, &speed);
    assert_true(clv__speed_kept(host, &kept));
    assert_memory_equal(&kept, &speed, sizeof speed);
    foresee(with, &a, &b); // nothing is known of the other
    assert_true(fabs(a - 0.5) < 1e-9);
    speed.bytes = 4e6;
    clv__speed_keep(null, &speed);
    foresee(with, &a, &b);
    assert_true(fabs(a - 0.8) < 1e-3 && fabs(b - 0.2) < 1e-3);
    clv_runtime_destroy(with);
    free(folder);
}

/** Half of the time each, where one waits for the other; n / (n + 1) in a pipeline of two equal stages, all of it alone. */
TEST(test_waits_are_foreseen) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, WIDTH));
    clv_output(clv_relu(clv_to(clv_relu(clv_to(x, "null:0")), "null:1")), "y");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = find("null:0")});
    assert_true(fabs(clv_plan_device_info_get(plan, find("null:0")).busy - 0.5) < 1e-9);
    assert_true(fabs(clv_plan_device_info_get(plan, find("null:1")).busy - 0.5) < 1e-9);
    assert_true(clv_plan_device_info_get(plan, find("host")).busy == 0);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    double before = 0;
    for (int n = 1; n <= 8; n *= 2) {
        step s = make("a*=null:0,b=null:0,c*=null:1", n, (features){0});
        double busy = clv_plan_device_info_get(s.plan, find("null:0")).busy;
        assert_true(busy > before && busy < 1);
        before = busy;
        unmake(&s);
    }
    step s = make("*=null", 4, (features){0});
    assert_true(clv_plan_device_info_get(s.plan, find("null")).busy == 1);
    unmake(&s);
}

// ---- memory -----------------------------------------------------------------------------------------------------------

/** The most micro-batches whose results of the forward pass a place holds at once. */
static int most_in_flight(const clv_plan *plan, int place) {
    int most = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        bool held[64] = {false};
        int n = 0;
        for (size_t v = 0; v < plan->n_values; v++) {
            const clv__value *value = &plan->values[v];
            const clv__node *by = value->tensor->node;
            if (!by || by->phase != CLV__FORWARD || value->place != place || value->root != (int)v ||
                value->segment != CLV__IN_ACTIVATIONS || value->bytes <= 64 || value->first > (int)at ||
                value->last < (int)at)
                continue;
            n += !held[by->micro_batch];
            held[by->micro_batch] = true;
        }
        if (n > most) most = n;
    }
    return most;
}

static uint64_t activations(const clv_plan *plan, int place) {
    clv_plan *plans[] = {(clv_plan *)plan};
    return clv_plans_memory(plans, 1, plan->places[place].device).category[CLV_ACTIVATIONS];
}

TEST(test_what_is_held_is_bounded) {
    const char *three = "a*=null:0,b=null:1,c*=host";
    width_of_batch = 4096;
    step whole = make(three, 1, (features){0});
    for (int n = 4; n <= 16; n *= 2) {
        step cut = make(three, n, (features){0});
        for (int place = 0; place < 3; place++) {
            assert_int_equal(most_in_flight(cut.plan, place), 3 - place);
            // a part more for what only passes through
            assert_true(activations(cut.plan, place) <=
                        activations(whole.plan, place) * (uint64_t)(4 - place) / (uint64_t)n);
        }
        unmake(&cut);
    }
    step one = make("*=null", 1, (features){0}), cut = make("*=null", 16, (features){0});
    assert_int_equal(most_in_flight(cut.plan, 0), 1);
    assert_true(activations(cut.plan, 0) <= activations(one.plan, 0) / 12); // and a slice of x
    // one set of gradients, however many parts are added: the first part's becomes the sum
    int shared = 0;
    for (size_t v = 0; v < cut.plan->n_values; v++) {
        const clv__value *value = &cut.plan->values[v];
        for (int i = 0; i < clv_graph_info_get(cut.graph).n_parameters; i++)
            shared += value->tensor == clv_gradient(clv_parameter_get(cut.graph, i)) && value->root != (int)v;
    }
    assert_int_equal(shared, clv_graph_info_get(cut.graph).n_parameters);
    assert_int_equal(clv_plans_memory(&cut.plan, 1, NULL).category[CLV_GRADIENTS],
                     clv_plans_memory(&one.plan, 1, NULL).category[CLV_GRADIENTS]);
    unmake(&cut);
    unmake(&one);
    unmake(&whole);
    width_of_batch = BATCH;
}

// ---- the same numbers ---------------------------------------------------------------------------------------------------

/** Loss and all gradients of the last of some steps; returns how many numbers. Memory is as predicted. */
static int compute(const char *place, int64_t n, features with, int steps, float *out) {
    step s = make(place, n, with);
    int64_t ticket = -1;
    int count = 1;
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 5});
    for (int i = 0; i < clv_plan_info_get(s.plan).n_devices; i++)
        clv_device_memory_reset_peak(clv_plan_device_get(s.plan, i));
    clv_run *run = clv__test_run(runtime, session, s.plan);
    for (int i = 0; i < steps; i++) {
        feed(run, &s, i);
        if (with.adam) {
            float hyper[CLV_HYPER_VALUES];
            clv_optimizer_hyper_values(s.graph, i + 1, 0.003, hyper);
            assert_status(clv_run_feed(run, clv_optimizer_hyper(s.graph), hyper, sizeof hyper), CLV_OK,
                          runtime);
        }
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, s.loss, out, sizeof *out), CLV_OK, runtime);
    for (int i = 0; i < clv_graph_info_get(s.graph).n_parameters; i++) {
        clv_tensor *gradient = clv_gradient(clv_parameter_get(s.graph, i));
        assert_true(count + clv_tensor_numel(gradient) <= MOST);
        assert_status(clv_run_fetch(run, ticket, gradient, out + count, clv_tensor_bytes(gradient)), CLV_OK,
                      runtime);
        count += (int)clv_tensor_numel(gradient);
    }
    for (int i = 0; i < clv_plan_info_get(s.plan).n_devices; i++) {
        clv_device *device = clv_plan_device_get(s.plan, i);
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_plans_memory(&s.plan, 1, device).predicted_peak_bytes);
    }
    clv_run_destroy(run);
    clv_session_destroy(session);
    unmake(&s);
    return count;
}

static void assert_near(const float *a, const float *b, int n, double tolerance) {
    double most = 0;
    for (int i = 1; i < n; i++) most = fmax(most, fabs((double)b[i]));
    assert_true(most > 1e-3);
    assert_true(fabs((double)a[0] - (double)b[0]) <= tolerance * fabs((double)b[0]));
    for (int i = 1; i < n; i++) {
        if (fabs((double)a[i] - (double)b[i]) <= tolerance * most) continue;
        print_error("number %d of %d is %.9g, not %.9g\n", i, n, (double)a[i], (double)b[i]);
        fail();
    }
}

/** The device to compute on: the best that is not null, nor an emulator that would take minutes. */
static const char *device_name(int index) {
    int i = -1;
    clv_device *device = clv__test_next_device(runtime, &i);
    for (; index > 0 && device; index--) device = clv__test_next_device(runtime, &i);
    return device ? clv_device_info_get(device)->name : "host";
}

TEST(test_gradients_are_those_of_the_whole_batch) {
    static const int64_t parts[] = {2, 3, 4, 7, BATCH}; // BATCH is 10: parts of one and two rows too
    static float whole[MOST], cut[MOST];
    const features with = {.dropout = true};
    char place[64];
    for (int d = 0; d < 2; d++) {
        snprintf(place, sizeof place, "*=%s", d ? "host" : device_name(0));
        int n = compute(place, 1, with, 1, whole);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            assert_int_equal(compute(place, parts[i], with, 1, cut), n);
            assert_near(cut, whole, n, 1e-6);
        }
    }
}

/** Two and three stages; on devices of one kind the bits are those of one of them. */
TEST(test_stages_compute_the_same) {
    static float one[MOST], many[MOST];
    const features with = {.dropout = true, .norm = true};
    const char *first = device_name(0), *second = device_name(1);
    bool twins =
        strncmp(first, "cpu:", 4) == 0 && strncmp(second, "cpu:", 4) == 0 && getenv("CLV_TEST_TWINS");
    char place[128];
    snprintf(place, sizeof place, "*=%s", first);
    int n = compute(place, 4, with, 3, one);
    snprintf(place, sizeof place, "a*=%s,b=%s,c*=%s", first, second, second);
    assert_int_equal(compute(place, 4, with, 3, many), n);
    if (twins)
        assert_memory_equal(many, one, (size_t)n * sizeof *one);
    else
        assert_near(many, one, n, 2e-5);
    snprintf(place, sizeof place, "a*=%s,b=%s,c*=%s", second, first, second); // there and back
    assert_int_equal(compute(place, 4, with, 3, many), n);
    if (twins) assert_memory_equal(many, one, (size_t)n * sizeof *one);
    assert_near(many, one, n, 2e-5);
    snprintf(place, sizeof place, "a*=%s,b=host,c*=%s", first, second);
    assert_int_equal(compute(place, 4, with, 3, many), n);
    assert_near(many, one, n, 2e-5);
}

TEST(test_training_goes_the_same_way) {
    static float whole[MOST], cut[MOST];
    const features with = {.dropout = true, .adam = true};
    char place[128];
    snprintf(place, sizeof place, "*=%s", device_name(0));
    compute(place, 1, with, 100, whole);
    snprintf(place, sizeof place, "a*=%s,b=%s,c*=%s", device_name(0), device_name(1), device_name(1));
    compute(place, 4, with, 100, cut);
    assert_true(fabs((double)cut[0] - (double)whole[0]) <= 1e-4 * (double)whole[0]);
}

/** Where backward passes have to wait for what comes late the order gives way, and the numbers stay right. */
TEST(test_what_cannot_be_a_pipeline_is_right) {
    static float whole[MOST], cut[MOST];
    const features odd[] = {
        {.tied = true, .dropout = true}, {.logarithm = true}, {.tied = true, .logarithm = true}};
    char place[128];
    snprintf(place, sizeof place, "a*=%s,b=host,c*=host", device_name(0));
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int n = compute("*=host", 1, odd[i], 1, whole);
        assert_int_equal(compute("*=host", 3, odd[i], 1, cut), n);
        assert_near(cut, whole, n, 2e-6);
        assert_int_equal(compute(place, 3, odd[i], 1, cut), n);
        assert_near(cut, whole, n, 2e-5);
    }
}

// ---- replicas ---------------------------------------------------------------------------------------------------------

static clv_tensor *drop_twice(clv_tensor *x, void *user) {
    return clv_dropout(clv_dropout(x, 0.3f), 0.2f);
}

static void drop(const char *const *devices, int n, float *out) {
    int64_t ticket;
    float ones[BATCH * WIDTH];
    for (int i = 0; i < BATCH * WIDTH; i++) ones[i] = 1;
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, WIDTH));
    clv_tensor *y = parallel_of(x, devices, NULL, n, drop_twice, NULL);
    clv_output(y, "y");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = find(devices[0])});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 9});
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, x, ones, sizeof ones), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, out, sizeof ones), CLV_OK, runtime);
    clv__test_end(run, session, plan, graph);
}

TEST(test_replicas_drop_what_one_device_drops) {
    static float one[BATCH * WIDTH], two[BATCH * WIDTH];
    const char *name = device_name(0);
    if (strcmp(name, "host") == 0) skip();
    int zeros = 0;
    drop((const char *[]){"host"}, 1, one);
    drop((const char *[]){"host", name}, 2, two);
    for (int i = 0; i < BATCH * WIDTH; i++) {
        assert_int_equal(two[i] == 0, one[i] == 0);
        zeros += one[i] == 0;
    }
    assert_true(zeros > BATCH * WIDTH / 4 && zeros < BATCH * WIDTH * 3 / 4);
}

// ---- batch norm -------------------------------------------------------------------------------------------------------

/** Running mean and var of `a` after a step in parts of 3, 3, 2 and 2 rows, or after a step with each of them. */
static void move_statistics(bool cut, float *out) {
    static const int64_t rows[] = {3, 3, 2, 2};
    int64_t first = 0;
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 5});
    for (int part = 0; part < (cut ? 1 : 4); part++) {
        features with = {.norm = true};
        int64_t n = cut ? BATCH : rows[part];
        clv_graph *graph = clv__test_graph(runtime);
        clv_graph_set_training(graph, true);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(n, WIDTH));
        clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(n));
        clv_output(clv_micro_batches((clv_tensor *[]){x, labels}, 2, cut ? 4 : 1, body, &with), "loss");
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.place = "*=host"});
        clv_run *run = clv__test_run(runtime, session, plan);
        float values[BATCH * WIDTH];
        int32_t zeros[BATCH] = {0};
        for (int64_t i = 0; i < n * WIDTH; i++) values[i] = (float)((first * WIDTH + i) * 7 % 23) / 11 - 1;
        assert_status(clv_run_feed(run, x, values, clv_tensor_bytes(x)), CLV_OK, runtime);
        assert_status(clv_run_feed(run, labels, zeros, clv_tensor_bytes(labels)), CLV_OK, runtime);
        assert_status(clv_run_step(run, NULL), CLV_OK, runtime);
        clv_run_destroy(run);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
        first += n;
    }
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "a_norm.running_var" : "a_norm.running_mean";
        assert_status(
            clv_session_read(session, clv_session_find(session, name), out + i * WIDTH, WIDTH * sizeof *out),
            CLV_OK, runtime);
    }
    clv_session_destroy(session);
}

TEST(test_running_statistics_move_part_by_part) {
    float cut[2 * WIDTH], apart[2 * WIDTH];
    move_statistics(true, cut);
    move_statistics(false, apart);
    assert_memory_equal(cut, apart, sizeof cut);
}

// ---- mistakes -----------------------------------------------------------------------------------------------------------

static clv_tensor *cut_again(clv_tensor *const *tensors, void *user) {
    clv_tensor *x = tensors[0], *labels = tensors[1];
    return clv_micro_batches((clv_tensor *[]){x, labels}, 2, 2, body, user);
}

static void refuse(int64_t rows, int64_t labels, int64_t n, clv_loss_layers layers, clv_status status,
                   const char *sentence) {
    features with = {0};
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = rows ? clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(rows, WIDTH))
                         : clv_input(graph, "x", CLV_DTYPE_F32, (clv_shape){0});
    assert_null(
        clv_micro_batches((clv_tensor *[]){x, clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(labels))},
                          2, n, layers, &with));
    assert_status(clv_graph_status(graph), status, runtime);
    assert_string_equal(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(graph);
}

TEST(test_bad_cuts_are_refused) {
    refuse(8, 8, 0, body, CLV_E_VALUE,
           "micro-batches: a batch of 8 samples cannot be cut into 0 parts, each needs at least one");
    refuse(8, 8, -2, body, CLV_E_VALUE,
           "micro-batches: a batch of 8 samples cannot be cut into -2 parts, each needs at least one");
    refuse(8, 8, 9, body, CLV_E_VALUE,
           "micro-batches: a batch of 8 samples cannot be cut into 9 parts, each needs at least one");
    refuse(8, 7, 2, body, CLV_E_SHAPE,
           "micro-batches: x [8,24] and labels [7] must have the same number of rows");
    refuse(0, 7, 2, body, CLV_E_SHAPE,
           "micro-batches: x [] and labels [7] must have the same number of rows");
    refuse(8, 8, 2, cut_again, CLV_E_STATE, "micro-batches: a part of a batch cannot be cut again");
    assert_null(clv_micro_batches((clv_tensor *[]){NULL, NULL}, 2, 2, body, NULL));
}

TEST_MAIN(setup, teardown)
