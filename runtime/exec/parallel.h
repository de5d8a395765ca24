// SPDX-License-Identifier: Apache-2.0
// A loop whose parts run on several threads, each part once and in any order, while the caller does something
// else and then helps. There is one thread less than there are processors, for the caller.
#ifndef CLV_EXEC_PARALLEL_H
#define CLV_EXEC_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { CLV__PARALLEL_MOST = 15 };

/** In the caller's storage, and not moved while it works. Zero-initialised it has nothing to do. */
typedef struct clv__parallel {
    void (*run)(void *context, size_t part);
    void *context;
    size_t n;
    atomic_size_t next; // the first part that nobody has taken
    pthread_t threads[CLV__PARALLEL_MOST];
    int n_threads;
} clv__parallel;

/** Begin parts 0 to n - 1. Where no thread can start, all is done in clv__parallel_end. */
void clv__parallel_begin(clv__parallel *parallel, void (*run)(void *context, size_t part), void *context,
                         size_t n);
/** Help, and wait until all parts are done: what they wrote may then be read. Once for each begin; more does
 *  nothing. */
void clv__parallel_end(clv__parallel *parallel);

#endif
