// SPDX-License-Identifier: Apache-2.0
// Devices that are not here, as their makers and their users describe them.
#ifndef CLV_BACKENDS_NULL_CARDS_H
#define CLV_BACKENDS_NULL_CARDS_H

#include "device/backend.h"

/** What OpenCL would tell of each; ends with a NULL name. */
extern const clv_device_info clv__null_cards[];

#endif
