// SPDX-License-Identifier: Apache-2.0
// A graph node by node, for whoever writes it in another form: ops as clv_op_call takes them.
#include "cleave/custom_op.h"
#include "graph/graph.h"
#include "graph/signature.h"

/** Without the random numbers that builders feed, which are the last. */
static int inputs_of(const clv__node *node) {
    const clv_tensor *random = node->out[0]->graph->random;
    int n = node->io.n_in;
    while (n && random && node->in[n - 1] == random) n--;
    return n;
}

bool clv_graph_node_get(const clv_graph *graph, int index, clv_node_info *out) {
    static const char *const phases[] = {"forward", "backward", "update"};
    if (!out) return false;
    *out = (clv_node_info){0};
    if (!graph || index < 0 || (size_t)index >= graph->n_nodes) return false;
    const clv__node *node = graph->nodes[index];
    _Alignas(16) char room[CLV__ATTRS_BYTES] = {0};
    const void *attrs;
    const clv__op *op = clv__call_of(node, room, &attrs);
    *out = (clv_node_info){.op = op->name,
                           .layer = node->layer,
                           .phase = phases[node->phase],
                           .inputs = node->in,
                           .n_inputs = inputs_of(node),
                           .outputs = node->out,
                           .n_outputs = node->io.n_out,
                           .signature = clv_op_find(op->name)};
    if (out->signature)
        out->n_arguments = clv__arguments_of(op->attributes, attrs, out->arguments, out->lists);
    return true;
}
