// SPDX-License-Identifier: Apache-2.0
// cleave: the command line. Finds the command, parses its options, calls its file.
#include "cli.h"

#include <locale.h>
#include <string.h>

static int (*const functions[])(const cli_args *) = {
#define X(id, name, function, ...) function,
#include "commands.def"
#undef X
};

int main(int argc, char **argv) {
    cli_begin_process();
    cli_seconds(); // the clock begins
    // Whatever locale a library of `--ops` sets: numbers have a point here.
    uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    cli_json_memory();
    const char *word = argc > 1 ? argv[1] : "--help";
    if (!strcmp(word, "--version")) {
        printf("cleave %s\n", clv_version());
        return cli_finish_output();
    }
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        cli_overview(argc > 1 ? stdout : stderr);
        return argc > 1 ? cli_finish_output() : EXIT_USAGE;
    }
    if (!strcmp(word, "--manual") ||
        !strcmp(word, "--completion")) { // for packagers, while the tool is installed
        (word[2] == 'm' ? cli_manual : cli_completion)(stdout);
        return cli_finish_output();
    }
    if (!strcmp(word, "compile-helper") && argc == 2) // no command for people: see cli_start
        return clv_compile_helper(0) == CLV_OK ? EXIT_DONE : EXIT_FAILED;
    cli_command command = cli_command_find(word);
    if (command == CLI_COMMANDS) return cli_unknown_command(word);
    cli_args args;
    int code = cli_parse(argc - 2, argv + 2, command, &args);
    if (code != EXIT_DONE) return code;
    args.command_line = argv;
    if (args.help) {
        cli_help(stdout, command);
        return cli_finish_output();
    }
    return cli_end(functions[command](&args));
}
