// SPDX-License-Identifier: Apache-2.0
// Data parallel over a part of a model: the batch is cut along its first dimension, each device computes its rows with the
// same parameters, results are joined. It is all in the graph: the plan carries parameters out and gradients back, autodiff
// adds the gradients in a fixed order. With the loss in it no device waits for another between forward and backward.
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "nn/replicas.h"

/** Devices, their rows, and what they compute. */
typedef struct replicas {
    const char *const *devices;
    int n;
    int64_t rows[CLV__MOST_REPLICAS]; // 0: a last batch smaller than the number of devices
    clv_tensor *results[CLV__MOST_REPLICAS];
    int n_results;
} replicas;

/** The rows of each; false: the graph has failed. */
static bool share_out(clv_graph *graph, const clv_tensor *x, const double *shares, replicas *r) {
    if (clv__replicas_check(graph->runtime, r->devices, shares, r->n, &graph->error) != CLV_OK) return false;
    if (clv_tensor_shape(x).rank == 0) {
        clv__graph_fail(graph, CLV_E_SHAPE, "data parallel: x has no batch dimension");
        return false;
    }
    clv__replica_rows(clv_tensor_shape(x).dims[0], shares, r->n, r->rows);
    return true;
}

/** Rows of x, or of labels, on the device that computes with them. */
static clv_tensor *part_of(clv_tensor *x, int64_t first, int64_t rows, const char *device) {
    return clv_to(clv_slice(x, 0, first, rows), device);
}

/** Build each replica with `layers`, or with `loss` if that is not NULL, weighted by its rows. */
static void build(clv_tensor *x, clv_tensor *labels, clv_layers layers, clv_loss_layers loss, void *user,
                  replicas *r) {
    clv_graph *graph = clv_tensor_graph(x);
    const char *before = clv_graph_place(graph);
    const int64_t all = clv_tensor_shape(x).dims[0];
    int64_t first = 0;
    clv__parts parts = clv__parts_begin(graph);
    for (int i = 0; i < r->n; i++) {
        const int64_t rows = r->rows[i];
        if (rows == 0) continue;
        clv_graph_set_place(graph, r->devices[i]);
        clv__parts_next(graph, &parts, (clv__cut){first, rows, r->n_results, graph->cut.micro_batch});
        clv_tensor *own = part_of(x, first, rows, r->devices[i]), *result;
        if (loss) {
            result = loss(own, part_of(labels, first, rows, r->devices[i]), user);
            if (rows < all) result = clv_mul_scalar(result, (float)((double)rows / (double)all));
        } else {
            result = layers(own, user);
        }
        r->results[r->n_results++] = result;
        first += rows;
    }
    clv__parts_end(graph, &parts);
    clv_graph_set_place(graph, r->devices[0]);
    for (int i = 0; i < r->n_results; i++) r->results[i] = clv_to(r->results[i], r->devices[0]);
    clv_graph_set_place(graph, before);
}

clv_tensor *clv_data_parallel(clv_tensor *x, const char *const *devices, const double *shares, int n,
                              clv_layers body, void *user) {
    clv_graph *graph = clv_tensor_graph(x);
    replicas r = {.devices = devices, .n = n};
    if (!graph || graph->error.status != CLV_OK || !share_out(graph, x, shares, &r)) return NULL;
    build(x, NULL, body, NULL, user, &r);
    const char *before = clv_graph_place(graph);
    clv_graph_set_place(graph, devices[0]);
    clv_tensor *joined = r.n_results == 1 ? r.results[0] : clv_concat(r.results, r.n_results, 0);
    clv_graph_set_place(graph, before);
    return joined;
}

static bool check_labels(clv_graph *graph, const clv_tensor *x, const clv_tensor *labels) {
    clv_shape a = clv_tensor_shape(x), b = clv_tensor_shape(labels);
    if (b.rank > 0 && a.dims[0] == b.dims[0]) return true;
    char of_x[128], of_labels[128];
    clv__graph_fail(graph, CLV_E_SHAPE, "data parallel: x %s and labels %s must have the same number of rows",
                    clv_shape_text(&a, of_x, sizeof of_x), clv_shape_text(&b, of_labels, sizeof of_labels));
    return false;
}

clv_tensor *clv_data_parallel_loss(clv_tensor *x, clv_tensor *labels, const char *const *devices,
                                   const double *shares, int n, clv_loss_layers body, void *user) {
    clv_graph *graph = clv_tensor_graph(x);
    replicas r = {.devices = devices, .n = n};
    if (!graph || !labels || graph->error.status != CLV_OK || !share_out(graph, x, shares, &r)) return NULL;
    if (!check_labels(graph, x, labels)) return NULL;
    build(x, labels, NULL, body, user, &r);
    const char *before = clv_graph_place(graph);
    clv_graph_set_place(graph, devices[0]);
    clv_tensor *total = r.results[0];
    for (int i = 1; i < r.n_results; i++) total = clv_add(total, r.results[i]);
    clv_graph_set_place(graph, before);
    return total;
}
