// SPDX-License-Identifier: Apache-2.0
// cleave check: is this device right? Every op's cases, every variant, against the references.
#include <string.h>

#include "cli.h"

typedef struct check_job {
    cli_session *session;
    const volatile int *interrupt;
} check_job;

static bool on_progress(void *user, int done, int total, const char *op) {
    check_job *job = user;
    char text[64];
    snprintf(text, sizeof text, "%d/%d  %s", done, total, op);
    cli_progress_draw(&job->session->progress, "checking", done, total, text);
    return !*job->interrupt;
}

static int print_json(cli_session *session, const clv_check_report *report) {
    json_t *skipped = json_array(), *worst = json_array(), *failures = json_array();
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
    return cli_print_json(json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:o, s:o, s:o}", "device",
                                    clv_device_get_info(session->device)->name, "cases", report->cases,
                                    "passed", report->passed, "failed", report->failed, "skipped_cases",
                                    report->skipped_cases, "seed", (json_int_t)report->seed, "skipped",
                                    skipped, "worst", worst, "failures", failures));
}

static int print_table(cli_session *session, const clv_check_report *report) {
    printf("%-20s %-12s %6s %7s %12s %12s\n", "op", "variant", "cases", "failed", "error", "tolerance");
    for (int i = 0; i < report->n_worst; i++) {
        const clv_check_worst *w = &report->worst[i];
        printf("%-20s %-12s %6d %7d %12.3g %12.3g\n", w->op, w->variant, w->cases, w->failed, w->error,
               w->tolerance);
    }
    for (int i = 0; i < report->n_skipped; i++)
        printf("skipped %d of %s: %s\n", report->skipped[i].cases, report->skipped[i].op,
               report->skipped[i].reason);
    for (int i = 0; i < report->n_failures; i++) printf("FAILED %s\n", report->failures[i].sentence);
    printf("%d cases on %s: %d passed, %d failed, %d skipped\n", report->cases,
           clv_device_get_info(session->device)->name, report->passed, report->failed, report->skipped_cases);
    return cli_finish_output();
}

static clv_dtype dtype_of(const char *name) {
    if (!name) return CLV_DTYPE_NONE;
    return strcmp(name, "f32") == 0   ? CLV_DTYPE_F32
           : strcmp(name, "f16") == 0 ? CLV_DTYPE_F16
                                      : CLV_DTYPE_BF16;
}

int cmd_check(const cli_args *args) {
    cli_session session;
    cli_start_early(args, true, &session);
    int code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    check_job job = {&session, cli_catch_interrupts()};
    clv_check_config config = {.op = args->op,
                               .quick = args->quick,
                               .dtype = dtype_of(args->dtype),
                               .progress = on_progress,
                               .user = &job};
    clv_check_report *report = NULL;
    clv_status status = clv_check(session.runtime, session.device, &config, &report);
    cli_progress_clear(&session.progress);
    if (status != CLV_OK) {
        code = cli_fail_status(session.runtime, status);
        if (status == CLV_E_NOT_FOUND) code = EXIT_USAGE; // no op of that name
    } else {
        code = args->json ? print_json(&session, report) : print_table(&session, report);
        if (code == EXIT_DONE && report->failed) code = EXIT_FAILED;
    }
    clv_check_report_destroy(report);
    cli_stop(&session);
    return code;
}
