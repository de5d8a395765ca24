// SPDX-License-Identifier: Apache-2.0
// What a training makes of its targets: labels smoothed by their losses, samples and targets mixed by the
// loader. Mixed classes are probabilities, so the step's target is [N, C] then, in f32.
#include <math.h>

#include "data/dataset.h"
#include "exec/ranks.h"
#include "device/device.h"
#include "nn/ports.h"
#include "infer/losses.h"
#include "train/trainer.h"

/** Mixing is of samples that are numbers, with one class or with numbers. */
static clv_status check_mixup(clv__error *error, const clv_train_config *config) {
    const clv_model *model = config->model;
    if (!(config->mixup >= 0 && isfinite(config->mixup)))
        CLV_FAIL(error, CLV_E_VALUE, "mixup with alpha %g: it must be above 0, and finite; 0 means no mixup",
                 config->mixup);
    if (config->mixup == 0) return CLV_OK;
    if (clv_model_port_count(model, CLV_PORT_INPUT) > 1 || clv_model_port_count(model, CLV_PORT_TARGET) > 1)
        CLV_FAIL(error, CLV_E_VALUE, "mixup needs one input and one target: model '%s' has %d and %d",
                 model->name, clv_model_port_count(model, CLV_PORT_INPUT),
                 clv_model_port_count(model, CLV_PORT_TARGET));
    if (config->train && config->train->ignores)
        CLV_FAIL(error, CLV_E_VALUE,
                 "mixup needs a class for each sample; here labels are %d, which is ignored",
                 CLV_LABEL_IGNORED);
    const clv_port input = clv_model_port_get(model, CLV_PORT_INPUT, 0),
                   target = clv_model_port_get(model, CLV_PORT_TARGET, 0);
    if (input.dtype == CLV_DTYPE_I32 || (target.classes && target.dims[0]))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "mixup needs samples that are numbers, with one class each or with numbers: those of model '%s' "
            "are %s",
            model->name, input.dtype == CLV_DTYPE_I32 ? "tokens" : "of several classes each");
    return CLV_OK;
}

clv_status clv__labels_check(clv_runtime *runtime, const clv_train_config *config) {
    clv__error *error = clv__runtime_error_of(runtime);
    const double smoothing = config->label_smoothing;
    clv__target_loss losses[CLV_MAX_PORTS];
    bool smooths = false;
    if (!(smoothing >= 0 && smoothing < 1))
        CLV_FAIL(error, CLV_E_VALUE, "label smoothing of %g: it must be at least 0, and below 1", smoothing);
    CLV_TRY(clv__losses_find(runtime, config, losses));
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++) {
        if (!losses[i].loss->build)
            CLV_FAIL(error, CLV_E_VALUE, "loss '%s' has no function 'build'",
                     losses[i].loss->name ? losses[i].loss->name : "");
        smooths |= clv__loss_smooths(losses[i].loss);
    }
    if (smoothing > 0 && !smooths)
        CLV_FAIL(error, CLV_E_VALUE,
                 "label smoothing is for the losses cross_entropy and bce_with_logits, not for '%s'",
                 losses[0].loss->name);
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++)
        if (losses[i].class_weights && (smoothing > 0 || config->mixup > 0))
            CLV_FAIL(error, CLV_E_VALUE,
                     "weights of classes do not go together with %s: leave one of them out",
                     smoothing > 0 ? "label smoothing" : "mixup");
    return check_mixup(error, config);
}

clv_status clv__labels_losses(clv_runtime *runtime, const clv_train_config *config,
                              clv__target_loss out[CLV_MAX_PORTS], clv_loss room[CLV_MAX_PORTS]) {
    CLV_TRY(clv__losses_find(runtime, config, out));
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++) {
        if (!(config->label_smoothing > 0) || !clv__loss_smooths(out[i].loss)) continue;
        room[i] = *out[i].loss;
        room[i].user = &config->label_smoothing;
        out[i].loss = &room[i];
    }
    return CLV_OK;
}

void clv__labels_inputs(clv_graph *graph, const clv_train_config *config, int64_t batch, clv_tensor **out) {
    const clv_port target = clv_model_port_get(config->model, CLV_PORT_TARGET, 0);
    if (config->mixup > 0 && target.classes)
        out[0] = clv_input(graph, target.name, CLV_DTYPE_F32, CLV_SHAPE(batch, target.classes));
    else
        clv_model_tensors(graph, config->model, CLV_PORT_TARGET, batch, out);
}

clv_loader_config clv__labels_loader(const clv_train_config *config, int64_t epoch, int64_t index) {
    const bool shared = clv__trainer_shares_out(config);
    return (clv_loader_config){.batch = config->batch,
                               .shuffle = !config->no_shuffle,
                               .seed = config->seed,
                               .mixup = config->mixup,
                               .bytes = true,
                               .classes = (int)clv_model_port_get(config->model, CLV_PORT_TARGET, 0).classes,
                               .epoch = epoch,
                               .index = index,
                               .rank = shared ? config->ranks->place.rank : 0,
                               .ranks = shared ? config->ranks->place.size : 0,
                               .rank_shares = shared ? config->ranks->shares : NULL};
}
