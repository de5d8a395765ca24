// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: a message is a copy in a list, taken by whoever receives it. For
// tests, of what MPI's ranks do as well.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/ranks.h"

typedef struct letter {
    struct letter *next;
    int from, to, tag;
    size_t bytes;
    char data[];
} letter;

struct clv__loopback {
    pthread_mutex_t lock;
    int size;
    letter *first, *last;
    bool *closed; // by rank: it has left
};

/** Where a receiver's message is to come from, and go to. */
typedef struct wanted {
    int from, tag;
    void *data;
} wanted;

clv__loopback *clv__loopback_create(int size) {
    clv__loopback *loopback = clv__alloc(1, sizeof *loopback);
    if (!loopback) return NULL;
    loopback->closed = clv__alloc((size_t)size, sizeof *loopback->closed);
    if (!loopback->closed) {
        free(loopback);
        return NULL;
    }
    loopback->size = size;
    pthread_mutex_init(&loopback->lock, NULL);
    return loopback;
}

void clv__loopback_destroy(clv__loopback *loopback) {
    if (!loopback) return;
    for (letter *at = loopback->first, *next; at; at = next) {
        next = at->next;
        free(at);
    }
    pthread_mutex_destroy(&loopback->lock);
    free(loopback->closed);
    free(loopback);
}

bool clv__loopback_put(clv__loopback *loopback, int from, int to, int tag, const void *data, size_t bytes) {
    letter *one = malloc(sizeof *one + bytes);
    if (!one) return false;
    *one = (letter){.from = from, .to = to, .tag = tag, .bytes = bytes};
    if (bytes) memcpy(one->data, data, bytes);
    pthread_mutex_lock(&loopback->lock);
    if (loopback->last)
        loopback->last->next = one;
    else
        loopback->first = one;
    loopback->last = one;
    pthread_mutex_unlock(&loopback->lock);
    return true;
}

static int loopback_open(void *what, double patience, clv__transport_place *place, void **self,
                         char why[CLV__TRANSPORT_WHY]) {
    clv__loopback_end *end = what;
    (void)patience; // its ranks are there
    (void)why;
    *place = (clv__transport_place){
        .rank = end->rank, .size = end->loopback->size, .local = end->rank, .survives = true};
    *self = end;
    return 0;
}

static int loopback_send(void *self, int to, int tag, const void *data, size_t bytes, clv__message *out,
                         char why[CLV__TRANSPORT_WHY]) {
    const clv__loopback_end *end = self;
    *out = (clv__message){.bytes = bytes, .active = true};
    if (clv__loopback_put(end->loopback, end->rank, to, tag, data, bytes)) return 0;
    snprintf(why, CLV__TRANSPORT_WHY, "no host memory for a message of %zu bytes", bytes);
    return 1;
}

static int loopback_receive(void *self, int from, int tag, void *data, size_t bytes, clv__message *out,
                            char why[CLV__TRANSPORT_WHY]) {
    wanted *what = clv__alloc(1, sizeof *what);
    (void)self;
    *out = (clv__message){.handle = what, .bytes = bytes, .active = what != NULL, .receives = true};
    if (!what) {
        snprintf(why, CLV__TRANSPORT_WHY, "no host memory for a message");
        return 1;
    }
    *what = (wanted){from, tag, data};
    return 0;
}

/** Take the oldest letter that is meant; NULL: none has come. The lock is held. */
static letter *take(clv__loopback *loopback, int to, const wanted *what) {
    letter *before = NULL, *at = loopback->first;
    while (at && (at->from != what->from || at->to != to || at->tag != what->tag)) {
        before = at;
        at = at->next;
    }
    if (!at) return NULL;
    *(before ? &before->next : &loopback->first) = at->next;
    if (loopback->last == at) loopback->last = before;
    return at;
}

static int loopback_test(void *self, clv__message *message, bool *over, char why[CLV__TRANSPORT_WHY]) {
    const clv__loopback_end *end = self;
    clv__loopback *loopback = end->loopback;
    *over = true;
    if (!message->receives) {
        message->active = false;
        return 0;
    }
    const wanted what = *(const wanted *)message->handle;
    pthread_mutex_lock(&loopback->lock);
    letter *found = take(loopback, end->rank, &what);
    const bool gone = loopback->closed[what.from];
    pthread_mutex_unlock(&loopback->lock);
    if (!found && !gone) {
        *over = false;
        return 0;
    }
    free(message->handle);
    *message = (clv__message){.bytes = message->bytes, .receives = true};
    if (!found || found->bytes > message->bytes) {
        if (found)
            snprintf(why, CLV__TRANSPORT_WHY, "a message of %zu bytes came where at most %zu are wanted",
                     found->bytes, message->bytes);
        else
            snprintf(why, CLV__TRANSPORT_WHY, "rank %d has left", what.from);
        free(found);
        return 1;
    }
    message->bytes = found->bytes;
    if (found->bytes) memcpy(what.data, found->data, found->bytes);
    free(found);
    return 0;
}

static void loopback_forget(void *self, clv__message *message) {
    (void)self;
    free(message->handle);
    *message = (clv__message){.receives = true};
}

static void loopback_close(void *self, bool orderly) {
    clv__loopback_end *end = self;
    (void)orderly;
    pthread_mutex_lock(&end->loopback->lock);
    end->closed = end->loopback->closed[end->rank] = true;
    pthread_mutex_unlock(&end->loopback->lock);
}

const clv__transport clv__transport_loopback = {.version = CLV__TRANSPORT_VERSION,
                                                .name = "loopback",
                                                .open = loopback_open,
                                                .send = loopback_send,
                                                .receive = loopback_receive,
                                                .test = loopback_test,
                                                .forget = loopback_forget,
                                                .close = loopback_close};
