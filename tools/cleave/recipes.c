// SPDX-License-Identifier: Apache-2.0
// Options and recipe made into the settings of a training.
#include "cli.h"

#include <string.h>

typedef struct recipe_row {
    const char *data, *model, *optimizer;
    double lr;
    const char *schedule;
    int64_t step_size, steps, batch;
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

static recipe_row recipe_of(const cli_args *args, const clv_model *model) {
    const char *data = cli_is_csv(args) || cli_is_arrays(args) ? "rows"
                       : cli_is_folder(args)                   ? "pictures"
                                                               : "";
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const recipe_row *row = &recipes[i];
        const bool fits = !*row->data || !strcmp(row->data, data);
        if (fits && (!*row->model || !strcmp(row->model, model->name))) return *row;
    }
    return (recipe_row){.optimizer = "adam", .lr = 0.001, .schedule = "constant", .batch = 64};
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

int cli_check_recipe(const cli_args *args, const clv_model *model) {
    const int known = cli_check_optimizer(args);
    if (known != EXIT_DONE) return known;
    recipe_row recipe = recipe_of(args, model);
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
    if (strcmp(schedule, "step") && (args->step_size || args->gamma > 0))
        return cli_fail(EXIT_USAGE, "--%s is of the schedule step, and this is %s; add --schedule step",
                        args->step_size ? "step-size" : "gamma", schedule);
    if (args->label_smoothing >= 1)
        return cli_fail(EXIT_USAGE, "--label-smoothing is at least 0 and below 1, not %g",
                        args->label_smoothing);
    return EXIT_DONE;
}

/** Five, or as many as few samples take. */
static int64_t epochs_of(const recipe_row *recipe, const clv_train_config *config) {
    const int64_t batches = (clv_dataset_count(config->train) + config->batch - 1) / config->batch;
    const int64_t wanted = (recipe->steps + batches - 1) / batches;
    return wanted > 5 ? wanted : 5;
}

void cli_recipe(const cli_args *args, const clv_model *model, clv_train_config *config) {
    recipe_row recipe = recipe_of(args, model);
    if (!config->batch) config->batch = recipe.batch;
    if (!config->epochs && config->train) config->epochs = epochs_of(&recipe, config);
    const char *optimizer = args->optimizer ? args->optimizer : recipe.optimizer;
    set_optimizer(args, optimizer, config);
    config->label_smoothing = args->label_smoothing;
    config->mixup = args->mixup;
    if (!strcmp(optimizer, recipe.optimizer)) config->lr = recipe.lr;
    if (args->lr > 0) config->lr = args->lr;
    const char *schedule = args->schedule ? args->schedule : recipe.schedule;
    config->schedule = (clv_schedule){.kind = CLV_SCHEDULE_CONSTANT};
    if (!strcmp(schedule, "step")) {
        config->schedule.kind = CLV_SCHEDULE_STEP;
        config->schedule.period = args->step_size ? args->step_size : recipe.step_size ? recipe.step_size : 2;
        config->schedule.gamma = args->gamma;
    } else if (!strcmp(schedule, "cosine")) {
        config->schedule.kind = CLV_SCHEDULE_COSINE;
        config->schedule.per_step = true; // over the whole training, down to zero
    }
}
