// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz driver as a test, without libFuzzer: every file of the corpus and of the golden folder, then mutations of
// them, chosen by a printed seed. An input that breaks a promise is left as `crash-SEED-NUMBER`.
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "harness/harness.h"

#ifndef FUZZ_MUTATIONS
#define FUZZ_MUTATIONS 20000
#endif
enum { MUTATIONS = FUZZ_MUTATIONS, MAX_BYTES = 8192, MAX_FILES = 256 };

static struct {
    uint8_t bytes[MAX_BYTES];
    size_t size;
} files[MAX_FILES];
static int n_files;

static struct { // what runs now, for the one that is left behind
    uint8_t *bytes;
    size_t size;
    uint64_t seed;
    int number;
} now;

static void leave_input(void) {
    char name[64];
    snprintf(name, sizeof name, "crash-%llu-%d", (unsigned long long)now.seed, now.number);
    FILE *file = fopen(name, "wb");
    if (!file) return;
    fwrite(now.bytes, 1, now.size, file);
    fclose(file);
    fprintf(stderr, "the input is left in %s\n", name);
}

static void on_signal(int number) {
    leave_input();
    signal(number, SIG_DFL);
    raise(number);
}

// There with the sanitizers only.
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void run(const uint8_t *bytes, size_t size) {
    now.bytes = malloc(size ? size : 1); // of the exact size, so that a read past the end is seen
    assert_non_null(now.bytes);
    memcpy(now.bytes, bytes, size);
    now.size = size;
    LLVMFuzzerTestOneInput(now.bytes, size);
    free(now.bytes);
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name); // in no language's order
}

static void take_folder(const char *folder) {
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, by_name);
    if (n < 0) fail_msg("no folder %s", folder);
    for (int i = 0; i < n; i++) {
        char path[1024];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MAX_BYTES / 2) {
            assert_true(n_files < MAX_FILES);
            FILE *file = fopen(path, "rb");
            assert_non_null(file);
            files[n_files].size = fread(files[n_files].bytes, 1, MAX_BYTES, file);
            fclose(file);
            n_files++;
        }
        free(entries[i]);
    }
    free(entries);
}

/** Change the bytes a little; returns the new size. */
static size_t mutate(uint8_t *bytes, size_t size, clv__random *random) {
    static const uint64_t edges[] = {0,      1,        8,          0x7f,       0x80,      0xff,
                                     0xffff, 1u << 31, UINT32_MAX, 1ull << 63, UINT64_MAX};
    uint32_t n = (uint32_t)size, at = n ? clv__random_below(random, n) : 0, left = n - at;
    uint32_t length = left ? 1 + clv__random_below(random, left < 32 ? left : 32) : 0;
    uint64_t edge = edges[clv__random_below(random, sizeof edges / sizeof *edges)];
    switch (clv__random_below(random, 8)) {
    case 0: // a bit
        if (n) bytes[at] ^= (uint8_t)(1u << clv__random_below(random, 8));
        return size;
    case 1: // a byte
        if (n) bytes[at] = (uint8_t)clv__random_below(random, 256);
        return size;
    case 2: // a number, of either order
        for (uint32_t i = 0; i < 8 && i < left; i++) bytes[at + i] = (uint8_t)(edge >> 8 * i);
        return size;
    case 3:
        for (uint32_t i = 0; i < 4 && i < left; i++) bytes[at + i] = (uint8_t)(edge >> 8 * (3 - i));
        return size;
    case 4: // take a piece out
        memmove(bytes + at, bytes + at + length, left - length);
        return size - length;
    case 5: // repeat a piece
        if (n + length > MAX_BYTES) return size;
        memmove(bytes + at + length, bytes + at, left);
        return size + length;
    case 6: // cut
        return at;
    default: { // the end of another file
        uint32_t other = clv__random_below(random, (uint32_t)n_files);
        if (at >= files[other].size) return size;
        memcpy(bytes + at, files[other].bytes + at, files[other].size - at);
        return files[other].size;
    }
    }
}

TEST(files_and_mutations) {
    take_folder(CORPUS);
    take_folder(CLV_TEST_SOURCE_DIR "/tests/golden/io");
    assert_true(n_files > 10);
    now.seed = clv__test_seed();
    signal(SIGABRT, on_signal);
    signal(SIGSEGV, on_signal);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(leave_input);
    for (int i = 0; i < n_files; i++) {
        now.number = -1 - i;
        run(files[i].bytes, files[i].size);
    }
    static uint8_t bytes[2 * MAX_BYTES];
    for (now.number = 0; now.number < MUTATIONS; now.number++) {
        clv__random random;
        clv__random_init(&random, now.seed, CLV__STREAM_TEST, (uint64_t)now.number);
        uint32_t file = clv__random_below(&random, (uint32_t)n_files),
                 times = 1 + clv__random_below(&random, 5);
        size_t size = files[file].size;
        memcpy(bytes, files[file].bytes, size);
        for (uint32_t i = 0; i < times; i++) size = mutate(bytes, size, &random);
        run(bytes, size);
    }
}

TEST_MAIN(NULL, NULL)
