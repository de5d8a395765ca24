// SPDX-License-Identifier: Apache-2.0
// Reductions as other families' gradients use them.
#ifndef CLV_OPS_REDUCE_H
#define CLV_OPS_REDUCE_H

#include "graph/op.h"

/** g where x equals y, else 0: the gradient of max (elementwise.def). */
clv_tensor *clv__max_backward(clv_tensor *x, clv_tensor *y, clv_tensor *g);

#endif
