// SPDX-License-Identifier: Apache-2.0
// The files of a training: can they be written, and does none take the place of another, or of what is read?
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

typedef struct named_file {
    const char *option, *path; // path NULL: not given
} named_file;

/** The same file; devices and pipes, such as /dev/null, may serve several. */
static bool is_same(const char *a, const char *b) {
    struct stat of_a, of_b;
    const bool there = stat(a, &of_a) == 0;
    if (there && !S_ISREG(of_a.st_mode)) return false;
    while (!strncmp(a, "./", 2)) a += 2;
    while (!strncmp(b, "./", 2)) b += 2;
    if (!strcmp(a, b)) return true;
    return there && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

int cli_check_train_files(const cli_args *args) {
    const bool named = cli_is_text(args) || cli_is_csv(args) || cli_is_arrays(args);
    const char *data = named && args->n_words > 1 ? args->words[1] : NULL;
    const named_file written[] = {{"--save", args->save},
                                  {"--save-best", args->save_best},
                                  {"--checkpoint", args->checkpoint},
                                  {"--dump-gradients", args->dump_gradients},
                                  {"--trace", args->trace},
                                  {"--log", args->log}},
                     read[] = {{"--images", args->images},
                               {"--labels", args->labels},
                               {"--val-labels", args->val_labels},
                               {"--tokenizer", args->tokenizer},
                               {"the data", data}};
    enum { N = sizeof written / sizeof *written, LOG = N - 1, N_READ = sizeof read / sizeof *read };
    for (int i = 0; i < N; i++) {
        const named_file *own = &written[i];
        if (!own->path) continue;
        const int code = i == LOG ? EXIT_DONE : cli_check_target(own->path); // a log says so itself
        if (code != EXIT_DONE) return code;
        for (int k = 0; k < i + N_READ; k++) {
            const named_file *other = k < i ? &written[k] : &read[k - i];
            if (other->path && is_same(own->path, other->path))
                return cli_fail(EXIT_USAGE, "%s and %s are both '%s': one would overwrite the other",
                                other->option, own->option, own->path);
        }
    }
    return EXIT_DONE;
}
