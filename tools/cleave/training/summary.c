// SPDX-License-Identifier: Apache-2.0
// What a training is, before its first step, and what came of it, after its last: for a person. Scripts read
// --json and --log.
#include "datasets/datasets.h"
#include "training/training.h"
#include "options/options.h"
#include "plans/plan_tree.h"
#include "watching/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/** Text that is put together; what does not fit is cut. */
typedef struct note {
    char text[1024];
    size_t n;
} note;

static void __attribute__((format(printf, 2, 3))) add(note *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(to->text + to->n, sizeof to->text - to->n, format, args);
    va_end(args);
    to->n += n > 0 ? (size_t)n : 0;
    if (to->n >= sizeof to->text) to->n = sizeof to->text - 1;
}

/** A name and what there is of it, broken into lines on a screen. */
static void say(FILE *out, const char *name, const note *text) {
    enum { AT = 13 };
    const int width = screen_width(out);
    fprintf(out, "  %-*s", AT - 2, name);
    if (width)
        screen_wrap(out, text->text, AT, AT, width);
    else
        fputs(text->text, out);
    fputc('\n', out);
}

// ---- the beginning ----------------------------------------------------------------------------------------

/** What the table of options tells of settings in a line. What begins with a comma goes before other
 *  clauses. */
static void add_settings(note *out, setting_line line, const cli_args *args, const clv_train_config *config) {
    for (int i = 0; i < 2 * OPTIONS; i++) {
        const option_row *option = &option_rows[i % OPTIONS];
        char value[512];
        if (option->line != line || (*option->said == ',') != (i < OPTIONS) ||
            !watch_setting_text(option, args, config, value, sizeof value))
            continue;
        const char *at = option->said;
        for (const char *hole; (hole = strstr(at, "{}")); at = hole + 2)
            add(out, "%.*s%s", (int)(hole - at), at, value);
        add(out, "%s", at);
    }
}

static void model_text(const cli_args *args, const clv_train_config *config, const clv_trainer *trainer,
                       note *out) {
    const clv_plan *plan = clv_trainer_info_get(trainer).plan;
    int64_t parameters = 0, frozen = 0;
    for (int i = 0; i < clv_plan_info_get(plan).n_kept; i++) {
        clv_plan_kept kept = clv_plan_kept_get(plan, i);
        if (kept.parameter) parameters += clv_shape_numel(&kept.shape);
        if (kept.frozen) frozen += clv_shape_numel(&kept.shape);
    }
    add(out, "%s, %s parameters, ", config->model->name, plan_count(parameters));
    if (frozen)
        add(out, "%s of them frozen", plan_count(frozen));
    else
        add(out, "all trainable");
    add_settings(out, LINE_MODEL, args, config);
}

static void devices_text(const clv_train_config *config, const clv_trainer *trainer, note *out) {
    const clv_placement *placement = &config->placement;
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices; i++) {
        const clv_device_info *info = clv_device_info_get(clv_trainer_info_get(trainer).devices[i]);
        add(out, "%s%s, %s", i ? "; " : "", info->name, info->label);
    }
    if (placement->n_replicas)
        add(out, placement->place ? "; layers by --place, of the others each has a part of the batch"
                                  : "; each has a part of the batch");
    else if (placement->place)
        add(out, "; layers by --place");
}

/** Named inputs and targets, each with its shape or its classes. */
static void ports_text(const cli_args *args, const clv_train_config *config, note *out) {
    const clv_model *model = config->model;
    char text[96];
    add(out, ": %s, from", args->words[args->n_words - 1]);
    for (int i = 0; i < model->n_inputs + model->n_targets; i++) {
        const bool input = i < model->n_inputs;
        const clv_port *port = input ? &model->inputs[i] : &model->targets[i - model->n_inputs];
        const clv_shape batch = clv_port_shape(port, 1), one = clv_shape_make(batch.rank - 1, batch.dims + 1);
        add(out, "%s %s %s",
            i == model->n_inputs ? " to"
            : i                  ? ","
                                 : "",
            port->name, clv_shape_text(&one, text, sizeof text));
        if (!input && port->classes) add(out, " of %s classes", plan_count(port->classes));
    }
    if (config->no_shuffle)
        add(out, ", in their order");
    else
        add(out, ", shuffled");
}

static void samples_text(const cli_args *args, const clv_train_config *config, note *out) {
    char text[96];
    clv_shape sample = clv_dataset_info_get(config->train).sample;
    const bool named = config->model->build_all != NULL;
    add(out, "%s to train on", plan_count(clv_dataset_info_get(config->train).count));
    if (config->test)
        add(out, ", %s to test on", plan_count(clv_dataset_info_get(config->test).count));
    else
        add(out, ", none to test on%s", cli_data_is(args, "images") ? " (--val DIR)" : "");
    const clv_shape target = clv_dataset_info_get(config->train).target;
    static const char *const targets[][2] = {
        {"classes", "class"}, {"labels", "label"}, {"numbers to be learnt", "number to be learnt"}};
    const int64_t classes = config->model->classes, n = classes ? classes : clv_shape_numel(&target);
    const int kind = classes ? 0 : cli_loss(args) ? 1 : 2;
    if (named)
        ports_text(args, config, out);
    else if (cli_data_is(args, "text"))
        add(out, ": %s, each of %s tokens, %s in the vocabulary%s", args->words[1],
            plan_count(clv_shape_numel(&sample)), plan_count(classes),
            config->no_shuffle ? ", in their order" : ", shuffled");
    else
        add(out, ": %s, each %s, %s %s%s", args->images ? args->images : args->words[args->n_words - 1],
            clv_shape_text(&sample, text, sizeof text), plan_count(n), targets[kind][n == 1],
            config->no_shuffle ? ", in their order" : ", shuffled");
    add_settings(out, LINE_SAMPLES, args, config);
    if (args->class_weights) add(out, ", classes weighted: %.60s", args->class_weights);
}

static void batch_text(const clv_train_config *config, note *out) {
    int64_t batches = (clv_dataset_info_get(config->train).count + config->batch - 1) / config->batch,
            steps = batches * (config->epochs ? config->epochs : 1);
    add(out, "%s", plan_count(config->batch));
    if (config->micro_batches > 1) add(out, " in %s parts", plan_count(config->micro_batches));
    if (config->steps)
        add(out, ", %s step%s", plan_count(config->steps), config->steps == 1 ? "" : "s");
    else
        add(out, ", %s epoch%s of %s step%s, %s in all", plan_count(config->epochs),
            config->epochs == 1 ? "" : "s", plan_count(batches), batches == 1 ? "" : "s", plan_count(steps));
    if (config->patience)
        add(out, ", fewer when %s is no better for %s epoch%s", config->monitor ? config->monitor : "loss",
            plan_count(config->patience), config->patience == 1 ? "" : "s");
}

static void optimizer_text(const cli_args *args, const clv_train_config *config, note *out) {
    const clv_optimizer_config *optimizer = &config->optimizer;
    float decay = optimizer->weight_decay;
    if (optimizer->kind == CLV_ADAMW || optimizer->kind == CLV_MUON) // cleave/optim.h
        decay = decay < 0 ? 0 : decay > 0 ? decay : optimizer->kind == CLV_MUON ? 0.1f : 0.01f;
    add(out, "%s", cli_optimizer_name(optimizer));
    if (optimizer->momentum > 0)
        add(out, ", %smomentum %g", optimizer->nesterov ? "Nesterov " : "", (double)optimizer->momentum);
    if (decay > 0) add(out, ", weight decay %g", (double)decay);
    for (int i = 0; i < optimizer->n_groups; i++) {
        const clv_param_group *group = &optimizer->groups[i];
        add(out, "; %s:", group->max_rank ? "vectors" : group->patterns);
        if (group->lr > 0) add(out, " %g of the rate", (double)group->lr);
        if (group->weight_decay > 0) add(out, " weight decay %g", (double)group->weight_decay);
        if (group->weight_decay < 0) add(out, " no weight decay");
        if (group->frozen) add(out, " frozen");
    }
    add_settings(out, LINE_OPTIMIZER, args, config);
}

/** Of the usual period, which is that of a short training: what to ask for where a long one ends with almost
 *  no rate. */
static void spread_text(const cli_args *args, const clv_train_config *config, note *out) {
    enum { USUAL = 5, DROPS = 3 };
    const int64_t batches = (clv_dataset_info_get(config->train).count + config->batch - 1) / config->batch,
                  epochs = config->steps ? (config->steps + batches - 1) / batches : config->epochs,
                  period = config->schedule.period;
    if (args->step_size || epochs <= DROPS * period) return;
    add(out,
        "; of %s epochs the last %s have a thousandth of the rate or less: --step-size %s, or --schedule "
        "cosine",
        plan_count(epochs), plan_count(epochs - DROPS * period),
        plan_count((epochs * period + USUAL - 1) / USUAL));
}

static void schedule_text(const cli_args *args, const clv_train_config *config, note *out) {
    const clv_schedule *schedule = &config->schedule;
    const char *unit = schedule->per_step ? "step" : "epoch";
    if (schedule->kind == CLV_SCHEDULE_STEP) {
        add(out, "step: times %g every %s %s%s", schedule->gamma > 0 ? schedule->gamma : 0.1,
            plan_count(schedule->period), unit, schedule->period == 1 ? "" : "s");
        spread_text(args, config, out);
    } else if (schedule->kind == CLV_SCHEDULE_COSINE)
        add(out, "cosine: down to %g at the end", schedule->min_lr);
    else if (schedule->kind == CLV_SCHEDULE_ONE_CYCLE)
        add(out, "one-cycle: up to %g, and down again", config->lr);
    else if (schedule->kind == CLV_SCHEDULE_EXPONENTIAL)
        add(out, "exponential: times %g each %s", schedule->gamma > 0 ? schedule->gamma : 0.95, unit);
    else if (schedule->kind == CLV_SCHEDULE_POLYNOMIAL)
        add(out, "polynomial: down to %g at the end, by the power %g", schedule->min_lr,
            schedule->gamma > 0 ? schedule->gamma : 1);
    else if (schedule->kind == CLV_SCHEDULE_PLATEAU)
        add(out, "plateau: times %g after %s epochs that were no better",
            schedule->gamma > 0 ? schedule->gamma : 0.1,
            plan_count(schedule->period > 0 ? schedule->period : 11));
    else
        add(out, "constant");
    if (schedule->warmup)
        add(out, "; it rises over %s %s%s first", plan_count(schedule->warmup),
            schedule->warmup_epochs ? "epoch" : "step", schedule->warmup == 1 ? "" : "s");
}

static void memory_text(const clv_trainer *trainer, note *out) {
    for (int i = 0; i < clv_trainer_info_get(trainer).n_devices; i++) {
        clv_device *device = clv_trainer_info_get(trainer).devices[i];
        uint64_t budget = clv_device_memory(device).budget;
        add(out, "%s%s on %s", i ? ", " : "",
            cli_bytes(clv_trainer_device_info_get(trainer, device).memory.predicted_peak_bytes),
            clv_device_info_get(device)->name);
        if (budget) add(out, " of %s", cli_bytes(budget));
    }
}

void cli_tell_training(const cli_args *args, const clv_train_config *config, const clv_trainer *trainer) {
    static const char *const precisions[] = {[CLV_PRECISION_F32] = "f32",
                                             [CLV_PRECISION_MIXED] = "mixed (activations in f16)",
                                             [CLV_PRECISION_MIXED_BF16] = "mixed-bf16 (activations in bf16)"};
    note model = {0}, devices = {0}, samples = {0}, batch = {0}, optimizer = {0}, rate = {0}, schedule = {0},
         precision = {0}, seed = {0}, memory = {0};
    if (args->quiet) return;
    model_text(args, config, trainer, &model);
    devices_text(config, trainer, &devices);
    samples_text(args, config, &samples);
    batch_text(config, &batch);
    optimizer_text(args, config, &optimizer);
    add(&rate, "%g", config->lr);
    schedule_text(args, config, &schedule);
    add(&precision, "%s", precisions[config->precision]);
    add(&seed, "%" PRIu64, config->seed);
    memory_text(trainer, &memory);
    fputs("training\n", stderr);
    say(stderr, "model", &model);
    say(stderr, clv_trainer_info_get(trainer).n_devices > 1 ? "devices" : "device", &devices);
    say(stderr, "samples", &samples);
    say(stderr, "batch", &batch);
    say(stderr, "optimizer", &optimizer);
    say(stderr, "rate", &rate);
    say(stderr, "schedule", &schedule);
    say(stderr, "precision", &precision);
    say(stderr, "seed", &seed);
    say(stderr, "memory", &memory);
    if (!args->save && !args->save_best && !args->checkpoint)
        screen_say(stderr, "the weights will not be kept: --save FILE keeps them");
}

// ---- the end ----------------------------------------------------------------------------------------------

void cli_tell_result(FILE *out, const cli_source *source, const clv_train_result *result, bool interrupted) {
    const cli_args *args = source->args;
    const char *units = cli_loss_units(source);
    char time[32], when[96] = "";
    if (result->evaluated && result->tested_step != result->steps)
        snprintf(when, sizeof when, ", as tested after step %lld; the weights are those of step %lld",
                 (long long)result->tested_step, (long long)result->steps);
    if (result->evaluated && !isnan(result->test.accuracy))
        screen_say(out, "test accuracy %.4f (%lld of %lld), test loss %s%s%s", result->test.accuracy,
                   (long long)result->test.correct, (long long)result->test.targets,
                   cli_figure(result->test.loss), units, when);
    else if (result->evaluated)
        screen_say(out, "test loss %s%s%s", cli_figure(result->test.loss), units, when);
    if (result->evaluated && cli_data_is(args, "text"))
        screen_say(out, "perplexity %.4g", cli_perplexity(args, &result->test));
    if (result->evaluated) cli_metrics_say(out, &result->test);
    if (result->best_epoch)
        screen_say(out, "best epoch %lld, with %s %s%s%s", (long long)result->best_epoch,
                   args->monitor ? args->monitor : "loss", cli_figure(result->best_value),
                   args->save_best ? "; its weights are in " : "", args->save_best ? args->save_best : "");
    if (result->end == CLV_END_PATIENCE)
        screen_say(out, "ended after epoch %lld: none was better for %lld epoch%s", (long long)result->epochs,
                   (long long)args->patience, args->patience == 1 ? "" : "s");
    screen_say(out, "train loss %s%s after %lld step%s%s", cli_figure(result->train_loss), units,
               (long long)result->steps, result->steps == 1 ? "" : "s", interrupted ? ", interrupted" : "");
    if (cli_seconds() < 100)
        screen_say(out, "time %.1f s", cli_seconds());
    else
        screen_say(out, "time %s", watch_time_text(cli_seconds(), time));
    if (args->save)
        screen_say(out, "weights in %s%s", args->save, args->ema > 0 ? ": running averages" : "");
    else if (!args->save_best)
        screen_say(out, "weights not kept: --save FILE does%s%s", args->checkpoint ? "; checkpoint in " : "",
                   args->checkpoint ? args->checkpoint : "");
    if ((args->save || args->save_best) && args->checkpoint)
        screen_say(out, "checkpoint in %s", args->checkpoint);
}
