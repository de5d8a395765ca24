// SPDX-License-Identifier: Apache-2.0
// Gradient graphs against central differences, both in double: is the formula right, whatever the device?
#ifndef CLV_CHECK_DIFFERENCES_H
#define CLV_CHECK_DIFFERENCES_H

#include "check/tolerance.h"

/**
 * Compare the directional derivatives of `loss` (clv_backward has been called) with differences of it, in the direction
 * of each tensor of `wrt` alone and in two directions of all of them. step: how far inputs move, at most; 0: 1e-5.
 * The worst direction is told in *out; index is its number.
 */
clv_status clv__differences(const clv__values *start, const clv_tensor *loss, clv_tensor *const *wrt, int n,
                            double step, uint64_t seed, clv__error *error, clv__distance *out);

#endif
