// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/** A token of the word, in a list of those that are left. */
typedef struct clv__bpe_node {
    int32_t token, before, after; // positions; -1: none
} clv__bpe_node;

/** Two neighbours that could become one; out of date once either has changed. */
typedef struct clv__bpe_pair {
    int32_t rank, at, left, right, token;
} clv__bpe_pair;

// ---- merges -------------------------------------------------------------------------------------------------------

static size_t slot_of(const clv__bpe *bpe, int32_t left, int32_t right) {
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (bpe->room - 1);
}

bool clv__bpe_reserve(clv__bpe *bpe, size_t n) {
    for (bpe->room = 16; bpe->room < 2 * n;) bpe->room *= 2;
    bpe->merges = clv__alloc(bpe->room, sizeof *bpe->merges);
    for (size_t i = 0; bpe->merges && i < bpe->room; i++) bpe->merges[i].rank = -1;
    return bpe->merges != NULL;
}

/** The merge of a pair, or the free place for it. */
static clv__merge *place_of(const clv__bpe *bpe, int32_t left, int32_t right) {
    size_t i = slot_of(bpe, left, right);
    while (bpe->merges[i].rank >= 0 && (bpe->merges[i].left != left || bpe->merges[i].right != right))
        i = (i + 1) & (bpe->room - 1);
    return &bpe->merges[i];
}

void clv__bpe_add(clv__bpe *bpe, clv__merge merge) {
    *place_of(bpe, merge.left, merge.right) = merge;
}

// ---- a word -------------------------------------------------------------------------------------------------------

static bool before(const clv__bpe_pair *a, const clv__bpe_pair *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push(clv__bpe_pair *heap, size_t *n, clv__bpe_pair pair) {
    size_t i = (*n)++;
    for (; i > 0 && before(&pair, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = pair;
}

static clv__bpe_pair pop(clv__bpe_pair *heap, size_t *n) {
    const clv__bpe_pair least = heap[0], last = heap[--*n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &last)) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return least;
}

/** Look at the token at a position and the one after it: have they a merge? */
static void look(const clv__bpe *bpe, clv__bpe_work *work, size_t *n, int32_t at) {
    if (at < 0 || work->nodes[at].after < 0) return;
    const int32_t left = work->nodes[at].token, right = work->nodes[work->nodes[at].after].token;
    const clv__merge *merge = place_of(bpe, left, right);
    if (merge->rank >= 0) push(work->heap, n, (clv__bpe_pair){merge->rank, at, left, right, merge->token});
}

static bool reserve(clv__bpe_work *work, size_t n) {
    if (n <= work->room) return true;
    clv__bpe_work_reset(work);
    const size_t room = n < 64 ? 64 : n + n / 2;
    work->nodes = clv__alloc(room, sizeof *work->nodes);
    work->heap = clv__alloc(room, 3 * sizeof *work->heap); // each merge adds two pairs at most
    if (work->nodes && work->heap) work->room = room;
    return work->room != 0;
}

bool clv__bpe_merge(const clv__bpe *bpe, clv__bpe_work *work, int32_t *tokens, size_t *n) {
    if (*n < 2) return true;
    if (*n > INT32_MAX || !reserve(work, *n)) return false;
    const int32_t count = (int32_t)*n;
    clv__bpe_node *nodes = work->nodes;
    size_t pairs = 0;
    for (int32_t i = 0; i < count; i++)
        nodes[i] = (clv__bpe_node){tokens[i], i - 1, i + 1 < count ? i + 1 : -1};
    for (int32_t i = 0; i < count; i++) look(bpe, work, &pairs, i);
    while (pairs) {
        const clv__bpe_pair pair = pop(work->heap, &pairs);
        clv__bpe_node *left = &nodes[pair.at];
        if (left->token != pair.left || left->after < 0 || nodes[left->after].token != pair.right) continue;
        clv__bpe_node *right = &nodes[left->after];
        left->token = pair.token;
        left->after = right->after;
        right->token = -1; // pairs that begin there are out of date
        if (left->after >= 0) nodes[left->after].before = pair.at;
        look(bpe, work, &pairs, left->before);
        look(bpe, work, &pairs, pair.at);
    }
    *n = 0;
    for (int32_t i = 0; i >= 0; i = nodes[i].after) tokens[(*n)++] = nodes[i].token;
    return true;
}

void clv__bpe_work_reset(clv__bpe_work *work) {
    free(work->nodes);
    free(work->heap);
    *work = (clv__bpe_work){0};
}

void clv__bpe_reset(clv__bpe *bpe) {
    free(bpe->merges);
    *bpe = (clv__bpe){0};
}
