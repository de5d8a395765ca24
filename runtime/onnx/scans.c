// SPDX-License-Identifier: Apache-2.0
// Sums along an axis, and moves whose places are numbers of the graph. Source: the operators of ONNX 1.23.
#include <math.h>

#include "onnx/import.h"

// ---- running sums and products -----------------------------------------------------------------------

static void build_scan(clv__onnx_use *use) {
    const bool sums = !use->row->which;
    clv_tensor *x = sums ? clv__onnx_in(use, 0) : clv__onnx_float(use, 0);
    const int axis =
        clv__onnx_axis(use, clv__onnx_whole(clv__onnx_number(use, 1, 0)), clv__onnx_shape(use, 0).rank);
    if (clv__onnx_failed(use)) return;
    x = (sums ? clv_cumsum : clv_cumprod)(x, axis, clv__onnx_int(use, "exclusive", 0) != 0,
                                          clv__onnx_int(use, "reverse", 0) != 0);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, x));
}

// ---- where indices point -----------------------------------------------------------------------------

/** Dimensions multiplied from `first` to before `end`. */
static int64_t product(const clv_shape *shape, int first, int end) {
    int64_t n = 1;
    for (int i = first; i < end; i++) n *= shape->dims[i];
    return n;
}

/** For indices along one axis: which element of x, of all in a row, each points to. i32, in the index's
 *  shape. */
static clv_tensor *element_of(clv__onnx_use *use, const clv_shape *x, int axis) {
    const clv_shape at = clv__onnx_shape(use, 1);
    clv_tensor *sum = NULL;
    if (at.rank != x->rank || clv_shape_numel(x) > INT32_MAX) {
        clv__onnx_fail(use, CLV_E_SHAPE, "indices of rank %d for %d dimensions", at.rank, x->rank);
        return NULL;
    }
    for (int d = 0; d < x->rank; d++) {
        clv_tensor *one = d == axis ? clv__onnx_wrapped(use, clv__onnx_i32(use, 1), x->dims[axis])
                                    : clv__onnx_places(use, at.dims[d], d, at.rank);
        one = clv_mul(one, clv__onnx_scalar(use, (double)product(x, d + 1, x->rank), false));
        sum = sum ? clv_add(sum, one) : one;
    }
    return sum;
}

/** For rows of indices: which part of x each points to, parts being what is behind the dimensions that a
 *  row names. */
static clv_tensor *part_at(clv__onnx_use *use, const clv_shape *x) {
    const clv_shape at = clv__onnx_shape(use, 1);
    const int last = at.rank - 1, n = at.rank ? (int)at.dims[last] : 0;
    clv_tensor *index = clv__onnx_i32(use, 1), *sum = NULL;
    if (n < 1 || n > x->rank || clv_shape_numel(x) > INT32_MAX) {
        clv__onnx_fail(use, CLV_E_SHAPE, "rows of %d indices for %d dimensions", n, x->rank);
        return NULL;
    }
    for (int k = 0; k < n; k++) {
        clv_tensor *one = clv__onnx_reshape(clv__onnx_part(index, last, k, 1), at.dims, last);
        one = clv__onnx_wrapped(use, one, x->dims[k]);
        one = clv_mul(one, clv__onnx_scalar(use, (double)product(x, k + 1, n), false));
        sum = sum ? clv_add(sum, one) : one;
    }
    return sum;
}

static void build_gather_elements(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank);
    clv_tensor *index =
        clv__onnx_failed(use) ? NULL : clv__onnx_wrapped(use, clv__onnx_i32(use, 1), shape.dims[axis]);
    clv__onnx_give(use, 0, clv_gather(clv__onnx_in(use, 0), axis, index));
}

/** Does each row of known indices begin with its own number, as those do that take the same places of every sample of the file's batch? Of a
 *  batch of one they may stand there for each sample that there is now. */
static bool by_sample(const clv__known *index, clv__batches b) {
    const int rank = index->shape.rank;
    const int64_t k = rank ? index->shape.dims[rank - 1] : 0, n = clv_shape_numel(&index->shape);
    if (rank < 2 || k < 2 || n < 1) return false;
    const bool spread = b.of_file == 1 && index->shape.dims[0] == b.now;
    if (!spread && index->shape.dims[0] != b.of_file) return false;
    const int64_t each = n / index->shape.dims[0];
    for (int64_t i = 0; i < n; i++)
        if (index->v[i] != (i % k ? index->v[i % each] : spread ? 0 : (double)(i / each))) return false;
    return true;
}

/** The same places of every sample of the batch that there is now. */
static clv_tensor *of_samples(clv__onnx_use *use, const clv__known *index, clv_tensor *x) {
    clv_shape shape = index->shape;
    const int64_t k = shape.dims[shape.rank - 1], each = clv_shape_numel(&shape) / shape.dims[0];
    shape.dims[0] = use->batches.now, shape.dims[shape.rank - 1] = k - 1;
    clv__known *places = clv__onnx_new_known(use, CLV__ONNX_INT64, shape);
    for (int64_t i = 0, n = places ? clv_shape_numel(&shape) : 0; i < n; i++)
        places->v[i] = index->v[i / (k - 1) * k % each + i % (k - 1) + 1];
    return places ? clv_gather_nd(x, 1, clv__onnx_constant(use, places)) : NULL;
}

static void build_gather_nd(clv__onnx_use *use) {
    const int batch = (int)clv__onnx_int(use, "batch_dims", 0);
    const clv__known *index = clv__onnx_has(use, 1) && !use->in[1]->fed ? clv__onnx_if_known(use, 1) : NULL;
    const clv__batches b = use->batches;
    const bool other = index && !batch && b.of_file && b.of_file != b.now && use->in[0]->fed &&
                       clv__onnx_shape(use, 0).dims[0] == b.now;
    clv_tensor *x = clv__onnx_in(use, 0);
    if (other && !by_sample(index, b))
        clv__onnx_fail(
            use, CLV_E_UNSUPPORTED,
            "it takes samples of a batch of %lld by their numbers, and the batch is %lld: export the model "
            "with a batch that varies",
            (long long)b.of_file, (long long)b.now);
    else
        clv__onnx_give(use, 0,
                       other ? of_samples(use, index, x) : clv_gather_nd(x, batch, clv__onnx_i32(use, 1)));
}

// ---- scatter -----------------------------------------------------------------------------------------

enum { MOST_TABLE = 1 << 26 }; // numbers of a table of all parts by all updates

/** Halves multiplied along axis 0, until one is left. */
static clv_tensor *product_of(clv_tensor *x) {
    for (int64_t n = clv_tensor_shape(x).dims[0]; x && n > 1; n = clv_tensor_shape(x).dims[0]) {
        const int64_t half = n / 2;
        clv_tensor *y = clv_mul(clv_slice(x, 0, 0, half), clv_slice(x, 0, half, half));
        x = n % 2 ? clv_concat((clv_tensor *[]){y, clv_slice(x, 0, n - 1, 1)}, 2, 0) : y;
    }
    return x;
}

/** Of all updates [M, 1, D] of each part, by `hot` [M, N, 1]: the largest; by turned signs the smallest. */
static clv_tensor *largest(clv__onnx_use *use, clv_tensor *hot, clv_tensor *updates) {
    const int axis = 0;
    return clv_max(clv_where(hot, updates, clv__onnx_scalar(use, -INFINITY, true)), &axis, 1, false);
}

/** x [N, D], updates [M, D] joined with the parts that `part` [M] names, by a table of all by all. f32. */
static clv_tensor *scattered(clv__onnx_use *use, clv_tensor *x, clv_tensor *part, clv_tensor *updates) {
    const int64_t n = clv_tensor_shape(x).dims[0], d = clv_tensor_shape(x).dims[1],
                  m = clv_tensor_shape(updates).dims[0];
    if (!m || !x || !updates) return x;
    if ((double)n * (double)m * (double)d > MOST_TABLE) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "%lld updates of %lld places; the table would be too large",
                       (long long)m, (long long)n);
        return NULL;
    }
    clv_tensor *hot =
        clv_eq(clv__onnx_reshape(part, (int64_t[]){m, 1, 1}, 3), clv__onnx_places(use, n, 1, 3));
    updates = clv__onnx_reshape(updates, (int64_t[]){m, 1, d}, 3);
    if (clv__onnx_word(use, "reduction", "max", false)) {
        clv_tensor *y = largest(use, hot, updates);
        return clv_where(clv_gt(y, x), y, x);
    }
    if (clv__onnx_word(use, "reduction", "min", false)) {
        clv_tensor *y = clv_neg(largest(use, hot, clv_neg(updates)));
        return clv_where(clv_lt(y, x), y, x);
    }
    clv_tensor *factors = product_of(clv_where(hot, updates, clv__onnx_scalar(use, 1, true)));
    return clv_mul(x, clv__onnx_reshape(factors, (int64_t[]){n, d}, 2));
}

static void give_scattered(clv__onnx_use *use, clv_tensor *part, int64_t n, int64_t d, int64_t m) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    if (clv__onnx_failed(use)) return;
    clv_tensor *x = clv__onnx_reshape(clv__onnx_float(use, 0), (int64_t[]){n, d}, 2),
               *updates = clv__onnx_reshape(clv__onnx_float(use, 2), (int64_t[]){m, d}, 2);
    clv_tensor *y = scattered(use, x, clv__onnx_flat(part), updates);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, clv__onnx_reshape(y, shape.dims, shape.rank)));
}

/** What an op of ours does: updates are put, or added. */
static bool is_plain(const clv__onnx_use *use, bool *adds) {
    *adds = clv__onnx_word(use, "reduction", "add", false);
    return *adds || clv__onnx_word(use, "reduction", "none", true);
}

static void build_scatter_elements(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0), at = clv__onnx_shape(use, 1);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank);
    bool adds;
    if (clv__onnx_failed(use)) return;
    if (is_plain(use, &adds)) {
        clv_tensor *index = clv__onnx_wrapped(use, clv__onnx_i32(use, 1), shape.dims[axis]);
        clv__onnx_give(
            use, 0,
            (adds ? clv_scatter_add : clv_scatter)(clv__onnx_in(use, 0), axis, index, clv__onnx_in(use, 2)));
        return;
    }
    give_scattered(use, element_of(use, &shape, axis), clv_shape_numel(&shape), 1, clv_shape_numel(&at));
}

static void build_scatter_nd(clv__onnx_use *use) {
    const clv_shape shape = clv__onnx_shape(use, 0), at = clv__onnx_shape(use, 1);
    bool adds;
    if (is_plain(use, &adds)) {
        clv__onnx_give(use, 0,
                       (adds ? clv_scatter_nd_add : clv_scatter_nd)(
                           clv__onnx_in(use, 0), 0, clv__onnx_i32(use, 1), clv__onnx_in(use, 2)));
        return;
    }
    clv_tensor *part = part_at(use, &shape);
    if (clv__onnx_failed(use)) return;
    const int named = (int)at.dims[at.rank - 1];
    give_scattered(use, part, product(&shape, 0, named), product(&shape, named, shape.rank),
                   product(&at, 0, at.rank - 1));
}

/** A cache with new places written behind what it has, round its end where the mode says so. */
static void build_tensor_scatter(clv__onnx_use *use) {
    const clv_shape x = clv__onnx_shape(use, 0), u = clv__onnx_shape(use, 1);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -2), x.rank);
    if (clv__onnx_failed(use) || !axis) return;
    const int64_t outer = product(&x, 0, axis), inner = product(&x, axis + 1, x.rank), size = x.dims[axis],
                  added = u.dims[axis], each = x.dims[0] ? outer / x.dims[0] : 0;
    clv_tensor *start = clv__onnx_has(use, 2) ? clv__onnx_i32(use, 2)
                                              : clv_full(use->graph, CLV_DTYPE_I32, CLV_SHAPE(x.dims[0]), 0);
    start = clv__onnx_reshape(start, (int64_t[]){x.dims[0], 1, 1, 1}, 4);
    // the new place that each of the cache's has: from 0 to before `added`, else none
    clv_tensor *from = clv_sub(clv__onnx_places(use, size, 2, 4), start);
    if (clv__onnx_word(use, "mode", "circular", false)) from = clv__onnx_wrapped(use, from, size);
    clv_tensor *hot = clv_eq(from, clv__onnx_places(use, added, 3, 4)); // [N, 1, size, added]
    const int last = 3;
    clv_tensor *any = clv_sum(clv__onnx_as_float(hot), &last, 1, true);
    clv_tensor *old =
                   clv__onnx_reshape(clv__onnx_float(use, 0), (int64_t[]){x.dims[0], each, size, inner}, 4),
               *new =
                   clv__onnx_reshape(clv__onnx_float(use, 1), (int64_t[]){x.dims[0], each, added, inner}, 4);
    clv_tensor *y =
        clv_where(clv__onnx_with(use, clv_gt, any, 0), clv_matmul(clv__onnx_as_float(hot), new), old);
    clv__onnx_give(use, 0, clv__onnx_as_given(use, clv__onnx_reshape(y, x.dims, x.rank)));
}

// ---- other moves -------------------------------------------------------------------------------------

/** The first numbers of each sequence in turned order, the others as they are. */
static void build_reverse_sequence(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int batch = clv__onnx_axis(use, clv__onnx_int(use, "batch_axis", 1), s.rank),
              time = clv__onnx_axis(use, clv__onnx_int(use, "time_axis", 0), s.rank);
    int axes[CLV_MAX_RANK] = {batch, time}, back[CLV_MAX_RANK], n = 2;
    int64_t dims[CLV_MAX_RANK];
    if (clv__onnx_failed(use) || batch == time) return;
    const int64_t N = s.dims[batch], T = s.dims[time], D = N && T ? clv_shape_numel(&s) / (N * T) : 0;
    for (int d = 0; d < s.rank; d++)
        if (d != batch && d != time) axes[n++] = d;
    for (int i = 0; i < n; i++) back[axes[i]] = i, dims[i] = s.dims[axes[i]];
    clv_tensor *length = clv__onnx_reshape(clv__onnx_i32(use, 1), (int64_t[]){N, 1}, 2),
               *t = clv__onnx_places(use, T, 1, 2), *one = clv__onnx_scalar(use, 1, false);
    clv_tensor *from = clv_where(clv_lt(t, length), clv_sub(clv_sub(length, one), t), t);
    from = clv_add(from, clv_mul(clv__onnx_places(use, N, 0, 2), clv__onnx_scalar(use, (double)T, false)));
    clv_tensor *x = clv__onnx_permute(clv__onnx_in(use, 0), axes, n);
    x = clv__onnx_rows(clv__onnx_reshape(x, (int64_t[]){N * T, D}, 2), 0, clv__onnx_flat(from));
    clv__onnx_give(use, 0, clv__onnx_permute(clv__onnx_reshape(x, dims, n), back, n));
}

static void build_compress(clv__onnx_use *use) {
    const clv__known *wanted = clv__onnx_known(use, 1);
    const bool has_axis = clv__onnx_attribute_find(use->node, "axis") != NULL;
    const clv_shape shape = clv__onnx_shape(use, 0);
    const int axis = has_axis ? clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), shape.rank) : 0;
    if (!wanted || clv__onnx_failed(use)) return;
    const int64_t all = clv_shape_numel(&wanted->shape);
    int64_t *index = clv__onnx_indices(use, all), n = 0;
    for (int64_t i = 0; index && i < all; i++)
        if (wanted->v[i] != 0) index[n++] = i;
    clv_tensor *x = clv__onnx_in(use, 0);
    clv__onnx_give(use, 0,
                   index ? clv__onnx_pick(use, has_axis ? x : clv__onnx_flat(x), axis, index, n) : NULL);
}

static void build_center_crop_pad(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    int64_t axes[CLV_MAX_RANK], sizes[CLV_MAX_RANK], before[CLV_MAX_RANK] = {0}, after[CLV_MAX_RANK] = {0};
    const int named = clv__onnx_ints(use, "axes", axes, CLV_MAX_RANK),
              n = clv__onnx_numbers(use, 1, sizes, CLV_MAX_RANK);
    if (n != (named ? named : s.rank)) {
        clv__onnx_fail(use, CLV_E_SHAPE, "a size is not given for each axis");
        return;
    }
    for (int i = 0; i < n; i++) {
        const int d = clv__onnx_axis(use, named ? axes[i] : i, s.rank);
        const int64_t more = sizes[i] - s.dims[d], half = more < 0 ? -(-more / 2) : more / 2;
        before[d] = half;
        after[d] = more - half;
    }
    clv__onnx_give(use, 0, clv__onnx_pad(use, clv__onnx_in(use, 0), before, after, 0));
}

static void build_top_k(clv__onnx_use *use) {
    const clv_shape s = clv__onnx_shape(use, 0);
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), s.rank);
    const int64_t k = clv__onnx_whole(clv__onnx_number(use, 1, (double)clv__onnx_int(use, "k", 1)));
    clv_tensor *places;
    if (clv__onnx_failed(use)) return;
    clv_tensor *values =
        clv_topk(clv__onnx_in(use, 0), k, axis, clv__onnx_int(use, "largest", 1) != 0, &places);
    clv__onnx_give(use, 0, values);
    clv__onnx_give_type(use, 1, places, CLV__ONNX_INT64);
}

const clv__onnx_row clv__onnx_scans[] = {
    {"CenterCropPad", .build = build_center_crop_pad},
    {"Compress", .build = build_compress},
    {"CumProd", build_scan, .which = 1},
    {"CumSum", .build = build_scan},
    {"GatherElements", .build = build_gather_elements},
    {"GatherND", .build = build_gather_nd},
    {"ReverseSequence", .build = build_reverse_sequence},
    {"Scatter", .build = build_scatter_elements},
    {"ScatterElements", .build = build_scatter_elements},
    {"ScatterND", .build = build_scatter_nd},
    {"TensorScatter", .build = build_tensor_scatter},
    {"TopK", .build = build_top_k},
    {0},
};
