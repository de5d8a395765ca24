// SPDX-License-Identifier: Apache-2.0
// An optimizer of your own: Lion (Chen et al. 2023, arXiv:2302.06675), one state and a sign, made of ops that there are. The argument: a
// device.
#include "common.h"

enum { N = 64, IN = 4, STEPS = 500 };

static clv_tensor *mix(clv_tensor *a, clv_tensor *b, double part) {
    return clv_add(clv_mul_scalar(a, (float)part), clv_mul_scalar(b, (float)(1 - part)));
}

/** p -= lr * (sign(beta1 * m + (1 - beta1) * g) + decay * p);  m = beta2 * m + (1 - beta2) * g. */
static void lion_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    clv_tensor *p = use->parameter, *g = use->gradient, *m = use->states[0];
    clv_tensor *way = mix(m, g, use->attributes[0]), *zero = clv_mul_scalar(way, 0);
    clv_tensor *none = clv_mul_scalar(use->lr, 0), *back = clv_mul_scalar(use->lr, -1);
    clv_tensor *step = clv_where(clv_gt(way, zero), use->lr, clv_where(clv_gt(zero, way), back, none));
    *parameter = clv_sub(clv_sub(p, clv_mul(clv_mul_scalar(p, (float)use->weight_decay), use->lr)), step);
    states[0] = mix(m, g, use->attributes[1]);
}

static const clv_optimizer_state states[] = {{"exp_avg", 0}, {NULL, 0}};
static const clv_attribute betas[] = {{"beta1", 0.9}, {"beta2", 0.99}, {NULL, 0}};
static const clv_custom_optimizer lion = {
    .bytes = sizeof lion, .name = "lion", .states = states, .attributes = betas, .update = lion_update};

static clv_tensor *line(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(x, "fc", model->target[0], NULL);
}

int main(int argc, char **argv) {
    static float x[N * IN], y[N];
    const clv_model model = {.name = "line", .build = line, .input = {IN}, .target = {1}};
    clv_train_config config = {.model = &model, .batch = N, .epochs = STEPS, .lr = 0.02};
    clv_runtime *runtime = NULL;
    clv_dataset *dataset = NULL;
    clv_trainer *trainer = NULL;
    for (int i = 0; i < N * IN; i++) x[i] = (float)(i * 37 % 29) / 14 - 1;
    for (int i = 0; i < N; i++) y[i] = x[IN * i] - 0.5f * x[IN * i + 3];
    clv_array in = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N, IN), .data = x, .borrowed = true};
    clv_array out = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(N, 1), .data = y, .borrowed = true};
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    TRY(runtime, clv_dataset_from_arrays(runtime, &in, &out, NULL, &dataset));
    config.train = dataset;
    config.schedule = (clv_schedule){.kind = CLV_SCHEDULE_COSINE, .per_step = true};
    config.optimizer.custom = &lion;
    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    printf("lion: loss %.6f after %d steps\n", clv_trainer_result(trainer).train_loss, STEPS);
    CHECK(clv_trainer_result(trainer).train_loss < 1e-3);
    clv_trainer_destroy(trainer), clv_dataset_destroy(dataset), clv_runtime_destroy(runtime);
    return 0;
}
