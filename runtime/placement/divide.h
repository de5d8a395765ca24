// SPDX-License-Identifier: Apache-2.0
// Cutting the order of layers into runs, one for a device, by estimates of time and bytes.
#ifndef CLV_PLACEMENT_DIVIDE_H
#define CLV_PLACEMENT_DIVIDE_H

#include "placement/layers.h"

enum { CLV__MOST_DEVICES = 16 };

typedef enum clv__goal {
    CLV__GOAL_SECONDS, // the slowest stage's time; of about equal ones, the least time in all
    CLV__GOAL_BYTES,   // the most bytes on a device
    CLV__GOAL_FIRST,   // as much as fits on the first device, then on the next
    CLV__GOAL_FILL     // the most bytes in proportion to the limit, which may be exceeded
} clv__goal;

/** Stages in the order of execution: devices, and the layer past the last of each. A stage may be empty. */
typedef struct clv__division {
    int n;
    int device[CLV__MOST_DEVICES], end[CLV__MOST_DEVICES];
} clv__division;

/** Most bytes of each device, and by how much estimates there have been wrong. */
typedef struct clv__limits {
    uint64_t bytes[CLV__MOST_DEVICES];
    double factor[CLV__MOST_DEVICES];
} clv__limits;

/** The best division; false if, by the estimates, none is within the limits, or memory is out. */
bool clv__divide(const clv__layers *layers, clv__goal goal, const clv__limits *limits, clv__division *out);

static inline int clv__division_first(const clv__division *division, int stage) {
    return stage ? division->end[stage - 1] : 0;
}

#endif
