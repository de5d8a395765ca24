// SPDX-License-Identifier: Apache-2.0
// Layers on devices of several ranks. All ranks make the same plan of the whole batch. A device of another
// rank is a null device there, with its owner's limits: nothing is computed on it, and what would be carried
// between it and a device of this rank is a message. Who sends does not wait: a thread begins messages when
// their values lie in staging memory. Who receives waits, as it does for a device of this process, and all
// ranks walk the plan's one order, so somebody can always go on.
#include "exec/elsewhere.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "device/select.h"
#include "exec/exchange.h"
#include "exec/ranks.h"
#include "exec/session.h"

enum { VALUE = 2 };         // clv__exchange_head.phase, beside those of an exchange
enum { MOST_DEVICES = 64 }; // of a rank

// ---- which devices there are ------------------------------------------------------------------------------

/** A device as its rank tells of it. */
typedef struct told {
    char name[24], label[64];
    clv_device_info info; // its pointers mean nothing to others
} told;
typedef struct told_list {
    uint64_t n;
    told items[MOST_DEVICES];
} told_list;

static void tell_own(const clv_runtime *runtime, told_list *list) {
    memset(list, 0, sizeof *list);
    for (size_t i = 0; i < runtime->n_devices && list->n < MOST_DEVICES; i++) {
        const clv_device *device = runtime->devices[i];
        if (device->elsewhere || !device->info.usable) continue;
        told *to = &list->items[list->n++];
        to->info = device->info;
        snprintf(to->name, sizeof to->name, "%s", device->info.name);
        snprintf(to->label, sizeof to->label, "%s", device->info.label);
    }
}

static clv_status add_devices(clv_runtime *runtime, int rank, told_list *list) {
    for (uint64_t i = 0; i < list->n && i < MOST_DEVICES; i++) {
        told *of = &list->items[i];
        of->name[sizeof of->name - 1] = of->label[sizeof of->label - 1] = 0;
        of->info.name = of->name;
        of->info.label = of->label;
        const uint32_t alignment = of->info.alignment_bytes;
        if (alignment & (alignment - 1) || !of->info.max_work_group || !*of->name)
            CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_FORMAT,
                     "rank %d reports a device that is not possible", rank);
        CLV_TRY(clv__device_add_elsewhere(runtime, rank, &of->info));
    }
    return CLV_OK;
}

static clv_status receive(clv_ranks *ranks, int from, void *data, size_t bytes) {
    clv__message message;
    CLV_TRY(clv__ranks_receive(ranks, from, CLV__TAG_CONTROL, data, bytes, &message));
    CLV_TRY(clv__ranks_await(ranks, &message, 1, NULL));
    if (message.bytes == bytes) return CLV_OK;
    clv__ranks_end(ranks, true, "a rank is of another build of Cleave: install one version on all machines");
    return clv__ranks_status(ranks);
}

static clv_status send(clv_ranks *ranks, int to, const void *data, size_t bytes) {
    clv__message message;
    CLV_TRY(clv__ranks_send(ranks, to, CLV__TAG_CONTROL, data, bytes, &message));
    return clv__ranks_await(ranks, &message, 1, NULL);
}

/** Rank 0 hears of all, and tells all. */
static clv_status swap_lists(clv_ranks *ranks, told_list *own, told_list *list) {
    const int size = ranks->place.size, rank = ranks->place.rank;
    for (int of = 0; of < size; of++) {
        *list = *own;
        if (rank == of && of) CLV_TRY(send(ranks, 0, own, sizeof *own));
        if (rank == 0 && of) CLV_TRY(receive(ranks, of, list, sizeof *list));
        CLV_TRY(clv__ranks_agree(ranks, list, sizeof *list));
        if (rank != of) CLV_TRY(add_devices(ranks->runtime, of, list));
    }
    return CLV_OK;
}

clv_status clv__elsewhere_list(clv_ranks *ranks) {
    told_list *lists = clv__alloc(2, sizeof *lists);
    clv_status status = CLV_OK;
    if (!lists)
        CLV_FAIL(clv__runtime_error_of(ranks->runtime), CLV_E_HOST_MEMORY, "no host memory for ranks");
    tell_own(ranks->runtime, &lists[0]);
    if (ranks->engine) ranks->runtime->rank = ranks->place.rank;
    if (ranks->engine)
        status = swap_lists(ranks, &lists[0], &lists[1]);
    else
        for (int r = 1; status == CLV_OK && r < ranks->place.size; r++) // all are planned from rank 0
            status = add_devices(ranks->runtime, r, &lists[0]);
    free(lists);
    return status;
}

// ---- what is carried --------------------------------------------------------------------------------------

static const clv_device *device_of(const clv_plan *plan, int value) {
    return plan->places[plan->values[value].place].device;
}

static int rank_of(const clv_device *device) {
    return device->elsewhere ? device->rank : device->runtime->rank;
}

bool clv__elsewhere_sends(const clv_run *run, int transfer) {
    const clv__transfer *at = &run->plan->transfers[transfer];
    return !at->exchanged && !device_of(run->plan, at->from)->elsewhere &&
           device_of(run->plan, at->to)->elsewhere;
}

bool clv__elsewhere_receives(const clv_run *run, int transfer) {
    const clv__transfer *at = &run->plan->transfers[transfer];
    return !at->exchanged && device_of(run->plan, at->from)->elsewhere &&
           !device_of(run->plan, at->to)->elsewhere;
}

/** Bytes of values that the devices of a rank send to those of others in a step, heads included. */
static int64_t elsewhere_bytes(const clv_plan *plan, int rank) {
    int64_t bytes = 0;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *at = &plan->transfers[i];
        if (at->exchanged || at->to < 0 || rank_of(device_of(plan, at->from)) != rank ||
            rank_of(device_of(plan, at->to)) == rank)
            continue;
        bytes += (int64_t)(at->bytes + sizeof(clv__exchange_head));
    }
    return bytes;
}

int64_t clv_ranks_step_bytes(const clv_ranks *ranks, const clv_plan *plan) {
    return clv__exchange_bytes(plan, ranks->place.rank, ranks->place.size, 0) +
           elsewhere_bytes(plan, ranks->place.rank);
}

// ---- a run ------------------------------------------------------------------------------------------------

/** A value on its way to another rank: a head, and what lies in staging memory. */
typedef struct letter {
    bool busy;
    int transfer;
    int64_t ticket;
    clv_device *device; // of which it comes
    const char *staged;
    clv__bevent *event;
    clv__exchange_head head;
    clv__message messages[2];
    struct letter *next; // of those that are posted, or on their way
} letter;

struct clv__between {
    clv_run *run;
    clv_ranks *ranks;
    uint64_t digest;
    letter *letters;      // [slot][transfer]
    letter *first, *last; // posted
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, failed;
    atomic_bool stop;
};

static letter *letter_of(const clv__between *between, int slot, int transfer) {
    return &between->letters[(size_t)slot * between->run->plan->n_transfers + (size_t)transfer];
}

static clv__exchange_head head_for(const clv__between *between, int rank, int transfer, int64_t ticket) {
    return (clv__exchange_head){.magic = CLV__EXCHANGE_MAGIC,
                                .phase = VALUE,
                                .rank = rank,
                                .bucket = transfer,
                                .ticket = ticket,
                                .digest = between->digest,
                                .bytes = between->run->plan->transfers[transfer].bytes};
}

/** Wait for the value, and begin its messages. */
static clv_status post(clv__between *between, letter *at) {
    const clv_plan *plan = between->run->plan;
    const clv__transfer *transfer = &plan->transfers[at->transfer];
    clv_ranks *ranks = between->ranks;
    const int to = device_of(plan, transfer->to)->rank;
    clv_device *device = at->device;
    clv_status status = at->event ? clv__device_wait(device, at->event, clv__plan_error(plan)) : CLV_OK;
    device->backend->event_destroy(at->event);
    at->event = NULL;
    if (status != CLV_OK) {
        clv__run_fail(between->run, at->ticket, device, status);
        return status;
    }
    at->head = head_for(between, ranks->place.rank, at->transfer, at->ticket);
    CLV_TRY(clv__ranks_send(ranks, to, CLV__TAG_VALUES + at->transfer, &at->head, sizeof at->head,
                            &at->messages[0]));
    if (!transfer->bytes) return CLV_OK;
    return clv__ranks_send(ranks, to, CLV__TAG_VALUES + at->transfer, at->staged, transfer->bytes,
                           &at->messages[1]);
}

/** Which of those on their way have left. False: a message failed, and so everything has. */
static bool look(clv__between *between, letter **on_way) {
    for (letter **link = on_way; *link;) {
        letter *at = *link;
        bool over;
        if (clv__ranks_test(between->ranks, at->messages, 2, &over) != CLV_OK) return false;
        if (!over) {
            link = &at->next;
            continue;
        }
        *link = at->next;
        pthread_mutex_lock(&between->lock);
        at->busy = false;
        pthread_cond_broadcast(&between->changed);
        pthread_mutex_unlock(&between->lock);
    }
    return true;
}

static letter *take_posted(clv__between *between, bool may_wait) {
    pthread_mutex_lock(&between->lock);
    while (!between->first && may_wait && !atomic_load(&between->stop))
        pthread_cond_wait(&between->changed, &between->lock);
    letter *at = between->first;
    if (at) between->first = at->next;
    if (!between->first) between->last = NULL;
    pthread_mutex_unlock(&between->lock);
    return at;
}

static void *run_thread(void *user) {
    clv__between *between = user;
    letter *on_way = NULL;
    bool fine = true;
    for (int looks = 0; fine; looks++) {
        letter *at = take_posted(between, !on_way);
        if (!at && !on_way) break; // it is to stop
        if (at) {
            fine = post(between, at) == CLV_OK;
            at->next = on_way;
            on_way = at;
            looks = 0;
        }
        fine = fine && look(between, &on_way);
        if (!at && on_way) clv__ranks_pause(looks);
        if (atomic_load(&between->ranks->is_over)) fine = false;
    }
    pthread_mutex_lock(&between->lock);
    between->failed = !fine;
    pthread_cond_broadcast(&between->changed);
    pthread_mutex_unlock(&between->lock);
    return NULL;
}

clv_status clv__between_free(clv__between *between, int slot, int transfer) {
    const letter *at = letter_of(between, slot, transfer);
    pthread_mutex_lock(&between->lock);
    while (at->busy && !between->failed) pthread_cond_wait(&between->changed, &between->lock);
    const bool gone = !at->busy;
    pthread_mutex_unlock(&between->lock);
    if (gone) return CLV_OK;
    CLV_TRY(clv__run_status(between->run, INT64_MAX));
    return clv__ranks_status(between->ranks);
}

void clv__between_settle(clv__between *between) {
    if (!between) return;
    pthread_mutex_lock(&between->lock);
    for (size_t i = 0; i < CLV__SLOTS * between->run->plan->n_transfers; i++)
        while (between->letters[i].busy && !between->failed)
            pthread_cond_wait(&between->changed, &between->lock);
    pthread_mutex_unlock(&between->lock);
}

void clv__between_post(clv__between *between, const clv__executor *executor, int slot, int transfer,
                       const char *staged, clv__bevent *event) {
    letter *at = letter_of(between, slot, transfer);
    pthread_mutex_lock(&between->lock);
    *at = (letter){.busy = true,
                   .transfer = transfer,
                   .ticket = executor->steps[slot].ticket,
                   .device = executor->device,
                   .staged = staged,
                   .event = event};
    if (between->last)
        between->last->next = at;
    else
        between->first = at;
    between->last = at;
    pthread_cond_broadcast(&between->changed);
    pthread_mutex_unlock(&between->lock);
}

/** A message that is none of this transfer's ends all ranks. */
static clv_status refuse(const clv__between *between, int from, const char *fault) {
    char sentence[400];
    snprintf(sentence, sizeof sentence, "a message of rank %d in step %lld %s", from,
             (long long)atomic_load(&between->ranks->step) + 1, fault);
    clv__ranks_end(between->ranks, true, sentence);
    return clv__ranks_status(between->ranks);
}

clv_status clv__between_await(clv__between *between, const clv__executor *executor, int slot, int transfer,
                              char *staged) {
    const clv_plan *plan = between->run->plan;
    const clv__transfer *at = &plan->transfers[transfer];
    clv_ranks *ranks = between->ranks;
    const int from = device_of(plan, at->from)->rank, tag = CLV__TAG_VALUES + transfer;
    clv__exchange_head came = {0};
    clv__message message;
    CLV_TRY(clv__ranks_receive(ranks, from, tag, &came, sizeof came, &message));
    CLV_TRY(clv__ranks_await(ranks, &message, 1, NULL));
    const clv__exchange_head wanted = head_for(between, from, transfer, executor->steps[slot].ticket);
    const char *fault = clv__exchange_fault(&wanted, &came, message.bytes + at->bytes);
    if (fault) return refuse(between, from, fault);
    if (!at->bytes) return CLV_OK;
    CLV_TRY(clv__ranks_receive(ranks, from, tag, staged, at->bytes, &message));
    CLV_TRY(clv__ranks_await(ranks, &message, 1, NULL));
    return message.bytes == at->bytes ? CLV_OK : refuse(between, from, "is cut");
}

// ---- making and unmaking ----------------------------------------------------------------------------------

/** What all ranks must have planned alike. */
static uint64_t digest_of(const clv_plan *plan) {
    uint64_t digest = 0;
    for (size_t i = 0; i < plan->n_transfers; i++) {
        const clv__transfer *at = &plan->transfers[i];
        const uint64_t alike[] = {at->bytes, (uint64_t)rank_of(device_of(plan, at->from)),
                                  at->exchanged != NULL};
        digest = XXH3_64bits_withSeed(alike, sizeof alike, digest);
    }
    return digest;
}

clv_status clv__between_create(clv_run *run, clv__between **out) {
    *out = NULL;
    if (!clv__plan_elsewhere(run->plan)) return CLV_OK;
    clv__error *error = clv__plan_error(run->plan);
    if (!run->session->ranks || !run->session->ranks->engine)
        CLV_FAIL(error, CLV_E_STATE,
                 "layers are on devices of other ranks, and the session has none (clv_train_config.ranks)");
    clv__between *between = clv__alloc(1, sizeof *between);
    if (between)
        between->letters = clv__alloc(CLV__SLOTS * run->plan->n_transfers + 1, sizeof *between->letters);
    if (!between || !between->letters) {
        free(between);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a run");
    }
    between->run = run;
    between->ranks = run->session->ranks;
    between->digest = digest_of(run->plan);
    pthread_mutex_init(&between->lock, NULL);
    pthread_cond_init(&between->changed, NULL);
    between->started = pthread_create(&between->thread, NULL, run_thread, between) == 0;
    *out = between;
    if (!between->started) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no thread could be started for a run");
    return CLV_OK;
}

void clv__between_destroy(clv__between *between) {
    if (!between) return;
    pthread_mutex_lock(&between->lock);
    atomic_store(&between->stop, true);
    pthread_cond_broadcast(&between->changed);
    pthread_mutex_unlock(&between->lock);
    if (between->started) pthread_join(between->thread, NULL);
    for (size_t i = 0; i < CLV__SLOTS * between->run->plan->n_transfers; i++)
        if (between->letters[i].event)
            between->letters[i].device->backend->event_destroy(between->letters[i].event);
    if (atomic_load(&between->ranks->is_over)) // messages that were begun may be looked at still
        clv__leave(between->letters);
    else
        free(between->letters);
    pthread_cond_destroy(&between->changed);
    pthread_mutex_destroy(&between->lock);
    free(between);
}
