// SPDX-License-Identifier: Apache-2.0
// Helper processes: this library in other processes (clv_compile_helper), which compile for this one. All
// that the rest of the library knows of them stands here. Everything works without them: it takes longer, and
// a compiler that dies ends this process.
//
// They do two things. They compile ahead: where a driver compiles one kernel at a time, at its first launch,
// and keeps on disk what it compiled, helpers compile a plan's kernels from the last to the first while this
// process does so from the first to the last. And they build first: where a compiler may end the process, a
// helper builds a program before this process does, and hands over the binary.
#ifndef CLV_DEVICE_HELPERS_H
#define CLV_DEVICE_HELPERS_H

#include "device/launch.h"
#include "device/program.h"

// ---- compiling ahead --------------------------------------------------------------------------------------

typedef struct clv__ahead clv__ahead;

/**
 * Before the first programs of a device are built: start helpers if there is a program for them
 * (config.compile_helper) and building takes longer than loading from a cache would. The first n_first
 * launches are compiled first. The bytes of tensors must stand in the launches' slots. NULL: no helper will
 * be started. A device is served once: a plan that is made again because a program did not build gets no
 * help.
 */
clv__ahead *clv__ahead_begin(clv_device *device, const clv__launch *const *launches, size_t n,
                             size_t n_first);
/** Whether the programs are built now: helpers compile kernels, or end. NULL is fine. */
void clv__ahead_tell(clv__ahead *ahead, bool built);

// ---- building first ---------------------------------------------------------------------------------------

/** A program that a helper has built, as binary. */
typedef struct clv__built {
    clv__bprogram *program; // NULL: it has to be built here
    void *binary;           // malloc'd; NULL if there is none
    size_t bytes;
} clv__built;

/**
 * Have a helper build a program, if the compiler may end the process, there is a helper, and none has built
 * this text before. Any thread.
 * Errors  CLV_E_BUILD, with the compiler's words, or with how the helper ended
 */
clv_status clv__helpers_build(clv_device *device, const char *source, clv__error *error, clv__built *out);
/** Build it in this process. A mark on disk says so meanwhile: if this ends the process, a helper builds that
 *  text next time. */
clv_status clv__helpers_build_here(clv_device *device, const char *source, clv__error *error,
                                   clv__bprogram **out);
/** For now there is nothing to build: end the helpers, without waiting. In a long series of builds one stays
 *  until the device closes. */
void clv__helpers_rest(clv_device *device);

/** End all helpers of a device and wait for them (when it closes). */
void clv__helpers_end(clv_device *device);

#endif
