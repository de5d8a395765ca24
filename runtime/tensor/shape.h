// SPDX-License-Identifier: Apache-2.0
// The one check of a shape that comes from outside: from a caller, a file, an op's arithmetic.
#ifndef CLV_TENSOR_SHAPE_H
#define CLV_TENSOR_SHAPE_H

#include "cleave/tensor.h"

/** What is wrong with a shape, for a sentence: `its rank is outside 0 to 8` and the like. NULL: nothing is. Only a shape without
 *  a fault has dimensions that may be read. */
const char *clv__shape_fault(const clv_shape *shape);

#endif
