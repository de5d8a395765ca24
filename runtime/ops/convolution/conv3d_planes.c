// SPDX-License-Identifier: Apache-2.0
// Convolution over three dimensions by that over two, with any of its variants. The images of the batch are planes along OD, and the taps
// along D are channels of their own: weight [O, C, KD, KH, KW] lies in memory as [O, C*KD, KH, KW] does. So x is unfolded along D before,
// and what comes out is brought back into order, and added up in the gradient by the input. That is a pass over KD times x and one over y
// beside C*KD*KH*KW products for each result, where a kernel for each slice of the weights would read and write y KD times.
// The unfolded tensors lie in the workspace, some images at a time. Kernels: kernels_cl/conv3d.cl.
#include "ops/convolution/conv3d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

/** Bytes of both tensors of some images; floats after which any device lets a part of memory begin. */
enum { ROOM = 32 << 20, APART = 1024 };

/** A use of the op of two dimensions. */
typedef struct flat {
    clv__op_io io;
    clv__desc in[2];
    struct {
        clv__conv2d_attrs conv;
        int32_t more[CLV__WINDOW_DIMS];
        clv_shape shape;
    } attrs;
} flat;

static bool is_weight(const clv__op_io *io) {
    return io->op == &clv__op_conv3d_backward_weight;
}

/** The use for so many images. Its results are floats: what is added up is not rounded before. */
static void flat_of(const clv__op_io *io, const clv__conv2d *c, int64_t images, flat *f) {
    const bool back = clv__conv3d_back(io), weight = is_weight(io);
    const int64_t taps = c->in_channels * c->kernel[0], n = images * c->out[0];
    const clv_shape x = CLV_SHAPE(n, c->groups * taps, c->in[1], c->in[2]),
                    y = CLV_SHAPE(n, c->groups * c->out_channels, c->out[1], c->out[2]),
                    w = CLV_SHAPE(c->groups * c->out_channels, taps, c->kernel[1], c->kernel[2]);
    *f = (flat){.io = {.op = weight ? CLV__TRAINS(&clv__op_conv2d_backward_weight)
                             : back ? &clv__op_conv_transpose2d
                                    : &clv__op_conv2d,
                       .attrs = &f->attrs,
                       .n_in = 2,
                       .n_out = 1,
                       .in = f->in},
                .in = {{io->in[0].dtype, back || weight ? y : x}, {io->in[1].dtype, weight ? x : w}}};
    f->io.out[0] = clv__f32(weight ? w : back ? x : y);
    f->attrs.conv.groups = (int32_t)c->groups;
    for (int d = 0; d < 2; d++) {
        f->attrs.conv.stride[d] = (int32_t)c->stride[1 + d];
        f->attrs.conv.padding[d] = (int32_t)c->padding[1 + d];
        f->attrs.conv.dilation[d] = (int32_t)c->dilation[1 + d];
    }
}

/** Elements of an unfolded x and of a y, for one image. */
static int64_t unfolded(const clv__conv2d *c) {
    return c->out[0] * c->groups * c->in_channels * c->kernel[0] * c->in[1] * c->in[2];
}
static int64_t results(const clv__conv2d *c) {
    return c->out[0] * c->groups * c->out_channels * c->out[1] * c->out[2];
}

static int64_t images_of(const clv__conv2d *c) {
    const int64_t bytes = 4 * (unfolded(c) + results(c));
    return clv__max64(1, clv__min64(c->n, ROOM / clv__max64(bytes, 1)));
}

/** The variant that is best there: one that rounds no more than the tensors are. NULL: none can. */
static const clv__variant *best_of(const clv_device_info *device, const flat *f, double *rank) {
    const clv__variant *best = NULL;
    for (const clv__variant *v = f->io.op->variants; v->name; v++) {
        if (v->roundoff > 0 || !clv__variant_rounds(v, CLV_FLOAT32_PRODUCTS_HIGHEST, &f->io) ||
            !clv__variant_supports(v, device, &f->io))
            continue;
        const double of_this = clv__variant_rank(v, device, &f->io);
        if (best && of_this >= *rank) continue;
        best = v;
        *rank = of_this;
    }
    return best;
}

bool clv__conv3d_planes_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__conv2d c = clv__conv3d_of(io);
    const int64_t images = images_of(&c), most = images * clv__max64(unfolded(&c), results(&c));
    const uint64_t bytes = (uint64_t)most * 4;
    return clv__numel(&io->out[0]) > 0 && clv__conv2d_sums(&c) && c.in[2] > 0 && most < INT32_MAX &&
           (!device->max_alloc_bytes || 2 * bytes <= device->max_alloc_bytes);
}

/** Beside the way over two dimensions: an element of an unfolded x, written, read and perhaps written again, is a few FMAs. */
double clv__conv3d_planes_rank(const clv_device_info *device, const clv__op_io *io) {
    const double copied = 2;
    const clv__conv2d c = clv__conv3d_of(io);
    flat f;
    double rank = 1;
    flat_of(io, &c, images_of(&c), &f);
    best_of(device, &f, &rank);
    return rank + copied / (double)(c.out_channels * c.kernel[1] * c.kernel[2]) / 10;
}

// ---- launches ---------------------------------------------------------------------------------------------

static clv__part room_for(clv__launches *list, int64_t n, clv_dtype dtype) {
    clv__part part = {.bytes = (size_t)n * clv_dtype_bytes(dtype)};
    part.offset = clv__launch_workspace(list, part.bytes);
    return part;
}

/** Which images, and how planes follow from planes: those of x, or, `each` one for itself, of y. */
typedef struct planes {
    int64_t first, n, channels, depth, made, taps, stride, padding, dilation, size;
} planes;

static planes planes_of(const clv__conv2d *c, bool of_y, int64_t first, int64_t n) {
    if (of_y)
        return (planes){first, n, c->groups * c->out_channels, c->out[0], c->out[0], 1, 1,
                        0,     1, c->out[1] * c->out[2]};
    return (planes){first,
                    n,
                    c->groups * c->in_channels,
                    c->in[0],
                    c->out[0],
                    c->kernel[0],
                    c->stride[0],
                    c->padding[0],
                    c->dilation[0],
                    c->in[1] * c->in[2]};
}

#define PLANES(p)                                                                                            \
    CLV__INTS((p)->first, (p)->n, (p)->channels, (p)->depth, (p)->made, (p)->taps, (p)->stride,              \
              (p)->padding, (p)->dilation, (p)->size)

/** A launch over so many planes: items for elements on lanes, for some planes each on threads. */
static clv__launch *launch_of(clv__launches *list, const char *elements, const char *whole, const planes *p,
                              int64_t n, int64_t *per) {
    const bool threads = clv__threads(list->device);
    *per = clv__rows_for(p->size);
    clv__launch *launch = threads ? clv__launch_items(list, "conv3d", whole, CLV__TASKS, clv__div_up(n, *per))
                                  : clv__launch_items(list, "conv3d", elements, CLV__ELEMENTS, n * p->size);
    if (threads) clv__define_number(list, launch, "VW", clv__tile_lanes(list->device), 16);
    return launch;
}

/** Input `in` of the op, unfolded. */
static clv__part unfold(clv__launches *list, const clv__op_io *io, int in, const planes *p) {
    const int64_t n = p->n * p->made * p->channels * p->taps;
    const clv__part part = room_for(list, n * p->size, io->in[in].dtype);
    int64_t per;
    clv__launch *launch = launch_of(list, "conv3d_unfold", "conv3d_unfold_planes", p, n, &per);
    clv__arg_part(list, launch, part);
    clv__arg_in_as(list, launch, io, in, "T_IN");
    CLV__ARGS(list, launch, NULL, NULL, PLANES(p));
    if (clv__threads(list->device)) clv__arg_i32(list, launch, per);
    return part;
}

/** Output 0 of the op of what was made. */
static void fold(clv__launches *list, const clv__op_io *io, clv__part made, const planes *p, bool bias) {
    int64_t per;
    clv__launch *launch =
        launch_of(list, "conv3d_fold", "conv3d_fold_planes", p, p->n * p->channels * p->depth, &per);
    CLV__ARGS(list, launch, io, "o0=T_OUT w b", .bias = bias ? 2 : 1, .part = made, PLANES(p));
    clv__arg_i32(list, launch, bias);
    if (clv__threads(list->device)) clv__arg_i32(list, launch, per);
    clv__arg_epilogue(list, launch, io);
}

/** The launches of the use, with parts of the workspace for its inputs and its output; those without bytes are the op's own. */
static void lower_flat(clv__launches *list, const flat *f, const clv__part in[2], clv__part out) {
    const size_t before = list->n;
    double rank = 0;
    clv__op_io io = f->io;
    io.variant = best_of(list->device, f, &rank);
    io.variant->lower(list, &io);
    for (size_t i = before; i < list->n; i++) {
        clv__launch *launch = &list->items[i];
        for (int k = 0; k < launch->n_slots; k++) {
            clv__slot *slot = &launch->slots[k];
            const bool reads = slot->kind == CLV__SLOT_IN, writes = slot->kind == CLV__SLOT_OUT;
            const clv__part *part = reads ? &in[slot->index] : &out;
            if (!(reads || writes) || !part->bytes) continue;
            *slot = (clv__slot){.kind = CLV__SLOT_WORKSPACE, .offset = part->offset, .bytes = part->bytes};
        }
    }
}

/** Some images after the others, in the same workspace. */
void clv__conv3d_planes_lower(clv__launches *list, const clv__op_io *io) {
    const clv__conv2d c = clv__conv3d_of(io);
    const bool back = clv__conv3d_back(io);
    const int64_t images = images_of(&c);
    const size_t begin = list->workspace_bytes;
    size_t most = begin;
    for (int64_t first = 0; first < c.n; first += images) {
        const int64_t n = clv__min64(images, c.n - first);
        const planes from = planes_of(&c, back, first, n), to = planes_of(&c, !back, first, n);
        flat f;
        flat_of(io, &c, n, &f);
        list->workspace_bytes = begin;
        const clv__part in[2] = {unfold(list, io, 0, &from)};
        const clv__part out = room_for(list, clv__numel(&f.io.out[0]), CLV_DTYPE_F32);
        lower_flat(list, &f, in, out);
        fold(list, io, out, &to, c.bias);
        if (list->workspace_bytes > most) most = list->workspace_bytes;
    }
    list->workspace_bytes = most;
}

/** The same for the weights; several parts of the images are added up at last. */
void clv__conv3d_planes_weight(clv__launches *list, const clv__op_io *io) {
    const clv__conv2d c = clv__conv3d_of(io);
    const int64_t images = images_of(&c), parts = clv__div_up(c.n, images), size = clv__numel(&io->out[0]);
    const int64_t stride = clv__round_up(size, APART);
    const clv__part sums = clv__floats(list, parts > 1 ? parts * stride : 0);
    const size_t begin = list->workspace_bytes;
    size_t most = begin;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t first = i * images, n = clv__min64(images, c.n - first);
        const planes of_y = planes_of(&c, true, first, n), of_x = planes_of(&c, false, first, n);
        flat f;
        flat_of(io, &c, n, &f);
        list->workspace_bytes = begin;
        const clv__part in[2] = {unfold(list, io, 0, &of_y), unfold(list, io, 1, &of_x)};
        clv__part out = sums;
        if (sums.bytes) {
            out.bytes = (size_t)size * sizeof(float);
            out.offset = sums.offset + (size_t)(i * stride) * sizeof(float);
        }
        lower_flat(list, &f, in, out);
        if (list->workspace_bytes > most) most = list->workspace_bytes;
    }
    list->workspace_bytes = most;
    if (!sums.bytes) return;
    clv__launch *launch = clv__launch_items(list, "conv3d", "conv3d_add", CLV__ELEMENTS, size);
    CLV__ARGS(list, launch, NULL, "o0 w", .part = sums, CLV__INTS(size, parts, stride));
}
