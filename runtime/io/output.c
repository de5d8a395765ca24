// SPDX-License-Identifier: Apache-2.0
// Writing a file so that a reader, at any moment and after any crash, finds a whole one: the old or the new.
// Source: POSIX.1-2017, rename() and fsync(); the order (sync the file, rename, sync the folder) is what both
// promise.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "io/array.h"
#include "io/file.h"
#include "io/shown.h"

/** One sentence for a fault of the system; `errno` as it was after the call that failed. */
static clv_status fail(clv__error *error, const char *path, const char *doing, int code) {
    if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
        CLV_FAIL(error, CLV_E_IO,
                 "cannot write '%s': %s; what was there before is untouched. Free some space, or "
                 "write to another folder",
                 path,
                 code == ENOSPC   ? "the disk is full"
                 : code == EDQUOT ? "your disk quota is used up"
                                  : "it would become larger than files may be here");
    }
    if (code == ENAMETOOLONG)
        CLV_FAIL(error, CLV_E_IO,
                 "cannot write '%s': its name is too long, as '.tmp', '.prev' and '.prev.tmp' must have room "
                 "behind it; choose a shorter one",
                 path);
    clv__shown_text reason;
    CLV_FAIL(error, CLV_E_IO, "cannot write '%s': %s fails: %s", path, doing,
             clv__system_reason(code, &reason));
}

/** `a` and `b` joined; NULL if memory is out. */
static char *join(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    char *text = clv__alloc(n + m + 1, 1);
    if (!text) return NULL;
    memcpy(text, a, n);
    memcpy(text + n, b, m);
    return text;
}

char *clv__previous_path(const char *path) {
    return join(path, ".prev");
}

static clv_status out_of_memory(clv__error *error, const char *path) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "cannot write '%s': no host memory for its name", path);
}

static int open_again(const char *path, int flags, mode_t mode) {
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

/** The folder that the file of that name is in; NULL if memory is out. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = clv__strdup(slash ? path : ".");
    if (folder && slash) folder[slash > path ? slash - path : 1] = 0;
    return folder;
}

/** The temporary cannot be made: its folder is what lacks, or does not let us. */
static clv_status fail_folder(const clv__output *output, int code) {
    if (code == ENAMETOOLONG || code == ENOSPC || code == EDQUOT)
        return fail(output->error, output->path, "", code);
    char *folder = folder_of(output->target);
    if (!folder) return out_of_memory(output->error, output->path);
    clv__shown_text reason;
    const clv_status status =
        clv__error_set(output->error, CLV_E_IO, "cannot write '%s': a file cannot be made in folder '%s': %s",
                       output->path, folder, clv__system_reason(code, &reason));
    free(folder);
    return status;
}

/** Is the file open as `fd` still the one called `path`, ours and no link? Another writer may just have
 * renamed it. */
static bool same_file(int fd, const char *path, struct stat *opened) {
    struct stat named;
    return fstat(fd, opened) == 0 && lstat(path, &named) == 0 && opened->st_dev == named.st_dev &&
           opened->st_ino == named.st_ino;
}

/** Open and lock the temporary, emptied. */
static clv_status open_temp(clv__output *output) {
    for (int attempt = 0; attempt < 8; attempt++) {
        int fd = open_again(output->temp, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (fd < 0) return fail_folder(output, errno);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 &&
            errno == EWOULDBLOCK) { // no locks there at all: go on without
            close(fd);
            CLV_FAIL(output->error, CLV_E_IO,
                     "cannot write '%s': another writer is at work on it (it holds '%s')", output->path,
                     output->temp);
        }
        struct stat info;
        if (!same_file(fd, output->temp, &info)) {
            close(fd);
            continue;
        }
        if (!S_ISREG(info.st_mode) || info.st_nlink != 1 || info.st_uid != geteuid()) {
            close(fd);
            CLV_FAIL(output->error, CLV_E_IO,
                     "cannot write '%s': '%s' is in the way and is not ours; remove it", output->path,
                     output->temp);
        }
        if (ftruncate(fd, 0) != 0) {
            int code = errno;
            unlink(output->temp);
            close(fd);
            return fail(output->error, output->path, "emptying the temporary file beside it", code);
        }
        output->fd = fd;
        output->open = true;
        return CLV_OK;
    }
    CLV_FAIL(output->error, CLV_E_IO, "cannot write '%s': '%s' is taken away again and again", output->path,
             output->temp);
}

/** /dev/stdout, a pipe and the like: there is nothing to replace. A pipe without a reader would wait for one
 *  for ever; writing waits for a slow one. */
static clv_status open_in_place(clv__output *output, const struct stat *info) {
    output->fd = open_again(output->path, O_WRONLY | O_NONBLOCK, 0);
    if (output->fd < 0 && errno == ENXIO && S_ISFIFO(info->st_mode))
        CLV_FAIL(output->error, CLV_E_IO,
                 "cannot write '%s': it is a pipe that nobody reads; start its reader first", output->path);
    if (output->fd < 0) return fail(output->error, output->path, "opening it", errno);
    output->open = true;
    const int flags = fcntl(output->fd, F_GETFL);
    if (flags >= 0 && fcntl(output->fd, F_SETFL, flags & ~O_NONBLOCK) == 0) return CLV_OK;
    const int code = errno;
    clv__output_abort(output);
    return fail(output->error, output->path, "opening it", code);
}

clv_status clv__output_open(clv__error *error, const char *path, clv__output *output) {
    *output = (clv__output){.error = error, .path = path, .fd = -1};
    if (!path || !*path) CLV_FAIL(error, CLV_E_VALUE, "a file to write needs a name");
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (there && S_ISDIR(info.st_mode)) {
        CLV_FAIL(error, CLV_E_IO, "cannot write '%s': it is a folder; add a file name", path);
    }
    if (there && !S_ISREG(info.st_mode)) return open_in_place(output, &info);
    if (there && access(path, W_OK) != 0) {
        CLV_FAIL(error, CLV_E_IO, "cannot write '%s': it is write-protected", path);
    }
    // A link stays a link: the file it names is replaced.
    output->target = there ? realpath(path, NULL) : clv__strdup(path);
    if (!output->target && there && errno != ENOMEM) return fail(error, path, "following its links", errno);
    if (output->target) output->temp = join(output->target, ".tmp");
    clv_status status = output->temp ? open_temp(output) : out_of_memory(error, path);
    if (status == CLV_OK && there) output->mode = info.st_mode & 07777;
    if (status != CLV_OK) clv__output_abort(output);
    return status;
}

clv_status clv__output_write(clv__output *output, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size > 0) {
        size_t piece = size < (1u << 30) ? size : 1u << 30; // systems cut single writes at 2 GiB
        ssize_t n = write(output->fd, at, piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int code = n < 0 ? errno : ENOSPC;
            clv__output_abort(output);
            return fail(output->error, output->path, "writing", code);
        }
        at += n;
        size -= (size_t)n;
    }
    return CLV_OK;
}

/** Make what stands in the folder of `path` durable. */
static clv_status sync_folder(const clv__output *output) {
    char *folder = folder_of(output->target);
    if (!folder) return out_of_memory(output->error, output->path);
    int fd = open_again(folder, O_RDONLY | O_DIRECTORY, 0);
    free(folder);
    int code = fd < 0 ? errno : 0;
    if (fd >= 0 && fsync(fd) != 0) code = errno;
    if (fd >= 0) close(fd);
    // Some file systems cannot sync a folder, and a folder may be writable but not readable: the rename still
    // stands.
    if (code == 0 || code == EINVAL || code == EACCES || code == ENOTSUP) return CLV_OK;
    clv__shown_text reason;
    CLV_FAIL(output->error, CLV_E_IO,
             "'%s' is written, but its folder could not be synced (%s): after a power cut it "
             "may be missing",
             output->path, clv__system_reason(code, &reason));
}

/**
 * The file that stands at the target also becomes TARGET.prev, without a moment in which the target is
 * missing. Where there are no hard links it is moved instead, and *moved says so.
 */
static clv_status keep(const clv__output *output, bool *moved) {
    struct stat info;
    if (lstat(output->target, &info) != 0) return CLV_OK; // nothing to keep
    char *previous = clv__previous_path(output->target), *second = join(output->target, ".prev.tmp");
    clv_status status = CLV_OK;
    if (!previous || !second) {
        status = out_of_memory(output->error, output->path);
    } else {
        unlink(second); // left by a kill between the two calls below
        if (link(output->target, second) == 0) {
            if (rename(second, previous) != 0) {
                status = fail(output->error, output->path, "keeping the previous one", errno);
            }
            unlink(second); // renaming a file over itself leaves both names
        } else if (rename(output->target, previous) == 0) {
            *moved = true;
        } else {
            status = fail(output->error, output->path, "keeping the previous one", errno);
        }
    }
    free(previous);
    free(second);
    return status;
}

/** Undo what keep() did where it had to move the file. */
static void bring_back(const clv__output *output) {
    char *previous = clv__previous_path(output->target);
    if (previous && rename(previous, output->target) != 0)
        errno = 0; // the sentence already tells the first fault
    free(previous);
}

static clv_status replace(clv__output *output, bool keep_previous) {
    // Best effort: the new file may be read by whoever could read the old one.
    if (output->mode) fchmod(output->fd, output->mode);
    if (fsync(output->fd) != 0) return fail(output->error, output->path, "syncing", errno);
    bool moved = false;
    if (keep_previous) CLV_TRY(keep(output, &moved));
    if (rename(output->temp, output->target) != 0) {
        int code = errno;
        if (moved) bring_back(output);
        return fail(output->error, output->path, "renaming the temporary file beside it", code);
    }
    free(output->temp);
    output->temp = NULL; // from here on there is nothing to take away
    return sync_folder(output);
}

clv_status clv__output_commit(clv__output *output, bool keep_previous) {
    clv_status status = CLV_OK;
    if (output->temp) {
        status = replace(output, keep_previous);
    } else if (close(output->fd) != 0) {
        status = fail(output->error, output->path, "closing", errno);
        output->open = false;
    } else {
        output->open = false;
    }
    clv__output_abort(output);
    return status;
}

void clv__output_abort(clv__output *output) {
    if (output->open) {
        if (output->temp) unlink(output->temp); // while the lock is held, so that it is ours
        close(output->fd);
    }
    output->open = false;
    output->fd = -1;
    free(output->temp);
    free(output->target);
    output->temp = output->target = NULL;
}

// ---- before long work, and whole texts ----------------------------------------------------------------------

/** Have the names that the file before gets room, and is no folder in their way? */
static clv_status try_previous(const clv__output *output) {
    static const char *const ends[] = {".prev", ".prev.tmp"};
    clv_status status = CLV_OK;
    for (int i = 0; i < 2 && status == CLV_OK; i++) {
        struct stat info;
        char *name = join(output->target, ends[i]);
        if (!name) return out_of_memory(output->error, output->path);
        const bool there = lstat(name, &info) == 0;
        if (!there && errno != ENOENT)
            status = fail(output->error, output->path, "looking for the previous one", errno);
        if (there && S_ISDIR(info.st_mode))
            status =
                clv__error_set(output->error, CLV_E_IO,
                               "cannot write '%s': folder '%s' is in the way; rename it", output->path, name);
        free(name);
    }
    return status;
}

clv_status clv__output_try(clv__error *error, const char *path, bool keep_previous) {
    struct stat info;
    clv__output output;
    // To open and close a pipe would end its reader.
    if (path && stat(path, &info) == 0 && S_ISFIFO(info.st_mode)) {
        if (access(path, W_OK) == 0) return CLV_OK;
        return fail(error, path, "opening it", errno);
    }
    CLV_TRY(clv__output_open(error, path, &output));
    const clv_status status = output.temp && keep_previous ? try_previous(&output) : CLV_OK;
    clv__output_abort(&output);
    return status;
}

clv_status clv_file_check(clv_runtime *runtime, const char *path, bool keep_previous) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    return clv__output_try(clv__io_error(runtime), path, keep_previous);
}

clv_status clv_file_write(clv_runtime *runtime, const char *path, const void *bytes, size_t size) {
    clv__output output;
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    if (size) CLV_TRY(CLV__GIVEN(clv__io_error(runtime), bytes));
    CLV_TRY(clv__output_open(clv__io_error(runtime), path, &output));
    CLV_TRY(clv__output_write(&output, bytes, size));
    return clv__output_commit(&output, false);
}
