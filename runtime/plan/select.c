// SPDX-License-Identifier: Apache-2.0
// One variant for each node, and its launches.
#include "graph/quarantine.h"
#include "plan/passes.h"
#include "plan/variants.h"

/** Can the node be done without this variant, which nobody asked for by name, and without those in `too_large`? */
static bool has_another(const clv_plan *plan, const clv__plan_node *at, uint64_t too_large) {
    const clv_device *device = plan->places[at->place].device;
    const clv__op *op = at->node->io.op;
    if (!at->variant || at->chosen == CLV__PINNED) return false;
    for (const clv__variant *v = op->variants; v->name; v++) {
        if (v != at->variant && !(too_large >> (v - op->variants) & 1) &&
            clv__variant_supports(v, &device->info, &at->node->io) && !clv__quarantined(device, op, v))
            return true;
    }
    return false;
}

/** Choose and write down. A variant whose workspace is larger than the device's largest allocation is passed over, if there is
 *  another. */
static clv_status choose_and_lower(clv_plan *plan, clv__plan_node *at) {
    const clv_device *device = plan->places[at->place].device;
    const size_t largest = clv__split_largest(device);
    uint64_t too_large = 0; // a bit for each variant whose workspace is larger than an allocation may be
    for (;;) {
        at->variant = NULL;
        at->chosen = CLV__NO_CHOICE;
        if (at->work == CLV__COMPUTE && !at->node->io.op->view && device->info.type != CLV_DEVICE_HOST)
            CLV_TRY(clv__variant_choose(plan, at, too_large));
        CLV_TRY(clv__variant_write(plan, at));
        if (at->launches.workspace_bytes <= largest || !has_another(plan, at, too_large)) return CLV_OK;
        too_large |= UINT64_C(1) << (at->variant - at->node->io.op->variants);
    }
}

static clv_status run(clv_plan *plan) {
    for (size_t i = 0; i < plan->n_nodes; i++) CLV_TRY(choose_and_lower(plan, &plan->nodes[i]));
    return CLV_OK;
}

const clv__pass clv__pass_select = {.run = run};
