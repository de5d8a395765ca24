// SPDX-License-Identifier: Apache-2.0
#ifndef CLV_DATA_ROWS_H
#define CLV_DATA_ROWS_H

#include "data/dataset.h"

/** The rows of a batch that one of `size` ranks computes: those of equal replicas. What has no row computes the first, which does not
 *  count. */
typedef struct clv__rank_rows {
    int64_t first, rows;
    int terms; // ranks with rows of their own: the first ones
} clv__rank_rows;
static inline clv__rank_rows clv__rows_of_rank(int64_t batch, int rank, int size) {
    if (size < 2) return (clv__rank_rows){.rows = batch, .terms = 1};
    const int64_t each = batch / size, more = batch % size;
    const int terms = each ? size : (int)more;
    if (rank >= terms) return (clv__rank_rows){.rows = 1, .terms = terms};
    return (clv__rank_rows){.first = rank * each + (rank < more ? rank : more), .rows = each + (rank < more), .terms = terms};
}

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
