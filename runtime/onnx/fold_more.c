// SPDX-License-Identifier: Apache-2.0
// More nodes whose inputs are known while the graph is built: functions of a number, moves by index, and what
// has several results.
// Source: the operators of ONNX 1.23.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/import.h"
#include "onnx/shapes.h"

static int64_t product(const clv_shape *shape, int first, int end) {
    int64_t n = 1;
    for (int i = first; i < end; i++) n *= shape->dims[i];
    return n;
}

/** Where element `at` stands along a dimension. */
static int64_t place_of(const clv_shape *shape, int64_t at, int d) {
    return at / product(shape, d + 1, shape->rank) % shape->dims[d];
}

/** Room for a result, if it is no larger than what is computed here. */
static clv__known *room(clv__onnx_use *use, int type, clv_shape shape) {
    const int64_t n = clv_shape_numel(&shape);
    return n >= 0 && n <= CLV__MOST_KNOWN ? clv__onnx_new_known(use, type, shape) : NULL;
}

static bool give(clv__onnx_use *use, const clv__known *known) {
    clv__onnx_give_known(use, 0, known);
    return known != NULL;
}

/** A number from the end counts back from it; -1: it is outside. */
static int64_t wrapped(double index, int64_t size) {
    const int64_t at = (int64_t)index + (index < 0 ? size : 0);
    return at >= 0 && at < size ? at : -1;
}

// ---- functions of a number ---------------------------------------------------------------------------

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double relu(double x) {
    return x < 0 ? 0 : x;
}
static double sign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

static bool unary(clv__onnx_use *use, double (*of)(double)) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv__known *y = x ? room(use, x->type, x->shape) : NULL;
    const bool is_float = y && clv__onnx_is_float(y->type);
    for (int64_t i = 0, n = y ? clv_shape_numel(&y->shape) : 0; i < n; i++)
        y->v[i] = is_float ? (double)(float)of(x->v[i]) : trunc(of(x->v[i]));
    return give(use, y);
}

#define UNARY(of)                                                                                            \
    static bool fold_##of(clv__onnx_use *use) {                                                              \
        return unary(use, of);                                                                               \
    }
UNARY(acos)
UNARY(acosh)
UNARY(asin)
UNARY(asinh)
UNARY(atan)
UNARY(atanh)
UNARY(cos)
UNARY(cosh)
UNARY(erf)
UNARY(relu)
UNARY(sigmoid)
UNARY(sign)
UNARY(sin)
UNARY(sinh)
UNARY(tan)
UNARY(tanh)

static bool fold_clip(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    const double low = clv__onnx_number(use, 1, clv__onnx_real(use, "min", -INFINITY)),
                 high = clv__onnx_number(use, 2, clv__onnx_real(use, "max", INFINITY));
    clv__known *y = x ? room(use, x->type, x->shape) : NULL;
    for (int64_t i = 0, n = y ? clv_shape_numel(&y->shape) : 0; i < n; i++)
        y->v[i] = fmin(fmax(x->v[i], low), high);
    return give(use, y);
}

bool clv__onnx_fold_cast_like(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv__known *y = x && clv__onnx_has(use, 1) ? room(use, use->in[1]->type, x->shape) : NULL;
    const bool is_float = y && clv__onnx_is_float(y->type), is_bool = y && y->type == CLV__ONNX_BOOL;
    for (int64_t i = 0, n = y ? clv_shape_numel(&y->shape) : 0; i < n; i++) {
        if (!is_float && !is_bool && !isfinite(x->v[i])) return false;
        y->v[i] = is_bool ? x->v[i] != 0 : is_float ? (double)(float)x->v[i] : trunc(x->v[i]);
    }
    return give(use, y);
}

// ---- copies ------------------------------------------------------------------------------------------

static bool fold_tile(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    int64_t times[CLV_MAX_RANK];
    const int n = clv__onnx_numbers(use, 1, times, CLV_MAX_RANK);
    if (!x || n != x->shape.rank) return false;
    clv_shape shape = x->shape;
    for (int d = 0; d < n; d++) shape.dims[d] = clv__onnx_times(shape.dims[d], times[d]);
    clv__known *y = room(use, x->type, shape);
    for (int64_t i = 0, all = y ? clv_shape_numel(&shape) : 0; i < all; i++) {
        int64_t from = 0;
        for (int d = 0; d < n; d++)
            from = from * x->shape.dims[d] + place_of(&shape, i, d) % x->shape.dims[d];
        y->v[i] = x->v[from];
    }
    return give(use, y);
}

/** With one value alone. */
static bool fold_pad(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    int64_t pads[2 * CLV_MAX_RANK];
    const int n = clv__onnx_list(use, "pads", 1, pads, 2 * CLV_MAX_RANK);
    const bool constant = clv__onnx_word(use, "mode", "constant", true);
    const double value = clv__onnx_number(use, 2, clv__onnx_real(use, "value", 0));
    if (!x || !constant || clv__onnx_has(use, 3) || n != 2 * x->shape.rank) return false;
    clv_shape shape = x->shape;
    for (int d = 0; d < shape.rank; d++) shape.dims[d] += pads[d] + pads[shape.rank + d];
    clv__known *y = room(use, x->type, shape);
    for (int64_t i = 0, all = y ? clv_shape_numel(&shape) : 0; i < all; i++) {
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < shape.rank; d++) {
            const int64_t at = place_of(&shape, i, d) - pads[d];
            inside = inside && at >= 0 && at < x->shape.dims[d];
            from = from * x->shape.dims[d] + at;
        }
        y->v[i] = inside ? x->v[from] : value;
    }
    return give(use, y);
}

static bool fold_split(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    if (!x || !x->shape.rank) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), x->shape.rank);
    const int64_t all = x->shape.dims[axis], parts = (int64_t)use->node->n_outputs;
    const int64_t outer = product(&x->shape, 0, axis), inner = product(&x->shape, axis + 1, x->shape.rank);
    int64_t sizes[256], start = 0;
    const int n = clv__onnx_list(use, "split", 1, sizes, 256);
    const int64_t each = (all + parts - 1) / parts;
    if (clv__onnx_failed(use) || (n >= 0 && n < use->n_out)) return false;
    for (int i = 0; i < use->n_out; i++) {
        const int64_t left = all - start, size = n >= 0 ? sizes[i] : left < each ? left : each;
        clv_shape shape = x->shape;
        shape.dims[axis] = size;
        clv__known *y = size >= 0 && size <= left ? room(use, x->type, shape) : NULL;
        if (!y) return false;
        for (int64_t o = 0; o < outer; o++)
            memcpy(y->v + o * size * inner, x->v + (o * all + start) * inner,
                   (size_t)(size * inner) * sizeof *y->v);
        clv__onnx_give_known(use, i, y);
        start += size;
    }
    return true;
}

static bool fold_one_hot(clv__onnx_use *use) {
    const clv__known *index = clv__onnx_known(use, 0), *values = clv__onnx_known(use, 2);
    const int64_t depth = clv__onnx_whole(clv__onnx_number(use, 1, 0));
    if (!index || !values || clv_shape_numel(&values->shape) != 2 || index->shape.rank == CLV_MAX_RANK)
        return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), index->shape.rank + 1);
    clv_shape shape = index->shape;
    for (int d = shape.rank++; d > axis; d--) shape.dims[d] = shape.dims[d - 1];
    shape.dims[axis] = depth;
    clv__known *y = room(use, values->type, shape);
    const int64_t inner = product(&shape, axis + 1, shape.rank);
    for (int64_t i = 0, all = y ? clv_shape_numel(&shape) : 0; i < all; i++) {
        const double wanted = index->v[i / (inner * depth) * inner + i % inner];
        y->v[i] = values->v[wrapped(wanted, depth) == place_of(&shape, i, axis)];
    }
    return give(use, y);
}

// ---- by index ----------------------------------------------------------------------------------------

/** Where in x the element `at` of indices along an axis points to; -1: outside. */
static int64_t along(const clv__known *x, const clv__known *index, int64_t at, int axis) {
    int64_t to = 0;
    for (int d = 0; d < x->shape.rank; d++) {
        const int64_t own =
            d == axis ? wrapped(index->v[at], x->shape.dims[d]) : place_of(&index->shape, at, d);
        if (own < 0 || own >= x->shape.dims[d]) return -1;
        to = to * x->shape.dims[d] + own;
    }
    return to;
}

static bool fold_gather_elements(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0), *index = clv__onnx_known(use, 1);
    if (!x || !index || x->shape.rank != index->shape.rank) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), x->shape.rank);
    clv__known *y = room(use, x->type, index->shape);
    for (int64_t i = 0, n = y ? clv_shape_numel(&y->shape) : 0; i < n; i++) {
        const int64_t from = along(x, index, i, axis);
        if (from < 0) return false;
        y->v[i] = x->v[from];
    }
    return give(use, y);
}

/** A copy of x, to be written into; NULL: other reductions than the copy of updates are not computed here. */
static clv__known *copy_of(clv__onnx_use *use, const clv__known *x) {
    clv__known *y = clv__onnx_word(use, "reduction", "none", true) ? room(use, x->type, x->shape) : NULL;
    if (y) memcpy(y->v, x->v, (size_t)clv_shape_numel(&x->shape) * sizeof *y->v);
    return y;
}

static bool fold_scatter_elements(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0), *index = clv__onnx_known(use, 1),
                     *from = clv__onnx_known(use, 2);
    if (!x || !index || !from || x->shape.rank != index->shape.rank) return false;
    if (!clv_shape_equal(&index->shape, &from->shape)) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), x->shape.rank);
    clv__known *y = copy_of(use, x);
    for (int64_t i = 0, n = y ? clv_shape_numel(&index->shape) : 0; i < n; i++) {
        const int64_t to = along(x, index, i, axis);
        if (to < 0) return false;
        y->v[to] = from->v[i];
    }
    return give(use, y);
}

static bool fold_scatter_nd(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0), *index = clv__onnx_known(use, 1),
                     *from = clv__onnx_known(use, 2);
    if (!x || !index || !from || !index->shape.rank) return false;
    const int n = (int)index->shape.dims[index->shape.rank - 1];
    if (n < 1 || n > x->shape.rank) return false;
    const int64_t rows = product(&index->shape, 0, index->shape.rank - 1),
                  width = product(&x->shape, n, x->shape.rank);
    clv__known *y = clv_shape_numel(&from->shape) == rows * width ? copy_of(use, x) : NULL;
    for (int64_t r = 0; y && r < rows; r++) {
        int64_t to = 0;
        for (int k = 0; k < n; k++) {
            const int64_t own = wrapped(index->v[r * n + k], x->shape.dims[k]);
            if (own < 0) return false;
            to = to * x->shape.dims[k] + own;
        }
        memcpy(y->v + to * width, from->v + r * width, (size_t)width * sizeof *y->v);
    }
    return give(use, y);
}

// ---- along an axis -----------------------------------------------------------------------------------

static bool fold_cumsum(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    const bool back = clv__onnx_int(use, "reverse", 0) != 0,
               exclusive = clv__onnx_int(use, "exclusive", 0) != 0;
    if (!x || !x->shape.rank) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_whole(clv__onnx_number(use, 1, 0)), x->shape.rank);
    clv__known *y = clv__onnx_failed(use) ? NULL : room(use, x->type, x->shape);
    const int64_t n = x->shape.dims[axis], inner = product(&x->shape, axis + 1, x->shape.rank);
    for (int64_t row = 0, rows = y ? product(&x->shape, 0, axis) * inner : 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = (row / inner * n + (back ? n - 1 - i : i)) * inner + row % inner;
            y->v[at] = exclusive ? sum : sum + x->v[at];
            sum += x->v[at];
        }
    }
    return give(use, y);
}

/** Does number a of a row come before b? Equals come in their order. */
static bool before(const double *row, int64_t inner, int64_t a, int64_t b, bool largest) {
    const double p = row[a * inner], q = row[b * inner];
    return p == q ? a < b : largest ? p > q : p < q;
}

static bool fold_top_k(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    const int64_t k = clv__onnx_whole(clv__onnx_number(use, 1, 1));
    const bool largest = clv__onnx_int(use, "largest", 1) != 0;
    if (!x || !x->shape.rank) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", -1), x->shape.rank);
    const int64_t n = x->shape.dims[axis], inner = product(&x->shape, axis + 1, x->shape.rank);
    clv_shape shape = x->shape;
    shape.dims[axis] = k;
    if (clv__onnx_failed(use) || k < 0 || k > n || n > 4096) return false;
    clv__known *values = room(use, x->type, shape), *places = room(use, CLV__ONNX_INT64, shape);
    for (int64_t r = 0, rows = values && places ? product(&x->shape, 0, axis) * inner : 0; r < rows; r++) {
        const double *row = x->v + r / inner * n * inner + r % inner;
        for (int64_t i = 0; i < n; i++) {
            int64_t rank = 0;
            for (int64_t j = 0; j < n; j++) rank += before(row, inner, j, i, largest);
            if (rank >= k) continue;
            const int64_t to = (r / inner * k + rank) * inner + r % inner;
            values->v[to] = row[i * inner];
            places->v[to] = (double)i;
        }
    }
    clv__onnx_give_known(use, 1, places);
    return give(use, places ? values : NULL);
}

const clv__onnx_fold clv__onnx_more_folds[] = {
    {"Acos", fold_acos},
    {"Acosh", fold_acosh},
    {"Asin", fold_asin},
    {"Asinh", fold_asinh},
    {"Atan", fold_atan},
    {"Atanh", fold_atanh},
    {"CastLike", clv__onnx_fold_cast_like},
    {"Clip", fold_clip},
    {"Cos", fold_cos},
    {"Cosh", fold_cosh},
    {"CumSum", fold_cumsum},
    {"Erf", fold_erf},
    {"GatherElements", fold_gather_elements},
    {"OneHot", fold_one_hot},
    {"Pad", fold_pad},
    {"Relu", fold_relu},
    {"Scatter", fold_scatter_elements},
    {"ScatterElements", fold_scatter_elements},
    {"ScatterND", fold_scatter_nd},
    {"Sigmoid", fold_sigmoid},
    {"Sign", fold_sign},
    {"Sin", fold_sin},
    {"Sinh", fold_sinh},
    {"Split", fold_split},
    {"Tan", fold_tan},
    {"Tanh", fold_tanh},
    {"Tile", fold_tile},
    {"TopK", fold_top_k},
    {NULL, NULL},
};
