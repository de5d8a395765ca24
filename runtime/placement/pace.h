// SPDX-License-Identifier: Apache-2.0
// How long a plan's nodes take: by what was measured of a device, or on a nominal one.
#ifndef CLV_PLACEMENT_PACE_H
#define CLV_PLACEMENT_PACE_H

#include "plan/plan.h"

/** How fast a device does what models are made of; placement/speed.c measures it. */
typedef struct clv__speed {
    double flops;       // a second, of a large matrix product
    double bytes;       // a second, read and written, of a pass over memory
    double read, write; // bytes a second, to the host and from it
    double launch;      // seconds of a launch that has next to nothing to do
} clv__speed;

/** The speed that was measured before and is kept in the program cache's folder; false: none is, and *out is
 *  as it was. */
bool clv__speed_kept(clv_device *device, clv__speed *out);
/** Keep it there, unless nothing is to be kept. */
void clv__speed_keep(clv_device *device, const clv__speed *speed);

/** Seconds of one node of a plan on the device: computing, or its end of a transfer. */
double clv__speed_seconds(const clv__speed *speed, const clv_plan *plan, const clv__plan_node *node);

#endif
