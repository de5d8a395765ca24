// SPDX-License-Identifier: Apache-2.0
// Pass between place and fuse: a tensor that is larger than the largest allocation of its device lies in several, each with some of
// its rows, and what computes with it is done in parts.
//
// What is cut depends on shape and device alone (clv__split_rows), so that every plan of a session finds a parameter in the same
// pieces. An op says along which dimensions a use of it can be done in parts (clv__op.split); of its ways that is taken which leaves
// nothing too large and has to copy least: pieces are rows, so a cut along another dimension copies. Where one way does not do (a
// large weight and a large batch), the parts are done in parts again. The parts follow each other where the node was; the results
// of a sum are added up in their order, whatever else is a part of a result has the bits that it has in the whole.
//
// Whatever no way leads to is done whole, with tensors that are too large: clv_plans_fit refuses such a plan, and says which op it
// was (plan->unsplit). Values that are carried to another device: carry.c.
#include <stdlib.h>
#include <string.h>

#include "plan/passes.h"
#include "plan/split.h"

enum { MOST_LEVELS = 4 }; // parts of parts

/** The largest power of two that is not above n; 0 for 0. */
static int64_t power_below(uint64_t n) {
    return n ? (int64_t)(UINT64_C(1) << (63 - __builtin_clzll(n))) : 0;
}

/** A use of an op, of which there may be parts. */
typedef struct use {
    const clv__op *op;
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    int n_in, n_out;
    clv__region in[CLV__MAX_IN]; // dtype NONE: not there
    clv__desc out[CLV__MAX_OUT];
    const clv_tensor *like[CLV__MAX_OUT]; // what its results are, or parts of
} use;

/** A way to do it in parts. */
typedef struct way {
    clv__split split;
    int64_t step;         // of split.length
    int too_large, copied; // tensors that are too large in parts of so many, too; and whose parts are no pieces of them
} way;

static clv_status do_use(clv__splitting *s, const use *u, const int *targets, int level, clv__region *results);

// ---- choosing a way -----------------------------------------------------------------------------------------------------

/** The use as the op's functions see it; `in`: room for its inputs. */
static clv__op_io io_of(const use *u, clv__desc in[CLV__MAX_IN]) {
    clv__op_io io = {.op = u->op, .n_in = u->n_in, .n_out = u->n_out, .in = in};
    if (u->op->attrs_bytes) io.attrs = u->attrs;
    for (int i = 0; i < u->n_in; i++) in[i] = u->in[i].desc;
    for (int i = 0; i < u->n_out; i++) io.out[i] = u->out[i];
    return io;
}

/** How many of the dimension's elements go with one of the length. */
static int64_t times(const clv__split *split, const clv__desc *desc, int d, int input) {
    return input == 0 && split->one_for_one ? 1 : desc->shape.dims[d] / split->length;
}

/** What a tensor means for a way; `rows` of its first item, 0 if it has one only. `input` -1: a result. */
static void consider(const clv__splitting *s, way *w, const clv__desc *desc, int goes, int input, int64_t rows) {
    const bool large = clv__pieces_too_large(&s->to, desc);
    if (goes < 0) {
        w->too_large += large;
        return;
    }
    const int64_t t = times(&w->split, desc, goes, input), dim = desc->shape.dims[goes];
    if (large) {
        const size_t unit = clv__desc_bytes(desc) / (size_t)dim * (size_t)t;
        int64_t step = power_below(s->to.limit / unit);
        w->too_large += step == 0;
        if (step < 1) step = 1;
        if (step < w->step) w->step = step;
        for (int k = 0; k < goes; k++) { // not so if it begins with dimensions of 1
            if (desc->shape.dims[k] == 1) continue;
            w->copied++;
            break;
        }
    }
    if (goes == 0 && rows >= t && rows / t < w->step) w->step = rows / t; // its pieces as they are
}

/** Is it possible, and does it make anything smaller? */
static bool is_a_way(const clv__splitting *s, const use *u, const clv__op_io *io, int number, way *w, bool *past) {
    *w = (way){.step = INT64_MAX};
    memset(w->split.in, CLV__SPLIT_WHOLE, sizeof w->split.in);
    memset(w->split.out, CLV__SPLIT_WHOLE, sizeof w->split.out);
    *past = !u->op->split || !u->op->split(io, number, &w->split);
    if (*past || w->split.length < 1) return false;
    bool shrinks = w->split.one_for_one;
    for (int i = 0; i < u->n_in; i++) {
        const clv__region *in = &u->in[i];
        if (in->desc.dtype == CLV_DTYPE_NONE) continue;
        if (u->op->mutates >> i & 1 && w->split.in[i] < 0) return false;
        consider(s, w, &in->desc, w->split.in[i], i, in->n > 1 ? in->items[0].n : 0);
    }
    for (int i = 0; i < u->n_out; i++) consider(s, w, &u->out[i], w->split.out[i], -1, 0);
    if (w->step > w->split.length) w->step = w->split.length;
    return shrinks || w->step < w->split.length;
}

static bool choose(const clv__splitting *s, const use *u, way *best) {
    clv__desc in_desc[CLV__MAX_IN];
    const clv__op_io io = io_of(u, in_desc);
    bool found = false, past = false;
    for (int i = 0; !past; i++) {
        way w;
        if (!is_a_way(s, u, &io, i, &w, &past)) continue;
        if (found && (w.too_large > best->too_large || (w.too_large == best->too_large && w.copied >= best->copied)))
            continue;
        *best = w;
        found = true;
    }
    return found;
}

// ---- doing it -------------------------------------------------------------------------------------------------------------

static clv__in_pieces *note_of(clv_plan *plan, int value) {
    return clv__note(plan, CLV__PASS_split, (size_t)value, sizeof(clv__in_pieces));
}

/** Keep which op it was, of the first one, for the sentence of a refusal, and its largest tensor. */
static clv_status note_unsplit(clv__splitting *s, const use *u) {
    clv_plan *plan = s->to.plan;
    const clv__desc *most = NULL;
    const clv_tensor *of = NULL;
    if (s->undone) return CLV_OK;
    for (int i = 0; i < u->n_in + u->n_out; i++) {
        const clv__desc *desc = i < u->n_in ? &u->in[i].desc : &u->out[i - u->n_in];
        if (desc->dtype == CLV_DTYPE_NONE || (most && clv__desc_bytes(desc) <= clv__desc_bytes(most))) continue;
        most = desc;
        of = i < u->n_in ? u->in[i].like : u->like[i - u->n_in];
    }
    int value = 0;
    while (plan->values[value].tensor != of) value++;
    clv__in_pieces *note = note_of(plan, value);
    if (!note) return clv__plan_no_memory(plan);
    note->undone = s->to.of;
    note->row = clv__split_rows(&plan->values[value].desc, plan->places[s->to.place].device) == 0;
    s->undone = true;
    return CLV_OK;
}

/** Is a tensor of the use too large, and cannot be cut? */
static bool any_without_pieces(const clv__splitting *s, const use *u) {
    const clv_device *device = s->to.plan->places[s->to.place].device;
    for (int i = 0; i < u->n_in + u->n_out; i++) {
        const clv__desc *desc = i < u->n_in ? &u->in[i].desc : &u->out[i - u->n_in];
        if (desc->dtype != CLV_DTYPE_NONE && clv__pieces_too_large(&s->to, desc) && clv__split_rows(desc, device) == 0)
            return true;
    }
    return false;
}

/** As one node. */
static clv_status do_whole(clv__splitting *s, const use *u, const int *targets, clv__region *results) {
    int in[CLV__MAX_IN], out[CLV__MAX_OUT];
    for (int i = 0; i < u->n_in; i++) {
        in[i] = -1;
        if (u->in[i].desc.dtype == CLV_DTYPE_NONE) continue;
        if (u->op->mutates >> i & 1 && (u->in[i].copied || u->in[i].n > 1)) {
            clv__node_title title;
            CLV_FAIL(clv__plan_error(s->to.plan), CLV_E_UNSUPPORTED,
                     "%s: '%s' lies in several allocations, since none on %s may be larger than %zu bytes, and it "
                     "cannot be changed in parts",
                     clv__title_of(s->to.of, &title), u->in[i].like->name,
                     s->to.plan->places[s->to.place].device->info.name, s->to.limit);
        }
        CLV_TRY(clv__region_whole(&s->to, &u->in[i], -1, &in[i]));
    }
    for (int i = 0; i < u->n_out; i++) {
        out[i] = targets[i];
        if (out[i] < 0) CLV_TRY(clv__pieces_value(&s->to, u->like[i], &u->out[i], &out[i]));
        CLV_TRY(clv__region_of(&s->to, out[i], &results[i]));
        results[i].like = u->like[i];
    }
    CLV_TRY(clv__pieces_node(&s->to, u->op, u->attrs, in, u->n_in, out, u->n_out));
    clv__plan_node *at = &s->to.plan->nodes[s->to.plan->n_nodes - 1];
    at->slice = s->to.slices++;
    return CLV_OK;
}

/** Does the result come of adding up the parts'? */
static bool adds(const way *w, int i) {
    return w->split.out[i] == CLV__SPLIT_SUM || w->split.out[i] == CLV__SPLIT_MEAN;
}

/** The use on the part [begin, end). `before`: the results of the part before, NULL if it is the first. */
static clv_status take_part(clv__splitting *s, const use *u, const way *w, int64_t begin, int64_t end,
                            const clv__region *before, use *part) {
    *part = *u;
    const clv__split *split = &w->split;
    clv__desc in_desc[CLV__MAX_IN];
    const clv__op_io io = io_of(u, in_desc);
    if (u->op->split_attrs) u->op->split_attrs(&io, split, begin, end, part->attrs);
    for (int i = 0; i < u->n_in; i++) {
        const int goes = split->in[i];
        const clv__region *in = &u->in[i];
        if (goes == CLV__SPLIT_CARRY && before) part->in[i] = before[0];
        if (in->desc.dtype == CLV_DTYPE_NONE) continue;
        if (goes >= 0) {
            const int64_t t = times(split, &in->desc, goes, i), from = i == 0 ? split->from : 0;
            CLV_TRY(clv__region_narrow(&s->to, in, goes, from + begin * t, from + end * t, &part->in[i]));
        }
        if (goes == CLV__SPLIT_SHARE && end - begin < split->length)
            CLV_TRY(clv__region_scale(&s->to, in, (double)(end - begin) / (double)split->length, &part->in[i]));
    }
    for (int i = 0; i < u->n_out; i++) {
        const int goes = split->out[i];
        if (goes >= 0) part->out[i].shape.dims[goes] = (end - begin) * times(split, &u->out[i], goes, -1);
        if (adds(w, i) && end - begin < split->length) part->out[i].dtype = CLV_DTYPE_F32; // no term is rounded to two bytes
    }
    return CLV_OK;
}

/** Part k of n was done: add what is added up to what there is of it, so that no two parts' terms wait for each other. */
static clv_status add_up(clv__splitting *s, const use *u, const way *w, int k, int n, const int *targets,
                         clv__region *made, clv__region *results) {
    const int64_t rest = w->split.length - k * w->step;
    const double share = (double)(rest < w->step ? rest : w->step) / (double)w->split.length;
    for (int i = 0; i < u->n_out; i++) {
        if (!adds(w, i)) continue;
        clv__region terms[2] = {results[i], made[i]};
        if (w->split.out[i] == CLV__SPLIT_MEAN)
            CLV_TRY(clv__region_scale(&s->to, &made[i], share, &terms[1]));
        results[i] = terms[1];
        const bool last = k + 1 == n;
        if (k > 0)
            CLV_TRY(clv__region_add(&s->to, terms, last ? &u->out[i] : &terms[0].desc, last ? targets[i] : -1,
                                    &results[i]));
    }
    return CLV_OK;
}

/** Results that lie behind each other: of the parts, [part][CLV__MAX_OUT]. */
static clv_status join(clv__splitting *s, const use *u, const way *w, const clv__region *parts, int n, const int *targets,
                       clv__region *results) {
    clv__region *of = clv__arena_alloc(&s->to.scratch, (size_t)n, sizeof *of);
    if (!of) return clv__plan_no_memory(s->to.plan);
    for (int i = 0; i < u->n_out; i++) {
        const int goes = w->split.out[i];
        for (int k = 0; k < n; k++) of[k] = parts[k * CLV__MAX_OUT + i];
        if (goes == CLV__SPLIT_CARRY || n == 1) results[i] = of[n - 1];
        if (goes >= 0 && n > 1)
            CLV_TRY(clv__region_join(&s->to, of, n, goes, &u->out[i], targets[i], &results[i]));
    }
    return CLV_OK;
}

static clv_status do_parts(clv__splitting *s, const use *u, const way *w, const int *targets, int level,
                           clv__region *results) {
    const int n = (int)((w->split.length + w->step - 1) / w->step);
    clv__region *parts = clv__arena_alloc(&s->to.scratch, (size_t)n * CLV__MAX_OUT, sizeof *parts);
    use *part = clv__arena_alloc(&s->to.scratch, 1, sizeof *part);
    if (!parts || !part) return clv__plan_no_memory(s->to.plan);
    for (int k = 0; k < n; k++) {
        const int64_t begin = k * w->step, rest = w->split.length - begin;
        clv__region *made = &parts[k * CLV__MAX_OUT];
        int to[CLV__MAX_OUT];
        for (int i = 0; i < CLV__MAX_OUT; i++)
            to[i] = i < u->n_out && (n == 1 || (w->split.out[i] == CLV__SPLIT_CARRY && k + 1 == n)) ? targets[i] : -1;
        CLV_TRY(take_part(s, u, w, begin, begin + (rest < w->step ? rest : w->step),
                          k ? made - CLV__MAX_OUT : NULL, part));
        CLV_TRY(do_use(s, part, to, level + 1, made));
        if (n > 1) CLV_TRY(add_up(s, u, w, k, n, targets, made, results));
    }
    return join(s, u, w, parts, n, targets, results);
}

static bool any_too_large(const clv__splitting *s, const use *u) {
    for (int i = 0; i < u->n_in; i++)
        if (u->in[i].desc.dtype != CLV_DTYPE_NONE && clv__pieces_too_large(&s->to, &u->in[i].desc)) return true;
    for (int i = 0; i < u->n_out; i++)
        if (clv__pieces_too_large(&s->to, &u->out[i])) return true;
    return false;
}

/** Do a use, in parts if it has to be. targets[]: values for its results, -1: whichever. A result that is too large for one value
 *  comes in several, without its target. */
static clv_status do_use(clv__splitting *s, const use *u, const int *targets, int level, clv__region *results) {
    way w;
    if (!any_too_large(s, u)) return do_whole(s, u, targets, results);
    if (level < MOST_LEVELS && choose(s, u, &w)) return do_parts(s, u, &w, targets, level, results);
    CLV_TRY(note_unsplit(s, u));
    return do_whole(s, u, targets, results);
}

// ---- for others ---------------------------------------------------------------------------------------------------------------

bool clv__value_is_cut(const clv_plan *plan, int value) {
    const clv__in_pieces *note = clv__noted(plan, CLV__PASS_split, (size_t)value);
    return note && note->n > 0;
}

int clv__value_pieces(const clv_plan *plan, const int *value, const int **pieces) {
    const clv__in_pieces *note = clv__noted(plan, CLV__PASS_split, (size_t)*value);
    *pieces = note && note->n ? note->pieces : value;
    return note && note->n ? note->n : 1;
}

int clv__value_piece(const clv_plan *plan, int value) {
    const clv__in_pieces *note = clv__noted(plan, CLV__PASS_split, (size_t)value);
    return note ? note->number : 0;
}

const clv__node *clv__plan_unsplit(const clv_plan *plan, int *value, bool *row) {
    for (*value = 0; *value < (int)plan->n_values; ++*value) {
        const clv__in_pieces *note = clv__noted(plan, CLV__PASS_split, (size_t)*value);
        if (!note || !note->undone) continue;
        *row = note->row;
        return note->undone;
    }
    return NULL;
}

// ---- node by node -----------------------------------------------------------------------------------------------------------

bool clv__split_is_cut(const clv__splitting *s, int value) {
    return value >= 0 &&
           (s->regions[value].n > 1 || clv__pieces_too_large(&s->to, &s->to.plan->values[value].desc));
}

clv_status clv__split_region_of(clv__splitting *s, int value, clv__region *out) {
    if (s->regions[value].n == 0) CLV_TRY(clv__region_of(&s->to, value, &s->regions[value]));
    *out = s->regions[value];
    return CLV_OK;
}

/** The value is in these pieces from now on; a result that is fetched is fetched from them. */
static clv_status note_pieces(clv__splitting *s, int value, const clv__region *region) {
    clv_plan *plan = s->to.plan;
    s->regions[value] = *region;
    if (region->n == 1 && region->items[0].value == value) return CLV_OK;
    int *pieces = clv__arena_alloc(&plan->arena, (size_t)region->n, sizeof *pieces);
    clv__in_pieces *note = note_of(plan, value);
    if (!pieces || !note) return clv__plan_no_memory(s->to.plan);
    for (int i = 0; i < region->n; i++) {
        pieces[i] = region->items[i].value;
        clv_tensor *tensor = (clv_tensor *)plan->values[pieces[i]].tensor; // the plan's own
        tensor->is_output |= plan->values[value].tensor->is_output;
    }
    note->pieces = pieces;
    note->n = region->n;
    return CLV_OK;
}

static void begin(clv__splitting *s, const clv__plan_node *at) {
    clv_plan *plan = s->to.plan;
    s->to.place = at->place;
    s->to.limit = clv__split_largest(plan->places[at->place].device);
    s->to.of = at->node;
    s->to.slices = 0;
}

static clv_status split_compute(clv__splitting *s, const clv__plan_node *at) {
    const clv__op_io *io = &at->node->io;
    bool cut = false;
    for (int i = 0; i < CLV__MAX_IN; i++) cut |= clv__split_is_cut(s, at->in[i]);
    for (int i = 0; i < CLV__MAX_OUT; i++) cut |= clv__split_is_cut(s, at->out[i]);
    if (!cut) return clv__plan_append(s->to.plan, at);
    use u = {.op = io->op, .n_in = io->n_in, .n_out = io->n_out};
    if (io->op->attrs_bytes) memcpy(u.attrs, io->attrs, io->op->attrs_bytes);
    for (int i = 0; i < io->n_in; i++)
        if (at->in[i] >= 0) CLV_TRY(clv__split_region_of(s, at->in[i], &u.in[i]));
    int targets[CLV__MAX_OUT];
    clv__region results[CLV__MAX_OUT];
    for (int i = 0; i < io->n_out; i++) {
        targets[i] = at->out[i];
        u.out[i] = io->out[i];
        u.like[i] = at->node->out[i];
    }
    const size_t first = s->to.plan->n_nodes;
    if (any_without_pieces(s, &u)) CLV_TRY(note_unsplit(s, &u));
    CLV_TRY(do_use(s, &u, targets, 0, results));
    for (size_t i = first; i < s->to.plan->n_nodes; i++) s->to.plan->nodes[i].slices = s->to.slices;
    for (int i = 0; i < io->n_out; i++) CLV_TRY(note_pieces(s, at->out[i], &results[i]));
    return CLV_OK;
}

// ---- the pass ---------------------------------------------------------------------------------------------------------------

/** The pieces of what is kept or fed: they are there before the first node. */
static clv_status begin_with_pieces(clv__splitting *s, int value) {
    clv_plan *plan = s->to.plan;
    const clv_tensor *tensor = plan->values[value].tensor;
    const clv__desc whole = plan->values[value].desc;
    const clv_device *device = plan->places[plan->values[value].place].device;
    s->to.place = plan->values[value].place;
    const int64_t rows = clv__split_rows(&whole, device), all = clv__split_length(&whole.shape, 0);
    if (rows == 0 || rows == all) return CLV_OK;
    const int n = (int)((all + rows - 1) / rows);
    clv__region region;
    CLV_TRY(clv__region_make(&s->to, &whole, tensor, n, &region));
    for (int i = 0; i < n; i++) {
        clv__desc desc = whole;
        region.items[i].n = desc.shape.dims[0] = clv__split_piece(&whole, rows, i);
        CLV_TRY(clv__pieces_value(&s->to, tensor, &desc, &region.items[i].value));
        clv__in_pieces *note = note_of(plan, region.items[i].value);
        if (!note) return clv__plan_no_memory(plan);
        note->number = i;
        clv_tensor *of = (clv_tensor *)plan->values[region.items[i].value].tensor;
        of->kind = tensor->kind;
        of->category = tensor->category;
        of->trainable = tensor->trainable;
    }
    return note_pieces(s, value, &region);
}

static clv_status split_all(clv__splitting *s, const clv__rewrite *before) {
    clv_plan *plan = s->to.plan;
    s->n_transfers = plan->n_transfers;
    s->first_of = clv__arena_alloc(&s->to.scratch, plan->n_transfers + 1, sizeof *s->first_of);
    if (!s->first_of) return clv__plan_no_memory(s->to.plan);
    for (size_t i = 0; i < s->n_regions; i++) {
        const clv__value *value = &plan->values[i];
        if (!value->copy && value->tensor->kind != CLV__VALUE) CLV_TRY(begin_with_pieces(s, (int)i));
    }
    for (size_t i = 0; i < before->n; i++) {
        const clv__plan_node *at = &before->nodes[i];
        begin(s, at);
        CLV_TRY(at->work == CLV__SEND      ? clv__split_send(s, at)
                : at->work == CLV__RECEIVE ? clv__split_receive(s, at)
                                           : split_compute(s, at));
    }
    return clv__split_renumber(s);
}

/** Is there anything to do? */
static bool any_is_too_large(const clv_plan *plan) {
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *value = &plan->values[i];
        if (value->bytes > clv__split_largest(plan->places[value->place].device)) return true;
    }
    return false;
}

static clv_status run(clv_plan *plan) {
    if (!any_is_too_large(plan)) return CLV_OK;
    clv__splitting s = {.to = {.plan = plan}, .n_regions = plan->n_values};
    clv__rewrite before;
    CLV_TRY(clv__rewrite_begin(plan, &before));
    s.regions = clv__arena_alloc(&s.to.scratch, plan->n_values, sizeof *s.regions);
    const clv_status status = s.regions ? split_all(&s, &before) : clv__plan_no_memory(plan);
    clv__rewrite_end(&before);
    clv__arena_reset(&s.to.scratch);
    free(s.to.fresh);
    return status;
}

const clv__pass clv__pass_split = {.run = run};
