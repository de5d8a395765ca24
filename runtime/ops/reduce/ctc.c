// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification: how unlikely a sequence of labels is, over all ways to place it in time. One op, whatever T is; its
// lattice of probabilities is kept for the gradient. Kernels: kernels_cl/ctc.cl. Source: Graves, Fernandez, Gomez, Schmidhuber 2006;
// torch.nn.functional.ctc_loss.
#include <math.h>
#include <stdlib.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

extern const clv__op clv__op_ctc, clv__op_ctc_loss;

typedef struct ctc_attrs {
    int blank, zero_infinity;
} ctc_attrs;

enum { X, TARGETS, INPUT_LENGTHS, TARGET_LENGTHS };                // inputs of ctc
enum { B_DY, B_X, B_TARGETS, B_INPUT, B_TARGET, B_LOSS, B_ALPHA }; // of its gradient
enum { LOSS, ALPHA };                                              // outputs of ctc

typedef struct sizes {
    int64_t T, N, C, S, L; // L places in a step
    bool padded;
    int blank, zero_infinity;
} sizes;

static sizes sizes_of(const clv__op_io *io) {
    const ctc_attrs *a = io->attrs;
    const int behind = clv__is_gradient(io);
    const clv_shape *x = &io->in[X + behind].shape, *targets = &io->in[TARGETS + behind].shape;
    const int64_t S = targets->dims[targets->rank - 1];
    return (sizes){x->dims[0], x->dims[1],         x->dims[2], S,
                   2 * S + 1,  targets->rank == 2, a->blank,   a->zero_infinity};
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const clv_shape *x = &io->in[X].shape, *targets = &io->in[TARGETS].shape;
    if (targets->rank < 1 || targets->rank > 2)
        CLV_FAIL(error, CLV_E_SHAPE, "targets have %d dimensions, they must have 1 or 2", targets->rank);
    const sizes z = sizes_of(io);
    if (z.T < 1) CLV_FAIL(error, CLV_E_SHAPE, "x has no steps");
    if (z.padded && targets->dims[0] != z.N)
        CLV_FAIL(error, CLV_E_SHAPE, "targets have %lld rows, x has %lld samples",
                 (long long)targets->dims[0], (long long)z.N);
    if (z.blank >= z.C)
        CLV_FAIL(error, CLV_E_VALUE, "blank is %d, x has %lld classes", z.blank, (long long)z.C);
    if (clv__max64(z.T, 1) * clv__max64(z.N, 1) > INT32_MAX / z.L)
        CLV_FAIL(error, CLV_E_SHAPE, "%lld steps of %lld samples with %lld labels are too many",
                 (long long)x->dims[0], (long long)z.N, (long long)z.S);
    io->n_out = 2;
    io->out[LOSS] = clv__f32(CLV_SHAPE(z.N));
    io->out[ALPHA] = clv__f32(CLV_SHAPE(z.N, z.T, z.L));
    return CLV_OK;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

enum { GROUPS = 1, ITEMS = 128 }; // a number of variants; items of a sample

/** A launch over the samples, for the steps from begin to before end. */
static clv__launch *over_samples(clv__launches *list, const clv__op_io *io, const sizes *z,
                                 const char *entry) {
    clv__launch *launch = clv__launch_kernel(list, "ctc", entry);
    const bool groups = io->variant->number == GROUPS;
    if (groups) {
        clv__launch_define(list, launch, "ITEMS", "%d", ITEMS);
        clv__launch_grid(launch, (size_t)z->N * ITEMS, ITEMS);
    } else {
        clv__launch_over(list, launch, CLV__TASKS, z->N);
    }
    return launch;
}

/** Steps of one launch, of a device whose loops turn so often and no more. */
static int64_t steps_of(const clv_device_info *device, const sizes *z) {
    const int64_t turns = (int64_t)device->loop_turns / clv__max64(z->L, 1);
    return device->loop_turns ? clv__max64(turns, 1) : z->T;
}

static void lower(clv__launches *list, const clv__op_io *io) {
    const sizes z = sizes_of(io);
    const int64_t steps = steps_of(list->device, &z);
    for (int64_t t = 0; t < z.T && z.N; t += steps)
        CLV__ARGS(
            list, over_samples(list, io, &z, "ctc_alpha"), io, "o0 o1 i0=T_X i1 i2 i3",
            CLV__INTS(z.T, z.N, z.C, z.S, z.padded, z.blank, z.zero_infinity, t, clv__min64(t + steps, z.T)));
}

static void backward_lower(clv__launches *list, const clv__op_io *io) {
    const sizes z = sizes_of(io);
    const int64_t steps = steps_of(list->device, &z), places = z.T * z.N * z.L, n = clv__numel(&io->out[0]);
    if (n == 0) return;
    const clv__part share = clv__floats(list, places), row = clv__floats(list, z.N * 2 * z.L),
                    chain = clv__floats(list, clv__max64(z.N * z.S, 1)); // ints
    for (int64_t end = z.T; end > 0; end -= steps) {
        clv__launch *launch = over_samples(list, io, &z, "ctc_beta");
        clv__arg_part(list, launch, share);
        CLV__ARGS(list, launch, io, "w i1=T_X i2 i3 i4 i5 i6", .part = row,
                  CLV__INTS(z.T, z.N, z.C, z.S, z.padded, z.blank, clv__max64(end - steps, 0), end));
    }
    CLV__LAUNCH(list, io, "ctc", "ctc_chain", CLV__ELEMENTS, z.N * z.S, "w i2 i3 i4", .part = chain,
                CLV__INTS(z.T, z.N, z.C, z.S, z.padded, z.blank));
    clv__launch_fill(list, 0, (size_t)n * clv_dtype_bytes(io->out[0].dtype), 0);
    clv__launch *launch = CLV__LAUNCH(list, io, "ctc", "ctc_put", CLV__ELEMENTS, z.T * z.N * (z.S + 1),
                                      "o0=T_DX i0 i2 i4 w", .part = share);
    clv__arg_part(list, launch, chain);
    CLV__ARGS_I32(list, launch, z.T, z.N, z.C, z.S, z.padded, z.blank);
}

static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    return device->max_work_group >= ITEMS && device->loop_turns == 0;
}

static const clv__variant variants[] = {
    {"plain", .lower = lower},
    {"groups", groups_support, .lower = lower, .relative = 0.1, .lanes = true, .number = GROUPS},
    {0}};
static const clv__variant backward_variants[] = {
    {"plain", .lower = backward_lower},
    {"groups", groups_support, .lower = backward_lower, .relative = 0.1, .lanes = true, .number = GROUPS},
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

/** One sample: its labels, and how many and steps there are within what there is. */
typedef struct sample {
    const double *labels;
    int64_t n, steps, places;
    bool good;
} sample;

static bool is_label(const sizes *z, double label) {
    return label >= 0 && label < (double)z->C && label != z->blank;
}

static int64_t within(double v, int64_t most) {
    return v < 0 ? 0 : v > (double)most ? most : (int64_t)v;
}

static sample sample_of(const sizes *z, double *const *in, int64_t n) {
    int64_t base = z->padded ? n * z->S : 0;
    for (int64_t i = 0; i < n && !z->padded; i++)
        base = clv__min64(z->S, base + within(in[TARGET_LENGTHS][i], z->S));
    const int64_t labels = within(in[TARGET_LENGTHS][n], z->padded ? z->S : z->S - base);
    sample s = {in[TARGETS] + base, n, within(in[INPUT_LENGTHS][n], z->T), 2 * labels + 1, true};
    s.good = (double)s.steps == in[INPUT_LENGTHS][n] && (double)labels == in[TARGET_LENGTHS][n];
    for (int64_t j = 0; j < labels; j++) s.good = s.good && is_label(z, s.labels[j]);
    return s;
}

/** log p of the class at a place of a step. */
static double emitted(const sizes *z, const sample *s, const double *x, int64_t t, int64_t place) {
    const double label = place % 2 ? s->labels[place / 2] : z->blank;
    return x[(t * z->N + s->n) * z->C + (is_label(z, label) ? (int64_t)label : z->blank)];
}

static bool skips(const sample *s, int64_t place) {
    return place % 2 && place > 1 && s->labels[place / 2] != s->labels[place / 2 - 1];
}

static double log_add(double a, double b) {
    const double most = fmax(a, b);
    return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

static void reference(const clv__ref *ref) {
    const sizes z = sizes_of(ref->io);
    for (int64_t n = 0; n < z.N; n++) {
        const sample s = sample_of(&z, ref->in, n);
        double *alpha = ref->out[ALPHA] + n * z.T * z.L, loss = s.places == 1 ? 0 : INFINITY;
        for (int64_t t = 0; t < z.T; t++)
            for (int64_t k = 0; k < z.L; k++) {
                const double *before = alpha + (t - 1) * z.L + k;
                double v = -INFINITY;
                if (t < s.steps && k < s.places && (t > 0 || k < 2)) {
                    if (t > 0) v = log_add(*before, k > 0 ? before[-1] : -INFINITY);
                    if (t > 0 && skips(&s, k)) v = log_add(v, before[-2]);
                    v = (t > 0 ? v : 0) + emitted(&z, &s, ref->in[X], t, k);
                }
                alpha[t * z.L + k] = v;
            }
        if (s.steps > 0) {
            const double *last = alpha + (s.steps - 1) * z.L + s.places - 1;
            loss = -log_add(*last, s.places > 1 ? last[-1] : -INFINITY);
        }
        if (z.zero_infinity && loss == INFINITY) loss = 0;
        ref->out[LOSS][n] = s.good ? loss : NAN;
    }
}

static void backward_reference(const clv__ref *ref) {
    const sizes z = sizes_of(ref->io);
    double *const *in = ref->in + B_X, *rows = malloc((size_t)(2 * z.L) * sizeof *rows);
    clv__ref_zero(ref);
    for (int64_t n = 0; n < z.N && rows; n++) {
        const sample s = sample_of(&z, in, n);
        for (int64_t t = s.steps - 1; t >= 0; t--)
            for (int64_t k = 0; k < s.places; k++) {
                const double *after = rows + (t + 1) % 2 * z.L + k;
                double v = k >= s.places - 2 ? 0 : -INFINITY;
                if (t < s.steps - 1) v = *after + emitted(&z, &s, in[X], t + 1, k);
                if (t < s.steps - 1 && k + 1 < s.places)
                    v = log_add(v, after[1] + emitted(&z, &s, in[X], t + 1, k + 1));
                if (t < s.steps - 1 && k + 2 < s.places && skips(&s, k + 2))
                    v = log_add(v, after[2] + emitted(&z, &s, in[X], t + 1, k + 2));
                rows[t % 2 * z.L + k] = v;
                const double share = exp(ref->in[B_ALPHA][(n * z.T + t) * z.L + k] + v + ref->in[B_LOSS][n]);
                const double label = k % 2 ? s.labels[k / 2] : z.blank;
                if (k % 2 == 0 || is_label(&z, label))
                    ref->out[0][(t * z.N + n) * z.C + (int64_t)label] -= share * ref->in[B_DY][n];
            }
    }
    free(rows);
}

static void cost(const clv__op_io *io, clv__cost *out) {
    const sizes z = sizes_of(io);
    const double places = (double)(z.T * z.N) * (double)z.L;
    *out = (clv__cost){10 * places, 4 * (2 * places + (double)(z.T * z.N * z.C))};
}

/** Each step rounds a logarithm that has all steps before in it, and what is off goes on to the next one: as T by T terms. */
static int64_t reduction(const clv__op_io *io) {
    const sizes z = sizes_of(io);
    return z.T * z.T + z.L;
}

// ---- samples --------------------------------------------------------------------------------------------------------

// What it is about; steps, samples, classes, labels; the least and the largest of labels, steps and labels of a sample.
#define ROW(what, T, N, C, targets, least, most, from, to, fewest, largest)                                  \
    .label = what, .in = {CLV__DIMS(T, N, C), CLV__DIMS targets, CLV__DIMS(N), CLV__DIMS(N)}, .n_in = 4,     \
    .i32 = 14,                                                                                               \
    .fill = {{CLV__FILL_UNIFORM, -1, -0.1},                                                                  \
             {CLV__FILL_INTEGER, least, most},                                                               \
             {CLV__FILL_INTEGER, from, to},                                                                  \
             {CLV__FILL_INTEGER, fewest, largest}}
#define ATTRS(blank, zero)                                                                                   \
    .attrs = &(ctc_attrs) {                                                                                  \
        blank, zero                                                                                          \
    }
static const clv__sample_row samples[] = {
    {ROW("padded", 9, 3, 5, (3, 4), 1, 4, 8, 9, 1, 4), .quick = true},
    {ROW("one after the other", 9, 3, 5, (12), 1, 4, 9, 9.25, 3, 4), .quick = true},
    {ROW("blank in the middle, few classes", 11, 2, 3, (2, 5), 0, 0.25, 11, 11.25, 2, 5), ATTRS(1, 0),
     .quick = true},
    {ROW("one step, one label", 1, 2, 2, (2, 1), 1, 1.25, 1, 1.25, 0, 1)},
    {ROW("no labels", 4, 2, 3, (2, 0), 1, 2, 3, 4, -0.25, 0.25)},
    {ROW("more labels than sixteen", 71, 2, 7, (2, 33), 1, 6, 69, 71, 20, 33)},
    {ROW("more places than a group", 150, 2, 4, (2, 70), 1, 3, 145, 150, 66, 70), .no_gradient = true},
    {ROW("too few steps", 3, 4, 4, (4, 5), 1, 3, 0, 3, 3, 5), .no_gradient = true},
    {ROW("too few steps, zero", 3, 4, 4, (4, 5), 1, 3, 0, 3, 3, 5), ATTRS(0, 1), .no_gradient = true},
    {ROW("labels and lengths from outside", 6, 40, 4, (40, 3), -1, 5, -1, 8, -1, 5), .no_gradient = true},
    {ROW("lengths from outside, one after the other", 6, 5, 4, (7), 1, 3, 1, 7, -1, 4), .no_gradient = true},
    {ROW("no samples", 6, 0, 4, (0, 3), 1, 3, 1, 6, 1, 3), .no_gradient = true},
    {ROW("many samples", 5, 67, 3, (67, 2), 1, 2, 4, 5, 0, 2)},
    {0}};

static void backward_adapt(clv__sample *out) {
    out->fill[B_DY] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 2};
    out->fill[B_LOSS] = (clv__fill){CLV__FILL_UNIFORM, 0, 1};
    out->fill[B_ALPHA] = (clv__fill){CLV__FILL_UNIFORM, -1, 0};
}

/** Along the samples, where each has a row of targets. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const sizes z = sizes_of(io);
    out->length = z.padded ? z.N : 0;
    out->in[X] = 1;
    out->in[TARGETS] = out->in[INPUT_LENGTHS] = out->in[TARGET_LENGTHS] = 0;
    out->out[LOSS] = out->out[ALPHA] = 0;
    return i == 0;
}

// ---- the ops --------------------------------------------------------------------------------------------------------

CLV__TRAIN_OP(ctc_backward) = {
    CLV__GRADIENT_OF(ctc, "d0 i0 i1 i2 i3 o0 o1 g0"),
    .attrs_bytes = sizeof(ctc_attrs),
    .half_in = 1u << B_X,
    .half_out = 1,
    .variants = backward_variants,
    .reference = backward_reference,
    .adapt = CLV__TRAINS(backward_adapt),
    .cost = cost,
    .reduction = reduction,
};

typedef struct loss_call {
    int blank, zero_infinity, reduction;
} loss_call;

/** By name it is the loss without a reduction. */
static const clv__op *call_of(const clv__node *node, void *attrs) {
    const ctc_attrs *a = clv__node_attrs(node);
    *(loss_call *)attrs = (loss_call){a->blank, a->zero_infinity, CLV_REDUCTION_NONE};
    return &clv__op_ctc_loss;
}

CLV__INNER_OP(ctc) = {
    .name = "ctc",
    .inputs = CLV__INPUTS({"x", "f32[T,N,C]"}, {"targets", "int"}, {"input_lengths", "int[N]"},
                          {"target_lengths", "int[N]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, ctc_attrs, blank, "0"), CLV__AT_LEAST(0)},
                                  {CLV__ATTRIBUTE(BOOL, ctc_attrs, zero_infinity, "0")}),
    .outputs = CLV__OUTPUTS({"loss", "f32[N]"}, {"alpha", "f32[N,T,_]"}),
    .attrs_bytes = sizeof(ctc_attrs),
    .call_of = call_of,
    .half_in = 1,
    .autocast = CLV__CAST_FLOAT,
    .infer = infer,
    CLV__GRADIENT(ctc),
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .cost = cost,
    .reduction = reduction,
    .split = split,
};

static clv_tensor *build(const clv__call *call) {
    const loss_call *a = call->attrs;
    clv_tensor *loss = clv__node_add(&clv__op_ctc, &(ctc_attrs){a->blank, a->zero_infinity}, call->in, 4, 0);
    if (a->reduction == CLV_REDUCTION_NONE) return loss;
    if (a->reduction == CLV_REDUCTION_SUM) return clv_sum(loss, NULL, 0, false);
    clv_tensor *labels = clv_clamp(clv_cast(call->in[TARGET_LENGTHS], CLV_DTYPE_F32), 1, INFINITY);
    return clv_mean(clv_div(loss, labels), NULL, 0, false);
}

CLV__COMPOSITE(ctc_loss) = {
    .name = "ctc_loss",
    .inputs = CLV__INPUTS({"x", "f32[T,N,C]"}, {"targets", "int"}, {"input_lengths", "int[N]"},
                          {"target_lengths", "int[N]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, loss_call, blank, "0"), CLV__AT_LEAST(0)},
                                  {CLV__ATTRIBUTE(BOOL, loss_call, zero_infinity, "0")},
                                  {CLV__ATTRIBUTE(INT, loss_call, reduction, "0"), CLV__AT_LEAST(0),
                                   CLV__AT_MOST(2)}),
    .outputs = CLV__OUTPUTS({"loss", "f32"}),
    CLV__SAMPLES({ROW("padded", 9, 3, 5, (3, 4), 1, 4, 8, 9, 1, 4), .quick = true},
                 {ROW("sum", 9, 3, 5, (12), 1, 4, 9, 9.25, 3, 4),
                  .attrs = &(loss_call){.reduction = CLV_REDUCTION_SUM}}),
    CLV__CALL(loss_call, build)};
