// SPDX-License-Identifier: Apache-2.0
// A device is lost at every single enqueue of a data parallel training, one after another (tests/device/lost_layer.c): the
// run says which device, which steps are done, and what the session keeps on the first device is what it was after these
// steps, bit for bit. Everything can be destroyed afterwards.
#include "device/lost.h"

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/plan.h"
#include "device/device.h"
#include "exec/worker.h"
#include "harness/parallel.h"
#include "plan/plan.h"

enum { N = 6, STEPS = 3, MOST_TENSORS = 32 };

static clv_runtime *runtime;

static clv_tensor *layers(clv_tensor *x, void *user) {
    x = clv_nn_conv2d(x, "conv", 3, &(clv_nn_conv2d_config){.kernel = {3, 3}});
    x = clv_flatten(clv_relu(clv_nn_batch_norm(x, "norm", NULL)), 1);
    return clv_nn_linear(x, "fc", 3, NULL);
}

/** A training of two replicas, and what its session held after each step when nothing was lost. */
typedef struct training {
    clv_graph *graph;
    clv_tensor *x, *labels, *hyper, *loss;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} training;

static struct {
    int n;
    uint64_t values[STEPS + 1][MOST_TENSORS]; // a hash of each
    float loss[STEPS];
} whole;

static const clv_optimizer_config momentum = {.kind = CLV_SGD, .momentum = 0.9f};

static training make(void) {
    static const char *const replicas[] = {"cpu:0", "cpu:1"};
    static const double shares[] = {2.0 / 3, 1.0 / 3};
    training t = {0};
    t.graph = clv__test_graph(runtime);
    clv_graph_set_training(t.graph, true);
    t.x = clv_input(t.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N, 1, 5, 5));
    t.labels = clv_input(t.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(N));
    t.loss = clv_cross_entropy(parallel_of(t.x, replicas, shares, 2, layers, NULL), t.labels);
    clv_output(t.loss, "loss");
    clv_backward(t.loss);
    clv_optimizer_add(t.graph, &momentum);
    t.hyper = clv_optimizer_hyper(t.graph);
    t.plan = clv__test_plan(runtime, t.graph, NULL);
    t.session = clv__test_session(runtime, &(clv_session_config){.seed = 5});
    t.run = clv__test_run(runtime, t.session, t.plan);
    return t;
}

static void destroy(training *t) {
    clv_run_destroy(t->run);
    clv_session_destroy(t->session);
    clv_plan_destroy(t->plan);
    clv_graph_destroy(t->graph);
    for (int i = 0; i < 2; i++)
        assert_int_equal(clv_device_memory(clv_device_get(runtime, i)).all.current, 0);
}

/** Feed and post step number `step`, from 0. */
static clv_status post(const training *t, int step, int64_t *ticket) {
    float x[N * 25], hyper[CLV_HYPER_VALUES];
    int32_t labels[N];
    for (int i = 0; i < N * 25; i++) x[i] = (float)((i * 7 + step * 3) % 11) / 5 - 1;
    for (int i = 0; i < N; i++) labels[i] = (i + step) % 3;
    clv_optimizer_hyper_values(t->graph, step + 1, 0.05, hyper);
    clv_status status = clv_run_feed(t->run, t->x, x, sizeof x);
    if (status == CLV_OK) status = clv_run_feed(t->run, t->labels, labels, sizeof labels);
    if (status == CLV_OK) status = clv_run_feed(t->run, t->hyper, hyper, sizeof hyper);
    if (status == CLV_OK) status = clv_run_step(t->run, ticket);
    return status;
}

static void read_session(const training *t, uint64_t out[MOST_TENSORS]) {
    static unsigned char bytes[4096];
    for (int i = 0; i < clv_session_info_get(t->session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(t->session, i);
        assert_in_range(tensor.bytes, 1, sizeof bytes);
        assert_status(clv_session_read(t->session, i, bytes, tensor.bytes), CLV_OK, runtime);
        out[i] = UINT64_C(14695981039346656037); // FNV-1a
        for (size_t b = 0; b < tensor.bytes; b++) out[i] = (out[i] ^ bytes[b]) * UINT64_C(1099511628211);
    }
}

/** Returns the enqueues of the second device; the first has more. */
static long train_whole(void) {
    training t = make();
    int64_t ticket;
    memset(&whole, 0, sizeof whole);
    whole.n = clv_session_info_get(t.session).n_tensors;
    assert_in_range(whole.n, 9, MOST_TENSORS); // five parameters and more, two statistics, momentum
    assert_false(t.plan->places[1].updates);
    read_session(&t, whole.values[0]);
    lost_arm(1, 0, 0, 0);
    for (int step = 0; step < STEPS; step++) {
        assert_status(post(&t, step, &ticket), CLV_OK, runtime);
        assert_status(clv_run_fetch(t.run, ticket, t.loss, &whole.loss[step], 4), CLV_OK, runtime);
        read_session(&t, whole.values[step + 1]);
    }
    assert_memory_not_equal(whole.values[1], whole.values[0], sizeof whole.values[0]);
    clv_run_failure failure = clv_run_failed(t.run);
    assert_int_equal(failure.status, CLV_OK);
    assert_int_equal(failure.done, STEPS);
    long calls = lost_calls();
    lost_arm(-1, 0, 0, 0);
    destroy(&t);
    return calls;
}

/** Lose a device at an enqueue; returns false if the training was over before. */
static bool lose(int device, long enqueue, int code, bool late, clv_status want, bool *in_step,
                 long *partial) {
    training t = make();
    int64_t ticket = -1, read = 0;
    clv_status status = CLV_OK;
    lost_arm(device, enqueue, code, late);
    for (int step = 0; step < STEPS && status == CLV_OK; step++) {
        status = post(&t, step, &ticket);
        float loss;
        if (status == CLV_OK && step > 0) { // the loss of the step before, as the trainer does it
            status = clv_run_fetch(t.run, ticket - 1, t.loss, &loss, 4);
            if (status == CLV_OK) assert_memory_equal(&loss, &whole.loss[read++], 4);
        }
    }
    if (status == CLV_OK) status = clv_run_finish(t.run);
    clv_run_failure failure = clv_run_failed(t.run);
    if (status == CLV_OK) {
        assert_int_equal(failure.status, CLV_OK);
    } else {
        assert_status(status, want, runtime);
        assert_int_equal(failure.status, want);
        assert_ptr_equal(failure.device, clv_device_get(runtime, device));
        assert_true(*failure.sentence);
        assert_in_range(failure.done, read, STEPS);
        assert_status(post(&t, 0, NULL), want, runtime); // it stays so
        assert_string_equal(clv_runtime_error(runtime), failure.sentence);
        *in_step |= failure.done > 0 && failure.done < STEPS;
    }
    if (device == 1) { // what is kept is on the other one
        uint64_t values[MOST_TENSORS] = {0};
        *partial += failure.partial;
        for (; read < failure.done && read <= ticket; read++) {
            float loss;
            if (read + 2 <= ticket) continue; // no longer kept
            assert_status(clv_run_fetch(t.run, read, t.loss, &loss, 4), CLV_OK, runtime);
            assert_memory_equal(&loss, &whole.loss[read], 4);
        }
        clv_run_destroy(t.run);
        t.run = NULL;
        read_session(&t, values);
        for (int i = 0; i < whole.n && !failure.partial; i++) {
            if (values[i] == whole.values[failure.done][i]) continue;
            fail_msg("enqueue %ld: '%s' is not what it was after %lld steps", enqueue,
                     clv_session_get(t.session, i).name, (long long)failure.done);
        }
    }
    lost_arm(-1, 0, 0, 0);
    destroy(&t);
    return status != CLV_OK;
}

static void lose_everywhere(int device, long stride, int code, bool late, clv_status want) {
    long calls = train_whole(), lost = 0, partial = 0;
    bool in_step = false;
    assert_true(calls > 10 * STEPS);
    for (long enqueue = 1; enqueue <= calls; enqueue += stride)
        lost += lose(device, enqueue, code, late, want, &in_step, &partial);
    print_message("%ld enqueues, lost at %ld of them, %ld of them partially updated\n", calls, lost, partial);
    assert_int_equal(partial, 0);
    assert_true(lost >= calls / stride - 1);
    if (device == 1) assert_true(in_step); // the first may take the step before with it
    assert_false(lose(device, 1000000, code, late, want, &in_step, &partial));
}

TEST(test_out_of_resources) {
    lose_everywhere(1, 2, -5, false, CLV_E_DEVICE_MEMORY);
}

TEST(test_not_available) {
    lose_everywhere(1, 13, -2, false, CLV_E_DEVICE_LOST);
}

/** The enqueues go well, and when they are waited for they have failed. */
TEST(test_poisoned_context) {
    lose_everywhere(1, 7, -9999, true, CLV_E_DEVICE_LOST);
}

TEST(test_the_first_device) {
    lose_everywhere(0, 5, -9999, false, CLV_E_DEVICE_LOST);
}

static clv_status drain(void *device) {
    return clv__device_settle(device, NULL);
}

/** Both steps are done everywhere, and then the second device cannot be asked for the first of them: both count. */
TEST(test_steps_that_are_done_when_an_older_one_cannot_be_waited_for) {
    (void)train_whole();
    training t = make();
    int64_t first, second;
    float loss;
    uint64_t values[MOST_TENSORS] = {0};
    assert_status(post(&t, 0, &first), CLV_OK, runtime);
    assert_status(post(&t, 1, &second), CLV_OK, runtime);
    for (int i = 0; i < 2; i++)
        assert_int_equal(clv__worker_call(clv_device_get(runtime, i), drain, clv_device_get(runtime, i)),
                         CLV_OK);
    lost_arm(1, -1, -9999, false);
    assert_status(clv_run_fetch(t.run, first, t.loss, &loss, 4), CLV_E_DEVICE_LOST, runtime);
    clv_run_failure failure = clv_run_failed(t.run);
    assert_ptr_equal(failure.device, clv_device_get(runtime, 1));
    assert_false(failure.partial);
    assert_int_equal(failure.done, 2);
    assert_status(clv_run_fetch(t.run, second, t.loss, &loss, 4), CLV_OK, runtime);
    assert_memory_equal(&loss, &whole.loss[1], 4);
    clv_run_destroy(t.run);
    t.run = NULL;
    read_session(&t, values);
    assert_memory_equal(values, whole.values[2], sizeof values);
    lost_arm(-1, 0, 0, 0);
    destroy(&t);
}

int main(void) {
    int status = 0;
    if (!(runtime = lost_runtime(NULL, &status))) return status;
    int failed = clv__tests_run(NULL, NULL);
    clv_runtime_destroy(runtime);
    return failed;
}
