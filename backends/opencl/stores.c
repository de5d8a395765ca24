// SPDX-License-Identifier: Apache-2.0
// Some drivers keep machine code on disk and run it again in the next process. Whoever can write to that
// folder decides what this process runs, and a driver that finds no home may use a folder of a fixed name
// below the temporary folder. Others load the code as libraries, and end the process where the folder is on a
// file system that is mounted noexec. So the folder is checked before the first OpenCL call. If it does not
// belong to this user alone, or code cannot be run from it, the driver is given another one, by its own
// variable, and the log says so. The variable stays set in this process and its children.
#define _GNU_SOURCE // ST_NOEXEC
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/folder.h"
#include "opencl.h"

enum { WHY_BYTES = 400 };

/** Where the driver would keep code; false if nothing names a folder. */
static bool usual_folder(const clv__ocl_store *store, char out[PATH_MAX]) {
    const char *named = getenv(store->variable), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (named && *named)
        n = snprintf(out, PATH_MAX, "%s", named);
    else if (store->in_xdg && xdg && *xdg)
        n = snprintf(out, PATH_MAX, "%s/%s", xdg, store->in_xdg);
    else if (home && *home)
        n = snprintf(out, PATH_MAX, "%s/%s", home, store->in_home);
    return n > 0 && n < PATH_MAX;
}

/** What is in it, one level deep: only folders and files of this user, closed to others. */
static bool entries_are_private(const char *path, char *why) {
    DIR *folder = opendir(path);
    bool good = true;
    for (struct dirent *entry; folder && good && (entry = readdir(folder));) {
        struct stat is;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || entry->d_type == DT_REG) continue;
        if (fstatat(dirfd(folder), entry->d_name, &is, AT_SYMLINK_NOFOLLOW) != 0) continue; // it is gone
        const char *reason = is.st_uid != geteuid()                         ? "belongs to another user"
                             : !S_ISDIR(is.st_mode) && !S_ISREG(is.st_mode) ? "is no file and no folder"
                             : is.st_mode & (S_IWGRP | S_IWOTH)             ? "can be written by other users"
                                                                            : NULL;
        good = !reason;
        if (reason) snprintf(why, WHY_BYTES, "%.200s: '%.60s' in it %s", path, entry->d_name, reason);
    }
    if (folder) closedir(folder);
    return good;
}

/** Can code be run from the folder's file system? One that is missing: from that of the folder it will be
 *  in. */
static bool code_runs_in(const char *path, char *why) {
    char at[PATH_MAX];
    struct statvfs system;
    snprintf(at, sizeof at, "%s", path);
    for (char *slash; statvfs(at, &system) != 0; *slash = 0)
        if (!(slash = strrchr(at, '/')) || slash == at) return true; // nobody knows
#ifdef ST_NOEXEC
    if (system.f_flag & ST_NOEXEC) {
        snprintf(why, WHY_BYTES, "%.300s is on a file system that is mounted noexec", path);
        return false;
    }
#endif
    (void)why;
    return true;
}

static bool is_private(const char *path, char *why) {
    return clv__folder_is_private(path, why, WHY_BYTES) && entries_are_private(path, why);
}

/** A folder of that path that will do, made if it is missing. */
static bool take_folder(const clv__ocl_store *store, const char *path) {
    char why[WHY_BYTES];
    return (!store->maps || code_runs_in(path, why)) && clv__folder_make(path) && is_private(path, why);
}

/** The folder for temporary files, or one from which code can be run. */
static const char *temporary_folder(const clv__ocl_store *store) {
    char why[WHY_BYTES];
    const char *named = getenv("TMPDIR"), *folder = named && *named == '/' ? named : "/tmp";
    return store->maps && !code_runs_in(folder, why) ? "/var/tmp" : folder;
}

/** Another folder: in our cache, else one with this user's number below the temporary folder, else one for
 *  this process alone. */
static bool choose_folder(const clv__ocl_state *state, const clv__ocl_store *store, clv__ocl_kept *kept,
                          char out[PATH_MAX]) {
    const char *ours = state->config->cache_dir, *temporary = temporary_folder(store);
    char why[WHY_BYTES], base[PATH_MAX];
    if (*ours && clv__folder_is_private(ours, why, sizeof why) &&
        snprintf(out, PATH_MAX, "%s/%s", ours, store->folder) < PATH_MAX && take_folder(store, out))
        return true;
    if (snprintf(base, sizeof base, "%.3000s/cleave-%lu", temporary, (unsigned long)geteuid()) > 0 &&
        take_folder(store, base) && snprintf(out, PATH_MAX, "%.3100s/%s", base, store->folder) > 0 &&
        take_folder(store, out))
        return true;
    kept->temporary = true;
    return snprintf(out, PATH_MAX, "%.3000s/cleave-XXXXXX", temporary) > 0 &&
           (!store->maps || code_runs_in(temporary, why)) && mkdtemp(out) &&
           clv__folder_is_private(out, why, sizeof why);
}

static void guard(clv__ocl_state *state, const clv__ocl_store *store, clv__ocl_kept *kept) {
    char usual[PATH_MAX] = "", other[PATH_MAX], why[WHY_BYTES] = "", text[2 * WHY_BYTES + 200];
    bool named = usual_folder(store, usual);
    const bool good = named && is_private(usual, why),
               runs = !good || !store->maps || code_runs_in(usual, why);
    if (good && runs) return;
    if (!named) snprintf(why, sizeof why, "neither %s nor HOME names a folder", store->variable);
    bool found = choose_folder(state, store, kept, other) && setenv(store->variable, other, 1) == 0;
    if (kept->temporary && found) found = setenv(store->off_variable, store->off, 1) == 0;
    snprintf(text, sizeof text, "%s would keep machine code where %s (%s): %s%.300s", store->driver,
             runs ? "others could change it" : "it cannot be run", why,
             found ? "it keeps it in " : "there is no other folder, name one in ",
             found ? other : store->variable);
    kept->sentence = clv__arena_strdup(&state->arena, text);
    kept->folder = found ? clv__arena_strdup(&state->arena, other) : NULL;
    // A file made there by the driver shows: see clv__ocl_store_holds.
    if (found) utimensat(AT_FDCWD, other, (struct timespec[2]){{0}, {0}}, 0);
}

void clv__ocl_stores_guard(clv__ocl_state *state) {
    for (int i = 0; i < CLV__OCL_STORES; i++) guard(state, &clv__ocl_stores[i], &state->kept[i]);
}

static int find(const char *platform) {
    for (int i = 0; i < CLV__OCL_STORES; i++)
        if (!strncmp(platform, clv__ocl_stores[i].platform, strlen(clv__ocl_stores[i].platform))) return i;
    return -1;
}

const char *clv__ocl_store_refusal(clv__ocl_state *state, const char *platform) {
    int i = find(platform);
    if (i < 0 || !state->kept[i].sentence || state->kept[i].folder) return NULL;
    return state->kept[i].sentence;
}

bool clv__ocl_store_holds(clv__ocl_state *state, const char *platform) {
    int i = find(platform);
    if (i < 0 || !state->kept[i].sentence) return true;
    clv__ocl_kept *kept = &state->kept[i];
    struct stat is;
    bool used =
        clv__ocl_stores[i].touches && kept->folder && stat(kept->folder, &is) == 0 && is.st_mtime != 0;
    if (!kept->told)
        clv__log_to(state->config, CLV_LOG_WARNING, "%s%s", kept->sentence,
                    used || !clv__ocl_stores[i].touches
                        ? ""
                        : "; but the driver was started before, without that: set the "
                          "variable before the first OpenCL call");
    kept->told = true;
    return used && !kept->temporary;
}
