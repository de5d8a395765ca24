// SPDX-License-Identifier: Apache-2.0
#include "onnx/shapes.h"

#include <string.h>

int clv__onnx_list(clv__onnx_use *use, const char *attribute, int input, int64_t *out, int most) {
    if (attribute && clv__onnx_attribute_find(use->node, attribute))
        return clv__onnx_ints(use, attribute, out, most);
    return clv__onnx_has(use, input) ? clv__onnx_numbers(use, input, out, most) : -1;
}

// ---- where the samples are ----------------------------------------------------------------------------

/** How many stretches of a tensor's numbers there are in which all samples follow one another: 1 where they come first. */
static int64_t stretches(const clv__made *value, const clv_shape *x) {
    int64_t n = value->outside ? value->outside : 1;
    for (int d = 0; d < value->batch_axis && d < x->rank; d++) n = clv__onnx_times(n, x->dims[d]);
    return n;
}

/** The same numbers in another shape: the dimension that so many stretches lead to. */
static void in_shape(clv__made *value, const clv_shape *y, int64_t n) {
    int64_t before = 1;
    int d = 0;
    while (d + 1 < y->rank && before * y->dims[d] <= n) before *= y->dims[d++];
    value->batch_axis = d;
    value->outside = before > 0 ? n / before : 1;
}

/** A row of a table is looked up for each place: the places' own dimensions; a part of what is fed: those that are left. */
static void in_gather(const clv__onnx_use *use, clv__made *value, int rank, int rank_of_y) {
    const int axis = (int)clv__onnx_int(use, "axis", 0), at = axis < 0 ? axis + rank : axis;
    if (use->n_in > 1 && use->in[1] && use->in[1]->fed && !use->in[0]->fed)
        value->batch_axis += at;
    else if (at < value->batch_axis)
        value->batch_axis += rank_of_y - rank;
}

void clv__onnx_follow_batch(clv__onnx_use *use) {
    const clv__made *x = NULL;
    for (int i = 0; i < use->n_in; i++)
        if (use->in[i] && use->in[i]->fed && use->in[i]->tensor &&
            (!x || clv_tensor_shape(use->in[i]->tensor).rank > clv_tensor_shape(x->tensor).rank))
            x = use->in[i];
    const clv_shape from = x ? clv_tensor_shape(x->tensor) : (clv_shape){0};
    int axes[CLV_MAX_RANK];
    for (int i = 0; x && i < use->n_out && !clv__onnx_failed(use); i++) {
        clv__made *y = use->out[i];
        if (!y || !y->tensor) continue;
        const clv_shape to = clv_tensor_shape(y->tensor);
        y->batch_axis = x->batch_axis, y->outside = x->outside;
        if (clv__onnx_text_is(use->node->op_type, "Transpose") &&
            clv__onnx_transposed(use, from.rank, axes)) {
            for (int d = 0; d < from.rank; d++)
                if (axes[d] == x->batch_axis) y->batch_axis = d;
        } else if (clv__onnx_text_is(use->node->op_type, "Gather")) {
            in_gather(use, y, clv__onnx_shape(use, 0).rank, to.rank);
        } else if (clv_shape_numel(&from) == clv_shape_numel(&to) && !clv_shape_equal(&from, &to)) {
            in_shape(y, &to, stretches(x, &from));
        } else if (to.rank > from.rank) { // repeated over dimensions before
            y->batch_axis += to.rank - from.rank;
        }
        if (y->batch_axis >= to.rank) y->batch_axis = 0, y->outside = 1;
    }
}

/** Of a shape that the file says for its own batch, which dimension follows the batch that there is now: where so many stretches lead to; if
 *  that is no batch, the one before it, of which the samples are the inner part. -1: none that is said, or what is reshaped has no batch. */
static int batch_axis(const clv__onnx_use *use, const clv_shape *x, const int64_t *dims, int rank) {
    const clv__batches b = use->batches;
    const bool constant = use->n_in < 2 || !use->in[1] || !use->in[1]->fed;
    if (!b.of_file || b.of_file == b.now || !constant || !use->in[0]->fed || use->in[0]->known) return -1;
    const int64_t n = stretches(use->in[0], x);
    int64_t before = 1;
    int d = 0;
    while (d < rank && dims[d] > 0 && before < n) before = clv__onnx_times(before, dims[d++]);
    while (d < rank && dims[d] != b.of_file && dims[d] == 1) d++;
    if (d < rank && dims[d] == b.of_file) return d;
    // Joined with the places before, unless what stands behind the samples is cut up, as heads of attention are.
    const int at = use->in[0]->batch_axis + 1;
    const bool cut = d < rank && at < x->rank && dims[d] < x->dims[at];
    if (n > 1 && d > 0 && !cut && dims[d - 1] > 0) return dims[d - 1] % b.of_file == 0 ? d - 1 : -1;
    return d < rank && dims[d] > 0 && dims[d] % b.of_file == 0 ? d : -1;
}

/** All numbers of x in these dimensions, one of which may be -1. */
static bool filled(const clv_shape *x, clv_shape *out) {
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < out->rank; i++)
        if (out->dims[i] == -1 && open < 0)
            open = i;
        else
            known = clv__onnx_times(known, out->dims[i]);
    const int64_t all = clv_shape_numel(x);
    if (open >= 0) out->dims[open] = known ? all / known : 0;
    return clv_shape_numel(out) == all;
}

bool clv__onnx_reshaped(clv__onnx_use *use, const clv_shape *x, clv_shape *out) {
    *out = (clv_shape){0};
    int64_t dims[CLV_MAX_RANK];
    out->rank = clv__onnx_list(use, "shape", 1, dims, CLV_MAX_RANK);
    if (out->rank < 0) {
        clv__onnx_fail(use, CLV_E_VALUE, "no shape is given");
        return false;
    }
    for (int i = 0; i < out->rank; i++) {
        out->dims[i] = dims[i];
        if (dims[i] == 0 && !clv__onnx_int(use, "allowzero", 0) && i < x->rank) out->dims[i] = x->dims[i];
    }
    const clv_shape said = *out;
    const int axis = batch_axis(use, x, dims, out->rank);
    if (axis >= 0) out->dims[axis] = clv__onnx_of_batch(use, dims[axis], false);
    if (filled(x, out)) return true;
    *out = said;
    if (filled(x, out)) return true;
    // The dimension that was the batch, or was made of it, is what is left.
    const int64_t all = clv_shape_numel(x),
                  inner = said.rank ? clv_shape_numel(out) / (out->dims[0] ? out->dims[0] : 1) : 0;
    if (said.rank && said.dims[0] > 0 && inner > 0 && all % inner == 0) {
        out->dims[0] = all / inner;
        return true;
    }
    char from[128], to[128];
    clv__onnx_fail(use, CLV_E_SHAPE, "%s does not become %s", clv_shape_text(x, from, sizeof from),
                   clv_shape_text(&said, to, sizeof to));
    return false;
}

/** Axes of a list as marks; false: one is outside. */
static bool mark(clv__onnx_use *use, const int64_t *axes, int n, int rank, bool out[CLV_MAX_RANK]) {
    memset(out, 0, CLV_MAX_RANK * sizeof *out);
    for (int i = 0; i < n; i++) out[clv__onnx_axis(use, axes[i], rank)] = true;
    return !clv__onnx_failed(use);
}

bool clv__onnx_squeezed(clv__onnx_use *use, const clv_shape *x, clv_shape *out) {
    int64_t axes[CLV_MAX_RANK];
    bool gone[CLV_MAX_RANK];
    const int n = clv__onnx_list(use, "axes", 1, axes, CLV_MAX_RANK);
    if (!mark(use, axes, n, x->rank, gone)) return false;
    out->rank = 0;
    for (int d = 0; d < x->rank; d++)
        if (n < 0 ? x->dims[d] != 1 : !gone[d]) out->dims[out->rank++] = x->dims[d];
    return true;
}

bool clv__onnx_unsqueezed(clv__onnx_use *use, const clv_shape *x, clv_shape *out) {
    int64_t axes[CLV_MAX_RANK];
    bool made[CLV_MAX_RANK];
    const int n = clv__onnx_list(use, "axes", 1, axes, CLV_MAX_RANK);
    if (n < 0 || x->rank + n > CLV_MAX_RANK) {
        clv__onnx_fail(use, CLV_E_UNSUPPORTED, "a result of more than %d dimensions", CLV_MAX_RANK);
        return false;
    }
    out->rank = x->rank + n;
    if (!mark(use, axes, n, out->rank, made)) return false;
    for (int d = 0, from = 0; d < out->rank; d++)
        out->dims[d] = made[d] ? 1 : from < x->rank ? x->dims[from++] : 1;
    return true;
}

bool clv__onnx_transposed(clv__onnx_use *use, int rank, int axes[CLV_MAX_RANK]) {
    int64_t perm[CLV_MAX_RANK];
    const int n = clv__onnx_ints(use, "perm", perm, CLV_MAX_RANK);
    if (n && n != rank) clv__onnx_fail(use, CLV_E_VALUE, "perm has %d axes, and the input %d", n, rank);
    unsigned seen = 0;
    for (int i = 0; i < rank && !clv__onnx_failed(use); i++) {
        axes[i] = n ? clv__onnx_axis(use, perm[i], rank) : rank - 1 - i;
        if (seen & 1u << axes[i]) clv__onnx_fail(use, CLV_E_VALUE, "perm names axis %d twice", axes[i]);
        seen |= 1u << axes[i];
    }
    return !clv__onnx_failed(use);
}

bool clv__onnx_ranges(clv__onnx_use *use, const clv_shape *x, clv__onnx_range out[CLV_MAX_RANK]) {
    int64_t starts[CLV_MAX_RANK], ends[CLV_MAX_RANK], axes[CLV_MAX_RANK], steps[CLV_MAX_RANK];
    const int n = clv__onnx_list(use, "starts", 1, starts, CLV_MAX_RANK),
              n_ends = clv__onnx_list(use, "ends", 2, ends, CLV_MAX_RANK),
              n_axes = clv__onnx_list(use, "axes", 3, axes, CLV_MAX_RANK),
              n_steps = clv__onnx_list(use, NULL, 4, steps, CLV_MAX_RANK);
    for (int d = 0; d < x->rank; d++) out[d] = (clv__onnx_range){0, 1, x->dims[d]};
    if (n < 0 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n))
        clv__onnx_fail(use, CLV_E_VALUE, "starts, ends, axes and steps differ in number");
    for (int i = 0; i < n && !clv__onnx_failed(use); i++) {
        const int d = clv__onnx_axis(use, n_axes >= 0 ? axes[i] : i, x->rank);
        const int64_t size = x->dims[d], step = n_steps >= 0 ? steps[i] : 1;
        if (step == 0) {
            clv__onnx_fail(use, CLV_E_VALUE, "a step of 0");
            return false;
        }
        int64_t start = starts[i] < 0 ? starts[i] + size : starts[i],
                end = ends[i] < 0 ? ends[i] + size : ends[i];
        if (ends[i] == INT64_MIN) end = -1;
        const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
        start = start < 0      ? 0
                : start > high ? high
                               : start; // as ONNX clamps them: start within, end to one past the last
        end = end < low ? low : end > high ? high : end;
        const int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
        out[d] = (clv__onnx_range){start, step, span > 0 && size ? (span + by - 1) / by : 0};
        if (!out[d].n) out[d].start = 0;
    }
    return !clv__onnx_failed(use);
}

bool clv__onnx_reduced(clv__onnx_use *use, int rank, bool out[CLV_MAX_RANK]) {
    int64_t axes[CLV_MAX_RANK];
    const int n = clv__onnx_list(use, "axes", 1, axes, CLV_MAX_RANK);
    if (!mark(use, axes, n, rank, out)) return false;
    const bool none = n <= 0 && clv__onnx_int(use, "noop_with_empty_axes", 0);
    for (int d = 0; d < rank && n <= 0; d++) out[d] = !none;
    return true;
}
