// SPDX-License-Identifier: Apache-2.0
// A use of an op whose variants race on a device: each is checked, and then timed.
#ifndef CLV_TUNE_TRIAL_H
#define CLV_TUNE_TRIAL_H

#include "cleave/tune.h"
#include "device/device.h"
#include "graph/op.h"

/** A variant that takes these shapes on the device. */
typedef struct clv__candidate {
    const clv__variant *variant;
    double rank;
    clv__launches launches;
    double median_us; // 0: not timed
    char *failure;    // owned; why it did not build or was wrong; NULL: it did not fail
} clv__candidate;

typedef struct clv__trial {
    clv_device *device;
    clv__sample sample; // the use: attributes, inputs, and values for them
    clv__op_io io;      // the same; attributes and inputs are the sample's
    int nodes;     // how many nodes are like this
    double weight; // a guess of their time: what is raced first
    int n_candidates;
    clv__candidate candidates[]; // the best rank first, of equals the first in the op's list
} clv__trial;

/**
 * Make a trial of a use of an op. Variants in quarantine are no candidates.
 * Errors  CLV_E_HOST_MEMORY
 */
clv_status clv__trial_create(clv_device *device, const clv__op_io *use, clv__trial **out);
/** The same for a sample of the op; a sample that the op refuses: CLV_E_INTERNAL. */
clv_status clv__trial_of_sample(clv_device *device, const clv__op *op, const clv__sample *sample,
                                clv__trial **out);
/** NULL is fine. */
void clv__trial_destroy(clv__trial *trial);

/** Is the race open: has a second candidate a rank near the best? */
bool clv__trial_is_open(const clv__trial *trial);

/** Would the reference take long? Then the op's samples have to vouch for the variants before the race. */
bool clv__trial_is_large(const clv__trial *trial);

/**
 * Hold every candidate against the reference; where that is too long (clv__trial_is_large), against the first candidate, and
 * only if the two differ against the reference. Those that are right are timed if seconds > 0, each for about so long.
 * A candidate that is wrong or does not run gets its `failure`; one that does not fit the memory is neither timed nor failed.
 * Errors  memory of the host; CLV_E_INTERNAL
 */
clv_status clv__trial_run(clv__trial *trial, double seconds);

#endif
