// SPDX-License-Identifier: Apache-2.0
// How far a device's result may be from the double-precision one. Written here and nowhere else.
#ifndef CLV_CHECK_TOLERANCE_H
#define CLV_CHECK_TOLERANCE_H

#include "check/interpret.h"

/** What tensors of a graph should be, and how easily rounding moves each element. Zero-initialised is empty. */
typedef struct clv__expected {
    clv__values want; // every tensor after one evaluation
    double **sway;    // by tensor id, for the targets only: NULL elsewhere
    double *scale;    // by tensor id, of all: largest finite |want|
    bool one_way;     // the device rounds one way: toward zero
    double roundoff;  // clv__variant.roundoff of what is held against it; 0: f32's
} clv__expected;

/** Evaluate the graph from `start` (inputs and persistents; unchanged), exactly and with small disturbances.
 *  device: whose results will be held against it; NULL: one that rounds to nearest. */
clv_status clv__expected_init(clv__expected *expected, const clv__values *start, clv_tensor *const *targets,
                              int n, const clv_device *device, clv__error *error);
void clv__expected_reset(clv__expected *expected);

/** Allowed |got - want| at an element of a target; 0 for i32. */
double clv__tolerance(const clv__expected *expected, const clv_tensor *target, int64_t index);

/** The element of a comparison with the largest error / tolerance. */
typedef struct clv__distance {
    int64_t index; // -1: the tensor is empty
    double got, want, error, tolerance;
    double ratio; // error / tolerance; above 1 is wrong; infinite where one is not a number and the other is
    double
        ulp; // a unit in the last place of `want` in the tensor's dtype; 0: of no float, or of none that is finite
} clv__distance;

/** Hold a device's elements of a target, in its dtype, against what is expected. */
clv__distance clv__expected_distance(const clv__expected *expected, const clv_tensor *target,
                                     const void *got);

/**
 * Could two results of a tensor (float or int32_t) both be right? For what is too large for the reference: with the length of
 * its sums for the roundings and its largest value for the scale, which is less sharp than clv__tolerance.
 */
bool clv__tolerance_agree(const clv_tensor *target, const clv_device *device, const void *a, const void *b);

#endif
