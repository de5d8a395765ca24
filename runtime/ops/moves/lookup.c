// SPDX-License-Identifier: Apache-2.0
// lookup: bytes as a table says, one for each channel. Bytes of pictures are normalised so: what the host has computed for each of
// 256 values is right to the bit on every device, whatever its division does.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

enum { BYTES = 256 };

/** How the bytes lie: `runs` of `inner` of one channel each, the channels in turn. */
typedef struct layout {
    int64_t runs, inner, channels;
} layout;

static layout layout_of(const clv__op_io *io) {
    const clv_shape *x = &io->in[0].shape;
    const int64_t channels = io->in[1].shape.dims[0], n = clv__numel(&io->in[0]);
    if (channels == 1 || n == 0) return (layout){1, n, 1};
    const int64_t inner = clv__dims_product(x, 2, x->rank);
    return (layout){n / inner, inner, channels};
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    const clv_shape *x = &io->in[0].shape;
    const int64_t channels = io->in[1].shape.dims[0];
    if (channels != 1 && (x->rank < 2 || x->dims[1] != channels))
        CLV_FAIL(error, CLV_E_SHAPE,
                 "the table has %lld rows, it must have 1 or one for each of x's channels (dimension 1)",
                 (long long)channels);
    return clv__one_out(io, clv__f32(*x));
}

static void plain(clv__launches *list, const clv__op_io *io) {
    const layout l = layout_of(io);
    const int64_t n = l.runs * l.inner;
    CLV__LAUNCH(list, io, "lookup", "lookup", CLV__ELEMENTS, n, "o0=T_Y i0 i1",
                CLV__INTS(n, l.inner, l.channels));
}

static bool threads_support(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    return clv__threads(device);
}

static void chunks(clv__launches *list, const clv__op_io *io) {
    enum { ITEM = 8192 };
    const layout l = layout_of(io);
    if (l.inner == 0) return;
    const int64_t per_run = clv__div_up(l.inner, ITEM), items = l.runs * per_run;
    CLV__LAUNCH(list, io, "lookup", "lookup_chunks", CLV__TASKS, items, "o0=T_Y i0 i1",
                CLV__INTS(items, l.inner, l.channels, ITEM, per_run));
}

/** Four neighbours of one channel lie at a multiple of four. */
static bool vector_supports(const clv_device_info *device, const clv__op_io *io) {
    return !clv__threads(device) && layout_of(io).inner % 4 == 0;
}

static void vector(clv__launches *list, const clv__op_io *io) {
    const layout l = layout_of(io);
    const int64_t n = l.runs * l.inner / 4;
    CLV__LAUNCH(list, io, "lookup", "lookup_vector", CLV__ELEMENTS, n, "o0=T_Y i0 i1",
                CLV__INTS(n, l.inner / 4, l.channels));
}

static const clv__variant variants[] = {
    {"plain", .lower = plain},
    {"chunks", threads_support, .lower = chunks, .relative = 0.2},
    {"vector", vector_supports, .lower = vector, .relative = 0.5, .lanes = true},
    {0}};

static void reference(const clv__ref *ref) {
    const layout l = layout_of(ref->io);
    for (int64_t i = 0, n = l.runs * l.inner; i < n; i++)
        ref->out[0][i] = ref->in[1][i / l.inner % l.channels * BYTES + (int64_t)ref->in[0][i]];
}

static void cost(const clv__op_io *io, clv__cost *cost) {
    const double n = (double)clv__numel(&io->in[0]);
    *cost = (clv__cost){n, 5 * n};
}

#define ROW(what, rows, ...)                                                                                 \
    .label = what, .in = {CLV__DIMS(__VA_ARGS__), CLV__DIMS(rows, BYTES)}, .n_in = 2, .i32 = 1,              \
    .whole = CLV_DTYPE_U8, .fill = {{CLV__FILL_INTEGER, 0, BYTES - 1}}, .no_gradient = true
static const clv__sample_row samples[] = {
    {ROW("[2,3,5,7], a table for each channel", 3, 2, 3, 5, 7), .quick = true},
    {ROW("[3,4,8,8], one table", 1, 3, 4, 8, 8), .quick = true},
    {ROW("[33], one table", 1, 33), .quick = true},
    {ROW("[2,3,4,4], a table for each channel", 3, 2, 3, 4, 4)},
    {ROW("[5,2], a table for each channel", 2, 5, 2)},
    {ROW("[2,2,91,101], more than a chunk", 2, 2, 2, 91, 101)},
    {ROW("[0,3,4,4]", 3, 0, 3, 4, 4)},
    {0}};
#undef ROW

/** Along every dimension; the tables go along the channels'. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *x = &io->in[0].shape;
    if (i >= x->rank) return false;
    out->length = x->dims[i];
    out->in[0] = out->out[0] = (int8_t)i;
    if (i == 1 && io->in[1].shape.dims[0] > 1) out->in[1] = 0;
    return true;
}

CLV__OP(lookup) = {
    .name = "lookup",
    .inputs = CLV__INPUTS({"x", "u8[*]"}, {"table", "f32[C,256]"}),
    .outputs = CLV__OUTPUTS({"y", "f32[*]"}),
    .half_out = 1,
    .infer = infer,
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .cost = cost,
    .split = split,
};
