// SPDX-License-Identifier: Apache-2.0
// How a batch should be shared out over replicas, from how long each was busy in steps that were done.
// Numbers only.
#ifndef CLV_TRAIN_BALANCE_H
#define CLV_TRAIN_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "nn/replicas.h"

/** What was seen of a number of steps, on average. */
typedef struct clv__seen {
    int n;                            // replicas
    int64_t rows[CLV__MOST_REPLICAS]; // samples of each; 0: takes no part
    double busy[CLV__MOST_REPLICAS];  // seconds of a step in which it had work
    double step;                      // seconds from step to step
} clv__seen;

/** What is known from one look to the next. All zero at first. */
typedef struct clv__balance {
    int changes;    // asked for so far: each next one must promise twice as much
    bool settled;   // there is nothing to gain, as long as steps take as long as they do
    bool lag_known; // else it is a guess
    double lag;     // seconds of a step in which replicas other than the first cannot but wait
    double best;    // the shortest step so far, 0: none; and how it was shared out:
    int64_t rows[CLV__MOST_REPLICAS];
} clv__balance;

/**
 * Should the batch be shared out in another way? The first change must promise a step shorter by a hundredth,
 * each one after it twice as much, so that noise does not swing shares to and fro. A change that turned out
 * to be no gain is taken back or corrected. When nothing is promised any more, that is the end of it until
 * steps take a tenth longer.
 *
 * rows    the new samples of each replica, when the result is true
 * saved   seconds of each step that are promised
 */
bool clv__balance_look(clv__balance *balance, const clv__seen *seen, int64_t *rows, double *saved);

#endif
