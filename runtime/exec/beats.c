// SPDX-License-Identifier: Apache-2.0
// Which ranks are there: each tells rank 0 every second that it is, and rank 0 tells each. Who is not heard
// of for long enough is lost, and with it the training: rank 0 says so to the others, with the reason. No
// engine has to know of a death, and a rank that computes, reads or writes for minutes is not taken for dead.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/patience.h"
#include "base/shown.h"
#include "device/device.h"
#include "exec/ranks.h"

typedef struct peer {
    int rank;
    clv__beat heard, told;
    clv__message in, out;
    double silence;  // seconds; counted in slices, so that a process that was stopped does not use it up
    bool done, lost; // lost: nothing is told to it any more
} peer;

typedef struct clv__beats {
    clv_ranks *ranks;
    peer *peers;
    int n;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop, orderly; // orderly: not before all are done
    bool over;          // somebody has failed, and all that can hear it have been told
} clv__beats;

static void tell(clv__beats *beats, peer *to, clv__news said) {
    clv_ranks *ranks = beats->ranks;
    char why[CLV__TRANSPORT_WHY];
    bool over;
    if (to->out.active && ranks->engine->test(ranks->self, &to->out, &over, why) != 0) to->out.active = false;
    if (to->out.active) return; // the last one is under way still
    to->told = (clv__beat){.magic = CLV__BEAT_MAGIC, .said = (int32_t)said, .rank = ranks->place.rank};
    pthread_mutex_lock(&ranks->lock);
    if (said == CLV__ENDS) snprintf(to->told.sentence, sizeof to->told.sentence, "%s", ranks->sentence);
    pthread_mutex_unlock(&ranks->lock);
    if (clv__ranks_begin(ranks, false, to->rank, CLV__TAG_BEAT, &to->told, sizeof to->told, &to->out, why) !=
        0)
        to->out.active = false;
}

static void await_next(clv__beats *beats, peer *from) {
    clv_ranks *ranks = beats->ranks;
    char why[CLV__TRANSPORT_WHY];
    if (clv__ranks_begin(ranks, true, from->rank, CLV__TAG_BEAT, &from->heard, sizeof from->heard, &from->in,
                         why) != 0)
        from->in.active = false;
}

/** A rank does not answer, or says nonsense. */
static void lose(clv__beats *beats, peer *lost, const char *why) {
    char sentence[400];
    lost->lost = true;
    clv_ranks *ranks = beats->ranks;
    ranks->lost = lost->rank;
    snprintf(sentence, sizeof sentence, "rank %d of %d %s, after step %lld", lost->rank, ranks->place.size,
             why, (long long)atomic_load(&ranks->step));
    // of those that are left rank 0 tells it, and without that the next one
    clv__ranks_end(ranks, ranks->place.rank == (lost->rank == 0), sentence);
}

const char *clv__beat_fault(clv__beat *message, size_t came, int rank) {
    if (came != sizeof *message || message->magic != CLV__BEAT_MAGIC || message->rank != rank ||
        message->said < CLV__HERE || message->said > CLV__DONE)
        return "sends what is no heartbeat of a rank";
    message->sentence[sizeof message->sentence - 1] = 0;
    clv__show(message->sentence, 1);
    return NULL;
}

static void hear(clv__beats *beats, peer *from) {
    const char *fault = clv__beat_fault(&from->heard, from->in.bytes, from->rank);
    if (fault) {
        lose(beats, from, fault);
        return;
    }
    from->silence = 0;
    if (from->heard.said == CLV__DONE) from->done = true;
    if (from->heard.said == CLV__ENDS) clv__ranks_end(beats->ranks, false, from->heard.sentence);
}

static void listen(clv__beats *beats, peer *to, double slice) {
    clv_ranks *ranks = beats->ranks;
    char why[CLV__TRANSPORT_WHY];
    bool over = true;
    while (to->in.active && !to->done && over) {
        if (ranks->engine->test(ranks->self, &to->in, &over, why) != 0) {
            lose(beats, to, "is gone");
            return;
        }
        if (!over) break;
        hear(beats, to);
        if (!to->done) await_next(beats, to);
    }
    if (to->done) return;
    to->silence += slice;
    if (to->silence > ranks->patience) lose(beats, to, "does not answer any more");
}

static bool all_done(const clv__beats *beats) {
    for (int i = 0; i < beats->n; i++)
        if (!beats->peers[i].done || beats->peers[i].out.active) return false;
    return true;
}

/** Wait for a tenth of a second, or a call. The lock is held. */
static void rest(clv__beats *beats) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    if (until.tv_nsec >= 1000 * 1000 * 1000) until.tv_sec++, until.tv_nsec -= 1000 * 1000 * 1000;
    pthread_cond_timedwait(&beats->changed, &beats->lock, &until);
}

/** Send the last word to who has not had it, as soon as what was sent before is on its way. Is it out to all?
 *  */
static bool last_word(clv__beats *beats, clv__news word) {
    clv_ranks *ranks = beats->ranks;
    char why[CLV__TRANSPORT_WHY];
    bool out = true, over;
    for (int i = 0; i < beats->n; i++) {
        peer *to = &beats->peers[i];
        if (to->lost) continue;
        if (to->told.said != (int32_t)word) tell(beats, to, word);
        if (to->out.active && ranks->engine->test(ranks->self, &to->out, &over, why) != 0)
            to->out.active = false;
        out &= to->told.said == (int32_t)word && !to->out.active;
    }
    return out;
}

static void *run(void *user) {
    clv__beats *beats = user;
    clv_ranks *ranks = beats->ranks;
    double last = clv__seconds(), told = 0;
    bool said_done = false;
    pthread_mutex_lock(&beats->lock);
    for (;;) {
        const bool done = beats->stop && beats->orderly, over = atomic_load(&ranks->is_over);
        if (beats->stop && (!beats->orderly || over || (said_done && all_done(beats)))) break;
        pthread_mutex_unlock(&beats->lock);
        const double now = clv__seconds(), slice = now - last > 0.5 ? 0.5 : now - last;
        bool said_over = false;
        last = now;
        for (int i = 0; i < beats->n; i++) listen(beats, &beats->peers[i], slice);
        if (over) {
            said_over = last_word(beats, CLV__ENDS);
        } else if (done) {
            said_done = last_word(beats, CLV__DONE);
        } else if (now - told >= 1) {
            told = now;
            for (int i = 0; i < beats->n; i++) tell(beats, &beats->peers[i], CLV__HERE);
        }
        pthread_mutex_lock(&beats->lock);
        beats->over = said_over;
        pthread_cond_broadcast(&beats->changed);
        if (!beats->stop || beats->orderly) rest(beats);
    }
    pthread_mutex_unlock(&beats->lock);
    return NULL;
}

clv_status clv__beats_begin(clv_ranks *ranks) {
    const int size = ranks->place.size, rank = ranks->place.rank;
    if (size == 1) return CLV_OK;
    clv__error *error = clv__runtime_error_of(ranks->runtime);
    clv__beats *beats = clv__alloc(1, sizeof *beats);
    peer *peers = clv__alloc((size_t)size, sizeof *peers);
    if (!beats || !peers) {
        free(beats);
        free(peers);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for ranks");
    }
    *beats = (clv__beats){.ranks = ranks, .peers = peers, .n = rank == 0 ? size - 1 : 1};
    for (int i = 0; i < beats->n; i++) {
        peers[i].rank = rank == 0 ? i + 1 : 0;
        await_next(beats, &peers[i]);
    }
    pthread_mutex_init(&beats->lock, NULL);
    clv__cond_init(&beats->changed);
    if (pthread_create(&beats->thread, NULL, run, beats) != 0) {
        pthread_mutex_destroy(&beats->lock);
        pthread_cond_destroy(&beats->changed);
        free(peers);
        free(beats);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no thread could be started for ranks");
    }
    ranks->beats = beats;
    return CLV_OK;
}

void clv__beats_tell(clv_ranks *ranks) {
    clv__beats *beats = ranks->beats;
    if (!beats) return;
    const double until = clv__seconds() + 2;
    pthread_mutex_lock(&beats->lock);
    while (!beats->over && clv__seconds() < until) {
        pthread_cond_broadcast(&beats->changed);
        rest(beats);
    }
    pthread_mutex_unlock(&beats->lock);
}

bool clv__beats_end(clv_ranks *ranks, bool orderly) {
    clv__beats *beats = ranks->beats;
    if (!beats) return true;
    pthread_mutex_lock(&beats->lock);
    beats->stop = true;
    beats->orderly = orderly;
    pthread_cond_broadcast(&beats->changed);
    pthread_mutex_unlock(&beats->lock);
    pthread_join(beats->thread, NULL);
    const bool ended = orderly && !atomic_load(&ranks->is_over);
    ranks->beats = NULL;
    if (!ended) {
        clv__leave(beats->peers); // an engine may write there still
        clv__leave(beats);
        return false;
    }
    pthread_mutex_destroy(&beats->lock);
    pthread_cond_destroy(&beats->changed);
    free(beats->peers);
    free(beats);
    return true;
}
