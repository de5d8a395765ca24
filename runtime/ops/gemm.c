// SPDX-License-Identifier: Apache-2.0
// Products by tiles on devices with lanes: which tiles there are, how a product is cut, its launches.
// Kernels: kernels_cl/gemm.cl.
#include "ops/gemm.h"

#include <string.h>

#include "ops/epilogue.h"
#include "ops/lower.h"

/** What the kernel is compiled for: items of a group along columns and rows, rows and columns of an item. */
typedef struct gemm_tile {
    const char *variant;
    int wx, wy, tm, tn;
    double share; // FMAs among the instructions that it takes, about (tests/drivers/offline/kernels.tsv)
    bool stored;  // halves stay halves in local memory
} gemm_tile;

enum { DEPTH = 8 }; // TK, the kernel file's own

/** The first has as many registers as leave room for four groups beside each other on older GPUs. The second
 *  reads less and wants more registers. The others are for small groups, results of few rows or columns, and
 *  halves. */
static const gemm_tile tiles[] = {
    {"gemm", 16, 16, 4, 8, 0.7, false},       {"gemm:128x128", 16, 16, 8, 8, 0.75, false},
    {"gemm:32x64", 8, 8, 4, 8, 0.6, false},   {"gemm:16x64", 16, 4, 4, 4, 0.45, false},
    {"gemm:64x16", 4, 16, 4, 4, 0.45, false}, {"half", 16, 16, 4, 8, 0.69, true},
    {"half:32x64", 8, 8, 4, 8, 0.59, true}};

static const gemm_tile *tile_of(const clv__op_io *io) {
    const gemm_tile *tile = tiles;
    while (strcmp(tile->variant, io->variant->name) != 0) tile++;
    return tile;
}

static int64_t rows_of(const gemm_tile *tile) {
    return (int64_t)tile->wy * tile->tm;
}

static int64_t columns_of(const gemm_tile *tile) {
    return (int64_t)tile->wx * tile->tn;
}

/** Bytes of local memory, as the kernel file says. */
static uint64_t local_bytes(const gemm_tile *tile) {
    return (uint64_t)(8 * DEPTH * (rows_of(tile) + columns_of(tile) + 8) + 4 * rows_of(tile) +
                      16 * columns_of(tile) + 32 * DEPTH);
}

bool clv__gemm_supports(const clv_device_info *device, const clv__op_io *io) {
    const gemm_tile *tile = tile_of(io);
    const bool halves = clv__is_half(io->in[0].dtype) || clv__is_half(io->in[1].dtype);
    return device->loop_turns == 0 && (!tile->stored || (device->fp16 && halves)) &&
           device->max_work_group >= (uint32_t)(tile->wx * tile->wy) &&
           clv__tile_local_bytes(device) >= local_bytes(tile);
}

static int64_t groups_of(const gemm_tile *tile, const clv__gemm *g) {
    return g->batches * clv__div_up(g->m, rows_of(tile)) * clv__div_up(g->n, columns_of(tile));
}

/** Terms of a split. */
static int64_t depth_of(const clv__gemm *g, int64_t splits) {
    return clv__round_up(clv__max64(clv__div_up(g->k, splits), 1), DEPTH);
}

/** Into how many parts to cut the sums, as a result of few tiles would leave most units idle. It follows from the
 *  sizes alone. */
static int64_t splits_of(const gemm_tile *tile, const clv__gemms *gemms) {
    enum { ENOUGH = 128, LEAST = 128 }; // groups; terms of a part
    int64_t groups = 0;
    const clv__gemm *longest = gemms->items;
    for (int i = 0; i < gemms->n; i++) {
        groups += groups_of(tile, &gemms->items[i]);
        if (gemms->items[i].k > longest->k) longest = &gemms->items[i];
    }
    int64_t splits = clv__min64(ENOUGH / clv__max64(groups, 1), longest->k / LEAST);
    return splits > 1 ? clv__div_up(longest->k, depth_of(longest, splits)) : 1;
}

double clv__gemm_rank(const clv_device_info *device, const clv__op_io *io, const clv__gemms *gemms) {
    const double plain_share = 0.03;
    enum {
        BEGIN = 64,
        PART = 16
    }; // terms that a group's begin and end take as long as; FMAs that an element of a part does
    if (clv__threads(device)) return 2; // no local memory to gain from, and barriers to lose by
    const gemm_tile *tile = tile_of(io);
    const int64_t splits = splits_of(tile, gemms);
    double units = device->compute_units > 0 ? device->compute_units : 1, took = 0, plain = 0;
    for (int i = 0; i < gemms->n; i++) {
        const clv__gemm *g = &gemms->items[i];
        double rounds = (double)clv__div_up(groups_of(tile, g) * splits, (int64_t)units);
        double results = (double)g->batches * (double)g->m * (double)g->n;
        took += rounds * (double)(rows_of(tile) * columns_of(tile)) * (double)(depth_of(g, splits) + BEGIN) /
                tile->share;
        if (splits > 1) took += PART * results * (double)splits / units;
        plain += results * (double)(g->k + 1) / units / plain_share;
    }
    return plain > 0 ? took / plain : 2;
}

static void tile_defines(clv__launches *list, clv__launch *launch, const gemm_tile *tile,
                         const clv__gemm *g) {
    const struct {
        const char *name;
        int value, usual;
    } macros[] = {{"WX", tile->wx, 16}, {"WY", tile->wy, 16},       {"TM", tile->tm, 4},
                  {"TN", tile->tn, 8},  {"A_ROWS", g->a_rows, 1},   {"B_ROWS", g->b_rows, 0},
                  {"TAPS", g->taps, 0}, {"STORED", tile->stored, 0}};
    for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
        if (macros[i].value != macros[i].usual)
            clv__launch_define(list, launch, macros[i].name, "%d", macros[i].value);
}

/** part_bytes: of the workspace where the parts go; 0: there is one split. */
static void lower_one(clv__launches *list, const clv__op_io *io, const clv__gemms *gemms, const clv__gemm *g,
                      int64_t splits, size_t part, size_t part_bytes) {
    const gemm_tile *tile = tile_of(io);
    clv__launch *launch = clv__launch_kernel(list, "gemm", "gemm");
    tile_defines(list, launch, tile, g);
    if (part_bytes)
        clv__arg_workspace(list, launch, part, part_bytes);
    else
        clv__arg_out_as(list, launch, io, 0, "T_C");
    clv__arg_in_as(list, launch, io, gemms->a, "T_A");
    clv__arg_in_as(list, launch, io, gemms->b, "T_B");
    clv__arg_in(list, launch, gemms->bias >= 0 ? gemms->bias : gemms->a); // without a bias, anything
    CLV__ARGS_I32(list, launch, g->batches, g->m, g->n, g->k, depth_of(g, splits), g->k_1, g->k_0, g->n_1,
                  g->n_0);
    CLV__ARGS_I32(list, launch, g->a_0, g->a_z, g->a_m, g->a_k2, g->a_k1, g->a_k0, g->b_z, g->b_k2, g->b_n2);
    CLV__ARGS_I32(list, launch, g->c_0, g->c_z, g->c_m, g->c_n2, g->c_n1, g->c_n0,
                  part_bytes ? clv__numel(&io->out[0]) : 0);
    CLV__ARGS_I32(list, launch, g->h_0, g->h_n1, g->h_k1, g->h_size, g->w_0, g->w_n0, g->w_k0, g->w_size);
    CLV__ARGS_I32(list, launch, g->channels, g->by_row, !part_bytes && gemms->bias >= 0);
    if (!part_bytes) clv__arg_epilogue(list, launch, io);
    const size_t items = (size_t)tile->wx * (size_t)tile->wy;
    clv__launch_grid3(launch, (size_t)clv__div_up(g->n, columns_of(tile)) * items,
                      (size_t)clv__div_up(g->m, rows_of(tile)), (size_t)(g->batches * splits), items, 1, 1);
}

void clv__gemm_lower(clv__launches *list, const clv__op_io *io, const clv__gemms *gemms) {
    const int64_t splits = splits_of(tile_of(io), gemms), size = clv__numel(&io->out[0]);
    const size_t bytes = splits > 1 ? (size_t)(splits * size) * sizeof(float) : 0;
    const size_t part = bytes ? clv__launch_workspace(list, bytes) : 0;
    for (int i = 0; i < gemms->n; i++)
        if (gemms->items[i].m > 0 && gemms->items[i].n > 0)
            lower_one(list, io, gemms, &gemms->items[i], splits, part, bytes);
    if (!bytes) return;
    clv__launch *launch = clv__launch_kernel(list, "gemm", "gemm_sum");
    clv__arg_out_as(list, launch, io, 0, "T_C");
    clv__arg_workspace(list, launch, part, bytes);
    clv__arg_in(list, launch, gemms->bias >= 0 ? gemms->bias : gemms->a);
    CLV__ARGS_I32(list, launch, size, splits, gemms->inner, gemms->n_channels, gemms->bias >= 0);
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__ELEMENTS, size);
}
