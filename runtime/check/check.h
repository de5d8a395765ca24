// SPDX-License-Identifier: Apache-2.0
// clv_check over ops, or samples, of one's own: how the checker itself is tested, and ops with shapes that their samples do not have.
#ifndef CLV_CHECK_CHECK_H
#define CLV_CHECK_CHECK_H

#include "cleave/check.h"
#include "graph/op.h"

/** The i-th sample of an op; false: there are fewer. */
typedef bool (*clv__sampler)(const clv__op *op, int i, clv__sample *sample);

/** As clv_check, for these ops instead of all; the list ends with NULL. sampler NULL: the ops' own samples. */
clv_status clv__check_ops(clv_runtime *runtime, clv_device *device, const clv__op *const *ops,
                          clv__sampler sampler, const clv_check_config *config, clv_check_report **out);

#endif
