// SPDX-License-Identifier: Apache-2.0
// What a plan does in parts, because it is larger than a device's largest allocation: for a person and for a
// script.
#include "plans/plans.h"

enum { NAMED = 3 };

json_t *cli_parts_json(const clv_plan *plan) {
    json_t *tensors = json_array(), *nodes = json_array();
    for (int i = 0; i < clv_plan_info_get(plan).n_kept; i++) {
        clv_plan_kept kept = clv_plan_kept_get(plan, i);
        if (kept.pieces > 1)
            json_array_append_new(tensors, json_pack("{s:s, s:I, s:i, s:s}", "name", kept.name, "bytes",
                                                     (json_int_t)kept.bytes, "pieces", kept.pieces, "device",
                                                     clv_device_info_get(kept.device)->name));
    }
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (node.parts && node.part == 0)
            json_array_append_new(nodes, json_pack("{s:s, s:s, s:s, s:i, s:s}", "layer", node.layer, "op",
                                                   node.op, "phase", node.phase, "parts", node.parts,
                                                   "device", clv_device_info_get(node.device)->name));
    }
    return json_pack("{s:o, s:o}", "tensors", tensors, "nodes", nodes);
}

void cli_parts_print(FILE *out, const clv_plan *plan) {
    int nodes = 0, parts = 0, tensors = 0;
    char text[1024] = "";
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (!node.parts || node.part != 0) continue;
        nodes++;
        parts += node.parts;
    }
    if (!nodes) return;
    for (int i = 0; i < clv_plan_info_get(plan).n_kept; i++) {
        clv_plan_kept kept = clv_plan_kept_get(plan, i);
        if (kept.pieces < 2 || ++tensors > NAMED) continue;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.200s (%s) in %d pieces", used ? ", " : "; ", kept.name,
                 cli_bytes(kept.bytes), kept.pieces);
    }
    if (tensors > NAMED) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " and %d more", tensors - NAMED);
    }
    screen_say(out, "larger than the largest allocation: %d nodes of the graph are done in %d parts%s", nodes,
               parts, text);
}
