// SPDX-License-Identifier: Apache-2.0
// Checkpoints: tensors, the position, and the settings that must be the same to go on. There is no random
// state beside seed, step and position, because every random number is a function of these (base/random.h).
#include "device/device.h"
#include "io/formats.h"
#include "train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/rows.h"
#include "ops/product/lora.h"
#include "ops/update/custom_optimizer.h"
#include "ops/update/param_groups.h"
#include "train/stopping.h"

/** A setting that decides the bits of what follows, or when it ends: WHOLE, REAL or TEXT, its key, its
 *  value; LATER: a REAL that checkpoints have only where it is not 0; WORD: one of an enum, with their
 *  names; PERIOD: a WHOLE that may follow the training's length. */
#define SETTINGS(WHOLE, REAL, LATER, WORD, TEXT, PERIOD)                                                     \
    WHOLE("batch", config->batch)                                                                            \
    WHOLE("micro_batches", config->micro_batches)                                                            \
    WORD("precision", config->precision, precisions)                                                         \
    WHOLE("samples", clv_dataset_info_get(config->train).count)                                              \
    WORD("shuffle", !config->no_shuffle, switches)                                                           \
    WHOLE("seed", (int64_t)config->seed)                                                                     \
    WORD("optimizer.kind", config->optimizer.kind, optimizers)                                               \
    REAL("lr", config->lr)                                                                                   \
    WORD("schedule.kind", config->schedule.kind, schedules)                                                  \
    WORD("schedule.per_step", config->schedule.per_step, switches)                                           \
    PERIOD("schedule.period", config->schedule.period)                                                       \
    REAL("schedule.gamma", config->schedule.gamma)                                                           \
    REAL("schedule.min_lr", config->schedule.min_lr)                                                         \
    LATER("schedule.warmup", (double)config->schedule.warmup)                                                \
    LATER("schedule.warmup_epochs", config->schedule.warmup_epochs)                                          \
    LATER("schedule.div_factor", config->schedule.div_factor)                                                \
    LATER("schedule.final_factor", config->schedule.final_factor)                                            \
    LATER("schedule.turn", config->schedule.turn)                                                            \
    REAL("optimizer.momentum", config->optimizer.momentum)                                                   \
    REAL("optimizer.dampening", config->optimizer.dampening)                                                 \
    WORD("optimizer.nesterov", config->optimizer.nesterov, switches)                                         \
    REAL("optimizer.weight_decay", config->optimizer.weight_decay)                                           \
    REAL("optimizer.beta1", config->optimizer.beta1)                                                         \
    REAL("optimizer.beta2", config->optimizer.beta2)                                                         \
    REAL("optimizer.eps", config->optimizer.eps)                                                             \
    REAL("optimizer.clip_norm", config->optimizer.clip_norm)                                                 \
    LATER("optimizer.alpha", (double)config->optimizer.alpha)                                                \
    LATER("optimizer.centered", config->optimizer.centered)                                                  \
    LATER("label_smoothing", config->label_smoothing)                                                        \
    LATER("mixup", config->mixup)                                                                            \
    TEXT("dropout", clv__text_get(&texts->dropout))                                                          \
    TEXT("freeze", config->freeze)                                                                           \
    TEXT("lora", clv__text_get(&texts->lora))                                                                \
    TEXT("loss", loss_name(config))                                                                          \
    TEXT("losses", clv__text_get(&texts->losses))                                                            \
    TEXT("class_weights", clv__text_get(&texts->class_weights))                                              \
    TEXT("optimizer.groups", clv__text_get(&texts->groups))                                                  \
    TEXT("optimizer.custom", clv__text_get(&texts->custom))                                                  \
    LATER("ema_decay", config->ema_decay)                                                                    \
    LATER("patience", (double)config->patience)                                                              \
    LATER("min_delta", config->min_delta)                                                                    \
    TEXT("monitor", clv__monitor_name(config))

/** Of the usual loss nothing is kept: checkpoints from before others were there have none. */
static const char *loss_name(const clv_train_config *config) {
    return config->loss && config->loss != clv__loss_for(config->model) ? config->loss->name : NULL;
}

static const char *const precisions[] = {"f32", "mixed", "mixed-bf16", NULL};
static const char *const optimizers[] = {"sgd",  "adam", "adamw", "rmsprop", "adagrad",
                                         "lion", "lamb", "muon",  NULL};
static const char *const schedules[] = {"constant", "step",        "cosine",     "one-cycle",
                                        "plateau",  "exponential", "polynomial", NULL};
static const char *const switches[] = {"off", "on", NULL};

/** Settings that are put together as texts. */
typedef struct setting_texts {
    clv__text groups, custom, losses, class_weights, dropout, lora;
} setting_texts;

/** `kind: cross_entropy, price: mse * 0.5`; nothing where all of it is as usual, and of a single `loss`. */
static void losses_text(const clv_train_config *config, clv_runtime *runtime, clv__text *text) {
    clv__target_loss losses[CLV_MAX_PORTS];
    bool usual = true;
    if (clv__losses_find(runtime, config, losses) != CLV_OK) return; // it was checked before
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++) {
        const clv_port port = clv_model_port_get(config->model, CLV_PORT_TARGET, i);
        const clv__target_loss *one = &losses[i];
        usual = usual && one->weight == 1 && one->loss == clv__loss_usual(port);
        clv__text_add(text, "%s%s: %s", i ? ", " : "", port.name, one->loss->name ? one->loss->name : "");
        if (one->weight != 1) clv__text_add(text, " * %.17g", one->weight);
    }
    if (usual || config->loss) clv__text_reset(text);
}

/** `kind: 0.5 1 2`; nothing where all classes count alike. */
static void class_weights_text(const clv_train_config *config, clv_runtime *runtime, clv__text *text) {
    clv__target_loss losses[CLV_MAX_PORTS];
    if (clv__losses_find(runtime, config, losses) != CLV_OK) return; // it was checked before
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++) {
        const clv_port port = clv_model_port_get(config->model, CLV_PORT_TARGET, i);
        if (!losses[i].class_weights) continue;
        clv__text_add(text, "%s%s:", *clv__text_get(text) ? ", " : "", port.name);
        for (int64_t c = 0; c < port.classes; c++)
            clv__text_add(text, " %.9g", (double)losses[i].class_weights[c]);
    }
}

static setting_texts make_texts(const clv_train_config *config, clv_runtime *runtime) {
    setting_texts texts = {0};
    losses_text(config, runtime, &texts.losses);
    class_weights_text(config, runtime, &texts.class_weights);
    if (config->dropout) clv__text_add(&texts.dropout, "%.17g", *config->dropout);
    const clv_lora *lora = &config->lora;
    if (lora->layers)
        clv__text_add(&texts.lora, "%s rank %" PRId64 " scale %.17g, whole %s", lora->layers,
                      clv__lora_rank(lora->rank), clv__lora_scale(lora->rank, lora->alpha),
                      config->weights_except ? config->weights_except : "nothing");
    clv__param_groups_text(&config->optimizer, &texts.groups);
    clv__custom_optimizer_text(&config->optimizer, &texts.custom);
    return texts;
}

static void reset_texts(setting_texts *texts) {
    clv__text_reset(&texts->groups);
    clv__text_reset(&texts->custom);
    clv__text_reset(&texts->dropout);
    clv__text_reset(&texts->lora);
    clv__text_reset(&texts->losses);
    clv__text_reset(&texts->class_weights);
}

static clv_status put_settings(const clv_train_config *config, const setting_texts *texts,
                               clv_archive *archive) {
    CLV_TRY(clv_archive_set_text(archive, "model", config->model->name));
#define WHOLE(key, value) CLV_TRY(clv__archive_set_int(archive, key, value));
#define REAL(key, value) CLV_TRY(clv__archive_set_real(archive, key, value));
#define LATER(key, value)                                                                                    \
    if ((value) != 0) REAL(key, value)
#define WORD(key, value, names) WHOLE(key, value)
#define TEXT(key, value) CLV_TRY(clv_archive_set_text(archive, key, (value) ? (value) : ""));
    SETTINGS(WHOLE, REAL, LATER, WORD, TEXT, WHOLE)
#undef WHOLE
#undef REAL
#undef LATER
#undef WORD
#undef TEXT
    return CLV_OK;
}

static const char *word_of(int64_t value, const char *const *names);

void clv__settings_text(const clv_train_config *config, clv_runtime *runtime, clv__text *out) {
    setting_texts all = make_texts(config, runtime), *texts = &all;
#define WHOLE(key, value) clv__text_add(out, "%s %" PRId64 "\n", key, (int64_t)(value));
#define REAL(key, value) clv__text_add(out, "%s %.17g\n", key, (double)(value));
#define WORD(key, value, names) clv__text_add(out, "%s %s\n", key, word_of(value, names));
#define TEXT(key, value) clv__text_add(out, "%s %s\n", key, (value) ? (value) : "");
    SETTINGS(WHOLE, REAL, REAL, WORD, TEXT, WHOLE)
#undef WHOLE
#undef REAL
#undef WORD
#undef TEXT
    reset_texts(texts);
}

static clv_status same_whole(const clv_archive *archive, const char *path, const char *key, int64_t now,
                             clv__error *error) {
    int64_t then;
    CLV_TRY(clv__archive_get_int(archive, key, &then));
    if (then != now)
        CLV_FAIL(error, CLV_E_VALUE,
                 "checkpoint '%s' was written with %s %" PRId64 ", now it is %" PRId64
                 "; go on with the settings it was written with",
                 path, key, then, now);
    return CLV_OK;
}

static const char *word_of(int64_t value, const char *const *names) {
    for (int64_t i = 0; names[i]; i++)
        if (i == value) return names[i];
    return "something unknown";
}

static clv_status same_word(const clv_archive *archive, const char *path, const char *key, int64_t now,
                            const char *const *names, clv__error *error) {
    int64_t then;
    CLV_TRY(clv__archive_get_int(archive, key, &then));
    if (then != now)
        CLV_FAIL(error, CLV_E_VALUE,
                 "checkpoint '%s' was written with %s %s, now it is %s; go on with the settings it was "
                 "written with",
                 path, key, word_of(then, names), word_of(now, names));
    return CLV_OK;
}

static clv_status same_real(const clv_archive *archive, const char *path, const char *key, bool later,
                            double now, clv__error *error) {
    double then = 0;
    if (!later || clv_archive_text(archive, key)) CLV_TRY(clv__archive_get_real(archive, key, &then));
    if (then != now)
        CLV_FAIL(error, CLV_E_VALUE,
                 "checkpoint '%s' was written with %s %g, now it is %g; go on with the settings it "
                 "was written with",
                 path, key, then, now);
    return CLV_OK;
}

/** Checkpoints from before there was such a setting have none, and so mean nothing by it. */
static clv_status same_text(const clv_archive *archive, const char *path, const char *key, const char *now,
                            clv__error *error) {
    const char *then = clv_archive_text(archive, key);
    if (strcmp(then ? then : "", now ? now : "") != 0)
        CLV_FAIL(error, CLV_E_VALUE,
                 "checkpoint '%s' was written with %s '%s', now it is '%s'; go on with the settings it was "
                 "written with",
                 path, key, then ? then : "", now ? now : "");
    return CLV_OK;
}

/** A schedule over the whole training follows the length that is asked for now: a longer training goes on
 *  along a longer schedule, which a warning tells. */
static clv_status same_period(const clv_archive *archive, const clv_train_config *config, bool follows,
                              const char *key, clv_runtime *runtime) {
    clv__error *error = clv__runtime_error_of(runtime);
    const int64_t now = config->schedule.period;
    int64_t then, done;
    if (!follows) return same_whole(archive, config->resume, key, now, error);
    CLV_TRY(clv__archive_get_int(archive, key, &then));
    CLV_TRY(
        clv__archive_get_int(archive, config->schedule.per_step ? "position.step" : "position.epoch", &done));
    const char *unit = config->schedule.per_step ? "steps" : "epochs";
    if (then != now && done <= now) // where not, more are done than are asked for, and that is refused
        clv__log(runtime, CLV_LOG_WARNING,
                 "'%s' was written with the schedule %s over %" PRId64 " %s; from here on it is over %" PRId64
                 ", as long as this training",
                 config->resume, word_of((int64_t)config->schedule.kind, schedules), then, unit, now);
    return CLV_OK;
}

static clv_status compare_settings(const clv_train_config *config, bool follows, const setting_texts *texts,
                                   const clv_archive *archive, clv_runtime *runtime) {
    clv__error *error = clv__runtime_error_of(runtime);
    const char *path = config->resume, *model = clv_archive_text(archive, "model");
    if (!model || strcmp(model, config->model->name))
        CLV_FAIL(error, CLV_E_VALUE, "checkpoint '%s' is of model '%s', not of '%s' (clv_train_config.model)",
                 path, model ? model : "", config->model->name);
#define WHOLE(key, value) CLV_TRY(same_whole(archive, path, key, value, error));
#define REAL(key, value) CLV_TRY(same_real(archive, path, key, false, value, error));
#define LATER(key, value) CLV_TRY(same_real(archive, path, key, true, value, error));
#define WORD(key, value, names) CLV_TRY(same_word(archive, path, key, value, names, error));
#define TEXT(key, value) CLV_TRY(same_text(archive, path, key, value, error));
#define PERIOD(key, value) CLV_TRY(same_period(archive, config, follows, key, runtime));
    SETTINGS(WHOLE, REAL, LATER, WORD, TEXT, PERIOD)
#undef PERIOD
#undef WHOLE
#undef REAL
#undef LATER
#undef WORD
#undef TEXT
    return CLV_OK;
}

/** Which data these are, as a text; "": there is no memory to say. */
static void data_text(const clv_train_config *config, char out[17]) {
    uint64_t digest;
    *out = 0;
    if (clv__dataset_digest(config->train, &digest)) snprintf(out, 17, "%016" PRIx64, digest);
}

/** Checkpoints from before data were told apart go on with any that have as many samples. */
static clv_status same_data(const clv_train_config *config, const clv_archive *archive, clv__error *error) {
    const char *then = clv_archive_text(archive, "data");
    char now[17];
    data_text(config, now);
    if (then && *then && *now && strcmp(then, now) != 0)
        CLV_FAIL(error, CLV_E_VALUE,
                 "checkpoint '%s' was written by a training on other data of %" PRId64
                 " samples; go on with those, or begin with its parameters (clv_train_config.weights)",
                 config->resume, clv_dataset_info_get(config->train).count);
    return CLV_OK;
}

static clv_status put_best(const clv__best *best, clv_archive *archive) {
    CLV_TRY(clv__archive_set_real(archive, "best.value", best->value));
    CLV_TRY(clv__archive_set_int(archive, "best.epoch", best->epoch));
    CLV_TRY(clv__archive_set_int(archive, "best.since", best->since));
    return clv__archive_set_int(archive, "best.step", best->step);
}

/** Nothing is known where it was not looked for. */
static clv_status take_best(const clv_archive *archive, clv__best *best) {
    if (!clv_archive_text(archive, "best.epoch")) return CLV_OK;
    CLV_TRY(clv__archive_get_real(archive, "best.value", &best->value));
    CLV_TRY(clv__archive_get_int(archive, "best.epoch", &best->epoch));
    CLV_TRY(clv__archive_get_int(archive, "best.since", &best->since));
    return clv__archive_get_int(archive, "best.step", &best->step);
}

static clv_status put_plateau(const clv__seen_plateau *plateau, clv_archive *archive) {
    CLV_TRY(clv__archive_set_real(archive, "plateau.lr", plateau->state.lr));
    CLV_TRY(clv__archive_set_real(archive, "plateau.best", plateau->state.best));
    CLV_TRY(clv__archive_set_int(archive, "plateau.worse", plateau->state.worse));
    CLV_TRY(clv__archive_set_int(archive, "plateau.seen", plateau->state.seen));
    return clv__archive_set_int(archive, "plateau.step", plateau->step);
}

static clv_status take_plateau(const clv_train_config *config, const clv_archive *archive, int64_t step,
                               clv__seen_plateau *plateau, clv__error *error) {
    int64_t seen;
    if (!clv_archive_text(archive, "plateau.step")) return CLV_OK;
    CLV_TRY(clv__archive_get_real(archive, "plateau.lr", &plateau->state.lr));
    CLV_TRY(clv__archive_get_real(archive, "plateau.best", &plateau->state.best));
    CLV_TRY(clv__archive_get_int(archive, "plateau.worse", &plateau->state.worse));
    CLV_TRY(clv__archive_get_int(archive, "plateau.seen", &seen));
    CLV_TRY(clv__archive_get_int(archive, "plateau.step", &plateau->step));
    plateau->state.seen = seen != 0;
    if (!(plateau->state.lr >= 0 && isfinite(plateau->state.lr)) || plateau->state.worse < 0 ||
        plateau->step < 0 || plateau->step > step)
        CLV_FAIL(error, CLV_E_FORMAT, "checkpoint '%s' has a schedule that its position cannot have",
                 config->resume);
    return CLV_OK;
}

static clv_status fill(const clv_train_config *config, clv_session *session, const clv__position *position,
                       clv_archive *archive) {
    setting_texts texts = make_texts(config, clv_session_info_get(session).runtime);
    const clv_status put = put_settings(config, &texts, archive);
    reset_texts(&texts);
    CLV_TRY(put);
    char data[17];
    data_text(config, data);
    CLV_TRY(clv_archive_set_text(archive, "data", data));
    CLV_TRY(clv__archive_set_int(archive, "position.step", position->step));
    CLV_TRY(clv__archive_set_int(archive, "position.epoch", position->epoch));
    CLV_TRY(clv__archive_set_int(archive, "position.index", position->index));
    CLV_TRY(clv__archive_set_real(archive, "position.loss_sum", position->loss_sum));
    CLV_TRY(clv__archive_set_int(archive, "position.loss_count", position->loss_count));
    CLV_TRY(clv__archive_set_real(archive, "position.train_loss", position->train_loss));
    if (clv__wants_best(config)) CLV_TRY(put_best(&position->best, archive));
    if (config->schedule.kind == CLV_SCHEDULE_PLATEAU) CLV_TRY(put_plateau(&position->plateau, archive));
    CLV_TRY(clv__weights_tell(session, archive));
    CLV_TRY(clv__state_put(session, CLV_PARAMETERS, CLV__MODEL_SECTION, archive));
    return clv__state_put(session, CLV_OPTIMIZER, "optimizer.", archive);
}

clv_status clv__checkpoint_save(const clv_train_config *config, clv_session *session,
                                const clv__position *position) {
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(clv_session_info_get(session).runtime, &archive);
    if (status == CLV_OK) status = fill(config, session, position, archive);
    if (status == CLV_OK) status = clv__checkpoint_write(archive, config->checkpoint);
    clv_archive_destroy(archive);
    return status;
}

static clv_status take(const clv_train_config *config, bool follows, clv_archive *archive,
                       clv_session *session, clv__position *position) {
    clv_runtime *runtime = clv_session_info_get(session).runtime;
    clv__error *error = clv__runtime_error_of(runtime);
    setting_texts texts = make_texts(config, runtime);
    const clv_status same = compare_settings(config, follows, &texts, archive, runtime);
    reset_texts(&texts);
    CLV_TRY(same);
    CLV_TRY(same_data(config, archive, error));
    CLV_TRY(clv__archive_get_int(archive, "position.step", &position->step));
    CLV_TRY(clv__archive_get_int(archive, "position.epoch", &position->epoch));
    CLV_TRY(clv__archive_get_int(archive, "position.index", &position->index));
    CLV_TRY(clv__archive_get_real(archive, "position.loss_sum", &position->loss_sum));
    CLV_TRY(clv__archive_get_int(archive, "position.loss_count", &position->loss_count));
    CLV_TRY(clv__archive_get_real(archive, "position.train_loss", &position->train_loss));
    if (position->step < 0 || position->epoch < 0 || position->index < 0 || position->loss_count < 0)
        CLV_FAIL(error, CLV_E_FORMAT, "checkpoint '%s' has a negative position", config->resume);
    const clv__best *best = &position->best;
    CLV_TRY(take_best(archive, &position->best));
    CLV_TRY(take_plateau(config, archive, position->step, &position->plateau, error));
    if (best->epoch < 0 || best->epoch > position->epoch || best->since < 0 ||
        best->since > position->epoch || best->step < 0 || best->step > position->step ||
        !isfinite(best->value))
        CLV_FAIL(error, CLV_E_FORMAT, "checkpoint '%s' has a best epoch that its position cannot have",
                 config->resume);
    const clv__section model = {.category = CLV_PARAMETERS, .prefix = CLV__MODEL_SECTION, .whole = true};
    const clv__section optimizer = {.category = CLV_OPTIMIZER, .prefix = "optimizer.", .whole = true};
    CLV_TRY(clv__state_take(session, &model, archive, config->resume, error));
    return clv__state_take(session, &optimizer, archive, config->resume, error);
}

clv_status clv__checkpoint_load(const clv_train_config *config, bool period_follows, clv_session *session,
                                clv__position *position) {
    clv_archive *archive = NULL;
    clv__position found = {0};
    clv_status status =
        clv__checkpoint_read_file(clv_session_info_get(session).runtime, config->resume, &archive);
    if (status == CLV_OK) status = take(config, period_follows, archive, session, &found);
    if (status == CLV_OK) *position = found;
    clv_archive_destroy(archive);
    return status;
}
