// SPDX-License-Identifier: Apache-2.0
// Targets that were standardized, shown in their own units: a price in money, not in deviations.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "infer/losses.h"
#include "infer/units.h"

double clv__units_loss(const clv_dataset *dataset, const clv_loss *loss) {
    const double *scales = dataset ? dataset->target_scales : NULL;
    if (!scales || dataset->target_numel != 1 || loss != clv_loss_find("mse")) return 1;
    return scales[1] * scales[1];
}

double clv__units_trained(const clv_train_config *config) {
    const clv_loss *own = config->n_losses == 1 ? config->losses[0].loss : config->loss;
    return clv__units_loss(config->train, own ? own : clv__loss_for(config->model));
}

clv_status clv__units_begin(clv__error *error, const clv_dataset *dataset, int64_t batch, clv__units *out) {
    *out = (clv__units){.scales = dataset->target_scales, .numel = dataset->target_numel};
    if (!out->scales) return CLV_OK;
    out->output = clv__alloc((size_t)(batch * out->numel), sizeof *out->output);
    out->target = clv__alloc((size_t)(batch * out->numel), sizeof *out->target);
    if (!out->output || !out->target) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a batch of targets");
    return CLV_OK;
}

void clv__units_end(clv__units *units) {
    free(units->output);
    free(units->target);
    *units = (clv__units){0};
}

static void put(const clv__units *units, int64_t n, const float *from, float *to) {
    for (int64_t i = 0; i < n * units->numel; i++) {
        const double *of = units->scales + 2 * (i % units->numel);
        to[i] = (float)((double)from[i] * of[1] + of[0]);
    }
}

void clv__units_put(clv__units *units, const clv_loss_sizes *sizes, const float **output,
                    const void **target) {
    if (!units->scales || sizes->output != units->numel || sizes->target != units->numel) return;
    put(units, sizes->n, *output, units->output);
    put(units, sizes->n, *target, units->target);
    *output = units->output;
    *target = units->target;
}
