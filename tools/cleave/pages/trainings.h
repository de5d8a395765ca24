// SPDX-License-Identifier: Apache-2.0
// Trainings that logs tell of, as a part of a page: curves side by side, how each went, and what differs in
// their settings.
#ifndef CLEAVE_TRAININGS_H
#define CLEAVE_TRAININGS_H

#include "training/training.h"
#include "pages/page.h"
#include "watching/watch.h"

/** What is drawn of a training, by step. */
typedef enum curve_kind {
    CURVE_LOSS,
    CURVE_TEST_LOSS,
    CURVE_ACCURACY,
    CURVE_LR,
    CURVE_RATE,
    CURVE_MEMORY,
    CURVE_KINDS
} curve_kind;

typedef struct training_curve {
    plot_point *points;
    size_t n, room;
} training_curve;

typedef struct training {
    const char *name;
    training_curve curves[CURVE_KINDS];
    int n_metrics; // told besides, in the order in which they came
    struct {
        char name[CLI_METRIC_BYTES];
        training_curve curve;
    } metrics[CLV_MOST_METRICS];
    bool failed; // no memory
    watch_moment last;
    json_t *settings; // an object; NULL: the log has none
} training;

/** Zeroed: none. */
typedef struct trainings {
    training item[CLI_MAX_TEXTS];
    int n;
} trainings;

/** Read logs. Prints what fails. */
int trainings_read(trainings *all, const cli_texts *logs);
/** Put them on the page; nothing if there are none. */
void trainings_put(cli_page *page, const trainings *all);
void trainings_drop(trainings *all);

#endif
