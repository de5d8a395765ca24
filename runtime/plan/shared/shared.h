// SPDX-License-Identifier: Apache-2.0
// Devices that compute in one memory: what the passes of this folder have in common.
#ifndef CLV_PLAN_SHARED_SHARED_H
#define CLV_PLAN_SHARED_SHARED_H

#include "plan/ir.h"

/** Do two devices of the plan compute in the host's memory, so that what one made may be read there by the
 *  other? */
bool clv__may_share(const clv_plan *plan, int from, int to);

#endif
