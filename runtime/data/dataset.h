// SPDX-License-Identifier: Apache-2.0
// Inside of datasets.
#ifndef CLV_DATA_DATASET_H
#define CLV_DATA_DATASET_H

#include "base/error.h"
#include "cleave/data.h"

struct clv_dataset {
    clv_array images; // [N, ...] f32 or u8; N may be more than count
    int32_t *labels;  // [count]
    clv_shape sample;
    int64_t count, numel; // numel: elements of a sample
    int classes;
    bool plain; // f32 samples that stay as they are
    float mean, std;
    float byte[256]; // what a byte becomes
};

/** What a dataset is by itself, where the caller's config leaves it open. */
typedef struct clv__dataset_defaults {
    float mean, std;
    int classes;                 // 0: the largest label + 1
    const char *images, *labels; // what sentences call them
} clv__dataset_defaults;

clv_status clv__dataset_create(clv__error *error, clv_array *images, const clv_array *labels,
                               const clv_dataset_config *config, const clv__dataset_defaults *defaults,
                               clv_dataset **out);

#endif
