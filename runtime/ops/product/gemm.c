// SPDX-License-Identifier: Apache-2.0
// Products by tiles on devices with lanes, and on threads with little local memory: which tiles there are, how a product is cut, its launches.
// Kernels: kernels_cl/gemm.cl.
#include "ops/product/gemm.h"

#include <math.h>
#include <string.h>

#include "ops/epilogue.h"
#include "ops/lower.h"

/** What the kernel is compiled for: items of a group along columns and along rows, rows and columns of an item,
 *  terms of a tile. */
typedef struct gemm_tile {
    int wx, wy, tm, tn, tk;
    double
        share; // FMAs, or a unit's, among the innermost loop's instructions (tests/drivers/offline/kernels.tsv)
    int registers; // of an item, about: gfx906's, what taps add left out; sm_70 to sm_90 take up to half as many more
    bool stored;              // halves stay halves in local memory
    bool sums;                // and are summed as such: clv__variant.roundoff
    uint32_t unit;            // what a matrix unit multiplies: a CLV_MATRIX_* bit, or 0
    double one_by_one;        // then: the share where nothing is fetched by many bytes at once
    int parts, stages, width; // and as the kernel file says
} gemm_tile;

/** The first has as many registers as leave room for four groups beside each other on gfx906. The second
 *  reads less and wants more registers. The third is for results of few tiles: it has more terms at a time, so
 *  runs of them fill sectors better where terms lie side by side. The others are for small groups, results of few
 *  rows or columns, and halves. "gemm:8x8" is an item by itself, for threads, of which neither
 *  share nor registers are looked at: those that have room have better variants. */
#define FLOAT_TILE(name, ...) [CLV__TILE_##name] = {__VA_ARGS__, 0, 0, 0, 0, 0}
#define UNIT_TILE(name, wx, wy, tm, tn, tk, share, registers, ...)                                           \
    [CLV__TILE_##name] = {wx, wy, tm, tn, tk, share, registers, false, false, __VA_ARGS__}
static const gemm_tile tiles[CLV__TILES] = {
    FLOAT_TILE(USUAL, 16, 16, 4, 8, 8, 0.84, 64, false, false),
    FLOAT_TILE(128X128, 16, 16, 8, 8, 8, 0.89, 128, false, false),
    FLOAT_TILE(64X64, 16, 16, 4, 4, 16, 0.79, 48, false, false),
    FLOAT_TILE(32X64, 8, 8, 4, 8, 8, 0.84, 88, false, false),
    FLOAT_TILE(16X64, 16, 4, 4, 4, 8, 0.79, 59, false, false),
    FLOAT_TILE(64X16, 4, 16, 4, 4, 8, 0.79, 50, false, false),
    FLOAT_TILE(8X8, 1, 1, 8, 8, 8, 0.5, 64, false, false),
    FLOAT_TILE(HALF, 16, 16, 4, 8, 8, 0.83, 64, true, false),
    FLOAT_TILE(HALF_32X64, 8, 8, 4, 8, 8, 0.83, 88, true, false),
    FLOAT_TILE(HALF_SUMS, 16, 16, 4, 8, 8, 1.2, 80, true, true),
    // By counts of sm_90's instructions (tests/drivers/offline/units.py); no card has been asked. The wide ones have half the items.
    UNIT_TILE(TF32, 16, 16, 8, 8, 16, 0.31, 160, CLV_MATRIX_TF32, 0.17, 1, 2, 16),
    UNIT_TILE(TF32_WIDE, 16, 8, 16, 8, 16, 0.40, 255, CLV_MATRIX_TF32, 0.26, 1, 2, 16),
    UNIT_TILE(TF32_64X64, 16, 8, 8, 4, 16, 0.18, 100, CLV_MATRIX_TF32, 0.12, 1, 2, 16),
    UNIT_TILE(F16, 16, 16, 8, 8, 32, 0.32, 160, CLV_MATRIX_F16, 0.16, 1, 2, 16),
    UNIT_TILE(F16_WIDE, 16, 8, 16, 8, 32, 0.42, 255, CLV_MATRIX_F16, 0.16, 1, 2, 16),
    UNIT_TILE(F16_64X64, 16, 8, 8, 4, 32, 0.19, 120, CLV_MATRIX_F16, 0.09, 1, 2, 16),
    UNIT_TILE(BF16, 16, 16, 8, 8, 32, 0.28, 160, CLV_MATRIX_BF16, 0.16, 1, 2, 16),
    UNIT_TILE(BF16_WIDE, 16, 8, 16, 8, 32, 0.42, 255, CLV_MATRIX_BF16, 0.16, 1, 2, 16),
    UNIT_TILE(BF16_64X64, 16, 8, 8, 4, 32, 0.17, 120, CLV_MATRIX_BF16, 0.09, 1, 2, 16),
    UNIT_TILE(BF16X2, 16, 16, 8, 8, 16, 0.09, 160, CLV_MATRIX_BF16, 0.08, 2, 2, 8),
    UNIT_TILE(BF16X2_64X64, 16, 8, 8, 4, 16, 0.09, 150, CLV_MATRIX_BF16, 0.07, 2, 2, 8),
    UNIT_TILE(BF16X3, 16, 16, 8, 8, 16, 0.13, 160, CLV_MATRIX_BF16, 0.12, 3, 1, 8),
    UNIT_TILE(BF16X3_64X64, 16, 8, 8, 4, 16, 0.13, 160, CLV_MATRIX_BF16, 0.12, 3, 1, 8)};
enum { FIRST_TILE = CLV__NO_TILE + 1 };

static int items_of(const gemm_tile *tile) {
    return tile->wx * tile->wy;
}

static int64_t rows_of(const gemm_tile *tile) {
    return (int64_t)tile->wy * tile->tm;
}

static int64_t columns_of(const gemm_tile *tile) {
    return (int64_t)tile->wx * tile->tn;
}

/** Bytes of local memory, as the kernel file says. */
static uint64_t local_bytes(const gemm_tile *tile) {
    enum { SCRATCH = 8 }; // words of an item, where the unit is emulated
    if (tile->unit)
        return (uint64_t)(4 * tile->stages * tile->parts * tile->width * (rows_of(tile) + columns_of(tile)) +
                          4 * rows_of(tile) + 12 * columns_of(tile) + 32 * tile->tk + 48 +
                          4 * SCRATCH * items_of(tile));
    return (uint64_t)(8 * tile->tk * (rows_of(tile) + columns_of(tile) + 8) + 4 * rows_of(tile) +
                      12 * columns_of(tile) + 32 * tile->tk + 48);
}

/** Tiles of a group are for lanes, the one of an item for threads with less local memory than their own variants want. */
static bool is_meant(const clv_device_info *device, const gemm_tile *tile) {
    enum { LITTLE = 16 << 10 };
    return items_of(tile) > 1 || (clv__threads(device) && clv__tile_local_bytes(device) < LITTLE);
}

/** May an op that names no tile have it? */
static bool is_usual(const gemm_tile *tile) {
    return !tile->stored && !tile->unit && items_of(tile) > 1;
}

static bool fits(const clv_device_info *device, const gemm_tile *tile) {
    return device->loop_turns == 0 && is_meant(device, tile) &&
           device->max_work_group >= (uint32_t)items_of(tile) &&
           clv__tile_local_bytes(device) >= local_bytes(tile);
}

/** The tile of io's variant; NULL: it has none. */
static const gemm_tile *named(const clv__op_io *io) {
    return io->variant->number ? &tiles[io->variant->number] : NULL;
}

bool clv__unit_multiplies(const clv_device_info *device, uint32_t unit, clv_dtype a, clv_dtype b) {
    const bool f16 = a == CLV_DTYPE_F16 || b == CLV_DTYPE_F16,
               bf16 = a == CLV_DTYPE_BF16 || b == CLV_DTYPE_BF16;
    if (device->matrix_units && !(device->matrix_units & unit)) return false;
    if (device->execution != CLV_EXECUTION_LANES) return false;
    if (unit == CLV_MATRIX_TF32) return !f16 && !bf16;
    return unit == CLV_MATRIX_F16 ? f16 && !bf16 : !f16;
}

static bool multiplies(const clv_device_info *device, const gemm_tile *tile, clv_dtype a, clv_dtype b) {
    enum {
        MOST_BESIDE = 200
    }; // registers that leave room for those of a tile of floats on its way to halves
    const bool floats = a == CLV_DTYPE_F32 && b == CLV_DTYPE_F32;
    if (tile->parts > 1 && !floats) return false;
    if (tile->parts == 1 && tile->unit != CLV_MATRIX_TF32 && floats && tile->registers > MOST_BESIDE)
        return false;
    return clv__unit_multiplies(device, tile->unit, a, b);
}

bool clv__gemm_supports(const clv_device_info *device, const clv__op_io *io) {
    const gemm_tile *tile = named(io);
    for (int i = FIRST_TILE; i < CLV__TILES && !tile; i++)
        if (fits(device, &tiles[i]) && is_usual(&tiles[i])) tile = &tiles[i];
    if (!tile || !fits(device, tile)) return false;
    const clv_dtype a = io->in[0].dtype, b = io->in[1].dtype, c = io->out[0].dtype;
    if (tile->unit) return multiplies(device, tile, a, b);
    if (tile->sums) { // floats beside halves, as weights are, are rounded to them
        const bool halves = a == CLV_DTYPE_F16 || b == CLV_DTYPE_F16 || c == CLV_DTYPE_F16;
        return device->fp16 && halves && a != CLV_DTYPE_BF16 && b != CLV_DTYPE_BF16;
    }
    return !tile->stored || (device->fp16 && (clv__is_half(a) || clv__is_half(b)));
}

int clv__gemm_registers(const clv__op_io *io) {
    return named(io)->registers;
}

static int64_t groups_of(const gemm_tile *tile, const clv__gemm *g) {
    return g->batches * clv__max64(g->phases, 1) * clv__div_up(g->m, rows_of(tile)) *
           clv__div_up(g->n, columns_of(tile));
}

/** Terms of a split. */
static int64_t depth_of(const gemm_tile *tile, const clv__gemm *g, int64_t splits) {
    return clv__round_up(clv__max64(clv__div_up(g->k, splits), 1), tile->tk);
}

// ---- how operands are fetched by many bytes ------------------------------------------------------------

/** Elements of a group's chunk, four words, along terms; the chunks of an item along `rows` of the tile. */
static int64_t chunk_terms(const gemm_tile *tile) {
    return tile->unit & (CLV_MATRIX_F16 | CLV_MATRIX_BF16) ? 8 : 4;
}

static int64_t chunks_of(const gemm_tile *tile, int64_t rows) {
    return tile->unit ? rows * tile->width / 4 / items_of(tile) : 4;
}

/** Is each a multiple of n? What one row or digit has no neighbours by is not looked at: pass 0. */
static bool multiples(int64_t n, int64_t x, int64_t y, int64_t z, int64_t w) {
    return x % n == 0 && y % n == 0 && z % n == 0 && w % n == 0;
}

enum { WIDE_BYTES = 16, LEAST_BYTES = 4 };

/** Do the kernel's indices, of bytes in 32 bits, reach so many elements (MATRIX_INDEX)? */
static bool reach(int64_t elements, int64_t bytes) {
    return elements <= (int64_t)UINT32_MAX / bytes;
}

/** Of an element that is packed, or on its way to parts. */
static int64_t unit_bytes(const gemm_tile *tile) {
    return tile->unit == CLV_MATRIX_TF32 || tile->parts > 1 ? sizeof(float) : sizeof(uint16_t);
}

/** May A be fetched by many bytes at once (A_WIDE of the kernel)? */
static bool is_wide_a(const gemm_tile *tile, const clv__gemm *g, int64_t bytes) {
    const int64_t terms = chunk_terms(tile), chunks = chunks_of(tile, rows_of(tile));
    const int64_t pixels = g->k_1 * g->k_0, a_z = g->batches > 1 ? g->a_z : 0;
    if (g->phases || !reach(g->m * g->a_m + tile->tk * g->a_k2, bytes)) return false;
    if (!g->a_rows)
        return !g->taps && g->a_m == 1 && chunks > 1 && chunks * bytes >= LEAST_BYTES && g->m % chunks == 0 &&
               multiples(chunks, g->a_0, a_z, g->a_k2, 0);
    const bool linear = g->a_k2 == pixels || (pixels % terms == 0 && g->a_k2 % terms == 0);
    const bool runs = (g->k_0 == 1 || g->a_k0 == 1) && (g->k_1 == 1 || g->a_k1 == g->k_0) && linear;
    return runs && g->k % terms == 0 && multiples(WIDE_BYTES / bytes, g->a_0, a_z, g->a_m, 0);
}

/** Is a gradient by weights one of a single tap that meets every pixel, with whole chunks of them? */
static bool is_pointwise(const gemm_tile *tile, const clv__gemm *g) {
    return g->b_rows && g->n_1 * g->n_0 == 1 && g->k_1 == g->h_size && g->k_0 == g->w_size && g->h_k1 == 1 &&
           g->w_k0 == 1 && g->k_1 * g->k_0 % chunk_terms(tile) == 0;
}

/** Along rows or columns: an image with an edge of zeros, which it shares with the next one (gemm_pack.cl). */
typedef struct edged {
    int64_t first, step;    // where in the image it begins, and goes on
    int64_t length, planes; // with an edge; of a stride, so that each has its own rows
    int64_t tail;           // what of an edge is behind the last one
} edged;

static int64_t ceiling(int64_t a, int64_t b) {
    return a > 0 ? clv__div_up(a, b) : -(-a / b);
}

/** Pixels of B that terms and columns meet, of `size`: n*h_n1 + k*h_k1 from h_0 on. */
static edged edged_of(const clv__gemm *g, int64_t n, int64_t k, int64_t h_0, int64_t h_n1, int64_t h_k1,
                      int64_t size) {
    edged e = {.step = 1, .planes = 1};
    int64_t shared = INT64_MAX, length;
    if (g->phases) { // a stride's pixels, and the taps before them
        e.first = ceiling(h_0 - (k - 1) * h_k1, h_n1);
        length = (n - 1 + h_0) / h_n1 + 1 - e.first;
    } else if (g->b_rows) { // k is a pixel, and n a tap
        e.first = h_0, e.step = h_k1, e.planes = n > 1 ? h_k1 : 1;
        e.tail = shared = (n - 1) * h_n1 / h_k1;
        length = k + shared;
    } else {
        e.first = h_0 + clv__min64((k - 1) * h_k1, 0);
        length = (n - 1) * h_n1 + (k - 1) * (h_k1 < 0 ? -h_k1 : h_k1) + 1;
    }
    const int64_t before = clv__max64(ceiling(-e.first - (e.planes - 1), e.step), 0);
    const int64_t behind = clv__max64(length - clv__max64(ceiling(size - e.first, e.step), 0), 0);
    shared = clv__min64(shared, clv__min64(before, behind));
    if (!g->b_rows) e.tail = shared;
    e.length = length - shared;
    return e;
}

/** A packed convolution: where its image lies, and that of dy, if terms are pixels. */
typedef struct packing {
    edged h, w;
    int64_t images, channels, positions; // of a plane
    int64_t size, size_a;
} packing;

static packing packing_of(const clv__gemm *g) {
    packing p = {.h = edged_of(g, g->n_1, g->k_1, g->h_0, g->h_n1, g->h_k1, g->h_size),
                 .w = edged_of(g, g->n_0, g->k_0, g->w_0, g->w_n0, g->w_k0, g->w_size)};
    const int64_t of_n = g->phases ? g->n_2 : g->n / (g->n_1 * g->n_0);
    const int64_t of_k = g->phases ? g->k_2 : g->k / (g->k_1 * g->k_0);
    p.images = g->b_rows ? of_k : of_n;
    p.channels = g->b_rows ? of_n : of_k;
    p.positions = p.images * p.h.length * p.w.length + p.h.tail * p.w.length + p.w.tail;
    p.size = g->batches * p.h.planes * p.w.planes * p.positions * p.channels;
    p.size_a =
        g->batches * g->m * (g->b_rows ? p.images * p.h.length * p.w.length : p.channels * g->k_1 * g->k_0);
    return p;
}

/** Are a convolution's operands packed (TAPS 2 and 3 of the kernel)? Not where they are fetched by many bytes as they lie. */
static bool is_packed(const gemm_tile *tile, const clv__gemm *g) {
    if (!tile->unit || !g->taps) return false;
    const packing p = packing_of(g);
    const int64_t size = clv__max64(p.size, p.size_a);
    if (size > INT32_MAX || !reach(size, unit_bytes(tile))) return false;
    if (!g->b_rows) return p.channels % tile->tk == 0;
    const int64_t rows = chunks_of(tile, rows_of(tile)), columns = chunks_of(tile, columns_of(tile));
    return rows > 1 && columns > 1 && multiples(4, g->m, p.channels, 0, 0) && !is_pointwise(tile, g);
}

/** The product with its operands packed, as the kernel reads it. */
static clv__gemm packed_product(const gemm_tile *tile, const clv__gemm *g) {
    const packing p = packing_of(g);
    clv__gemm own = *g;
    own.w_size = p.w.length;
    own.b_z = p.h.planes * p.w.planes * p.positions * p.channels;
    own.b_k2 = p.channels;
    if (g->b_rows) {
        own.k = p.images * p.h.length * p.w.length, own.k_1 = own.k_0 = 1;
        own.a_z = own.k * g->m, own.a_m = 1, own.a_k2 = g->m;
        own.b_n2 = 1, own.h_size = p.positions * p.channels;
    } else {
        const int64_t taps = g->k_1 * g->k_0;
        own.b_n2 = p.h.length * p.w.length * p.channels;
        own.h_size = -p.h.first * p.w.length - p.w.first;
        own.a_m = p.channels * taps, own.a_z = g->m * own.a_m;
        own.a_k2 = taps * tile->tk, own.a_k1 = g->k_0 * tile->tk, own.a_k0 = tile->tk;
    }
    own.a_rows = own.b_rows = !g->b_rows;
    return own;
}

static bool is_wide_b(const gemm_tile *tile, const clv__gemm *g, int64_t bytes) {
    const int64_t terms = chunk_terms(tile), chunks = chunks_of(tile, columns_of(tile));
    const int64_t pixels = g->n_1 * g->n_0, b_z = g->batches > 1 ? g->b_z : 0;
    const int64_t n_1 = g->n_1 > 1 ? g->h_n1 * g->w_size : 0, n_0 = g->n_0 > 1 ? g->w_n0 : 0;
    if (!reach(clv__div_up(g->n, pixels) * g->b_n2 + tile->tk * g->b_k2, bytes)) return false;
    if (g->taps)
        return tile->unit && is_pointwise(tile, g) && multiples(WIDE_BYTES / bytes, b_z, g->b_n2, g->b_k2, 0);
    if (g->b_rows)
        return g->b_k2 == 1 && g->k % terms == 0 && multiples(WIDE_BYTES / bytes, b_z, g->b_n2, n_1, n_0);
    if (chunks < 2 || chunks * bytes < LEAST_BYTES || g->n % chunks != 0) return false;
    const bool row = g->n_0 == 1 || n_0 == 1, image = row && (g->n_1 == 1 || n_1 == g->n_0);
    const int64_t run = pixels == 1 ? (g->b_n2 == 1 ? chunks : 1) : image ? pixels : row ? g->n_0 : 1;
    return run % chunks == 0 && multiples(chunks, b_z, g->b_k2, pixels > 1 ? g->b_n2 : 0, image ? 0 : n_1);
}

bool clv__gemm_spills(const clv__op_io *io, const clv__gemms *gemms) {
    enum { MOST = 200 };
    const gemm_tile *tile = named(io);
    const clv_dtype a = io->in[gemms->a].dtype, b = io->in[gemms->b].dtype;
    const clv__gemm *g = gemms->product;
    if (!tile || !tile->unit || tile->registers <= MOST || (!clv__is_half(a) && !clv__is_half(b)))
        return false;
    return !is_packed(tile, g) && !(is_wide_a(tile, g, (int64_t)clv_dtype_bytes(a)) &&
                                    is_wide_b(tile, g, (int64_t)clv_dtype_bytes(b)));
}

/** Without a unit: are both, floats (WIDE of the kernel)? Elsewhere the loop takes too many registers: other
 *  tiles' on some machines, where rows of both lie side by side on others (kernels_cl/README.md), and all where
 *  lanes are few. */
static bool is_wide(const gemm_tile *tile, const clv__gemm *g, size_t a_bytes, size_t b_bytes) {
    return tile == &tiles[CLV__TILE_128X128] && !g->taps && (g->a_rows || g->b_rows) &&
           a_bytes == sizeof(float) && b_bytes == sizeof(float) && is_wide_a(tile, g, sizeof(float)) &&
           is_wide_b(tile, g, sizeof(float));
}

// ---- what lanes cost --------------------------------------------------------------------------------------
//
// Where products and convolutions for lanes get their ranks. All is counted in FMAs of a unit: units do 64 at a time, and in that
// time get 32 bytes from the cache that they share, and from memory as many as the device says beside its FMAs.

enum { SECTOR = 8 }; // floats

enum { NARROW = 8, USUAL = 64 }; // lanes of a unit

static bool is_narrow(const clv_device_info *device) {
    return device->sub_group_sizes[0] == NARROW;
}

double clv__lanes_units(const clv_device_info *device) {
    const double units = device->compute_units > 0 ? device->compute_units : 1;
    return is_narrow(device) && units > USUAL / NARROW ? units * NARROW / USUAL : units;
}

double clv__lanes_bytes_cost(const clv_device_info *device, double n) {
    const double usual = 12, units = clv__lanes_units(device);
    const double fmas = device->peak_bytes_per_second > 0 && device->peak_flops > 0
                            ? device->peak_flops / 2 / device->peak_bytes_per_second
                            : usual;
    return n * fmas / units;
}

static const double launch_seconds = 10e-6, unit_fmas = 64 * 1.3e9; // a second

double clv__lanes_launches_cost(double n) {
    return n * launch_seconds * unit_fmas;
}

double clv__lanes_launch_share(const clv_device_info *device, double bytes) {
    const double known = device->peak_bytes_per_second;
    const double per_second = known > 0 ? known : unit_fmas / clv__lanes_bytes_cost(device, 1);
    return launch_seconds * per_second / bytes;
}

/** What few items beside each other leave open, a unit waits for. */
double clv__lanes_waits(double items) {
    enum { HIDES = 512 };
    return 1 + HIDES / items;
}

double clv__lanes_rank(const clv_device_info *device, double cost, double results, double terms) {
    const double share = 0.03, most = 2048, begin = 8; // FMAs among instructions; items of a unit; terms
    const double margin = 2; // counts are rough: what knows nothing of lanes has to be better by that
    const double units = clv__lanes_units(device), items = results / units;
    if (clv__threads(device) || results <= 0) return 2;
    return cost / (margin * items * (terms + begin) / share * clv__lanes_waits(items < most ? items : most));
}

/**
 * FMAs of a lane in the time of an instruction, with a unit: its instructions are so many FMAs each, of 32 lanes, and it can do so many
 * times what lanes do (on an H200 319 and 637 of 64.8 TFLOP/s); what begins the next instructions does not work beside it wholly. Which
 * way operands are fetched is taken as if both were stored as the unit takes them.
 */
static double unit_fmas_of(const gemm_tile *tile, const clv__gemm *g) {
    enum { TF32 = 32, HALVES = 64 };
    const bool tf32 = tile->unit == CLV_MATRIX_TF32;
    const double most = tf32 ? 4.9 : 9.8, each = tf32 ? TF32 : HALVES;
    const double products = tile->parts == 1 ? 1 : tile->parts == 2 ? 3 : 6;
    const int64_t bytes = unit_bytes(tile);
    const double wide =
        is_packed(tile, g) ? 1 : (is_wide_a(tile, g, bytes) + is_wide_b(tile, g, bytes)) / 2.0;
    const double share = wide * tile->share + (1 - wide) * tile->one_by_one;
    return 1 / (1 / most + 1 / (each * share)) / products;
}

/**
 * Groups are dealt to units in rounds. A group's turn is its FMAs, with the instructions around them, and the sectors that it
 * fetches: a run of r floats at any place touches r + 7 of them. Where each float of b has a place of its own, finding that
 * costs, too. An item with more results has more FMAs that do not wait for each other: its root counts. Both are by times of
 * VGG-16's gradients of weights on an H100, three tiles, one to five groups a unit: 11 times within 15 %.
 */
static double cost_in_splits(const clv_device_info *device, const gemm_tile *tile, const clv__gemm *g,
                             int64_t splits, double units) {
    enum {
        BEGIN = 64,
        REGISTERS = 65536,
        RUN = 32,
        PRICE = 2,
        RESULTS = 16,
        PLACE = 32,
        BYTES = 4
    }; // terms; of a unit; lanes side by side; FMAs a byte; of a usual item; FMAs; of what is packed
    const int64_t rows = rows_of(tile), columns = columns_of(tile);
    const bool packed = is_packed(tile, g);
    const clv__gemm own = packed ? packed_product(tile, g) : *g;
    const double rounds = (double)clv__div_up(groups_of(tile, g) * splits, (int64_t)units);
    const int64_t run_a = own.a_rows ? tile->tk : RUN, run_b = own.b_rows ? tile->tk : RUN;
    const double bytes = 4 * PRICE *
                         ((double)(rows * (run_a + SECTOR - 1)) / (double)run_a +
                          (double)(columns * (run_b + SECTOR - 1)) / (double)run_b);
    // A matrix unit works while items find and fetch: a guess, by the instructions of both; no card has been asked.
    const double apart = tile->unit ? 0.4 : 1, fmas = tile->unit ? unit_fmas_of(tile, g) : tile->share;
    const double beside = rounds * items_of(tile), room = (double)REGISTERS / tile->registers;
    double cost =
        rounds * (double)(depth_of(tile, &own, splits) + BEGIN) *
        ((double)(rows * columns) / fmas +
         apart * (bytes + (g->taps && !packed ? PLACE * (double)columns : 0))) *
        clv__lanes_waits((beside < room ? beside : room) * sqrt((double)(tile->tm * tile->tn) / RESULTS));
    // With 128 registers an item a unit of four SIMDs has two waves of 64 on each: one waits, and one is left.
    if (device->preferred_multiple >= USUAL && !is_narrow(device) && tile->registers >= 128) cost *= 2;
    if (packed) {
        const packing p = packing_of(g);
        cost += clv__lanes_launches_cost(2) +
                clv__lanes_bytes_cost(device, (4 + BYTES) * (double)(p.size + p.size_a));
    }
    if (splits > 1) {
        const double results = (double)g->batches * (double)g->m * (double)g->n;
        cost += clv__lanes_launches_cost(1) +
                clv__lanes_bytes_cost(device, 4 * results * (double)(2 * splits + 1));
    }
    return cost;
}

/** Into how many parts to cut the sums: a result of few tiles would leave most units idle, or the last round. A device with fewer
 *  units than most is taken for one of them: what is cut for them is cut everywhere, and costs it little. */
static int64_t splits_of(const clv_device_info *device, const gemm_tile *tile, const clv__gemm *g) {
    enum { LEAST = 256, ROUNDS = 8, UNITS = 16 }; // terms of a part; of groups
    const double margin = 1.5;                    // counts are rough, and a launch more is certain
    const double units = fmax(clv__lanes_units(device), UNITS);
    const int64_t groups = clv__max64(groups_of(tile, g), 1);
    int64_t best = 1;
    double least = cost_in_splits(device, tile, g, 1, units) / margin;
    for (int64_t rounds = 1; rounds <= ROUNDS; rounds++) {
        int64_t splits = clv__min64(rounds * (int64_t)units / groups, g->k / LEAST);
        if (splits <= 1) continue;
        splits = clv__div_up(g->k, depth_of(tile, g, splits));
        const double cost = cost_in_splits(device, tile, g, splits, units);
        if (cost >= least) continue;
        best = splits;
        least = cost;
    }
    return best;
}

static double cost_with(const clv_device_info *device, const gemm_tile *tile, const clv__gemm *g) {
    return cost_in_splits(device, tile, g, splits_of(device, tile, g), clv__lanes_units(device));
}

/** The tile of io's variant, or else the best one. */
static const gemm_tile *tile_of(const clv_device_info *device, const clv__op_io *io, const clv__gemm *g) {
    const gemm_tile *best = named(io);
    double least = 0;
    for (int i = FIRST_TILE; i < CLV__TILES && !named(io); i++) {
        const double cost = cost_with(device, &tiles[i], g);
        if (!fits(device, &tiles[i]) || !is_usual(&tiles[i]) || (best && cost >= least)) continue;
        best = &tiles[i];
        least = cost;
    }
    return best;
}

double clv__gemm_cost(const clv_device_info *device, const clv__op_io *io, const clv__gemm *g) {
    return cost_with(device, tile_of(device, io, g), g);
}

/**
 * Of threads: what a task does for results beyond the last, and to begin, beside plain's two loads an FMA. The share is from the
 * CNN's time with 4 KiB of local memory; what beginning costs is a guess.
 */
static double rank_of_threads(const gemm_tile *tile, const clv__gemm *g) {
    const double share = 0.3, begin = 16; // terms
    const double rows = (double)clv__round_up(g->m, rows_of(tile)) / (double)g->m;
    const double columns = (double)clv__round_up(g->n, columns_of(tile)) / (double)g->n;
    return share * rows * columns * (1 + begin / (double)g->k);
}

double clv__unit_rank(const clv_device_info *device, double rank) {
    const double unknown = 1000; // emulated, for the check alone, or untimed
    return device->matrix_units && !(device->matrix_units & CLV_MATRIX_UNTIMED) ? rank : unknown;
}

double clv__gemm_rank(const clv_device_info *device, const clv__op_io *io, const clv__gemms *gemms) {
    const clv__gemm *g = gemms->product;
    const double results = (double)(g->batches * clv__max64(g->phases, 1)) * (double)g->m * (double)g->n;
    const gemm_tile *tile = named(io);
    if (tile && items_of(tile) == 1 && results > 0 && g->k > 0) return rank_of_threads(tile, g);
    const double rank = clv__lanes_rank(device, clv__gemm_cost(device, io, g), results, (double)g->k);
    return tile && tile->unit ? clv__unit_rank(device, rank) : rank;
}

// ---- launches ---------------------------------------------------------------------------------------------

const char *clv__unit_type(uint32_t unit) {
    return unit == CLV_MATRIX_TF32 ? "tf32" : unit == CLV_MATRIX_F16 ? "f16" : "bf16";
}

static void tile_defines(clv__launches *list, clv__launch *launch, const gemm_tile *tile, const clv__gemm *g,
                         bool packed, size_t a_bytes, size_t b_bytes) {
    enum { WIDE_TERMS = 16 }; // one tile of them in local memory instead of two of eight
    const bool wide = !is_narrow(list->device) && is_wide(tile, g, a_bytes, b_bytes);
    const struct {
        const char *name;
        int value, usual;
    } macros[] = {{"WX", tile->wx, 16},
                  {"WY", tile->wy, 16},
                  {"TM", tile->tm, 4},
                  {"TN", tile->tn, 8},
                  {"TK", wide ? WIDE_TERMS : tile->tk, 8},
                  {"A_WIDE", wide, 0},
                  {"B_WIDE", wide, 0},
                  {"A_ROWS", g->a_rows, 1},
                  {"TAPS", packed ? 2 + !g->b_rows : g->taps, 0},
                  {"B_ROWS", g->b_rows, 0},
                  {"PHASES", g->phases > 0, 0},
                  {"STORED", tile->stored && !tile->sums, 0},
                  {"HALF_SUMS", tile->sums, 0}};
    if (tile->unit) {
        clv__launch_define(list, launch, "MATRIX_TYPE", "%s", clv__unit_type(tile->unit));
        clv__launch_define(list, launch, "MATRIX_WIDTH", "%d", tile->width);
        clv__launch_define(list, launch, "PARTS", "%d", tile->parts);
        clv__launch_define(list, launch, "STAGES", "%d", tile->stages);
        if (packed || is_wide_a(tile, g, (int64_t)a_bytes)) clv__launch_define(list, launch, "A_WIDE", "1");
        if (packed || is_wide_b(tile, g, (int64_t)b_bytes)) clv__launch_define(list, launch, "B_WIDE", "1");
    }
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        if (macros[i].value != macros[i].usual)
            clv__launch_define(list, launch, macros[i].name, "%d", macros[i].value);
}

static void arg_part(clv__launches *list, clv__launch *launch, const clv__part *part) {
    clv__arg_workspace(list, launch, part->offset, part->bytes);
}

static void arg_bias(clv__launches *list, clv__launch *launch, const clv__gemms *gemms) {
    clv__arg_in(list, launch, gemms->bias >= 0 ? gemms->bias : gemms->a); // without a bias, anything
}

/** Where packed elements lie in the workspace, stored as `type`. */
static clv__part room_for(clv__launches *list, const char *type, int64_t size) {
    const bool half = !strcmp(type, "f16") || !strcmp(type, "bf16");
    clv__part part = {.bytes = (size_t)size * (half ? sizeof(uint16_t) : sizeof(float))};
    part.offset = clv__launch_workspace(list, part.bytes);
    return part;
}

/** The weights of g, which are input `input`. */
static clv__part pack_weights(clv__launches *list, const clv__op_io *io, int input, const gemm_tile *tile,
                              const char *type, const clv__gemm *g) {
    const packing p = packing_of(g);
    const clv__part packed = room_for(list, type, p.size_a);
    clv__launch *launch = clv__launch_items(list, "gemm_pack", "gemm_pack", CLV__ELEMENTS, p.size_a);
    clv__launch_define(list, launch, "MATRIX_TYPE", "%s", type);
    clv__define_number(list, launch, "TK", tile->tk, 16);
    arg_part(list, launch, &packed);
    clv__arg_in_as(list, launch, io, input, "T_IN");
    CLV__ARGS_I32(list, launch, p.size_a, g->m, p.channels / tile->tk, g->k_1 * g->k_0, g->a_z, g->a_m,
                  g->a_k2);
    return packed;
}

/** An image, which is input `input`: steps from group to group, to the next image and to the next channel, and its rows and columns. */
static clv__part pack_image(clv__launches *list, const clv__op_io *io, int input, const char *type,
                            const packing *p, const int64_t steps[3], const int64_t size[2]) {
    const clv__part packed = room_for(list, type, p->size);
    int64_t channels = 16; // of an item
    while (p->channels % channels != 0) channels /= 2;
    const int64_t items = p->size / channels;
    clv__launch *launch = clv__launch_items(list, "gemm_pack", "gemm_pack_image", CLV__ELEMENTS, items);
    clv__launch_define(list, launch, "MATRIX_TYPE", "%s", type);
    clv__define_number(list, launch, "CHANNELS", channels, 16);
    arg_part(list, launch, &packed);
    clv__arg_in_as(list, launch, io, input, "T_IN");
    CLV__ARGS_I32(list, launch, items, p->positions, p->channels / channels, p->h.planes * p->w.planes,
                  p->w.planes, p->images, p->h.length, p->w.length, steps[0], steps[1], steps[2]);
    CLV__ARGS_I32(list, launch, p->h.first, p->h.step, size[0], p->w.first, p->w.step, size[1]);
    return packed;
}

/** Packs both operands as the kernel reads them, as `type`. */
static void pack(clv__launches *list, const clv__op_io *io, const clv__gemms *gemms, const gemm_tile *tile,
                 const char *type, clv__part packed[2]) {
    const clv__gemm *g = gemms->product;
    const packing p = packing_of(g);
    const int64_t b_steps[3] = {g->b_z, g->b_rows ? g->b_k2 : g->b_n2, g->b_rows ? g->b_n2 : g->b_k2};
    if (g->b_rows) { // dy's pixels lie at the places of the image's
        const packing dy = {.h = {.step = 1, .length = p.h.length, .planes = 1},
                            .w = {.step = 1, .length = p.w.length, .planes = 1},
                            .images = p.images,
                            .channels = g->m,
                            .positions = p.images * p.h.length * p.w.length,
                            .size = p.size_a};
        packed[0] = pack_image(list, io, gemms->a, type, &dy, (int64_t[]){g->a_z, g->a_k2, g->a_m},
                               (int64_t[]){g->k_1, g->k_0});
    } else {
        packed[0] = pack_weights(list, io, gemms->a, tile, type, g);
    }
    packed[1] = pack_image(list, io, gemms->b, type, &p, b_steps, (int64_t[]){g->h_size, g->w_size});
}

/** part: of the workspace, where the splits' sums go, of `size` elements each. Without bytes there is one split. */
static void lower_product(clv__launches *list, const clv__op_io *io, const clv__gemms *gemms,
                          const gemm_tile *tile, int64_t splits, clv__part part, int64_t size) {
    const bool whole = part.bytes == 0, packs = is_packed(tile, gemms->product);
    const clv__gemm own = packs ? packed_product(tile, gemms->product) : *gemms->product, *g = &own;
    const char *type = tile->parts > 1 ? "float" : clv__unit_type(tile->unit);
    clv__part packed[2];
    if (packs) pack(list, io, gemms, tile, type, packed);
    clv__launch *launch = clv__launch_kernel(list, "gemm", "gemm");
    tile_defines(list, launch, tile, g, packs,
                 gemms->parts ? sizeof(float) : clv_dtype_bytes(io->in[gemms->a].dtype),
                 gemms->parts ? sizeof(float) : clv_dtype_bytes(io->in[gemms->b].dtype));
    if (gemms->parts) {
        for (int i = 0; i < 3; i++) arg_part(list, launch, i || whole ? &gemms->parts[i] : &part);
    } else {
        if (whole)
            clv__arg_out_as(list, launch, io, 0, "T_C");
        else
            arg_part(list, launch, &part);
        for (int i = 0; i < 2 && packs; i++) {
            if (tile->parts == 1) clv__launch_define(list, launch, i ? "T_B" : "T_A", "%s", type);
            arg_part(list, launch, &packed[i]);
        }
        if (!packs) {
            clv__arg_in_as(list, launch, io, gemms->a, "T_A");
            clv__arg_in_as(list, launch, io, gemms->b, "T_B");
        }
    }
    arg_bias(list, launch, gemms);
    CLV__ARGS_I32(list, launch, g->batches, g->m, g->phases ? g->n_2 : g->n, g->phases ? g->k_2 : g->k,
                  depth_of(tile, g, splits), g->k_1, g->k_0, g->n_1, g->n_0);
    CLV__ARGS_I32(list, launch, g->a_0, g->a_z, g->a_m, g->a_k2, g->a_k1, g->a_k0, g->b_z, g->b_k2, g->b_n2);
    CLV__ARGS_I32(list, launch, g->c_0, g->c_z, g->c_m, g->c_n2, g->c_n1, g->c_n0, whole ? 0 : size);
    CLV__ARGS_I32(list, launch, g->h_0, g->h_n1, g->h_k1, g->h_size, g->w_0, g->w_n0, g->w_k0, g->w_size);
    CLV__ARGS_I32(list, launch, g->channels, g->by_row, whole && gemms->bias >= 0);
    if (whole && !gemms->parts) clv__arg_epilogue(list, launch, io);
    const size_t items = (size_t)items_of(tile);
    clv__launch_grid3(launch, (size_t)clv__div_up(g->n, columns_of(tile)) * items,
                      (size_t)clv__div_up(g->m, rows_of(tile)),
                      (size_t)(g->batches * clv__max64(g->phases, 1) * splits), items, 1, 1);
}

void clv__gemm_lower(clv__launches *list, const clv__op_io *io, const clv__gemms *gemms) {
    const clv__gemm *g = gemms->product;
    const gemm_tile *tile = tile_of(list->device, io, g);
    const int64_t splits = splits_of(list->device, tile, g);
    const int64_t size = gemms->parts ? g->batches * g->m * g->n : clv__numel(&io->out[0]);
    clv__part part = {.bytes = splits > 1 ? (size_t)(splits * size) * sizeof(float) : 0};
    if (size == 0) return;
    if (part.bytes) part.offset = clv__launch_workspace(list, part.bytes);
    lower_product(list, io, gemms, tile, splits, part, size);
    if (!part.bytes) return;
    clv__launch *launch = clv__launch_items(list, "gemm", "gemm_sum", CLV__ELEMENTS, size);
    if (gemms->parts)
        arg_part(list, launch, &gemms->parts[0]);
    else
        clv__arg_out_as(list, launch, io, 0, "T_C");
    arg_part(list, launch, &part);
    arg_bias(list, launch, gemms);
    CLV__ARGS_I32(list, launch, size, splits, gemms->inner, gemms->n_channels, gemms->bias >= 0);
    if (!gemms->parts) clv__arg_epilogue(list, launch, io);
}
