// SPDX-License-Identifier: Apache-2.0
// Words made into arguments, by the tables of options and commands.
#include "options/options.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/** Other tools' name of a command; NULL: it is none. */
static const char *meant_command(const char *name) {
    static const char *const words[][2] = {
#define OPTION(word, meant)
#define VALUE(option, word, meant)
#define COMMAND(word, meant) {word, meant},
#include "options/synonyms.def"
#undef OPTION
#undef VALUE
#undef COMMAND
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(words[i][0], name) && command_place(words[i][1]) < CLI_COMMANDS) return words[i][1];
    return NULL;
}

int cli_unknown_command(const char *name) {
    if (command_place(name) > CLI_COMMANDS)
        return cli_fail(EXIT_USAGE,
                        "this cleave is built for inference alone (CLEAVE_INFERENCE) and has no '%s'; see "
                        "'cleave --help'",
                        name);
    const char *meant = meant_command(name);
    clv__nearest nearest = {.word = meant ? meant : name};
    if (*name == '-') {
        clv__nearest_offer(&nearest, "--version");
        clv__nearest_offer(&nearest, "--help");
    }
    for (int i = 0; i < CLI_COMMANDS; i++) clv__nearest_offer(&nearest, command_rows[i].name);
    return cli_fail(EXIT_USAGE, "unknown command '%s'%s; see 'cleave --help'", name,
                    clv__nearest_text(&nearest));
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

bool cli_data_is(const cli_args *args, const char *kind) {
    return args->n_words > 0 && !strcmp(args->words[0], kind);
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

/** What other tools call an option ("" as `option`), or a value of one; NULL: nothing that is known. */
static const char *synonym_of(const char *option, const char *word) {
    static const struct {
        const char *option, *word, *meant;
    } synonyms[] = {
#define OPTION(word, meant) {"", word, meant},
#define VALUE(option, word, meant) {option, word, meant},
#define COMMAND(word, meant)
#include "options/synonyms.def"
#undef COMMAND
#undef OPTION
#undef VALUE
    };
    char plain[64];
    size_t n = 0;
    for (; word[n] && n + 1 < sizeof plain; n++) plain[n] = word[n] == '_' ? '-' : word[n];
    plain[n] = 0;
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (!strcmp(synonyms[i].option, option) && !strcmp(synonyms[i].word, plain)) return synonyms[i].meant;
    return NULL;
}

/** `; did you mean 'WORD'?` for a word that is none of `a|b|c`. */
static const char *nearest_choice(const char *option, const char *text, const char *choices,
                                  clv__nearest *nearest) {
    char word[64];
    const char *meant = synonym_of(option, text);
    *nearest = (clv__nearest){.word = meant && option_choice(choices, meant) >= 0 ? meant : text};
    for (const char *at = choices; *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        clv__nearest_offer(nearest, word);
        at += n;
    }
    return clv__nearest_text(nearest);
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
    clv__nearest nearest;
    switch (option->kind) {
    case FLAG: *(bool *)field = true; break;
    case TEXT:
        if (!*text)
            return cli_fail(EXIT_USAGE, "--%s wants %s, not an empty text", option->name, option->value);
        *(const char **)field = text;
        break;
    case CHOICE:
        if (option_choice(option->choices, text) < 0)
            return cli_fail(EXIT_USAGE, "--%s wants one of %s, not '%s'%s", option->name, option->choices,
                            text, nearest_choice(option->name, text, option->choices, &nearest));
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
        break;
    case RATE:
    case NUMBER:
        if (!parse_number(text, &number) || number < 0 || (option->kind == RATE && number == 0))
            return cli_fail(EXIT_USAGE, "--%s wants a number %s 0, not '%s'", option->name,
                            option->kind == RATE ? "greater than" : "of at least", text);
        if (option->below_1 && number >= 1)
            return cli_fail(EXIT_USAGE, "--%s is %s 0 and below 1, not %g%s", option->name,
                            option->kind == RATE ? "above" : "at least", number, option->below_1);
        *(double *)field = number;
        break;
    case BUDGET: return parse_budget(text, field);
    case TEXTS: return add_text(option, text, field);
    }
    return EXIT_DONE;
}

// ---- the words --------------------------------------------------------------------------------------------

/** The commands that have an option: `'cleave train' and 'cleave eval'`; "": none in this build. */
static const char *owners_of(const char *option, char text[400]) {
    int owners[CLI_COMMANDS], n = 0;
    size_t used = 0;
    unsigned all = 0;
    for (int i = 0; i < OPTIONS; i++)
        if (!strcmp(option_rows[i].name, option)) all |= option_rows[i].commands;
    for (int i = 0; i < CLI_COMMANDS; i++)
        if (all & 1u << i) owners[n++] = i;
    *text = 0;
    for (int i = 0; i < n && used < 400; i++)
        used += (size_t)snprintf(text + used, 400 - used, "%s'cleave %s'",
                                 !i           ? ""
                                 : i == n - 1 ? " and "
                                              : ", ",
                                 command_rows[owners[i]].name);
    return text;
}

/** What to say of an option that the command does not have: the nearest of those it has, and whose it is. */
static void option_hint(const char *name, cli_command command, char *hint, size_t bytes) {
    const char *meant = synonym_of("", name);
    if (meant && !option_find(meant, strlen(meant), command)) meant = NULL;
    clv__nearest own = {.word = meant ? meant : name}, any = {.word = name};
    char owners[400];
    bool exists = false;
    for (int i = 0; i < OPTIONS; i++) {
        if (option_rows[i].commands & 1u << command) clv__nearest_offer(&own, option_rows[i].name);
        if (option_rows[i].commands & ((1u << CLI_COMMANDS) - 1))
            clv__nearest_offer(&any, option_rows[i].name);
        exists |= !strcmp(option_rows[i].name, name);
    }
    clv__nearest_offer(&own, "version");
    const bool here = *own.name && strcmp(own.name, "version") != 0;
    *hint = 0;
    if (exists && *owners_of(name, owners))
        snprintf(hint, bytes, here ? "; it is one of %s; did you mean '--%s'?" : "; it is one of %s", owners,
                 own.name);
    else if (here)
        snprintf(hint, bytes, "; did you mean '--%s'?", own.name);
    else if (*own.name)
        snprintf(hint, bytes, "; did you mean 'cleave --version'?");
    else if (exists)
        snprintf(hint, bytes, "; this cleave is built for inference alone (CLEAVE_INFERENCE)");
    else if (*any.name)
        snprintf(hint, bytes, "; did you mean '--%s' of %s?", any.name, owners_of(any.name, owners));
}

/** An option that the command does not have. */
static int unknown_option(const char *word, size_t length, cli_command command) {
    char text[64], hint[600];
    snprintf(text, sizeof text, "%.*s", (int)length, word);
    option_hint(text + strspn(text, "-"), command, hint, sizeof hint);
    return cli_fail(EXIT_USAGE, "unknown option '%.*s'%s; see 'cleave %s --help'", (int)length, word, hint,
                    command_rows[command].name);
}

/** An option that is meant once has one value; given again with another, nobody knows which was meant. */
static int check_again(const option_row *option, const char *value, const char *before) {
    if (option->kind == FLAG || option->kind == BUDGET || option->kind == TEXTS || !before ||
        !strcmp(before, value) || option->last_counts)
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
    for (int i = 0; i < OPTIONS && !args->quiet; i++)
        if (given[i].again)
            fprintf(stderr, "--%s is given more than once: '%s', the last, counts\n", option_rows[i].name,
                    given[i].value);
}

/** One more than there is room for in `words`; at most `most` in all. */
static bool add_word(cli_args *args, const char *word, int most) {
    if (!args->more) args->more = calloc((size_t)most, sizeof *args->more);
    if (args->more) args->more[args->n_more++] = word;
    return args->more != NULL;
}

int cli_parse(int argc, char **argv, cli_command command, cli_args *args) {
    *args = (cli_args){.command = command};
    given_option given[OPTIONS] = {0};
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (only_words || word[0] != '-' || !word[1]) {
            if (args->n_words + args->n_more == command_rows[command].max_words)
                return cli_fail(EXIT_USAGE, "'%s' is one word too many; see 'cleave %s --help'", word,
                                command_rows[command].name);
            if (args->n_words < CLI_MAX_WORDS)
                args->words[args->n_words++] = word;
            else if (!add_word(args, word, argc))
                return cli_fail(EXIT_FAILED, "no memory for %d words", argc);
            continue;
        }
        if (!strcmp(word, "--")) {
            only_words = true;
            continue;
        }
        if (!strcmp(word, "-h")) word = "--help";
        if (!strcmp(word, "--help=all")) {
            args->help = args->help_all = true;
            return EXIT_DONE;
        }
        if (!strcmp(word, "-o")) word = "--output";
        const char *name = word + 2, *equals = strchr(word, '=');
        size_t length = equals && equals > name ? (size_t)(equals - name) : strlen(name);
        const option_row *option = word[1] == '-' ? option_find(name, length, command) : NULL;
        if (!option) return unknown_option(word, equals ? (size_t)(equals - word) : strlen(word), command);
        const char *value = equals ? equals + 1 : NULL;
        if (option->kind == FLAG && value) return cli_fail(EXIT_USAGE, "--%s takes no value", option->name);
        if (option->kind != FLAG && !value) {
            if (++i == argc)
                return cli_fail(EXIT_USAGE, "--%s wants a value: %s", option->name, option->value);
            value = argv[i];
        }
        given_option *before = &given[option - option_rows];
        int code = check_again(option, value, before->value);
        if (code == EXIT_DONE) code = parse_value(option, value, args);
        if (code != EXIT_DONE) return code;
        *(bool *)((char *)args + option->given) = true;
        if (args->help) { // it wins over whatever else is wrong
            args->help_all = i + 1 < argc && !strcmp(argv[i + 1], "all");
            return EXIT_DONE;
        }
        before->again |= option->kind != FLAG && option->kind != TEXTS && option->kind != BUDGET &&
                         before->value && strcmp(before->value, value) != 0;
        before->value = value;
    }
    note_again(args, given);
    return EXIT_DONE;
}
