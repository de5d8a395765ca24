// SPDX-License-Identifier: Apache-2.0
// Options and recipe made into the settings of a training.
#include "training/training.h"
#include "options/options.h"

#include <assert.h>
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
#include "training/recipes.def"
#undef X
};

/** For a model without a row, and for an optimizer that is not the row's. */
static const struct {
    const char *name;
    clv_optimizer_kind kind;
    float momentum;
    double lr;
} optimizers[] = {
    {"sgd", CLV_SGD, 0, 0.05},      {"momentum", CLV_SGD, 0.9f, 0.01},  {"adam", CLV_ADAM, 0, 0.001},
    {"adamw", CLV_ADAMW, 0, 0.001}, {"rmsprop", CLV_RMSPROP, 0, 0.001}, {"adagrad", CLV_ADAGRAD, 0, 0.01},
    {"lion", CLV_LION, 0, 0.0001},  {"lamb", CLV_LAMB, 0, 0.001},       {"muon", CLV_MUON, 0, 0.01}};

const char *cli_optimizer_name(const clv_optimizer_config *config) {
    size_t i = config->kind == CLV_SGD ? 0 : 2; // which has two names
    if (config->custom) return config->custom->name;
    while (optimizers[i].kind != config->kind) i++;
    return optimizers[i].name;
}

/** One that a library of --ops registered; NULL: none. */
static const clv_custom_optimizer *custom_of(const char *name) {
#ifdef CLEAVE_INFERENCE
    (void)name;
    return NULL;
#else
    return clv_custom_optimizer_find(name);
#endif
}

/** Copy what an option says to the field of a training that it sets. */
static void set_field(const option_row *option, const cli_args *args, clv_train_config *config) {
    const void *given = (const char *)args + option->field;
    void *field = (char *)config + option->config;
    const int choice =
        option->kind == CHOICE ? option_choice(option->choices, *(const char *const *)given) : 1;
    assert((option->kind == TEXT) == (option->sets == SETS_TEXT));
    assert((option->kind == COUNT || option->kind == SEED) == (option->sets == SETS_WHOLE));
    assert((option->kind == RATE || option->kind == NUMBER) ==
           (option->sets == SETS_FLOAT || option->sets == SETS_REAL || option->sets == SETS_POINTER));
    switch (option->sets) {
    case SETS_NOTHING: break;
    case SETS_BOOL: *(bool *)field = choice > 0; break;
    case SETS_WHOLE: *(int64_t *)field = *(const int64_t *)given; break;
    case SETS_FLOAT: *(float *)field = (float)*(const double *)given; break;
    case SETS_REAL: *(double *)field = *(const double *)given; break;
    case SETS_POINTER: *(const double **)field = given; break;
    case SETS_TEXT: *(const char **)field = *(const char *const *)given; break;
    case SETS_CHOICE: *(unsigned *)field = (unsigned)choice; break; // what enums are
    }
}

/** The optimizer, and what is usual for it unless an option says otherwise. */
static void set_optimizer(const cli_args *args, const recipe_row *recipe, clv_train_config *config) {
    clv_optimizer_config *optimizer = &config->optimizer;
    const char *name = args->optimizer ? args->optimizer : recipe->optimizer;
    double lr = 0.001;
    size_t i = 0;
    optimizer->custom = custom_of(name);
    if (!optimizer->custom) {
        while (strcmp(optimizers[i].name, name)) i++; // cli_check_recipe lets only these names pass
        const bool usual = !strcmp(name, recipe->optimizer);
        lr = usual ? recipe->lr : optimizers[i].lr;
        optimizer->kind = optimizers[i].kind;
        if (!args->given.momentum) optimizer->momentum = optimizers[i].momentum;
        if (usual && !args->given.weight_decay) optimizer->weight_decay = (float)recipe->weight_decay;
        // The library takes 0 for AdamW's and Muon's default; a zero that was asked for is a negative.
        const bool decays = optimizer->kind == CLV_ADAMW || optimizer->kind == CLV_MUON;
        if (decays && args->given.weight_decay && args->weight_decay == 0) optimizer->weight_decay = -1;
    }
    if (!args->given.lr) config->lr = lr;
}

/** train: what is learnt; NULL before it is read: rows of classes and of numbers have the same optimizer. */
static recipe_row recipe_of(const cli_args *args, const clv_model *model, const clv_dataset *train) {
    const bool rows = cli_data_is(args, "csv") || cli_data_is(args, "arrays");
    const bool numbers = rows && train && !clv_dataset_info_get(train).classes;
    const char *data = rows ? "rows" : cli_data_is(args, "images") ? "pictures" : "";
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
    clv__nearest nearest = {.word = args->optimizer ? args->optimizer : ""};
    if (!args->optimizer || custom_of(args->optimizer)) return EXIT_DONE;
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        if (!strcmp(optimizers[i].name, args->optimizer)) return EXIT_DONE;
        clv__nearest_offer(&nearest, optimizers[i].name);
    }
    return cli_fail(EXIT_USAGE, "--optimizer wants one of %s%s, not '%s'%s",
                    option_find("optimizer", strlen("optimizer"), args->command)->choices,
                    args->custom_ops ? ", or one that --ops registers" : "", args->optimizer,
                    clv__nearest_text(&nearest));
}

/** Whose options are these? */
static int check_schedule(const cli_args *args, const char *schedule) {
    for (int i = 0; i < OPTIONS; i++) {
        const option_row *option = &option_rows[i];
        const char *const *of = option->schedules;
        bool is = !of[0] || !option_is_given(option, args);
        for (int k = 0; k < 3 && of[k]; k++) is = is || !strcmp(schedule, of[k]);
        if (is) continue;
        return cli_fail(EXIT_USAGE, "--%s is for the schedule %s%s%s%s%s, and this is %s; add --schedule %s",
                        option->name, of[0],
                        of[2]   ? ", "
                        : of[1] ? " or "
                                : "",
                        of[1] ? of[1] : "", of[2] ? " or " : "", of[2] ? of[2] : "", schedule, of[0]);
    }
    if (!strcmp(schedule, "plateau") && args->gamma >= 1)
        return cli_fail(EXIT_USAGE, "--gamma of the schedule plateau is below 1, not %g", args->gamma);
    if (!args->warmup) return EXIT_DONE;
    clv_schedule unused;
    if (!strcmp(schedule, "one-cycle"))
        return cli_fail(
            EXIT_USAGE,
            "--warmup is not for the schedule one-cycle, which rises by itself: --pct-start sets how long");
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
    const bool rmsprop = !strcmp(optimizer, "rmsprop"), muon = !strcmp(optimizer, "muon");
    if (!sgd && ((args->given.momentum && !rmsprop && !muon) || args->nesterov))
        return cli_fail(EXIT_USAGE,
                        "--%s is for the optimizers sgd%s, and this is %s; add --optimizer momentum",
                        args->given.momentum ? "momentum" : "nesterov",
                        args->given.momentum ? ", momentum, rmsprop and muon" : " and momentum", optimizer);
    if (!rmsprop && (args->given.alpha || args->centered))
        return cli_fail(EXIT_USAGE, "--%s is for the optimizer rmsprop, and this is %s",
                        args->given.alpha ? "alpha" : "centered", optimizer);
    if (args->nesterov && (args->given.momentum ? args->momentum == 0 : !momentum))
        return cli_fail(EXIT_USAGE, "--nesterov needs a momentum; add --momentum X");
    return check_schedule(args, schedule);
}

/** Five, or as many as few samples take. */
static int64_t epochs_of(const recipe_row *recipe, const clv_train_config *config) {
    const int64_t batches = (clv_dataset_info_get(config->train).count + config->batch - 1) / config->batch;
    const int64_t wanted = (recipe->steps + batches - 1) / batches;
    return wanted > 5 ? wanted : 5;
}

/** The schedule, and what is usual for it. */
static void set_schedule(const cli_args *args, const recipe_row *recipe, clv_schedule *schedule) {
    const char *name = args->schedule ? args->schedule : recipe->schedule;
    const option_row *option = option_find("schedule", strlen("schedule"), CLI_TRAIN);
    schedule->kind = (clv_schedule_kind)option_choice(option->choices, name);
    schedule->per_step = schedule->kind == CLV_SCHEDULE_COSINE || schedule->kind == CLV_SCHEDULE_ONE_CYCLE ||
                         schedule->kind == CLV_SCHEDULE_POLYNOMIAL;
    if (schedule->kind == CLV_SCHEDULE_POLYNOMIAL) schedule->gamma = args->power;
    if (schedule->kind == CLV_SCHEDULE_STEP && !args->step_size)
        schedule->period = recipe->step_size ? recipe->step_size : 2;
    if (args->plateau_patience) schedule->period = args->plateau_patience + 1;
    if (args->warmup) read_warmup(args->warmup, schedule); // read before
}

void cli_recipe(const cli_args *args, const clv_model *model, clv_train_config *config) {
    for (int i = 0; i < OPTIONS; i++)
        if (option_rows[i].sets && option_is_given(&option_rows[i], args))
            set_field(&option_rows[i], args, config);
    const recipe_row recipe = recipe_of(args, model, config->train);
    if (!config->batch) config->batch = recipe.batch;
    if (!config->epochs && config->train) config->epochs = epochs_of(&recipe, config);
    set_optimizer(args, &recipe, config);
    set_schedule(args, &recipe, &config->schedule);
}
