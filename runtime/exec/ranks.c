// SPDX-License-Identifier: Apache-2.0
// Joining the ranks, and messages between them. An engine's library is looked for beside Cleave's own, so
// that one build serves machines with MPI and without.
#define _GNU_SOURCE // dladdr
#include "exec/ranks.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef CLEAVE_NO_ENGINES
#include <dlfcn.h>
#endif

#include "base/shown.h"
#include "device/device.h"
#include "exec/elsewhere.h"

enum { JOIN = 12 }; // times as patient: processes start one after the other

static clv__error *error_of(const clv_ranks *ranks) {
    return clv__runtime_error_of(ranks->runtime);
}

// ---- the end ----------------------------------------------------------------------------------------------

void clv__ranks_fail(clv_ranks *ranks, const char *sentence) {
    char told[sizeof ranks->sentence];
    snprintf(told, sizeof told, "rank %d of %d ended after step %lld: %.380s", ranks->place.rank,
             ranks->place.size, (long long)atomic_load(&ranks->step), sentence);
    clv__ranks_end(ranks, true, told);
    clv__beats_tell(ranks);
}

/** The engine says that a message cannot be: so that the others need not wait, all ends. If another rank has
 *  ended, why it did is on its way, and is the better sentence. */
static clv_status broken(clv_ranks *ranks, int other, const char *why) {
    char sentence[400];
    for (int i = 0; i < 200 && ranks->beats && !atomic_load(&ranks->is_over); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (other < 0)
        snprintf(sentence, sizeof sentence, "a message to or from rank %d failed: %s", ranks->place.rank,
                 why);
    else
        snprintf(sentence, sizeof sentence, "a message between ranks %d and %d failed: %s", ranks->place.rank,
                 other, why);
    clv__ranks_end(ranks, true, sentence);
    return clv__ranks_status(ranks);
}

// ---- messages ---------------------------------------------------------------------------------------------

clv_status clv__ranks_send(clv_ranks *ranks, int to, clv__tag tag, const void *data, size_t bytes,
                           clv__message *out) {
    char why[CLV__TRANSPORT_WHY];
    if (clv__ranks_begin(ranks, false, to, tag, (void *)(uintptr_t)data, bytes, out, why) != 0)
        return broken(ranks, to, why);
    if (tag == CLV__TAG_EXCHANGE || tag >= CLV__TAG_VALUES)
        atomic_fetch_add(&ranks->sent_bytes, (long long)bytes);
    return CLV_OK;
}

clv_status clv__ranks_receive(clv_ranks *ranks, int from, clv__tag tag, void *data, size_t bytes,
                              clv__message *out) {
    char why[CLV__TRANSPORT_WHY];
    if (clv__ranks_begin(ranks, true, from, tag, data, bytes, out, why) != 0) return broken(ranks, from, why);
    return CLV_OK;
}

/** Who computes on the same cores has them meanwhile. */
void clv__ranks_pause(int looks) {
    if (looks < 8) {
        sched_yield();
        return;
    }
    const long ns = looks < 40 ? 20000 : looks < 200 ? 100000 : 1000000;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

clv_status clv__ranks_test(clv_ranks *ranks, clv__message *messages, int n, bool *over) {
    char why[CLV__TRANSPORT_WHY];
    *over = true;
    for (int i = 0; i < n; i++) {
        bool one = true;
        if (messages[i].active && ranks->engine->test(ranks->self, &messages[i], &one, why) != 0)
            return broken(ranks, -1, why);
        *over &= one;
    }
    return CLV_OK;
}

static clv_status await(clv_ranks *ranks, clv__message *messages, int n, const atomic_bool *stop) {
    for (int looks = 0;; looks++) {
        bool all;
        CLV_TRY(clv__ranks_test(ranks, messages, n, &all));
        if (all) return CLV_OK;
        if (atomic_load(&ranks->is_over)) return clv__ranks_status(ranks);
        if (stop && atomic_load(stop))
            CLV_FAIL(error_of(ranks), CLV_E_RANK_LOST, "what another rank sends is not wanted any more");
        clv__ranks_pause(looks);
    }
}

clv_status clv__ranks_await(clv_ranks *ranks, clv__message *messages, int n, const atomic_bool *stop) {
    const clv_status status = await(ranks, messages, n, stop);
    for (int i = 0; status != CLV_OK && i < n; i++)
        if (messages[i].active && messages[i].receives) ranks->engine->forget(ranks->self, &messages[i]);
    return status;
}

clv_status clv__ranks_agree(clv_ranks *ranks, void *data, size_t bytes) {
    clv__message message;
    if (ranks->place.rank != 0) {
        CLV_TRY(clv__ranks_receive(ranks, 0, CLV__TAG_CONTROL, data, bytes, &message));
        CLV_TRY(clv__ranks_await(ranks, &message, 1, NULL));
        return message.bytes == bytes ? CLV_OK
                                      : broken(ranks, 0, "its length is not the one that was agreed");
    }
    for (int to = 1; to < ranks->place.size; to++) {
        CLV_TRY(clv__ranks_send(ranks, to, CLV__TAG_CONTROL, data, bytes, &message));
        CLV_TRY(clv__ranks_await(ranks, &message, 1, NULL));
    }
    return CLV_OK;
}

static clv_status gather_into(clv_ranks *ranks, size_t bytes, char *came, clv__message *messages) {
    const int size = ranks->place.size;
    for (int i = 1; i < size; i++)
        CLV_TRY(
            clv__ranks_receive(ranks, i, CLV__TAG_CONTROL, came + (size_t)i * bytes, bytes, &messages[i]));
    CLV_TRY(clv__ranks_await(ranks, messages, size, NULL));
    for (int i = 1; i < size; i++)
        if (messages[i].bytes != bytes) return broken(ranks, i, "its length is not the one that was agreed");
    return CLV_OK;
}

clv_status clv__ranks_collect(clv_ranks *ranks, const void *own, size_t bytes, void *all) {
    const size_t size = (size_t)ranks->place.size;
    clv__message message;
    if (ranks->place.rank != 0) {
        CLV_TRY(clv__ranks_send(ranks, 0, CLV__TAG_CONTROL, own, bytes, &message));
        return clv__ranks_await(ranks, &message, 1, NULL);
    }
    char *came = all ? clv__alloc(size, bytes) : NULL;
    clv__message *messages = clv__alloc(size, sizeof *messages);
    clv_status status;
    if (came && messages) {
        status = gather_into(ranks, bytes, came, messages);
        memcpy(came, own, bytes);
        if (status == CLV_OK) memcpy(all, came, size * bytes);
    } else {
        clv__ranks_fail(ranks, "no host memory for what other ranks tell");
        status = clv__ranks_status(ranks);
    }
    if (status == CLV_OK || !came || !messages) {
        free(came);
        free(messages);
    } else { // messages that were begun may come still
        clv__leave(came);
        clv__leave(messages);
    }
    return status;
}

// ---- the beginning ---------------------------------------------------------------------------------------

const char *clv__ready_fault(clv__readiness *message, size_t came) {
    if (came != sizeof *message || message->magic != CLV__READY_MAGIC || message->failed > 1)
        return "it does not say whether that rank can begin";
    message->sentence[sizeof message->sentence - 1] = 0;
    clv__show(message->sentence, 1);
    return NULL;
}

/** Of what all said, rank 0's own first: one sentence if all have the same, else each with its rank. */
static clv__readiness sum_up(clv__readiness *said, int size) {
    clv__readiness all = {.magic = CLV__READY_MAGIC};
    bool alike = true;
    size_t at = 0;
    for (int i = 0; i < size; i++) {
        all.failed |= said[i].failed;
        alike &= said[i].failed && strcmp(said[i].sentence, said[0].sentence) == 0;
    }
    if (alike) return said[0];
    for (int i = 0; i < size && at < sizeof all.sentence; i++)
        if (said[i].failed)
            at += (size_t)snprintf(all.sentence + at, sizeof all.sentence - at, "%srank %d of %d: %.350s",
                                   at ? "; " : "", i, size, said[i].sentence);
    return all;
}

/** Rank 0 hears all, and tells all what came of it. */
static clv_status agree_to_begin(clv_ranks *ranks, clv__readiness *own) {
    clv__readiness *said = ranks->place.rank ? NULL : clv__alloc((size_t)ranks->place.size, sizeof *said);
    clv_status status = clv__ranks_collect(ranks, own, sizeof *own, said);
    for (int i = 0; said && status == CLV_OK && i < ranks->place.size; i++) {
        const char *fault = clv__ready_fault(&said[i], sizeof *said);
        if (fault) status = broken(ranks, i, fault);
    }
    if (said && status == CLV_OK) *own = sum_up(said, ranks->place.size);
    free(said);
    return status == CLV_OK ? clv__ranks_agree(ranks, own, sizeof *own) : status;
}

clv_status clv__ranks_ready(clv_ranks *ranks, const char *failed) {
    clv__readiness own = {.magic = CLV__READY_MAGIC, .failed = failed != NULL};
    if (!ranks->engine || ranks->place.size == 1) return CLV_OK;
    if (failed) snprintf(own.sentence, sizeof own.sentence, "%s", failed);
    CLV_TRY(agree_to_begin(ranks, &own));
    const char *fault = clv__ready_fault(&own, sizeof own);
    if (fault) return broken(ranks, 0, fault);
    atomic_store(&ranks->begun, !own.failed);
    if (!own.failed) return CLV_OK;
    pthread_mutex_lock(&ranks->lock);
    ranks->refused = true;
    ranks->first_to_tell = ranks->place.rank == 0;
    snprintf(ranks->sentence, sizeof ranks->sentence, "%s", own.sentence);
    pthread_mutex_unlock(&ranks->lock);
    CLV_FAIL(error_of(ranks), CLV_E_RANK_LOST, "%s", own.sentence);
}

void clv_ranks_fail(clv_ranks *ranks, const char *sentence) {
    if (!ranks || ranks->refused || atomic_load(&ranks->is_over)) return;
    if (atomic_load(&ranks->begun))
        clv__ranks_fail(ranks, sentence ? sentence : "");
    else
        (void)!clv__ranks_ready(ranks, sentence ? sentence : "");
}

// ---- joining ----------------------------------------------------------------------------------------------

const char *clv__hello_fault(clv__hello *message, size_t came, int rank) {
    if (came != sizeof *message || message->magic != CLV__HELLO_MAGIC || message->rank != (uint32_t)rank)
        return "it is not what a rank of Cleave says first";
    message->version[sizeof message->version - 1] = 0;
    clv__show(message->version, 0);
    return strcmp(message->version, clv_version()) == 0 ? NULL : "another version of Cleave is there";
}

static clv_status greet(clv_ranks *ranks, int other) {
    clv__hello mine = {.magic = CLV__HELLO_MAGIC, .rank = (uint32_t)ranks->place.rank}, theirs = {0};
    clv__message messages[2];
    char why[CLV__TRANSPORT_WHY];
    snprintf(mine.version, sizeof mine.version, "%s", clv_version());
    CLV_TRY(clv__ranks_send(ranks, other, CLV__TAG_CONTROL, &mine, sizeof mine, &messages[0]));
    CLV_TRY(clv__ranks_receive(ranks, other, CLV__TAG_CONTROL, &theirs, sizeof theirs, &messages[1]));
    CLV_TRY(clv__ranks_await(ranks, messages, 2, NULL));
    const char *fault = clv__hello_fault(&theirs, messages[1].bytes, other);
    if (!fault) return CLV_OK;
    snprintf(why, sizeof why, "%s (%s; here %s); install one version on all machines", fault, theirs.version,
             mine.version);
    return broken(ranks, other, theirs.magic == mine.magic ? why : fault);
}

clv_status clv__ranks_greet(clv_ranks *ranks) {
    if (ranks->place.rank != 0) return greet(ranks, 0);
    for (int other = 1; other < ranks->place.size; other++) CLV_TRY(greet(ranks, other));
    return CLV_OK;
}

clv_status clv__ranks_open(clv_runtime *runtime, const clv__transport *engine, void *what, double patience,
                           clv_ranks **out) {
    char why[CLV__TRANSPORT_WHY];
    clv_ranks *ranks = clv__alloc(1, sizeof *ranks);
    *out = NULL;
    if (!ranks) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no host memory for ranks");
    ranks->runtime = runtime;
    ranks->engine = engine;
    ranks->patience = patience > 0 ? patience : 5;
    ranks->lost = -1;
    ranks->saving = ranks->saved = -1;
    pthread_mutex_init(&ranks->lock, NULL);
    if (engine->open(what, JOIN * ranks->patience, &ranks->place, &ranks->self, why) != 0) {
        clv__error_set(error_of(ranks), CLV_E_STATE, "no ranks: %s", why);
        pthread_mutex_destroy(&ranks->lock);
        free(ranks);
        return CLV_E_STATE;
    }
    clv_status status = clv__beats_begin(ranks);
    if (status == CLV_OK) status = clv__ranks_greet(ranks);
    if (status == CLV_OK) status = clv__elsewhere_list(ranks);
    if (status != CLV_OK) {
        clv__beats_tell(ranks);
        clv_ranks_destroy(ranks);
        return status;
    }
    *out = ranks;
    return CLV_OK;
}

#ifndef CLEAVE_NO_ENGINES
/** A library of that name in the folder of this one, in those beside it, or where the system looks. */
static void *open_beside(const char *name) {
    static const char *const folders[] = {"", "../lib/", "backends/", NULL};
    char path[4352];
    Dl_info own;
    void *found = NULL;
    const char *end = dladdr((const void *)&clv__transport_loopback, &own) && own.dli_fname
                          ? strrchr(own.dli_fname, '/')
                          : NULL;
    for (int i = 0; end && folders[i] && !found; i++) {
        snprintf(path, sizeof path, "%.*s/%s%s", (int)(end - own.dli_fname), own.dli_fname, folders[i], name);
        found = dlopen(path, RTLD_NOW | RTLD_GLOBAL); // MPI's own parts look for its symbols
    }
    return found ? found : dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}
#endif

static clv_status find_engine(clv__error *error, const char *name, const clv__transport **out) {
    if (strcmp(name, "mpi") != 0) {
        CLV_FAIL(error, CLV_E_NOT_FOUND, "there is no engine '%s' for ranks: it is mpi", name);
    }
#ifdef CLEAVE_NO_ENGINES
    (void)out;
    CLV_FAIL(error, CLV_E_NOT_FOUND, "a static program cannot open MPI: build Cleave without CLEAVE_STATIC");
#else
    const char *given = getenv("CLEAVE_MPI_LIBRARY");
    void *library = given && *given ? dlopen(given, RTLD_NOW | RTLD_GLOBAL) : open_beside("libcleave_mpi.so");
    if (!library)
        CLV_FAIL(
            error, CLV_E_NOT_FOUND,
            "ranks need libcleave_mpi.so, which is built where MPI is installed (Debian: libopenmpi-dev or "
            "libmpich-dev; -DCLEAVE_MPI=ON): %s",
            dlerror());
    *out = dlsym(library, CLV__TRANSPORT_SYMBOL);
    if (!*out || (*out)->version != CLV__TRANSPORT_VERSION)
        CLV_FAIL(error, CLV_E_NOT_FOUND,
                 "libcleave_mpi.so is of another version of Cleave: install it again");
    return CLV_OK;
#endif
}

/** Without an engine: nobody is there. */
static clv_status plan_ranks(clv_runtime *runtime, const clv_ranks_config *config, clv_ranks **out) {
    clv__error *error = clv__runtime_error_of(runtime);
    if (config->planned < 1 || config->rank < 0 || config->rank >= config->planned)
        CLV_FAIL(error, CLV_E_VALUE, "rank %d of %d cannot be planned", config->rank, config->planned);
    clv_ranks *ranks = clv__alloc(1, sizeof *ranks);
    if (!ranks) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for ranks");
    ranks->runtime = runtime;
    ranks->place = (clv__transport_place){.rank = config->rank, .size = config->planned};
    pthread_mutex_init(&ranks->lock, NULL);
    const clv_status status = clv__elsewhere_list(ranks);
    if (status == CLV_OK)
        *out = ranks;
    else
        clv_ranks_destroy(ranks);
    return status;
}

clv_status clv_ranks_create(clv_runtime *runtime, const clv_ranks_config *config, clv_ranks **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    const clv_ranks_config own = config ? *config : (clv_ranks_config){0};
    const clv__transport *engine = NULL;
    *out = NULL;
    if (own.planned) return plan_ranks(runtime, &own, out);
    CLV_TRY(find_engine(clv__runtime_error_of(runtime), own.engine ? own.engine : "mpi", &engine));
    return clv__ranks_open(runtime, engine, NULL, own.patience, out);
}

void clv_ranks_destroy(clv_ranks *ranks) {
    if (!ranks) return;
    const bool over = atomic_load(&ranks->is_over), orderly = clv__beats_end(ranks, !over) && !over;
    if (ranks->engine) ranks->engine->close(ranks->self, orderly && !ranks->times_lost);
    if (!orderly) { // messages may be under way that point into it
        clv__leave(ranks);
        return;
    }
    pthread_mutex_destroy(&ranks->lock);
    free(ranks->shares);
    free(ranks->engine_rank);
    free(ranks);
}

clv_ranks_info clv_ranks_info_get(const clv_ranks *ranks) {
    clv_ranks *own = (clv_ranks *)(uintptr_t)ranks; // its lock
    pthread_mutex_lock(&own->lock);
    const clv_ranks_info info = {.rank = ranks->place.rank,
                                 .size = ranks->place.size,
                                 .local = ranks->place.local,
                                 .sent_bytes = atomic_load(&ranks->sent_bytes),
                                 .lost = ranks->over || ranks->refused ? ranks->sentence : NULL,
                                 .tells = (ranks->over || ranks->refused) && ranks->first_to_tell};
    pthread_mutex_unlock(&own->lock);
    return info;
}
