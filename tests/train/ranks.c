// SPDX-License-Identifier: Apache-2.0
// Trainings over ranks that are threads of this process: the bits of as many replicas in one, stops and resumes, ranks
// that end, messages that are not what they should be. (mpi.sh does the same over MPI.)
#include <math.h>
#include <pthread.h>
#include <unistd.h>
#include <xxhash.h>

#include "exec/exchange.h"
#include "exec/ranks.h"
#include "train/small.h"
#include "train/trainer.h"

enum { MOST_RANKS = 4, MOST_NUMBERS = 4096, MOST_STEPS = 64 };

/** A training, as one rank or as the only process sees it. */
typedef struct party {
    clv_runtime *runtime;
    clv_dataset *dataset;
    clv_train_config config;
    clv__loopback_end end;
    clv__loopback *loopback;
    double patience;
    int64_t stops_at, quits_at; // steps: a callback says stop; the rank is gone without a word. 0: none
    // what came of it:
    clv_status status;
    char sentence[1024];
    float numbers[MOST_NUMBERS];
    int n_numbers, n_losses;
    uint64_t digest; // of all parameters; buffers, which are each rank's own, left out
    double losses[MOST_STEPS];
    clv_train_result result;
    size_t state_bytes;
    int64_t sent, told_bytes; // by the exchange; as the plan tells, of a whole batch
    int64_t rows;             // that it computes of a whole batch
    int64_t staged;           // values that are exchanged by way of staging memory
    bool tells;
    clv_metrics alone; // what this rank finds when it tests all of it
    int64_t tested;    // samples, of this rank's part of the test set
    char lost[600];
    bool dies_with_others; // an engine that lets none live
} party;

static clv_tensor *build_wide(clv_tensor *x, const clv_model *model) {
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "hidden", 45, NULL));
    return clv_nn_linear(x, "fc", model->classes, NULL);
}
/** Of whose parameters each rank has a part, one that is not a fourth, or none. */
static const clv_model wide = {
    .name = "wide", .build = build_wide, .input = {1, 4, 6}, .classes = SMALL_CLASSES};

static party parties[MOST_RANKS + 1]; // the last one: in one process
static char folder[] = CLV_TEST_BINARY_DIR;

static bool on_step(void *user, const clv_train_step *step) {
    party *p = user;
    if (p->n_losses < MOST_STEPS) p->losses[p->n_losses++] = step->loss;
    if (p->quits_at && step->step == p->quits_at) {
        clv__ranks_end(p->config.ranks, false, "gone"); // its beats are: those of a process that was killed
        clv__beats_end(p->config.ranks, false);
        return false;
    }
    return !p->stops_at || step->step < p->stops_at;
}

static bool is_buffer(const char *name) {
    return strstr(name, "running_") || strstr(name, "num_batches");
}

static bool on_evaluate(void *user, int64_t done, int64_t total) {
    ((party *)user)->tested = done == total ? done : -1;
    return true;
}

/** Parameters; and how much is kept of the optimizer. */
static void read_parameters(clv_session *session, party *p) {
    p->state_bytes = 0;
    p->digest = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        const int n = (int)(tensor.bytes / sizeof(float));
        if (tensor.category == CLV_OPTIMIZER) p->state_bytes += tensor.bytes;
        if (tensor.category == CLV_PARAMETERS && !is_buffer(tensor.name)) {
            void *data = malloc(tensor.bytes + 1);
            assert_non_null(data);
            if (clv_session_read(session, i, data, tensor.bytes) == CLV_OK)
                p->digest = XXH3_64bits_withSeed(data, tensor.bytes, p->digest);
            free(data);
        }
        if (tensor.category != CLV_PARAMETERS || p->n_numbers + n > MOST_NUMBERS) continue;
        if (clv_session_read(session, i, p->numbers + p->n_numbers, tensor.bytes) == CLV_OK)
            p->n_numbers += n;
    }
}

static void train(party *p) {
    clv_trainer *trainer = NULL;
    p->config.user = p;
    p->config.on_step = on_step;
    p->config.on_evaluate = on_evaluate;
    p->n_losses = p->n_numbers = 0;
    p->digest = 0;
    p->sentence[0] = 0;
    p->status = clv_trainer_create(p->runtime, &p->config, &trainer);
    if (p->status == CLV_OK) {
        p->status = clv_trainer_run(trainer);
        p->result = clv_trainer_result(trainer);
    }
    if (p->status != CLV_OK) snprintf(p->sentence, sizeof p->sentence, "%s", clv_runtime_error(p->runtime));
    if (trainer && (p->status == CLV_OK || p->status == CLV_E_INTERRUPTED))
        read_parameters(clv_trainer_info_get(trainer).session, p);
    if (p->status == CLV_OK && p->config.ranks && p->config.test)
        assert_int_equal(clv_evaluate(trainer->predictor, p->dataset, NULL, NULL, &p->alone), CLV_OK);
    if (trainer && p->config.ranks)
        p->told_bytes = clv_ranks_step_bytes(p->config.ranks, clv_trainer_info_get(trainer).plan);
    const clv_plan *plan = trainer ? trainer->step[CLV__FULL].plan : NULL;
    for (size_t i = 0; plan && i < plan->n_transfers; i++)
        p->staged += plan->transfers[i].exchanged && !plan->transfers[i].shared;
    if (trainer && trainer->step[CLV__FULL].graph)
        p->rows = clv_tensor_shape(trainer->step[CLV__FULL].fed[0]).dims[0];
    clv_trainer_destroy(trainer);
}

static char checkpoint_path[512], kept_path[512];

/** Another one is lost: with those that are left, from the checkpoint, of which a copy is kept. */
static bool goes_on(party *p) {
    static char text[1 << 16];
    if (p->quits_at && p->n_losses && !p->config.ranks->beats) return false; // it is the one
    if (clv_ranks_info_get(p->config.ranks).lost == NULL) return false;
    p->status = clv_ranks_go_on(p->config.ranks);
    if (p->status != CLV_OK) {
        snprintf(p->sentence, sizeof p->sentence, "%s", clv_runtime_error(p->runtime));
        return false;
    }
    p->config.resume = checkpoint_path;
    if (p->config.ranks->place.rank == 0) {
        FILE *from = fopen(checkpoint_path, "rb"), *to = fopen(kept_path, "wb");
        const size_t n = from && to ? fread(text, 1, sizeof text, from) : 0;
        if (!n || n == sizeof text || fwrite(text, 1, n, to) != n) p->status = CLV_E_IO;
        if (from) fclose(from);
        if (to) fclose(to);
    }
    return p->status == CLV_OK;
}

static void *be_rank(void *user) {
    party *p = user;
    p->status = clv__ranks_open(p->runtime, &clv__transport_loopback, &p->end, p->patience, &p->config.ranks);
    if (p->config.ranks && p->dies_with_others) p->config.ranks->place.survives = false;
    if (p->status == CLV_OK) train(p);
    while (p->status == CLV_E_RANK_LOST && p->config.on_rank_failure && goes_on(p)) train(p);
    if (p->config.ranks) {
        const clv_ranks_info info = clv_ranks_info_get(p->config.ranks);
        p->sent = info.sent_bytes;
        p->tells = info.tells;
        snprintf(p->lost, sizeof p->lost, "%s", info.lost ? info.lost : "");
    }
    if (!p->quits_at) clv_ranks_destroy(p->config.ranks);
    p->config.ranks = NULL;
    return NULL;
}

/** A device for each rank: parts of one, or the same. */
static clv_device *device_of(clv_runtime *runtime, int rank) {
    char name[16];
    clv_device *device;
    snprintf(name, sizeof name, "cpu:%d", rank);
    if (clv_device_find(runtime, name, &device) != CLV_OK) device = clv__test_device(runtime, "host");
    return device;
}

static bool has_devices(int n) {
    char name[16];
    clv_device *device;
    snprintf(name, sizeof name, "cpu:%d", n - 1);
    return clv_device_find(parties[0].runtime, name, &device) == CLV_OK;
}

FIXTURE(setup) {
    snprintf(kept_path, sizeof kept_path, "%s/train_ranks_left.%d.kept", folder, (int)getpid());
    snprintf(checkpoint_path, sizeof checkpoint_path, "%s/train_ranks_left.%d.checkpoint", folder,
             (int)getpid());
    for (int i = 0; i <= MOST_RANKS; i++) {
        parties[i].runtime = clv__test_runtime(NULL);
        parties[i].dataset = small_dataset(parties[i].runtime, 65);
    }
}

FIXTURE(teardown) {
    for (int i = 0; i <= MOST_RANKS; i++) {
        clv_dataset_destroy(parties[i].dataset);
        clv_runtime_destroy(parties[i].runtime);
    }
}

/** The same settings for all; each its own data and device. */
static void prepare(int n, const clv_train_config *config) {
    for (int i = 0; i < n; i++) {
        party *p = &parties[i];
        *p = (party){.runtime = p->runtime, .dataset = p->dataset, .config = *config, .end = {.rank = i}};
        p->config.train = p->dataset;
        if (config->test) p->config.test = p->dataset;
        p->config.device = device_of(p->runtime, 0); // of its own runtime, as of its own machine
    }
}

/** Those that threads of a training that was ended may look at still. */
static clv__loopback *left[64];
static int n_left;

static void leave(clv__loopback *loopback) {
    assert_in_range(n_left, 0, sizeof left / sizeof *left - 1);
    left[n_left++] = loopback;
}

static void run_ranks(int n) {
    pthread_t threads[MOST_RANKS];
    clv__loopback *loopback = clv__loopback_create(n);
    assert_non_null(loopback);
    for (int i = 0; i < n; i++) {
        parties[i].end.loopback = loopback;
        assert_int_equal(pthread_create(&threads[i], NULL, be_rank, &parties[i]), 0);
    }
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    bool orderly = true;
    for (int i = 0; i < n; i++)
        orderly &= parties[i].status == CLV_OK || parties[i].status == CLV_E_INTERRUPTED;
    if (orderly)
        clv__loopback_destroy(loopback);
    else
        leave(loopback);
}

/** The same training by replicas in this process. */
static party *run_one(int n, const clv_train_config *config) {
    static const char *const names[] = {"cpu:0", "cpu:1", "cpu:2", "cpu:3"};
    party *p = &parties[MOST_RANKS];
    *p = (party){.runtime = p->runtime, .dataset = p->dataset, .config = *config};
    p->config.train = p->dataset;
    if (config->test) p->config.test = p->dataset;
    p->config.device = device_of(p->runtime, 0);
    if (n > 1) p->config.placement = (clv_placement){.replicas = names, .n_replicas = n};
    train(p);
    assert_status(p->status, CLV_OK, p->runtime);
    return p;
}

static void assert_same(const party *a, const party *b) {
    assert_int_equal(a->n_losses, b->n_losses);
    assert_memory_equal(a->losses, b->losses, (size_t)a->n_losses * sizeof *a->losses);
    assert_true(a->n_numbers > 0);
    assert_int_equal(a->n_numbers, b->n_numbers);
    assert_memory_equal(a->numbers, b->numbers, (size_t)a->n_numbers * sizeof *a->numbers);
}

/** 65 samples in batches of 16: the last batch has one, so three of four ranks have none of it. */
static clv_train_config config_of(const clv_model *model, clv_optimizer_config optimizer,
                                  clv_precision precision) {
    clv_train_config config = small_config(model, parties[0].dataset, 16, 2);
    config.optimizer = optimizer;
    config.precision = precision;
    config.lr = 0.01;
    return config;
}

TEST(test_ranks_have_the_bits_of_replicas) {
    const clv_optimizer_config sgd = {.momentum = 0.9f}, adam = {.kind = CLV_ADAM},
                               clipped = {.kind = CLV_ADAMW, .weight_decay = 0.1f, .clip_norm = 0.5f};
    if (!has_devices(4)) skip();
    for (int n = 2; n <= 4; n += 2) {
        for (int c = 0; c < 6; c++) {
            clv_train_config config = config_of(c == 0 || c == 4 ? &small_plain
                                                : c == 5         ? &small_model
                                                                 : &wide,
                                                c % 3 == 0   ? sgd
                                                : c % 3 == 1 ? adam
                                                             : clipped,
                                                c % 2 ? CLV_PRECISION_MIXED : CLV_PRECISION_F32);
            if (c == 3) config.micro_batches = 2;
            if (c == 2) config.ema_decay = 0.9;
            prepare(n, &config);
            run_ranks(n);
            for (int i = 0; i < n; i++) assert_string_equal(parties[i].sentence, "");
            const party *one = run_one(n, &config);
            assert_same(&parties[0], one);
            int64_t tested = 0;
            for (int i = 0; i < n; i++) {
                tested += parties[i].tested;
                assert_int_equal(parties[i].result.test.count, 65);
                assert_int_equal(parties[i].result.test.correct, one->result.test.correct);
                assert_true(parties[i].result.test.loss == parties[0].alone.loss);
                assert_true(fabs(parties[i].result.test.loss - one->result.test.loss) <
                            1e-5); // other batches
            }
            assert_int_equal(tested, 65);           // each a part
            assert_int_equal(parties[0].staged, 0); // a CPU has them in the host's memory
            size_t kept = 0;
            for (int i = 0; i < n; i++) kept += parties[i].state_bytes;
            // clipping, averages: each updates all; a scaler's three numbers are everybody's
            const bool parts = c % 3 != 2;
            const size_t everybody = c % 2 ? 3 * sizeof(float) : 0;
            assert_int_equal(parts ? kept - (size_t)(n - 1) * everybody : kept / (size_t)n, one->state_bytes);
            if (c == 1 && n == 4) // of 1080 elements of the largest, from 256 to 384
                for (int i = 0; i < n; i++)
                    assert_in_range(parties[i].state_bytes, 2 * 4 * 128, 2 * 4 * (384 + 135 + 48));
            if (c == 5) continue; // running statistics are each rank's own: rank 0's are kept
            for (int i = 1; i < n; i++) assert_same(&parties[i], one);
        }
    }
}

/** 8 samples of [3,32,32]. */
static clv_dataset *pictures(clv_runtime *runtime) {
    static float images[8 * 3 * 32 * 32];
    static int32_t labels[8];
    clv_dataset *dataset = NULL;
    for (int i = 0; i < 8; i++) labels[i] = i;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++) images[i] = (float)(i * 7919 % 509) / 254 - 1;
    clv_array x = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(8, 3, 32, 32), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(8), .data = labels, .borrowed = true};
    assert_status(clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset), CLV_OK, runtime);
    return dataset;
}

/** Of many layers, with normalisation of batches and shortcuts. */
TEST(test_resnet_has_the_bits_of_replicas) {
    if (!has_devices(4)) skip();
    const clv_model model = clv_model_for(clv_model_find("resnet18"), 3, 32, 32, 10);
    clv_dataset *kept[MOST_RANKS + 1];
    for (int i = 0; i <= MOST_RANKS; i++) {
        kept[i] = parties[i].dataset;
        parties[i].dataset = pictures(parties[i].runtime);
    }
    for (int c = 0; c < 4; c++) {
        clv_train_config config = {.model = &model,
                                   .batch = 8,
                                   .steps = 2,
                                   .seed = 5,
                                   .lr = 0.01,
                                   .optimizer = {.kind = c % 2 ? CLV_ADAM : CLV_SGD, .momentum = 0.9f},
                                   .precision = c / 2 ? CLV_PRECISION_MIXED : CLV_PRECISION_F32};
        if (c % 2) config.optimizer.momentum = 0;
        prepare(4, &config);
        run_ranks(4);
        for (int i = 0; i < 4; i++) assert_status(parties[i].status, CLV_OK, parties[i].runtime);
        const party *one = run_one(4, &config);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(parties[i].n_losses, 2);
            assert_memory_equal(parties[i].losses, one->losses, 2 * sizeof *one->losses);
            assert_true(parties[i].digest == one->digest);
        }
    }
    for (int i = 0; i <= MOST_RANKS; i++) {
        clv_dataset_destroy(parties[i].dataset);
        parties[i].dataset = kept[i];
    }
}

/** Layers on devices of two ranks, and on two of one: the bits of the same placement in one process. */
TEST(test_layers_over_ranks) {
    static const char *const places[][2] = {
        {"*=0:cpu:0,fc=1:cpu:1", "*=cpu:0,fc=cpu:1"},
        {"*=1:cpu:0,fc=cpu:1", "*=cpu:0,fc=cpu:1"},
        {"conv=cpu:0,norm=1:cpu:1,fc=1:cpu:2", "conv=cpu:0,norm=cpu:1,fc=cpu:2"},
        {"conv=2:cpu:0,norm=0:cpu:1,fc=2:cpu:2", "conv=cpu:0,norm=cpu:1,fc=cpu:2"}};
    const clv_optimizer_config sgd = {.momentum = 0.9f}, adam = {.kind = CLV_ADAM},
                               clipped = {.kind = CLV_ADAMW, .weight_decay = 0.1f, .clip_norm = 0.5f};
    if (!has_devices(4)) skip();
    for (int c = 0; c < 6; c++) {
        const char *const *place = places[c % 4];
        const int n = c % 4 == 3 ? 3 : 2;
        clv_train_config config = config_of(&small_model,
                                            c % 3 == 0   ? sgd
                                            : c % 3 == 1 ? adam
                                                         : clipped,
                                            c % 2 ? CLV_PRECISION_MIXED : CLV_PRECISION_F32);
        config.micro_batches = c % 3 + 1;
        if (c == 2) config.ema_decay = 0.9;
        config.placement.place = place[0];
        prepare(n, &config);
        run_ranks(n);
        for (int i = 0; i < n; i++) assert_status(parties[i].status, CLV_OK, parties[i].runtime);
        config.placement.place = place[1];
        const party *one = run_one(1, &config);
        assert_same(&parties[0], one); // rank 0 has what the others hold
        for (int i = 0; i < n; i++) {
            assert_int_equal(parties[i].n_losses, one->n_losses);
            assert_memory_equal(parties[i].losses, one->losses, (size_t)one->n_losses * sizeof *one->losses);
            assert_true(fabs(parties[i].result.test.loss - one->result.test.loss) < 1e-5); // other batches
            assert_true(parties[i].result.test.loss == parties[0].result.test.loss);
            assert_int_equal(parties[i].result.test.correct, one->result.test.correct);
        }
    }
}

/** With statistics of the whole batch ranks train as one process with all of it; without, they do not. */
TEST(test_batch_norm_over_ranks) {
    for (int c = 0; c < 3; c++) {
        const int n = c == 2 ? 3 : 4;
        clv_train_config config = config_of(&small_model,
                                            c == 1 ? (clv_optimizer_config){.clip_norm = 0.1f}
                                                   : (clv_optimizer_config){.momentum = 0.9f},
                                            c == 1 ? CLV_PRECISION_MIXED : CLV_PRECISION_F32);
        config.steps = 4; // whole batches: rounding grows later
        config.test = NULL;
        config.lr = 1e-3;
        const party *one = run_one(1, &config);
        for (int sync = 0; sync < 2; sync++) {
            config.sync_batch_norm = sync;
            prepare(n, &config);
            run_ranks(n);
            for (int i = 0; i < n; i++) {
                double losses = 0, numbers = 0;
                assert_status(parties[i].status, CLV_OK, parties[i].runtime);
                if (!sync && i) continue; // has no running statistics
                assert_int_equal(parties[i].n_numbers, one->n_numbers);
                for (int k = 0; k < one->n_losses; k++)
                    losses = fmax(losses, fabs(parties[i].losses[k] - one->losses[k]));
                for (int k = 0; k < one->n_numbers; k++) // running statistics too
                    numbers = fmax(numbers, fabs((double)(parties[i].numbers[k] - one->numbers[k])));
                assert_true(sync ? losses < 1e-5 && numbers < 1e-5 : losses > 1e-4 && numbers > 1e-4);
            }
        }
    }
    clv_train_config config = config_of(&small_model, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.sync_batch_norm = true;
    config.micro_batches = 2;
    prepare(2, &config);
    run_ranks(2);
    assert_status(parties[0].status, CLV_E_UNSUPPORTED, parties[0].runtime);
    assert_holds(parties[0].sentence, "does not go together with micro-batches");
}

/** Unequal parts of a batch, given and measured: the losses of one process with all of it. */
TEST(test_shares_of_ranks) {
    static const double given[] = {0.5, 0.125, 0.375}, wrong[] = {0.5, 0.01, 0.49};
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.test = NULL;
    const party *one = run_one(1, &config);
    for (int measured = 0; measured < 2; measured++) {
        config.rank_shares = measured ? NULL : given;
        config.placement.measure_shares = measured;
        prepare(3, &config);
        run_ranks(3);
        for (int i = 0; i < 3; i++) {
            assert_status(parties[i].status, CLV_OK, parties[i].runtime);
            assert_same(&parties[i], &parties[0]);
            for (int k = 0; k < one->n_losses; k++)
                assert_true(fabs(parties[i].losses[k] - one->losses[k]) < 1e-5);
            if (!measured) assert_int_equal(parties[i].rows, (int64_t)(16 * given[i]));
        }
        assert_int_equal(parties[0].rows + parties[1].rows + parties[2].rows, 16);
    }
    config.rank_shares = wrong;
    prepare(3, &config);
    run_ranks(3);
    assert_status(parties[0].status, CLV_E_VALUE, parties[0].runtime);
    assert_holds(parties[0].sentence, "rank 1 has a share of 0.01 of 16 samples");
}

/** Gradients as bf16: half the bytes, one set of weights, and nearly the losses. */
TEST(test_gradients_as_bf16) {
    clv_train_config config = config_of(&wide, (clv_optimizer_config){.kind = CLV_ADAM}, CLV_PRECISION_F32);
    double last[2];
    int64_t told[2];
    config.test = NULL;
    config.epochs = 5;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        config.bf16_compress = bf16;
        prepare(3, &config);
        run_ranks(3);
        for (int i = 0; i < 3; i++) {
            assert_status(parties[i].status, CLV_OK, parties[i].runtime);
            assert_same(&parties[i], &parties[0]);
        }
        assert_int_equal(parties[1].sent % parties[1].told_bytes, 0);
        last[bf16] = parties[0].losses[parties[0].n_losses - 1];
        told[bf16] = parties[1].told_bytes;
    }
    assert_true(told[1] <= told[0] / 2 + 2 * 2 * (int64_t)sizeof(clv__exchange_head));
    assert_true(fabs(last[1] - last[0]) < 0.01 * last[0]);
    assert_true(last[1] != last[0]);
}

/** What a rank sends is what the plan tells, and no more than twice its (N-1)/N part of the parameters and a little for heads. */
TEST(test_bytes_are_as_planned) {
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.steps = 3;
    config.test = NULL;
    prepare(3, &config);
    run_ranks(3);
    for (int i = 0; i < 3; i++) {
        assert_status(parties[i].status, CLV_OK, parties[i].runtime);
        assert_true(parties[i].told_bytes > 0);
        assert_int_equal(parties[i].sent, 3 * parties[i].told_bytes);
        assert_same(&parties[i], &parties[0]);
    }
    if (!has_devices(2)) return;
    config.placement.place = "*=cpu:0,fc=1:cpu:1";
    prepare(2, &config);
    run_ranks(2);
    for (int i = 0; i < 2; i++) {
        assert_status(parties[i].status, CLV_OK, parties[i].runtime);
        assert_int_equal(parties[i].sent, 3 * parties[i].told_bytes);
        // rank 0 sends what fc reads, 16 samples of 36 numbers, rank 1 its gradient; with heads, and the loss
        assert_in_range(parties[i].told_bytes, 16 * 36 * 4, 16 * 36 * 4 + 400);
    }
}

/** Of n ranks one is asked to stop, and all do, after the same step: which. */
static int64_t stop_all(const clv_train_config *config, int n, int asked) {
    prepare(n, config);
    parties[asked].stops_at = 6;
    run_ranks(n);
    const int64_t stopped = parties[0].result.steps;
    assert_in_range(stopped, 6, 9);
    for (int i = 0; i < n; i++) {
        assert_status(parties[i].status, CLV_E_INTERRUPTED, parties[i].runtime);
        assert_int_equal(parties[i].result.steps, stopped);
    }
    return stopped;
}

/** Of layers over ranks: stopped, and continued by the same ranks, and by one process with all layers on one device. */
TEST(test_layers_go_on_from_a_checkpoint) {
    char checkpoint[512];
    snprintf(checkpoint, sizeof checkpoint, "%s/train_ranks_layers.%d.checkpoint", folder, (int)getpid());
    if (!has_devices(2)) skip();
    clv_train_config config =
        config_of(&small_model, (clv_optimizer_config){.kind = CLV_ADAM}, CLV_PRECISION_F32);
    config.test = NULL;
    config.placement.place = "*=0:cpu:0,fc=1:cpu:0";
    prepare(2, &config);
    run_ranks(2);
    const party whole = parties[0];
    config.checkpoint = checkpoint;
    const int64_t stopped = stop_all(&config, 2, 1);
    config.checkpoint = NULL;
    config.resume = checkpoint;
    prepare(2, &config);
    run_ranks(2);
    for (int i = 0; i < 2; i++) {
        assert_status(parties[i].status, CLV_OK, parties[i].runtime);
        assert_memory_equal(parties[i].losses, whole.losses + stopped,
                            (size_t)parties[i].n_losses * sizeof *whole.losses);
    }
    assert_memory_equal(parties[0].numbers, whole.numbers, sizeof whole.numbers);
    config.placement.place = NULL;
    const party *one = run_one(1, &config);
    assert_memory_equal(one->numbers, whole.numbers, sizeof whole.numbers);
    unlink(checkpoint);
}

/** What does not go together with layers over ranks is refused, and so is a device that the rank has not. */
TEST(test_layers_that_cannot_be) {
    static const char *const replicas[] = {"host"};
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.placement = (clv_placement){.place = "*=1:host", .replicas = replicas, .n_replicas = 1};
    prepare(2, &config);
    run_ranks(2);
    assert_status(parties[0].status, CLV_E_UNSUPPORTED, parties[0].runtime);
    assert_holds(parties[0].sentence, "do not go together with replicas");
    config.placement = (clv_placement){.place = "*=1:gpu:7"};
    prepare(2, &config);
    run_ranks(2);
    assert_status(parties[0].status, CLV_E_NOT_FOUND, parties[0].runtime);
    assert_holds(parties[0].sentence, "there is no device '1:gpu:7'");
}

/** A checkpoint of four ranks goes on with four to the same bits, with two and with one to the same losses but for rounding. */
TEST(test_a_checkpoint_goes_on_with_others) {
    char checkpoint[512];
    snprintf(checkpoint, sizeof checkpoint, "%s/train_ranks.%d.checkpoint", folder, (int)getpid());
    clv_train_config config = config_of(&wide, (clv_optimizer_config){.kind = CLV_ADAM}, CLV_PRECISION_F32);
    prepare(4, &config);
    run_ranks(4);
    const party whole = parties[0];
    config.checkpoint = checkpoint;
    const int64_t stopped = stop_all(&config, 4, 2);
    config.checkpoint = NULL;
    config.resume = checkpoint;
    for (int n = 4; n >= 1; n /= 2) {
        prepare(n, &config);
        run_ranks(n);
        for (int i = 0; i < n; i++) {
            const party *p = &parties[i];
            assert_status(p->status, CLV_OK, p->runtime);
            assert_int_equal(p->n_losses, whole.n_losses - stopped);
            for (int k = 0; k < p->n_losses; k++)
                assert_true(fabs(p->losses[k] - whole.losses[stopped + k]) <= (n == 4 ? 0 : 1e-5));
        }
        if (n == 4) assert_memory_equal(parties[3].numbers, whole.numbers, sizeof whole.numbers);
    }
    unlink(checkpoint);
}

/** Patience ends all of them after the same epoch, though the first alone tests. */
TEST(test_patience_is_the_first_ranks) {
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.epochs = 12;
    config.patience = 1;
    config.min_delta = 1e6;
    prepare(2, &config);
    run_ranks(2);
    for (int i = 0; i < 2; i++) {
        assert_status(parties[i].status, CLV_OK, parties[i].runtime);
        assert_int_equal(parties[i].result.end, CLV_END_PATIENCE);
        assert_int_equal(parties[i].result.epochs, 2);
        assert_true(parties[i].result.test.loss == parties[0].result.test.loss);
    }
}

/** A rank that says nothing any more ends the others, with a sentence. */
TEST(test_a_lost_rank_ends_all) {
    for (int lost = 0; lost < 3; lost++) {
        char part[64];
        clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
        config.epochs = 100;
        config.test = NULL;
        config.checkpoint = "/nowhere/at/all";
        if (lost == 0) config.checkpoint = NULL;
        prepare(3, &config);
        for (int i = 0; i < 3; i++) {
            parties[i].patience = 2;
            parties[i].config.checkpoint = NULL;
        }
        parties[lost].quits_at = 4;
        run_ranks(3);
        int told = 0;
        snprintf(part, sizeof part, "rank %d of 3 ", lost);
        for (int i = 0; i < 3; i++) {
            if (i == lost) continue;
            assert_status(parties[i].status, CLV_E_RANK_LOST, parties[i].runtime);
            assert_holds(parties[i].sentence, part);
            assert_holds(parties[i].sentence, "after step ");
            told += parties[i].tells;
        }
        assert_int_equal(told, 1);
    }
}

/** Those that are left go on from the last checkpoint: to the bits of as many that are started from it. */
TEST(test_those_that_are_left_go_on) {
    static party others[MOST_RANKS];
    // which is lost, and which later; the first at a step that is between two checkpoints, as is the one under way then
    static const int rows[][3] = {{3, 2, -1}, {3, 0, -1}, {3, 1, -1}, {2, 1, -1}, {4, 2, 0}};
    for (size_t c = 0; c < sizeof rows / sizeof *rows; c++) {
        clv_train_config config =
            config_of(&wide, (clv_optimizer_config){.kind = CLV_ADAM}, CLV_PRECISION_F32);
        const int n = rows[c][0], twice = rows[c][2] >= 0, n_after = n - 1 - twice;
        config.epochs = 4;
        config.checkpoint = checkpoint_path;
        config.checkpoint_every = 3;
        config.on_rank_failure = CLV_RANK_FAILURE_CONTINUE;
        unlink(checkpoint_path);
        prepare(n, &config);
        for (int i = 0; i < n; i++) parties[i].patience = 2;
        parties[rows[c][1]].quits_at = 7;
        if (twice) parties[rows[c][2]].quits_at = 13;
        run_ranks(n);
        for (int i = 0, at = 0; i < n; i++) {
            if (i == rows[c][1] || i == rows[c][2]) continue;
            assert_status(parties[i].status, CLV_OK, parties[i].runtime);
            assert_string_equal(parties[i].lost, "");
            others[at++] = parties[i];
        }
        config.checkpoint = NULL;
        config.on_rank_failure = CLV_RANK_FAILURE_STOP;
        config.resume = kept_path;
        prepare(n_after, &config);
        run_ranks(n_after);
        for (int i = 0; i < n_after; i++) {
            assert_status(parties[i].status, CLV_OK, parties[i].runtime);
            assert_in_range(parties[i].n_losses, twice ? 6 : 12, twice ? 10 : 14);
            assert_same(&parties[i], &others[i]);
            assert_true(parties[i].result.test.loss == others[i].result.test.loss);
        }
    }
    unlink(kept_path); // the checkpoint stays: the next test must not go on from one of another training
}

/** They end with a sentence where they cannot. */
TEST(test_those_that_cannot_go_on) {
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.test = NULL;
    config.epochs = 100;
    config.checkpoint = checkpoint_path;
    config.on_rank_failure = CLV_RANK_FAILURE_CONTINUE;
    for (int lost = 0; lost < 2; lost++) { // before there is one; rank 0 of two
        config.checkpoint_every = lost ? 0 : 3;
        prepare(lost ? 3 : 2, &config);
        for (int i = 0; i < 3; i++) parties[i].patience = 2;
        parties[lost].quits_at = lost ? 3 : 7;
        run_ranks(lost ? 3 : 2);
        const party *other = &parties[lost ? 0 : 1];
        assert_status(other->status, CLV_E_RANK_LOST, other->runtime);
        assert_true(other->tells);
        assert_holds(other->sentence, lost ? "there is no checkpoint to go on from yet" : "too few are left");
    }
    static const char *const said[] = {"needs a checkpoint", "--enable-recovery",
                                       "without a rank that has layers", "the shares of fewer ranks"};
    static const double shares[] = {0.5, 0.5};
    for (int c = 0; c < 4; c++) {
        clv_train_config wrong = config;
        if (c == 0) wrong.checkpoint = NULL;
        if (c == 2) wrong.placement.place = "*=0:host,fc=1:host";
        if (c == 3) wrong.rank_shares = shares;
        prepare(2, &wrong);
        parties[0].dies_with_others = parties[1].dies_with_others = c == 1;
        run_ranks(2);
        assert_status(parties[0].status, c ? CLV_E_UNSUPPORTED : CLV_E_VALUE, parties[0].runtime);
        assert_holds(parties[0].sentence, said[c]);
    }
    unlink(checkpoint_path);
}

/** The same where it has some of the layers. */
TEST(test_a_lost_rank_ends_layers) {
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    config.epochs = 100;
    config.test = NULL;
    config.placement.place = "*=0:host,fc=1:host";
    for (int lost = 0; lost < 2; lost++) {
        char part[64];
        prepare(2, &config);
        parties[0].patience = parties[1].patience = 2;
        parties[lost].quits_at = 4;
        run_ranks(2);
        snprintf(part, sizeof part, "rank %d of 2 ", lost);
        assert_status(parties[!lost].status, CLV_E_RANK_LOST, parties[!lost].runtime);
        assert_holds(parties[!lost].sentence, part);
    }
}

/** A rank with other settings, and one whose data end: the others hear of it. */
TEST(test_ranks_that_differ_are_refused) {
    clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
    prepare(3, &config);
    parties[1].config.lr = 0.5;
    run_ranks(3);
    assert_status(parties[1].status, CLV_E_VALUE, parties[1].runtime);
    assert_holds(parties[1].sentence, "rank 1 trains something else than rank 0");
    assert_status(parties[0].status, CLV_E_RANK_LOST, parties[0].runtime);
    assert_holds(parties[2].sentence, "rank 1 of 3 ended after step 0: rank 1 trains something else");

    prepare(3, &config);
    parties[2].config.label_smoothing = 0.5;
    run_ranks(3);
    assert_status(parties[2].status, CLV_E_VALUE, parties[2].runtime);
    assert_holds(parties[2].sentence,
                 "rank 2 trains with other settings than rank 0: label_smoothing 0.5; there "
                 "label_smoothing 0");

    config.batch = 2; // all of them find that, and the first tells it
    prepare(3, &config);
    run_ranks(3);
    for (int i = 0; i < 3; i++) {
        assert_status(parties[i].status, CLV_E_VALUE, parties[i].runtime);
        assert_int_equal(parties[i].tells, i == 0);
        assert_int_equal(strncmp(parties[i].lost, "a batch of 2 samples for 3 ranks", 32), 0);
    }
    config.batch = 16;
    config.mixup = 0.2;
    prepare(2, &config);
    run_ranks(2);
    assert_status(parties[0].status, CLV_E_UNSUPPORTED, parties[0].runtime);
}

/** One that cannot make its trainer, and one that cannot begin with it: the first tells which. */
TEST(test_a_rank_that_cannot_begin_ends_all) {
    for (int c = 0; c < 2; c++) {
        clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
        config.batch = 16;
        prepare(3, &config);
        if (c == 0)
            parties[1].config.mixup = 0.2;
        else
            parties[1].config.resume = "/nowhere/at/all";
        run_ranks(3);
        for (int i = 0; i < 3; i++) {
            if (i != 1) assert_status(parties[i].status, CLV_E_RANK_LOST, parties[i].runtime);
            assert_int_equal(parties[i].tells, i == 0);
            assert_int_equal(strncmp(parties[i].lost, "rank 1 of 3: ", 13), 0);
        }
        assert_int_equal(parties[1].status, c == 0 ? CLV_E_UNSUPPORTED : CLV_E_IO);
    }
}

/** A message of no rank, where the first of an exchange should be. */
TEST(test_foreign_messages_are_refused) {
    static const char *const said[] = {"does not belong to an exchange", "does not belong to an exchange",
                                       "came where at most"};
    for (int c = 0; c < 3; c++) {
        clv_train_config config = config_of(&small_plain, (clv_optimizer_config){0}, CLV_PRECISION_F32);
        char junk[1 << 16];
        prepare(2, &config);
        memset(junk, 0x5a, sizeof junk);
        clv__loopback *loopback = clv__loopback_create(2);
        assert_true(clv__loopback_put(loopback, 1, 0, CLV__TAG_EXCHANGE, junk,
                                      c == 0   ? 3
                                      : c == 1 ? 48
                                               : sizeof junk));
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            parties[i].end.loopback = loopback;
            assert_int_equal(pthread_create(&threads[i], NULL, be_rank, &parties[i]), 0);
        }
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 2; i++) {
            assert_status(parties[i].status, CLV_E_RANK_LOST, parties[i].runtime);
            assert_holds(parties[i].sentence, said[c]);
        }
        leave(loopback);
    }
}

/** Without MPI's library the sentence says what is missing. */
TEST(test_what_is_missing_is_told) {
    clv_ranks *ranks = NULL;
    setenv("CLEAVE_MPI_LIBRARY", "/nowhere/libcleave_mpi.so", 1);
    assert_status(clv_ranks_create(parties[0].runtime, NULL, &ranks), CLV_E_NOT_FOUND, parties[0].runtime);
    assert_null(ranks);
    assert_holds(clv_runtime_error(parties[0].runtime), "libopenmpi-dev");
    unsetenv("CLEAVE_MPI_LIBRARY");
    const clv_ranks_config config = {.engine = "pigeons"};
    assert_status(clv_ranks_create(parties[0].runtime, &config, &ranks), CLV_E_NOT_FOUND, parties[0].runtime);
    clv_ranks_destroy(NULL);
}

/** One argument: the test of that name alone. */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return clv__tests_run(setup, teardown);
}
