// SPDX-License-Identifier: Apache-2.0
// A plan as text: for CLEAVE_DEBUG=3, after each pass, and for tests.
#ifndef CLV_PLAN_PRINT_H
#define CLV_PLAN_PRINT_H

#include "plan/ir.h"

/**
 * Append the plan as it is between two passes, a line for each place, node, launch, value and transfer. Equal plans have equal
 * texts; positions, values and offsets are numbers as in the plan, and a launch shows a number made of all that it has.
 */
void clv__plan_print(const clv_plan *plan, clv__text *text);

#endif
