// SPDX-License-Identifier: Apache-2.0
#include "exec/parallel.h"

#include <signal.h>

#include "base/processors.h"

static void *work(void *user) {
    clv__parallel *parallel = user;
    for (size_t part; (part = atomic_fetch_add(&parallel->next, 1)) < parallel->n;)
        parallel->run(parallel->context, part);
    return NULL;
}

void clv__parallel_begin(clv__parallel *parallel, void (*run)(void *context, size_t part), void *context,
                         size_t n) {
    parallel->run = run;
    parallel->context = context;
    parallel->n = n;
    parallel->n_threads = 0;
    atomic_init(&parallel->next, 0);
    int others = clv__processors() - 1;
    if (others > CLV__PARALLEL_MOST) others = CLV__PARALLEL_MOST;
    sigset_t all, before; // signals are the program's: none is handled on these threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (parallel->n_threads < others && (size_t)parallel->n_threads < n &&
           pthread_create(&parallel->threads[parallel->n_threads], NULL, work, parallel) == 0)
        parallel->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void clv__parallel_end(clv__parallel *parallel) {
    if (parallel->n) work(parallel);
    while (parallel->n_threads > 0) pthread_join(parallel->threads[--parallel->n_threads], NULL);
    parallel->n = 0;
}
