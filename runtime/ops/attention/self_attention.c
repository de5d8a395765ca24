// SPDX-License-Identifier: Apache-2.0
// Attention of a sequence to itself, many heads side by side, as one op: what a linear layer makes of the sequence is read where it
// lies, and nothing of the size of the scores is kept for the gradient, which makes them again. Kernels:
// kernels_cl/self_attention.cl. Heads too large for that, and dropout, are made of nodes (attention.c).
#include <math.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/lower.h"
#include "ops/attention/self_attention.h"

typedef struct self_attention_attrs {
    int64_t heads;
    int32_t causal;
    float scale;
    int64_t kv_heads; // 0: as many
} self_attention_attrs;

enum { X, MASK };                   // inputs of self_attention
enum { B_DY, B_X, B_MASK };         // inputs of self_attention_backward
enum { Q, K, V };                   // parts of x and of its gradient
enum { USUAL, LOCAL, TILE_GLOBAL }; // numbers of variants

static int64_t kv_heads_of(const self_attention_attrs *attrs) {
    return attrs->kv_heads ? attrs->kv_heads : attrs->heads;
}

clv__sequences clv__sequences_of(const clv__op_io *io) {
    const self_attention_attrs *attrs = io->attrs;
    const int64_t keys = kv_heads_of(attrs);
    const bool backward = clv__is_gradient(io);
    const clv_shape *x = &io->in[backward ? B_X : X].shape;
    const int mask = backward ? B_MASK : MASK;
    clv__sequences s = {.N = x->dims[0],
                        .T = x->dims[1],
                        .H = attrs->heads,
                        .G = keys,
                        .E = x->dims[2] / (attrs->heads + 2 * keys),
                        .causal = attrs->causal,
                        .backward = backward,
                        .scale = attrs->scale,
                        .masked = clv__has_in(io, mask)};
    for (int64_t d = 2, each = s.T; s.masked && d >= 0; d--) {
        const int64_t n = io->in[mask].shape.dims[d];
        s.mask[d] = n > 1 ? each : 0;
        each *= n;
    }
    return s;
}

void clv__sequences_mask(clv__launches *list, clv__launch *launch, const clv__op_io *io, int64_t first) {
    const clv__sequences s = clv__sequences_of(io);
    if (!s.masked) return;
    clv__launch_define(list, launch, "MASKED", "1");
    clv__arg_in(list, launch, s.backward ? B_MASK : MASK);
    CLV__ARGS_I32(list, launch, first * s.mask[0], s.mask[0], s.mask[1], s.mask[2]);
}

// ---- shape rule -----------------------------------------------------------------------------------------------------

static bool part_evenly(int64_t width, int64_t heads, int64_t keys) {
    return width > 0 && heads > 0 && heads <= width && keys > 0 && heads % keys == 0 &&
           width % (heads + 2 * keys) == 0;
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const self_attention_attrs *attrs = io->attrs;
    const int64_t width = io->in[X].shape.dims[2], keys = kv_heads_of(attrs);
    if (!part_evenly(width, attrs->heads, keys))
        CLV_FAIL(error, CLV_E_VALUE,
                 "%lld columns cannot be divided into queries of %lld heads, and keys and values of %lld",
                 (long long)width, (long long)attrs->heads, (long long)keys);
    const clv_shape *x = &io->in[X].shape, *mask = &io->in[MASK].shape;
    const int64_t sizes[] = {x->dims[0], attrs->heads, x->dims[1], x->dims[1]};
    char text[128];
    if (clv__has_in(io, MASK)) CLV_TRY(clv__want_dtype(io, MASK, "attn_mask", CLV_DTYPE_F32, error));
    if (clv__has_in(io, MASK) && mask->rank != 4)
        CLV_FAIL(error, CLV_E_SHAPE, "attn_mask has %d dimensions, it must have 4", mask->rank);
    for (int d = 0; clv__has_in(io, MASK) && d < 4; d++)
        if (mask->dims[d] != sizes[d] && (mask->dims[d] != 1 || d == 3))
            CLV_FAIL(error, CLV_E_SHAPE, "attn_mask %s must be [N,H,T,T], all but the last of them perhaps 1",
                     clv_shape_text(mask, text, sizeof text));
    CLV_TRY(clv__one_out(io, io->in[X]));
    io->out[0].shape.dims[2] = width / (attrs->heads + 2 * keys) * attrs->heads;
    return CLV_OK;
}

// ---- plain, and local: GPU-class ------------------------------------------------------------------------------------

/** Where a product's matrices are: a part of x or its gradient, dy or y, or one of the matrices [T,T] in the workspace. */
typedef enum place { OF_X, OF_DY, OF_RESULT, OF_WORKSPACE } place;
typedef struct matrices {
    place place;
    int part;         // Q, K or V of what has three
    clv__part scores; // of OF_WORKSPACE
    bool transposed;
} matrices;

typedef enum left {
    LEAVES_NOTHING,
    LEAVES_RESULTS,
    LEAVES_LATER,
    LEAVES_EARLIER
} left; // as in the kernel file

/** What the launches of some sequences share: their scores, and gradients of those, lie in the workspace together. */
typedef struct stretch {
    const clv__op_io *io;
    clv__sequences s; // s.N of them
    int64_t first;
    bool local; // in groups that share local memory
} stretch;

enum { EDGE = 32, SIDE = 8, ITEMS = 64 }; // of the kernel file
// floats: sequences are done in runs of no more, but of one at least, to stay in caches
enum { MOST_SCORES = 1 << 20 };

static clv__launch *launch_of(clv__launches *list, const stretch *run, const char *plain, const char *local) {
    clv__launch *launch = clv__launch_kernel(list, "self_attention", run->local ? local : plain);
    clv__tile_define(list, launch);
    return launch;
}

static void matrices_arg(clv__launches *list, clv__launch *launch, const stretch *run, const matrices *m,
                         const char *macro) {
    const clv__op_io *io = run->io;
    if (m->place == OF_WORKSPACE)
        clv__arg_part(list, launch, m->scores);
    else if (m->place == OF_RESULT)
        clv__arg_out_as(list, launch, io, 0, macro);
    else
        clv__arg_in_as(list, launch, io, m->place == OF_DY ? B_DY : run->s.backward ? B_X : X, macro);
}

/** How far the matrices of heads are apart. */
static int64_t head_stride(const stretch *run, const matrices *m) {
    return m->place == OF_WORKSPACE ? run->s.T * run->s.T : run->s.E;
}

/** Of keys, values and their gradients there are as many as G, one for H/G heads of queries. */
static bool is_shared(const stretch *run, const matrices *m) {
    return m->part != Q && (m->place == OF_X || (m->place == OF_RESULT && run->s.backward));
}

/** offset, n, h (times `each`), and the strides of rows and, of what is read, columns. */
static void strides_arg(clv__launches *list, clv__launch *launch, const stretch *run, const matrices *m,
                        int64_t each, bool columns) {
    const clv__sequences *s = &run->s;
    bool three = m->place == OF_X || (m->place == OF_RESULT && s->backward);
    const int64_t D = s->H * s->E, h = head_stride(run, m);
    int64_t row = three ? D + 2 * s->G * s->E : D, n = s->T * row;
    int64_t offset = run->first * n + (m->part == Q ? 0 : D) + (m->part == V ? s->G * s->E : 0);
    if (m->place == OF_WORKSPACE) {
        row = s->T;
        n = s->H * h;
        offset = 0;
    }
    CLV__ARGS_I32(list, launch, offset, n, h * each, m->transposed ? 1 : row);
    if (columns) clv__arg_i32(list, launch, m->transposed ? row : 1);
}

/** c [T][J] = a [T][K] b [K][J] for each head; of a gradient of keys or values the sum over heads that share it. */
static void product(clv__launches *list, const stretch *run, matrices c, matrices a, matrices b, int64_t J,
                    int64_t K_, left leaves) {
    const clv__sequences *s = &run->s;
    const int64_t sums = is_shared(run, &c) ? s->H / s->G : 1, heads = s->H / sums;
    clv__launch *launch = launch_of(list, run, "attend_product", "attend_product_local");
    matrices_arg(list, launch, run, &c, "T_C");
    matrices_arg(list, launch, run, &a, "T_A");
    matrices_arg(list, launch, run, &b, "T_B");
    if (!run->local) clv__arg_i32(list, launch, s->N * heads);
    CLV__ARGS_I32(list, launch, heads, s->T, J, K_);
    strides_arg(list, launch, run, &c, 1, false);
    strides_arg(list, launch, run, &a, sums, true);
    strides_arg(list, launch, run, &b, sums, true);
    clv__arg_i32(list, launch, s->causal ? leaves : LEAVES_NOTHING);
    CLV__ARGS_I32(list, launch, is_shared(run, &b) ? s->H / s->G : 1, sums, head_stride(run, &a),
                  head_stride(run, &b));
    if (run->local)
        clv__launch_grid3(launch, (size_t)clv__div_up(J, EDGE) * SIDE, (size_t)clv__div_up(s->T, EDGE) * SIDE,
                          (size_t)(s->N * heads), SIDE, SIDE, 1);
    else
        clv__launch_over(list, launch, CLV__ELEMENTS, s->N * heads * s->T * J);
}

/** The softmax, or what it does to gradients (d, NULL: not yet), in place. */
static void weigh(clv__launches *list, const stretch *run, const clv__part *d, clv__part p) {
    const clv__sequences *s = &run->s;
    const int64_t rows = s->N * s->H * s->T;
    clv__launch *launch = d ? launch_of(list, run, "attend_softmax_backward", "attend_softmax_backward_local")
                            : launch_of(list, run, "attend_softmax", "attend_softmax_local");
    if (d) clv__arg_part(list, launch, *d);
    clv__arg_part(list, launch, p);
    if (!run->local) clv__arg_i32(list, launch, rows);
    CLV__ARGS(list, launch, NULL, NULL, CLV__INTS(s->T, s->causal), CLV__FLOATS(s->scale));
    if (!d && s->masked) clv__arg_i32(list, launch, s->H);
    if (!d) clv__sequences_mask(list, launch, run->io, run->first);
    if (run->local)
        clv__launch_grid(launch, (size_t)rows * ITEMS, ITEMS);
    else
        clv__launch_over(list, launch, CLV__ELEMENTS, rows);
}

static void do_run(clv__launches *list, const stretch *run, clv__part scores, clv__part gradients) {
    const clv__sequences *s = &run->s;
    matrices q = {.place = OF_X, .part = Q}, k = {.place = OF_X, .part = K},
             kt = {.place = OF_X, .part = K, .transposed = true};
    matrices v = {.place = OF_X, .part = V}, vt = {.place = OF_X, .part = V, .transposed = true},
             dy = {.place = OF_DY};
    matrices p = {.place = OF_WORKSPACE, .scores = scores}, pt = p;
    pt.transposed = true;
    product(list, run, p, q, kt, s->T, s->E, LEAVES_RESULTS);
    weigh(list, run, NULL, p.scores);
    if (!s->backward) {
        product(list, run, (matrices){.place = OF_RESULT}, p, v, s->E, s->T, LEAVES_LATER);
        return;
    }
    matrices d = {.place = OF_WORKSPACE, .scores = gradients}, dt = d;
    dt.transposed = true;
    product(list, run, (matrices){.place = OF_RESULT, .part = V}, pt, dy, s->E, s->T, LEAVES_EARLIER);
    product(list, run, d, dy, vt, s->T, s->E, LEAVES_RESULTS);
    weigh(list, run, &d.scores, p.scores);
    product(list, run, (matrices){.place = OF_RESULT, .part = Q}, d, k, s->E, s->T, LEAVES_LATER);
    product(list, run, (matrices){.place = OF_RESULT, .part = K}, dt, q, s->E, s->T, LEAVES_EARLIER);
}

static void products(clv__launches *list, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    if (s.N * s.T == 0) return;
    const int64_t each = s.H * s.T * s.T, most = clv__even_block(s.N, 1, clv__max64(1, MOST_SCORES / each));
    const clv__part scores = clv__floats(list, most * each);
    const clv__part gradients = s.backward ? clv__floats(list, most * each) : scores;
    stretch run = {.io = io, .s = s, .local = io->variant->number == LOCAL};
    for (; run.first < s.N; run.first += run.s.N) {
        run.s.N = clv__min64(most, s.N - run.first);
        do_run(list, &run, scores, gradients);
    }
}

static bool scores_fit(const clv__sequences *s) {
    return s->H * s->T * s->T <= INT32_MAX;
}

static bool plain_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    return clv__loops_fit(device, clv__max64(3 * s.T, s.E)) && scores_fit(&s);
}

/** CPU-class devices can run it too, so that it is checked where there is no GPU. */
static bool local_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    return device->loop_turns == 0 && device->max_work_group >= ITEMS && scores_fit(&s) &&
           clv__tile_local_bytes(device) >= 2 * EDGE * (EDGE + 1) * sizeof(float);
}

// ---- tile: CPU-class ------------------------------------------------------------------------------------------------

/** How a head lies in local memory, or in a part of the workspace: see the kernel file. */
typedef struct head {
    int64_t block; // queries of which a step of the gradient keeps p and ds: whole register tiles
    int64_t floats;
} head;

static head head_of(const clv_device_info *device, const clv__sequences *s, uint64_t most_bytes) {
    enum { MOST_BLOCK = 64 };
    int64_t lanes = clv__tile_lanes(device), mr = lanes == 16 ? 8 : 4, nr = 2 * lanes;
    int64_t TP = clv__round_up(s->T, nr), EP = clv__round_up(s->E, nr);
    if (!s->backward) return (head){mr, 3 * TP * EP + mr * (EP + TP + nr)};
    head h = {.block = clv__min64(clv__round_up(s->T, mr), MOST_BLOCK)};
    for (;; h.block = clv__round_up(h.block / 2, mr)) {
        h.floats = 7 * TP * EP + 2 * h.block * TP + mr * nr;
        if (h.block <= mr || (uint64_t)h.floats * sizeof(float) <= most_bytes) break;
    }
    return h;
}

/** Groups that take heads in turn, two for each unit: a slow one holds up the others by half of its heads at most. */
static int64_t groups_of(const clv_device_info *device, const clv__sequences *s) {
    return clv__min64(s->N * (s->backward ? s->G : s->H), 2 * clv__max64(1, device->compute_units));
}

static bool tile_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    const uint64_t most = clv__tile_local_bytes(device);
    return clv__threads(device) && device->loop_turns == 0 &&
           (uint64_t)head_of(device, &s, most).floats * sizeof(float) <= most;
}

static bool tile_global_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    return clv__threads(device) && device->loop_turns == 0 &&
           head_of(device, &s, UINT64_MAX).floats <= INT32_MAX / clv__max64(1, groups_of(device, &s));
}

static void tile(clv__launches *list, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    if (s.N * s.T == 0) return;
    const bool global = io->variant->number == TILE_GLOBAL;
    const head h = head_of(list->device, &s, global ? UINT64_MAX : clv__tile_local_bytes(list->device));
    const int64_t groups = global ? groups_of(list->device, &s) : s.N * (s.backward ? s.G : s.H);
    clv__launch *launch =
        clv__launch_kernel(list, "self_attention", s.backward ? "attend_tile_backward" : "attend_tile");
    int lanes = clv__tile_lanes(list->device);
    if (lanes != 16) clv__launch_define(list, launch, "VW", "%d", lanes);
    if (global) clv__launch_define(list, launch, "IN_GLOBAL", "1");
    clv__arg_out_as(list, launch, io, 0, "T_Y");
    if (s.backward) clv__arg_in_as(list, launch, io, B_DY, "T_DY");
    clv__arg_in_as(list, launch, io, s.backward ? B_X : X, "T_X");
    if (global)
        clv__arg_part(list, launch, clv__floats(list, groups * h.floats));
    else
        clv__arg_local(list, launch, (size_t)h.floats * sizeof(float));
    CLV__ARGS_I32(list, launch, s.N, s.T, s.H, s.G, s.E, s.causal, groups);
    if (s.backward) clv__arg_i32(list, launch, h.block);
    clv__arg_f32(list, launch, s.scale);
    clv__sequences_mask(list, launch, io, 0);
    clv__launch_over(list, launch, CLV__TASKS, groups);
}

#define MATRIX_VARIANT(name_, unit, operands_)                                                               \
    {                                                                                                        \
        .name = name_, .supports = clv__flash_matrix_supports, .rank = clv__flash_matrix_rank,               \
        .lower = clv__flash_matrix, .operands = operands_, .number = CLV_MATRIX_##unit                       \
    }
static const clv__variant variants[] = {
    {"plain", plain_supports, .lower = products},
    {"local", local_supports, .lower = products, .relative = 0.1, .lanes = true, .number = LOCAL},
    {"flash", clv__flash_attention_supports, clv__flash_attention_rank, .lower = clv__flash_attention},
    MATRIX_VARIANT("tf32", TF32, 0x1p-11),
    MATRIX_VARIANT("f16", F16, 0x1p-11),
    MATRIX_VARIANT("bf16", BF16, 0x1p-8),
    {"tile", tile_supports, .lower = tile, .relative = 0.02},
    {"tile:global", tile_global_supports, .lower = tile, .relative = 0.03, .number = TILE_GLOBAL},
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

/** Row t of part `part` of query head h. */
static double *row_of(const clv__sequences *s, double *x, int64_t n, int64_t t, int part, int64_t h) {
    const int64_t shared = s->H + (part == V ? s->G : 0) + h / (s->H / s->G);
    return x + ((n * s->T + t) * (s->H + 2 * s->G) + (part == Q ? h : shared)) * s->E;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static int64_t seen_by(const clv__sequences *s, int64_t t) {
    return s->causal ? t + 1 : s->T;
}

/** What query t of head h and key u score. */
static double score(const clv__sequences *s, double *x, const double *mask, int64_t n, int64_t t, int64_t u,
                    int64_t h) {
    const double added = s->masked ? mask[n * s->mask[0] + h * s->mask[1] + t * s->mask[2] + u] : 0;
    return (double)s->scale * dot(row_of(s, x, n, t, Q, h), row_of(s, x, n, u, K, h), s->E) + added;
}

/** The logarithm of what query t's weights exp(score) are divided by; what the softmax is made of. Infinite where it sees nothing. */
static double log_sum(const clv__sequences *s, double *x, const double *mask, int64_t n, int64_t t,
                      int64_t h) {
    double largest = -INFINITY, sum = 0;
    for (int64_t u = 0; u < seen_by(s, t); u++) largest = fmax(largest, score(s, x, mask, n, t, u, h));
    if (s->masked && largest == -INFINITY) return INFINITY;
    for (int64_t u = 0; u < seen_by(s, t); u++) sum += exp(score(s, x, mask, n, t, u, h) - largest);
    return largest + log(sum);
}

static double weight_of(const clv__sequences *s, double *x, const double *mask, int64_t n, int64_t t,
                        int64_t u, int64_t h, double log_sum) {
    return exp(score(s, x, mask, n, t, u, h) - log_sum);
}

static void attend(const clv__sequences *s, double *x, const double *mask, double *y, int64_t n, int64_t t,
                   int64_t h) {
    double *to = y + (n * s->T + t) * s->H * s->E + h * s->E, of = log_sum(s, x, mask, n, t, h);
    memset(to, 0, (size_t)s->E * sizeof *to);
    for (int64_t u = 0; u < seen_by(s, t); u++) {
        double p = weight_of(s, x, mask, n, t, u, h, of);
        for (int64_t e = 0; e < s->E; e++) to[e] += p * row_of(s, x, n, u, V, h)[e];
    }
}

/** What query t adds to the gradients. */
static void attend_backward(const clv__sequences *s, double *x, const double *mask, const double *dy,
                            double *dx, int64_t n, int64_t t, int64_t h) {
    double of = log_sum(s, x, mask, n, t, h), mean = 0;
    dy += (n * s->T + t) * s->H * s->E + h * s->E;
    for (int64_t u = 0; u < seen_by(s, t); u++)
        mean += weight_of(s, x, mask, n, t, u, h, of) * dot(dy, row_of(s, x, n, u, V, h), s->E);
    for (int64_t u = 0; u < seen_by(s, t); u++) {
        double p = weight_of(s, x, mask, n, t, u, h, of);
        double ds = (double)s->scale * p * (dot(dy, row_of(s, x, n, u, V, h), s->E) - mean);
        for (int64_t e = 0; e < s->E; e++) {
            row_of(s, dx, n, u, V, h)[e] += p * dy[e];
            row_of(s, dx, n, t, Q, h)[e] += ds * row_of(s, x, n, u, K, h)[e];
            row_of(s, dx, n, u, K, h)[e] += ds * row_of(s, x, n, t, Q, h)[e];
        }
    }
}

static void reference(const clv__ref *ref) {
    clv__sequences s = clv__sequences_of(ref->io);
    if (s.backward) memset(ref->out[0], 0, (size_t)(s.N * s.T * (s.H + 2 * s.G) * s.E) * sizeof(double));
    for (int64_t n = 0; n < s.N; n++) {
        for (int64_t t = 0; t < s.T; t++) {
            for (int64_t h = 0; h < s.H; h++) {
                if (s.backward)
                    attend_backward(&s, ref->in[B_X], s.masked ? ref->in[B_MASK] : NULL, ref->in[B_DY],
                                    ref->out[0], n, t, h);
                else
                    attend(&s, ref->in[X], s.masked ? ref->in[MASK] : NULL, ref->out[0], n, t, h);
            }
        }
    }
}

/** Two products forward, five backward, of half the scores if causal; the softmax is little beside them. */
static void cost(const clv__op_io *io, clv__cost *cost) {
    clv__sequences s = clv__sequences_of(io);
    double numel = (double)(s.N * s.T * s.H * s.E), keys = s.causal ? ((double)s.T + 1) / 2 : (double)s.T;
    *cost = (clv__cost){(s.backward ? 10 : 4) * numel * keys, 4 * numel * (s.backward ? 7 : 4)};
}

static int64_t reduction(const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    return clv__max64(s.T, s.E);
}

// ---- samples --------------------------------------------------------------------------------------------------------

#define ROW(what, n, t, heads, e, causal, quick_, scale)                                                     \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS(n, t, 3 * (heads) * (e))},                                           \
        .attrs = &(self_attention_attrs){heads, causal, scale, 0}, .quick = quick_                           \
    }
#define SHARED(what, n, t, heads, keys, e, causal, quick_, scale)                                            \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS(n, t, ((heads) + 2 * (keys)) * (e))},                                \
        .attrs = &(self_attention_attrs){heads, causal, scale, keys}, .quick = quick_                        \
    }
#define WITH_MASK(what, n, t, heads, e, causal, quick_, scale, ...)                                          \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS(n, t, 3 * (heads) * (e)), CLV__DIMS(__VA_ARGS__)}, .n_in = 2,        \
        .attrs = &(self_attention_attrs){heads, causal, scale, 0}, .quick = quick_, .no_gradient = true      \
    }
static const clv__sample_row samples[] = {
    ROW("one", 1, 1, 1, 1, true, true, 1),
    ROW("2 heads of 3, causal", 2, 5, 2, 3, true, true, 0.5f),
    ROW("2 heads of 3", 2, 5, 2, 3, false, true, 0.5f),
    ROW("33 steps, causal", 1, 33, 1, 2, true, true, 0.5f),
    ROW("heads of 17, 9 steps, causal", 1, 9, 3, 17, true, false, -0.25f),
    ROW("heads of 32, 33 steps, causal", 1, 33, 2, 32, true, false, 0.25f),
    ROW("heads of 40, 31 steps", 2, 31, 1, 40, false, false, 0.25f),
    ROW("heads of 100, 70 steps, causal", 1, 70, 2, 100, true, false, 0.125f),
    ROW("blocks of queries, causal", 1, 131, 1, 5, true, false, 0.5f),
    ROW("blocks of queries", 1, 70, 1, 4, false, false, 0.5f),
    ROW("more scores than in one run, causal", 5, 512, 1, 1, true, false, 0.5f),
    ROW("heads of 64, 700 steps, causal", 1, 700, 1, 64, true, false, 0.125f),
    ROW("more heads than groups of many units", 9, 40, 15, 8, false, false, 0.5f),
    WITH_MASK("a mask of keys, causal", 2, 9, 2, 5, true, true, 0.5f, 2, 1, 1, 9),
    WITH_MASK("a mask of heads and queries", 2, 37, 3, 8, false, true, 0.5f, 1, 3, 37, 37),
    WITH_MASK("a mask of all, heads of 40", 2, 70, 2, 40, true, false, 0.25f, 2, 2, 70, 70),
    WITH_MASK("a mask, heads of 100", 1, 33, 1, 100, false, false, 0.125f, 1, 1, 33, 33),
    SHARED("4 heads share keys of 2, causal", 2, 9, 4, 2, 5, true, true, 0.5f),
    SHARED("3 heads share keys", 2, 37, 3, 1, 8, false, true, 0.5f),
    SHARED("6 heads of 40 share keys of 2, causal", 1, 70, 6, 2, 40, true, false, 0.25f),
    SHARED("4 heads of 100 share keys of 2", 1, 33, 4, 2, 100, false, false, 0.125f),
    {.label = "a mask of heads, which share keys",
     .in = {CLV__DIMS(2, 37, (4 + 2 * 2) * 8), CLV__DIMS(1, 4, 37, 37)},
     .n_in = 2,
     .attrs = &(self_attention_attrs){4, true, 0.5f, 2},
     .quick = true,
     .no_gradient = true},
    ROW("no steps", 2, 0, 2, 3, true, false, 1),
    ROW("no sequences", 0, 5, 2, 3, false, false, 1),
    {0},
};
#undef ROW
#undef WITH_MASK
#undef SHARED

// ---- descriptors ----------------------------------------------------------------------------------------------------

extern const clv__op clv__op_self_attention;
#define COMMON                                                                                               \
    .attrs_bytes = sizeof(self_attention_attrs), .half_out = 1, .variants = variants,                        \
    .reference = reference, .cost = cost, .reduction = reduction
CLV__TRAIN_OP(self_attention_backward) = {CLV__GRADIENT_OF(self_attention, "d0 i0 i1 g0"),
                                          .half_in = 1u << B_DY | 1u << B_X, COMMON};

/** Along the sequences; a mask of all of them is read whole. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    clv__split_all(io, 0, out);
    if (clv__has_in(io, MASK) && io->in[MASK].shape.dims[0] == 1) out->in[MASK] = CLV__SPLIT_WHOLE;
    return i == 0;
}

/** What the call by name has: dropout makes other nodes. */
typedef struct self_attention_call {
    int64_t heads;
    int causal;
    float scale, dropout;
    int64_t kv_heads;
} self_attention_call;

static clv_tensor *build(const clv__call *call);

static const clv__op *call_of(const clv__node *node, void *attrs) {
    const self_attention_attrs *a = clv__node_attrs(node);
    *(self_attention_call *)attrs = (self_attention_call){a->heads, a->causal, a->scale, 0, a->kv_heads};
    return clv__node_io(node)->op;
}

CLV__OP(self_attention) = {
    .name = "self_attention",
    .inputs = CLV__INPUTS({"x", "f32[N,T,E]"}, {"attn_mask", "any?"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, self_attention_call, heads, NULL)},
                                  {CLV__ATTRIBUTE(BOOL, self_attention_call, causal, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, self_attention_call, scale, "0")},
                                  {CLV__ATTRIBUTE(NUMBER, self_attention_call, dropout, "0")},
                                  {CLV__ATTRIBUTE(INT, self_attention_call, kv_heads, "0"),
                                   CLV__AT_LEAST(0)}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,T,_]"}),
    .attributes_of_call = true,
    .build = build,
    .call_of = call_of,
    .half_in = 1u << X,
    .autocast = CLV__CAST_HALF,
    .infer = infer,
    .samples = CLV__TRAINS(samples),
    .split = split,
    CLV__GRADIENT(self_attention),
    COMMON};

// ---- builder --------------------------------------------------------------------------------------------------------

/** `heads` heads of columns `from` ... of [N,T,...], E of each, as [N, heads, T, E]. */
static clv_tensor *part_of(clv_tensor *x, int64_t from, int64_t heads, int64_t E) {
    const clv_shape shape = clv_tensor_shape(x);
    x = clv_reshape(clv_slice(x, 2, from, heads * E), CLV_SHAPE(shape.dims[0], shape.dims[1], heads, E));
    return clv_permute(x, (int[]){0, 2, 1, 3}, 4);
}

static clv_tensor *of_nodes(clv_tensor *x, int64_t heads, int64_t keys, int64_t E,
                            const clv_attention_config *config) {
    const clv_shape shape = clv_tensor_shape(x);
    clv_attention_config c = *config;
    c.enable_gqa = keys != heads;
    clv_tensor *y = clv_scaled_dot_product_attention(part_of(x, 0, heads, E), part_of(x, heads * E, keys, E),
                                                     part_of(x, (heads + keys) * E, keys, E), &c);
    return clv_reshape(clv_permute(y, (int[]){0, 2, 1, 3}, 4),
                       CLV_SHAPE(shape.dims[0], shape.dims[1], heads * E));
}

/** A mask as the op takes it: numbers, of four dimensions, the last one T. */
static clv_tensor *added(clv_tensor *mask, int64_t T) {
    clv_graph *graph = clv__tensor_graph(mask);
    clv_shape s = clv_tensor_shape(mask), four = {.rank = 4, .dims = {1, 1, 1, 1}};
    if (s.rank > 4)
        return clv__graph_fail(graph, CLV_E_SHAPE, "self_attention: attn_mask has %d dimensions, at most 4",
                               s.rank);
    if (!clv__is_float(clv_tensor_dtype(mask)))
        mask = clv_where(mask, clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, 0),
                         clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, -INFINITY));
    mask = clv_cast(mask, CLV_DTYPE_F32);
    for (int d = 0; d < s.rank; d++) four.dims[4 - s.rank + d] = s.dims[d];
    mask = clv_reshape(mask, four);
    four.dims[3] = T;
    return clv_tensor_shape(mask).dims[3] == 1 && T > 1 ? clv_broadcast_to(mask, four) : mask;
}

static clv_tensor *build(const clv__call *call) {
    const self_attention_call *a = call->attrs;
    clv_tensor *x = call->in[0];
    const int64_t heads = a->heads;
    const clv_attention_config c = {.attn_mask = call->in[MASK],
                                    .causal = a->causal,
                                    .scale = a->scale,
                                    .dropout = a->dropout,
                                    .kv_heads = a->kv_heads};
    clv_shape shape = clv_tensor_shape(x);
    int64_t E = 1, keys = c.kv_heads ? c.kv_heads : heads;
    if (shape.rank == 3 && part_evenly(shape.dims[2], heads, keys)) {
        E = shape.dims[2] / (heads + 2 * keys);
        const bool drops = c.dropout != 0 &&
                           (clv__graph_training(clv_tensor_graph(x)) || !(c.dropout > 0 && c.dropout <= 1));
        if (drops || (c.attn_mask && c.attn_mask->requires_grad)) return of_nodes(x, heads, keys, E, &c);
    }
    self_attention_attrs attrs = {heads, c.causal, c.scale != 0 ? c.scale : (float)(1 / sqrt((double)E)),
                                  keys == heads ? 0 : keys};
    clv_tensor *in[] = {x, c.attn_mask ? added(c.attn_mask, shape.dims[1]) : NULL};
    if (c.attn_mask && !in[MASK]) return NULL;
    return clv__node_add(&clv__op_self_attention, &attrs, in, c.attn_mask ? 2 : 1, 0);
}
