// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "cleave/status.h"

#include <stdlib.h>
#include <string.h>

#if defined(__has_feature) // clang's way to say it
#if __has_feature(address_sanitizer)
#define CHECKS_LEAKS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CHECKS_LEAKS
#endif
#ifdef CHECKS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

enum { PAGE = 4096 };

void *clv__alloc(size_t count, size_t size) {
    return calloc(count ? count : 1, size ? size : 1); // calloc checks the product
}

bool clv__grow(void *items, size_t *room, size_t need, size_t size) {
    if (need <= *room) return true;
    size_t next = *room ? *room : 8, bytes;
    while (next < need) {
        if (!clv__size_mul(next, 2, &next)) return false;
    }
    if (!clv__size_mul(next, size, &bytes)) return false;
    void *old;
    memcpy(&old, items, sizeof old);
    char *moved = realloc(old, bytes);
    if (!moved) return false;
    memset(moved + *room * size, 0, (next - *room) * size);
    memcpy(items, &moved, sizeof moved);
    *room = next;
    return true;
}

typedef struct owned {
    void (*end)(void *what);
    _Alignas(max_align_t) char what[];
} owned;

void *clv__owned(size_t bytes, void (*end)(void *what)) {
    size_t all;
    owned *block = clv__size_add(sizeof(owned), bytes, &all) ? calloc(1, all) : NULL;
    if (!block) return NULL;
    block->end = end;
    return block->what;
}

void clv_free(void *what) {
    if (!what) return;
    owned *block = (owned *)(void *)((char *)what - offsetof(owned, what));
    if (block->end) block->end(what);
    free(block);
}

char *clv__strdup(const char *text) {
    return text ? strdup(text) : NULL;
}

void clv__leave(void *memory) {
#ifdef CHECKS_LEAKS
    if (memory) __lsan_ignore_object(memory);
#endif
    (void)memory;
}

clv__pages *clv__pages_create(size_t bytes) {
    clv__pages *block = clv__alloc(1, sizeof *block);
    size_t room = clv__size_align(bytes ? bytes : 1, PAGE);
    if (!block || room < bytes || !(block->pointer = aligned_alloc(PAGE, room))) {
        free(block);
        return NULL;
    }
    atomic_init(&block->users, 1);
    return block;
}

void clv__pages_take(clv__pages *block) {
    atomic_fetch_add(&block->users, 1);
}

void clv__pages_drop(clv__pages *block) {
    if (!block || atomic_fetch_sub(&block->users, 1) != 1) return;
    free(block->pointer);
    free(block);
}

struct clv__arena_block {
    struct clv__arena_block *next;
    size_t used, bytes;
    _Alignas(max_align_t) char data[];
};

#ifdef CLEAVE_SANITIZED // each allocation is a block of its own, so that what reaches beyond it is seen
enum { BLOCK_BYTES = 0, ALIGNMENT = 1 };
#else
enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = _Alignof(max_align_t) };
#endif

void *clv__arena_alloc(clv__arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!clv__size_mul(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = clv__size_align(bytes ? bytes : 1, ALIGNMENT);
    struct clv__arena_block *block = arena->blocks;
    if (!block || block->bytes - block->used < bytes) {
        size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = calloc(1, sizeof *block + room);
        if (!block) return NULL;
        block->bytes = room;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = block->data + block->used;
    block->used += bytes;
    return memory;
}

char *clv__arena_strdup(clv__arena *arena, const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = clv__arena_alloc(arena, n, 1);
    if (copy) memcpy(copy, text, n);
    return copy;
}

void clv__arena_reset(clv__arena *arena) {
    while (arena->blocks) {
        struct clv__arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
