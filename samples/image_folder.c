// SPDX-License-Identifier: Apache-2.0
// Pictures with several labels each: a table beside the folder tells them, and the loss is the binary cross entropy of logits.
// image_folder FOLDER cpu, with a folder that has the files of the table.
#include "common.h"

enum { SIZE = 16, PICTURES = 8, LABELS = 2 };

/** Whether a picture has colours, and whether it is a JPEG: what a table of one's own data would say. */
static void write_table(const char *path) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("file,colored,jpeg\n"
          "jpeg/color.jpg,1,1\njpeg/steps.jpeg,1,1\njpeg/ink.jpg,1,1\njpeg/grey.jpg,0,1\n"
          "png/color.png,1,0\npng/wide.png,1,0\npng/grey.png,0,0\npng/line.png,0,0\n",
          file);
    CHECK(fclose(file) == 0);
}

static clv_tensor *net(clv_tensor *x, const clv_model *model) {
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 64, NULL));
    return clv_nn_linear(x, "fc2", model->target[0], NULL);
}

int main(int argc, char **argv) {
    const char *table = "image_folder.csv";
    const clv_model model = {.name = "net", .build = net, .input = {3, SIZE, SIZE}, .target = {LABELS}};
    clv_image_folder_config pictures = {.size = SIZE, .labels = table, .strict = true};
    clv_train_config config = {.model = &model,
                               .loss = clv_loss_find("bce_with_logits"),
                               .batch = 4,
                               .epochs = 60,
                               .lr = 0.002,
                               .optimizer = {.kind = CLV_ADAM}};
    clv_runtime *runtime = NULL;
    clv_dataset *train = NULL, *test = NULL;
    clv_trainer *trainer = NULL;
    if (argc < 2) return fprintf(stderr, "usage: image_folder FOLDER [DEVICE]\n"), 2;
    write_table(table);
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[2] : NULL, &config.device));

    // As they are for the test; flipped, brighter or darker, again in each epoch, for the training.
    const clv_status status = clv_dataset_image_folder(runtime, argv[1], &pictures, &test);
    if (status == CLV_E_UNSUPPORTED) { // built without libjpeg and libpng
        printf("%s\n", clv_runtime_error(runtime));
        clv_runtime_destroy(runtime);
        return 0;
    }
    TRY(runtime, status);
    pictures.augment = (clv_image_augment){.flip = 0.5, .brightness = 0.2};
    TRY(runtime, clv_dataset_image_folder(runtime, argv[1], &pictures, &train));
    config.train = train;
    config.test = test;
    CHECK(clv_dataset_info_get(train).count == PICTURES);
    printf("the first is %s\n", clv_image_folder_file(train, 0, NULL));

    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    const clv_metrics result = clv_trainer_result(trainer).test;
    printf("%s and %s of %d pictures: %lld of %lld labels right, loss %.3f\n",
           clv_dataset_class_name(train, 0), clv_dataset_class_name(train, 1), PICTURES,
           (long long)result.correct, (long long)result.targets, result.loss);
    CHECK(result.loss < 0.2); // by chance: ln 2 = 0.69
    CHECK(result.accuracy > 0.9);

    clv_trainer_destroy(trainer);
    clv_dataset_destroy(train);
    clv_dataset_destroy(test);
    clv_runtime_destroy(runtime);
    remove(table);
    return 0;
}
