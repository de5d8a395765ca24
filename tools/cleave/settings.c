// SPDX-License-Identifier: Apache-2.0
// What a training was asked to do, as the log's first line keeps it: for pages that put runs side by side.
#include "watch.h"

#include <stdlib.h>

/** A text that was given. */
static void set_text(json_t *object, const char *key, const char *text) {
    if (text) json_object_set_new(object, key, json_string(text));
}

static void set_real(json_t *object, const char *key, double value) {
    if (value != 0) json_object_set_new(object, key, cli_real(value));
}

static void set_whole(json_t *object, const char *key, int64_t value) {
    if (value) json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void set_optimizer(json_t *object, const clv_train_config *config) {
    const clv_optimizer_config *o = &config->optimizer;
    static const char *const kinds[] = {[CLV_SGD] = "sgd", [CLV_ADAM] = "adam", [CLV_ADAMW] = "adamw"};
    static const char *const schedules[] = {[CLV_SCHEDULE_CONSTANT] = "constant",
                                            [CLV_SCHEDULE_STEP] = "step",
                                            [CLV_SCHEDULE_COSINE] = "cosine",
                                            [CLV_SCHEDULE_ONE_CYCLE] = "one-cycle",
                                            [CLV_SCHEDULE_PLATEAU] = "plateau"};
    json_object_set_new(object, "optimizer", json_string(o->own ? o->own->name : kinds[o->kind]));
    json_object_set_new(object, "lr", cli_real(config->lr));
    // a float means the decimal number that was written
    const struct {
        const char *key;
        float value;
    } floats[] = {{"momentum", o->momentum},  {"dampening", o->dampening}, {"weight_decay", o->weight_decay},
                  {"beta1", o->beta1},        {"beta2", o->beta2},         {"eps", o->eps},
                  {"clip_norm", o->clip_norm}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.7g", (double)floats[i].value);
        set_real(object, floats[i].key, strtod(text, NULL));
    }
    if (o->nesterov) json_object_set_new(object, "nesterov", json_true());
    json_object_set_new(object, "schedule", json_string(schedules[config->schedule.kind]));
    if (config->schedule.warmup)
        set_whole(object, config->schedule.warmup_epochs ? "warmup_epochs" : "warmup",
                  config->schedule.warmup);
    if (config->schedule.kind == CLV_SCHEDULE_CONSTANT) return;
    set_whole(object, "schedule_period", config->schedule.period);
    if (config->schedule.kind == CLV_SCHEDULE_STEP) set_real(object, "gamma", config->schedule.gamma);
}

json_t *watch_settings(const cli_args *args, const clv_train_config *config) {
    json_t *object = json_object();
    static const char *const precisions[] = {[CLV_PRECISION_F32] = "f32",
                                             [CLV_PRECISION_MIXED] = "mixed",
                                             [CLV_PRECISION_MIXED_BF16] = "mixed-bf16"};
    json_object_set_new(object, "model", json_string(config->model->name));
    set_text(object, "data",
             args->images    ? args->images
             : args->n_words ? args->words[args->n_words - 1]
                             : NULL);
    json_object_set_new(object, "samples", json_integer((json_int_t)clv_dataset_count(config->train)));
    if (config->test)
        json_object_set_new(object, "test_samples",
                            json_integer((json_int_t)clv_dataset_count(config->test)));
    json_object_set_new(object, "classes", json_integer((json_int_t)config->model->classes));
    json_object_set_new(object, "batch", json_integer((json_int_t)config->batch));
    set_whole(object, "micro_batches", config->micro_batches);
    json_object_set_new(object, "epochs", json_integer((json_int_t)config->epochs));
    set_whole(object, "most_steps", config->steps);
    set_optimizer(object, config);
    set_real(object, "ema_decay", config->ema_decay);
    set_whole(object, "patience", config->patience);
    set_real(object, "min_delta", config->min_delta);
    set_text(object, "monitor", config->monitor);
    json_object_set_new(object, "precision", json_string(precisions[config->precision]));
    json_object_set_new(object, "seed", json_integer((json_int_t)config->seed));
    json_object_set_new(object, "shuffle", json_boolean(!config->no_shuffle));
    set_real(object, "label_smoothing", config->label_smoothing);
    set_real(object, "mixup", config->mixup);
    set_text(object, "class_weights", args->class_weights);
    set_text(object, "ignore_index", args->ignore_index);
    set_text(object, "labels", args->labels);
    set_text(object, "inputs", args->inputs);
    set_text(object, "target", args->target);
    set_text(object, "weights", config->weights);
    set_text(object, "except", args->except);
    set_text(object, "freeze", args->freeze);
    set_text(object, "weight_decay_skip", args->weight_decay_skip);
    for (int i = 0; i < args->param_groups.n; i++) {
        char key[40];
        snprintf(key, sizeof key, i ? "param_group %d" : "param_group", i + 1);
        set_text(object, key, args->param_groups.item[i]);
    }
    set_text(object, "resume", config->resume);
    set_text(object, "place", args->place);
    set_text(object, "replicas", args->replicas);
    set_text(object, "shares", args->shares);
    set_text(object, "recompute", config->recompute);
    set_text(object, "variants", config->variants);
    if (config->no_fuse) json_object_set_new(object, "fuse", json_string("off"));
    for (int i = 0; i < args->budgets.n; i++) {
        char key[80];
        snprintf(key, sizeof key, "budget %s", args->budgets.item[i].device);
        set_text(object, key, cli_bytes(args->budgets.item[i].bytes));
    }
    return object;
}
