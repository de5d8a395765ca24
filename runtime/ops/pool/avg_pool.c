// SPDX-License-Identifier: Apache-2.0
// avg_pool2d: the mean of each window, and its gradient. Source of what counts in windows that stick out: torch.nn.AvgPool2d.
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/pool/pool.h"

// ---- kernels --------------------------------------------------------------------------------------------------------

static void avg_plain(clv__launches *list, const clv__op_io *io) {
    clv__pool_each(list, io, clv__is_gradient(io) ? "avg_pool2d_backward" : "avg_pool2d");
}

static void avg_backward_planes(clv__launches *list, const clv__op_io *io) {
    clv__pool_wide(list, io, "avg_pool2d_planes_backward");
}

static const clv__variant avg_variants[] = {
    {"plain", .lower = avg_plain},
    {"rows", clv__pool_rows_support, .lower = clv__pool_rows, .relative = 0.08},
    CLV__POOL_DIRECT,
    {0}};
static const clv__variant avg_backward_variants[] = {
    {"plain", .lower = avg_plain},
    {"planes", clv__pool_planes_support, .lower = avg_backward_planes, .relative = 0.08},
    CLV__POOL_DIRECT,
    {0}};

// ---- references -----------------------------------------------------------------------------------------------------

/** What an average window covers along dimension d, from span[0] to before span[1]; returns how long it counts. */
static int64_t span_of(const clv__windows *s, int d, int64_t o, bool exclude, int64_t span[2]) {
    const int64_t first = o * s->stride[d] - s->padding[d],
                  end = clv__min64(first + s->kernel[d], s->in[d] + s->padding[d]);
    span[0] = clv__max64(first, 0);
    span[1] = clv__min64(end, s->in[d]);
    return exclude ? span[1] - span[0] : end - first;
}

/** y from x, or dx from dy: the same windows, each element with weight 1 / (elements counted). */
static void avg_walk(const clv__op_io *io, double *x, double *y, bool backward) {
    const clv__pool_sizes sizes = clv__pool_sizes_of(io);
    const clv__windows s = clv__windows_solid(&sizes.windows);
    const int64_t outputs = clv__window_product(&s, s.out), inputs = clv__window_product(&s, s.in);
    int64_t o[CLV__WINDOW_DIMS] = {0};
    for (int64_t i = 0; i < sizes.planes * outputs; i++, clv__window_next(&s, o)) {
        int64_t span[CLV__WINDOW_DIMS][2], count = 1;
        for (int d = 0; d < CLV__WINDOW_DIMS; d++)
            count *= span_of(&s, d, o[d], clv__pool_excludes(io), span[d]);
        clv__pool_mean(x + i / outputs * inputs, s.in, span, (double)count, y + i, backward);
    }
}

static void avg_reference(const clv__ref *ref) {
    avg_walk(ref->io, ref->in[0], ref->out[0], false);
}

static void avg_backward_reference(const clv__ref *ref) {
    clv__ref_zero(ref);
    avg_walk(ref->io, ref->out[0], ref->in[0], true);
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

extern const clv__op clv__op_avg_pool2d;
static const bool mean = true; // as `data`
#define COMMON .data = &mean, .half_in = 1, .reduction = clv__pool_window_elements, CLV__POOL_OP
CLV__TRAIN_OP(avg_pool2d_backward) = {
    CLV__GRADIENT_OF(avg_pool2d, "d0 s0 g0"), .attrs_bytes = CLV__ATTRS_AND_SHAPE(clv__pool),
    .variants = avg_backward_variants, .reference = avg_backward_reference, COMMON};

static clv_tensor *build(const clv__call *call) { // its windows have a dilation of 1, which no attribute says
    clv__pool attrs = *(const clv__pool *)call->attrs;
    attrs.dilation[0] = attrs.dilation[1] = 1;
    return clv__node_add(&clv__op_avg_pool2d, &attrs, call->in, 1, 0);
}

CLV__OP(avg_pool2d) = {
    .name = "avg_pool2d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(PAIR, clv__pool, kernel, NULL), CLV__AT_LEAST(1)},
                                  {CLV__ATTRIBUTE(PAIR, clv__pool, stride, "kernel"), CLV__AT_LEAST(1)},
                                  {CLV__ATTRIBUTE(PAIR, clv__pool, padding, "0"), CLV__AT_LEAST(0)},
                                  {CLV__ATTRIBUTE(BOOL, clv__pool, ceil_mode, "0")},
                                  {CLV__ATTRIBUTE(BOOL, clv__pool, exclude_padding, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_]"}),
    .build = build,
    .attrs_bytes = sizeof(clv__pool),
    .infer = clv__pool_infer,
    .split = clv__pool_split,
    .samples = CLV__TRAINS(clv__pool_samples + CLV__POOL_UNDILATED),
    CLV__GRADIENT(avg_pool2d),
    .variants = avg_variants,
    .reference = avg_reference,
    COMMON};

static clv_tensor *build_global(const clv__call *call) {
    return clv_mean(call->in[0], (int[]){2, 3}, 2, true);
}

CLV__COMPOSITE(global_avg_pool2d) = {
    .name = "global_avg_pool2d",
    .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[N,C,1,1]"}),
    CLV__SAMPLES({.label = "images", .quick = true, .in = {CLV__DIMS(2, 3, 4, 5)}}),
    .build = build_global};
