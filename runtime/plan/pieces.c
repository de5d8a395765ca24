// SPDX-License-Identifier: Apache-2.0
// Taking parts of tensors and putting parts together; see pieces.h. Where a part's elements lie one after the other, and begin where
// the device lets a tensor begin, taking it is a view, and no byte moves. The same holds for results that are put together, if each
// was made for that: they are made where they belong. Everything else is a slice or a concat, which copies.
#include "plan/pieces.h"

#include <string.h>

#include "ops/parts.h"

/** Some elements of input 0: the node's `within` says from where on. */
static const clv__op part_op = {.name = "part", .view = true, .half_in = 1, .half_out = 1};
/** All inputs one after the other. */
static const clv__op joined_op = {
    .name = "joined", .view = true, .joins = true, .half_in = ~UINT64_C(0), .half_out = 1};

bool clv__pieces_too_large(const clv__pieces *p, const clv__desc *desc) {
    return clv__desc_bytes(desc) > p->limit;
}

clv_status clv__pieces_value(clv__pieces *p, const clv_tensor *like, const clv__desc *desc, int *out) {
    clv_plan *plan = p->plan;
    if (!clv__grow(&p->fresh, &p->fresh_room, plan->n_values + 1, sizeof *p->fresh))
        return clv__plan_no_memory(plan);
    clv_tensor tensor = *like;
    if (like->kind != CLV__VALUE) tensor.category = CLV_ACTIVATIONS;
    tensor.kind = CLV__VALUE;
    p->fresh[plan->n_values] = false;
    return clv__plan_append_own(plan, &tensor, desc, p->place, out);
}

clv_status clv__pieces_node(clv__pieces *p, const clv__op *op, const void *attrs, const int *in, int n_in,
                            const int *out, int n_out) {
    clv_plan *plan = p->plan;
    CLV_TRY(clv__plan_append_node(plan, p->of, op, attrs, p->place, in, n_in, out, n_out));
    clv__plan_node *at = &plan->nodes[plan->n_nodes - 1];
    at->whole = p->of;
    at->slice = -1;
    for (int i = 0; i < n_out; i++)
        if (out[i] >= 0 && (size_t)out[i] < p->fresh_room) p->fresh[out[i]] = !op->view || op->joins;
    return CLV_OK;
}

static const clv__desc *desc_of(const clv__pieces *p, int value) {
    return &p->plan->values[value].desc;
}

/** Do elements next to each other in dimension d lie next to each other, all that belongs to them included? */
static bool is_outermost(const clv_shape *shape, int d) {
    for (int k = 0; k < d; k++) {
        if (shape->dims[k] != 1) return false;
    }
    return true;
}

static size_t aligned(const clv__pieces *p, size_t bytes) {
    return clv__size_align(bytes, p->plan->places[p->place].alignment);
}

// ---- taking parts -------------------------------------------------------------------------------------------------------

/** Elements [begin, end) of a value's dimension, as a value; sets *copied if that is memory of its own. */
static clv_status slice(clv__pieces *p, const clv_tensor *like, int value, int d, int64_t begin, int64_t end,
                        int *out, bool *copied) {
    clv__desc desc = *desc_of(p, value);
    if (begin == 0 && end == desc.shape.dims[d]) {
        *out = value;
        return CLV_OK;
    }
    desc.shape.dims[d] = end - begin;
    const size_t before = (size_t)begin * (end > begin ? clv__desc_bytes(&desc) / (size_t)(end - begin) : 0);
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    CLV_TRY(clv__pieces_value(p, like, &desc, out));
    if (!is_outermost(&desc.shape, d) || aligned(p, before) != before) {
        *copied = true;
        const clv__op *op = clv__parts_slice(d, begin, end - begin, attrs);
        return clv__pieces_node(p, op, attrs, &value, 1, out, 1);
    }
    CLV_TRY(clv__pieces_node(p, &part_op, NULL, &value, 1, out, 1));
    p->plan->nodes[p->plan->n_nodes - 1].within = before;
    return CLV_OK;
}

clv_status clv__region_make(clv__pieces *p, const clv__desc *desc, const clv_tensor *like, int n,
                            clv__region *out) {
    *out = (clv__region){.desc = *desc, .like = like, .n = n};
    out->items = clv__arena_alloc(&p->scratch, (size_t)n, sizeof *out->items);
    return out->items ? CLV_OK : clv__plan_no_memory(p->plan);
}

clv_status clv__region_of(clv__pieces *p, int value, clv__region *out) {
    const clv__value *whole = &p->plan->values[value];
    CLV_TRY(clv__region_make(p, &whole->desc, whole->tensor, 1, out));
    out->items[0] = (clv__rows){clv__split_length(&whole->desc.shape, 0), value};
    return CLV_OK;
}

clv_status clv__region_narrow(clv__pieces *p, const clv__region *from, int d, int64_t begin, int64_t end,
                              clv__region *out) {
    clv__desc desc = from->desc;
    desc.shape.dims[d] = end - begin;
    CLV_TRY(clv__region_make(p, &desc, from->like, from->n, out));
    out->copied = from->copied;
    out->n = 0;
    int64_t first = 0; // row of the item
    for (int i = 0; i < from->n; first += from->items[i++].n) {
        const clv__rows *item = &from->items[i];
        int64_t low = begin, high = end;
        if (d == 0) { // of the item's rows
            low = begin > first ? begin - first : 0;
            high = end < first + item->n ? end - first : item->n;
            if (low >= high && from->n > 1) continue;
        }
        clv__rows *to = &out->items[out->n++];
        to->n = d == 0 ? high - low : item->n;
        CLV_TRY(slice(p, from->like, item->value, d, low, high, &to->value, &out->copied));
    }
    return CLV_OK;
}

// ---- putting parts together ---------------------------------------------------------------------------------------------

/** May results be made where they belong, one after the other? */
static bool can_lie_together(const clv__pieces *p, const int *values, int n, int d) {
    if (p->plan->recompute) return false; // a result that is dropped and made again would belong to two
    for (int i = 0; i < n; i++) {
        const size_t bytes = clv__desc_bytes(desc_of(p, values[i]));
        if (!p->fresh[values[i]] || !is_outermost(&desc_of(p, values[i])->shape, d)) return false;
        if (i + 1 < n && aligned(p, bytes) != bytes) return false;
    }
    return true;
}

/** Values behind each other along dimension d, as one: `target`, or a new one if that is -1. More than a node takes are joined in
 *  groups first. */
static clv_status concat(clv__pieces *p, const clv_tensor *like, const clv__desc *desc, int *values, int n,
                         int d, int target, int *out) {
    *out = n == 1 && target < 0 ? values[0] : target;
    if (n == 1 && target < 0) return CLV_OK;
    while (n > CLV__MAX_IN) {
        int groups = 0;
        for (int i = 0; i < n; groups++) {
            const int here = n - i < CLV__MAX_IN ? n - i : CLV__MAX_IN;
            clv__desc part = *desc_of(p, values[i]);
            for (int k = 1; k < here; k++) part.shape.dims[d] += desc_of(p, values[i + k])->shape.dims[d];
            int joined;
            CLV_TRY(concat(p, like, &part, values + i, here, d, -1, &joined));
            i += here;
            values[groups] = joined;
        }
        n = groups;
    }
    if (*out < 0) CLV_TRY(clv__pieces_value(p, like, desc, out));
    if (can_lie_together(p, values, n, d)) {
        for (int i = 0; i < n; i++) p->fresh[values[i]] = false;
        return clv__pieces_node(p, &joined_op, NULL, values, n, out, 1);
    }
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    const clv__op *op = clv__parts_concat(d, attrs);
    return clv__pieces_node(p, op, attrs, values, n, out, 1);
}

clv_status clv__region_whole(clv__pieces *p, const clv__region *from, int target, int *out) {
    int *values = clv__arena_alloc(&p->scratch, (size_t)from->n, sizeof *values);
    if (!values) return clv__plan_no_memory(p->plan);
    for (int i = 0; i < from->n; i++) values[i] = from->items[i].value;
    return concat(p, from->like, &from->desc, values, from->n, 0, target, out);
}

static clv_status one_value(clv__pieces *p, const clv__desc *desc, const clv_tensor *like, int value,
                            clv__region *out) {
    CLV_TRY(clv__region_make(p, desc, like, 1, out));
    out->items[0] = (clv__rows){clv__split_length(&desc->shape, 0), value};
    return CLV_OK;
}

/** Rows [begin, end) of regions that stand side by side. */
static clv_status join_beside(clv__pieces *p, const clv__region *parts, int n, int d, const clv__desc *desc,
                              int64_t begin, int64_t end, int target, int *out) {
    int *values = clv__arena_alloc(&p->scratch, (size_t)n, sizeof *values);
    clv__desc rows = *desc;
    if (!values) return clv__plan_no_memory(p->plan);
    rows.shape.dims[0] = end - begin;
    for (int k = 0; k < n; k++) {
        clv__region part;
        CLV_TRY(clv__region_narrow(p, &parts[k], 0, begin, end, &part));
        CLV_TRY(clv__region_whole(p, &part, -1, &values[k]));
    }
    return concat(p, parts[0].like, &rows, values, n, d, target, out);
}

/** Regions one after the other. */
static clv_status join_below(clv__pieces *p, const clv__region *parts, int n, const clv__desc *desc,
                             clv__region *out) {
    int items = 0;
    for (int k = 0; k < n; k++) items += parts[k].n;
    CLV_TRY(clv__region_make(p, desc, parts[0].like, items, out));
    out->n = 0;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < parts[k].n; i++) out->items[out->n++] = parts[k].items[i];
    return CLV_OK;
}

clv_status clv__region_join(clv__pieces *p, const clv__region *parts, int n, int d, const clv__desc *desc,
                            int target, clv__region *out) {
    const bool fits = !clv__pieces_too_large(p, desc);
    int value;
    if (d == 0) {
        CLV_TRY(join_below(p, parts, n, desc, out));
        if (!fits || target < 0) return CLV_OK;
        CLV_TRY(clv__region_whole(p, out, target, &value));
        return one_value(p, desc, parts[0].like, value, out);
    }
    const int64_t rows = fits ? desc->shape.dims[0] : clv__split_rows(desc, p->plan->places[p->place].device);
    if (fits || rows == 0) {
        CLV_TRY(join_beside(p, parts, n, d, desc, 0, desc->shape.dims[0], target, &value));
        return one_value(p, desc, parts[0].like, value, out);
    }
    const int items = (int)((desc->shape.dims[0] + rows - 1) / rows);
    CLV_TRY(clv__region_make(p, desc, parts[0].like, items, out));
    for (int i = 0; i < items; i++) {
        out->items[i].n = clv__split_piece(desc, rows, i);
        CLV_TRY(join_beside(p, parts, n, d, desc, i * rows, i * rows + out->items[i].n, -1,
                            &out->items[i].value));
    }
    return CLV_OK;
}

/** How many pieces a tensor lies in at the place, 1 if it fits, and the rows of each but the last. */
static int pieces_of(const clv__pieces *p, const clv__desc *desc, int64_t *rows) {
    const int64_t all = clv__split_length(&desc->shape, 0);
    *rows = clv__pieces_too_large(p, desc) ? clv__split_rows(desc, p->plan->places[p->place].device) : all;
    if (*rows == 0) *rows = all; // that cannot be helped
    return *rows < all ? (int)((all + *rows - 1) / *rows) : 1;
}

/** The sum of some rows of both. */
static clv_status add_rows(clv__pieces *p, const clv__region terms[2], const clv__desc *desc, int64_t begin,
                           int target, int *out) {
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    const clv__op *add = clv__parts_add(attrs);
    const int64_t rows = clv__split_length(&desc->shape, 0);
    int values[2];
    for (int k = 0; k < 2; k++) {
        clv__region some = terms[k];
        if (rows < clv__split_length(&some.desc.shape, 0))
            CLV_TRY(clv__region_narrow(p, &terms[k], 0, begin, begin + rows, &some));
        CLV_TRY(clv__region_whole(p, &some, -1, &values[k]));
    }
    *out = target;
    if (target < 0) CLV_TRY(clv__pieces_value(p, terms[0].like, desc, out));
    return clv__pieces_node(p, add, attrs, values, 2, out, 1);
}

clv_status clv__region_add(clv__pieces *p, const clv__region terms[2], const clv__desc *desc, int target,
                           clv__region *out) {
    int64_t rows;
    const clv__desc *larger = clv__desc_bytes(desc) < clv__desc_bytes(&terms[0].desc) ? &terms[0].desc : desc;
    const int items = pieces_of(p, larger, &rows);
    CLV_TRY(clv__region_make(p, desc, terms[0].like, items, out));
    for (int i = 0; i < items; i++) {
        clv__desc piece = *desc;
        out->items[i].n = items > 1 ? clv__split_piece(desc, rows, i) : rows;
        if (items > 1) piece.shape.dims[0] = out->items[i].n;
        CLV_TRY(add_rows(p, terms, &piece, i * rows, items > 1 ? -1 : target, &out->items[i].value));
    }
    if (items > 1 && !clv__pieces_too_large(p, desc)) {
        const clv__region rows_of = *out;
        int value;
        CLV_TRY(clv__region_whole(p, &rows_of, target, &value));
        return one_value(p, desc, terms[0].like, value, out);
    }
    return CLV_OK;
}

clv_status clv__region_scale(clv__pieces *p, const clv__region *from, double factor, clv__region *out) {
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    const clv__op *scale = clv__parts_scale((float)factor, attrs);
    CLV_TRY(clv__region_make(p, &from->desc, from->like, from->n, out));
    for (int i = 0; i < from->n; i++) {
        const int value = from->items[i].value;
        out->items[i].n = from->items[i].n;
        CLV_TRY(clv__pieces_value(p, from->like, desc_of(p, value), &out->items[i].value));
        CLV_TRY(clv__pieces_node(p, scale, attrs, &value, 1, &out->items[i].value, 1));
    }
    return CLV_OK;
}
