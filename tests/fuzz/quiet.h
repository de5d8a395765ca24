// SPDX-License-Identifier: Apache-2.0
// For drivers of the command line's parts: what these say to people goes nowhere.
#ifndef CLV_TESTS_FUZZ_QUIET_H
#define CLV_TESTS_FUZZ_QUIET_H

#include <stdio.h>
#include <stdlib.h>

/** A stream that goes nowhere; from the first call on, stderr is such a one as far as it is written to by stdio. */
static inline FILE *quiet_begin(void) {
    static FILE *nowhere;
    if (nowhere) return nowhere;
    nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
    stderr = nowhere; // sanitizers write to the descriptor, which stays
    return nowhere;
}

#endif
