// SPDX-License-Identifier: Apache-2.0
// Building a plan's programs. A variant that does not compile on a device is put into quarantine, and the plan is made
// again with the next best one: a slower right kernel runs instead.
#include <stdlib.h>
#include <string.h>

#include "device/program.h"
#include "exec/session.h"

static clv_status build_place(clv_plan *plan, int place) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) n += plan->nodes[i].launches.n;
    const clv__launch **launches = clv__alloc(n, sizeof *launches);
    if (!launches) CLV_FAIL(clv__plan_error(plan), CLV_E_HOST_MEMORY, "no host memory");
    n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        if (plan->nodes[i].place != place) continue;
        for (size_t j = 0; j < plan->nodes[i].launches.n; j++)
            launches[n++] = &plan->nodes[i].launches.items[j];
    }
    clv_status status = clv__programs_build(plan->places[place].device, launches, n);
    free(launches);
    return status;
}

static clv_status build_all(clv_plan *plan) {
    for (int place = 0; place < plan->n_places; place++) {
        CLV_TRY(clv__device_open(plan->places[place].device));
        CLV_TRY(build_place(plan, place));
    }
    return CLV_OK;
}

/** Find the nodes whose kernels do not build, one at a time, and quarantine their variants. */
static clv_status quarantine_broken(clv_plan *plan, int *n_broken) {
    clv__error *error = clv__plan_error(plan);
    *n_broken = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        clv_device *device = plan->places[at->place].device;
        if (!at->variant || clv__quarantined(device, at->node->io.op, at->variant->name)) continue;
        for (size_t j = 0; j < at->launches.n; j++) {
            const clv__launch *launch = &at->launches.items[j];
            clv_status status = clv__programs_build(device, &launch, 1);
            if (status == CLV_OK) continue;
            if (status != CLV_E_BUILD) return status;
            char why[CLV__ERROR_BYTES];
            memcpy(why, error->text, sizeof why);
            CLV_TRY(clv__quarantine_add(device, at->node->io.op, at->variant->name, why));
            (*n_broken)++;
            break;
        }
    }
    return CLV_OK;
}

clv_status clv__plan_prepare(clv_plan *plan) {
    while (!plan->prepared) {
        clv_status status = build_all(plan);
        if (status == CLV_OK) {
            plan->prepared = true;
        } else if (status == CLV_E_BUILD && !plan->pins) {
            int n_broken;
            CLV_TRY(quarantine_broken(plan, &n_broken));
            if (n_broken == 0) return status;
            CLV_TRY(clv__plan_again(plan)); // fails when no variant of an op is left
        } else {
            return status;
        }
    }
    return CLV_OK;
}
