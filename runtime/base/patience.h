// SPDX-License-Identifier: Apache-2.0
// Waiting for a condition with an end to it. Time counts in slices of a second, so that a process that was
// stopped, a machine that slept, or a debugger does not use it up.
#ifndef CLV_BASE_PATIENCE_H
#define CLV_BASE_PATIENCE_H

#include <pthread.h>
#include <stdbool.h>

typedef struct clv__patience {
    double limit; // seconds; 0 or less: none
    double spent;
} clv__patience;

/** A condition on the clock that patience is measured by. */
void clv__cond_init(pthread_cond_t *condition);

/** Wait on the condition, a second at most if there is a limit; wakes may be for nothing. False: the limit is
 *  over. The lock is held before and after. */
bool clv__patience_wait(clv__patience *patience, pthread_cond_t *condition, pthread_mutex_t *lock);

#endif
