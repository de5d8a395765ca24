// SPDX-License-Identifier: Apache-2.0
// A batch in parts, one after another or in a pipeline. It is all in the graph, as data parallel is: the model once for each
// part with the same parameters, losses weighted by their rows; autodiff adds the gradients. Which part is computed when is
// the plan's business (plan/schedule.c).
//
// Autodiff goes through the nodes backwards, and adds gradients in that order. So the last part is built first: then the
// sums begin with part 0, the one whose backward pass is done first, and one running sum is all that is kept.
#include <inttypes.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "nn/batch_rows.h"

static bool check(clv_graph *graph, const clv__batch_rows *of, int64_t n) {
    if (!clv__batch_rows_check(graph, of, "micro-batches")) return false;
    const int64_t rows = clv_tensor_shape(of->tensors[0]).dims[0];
    if (n < 1 || n > rows) {
        clv__graph_fail(graph, CLV_E_VALUE,
                        "micro-batches: a batch of %" PRId64 " samples cannot be cut into %" PRId64
                        " parts, each needs at least one",
                        rows, n);
        return false;
    }
    if (graph->cut.micro_batch >= 0) {
        clv__graph_fail(graph, CLV_E_STATE, "micro-batches: a part of a batch cannot be cut again");
        return false;
    }
    return true;
}

/** The losses of the parts, weighted, and their sum. */
static clv_tensor *build_parts(clv_graph *graph, const clv__batch_rows *of, int64_t n, clv_loss_layers body,
                               void *user, clv_tensor **losses) {
    int64_t rows = clv_tensor_shape(of->tensors[0]).dims[0], end = rows;
    clv__parts parts = clv__parts_begin(graph);
    for (int64_t i = n - 1; i >= 0; i--) {
        int64_t length = rows / n + (i < rows % n), first = end - length;
        clv_tensor *own[CLV__MOST_CUT];
        clv__parts_next(graph, &parts, (clv__cut){first, length, graph->cut.replica, (int)i});
        // Targets before inputs: any order is right, and this one is that of the plans in tests/golden.
        for (int t = of->n - 1; t >= 0; t--) own[t] = clv_slice(of->tensors[t], 0, first, length);
        losses[i] = clv_mul_scalar(body(own, user), (float)((double)length / (double)rows));
        end = first;
    }
    clv_tensor *total = losses[0];
    for (int64_t i = 1; i < n; i++) {
        graph->cut.micro_batch = (int)i;
        total = clv_add(total, losses[i]);
    }
    clv__parts_end(graph, &parts);
    return total;
}

static clv_tensor *cut(const clv__batch_rows *of, int64_t n, clv_loss_layers body, void *user) {
    clv_graph *graph = clv__batch_rows_graph(of, "micro-batches");
    if (!graph || !check(graph, of, n)) return NULL;
    if (n == 1) return body(of->tensors, user);
    clv_tensor **losses = clv__arena_alloc(&graph->arena, (size_t)n, sizeof *losses);
    if (!losses) return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
    return build_parts(graph, of, n, body, user, losses);
}

clv_tensor *clv_micro_batches(clv_tensor *const *tensors, int n_tensors, int64_t n, clv_loss_layers body,
                              void *user) {
    const clv__batch_rows of = {tensors, n_tensors};
    return cut(&of, n, body, user);
}
