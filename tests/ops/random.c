// SPDX-License-Identifier: Apache-2.0
// Ops with random shapes: every variant, and those of their gradients, against the references, as `cleave check` does it with the
// samples that ops have. Graphs are built at random and nodes of theirs are the samples, so nothing here knows how an op keeps what it
// was called with. Environment: CLV_TEST_SEED (0; others are for by hand, as how near results are to their tolerances depends on it),
// CLV_RANDOM, how many graphs of each kind (1), CLV_CHECK_OP for one op.
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "check/check.h"
#include "cleave/custom_op.h"
#include "cleave/ops.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "tune/trial.h"

enum { MOST_OPS = 256, MOST_SAMPLES = 64, MOST_ELEMENTS = 60000, MOST_FLOPS = 4000000 };

/** The samples of an op. */
typedef struct of_op {
    const clv__op *op;
    clv__sample *samples;
    int n;
} of_op;

static struct {
    clv__random random;
    clv_graph *graph;
    clv_device *device;
    of_op ops[MOST_OPS];
    int n_ops;
} world;

// ---- numbers --------------------------------------------------------------------------------------------------------

static int64_t from_to(int64_t low, int64_t high) {
    return low + clv__random_below(&world.random, (uint32_t)(high - low + 1));
}

static bool one_in(int n) {
    return from_to(1, n) == 1;
}

/** A length up to `most`: most often one at which something may end, or beside it. */
static int64_t length(int64_t most) {
    static const int ends[] = {1,   4,   8,   16,   32,   48,   64,   96,   128,
                               192, 256, 512, 1024, 2048, 4096, 8192, 16000};
    int n = 0;
    while (n < (int)(sizeof ends / sizeof *ends) && ends[n] <= most) n++;
    int64_t at = one_in(4) ? from_to(1, most) : ends[from_to(0, n - 1)] + from_to(-1, 1);
    return at < 1 ? 1 : at > most ? most : at;
}

static void new_graph(clv_runtime *runtime) {
    world.graph = clv__test_graph(runtime);
    clv_graph_set_training(world.graph, true);
}

/** The first dimensions of a tensor whose last is `last`: together at most so many. */
static clv_shape rows_of(int64_t last, int64_t most) {
    clv_shape shape = {0};
    int64_t rows = length(most > 1 ? most : 1);
    if (rows % 2 == 0 && one_in(3)) {
        shape.dims[shape.rank++] = 2;
        rows /= 2;
    }
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = last;
    return shape;
}

static clv_shape any_shape(int least_rank, int64_t most) {
    clv_shape shape = {.rank = (int)from_to(least_rank, 6)};
    for (int d = shape.rank - 1; d >= 0; d--) {
        shape.dims[d] = length(d > 3 && one_in(2) ? most : most < 40 ? most : 40);
        most = most / shape.dims[d] > 1 ? most / shape.dims[d] : 1;
    }
    return shape;
}

static clv_tensor *tensor(clv_dtype dtype, clv_shape shape) {
    static int n;
    char name[32];
    snprintf(name, sizeof name, "t%d", n++);
    return dtype == CLV_DTYPE_I32
               ? clv_input(world.graph, name, dtype, shape)
               : clv_parameter(world.graph, name, shape, (clv_init){.kind = CLV_INIT_ONES});
}

static clv_tensor *floats(clv_shape shape) {
    return tensor(CLV_DTYPE_F32, shape);
}

static clv_tensor *maybe(clv_tensor *tensor) {
    return one_in(3) ? NULL : tensor;
}

// ---- graphs, one op each ----------------------------------------------------------------------------------------------------

static clv_tensor *product(void) {
    const bool ta = one_in(2), tb = one_in(2);
    int64_t m = length(300), n = length(300), k = length(one_in(4) ? 3000 : 200);
    if (one_in(4)) m = length(16);
    if (one_in(4)) n = length(16);
    if (one_in(3)) {
        const clv_shape x = rows_of(k, m);
        return clv_linear(floats(x), floats(CLV_SHAPE(n, k)), maybe(floats(CLV_SHAPE(n))));
    }
    clv_shape a = ta ? CLV_SHAPE(k, m) : CLV_SHAPE(m, k), b = tb ? CLV_SHAPE(n, k) : CLV_SHAPE(k, n);
    if (one_in(3)) {
        const int64_t batch = from_to(1, 5);
        if (!one_in(3)) a = CLV_SHAPE(batch, a.dims[0], a.dims[1]);
        if (!one_in(3)) b = CLV_SHAPE(batch, b.dims[0], b.dims[1]);
    }
    return clv_matmul_t(floats(a), ta, floats(b), tb);
}

/** One dimension of a window: not larger than what it moves over. */
static int64_t window(int64_t size, int most, int *kernel, int *stride, int *padding, int *dilation) {
    *kernel = (int)from_to(1, most);
    *stride = one_in(2) ? 1 : (int)from_to(1, 3);
    *padding = one_in(2) ? *kernel / 2 : (int)from_to(0, *kernel / 2);
    *dilation = one_in(3) ? (int)from_to(1, 3) : 1;
    const int64_t least = (int64_t)*dilation * (*kernel - 1) + 1 - 2 * *padding;
    return size < least ? least : size;
}

static clv_tensor *convolution(void) {
    clv_conv2d_config config = {.groups = one_in(3) ? (int)length(20) : 1};
    const bool depthwise = config.groups > 1 && one_in(2);
    const int64_t ic = depthwise ? 1 : length(one_in(3) ? 70 : 20),
                  oc = depthwise ? 1 : length(one_in(3) ? 70 : 20);
    int kernel[2];
    int64_t size[2];
    for (int d = 0; d < 2; d++)
        size[d] = window(one_in(3) ? from_to(1, 3) : length(33), one_in(6) ? 7 : 3, &kernel[d],
                         &config.stride[d], &config.padding[d], &config.dilation[d]);
    if (!config.padding[1]) config.padding[1] = -1; // 0 is as of H
    if (one_in(4)) {                                // Winograd's
        for (int d = 0; d < 2; d++) {
            kernel[d] = 3;
            config.stride[d] = config.dilation[d] = config.padding[d] = 1;
        }
    }
    const int64_t n = one_in(3) ? length(40) : from_to(1, 4), g = config.groups;
    return clv_conv2d(floats(CLV_SHAPE(n, g * ic, size[0], size[1])),
                      floats(CLV_SHAPE(g * oc, ic, kernel[0], kernel[1])), maybe(floats(CLV_SHAPE(g * oc))),
                      &config);
}

static clv_tensor *transposed_convolution(void) {
    clv_conv_transpose2d_config config = {.groups = one_in(3) ? (int)length(20) : 1};
    const bool depthwise = config.groups > 1 && one_in(2);
    const int64_t ic = depthwise ? 1 : length(one_in(3) ? 70 : 20),
                  oc = depthwise ? 1 : length(one_in(3) ? 70 : 20), g = config.groups;
    int kernel[2];
    int64_t size[2];
    for (int d = 0; d < 2; d++) {
        window(1, one_in(6) ? 7 : 3, &kernel[d], &config.stride[d], &config.padding[d], &config.dilation[d]);
        config.output_padding[d] = one_in(2) ? (int)from_to(0, config.stride[d] - 1) : 0;
        size[d] = length(17) + 2; // padding takes 6 at most
        if (config.padding[d] > 2) config.padding[d] = 2;
    }
    if (!config.padding[1]) config.padding[1] = -1; // 0 is as of H
    if (!config.output_padding[1]) config.output_padding[1] = -1;
    return clv_conv_transpose2d(
        floats(CLV_SHAPE(one_in(3) ? length(40) : from_to(1, 4), g * ic, size[0] + 2, size[1] + 2)),
        floats(CLV_SHAPE(g * ic, oc, kernel[0], kernel[1])), maybe(floats(CLV_SHAPE(g * oc))), &config);
}

static clv_tensor *solid_convolution(void) {
    const bool turned = one_in(3);
    const int g = one_in(3) ? (int)from_to(1, 6) : 1;
    clv_conv3d_config config = {.groups = g};
    clv_conv_transpose3d_config more = {.groups = g};
    const int64_t ic = length(12), oc = length(12), n = from_to(1, 3);
    int kernel[3];
    int64_t size[3];
    for (int d = 0; d < 3; d++) {
        size[d] =
            window(length(9), 3, &kernel[d], &config.stride[d], &config.padding[d], &config.dilation[d]);
        more.stride[d] = config.stride[d], more.dilation[d] = config.dilation[d];
        more.output_padding[d] = (int)from_to(0, config.stride[d] - 1);
        if (d && !more.output_padding[d]) more.output_padding[d] = -1; // 0 is as of D
        if (d && !config.padding[d]) config.padding[d] = -1;
    }
    clv_tensor *x = floats(CLV_SHAPE(n, g * ic, size[0], size[1], size[2])),
               *bias = maybe(floats(CLV_SHAPE(g * oc)));
    if (turned)
        return clv_conv_transpose3d(x, floats(CLV_SHAPE(g * ic, oc, kernel[0], kernel[1], kernel[2])), bias,
                                    &more);
    return clv_conv3d(x, floats(CLV_SHAPE(g * oc, ic, kernel[0], kernel[1], kernel[2])), bias, &config);
}

static clv_tensor *scanned(void) {
    const clv_shape shape = rows_of(length(one_in(4) ? 9000 : 300), 40);
    const int axis = (int)from_to(0, shape.rank - 1);
    clv_tensor *x = floats(shape);
    if (one_in(2)) return (one_in(3) ? clv_cumprod : clv_cumsum)(x, axis, one_in(2), one_in(2));
    return clv_topk(x, from_to(0, shape.dims[axis]), axis, one_in(2), NULL);
}

static clv_tensor *pool(void) {
    clv_pool2d_config config = {.ceil_mode = one_in(2)};
    int64_t size[2];
    for (int d = 0; d < 2; d++)
        size[d] = window(length(one_in(4) ? 130 : 30), 4, &config.kernel[d], &config.stride[d],
                         &config.padding[d], &config.dilation[d]);
    if (!config.padding[1]) config.padding[1] = -1; // 0 is as of H
    clv_tensor *x = floats(CLV_SHAPE(from_to(1, 3), length(20), size[0], size[1]));
    if (one_in(4)) return clv_adaptive_avg_pool2d(x, length(9), length(9));
    if (one_in(2)) return clv_max_pool2d(x, &config);
    config.dilation[0] = config.dilation[1] = 1;
    config.exclude_padding = one_in(2);
    return clv_avg_pool2d(x, &config);
}

static clv_tensor *rows(void) {
    const int64_t D =
        length(one_in(2) ? 9000 : 300) + 1; // of one element rms_norm's gradient is what rounding leaves
    const clv_shape shape = rows_of(D, 20000 / D);
    clv_tensor *x = floats(shape);
    const int axis = one_in(3) ? (int)from_to(0, shape.rank - 1) : shape.rank - 1;
    switch (from_to(0, 6)) {
    case 0: return clv_softmax(x, axis);
    case 1: return clv_log_softmax(x, axis);
    case 2: return clv_layer_norm(x, maybe(floats(CLV_SHAPE(D))), maybe(floats(CLV_SHAPE(D))), 1e-5f);
    case 3: return clv_rms_norm(x, maybe(floats(CLV_SHAPE(D))), 1e-5f);
    case 4: return clv_causal_softmax(floats(CLV_SHAPE(2, length(70), length(300))), 0.5f);
    case 5: return clv_mse_loss(x, floats(shape));
    default:
        return clv_cross_entropy(floats(CLV_SHAPE(shape.dims[0], D)),
                                 tensor(CLV_DTYPE_I32, CLV_SHAPE(shape.dims[0])));
    }
}

static clv_tensor *batch_norm(void) {
    const int64_t C = length(one_in(3) ? 130 : 20), S = length(one_in(2) ? 700 : 30);
    const int64_t N = length(20000 / (C * S) < 2 ? 2 : 20000 / (C * S)) + 1;
    const clv_shape of_channel = CLV_SHAPE(C);
    clv_tensor *x = floats(one_in(4) ? CLV_SHAPE(N, C) : CLV_SHAPE(N, C, S, from_to(1, 2)));
    return clv_batch_norm(x, maybe(floats(of_channel)), maybe(floats(of_channel)), floats(of_channel),
                          floats(of_channel), one_in(2), 0.1f, 1e-5f);
}

static clv_tensor *reduction(void) {
    const clv_shape shape = any_shape(1, 20000);
    int axes[CLV_MAX_RANK], n = 0;
    for (int d = 0; d < shape.rank; d++)
        if (one_in(2)) axes[n++] = d;
    if (n == 0) axes[n++] = shape.rank - 1;
    switch (from_to(0, 3)) {
    case 0: return clv_sum(floats(shape), axes, n, one_in(2));
    case 1: return clv_mean(floats(shape), axes, n, one_in(2));
    case 2: return clv_max(floats(shape), axes, n, one_in(2));
    default: return clv_argmax(floats(shape), axes[0], one_in(2));
    }
}

static clv_tensor *moved(void) {
    const clv_shape shape = any_shape(1, 20000);
    clv_tensor *x = floats(shape);
    const int axis = (int)from_to(0, shape.rank - 1);
    const int64_t start = from_to(0, shape.dims[axis] - 1);
    int axes[CLV_MAX_RANK];
    clv_shape other = shape;
    switch (from_to(0, 4)) {
    case 0:
        for (int d = 0; d < shape.rank; d++) axes[d] = d;
        for (int d = shape.rank - 1; d > 0; d--) {
            const int k = (int)from_to(0, d), kept = axes[d];
            axes[d] = axes[k];
            axes[k] = kept;
        }
        return clv_permute(x, axes, shape.rank);
    case 1: return clv_slice(x, axis, start, from_to(1, shape.dims[axis] - start));
    case 2: other.dims[axis] = length(9); return clv_concat((clv_tensor *[]){x, floats(other)}, 2, axis);
    case 3: other.dims[axis] = 1; return clv_broadcast_to(floats(other), shape);
    default:
        return clv_add(clv_mul(x, floats(CLV_SHAPE(shape.dims[shape.rank - 1]))), clv_gelu(floats(shape)));
    }
}

static clv_tensor *indices(clv_shape shape) {
    return tensor(CLV_DTYPE_I32, shape);
}

/** By an index of x's rank, or one for whole slices. */
static clv_tensor *by_index(void) {
    const clv_shape shape = any_shape(1, 9000);
    const int axis = (int)from_to(0, shape.rank - 1);
    clv_tensor *x = floats(shape);
    clv_shape other = shape;
    other.dims[axis] = length(one_in(3) ? 300 : 20);
    while (clv_shape_numel(&other) > 9000) other.dims[axis] = (other.dims[axis] + 1) / 2;
    if (one_in(2)) {
        clv_tensor *index = indices(CLV_SHAPE(other.dims[axis]));
        return one_in(2) ? clv_index_select(x, axis, index) : clv_index_add(x, axis, index, floats(other));
    }
    if (one_in(2)) other.dims[from_to(0, shape.rank - 1)] = 1;
    return one_in(2) ? clv_gather(x, axis, indices(other))
                     : clv_scatter_add(x, axis, indices(other), floats(other));
}

static clv_tensor *looked_up(void) {
    const int64_t V = length(one_in(3) ? 1100 : 70), D = length(one_in(3) ? 300 : 70);
    if (one_in(2)) return by_index();
    return clv_embedding(floats(CLV_SHAPE(V, D)),
                         tensor(CLV_DTYPE_I32, CLV_SHAPE(from_to(1, 3), length(100))));
}

static clv_tensor *attention(void) {
    const int64_t heads = from_to(1, 4), E = length(one_in(3) ? 130 : 40), T = length(one_in(3) ? 130 : 40),
                  N = from_to(1, 2);
    const clv_shape mask = CLV_SHAPE(one_in(2) ? N : 1, one_in(2) ? heads : 1, one_in(2) ? T : 1, T);
    const int64_t keys = one_in(2) ? heads : heads % 2 ? 1 : heads / 2;
    const clv_attention_config config = {
        .causal = one_in(2), .attn_mask = maybe(floats(mask)), .kv_heads = keys};
    return clv_self_attention(floats(CLV_SHAPE(N, T, (heads + 2 * keys) * E)), heads, &config);
}

static clv_tensor *recurrent(void) {
    const int64_t T = from_to(1, 6), N = length(40), H = length(one_in(3) ? 140 : 40), F = length(20);
    clv_tensor *x = floats(CLV_SHAPE(T, N, F)), *lengths = maybe(tensor(CLV_DTYPE_I32, CLV_SHAPE(N)));
    const clv_recurrent_config config = {.reverse = one_in(2), .relu = one_in(2)};
    clv_recurrent_state state = {maybe(floats(CLV_SHAPE(1, N, H))), NULL};
    const int kind = (int)from_to(0, 2), gates[] = {4, 3, 1}, n = one_in(2) ? 2 : 4;
    if (kind == 0) state.c = maybe(floats(CLV_SHAPE(1, N, H)));
    const clv_shape rows = CLV_SHAPE(gates[kind] * H);
    clv_tensor *weights[] = {floats(CLV_SHAPE(rows.dims[0], F)), floats(CLV_SHAPE(rows.dims[0], H)),
                             floats(rows), floats(rows)};
    return (kind == 0 ? clv_lstm : kind == 1 ? clv_gru : clv_rnn)(x, lengths, weights, n, &config, &state);
}

/** An op whose inputs may have any shape, all the same, by its signature; others refuse, and are left. */
static clv_tensor *by_signature(void) {
    int n = 0;
    while (clv_op_get(n)) n++;
    for (;;) {
        const clv_op_signature *op = clv_op_get((int)from_to(0, n - 1));
        const clv_shape shape = any_shape(1, 20000);
        clv_tensor *in[4];
        int n_in = 0;
        bool fits = !op->custom && op->inputs[0].name != NULL;
        for (; fits && op->inputs[n_in].name; n_in++) {
            const char *type = op->inputs[n_in].type;
            fits = n_in < 4 && !strpbrk(type, "[?.");
        }
        for (int i = 0; fits && op->attributes && op->attributes[i].name; i++)
            fits = op->attributes[i].fallback != NULL;
        for (int i = 0; fits && i < n_in; i++)
            in[i] = tensor(strstr(op->inputs[i].type, "f32") || strstr(op->inputs[i].type, "any") ||
                                   (i && strstr(op->inputs[i].type, "like"))
                               ? CLV_DTYPE_F32
                               : CLV_DTYPE_I32,
                           shape);
        clv_tensor *y = fits ? clv_op_call(world.graph, op->name, in, n_in, NULL, 0) : NULL;
        if (y) return y;
        clv_runtime *runtime = world.graph->runtime;
        clv_graph_destroy(world.graph);
        new_graph(runtime);
    }
}

/** Lines, pictures and solids of another size, at places that are computed, and pooled. */
static clv_tensor *resized(void) {
    const int n = (int)from_to(1, 3);
    clv_shape shape = CLV_SHAPE(from_to(1, 3), length(9)), size = {.rank = n}, places = {.rank = n + 2};
    for (int d = 0; d < n; d++) {
        shape.dims[shape.rank++] = length(n == 3 ? 9 : 40);
        size.dims[d] = places.dims[d + 1] = length(n == 3 ? 9 : 40);
    }
    places.dims[0] = shape.dims[0];
    places.dims[n + 1] = n;
    clv_tensor *x = floats(shape);
    if (one_in(3))
        return clv_grid_sample(x, floats(places), n == 2 ? (clv_grid_mode)from_to(0, 2) : CLV_GRID_BILINEAR,
                               (clv_grid_padding)from_to(0, 2), one_in(2));
    if (n < 3 && one_in(4))
        return n == 1 ? clv_adaptive_max_pool1d(x, size.dims[0])
                      : clv_adaptive_max_pool2d(x, size.dims[0], size.dims[1]);
    const clv_interpolate_mode mode =
        n == 2 ? (clv_interpolate_mode)from_to(0, 3) : (clv_interpolate_mode)from_to(0, 2);
    const clv_interpolate_config config = {.mode = mode,
                                           .align_corners = mode >= CLV_INTERPOLATE_LINEAR && one_in(2),
                                           .antialias =
                                               n == 2 && mode >= CLV_INTERPOLATE_LINEAR && one_in(3)};
    return clv_interpolate(x, size, &config);
}

static clv_tensor *other_pool(void) {
    const bool solid = one_in(2);
    clv_pool3d_config config = {.ceil_mode = one_in(2)};
    clv_shape shape = CLV_SHAPE(from_to(1, 3), length(9));
    for (int d = 0; d < (solid ? 3 : 1); d++)
        shape.dims[shape.rank++] = window(length(solid ? 12 : 130), 4, &config.kernel[d], &config.stride[d],
                                          &config.padding[d], &config.dilation[d]);
    for (int d = 1; d < 3; d++)
        if (!config.padding[d]) config.padding[d] = -1; // 0 is as of D
    const bool most = one_in(2);
    if (!most)
        config.exclude_padding = one_in(2), config.dilation[0] = config.dilation[1] = config.dilation[2] = 1;
    clv_tensor *x = floats(shape);
    if (solid) return (most ? clv_max_pool3d : clv_avg_pool3d)(x, &config);
    const clv_pool1d_config line = {.kernel = config.kernel[0],
                                    .stride = config.stride[0],
                                    .padding = config.padding[0],
                                    .dilation = config.dilation[0],
                                    .ceil_mode = config.ceil_mode,
                                    .exclude_padding = config.exclude_padding};
    return (most ? clv_max_pool1d : clv_avg_pool1d)(x, &line);
}

static clv_tensor *other_attention(void) {
    const int64_t N = from_to(1, 2), heads = from_to(1, 3), served = from_to(1, 3),
                  T = length(one_in(3) ? 130 : 40), S = one_in(2) ? T : length(one_in(3) ? 130 : 40),
                  E = length(one_in(3) ? 130 : 40);
    clv_tensor *query = floats(CLV_SHAPE(N, heads * served, T, E)), *key = floats(CLV_SHAPE(N, heads, S, E)),
               *value = floats(CLV_SHAPE(N, heads, S, one_in(3) ? length(40) : E));
    const clv_shape mask = CLV_SHAPE(one_in(2) ? N : 1, one_in(2) ? heads * served : 1, one_in(2) ? T : 1, S);
    const clv_attention_config config = {
        .causal = T <= S && one_in(2), .enable_gqa = served > 1, .attn_mask = maybe(floats(mask))};
    if (one_in(4) && E % 2 == 0)
        return clv_rotary_embedding(query, floats(CLV_SHAPE(T, E / 2)), floats(CLV_SHAPE(T, E / 2)),
                                    one_in(2));
    return clv_scaled_dot_product_attention(query, key, value, &config);
}

static clv_tensor *loss_of_classes(void) {
    const int64_t N = length(40), C = length(one_in(3) ? 1030 : 40), T = length(20), S = from_to(1, T);
    clv_tensor *labels = tensor(CLV_DTYPE_I32, CLV_SHAPE(N)),
               *x = clv_log_softmax(floats(CLV_SHAPE(N, C)), -1);
    const clv_reduction reduction = (clv_reduction)from_to(0, 2);
    if (one_in(2)) return clv_nll_loss(x, labels, maybe(floats(CLV_SHAPE(N))), reduction);
    return clv_ctc_loss(clv_log_softmax(floats(CLV_SHAPE(T, N, C)), -1),
                        tensor(CLV_DTYPE_I32, CLV_SHAPE(N, S)), tensor(CLV_DTYPE_I32, CLV_SHAPE(N)),
                        tensor(CLV_DTYPE_I32, CLV_SHAPE(N)), 0, true, reduction);
}

static clv_tensor *other_norm(void) {
    const int64_t groups = from_to(1, 6), C = groups * from_to(1, 9);
    clv_tensor *x = floats(CLV_SHAPE(from_to(1, 4), C, length(30) + 1, length(20)));
    clv_tensor *weight = maybe(floats(CLV_SHAPE(C))), *bias = maybe(floats(CLV_SHAPE(C)));
    if (one_in(3)) return clv_instance_norm(x, weight, bias, 1e-5f);
    if (one_in(3)) return clv_local_response_norm(x, (int)from_to(1, 7), 1e-4f, 0.75f, 1);
    return clv_group_norm(x, groups, weight, bias, 1e-5f);
}

/** By tuples, copied, sorted, joined. */
static clv_tensor *by_tuples(void) {
    const clv_shape shape = any_shape(2, 9000);
    const int axis = (int)from_to(0, shape.rank - 1), M = (int)from_to(1, shape.rank);
    const int64_t n = length(one_in(3) ? 300 : 20);
    clv_tensor *x = floats(shape), *tuples = indices(CLV_SHAPE(n, M));
    clv_shape taken = CLV_SHAPE(n), other = shape;
    for (int d = M; d < shape.rank; d++) taken.dims[taken.rank++] = shape.dims[d];
    other.dims[axis] = length(20);
    while (clv_shape_numel(&other) > 9000) other.dims[axis] = (other.dims[axis] + 1) / 2;
    if (clv_shape_numel(&taken) > 20000 || one_in(2)) {
        if (one_in(4)) return clv_sort(x, axis, one_in(2), NULL);
        if (one_in(3)) return clv_cast(clv_argsort(x, axis, one_in(2)), CLV_DTYPE_F32);
        return one_in(2) ? clv_scatter(x, axis, indices(other), floats(other))
                         : clv_index_copy(x, axis, indices(CLV_SHAPE(other.dims[axis])), floats(other));
    }
    if (one_in(3)) return clv_gather_nd(x, 0, tuples);
    return (one_in(2) ? clv_scatter_nd : clv_scatter_nd_add)(x, 0, tuples, floats(taken));
}

// ---- their nodes as samples -------------------------------------------------------------------------------------------

static of_op *of(const clv__op *op) {
    for (int i = 0; i < world.n_ops; i++)
        if (world.ops[i].op == op) return &world.ops[i];
    assert_true(world.n_ops < MOST_OPS);
    of_op *at = &world.ops[world.n_ops++];
    *at = (of_op){.op = op, .samples = calloc(MOST_SAMPLES, sizeof *at->samples)};
    assert_non_null(at->samples);
    return at;
}

static bool is_small(const clv__op_io *io) {
    clv__cost cost = {0};
    clv__op_cost(io, &cost);
    for (int i = 0; i < io->n_in; i++)
        if (clv__has_in(io, i) && clv__numel(&io->in[i]) > MOST_ELEMENTS) return false;
    return cost.flops <= MOST_FLOPS && clv__numel(&io->out[0]) <= MOST_ELEMENTS;
}

/** What a label can hold of a use: the checker adds how it is stored. */
static void describe(const clv__op_io *io, int number, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "%d:", number);
    for (int i = 0; i < io->n_in && used < bytes; i++) {
        char shape[128];
        used += (size_t)snprintf(text + used, bytes - used, " %s",
                                 clv__has_in(io, i) ? clv_shape_text(&io->in[i].shape, shape, sizeof shape)
                                                    : "-");
    }
}

static void keep(const clv__node *node) {
    const clv__op *op = node->io.op;
    if (!op->variants || op->view || op->random || op->mutates || node->io.n_in == 0 || !is_small(&node->io))
        return;
    of_op *at = of(op);
    clv__trial *trial = NULL;
    if (at->n == MOST_SAMPLES) return;
    assert_status(clv__trial_create(world.device, &node->io, &trial), CLV_OK, node->graph->runtime);
    at->samples[at->n] = trial->sample;
    describe(&node->io, at->n, at->samples[at->n].label, sizeof at->samples[0].label - 40);
    at->n++;
    clv__trial_destroy(trial);
}

static void build(clv_runtime *runtime, clv_tensor *(*make)(void)) {
    new_graph(runtime);
    clv_tensor *y = make();
    assert_status(clv_graph_status(world.graph), CLV_OK, runtime);
    if (clv_tensor_info_get(y).requires_grad) clv_backward(clv_sum(clv_square(y), NULL, 0, false));
    assert_status(clv_graph_status(world.graph), CLV_OK, runtime);
    for (size_t i = 0; i < world.graph->n_nodes; i++) keep(world.graph->nodes[i]);
    clv_graph_destroy(world.graph);
}

static bool sample(const clv__op *op, int i, clv__sample *out) {
    const of_op *at = of(op);
    if (i < 0 || i >= at->n) return false;
    *out = at->samples[i];
    return true;
}

TEST(random_shapes) {
    static clv_tensor *(*const kinds[])(void) = {product,
                                                 convolution,
                                                 transposed_convolution,
                                                 solid_convolution,
                                                 scanned,
                                                 pool,
                                                 rows,
                                                 batch_norm,
                                                 reduction,
                                                 moved,
                                                 looked_up,
                                                 attention,
                                                 recurrent,
                                                 by_signature,
                                                 resized,
                                                 other_pool,
                                                 other_attention,
                                                 loss_of_classes,
                                                 other_norm,
                                                 by_tuples};
    static const char *const differences[] = {"*/differences/*", NULL};
    const char *many = getenv("CLV_RANDOM"), *given = getenv("CLV_TEST_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : 0;
    print_message("CLV_TEST_SEED=%llu\n", (unsigned long long)seed);
    clv_runtime *runtime = clv__test_runtime(NULL);
    int at = -1, n_cases = 0, n_failed = 0;
    world.device = clv__test_next_device(runtime, &at);
    assert_non_null(world.device);
    clv__random_init(&world.random, seed, CLV__STREAM_TEST, 0);
    for (int i = many ? atoi(many) : 1; i > 0; i--)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) build(runtime, kinds[k]);
    const clv__op *ops[MOST_OPS + 1] = {0};
    for (int i = 0; i < world.n_ops; i++) ops[i] = world.ops[i].op;
    clv_check_report *report = NULL;
    const bool threads = clv_device_info_get(world.device)->execution == CLV_EXECUTION_THREADS;
    const clv_check_config config = {.ops = (const char *const[]){getenv("CLV_CHECK_OP"), NULL},
                                     .exclude = threads ? clv__test_tiles : differences,
                                     .seed = seed};
    assert_status(clv__check_ops(runtime, world.device, ops, sample, &config, &report), CLV_OK, runtime);
    for (int i = 0; i < report->n_failures; i++) print_error("%s\n", report->failures[i].sentence);
    n_cases = report->cases, n_failed = report->failed;
    print_message("%d ops, %d cases, %d failed, %d skipped\n", world.n_ops, n_cases, n_failed,
                  report->skipped_cases);
    clv_free(report);
    for (int i = 0; i < world.n_ops; i++) free(world.ops[i].samples);
    clv_runtime_destroy(runtime);
    assert_true(n_cases > (config.ops[0] ? 0 : 100));
    assert_int_equal(n_failed, 0);
}

TEST_MAIN(NULL, NULL)
