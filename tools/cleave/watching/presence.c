// SPDX-License-Identifier: Apache-2.0
// A process's file of itself: the begin and the newest step as lines of a log, rewritten by renaming
// (at_work.c says when). Its name has the machine and the process in it; the begin says when the process
// started, so that what a killed one left is known and removed, also where its number is another's by now.
// Folder and files are the user's alone. Who looks touches the file `asked`.
#include "watching/presence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ASKED_SECONDS 10                // that somebody counts as looking
#define FOREIGN_SECONDS (7 * 24 * 3600) // that a file of another machine is kept
enum { MOST_BYTES = 1 << 16 };

/** Numbers of processes are told apart within this: the boot of a machine, and the container. */
static uint32_t machine(void) {
    char boot[64] = "";
    struct stat names;
    uint32_t hash = 2166136261u; // FNV-1a
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? 0 : read(file, boot, sizeof boot);
    if (file >= 0) close(file);
    for (ssize_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)boot[i]) * 16777619u;
    const uint64_t space = stat("/proc/self/ns/pid", &names) ? 0 : (uint64_t)names.st_ino;
    for (int i = 0; i < 64; i += 8) hash = (hash ^ (uint32_t)(space >> i & 255)) * 16777619u;
    return hash;
}

static bool folder_of(const clv_runtime *runtime, char *path, size_t bytes) {
    const char *cache = clv_runtime_info_get(runtime).cache_folder;
    const int n = *cache ? snprintf(path, bytes, "%s/running", cache) : 0;
    return n > 0 && (size_t)n < bytes;
}

/** Seconds since the file was written to; negative: there is none. */
static double age_of(int folder, const char *name) {
    struct stat what;
    struct timespec now;
    if (fstatat(folder, name, &what, AT_SYMLINK_NOFOLLOW)) return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)(now.tv_sec - what.st_mtim.tv_sec);
}

// ---- of this process --------------------------------------------------------------------------------------

void presence_write(const presence_file *file, const watch_moment *now) {
    char *text = watch_text(now);
    if (!text) return;
    int beside = openat(file->folder, file->beside,
                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    const size_t n = strlen(text);
    const bool written = beside >= 0 && write(beside, text, n) == (ssize_t)n;
    if (beside >= 0) close(beside);
    if (!written || renameat(file->folder, file->beside, file->folder, file->name))
        unlinkat(file->folder, file->beside, 0);
    free(text);
}

bool presence_open(presence_file *file, const clv_runtime *runtime) {
    char path[4096];
    if (!folder_of(runtime, path, sizeof path) || !cli_private_folder(path)) return false;
    file->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file->folder < 0) return false;
    const long long process = getpid();
    snprintf(file->name, sizeof file->name, "%08" PRIx32 "-%lld", machine(), process);
    snprintf(file->beside, sizeof file->beside, "%.40s.tmp", file->name);
    return true;
}

bool presence_is_asked(const presence_file *file) {
    const double age = age_of(file->folder, "asked");
    return age >= 0 && age < ASKED_SECONDS;
}

void presence_close(presence_file *file) {
    unlinkat(file->folder, file->name, 0);
    close(file->folder);
}

// ---- of all -----------------------------------------------------------------------------------------------

/** The process that the file is of runs, and is the same that began it. */
static bool is_there(const watch_moment *now) {
    if (now->process <= 0 || (kill((pid_t)now->process, 0) && errno == ESRCH)) return false;
    const double started = cli_process_started(now->process);
    const double apart = started - now->started;
    return started == 0 || now->started == 0 || (started > 0 && apart < 0.5 && apart > -0.5);
}

/** The moment in a file; false: there is none, or it is none of ours. */
static bool read_file(int folder, const char *name, watch_moment *out) {
    struct stat what;
    char *text = malloc(MOST_BYTES);
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool good = text && file >= 0 && !fstat(file, &what) && S_ISREG(what.st_mode);
    const ssize_t n = good ? read(file, text, MOST_BYTES) : -1;
    if (file >= 0) close(file);
    const bool whole = n > 0 && n < MOST_BYTES && watch_of_text(text, (size_t)n, out);
    if (whole && !out->step && presence_trains(out)) out->state = WATCH_NOTHING;
    free(text);
    return whole;
}

static int by_process(const void *a, const void *b) {
    const watch_moment *x = a, *y = b;
    return (x->process > y->process) - (x->process < y->process);
}

static void take(int folder, const char *name, presence_list *out) {
    char own[16];
    snprintf(own, sizeof own, "%08" PRIx32 "-", machine());
    if (*name == '.' || !strcmp(name, "asked")) return;
    if (strncmp(name, own, strlen(own))) { // of another machine with the same home: who knows if it runs
        if (age_of(folder, name) > FOREIGN_SECONDS) unlinkat(folder, name, 0);
        return;
    }
    if (strstr(name, ".tmp")) {
        if (age_of(folder, name) > FOREIGN_SECONDS) unlinkat(folder, name, 0);
        return;
    }
    watch_moment *now = &out->item[out->n];
    if (read_file(folder, name, now) && is_there(now))
        out->n++;
    else
        unlinkat(folder, name, 0);
}

bool presence_read(const clv_runtime *runtime, presence_list *out) {
    char path[4096];
    *out = (presence_list){.item = calloc(PRESENCE_MOST, sizeof *out->item)};
    if (!out->item) return false;
    if (!folder_of(runtime, path, sizeof path) || !cli_private_folder(path)) return true;
    DIR *folder = opendir(path);
    if (!folder) return true;
    int asked =
        openat(dirfd(folder), "asked", O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (asked >= 0) {
        futimens(asked, NULL);
        close(asked);
    }
    for (struct dirent *entry; out->n < PRESENCE_MOST && (entry = readdir(folder));)
        take(dirfd(folder), entry->d_name, out);
    closedir(folder);
    if (out->n) qsort(out->item, (size_t)out->n, sizeof *out->item, by_process);
    return true;
}

void presence_drop(presence_list *list) {
    free(list->item);
    *list = (presence_list){0};
}
