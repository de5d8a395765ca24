// SPDX-License-Identifier: Apache-2.0
// Evaluates graphs in double; see interpret.h. Slow and plain on purpose: it must be easy to believe.
#include "check/interpret.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "tensor/dtype.h"

clv_status clv__values_init(clv__values *values, const clv_graph *graph, clv__error *error) {
    *values = (clv__values){.graph = graph};
    values->data = clv__alloc(graph->n_tensors + 1, sizeof *values->data);
    if (!values->data)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the values of %zu tensors", graph->n_tensors);
    values->n = graph->n_tensors;
    for (size_t i = 0; i < values->n; i++) {
        int64_t numel = clv__numel(&graph->tensors[i]->desc);
        // One more than asked for: an empty tensor has an address too.
        values->data[i] = numel < 0 ? NULL : clv__alloc((size_t)numel + 1, sizeof(double));
        if (!values->data[i]) {
            clv__values_reset(values);
            CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the values of '%s' (%lld elements)",
                     graph->tensors[i]->name, (long long)numel);
        }
    }
    return CLV_OK;
}

void clv__values_reset(clv__values *values) {
    for (size_t i = 0; i < values->n; i++) free(values->data[i]);
    free(values->data);
    *values = (clv__values){0};
}

double *clv__values_of(const clv__values *values, const clv_tensor *tensor) {
    return values->data[tensor->id];
}

void clv__values_set(clv__values *values, const clv_tensor *tensor, const void *elements) {
    clv__elements_widen(tensor->desc.dtype, elements, clv__numel(&tensor->desc), values->data[tensor->id]);
}

void clv__values_get(const clv__values *values, const clv_tensor *tensor, void *elements) {
    clv__elements_narrow(tensor->desc.dtype, values->data[tensor->id], clv__numel(&tensor->desc), elements);
}

void clv__values_set_random(clv__values *values, uint64_t seed, int64_t step) {
    if (!values->graph->random) return;
    double *state = clv__values_of(values, values->graph->random);
    state[0] = (double)(int32_t)(uint32_t)seed;
    state[1] = (double)(int32_t)(uint32_t)(seed >> 32);
    state[2] = (double)(int32_t)step;
    state[3] = 0;
}

double clv__rounding_reach(const clv__op_io *io, bool one_way) {
    const int64_t terms = io->op->reduction ? io->op->reduction(io) : 1;
    const double independent = sqrt(terms > 1 ? (double)terms : 1.0);
    return one_way ? fmax(independent, (double)terms / CLV__SWAY_FACTOR) : independent;
}

// Roundings of f32 arithmetic, `reach` of them, and that of storing into two bytes: at most half of the spacing, and twice
// that here, as four evaluations may find little where much is possible. tests/ops/storage.c asks for the last bit.
static void disturb(const clv__noise *noise, const clv_tensor *tensor, uint64_t id, double reach, bool stored,
                    double *values) {
    clv_dtype dtype = tensor->desc.dtype;
    if (!clv__is_float(dtype)) return; // indices and states are exact
    bool half = stored && clv__is_half(dtype);
    double size = FLT_EPSILON * reach + (half ? clv__dtype_epsilon(dtype) : 0);
    double least = half ? clv__dtype_smallest(dtype) * clv__dtype_epsilon(dtype) : 0;
    clv__random random;
    clv__random_init(&random, noise->seed, CLV__STREAM_TEST, (1ull << 40) + id);
    int64_t n = clv__numel(&tensor->desc);
    for (int64_t i = 0; i < n; i++) {
        double lot = noise->size * (2.0 * clv__random_uniform(&random) - 1.0);
        values[i] += lot * (size * values[i] + least);
    }
}

// Errors on inputs and persistents: as much as the longest sum that reads them can make of them.
static clv_status disturb_inputs(clv__values *values, const clv__noise *noise, clv__error *error) {
    const clv_graph *graph = values->graph;
    double *reach = clv__alloc(graph->n_tensors + 1, sizeof *reach);
    if (!reach) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory to disturb %zu tensors", graph->n_tensors);
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const clv__node *node = graph->nodes[n];
        double r = clv__rounding_reach(&node->io, noise->one_way);
        for (int i = 0; i < node->io.n_in; i++)
            if (node->in[i] && reach[node->in[i]->id] < r) reach[node->in[i]->id] = r;
    }
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (!graph->tensors[i]->node) disturb(noise, graph->tensors[i], i, reach[i], false, values->data[i]);
    free(reach);
    return CLV_OK;
}

/** What is too large for the type it is stored in becomes infinite, for whoever reads it too. */
static void overflow(const clv_tensor *tensor, double *values) {
    if (tensor->desc.dtype != CLV_DTYPE_F16) return;
    int64_t n = clv__numel(&tensor->desc);
    for (int64_t i = 0; i < n; i++) {
        if (fabs(values[i]) >= 65520) values[i] = copysign(INFINITY, values[i]);
    }
}

clv_status clv__interpret(clv__values *values, const clv__noise *noise, clv__error *error) {
    const clv_graph *graph = values->graph;
    if (values->n != graph->n_tensors)
        CLV_FAIL(error, CLV_E_STATE, "the graph has grown from %zu to %zu tensors since its values were made",
                 values->n, graph->n_tensors);
    if (noise && noise->size != 0) CLV_TRY(disturb_inputs(values, noise, error));
    for (size_t n = 0; n < graph->n_nodes; n++) {
        const clv__node *node = graph->nodes[n];
        const clv__op *op = node->io.op;
        if (op->view) {
            memcpy(values->data[node->out[0]->id], values->data[node->in[0]->id],
                   (size_t)clv__numel(&node->in[0]->desc) * sizeof(double));
            continue;
        }
        if (!op->reference) CLV_FAIL(error, CLV_E_INTERNAL, "op '%s' has no reference", op->name);
        clv__ref ref = {.io = &node->io};
        for (int i = 0; i < node->io.n_in; i++)
            ref.in[i] = node->in[i] ? values->data[node->in[i]->id] : NULL;
        for (int i = 0; i < node->io.n_out; i++) ref.out[i] = values->data[node->out[i]->id];
        op->reference(&ref);
        for (int i = 0; i < node->io.n_out; i++) overflow(node->out[i], ref.out[i]);
        if (!noise || noise->size == 0) continue;
        double reach = clv__rounding_reach(&node->io, noise->one_way);
        for (int i = 0; i < node->io.n_out; i++)
            disturb(noise, node->out[i], (n + 1) * 64 + (uint64_t)i + (1ull << 32), reach, true, ref.out[i]);
        for (int i = 0; i < node->io.n_in; i++)
            if (op->mutates >> i & 1 && node->in[i])
                disturb(noise, node->in[i], (n + 1) * 64 + 32 + (uint64_t)i + (1ull << 32), reach, true,
                        ref.in[i]);
    }
    return CLV_OK;
}
