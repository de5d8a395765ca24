// SPDX-License-Identifier: Apache-2.0
// No file that a command writes may be another one that it writes, or one that it reads. Which options name
// files stands in options.def (READS, WRITES); the words of a command name its data.
#include "models/models.h"
#include "options/options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

// ---- two paths --------------------------------------------------------------------------------------------

/** The folder that a path lies in, and the name there. */
static const char *split(const char *path, char folder[PATH_BYTES]) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, PATH_BYTES, ".");
    else
        snprintf(folder, PATH_BYTES, "%.*s", (int)(slash == path ? 1 : slash - path), path);
    return slash ? slash + 1 : path;
}

static bool is_one_inode(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/** The same file, by whatever name. Devices and pipes, such as /dev/null, may serve several. */
static bool is_same(const char *a, const char *b) {
    struct stat of_a, of_b;
    char folder_a[PATH_BYTES], folder_b[PATH_BYTES];
    const bool is_a = stat(a, &of_a) == 0, is_b = stat(b, &of_b) == 0;
    if (is_a && !S_ISREG(of_a.st_mode)) return false;
    if (is_a != is_b) return false;
    if (is_a) return is_one_inode(&of_a, &of_b);
    if (!strcmp(a, b)) return true;
    return !strcmp(split(a, folder_a), split(b, folder_b)) && stat(folder_a, &of_a) == 0 &&
           stat(folder_b, &of_b) == 0 && is_one_inode(&of_a, &of_b);
}

static bool ends_as_data(const char *path) {
    static const char *const endings[] = {".jpg", ".jpeg", ".png", ".webp", ".bmp",
                                          ".tif", ".tiff", ".gif", ".npy",  ".gz"};
    const char *dot = strrchr(path, '.');
    size_t i = 0;
    while (dot && i < sizeof endings / sizeof *endings && strcasecmp(dot, endings[i])) i++;
    return (dot && i < sizeof endings / sizeof *endings) || strstr(path, "-ubyte");
}

/** Is it a file of data that is there, in that folder or in one of its folders? */
static bool is_inside(const char *path, const char *folder) {
    struct stat what;
    if (stat(folder, &what) != 0 || !S_ISDIR(what.st_mode)) return false;
    if (!ends_as_data(path) || stat(path, &what) != 0 || !S_ISREG(what.st_mode)) return false;
    char *whole = realpath(path, NULL), *around = realpath(folder, NULL);
    const size_t n = around ? strlen(around) : 0;
    const bool inside = whole && around && !strncmp(whole, around, n) && whole[n] == '/';
    free(whole);
    free(around);
    return inside;
}

// ---- all that a command names -----------------------------------------------------------------------------

/** The files that an option names; 0: it was not given. */
static int paths_of(const option_row *option, const cli_args *args, const char *const **paths) {
    const void *field = (const char *)args + option->field;
    const cli_texts *several = field;
    if (!option_is_of(option, args->command) || !(option->is_read || option->is_written)) return 0;
    if (option->field == offsetof(cli_args, model) && !cli_is_onnx(args->model)) return 0; // a name
    *paths = option->kind == TEXTS ? several->item : field;
    return option->kind == TEXTS ? several->n : **paths != NULL;
}

/** A training that goes on may write where it read: it has read all before the first step, and what it writes
 *  replaces that when it is whole. */
static bool may_be_one(const option_row *written, const option_row *read) {
    if (!strcmp(read->name, "resume")) return !strcmp(written->name, "checkpoint");
    return !strcmp(read->name, "weights") && !strncmp(written->name, "save", 4);
}

/** `read`: the other one, which `name` stands for, is read. */
static int check_beside(const option_row *own, const char *path, bool read, const char *name,
                        const char *other) {
    if (is_same(path, other))
        return cli_fail(EXIT_USAGE, "%s and --%s are both '%s': one would overwrite the other", name,
                        own->name, path);
    if (read && is_inside(path, other))
        return cli_fail(EXIT_USAGE, "--%s '%s' is one of the data in '%s', and would overwrite it", own->name,
                        path, other);
    return EXIT_DONE;
}

/** Beside the other options: what they read, and what those before it write. */
static int check_beside_options(const cli_args *args, const option_row *own, const char *path) {
    int code = EXIT_DONE;
    for (const option_row *other = option_rows; other < option_rows + OPTIONS; other++) {
        const char *const *paths;
        char name[64];
        const bool matters = other->is_read ? !may_be_one(own, other) : other < own;
        const int n = matters ? paths_of(other, args, &paths) : 0;
        snprintf(name, sizeof name, "--%s", other->name);
        for (int i = 0; code == EXIT_DONE && i < n; i++)
            code = check_beside(own, path, other->is_read, name, paths[i]);
    }
    return code;
}

/** Beside the data that the command's words name. */
static int check_beside_words(const cli_args *args, const option_row *own, const char *path) {
    const bool named = cli_data_is(args, "text") || cli_data_is(args, "csv") || cli_data_is(args, "arrays") ||
                       cli_data_is(args, "images");
    const int n = args->n_words + (cli_data_is(args, "images") ? args->n_more : 0); // others take one
    int code = EXIT_DONE;
    for (int i = 1; named && code == EXIT_DONE && i < n; i++)
        code = check_beside(own, path, true, "the data",
                            i < args->n_words ? args->words[i] : args->more[i - args->n_words]);
    return code;
}

int cli_check_same_files(const cli_args *args) {
    int code = EXIT_DONE;
    for (const option_row *own = option_rows; own < option_rows + OPTIONS; own++) {
        const char *const *paths;
        if (!own->is_written || !paths_of(own, args, &paths) || cli_is_stdout(*paths)) continue;
        if (code == EXIT_DONE) code = check_beside_options(args, own, *paths);
        if (code == EXIT_DONE) code = check_beside_words(args, own, *paths);
    }
    return code;
}
