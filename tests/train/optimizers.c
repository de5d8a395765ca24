// SPDX-License-Identifier: Apache-2.0
// A training with each optimizer: it learns, holds what was planned, and gone on with it has the same bits. Their numbers are held against
// PyTorch's by tests/golden/optimizer.c.
#include <unistd.h>

#include "train/small.h"

enum { MOST = 4096 };

TEST_RUNTIME_OF(NULL)

static const struct {
    const char *name;
    clv_optimizer_config config;
    double lr;
} cases[] = {
    {"sgd", {.kind = CLV_SGD, .momentum = 0.9f}, 0.05},
    {"adam", {.kind = CLV_ADAM}, 0.01},
    {"adamw", {.kind = CLV_ADAMW}, 0.01},
    {"rmsprop", {.kind = CLV_RMSPROP}, 0.01},
    {"rmsprop, all states", {.kind = CLV_RMSPROP, .centered = true, .momentum = 0.5f}, 0.005},
    {"adagrad", {.kind = CLV_ADAGRAD, .weight_decay = 0.01f}, 0.05},
    {"lion", {.kind = CLV_LION, .weight_decay = 0.01f, .clip_norm = 1}, 0.003},
    {"lamb", {.kind = CLV_LAMB, .weight_decay = 0.01f}, 0.02},
    {"muon", {.kind = CLV_MUON}, 0.02},
};

static void train(clv_device *device, size_t i, const char *checkpoint, const char *resume, int64_t epochs,
                  float *values, int *n, double *loss) {
    clv_dataset *dataset = small_dataset(runtime, 50);
    clv_train_config config = small_config(&small_model, dataset, 16, epochs);
    config.device = device;
    config.optimizer = cases[i].config;
    config.lr = cases[i].lr;
    config.checkpoint = checkpoint;
    config.resume = resume;
    clv_trainer *trainer = small_trained(runtime, &config);
    *loss = clv_trainer_result(trainer).train_loss;
    assert_status(small_read(clv_trainer_info_get(trainer).session, values, MOST, n), CLV_OK, runtime);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(dataset);
}

static void on_device(const char *spec) {
    static float whole[MOST], resumed[MOST];
    const char *path = CLV_TEST_BINARY_DIR "/train_optimizers.ckpt";
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n, m;
        double first, last;
        train(device, i, NULL, NULL, 6, whole, &n, &last);
        train(device, i, path, NULL, 2, resumed, &m, &first);
        if (!(last < first)) fail_msg("%s: the loss went from %g to %g", cases[i].name, first, last);
        train(device, i, NULL, path, 6, resumed, &m, &last);
        assert_int_equal(n, m);
        if (memcmp(whole, resumed, (size_t)n * sizeof *whole)) fail_msg("%s: other bits", cases[i].name);
    }
    unlink(path);
}

TEST_ON_DEVICES(on_device)

/** Another one, or with other settings, is refused. */
TEST(test_refused) {
    const char *path = CLV_TEST_BINARY_DIR "/train_optimizers_refused.ckpt";
    static const struct {
        clv_optimizer_config config;
        const char *sentence;
    } others[] = {
        {{.kind = CLV_LION}, "was written with optimizer.kind rmsprop, now it is lion"},
        {{.kind = CLV_RMSPROP, .alpha = 0.9f}, "was written with optimizer.alpha 0, now it is 0.9"},
        {{.kind = CLV_RMSPROP, .centered = true}, "was written with optimizer.centered 0, now it is 1"}};
    static float values[MOST];
    double loss;
    int n;
    clv_device *host = clv__test_device(runtime, "host");
    train(host, 3, path, NULL, 1, values, &n, &loss);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        clv_dataset *dataset = small_dataset(runtime, 50);
        clv_train_config config = small_config(&small_model, dataset, 16, 2);
        config.device = host;
        config.optimizer = others[i].config;
        config.lr = cases[3].lr;
        config.resume = path;
        clv_trainer *trainer = clv__test_trainer(runtime, &config);
        assert_status(clv_trainer_run(trainer), CLV_E_VALUE, runtime);
        assert_holds(clv_runtime_error(runtime), others[i].sentence);
        clv_trainer_destroy(trainer);
        clv_dataset_destroy(dataset);
    }
    unlink(path);
}

TEST_MAIN(begin_runtime, end_runtime)
