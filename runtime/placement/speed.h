// SPDX-License-Identifier: Apache-2.0
// How fast a device does what models are made of: measured, or modelled from what it says of itself.
#ifndef CLV_PLACEMENT_SPEED_H
#define CLV_PLACEMENT_SPEED_H

#include "plan/plan.h"

typedef struct clv__speed {
    double flops;       // a second, of a large matrix product
    double bytes;       // a second, read and written, of a pass over memory
    double read, write; // bytes a second, to the host and from it
    double launch;      // seconds of a launch that has next to nothing to do
} clv__speed;

/** A device's speed, from the program cache's folder or measured and kept there; modelled where it computes nothing or has
 *  no room left for measuring. Leaves no memory behind; after measuring, the device's peak begins anew. */
clv_status clv__speed_of(clv_device *device, clv__speed *out);

/** Seconds of one node of a plan on the device: computing, or its end of a transfer. */
double clv__speed_seconds(const clv__speed *speed, const clv_plan *plan, const clv__plan_node *node);

#endif
