// SPDX-License-Identifier: Apache-2.0
// How fast a device does what models are made of: measured, or modelled from what it says of itself.
#ifndef CLV_PLACEMENT_SPEED_H
#define CLV_PLACEMENT_SPEED_H

#include "placement/pace.h"

/** A device's speed, from the program cache's folder, or measured and kept there. It is modelled for a device
 *  that computes nothing or has no memory left for measuring. Gives back all memory; after measuring, the
 *  device's peak starts again. */
clv_status clv__speed_of(clv_device *device, clv__speed *out);

#endif
