// SPDX-License-Identifier: Apache-2.0
// Swin transformer: attention within windows of 7x7 places, shifted by half a window in every other block; between stages the four
// places of a square become one.
// Source: Liu et al. 2021, arXiv:2103.14030; torchvision.models.swin_t.
#include <math.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "nn/models.h"

enum { WINDOW = 7, PLACES = WINDOW * WINDOW, BIASES = (2 * WINDOW - 1) * (2 * WINDOW - 1) };
static const clv_init narrow = {CLV_INIT_NORMAL, 0, 0.02f}, zeros = {.kind = CLV_INIT_ZEROS};

static clv_tensor *linear(clv_tensor *x, const char *name, int64_t out_features) {
    return clv_nn_linear(x, name, out_features,
                         &(clv_nn_linear_config){.weight_init = &narrow, .bias_init = &zeros});
}

/** A stage's windows: places of an image, padded to whole windows, and how far these are moved along each axis. */
typedef struct windows {
    int64_t n, height, width, channels, heads;
    int64_t padded[2], move[2];
} windows;

static windows windows_of(clv_tensor *x, int64_t heads, bool moves) {
    const clv_shape s = clv_tensor_shape(x);
    windows w = {s.dims[0], s.dims[1], s.dims[2], s.dims[3], heads, {0}, {0}};
    for (int d = 0; d < 2; d++) {
        w.padded[d] = (s.dims[1 + d] + WINDOW - 1) / WINDOW * WINDOW;
        w.move[d] = moves && w.padded[d] > WINDOW ? WINDOW / 2 : 0;
    }
    return w;
}

/** The first `by` places of an axis behind the others. */
static clv_tensor *roll(clv_tensor *x, int axis, int64_t by) {
    const int64_t all = clv_tensor_shape(x).dims[axis];
    if (by == 0 || !x) return x;
    return clv_concat((clv_tensor *[]){clv_slice(x, axis, by, all - by), clv_slice(x, axis, 0, by)}, 2, axis);
}

// ---- what is added to scores ----------------------------------------------------------------------------------------

/** Which of the biases belongs to each pair of places in a window: by how far one lies from the other. */
static clv_tensor *pairs(clv_graph *graph) {
    static int32_t index[PLACES * PLACES];
    int32_t *at = index;
    for (int a = 0; a < PLACES; a++)
        for (int b = 0; b < PLACES; b++)
            *at++ = (a / WINDOW - b / WINDOW + WINDOW - 1) * (2 * WINDOW - 1) + a % WINDOW - b % WINDOW +
                    WINDOW - 1;
    return clv_constant(graph, CLV_DTYPE_I32, CLV_SHAPE(PLACES * PLACES), index);
}

/** The region of a place along an axis: what was moved to the end is not a neighbour of what it lies beside. */
static int region(int64_t place, int64_t all, int64_t move) {
    if (move == 0) return 0;
    return place < all - WINDOW ? 0 : place < all - move ? 1 : 2;
}

/** -100 between places of other regions, for each window and head: [windows, heads, PLACES, PLACES]. */
static clv_tensor *mask(clv_graph *graph, const windows *w) {
    const int64_t across = w->padded[1] / WINDOW, n = w->padded[0] / WINDOW * across;
    float *values = clv__alloc((size_t)(n * w->heads * PLACES * PLACES), sizeof *values);
    int *regions = clv__alloc((size_t)n * PLACES, sizeof *regions);
    clv_tensor *out = NULL;
    for (int64_t i = 0; regions && i < n * PLACES; i++) {
        const int64_t y = i / PLACES / across * WINDOW + i % PLACES / WINDOW,
                      x = i / PLACES % across * WINDOW + i % WINDOW;
        regions[i] = 3 * region(y, w->padded[0], w->move[0]) + region(x, w->padded[1], w->move[1]);
    }
    for (int64_t i = 0; values && regions && i < n * w->heads * PLACES * PLACES; i++) {
        const int64_t window = i / PLACES / PLACES / w->heads * PLACES;
        values[i] = regions[window + i / PLACES % PLACES] == regions[window + i % PLACES] ? 0 : -100;
    }
    if (values && regions)
        out = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(n, w->heads, PLACES, PLACES), values);
    else
        clv__graph_fail(graph, CLV_E_HOST_MEMORY, "no host memory for the windows' mask");
    free(values);
    free(regions);
    return out;
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

/** [N, H, W, C] to rows of each window, [N*windows, PLACES, C], and back. */
static clv_tensor *part(clv_tensor *x, const windows *w) {
    const int64_t down = w->padded[0] / WINDOW, across = w->padded[1] / WINDOW;
    x = clv_reshape(x, CLV_SHAPE(w->n, down, WINDOW, across, WINDOW, w->channels));
    x = clv_permute(x, (int[]){0, 1, 3, 2, 4, 5}, 6);
    return clv_reshape(x, CLV_SHAPE(w->n * down * across, PLACES, w->channels));
}

static clv_tensor *join(clv_tensor *x, const windows *w) {
    const int64_t down = w->padded[0] / WINDOW, across = w->padded[1] / WINDOW;
    x = clv_reshape(x, CLV_SHAPE(w->n, down, across, WINDOW, WINDOW, w->channels));
    x = clv_permute(x, (int[]){0, 1, 3, 2, 4, 5}, 6);
    return clv_reshape(x, CLV_SHAPE(w->n, w->padded[0], w->padded[1], w->channels));
}

/** A third of the features that make queries, keys and values: [windows, heads, PLACES, features]. */
static clv_tensor *third(clv_tensor *x, int i, int64_t rows, const windows *w) {
    x = clv_slice(x, 2, i * w->channels, w->channels);
    x = clv_reshape(x, CLV_SHAPE(rows, PLACES, w->heads, w->channels / w->heads));
    return clv_permute(x, (int[]){0, 2, 1, 3}, 4);
}

static clv_tensor *attend(clv_tensor *x, clv_tensor *table, const windows *w) {
    clv_graph *graph = clv_tensor_graph(x);
    const int64_t n = w->padded[0] / WINDOW * (w->padded[1] / WINDOW), rows = w->n * n;
    const float scale = 1 / sqrtf((float)(w->channels / w->heads));
    x = linear(x, "qkv", 3 * w->channels);
    clv_tensor *q = clv_mul_scalar(third(x, 0, rows, w), scale);
    clv_tensor *scores = clv_matmul_t(q, false, third(x, 1, rows, w), true);
    clv_tensor *bias = clv_transpose(clv_embedding(table, pairs(graph)), 0, 1);
    bias = clv_reshape(bias, CLV_SHAPE(w->heads, PLACES, PLACES));
    if (w->move[0] || w->move[1] || w->heads % 4) { // for all windows: vectors are of four elements
        const clv_shape all = CLV_SHAPE(n, w->heads, PLACES, PLACES);
        const bool moved = w->move[0] || w->move[1];
        bias = moved ? clv_add(mask(graph, w), bias)
                     : clv_broadcast_to(clv_reshape(bias, CLV_SHAPE(1, w->heads, PLACES, PLACES)), all);
        scores = clv_reshape(scores, CLV_SHAPE(w->n, n, w->heads, PLACES, PLACES));
    }
    scores = clv_reshape(clv_softmax(clv_add(scores, bias), -1), CLV_SHAPE(rows, w->heads, PLACES, PLACES));
    x = clv_permute(clv_matmul(scores, third(x, 2, rows, w)), (int[]){0, 2, 1, 3}, 4);
    return linear(clv_reshape(x, CLV_SHAPE(rows, PLACES, w->channels)), "proj", w->channels);
}

static clv_tensor *attention(clv_tensor *x, int64_t heads, bool moves) {
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph || clv_tensor_shape(x).rank != 4) return NULL;
    const windows w = windows_of(x, heads, moves);
    clv_scope_push(graph, "attn");
    clv_tensor *table =
        clv_parameter(graph, "relative_position_bias_table", CLV_SHAPE(BIASES, heads), narrow);
    x = clv__pad_zeros(x, 1, 0, w.padded[0] - w.height);
    x = clv__pad_zeros(x, 2, 0, w.padded[1] - w.width);
    x = part(roll(roll(x, 1, w.move[0]), 2, w.move[1]), &w);
    x = join(attend(x, table, &w), &w);
    x = roll(x, 1, w.move[0] ? w.padded[0] - w.move[0] : 0);
    x = roll(x, 2, w.move[1] ? w.padded[1] - w.move[1] : 0);
    if (w.padded[0] > w.height) x = clv_slice(x, 1, 0, w.height);
    if (w.padded[1] > w.width) x = clv_slice(x, 2, 0, w.width);
    clv_scope_pop(graph);
    return x;
}

static clv_tensor *block(clv_tensor *x, int64_t heads, bool moves, float drop) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape shape = clv_tensor_shape(x);
    if (!graph || shape.rank != 4) return NULL; // after a mistake
    clv_tensor *y = attention(clv_nn_layer_norm(x, "norm1", 0), heads, moves);
    x = clv_add(x, clv__stochastic_depth(y, drop));
    y = clv_nn_layer_norm(x, "norm2", 0);
    clv_scope_push(graph, "mlp");
    y = linear(clv_gelu(linear(y, "0", 4 * shape.dims[3])), "3", shape.dims[3]);
    clv_scope_pop(graph);
    return clv_add(x, clv__stochastic_depth(y, drop));
}

/** Of each square of four places one, with twice the channels. */
static clv_tensor *merge(clv_tensor *x) {
    const clv_shape s = clv_tensor_shape(x);
    if (s.rank != 4) return NULL; // after a mistake
    const int64_t height = (s.dims[1] + 1) / 2, width = (s.dims[2] + 1) / 2;
    x = clv__pad_zeros(clv__pad_zeros(x, 1, 0, s.dims[1] % 2), 2, 0, s.dims[2] % 2);
    x = clv_reshape(x, CLV_SHAPE(s.dims[0], height, 2, width, 2, s.dims[3]));
    x = clv_permute(x, (int[]){0, 1, 3, 4, 2, 5}, 6);
    x = clv_reshape(x, CLV_SHAPE(s.dims[0], height, width, 4 * s.dims[3]));
    clv_graph *graph = clv_tensor_graph(x);
    if (!graph) return NULL;
    clv_scope_push(graph, "reduction"); // before the norm, as in a state_dict
    clv_tensor *weight = clv_parameter(graph, "weight", CLV_SHAPE(2 * s.dims[3], 4 * s.dims[3]), narrow);
    clv_scope_pop(graph);
    return clv_linear(clv_nn_layer_norm(x, "norm", 0), weight, NULL);
}

clv_tensor *clv__build_swin_t(clv_tensor *x, const clv_model *model) {
    static const int depths[] = {2, 2, 6, 2};
    enum { CHANNELS = 96, BLOCKS = 12 };
    clv_graph *graph = clv_tensor_graph(x);
    int n = 0;
    clv_scope_push(graph, "features");
    clv_scope_push(graph, "0");
    x = clv_nn_conv2d(x, "0", CHANNELS, &(clv_nn_conv2d_config){.kernel = {4}, .stride = {4}});
    x = clv_nn_layer_norm(clv_permute(x, (int[]){0, 2, 3, 1}, 4), "2", 0);
    clv_scope_pop(graph);
    for (int s = 0; s < 4; s++) {
        if (s) {
            clv__scope_push_index(graph, 2 * s);
            x = merge(x);
            clv_scope_pop(graph);
        }
        clv__scope_push_index(graph, 2 * s + 1);
        for (int i = 0; i < depths[s]; i++, n++) {
            clv__scope_push_index(graph, i);
            x = block(x, 3 << s, i % 2, 0.2f * (float)n / (BLOCKS - 1));
            clv_scope_pop(graph);
        }
        clv_scope_pop(graph);
    }
    clv_scope_pop(graph);
    x = clv_mean(clv_nn_layer_norm(x, "norm", 0), (int[]){1, 2}, 2, false);
    return linear(x, "head", clv__model_outputs(model));
}
