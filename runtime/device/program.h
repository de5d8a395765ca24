// SPDX-License-Identifier: Apache-2.0
// Programs: kernels gathered from launches, assembled to few sources (source.h), built in parallel, kept in
// memory and on disk.
#ifndef CLV_DEVICE_PROGRAM_H
#define CLV_DEVICE_PROGRAM_H

#include "device/device.h"
#include "device/launch.h"

/** The compiler options of a program of this text. */
const char *clv__program_options(const char *source);

enum { CLV__KERNEL_NAME_BYTES = 96 };

/** A kernel found in a built program of a device. `program` is owned by the device's store, until the device
 *  closes. */
typedef struct clv__kernel_ref {
    clv__bprogram *program;
    char name[CLV__KERNEL_NAME_BYTES]; // the entry with its instance's suffix
} clv__kernel_ref;

/**
 * See that every kernel of the launches is built on the device: what the store has already is taken from
 * there, the rest is gathered into few programs, loaded from the disk cache or built, several at a time.
 * Launches that are not kernels are skipped. Blocks. Reports to the runtime's progress callback and
 * program report.
 * Errors  CLV_E_BUILD, with the source file, the device and the start of the compiler's log
 */
clv_status clv__programs_build(clv_device *device, const clv__launch *const *launches, size_t n);

/** The built kernel of a launch; clv__programs_build has been called with it. */
clv_status clv__programs_find(clv_device *device, const clv__launch *launch, clv__kernel_ref *out);

/** Forget everything built on the device (when it closes). */
void clv__programs_reset(clv_device *device);

/** The assembled source of one program for these launches as the device gets it (NULL: one without halves of
 *  its own), malloc'd: for tests and to show. NULL if memory is out. */
char *clv__programs_source(const clv_device *device, const clv__launch *const *launches, size_t n);
/** What a launch's kernel is called there. */
clv_status clv__programs_kernel_name(const clv__launch *launch, clv__error *error,
                                     char name[CLV__KERNEL_NAME_BYTES]);

#endif
