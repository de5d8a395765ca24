// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one axis, and their gradients from the result.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/rows.h"

typedef struct softmax_attrs {
    int axis; // may count from the end
} softmax_attrs;

/** A tensor seen from its axis: [outer, D, inner]. */
typedef struct softmax_sizes {
    int64_t outer, D, inner;
} softmax_sizes;

static softmax_sizes sizes_of(const clv__op_io *io) {
    const clv_shape *x = &io->out[0].shape;
    int axis = ((const softmax_attrs *)io->attrs)->axis;
    if (axis < 0) axis += x->rank;
    return (softmax_sizes){clv__dims_product(x, 0, axis), x->dims[axis],
                           clv__dims_product(x, axis + 1, x->rank)};
}

static bool is_log(const clv__op_io *io) {
    return io->op->data != NULL;
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    int axis;
    CLV_TRY(clv__want_axis(((const softmax_attrs *)io->attrs)->axis, io->in[0].shape.rank, &axis, error));
    return clv__one_out(io, io->in[0]);
}

// ---- kernels ----------------------------------------------------------------------------------------------

#define FORWARD                                                                                              \
    .params = "global float *restrict y, global const T_X *restrict x", .tensors = "o0 i0=T_X",              \
    CLV__ROW_LOG_SUM_EXP, .load = "a[k] = ROW_X(at);", .run = true
#define BACKWARD                                                                                             \
    .params = "global T_DX *restrict dx, global const float *restrict dy, global const float *restrict y",   \
    .tensors = "o0=T_DX i0 i1", .planes = 1, .join = "s0 += t0;", .load = "a[k] = dy[at]; b[k] = y[at];"
// NaN for rows of nothing but -infinity, as of rows with a NaN.
static const clv__row_program softmax_row = {
    FORWARD, .finish = "const float scale = s0 == -INFINITY ? NAN : 1.0f / s1;",
    .store = "ROW_Y(exp(a[k] - s0) * scale, at);"};
static const clv__row_program log_softmax_row = {
    FORWARD, .finish = "const float log_sum = s0 == -INFINITY ? NAN : log(s1);",
    .store = "ROW_Y(a[k] - s0 - log_sum, at);"};
static const clv__row_program softmax_backward_row = {BACKWARD, .gather = "EACH(s0 += a[k] * b[k];)",
                                                      .store = "STORE(T_DX, b[k] * (a[k] - s0), dx + at);"};
static const clv__row_program log_softmax_backward_row = {
    BACKWARD, .gather = "EACH(s0 += a[k];)", .store = "STORE(T_DX, a[k] - exp(b[k]) * s0, dx + at);"};

static void lower(clv__launches *list, const clv__op_io *io) {
    const softmax_sizes s = sizes_of(io);
    const clv__row_program *const forward = is_log(io) ? &log_softmax_row : &softmax_row;
    const clv__row_program *const backward = is_log(io) ? &log_softmax_backward_row : &softmax_backward_row;
    CLV__ROWS(list, io, .program = clv__is_gradient(io) ? backward : forward,
              .walk = clv__row_middle(s.outer, s.D, s.inner));
}

/** Rows, or columns that lie side by side. */
static void vector(clv__launches *list, const clv__op_io *io) {
    const softmax_sizes s = sizes_of(io);
    const bool backward = clv__is_gradient(io), rows = s.inner == 1;
    const int64_t per = clv__rows_for(s.D),
                  items = rows ? clv__div_up(s.outer, per) : s.outer * clv__div_up(s.inner, 16);
    if (s.outer * s.inner * s.D == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "softmax",
                                             rows       ? backward ? "softmax_rows_backward" : "softmax_rows"
                                             : backward ? "softmax_columns_backward"
                                                        : "softmax_columns");
    clv__arg_tensors(list, launch, io, backward ? "o0=T_DX i0 i1" : "o0 i0=T_X");
    if (rows)
        CLV__ARGS_I32(list, launch, s.outer, per, s.D, is_log(io));
    else
        CLV__ARGS_I32(list, launch, items, s.D, s.inner, is_log(io));
    clv__launch_over(list, launch, CLV__TASKS, items);
}

static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    return sizes_of(io).D > 1 && clv__rows_groups(device, io);
}

/** Rows, or neighbouring columns, long enough to fill vectors. */
static bool vector_supports(const clv_device_info *device, const clv__op_io *io) {
    softmax_sizes s = sizes_of(io);
    // Turns of loops: three passes, by sixteens; columns may take sixteen a vector to load and to store.
    int64_t turns = s.inner == 1 ? s.D / 16 * 3 + 64 : s.D * (s.inner % 16 ? 82 : 3);
    return clv__threads(device) && (s.inner == 1 ? s.D >= 16 : s.inner >= 8) && clv__loops_fit(device, turns);
}

static const clv__variant variants[] = {{"plain", .lower = lower},
                                        {"vector", vector_supports, .lower = vector, .relative = 0.2},
                                        CLV__ROWS_GROUPS(groups_support, lower),
                                        {0}};

// ---- references -------------------------------------------------------------------------------------------

static void reference(const clv__ref *ref) {
    const softmax_sizes s = sizes_of(ref->io);
    for (int64_t r = 0; r < s.outer * s.inner; r++) {
        const int64_t base = r / s.inner * s.D * s.inner + r % s.inner;
        const double *x = ref->in[0] + base;
        double *y = ref->out[0] + base, largest = -INFINITY, sum = 0;
        for (int64_t d = 0; d < s.D; d++) largest = fmax(largest, x[d * s.inner]);
        for (int64_t d = 0; d < s.D; d++) sum += exp(x[d * s.inner] - largest);
        for (int64_t d = 0; d < s.D; d++) {
            const double v = x[d * s.inner] - largest;
            y[d * s.inner] = is_log(ref->io) ? v - log(sum) : exp(v) / sum;
        }
    }
}

static void backward_reference(const clv__ref *ref) {
    const softmax_sizes s = sizes_of(ref->io);
    const bool log_form = is_log(ref->io);
    for (int64_t r = 0; r < s.outer * s.inner; r++) {
        const int64_t base = r / s.inner * s.D * s.inner + r % s.inner;
        const double *dy = ref->in[0] + base, *y = ref->in[1] + base;
        double *dx = ref->out[0] + base, sum = 0;
        for (int64_t at = 0; at < s.D * s.inner; at += s.inner) sum += log_form ? dy[at] : dy[at] * y[at];
        for (int64_t at = 0; at < s.D * s.inner; at += s.inner)
            dx[at] = log_form ? dy[at] - exp(y[at]) * sum : y[at] * (dy[at] - sum);
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double n = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){5 * n, 4 * n * (io->n_in + 1)};
}

static int64_t reduction(const clv__op_io *io) {
    return sizes_of(io).D;
}

// ---- samples ----------------------------------------------------------------------------------------------

#define ROW(what, axis, reach, ...)                                                                          \
    .label = what, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(softmax_attrs){axis},                          \
    .fill = {{CLV__FILL_UNIFORM, -(reach), reach}}
static const clv__sample_row samples[] = {
    {ROW("rows of 10", 1, 3, 64, 10), .quick = true},
    {ROW("rows of 33", -1, 3, 7, 33), .quick = true},
    {ROW("first axis of a matrix", 0, 3, 5, 19), .quick = true},
    {ROW("one element", 0, 3, 1)},
    {ROW("two elements", 0, 3, 2)},
    {ROW("rows of 16", 1, 3, 3, 16)},
    {ROW("rows of 17", 1, 3, 2, 17)},
    {ROW("rows of 257, large elements", 1, 500, 3, 257)},
    {ROW("a long row", 1, 5, 1, 2049)},
    {ROW("many rows", 1, 3, 1031, 20)},
    {ROW("middle axis, inner 8", 1, 3, 2, 5, 8)},
    {ROW("middle axis, inner 16", -2, 3, 3, 4, 16)},
    {ROW("channels of an image, inner 35", 1, 3, 2, 3, 5, 7)},
    {ROW("inner 3", 1, 3, 2, 7, 3)},
    {ROW("axis of one", 1, 3, 3, 1, 17)},
    {ROW("last axis of four", 3, 3, 2, 3, 4, 31)},
    {ROW("no rows", 1, 3, 0, 5)},
    {ROW("a very long axis, inner 2", 1, 3, 1, 33331, 2)}, // longer than loops may be
    {ROW("a very long row", 1, 3, 1, 66001)},
    {ROW("a long axis of vectors", 0, 3, 1201, 19)}, // ragged vectors take loops too
    {0},
};
#undef ROW

// ---- descriptors ------------------------------------------------------------------------------------------

static const int log_form; // .data of the log ops points here

/** Along every dimension but the axis. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const int rank = io->in[0].shape.rank, axis = ((const softmax_attrs *)io->attrs)->axis;
    if (i != (axis < 0 ? axis + rank : axis)) clv__split_all(io, i, out);
    return i < rank;
}

extern const clv__op clv__op_softmax, clv__op_log_softmax;
#define COMMON                                                                                               \
    .attrs_bytes = sizeof(softmax_attrs), .variants = variants, .cost = cost, .reduction = reduction
#define GRADIENT(id) CLV__GRADIENT_OF(id, "d0 o0 g0"), .half_out = 1, .reference = backward_reference, COMMON
const clv__op clv__op_softmax_backward = {GRADIENT(softmax)};
const clv__op clv__op_log_softmax_backward = {GRADIENT(log_softmax), .data = &log_form};

// The result is f32 in mixed precision, and written twice.
#define FORWARD_OP(id)                                                                                       \
    .name = #id, .inputs = CLV__INPUTS({"x", "f32"}), .outputs = CLV__OUTPUTS({"y", "like x"}),              \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, softmax_attrs, axis, "-1")}), .half_in = 1,           \
    .autocast = CLV__CAST_FLOAT, .infer = infer, .reference = reference, .samples = CLV__TRAINS(samples),    \
    .split = split, CLV__GRADIENT(id), COMMON
const clv__op clv__op_softmax = {FORWARD_OP(softmax)};
const clv__op clv__op_log_softmax = {FORWARD_OP(log_softmax), .data = &log_form};

clv_tensor *clv_softmax(clv_tensor *x, int axis) {
    return clv__node_add(&clv__op_softmax, &(softmax_attrs){axis}, &x, 1, 0);
}

clv_tensor *clv_log_softmax(clv_tensor *x, int axis) {
    return clv__node_add(&clv__op_log_softmax, &(softmax_attrs){axis}, &x, 1, 0);
}
