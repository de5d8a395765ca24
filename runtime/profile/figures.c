// SPDX-License-Identifier: Apache-2.0
// Profiles, asked: averages over steps, and sums over nodes.
#include <stdlib.h>
#include <string.h>

#include "exec/profile.h"

static const clv__profiled *run_of(const clv_profile *profile, int run) {
    return run >= 0 && run < clv_profile_info_get(profile).n_runs ? profile->runs[run] : NULL;
}

/** A sum as an average over the run's steps. */
static double average(const clv__profiled *profiled, double sum) {
    return profiled->n_steps ? sum / (double)profiled->n_steps : 0;
}

static bool does_something(const clv__profiled_row *row) {
    return row->transfer ? row->node.node.traffic > 0 : row->node.node.launches > 0;
}

clv_profile_run clv_profile_run_get(const clv_profile *profile, int run) {
    const clv__profiled *profiled = run_of(profile, run);
    if (!profiled) return (clv_profile_run){0};
    double busy = 0;
    int n_known = 0, n_nodes = 0;
    for (int i = 0; i < profiled->n_rows; i++) n_nodes += does_something(&profiled->rows[i]);
    for (int p = 0; p < profiled->n_places; p++) {
        busy += (double)profiled->places[p].busy_ns;
        n_known += profiled->places[p].known;
    }
    double most = (double)profiled->step_ns * n_known, bubble = most > 0 ? 1 - busy / most : 0;
    return (clv_profile_run){.trains = profiled->trains,
                             .done = profiled->n_done,
                             .steps = profiled->n_steps,
                             .warm = profiled->n_done > profile->config.warm_up,
                             .n_devices = profiled->n_places,
                             .n_nodes = n_nodes,
                             .step_ns = average(profiled, (double)profiled->step_ns),
                             .host_ns = average(profiled, (double)profiled->host_ns),
                             .bubble = bubble > 0 ? bubble : 0};
}

/** See clv_profile_info. */
static int main_run(const clv_profile *profile) {
    int best = -1;
    for (int i = 0; i < (int)profile->n_runs; i++) {
        const clv__profiled *run = profile->runs[i], *other = best < 0 ? NULL : profile->runs[best];
        if (!run->n_steps) continue;
        if (!other || (run->trains && !other->trains) ||
            (run->trains == other->trains && run->n_steps > other->n_steps))
            best = i;
    }
    return best;
}

clv_profile_device clv_profile_device_get(const clv_profile *profile, int run, int index) {
    const clv__profiled *profiled = run_of(profile, run);
    if (!profiled || index < 0 || index >= profiled->n_places) return (clv_profile_device){0};
    const clv__profiled_place *place = &profiled->places[index];
    double step = (double)profiled->step_ns, busy = (double)place->busy_ns;
    return (clv_profile_device){.device = place->device,
                                .busy_ns = average(profiled, busy),
                                .transfer_ns = average(profiled, (double)place->transfer_ns),
                                .idle_ns = step > busy ? average(profiled, step - busy) : 0,
                                .known = place->known};
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

clv_profile_node clv_profile_node_get(const clv_profile *profile, int run, int index) {
    const clv__profiled *profiled = run_of(profile, run);
    for (int i = 0; profiled && index >= 0 && i < profiled->n_rows; i++) {
        if (!does_something(&profiled->rows[i]) || index-- > 0) continue;
        clv_profile_node node = profiled->rows[i].node;
        node.ns = average(profiled, node.ns);
        return node;
    }
    return (clv_profile_node){0};
}

// ---- sums -----------------------------------------------------------------------------------------------------------

static void add(clv_profile_work *work, const clv_profile_node *node) {
    work->nodes++;
    work->ns += node->ns;
    work->flops += node->node.flops;
    work->bytes += node->node.traffic;
}

static clv_profile_work *part_of(clv_profile_row *row, const char *phase) {
    if (!strcmp(phase, "forward") || !strcmp(phase, "once")) return &row->forward;
    if (!strcmp(phase, "update")) return &row->update;
    if (!strcmp(phase, "transfer")) return &row->transfer;
    return &row->backward;
}

static int longest_first(const void *a, const void *b) {
    const clv_profile_row *x = a, *y = b;
    if (x->all.ns != y->all.ns) return x->all.ns < y->all.ns ? 1 : -1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->variant, y->variant);
}

int clv_profile_sum(const clv_profile_node *nodes, int n, clv_profile_by by, clv_profile_row *rows) {
    int n_rows = 0;
    for (int i = 0; i < n; i++) {
        const clv_plan_node *node = &nodes[i].node;
        const char *name = by == CLV_PROFILE_LAYERS && *node->layer ? node->layer : node->op,
                   *variant = by == CLV_PROFILE_OPS ? node->variant : "";
        int at = 0;
        while (at < n_rows && (rows[at].device != node->device || strcmp(rows[at].name, name) ||
                               strcmp(rows[at].variant, variant)))
            at++;
        if (at == n_rows)
            rows[n_rows++] = (clv_profile_row){.name = name, .variant = variant, .device = node->device};
        add(part_of(&rows[at], node->phase), &nodes[i]);
        add(&rows[at].all, &nodes[i]);
    }
    if (by == CLV_PROFILE_OPS) qsort(rows, (size_t)n_rows, sizeof *rows, longest_first);
    return n_rows;
}

clv_profile_info clv_profile_info_get(const clv_profile *profile) {
    return (clv_profile_info){.n_runs = (int)profile->n_runs,
                              .main_run = main_run(profile),
                              .traced_steps = profile->n_kept,
                              .left_out_steps = profile->n_left_out};
}
