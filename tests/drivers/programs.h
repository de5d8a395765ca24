// SPDX-License-Identifier: Apache-2.0
// The kernels that launches name, gathered, and written down as programs for compilers that need no device.
#ifndef CLV_TEST_PROGRAMS_H
#define CLV_TEST_PROGRAMS_H

#include <stdio.h>

#include "device/launch.h"
#include "device/source.h"

#define PROGRAMS_OF_UNITS "gemm_units" // kernels with matrix units

typedef struct program_kernel {
    clv__source_entry at;
    char defines[CLV__DEFINES_BYTES];
    uint64_t hash; // its name in the program is ENTRY_HASH, 16 digits
    uint32_t key;  // of its defines alone: the same when the kernel's text changes
    const char *op, *variant;
    size_t group, local;
    char met[160]; // what it was met in first
} program_kernel;

typedef struct programs {
    program_kernel *items;
    size_t n, room;
    clv__source_index sources;
} programs;

/** Say why, and end the program. */
void programs_fail(const char *program, const char *why);
/** The launch as a kernel; `known`: it is among them already. */
program_kernel programs_look(programs *all, const clv__launch *launch, bool *known);
void programs_add(programs *all, const program_kernel *kernel);
/** In the order of files and entries. */
void programs_sort(programs *all);
FILE *programs_file(const char *folder, const char *name, const char *suffix);
/** FOLDER/STEM.cl for each file of kernels_cl/, or for the first of several that have few kernels; sorted before. */
void programs_write(const programs *all, const char *folder);

#endif
