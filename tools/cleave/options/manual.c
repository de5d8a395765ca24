// SPDX-License-Identifier: Apache-2.0
// The manual pages, and the page docs/command-line.md, of the tables.
#include "options/options.h"

#include <string.h>

static const struct {
    const char *code, *text;
} exits[] = {
    {"0", "done"},
    {"1", "failed; one sentence on stderr says what, where and what to do. Of check: a case failed. Of run: "
          "results are written, and some are not finite"},
    {"2", "wrong usage; but a device that is not there because its driver failed is 1"},
    {"3",
     "of check alone: no case failed, and some, or all, could not run (no memory, a device that cannot be "
     "used, a file that cannot be read or written)"},
    {"130",
     "interrupted, after the step was finished and the checkpoint, if one was asked for, saved; before "
     "the first step at once"},
    {"141", "whoever read stdout has gone, as `head` does; files were written all the same"},
};
static const struct {
    const char *name, *text;
} variables[] = {
#define X(name, text) {name, text},
#include "options/variables.def"
#undef X
};
enum { N_EXITS = sizeof exits / sizeof *exits, N_VARIABLES = sizeof variables / sizeof *variables };

// ---- manual pages -----------------------------------------------------------------------------------------

/** Text for roff: a dash stays a dash, a backslash one, and no line begins with a command. */
static void put_roff(FILE *out, const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", out);
    for (; *text; text++) fprintf(out, *text == '-' ? "\\-" : *text == '\\' ? "\\e" : "%c", *text);
}

/** A paragraph with a head in bold letters. */
static void put_item(FILE *out, const char *head, const char *value, const char *text) {
    fputs(".TP\n.B ", out);
    put_roff(out, head);
    fprintf(out, "%s%s\n", *value ? " " : "", value);
    put_roff(out, text);
    fputc('\n', out);
}

static void put_title(FILE *out, const char *name, const char *what) {
    fputs(".TH ", out);
    for (const char *c = name; *c; c++) fputc(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c, out);
    fprintf(out, " 1 \"\" \"Cleave %s\" \"Cleave\"\n.SH NAME\n", clv_version());
    put_roff(out, name);
    fputs(" \\- ", out);
    put_roff(out, what);
    fputs("\n.SH SYNOPSIS\n", out);
}

static void put_usage(FILE *out, const command_row *row) {
    fprintf(out, ".B cleave %s\n%s%s[options]\n.br\n", row->name, row->arguments, *row->arguments ? " " : "");
}

/** A command's options, each group behind its title between two texts. */
static void put_options(FILE *out, cli_command id, const char *before, const char *behind,
                        void (*put)(FILE *out, const char *name, const char *value, const char *text)) {
    char name[64], text[700];
    for (int g = 0; g < GROUPS; g++) {
        bool begun = false;
        for (int i = 0; i < OPTIONS; i++) {
            const option_row *option = &option_rows[i];
            if (!option_is_of(option, id) || option->group != (option_group)g) continue;
            if (!begun) fprintf(out, "%s%s%s", before, group_titles[g], behind);
            begun = true;
            snprintf(name, sizeof name, "--%s", option->name);
            option_tell(option, id, text, sizeof text);
            put(out, name, option->value, text);
        }
    }
}

/** `cleave-train.1` */
static void command_manual(FILE *out, cli_command id) {
    char text[700];
    snprintf(text, sizeof text, "cleave-%s", command_rows[id].name);
    put_title(out, text, command_rows[id].text);
    put_usage(out, &command_rows[id]);
    fputs(".SH DESCRIPTION\n", out);
    command_tell(id, text, sizeof text);
    put_roff(out, text);
    fputs("\n.SH OPTIONS\n", out);
    put_options(out, id, ".SS ", "\n", put_item);
    fputs(".SH EXAMPLES\n", out);
    for (int i = 0; i < example_count; i++) {
        if (example_rows[i].command != id) continue;
        fputs(".PP\n", out);
        put_roff(out, example_rows[i].text);
        fputs(":\n.PP\n.RS\n", out);
        example_tell(&example_rows[i], text, sizeof text);
        put_roff(out, text);
        fputs("\n.RE\n", out);
    }
    fputs(".SH SEE ALSO\n.BR cleave (1)\nfor exit codes and variables\n", out);
}

void cli_manual(FILE *out, cli_command command) {
    char text[64];
    if (command != CLI_COMMANDS) {
        command_manual(out, command);
        return;
    }
    snprintf(text, sizeof text, "%s neural networks on any OpenCL device", cli_what_it_does);
    put_title(out, "cleave", text);
    for (int i = 0; i < CLI_COMMANDS; i++) put_usage(out, &command_rows[i]);
    fputs(".SH COMMANDS\nEach has a page of its own, and\n.BR \"cleave help \" COMMAND .\n", out);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        snprintf(text, sizeof text, "cleave-%s", command_rows[i].name);
        put_item(out, text, "(1)", command_rows[i].text);
    }
    fputs(".SH EXIT STATUS\n", out);
    for (int i = 0; i < N_EXITS; i++) put_item(out, exits[i].code, "", exits[i].text);
    fputs(".SH ENVIRONMENT\n", out);
    for (int i = 0; i < N_VARIABLES; i++) put_item(out, variables[i].name, "", variables[i].text);
}

// ---- the page ---------------------------------------------------------------------------------------------

/** Text for a table of Markdown: a bar ends no cell, a star begins no emphasis. */
static void put_cell(FILE *out, const char *text) {
    for (; *text; text++) fprintf(out, strchr("|*_<>", *text) ? "\\%c" : "%c", *text);
}

static void put_row(FILE *out, const char *code, const char *value, const char *text) {
    fprintf(out, "| `%s%s", code, *value ? " " : "");
    for (; *value; value++) fprintf(out, *value == '|' ? "\\%c" : "%c", *value);
    fputs("` | ", out);
    put_cell(out, text);
    fputs(" |\n", out);
}

static void command_page(FILE *out, cli_command id) {
    const command_row *row = &command_rows[id];
    char text[700];
    command_tell(id, text, sizeof text);
    fprintf(out, "\n## cleave %s\n\n", row->name);
    put_cell(out, text);
    fprintf(out, "\n\n```sh\ncleave %s%s%s [options]\n", row->name, *row->arguments ? " " : "",
            row->arguments);
    for (int i = 0; i < example_count; i++) {
        if (example_rows[i].command != id) continue;
        example_tell(&example_rows[i], text, sizeof text);
        fprintf(out, "%s   # ", text);
        fprintf(out, "%s\n", example_rows[i].text);
    }
    fputs("```\n", out);
    put_options(out, id, "\n| ", " | |\n|---|---|\n", put_row);
}

void cli_markdown(FILE *out) {
    fputs(
        "# The command line\n\n"
        "You want to know which commands and options there are. This page is made of the tool's own tables "
        "by\n"
        "`cleave --markdown`; `cleave help COMMAND` tells the same in a terminal, `man cleave-COMMAND` "
        "too.\n\n"
        "Every command takes `--json` (one object on stdout; progress and notes go to stderr), `--quiet` and "
        "`--help`.\n"
        "A table fits the terminal.\n\n"
        "| command | what it does |\n|---|---|\n",
        out);
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(out, "| [`%s`](#cleave-%s) | ", command_rows[i].name, command_rows[i].name);
        put_cell(out, command_rows[i].text);
        fputs(" |\n", out);
    }
    fputs("\n| exit code | means |\n|---|---|\n", out);
    for (int i = 0; i < N_EXITS; i++) put_row(out, exits[i].code, "", exits[i].text);
    fputs("\n| variable | does |\n|---|---|\n", out);
    for (int i = 0; i < N_VARIABLES; i++) put_row(out, variables[i].name, "", variables[i].text);
    for (int i = 0; i < CLI_COMMANDS; i++) command_page(out, (cli_command)i);
}
