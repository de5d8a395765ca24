// SPDX-License-Identifier: Apache-2.0
// Products of one row on CPU-class devices, each result its dot product with a row of the other matrix. matmul_tile.c would
// pack the whole second matrix, which takes longer than the product. Kernel: kernels_cl/matmul_dots.cl.
#include "ops/epilogue.h"
#include "ops/lower.h"
#include "ops/product/matmul.h"

enum { COLUMNS = 8 }; // a multiple of the kernel file's R

bool clv__product_dots_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__product p = clv__product_of(io);
    return clv__threads(device) && p.batch == 1 && p.m == 1 && p.a_k == 1 && p.b_k == 1 && p.b_n == p.k &&
           clv__loops_fit(device, (p.k + COLUMNS * COLUMNS) * p.n / COLUMNS);
}

void clv__product_dots(clv__launches *list, const clv__op_io *io) {
    enum { TERMS = 1 << 16 }; // of a task: less is not worth waking a thread
    const clv__product p = clv__product_of(io);
    if (clv__product_is_empty(&p)) return;
    const int lanes = clv__tile_lanes(list->device);
    const int64_t most = clv__div_up(p.n, COLUMNS);
    const int64_t tasks = clv__min64(most, clv__max64(1, p.n * p.k / TERMS));
    const int64_t columns = clv__div_up(most, tasks) * COLUMNS;
    clv__launch *launch = clv__launch_kernel(list, "matmul_dots", "matmul_dots");
    if (lanes != 16) clv__launch_define(list, launch, "VW", "%d", lanes);
    CLV__ARGS(list, launch, io, "o0=T_C i0=T_A i1=T_B b", .bias = p.bias ? 2 : 0,
              CLV__INTS(p.n, p.k, p.bias, columns));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__TASKS, clv__div_up(p.n, columns));
}
