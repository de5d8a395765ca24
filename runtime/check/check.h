// SPDX-License-Identifier: Apache-2.0
// clv_check over a list of ops of one's own: how the checker itself is tested.
#ifndef CLV_CHECK_CHECK_H
#define CLV_CHECK_CHECK_H

#include "cleave/check.h"
#include "graph/op.h"

/** As clv_check, for these ops instead of all; the list ends with NULL. */
clv_status clv__check_ops(clv_runtime *runtime, clv_device *device, const clv__op *const *ops,
                          const clv_check_config *config, clv_check_report **out);

#endif
