// SPDX-License-Identifier: Apache-2.0
// Attention on devices with lanes, by tiles that keep scores in local memory: launches of
// kernels_cl/flash_attention.cl.
#include "ops/lower.h"
#include "ops/attention/self_attention.h"

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

/** A group for each tile of each head. stats: bytes of them, at the begin of the workspace; 0: none. */
static void add_launch(clv__launches *list, const clv__op_io *io, const char *entry, size_t stats) {
    clv__sequences s = clv__sequences_of(io);
    flash_tile tile = tile_of(&s);
    clv__launch *launch = clv__launch_kernel(list, "flash_attention", entry);
    if (tile.EP != tiles[0][0].EP) {
        clv__launch_define(list, launch, "EP", "%d", (int)tile.EP);
        clv__launch_define(list, launch, "WX", "%d", (int)tile.WX);
        clv__launch_define(list, launch, "WY", "%d", (int)tile.WY);
        clv__launch_define(list, launch, "KN", "%d", (int)tile.KN);
    }
    clv__arg_tensors(list, launch, io, s.backward ? "o0=T_Y i0=T_DY i1=T_X" : "o0=T_Y i0=T_X");
    if (stats) clv__arg_workspace(list, launch, 0, stats);
    if (stats) clv__arg_i32(list, launch, s.N);
    CLV__ARGS(list, launch, io, NULL, CLV__INTS(s.T, s.H, s.E, s.causal), CLV__FLOATS(s.scale));
    clv__sequences_mask(list, launch, io, 0);
    const size_t items = (size_t)(tile.WX * tile.WY);
    clv__launch_grid(launch, (size_t)(clv__div_up(s.T, 4 * tile.WY) * s.N * s.H) * items, items);
}

void clv__flash_attention(clv__launches *list, const clv__op_io *io) {
    clv__sequences s = clv__sequences_of(io);
    if (s.N * s.T == 0) return;
    if (s.backward) {
        const size_t stats = (size_t)(2 * s.N * s.H * s.T) * sizeof(float);
        clv__launch_workspace(list, stats);
        add_launch(list, io, "attend_flash_queries", stats);
        add_launch(list, io, "attend_flash_keys", stats);
    } else {
        add_launch(list, io, "attend_flash", 0);
    }
}
