// SPDX-License-Identifier: Apache-2.0
// Kernels compiled ahead in processes of their own: for drivers that compile one kernel at a time, whatever the threads, and
// keep on disk what they compiled. Helpers compile a plan's kernels from the last to the first while this process does so
// from the first to the last; where they meet, all are there. Of several, each takes its share before what is left of others'.
//
// A helper is this library in another process (clv_compile_helper). Its standard input is a socket on which it gets a welcome,
// so that it has the device open by the time it is needed, and, when the programs are built and in the driver's cache, a
// letter for each kernel. It ends when it has done its work, or when the other end of the socket is shut.
#ifndef CLV_DEVICE_AHEAD_H
#define CLV_DEVICE_AHEAD_H

#include "device/launch.h"
#include "device/program.h"

enum { CLV__WELCOME_TEXTS = 4 };

/** What a helper is told first. visible_devices, partition, left_out and cache_dir follow, each with its zero byte. */
typedef struct clv__welcome {
    char magic[8], version[24], device[24];
    size_t letter_bytes; // another build's may look different
    size_t n, n_first;   // letters, and how many of them are wanted first
    int number, n_helpers;
    bool no_cache;
    size_t text_bytes[CLV__WELCOME_TEXTS];
} clv__welcome;

extern const char clv__welcome_magic[8];

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
