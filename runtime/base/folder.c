// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static const char foreign[] = "it belongs to another user", open_to_others[] = "other users can write to it";

bool clv__folder_make(const char *path) {
    char *copy = clv__strdup(path);
    if (!copy || !*copy) {
        free(copy);
        errno = copy ? ENOENT : ENOMEM;
        return false;
    }
    for (char *at = copy + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        mkdir(copy, 0700); // what cannot be made shows at the end
        *at = '/';
    }
    bool made = mkdir(copy, 0700) == 0 || errno == EEXIST;
    int code = errno;
    free(copy);
    errno = code;
    return made;
}

const char *clv__distrust(int descriptor) {
    struct stat is;
    if (fstat(descriptor, &is) != 0) return strerror(errno);
    if (is.st_uid != geteuid()) return foreign;
    if (is.st_mode & (S_IWGRP | S_IWOTH)) return open_to_others;
    return NULL;
}

/** Can others change what is in the folder? A group with the number of the owner is the owner's own. */
static bool others_write(const struct stat *is) {
    return is->st_mode & S_IWOTH || (is->st_mode & S_IWGRP && is->st_gid != 0 && is->st_gid != is->st_uid);
}

/** Why a folder, or a link, above the one that matters is at fault. Whoever owns the root of all can do
 *  anything anyway, and is shown under another number inside some containers. */
static const char *distrust_above(const struct stat *is) {
    struct stat root = {0};
    bool ours =
        is->st_uid == geteuid() || is->st_uid == 0 || (stat("/", &root) == 0 && is->st_uid == root.st_uid);
    if (!ours) return foreign;
    if (S_ISLNK(is->st_mode)) return NULL;
    if (!S_ISDIR(is->st_mode)) return "it is no folder";
    return others_write(is) && !(is->st_mode & S_ISVTX) ? open_to_others : NULL;
}

static bool blame(char *why, size_t bytes, const char *path, const char *reason) {
    snprintf(why, bytes, "%.200s: %s", path, reason);
    return false;
}

/** All that is above the end of an absolute path. */
static bool above_is_safe(const char *path, char *why, size_t bytes) {
    char above[PATH_MAX];
    for (size_t n = 1; path[n]; n++) { // the root, then up to each further slash
        if (n > 1 && path[n] != '/') continue;
        snprintf(above, sizeof above, "%.*s", (int)n, path);
        struct stat is;
        const char *reason = lstat(above, &is) ? strerror(errno) : distrust_above(&is);
        if (reason) return blame(why, bytes, above, reason);
    }
    return true;
}

/** The path from the root on, without slashes at its end; false if it is too long. */
static bool make_absolute(const char *path, char out[PATH_MAX]) {
    char here[PATH_MAX] = "";
    if (*path != '/' && !getcwd(here, sizeof here)) return false;
    int n = snprintf(out, PATH_MAX, "%s%s%s", here, *path == '/' ? "" : "/", path);
    if (n < 0 || n >= PATH_MAX) return false;
    while (n > 1 && out[n - 1] == '/') out[--n] = 0;
    return true;
}

bool clv__folder_is_private(const char *path, char *why, size_t bytes) {
    char there[PATH_MAX], real[PATH_MAX];
    if (!make_absolute(path, there)) return blame(why, bytes, path, strerror(ENAMETOOLONG));
    struct stat is;
    bool exists = true;
    while (stat(there, &is) != 0) { // up to what exists
        char *slash = strrchr(there, '/');
        if (errno != ENOENT || lstat(there, &is) == 0) return blame(why, bytes, there, strerror(errno));
        exists = false;
        slash[slash == there] = 0;
    }
    const char *reason = NULL;
    if (!S_ISDIR(is.st_mode))
        reason = "it is no folder";
    else if (exists && is.st_uid != geteuid())
        reason = foreign;
    else if (exists && is.st_mode & (S_IWGRP | S_IWOTH))
        reason = open_to_others;
    else if (!exists && (reason = distrust_above(&is)) == NULL && others_write(&is))
        reason = "other users can make folders in it";
    else if (!reason && access(there, W_OK | X_OK) != 0)
        reason = strerror(errno);
    if (reason) return blame(why, bytes, there, reason);
    if (!realpath(there, real)) return blame(why, bytes, there, strerror(errno));
    return above_is_safe(there, why, bytes) && above_is_safe(real, why, bytes);
}
