// SPDX-License-Identifier: Apache-2.0
// One file per program in a folder that only its owner may write:
//     header (below) · text: what it is for, for `cleave cache list` · the driver's binary
// written to a temporary name in the same folder and renamed, so that a reader sees a whole file or none. A
// binary is code that the driver will run, so a folder that others can write is not used at all.
#include "device/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/folder.h"
#include "base/shown.h"
#include "base/text.h"

enum { FORMAT_VERSION = 2, NAME_BYTES = 32 + 6 };
static const char magic[8] = "CLVPROG";
static const char suffix[] = ".prog";
static const char temporary[] = "tmp-";
static const uint64_t most_bytes = 1u << 30; // no binary is that large; a header that says so is not believed

/** In the byte order of the machine: binaries of drivers do not travel anyway. */
typedef struct header {
    char magic[8];
    uint32_t version, text_bytes;
    uint64_t key[2];
    uint64_t binary_bytes;
    uint64_t hash; // of text and binary, and of where one ends and the other begins
} header;

clv__cache_key clv__cache_key_of(const clv_device *device, const char *source, const char *options) {
    const clv_device_info *info = &device->info;
    const char *parts[] = {CLEAVE_VERSION,      source,        options,
                           info->label,         info->vendor,  info->driver,
                           info->platform_name, info->opencl_c};
    XXH128_hash_t hash = {FORMAT_VERSION, 0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts;
         i++) { // chained, so that no two lists of parts look alike
        XXH128_hash_t next = XXH3_128bits_withSeed(parts[i], strlen(parts[i]), hash.low64);
        hash = (XXH128_hash_t){next.low64, next.high64 ^ (hash.high64 * 0x9e3779b97f4a7c15u)};
    }
    return (clv__cache_key){{hash.low64, hash.high64}};
}

static void file_name(clv__cache_key key, char *name) {
    snprintf(name, NAME_BYTES, "%016" PRIx64 "%016" PRIx64 "%s", key.word[1], key.word[0], suffix);
}

// ---- The folder -------------------------------------------------------------------------------------------

/** The first fault is told; a run without a cache is slower at the start and otherwise the same. */
static void warn_once(clv_runtime *runtime, const char *what, const char *path, const char *why) {
    pthread_mutex_lock(&runtime->report_lock);
    bool told = runtime->warned_cache;
    runtime->warned_cache = true;
    pthread_mutex_unlock(&runtime->report_lock);
    if (!told)
        clv__log(runtime, CLV_LOG_WARNING, "the program cache %s %s: %s; programs are compiled without it",
                 path, what, why);
}

/** The folder, open; -1 if there is none that can be used. `make`: create it if it is missing. */
static int open_folder(clv_runtime *runtime, bool make) {
    const char *path = runtime->config.cache_dir;
    if (!*path) return -1; // neither a setting nor a home
    if (make && !clv__folder_make(path)) {
        warn_once(runtime, "cannot be made", path, strerror(errno));
        return -1;
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        if (errno != ENOENT) warn_once(runtime, "cannot be opened", path, strerror(errno));
        return -1;
    }
    const char *why = clv__distrust(folder);
    if (why) {
        warn_once(runtime, "is not used", path, why);
        close(folder);
        return -1;
    }
    return folder;
}

bool clv__cache_make_folder(clv_runtime *runtime) {
    int folder = open_folder(runtime, true);
    if (folder < 0) return false;
    close(folder);
    return true;
}

// ---- One file ---------------------------------------------------------------------------------------------

static bool read_all(int file, void *data, size_t bytes) {
    for (char *at = data; bytes;) {
        ssize_t n = read(file, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t bytes) {
    for (const char *at = data; bytes;) {
        ssize_t n = write(file, at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/** Text and binary of a whole, unchanged file of ours, in one malloc'd block; NULL for anything else. */
static char *load(int folder, const char *name, header *head) {
    int file = openat(folder, name,
                      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); // a pipe would wait for a writer
    if (file < 0) return NULL;
    struct stat stat;
    char *data = NULL;
    bool good = fstat(file, &stat) == 0 && S_ISREG(stat.st_mode) && !clv__distrust(file) &&
                read_all(file, head, sizeof *head) && memcmp(head->magic, magic, sizeof magic) == 0 &&
                head->version == FORMAT_VERSION && head->binary_bytes <= most_bytes &&
                head->text_bytes <= 1 << 16 &&
                (uint64_t)stat.st_size == sizeof *head + head->text_bytes + head->binary_bytes;
    size_t bytes = good ? head->text_bytes + (size_t)head->binary_bytes : 0;
    good = good && (data = malloc(bytes + 1)) && read_all(file, data, bytes) &&
           XXH3_64bits_withSeed(data, bytes, head->text_bytes) == head->hash;
    close(file);
    if (good) return data;
    free(data);
    return NULL;
}

bool clv__cache_read(const clv_device *device, clv__cache_key key, void **binary, size_t *bytes) {
    *binary = NULL;
    *bytes = 0;
    int folder = open_folder(device->runtime, false);
    if (folder < 0) return false;
    char name[NAME_BYTES];
    file_name(key, name);
    header head;
    char *data = load(folder, name, &head);
    close(folder);
    if (!data) return false;
    if (head.key[0] != key.word[0] || head.key[1] != key.word[1] ||
        head.binary_bytes == 0) { // a renamed file
        free(data);
        return false;
    }
    memmove(data, data + head.text_bytes, (size_t)head.binary_bytes);
    *binary = data;
    *bytes = (size_t)head.binary_bytes;
    return true;
}

void clv__cache_remove(const clv_device *device, clv__cache_key key) {
    int folder = open_folder(device->runtime, false);
    if (folder < 0) return;
    char name[NAME_BYTES];
    file_name(key, name);
    unlinkat(folder, name, 0);
    close(folder);
}

void clv__cache_write(clv_device *device, clv__cache_key key, const void *binary, size_t bytes) {
    clv_runtime *runtime = device->runtime;
    int folder = open_folder(runtime, true);
    if (folder < 0) return;
    clv__text text = {0};
    clv__text_add(&text, "%.200s, %.200s, driver %.200s", device->info.label, device->info.platform_name,
                  device->info.driver);
    size_t text_bytes = text.n;
    clv__text_add_bytes(&text, binary, bytes);
    header head = {.version = FORMAT_VERSION,
                   .text_bytes = (uint32_t)text_bytes,
                   .key = {key.word[0], key.word[1]},
                   .binary_bytes = bytes,
                   .hash = XXH3_64bits_withSeed(clv__text_get(&text), text.n, text_bytes)};
    memcpy(head.magic, magic, sizeof magic);
    char name[NAME_BYTES], made[NAME_BYTES + 64];
    file_name(key, name);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(made, sizeof made, "%s%ld-%lx-%s", temporary, (long)getpid(), (unsigned long)now.tv_nsec, name);
    int file = text.failed ? -1 : openat(folder, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
        bool good = write_all(file, &head, sizeof head) && write_all(file, text.data, text.n);
        good = close(file) == 0 && good;
        good = good && renameat(folder, made, folder, name) == 0;
        int why = errno;
        if (!good) {
            unlinkat(folder, made, 0);
            warn_once(runtime, "cannot be written", runtime->config.cache_dir, strerror(why));
        }
    } else if (!text.failed) {
        warn_once(runtime, "cannot be written", runtime->config.cache_dir, strerror(errno));
    }
    clv__text_reset(&text);
    close(folder);
}

// ---- Public: looking at the cache, and clearing it --------------------------------------------------------

/** Is it one of our files? Nothing else in the folder is touched. */
static bool is_ours(const char *name, bool *half_written) {
    size_t n = strlen(name);
    *half_written = strncmp(name, temporary, strlen(temporary)) == 0;
    if (n < NAME_BYTES - 1 || strcmp(name + n - strlen(suffix), suffix) != 0) return false;
    return *half_written || (n == NAME_BYTES - 1 && strspn(name, "0123456789abcdef") == 32);
}

/** Calls `each` for every file of ours. A missing folder is an empty one. */
static clv_status walk(clv_runtime *runtime,
                       void (*each)(void *user, int folder, const char *name, bool half), void *user) {
    const char *path = runtime->config.cache_dir;
    if (!*path) return CLV_OK;
    DIR *folder = opendir(path);
    if (!folder && errno == ENOENT) return CLV_OK;
    if (!folder)
        CLV_FAIL(&runtime->error, CLV_E_IO, "the program cache %s cannot be read: %s", path, strerror(errno));
    const char *why = clv__distrust(dirfd(folder));
    if (why) {
        closedir(folder);
        CLV_FAIL(&runtime->error, CLV_E_IO, "the program cache %s is not used: %s", path, why);
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        bool half;
        if (is_ours(entry->d_name, &half)) each(user, dirfd(folder), entry->d_name, half);
    }
    closedir(folder);
    return CLV_OK;
}

typedef struct lister {
    void (*each)(void *user, const clv_cache_entry *entry);
    void *user;
} lister;

static void list_one(void *user, int folder, const char *name, bool half) {
    const lister *to = user;
    struct stat stat;
    if (half || fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return;
    header head;
    char *data = load(folder, name, &head);
    if (data) data[head.text_bytes] = 0; // the binary is not wanted here
    if (data) clv__show(data, false);
    to->each(to->user, &(clv_cache_entry){.file = name,
                                          .made_for = data ? data : "",
                                          .bytes = (uint64_t)stat.st_size,
                                          .modified = (int64_t)stat.st_mtime,
                                          .valid = data != NULL});
    free(data);
}

clv_status clv_cache_list(clv_runtime *runtime, void (*each)(void *user, const clv_cache_entry *entry),
                          void *user) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), each));
    lister to = {each, user};
    return walk(runtime, list_one, &to);
}

typedef struct remover {
    int files;
    uint64_t bytes;
} remover;

static void remove_one(void *user, int folder, const char *name, bool half) {
    remover *to = user;
    struct stat stat;
    if (fstatat(folder, name, &stat, AT_SYMLINK_NOFOLLOW) != 0 || unlinkat(folder, name, 0) != 0 || half)
        return;
    to->files++;
    to->bytes += (uint64_t)stat.st_size;
}

clv_status clv_cache_clear(clv_runtime *runtime, int *files, uint64_t *bytes) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), runtime));
    remover to = {0};
    clv_status status = walk(runtime, remove_one, &to);
    if (files) *files = to.files;
    if (bytes) *bytes = to.bytes;
    return status;
}
