// SPDX-License-Identifier: Apache-2.0
// The OpenCL C sources that are part of the library; the table is generated from kernels_cl/ when Cleave is
// built.
#ifndef CLV_DEVICE_KERNEL_SOURCES_H
#define CLV_DEVICE_KERNEL_SOURCES_H

#include <stddef.h>

typedef struct clv__kernel_source {
    const char *stem; // file name without .cl
    const char *text; // ends in a zero byte
    size_t bytes;     // without it
    int common;       // from kernels_cl/common/: pasted once at the start of every program
} clv__kernel_source;

extern const clv__kernel_source clv__kernel_sources[]; // ends with a NULL stem

#endif
