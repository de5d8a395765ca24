// SPDX-License-Identifier: Apache-2.0
// Sums over many gradients, those of clipping and of loss scaling: uses of one op, each of which adds to the result of the one before
// (groups.c has made as few of them as a launch's arguments allow). The launches of all of them become the last one's. It has no
// argument for each gradient: gradients lie in an arena of their own, and a table says where in it. The table follows from the layout, so
// the pass writes it when exec asks for what is fed to this input of the place (clv__pass.write).
//
// A gradient that was made on another device lies elsewhere: the use that reads it, and those after it, keep launches of their own.
#include <stdlib.h>
#include <string.h>

#include "plan/index.h"
#include "plan/passes.h"
#include "plan/variants.h"

/** Is it a gradient that lies among the place's gradients whatever else the plan does? A view of one is, if it is all of it. */
static bool lies_there(const clv_plan *plan, int value) {
    if (value < 0 || plan->values[value].copy || clv__value_is_cut(plan, value)) return false;
    const clv_tensor *tensor = plan->values[value].tensor, *maker = tensor;
    while (maker->node && maker->node->io.op->view && maker->node->in[0] &&
           clv__desc_bytes(&maker->node->io.in[0]) == plan->values[value].bytes)
        maker = maker->node->in[0];
    return tensor->category == CLV_GRADIENTS && maker->kind == CLV__VALUE && maker->node &&
           !maker->node->io.op->view;
}

/** The gradients of a use, behind the `count` that are there; returns how many there are then, -1: one does not lie among them. */
static int add_gradients(const clv_plan *plan, const clv__plan_node *at, int *values, int64_t *n, int count) {
    const clv__op_io *io = &at->node->io;
    for (int i = io->op->groups.first; i < io->n_in; i++) {
        if (!clv__has_in(io, i) || !lies_there(plan, at->in[i])) return -1;
        values[count] = at->in[i];
        n[count++] = clv__numel(&io->in[i]);
    }
    return count;
}

/** Does b take up what a leaves, and nobody else? */
static bool follows(const clv_plan *plan, const clv__index *index, const clv__plan_node *a,
                    const clv__plan_node *b) {
    const int value = a->out[0];
    return b->work == CLV__COMPUTE && b->node->io.op == a->node->io.op && b->variant == a->variant &&
           value >= 0 && b->in[0] == value && index->readers[value] == 1 &&
           !plan->values[value].tensor->is_output;
}

/** Room for all gradients of the place in as many chunks as a launch takes. Large ones are laid out first, each where it finds room: a
 *  chunk that has none for a gradient is full to more than a third, and to more than a half if no gradient is larger than that. */
static bool chunks_suffice(const clv_plan *plan, int place) {
    const size_t chunk = clv__split_largest(plan->places[place].device);
    size_t all = 0, largest = 0;
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (value->tensor->category != CLV_GRADIENTS || value->place != place || value->copy ||
            clv__value_is_cut(plan, (int)i))
            continue;
        const size_t bytes = clv__size_align(value->bytes, plan->places[place].alignment);
        all += bytes;
        if (bytes > largest) largest = bytes;
    }
    return all <= chunk || all <= chunk / (largest <= chunk / 2 ? 2 : 3) * CLV__GRADIENT_CHUNKS;
}

/** What the pass notes of an input that it writes: a table of where these values lie. */
typedef struct table {
    const int *values;
    int n;
    int64_t cut; // elements of a part: the table counts parts
} table;

/** A row of it. */
typedef struct clv__table_row {
    int32_t chunk, offset;   // of the place's gradients; in units of UNIT bytes from the chunk's begin
    int32_t elements, parts; // how many; parts of those in the rows before
} clv__table_row;
enum { UNIT = 16 };

static void write(const clv_plan *plan, int value, size_t chunk, void *out) {
    const table *of = clv__noted(plan, CLV__PASS_chains, (size_t)value);
    clv__table_row *rows = out;
    int32_t parts = 0;
    for (int i = 0; i < of->n; i++) {
        const clv__value *gradient = &plan->values[of->values[i]];
        const int64_t n = (int64_t)(gradient->bytes / sizeof(float));
        rows[i] = (clv__table_row){.chunk = (int32_t)(gradient->offset / chunk),
                                   .offset = (int32_t)(gradient->offset % chunk / UNIT),
                                   .elements = (int32_t)n,
                                   .parts = parts};
        parts += (int32_t)((n + of->cut - 1) / of->cut);
    }
}

static int reads(const clv_plan *plan, int value, const int **values) {
    const table *of = clv__noted(plan, CLV__PASS_chains, (size_t)value);
    *values = of->values;
    return of->n;
}

/** The table as an input of the place. */
static clv_status add_table(clv_plan *plan, int place, const clv__op *op, const int *values, int n,
                            int *out) {
    const clv__desc desc = clv__i32(CLV_SHAPE(n, sizeof(clv__table_row) / sizeof(int32_t)));
    int *own = clv__arena_alloc(&plan->chosen, (size_t)n, sizeof *own);
    if (!own) return clv__plan_no_memory(plan);
    memcpy(own, values, (size_t)n * sizeof *own);
    CLV_TRY(clv__plan_append_input(plan, place, "table", &desc, &clv__pass_chains, out));
    table *note = clv__note(plan, CLV__PASS_chains, (size_t)*out, sizeof *note);
    if (!note) return clv__plan_no_memory(plan);
    *note = (table){own, n, op->chain_cut};
    return CLV_OK;
}

/** Uses first .. last, `count` gradients in all, as the last one's launches, if its op can. */
static clv_status join(clv_plan *plan, clv__plan_node *const *uses, int n_uses, const int *values,
                       const int64_t *n, int count) {
    clv__plan_node *last = uses[n_uses - 1];
    const clv__op_io *io = &last->node->io;
    clv__launches list = {.device = last->launches.device};
    clv__launch spare;
    clv__op_io use = *io;
    use.variant = last->variant;
    list.spare = &spare;
    const bool done = io->op->lower_chain(&list, &use, &(clv__chained){n, count, CLV__GRADIENT_CHUNKS});
    list.spare = NULL;
    if (!done || list.failed) {
        clv__launches_reset(&list);
        return CLV_OK;
    }
    clv_status status = add_table(plan, last->place, io->op, values, count, &last->in[io->n_in]);
    if (status != CLV_OK) {
        clv__launches_reset(&list);
        return status;
    }
    clv__variant_note_bytes(plan, last, &list);
    for (int i = 0; i < n_uses; i++) clv__launches_reset(&uses[i]->launches);
    clv__launches_trim(&list);
    last->launches = list;
    return CLV_OK;
}

/** The chain that begins at a node, if its launches can be few. */
static clv_status look_at(clv_plan *plan, const clv__index *index, size_t first, clv__plan_node **uses,
                          int *values, int64_t *n) {
    clv__plan_node *at = &plan->nodes[first];
    int n_uses = 0, count = 0;
    if (!clv__by_kernels(plan, at) || !at->variant || !at->node->io.op->lower_chain || at->in[0] >= 0 ||
        !chunks_suffice(plan, at->place))
        return CLV_OK;
    for (size_t i = first; i < plan->n_nodes; i++) {
        if (i > first && !follows(plan, index, uses[n_uses - 1], &plan->nodes[i])) continue;
        const int more = add_gradients(plan, &plan->nodes[i], values, n, count);
        if (more < 0) break;
        count = more;
        uses[n_uses++] = &plan->nodes[i];
    }
    if (n_uses < 2 || uses[n_uses - 1]->node->io.n_in == CLV__MAX_IN) return CLV_OK;
    return join(plan, uses, n_uses, values, n, count);
}

static clv_status run(clv_plan *plan) {
    clv__index index;
    if (plan->no_fuse) return CLV_OK;
    const size_t n_nodes = plan->n_nodes;
    clv__plan_node **uses = clv__alloc(n_nodes, sizeof *uses);
    int *values = clv__alloc(n_nodes * CLV__MAX_IN, sizeof *values);
    int64_t *n = clv__alloc(n_nodes * CLV__MAX_IN, sizeof *n);
    clv_status status =
        uses && values && n ? clv__index_make(plan, CLV__BY_VALUE, &index) : clv__plan_no_memory(plan);
    if (uses && values && n) {
        for (size_t i = 0; status == CLV_OK && i < n_nodes; i++)
            status = look_at(plan, &index, i, uses, values, n);
        clv__index_reset(&index);
    }
    free(uses);
    free(values);
    free(n);
    return status;
}

const clv__pass clv__pass_chains = {.run = run, .write = write, .reads = reads};
