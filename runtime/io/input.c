// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/nearest.h"
#include "io/file.h"
#include "io/shown.h"

static clv_status fail(clv__error *error, const char *path, int code) {
    clv__shown_text reason;
    clv__nearest nearest;
    CLV_FAIL(error, CLV_E_IO, "cannot read '%s': %s%s", path, clv__system_reason(code, &reason),
             code == ENOENT ? clv__nearest_file(&nearest, path) : "");
}

clv_status clv__input_open(clv__error *error, const char *path, clv__input *input) {
    *input = (clv__input){.error = error, .path = path, .fd = -1};
    if (!path || !*path) CLV_FAIL(error, CLV_E_VALUE, "a file to read needs a name");
    // Not blocking: a pipe without a writer must give a sentence, not wait. Regular files do not care.
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) return fail(error, path, errno);
    struct stat info;
    if (fstat(fd, &info) != 0) {
        int code = errno;
        close(fd);
        return fail(error, path, code);
    }
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        CLV_FAIL(error, CLV_E_IO, "cannot read '%s': it is %s, and a file is wanted", path,
                 S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
    }
    input->fd = fd;
    input->bytes = (uint64_t)info.st_size;
    return CLV_OK;
}

void clv__input_memory(clv__error *error, const char *path, const void *bytes, size_t size,
                       clv__input *input) {
    *input = (clv__input){.error = error, .path = path, .memory = bytes, .fd = -1, .bytes = size};
}

clv_status clv__input_read(const clv__input *input, uint64_t offset, void *to, size_t bytes) {
    if (offset > input->bytes || bytes > input->bytes - offset) {
        CLV_FAIL(input->error, CLV_E_INTERNAL,
                 "'%s': a read of %zu bytes at %" PRIu64 " is outside its %" PRIu64, input->path, bytes,
                 offset, input->bytes);
    }
    if (input->fd < 0) {
        if (bytes > 0) memcpy(to, input->memory + offset, bytes);
        return CLV_OK;
    }
    char *at = to;
    while (bytes > 0) {
        size_t piece = bytes < (1u << 30) ? bytes : 1u << 30; // systems cut single reads at 2 GiB
        ssize_t n = pread(input->fd, at, piece, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail(input->error, input->path, errno);
        if (n == 0) {
            CLV_FAIL(input->error, CLV_E_IO,
                     "cannot read '%s': it became shorter while it was read (at byte %" PRIu64 ")",
                     input->path, offset);
        }
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return CLV_OK;
}

clv_status clv__input_map(const clv__input *input, const uint8_t **out) {
    *out = (const uint8_t *)"";
    if (input->bytes > SIZE_MAX)
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED, "'%s' is larger than this machine's addresses",
                 input->path);
    void *bytes =
        input->bytes ? mmap(NULL, (size_t)input->bytes, PROT_READ, MAP_PRIVATE, input->fd, 0) : NULL;
    if (bytes == MAP_FAILED) CLV_FAIL(input->error, CLV_E_IO, "cannot map '%s' into memory", input->path);
    if (bytes) *out = bytes;
    return CLV_OK;
}

void clv__input_close(clv__input *input) {
    if (input->fd >= 0) close(input->fd);
    input->fd = -1;
}
