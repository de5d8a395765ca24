// SPDX-License-Identifier: Apache-2.0
// Products by tiles for devices with lanes (kernels_cl/gemm.cl): matrix products, and convolutions as implicit ones.
#ifndef CLV_OPS_GEMM_H
#define CLV_OPS_GEMM_H

#include "ops/tiles.h"

/** C[z][m][n] = sum_k A[z][m][k] * B[z][k][n] (+ bias). The kernel file's head says what the digits of k and n are, and where
 *  elements lie. What is zero is not there: digits of one number are 1. */
typedef struct clv__gemm {
    int64_t batches, m, n, k;
    int64_t phases, n_2,
        k_2; // phases of a stride, 0: none; n and k are those of the largest, n_2 and k_2 N and K of the kernel
    int64_t k_1, k_0, n_1, n_0;
    int64_t a_0, a_z, a_m, a_k2, a_k1, a_k0;
    int64_t b_z, b_k2, b_n2;
    int64_t c_0, c_z, c_m, c_n2, c_n1, c_n0;
    int64_t h_0, h_n1, h_k1, h_size, w_0, w_n0, w_k0, w_size;
    bool taps; // k has three digits, B has an edge
    bool a_rows,
        b_rows;  // neighbouring terms of A (of B) lie side by side, or more nearly so than rows (columns)
    bool by_row; // a row is a channel; else a column is one
    int64_t channels; // of a z, where a row is one
} clv__gemm;

/** The product that an op is, or a part of it. */
typedef struct clv__gemms {
    int a, b, bias;            // inputs of the op; bias -1: none
    const clv__part *parts;    // c, a and b in the workspace instead; NULL: none
    int64_t inner, n_channels; // the channel of element i of the result is i / inner % n_channels
    const clv__gemm *product;
} clv__gemms;

/** Tiles, as numbers of variants; an op's other variants have none. */
enum {
    CLV__NO_TILE,
    CLV__TILE_USUAL,
    CLV__TILE_128X128,
    CLV__TILE_64X64,
    CLV__TILE_32X64,
    CLV__TILE_16X64,
    CLV__TILE_64X16,
    CLV__TILE_8X8,
    CLV__TILE_HALF,
    CLV__TILE_HALF_32X64,
    CLV__TILE_HALF_SUMS,
    CLV__TILE_TF32,
    CLV__TILE_TF32_WIDE,
    CLV__TILE_TF32_64X64,
    CLV__TILE_F16,
    CLV__TILE_F16_WIDE,
    CLV__TILE_F16_64X64,
    CLV__TILE_BF16,
    CLV__TILE_BF16_WIDE,
    CLV__TILE_BF16_64X64,
    CLV__TILE_BF16X2,
    CLV__TILE_BF16X2_64X64,
    CLV__TILE_BF16X3,
    CLV__TILE_BF16X3_64X64,
    CLV__TILES
};
#define CLV__GEMM_VARIANT(name_, tile, supports_, rank_, ...)                                                \
    { .name = name_, .supports = supports_, .rank = rank_, .number = CLV__TILE_##tile, .lower = __VA_ARGS__ }
/** The rows of a table of variants: one for each tile, the first the usual one. "gemm:64x16", for few columns, is matmul's alone. */
#define CLV__GEMM_VARIANTS(supports_, rank_, lower_)                                                         \
    CLV__GEMM_VARIANT("gemm", USUAL, supports_, rank_, lower_),                                              \
        CLV__GEMM_VARIANT("gemm:128x128", 128X128, supports_, rank_, lower_),                                \
        CLV__GEMM_VARIANT("gemm:64x64", 64X64, supports_, rank_, lower_),                                    \
        CLV__GEMM_VARIANT("gemm:32x64", 32X64, supports_, rank_, lower_),                                    \
        CLV__GEMM_VARIANT("gemm:16x64", 16X64, supports_, rank_, lower_),                                    \
        CLV__GEMM_VARIANT("gemm:8x8", 8X8, supports_, rank_, lower_)
/** More of them, for operands in halves. */
#define CLV__GEMM_HALVES(supports_, rank_, lower_)                                                           \
    CLV__GEMM_VARIANT("half", HALF, supports_, rank_, lower_),                                               \
        CLV__GEMM_VARIANT("half:32x64", HALF_32X64, supports_, rank_, lower_)
/** The one with sums of f16, for inference. */
#define CLV__GEMM_HALF_SUMS(supports_, rank_, lower_)                                                        \
    CLV__GEMM_VARIANT("half_sums", HALF_SUMS, supports_, rank_, lower_, .roundoff = 0x1p-11)

/** Those of matrix units: what they multiply, and how floats are rounded for it. Two parts of bf16 have 16 bits. Three have all 24, and
 *  products that are left out are as small as f32's roundings; no card has shown yet that they are faster than FMAs. */
#define CLV__GEMM_MATRIX(supports_, rank_, lower_)                                                           \
    CLV__GEMM_VARIANT("tf32", TF32, supports_, rank_, lower_, .operands = 0x1p-11),                          \
        CLV__GEMM_VARIANT("tf32:wide", TF32_WIDE, supports_, rank_, lower_, .operands = 0x1p-11),            \
        CLV__GEMM_VARIANT("tf32:64x64", TF32_64X64, supports_, rank_, lower_, .operands = 0x1p-11),          \
        CLV__GEMM_VARIANT("f16", F16, supports_, rank_, lower_, .operands = 0x1p-11),                        \
        CLV__GEMM_VARIANT("f16:wide", F16_WIDE, supports_, rank_, lower_, .operands = 0x1p-11),              \
        CLV__GEMM_VARIANT("f16:64x64", F16_64X64, supports_, rank_, lower_, .operands = 0x1p-11),            \
        CLV__GEMM_VARIANT("bf16", BF16, supports_, rank_, lower_, .operands = 0x1p-8),                       \
        CLV__GEMM_VARIANT("bf16:wide", BF16_WIDE, supports_, rank_, lower_, .operands = 0x1p-8),             \
        CLV__GEMM_VARIANT("bf16:64x64", BF16_64X64, supports_, rank_, lower_, .operands = 0x1p-8),           \
        CLV__GEMM_VARIANT("bf16x2", BF16X2, supports_, rank_, lower_, .operands = 0x1p-15),                  \
        CLV__GEMM_VARIANT("bf16x2:64x64", BF16X2_64X64, supports_, rank_, lower_, .operands = 0x1p-15),      \
        CLV__GEMM_VARIANT("bf16x3", BF16X3, supports_, rank_, lower_, .operands = 0x1p-23),                  \
        CLV__GEMM_VARIANT("bf16x3:64x64", BF16X3_64X64, supports_, rank_, lower_, .operands = 0x1p-23)

/** Does a matrix unit (a CLV_MATRIX_* bit) multiply such operands, or is there none, and it is emulated? Floats are rounded to what the
 *  other operand is stored as. */
bool clv__unit_multiplies(const clv_device_info *device, uint32_t unit, clv_dtype a, clv_dtype b);
/** `rank`, or that of what nobody chooses, where it is emulated or no card has shown how fast it is. */
double clv__unit_rank(const clv_device_info *device, double rank);
/** MATRIX_TYPE of kernels. */
const char *clv__unit_type(uint32_t unit);

/** Has the device groups and local memory for the tile of io's variant, or, where that names none, for any? */
bool clv__gemm_supports(const clv_device_info *device, const clv__op_io *io);
/** Would the tile of io's variant, a wide one of a matrix unit, spill, as halves are fetched one by one? */
bool clv__gemm_spills(const clv__op_io *io, const clv__gemms *gemms);
/** Registers of an item, at most, with that tile. */
int clv__gemm_registers(const clv__op_io *io);
/** How long a product takes, as FMAs of a unit that does nothing else: with the tile of io's variant, or the best one. */
double clv__gemm_cost(const clv_device_info *device, const clv__op_io *io, const clv__gemm *g);
/** The same for n bytes of global memory that are read or written once, and for n further launches. */
double clv__lanes_bytes_cost(const clv_device_info *device, double n);
double clv__lanes_launches_cost(double n);
/** Units that do 64 FMAs at a time: devices with sub-groups of eight call a unit what does eight. */
double clv__lanes_units(const clv_device_info *device);
/** What one more launch adds to a use that moves so many bytes, as a part of its time. */
double clv__lanes_launch_share(const clv_device_info *device, double bytes);
/** By how many times longer so many items of a unit, beside each other, wait for memory. */
double clv__lanes_waits(double items);
/** What a cost is beside plain's, of so many results with so many terms each. Of threads it is 2: no local memory to gain from, and
 *  barriers to lose by. */
double clv__lanes_rank(const clv_device_info *device, double cost, double results, double terms);
double clv__gemm_rank(const clv_device_info *device, const clv__op_io *io, const clv__gemms *gemms);
void clv__gemm_lower(clv__launches *list, const clv__op_io *io, const clv__gemms *gemms);

#endif
