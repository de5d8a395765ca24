// SPDX-License-Identifier: Apache-2.0
// Values that devices share instead of copying them (plan/shared/share.c): which ones, how long they live, who waits for them
// and where (plan/shared/await.c), and that steps compute the same bits as with copies, many of them at once under way. The rules are
// looked at on null devices that are told to share the host's memory; runs use every pair of devices that really do.
#include "exec/worker.h"
#include "unit/shared.h"
#include "unit/toy_ops.h"

/** Does the first result of the node lie where the transfer's value does, or some of it? */
static bool lies_there(const clv_plan *plan, const clv__plan_node *node, const clv__transfer *transfer) {
    if (node->out[0] < 0 || node->work == CLV__SEND) return false;
    const clv__value *a = &plan->values[node->out[0]], *b = &plan->values[transfer->from];
    return a->place == b->place && a->segment == b->segment && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

TEST(test_replicas_copy_nothing) {
    model m = build((const char *[]){"null:0", "null:1"});
    clv_plan *copying = plan_of(m.graph, "null:0", NULL);
    null_devices_share(true);
    clv_plan *shares = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_shared(copying), 0);
    assert_int_equal(clv_plan_info_get(shares).n_transfers, clv_plan_info_get(copying).n_transfers);
    assert_int_equal(count_shared(shares), clv_plan_info_get(shares).n_transfers);
    // parameters come back, as gradients, before they are updated, so nobody waits for that; the second device's gradients,
    // which the first reads last, are made again when the second has this step's parameters, so nobody waits for that either
    for (int place = 0; place < 2; place++) {
        assert_int_equal(shares->places[place].awaits, 0);
        assert_null(waiting_node(shares, place));
    }
    const clv__transfer *weight = transfer_of(shares, "a.weight", 1);
    assert_int_equal(shares->values[weight->to].segment, CLV__IN_SHARED);
    assert_int_equal(shares->values[weight->to].owner, weight->from);
    for (int place = 0; place < 2; place++) {
        // staging holds what is fed and fetched; the copies need no room
        const clv__place *with = &shares->places[place], *without = &copying->places[place];
        size_t fetched = 0;
        for (int i = 0; i < with->n_outputs; i++) fetched += with->alignment;
        assert_int_equal(with->staged_bytes, fetched);
        assert_true(without->staged_bytes > fetched);
        assert_true(clv_plans_memory(&shares, 1, with->device).predicted_peak_bytes <
                    clv_plans_memory(&copying, 1, with->device).predicted_peak_bytes);
    }
    clv_plan_destroy(shares);
    clv_plan_destroy(copying);
    clv_graph_destroy(m.graph);
    null_devices_share(false);
}

TEST(test_layers_await_each_other) {
    null_devices_share(true);
    model m = build(NULL);
    clv_plan *plan = plan_of(m.graph, "null:0", "a=null:0,b=null:1");
    assert_int_equal(clv_plan_info_get(plan).n_transfers, 2); // relu's result, and its gradient
    assert_int_equal(count_shared(plan), 2);
    // `b` sends the gradient of its input before it needs the input for the last time
    assert_int_equal(plan->places[0].awaits, 1 << 1);
    assert_int_equal(plan->places[1].awaits, 0); // by then it has the input of this step
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__value *from = &plan->values[plan->values[plan->transfers[i].from].root];
        assert_int_equal(from->last, plan->n_nodes);
    }
    // the first waits where it first writes over what the other may still read
    const clv__transfer *result = &plan->transfers[plan->values[plan->transfers[0].from].place != 0];
    const clv__plan_node *at = plan->nodes;
    while (!lies_there(plan, at, result)) at++;
    assert_ptr_equal(waiting_node(plan, 0), at);
    assert_null(waiting_node(plan, 1));
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    null_devices_share(false);
}

static int value_at(const clv_plan *plan, const clv_tensor *tensor, int place) {
    for (size_t i = 0; i < plan->n_values; i++)
        if (plan->values[i].tensor == tensor && plan->values[i].place == place) return (int)i;
    return -1;
}

/** Something that comes back in time ends the loan: a = x + x on one device, b = a + a on the other, c = b + b back on the
 *  first, whose memory for `a` is free from then on. */
TEST(test_a_loan_ends_when_something_comes_back) {
    null_devices_share(true);
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64));
    clv_graph_set_place(graph, "null:0");
    clv_tensor *a = toy(&toy_sum_apart, x, x);
    clv_graph_set_place(graph, "null:1");
    clv_tensor *b = toy(&toy_sum_apart, a, NULL);
    clv_graph_set_place(graph, "null:0");
    clv_tensor *c = toy(&toy_sum_apart, b, NULL);
    for (int i = 0; i < 3; i++) c = toy(&toy_sum_apart, c, NULL);
    clv_output(c, "c");
    clv_plan *plan = plan_of(graph, "null:0", NULL);
    assert_int_equal(count_shared(plan), 2);
    assert_int_equal(plan->places[0].awaits, 0);
    assert_int_equal(plan->places[1].awaits, 0);
    const clv__value *shared = &plan->values[value_at(plan, a, 0)];
    const clv__plan_node *end = &plan->nodes[shared->last];
    assert_int_equal(end->work, CLV__RECEIVE);
    assert_ptr_equal(end->node, b->node);
    assert_int_equal(plan->places[0].activations.bytes, 2 * plan->places[0].alignment); // and not three
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    null_devices_share(false);
}

/** To have received something from one device says nothing of another: c comes from the second device before a is made again, which the
 *  third has borrowed and gives nothing for. */
TEST(test_a_third_device_is_awaited) {
    clv_device *host = find("host");
    const bool shared = host->traits.host_memory;
    null_devices_share(true);
    host->traits.host_memory = true;
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64)),
               *z = clv_input(graph, "z", CLV_DTYPE_F32, CLV_SHAPE(64));
    clv_graph_set_place(graph, "null:1");
    clv_tensor *c = toy(&toy_sum_apart, z, NULL);
    clv_graph_set_place(graph, "null:0");
    clv_tensor *a = toy(&toy_sum_apart, x, c);
    clv_graph_set_place(graph, "host");
    clv_output(toy(&toy_sum_apart, a, NULL), "there");
    clv_plan *plan = plan_of(graph, "null:0", NULL);
    assert_int_equal(count_shared(plan), 2);
    const clv__place *first = clv__plan_place_of(plan, find("null:0")),
                     *third = clv__plan_place_of(plan, host);
    assert_int_equal(first->awaits, 1 << (third - plan->places));
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        if (&plan->places[node->place] == first && node->awaits)
            assert_int_equal(node->out[0], value_at(plan, a, node->place));
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    null_devices_share(false);
    host->traits.host_memory = shared;
}

/** What is changed before the receiver is known to be done is copied; so is what the receiver changes. */
TEST(test_what_changes_is_copied) {
    null_devices_share(true);
    for (int changed = 0; changed < 3; changed++) {
        clv_graph *graph = new_graph();
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64));
        clv_tensor *p = clv_parameter(graph, "p", CLV_SHAPE(64), (clv_init){CLV_INIT_ZEROS, 0, 0});
        clv_graph_set_place(graph, "null:0");
        clv_output(toy(&toy_sum, p, x), "here");
        clv_graph_set_place(graph, "null:1");
        clv_output(toy(&toy_sum, p, x), "there");
        if (changed) {
            clv_graph_set_place(graph, changed == 1 ? "null:0" : "null:1");
            toy(&toy_accumulate, p, x);
        }
        clv_plan *plan = plan_of(graph, "null:0", NULL);
        assert_int_equal(clv_plan_info_get(plan).n_transfers, 1);
        assert_int_equal(count_shared(plan), changed == 0);
        assert_int_equal(plan->places[0].awaits, 0); // it lies in the session, and stays as it is
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    null_devices_share(false);
}

TEST(test_lending_computes_the_same_bits) {
    clv_device *devices[8];
    int n = sharers(devices, 8);
    if (n < 2) {
        print_message("skipped: no two devices here compute in the host's memory\n");
        skip();
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (i == j) continue;
            compare(devices[i]->info.name, devices[j]->info.name, false);
            compare(devices[i]->info.name, devices[j]->info.name, true);
        }
    }
}

// ---- a receiver that is late ----------------------------------------------------------------------------------------

/** A job for a device's thread: once the device has done all that came before, it waits until it is let through. */
typedef struct gate {
    clv__job job; // must stay first
    clv_device *device;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open, passed;
} gate;

static void pass_gate(clv__job *job) {
    gate *g = (gate *)job;
    (void)!g->device->backend->synchronize(g->device->open, NULL);
    pthread_mutex_lock(&g->lock);
    while (!g->open) pthread_cond_wait(&g->changed, &g->lock);
    g->passed = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void gate_post(gate *g, clv_device *device, bool open) {
    *g = (gate){.job.run = pass_gate, .device = device, .open = open};
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    clv__worker_post(device, &g->job);
}

/** Wait until the device has passed it, at most so long. */
static bool gate_wait(gate *g, double seconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    long ns = until.tv_nsec + (long)(seconds * 1e9);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_mutex_lock(&g->lock);
    while (!g->passed && pthread_cond_timedwait(&g->changed, &g->lock, &until) == 0) continue;
    bool passed = g->passed;
    pthread_mutex_unlock(&g->lock);
    return passed;
}

static void gate_open(gate *g) {
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_signal(&g->changed);
    while (!g->passed) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
}

static void step_with(clv_run *run, const clv_tensor *x, float value, int64_t *ticket) {
    float values[64];
    for (int i = 0; i < 64; i++) values[i] = value;
    assert_status(clv_run_feed(run, x, values, sizeof values), CLV_OK, runtime);
    assert_status(clv_run_step(run, ticket), CLV_OK, runtime);
}

/** y = 2 x + 1, doubled by one device and increased by the other: nothing comes back within a step, so the first must not
 *  write over what it shared for step 2 before the other has done that, even if that one has not so much as begun it and the
 *  end of step 0 is all that it has told. */
static void late_receiver(clv_device *sender, clv_device *receiver) {
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64));
    clv_graph_set_place(graph, sender->info.name);
    clv_tensor *doubled = clv_mul_scalar(x, 2);
    clv_graph_set_place(graph, receiver->info.name);
    clv_tensor *y = clv_add_scalar(doubled, 1);
    clv_output(y, "y");
    clv_plan *plan = plan_of(graph, sender->info.name, NULL);
    assert_int_equal(count_shared(plan), 1);
    int64_t ticket;
    gate late, through;
    bool ahead;
    clv_session *session = clv__test_session(runtime, NULL);
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int step = 0; step < 2; step++) step_with(run, x, (float)step, &ticket);
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    gate_post(&late, receiver, false);
    for (int step = 2; step < 4; step++) step_with(run, x, (float)step, &ticket);
    gate_post(&through, sender, true);
    ahead = gate_wait(&through, 0.2);
    gate_open(&late);
    gate_open(&through);
    assert_false(ahead); // it awaited the end of step 2
    for (int step = 2; step < 4; step++) {
        float values[64];
        assert_status(clv_run_fetch(run, step, y, values, sizeof values), CLV_OK, runtime);
        for (int i = 0; i < 64; i++) assert_float_equal(values[i], 2 * step + 1, 0);
    }
    clv__test_end(run, session, plan, graph);
}

TEST(test_a_late_receiver_is_awaited) {
    clv_device *devices[2];
    if (sharers(devices, 2) < 2) {
        print_message("skipped: no two devices here compute in the host's memory\n");
        skip();
    }
    late_receiver(devices[0], devices[1]);
    late_receiver(devices[1], devices[0]);
}

TEST_MAIN(setup, teardown)
