// SPDX-License-Identifier: Apache-2.0
// The clock that everything here is timed by.
#ifndef CLV_BASE_CLOCK_H
#define CLV_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Seconds on a clock that only goes forward; differences alone mean something. */
static inline double clv__seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/** The same in whole nanoseconds. */
static inline uint64_t clv__nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
