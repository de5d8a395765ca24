// SPDX-License-Identifier: Apache-2.0
// What others ask of a predictor's inside.
#ifndef CLV_INFER_PREDICTOR_H
#define CLV_INFER_PREDICTOR_H

#include "cleave/train.h"

/** One forward pass of a whole batch of zeros, until it is done; its results are dropped. */
clv_status clv__predictor_time(clv_predictor *predictor, const void *zeros);
/** Bytes of a batch of its largest input. */
size_t clv__predictor_fed_bytes(const clv_predictor *predictor);

/** clv_evaluate by several ranks (NULL: this process alone), each of which has a row of batches: the sums of
 *  all batches are added in their order, so what comes out, on each rank, is what one process finds in
 *  batches of the same size. */
clv_status clv__evaluate(clv_predictor *predictor, const clv_dataset *dataset, struct clv_ranks *ranks,
                         bool (*progress)(void *user, int64_t done, int64_t total), void *user,
                         clv_metrics *out);

/** Give up a predictor's run, so that its session may grow; made again when it is needed. */
void clv__predictor_rest(clv_predictor *predictor);

#endif
