// SPDX-License-Identifier: Apache-2.0
// What the list of ops by name takes from ops of a program's own.
#ifndef CLV_OPS_OWN_OP_H
#define CLV_OPS_OWN_OP_H

#include "cleave/own_op.h"

/** Of the i-th that was registered; NULL past the last. Stays until the process ends. */
const clv_op_signature *clv__own_op_signature(int i);

#endif
