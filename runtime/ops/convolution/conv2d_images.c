// SPDX-License-Identifier: Apache-2.0
// Convolutions of many small images on CPU-class devices, forward and backward by the input: the launches of
// kernels_cl/conv2d_images.cl, which says what they compute. Its vectors run over images, so taps outside of an image cost
// nothing; where images are large these are few, and where they are many a group of images does not stay in a cache.
#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

enum { TILES = 16, TAPS = 64, WEIGHTS = 6144 }; // OL, KL and WL of the kernel file

/** What the kernels are given: of dy and dx backwards. */
typedef struct work {
    int64_t n, in_channels, out_channels, in[2], out[2], taps;
    int64_t lanes, rows, group, groups; // of vectors; MR or WR of the kernel file; images in a group; groups
    int64_t block, together;            // channels in at a time; groups for which weights are read together
    bool back, whole;                   // the gradient; by images_whole
} work;

static work work_of(const clv_device_info *device, const clv__conv2d *c, bool back) {
    work w = {.n = c->n,
              .in_channels = back ? c->out_channels : c->in_channels,
              .out_channels = back ? c->in_channels : c->out_channels,
              .taps = c->kernel[0] * c->kernel[1],
              .lanes = clv__tile_lanes(device),
              .back = back};
    for (int d = 0; d < 2; d++) {
        w.in[d] = back ? c->out[d] : c->in[d];
        w.out[d] = back ? c->in[d] : c->out[d];
    }
    w.rows = w.lanes == 16 ? 8 : 4;
    // Images of the groups at hand stay in a core's cache, for all channels out.
    enum { GROUPS = 512 << 10 };
    int64_t image = w.in_channels * w.in[0] * w.in[1] * (int64_t)sizeof(float);
    w.group = clv__lane_block(c->n, w.lanes);
    if (w.group * image >= GROUPS) w.group = w.lanes;
    // Images are small enough to stay in registers, and each pixel that is read goes into some products there.
    enum { TAPS_WHOLE = 9, PRODUCTS = 4 };
    const int64_t sums = w.lanes == 16 ? 16 : 12, pixels = clv__max64(1, w.out[0] * w.out[1]),
                  rows = clv__min64(8, sums / pixels),
                  meetings = clv__conv2d_meetings(c, 0) * clv__conv2d_meetings(c, 1);
    w.whole = rows > 0 && w.taps <= TAPS_WHOLE && w.lanes * image <= GROUPS &&
              PRODUCTS * clv__min64(w.in[0] * w.in[1], meetings) <= rows * meetings;
    if (w.whole) {
        w.group = w.lanes;
        w.rows = rows;
    }
    w.groups = clv__div_up(c->n, w.group);
    w.together = clv__min64(w.groups, clv__max64(1, GROUPS / clv__max64(1, w.group * image)));
    // Weights and images of a block stay in the nearest cache; of few channels, its loops would be short.
    enum { CACHE = 24 << 10, LEAST = 8 };
    int64_t panel = w.rows * w.taps, most = CACHE / 4 / (panel + w.in[0] * w.in[1] * w.group);
    w.block = clv__even_block(w.in_channels, 1, clv__min64(clv__max64(most, LEAST), WEIGHTS / panel));
    return w;
}

/** Images of all groups as the kernels read them. */
static int64_t input_floats(const work *w) {
    return w->groups * w->group * w->in_channels * w->in[0] * w->in[1];
}

/** Sizes are constants there, as the register tile is the image. */
static void product_whole(clv__launches *list, const clv__op_io *io, const clv__conv2d *c, const work *w,
                          clv__part input) {
    clv__launch *launch = clv__launch_kernel(list, "conv2d_images", "images_whole");
    if (w->lanes != 16) clv__launch_define(list, launch, "VW", "%d", (int)w->lanes);
    const struct {
        const char *name;
        int64_t value;
    } sizes[] = {
        {"WR", w->rows},         {"WBACK", w->back},      {"WIH", w->in[0]},      {"WIW", w->in[1]},
        {"WOH", w->out[0]},      {"WOW", w->out[1]},      {"WKH", c->kernel[0]},  {"WKW", c->kernel[1]},
        {"WSH", c->stride[0]},   {"WSW", c->stride[1]},   {"WPH", c->padding[0]}, {"WPW", c->padding[1]},
        {"WDH", c->dilation[0]}, {"WDW", c->dilation[1]},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        clv__launch_define(list, launch, sizes[i].name, "%d", (int)sizes[i].value);
    CLV__ARGS(list, launch, io, "o0=T_OUT w i1 b", .bias = c->bias ? 2 : 1, .part = input,
              CLV__INTS(w->n, w->in_channels, w->out_channels, w->back ? w->taps : w->in_channels * w->taps,
                        w->back ? w->out_channels * w->taps : w->taps, c->bias));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__TASKS, w->groups * clv__div_up(w->out_channels, w->rows));
}

void clv__conv2d_images_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const bool back = clv__conv2d_back(io);
    clv__conv2d c = clv__conv2d_of(io);
    work w = work_of(list->device, &c, back);
    const clv__part input = clv__floats(list, input_floats(&w));
    const int64_t per = clv__div_up(w.in_channels, 16);

    clv__launch *launch = clv__launch_kernel(list, "conv2d_images", "images_input");
    if (w.lanes != 16) clv__launch_define(list, launch, "VW", "%d", (int)w.lanes);
    CLV__ARGS(list, launch, io, "w i0=T_IN", .part = input,
              CLV__INTS(w.n, w.in_channels, w.in[0] * w.in[1], w.group, per));
    clv__launch_over(list, launch, CLV__TASKS, w.groups * clv__div_up(w.in_channels, per));

    if (w.whole) {
        product_whole(list, io, &c, &w, input);
        return;
    }
    launch = clv__launch_kernel(list, "conv2d_images", "images_product");
    if (w.lanes != 16) clv__launch_define(list, launch, "VW", "%d", (int)w.lanes);
    CLV__ARGS(list, launch, io, "o0=T_OUT w i1 b", .bias = c.bias ? 2 : 1, .part = input,
              CLV__INTS(w.n, w.in_channels, CLV__HW(w.in), w.out_channels, CLV__HW(w.out), CLV__HW(c.kernel),
                        CLV__HW(c.stride), CLV__HW(c.padding), CLV__HW(c.dilation),
                        back ? w.taps : w.in_channels * w.taps, back ? w.out_channels * w.taps : w.taps, back,
                        w.group, w.together, w.block, c.bias));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__TASKS, w.groups * clv__div_up(w.out_channels, w.rows));
}

// ---- where it can run, and where it should ----------------------------------------------------------------------------

bool clv__conv2d_images_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    if (!clv__conv2d_sums(&c) || c.kernel[0] * c.kernel[1] > TAPS) return false; // no block of weights to cut
    work w = work_of(device, &c, clv__conv2d_back(io));
    uint64_t local = (uint64_t)(WEIGHTS + TILES * (5 + 9 * TAPS + 2 * w.rows * w.lanes)) * 4;
    return clv__threads(device) && device->loop_turns == 0 && local <= clv__tile_local_bytes(device) &&
           c.groups == 1 && input_floats(&w) < INT32_MAX;
}

/** Of tile's time, per channel in and out, in the time of a product of vectors, measured with AVX-512: products, a group's
 *  weights, and images on their way in and out. Of two vectors of images fewer blocks stay in the nearest cache. */
double clv__conv2d_images_rank(const clv_device_info *device, const clv__op_io *io) {
    const double one = 1.05, two = 1.18, far = 1.3, panel = 1.65, panel_whole = 0.3, copy = 65, direct = 1.17;
    enum {
        CACHE = 1 << 20,
        NEAR = 512 << 10
    }; // of a group: beyond, images come from further away for each panel again
    clv__conv2d c = clv__conv2d_of(io);
    work w = work_of(device, &c, clv__conv2d_back(io));
    // Where rows of pixels are short, tile takes longer than its rank says, and winograd, if it is there, somewhat.
    const double edge = clv__conv2d_winograd_supports(device, io) ? 1.6 : 6;
    int64_t bytes = input_floats(&w) / w.groups * (int64_t)sizeof(float);
    if (bytes > CACHE || (w.taps == 1 && c.stride[0] * c.stride[1] == 1)) return 0.5;
    double vectors = (double)(w.groups * w.group) / (double)w.lanes;
    double cycles = (bytes > NEAR         ? far
                     : w.group == w.lanes ? one
                                          : two) *
                        vectors * (double)(clv__conv2d_meetings(&c, 0) * clv__conv2d_meetings(&c, 1)) +
                    (w.whole ? panel_whole : panel) * (double)(w.taps * w.groups) +
                    copy * vectors *
                        ((double)(w.in[0] * w.in[1]) / (double)w.out_channels +
                         (double)(w.out[0] * w.out[1]) / (double)w.in_channels);
    double all = (double)(c.out[0] * c.out[1] * w.taps * c.n) / (double)w.lanes * direct *
                 (1 + edge / (double)c.out[1]);
    return 0.02 * cycles / all;
}
