// SPDX-License-Identifier: Apache-2.0
// cleave: the command line. Finds the command, parses its options, calls its file.
#include "cli.h"
#include "training/training.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static int (*const functions[])(const cli_args *) = {
#define X(id, name, function, ...) function,
#include "commands.def"
#undef X
};

/** `help`, `help train`, `help train all`. */
static int help(int n_words, char **words) {
    if (!n_words) {
        cli_overview(stdout);
        return cli_finish_output();
    }
    cli_command command = cli_command_find(words[0]);
    if (command == CLI_COMMANDS) return cli_unknown_command(words[0]);
    cli_help(stdout, command, n_words > 1 && (!strcmp(words[1], "all") || !strcmp(words[1], "--all")));
    return cli_finish_output();
}

/** What packagers, shells and our own processes ask for, and people do not; -1: none of that. */
static int hidden(const char *word, int n_words, char **words) {
    const char *first = n_words ? words[0] : "";
    if (!strcmp(word, "--manual")) {
        cli_command command = cli_command_find(first);
        if (n_words && command == CLI_COMMANDS) return cli_unknown_command(first);
        cli_manual(stdout, command);
        return cli_finish_output();
    }
    if (!strcmp(word, "--markdown")) {
        cli_markdown(stdout);
        return cli_finish_output();
    }
    if (!strcmp(word, "--completion")) return cli_completion(stdout, first);
    if (!strcmp(word, "--complete")) return cli_complete(n_words, words);
    if (!strcmp(word, "compile-helper") && !n_words) // see cli_start
        return clv_compile_helper(0) == CLV_OK ? EXIT_DONE : EXIT_FAILED;
    return -1;
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return !strcmp(word, a) || !strcmp(word, b) || !strcmp(word, c);
}

int main(int argc, char **argv) {
    cli_begin_process();
    cli_seconds(); // the clock begins
    // Whatever locale a library of `--ops` sets: numbers have a point here.
    uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    cli_json_memory();
    const char *word = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        cli_overview(stderr);
        return EXIT_USAGE;
    }
    if (is_one_of(word, "version", "--version", "-v") || !strcmp(word, "-V")) {
        printf("cleave %s\n", clv_version());
        return cli_finish_output();
    }
    if (is_one_of(word, "help", "--help", "-h")) return help(argc - 2, argv + 2);
    int code = hidden(word, argc - 2, argv + 2);
    if (code != -1) return code;
    cli_command command = cli_command_find(word);
    if (command == CLI_COMMANDS) return cli_unknown_command(word);
#ifndef CLEAVE_INFERENCE
    for (int i = 2; i < argc && command == CLI_TRAIN; i++)
        if (!strcmp(argv[i], "--ranks")) cli_hold_failures();
#endif
    cli_args args;
    code = cli_parse(argc - 2, argv + 2, command, &args);
    args.command_line = argv;
    if (code == EXIT_DONE && !args.help) code = cli_check_same_files(&args);
    if (code == EXIT_DONE && !args.help) code = functions[command](&args);
    free(args.more);
    if (args.help) {
        cli_help(stdout, command, args.help_all);
        return cli_finish_output();
    }
    return cli_end(cli_ranks_refuse(code));
}
