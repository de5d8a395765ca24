// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE // sched_getaffinity
#include "base/processors.h"

#include <sched.h>
#include <unistd.h>

int clv__processors(void) {
    cpu_set_t usable;
    CPU_ZERO(&usable);
    long n =
        sched_getaffinity(0, sizeof usable, &usable) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&usable);
    return n > 0 ? (int)n : 1;
}
