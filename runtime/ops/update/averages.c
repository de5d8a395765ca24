// SPDX-License-Identifier: Apache-2.0
// Running averages of the parameters that an optimizer updates: a tensor of the session and a node for each. The nodes stand after all
// updates, so the plan joins them in few launches; that of a large parameter goes where its update does (plan/early.c).
#include "ops/update/averages.h"

#include "ops/update/custom_optimizer.h"

static clv_tensor *average_of(clv_tensor *parameter) {
    clv_graph *graph = parameter->graph;
    char name[1200];
    if (!clv__average_name(parameter->name, name, sizeof name))
        return clv__graph_fail(graph, CLV_E_VALUE, "the name '%.1000s.average' is too long", parameter->name);
    if (clv_graph_find(graph, name))
        return clv__graph_fail(
            graph, CLV_E_VALUE,
            "ema_decay: there is a '%.1000s' already, and the average of '%.100s' would be "
            "kept under that name",
            name, parameter->name);
    return clv__persistent(graph, name, parameter->desc, (clv_init){.kind = CLV_INIT_ZEROS}, CLV_OPTIMIZER,
                           false);
}

void clv_averages_add(clv_graph *graph, double decay) {
    if (!graph || graph->error.status != CLV_OK) return;
    if (!(decay > 0 && decay < 1)) {
        clv__graph_fail(graph, CLV_E_VALUE, "an ema_decay of %g: it must be between 0 and 1 (0: no averages)",
                        decay);
        return;
    }
    if (!graph->hyper) {
        clv__graph_fail(graph, CLV_E_STATE, "averages of parameters need an optimizer that updates them");
        return;
    }
    const clv__gradients all = {.factor = graph->update_factor, .hyper = graph->update_hyper};
    graph->phase = CLV__UPDATE;
    for (size_t i = 0, n = graph->n_tensors; i < n && graph->error.status == CLV_OK; i++) {
        clv_tensor *parameter = graph->tensors[i];
        if (!parameter->trainable || !parameter->gradient) continue;
        clv_tensor *average = average_of(parameter);
        graph->layer_override = parameter->layer;
        if (average) clv__assign_add(average, parameter, decay, &all);
    }
    graph->layer_override = NULL;
    graph->phase = CLV__FORWARD;
}
