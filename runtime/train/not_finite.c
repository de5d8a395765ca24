// SPDX-License-Identifier: Apache-2.0
// A loss that is infinite or not a number. The training stops after a few such steps in a row and says whose
// values were the first that are not finite. It finds them by training again: the steps since the last
// checkpoint, or since the beginning, give the same bits again, and of the step in question every value is
// fetched and looked at, in the order of execution.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "data/rows.h"
#include "exec/session.h"
#include "graph/graph.h"
#include "train/loop.h"

enum {
    MOST_IN_A_ROW = 3,   // steps; one may be bad luck with its samples
    MOST_SKIPPED = 100,  // in a row, by the loss scaler
    MOST_REPLAYED = 2000 // steps
};

// ---- looking ----------------------------------------------------------------------------------------------

/** The first element that is not finite, of `n`; -1: none. Negative infinities are what masks are made of:
 *  they are passed over. */
static int64_t look(clv_dtype dtype, const void *elements, int64_t n, double *value) {
    const uint16_t exponent = dtype == CLV_DTYPE_F16 ? 0x7c00 : 0x7f80;
    for (int64_t i = 0; i < n; i++) {
        if (dtype == CLV_DTYPE_F32) {
            float x = ((const float *)elements)[i];
            if (isfinite(x) || x == -INFINITY) continue;
            *value = (double)x;
            return i;
        }
        uint16_t bits = ((const uint16_t *)elements)[i];
        if ((bits & exponent) != exponent || bits == (0x8000 | exponent)) continue;
        *value = bits & ~(0x8000 | exponent) ? (double)NAN : (double)INFINITY;
        return i;
    }
    return -1;
}

static bool holds_floats(clv_dtype dtype) {
    return dtype == CLV_DTYPE_F32 || dtype == CLV_DTYPE_F16 || dtype == CLV_DTYPE_BF16;
}

/** The session's first parameter that is not finite; -1: none. */
static clv_status find_parameter(clv_session *session, int *found, int64_t *at, double *value) {
    *found = -1;
    for (int i = 0; i < clv_session_info_get(session).n_tensors && *found < 0; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        if (tensor.category != CLV_PARAMETERS || tensor.dtype != CLV_DTYPE_F32 || !tensor.bytes) continue;
        void *elements = clv__alloc(1, tensor.bytes);
        if (!elements)
            CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no memory to look at '%s'",
                     tensor.name);
        clv_status status = clv_session_read(session, i, elements, tensor.bytes);
        if (status == CLV_OK) *at = look(tensor.dtype, elements, clv_shape_numel(&tensor.shape), value);
        free(elements);
        CLV_TRY(status);
        if (*at >= 0) *found = i;
    }
    return CLV_OK;
}

// ---- the step again, with every value of it ---------------------------------------------------------------

typedef struct looking {
    clv_trainer *replay; // stands before the step
    int64_t number;      // of the step, from 1
    clv__step step;
    clv_loader *loader;
    char *text; // what was found; "" so far
    size_t bytes;
} looking;

static const char *phase_name(clv__phase phase) {
    return phase == CLV__FORWARD ? "forward" : phase == CLV__BACKWARD ? "backward" : "update";
}

static clv_status look_at_value(looking *l, const clv_tensor *tensor, int64_t ticket) {
    if (!tensor || tensor->kind != CLV__VALUE || !holds_floats(tensor->desc.dtype)) return CLV_OK;
    size_t bytes = clv_tensor_bytes(tensor);
    void *elements = clv__alloc(1, bytes);
    if (!elements) return CLV_E_HOST_MEMORY;
    clv_status status = clv_run_fetch(l->step.run, ticket, tensor, elements, bytes);
    double value = 0;
    int64_t at = status == CLV_OK ? look(tensor->desc.dtype, elements, clv_tensor_numel(tensor), &value) : -1;
    free(elements);
    clv__node_title title;
    if (at >= 0)
        clv__format(l->text, l->bytes,
                    "the first values that are not finite are those of %.140s (%s) in step %" PRId64
                    ": element %" PRId64 " of its result is %g",
                    clv__title_of(tensor->node, &title), phase_name(tensor->node->phase), l->number, at,
                    value);
    return status;
}

/** Its values in the order of execution; then what it made of the parameters. */
static clv_status look_at_step(looking *l, int64_t ticket) {
    static const clv__phase order[] = {CLV__FORWARD, CLV__BACKWARD, CLV__UPDATE};
    const clv_graph *graph = l->step.graph;
    for (int p = 0; p < 3; p++) {
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const clv__node *node = graph->nodes[i];
            for (int o = 0; node->phase == order[p] && o < node->io.n_out; o++) {
                CLV_TRY(look_at_value(l, node->out[o], ticket));
                if (*l->text) return CLV_OK;
            }
        }
    }
    int found;
    int64_t at = 0;
    double value = 0;
    CLV_TRY(find_parameter(l->replay->session, &found, &at, &value));
    if (found >= 0)
        clv__format(l->text, l->bytes,
                    "the first values that are not finite are those of parameter '%.100s' after step %" PRId64
                    "'s update: element %" PRId64 " is %g",
                    clv_session_get(l->replay->session, found).name, l->number, at, value);
    return CLV_OK;
}

/** One of the arrays that a step is fed: samples, or targets. */
static void look_at_fed(looking *l, const clv_tensor *fed, const void *values, bool sample) {
    const bool several = l->replay->config->model->build_all != NULL;
    double value = 0;
    char row[96] = "";
    if (!holds_floats(clv_tensor_dtype(fed))) return;
    const int64_t at = look(CLV_DTYPE_F32, values, clv_tensor_numel(fed), &value);
    if (at < 0) return;
    const int64_t first = clv__dataset_not_finite(l->replay->config->train);
    if (first >= 0)
        snprintf(row, sizeof row, "; row %" PRId64 " of the data is the first with such a value", first);
    clv__format(l->text, l->bytes,
                "the %s of step %" PRId64 " themselves are not finite: element %" PRId64
                " of the batch%s%.100s%s is %g%s",
                sample ? "samples" : "targets", l->number, at,
                !several ? ""
                : sample ? "'s input '"
                         : "'s target '",
                several ? clv_tensor_name(fed) : "", several ? "'" : "", value, row);
}

static void look_at_batch(looking *l, const clv_batch *batch) {
    const clv__match *match = &l->replay->match;
    const clv__step *step = &l->step;
    for (int i = 0; i < step->n_inputs && !*l->text; i++)
        look_at_fed(l, step->fed[i], batch->each_input[match->input[i]], true);
    for (int i = 0; i < step->n_targets && !*l->text; i++)
        look_at_fed(l, step->fed[step->n_inputs + i], batch->each_target[match->target[i]], false);
}

static clv_status do_step(looking *l, const clv_batch *batch) {
    clv__step *step = &l->step;
    int64_t epoch = (l->number - 1) / l->replay->batches, ticket;
    float hyper[CLV_HYPER_VALUES];
    clv_optimizer_hyper_values(step->graph, l->number, clv__trainer_lr(l->replay, epoch, l->number - 1),
                               hyper);
    look_at_batch(l, batch);
    if (*l->text) return CLV_OK;
    CLV_TRY(clv__step_feed(step, &l->replay->match, batch));
    CLV_TRY(clv_run_feed(step->run, step->hyper, hyper, sizeof hyper));
    CLV_TRY(clv_run_step(step->run, &ticket));
    CLV_TRY(clv_run_finish(step->run));
    return look_at_step(l, ticket);
}

static clv_status prepare_step(looking *l) {
    clv_trainer *replay = l->replay;
    const clv_train_config *config = replay->config;
    int64_t index = (l->number - 1) % replay->batches,
            left = clv_dataset_info_get(config->train).count - index * config->batch;
    const clv_loader_config loader = clv__labels_loader(config, (l->number - 1) / replay->batches, index);
    CLV_TRY(clv_loader_create(replay->runtime, config->train, &loader, &l->loader));
    CLV_TRY(clv__step_graph(replay->runtime, config, replay->shares,
                            left < config->batch ? left : config->batch, &l->step));
    for (size_t i = 0; i < l->step.graph->n_tensors; i++)
        if (l->step.graph->tensors[i]->kind == CLV__VALUE) clv_output(l->step.graph->tensors[i], NULL);
    CLV_TRY(clv_graph_status(l->step.graph));
    clv_plan_config plan = clv__step_plan_config(config, clv__step_graph);
    plan.no_fuse = true; // each op's values are looked at
    plan.recompute = NULL;
    CLV_TRY(clv_plan_create(l->step.graph, &plan, &l->step.plan));
    clv__session_empty(replay->session); // of the arenas of other steps
    return clv_run_create(replay->session, l->step.plan, &l->step.run);
}

/** One step, looked at. */
static clv_status look_again(clv_trainer *replay, int64_t number, char *text, size_t bytes) {
    looking l = {.replay = replay, .number = number, .text = text, .bytes = bytes};
    clv_status status = prepare_step(&l);
    clv_batch batch;
    if (status == CLV_OK) status = clv_loader_next(l.loader, &batch);
    if (status == CLV_OK) {
        status = do_step(&l, &batch);
        clv_loader_release(l.loader, &batch);
    }
    clv_loader_destroy(l.loader);
    clv__step_destroy(&l.step);
    return status;
}

// ---- the steps before it ----------------------------------------------------------------------------------

/** The training as it was after `target` steps; what it holds then depends on nothing else. */
static clv_status go_back(const clv__training *loop, int64_t target, int64_t bad, clv_trainer **out) {
    clv_trainer *trainer = loop->trainer;
    clv_train_config config = *trainer->config;
    config.test = NULL;
    config.checkpoint = config.gradients = config.best = NULL;
    config.on_step = NULL;
    config.on_epoch = NULL;
    config.on_nan = CLV_NAN_CONTINUE;
    config.placement.shares = trainer->shares;
    config.placement.measure_shares = false;
    config.steps = bad;
    if (loop->saved_path) {
        config.weights = NULL;
        config.resume = loop->saved_path;
    }
    clv__trainer_rest(trainer); // there may be no room for both
    clv__session_empty(trainer->session);
    CLV_TRY(clv__trainer_replay(trainer, &config, out));
    (*out)->steps = target;
    (*out)->replay_lr = trainer->position.plateau.state.lr;
    CLV_TRY(clv_trainer_run(*out));
    clv__trainer_rest(*out);
    return CLV_OK;
}

/** Had steps from there on another rate than now? Replays test nothing, so they cannot follow the schedule
 *  plateau. */
static bool rate_dropped(const clv_trainer *trainer, int64_t from, int64_t bad) {
    const double now = trainer->position.plateau.state.lr;
    return now > 0 && now != trainer->config->lr && from < (bad - 1) / trainer->batches * trainer->batches;
}

/** Whose values were not finite first, in the step whose loss told it or in the one before; "" where that
 *  cannot be found. */
static void find_first(const clv__training *loop, int64_t bad, char *text, size_t bytes) {
    const clv_trainer *trainer = loop->trainer;
    int64_t from = loop->saved_path ? loop->saved_step : 0, target = bad - 2 > from ? bad - 2 : from;
    *text = 0;
    if (trainer->n_lost || trainer->config->ranks || target >= bad || target - from > MOST_REPLAYED ||
        rate_dropped(trainer, from, bad))
        return;
    if (target > from)
        clv__log(trainer->runtime, CLV_LOG_WARNING,
                 "the loss of step %" PRId64 " is not finite: %" PRId64
                 " steps are done again to find the first such values",
                 bad, target - from);
    clv_trainer *replay = NULL;
    clv_status status = go_back(loop, target, bad, &replay);
    for (int64_t number = target + 1; status == CLV_OK && number <= bad && !*text; number++)
        status = look_again(replay, number, text, bytes);
    clv_trainer_destroy(replay);
}

// ---- stopping ---------------------------------------------------------------------------------------------

static clv_status stop(clv__training *loop, int64_t bad, const char *what) {
    const clv_trainer *trainer = loop->trainer;
    char first[512], saved[512] = "";
    find_first(loop, bad, first, sizeof first);
    if (loop->saved_path)
        snprintf(saved, sizeof saved, "; checkpoint '%.300s' of step %" PRId64 " is as it was",
                 loop->saved_path, loop->saved_step);
    CLV_FAIL(
        loop->error, CLV_E_NOT_FINITE,
        "%s in step %" PRId64 " of %" PRId64
        "%s%s%s; a smaller learning rate (clv_train_config.lr), clv_optimizer_config.clip_norm or other data "
        "may help, and clv_train_config.on_nan = CLV_NAN_CONTINUE trains on",
        what, bad, trainer->steps, *first ? ": " : "", first, saved);
}

clv_status clv__training_see_loss(clv__training *loop, double loss) {
    clv_trainer *trainer = loop->trainer;
    const bool scaled = trainer->config->precision == CLV_PRECISION_MIXED;
    if (isfinite(loss)) {
        loop->not_finite = 0;
        return CLV_OK;
    }
    if (loop->not_finite++ == 0) loop->not_finite_since = trainer->position.step;
    if (trainer->config->on_nan == CLV_NAN_CONTINUE) return CLV_OK;
    const bool last = trainer->position.step == trainer->steps;
    if (loop->not_finite < MOST_IN_A_ROW && !(last && !scaled)) return CLV_OK;
    if (scaled && loop->not_finite < MOST_SKIPPED) { // the step was skipped: that is no more than a step lost
        int found;
        int64_t at = 0;
        double value;
        CLV_TRY(find_parameter(trainer->session, &found, &at, &value));
        if (found < 0) return CLV_OK;
    }
    return stop(loop, loop->not_finite_since,
                isnan(loss) ? "the loss is not a number" : "the loss is infinite");
}

clv_status clv__training_check_loss(clv__training *loop) {
    const clv_trainer *trainer = loop->trainer;
    const clv__position *position = &trainer->position;
    if (trainer->config->on_nan == CLV_NAN_CONTINUE || isfinite(position->train_loss) || !position->step)
        return CLV_OK;
    CLV_FAIL(loop->error, CLV_E_NOT_FINITE,
             "no step of the last epoch has a loss that is a number: mixed precision skipped them, since "
             "values go past what f16 holds, and nothing was learnt; precision mixed-bf16, smaller inputs, a "
             "smaller learning rate (clv_train_config.lr) or clv_optimizer_config.clip_norm may help, and "
             "clv_train_config.on_nan = CLV_NAN_CONTINUE takes what there is");
}

clv_status clv__training_check(clv__training *loop) {
    clv_trainer *trainer = loop->trainer;
    if (trainer->config->on_nan == CLV_NAN_CONTINUE) return CLV_OK;
    int found;
    int64_t at = 0;
    double value = 0;
    CLV_TRY(find_parameter(trainer->session, &found, &at, &value));
    if (found < 0) return CLV_OK;
    char what[256];
    clv__format(what, sizeof what, "parameter '%.100s' is not finite (element %" PRId64 " is %g), found",
                clv_session_get(trainer->session, found).name, at, value);
    int64_t bad = loop->not_finite ? loop->not_finite_since : trainer->position.step;
    return stop(loop, bad > 0 ? bad : 1, what);
}
