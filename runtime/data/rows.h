// SPDX-License-Identifier: Apache-2.0
#ifndef CLV_DATA_ROWS_H
#define CLV_DATA_ROWS_H

#include "data/dataset.h"

/** The rows of a batch that one of `size` ranks computes: those of equal replicas, or by shares of the batch. What has no row computes
 *  the first, which does not count. */
typedef struct clv__rank_rows {
    int64_t first, rows;
    int terms;       // of a sum over ranks: 0 to terms - 1
    int64_t counted; // rows, or 0: what is computed is a term all the same, and must be times 0
} clv__rank_rows;
static inline clv__rank_rows clv__rows_by_shares(int64_t batch, int rank, int size, const double *shares) {
    double before = 0;
    for (int k = 0; k < rank; k++) before += shares[k];
    const int64_t first = (int64_t)(before * (double)batch + 0.5);
    const int64_t end = rank == size - 1 ? batch : (int64_t)((before + shares[rank]) * (double)batch + 0.5);
    if (end <= first) return (clv__rank_rows){.rows = 1, .terms = size};
    return (clv__rank_rows){.first = first, .rows = end - first, .terms = size, .counted = end - first};
}
static inline clv__rank_rows clv__rows_of_rank(int64_t batch, int rank, int size, const double *shares) {
    if (size < 2) return (clv__rank_rows){.rows = batch, .terms = 1, .counted = batch};
    if (shares) return clv__rows_by_shares(batch, rank, size, shares);
    const int64_t each = batch / size, more = batch % size;
    const int terms = each ? size : (int)more;
    if (rank >= terms) return (clv__rank_rows){.rows = 1, .terms = terms, .counted = 1};
    const int64_t rows = each + (rank < more);
    return (clv__rank_rows){
        .first = rank * each + (rank < more ? rank : more), .rows = rows, .terms = terms, .counted = rows};
}

/** The first row with a value, sample or target, that is NaN or infinite (but -inf, of which masks are made); -1: none, or it
 *  cannot be said of data that are drawn again each time. */
int64_t clv__dataset_not_finite(const clv_dataset *dataset);

/** A number that other data have only by chance: of names, shapes, the count, and some rows. False: no host memory. */
bool clv__dataset_digest(const clv_dataset *dataset, uint64_t *out);
/** For clv_dataset.digest. */
uint64_t clv__digest_number(uint64_t digest, int64_t number);
uint64_t clv__digest_text(uint64_t digest, const char *text);

#endif
