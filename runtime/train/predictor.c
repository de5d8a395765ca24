// SPDX-License-Identifier: Apache-2.0
// A model without gradients, fed batch by batch, and what can be measured with it. One plan serves every
// number of samples: a batch that is not full is filled up with zeros, and their logits dropped.
#include "base/clock.h"
#include "base/error.h"
#include "device/device.h"
#include "train/averages.h"
#include "train/metric.h"
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct clv_predictor {
    clv_runtime *runtime;
    const clv_model *model;
    const clv_loss *loss;
    const clv_metric *metrics[CLV_MOST_METRICS];
    int n_metrics;
    int64_t batch;
    clv_session *session;
    bool owns_session;
    clv_graph *graph;
    clv_tensor *x, *logits;
    clv_plan *plan;
    clv_place_choice *place; // NULL: none was to be chosen
    double *shares;          // of the replicas; NULL without
    clv_run *run;            // made when first used: by then the session is reserved
    void *part;              // a batch that is not full
    float *out;              // logits of a batch
};

static clv_tensor *logits_of(clv_tensor *x, void *user) {
    clv_tensor *logits = clv_model_build(user, x);
    return clv_tensor_dtype(logits) == CLV_DTYPE_F32 ? logits : clv_cast(logits, CLV_DTYPE_F32);
}

/** What is asked for, as far as planning knows it. */
static clv_train_config config_of(const clv_predictor *predictor, const clv_predictor_config *config) {
    clv_train_config wanted = {.model = config->model,
                               .device = config->device,
                               .placement = config->placement,
                               .batch = predictor->batch,
                               .precision = config->precision,
                               .variants = config->variants,
                               .no_fuse = config->no_fuse};
    if (predictor->shares) wanted.placement.shares = predictor->shares;
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
    CLV_TRY(clv_graph_create(predictor->runtime, &predictor->graph));
    clv_graph_set_precision(predictor->graph, config->precision);
    predictor->x = clv_model_input(predictor->graph, predictor->model, predictor->batch);
    clv_placement placement = config->placement;
    void *model = (void *)(uintptr_t)predictor->model;
    predictor->logits = placement.n_replicas
                            ? clv_data_parallel(predictor->x, placement.replicas, predictor->shares,
                                                placement.n_replicas, logits_of, model)
                            : logits_of(predictor->x, model);
    clv_output(predictor->logits, "logits");
    CLV_TRY(clv__averages_use(predictor->graph, config->session, config->same_session));
    clv_plan_config plan = {.device = config->device,
                            .explicit_transfers = placement.explicit_transfers,
                            .variants = config->variants,
                            .no_fuse = config->no_fuse,
                            .same_session = config->same_session,
                            .own_session = !config->session};
    CLV_TRY(clv__placement_choose(&placement, predictor->graph, &plan, &predictor->place));
    plan.place = placement.place;
    return clv_plan_create(predictor->graph, &plan, &predictor->plan);
}

/** Elements of one sample's result. */
static int64_t result_numel(const clv_predictor *predictor) {
    return clv_tensor_numel(predictor->logits) / predictor->batch;
}

/** They are looked at when it is known what the model gives. */
static clv_status keep_metrics(clv_predictor *predictor, const clv_predictor_config *config) {
    CLV_TRY(clv__metrics_fit(predictor->model, config->metrics, config->n_metrics, result_numel(predictor),
                             clv__runtime_error_of(predictor->runtime)));
    predictor->n_metrics = config->n_metrics;
    for (int i = 0; i < predictor->n_metrics; i++) predictor->metrics[i] = config->metrics[i];
    return CLV_OK;
}

static clv_status prepare(clv_predictor *predictor, const clv_predictor_config *given) {
    clv_predictor_config own = *given, *config = &own;
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    if (!config->model) CLV_FAIL(error, CLV_E_VALUE, "a predictor needs a model");
    if (config->batch < 0) CLV_FAIL(error, CLV_E_VALUE, "a batch of %lld samples", (long long)config->batch);
    predictor->batch = config->batch ? config->batch : 256;
    CLV_TRY(choose_replicas(predictor, config));
    CLV_TRY(build(predictor, config));
    CLV_TRY(keep_metrics(predictor, config));
    predictor->part = clv__alloc(1, clv_tensor_bytes(predictor->x));
    predictor->out = clv__alloc(1, clv_tensor_bytes(predictor->logits));
    if (!predictor->part || !predictor->out)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for a batch of samples");
    if (config->session) return CLV_OK;
    predictor->owns_session = true;
    CLV_TRY(clv_session_create(predictor->runtime, NULL, &predictor->session));
    clv_status status = clv_session_reserve(predictor->session, &predictor->plan, 1);
    clv_train_config wanted = config_of(predictor, config);
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
    if (config->model) predictor->loss = config->loss ? config->loss : clv_loss_for(config->model);
    clv_status status = prepare(predictor, config);
    if (status == CLV_OK)
        *out = predictor;
    else
        clv_predictor_destroy(predictor);
    return status;
}

void clv_predictor_destroy(clv_predictor *predictor) {
    if (!predictor) return;
    clv_run_destroy(predictor->run);
    if (predictor->owns_session) clv_session_destroy(predictor->session);
    clv_plan_destroy(predictor->plan);
    clv_graph_destroy(predictor->graph);
    clv_place_choice_destroy(predictor->place);
    free(predictor->shares);
    free(predictor->part);
    free(predictor->out);
    free(predictor);
}

void clv__predictor_rest(clv_predictor *predictor) {
    if (!predictor) return;
    clv_run_destroy(predictor->run);
    predictor->run = NULL;
}

clv_plan *clv_predictor_plan(const clv_predictor *predictor) {
    return predictor->plan;
}

clv_session *clv_predictor_session(const clv_predictor *predictor) {
    return predictor->session;
}

const clv_place_choice *clv_predictor_place(const clv_predictor *predictor) {
    return predictor->place;
}

const double *clv_predictor_shares(const clv_predictor *predictor) {
    return predictor->shares;
}

/** Feed n <= batch samples and hand the step to the device. */
static clv_status enqueue(clv_predictor *predictor, const void *samples, int64_t n, int64_t *ticket) {
    size_t bytes = clv_tensor_bytes(predictor->x), sample = bytes / (size_t)predictor->batch;
    if (!predictor->run) CLV_TRY(clv_run_create(predictor->session, predictor->plan, &predictor->run));
    if (n < predictor->batch) {
        memset(predictor->part, 0, bytes);
        memcpy(predictor->part, samples, (size_t)n * sample);
        samples = predictor->part;
    }
    CLV_TRY(clv_run_feed(predictor->run, predictor->x, samples, bytes));
    return clv_run_step(predictor->run, ticket);
}

static clv_status fetch(clv_predictor *predictor, int64_t ticket) {
    size_t bytes = clv_tensor_bytes(predictor->logits);
    return clv_run_fetch(predictor->run, ticket, predictor->logits, predictor->out, bytes);
}

clv_status clv__predictor_time(clv_predictor *predictor, const void *samples) {
    int64_t ticket;
    CLV_TRY(enqueue(predictor, samples, predictor->batch, &ticket));
    return fetch(predictor, ticket);
}

clv_shape clv_predictor_result_shape(const clv_predictor *predictor) {
    const clv_shape all = clv_tensor_shape(predictor->logits);
    return clv_shape_make(all.rank - 1, all.dims + 1);
}

clv_status clv_predictor_forward(clv_predictor *predictor, const void *samples, int64_t n, float *results) {
    CLV_TRY(CLV__GIVEN(NULL, predictor));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(predictor->runtime), samples));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(predictor->runtime), results));
    const int64_t batch = predictor->batch, each = result_numel(predictor);
    const size_t sample = clv_tensor_bytes(predictor->x) / (size_t)batch;
    int64_t ticket = 0, waiting = 0, at = 0; // the step before is fetched while the next one runs
    for (int64_t start = 0; start < n || waiting; start += batch) {
        int64_t before = ticket, now = start < n ? (n - start < batch ? n - start : batch) : 0;
        if (now) CLV_TRY(enqueue(predictor, (const char *)samples + (size_t)start * sample, now, &ticket));
        if (waiting) {
            CLV_TRY(fetch(predictor, before));
            memcpy(results + at * each, predictor->out, (size_t)(waiting * each) * sizeof *results);
            at += waiting;
        }
        waiting = now;
    }
    return CLV_OK;
}

// ---- evaluation -------------------------------------------------------------------------------------------

/** What an evaluation carries from batch to batch. */
typedef struct evaluation {
    clv_predictor *predictor;
    clv_loader *loader;
    clv_batch waiting; // handed to the device, its logits not read; n == 0: none
    int64_t ticket, target_numel;
    double loss_sum;
    clv_metrics metrics;
} evaluation;

static clv_status count_waiting(evaluation *run) {
    const clv_predictor *predictor = run->predictor;
    if (!run->waiting.n) return CLV_OK;
    CLV_TRY(fetch(run->predictor, run->ticket));
    const clv_loss_sizes sizes = {run->waiting.n, result_numel(predictor), run->target_numel};
    const clv_loss *loss = predictor->loss;
    const int64_t classes = predictor->model->classes;
    const void *targets = run->waiting.targets;
    if (classes)
        run->metrics.correct += clv_count_correct(predictor->out, targets, sizes.n * sizes.target, classes);
    clv__metrics_add(predictor->metrics, predictor->n_metrics, predictor->out, targets, &sizes,
                     run->metrics.values);
    run->loss_sum += loss->sum ? loss->sum(predictor->out, targets, &sizes, loss) : (double)NAN;
    run->metrics.count += run->waiting.n;
    clv_loader_release(run->loader, &run->waiting);
    run->waiting.n = 0;
    return CLV_OK;
}

static clv_status evaluate(evaluation *run, int64_t total, bool (*progress)(void *, int64_t, int64_t),
                           void *user, clv__error *error) {
    bool last = false;
    while (!last) {
        clv_batch batch;
        int64_t ticket;
        CLV_TRY(clv_loader_next(run->loader, &batch));
        CLV_TRY(enqueue(run->predictor, batch.samples, batch.n, &ticket));
        CLV_TRY(count_waiting(run));
        run->waiting = batch;
        run->ticket = ticket;
        last = batch.last;
        if (last) CLV_TRY(count_waiting(run));
        if (progress && !progress(user, run->metrics.count, total))
            CLV_FAIL(error, CLV_E_INTERRUPTED, "the evaluation was interrupted");
    }
    return CLV_OK;
}

clv_status clv_evaluate(clv_predictor *predictor, const clv_dataset *dataset,
                        bool (*progress)(void *user, int64_t done, int64_t total), void *user,
                        clv_metrics *out) {
    CLV_TRY(CLV__GIVEN(NULL, predictor));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(predictor->runtime), dataset));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(predictor->runtime), out));
    clv__error *error = clv__runtime_error_of(predictor->runtime);
    CLV_TRY(clv__check_data(predictor->runtime, predictor->model, dataset));
    double start = clv__seconds();
    const clv_shape target = clv_dataset_target_shape(dataset);
    evaluation run = {.predictor = predictor, .target_numel = clv_shape_numel(&target)};
    clv_loader_config config = {.batch = predictor->batch};
    clv_status status = clv_loader_create(predictor->runtime, dataset, &config, &run.loader);
    if (status == CLV_OK) status = evaluate(&run, clv_dataset_count(dataset), progress, user, error);
    clv_loader_destroy(run.loader);
    if (status != CLV_OK) return status;
    run.metrics.targets = run.metrics.count * run.target_numel;
    run.metrics.accuracy =
        predictor->model->classes ? (double)run.metrics.correct / (double)run.metrics.targets : (double)NAN;
    run.metrics.loss = run.loss_sum / (double)run.metrics.count;
    run.metrics.n_values = predictor->n_metrics;
    clv__metrics_end(predictor->metrics, predictor->n_metrics, run.metrics.count, run.metrics.values);
    run.metrics.seconds = clv__seconds() - start;
    *out = run.metrics;
    return CLV_OK;
}
