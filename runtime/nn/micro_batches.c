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

static bool check(clv_graph *graph, const clv_tensor *x, const clv_tensor *labels, int64_t n) {
    clv_shape a = clv_tensor_shape(x), b = clv_tensor_shape(labels);
    if (a.rank == 0 || b.rank == 0 || a.dims[0] != b.dims[0]) {
        char of_x[128], of_labels[128];
        clv__graph_fail(
            graph, CLV_E_SHAPE, "micro-batches: x %s and labels %s must have the same number of rows",
            clv_shape_text(&a, of_x, sizeof of_x), clv_shape_text(&b, of_labels, sizeof of_labels));
        return false;
    }
    if (n < 1 || n > a.dims[0]) {
        clv__graph_fail(graph, CLV_E_VALUE,
                        "micro-batches: a batch of %" PRId64 " samples cannot be cut into %" PRId64
                        " parts, each needs at least one",
                        a.dims[0], n);
        return false;
    }
    if (graph->cut.micro_batch >= 0) {
        clv__graph_fail(graph, CLV_E_STATE, "micro-batches: a part of a batch cannot be cut again");
        return false;
    }
    return true;
}

/** The losses of the parts, weighted, and their sum. */
static clv_tensor *build_parts(clv_tensor *x, clv_tensor *labels, int64_t n, clv_loss_layers body, void *user,
                               clv_tensor **losses) {
    clv_graph *graph = clv_tensor_graph(x);
    int64_t rows = clv_tensor_shape(x).dims[0], end = rows;
    clv__parts parts = clv__parts_begin(graph);
    for (int64_t i = n - 1; i >= 0; i--) {
        int64_t length = rows / n + (i < rows % n), first = end - length;
        clv__parts_next(graph, &parts, (clv__cut){first, length, graph->cut.replica, (int)i});
        clv_tensor *loss = body(clv_slice(x, 0, first, length), clv_slice(labels, 0, first, length), user);
        losses[i] = clv_mul_scalar(loss, (float)((double)length / (double)rows));
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

clv_tensor *clv_micro_batches(clv_tensor *x, clv_tensor *labels, int64_t n, clv_loss_layers body,
                              void *user) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph || !labels || graph->error.status != CLV_OK) return NULL;
    if (!check(graph, x, labels, n)) return NULL;
    if (n == 1) return body(x, labels, user);
    clv_tensor **losses = clv__arena_alloc(&graph->arena, (size_t)n, sizeof *losses);
    if (!losses) return clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the graph");
    return build_parts(x, labels, n, body, user, losses);
}
