// SPDX-License-Identifier: Apache-2.0
// Convolutions on CPU-class devices: how the work is cut into tasks for kernels_cl/conv2d.cl, and its
// launches.
//
// A cut is searched, not guessed: each legal one is priced in cycles of one core with the constants below,
// and the cheapest is taken. It depends on the sizes and on the device's local memory, never on the number of
// threads, so the sums are the same on any number of them.

#include "ops/convolution/conv2d.h"
#include "ops/epilogue.h"
#include "ops/lower.h"

/** What the kernels are compiled for on a device: register tiles, and elements of the local arrays. */
typedef struct limits {
    int lanes, mr, nr, wr;
    int64_t window, result, sums, offsets; // XL, YL, AL, KL of the kernel file, which has three of the last
} limits;

enum { WINDOW = 40960, RESULT = 40960, SUMS = 20480, OFFSETS = 2048 }; // the kernel file's defaults

static uint64_t local_bytes(const limits *l) {
    return (uint64_t)(l->window + l->result + l->sums + 3 * l->offsets) * 4;
}

static limits limits_of(const clv_device_info *device) {
    limits l = {.lanes = clv__tile_lanes(device),
                .window = WINDOW,
                .result = RESULT,
                .sums = SUMS,
                .offsets = OFFSETS};
    l.mr = l.lanes == 16 ? 8 : 4;
    l.nr = 3 * l.lanes;
    l.wr = l.lanes == 16 ? 10 : 4;
    while (local_bytes(&l) > clv__tile_local_bytes(device) && l.offsets > 64) {
        l.window /= 2;
        l.result /= 2;
        l.sums /= 2;
        l.offsets /= 2;
    }
    return l;
}

/** Only what differs from the kernel file's own defaults, so that all variants share one compiled instance. */
static void add_defines(clv__launches *list, clv__launch *launch, const limits *l) {
    if (l->lanes != 16) clv__launch_define(list, launch, "VW", "%d", l->lanes);
    if (l->window == WINDOW) return;
    clv__launch_define(list, launch, "XL", "%d", (int)l->window);
    clv__launch_define(list, launch, "YL", "%d", (int)l->result);
    clv__launch_define(list, launch, "AL", "%d", (int)l->sums);
    clv__launch_define(list, launch, "KL", "%d", (int)l->offsets);
}

// Cycles of one core, measured roughly with AVX-512; only their proportions matter.
static const double copy_cycles = 0.3;       // copy an element to local memory
static const double whole_copy_cycles = 0.1; // the same, images as they lie in memory
static const double row_cycles = 20;         // begin and end a row of the copy
static const double gather_cycles = 1.2;     // copy it with the phases of a stride apart
static const double transpose_cycles = 0.6;  // the same, transposed
static const double tile_cycles = 80;        // begin and end a register tile
static const double scatter_cycles = 2;      // write a sum of the weights' gradient out
static const double part_cycles = 1;         // write or read an element of a partial sum
static const double store_cycles = 4;        // write a vector of the result out
static const double task_cycles = 3000;      // begin a task

/** Tasks are handed to threads whole: a few too many for a round cost a whole round. Threads are unknown, so
 * eight. */
static double rounds(int64_t tasks) {
    return (double)(tasks < 64 ? clv__round_up(tasks, 8) : tasks);
}

// ---- forward, and backward by the input -------------------------------------------------------------------

/** What conv2d_tile makes of an op; names as in the kernel file. [0] is H, [1] is W. */
typedef struct correlation {
    int64_t n, groups, in_channels, out_channels;
    int64_t in[2], out[2]; // sizes of the tensors
    int64_t kernel[2], out_step[2], in_step[2], shift[2], dilation[2];
    bool flip;
    int64_t phases, grid[2]; // of out_step, and pixels of one of them
    int64_t first[2],
        reach
            [2]; // the taps, of all phases together: the first pixel of in, and how far it is to the last one
} correlation;

typedef struct output_cut {
    int64_t images, block[2], in_channels, out_channels, tasks;
    double cycles; // below 0: none found
} output_cut;

/** Rows or columns of the window behind `block` outputs, of one stride phase. */
static int64_t window_size(const correlation *c, int d, int64_t block) {
    return ((block - 1) * c->in_step[d] + c->reach[d] + c->in_step[d]) / c->in_step[d];
}

/** Are a window's rows one run in memory? */
static bool joined(const correlation *c, int64_t width) {
    return c->in_step[0] == 1 && c->in_step[1] == 1 && c->first[1] == 0 && width == c->in[1];
}

/** Price a block of outputs by out_channels of some images; keep it if it is the best so far. False: it does not
 * fit. */
static bool price(const limits *l, const correlation *c, int64_t images, const int64_t block[2],
                  int64_t out_channels, output_cut *best) {
    int64_t taps = c->kernel[0] * c->kernel[1], phases = c->in_step[0] * c->in_step[1];
    int64_t height = window_size(c, 0, block[0]), width = window_size(c, 1, block[1]);
    if (height > l->window || width > l->window || height * width > l->window / phases / images) return false;
    int64_t plane = images * phases * height * width;
    int64_t pixels = clv__round_up((images - 1) * height * width + (block[0] - 1) * width + block[1], l->nr);
    if (plane + l->nr > l->window || pixels * c->phases > l->result / out_channels || taps > l->offsets)
        return false;
    // Sums of a few hundred terms keep a window and its weights in the first two caches; taps of one channel share theirs.
    const int64_t terms = taps == 1 ? 256 : 768;
    int64_t channels = clv__min64(c->in_channels, (l->window - l->nr) / plane);
    channels = clv__min64(channels, clv__min64(l->offsets / taps, clv__max64(1, terms / taps)));
    int64_t chunks = clv__div_up(c->in_channels, channels);
    channels = clv__div_up(c->in_channels, chunks);
    double tiles = (double)(pixels / l->nr) * (double)(out_channels / l->mr);
    double tile =
        (double)(channels * taps) * 3 * l->mr / 2 + (double)c->phases * tile_cycles; // of all phases
    // A kernel of one row or column reads one phase.
    int64_t row_phases = c->reach[0] == 0 ? 1 : c->in_step[0],
            column_phases = c->reach[1] == 0 ? 1 : c->in_step[1];
    int64_t rows = channels * images * (joined(c, width) ? 1 : height * row_phases);
    double copy = (double)(channels * plane / phases * row_phases * column_phases) *
                      (c->in_step[1] > 1 ? gather_cycles : copy_cycles) +
                  (double)rows * row_cycles;
    double stores =
        (double)(c->phases * images * out_channels * block[0] * block[1]) / l->lanes * store_cycles;
    int64_t tasks = clv__div_up(c->n, images) * c->groups * clv__div_up(c->out_channels, out_channels) *
                    clv__div_up(c->grid[0], block[0]) * clv__div_up(c->grid[1], block[1]);
    double cycles = rounds(tasks) * ((double)chunks * (copy + tiles * tile) + stores + task_cycles);
    if (best->cycles < 0 || cycles < best->cycles)
        *best = (output_cut){images, {block[0], block[1]}, channels, out_channels, tasks, cycles};
    return true;
}

static output_cut cut_of(const limits *l, const correlation *c) {
    output_cut best = {.cycles = -1};
    for (int64_t parts = 1; parts <= clv__div_up(c->out_channels, l->mr); parts *= 2) {
        int64_t out_channels = clv__round_up(clv__div_up(c->out_channels, parts), l->mr);
        bool fits = false; // columns are cut only where whole rows do not fit
        for (int64_t wide = 1; wide <= c->grid[1] && !fits; wide *= 2) {
            for (int64_t high = 1; high <= c->grid[0]; high = high < 16 ? high + 1 : high * 2) {
                int64_t block[2] = {clv__div_up(c->grid[0], high), clv__div_up(c->grid[1], wide)};
                fits |= price(l, c, 1, block, out_channels, &best);
            }
            if (!fits && c->grid[0] > 1)
                fits = price(l, c, 1, (int64_t[]){1, clv__div_up(c->grid[1], wide)}, out_channels, &best);
        }
        // Small images fill register tiles together.
        for (int64_t images = 2; fits && images < 2 * c->n; images *= 2)
            if (!price(l, c, clv__min64(images, c->n), c->grid, out_channels, &best)) break;
    }
    return best;
}

/** Fill in what follows from the other sizes; as conv2d_reach does. */
static correlation complete(correlation r) {
    r.phases = 1;
    for (int d = 0; d < 2; d++) {
        int64_t phases = clv__min64(r.out_step[d], r.out[d]), low = INT64_MAX, high = INT64_MIN;
        for (int64_t phase = 0; phase < phases; phase++) {
            for (int64_t tap = 0; tap < r.kernel[d]; tap++) {
                int64_t at = phase + r.shift[d] - tap * r.dilation[d];
                if (at % r.out_step[d] != 0) continue;
                low = clv__min64(low, at / r.out_step[d]);
                high = clv__max64(high, at / r.out_step[d]);
            }
        }
        r.phases *= phases;
        r.grid[d] = clv__div_up(r.out[d], r.out_step[d]);
        r.first[d] = low <= high ? low : 0;
        r.reach[d] = low <= high ? high - low : 0;
    }
    return r;
}

static correlation correlation_of(const clv__conv2d *c, bool back) {
    correlation r = {.n = c->n,
                     .groups = c->groups,
                     .in_channels = back ? c->out_channels : c->in_channels,
                     .out_channels = back ? c->in_channels : c->out_channels,
                     .flip = !back};
    for (int d = 0; d < 2; d++) {
        r.in[d] = back ? c->out[d] : c->in[d];
        r.out[d] = back ? c->in[d] : c->out[d];
        r.kernel[d] = c->kernel[d];
        r.dilation[d] = c->dilation[d];
        r.out_step[d] = back ? c->stride[d] : 1;
        r.in_step[d] = back ? 1 : c->stride[d];
        r.shift[d] = back ? c->padding[d] : (c->kernel[d] - 1) * c->dilation[d] - c->padding[d];
    }
    return complete(r);
}

/** Pack the weights, then convolve. */
void clv__conv2d_tile_lower(clv__launches *list, const clv__op_io *io) {
    if (clv__numel(&io->out[0]) == 0) return;
    const bool back = clv__conv2d_back(io);
    const clv__conv2d conv = clv__conv2d_of(io);
    const correlation of = correlation_of(&conv, back), *r = &of;
    const int64_t kernel = conv.kernel[0] * conv.kernel[1], row = conv.in_channels * kernel; // of weight
    const limits l = limits_of(list->device);
    const int64_t panels = r->groups * clv__div_up(r->out_channels, l.mr);
    const clv__part packed = clv__floats(list, panels * l.mr * r->in_channels * kernel);
    clv__launch *pack = clv__launch_kernel(list, "conv2d", "conv2d_pack");
    add_defines(list, pack, &l);
    CLV__ARGS(list, pack, io, "w i1", .part = packed,
              CLV__INTS(r->groups, r->out_channels, r->in_channels, CLV__HW(r->out), CLV__HW(r->kernel),
                        CLV__HW(r->out_step), CLV__HW(r->shift), CLV__HW(r->dilation),
                        conv.out_channels * row, back ? kernel : row, back ? row : kernel, r->flip));
    clv__launch_over(list, pack, CLV__TASKS, panels);

    output_cut c = cut_of(&l, r);
    clv__launch *launch = clv__launch_kernel(list, "conv2d", "conv2d_tile");
    add_defines(list, launch, &l);
    CLV__ARGS(list, launch, io, "o0=T_OUT i0=T_IN w b", .bias = conv.bias ? 2 : 1, .part = packed,
              CLV__INTS(r->n, r->groups, r->in_channels, CLV__HW(r->in), r->out_channels, CLV__HW(r->out),
                        CLV__HW(r->kernel), CLV__HW(r->out_step), CLV__HW(r->shift), CLV__HW(r->dilation),
                        CLV__HW(r->in_step), c.images, CLV__HW(c.block), c.in_channels, c.out_channels,
                        conv.bias));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__TASKS, c.tasks);
}

// ---- backward by the weights ------------------------------------------------------------------------------

typedef struct weight_cut {
    int64_t block[2], in_channels, out_channels, splits, images, tasks; // images of a split
    int64_t
        parts; // room for so many splits: of fewer images there may be more, which shall not need more memory
    int64_t block_images;
    bool halo;     // as the kernel file has it
    double cycles; // below 0: none found
} weight_cut;

/** Images in a block of whole ones as they lie in memory, in equal blocks of `images`; 0: not even one fits. */
static int64_t whole_images(const limits *l, const clv__conv2d *c, int64_t in_channels, int64_t out_channels,
                            int64_t images) {
    int64_t pixels = c->out[0] * c->out[1];
    int64_t fit =
        clv__min64(l->window / (in_channels * c->in[0] * c->in[1]), l->result / out_channels / pixels);
    fit = clv__min64(fit, l->offsets / pixels);
    return fit ? clv__even_block(images, 1, fit) : 0;
}

/** Price a task of some channels, of blocks of pixels of one image or, with block NULL, of whole images. */
static bool price_weight(const limits *l, const clv__conv2d *c, const int64_t block[2], int64_t in_channels,
                         int64_t out_channels, weight_cut *best) {
    enum { TASKS = 32 };
    const int64_t taps = c->kernel[0] * c->kernel[1], unit = 2 * l->lanes;
    int64_t terms =
        block ? clv__round_up(in_channels * taps, l->wr) : clv__round_up(in_channels, l->wr) * taps;
    if (terms > l->offsets || terms * out_channels > l->sums) return false;
    int64_t tasks =
        c->groups * clv__div_up(c->in_channels, in_channels) * clv__div_up(c->out_channels, out_channels);
    const int64_t parts = clv__min64(c->n, clv__div_up(TASKS, tasks)), images = clv__div_up(c->n, parts),
                  splits = clv__div_up(c->n, images);
    weight_cut cut = {.in_channels = in_channels,
                      .out_channels = out_channels,
                      .parts = parts,
                      .splits = splits,
                      .images = images,
                      .block_images = 1,
                      .halo = block != NULL,
                      .tasks = tasks * splits};
    double pixels, copy, tiles; // of a block: outputs; copying from x; register tiles of two vectors
    if (block) {
        int64_t window[2];
        for (int d = 0; d < 2; d++) {
            cut.block[d] = block[d];
            window[d] = (block[d] - 1) * c->stride[d] + (c->kernel[d] - 1) * c->dilation[d] + 1;
        }
        if (window[0] > l->window || window[1] > l->window ||
            window[0] * window[1] > l->window / in_channels ||
            block[0] * block[1] > l->result / out_channels || block[0] * block[1] > l->offsets)
            return false;
        pixels = (double)(block[0] * block[1]);
        copy = (double)(in_channels * window[0] * window[1]) * copy_cycles;
        tiles = (double)(terms / l->wr) * (pixels * l->wr + tile_cycles);
    } else {
        cut.block_images = whole_images(l, c, in_channels, out_channels, images);
        if (cut.block_images == 0) return false;
        for (int d = 0; d < 2; d++) cut.block[d] = c->out[d];
        pixels = (double)(cut.block_images * c->out[0] * c->out[1]);
        copy = (double)(cut.block_images * in_channels * c->in[0] * c->in[1]) * whole_copy_cycles;
        double met = (double)(cut.block_images * clv__conv2d_meetings(c, 0) * clv__conv2d_meetings(c, 1));
        tiles = (double)(terms / taps / l->wr) * (met * l->wr + (double)taps * tile_cycles);
    }
    int64_t run = cut.block[1] == c->out[1] ? cut.block[0] * cut.block[1] : cut.block[1];
    double transpose = pixels * (double)out_channels * (run >= l->lanes ? transpose_cycles : gather_cycles);
    double blocks =
        block ? (double)(images * clv__div_up(c->out[0], block[0]) * clv__div_up(c->out[1], block[1]))
              : (double)clv__div_up(images, cut.block_images);
    double one = copy + transpose + (double)(out_channels / unit) * tiles;
    cut.cycles =
        rounds(cut.tasks) * (blocks * one + (double)(terms * out_channels) * scatter_cycles + task_cycles);
    if (splits > 1)
        cut.cycles += (double)(splits + 1) * (double)(c->groups * c->out_channels * c->in_channels * taps) *
                      part_cycles;
    if (best->cycles < 0 || cut.cycles < best->cycles) *best = cut;
    return true;
}

/** The largest block of pixels that fits is the best one. False: none fits. */
static bool largest_block(const limits *l, const clv__conv2d *c, int64_t in_channels, int64_t out_channels,
                          weight_cut *best) {
    for (int64_t wide = 1;; wide *= 2) {
        int64_t columns = clv__div_up(c->out[1], wide);
        for (int64_t high = 1;; high = high < 16 ? high + 1 : high * 2) {
            int64_t rows = clv__div_up(c->out[0], high);
            if (price_weight(l, c, (int64_t[]){rows, columns}, in_channels, out_channels, best)) return true;
            if (rows == 1) break;
        }
        if (columns == 1) return false;
    }
}

static weight_cut weight_cut_of(const limits *l, const clv__conv2d *c) {
    weight_cut best = {.cycles = -1};
    int64_t unit = 2 * l->lanes;
    for (int64_t parts = 1; parts <= clv__div_up(c->out_channels, unit); parts *= 2) {
        int64_t out_channels = clv__round_up(clv__div_up(c->out_channels, parts), unit);
        for (int64_t chunks = 1, last = 0; chunks <= c->in_channels; chunks++) {
            int64_t in_channels = clv__div_up(c->in_channels, chunks);
            if (in_channels == last) continue;
            last = in_channels;
            price_weight(l, c, NULL, in_channels, out_channels, &best);
            bool fits = largest_block(l, c, in_channels, out_channels, &best);
            if (fits && in_channels * c->kernel[0] * c->kernel[1] < 64) break; // smaller is never better
        }
    }
    return best;
}

void clv__conv2d_tile_weight(clv__launches *list, const clv__op_io *io) {
    enum { LEAST = 4096, TASKS = 32 };
    int64_t size = clv__numel(&io->out[0]);
    if (size == 0) return;
    clv__conv2d c = clv__conv2d_of(io);
    limits l = limits_of(list->device);
    weight_cut cut = weight_cut_of(&l, &c);
    const clv__part parts = clv__floats(list, cut.splits > 1 ? cut.parts * size : 0);
    clv__launch *launch = clv__launch_kernel(list, "conv2d", "conv2d_backward_weight_tile");
    add_defines(list, launch, &l);
    clv__conv2d_weight_tensors(list, launch, io, parts);
    clv__conv2d_sizes(list, launch, &c);
    CLV__ARGS_I32(list, launch, cut.splits, cut.images, cut.block_images, cut.halo, CLV__HW(cut.block),
                  cut.in_channels, cut.out_channels);
    clv__launch_over(list, launch, CLV__TASKS, cut.tasks);
    if (!parts.bytes) return;

    const int64_t per = clv__round_up(clv__max64(LEAST / cut.splits, clv__div_up(size, TASKS)), l.lanes);
    launch = clv__launch_kernel(list, "conv2d", "conv2d_backward_weight_sum");
    add_defines(list, launch, &l);
    CLV__ARGS(list, launch, io, "o0 w", .part = parts, CLV__INTS(size, cut.splits, per));
    clv__launch_over(list, launch, CLV__TASKS, clv__div_up(size, per));
}

// ---- where they can run -----------------------------------------------------------------------------------

/** Local memory for the smallest arrays that make sense, and something to sum. */
static bool possible(const clv_device_info *device, const limits *l, const clv__conv2d *c) {
    return clv__threads(device) && device->loop_turns == 0 &&
           local_bytes(l) <= clv__tile_local_bytes(device) && clv__conv2d_sums(c);
}

bool clv__conv2d_tile_supports(const clv_device_info *device, const clv__op_io *io) {
    enum { MOST_PHASES = 64 }; // each has a block of its own in local memory
    const clv__conv2d c = clv__conv2d_of(io);
    const limits l = limits_of(device);
    const bool back = clv__conv2d_back(io);
    if (!possible(device, &l, &c) ||
        (back && clv__min64(c.stride[0], c.in[0]) * clv__min64(c.stride[1], c.in[1]) > MOST_PHASES))
        return false;
    const correlation r = correlation_of(&c, back);
    return cut_of(&l, &r).cycles >= 0;
}

bool clv__conv2d_tile_supports_weight(const clv_device_info *device, const clv__op_io *io) {
    clv__conv2d c = clv__conv2d_of(io);
    limits l = limits_of(device);
    if (!possible(device, &l, &c)) return false;
    weight_cut cut = weight_cut_of(&l, &c);
    double part = (double)cut.parts * (double)clv__numel(&io->out[0]);
    return cut.cycles >= 0 && part < INT32_MAX;
}
