// SPDX-License-Identifier: Apache-2.0
// cleave tune: race the variants of ops on a device, and write down who wins.
#include "cli.h"
#include "models/models.h"
#include "table.h"

#include <string.h>

static int configure(const cli_args *args, clv_tune_config *config) {
    *config = (clv_tune_config){.model = args->model,
                                .batch = args->batch,
                                .op = args->op,
                                .seconds = args->seconds,
                                .file = args->tuning_file};
    if (args->size && !cli_parse_size(args->size, config->size))
        return cli_fail(EXIT_USAGE, "--size wants MxNxK, as in 1024x1024x1024, not '%s'", args->size);
    const char *of_models = args->model ? "model" : args->batch ? "batch" : NULL;
    if (args->size && of_models)
        return cli_fail(EXIT_USAGE, "--size is for one product, and --%s for models", of_models);
    if (args->batch && !args->model) return cli_fail(EXIT_USAGE, "--batch needs a --model");
    return EXIT_DONE;
}

static int print_json(const cli_session *session, const clv_tune_report *report) {
    const clv_device_info *info = clv_device_info_get(session->device);
    json_t *results = json_array(), *failures = json_array();
    for (int i = 0; i < report->n_results; i++) {
        const clv_tune_result *r = &report->results[i];
        json_t *candidates = json_array();
        for (int k = 0; k < r->n_candidates; k++)
            json_array_append_new(
                candidates, json_pack("{s:s, s:o}", "variant", r->candidates[k].variant, "median_us",
                                      r->candidates[k].median_us > 0 ? cli_real(r->candidates[k].median_us)
                                                                     : json_null()));
        json_array_append_new(results,
                              json_pack("{s:s, s:s, s:i, s:s, s:o, s:s, s:o, s:o}", "op", r->op, "key",
                                        r->key, "nodes", r->nodes, "variant", r->variant, "median_us",
                                        cli_real(r->median_us), "ranked", r->ranked, "ranked_us",
                                        cli_real(r->ranked_us), "candidates", candidates));
    }
    for (int i = 0; i < report->n_failures; i++)
        json_array_append_new(failures, json_pack("{s:s, s:s, s:s}", "op", report->failures[i].op, "variant",
                                                  report->failures[i].variant, "sentence",
                                                  report->failures[i].sentence));
    return cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:i, s:i, s:b, s:o}", "device", info->name, "label", info->label, "file",
        report->file, "results", results, "failures", failures, "left", report->left, "kept", report->kept,
        "interrupted", report->interrupted, "seconds", cli_real(report->seconds)));
}

static int print_table(const cli_session *session, const clv_tune_report *report) {
    const clv_device_info *info = clv_device_info_get(session->device);
    static const table_column columns[] = {
        {"op", TABLE_TEXT, TABLE_KEEP, 12, NULL}, {"variant", TABLE_TEXT, TABLE_KEEP, 0, NULL},
        {"median us", TABLE_NUMBER, 95, 0, NULL}, {"by rank", TABLE_TEXT, 60, 0, NULL},
        {"its us", TABLE_NUMBER, 50, 0, NULL},    {"gain", TABLE_NUMBER, 90, 0, NULL},
        {"nodes", TABLE_NUMBER, 30, 0, NULL},     {"inputs and attributes", TABLE_TEXT, 80, 21, NULL},
    };
    int better = 0;
    screen_say(stdout, "%s, %s", info->name, info->label);
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < report->n_results; i++) {
        const clv_tune_result *r = &report->results[i];
        bool other = strcmp(r->variant, r->ranked) != 0;
        better += other;
        table_add(t, "%s", r->op);
        table_add(t, "%s", r->variant);
        table_add(t, "%.2f", r->median_us);
        table_add(t, "%s", r->ranked);
        table_add(t, "%.2f", r->ranked_us);
        if (other)
            table_add(t, "%.2fx", r->ranked_us / r->median_us);
        else
            table_add(t, "%s", "");
        table_add(t, "%d", r->nodes);
        table_add(t, "%s", r->key);
    }
    table_print(t, stdout);
    for (int i = 0; i < report->n_failures; i++)
        screen_say(stdout, "AVOIDED %s of %s: %s", report->failures[i].variant, report->failures[i].op,
                   report->failures[i].sentence);
    screen_say(stdout,
               "%d uses measured, in %.1f s; in %d of them another variant is faster than the one chosen "
               "without measuring",
               report->n_results, report->seconds, better);
    if (report->left)
        screen_say(stdout, "%d uses are left: %s", report->left,
                   report->interrupted ? "interrupted" : "a larger --seconds gives them time");
    screen_say(stdout, "written to %s, beside %d choices that were there", report->file, report->kept);
    return cli_finish_output();
}

int cmd_tune(const cli_args *given) {
    cli_args own = *given;
    const cli_args *args = &own;
    clv_tune_config config;
    int code = configure(args, &config);
    if (code == EXIT_DONE) code = cli_load_onnx(&own);
    if (code == EXIT_DONE) code = cli_check_target(config.file);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    cli_steps steps = {&session.progress, "measuring", cli_catch_interrupts()};
    config.progress = cli_steps_draw;
    config.user = &steps;
    clv_tune_report *report;
    clv_status status = clv_tune(session.runtime, session.device, &config, &report);
    cli_progress_clear(&session.progress);
    if (status != CLV_OK) {
        code = cli_fail_status(session.runtime, status);
        if (status == CLV_E_NOT_FOUND || status == CLV_E_VALUE) code = EXIT_USAGE;
    } else {
        code = (args->json ? print_json : print_table)(&session, report);
        if (code == EXIT_DONE && report->interrupted) code = EXIT_INTERRUPTED;
    }
    clv_free(report);
    cli_stop(&session);
    return code;
}
