// SPDX-License-Identifier: Apache-2.0
// Sequences of tensors, as far as a graph of fixed shapes has them: their length is known, and so is which one is taken. Exporters write
// them for chunks and stacks. Source: the operators of ONNX 1.23.
#include "graph/graph.h"
#include "onnx/import.h"
#include "onnx/shapes.h"

enum {
    MOST_PARTS = 4096,
    COST = 64
}; // of a sequence; of a part, in what is known, so that a small file cannot ask for much

clv__made *clv__onnx_sequence(clv__onnx_use *use, int i, int n) {
    if (i >= use->n_out || !use->out[i] || clv__onnx_failed(use)) return NULL;
    if (*use->known_left < COST * n) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "the sequences of this file have too many tensors");
        return NULL;
    }
    *use->known_left -= COST * n;
    clv__made *made = clv__arena_alloc(&use->graph->arena, (size_t)n + 1, sizeof *made);
    clv__made **parts = clv__arena_alloc(&use->graph->arena, (size_t)n + 1, sizeof *parts);
    if (!made || !parts) {
        clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for a sequence of %d tensors", n);
        return NULL;
    }
    for (int k = 0; k < n; k++) parts[k] = &made[k];
    use->out[i]->parts = parts;
    use->out[i]->n_parts = n;
    return made;
}

/** The sequence that an input is; NULL after a failure. */
static const clv__made *sequence_in(clv__onnx_use *use, int i) {
    if (clv__onnx_has(use, i) && use->in[i]->parts) return use->in[i];
    clv__onnx_fail(use, CLV_E_UNSUPPORTED, "input %d is no sequence whose length is known", i);
    return NULL;
}

static void build_construct(clv__onnx_use *use) {
    clv__made *made = clv__onnx_sequence(use, 0, use->n_in);
    for (int i = 0; made && i < use->n_in; i++)
        if (use->in[i]) made[i] = *use->in[i];
}

/** How long each part is: all alike, the last perhaps shorter, or as a list says. Their number, -1 after a failure. */
static int lengths(clv__onnx_use *use, int64_t size, int64_t *out) {
    const clv__known *split = clv__onnx_has(use, 1) ? clv__onnx_known(use, 1) : NULL;
    if (split && split->shape.rank) return clv__onnx_numbers(use, 1, out, MOST_PARTS);
    const int64_t each = split ? clv__onnx_whole(split->v[0]) : 1,
                  n = each > 0 ? (size + each - 1) / each : 0;
    if (each < 1 || n > MOST_PARTS) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "%lld places in parts of %lld", (long long)size,
                       (long long)each);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) out[i] = size - i * each < each ? size - i * each : each;
    return (int)n;
}

static void build_split(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank);
    int64_t sizes[MOST_PARTS], start = 0, dims[CLV_MAX_RANK];
    const int n = clv__onnx_failed(use) ? -1 : lengths(use, shape.dims[axis], sizes);
    clv__made *made = n >= 0 ? clv__onnx_sequence(use, 0, n) : NULL;
    const bool squeeze = !clv__onnx_has(use, 1) && !clv__onnx_int(use, "keepdims", 1);
    for (int i = 0; made && i < n && !clv__onnx_failed(use); start += sizes[i++]) {
        clv_tensor *part = clv__onnx_part(clv__onnx_in(use, 0), axis, start, sizes[i]);
        int rank = 0;
        for (int d = 0; d < shape.rank; d++)
            if (!squeeze || d != axis) dims[rank++] = d == axis ? sizes[i] : shape.dims[d];
        made[i] = (clv__made){
            .tensor = clv__onnx_reshape(part, dims, rank), .type = use->in[0]->type, .fed = use->in[0]->fed};
    }
}

/** A place in a sequence, from its end if negative; -1 after a failure. `ends`: the one behind the last counts. */
static int place_in(clv__onnx_use *use, const clv__made *list, int i, bool ends) {
    const int64_t index = clv__onnx_whole(clv__onnx_number(use, i, 0)),
                  at = index < 0 ? index + list->n_parts : index;
    if (clv__onnx_failed(use)) return -1;
    if (at >= 0 && at < list->n_parts + ends) return (int)at;
    clv__onnx_fail(use, CLV_E_VALUE, "place %lld of a sequence of %d", (long long)index, list->n_parts);
    return -1;
}

static void build_at(clv__onnx_use *use) {
    const clv__made *list = sequence_in(use, 0);
    const int at = list ? place_in(use, list, 1, false) : -1;
    if (at >= 0 && use->n_out && use->out[0]) *use->out[0] = *list->parts[at];
}

static void build_empty(clv__onnx_use *use) {
    (void)clv__onnx_sequence(use, 0, 0);
}

static void build_insert(clv__onnx_use *use) {
    const clv__made *list = sequence_in(use, 0);
    const int at = !list ? -1 : clv__onnx_has(use, 2) ? place_in(use, list, 2, true) : list->n_parts;
    clv__made *made = at >= 0 && clv__onnx_has(use, 1) ? clv__onnx_sequence(use, 0, list->n_parts + 1) : NULL;
    if (made) (void)clv__onnx_in(use, 1); // a parameter is a tensor from here on
    for (int i = 0; made && i <= list->n_parts; i++)
        made[i] = i == at ? *use->in[1] : *list->parts[i - (i > at)];
}

static void build_erase(clv__onnx_use *use) {
    const clv__made *list = sequence_in(use, 0);
    if (list && !list->n_parts) clv__onnx_fail(use, CLV_E_VALUE, "the sequence is empty");
    const int at = !list || !list->n_parts ? -1
                   : clv__onnx_has(use, 1) ? place_in(use, list, 1, false)
                                           : list->n_parts - 1;
    clv__made *made = at >= 0 ? clv__onnx_sequence(use, 0, list->n_parts - 1) : NULL;
    for (int i = 0; made && i < list->n_parts - 1; i++) made[i] = *list->parts[i + (i >= at)];
}

// ---- optional values -------------------------------------------------------------------------------------------------

/** What is given, or nothing. */
static void build_optional(clv__onnx_use *use) {
    if (!use->n_out || !use->out[0]) return;
    if (!clv__onnx_has(use, 0))
        use->out[0]->none = true;
    else if (use->in[0]->parts || use->in[0]->none)
        *use->out[0] = *use->in[0];
    else if (use->in[0]->known)
        clv__onnx_give_known(use, 0, use->in[0]->known);
    else
        clv__onnx_give(use, 0, clv__onnx_in(use, 0));
}

static void build_has_element(clv__onnx_use *use) {
    clv__known *has = clv__onnx_new_known(use, CLV__ONNX_BOOL, (clv_shape){0});
    if (has) has->v[0] = clv__onnx_has(use, 0) && !use->in[0]->none;
    clv__onnx_give_known(use, 0, has);
}

static void build_get_element(clv__onnx_use *use) {
    if (!clv__onnx_has(use, 0) || use->in[0]->none)
        clv__onnx_fail(use, CLV_E_VALUE, "the optional value is not there");
    else
        build_optional(use);
}

static void build_length(clv__onnx_use *use) {
    const clv__made *list = sequence_in(use, 0);
    clv__known *n = list ? clv__onnx_new_known(use, CLV__ONNX_INT64, (clv_shape){0}) : NULL;
    if (n) n->v[0] = list->n_parts;
    clv__onnx_give_known(use, 0, n);
}

/** Joined along an axis, or along a new one. */
static void build_concat(clv__onnx_use *use) {
    const clv__made *list = sequence_in(use, 0);
    const bool stacks = clv__onnx_int(use, "new_axis", 0) != 0;
    if (!list || !list->n_parts || list->n_parts > MOST_PARTS) return;
    clv_tensor *parts[MOST_PARTS], *first = clv__onnx_tensor_of(use, list->parts[0]);
    clv_shape shape = clv_tensor_shape(first);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank + stacks);
    if (clv__onnx_failed(use)) return;
    for (int d = shape.rank; stacks && d > axis; d--) shape.dims[d] = shape.dims[d - 1];
    if (stacks) shape.dims[axis] = 1;
    for (int i = 0; i < list->n_parts; i++) {
        parts[i] = clv__onnx_tensor_of(use, list->parts[i]);
        if (stacks) parts[i] = clv__onnx_reshape(parts[i], shape.dims, shape.rank + 1);
    }
    clv__onnx_give_type(use, 0, clv_concat(parts, list->n_parts, axis), list->parts[0]->type);
}

const clv__onnx_row clv__onnx_sequences[] = {
    {"ConcatFromSequence", .build = build_concat},
    {"Optional", .build = build_optional},
    {"OptionalGetElement", .build = build_get_element},
    {"OptionalHasElement", .build = build_has_element},
    {"SequenceAt", .build = build_at},
    {"SequenceConstruct", .build = build_construct},
    {"SequenceEmpty", .build = build_empty},
    {"SequenceErase", .build = build_erase},
    {"SequenceInsert", .build = build_insert},
    {"SequenceLength", .build = build_length},
    {"SplitToSequence", .build = build_split},
    {0},
};
