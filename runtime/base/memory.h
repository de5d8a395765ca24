// SPDX-License-Identifier: Apache-2.0
// Host memory: checked sizes, zeroed allocation, and an arena that frees everything at once.
#ifndef CLV_BASE_MEMORY_H
#define CLV_BASE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** a * b into *out; false if it overflows. */
static inline bool clv__size_mul(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/** a + b into *out; false if it overflows. */
static inline bool clv__size_add(size_t a, size_t b, size_t *out) {
    return !__builtin_add_overflow(a, b, out);
}

/** `bytes` rounded up to a multiple of `alignment` (a power of two). */
static inline size_t clv__size_align(size_t bytes, size_t alignment) {
    return (bytes + alignment - 1) & ~(alignment - 1);
}

/** Zeroed memory for count * size bytes; NULL if there is none or the product overflows. Free with free(). */
void *clv__alloc(size_t count, size_t size);

/**
 * Grow the array *items (elements of `size` bytes, room for *room) so that `need` fit. New elements are zero.
 * false, and nothing changed, if memory is out.
 */
bool clv__grow(void *items, size_t *room, size_t need, size_t size);

/** Zeroed memory that a caller of the library will own: clv_free calls `end` with it, and gives it up.
 *  `end` NULL: it points to nothing of its own. NULL if there is no memory. */
void *clv__owned(size_t bytes, void (*end)(void *what));

/** A copy of a string; NULL in, NULL out. */
char *clv__strdup(const char *text);

/** Never free this: a device that does not answer may still write there. It is no leak to a checker of leaks.
 *  NULL is fine. */
void clv__leave(void *memory);

/** Pages that several may use, on devices too; they go with the last. */
typedef struct clv__pages {
    void *pointer;
    atomic_int users;
} clv__pages;

/** For one user; NULL if memory is out. */
clv__pages *clv__pages_create(size_t bytes);
void clv__pages_take(clv__pages *block);
/** One user less. NULL is fine. */
void clv__pages_drop(clv__pages *block);

/** Blocks of memory that live until the arena goes. Zero-initialised is an empty arena. */
typedef struct clv__arena {
    struct clv__arena_block *blocks;
} clv__arena;

/** Zeroed memory, aligned for any type; NULL if memory is out. */
void *clv__arena_alloc(clv__arena *arena, size_t count, size_t size);
char *clv__arena_strdup(clv__arena *arena, const char *text);
void clv__arena_reset(clv__arena *arena);

#endif
