// SPDX-License-Identifier: Apache-2.0
// How fast a device does what models are made of: measured, or modelled from what it says of itself.
#ifndef CLV_PLACEMENT_SPEED_H
#define CLV_PLACEMENT_SPEED_H

#include "placement/pace.h"

/** A device's speed, from the program cache's folder or measured and kept there; modelled where it computes
 *  nothing or has no room left for measuring. Leaves no memory behind; after measuring, the device's peak
 *  begins anew. */
clv_status clv__speed_of(clv_device *device, clv__speed *out);

#endif
