// SPDX-License-Identifier: Apache-2.0
// The tables of options, commands and examples, and what stands in them. Nothing here prints or fails, so
// that all files may ask.
#include "options/options.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

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

const char *const group_titles[GROUPS] = {
#define X(id, title) title,
#include "options/groups.def"
#undef X
};

#define SHORT(commands) .shown = commands
#define LAST_COUNTS .last_counts = true
#define WITH_TRAIN .with_train = true
#define READS .is_read = true
#define WRITES .is_written = true
#define ONLY(data) .only = data
#define BELOW_1(why) .below_1 = why
#define OF(...) .schedules = {__VA_ARGS__}
#define SETS(member)                                                                                         \
    .config = offsetof(clv_train_config, member), .path = #member,                                           \
    .sets = _Generic(((clv_train_config *)0)->member,                                                        \
        bool: SETS_BOOL,                                                                                     \
        int64_t: SETS_WHOLE,                                                                                 \
        uint64_t: SETS_WHOLE,                                                                                \
        float: SETS_FLOAT,                                                                                   \
        double: SETS_REAL,                                                                                   \
        const double *: SETS_POINTER,                                                                        \
        const char *: SETS_TEXT,                                                                             \
        default: SETS_CHOICE)
#define LOG(key) .log = key
#define SUMMARY(where, text) .line = LINE_##where, .said = text

const option_row option_rows[] = {
#define X(commands_, group_, name_, kind_, field_, value_, choices_, standard_, ...)                         \
    {.commands = commands_,                                                                                  \
     .group = GROUP_##group_,                                                                                \
     .name = name_,                                                                                          \
     .kind = kind_,                                                                                          \
     .field = offsetof(cli_args, field_),                                                                    \
     .given = offsetof(cli_args, given.field_),                                                              \
     .value = value_,                                                                                        \
     .choices = choices_,                                                                                    \
     .standard = standard_,                                                                                  \
     .text = __VA_ARGS__},
#include "options/options.def"
#undef X
};

const char *const section_titles[SECTIONS] = {"Models", "Devices", "Reports and files"};

const command_row command_rows[CLI_COMMANDS] = {
#define X(id, name, function, arguments, max_words, text, section)                                           \
    {name, arguments, max_words, text, SECTION_##section},
#include "commands.def"
#undef X
};

const example_row example_rows[] = {
#define X(command, words, text) {CLI_##command, words, text},
#include "options/examples.def"
#undef X
};
const int example_count = sizeof example_rows / sizeof *example_rows;

cli_command cli_command_find(const char *name) {
    int i = 0;
    while (i < CLI_COMMANDS && strcmp(command_rows[i].name, name)) i++;
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

int command_place(const char *name) {
    int i = 0;
    while (i < N_NAMES && (!names[i] || strcmp(names[i], name))) i++;
    return i < N_NAMES ? i : CLI_COMMANDS;
}

const option_row *option_find(const char *name, size_t length, cli_command command) {
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_of(&option_rows[i], command) && strlen(option_rows[i].name) == length &&
            !strncmp(option_rows[i].name, name, length))
            return &option_rows[i];
    return NULL;
}

bool option_has_short(cli_command command) {
    for (int i = 0; i < OPTIONS; i++)
        if (option_is_short(&option_rows[i], command)) return true;
    return false;
}

int option_choice(const char *choices, const char *word) {
    const size_t length = strlen(word);
    for (int place = 0;; place++) {
        const size_t n = strcspn(choices, "|");
        if (n == length && !strncmp(choices, word, n)) return place;
        if (!choices[n]) return -1;
        choices += n + 1;
    }
}

// ---- texts that differ by command -------------------------------------------------------------------------

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
        int command = command_place(word);
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

void option_tell(const option_row *option, cli_command id, char *out, size_t bytes) {
    char text[400], standard[120];
    text_for(option->text, id, text, sizeof text);
    text_for(option->standard, id, standard, sizeof standard);
    snprintf(out, bytes, "%s%s%s%s", text, *standard ? " [default: " : "", standard, *standard ? "]" : "");
}

void command_tell(cli_command command, char *out, size_t bytes) {
    const char *text = command_rows[command].text;
    snprintf(out, bytes, "%c%s.", text[0] - 'a' + 'A', text + 1);
}

void example_tell(const example_row *example, char *out, size_t bytes) {
    const char *words = example->words, *name = strstr(words, command_rows[example->command].name);
    snprintf(out, bytes, "%.*scleave %s", (int)(name - words), words, name);
}
