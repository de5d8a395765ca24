// SPDX-License-Identifier: Apache-2.0
// cleave bench: how fast is this device, beside its own measured peak?
#include "cli.h"
#include "models/models.h"
#include "plans/plans.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

/** The configuration that the options ask for. Sizes and models choose their suite; prints what does not go
 *  together. */
static int configure(const cli_args *args, clv_bench_config *config) {
    *config = (clv_bench_config){.suite = args->n_words ? args->words[0] : NULL,
                                 .name = args->case_name,
                                 .mode = args->mode,
                                 .model = args->model,
                                 .batch = args->batch,
                                 .runs = args->runs > 1000 ? 1000 : (int)args->runs,
                                 .seconds = args->seconds,
                                 .list = args->list,
                                 .measure_peak = args->peak,
                                 .variants = args->variants,
                                 .no_fuse = cli_no_fuse(args),
                                 .precision = cli_precision(args)};
    if (args->size && !cli_parse_size(args->size, config->size))
        return cli_fail(EXIT_USAGE, "--size wants MxNxK, as in 1024x1024x1024, not '%s'", args->size);
    const char *of_models = args->model ? "model" : args->batch ? "batch" : NULL;
    if (args->size && of_models)
        return cli_fail(EXIT_USAGE, "--size is for the suite gemm, and --%s for models", of_models);
    const char *option = args->size ? "size" : of_models, *suite = args->size ? "gemm" : "models";
    if (option && config->suite && strcmp(config->suite, suite))
        return cli_fail(EXIT_USAGE, "--%s is for the suite %s, and this is %s", option, suite, config->suite);
    if (option) config->suite = suite;
    return EXIT_DONE;
}

/** A figure, or null where there is none. */
static json_t *positive(double value) {
    return value > 0 ? cli_real(value) : json_null();
}

static int print_json(const cli_session *session, const clv_bench_report *report) {
    const clv_device_info *info = clv_device_info_get(session->device);
    json_t *results = json_array(), *failures = json_array(), *cases = json_array();
    for (int i = 0; i < report->n_results; i++) {
        const clv_bench_result *r = &report->results[i];
        if (session->args->list)
            json_array_append_new(
                cases, json_pack("{s:s, s:s, s:s}", "suite", r->suite, "case", r->name, "mode", r->mode));
        else if (*r->failure)
            json_array_append_new(failures,
                                  json_pack("{s:s, s:s, s:s, s:s, s:s}", "suite", r->suite, "case", r->name,
                                            "device", info->name, "mode", r->mode, "sentence", r->failure));
        else
            json_array_append_new(results,
                                  json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o}",
                                            "suite", r->suite, "case", r->name, "device", info->name, "mode",
                                            r->mode, "median_ms", cli_real(r->median_ms), "min_ms",
                                            cli_real(r->min_ms), "max_ms", cli_real(r->max_ms), "runs",
                                            r->runs, "steps", r->steps, "gflops", cli_real(r->gflops), "gbps",
                                            cli_real(r->gbps), "peak_fraction", positive(r->peak_fraction)));
    }
    if (session->args->list) {
        json_decref(results);
        json_decref(failures);
        return cli_print_json(json_pack("{s:s, s:o}", "device", info->name, "cases", cases));
    }
    json_decref(cases);
    json_t *peak = report->peak.gflops > 0 ? json_pack("{s:o, s:o}", "gflops", cli_real(report->peak.gflops),
                                                       "gbps", cli_real(report->peak.gbps))
                                           : json_null();
    return cli_print_json(json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o}", "version", clv_version(),
                                    "device", info->name, "label", info->label, "driver", info->driver,
                                    "precision", session->args->precision ? session->args->precision : "f32",
                                    "device_peak", peak, "results", results, "failures", failures));
}

static int print_list(const clv_bench_report *report) {
    static const table_column columns[] = {{"suite", TABLE_TEXT, 80, 0, NULL},
                                           {"mode", TABLE_TEXT, 90, 0, NULL},
                                           {"case", TABLE_TEXT, TABLE_KEEP, 0, NULL}};
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < report->n_results; i++) {
        table_add(t, "%s", report->results[i].suite);
        table_add(t, "%s", report->results[i].mode);
        table_add(t, "%s", report->results[i].name);
    }
    table_print(t, stdout);
    return cli_finish_output();
}

static int print_table(const cli_session *session, const clv_bench_report *report) {
    static const table_column columns[] = {
        {"suite", TABLE_TEXT, 30, 0, NULL},  {"case", TABLE_NAME, TABLE_KEEP, 20, NULL},
        {"mode", TABLE_TEXT, 95, 0, NULL},   {"median ms", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
        {"min", TABLE_NUMBER, 50, 0, NULL},  {"max", TABLE_NUMBER, 50, 0, NULL},
        {"runs", TABLE_NUMBER, 10, 0, NULL}, {"GFLOP/s", TABLE_NUMBER, 70, 0, NULL},
        {"GB/s", TABLE_NUMBER, 60, 0, NULL}, {"peak", TABLE_NUMBER, 80, 0, NULL},
    };
    const clv_device_info *info = clv_device_info_get(session->device);
    char peak[96] = "";
    if (report->peak.gflops > 0)
        snprintf(peak, sizeof peak, ": at most %.1f GFLOP/s, %.1f GB/s, as measured", report->peak.gflops,
                 report->peak.gbps);
    screen_say(stdout, "%s, %s%s", info->name, info->label, peak);
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < report->n_results; i++) {
        const clv_bench_result *r = &report->results[i];
        table_add(t, "%s", r->suite);
        table_add(t, "%s", r->name);
        table_add(t, "%s", r->mode);
        if (*r->failure) {
            table_paint(t, "\033[31m");
            table_rest(t, "FAILED %s", r->failure);
            continue;
        }
        table_add(t, "%.4g", r->median_ms);
        table_add(t, "%.4g", r->min_ms);
        table_add(t, "%.4g", r->max_ms);
        table_add(t, "%d", r->runs);
        table_add(t, "%.1f", r->gflops);
        table_add(t, "%.2f", r->gbps);
        if (r->peak_fraction > 0)
            table_add(t, "%.0f %%", 100 * r->peak_fraction);
        else
            table_add(t, "-");
    }
    table_print(t, stdout);
    return cli_finish_output();
}

int cmd_bench(const cli_args *given) {
    cli_args own = *given;
    const cli_args *args = &own;
    clv_bench_config config;
    int code = configure(args, &config);
    if (code == EXIT_DONE) code = cli_load_onnx(&own);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    cli_steps steps = {&session.progress, "measuring", cli_catch_interrupts()};
    config.progress = cli_steps_draw;
    config.user = &steps;
    clv_bench_report *report = NULL;
    clv_status status = clv_bench(session.runtime, session.device, &config, &report);
    cli_progress_clear(&session.progress);
    if (status != CLV_OK) {
        code = cli_fail_status(session.runtime, status);
        if (status == CLV_E_NOT_FOUND) code = EXIT_USAGE; // no such suite, model or case
    } else {
        code = args->json   ? print_json(&session, report)
               : args->list ? print_list(report)
                            : print_table(&session, report);
        if (code == EXIT_DONE && report->n_failed) code = EXIT_FAILED;
    }
    clv_free(report);
    cli_stop(&session);
    return code;
}
