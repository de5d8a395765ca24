// SPDX-License-Identifier: Apache-2.0
// Data parallel over a part of a model: the batch is cut along its first dimension, each device computes its rows with the
// same parameters, results are joined. It is all in the graph: the plan carries parameters out and gradients back, autodiff
// adds the gradients in a fixed order. With the loss in it no device waits for another between forward and backward.
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "nn/replicas.h"
#include "nn/batch_rows.h"

static const char CALL[] = "data parallel";

/** Devices, their rows, and what they compute. */
typedef struct replicas {
    const char *const *devices;
    int n;
    int64_t rows[CLV__MOST_REPLICAS]; // 0: a last batch smaller than the number of devices
    clv_tensor *results[CLV__MOST_REPLICAS][CLV_MAX_PORTS];
    int n_used, n_results; // replicas that have rows; results of each
} replicas;

/** What each of them builds: layers, or a loss, which is weighted by its rows. */
typedef struct building {
    clv_layers layers;
    clv_loss_layers loss; // NULL: layers
    void *user;
} building;

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

/** Build each replica, and carry its results to the first. */
static void build(clv_graph *graph, const clv__batch_rows *of, const building *what, replicas *r) {
    const char *before = clv__graph_place(graph);
    const int64_t all = clv_tensor_shape(of->tensors[0]).dims[0];
    int64_t first = 0;
    clv__parts parts = clv__parts_begin(graph);
    for (int i = 0; i < r->n; i++) {
        const int64_t rows = r->rows[i];
        if (rows == 0) continue;
        clv_tensor *own[CLV__MOST_CUT], **results = r->results[r->n_used];
        clv_graph_set_place(graph, r->devices[i]);
        clv__parts_next(graph, &parts, (clv__cut){first, rows, r->n_used, graph->cut.micro_batch});
        for (int t = 0; t < of->n; t++)
            own[t] = clv_to(clv_slice(of->tensors[t], 0, first, rows), r->devices[i]);
        if (what->loss) {
            results[0] = what->loss(own, what->user);
            if (rows < all) results[0] = clv_mul_scalar(results[0], (float)((double)rows / (double)all));
        } else {
            what->layers(own, results, what->user);
        }
        r->n_used++;
        first += rows;
    }
    clv__parts_end(graph, &parts);
    clv_graph_set_place(graph, r->devices[0]);
    for (int i = 0; i < r->n_used; i++)
        for (int k = 0; k < r->n_results; k++) r->results[i][k] = clv_to(r->results[i][k], r->devices[0]);
    clv_graph_set_place(graph, before);
}

/** The k-th result of all replicas as one. */
static clv_tensor *join(const replicas *r, int k) {
    clv_tensor *parts[CLV__MOST_REPLICAS];
    for (int i = 0; i < r->n_used; i++) parts[i] = r->results[i][k];
    return r->n_used == 1 ? parts[0] : clv_concat(parts, r->n_used, 0);
}

void clv_data_parallel(clv_tensor *const *inputs, int n_inputs, const char *const *devices,
                       const double *shares, int n, clv_layers body, void *user, clv_tensor **results,
                       int n_results) {
    const clv__batch_rows of = {inputs, n_inputs};
    const building what = {.layers = body, .user = user};
    clv_graph *graph = clv__batch_rows_graph(&of, CALL);
    replicas r = {.devices = devices, .n = n, .n_results = n_results};
    for (int k = 0; k < n_results; k++) results[k] = NULL;
    if (graph && (n_results < 1 || n_results > CLV_MAX_PORTS)) {
        clv__graph_fail(graph, CLV_E_VALUE, "data parallel: %d results, from 1 to %d are possible", n_results,
                        CLV_MAX_PORTS);
        return;
    }
    if (!graph || !share_out(graph, inputs[0], shares, &r) || !clv__batch_rows_check(graph, &of, CALL))
        return;
    build(graph, &of, &what, &r);
    const char *before = clv__graph_place(graph);
    clv_graph_set_place(graph, devices[0]);
    for (int k = 0; k < n_results; k++) results[k] = join(&r, k);
    clv_graph_set_place(graph, before);
}

static clv_tensor *loss_of(const clv__batch_rows *of, const double *shares, const building *what,
                           replicas *r) {
    clv_graph *graph = clv__batch_rows_graph(of, CALL);
    if (!graph || !share_out(graph, of->tensors[0], shares, r) || !clv__batch_rows_check(graph, of, CALL))
        return NULL;
    build(graph, of, what, r);
    const char *before = clv__graph_place(graph);
    clv_graph_set_place(graph, r->devices[0]);
    clv_tensor *total = r->results[0][0];
    for (int i = 1; i < r->n_used; i++) total = clv_add(total, r->results[i][0]);
    clv_graph_set_place(graph, before);
    return total;
}

clv_tensor *clv_data_parallel_loss(clv_tensor *const *tensors, int n_tensors, const char *const *devices,
                                   const double *shares, int n, clv_loss_layers body, void *user) {
    const clv__batch_rows of = {tensors, n_tensors};
    const building what = {.loss = body, .user = user};
    replicas r = {.devices = devices, .n = n, .n_results = 1};
    return loss_of(&of, shares, &what, &r);
}
