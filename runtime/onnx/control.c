// SPDX-License-Identifier: Apache-2.0
// Control flow whose course is known while the graph is built: If is the branch that it takes; Loop, Scan and SequenceMap are written out,
// one turn after another. Source: the operators of ONNX 1.23.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/graph.h"
#include "io/shown.h"
#include "onnx/import.h"
#include "onnx/known.h"

/** What the turns of a loop make, one behind the other; the caller frees the items. */
typedef struct series {
    clv__made *items;
    size_t n, room;
} series;

/** The graph of an attribute; NULL after a failure. */
static const clv__onnx_graph *graph_of(clv__onnx_use *use, const char *name) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, name);
    if (one && one->g) return one->g;
    clv__onnx_fail(use, CLV_E_FORMAT, "it has no graph '%s'", name);
    return NULL;
}

/** The same under another name. A parameter becomes a tensor first, so that there is one. */
static void give(clv__onnx_use *use, clv__made *to, clv__made *from) {
    const clv__onnx_node *later = from->later;
    from->later = NULL;
    if (later) use->flow->build(use->import, later, true);
    const bool parameter = from->data && clv__onnx_is_float(from->type) && from->data->rank > 0;
    if (parameter)
        (void)clv__onnx_tensor_of(use, from);
    else if (from->data && !from->known)
        from->known = clv__known_of(use, from->data, CLV__MOST_KNOWN);
    *to = *from;
}

static void give_number(clv__onnx_use *use, clv__made *to, int type, double value) {
    clv__known *known = clv__onnx_new_known(use, type, (clv_shape){0});
    if (!known) return;
    known->v[0] = value;
    *to = (clv__made){.name = to->name, .type = type, .known = known};
}

static clv_shape shape_of(clv__onnx_use *use, clv__made *value) {
    if (value->known) return value->known->shape;
    clv_tensor *tensor = clv__onnx_tensor_of(use, value);
    return tensor ? clv_tensor_shape(tensor) : (clv_shape){0};
}

/** Zeros that live as long as the graph. */
static void *zeros(clv__onnx_use *use, size_t n, size_t size) {
    void *all = clv__arena_alloc(&use->graph->arena, n + 1, size);
    if (!all) clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %zu values", n);
    return all;
}

static void append(clv__onnx_use *use, series *list, clv__made *value) {
    if (clv__onnx_failed(use)) return;
    if (!clv__grow(&list->items, &list->room, list->n + 1, sizeof *list->items))
        clv__onnx_fail(use, CLV_E_HOST_MEMORY, "no memory for %zu values", list->n + 1);
    else
        give(use, &list->items[list->n++], value);
}

static clv__made *input_of(const clv__onnx_use *use, const clv__onnx_graph *graph, size_t i) {
    return &use->flow->made[graph->inputs[i].value];
}

static clv__made *output_of(const clv__onnx_use *use, const clv__onnx_graph *graph, size_t i) {
    return &use->flow->made[graph->outputs[i].value];
}

/** Has the graph so many inputs, and at least so many outputs? */
static bool fits(clv__onnx_use *use, const clv__onnx_graph *graph, size_t n_inputs, size_t n_outputs) {
    if (!graph) return false;
    if (graph->n_inputs == n_inputs && graph->n_outputs >= n_outputs) return true;
    clv__onnx_fail(use, CLV_E_FORMAT,
                   "its graph takes %zu values and gives %zu, where %zu are given and %zu are wanted",
                   graph->n_inputs, graph->n_outputs, n_inputs, n_outputs);
    return false;
}

/** One more of what loops may make? */
static bool take_looped(clv__onnx_use *use) {
    if (use->flow->loops && --use->flow->left < 0)
        clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                       "loops are unrolled, to at most %d nodes in a file, and these are more",
                       CLV__MOST_LOOPED);
    return !clv__onnx_failed(use);
}

/** The nodes of the graph; what it is given is there. */
static void build_body(clv__onnx_use *use, const clv__onnx_graph *body) {
    use->flow->graphs++;
    for (size_t i = 0; i < body->n_nodes && take_looped(use); i++)
        use->flow->build(use->import, &body->nodes[i], false);
    use->flow->graphs--;
}

/** The same as a turn of a loop; false after a failure. */
static bool build_turn(clv__onnx_use *use, const clv__onnx_graph *body) {
    use->flow->loops++;
    if (take_looped(use)) build_body(use, body);
    use->flow->loops--;
    return !clv__onnx_failed(use);
}

// ---- If -------------------------------------------------------------------------------------------------------------

static void build_if(clv__onnx_use *use) {
    const bool yes = clv__onnx_number(use, 0, 0) != 0;
    const clv__onnx_graph *branch =
        clv__onnx_failed(use) ? NULL : graph_of(use, yes ? "then_branch" : "else_branch");
    if (!branch || !fits(use, branch, 0, (size_t)use->n_out)) return;
    build_body(use, branch);
    for (int i = 0; i < use->n_out && !clv__onnx_failed(use); i++)
        if (use->out[i]) give(use, use->out[i], output_of(use, branch, (size_t)i));
}

// ---- along an axis --------------------------------------------------------------------------------------------------

/** Of a value with its axis `axis` of so many, what stands at place i. */
static void slice(clv__onnx_use *use, clv__made *to, clv__made *from, int axis, int64_t i) {
    clv_shape shape = shape_of(use, from), whole = shape;
    if (clv__onnx_failed(use)) return;
    memmove(shape.dims + axis, shape.dims + axis + 1, (size_t)(shape.rank - axis - 1) * sizeof *shape.dims);
    shape.rank--;
    *to = (clv__made){.name = to->name, .type = from->type, .fed = from->fed, .outside = from->outside};
    to->batch_axis = from->batch_axis > axis ? from->batch_axis - 1 : from->batch_axis;
    if (!from->known) {
        clv_tensor *part = clv__onnx_part(clv__onnx_tensor_of(use, from), axis, i, 1);
        to->tensor = clv__onnx_reshape(part, shape.dims, shape.rank);
        return;
    }
    clv__known *known = clv__onnx_new_known(use, from->type, shape);
    int64_t inner = 1, n = known ? clv_shape_numel(&shape) : 0;
    for (int d = axis + 1; d < whole.rank; d++) inner *= whole.dims[d];
    for (int64_t k = 0; k < n; k++)
        known->v[k] = from->known->v[(k / inner * whole.dims[axis] + i) * inner + k % inner];
    to->known = known;
}

/** Known numbers beside each other along a new axis; NULL: not all are known, or of one shape. */
static const clv__known *stack_known(clv__onnx_use *use, const series *list, bool turned, int axis,
                                     clv_shape shape) {
    clv_shape one = shape;
    memmove(one.dims + axis, one.dims + axis + 1, (size_t)(one.rank - axis - 1) * sizeof *one.dims);
    one.rank--;
    for (size_t i = 0; i < list->n; i++)
        if (!list->items[i].known || !clv_shape_equal(&list->items[i].known->shape, &one)) return NULL;
    if (clv_shape_numel(&shape) > CLV__MOST_KNOWN) return NULL;
    clv__known *known = clv__onnx_new_known(use, list->items[0].type, shape);
    int64_t inner = 1, n = known ? clv_shape_numel(&one) : 0;
    for (int d = axis + 1; d < shape.rank; d++) inner *= shape.dims[d];
    for (size_t i = 0; known && i < list->n; i++) {
        const double *from = list->items[turned ? list->n - 1 - i : i].known->v;
        for (int64_t k = 0; k < n; k++)
            known->v[(k / inner * (int64_t)list->n + (int64_t)i) * inner + k % inner] = from[k];
    }
    return known;
}

/** What no turn made: no numbers, in the shape that the file says. */
static void give_nothing(clv__onnx_use *use, clv__made *to, const clv__onnx_info *info) {
    clv_shape shape = {.rank = info ? (int)info->rank + 1 : 0};
    if (!info || !info->has_shape || info->rank + 1 > CLV_MAX_RANK)
        clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                       "the loop has no iterations, and the file gives no shape for its results");
    for (size_t d = 0; !clv__onnx_failed(use) && d < info->rank; d++) {
        if (info->dims[d].size < 0)
            clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                           "the loop has no iterations, and the file gives no shape for its results");
        shape.dims[d + 1] = info->dims[d].size;
    }
    if (!clv__onnx_failed(use))
        *to = (clv__made){.name = to->name,
                          .type = (int)info->dtype,
                          .known = clv__onnx_new_known(use, (int)info->dtype, shape)};
}

/** What the turns made, beside each other along a new axis, the last turn first if it is turned. */
static void stack(clv__onnx_use *use, clv__made *to, const series *list, int64_t axis, bool turned) {
    clv_shape shape = shape_of(use, &list->items[0]);
    const int at = clv__onnx_axis(use, axis, shape.rank + 1);
    if (clv__onnx_failed(use)) return;
    if (shape.rank == CLV_MAX_RANK) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "a result of more than %d dimensions", CLV_MAX_RANK);
        return;
    }
    memmove(shape.dims + at + 1, shape.dims + at, (size_t)(shape.rank - at) * sizeof *shape.dims);
    shape.dims[at] = (int64_t)list->n;
    shape.rank++;
    const clv__made *first = &list->items[0];
    *to = (clv__made){.name = to->name, .type = first->type, .outside = first->outside};
    to->batch_axis = first->batch_axis + (first->batch_axis >= at);
    for (size_t i = 0; i < list->n; i++) to->fed = to->fed || list->items[i].fed;
    to->known = stack_known(use, list, turned, at, shape);
    if (to->known || clv__onnx_failed(use)) return;
    clv_tensor **parts = zeros(use, list->n, sizeof *parts);
    shape.dims[at] = 1;
    for (size_t i = 0; parts && i < list->n; i++) {
        clv__made *item = &list->items[turned ? list->n - 1 - i : i];
        parts[i] = clv__onnx_reshape(clv__onnx_tensor_of(use, item), shape.dims, shape.rank);
    }
    if (parts && !clv__onnx_failed(use)) to->tensor = clv_concat(parts, (int)list->n, at);
}

// ---- Loop -----------------------------------------------------------------------------------------------------------

/** Is the condition true? It must be known. */
static bool goes_on(clv__onnx_use *use, clv__made *value) {
    clv__shown_text shown;
    if (value->data && !value->known) value->known = clv__known_of(use, value->data, CLV__MOST_KNOWN);
    const clv__known *known = value->known;
    if (known && clv_shape_numel(&known->shape) == 1) return known->v[0] != 0;
    clv__onnx_fail(use, CLV_E_UNSUPPORTED,
                   "whether the loop goes on ('%s') depends on the values that are fed, and must be known",
                   clv__shown_bytes(value->name.data, value->name.n, &shown));
    return false;
}

/** What a turn gives becomes what the next is given; together, as two may change places. */
static void hand_on(clv__onnx_use *use, const clv__onnx_graph *body, size_t first, clv__made *state,
                    size_t n) {
    for (size_t i = 0; i < n && !clv__onnx_failed(use); i++)
        give(use, &state[i], output_of(use, body, first + i));
}

static void build_turns(clv__onnx_use *use, const clv__onnx_graph *body, clv__made *state, size_t n,
                        series *made) {
    const int64_t most = clv__onnx_has(use, 0) ? clv__onnx_whole(clv__onnx_number(use, 0, 0)) : INT64_MAX;
    bool more = clv__onnx_failed(use) || !clv__onnx_has(use, 1) || goes_on(use, use->in[1]);
    for (int64_t i = 0; i < most && more && !clv__onnx_failed(use); i++) {
        give_number(use, input_of(use, body, 0), CLV__ONNX_INT64, (double)i);
        give_number(use, input_of(use, body, 1), CLV__ONNX_BOOL, 1);
        for (size_t k = 0; k < n; k++) *input_of(use, body, 2 + k) = state[k];
        if (!build_turn(use, body)) return;
        for (size_t k = 0; k + 1 + n < body->n_outputs; k++)
            append(use, &made[k], output_of(use, body, 1 + n + k));
        if (i + 1 < most) more = goes_on(use, output_of(use, body, 0));
        hand_on(use, body, 1, state, n);
    }
}

static void build_loop(clv__onnx_use *use) {
    const clv__onnx_graph *body = graph_of(use, "body");
    const size_t n = use->n_in > 2 ? (size_t)use->n_in - 2 : 0;
    if (!fits(use, body, n + 2, n + 1)) return;
    const size_t n_made = body->n_outputs - 1 - n;
    clv__made *state = zeros(use, n, sizeof(clv__made));
    series *made = zeros(use, n_made, sizeof *made);
    for (size_t i = 0; state && i < n; i++) {
        if (!use->in[i + 2]) clv__onnx_fail(use, CLV_E_VALUE, "input %zu is left out", i + 2);
        if (!clv__onnx_failed(use)) give(use, &state[i], use->in[i + 2]);
    }
    if (state && made && !clv__onnx_failed(use)) build_turns(use, body, state, n, made);
    for (size_t i = 0; made && i < (size_t)use->n_out && !clv__onnx_failed(use); i++) {
        if (!use->out[i]) continue;
        if (i < n)
            give(use, use->out[i], &state[i]);
        else if (i - n < n_made && made[i - n].n)
            stack(use, use->out[i], &made[i - n], 0, false);
        else if (i - n < n_made)
            give_nothing(use, use->out[i], &body->outputs[1 + i]);
    }
    for (size_t i = 0; made && i < n_made; i++) free(made[i].items);
}

// ---- Scan -----------------------------------------------------------------------------------------------------------

enum { MOST_SCANNED = 64 };

typedef struct scan {
    const clv__onnx_graph *body;
    size_t n_states, n_scanned, n_made;
    int axes[MOST_SCANNED]; // of what is scanned; before opset 9 of one sample
    int64_t length;
} scan;

/** A number of a list with one for each value, 0 where it is left out. */
static int64_t listed(const clv__onnx_use *use, const char *list, size_t i) {
    const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, list);
    return one && i < one->n ? one->ints[i] : 0;
}

/** Which axes are scanned, and their common length. */
static void measure(clv__onnx_use *use, scan *s, clv__made **in) {
    for (size_t i = 0; i < s->n_scanned && !clv__onnx_failed(use); i++) {
        const clv_shape shape = shape_of(use, in[s->n_states + i]);
        s->axes[i] = clv__onnx_axis(use, use->opset < 9 ? 0 : listed(use, "scan_input_axes", i), shape.rank);
        const int64_t length = shape.rank ? shape.dims[s->axes[i]] : 0;
        if (i && length != s->length)
            clv__onnx_fail(use, CLV_E_SHAPE, "it scans %lld places of one value and %lld of another",
                           (long long)s->length, (long long)length);
        s->length = length;
    }
}

/** All turns, of all samples or (before opset 9) of one. */
static void build_scanned(clv__onnx_use *use, scan *s, clv__made **in, clv__made *out) {
    const size_t n = s->n_states;
    clv__made *state = zeros(use, n, sizeof(clv__made));
    series *made = zeros(use, s->n_made, sizeof *made);
    const char *directions = use->opset < 9 ? "directions" : "scan_input_directions";
    measure(use, s, in);
    for (size_t i = 0; state && i < n && !clv__onnx_failed(use); i++) give(use, &state[i], in[i]);
    for (int64_t t = 0; made && t < s->length && !clv__onnx_failed(use); t++) {
        for (size_t i = 0; i < n; i++) *input_of(use, s->body, i) = state[i];
        for (size_t i = 0; i < s->n_scanned; i++)
            slice(use, input_of(use, s->body, n + i), in[n + i], s->axes[i],
                  listed(use, directions, i) == 1 ? s->length - 1 - t : t);
        if (clv__onnx_failed(use) || !build_turn(use, s->body)) break;
        for (size_t i = 0; i < s->n_made; i++) append(use, &made[i], output_of(use, s->body, n + i));
        hand_on(use, s->body, 0, state, n);
    }
    for (size_t i = 0; i < n && !clv__onnx_failed(use); i++) give(use, &out[i], &state[i]);
    for (size_t i = 0; i < s->n_made && !clv__onnx_failed(use); i++)
        if (made[i].n)
            stack(use, &out[n + i], &made[i], listed(use, "scan_output_axes", i),
                  listed(use, "scan_output_directions", i) == 1);
        else
            give_nothing(use, &out[n + i], &s->body->outputs[n + i]);
    for (size_t i = 0; made && i < s->n_made; i++) free(made[i].items);
}

/** Before opset 9 the body is of one sample: the samples one after another, beside each other again. */
static void build_samples(clv__onnx_use *use, scan *s, clv__made **in, clv__made *out) {
    const size_t n_in = s->n_states + s->n_scanned, n_out = s->n_states + s->n_made;
    const clv_shape shape = shape_of(use, in[0]);
    clv__made *sample = zeros(use, n_in, sizeof(clv__made)), *result = zeros(use, n_out, sizeof(clv__made));
    clv__made **samples = zeros(use, n_in, sizeof *samples);
    series *made = zeros(use, n_out, sizeof *made);
    if (!sample || !result || !samples || !made) return;
    for (int64_t b = 0; shape.rank && b < shape.dims[0] && !clv__onnx_failed(use); b++) {
        for (size_t i = 0; i < n_in; i++) {
            samples[i] = &sample[i];
            const clv_shape own = shape_of(use, in[i]);
            if (!own.rank || own.dims[0] != shape.dims[0])
                clv__onnx_fail(use, CLV_E_SHAPE, "its values are not of as many samples");
            else
                slice(use, samples[i], in[i], 0, b);
        }
        if (!clv__onnx_failed(use)) build_scanned(use, s, samples, result);
        for (size_t i = 0; i < n_out; i++) append(use, &made[i], &result[i]);
    }
    for (size_t i = 0; i < n_out && !clv__onnx_failed(use); i++)
        if (made[i].n) stack(use, &out[i], &made[i], 0, false);
    for (size_t i = 0; i < n_out; i++) free(made[i].items);
}

static void build_scan(clv__onnx_use *use) {
    const int first = use->opset < 9; // behind the lengths of the samples
    const size_t n_in = (size_t)(use->n_in > first ? use->n_in - first : 0);
    const int64_t scanned = clv__onnx_int(use, "num_scan_inputs", 0);
    scan s = {.body = graph_of(use, "body"), .n_scanned = (size_t)scanned};
    if (scanned < 1 || scanned > MOST_SCANNED || (size_t)scanned > n_in)
        clv__onnx_fail(use, CLV_E_VALUE, "it scans %lld of its %zu values, and 1 to %d can be",
                       (long long)scanned, n_in, MOST_SCANNED);
    if (first && clv__onnx_has(use, 0))
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "samples of different lengths");
    if (clv__onnx_failed(use) || !fits(use, s.body, n_in, n_in - s.n_scanned)) return;
    s.n_states = n_in - s.n_scanned;
    s.n_made = s.body->n_outputs - s.n_states;
    clv__made *out = zeros(use, s.body->n_outputs, sizeof(clv__made));
    for (size_t i = 0; i < n_in; i++)
        if (!use->in[first + (int)i]) clv__onnx_fail(use, CLV_E_VALUE, "input %zu is left out", first + i);
    if (clv__onnx_failed(use)) return;
    (first ? build_samples : build_scanned)(use, &s, use->in + first, out);
    for (size_t i = 0; i < s.body->n_outputs && i < (size_t)use->n_out && !clv__onnx_failed(use); i++)
        if (use->out[i]) give(use, use->out[i], &out[i]);
}

// ---- SequenceMap ----------------------------------------------------------------------------------------------------

static void build_map(clv__onnx_use *use) {
    const clv__onnx_graph *body = graph_of(use, "body");
    const clv__made *first = clv__onnx_has(use, 0) ? use->in[0] : NULL;
    if (!fits(use, body, (size_t)use->n_in, (size_t)use->n_out)) return;
    if (!first || !first->parts) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "input 0 is no sequence whose length is known");
        return;
    }
    clv__made **out = zeros(use, (size_t)use->n_out, sizeof *out);
    for (int k = 0; out && k < use->n_out; k++) out[k] = clv__onnx_sequence(use, k, first->n_parts);
    for (int i = 0; out && i < first->n_parts && !clv__onnx_failed(use); i++) {
        for (int k = 0; k < use->n_in && !clv__onnx_failed(use); k++) {
            clv__made *in = use->in[k];
            if (!in || (in->parts && in->n_parts != first->n_parts))
                clv__onnx_fail(use, CLV_E_VALUE, "its sequences are not of one length");
            else
                give(use, input_of(use, body, (size_t)k), in->parts ? in->parts[i] : in);
        }
        if (clv__onnx_failed(use) || !build_turn(use, body)) return;
        for (int k = 0; k < use->n_out && !clv__onnx_failed(use); k++)
            if (out[k]) give(use, &out[k][i], output_of(use, body, (size_t)k));
    }
}

const clv__onnx_row clv__onnx_control[] = {
    {"If", .build = build_if},
    {"Loop", .build = build_loop},
    {"Scan", .build = build_scan},
    {"SequenceMap", .build = build_map},
    {0},
};
