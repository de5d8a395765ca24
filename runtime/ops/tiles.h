// SPDX-License-Identifier: Apache-2.0
// Arithmetic that the register-tiled kernels for CPU-class devices share: widths of vectors, cuts of sizes.
#ifndef CLV_OPS_TILES_H
#define CLV_OPS_TILES_H

#include "graph/op.h"

static inline int64_t clv__min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static inline int64_t clv__max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static inline int64_t clv__div_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
static inline int64_t clv__round_up(int64_t a, int64_t b) {
    return clv__div_up(a, b) * b;
}

/** Lanes of the vectors the tiled kernels use: 4, 8 or 16. */
static inline int clv__tile_lanes(const clv_device_info *device) {
    return device->vector_width >= 16 ? 16 : device->vector_width >= 8 ? 8 : 4;
}

/** Bytes of local memory that a kernel's own arrays may take. Of threads it is a core's cache: half is left to what streams by. */
static inline uint64_t clv__tile_local_bytes(const clv_device_info *device) {
    return device->local_doubled || clv__threads(device) ? device->local_bytes / 2 : device->local_bytes;
}

/**
 * For launches of a kernel file's other entries: leave the CPU-class ones out (TILE) unless the device runs them with the
 * file's own defaults, when one compiled instance serves all. Drivers compile what nobody calls: minutes on some, and
 * on others a refusal, as the tiles' local arrays are larger than a GPU's local memory.
 */
static inline void clv__tile_define(clv__launches *list, clv__launch *launch) {
    const clv_device_info *device = list->device;
    bool shared = clv__threads(device) && device->loop_turns == 0 && clv__tile_lanes(device) == 16 &&
                  clv__tile_local_bytes(device) >= (1u << 20);
    if (!shared) clv__launch_define(list, launch, "TILE", "%d", 0);
}

/** Size of a block when n is cut into equal ones of whole units, none larger than `most`, a multiple of unit. */
static inline int64_t clv__even_block(int64_t n, int64_t unit, int64_t most) {
    int64_t units = clv__div_up(n, unit), blocks = clv__div_up(units, most / unit);
    return blocks ? clv__div_up(units, blocks) * unit : unit;
}

/** What n lanes of work in blocks of one or two vectors cost beside whole blocks of two: in those of one, eight loads go with a
 *  load more. */
static inline double clv__lane_cost(int64_t n, int64_t block, int64_t lanes) {
    return (double)clv__round_up(n, block) / (double)n * (block == lanes ? 9.0 / 8 : 1);
}

/** One vector or two, whichever is cheaper for n lanes of work, more than none. */
static inline int64_t clv__lane_block(int64_t n, int64_t lanes) {
    return clv__lane_cost(n, lanes, lanes) < clv__lane_cost(n, 2 * lanes, lanes) ? lanes : 2 * lanes;
}

/** Bytes of a node's workspace. */
typedef struct clv__part {
    size_t offset, bytes;
} clv__part;

/** C[b][m][n] (+)= sum_k A[b*a_batch + m*a_m + k] * B[b*b_batch + n*b_n + k]: rows by rows. */
typedef struct clv__product_rows {
    int64_t batch, m, n, k, a_batch, a_m, b_batch, b_n;
    bool accumulate;
} clv__product_rows;

/** Can a device do clv__product_parts? (runtime/ops/product/matmul_tile.c) */
bool clv__product_parts_supports(const clv_device_info *device);
/** Append the product of matrices of floats in the workspace, for ops that are made of products. */
void clv__product_parts(clv__launches *list, const clv__product_rows *p, clv__part c, clv__part a,
                        clv__part b);

#endif
