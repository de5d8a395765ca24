// SPDX-License-Identifier: Apache-2.0
// Causal self-attention of one more token, with a cache of the keys and values of those before it: what writes a text token by token.
// The token's key and value are put into the cache by the same launch. Kernels: kernels_cl/attention_step.cl.
#include <math.h>

#include "graph/signature.h"
#include "ops/attention/attention_step.h"
#include "ops/lower.h"

typedef struct step_attrs {
    int64_t heads, kv_heads;
    float scale;
} step_attrs;

enum { X, KEYS, VALUES, POSITION, INPUTS };

/** N sequences of H heads of queries and K of keys and values with E columns, T tokens at most. */
typedef struct sizes {
    int64_t N, H, K, T, E;
    float scale;
} sizes;

static sizes sizes_of(const clv__op_io *io) {
    const step_attrs *attrs = io->attrs;
    const clv_shape *keys = &io->in[KEYS].shape;
    return (sizes){
        keys->dims[0], attrs->heads, attrs->kv_heads, keys->dims[1], keys->dims[2] / attrs->kv_heads,
        attrs->scale};
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const step_attrs *attrs = io->attrs;
    const int64_t heads = attrs->heads, kv_heads = attrs->kv_heads;
    const clv_shape *x = &io->in[X].shape, *keys = &io->in[KEYS].shape;
    if (heads < 1 || kv_heads < 1 || heads % kv_heads || keys->dims[2] < 1 || keys->dims[2] % kv_heads)
        CLV_FAIL(error, CLV_E_VALUE,
                 "%lld columns cannot be divided into %lld heads, or the %lld query heads cannot share them",
                 (long long)keys->dims[2], (long long)kv_heads, (long long)heads);
    const int64_t queries = keys->dims[2] / kv_heads * heads;
    if (x->dims[1] != queries + 2 * keys->dims[2])
        CLV_FAIL(error, CLV_E_SHAPE, "x must be [N,Q+2D], Q %lld for %lld heads, for keys of [N,T,D]",
                 (long long)queries, (long long)heads);
    if (keys->dims[1] < 1) CLV_FAIL(error, CLV_E_SHAPE, "keys have no row to write to");
    return clv__one_out(io, clv__f32(CLV_SHAPE(keys->dims[0], queries)));
}

// ---- kernels --------------------------------------------------------------------------------------------------------

static void plain(clv__launches *list, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    CLV__LAUNCH(list, io, "attention_step", "attention_step", CLV__TASKS, s.N * s.H, "o0 i0=T_X i1 i2 i3",
                CLV__INTS(s.N * s.H, s.H, s.K, s.T, s.E), CLV__FLOATS(s.scale));
}

static bool plain_supports(const clv_device_info *device, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    return clv__loops_fit(device, s.T + 2 * s.E * (s.T + 1));
}

// of a head, so that its sums and its query are in registers
enum { MOST_VECTORS = 16, MOST_WHERE_NEEDED = 32 };

/** The widest vectors that heads consist of. */
static int width_of(const clv_device_info *device, int64_t E) {
    int width = clv__vector_width(device);
    while (width > 4 && E % width) width /= 2;
    return width;
}

static void vectors(clv__launches *list, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    const int width = width_of(list->device, s.E);
    clv__launch *launch =
        clv__launch_items(list, "attention_step", "attention_step_vectors", CLV__TASKS, s.N * s.H);
    clv__launch_define(list, launch, "W", "%d", width);
    clv__launch_define(list, launch, "VECTORS", "%d", (int)s.E / width);
    CLV__ARGS(list, launch, io, "o0 i0=T_X i1 i2 i3", CLV__INTS(s.N * s.H, s.H, s.K, s.T, s.E),
              CLV__FLOATS(s.scale));
}

/** For threads, and wherever a head takes more turns one by one than the device allows: then with more of a head at once. */
static bool vectors_support(const clv_device_info *device, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    const bool needed = !plain_supports(device, io);
    const int width = width_of(device, s.E), most = needed ? MOST_WHERE_NEEDED : MOST_VECTORS;
    return (clv__threads(device) || needed) && s.E % width == 0 && s.E / width <= most &&
           clv__loops_fit(device, s.T + 2 * (s.T + 1) * (s.E / width));
}

enum { GROUP = 64, MOST_EACH = 16 }; // of the kernel file; columns that an item has registers for

static void group(clv__launches *list, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    const int64_t each = clv__div_up(s.E, GROUP);
    if (s.N == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "attention_step", "attention_step_group");
    if (each > 1) clv__launch_define(list, launch, "EACH", "%d", (int)each);
    CLV__ARGS(list, launch, io, "o0 i0=T_X i1 i2 i3", CLV__INTS(s.H, s.K, s.T, s.E), CLV__FLOATS(s.scale));
    clv__launch_grid(launch, (size_t)(s.N * s.H) * GROUP, GROUP);
}

static bool group_supports(const clv_device_info *device, const clv__op_io *io) {
    const sizes s = sizes_of(io);
    const int64_t each = clv__div_up(s.E, GROUP), blocks = clv__div_up(s.T, GROUP);
    return each <= MOST_EACH && device->max_work_group >= GROUP &&
           clv__tile_local_bytes(device) >= (size_t)(each + 2) * GROUP * sizeof(float) &&
           clv__loops_fit(device, 2 * each + blocks * (16 + s.E + each * (1 + GROUP)));
}

static const clv__variant variants[] = {
    {"plain", plain_supports, .lower = plain},
    {"vectors", vectors_support, .lower = vectors, .relative = 0.2},
    {"group", group_supports, .lower = group, .relative = 0.1, .lanes = true},
    {0}};

// ---- reference ------------------------------------------------------------------------------------------------------

/** One head: q, k and v are its columns of x, those of the caches and y begin at its first. */
static void reference_head(const sizes *s, int64_t last, const double *q, const double *k, const double *v,
                           double *keys, double *values, double *y) {
    const int64_t D = s->K * s->E;
    double largest = -INFINITY, sum = 0;
    for (int64_t e = 0; e < s->E; e++) {
        keys[last * D + e] = k[e];
        values[last * D + e] = v[e];
        y[e] = 0;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int64_t t = 0; t <= last; t++) {
            double score = 0;
            for (int64_t e = 0; e < s->E; e++) score += q[e] * keys[t * D + e];
            score *= (double)s->scale;
            if (pass == 0) largest = fmax(largest, score);
            const double weight = exp(score - largest);
            for (int64_t e = 0; pass == 1 && e < s->E; e++) y[e] += weight * values[t * D + e];
            if (pass == 1) sum += weight;
        }
    for (int64_t e = 0; e < s->E; e++) y[e] /= sum;
}

static void reference(const clv__ref *ref) {
    const sizes s = sizes_of(ref->io);
    const int64_t queries = s.H * s.E, D = s.K * s.E, last = (int64_t)ref->in[POSITION][0];
    for (int64_t i = 0; i < s.N * queries; i++) ref->out[0][i] = NAN;
    for (int64_t i = 0; i < s.N * s.H && last >= 0 && last < s.T; i++) {
        const int64_t n = i / s.H, column = i % s.H / (s.H / s.K) * s.E, cache = n * s.T * D + column;
        const double *x = ref->in[X] + n * (queries + 2 * D), *k = x + queries + column;
        reference_head(&s, last, x + i % s.H * s.E, k, k + D, ref->in[KEYS] + cache, ref->in[VALUES] + cache,
                       ref->out[0] + i * s.E);
    }
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const sizes s = sizes_of(io);
    const double n = (double)clv__numel(&io->in[KEYS]), x = (double)clv__numel(&io->in[X]);
    *cost = (clv__cost){4 * n * (double)s.H / (double)s.K, 4 * (2 * n + 2 * x)};
}

static int64_t reduction(const clv__op_io *io) {
    const sizes s = sizes_of(io);
    return s.T > s.E ? s.T : s.E;
}

/** By sequences: a head's columns of x lie apart. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    out->in[X] = out->in[KEYS] = out->in[VALUES] = out->out[0] = 0;
    out->length = io->in[X].shape.dims[0];
    return i == 0;
}

// ---- samples --------------------------------------------------------------------------------------------------------

#define GROUPED(what, N, T, H, K, E, at, reach, quick_)                                                      \
    {                                                                                                        \
        .label = what, .n_in = INPUTS, .i32 = 1u << POSITION, .quick = quick_,                               \
        .in = {CLV__DIMS(N, ((H) + 2 * (K)) * (E)), CLV__DIMS(N, T, (K) * (E)), CLV__DIMS(N, T, (K) * (E)),  \
               CLV__DIMS(1)},                                                                                \
        .attrs = &(step_attrs){H, K, 0.25f}, .fill = {                                                       \
            {CLV__FILL_UNIFORM, -(reach), reach},                                                            \
            {0},                                                                                             \
            {0},                                                                                             \
            {CLV__FILL_INTEGER, at, (at) + 0.5}                                                              \
        }                                                                                                    \
    }
#define ROW(what, N, T, H, ...) GROUPED(what, N, T, H, H, __VA_ARGS__)
static const clv__sample_row samples[] = {
    ROW("the last of three", 2, 3, 2, 4, 2, 3, true),
    ROW("the first", 2, 5, 3, 8, 0, 3, true),
    ROW("heads of 32", 2, 17, 6, 32, 11, 3, true),
    ROW("heads of 40", 1, 100, 3, 40, 99, 3, true),
    ROW("a head of one column", 3, 9, 4, 1, 4, 3, true),
    ROW("one of one", 1, 1, 1, 1, 0, 3, false),
    ROW("64 of 65", 1, 65, 2, 16, 63, 3, false),
    ROW("65 of 65", 1, 65, 2, 16, 64, 3, false),
    ROW("the default model's last", 1, 128, 6, 32, 127, 3, false),
    ROW("large scores", 1, 40, 2, 32, 39, 90, false),
    ROW("heads of 65 columns", 1, 70, 2, 65, 66, 3, false),
    ROW("heads of 128", 2, 300, 2, 128, 257, 3, false),
    GROUPED("six heads share two of keys", 2, 9, 6, 2, 8, 5, 3, true),
    GROUPED("four heads of 64 share one", 1, 70, 4, 1, 64, 66, 3, false),
    ROW("no sequence", 0, 4, 2, 4, 1, 3, false),
    ROW("a position behind the last", 2, 5, 2, 8, 5, 3, true),
    ROW("a position before the first", 2, 5, 2, 8, -1, 3, false),
    {0},
};
#undef ROW
#undef GROUPED

CLV__INNER_OP(attention_step) = {
    .name = "attention_step",
    .inputs = CLV__INPUTS({"x", "f32[N,_]"}, {"keys", "f32[N,T,D]"}, {"values", "like keys"},
                          {"position", "int[1]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,_]"}),
    .attrs_bytes = sizeof(step_attrs),
    .mutates = 1u << KEYS | 1u << VALUES,
    .half_in = 1u << X,
    .autocast = CLV__CAST_FLOAT,
    .infer = infer,
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .cost = cost,
    .reduction = reduction,
    .split = split,
};

clv_tensor *clv__attention_step(clv_tensor *x, clv_tensor *keys, clv_tensor *values, clv_tensor *position,
                                int64_t heads, int64_t kv_heads) {
    const clv_shape shape = clv_tensor_shape(keys);
    const int64_t E = kv_heads > 0 && shape.rank == 3 ? shape.dims[2] / kv_heads : 0;
    const step_attrs attrs = {heads, kv_heads, E > 0 ? (float)(1 / sqrt((double)E)) : 1};
    return clv__node_add(&clv__op_attention_step, &attrs, (clv_tensor *[]){x, keys, values, position}, INPUTS,
                         0);
}
