// SPDX-License-Identifier: Apache-2.0
// Asks a device by a kernel of its own whether it does what our kernels rely on.
#ifndef CLV_DEVICE_PROBE_H
#define CLV_DEVICE_PROBE_H

#include "device/device.h"

/** A question: the file `stem` of kernels_cl/ has a kernel that leaves an int for each item, 0 where all is
 *  right. */
typedef struct clv__probe {
    const char *begin; // of the program: defines
    const char *stem, *entry;
    int items, group;
    const char *note; // names the question, and what is asked in it, among what is kept
} clv__probe;

/**
 * Does it pass? Asked once for a device and driver: the answer is kept in the program cache's folder. One
 * that computes nothing does not pass. The device is open, and nothing else uses it yet.
 */
bool clv__probe_passes(clv_device *device, const clv__probe *probe);

#endif
