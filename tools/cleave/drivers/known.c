// SPDX-License-Identifier: Apache-2.0
// Where all drivers answered before: a file in the cache's folder names the environment in which a command
// last looked at all drivers, and none died or took long. A command in the same environment sends no child.
// The file is removed while drivers are looked at, so if one ends the command in a way that nothing catches,
// the next command sends a child. A wrong or missing file costs a child, and a forged one saves it; nothing
// else depends on it.
#include "internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/** FNV-1a, 64 bits, over what comes next. */
static void add(uint64_t *hash, const void *data, size_t bytes) {
    for (const unsigned char *at = data; bytes--; at++) *hash = (*hash ^ *at) * UINT64_C(0x100000001b3);
}

static void add_text(uint64_t *hash, const char *text) {
    add(hash, text, strlen(text) + 1);
}

/** Where a command is called from means nothing to a driver. */
static bool matters(const char *variable) {
    static const char *const names[] = {"_=", "PWD=", "OLDPWD=", "SHLVL=", "COLUMNS=", "LINES="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(variable, names[i], strlen(names[i]))) return false;
    return true;
}

/** What tells this environment from others: variables, the boot, the root that we see, installed drivers and
 *  libraries, devices. */
static uint64_t environment_now(void) {
    extern char **environ;
    static const struct {
        const char *path;
        bool changes; // then when it did, too
    } places[] = {
        {"/", false},   {"/sys/devices", false}, {"/etc/OpenCL/vendors", true}, {"/etc/ld.so.cache", true},
        {"/dev", true}, {"/dev/dri", true}};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    add_text(&hash, clv_version());
    for (char **at = environ; at && *at; at++)
        if (matters(*at)) add_text(&hash, *at);
    char boot[64] = "";
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, boot, sizeof boot - 1) > 0) add_text(&hash, boot);
    if (file >= 0) close(file);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct stat is = {0};
        bool there = stat(places[i].path, &is) == 0;
        uint64_t numbers[] = {there, is.st_dev, is.st_ino, 0, 0};
        if (there && places[i].changes) {
            numbers[3] = (uint64_t)is.st_mtim.tv_sec;
            numbers[4] = (uint64_t)is.st_mtim.tv_nsec;
        }
        add(&hash, numbers, sizeof numbers);
    }
    return hash;
}

/** The file's path, in the folder that the library keeps programs in; "" for none. */
static void find_file(char *path, size_t bytes) {
    clv_runtime *runtime = NULL;
    clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_status status = clv_runtime_create(&config, &runtime);
    const char *folder = status == CLV_OK ? clv_runtime_info_get(runtime).cache_folder : "";
    int n = *folder ? snprintf(path, bytes, "%s/drivers", folder) : 0;
    if (n <= 0 || (size_t)n >= bytes) *path = 0;
    clv_runtime_destroy(runtime);
}

bool cli_known_take(cli_known *known, bool no_cache) {
    *known = (cli_known){.environment = environment_now()};
    if (no_cache) return false;
    find_file(known->path, sizeof known->path);
    char text[17] = "", wanted[17];
    int file = *known->path ? open(known->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (file < 0) return false;
    snprintf(wanted, sizeof wanted, "%016" PRIx64, known->environment);
    bool same = read(file, text, sizeof text - 1) == sizeof text - 1 && !strcmp(text, wanted);
    close(file);
    return same && unlink(known->path) == 0;
}

void cli_known_keep(cli_known *known) {
    char *slash = strrchr(known->path, '/');
    if (!slash) return;
    *slash = 0;
    const bool ours = cli_private_folder(known->path);
    *slash = '/';
    if (!ours) return;
    int file = open(known->path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return; // a read-only home: the next command is careful again
    dprintf(file, "%016" PRIx64 "\n", known->environment);
    close(file);
}
