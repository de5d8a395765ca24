// SPDX-License-Identifier: Apache-2.0
// Attention on devices with lanes, by tiles that keep scores in local memory: launches of
// kernels_cl/flash_attention.cl, and with matrix units of kernels_cl/flash_attention_matrix.cl.
#include "ops/lower.h"
#include "ops/attention/self_attention.h"
#include "ops/product/gemm.h"

/** The kernel file's macros: head sizes up to EP, items of a group along columns and rows, their columns. */
typedef struct flash_tile {
    int64_t EP, WX, WY, KN;
} flash_tile;

/** Longer tiles read keys and values less often. Wider heads leave no local memory for them, and in gradients
 *  no registers. On Skylake and Tiger Lake attend_flash_queries spills a little: a column less of scores would
 *  mend that, and take a fifth more instructions for them, so it was left. */
static const flash_tile tiles[2][4] = {{{32, 8, 16, 2}, {64, 16, 8, 2}, {128, 16, 8, 1}, {0}},
                                       {{32, 8, 16, 2}, {64, 16, 8, 2}, {128, 32, 4, 1}, {0}}};

static flash_tile tile_of(const clv__sequences *s) {
    const flash_tile *tile = tiles[s->backward];
    while (tile->EP && tile->EP < s->E) tile++;
    return *tile;
}

/** Bytes of local memory, as the kernel file says. */
static uint64_t local_bytes(const flash_tile *tile, bool backward) {
    int64_t rows = 4 * tile->WY, pitch = tile->EP + 4, moving = tile->WX * tile->KN;
    int64_t p = rows * (moving + 4), sums = tile->WX * (rows + 4);
    int64_t floats =
        backward ? (2 * rows + moving) * pitch + clv__max64(p, 2 * sums) : (rows + moving) * pitch + p + sums;
    return (uint64_t)floats * sizeof(float);
}

bool clv__flash_attention_supports(const clv_device_info *device, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    flash_tile tile = tile_of(&s);
    return tile.EP && device->loop_turns == 0 && device->max_work_group >= (uint32_t)(tile.WX * tile.WY) &&
           clv__tile_local_bytes(device) >= local_bytes(&tile, s.backward);
}

double clv__flash_attention_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    return clv__threads(device) ? 2.5 : 0.05; // no local memory to gain from, and barriers to lose by
}

/** An entry's arguments, of a group for each `rows` rows of each head, of keys or of queries. stats: bytes of them, at the begin of the workspace; 0: none. */
static void add_launch(clv__launches *list, clv__launch *launch, const clv__op_io *io, int64_t rows,
                       int64_t items, size_t stats, bool keys) {
    clv__sequences s = clv__sequences_of(io);
    clv__arg_tensors(list, launch, io, s.backward ? "o0=T_Y i0=T_DY i1=T_X" : "o0=T_Y i0=T_X");
    if (stats) clv__arg_workspace(list, launch, 0, stats);
    if (stats) clv__arg_i32(list, launch, s.N);
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(s.T, s.H, s.G, s.E, s.causal), CLV__FLOATS(s.scale));
    clv__sequences_mask(list, launch, io, 0);
    if (s.G != s.H) clv__launch_define(list, launch, "SHARED", "%d", 1);
    clv__launch_grid(launch, (size_t)(clv__div_up(s.T, rows) * s.N * (keys ? s.G : s.H) * items),
                     (size_t)items);
}

static void flash(clv__launches *list, const clv__op_io *io, const char *entry, size_t stats, bool keys) {
    clv__sequences s = clv__sequences_of(io);
    flash_tile tile = tile_of(&s);
    clv__launch *launch = clv__launch_kernel(list, "flash_attention", entry);
    if (tile.EP != tiles[0][0].EP) {
        clv__launch_define(list, launch, "EP", "%d", (int)tile.EP);
        clv__launch_define(list, launch, "WX", "%d", (int)tile.WX);
        clv__launch_define(list, launch, "WY", "%d", (int)tile.WY);
        clv__launch_define(list, launch, "KN", "%d", (int)tile.KN);
    }
    add_launch(list, launch, io, 4 * tile.WY, tile.WX * tile.WY, stats, keys);
}

/** Forward a launch, back two, the first of which leaves something of each row for the second. */
static void add_launches(clv__launches *list, const clv__op_io *io,
                         void (*add)(clv__launches *, const clv__op_io *, const char *, size_t, bool),
                         const char *forward, const char *queries, const char *keys) {
    clv__sequences s = clv__sequences_of(io);
    const size_t stats = s.backward ? (size_t)(2 * s.N * s.H * s.T) * sizeof(float) : 0;
    if (s.N * s.T == 0) return;
    if (s.backward) clv__launch_workspace(list, stats);
    add(list, io, s.backward ? queries : forward, stats, false);
    if (s.backward) add(list, io, keys, stats, true);
}

void clv__flash_attention(clv__launches *list, const clv__op_io *io) {
    add_launches(list, io, flash, "attend_flash", "attend_flash_queries", "attend_flash_keys");
}

// ---- matrix units -----------------------------------------------------------------------------------------

/** That kernel file's macros: head sizes up to EP, rows of a group's tile and of one that moves, items. */
typedef struct matrix_tile {
    int64_t EP, BQ, BK, items;
} matrix_tile;

/** Of tf32, of halves; forward, back. 48 KiB of local memory hold them, as some drivers give a group. No compiler's registers spill
 *  (tests/drivers/offline/units.py); of few sub-groups each has the more fragments beside each other. */
static const matrix_tile matrix_tiles[2][2][3] = {
    {{{32, 64, 32, 128}, {64, 64, 32, 128}, {0}}, {{32, 64, 32, 128}, {64, 32, 32, 128}, {0}}},
    {{{64, 64, 32, 128}, {128, 64, 32, 256}, {0}}, {{64, 64, 32, 128}, {128, 32, 32, 128}, {0}}}};

static const matrix_tile *matrix_tile_of(const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    const matrix_tile *tile = matrix_tiles[io->variant->number != CLV_MATRIX_TF32][s.backward];
    while (tile->EP && tile->EP < s.E) tile++;
    return tile;
}

/** Bytes of local memory, as the kernel file says. */
static uint64_t matrix_bytes(const clv_device_info *device, const clv__op_io *io) {
    enum { BESIDE = 4, SCRATCH = 8 }; // sub-groups at most; words of an item, where the unit is emulated
    const matrix_tile *t = matrix_tile_of(io);
    const int64_t own = t->BQ * t->EP, moving = t->BK * t->EP, scores = t->BQ * t->BK;
    const int64_t bytes = io->variant->number == CLV_MATRIX_TF32 ? sizeof(float) : sizeof(uint16_t);
    const int64_t red = (int64_t)sizeof(float) * t->BQ * BESIDE;
    const int64_t emulated = device->matrix_units ? 0 : (int64_t)sizeof(float) * SCRATCH * t->items;
    if (!clv__sequences_of(io).backward)
        return (uint64_t)(bytes * (own + 2 * moving + scores) + red + emulated);
    return (uint64_t)(clv__max64(bytes * (2 * own + 3 * moving + scores) + red,
                                 bytes * (2 * own + 2 * moving + 2 * scores)) +
                      emulated);
}

/** What a chunk of four words holds lies side by side, and is aligned. */
bool clv__flash_matrix_supports(const clv_device_info *device, const clv__op_io *io) {
    enum { ALIGNED = 8 };
    const matrix_tile *tile = matrix_tile_of(io);
    return tile->EP && clv__sequences_of(io).E % ALIGNED == 0 && device->loop_turns == 0 &&
           device->max_work_group >= (uint32_t)tile->items &&
           clv__tile_local_bytes(device) >= matrix_bytes(device, io) &&
           clv__unit_multiplies(device, (uint32_t)io->variant->number, io->in[0].dtype,
                                io->in[clv__is_gradient(io)].dtype);
}

/** Beside `flash`: by counts of instructions of sm_90 (tests/drivers/offline/units.py); no card has been asked. */
double clv__flash_matrix_rank(const clv_device_info *device, const clv__op_io *io) {
    return clv__unit_rank(device, io->variant->number == CLV_MATRIX_TF32 ? 0.03 : 0.02);
}

static void flash_matrix(clv__launches *list, const clv__op_io *io, const char *entry, size_t stats,
                         bool keys) {
    const matrix_tile *tile = matrix_tile_of(io);
    clv__launch *launch = clv__launch_kernel(list, "flash_attention_matrix", entry);
    clv__launch_define(list, launch, "MATRIX_TYPE", "%s", clv__unit_type((uint32_t)io->variant->number));
    clv__launch_define(list, launch, "EP", "%d", (int)tile->EP);
    clv__launch_define(list, launch, "BQ", "%d", (int)tile->BQ);
    clv__launch_define(list, launch, "BK", "%d", (int)tile->BK);
    clv__launch_define(list, launch, "ITEMS", "%d", (int)tile->items);
    add_launch(list, launch, io, tile->BQ, tile->items, stats, keys);
}

void clv__flash_matrix(clv__launches *list, const clv__op_io *io) {
    add_launches(list, io, flash_matrix, "attend_matrix", "attend_matrix_queries", "attend_matrix_keys");
}
