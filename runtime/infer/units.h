// SPDX-License-Identifier: Apache-2.0
// Targets that were standardized (data/dataset.h), shown in their own units.
#ifndef CLV_INFER_UNITS_H
#define CLV_INFER_UNITS_H

#include "cleave/train.h"

/** What makes a loss of standardized targets one in their units: a factor, 1 but for `mse` of one number. */
double clv__units_loss(const clv_dataset *dataset, const clv_loss *loss);
/** The same of a training's loss. */
double clv__units_trained(const clv_train_config *config);

/** Results and targets of a batch in their units; zeroed: they are so as they stand. */
typedef struct clv__units {
    const double *scales; // mean and scale of each number of a target
    int64_t numel;
    float *output, *target;
} clv__units;

/** For batches of so many samples. CLV_E_HOST_MEMORY */
clv_status clv__units_begin(clv__error *error, const clv_dataset *dataset, int64_t batch, clv__units *out);
void clv__units_end(clv__units *units);
/** Replace both of n samples by what they are in their units, where they are numbers of the table. */
void clv__units_put(clv__units *units, const clv_loss_sizes *sizes, const float **output,
                    const void **target);

#endif
