// SPDX-License-Identifier: Apache-2.0
// Ranks that go on without those that are lost. Each tells all that it is there. The lowest of those that did
// so in time says to all who goes on, and with that list each numbers them anew. Who comes too late finds
// itself left out, and ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/device.h"
#include "exec/ranks.h"

typedef struct peer {
    clv__left heard;
    clv__message in, out[2];
    bool here;
} peer;

/** What is under way while they look for each other. It is never freed: an engine may write there still. */
typedef struct search {
    clv_ranks *ranks;
    peer *peers;        // by rank, its own too
    clv__left told[2];  // that this rank is there; what it decided
    int n_here, lowest; // of those that are there
} search;

const char *clv__left_fault(const clv__left *message, size_t came, int rank) {
    if (came != sizeof *message || message->magic != CLV__LEFT_MAGIC || message->rank != rank ||
        message->fate < CLV__IS_LEFT || message->fate > CLV__NO_CHECKPOINT)
        return "does not say whether it is left";
    return NULL;
}

static void listen(const search *all, int other) {
    peer *from = &all->peers[other];
    char why[CLV__TRANSPORT_WHY];
    if (clv__ranks_begin(all->ranks, true, other, CLV__TAG_LEFT, &from->heard, sizeof from->heard, &from->in,
                         why) != 0)
        from->in.active = false;
}

/** To all, also those that did not answer, which may be late. 0: that this rank is there; 1: what it
 *  decided. */
static void tell(search *all, int how) {
    const int rank = all->ranks->place.rank;
    char why[CLV__TRANSPORT_WHY];
    all->told[how].magic = CLV__LEFT_MAGIC;
    all->told[how].rank = rank;
    for (int other = 0; other < all->ranks->place.size; other++)
        if (other != rank)
            (void)clv__ranks_begin(all->ranks, false, other, CLV__TAG_LEFT, &all->told[how],
                                   sizeof *all->told, &all->peers[other].out[how], why);
}

/** Hear of all; a decision of one of them, or NULL. */
static const clv__left *hear(search *all) {
    clv_ranks *ranks = all->ranks;
    char why[CLV__TRANSPORT_WHY];
    all->n_here = 1;
    all->lowest = ranks->place.rank;
    for (int other = ranks->place.size - 1; other >= 0; other--) {
        peer *from = &all->peers[other];
        bool over = true;
        if (from->in.active && ranks->engine->test(ranks->self, &from->in, &over, why) == 0 && over &&
            !clv__left_fault(&from->heard, from->in.bytes, other)) {
            if (from->heard.fate != CLV__IS_LEFT) return &from->heard;
            from->here = true;
            if (from->heard.saved > all->told[0].saved) all->told[0].saved = from->heard.saved;
            listen(all, other);
        }
        all->n_here += from->here;
        if (from->here && other < all->lowest) all->lowest = other;
    }
    return NULL;
}

static clv__fate fate_of(const search *all) {
    const clv_ranks *ranks = all->ranks;
    const int size = ranks->place.size;
    if (all->n_here == size) return CLV__NONE_LOST;
    if (2 * all->n_here < size || (2 * all->n_here == size && all->lowest != 0)) return CLV__TOO_FEW;
    return all->told[0].saved < 0 ? CLV__NO_CHECKPOINT : CLV__GO_ON;
}

static const clv__left *decide(search *all) {
    clv_ranks *ranks = all->ranks;
    for (int other = 0; other < ranks->place.size; other++)
        all->told[1].is_left[other] = all->peers[other].here || other == ranks->place.rank;
    all->told[1].fate = fate_of(all);
    all->told[1].saved = all->told[0].saved;
    tell(all, 1);
    return &all->told[1];
}

/** Another may find the loss later than this rank by as long as it is patient. Rank 0, or if that is gone the
 *  next one, need not wait for the last. */
static const clv__left *find(search *all) {
    clv_ranks *ranks = all->ranks;
    const double wait = 2 * ranks->patience + 2, begin = clv__seconds();
    const bool knows = ranks->place.rank == 0 || ranks->lost == 0;
    for (int other = 0; other < ranks->place.size; other++)
        if (other != ranks->place.rank) listen(all, other);
    all->told[0].saved = ranks->saved;
    tell(all, 0);
    for (int looks = 0; clv__seconds() < begin + 2 * wait; looks++) {
        const clv__left *said = hear(all);
        if (said) return said;
        if (all->lowest == ranks->place.rank &&
            ((knows && all->n_here >= ranks->place.size - 1) || clv__seconds() > begin + wait))
            return decide(all);
        clv__ranks_pause(looks);
    }
    return NULL;
}

static const char *why_not(const clv_ranks *ranks, const clv__left *said) {
    if (!said) return "the ranks that are left did not find each other";
    switch ((clv__fate)said->fate) {
    case CLV__NONE_LOST: return "no rank is lost, so fewer would fail as well";
    case CLV__TOO_FEW: return "too few are left to go on: the others may be cut off from them";
    case CLV__NO_CHECKPOINT: return "there is no checkpoint to go on from yet";
    default: return said->is_left[ranks->place.rank] ? NULL : "the others went on without this one";
    }
}

/** Those that are left, by their new numbers. */
static clv_status number_anew(clv_ranks *ranks, const clv__left *said) {
    int *numbers = clv__alloc((size_t)ranks->place.size, sizeof *numbers), n = 0, own = 0;
    if (!numbers)
        CLV_FAIL(clv__runtime_error_of(ranks->runtime), CLV_E_HOST_MEMORY, "no host memory for ranks");
    for (int old = 0; old < ranks->place.size; old++) {
        if (!said->is_left[old]) continue;
        if (old == ranks->place.rank) own = n;
        numbers[n++] = ranks->engine_rank ? ranks->engine_rank[old] : old;
    }
    free(ranks->engine_rank);
    ranks->engine_rank = numbers;
    ranks->place.rank = ranks->runtime->rank = own;
    ranks->place.size = n;
    return CLV_OK;
}

clv_status clv_ranks_go_on(clv_ranks *ranks) {
    CLV_TRY(CLV__GIVEN(NULL, ranks));
    clv__error *error = clv__runtime_error_of(ranks->runtime);
    if (!ranks->engine || !ranks->place.survives || !atomic_load(&ranks->is_over) || ranks->refused ||
        ranks->layered || ranks->place.size > CLV__MOST_LEFT)
        CLV_FAIL(error, CLV_E_STATE, "no rank is lost that others could go on without");
    search *all = clv__alloc(1, sizeof *all);
    peer *peers = clv__alloc((size_t)ranks->place.size, sizeof *peers);
    if (!all || !peers) {
        free(all);
        free(peers);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for ranks");
    }
    *all = (search){.ranks = ranks, .peers = peers};
    clv__beats_end(ranks, false);
    const clv__left *said = find(all);
    const char *why = why_not(ranks, said);
    clv_status status = CLV_OK;
    if (why)
        clv__error_set(error, status = CLV_E_RANK_LOST, "%s: %s", ranks->sentence, why);
    else
        status = number_anew(ranks, said);
    if (status == CLV_OK) ranks->saving = ranks->saved = said->saved;
    clv__leave(all);
    clv__leave(peers);
    CLV_TRY(status);
    ranks->times_lost++;
    ranks->lost = -1;
    ranks->over = ranks->first_to_tell = false;
    atomic_store(&ranks->is_over, false);
    atomic_store(&ranks->begun, false);
    atomic_store(&ranks->wants_stop, false);
    atomic_store(&ranks->agreed_stop, false);
    CLV_TRY(clv__beats_begin(ranks));
    return clv__ranks_greet(ranks);
}
