// SPDX-License-Identifier: Apache-2.0
// --param-group and --weight-decay-skip, made into parameter groups of the library.
#include "training/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** One word behind the colon: frozen, lr=X, weight_decay=X. */
static int read_setting(const char *option, const char *word, clv_param_group *out) {
    char *end = NULL;
    const char *value = strchr(word, '=');
    const size_t n = value ? (size_t)(value - word) : strlen(word);
    if (!strcmp(word, "frozen")) {
        out->frozen = true;
        return EXIT_DONE;
    }
    const bool lr = n == 2 && !strncmp(word, "lr", n), decay = n == 12 && !strncmp(word, "weight_decay", n);
    if (!value || (!lr && !decay))
        return cli_fail(EXIT_USAGE, "--param-group '%s': '%s' is none of lr=X, weight_decay=X and frozen",
                        option, word);
    const float number = strtof(value + 1, &end);
    if (end == value + 1 || *end || !isfinite(number) || number < 0 || (lr && number == 0))
        return cli_fail(EXIT_USAGE,
                        "--param-group '%s': %s wants a number %s, not '%s'; frozen updates nothing", option,
                        lr ? "lr" : "weight_decay", lr ? "above 0" : "of at least 0", value + 1);
    if (lr)
        out->lr = number;
    else
        out->weight_decay = number == 0 ? -1 : number; // the library takes 0 for what all others have
    return EXIT_DONE;
}

/** The parameters of a group: a list of patterns, or `vectors`. */
static void set_members(const char *list, clv_param_group *out) {
    if (!strcmp(list, "vectors"))
        out->max_rank = 1;
    else
        out->patterns = list;
}

static int read_group(const char *option, char *text, clv_param_group *out) {
    snprintf(text, CLI_GROUP_BYTES, "%s", option);
    char *colon = strrchr(text, ':'), *rest = NULL;
    if (strlen(option) >= CLI_GROUP_BYTES)
        return cli_fail(EXIT_USAGE, "--param-group: a group is longer than %d bytes", CLI_GROUP_BYTES - 1);
    if (!colon || colon == text || !colon[1])
        return cli_fail(
            EXIT_USAGE,
            "--param-group wants names and settings, as in 'norm*,*.bias:weight_decay=0', not '%s'", option);
    *colon = 0;
    set_members(text, out);
    for (char *word = strtok_r(colon + 1, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        const int code = read_setting(option, word, out);
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}

int cli_read_groups(const cli_args *args, cli_groups *out) {
    *out = (cli_groups){0};
    if (args->weight_decay_skip && args->param_groups.n)
        return cli_fail(EXIT_USAGE,
                        "--weight-decay-skip is a group as well; with --param-group write "
                        "--param-group '%s:weight_decay=0'",
                        args->weight_decay_skip);
    if (args->weight_decay_skip) {
        set_members(args->weight_decay_skip, &out->group[out->n]);
        out->group[out->n++].weight_decay = -1;
    }
    for (int i = 0; i < args->param_groups.n; i++) {
        const int code = read_group(args->param_groups.item[i], out->text[i], &out->group[out->n++]);
        if (code != EXIT_DONE) return code;
    }
    return EXIT_DONE;
}
