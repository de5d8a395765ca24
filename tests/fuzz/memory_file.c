// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "fuzz/memory_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_FD = 1 << 20, FOLDER_FD }; // higher than any that the system gives

static const char *file_path, *folder_path, *entry_name;
static const char *bytes;
static size_t n_bytes, position, listed;
static char folder_itself; // its address stands for a DIR

void memory_file_set(const char *path, const void *data, size_t size) {
    file_path = path, bytes = data, n_bytes = size;
}

void memory_file_folder(const char *folder, const char *entry) {
    folder_path = folder, entry_name = entry;
}

static bool is(const char *name, const char *known) {
    return known && strcmp(name, known) == 0;
}

static int tell(struct stat *out, mode_t mode, size_t size) {
    static uid_t owner;
    if (!owner) owner = geteuid();
    *out = (struct stat){.st_dev = 1, .st_ino = 1, .st_mode = mode, .st_uid = owner, .st_size = (off_t)size};
    return 0;
}

static int open_memory(int descriptor) {
    position = 0;
    return descriptor;
}

static size_t copy_from(size_t from, void *to, size_t n) {
    const size_t left = from < n_bytes ? n_bytes - from : 0;
    if (n > left) n = left;
    if (n) memcpy(to, bytes + from, n);
    return n;
}

// ---- descriptors ------------------------------------------------------------------------------------------

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __real_close(int file);
int __wrap_close(int file);
int __real_fstat(int file, struct stat *out);
int __wrap_fstat(int file, struct stat *out);
int __real_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out);
int __real_fstatat(int folder, const char *path, struct stat *out, int flags);
int __wrap_fstatat(int folder, const char *path, struct stat *out, int flags);
ssize_t __real_read(int file, void *to, size_t n);
ssize_t __wrap_read(int file, void *to, size_t n);
ssize_t __real_pread(int file, void *to, size_t n, off_t offset);
ssize_t __wrap_pread(int file, void *to, size_t n, off_t offset);

int __wrap_open(const char *path, int flags, ...) {
    if (is(path, file_path)) return open_memory(FILE_FD);
    if (is(path, folder_path)) return FOLDER_FD;
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return __real_open(path, flags, mode);
}

int __wrap_openat(int folder, const char *path, int flags, ...) {
    if (folder == FOLDER_FD && is(path, entry_name)) return open_memory(FILE_FD);
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return __real_openat(folder, path, flags, mode);
}

int __wrap_close(int file) {
    return file == FILE_FD || file == FOLDER_FD ? 0 : __real_close(file);
}

int __wrap_fstat(int file, struct stat *out) {
    if (file == FILE_FD) return tell(out, S_IFREG | 0600, n_bytes);
    return file == FOLDER_FD ? tell(out, S_IFDIR | 0700, 0) : __real_fstat(file, out);
}

int __wrap_stat(const char *path, struct stat *out) {
    return is(path, file_path) ? tell(out, S_IFREG | 0600, n_bytes) : __real_stat(path, out);
}

int __wrap_fstatat(int folder, const char *path, struct stat *out, int flags) {
    if (folder == FOLDER_FD && is(path, entry_name)) return tell(out, S_IFREG | 0600, n_bytes);
    return __real_fstatat(folder, path, out, flags);
}

ssize_t __wrap_read(int file, void *to, size_t n) {
    if (file != FILE_FD) return __real_read(file, to, n);
    n = copy_from(position, to, n);
    position += n;
    return (ssize_t)n;
}

ssize_t __wrap_pread(int file, void *to, size_t n, off_t offset) {
    return file == FILE_FD ? (ssize_t)copy_from((size_t)offset, to, n) : __real_pread(file, to, n, offset);
}

// ---- streams ----------------------------------------------------------------------------------------------

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

static ssize_t stream_read(void *cookie, char *to, size_t n) {
    return __wrap_read(FILE_FD, to, n);
}

static int stream_seek(void *cookie, off64_t *to, int from) {
    const int64_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? (int64_t)position : (int64_t)n_bytes;
    if (base + *to < 0) return -1;
    position = (size_t)(*to += base);
    return 0;
}

FILE *__wrap_fopen(const char *path, const char *mode) {
    if (!is(path, file_path) || *mode != 'r') return __real_fopen(path, mode);
    open_memory(FILE_FD);
    return fopencookie(NULL, "r", (cookie_io_functions_t){.read = stream_read, .seek = stream_seek});
}

// ---- the folder -------------------------------------------------------------------------------------------

DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
struct dirent *__real_readdir(DIR *folder);
struct dirent *__wrap_readdir(DIR *folder);
int __real_dirfd(DIR *folder);
int __wrap_dirfd(DIR *folder);
int __real_closedir(DIR *folder);
int __wrap_closedir(DIR *folder);

DIR *__wrap_opendir(const char *path) {
    if (!is(path, folder_path)) return __real_opendir(path);
    listed = 0;
    return (DIR *)(void *)&folder_itself;
}

struct dirent *__wrap_readdir(DIR *folder) {
    static struct dirent entry;
    if ((void *)folder != &folder_itself) return __real_readdir(folder);
    if (listed++) return NULL;
    entry.d_type = DT_REG;
    snprintf(entry.d_name, sizeof entry.d_name, "%s", entry_name);
    return &entry;
}

int __wrap_dirfd(DIR *folder) {
    return (void *)folder == &folder_itself ? FOLDER_FD : __real_dirfd(folder);
}

int __wrap_closedir(DIR *folder) {
    return (void *)folder == &folder_itself ? 0 : __real_closedir(folder);
}
