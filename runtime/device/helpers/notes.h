// SPDX-License-Identifier: Apache-2.0
// What was found out about a device's compiler, kept in the program cache (cache.h, with its rules: owner,
// mode, checksum) for this driver, its version and this version of the library. Lines:
//     largest N               programs of more than N kernels did not build, of N they did
//     dies 1                  it has ended a process
//     avoid OP VARIANT WHY    kernels of the variant do not build, not even alone
// A note that is lost is found out again.
#ifndef CLV_DEVICE_HELPERS_NOTES_H
#define CLV_DEVICE_HELPERS_NOTES_H

#include "device/device.h"

/** Does this process build programs that no helper has built? It does for compilers that are known as sound
 *  and have ended no process on this machine. */
bool clv__compiler_is_trusted(const clv_device *device);
/** The number behind a word; 0 if there is no such note. */
long clv__notes_number(const clv_device *device, const char *word);
/** Keep that a variant does not build, if helpers built it (helpers.h): where this process compiles, it is
 *  soon found out again. */
void clv__notes_avoid(clv_device *device, const char *op, const char *variant, const char *why);
/** Tell each variant that does not build. false: no memory. */
bool clv__notes_avoided(const clv_device *device,
                        bool (*tell)(void *user, const char *op, const char *variant, const char *why),
                        void *user);
/** Put a note in the place of the one that begins with the same word, or words. Line ends in `rest` become
 *  blanks. */
void clv__notes_keep(clv_device *device, const char *word, const char *rest);

#endif
