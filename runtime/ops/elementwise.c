// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: the rows of elementwise.def made into descriptors, and what all of them share
// - the shape rule (broadcasting as in NumPy), the launches, the reference, the samples.
// An op can also be done to the results of another one, in the launch that makes them: epilogue.h.
#include "ops/elementwise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/collapse.h"
#include "ops/epilogue.h"
#include "ops/lower.h"
#include "ops/parts.h"
#include "ops/reduce/reduce.h"

// ---- the expressions as C: the reference ------------------------------------------------------------------

#define K(v) (v)
#define P0 p0
#define P1 p1
#define SELECT(c, a, b) ((c) ? (a) : (b))
#define BOOL(c) ((c) ? 1.0 : 0.0)
#define CAST(v) (v) // and then elementwise_reference stores it
#include "kernels_cl/common/elementwise_math.cl"

#define VARS_X const double x = in[0];
#define VARS_DY_X const double dy = in[0], x = in[1];
#define VARS_DY_Y const double dy = in[0], y = in[1];
#define VARS_AB const double a = in[0], b = in[1];
#define VARS_XW const double x = in[0], w = in[1];
#define VARS_XT const double x = in[0], t = in[1];
#define VARS_DY_X_T const double dy = in[0], x = in[1], t = in[2];
#define VARS_DY_Y_B const double dy = in[0], y = in[1], b = in[2];
#define VARS_CAB const double c = in[0], a = in[1], b = in[2];
#define VARS_XYG const double x = in[0], y = in[1], g = in[2];
#define EVAL(name, inputs, expression)                                                                       \
    static double name##_eval(const double *in, double p0, double p1) {                                      \
        VARS_##inputs(void) p0;                                                                              \
        (void)p1;                                                                                            \
        return expression;                                                                                   \
    }
#define UNARY(name, parameters, s0, s1, lo, hi, keeps, forward, gradient)                                    \
    EVAL(name, X, forward) EVAL(name##_backward, DY_##keeps, gradient)
#define EW(name, parameters, inputs, types, s0, s1, lo, hi, expression, grad) EVAL(name, inputs, expression)
#include "ops/elementwise.def"

#undef K
#undef P0
#undef P1
#undef SELECT
#undef BOOL

// ---- shape and type rule ----------------------------------------------------------------------------------

static const clv__ew_row *row_of(const clv__op_io *io) {
    return io->op->data;
}

static clv_status infer_types(const clv__ew_row *row, clv__op_io *io, clv_dtype *out, clv__error *error) {
    const clv__ew_attrs *attrs = io->attrs;
    const int first = row->types == CLV__EW_CHOOSE; // the input whose type the others follow
    const clv_dtype type = io->in[first].dtype;
    for (int i = first; i < row->n_in; i++) CLV_TRY(clv__want_dtype(io, i, row->names[i], type, error));
    switch (row->types) {
    case CLV__EW_COMPARE: *out = CLV_DTYPE_I32; break;
    case CLV__EW_CONVERT: *out = attrs->dtype; break;
    default: *out = type;
    }
    return CLV_OK;
}

/** The shape that both broadcast to, aligned at the end. */
static clv_status broadcast(clv_shape *shape, const clv__desc *in, clv__error *error) {
    const clv_shape before = *shape, *other = &in->shape;
    int rank = before.rank > other->rank ? before.rank : other->rank;
    shape->rank = rank;
    for (int d = 0; d < rank; d++) {
        int i = d - (rank - before.rank), j = d - (rank - other->rank);
        int64_t a = i >= 0 ? before.dims[i] : 1, b = j >= 0 ? other->dims[j] : 1;
        if (a != b && a != 1 && b != 1) {
            char first[128], second[128];
            CLV_FAIL(error, CLV_E_SHAPE,
                     "shapes %s and %s do not broadcast: %lld and %lld meet, and neither is 1",
                     clv_shape_text(&before, first, sizeof first),
                     clv_shape_text(other, second, sizeof second), (long long)a, (long long)b);
        }
        shape->dims[d] = a == 1 ? b : a;
    }
    return CLV_OK;
}

static clv_status elementwise_infer(clv__op_io *io, clv__error *error) {
    const clv__ew_row *row = row_of(io);
    clv_dtype dtype;
    CLV_TRY(infer_types(row, io, &dtype, error));
    clv_shape shape = {0};
    for (int i = 0; i < row->n_in; i++) CLV_TRY(broadcast(&shape, &io->in[i], error));
    return clv__one_out(io, (clv__desc){dtype, shape});
}

/** The op's own inputs; those of an epilogue come behind them. */
static int inputs_of(const clv__op_io *io) {
    return row_of(io)->n_in;
}

/** The walk over output and inputs together; tensor 0 is the output. */
static clv__walk walk_of(const clv__op_io *io) {
    const clv_shape *shape = &io->out[0].shape;
    clv__walk walk = {.rank = shape->rank, .n = inputs_of(io) + 1};
    memcpy(walk.dims, shape->dims, sizeof walk.dims);
    clv__strides_of(shape, walk.strides[0]);
    for (int i = 0; i < inputs_of(io); i++)
        clv__strides_broadcast(&io->in[i].shape, shape, walk.strides[i + 1]);
    clv__walk_collapse(&walk);
    return walk;
}

// ---- launches ---------------------------------------------------------------------------------------------

/** What makes the kernels of elementwise.cl compute this op, the body and its types; and the tensors. */
static clv__launch *begin(clv__launches *list, const clv__op_io *io, clv__launch *launch) {
    if (!launch) return NULL;
    clv__arg_out(list, launch, 0);
    const clv__ew_row *row = row_of(io);
    clv__launch_define(list, launch, "EW_N", "%d", row->n_in);
    for (int i = 0; i < row->n_in; i++) {
        char name[] = "EW_T0", input[] = "EW_X0";
        name[4] = input[4] = (char)('0' + i);
        clv__launch_define(list, launch, name, "%s", clv__storage(io->in[i].dtype));
        clv__launch_define(list, launch, input, "%s", row->names[i]);
        clv__arg_in(list, launch, i);
    }
    clv__launch_define(list, launch, "EW_TO", "%s", clv__storage(io->out[0].dtype));
    clv__launch_define(list, launch, "EW_EXPR", "%s", row->expression);
    return launch;
}

static void end(clv__launches *list, const clv__op_io *io, clv__launch *launch) {
    const clv__ew_attrs *attrs = io->attrs;
    CLV__ARGS_F32(list, launch, attrs->p0, attrs->p1);
    clv__arg_epilogue(list, launch, io);
}

/** A device may have no 64-bit integers. */
static bool plain_supports(const clv_device_info *device, const clv__op_io *io) {
    return !device->no_int64 || (io->in[0].dtype != CLV_DTYPE_I64 && io->out[0].dtype != CLV_DTYPE_I64);
}

/** Any walk: an element a work-item, or four of them. */
static void lower_walk(clv__launches *list, const clv__op_io *io, const char *entry, bool fours) {
    const int64_t n = clv__numel(&io->out[0]);
    const clv__walk walk = walk_of(io);
    clv__launch *launch =
        begin(list, io,
              clv__launch_items(list, "elementwise", entry, CLV__ELEMENTS, fours ? clv__div_up(n, 4) : n));
    clv__launch_define(list, launch, "EW_RANK", "%d", walk.rank);
    if (fours) clv__launch_define(list, launch, "EW_VW", "%d", 4);
    for (int i = 0; fours && i < inputs_of(io); i++) {
        const char name[] = {'E', 'W', '_', 'F', (char)('0' + i), 0};
        if (clv_shape_equal(&io->in[i].shape, &io->out[0].shape))
            clv__launch_define(list, launch, name, "%d", 1);
    }
    clv__arg_i32(list, launch, n);
    for (int d = walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, walk.dims[d]);
    for (int i = 0; i < inputs_of(io); i++) {
        for (int d = walk.rank - 1; d >= 0; d--) clv__arg_i32(list, launch, walk.strides[i + 1][d]);
    }
    end(list, io, launch);
}

static void plain_lower(clv__launches *list, const clv__op_io *io) {
    lower_walk(list, io, "elementwise_plain", false);
}

/** Where rows are no multiple of four elements. */
static bool fours_supports(const clv_device_info *device, const clv__op_io *io) {
    return plain_supports(device, io) && !clv__threads(device);
}

static void fours_lower(clv__launches *list, const clv__op_io *io) {
    lower_walk(list, io, "elementwise_fours", true);
}

/**
 * Rows: the innermost dimension is walked by vectors, and there are at most two others. On a GPU neighbouring items do neighbouring
 * vectors of four, each at a multiple of four elements: all is one row, or rows are such a multiple.
 */
static bool rows_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__walk walk = walk_of(io);
    const bool aligned = walk.rank == 1 || walk.dims[walk.rank - 1] % clv__vector_width(device) == 0;
    if (!plain_supports(device, io) || walk.rank > 3 || (!aligned && !clv__threads(device))) return false;
    for (int i = 0; i <= inputs_of(io); i++) {
        if (walk.strides[i][walk.rank - 1] > 1) return false;
    }
    return true;
}

static double rows_rank(const clv_device_info *device, const clv__op_io *io) {
    clv__walk walk = walk_of(io);
    bool vectors = walk.dims[walk.rank - 1] >= clv__vector_width(device);
    return clv__threads(device) ? (vectors ? 0.2 : 1.1) : 0.5;
}

static void rows_lower(clv__launches *list, const clv__op_io *io) {
    // Elements of a work-item on a CPU: 32 KiB an input, a few microseconds. FEW where its loops end after
    // 65535 turns (loop_turns), for those of functions count too: fmod turns once for each bit of a quotient,
    // which has up to 277, and remainder calls it three times.
    enum { ITEM = 8192, FEW = 64 };
    const int64_t n = clv__numel(&io->out[0]);
    const clv__walk walk = walk_of(io);
    if (n == 0) return;
    int width = clv__vector_width(list->device), inner = walk.rank - 1;
    int64_t length = walk.dims[inner], rows = n / length, d1 = walk.rank == 3 ? walk.dims[1] : rows;
    int64_t chunk = !clv__threads(list->device) ? width : list->device->loop_turns ? FEW : ITEM;
    int64_t chunks = clv__div_up(length, chunk);
    int64_t rows_per_item = chunks > 1 ? 1 : clv__div_up(chunk, length);
    clv__launch *launch = begin(list, io,
                                clv__launch_items(list, "elementwise", "elementwise_rows", CLV__TASKS,
                                                  clv__div_up(rows, rows_per_item) * chunks));
    clv__launch_define(list, launch, "EW_VW", "%d", width);
    if (!clv__threads(list->device)) clv__launch_define(list, launch, "EW_ACCESS", "A");
    for (int i = 0; i < inputs_of(io); i++) {
        char name[] = "EW_U0";
        name[4] = (char)('0' + i);
        clv__launch_define(list, launch, name, "%d", walk.strides[i + 1][inner] == 0);
    }
    CLV__ARGS_I32(list, launch, rows, rows_per_item, d1, length, chunk, chunks);
    for (int i = 0; i < inputs_of(io); i++) { // strides of rows / d1 and of rows % d1
        CLV__ARGS_I32(list, launch, walk.rank == 3 ? walk.strides[i + 1][0] : 0,
                      walk.rank >= 2 ? walk.strides[i + 1][walk.rank - 2] : 0);
    }
    end(list, io, launch);
}

static const clv__variant elementwise_variants[] = {
    {.name = "plain", .supports = plain_supports, .lower = plain_lower},
    {.name = "rows", .supports = rows_supports, .rank = rows_rank, .lower = rows_lower},
    {.name = "fours", .supports = fours_supports, .lower = fours_lower, .relative = 0.7},
    {0},
};

// ---- reference and samples --------------------------------------------------------------------------------

static void elementwise_reference(const clv__ref *ref) {
    const clv__op_io *io = ref->io;
    const clv__ew_row *row = row_of(io);
    const clv__ew_attrs *attrs = io->attrs;
    clv__walk walk = walk_of(io);
    int64_t n = clv__numel(&io->out[0]);
    for (int64_t i = 0; i < n; i++) {
        double in[CLV__EW_INPUTS];
        for (int k = 0; k < io->n_in; k++) in[k] = ref->in[k][clv__walk_at(&walk, k + 1, i)];
        const double value = row->eval(in, attrs->p0, attrs->p1);
        const bool nearest = row->types == CLV__EW_CONVERT || isnan(value); // which of integers is 0
        ref->out[0][i] = nearest ? clv__dtype_nearest(io->out[0].dtype, value) : value;
    }
}

/** Shapes of samples with one input, and of the first of several. A quick one is small and named so. */
typedef struct shape_case {
    const char *label;
    bool quick;
    clv_shape in[CLV__EW_INPUTS];
} shape_case;

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const shape_case one_input[] = {
    {"17 elements", true, {CLV__DIMS(17)}},
    {"scalar", true, {{0}}},
    {"4x33", true, {CLV__DIMS(4, 33)}},
    {"empty", true, {CLV__DIMS(3, 0)}},
    {"1 element", false, {CLV__DIMS(1)}},
    {"2 elements", false, {CLV__DIMS(2)}},
    {"31 elements", false, {CLV__DIMS(31)}},
    {"32 elements", false, {CLV__DIMS(32)}},
    {"rank 6", false, {CLV__DIMS(2, 1, 3, 2, 1, 5)}},
    {"two chunks and one", false, {CLV__DIMS(16385)}},
};

static const shape_case several_inputs[] = {
    {"same shape, 17", true, {CLV__DIMS(17), CLV__DIMS(17), CLV__DIMS(17)}},
    {"scalars", true, {{0}, {0}, {0}}},
    {"channels: [2,3,4,5] and [3,1,1]",
     true,
     {CLV__DIMS(2, 3, 4, 5), CLV__DIMS(3, 1, 1), CLV__DIMS(2, 3, 4, 5)}},
    {"empty", true, {CLV__DIMS(3, 0), CLV__DIMS(1), CLV__DIMS(3, 0)}},
    {"bias: [9,33] and [33]", false, {CLV__DIMS(9, 33), CLV__DIMS(33), CLV__DIMS(33)}},
    {"rows: [9,33] and [9,1]", false, {CLV__DIMS(9, 33), CLV__DIMS(9, 1), CLV__DIMS(9, 33)}},
    {"with a scalar", false, {CLV__DIMS(5, 7), {0}, CLV__DIMS(1)}},
    {"a scalar with", false, {CLV__DIMS(1, 1), CLV__DIMS(3, 37), CLV__DIMS(37)}},
    {"outer product", false, {CLV__DIMS(3, 1), CLV__DIMS(1, 35), CLV__DIMS(3, 35)}},
    {"both repeat, rank 5", false, {CLV__DIMS(2, 1, 3, 1, 5), CLV__DIMS(4, 1, 7, 1), CLV__DIMS(5)}},
    {"rank 6, alternating", false, {CLV__DIMS(2, 1, 2, 1, 2, 1), CLV__DIMS(1, 3, 1, 3, 1, 3), CLV__DIMS(1)}},
    {"channels, long rows", false, {CLV__DIMS(2, 3, 9, 31), CLV__DIMS(1, 3, 1, 1), CLV__DIMS(2, 3, 9, 31)}},
    {"two chunks and one", false, {CLV__DIMS(16385), CLV__DIMS(16385), CLV__DIMS(16385)}},
    {"long rows, repeated", false, {CLV__DIMS(2, 8200), CLV__DIMS(2, 1), CLV__DIMS(8200)}},
};

/** The k-th dtype but f16 and bf16, f32 and i32 first; NONE: there is none. */
static clv_dtype nth_dtype(int k) {
    clv_dtype dtype = CLV_DTYPE_F32;
    for (; clv_dtype_bytes(dtype) && (clv__is_half(dtype) || k); dtype++) k -= !clv__is_half(dtype);
    return clv_dtype_bytes(dtype) ? dtype : CLV_DTYPE_NONE;
}

/** The k-th types that a row's samples are in: of its inputs, and of a conversion's result. */
static bool sample_types(const clv__ew_row *row, int k, clv_dtype *from, clv_dtype *to) {
    *to = CLV_DTYPE_NONE;
    if (row->types == CLV__EW_INTEGER) {
        static const clv_dtype integers[] = {CLV_DTYPE_I32, CLV_DTYPE_I8, CLV_DTYPE_U8, CLV_DTYPE_BOOL};
        *from = k < (int)COUNT(integers) ? integers[k] : CLV_DTYPE_NONE;
        return *from != CLV_DTYPE_NONE;
    }
    if (row->types != CLV__EW_CONVERT) {
        *from = nth_dtype(k);
        return *from && (k < 1 || row->types != CLV__EW_FLOAT) && (k < 2 || row->types == CLV__EW_COMPARE);
    }
    for (int a = 0; (*from = nth_dtype(a)) != CLV_DTYPE_NONE; a++)
        for (int b = 0; (*to = nth_dtype(b)) != CLV_DTYPE_NONE; b++)
            if (a != b && k-- == 0) return true;
    return false;
}

/** How many of the shapes there are in the k-th types: in the first all, in all others one or a few. */
static int sample_shapes(const clv__ew_row *row, int k) {
    if (k == 0) return (int)(row->n_in == 1 ? COUNT(one_input) : COUNT(several_inputs));
    return k > 1 || row->types == CLV__EW_CONVERT ? 1 : 6;
}

/** Values of an input of `type`, within what it holds. Comparisons want ties, and casts to bool zeros. */
static clv__fill sample_fill(const clv__ew_row *row, clv_dtype type, clv_dtype to) {
    const bool is_float = clv__is_float(type), truth = to == CLV_DTYPE_BOOL;
    if (is_float && row->types != CLV__EW_COMPARE && !truth)
        return (clv__fill){CLV__FILL_DISTINCT, row->lo, row->hi};
    const clv__dtype_row *dtype = clv__dtype(type);
    const double lo = truth ? -2 : floor(row->lo), hi = truth ? 2 : ceil(row->hi);
    return (clv__fill){CLV__FILL_INTEGER, is_float ? lo : fmax(lo, dtype->least),
                       is_float ? hi : fmin(hi, dtype->most)};
}

static void zero_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx);
static void focal_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx);
static void remainder_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx);

/** The cases of a row's op: all shapes in one type, then the first few in each other. */
static bool row_sample(const clv__op *op, int i, clv__sample *sample) {
    const clv__ew_row *row = op->data;
    int k = 0;
    for (; i >= sample_shapes(row, k) && k < 1000; k++) i -= sample_shapes(row, k);
    clv__ew_attrs attrs = {row->sample_p0, row->sample_p1, CLV_DTYPE_NONE};
    clv_dtype type;
    if (!sample_types(row, k, &type, &attrs.dtype)) return false;
    const bool integer = !clv__is_float(type);
    const shape_case *shapes = row->n_in == 1 ? &one_input[i] : &several_inputs[i];

    snprintf(sample->label, sizeof sample->label,
             attrs.dtype ? "%s, %s to %s"
             : integer   ? "%s, %s"
                         : "%s",
             shapes->label, clv_dtype_name(type), clv_dtype_name(attrs.dtype));
    memcpy(sample->attrs, &attrs, sizeof attrs);
    sample->n_in = row->n_in;
    sample->quick = shapes->quick && k == 0;
    // Differences over a step are none, and targets have no gradient.
    sample->no_gradient =
        integer || op->grad == zero_grad || op->grad == focal_grad || op->grad == remainder_grad;
    for (int in = 0; in < row->n_in; in++) {
        const bool condition = row->types == CLV__EW_CHOOSE && in == 0;
        sample->in[in] = (clv__desc){!condition ? type
                                     : integer  ? CLV_DTYPE_BOOL
                                                : CLV_DTYPE_I32,
                                     shapes->in[in]};
        sample->fill[in] =
            condition ? (clv__fill){CLV__FILL_INTEGER, 0, 1} : sample_fill(row, type, attrs.dtype);
    }
    return true;
}

// ---- in parts ---------------------------------------------------------------------------------------------

/** Along any dimension of the result; what repeats along it is read whole. */
static bool elementwise_split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *shape = &io->out[0].shape;
    if (i >= shape->rank) return false;
    out->length = shape->dims[i];
    out->out[0] = (int8_t)i;
    for (int k = 0; k < inputs_of(io); k++) {
        const int d = i - (shape->rank - io->in[k].shape.rank);
        if (d >= 0 && io->in[k].shape.dims[d] == out->length) out->in[k] = (int8_t)d;
    }
    return true;
}

extern const clv__op clv__op_add, clv__op_mul_scalar;

const clv__op *clv__parts_add(void *attrs) {
    memset(attrs, 0, sizeof(clv__ew_attrs));
    return &clv__op_add;
}

const clv__op *clv__parts_scale(float factor, void *attrs) {
    memcpy(attrs, &(clv__ew_attrs){.p0 = factor}, sizeof(clv__ew_attrs));
    return &clv__op_mul_scalar;
}

// ---- descriptors ------------------------------------------------------------------------------------------

clv_tensor *clv__elementwise(const clv__op *op, clv_tensor *const *inputs, float p0, float p1) {
    const clv__ew_row *row = op->data;
    const clv__ew_attrs attrs = {p0, p1, CLV_DTYPE_NONE};
    return clv__node_add(op, &attrs, inputs, row->n_in, 0);
}

static clv_tensor *sum_like(clv_tensor *x, const clv_tensor *like) {
    return clv_sum_to(x, clv_tensor_shape(like));
}

static void add_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    for (int i = 0; i < 2; i++) {
        if (clv__wants_grad(node, i)) dx[i] = sum_like(dy[0], clv__node_in(node, i));
    }
}

static void sub_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    if (clv__wants_grad(node, 0)) dx[0] = sum_like(dy[0], clv__node_in(node, 0));
    if (clv__wants_grad(node, 1)) dx[1] = clv_neg(sum_like(dy[0], clv__node_in(node, 1)));
}

static void mul_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    for (int i = 0; i < 2; i++) {
        if (clv__wants_grad(node, i))
            dx[i] = sum_like(clv_mul(dy[0], clv__node_in(node, 1 - i)), clv__node_in(node, i));
    }
}

extern const clv__op clv__op_div_backward;

static void div_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *a = clv__node_in(node, 0), *b = clv__node_in(node, 1), *y = clv__node_out(node, 0);
    if (clv__wants_grad(node, 0)) dx[0] = sum_like(clv_div(dy[0], b), a);
    if (clv__wants_grad(node, 1))
        dx[1] = sum_like(clv__elementwise(&clv__op_div_backward, (clv_tensor *[]){dy[0], y, b}, 0, 0), b);
}

/** Of b only where something wants it; where a is 0, y does not depend on b, nor y on a where b is 0. */
static void pow_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *a = clv__node_in(node, 0), *b = clv__node_in(node, 1), *y = clv__node_out(node, 0);
    clv_tensor *zero = clv_full(clv__tensor_graph(a), CLV_DTYPE_F32, (clv_shape){0}, 0);
    if (clv__wants_grad(node, 0)) {
        clv_tensor *slope = clv_mul(b, clv_pow(a, clv_add_scalar(b, -1)));
        dx[0] = sum_like(clv_mul(dy[0], clv_where(clv_eq(b, zero), zero, slope)), a);
    }
    if (clv__wants_grad(node, 1))
        dx[1] = sum_like(clv_mul(dy[0], clv_where(clv_eq(a, zero), zero, clv_mul(y, clv_log(a)))), b);
}

/** Of b: how often it went into a, which rounding makes whole again. */
static void remainder_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *a = clv__node_in(node, 0), *b = clv__node_in(node, 1), *y = clv__node_out(node, 0);
    if (clv__wants_grad(node, 0)) dx[0] = sum_like(dy[0], a);
    if (clv__wants_grad(node, 1))
        dx[1] = clv_neg(sum_like(clv_mul(dy[0], clv_round(clv_div(clv_sub(a, y), b))), b));
}

static void atan2_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *a = clv__node_in(node, 0), *b = clv__node_in(node, 1);
    clv_tensor *share = clv_div(dy[0], clv_add(clv_square(a), clv_square(b)));
    if (clv__wants_grad(node, 0)) dx[0] = sum_like(clv_mul(share, b), a);
    if (clv__wants_grad(node, 1)) dx[1] = clv_neg(sum_like(clv_mul(share, a), b));
}

/** What is not positive has the weight for its slope, and is the weight's. */
static void prelu_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *x = clv__node_in(node, 0), *weight = clv__node_in(node, 1);
    clv_tensor *zero = clv_full(clv__tensor_graph(x), CLV_DTYPE_F32, (clv_shape){0}, 0);
    if (clv__wants_grad(node, 0))
        dx[0] = sum_like(clv_where(clv_gt(x, zero), dy[0], clv_mul(dy[0], weight)), x);
    if (clv__wants_grad(node, 1))
        dx[1] = sum_like(clv_mul(dy[0], clv_where(clv_gt(x, zero), zero, x)), weight);
}

/** Of steps: 0 wherever there is a slope, and at the steps too, as PyTorch has it. */
static void zero_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    (void)dy;
    const clv_tensor *x = clv__node_in(node, 0);
    dx[0] = clv_full(clv__tensor_graph(x), CLV_DTYPE_F32, clv_tensor_shape(x), 0);
}

static void neg_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    (void)node;
    dx[0] = clv_neg(dy[0]);
}

/** Of what adds a constant; and of casts, as gradients are stored as their tensors: that is the cast back. */
static void same_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    (void)node;
    dx[0] = dy[0];
}

static void mul_scalar_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__ew_attrs *attrs = clv__node_attrs(node);
    dx[0] = clv_mul_scalar(dy[0], attrs->p0);
}

static void where_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *c = clv__node_in(node, 0);
    clv_tensor *zero = clv_full(clv__tensor_graph(c), CLV_DTYPE_F32, (clv_shape){0}, 0);
    if (clv__wants_grad(node, 1)) dx[1] = sum_like(clv_where(c, dy[0], zero), clv__node_in(node, 1));
    if (clv__wants_grad(node, 2)) dx[2] = sum_like(clv_where(c, zero, dy[0]), clv__node_in(node, 2));
}

extern const clv__op clv__op_huber_backward, clv__op_focal_backward;

static void huber_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__ew_attrs *attrs = clv__node_attrs(node);
    clv_tensor *in[] = {dy[0], clv__node_in(node, 0), clv__node_in(node, 1)};
    clv_tensor *both = clv__elementwise(&clv__op_huber_backward, in, attrs->p0, 0);
    if (clv__wants_grad(node, 0)) dx[0] = sum_like(both, in[1]);
    if (clv__wants_grad(node, 1)) dx[1] = clv_neg(sum_like(both, in[2]));
}

static void kl_term_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *x = clv__node_in(node, 0), *t = clv__node_in(node, 1);
    if (clv__wants_grad(node, 0)) dx[0] = sum_like(clv_neg(clv_mul(dy[0], t)), x);
    if (clv__wants_grad(node, 1))
        dx[1] = sum_like(clv_mul(dy[0], clv_sub(clv_add_scalar(clv_log(t), 1), x)), t);
}

/** Of x alone: targets are what is so. */
static void focal_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__ew_attrs *attrs = clv__node_attrs(node);
    clv_tensor *in[] = {dy[0], clv__node_in(node, 0), clv__node_in(node, 1)};
    if (clv__wants_grad(node, 0))
        dx[0] = sum_like(clv__elementwise(&clv__op_focal_backward, in, attrs->p0, attrs->p1), in[1]);
}

#define NAMES_X {"x"}, 1
#define NAMES_DY_X {"dy", "x"}, 2
#define NAMES_DY_Y {"dy", "y"}, 2
#define NAMES_AB {"a", "b"}, 2
#define NAMES_XW {"x", "w"}, 2
#define NAMES_XT {"x", "t"}, 2
#define NAMES_DY_X_T {"dy", "x", "t"}, 3
#define NAMES_DY_Y_B {"dy", "y", "b"}, 3
#define NAMES_CAB {"c", "a", "b"}, 3
#define NAMES_XYG {"x", "y", "g"}, 3

// Signatures: the inputs by their letters and type; attributes by the row's word.
#define TYPE_FLOAT "f32"
#define TYPE_SAME "f32|i32"
#define TYPE_INTEGER "i32|i8|u8|bool"
#define TYPE_COMPARE "any"
#define TYPE_CHOOSE TYPE_SAME
#define TYPE_CONVERT "any"
#define INPUTS_X(type) CLV__INPUTS({"x", type})
#define INPUTS_DY_X(type) CLV__INPUTS({"dy", type}, {"x", type})
#define INPUTS_DY_Y(type) CLV__INPUTS({"dy", type}, {"y", type})
#define INPUTS_AB(type) CLV__INPUTS({"a", type}, {"b", type})
#define INPUTS_XW(type) CLV__INPUTS({"x", type}, {"weight", type})
#define INPUTS_XT(type) CLV__INPUTS({"x", type}, {"target", type})
#define INPUTS_DY_X_T(type) CLV__INPUTS({"dy", type}, {"x", type}, {"target", type})
#define INPUTS_DY_Y_B(type) CLV__INPUTS({"dy", type}, {"y", type}, {"b", type})
#define INPUTS_CAB(type) CLV__INPUTS({"condition", "int|bool"}, {"a", type}, {"b", type})
#define INPUTS_XYG(type) CLV__INPUTS({"x", type}, {"y", type}, {"g", type})
#define OUTPUT_FLOAT "f32"
#define OUTPUT_SAME "any"
#define OUTPUT_INTEGER "any"
#define OUTPUT_COMPARE "i32"
#define OUTPUT_CHOOSE "any"
#define OUTPUT_CONVERT "any"

#define PARAMETER(text, member, default_text)                                                                \
    {                                                                                                        \
        .name = text, .kind = CLV_ATTRIBUTE_NUMBER, .fallback = default_text,                                \
        .at = offsetof(clv__ew_attrs, member), .bytes = sizeof(float), CLV__NOT_NAN                          \
    }
#define PARAMETERS_NONE
#define PARAMETERS_SLOPE .attributes = CLV__ATTRIBUTES(PARAMETER("negative_slope", p0, "0.01")),
#define PARAMETERS_ALPHA .attributes = CLV__ATTRIBUTES(PARAMETER("alpha", p0, "1")),
#define PARAMETERS_MIN_MAX                                                                                   \
    .attributes = CLV__ATTRIBUTES(PARAMETER("min", p0, "-inf"), PARAMETER("max", p1, "inf")),
#define PARAMETERS_DELTA .attributes = CLV__ATTRIBUTES(PARAMETER("delta", p0, "1")),
#define PARAMETERS_FOCUS                                                                                     \
    .attributes = CLV__ATTRIBUTES(PARAMETER("alpha", p0, "0.25"), PARAMETER("gamma", p1, "2")),
#define PARAMETERS_OF_HUBER PARAMETERS_DELTA.call_of = clv__loss_call_of,
#define PARAMETERS_OF_KL .call_of = clv__loss_call_of,
#define PARAMETERS_OF_FOCAL PARAMETERS_FOCUS.call_of = clv__loss_call_of,
#define PARAMETERS_VALUE .attributes = CLV__ATTRIBUTES(PARAMETER("value", p0, NULL)),
#define PARAMETERS_EXPONENT                                                                                  \
    .attributes = CLV__ATTRIBUTES(PARAMETER("exponent", p0, NULL)), .build = build_pow_scalar,
#define PARAMETERS_WEIGHT .build = build_prelu,
#define PARAMETERS_OF_CAST .call_of = call_of_cast,
#define PARAMETERS_DTYPE                                                                                     \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(DTYPE, cast_attrs, dtype, NULL)}),                         \
    .attributes_of_call = true, .build = build_cast, PARAMETERS_OF_CAST

typedef struct cast_attrs {
    clv_dtype dtype;
} cast_attrs;

extern const clv__op clv__op_cast, clv__op_convert, clv__op_prelu, clv__op_pow_scalar;

static clv_tensor *build_cast(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const clv_dtype dtype = ((const cast_attrs *)call->attrs)->dtype;
    if (x->desc.dtype == dtype) return x;
    if (clv_dtype_bytes(dtype) == 0)
        return clv__graph_fail(call->graph, CLV_E_DTYPE, "cast '%s': to %s is not possible", x->name,
                               clv_dtype_name(dtype));
    const bool floats = clv__is_float(dtype) && clv__is_float(x->desc.dtype);
    const clv__ew_attrs attrs = {.dtype = clv__is_float(dtype) ? CLV_DTYPE_F32 : dtype};
    clv_tensor *y = clv__node_add(floats ? &clv__op_cast : &clv__op_convert, &attrs, &x, 1, 0);
    return y ? clv__stored_as(y, dtype, (size_t)y->node->id) : NULL; // in two bytes by the same launch
}

static const clv__op *call_of_cast(const clv__node *node, void *attrs) {
    *(cast_attrs *)attrs = (cast_attrs){clv__node_io(node)->out[0].dtype};
    return &clv__op_cast;
}

static clv_tensor *build_prelu(const clv__call *call) {
    const int rank = clv_tensor_shape(call->in[0]).rank;
    clv_tensor *in[] = {call->in[0], call->in[1]};
    clv_shape shape = clv_tensor_shape(in[1]);
    if (shape.rank == 1 && rank > 2) { // of each channel
        for (; shape.rank < rank - 1; shape.rank++) shape.dims[shape.rank] = 1;
        in[1] = clv_reshape(in[1], shape);
    }
    return clv__elementwise(&clv__op_prelu, in, 0, 0);
}

/** Squares and roots are exact to the last bit or nearly, and several times faster than pow. */
static clv_tensor *build_pow_scalar(const clv__call *call) {
    const float exponent = ((const clv__ew_attrs *)call->attrs)->p0;
    if (exponent == 2) return clv_square(call->in[0]);
    if (exponent == 0.5f) return clv_sqrt(call->in[0]);
    return clv__elementwise(&clv__op_pow_scalar, call->in, exponent, 0);
}

// What a gradient reads: the x that it is of, or the y that was made.
#define TAKES_X "d0 i0 g0"
#define TAKES_Y "d0 o0 g0"

#define DESCRIPTOR(id, parameters, letters, kind, cast, ...)                                                 \
    CLV__OP(id) = {.name = #id,                                                                              \
                   .inputs = INPUTS_##letters(TYPE_##kind),                                                  \
                   .outputs = CLV__OUTPUTS({"y", OUTPUT_##kind}),                                            \
                   PARAMETERS_##parameters.attrs_bytes = CLV__EW_##kind == CLV__EW_CONVERT                   \
                                                             ? sizeof(clv__ew_attrs)                         \
                                                             : offsetof(clv__ew_attrs, dtype),               \
                   .data = &id##_row,                                                                        \
                   .elementwise = true,                                                                      \
                   .epilogue = true,                                                                         \
                   .inplace = 7,                                                                             \
                   .half_in = 7,                                                                             \
                   .half_out = 1,                                                                            \
                   .autocast = cast,                                                                         \
                   .infer = elementwise_infer,                                                               \
                   .split = elementwise_split,                                                               \
                   .variants = elementwise_variants,                                                         \
                   .reference = elementwise_reference,                                                       \
                   .sample = CLV__TRAINS(row_sample),                                                        \
                   __VA_ARGS__};
#define ROW(id, inputs, kind, s0, s1, from, to, text)                                                        \
    extern const clv__op clv__op_##id;                                                                       \
    static const clv__ew_row id##_row = {text, NAMES_##inputs, CLV__EW_##kind, id##_eval, s0, s1, from, to};
#define EW(id, parameters, inputs, types, s0, s1, lo, hi, expression, grad_function)                         \
    ROW(id, inputs, types, s0, s1, lo, hi, #expression)                                                      \
    DESCRIPTOR(id, parameters, inputs, types, CLV__CAST_FOLLOW, .grad = CLV__TRAINS(grad_function))
// Not by EW: an expression that is handed on is no longer what it says.
#define INNER_EW(id, parameters, inputs, types, s0, s1, lo, hi, expression, grad_function)                   \
    ROW(id, inputs, types, s0, s1, lo, hi, #expression)                                                      \
    DESCRIPTOR(id, parameters, inputs, types, CLV__CAST_FOLLOW, .grad = CLV__TRAINS(grad_function))
#define UNARY_CAST(id, cast, parameters, s0, s1, lo, hi, keeps, forward, gradient)                           \
    ROW(id##_backward, DY_##keeps, FLOAT, s0, s1, lo, hi, #gradient)                                         \
    ROW(id, X, FLOAT, s0, s1, lo, hi, #forward)                                                              \
    DESCRIPTOR(id##_backward, NONE, DY_##keeps, FLOAT, CLV__CAST_FOLLOW, .gradient_of = &clv__op_##id,       \
               .takes = TAKES_##keeps)                                                                       \
    DESCRIPTOR(id, parameters, X, FLOAT, cast, CLV__GRADIENT(id))
#define UNARY(id, ...) UNARY_CAST(id, CLV__CAST_FOLLOW, __VA_ARGS__)
#define UNARY_F32(id, ...) UNARY_CAST(id, CLV__CAST_FLOAT, __VA_ARGS__)
#include "ops/elementwise.def"

bool clv__elementwise_adds(const clv__op_io *io) {
    if (io->op != &clv__op_add || io->out[0].dtype != CLV_DTYPE_F32) return false;
    for (int i = 0; i < io->n_in; i++) {
        if (io->in[i].dtype != CLV_DTYPE_F32 || !clv_shape_equal(&io->in[i].shape, &io->out[0].shape))
            return false;
    }
    return true;
}

clv_tensor *clv__max_backward(clv_tensor *x, clv_tensor *y, clv_tensor *g) {
    return clv__elementwise(&clv__op_max_backward, (clv_tensor *[]){x, y, g}, 0, 0);
}
