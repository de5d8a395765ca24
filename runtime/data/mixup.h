// SPDX-License-Identifier: Apache-2.0
// Batches whose samples and targets are mixed by twos. Which with how much of which depends on seed, epoch and index of the batch alone.
#ifndef CLV_DATA_MIXUP_H
#define CLV_DATA_MIXUP_H

#include "data/dataset.h"

/** What a batch of a loader holds of each sample. */
typedef struct clv__mixed {
    int64_t numel, target_numel; // elements of a sample, and of its target
    clv_dtype target_dtype;
    bool classes; // targets were one class each before they were mixed: rows begin with it
} clv__mixed;

clv__mixed clv__mixed_of(const clv_dataset *dataset, const clv_loader_config *config);
/** Can the dataset's samples be mixed, if the loader is to? */
clv_status clv__mixup_check(clv__error *error, const clv_dataset *dataset, const clv_loader_config *config);
/** A batch's lambda, from Beta(alpha, alpha). */
double clv__mixup_lambda(const clv__draw *draw, int64_t index, double alpha);
/** Mix n samples and their targets, in place. */
void clv__mixup(const clv__mixed *mixed, double lambda, int64_t n, float *samples, void *targets);

#endif
