// SPDX-License-Identifier: Apache-2.0
// The tables of commands, options and examples, as parsing, help, manuals and completion read them. They
// stand in commands.def, options.def, groups.def and examples.def; option_rows.c holds them.
#ifndef CLEAVE_OPTIONS_H
#define CLEAVE_OPTIONS_H

#include "cli.h"

typedef enum option_kind { FLAG, TEXT, CHOICE, COUNT, SEED, RATE, NUMBER, BUDGET, TEXTS } option_kind;

typedef enum option_group {
#define X(id, title) GROUP_##id,
#include "options/groups.def"
#undef X
    GROUPS
} option_group;

/** Data that options are of. */
enum { OF_PICTURES = 1, OF_TEXTS = 2, OF_TABLES = 4, OF_ARRAYS = 8, OF_IMAGES = 16 };

/** The type of the field that a setting has in clv_train_config. */
typedef enum setting_type {
    SETS_NOTHING,
    SETS_BOOL,
    SETS_WHOLE,
    SETS_FLOAT,
    SETS_REAL,
    SETS_POINTER, // to a double: NULL is not given
    SETS_TEXT,
    SETS_CHOICE
} setting_type;

/** Lines of a training's summary that tell settings. */
typedef enum setting_line { LINE_NONE, LINE_MODEL, LINE_SAMPLES, LINE_OPTIMIZER } setting_line;

typedef struct option_row {
    unsigned commands;
    option_group group;
    const char *name;
    option_kind kind;
    size_t field, given; // in cli_args
    const char *value, *choices;
    const char *standard, *text; // may differ by command: option_tell
    // the marks of options.def
    unsigned shown; // by the short help of these commands
    bool last_counts, with_train;
    bool is_read, is_written; // it names a file or folder
    unsigned only;            // of these OF_*; 0: of any
    const char *below_1;
    const char *schedules[3];
    setting_type sets;
    size_t config; // the field in clv_train_config, and its name
    const char *path;
    const char *log;
    setting_line line;
    const char *said;
} option_row;

typedef enum command_section { SECTION_USE, SECTION_DEVICE, SECTION_KEEP, SECTIONS } command_section;

typedef struct command_row {
    const char *name, *arguments;
    int max_words;
    const char *text;
    command_section section;
} command_row;

typedef struct example_row {
    cli_command command;
    const char *words, *text;
} example_row;

enum {
    OPTIONS = 0
#define X(...) +1
#include "options/options.def"
#undef X
};

extern const option_row option_rows[OPTIONS];
extern const command_row command_rows[CLI_COMMANDS];
extern const example_row example_rows[];
extern const int example_count;
extern const char *const group_titles[GROUPS];
extern const char *const section_titles[SECTIONS];

static inline bool option_is_of(const option_row *option, cli_command command) {
    return (option->commands & 1u << command) != 0;
}
static inline bool option_is_given(const option_row *option, const cli_args *args) {
    return *(const bool *)((const char *)args + option->given);
}
/** The place of a word among the choices `a|b|c`; -1: it is none of them. */
int option_choice(const char *choices, const char *word);
/** The command's option of this name, NULL if it has none. */
const option_row *option_find(const char *name, size_t length, cli_command command);
/** Is it one of those that the command's short help shows? */
static inline bool option_is_short(const option_row *option, cli_command command) {
    return (option->shown & 1u << command) != 0;
}
/** Has the command a short help beside the whole? */
bool option_has_short(cli_command command);
/** settings.c: what a setting is in a training, for people; false: it was not asked for. */
bool watch_setting_text(const option_row *option, const cli_args *args, const clv_train_config *config,
                        char *out, size_t bytes);
/** What an option does, and its default, for a command. */
void option_tell(const option_row *option, cli_command command, char *out, size_t bytes);
/** The place of a command of that name; CLI_COMMANDS: there is none; behind it: it is not in this build. */
int command_place(const char *name);
/** What a command does, as a sentence. */
void command_tell(cli_command command, char *out, size_t bytes);
/** An example as it is typed: what is assigned for it goes before the program. */
void example_tell(const example_row *example, char *out, size_t bytes);

#endif
