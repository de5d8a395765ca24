// SPDX-License-Identifier: Apache-2.0
// Loaded before a program (LD_PRELOAD): the n-th allocation of the process fails, CLV_TEST_ALLOCATION=n. With
// CLV_TEST_ALLOCATION_REST=1 every one after it fails too. The file CLV_TEST_FAULT_MARK is made when the first fails, so that
// the script knows whether the program came so far.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// glibc's own, under names that need no look-up (which would allocate).
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long count;
static long at = -1; // 0: no fault is wanted
static bool rest;

static atomic_bool started; // main has begun: what libraries allocate while they are loaded is not ours
static int (*program)(int, char **, char **);

static int begin(int argc, char **argv, char **environment) {
    atomic_store(&started, true);
    return program(argc, argv, environment);
}

typedef int start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                  void (*)(void), void *);
start __libc_start_main;
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
    start *real = (start *)dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return real(begin, argc, argv, init, fini, rtld_fini, stack_end);
}

static void read_environment(void) {
    const char *n = getenv("CLV_TEST_ALLOCATION");
    rest = getenv("CLV_TEST_ALLOCATION_REST") != NULL;
    at = n ? strtol(n, NULL, 10) : 0;
}

static bool fails(void) {
    if (!atomic_load(&started)) return false;
    if (at < 0) read_environment();
    if (at == 0) return false;
    long now = atomic_fetch_add(&count, 1) + 1;
    if (now != at && !(rest && now > at)) return false;
    if (now == at) {
        const char *mark = getenv("CLV_TEST_FAULT_MARK");
        int fd = mark ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
        if (fd >= 0) close(fd);
    }
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes) {
    return fails() ? NULL : __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes) {
    return fails() ? NULL : __libc_calloc(n, bytes);
}
void *realloc(void *old, size_t bytes) {
    return fails() ? NULL : __libc_realloc(old, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void **out, size_t alignment, size_t bytes) {
    *out = fails() ? NULL : __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}
