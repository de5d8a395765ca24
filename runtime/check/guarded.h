// SPDX-License-Identifier: Apache-2.0
// One use of an op by one variant on a device, with guard zones around every buffer. No plan, no exec: when both agree
// with the references, a fault in a model lies in neither the kernels nor the sums.
#ifndef CLV_CHECK_GUARDED_H
#define CLV_CHECK_GUARDED_H

#include "device/device.h"
#include "graph/op.h"

/** How long all launches of one use take together, once they have been found to be right. */
typedef struct clv__timing {
    double seconds;   // to spend, about
    double enough_us; // what takes longer is timed once: it is out of the race; 0: no such limit
    double median_us; // of several runs; each is many uses handed over without waiting, and one wait
} clv__timing;

/** Elements of the op's tensors in their dtype. NULL: not there. */
typedef struct clv__guarded {
    const void *in[CLV__MAX_IN];
    void *in_after[CLV__MAX_IN]; // filled for inputs the op mutates; others may be NULL
    void *out[CLV__MAX_OUT];     // filled
    clv__timing *timing;         // NULL: not timed
} clv__guarded;

/**
 * On the device's worker: build, run twice, compare bits, look at the guard zones and at inputs that must not change.
 * Errors  as building and running have them; CLV_E_DEVICE with a sentence for bytes written where they must not be,
 * and for bits that differ. CLV_E_UNSUPPORTED: the driver allows the kernel no such work-group.
 */
clv_status clv__guarded_run(clv_device *device, const clv__op_io *io, const clv__launches *launches,
                            const clv__guarded *tensors);

#endif
