// SPDX-License-Identifier: Apache-2.0
#include "data/bpe.h"

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

// ---- tokens -------------------------------------------------------------------------------------------------------

static int compare(const char *a, size_t n, const char *b, size_t m) {
    const int order = memcmp(a, b, n < m ? n : m);
    return order ? order : n < m ? -1 : n > m;
}

static size_t length_of(const clv__bpe *bpe, int32_t token) {
    return bpe->begin[token + 1] - bpe->begin[token];
}

int32_t clv__bpe_find(const clv__bpe *bpe, const char *bytes, size_t n) {
    int32_t low = 0, high = bpe->n_ordered - 1;
    while (low <= high) {
        const int32_t middle = low + (high - low) / 2, token = bpe->ordered[middle];
        const int order = compare(bpe->text + bpe->begin[token], length_of(bpe, token), bytes, n);
        if (order == 0) return token;
        if (order < 0)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

/** Let the token at `root` sink among `n` until none below is greater. */
static void sink(clv__bpe *bpe, int32_t root, int32_t n) {
    int32_t *ordered = bpe->ordered;
    for (int64_t child; (child = 2 * (int64_t)root + 1) < n; root = (int32_t)child) {
        const char *text = bpe->text;
        const uint32_t *begin = bpe->begin;
#define ORDER(a, b) compare(text + begin[a], length_of(bpe, a), text + begin[b], length_of(bpe, b))
        if (child + 1 < n && ORDER(ordered[child], ordered[child + 1]) < 0) child++;
        if (ORDER(ordered[root], ordered[child]) >= 0) return;
#undef ORDER
        const int32_t kept = ordered[root];
        ordered[root] = ordered[child];
        ordered[child] = kept;
    }
}

int clv__bpe_order(clv__bpe *bpe) {
    bpe->n_ordered = 0;
    for (int32_t i = 0; i < bpe->count; i++)
        if (length_of(bpe, i)) bpe->ordered[bpe->n_ordered++] = i;
    for (int32_t i = bpe->n_ordered / 2 - 1; i >= 0; i--) sink(bpe, i, bpe->n_ordered);
    for (int32_t n = bpe->n_ordered - 1; n > 0; n--) {
        const int32_t greatest = bpe->ordered[0];
        bpe->ordered[0] = bpe->ordered[n];
        bpe->ordered[n] = greatest;
        sink(bpe, 0, n);
    }
    for (int byte = 0; byte < 256; byte++) {
        const char at = (char)byte;
        bpe->bytes[byte] = clv__bpe_find(bpe, &at, 1);
        if (bpe->bytes[byte] < 0) return byte;
    }
    return -1;
}

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
    clv__merge *place = place_of(bpe, merge.left, merge.right);
    if (place->rank < 0) *place = merge;
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

static bool reserve(clv__bpe_work *work, size_t bytes) {
    if (bytes <= work->room) return true;
    clv__bpe_work_reset(work);
    const size_t room = bytes < 64 ? 64 : bytes + bytes / 2;
    work->nodes = clv__alloc(room, sizeof *work->nodes);
    work->heap = clv__alloc(room, 3 * sizeof *work->heap); // each merge adds two pairs at most
    if (work->nodes && work->heap) work->room = room;
    return work->room != 0;
}

bool clv__bpe_encode(const clv__bpe *bpe, clv__bpe_work *work, const char *word, size_t bytes,
                     int32_t *tokens, size_t *n) {
    const int32_t whole = bpe->whole_words ? clv__bpe_find(bpe, word, bytes) : -1;
    if (whole >= 0) {
        tokens[(*n)++] = whole;
        return true;
    }
    if (bytes > INT32_MAX || !reserve(work, bytes)) return false;
    clv__bpe_node *nodes = work->nodes;
    size_t pairs = 0;
    for (int32_t i = 0; i < (int32_t)bytes; i++)
        nodes[i] = (clv__bpe_node){bpe->bytes[(uint8_t)word[i]], i - 1, i + 1 < (int32_t)bytes ? i + 1 : -1};
    for (int32_t i = 0; i < (int32_t)bytes; i++) look(bpe, work, &pairs, i);
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
    for (int32_t i = bytes ? 0 : -1; i >= 0; i = nodes[i].after) tokens[(*n)++] = nodes[i].token;
    return true;
}

void clv__bpe_work_reset(clv__bpe_work *work) {
    free(work->nodes);
    free(work->heap);
    *work = (clv__bpe_work){0};
}

void clv__bpe_reset(clv__bpe *bpe) {
    free(bpe->text);
    free(bpe->begin);
    free(bpe->ordered);
    free(bpe->merges);
    *bpe = (clv__bpe){0};
}
