// SPDX-License-Identifier: Apache-2.0
// Samples for trainings that take a moment: numbers of [1,4,6], three classes.
#ifndef CLV_TESTS_TRAIN_SMALL_H
#define CLV_TESTS_TRAIN_SMALL_H

#include "cleave/data.h"
#include "harness/harness.h"

enum { SMALL_NUMEL = 4 * 6, SMALL_MOST = 256 };

/** The first n of them. */
static inline clv_dataset *small_dataset(clv_runtime *runtime, int64_t n) {
    static float images[SMALL_MOST * SMALL_NUMEL];
    static int32_t labels[SMALL_MOST];
    clv_dataset *dataset = NULL;
    assert_in_range(n, 1, SMALL_MOST);
    for (int i = 0; i < SMALL_MOST * SMALL_NUMEL; i++) images[i] = (float)((i * 7) % 13) / 6 - 1;
    for (int i = 0; i < SMALL_MOST; i++) labels[i] = i % 3;
    clv_array x = {.type = CLV_ARRAY_F32, .shape = CLV_SHAPE(n, 1, 4, 6), .data = images, .borrowed = true};
    clv_array y = {.type = CLV_ARRAY_I32, .shape = CLV_SHAPE(n), .data = labels, .borrowed = true};
    assert_status(clv_dataset_from_arrays(runtime, &x, &y, NULL, &dataset), CLV_OK, runtime);
    return dataset;
}

#endif
