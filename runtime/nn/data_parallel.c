// SPDX-License-Identifier: Apache-2.0
// Data parallel over a part of a model: the batch is cut along its first dimension, each device computes its rows with the
// same parameters, results are joined. It is all in the graph: the plan carries parameters out and gradients back, autodiff
// adds the gradients in a fixed order.
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "nn/replicas.h"

clv_tensor *clv_data_parallel(clv_tensor *x, const char *const *devices, const double *shares, int n,
                              clv_layers body, void *user) {
    clv_graph *graph = clv_tensor_graph(x);
    int64_t rows[CLV__MOST_REPLICAS], first = 0;
    if (!graph || graph->error.status != CLV_OK) return NULL;
    if (clv__replicas_check(graph->runtime, devices, shares, n, &graph->error) != CLV_OK) return NULL;
    if (clv_tensor_shape(x).rank == 0)
        return clv__graph_fail(graph, CLV_E_SHAPE, "data parallel: x has no batch dimension");
    clv__replica_rows(clv_tensor_shape(x).dims[0], shares, n, rows);

    const char *before = clv_graph_place(graph);
    clv_tensor *results[CLV__MOST_REPLICAS];
    clv__parts parts = clv__parts_begin(graph);
    int n_results = 0;
    for (int i = 0; i < n; i++) {
        if (rows[i] == 0) continue; // a last batch smaller than the number of devices
        clv_graph_set_place(graph, devices[i]);
        clv__parts_next(graph, &parts, (clv__cut){first, rows[i], n_results, graph->cut.micro_batch});
        results[n_results++] = body(clv_to(clv_slice(x, 0, first, rows[i]), devices[i]), user);
        first += rows[i];
    }
    clv__parts_end(graph, &parts);
    clv_graph_set_place(graph, devices[0]);
    for (int i = 0; i < n_results; i++) results[i] = clv_to(results[i], devices[0]);
    clv_tensor *joined = n_results == 1 ? results[0] : clv_concat(results, n_results, 0);
    clv_graph_set_place(graph, before);
    return joined;
}
