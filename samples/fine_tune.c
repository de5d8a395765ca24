// SPDX-License-Identifier: Apache-2.0
// Transfer learning: a model trained on ten classes becomes one for three. Its weights are the beginning of a new one, but for the
// head, and what is frozen keeps them: no gradients, no optimizer state, less memory. fine_tune cpu
#include "common.h"

#include <string.h>

enum { BATCH = 50, IMAGES = 200, FEW = 3 };

/** Images whose classes are 0 to `classes` - 1. */
static clv_dataset *make_dataset(clv_runtime *runtime, int classes) {
    static float images[IMAGES * 784];
    static int32_t labels[IMAGES];
    clv_dataset *dataset = NULL;
    make_images(1, IMAGES, images, labels);
    for (int i = 0; i < IMAGES; i++) labels[i] %= classes;
    clv_array x = {
        .type = CLV_DTYPE_F32, .shape = CLV_SHAPE(IMAGES, 1, 28, 28), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(IMAGES), .data = labels, .borrowed = true};
    TRY(runtime, clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset));
    return dataset;
}

/** Train, and tell what became of it; the caller destroys the trainer. */
static clv_trainer *train(clv_runtime *runtime, const clv_train_config *config) {
    clv_trainer *trainer = NULL;
    TRY(runtime, clv_trainer_create(runtime, config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    printf("%lld classes, frozen %s: loss %.3f, %llu bytes\n", (long long)config->model->classes,
           config->freeze ? config->freeze : "nothing", clv_trainer_result(trainer).train_loss,
           (unsigned long long)clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes);
    return trainer;
}

static void read_weight(clv_runtime *runtime, const clv_trainer *trainer, float weight[128 * 784]) {
    clv_session *session = clv_trainer_info_get(trainer).session;
    size_t bytes = 128 * 784 * sizeof *weight;
    TRY(runtime, clv_session_read(session, clv_session_find(session, "fc1.weight"), weight, bytes));
}

int main(int argc, char **argv) {
    const char *path = "fine_tune.safetensors";
    const clv_model *ten = clv_model_find("mlp");
    clv_model three = clv_model_for(ten, 0, 0, 0, FEW);
    clv_runtime *runtime = NULL;
    clv_train_config config = {.model = ten,
                               .batch = BATCH,
                               .epochs = 8,
                               .lr = 0.05,
                               .optimizer = {.kind = CLV_SGD, .momentum = 0.9f},
                               .no_shuffle = true};
    static float before[128 * 784], after[128 * 784];
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));

    // What there is: a model that was trained on ten classes.
    clv_dataset *many = make_dataset(runtime, 10);
    config.train = many;
    clv_trainer *trainer = train(runtime, &config);
    TRY(runtime, clv_weights_save(clv_trainer_info_get(trainer).session, path));
    read_weight(runtime, trainer, before);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(many);

    // Loading is strict: ten rows are no three, and the sentence says what to do.
    clv_dataset *few = make_dataset(runtime, FEW);
    config.model = &three;
    config.train = few;
    config.weights = path;
    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    CHECK(clv_trainer_run(trainer) == CLV_E_SHAPE);
    printf("%s\n", clv_runtime_error(runtime));
    clv_trainer_destroy(trainer);

    // All but the head, and all of it trained; then with the rest frozen.
    config.weights_except = "fc2.*";
    trainer = train(runtime, &config);
    uint64_t whole = clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes;
    clv_trainer_destroy(trainer);
    config.freeze = "fc1";
    trainer = train(runtime, &config);
    read_weight(runtime, trainer, after);
    CHECK(!memcmp(before, after, sizeof before));        // frozen, to the bit
    CHECK(clv_trainer_result(trainer).train_loss < 0.8); // by chance: ln 3 = 1.1
    CHECK(clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes <
          whole - 401408); // its optimizer state alone is that
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(few);
    clv_runtime_destroy(runtime);
    remove(path);
    return 0;
}
