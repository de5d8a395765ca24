// SPDX-License-Identifier: Apache-2.0
// A loss of your own, made of ops that there are: focal loss (Lin et al. 2017, arXiv:1708.02002), which counts what is learnt already for
// little: -(1 - p)^2 log p of the right class. The argument: a device.
#include "common.h"

enum { N = 512, CLASSES = 10, EPOCHS = 8 };

/** logits [N, CLASSES], classes [N] i32 -> [] */
static clv_tensor *focal(clv_tensor *logits, clv_tensor *classes, const clv_loss *loss) {
    static const float numbers[CLASSES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    (void)loss;
    clv_graph *graph = clv_tensor_graph(logits);
    clv_tensor *column = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(CLASSES), numbers);
    const int64_t n = clv_tensor_numel(classes);
    clv_tensor *right = clv_eq(clv_reshape(clv_cast(classes, CLV_DTYPE_F32), CLV_SHAPE(n, 1)), column);
    clv_tensor *logs = clv_log_softmax(logits, -1), *zero = clv_mul_scalar(logs, 0);
    clv_tensor *log_p = clv_sum(clv_where(right, logs, zero), (int[]){1}, 1, false);
    clv_tensor *rest = clv_add_scalar(clv_mul_scalar(clv_exp(log_p), -1), 1);
    return clv_mul_scalar(clv_mean(clv_mul(clv_square(rest), log_p), NULL, 0, false), -1);
}

int main(int argc, char **argv) {
    static float images[N * 784];
    static int32_t classes[N];
    const clv_loss loss = {.name = "focal", .build = focal};
    clv_train_config config = {
        .model = clv_model_find("mlp"), .loss = &loss, .batch = 64, .epochs = EPOCHS, .lr = 0.05};
    clv_runtime *runtime = NULL;
    clv_dataset *dataset = NULL;
    clv_trainer *trainer = NULL;
    make_images(1, N, images, classes);
    clv_array x = {.type = CLV_ARRAY_F32, .shape = CLV_SHAPE(N, 1, 28, 28), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_ARRAY_I32, .shape = CLV_SHAPE(N), .data = classes, .borrowed = true};
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    TRY(runtime, clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset));
    config.train = config.test = dataset;
    config.optimizer.kind = CLV_SGD;
    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    const clv_metrics test = clv_trainer_result(trainer).test;
    printf("focal loss %.4f, %lld of %d right\n", test.loss, (long long)test.correct, N);
    CHECK(test.correct > 0.9 * N);
    clv_trainer_destroy(trainer), clv_dataset_destroy(dataset), clv_runtime_destroy(runtime);
    return 0;
}
