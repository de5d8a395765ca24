// SPDX-License-Identifier: Apache-2.0
// `cleave --help` and `cleave COMMAND --help`, of the tables.
#include "options/options.h"
#include "screen.h"

#include <string.h>

/** Columns for help. Where no width is known 80 is what readers expect. */
static int help_width(FILE *out) {
    int width = screen_width(out);
    return width ? width : SCREEN_USUAL;
}

/** Words wrapped from the left edge on, as a line of its own. */
static void print_words(FILE *out, const char *text, int width) {
    screen_wrap(out, text, 0, 0, width);
    fputc('\n', out);
}

static void print_option(FILE *out, const option_row *option, cli_command id, int width) {
    enum { TEXT_AT = 27, LEAST_TEXT = 30 }; // on a narrow screen the text stands under the option
    const int indent = width - TEXT_AT < LEAST_TEXT ? 6 : TEXT_AT;
    char left[64], text[600];
    int at =
        snprintf(left, sizeof left, "  --%s%s%s", option->name, *option->value ? " " : "", option->value);
    option_tell(option, id, text, sizeof text);
    fputs(left, out);
    if (at + 2 > indent) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", indent - at, "");
    screen_wrap(out, text, indent, indent, width);
    fputc('\n', out);
}

/** An example, where it is long with line ends that a shell passes over, and what it does. */
static void print_example(FILE *out, const example_row *example, int width) {
    enum { INDENT = 6 };
    char text[256];
    example_tell(example, text, sizeof text);
    int at = fprintf(out, " ");
    for (const char *word = text; *word;) {
        size_t n = strcspn(word, " ");
        if (*word == '-' && word[n] && word[n + 1] != '-')
            n += 1 + strcspn(word + n + 1, " "); // its value stays there
        if (at + 1 + (int)n + 2 > width && at > INDENT) at = fprintf(out, " \\\n%*s", INDENT - 1, "") - 3;
        at += fprintf(out, " %.*s", (int)n, word);
        word += n + (word[n] == ' ');
    }
    fprintf(out, "\n%*s# ", INDENT, "");
    screen_wrap(out, example->text, INDENT + 2, INDENT + 2, width);
    fputc('\n', out);
}

/** The options that are asked for, by groups; how many there are besides. */
static int print_groups(FILE *out, cli_command id, bool all, int width) {
    int left_out = 0;
    for (int g = 0; g < GROUPS; g++) {
        bool begun = false;
        for (int i = 0; i < OPTIONS; i++) {
            const option_row *option = &option_rows[i];
            if (!option_is_of(option, id) || option->group != (option_group)g) continue;
            left_out += !all && !option_is_short(option, id);
            if (!all && !option_is_short(option, id)) continue;
            if (all && !begun) fprintf(out, "\n%s:\n", group_titles[g]);
            begun = true;
            print_option(out, option, id, width);
        }
    }
    return left_out;
}

void cli_help(FILE *out, cli_command id, bool all) {
    enum { SHORT_EXAMPLES = 5 };
    const command_row *row = &command_rows[id];
    const int width = help_width(out);
    char text[256];
    all |= !option_has_short(id);
    fprintf(out, "Usage: cleave %s%s%s [options]\n\n", row->name, *row->arguments ? " " : "", row->arguments);
    command_tell(id, text, sizeof text);
    print_words(out, text, width);
    if (!all) fputs("\nThe options that matter most:\n", out);
    int left_out = print_groups(out, id, all, width), shown = 0;
    fputs("\nExamples:\n", out);
    for (int i = 0; i < example_count; i++)
        if (example_rows[i].command == id && (all || shown++ < SHORT_EXAMPLES))
            print_example(out, &example_rows[i], width);
    if (all) return;
    snprintf(text, sizeof text, "'cleave %s --help all' tells the other %d options, and more examples.",
             row->name, left_out);
    fputc('\n', out);
    print_words(out, text, width);
}

#ifdef CLEAVE_INFERENCE
const char *const cli_what_it_does = "runs";
#else
const char *const cli_what_it_does = "trains and runs";
#endif

void cli_overview(FILE *out) {
    enum { TEXT_AT = 11 };
    const int width = help_width(out);
    fprintf(out, "Cleave %s %s neural networks on any OpenCL device.\n\nUsage: cleave COMMAND [options]\n",
            clv_version(), cli_what_it_does);
    for (int s = 0; s < SECTIONS; s++) {
        fprintf(out, "\n%s:\n", section_titles[s]);
        for (int i = 0; i < CLI_COMMANDS; i++) {
            if ((int)command_rows[i].section != s) continue;
            fprintf(out, "  %-8s ", command_rows[i].name);
            screen_wrap(out, command_rows[i].text, TEXT_AT, TEXT_AT, width);
            fputc('\n', out);
        }
    }
    fputs("\nExamples:\n", out);
    for (int i = 0; i < example_count; i++)
        if (i == 0 || example_rows[i].command != example_rows[i - 1].command)
            if (example_rows[i].command < CLI_COMMANDS &&
                command_rows[example_rows[i].command].section == SECTION_USE)
                print_example(out, &example_rows[i], width);
    fputc('\n', out);
    print_words(out, "'cleave COMMAND --help' tells a command's options, their defaults and examples.",
                width);
    print_words(out,
                "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 check could not run, 130 interrupted after "
                "saving, 141 "
                "nobody reads stdout any more.",
                width);
}
