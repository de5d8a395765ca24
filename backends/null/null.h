// SPDX-License-Identifier: Apache-2.0
// What tests ask of a null device: the commands it was given.
#ifndef CLV_BACKENDS_NULL_H
#define CLV_BACKENDS_NULL_H

#include "device/backend.h"

/**
 * The commands recorded so far, a line each, malloc'd; NULL if memory is out or the record was cut. Any
 * thread. Buffers are numbered as they were made; offset and bytes are of the whole buffer.
 *
 *     write upload b1+0:256
 *     launch relu [1024]/[256] b2 b1 i32:1024 f32:0.5
 *
 * The suffix that tells instances of a kernel apart is left out, so that a comment in its source changes no
 * trace. `wait compute for upload`: the compute queue waits for an event of the queue of uploads.
 * `blocks`: the thread that gives the device its commands waited for one of its events.
 */
char *clv__null_trace(clv__bdevice *device);
/** Forget what was recorded. */
void clv__null_trace_reset(clv__bdevice *device);

#endif
