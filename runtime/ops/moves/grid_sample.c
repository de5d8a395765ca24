// SPDX-License-Identifier: Apache-2.0
// Pictures, lines and solids at places that are computed. Kernels: kernels_cl/grid_sample.cl. Source: torch.nn.functional.grid_sample;
// Jaderberg et al. 2015, arXiv:1506.02025.
#include <math.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

extern const clv__op clv__op_grid_sample;

typedef struct grid_attrs {
    int mode, padding_mode;
    bool align_corners;
} grid_attrs;

/** x [N, C, size], grid [N, P, n]; dimensions that there are not are 1. */
typedef struct sizes {
    int n;
    int64_t N, C, size[3], P;
} sizes;

static sizes sizes_of(const clv_shape *x, const clv_shape *grid) {
    sizes s = {x->rank - 2, x->dims[0], x->dims[1], {1, 1, 1}, clv__dims_product(grid, 1, grid->rank - 1)};
    for (int d = 0; d < s.n; d++) s.size[3 - s.n + d] = x->dims[2 + d];
    return s;
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const clv_shape *x = &io->in[0].shape, *grid = &io->in[1].shape;
    const int n = x->rank - 2;
    if (n < 1 || n > 3) CLV_FAIL(error, CLV_E_SHAPE, "x has %d dimensions, it must have 3, 4 or 5", x->rank);
    if (grid->rank != x->rank || grid->dims[n + 1] != n)
        CLV_FAIL(error, CLV_E_SHAPE, "grid must have %d dimensions, the last one of %d numbers", n + 2, n);
    if (grid->dims[0] != x->dims[0])
        CLV_FAIL(error, CLV_E_SHAPE, "grid has %lld samples, x has %lld", (long long)grid->dims[0],
                 (long long)x->dims[0]);
    clv__desc y = io->in[0];
    for (int d = 0; d < n; d++) {
        if (x->dims[2 + d] < 1)
            CLV_FAIL(error, CLV_E_SHAPE, "x must have at least one element in each dimension");
        y.shape.dims[2 + d] = grid->dims[1 + d];
    }
    return clv__one_out(io, y);
}

static int taps_of(const clv__op_io *io) {
    static const int taps[] = {2, 1, 4};
    return taps[((const grid_attrs *)io->attrs)->mode];
}

// ---- launches ---------------------------------------------------------------------------------------------

static clv__launch *begin(clv__launches *list, const clv__op_io *io, const sizes *s, const char *entry,
                          clv__items kind, int64_t items, const char *tensors) {
    const grid_attrs *a = io->attrs;
    clv__launch *launch = clv__launch_items(list, "grid_sample", entry, kind, items);
    clv__define_number(list, launch, "ND", s->n, 2);
    clv__define_number(list, launch, "TAPS", taps_of(io), 2);
    clv__define_number(list, launch, "EDGES", a->padding_mode, 0);
    clv__define_number(list, launch, "CORNERS", a->align_corners, 0);
    CLV__ARGS(list, launch, io, tensors, CLV__INTS(items, s->C, s->size[0], s->size[1], s->size[2], s->P));
    return launch;
}

/** A thread finds the neighbours of a place once for all channels, of lanes each does a few. */
static void plain(clv__launches *list, const clv__op_io *io) {
    const sizes s = sizes_of(&io->in[0].shape, &io->in[1].shape);
    const int64_t each = clv__threads(list->device) ? clv__max64(s.C, 1) : 4;
    clv__launch *launch = begin(list, io, &s, "grid_sample", CLV__ELEMENTS,
                                s.N * clv__div_up(s.C, each) * s.P, "o0=T_Y i0=T_X i1=T_GRID");
    clv__arg_i32(list, launch, each);
}

static void backward_plain(clv__launches *list, const clv__op_io *io) {
    enum { LANES = 16384 }; // keep a GPU at work
    const sizes s = sizes_of(&io->in[1].shape, &io->in[2].shape);
    const int64_t first = s.size[3 - s.n], planes = s.N * s.C;
    if (planes) {
        const int64_t wanted = clv__threads(list->device) ? 1 : clv__min64(clv__div_up(LANES, planes), 32);
        const int64_t rows = clv__div_up(first, wanted), slabs = clv__div_up(first, rows);
        clv__launch *launch =
            begin(list, io, &s, "grid_sample_backward_x", CLV__TASKS, planes * slabs, "o0 i0=T_Y i2=T_GRID");
        CLV__ARGS_I32(list, launch, slabs, rows);
    }
    begin(list, io, &s, "grid_sample_backward_grid", CLV__ELEMENTS, s.N * s.P,
          "o1=T_DGRID i0=T_Y i1=T_X i2=T_GRID");
}

static int64_t reduction(const clv__op_io *io) {
    int64_t taps = 1;
    for (int d = 0; d < io->in[0].shape.rank - 2; d++) taps *= taps_of(io);
    return taps;
}

static int64_t backward_reduction(const clv__op_io *io) {
    const sizes s = sizes_of(&io->in[1].shape, &io->in[2].shape);
    return clv__max64(s.P, s.C) * reduction(io);
}

static bool backward_supports(const clv_device_info *device, const clv__op_io *io) {
    const sizes s = sizes_of(&io->in[1].shape, &io->in[2].shape);
    return clv__loops_fit(device, s.P + s.size[0] * s.size[1] * s.size[2]) && clv__loops_fit(device, s.C);
}

static const clv__variant variants[] = {{"plain", .lower = plain}, {0}};
static const clv__variant backward_variants[] = {{"plain", backward_supports, .lower = backward_plain}, {0}};

// ---- reference --------------------------------------------------------------------------------------------

enum { TAPS = 4 };
typedef struct taps {
    int n;
    int64_t at[TAPS]; // -1: outside
    double weight[TAPS], change[TAPS];
} taps;

/** Within the dimension, if what lies outside is something: in mirrors, then at an end. How it moves is 0 there. */
static double within(const grid_attrs *a, double v, int64_t size, double *slope) {
    const double low = a->align_corners ? 0 : -0.5, span = (double)size - a->align_corners;
    if (a->padding_mode == CLV_GRID_REFLECTION && span > 0) {
        double rest = fmod(fabs(v - low), 2 * span);
        if (v < low) *slope = -*slope;
        if (rest >= span) rest = 2 * span - rest, *slope = -*slope;
        v = rest + low;
    }
    if (a->padding_mode != CLV_GRID_ZEROS && (!(v > 0) || v >= (double)(size - 1))) {
        *slope = 0;
        v = v > 0 ? (double)(size - 1) : 0;
    }
    return v;
}

/** Keys's weight of what is so far away, and how it changes with the distance. */
static double keys(double d, double *change) {
    const double a = -0.75;
    if (d <= 1) {
        *change = (3 * (a + 2) * d - 2 * (a + 3)) * d;
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    }
    *change = (3 * a * d - 10 * a) * d + 8 * a;
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static taps taps_at(const grid_attrs *a, double g, int64_t size) {
    const double all = (double)size - a->align_corners;
    double slope = all / 2, v = a->align_corners ? (g + 1) / 2 * all : ((g + 1) * all - 1) / 2, unused = 0;
    if (a->mode == CLV_GRID_NEAREST) {
        v = rint(within(a, v, size, &slope));
        return (taps){1, {v >= 0 && v < (double)size ? (int64_t)v : -1}, {1}, {0}};
    }
    const bool cubic = a->mode == CLV_GRID_BICUBIC;
    taps t = {.n = cubic ? 4 : 2};
    if (!cubic) v = within(a, v, size, &slope);
    const double low = floor(v), rest = v - low;
    for (int k = 0; k < t.n; k++) {
        const double side = k - cubic, d = fabs(rest - side);
        double one = low + side;
        t.weight[k] = 1 - d, t.change[k] = -1;
        if (cubic) {
            t.weight[k] = keys(d, &t.change[k]);
            one = within(a, one, size, &unused);
        }
        t.change[k] *= side <= 0 ? slope : -slope;
        t.at[k] = one >= 0 && one < (double)size ? (int64_t)one : -1;
    }
    return t;
}

/** One place of one channel: y from x, or dx and dgrid from dy. */
static void one_place(const sizes *s, const taps *t, double *x, double *y, double *dx, double *dgrid) {
    for (int i = 0; i < t[0].n; i++)
        for (int j = 0; j < t[1].n; j++)
            for (int k = 0; k < t[2].n; k++) {
                if (t[0].at[i] < 0 || t[1].at[j] < 0 || t[2].at[k] < 0) continue;
                const int64_t from = (t[0].at[i] * s->size[1] + t[1].at[j]) * s->size[2] + t[2].at[k];
                const double w[3] = {t[0].weight[i], t[1].weight[j], t[2].weight[k]};
                const double change[3] = {t[0].change[i], t[1].change[j], t[2].change[k]};
                if (!dx) {
                    *y += w[0] * w[1] * w[2] * x[from];
                    continue;
                }
                dx[from] += w[0] * w[1] * w[2] * *y;
                for (int d = 0; d < s->n; d++) // the last dimension comes first in the grid
                    dgrid[d] += *y * x[from] * change[2 - d] * w[(4 - d) % 3] * w[(3 - d) % 3];
            }
}

static void walk(const clv__ref *ref, const sizes *s, double *x, const double *grid, double *y, double *dx,
                 double *dgrid) {
    const int64_t all = s->size[0] * s->size[1] * s->size[2];
    for (int64_t i = 0; i < s->N * s->P; i++) {
        taps t[3] = {{1, {0}, {1}, {0}}, {1, {0}, {1}, {0}}, {1, {0}, {1}, {0}}};
        for (int d = 0; d < s->n; d++) t[2 - d] = taps_at(ref->io->attrs, grid[i * s->n + d], s->size[2 - d]);
        for (int64_t c = 0; c < s->C; c++) {
            const int64_t plane = i / s->P * s->C + c;
            one_place(s, t, x + plane * all, y + plane * s->P + i % s->P, dx ? dx + plane * all : NULL,
                      dgrid ? dgrid + i * s->n : NULL);
        }
    }
}

static void reference(const clv__ref *ref) {
    const sizes s = sizes_of(&ref->io->in[0].shape, &ref->io->in[1].shape);
    clv__ref_zero(ref);
    walk(ref, &s, ref->in[0], ref->in[1], ref->out[0], NULL, NULL);
}

static void backward_reference(const clv__ref *ref) {
    const sizes s = sizes_of(&ref->io->in[1].shape, &ref->io->in[2].shape);
    clv__ref_zero(ref);
    walk(ref, &s, ref->in[1], ref->in[2], ref->in[0], ref->out[0], ref->out[1]);
}

// ---- the op -----------------------------------------------------------------------------------------------

#define ROW(text, mode_, padding, corners, from, to, x_dims, grid_dims)                                      \
    .label = text, .in = {x_dims, grid_dims}, .n_in = 2, .fill = {{0}, {CLV__FILL_DISTINCT, from, to}},      \
    .attrs = &(grid_attrs) {                                                                                 \
        CLV_GRID_##mode_, CLV_GRID_##padding, corners                                                        \
    }
#define X(...) CLV__DIMS(__VA_ARGS__)
static const clv__sample_row samples[] = {
    {ROW("bilinear, zeros", BILINEAR, ZEROS, false, -1.3, 1.2, X(2, 3, 5, 7), X(2, 4, 3, 2)), .quick = true},
    {ROW("bilinear, border, corners", BILINEAR, BORDER, true, -1.3, 1.2, X(2, 5, 4, 6), X(2, 3, 5, 2)),
     .quick = true},
    {ROW("bilinear, reflection", BILINEAR, REFLECTION, false, -3.1, 2.9, X(1, 2, 3, 5), X(1, 6, 5, 2))},
    {ROW("nearest, zeros", NEAREST, ZEROS, false, -1.3, 1.2, X(2, 3, 5, 7), X(2, 4, 3, 2)), .quick = true,
     .no_gradient = true},
    {ROW("nearest, reflection, corners", NEAREST, REFLECTION, true, -2.9, 3.3, X(1, 2, 4, 3), X(1, 5, 4, 2)),
     .no_gradient = true},
    {ROW("bicubic, zeros", BICUBIC, ZEROS, false, -1.3, 1.2, X(1, 3, 5, 6), X(1, 4, 3, 2)), .quick = true},
    {ROW("bicubic, border, corners", BICUBIC, BORDER, true, -1.3, 1.2, X(1, 2, 5, 6), X(1, 4, 3, 2))},
    {ROW("bicubic, reflection", BICUBIC, REFLECTION, false, -1.7, 1.9, X(1, 2, 4, 6), X(1, 4, 3, 2))},
    {ROW("solids, bilinear", BILINEAR, ZEROS, false, -1.19, 1.23, X(1, 2, 3, 4, 5), X(1, 2, 3, 2, 3))},
    {ROW("lines, bicubic", BICUBIC, BORDER, false, -1.2, 1.2, X(2, 3, 9), X(2, 7, 1))},
    {ROW("one element, border", BILINEAR, BORDER, true, -1.2, 1.2, X(1, 1, 1, 1), X(1, 2, 1, 2)),
     .no_gradient = true},
    {ROW("many planes", BILINEAR, ZEROS, false, -1.2, 1.2, X(3, 70, 3, 3), X(3, 2, 2, 2))},
    {ROW("no places", BILINEAR, ZEROS, false, -1.2, 1.2, X(1, 2, 3, 3), X(1, 0, 2, 2))},
    {0}};
#undef ROW
#undef X

/** Along the samples, or the channels. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    clv__split_all(io, 0, out);
    if (i == 1) {
        out->length = clv__split_length(&io->in[0].shape, 1);
        out->in[0] = out->out[0] = 1;
        out->in[1] = CLV__SPLIT_WHOLE;
    }
    return i < 2;
}

CLV__TRAIN_OP(grid_sample_backward) = {CLV__GRADIENT_OF(grid_sample, "d0 i0 i1 g0 g1"),
                                       .attrs_bytes = sizeof(grid_attrs),
                                       .half_in = 7,
                                       .half_out = 2,
                                       .variants = backward_variants,
                                       .reference = backward_reference,
                                       .reduction = backward_reduction};

CLV__OP(grid_sample) = {
    .name = "grid_sample",
    .inputs = CLV__INPUTS({"x", "f32"}, {"grid", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, grid_attrs, mode, "0"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(CLV_GRID_BICUBIC)},
                                  {CLV__ATTRIBUTE(INT, grid_attrs, padding_mode, "0"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(CLV_GRID_REFLECTION)},
                                  {CLV__ATTRIBUTE(BOOL, grid_attrs, align_corners, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    .attrs_bytes = sizeof(grid_attrs),
    .half_in = 3,
    .half_out = 1,
    .infer = infer,
    CLV__GRADIENT(grid_sample),
    .variants = variants,
    .reference = reference,
    .reduction = reduction,
    .split = split,
    .samples = CLV__TRAINS(samples),
};
