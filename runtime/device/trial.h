// SPDX-License-Identifier: Apache-2.0
// Does a compiler outlive a program? Asked of a helper (helper.h), which builds it first: one that dies, or does not come back, is
// told as a program that does not build. A helper builds until it dies, and several build side by side.
#ifndef CLV_DEVICE_TRIAL_H
#define CLV_DEVICE_TRIAL_H

#include "device/device.h"

/** Does this process build what no helper tried? So it is for compilers that are known as sound and have killed none on this machine. */
bool clv__compiler_is_trusted(const clv_device *device);

/**
 * Have a helper build a program. *tried: it said how it went; false: there is no helper, and what to do is up to the caller.
 * *binary: the program, malloc'd; NULL where it is not wanted or the driver gives none. Any thread.
 * Errors  CLV_E_BUILD, with the compiler's words, or with how it ended
 */
clv_status clv__trial_build(clv_device *device, const char *source, bool want_binary, clv__error *error,
                            bool *tried, void **binary, size_t *bytes);
/** Send helpers home: for now there is nothing to build. Does not wait. In a long series of builds one stays until the device closes. */
void clv__trial_rest(clv_device *device);
/** The same, and wait (when the device closes). */
void clv__trial_end(clv_device *device);

/** What the helper does: open the device and build what it is sent, until the other end of the socket is shut. */
clv_status clv__trial_serve(clv_device *device, int socket);

#endif
