// SPDX-License-Identifier: Apache-2.0
// The tables of commands, options and examples, as parsing, help, manuals and completion read them. They
// stand in commands.def, options.def, groups.def, examples.def and short.def; options.c holds them.
#ifndef CLEAVE_OPTIONS_H
#define CLEAVE_OPTIONS_H

#include "cli.h"

typedef enum option_kind { FLAG, TEXT, CHOICE, COUNT, SEED, RATE, NUMBER, BUDGET, TEXTS } option_kind;

typedef enum option_group {
#define X(id, title) GROUP_##id,
#include "groups.def"
#undef X
    GROUPS
} option_group;

typedef struct option_row {
    unsigned commands;
    option_group group;
    const char *name;
    option_kind kind;
    size_t field;
    const char *value, *choices;
    const char *standard, *text; // may differ by command: option_tell
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

extern const option_row option_rows[];
extern const int option_count;
extern const command_row command_rows[CLI_COMMANDS];
extern const example_row example_rows[];
extern const int example_count;
extern const char *const group_titles[GROUPS];
extern const char *const section_titles[SECTIONS];

static inline bool option_is_of(const option_row *option, cli_command command) {
    return (option->commands & 1u << command) != 0;
}
/** The command's option of this name, NULL if it has none. */
const option_row *option_find(const char *name, size_t length, cli_command command);
/** Is it one of those that the command's short help shows? */
bool option_is_short(const option_row *option, cli_command command);
/** Has the command a short help beside the whole? */
bool option_has_short(cli_command command);
/** What an option does, and its default, for a command. */
void option_tell(const option_row *option, cli_command command, char *out, size_t bytes);
/** What a command does, as a sentence. */
void command_tell(cli_command command, char *out, size_t bytes);
/** An example as it is typed: what is assigned for it goes before the program. */
void example_tell(const example_row *example, char *out, size_t bytes);

#endif
