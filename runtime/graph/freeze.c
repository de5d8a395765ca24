// SPDX-License-Identifier: Apache-2.0
// Freezing: parameters that no gradient is computed for, and what follows from that for all that was built on them.
#include <string.h>

#include "base/modules.h"
#include "graph/graph.h"

/** Values that wanted a gradient only because of what is frozen now want none any more. */
static void spread(clv_graph *graph, bool *frozen) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__node *node = graph->nodes[i];
        bool had = false, has = false;
        for (int k = 0; k < node->io.n_in; k++) {
            if (!node->in[k]) continue;
            had |= frozen[node->in[k]->id];
            has |= node->in[k]->requires_grad;
        }
        for (int k = 0; k < node->io.n_out && had && !has; k++) {
            frozen[node->out[k]->id] |= node->out[k]->requires_grad;
            node->out[k]->requires_grad = false;
        }
    }
}

/** Freeze what one pattern covers; false: it covers nothing, and the graph has failed. */
static bool freeze_one(clv_graph *graph, const char *pattern, bool *frozen) {
    clv__nearest nearest = {.word = pattern};
    bool found = false;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        clv_tensor *tensor = graph->tensors[i];
        if (!tensor->trainable) continue;
        clv__nearest_offer_modules(&nearest, tensor->name);
        if (!clv__pattern_covers(pattern, tensor->name)) continue;
        found = true;
        frozen[tensor->id] |= tensor->requires_grad;
        tensor->requires_grad = false;
    }
    if (!found)
        clv__graph_fail(graph, CLV_E_NOT_FOUND, "freeze: no parameter matches '%s'%s", pattern,
                        clv__nearest_text(&nearest));
    return found;
}

static bool is_backward(const clv_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->phase == CLV__BACKWARD) return true;
    }
    return false;
}

/** Memory for a mark on each tensor; NULL: the graph has failed. `what` is for the sentence. */
static bool *begin(clv_graph *graph, const char *what) {
    if (is_backward(graph)) {
        clv__graph_fail(graph, CLV_E_STATE, "freeze '%s': clv_backward was called before", what);
        return NULL;
    }
    bool *frozen = clv__arena_alloc(&graph->arena, graph->n_tensors + 1, sizeof *frozen);
    if (!frozen) clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
    return frozen;
}

static void end(clv_graph *graph, const char *what, bool *frozen) {
    spread(graph, frozen);
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i]->kind != CLV__VALUE && graph->tensors[i]->requires_grad) return;
    clv__graph_fail(graph, CLV_E_VALUE, "freeze '%s': nothing is left to train", what);
}

void clv_freeze(clv_graph *graph, const char *patterns) {
    char pattern[CLV__PATTERN_BYTES];
    if (!graph || graph->error.status != CLV_OK || !patterns) return;
    bool *frozen = begin(graph, patterns);
    if (!frozen) return;
    for (const char *rest = patterns; clv__patterns_take(&rest, pattern);)
        if (!freeze_one(graph, pattern, frozen)) return;
    end(graph, patterns, frozen);
}

void clv__freeze_if(clv_graph *graph, bool (*covers)(const void *user, const clv_tensor *parameter),
                    const void *user, const char *what) {
    bool *frozen = begin(graph, what);
    if (!frozen) return;
    for (size_t i = 0; i < graph->n_tensors; i++) {
        clv_tensor *tensor = graph->tensors[i];
        if (!tensor->trainable || !covers(user, tensor)) continue;
        frozen[tensor->id] |= tensor->requires_grad;
        tensor->requires_grad = false;
    }
    end(graph, what, frozen);
}
