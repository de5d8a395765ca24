// SPDX-License-Identifier: Apache-2.0
// Building the programs of plans. A variant that does not compile on a device is put into quarantine, and the
// plan is made again with the next best one: a slower right kernel runs instead.
#include <stdlib.h>
#include <string.h>

#include "device/helpers/helpers.h"
#include "device/helpers/notes.h"
#include "device/program.h"
#include "exec/session.h"
#include "graph/quarantine.h"

/** Append the launches that a plan has on a device. */
static size_t add_launches(const clv_plan *plan, const clv_device *device, const clv__launch **list) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        if (plan->places[at->place].device != device) continue;
        for (size_t j = 0; j < at->launches.n; j++, n++) {
            if (list) list[n] = &at->launches.items[j];
        }
    }
    return n;
}

/** Build on one device what all plans want there: together, since some compilers take their time for each
 *  program. */
static clv_status build_on(clv_device *device, clv_plan *const *plans, int n_plans) {
    size_t n = 0;
    for (int p = 0; p < n_plans; p++) n += add_launches(plans[p], device, NULL);
    const clv__launch **launches = clv__alloc(n, sizeof *launches);
    if (!launches) CLV_FAIL(clv__plan_error(plans[0]), CLV_E_HOST_MEMORY, "no host memory");
    n = 0;
    for (int p = 0; p < n_plans; p++) n += add_launches(plans[p], device, launches + n);
    clv_status status = clv__device_open(device);
    if (status == CLV_OK) {
        clv__ahead *ahead = clv__ahead_begin(device, launches, n, add_launches(plans[0], device, NULL));
        status = clv__programs_build(device, launches, n);
        clv__ahead_tell(ahead, status == CLV_OK);
    }
    free(launches);
    return status;
}

static bool has_device(const clv_plan *plan, int n_places, const clv_device *device) {
    for (int place = 0; place < n_places; place++) {
        if (plan->places[place].device == device) return true;
    }
    return false;
}

/** Build on every device, each once. */
static clv_status build_all(clv_plan *const *plans, int n_plans) {
    for (int p = 0; p < n_plans; p++) {
        for (int place = 0; place < plans[p]->n_places; place++) {
            clv_device *device = plans[p]->places[place].device;
            bool done = has_device(plans[p], place, device);
            for (int before = 0; before < p && !done; before++)
                done = has_device(plans[before], plans[before]->n_places, device);
            if (!done) CLV_TRY(build_on(device, plans, n_plans));
        }
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
        if (!at->variant || clv__quarantined(device, at->node->io.op, at->variant)) continue;
        for (size_t j = 0; j < at->launches.n; j++) {
            const clv__launch *launch = &at->launches.items[j];
            clv_status status = clv__programs_build(device, &launch, 1);
            if (status == CLV_OK) continue;
            if (status != CLV_E_BUILD) return status;
            char why[CLV__ERROR_BYTES];
            clv__error_read(error, why);
            CLV_TRY(clv__quarantine_add(device, at->node->io.op, at->variant, why));
            clv__notes_avoid(device, at->node->io.op->name, at->variant->name, why);
            (*n_broken)++;
            break;
        }
    }
    return CLV_OK;
}

/** A plan by itself. What was built with others is there already. */
static clv_status prepare(clv_plan *plan) {
    while (!plan->prepared) {
        clv_status status = build_all(&plan, 1);
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

/** What CLEAVE_DEBUG asks for: from 2 a plan's launches. From 3 the plan itself is told when it is made:
 *  plan/print.h. */
static void tell(const clv_plan *plan) {
    static const char *const kinds[] = {[CLV__LAUNCH_COPY] = "copy",
                                        [CLV__LAUNCH_FILL] = "fill",
                                        [CLV__LAUNCH_GEMM] = "gemm",
                                        [CLV__LAUNCH_REFERENCE] = "reference"};
    clv_runtime *runtime = plan->graph->runtime;
    for (size_t i = 0; runtime->debug >= 2 && i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        const char *device = plan->places[at->place].device->name, *layer = at->node ? at->node->layer : "";
        for (size_t j = 0; j < at->launches.n; j++) {
            const clv__launch *launch = &at->launches.items[j];
            const size_t *global = launch->grid.global, *local = launch->grid.local;
            if (launch->kind == CLV__LAUNCH_KERNEL)
                clv__log(runtime, CLV_LOG_DEBUG,
                         "launch: %s of '%s' on %s, %zu x %zu x %zu in groups of %zu x %zu x %zu",
                         launch->entry, layer, device, global[0], global[1], global[2], local[0], local[1],
                         local[2]);
            else
                clv__log(runtime, CLV_LOG_DEBUG, "launch: %s of '%s' on %s", kinds[launch->kind], layer,
                         device);
        }
    }
}

clv_status clv__plans_prepare(clv_plan *const *plans, int n) {
    bool prepared = true;
    for (int p = 0; p < n; p++) prepared &= plans[p]->prepared;
    if (prepared) return CLV_OK;
    clv_status status = build_all(plans, n);
    if (status != CLV_OK && status != CLV_E_BUILD) return status; // whose it is, is found below
    for (int p = 0; p < n; p++) {
        const bool news = !plans[p]->prepared;
        CLV_TRY(prepare(plans[p]));
        if (news) tell(plans[p]);
    }
    return CLV_OK;
}
