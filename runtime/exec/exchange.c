// SPDX-License-Identifier: Apache-2.0
// Sums over ranks. Values lie in the order in which the plan sends them, several to a bucket. Of each value
// rank r owns an r-th part: it receives that part from all others, adds in the order of ranks, and sends the
// sum to all. So 2 (N-1)/N of the bytes leave a rank, and the additions are the same ones, in the same order,
// on every engine. A thread does this, bucket by bucket, as soon as a bucket's values are there: in staging
// memory, or, on a device that computes in the host's memory, where the device has them.
//
// A message is a head and the parts of a bucket's values behind each other. On the wire it is cut: a large
// part is a message of its own, which is sent from where the device has it, and a large sum comes to there.
#include "exec/exchange.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "exec/ranks.h"
#include "exec/session.h"
#include "tensor/half.h"

enum { BUCKET_BYTES = 1 << 18, ALONE_BYTES = 1 << 14, MAGIC = CLV__EXCHANGE_MAGIC };
enum { PARTS, SUMS }; // what a message holds

typedef clv__exchange_head head;

/** A value that is exchanged. */
typedef struct item {
    int transfer, place, bucket;
    int64_t n; // elements
    const clv__exchanged *how;
    // by slot; under the lock:
    int64_t posted[CLV__SLOTS], arrived[CLV__SLOTS]; // tickets, -1: none
    clv__bevent *event[CLV__SLOTS];
    char *staged[CLV__SLOTS]; // where the whole lies
    clv__pages *block;        // device memory that it lies in; NULL: staging memory
} item;

/** A message as it is cut. */
typedef struct cut {
    char *at;
    size_t bytes;
} cut;

struct clv__exchange {
    clv_run *run;
    struct clv_ranks *ranks;
    item *items; // in the order of their SENDs
    int n, n_buckets;
    int *item_of; // by transfer; -1: it is not exchanged
    uint64_t digest;
    size_t room;            // of a message, with its head
    char *sent, *came;      // a message for, and from, each rank
    cut *cuts;              // of one message
    clv__message *messages; // of all that are under way at once
    size_t n_cuts;          // of a message, at most
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool stop;
    atomic_llong stop_seen; // one more than the step in which a wish to stop was heard first; 0: not yet
    clv_status status;      // of the first exchange that failed, and its sentence
    char sentence[CLV__ERROR_BYTES];
};

static clv__error *error_of(const clv__exchange *exchange) {
    return clv__plan_error(exchange->run->plan);
}

/** Does the value take part when parts are handed out to be added, and when sums, or parts, are handed to
 *  all? */
static bool takes_part(const item *at, uint32_t phase) {
    return at->how->kind != (phase == PARTS ? CLV__EXCHANGE_GATHER : CLV__EXCHANGE_SCATTER);
}

/** Where a rank's part of a value begins, in elements. What is summed up whole may be cut anywhere. */
static int64_t part_begin(const item *at, int rank, int size) {
    return at->how->kind == CLV__EXCHANGE_SUM ? at->n / size * rank + at->n % size * rank / size
                                              : clv__part_begin(at->n, rank, size);
}

static int64_t part_length(const item *at, int rank, int size) {
    return part_begin(at, rank + 1, size) - part_begin(at, rank, size);
}

/** Bytes of n elements of a value in a message: words, of two bf16 each. */
static size_t sent_bytes(const item *at, int64_t n) {
    return at->how->bf16 ? (size_t)((n + 1) / 2) * sizeof(uint32_t) : (size_t)n * sizeof(float);
}

// ---- a bucket ---------------------------------------------------------------------------------------------

typedef struct bucket {
    clv__exchange *exchange;
    int number, slot;
    int64_t ticket;
    item *items;
    int n;
} bucket;

static head *head_of(char *message) {
    return (head *)(void *)message;
}

static char *message_of(const clv__exchange *exchange, char *all, int rank) {
    return all + (size_t)rank * exchange->room;
}

static float *part_of(const bucket *b, const item *at, int rank) {
    return (float *)(void *)at->staged[b->slot] + part_begin(at, rank, b->exchange->ranks->place.size);
}

/** Bytes of a rank's parts of the values that take part. */
static size_t part_bytes(const bucket *b, int rank, uint32_t phase) {
    size_t bytes = 0;
    for (int i = 0; i < b->n; i++)
        if (takes_part(&b->items[i], phase))
            bytes +=
                sent_bytes(&b->items[i], part_length(&b->items[i], rank, b->exchange->ranks->place.size));
    return bytes;
}

static head head_for(const bucket *b, uint32_t phase, uint64_t bytes, bool stop) {
    return (head){.magic = MAGIC,
                  .phase = phase,
                  .rank = b->exchange->ranks->place.rank,
                  .bucket = b->number,
                  .ticket = b->ticket,
                  .digest = b->exchange->digest,
                  .bytes = bytes,
                  .stop = stop};
}

/** Is a part a message of its own, from or to where it lies? */
static bool goes_alone(const item *at, size_t bytes) {
    return bytes >= ALONE_BYTES && !at->how->bf16;
}

/** Cut the message of a rank's parts. in_place: what goes alone is where the device has it, if the host
 *  reaches that, and not in the message. */
static size_t cut_message(const bucket *b, int rank, uint32_t phase, char *message, bool in_place) {
    cut *cuts = b->exchange->cuts;
    size_t n = 1;
    bool open = true; // the last one may grow
    cuts[0] = (cut){message, sizeof(head)};
    char *at = message + sizeof(head);
    for (int i = 0; i < b->n; i++) {
        if (!takes_part(&b->items[i], phase)) continue;
        const size_t bytes =
            sent_bytes(&b->items[i], part_length(&b->items[i], rank, b->exchange->ranks->place.size));
        const bool alone = goes_alone(&b->items[i], bytes);
        if (alone)
            cuts[n++] =
                (cut){in_place && b->items[i].block ? (char *)part_of(b, &b->items[i], rank) : at, bytes};
        else if (open)
            cuts[n - 1].bytes += bytes;
        else if (bytes)
            cuts[n++] = (cut){at, bytes};
        open = alone ? false : open || bytes;
        at += bytes;
    }
    return n;
}

/** Copy parts of a rank from the values into a message, or back, but for those that are sent from where they
 *  lie. */
static void carry(const bucket *b, int rank, uint32_t phase, char *message, bool back) {
    char *at = message + sizeof(head);
    for (int i = 0; i < b->n; i++) {
        const int64_t n = part_length(&b->items[i], rank, b->exchange->ranks->place.size);
        if (!n || !takes_part(&b->items[i], phase)) continue;
        float *values = part_of(b, &b->items[i], rank);
        uint16_t *halves = (uint16_t *)(void *)at;
        const size_t bytes = sent_bytes(&b->items[i], n);
        if (b->items[i].block && goes_alone(&b->items[i], bytes)) {
            at += bytes;
            continue;
        }
        if (b->items[i].how->bf16)
            for (int64_t e = 0; e < n; e++)
                if (back)
                    values[e] = clv__bf16_to_float(halves[e]);
                else
                    halves[e] = clv__bf16_of_float(values[e]);
        else
            memcpy(back ? (char *)values : at, back ? at : (char *)values, bytes);
        at += bytes;
    }
}

const char *clv__exchange_fault(const clv__exchange_head *wanted, const void *message, size_t came) {
    head is;
    if (came < sizeof is) return "does not belong to an exchange";
    memcpy(&is, message, sizeof is);
    if (is.magic != wanted->magic || is.phase != wanted->phase || is.rank != wanted->rank)
        return "does not belong to an exchange";
    if (is.digest != wanted->digest) return "is of another model, or of other settings";
    if (is.ticket != wanted->ticket || is.bucket != wanted->bucket) return "is of another step";
    if (is.bytes != wanted->bytes || came != sizeof is + wanted->bytes) return "is cut";
    return NULL;
}

static clv_status check_message(const bucket *b, int from, uint32_t phase, size_t came) {
    clv__exchange *exchange = b->exchange;
    const int owner = phase == PARTS ? exchange->ranks->place.rank : from;
    head wanted = head_for(b, phase, part_bytes(b, owner, phase), false);
    char sentence[400];
    wanted.rank = from;
    const char *fault = clv__exchange_fault(&wanted, message_of(exchange, exchange->came, from), came);
    if (!fault) return CLV_OK;
    snprintf(sentence, sizeof sentence, "a message of rank %d in step %lld %s", from,
             (long long)atomic_load(&exchange->ranks->step) + 1, fault);
    clv__ranks_end(exchange->ranks, true, sentence);
    return clv__ranks_status(exchange->ranks);
}

/** The messages from a rank, or to it, one for each cut. */
static clv__message *messages_of(const clv__exchange *exchange, bool receives, int other) {
    const size_t size = (size_t)exchange->ranks->place.size;
    return exchange->messages + ((receives ? 0 : size) + (size_t)other) * exchange->n_cuts;
}

/** Begin messages from or to a rank: the first, which has the head, or the others behind it. */
static clv_status begin(const bucket *b, uint32_t phase, bool receives, int other, bool first) {
    clv__exchange *exchange = b->exchange;
    const int owner = receives == (phase == PARTS) ? exchange->ranks->place.rank : other;
    char *message =
        receives ? message_of(exchange, exchange->came, other) : message_of(exchange, exchange->sent, owner);
    const size_t n = cut_message(b, owner, phase, message, !receives || phase == SUMS);
    clv__message *out = messages_of(exchange, receives, other);
    for (size_t i = !first; i < (first ? 1 : n); i++) {
        const cut *at = &exchange->cuts[i];
        CLV_TRY(
            receives
                ? clv__ranks_receive(exchange->ranks, other, CLV__TAG_EXCHANGE, at->at, at->bytes, &out[i])
                : clv__ranks_send(exchange->ranks, other, CLV__TAG_EXCHANGE, at->at, at->bytes, &out[i]));
    }
    return CLV_OK;
}

/** Wait until the first messages of all have come, and begin to receive what is behind those that are right:
 *  nothing else is written to where values lie. */
static clv_status receive_behind(const bucket *b, uint32_t phase) {
    clv__exchange *exchange = b->exchange;
    for (int other = 0; other < exchange->ranks->place.size; other++) {
        if (other == exchange->ranks->place.rank) continue;
        clv__message *first = messages_of(exchange, true, other);
        const size_t asked = first->bytes;
        CLV_TRY(clv__ranks_await(exchange->ranks, first, 1, &exchange->stop));
        const int owner = phase == PARTS ? exchange->ranks->place.rank : other;
        const size_t behind = sizeof(head) + part_bytes(b, owner, phase) - asked;
        CLV_TRY(check_message(b, other, phase, first->bytes + behind));
        CLV_TRY(begin(b, phase, true, other, false));
    }
    return CLV_OK;
}

/** Receive from every other rank, and send to it; wait. */
static clv_status swap(const bucket *b, uint32_t phase) {
    clv__exchange *exchange = b->exchange;
    struct clv_ranks *ranks = exchange->ranks;
    const int size = ranks->place.size, rank = ranks->place.rank;
    const size_t all = 2 * (size_t)size * exchange->n_cuts;
    memset(exchange->messages, 0, all * sizeof *exchange->messages);
    for (int other = 0; other < size; other++)
        if (other != rank) CLV_TRY(begin(b, phase, true, other, true));
    for (int i = 1; i < size; i++) { // each begins with the next one, so that not all send to one
        CLV_TRY(begin(b, phase, false, (rank + i) % size, true));
        CLV_TRY(begin(b, phase, false, (rank + i) % size, false));
    }
    CLV_TRY(receive_behind(b, phase));
    CLV_TRY(clv__ranks_await(ranks, exchange->messages, (int)all, &exchange->stop));
    for (int other = 0; other < size; other++) {
        const clv__message *in = messages_of(exchange, true, other);
        size_t came = 0;
        for (size_t i = 0; i < exchange->n_cuts; i++) came += in[i].bytes;
        if (other != rank) CLV_TRY(check_message(b, other, phase, came));
    }
    return CLV_OK;
}

enum { BLOCK = 1024 }; // of elements, which stays in the cache while it is added up

/** A whole block has a length that the compiler knows, and so takes vectors. */
static void add_block(float *restrict block, const float *restrict term, int64_t length) {
    if (length == BLOCK)
        for (int e = 0; e < BLOCK; e++) block[e] += term[e];
    else
        for (int64_t e = 0; e < length; e++) block[e] += term[e];
}

/** The sum of n elements of every rank's term, this rank's own being where the sum will lie. */
static void add_terms(const bucket *b, const item *value, float *sum, int64_t n, size_t at) {
    clv__exchange *exchange = b->exchange;
    const int rank = exchange->ranks->place.rank, terms = value->how->terms;
    for (int64_t begin = 0; begin < n; begin += BLOCK) {
        const int64_t length = n - begin < BLOCK ? n - begin : BLOCK;
        float block[BLOCK];
        for (int k = 0; k < terms; k++) {
            const int of = value->how->from_last ? terms - 1 - k : k;
            const char *message = message_of(exchange, exchange->came, of) + at;
            const float *term = (of == rank ? sum : (const float *)(const void *)message) + begin;
            float unpacked[BLOCK];
            if (value->how->bf16) {
                const uint16_t *halves = (const uint16_t *)(const void *)message + begin;
                for (int64_t e = 0; e < length; e++)
                    unpacked[e] = of == rank ? clv__bf16_to_float(clv__bf16_of_float(term[e]))
                                             : clv__bf16_to_float(halves[e]);
                term = unpacked;
            }
            if (k == 0)
                memcpy(block, term, (size_t)length * sizeof *block);
            else
                add_block(block, term, length);
        }
        for (int64_t e = 0; value->how->bf16 && e < length; e++) // as the others have it
            block[e] = clv__bf16_to_float(clv__bf16_of_float(block[e]));
        memcpy(sum + begin, block, (size_t)length * sizeof *block);
    }
}

/** The sum of this rank's parts, in the order that each value asks for, into the values. */
static void add_up(const bucket *b) {
    const int size = b->exchange->ranks->place.size, rank = b->exchange->ranks->place.rank;
    size_t at = sizeof(head);
    for (int i = 0; i < b->n; i++) {
        const item *value = &b->items[i];
        const int64_t n = takes_part(value, PARTS) ? part_length(value, rank, size) : 0;
        add_terms(b, value, part_of(b, value, rank), n, at);
        at += sent_bytes(value, n);
    }
}

/** One of the two phases: every rank hears every other, so all know the same of who wants to stop. */
static clv_status do_phase(const bucket *b, uint32_t phase, bool stops, bool *stop) {
    clv__exchange *exchange = b->exchange;
    const int size = exchange->ranks->place.size, rank = exchange->ranks->place.rank;
    for (int other = 0; other < size; other++) { // parts are for their owners, sums for all
        if ((other == rank) != (phase == SUMS)) continue;
        char *message = message_of(exchange, exchange->sent, other);
        *head_of(message) = head_for(b, phase, part_bytes(b, other, phase), stops);
        carry(b, other, phase, message, false);
    }
    CLV_TRY(swap(b, phase));
    for (int other = 0; other < size; other++)
        *stop |= other == rank ? stops : head_of(message_of(exchange, exchange->came, other))->stop != 0;
    if (phase == PARTS) add_up(b);
    for (int other = 0; phase == SUMS && other < size; other++)
        if (other != rank) carry(b, other, phase, message_of(exchange, exchange->came, other), true);
    return CLV_OK;
}

static clv_status exchange_bucket(const bucket *b, bool *stop) {
    struct clv_ranks *ranks = b->exchange->ranks;
    const bool stops = atomic_load(&ranks->wants_stop);
    bool any[2] = {false, false};
    if (ranks->place.size == 1) *stop |= stops;
    for (int i = 0; i < b->n && ranks->place.size > 1; i++) {
        any[PARTS] |= takes_part(&b->items[i], PARTS);
        any[SUMS] |= takes_part(&b->items[i], SUMS);
    }
    if (any[PARTS]) CLV_TRY(do_phase(b, PARTS, stops, stop));
    return any[SUMS] ? do_phase(b, SUMS, stops, stop) : CLV_OK;
}

// ---- the thread -------------------------------------------------------------------------------------------

/** Does another value of the bucket come later by the same queue? Then its event tells of this one too. */
static bool is_followed(const bucket *b, const item *at) {
    for (const item *later = at + 1; later < b->items + b->n; later++)
        if (later->place == at->place && !later->block == !at->block && later->event[b->slot]) return true;
    return false;
}

/** Wait until all values of a bucket were posted. */
static clv_status await_posts(const bucket *b) {
    clv__exchange *exchange = b->exchange;
    bool all = true;
    pthread_mutex_lock(&exchange->lock);
    for (int i = 0; all && i < b->n; i++) {
        while (b->items[i].posted[b->slot] != b->ticket && !atomic_load(&exchange->stop))
            pthread_cond_wait(&exchange->changed, &exchange->lock);
        all = b->items[i].posted[b->slot] == b->ticket;
    }
    pthread_mutex_unlock(&exchange->lock);
    return all ? CLV_OK : CLV_E_INTERRUPTED;
}

/** Wait until all values of a bucket were posted, and are there. */
static clv_status gather(const bucket *b) {
    clv__exchange *exchange = b->exchange;
    CLV_TRY(await_posts(b));
    for (int i = 0; i < b->n; i++) {
        item *at = &b->items[i];
        clv_device *device = exchange->run->executors[at->place].device;
        clv__bevent *event = at->event[b->slot];
        const clv_status status =
            event && !is_followed(b, at) ? clv__device_wait(device, event, error_of(exchange)) : CLV_OK;
        device->backend->event_destroy(event);
        at->event[b->slot] = NULL;
        if (status == CLV_OK) continue;
        clv__run_fail(exchange->run, b->ticket, device, status);
        return status;
    }
    return CLV_OK;
}

static void tell_arrived(const bucket *b) {
    clv__exchange *exchange = b->exchange;
    pthread_mutex_lock(&exchange->lock);
    for (int i = 0; i < b->n; i++) b->items[i].arrived[b->slot] = b->ticket;
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
}

static clv_status exchange_step(clv__exchange *exchange, int64_t ticket) {
    bool stop = false;
    bucket b = {
        .exchange = exchange, .slot = (int)(ticket % CLV__SLOTS), .ticket = ticket, .items = exchange->items};
    for (b.number = 0; b.number < exchange->n_buckets; b.number++, b.items += b.n) {
        for (b.n = 0; b.items + b.n < exchange->items + exchange->n && b.items[b.n].bucket == b.number;)
            b.n++;
        CLV_TRY(gather(&b));
        CLV_TRY(exchange_bucket(&b, &stop));
        long long none = 0;
        if (b.number == exchange->n_buckets - 1 && stop)
            atomic_compare_exchange_strong(&exchange->stop_seen, &none, ticket + 1);
        tell_arrived(&b);
    }
    return CLV_OK;
}

static void *run_thread(void *user) {
    clv__exchange *exchange = user;
    clv_status status = CLV_OK;
    for (int64_t ticket = 0; status == CLV_OK; ticket++) status = exchange_step(exchange, ticket);
    pthread_mutex_lock(&exchange->lock);
    exchange->status = status;
    clv__error_read(error_of(exchange), exchange->sentence);
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
    return NULL;
}

bool clv__exchange_stops(const clv__exchange *exchange, int64_t ticket) {
    const long long seen = exchange ? atomic_load(&exchange->stop_seen) : 0;
    return seen && seen <= ticket + 1;
}

void clv__exchange_post(clv__exchange *exchange, const clv__executor *executor, int slot, int transfer,
                        char *staged, clv__bevent *event) {
    item *at = &exchange->items[exchange->item_of[transfer]];
    pthread_mutex_lock(&exchange->lock);
    at->posted[slot] = executor->steps[slot].ticket;
    at->event[slot] = event;
    at->staged[slot] = staged;
    pthread_cond_broadcast(&exchange->changed);
    pthread_mutex_unlock(&exchange->lock);
}

clv_status clv__exchange_await(clv__exchange *exchange, const clv__executor *executor, int slot,
                               int transfer) {
    const item *at = &exchange->items[exchange->item_of[transfer]];
    const int64_t ticket = executor->steps[slot].ticket;
    pthread_mutex_lock(&exchange->lock);
    while (at->arrived[slot] != ticket && exchange->status == CLV_OK)
        pthread_cond_wait(&exchange->changed, &exchange->lock);
    clv_status status = at->arrived[slot] == ticket ? CLV_OK : exchange->status;
    if (status != CLV_OK) clv__error_set(error_of(exchange), status, "%s", exchange->sentence);
    pthread_mutex_unlock(&exchange->lock);
    return status;
}

// ---- making and unmaking ----------------------------------------------------------------------------------

/** Values in the order of their SENDs, and their buckets. Returns how many buckets. What is sent after a
 *  value of the bucket was received may depend on it, and is in the next one. */
static int list_items(const clv_plan *plan, size_t bucket_bytes, item *items, int *n) {
    size_t bytes = 0;
    int buckets = 0, first = 0;
    bool closed = false;
    *n = 0;
    for (size_t at = 0; at < plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->work == CLV__COMPUTE || !plan->transfers[node->transfer].exchanged) continue;
        const clv__transfer *transfer = &plan->transfers[node->transfer];
        for (int i = first; node->work == CLV__RECEIVE && i < *n; i++)
            closed |= items[i].transfer == node->transfer;
        if (node->work == CLV__RECEIVE) continue;
        if (*n && (closed || bytes + transfer->bytes > bucket_bytes)) {
            buckets++;
            bytes = 0;
            first = *n;
            closed = false;
        }
        bytes += transfer->bytes;
        items[(*n)++] = (item){.transfer = node->transfer,
                               .place = node->place,
                               .bucket = buckets,
                               .n = (int64_t)(transfer->bytes / sizeof(float)),
                               .how = clv__exchanged_of(transfer),
                               .posted = {-1, -1},
                               .arrived = {-1, -1}};
    }
    return *n ? buckets + 1 : 0;
}

static clv_status out_of_memory(const clv__exchange *exchange) {
    CLV_FAIL(error_of(exchange), CLV_E_HOST_MEMORY, "no host memory to exchange values with other ranks");
}

/** Room for the largest message of a bucket, and for its cuts. */
static void measure_messages(clv__exchange *exchange) {
    const int size = exchange->ranks->place.size;
    size_t most = 0, bytes = 0, alone = 0;
    for (int rank = 0; rank < size; rank++)
        for (int i = 0; i < exchange->n; i++) {
            const item *at = &exchange->items[i];
            if (!i || at->bucket != at[-1].bucket) bytes = alone = 0;
            const size_t more = sent_bytes(at, part_length(at, rank, size));
            bytes += more;
            alone += goes_alone(at, more);
            if (bytes > most) most = bytes;
            if (1 + 2 * alone > exchange->n_cuts)
                exchange->n_cuts = 1 + 2 * alone; // others before and behind
        }
    exchange->room = clv__size_align(most + sizeof(head), 64);
}

/** Messages may come into the device's memory when the run is gone already. */
static clv__pages *take_block(const clv_run *run, const item *at) {
    clv__bbuffer *whole = run->parts[0][run->plan->transfers[at->transfer].into].buffer;
    clv__pages *block = run->executors[at->place].device->backend->buffer_block(whole);
    if (block) clv__pages_take(block);
    return block;
}

static clv_status start(clv__exchange *exchange) {
    const clv_plan *plan = exchange->run->plan;
    const size_t size = (size_t)exchange->ranks->place.size;
    exchange->items = clv__alloc(plan->n_transfers, sizeof *exchange->items);
    exchange->item_of = clv__alloc(plan->n_transfers, sizeof *exchange->item_of);
    if (!exchange->items || !exchange->item_of) return out_of_memory(exchange);
    exchange->n_buckets = list_items(plan, BUCKET_BYTES, exchange->items, &exchange->n);
    exchange->n_cuts = 1;
    for (int i = 0; i < exchange->n; i++) {
        item *at = &exchange->items[i];
        if (plan->transfers[at->transfer].shared) at->block = take_block(exchange->run, at);
        const int64_t told[] = {at->n,          at->bucket,         at->how->kind,
                                at->how->terms, at->how->from_last, at->how->bf16};
        exchange->item_of[at->transfer] = i;
        exchange->digest = XXH3_64bits_withSeed(told, sizeof told, exchange->digest);
    }
    measure_messages(exchange);
    exchange->sent = clv__alloc(size, exchange->room);
    exchange->came = clv__alloc(size, exchange->room);
    exchange->messages = clv__alloc(2 * size * exchange->n_cuts, sizeof *exchange->messages);
    exchange->cuts = clv__alloc(exchange->n_cuts, sizeof *exchange->cuts);
    if (!exchange->sent || !exchange->came || !exchange->messages || !exchange->cuts)
        return out_of_memory(exchange);
    exchange->started = pthread_create(&exchange->thread, NULL, run_thread, exchange) == 0;
    return exchange->started ? CLV_OK : out_of_memory(exchange);
}

clv_status clv__exchange_create(clv_run *run, clv__exchange **out) {
    *out = NULL;
    bool any = false;
    for (size_t i = 0; i < run->plan->n_transfers; i++) any |= run->plan->transfers[i].exchanged != NULL;
    if (!any) return CLV_OK;
    if (!run->session->ranks)
        CLV_FAIL(clv__plan_error(run->plan), CLV_E_STATE,
                 "the graph sums over ranks, and the session has none (clv_train_config.ranks)");
    clv__exchange *exchange = clv__alloc(1, sizeof *exchange);
    if (!exchange) CLV_FAIL(clv__plan_error(run->plan), CLV_E_HOST_MEMORY, "no host memory for a run");
    exchange->run = run;
    exchange->ranks = run->session->ranks;
    pthread_mutex_init(&exchange->lock, NULL);
    pthread_cond_init(&exchange->changed, NULL);
    clv_status status = start(exchange);
    if (status != CLV_OK) {
        clv__exchange_destroy(exchange);
        return status;
    }
    *out = exchange;
    return CLV_OK;
}

void clv__exchange_destroy(clv__exchange *exchange) {
    if (!exchange) return;
    if (exchange->started) {
        pthread_mutex_lock(&exchange->lock);
        atomic_store(&exchange->stop, true);
        pthread_cond_broadcast(&exchange->changed);
        pthread_mutex_unlock(&exchange->lock);
        pthread_join(exchange->thread, NULL);
    }
    for (int i = 0; i < exchange->n; i++)
        for (int slot = 0; slot < CLV__SLOTS; slot++)
            exchange->run->executors[exchange->items[i].place].device->backend->event_destroy(
                exchange->items[i].event[slot]);
    pthread_cond_destroy(&exchange->changed);
    pthread_mutex_destroy(&exchange->lock);
    const bool over = atomic_load(&exchange->ranks->is_over); // messages that were begun may come still
    for (int i = 0; i < exchange->n; i++)
        if (over)
            clv__leave(exchange->items[i].block);
        else
            clv__pages_drop(exchange->items[i].block);
    if (over) {
        clv__leave(exchange->sent);
        clv__leave(exchange->came);
        clv__leave(exchange->messages);
    } else {
        free(exchange->sent);
        free(exchange->came);
        free(exchange->messages);
    }
    free(exchange->cuts);
    free(exchange->items);
    free(exchange->item_of);
    free(exchange);
}

int64_t clv__exchange_bytes(const clv_plan *plan, int rank, int size, size_t bucket_bytes) {
    item *items = clv__alloc(plan->n_transfers + 1, sizeof *items);
    int n = 0;
    if (!items) return -1;
    const int buckets = list_items(plan, bucket_bytes ? bucket_bytes : BUCKET_BYTES, items, &n);
    int64_t bytes = 0;
    for (int at = 0, i = 0; at < buckets; at++) {
        bool any[2] = {false, false};
        for (; i < n && items[i].bucket == at; i++) {
            const int64_t own = (int64_t)sent_bytes(&items[i], part_length(&items[i], rank, size));
            for (uint32_t phase = PARTS; phase <= SUMS; phase++) {
                if (!takes_part(&items[i], phase)) continue;
                any[phase] = true;
                for (int to = 0; to < size; to++) // parts are for their owners, sums for all
                    if (to != rank)
                        bytes += phase == SUMS
                                     ? own
                                     : (int64_t)sent_bytes(&items[i], part_length(&items[i], to, size));
            }
        }
        bytes += (any[PARTS] + any[SUMS]) * (size - 1) * (int64_t)sizeof(head);
    }
    free(items);
    return size > 1 ? bytes : 0;
}

int clv__exchange_buckets(const clv_plan *plan, size_t bucket_bytes, int *bucket_of) {
    item *items = clv__alloc(plan->n_transfers + 1, sizeof *items);
    int n = 0;
    if (!items) return -1;
    const int buckets = list_items(plan, bucket_bytes ? bucket_bytes : BUCKET_BYTES, items, &n);
    for (size_t i = 0; i < plan->n_transfers; i++) bucket_of[i] = -1;
    for (int i = 0; i < n; i++) bucket_of[items[i].transfer] = items[i].bucket;
    free(items);
    return buckets;
}

/** What a bucket takes of the link. */
typedef struct load {
    double seconds, ready;
} load;

/** Seconds of a phase of a bucket: a rank sends and receives at once, and all wait for the one with the most,
 *  whose part is the largest. */
static double phase_seconds(const item *items, int n, int size, uint32_t phase, clv__link link) {
    double most = 0;
    for (int rank = 0; rank < size; rank++) {
        double own = 0, all = 0; // bytes
        for (int i = 0; i < n; i++) {
            if (!takes_part(&items[i], phase)) continue;
            own += (double)sent_bytes(&items[i], part_length(&items[i], rank, size));
            all += (double)sent_bytes(&items[i], items[i].n);
        }
        most = fmax(most, fmax(own * (size - 1), all - own));
    }
    if (size < 2 || most == 0) return 0;
    return link.latency + (most + (double)sizeof(head) * (size - 1)) / link.bytes_per_second;
}

static int load_link(const clv_plan *plan, int size, size_t bucket_bytes, clv__link link, load *loads) {
    item *items = clv__alloc(plan->n_transfers + 1, sizeof *items);
    int n = 0;
    if (!items) return -1;
    const int buckets = list_items(plan, bucket_bytes ? bucket_bytes : BUCKET_BYTES, items, &n);
    for (int at = 0, i = 0, first; at < buckets; at++) {
        for (first = i; i < n && items[i].bucket == at;) i++;
        loads[at].seconds = phase_seconds(items + first, i - first, size, PARTS, link) +
                            phase_seconds(items + first, i - first, size, SUMS, link);
    }
    free(items);
    return buckets;
}

double clv__exchange_seconds(const clv_plan *plan, int size, size_t bucket_bytes, const double *seconds,
                             clv__link link) {
    load *loads = clv__alloc(plan->n_transfers + 1, sizeof *loads);
    int *bucket_of = clv__alloc(plan->n_transfers + 1, sizeof *bucket_of), done = 0;
    double computed = 0, exchanged = 0;
    if (!loads || !bucket_of || clv__exchange_buckets(plan, bucket_bytes, bucket_of) < 0 ||
        load_link(plan, size, bucket_bytes, link, loads) < 0)
        computed = -1;
    for (size_t i = 0; computed >= 0 && i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        const int of = node->work == CLV__COMPUTE ? -1 : bucket_of[node->transfer];
        computed += seconds[i];
        if (of < 0) continue;
        if (node->work != CLV__RECEIVE) {
            loads[of].ready = computed; // of its last value
            continue;
        }
        for (; done <= of; done++)
            exchanged = (loads[done].ready > exchanged ? loads[done].ready : exchanged) + loads[done].seconds;
        if (exchanged > computed) computed = exchanged;
    }
    free(loads);
    free(bucket_of);
    return computed;
}

double clv_ranks_step_seconds(const clv_ranks *ranks, const clv_plan *plan, double bytes_per_second,
                              double latency) {
    double *seconds = clv__alloc(plan->n_nodes + 1, sizeof *seconds), all = 0;
    if (!seconds || !(bytes_per_second > 0)) {
        free(seconds);
        return 0;
    }
    for (int i = 0; i < (int)plan->n_nodes; i++)
        all += seconds[i] = plan->nodes[i].work == CLV__COMPUTE ? clv__plan_node_least(plan, i) : 0;
    if (all > 0)
        all = clv__exchange_seconds(plan, ranks->place.size, 0, seconds,
                                    (clv__link){bytes_per_second, latency});
    free(seconds);
    return all > 0 ? all : 0;
}
