// SPDX-License-Identifier: Apache-2.0
// How long a device had work. The time is counted in stretches: a stretch begins with a command and ends
// where the device has done everything that was enqueued and waits, for a value of another device or for the
// next step. The begin is the start of a command that is enqueued anyway, and the end is a marker, so a step
// on a single device has no additional command. Only devices that clv_device_activity_start was called for
// have stretches: queues that keep times cost time on some drivers.
#ifndef CLV_EXEC_ACTIVITY_H
#define CLV_EXEC_ACTIVITY_H

#include "device/device.h"

typedef struct clv__stretch {
    clv__bevent *begin, *end; // the last one of a step ends with the step: NULL
} clv__stretch;

/** Of one slot on one device; the worker's until the step is enqueued, then the one's who waits for the
 *  step. */
typedef struct clv__activity {
    clv__stretch *stretches; // room for one more than the place receives and waits
    int n;                   // begun so far
    bool working;            // the last one has not ended
} clv__activity;

/** Before a command: where to put its event, as the begin of a stretch; NULL if one is under way, or the
 *  device keeps no times. */
clv__bevent **clv__activity_begin(clv__activity *activity, const clv_device *device);
/** The same where the command gives no event: a marker before it. */
clv_status clv__activity_mark(clv__activity *activity, clv_device *device, clv__error *error);
/** Before a wait for another device: the stretch ends with what is enqueued so far. */
clv_status clv__activity_pause(clv__activity *activity, clv_device *device, clv__error *error);
/** The step is done (`done`: its last marker; NULL: it failed): book its stretches on the device, and begin
 *  anew. */
void clv__activity_settle(clv__activity *activity, clv_device *device, clv__bevent *done);

#endif
