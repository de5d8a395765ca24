// SPDX-License-Identifier: Apache-2.0
// A crew: threads that do the parts of a work, each part once and in any order, while who began it does something else and
// then helps. One thread less than there are processors, for the one that began.
#ifndef CLV_EXEC_CREW_H
#define CLV_EXEC_CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { CLV__CREW_MOST = 15 };

/** In the caller's storage, and not moved while it works; zero-initialised is a crew that has nothing to do. */
typedef struct clv__crew {
    void (*run)(void *context, size_t part);
    void *context;
    size_t n;
    atomic_size_t next; // the first part that nobody has taken
    pthread_t threads[CLV__CREW_MOST];
    int n_threads;
} clv__crew;

/** Begin parts 0 to n - 1. Where no thread can start, all is done in clv__crew_end. */
void clv__crew_begin(clv__crew *crew, void (*run)(void *context, size_t part), void *context, size_t n);
/** Help, and wait until all parts are done: what they wrote may then be read. Once for each begin; more does nothing. */
void clv__crew_end(clv__crew *crew);

#endif
