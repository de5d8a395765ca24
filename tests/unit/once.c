// SPDX-License-Identifier: Apache-2.0
// What a plan for inference makes of parameters alone: that it is made in a run's first step, and again after each way of writing a
// parameter; that it takes the memory that was told, and none where there is none; that results have the same bits as without.
#include <stdatomic.h>

#include "check/subject.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/train.h"
#include "plan/plan.h"
#include "tensor/dtype.h"
#include "unit/world.h"

enum { C = 32, SIZE = 14, CLASSES = 5, NUMEL = C * SIZE * SIZE };

// ---- launches of a step ---------------------------------------------------------------------------------------------------------

static atomic_int launches;
static const clv__backend *counted_backend;

static clv_status count_launch(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event,
                               clv__error *error) {
    launches++;
    return counted_backend->launch(device, kernel, event, error);
}

static clv__backend counting;

static void count_on(clv_device *device) {
    assert_status(clv__device_open(device), CLV_OK, runtime); // it knows the backend by its address
    if (device->backend == &counting) return;                 // a test that failed left it so
    counted_backend = device->backend;
    counting = *device->backend;
    counting.launch = count_launch;
    device->backend = &counting;
}

static void count_off(clv_device *device) {
    device->backend = counted_backend;
}

// ---- a model --------------------------------------------------------------------------------------------------------------------

typedef struct net {
    clv_graph *graph;
    clv_tensor *x, *y;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} net;

/** Convolutions whose weights are packed or transformed, and a product with a weight that is made of another. */
static clv_tensor *layers(clv_tensor *x) {
    const clv_nn_conv2d_config config = {.kernel = {3, 3}, .padding = {1, 1}};
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_relu(clv_nn_conv2d(x, "conv", C, &config));
    x = clv_relu(clv_nn_conv2d(x, "conv2", C, &config));
    x = clv_reshape(x, CLV_SHAPE(1, NUMEL));
    clv_tensor *w =
        clv_parameter(graph, "w", CLV_SHAPE(NUMEL, CLASSES), (clv_init){CLV_INIT_UNIFORM, -0.1f, 0.1f});
    return clv_matmul(x, clv_add(clv_mul_scalar(w, 0.5f), w));
}

static void build(net *n) {
    n->graph = new_graph();
    n->x = clv_input(n->graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, C, SIZE, SIZE));
    n->y = layers(n->x);
    clv_output(n->y, "y");
    assert_status(clv_graph_status(n->graph), CLV_OK, runtime);
}

static net planned(clv_device *device) {
    net n = {0};
    build(&n);
    n.plan = clv__test_plan(runtime, n.graph, &(clv_plan_config){.device = device, .own_session = true});
    return n;
}

static net begin(clv_device *device) {
    net n = planned(device);
    n.session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    n.run = clv__test_run(runtime, n.session, n.plan);
    return n;
}

static void end(net *n) {
    clv__test_end(n->run, n->session, n->plan, n->graph);
}

typedef struct result {
    float y[CLASSES];
    int launches;
} result;

static result step(clv_run *run, const clv_tensor *x, const clv_tensor *y, int salt) {
    static float values[NUMEL];
    result r;
    int64_t ticket;
    for (int i = 0; i < NUMEL; i++) values[i] = (float)((i * 7 + salt * 3) % 17) / 8 - 1;
    const int before = launches;
    assert_status(clv_run_feed(run, x, values, sizeof values), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, r.y, sizeof r.y), CLV_OK, runtime);
    r.launches = launches - before;
    return r;
}

static result one(const net *n, int salt) {
    return step(n->run, n->x, n->y, salt);
}

static int launches_of(const clv_plan *plan, bool once) {
    int n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].once == once) n += (int)plan->nodes[i].launches.n;
    return n;
}

static void same(const result *a, const result *b) {
    assert_memory_equal(a->y, b->y, sizeof a->y);
}

static bool differ(const result *a, const result *b) {
    return memcmp(a->y, b->y, sizeof a->y) != 0;
}

/** The same of a plan in which all is done in each step. */
static result each_step(clv_device *device, const net *like, int salt) {
    net n = planned(device);
    bool changed = false;
    assert_status(clv__plan_each_step(n.plan, &changed), CLV_OK, runtime);
    assert_true(changed && launches_of(n.plan, true) == 0);
    n.session = clv__test_session(runtime, NULL);
    n.run = clv__test_run(runtime, n.session, n.plan);
    for (int i = 0; i < clv_session_info_get(n.session).n_tensors; i++) {
        const clv_session_tensor t = clv_session_get(n.session, i);
        void *values = malloc(t.bytes);
        const int from = clv_session_find(like->session, t.name);
        assert_status(clv_session_read(like->session, from, values, t.bytes), CLV_OK, runtime);
        assert_status(clv_session_write(n.session, i, values, t.bytes), CLV_OK, runtime);
        free(values);
    }
    const result r = one(&n, salt);
    end(&n);
    return r;
}

/** Each device that computes by kernels, as threads and as lanes. */
static void on_each(void (*what)(clv_device *device)) {
    int at = -1;
    for (clv_device *device; (device = clv__test_next_device(runtime, &at));) {
        const clv_execution execution = device->info.execution;
        if (device->info.type == CLV_DEVICE_HOST) continue;
        for (int lanes = 0; lanes < 2; lanes++) {
            device->info.execution = lanes ? CLV_EXECUTION_LANES : CLV_EXECUTION_THREADS;
            count_on(device);
            what(device);
            count_off(device);
        }
        device->info.execution = execution;
    }
}

// ---- when ---------------------------------------------------------------------------------------------------------------------------

static void first_step(clv_device *device) {
    net n = begin(device);
    const int once = launches_of(n.plan, true), each = launches_of(n.plan, false);
    assert_true(once >= 1 && each >= 2);
    for (int salt = 0; salt < 4; salt++) {
        const result r = one(&n, salt), wanted = each_step(device, &n, salt);
        assert_int_equal(r.launches, salt ? each : once + each);
        assert_true(wanted.launches >= once + each);
        same(&r, &wanted);
    }
    clv_run_destroy(n.run); // another run cannot know how far this one came
    n.run = clv__test_run(runtime, n.session, n.plan);
    assert_int_equal(one(&n, 0).launches, once + each);
    end(&n);
}
TEST(test_in_the_first_step) {
    on_each(first_step);
}

/** Write all parameters, `factor` times what they are, in some way. */
static void scale(clv_session *session, clv_session *to, float factor) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor t = clv_session_get(session, i);
        float *values = malloc(t.bytes);
        assert_status(clv_session_read(session, i, values, t.bytes), CLV_OK, runtime);
        for (size_t k = 0; k < t.bytes / sizeof *values; k++) values[k] *= factor;
        assert_status(clv_session_write(to, clv_session_find(to, t.name), values, t.bytes), CLV_OK, runtime);
        free(values);
    }
}

/** The next step has what was written, made anew; the one after has it still. */
static void is_seen(clv_device *device, const net *n, const result *before) {
    const result r = one(n, 1), wanted = each_step(device, n, 1), next = one(n, 1);
    assert_true(differ(&r, before));
    same(&r, &wanted);
    same(&next, &wanted);
    assert_int_equal(r.launches, next.launches + launches_of(n->plan, true));
}

static void after_a_write(clv_device *device) {
    net n = begin(device);
    result r = one(&n, 1);
    scale(n.session, n.session, 0.5f);
    is_seen(device, &n, &r);
    // a file of weights
    net other = begin(device);
    char *folder = clv__test_folder(), path[512];
    snprintf(path, sizeof path, "%s/weights.safetensors", folder);
    scale(n.session, other.session, -3);
    assert_status(clv_weights_save(other.session, path), CLV_OK, runtime);
    r = one(&n, 1);
    assert_status(clv_weights_load(n.session, path), CLV_OK, runtime);
    is_seen(device, &n, &r);
    end(&other);
    free(folder);
    // a read is none
    float w;
    const int bias = clv_session_find(n.session, "conv.bias");
    r = one(&n, 1);
    float *values = malloc(clv_session_get(n.session, bias).bytes);
    assert_status(clv_session_read(n.session, bias, values, clv_session_get(n.session, bias).bytes), CLV_OK,
                  runtime);
    w = values[0];
    assert_true(w == w);
    free(values);
    assert_int_equal(one(&n, 1).launches, launches_of(n.plan, false));
    end(&n);
}
TEST(test_again_after_a_write) {
    on_each(after_a_write);
}

/** A plan that trains and one that does not take turns in a session. */
static void after_training(clv_device *device) {
    net n = planned(device);
    clv_graph *graph = new_graph();
    float x[NUMEL], hyper[CLV_HYPER_VALUES];
    int32_t label = 2;
    clv_tensor *in = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, C, SIZE, SIZE)),
               *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(1)),
               *loss = clv_cross_entropy(layers(in), labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f});
    clv_plan *training = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    assert_int_equal(launches_of(training, true), 0);
    n.session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    clv_plan *both[] = {training, n.plan};
    assert_status(clv_session_reserve(n.session, both, 2), CLV_OK, runtime);
    clv_run *run = clv__test_run(runtime, n.session, training);
    n.run = clv__test_run(runtime, n.session, n.plan);
    for (int i = 0; i < NUMEL; i++) x[i] = (float)(i % 5) / 4 - 0.5f;
    result before = one(&n, 1);
    for (int i = 0; i < 3; i++) {
        int64_t ticket;
        clv_optimizer_hyper_values(graph, i + 1, 0.1, hyper);
        assert_status(clv_run_feed(run, in, x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_feed(run, labels, &label, sizeof label), CLV_OK, runtime);
        assert_status(clv_run_feed(run, clv_optimizer_hyper(graph), hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        assert_status(clv_run_finish(run), CLV_OK, runtime); // all of its launches are counted
        is_seen(device, &n, &before);
        before = one(&n, 1);
    }
    clv_run_destroy(run);
    clv_run_destroy(n.run);
    clv__test_end(NULL, n.session, n.plan, n.graph);
    clv__test_end(NULL, NULL, training, graph);
}
TEST(test_again_after_training) {
    on_each(after_training);
}

/** What is in memory of the program's may change at any time: then it is made in each step. */
static void in_our_memory(clv_device *device) {
    if (!device->traits.host_memory) return;
    net n = planned(device);
    n.session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    assert_status(clv_session_reserve(n.session, &n.plan, 1), CLV_OK, runtime);
    const int at = clv_session_find(n.session, "conv.weight");
    const size_t bytes = clv_session_get(n.session, at).bytes;
    float *weight = aligned_alloc(64, bytes);
    assert_status(clv_session_read(n.session, at, weight, bytes), CLV_OK, runtime);
    assert_status(clv_session_use(n.session, at, weight, bytes), CLV_OK, runtime);
    n.run = clv__test_run(runtime, n.session, n.plan);
    const result r = one(&n, 1);
    for (size_t i = 0; i < bytes / sizeof *weight; i++) weight[i] *= -1;
    const result next = one(&n, 1), wanted = each_step(device, &n, 1);
    assert_true(differ(&r, &next));
    same(&next, &wanted);
    end(&n);
    free(weight);
}
TEST(test_in_memory_of_the_program) {
    on_each(in_our_memory);
}

/** Moved to a device, and back: what was made there before counts no more. */
static void after_a_move(clv_device *device) {
    net n = begin(device);
    const result r = one(&n, 1);
    clv_run_destroy(n.run);
    assert_status(clv_session_move(n.session, NULL, find("host")), CLV_OK, runtime);
    scale(n.session, n.session, 2);
    assert_status(clv_session_move(n.session, NULL, device), CLV_OK, runtime);
    n.run = clv__test_run(runtime, n.session, n.plan);
    is_seen(device, &n, &r);
    end(&n);
}
TEST(test_again_after_a_move) {
    on_each(after_a_move);
}

// ---- which ----------------------------------------------------------------------------------------------------------------------

/** Launches of a toy op: arguments by letter, w and v are parts of its workspace; i an input, o the output. */
static void toy(clv__launches *list, const char *const *texts) {
    enum { BYTES = 256 };
    const size_t w = clv__launch_workspace(list, BYTES), v = clv__launch_workspace(list, BYTES);
    for (; *texts; texts++) {
        clv__launch *launch = clv__launch_kernel(list, "elementwise", "toy");
        for (const char *at = *texts; *at; at++) {
            if (*at == 'w' || *at == 'v') clv__arg_workspace(list, launch, *at == 'w' ? w : v, BYTES);
            if (*at == 'o') clv__arg_out(list, launch, 0);
            if (*at == '0' || *at == '1') clv__arg_in(list, launch, *at - '0');
        }
        clv__launch_grid(launch, 8, 0);
    }
}

/** Input 0 is fed, input 1 a parameter. */
static const struct toy_case {
    const char *launches[6];
    const char *once; // those that are done once
    size_t workspace; // what stays of it
} toys[] = {
    {{"w1", "o0w"}, "w1", 0},
    {{"w1", "v0", "o0wv"}, "w1", 256},
    {{"v0", "w1", "o0wv"}, "w1", 256},
    {{"w1", "vw", "o0v"}, "w1 vw", 256},
    {{"w1", "v1w", "o0v"}, "w1 v1w", 256},
    {{"w1", "w0", "o0w"}, "", 512}, // written in each step
    {{"w1", "v1w", "v0", "o0v"}, "w1", 256},
    {{"w1", "o0w", "w1", "o0w"}, "", 512}, // written again behind what reads it
    {{"w01", "o0w"}, "", 512},
    {{"w1", "o1w", "o0w"}, "w1", 0},
};

static const struct toy_case *toy_now;

static void toy_lower(clv__launches *list, const clv__op_io *io) {
    (void)io;
    toy(list, toy_now->launches);
}

static clv_status toy_infer(clv__op_io *io, clv__error *error) {
    (void)error;
    return clv__one_out(io, io->in[0]);
}

static const clv__variant toy_variants[] = {{"plain", .lower = toy_lower}, {0}};
static const clv__op toy_op = {.name = "toy", .infer = toy_infer, .variants = toy_variants};

static void letters(const clv__plan_node *at, const clv__launch *launch, char *to) {
    for (int k = 0; k < launch->n_slots; k++) {
        const clv__slot *slot = &launch->slots[k];
        *to++ = slot->kind == CLV__SLOT_IN && slot->index < 2 ? (char)('0' + slot->index)
                : slot->kind == CLV__SLOT_OUT && !at->once    ? 'o'
                                                              : 'w';
    }
    *to = 0;
}

TEST(test_which_launches) {
    for (size_t i = 0; i < sizeof toys / sizeof *toys; i++) {
        toy_now = &toys[i];
        clv_graph *graph = new_graph();
        clv_tensor *in[2] = {clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8)),
                             clv_parameter(graph, "w", CLV_SHAPE(8), (clv_init){0})};
        clv_output(clv__node_add(&toy_op, NULL, in, 2, 0), "y");
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = find("null:0")});
        char once[64] = "", one_of[16], wanted[64];
        snprintf(wanted, sizeof wanted, "%s", toys[i].once);
        for (char *at = wanted; *at; at++)
            if (*at == 'v') *at = 'w';
        size_t workspace = 0;
        for (size_t k = 0; k < plan->n_nodes; k++) {
            const clv__plan_node *node = &plan->nodes[k];
            for (size_t l = 0; node->once && l < node->launches.n; l++) {
                letters(node, &node->launches.items[l], one_of);
                snprintf(once + strlen(once), sizeof once - strlen(once), "%s%s", *once ? " " : "", one_of);
            }
            if (!node->once) workspace = node->launches.workspace_bytes;
        }
        if (strcmp(once, wanted) != 0 || workspace != toys[i].workspace)
            fail_msg("case %zu: '%s' once, not '%s'; workspace %zu, not %zu", i, once, wanted, workspace,
                     toys[i].workspace);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
}

// ---- memory -------------------------------------------------------------------------------------------------------------------------

static void holds_what_was_told(clv_device *device) {
    net n = planned(device);
    const uint64_t told = clv_plans_memory(&n.plan, 1, device).predicted_peak_bytes;
    clv_device_memory_reset_peak(device);
    const uint64_t before = clv_device_memory(device).all.current;
    n.session = clv__test_session(runtime, NULL);
    n.run = clv__test_run(runtime, n.session, n.plan);
    (void)one(&n, 0);
    assert_int_equal(clv_device_memory(device).all.peak - before, told);
    end(&n);
    assert_int_equal(clv_device_memory(device).all.current, before);
    // a byte less: nothing is kept
    clv_device_set_budget(device, told - 1);
    n = begin(device);
    assert_int_equal(launches_of(n.plan, true), 0);
    assert_true(clv_device_memory(device).all.current < told);
    const result r = one(&n, 1);
    clv_device_set_budget(device, 0);
    const result wanted = each_step(device, &n, 1);
    same(&r, &wanted);
    end(&n);
    // of two plans each fits, and both do without
    n = planned(device);
    net twin = {0};
    build(&twin);
    (void)clv_parameter(twin.graph, "more", CLV_SHAPE(1), (clv_init){0});
    clv_output(
        clv_mul(twin.y, clv_parameter(twin.graph, "other", CLV_SHAPE(1 << 16, CLASSES), (clv_init){0})), "z");
    twin.plan = clv__test_plan(runtime, twin.graph, &(clv_plan_config){.device = device});
    clv_plan *both[] = {n.plan, twin.plan};
    const uint64_t together = clv_plans_memory(both, 2, device).predicted_peak_bytes;
    clv_device_set_budget(device, together - 1);
    n.session = clv__test_session(runtime, NULL);
    assert_status(clv_session_reserve(n.session, both, 2), CLV_OK, runtime);
    assert_int_equal(launches_of(n.plan, true) + launches_of(twin.plan, true), 0);
    assert_int_equal(clv_device_memory(device).all.current,
                     clv_plans_memory(both, 2, device).predicted_peak_bytes);
    clv_device_set_budget(device, 0);
    clv__test_end(NULL, n.session, n.plan, n.graph);
    clv__test_end(NULL, NULL, twin.plan, twin.graph);
}
TEST(test_memory) {
    on_each(holds_what_was_told);
}

/** Of a convolution's plan with so many channels, which packs its weights. */
static int packed_once(clv_device *device, int64_t channels) {
    const clv_nn_conv2d_config config = {.kernel = {3, 3}, .padding = {1, 1}};
    net n = {.graph = new_graph()};
    n.x = clv_input(n.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, channels, SIZE, SIZE));
    clv_output(clv_nn_conv2d(n.x, "conv", channels, &config), "y");
    n.plan =
        clv__test_plan(runtime, n.graph,
                       &(clv_plan_config){.device = device, .variants = "conv2d=tile", .own_session = true});
    const int once = launches_of(n.plan, true);
    clv__test_end(NULL, NULL, n.plan, n.graph);
    return once;
}

/** What no cache holds takes longer to read than to make of weights: on threads it is made in each step. */
static void no_larger_than_a_cache(clv_device *device) {
    if (device->info.execution != CLV_EXECUTION_THREADS) return;
    assert_int_equal(packed_once(device, C), 1);
    assert_int_equal(packed_once(device, 16 * C), 0);
}
TEST(test_no_larger_than_a_cache) {
    on_each(no_larger_than_a_cache);
}

/** While a session has runs, a plan that would keep more than was reserved keeps nothing. */
static void beside_a_run(clv_device *device) {
    net n = {0};
    n.graph = new_graph();
    n.x = clv_input(n.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, C, SIZE, SIZE));
    n.y = layers(n.x);
    clv_output(n.y, "y");
    n.plan = clv__test_plan(runtime, n.graph, &(clv_plan_config){.device = device, .no_fuse = true});
    assert_int_equal(launches_of(n.plan, true), 0);
    net later = planned(device);
    assert_true(launches_of(later.plan, true) > 0);
    n.session = clv__test_session(runtime, NULL);
    n.run = clv__test_run(runtime, n.session, n.plan);
    later.run = clv__test_run(runtime, n.session, later.plan);
    assert_int_equal(launches_of(later.plan, true), 0);
    const result a = one(&n, 1), b = one(&later, 1);
    same(&a, &b);
    clv_run_destroy(later.run);
    clv__test_end(NULL, NULL, later.plan, later.graph);
    end(&n);
}
TEST(test_beside_a_run) {
    on_each(beside_a_run);
}

// ---- every op -----------------------------------------------------------------------------------------------------------------------

/** Of a sample, one input is fed and the others are parameters. */
typedef struct use {
    const clv__op *op;
    const clv__sample *sample;
    int fed;
    clv_graph *graph;
    clv_tensor *in[CLV__MAX_IN], *out[CLV__MAX_OUT];
    clv_session *session;
    clv_run *run;
} use;

static void make_use(use *u) {
    char name[16];
    u->graph = new_graph();
    for (int i = 0; i < u->sample->n_in; i++) {
        snprintf(name, sizeof name, "in%d", i);
        const clv__desc *desc = &u->sample->in[i];
        u->in[i] = !desc->dtype ? NULL
                   : i == u->fed
                       ? clv_input(u->graph, name, desc->dtype, desc->shape)
                       : clv__persistent(u->graph, name, *desc, (clv_init){0}, CLV_PARAMETERS, false);
    }
    clv_tensor *y = clv__node_add_to(u->graph, u->op, u->sample->attrs, u->in, u->sample->n_in, UINT64_MAX);
    for (int i = 0; y && i < y->node->io.n_out; i++) {
        snprintf(name, sizeof name, "out%d", i);
        clv_output(u->out[i] = y->node->out[i], name);
    }
    assert_status(clv_graph_status(u->graph), CLV_OK, runtime);
}

/** Values of an input, as they are stored; to be freed. */
static void *values_of(const use *u, int i, int salt) {
    const clv__desc *desc = &u->sample->in[i];
    const int64_t n = clv__numel(desc);
    double *wide = calloc((size_t)n + 1, sizeof *wide);
    void *data = calloc((size_t)n + 1, clv_dtype_bytes(desc->dtype));
    clv__fill_values(&u->sample->fill[i], desc, 11, (uint64_t)(i + 100 * salt), wide);
    clv__elements_narrow(desc->dtype, wide, n, data);
    free(wide);
    return data;
}

static void begin_use(use *u, clv_plan *plan) {
    u->session = clv__test_session(runtime, NULL);
    u->run = clv__test_run(runtime, u->session, plan);
    for (int i = 0; i < u->sample->n_in; i++) {
        const int at = u->in[i] && i != u->fed ? clv_session_find(u->session, u->in[i]->name) : -1;
        if (at < 0) continue;
        void *data = values_of(u, i, 0);
        assert_status(clv_session_write(u->session, at, data, clv_tensor_bytes(u->in[i])), CLV_OK, runtime);
        free(data);
    }
}

static unsigned char *outputs_of(use *u, int salt, size_t *bytes) {
    int64_t ticket;
    unsigned char *all = NULL;
    void *data = values_of(u, u->fed, salt);
    assert_status(clv_run_feed(u->run, u->in[u->fed], data, clv_tensor_bytes(u->in[u->fed])), CLV_OK,
                  runtime);
    assert_status(clv_run_step(u->run, &ticket), CLV_OK, runtime);
    *bytes = 0;
    for (int i = 0; i < CLV__MAX_OUT && u->out[i]; i++) {
        const size_t n = clv_tensor_bytes(u->out[i]);
        all = realloc(all, *bytes + n + 1);
        assert_status(clv_run_fetch(u->run, ticket, u->out[i], all + *bytes, n), CLV_OK, runtime);
        *bytes += n;
    }
    free(data);
    return all;
}

/** Has the plan a node some of whose launches are done once, and others in each step? */
static bool is_parted(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++)
        if (plan->nodes[i].once && plan->nodes[i].launches.n) return launches_of(plan, false) > 0;
    return false;
}

/** Bits with and without, over steps that are fed other values. Returns whether there is a difference between the plans. */
static bool compare_use(use u, clv_device *device, const char *pins) {
    clv_plan *plans[2];
    make_use(&u);
    const clv_plan_config config = {.device = device, .variants = pins, .own_session = true};
    if (clv_plan_create(u.graph, &config, &plans[0]) != CLV_OK) { // not with these shapes
        clv_graph_destroy(u.graph);
        return false;
    }
    const bool parted = is_parted(plans[0]);
    if (parted) {
        use both[2] = {u, u};
        plans[1] = clv__test_plan(runtime, u.graph, &config);
        assert_status(clv__plan_each_step(plans[1], NULL), CLV_OK, runtime);
        for (int i = 0; i < 2; i++) begin_use(&both[i], plans[i]);
        for (int salt = 0; salt < 3; salt++) {
            size_t bytes[2];
            unsigned char *a = outputs_of(&both[0], salt, &bytes[0]),
                          *b = outputs_of(&both[1], salt, &bytes[1]);
            if (bytes[0] != bytes[1] || memcmp(a, b, bytes[0]) != 0)
                fail_msg("%s, %s, input %d fed, %s: other bits in step %d", u.op->name, u.sample->label,
                         u.fed, pins, salt);
            free(a);
            free(b);
        }
        for (int i = 0; i < 2; i++) clv_run_destroy(both[i].run), clv_session_destroy(both[i].session);
        clv_plan_destroy(plans[1]);
    }
    clv_plan_destroy(plans[0]);
    clv_graph_destroy(u.graph);
    return parted;
}

/** CLV_ONCE_ALL=1: all samples, not the first of each variant. */
static void every_op(clv_device *device) {
    const int most = getenv("CLV_ONCE_ALL") ? INT32_MAX : 1;
    clv__sample sample;
    int all = 0;
    for (int k = 0; clv__ops[k]; k++) {
        const clv__op *op = clv__ops[k];
        if (op->random || op->mutates || op->view || op->exchanges || op->moves || op->gradient_of) continue;
        for (const clv__variant *v = op->variants; v && v->name; v++) {
            char pins[128];
            snprintf(pins, sizeof pins, "%s=%s", op->name, v->name);
            for (int i = 0, n = 0; n < most && clv__op_sample(op, i, &sample); i++)
                for (int fed = 0; n < most && fed < sample.n_in && sample.n_in > 1; fed++) {
                    const use u = {.op = op, .sample = &sample, .fed = fed};
                    const bool parted = sample.in[fed].dtype && compare_use(u, device, pins);
                    if (parted && most > 1) print_message("%s, %s, input %d fed\n", pins, sample.label, fed);
                    n += parted;
                    all += parted;
                }
        }
    }
    print_message("%d uses on %s\n", all, device->name);
    assert_true(all > 0);
}
TEST(test_every_op) {
    on_each(every_op);
}

TEST_MAIN(setup, teardown)
