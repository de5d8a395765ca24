// SPDX-License-Identifier: Apache-2.0
// Pictures with several labels each: a table beside the folder tells them, and the loss is one of one's own, the binary cross entropy of
// logits. image_folder FOLDER cpu, with a folder that has the files of the table.
#include "common.h"

#include <math.h>

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

/** The mean of max(x, 0) - x y + log(1 + exp(-|x|)), which is -y log(p) - (1 - y) log(1 - p) with p = sigmoid(x). */
static clv_tensor *build_binary(clv_tensor *x, clv_tensor *y, const clv_loss *loss) {
    (void)loss;
    clv_tensor *rest = clv_log(clv_add_scalar(clv_exp(clv_neg(clv_abs(x))), 1));
    return clv_mean(clv_add(clv_sub(clv_relu(x), clv_mul(x, y)), rest), NULL, 0, false);
}

/** The same on the host, so that evaluation can tell it. */
static double sum_binary(const float *x, const void *target, const clv_loss_sizes *sizes,
                         const clv_loss *loss) {
    const float *y = target;
    double sum = 0;
    (void)loss;
    for (int64_t i = 0; i < sizes->n * sizes->output; i++) {
        const double logit = (double)x[i];
        sum += fmax(logit, 0) - logit * (double)y[i] + log1p(exp(-fabs(logit)));
    }
    return sum / (double)sizes->output;
}

int main(int argc, char **argv) {
    const char *table = "image_folder.csv";
    const clv_model model = {.name = "net", .build = net, .input = {3, SIZE, SIZE}, .target = {LABELS}};
    const clv_loss binary = {.name = "binary", .build = build_binary, .sum = sum_binary};
    clv_image_folder_config pictures = {.size = SIZE, .labels = table, .strict = true};
    clv_train_config config = {.model = &model,
                               .loss = &binary,
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

    // As they are for the test; flipped, brighter or darker, anew in each epoch, for the training.
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
    CHECK(clv_dataset_count(train) == PICTURES);

    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    const double loss = clv_trainer_result(trainer).test.loss;
    printf("%s and %s of %d pictures: binary cross entropy %.3f\n", clv_image_folder_class(train, 0),
           clv_image_folder_class(train, 1), PICTURES, loss);
    CHECK(loss < 0.2); // by chance: ln 2 = 0.69

    clv_trainer_destroy(trainer);
    clv_dataset_destroy(train);
    clv_dataset_destroy(test);
    clv_runtime_destroy(runtime);
    remove(table);
    return 0;
}
