// SPDX-License-Identifier: Apache-2.0
// Fine-tuning on a folder of pictures, as torchvision's recipe does it: the weights of a trained resnet18 but for its head, a new head for
// the folder's classes, and of the rest only the last block trained. fine_tune_images FOLDER cpu, with a folder for each class.
//
// What is frozen has no gradients and no optimizer state. Its batch norms still normalise by the batch, and their running statistics go
// on, as in PyTorch after model.train(). On the command line:
//
//     cleave train images pets/train --val pets/val --model resnet18 --weights resnet18.safetensors --except 'fc.*'
//         --freeze 'conv1,bn1,layer1.*,layer2.*,layer3.*,layer4.0.*'
#include "common.h"

#include <string.h>

enum { SIZE = 32 };

/** Train; the caller destroys the trainer. */
static clv_trainer *train(clv_runtime *runtime, const clv_train_config *config) {
    clv_trainer *trainer = NULL;
    TRY(runtime, clv_trainer_create(runtime, config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    printf("frozen %s: loss %.3f, %llu bytes\n", config->freeze ? config->freeze : "nothing",
           clv_trainer_result(trainer).train_loss,
           (unsigned long long)clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes);
    return trainer;
}

/** A tensor's values, to be freed. */
static float *read_values(clv_runtime *runtime, const clv_trainer *trainer, const char *name, size_t *bytes) {
    clv_session *session = clv_trainer_info_get(trainer).session;
    const int at = clv_session_find(session, name);
    *bytes = clv_session_get(session, at).bytes;
    float *values = malloc(*bytes);
    CHECK(values != NULL);
    TRY(runtime, clv_session_read(session, at, values, *bytes));
    return values;
}

/** Has training moved the tensor of that name? */
static bool moved(clv_runtime *runtime, const clv_trainer *before, const clv_trainer *after,
                  const char *name) {
    size_t bytes;
    float *a = read_values(runtime, before, name, &bytes), *b = read_values(runtime, after, name, &bytes);
    const bool other = memcmp(a, b, bytes) != 0;
    free(a);
    free(b);
    return other;
}

int main(int argc, char **argv) {
    const char *path = "fine_tune_images.safetensors";
    clv_image_folder_config pictures = {.size = SIZE, .augment = {.flip = 0.5}};
    clv_train_config config = {
        .batch = 8, .lr = 0.01, .steps = 2, .optimizer = {.kind = CLV_SGD, .momentum = 0.9f}};
    clv_runtime *runtime = NULL;
    clv_dataset *dataset = NULL;
    if (argc < 2) return fprintf(stderr, "usage: fine_tune_images FOLDER [DEVICE]\n"), 2;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[2] : NULL, &config.device));
    const clv_status status = clv_dataset_image_folder(runtime, argv[1], &pictures, &dataset);
    if (status == CLV_E_UNSUPPORTED) { // built without libjpeg and libpng
        printf("%s\n", clv_runtime_error(runtime));
        clv_runtime_destroy(runtime);
        return 0;
    }
    TRY(runtime, status);
    config.train = dataset;

    // What there is. PyTorch's own weights do as well: safetensors.torch.save_file(model.state_dict(), path).
    const clv_model thousand = clv_model_for(clv_model_find("resnet18"), 3, SIZE, SIZE, 1000);
    config.model = &thousand;
    clv_trainer *base = train(runtime, &config);
    TRY(runtime, clv_weights_save(clv_trainer_info_get(base).session, path));

    // A new head, and the last block.
    const clv_model own = clv_model_for(&thousand, 0, 0, 0, clv_dataset_info_get(dataset).classes);
    config.model = &own;
    config.weights = path;
    config.weights_except = "fc.*";
    config.freeze = "conv1,bn1,layer1.*,layer2.*,layer3.*,layer4.0.*";
    config.steps = 30;
    clv_trainer *tuned = train(runtime, &config);
    CHECK(clv_trainer_result(tuned).train_loss < 0.5); // by chance: ln 2 = 0.69
    CHECK(!moved(runtime, base, tuned, "conv1.weight") &&
          !moved(runtime, base, tuned, "layer4.0.bn2.weight"));
    CHECK(moved(runtime, base, tuned, "layer4.1.conv2.weight"));
    CHECK(moved(runtime, base, tuned, "bn1.running_mean")); // as PyTorch's
    CHECK(clv_trainer_device_info_get(tuned, NULL).memory.predicted_peak_bytes <
          clv_trainer_device_info_get(base, NULL).memory.predicted_peak_bytes);

    clv_trainer_destroy(tuned);
    clv_trainer_destroy(base);
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(runtime);
    remove(path);
    return 0;
}
