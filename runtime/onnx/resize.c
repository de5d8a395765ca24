// SPDX-License-Identifier: Apache-2.0
// Pictures of another size, axis by axis: where each place of the result lies. Source: Resize and Upsample of ONNX 1.23.
#include <math.h>

#include "onnx/import.h"
#include "ops/moves/resample.h"

/** What a node says, and of one axis what it makes of it. */
typedef struct resize {
    bool nearest, cubic, antialias, exclude_outside;
    double a, fill;
    int64_t in, out;
    double scale, roi[2];
} resize;

/** Where place `to` of the result lies in the input; `outside`: in none of it, for tf_crop_and_resize. */
static double origin(const clv__onnx_use *use, const resize *r, int64_t to, bool *outside) {
    const char *name = "coordinate_transformation_mode";
    const double width = r->scale * (double)r->in, end = (double)(r->in - 1), x = (double)to;
    *outside = false;
    if (clv__onnx_word(use, name, "align_corners", false)) return width == 1 ? 0 : x * end / (width - 1);
    if (clv__onnx_word(use, name, "asymmetric", use->opset < 11)) return x / r->scale;
    if (clv__onnx_word(use, name, "tf_crop_and_resize", false)) {
        const double span = (r->roi[1] - r->roi[0]) * end;
        const double at = (width == 1 ? span / 2 : x * span / (width - 1)) + r->roi[0] * end;
        *outside = at < 0 || at > end;
        return at;
    }
    if (width == 1 && clv__onnx_word(use, name, "pytorch_half_pixel", false)) return -0.5;
    const double at = (x + 0.5) / r->scale - 0.5;
    if (clv__onnx_word(use, name, "half_pixel_symmetric", false))
        return at + (double)r->in / 2 * (1 - (double)r->out / width);
    return at;
}

static double nearest_of(const clv__onnx_use *use, double x) {
    if (clv__onnx_word(use, "nearest_mode", "floor", use->opset < 11)) return floor(x);
    if (clv__onnx_word(use, "nearest_mode", "ceil", false)) return ceil(x);
    if (clv__onnx_word(use, "nearest_mode", "round_prefer_ceil", false)) return floor(x + 0.5);
    return ceil(x - 0.5);
}

/** What lies outside of the input is one value. */
static clv_tensor *filled(clv__onnx_use *use, const resize *r, clv_tensor *y, int axis) {
    if (!y) return NULL;
    const int rank = clv_tensor_shape(y).rank;
    clv_shape shape = {.rank = rank};
    bool any = false, outside;
    for (int d = 0; d < rank; d++) shape.dims[d] = d == axis ? r->out : 1;
    clv__known *mask = clv__onnx_new_known(use, CLV__ONNX_BOOL, shape);
    for (int64_t i = 0; mask && i < r->out; i++) {
        origin(use, r, i, &outside);
        mask->v[i] = outside;
        any = any || outside;
    }
    if (!any || !mask) return y;
    return clv_where(clv__onnx_constant(use, mask),
                     clv__onnx_scalar(use, r->fill, clv__onnx_tensor_is_float(y)), y);
}

static clv_tensor *along_axis(clv__onnx_use *use, const resize *r, clv_tensor *x, int axis) {
    bool outside;
    const clv__resampling how = {.nearest = r->nearest,
                                 .cubic = r->cubic,
                                 .exclude_outside = r->exclude_outside,
                                 .a = r->a,
                                 .narrow = r->antialias && r->scale < 1 ? r->scale : 1};
    clv__known *places = clv__onnx_new_known(use, CLV__ONNX_DOUBLE, CLV_SHAPE(r->out));
    for (int64_t i = 0; places && i < r->out; i++) {
        places->v[i] = origin(use, r, i, &outside);
        if (r->nearest) places->v[i] = nearest_of(use, places->v[i]);
    }
    if (!r->nearest) x = clv__onnx_as_float(x);
    return places ? filled(use, r, clv__resampled(x, axis, &how, places->v, r->out), axis) : NULL;
}

// ---- sizes -------------------------------------------------------------------------------------------

/** The axes that a node names, and what it says of each: scales, and sizes where they are given. */
typedef struct sizes {
    int n, axes[CLV_MAX_RANK];
    double scale[CLV_MAX_RANK];
    int64_t out[CLV_MAX_RANK];
} sizes;

/** Known numbers of an input that may be left out, or be empty; NULL: so it is. */
static const clv__known *given(clv__onnx_use *use, int i) {
    const clv__known *known = clv__onnx_has(use, i) ? clv__onnx_known(use, i) : NULL;
    return known && clv_shape_numel(&known->shape) ? known : NULL;
}

/** One scale for all axes, so that none becomes larger, or none smaller, than asked for. */
static void keep_aspect(const clv__onnx_use *use, const clv_shape *x, sizes *s) {
    const bool largest = clv__onnx_word(use, "keep_aspect_ratio_policy", "not_smaller", false);
    if (clv__onnx_word(use, "keep_aspect_ratio_policy", "stretch", true)) return;
    double scale = s->scale[0];
    for (int i = 1; i < s->n; i++) scale = largest ? fmax(scale, s->scale[i]) : fmin(scale, s->scale[i]);
    for (int i = 0; i < s->n; i++) {
        s->scale[i] = scale;
        s->out[i] = (int64_t)(scale * (double)x->dims[s->axes[i]] + 0.5);
    }
}

static bool read_sizes(clv__onnx_use *use, const clv_shape *x, const clv__known *scales,
                       const clv__known *wanted, sizes *s) {
    int64_t axes[CLV_MAX_RANK];
    const int named = clv__onnx_ints(use, "axes", axes, CLV_MAX_RANK);
    s->n = named ? named : x->rank;
    for (int i = 0; i < s->n; i++) s->axes[i] = named ? clv__onnx_axis(use, axes[i], x->rank) : i;
    const clv__known *of = wanted ? wanted : scales;
    if (!of || clv_shape_numel(&of->shape) != s->n) {
        clv__onnx_fail(use, CLV_E_SHAPE,
                       of ? "a size or scale is not given for each axis"
                          : "neither sizes nor scales are given");
        return false;
    }
    for (int i = 0; i < s->n; i++) {
        const double in = (double)x->dims[s->axes[i]];
        s->out[i] = clv__onnx_whole(wanted ? of->v[i] : floor(of->v[i] * in));
        s->scale[i] = wanted ? of->v[i] / in : of->v[i];
        if (!(in > 0) || s->out[i] < 1 || s->out[i] > CLV__MOST_KNOWN || !(s->scale[i] > 0))
            clv__onnx_fail(use, CLV_E_UNSUPPORTED, "axis %d of %lld places with %lld", s->axes[i],
                           (long long)x->dims[s->axes[i]], (long long)s->out[i]);
    }
    if (wanted) keep_aspect(use, x, s);
    return !clv__onnx_failed(use);
}

static void resized(clv__onnx_use *use, const clv__known *scales, const clv__known *wanted,
                    const clv__known *roi) {
    const clv_shape shape = clv__onnx_shape(use, 0);
    resize r = {.nearest = clv__onnx_word(use, "mode", "nearest", true),
                .cubic = clv__onnx_word(use, "mode", "cubic", false),
                .antialias = clv__onnx_int(use, "antialias", 0) != 0,
                .exclude_outside = clv__onnx_int(use, "exclude_outside", 0) != 0,
                .a = clv__onnx_real(use, "cubic_coeff_a", -0.75),
                .fill = clv__onnx_real(use, "extrapolation_value", 0)};
    const bool crops = clv__onnx_word(use, "coordinate_transformation_mode", "tf_crop_and_resize", false);
    sizes s;
    if (!read_sizes(use, &shape, scales, wanted, &s)) return;
    if (crops && (!roi || clv_shape_numel(&roi->shape) != 2 * s.n)) {
        clv__onnx_fail(use, CLV_E_SHAPE, "tf_crop_and_resize has no roi of two numbers for each axis");
        return;
    }
    clv_tensor *x = clv__onnx_in(use, 0);
    for (int i = 0; x && i < s.n; i++) {
        r.in = shape.dims[s.axes[i]];
        r.out = s.out[i];
        r.scale = s.scale[i];
        r.roi[0] = crops ? roi->v[i] : 0;
        r.roi[1] = crops ? roi->v[s.n + i] : 1;
        if (r.out != r.in || fabs(r.scale - 1) > 1e-9 || r.roi[0] != 0 || r.roi[1] != 1)
            x = along_axis(use, &r, x, s.axes[i]);
    }
    clv__onnx_give(use, 0, clv__onnx_as_given(use, x));
}

static void build_resize(clv__onnx_use *use) {
    if (use->opset < 11)
        resized(use, given(use, 1), NULL, NULL);
    else
        resized(use, given(use, 2), given(use, 3), given(use, 1));
}

/** Older still: as the Resize of opset 10. */
static void build_upsample(clv__onnx_use *use) {
    const clv__onnx_attribute *list = clv__onnx_attribute_find(use->node, "scales");
    const clv__known *scales = given(use, 1);
    if (list) {
        clv__known *known = clv__onnx_new_known(use, CLV__ONNX_FLOAT, CLV_SHAPE((int64_t)list->n));
        for (size_t i = 0; known && i < list->n; i++) known->v[i] = (double)list->floats[i];
        scales = known;
    }
    resized(use, scales, NULL, NULL);
}

const clv__onnx_row clv__onnx_resize[] = {
    {"Resize", .build = build_resize},
    {"Upsample", .build = build_upsample},
    {0},
};
