// SPDX-License-Identifier: Apache-2.0
// The losses that Cleave brings: in the graph for training, and on the host, in double, for evaluation.
#include <math.h>
#include <string.h>

#include "cleave/ops.h"
#include "cleave/train.h"
#include "graph/op.h"

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

const clv_loss *clv_loss_for(const clv_model *model) {
    return clv_loss_find(model->classes ? "cross_entropy" : "mse");
}
