// SPDX-License-Identifier: Apache-2.0
// Moves made of slices, joins, permutes and index_select.
#include <stdlib.h>

#include "base/memory.h"
#include "cleave/ops.h"
#include "graph/signature.h"

typedef struct turn_call {
    int axis;
    int64_t by;
} turn_call;

/** The axis from 0 on; -1, and the graph has failed, outside of the rank. */
static int axis_within(const clv__call *call, int rank) {
    const int axis = ((const turn_call *)call->attrs)->axis, at = axis < 0 ? axis + rank : axis;
    if (at >= 0 && at < rank) return at;
    clv__graph_fail(call->graph, CLV_E_VALUE, "%s: axis %d is outside of rank %d", call->op->name, axis,
                    rank);
    return -1;
}

static clv_tensor *build_flip(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const clv_shape shape = clv_tensor_shape(x);
    const int at = axis_within(call, shape.rank);
    if (at < 0) return NULL;
    const int64_t n = shape.dims[at];
    int32_t *back = clv__alloc((size_t)n + 1, sizeof *back);
    if (!back) return clv__graph_fail(clv__tensor_graph(x), CLV_E_HOST_MEMORY, "flip: no host memory");
    for (int64_t i = 0; i < n; i++) back[i] = (int32_t)(n - 1 - i);
    clv_tensor *index = clv_constant(clv__tensor_graph(x), CLV_DTYPE_I32, CLV_SHAPE(n), back);
    free(back);
    return clv_index_select(x, at, index);
}

CLV__COMPOSITE(flip) = {
    .name = "flip",
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, turn_call, axis, NULL)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    CLV__SAMPLES({.label = "rows", .quick = true, .in = {CLV__DIMS(3, 5)}, .attrs = &(turn_call){.axis = -1}},
                 {.label = "first axis", .in = {CLV__DIMS(4, 3, 2)}, .attrs = &(turn_call){.axis = 0}}),
    CLV__CALL(turn_call, build_flip)};

static clv_tensor *build_roll(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const clv_shape shape = clv_tensor_shape(x);
    const int at = axis_within(call, shape.rank);
    if (at < 0) return NULL;
    const int64_t shift = ((const turn_call *)call->attrs)->by, n = shape.dims[at],
                  by = n ? (shift % n + n) % n : 0;
    if (!by) return x;
    clv_tensor *parts[] = {clv_slice(x, at, n - by, by), clv_slice(x, at, 0, n - by)};
    return clv_concat(parts, 2, at);
}

CLV__COMPOSITE(roll) = {
    .name = "roll",
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES(
        {.name = "shift", .kind = CLV_ATTRIBUTE_INT, .at = offsetof(turn_call, by), .bytes = sizeof(int64_t)},
        {CLV__ATTRIBUTE(INT, turn_call, axis, NULL)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    CLV__SAMPLES({.label = "rows", .quick = true, .in = {CLV__DIMS(3, 5)}, .attrs = &(turn_call){-1, 2}},
                 {.label = "back, first axis", .in = {CLV__DIMS(4, 3, 2)}, .attrs = &(turn_call){0, -9}}),
    CLV__CALL(turn_call, build_roll)};

static clv_tensor *build_stack(const clv__call *call) {
    clv_tensor *const *inputs = call->in, *rows[CLV__MAX_IN];
    const int n = call->n_in;
    const clv_shape shape = clv_tensor_shape(inputs[0]);
    if (n > CLV__MAX_IN)
        return clv__graph_fail(call->graph, CLV_E_VALUE, "stack has %d inputs, the most is %d", n,
                               CLV__MAX_IN);
    const int at = axis_within(call, shape.rank + 1);
    if (at < 0) return NULL;
    if (shape.rank == CLV_MAX_RANK)
        return clv__graph_fail(call->graph, CLV_E_SHAPE, "stack: the rank is %d already", shape.rank);
    for (int i = 0; i < n; i++) {
        clv_shape own = clv_tensor_shape(inputs[i]);
        if (!clv_shape_equal(&own, &shape))
            return clv__graph_fail(call->graph, CLV_E_SHAPE,
                                   "stack: input %d has another shape than the first", i);
        for (int d = own.rank++; d > at; d--) own.dims[d] = own.dims[d - 1];
        own.dims[at] = 1;
        rows[i] = clv_reshape(inputs[i], own);
    }
    return clv_concat(rows, n, at);
}

CLV__COMPOSITE(stack) = {.name = "stack",
                         .inputs = CLV__INPUTS({"inputs", "any..."}),
                         .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, turn_call, axis, "0")}),
                         .outputs = CLV__OUTPUTS({"y", "any"}),
                         CLV__SAMPLES({.label = "two, in the middle",
                                       .quick = true,
                                       .in = {CLV__DIMS(3, 5), CLV__DIMS(3, 5)},
                                       .n_in = 2,
                                       .attrs = &(turn_call){.axis = 1}},
                                      {.label = "three, behind",
                                       .in = {CLV__DIMS(4), CLV__DIMS(4), CLV__DIMS(4)},
                                       .n_in = 3,
                                       .attrs = &(turn_call){.axis = -1}}),
                         CLV__CALL(turn_call, build_stack)};

static clv_tensor *build_pixel_shuffle(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const int64_t factor = ((const turn_call *)call->attrs)->by;
    const clv_shape s = clv_tensor_shape(x);
    const int64_t N = s.dims[0], C = s.dims[1] / (factor * factor), H = s.dims[2], W = s.dims[3];
    if (s.dims[1] % (factor * factor))
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE,
                               "pixel_shuffle: %lld channels are no multiple of %lld x %lld",
                               (long long)s.dims[1], (long long)factor, (long long)factor);
    clv_tensor *parts = clv_reshape(x, CLV_SHAPE(N, C, factor, factor, H, W));
    return clv_reshape(clv_permute(parts, (int[]){0, 1, 4, 2, 5, 3}, 6),
                       CLV_SHAPE(N, C, H * factor, W * factor));
}

#define FACTOR                                                                                               \
    {                                                                                                        \
        .name = "factor", .kind = CLV_ATTRIBUTE_INT, .at = offsetof(turn_call, by),                          \
        .bytes = sizeof(int64_t), CLV__POSITIVE_SIZE                                                         \
    }
CLV__COMPOSITE(pixel_shuffle) = {
    .name = "pixel_shuffle",
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}),
    .attributes = CLV__ATTRIBUTES(FACTOR),
    .outputs = CLV__OUTPUTS({"y", "f32[N,_,_,_]"}),
    CLV__SAMPLES(
        {.label = "by 2", .quick = true, .in = {CLV__DIMS(2, 8, 3, 2)}, .attrs = &(turn_call){.by = 2}}),
    CLV__CALL(turn_call, build_pixel_shuffle)};

static clv_tensor *build_pixel_unshuffle(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const int64_t factor = ((const turn_call *)call->attrs)->by;
    const clv_shape s = clv_tensor_shape(x);
    const int64_t N = s.dims[0], C = s.dims[1], H = s.dims[2] / factor, W = s.dims[3] / factor;
    if (s.dims[2] % factor || s.dims[3] % factor)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE,
                               "pixel_unshuffle: %lld x %lld is no multiple of %lld", (long long)s.dims[2],
                               (long long)s.dims[3], (long long)factor);
    clv_tensor *parts = clv_reshape(x, CLV_SHAPE(N, C, H, factor, W, factor));
    return clv_reshape(clv_permute(parts, (int[]){0, 1, 3, 5, 2, 4}, 6),
                       CLV_SHAPE(N, C * factor * factor, H, W));
}

CLV__COMPOSITE(pixel_unshuffle) = {
    .name = "pixel_unshuffle",
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}),
    .attributes = CLV__ATTRIBUTES(FACTOR),
    .outputs = CLV__OUTPUTS({"y", "f32[N,_,_,_]"}),
    CLV__SAMPLES(
        {.label = "by 2", .quick = true, .in = {CLV__DIMS(2, 2, 4, 6)}, .attrs = &(turn_call){.by = 2}}),
    CLV__CALL(turn_call, build_pixel_unshuffle)};

// ---- around and again -----------------------------------------------------------------------------------------------

typedef struct pad_call {
    int n, padding[2 * CLV_MAX_RANK]; // as clv__ints
    int mode;
    float value;
} pad_call;

/** Which of n elements stands at `place`, from -n to 2n. */
static int64_t mirrored(int64_t place, int64_t n, clv_pad_mode mode) {
    if (place >= 0 && place < n) return place;
    if (mode == CLV_PAD_REFLECT) return place < 0 ? -place : 2 * (n - 1) - place;
    if (mode == CLV_PAD_CIRCULAR) return (place + n) % n;
    return place < 0 ? 0 : n - 1;
}

/** Along one axis by elements of x itself; there is room for what the mode wants. */
static clv_tensor *pad_by_itself(clv_tensor *x, int axis, int64_t before, int64_t after, clv_pad_mode mode) {
    const int64_t n = clv_tensor_shape(x).dims[axis], length = before + n + after;
    int32_t *from = clv__alloc((size_t)length, sizeof *from);
    if (!from) return clv__graph_fail(clv__tensor_graph(x), CLV_E_HOST_MEMORY, "pad: no host memory");
    for (int64_t i = 0; i < length; i++) from[i] = (int32_t)mirrored(i - before, n, mode);
    clv_tensor *index = clv_constant(clv__tensor_graph(x), CLV_DTYPE_I32, CLV_SHAPE(length), from);
    free(from);
    return clv_index_select(x, axis, index);
}

static clv_tensor *pad_by_value(clv_tensor *x, int axis, int64_t before, int64_t after, float value) {
    clv_tensor *parts[3];
    clv_shape shape = clv_tensor_shape(x);
    int n = 0;
    for (int i = 0; i < 3; i++) {
        shape.dims[axis] = i == 0 ? before : after;
        if (i == 1)
            parts[n++] = x;
        else if (shape.dims[axis] > 0)
            parts[n++] = clv_full(clv__tensor_graph(x), clv_tensor_dtype(x), shape, value);
    }
    return clv_concat(parts, n, axis);
}

/** Along one axis; below 0 elements are taken away. */
static clv_tensor *pad_axis(clv_tensor *x, int axis, int64_t before, int64_t after, clv_pad_mode mode,
                            float value) {
    const int64_t n = clv_tensor_shape(x).dims[axis], most = before > after ? before : after;
    const int64_t room = mode == CLV_PAD_REFLECT    ? n - 1
                         : mode == CLV_PAD_CIRCULAR ? n
                         : n > 0                    ? INT32_MAX
                                                    : 0;
    if (before + n + after < 0 || most > INT32_MAX || (mode != CLV_PAD_CONSTANT && most > room))
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE,
                               "pad: %lld and %lld elements around %lld are not possible in this mode",
                               (long long)before, (long long)after, (long long)n);
    if (before < 0 || after < 0) {
        const int64_t first = before < 0 ? -before : 0, left = n - first - (after < 0 ? -after : 0);
        if (left < 0)
            return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE,
                                   "pad: negative padding takes more than the %lld elements there are",
                                   (long long)n);
        x = clv_slice(x, axis, first, left);
        before = before < 0 ? 0 : before, after = after < 0 ? 0 : after;
    }
    if (!x || (!before && !after)) return x;
    return mode == CLV_PAD_CONSTANT ? pad_by_value(x, axis, before, after, value)
                                    : pad_by_itself(x, axis, before, after, mode);
}

static clv_tensor *build_pad(const clv__call *call) {
    const pad_call *a = call->attrs;
    clv_tensor *x = call->in[0];
    const int rank = clv_tensor_shape(x).rank, n = a->n;
    if (n % 2 || n / 2 > rank)
        return clv__graph_fail(call->graph, CLV_E_VALUE,
                               "pad: %d numbers, two are wanted for each of at most %d dimensions", n, rank);
    for (int i = 0; i < n / 2 && x; i++)
        x = pad_axis(x, rank - 1 - i, a->padding[2 * i], a->padding[2 * i + 1], (clv_pad_mode)a->mode,
                     a->value);
    return x;
}

CLV__COMPOSITE(pad) = {.name = "pad",
                       .inputs = CLV__INPUTS({"x", "any"}),
                       .attributes = CLV__ATTRIBUTES(
                           {.name = "padding", .kind = CLV_ATTRIBUTE_LIST, .bytes = offsetof(pad_call, mode)},
                           {CLV__ATTRIBUTE(INT, pad_call, mode, "0"), CLV__AT_LEAST(0), CLV__AT_MOST(3)},
                           {CLV__ATTRIBUTE(NUMBER, pad_call, value, "0")}),
                       .outputs = CLV__OUTPUTS({"y", "any"}),
                       CLV__SAMPLES({.label = "zeros",
                                     .quick = true,
                                     .in = {CLV__DIMS(2, 3, 5)},
                                     .attrs = &(pad_call){4, {1, 2, 0, 3}, 0, 0}},
                                    {.label = "reflect, less before",
                                     .in = {CLV__DIMS(2, 3, 5)},
                                     .attrs = &(pad_call){4, {-1, 2, 2, 1}, 1, 0}}),
                       CLV__CALL(pad_call, build_pad)};

typedef struct tile_call {
    clv__ints repeats;
} tile_call;

static clv_tensor *build_tile(const clv__call *call) {
    const tile_call *a = call->attrs;
    const int *repeats = a->repeats.at, n = a->repeats.n;
    clv_tensor *x = call->in[0];
    clv_shape shape = clv_tensor_shape(x);
    const int more = n > shape.rank ? n - shape.rank : 0; // dimensions of 1 before the others
    for (int d = shape.rank - 1; d >= 0; d--) shape.dims[d + more] = shape.dims[d];
    for (int d = 0; d < more; d++) shape.dims[d] = 1;
    shape.rank += more;
    x = clv_reshape(x, shape);
    for (int i = 0; i < n && x; i++) {
        const int d = shape.rank - n + i;
        if (repeats[i] < 0)
            return clv__graph_fail(clv__tensor_graph(x), CLV_E_VALUE, "tile: %d times", repeats[i]);
        if (repeats[i] == 1) continue;
        int64_t outer = 1, inner = 1;
        for (int k = 0; k < shape.rank; k++) *(k < d ? &outer : &inner) *= shape.dims[k];
        clv_tensor *again = clv_reshape(x, CLV_SHAPE(outer, 1, inner));
        shape.dims[d] *= repeats[i];
        x = clv_reshape(clv_broadcast_to(again, CLV_SHAPE(outer, repeats[i], inner)), shape);
    }
    return x;
}

CLV__COMPOSITE(tile) = {
    .name = "tile",
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(LIST, tile_call, repeats, NULL)}),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    CLV__SAMPLES(
        {.label = "both", .quick = true, .in = {CLV__DIMS(3, 5)}, .attrs = &(tile_call){{2, {2, 3}}}},
        {.label = "one more dimension", .in = {CLV__DIMS(3, 5)}, .attrs = &(tile_call){{3, {2, 1, 2}}}}),
    CLV__CALL(tile_call, build_tile)};
