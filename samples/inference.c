// SPDX-License-Identifier: Apache-2.0
// Without gradients less is kept: the same model planned to train and planned to predict, and what each would hold.
#include "common.h"

int main(void) {
    enum { BATCH = 64 };
    const clv_model *cnn = clv_model_find("cnn");
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    clv_graph *graph = NULL;
    clv_plan *training = NULL;
    clv_predictor *predictor = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, NULL, &device));

    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_model_input(graph, cnn, BATCH);
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *loss = clv_cross_entropy(clv_model_build(cnn, x), labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_ADAM});
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &training)); // takes no memory
    clv_plan_memory train = clv_plans_memory(&training, 1, NULL);

    clv_predictor_config config = {.device = device, .model = cnn, .batch = BATCH};
    TRY(runtime, clv_predictor_create(runtime, &config, &predictor));
    clv_plan *plan = clv_predictor_info_get(predictor).plan;
    clv_plan_memory predict = clv_plans_memory(&plan, 1, NULL);
    for (int i = 0; i < CLV_CATEGORIES; i++)
        printf("%-12s %10llu to train %10llu to predict\n", clv_category_name((clv_category)i),
               (unsigned long long)train.category[i], (unsigned long long)predict.category[i]);
    CHECK(predict.category[CLV_PARAMETERS] == train.category[CLV_PARAMETERS]);
    CHECK(predict.category[CLV_GRADIENTS] == 0 && predict.category[CLV_OPTIMIZER] == 0);
    CHECK(predict.category[CLV_ACTIVATIONS] < train.category[CLV_ACTIVATIONS]);

    CHECK(clv_predictor_info_get(predictor).results[0].dims[0] == 10);

    static float images[10 * 784], logits[10 * 10];
    int32_t classes[10];
    make_images(1, 10, images, classes);
    TRY(runtime, clv_predictor_forward(predictor, images, 10, logits)); // any number of images
    CHECK(clv_device_memory(device).all.peak == predict.predicted_peak_bytes);

    clv_predictor_destroy(predictor);
    clv_plan_destroy(training);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    return 0;
}
