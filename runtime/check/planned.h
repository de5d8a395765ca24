// SPDX-License-Identifier: Apache-2.0
// A subject's graph on a device the way users run it: plan, session, run.
#ifndef CLV_CHECK_PLANNED_H
#define CLV_CHECK_PLANNED_H

#include "check/subject.h"
#include "cleave/plan.h"

/**
 * Run two steps from the same start, compare their bits, and give the elements of each target, in its dtype:
 * results[i] has room for targets[i].
 * Errors  as plan, session and run have them; CLV_E_DEVICE two steps gave different bits
 */
clv_status clv__planned_run(const clv__subject *subject, clv_plan *plan, uint64_t seed, void *const *results);

#endif
