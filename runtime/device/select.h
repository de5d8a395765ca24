// SPDX-License-Identifier: Apache-2.0
// The list of devices: filling it from the backends, splitting, choosing what is visible, naming.
#ifndef CLV_DEVICE_SELECT_H
#define CLV_DEVICE_SELECT_H

#include "device/device.h"

/** Fill runtime->devices from its started backends: OpenCL devices (split and chosen as the settings say),
 * host, null. */
clv_status clv__devices_list(clv_runtime *runtime);
/** The class that a device's traits, or its driver's quirk, give it. */
clv_execution clv__execution_of(const clv_device_info *info, const clv__traits *traits);
/** Close and free every device. */
void clv__devices_forget(clv_runtime *runtime);

/** List a device of another rank as `1:gpu:0`, if it is not there. Of the texts of `info`: name and label. */
clv_status clv__device_add_elsewhere(clv_runtime *runtime, int rank, const clv_device_info *info);

/** The state a backend was started with. */
void *clv__backend_state(clv_runtime *runtime, const clv__backend *backend);

/** Close and free one device; NULL is fine. Everything on it is gone before. */
void clv__device_destroy(clv_device *device);

void clv__ledger_init(clv__ledger *ledger);
void clv__ledger_destroy(clv__ledger *ledger);

#endif
