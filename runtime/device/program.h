// SPDX-License-Identifier: Apache-2.0
// Programs: kernels gathered from launches, assembled to few sources, built in parallel, kept in memory and on disk.
//
// An instance is a source file with a set of defines. In a program each instance is pasted as
//     #define KERNEL(name) name##_<hash of source and defines>
//     #define <each define>
//     #line 1 "<stem>.cl"
//     <text of the file>
//     #undef of all of these, and of every macro that the file itself defines
// so that one program can hold the same file many times. A file therefore names every function and type of its own with
// KERNEL(...), not only its entry points. The files of kernels_cl/common/ stand once at the start of each program; what
// they define is there for all.
#ifndef CLV_DEVICE_PROGRAM_H
#define CLV_DEVICE_PROGRAM_H

#include "device/device.h"
#include "device/launch.h"

/** The compiler options of every program. */
extern const char clv__program_options[];

/** A kernel found in a built program of a device. `program` is owned by the device's store, until the device closes. */
typedef struct clv__kernel_ref {
    clv__bprogram *program;
    char name[96]; // the entry with its instance's suffix
} clv__kernel_ref;

/**
 * See that every kernel of the launches is built on the device: what the store has already is taken from there, the rest
 * is gathered into few programs, loaded from the disk cache or built, several at a time. Launches that are not kernels
 * are passed over. Blocks. Reports to the runtime's progress callback and program report.
 * Errors  CLV_E_BUILD, with the source file, the device and the start of the compiler's log
 */
clv_status clv__programs_build(clv_device *device, const clv__launch *const *launches, size_t n);

/** The built kernel of a launch; clv__programs_build has been called with it. */
clv_status clv__programs_find(clv_device *device, const clv__launch *launch, clv__kernel_ref *out);

/** Forget everything built on the device (when it closes). */
void clv__programs_reset(clv_device *device);

/** The assembled source of one program for these launches, malloc'd: for tests and CLEAVE_DEBUG=4. NULL if memory is out. */
char *clv__programs_source(const clv__launch *const *launches, size_t n);

#endif
