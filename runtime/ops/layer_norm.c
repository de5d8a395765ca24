// SPDX-License-Identifier: Apache-2.0
// Layer normalisation over the last dimension. Source: Ba, Kiros, Hinton 2016, arXiv:1607.06450, section 3;
// torch.nn.LayerNorm.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "ops/long_axis.h"
#include "ops/lower.h"

typedef struct layer_attrs {
    float eps;
} layer_attrs;

enum { X, WEIGHT, BIAS };                     // inputs of layer_norm
enum { Y, MEAN, RSTD };                       // its outputs
enum { B_DY, B_X, B_WEIGHT, B_MEAN, B_RSTD }; // inputs of layer_norm_backward
enum { B_DX, B_DWEIGHT, B_DBIAS };            // its outputs
enum { BLOCK = 128 };                         // rows whose sums one work-item makes

/** x as rows of D. */
typedef struct layer_sizes {
    int64_t rows, D;
} layer_sizes;

static layer_sizes sizes_of(const clv_shape *x) {
    return (layer_sizes){clv__dims_product(x, 0, x->rank - 1), x->dims[x->rank - 1]};
}

// ---- shape rule -----------------------------------------------------------------------------------------------------

static clv_status want_x(const clv__op_io *io, int i, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, i, "x", CLV_DTYPE_F32, error));
    if (io->in[i].shape.rank < 1) CLV_FAIL(error, CLV_E_SHAPE, "x has no dimension to normalise");
    return CLV_OK;
}

/** weight and bias: [D] if there. */
static clv_status want_features(const clv__op_io *io, int i, const char *what, int64_t D, clv__error *error) {
    if (!clv__has_in(io, i)) return CLV_OK;
    CLV_TRY(clv__want_dtype(io, i, what, CLV_DTYPE_F32, error));
    if (io->in[i].shape.rank != 1 || io->in[i].shape.dims[0] != D)
        CLV_FAIL(error, CLV_E_SHAPE, "%s must be [%lld], the last dimension of x", what, (long long)D);
    return CLV_OK;
}

static clv_shape rows_shape(const clv_shape *x) {
    return clv_shape_make(x->rank - 1, x->dims);
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const layer_attrs *a = io->attrs;
    CLV_TRY(want_x(io, X, error));
    int64_t D = sizes_of(&io->in[X].shape).D;
    CLV_TRY(want_features(io, WEIGHT, "weight", D, error));
    CLV_TRY(want_features(io, BIAS, "bias", D, error));
    if (!(a->eps > 0)) CLV_FAIL(error, CLV_E_VALUE, "eps must be above 0, it is %g", (double)a->eps);
    io->n_out = 3;
    io->out[Y] = io->in[X];
    io->out[MEAN] = io->out[RSTD] = clv__f32(rows_shape(&io->in[X].shape));
    return CLV_OK;
}

static clv_status backward_infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, B_DY, "dy", CLV_DTYPE_F32, error));
    CLV_TRY(want_x(io, B_X, error));
    if (!clv_shape_equal(&io->in[B_DY].shape, &io->in[B_X].shape))
        CLV_FAIL(error, CLV_E_SHAPE, "dy and x differ in shape");
    int64_t D = sizes_of(&io->in[B_X].shape).D;
    clv_shape rows = rows_shape(&io->in[B_X].shape);
    CLV_TRY(want_features(io, B_WEIGHT, "weight", D, error));
    for (int i = B_MEAN; i <= B_RSTD; i++) {
        const char *what = i == B_MEAN ? "mean" : "rstd";
        CLV_TRY(clv__want_dtype(io, i, what, CLV_DTYPE_F32, error));
        if (!clv_shape_equal(&io->in[i].shape, &rows))
            CLV_FAIL(error, CLV_E_SHAPE, "%s must have one for each row", what);
    }
    io->n_out = 3;
    io->out[B_DX] = io->in[B_X];
    io->out[B_DWEIGHT] = io->out[B_DBIAS] = clv__f32(CLV_SHAPE(D));
    return CLV_OK;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

/** Rows too long for one work-item: their moments part by part, then an element each. */
static void forward_long(clv__launches *list, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[X].shape);
    const clv__long_walk walk = clv__long_middle(s.rows, s.D, 1);
    const clv__long_rows moments = clv__long_moments(list, io, &walk);
    clv__launch *launch = clv__launch_kernel(list, "layer_norm", "layer_norm_long");
    clv__define_storage(list, launch, "T_X", io->in[X].dtype);
    clv__define_storage(list, launch, "T_Y", io->out[Y].dtype);
    for (int i = Y; i <= RSTD; i++) clv__arg_out(list, launch, i);
    for (int i = X; i <= BIAS; i++) clv__arg_in(list, launch, i);
    clv__arg_workspace(list, launch, moments.offset, moments.bytes);
    CLV__ARGS_I32(list, launch, s.rows, s.D, clv__has_in(io, WEIGHT), clv__has_in(io, BIAS));
    clv__arg_f32(list, launch, ((const layer_attrs *)io->attrs)->eps);
    clv__launch_over(list, launch, CLV__ELEMENTS, s.rows * s.D);
}

// On devices with lanes: a group of work-items a row that fits into their registers.
enum { SMALL_GROUP = 64, LARGE_GROUP = 256, MOST_PER = 16, FEW_PER = 4 };

static int64_t group_of(int64_t D) {
    return D <= SMALL_GROUP * MOST_PER ? SMALL_GROUP : LARGE_GROUP;
}

static clv__launch *group_launch(clv__launches *list, const char *entry, int64_t D) {
    clv__launch *launch = clv__launch_kernel(list, "layer_norm", entry);
    if (group_of(D) != SMALL_GROUP) clv__launch_define(list, launch, "ITEMS", "%d", LARGE_GROUP);
    if (D > SMALL_GROUP * FEW_PER) clv__launch_define(list, launch, "PER", "%d", MOST_PER);
    return launch;
}

static void groups(clv__launches *list, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[X].shape);
    clv__launch *launch = group_launch(list, "layer_norm_groups", s.D);
    clv__define_storage(list, launch, "T_X", io->in[X].dtype);
    clv__define_storage(list, launch, "T_Y", io->out[Y].dtype);
    for (int i = Y; i <= RSTD; i++) clv__arg_out(list, launch, i);
    for (int i = X; i <= BIAS; i++) clv__arg_in(list, launch, i);
    CLV__ARGS_I32(list, launch, s.D, clv__has_in(io, WEIGHT), clv__has_in(io, BIAS));
    clv__arg_f32(list, launch, ((const layer_attrs *)io->attrs)->eps);
    clv__launch_grid(launch, (size_t)(s.rows * group_of(s.D)), (size_t)group_of(s.D));
}

static void forward(clv__launches *list, const clv__op_io *io, bool wide) {
    layer_sizes s = sizes_of(&io->in[X].shape);
    int64_t rows = clv__rows_for(s.D);
    if (s.rows == 0 || s.D == 0) return;
    if (!wide && s.D > CLV__LONG_AXIS) {
        forward_long(list, io);
        return;
    }
    clv__launch *launch = clv__launch_kernel(list, "layer_norm", wide ? "layer_norm_rows" : "layer_norm");
    clv__define_storage(list, launch, "T_X", io->in[X].dtype);
    clv__define_storage(list, launch, "T_Y", io->out[Y].dtype);
    for (int i = Y; i <= RSTD; i++) clv__arg_out(list, launch, i);
    for (int i = X; i <= BIAS; i++) clv__arg_in(list, launch, i);
    clv__arg_i32(list, launch, s.rows);
    if (wide) clv__arg_i32(list, launch, rows);
    CLV__ARGS_I32(list, launch, s.D, clv__has_in(io, WEIGHT), clv__has_in(io, BIAS));
    clv__arg_f32(list, launch, ((const layer_attrs *)io->attrs)->eps);
    clv__launch_over(list, launch, wide ? CLV__TASKS : CLV__ELEMENTS,
                     wide ? clv__div_up(s.rows, rows) : s.rows);
}

/** How dy and x are stored. */
static void dy_and_x(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    clv__define_storage(list, launch, "T_Y", io->in[B_DY].dtype);
    clv__define_storage(list, launch, "T_X", io->in[B_X].dtype);
}

/** dx of rows too long for one work-item: their sums part by part, then an element each. */
static void backward_long(clv__launches *list, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[B_X].shape);
    const clv__long_walk walk = clv__long_middle(s.rows, s.D, 1);
    const int64_t chunks = clv__div_up(s.D, CLV__LONG_CHUNK);
    clv__long_rows sums = {.bytes = (size_t)(2 * s.rows * chunks) * sizeof(float)};
    sums.offset = clv__launch_workspace(list, sums.bytes);
    for (int last = 0; last < 2; last++) {
        clv__launch *launch = clv__launch_kernel(list, "layer_norm",
                                                 last ? "layer_norm_long_backward" : "layer_norm_long_sums");
        if (last)
            clv__arg_out_as(list, launch, io, B_DX, "T_DX");
        else
            clv__arg_workspace(list, launch, sums.offset, sums.bytes);
        dy_and_x(list, launch, io);
        for (int i = B_DY; i <= B_RSTD; i++) clv__arg_in(list, launch, i);
        if (last) clv__arg_workspace(list, launch, sums.offset, sums.bytes);
        CLV__ARGS_I32(list, launch, s.rows, s.D, clv__has_in(io, B_WEIGHT));
        if (!last) CLV__ARGS_I32(list, launch, CLV__LONG_CHUNK, chunks);
        clv__launch_over(list, launch, CLV__ELEMENTS, s.rows * (last ? s.D : chunks));
        if (!last) sums = clv__long_join_sums(list, &walk, sums);
    }
}

static void backward_rows_of(clv__launches *list, const clv__op_io *io, bool wide) {
    const layer_sizes s = sizes_of(&io->in[B_X].shape);
    const int64_t rows = clv__rows_for(s.D);
    clv__launch *launch =
        clv__launch_kernel(list, "layer_norm", wide ? "layer_norm_rows_backward" : "layer_norm_backward");
    clv__arg_out_as(list, launch, io, B_DX, "T_DX");
    dy_and_x(list, launch, io);
    for (int i = B_DY; i <= B_RSTD; i++) clv__arg_in(list, launch, i);
    clv__arg_i32(list, launch, s.rows);
    if (wide) clv__arg_i32(list, launch, rows);
    CLV__ARGS_I32(list, launch, s.D, clv__has_in(io, B_WEIGHT));
    clv__launch_over(list, launch, wide ? CLV__TASKS : CLV__ELEMENTS,
                     wide ? clv__div_up(s.rows, rows) : s.rows);
}

static void backward_groups_of(clv__launches *list, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[B_X].shape);
    clv__launch *launch = group_launch(list, "layer_norm_groups_backward", s.D);
    clv__arg_out_as(list, launch, io, B_DX, "T_DX");
    dy_and_x(list, launch, io);
    for (int i = B_DY; i <= B_RSTD; i++) clv__arg_in(list, launch, i);
    CLV__ARGS_I32(list, launch, s.D, clv__has_in(io, B_WEIGHT));
    clv__launch_grid(launch, (size_t)(s.rows * group_of(s.D)), (size_t)group_of(s.D));
}

typedef enum schedule { ITEM_A_ROW, WIDE_VECTORS, GROUP_A_ROW } schedule;

static void backward(clv__launches *list, const clv__op_io *io, schedule how) {
    const bool wide = how == WIDE_VECTORS;
    layer_sizes s = sizes_of(&io->in[B_X].shape);
    int64_t blocks = clv__div_up(s.rows, BLOCK);
    clv__launch *launch;
    if (s.D == 0) return;
    if (s.rows == 0) {
        clv__launch_fill(list, B_DWEIGHT, (size_t)s.D * sizeof(float), 0);
        clv__launch_fill(list, B_DBIAS, (size_t)s.D * sizeof(float), 0);
        return;
    }
    if (how == GROUP_A_ROW)
        backward_groups_of(list, io);
    else if (!wide && s.D > CLV__LONG_AXIS)
        backward_long(list, io);
    else
        backward_rows_of(list, io, wide);

    size_t bytes = (size_t)(blocks * 2 * s.D) * sizeof(float), parts = clv__launch_workspace(list, bytes);
    bool columns = wide && s.D >= 16;
    launch = clv__launch_kernel(list, "layer_norm", columns ? "layer_norm_columns" : "layer_norm_sums");
    clv__arg_workspace(list, launch, parts, bytes);
    dy_and_x(list, launch, io);
    clv__arg_in(list, launch, B_DY);
    clv__arg_in(list, launch, B_X);
    clv__arg_in(list, launch, B_MEAN);
    clv__arg_in(list, launch, B_RSTD);
    CLV__ARGS_I32(list, launch, s.rows, BLOCK, s.D);
    if (columns)
        clv__launch_over(list, launch, CLV__TASKS, blocks * clv__div_up(s.D, 16));
    else
        clv__launch_over(list, launch, CLV__ELEMENTS, blocks * s.D);

    launch = clv__launch_kernel(list, "layer_norm", "layer_norm_join");
    clv__arg_out(list, launch, B_DWEIGHT);
    clv__arg_out(list, launch, B_DBIAS);
    clv__arg_workspace(list, launch, parts, bytes);
    CLV__ARGS_I32(list, launch, blocks, s.D);
    clv__launch_over(list, launch, CLV__ELEMENTS, s.D);
}

static void plain(clv__launches *list, const clv__op_io *io) {
    forward(list, io, false);
}
static void rows(clv__launches *list, const clv__op_io *io) {
    forward(list, io, true);
}
static void backward_plain(clv__launches *list, const clv__op_io *io) {
    backward(list, io, ITEM_A_ROW);
}
static void backward_rows(clv__launches *list, const clv__op_io *io) {
    backward(list, io, WIDE_VECTORS);
}
static void backward_groups(clv__launches *list, const clv__op_io *io) {
    backward(list, io, GROUP_A_ROW);
}

static bool rows_support(const clv_device_info *device, const clv__op_io *io) {
    const int64_t D = sizes_of(&io->in[0].shape).D;
    return clv__threads(device) && D >= 16 && clv__loops_fit(device, 3 * clv__rows_for(D) * (D / 16 + 16));
}

static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    const layer_sizes s = sizes_of(&io->in[0].shape);
    return s.rows > 0 && s.D >= 16 && s.D <= LARGE_GROUP * MOST_PER &&
           device->max_work_group >= (uint32_t)group_of(s.D) && device->loop_turns == 0 &&
           clv__tile_local_bytes(device) >= 2 * sizeof(float) * (uint64_t)group_of(s.D);
}

static double groups_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    return clv__threads(device) ? 2 : 0.1;
}

static const clv__variant variants[] = {{"plain", .lower = plain},
                                        {"rows", rows_support, .lower = rows, .relative = 0.2},
                                        {"groups", groups_support, groups_rank, .lower = groups},
                                        {0}};
static const clv__variant backward_variants[] = {
    {"plain", .lower = backward_plain},
    {"rows", rows_support, .lower = backward_rows, .relative = 0.2},
    {"groups", groups_support, groups_rank, .lower = backward_groups},
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

static void reference(const clv__ref *ref) {
    layer_sizes s = sizes_of(&ref->io->in[X].shape);
    double eps = (double)((const layer_attrs *)ref->io->attrs)->eps, D = (double)s.D;
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = ref->in[X] + r * s.D;
        double mean = 0, var = 0;
        for (int64_t d = 0; d < s.D; d++) mean += x[d] / D;
        for (int64_t d = 0; d < s.D; d++) var += (x[d] - mean) * (x[d] - mean) / D;
        double rstd = 1 / sqrt(var + eps);
        for (int64_t d = 0; d < s.D; d++)
            ref->out[Y][r * s.D + d] = (x[d] - mean) * rstd * (ref->in[WEIGHT] ? ref->in[WEIGHT][d] : 1) +
                                       (ref->in[BIAS] ? ref->in[BIAS][d] : 0);
        ref->out[MEAN][r] = mean;
        ref->out[RSTD][r] = rstd;
    }
}

static void backward_reference(const clv__ref *ref) {
    layer_sizes s = sizes_of(&ref->io->in[B_X].shape);
    for (int64_t d = 0; d < s.D; d++) ref->out[B_DWEIGHT][d] = ref->out[B_DBIAS][d] = 0;
    for (int64_t r = 0; r < s.rows; r++) {
        const double *x = ref->in[B_X] + r * s.D, *dy = ref->in[B_DY] + r * s.D;
        double mean = ref->in[B_MEAN][r], rstd = ref->in[B_RSTD][r], sum = 0, product = 0;
        for (int64_t d = 0; d < s.D; d++) {
            double x_hat = (x[d] - mean) * rstd, g = dy[d] * (ref->in[B_WEIGHT] ? ref->in[B_WEIGHT][d] : 1);
            sum += g / (double)s.D;
            product += g * x_hat / (double)s.D;
            ref->out[B_DWEIGHT][d] += dy[d] * x_hat;
            ref->out[B_DBIAS][d] += dy[d];
        }
        for (int64_t d = 0; d < s.D; d++) {
            double x_hat = (x[d] - mean) * rstd, g = dy[d] * (ref->in[B_WEIGHT] ? ref->in[B_WEIGHT][d] : 1);
            ref->out[B_DX][r * s.D + d] = rstd * (g - sum - x_hat * product);
        }
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double n = (double)clv__numel(&io->out[0]);
    bool is_backward = io->n_in == 5;
    *cost = (clv__cost){(is_backward ? 16 : 8) * n, 4 * n * (is_backward ? 3 : 2)};
}

static int64_t reduction(const clv__op_io *io) {
    layer_sizes s = sizes_of(&io->in[0].shape);
    return io->n_in == 5 && s.rows > s.D ? s.rows : s.D;
}

// ---- samples --------------------------------------------------------------------------------------------------------

static const struct layer_case {
    const char *label;
    int rank;
    int64_t x[4];
    bool weight, bias, quick;
} cases[] = {
    {"rows of 48", 2, {6, 48}, true, true, true},
    {"rows of 33, no bias", 3, {2, 3, 33}, true, false, true},
    {"rows of 7, neither", 2, {5, 7}, false, false, true},
    {"two elements", 1, {2}, true, true, false},
    {"rows of 16", 2, {3, 16}, true, true, false},
    {"rows of 17, no weight", 2, {4, 17}, false, true, false},
    {"rows of 300", 2, {3, 300}, true, true, false},
    {"one row of 1025", 2, {1, 1025}, true, true, false},
    {"rows of 16,001", 2, {2, 16001}, true, true, false},
    {"a row of 70,001", 2, {1, 70001}, true, false, false},
    {"129 rows of 31", 2, {129, 31}, true, true, false},
    {"4 dimensions", 4, {2, 3, 2, 20}, true, true, false},
    {"300 rows of 5", 3, {3, 100, 5}, true, true, false},
    {"no rows", 2, {0, 8}, true, true, false},
};

static bool sample(int i, clv__sample *out) {
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    const struct layer_case *c = &cases[i];
    clv_shape x = clv_shape_make(c->rank, c->x);
    snprintf(out->label, sizeof out->label, "%s", c->label);
    memcpy(out->attrs, &(layer_attrs){1e-5f}, sizeof(layer_attrs));
    out->n_in = 3;
    out->in[X] = clv__f32(x);
    out->fill[X] = (clv__fill){CLV__FILL_UNIFORM, -1, 3};
    if (c->weight) out->in[WEIGHT] = clv__f32(CLV_SHAPE(x.dims[x.rank - 1]));
    if (c->bias) out->in[BIAS] = clv__f32(CLV_SHAPE(x.dims[x.rank - 1]));
    out->fill[WEIGHT] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 1.5};
    out->quick = c->quick;
    return true;
}

static bool backward_sample(int i, clv__sample *out) {
    if (!sample(i, out)) return false;
    clv__desc x = out->in[X], weight = out->in[WEIGHT];
    out->n_in = 5;
    out->in[B_DY] = out->in[B_X] = x;
    out->fill[B_DY] = (clv__fill){CLV__FILL_UNIFORM, -1, 1};
    out->fill[B_X] = (clv__fill){CLV__FILL_UNIFORM, -1, 3};
    out->in[B_WEIGHT] = weight;
    out->fill[B_WEIGHT] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 1.5};
    out->in[B_MEAN] = out->in[B_RSTD] = clv__f32(rows_shape(&x.shape));
    out->fill[B_MEAN] = out->fill[B_RSTD] =
        (clv__fill){CLV__FILL_UNIFORM, 0.5, 1.5}; // any values do for the formula
    return true;
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

// ---- in parts -----------------------------------------------------------------------------------------------------

/** Along every dimension but the last. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *x = &io->in[X].shape;
    out->length = clv__split_length(x, i);
    out->in[X] = out->out[Y] = out->out[MEAN] = out->out[RSTD] = (int8_t)i;
    return i + 1 < x->rank;
}

static bool backward_split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *x = &io->in[B_X].shape;
    out->length = clv__split_length(x, i);
    out->in[B_DY] = out->in[B_X] = out->in[B_MEAN] = out->in[B_RSTD] = out->out[B_DX] = (int8_t)i;
    out->out[B_DWEIGHT] = out->out[B_DBIAS] = CLV__SPLIT_SUM;
    return i + 1 < x->rank;
}

const clv__op clv__op_layer_norm_backward = {
    .name = "layer_norm_backward",
    .half_in = 1u << B_DY | 1u << B_X,
    .half_out = 1u << B_DX,
    .attrs_bytes = sizeof(layer_attrs),
    .infer = backward_infer,
    .variants = backward_variants,
    .reference = backward_reference,
    .sample = CLV__TRAINS(backward_sample),
    .cost = cost,
    .reduction = reduction,
    .split = backward_split,
};

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    if (!dy[Y]) return; // mean and rstd are the gradient's own
    clv_tensor *made =
        clv__node_add(&clv__op_layer_norm_backward, clv__node_attrs(node),
                      (clv_tensor *[]){dy[Y], clv__node_in(node, X), clv__node_in(node, WEIGHT),
                                       clv__node_out(node, MEAN), clv__node_out(node, RSTD)},
                      5, 1u << B_WEIGHT);
    for (int i = 0; i < 3; i++)
        if (clv__wants_grad(node, i)) dx[i] = clv__sibling(made, i);
}

const clv__op clv__op_layer_norm = {
    .name = "layer_norm",
    .half_in = 1u << X,
    .half_out = 1u << Y,
    .autocast = CLV__CAST_HALF, // graph.h says why
    .attrs_bytes = sizeof(layer_attrs),
    .infer = infer,
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .sample = CLV__TRAINS(sample),
    .cost = cost,
    .reduction = reduction,
    .split = split,
};

clv_tensor *clv_layer_norm(clv_tensor *x, clv_tensor *weight, clv_tensor *bias, float eps) {
    return clv__node_add(&clv__op_layer_norm, &(layer_attrs){eps}, (clv_tensor *[]){x, weight, bias}, 3,
                         1u << WEIGHT | 1u << BIAS);
}
