// SPDX-License-Identifier: Apache-2.0
// Data parallel over a part of a model: the batch is cut along its first dimension, each device computes its rows with the
// same parameters, results are joined. It is all in the graph: the plan carries parameters out and gradients back, autodiff
// adds the gradients in a fixed order.
#include <string.h>

#include "base/error.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "graph/op.h"

enum { MOST_REPLICAS = CLV__MAX_IN };

/** Rows of each device: its share of the batch, whole numbers that sum to the batch. What rounding leaves goes to the first. */
static bool cut(clv_graph *graph, int64_t batch, const char *const *devices, const double *shares, int n,
                int64_t *rows) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double share = shares ? shares[i] : 1.0 / n;
        if (!(share > 0)) {
            clv__graph_fail(graph, CLV_E_VALUE, "data parallel: the share of %s is %g, it must be above 0",
                            devices[i], share);
            return false;
        }
        sum += share;
    }
    if (sum < 1 - 1e-6 || sum > 1 + 1e-6) {
        clv__graph_fail(graph, CLV_E_VALUE, "data parallel: the shares sum to %g, they must sum to 1", sum);
        return false;
    }
    int64_t left = batch;
    for (int i = 0; i < n; i++) {
        rows[i] = (int64_t)((double)batch * (shares ? shares[i] : 1.0 / n));
        left -= rows[i];
    }
    for (int i = 0; left > 0; i = (i + 1) % n, left--) rows[i]++;
    return true;
}

static bool check_devices(clv_graph *graph, const char *const *devices, int n) {
    if (n < 1 || n > MOST_REPLICAS) {
        clv__graph_fail(graph, CLV_E_VALUE, "data parallel: %d devices, from 1 to %d are possible", n,
                        MOST_REPLICAS);
        return false;
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) {
            if (devices[i] == devices[j] || !devices[i] || !devices[j] ||
                strcmp(devices[i], devices[j]) == 0) {
                clv__graph_fail(graph, CLV_E_VALUE, "data parallel: device '%s' is named twice",
                                devices[i] ? devices[i] : "");
                return false;
            }
        }
    }
    return true;
}

clv_tensor *clv_data_parallel(clv_tensor *x, const char *const *devices, const double *shares, int n,
                              clv_layers body, void *user) {
    clv_graph *graph = clv_tensor_graph(x);
    int64_t rows[MOST_REPLICAS], first = 0;
    if (!graph || !check_devices(graph, devices, n)) return NULL;
    if (clv_tensor_shape(x).rank == 0)
        return clv__graph_fail(graph, CLV_E_SHAPE, "data parallel: x has no batch dimension");
    if (!cut(graph, clv_tensor_shape(x).dims[0], devices, shares, n, rows)) return NULL;

    const char *before = clv_graph_place(graph);
    clv_tensor *results[MOST_REPLICAS];
    int n_results = 0;
    for (int i = 0; i < n; i++) {
        if (rows[i] == 0) continue; // a last batch smaller than the number of devices
        clv_graph_set_place(graph, devices[i]);
        size_t since = 0; // the first replica's names are new ones, those after it use them again
        if (n_results > 0) since = clv__layers_again(graph);
        results[n_results++] = body(clv_to(clv_slice(x, 0, first, rows[i]), devices[i]), user);
        if (n_results > 1) clv__layers_since(graph, since);
        first += rows[i];
    }
    clv_graph_set_place(graph, devices[0]);
    for (int i = 0; i < n_results; i++) results[i] = clv_to(results[i], devices[0]);
    clv_tensor *joined = n_results == 1 ? results[0] : clv_concat(results, n_results, 0);
    clv_graph_set_place(graph, before);
    return joined;
}
