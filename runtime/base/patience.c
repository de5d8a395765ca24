// SPDX-License-Identifier: Apache-2.0
#include "base/patience.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

#define SLICE_SECONDS 1.0

void clv__cond_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

/** Does a debugger hold this process? Source: proc(5), status. */
static bool is_traced(void) {
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return false;
    char line[256];
    int tracer = 0;
    while (fgets(line, sizeof line, file) && sscanf(line, "TracerPid: %d", &tracer) != 1) {
    }
    fclose(file);
    return tracer != 0;
}

bool clv__patience_wait(clv__patience *patience, pthread_cond_t *condition, pthread_mutex_t *lock) {
    if (!(patience->limit > 0)) {
        pthread_cond_wait(condition, lock);
        return true;
    }
    double slice = patience->limit - patience->spent;
    if (slice > SLICE_SECONDS) slice = SLICE_SECONDS;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)slice;
    until.tv_nsec += (long)((slice - (double)(time_t)slice) * 1e9);
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    double since = clv__seconds();
    if (pthread_cond_timedwait(condition, lock, &until) == 0) {
        double waited = clv__seconds() - since;
        patience->spent += waited < slice ? waited : slice;
    } else if (!is_traced()) {
        patience->spent += slice;
    }
    return patience->spent < patience->limit - 1e-6;
}
