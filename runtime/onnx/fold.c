// SPDX-License-Identifier: Apache-2.0
// Nodes whose inputs are known while the graph is built, computed on the host: shapes, and what is made of shapes. What is written for
// shapes and masks need not be quick. Source: the operators of ONNX 1.23.
#include <math.h>
#include <string.h>

#include "onnx/import.h"
#include "onnx/known.h"
#include "onnx/shapes.h"

/** All dimensions multiplied from `first` to before `end`. */
static int64_t product(const clv_shape *shape, int first, int end) {
    int64_t n = 1;
    for (int i = first; i < end; i++) n *= shape->dims[i];
    return n;
}

static bool small(const clv_shape *shape) {
    const int64_t n = clv_shape_numel(shape);
    return n >= 0 && n <= CLV__MOST_KNOWN;
}

/** Both broadcast together; false: they do not fit, or are too large. */
static bool broadcast(const clv_shape *a, const clv_shape *b, clv_shape *out) {
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 1; i <= out->rank; i++) {
        const int64_t p = i <= a->rank ? a->dims[a->rank - i] : 1,
                      q = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (p != q && p != 1 && q != 1) return false;
        out->dims[out->rank - i] = p == 1 ? q : p;
    }
    return small(out);
}

/** Where element `at` of a result lies in an operand that is broadcast to it. */
static int64_t in_operand(const clv_shape *result, int64_t at, const clv_shape *operand) {
    int64_t index = 0, step = 1;
    for (int i = 1; i <= result->rank; i++) {
        const int64_t size = result->dims[result->rank - i], one = at % size;
        at /= size;
        if (i > operand->rank) continue;
        const int64_t own = operand->dims[operand->rank - i];
        if (own != 1) index += one * step;
        step *= own;
    }
    return index;
}

// ---- element by element ---------------------------------------------------------------------------------------------

static double add(double a, double b) {
    return a + b;
}
static double sub(double a, double b) {
    return a - b;
}
static double mul(double a, double b) {
    return a * b;
}
static double divide(double a, double b) {
    return a / b;
}
static double lesser(double a, double b) {
    return a < b ? a : b;
}
static double greater(double a, double b) {
    return a > b ? a : b;
}
static double is_equal(double a, double b) {
    return a == b;
}
static double is_less(double a, double b) {
    return a < b;
}
static double is_less_or_equal(double a, double b) {
    return a <= b;
}
static double is_more(double a, double b) {
    return a > b;
}
static double is_more_or_equal(double a, double b) {
    return a >= b;
}
static double both(double a, double b) {
    return a != 0 && b != 0;
}
static double either(double a, double b) {
    return a != 0 || b != 0;
}
static double one_of(double a, double b) {
    return (a != 0) != (b != 0);
}
static double floor_mod(double a, double b) {
    return a - b * floor(a / b);
}

/** A result as its type has it. */
static double as_type(int type, double value) {
    if (type == CLV__ONNX_BOOL) return value != 0;
    if (type == CLV__ONNX_DOUBLE) return value;
    return clv__onnx_is_float(type) ? (double)(float)value : trunc(value);
}

static bool binary(clv__onnx_use *use, double (*of)(double, double), int type) {
    const clv__known *a = clv__onnx_known(use, 0), *b = clv__onnx_known(use, 1);
    clv_shape shape;
    if (!a || !b || use->n_in != 2 || !broadcast(&a->shape, &b->shape, &shape)) return false;
    clv__known *out = clv__onnx_new_known(use, type ? type : a->type, shape);
    for (int64_t i = 0, n = clv_shape_numel(&shape); out && i < n; i++)
        out->v[i] = as_type(
            out->type, of(a->v[in_operand(&shape, i, &a->shape)], b->v[in_operand(&shape, i, &b->shape)]));
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool unary(clv__onnx_use *use, double (*of)(double), int type) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv__known *out = x ? clv__onnx_new_known(use, type ? type : x->type, x->shape) : NULL;
    for (int64_t i = 0, n = x ? clv_shape_numel(&x->shape) : 0; out && i < n; i++)
        out->v[i] = as_type(out->type, of(x->v[i]));
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

#define BINARY(name, of, type)                                                                               \
    static bool fold_##name(clv__onnx_use *use) {                                                            \
        return binary(use, of, type);                                                                        \
    }
#define UNARY(name, of, type)                                                                                \
    static bool fold_##name(clv__onnx_use *use) {                                                            \
        return unary(use, of, type);                                                                         \
    }
static double negative(double x) {
    return -x;
}
static double is_zero(double x) {
    return x == 0;
}
static double same(double x) {
    return x;
}
static double square_root(double x) {
    return sqrt(x);
}
static double reciprocal(double x) {
    return 1 / x;
}
BINARY(add, add, 0)
BINARY(sub, sub, 0)
BINARY(mul, mul, 0)
BINARY(pow, pow, 0)
/** Of any number of inputs, one alone too. */
static bool all_of(clv__onnx_use *use, double (*of)(double, double)) {
    const clv__known *y = clv__onnx_known(use, 0);
    for (int i = 1; y && i < use->n_in; i++) {
        const clv__known *b = clv__onnx_known(use, i);
        clv_shape shape;
        if (!b || !broadcast(&y->shape, &b->shape, &shape)) return false;
        clv__known *out = clv__onnx_new_known(use, y->type, shape);
        for (int64_t k = 0, n = clv_shape_numel(&shape); out && k < n; k++)
            out->v[k] = of(y->v[in_operand(&shape, k, &y->shape)], b->v[in_operand(&shape, k, &b->shape)]);
        y = out;
    }
    clv__onnx_give_known(use, 0, y);
    return y != NULL;
}

static bool fold_min(clv__onnx_use *use) {
    return all_of(use, lesser);
}

static bool fold_max(clv__onnx_use *use) {
    return all_of(use, greater);
}

BINARY(equal, is_equal, CLV__ONNX_BOOL)
BINARY(less, is_less, CLV__ONNX_BOOL)
BINARY(less_or_equal, is_less_or_equal, CLV__ONNX_BOOL)
BINARY(more, is_more, CLV__ONNX_BOOL)
BINARY(more_or_equal, is_more_or_equal, CLV__ONNX_BOOL)
BINARY(and, both, CLV__ONNX_BOOL)
BINARY(or, either, CLV__ONNX_BOOL)
BINARY(xor, one_of, CLV__ONNX_BOOL)
UNARY(neg, negative, 0)
UNARY(abs, fabs, 0)
UNARY(floor, floor, 0)
UNARY(ceil, ceil, 0)
UNARY(round, nearbyint, 0)
UNARY(exp, exp, 0)
UNARY(log, log, 0)
UNARY(sqrt, square_root, 0)
UNARY(reciprocal, reciprocal, 0)
UNARY(not, is_zero, CLV__ONNX_BOOL)
UNARY(identity, same, 0)

/** Whole numbers divided by 0 are not computed here. */
static bool divisor_is_zero(clv__onnx_use *use) {
    const clv__known *by = clv__onnx_known(use, 1);
    for (int64_t i = 0, n = by ? clv_shape_numel(&by->shape) : 0; i < n; i++)
        if (by->v[i] == 0) return true;
    return false;
}

static bool fold_div(clv__onnx_use *use) {
    return (clv__onnx_of_floats(use) || !divisor_is_zero(use)) && binary(use, divide, 0);
}

static bool fold_mod(clv__onnx_use *use) {
    if (!clv__onnx_of_floats(use) && divisor_is_zero(use)) return false;
    return binary(use, clv__onnx_int(use, "fmod", 0) ? fmod : floor_mod, 0);
}

static bool fold_cast(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    const int to = (int)clv__onnx_int(use, "to", CLV__ONNX_FLOAT);
    clv__known *out = x ? clv__onnx_new_known(use, to, x->shape) : NULL;
    for (int64_t i = 0, n = x ? clv_shape_numel(&x->shape) : 0; out && i < n; i++) {
        if (!clv__onnx_is_float(to) && to != CLV__ONNX_BOOL && !isfinite(x->v[i])) return false;
        out->v[i] = as_type(to, x->v[i]);
    }
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool fold_where(clv__onnx_use *use) {
    const clv__known *c = clv__onnx_known(use, 0), *a = clv__onnx_known(use, 1), *b = clv__onnx_known(use, 2);
    clv_shape both_shapes, shape;
    if (!c || !a || !b || !broadcast(&a->shape, &b->shape, &both_shapes) ||
        !broadcast(&c->shape, &both_shapes, &shape))
        return false;
    clv__known *out = clv__onnx_new_known(use, a->type, shape);
    for (int64_t i = 0, n = clv_shape_numel(&shape); out && i < n; i++) {
        const clv__known *of = c->v[in_operand(&shape, i, &c->shape)] != 0 ? a : b;
        out->v[i] = of->v[in_operand(&shape, i, &of->shape)];
    }
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

// ---- moves ----------------------------------------------------------------------------------------------------------

/** The same numbers in another shape. */
static bool give_reshaped(clv__onnx_use *use, const clv__known *x, clv_shape shape) {
    if (clv_shape_numel(&shape) != clv_shape_numel(&x->shape)) return false;
    clv__known *out = clv__onnx_new_known(use, x->type, shape);
    if (!out) return false;
    memcpy(out->v, x->v, (size_t)clv_shape_numel(&shape) * sizeof *out->v);
    clv__onnx_give_known(use, 0, out);
    return true;
}

static bool fold_reshape(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv_shape shape;
    return x && clv__onnx_reshaped(use, &x->shape, &shape) && give_reshaped(use, x, shape);
}

static bool fold_squeeze(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv_shape shape;
    return x && clv__onnx_squeezed(use, &x->shape, &shape) && give_reshaped(use, x, shape);
}

static bool fold_unsqueeze(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv_shape shape;
    return x && clv__onnx_unsqueezed(use, &x->shape, &shape) && give_reshaped(use, x, shape);
}

static bool fold_transpose(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    int axes[CLV_MAX_RANK];
    if (!x || !clv__onnx_transposed(use, x->shape.rank, axes)) return false;
    clv_shape shape = {.rank = x->shape.rank};
    for (int i = 0; i < shape.rank; i++) shape.dims[i] = x->shape.dims[axes[i]];
    clv__known *out = clv__onnx_new_known(use, x->type, shape);
    for (int64_t i = 0, n = clv_shape_numel(&shape); out && i < n; i++) {
        int64_t rest = i, from = 0;
        for (int d = shape.rank - 1; d >= 0; d--) {
            from += rest % shape.dims[d] * product(&x->shape, axes[d] + 1, shape.rank);
            rest /= shape.dims[d];
        }
        out->v[i] = x->v[from];
    }
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool fold_expand(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv_shape wanted = {0}, shape;
    wanted.rank = x ? clv__onnx_numbers(use, 1, wanted.dims, CLV_MAX_RANK) : -1;
    if (wanted.rank > 1 && !use->in[1]->fed && (x->shape.rank < wanted.rank || x->shape.dims[0] == 1))
        wanted.dims[0] = clv__onnx_of_batch(use, wanted.dims[0], true); // places, the same for each sample
    if (wanted.rank < 0 || !broadcast(&x->shape, &wanted, &shape)) return false;
    clv__known *out = clv__onnx_new_known(use, x->type, shape);
    for (int64_t i = 0, n = clv_shape_numel(&shape); out && i < n; i++)
        out->v[i] = x->v[in_operand(&shape, i, &x->shape)];
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool fold_concat(clv__onnx_use *use) {
    const clv__known *first = clv__onnx_known(use, 0);
    if (!first || !first->shape.rank) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), first->shape.rank);
    clv_shape shape = first->shape;
    shape.dims[axis] = 0;
    for (int i = 0; i < use->n_in; i++) {
        const clv__known *one = clv__onnx_known(use, i);
        if (!one || one->shape.rank != shape.rank) return false;
        shape.dims[axis] += one->shape.dims[axis];
    }
    clv__known *out = small(&shape) ? clv__onnx_new_known(use, first->type, shape) : NULL;
    if (!out) return false;
    const int64_t outer = product(&shape, 0, axis), inner = product(&shape, axis + 1, shape.rank);
    int64_t behind = 0;
    for (int i = 0; i < use->n_in; i++) {
        const clv__known *one = clv__onnx_known(use, i);
        const int64_t row = one->shape.dims[axis] * inner;
        if (row * outer != clv_shape_numel(&one->shape)) return false;
        for (int64_t o = 0; o < outer; o++)
            memcpy(out->v + o * shape.dims[axis] * inner + behind, one->v + o * row,
                   (size_t)row * sizeof *out->v);
        behind += row;
    }
    clv__onnx_give_known(use, 0, out);
    return true;
}

/** Numbers along an axis, as `index` says. */
static const clv__known *take(clv__onnx_use *use, const clv__known *x, int axis, const int64_t *index,
                              int64_t n) {
    clv_shape shape = x->shape;
    const int64_t size = shape.dims[axis];
    shape.dims[axis] = n;
    if (!small(&shape)) return NULL;
    clv__known *out = clv__onnx_new_known(use, x->type, shape);
    const int64_t outer = product(&shape, 0, axis), inner = product(&shape, axis + 1, shape.rank);
    for (int64_t o = 0; out && o < outer; o++)
        for (int64_t i = 0; i < n; i++)
            memcpy(out->v + (o * n + i) * inner, x->v + (o * size + index[i]) * inner,
                   (size_t)inner * sizeof *out->v);
    return out;
}

static bool fold_slice(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    clv__onnx_range range[CLV_MAX_RANK];
    if (!x || !clv__onnx_ranges(use, &x->shape, range)) return false;
    for (int d = 0; x && d < x->shape.rank; d++) {
        if (range[d].start == 0 && range[d].step == 1 && range[d].n == x->shape.dims[d]) continue;
        int64_t *index = clv__onnx_indices(use, range[d].n);
        for (int64_t i = 0; index && i < range[d].n; i++) index[i] = range[d].start + i * range[d].step;
        x = index ? take(use, x, d, index, range[d].n) : NULL;
    }
    clv__onnx_give_known(use, 0, x);
    return x != NULL;
}

static bool fold_gather(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0), *index = clv__onnx_known(use, 1);
    if (!x || !index || !x->shape.rank) return false;
    const int axis = clv__onnx_axis(use, clv__onnx_int(use, "axis", 0), x->shape.rank);
    const int64_t n = clv_shape_numel(&index->shape), size = x->shape.dims[axis];
    int64_t *at = clv__onnx_indices(use, n);
    bool right = at && x->shape.rank + index->shape.rank - 1 <= CLV_MAX_RANK;
    for (int64_t i = 0; right && i < n; i++) {
        at[i] = clv__onnx_whole(index->v[i]) + (index->v[i] < 0 ? size : 0);
        right = at[i] >= 0 && at[i] < size;
    }
    const clv__known *taken = right ? take(use, x, axis, at, n) : NULL;
    if (!taken) return false;
    clv_shape shape = {0};
    for (int d = 0; d < axis; d++) shape.dims[shape.rank++] = x->shape.dims[d];
    for (int d = 0; d < index->shape.rank; d++) shape.dims[shape.rank++] = index->shape.dims[d];
    for (int d = axis + 1; d < x->shape.rank; d++) shape.dims[shape.rank++] = x->shape.dims[d];
    return give_reshaped(use, taken, shape);
}

// ---- made of nothing ------------------------------------------------------------------------------------------------

static bool fold_constant(clv__onnx_use *use) {
    static const char *const numbers[] = {"value_int", "value_float", "value_ints", "value_floats"};
    const clv__onnx_attribute *tensor = clv__onnx_attribute_find(use->node, "value");
    if (tensor && tensor->t) {
        const clv__known *known = clv__known_of(use, tensor->t, INT64_MAX);
        clv__onnx_give_known(use, 0, known);
        return known != NULL;
    }
    for (int i = 0; i < 4; i++) {
        const clv__onnx_attribute *one = clv__onnx_attribute_find(use->node, numbers[i]);
        if (!one) continue;
        clv_shape shape = {.rank = i / 2, .dims = {(int64_t)one->n}};
        clv__known *out = clv__onnx_new_known(use, i % 2 ? CLV__ONNX_FLOAT : CLV__ONNX_INT64, shape);
        if (!out) return false;
        if (i < 2) out->v[0] = i ? (double)one->f : (double)one->i;
        for (size_t k = 0; i >= 2 && k < one->n; k++)
            out->v[k] = i == 2 ? (double)one->ints[k] : (double)one->floats[k];
        clv__onnx_give_known(use, 0, out);
        return true;
    }
    return false;
}

static bool fold_constant_of_shape(clv__onnx_use *use) {
    clv_shape shape = {0};
    shape.rank = clv__onnx_numbers(use, 0, shape.dims, CLV_MAX_RANK);
    const clv__onnx_attribute *value = clv__onnx_attribute_find(use->node, "value");
    double fill = 0;
    int type = CLV__ONNX_FLOAT;
    if (shape.rank < 0) return false;
    if (value && value->t) {
        type = (int)value->t->dtype;
        if (value->t->numel < 1 || !clv__onnx_widen(value->t, 0, 1, &fill)) return false;
    }
    if (!small(&shape)) { // the device makes it
        const clv_dtype dtype = clv__onnx_is_float(type) ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
        clv__onnx_give_type(use, 0, clv_full(use->graph, dtype, shape, fill), type);
        return true;
    }
    clv__known *out = clv__onnx_new_known(use, type, shape);
    for (int64_t i = 0, n = clv_shape_numel(&shape); out && i < n; i++) out->v[i] = fill;
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool fold_range(clv__onnx_use *use) {
    const double start = clv__onnx_number(use, 0, 0), end = clv__onnx_number(use, 1, 0),
                 step = clv__onnx_number(use, 2, 1);
    const double n = fmax(ceil((end - start) / step), 0);
    if (clv__onnx_failed(use)) return false;
    if (step == 0)
        clv__onnx_fail(use, CLV_E_VALUE, "steps of 0 never come from %g to %g", start, end);
    else if (!(n <= CLV__MOST_KNOWN))
        clv__onnx_fail(
            use, CLV_E_UNSUPPORTED,
            "from %g to %g in steps of %g are %g numbers, and %d are the most that a graph is built with",
            start, end, step, n, CLV__MOST_KNOWN);
    if (clv__onnx_failed(use)) return false;
    clv__known *out = clv__onnx_new_known(use, use->in[0]->type, CLV_SHAPE((int64_t)n));
    for (int64_t i = 0; out && i < (int64_t)n; i++) out->v[i] = start + (double)i * step;
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool fold_non_zero(clv__onnx_use *use) {
    const clv__known *x = clv__onnx_known(use, 0);
    int64_t n = 0, all = x ? clv_shape_numel(&x->shape) : 0;
    for (int64_t i = 0; i < all; i++) n += x->v[i] != 0;
    clv__known *out = x ? clv__onnx_new_known(use, CLV__ONNX_INT64, CLV_SHAPE(x->shape.rank, n)) : NULL;
    for (int64_t i = 0, at = 0; out && i < all; i++) {
        if (x->v[i] == 0) continue;
        for (int d = x->shape.rank - 1, rest = (int)i; d >= 0; d--) {
            out->v[d * n + at] = rest % (int)x->shape.dims[d];
            rest /= (int)x->shape.dims[d];
        }
        at++;
    }
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

// ---- reductions -----------------------------------------------------------------------------------------------------

static bool reduce(clv__onnx_use *use, double (*of)(double, double), double from) {
    const clv__known *x = clv__onnx_known(use, 0);
    bool reduced[CLV_MAX_RANK];
    if (!x || !clv__onnx_reduced(use, x->shape.rank, reduced)) return false;
    if (isinf(from) && !clv__onnx_is_float(x->type) && !clv_shape_numel(&x->shape))
        return false; // of nothing
    clv_shape kept = x->shape, shape = {0};
    const bool keep = clv__onnx_int(use, "keepdims", 1) != 0;
    for (int d = 0; d < kept.rank; d++) {
        if (reduced[d]) kept.dims[d] = 1;
        if (!reduced[d] || keep) shape.dims[shape.rank++] = kept.dims[d];
    }
    clv__known *out = clv__onnx_new_known(use, x->type, shape);
    for (int64_t i = 0, n = out ? clv_shape_numel(&shape) : 0; i < n; i++) out->v[i] = from;
    for (int64_t i = 0, n = out ? clv_shape_numel(&x->shape) : 0; i < n; i++) {
        double *to = &out->v[in_operand(&x->shape, i, &kept)];
        *to = of(*to, x->v[i]);
    }
    clv__onnx_give_known(use, 0, out);
    return out != NULL;
}

static bool fold_reduce_prod(clv__onnx_use *use) {
    return reduce(use, mul, 1);
}
static bool fold_reduce_sum(clv__onnx_use *use) {
    return reduce(use, add, 0);
}
static bool fold_reduce_min(clv__onnx_use *use) {
    return reduce(use, lesser, INFINITY);
}
static bool fold_reduce_max(clv__onnx_use *use) {
    return reduce(use, greater, -INFINITY);
}

const clv__onnx_fold clv__onnx_folds[] = {
    {"Abs", fold_abs},
    {"Add", fold_add},
    {"And", fold_and},
    {"Cast", fold_cast},
    {"Ceil", fold_ceil},
    {"Concat", fold_concat},
    {"Constant", fold_constant},
    {"ConstantOfShape", fold_constant_of_shape},
    {"Div", fold_div},
    {"Equal", fold_equal},
    {"Exp", fold_exp},
    {"Expand", fold_expand},
    {"Floor", fold_floor},
    {"Gather", fold_gather},
    {"Greater", fold_more},
    {"GreaterOrEqual", fold_more_or_equal},
    {"Identity", fold_identity},
    {"Less", fold_less},
    {"LessOrEqual", fold_less_or_equal},
    {"Log", fold_log},
    {"Max", fold_max},
    {"Min", fold_min},
    {"Mod", fold_mod},
    {"Mul", fold_mul},
    {"Neg", fold_neg},
    {"NonZero", fold_non_zero},
    {"Not", fold_not},
    {"Or", fold_or},
    {"Pow", fold_pow},
    {"Range", fold_range},
    {"Reciprocal", fold_reciprocal},
    {"ReduceMax", fold_reduce_max},
    {"ReduceMin", fold_reduce_min},
    {"ReduceProd", fold_reduce_prod},
    {"ReduceSum", fold_reduce_sum},
    {"Reshape", fold_reshape},
    {"Round", fold_round},
    {"Slice", fold_slice},
    {"Sqrt", fold_sqrt},
    {"Squeeze", fold_squeeze},
    {"Sub", fold_sub},
    {"Transpose", fold_transpose},
    {"Unsqueeze", fold_unsqueeze},
    {"Where", fold_where},
    {"Xor", fold_xor},
    {NULL, NULL},
};
