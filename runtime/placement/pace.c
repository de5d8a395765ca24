// SPDX-License-Identifier: Apache-2.0
// How the devices of a plan keep each other waiting. The plan's order is walked with a clock for each device,
// and a receive waits for its sender. Where the speed of every device was measured before, nodes and
// transfers take the time that follows from it. Otherwise all devices count as equally fast: a node takes the
// time of its op's cost on a nominal device, and a transfer takes none.
#include "placement/pace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cache.h"

double clv__speed_seconds(const clv__speed *speed, const clv_plan *plan, const clv__plan_node *node) {
    if (node->work != CLV__COMPUTE) {
        const clv__transfer *transfer = &plan->transfers[node->transfer];
        double bytes = transfer->shared ? 0 : (double)transfer->bytes;
        return speed->launch + bytes / (node->work == CLV__SEND ? speed->read : speed->write);
    }
    if (node->node->io.op->view || node->once) return 0;
    clv__cost cost = {0};
    clv__op_cost(&node->node->io, &cost);
    double computing = cost.flops / speed->flops, moving = cost.bytes / speed->bytes;
    return (computing > moving ? computing : moving) + (double)node->launches.n * speed->launch;
}

// ---- kept speeds ------------------------------------------------------------------------------------------

static clv__cache_key key_of(clv_device *device) {
    char what[64]; // a part of a device has the label of the whole
    snprintf(what, sizeof what, "measured speed 1, %u units", (unsigned)device->info.compute_units);
    return clv__cache_key_of(device, what, "");
}

bool clv__speed_kept(clv_device *device, clv__speed *out) {
    void *data;
    size_t bytes;
    if (device->runtime->config.no_cache || !clv__cache_read(device, key_of(device), &data, &bytes))
        return false;
    clv__speed kept = {0};
    bool good = bytes == sizeof kept;
    if (good) memcpy(&kept, data, sizeof kept);
    free(data);
    good = good && kept.flops > 0 && kept.bytes > 0 && kept.read > 0 && kept.write > 0 && kept.launch > 0;
    if (good) *out = kept;
    return good;
}

void clv__speed_keep(clv_device *device, const clv__speed *speed) {
    if (!device->runtime->config.no_cache) clv__cache_write(device, key_of(device), speed, sizeof *speed);
}

/** Those of all places; false if one is not known. */
static bool find_speeds(const clv_plan *plan, clv__speed *speeds) {
    for (int i = 0; i < plan->n_places; i++) {
        if (!clv__speed_kept(plan->places[i].device, &speeds[i])) return false;
    }
    return true;
}

// ---- waits ------------------------------------------------------------------------------------------------

/** Walk the plan; returns when the last place is done. speeds, clock, busy: by place; sent: by transfer; the
 *  last three all zero before. speeds NULL: nominal devices. */
static double walk(const clv_plan *plan, const clv__speed *speeds, double *clock, double *busy,
                   double *sent) {
    double end = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *node = &plan->nodes[i];
        double *now = &clock[node->place];
        if (node->work == CLV__RECEIVE && sent[node->transfer] > *now) *now = sent[node->transfer];
        double seconds =
            speeds ? clv__speed_seconds(&speeds[node->place], plan, node) : clv__node_seconds(node);
        *now += seconds;
        if (node->work == CLV__SEND) sent[node->transfer] = *now;
        busy[node->place] += seconds;
        if (*now > end) end = *now;
    }
    return end;
}

/** See clv_plan_device_info. */
static double busy_of(const clv_plan *plan, const clv_device *device) {
    const clv__place *place = clv__plan_place_of(plan, device);
    if (!place) return 0;
    double *clock = clv__alloc((size_t)plan->n_places, sizeof *clock),
           *busy = clv__alloc((size_t)plan->n_places, sizeof *busy),
           *sent = clv__alloc(plan->n_transfers, sizeof *sent), part = 0;
    clv__speed *speeds = clv__alloc((size_t)plan->n_places, sizeof *speeds);
    if (clock && busy && sent && speeds) {
        bool known = find_speeds(plan, speeds);
        double end = walk(plan, known ? speeds : NULL, clock, busy, sent);
        part = end > 0 ? busy[place - plan->places] / end : 0;
    }
    free(clock);
    free(busy);
    free(sent);
    free(speeds);
    return part;
}

clv_plan_device_info clv_plan_device_info_get(const clv_plan *plan, const clv_device *device) {
    if (!plan) return (clv_plan_device_info){0};
    return (clv_plan_device_info){.busy = busy_of(plan, device),
                                  .least_seconds = clv__plan_least_seconds(plan, device)};
}
