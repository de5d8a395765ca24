// SPDX-License-Identifier: Apache-2.0
// For drivers of the command line's parts: what these say to people goes nowhere, and bytes become a file that has a name.
#ifndef CLV_TESTS_FUZZ_QUIET_H
#define CLV_TESTS_FUZZ_QUIET_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/** A stream that goes nowhere; from the first call on, stderr is such a one as far as it is written to by stdio. */
static inline FILE *quiet_begin(void) {
    static FILE *nowhere;
    if (nowhere) return nowhere;
    nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
    stderr = nowhere; // sanitizers write to the descriptor, which stays
    return nowhere;
}

/** The bytes as a file in memory; the same one each time. */
static inline void quiet_file(const void *data, size_t size, char *path, size_t bytes) {
    static int file = -1;
    if (file < 0) file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) abort();
    snprintf(path, bytes, "/proc/self/fd/%d", file);
}

#endif
