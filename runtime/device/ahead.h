// SPDX-License-Identifier: Apache-2.0
// Kernels compiled ahead in processes of their own: for drivers that compile one kernel at a time, whatever the threads, and
// keep on disk what they compiled. Helpers compile a plan's kernels from the last to the first while this process does so
// from the first to the last; where they meet, all are there. Of several, each takes its share before what is left of others'.
//
// A helper (helper.h) is welcomed early, so that it has the device open by the time it is needed, and, when the programs are built
// and in the driver's cache, gets a letter for each kernel.
#ifndef CLV_DEVICE_AHEAD_H
#define CLV_DEVICE_AHEAD_H

#include "device/helper.h"
#include "device/launch.h"
#include "device/program.h"

/** A launch on its way: with its texts, as addresses mean nothing elsewhere. */
typedef struct clv__letter {
    char source[64], entry[64];
    clv__launch launch;
} clv__letter;

/** Is a kernel compiled apart for so large a grid? PoCL does so from 65,535 work-items in a dimension on. Helpers leave these. */
static inline bool clv__grid_is_large(const clv__grid *grid) {
    return grid->global[0] >= 65535 || grid->global[1] >= 65535 || grid->global[2] >= 65535;
}

typedef struct clv__ahead clv__ahead;

/**
 * Before the first programs of a device are built: see to it that help comes if it is wanted (config.compile_helper) and of use,
 * which shows when building takes longer than loading from a cache would. The first n_first launches are wanted first. What their
 * slots hold of tensors must stand in `bytes`. NULL if nobody will help; without help everything only takes longer.
 * A device asks once: what is planned anew because a program did not build gets no help.
 */
clv__ahead *clv__ahead_begin(clv_device *device, const clv__launch *const *launches, size_t n,
                             size_t n_first);
/** Whether the programs are built now: helpers go to work, or home. NULL is fine. */
void clv__ahead_tell(clv__ahead *ahead, bool built);
/** Send helpers home and wait for them (when the device closes). */
void clv__ahead_end(clv_device *device);

#endif
