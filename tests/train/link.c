// SPDX-License-Identifier: Apache-2.0
// 64 ranks over a link that is slower than memory, in simulated time: the messages are those of a real training, by a
// loopback that writes each down; a model of the link, with a queue at each end, says when they come, and a step's end
// is held against what the plan tells beforehand. No clock is looked at.
#include <math.h>
#include <pthread.h>

#include "exec/exchange.h"
#include "exec/ranks.h"
#include "train/small.h"
#include "train/trainer.h"

enum { RANKS = 64, WIDTH = 192, MOST_BUCKETS = 32, MOST_NODES = 512 };

static clv_tensor *build_deep(clv_tensor *x, const clv_model *model) {
    x = clv_flatten(x, 1);
    x = clv_relu(clv_nn_linear(x, "first", WIDTH, NULL));
    x = clv_relu(clv_nn_linear(x, "second", WIDTH, NULL));
    x = clv_relu(clv_nn_linear(x, "third", WIDTH, NULL));
    x = clv_relu(clv_nn_linear(x, "fourth", WIDTH, NULL));
    return clv_nn_linear(x, "fc", model->classes, NULL);
}
static const clv_model deep = {
    .name = "deep", .build = build_deep, .input = {1, 4, 6}, .classes = SMALL_CLASSES};

// ---- what was sent ------------------------------------------------------------------------------------------------

/** Bytes from a rank to another in a phase of a bucket of the second step, in the order in which it sent them. */
typedef struct letter {
    int to;
    size_t bytes;
} letter;
static letter sent[MOST_BUCKETS][2][RANKS][RANKS];
static int n_sent[MOST_BUCKETS][2][RANKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int note(void *self, int to, int tag, const void *data, size_t bytes, clv__message *out,
                char why[CLV__TRANSPORT_WHY]) {
    const clv__loopback_end *end = self;
    clv__exchange_head head = {.ticket = -1};
    if (tag == CLV__TAG_EXCHANGE) memcpy(&head, data, sizeof head);
    if (head.ticket == 1) {
        pthread_mutex_lock(&lock);
        sent[head.bucket][head.phase][end->rank][n_sent[head.bucket][head.phase][end->rank]++] =
            (letter){to, bytes};
        pthread_mutex_unlock(&lock);
    }
    return clv__transport_loopback.send(self, to, tag, data, bytes, out, why);
}

// ---- the training -------------------------------------------------------------------------------------------------

/** What rank 0's plan does, node after node. */
static struct step {
    int n, buckets, bucket[MOST_NODES]; // of what is sent or received; -1: it computes
    bool receives[MOST_NODES];
    double seconds[MOST_NODES]; // on a device of 1 second a step
} step;
static double predicted[8];

/** A compute time of a whole step, and a link. */
static const struct regime {
    double computing;
    clv__link link;
} regimes[] = {{1, {1e9, 20e-6}},      // exchanging is nothing beside it
               {5e-3, {125e6, 50e-6}}, // about as long: 1 Gbit
               {1e-3, {125e6, 50e-6}}, // the link is what there is to wait for
               {1e-3, {12e9, 2e-6}},   // a fast one
               {1e-4, {1e9, 1e-3}}};   // messages that are long under way
enum { REGIMES = sizeof regimes / sizeof *regimes };

static void take_plan(const clv_plan *plan) {
    int *bucket_of = calloc(plan->n_transfers + 1, sizeof *bucket_of);
    double all = 0, *seconds = calloc(plan->n_nodes, sizeof *seconds);
    assert_non_null(bucket_of);
    assert_non_null(seconds);
    assert_in_range(plan->n_nodes, 1, MOST_NODES);
    step.n = (int)plan->n_nodes;
    step.buckets = clv__exchange_buckets(plan, 0, bucket_of);
    assert_in_range(step.buckets, 3, MOST_BUCKETS); // several
    for (int i = 0; i < step.n; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        step.bucket[i] = node->work == CLV__COMPUTE ? -1 : bucket_of[node->transfer];
        step.receives[i] = node->work == CLV__RECEIVE;
        all += step.seconds[i] = clv__node_seconds(node);
    }
    for (int i = 0; i < step.n; i++) step.seconds[i] /= all;
    for (int k = 0; k < REGIMES; k++) {
        for (int i = 0; i < step.n; i++) seconds[i] = step.seconds[i] * regimes[k].computing;
        predicted[k] = clv__exchange_seconds(plan, RANKS, 0, seconds, regimes[k].link);
    }
    free(bucket_of);
    free(seconds);
}

typedef struct party {
    clv_runtime *runtime;
    clv_dataset *dataset;
    clv__loopback_end end;
    char sentence[512];
} party;

static void *be_rank(void *user) {
    party *p = user;
    clv__transport engine = clv__transport_loopback;
    engine.send = note;
    clv_train_config config = small_config(&deep, p->dataset, RANKS, 1);
    config.test = NULL;
    config.steps = 2;
    clv_trainer *trainer = NULL;
    clv_status status = clv_device_find(p->runtime, "host", &config.device);
    if (status == CLV_OK) status = clv__ranks_open(p->runtime, &engine, &p->end, 300, &config.ranks);
    if (status == CLV_OK) status = clv_trainer_create(p->runtime, &config, &trainer);
    if (status == CLV_OK) status = clv_trainer_run(trainer);
    if (status != CLV_OK) snprintf(p->sentence, sizeof p->sentence, "%s", clv_runtime_error(p->runtime));
    if (status == CLV_OK && p->end.rank == 0) take_plan(clv_trainer_info_get(trainer).plan);
    clv_trainer_destroy(trainer);
    clv_ranks_destroy(config.ranks);
    return NULL;
}

// ---- the simulation -----------------------------------------------------------------------------------------------

/** One rank in a step: where in its plan it is, and when. */
typedef struct walker {
    int node;
    double computed, exchanged, done[MOST_BUCKETS];
} walker;

/** Compute up to the last value of a bucket, or to the end of the step. */
static void walk(walker *w, int bucket, double computing) {
    int last = step.n - 1;
    while (bucket >= 0 && (step.bucket[last] != bucket || step.receives[last])) last--;
    for (; w->node <= last; w->node++) {
        const int of = step.bucket[w->node];
        w->computed += step.seconds[w->node] * computing;
        if (of >= 0 && step.receives[w->node]) w->computed = fmax(w->computed, w->done[of]);
    }
}

/** A message on its way: it comes in when its first byte does, and the receiver takes one after another. */
typedef struct flight {
    double begins;
    size_t bytes;
} flight;

static int compare(const void *a, const void *b) {
    const double x = ((const flight *)a)->begins, y = ((const flight *)b)->begins;
    return (x > y) - (x < y);
}

static void phase(int bucket, int which, clv__link link, walker *w) {
    static flight in[RANKS][RANKS];
    int n_in[RANKS] = {0};
    double out[RANKS];
    for (int from = 0; from < RANKS; from++) {
        out[from] = w[from].exchanged;
        for (int i = 0; i < n_sent[bucket][which][from]; i++) {
            const letter *at = &sent[bucket][which][from][i];
            in[at->to][n_in[at->to]++] = (flight){out[from] + link.latency, at->bytes};
            out[from] += (double)at->bytes / link.bytes_per_second;
        }
    }
    for (int to = 0; to < RANKS; to++) {
        double free = 0;
        qsort(in[to], (size_t)n_in[to], sizeof *in[to], compare);
        for (int i = 0; i < n_in[to]; i++)
            free = fmax(free, in[to][i].begins) + (double)in[to][i].bytes / link.bytes_per_second;
        w[to].exchanged = fmax(out[to], free);
    }
}

static double simulate(const struct regime *regime) {
    static walker w[RANKS];
    double end = 0;
    memset(w, 0, sizeof w);
    for (int b = 0; b < step.buckets; b++) {
        for (int r = 0; r < RANKS; r++) {
            walk(&w[r], b, regime->computing);
            w[r].exchanged = fmax(w[r].exchanged, w[r].computed);
        }
        for (int which = 0; which < 2; which++)
            if (n_sent[b][which][0]) phase(b, which, regime->link, w);
        for (int r = 0; r < RANKS; r++) w[r].done[b] = w[r].exchanged;
    }
    for (int r = 0; r < RANKS; r++) {
        walk(&w[r], -1, regime->computing);
        end = fmax(end, w[r].computed);
    }
    return end;
}

TEST(test_a_step_of_64_ranks_takes_as_long_as_planned) {
    static party parties[RANKS];
    pthread_t threads[RANKS];
    clv__loopback *loopback = clv__loopback_create(RANKS);
    assert_non_null(loopback);
    for (int i = 0; i < RANKS; i++) {
        parties[i].runtime = clv__test_runtime(NULL);
        parties[i].dataset = small_dataset(parties[i].runtime, 2 * RANKS);
        parties[i].end = (clv__loopback_end){.loopback = loopback, .rank = i};
        assert_int_equal(pthread_create(&threads[i], NULL, be_rank, &parties[i]), 0);
    }
    for (int i = 0; i < RANKS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < RANKS; i++) assert_string_equal(parties[i].sentence, "");
    for (int k = 0; k < REGIMES; k++) {
        const double simulated = simulate(&regimes[k]);
        print_message(
            "computing %g s, %g GB/s, %g s under way: planned %.6g s, simulated %.6g s (%+.2f %%)\n",
            regimes[k].computing, regimes[k].link.bytes_per_second / 1e9, regimes[k].link.latency,
            predicted[k], simulated, 100 * (predicted[k] / simulated - 1));
        assert_true(fabs(predicted[k] - simulated) < 0.1 * simulated);
        assert_true(simulated >= regimes[k].computing * (1 - 1e-9));
    }
    for (int i = 0; i < RANKS; i++) {
        clv_dataset_destroy(parties[i].dataset);
        clv_runtime_destroy(parties[i].runtime);
    }
    clv__loopback_destroy(loopback);
}

TEST_MAIN(NULL, NULL)
