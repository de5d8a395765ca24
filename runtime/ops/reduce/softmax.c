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

static bool is_log(const clv__op_io *io) {
    return clv__row_op_of(io)->kind;
}

// ---- references -------------------------------------------------------------------------------------------

static void forward_reference(const clv__row_ref *row, bool is_log) {
    double largest = -INFINITY, sum = 0;
    const int64_t end = row->D * row->step;
    for (int64_t at = 0; at < end; at += row->step) largest = fmax(largest, row->in[0][at]);
    for (int64_t at = 0; at < end; at += row->step) sum += exp(row->in[0][at] - largest);
    for (int64_t at = 0; at < end; at += row->step) {
        const double v = row->in[0][at] - largest;
        row->out[0][at] = is_log ? v - log(sum) : exp(v) / sum;
    }
}

static void softmax_reference(const clv__row_ref *row) {
    forward_reference(row, false);
}

static void log_softmax_reference(const clv__row_ref *row) {
    forward_reference(row, true);
}

static void softmax_backward_reference(const clv__row_ref *row) {
    const double *dy = row->in[0], *y = row->in[1];
    double sum = 0;
    for (int64_t at = 0; at < row->D * row->step; at += row->step) sum += dy[at] * y[at];
    for (int64_t at = 0; at < row->D * row->step; at += row->step) row->out[0][at] = y[at] * (dy[at] - sum);
}

static void log_softmax_backward_reference(const clv__row_ref *row) {
    const double *dy = row->in[0], *y = row->in[1];
    double sum = 0;
    for (int64_t at = 0; at < row->D * row->step; at += row->step) sum += dy[at];
    for (int64_t at = 0; at < row->D * row->step; at += row->step)
        row->out[0][at] = dy[at] - exp(y[at]) * sum;
}

// ---- kernels ----------------------------------------------------------------------------------------------

#define FORWARD                                                                                              \
    .params = "global float *restrict y, global const T_X *restrict x", .tensors = "o0 i0=T_X",              \
    CLV__ROW_LOG_SUM_EXP, .load = "a[k] = ROW_X(at);", .run = true
#define BACKWARD                                                                                             \
    .params = "global T_DX *restrict dx, global const float *restrict dy, global const float *restrict y",   \
    .tensors = "o0=T_DX i0 i1", .planes = 1, .join = "s0 += t0;", .load = "a[k] = dy[at]; b[k] = y[at];"
// NaN for rows of nothing but -infinity, as of rows with a NaN.
#define SOFTMAX .axis = true, .flops = 5
static const clv__row_op softmax = {
    .program = {FORWARD, .finish = "const float scale = s0 == -INFINITY ? NAN : 1.0f / s1;",
                .store = "ROW_Y(exp(a[k] - s0) * scale, at);"},
    .reference = softmax_reference,
    SOFTMAX};
static const clv__row_op log_softmax = {
    .program = {FORWARD, .finish = "const float log_sum = s0 == -INFINITY ? NAN : log(s1);",
                .store = "ROW_Y(a[k] - s0 - log_sum, at);"},
    .reference = log_softmax_reference,
    .kind = true,
    SOFTMAX};
static const clv__row_op softmax_backward = {
    .program = {BACKWARD, .gather = "EACH(s0 += a[k] * b[k];)",
                .store = "STORE(T_DX, b[k] * (a[k] - s0), dx + at);"},
    .reference = softmax_backward_reference,
    SOFTMAX};
static const clv__row_op log_softmax_backward = {
    .program = {BACKWARD, .gather = "EACH(s0 += a[k];)",
                .store = "STORE(T_DX, a[k] - exp(b[k]) * s0, dx + at);"},
    .reference = log_softmax_backward_reference,
    .kind = true,
    SOFTMAX};

/** Rows, or columns that lie side by side. */
static void vector(clv__launches *list, const clv__op_io *io) {
    const clv__row_walk w = clv__row_op_walk(io);
    const bool backward = clv__is_gradient(io), rows = w.inner == 1;
    const int64_t D = w.count, outer = w.inner ? w.rows / w.inner : 0, per = clv__rows_for(D),
                  items = rows ? clv__div_up(outer, per) : outer * clv__div_up(w.inner, 16);
    if (w.rows * D == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "softmax",
                                             rows       ? backward ? "softmax_rows_backward" : "softmax_rows"
                                             : backward ? "softmax_columns_backward"
                                                        : "softmax_columns");
    clv__arg_tensors(list, launch, io, backward ? "o0=T_DX i0 i1" : "o0 i0=T_X");
    if (rows)
        CLV__ARGS_I32(list, launch, outer, per, D, is_log(io));
    else
        CLV__ARGS_I32(list, launch, items, D, w.inner, is_log(io));
    clv__launch_over(list, launch, CLV__TASKS, items);
}

/** Rows, or neighbouring columns, long enough to fill vectors. */
static bool vector_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__row_walk w = clv__row_op_walk(io);
    const int64_t D = w.count, inner = w.inner;
    // Turns of loops: three passes, by sixteens; columns may take sixteen a vector to load and to store.
    int64_t turns = inner == 1 ? D / 16 * 3 + 64 : D * (inner % 16 ? 82 : 3);
    return clv__threads(device) && (inner == 1 ? D >= 16 : inner >= 8) && clv__loops_fit(device, turns);
}

static const clv__variant variants[] = {{"plain", .lower = clv__row_op_lower},
                                        {"vector", vector_supports, .lower = vector, .relative = 0.2},
                                        CLV__ROWS_GROUPS(clv__row_op_groups, clv__row_op_lower),
                                        {0}};

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

extern const clv__op clv__op_softmax, clv__op_log_softmax;
#define COMMON(row) .attrs_bytes = sizeof(softmax_attrs), CLV__ROW_OP_BY(&row, variants)
#define GRADIENT(id) CLV__GRADIENT_OF(id, "d0 o0 g0"), .half_out = 1, COMMON(id##_backward)
CLV__TRAIN_OP(softmax_backward) = {GRADIENT(softmax)};
CLV__TRAIN_OP(log_softmax_backward) = {GRADIENT(log_softmax)};

// The result is f32 in mixed precision, and written twice.
#define FORWARD_OP(id)                                                                                       \
    .name = #id, .inputs = CLV__INPUTS({"x", "f32"}), .outputs = CLV__OUTPUTS({"y", "like x"}),              \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, softmax_attrs, axis, "-1")}), .half_in = 1,           \
    .autocast = CLV__CAST_FLOAT, .infer = clv__row_op_infer, .samples = CLV__TRAINS(samples),                \
    .split = clv__row_op_split, CLV__GRADIENT(id), COMMON(id)
CLV__OP(softmax) = {FORWARD_OP(softmax)};
CLV__OP(log_softmax) = {FORWARD_OP(log_softmax)};
