// SPDX-License-Identifier: Apache-2.0
// A loss of your own, made of ops that there are: focal loss (Lin et al. 2017, arXiv:1708.02002), which counts what is learnt already for
// little: -(1 - p)^2 log p of the right class. The argument: a device.
#include "common.h"

#include <math.h>

enum { N = 512, CLASSES = 10, EPOCHS = 8 };

/** logits [N, CLASSES], classes [N] i32 -> [] */
static clv_tensor *focal(clv_tensor *logits, clv_tensor *classes, const clv_loss *loss) {
    static const float numbers[CLASSES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    (void)loss;
    clv_graph *graph = clv_tensor_graph(logits);
    clv_tensor *column = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(CLASSES), numbers);
    clv_tensor *known = clv_reshape(clv_cast(classes, CLV_DTYPE_F32), CLV_SHAPE(-1, 1));
    clv_tensor *right = clv_eq(known, column);
    clv_tensor *logs = clv_log_softmax(logits, -1), *zero = clv_mul_scalar(logs, 0);
    clv_tensor *log_p = clv_sum(clv_where(right, logs, zero), (int[]){1}, 1, false);
    clv_tensor *rest = clv_add_scalar(clv_mul_scalar(clv_exp(log_p), -1), 1);
    return clv_mul_scalar(clv_mean(clv_mul(clv_square(rest), log_p), NULL, 0, false), -1);
}

/** The same on the host, summed over the samples, for evaluation. */
static double focal_sum(const float *logits, const void *classes, const clv_loss_sizes *sizes,
                        const clv_loss *loss) {
    double sum = 0;
    (void)loss;
    for (int64_t i = 0; i < sizes->n; i++, logits += sizes->output) {
        double all = 0, right = (double)logits[((const int32_t *)classes)[i]];
        for (int64_t c = 0; c < sizes->output; c++) all += exp((double)logits[c] - right);
        sum += pow(1 - 1 / all, 2) * log(all);
    }
    return sum;
}

int main(int argc, char **argv) {
    static float images[N * 784];
    static int32_t classes[N];
    const clv_loss loss = {.name = "focal", .build = focal, .sum = focal_sum};
    clv_train_config config = {
        .model = clv_model_find("mlp"), .loss = &loss, .batch = 64, .epochs = EPOCHS, .lr = 0.05};
    clv_runtime *runtime = NULL;
    clv_trainer *trainer = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    clv_dataset *dataset = made_up_dataset(runtime, N, images, classes);
    config.train = config.test = dataset;
    config.optimizer.kind = CLV_SGD;
    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    const clv_train_result result = clv_trainer_result(trainer);
    printf("focal loss %.4f, %d of %d right\n", result.test.loss, (int)result.test.correct, N);
    CHECK(result.test.correct > 0.9 * N && result.test.loss > 0.5 * result.train_loss);
    CHECK(result.test.loss < result.train_loss); // of the weights before it
    clv_trainer_destroy(trainer), clv_dataset_destroy(dataset), clv_runtime_destroy(runtime);
    return 0;
}
