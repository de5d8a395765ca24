// SPDX-License-Identifier: Apache-2.0
// How the devices of a plan keep each other waiting: its order of execution walked with a clock for each place. A node takes as
// long as its op's cost says on a nominal device, a transfer no time at all, a receive waits for its sender.
#include <stdlib.h>

#include "plan/plan.h"

static const double FLOPS = 100e9, BYTES = 10e9; // a second, of a nominal device: only their ratio matters

double clv__node_seconds(const clv__plan_node *at) {
    const clv__node *node = at->node;
    clv__cost cost;
    if (at->work != CLV__COMPUTE || node->io.op->view) return 0;
    clv__op_cost(&node->io, &cost);
    double compute = cost.flops / FLOPS, move = cost.bytes / BYTES;
    return compute > move ? compute : move;
}

/** Walk the plan; returns when the last place is done. clock, busy: by place; sent: by transfer; all zero before. */
static double walk(const clv_plan *plan, double *clock, double *busy, double *sent) {
    double end = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        double *now = &clock[node->place];
        if (node->work == CLV__SEND) sent[node->transfer] = *now;
        if (node->work == CLV__RECEIVE && sent[node->transfer] > *now) *now = sent[node->transfer];
        double seconds = clv__node_seconds(node);
        *now += seconds;
        busy[node->place] += seconds;
        if (*now > end) end = *now;
    }
    return end;
}

double clv_plan_busy(const clv_plan *plan, const clv_device *device) {
    const clv__place *place = clv__plan_place_of(plan, device);
    if (!place) return 0;
    double *clock = clv__alloc((size_t)plan->n_places, sizeof *clock),
           *busy = clv__alloc((size_t)plan->n_places, sizeof *busy),
           *sent = clv__alloc(plan->n_transfers, sizeof *sent), part = 0;
    if (clock && busy && sent) {
        double end = walk(plan, clock, busy, sent);
        part = end > 0 ? busy[place - plan->places] / end : 0;
    }
    free(clock);
    free(busy);
    free(sent);
    return part;
}
