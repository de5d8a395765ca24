// SPDX-License-Identifier: Apache-2.0
// Two inputs, two outputs: the length and the colour of a fish say its kind, a class, and its price, a number. Each target has its loss,
// and the training's is their weighted sum. two_heads cpu
#include "common.h"

enum { N = 240, COLOURS = 4, KINDS = 3 };

/** Inputs and outputs come in the order of the ports below. */
static void fish(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    clv_tensor *both[] = {inputs[0], clv_nn_embedding(inputs[1], "colour", COLOURS, 4, NULL)};
    clv_tensor *x = clv_relu(clv_nn_linear(clv_concat(both, 2, 1), "body", 32, NULL));
    outputs[0] = clv_nn_linear(x, "kind", model->targets[0].classes, NULL);
    outputs[1] = clv_nn_linear(x, "price", 1, NULL);
}

static const clv_port inputs[] = {{.name = "length", .dims = {1}},
                                  {.name = "colour", .dtype = CLV_DTYPE_I32, .classes = COLOURS}};
static const clv_port targets[] = {{.name = "kind", .classes = KINDS}, {.name = "price", .dims = {1}}};
static const clv_model model = {
    .name = "fish", .build_all = fish, .inputs = inputs, .n_inputs = 2, .targets = targets, .n_targets = 2};

/** Long fish are of kind 1 or 2, by their colour; a price goes with the length, and red ones cost more. */
static clv_dataset *make_fish(clv_runtime *runtime) {
    static float lengths[N], prices[N];
    static int32_t colours[N], kinds[N];
    clv_dataset *dataset = NULL;
    for (int i = 0; i < N; i++) {
        lengths[i] = (float)(i * 37 % N) / N * 2 - 1;
        colours[i] = i * 7 % COLOURS;
        kinds[i] = lengths[i] < 0 ? 0 : 1 + colours[i] % 2;
        prices[i] = 2 * lengths[i] + (colours[i] == 3);
    }
    clv_array arrays[] = {{NULL, CLV_DTYPE_F32, CLV_SHAPE(N, 1), lengths, true},
                          {NULL, CLV_DTYPE_I32, CLV_SHAPE(N), colours, true},
                          {NULL, CLV_DTYPE_I32, CLV_SHAPE(N), kinds, true},
                          {NULL, CLV_DTYPE_F32, CLV_SHAPE(N, 1), prices, true}};
    const clv_field fields[] = {{.name = "length", .array = &arrays[0]},
                                {.name = "colour", .array = &arrays[1]},
                                {.name = "kind", .role = CLV_PORT_TARGET, .array = &arrays[2]},
                                {.name = "price", .role = CLV_PORT_TARGET, .array = &arrays[3]}};
    TRY(runtime, clv_dataset_from_fields(runtime, NULL, fields, 4, NULL, &dataset));
    return dataset;
}

int main(int argc, char **argv) {
    const clv_train_loss losses[] = {
        {.target = "price", .weight = 0.5}}; // of the kind: cross entropy, as usual
    clv_train_config config = {.model = &model,
                               .losses = losses,
                               .n_losses = 1,
                               .batch = 32,
                               .epochs = 40,
                               .seed = 1,
                               .lr = 0.01,
                               .optimizer = {.kind = CLV_ADAM}};
    clv_runtime *runtime = NULL;
    clv_trainer *trainer = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    clv_dataset *dataset = make_fish(runtime);
    config.train = config.test = dataset;
    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    clv_device *device = clv_trainer_info_get(trainer).devices[0];
    clv_device_memory_reset_peak(device);
    TRY(runtime, clv_trainer_run(trainer));
    const clv_metrics told = clv_trainer_result(trainer).test;
    printf("kind: accuracy %.3f, loss %.4f; price: loss %.4f\n", told.each[0].accuracy, told.each[0].loss,
           told.each[1].loss);
    CHECK(told.each[0].accuracy > 0.95 && told.each[1].loss < 0.02);
    CHECK(clv_device_memory(device).all.peak ==
          clv_trainer_device_info_get(trainer, NULL).memory.predicted_peak_bytes);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(runtime);
    return 0;
}
