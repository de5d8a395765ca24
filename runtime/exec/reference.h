// SPDX-License-Identifier: Apache-2.0
// Running an op's reference over device memory seen as host memory: how the host device computes.
#ifndef CLV_EXEC_REFERENCE_H
#define CLV_EXEC_REFERENCE_H

#include "graph/op.h"

/** A clv__bcall. context: the node's clv__op_io. pointers: inputs (NULL: not there), outputs, then room for
 *  all of them as doubles. Values go in as doubles and come out rounded to their type. */
void clv__reference_call(void *context, void *const *pointers);

#endif
