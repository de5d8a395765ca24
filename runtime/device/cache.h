// SPDX-License-Identifier: Apache-2.0
// The program cache on disk: binaries of programs, found again by a hash of all that they depend on.
// Any fault (no folder, a file that is truncated, changed, of another key) means "not there": the program is
// built again.
#ifndef CLV_DEVICE_CACHE_H
#define CLV_DEVICE_CACHE_H

#include "device/device.h"

typedef struct clv__cache_key {
    uint64_t word[2];
} clv__cache_key;

/** Hash of source, options, device, driver, platform and the file format's version. */
clv__cache_key clv__cache_key_of(const clv_device *device, const char *source, const char *options);

/** The binary kept under the key, malloc'd into *binary; false if there is none that can be trusted. Any
 * thread. */
bool clv__cache_read(const clv_device *device, clv__cache_key key, void **binary, size_t *bytes);

/** Keep a binary. A failure is told once through the log and otherwise does not matter. Any thread. */
void clv__cache_write(clv_device *device, clv__cache_key key, const void *binary, size_t bytes);

/** Forget what is kept under the key. */
void clv__cache_remove(const clv_device *device, clv__cache_key key);

/** Make the cache's folder if it is missing; false, and told once through the log, if there is none that can
 *  be used. */
bool clv__cache_make_folder(clv_runtime *runtime);

#endif
