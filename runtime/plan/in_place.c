// SPDX-License-Identifier: Apache-2.0
// Outputs are written over inputs that die there, where the op allows it: they become one memory.
#include "plan/passes.h"

static bool may_share(clv__segment segment) {
    return segment == CLV__IN_ACTIVATIONS || segment == CLV__IN_GRADIENTS;
}

/** Input i may be written over by a result of its size in its arena: it dies here, nothing else of the node reads its
 *  memory. */
static bool dies_alone(clv_plan *plan, int at, int i, const clv__value *out) {
    const clv__plan_node *node = &plan->nodes[at];
    int root = clv__value_root(plan, node->in[i]);
    const clv__value *from = &plan->values[root];
    if (from->segment != out->segment || from->last != at || from->bytes != out->bytes ||
        from->layout != out->layout)
        return false;
    for (int j = 0; j < CLV__MAX_IN; j++) {
        if (j != i && node->in[j] >= 0 && clv__value_root(plan, node->in[j]) == root) return false;
    }
    return true;
}

static clv_status run(clv_plan *plan) {
    for (int at = 0; at < (int)plan->n_nodes; at++) {
        const clv__plan_node *node = &plan->nodes[at];
        if (node->work != CLV__COMPUTE || plan->places[node->place].device->info.type == CLV_DEVICE_HOST)
            continue;
        const uint64_t allowed = node->node->io.op->inplace;
        int out = node->out[0];
        if (!allowed || out < 0 || clv__value_root(plan, out) != out || !may_share(plan->values[out].segment))
            continue;
        for (int i = 0; i < CLV__MAX_IN; i++) {
            if (!(allowed >> i & 1) || node->in[i] < 0 || !dies_alone(plan, at, i, &plan->values[out]))
                continue;
            int in = clv__value_root(plan, node->in[i]);
            // the output's memory, and with it that of its views, is now the input's
            if (plan->values[in].last < plan->values[out].last)
                plan->values[in].last = plan->values[out].last;
            plan->values[out].root = in;
            plan->values[out].within = 0;
            break;
        }
    }
    for (size_t i = 0; i < plan->n_values; i++) plan->values[i].root = clv__value_root(plan, (int)i);
    return CLV_OK;
}

const clv__pass clv__pass_in_place = {.run = run};
