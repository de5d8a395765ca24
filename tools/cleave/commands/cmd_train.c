// SPDX-License-Identifier: Apache-2.0
// cleave train: train a model on a dataset or on arrays, and say how it went.
#include "datasets/datasets.h"
#include "models/models.h"
#include "plans/plans.h"
#include "training/training.h"
#include "watching/events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** What the callbacks of a training need. */
typedef struct train_job {
    cli_session *session;
    cli_source *source;
    const clv_train_config *config;
    watch_eye watch;
    cli_profile profile;
    double startup; // seconds from the process's start to the first step's end; 0 before
    double began;   // and to where the training is planned
    const volatile int *interrupt;
    cli_ranks *ranks;
    clv_trainer *trainer;
    bool told; // what it is
    int64_t epoch;
    cli_epochs seen;
    json_t *epochs; // shares of the replicas in each, for the result
} train_job;

/** What is to save memory may take more of it: then that is told. */
static void tell_without(const train_job *job, clv_trainer *trainer) {
    clv_train_config config = *job->config;
    if (job->session->args->quiet || (config.precision == CLV_PRECISION_F32 && config.micro_batches <= 1))
        return;
    const clv_place_choice *choice = clv_trainer_info_get(trainer).place;
    config.precision = CLV_PRECISION_F32;
    config.micro_batches = 1;
    config.placement.shares = clv_trainer_info_get(trainer).shares;
    clv_plan_config how = {.device = config.device,
                           .place = choice                        ? choice->place
                                    : config.placement.n_replicas ? NULL // the graph says it
                                                                  : config.placement.place,
                           .variants = config.variants,
                           .no_fuse = config.no_fuse,
                           .recompute = config.recompute};
    clv_graph *graph = NULL;
    clv_plan *plain = NULL;
    clv_status status = clv_pass_graph(job->session->runtime, &config, CLV_PASS_TRAIN, config.batch, &graph);
    if (status == CLV_OK) status = clv_plan_create(graph, &how, &plain);
    if (status == CLV_OK)
        cli_without_print(stderr, job->session->args, clv_trainer_info_get(trainer).plan, plain, true);
    clv_plan_destroy(plain);
    clv_graph_destroy(graph);
}

/** What the training is. Where it begins with a file, that comes after the first step: what does not fit is
 *  refused first. */
static void tell_head(train_job *job) {
    if (job->told) return;
    job->told = true;
    cli_progress_clear(&job->session->progress);
    cli_tell_training(job->session->args, job->config, job->trainer);
    cli_print_place(job->session->args, clv_trainer_info_get(job->trainer).place);
    cli_tell_idle(job->session, clv_trainer_info_get(job->trainer).plan);
    tell_without(job, job->trainer);
}

/** The first step of this process is done; one that goes on says where. */
static void tell_first(train_job *job, const clv_train_step *step) {
    job->startup = cli_seconds();
    tell_head(job);
    if (!job->config->resume || job->session->args->quiet) return;
    cli_progress_clear(&job->session->progress);
    fprintf(stderr, "goes on after step %lld of %lld\n", (long long)step->step - 1, (long long)step->steps);
}

static bool on_step(void *user, const clv_train_step *step) {
    train_job *job = user;
    cli_nothing_done(false);
    if (job->startup == 0) tell_first(job, step);
    job->epoch = step->epoch;
    if (!watch_step(&job->watch, step)) return false;
    if (job->watch.shown) return true;
    char label[48], text[160], left[32];
    snprintf(label, sizeof label, "epoch %lld/%lld", (long long)step->epoch,
             (long long)((step->steps + step->batches - 1) / step->batches));
    const double images_left = (double)(step->steps - step->step) * (double)job->config->batch;
    const cli_unit unit = cli_unit_of(job->session->args, job->config->model);
    snprintf(text, sizeof text, "%lld/%lld  loss %s  %s left  %.0f %s/s", (long long)step->batch,
             (long long)step->batches, cli_figure(step->loss),
             watch_time_text(images_left / step->images_per_second, left),
             step->images_per_second * (double)unit.each, unit.name);
    cli_progress_draw(&job->session->progress, label, (double)step->batch, (double)step->batches, text);
    return true;
}

static bool on_evaluate(void *user, int64_t done, int64_t total) {
    train_job *job = user;
    char text[64];
    snprintf(text, sizeof text, "%lld/%lld", (long long)done, (long long)total);
    cli_progress_draw(&job->session->progress, "testing", (double)done, (double)total, text);
    return true;
}

static bool on_epoch(void *user, const clv_train_epoch *epoch) {
    train_job *job = user;
    if (epoch->shares)
        json_array_append_new(job->epochs,
                              json_pack("{s:I, s:o}", "epoch", (json_int_t)epoch->epoch, "shares",
                                        cli_shares_json(&job->config->placement, epoch->shares)));
    cli_progress_clear(&job->session->progress);
    if (!watch_epoch(&job->watch, epoch)) return false;
    cli_epochs_see(&job->seen, job->session->args, &job->config->placement, epoch);
    return true;
}

// ---- the result -------------------------------------------------------------------------------------------

/** What each device did of the steps' time, measured and predicted. */
static json_t *activity_json(const clv_trainer *trainer) {
    json_t *activity = json_array();
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        const clv_trainer_device_info info = clv_trainer_device_info_get(trainer, device);
        const double busy = info.busy;
        json_array_append_new(activity,
                              json_pack("{s:s, s:o, s:f}", "device", clv_device_info_get(device)->name,
                                        "busy", busy < 0 ? json_null() : json_real(busy), "predicted_busy",
                                        info.predicted_busy));
    }
    return activity;
}

/** How much devices wait for each other, where there are several. */
static void print_activity(const clv_trainer *trainer) {
    int n = clv_trainer_info_get(trainer).n_devices;
    for (int i = 0; i < n && n > 1; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        const clv_trainer_device_info info = clv_trainer_device_info_get(trainer, device);
        const double busy = info.busy;
        if (busy >= 0)
            screen_say(
                stdout,
                "%s was busy for %.0f %% of a step (predicted for equal devices: %.0f %%), idle for %.0f %%",
                clv_device_info_get(device)->name, 100 * busy, 100 * info.predicted_busy, 100 * (1 - busy));
    }
}

/** What always the same answer would get: on the test set, or without one on what was trained, unless that
 *  was changed. By weights of classes the commonest is no answer to be measured by. */
static cli_least least_of(const train_job *job, const clv_train_result *result) {
    const clv_train_config *config = job->config;
    if (job->session->args->class_weights) return (cli_least){.known = false};
    const bool changed = config->mixup > 0 || config->label_smoothing > 0;
    return cli_least_of(job->session->runtime, job->source, result->evaluated ? config->test : NULL,
                        &result->test, config->train, changed ? (double)NAN : result->train_loss,
                        config->loss);
}

/** What the time to the first step's end was for; the parts are the whole. */
typedef struct startup_parts {
    double start, programs, rest; // programs: some may be built beside each other, or earlier
} startup_parts;

static startup_parts startup_of(const train_job *job, const clv_program_report *report) {
    const double start = fmin(job->began, job->startup),
                 programs = fmin(report->seconds, job->startup - start);
    return (startup_parts){start, programs, job->startup - start - programs};
}

static json_t *result_json(const train_job *job, const clv_trainer *trainer, bool interrupted) {
    const cli_session *session = job->session;
    const clv_train_config *config = job->config;
    clv_train_result result = clv_trainer_result(trainer);
    clv_program_report programs = clv_runtime_info_get(session->runtime).programs;
    bool timed = result.step_ms > 0; // the first step of a process is not timed
    json_t *object =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:f}", "model", config->model->name,
                  "device", clv_device_info_get(clv_trainer_info_get(trainer).devices[0])->name,
                  "test_accuracy", result.evaluated ? cli_real(result.test.accuracy) : json_null(),
                  "test_loss", result.evaluated ? cli_real(result.test.loss) : json_null(), "train_loss",
                  cli_real(result.train_loss), "images_per_second",
                  timed ? cli_real(result.images_per_second) : json_null(), "step_ms",
                  timed ? cli_real(result.step_ms) : json_null(), "steps", (json_int_t)result.steps, "epochs",
                  (json_int_t)result.epochs, "interrupted", interrupted, "seconds", cli_seconds());
    const startup_parts parts = startup_of(job, &programs);
    json_t *startup =
        json_pack("{s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:i}", "seconds", job->startup, "start_seconds",
                  parts.start, "program_seconds", parts.programs, "rest_seconds", parts.rest, "programs",
                  programs.programs, "cache_hits", programs.cache_hits, "cache_misses", programs.cache_misses,
                  "helpers", programs.helpers);
    json_object_set_new(object, "startup", startup);
    json_object_set_new(object, "metrics", result.evaluated ? cli_metrics_json(&result.test) : json_null());
    json_object_set_new(object, "tested_step",
                        result.evaluated ? json_integer((json_int_t)result.tested_step) : json_null());
    const cli_least least = least_of(job, &result);
    json_object_set_new(object, "baseline", cli_least_json(&least));
    const clv_table_report table = clv_dataset_info_get(job->source->train).table_report;
    json_object_set_new(object, "table", table.rows ? cli_table_json(&table) : json_null());
    json_object_set_new(object, "perplexity",
                        result.evaluated ? cli_real(cli_perplexity(session->args, &result.test))
                                         : json_null());
    json_object_set_new(object, "best_epoch",
                        result.best_epoch ? json_integer((json_int_t)result.best_epoch) : json_null());
    json_object_set_new(object, "best_value", cli_real(result.best_value));
    static const char *const ends[] = {
        [CLV_END_NOT] = NULL, [CLV_END_STEPS] = "steps", [CLV_END_PATIENCE] = "patience"};
    json_object_set_new(object, "end", ends[result.end] ? json_string(ends[result.end]) : json_null());
    json_t *memory = json_array();
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        json_array_append_new(
            memory, cli_memory_json(
                        device, clv_trainer_device_info_get(trainer, device).memory.predicted_peak_bytes));
    }
    json_object_set_new(object, "memory", memory);
    json_object_set_new(object, "activity", activity_json(trainer));
    json_object_set_new(object, "loss_scale",
                        result.loss_scale > 0 ? cli_real(result.loss_scale) : json_null());
    json_object_set_new(object, "skipped_steps", json_integer((json_int_t)result.skipped_steps));
    json_object_set_new(object, "recomputed", cli_recomputed_json(clv_trainer_info_get(trainer).plan));
    json_object_set_new(object, "shares",
                        cli_shares_json(&config->placement, clv_trainer_info_get(trainer).shares));
    json_object_set(object, "shares_by_epoch", job->epochs);
    json_t *lost = json_array();
    for (int i = 0; i < clv_trainer_info_get(trainer).n_lost; i++) {
        clv_lost_device device = clv_trainer_info_get(trainer).lost[i];
        json_array_append_new(
            lost, json_pack("{s:s, s:I, s:s}", "device", clv_device_info_get(device.device)->name, "step",
                            (json_int_t)device.step, "reason", cli_option_words(device.reason)));
    }
    json_object_set_new(object, "lost_devices", lost);
    json_object_set_new(object, "placement", cli_place_json(clv_trainer_info_get(trainer).place));
    json_object_set_new(object, "profile", cli_profile_json(&job->profile));
    const char *first = NULL;
    if (cli_data_is(session->args, "images"))
        json_object_set_new(object, "broken_pictures",
                            json_integer((json_int_t)cli_broken(job->source, &first)));
    return object;
}

/** A number with two digits behind the point, so that what is printed adds up. */
static double in_hundredths(double seconds) {
    return round(100 * seconds) / 100;
}

/** What the time was for, and what there was to compile, from where: ours is not the only cache. */
static void print_startup(const train_job *job, clv_device *device) {
    const clv_program_report programs = clv_runtime_info_get(job->session->runtime).programs;
    const startup_parts parts = startup_of(job, &programs);
    const double all = in_hundredths(job->startup), start = in_hundredths(parts.start),
                 built = fmin(in_hundredths(parts.programs), all - start);
    char cache[64] = "the driver keeps a cache of its own", text[128] = "";
    if (!strstr(clv_device_info_get(device)->quirks, "keeps programs itself"))
        snprintf(cache, sizeof cache, "%d from the cache", programs.cache_hits);
    if (programs.programs)
        snprintf(text, sizeof text, ", %.2f s for %d program%s (%s)", built, programs.programs,
                 programs.programs == 1 ? "" : "s", cache);
    screen_say(
        stdout, "%.2f s to the first step: %.2f s to start and to read data%s, %.2f s to plan%s and to do it",
        all, start, text, fmax(0, all - start - built), programs.programs ? ", to compile kernels" : "");
}

/** Figures of the run first, what a person asks for last, where it can be seen. */
static void print_result(const train_job *job, const clv_trainer *trainer, bool interrupted) {
    clv_train_result result = clv_trainer_result(trainer);
    const cli_unit unit = cli_unit_of(job->session->args, job->config->model);
    cli_profile_print(stdout, &job->profile);
    if (job->profile.profile && job->session->args->profile) putchar('\n');
    if (result.step_ms > 0) // the first step of a process is not timed
        screen_say(stdout, "%.0f %s/s on average, %.2f ms a step (median)",
                   result.images_per_second * (double)unit.each, unit.name, result.step_ms);
    print_startup(job, clv_trainer_info_get(trainer).devices[0]);
    cli_shares_print(&job->config->placement, clv_trainer_info_get(trainer).shares);
    for (int i = 0; i < clv_trainer_info_get(trainer).n_lost; i++) {
        clv_lost_device lost = clv_trainer_info_get(trainer).lost[i];
        screen_say(stdout, "%s was lost in step %lld: %s", clv_device_info_get(lost.device)->name,
                   (long long)lost.step, cli_option_words(lost.reason));
    }
    if (result.loss_scale > 0)
        screen_say(stdout, "loss scale %g; %lld step%s skipped because gradients overflowed",
                   result.loss_scale, (long long)result.skipped_steps,
                   result.skipped_steps == 1 ? " was" : "s were");
    print_activity(trainer);
    cli_recomputed_print(stdout, job->session->args, clv_trainer_info_get(trainer).plan);
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices && !job->session->args->quiet; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        cli_memory_table(stdout, device,
                         clv_trainer_device_info_get(trainer, device).memory.predicted_peak_bytes);
    }
    cli_tell_result(stdout, job->source, &result, interrupted);
    const cli_least least = least_of(job, &result);
    if (!interrupted) cli_least_say(stdout, &least);
    if (!interrupted) cli_epochs_say_worse(stdout, &job->seen, job->source);
}

/** Say in the log how the training ended. */
static void end_watch(train_job *job, clv_status status) {
    watch_state state = status == CLV_OK              ? WATCH_DONE
                        : status == CLV_E_INTERRUPTED ? WATCH_INTERRUPTED
                                                      : WATCH_FAILED;
    watch_end(&job->watch, state, status == CLV_OK ? NULL : cli_sentence(job->session->runtime));
}

// ---- the command ------------------------------------------------------------------------------------------

/** With what `generate` and `run arrays` need; all else the trainer tells. */
static clv_status save_weights(void *user, clv_session *trained, const char *path) {
    const cli_source *source = ((const train_job *)user)->source;
    if (source->vocabulary) return clv_gpt_weights_save(trained, &source->gpt, source->vocabulary, path);
    return source->archive ? cli_save_fields(trained, &source->fields, path)
                           : clv_weights_save(trained, path);
}

/** A test whose results are not finite is told, and no success, unless one goes on with such. */
static int check_results(const train_job *job, const clv_trainer *trainer) {
    const clv_train_result result = clv_trainer_result(trainer);
    if (!result.evaluated || !result.test.not_finite || job->config->on_nan == CLV_NAN_CONTINUE)
        return EXIT_DONE;
    return cli_fail(EXIT_FAILED,
                    "the test's results are not finite (NaN or infinity) for %lld of %lld samples: look at "
                    "its samples; --on-nan continue takes what there is",
                    (long long)result.test.not_finite, (long long)result.test.count);
}

static int finish(train_job *job, clv_trainer *trainer, clv_status status) {
    const cli_args *args = job->session->args;
    bool interrupted = status == CLV_E_INTERRUPTED;
    cli_progress_clear(&job->session->progress);
    cli_epochs_end(&job->seen);
    cli_tell_broken(job->source);
    // A log that could not be written has been told, and ended the training as an interruption does.
    const int untold = job->watch.log.failed ? job->watch.log.failed : job->watch.events.failed;
    if (status != CLV_OK && !interrupted)
        return untold ? untold : cli_fail_sized(job->session->runtime, args, status, job->config->model);
    int code = untold ? untold : interrupted ? cli_fail_status(job->session->runtime, status) : EXIT_DONE;
    if (args->save && !(untold && args->checkpoint)) {         // with a checkpoint nothing is lost
        if (cli_is_pipe(args->save)) cli_release_interrupts(); // its reader may let us wait for ever
        status = save_weights(job, clv_trainer_info_get(trainer).session, args->save);
        if (status != CLV_OK) return untold ? untold : cli_fail_status(job->session->runtime, status);
        if (!args->quiet && (args->json || untold)) fprintf(stderr, "weights are in %s\n", args->save);
    }
    if (args->lora_save) {
        char *fields = job->source->archive ? cli_fields_record(&job->source->fields) : NULL;
        const clv_weights_text text = {"cleave.fields", fields};
        status = clv_lora_save(clv_trainer_info_get(trainer).session, &text, fields ? 1 : 0, args->lora_save,
                               args->weights);
        free(fields);
        if (status != CLV_OK) return untold ? untold : cli_fail_status(job->session->runtime, status);
        if (!args->quiet) fprintf(stderr, "the LoRA is in %s\n", args->lora_save);
    }
    cli_release_interrupts(); // what is left can be had again
    int printed = EXIT_DONE;
    if (args->json) {
        printed = cli_print_json(result_json(job, trainer, interrupted));
    } else {
        print_result(job, trainer, interrupted);
        printed = cli_finish_output();
    }
    int traced = cli_profile_trace(&job->profile); // last, so that a full disk costs nothing else
    if (printed == EXIT_DONE) printed = traced;
    if (printed != EXIT_DONE) return printed;
    return code != EXIT_DONE ? code : check_results(job, trainer);
}

static clv_device *device_of(const void *trainer, int index) {
    const clv_trainer_info info = clv_trainer_info_get(trainer);
    return index < info.n_devices ? info.devices[index] : NULL;
}

/** The trainer is made: train, and tell how it went. */
static int run(train_job *job, clv_trainer *trainer) {
    int code = cli_profile_begin(job->session, clv_trainer_info_get(trainer).session, device_of, trainer,
                                 &job->profile);
    if (code != EXIT_DONE) return code;
    job->trainer = trainer;
    if (!(job->config->weights || job->config->resume) || job->session->args->watch) tell_head(job);
    clv_status status = watch_begin(&job->watch, job->session, job->config, trainer);
    job->ranks->begun = status == CLV_OK;
    if (status == CLV_OK) status = clv_trainer_run(trainer);
    if (status == CLV_OK) tell_head(job);
    job->ranks->lost = status == CLV_E_RANK_LOST;
    cli_nothing_done(false);
    end_watch(job, status);
    return finish(job, trainer, status);
}

/** Wait for the samples, and say what is strange in them. */
static int await_source(const cli_args *args, cli_source *source) {
    int code = cli_source_wait(source);
    if (code != EXIT_DONE) return code;
    cli_tell_broken(source);
    clv_table_report table = clv_dataset_info_get(source->train).table_report;
    if (source->test) { // what is left out is counted in the whole file
        const clv_table_report test = clv_dataset_info_get(source->test).table_report;
        table.filled += test.filled;
        if (!table.unknown) {
            table.unknown_line = test.unknown_line;
            table.unknown_column = test.unknown_column;
            memcpy(table.unknown_word, test.unknown_word, sizeof table.unknown_word);
        }
        table.unknown += test.unknown;
    }
    cli_tell_table(args, &table, clv_dataset_info_get(source->train).table);
    cli_tell_text(source);
    cli_tell_few_rows(args, source->train);
    cli_tell_ids(args, source->train);
    cli_tell_few_pictures(args, source->train);
    cli_tell_unlike(source);
    return cli_check_tested(args, source->test != NULL);
}

static int train_weighted(cli_session *session, const clv_model *model, cli_source *source,
                          const clv_placement *placement, cli_class_weights_of *weights, cli_ranks *ranks) {
    const cli_args *args = session->args;
    clv_model sized;
    int code = cli_model_of_source(session->runtime, source, &sized);
    if (code == EXIT_DONE) code = cli_check_place(session->runtime, &sized, placement);
    if (code == EXIT_DONE) code = cli_check_freeze(session->runtime, &sized, args->freeze);
    cli_groups groups;
    cli_metrics metrics;
    if (code == EXIT_DONE) code = cli_read_metrics(args, &metrics);
    if (code == EXIT_DONE && source->test) code = cli_model_metrics(args, &sized, &metrics);
    if (code == EXIT_DONE) code = cli_read_groups(args, &groups);
    if (code == EXIT_DONE) code = cli_check_groups(session->runtime, &sized, &groups);
    if (code != EXIT_DONE) return code;
    train_job job = {.session = session, .source = source, .ranks = ranks, .epochs = json_array()};
    clv_train_config config = {
        .device = placement->place ? NULL : session->device,
        .placement = *placement,
        .model = &sized,
        .loss = cli_loss(args),
        .losses = source->fields.trained,
        .n_losses = source->fields.n_targets,
        .train = source->train,
        .test = source->test,
        .seed = 1,
        .save_best = save_weights,
        .interrupt = cli_catch_interrupts(),
        .user = &job,
        .on_step = on_step,
        .on_epoch = on_epoch,
        .on_evaluate = on_evaluate,
    };
    config.ranks = ranks->ranks;
    if (config.ranks && !args->shares) config.placement.measure_shares = false;
    if (config.ranks && !args->replicas) { // then --shares are theirs
        config.rank_shares = config.placement.shares;
        config.placement.shares = NULL;
        if (config.rank_shares && clv_ranks_info_get(config.ranks).size > CLI_MAX_REPLICAS)
            return cli_fail(EXIT_USAGE, "--shares are given for %d ranks at most: auto measures them",
                            CLI_MAX_REPLICAS);
    }
    cli_recipe(args, model, &config);
    if (!args->except) config.weights_except = cli_onnx_anew(args, sized.classes);
    code = cli_class_weights(session->runtime, args, &config, weights);
    if (code != EXIT_DONE) {
        json_decref(job.epochs);
        return code;
    }
    config.metrics = metrics.metric;
    config.n_metrics = metrics.n;
    config.optimizer.groups = groups.group;
    config.optimizer.n_groups = groups.n;
    if (!args->quiet)
        cli_answer_interrupts(
            config.ranks
                ? "\ninterrupted, or a rank died: if all are there the step is finished first, and the "
                  "checkpoint written if one is wanted, to go on with --resume\n"
            : args->checkpoint
                ? "\ninterrupted: the step is finished and the checkpoint written first; again to end at "
                  "once\n"
                : "\ninterrupted: the step is finished first; again to end at once, without waiting for the "
                  "device\n");
    job.config = &config;
    code = watch_log_open(&job.watch.log, args->log, args->resume != NULL, args->quiet);
    if (code == EXIT_DONE) code = events_open(&job.watch.events, args->tensorboard, args->histograms);
    if (code != EXIT_DONE) return code;
    clv_trainer *trainer;
    job.began = cli_seconds();
    cli_nothing_done(true);
    clv_status status = clv_trainer_create(session->runtime, &config, &trainer);
    code = status == CLV_OK ? run(&job, trainer) : cli_fail_made(session->runtime, args, status);
    clv_trainer_destroy(trainer);
    cli_profile_end(&job.profile);
    json_decref(job.epochs);
    int closed = watch_log_close(&job.watch.log);
    if (code == EXIT_DONE) code = closed;
    closed = events_close(&job.watch.events);
    if (code == EXIT_DONE) code = closed;
    return code;
}

static int train(cli_session *session, const clv_model *model, cli_source *source,
                 const clv_placement *placement) {
    cli_class_weights_of weights = {.n = 0};
    cli_ranks ranks;
    int code = cli_ranks_join(session, &ranks);
    if (code == EXIT_DONE) code = await_source(session->args, source);
    if (code == EXIT_DONE) do
            code = train_weighted(session, model, source, placement, &weights, &ranks);
        while (cli_ranks_go_on(session, &ranks, &code));
    cli_class_weights_end(&weights);
    cli_ranks_end(&ranks);
    session->args = ranks.given;
    return code;
}

static int with_weights(const cli_args *args) {
    const char *usual = cli_data_is(args, "text")     ? "gpt"
                        : cli_data_is(args, "csv")    ? "mlp"
                        : cli_data_is(args, "arrays") ? "mlp"
                        : cli_data_is(args, "images") ? "resnet18"
                                                      : "cnn";
    const clv_model *model = cli_model(args->model ? args->model : usual);
    if (!model) return EXIT_USAGE;
    int code = cli_check_text(args, model);
    if (code == EXIT_DONE) code = cli_check_csv(args, model);
    if (code == EXIT_DONE) code = cli_check_arrays(args, model);
    if (code == EXIT_DONE) code = cli_check_folder(args, model);
    if (code != EXIT_DONE) return code;
    if (args->checkpoint_every && !args->checkpoint)
        return cli_fail(EXIT_USAGE, "--checkpoint-every needs --checkpoint FILE");
    if (args->histograms && !args->tensorboard)
        return cli_fail(EXIT_USAGE, "--histograms needs --tensorboard DIR");
    if ((args->rank || args->lora_alpha > 0 || args->lora_weights || args->lora_save) && !args->lora)
        return cli_fail(EXIT_USAGE, "which layers? --lora names those that get the LoRA");
    code = cli_check_stopping(args);
    cli_metrics metrics; // read again when samples are there; a mistake is told before they are
    if (code == EXIT_DONE) code = cli_read_metrics(args, &metrics);
    if (code == EXIT_DONE) code = cli_check_recipe(args, model);
    if (code == EXIT_DONE && !args->ranks) code = cli_check_train_files(args);
    if (code != EXIT_DONE) return code;
    cli_placement placement;
    code = cli_read_placement(args, &placement);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_source source;
    cli_start_early(args, true, &session);
    cli_source_begin(&source, args, model, true);
    code = cli_start(&session);
    if (code == EXIT_DONE) {
        code = train(&session, model, &source, &placement.placement);
        cli_stop(&session);
    }
    cli_source_end(&source);
    return code;
}

int cmd_train(const cli_args *given) {
    cli_args args = *given;
    char *parts[2] = {NULL};
    int code = cli_check_source(&args);
    if (code == EXIT_DONE) cli_find_parts(&args, parts);
    if (code == EXIT_DONE) code = cli_load_own(&args);
    if (code == EXIT_DONE) code = cli_load_onnx(&args);
    if (code == EXIT_DONE && args.weights && args.resume)
        code = cli_fail(EXIT_USAGE, "--weights and --resume both say where to begin; give one of them");
    if (code == EXIT_DONE && args.except && !args.weights && !(args.resume && args.lora))
        code =
            cli_fail(EXIT_USAGE, "--except needs --weights: which file should the other tensors come from?");
    if (code == EXIT_DONE) code = cli_tell_weights(&args);
    if (code == EXIT_DONE) code = cli_check_resume(&args);
    if (code == EXIT_DONE) code = with_weights(&args);
    cli_forget_weights(&args);
    for (int i = 0; i < 2; i++) free(parts[i]);
    return code;
}
