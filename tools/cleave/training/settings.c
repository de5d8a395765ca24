// SPDX-License-Identifier: Apache-2.0
// What a training was asked to do, as the log's first line keeps it: for pages that put runs side by side.
#include "options/options.h"
#include "plans/plan_tree.h"
#include "training/training.h"
#include "watching/watch.h"

#include <stdlib.h>

/** A float means the decimal number that was written. */
static double number_of(float value) {
    char text[32];
    snprintf(text, sizeof text, "%.7g", (double)value);
    return strtod(text, NULL);
}

static json_t *choice_json(const option_row *option, unsigned place) {
    const char *at = option->choices;
    for (; place; place--) at += strcspn(at, "|") + 1;
    return json_stringn(at, strcspn(at, "|"));
}

/** What a setting is in the training, or as it was given; NULL: it was not asked for. A choice and a seed are
 *  always something. */
static json_t *value_of(const option_row *option, const cli_args *args, const clv_train_config *config) {
    static const setting_type given[] = {
        [FLAG] = SETS_BOOL,   [TEXT] = SETS_TEXT,      [CHOICE] = SETS_TEXT,
        [COUNT] = SETS_WHOLE, [SEED] = SETS_WHOLE,     [RATE] = SETS_REAL,
        [NUMBER] = SETS_REAL, [BUDGET] = SETS_NOTHING, [TEXTS] = SETS_NOTHING};
    const bool sets = option->sets != SETS_NOTHING;
    const void *at = sets ? (const char *)config + option->config : (const char *)args + option->field;
    const char *text = NULL;
    double number = 0;
    int64_t whole = 0;
    switch (sets ? option->sets : given[option->kind]) {
    case SETS_BOOL:
        if (!*(const bool *)at) return NULL;
        return option->kind == CHOICE ? choice_json(option, 1) : json_true();
    case SETS_CHOICE: return choice_json(option, *(const unsigned *)at);
    case SETS_WHOLE:
        whole = *(const int64_t *)at;
        return whole || option->kind == SEED ? json_integer((json_int_t)whole) : NULL;
    case SETS_POINTER: return *(const double *const *)at ? cli_real(**(const double *const *)at) : NULL;
    case SETS_FLOAT: number = number_of(*(const float *)at); break;
    case SETS_REAL: number = *(const double *)at; break;
    case SETS_NOTHING: break;
    case SETS_TEXT: text = *(const char *const *)at; return text ? json_string(text) : NULL;
    }
    return number != 0 ? cli_real(number) : NULL;
}

bool watch_setting_text(const option_row *option, const cli_args *args, const clv_train_config *config,
                        char *out, size_t bytes) {
    json_t *value = value_of(option, args, config);
    const bool is = value != NULL;
    const char *text = json_string_value(value);
    if (json_is_real(value))
        snprintf(out, bytes, "%g", json_real_value(value));
    else
        snprintf(out, bytes, "%s",
                 json_is_integer(value) ? plan_count(json_integer_value(value))
                 : text                 ? text
                                        : "");
    json_decref(value);
    return is;
}

/** A text that was given. */
static void set_text(json_t *object, const char *key, const char *text) {
    if (text) json_object_set_new(object, key, json_string(text));
}

json_t *watch_settings(const cli_args *args, const clv_train_config *config) {
    json_t *object = json_object();
    const clv_optimizer_config *optimizer = &config->optimizer;
    json_object_set_new(object, "model", json_string(config->model->name));
    set_text(object, "data",
             args->images    ? args->images
             : args->n_words ? args->words[args->n_words - 1]
                             : NULL);
    json_object_set_new(object, "samples",
                        json_integer((json_int_t)clv_dataset_info_get(config->train).count));
    if (config->test)
        json_object_set_new(object, "test_samples",
                            json_integer((json_int_t)clv_dataset_info_get(config->test).count));
    json_object_set_new(object, "classes", json_integer((json_int_t)config->model->classes));
    json_object_set_new(object, "optimizer", json_string(cli_optimizer_name(optimizer)));
    json_object_set_new(object, "shuffle", json_boolean(!config->no_shuffle));
    if (config->schedule.warmup)
        json_object_set_new(object, config->schedule.warmup_epochs ? "warmup_epochs" : "warmup",
                            json_integer((json_int_t)config->schedule.warmup));
    for (int i = 0; i < OPTIONS; i++) {
        json_t *value = option_rows[i].log ? value_of(&option_rows[i], args, config) : NULL;
        if (value) json_object_set_new(object, option_rows[i].log, value);
    }
    if (config->ranks)
        json_object_set_new(object, "ranks", json_integer(clv_ranks_info_get(config->ranks).size));
    for (int i = 0; i < args->param_groups.n; i++) {
        char key[40];
        snprintf(key, sizeof key, i ? "param_group %d" : "param_group", i + 1);
        set_text(object, key, args->param_groups.item[i]);
    }
    for (int i = 0; i < args->budgets.n; i++) {
        char key[80];
        snprintf(key, sizeof key, "budget %s", args->budgets.item[i].device);
        set_text(object, key, cli_bytes(args->budgets.item[i].bytes));
    }
    return object;
}
