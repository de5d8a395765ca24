// SPDX-License-Identifier: Apache-2.0
// Sums over the ranks of a training, and parts of parameters. The plan sends and receives them, as it carries values
// between devices, and exec adds on the host (exec/exchange.c), so there is no kernel. Of the inside: no builders by name.
// Source of the parts: Rajbhandari, Rasley, Ruwase, He 2020, arXiv:1910.02054, section 5.1.
#include "ops/update/over_ranks.h"

/** What this rank has of x. */
static clv__desc part_of(const clv__op_io *io) {
    const clv__exchanged *how = io->attrs;
    return (clv__desc){io->in[0].dtype, CLV_SHAPE(how->length)};
}

static clv_status over_ranks_infer(clv__op_io *io, clv__error *error) {
    const clv__exchanged *how = io->attrs;
    if (!clv__has_in(io, 0)) CLV_FAIL(error, CLV_E_VALUE, "x is missing");
    if (io->in[0].dtype != CLV_DTYPE_F32) CLV_FAIL(error, CLV_E_DTYPE, "x is not f32");
    return clv__one_out(io, how->kind == CLV__EXCHANGE_SUM ? io->in[0] : part_of(io));
}

static clv_status part_infer(clv__op_io *io, clv__error *error) {
    if (!clv__has_in(io, 0)) CLV_FAIL(error, CLV_E_VALUE, "x is missing");
    return clv__one_out(io, part_of(io));
}

/** Inputs: this rank's part, and the whole, in whose memory all parts are then. */
static clv_status whole_infer(clv__op_io *io, clv__error *error) {
    if (!clv__has_in(io, 1)) CLV_FAIL(error, CLV_E_VALUE, "the whole is missing");
    return clv__one_out(io, io->in[1]);
}

/** Every rank's loss depends on the sum. */
static void over_ranks_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__exchanged *how = clv__node_attrs(node);
    dx[0] = clv__over_ranks_within(dy[0], how->terms);
}

static const clv__op over_ranks = {.name = "over_ranks",
                                   .attrs_bytes = sizeof(clv__exchanged),
                                   .view = true,
                                   .exchanges = true,
                                   .infer = over_ranks_infer,
                                   .grad = over_ranks_grad};
static const clv__op own_part = {.name = "own_part",
                                 .attrs_bytes = sizeof(clv__exchanged),
                                 .view = true,
                                 .part = true,
                                 .infer = part_infer};
static const clv__op all_parts = {.name = "all_parts",
                                  .attrs_bytes = sizeof(clv__exchanged),
                                  .view = true,
                                  .exchanges = true,
                                  .mutates = 1u << 1,
                                  .infer = whole_infer};

static clv_tensor *add(const clv__op *op, const clv__exchanged *how, clv_tensor *const *in, int n,
                       const clv_tensor *like, clv__phase phase) {
    clv_graph *graph = clv_tensor_graph(in[0]);
    if (!graph) return NULL;
    const clv__phase before = graph->phase;
    const char *layer = graph->layer_override;
    graph->phase = phase;
    graph->layer_override = like->layer;
    clv_tensor *out = clv__node_add(op, how, in, n, 0);
    graph->phase = before;
    graph->layer_override = layer;
    return out;
}

clv_tensor *clv__over_ranks_within(clv_tensor *x, int terms) {
    const clv__exchanged how = {.kind = CLV__EXCHANGE_SUM, .terms = terms};
    return x ? clv__node_add(&over_ranks, &how, &x, 1, 0) : NULL;
}

static clv_tensor *sum_over(clv_tensor *x, int terms, bool from_last, bool bf16) {
    const clv__exchanged how = {
        .kind = CLV__EXCHANGE_SUM, .terms = terms, .from_last = from_last, .bf16 = bf16};
    return x ? add(&over_ranks, &how, &x, 1, x,
                   clv_tensor_graph(x)->phase == CLV__UPDATE ? CLV__UPDATE : CLV__BACKWARD)
             : NULL;
}

clv_tensor *clv__over_ranks(clv_tensor *x, int terms, bool from_last) {
    return sum_over(x, terms, from_last, false);
}

/** Does an earlier parameter have the same gradient, since the two are added? Then its sum is this one's too. */
static clv_tensor *earlier(const clv_graph *graph, size_t i, const clv_tensor *gradient,
                           clv_tensor *const *before) {
    for (size_t k = 0; k < i; k++)
        if (before[k] == gradient) return graph->tensors[k];
    return NULL;
}

/** This rank's part of a parameter and of its gradient's sum. */
static void take_part(clv_tensor *parameter, const clv_tensor *same, int rank, int size, int terms) {
    const int64_t all = clv_tensor_numel(parameter), begin = clv__part_begin(all, rank, size);
    const clv__exchanged how = {.kind = CLV__EXCHANGE_SCATTER,
                                .terms = terms,
                                .from_last = true,
                                .begin = begin,
                                .length = clv__part_begin(all, rank + 1, size) - begin};
    parameter->part_gradient =
        same ? same->part_gradient
             : add(&over_ranks, &how, &parameter->gradient, 1, parameter, CLV__BACKWARD);
    parameter->part = add(&own_part, &how, &parameter, 1, parameter, CLV__BACKWARD);
    if (!parameter->part || !parameter->part_gradient) return; // the graph has failed
    parameter->part_gradient->category = CLV_GRADIENTS;
    parameter->part->category = CLV_PARAMETERS; // an update of it is one of what is kept
}

/** Of each parameter: the sum of its gradients over ranks, whole, or with `parts` this rank's part. */
static void sum_up(clv_graph *graph, bool parts, int rank, int size, int terms, bool bf16) {
    const size_t n = graph->n_tensors;
    clv_tensor **before = clv__arena_alloc(&graph->arena, n + 1, sizeof(clv_tensor *));
    if (!before) {
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for sums over ranks");
        return;
    }
    for (size_t i = 0; i < n && graph->error.status == CLV_OK; i++) {
        clv_tensor *parameter = graph->tensors[i], *gradient = parameter->gradient;
        if (!parameter->trainable || !gradient || gradient->kind != CLV__VALUE) continue;
        const clv_tensor *same = earlier(graph, i, gradient, before);
        before[i] = gradient;
        if (parts) {
            take_part(parameter, same, rank, size, terms);
            continue;
        }
        parameter->gradient = same ? same->gradient : sum_over(gradient, terms, true, bf16);
        if (parameter->gradient) parameter->gradient->category = CLV_GRADIENTS;
    }
}

void clv__gradients_over_ranks(clv_graph *graph, int terms, bool bf16) {
    sum_up(graph, false, 0, 1, terms, bf16);
}

bool clv__updates_can_be_parts(const clv_optimizer_config *config) {
    // LAMB and Muon work on whole tensors, clipping on all of them
    return !config->custom && config->clip_norm == 0 && config->kind != CLV_LAMB && config->kind != CLV_MUON;
}

void clv__parts_over_ranks(clv_graph *graph, int rank, int size, int terms) {
    graph->over_ranks = size;
    sum_up(graph, true, rank, size, terms, false);
}

void clv__parameters_over_ranks(clv_graph *graph) {
    const size_t n = graph->n_tensors;
    for (size_t i = n; i-- > 0 && graph->error.status == CLV_OK;) { // as their gradients were made
        clv_tensor *parameter = graph->tensors[i];
        if (!parameter->part) continue;
        clv__exchanged how = *(const clv__exchanged *)parameter->part->node->attrs;
        how.kind = CLV__EXCHANGE_GATHER;
        add(&all_parts, &how, (clv_tensor *[]){parameter->part, parameter}, 2, parameter, CLV__UPDATE);
    }
}
