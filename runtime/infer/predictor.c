// SPDX-License-Identifier: Apache-2.0
// A model without gradients, fed batch by batch, and what can be measured with it. One plan serves every
// number of samples: a batch that is not full is filled up with zeros, and their logits dropped.
#include "base/clock.h"
#include "base/error.h"
#include "device/device.h"
#include "exec/ranks.h"
#include "exec/session.h"
#include "io/array.h"
#include "infer/averages.h"
#include "infer/confusion.h"
#include "infer/lora.h"
#include "infer/metric.h"
#include "nn/ports.h"
#include "infer/losses.h"
#include "infer/placed.h"
#include "infer/predictor.h"
#include "infer/samples.h"
#include "infer/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct clv_predictor {
    clv_runtime *runtime;
    const clv_model *model;
    clv__target_loss losses[CLV_MAX_PORTS];
    const clv_metric *metrics[CLV_MOST_METRICS];
    int n_metrics;
    clv_confusion *confusion; // NULL: nobody asks
    int n_outputs;            // as many as targets
    int64_t batch;
    clv_session *session;
    bool owns_session;
    clv__bytes bytes;
    clv__step step;                   // its run is made when first used: by then the session is reserved
    clv_place_choice *place;          // NULL: none was to be chosen
    double *shares;                   // of the replicas; NULL without
    void *part[CLV_MAX_PORTS];        // of each input, a batch that is not full
    float *out[CLV_MAX_PORTS];        // of each output, the results of a batch
    clv_shape results[CLV_MAX_PORTS]; // of each output, a sample's
};

/** What is asked for, as far as planning knows it. */
static clv_train_config config_of(const clv_predictor *predictor, const clv_predictor_config *config) {
    clv_train_config wanted = {.model = config->model,
                               .loss = config->loss,
                               .losses = config->losses,
                               .n_losses = config->n_losses,
                               .train = config->samples,
                               .device = config->device,
                               .placement = config->placement,
                               .batch = predictor->batch,
                               .precision = config->precision,
                               .variants = config->variants,
                               .no_fuse = config->no_fuse,
                               .lora = clv__lora_of(config->session)};
    if (predictor->shares) wanted.placement.shares = predictor->shares;
    if (config->session && config->session->ranks && config->session->ranks->layered)
        wanted.ranks = config->session->ranks; // all compute it together
    return wanted;
}

/** The first of the replicas is the device that all begins on, and each has a share. */
static clv_status choose_replicas(clv_predictor *predictor, clv_predictor_config *config) {
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    const clv_placement *placement = &config->placement;
    CLV_TRY(clv__placement_check(predictor->runtime, placement, predictor->batch));
    int n = placement->n_replicas;
    if (!n) return CLV_OK;
    CLV_TRY(clv_device_find(predictor->runtime, placement->replicas[0], &config->device));
    predictor->shares = clv__alloc((size_t)n, sizeof *predictor->shares);
    if (!predictor->shares) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a predictor");
    for (int i = 0; i < n; i++) predictor->shares[i] = placement->shares ? placement->shares[i] : 1.0 / n;
    if (placement->shares || !placement->measure_shares) return CLV_OK;
    CLV_TRY(clv__measure_forward_shares(predictor->runtime, config, predictor->batch, predictor->shares));
    clv_train_config wanted = config_of(predictor, config);
    return clv__shares_fit(predictor->runtime, &wanted, clv__forward_graph, predictor->shares);
}

static clv_status build(clv_predictor *predictor, const clv_predictor_config *config) {
    const clv_train_config wanted = config_of(predictor, config);
    clv_placement placement = config->placement;
    clv__step *step = &predictor->step;
    CLV_TRY(clv__bytes_find(predictor->runtime, &wanted, &predictor->bytes));
    CLV_TRY(clv__forward_graph(predictor->runtime, &wanted, predictor->shares, predictor->batch, step));
    CLV_TRY(clv__averages_use(step->graph, config->session, config->same_session));
    clv_plan_config plan = {.device = config->device,
                            .explicit_transfers = placement.explicit_transfers,
                            .variants = config->variants,
                            .no_fuse = config->no_fuse,
                            .same_session = config->same_session,
                            .own_session = !config->session};
    CLV_TRY(clv__placement_choose(&placement, step->graph, &plan, &predictor->place));
    plan.place = clv__placement_of_plan(&placement);
    return clv_plan_create(step->graph, &plan, &step->plan);
}

static clv_status take_memory(clv_predictor *predictor) {
    const clv__step *step = &predictor->step;
    bool there = true;
    for (int i = 0; i < predictor->n_outputs; i++) {
        const clv_shape all = clv_tensor_shape(step->outputs[i]);
        predictor->results[i] = (clv_shape){.rank = all.rank - 1};
        memcpy(predictor->results[i].dims, all.dims + 1, sizeof all.dims - sizeof *all.dims);
    }
    for (int i = 0; i < step->n_inputs; i++)
        there &= (predictor->part[i] = clv__alloc(1, clv_tensor_bytes(step->fed[i]))) != NULL;
    for (int i = 0; i < predictor->n_outputs; i++)
        there &= (predictor->out[i] = clv__alloc(1, clv_tensor_bytes(step->outputs[i]))) != NULL;
    if (!there)
        CLV_FAIL(clv__runtime_error_of(predictor->runtime), CLV_E_HOST_MEMORY,
                 "no memory for a batch of samples");
    return CLV_OK;
}

/** Elements of one sample's i-th result. */
static int64_t result_numel(const clv_predictor *predictor, int i) {
    return clv_tensor_numel(predictor->step.outputs[i]) / predictor->batch;
}

/** They are looked at when it is known what the model gives. */
static clv_status keep_metrics(clv_predictor *predictor, const clv_predictor_config *config) {
    int64_t outputs[CLV_MAX_PORTS];
    for (int i = 0; i < predictor->n_outputs; i++) outputs[i] = result_numel(predictor, i);
    CLV_TRY(clv__metrics_fit(predictor->model, config->metrics, config->n_metrics, outputs,
                             clv__runtime_error_of(predictor->runtime)));
    predictor->n_metrics = config->n_metrics;
    for (int i = 0; i < predictor->n_metrics; i++) predictor->metrics[i] = config->metrics[i];
    return CLV_OK;
}

/** Samples at a time where none are asked for: 256, or as many as have results of 256 MiB together, as
 *  those of a large vocabulary. */
static int64_t usual_batch(const clv_predictor_config *config) {
    const double most = 256 << 20;
    double bytes = 1;
    for (int i = 0; i < clv_model_port_count(config->model, CLV_PORT_TARGET); i++) {
        const clv_port port = clv_model_port_get(config->model, CLV_PORT_TARGET, i);
        const clv_shape one = clv_port_shape(&port, 1);
        const double numel = (double)clv_shape_numel(&one) * (port.classes > 0 ? port.classes : 1);
        bytes += numel * sizeof(float);
    }
    const int replicas = config->placement.n_replicas > 1 ? config->placement.n_replicas : 1;
    const int64_t n = bytes * 256 > most ? (int64_t)(most / bytes) : 256;
    return n > replicas ? n : replicas;
}

static clv_status keep_confusion(clv_predictor *predictor, const clv_predictor_config *config) {
    const int target = clv__confusion_target(config->confusion);
    const clv_port port = clv_model_port_get(predictor->model, CLV_PORT_TARGET, target);
    const clv__target_loss *loss = &predictor->losses[target < predictor->n_outputs ? target : 0];
    predictor->confusion = config->confusion;
    return clv__confusion_check(config->confusion, predictor->model, clv__loss_tells_right(loss->loss, port),
                                clv__runtime_error_of(predictor->runtime));
}

static clv_status prepare(clv_predictor *predictor, const clv_predictor_config *given) {
    clv_predictor_config own = *given, *config = &own;
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    if (!config->model) CLV_FAIL(error, CLV_E_VALUE, "a predictor needs a model");
    if (config->batch < 0) CLV_FAIL(error, CLV_E_VALUE, "a batch of %lld samples", (long long)config->batch);
    CLV_TRY(clv__model_check(error, config->model));
    predictor->batch = config->batch ? config->batch : usual_batch(config);
    clv_train_config wanted = config_of(predictor, config);
    CLV_TRY(clv__losses_find(predictor->runtime, &wanted, predictor->losses));
    predictor->n_outputs = clv_model_port_count(config->model, CLV_PORT_TARGET);
    if (config->confusion) CLV_TRY(keep_confusion(predictor, config));
    CLV_TRY(choose_replicas(predictor, config));
    CLV_TRY(build(predictor, config));
    CLV_TRY(keep_metrics(predictor, config));
    CLV_TRY(take_memory(predictor));
    if (config->session) return CLV_OK;
    predictor->owns_session = true;
    CLV_TRY(clv_session_create(predictor->runtime, NULL, &predictor->session));
    clv_status status = clv_session_reserve(predictor->session, &predictor->step.plan, 1);
    wanted = config_of(predictor, config);
    return clv__refused(predictor->runtime, &wanted, clv__forward_graph, status);
}

clv_status clv_predictor_create(clv_runtime *runtime, const clv_predictor_config *config,
                                clv_predictor **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    *out = NULL;
    clv_predictor *predictor = clv__alloc(1, sizeof *predictor);
    if (!predictor) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no memory for a predictor");
    *predictor = (clv_predictor){.runtime = runtime, .model = config->model, .session = config->session};
    clv_status status = prepare(predictor, config);
    if (status == CLV_OK)
        *out = predictor;
    else
        clv_predictor_destroy(predictor);
    return status;
}

void clv_predictor_destroy(clv_predictor *predictor) {
    if (!predictor) return;
    clv__predictor_rest(predictor);
    if (predictor->owns_session) clv_session_destroy(predictor->session);
    clv__step_destroy(&predictor->step);
    clv_free(predictor->place);
    free(predictor->shares);
    for (int i = 0; i < CLV_MAX_PORTS; i++) free(predictor->part[i]), free(predictor->out[i]);
    free(predictor);
}

void clv__predictor_rest(clv_predictor *predictor) {
    if (!predictor) return;
    clv_run_destroy(predictor->step.run);
    predictor->step.run = NULL;
}

/** Bytes of a sample of the i-th input. */
static size_t sample_bytes(const clv_predictor *predictor, int i) {
    return clv_tensor_bytes(predictor->step.fed[i]) / (size_t)predictor->batch;
}

/** Feed n <= batch samples, from `first` on, and hand the step to the device. */
static clv_status enqueue(clv_predictor *predictor, const void *const *inputs, int64_t first, int64_t n,
                          int64_t *ticket) {
    clv__step *step = &predictor->step;
    const void *fed[CLV__MOST_FED] = {NULL};
    if (!step->run) CLV_TRY(clv_run_create(predictor->session, step->plan, &step->run));
    for (int i = 0; i < step->n_inputs; i++) {
        const size_t bytes = clv_tensor_bytes(step->fed[i]), sample = sample_bytes(predictor, i);
        fed[i] = (const char *)inputs[i] + (size_t)first * sample;
        if (n == predictor->batch) continue;
        memset(predictor->part[i], 0, bytes);
        memcpy(predictor->part[i], fed[i], (size_t)n * sample);
        fed[i] = predictor->part[i];
    }
    CLV_TRY(clv__step_feed_arrays(step, fed));
    return clv_run_step(step->run, ticket);
}

static clv_status fetch(clv_predictor *predictor, int64_t ticket) {
    const clv__step *step = &predictor->step;
    for (int i = 0; i < predictor->n_outputs; i++)
        CLV_TRY(clv_run_fetch(step->run, ticket, step->outputs[i], predictor->out[i],
                              clv_tensor_bytes(step->outputs[i])));
    return CLV_OK;
}

clv_status clv__predictor_time(clv_predictor *predictor, const void *zeros) {
    const void *inputs[CLV_MAX_PORTS];
    int64_t ticket;
    for (int i = 0; i < CLV_MAX_PORTS; i++) inputs[i] = zeros;
    CLV_TRY(enqueue(predictor, inputs, 0, predictor->batch, &ticket));
    return fetch(predictor, ticket);
}

size_t clv__predictor_fed_bytes(const clv_predictor *predictor) {
    return clv__step_fed_bytes(&predictor->step);
}

/** What was fetched of n samples, behind the first `at`. */
static void give(const clv_predictor *predictor, int64_t at, int64_t n, float *const *results) {
    for (int i = 0; i < predictor->n_outputs; i++) {
        const int64_t each = result_numel(predictor, i);
        if (results[i])
            memcpy(results[i] + at * each, predictor->out[i], (size_t)(n * each) * sizeof *results[i]);
    }
}

static clv_status forward(clv_predictor *predictor, const void *const *inputs, int64_t n,
                          float *const *results) {
    const int64_t batch = predictor->batch;
    int64_t ticket = 0, waiting = 0, at = 0; // the step before is fetched while the next one runs
    for (int64_t start = 0; start < n || waiting; start += batch) {
        int64_t before = ticket, now = start < n ? (n - start < batch ? n - start : batch) : 0;
        if (now) CLV_TRY(enqueue(predictor, inputs, start, now, &ticket));
        if (waiting) {
            CLV_TRY(fetch(predictor, before));
            give(predictor, at, waiting, results);
            at += waiting;
        }
        waiting = now;
    }
    return CLV_OK;
}

clv_status clv_predictor_forward_all(clv_predictor *predictor, const void *const *inputs, int n_inputs,
                                     int64_t n, float *const *results, int n_results) {
    CLV_TRY(CLV__GIVEN(NULL, predictor));
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    CLV_TRY(CLV__USABLE(error, inputs));
    CLV_TRY(CLV__USABLE(error, results));
    if (n_inputs != predictor->step.n_inputs || n_results != predictor->n_outputs)
        CLV_FAIL(error, CLV_E_VALUE,
                 "model '%s' has %d inputs and %d outputs, and arrays are given for %d and %d",
                 predictor->model->name, predictor->step.n_inputs, predictor->n_outputs, n_inputs, n_results);
    for (int i = 0; i < n_inputs; i++)
        if (!inputs[i])
            CLV_FAIL(error, CLV_E_VALUE, "clv_predictor_forward_all: no samples for input '%s' of model '%s'",
                     clv_model_port_get(predictor->model, CLV_PORT_INPUT, i).name, predictor->model->name);
    return forward(predictor, inputs, n, results);
}

// ---- arrays that know their sizes -------------------------------------------------------------------------

/** Does an array hold all that will be fed of it? Its type, its samples' shape, and how many there are. */
static clv_status check_array(const clv_predictor *predictor, int i, const clv_array *array, int64_t n) {
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    const clv_model *model = predictor->model;
    const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, i);
    char text[128];
    const clv_dtype wants = clv_tensor_dtype(predictor->step.fed[i]);
    if (array->type != wants)
        CLV_FAIL(error, CLV_E_DTYPE, "input '%s' of model '%s' wants %s, the array holds %s", port.name,
                 model->name, clv_dtype_name(wants), clv_dtype_name(array->type));
    if (array->shape.rank < 1)
        CLV_FAIL(error, CLV_E_SHAPE, "input '%s' of model '%s': one number; [N,...] is wanted", port.name,
                 model->name);
    const clv_shape sample = clv_shape_make(array->shape.rank - 1, array->shape.dims + 1);
    CLV_TRY(clv__port_check_samples(error, model, &port, NULL, &sample));
    if (array->shape.dims[0] != n)
        CLV_FAIL(error, CLV_E_SHAPE,
                 "input '%s' of model '%s': %s has %lld samples, the first input has %lld", port.name,
                 model->name, clv_shape_text(&array->shape, text, sizeof text),
                 (long long)array->shape.dims[0], (long long)n);
    size_t wanted;
    if (!clv__size_mul((size_t)n, sample_bytes(predictor, i), &wanted) || clv_array_bytes(array) != wanted)
        CLV_FAIL(error, CLV_E_SHAPE, "input '%s' of model '%s': %s has %zu bytes, %zu are a sample's",
                 port.name, model->name, clv_shape_text(&array->shape, text, sizeof text),
                 clv_array_bytes(array), sample_bytes(predictor, i));
    return wanted ? CLV__USABLE(error, array->data) : CLV_OK;
}

static clv_status forward_arrays(clv_predictor *predictor, const clv_array *const *inputs,
                                 clv_array *results) {
    const int64_t n = inputs[0]->shape.rank > 0 ? inputs[0]->shape.dims[0] : 0;
    const void *data[CLV_MAX_PORTS];
    float *out[CLV_MAX_PORTS];
    for (int i = 0; i < predictor->step.n_inputs; i++) {
        CLV_TRY(check_array(predictor, i, inputs[i], n));
        data[i] = inputs[i]->data;
    }
    for (int i = 0; i < predictor->n_outputs; i++) {
        const clv_shape one = predictor->results[i];
        clv_shape shape = {one.rank + 1, {n}};
        memcpy(shape.dims + 1, one.dims, (size_t)one.rank * sizeof *one.dims);
        CLV_TRY(clv_array_init(predictor->runtime, CLV_DTYPE_F32, &shape, &results[i]));
        out[i] = results[i].data;
    }
    return forward(predictor, data, n, out);
}

clv_status clv_predictor_forward_arrays(clv_predictor *predictor, const clv_array *const *inputs,
                                        clv_array *results) {
    CLV_TRY(CLV__GIVEN(NULL, predictor));
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    CLV_TRY(CLV__USABLE(error, inputs));
    CLV_TRY(CLV__USABLE(error, results));
    for (int i = 0; i < predictor->n_outputs; i++) results[i] = (clv_array){0};
    for (int i = 0; i < predictor->step.n_inputs; i++)
        if (!inputs[i])
            CLV_FAIL(error, CLV_E_VALUE,
                     "clv_predictor_forward_arrays: no array for input '%s' of model '%s'",
                     clv_model_port_get(predictor->model, CLV_PORT_INPUT, i).name, predictor->model->name);
    clv_status status = forward_arrays(predictor, inputs, results);
    for (int i = 0; status != CLV_OK && i < predictor->n_outputs; i++) clv_array_reset(&results[i]);
    return status;
}

// ---- evaluation -------------------------------------------------------------------------------------------

/** What is counted of a batch, or of all. */
typedef struct sums {
    double loss[CLV_MAX_PORTS];      // of each target
    double loss_of[CLV_MAX_PORTS];   // how much the samples of these sums count
    double counted[CLV_MAX_PORTS];   // samples, less the ignored labels
    double values[CLV_MOST_METRICS]; // of metrics
    int64_t targets[CLV_MAX_PORTS], correct[CLV_MAX_PORTS], count, not_finite;
} sums;

/** What an evaluation carries from batch to batch. */
typedef struct evaluation {
    clv_predictor *predictor;
    clv_loader *loader;
    clv_batch waiting; // handed to the device, its logits not read; n == 0: none
    int64_t ticket;
    clv__match match;
    double loss_units; // what losses of standardized targets are multiplied with
    clv__units units;
    sums all;
    sums *batches; // of a rank: one after another; NULL: they are added at once
    int64_t n_batches;
} evaluation;

static void add(sums *to, const sums *one) {
    for (int i = 0; i < CLV_MAX_PORTS; i++) {
        to->loss[i] += one->loss[i];
        to->loss_of[i] += one->loss_of[i];
        to->counted[i] += one->counted[i];
        to->targets[i] += one->targets[i];
        to->correct[i] += one->correct[i];
    }
    for (int i = 0; i < CLV_MOST_METRICS; i++) to->values[i] += one->values[i];
    to->count += one->count;
    to->not_finite += one->not_finite;
}

/** A target of n samples, as the results that were fetched tell it. */
static void count_target(evaluation *run, int i, int64_t n, const void *targets, sums *one,
                         clv_metric_value values[CLV_MOST_METRICS]) {
    const clv_predictor *predictor = run->predictor;
    const clv_port port = clv_model_port_get(predictor->model, CLV_PORT_TARGET, i);
    const clv_shape shape = clv_port_shape(&port, n);
    const clv_loss_sizes sizes = {n, result_numel(predictor, i), clv_shape_numel(&shape) / n, port.classes};
    const clv_loss *loss = predictor->losses[i].loss;
    one->targets[i] = clv__loss_counted(port, targets, &sizes);
    one->counted[i] = (double)one->targets[i] / (double)sizes.target;
    one->correct[i] = clv__loss_count_right(loss, port, predictor->out[i], targets, &sizes);
    one->loss[i] = run->loss_units *
                   clv__loss_sum(&predictor->losses[i], predictor->out[i], targets, &sizes, &one->loss_of[i]);
    const float *output = predictor->out[i];
    clv__units_put(&run->units, &sizes, &output, &targets);
    clv__metrics_add(predictor->model, i, predictor->metrics, predictor->n_metrics, output, targets, &sizes,
                     values);
    if (predictor->confusion && clv__confusion_target(predictor->confusion) == i)
        clv_confusion_add(predictor->confusion, output, targets, n);
}

/** Of n samples, how many have a result that is not finite. */
static int64_t count_not_finite(const clv_predictor *predictor, int64_t n) {
    int64_t count = 0;
    for (int64_t row = 0; row < n; row++) {
        bool finite = true;
        for (int i = 0; finite && i < predictor->n_outputs; i++) {
            const int64_t each = result_numel(predictor, i);
            for (int64_t k = 0; finite && k < each; k++) finite = isfinite(predictor->out[i][row * each + k]);
        }
        count += !finite;
    }
    return count;
}

static clv_status count_waiting(evaluation *run) {
    const int64_t n = run->waiting.n;
    sums one = {.count = n};
    clv_metric_value values[CLV_MOST_METRICS] = {{0}};
    if (!n) return CLV_OK;
    CLV_TRY(fetch(run->predictor, run->ticket));
    for (int i = 0; i < run->predictor->n_outputs; i++)
        count_target(run, i, n, run->waiting.each_target[run->match.target[i]], &one, values);
    for (int i = 0; i < run->predictor->n_metrics; i++) one.values[i] = values[i].value;
    one.not_finite = count_not_finite(run->predictor, n);
    if (run->batches) run->batches[run->n_batches++] = one;
    add(&run->all, &one);
    clv_loader_release(run->loader, &run->waiting);
    run->waiting.n = 0;
    return CLV_OK;
}

static clv_status evaluate(evaluation *run, int64_t batches, int64_t total,
                           bool (*progress)(void *, int64_t, int64_t), void *user, clv__error *error) {
    for (int64_t left = batches; left > 0; left--) {
        clv_batch batch;
        int64_t ticket;
        CLV_TRY(clv__step_next(&run->predictor->step, &run->match, run->loader, &batch));
        const void *inputs[CLV_MAX_PORTS];
        for (int i = 0; i < run->predictor->step.n_inputs; i++)
            inputs[i] = batch.each_input[run->match.input[i]];
        CLV_TRY(enqueue(run->predictor, inputs, 0, batch.n, &ticket));
        CLV_TRY(count_waiting(run));
        run->waiting = batch;
        run->ticket = ticket;
        if (left == 1) CLV_TRY(count_waiting(run));
        if (progress && !progress(user, run->all.count, total))
            CLV_FAIL(error, CLV_E_INTERRUPTED, "the evaluation was interrupted");
    }
    return CLV_OK;
}

/** What was counted of each target, and of all of them. */
static clv_metrics sum_up(evaluation *run) {
    const clv_predictor *predictor = run->predictor;
    clv_metrics metrics = {.count = run->all.count,
                           .not_finite = run->all.not_finite,
                           .n_each = predictor->n_outputs,
                           .n_values = predictor->n_metrics},
                *all = &metrics;
    int64_t told_right = 0, without = 0;
    for (int i = 0; i < all->n_each; i++) {
        const clv_port port = clv_model_port_get(predictor->model, CLV_PORT_TARGET, i);
        clv_target_metrics *one = &all->each[i];
        one->name = port.name;
        one->targets = run->all.targets[i];
        one->correct = run->all.correct[i];
        const bool told = clv__loss_tells_right(predictor->losses[i].loss, port);
        one->accuracy = told ? (double)one->correct / (double)one->targets : (double)NAN;
        one->loss = run->all.loss[i] / run->all.loss_of[i];
        *(told ? &told_right : &without) += one->targets;
        all->correct += one->correct;
        all->loss += predictor->losses[i].weight * one->loss;
    }
    all->targets = told_right ? told_right : without;
    all->accuracy = told_right ? (double)all->correct / (double)told_right : (double)NAN;
    for (int i = 0; i < predictor->n_metrics; i++) all->values[i].value = run->all.values[i];
    clv__metrics_end(predictor->model, predictor->metrics, predictor->n_metrics, run->all.counted,
                     all->values);
    return metrics;
}

/** The sums of all ranks' batches, in the order of batches; `room`: records of a rank. */
static clv_status join(evaluation *run, struct clv_ranks *ranks, size_t room) {
    const int size = ranks->place.size;
    sums *all = ranks->place.rank ? NULL : clv__alloc((size_t)size * room, sizeof *all);
    clv_status status = clv__ranks_collect(ranks, run->batches, room * sizeof *all, all);
    if (all && status == CLV_OK) {
        run->all = (sums){0};
        for (size_t i = 0; i < (size_t)size * room; i++)
            if (all[i].count) add(&run->all, &all[i]);
    }
    free(all);
    return status == CLV_OK ? clv__ranks_agree(ranks, &run->all, sizeof run->all) : status;
}

/** Samples that all ranks test at a time: as many as the least of them can. */
static clv_status agree_on_batch(struct clv_ranks *ranks, int64_t own, int64_t *out) {
    int64_t *all = ranks->place.rank ? NULL : clv__alloc((size_t)ranks->place.size, sizeof *all);
    clv_status status = clv__ranks_collect(ranks, &own, sizeof own, all);
    *out = own;
    for (int i = 0; all && status == CLV_OK && i < ranks->place.size; i++)
        if (all[i] < *out) *out = all[i];
    free(all);
    if (status == CLV_OK) status = clv__ranks_agree(ranks, out, sizeof *out);
    if (status == CLV_OK && (*out < 1 || *out > own))
        CLV_FAIL(clv__runtime_error_of(ranks->runtime), CLV_E_RANK_LOST,
                 "rank 0 tests %lld samples at a time, and this rank can only test %lld", (long long)*out,
                 (long long)own);
    return status;
}

clv_status clv__evaluate(clv_predictor *predictor, const clv_dataset *dataset, struct clv_ranks *ranks,
                         bool (*progress)(void *user, int64_t done, int64_t total), void *user,
                         clv_metrics *out) {
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    const int64_t count = clv_dataset_info_get(dataset).count, size = ranks ? ranks->place.size : 1;
    evaluation run = {.predictor = predictor,
                      .loss_units = clv__units_loss(dataset, predictor->losses[0].loss)};
    CLV_TRY(clv__match_data(predictor->runtime, predictor->model, dataset, &run.match));
    CLV_TRY(clv__bytes_check(error, &predictor->bytes, dataset, &run.match));
    double start = clv__seconds();
    clv_loader_config config = {.batch = predictor->batch, .bytes = clv__bytes_any(&predictor->bytes)};
    if (size > 1) CLV_TRY(agree_on_batch(ranks, predictor->batch, &config.batch));
    const int64_t batches = (count + config.batch - 1) / config.batch,
                  rank = size > 1 ? ranks->place.rank : 0, end = batches * (rank + 1) / size,
                  room = batches / size + 1;
    config.index = batches * rank / size;
    const int64_t samples =
        (end * config.batch < count ? end * config.batch : count) - config.index * config.batch;
    if (size > 1 && !(run.batches = clv__alloc((size_t)room, sizeof *run.batches)))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the sums of an evaluation");
    clv_status status = clv__units_begin(error, dataset, config.batch, &run.units);
    if (status == CLV_OK) status = clv_loader_create(predictor->runtime, dataset, &config, &run.loader);
    if (status == CLV_OK) status = evaluate(&run, end - config.index, samples, progress, user, error);
    clv_loader_destroy(run.loader);
    clv__units_end(&run.units);
    if (status == CLV_OK && run.batches) status = join(&run, ranks, (size_t)room);
    free(run.batches);
    if (status != CLV_OK) return status;
    *out = sum_up(&run);
    out->seconds = clv__seconds() - start;
    return CLV_OK;
}

clv_status clv_evaluate(clv_predictor *predictor, const clv_dataset *dataset,
                        bool (*progress)(void *user, int64_t done, int64_t total), void *user,
                        clv_metrics *out) {
    CLV_TRY(CLV__GIVEN(NULL, predictor));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(predictor->runtime), dataset));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(predictor->runtime), out));
    return clv__evaluate(predictor, dataset, NULL, progress, user, out);
}

clv_predictor_info clv_predictor_info_get(const clv_predictor *predictor) {
    return (clv_predictor_info){.session = predictor->session,
                                .plan = predictor->step.plan,
                                .place = predictor->place,
                                .shares = predictor->shares,
                                .results = predictor->results,
                                .n_results = predictor->n_outputs};
}
