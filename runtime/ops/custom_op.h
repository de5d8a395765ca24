// SPDX-License-Identifier: Apache-2.0
// What the list of ops by name takes from ops of a program's own.
#ifndef CLV_OPS_CUSTOM_OP_H
#define CLV_OPS_CUSTOM_OP_H

#include "cleave/custom_op.h"

/** Of the i-th that was registered; NULL past the last. It is its op's, and stays until the process ends. */
const clv_op_signature *clv__custom_op_signature(int i);

#endif
