// SPDX-License-Identifier: Apache-2.0
// Ops that move elements and compute nothing: reshape and flatten (views), permute, broadcast_to, slice and
// its gradient, concat. Each but the views is a list of moves (move.h).
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/move.h"
#include "ops/parts.h"
#include "tensor/shape.h"

typedef struct shape_attrs { // reshape, broadcast_to
    clv_shape shape;
} shape_attrs;

typedef struct permute_attrs {
    int n, axes[CLV_MAX_RANK];
} permute_attrs;

typedef struct slice_attrs {
    int axis;
    int64_t start, length;
} slice_attrs;

typedef struct concat_attrs {
    int axis;
} concat_attrs;

static void walk_over(clv__move *m, const clv_shape *shape) {
    m->walk.rank = shape->rank;
    memcpy(m->walk.dims, shape->dims, sizeof m->walk.dims);
}

#define MOVES(id, each, zero)                                                                                \
    .data = &(const clv__mover){id##_move, each, zero}, .half_in = UINT64_MAX, .half_out = 1,                \
    .variants = clv__move_variants, .reference = clv__move_reference, .cost = clv__move_cost

// ---- reshape ----------------------------------------------------------------------------------------------

static clv_status reshape_infer(clv__op_io *io, clv__error *error) {
    const shape_attrs *attrs = io->attrs;
    int64_t n = clv__numel(&io->in[0]), wanted = clv_shape_numel(&attrs->shape);
    char text[128];
    if (wanted < 0)
        CLV_FAIL(error, CLV_E_SHAPE,
                 "shape %s is not possible: %s; one dimension may be -1, if the others divide %lld",
                 clv_shape_text(&attrs->shape, text, sizeof text), clv__shape_fault(&attrs->shape),
                 (long long)n);
    if (wanted != n) {
        CLV_FAIL(error, CLV_E_SHAPE, "shape %s has %lld elements, x has %lld",
                 clv_shape_text(&attrs->shape, text, sizeof text), (long long)wanted, (long long)n);
    }
    return clv__one_out(io, (clv__desc){io->in[0].dtype, attrs->shape});
}

static void reshape_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_reshape(dy[0], clv__node_io(node)->in[0].shape);
}

static const clv__sample_row reshape_samples[] = {
    {"[2,3,5] to [6,5]", {CLV__DIMS(2, 3, 5)}, .attrs = &(shape_attrs){CLV__DIMS(6, 5)}, .quick = true},
    {"[] to [1,1]", {{0}}, .attrs = &(shape_attrs){CLV__DIMS(1, 1)}, .quick = true},
    {"[0,3] to [7,0]", {CLV__DIMS(0, 3)}, .attrs = &(shape_attrs){CLV__DIMS(7, 0)}, .quick = true},
    {"[35] to [5,1,7]", {CLV__DIMS(35)}, .attrs = &(shape_attrs){CLV__DIMS(5, 1, 7)}, .quick = true},
    {0}};

/** Along the first dimensions, if one is a multiple of the other: the elements stay in their order. */
static bool reshape_split(const clv__op_io *io, int i, clv__split *out) {
    const int64_t from = clv__split_length(&io->in[0].shape, 0), to = clv__split_length(&io->out[0].shape, 0);
    if (i) return false;
    const int64_t least = from < to ? from : to;
    out->length = least > 0 && from % least == 0 && to % least == 0 ? least : 0;
    out->in[0] = out->out[0] = 0;
    return true;
}

static void reshape_split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                                void *attrs) {
    ((shape_attrs *)attrs)->shape.dims[0] = (end - begin) * (io->out[0].shape.dims[0] / split->length);
}

/** Put the length that fits in the place of the one -1. Any other shape stays as it is, for the shape rule to judge. */
static void fill_in(const clv_shape *from, clv_shape *shape) {
    int at = -1;
    int64_t others = 1, n = clv_shape_numel(from);
    for (int d = 0; d < shape->rank && d < CLV_MAX_RANK; d++) {
        if (shape->dims[d] == -1) {
            if (at >= 0) return; // two of them
            at = d;
        } else if (shape->dims[d] <= 0 || __builtin_mul_overflow(others, shape->dims[d], &others)) {
            return; // with a 0 every length fits, so none does
        }
    }
    if (at >= 0 && n % others == 0) shape->dims[at] = n / others;
}

static clv_tensor *build_reshape(const clv__call *call) {
    shape_attrs attrs = *(const shape_attrs *)call->attrs;
    const clv_shape from = clv_tensor_shape(call->in[0]);
    fill_in(&from, &attrs.shape);
    return clv_shape_equal(&from, &attrs.shape) ? call->in[0]
                                                : clv__node_add(call->op, &attrs, call->in, 1, 0);
}

extern const clv__op clv__op_reshape, clv__op_detach;

/** The one reshape to the same shape that there is, is a detach. */
static const clv__op *call_of_reshape(const clv__node *node, void *attrs) {
    const clv__op_io *io = clv__node_io(node);
    (void)attrs;
    return clv_shape_equal(&io->in[0].shape, &io->out[0].shape) ? &clv__op_detach : &clv__op_reshape;
}

CLV__OP(reshape) = {
    .name = "reshape",
    .attrs_bytes = sizeof(shape_attrs),
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(LIST, shape_attrs, shape, NULL)}),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    .build = build_reshape,
    .call_of = call_of_reshape,
    .view = true,
    .half_in = 1,
    .half_out = 1,
    .infer = reshape_infer,
    .grad = CLV__TRAINS(reshape_grad),
    .samples = CLV__TRAINS(reshape_samples),
    .split = reshape_split,
    .split_attrs = reshape_split_attrs,
};

// ---- permute ----------------------------------------------------------------------------------------------

static clv_status permute_infer(clv__op_io *io, clv__error *error) {
    const permute_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->in[0].shape;
    if (attrs->n != shape->rank)
        CLV_FAIL(error, CLV_E_VALUE, "%d axes are named, x has rank %d", attrs->n, shape->rank);
    clv_shape out = {.rank = shape->rank};
    uint32_t seen = 0;
    for (int d = 0; d < shape->rank; d++) {
        int axis;
        CLV_TRY(clv__want_axis(attrs->axes[d], shape->rank, &axis, error));
        if (seen >> axis & 1) CLV_FAIL(error, CLV_E_VALUE, "axis %d is named twice", attrs->axes[d]);
        seen |= 1u << axis;
        out.dims[d] = shape->dims[axis];
    }
    return clv__one_out(io, (clv__desc){io->in[0].dtype, out});
}

static int axis_of(int axis, int rank) {
    return axis < 0 ? axis + rank : axis;
}

static void permute_move(const clv__op_io *io, int i, clv__move *m) {
    (void)i;
    const permute_attrs *attrs = io->attrs;
    int64_t strides[CLV_MAX_RANK];
    clv__strides_of(&io->in[0].shape, strides);
    walk_over(m, &io->out[0].shape);
    clv__strides_of(&io->out[0].shape, m->walk.strides[0]);
    for (int d = 0; d < attrs->n; d++) m->walk.strides[1][d] = strides[axis_of(attrs->axes[d], attrs->n)];
}

static void permute_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const permute_attrs *attrs = clv__node_attrs(node);
    int back[CLV_MAX_RANK];
    for (int d = 0; d < attrs->n; d++) back[axis_of(attrs->axes[d], attrs->n)] = d;
    dx[0] = clv_permute(dy[0], back, attrs->n);
}

#define BYTES                                                                                                \
    .fill = {{CLV__FILL_INTEGER, 0, 255}, {CLV__FILL_INTEGER, 0, 255}}, .i32 = 3, .whole = CLV_DTYPE_U8,     \
    .no_gradient = true
#define LONGS .fill = {{CLV__FILL_INTEGER, -100, 100}}, .i32 = 3, .whole = CLV_DTYPE_I64, .no_gradient = true
#define SIGNED_BYTES                                                                                         \
    .fill = {{CLV__FILL_INTEGER, -128, 127}}, .i32 = 1, .whole = CLV_DTYPE_I8, .no_gradient = true
#define TRUTHS .fill = {{CLV__FILL_INTEGER, 0, 1}}, .i32 = 1, .whole = CLV_DTYPE_BOOL, .no_gradient = true
#define WHOLE_NUMBERS .fill = {{CLV__FILL_INTEGER, -100, 100}}, .i32 = 1, .no_gradient = true
#define ROW(what, x, n_axes, ...)                                                                            \
    .label = what, .in = {x}, .attrs = &(permute_attrs) {                                                    \
        .n = n_axes, .axes = { __VA_ARGS__ }                                                                 \
    }
static const clv__sample_row permute_samples[] = {
    {ROW("[3,5] axes 1 0", CLV__DIMS(3, 5), 2, 1, 0), .quick = true},
    {ROW("[2,3,4,5] axes 0 2 3 1", CLV__DIMS(2, 3, 4, 5), 4, 0, 2, 3, 1), WHOLE_NUMBERS, .quick = true},
    {ROW("[], no axes", {0}, 0, 0), .quick = true},
    {ROW("[3,0] axes 1 0", CLV__DIMS(3, 0), 2, 1, 0), .quick = true},
    {ROW("[17] axes 0", CLV__DIMS(17), 1, 0)},
    {ROW("[33,65] axes 1 0", CLV__DIMS(33, 65), 2, 1, 0)},
    {ROW("[3,31,47] axes 0 2 1", CLV__DIMS(3, 31, 47), 3, 0, 2, 1)},
    {ROW("[2100,18] axes 1 0", CLV__DIMS(2100, 18), 2, 1, 0)},
    {ROW("[3,31,47] axes 2 1 0", CLV__DIMS(3, 31, 47), 3, 2, 1, 0)},
    {ROW("[2,3,17,32] axes 0 2 3 1", CLV__DIMS(2, 3, 17, 32), 4, 0, 2, 3, 1)},
    {ROW("[5,6,35] axes 1 0 -1", CLV__DIMS(5, 6, 35), 3, 1, 0, -1)},
    {ROW("[2,3,4,1,5,2] axes 5 3 1 0 2 4", CLV__DIMS(2, 3, 4, 1, 5, 2), 6, 5, 3, 1, 0, 2, 4)},
    {ROW("[2,3,2,3,2,3,2,3] axes 7 6 5 4 3 2 1 0", CLV__DIMS(2, 3, 2, 3, 2, 3, 2, 3), 8, 7, 6, 5, 4, 3, 2, 1,
         0)},
    {ROW("[2,3,4,5,40] axes 3 2 1 0 4", CLV__DIMS(2, 3, 4, 5, 40), 5, 3, 2, 1, 0, 4)},
    {ROW("[2,5,7,3] axes 0 3 1 2, u8", CLV__DIMS(2, 5, 7, 3), 4, 0, 3, 1, 2), BYTES, .quick = true},
    {ROW("[33,65] axes 1 0, i64", CLV__DIMS(33, 65), 2, 1, 0), LONGS},
    {ROW("[3,5,36] axes 1 0 2, i64", CLV__DIMS(3, 5, 36), 3, 1, 0, 2), LONGS, .quick = true},
    {ROW("[33,65] axes 1 0, bool", CLV__DIMS(33, 65), 2, 1, 0), TRUTHS},
    {ROW("[3,5,36] axes 1 0 2, i8", CLV__DIMS(3, 5, 36), 3, 1, 0, 2), SIGNED_BYTES},
    {0}};
#undef ROW

/** Along dimension i of the result. */
static bool permute_split(const clv__op_io *io, int i, clv__split *out) {
    const permute_attrs *attrs = io->attrs;
    if (i >= attrs->n) return false;
    out->length = io->out[0].shape.dims[i];
    out->in[0] = (int8_t)axis_of(attrs->axes[i], attrs->n);
    out->out[0] = (int8_t)i;
    return true;
}

CLV__OP(permute) = {
    .name = "permute",
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES(
        {.name = "axes", .kind = CLV_ATTRIBUTE_LIST, .at = 0, .bytes = sizeof(permute_attrs)}),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    .attrs_bytes = sizeof(permute_attrs),
    .grad = CLV__TRAINS(permute_grad),
    .infer = permute_infer,
    .samples = CLV__TRAINS(permute_samples),
    .split = permute_split,
    MOVES(permute, false, false)};

// ---- broadcast_to -----------------------------------------------------------------------------------------

static clv_status broadcast_to_infer(clv__op_io *io, clv__error *error) {
    const shape_attrs *attrs = io->attrs;
    const clv_shape *from = &io->in[0].shape, *to = &attrs->shape;
    const char *fault = clv__shape_fault(to);
    char text[128];
    if (fault)
        CLV_FAIL(error, CLV_E_SHAPE, "shape %s is not possible: %s", clv_shape_text(to, text, sizeof text),
                 fault);
    int lead = to->rank - from->rank;
    bool fits = lead >= 0;
    for (int d = 0; d < from->rank && fits; d++)
        fits = from->dims[d] == 1 || from->dims[d] == to->dims[d + lead];
    if (!fits) {
        char a[128], b[128];
        CLV_FAIL(error, CLV_E_SHAPE, "%s does not broadcast to %s", clv_shape_text(from, a, sizeof a),
                 clv_shape_text(to, b, sizeof b));
    }
    return clv__one_out(io, (clv__desc){io->in[0].dtype, *to});
}

static void broadcast_to_move(const clv__op_io *io, int i, clv__move *m) {
    (void)i;
    walk_over(m, &io->out[0].shape);
    clv__strides_of(&io->out[0].shape, m->walk.strides[0]);
    clv__strides_broadcast(&io->in[0].shape, &io->out[0].shape, m->walk.strides[1]);
}

static void broadcast_to_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_sum_to(dy[0], clv__node_io(node)->in[0].shape);
}

#define ROW(what, x, to)                                                                                     \
    .label = what, .in = {x}, .attrs = &(shape_attrs) {                                                      \
        to                                                                                                   \
    }
static const clv__sample_row broadcast_to_samples[] = {
    {ROW("[3,1] to [3,17]", CLV__DIMS(3, 1), CLV__DIMS(3, 17)), .quick = true},
    {ROW("[] to [5]", {0}, CLV__DIMS(5)), .quick = true},
    {ROW("[3,1,1] to [2,3,4,5]", CLV__DIMS(3, 1, 1), CLV__DIMS(2, 3, 4, 5)), .quick = true},
    {ROW("[1,3] to [0,3]", CLV__DIMS(1, 3), CLV__DIMS(0, 3)), .quick = true},
    {ROW("[33] to [9,33]", CLV__DIMS(33), CLV__DIMS(9, 33))},
    {ROW("[1] to [16385]", CLV__DIMS(1), CLV__DIMS(16385))},
    {ROW("[2,1,3,1,2] to [2,5,3,7,2]", CLV__DIMS(2, 1, 3, 1, 2), CLV__DIMS(2, 5, 3, 7, 2))},
    {ROW("[1,2,1,2,1,2,1,1] to [3,2,3,2,3,2,3,1]", CLV__DIMS(1, 2, 1, 2, 1, 2, 1, 1),
         CLV__DIMS(3, 2, 3, 2, 3, 2, 3, 1))},
    {ROW("[3,1] to [3,36]", CLV__DIMS(3, 1), CLV__DIMS(3, 36))},
    {ROW("[3,1] to [3,35], u8", CLV__DIMS(3, 1), CLV__DIMS(3, 35)), BYTES},
    {0}};
#undef ROW

/** Along dimension i of the result; what repeats along it is read whole. */
static bool broadcast_to_split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *to = &io->out[0].shape, *from = &io->in[0].shape;
    const int d = i - (to->rank - from->rank);
    if (i >= to->rank) return false;
    out->length = to->dims[i];
    out->out[0] = (int8_t)i;
    if (d >= 0 && from->dims[d] == out->length) out->in[0] = (int8_t)d;
    return true;
}

static void broadcast_to_split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin,
                                     int64_t end, void *attrs) {
    (void)io;
    ((shape_attrs *)attrs)->shape.dims[split->out[0]] = end - begin;
}

static clv_tensor *build_broadcast_to(const clv__call *call) {
    const clv_shape from = clv_tensor_shape(call->in[0]);
    return clv_shape_equal(&from, &((const shape_attrs *)call->attrs)->shape)
               ? call->in[0]
               : clv__node_add(call->op, call->attrs, call->in, 1, 0);
}

CLV__OP(broadcast_to) = {.name = "broadcast_to",
                         .inputs = CLV__INPUTS({"x", "any"}),
                         .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(LIST, shape_attrs, shape, NULL)}),
                         .outputs = CLV__OUTPUTS({"y", "any"}),
                         .build = build_broadcast_to,
                         .attrs_bytes = sizeof(shape_attrs),
                         .grad = CLV__TRAINS(broadcast_to_grad),
                         .infer = broadcast_to_infer,
                         .samples = CLV__TRAINS(broadcast_to_samples),
                         .split = broadcast_to_split,
                         .split_attrs = broadcast_to_split_attrs,
                         MOVES(broadcast_to, false, false)};

// ---- slice ------------------------------------------------------------------------------------------------

static clv_status slice_infer(clv__op_io *io, clv__error *error) {
    const slice_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->in[0].shape;
    int axis;
    CLV_TRY(clv__want_axis(attrs->axis, shape->rank, &axis, error));
    int64_t n = shape->dims[axis];
    if (attrs->start < 0 || attrs->length < 0 || attrs->start > n || attrs->length > n - attrs->start)
        CLV_FAIL(error, CLV_E_VALUE, "%lld elements from %lld on are not all inside axis %d of length %lld",
                 (long long)attrs->length, (long long)attrs->start, axis, (long long)n);
    io->n_out = 1;
    io->out[0] = io->in[0];
    io->out[0].shape.dims[axis] = attrs->length;
    return CLV_OK;
}

/** The part of `whole` that begins at `start` of its axis, as strides and offset. */
static int64_t part_of(const clv_shape *whole, int axis, int64_t start, int64_t *strides) {
    clv__strides_of(whole, strides);
    return start * strides[axis];
}

static void slice_move(const clv__op_io *io, int i, clv__move *m) {
    (void)i;
    const slice_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->out[0].shape;
    walk_over(m, shape);
    clv__strides_of(shape, m->walk.strides[0]);
    m->from_offset =
        part_of(&io->in[0].shape, axis_of(attrs->axis, shape->rank), attrs->start, m->walk.strides[1]);
}

static void slice_backward_move(const clv__op_io *io, int i, clv__move *m) {
    (void)i;
    const slice_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->in[0].shape;
    walk_over(m, shape);
    clv__strides_of(shape, m->walk.strides[1]);
    m->to_offset =
        part_of(&io->out[0].shape, axis_of(attrs->axis, shape->rank), attrs->start, m->walk.strides[0]);
}

extern const clv__op clv__op_slice, clv__op_slice_backward;

static void slice_backward_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const slice_attrs *attrs = clv__node_attrs(node);
    dx[0] = clv_slice(dy[0], attrs->axis, attrs->start, attrs->length);
}

#define ROW(what, x, ...)                                                                                    \
    .label = what, .in = {x}, .attrs = &(slice_attrs) {                                                      \
        __VA_ARGS__                                                                                          \
    }
static const clv__sample_row slice_samples[] = {
    {ROW("3 of [7,5] from 2 along axis 0", CLV__DIMS(7, 5), 0, 2, 3), .quick = true},
    {ROW("3 of [7,5] from 1 along axis -1", CLV__DIMS(7, 5), -1, 1, 3), WHOLE_NUMBERS, .quick = true},
    {ROW("0 of [4] from 4 along axis 0", CLV__DIMS(4), 0, 4, 0), .quick = true},
    {ROW("2 of [0,5] from 1 along axis 1", CLV__DIMS(0, 5), 1, 1, 2), .quick = true},
    {ROW("65 of [2,3,67,5] from 1 along axis 2", CLV__DIMS(2, 3, 67, 5), 2, 1, 65)},
    {ROW("33 of [3,70] from 3 along axis 1", CLV__DIMS(3, 70), 1, 3, 33)},
    {ROW("16385 of [16400] from 7 along axis 0", CLV__DIMS(16400), 0, 7, 16385)},
    {ROW("1 of [2,3,4,3,2,5] from 1 along axis 3", CLV__DIMS(2, 3, 4, 3, 2, 5), 3, 1, 1)},
    {ROW("1 of [1,1] from 0 along axis 0", CLV__DIMS(1, 1), 0, 0, 1)},
    {ROW("3 of [6,5] from 0 along axis 0", CLV__DIMS(6, 5), 0, 0, 3)},
    {ROW("3 of [3,6,5,8] from 2 along axis 1", CLV__DIMS(3, 6, 5, 8), 1, 2, 3)},
    {ROW("33 of [3,70] from 3 along axis 1, u8", CLV__DIMS(3, 70), 1, 3, 33), BYTES},
    {ROW("4 of [6,5] from 1 along axis 0, u8", CLV__DIMS(6, 5), 0, 1, 4), BYTES},
    {ROW("33 of [3,70] from 3 along axis 1, i64", CLV__DIMS(3, 70), 1, 3, 33), LONGS},
    {0}};
#undef ROW

/** Along dimension i. Along its own axis the result is a part of x as it is. */
static bool slice_split(const clv__op_io *io, int i, clv__split *out) {
    const slice_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->out[0].shape;
    if (i >= shape->rank) return false;
    out->length = shape->dims[i];
    out->in[0] = out->out[0] = (int8_t)i;
    if (i == axis_of(attrs->axis, shape->rank)) {
        out->one_for_one = true;
        out->from = attrs->start;
    }
    return true;
}

static void slice_split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                              void *attrs) {
    slice_attrs *part = attrs;
    if (split->out[0] != axis_of(part->axis, io->out[0].shape.rank)) return;
    part->start = 0;
    part->length = end - begin;
}

/** Along every dimension of the result but the axis. */
static bool split_beside(const clv__op_io *io, int axis, int i, clv__split *out) {
    const int rank = io->out[0].shape.rank;
    if (i < rank) clv__split_all(io, i, out);
    if (i < rank) out->length = i == axis_of(axis, rank) ? 0 : io->out[0].shape.dims[i];
    return i < rank;
}

CLV__OP(slice) = {.name = "slice",
                  .inputs = CLV__INPUTS({"x", "any"}),
                  .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, slice_attrs, axis, NULL)},
                                                {CLV__ATTRIBUTE(INT, slice_attrs, start, NULL)},
                                                {CLV__ATTRIBUTE(INT, slice_attrs, length, NULL)}),
                  .outputs = CLV__OUTPUTS({"y", "any"}),
                  .attrs_bytes = sizeof(slice_attrs),
                  CLV__GRADIENT(slice),
                  .infer = slice_infer,
                  .samples = CLV__TRAINS(slice_samples),
                  .split = slice_split,
                  .split_attrs = slice_split_attrs,
                  MOVES(slice, false, false)};
CLV__TRAIN_OP(slice_backward) = {
    CLV__GRADIENT_OF(slice, "d0 s0 g0"), .attrs_bytes = CLV__ATTRS_AND_SHAPE(slice_attrs),
    .grad = CLV__TRAINS(slice_backward_grad), MOVES(slice_backward, false, true)};

const clv__op *clv__parts_slice(int axis, int64_t start, int64_t length, void *attrs) {
    memcpy(attrs, &(slice_attrs){axis, start, length}, sizeof(slice_attrs));
    return &clv__op_slice;
}

// ---- concat -----------------------------------------------------------------------------------------------

static clv_status concat_infer(clv__op_io *io, clv__error *error) {
    const concat_attrs *attrs = io->attrs;
    clv__desc out = io->in[0];
    int axis;
    CLV_TRY(clv__want_axis(attrs->axis, out.shape.rank, &axis, error));
    for (int i = 1; i < io->n_in; i++) {
        const clv__desc *in = &io->in[i];
        if (in->dtype != out.dtype)
            CLV_FAIL(error, CLV_E_DTYPE, "input %d is %s, the first is %s", i, clv_dtype_name(in->dtype),
                     clv_dtype_name(out.dtype));
        bool fits = in->shape.rank == out.shape.rank;
        for (int d = 0; d < out.shape.rank && fits; d++)
            fits = d == axis || in->shape.dims[d] == out.shape.dims[d];
        if (!fits) {
            char a[128], b[128];
            CLV_FAIL(error, CLV_E_SHAPE, "input %d is %s, the first is %s: they may differ in axis %d only",
                     i, clv_shape_text(&in->shape, a, sizeof a),
                     clv_shape_text(&io->in[0].shape, b, sizeof b), axis);
        }
        if (__builtin_add_overflow(out.shape.dims[axis], in->shape.dims[axis], &out.shape.dims[axis]))
            CLV_FAIL(error, CLV_E_SHAPE, "the result is too large");
    }
    return clv__one_out(io, out);
}

static void concat_move(const clv__op_io *io, int i, clv__move *m) {
    const concat_attrs *attrs = io->attrs;
    int axis = axis_of(attrs->axis, io->out[0].shape.rank);
    int64_t start = 0;
    for (int k = 0; k < i; k++) start += io->in[k].shape.dims[axis];
    walk_over(m, &io->in[i].shape);
    clv__strides_of(&io->in[i].shape, m->walk.strides[1]);
    m->to_offset = part_of(&io->out[0].shape, axis, start, m->walk.strides[0]);
}

static void concat_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const concat_attrs *attrs = clv__node_attrs(node);
    const clv__op_io *io = clv__node_io(node);
    int axis = axis_of(attrs->axis, io->out[0].shape.rank);
    int64_t start = 0;
    for (int i = 0; i < io->n_in; i++) {
        int64_t length = io->in[i].shape.dims[axis];
        if (clv__wants_grad(node, i)) dx[i] = clv_slice(dy[0], axis, start, length);
        start += length;
    }
}

#define ROW(what, along, n, ...)                                                                             \
    .label = what, .in = {__VA_ARGS__}, .attrs = &(concat_attrs){along}, .n_in = n
static const clv__sample_row concat_samples[] = {
    {ROW("2 inputs, axis 0, the first [2,5]", 0, 2, CLV__DIMS(2, 5), CLV__DIMS(3, 5)), .quick = true},
    {ROW("3 inputs, axis 1, the first [3,2]", 1, 3, CLV__DIMS(3, 2), CLV__DIMS(3, 17), CLV__DIMS(3, 1)),
     .quick = true},
    {ROW("1 inputs, axis -1, the first [7]", -1, 1, CLV__DIMS(7)), .quick = true},
    {ROW("3 inputs, axis 0, the first [0,3]", 0, 3, CLV__DIMS(0, 3), CLV__DIMS(2, 3), CLV__DIMS(0, 3)),
     .quick = true},
    {ROW("4 inputs, axis 1, the first [2,3,4,5]", 1, 4, CLV__DIMS(2, 3, 4, 5), CLV__DIMS(2, 1, 4, 5),
         CLV__DIMS(2, 16, 4, 5), CLV__DIMS(2, 2, 4, 5))},
    {ROW("2 inputs, axis 2, the first [2,3,33,2]", 2, 2, CLV__DIMS(2, 3, 33, 2), CLV__DIMS(2, 3, 31, 2))},
    {ROW("2 inputs, axis 0, the first [8193]", 0, 2, CLV__DIMS(8193), CLV__DIMS(16384))},
    {ROW("2 inputs, axis 3, the first [2,1,2,3,2,2]", 3, 2, CLV__DIMS(2, 1, 2, 3, 2, 2),
         CLV__DIMS(2, 1, 2, 2, 2, 2))},
    {ROW("2 inputs, axis 1, the first [3,8,6]", 1, 2, CLV__DIMS(3, 8, 6), CLV__DIMS(3, 4, 6))},
    {ROW("2 inputs, axis 1, the first [3,5,3], i64", 1, 2, CLV__DIMS(3, 5, 3), CLV__DIMS(3, 2, 3)), LONGS},
    {ROW("2 inputs, axis 1, the first [3,5,3], u8", 1, 2, CLV__DIMS(3, 5, 3), CLV__DIMS(3, 2, 3)), BYTES},
    {0}};
#undef ROW

static bool concat_split(const clv__op_io *io, int i, clv__split *out) {
    return split_beside(io, ((const concat_attrs *)io->attrs)->axis, i, out);
}

/** More inputs than a node takes are joined in groups first. */
static clv_tensor *build_concat(const clv__call *call) {
    const int n = call->n_in, axis = ((const concat_attrs *)call->attrs)->axis;
    if (n <= CLV__MAX_IN) return clv__node_add(call->op, call->attrs, call->in, n, 0);
    int group = (n + CLV__MAX_IN - 1) / CLV__MAX_IN, parts = 0;
    clv_tensor *joined[CLV__MAX_IN];
    for (int i = 0; i < n; i += group)
        joined[parts++] = clv_concat(call->in + i, n - i < group ? n - i : group, axis);
    return clv__node_add(call->op, call->attrs, joined, parts, 0);
}

CLV__OP(concat) = {.name = "concat",
                   .inputs = CLV__INPUTS({"inputs", "any..."}),
                   .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, concat_attrs, axis, "0")}),
                   .outputs = CLV__OUTPUTS({"y", "any"}),
                   .build = build_concat,
                   .attrs_bytes = sizeof(concat_attrs),
                   .grad = CLV__TRAINS(concat_grad),
                   .infer = concat_infer,
                   .samples = CLV__TRAINS(concat_samples),
                   .split = concat_split,
                   MOVES(concat, true, false)};

const clv__op *clv__parts_concat(int axis, void *attrs) {
    memcpy(attrs, &(concat_attrs){axis}, sizeof(concat_attrs));
    return &clv__op_concat;
}

// ---- composites --------------------------------------------------------------------------------------------

static clv_tensor *build_detach(const clv__call *call) {
    clv_tensor *x = call->in[0];
    clv_tensor *detached = clv__node_add(&clv__op_reshape, &(shape_attrs){clv_tensor_shape(x)}, &x, 1, 0);
    clv_requires_grad(detached, false);
    return detached;
}

CLV__COMPOSITE(detach) = {.name = "detach",
                          .inputs = CLV__INPUTS({"x", "any"}),
                          .outputs = CLV__OUTPUTS({"y", "like x"}),
                          CLV__SAMPLES({.label = "a matrix", .quick = true, .in = {CLV__DIMS(2, 3)}}),
                          .detaches = true,
                          .build = build_detach};

typedef struct flatten_call {
    int start_axis;
} flatten_call;

static clv_tensor *build_flatten(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const int start_axis = ((const flatten_call *)call->attrs)->start_axis;
    const clv_shape from = clv_tensor_shape(x);
    int start = start_axis < 0 ? start_axis + from.rank : start_axis;
    if (start < 0 || (start >= from.rank && start > 0))
        return clv__graph_fail(call->graph, CLV_E_VALUE, "flatten '%s': axis %d is outside rank %d",
                               clv_tensor_name(x), start_axis, from.rank);
    clv_shape to = {.rank = start + 1};
    memcpy(to.dims, from.dims, (size_t)start * sizeof *to.dims);
    to.dims[start] = 1;
    for (int d = start; d < from.rank; d++) to.dims[start] *= from.dims[d];
    return clv_reshape(x, to);
}

CLV__COMPOSITE(flatten) = {
    .name = "flatten",
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, flatten_call, start_axis, "0")}),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    CLV__SAMPLES({.label = "images from axis 1",
                  .quick = true,
                  .in = {CLV__DIMS(2, 3, 4, 5)},
                  .attrs = &(flatten_call){1}},
                 {.label = "all", .in = {CLV__DIMS(2, 3)}, .attrs = &(flatten_call){0}}),
    CLV__CALL(flatten_call, build_flatten)};

typedef struct transpose_call {
    int axis0, axis1;
} transpose_call;

static clv_tensor *build_transpose(const clv__call *call) {
    const transpose_call *given = call->attrs;
    const int rank = clv_tensor_shape(call->in[0]).rank, a = axis_of(given->axis0, rank),
              b = axis_of(given->axis1, rank);
    int axes[CLV_MAX_RANK];
    if (a < 0 || a >= rank || b < 0 || b >= rank)
        return clv__graph_fail(call->graph, CLV_E_VALUE, "transpose '%s': axes %d and %d, the rank is %d",
                               clv_tensor_name(call->in[0]), given->axis0, given->axis1, rank);
    for (int d = 0; d < rank; d++) axes[d] = d == a ? b : d == b ? a : d;
    return clv_permute(call->in[0], axes, rank);
}

CLV__COMPOSITE(transpose) = {
    .name = "transpose",
    .inputs = CLV__INPUTS({"x", "any"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, transpose_call, axis0, NULL)},
                                  {CLV__ATTRIBUTE(INT, transpose_call, axis1, NULL)}),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    CLV__SAMPLES(
        {.label = "a matrix", .quick = true, .in = {CLV__DIMS(2, 3)}, .attrs = &(transpose_call){0, 1}},
        {.label = "the last two of four", .in = {CLV__DIMS(2, 3, 4, 5)}, .attrs = &(transpose_call){-1, -2}}),
    CLV__CALL(transpose_call, build_transpose)};
