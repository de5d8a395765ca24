// SPDX-License-Identifier: Apache-2.0
// Tables for clv_resample: an axis of another length, whose places lie anywhere between those of x.
#ifndef CLV_OPS_RESAMPLE_H
#define CLV_OPS_RESAMPLE_H

#include <stdbool.h>

#include "cleave/ops.h"

/** How much of its neighbours a place takes. All zero: of the two beside it, linearly. */
typedef struct clv__resampling {
    bool nearest;         // places are whole numbers
    bool cubic;           // Keys's weights of four neighbours; of his `a`
    bool exclude_outside; // neighbours beyond an end count nothing, not as that end, and the others more
    double a;
    double narrow; // below 1: neighbours so much further away count as well; 0: 1
} clv__resampling;

/** x along an axis at n places, each within what a double counts exactly. Where there is no host memory the graph has the mistake. */
clv_tensor *clv__resampled(clv_tensor *x, int axis, const clv__resampling *how, const double *places,
                           int64_t n);

#endif
