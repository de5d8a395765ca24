// SPDX-License-Identifier: Apache-2.0
// cleave check: is this device right? Every op's cases, every variant, against the references. What other
// programs read of it is in verdicts.c and baseline.c.
#ifndef CLEAVE_STATIC
#endif
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cleave/custom_op.h>

#include "screen.h"
#include "table.h"
#include "checks/verdicts.h"

typedef struct check_job {
    cli_session *session;
    cli_steps steps;
    int told; // cases written as TAP
    names known;
    size_t known_of_file; // the first of them; the others are from the baseline
    baseline before;
    json_t *comparison; // with it; NULL: there is none
} check_job;

static bool on_progress(void *user, int done, int total, const char *op) {
    return cli_steps_draw(&((check_job *)user)->steps, done, total, op) && !ferror(stdout);
}

static void on_case(void *user, const clv_check_case *one) {
    check_job *job = user;
    if (job->session->args->tap) tap_case(stdout, ++job->told, one);
}

// ---- JSON -------------------------------------------------------------------------------------------------

static json_t *avoided_json(const clv_check_avoided *list, int n) {
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "op", list[i].op, "variant",
                                               list[i].variant, "instead", list[i].instead));
    return array;
}

static json_t *case_json(const clv_check_case *one) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s}", "name", one->name, "op",
                     one->op, "variant", one->variant, "sample", one->sample, "verdict", one->verdict_name,
                     "seconds", cli_real(one->seconds), "error", cli_real(one->error), "tolerance",
                     cli_real(one->tolerance), "ulp", cli_real(one->ulp), "what", one->what, "sentence",
                     one->sentence ? one->sentence : "");
}

static int print_json(check_job *job, const clv_check_report *report) {
    const cli_session *session = job->session;
    const clv_device_info *info = clv_device_info_get(session->device);
    json_t *skipped = json_array(), *worst = json_array(), *failures = json_array(), *results = json_array();
    for (int i = 0; i < report->n_skipped; i++)
        json_array_append_new(skipped,
                              json_pack("{s:s, s:s, s:i}", "op", report->skipped[i].op, "reason",
                                        report->skipped[i].reason, "cases", report->skipped[i].cases));
    for (int i = 0; i < report->n_worst; i++) {
        const clv_check_worst *w = &report->worst[i];
        json_array_append_new(worst,
                              json_pack("{s:s, s:s, s:o, s:o, s:i, s:i}", "op", w->op, "variant", w->variant,
                                        "error", cli_real(w->error), "tolerance", cli_real(w->tolerance),
                                        "cases", w->cases, "failed", w->failed));
    }
    for (int i = 0; i < report->n_failures; i++) {
        const clv_check_failure *f = &report->failures[i];
        json_array_append_new(failures,
                              json_pack("{s:s, s:s, s:s, s:s, s:s}", "op", f->op, "variant", f->variant,
                                        "sample", f->sample, "what", f->what, "sentence", f->sentence));
    }
    for (int i = 0; i < report->n_list; i++) json_array_append_new(results, case_json(&report->list[i]));
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:b}", "device", info->name,
        "label", info->label, "platform_name", info->platform_name, "driver", info->driver, "version",
        clv_version(), "cases", report->cases, "passed", report->passed, "failed", report->failed, "known",
        report->known, "not_run", report->not_run, "skipped_cases", report->skipped_cases, "excluded",
        report->excluded, "seed", (json_int_t)report->seed, "quick", session->args->quick);
    json_t *lists = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s?, s:s?, s:o?, s:o}", "skipped", skipped, "worst", worst, "failures",
        failures, "avoided", avoided_json(report->avoided, report->n_avoided), "restored",
        avoided_json(report->restored, report->n_restored), "tuning_file", report->file, "record_fault",
        report->record_fault, "baseline", json_incref(job->comparison), "results", results);
    if (object && lists) json_object_update(object, lists);
    json_decref(lists);
    return cli_print_json(object);
}

// ---- the table --------------------------------------------------------------------------------------------

/** A word in its colour, on a terminal. */
static const char *tint(const char *code) {
    return screen_has_colour(stdout) ? code : "";
}
#define GREEN tint("\033[32m")
#define RED tint("\033[31m")
#define YELLOW tint("\033[33m")
#define PLAIN tint("\033[0m")

/** What all cases of an op's variant took together, and the largest error of them. */
static double sum_of(const clv_check_report *report, const clv_check_worst *of, double *ulp) {
    double seconds = 0;
    *ulp = NAN;
    for (int i = 0; i < report->n_list; i++) {
        const clv_check_case *one = &report->list[i];
        if (strcmp(one->op, of->op) || strcmp(one->variant, of->variant)) continue;
        seconds += one->seconds;
        if (!isnan(one->ulp) && !(one->ulp <= *ulp)) *ulp = one->ulp;
    }
    return seconds;
}

static void print_worst(const clv_check_report *report) {
    static const table_column columns[] = {
        {"op", TABLE_NAME, TABLE_KEEP, 12, NULL}, {"variant", TABLE_TEXT, 95, 0, NULL},
        {"cases", TABLE_NUMBER, 90, 0, NULL},     {"failed", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
        {"error", TABLE_NUMBER, 80, 0, NULL},     {"tolerance", TABLE_NUMBER, 70, 0, NULL},
        {"ULP", TABLE_NUMBER, 75, 0, NULL},       {"ms", TABLE_NUMBER, 60, 0, NULL},
        {"verdict", TABLE_TEXT, 85, 0, NULL}};
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < report->n_worst; i++) {
        const clv_check_worst *w = &report->worst[i];
        double ulp, seconds = sum_of(report, w, &ulp);
        const char *colour = w->failed ? "\033[31m" : "\033[32m";
        table_add(t, "%s", w->op);
        table_add(t, "%s", w->variant);
        table_add(t, "%d", w->cases);
        table_paint(t, colour);
        table_add(t, "%d", w->failed);
        table_add(t, "%.3g", w->error);
        table_add(t, "%.3g", w->tolerance);
        if (isfinite(ulp))
            table_add(t, "%.3g", ulp);
        else
            table_add(t, "-");
        table_add(t, "%.1f", 1e3 * seconds);
        table_paint(t, colour);
        table_add(t, "%s", w->failed ? "WRONG" : "right");
    }
    table_print(t, stdout);
}

/** Of one reason. */
typedef struct skip_sum {
    const char *reason;
    int cases;
} skip_sum;

static int by_cases(const void *a, const void *b) {
    return ((const skip_sum *)b)->cases - ((const skip_sum *)a)->cases;
}

/** Skips by reason, the most frequent first, each with its ops. */
static int print_skips(const clv_check_report *report) {
    if (!report->n_skipped) return EXIT_DONE;
    skip_sum *sums = calloc((size_t)report->n_skipped, sizeof *sums);
    int n = 0;
    if (!sums) return cli_fail(EXIT_FAILED, "no memory for the reasons of skips");
    for (int i = 0; i < report->n_skipped; i++) {
        int at = 0;
        while (at < n && strcmp(sums[at].reason, report->skipped[i].reason)) at++;
        n += at == n;
        sums[at].reason = report->skipped[i].reason;
        sums[at].cases += report->skipped[i].cases;
    }
    qsort(sums, (size_t)n, sizeof *sums, by_cases);
    printf("\n%s%d case%s skipped%s, because\n", YELLOW, report->skipped_cases,
           report->skipped_cases == 1 ? " was" : "s were", PLAIN);
    for (int k = 0; k < n; k++) {
        char line[4096];
        size_t used = (size_t)snprintf(line, sizeof line, "%s:", sums[k].reason);
        const char *comma = "";
        for (int i = 0; i < report->n_skipped && used < sizeof line; i++)
            if (!strcmp(report->skipped[i].reason, sums[k].reason)) {
                used +=
                    (size_t)snprintf(line + used, sizeof line - used, "%s %s", comma, report->skipped[i].op);
                comma = ",";
            }
        printf("%6d  ", sums[k].cases);
        screen_wrap(stdout, line, 8, 8, screen_width(stdout));
        putchar('\n');
    }
    free(sums);
    return EXIT_DONE;
}

/** What plans do from now on. */
static void print_avoided(FILE *out, const clv_check_report *report) {
    for (int i = 0; i < report->n_avoided; i++) {
        const clv_check_avoided *a = &report->avoided[i];
        if (*a->instead)
            fprintf(out, "AVOIDED variant '%s' of %s: plans use %s instead\n", a->variant, a->op, a->instead);
        else
            fprintf(out,
                    "AVOIDED variant '%s' of %s: nothing is left to use instead, plans with it are refused\n",
                    a->variant, a->op);
    }
    for (int i = 0; i < report->n_restored; i++)
        fprintf(out, "variant '%s' of %s passes all its cases: plans use it again\n",
                report->restored[i].variant, report->restored[i].op);
    if (report->file) fprintf(out, "written to %s\n", report->file);
    if (report->record_fault)
        fprintf(out, "NOT recorded, so later commands use what failed: %s\n", report->record_fault);
}

static void print_known(FILE *out, const check_job *job, const clv_check_report *report) {
    for (int i = 0; i < report->n_list; i++)
        for (size_t k = 0; k < job->known_of_file; k++)
            if (report->list[i].verdict == CLV_CHECK_PASSED &&
                !strcmp(job->known.item[k], report->list[i].name))
                fprintf(out, "passes now, and is said to fail: %s\n", report->list[i].name);
}

static int print_table(check_job *job, const clv_check_report *report) {
    const clv_device_info *info = clv_device_info_get(job->session->device);
    print_worst(report);
    int code = print_skips(report);
    putchar('\n');
    for (int i = 0; i < report->n_list; i++) {
        const clv_check_case *one = &report->list[i];
        if (one->verdict == CLV_CHECK_FAILED) screen_say(stdout, "%sFAILED%s %s", RED, PLAIN, one->sentence);
        if (one->verdict == CLV_CHECK_KNOWN)
            screen_say(stdout, "%sknown failure%s %s", YELLOW, PLAIN, one->sentence);
        if (one->verdict == CLV_CHECK_NOT_RUN)
            screen_say(stdout, "%sCOULD NOT RUN%s %s", YELLOW, PLAIN, one->sentence);
    }
    print_known(stdout, job, report);
    print_avoided(stdout, report);
    if (job->comparison) baseline_print(stdout, job->comparison, job->before.path);
    printf("%d cases on %s: %s%d passed%s, %s%d failed%s", report->cases, info->name, GREEN, report->passed,
           PLAIN, report->failed ? RED : "", report->failed, report->failed ? PLAIN : "");
    if (report->known) printf(", %d known failures", report->known);
    if (report->not_run) printf(", %s%d could not run%s", YELLOW, report->not_run, PLAIN);
    printf(", %d skipped", report->skipped_cases);
    if (report->excluded) printf(", %d excluded", report->excluded);
    printf("; seed %llu\n", (unsigned long long)report->seed);
    if (code == EXIT_DONE) code = cli_finish_output();
    return code;
}

static int print_list(const check_job *job, const clv_check_report *report) {
    json_t *list = job->session->args->json ? json_array() : NULL;
    for (int i = 0; i < report->n_list; i++) {
        if (report->list[i].verdict != CLV_CHECK_LISTED) continue;
        if (list)
            json_array_append_new(list, json_string(report->list[i].name));
        else
            puts(report->list[i].name);
    }
    if (!list) return cli_finish_output();
    return cli_print_json(
        json_pack("{s:s, s:o}", "device", clv_device_info_get(job->session->device)->name, "cases", list));
}

// ---- the command ------------------------------------------------------------------------------------------

static clv_dtype dtype_of(const char *name) {
    if (!name) return CLV_DTYPE_NONE;
    return strcmp(name, "f32") == 0   ? CLV_DTYPE_F32
           : strcmp(name, "f16") == 0 ? CLV_DTYPE_F16
                                      : CLV_DTYPE_BF16;
}

/** `I/N`. */
static bool parse_shard(const char *text, int *shard, int *n) {
    char *end, *last;
    long i = strtol(text, &end, 10);
    if (end == text || *end != '/' || end[1] < '0' || end[1] > '9') return false;
    long all = strtol(end + 1, &last, 10);
    if (*last || *text < '0' || *text > '9' || i < 1 || all < i || all > 1000000) return false;
    *shard = (int)i;
    *n = (int)all;
    return true;
}

/** The list that the library wants: it ends with NULL. */
typedef struct list {
    const char *item[CLI_MAX_TEXTS + 1];
} list;

static list list_of(const cli_texts *texts) {
    list out = {{NULL}};
    memcpy(out.item, texts->item, (size_t)texts->n * sizeof *texts->item);
    return out;
}

static int check_options(const cli_args *args) {
    bool others = args->list || args->junit || args->tap || args->json || args->ops.n || args->cases.n ||
                  args->exclude.n || args->shard || args->known_failures || args->baseline;
    if (args->reproduce && others)
        return cli_fail(EXIT_USAGE,
                        "--reproduce takes one case, and with it --device, --seed and --quick only");
    if (args->tap && args->json)
        return cli_fail(EXIT_USAGE, "--tap and --json are both for stdout: choose one");
    if (args->list && (args->tap || args->junit || args->baseline))
        return cli_fail(EXIT_USAGE, "--list runs nothing: there is nothing for --tap, --junit or --baseline");
    return cli_check_target(args->junit) == EXIT_DONE ? EXIT_DONE : EXIT_NOT_RUN;
}

static int reproduce(cli_session *session, const clv_check_config *config) {
    char *text = NULL;
    clv_status status =
        clv_check_reproduce(session->runtime, session->device, config, session->args->reproduce, &text);
    if (status != CLV_OK) {
        cli_fail_status(session->runtime, status);
        return status == CLV_E_NOT_FOUND ? EXIT_USAGE : EXIT_NOT_RUN;
    }
    fputs(text, stdout);
    clv_free(text);
    return cli_finish_output();
}

/** What the exit code says, in words. */
static int conclude(const check_job *job, const clv_check_report *report, int code) {
    const char *device = clv_device_info_get(job->session->device)->name;
    if (report->failed)
        return cli_fail(EXIT_FAILED,
                        "%d of %d cases failed on %s; `cleave check --reproduce CASE` makes a program of one",
                        report->failed, report->cases, device);
    if (report->not_run)
        return cli_fail(
            EXIT_NOT_RUN,
            "%d of %d cases could not run on %s, because memory was out; nothing is known of them",
            report->not_run, report->cases, device);
    return code == EXIT_DONE ? EXIT_DONE : EXIT_NOT_RUN;
}

static int tell(check_job *job, const clv_check_report *report) {
    const cli_args *args = job->session->args;
    const clv_device_info *info = clv_device_info_get(job->session->device);
    int code = EXIT_DONE;
    bool filtered =
        args->ops.n || args->cases.n || args->exclude.n || args->shard || args->dtype || args->quick;
    if (args->list) {
        code = print_list(job, report);
        return code == EXIT_FAILED ? EXIT_NOT_RUN : code;
    }
    if (args->baseline && !(job->comparison = baseline_compare(&job->before, report, filtered)))
        code = cli_fail(EXIT_FAILED, "no memory to compare with '%s'", args->baseline);
    if (code == EXIT_DONE && args->junit) code = junit_write(args->junit, info, report);
    int printed;
    if (args->tap) {
        printf("1..%d\n", job->told);
        print_avoided(stderr, report);
        if (job->comparison) baseline_print(stderr, job->comparison, args->baseline);
        printed = cli_finish_output();
    } else {
        printed = (args->json ? print_json : print_table)(job, report);
    }
    return conclude(job, report, code == EXIT_DONE ? printed : code);
}

static int run(check_job *job, clv_check_config *config) {
    cli_session *session = job->session;
    clv_check_report *report = NULL;
    if (session->args->tap) puts("TAP version 13");
    clv_status status = clv_check(session->runtime, session->device, config, &report);
    cli_progress_clear(&session->progress);
    int code;
    if (status == CLV_OK) {
        code = tell(job, report);
    } else if (status == CLV_E_INTERRUPTED && ferror(stdout)) {
        code = cli_finish_output(); // it has ended because nobody reads what it prints
    } else {
        if (session->args->tap) printf("Bail out! %s\n", cli_sentence(session->runtime));
        code = cli_fail_status(session->runtime, status);
        if (status == CLV_E_NOT_FOUND || status == CLV_E_VALUE)
            code = EXIT_USAGE; // no op or case of that name
        else if (code == EXIT_FAILED)
            code = EXIT_NOT_RUN;
    }
    clv_free(report);
    return code;
}

/** Names of the ops with a kernel that a shared library registers. */
static int load_ops(cli_session *session, const char *file, const char **found, int room) {
    int before = 0, n = 0;
    while (clv_op_get(before)) before++;
    const int code = cli_load_library(session->runtime, file);
    if (code != EXIT_DONE) return code;
    for (int i = before; clv_op_get(i) && n < room; i++)
        if (!clv_op_get(i)->custom->build) found[n++] = clv_op_get(i)->name;
    if (n == 0)
        return cli_fail(EXIT_USAGE, "'%s' registers no op with a kernel: there is nothing to check", file);
    return EXIT_DONE;
}

static int run_session(check_job *job) {
    const cli_args *args = job->session->args;
    list ops = list_of(&args->ops), cases = list_of(&args->cases), exclude = list_of(&args->exclude);
    list custom = {{NULL}};
    clv_check_config config = {.ops = ops.item,
                               .cases = cases.item,
                               .exclude = exclude.item,
                               .known = (const char *const *)job->known.item,
                               .quick = args->quick,
                               .dtype = dtype_of(args->dtype),
                               .seed = args->seed,
                               .list = args->list,
                               .record = !args->no_record && !args->list,
                               .progress = on_progress,
                               .on_case = on_case,
                               .user = job};
    if (args->shard && !parse_shard(args->shard, &config.shard, &config.n_shards))
        return cli_fail(EXIT_USAGE, "--shard wants I/N, as in 1/4 up to 4/4, not '%s'", args->shard);
    int code = cli_start(job->session);
    if (code != EXIT_DONE) return code == EXIT_FAILED ? EXIT_NOT_RUN : code;
    if (args->custom_ops) code = load_ops(job->session, args->custom_ops, custom.item, CLI_MAX_TEXTS);
    if (args->custom_ops && !args->ops.n) config.ops = custom.item;
    if (code == EXIT_DONE) code = args->reproduce ? reproduce(job->session, &config) : run(job, &config);
    cli_stop(job->session);
    return code;
}

int cmd_check(const cli_args *args) {
    cli_session session;
    int code = check_options(args);
    if (code != EXIT_DONE) return code;
    check_job job = {.session = &session, .steps = {&session.progress, "checking", cli_catch_interrupts()}};
    if (args->known_failures) code = names_read(args->known_failures, &job.known);
    job.known_of_file = job.known.n;
    if (code == EXIT_DONE && args->baseline) code = baseline_read(args->baseline, &job.before, &job.known);
    if (code == EXIT_DONE) {
        cli_start_early(args, true, &session);
        code = run_session(&job);
    }
    json_decref(job.comparison);
    baseline_drop(&job.before);
    names_drop(&job.known);
    return code;
}
