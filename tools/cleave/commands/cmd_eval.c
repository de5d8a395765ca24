// SPDX-License-Identifier: Apache-2.0
// cleave eval: measure a model with given weights on a dataset or on arrays.
#include "datasets/datasets.h"
#include "models/models.h"
#include "plans/plans.h"
#include "training/training.h"

#include <math.h>

typedef struct eval_job {
    cli_session *session;
    const cli_source *source;
    clv_confusion *confusion; // of --per-class; else NULL
    const volatile int *interrupt;
    int64_t first, done; // samples of the first batch, and of all so far
    double since, last;  // seconds when these were done
    const clv_placement *placement;
    cli_profile profile;
} eval_job;

static bool on_progress(void *user, int64_t done, int64_t total) {
    eval_job *job = user;
    char text[64];
    job->last = cli_seconds();
    if (done && !job->first) job->first = done, job->since = job->last;
    job->done = done;
    snprintf(text, sizeof text, "%lld/%lld", (long long)done, (long long)total);
    cli_progress_draw(&job->session->progress, "testing", (double)done, (double)total, text);
    return !*job->interrupt;
}

/** Samples a second, without the first batch, for which kernels are compiled. NaN: after it there were less
 *  than another one. */
static double rate_of(const eval_job *job) {
    const int64_t n = job->done - job->first;
    return n >= job->first && job->last > job->since ? (double)n / (job->last - job->since) : (double)NAN;
}

/** Of another table, or text, than the one learnt all is to be tested on. */
static void tell_part(const cli_args *args) {
    const bool parted = cli_data_is(args, "csv") || cli_data_is(args, "arrays") || cli_data_is(args, "text");
    if (parted && !args->given.validation && !args->quiet)
        screen_say(stderr,
                   "this tests on the last tenth of '%s', as `train` does; --validation 1 tests on all of "
                   "it, if it was not trained on",
                   args->words[1]);
}

static int report(const eval_job *job, const clv_model *model, clv_predictor *predictor,
                  const clv_metrics *metrics) {
    const cli_session *session = job->session;
    const cli_source *source = job->source;
    const cli_least least = cli_least_of(session->runtime, source, source->test, metrics, NULL, (double)NAN,
                                         cli_loss(session->args));
    const clv_table_report table = clv_dataset_info_get(source->test).table_report;
    clv_plan *plan = clv_predictor_info_get(predictor).plan;
    const char *device = clv_device_info_get(clv_plan_device_get(plan, 0))->name;
    const double rate = rate_of(job);
    if (session->args->json)
        return cli_print_json(json_pack(
            "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "model",
            model->name, "device", device, "test_accuracy", cli_real(metrics->accuracy), "test_loss",
            cli_real(metrics->loss), "perplexity", cli_real(cli_perplexity(session->args, metrics)),
            "metrics", cli_metrics_json(metrics), "per_class", cli_classes_json(job->source, job->confusion),
            "count", (json_int_t)metrics->count, "correct",
            isnan(metrics->accuracy) ? json_null() : json_integer((json_int_t)metrics->correct),
            "images_per_second", cli_real(rate), "memory", cli_plan_memory_json(plan), "shares",
            cli_shares_json(job->placement, clv_predictor_info_get(predictor).shares), "placement",
            cli_place_json(clv_predictor_info_get(predictor).place), "profile",
            cli_profile_json(&job->profile), "baseline", cli_least_json(&least), "table",
            table.rows ? cli_table_json(&table) : json_null()));
    if (!isnan(metrics->accuracy))
        printf("test accuracy %.4f (%lld of %lld)\n", metrics->accuracy, (long long)metrics->correct,
               (long long)metrics->targets);
    printf("test loss %s%s\n", cli_figure(metrics->loss), cli_loss_units(source));
    if (cli_data_is(session->args, "text"))
        printf("perplexity %.4g\n", cli_perplexity(session->args, metrics));
    cli_metrics_say(stdout, metrics);
    cli_baseline_say(stdout, session->runtime, source->test, metrics);
    cli_least_say(stdout, &least);
    if (job->confusion) cli_classes_print(stdout, job->source, job->confusion);
    const cli_unit unit = cli_unit_of(session->args, model);
    printf("tested on %lld %s", (long long)(metrics->count * unit.each), unit.name);
    if (!isnan(rate)) printf(", %.0f %s/s", rate * (double)unit.each, unit.name);
    putchar('\n');
    tell_part(session->args);
    cli_shares_print(job->placement, clv_predictor_info_get(predictor).shares);
    if (!session->args->quiet) cli_plan_memory_tables(stdout, plan);
    cli_profile_print(stdout, &job->profile);
    return cli_finish_output();
}

/** Results that are not finite are counted, and told. */
static int check_results(const cli_session *session, clv_session *weights, const clv_metrics *metrics) {
    char why[400];
    if (!metrics->not_finite) return EXIT_DONE;
    cli_blame_weights(weights, session->args->weights, why, sizeof why);
    return cli_fail(EXIT_FAILED, "results of %lld of %lld samples are not finite (NaN or infinity); %s",
                    (long long)metrics->not_finite, (long long)metrics->count, why);
}

/** The predictor is made: load, measure, tell. */
static int measure(eval_job *job, const clv_model *model, clv_predictor *predictor, const clv_dataset *test) {
    cli_session *session = job->session;
    clv_session *weights = clv_predictor_info_get(predictor).session;
    clv_metrics metrics;
    int code = cli_profile_predictor(session, predictor, model, &job->profile);
    if (code != EXIT_DONE) return code;
    const clv_status status = clv_evaluate(predictor, test, on_progress, job, &metrics);
    cli_progress_clear(&session->progress);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    code = report(job, model, predictor, &metrics);
    int traced = cli_profile_trace(&job->profile);
    if (code == EXIT_DONE) code = traced;
    return code == EXIT_DONE ? check_results(session, weights, &metrics) : code;
}

/** Weights that do not name their classes leave the folders to be numbered: that takes a folder for each. */
static int check_folders(const cli_source *source, const clv_model *model) {
    const cli_args *args = source->args;
    const int64_t have = clv_dataset_info_get(source->test).classes;
    if (!cli_data_is(args, "images") || args->labels || cli_told_classes(args) || have >= model->classes)
        return EXIT_DONE;
    return cli_fail(EXIT_FAILED,
                    "'%s' has folders of %lld class%s, and the model has %lld, whose names '%s' does not "
                    "hold: give a folder for each class, with at least one picture in it",
                    args->words[1], (long long)have, have == 1 ? "" : "es", (long long)model->classes,
                    args->weights);
}

static int evaluate(cli_session *session, cli_source *source, const clv_placement *placement) {
    const cli_args *args = session->args;
    int code = cli_source_wait(source);
    if (code != EXIT_DONE) return code;
    cli_tell_broken(source);
    const clv_table_report table = clv_dataset_info_get(source->test).table_report;
    cli_tell_table(args, &table, clv_dataset_info_get(source->test).table);
    clv_model sized;
    code = cli_model_of_source(session->runtime, source, &sized);
    if (code == EXIT_DONE) code = check_folders(source, &sized);
    if (code == EXIT_DONE) code = cli_check_place(session->runtime, &sized, placement);
    if (code != EXIT_DONE) return code;
    cli_metrics metrics;
    code = cli_read_metrics(args, &metrics);
    if (code == EXIT_DONE) code = cli_model_metrics(args, &sized, &metrics);
    if (code != EXIT_DONE) return code;
    clv_confusion *confusion = NULL;
    clv_status status =
        args->per_class ? clv_confusion_create(session->runtime, &sized, NULL, &confusion) : CLV_OK;
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    clv_predictor_config config = {.device = placement->place ? NULL : session->device,
                                   .placement = *placement,
                                   .model = &sized,
                                   .metrics = metrics.metric,
                                   .n_metrics = metrics.n,
                                   .confusion = confusion,
                                   .loss = cli_loss(args),
                                   .losses = source->fields.trained,
                                   .n_losses = source->fields.n_targets,
                                   .batch = args->batch,
                                   .variants = args->variants,
                                   .no_fuse = cli_no_fuse(args),
                                   .precision = cli_precision(args),
                                   .samples = source->test};
    const int64_t count = clv_dataset_info_get(source->test).count;
    if (!config.batch && count < 256) // zeros would fill it up
        config.batch = count > placement->n_replicas ? count : placement->n_replicas;
    eval_job job = {.session = session,
                    .source = source,
                    .confusion = confusion,
                    .interrupt = cli_catch_interrupts(),
                    .placement = placement};
    clv_predictor *predictor;
    status = clv_predictor_create(session->runtime, &config, &predictor);
    code = status == CLV_OK ? measure(&job, &sized, predictor, source->test)
                            : cli_fail_made(session->runtime, args, status);
    cli_tell_broken(source);
    clv_predictor_destroy(predictor);
    clv_confusion_destroy(confusion);
    cli_profile_end(&job.profile);
    return code;
}

static int eval(const cli_args *args) {
    const char *usual = cli_data_is(args, "text") ? "gpt" : cli_data_is(args, "arrays") ? "mlp" : NULL;
    const clv_model *model = cli_model(args->model ? args->model : usual);
    if (!model) return EXIT_USAGE;
    int code = cli_check_text(args, model);
    if (code == EXIT_DONE) code = cli_check_csv(args, model);
    if (code == EXIT_DONE) code = cli_check_arrays(args, model);
    if (code == EXIT_DONE) code = cli_check_folder(args, model);
    if (code != EXIT_DONE) return code;
    cli_metrics metrics; // a mistake is told before samples are read
    code = cli_read_metrics(args, &metrics);
    if (code == EXIT_DONE) code = cli_check_target(args->trace);
    if (code != EXIT_DONE) return code;
    cli_placement placement;
    code = cli_read_placement(args, &placement);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_source source;
    cli_start_early(args, true, &session);
    cli_source_begin(&source, args, model, false);
    code = cli_start(&session);
    if (code == EXIT_DONE) {
        code = evaluate(&session, &source, &placement.placement);
        cli_stop(&session);
    }
    cli_source_end(&source);
    return code;
}

int cmd_eval(const cli_args *given) {
    cli_args args = *given;
    int code = cli_check_source(&args);
    if (code == EXIT_DONE) code = cli_load_own(&args);
    if (code == EXIT_DONE) code = cli_load_onnx(&args);
    if (code == EXIT_DONE && !args.weights)
        code = cli_fail(EXIT_USAGE, "which weights? --weights wants a .safetensors file");
    if (code == EXIT_DONE) code = cli_tell_weights(&args);
    if (code == EXIT_DONE) code = eval(&args);
    cli_forget_weights(&args);
    return code;
}
