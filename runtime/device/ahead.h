// SPDX-License-Identifier: Apache-2.0
// Kernels compiled ahead in processes of their own: for drivers that compile one kernel at a time, whatever the threads, and
// keep on disk what they compiled. A helper compiles a plan's kernels from the last to the first while this process does so
// from the first to the last; where they meet, all are there.
//
// A helper is this library in another process (clv_compile_helper). Its standard input is a socket on which it gets a welcome,
// so that it has the device open by the time it is needed, and, when the programs are built and in the driver's cache, a
// letter for each kernel.
#ifndef CLV_DEVICE_AHEAD_H
#define CLV_DEVICE_AHEAD_H

#include "device/launch.h"
#include "device/program.h"

/** What a helper is told first; the texts of visible_devices and partition follow, each with its zero byte. */
typedef struct clv__welcome {
    char magic[8], version[24], device[24];
    size_t letter_bytes; // another build's may look different
    size_t n, n_first;   // letters, and how many of them are wanted first
    int number, n_helpers;
    size_t visible_bytes, partition_bytes;
} clv__welcome;

/** A launch on its way: with its texts, as addresses mean nothing elsewhere. */
typedef struct clv__letter {
    char source[64], entry[64];
    clv__launch launch;
} clv__letter;

extern const char clv__welcome_magic[8];

/**
 * Before the first programs of a device are built: get help if it is wanted (config.compile_helper) and of use, which shows when
 * building takes longer than loading from a cache would. The first n_first launches are wanted first. What their slots hold of
 * tensors must stand in `bytes`. Cannot fail: without help everything only takes longer.
 */
void clv__ahead_begin(clv_device *device, const clv__launch *const *launches, size_t n, size_t n_first);
/** The programs are built, or not: helpers go to work, or home. */
void clv__ahead_built(clv_device *device, bool built);
/** Send helpers home and wait for them (when the device closes). */
void clv__ahead_end(clv_device *device);

#endif
