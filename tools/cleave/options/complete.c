// SPDX-License-Identifier: Apache-2.0
// Completion: what could stand next on a command line. Shells ask `cleave --complete WORDS...`, whose last
// word is the one that is being typed, and get a line for each candidate: the word, and behind a tab what it
// is. The line `:files` says that names of files go there too. So one place knows models, devices and ops,
// for bash, zsh and fish alike.
#include "options/options.h"

#include <string.h>

/** Tell a candidate if it begins as what is typed. */
static void offer(const char *typed, const char *word, const char *what) {
    if (!strncmp(word, typed, strlen(typed))) printf("%s\t%s\n", word, what);
}

/** The words of `a|b|c`. */
static void offer_choices(const char *typed, const char *choices) {
    char word[64];
    for (const char *at = choices; *at; at += *at == '|') {
        size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        offer(typed, word, "");
        at += n;
    }
}

static void offer_models(const char *typed) {
    for (int i = 0; clv_model_get(i); i++) offer(typed, clv_model_get(i)->name, "model");
}

static void offer_ops(const char *typed) {
    for (int i = 0; clv_op_get(i); i++) offer(typed, clv_op_get(i)->name, "op");
}

/** Devices of this machine. In a list, `a,b`, the last name is the one that is typed; in `a|b` likewise. */
static void offer_devices(const char *typed, const char *behind) {
    cli_session session;
    const cli_args args = {.command = CLI_DEVICES, .quiet = true};
    const char *last = typed;
    char word[512];
    for (const char *at; (at = strpbrk(last, ",|"));) last = at + 1;
    cli_start_early(&args, false, &session);
    if (cli_start(&session) == EXIT_DONE)
        for (int i = 0; i < clv_runtime_info_get(session.runtime).n_devices; i++) {
            const clv_device_info *info = clv_device_info_get(clv_device_get(session.runtime, i));
            snprintf(word, sizeof word, "%.*s%s%s", (int)(last - typed), typed, info->name, behind);
            if (info->usable) offer(typed, word, info->label);
        }
    cli_stop(&session);
}

/** Options whose values are names that Cleave knows. */
static void offer_value(const option_row *option, const char *typed) {
    static const struct {
        const char *name;
        enum { MODELS, DEVICES_OF, BUDGETS_OF, OPS_OF } of;
    } known[] = {{"model", MODELS},        {"device", DEVICES_OF}, {"devices", DEVICES_OF},
                 {"replicas", DEVICES_OF}, {"budget", BUDGETS_OF}, {"op", OPS_OF}};
    if (*option->choices) {
        offer_choices(typed, option->choices);
        return;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(option->name, known[i].name)) continue;
        switch (known[i].of) {
        case MODELS: offer_models(typed); return;
        case DEVICES_OF: offer_devices(typed, ""); return;
        case BUDGETS_OF: offer_devices(typed, "="); return;
        case OPS_OF: offer_ops(typed); return;
        }
    }
    if (!strcmp(option->value, "FILE") || !strcmp(option->value, "DIR")) printf(":files\n");
}

/** A word of a command that is no option: the N-th. */
static void offer_word(cli_command command, int n, const char *typed) {
    const char *arguments = command_rows[command].arguments;
    char text[64];
    if (strstr(arguments, "DATASET") && n == 0) {
        offer_choices(typed, "fashion-mnist|images|text|csv|arrays");
        return;
    }
    if (!strcmp(arguments, "MODEL") && n == 0) {
        offer_models(typed);
        return;
    }
    snprintf(text, sizeof text, "%.*s", (int)strcspn(arguments + strspn(arguments, "["), " ]"),
             arguments + strspn(arguments, "["));
    if (strchr(text, '|') && n == 0)
        offer_choices(typed, text);
    else if (n < command_rows[command].max_words)
        printf(":files\n");
}

int cli_complete(int n_words, char **words) {
    const char *typed = n_words ? words[n_words - 1] : "";
    if (n_words < 2) {
        for (int i = 0; i < CLI_COMMANDS; i++) offer(typed, command_rows[i].name, command_rows[i].text);
        offer(typed, "help", "what a command does, and its options");
        offer(typed, "version", "which Cleave this is");
        return cli_finish_output();
    }
    cli_command command = cli_command_find(words[0]);
    if (!strcmp(words[0], "help") && n_words == 2) return cli_complete(1, words + 1);
    if (command == CLI_COMMANDS) return EXIT_DONE;
    int n = 0;                      // words that are no options, before this one
    const option_row *waits = NULL; // the option whose value stands next
    for (int i = 1; i < n_words - 1; i++) {
        const bool is_option = !strncmp(words[i], "--", 2) || !strcmp(words[i], "-o");
        const char *name = !strcmp(words[i], "-o") ? "output" : words[i] + 2;
        n += !waits && !is_option;
        waits = waits || !is_option ? NULL : option_find(name, strlen(name), command);
        if (waits && waits->kind == FLAG) waits = NULL;
    }
    if (waits) {
        offer_value(waits, typed);
    } else if (*typed == '-') {
        for (int i = 0; i < OPTIONS; i++) {
            char name[64], text[600];
            if (!option_is_of(&option_rows[i], command)) continue;
            snprintf(name, sizeof name, "--%s", option_rows[i].name);
            option_tell(&option_rows[i], command, text, sizeof text);
            offer(typed, name, text);
        }
    } else {
        offer_word(command, n, typed);
    }
    return cli_finish_output();
}

// ---- the scripts ------------------------------------------------------------------------------------------

static const char bash[] =
    "_cleave() {\n"
    "    local IFS=$'\\n' word=${COMP_WORDS[COMP_CWORD]} line\n"
    "    COMPREPLY=()\n"
    "    for line in $(cleave --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null); do\n"
    "        case $line in\n"
    "        :files) COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "complete -o filenames -F _cleave cleave\n";
static const char zsh[] =
    "#compdef cleave\n"
    "_cleave() {\n"
    "    local line\n"
    "    local -a told\n"
    "    for line in ${(f)\"$(cleave --complete \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)\"}; do\n"
    "        if [[ $line == :files ]]; then\n"
    "            _files\n"
    "        else\n"
    "            told+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
    "        fi\n"
    "    done\n"
    "    _describe cleave told\n"
    "}\n"
    "_cleave \"$@\"\n";
static const char fish[] = "function __cleave_complete\n"
                           "    set -l typed (commandline -ct)\n"
                           "    set -l words (commandline -opc)\n"
                           "    for line in (cleave --complete $words[2..] \"$typed\" 2>/dev/null)\n"
                           "        if test \"$line\" = :files\n"
                           "            __fish_complete_path \"$typed\"\n"
                           "        else\n"
                           "            echo $line\n"
                           "        end\n"
                           "    end\n"
                           "end\n"
                           "complete -c cleave -f -a '(__cleave_complete)'\n";

int cli_completion(FILE *out, const char *shell) {
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(shell, shells[i].name)) {
            fputs(shells[i].script, out);
            return cli_finish_output();
        }
    return cli_fail(EXIT_USAGE, "--completion wants bash, zsh or fish, not '%s'", shell);
}
