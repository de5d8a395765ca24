// SPDX-License-Identifier: Apache-2.0
// Which updates go by themselves.
#include "plan/updates.h"

#include "ops/product/gemm.h"

/** Bytes of a gradient, from which on a launch of its own costs little: by then a unit of a GPU has work for several times as long
 *  as a launch takes. */
static size_t large(const clv_device_info *device) {
    enum { LEAST = 1 << 20, OF_A_UNIT = 32 << 10 };
    const size_t of_units = clv__threads(device) ? 0 : (size_t)(clv__lanes_units(device) * OF_A_UNIT);
    return of_units > LEAST ? of_units : LEAST;
}

bool clv__update_is_early(const clv_plan *plan, const clv__plan_node *at) {
    if (plan->n_places != 1 || plan->no_fuse || !clv__by_kernels(plan, at)) return false;
    const clv__op *op = at->node->io.op;
    if (at->node->phase != CLV__UPDATE || !op->mutates || op->groups.size == 0 ||
        clv__groups_of(&at->node->io) != 1)
        return false;
    for (int i = 0; i < op->groups.first; i++) {
        const clv_tensor *shared = at->node->in[i]; // by all updates: what makes it wants all gradients
        if (shared && shared->node) return false;
    }
    size_t most = 0; // of what it reads and does not change
    for (int i = op->groups.first; i < at->node->io.n_in; i++) {
        if (at->in[i] < 0 || op->mutates >> i & 1) continue;
        const size_t bytes = plan->values[at->in[i]].bytes;
        if (bytes > most) most = bytes;
    }
    return most >= large(&plan->places[at->place].device->info);
}
