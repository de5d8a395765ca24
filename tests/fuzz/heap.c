// SPDX-License-Identifier: Apache-2.0
// What the address sanitizer would see, as far as it costs little, for the preset fuzz-fast: the input ends where a page that nobody
// may touch begins; each allocation has a mark before and behind it, is filled when it is made and when it is freed; memory that is
// freed twice, or was never given out, aborts; and an input that leaves more allocations each time it is run is a leak. A read past
// the end of an allocation is not seen: that is for the preset fuzz, which runs a share of the inputs.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#undef LLVMFuzzerTestOneInput // the driver's has another name (CMakeLists.txt)
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int fuzz_driver_one_input(const uint8_t *data, size_t size);

void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);

enum { FRONT = 32, TAIL = 8, FILLED = 256, INPUT_BYTES = 1 << 20, TIMES = 4 };

/** Just before what is given out. */
typedef struct front {
    void *base; // what the C library gave
    size_t bytes;
    uint64_t unused, mark;
} front;

_Static_assert(sizeof(front) == FRONT, "what is given out is aligned to 16");
static const uint64_t ALIVE = 0x8f1bbcdcca62c1d6, DEAD = 0x5a827999d00dfeed, END = 0x6ed9eba1c0ffee11;
static atomic_long alive;

static _Noreturn void fail(const char *what) {
    const char *parts[] = {"fuzz/heap.c: ", what, "\n"};
    for (int i = 0; i < 3; i++) (void)!write(2, parts[i], strlen(parts[i]));
    abort();
}

static size_t filled(size_t bytes) {
    return bytes < FILLED ? bytes : FILLED;
}

static void *give(void *base, size_t gap, size_t bytes) {
    if (!base) return NULL;
    char *user = (char *)base + gap;
    ((front *)(void *)user)[-1] = (front){.base = base, .bytes = bytes, .mark = ALIVE ^ (uintptr_t)user};
    memset(user, 0xa5, filled(bytes));
    memcpy(user + bytes, &END, TAIL);
    atomic_fetch_add_explicit(&alive, 1, memory_order_relaxed);
    return user;
}

static front *checked(void *pointer) {
    front *f = (front *)pointer - 1;
    if (f->mark == (DEAD ^ (uintptr_t)pointer)) fail("memory is used or freed after it was freed");
    if (f->mark != (ALIVE ^ (uintptr_t)pointer))
        fail("no memory that was given out, or written to before its beginning");
    if (memcmp((char *)pointer + f->bytes, &END, TAIL) != 0) fail("written past the end of an allocation");
    return f;
}

void *malloc(size_t bytes) {
    if (bytes > SIZE_MAX / 2) return errno = ENOMEM, NULL;
    return give(__libc_malloc(bytes + FRONT + TAIL), FRONT, bytes);
}

void free(void *pointer) {
    if (!pointer) return;
    const int code = errno;
    front *f = checked(pointer);
    f->mark = DEAD ^ (uintptr_t)pointer;
    memset(pointer, 0xdb, filled(f->bytes));
    atomic_fetch_sub_explicit(&alive, 1, memory_order_relaxed);
    __libc_free(f->base);
    errno = code;
}

void *calloc(size_t n, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(n, each, &bytes)) return errno = ENOMEM, NULL;
    void *pointer = malloc(bytes);
    if (pointer) memset(pointer, 0, bytes);
    return pointer;
}

void *realloc(void *pointer, size_t bytes) {
    if (!pointer) return malloc(bytes);
    if (!bytes) return free(pointer), NULL;
    const size_t before = checked(pointer)->bytes;
    void *moved = malloc(bytes);
    if (!moved) return NULL;
    memcpy(moved, pointer, before < bytes ? before : bytes);
    free(pointer);
    return moved;
}

void *memalign(size_t alignment, size_t bytes) {
    const size_t gap = alignment < FRONT ? FRONT : alignment;
    if (bytes > SIZE_MAX / 2 - gap) return errno = ENOMEM, NULL;
    return give(__libc_memalign(gap, bytes + gap + TAIL), gap, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *pointer = memalign(alignment, bytes);
    if (!pointer) return ENOMEM;
    *out = pointer;
    return 0;
}

static uint8_t *end_of_input(void) {
    static uint8_t *end;
    if (end) return end;
    uint8_t *pages = mmap(NULL, INPUT_BYTES + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages, INPUT_BYTES, PROT_READ | PROT_WRITE))
        fail("no memory for the input");
    mallopt(M_MMAP_THRESHOLD, 16 << 20); // pages that were had are kept: having them again was half the time
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    return end = pages + INPUT_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > INPUT_BYTES) return 0;
    uint8_t *input = end_of_input() - size;
    if (size) memcpy(input, data, size);
    int grown = 0;
    for (int i = 0; i < TIMES; i++) { // what is made once and kept is made the first time
        const long before = atomic_load(&alive);
        const int result = fuzz_driver_one_input(input, size);
        if (atomic_load(&alive) <= before) return result;
        grown++;
    }
    if (grown == TIMES) fail("a leak: each time the input is run, more allocations are left");
    return 0;
}
