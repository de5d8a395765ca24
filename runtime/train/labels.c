// SPDX-License-Identifier: Apache-2.0
// What a training makes of its targets: labels smoothed by the loss, samples and targets mixed by the loader.
// Mixed classes are probabilities, so the step's input `labels` is [N, C] then, in f32.
#include <math.h>

#include "train/losses.h"
#include "train/trainer.h"

static const clv_loss *loss_of(const clv_train_config *config) {
    return config->loss ? config->loss : clv_loss_for(config->model);
}

clv_status clv__labels_check(clv_runtime *runtime, const clv_train_config *config) {
    clv__error *error = clv__runtime_error_of(runtime);
    const clv_model *model = config->model;
    const double smoothing = config->label_smoothing;
    if (!(smoothing >= 0 && smoothing < 1))
        CLV_FAIL(error, CLV_E_VALUE, "label smoothing of %g: it must be at least 0, and below 1", smoothing);
    if (smoothing > 0 && !clv__loss_smooths(loss_of(config)))
        CLV_FAIL(error, CLV_E_VALUE,
                 "label smoothing is of the losses cross_entropy and bce_with_logits, not of '%s'",
                 loss_of(config)->name);
    if (!(config->mixup >= 0 && isfinite(config->mixup)))
        CLV_FAIL(error, CLV_E_VALUE,
                 "mixup with alpha %g: it must be above 0, and finite; 0 stands for no mixup", config->mixup);
    if (config->mixup > 0 && (model->dtype == CLV_DTYPE_I32 || (model->classes && model->target[0])))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "mixup is of samples that are numbers, with one class each or with numbers: those of model '%s' "
            "are %s",
            model->name, model->dtype == CLV_DTYPE_I32 ? "tokens" : "of several classes each");
    return CLV_OK;
}

const clv_loss *clv__labels_loss(const clv_train_config *config, clv_loss *room) {
    const clv_loss *loss = loss_of(config);
    if (!(config->label_smoothing > 0)) return loss;
    *room = *loss;
    room->user = &config->label_smoothing;
    return room;
}

clv_tensor *clv__labels_input(clv_graph *graph, const clv_train_config *config, int64_t batch) {
    const clv_model *model = config->model;
    if (!(config->mixup > 0) || !model->classes) return clv_model_target(graph, model, batch);
    return clv_input(graph, "labels", CLV_DTYPE_F32, CLV_SHAPE(batch, model->classes));
}

clv_loader_config clv__labels_loader(const clv_train_config *config, int64_t epoch, int64_t index) {
    return (clv_loader_config){.batch = config->batch,
                               .shuffle = !config->no_shuffle,
                               .seed = config->seed,
                               .mixup = config->mixup,
                               .classes = (int)config->model->classes,
                               .epoch = epoch,
                               .index = index};
}
