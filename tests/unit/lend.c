// SPDX-License-Identifier: Apache-2.0
// Values that devices lend each other instead of copying them (plan/lend.c): which ones, how long they live, and that steps
// compute the same bits as with copies, many of them at once under way. The rules are looked at on null devices that are
// told to share the host's memory; runs use every pair of devices that really do.
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "exec/worker.h"
#include "plan/plan.h"
#include "unit/toy_ops.h"
#include "unit/world.h"

/** Let null devices pretend to compute in the host's memory, or not. */
static void null_devices_share(bool share) {
    find("null:0")->traits.host_memory = find("null:1")->traits.host_memory = share;
}

/** Let null:1 pretend to be of null:0's kind; returns what it was. */
static clv_device_info make_alike(clv_device_info *info) {
    const clv_device_info before = *info, *like = &find("null:0")->info;
    info->type = like->type;
    info->compute_units = like->compute_units;
    info->driver = like->driver;
    return before;
}

static clv_plan *plan_of(clv_graph *graph, const char *first, const char *place) {
    clv_plan *plan;
    assert_status(clv_plan_create(graph, &(clv_plan_config){.device = find(first), .place = place}, &plan),
                  CLV_OK, runtime);
    return plan;
}

// ---- models -------------------------------------------------------------------------------------------------------

enum { BATCH = 12, WIDTH = 96, WIDE = 768 };

/** Of both layers. Updates of wide ones are shared by replicas (plan/share.c), and those of others are not. */
static int width = WIDTH;
static bool own_losses; // of replicas, instead of one of what they all made

static clv_tensor *layer(clv_tensor *x, const char *name) {
    clv_graph *graph = clv_tensor_graph(x);
    clv_scope_push(graph, name);
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(width, width), (clv_init){CLV_INIT_UNIFORM, -0.2, 0.2});
    x = clv_matmul(x, weight);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *two_layers(clv_tensor *x, void *user) {
    (void)user;
    return layer(clv_relu(layer(x, "a")), "b");
}

static clv_tensor *mean_square(clv_tensor *x, clv_tensor *labels, void *user) {
    (void)labels;
    return clv_mean(clv_square(two_layers(x, user)), NULL, 0, false);
}

/** A training step: x goes through `a` and `b`; split over two devices by layers (then placed by the plan) or replicated. */
typedef struct model {
    clv_graph *graph;
    clv_tensor *x, *loss, *hyper;
} model;

static model build(const char *const *replicas) {
    model m = {.graph = new_graph()};
    clv_graph_set_training(m.graph, true);
    m.x = clv_input(m.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, width));
    const double shares[] = {0.75, 0.25};
    if (own_losses) {
        m.loss = clv_data_parallel_loss(m.x, m.x, replicas, shares, 2, mean_square, NULL);
    } else {
        clv_tensor *y =
            replicas ? clv_data_parallel(m.x, replicas, shares, 2, two_layers, NULL) : two_layers(m.x, NULL);
        m.loss = clv_mean(clv_square(y), NULL, 0, false);
    }
    clv_output(m.loss, "loss");
    clv_backward(m.loss);
    clv_optimizer_add(m.graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.5f});
    m.hyper = clv_optimizer_hyper(m.graph);
    return m;
}

// ---- the rules ----------------------------------------------------------------------------------------------------

static int count_lent(const clv_plan *plan) {
    int n = 0;
    for (int i = 0; i < clv_plan_transfer_count(plan); i++) n += clv_plan_transfer_get(plan, i).lent;
    return n;
}

static const clv__transfer *transfer_of(const clv_plan *plan, const char *tensor, int to) {
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *t = &plan->transfers[i];
        if (strcmp(plan->values[t->from].tensor->name, tensor) == 0 && plan->values[t->to].place == to)
            return t;
    }
    fail_msg("'%s' does not go to place %d", tensor, to);
    return NULL;
}

/** The one node of a place that waits until the other has finished the last step. */
static const clv__plan_node *waiting_node(const clv_plan *plan, int place) {
    const clv__plan_node *found = NULL;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->place != place || !node->awaits) continue;
        assert_null(found);
        assert_int_equal(node->awaits, 1 << !place);
        found = node;
    }
    return found;
}

/** Does the first result of the node lie where the transfer's value does, or some of it? */
static bool lies_there(const clv_plan *plan, const clv__plan_node *node, const clv__transfer *transfer) {
    if (node->out[0] < 0 || node->work == CLV__SEND) return false;
    const clv__value *a = &plan->values[node->out[0]], *b = &plan->values[transfer->from];
    return a->place == b->place && a->segment == b->segment && a->offset < b->offset + b->bytes &&
           b->offset < a->offset + a->bytes;
}

static void test_replicas_copy_nothing(void **state) {
    (void)state;
    model m = build((const char *[]){"null:0", "null:1"});
    clv_plan *copying = plan_of(m.graph, "null:0", NULL);
    null_devices_share(true);
    clv_plan *lending = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_lent(copying), 0);
    assert_int_equal(clv_plan_transfer_count(lending), clv_plan_transfer_count(copying));
    assert_int_equal(count_lent(lending), clv_plan_transfer_count(lending));
    // parameters come back, as gradients, before they are updated, so nobody waits for that: the second device alone has
    // to see the first finish, which reads its gradients last
    assert_int_equal(lending->places[0].awaits, 0);
    assert_int_equal(lending->places[1].awaits, 1 << 0);
    assert_null(waiting_node(lending, 0));
    // and does so where it makes the first of them anew: of the second layer, in its backward pass
    const clv__plan_node *waiting = waiting_node(lending, 1);
    assert_int_equal(waiting->node->phase, CLV__BACKWARD);
    assert_string_equal(waiting->node->layer, "b");
    const clv__transfer *weight = transfer_of(lending, "a.weight", 1);
    assert_int_equal(lending->values[weight->to].segment, CLV__IN_LENDER);
    assert_int_equal(lending->values[weight->to].lender, weight->from);
    for (int place = 0; place < 2; place++) {
        // staging holds what is fed and fetched; the copies need no room
        const clv__place *with = &lending->places[place], *without = &copying->places[place];
        size_t fetched = 0;
        for (int i = 0; i < with->n_outputs; i++) fetched += with->alignment;
        assert_int_equal(with->staged_bytes, fetched);
        assert_true(without->staged_bytes > fetched);
        assert_true(clv_plans_memory_on(&lending, 1, with->device).predicted_peak_bytes <
                    clv_plans_memory_on(&copying, 1, with->device).predicted_peak_bytes);
    }
    clv_plan_destroy(lending);
    clv_plan_destroy(copying);
    clv_graph_destroy(m.graph);
    null_devices_share(false);
}

static int count_ops(const clv_plan *plan, const char *op) {
    int n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].work == CLV__COMPUTE && strcmp(plan->nodes[i].node->io.op->name, op) == 0;
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
static void test_updates_add_up_what_is_lent(void **state) {
    (void)state;
    model m = build((const char *[]){"null:0", "null:1"});
    clv_plan *plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops(plan, "add"), 2);
    clv_plan_destroy(plan);
    null_devices_share(true);
    assert_status(
        clv_plan_create(m.graph, &(clv_plan_config){.device = find("null:0"), .no_fuse = true}, &plan),
        CLV_OK, runtime);
    assert_int_equal(count_ops(plan, "add"), 2);
    clv_plan_destroy(plan);

    plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops(plan, "add"), 0);
    assert_int_equal(count_ops(plan, "sgd_update"), 1);
    const clv_plan_node update = clv_plan_node_get(plan, clv_plan_node_count(plan) - 1);
    assert_string_equal(update.also, "add");
    assert_int_equal(update.fused, 4);
    const char *const names[] = {"a.weight", "b.weight"};
    for (int i = 0; i < 2; i++) {
        clv_tensor *gradient = clv_gradient(clv_graph_find(m.graph, names[i]));
        const clv__transfer *term = transfer_of(plan, gradient->node->in[0]->name, 0);
        assert_true(term->lent);
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

static int count_ops_at(const clv_plan *plan, const char *op, int place) {
    int n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++)
        n += plan->nodes[i].place == place && plan->nodes[i].work == CLV__COMPUTE &&
             strcmp(plan->nodes[i].node->io.op->name, op) == 0;
    return n;
}

static const clv__value *received(const clv_plan *plan, const char *tensor) {
    return &plan->values[transfer_of(plan, tensor, 1)->to];
}

/** The second of two alike replicas does half of the updates, on what the first keeps; where one only has a copy, or somebody
 *  else reads a sum, or the devices are not alike, the first does them. */
static void test_replicas_share_updates(void **state) {
    (void)state;
    const char *const replicas[] = {"null:0", "null:1"};
    clv_device_info *info = &find("null:1")->info;
    const clv_device_info before = make_alike(info);
    width = WIDE;
    model m = build(replicas);
    clv_plan *plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops_at(plan, "sgd_update", 1), 0);
    clv_plan_destroy(plan);

    null_devices_share(true);
    plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops_at(plan, "sgd_update", 0), 1);
    assert_int_equal(count_ops_at(plan, "sgd_update", 1), 1);
    assert_int_equal(count_ops(plan, "add"), 0);
    assert_int_equal(count_lent(plan), clv_plan_transfer_count(plan));
    assert_int_equal(plan->places[0].awaits, 1 << 1);
    assert_int_equal(plan->places[1].awaits, 1 << 0);
    assert_int_equal(plan->places[0].n_persistents, 4);
    assert_int_equal(plan->places[1].n_persistents, 0);
    assert_true(plan->places[0].updates && plan->places[1].updates);
    const clv_plan_node update = clv_plan_node_get(plan, clv_plan_node_count(plan) - 1);
    assert_string_equal(update.op, "sgd_update");
    assert_int_equal(received(plan, "b.weight")->segment, CLV__IN_LENDER);
    assert_int_equal(received(plan, "b.weight.momentum_buffer")->segment, CLV__IN_LENDER);
    // the first begins the next step while the second is at its update, and waits where it uses what that changes
    const clv__plan_node *waiting = waiting_node(plan, 0);
    assert_string_equal(waiting->node->layer, "b");
    assert_int_equal(waiting->node->phase, CLV__FORWARD);
    assert_int_equal(waiting_node(plan, 1)->node->phase, CLV__BACKWARD);
    for (int at = 0, updating = 0; at < (int)plan->n_nodes; at++) { // nobody waits for the other's updates
        const clv__plan_node *node = &plan->nodes[at];
        updating |= node->work == CLV__COMPUTE && node->node->phase == CLV__UPDATE;
        if (updating) assert_int_equal(node->work, CLV__COMPUTE);
    }
    clv_plan_destroy(plan);

    info->compute_units++;
    plan = plan_of(m.graph, "null:0", NULL);
    info->compute_units--;
    assert_int_equal(count_ops_at(plan, "sgd_update", 1), 0);
    clv_plan_destroy(plan);
    assert_status(
        clv_plan_create(m.graph, &(clv_plan_config){.device = find("null:0"), .no_fuse = true}, &plan),
        CLV_OK, runtime);
    assert_int_equal(count_ops_at(plan, "sgd_update", 1), 0);
    clv_plan_destroy(plan);
    clv_output(clv_gradient(clv_graph_find(m.graph, "b.weight")), "fetched");
    plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(count_ops_at(plan, "sgd_update", 1), 0); // less than a million elements are left
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
    null_devices_share(false);
    width = WIDTH;
    *info = before;
}

/** Replicas that have their own losses wait for nothing between what they get first, the parameters, and the gradients: the
 *  constant at the loss is made by each, and the losses are added up when all else is done. */
static void test_replicas_with_their_losses_do_not_wait(void **state) {
    (void)state;
    const char *const replicas[] = {"null:0", "null:1"};
    own_losses = true;
    model m = build(replicas);
    own_losses = false;
    null_devices_share(true);
    clv_plan *plan = plan_of(m.graph, "null:0", NULL);
    assert_int_equal(clv_plan_transfer_count(plan), 2 + 2 + 1); // parameters, gradients, a loss
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

static void test_labels_that_do_not_fit(void **state) {
    (void)state;
    const char *const replicas[] = {"host", "null:0"};
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 2)),
               *labels = clv_input(graph, "labels", CLV_DTYPE_F32, CLV_SHAPE(3, 2));
    assert_null(clv_data_parallel_loss(x, labels, replicas, NULL, 2, mean_square, NULL));
    assert_status(clv_graph_status(graph), CLV_E_SHAPE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "data parallel: x [4,2] and labels [3,2] must have the same number of rows");
    clv_graph_destroy(graph);
}

// A weight whose update the second replica would do, but for who else sees its memory, or that of its state.
typedef enum seen {
    SEEN_BY_NOBODY,
    SEEN_FETCHED_HERE,
    SEEN_FETCHED_THERE,
    SEEN_BY_OTHER_REPLICA,
    SEEN_STATE_FETCHED,
    SEEN_STATE_READ_HERE,
    SEEN_STATE_READ_THERE,
    SEEN_STATE_READ_ELSEWHERE
} seen;

typedef struct looking {
    seen seen;
    clv_tensor *view; // of the first replica
} looking;

static clv_tensor *flat(clv_tensor *x) {
    return clv_reshape(x, CLV_SHAPE(clv_tensor_numel(x)));
}

static clv_tensor *layer_looked_at(clv_tensor *x, void *user) {
    looking *l = user;
    clv_graph *graph = clv_tensor_graph(x);
    x = layer(x, "home"); // what the first one updates
    clv_tensor *weight =
        clv_parameter(graph, "weight", CLV_SHAPE(width, width), (clv_init){CLV_INIT_UNIFORM, -0.2, 0.2});
    const bool first = !l->view;
    if (first) l->view = flat(weight);
    if (l->seen == (first ? SEEN_FETCHED_HERE : SEEN_FETCHED_THERE)) clv_output(flat(weight), "seen");
    if (l->seen != SEEN_BY_OTHER_REPLICA) return clv_matmul(x, weight);
    clv_tensor *again = clv_reshape(l->view, CLV_SHAPE(width, width));
    return first ? clv_matmul(x, again) : clv_matmul(clv_matmul(x, weight), again);
}

static clv_graph *build_looked_at(seen how) {
    clv_graph *graph = new_graph();
    looking l = {.seen = how};
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, width));
    x = clv_data_parallel(x, (const char *[]){"null:0", "null:1"}, (const double[]){0.5, 0.5}, 2,
                          layer_looked_at, &l);
    clv_tensor *loss = clv_mean(clv_square(x), NULL, 0, false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.5f});
    clv_tensor *state = clv_graph_find(graph, "weight.momentum_buffer");
    if (how == SEEN_STATE_FETCHED) clv_output(flat(state), "seen");
    if (how < SEEN_STATE_READ_HERE) return graph;
    const char *const readers[] = {"null:0", "null:1", "host"};
    clv_graph_set_place(graph, readers[how - SEEN_STATE_READ_HERE]);
    clv_output(clv_mean(clv_square(state), NULL, 0, false), "norm");
    return graph;
}

static void test_updates_of_what_is_seen_elsewhere_stay(void **state) {
    (void)state;
    static const bool shared[] = {true, false, false, false, false, true, true, false};
    clv_device_info *info = &find("null:1")->info;
    const clv_device_info before = make_alike(info);
    width = WIDE;
    for (int alike = 0; alike < 2; alike++) {
        null_devices_share(alike);
        for (int how = 0; how <= SEEN_STATE_READ_ELSEWHERE; how++) {
            clv_graph *graph = build_looked_at((seen)how);
            clv_plan *plan = plan_of(graph, "null:0", NULL);
            assert_int_equal(count_ops_at(plan, "sgd_update", 1), alike && shared[how]);
            assert_int_equal(plan->places[0].n_persistents, 4); // whoever looks at them
            clv_plan_destroy(plan);
            clv_graph_destroy(graph);
        }
    }
    null_devices_share(false);
    width = WIDTH;
    *info = before;
}

static void test_layers_await_each_other(void **state) {
    (void)state;
    null_devices_share(true);
    model m = build(NULL);
    clv_plan *plan = plan_of(m.graph, "null:0", "a=null:0,b=null:1");
    assert_int_equal(clv_plan_transfer_count(plan), 2); // relu's result, and its gradient
    assert_int_equal(count_lent(plan), 2);
    // `b` sends the gradient of its input before it needs the input for the last time
    assert_int_equal(plan->places[0].awaits, 1 << 1);
    assert_int_equal(plan->places[1].awaits, 1 << 0);
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__value *from = &plan->values[plan->values[plan->transfers[i].from].root];
        assert_int_equal(from->last, plan->n_nodes);
    }
    for (int place = 0; place < 2; place++) { // each where it first writes over what the other may still read
        const clv__transfer *t = &plan->transfers[plan->values[plan->transfers[0].from].place != place];
        const clv__plan_node *at = plan->nodes;
        while (!lies_there(plan, at, t)) at++;
        assert_ptr_equal(waiting_node(plan, place), at);
    }
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
static void test_a_loan_ends_when_something_comes_back(void **state) {
    (void)state;
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
    assert_int_equal(count_lent(plan), 2);
    assert_int_equal(plan->places[0].awaits, 0);
    assert_int_equal(plan->places[1].awaits, 1 << 0);
    const clv__value *lent = &plan->values[value_at(plan, a, 0)];
    const clv__plan_node *end = &plan->nodes[lent->last];
    assert_int_equal(end->work, CLV__RECEIVE);
    assert_ptr_equal(end->node, b->node);
    assert_int_equal(plan->places[0].activations.bytes, 2 * plan->places[0].alignment); // and not three
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    null_devices_share(false);
}

/** What is changed before the borrower is known to be done is copied; so is what the borrower changes. */
static void test_what_changes_is_copied(void **state) {
    (void)state;
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
        assert_int_equal(clv_plan_transfer_count(plan), 1);
        assert_int_equal(count_lent(plan), changed == 0);
        assert_int_equal(plan->places[0].awaits, 0); // it lies in the session, and stays as it is
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    null_devices_share(false);
}

// ---- the same bits ------------------------------------------------------------------------------------------------

enum { STEPS = 12 };

/** What a training leaves: the loss of each step, then both weights. */
typedef struct outcome {
    float losses[STEPS], weights[2][WIDE * WIDE];
} outcome;

static void train(const char *const *replicas, const char *first, const char *place, int lent, outcome *out) {
    model m = build(replicas);
    clv_plan *plan = plan_of(m.graph, first, place);
    clv_session *session;
    clv_run *run;
    int64_t ticket;
    static float x[BATCH * WIDE];
    const size_t bytes[] = {(size_t)(BATCH * width) * sizeof *x, (size_t)(width * width) * sizeof *x};
    assert_int_equal(count_lent(plan), lent < 0 ? clv_plan_transfer_count(plan) : lent);
    assert_status(clv_session_create(runtime, &(clv_session_config){.seed = 7}, &session), CLV_OK, runtime);
    for (int i = 0; i < clv_plan_device_count(plan); i++)
        clv_device_memory_reset_peak(clv_plan_device_get(plan, i));
    assert_status(clv_run_create(session, plan, &run), CLV_OK, runtime);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * width; i++) x[i] = (float)((i * 13 + step * 5) % 23) / 23 - 0.5f;
        const float hyper[CLV_HYPER_VALUES] = {0.05f, step == 0};
        assert_status(clv_run_feed(run, m.x, x, bytes[0]), CLV_OK, runtime);
        assert_status(clv_run_feed(run, m.hyper, hyper, sizeof hyper), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        if (step > 0) // one step late, so that two are always under way
            assert_status(clv_run_fetch(run, ticket - 1, m.loss, &out->losses[step - 1], 4), CLV_OK, runtime);
    }
    assert_status(clv_run_fetch(run, ticket, m.loss, &out->losses[STEPS - 1], 4), CLV_OK, runtime);
    for (int i = 0; i < 2; i++) {
        int index = clv_session_find(session, i ? "b.weight" : "a.weight");
        assert_status(clv_session_read(session, index, out->weights[i], bytes[1]), CLV_OK, runtime);
    }
    for (int i = 0; i < clv_plan_device_count(plan); i++) {
        clv_device *device = clv_plan_device_get(plan, i);
        assert_int_equal(clv_device_memory(device).all.peak,
                         clv_plans_memory_on(&plan, 1, device).predicted_peak_bytes);
    }
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(m.graph);
}

static void compare(const char *a, const char *b, bool replicated) {
    static outcome copied, lent;
    char place[128];
    snprintf(place, sizeof place, "a=%s,b=%s", a, b);
    const char *replicas[] = {a, b};
    const char *const *on = replicated ? replicas : NULL;
    find(b)->traits.host_memory = false; // copies as ever
    train(on, a, replicated ? NULL : place, 0, &copied);
    find(b)->traits.host_memory = true;
    train(on, a, replicated ? NULL : place, -1, &lent);
    print_message("%s and %s, %s: loss %g to %g\n", a, b, replicated ? "replicas" : "layers",
                  copied.losses[0], copied.losses[STEPS - 1]);
    assert_true(copied.losses[STEPS - 1] < 0.97f * copied.losses[0]);
    assert_memory_equal(&lent, &copied, sizeof copied);
}

/** Devices that compute in the host's memory; the host itself, which is slow, only where there are not two others. */
static int sharers(clv_device **out, int room) {
    int n = 0, i = -1;
    for (clv_device *device; n < room && (device = clv__test_next_device(runtime, &i));) {
        bool is_host = device->info.type == CLV_DEVICE_HOST;
        if (device->traits.host_memory && !(is_host && n >= 2)) out[n++] = device;
    }
    return n;
}

static void test_lending_computes_the_same_bits(void **state) {
    (void)state;
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

static void expect_close(const float *a, const float *b, int n, float tolerance) {
    for (int i = 0; i < n; i++) assert_float_equal(a[i], b[i], tolerance);
}

/** Losses of their own give replicas the training that one loss gives, to rounding: shares of 9 and 3 rows. */
static void test_own_losses_train_alike(void **state) {
    (void)state;
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

/** Two alike, whose second updates what the first keeps: many steps, two under way at once. Not PoCL 3.1's basic devices, which
 *  fail an assertion when two of them launch the same kernel for the first time at once. */
static void test_shared_updates_compute_the_same_bits(void **state) {
    (void)state;
    clv_device *devices[8];
    int n = sharers(devices, 8), pairs = 0;
    width = WIDE;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (i == j || strcmp(devices[i]->info.driver, devices[j]->info.driver) != 0 ||
                strstr(devices[i]->info.label, "basic"))
                continue;
            compare(devices[i]->info.name, devices[j]->info.name, true);
            pairs++;
        }
    }
    width = WIDTH;
    if (pairs > 0) return;
    print_message("skipped: no two devices here are of one kind\n");
    skip();
}

// ---- a borrower that is late ----------------------------------------------------------------------------------------

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
 *  write over what it lent for step 2 before the other has done that, even if that one has not so much as begun it and the
 *  end of step 0 is all that it has told. */
static void late_borrower(clv_device *lender, clv_device *borrower) {
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64));
    clv_graph_set_place(graph, lender->info.name);
    clv_tensor *doubled = clv_mul_scalar(x, 2);
    clv_graph_set_place(graph, borrower->info.name);
    clv_tensor *y = clv_add_scalar(doubled, 1);
    clv_output(y, "y");
    clv_plan *plan = plan_of(graph, lender->info.name, NULL);
    assert_int_equal(count_lent(plan), 1);
    clv_session *session;
    clv_run *run;
    int64_t ticket;
    gate late, through;
    bool ahead;
    assert_status(clv_session_create(runtime, NULL, &session), CLV_OK, runtime);
    assert_status(clv_run_create(session, plan, &run), CLV_OK, runtime);
    for (int step = 0; step < 2; step++) step_with(run, x, (float)step, &ticket);
    assert_status(clv_run_finish(run), CLV_OK, runtime);
    gate_post(&late, borrower, false);
    for (int step = 2; step < 4; step++) step_with(run, x, (float)step, &ticket);
    gate_post(&through, lender, true);
    ahead = gate_wait(&through, 0.2);
    gate_open(&late);
    gate_open(&through);
    assert_false(ahead); // it awaited the end of step 2
    for (int step = 2; step < 4; step++) {
        float values[64];
        assert_status(clv_run_fetch(run, step, y, values, sizeof values), CLV_OK, runtime);
        for (int i = 0; i < 64; i++) assert_float_equal(values[i], 2 * step + 1, 0);
    }
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

static void test_a_late_borrower_is_awaited(void **state) {
    (void)state;
    clv_device *devices[2];
    if (sharers(devices, 2) < 2) {
        print_message("skipped: no two devices here compute in the host's memory\n");
        skip();
    }
    late_borrower(devices[0], devices[1]);
    late_borrower(devices[1], devices[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas_copy_nothing),
        cmocka_unit_test(test_updates_add_up_what_is_lent),
        cmocka_unit_test(test_replicas_share_updates),
        cmocka_unit_test(test_replicas_with_their_losses_do_not_wait),
        cmocka_unit_test(test_labels_that_do_not_fit),
        cmocka_unit_test(test_updates_of_what_is_seen_elsewhere_stay),
        cmocka_unit_test(test_layers_await_each_other),
        cmocka_unit_test(test_a_loan_ends_when_something_comes_back),
        cmocka_unit_test(test_what_changes_is_copied),
        cmocka_unit_test(test_lending_computes_the_same_bits),
        cmocka_unit_test(test_shared_updates_compute_the_same_bits),
        cmocka_unit_test(test_own_losses_train_alike),
        cmocka_unit_test(test_a_late_borrower_is_awaited),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
