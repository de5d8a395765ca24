// SPDX-License-Identifier: Apache-2.0
// The graph of a training step: on one device, with layers placed, or replicated; and what is told of one by
// planning it.
#include <stdio.h>

#include "base/modules.h"
#include "cleave/ops.h"
#include "data/rows.h"
#include "device/device.h"
#include "exec/ranks.h"
#include "graph/graph.h"
#include "nn/batch_rows.h"
#include "nn/parallel_layers.h"
#include "nn/ports.h"
#include "nn/replicas.h"
#include "ops/product/lora.h"
#include "ops/update/averages.h"
#include "ops/update/over_ranks.h"
#include "infer/losses.h"
#include "infer/samples.h"
#include "train/trainer.h"

/** What the layers of a step are built from. */
typedef struct building {
    const clv_model *model;
    clv__bytes bytes;
    clv__target_loss losses[CLV_MAX_PORTS];
    clv_loss smoothed[CLV_MAX_PORTS]; // of them, where labels are
    int n_inputs, n_fed;
    // of each target, where among what is cut that lies which its labels count; 0: they count alike
    int weight[CLV_MAX_PORTS];
    int n_cut; // what is fed, and the weights
    clv_tensor *cut[CLV__MOST_CUT];
    int64_t micro_batches;  // of the batch, or of each replica's share
    clv__parallel parallel; // with layers that are placed beside replicas
} building;

/** A loss function may be the caller's: is what it gave a tensor of the graph? Else the graph fails. */
static clv_tensor *build_loss(const clv_loss *loss, clv_tensor *output, clv_tensor *target,
                              clv_tensor *weight) {
    if (!output || !target) return NULL; // the graph has failed
    clv_graph *graph = clv_tensor_graph(target);
    if (weight) return clv__loss_build_weighted(loss, output, target, weight);
    clv_tensor *built = loss->build(output, target, loss);
    if (built && clv_tensor_graph(built) == graph) return built;
    return clv__graph_fail(
        graph, CLV_E_VALUE,
        "loss '%s': its function 'build' returned %s; it must return a tensor of the graph "
        "that output and target are of",
        loss->name ? loss->name : "", built ? "a tensor of another graph" : "NULL");
}

/** The loss of each target. */
static void target_losses(clv_tensor *const *fed, clv_tensor **losses, void *user) {
    const building *of = user;
    clv_tensor *inputs[CLV_MAX_PORTS], *outputs[CLV_MAX_PORTS];
    const int n = of->n_fed - of->n_inputs;
    clv__bytes_normalize(&of->bytes, fed, inputs);
    clv_model_build_all(of->model, inputs, of->n_inputs, outputs, n);
    for (int i = 0; i < n; i++)
        losses[i] = build_loss(of->losses[i].loss, outputs[i], fed[of->n_inputs + i],
                               of->weight[i] ? fed[of->weight[i]] : NULL);
}

/** Their weighted sum. */
static clv_tensor *sum_of(const building *of, clv_tensor *const *losses) {
    clv_tensor *sum = NULL;
    for (int i = 0; i < of->n_fed - of->n_inputs; i++) {
        const double weight = of->losses[i].weight;
        clv_tensor *loss = weight != 1 ? clv_mul_scalar(losses[i], (float)weight) : losses[i];
        sum = i ? clv_add(sum, loss) : loss;
    }
    return sum;
}

static clv_tensor *model_loss(clv_tensor *const *fed, void *user) {
    clv_tensor *losses[CLV_MAX_PORTS];
    target_losses(fed, losses, user);
    return sum_of(user, losses);
}

/** The same with some layers replicated and the others whole: each micro-batch is shared out. */
static clv_tensor *parallel_loss(clv_tensor *const *fed, void *user) {
    const building *of = user;
    clv_tensor *losses[CLV_MAX_PORTS];
    clv__parallel_layers(fed, of->n_cut, &of->parallel, target_losses, user, losses, of->n_fed - of->n_inputs,
                         true);
    return sum_of(of, losses);
}

/** A replica's share in parts, one after another: each holds the activations of one. */
static clv_tensor *replica_loss(clv_tensor *const *fed, void *user) {
    const building *of = user;
    const int64_t rows = clv_tensor_shape(fed[0]).dims[0], n = of->micro_batches;
    return clv_micro_batches(fed, of->n_cut, rows < n ? rows : n, model_loss, user);
}

/** Micro-batches of a batch: as many as make them no larger than those of a full one. */
static int64_t micro_batches_of(const clv_train_config *config, int64_t batch) {
    int64_t n = config->micro_batches > 1 ? config->micro_batches : 1;
    int64_t largest = (config->batch + n - 1) / n;
    return batch == config->batch ? n : (batch + largest - 1) / largest;
}

/** What is cut with the batch: what is fed, and what labels count, which is of the whole batch. */
static void take_cut(const clv__step *step, building *of) {
    of->n_cut = of->n_fed;
    for (int i = 0; i < of->n_fed; i++) of->cut[i] = step->fed[i];
    for (int i = 0; i < step->n_targets; i++) {
        const clv__target_loss *loss = &of->losses[i];
        if (!loss->class_weights && !loss->ignores) continue;
        of->weight[i] = of->n_cut;
        of->cut[of->n_cut++] = clv_nn_label_weights(step->fed[step->n_inputs + i], loss->class_weights,
                                                    clv_model_port_get(of->model, CLV_PORT_TARGET, i).classes,
                                                    CLV_LABEL_IGNORED);
    }
}

static clv_tensor *loss_of(const clv_train_config *config, const double *shares, building *of) {
    const clv_placement *placement = &config->placement;
    if (!placement->n_replicas)
        return clv_micro_batches(of->cut, of->n_cut, of->micro_batches, model_loss, of);
    if (placement->n_replicas > CLV__MOST_REPLICAS) // refused with a sentence
        return clv_data_parallel_loss(of->cut, of->n_cut, placement->replicas, NULL, placement->n_replicas,
                                      replica_loss, of);
    const char *replicas[CLV__MOST_REPLICAS]; // those that take part
    double parts[CLV__MOST_REPLICAS];
    int n = 0;
    for (int i = 0; i < placement->n_replicas; i++) {
        double share = shares ? shares[i] : 1.0 / placement->n_replicas;
        if (!(share > 0)) continue;
        replicas[n] = placement->replicas[i];
        parts[n++] = share;
    }
    if (!placement->place)
        return clv_data_parallel_loss(of->cut, of->n_cut, replicas, parts, n, replica_loss, of);
    of->parallel = (clv__parallel){placement->place, replicas, parts, n};
    return clv_micro_batches(of->cut, of->n_cut, of->micro_batches, parallel_loss, of);
}

/** The rows of a batch that are computed here; of one process all. */
static clv__rank_rows rows_of(const clv_train_config *config, int64_t batch) {
    const bool shared = clv__trainer_shares_out(config);
    return clv__rows_of_rank(batch, shared ? config->ranks->place.rank : 0,
                             shared ? config->ranks->place.size : 1, shared ? config->ranks->shares : NULL);
}

/** Does each rank update a part of each parameter? Averages and files of gradients want all of it. */
static bool updates_are_shared(const clv_train_config *config) {
    return clv__trainer_shares_out(config) && config->ema_decay == 0 && !config->gradients &&
           !config->bf16_compress && clv__updates_can_be_parts(&config->optimizer);
}

/** What this rank adds to the loss: as a replica's part of it. */
static clv_tensor *rank_loss(const clv_train_config *config, const double *shares, int64_t batch,
                             building *of) {
    clv_graph *graph = clv_tensor_graph(of->cut[0]);
    const clv__rank_rows own = rows_of(config, batch);
    if (!graph || !clv__trainer_shares_out(config)) return loss_of(config, shares, of);
    clv__parts parts = clv__parts_begin(graph);
    clv__parts_next(graph, &parts,
                    (clv__cut){own.first, own.rows, config->ranks->place.rank, graph->cut.micro_batch});
    if (!config->placement.n_replicas && of->micro_batches > own.rows) of->micro_batches = own.rows;
    clv_tensor *loss = loss_of(config, shares, of);
    if (own.counted < batch) loss = clv_mul_scalar(loss, (float)((double)own.counted / (double)batch));
    clv__parts_end(graph, &parts);
    return loss;
}

static void gradient_name(const clv_tensor *parameter, char *name, size_t bytes) {
    snprintf(name, bytes, "gradient.%s", clv_tensor_name(parameter));
}

clv_tensor *clv__step_gradient(const clv__step *step, const clv_tensor *parameter) {
    char name[640];
    gradient_name(parameter, name, sizeof name);
    return clv_graph_find(step->graph, name);
}

/** Does a LoRA leave the parameter as it is? `whole`: patterns of those that are trained, too. */
static bool is_left(const void *whole, const clv_tensor *parameter) {
    return !clv__lora_is(parameter->name) && !clv__patterns_cover(whole, parameter->name);
}

/** A gradient as without a scaler. */
static clv_tensor *unscaled(clv_graph *graph, clv_tensor *gradient) {
    return graph->scale ? clv_div(gradient, graph->scale) : gradient;
}

clv_status clv__step_graph(clv_runtime *runtime, const clv_train_config *config, const double *shares,
                           int64_t batch, clv__step *step) {
    building of = {.model = config->model, .micro_batches = micro_batches_of(config, batch)};
    step->batch = batch;
    clv__ranks_look(config);
    CLV_TRY(clv__model_check(clv__runtime_error_of(runtime), config->model));
    CLV_TRY(clv__labels_check(runtime, config));
    CLV_TRY(clv__labels_losses(runtime, config, of.losses, of.smoothed));
    step->n_inputs = of.n_inputs = clv_model_port_count(config->model, CLV_PORT_INPUT);
    step->n_targets = clv_model_port_count(config->model, CLV_PORT_TARGET);
    of.n_fed = step->n_inputs + step->n_targets;
    CLV_TRY(clv__bytes_find(runtime, config, &of.bytes));
    CLV_TRY(clv_graph_create(runtime, &step->graph));
    clv_graph_set_training(step->graph, true);
    clv_graph_set_precision(step->graph, config->precision);
    clv__lora_begin(step->graph, config->lora.layers, config->lora.rank, config->lora.alpha);
    if (config->dropout) clv_graph_set_dropout(step->graph, (float)*config->dropout);
    const clv__rank_rows own = rows_of(config, batch);
    clv__bytes_inputs(step->graph, &of.bytes, own.rows, step->fed);
    clv__labels_inputs(step->graph, config, own.rows, step->fed + step->n_inputs);
    if (config->sync_batch_norm && clv__trainer_shares_out(config)) {
        step->graph->sync_batch_norm.terms = own.terms;
        step->graph->sync_batch_norm.part = (double)own.counted / (double)batch;
        step->graph->sync_batch_norm.rows = (double)batch / (double)own.rows;
    }
    take_cut(step, &of);
    step->loss = config->ranks ? rank_loss(config, shares, batch, &of) : loss_of(config, shares, &of);
    if (config->dropout && *config->dropout > 0 && !step->graph->asked_dropout)
        clv__graph_fail(step->graph, CLV_E_VALUE,
                        "dropout of %g is asked for, and model '%s' has no layer that drops values",
                        *config->dropout, config->model->name);
    clv__lora_end(step->graph);
    if (config->lora.layers) clv__freeze_if(step->graph, is_left, config->weights_except, "lora");
    clv_freeze(step->graph, config->freeze);
    clv_optimizer_freeze(step->graph, &config->optimizer);
    if (!config->ranks) clv_output(step->loss, "loss");
    if (config->precision == CLV_PRECISION_MIXED) clv_scaler_add(step->graph, NULL);
    clv_backward(step->loss);
    if (config->ranks) {                             // the sums over all ranks, in the order of replicas
        const bool layered = config->ranks->layered; // one has the loss, the others add zeros
        if (updates_are_shared(config))
            clv__parts_over_ranks(step->graph, config->ranks->place.rank, config->ranks->place.size,
                                  own.terms);
        else if (!layered)
            clv__gradients_over_ranks(step->graph, own.terms, config->bf16_compress);
        step->loss = clv__over_ranks(step->loss, layered ? config->ranks->place.size : own.terms, false);
        clv_output(step->loss, "loss");
    }
    for (int i = 0; config->gradients && i < clv_graph_info_get(step->graph).n_parameters; i++) {
        clv_tensor *parameter = clv_parameter_get(step->graph, i), *gradient = clv_gradient(parameter);
        char name[640];
        gradient_name(parameter, name, sizeof name);
        if (gradient) clv_output(unscaled(step->graph, gradient), name);
    }
    clv_optimizer_add(step->graph, &config->optimizer);
    if (step->graph->over_ranks) clv__parameters_over_ranks(step->graph);
    if (config->ema_decay != 0) clv_averages_add(step->graph, config->ema_decay);
    step->hyper = clv_optimizer_hyper(step->graph);
    return clv_graph_status(step->graph);
}

clv_status clv__trainer_refused(const clv_trainer *trainer, clv_status status) {
    return clv__refused(trainer->runtime, trainer->config, clv__step_graph, status);
}
