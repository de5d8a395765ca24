// SPDX-License-Identifier: Apache-2.0
// What every sample needs and none is about: stop at the first failure with its sentence, and images to train on.
#ifndef CLEAVE_SAMPLES_COMMON_H
#define CLEAVE_SAMPLES_COMMON_H

#include <cleave/cleave.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** End the sample if the call failed. A program would free and return instead; a library never does this. */
#define TRY(runtime, call)                                                                                   \
    do {                                                                                                     \
        clv_status status_ = (call);                                                                         \
        if (status_ != CLV_OK) {                                                                             \
            fprintf(stderr, "%s\n    %s: %s\n", #call, clv_status_name(status_),                             \
                    clv_runtime_error(runtime));                                                             \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/** End the sample unless what it shows is true. */
#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                    \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

/** Made-up images [n,784] of ten classes: noise, and a bright stripe that tells the class. */
static inline void make_images(uint32_t seed, int n, float *images, int32_t *labels) {
    for (int i = 0; i < n; i++) {
        labels[i] = (int32_t)((seed + (uint32_t)i * 7u) % 10u);
        for (int j = 0; j < 784; j++) {
            seed = seed * 1664525u + 1013904223u;
            images[i * 784 + j] = (float)(seed >> 16) / 65536.0f - 0.5f + (j / 78 == labels[i] ? 0.5f : 0.0f);
        }
    }
}

/** A data set of n of them; both arrays must outlive it. */
static inline clv_dataset *made_up_dataset(clv_runtime *runtime, int n, float *images, int32_t *labels) {
    clv_dataset *dataset = NULL;
    make_images(1, n, images, labels);
    clv_array x = {.type = CLV_DTYPE_F32, .shape = CLV_SHAPE(n, 1, 28, 28), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_DTYPE_I32, .shape = CLV_SHAPE(n), .data = labels, .borrowed = true};
    TRY(runtime, clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset));
    return dataset;
}

#endif
