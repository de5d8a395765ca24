// SPDX-License-Identifier: Apache-2.0
// Names of layers made into a tree. A layer that is a part of another by its name is below it, whatever the
// order of execution.
#include "plans/plan_tree.h"

#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// ---- the tree ---------------------------------------------------------------------------------------------

static plan_module *find(plan_tree *tree, const char *name, size_t length) {
    for (int i = 0; i < tree->n; i++)
        if (strlen(tree->modules[i].name) == length && !strncmp(tree->modules[i].name, name, length))
            return &tree->modules[i];
    return NULL;
}

/** A module of that name, below the one that its name says; the model for "". The array has room for all. */
static plan_module *module_of(plan_tree *tree, const char *name, size_t length) {
    plan_module *there = find(tree, name, length);
    if (there) return there;
    size_t parent_length = length - 1;
    while (parent_length && name[parent_length] != '.') parent_length--;
    plan_module *parent = module_of(tree, name, parent_length);
    plan_module *at = parent + 1, *end = tree->modules + tree->n++;
    while (at < end && at->depth > parent->depth) at++; // behind its other children
    memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
    *at = (plan_module){.depth = parent->depth + 1};
    snprintf(at->name, sizeof at->name, "%.*s", (int)length, name);
    parent->has_children = true;
    return at;
}

/** Ops at the root have names with a point that does not part modules: relu.2. */
static plan_module *add_row(plan_tree *tree, const plan_row *row) {
    if (row->named) return module_of(tree, row->name, strlen(row->name));
    plan_module *at = tree->modules + tree->n++;
    *at = (plan_module){.depth = 1};
    snprintf(at->name, sizeof at->name, "%s", row->name);
    tree->modules[0].has_children = true;
    return at;
}

/** The module of `layer1.0.conv1.weight`: the longest name that it begins with. */
static plan_module *owner_of(plan_tree *tree, const char *name) {
    size_t length = strlen(name);
    for (plan_module *found; length; length--) {
        if (name[length] != '.' && name[length]) continue;
        if ((found = find(tree, name, length))) return found;
    }
    return &tree->modules[0];
}

static void add_total(plan_total *to, const plan_total *from) {
    to->parameters += from->parameters;
    to->frozen += from->frozen;
    to->buffers += from->buffers;
    for (int c = 0; c < CLV_CATEGORIES; c++) { // a workspace is that of one node at a time
        if (c != CLV_WORKSPACE)
            to->bytes[c] += from->bytes[c];
        else if (from->bytes[c] > to->bytes[c])
            to->bytes[c] = from->bytes[c];
    }
    to->flops += from->flops;
    to->layers += from->layers;
}

/** What each has itself becomes what it has with its children. */
static void sum_up(plan_tree *tree) {
    for (int i = tree->n - 1; i > 0; i--) {
        int parent = i - 1;
        while (tree->modules[parent].depth >= tree->modules[i].depth) parent--;
        add_total(&tree->modules[parent].all, &tree->modules[i].all);
        const char *name = tree->modules[i].name, *above = tree->modules[parent].name;
        tree->modules[i].tip = name + (*above ? strlen(above) + 1 : 0);
    }
    tree->modules[0].tip = "";
}

bool plan_tree_make(const clv_plan *plan, const plan_rows *rows, plan_tree *tree) {
    size_t room = 1;
    for (int i = 0; i < rows->n; i++) { // a module for each point of a name
        room++;
        for (const char *at = rows->items[i].name; *at; at++) room += *at == '.';
    }
    *tree = (plan_tree){.modules = calloc(room, sizeof *tree->modules), .n = 1};
    if (!tree->modules) return false;
    for (int i = 0; i < rows->n; i++) {
        const plan_row *row = &rows->items[i];
        plan_module *module = add_row(tree, row);
        module->row = row;
        module->all.flops += row->flops;
        module->all.layers++;
        for (int c = 0; c < CLV_CATEGORIES; c++) module->all.bytes[c] += row->made[c];
    }
    for (int i = 0; i < clv_plan_info_get(plan).n_kept; i++) {
        clv_plan_kept kept = clv_plan_kept_get(plan, i);
        plan_total *own = &owner_of(tree, kept.name)->all;
        own->bytes[kept.category] += kept.bytes;
        if (kept.parameter) own->parameters += clv_shape_numel(&kept.shape);
        if (kept.frozen) own->frozen += clv_shape_numel(&kept.shape);
        if (kept.category == CLV_PARAMETERS && !kept.parameter) own->buffers += clv_shape_numel(&kept.shape);
    }
    sum_up(tree);
    return true;
}

// ---- texts ------------------------------------------------------------------------------------------------

/** One of eight texts, in turn. */
static char *next_text(void) {
    static _Thread_local char texts[8][32];
    static _Thread_local unsigned next;
    return texts[next++ % 8];
}

const char *plan_flops(double flops) {
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"};
    char *text = next_text();
    int unit = 0;
    while (flops >= 1000 && unit < 5) flops /= 1000, unit++;
    snprintf(text, 32, unit ? "%.2f %s" : "%.0f %s", flops, units[unit]);
    return text;
}

const char *plan_count(int64_t count) {
    char digits[24], *text = next_text(), *to = text;
    int n = snprintf(digits, sizeof digits, "%" PRId64, count);
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

/** What a layer's bytes are for. Inputs, outputs and staging are no layer's. */
static const clv_category told[] = {CLV_PARAMETERS, CLV_GRADIENTS, CLV_OPTIMIZER, CLV_ACTIVATIONS,
                                    CLV_WORKSPACE};
enum { N_TOLD = sizeof told / sizeof *told };

static uint64_t all_bytes(const plan_total *total) {
    uint64_t all = 0;
    for (int c = 0; c < N_TOLD; c++) all += total->bytes[told[c]];
    return all;
}

/** What a row does, with what is done in the same launch: conv2d+batch_norm_eval+relu. */
static void op_text(const plan_row *row, char out[128]) {
    snprintf(out, 128, "%s%s%s", row->op, *row->also ? "+" : "", row->also);
}

// ---- as a table -------------------------------------------------------------------------------------------

static void add_part(table *t, double part, double all) {
    if (all > 0 && part > 0)
        table_add(t, "%.1f %%", 100 * part / all);
    else
        table_add(t, "%s", all > 0 ? "-" : "");
}

static void add_bytes(table *t, uint64_t bytes) {
    table_add(t, "%s", bytes ? cli_bytes(bytes) : "-");
}

/** What a module is made of, if it has more than one layer; else what its layer computes. */
static void add_what(table *t, const plan_module *module) {
    char text[128];
    if (module->row && !module->has_children) {
        const plan_row *row = module->row;
        op_text(row, text);
        // What has the layer's parameters may be computed in the row of the layer before: this comes then.
        table_add(t, "%s%s", module->all.parameters && !row->parameters ? "then " : "", text);
        table_add(t, "%s", row->variant ? row->variant : "");
        table_add(t, "%s", row->chosen ? row->chosen : "");
        table_add(t, "%s", row->elsewhere ? "several" : row->device);
        if (row->output_shape.rank)
            table_add(t, "%s", clv_shape_text(&row->output_shape, text, sizeof text));
        else
            table_add(t, "%s", "");
        return;
    }
    table_add(t, "%d layer%s", module->all.layers, module->all.layers == 1 ? "" : "s");
    for (int i = 0; i < 4; i++) table_add(t, "%s", "");
}

static void add_module(table *t, const plan_tree *tree, const plan_module *module) {
    const plan_total *all = &tree->modules[0].all, *own = &module->all;
    const bool bold = module->has_children;
    if (bold) table_paint(t, "\033[1m");
    if (module->depth)
        table_add(t, "%*s%s", 2 * (module->depth - 1), "", module->tip);
    else
        table_add(t, "total");
    add_what(t, module);
    table_add(t, "%s", own->parameters ? plan_count(own->parameters) : "-");
    table_add(t, "%s", own->frozen ? plan_count(own->frozen) : "-");
    add_part(t, (double)own->parameters, (double)all->parameters);
    for (int c = 0; c < N_TOLD; c++) add_bytes(t, own->bytes[told[c]]);
    add_bytes(t, all_bytes(own));
    add_part(t, (double)all_bytes(own), (double)all_bytes(all));
    table_add(t, "%s", own->flops > 0 ? plan_flops(own->flops) : "-");
    add_part(t, own->flops, all->flops);
}

void plan_tree_print(FILE *out, const plan_tree *tree, int64_t depth) {
    static const char parameters[] = "parameters", bytes[] = "bytes", work[] = "work";
    const table_column columns[] = {
        {"layer", TABLE_NAME, TABLE_KEEP, 16, NULL},
        {"op", TABLE_TEXT, 85, 10, NULL},
        {"variant", TABLE_TEXT, 35, 0, NULL},
        {"chosen", TABLE_TEXT, 20, 0, NULL},
        {"device", TABLE_TEXT, 30, 0, NULL},
        {"output", TABLE_TEXT, 50, 0, NULL},
        {"count", TABLE_NUMBER, 95, 0, parameters},
        {"frozen", TABLE_NUMBER, 80, 0, parameters},
        {"share", TABLE_NUMBER, 65, 0, parameters},
        {"parameters", TABLE_NUMBER, 44, 0, bytes}, // in the order of `told`
        {"gradients", TABLE_NUMBER, 42, 0, bytes},
        {"optimizer", TABLE_NUMBER, 43, 0, bytes},
        {"activations", TABLE_NUMBER, 45, 0, bytes},
        {"workspace", TABLE_NUMBER, 41, 0, bytes},
        {"all", TABLE_NUMBER, 90, 0, bytes},
        {"share", TABLE_NUMBER, 60, 0, bytes},
        {"FLOPs", TABLE_NUMBER, 92, 0, work},
        {"share", TABLE_NUMBER, 70, 0, work},
    };
    enum { FROZEN = 7, BYTES = 9, N_COLUMNS = sizeof columns / sizeof *columns };
    const plan_total *all = &tree->modules[0].all;
    table *t = table_create(columns, N_COLUMNS);
    if (!all->frozen) table_hide(t, FROZEN);
    for (int c = 0; c < N_TOLD; c++)
        if (!all->bytes[told[c]]) table_hide(t, BYTES + c);
    for (int i = 1; i < tree->n; i++)
        if (depth < 0 || tree->modules[i].depth <= depth) add_module(t, tree, &tree->modules[i]);
    add_module(t, tree, &tree->modules[0]);
    table_print(t, out);
}

json_t *plan_tree_json(const plan_tree *tree, int64_t depth) {
    json_t *modules = json_array();
    for (int i = 0; i < tree->n; i++) {
        const plan_module *module = &tree->modules[i];
        json_t *bytes = json_object();
        if (depth >= 0 && module->depth > depth) {
            json_decref(bytes);
            continue;
        }
        for (int c = 0; c < N_TOLD; c++)
            json_object_set_new(bytes, clv_category_name(told[c]),
                                json_integer((json_int_t)module->all.bytes[told[c]]));
        json_array_append_new(
            modules,
            json_pack("{s:s, s:i, s:i, s:I, s:I, s:I, s:f, s:o}", "name", module->name, "depth",
                      module->depth, "layers", module->all.layers, "parameters",
                      (json_int_t)module->all.parameters, "frozen", (json_int_t)module->all.frozen, "buffers",
                      (json_int_t)module->all.buffers, "flops", module->all.flops, "bytes", bytes));
    }
    return modules;
}
