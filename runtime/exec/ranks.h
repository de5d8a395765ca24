// SPDX-License-Identifier: Apache-2.0
// Inside of the ranks of a training: who takes part, messages to them, and who of them does not answer any
// more.
#ifndef CLV_EXEC_RANKS_H
#define CLV_EXEC_RANKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"
#include "cleave/ranks.h"
#include "device/transport.h"

/** What a message is of: each kind has an order of its own. */
typedef enum clv__tag {
    CLV__TAG_EXCHANGE,     // values of a step: exchange.c
    CLV__TAG_CONTROL,      // what rank 0 decided: clv__ranks_agree
    CLV__TAG_BEAT,         // that a rank is there, or why not: beats.c
    CLV__TAG_LEFT,         // who is left: left.c
    CLV__TAGS,             // so many for each time that a rank was lost
    CLV__TAG_VALUES = 1024 // and beyond, by transfer: values for devices of other ranks: elsewhere.c
} clv__tag;

/** What ranks tell each other besides values: first who they are, then every second that they are there, or
 *  why not, and before the first step that they can begin, or why not. */
enum {
    CLV__HELLO_MAGIC = 0x43524b31,
    CLV__BEAT_MAGIC = 0x43425431,
    CLV__READY_MAGIC = 0x43524431,
    CLV__LEFT_MAGIC = 0x434c4631
};
typedef struct clv__hello {
    uint32_t magic, rank;
    char version[24];
} clv__hello;
typedef enum clv__news {
    CLV__HERE,
    CLV__ENDS, // with a sentence
    CLV__DONE  // the training is over
} clv__news;
typedef struct clv__beat {
    uint32_t magic;
    int32_t said, rank;
    char sentence[512];
} clv__beat;
typedef struct clv__readiness {
    uint32_t magic, failed;
    char sentence[400];
} clv__readiness;
/** When one is lost: first that this rank is there, then from one of those that are, whether they go on. */
typedef enum clv__fate {
    CLV__IS_LEFT,
    CLV__GO_ON,
    CLV__NONE_LOST,    // all are there: it was something else
    CLV__TOO_FEW,      // the others may be there, cut off from these
    CLV__NO_CHECKPOINT // to go on from
} clv__fate;
enum { CLV__MOST_LEFT = 1024 };
typedef struct clv__left {
    uint32_t magic;
    int32_t fate, rank;
    uint8_t is_left[CLV__MOST_LEFT]; // by rank
    int64_t saved;
} clv__left;
/** What is wrong with such a message, of `came` bytes, of a rank; NULL: nothing, and its text has an end
 *  and can be shown. The memory is as large as the right one. */
const char *clv__hello_fault(clv__hello *message, size_t came, int rank);
const char *clv__beat_fault(clv__beat *message, size_t came, int rank);
const char *clv__ready_fault(clv__readiness *message, size_t came);
const char *clv__left_fault(const clv__left *message, size_t came, int rank);

struct clv_ranks {
    clv_runtime *runtime;
    const clv__transport *engine;
    void *self;
    clv__transport_place place;
    int *engine_rank; // by rank, its number with the engine; owned. NULL: the same
    int times_lost;   // that the ranks went on without some of them
    int lost;         // the rank that this one found to be gone; -1: none
    int64_t saving,
        saved;       // steps of the checkpoint that is written, and of the last that is known to be; -1: none
    bool layered;    // layers are on devices of several ranks: each sees the whole batch
    double *shares;  // of each batch, by rank; owned. NULL: equal
    double patience; // seconds without a beat
    struct clv__beats *beats;            // NULL: one rank
    atomic_bool wants_stop, agreed_stop; // asked for here; as all of them know after a step
    atomic_bool begun;                   // all were ready
    atomic_llong step, sent_bytes;       // of the training; of exchanges so far
    pthread_mutex_t lock;                // guards what follows
    bool over;                           // a rank is lost, or failed, and so nothing goes on
    atomic_bool is_over;
    bool refused; // one could not begin: all know it, and end in order
    char sentence[512];
    bool first_to_tell; // of those that are left, this one says it
};

/** Ranks of an engine. what: the engine's (transport.h). */
clv_status clv__ranks_open(clv_runtime *runtime, const clv__transport *engine, void *what, double patience,
                           clv_ranks **out);

/** Hand a message to the engine, to a rank or from it. Not 0: it cannot be, why says why. */
static inline int clv__ranks_begin(clv_ranks *ranks, bool receives, int other, clv__tag tag, void *data,
                                   size_t bytes, clv__message *out, char why[CLV__TRANSPORT_WHY]) {
    const int with = ranks->engine_rank ? ranks->engine_rank[other] : other;
    const int kind =
        (int)tag + ranks->times_lost * CLV__TAGS; // no message from before is taken for a new one
    return receives ? ranks->engine->receive(ranks->self, with, kind, data, bytes, out, why)
                    : ranks->engine->send(ranks->self, with, kind, data, bytes, out, why);
}
/** Each says who it is. */
clv_status clv__ranks_greet(clv_ranks *ranks);
/** Begin a message; it is awaited with clv__ranks_await. A failure ends all ranks. */
clv_status clv__ranks_send(clv_ranks *ranks, int to, clv__tag tag, const void *data, size_t bytes,
                           clv__message *out);
clv_status clv__ranks_receive(clv_ranks *ranks, int from, clv__tag tag, void *data, size_t bytes,
                              clv__message *out);
/** Wait for n messages. stop: becomes true when nobody wants them any more; NULL: never. CLV_E_RANK_LOST,
 *  with the sentence. */
clv_status clv__ranks_await(clv_ranks *ranks, clv__message *messages, int n, const atomic_bool *stop);

/** Are n messages over? */
clv_status clv__ranks_test(clv_ranks *ranks, clv__message *messages, int n, bool *over);
/** After so many looks in vain: longer and longer, a millisecond at most. */
void clv__ranks_pause(int looks);

/** What rank 0 says is what all have: `bytes` of it. On every rank, in one order, by one thread. */
clv_status clv__ranks_agree(clv_ranks *ranks, void *data, size_t bytes);

/** What each has, rank after rank, on rank 0 in `all`; NULL on the others. On every rank, in one order, by
 *  one thread. */
clv_status clv__ranks_collect(clv_ranks *ranks, const void *own, size_t bytes, void *all);

/** Can all begin? Each says so before its first step, or why it cannot (failed; NULL: it can), and waits
 *  for the others. CLV_E_RANK_LOST where one cannot. */
clv_status clv__ranks_ready(clv_ranks *ranks, const char *failed);

/** This rank ends with a sentence, which the others are told. */
void clv__ranks_fail(clv_ranks *ranks, const char *sentence);
/** Keep why nothing goes on, unless it is known already; first: this rank is the one to tell it. */
void clv__ranks_end(clv_ranks *ranks, bool first, const char *sentence);
/** CLV_E_RANK_LOST and its sentence. */
clv_status clv__ranks_status(clv_ranks *ranks);

/** Begin to tell the others that this rank is there, and to hear it of them. */
clv_status clv__beats_begin(clv_ranks *ranks);
/** orderly: every rank has come to its end. False: one has not. */
bool clv__beats_end(clv_ranks *ranks, bool orderly);
/** Tell the others what was kept by clv__ranks_end. */
void clv__beats_tell(clv_ranks *ranks);

/** Ranks of one process, each a thread of it (loopback.c). */
typedef struct clv__loopback clv__loopback;
clv__loopback *clv__loopback_create(int size);
void clv__loopback_destroy(clv__loopback *loopback);
/** What a rank opens. */
typedef struct clv__loopback_end {
    clv__loopback *loopback;
    int rank;
    bool closed;
} clv__loopback_end;
extern const clv__transport clv__transport_loopback;
/** A message from a rank, as it stands. False: no memory. */
bool clv__loopback_put(clv__loopback *loopback, int from, int to, int tag, const void *data, size_t bytes);

#endif
