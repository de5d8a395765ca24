// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over [N,C] and [N,C,...]: statistics per channel, of the batch in training, running in
// evaluation. All of them are pure but batch_norm_update, which moves the running statistics towards the batch's after
// every gradient is there: so the forward op may be computed twice, and a step that fails leaves them as they were.
// Source: Ioffe, Szegedy 2015, arXiv:1502.03167, algorithms 1 and 2; torch.nn.BatchNorm2d.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/epilogue.h"
#include "ops/product/gemm.h"
#include "ops/lower.h"
#include "ops/rows.h"
#include "ops/update/over_ranks.h"

extern const clv__op clv__op_batch_norm, clv__op_batch_norm_backward;

typedef struct norm_attrs {
    float momentum, eps;
    int is_var; // batch_norm_backward: in evaluation, input 4 is the running variance instead of rstd
} norm_attrs;

// inputs of batch_norm_eval; batch_norm has the first three
enum { X, WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };
enum { Y, MEAN, RSTD, VAR }; // outputs of batch_norm (VAR is unbiased); batch_norm_eval has Y
// inputs of batch_norm_update for each layer: running statistics, the batch's
enum { U_MEAN, U_VAR, U_BATCH_MEAN, U_BATCH_VAR, U_GROUP, U_MOST = 14 };
enum { B_DY, B_X, B_WEIGHT, B_MEAN, B_SPREAD }; // inputs of batch_norm_backward
enum { B_DX, B_DWEIGHT, B_DBIAS };              // outputs of batch_norm_backward

/** x seen from its channels: [N, C, S]. */
typedef struct norm_sizes {
    int64_t N, C, S;
} norm_sizes;

static norm_sizes sizes_of(const clv_shape *x) {
    return (norm_sizes){x->dims[0], x->dims[1], clv__dims_product(x, 2, x->rank)};
}

static const norm_attrs *attrs_of(const clv__op_io *io) {
    return io->attrs;
}

// ---- shape rule -------------------------------------------------------------------------------------------

/** Of batch_norm and batch_norm_eval. */
static const clv_op_attribute node_attributes[] = {
    {CLV__ATTRIBUTE(NUMBER, norm_attrs, momentum, "0.1"), CLV__AT_LEAST(0), CLV__AT_MOST(1)},
    {CLV__ATTRIBUTE(NUMBER, norm_attrs, eps, "1e-5"), CLV__ABOVE(0)},
    {.name = NULL}};

static clv_status train_infer(clv__op_io *io, clv__error *error) {
    const norm_attrs *a = attrs_of(io);
    const norm_sizes s = sizes_of(&io->in[X].shape);
    CLV_TRY(clv__attributes_check(node_attributes, a, error));
    if (s.N * s.S < 2)
        CLV_FAIL(error, CLV_E_VALUE, "training needs more than one value for each channel, x has %lld",
                 (long long)(s.N * s.S));
    io->n_out = 4;
    io->out[Y] = io->in[X];
    io->out[MEAN] = io->out[RSTD] = io->out[VAR] = clv__f32(CLV_SHAPE(s.C));
    return CLV_OK;
}

// ---- kernels ----------------------------------------------------------------------------------------------

enum { PLANES = CLV__BY_GROUPS + 1, FOURS }; // numbers of variants

/** Over the elements, fours of them, or the planes: tensors, what an item does, C, S. Input 0 of each of the ops has the shape of x. */
static clv__launch *elements_launch(clv__launches *list, const clv__op_io *io, const char *by_element,
                                    const char *by_plane, const char *tensors) {
    const norm_sizes s = sizes_of(&io->in[0].shape);
    const int64_t planes = s.N * s.C, n = planes * s.S, rows = clv__rows_for(s.S);
    if (io->variant->number == PLANES)
        return CLV__LAUNCH(list, io, "norm", by_plane, CLV__TASKS, clv__div_up(planes, rows), tensors,
                           CLV__INTS(planes, rows, s.C, s.S));
    return CLV__LAUNCH(list, io, "norm", by_element, CLV__ELEMENTS,
                       io->variant->number == FOURS ? clv__div_up(n, 4) : n, tensors, CLV__INTS(n, s.C, s.S));
}

/** Normalise. */
static void apply(clv__launches *list, const clv__op_io *io) {
    const bool training = io->n_out > 1, fours = io->variant->number == FOURS;
    clv__launch *launch = elements_launch(
        list, io, fours ? "batch_norm_fours_apply" : "batch_norm_apply", "batch_norm_planes_apply",
        training ? "o0=T_Y i0=T_X i1 i2 o1 o2" : "o0=T_Y i0=T_X i1 i2 i3 i4");
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(clv__has_in(io, WEIGHT), clv__has_in(io, BIAS), !training),
              CLV__FLOATS(attrs_of(io)->eps));
    clv__arg_epilogue(list, launch, io);
}

/** Statistics of each channel from those of N planes of S elements. */
static void train_join(clv__launches *list, const clv__op_io *io, clv__part parts, int64_t N, int64_t S) {
    const int64_t C = io->in[X].shape.dims[1];
    CLV__LAUNCH(list, io, "norm", "batch_norm_join", CLV__TASKS, C, "o1 o2 o3 w", .part = parts,
                CLV__INTS(N, C, S), CLV__FLOATS(attrs_of(io)->eps));
}

// What one work-item walks in the plain variant, at most. Longer channels are programs over rows, in parts.
enum { LONGEST = 16000 };

static const clv__row_program moments_row = {.params = "global const T_X *restrict x",
                                             .tensors = "i0=T_X",
                                             CLV__ROW_MOMENTS,
                                             .load = "a[k] = LOAD(T_X, x + at);"};
/** sum(dy), sum(dy * (x - mean)). */
static const clv__row_program sums_row = {
    .params =
        "global const T_Y *restrict dy, global const T_X *restrict x, global const float *restrict means",
    .tensors = "i0=T_Y i1=T_X i3",
    .begin = "const float mean = means[r];",
    CLV__ROW_SUMS,
    .load = "a[k] = LOAD(T_Y, dy + at); b[k] = a[k] * (LOAD(T_X, x + at) - mean);"};

/** The state of each channel, plane after plane of one float for each. */
static clv__part long_channels(clv__launches *list, const clv__op_io *io, const clv__row_program *program) {
    const norm_sizes s = sizes_of(&io->in[0].shape);
    const clv__rows use = {.program = program, .walk = clv__row_channels(s.N, s.C, s.S)};
    return clv__rows_states(list, io, &use);
}

static void train_plain(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[X].shape);
    if (s.C == 0) return;
    if (s.N * s.S > LONGEST) { // as of one plane of N*S elements for each channel
        train_join(list, io, long_channels(list, io, &moments_row), 1, s.N * s.S);
    } else {
        CLV__LAUNCH(list, io, "norm", "batch_norm_stats", CLV__TASKS, s.C, "o1 o2 o3 i0=T_X",
                    CLV__INTS(s.N, s.C, s.S), CLV__FLOATS(attrs_of(io)->eps));
    }
    apply(list, io);
}

static void train_planes(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[X].shape);
    const int64_t n_planes = s.N * s.C, rows = clv__rows_for(s.S);
    const clv__part parts = clv__floats(list, 2 * n_planes);
    CLV__LAUNCH(list, io, "norm", "batch_norm_planes", CLV__TASKS, clv__div_up(n_planes, rows), "w i0=T_X",
                .part = parts, CLV__INTS(n_planes, rows, s.S));
    train_join(list, io, parts, s.N, s.S);
    apply(list, io);
}

static void train_columns(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[X].shape);
    CLV__LAUNCH(list, io, "norm", "batch_norm_columns", CLV__TASKS, clv__div_up(s.C, 16), "o1 o2 o3 i0=T_X",
                CLV__INTS(s.N, s.C), CLV__FLOATS(attrs_of(io)->eps));
    apply(list, io);
}

// A group of work-items does a channel, of which each of them keeps some elements in registers; or a slab of it.
enum { SLAB = 16, KEPT = 32, KEPT_LOCAL = 14, SLAB_ITEMS = 256, SMALL_SLAB_ITEMS = 64 };

static int64_t slab_items(const clv_device_info *device) {
    return device->max_work_group >= SLAB_ITEMS ? SLAB_ITEMS : SMALL_SLAB_ITEMS;
}

static int64_t slabs_of(const clv_device_info *device, const norm_sizes *s) {
    return clv__div_up(s->N * s->S, SLAB * slab_items(device));
}

static clv__launch *group_launch(clv__launches *list, const char *entry, int64_t groups, bool keeps_more) {
    const int64_t items = slab_items(list->device);
    clv__launch *launch = clv__launch_kernel(list, "norm", entry);
    if (items != SLAB_ITEMS) clv__launch_define(list, launch, "ITEMS", "%d", SMALL_SLAB_ITEMS);
    if (keeps_more) clv__launch_define(list, launch, "KEPT", "%d", KEPT);
    clv__launch_grid(launch, (size_t)(groups * items), (size_t)items);
    return launch;
}

/** A long channel has more of it in local memory: 30 KiB with the sums, so that two groups find room in 64 KiB. */
static void keep_locally(clv__launches *list, clv__launch *launch, const norm_sizes *s) {
    const uint64_t local = 2 * sizeof(float) * (uint64_t)slab_items(list->device) * (1 + KEPT_LOCAL);
    if (slabs_of(list->device, s) > 1 && local <= clv__tile_local_bytes(list->device))
        clv__launch_define(list, launch, "KEPT_LOCAL", "%d", KEPT_LOCAL);
}

static void train_groups(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[X].shape);
    clv__launch *launch = group_launch(list, "batch_norm_group", s.C, slabs_of(list->device, &s) > 1);
    keep_locally(list, launch, &s);
    CLV__ARGS(list, launch, io, "o0=T_Y o1 o2 o3 i0=T_X i1 i2",
              CLV__INTS(s.N, s.C, s.S, clv__has_in(io, WEIGHT), clv__has_in(io, BIAS)),
              CLV__FLOATS(attrs_of(io)->eps));
    clv__arg_epilogue(list, launch, io);
}

static void train_slabs(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[X].shape);
    const int64_t n = slabs_of(list->device, &s);
    const clv__part parts = clv__floats(list, 2 * n * s.C);
    CLV__ARGS(list, group_launch(list, "batch_norm_slabs", n * s.C, false), io, "w i0=T_X", .part = parts,
              CLV__INTS(s.N, s.C, s.S, n));
    clv__launch *launch = group_launch(list, "batch_norm_slabs_apply", n * s.C, false);
    CLV__ARGS(list, launch, io, "o0=T_Y o1 o2 o3 i0=T_X i1 i2 w", .part = parts,
              CLV__INTS(s.N, s.C, s.S, n, clv__has_in(io, WEIGHT), clv__has_in(io, BIAS)),
              CLV__FLOATS(attrs_of(io)->eps));
    clv__arg_epilogue(list, launch, io);
}

static void update_plain(clv__launches *list, const clv__op_io *io) {
    const int layers = clv__groups_most(io->op, list->device);
    int64_t n = 0, C[U_MOST] = {0};
    for (int g = 0; g < clv__groups_of(io); g++) n += C[g] = clv__numel(&io->in[g * U_GROUP + U_BATCH_MEAN]);
    clv__launch *launch = clv__launch_items(list, "norm", "batch_norm_update", CLV__TASKS, n);
    clv__launch_define(list, launch, "SLICES", "%d", layers);
    for (int i = 0; i < layers * U_GROUP; i++) clv__arg_in(list, launch, i);
    CLV__ARGS(list, launch, NULL, NULL, .n_ints = layers, .ints = C);
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(clv__has_in(io, U_MEAN), clv__has_in(io, U_VAR)),
              CLV__FLOATS(attrs_of(io)->momentum));
}

// For the mean of a batch: elements of a channel; 0: the statistics are constants.
static float count_of(const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[B_X].shape);
    return attrs_of(io)->is_var ? 0.0f : (float)(s.N * s.S);
}

static void backward_apply(clv__launches *list, const clv__op_io *io) {
    clv__launch *launch =
        elements_launch(list, io, "batch_norm_backward_apply", "batch_norm_planes_backward_apply",
                        "o0=T_DX i0=T_Y i1=T_X i2 i3 i4 o1 o2");
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(clv__has_in(io, B_WEIGHT), attrs_of(io)->is_var),
              CLV__FLOATS(attrs_of(io)->eps, count_of(io)));
}

/** The sums of each channel from those of its planes; N planes for each. */
static void backward_join(clv__launches *list, const clv__op_io *io, clv__part parts, int64_t N) {
    const int64_t C = io->in[B_X].shape.dims[1];
    CLV__LAUNCH(list, io, "norm", "batch_norm_backward_join", CLV__TASKS, C, "o1 o2 w i4", .part = parts,
                CLV__INTS(N, C, attrs_of(io)->is_var), CLV__FLOATS(attrs_of(io)->eps));
}

static void backward_plain(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[B_X].shape);
    if (s.C == 0) return;
    if (s.N * s.S > LONGEST) {
        backward_join(list, io, long_channels(list, io, &sums_row), 1);
    } else {
        CLV__LAUNCH(list, io, "norm", "batch_norm_backward_sums", CLV__TASKS, s.C,
                    "o1 o2 i0=T_Y i1=T_X i3 i4", CLV__INTS(s.N, s.C, s.S, attrs_of(io)->is_var),
                    CLV__FLOATS(attrs_of(io)->eps));
    }
    backward_apply(list, io);
}

static void backward_planes(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[B_X].shape);
    const int64_t n_planes = s.N * s.C, rows = clv__rows_for(s.S);
    const clv__part parts = clv__floats(list, 2 * n_planes);
    CLV__LAUNCH(list, io, "norm", "batch_norm_planes_backward", CLV__TASKS, clv__div_up(n_planes, rows),
                "w i0=T_Y i1=T_X i3", .part = parts, CLV__INTS(n_planes, rows, s.C, s.S));
    backward_join(list, io, parts, s.N);
    backward_apply(list, io);
}

static void backward_columns(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[B_X].shape);
    CLV__LAUNCH(list, io, "norm", "batch_norm_columns_backward", CLV__TASKS, clv__div_up(s.C, 16),
                "o1 o2 i0=T_Y i1=T_X i3 i4", CLV__INTS(s.N, s.C, attrs_of(io)->is_var),
                CLV__FLOATS(attrs_of(io)->eps));
    backward_apply(list, io);
}

static void backward_groups(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[B_X].shape);
    clv__launch *launch = group_launch(list, "batch_norm_group_backward", s.C, false);
    keep_locally(list, launch, &s);
    CLV__ARGS(list, launch, io, "o0=T_DX o1 o2 i0=T_Y i1=T_X i2 i3 i4",
              CLV__INTS(s.N, s.C, s.S, clv__has_in(io, B_WEIGHT), attrs_of(io)->is_var),
              CLV__FLOATS(attrs_of(io)->eps, count_of(io)));
}

static void backward_slabs(clv__launches *list, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[B_X].shape);
    const int64_t n = slabs_of(list->device, &s);
    const clv__part parts = clv__floats(list, 2 * n * s.C);
    CLV__ARGS(list, group_launch(list, "batch_norm_slabs_backward", n * s.C, false), io, "w i0=T_Y i1=T_X i3",
              .part = parts, CLV__INTS(s.N, s.C, s.S, n));
    CLV__ARGS(list, group_launch(list, "batch_norm_slabs_backward_apply", n * s.C, false), io,
              "o0=T_DX o1 o2 i0=T_Y i1=T_X i2 i3 i4 w", .part = parts,
              CLV__INTS(s.N, s.C, s.S, n, clv__has_in(io, B_WEIGHT), attrs_of(io)->is_var),
              CLV__FLOATS(attrs_of(io)->eps, count_of(io)));
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const double n = (double)clv__numel(&io->in[0]);
    *cost = io->op == &clv__op_batch_norm            ? (clv__cost){7 * n, 12 * n}
            : io->op == &clv__op_batch_norm_backward ? (clv__cost){8 * n, 20 * n}
                                                     : (clv__cost){2 * n, 8 * n};
}

/** Where a channel's elements lie side by side. */
static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[0].shape);
    return device->max_work_group >= SMALL_SLAB_ITEMS && s.S >= 8 && s.N * s.C > 0 &&
           clv__tile_local_bytes(device) >= 2 * sizeof(float) * (uint64_t)slab_items(device) &&
           clv__loops_fit(device, 64 + (3 * SLAB + 1) * slabs_of(device, &s));
}

/** A unit of the device without a channel has nothing to do, and one with few of them waits for memory, the longer the more it could move:
 *  an H200's reached 0.3 of its rate with one channel each, half with two to four, and slabs 0.85. Fitted to its nodes of resnet18,
 *  resnet50 and mobilenet_v2, batch 64. */
static double groups_rank(const clv_device_info *device, const clv__op_io *io) {
    const double fast = 36e9,
                 waits = 3; // bytes a second of such a unit; channels of one whose memory is half idle
    const double C = (double)sizes_of(&io->in[0].shape).C, units = clv__lanes_units(device);
    const double known = device->peak_bytes_per_second / units;
    const double share = known > 0 && known < fast ? known / fast : 1;
    const double rank = 0.06 * fmax(1 + share * waits * units / C, units / C);
    return clv__threads(device) ? 2 : fmin(rank, 0.9); // an item a channel is slower than a group
}

/** Of several slabs. */
static bool slabs_support(const clv_device_info *device, const clv__op_io *io) {
    const norm_sizes s = sizes_of(&io->in[0].shape);
    return groups_support(device, io) && slabs_of(device, &s) > 1;
}

/** No unit is idle, but what is read is read twice (16 bytes an element instead of 12), and there is one more launch. */
static double slabs_rank(const clv_device_info *device, const clv__op_io *io) {
    clv__cost all;
    cost(io, &all);
    return clv__threads(device) ? 2 : 0.08 * (1 + clv__lanes_launch_share(device, all.bytes));
}

static bool planes_support(const clv_device_info *device, const clv__op_io *io) {
    norm_sizes s = sizes_of(&io->in[0].shape);
    return clv__threads(device) && s.S >= 16 && s.N * s.C > 0 && clv__loops_fit(device, 2 * s.N) &&
           clv__loops_fit(device, s.S / 16 * 2 + 64);
}

/** Four neighbours are of two channels at most. */
static bool fours_support(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    return sizes_of(&io->in[X].shape).S >= 4;
}

static bool columns_support(const clv_device_info *device, const clv__op_io *io) {
    norm_sizes s = sizes_of(&io->in[0].shape);
    // Ragged vectors may take sixteen turns to load.
    return clv__threads(device) && s.S == 1 && s.C >= 8 &&
           clv__loops_fit(device, s.N * (s.C % 16 ? 34 : 2) + 64);
}

static const clv__variant train_variants[] = {
    {"plain", .lower = train_plain},
    {"planes", planes_support, .lower = train_planes, .relative = 0.1, .number = PLANES},
    {"columns", columns_support, .lower = train_columns, .relative = 0.1},
    {"groups", groups_support, groups_rank, .lower = train_groups, .number = CLV__BY_GROUPS},
    {"slabs", slabs_support, slabs_rank, .lower = train_slabs},
    {0}};
static const clv__variant update_variants[] = {{"plain", .lower = update_plain}, {0}};
static const clv__variant eval_variants[] = {
    {"plain", .lower = apply},
    {"fours", fours_support, .lower = apply, .relative = 0.5, .lanes = true, .number = FOURS},
    {"planes", planes_support, .lower = apply, .relative = 0.1, .number = PLANES},
    {0}};
static const clv__variant backward_variants[] = {
    {"plain", .lower = backward_plain},
    {"planes", planes_support, .lower = backward_planes, .relative = 0.1, .number = PLANES},
    {"columns", columns_support, .lower = backward_columns, .relative = 0.1},
    {"groups", groups_support, groups_rank, .lower = backward_groups, .number = CLV__BY_GROUPS},
    {"slabs", slabs_support, slabs_rank, .lower = backward_slabs},
    {0}};

// ---- references -------------------------------------------------------------------------------------------

/** Element i of the N*S of channel c. */
static int64_t element(const norm_sizes *s, int64_t c, int64_t i) {
    return (i / s->S * s->C + c) * s->S + i % s->S;
}

static void normalise(const clv__ref *ref, int64_t c, double mean, double rstd) {
    const norm_sizes s = sizes_of(&ref->io->in[X].shape);
    const double weight = ref->in[WEIGHT] ? ref->in[WEIGHT][c] : 1,
                 bias = ref->in[BIAS] ? ref->in[BIAS][c] : 0;
    for (int64_t i = 0; i < s.N * s.S; i++)
        ref->out[Y][element(&s, c, i)] = (ref->in[X][element(&s, c, i)] - mean) * rstd * weight + bias;
}

static void train_reference(const clv__ref *ref) {
    const norm_sizes s = sizes_of(&ref->io->in[X].shape);
    const int64_t M = s.N * s.S;
    for (int64_t c = 0; c < s.C; c++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < M; i++) mean += ref->in[X][element(&s, c, i)];
        mean /= (double)M;
        for (int64_t i = 0; i < M; i++) square += pow(ref->in[X][element(&s, c, i)] - mean, 2);
        const double rstd = 1 / sqrt(square / (double)M + (double)attrs_of(ref->io)->eps);
        normalise(ref, c, mean, rstd);
        ref->out[MEAN][c] = mean;
        ref->out[RSTD][c] = rstd;
        ref->out[VAR][c] = square / (double)(M - 1);
    }
}

static void update_reference(const clv__ref *ref) {
    const double momentum = (double)attrs_of(ref->io)->momentum;
    for (int i = 0; i < ref->io->n_in; i++) {
        if (i % U_GROUP > U_VAR || !ref->in[i]) continue;
        const double *batch = ref->in[i + U_BATCH_MEAN];
        for (int64_t c = 0; c < clv__numel(&ref->io->in[i]); c++)
            ref->in[i][c] = (1 - momentum) * ref->in[i][c] + momentum * batch[c];
    }
}

static void eval_reference(const clv__ref *ref) {
    norm_sizes s = sizes_of(&ref->io->in[X].shape);
    for (int64_t c = 0; c < s.C; c++)
        normalise(ref, c, ref->in[RUNNING_MEAN][c],
                  1 / sqrt(ref->in[RUNNING_VAR][c] + (double)attrs_of(ref->io)->eps));
}

static void backward_reference(const clv__ref *ref) {
    norm_sizes s = sizes_of(&ref->io->in[B_X].shape);
    bool is_var = attrs_of(ref->io)->is_var;
    double M = (double)(s.N * s.S);
    for (int64_t c = 0; c < s.C; c++) {
        double mean = ref->in[B_MEAN][c], spread = ref->in[B_SPREAD][c], sum = 0, product = 0;
        double rstd = is_var ? 1 / sqrt(spread + (double)attrs_of(ref->io)->eps) : spread;
        double weight = ref->in[B_WEIGHT] ? ref->in[B_WEIGHT][c] : 1;
        for (int64_t i = 0; i < s.N * s.S; i++) {
            const int64_t at = element(&s, c, i);
            sum += ref->in[B_DY][at];
            product += ref->in[B_DY][at] * (ref->in[B_X][at] - mean) * rstd;
        }
        ref->out[B_DBIAS][c] = sum;
        ref->out[B_DWEIGHT][c] = product;
        for (int64_t i = 0; i < s.N * s.S; i++) {
            const int64_t at = element(&s, c, i);
            double g = ref->in[B_DY][at];
            if (!is_var) g -= (sum + (ref->in[B_X][at] - mean) * rstd * product) / M;
            ref->out[B_DX][at] = weight * rstd * g;
        }
    }
}

static int64_t per_channel(const clv__op_io *io) {
    norm_sizes s = sizes_of(&io->in[0].shape);
    return s.N * s.S;
}

// ---- samples ----------------------------------------------------------------------------------------------

// Of batch_norm; the other ops take them and go on.
#define BATCH_NORM(lo, hi)                                                                                   \
    .attrs = &(norm_attrs){.momentum = 0.1f, .eps = 1e-5f}, .n_in = 3,                                       \
    .fill = {{CLV__FILL_UNIFORM, lo, hi}, {CLV__FILL_UNIFORM, 0.5, 2}}
#define SIZES(C, ...) .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(C), CLV__DIMS(C)}, BATCH_NORM(-1, 1)
static const clv__sample_row samples[] = {
    {"images", SIZES(5, 3, 5, 4, 7), .quick = true},
    {"[N,C]", SIZES(19, 9, 19), .quick = true},
    {"small images", SIZES(3, 4, 3, 2, 3), .quick = true},
    {"two values", SIZES(1, 2, 1)},
    {"one image of two pixels", SIZES(2, 1, 2, 1, 2)},
    {"[N,C], 8 channels", SIZES(8, 5, 8)},
    {"[N,C], 33 channels", SIZES(33, 17, 33)},
    {"[N,C,L]", SIZES(3, 2, 3, 17)},
    {"planes of 16", SIZES(2, 2, 2, 4, 4)},
    {"planes of 289", SIZES(3, 2, 3, 17, 17)},
    {"many small planes", SIZES(13, 41, 13, 4, 5)},
    {"mean far from zero", .in = {CLV__DIMS(4, 3, 6, 6), CLV__DIMS(3), CLV__DIMS(3)}, BATCH_NORM(999, 1001)},
    {"no weight and bias", SIZES(3, 2, 3, 5, 5), .left_out = 1u << WEIGHT | 1u << BIAS},
    {"[N,C], nothing optional", SIZES(16, 4, 16), .left_out = 1u << WEIGHT | 1u << BIAS},
    {"no channels", SIZES(0, 2, 0, 3, 3)},
    {"more than a group keeps in registers", SIZES(2, 11, 2, 31, 29)},
    {"more than a group keeps", SIZES(2, 17, 2, 31, 31)},
    {"large images", SIZES(1, 3, 1, 119, 123)}, // more elements than loops may turn
    {"a large batch", SIZES(2, 16411, 2)},
    {"a large batch, ragged vectors", SIZES(9, 2053, 9)},
    {"a large batch of small images", .in = {CLV__DIMS(35003, 1, 2), CLV__DIMS(1), CLV__DIMS(1)},
     BATCH_NORM(99, 101)},
    {0},
};

static void eval_adapt(clv__sample *out) {
    out->n_in = 5;
    out->in[RUNNING_MEAN] = out->in[RUNNING_VAR] = clv__f32(CLV_SHAPE(out->in[X].shape.dims[1]));
    out->fill[RUNNING_MEAN] = out->fill[X];
    out->fill[RUNNING_VAR] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 2};
}

static const clv__sample_row update_samples[] = {
#define UPDATES(momentum)                                                                                    \
    .attrs = &(norm_attrs){momentum, 1e-5f, 0}, .fill = {[U_VAR] = {CLV__FILL_UNIFORM, 0.5, 2}}, .n_in = 4
    {"both", {[U_BATCH_MEAN] = CLV__DIMS(33)}, UPDATES(0.1f), .quick = true},
    {"mean alone", {[U_BATCH_MEAN] = CLV__DIMS(5)}, UPDATES(0.75f), .left_out = 1u << U_VAR},
    {"var alone", {[U_BATCH_MEAN] = CLV__DIMS(1)}, UPDATES(0.75f), .left_out = 1u << U_MEAN},
    {"momentum 1", {[U_BATCH_MEAN] = CLV__DIMS(16)}, UPDATES(1)},
    {"no channels", {[U_BATCH_MEAN] = CLV__DIMS(0)}, UPDATES(0.1f)},
    {"three layers", {[U_BATCH_MEAN] = CLV__DIMS(3)}, UPDATES(0.1f), .quick = true},
    {"fourteen layers", {[U_BATCH_MEAN] = CLV__DIMS(14)}, UPDATES(0.25f)},
    {0},
};

/** Of several layers the others have one, two, and more channels fewer. */
static void update_adapt(clv__sample *out) {
    const int n = strstr(out->label, "layers") ? (int)out->in[U_BATCH_MEAN].shape.dims[0] : 1;
    out->fill[U_BATCH_VAR] = out->fill[U_VAR];
    out->n_in = n * U_GROUP;
    for (int i = 0; i < out->n_in; i++) {
        const int which = i % U_GROUP;
        if (which <= U_VAR && out->in[which].dtype == CLV_DTYPE_NONE) continue;
        out->in[i] = clv__f32(CLV_SHAPE(out->in[U_BATCH_MEAN].shape.dims[0] - i / U_GROUP));
        out->fill[i] = out->fill[which];
    }
}

static bool backward_sample(const clv__op *op, int i, clv__sample *out) {
    (void)op;
    clv__sample forward;
    if (i < 0 || !clv__op_sample(&clv__op_batch_norm, i / 2, &forward)) return false;
    const bool is_var = i % 2;
    *out = forward;
    snprintf(out->label, sizeof out->label, "%.80s, %s", forward.label, is_var ? "evaluation" : "training");
    memcpy(out->attrs, &(norm_attrs){.momentum = 0.1f, .eps = 1e-5f, .is_var = is_var}, sizeof(norm_attrs));
    out->n_in = 5;
    out->in[B_DY] = out->in[B_X] = forward.in[X];
    out->in[B_WEIGHT] = forward.in[WEIGHT];
    out->in[B_MEAN] = out->in[B_SPREAD] = clv__f32(CLV_SHAPE(forward.in[X].shape.dims[1]));
    out->fill[B_DY] = (clv__fill){0};
    out->fill[B_X] = out->fill[B_MEAN] = forward.fill[X];
    out->fill[B_WEIGHT] = forward.fill[WEIGHT];
    out->fill[B_SPREAD] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 2};
    return true;
}

// ---- in parts ---------------------------------------------------------------------------------------------

/** Along the channels: x and what is shaped like it in its second dimension, the rest in its first. */
static void split_channels(const clv__op_io *io, const clv_shape *x, clv__split *out) {
    out->length = clv__split_length(x, 1);
    for (int k = 0; k < io->n_in; k++)
        if (clv__has_in(io, k)) out->in[k] = io->in[k].shape.rank > 1;
    for (int k = 0; k < io->n_out; k++) out->out[k] = io->out[k].shape.rank > 1;
}

static bool train_split(const clv__op_io *io, int i, clv__split *out) {
    split_channels(io, &io->in[X].shape, out);
    return i == 0;
}

/** Along the rows or the channels. */
static bool eval_split(const clv__op_io *io, int i, clv__split *out) {
    if (i == 1) split_channels(io, &io->in[X].shape, out);
    if (i == 0) {
        out->length = clv__split_length(&io->in[X].shape, 0);
        out->in[X] = out->out[Y] = 0;
    }
    return i < 2;
}

/** Along the channels, or the rows where the statistics are not the batch's. */
static bool backward_split(const clv__op_io *io, int i, clv__split *out) {
    if (i == 0) split_channels(io, &io->in[B_X].shape, out);
    if (i == 1 && attrs_of(io)->is_var) {
        out->length = clv__split_length(&io->in[B_X].shape, 0);
        out->in[B_DY] = out->in[B_X] = out->out[B_DX] = 0;
        out->out[B_DWEIGHT] = out->out[B_DBIAS] = CLV__SPLIT_SUM;
    }
    return i < 2;
}

CLV__TRAIN_OP(batch_norm_backward) = {
    .name = "batch_norm_backward",
    .inputs = CLV__INPUTS({"dy", "f32[N,C,*]"}, {"x", "like dy"}, {"weight", "f32[C]?"}, {"mean", "f32[C]"},
                          {"spread", "f32[C]"}),
    .outputs = CLV__OUTPUTS({"dx", "like x"}, {"dweight", "f32[C]"}, {"dbias", "f32[C]"}),
    .half_in = 1u << B_DY | 1u << B_X,
    .half_out = 1u << B_DX,
    .attrs_bytes = sizeof(norm_attrs),
    .inplace = 1u << B_DY | 1u << B_X, // the last launch reads of them what it writes
    .variants = backward_variants,
    .reference = backward_reference,
    .sample = CLV__TRAINS(backward_sample),
    .cost = cost,
    .reduction = per_channel,
    .split = backward_split,
};

static clv_tensor *backward_node(const clv__node *node, clv_tensor *dy, clv_tensor *mean, clv_tensor *spread,
                                 bool is_var, clv_tensor **dx) {
    norm_attrs attrs = *(const norm_attrs *)clv__node_attrs(node);
    attrs.is_var = is_var;
    clv_tensor *inputs[] = {dy, clv__node_in(node, X), clv__node_in(node, WEIGHT), mean, spread};
    clv_tensor *first = clv__node_add(&clv__op_batch_norm_backward, &attrs, inputs, 5, 1u << B_WEIGHT);
    dx[X] = first;
    dx[WEIGHT] = clv__sibling(first, B_DWEIGHT);
    dx[BIAS] = clv__sibling(first, B_DBIAS);
    return first;
}

static void train_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    if (!dy[Y]) return; // the statistics are for us alone: no gradient comes through them
    backward_node(node, dy[Y], clv__node_out(node, MEAN), clv__node_out(node, RSTD), false, dx);
}

/** y = (x - m) * w / sqrt(v + eps) + b: the statistics are inputs like others here, if somebody asks. */
static void eval_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *mean = clv__node_in(node, RUNNING_MEAN), *var = clv__node_in(node, RUNNING_VAR);
    clv_tensor *weight = clv__node_in(node, WEIGHT);
    clv_tensor *first = backward_node(node, dy[Y], mean, var, true, dx);
    if (clv__wants_grad(node, RUNNING_MEAN) || clv__wants_grad(node, RUNNING_VAR)) {
        clv_tensor *shifted = clv_add_scalar(var, ((const norm_attrs *)clv__node_attrs(node))->eps);
        clv_tensor *dweight = clv__sibling(first, B_DWEIGHT), *dbias = clv__sibling(first, B_DBIAS);
        dx[RUNNING_MEAN] = clv_neg(clv_div(weight ? clv_mul(weight, dbias) : dbias, clv_sqrt(shifted)));
        dx[RUNNING_VAR] =
            clv_mul_scalar(clv_div(weight ? clv_mul(weight, dweight) : dweight, shifted), -0.5f);
    }
}

#define FORWARD_OP                                                                                           \
    .epilogue = true, .half_in = 1u << X, .half_out = 1u << Y, .attrs_bytes = sizeof(norm_attrs),            \
    .samples = CLV__TRAINS(samples), .cost = cost
/** What the call by name has; which of two ops it makes, `training` says. */
typedef struct norm_call {
    int training;
    float momentum, eps;
} norm_call;

static clv_tensor *build(const clv__call *call);

static const clv__op *call_of(const clv__node *node, void *attrs) {
    const norm_attrs *a = clv__node_attrs(node);
    const bool training = clv__node_io(node)->op == &clv__op_batch_norm;
    *(norm_call *)attrs = (norm_call){training, a->momentum, a->eps};
    return &clv__op_batch_norm;
}

CLV__OP(batch_norm) = {
    .name = "batch_norm",
    .inputs = CLV__INPUTS({"x", "f32[N,C,*]"}, {"weight", "f32[C]?"}, {"bias", "f32[C]?"},
                          {"running_mean", "f32[C]?"}, {"running_var", "f32[C]?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(BOOL, norm_call, training, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, norm_call, momentum, "0.1"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(1)},
                                  {CLV__ATTRIBUTE(NUMBER, norm_call, eps, "1e-5"), CLV__ABOVE(0)}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .attributes_of_call = true,
    .build = build,
    .call_of = call_of,
    .infer = train_infer,
    .grad = CLV__TRAINS(train_grad),
    .variants = train_variants,
    .reference = train_reference,
    .reduction = per_channel,
    .split = train_split,
    FORWARD_OP};

static float eval_eps(const void *attrs) {
    return ((const norm_attrs *)attrs)->eps;
}

/** batch_norm_apply's formula, as a step after a convolution or a product: with it running statistics cost nothing. */
static const clv__channel_row eval_row = {
    .names = {"x", "weight", "bias", "mean", "var"},
    .absent = {[WEIGHT] = "K(1.0)", [BIAS] = "K(0.0)"},
    .values = {"mean", "scale", "bias"},
    .of_inputs = {"mean", "K(1.0) / sqrt(var + P0) * weight", "bias"},
    .expression = "(x - mean) * scale + bias",
    .p0 = eval_eps,
};

CLV__INNER_OP(batch_norm_eval) = {.name = "batch_norm_eval",
                                  .inputs = CLV__INPUTS({"x", "f32[N,C,*]"}, {"weight", "f32[C]?"},
                                                        {"bias", "f32[C]?"}, {"running_mean", "f32[C]"},
                                                        {"running_var", "f32[C]"}),
                                  .attributes = node_attributes,
                                  .outputs = CLV__OUTPUTS({"y", "like x"}),
                                  .call_of = call_of,
                                  .data = &eval_row,
                                  .channelwise = true,
                                  .grad = CLV__TRAINS(eval_grad),
                                  .variants = eval_variants,
                                  .reference = eval_reference,
                                  .adapt = CLV__TRAINS(eval_adapt),
                                  .split = eval_split,
                                  FORWARD_OP};

CLV__INNER_OP(batch_norm_update) = {
    .name = "batch_norm_update",
    .inputs = CLV__INPUTS({"running_mean", "f32[C]?"}, {"running_var", "f32[C]?"}, {"mean", "f32[C]"},
                          {"var", "f32[C]"}),
    .outputs = CLV__NO_OUTPUTS,
    .attrs_bytes = sizeof(norm_attrs),
    .groups = {.size = U_GROUP, .most = U_MOST},
    .mutates = (1u << U_MEAN | 1u << U_VAR) * UINT64_C(0x11111111111111), // of fourteen groups
    .variants = update_variants,
    .reference = update_reference,
    .samples = CLV__TRAINS(update_samples),
    .adapt = CLV__TRAINS(update_adapt),
};

static void move_running(const norm_attrs *attrs, clv_graph *graph, clv_tensor *const in[4]) {
    const clv__phase phase = graph->phase;
    graph->phase = CLV__UPDATE;
    clv__node_add(&clv__op_batch_norm_update, attrs, in, 4, 1u << U_MEAN | 1u << U_VAR);
    graph->phase = phase;
}

#ifndef CLEAVE_INFERENCE
/** By the statistics of the batch on all ranks, of which this one has a part p: the mean of means, and with it the variance
 *
 *      mean = sum(p mean_r)      var = sum(p (var_r + (mean_r - mean)^2))
 */
static clv_tensor *over_all_ranks(const norm_attrs *attrs, clv_tensor *const in[5]) {
    clv_graph *graph = clv__tensor_graph(in[X]);
    if (!graph) return NULL;
    const clv_shape shape = clv_tensor_shape(in[X]);
    const double part = graph->sync_batch_norm.part;
    int axes[CLV_MAX_RANK], n = 0;
    for (int i = 0; i < shape.rank; i++)
        if (i != 1) axes[n++] = i;
    clv_tensor *x = clv_tensor_dtype(in[X]) == CLV_DTYPE_F32 ? in[X] : clv_cast(in[X], CLV_DTYPE_F32);
    clv_tensor *own = clv_mean(x, axes, n, false), *spread = clv_var(x, axes, n, 0, false);
    clv_tensor *mean = clv__over_ranks_within(clv_mul_scalar(own, (float)part), graph->sync_batch_norm.terms);
    clv_tensor *var =
        clv__over_ranks_within(clv_mul_scalar(clv_add(spread, clv_square(clv_sub(own, mean))), (float)part),
                               graph->sync_batch_norm.terms);
    clv_tensor *y =
        clv_batch_norm(in[X], in[WEIGHT], in[BIAS], mean, var, false, attrs->momentum, attrs->eps);
    if (!y || !in[RUNNING_MEAN]) return y;
    const norm_sizes s = sizes_of(&shape);
    const double count = (double)(s.N * s.S) * graph->sync_batch_norm.rows; // of a channel
    move_running(attrs, graph,
                 (clv_tensor *[]){in[RUNNING_MEAN], in[RUNNING_VAR], mean,
                                  clv_mul_scalar(var, (float)(count / (count - 1)))});
    return y;
}
#endif

/** The running statistics are moved once in a step: by the first replica's batch, as a plain model's are by its batch. */
static void add_update(const norm_attrs *attrs, clv_tensor *y, clv_tensor *mean, clv_tensor *var) {
    clv_graph *graph = clv__tensor_graph(y);
    if (!graph || (!mean && !var) || graph->cut.replica > 0) return;
    move_running(attrs, graph, (clv_tensor *[]){mean, var, clv__sibling(y, MEAN), clv__sibling(y, VAR)});
}

static clv_tensor *build(const clv__call *call) {
    const norm_call *a = call->attrs;
    const norm_attrs attrs = {.momentum = a->momentum, .eps = a->eps};
    const uint32_t optional = 1u << WEIGHT | 1u << BIAS;
    // What evaluation cannot do without, infer names better.
    if (!a->training)
        return clv__node_add(&clv__op_batch_norm_eval, &attrs, call->in, 5,
                             optional | 1u << RUNNING_MEAN | 1u << RUNNING_VAR);
#ifndef CLEAVE_INFERENCE
    if (call->graph->sync_batch_norm.terms) return over_all_ranks(&attrs, call->in);
#endif
    clv_tensor *y = clv__node_add(&clv__op_batch_norm, &attrs, call->in, 3, optional);
    add_update(&attrs, y, call->in[RUNNING_MEAN], call->in[RUNNING_VAR]);
    return call->graph->error.status == CLV_OK ? y : NULL;
}
