// SPDX-License-Identifier: Apache-2.0
// What a plan drops and computes again, for a person and for a script.
#include "plans/plans.h"

#include <stdlib.h>
#include <string.h>

/** Results of one op in one layer that are computed again. */
typedef struct again_row {
    const char *layer, *op;
    int64_t times;
    double flops;
} again_row;

/** A row for each layer and op, in the forward pass's order; how many, -1 without host memory. */
static int collect(const clv_plan *plan, again_row **out) {
    int n_nodes = clv_plan_info_get(plan).n_nodes, n = 0;
    again_row *rows = *out = calloc((size_t)n_nodes + 1, sizeof *rows);
    if (!rows) return -1;
    for (int pass = 0; pass < 2; pass++) { // forward nodes name the rows, those computed again are counted
        for (int i = 0; i < n_nodes; i++) {
            clv_plan_node node = clv_plan_node_get(plan, i);
            if (strcmp(node.phase, pass ? "recompute" : "forward") != 0 || strcmp(node.variant, "view") == 0)
                continue;
            int at = 0;
            while (at < n && (strcmp(rows[at].layer, node.layer) != 0 || strcmp(rows[at].op, node.op) != 0))
                at++;
            if (at == n && !pass) rows[n++] = (again_row){.layer = node.layer, .op = node.op};
            if (pass && at < n) {
                rows[at].times++;
                rows[at].flops += node.flops;
            }
        }
    }
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (rows[i].times) rows[kept++] = rows[i];
    return kept;
}

json_t *cli_recomputed_json(const clv_plan *plan) {
    clv_plan_recomputed all = clv_plan_info_get(plan).recomputed;
    again_row *rows;
    json_t *layers = json_array();
    int n = collect(plan, &rows);
    for (int i = 0; i < n; i++)
        json_array_append_new(layers,
                              json_pack("{s:s, s:s, s:I, s:f}", "layer", rows[i].layer, "op", rows[i].op,
                                        "times", (json_int_t)rows[i].times, "flops", rows[i].flops));
    free(rows);
    return json_pack("{s:i, s:I, s:f, s:o}", "nodes", all.nodes, "saved_bytes", (json_int_t)all.saved_bytes,
                     "extra_time", all.extra_time, "layers", layers);
}

void cli_recomputed_print(FILE *out, const cli_args *args, const clv_plan *plan) {
    clv_plan_recomputed all = clv_plan_info_get(plan).recomputed;
    if (!all.nodes) {
        const char *why = strcmp(args->recompute ? args->recompute : "", "auto")
                              ? "all that these modules make is read outside of them"
                              : "it fits as it is";
        if (args->recompute && all.saved_bytes)
            screen_say(out, "recomputed: nothing, %s; a tighter layout saves %s", why,
                       cli_bytes(all.saved_bytes));
        else if (args->recompute)
            screen_say(out, "recomputed: nothing, %s", why);
        return;
    }
    char head[160];
    snprintf(head, sizeof head,
             "recomputed: %d results, which saves %s and takes about %.0f %% more time:", all.nodes,
             cli_bytes(all.saved_bytes), 100 * all.extra_time);
    screen_wrap(out, head, 0, 2, screen_width(out));
    again_row *rows;
    int n = collect(plan, &rows), column = 1000, width = screen_width(out);
    if (!width || width > 100) width = 100;
    for (int i = 0; i < n; i++) {
        char text[320], times[24] = "";
        if (rows[i].times > 1) snprintf(times, sizeof times, " x%lld", (long long)rows[i].times);
        int length = snprintf(text, sizeof text, "%s%s%s%s", rows[i].layer, *rows[i].layer ? " " : "",
                              rows[i].op, times);
        if (column + length > width) column = fprintf(out, "\n ");
        column += fprintf(out, " %s%s", text, i + 1 < n ? "," : "");
    }
    fputc('\n', out);
    free(rows);
}
