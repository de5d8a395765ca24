// SPDX-License-Identifier: Apache-2.0
// cleave plan --ranks N --link SPEED: what each of so many processes holds and sends, and whether more of
// them help.
#include "plans/plans.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int cli_read_link(const cli_args *args, double *bytes) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8},
                 {"KB", 1e3},       {"MB", 1e6},       {"GB", 1e9}};
    char *end;
    *bytes = 0;
    if (!args->link) return EXIT_DONE;
    if (!args->n_ranks) return cli_fail(EXIT_USAGE, "--link needs --ranks: how many are there?");
    const double number = strtod(args->link, &end);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end != args->link && !strcasecmp(end, units[i].name)) *bytes = number * units[i].bytes;
    if (!(*bytes > 0 && isfinite(*bytes)))
        return cli_fail(EXIT_USAGE, "--link wants a speed, 1Gbit or 12GB a second, not '%s'", args->link);
    return EXIT_DONE;
}

/** Whose a device is: `1:gpu:0` is rank 1's. */
static int owner_of(const clv_device *device) {
    const char *name = clv_device_info_get(device)->name;
    return *name >= '0' && *name <= '9' ? atoi(name) : 0;
}

/** Of a plan that has a device for itself: bytes of a category. rank: on its devices alone; -1: on all. */
static uint64_t held(clv_plan *plan, clv_category category, int rank, uint64_t *peak) {
    uint64_t bytes = 0;
    *peak = 0;
    for (int d = 0; d < clv_plan_info_get(plan).n_devices; d++) {
        if (rank >= 0 && owner_of(clv_plan_device_get(plan, d)) != rank) continue;
        const clv_plan_memory memory = clv_plans_memory(&plan, 1, clv_plan_device_get(plan, d));
        bytes += memory.category[category];
        *peak += memory.predicted_peak_bytes;
    }
    return bytes;
}

int cli_ranks_name(const cli_session *session) {
    const clv_ranks_config planned = {.planned = (int)session->args->n_ranks};
    clv_ranks *ranks = NULL;
    if (!planned.planned) return EXIT_DONE;
    const clv_status status = clv_ranks_create(session->runtime, &planned, &ranks);
    clv_ranks_destroy(ranks);
    return status == CLV_OK ? EXIT_DONE : cli_fail_status(session->runtime, status);
}

/** A message's way through a usual switch and two systems. */
static const double latency = 50e-6;

/** Seconds of a step over the link; and which link would make it as fast as one process, 0: none. */
static void price(const clv_ranks *ranks, const clv_plan *plan, cli_ranks_planned *out) {
    out->step = clv_ranks_step_seconds(ranks, plan, out->link, latency);
    for (double faster = 2; !out->enough && faster <= 4096; faster *= 2)
        if (clv_ranks_step_seconds(ranks, plan, faster * out->link, latency) < out->alone.least)
            out->enough = faster * out->link;
}

int cli_ranks_plan(cli_session *session, clv_train_config config, clv_plan_config how, int64_t batch,
                   cli_ranks_planned *out) {
    const int n = (int)session->args->n_ranks;
    *out = (cli_ranks_planned){.n = n, .rank = calloc((size_t)n, sizeof *out->rank)};
    if (!out->rank) return cli_fail(EXIT_FAILED, "out of host memory for ranks");
    for (const char *at = config.placement.place; at && (at = strchr(at, '=')) != NULL; at++)
        out->layered |= at[1] >= '0' && at[1] <= '9';
    if (batch < n && !out->layered)
        return cli_fail(EXIT_USAGE, "a batch of %" PRId64 " samples for %d ranks: each needs at least one",
                        batch, n);
    const int code = cli_read_link(session->args, &out->link);
    if (code != EXIT_DONE) return code;
    for (int r = -1; r < n; r++) { // -1: one process with the whole batch
        const clv_ranks_config planned = {.planned = r < 0 ? 1 : n, .rank = r < 0 ? 0 : r};
        clv_ranks *ranks = NULL;
        clv_graph *graph = NULL;
        clv_plan *plan = NULL;
        clv_status status = clv_ranks_create(session->runtime, &planned, &ranks);
        config.ranks = ranks;
        if (status == CLV_OK)
            status = clv_pass_graph(session->runtime, &config, CLV_PASS_TRAIN, batch, &graph);
        if (status == CLV_OK) status = clv_plan_create(graph, &how, &plan);
        if (status == CLV_OK) {
            cli_rank_planned *of = r < 0 ? &out->alone : &out->rank[r];
            of->sent = clv_ranks_step_bytes(ranks, plan);
            of->optimizer = held(plan, CLV_OPTIMIZER, out->layered ? r : -1, &of->peak);
            of->least = clv_plan_device_info_get(plan, clv_plan_device_get(plan, 0)).least_seconds;
            if (of->sent > out->most) out->most = of->sent;
            if (r == 0 && out->link > 0) price(ranks, plan, out);
        }
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
        clv_ranks_destroy(ranks);
        if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    }
    return EXIT_DONE;
}

json_t *cli_ranks_json(const cli_ranks_planned *planned) {
    json_t *ranks = json_array();
    for (int r = 0; r < planned->n; r++)
        json_array_append_new(ranks, json_pack("{s:i, s:I, s:I, s:I}", "rank", r, "sent_bytes",
                                               (json_int_t)planned->rank[r].sent, "predicted_peak_bytes",
                                               (json_int_t)planned->rank[r].peak, "optimizer_bytes",
                                               (json_int_t)planned->rank[r].optimizer));
    return ranks;
}

void cli_ranks_print(const cli_ranks_planned *planned) {
    const table_column columns[] = {{"rank", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
                                    {"sends a step", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
                                    {"optimizer", TABLE_NUMBER, TABLE_KEEP, 0, NULL},
                                    {"peak", TABLE_NUMBER, TABLE_KEEP, 0, NULL}};
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int r = 0; r < planned->n; r++) {
        table_add(t, "%d", r);
        table_add(t, "%s", cli_bytes((uint64_t)planned->rank[r].sent));
        table_add(t, "%s", cli_bytes(planned->rank[r].optimizer));
        table_add(t, "%s", cli_bytes(planned->rank[r].peak));
    }
    table_print(t, stdout);
    if (!(planned->link > 0)) return;
    const double exchange = (double)planned->most / planned->link, computing = planned->rank[0].least,
                 alone = planned->alone.least;
    if (planned->layered) {
        screen_say(stdout, "what a rank sends takes %.3g ms a step at least", 1e3 * exchange);
        return;
    }
    screen_say(stdout, "an exchange takes %.3g ms a step at least, half of it beside the backward pass",
               1e3 * exchange);
    if (!(computing > 0 && alone > 0)) {
        screen_say(stdout, "how long this device computes in a step is not known: plan for --device "
                           "null:CARD, or measure by cleave train");
        return;
    }
    screen_say(stdout,
               "a step of %d ranks: %.3g ms at least, of which they compute %.3g ms; one alone with the "
               "whole batch: %.3g ms",
               planned->n, 1e3 * planned->step, 1e3 * computing, 1e3 * alone);
    if (planned->step < alone) return;
    // waiting does not depend on the batch, what is saved by sharing grows with it
    const double times = alone > computing ? (planned->step - computing) / (alone - computing) : 0;
    char link[64] = "no link", batch[96] = "no larger batch, as each rank has to compute as long";
    if (planned->enough > 0) snprintf(link, sizeof link, "a link of %.3g Gbit", 8e-9 * planned->enough);
    if (times > 0)
        snprintf(batch, sizeof batch, "a batch %.*f times as large (the bytes do not depend on it)",
                 times < 10, times);
    screen_say(stdout, "more ranks make it slower; what makes them as fast as one: %s%s%s", link,
               planned->enough > 0 && times > 0 ? ", or " : ", ", batch);
}

void cli_ranks_planned_end(cli_ranks_planned *planned) {
    free(planned->rank);
}
