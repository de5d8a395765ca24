// SPDX-License-Identifier: Apache-2.0
// Inside of datasets.
#ifndef CLV_DATA_DATASET_H
#define CLV_DATA_DATASET_H

#include "base/error.h"
#include "cleave/data.h"

/** What a sample's augmentation depends on, besides the sample. */
typedef struct clv__draw {
    uint64_t seed;
    int64_t epoch;
} clv__draw;

/** What every dataset has; what it reads from lies behind it, and is known to the file that made it. */
struct clv_dataset {
    clv_shape sample, target; // of one
    clv_dtype dtype, target_dtype;
    int64_t count, numel, target_numel; // elements of a sample, and of its target
    int classes;                        // 0: targets are numbers
    /** Write sample i and its target; NULL: that is not wanted. Loaders' threads call it. */
    void (*read)(const clv_dataset *dataset, int64_t i, void *sample, void *target);
    /** The same where samples are drawn anew each time, or reading may fail; NULL: `read` is all there is. */
    clv_status (*draw)(const clv_dataset *dataset, int64_t i, const clv__draw *draw, clv__error *error,
                       void *sample, void *target);
    int workers; // threads of a loader, each of which reads a sample at a time; 0: one, a batch at a time
    void (*destroy)(clv_dataset *dataset);
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
