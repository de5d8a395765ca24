// SPDX-License-Identifier: Apache-2.0
// Adaptive average pooling: windows chosen so that the result has a wanted size. Sizes that divide evenly are avg_pool2d's
// affair; this op is for the others. Adaptive max pooling is max_pool2d, with each element repeated in every window it belongs to.
// Source of the windows: torch.nn.AdaptiveAvgPool2d.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/pool/pool.h"

typedef struct adaptive_attrs {
    int64_t size[2]; // of y
} adaptive_attrs;

static clv_status infer(clv__op_io *io, clv__error *error) {
    const adaptive_attrs *a = io->attrs;
    clv_shape shape = io->in[0].shape;
    if (shape.dims[2] < 1 || shape.dims[3] < 1)
        CLV_FAIL(error, CLV_E_SHAPE, "x must have at least one row and column");
    shape.dims[2] = a->size[0];
    shape.dims[3] = a->size[1];
    return clv__one_out(io, clv__f32(shape));
}

// ---- kernels --------------------------------------------------------------------------------------------------------

/** One axis of D elements pooled to E, or its gradient from E to D: the last arguments of both kernels. */
static void axis(clv__launches *list, clv__launch *launch, int64_t outer, int64_t D, int64_t E, int64_t inner,
                 bool backward) {
    int64_t n = outer * (backward ? D : E) * inner;
    CLV__ARGS_I32(list, launch, n, D, E, inner);
    clv__launch_over(list, launch, CLV__ELEMENTS, n);
}

/** Along H and then along W; the gradient the other way round. Between them [planes, rows of y, columns of x]. */
static void plain(clv__launches *list, const clv__op_io *io) {
    bool backward = clv__is_gradient(io);
    const clv_shape *x = &(backward ? io->out : io->in)[0].shape,
                    *y = &(backward ? io->in : io->out)[0].shape;
    int64_t planes = x->dims[0] * x->dims[1], H = x->dims[2], W = x->dims[3], OH = y->dims[2],
            OW = y->dims[3];
    if (planes == 0) return;
    const char *entry = backward ? "adaptive_pool_axis_backward" : "adaptive_pool_axis";
    const clv__part between = clv__floats(list, planes * OH * W);
    clv__launch *launch = clv__launch_kernel(list, "adaptive_pool", entry);
    CLV__ARGS(list, launch, io, "w i0=T_IN", .part = between);
    if (backward)
        axis(list, launch, planes * OH, W, OW, 1, true);
    else
        axis(list, launch, planes, H, OH, W, false);

    launch = clv__launch_kernel(list, "adaptive_pool", entry);
    CLV__ARGS(list, launch, io, "o0=T_OUT w", .part = between);
    if (backward)
        axis(list, launch, planes, H, OH, W, true);
    else
        axis(list, launch, planes * OH, W, OW, 1, false);
}

static const clv__variant variants[] = {{"plain", .lower = plain}, {0}};

// ---- references -----------------------------------------------------------------------------------------------------

/** y from x, or dx from dy: the same windows. */
static void walk(const clv_shape *x_shape, const clv_shape *y_shape, double *x, double *y, bool backward) {
    int64_t planes = x_shape->dims[0] * x_shape->dims[1], H = x_shape->dims[2], W = x_shape->dims[3];
    int64_t OH = y_shape->dims[2], OW = y_shape->dims[3];
    for (int64_t o = 0; o < planes * OH * OW; o++) {
        const int64_t oh = o / OW % OH, ow = o % OW;
        int64_t span[][2] = {{0, 1},
                             {oh * H / OH, clv__div_up((oh + 1) * H, OH)},
                             {ow * W / OW, clv__div_up((ow + 1) * W, OW)}};
        const int64_t count = (span[1][1] - span[1][0]) * (span[2][1] - span[2][0]);
        clv__pool_mean(x + o / (OH * OW) * H * W, (int64_t[]){1, H, W}, span, (double)count, y + o, backward);
    }
}

static void reference(const clv__ref *ref) {
    walk(&ref->io->in[0].shape, &ref->io->out[0].shape, ref->in[0], ref->out[0], false);
}

static void backward_reference(const clv__ref *ref) {
    clv__ref_zero(ref);
    walk(&ref->io->out[0].shape, &ref->io->in[0].shape, ref->out[0], ref->in[0], true);
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    double in = (double)clv__numel(&io->in[0]), out = (double)clv__numel(&io->out[0]);
    *cost = (clv__cost){in + out, 4 * (in + out)};
}

static int64_t reduction(const clv__op_io *io) {
    const clv_shape *in = &io->in[0].shape, *out = &io->out[0].shape;
    return (in->dims[2] / out->dims[2] + 2) * (in->dims[3] / out->dims[3] + 2);
}

// ---- samples --------------------------------------------------------------------------------------------------------

#define ROW(what, OH, OW, ...)                                                                               \
    .label = what, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(adaptive_attrs) {                              \
        { OH, OW }                                                                                           \
    }
static const clv__sample_row samples[] = {
    {ROW("9x10 to 7x7, windows overlap", 7, 7, 2, 3, 9, 10), .quick = true},
    {ROW("1x1 to 7x7, one value repeated", 7, 7, 2, 3, 1, 1), .quick = true},
    {ROW("5x17 to 2x3", 2, 3, 1, 2, 5, 17), .quick = true},
    {ROW("8x8 to 4x2, even windows", 4, 2, 1, 2, 8, 8)},
    {ROW("one element", 1, 1, 1, 1, 1, 1)},
    {ROW("3x5 to 3x5", 3, 5, 1, 2, 3, 5)},
    {ROW("4x3 to 6x31", 6, 31, 2, 1, 4, 3)},
    {ROW("33x1 to 1x2", 1, 2, 1, 3, 33, 1)},
    {ROW("many planes, 3x3 to 2x2", 2, 2, 7, 41, 3, 3)},
    {ROW("no images", 2, 2, 0, 3, 5, 5)},
    {0}};
#undef ROW

// ---- descriptors ----------------------------------------------------------------------------------------------------

extern const clv__op clv__op_adaptive_avg_pool2d;
#define COMMON .half_in = 1, .half_out = 1, .variants = variants, .cost = cost, .reduction = reduction
CLV__TRAIN_OP(adaptive_avg_pool2d_backward) = {CLV__GRADIENT_OF(adaptive_avg_pool2d, "d0 s0 g0"),
                                               .attrs_bytes = CLV__ATTRS_AND_SHAPE(adaptive_attrs),
                                               .reference = backward_reference, COMMON};

static clv_tensor *build(const clv__call *call) {
    clv_tensor *x = call->in[0];
    const clv_shape shape = clv_tensor_shape(x);
    const int64_t *size = ((const adaptive_attrs *)call->attrs)->size;
    if (clv__is_float(clv_tensor_dtype(x)) && shape.rank == 4 && shape.dims[2] > 0 && shape.dims[3] > 0) {
        const int64_t H = shape.dims[2], W = shape.dims[3], OH = size[0], OW = size[1];
        if (H == OH && W == OW) return x;
        if (OH == 1 && OW == 1) return clv_global_avg_pool2d(x);
        if (H % OH == 0 && W % OW == 0)
            return clv_avg_pool2d(x, &(clv_pool2d_config){.kernel = {(int)(H / OH), (int)(W / OW)}});
    }
    return clv__node_add(call->op, call->attrs, &x, 1, 0);
}

#define SIZE(text, d)                                                                                        \
    .name = text, .kind = CLV_ATTRIBUTE_INT, .at = offsetof(adaptive_attrs, size) + d * sizeof(int64_t),     \
    .bytes = sizeof(int64_t), CLV__AT_LEAST(1)
CLV__OP(adaptive_avg_pool2d) = {.name = "adaptive_avg_pool2d",
                                .inputs = CLV__INPUTS({"x", "f32[N,C,H,W]"}),
                                .attributes = CLV__ATTRIBUTES({SIZE("OH", 0)}, {SIZE("OW", 1)}),
                                .outputs = CLV__OUTPUTS({"y", "f32[N,C,_,_]"}),
                                .build = build,
                                .attrs_bytes = sizeof(adaptive_attrs),
                                .infer = infer,
                                .samples = CLV__TRAINS(samples),
                                .split = clv__pool_split,
                                CLV__GRADIENT(adaptive_avg_pool2d),
                                .reference = reference,
                                COMMON};

// ---- the largest ----------------------------------------------------------------------------------------------------

/** Windows of one length along an axis, one behind the other: shorter ones end with their last element again, which is no first largest
 *  one. *length is theirs. */
static clv_tensor *windows(clv_tensor *x, int axis, int64_t E, int *length) {
    const int64_t D = clv_tensor_shape(x).dims[axis];
    int64_t K = 0;
    for (int64_t e = 0; e < E; e++) K = clv__max64(K, clv__div_up((e + 1) * D, E) - e * D / E);
    *length = (int)K;
    if (E * K == D) return x;
    int32_t *index = clv__alloc((size_t)(E * K), sizeof *index);
    if (!index)
        return clv__graph_fail(clv__tensor_graph(x), CLV_E_HOST_MEMORY, "adaptive_max_pool: no host memory");
    for (int64_t i = 0; i < E * K; i++)
        index[i] = (int32_t)clv__min64(i / K * D / E + i % K, clv__div_up((i / K + 1) * D, E) - 1);
    x = clv_index_select(x, axis, clv_constant(clv__tensor_graph(x), CLV_DTYPE_I32, CLV_SHAPE(E * K), index));
    free(index);
    return x;
}

static clv_tensor *largest(const clv__call *call, int64_t OH, int64_t OW) {
    enum { MOST = 1 << 20 };
    clv_tensor *x = call->in[0];
    const clv_shape shape = clv_tensor_shape(x);
    const int rank = shape.rank;
    if (shape.dims[2] < 1 || shape.dims[rank - 1] < 1)
        return clv__graph_fail(call->graph, CLV_E_SHAPE, "%s: x must have elements in each window",
                               call->op->name);
    if (OH > MOST || OW > MOST)
        return clv__graph_fail(call->graph, CLV_E_VALUE, "%s: %lld x %lld is no size", call->op->name,
                               (long long)OH, (long long)OW);
    clv_pool2d_config pool = {0};
    if (rank == 3) x = clv_reshape(x, CLV_SHAPE(shape.dims[0], shape.dims[1], 1, shape.dims[2]));
    x = windows(x, 2, OH, &pool.kernel[0]);
    x = clv_max_pool2d(x ? windows(x, 3, OW, &pool.kernel[1]) : NULL, &pool);
    return rank == 3 ? clv_reshape(x, CLV_SHAPE(shape.dims[0], shape.dims[1], OW)) : x;
}

static clv_tensor *build_max2d(const clv__call *call) {
    const int64_t *size = ((const adaptive_attrs *)call->attrs)->size;
    return largest(call, size[0], size[1]);
}

static clv_tensor *build_max1d(const clv__call *call) {
    return largest(call, 1, ((const adaptive_attrs *)call->attrs)->size[0]);
}

#define MAX_ROW(what, OH, OW, ...)                                                                           \
    .label = what, .in = {CLV__DIMS(__VA_ARGS__)}, .fill = {{CLV__FILL_DISTINCT, -2, 2}},                    \
    .attrs = &(adaptive_attrs) {                                                                             \
        { OH, OW }                                                                                           \
    }
#define MAX_POOL(id, IN, OUT, ...)                                                                           \
    .name = #id, .inputs = CLV__INPUTS({"x", IN}), .outputs = CLV__OUTPUTS({"y", OUT}),                      \
    .attributes_of_call = true, .attrs_bytes = sizeof(adaptive_attrs), CLV__SAMPLES(__VA_ARGS__)
CLV__COMPOSITE(adaptive_max_pool2d) = {
    MAX_POOL(adaptive_max_pool2d, "f32[N,C,H,W]", "f32[N,C,_,_]",
             {MAX_ROW("9x10 to 7x4", 7, 4, 2, 3, 9, 10), .quick = true},
             {MAX_ROW("8x6 to 4x3", 4, 3, 1, 2, 8, 6)}, {MAX_ROW("1x3 to 7x7", 7, 7, 1, 2, 1, 3)}),
    .attributes = CLV__ATTRIBUTES({SIZE("OH", 0)}, {SIZE("OW", 1)}), .build = build_max2d};
CLV__COMPOSITE(adaptive_max_pool1d) = {MAX_POOL(adaptive_max_pool1d, "f32[N,C,L]", "f32[N,C,_]",
                                                {MAX_ROW("11 to 4", 4, 0, 2, 3, 11), .quick = true},
                                                {MAX_ROW("3 to 8", 8, 0, 1, 2, 3)}),
                                       .attributes = CLV__ATTRIBUTES({SIZE("OL", 0)}), .build = build_max1d};
