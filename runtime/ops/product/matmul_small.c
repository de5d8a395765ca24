// SPDX-License-Identifier: Apache-2.0
// Products of few results on devices with lanes: small tiles, whose groups share the terms of a sum as well. What it costs is counted
// as gemm.c counts. Kernel: kernels_cl/matmul_small.cl.
#include "ops/epilogue.h"
#include "ops/product/gemm.h"
#include "ops/lower.h"
#include "ops/product/matmul.h"

enum { SIDE = 8, SLICES = 4, ITEMS = 64 }; // of a tile, of a sum's terms; of a group

bool clv__product_small_supports(const clv_device_info *device, const clv__op_io *io) {
    const uint64_t local_bytes = SLICES * (64 * (SIDE + 2) + 4 * (SIDE * SIDE + 8));
    return !clv__threads(device) && device->max_work_group >= ITEMS &&
           clv__tile_local_bytes(device) >= local_bytes &&
           clv__loops_fit(device, clv__product_of(io).k * 2 + 64);
}

/** An item fetches as many elements as it does products: instructions of a term, and sectors. */
double clv__product_small_rank(const clv_device_info *device, const clv__op_io *io) {
    enum { LEAST = 8192, RESULTS = 256, SHORT_RESULTS = 2048 }; // in all, of a unit, and where sums are short
    enum { SHORT = 32, BEGIN = 32, FETCH = 12, BYTE = 2, RUN = 8, SECTOR = 8 };
    const double share = 0.45, units = clv__lanes_units(device);
    const clv__product p = clv__product_of(io);
    const double results = (double)(p.batch * p.m * p.n);
    const double most =
        units * (p.k <= SHORT ? SHORT_RESULTS : RESULTS); // of more, gemm.c has tiles for all units
    if (results < 1 || (results > LEAST && results > most)) return 2;
    const int64_t groups = p.batch * clv__div_up(p.m, SIDE) * clv__div_up(p.n, SIDE);
    const double rounds = (double)clv__div_up(groups, (int64_t)units);
    const double bytes = 4.0 * BYTE * (2 * SIDE) * (RUN + SECTOR - 1) / RUN;
    const double term = SIDE * SIDE / share + 2 * SIDE * FETCH + bytes;
    return clv__lanes_rank(device, rounds * (double)(p.k + BEGIN) * term * clv__lanes_waits(rounds * ITEMS),
                           results, (double)p.k);
}

void clv__product_small(clv__launches *list, const clv__op_io *io) {
    const clv__product p = clv__product_of(io);
    if (clv__product_is_empty(&p)) return;
    clv__launch *launch = clv__launch_kernel(list, "matmul_small", "matmul_small");
    if (p.a_k != 1) clv__launch_define(list, launch, "A_ROWS", "0");
    if (p.b_n != 1) clv__launch_define(list, launch, "B_ROWS", "1");
    clv__arg_out_as(list, launch, io, 0, "T_C");
    clv__arg_in_as(list, launch, io, 0, "T_A");
    clv__arg_in_as(list, launch, io, 1, "T_B");
    clv__arg_in(list, launch, p.bias ? 2 : 0); // without a bias, anything
    CLV__ARGS_I32(list, launch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_k, p.b_n, p.bias);
    clv__arg_epilogue(list, launch, io);
    clv__launch_grid3(launch, (size_t)(clv__div_up(p.n, SIDE) * ITEMS), (size_t)clv__div_up(p.m, SIDE),
                      (size_t)p.batch, ITEMS, 1, 1);
}
