// SPDX-License-Identifier: Apache-2.0
// to: the same values on another device. The plan carries them; the op itself is a view of what arrived.
#include "cleave/ops.h"
#include "graph/graph.h"
#include "graph/signature.h"

static clv_status to_infer(clv__op_io *io, clv__error *error) {
    if (!clv__has_in(io, 0)) CLV_FAIL(error, CLV_E_VALUE, "x is missing");
    return clv__one_out(io, io->in[0]);
}

/** The gradient is used by what made x, and is carried to where that is. */
static void to_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    (void)node;
    dx[0] = dy[0];
}

static const clv__sample_row to_samples[] = {{"x [1]", {CLV__DIMS(1)}, .n_in = 1},
                                             {"x [2,3,5]", {CLV__DIMS(2, 3, 5)}, .quick = true},
                                             {"x [0]", {CLV__DIMS(0)}, .n_in = 1},
                                             {0}};

typedef struct to_call {
    const char *device;
} to_call;

static clv_tensor *build(const clv__call *call) {
    const char *device = ((const to_call *)call->attrs)->device, *before = clv__graph_place(call->graph);
    if (!*device) return clv__graph_fail(call->graph, CLV_E_VALUE, "clv_to needs a device");
    clv_graph_set_place(call->graph, device);
    clv_tensor *result = clv__node_add(call->op, NULL, call->in, 1, 0);
    clv_graph_set_place(call->graph, before);
    return result;
}

static const clv__op *call_of(const clv__node *node, void *attrs) {
    *(to_call *)attrs = (to_call){clv__node_place(node)};
    return clv__node_io(node)->op;
}

CLV__OP(to) = {.name = "to",
               .inputs = CLV__INPUTS({"x", "any"}),
               .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(TEXT, to_call, device, NULL)}),
               .outputs = CLV__OUTPUTS({"y", "like x"}),
               .attributes_of_call = true,
               .build = build,
               .call_of = call_of,
               .view = true,
               .moves = true,
               .half_in = 1,
               .half_out = 1,
               .infer = to_infer,
               .grad = CLV__TRAINS(to_grad),
               .samples = CLV__TRAINS(to_samples),
               .split = clv__split_first};
