// SPDX-License-Identifier: Apache-2.0
// The option tables made into parsing, help, a manual page and completion.
#include "cli.h"
#include "screen.h"

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
#ifdef CLEAVE_INFERENCE
#define X(...)
#define T(id, ...) id = 1 << CLI_##id,
#include "commands.def"
#undef X
    PLAN_TRAINING = 0,
#else
    PLAN_TRAINING = PLAN,
#endif
    ALL = (1 << CLI_COMMANDS) - 1
};

typedef enum group {
#define X(id, title) GROUP_##id,
#include "groups.def"
#undef X
    GROUPS
} group;

static const char *const groups[] = {
#define X(id, title) title,
#include "groups.def"
#undef X
};

typedef struct option_row {
    unsigned commands;
    group group;
    const char *name;
    kind kind;
    size_t field;
    const char *value, *choices;
    const char *standard, *text; // may differ by command: see text_for
} option_row;

static const option_row options[] = {
#define X(commands, group, name, kind, field, value, choices, standard, text)                                \
    {commands, GROUP_##group, name, kind, offsetof(cli_args, field), value, choices, standard, text},
#include "options.def"
#undef X
};
enum { N_OPTIONS = sizeof options / sizeof *options };

typedef struct command_row {
    const char *name, *arguments;
    int max_words;
    const char *text;
    enum { USE, DEVICE, KEEP, SECTIONS } section;
} command_row;

static const char *const sections[] = {"Models", "Devices", "Reports and files"};

static const command_row commands[] = {
#define X(id, name, function, arguments, max_words, text, section)                                           \
    {name, arguments, max_words, text, section},
#include "commands.def"
#undef X
};

static const struct {
    cli_command command;
    const char *words, *text;
} examples[] = {
#define X(command, words, text) {CLI_##command, words, text},
#include "examples.def"
#undef X
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

cli_command cli_command_find(const char *name) {
    int i = 0;
    while (i < CLI_COMMANDS && strcmp(commands[i].name, name)) i++;
    return (cli_command)i;
}

/** The names in the order of cli_command, those behind CLI_COMMANDS too. */
static const char *const names[] = {
#define X(id, name, ...) name,
#include "commands.def"
#undef X
    NULL,
#ifdef CLEAVE_INFERENCE
#define X(...)
#define T(id, name, ...) name,
#include "commands.def"
#undef X
#endif
};
enum { N_NAMES = sizeof names / sizeof *names };

/** CLI_COMMANDS: no command; behind it: one that is not in this build. */
static int find_name(const char *name) {
    int i = 0;
    while (i < N_NAMES && (!names[i] || strcmp(names[i], name))) i++;
    return i < N_NAMES ? i : CLI_COMMANDS;
}

int cli_unknown_command(const char *name) {
    if (find_name(name) > CLI_COMMANDS)
        return cli_fail(EXIT_USAGE,
                        "this cleave is built for inference alone (CLEAVE_INFERENCE) and has no '%s'; see "
                        "'cleave --help'",
                        name);
    clv_nearest nearest = {.word = name};
    for (int i = 0; i < CLI_COMMANDS; i++) clv_nearest_offer(&nearest, commands[i].name);
    return cli_fail(EXIT_USAGE, "unknown command '%s'%s; see 'cleave --help'", name,
                    clv_nearest_text(&nearest));
}

// ---- values -----------------------------------------------------------------------------------------------

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

/** `; did you mean 'WORD'?` for a word that is none of `a|b|c`. */
static const char *nearest_choice(const char *text, const char *choices, clv_nearest *nearest) {
    char word[64];
    *nearest = (clv_nearest){.word = text};
    for (const char *at = choices; *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        clv_nearest_offer(nearest, word);
        at += n;
    }
    return clv_nearest_text(nearest);
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
    memcpy(budget.device, text, (size_t)(equals - text));
    if (budgets->n == CLI_MAX_BUDGETS)
        return cli_fail(EXIT_USAGE, "--budget can be given at most %d times", CLI_MAX_BUDGETS);
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
    clv_nearest nearest;
    switch (option->kind) {
    case FLAG: *(bool *)field = true; break;
    case TEXT:
        if (!*text)
            return cli_fail(EXIT_USAGE, "--%s wants %s, not an empty text", option->name, option->value);
        *(const char **)field = text;
        break;
    case CHOICE:
        if (!is_choice(text, option->choices))
            return cli_fail(EXIT_USAGE, "--%s wants one of %s, not '%s'%s", option->name, option->choices,
                            text, nearest_choice(text, option->choices, &nearest));
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
        if (field == &args->validation) args->given_validation = true;
        if (field == &args->temperature) args->given_temperature = true;
        break;
    case BUDGET: return parse_budget(text, field);
    case TEXTS: return add_text(option, text, field);
    }
    return EXIT_DONE;
}

// ---- the words --------------------------------------------------------------------------------------------

static const option_row *find_option(const char *name, size_t length, cli_command command) {
    for (int i = 0; i < N_OPTIONS; i++)
        if ((options[i].commands & 1u << command) && strlen(options[i].name) == length &&
            !strncmp(options[i].name, name, length))
            return &options[i];
    return NULL;
}

/** An option that the command does not have: the nearest of those it has, or whose it is. */
static int unknown_option(const char *word, size_t length, cli_command command) {
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    clv_nearest nearest = {.word = text + strspn(text, "-")};
    const option_row *elsewhere = NULL;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (options[i].commands & 1u << command) clv_nearest_offer(&nearest, options[i].name);
        if (!strcmp(options[i].name, nearest.word)) elsewhere = &options[i];
    }
    char hint[96] = "";
    int owner = 0;
    while (elsewhere && owner < CLI_COMMANDS && !(elsewhere->commands & 1u << owner)) owner++;
    if (*nearest.name)
        snprintf(hint, sizeof hint, "; did you mean '--%s'?", nearest.name);
    else if (elsewhere && owner == CLI_COMMANDS)
        snprintf(hint, sizeof hint, "; this cleave is built for inference alone (CLEAVE_INFERENCE)");
    else if (elsewhere)
        snprintf(hint, sizeof hint, "; it is one of 'cleave %s'", commands[owner].name);
    return cli_fail(EXIT_USAGE, "unknown option '%.*s'%s; see 'cleave %s --help'", (int)length, word, hint,
                    commands[command].name);
}

/** May it be given again with another value? What remedies name may: they are pasted behind a command as it
 *  stands. */
static bool counts_last(const option_row *option) {
    static const char *const pasted[] = {"batch", "recompute", "device", "place", "budget"};
    for (size_t i = 0; i < sizeof pasted / sizeof *pasted; i++)
        if (!strcmp(option->name, pasted[i])) return true;
    return false;
}

/** An option that is meant once has one value; given again with another, nobody knows which was meant. */
static int check_again(const option_row *option, const char *value, const char *before) {
    if (option->kind == FLAG || option->kind == BUDGET || option->kind == TEXTS || !before ||
        !strcmp(before, value) || counts_last(option))
        return EXIT_DONE;
    return cli_fail(EXIT_USAGE, "--%s is given twice, with '%s' and with '%s'; leave one of them out",
                    option->name, before, value);
}

/** What was given, by option; `again`: with another value than before. */
typedef struct given_option {
    const char *value;
    bool again;
} given_option;

static void note_again(const cli_args *args, const given_option *given) {
    for (int i = 0; i < N_OPTIONS && !args->quiet; i++)
        if (given[i].again)
            fprintf(stderr, "--%s is given more than once: '%s', the last, counts\n", options[i].name,
                    given[i].value);
}

int cli_parse(int argc, char **argv, cli_command command, cli_args *args) {
    *args = (cli_args){.command = command};
    given_option given[N_OPTIONS] = {0};
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
        if (!option) return unknown_option(word, equals ? (size_t)(equals - word) : strlen(word), command);
        const char *value = equals ? equals + 1 : NULL;
        if (option->kind == FLAG && value) return cli_fail(EXIT_USAGE, "--%s takes no value", option->name);
        if (option->kind != FLAG && !value) {
            if (++i == argc)
                return cli_fail(EXIT_USAGE, "--%s wants a value: %s", option->name, option->value);
            value = argv[i];
        }
        given_option *before = &given[option - options];
        int code = check_again(option, value, before->value);
        if (code == EXIT_DONE) code = parse_value(option, value, args);
        if (code != EXIT_DONE) return code;
        if (args->help) return EXIT_DONE; // help wins over whatever else is wrong
        before->again |= option->kind != FLAG && option->kind != TEXTS && option->kind != BUDGET &&
                         before->value && strcmp(before->value, value) != 0;
        before->value = value;
    }
    note_again(args, given);
    return EXIT_DONE;
}

// ---- texts made of the tables -----------------------------------------------------------------------------

/** Are all words before the colon commands, and is `id` one of them? -1: it is no list of commands. */
static int names_command(const char *part, size_t length, cli_command id) {
    const char *colon = memchr(part, ':', length);
    bool found = false;
    if (!colon) return -1;
    while (part < colon) {
        size_t n = 0;
        char word[32];
        while (part + n < colon && part[n] != ' ') n++;
        if (n >= sizeof word) return -1;
        memcpy(word, part, n);
        word[n] = 0;
        int command = find_name(word);
        if (command == CLI_COMMANDS) return -1;
        found |= command == (int)id;
        part += n + (part + n < colon);
    }
    return found;
}

/** Of `64 | eval run: 256` what is for a command: 256 for eval and run, 64 for the others. "": nothing. */
static const char *text_for(const char *texts, cli_command id, char *out, size_t bytes) {
    *out = 0;
    for (const char *part = texts; part;) {
        const char *end = strstr(part, " | "), *text = part;
        size_t length = end ? (size_t)(end - part) : strlen(part);
        int named = names_command(part, length, id);
        if (named > 0) {
            text = (const char *)memchr(part, ':', length) + 1;
            text += *text == ' ';
        }
        if (named) snprintf(out, bytes, "%.*s", (int)(length - (size_t)(text - part)), text);
        if (named > 0) break;
        part = end ? end + 3 : NULL;
    }
    return out;
}

/** What an option does, and its default, for a command. */
static void tell_option(const option_row *option, cli_command id, char *out, size_t bytes) {
    char text[400], standard[120];
    text_for(option->text, id, text, sizeof text);
    text_for(option->standard, id, standard, sizeof standard);
    snprintf(out, bytes, "%s%s%s%s", text, *standard ? " [default: " : "", standard, *standard ? "]" : "");
}

/** Columns for help. Where no width is known 80 is what readers expect. */
static int help_width(FILE *out) {
    int width = screen_width(out);
    return width ? width : SCREEN_USUAL;
}

static void print_option(FILE *out, const option_row *option, cli_command id, int width) {
    enum { TEXT_AT = 27, LEAST_TEXT = 30 }; // on a narrow screen the text stands under the option
    const int indent = width - TEXT_AT < LEAST_TEXT ? 6 : TEXT_AT;
    char left[64], text[600];
    int at =
        snprintf(left, sizeof left, "  --%s%s%s", option->name, *option->value ? " " : "", option->value);
    tell_option(option, id, text, sizeof text);
    fputs(left, out);
    if (at + 2 > indent) {
        fputc('\n', out);
        at = 0;
    }
    fprintf(out, "%*s", indent - at, "");
    screen_wrap(out, text, indent, indent, width);
    fputc('\n', out);
}

/** An example as it is typed: what is assigned for it goes before the program. */
static void example_text(int i, char *out, size_t bytes) {
    const char *words = examples[i].words, *name = strstr(words, commands[examples[i].command].name);
    snprintf(out, bytes, "%.*scleave %s", (int)(name - words), words, name);
}

/** An example, where it is long with line ends that a shell passes over, and what it does. */
static void print_example(FILE *out, int i, int width) {
    enum { INDENT = 6 };
    char text[256];
    example_text(i, text, sizeof text);
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
    screen_wrap(out, examples[i].text, INDENT + 2, INDENT + 2, width);
    fputc('\n', out);
}

void cli_help(FILE *out, cli_command id) {
    const command_row *row = &commands[id];
    const int width = help_width(out);
    char text[256];
    fprintf(out, "Usage: cleave %s%s%s [options]\n\n", row->name, *row->arguments ? " " : "", row->arguments);
    snprintf(text, sizeof text, "%c%s.", row->text[0] - 'a' + 'A', row->text + 1);
    screen_wrap(out, text, 0, 0, width);
    fputc('\n', out);
    for (int g = 0; g < GROUPS; g++) {
        bool begun = false;
        for (int i = 0; i < N_OPTIONS; i++) {
            if (!(options[i].commands & 1u << id) || options[i].group != (group)g) continue;
            if (!begun) fprintf(out, "\n%s:\n", groups[g]);
            begun = true;
            print_option(out, &options[i], id, width);
        }
    }
    fputs("\nExamples:\n", out);
    for (int i = 0; i < N_EXAMPLES; i++)
        if (examples[i].command == id) print_example(out, i, width);
}

#ifdef CLEAVE_INFERENCE
static const char what_it_does[] = "runs";
#else
static const char what_it_does[] = "trains and runs";
#endif

void cli_overview(FILE *out) {
    enum { TEXT_AT = 11 };
    const int width = help_width(out);
    fprintf(out, "Cleave %s %s neural networks on any OpenCL device.\n\nUsage: cleave COMMAND [options]\n",
            clv_version(), what_it_does);
    for (int s = 0; s < SECTIONS; s++) {
        fprintf(out, "\n%s:\n", sections[s]);
        for (int i = 0; i < CLI_COMMANDS; i++) {
            if ((int)commands[i].section != s) continue;
            fprintf(out, "  %-8s ", commands[i].name);
            screen_wrap(out, commands[i].text, TEXT_AT, TEXT_AT, width);
            fputc('\n', out);
        }
    }
    fputs("\nExamples:\n", out);
    for (int i = 0; i < N_EXAMPLES; i++)
        if (i == 0 || examples[i].command != examples[i - 1].command)
            if (examples[i].command < CLI_COMMANDS && commands[examples[i].command].section == USE)
                print_example(out, i, width);
    fputc('\n', out);
    screen_wrap(out, "'cleave COMMAND --help' tells a command's options, their defaults and examples.", 0, 0,
                width);
    fputc('\n', out);
    screen_wrap(
        out,
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 check could not run, 130 interrupted after saving.",
        0, 0, width);
    fputc('\n', out);
}

/** Text for roff: a dash is written so that it stays a dash. */
static void put_roff(FILE *out, const char *text) {
    for (; *text; text++) fprintf(out, *text == '-' ? "\\-" : "%c", *text);
}

void cli_manual(FILE *out) {
    fprintf(out,
            ".TH CLEAVE 1 \"\" \"Cleave %s\"\n.SH NAME\ncleave \\- %s neural networks on any OpenCL "
            "device\n.SH SYNOPSIS\n",
            clv_version(), what_it_does);
    for (int i = 0; i < CLI_COMMANDS; i++)
        fprintf(out, ".B cleave %s\n%s%s[options]\n.br\n", commands[i].name, commands[i].arguments,
                *commands[i].arguments ? " " : "");
    for (int i = 0; i < CLI_COMMANDS; i++) {
        fprintf(out, ".SH %s\n%c%s.\n", commands[i].name, commands[i].text[0] - 'a' + 'A',
                commands[i].text + 1);
        for (int j = 0; j < N_OPTIONS; j++) {
            char text[600];
            if (!(options[j].commands & 1u << i)) continue;
            fprintf(out, ".TP\n.B ");
            put_roff(out, "--");
            put_roff(out, options[j].name);
            fprintf(out, " %s\n", options[j].value);
            tell_option(&options[j], (cli_command)i, text, sizeof text);
            put_roff(out, text);
            fputc('\n', out);
        }
        for (int j = 0; j < N_EXAMPLES; j++) {
            char text[256];
            if ((int)examples[j].command != i) continue;
            fprintf(out, ".PP\n");
            put_roff(out, examples[j].text);
            fprintf(out, ":\n.PP\n.RS\n");
            example_text(j, text, sizeof text);
            put_roff(out, text);
            fprintf(out, "\n.RE\n");
        }
    }
    fprintf(out,
            ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 check could not run, 130 interrupted after "
            "saving.\n"
            ".SH ENVIRONMENT\n.TP\n.B CLEAVE_VISIBLE_DEVICES\nDevices the process sees: indices or names, "
            "with commas.\n.TP\n.B CLEAVE_PARTITION\nDevices to split: cpu:0=2.\n.TP\n.B CLEAVE_CACHE_DIR\n"
            "Where compiled programs are kept.\n.TP\n.B CLEAVE_DATA_DIR\nWhere datasets are.\n"
            ".TP\n.B CLEAVE_EXECUTION\nHow devices do work-items, where it is to be another way than their "
            "traits say: cpu:0=lanes.\n.TP\n.B CLEAVE_VARIANTS\nPins how ops are computed: matmul=plain.\n"
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
