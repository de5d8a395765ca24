// SPDX-License-Identifier: Apache-2.0
// The asking side of compiling ahead: one thread starts helpers, sends them the launches, and waits for their
// end. It may wait for long, in send or poll. Whoever wants to end it shuts the sockets, which ends every
// wait.
//
// A helper gets its handshake early, so that it has opened the device by the time it is needed. It gets the
// launches when the programs are built and in the driver's cache. Each of several helpers compiles its own
// share before it takes from the others'.
#include "device/helpers/internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/processors.h"

enum {
    MOST_HELPERS = 3,   // each loads the driver's compiler for itself, half a second of work
    FEWEST_KERNELS = 4, // for each helper
    LOADING_MS = 150,   // programs from a cache are there by then
    PATIENCE_S = 2,     // with helpers that are to end: a kernel takes half a second at most
};

struct clv__ahead {
    clv_device *device;
    clv__sent_launch *sent; // each kernel once for each size of groups
    size_t n, n_first;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // under the lock; `told` stays as it is once it is set
    bool told, built, ending;
    clv__helper helpers[MOST_HELPERS]; // sockets are shut, not closed, while the thread may use them
    int n_helpers;
};

// ---- starting ---------------------------------------------------------------------------------------------

/** Start a helper and send its handshake; false if there will be no more. */
static bool start_helper(clv__ahead *ahead, int n_helpers) {
    const clv_device *device = ahead->device;
    clv__helper started;
    int failed = clv__helper_start(device, &started);
    if (failed) {
        clv__log(device->runtime, CLV_LOG_WARNING,
                 "the compile helper '%s' cannot be started (%s): kernels are compiled one after another",
                 device->runtime->config.compile_helper, strerror(failed));
        return false;
    }
    pthread_mutex_lock(&ahead->lock);
    bool ending = ahead->ending;
    int number = ahead->n_helpers++;
    ahead->helpers[number] = started;
    if (ending) shutdown(started.socket, SHUT_RDWR);
    pthread_mutex_unlock(&ahead->lock);
    const clv__handshake own = {.kind = CLV__HELP_AHEAD,
                                .launch_bytes = sizeof(clv__sent_launch),
                                .n = ahead->n,
                                .n_first = ahead->n_first,
                                .number = number,
                                .n_helpers = n_helpers};
    return !ending && clv__helper_handshake(device, started.socket, own);
}

/** As many as there are further processors, and work for. */
static void start_helpers(clv__ahead *ahead) {
    long n = clv__processors() - 1;
    if (n > MOST_HELPERS) n = MOST_HELPERS;
    if (n > (long)ahead->n / FEWEST_KERNELS) n = (long)ahead->n / FEWEST_KERNELS;
    for (int i = 0; i < n && start_helper(ahead, (int)n); i++)
        ;
    clv_runtime *runtime = ahead->device->runtime;
    pthread_mutex_lock(&runtime->report_lock);
    runtime->report.helpers += ahead->n_helpers;
    pthread_mutex_unlock(&runtime->report_lock);
}

// ---- ending -----------------------------------------------------------------------------------------------

/** Shut the sockets, which tells every helper to end. Any thread. */
static void shut_all(clv__ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    ahead->ending = true;
    for (int i = 0; i < ahead->n_helpers; i++) shutdown(ahead->helpers[i].socket, SHUT_RDWR);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

/** Wait until each helper has shut its end of the socket, or somebody this end, and then for the
 *  processes. */
static void wait_for_helpers(clv__ahead *ahead) {
    for (int i = 0; i < ahead->n_helpers; i++) {
        struct pollfd end = {.fd = ahead->helpers[i].socket, .events = POLLIN};
        while (poll(&end, 1, -1) < 0 && errno == EINTR)
            ;
    }
    const double patience_ends = clv__seconds() + PATIENCE_S;
    for (int i = 0; i < ahead->n_helpers; i++) clv__helper_wait(&ahead->helpers[i], patience_ends);
}

// ---- the thread -------------------------------------------------------------------------------------------

/** Wait until it is told whether the programs are built, or all ends; at most `milliseconds` (0: for as long
 *  as it takes). */
static bool wait_for_news(clv__ahead *ahead, long milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += milliseconds % 1000 * 1000000;
    until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    bool late = false;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->told && !ahead->ending && !late) {
        if (milliseconds)
            late = pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until) == ETIMEDOUT;
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    bool told = ahead->told || ahead->ending;
    pthread_mutex_unlock(&ahead->lock);
    return told;
}

static bool is_built(clv__ahead *ahead) {
    pthread_mutex_lock(&ahead->lock);
    bool built = ahead->built;
    pthread_mutex_unlock(&ahead->lock);
    return built;
}

static void *help(void *context) {
    clv__ahead *ahead = context;
    if (!wait_for_news(ahead, LOADING_MS)) { // else programs came from a cache, and so will the kernels
        start_helpers(ahead);
        wait_for_news(ahead, 0);
        if (!is_built(ahead)) shut_all(ahead);
        for (int i = 0; i < ahead->n_helpers; i++)
            clv__helper_send(ahead->helpers[i].socket, ahead->sent, ahead->n * sizeof *ahead->sent);
        wait_for_helpers(ahead);
    }
    free(ahead->sent);
    ahead->sent = NULL;
    return NULL;
}

// ---- asking -----------------------------------------------------------------------------------------------

static bool same_kernel(const clv__launch *a, const clv__launch *b) {
    return !strcmp(a->source, b->source) && !strcmp(a->entry, b->entry) && !strcmp(a->defines, b->defines) &&
           a->grid.dims == b->grid.dims && !memcmp(a->grid.local, b->grid.local, sizeof a->grid.local) &&
           clv__grid_is_large(&a->grid) == clv__grid_is_large(&b->grid);
}

static bool has_launch(const clv__ahead *ahead, const clv__launch *launch) {
    for (size_t i = 0; i < ahead->n; i++) {
        if (same_kernel(&ahead->sent[i].launch, launch)) return true;
    }
    return false;
}

/** Each kernel once, in order: of these a helper assembles the same programs as this process does of all
 *  launches. */
static bool collect_launches(clv__ahead *ahead, const clv__launch *const *launches, size_t n,
                             size_t n_first) {
    ahead->sent = clv__alloc(n, sizeof *ahead->sent);
    if (!ahead->sent) return false;
    for (size_t i = 0; i < n; i++) {
        if (i == n_first) ahead->n_first = ahead->n;
        if (launches[i]->kind != CLV__LAUNCH_KERNEL || has_launch(ahead, launches[i])) continue;
        clv__sent_launch *one = &ahead->sent[ahead->n++];
        one->launch = *launches[i];
        if ((size_t)snprintf(one->source, sizeof one->source, "%s", launches[i]->source) >=
                sizeof one->source ||
            (size_t)snprintf(one->entry, sizeof one->entry, "%s", launches[i]->entry) >= sizeof one->entry)
            return false;
    }
    if (n_first >= n) ahead->n_first = ahead->n;
    return ahead->n >= FEWEST_KERNELS;
}

static void destroy(clv__ahead *ahead) {
    for (int i = 0; i < ahead->n_helpers; i++) close(ahead->helpers[i].socket);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead->sent);
    free(ahead);
}

static clv__ahead *create(clv_device *device, const clv__launch *const *launches, size_t n, size_t n_first) {
    clv__ahead *ahead = clv__alloc(1, sizeof *ahead);
    if (!ahead) return NULL;
    ahead->device = device;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&ahead->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (collect_launches(ahead, launches, n, n_first) &&
        pthread_create(&ahead->thread, NULL, help, ahead) == 0)
        return ahead;
    destroy(ahead);
    return NULL;
}

clv__ahead *clv__ahead_begin(clv_device *device, const clv__launch *const *launches, size_t n,
                             size_t n_first) {
    if (!device->traits.compiles_at_launch || !clv__helper_wanted(device)) return NULL;
    pthread_mutex_lock(&device->open_lock);
    bool first = !device->programs && !device->helpers.ahead;
    clv__ahead *ahead = first ? create(device, launches, n, n_first) : NULL;
    if (ahead) device->helpers.ahead = ahead;
    pthread_mutex_unlock(&device->open_lock);
    return ahead;
}

void clv__ahead_tell(clv__ahead *ahead, bool built) {
    if (!ahead) return;
    pthread_mutex_lock(&ahead->lock);
    ahead->told = true;
    ahead->built = built;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
}

void clv__ahead_end(clv_device *device) {
    clv__ahead *ahead = device->helpers.ahead;
    if (!ahead) return;
    shut_all(ahead);
    pthread_join(ahead->thread, NULL);
    destroy(ahead);
    device->helpers.ahead = NULL;
}
