// SPDX-License-Identifier: Apache-2.0
// The option tables made into parsing, help, a manual page and completion.
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { FLAG, TEXT, CHOICE, COUNT, SEED, RATE, NUMBER, BUDGET, TEXTS } kind;

enum {
#define X(id, ...) id = 1 << CLI_##id,
#include "commands.def"
#undef X
    ALL = (1 << CLI_COMMANDS) - 1
};

typedef struct option_row {
    unsigned commands;
    const char *name;
    kind kind;
    size_t field;
    const char *value, *choices, *text;
} option_row;

static const option_row options[] = {
#define X(commands, name, kind, field, value, choices, text)                                                 \
    {commands, name, kind, offsetof(cli_args, field), value, choices, text},
#include "options.def"
#undef X
};
enum { N_OPTIONS = sizeof options / sizeof *options };

typedef struct command_row {
    const char *name, *arguments;
    int max_words;
    const char *text;
} command_row;

static const command_row commands[] = {
#define X(id, name, function, arguments, max_words, text) {name, arguments, max_words, text},
#include "commands.def"
#undef X
};

cli_command cli_command_find(const char *name) {
    int i = 0;
    while (i < CLI_COMMANDS && strcmp(commands[i].name, name)) i++;
    return (cli_command)i;
}

// ---- values -------------------------------------------------------------------------------------------------------

bool cli_parse_bytes(const char *text, uint64_t *bytes) {
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},       {"B", 1},        {"K", 0x1p10}, {"KiB", 0x1p10},
                 {"M", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30}, {"GiB", 0x1p30},
                 {"KB", 1e3},   {"kB", 1e3},     {"MB", 1e6},   {"GB", 1e9}};
    if (!(*text >= '0' && *text <= '9')) return false; // strtod would also take spaces, signs, inf and hex
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return false;
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name)) continue;
        number *= units[i].factor;
        if (!(number >= 0 && number < 0x1p63)) return false;
        *bytes = (uint64_t)number;
        return true;
    }
    return false;
}

bool cli_parse_size(const char *text, int64_t size[3]) {
    for (int i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        if (!(*text >= '1' && *text <= '9')) return false; // strtoll would also take blanks and signs
        size[i] = strtoll(text, &end, 10);
        if (errno || *end != (i < 2 ? 'x' : 0)) return false;
        text = end + 1;
    }
    return true;
}

static bool parse_whole(const char *text, int64_t *out) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return end != text && !*end && errno == 0;
}

static bool parse_number(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out);
}

/** Is `text` one of the words of `a|b|c`? */
static bool is_choice(const char *text, const char *choices) {
    size_t length = strchr(text, '|') ? 0 : strlen(text); // two of them are none
    for (const char *at = choices; length && (at = strstr(at, text)); at++)
        if ((at == choices || at[-1] == '|') && (at[length] == '|' || !at[length])) return true;
    return false;
}

static int parse_budget(const char *text, cli_budgets *budgets) {
    const char *equals = strrchr(text, '=');
    cli_budget budget = {0};
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof budget.device ||
        !cli_parse_bytes(equals + 1, &budget.bytes) || !budget.bytes)
        return cli_fail(EXIT_USAGE,
                        "--budget wants DEVICE=BYTES, as in cpu:0=512MiB (KiB, MiB, GiB, KB, MB, GB), "
                        "not '%s'",
                        text);
    if (budgets->n == CLI_MAX_BUDGETS)
        return cli_fail(EXIT_USAGE, "--budget can be given at most %d times", CLI_MAX_BUDGETS);
    memcpy(budget.device, text, (size_t)(equals - text));
    budgets->item[budgets->n++] = budget;
    return EXIT_DONE;
}

static int add_text(const option_row *option, const char *text, cli_texts *texts) {
    if (!*text) return cli_fail(EXIT_USAGE, "--%s wants %s, not an empty text", option->name, option->value);
    if (texts->n == CLI_MAX_TEXTS)
        return cli_fail(EXIT_USAGE, "--%s can be given at most %d times", option->name, CLI_MAX_TEXTS);
    texts->item[texts->n++] = text;
    return EXIT_DONE;
}

static int parse_value(const option_row *option, const char *text, cli_args *args) {
    void *field = (char *)args + option->field;
    int64_t whole;
    double number;
    switch (option->kind) {
    case FLAG: *(bool *)field = true; break;
    case TEXT:
        if (!*text)
            return cli_fail(EXIT_USAGE, "--%s wants %s, not an empty text", option->name, option->value);
        *(const char **)field = text;
        break;
    case CHOICE:
        if (!is_choice(text, option->choices))
            return cli_fail(EXIT_USAGE, "--%s wants one of %s, not '%s'", option->name, option->choices,
                            text);
        *(const char **)field = text;
        break;
    case COUNT:
        if (!parse_whole(text, &whole) || whole < 1)
            return cli_fail(EXIT_USAGE, "--%s wants a whole number of at least 1, not '%s'", option->name,
                            text);
        *(int64_t *)field = whole;
        break;
    case SEED:
        if (!parse_whole(text, &whole) || whole < 0)
            return cli_fail(EXIT_USAGE, "--%s wants a whole number of at least 0, not '%s'", option->name,
                            text);
        *(uint64_t *)field = (uint64_t)whole;
        args->has_seed = true;
        break;
    case RATE:
    case NUMBER:
        if (!parse_number(text, &number) || number < 0 || (option->kind == RATE && number == 0))
            return cli_fail(EXIT_USAGE, "--%s wants a number %s 0, not '%s'", option->name,
                            option->kind == RATE ? "greater than" : "of at least", text);
        *(double *)field = number;
        if (field == &args->momentum) args->given_momentum = true;
        if (field == &args->weight_decay) args->given_weight_decay = true;
        break;
    case BUDGET: return parse_budget(text, field);
    case TEXTS: return add_text(option, text, field);
    }
    return EXIT_DONE;
}

// ---- the words ----------------------------------------------------------------------------------------------------

static const option_row *find_option(const char *name, size_t length, cli_command command) {
    for (int i = 0; i < N_OPTIONS; i++)
        if ((options[i].commands & 1u << command) && strlen(options[i].name) == length &&
            !strncmp(options[i].name, name, length))
            return &options[i];
    return NULL;
}

int cli_parse(int argc, char **argv, cli_command command, cli_args *args) {
    *args = (cli_args){.command = command};
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_words || word[0] != '-' || !word[1]) {
            if (args->n_words == commands[command].max_words)
                return cli_fail(EXIT_USAGE, "'%s' is one word too many; see 'cleave %s --help'", word,
                                commands[command].name);
            args->words[args->n_words++] = word;
            continue;
        }
        if (!strcmp(word, "--")) {
            only_words = true;
            continue;
        }
        if (!strcmp(word, "-h")) word = "--help";
        if (!strcmp(word, "-o")) word = "--output";
        const char *name = word + 2, *equals = strchr(word, '=');
        size_t length = equals && equals > name ? (size_t)(equals - name) : strlen(name);
        const option_row *option = word[1] == '-' ? find_option(name, length, command) : NULL;
        if (!option)
            return cli_fail(EXIT_USAGE, "unknown option '%.*s'; see 'cleave %s --help'",
                            equals ? (int)(equals - word) : (int)strlen(word), word, commands[command].name);
        const char *value = equals ? equals + 1 : NULL;
        if (option->kind == FLAG && value) return cli_fail(EXIT_USAGE, "--%s takes no value", option->name);
        if (option->kind != FLAG && !value) {
            if (++i == argc)
                return cli_fail(EXIT_USAGE, "--%s wants a value: %s", option->name, option->value);
            value = argv[i];
        }
        int code = parse_value(option, value, args);
        if (code != EXIT_DONE) return code;
        if (args->help) return EXIT_DONE; // help wins over whatever else is wrong
    }
    return EXIT_DONE;
}

// ---- texts made of the tables -------------------------------------------------------------------------------------

void cli_help(FILE *out, cli_command id) {
    const command_row *row = &commands[id];
    fprintf(out, "Usage: cleave %s%s%s [options]\n\n%c%s.\n\nOptions:\n", row->name,
            *row->arguments ? " " : "", row->arguments, row->text[0] - 'a' + 'A', row->text + 1);
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(options[i].commands & 1u << id)) continue;
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", options[i].name, *options[i].value ? " " : "",
                 options[i].value);
        fprintf(out, "  %-24s %s\n", left, options[i].text);
    }
}

void cli_overview(FILE *out) {
    fprintf(
        out,
        "Cleave %s trains and runs neural networks on any OpenCL device.\n\nUsage: cleave COMMAND ...\n\n",
        clv_version());
    for (int i = 0; i < CLI_COMMANDS; i++) fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].text);
    fprintf(out, "\n'cleave COMMAND --help' tells a command's options. Try: cleave train fashion-mnist\n"
                 "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted after saving.\n");
}

/** Text for roff: a dash is written so that it stays a dash. */
static void put_roff(FILE *out, const char *text) {
    for (; *text; text++) fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

void cli_manual(FILE *out) {
    fprintf(
        out,
        ".TH CLEAVE 1 \"\" \"Cleave %s\"\n.SH NAME\ncleave \\- train and run neural networks on any OpenCL "
        "device\n.SH SYNOPSIS\n",
        clv_version());
    for (int i = 0; i < CLI_COMMANDS; i++)
        fprintf(out, ".B cleave %s\n%s%s[options]\n.br\n", commands[i].name, commands[i].arguments,
                *commands[i].arguments ? " " : "");
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(out, ".SH %s\n%c%s.\n", commands[i].name, commands[i].text[0] - 'a' + 'A',
                commands[i].text + 1);
        for (int j = 0; j < N_OPTIONS; j++) {
            if (!(options[j].commands & 1u << i)) continue;
            fprintf(out, ".TP\n.B ");
            put_roff(out, "--");
            put_roff(out, options[j].name);
            fprintf(out, " %s\n", options[j].value);
            put_roff(out, options[j].text);
            fputc('\n', out);
        }
    }
    fprintf(out,
            ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 130 interrupted after saving.\n"
            ".SH ENVIRONMENT\n.TP\n.B CLEAVE_VISIBLE_DEVICES\nDevices the process sees: indices or names, "
            "with commas.\n.TP\n.B CLEAVE_PARTITION\nDevices to split: cpu:0=2.\n.TP\n.B CLEAVE_CACHE_DIR\n"
            "Where compiled programs are kept.\n.TP\n.B CLEAVE_DATA_DIR\nWhere datasets are.\n"
            ".TP\n.B CLEAVE_VARIANTS\nPins how ops are computed: matmul=plain.\n"
            ".TP\n.B CLEAVE_TUNING\nA tuning file, a folder of them, or none.\n"
            ".TP\n.B CLEAVE_COMPILE_HELPER\nThe program that compiles kernels in further processes when "
            "nothing is "
            "cached; empty: none.\n"
            ".TP\n.B CLEAVE_PROBE\nchild: look at drivers in a child process first, always; guard: never.\n"
            ".TP\n.B CLEAVE_DEBUG\n1 devices, 2 launches, 3 the plan, 4 kernel sources.\n.TP\n.B "
            "NO_COLOR\nNo colours on a terminal.\n");
}

void cli_completion(FILE *out) {
    fprintf(out, "_cleave() {\n    local word=${COMP_WORDS[COMP_CWORD]} words\n    case "
                 "$COMP_CWORD:${COMP_WORDS[1]} in\n"
                 "    1:*) words='");
    for (int i = 0; i < CLI_COMMANDS; i++) fprintf(out, "%s%s", i ? " " : "", commands[i].name);
    fprintf(out, "' ;;\n");
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(out, "    *:%s) words='", commands[i].name);
        for (int j = 0; j < N_OPTIONS; j++)
            if (options[j].commands & 1u << i) fprintf(out, "--%s ", options[j].name);
        fprintf(out, "' ;;\n");
    }
    fprintf(out, "    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                 "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n}\n"
                 "complete -F _cleave cleave\n");
}
