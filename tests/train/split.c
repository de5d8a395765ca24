// SPDX-License-Identifier: Apache-2.0
// A model whose weights are larger than the largest allocation, through the trainer: a checkpoint that was written where they lie in
// pieces goes on where they do not, and the other way round; evaluation, weights files and budgets know one tensor.
#include <math.h>

#include "cleave/train.h"
#include "device/device.h"
#include "train/small.h"

enum { SAMPLES = 50, ROW = 12 * 12, CLASSES = 5, LARGEST = 32 << 10 };

static clv_runtime *runtime;
static clv_dataset *dataset;

static clv_tensor *build(clv_tensor *x, const clv_model *model) {
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 200, NULL));
    return clv_nn_linear(clv_nn_dropout(x, 0.2f), "fc2", model->classes, NULL);
}

static const clv_model model = {.name = "wide", .build = build, .input = {1, 12, 12}, .classes = CLASSES};

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    dataset = small_samples(runtime, SAMPLES, 12, 12, CLASSES);
}

FIXTURE(teardown) {
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(runtime);
}

static const char *checkpoint(void) {
    return CLV_TEST_BINARY_DIR "/train_split.checkpoint";
}

typedef struct trained {
    float weight[200 * ROW];
    double loss, accuracy;
    int pieces;
} trained;

/** Train on a device that allocates `largest` bytes at a time; 0: as it is. */
static void train(clv_device *device, uint64_t largest, clv_train_config config, trained *out) {
    const uint64_t before = device->info.max_alloc_bytes;
    if (largest) device->info.max_alloc_bytes = largest;
    config.device = device;
    config.model = &model;
    config.train = config.test = dataset;
    config.batch = 20; // the last one of an epoch is smaller
    config.lr = 0.05;
    config.optimizer = (clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f};
    clv_device_memory_reset_peak(device);
    clv_trainer *trainer = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(device).all.peak,
                     clv_trainer_device_info_get(trainer, device).memory.predicted_peak_bytes);
    clv_session *session = clv_trainer_info_get(trainer).session;
    const int at = clv_session_find(session, "fc1.weight");
    assert_int_equal(clv_session_get(session, at).bytes, sizeof out->weight);
    assert_status(clv_session_read(session, at, out->weight, sizeof out->weight), CLV_OK, runtime);
    out->loss = clv_trainer_result(trainer).test.loss;
    out->accuracy = clv_trainer_result(trainer).test.accuracy;
    clv_trainer_destroy(trainer);
    device->info.max_alloc_bytes = before;
}

static void near(const trained *a, const trained *b) {
    for (size_t i = 0; i < sizeof a->weight / sizeof *a->weight; i++)
        if (fabsf(a->weight[i] - b->weight[i]) > 1e-6f)
            fail_msg("weight %zu is %.9g and %.9g", i, (double)a->weight[i], (double)b->weight[i]);
    assert_true(fabs(a->loss - b->loss) < 1e-5);
    assert_true(a->accuracy == b->accuracy); // NOLINT: counts
}

TEST(test_a_checkpoint_goes_on_where_tensors_are_cut_otherwise) {
    static trained whole, parts, mixed;
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(device->info.backend, "opencl") != 0)
            continue; // references have workspaces larger than their tensors
        train(device, 0, (clv_train_config){.epochs = 4}, &whole);
        train(device, LARGEST, (clv_train_config){.epochs = 4}, &parts);
        near(&whole, &parts);
        for (int first_cut = 0; first_cut < 2; first_cut++) {
            train(device, first_cut ? LARGEST : 0,
                  (clv_train_config){.epochs = 2, .checkpoint = checkpoint()}, &mixed);
            train(device, first_cut ? 0 : LARGEST, (clv_train_config){.epochs = 4, .resume = checkpoint()},
                  &mixed);
            near(&whole, &mixed);
        }
    }
}

/** A budget is kept to. */
TEST(test_a_budget_holds_for_parts) {
    static trained whole, parts;
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(device->info.backend, "opencl") != 0) continue;
        train(device, 0, (clv_train_config){.epochs = 1}, &whole);
        clv_device_set_budget(device, 620 << 10);
        train(device, LARGEST, (clv_train_config){.epochs = 1, .recompute = "auto"}, &parts);
        assert_true(clv_device_memory(device).all.peak <= 620 << 10);
        clv_device_set_budget(device, 0);
        near(&whole, &parts);
    }
}

TEST_MAIN(setup, teardown)
