// SPDX-License-Identifier: Apache-2.0
// The losses that Cleave brings: in the graph for training, and on the host, in double, for evaluation.
#include <math.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/op.h"
#include "train/names.h"
#include "train/trainer.h"

// ---- cross entropy ----------------------------------------------------------------------------------------

/** Logits [N, ..., C] of labels [N, ...]: one row for each label. */
static clv_tensor *cross_entropy(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    const clv_shape shape = clv_tensor_shape(output);
    if (!output || !target || shape.rank <= 2) return clv_cross_entropy(output, target);
    const int64_t rows = clv_tensor_numel(target);
    return clv_cross_entropy(clv_reshape(output, CLV_SHAPE(rows, shape.dims[shape.rank - 1])),
                             clv_reshape(target, CLV_SHAPE(rows)));
}

static double cross_entropy_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                                const clv_loss *loss) {
    (void)loss;
    const int64_t rows = sizes->n * sizes->target, classes = sizes->output / sizes->target;
    const int32_t *labels = target;
    double sum = 0;
    for (int64_t i = 0; i < rows; i++, output += classes) {
        double max = output[0], total = 0;
        for (int64_t c = 1; c < classes; c++) // not fmax: gcc 12 for aarch64 breaks off over it
            if (output[c] > max) max = output[c];
        for (int64_t c = 0; c < classes; c++) total += exp(output[c] - max);
        sum += log(total) + max - output[labels[i]];
    }
    return sum / (double)sizes->target;
}

// ---- mean squared error -----------------------------------------------------------------------------------

/** Of results [N, ...] as they are, or [N, 1] of targets [N]. */
static clv_tensor *mse(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    if (clv_tensor_numel(output) == clv_tensor_numel(target))
        output = clv_reshape(output, clv_tensor_shape(target));
    return clv_mse_loss(output, target);
}

static double mse_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                      const clv_loss *loss) {
    (void)loss;
    const float *wanted = target;
    double sum = 0;
    for (int64_t i = 0; i < sizes->n * sizes->target; i++) {
        const double off = (double)output[i] - (double)wanted[i];
        sum += off * off;
    }
    return sum / (double)sizes->target;
}

// ---- all of them ------------------------------------------------------------------------------------------

static const clv_loss losses[] = {
    {"cross_entropy", CLV__TRAINS(cross_entropy), cross_entropy_sum, NULL},
    {"mse", CLV__TRAINS(mse), mse_sum, NULL},
};

enum { N_LOSSES = sizeof losses / sizeof *losses };

int clv_loss_count(void) {
    return N_LOSSES;
}

const clv_loss *clv_loss_get(int index) {
    return index >= 0 && index < N_LOSSES ? &losses[index] : NULL;
}

const clv_loss *clv_loss_find(const char *name) {
    for (int i = 0; name && i < N_LOSSES; i++)
        if (!strcmp(losses[i].name, name)) return &losses[i];
    return NULL;
}

const clv_loss *clv__loss_usual(clv_port target) {
    return clv_loss_find(target.classes ? "cross_entropy" : "mse");
}

const clv_loss *clv_loss_for(const clv_model *model) {
    return clv__loss_usual(clv_model_target_get(model, 0));
}

// ---- of a model's targets ---------------------------------------------------------------------------------

/** Which of the model's targets it is of. */
static clv_status find_target(clv__error *error, const clv_model *model, const char *name, int *found) {
    clv__names names = {0};
    if (!name || !*name) CLV_FAIL(error, CLV_E_VALUE, "losses: one of them names no target");
    for (*found = 0; *found < clv_model_target_count(model); ++*found) {
        const char *there = clv_model_target_get(model, *found).name;
        if (!strcmp(there, name)) return CLV_OK;
        clv__names_add(&names, there);
    }
    CLV_FAIL(error, CLV_E_NOT_FOUND, "losses: model '%s' has no target '%s'; it has %s", model->name, name,
             names.text);
}

static clv_status check_losses(clv__error *error, const clv_train_config *config) {
    const int n = clv_model_target_count(config->model);
    if (config->n_losses < 0 || (config->n_losses && !config->losses))
        CLV_FAIL(error, CLV_E_VALUE, "losses: %s, and n_losses is %d", config->losses ? "given" : "NULL",
                 config->n_losses);
    if (config->loss && config->n_losses)
        CLV_FAIL(error, CLV_E_VALUE, "loss and losses are given; one of them is enough");
    if (config->loss && n > 1)
        CLV_FAIL(error, CLV_E_VALUE, "loss is of one target, and model '%s' has %d: losses names them",
                 config->model->name, n);
    return CLV_OK;
}

clv_status clv__losses_find(clv_runtime *runtime, const clv_train_config *config,
                            clv__target_loss out[CLV_MAX_PORTS]) {
    clv__error *error = clv__runtime_error_of(runtime);
    const clv_model *model = config->model;
    bool given[CLV_MAX_PORTS] = {false};
    CLV_TRY(check_losses(error, config));
    for (int i = 0; i < clv_model_target_count(model); i++)
        out[i] = (clv__target_loss){
            config->loss ? config->loss : clv__loss_usual(clv_model_target_get(model, i)), 1};
    for (int i = 0; i < config->n_losses; i++) {
        const clv_train_loss *one = &config->losses[i];
        int at;
        CLV_TRY(find_target(error, model, one->target, &at));
        if (given[at]) CLV_FAIL(error, CLV_E_VALUE, "losses: target '%s' is named twice", one->target);
        if (!isfinite(one->weight))
            CLV_FAIL(error, CLV_E_VALUE, "losses: the weight of target '%s' is %g, it must be finite",
                     one->target, one->weight);
        given[at] = true;
        if (one->loss) out[at].loss = one->loss;
        if (one->weight != 0) out[at].weight = one->weight;
    }
    return CLV_OK;
}
