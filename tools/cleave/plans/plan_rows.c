// SPDX-License-Identifier: Apache-2.0
// Which row each node of a plan belongs to. A layer has one row. An op outside of layers has a row of its
// own, with a number if there are several of its kind. Gradients and updates of no layer have rows by their
// phase.
#include "plans/plan_rows.h"

#include <stdlib.h>
#include <string.h>

static plan_row *find_row(plan_rows *rows, const char *name) {
    for (int i = 0; i < rows->n; i++)
        if (!strcmp(rows->items[i].name, name)) return &rows->items[i];
    return NULL;
}

/** The row of a forward node: its layer's, or one of its own; what does another part of a node at the root
 *  has that one's. */
static plan_row *row_of(plan_rows *rows, const clv_plan_node *node) {
    plan_row *found = *node->layer ? find_row(rows, node->layer) : NULL;
    if (!*node->layer && node->parts && node->part != 0 && rows->n) found = &rows->items[rows->n - 1];
    if (found) return found;
    for (int i = 0; i < rows->n && !*node->layer; i++) { // each micro-batch goes through the same rows
        plan_row *row = &rows->items[i];
        if (row->named || row->micro_batch >= node->micro_batch || strcmp(row->op, node->op)) continue;
        row->micro_batch = node->micro_batch;
        return row;
    }
    plan_row *row = &rows->items[rows->n++];
    row->named = *node->layer;
    row->micro_batch = node->micro_batch;
    snprintf(row->name, sizeof row->name, "%s", *node->layer ? node->layer : node->op);
    for (int i = 2; !row->named && i < 1000; i++) { // the second relu at the root is relu.2
        bool taken = false;
        for (int j = 0; j + 1 < rows->n; j++) taken |= !strcmp(rows->items[j].name, row->name);
        if (!taken) break;
        snprintf(row->name, sizeof row->name, "%s.%d", node->op, i);
    }
    return row;
}

bool cli_plan_rows(const clv_plan *plan, plan_rows *rows) {
    int n = clv_plan_info_get(plan).n_nodes;
    rows->items = calloc((size_t)n + 3, sizeof *rows->items);
    if (!rows->items) return false;
    for (int i = 0; i < n; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (!strcmp(node.variant, "transfer")) continue; // told apart, below
        const bool forward = !strcmp(node.phase, "forward"), once = !strcmp(node.phase, "once");
        plan_row *row;
        if (forward) {
            row = row_of(rows, &node);
            row->output_shape = node.output_shape; // the last op's is the layer's
        } else {
            row = *node.layer && !once ? find_row(rows, node.layer) : NULL;
            if (!row) row = find_row(rows, node.phase);
            if (!row) {
                row = &rows->items[rows->n++];
                snprintf(row->name, sizeof row->name, "%s", node.phase);
            }
        }
        if (!row->op || (forward && node.flops > row->most_flops)) {
            row->op = forward                            ? node.op
                      : !strcmp(node.phase, "update")    ? "updates"
                      : !strcmp(node.phase, "recompute") ? "recompute"
                      : once                             ? "first step"
                                                         : "gradients";
            row->also = forward ? node.also : "";
            row->variant = forward ? node.variant : "";
            row->chosen = forward ? node.chosen : "";
            row->most_flops = node.flops;
        }
        const char *device = clv_device_info_get(node.device)->name;
        if (!row->device) row->device = device;
        row->elsewhere |= strcmp(row->device, device) != 0;
        row->parameters += forward || once ? node.parameters : 0;
        row->bytes += node.bytes;
        row->flops += node.flops;
        for (int c = 0; c < CLV_CATEGORIES;
             c++) // a workspace is that of one node at a time, if it is not kept
            row->made[c] = c != CLV_WORKSPACE || once    ? row->made[c] + node.made[c]
                           : node.made[c] > row->made[c] ? node.made[c]
                                                         : row->made[c];
    }
    return true;
}
