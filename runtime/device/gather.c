// SPDX-License-Identifier: Apache-2.0
// Which kernels go into which program: see gather.h.
#include "device/gather.h"

#include <stdlib.h>

#include "base/memory.h"

bool clv__gathering_add(clv__gathering *to, const clv__instance *instance) {
    for (size_t i = 0; i < to->n; i++) {
        if (to->items[i].hash != instance->hash) continue;
        to->items[i].kernels |= instance->kernels;
        return true;
    }
    if (!clv__grow(&to->items, &to->room, to->n + 1, sizeof *to->items)) return false;
    to->items[to->n++] = *instance;
    return true;
}

void clv__gathering_reset(clv__gathering *gathering) {
    free(gathering->items);
    *gathering = (clv__gathering){0};
}

/** Take one kernel's bits out of *kernels: of an instance without bits nothing can be left out, and it is one
 *  piece. */
static uint64_t next_piece(const clv__instance *instance, uint64_t *kernels) {
    uint64_t piece = *kernels ? *kernels & clv__source_same_kernel(instance->source, *kernels) : 0;
    *kernels &= ~piece;
    return piece;
}

size_t clv__gathering_pieces(const clv__gathering *all) {
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        uint64_t left = all->items[i].kernels;
        do {
            next_piece(&all->items[i], &left);
            n++;
        } while (left);
    }
    return n;
}

bool clv__gathering_take(const clv__gathering *all, size_t from, size_t n, clv__gathering *out) {
    size_t number = 0;
    for (size_t i = 0; i < all->n; i++) {
        uint64_t left = all->items[i].kernels;
        do {
            clv__instance piece = all->items[i];
            piece.kernels = next_piece(&all->items[i], &left);
            if (number >= from && number - from < n && !clv__gathering_add(out, &piece)) return false;
            number++;
        } while (left);
    }
    return true;
}

bool clv__gathering_share(const clv__gathering *all, clv__gathering *parts, size_t n) {
    size_t *load = clv__alloc(n, sizeof *load);
    bool shared = load != NULL;
    for (size_t i = 0; i < all->n && shared; i++) {
        size_t least = 0;
        for (size_t p = 1; p < n; p++) {
            if (load[p] < load[least]) least = p;
        }
        load[least] += clv__source_bytes(&all->items[i]);
        shared = clv__gathering_add(&parts[least], &all->items[i]);
    }
    free(load);
    return shared;
}
