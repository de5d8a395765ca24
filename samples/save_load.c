// SPDX-License-Identifier: Apache-2.0
// Weights to a file and back: a safetensors file with PyTorch's names. The model that loads it gives the same bits.
#include "common.h"

#include <string.h>

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "save_load.safetensors";
    const clv_model *mlp = clv_model_find("mlp");
    clv_runtime *runtime = NULL;
    clv_predictor *one = NULL, *other = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_predictor_create(runtime, &(clv_predictor_config){.model = mlp, .batch = 4}, &one));
    TRY(runtime, clv_predictor_create(runtime, &(clv_predictor_config){.model = mlp, .batch = 2}, &other));

    // Give the first model weights of its own, so that there is something to carry over.
    clv_session *session = clv_predictor_info_get(one).session;
    int at = clv_session_find(session, "fc2.bias");
    float bias[10] = {0.5f, -1, 2};
    TRY(runtime, clv_session_write(session, at, bias, sizeof bias));
    TRY(runtime, clv_weights_save(session, path));
    TRY(runtime, clv_weights_load(clv_predictor_info_get(other).session, path));

    float images[4 * 784], logits[2][40];
    int32_t labels[4];
    make_images(1, 4, images, labels);
    TRY(runtime, clv_predictor_forward(one, images, 4, logits[0]));
    TRY(runtime, clv_predictor_forward(other, images, 4, logits[1]));
    for (int i = 0; i < 40; i++)
        CHECK(logits[0][i] - logits[1][i] < 1e-5f && logits[1][i] - logits[0][i] < 1e-5f);

    // A file is read as what it is: names and shapes.
    clv_archive *archive = NULL;
    TRY(runtime, clv_safetensors_read(runtime, path, &archive));
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const clv_array *array = clv_archive_get(archive, i);
        char shape[64];
        printf("%-12s %s\n", array->name, clv_shape_text(&array->shape, shape, sizeof shape));
    }
    CHECK(clv_archive_count(archive) == 4);
    const clv_array *found = clv_archive_find(archive, "fc2.bias");
    CHECK(found && !memcmp(found->data, bias, sizeof bias));
    clv_archive_destroy(archive);
    clv_predictor_destroy(one);
    clv_predictor_destroy(other);
    clv_runtime_destroy(runtime);
    return 0;
}
