// SPDX-License-Identifier: Apache-2.0
// Options and recipe made into the settings of a training.
#include "cli.h"

#include <errno.h>
#include <stdlib.h>

#include <string.h>

typedef struct recipe_row {
    const char *data, *model, *optimizer;
    double lr;
    const char *schedule;
    int64_t step_size, steps, batch;
    double weight_decay;
} recipe_row;

static const recipe_row recipes[] = {
#define X(...) {__VA_ARGS__},
#include "recipes.def"
#undef X
};

/** For a model without a row, and for an optimizer that is not the row's. */
static const struct {
    const char *name;
    clv_optimizer_kind kind;
    float momentum;
    double lr;
} optimizers[] = {{"sgd", CLV_SGD, 0, 0.05},
                  {"momentum", CLV_SGD, 0.9f, 0.01},
                  {"adam", CLV_ADAM, 0, 0.001},
                  {"adamw", CLV_ADAMW, 0, 0.001}};

/** One that a library of --ops registered; NULL: none. */
static const clv_own_optimizer *own_of(const char *name) {
#ifdef CLEAVE_INFERENCE
    (void)name;
    return NULL;
#else
    return clv_own_optimizer_find(name);
#endif
}

static void set_optimizer(const cli_args *args, const char *name, clv_train_config *config) {
    size_t i = 0;
    config->optimizer.own = own_of(name);
    if (config->optimizer.own) {
        config->optimizer.weight_decay = (float)args->weight_decay;
        config->optimizer.clip_norm = (float)args->clip_norm;
        config->lr = 0.001;
        return;
    }
    while (strcmp(optimizers[i].name, name)) i++; // cli_check_recipe lets only these names pass
    config->optimizer.kind = optimizers[i].kind;
    config->optimizer.momentum = args->given_momentum ? (float)args->momentum : optimizers[i].momentum;
    config->optimizer.nesterov = args->nesterov;
    config->optimizer.weight_decay = (float)args->weight_decay;
    // The library takes 0 for AdamW's default; a zero that was asked for is told as a negative.
    if (args->given_weight_decay && args->weight_decay == 0) config->optimizer.weight_decay = -1;
    if (config->optimizer.kind != CLV_ADAMW && config->optimizer.weight_decay < 0)
        config->optimizer.weight_decay = 0;
    config->optimizer.clip_norm = (float)args->clip_norm;
    config->lr = optimizers[i].lr;
}

/** train: what is learnt; NULL before it is read: rows of classes and of numbers have the same optimizer. */
static recipe_row recipe_of(const cli_args *args, const clv_model *model, const clv_dataset *train) {
    const bool rows = cli_is_csv(args) || cli_is_arrays(args);
    const bool numbers = rows && train && !clv_dataset_classes(train);
    const char *data = rows ? "rows" : cli_is_folder(args) ? "pictures" : "";
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const recipe_row *row = &recipes[i];
        const bool fits =
            !*row->data || !strcmp(row->data, data) || (numbers && !strcmp(row->data, "numbers"));
        if (fits && (!*row->model || !strcmp(row->model, model->name))) return *row;
    }
    return (recipe_row){.optimizer = "adam", .lr = 0.001, .schedule = "constant", .batch = 64};
}

/** `500` are steps, `2epochs` epochs. */
static bool read_warmup(const char *text, clv_schedule *schedule) {
    char *end;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    schedule->warmup = n;
    schedule->warmup_epochs = !strcmp(end, "epochs") || !strcmp(end, "epoch");
    return *text >= '0' && *text <= '9' && !errno && n > 0 && (!*end || schedule->warmup_epochs);
}

int cli_check_optimizer(const cli_args *args) {
    clv_nearest nearest = {.word = args->optimizer ? args->optimizer : ""};
    if (!args->optimizer || own_of(args->optimizer)) return EXIT_DONE;
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        if (!strcmp(optimizers[i].name, args->optimizer)) return EXIT_DONE;
        clv_nearest_offer(&nearest, optimizers[i].name);
    }
    return cli_fail(EXIT_USAGE, "--optimizer wants one of sgd|momentum|adam|adamw%s, not '%s'%s",
                    args->own_ops ? ", or one that --ops registers" : "", args->optimizer,
                    clv_nearest_text(&nearest));
}

/** Whose options are these? */
static int check_schedule(const cli_args *args, const char *schedule) {
    const struct {
        bool given;
        const char *option, *first, *second;
    } of[] = {{args->step_size > 0, "step-size", "step", NULL},
              {args->gamma > 0, "gamma", "step", "plateau"},
              {args->min_lr > 0, "min-lr", "cosine", "plateau"},
              {args->pct_start > 0, "pct-start", "one-cycle", NULL},
              {args->div_factor > 0, "div-factor", "one-cycle", NULL},
              {args->final_div_factor > 0, "final-div-factor", "one-cycle", NULL},
              {args->plateau_patience > 0, "plateau-patience", "plateau", NULL},
              {args->plateau_threshold > 0, "plateau-threshold", "plateau", NULL}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const char *second = of[i].second;
        if (!of[i].given || !strcmp(schedule, of[i].first) || (second && !strcmp(schedule, second))) continue;
        return cli_fail(EXIT_USAGE, "--%s is of the schedule %s%s%s, and this is %s; add --schedule %s",
                        of[i].option, of[i].first, second ? " or " : "", second ? second : "", schedule,
                        of[i].first);
    }
    if (args->pct_start >= 1)
        return cli_fail(EXIT_USAGE, "--pct-start is above 0 and below 1, not %g", args->pct_start);
    if (!strcmp(schedule, "plateau") && args->gamma >= 1)
        return cli_fail(EXIT_USAGE, "--gamma of the schedule plateau is below 1, not %g", args->gamma);
    if (!args->warmup) return EXIT_DONE;
    clv_schedule unused;
    if (!strcmp(schedule, "one-cycle"))
        return cli_fail(EXIT_USAGE,
                        "--warmup is not of the schedule one-cycle, which rises by itself: --pct-start");
    if (!read_warmup(args->warmup, &unused))
        return cli_fail(EXIT_USAGE, "--warmup wants steps, 500, or epochs, 2epochs, not '%s'", args->warmup);
    return EXIT_DONE;
}

int cli_check_recipe(const cli_args *args, const clv_model *model) {
    const int known = cli_check_optimizer(args);
    if (known != EXIT_DONE) return known;
    recipe_row recipe = recipe_of(args, model, NULL);
    const char *optimizer = args->optimizer ? args->optimizer : recipe.optimizer;
    const char *schedule = args->schedule ? args->schedule : recipe.schedule;
    bool momentum = !strcmp(optimizer, "momentum"), sgd = momentum || !strcmp(optimizer, "sgd");
    if (!sgd && (args->given_momentum || args->nesterov))
        return cli_fail(
            EXIT_USAGE,
            "--%s is of the optimizers sgd and momentum, and this is %s; add --optimizer momentum",
            args->given_momentum ? "momentum" : "nesterov", optimizer);
    if (args->nesterov && (args->given_momentum ? args->momentum == 0 : !momentum))
        return cli_fail(EXIT_USAGE, "--nesterov needs a momentum; add --momentum X");
    const int scheduled = check_schedule(args, schedule);
    if (scheduled != EXIT_DONE) return scheduled;
    if (args->given_dropout && args->dropout >= 1)
        return cli_fail(EXIT_USAGE, "--dropout is at least 0 and below 1, not %g", args->dropout);
    if (args->label_smoothing >= 1)
        return cli_fail(EXIT_USAGE, "--label-smoothing is at least 0 and below 1, not %g",
                        args->label_smoothing);
    return cli_check_ema(args);
}

int cli_check_ema(const cli_args *args) {
    if (args->ema < 1) return EXIT_DONE;
    return cli_fail(EXIT_USAGE,
                    "--ema is above 0 and below 1, not %g: the part of the running average that each step "
                    "keeps, such as 0.999",
                    args->ema);
}

/** Five, or as many as few samples take. */
static int64_t epochs_of(const recipe_row *recipe, const clv_train_config *config) {
    const int64_t batches = (clv_dataset_count(config->train) + config->batch - 1) / config->batch;
    const int64_t wanted = (recipe->steps + batches - 1) / batches;
    return wanted > 5 ? wanted : 5;
}

void cli_recipe(const cli_args *args, const clv_model *model, clv_train_config *config) {
    recipe_row recipe = recipe_of(args, model, config->train);
    if (!config->batch) config->batch = recipe.batch;
    if (!config->epochs && config->train) config->epochs = epochs_of(&recipe, config);
    const char *optimizer = args->optimizer ? args->optimizer : recipe.optimizer;
    set_optimizer(args, optimizer, config);
    config->label_smoothing = args->label_smoothing;
    config->mixup = args->mixup;
    if (args->given_dropout) config->dropout = &args->dropout;
    if (!strcmp(optimizer, recipe.optimizer)) {
        config->lr = recipe.lr;
        if (recipe.weight_decay > 0 && !args->given_weight_decay)
            config->optimizer.weight_decay = (float)recipe.weight_decay;
    }
    if (args->lr > 0) config->lr = args->lr;
    const char *schedule = args->schedule ? args->schedule : recipe.schedule;
    config->schedule = (clv_schedule){.kind = CLV_SCHEDULE_CONSTANT};
    if (!strcmp(schedule, "step")) {
        config->schedule.kind = CLV_SCHEDULE_STEP;
        config->schedule.period = args->step_size ? args->step_size : recipe.step_size ? recipe.step_size : 2;
        config->schedule.gamma = args->gamma;
    } else if (!strcmp(schedule, "cosine")) {
        config->schedule.kind = CLV_SCHEDULE_COSINE;
        config->schedule.per_step = true; // over the whole training
        config->schedule.min_lr = args->min_lr;
    } else if (!strcmp(schedule, "one-cycle")) {
        config->schedule = (clv_schedule){.kind = CLV_SCHEDULE_ONE_CYCLE,
                                          .per_step = true,
                                          .turn = args->pct_start,
                                          .div_factor = args->div_factor,
                                          .final_factor = args->final_div_factor};
    } else if (!strcmp(schedule, "plateau")) {
        config->schedule = (clv_schedule){.kind = CLV_SCHEDULE_PLATEAU,
                                          .period = args->plateau_patience ? args->plateau_patience + 1 : 0,
                                          .gamma = args->gamma,
                                          .min_lr = args->min_lr,
                                          .turn = args->plateau_threshold};
    }
    if (args->warmup) read_warmup(args->warmup, &config->schedule); // read before
}
