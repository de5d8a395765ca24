// SPDX-License-Identifier: Apache-2.0
// over_ranks: the sum over the ranks of a training. The plan sends and receives it, as it carries values between
// devices, and exec adds on the host (exec/exchange.c), so there is no kernel. Of the inside: no builder by name.
#include "ops/update/over_ranks.h"

static clv_status over_ranks_infer(clv__op_io *io, clv__error *error) {
    if (!clv__has_in(io, 0)) CLV_FAIL(error, CLV_E_VALUE, "x is missing");
    if (io->in[0].dtype != CLV_DTYPE_F32) CLV_FAIL(error, CLV_E_DTYPE, "x is not f32");
    return clv__one_out(io, io->in[0]);
}

static const clv__op over_ranks = {.name = "over_ranks",
                                   .attrs_bytes = sizeof(clv__exchanged),
                                   .view = true,
                                   .exchanges = true,
                                   .infer = over_ranks_infer,
                                   .split = clv__split_first};

clv_tensor *clv__over_ranks(clv_tensor *x, int terms, bool from_last) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    const clv__exchanged attrs = {.terms = terms, .from_last = from_last};
    const clv__phase phase = graph->phase;
    const char *layer = graph->layer_override;
    graph->phase = CLV__BACKWARD; // where what it reads is
    graph->layer_override = x->layer;
    clv_tensor *sum = clv__node_add(&over_ranks, &attrs, &x, 1, 0);
    graph->phase = phase;
    graph->layer_override = layer;
    return sum;
}

void clv__gradients_over_ranks(clv_graph *graph, int terms) {
    const size_t n = graph->n_tensors;
    for (size_t i = 0; i < n && graph->error.status == CLV_OK; i++) {
        clv_tensor *parameter = graph->tensors[i], *gradient = parameter->gradient;
        if (!parameter->trainable || !gradient || gradient->kind != CLV__VALUE) continue;
        clv_tensor *sum = clv__over_ranks(gradient, terms, true);
        if (!sum) return;
        sum->category = CLV_GRADIENTS;
        // parameters that are added have one gradient
        for (size_t k = i; k < n; k++)
            if (graph->tensors[k]->trainable && graph->tensors[k]->gradient == gradient)
                graph->tensors[k]->gradient = sum;
    }
}
