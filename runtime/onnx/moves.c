// SPDX-License-Identifier: Apache-2.0
// Nodes that move numbers, and those that tell of shapes.

#include "onnx/import.h"
#include "onnx/shapes.h"

// ---- shapes told ----------------------------------------------------------------------------------------------------

static void build_shape(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    int64_t start = clv__onnx_int(use, "start", 0), end = clv__onnx_int(use, "end", shape.rank);
    start = start < 0 ? start + shape.rank : start;
    end = end < 0 ? end + shape.rank : end;
    start = start < 0 ? 0 : start > shape.rank ? shape.rank : start;
    end = end < start ? start : end > shape.rank ? shape.rank : end;
    clv__known *out = clv__onnx_new_known(use, CLV__ONNX_INT64, CLV_SHAPE(end - start));
    for (int64_t i = start; out && i < end; i++) out->v[i - start] = (double)shape.dims[i];
    clv__onnx_give_known(use, 0, out);
}

static void build_size(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    clv__known *out = clv__onnx_new_known(use, CLV__ONNX_INT64, (clv_shape){0});
    if (out) out->v[0] = (double)clv_shape_numel(&shape);
    clv__onnx_give_known(use, 0, out);
}

static void build_eye_like(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int type = (int)clv__onnx_int(use, "dtype", use->in[0] ? use->in[0]->type : CLV__ONNX_FLOAT);
    const int64_t k = clv__onnx_int(use, "k", 0);
    clv__known *out = shape.rank == 2 ? clv__onnx_new_known(use, type, shape) : NULL;
    for (int64_t i = 0; out && i < shape.dims[0]; i++)
        if (i + k >= 0 && i + k < shape.dims[1]) out->v[i * shape.dims[1] + i + k] = 1;
    clv__onnx_give_known(use, 0, out);
}

// ---- the same numbers -----------------------------------------------------------------------------------------------

/** In another shape. */
static void build_reshape(clv__onnx_use *use) {
    static bool (*const shapes[])(clv__onnx_use *, const clv_shape *, clv_shape *) = {
        clv__onnx_reshaped, clv__onnx_squeezed, clv__onnx_unsqueezed};
    const clv_shape from = clv__onnx_shape(use, 0);
    clv_shape to = {0};
    if (shapes[use->row->which](use, &from, &to))
        clv__onnx_give(use, 0, clv__onnx_reshape(clv__onnx_in(use, 0), to.dims, to.rank));
}

/** All dimensions before an axis multiplied, and all from it on. */
static void halves(const clv_shape *shape, int axis, int64_t out[2]) {
    out[0] = out[1] = 1;
    for (int d = 0; d < shape->rank; d++) out[d >= axis] *= shape->dims[d];
}

static void build_flatten(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int64_t axis = clv__onnx_int(use, "axis", 1);
    int64_t dims[2];
    halves(&shape, axis == shape.rank ? shape.rank : clv__onnx_axis(use, axis, shape.rank), dims);
    clv__onnx_give(use, 0, clv__onnx_reshape(clv__onnx_in(use, 0), dims, 2));
}

static void build_transpose(clv__onnx_use *use) {
    const int rank = clv__onnx_shape(use, 0).rank;
    int axes[CLV_MAX_RANK];
    if (clv__onnx_transposed(use, rank, axes))
        clv__onnx_give(use, 0, clv__onnx_permute(clv__onnx_in(use, 0), axes, rank));
}

static void build_expand(clv__onnx_use *use) {
    const clv_shape from = clv__onnx_shape(use, 0);
    clv_shape to = {0};
    to.rank = clv__onnx_numbers(use, 1, to.dims, CLV_MAX_RANK);
    if (to.rank < 0) return;
    const bool constant = !use->in[1]->fed,
               single = from.rank < to.rank || (from.rank == to.rank && from.dims[0] == 1);
    if (to.rank > (use->in[0]->known != NULL) && constant &&
        single) // known places are the same for each sample
        to.dims[0] = clv__onnx_of_batch(use, to.dims[0], true);
    const clv__batches b = use->batches;
    if (to.rank == from.rank && to.rank && constant && !single && b.of_file && b.of_file != b.now)
        to.dims[0] = from.dims[0]; // it had as many in the file
    for (int i = 1; i <= from.rank && i <= to.rank;
         i++) // a 1 of the shape is repeated to the input's dimension
        if (to.dims[to.rank - i] == 1) to.dims[to.rank - i] = from.dims[from.rank - i];
    if (from.rank > to.rank) {
        for (int i = to.rank - 1; i >= 0; i--) to.dims[i + from.rank - to.rank] = to.dims[i];
        for (int i = 0; i < from.rank - to.rank; i++) to.dims[i] = from.dims[i];
        to.rank = from.rank;
    }
    clv__onnx_give(use, 0, clv_broadcast_to(clv__onnx_in(use, 0), to));
}

// ---- parts and wholes -----------------------------------------------------------------------------------------------

/** A part of a file that was written for a batch of one, in which it was not repeated for each sample. */
static clv_tensor *for_batch(const clv__onnx_use *use, clv_tensor *x, int axis) {
    clv_shape shape = clv_tensor_shape(x);
    if (!x || !axis || use->batches.of_file != 1 || shape.dims[0] != 1 || use->batches.now == 1) return x;
    bool batch = false;
    for (int i = 0; i < use->n_in; i++)
        batch =
            batch || (use->in[i]->tensor && clv_tensor_shape(use->in[i]->tensor).dims[0] == use->batches.now);
    shape.dims[0] = use->batches.now;
    return batch ? clv_broadcast_to(x, shape) : x;
}

static void build_concat(clv__onnx_use *use) {
    clv_tensor *parts[256];
    int n = 0, rank = clv__onnx_shape(use, 0).rank;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 1), rank);
    clv_tensor *y = NULL;
    for (int i = 0; i < use->n_in; i++) { // any number, some hundred at a time
        parts[n++] = for_batch(use, clv__onnx_in(use, i), axis);
        if (n < 256 && i + 1 < use->n_in) continue;
        y = n == 1 ? parts[0] : clv_concat(parts, n, axis);
        parts[0] = y;
        n = 1;
    }
    clv__onnx_give(use, 0, y);
}

static void build_slice(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    clv__onnx_range range[CLV_MAX_RANK];
    if (!clv__onnx_ranges(use, &shape, range)) return;
    clv_tensor *x = clv__onnx_in(use, 0);
    for (int d = 0; x && d < shape.rank; d++) {
        if (range[d].step == 1 || range[d].n <= 1) {
            x = clv__onnx_part(x, d, range[d].start, range[d].n);
            continue;
        }
        int64_t *index = clv__onnx_indices(use, range[d].n);
        for (int64_t i = 0; index && i < range[d].n; i++) index[i] = range[d].start + i * range[d].step;
        x = index ? clv__onnx_pick(use, x, d, index, range[d].n) : NULL;
    }
    clv__onnx_give(use, 0, x);
}

static void build_split(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank);
    int64_t sizes[256];
    int n = clv__onnx_list(use, "split", 1, sizes, 256);
    if (n < 0 && !clv__onnx_failed(use)) {
        const int64_t all = shape.dims[axis],
                      wanted = clv__onnx_int(use, "num_outputs", (int64_t)use->node->n_outputs);
        const int64_t each = wanted > 0 ? (all + wanted - 1) / wanted : 0;
        n = wanted > 0 && wanted <= 256 ? (int)wanted : 0;
        for (int i = 0; i < n; i++) {
            const int64_t left = all - each * i;
            sizes[i] = left < each ? left > 0 ? left : 0 : each;
        }
    }
    int64_t start = 0;
    for (int i = 0; i < n && !clv__onnx_failed(use); start += sizes[i++])
        if (i < use->n_out && use->out[i])
            clv__onnx_give(use, i, clv__onnx_part(clv__onnx_in(use, 0), axis, start, sizes[i]));
}

static void build_tile(clv__onnx_use *use) {
    int64_t times[CLV_MAX_RANK];
    const int n = clv__onnx_numbers(use, 1, times, CLV_MAX_RANK);
    clv_tensor *x = clv__onnx_in(use, 0);
    for (int d = 0; x && d < n; d++) {
        if (times[d] == 1) continue;
        // a dimension in front of the axis, repeated and joined with it
        clv_shape shape = clv_tensor_shape(x), wide = shape;
        if (shape.rank == CLV_MAX_RANK || times[d] < 0) {
            clv__onnx_fail(use, CLV_E_UNSUPPORTED, "tiles of %d dimensions", shape.rank);
            return;
        }
        wide.rank++;
        for (int i = wide.rank - 1; i > d; i--) wide.dims[i] = shape.dims[i - 1];
        wide.dims[d] = 1;
        x = clv_reshape(x, wide);
        wide.dims[d] = times[d];
        shape.dims[d] = clv__onnx_times(shape.dims[d], times[d]);
        x = clv_reshape(clv_broadcast_to(x, wide), shape);
    }
    clv__onnx_give(use, 0, x);
}

/** The place that each of an axis's numbers comes from, where its ends are padded with what is there. */
static int64_t mirrored(int64_t at, int64_t size, bool reflect, bool wrap) {
    if (wrap) return ((at % size) + size) % size;
    if (!reflect || size == 1) return at < 0 ? 0 : at >= size ? size - 1 : at;
    const int64_t period = 2 * (size - 1);
    at = ((at % period) + period) % period;
    return at < size ? at : period - at;
}

static void build_pad(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    int64_t pads[2 * CLV_MAX_RANK], axes[CLV_MAX_RANK], before[CLV_MAX_RANK] = {0}, after[CLV_MAX_RANK] = {0};
    const int n = clv__onnx_list(use, "pads", 1, pads, 2 * CLV_MAX_RANK),
              n_axes = clv__onnx_list(use, NULL, 3, axes, CLV_MAX_RANK),
              half = n_axes >= 0 ? n_axes : shape.rank;
    if (n != 2 * half) {
        clv__onnx_fail(use, CLV_E_VALUE, "%d pads for %d axes", n, half);
        return;
    }
    for (int i = 0; i < half; i++) {
        const int d = clv__onnx_axis(use, n_axes >= 0 ? axes[i] : i, shape.rank);
        before[d] = pads[i];
        after[d] = pads[half + i];
    }
    clv_tensor *x = clv__onnx_in(use, 0);
    if (clv__onnx_word(use, "mode", "constant", true)) {
        const double value = clv__onnx_number(use, 2, clv__onnx_real(use, "value", 0));
        clv__onnx_give(use, 0, clv__onnx_failed(use) ? NULL : clv__onnx_pad(use, x, before, after, value));
        return;
    }
    const bool reflect = clv__onnx_word(use, "mode", "reflect", false),
               wrap = clv__onnx_word(use, "mode", "wrap", false);
    for (int d = 0; x && d < shape.rank; d++) {
        const int64_t size = shape.dims[d], length = size + before[d] + after[d];
        if (length == size && !before[d]) continue;
        int64_t *index = length > 0 && size > 0 ? clv__onnx_indices(use, length) : NULL;
        for (int64_t i = 0; index && i < length; i++) index[i] = mirrored(i - before[d], size, reflect, wrap);
        x = index ? clv__onnx_pick(use, x, d, index, length) : NULL;
    }
    clv__onnx_give(use, 0, x);
}

// ---- by index -------------------------------------------------------------------------------------------------------

/** Indices as i32, of which the negative count from the end. */
static clv_tensor *wrapped(clv__onnx_use *use, int i, int64_t size) {
    const clv__known *known = clv__onnx_if_known(use, i);
    clv_tensor *index = clv__onnx_i32(use, i);
    bool negative = !known;
    for (int64_t k = 0, n = known ? clv_shape_numel(&known->shape) : 0; k < n; k++)
        negative = negative || known->v[k] < 0;
    if (!negative || !index) return index;
    clv_tensor *zero = clv__onnx_scalar(use, 0, false), *end = clv__onnx_scalar(use, (double)size, false);
    return clv_where(clv_lt(index, zero), clv_add(index, end), index);
}

/** Known places of a list of all of a batch's numbers, which begin with the sample: of a batch that is not the file's the same places of
 *  each sample that there is now. Exporters write them for views with strides. NULL: it is none such. */
static clv_tensor *of_all_samples(clv__onnx_use *use, const clv_shape *x, const clv__known *index) {
    const clv__batches b = use->batches;
    if (x->rank != 1 || !b.of_file || b.of_file == b.now || !use->in[0]->fed || use->in[1]->fed) return NULL;
    const int64_t n = clv_shape_numel(&index->shape), inner = b.now ? x->dims[0] / b.now : 0,
                  each = n / b.of_file;
    if (!index->shape.rank || index->shape.dims[0] != b.of_file || !n || inner * b.now != x->dims[0])
        return NULL;
    bool all = each == inner;
    for (int64_t i = 0; i < n; i++) {
        if (index->v[i] < 0 || index->v[i] != index->v[i % each] + (double)(i / each * inner)) return NULL;
        if (index->v[i % each] >= (double)inner) return NULL;
        all = all && index->v[i] == (double)i;
    }
    clv_shape shape = index->shape;
    shape.dims[0] = b.now;
    if (all) return clv__onnx_reshape(clv__onnx_in(use, 0), shape.dims, shape.rank);
    clv__known *places = clv__onnx_new_known(use, CLV__ONNX_INT64, shape);
    for (int64_t i = 0; places && i < each * b.now; i++)
        places->v[i] = index->v[i % each] + (double)(i / each * inner);
    return places ? clv__onnx_rows(clv__onnx_in(use, 0), 0, clv__onnx_constant(use, places)) : NULL;
}

static void build_gather(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    if (!shape.rank) {
        clv__onnx_fail(use, CLV_E_SHAPE, "it gathers from a number");
        return;
    }
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank);
    const clv__known *index = clv__onnx_if_known(use, 1);
    clv_tensor *samples = index ? of_all_samples(use, &shape, index) : NULL;
    if (samples) {
        clv__onnx_give(use, 0, samples);
        return;
    }
    if (index && clv_shape_numel(&index->shape) == 1) { // one of them is a part
        const int64_t at = clv__onnx_whole(index->v[0]) + (index->v[0] < 0 ? shape.dims[axis] : 0);
        clv_shape to = {0};
        for (int d = 0; d < shape.rank; d++) {
            if (d != axis)
                to.dims[to.rank++] = shape.dims[d];
            else
                for (int k = 0; k < index->shape.rank; k++) to.dims[to.rank++] = 1;
        }
        clv_tensor *part = clv__onnx_part(clv__onnx_in(use, 0), axis, at, 1);
        clv__onnx_give(use, 0, clv__onnx_reshape(part, to.dims, to.rank));
        return;
    }
    clv__onnx_give(use, 0, clv__onnx_rows(clv__onnx_in(use, 0), axis, wrapped(use, 1, shape.dims[axis])));
}

static void build_one_hot(clv__onnx_use *use) {
    const int64_t depth = clv__onnx_whole(clv__onnx_number(use, 1, 0));
    clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), shape.rank + 1);
    clv__known *count =
        clv__onnx_failed(use) ? NULL : clv__onnx_new_known(use, CLV__ONNX_INT64, CLV_SHAPE(depth));
    if (!count || shape.rank == CLV_MAX_RANK) return;
    for (int64_t i = 0; i < depth; i++) count->v[i] = (double)i;
    for (int d = shape.rank; d > axis; d--) shape.dims[d] = shape.dims[d - 1];
    shape.dims[axis] = 1;
    shape.rank++;
    clv_shape along = {.rank = shape.rank - axis, .dims = {depth, 1, 1, 1, 1, 1, 1, 1}};
    clv_tensor *index = clv__onnx_reshape(wrapped(use, 0, depth), shape.dims, shape.rank);
    clv_tensor *hot =
        clv_eq(index, clv__onnx_reshape(clv__onnx_constant(use, count), along.dims, along.rank));
    clv_tensor *values = clv__onnx_in(use, 2);
    clv_tensor *off = clv__onnx_reshape(clv__onnx_part(values, 0, 0, 1), NULL, 0),
               *on = clv__onnx_reshape(clv__onnx_part(values, 0, 1, 1), NULL, 0);
    clv__onnx_give_type(use, 0, clv_where(hot, on, off),
                        use->n_in > 2 && use->in[2] ? use->in[2]->type : CLV__ONNX_FLOAT);
}

static void build_trilu(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int64_t k = clv__onnx_whole(clv__onnx_number(use, 1, 0));
    const bool upper = clv__onnx_int(use, "upper", 1) != 0;
    if (shape.rank < 2) return;
    const int64_t rows = shape.dims[shape.rank - 2], columns = shape.dims[shape.rank - 1];
    clv__known *mask = clv__onnx_new_known(use, CLV__ONNX_BOOL, CLV_SHAPE(rows, columns));
    for (int64_t i = 0; mask && i < rows * columns; i++) {
        const int64_t diagonal = i % columns - i / columns;
        mask->v[i] = upper ? diagonal >= k : diagonal <= k;
    }
    if (!mask) return;
    clv_tensor *x = clv__onnx_in(use, 0),
               *zero = x ? clv__onnx_scalar(use, 0, clv__onnx_tensor_is_float(x)) : NULL;
    clv__onnx_give(use, 0, clv_where(clv__onnx_constant(use, mask), x, zero));
}

// ---- blocks of pictures ---------------------------------------------------------------------------------------------

static void build_depth_to_space(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int64_t k = clv__onnx_int(use, "blocksize", 1);
    if (s.rank != 4 || k < 1 || s.dims[1] % (k * k)) {
        clv__onnx_fail(use, CLV_E_SHAPE, "channels that a block of %lld does not divide", (long long)k);
        return;
    }
    const int64_t c = s.dims[1] / k / k, h = s.dims[2], w = s.dims[3], n = s.dims[0];
    const bool depth_first = clv__onnx_word(use, "mode", "DCR", true);
    clv_tensor *x = clv__onnx_in(use, 0);
    x = depth_first ? clv__onnx_reshape(x, (int64_t[]){n, k, k, c, h, w}, 6)
                    : clv__onnx_reshape(x, (int64_t[]){n, c, k, k, h, w}, 6);
    x = depth_first ? clv__onnx_permute(x, (int[]){0, 3, 4, 1, 5, 2}, 6)
                    : clv__onnx_permute(x, (int[]){0, 1, 4, 2, 5, 3}, 6);
    clv__onnx_give(use, 0, clv__onnx_reshape(x, (int64_t[]){n, c, h * k, w * k}, 4));
}

static void build_space_to_depth(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int64_t k = clv__onnx_int(use, "blocksize", 1);
    if (s.rank != 4 || k < 1 || s.dims[2] % k || s.dims[3] % k) {
        clv__onnx_fail(use, CLV_E_SHAPE, "pictures that a block of %lld does not divide", (long long)k);
        return;
    }
    const int64_t n = s.dims[0], c = s.dims[1], h = s.dims[2] / k, w = s.dims[3] / k;
    clv_tensor *x = clv__onnx_reshape(clv__onnx_in(use, 0), (int64_t[]){n, c, h, k, w, k}, 6);
    const bool depth_first = clv__onnx_word(use, "mode", "DCR", true);
    x = clv__onnx_permute(x, depth_first ? (int[]){0, 3, 5, 1, 2, 4} : (int[]){0, 1, 3, 5, 2, 4}, 6);
    clv__onnx_give(use, 0, clv__onnx_reshape(x, (int64_t[]){n, c * k * k, h, w}, 4));
}

const clv__onnx_row clv__onnx_moves[] = {
    {"Concat", .build = build_concat},
    {"DepthToSpace", .build = build_depth_to_space},
    {"Expand", .build = build_expand},
    {"EyeLike", .build = build_eye_like},
    {"Flatten", .build = build_flatten},
    {"Gather", .build = build_gather},
    {"OneHot", .build = build_one_hot},
    {"Pad", .build = build_pad},
    {"Reshape", .build = build_reshape},
    {"Shape", .build = build_shape},
    {"Size", .build = build_size},
    {"Slice", .build = build_slice},
    {"SpaceToDepth", .build = build_space_to_depth},
    {"Split", .build = build_split},
    {"Squeeze", build_reshape, .which = 1},
    {"Tile", .build = build_tile},
    {"Transpose", .build = build_transpose},
    {"Trilu", .build = build_trilu},
    {"Unsqueeze", build_reshape, .which = 2},
    {0},
};
