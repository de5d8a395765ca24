// SPDX-License-Identifier: Apache-2.0
#include "exec/crew.h"

#include <signal.h>

#include "base/processors.h"

static void *work(void *user) {
    clv__crew *crew = user;
    for (size_t part; (part = atomic_fetch_add(&crew->next, 1)) < crew->n;) crew->run(crew->context, part);
    return NULL;
}

void clv__crew_begin(clv__crew *crew, void (*run)(void *context, size_t part), void *context, size_t n) {
    crew->run = run;
    crew->context = context;
    crew->n = n;
    crew->n_threads = 0;
    atomic_init(&crew->next, 0);
    int others = clv__processors() - 1;
    if (others > CLV__CREW_MOST) others = CLV__CREW_MOST;
    sigset_t all, before; // signals are the program's: none is handled on these threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (crew->n_threads < others && (size_t)crew->n_threads < n &&
           pthread_create(&crew->threads[crew->n_threads], NULL, work, crew) == 0)
        crew->n_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void clv__crew_end(clv__crew *crew) {
    if (crew->n) work(crew);
    while (crew->n_threads > 0) pthread_join(crew->threads[--crew->n_threads], NULL);
    crew->n = 0;
}
