// SPDX-License-Identifier: Apache-2.0
// What is raced: the uses of ops, in models or in clv_bench's cases, that leave a choice of variants on a device.
#ifndef CLV_TUNE_USES_H
#define CLV_TUNE_USES_H

#include "tune/trial.h"

typedef struct clv__uses {
    clv__trial **items; // no two with the same key; open races first, and the heaviest of them
    char **keys;        // of tuning files, beside them
    size_t n, room, keys_room;
} clv__uses;

/** Errors  as clv_tune; after them *out is empty */
clv_status clv__uses_init(clv_device *device, const clv_tune_config *config, clv__uses *out);
void clv__uses_reset(clv__uses *uses);

#endif
