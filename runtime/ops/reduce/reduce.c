// SPDX-License-Identifier: Apache-2.0
// sum, mean, max over axes, and argmax over one. What is launched sees neighbouring kept and neighbouring
// reduced axes as one: [N,C,H,W] over N, H, W is [N | C | HW], reduced, kept, reduced.
#include <math.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/collapse.h"
#include "ops/lower.h"
#include "ops/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/rows.h"
#include "tensor/half.h"
#include "tensor/shape.h"

typedef struct reduce_attrs {
    uint32_t axes; // bit d: axis d is reduced
    int keepdim;
} reduce_attrs;

typedef struct argmax_attrs {
    int axis;
    int keepdim; // no bool: no padding, which keys of tuning files would hold
} argmax_attrs;

typedef enum reduce_kind { REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX } reduce_kind;

static reduce_kind kind_of(const clv__op_io *io) {
    return *(const reduce_kind *)io->op->data;
}

// ---- shape rule -------------------------------------------------------------------------------------------

/** The shape with the axes of the mask made 1, or taken out. */
static clv_shape reduced_shape(const clv_shape *shape, uint32_t axes, bool keepdim) {
    clv_shape out = {0};
    for (int d = 0; d < shape->rank; d++) {
        bool reduced = axes >> d & 1;
        if (!reduced || keepdim) out.dims[out.rank++] = reduced ? 1 : shape->dims[d];
    }
    return out;
}

static int64_t reduced_count(const clv__op_io *io) {
    const reduce_attrs *attrs = io->attrs;
    int64_t count = 1;
    for (int d = 0; d < io->in[0].shape.rank; d++)
        count *= attrs->axes >> d & 1 ? io->in[0].shape.dims[d] : 1;
    return count;
}

static clv_status reduce_infer(clv__op_io *io, clv__error *error) {
    const reduce_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->in[0].shape;
    io->n_out = 1;
    io->out[0] = clv__f32(reduced_shape(shape, attrs->axes, attrs->keepdim));
    if (kind_of(io) == REDUCE_MAX && reduced_count(io) == 0 && clv__numel(&io->out[0]) > 0)
        CLV_FAIL(error, CLV_E_SHAPE, "the largest of no elements is not defined");
    return CLV_OK;
}

static clv_status argmax_infer(clv__op_io *io, clv__error *error) {
    const argmax_attrs *attrs = io->attrs;
    int axis;
    CLV_TRY(clv__want_axis(attrs->axis, io->in[0].shape.rank, &axis, error));
    io->n_out = 1;
    io->out[0] = clv__i32(reduced_shape(&io->in[0].shape, 1u << axis, attrs->keepdim));
    if (io->in[0].shape.dims[axis] == 0 && clv__numel(&io->out[0]) > 0)
        CLV_FAIL(error, CLV_E_SHAPE, "the largest of no elements is not defined");
    return CLV_OK;
}

/** The walk over the input; tensor 0 is the input, tensor 1 the output, which stands still along reduced
 *  dimensions. */
static clv__walk walk_of(const clv__op_io *io) {
    const reduce_attrs *attrs = io->attrs;
    const clv_shape *shape = &io->in[0].shape;
    clv_shape kept = reduced_shape(shape, attrs->axes, true);
    clv__walk walk = {.rank = shape->rank, .n = 2};
    memcpy(walk.dims, shape->dims, sizeof walk.dims);
    clv__strides_of(shape, walk.strides[0]);
    clv__strides_broadcast(&kept, shape, walk.strides[1]);
    clv__walk_collapse(&walk);
    return walk;
}

static bool is_reduced(const clv__walk *walk, int d) {
    return walk->strides[1][d] == 0;
}

// ---- launches: plain --------------------------------------------------------------------------------------

/** What to launch when there is nothing to loop over; true if that is all. */
static bool lower_trivial(clv__launches *list, const clv__op_io *io) {
    int64_t n = clv__numel(&io->out[0]), count = reduced_count(io);
    if (n == 0) return true;
    const float nothing = kind_of(io) == REDUCE_MEAN ? NAN : 0.0f;
    uint32_t pattern;
    memcpy(&pattern, &nothing, sizeof pattern);
    clv_dtype dtype = io->out[0].dtype;
    if (dtype == CLV_DTYPE_F16) pattern = clv__f16_of_float(nothing) * 0x10001u;
    if (dtype == CLV_DTYPE_BF16) pattern = clv__bf16_of_float(nothing) * 0x10001u;
    if (count == 0) clv__launch_fill(list, 0, (size_t)n * clv_dtype_bytes(dtype), pattern);
    bool copied = count == 1 && io->in[0].dtype == dtype;
    if (copied) clv__launch_copy(list, 0, 0, (size_t)n * clv_dtype_bytes(dtype));
    return count == 0 || copied;
}

static float divisor_of(const clv__op_io *io) {
    return kind_of(io) == REDUCE_MEAN ? (float)reduced_count(io) : 1.0f;
}

/** Where a stage reads or writes: a part of the workspace, or, where there is none, the op's tensor. */
static void arg_place(clv__launches *list, clv__launch *launch, const clv__op_io *io, clv__part at,
                      bool out) {
    if (at.bytes)
        clv__arg_part(list, launch, at);
    else
        clv__arg_tensors(list, launch, io, out ? "o0=T_OUT" : "i0=T_IN");
}

/** Kept dimensions in [0], reduced ones in [1], set to the right. They take turns, so there are at most four
 *  of each. */
typedef struct split {
    int64_t dims[2][4], strides[2][4];
} split;

static split split_of(const clv__walk *walk) {
    split s = {.dims = {{1, 1, 1, 1}, {1, 1, 1, 1}}};
    int at[2] = {4, 4};
    for (int d = walk->rank - 1; d >= 0; d--) {
        bool reduced = is_reduced(walk, d);
        int to = --at[reduced];
        s.dims[reduced][to] = walk->dims[d];
        s.strides[reduced][to] = walk->strides[0][d];
    }
    return s;
}

/** Chunks of a fixed length until one is left: loops stay short (kernels_cl/README.md), and so do sums. */
static void plain_lower(clv__launches *list, const clv__op_io *io) {
    enum { CHUNK = 4096 };
    if (lower_trivial(list, io)) return;
    const clv__walk walk = walk_of(io);
    split s = split_of(&walk);
    int64_t n = clv__numel(&io->out[0]), count = reduced_count(io);
    clv__part from = {0};
    for (bool last = false; !last;) {
        int64_t chunks = clv__div_up(count, CHUNK);
        last = chunks == 1;
        clv__part to = last ? (clv__part){0} : clv__floats(list, n * chunks);
        clv__launch *launch = clv__launch_kernel(list, "reduce", "reduce_plain");
        clv__launch_define(list, launch, "RED_MAX", "%d", kind_of(io) == REDUCE_MAX);
        arg_place(list, launch, io, to, true);
        arg_place(list, launch, io, from, false);
        CLV__ARGS_I32(list, launch, n * chunks, count, CHUNK, chunks);
        for (int k = 0; k < 2; k++) {
            for (int d = 1; d < 4; d++) clv__arg_i32(list, launch, s.dims[k][d]);
            for (int d = 0; d < 4; d++) clv__arg_i32(list, launch, s.strides[k][d]);
        }
        clv__arg_f32(list, launch, last ? divisor_of(io) : 1.0f);
        clv__launch_over(list, launch, CLV__ELEMENTS, n * chunks);
        from = to; // [n, chunks]
        s = (split){.dims = {{1, 1, 1, n}, {1, 1, 1, chunks}}, .strides = {{0, 0, 0, chunks}, {0, 0, 0, 1}}};
        count = chunks;
    }
}

// ---- launches: in stages ----------------------------------------------------------------------------------

/** One stage: [outer, length, inner] to [outer, chunks, inner]. */
typedef struct stage {
    int64_t outer, length, inner, chunk, chunks;
    clv__part from, to;
    float divisor;
    bool max;
} stage;

static void lower_stage(clv__launches *list, const clv__op_io *io, const stage *s) {
    bool rows = s->inner == 1;
    int width = clv__vector_width(list->device);
    int64_t wide = 4 * width, blocks = clv__div_up(s->inner, wide);
    clv__launch *launch = clv__launch_kernel(list, "reduce", rows ? "reduce_rows" : "reduce_cols");
    clv__launch_define(list, launch, "RED_MAX", "%d", s->max);
    clv__launch_define(list, launch, "RED_VW", "%d", width);
    arg_place(list, launch, io, s->to, true);
    arg_place(list, launch, io, s->from, false);
    int64_t items;
    if (rows) {
        int64_t per_item = s->chunks > 1 || s->length > s->chunk ? 1 : clv__div_up(s->chunk, s->length);
        items = clv__div_up(s->outer, per_item) * s->chunks;
        CLV__ARGS_I32(list, launch, s->outer, per_item, s->length);
    } else {
        items = s->outer * s->chunks * blocks;
        CLV__ARGS_I32(list, launch, items, s->length, s->inner, blocks);
    }
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(s->chunk, s->chunks), CLV__FLOATS(s->divisor));
    clv__launch_over(list, launch, CLV__TASKS, items);
}

/**
 * Reduce the innermost reduced dimension, then the next, each in stages whose chunks have a fixed length:
 * enough work-items, and sums short enough that rounding stays small. Between stages values lie in the
 * workspace.
 */
static void staged_lower(clv__launches *list, const clv__op_io *io) {
    if (lower_trivial(list, io)) return;
    if (reduced_count(io) == 1) { // no stage, but another type
        plain_lower(list, io);
        return;
    }
    clv__walk walk = walk_of(io);
    clv__part from = {0};
    int left = 0;
    for (int d = 0; d < walk.rank; d++) left += is_reduced(&walk, d);
    for (int d = walk.rank - 1; d >= 0; d--) {
        if (!is_reduced(&walk, d)) continue;
        stage s = {.outer = 1, .length = walk.dims[d], .inner = 1, .max = kind_of(io) == REDUCE_MAX};
        for (int i = 0; i < d; i++) s.outer *= walk.dims[i];
        for (int i = d + 1; i < walk.rank; i++) s.inner *= is_reduced(&walk, i) ? 1 : walk.dims[i];
        left--;
        s.chunk = s.inner == 1 ? 8192 : 256;
        while (s.length > 1) {
            s.chunks = clv__div_up(s.length, s.chunk);
            bool last = left == 0 && s.chunks == 1;
            s.from = from;
            s.to = last ? (clv__part){0} : clv__floats(list, s.outer * s.chunks * s.inner);
            s.divisor = last ? divisor_of(io) : 1.0f;
            lower_stage(list, io, &s);
            from = s.to;
            s.length = s.chunks;
        }
    }
}

// ---- launches: rows ---------------------------------------------------------------------------------------

#define REDUCE                                                                                               \
    .params = "global T_Y *restrict out, global const T_X *restrict x, float divisor", .planes = 1,          \
    .tensors = "o0=T_Y i0=T_X", .load = "a[k] = ROW_X(at);", .run = true,                                    \
    .result = "STORE(T_Y, s0 / divisor, out + r);"
#define LARGER(b) "s0 = " b " > s0 || " b " != " b " ? " b " : s0;" // a NaN is kept
static const clv__row_program sum_row = {REDUCE, .gather = "EACH(s0 += a[k];)", .join = "s0 += t0;"};
static const clv__row_program max_row = {REDUCE, .gather = "EACH(" LARGER("a[k]") ")", .join = LARGER("t0"),
                                         .start0 = "-INFINITY"};

/** Two kept dimensions and two reduced ones are rows. */
static bool rows_of(const clv__op_io *io, clv__row_walk *out) {
    const clv__walk walk = walk_of(io);
    const split s = split_of(&walk);
    *out = (clv__row_walk){.rows = s.dims[0][2] * s.dims[0][3],
                           .count = s.dims[1][2] * s.dims[1][3],
                           .inner = s.dims[0][3],
                           .major = s.strides[0][2],
                           .minor = s.strides[0][3],
                           .length = s.dims[1][3],
                           .far = s.strides[1][2],
                           .near = s.strides[1][3]};
    return s.dims[0][0] * s.dims[0][1] * s.dims[1][0] * s.dims[1][1] == 1;
}

static void groups_lower(clv__launches *list, const clv__op_io *io) {
    const bool max = kind_of(io) == REDUCE_MAX;
    clv__rows use = {.program = max ? &max_row : &sum_row, .n_floats = 1, .floats = {divisor_of(io)}};
    if (lower_trivial(list, io) || !rows_of(io, &use.walk)) return;
    clv__rows_lower(list, io, &use);
}

static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    clv__row_walk walk;
    return reduced_count(io) > 1 && clv__numel(&io->out[0]) > 0 && rows_of(io, &walk) &&
           clv__rows_groups(device, io);
}

static bool staged_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    return clv__threads(device);
}

static double staged_rank(const clv_device_info *device, const clv__op_io *io) {
    const int64_t n = clv__numel(&io->out[0]), count = reduced_count(io);
    const clv__walk walk = walk_of(io);
    int axes = 0;
    (void)device;
    for (int d = 0; d < walk.rank; d++) axes += is_reduced(&walk, d);
    return n * count < 1024 && (axes > 1 || count > 256) ? 1.1
                                                         : 0.2; // a launch more is dearer than a short loop
}

static const clv__variant reduce_variants[] = {
    {.name = "plain", .lower = plain_lower},
    {"staged", staged_supports, staged_rank, .lower = staged_lower},
    CLV__ROWS_GROUPS(groups_support, groups_lower),
    {0},
};

/** The first of equals, or the first NaN. */
#define FIRST_LARGEST(b, i)                                                                                  \
    "if (" b " > s0 || (" b " != " b " && s0 == s0) || ((" b " == s0 || (" b " != " b " && s0 != s0)) && " i \
    " < s1)) { s0 = " b "; s1 = " i "; }"
static void argmax_reference(const clv__row_ref *row) {
    const double *x = row->in[0];
    int64_t best = 0;
    for (int64_t at = row->step; at < row->D * row->step; at += row->step)
        if (x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])) best = at;
    row->out[0][0] = (double)(best / row->step);
}

static const clv__row_op argmax_row = {
    .program = {.params = "global int *restrict out, global const T_X *restrict x",
                .tensors = "o0 i0=T_X",
                .planes = 2,
                .type1 = "int",
                .start0 = "-INFINITY",
                .start1 = "INT_MAX",
                .load = "a[k] = ROW_X(at);",
                .run = true,
                .gather = "EACH(" FIRST_LARGEST("a[k]", "j") ")",
                .join = FIRST_LARGEST("t0", "t1"),
                .result = "out[r] = s1;"},
    .axis = true,
    .reference = argmax_reference};
static const clv__variant argmax_variants[] = {
    {"plain", .lower = clv__row_op_lower}, CLV__ROWS_GROUPS(clv__rows_groups, clv__row_op_lower), {0}};

// ---- references -------------------------------------------------------------------------------------------

static void reduce_reference(const clv__ref *ref) {
    const clv__op_io *io = ref->io;
    const reduce_kind kind = kind_of(io);
    const clv__walk walk = walk_of(io);
    int64_t n_in = clv__numel(&io->in[0]), n_out = clv__numel(&io->out[0]);
    double *out = ref->out[0];
    for (int64_t i = 0; i < n_out; i++) out[i] = kind == REDUCE_MAX ? -INFINITY : 0;
    for (int64_t i = 0; i < n_in; i++) {
        double v = ref->in[0][clv__walk_at(&walk, 0, i)], *to = &out[clv__walk_at(&walk, 1, i)];
        if (kind != REDUCE_MAX)
            *to += v;
        else if (v > *to || v != v)
            *to = v;
    }
    if (kind != REDUCE_MEAN) return;
    for (int64_t i = 0; i < n_out; i++) out[i] /= (double)reduced_count(io);
}

static int64_t reduce_length(const clv__op_io *io) {
    int64_t count = reduced_count(io);
    return kind_of(io) == REDUCE_MAX || count < 1 ? 1 : count;
}

static void reduce_cost(const clv__op_io *io, clv__cost *cost) {
    cost->flops = (double)clv__numel(&io->in[0]);
    cost->bytes = 4.0 * (double)(clv__numel(&io->in[0]) + clv__numel(&io->out[0]));
}

// ---- samples ----------------------------------------------------------------------------------------------

#define CASE(text, mask, keep, ...)                                                                          \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(reduce_attrs){mask, keep},                     \
    .fill = {{CLV__FILL_DISTINCT, -1, 1.5}}
static const clv__sample_row reduce_samples[] = {
    {CASE("rows of 17", 2, false, 5, 17), .quick = true},
    {CASE("19 rows", 1, false, 19, 5), .quick = true},
    {CASE("images by channel, keepdim", 13, true, 2, 3, 4, 5), .quick = true},
    {.label = "rank 0", .attrs = &(reduce_attrs){0, false}, .quick = true},
    {CASE("no columns", 1, false, 3, 0), .quick = true},
    {CASE("one element", 1, false, 1)},
    {CASE("two elements, keepdim", 1, true, 2)},
    {CASE("all of a matrix", 3, false, 33, 65)},
    {CASE("257 rows of 3, keepdim", 1, true, 257, 3)},
    {CASE("a dimension of 1, keepdim", 2, true, 7, 1, 3)},
    {CASE("middle axis of 300", 2, false, 2, 300, 70)},
    {CASE("images by channel", 13, false, 3, 5, 31, 33)},
    {CASE("every other axis of six, the second first", 21, false, 2, 3, 2, 3, 2, 3)},
    {CASE("every other axis of six, the first first, keepdim", 42, true, 2, 3, 2, 3, 2, 3)},
    {CASE("every other axis of eight", 0x55, false, 2, 2, 2, 2, 2, 2, 2, 2)},
    {CASE("first and third of four", 5, false, 2, 3, 5, 7)},
    {CASE("16,399 elements", 1, false, 16399)},
    {CASE("rows of 8193", 2, false, 3, 8193)},
    {CASE("70,001 rows of 2", 1, false, 70001, 2)},
    {CASE("40 rows of 64", 1, false, 40, 64)},
    {CASE("600,001 elements", 1, false, 600001)}, // their parts are joined twice
    {0},
};
#undef CASE

#define CASE(text, axis, keep, ...)                                                                          \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(argmax_attrs){axis, keep}, .no_gradient = true
#define TIES .fill = {{CLV__FILL_INTEGER, -2, 2}}
#define NO_TIES .fill = {{CLV__FILL_DISTINCT, -2, 2}}
static const clv__sample_row argmax_samples[] = {
    {CASE("rows of 10", -1, false, 7, 10), NO_TIES, .quick = true},
    {CASE("first axis, keepdim, ties", 0, true, 7, 10), TIES, .quick = true},
    {CASE("one element", 0, false, 1), NO_TIES, .quick = true},
    {CASE("middle axis, ties", 1, false, 2, 3, 5), TIES, .quick = true},
    {CASE("no rows", 1, false, 0, 3), NO_TIES, .quick = true},
    {CASE("middle axis of 129", 1, false, 2, 129, 33), NO_TIES},
    {CASE("rows of 1", 1, false, 64, 1), NO_TIES},
    {CASE("a dimension of 1 within, keepdim, ties", -2, true, 3, 2, 1, 4), TIES},
    {CASE("257 elements", -1, false, 257), NO_TIES},
    {CASE("rows of 70,001", 1, false, 2, 70001), NO_TIES},
    {CASE("middle axis of 4097, keepdim, ties", 1, true, 2, 4097, 3), TIES},
    {0},
};
#undef CASE

/** The largest elements lie near 0, where f16 tells neighbours apart: where it makes ties of them, a gradient is
 *  divided and rounded once more than the tolerance is for. */
static void near_zero(clv__sample *sample) {
    sample->fill[0] = (clv__fill){CLV__FILL_DISTINCT, -2.5, 0};
}

// ---- gradients --------------------------------------------------------------------------------------------

/** A reduced tensor with the reduced axes back as 1, so that it broadcasts against x. */
static clv_tensor *with_axes(const clv__node *node, clv_tensor *reduced) {
    const reduce_attrs *attrs = clv__node_attrs(node);
    return clv_reshape(reduced, reduced_shape(&clv__node_io(node)->in[0].shape, attrs->axes, true));
}

static void sum_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_broadcast_to(with_axes(node, dy[0]), clv__node_io(node)->in[0].shape);
}

static void mean_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    int64_t count = reduced_count(clv__node_io(node));
    clv_tensor *share =
        clv_mul_scalar(with_axes(node, dy[0]), count > 0 ? (float)(1.0 / (double)count) : 0.0f);
    dx[0] = clv_broadcast_to(share, clv__node_io(node)->in[0].shape);
}

extern const clv__op clv__op_sum;

/** clv_sum over the axes whose bits are set. */
static clv_tensor *sum_mask(clv_tensor *x, uint32_t axes, bool keepdim) {
    return clv__node_add(&clv__op_sum, &(reduce_attrs){axes, keepdim}, &x, 1, 0);
}

/** Largest elements share the gradient evenly, as torch.amax does it. */
static void max_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const reduce_attrs *attrs = clv__node_attrs(node);
    clv_tensor *x = clv__node_in(node, 0), *y = with_axes(node, clv__node_out(node, 0));
    clv_tensor *is_largest = clv_cast(clv_eq(x, y), CLV_DTYPE_F32);
    clv_tensor *ties = sum_mask(is_largest, attrs->axes, true);
    dx[0] = clv__max_backward(x, y, clv_div(with_axes(node, dy[0]), ties));
}

// ---- in parts ---------------------------------------------------------------------------------------------

/** Along dimension i of x: what is kept goes along, what is reduced is put together. */
static bool split_along(const clv__op_io *io, uint32_t axes, bool keepdim, int i, int together,
                        clv__split *out) {
    const clv_shape *shape = &io->in[0].shape;
    if (i >= shape->rank) return false;
    const bool reduced = axes >> i & 1;
    out->length = reduced && together == CLV__SPLIT_WHOLE ? 0 : shape->dims[i];
    out->in[0] = (int8_t)i;
    int kept = i;
    for (int d = 0; d < i && !keepdim; d++) kept -= axes >> d & 1;
    out->out[0] = (int8_t)(reduced ? together : kept);
    return true;
}

static bool reduce_split(const clv__op_io *io, int i, clv__split *out) {
    const reduce_attrs *attrs = io->attrs;
    static const int together[] = {
        [REDUCE_SUM] = CLV__SPLIT_SUM, [REDUCE_MEAN] = CLV__SPLIT_MEAN, [REDUCE_MAX] = CLV__SPLIT_WHOLE};
    return split_along(io, attrs->axes, attrs->keepdim, i, together[kind_of(io)], out);
}

static bool argmax_split(const clv__op_io *io, int i, clv__split *out) {
    const argmax_attrs *attrs = io->attrs;
    const int axis = attrs->axis < 0 ? attrs->axis + io->in[0].shape.rank : attrs->axis;
    return split_along(io, 1u << axis, attrs->keepdim, i, CLV__SPLIT_WHOLE, out);
}

// ---- descriptors and builders -----------------------------------------------------------------------------

static const reduce_kind sum_kind = REDUCE_SUM, mean_kind = REDUCE_MEAN, max_kind = REDUCE_MAX;

/** What the call by name has. */
typedef struct reduce_call {
    clv__ints axes;
    int keepdim;
} reduce_call;

static const clv__op *call_of(const clv__node *node, void *attrs) {
    const reduce_attrs *a = clv__node_attrs(node);
    reduce_call *call = attrs;
    call->axes.n = 0;
    for (int d = 0; d < CLV_MAX_RANK; d++)
        if (a->axes >> d & 1) call->axes.at[call->axes.n++] = d;
    call->keepdim = a->keepdim;
    return clv__node_io(node)->op;
}

/** Axes as a mask; none are all. */
static clv_tensor *build(const clv__call *call) {
    const reduce_call *a = call->attrs;
    const int rank = clv_tensor_shape(call->in[0]).rank;
    reduce_attrs attrs = {a->axes.n ? 0 : (1u << rank) - 1, a->keepdim};
    for (int i = 0; i < a->axes.n; i++) {
        const int given = a->axes.at[i], axis = given < 0 ? given + rank : given;
        if (axis < 0 || axis >= rank)
            return clv__graph_fail(call->graph, CLV_E_VALUE, "%s '%s': axis %d is outside rank %d",
                                   call->op->name, clv_tensor_name(call->in[0]), given, rank);
        if (attrs.axes >> axis & 1)
            return clv__graph_fail(call->graph, CLV_E_VALUE, "%s '%s': axis %d is named twice",
                                   call->op->name, clv_tensor_name(call->in[0]), given);
        attrs.axes |= 1u << axis;
    }
    return clv__node_add(call->op, &attrs, call->in, 1, 0);
}

#define REDUCTION(id)                                                                                        \
    .name = #id, .attrs_bytes = sizeof(reduce_attrs), .inputs = CLV__INPUTS({"x", "f32"}),                   \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(LIST, reduce_call, axes, "")},                             \
                                  {CLV__ATTRIBUTE(BOOL, reduce_call, keepdim, "0")}),                        \
    .outputs = CLV__OUTPUTS({"y", "f32"}), .attributes_of_call = true, .build = build, .call_of = call_of,   \
    .data = &id##_kind, .half_in = 1, .half_out = 1, .infer = reduce_infer, .grad = CLV__TRAINS(id##_grad),  \
    .variants = reduce_variants, .reference = reduce_reference, .samples = CLV__TRAINS(reduce_samples),      \
    .cost = reduce_cost, .reduction = reduce_length, .split = reduce_split
CLV__OP(sum) = {REDUCTION(sum), .autocast = CLV__CAST_FLOAT};
CLV__OP(mean) = {REDUCTION(mean), .autocast = CLV__CAST_FOLLOW};
CLV__OP(max) = {REDUCTION(max), .autocast = CLV__CAST_FOLLOW, .adapt = near_zero};

CLV__OP(argmax) = {
    .name = "argmax",
    .half_in = 1,
    .attrs_bytes = sizeof(argmax_attrs),
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, argmax_attrs, axis, NULL)},
                                  {CLV__ATTRIBUTE(BOOL, argmax_attrs, keepdim, "0")}),
    .outputs = CLV__OUTPUTS({"y", "i32"}),
    .infer = argmax_infer,
    .data = &argmax_row,
    .variants = argmax_variants,
    .reference = clv__row_op_reference,
    .samples = CLV__TRAINS(argmax_samples),
    .split = argmax_split,
};

static clv_tensor *build_sum_to(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const clv_shape shape = *(const clv_shape *)call->attrs;
    const clv_shape from = clv_tensor_shape(x);
    if (clv_shape_equal(&from, &shape)) return x;
    const char *fault = clv__shape_fault(&shape);
    char a[128], b[128];
    if (fault)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE, "sum_to '%s': shape %s is not possible: %s",
                               clv_tensor_name(x), clv_shape_text(&shape, a, sizeof a), fault);
    int lead = from.rank - shape.rank;
    uint32_t mask = 0;
    bool fits = lead >= 0;
    for (int d = 0; d < from.rank && fits; d++) {
        int64_t to = d < lead ? 1 : shape.dims[d - lead];
        fits = to == from.dims[d] || to == 1;
        if (to != from.dims[d]) mask |= 1u << d;
    }
    if (!fits) {
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_SHAPE, "sum_to '%s': %s does not broadcast to %s",
                               clv_tensor_name(x), clv_shape_text(&shape, a, sizeof a),
                               clv_shape_text(&from, b, sizeof b));
    }
    return clv_reshape(mask ? sum_mask(x, mask, true) : x, shape);
}

CLV__COMPOSITE(sum_to) = {
    .name = "sum_to",
    .inputs = CLV__INPUTS({"x", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__SHAPE_ATTRIBUTE("shape")}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    CLV__SAMPLES(
        {.label = "rows", .quick = true, .in = {CLV__DIMS(2, 3)}, .attrs = &(const clv_shape)CLV__DIMS(3)},
        {.label = "kept dimensions",
         .in = {CLV__DIMS(2, 3, 4)},
         .attrs = &(const clv_shape)CLV__DIMS(2, 1, 4)}),
    CLV__CALL(clv_shape, build_sum_to)};
