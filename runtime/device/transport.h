// SPDX-License-Identifier: Apache-2.0
// The seam to what carries messages between the ranks of a training: another process, on this machine or
// another. As backend.h, a table of verbs. An engine is a library of its own that is opened at run time
// (exec/ranks.c), so nothing of Cleave is called from below; it returns 0, or says in a sentence why not.
//
// Messages of one sender, one receiver and one tag arrive in the order in which they were sent. Verbs may be
// called by several threads; none of them blocks, but open and close.
#ifndef CLV_DEVICE_TRANSPORT_H
#define CLV_DEVICE_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLV__TRANSPORT_VERSION = 3, CLV__TRANSPORT_WHY = 256 };

/** Who is asking: 0 to size - 1; and the how manieth on its machine. */
typedef struct clv__transport_place {
    int rank, size, local;
    bool survives; // a process that is gone does not end the others
} clv__transport_place;

/** A message under way: what it works on stays where it is until `test` says that it is over. */
typedef struct clv__message {
    void *handle; // the engine's
    int64_t number;
    size_t bytes; // of a received one, when it is over: how many came
    bool active, receives;
} clv__message;

typedef struct clv__transport {
    int version;
    const char *name;
    /** Begin, when all are there; who has to wait for longer than so many seconds fails. what: the engine's
     *  own; of a process alone it is NULL. */
    int (*open)(void *what, double patience, clv__transport_place *place, void **self,
                char why[CLV__TRANSPORT_WHY]);
    int (*send)(void *self, int to, int tag, const void *data, size_t bytes, clv__message *out,
                char why[CLV__TRANSPORT_WHY]);
    /** A message of more than `bytes` is a failure, of fewer is not. */
    int (*receive)(void *self, int from, int tag, void *data, size_t bytes, clv__message *out,
                   char why[CLV__TRANSPORT_WHY]);
    /** Is it over? Then it is not active any more. */
    int (*test)(void *self, clv__message *message, bool *over, char why[CLV__TRANSPORT_WHY]);
    /** What was to be received is not wanted any more: where it would lie is free again, unless some of it
     *  has come. */
    void (*forget)(void *self, clv__message *message);
    /** orderly: nothing is under way on any rank. Else leave without waiting for anybody. */
    void (*close)(void *self, bool orderly);
} clv__transport;

/** The one symbol of an engine's library. */
#define CLV__TRANSPORT_SYMBOL "clv_transport"

#endif
