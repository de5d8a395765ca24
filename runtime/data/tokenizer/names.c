// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int compare_bytes(const char *a, size_t n, const char *b, size_t m) {
    const int order = memcmp(a, b, n < m ? n : m);
    return order ? order : (n > m) - (n < m);
}

static int compare(const void *a, const void *b) {
    const clv__token_name *x = a, *y = b;
    const int order = compare_bytes(x->text, x->bytes, y->text, y->bytes);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/** Where a character of one or two bytes stands in `shorts`; -1: it is longer, or none. */
static int short_of(const char *text, size_t bytes) {
    const uint8_t *at = (const uint8_t *)text;
    if (bytes == 1 && at[0] < 0x80) return at[0];
    if (bytes == 2 && at[0] >= 0xc2 && at[0] < 0xe0) return (at[0] & 0x1f) << 6 | (at[1] & 0x3f);
    return -1;
}

bool clv__token_names_add(clv__token_names *names, const char *text, size_t bytes, int32_t number) {
    if (bytes > UINT32_MAX || names->n >= INT32_MAX) return false;
    if (names->n == names->room && !clv__grow(&names->all, &names->room, names->n + 1, sizeof *names->all))
        return false;
    names->all[names->n] = (clv__token_name){text, (uint32_t)bytes, number, (int32_t)names->n};
    names->n++;
    return true;
}

void clv__token_names_sort(clv__token_names *names, bool last) {
    size_t n = 0;
    if (names->n) qsort(names->all, names->n, sizeof *names->all, compare);
    for (size_t i = 0; i < names->n; i++) {
        const clv__token_name *one = &names->all[i];
        const bool again =
            n && !compare_bytes(names->all[n - 1].text, names->all[n - 1].bytes, one->text, one->bytes);
        if (again && last)
            names->all[n - 1] = *one;
        else if (!again)
            names->all[n++] = *one;
    }
    names->n = n;
    memset(names->shorts, -1, sizeof names->shorts);
    size_t at = 0;
    while (at < n && names->all[at].bytes == 0) at++; // an empty name begins with nothing
    for (int byte = 0; byte < 256; byte++) {
        names->first[byte] = at;
        while (at < n && (uint8_t)names->all[at].text[0] == byte) {
            const int place = short_of(names->all[at].text, names->all[at].bytes);
            if (place >= 0) names->shorts[place] = names->all[at].number;
            at++;
        }
    }
    names->first[256] = at;
}

int32_t clv__token_names_find(const clv__token_names *names, const char *text, size_t bytes) {
    if (bytes == 0 || names->n == 0) return -1;
    const int place = short_of(text, bytes);
    if (place >= 0) return names->shorts[place];
    size_t low = names->first[(uint8_t)text[0]], high = names->first[(uint8_t)text[0] + 1];
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_bytes(names->all[middle].text, names->all[middle].bytes, text, bytes);
        if (!order) return names->all[middle].number;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

clv__token_names_walk clv__token_names_begin(const clv__token_names *names) {
    return (clv__token_names_walk){0, names->n, 0};
}

/** The first from `low` on whose byte at a depth is at least `byte`. */
static size_t bound(const clv__token_names *names, size_t low, size_t high, size_t depth, unsigned byte) {
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if ((uint8_t)names->all[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool clv__token_names_step(const clv__token_names *names, clv__token_names_walk *walk, char byte,
                           int32_t *number) {
    const unsigned want = (uint8_t)byte;
    *number = -1;
    if (walk->depth == 0) {
        walk->low = names->first[want], walk->high = names->first[want + 1];
    } else {
        if (walk->low < walk->high && names->all[walk->low].bytes == walk->depth)
            walk->low++; // it ended before
        walk->low = bound(names, walk->low, walk->high, walk->depth, want);
        walk->high = bound(names, walk->low, walk->high, walk->depth, want + 1);
    }
    walk->depth++;
    if (walk->low >= walk->high) return false;
    if (names->all[walk->low].bytes == walk->depth) *number = names->all[walk->low].number;
    return true;
}

void clv__token_names_reset(clv__token_names *names) {
    free(names->all);
    *names = (clv__token_names){0};
}
