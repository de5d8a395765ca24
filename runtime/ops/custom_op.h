// SPDX-License-Identifier: Apache-2.0
// What the list of ops by name takes from ops of a program's own.
#ifndef CLV_OPS_CUSTOM_OP_H
#define CLV_OPS_CUSTOM_OP_H

#include "cleave/custom_op.h"

/** Of the i-th that was registered; NULL past the last. Stays until the process ends. */
const clv_op_signature *clv__custom_op_signature(int i);

/**
 * Append an op that was registered. Returns its first output.
 *
 * inputs      n of them; optional ones at the end may be left out, others are NULL
 * attributes  those that are not to have their defaults
 *
 * Errors  (sticky) CLV_E_NOT_FOUND  no such op or attribute;  CLV_E_VALUE  inputs are missing or too many, an attribute is not
 *         finite;  CLV_E_SHAPE  what the op's infer says
 */
clv_tensor *clv__custom_op_add(const char *name, clv_tensor *const *inputs, int n,
                               const clv_attribute *attributes, int n_attributes);

#endif
