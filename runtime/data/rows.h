// SPDX-License-Identifier: Apache-2.0
#ifndef CLV_DATA_ROWS_H
#define CLV_DATA_ROWS_H

#include "data/dataset.h"

/** The first row with a value, sample or target, that is NaN or infinite (but -inf, of which masks are made); -1: none, or it
 *  cannot be said of data that are drawn anew each time. */
int64_t clv__dataset_not_finite(const clv_dataset *dataset);

/** A number that other data have only by chance: of names, shapes, the count, and some rows. False: no host memory. */
bool clv__dataset_digest(const clv_dataset *dataset, uint64_t *out);
/** For clv_dataset.digest. */
uint64_t clv__digest_add(uint64_t digest, const void *bytes, size_t n);
uint64_t clv__digest_number(uint64_t digest, int64_t number);
uint64_t clv__digest_text(uint64_t digest, const char *text);

#endif
