// SPDX-License-Identifier: Apache-2.0
// Known failures from a file, and an earlier run of `check` to compare with.
#include "checks/checks.h"
#include "checks/verdicts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 64 << 20, LINE_BYTES = 1024 };

// ---- names ------------------------------------------------------------------------------------------------

/** Append a copy. false: no memory. */
static bool names_add(names *list, const char *name) {
    if (list->n + 2 > list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        char **more = realloc(list->item, room * sizeof *more);
        if (!more) return false;
        list->item = more;
        list->room = room;
    }
    list->item[list->n] = strdup(name);
    if (!list->item[list->n]) return false;
    list->item[++list->n] = NULL;
    return true;
}

void names_drop(names *list) {
    for (size_t i = 0; i < list->n; i++) free(list->item[i]);
    free(list->item);
    *list = (names){0};
}

/** The line without its comment and the blanks around it. A `#` inside a word is a part of it. */
static char *strip(char *line) {
    for (char *at = line; *at; at++)
        if (*at == '#' && (at == line || at[-1] == ' ' || at[-1] == '\t')) *at-- = 0;
    while (*line == ' ' || *line == '\t') line++;
    size_t n = strlen(line);
    while (n && strchr(" \t\r\n", line[n - 1])) line[--n] = 0;
    return line;
}

int names_read(const char *path, names *list) {
    FILE *file = fopen(path, "r");
    char line[LINE_BYTES];
    int number = 0, code = EXIT_DONE;
    if (!file) {
        const int reason = errno;
        clv__nearest nearest;
        return cli_fail(EXIT_NOT_RUN, "'%s' cannot be read: %s%s", path, strerror(reason),
                        reason == ENOENT ? clv__nearest_file(&nearest, path) : "");
    }
    while (code == EXIT_DONE && fgets(line, sizeof line, file)) {
        number++;
        if (!strchr(line, '\n') && !feof(file))
            code = cli_fail(EXIT_NOT_RUN, "'%s' holds no names of cases: line %d is too long", path, number);
        char *name = strip(line);
        if (code == EXIT_DONE && *name && !names_add(list, name))
            code = cli_fail(EXIT_NOT_RUN, "no memory for the names in '%s'", path);
    }
    if (code == EXIT_DONE && ferror(file))
        code = cli_fail(EXIT_NOT_RUN, "'%s' cannot be read: %s", path, strerror(errno));
    fclose(file);
    return code;
}

// ---- the baseline -----------------------------------------------------------------------------------------

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double number_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static bool has_failed(const char *verdict) {
    return !strcmp(verdict, "failed") || !strcmp(verdict, "known failure");
}

int cli_read_check(const char *path, json_t **out) {
    struct stat what;
    *out = NULL;
    const bool there = stat(path, &what) == 0;
    if (there && !S_ISREG(what.st_mode))
        return cli_fail(EXIT_FAILED, "'%s' is no file", path); // a pipe would wait
    FILE *file = there ? fopen(path, "r") : NULL;
    if (!file) {
        const int reason = errno;
        clv__nearest nearest;
        return cli_fail(EXIT_FAILED, "'%s' cannot be read: %s%s", path, strerror(reason),
                        reason == ENOENT ? clv__nearest_file(&nearest, path) : "");
    }
    bool small = !fseek(file, 0, SEEK_END) && ftell(file) >= 0 && ftell(file) <= MOST_BYTES;
    rewind(file);
    json_t *run = small ? cli_json_read_file(file) : NULL;
    fclose(file);
    if (run && json_is_array(json_object_get(run, "results")) && *text_of(run, "device")) {
        *out = run;
        return EXIT_DONE;
    }
    json_decref(run);
    return cli_fail(EXIT_FAILED, "'%s' is no result of `cleave check --json`", path);
}

int baseline_read(const char *path, baseline *out, names *known) {
    size_t i;
    json_t *one;
    *out = (baseline){.path = path};
    if (cli_read_check(path, &out->run) != EXIT_DONE) return EXIT_NOT_RUN;
    bool whole = (out->cases = json_object()) != NULL;
    json_array_foreach(json_object_get(out->run, "results"), i, one) {
        const char *name = text_of(one, "name");
        if (!*name) continue;
        whole = whole && !json_object_set(out->cases, name, one);
        if (has_failed(text_of(one, "verdict"))) whole = whole && names_add(known, name);
    }
    return whole ? EXIT_DONE : cli_fail(EXIT_NOT_RUN, "no memory for '%s'", path);
}

void baseline_drop(baseline *of) {
    json_decref(of->cases);
    json_decref(of->run);
    *of = (baseline){0};
}

/** Twice as far off, and further than a unit in the last place: what is less is the noise of another order of
 *  sums. */
static bool is_less_exact(const json_t *then, const clv_check_case *now) {
    double before = number_of(then, "ulp");
    return now->ulp > 1 && now->ulp > 2 * before && !strcmp(text_of(then, "verdict"), "passed");
}

static void add(json_t *comparison, const char *kind, const char *name, const char *then, const char *now,
                const char *sentence, const json_t *numbers, const clv_check_case *one) {
    json_t *entry =
        json_pack("{s:s, s:s, s:s, s:s}", "name", name, "then", then, "now", now, "sentence", sentence);
    if (entry && numbers && one) {
        json_object_set_new(entry, "ulp_then", cli_real(number_of(numbers, "ulp")));
        json_object_set_new(entry, "ulp_now", cli_real(one->ulp));
    }
    json_array_append_new(json_object_get(comparison, kind), entry);
}

json_t *baseline_compare(const baseline *of, const clv_check_report *report, bool filtered) {
    json_t *result = json_pack("{s:s, s:[], s:[], s:[], s:[]}", "file", of->path, "worse", "less_exact",
                               "gone", "better"),
           *seen = json_object();
    bool same_seed = json_integer_value(json_object_get(of->run, "seed")) == (json_int_t)report->seed;
    for (int i = 0; i < report->n_list; i++) {
        const clv_check_case *one = &report->list[i];
        const json_t *then = json_object_get(of->cases, one->name);
        const char *was = then ? text_of(then, "verdict") : "absent", *is = one->verdict_name,
                   *why = one->sentence ? one->sentence : "";
        bool ran = !strcmp(was, "passed") || has_failed(was);
        json_object_set_new(seen, one->name, json_true());
        if ((one->verdict == CLV_CHECK_FAILED || one->verdict == CLV_CHECK_NOT_RUN) && strcmp(was, is))
            add(result, "worse", one->name, was, is, why, NULL, NULL);
        else if (one->verdict == CLV_CHECK_SKIPPED && ran)
            add(result, "gone", one->name, was, is, why, NULL, NULL);
        else if (one->verdict == CLV_CHECK_PASSED && has_failed(was))
            add(result, "better", one->name, was, is, why, NULL, NULL);
        else if (one->verdict == CLV_CHECK_PASSED && then && same_seed && is_less_exact(then, one))
            add(result, "less_exact", one->name, was, is, why, then, one);
    }
    const char *name;
    json_t *then;
    json_object_foreach(of->cases, name, then) {
        const char *was = text_of(then, "verdict");
        if (!filtered && (!strcmp(was, "passed") || has_failed(was)) && !json_object_get(seen, name))
            add(result, "gone", name, was, "absent", "", NULL, NULL);
    }
    json_decref(seen);
    return result;
}

static void print_kind(FILE *out, const json_t *comparison, const char *kind, const char *word) {
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(comparison, kind), i, entry) {
        fprintf(out, "%s %s: %s, and was %s", word, text_of(entry, "name"), text_of(entry, "now"),
                text_of(entry, "then"));
        if (json_object_get(entry, "ulp_now"))
            fprintf(out, "; %.3g ULP, and was %.3g", number_of(entry, "ulp_now"),
                    number_of(entry, "ulp_then"));
        fputc('\n', out);
    }
}

void baseline_print(FILE *out, const json_t *comparison, const char *path) {
    print_kind(out, comparison, "worse", "WORSE");
    print_kind(out, comparison, "gone", "no longer run");
    print_kind(out, comparison, "less_exact", "less exact");
    print_kind(out, comparison, "better", "better");
    fprintf(out, "since %s: %zu worse, %zu no longer run, %zu less exact, %zu better\n", path,
            json_array_size(json_object_get(comparison, "worse")),
            json_array_size(json_object_get(comparison, "gone")),
            json_array_size(json_object_get(comparison, "less_exact")),
            json_array_size(json_object_get(comparison, "better")));
}
