// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the product family: the problem, and the variant for CPU-class devices.
#ifndef CLV_OPS_MATMUL_H
#define CLV_OPS_MATMUL_H

#include "ops/tiles.h"

/** C[b][m][n] = sum_k A[b*a_batch + m*a_m + k*a_k] * B[b*b_batch + k*b_k + n*b_n] (+ bias[n]) */
typedef struct clv__product {
    int64_t batch, m, n, k;
    int64_t a_batch, a_m, a_k, b_batch, b_k, b_n;
    bool transpose_a, transpose_b, bias;
} clv__product;

/** The product behind a use of matmul or linear. */
clv__product clv__product_of(const clv__op_io *io);
bool clv__product_is_empty(const clv__product *p);
/** Append the arguments that plain, local and tile have in common. */
void clv__product_arguments(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                            const clv__product *p);

/** clv_linear without an adapter. */
clv_tensor *clv__linear_node(clv_tensor *x, clv_tensor *weight, clv_tensor *bias);

// runtime/ops/product/matmul_tile.c
bool clv__product_tile_supports(const clv_device_info *device, const clv__op_io *io);
double clv__product_tile_rank(const clv_device_info *device, const clv__op_io *io);
void clv__product_tile(clv__launches *list, const clv__op_io *io);

// runtime/ops/product/matmul_dots.c
bool clv__product_dots_supports(const clv_device_info *device, const clv__op_io *io);
void clv__product_dots(clv__launches *list, const clv__op_io *io);

// runtime/ops/product/matmul_small.c
bool clv__product_small_supports(const clv_device_info *device, const clv__op_io *io);
double clv__product_small_rank(const clv_device_info *device, const clv__op_io *io);
void clv__product_small(clv__launches *list, const clv__op_io *io);

#endif
