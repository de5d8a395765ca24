// SPDX-License-Identifier: Apache-2.0
// Tensors whose rows are samples of one batch; see batch_rows.h.
#include "nn/batch_rows.h"

#include "graph/graph.h"

clv_graph *clv__batch_rows_graph(const clv__batch_rows *of, const char *call) {
    clv_graph *graph = of->n > 0 && of->tensors ? clv_tensor_graph(of->tensors[0]) : NULL;
    if (!graph || graph->error.status != CLV_OK) return NULL;
    if (of->n > CLV__MOST_CUT) {
        clv__graph_fail(graph, CLV_E_VALUE, "%s: %d tensors, %d are possible", call, of->n, CLV__MOST_CUT);
        return NULL;
    }
    for (int i = 1; i < of->n; i++)
        if (!of->tensors[i]) return NULL;
    return graph;
}

bool clv__batch_rows_check(clv_graph *graph, const clv__batch_rows *of, const char *call) {
    const clv_shape a = clv_tensor_shape(of->tensors[0]);
    char of_first[128], of_other[128];
    if (of->n == 1 && a.rank == 0) {
        clv__graph_fail(graph, CLV_E_SHAPE, "%s: %s has no batch dimension", call,
                        clv_tensor_name(of->tensors[0]));
        return false;
    }
    for (int i = 1; i < of->n; i++) {
        const clv_shape b = clv_tensor_shape(of->tensors[i]);
        if (a.rank > 0 && b.rank > 0 && a.dims[0] == b.dims[0]) continue;
        clv__graph_fail(graph, CLV_E_SHAPE, "%s: %s %s and %s %s must have the same number of rows", call,
                        clv_tensor_name(of->tensors[0]), clv_shape_text(&a, of_first, sizeof of_first),
                        clv_tensor_name(of->tensors[i]), clv_shape_text(&b, of_other, sizeof of_other));
        return false;
    }
    return true;
}
