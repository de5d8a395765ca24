// SPDX-License-Identifier: Apache-2.0
// Variants that are not used on a device any more, because they failed there.
#ifndef CLV_GRAPH_QUARANTINE_H
#define CLV_GRAPH_QUARANTINE_H

#include "device/device.h"
#include "graph/op.h"

/** Put a variant of an op into quarantine on a device: it failed to build, to run or to verify there. */
clv_status clv__quarantine_add(clv_device *device, const clv__op *op, const clv__variant *variant,
                               const char *why);
/** The same, without a word to the log: for who tells it in another way. */
clv_status clv__quarantine_put(clv_device *device, const clv__op *op, const clv__variant *variant,
                               const char *why);
/** Use it again. */
void clv__quarantine_remove(clv_device *device, const clv__op *op, const clv__variant *variant);
/** Take all out for a while, for who has to try what failed; clv__quarantine_give_back puts them back. */
clv__quarantine *clv__quarantine_lift(clv_device *device);
void clv__quarantine_give_back(clv_device *device, clv__quarantine *lifted);
bool clv__quarantined(const clv_device *device, const clv__op *op, const clv__variant *variant);
/** Why the newest variant of an op is in quarantine: "" if none is. */
void clv__quarantine_why(const clv_device *device, const clv__op *op, char *out, size_t bytes);

#endif
