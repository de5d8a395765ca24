// SPDX-License-Identifier: Apache-2.0
// Matrix products on CPU-class devices: how the work is cut into tasks for kernels_cl/matmul.cl, and its launches. The block
// structure is explained there.
#include <math.h>

#include "ops/epilogue.h"
#include "ops/lower.h"
#include "ops/product/matmul.h"

/** Where a device has room: rows of register tiles of A that are packed at a time, depth and columns of a packed block of B, the
 *  kernel file's default for its floats; and where sums stay in local memory, rows of register tiles and columns of a task. All of it
 *  stays in a second-level cache of 1 MiB with room for what passes through. The more columns, the fewer times A is packed; the
 *  deeper, the fewer times results are read and added to. */
enum { A_TILES = 4, LEAST_DEPTH = 16, MOST_DEPTH = 256, MOST_COLUMNS = 512, B_FLOATS = 114240 };
enum { SUM_TILES = 16, SUM_COLUMNS = 256 };

/** What the kernel is compiled for on a device. */
typedef struct tile_limits {
    int lanes, mr, nr, pa; // vector, register tile, lanes of a packed row of A
    int64_t mc, kc, bc;    // rows of A packed at a time, depth, floats of packed B
    int64_t mt, nc;        // largest task; rows matter with sums
    bool sums;             // in local memory, since the result's type would round them
    int64_t threads;       // that work on tasks
} tile_limits;

/** How a product is cut. */
typedef struct tile_cut {
    int64_t mt, mc, nc, kc, splits, ks, tasks; // as the kernel's arguments
} tile_cut;

/** Floats of local memory for packed A. */
static int64_t tile_a_floats(const tile_limits *t) {
    return t->mc / t->mr * clv__max64(t->pa * t->kc, t->mr * (t->kc + t->lanes));
}

static bool tile_fits(const tile_limits *t) {
    return t->bc >= t->nr * t->kc;
}

static tile_limits tile_limits_with(const clv_device_info *device, bool sums, int lanes) {
    enum { ALL = 1 << 17, A_SHARE = 3, SUM_SHARE = 2 };
    tile_limits t = {.lanes = lanes, .sums = sums};
    t.mr = t.lanes == 16 ? 14 : 6;
    t.nr = 2 * t.lanes;
    t.pa = (int)clv__round_up(t.mr, t.lanes);
    t.mc = A_TILES * t.mr;
    t.kc = MOST_DEPTH;
    t.mt = SUM_TILES * t.mr;
    t.nc = sums ? SUM_COLUMNS : MOST_COLUMNS;
    t.threads = device->compute_units;
    int64_t floats = clv__min64(ALL, (int64_t)(clv__tile_local_bytes(device) / sizeof(float)));
    while (tile_a_floats(&t) > floats / A_SHARE && t.kc > LEAST_DEPTH) {
        if (t.mc > t.mr)
            t.mc = t.mr;
        else
            t.kc /= 2;
    }
    while (sums && t.mt * t.nc > floats / SUM_SHARE && (t.mt > t.mr || t.nc > t.nr)) {
        if (t.mt > t.nc || t.nc == t.nr) // where local memory is tiny, down to the least of both
            t.mt = clv__max64(t.mr, t.mt / 2 / t.mr * t.mr);
        else
            t.nc = clv__max64(t.nr, t.nc / 2 / t.nr * t.nr);
    }
    t.bc = floats - tile_a_floats(&t) - t.mr * t.nr - (sums ? t.mt * t.nc : 0);
    // Of a small block rather fewer columns than less depth.
    int64_t columns = t.bc / clv__max64(t.kc / 2, LEAST_DEPTH);
    t.nc = clv__max64(t.nr, clv__min64(t.nc, columns / t.nr * t.nr));
    return t;
}

/** sums: whether the result's type would round them. Where local memory is too small for the device's vectors they are shorter. */
static tile_limits tile_limits_of(const clv_device_info *device, bool sums) {
    tile_limits t = tile_limits_with(device, sums, clv__tile_lanes(device));
    while (!tile_fits(&t) && t.lanes > 4) t = tile_limits_with(device, sums, t.lanes / 2);
    return t;
}

/** The deepest block of B for a product, which has to follow from its sizes alone: it is cut in two by columns at least. */
static int64_t tile_depth(const tile_limits *t, const clv__product *p) {
    int64_t half = clv__round_up(clv__div_up(p->n, 2), t->nr);
    int64_t most = clv__min64(t->kc, t->bc / clv__min64(half, t->nc));
    return most / LEAST_DEPTH * LEAST_DEPTH;
}

/** What `tasks` tasks of mt rows and nc columns take, in multiplications of vectors: packing a vector takes as long as PACK of them.
 *  Few tasks pack little, but at the end the others wait for the last one, for about a WAIT-th of it. Measured with 16 lanes. */
static double tile_cost(const tile_limits *t, int64_t tasks, int64_t mt, int64_t nc) {
    enum { PACK = 16, WAIT = 40 };
    double terms = (double)mt * (double)nc, packed = (double)(mt + nc);
    return (terms + PACK * packed) * ((double)clv__div_up(tasks, t->threads) + 1.0 / WAIT);
}

/** Into how many parts to cut a sum, so that there are tasks for many threads. */
static int64_t tile_splits_of(const tile_limits *t, const clv__product *p) {
    enum { ENOUGH = 64, SPLIT_K = 256 };
    int64_t tiles = p->batch * clv__div_up(p->m, t->mr) * clv__div_up(p->n, t->nr);
    return clv__max64(1, clv__min64(clv__div_up(ENOUGH, tiles), p->k / SPLIT_K));
}

/** The cheapest cut with about so many splits. How a sum is cut must follow from the sizes alone, so that it is the same with any
 *  number of threads; how the result is cut does not change a sum. */
static tile_cut tile_cut_of(const tile_limits *t, const clv__product *p, int64_t splits) {
    enum { A_THREAD = 4, MOST_CUTS = 32, STAY_TILES = 32 };
    const double small = 1e6;     // not worth waking threads
    const int64_t many = 3 << 19; // results, that need not stay in a third-level cache
    tile_cut c = {.ks = clv__round_up(clv__div_up(p->k, splits), 16)};
    c.splits = clv__div_up(p->k, c.ks);
    c.kc = clv__even_block(c.ks, 16, tile_depth(t, p));
    int64_t most_columns = t->sums ? clv__min64(t->nc, t->bc / c.kc) : t->bc / c.kc;
    int64_t m = clv__div_up(p->m, t->mr), n = clv__div_up(p->n, t->nr); // in register tiles
    int64_t n_cuts = clv__div_up(n, most_columns / t->nr);
    // Where a sum takes several blocks of depth, results are added to. Many of them must still be in the cache then, and
    // also what was read ahead of A.
    bool stay = c.kc < c.ks && p->batch * p->m * p->n > many && !t->sums;
    bool is_small = (double)p->batch * (double)p->m * (double)p->n * (double)p->k <= small;
    int64_t more = is_small ? 0 : clv__min64(A_THREAD * t->threads, MOST_CUTS);
    double best = INFINITY;
    for (int64_t j = n_cuts; j <= clv__min64(n, n_cuts + more); j++) {
        int64_t nc = clv__div_up(n, j) * t->nr;
        int64_t most_rows = t->sums ? t->mt : m * t->mr;
        if (stay) most_rows = clv__max64(t->mr, clv__min64(STAY_TILES * t->mr, t->bc / nc));
        int64_t m_cuts = clv__div_up(m, most_rows / t->mr);
        for (int64_t i = m_cuts; i <= clv__min64(m, m_cuts + more); i++) {
            int64_t mt = clv__div_up(m, i) * t->mr;
            int64_t tasks = p->batch * c.splits * clv__div_up(p->m, mt) * clv__div_up(p->n, nc);
            double cost = tile_cost(t, tasks, mt, nc);
            if (cost >= best) continue;
            best = cost;
            c.mt = mt;
            c.nc = nc;
            c.tasks = tasks;
        }
    }
    c.mc = clv__even_block(c.mt, t->mr, t->mc);
    return c;
}

bool clv__product_tile_supports(const clv_device_info *device, const clv__op_io *io) {
    tile_limits t = tile_limits_of(device, clv__is_half(io->out[0].dtype));
    return clv__threads(device) && device->loop_turns == 0 && tile_fits(&t) && clv__product_of(io).k > 0;
}

double clv__product_tile_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device, (void)io;
    // measured 1/50 to 1/200 of plain with 16 lanes; smaller products are a launch's time anyway
    return 0.02;
}

/** Only what differs from the kernel file's own defaults, so that all variants share one compiled instance. */
static void tile_defines(clv__launches *list, clv__launch *launch, const tile_limits *t) {
    clv__define_number(list, launch, "VW", t->lanes, 16);
    clv__define_number(list, launch, "MC", t->mc, A_TILES * t->mr);
    clv__define_number(list, launch, "KC", t->kc, MOST_DEPTH);
    clv__define_number(list, launch, "BC", t->bc, B_FLOATS);
    if (t->sums) clv__define_number(list, launch, "MT", t->mt, SUM_TILES * t->mr);
    if (t->sums) clv__define_number(list, launch, "NC", t->nc, SUM_COLUMNS);
}

void clv__product_tile(clv__launches *list, const clv__op_io *io) {
    clv__product p = clv__product_of(io);
    if (clv__product_is_empty(&p)) return;
    tile_limits t = tile_limits_of(list->device, clv__is_half(io->out[0].dtype));
    tile_cut c = tile_cut_of(&t, &p, tile_splits_of(&t, &p));
    const clv__part parts = clv__floats(list, c.splits > 1 ? c.splits * p.batch * p.m * p.n : 0);
    clv__launch *launch = clv__launch_kernel(list, "matmul", "matmul_tile");
    tile_defines(list, launch, &t);
    if (parts.bytes) {
        clv__arg_part(list, launch, parts);
    } else {
        if (t.sums) clv__launch_define(list, launch, "SUMS", "1");
        clv__arg_out_as(list, launch, io, 0, "T_C");
    }
    clv__product_arguments(list, launch, io, &p);
    CLV__ARGS_I32(list, launch, c.mt, c.mc, c.nc, c.kc, c.splits, c.ks);
    if (!parts.bytes) clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__TASKS, c.tasks);
    if (!parts.bytes) return;

    launch = clv__launch_kernel(list, "matmul", "matmul_sum");
    tile_defines(list, launch, &t);
    CLV__ARGS(list, launch, io, "o0=T_C w b", .part = parts, .bias = p.bias ? 2 : 0,
              CLV__INTS(p.batch, p.m, p.n, c.splits, p.bias, 0 /* accumulate */));
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__SHORT, p.batch * clv__div_up(p.m * p.n, t.lanes));
}

bool clv__product_parts_supports(const clv_device_info *device) {
    tile_limits t = tile_limits_of(device, false);
    return clv__threads(device) && device->loop_turns == 0 && tile_fits(&t);
}

void clv__product_parts(clv__launches *list, const clv__product_rows *p, clv__part c, clv__part a,
                        clv__part b) {
    tile_limits t = tile_limits_of(list->device, false);
    const clv__product whole = {.batch = p->batch, .m = p->m, .n = p->n, .k = p->k};
    tile_cut cut = tile_cut_of(&t, &whole, 1);
    clv__launch *launch = clv__launch_kernel(list, "matmul", "matmul_tile");
    tile_defines(list, launch, &t);
    clv__arg_part(list, launch, c);
    clv__arg_part(list, launch, a);
    clv__arg_part(list, launch, b);
    CLV__ARGS(list, launch, NULL, "w", .part = a,
              CLV__INTS(p->batch, p->m, p->n, p->k, p->a_batch, p->a_m, 1, p->b_batch, 1, p->b_n,
                        0 /* bias */, p->accumulate, cut.mt, cut.mc, cut.nc, cut.kc, cut.splits, cut.ks));
    clv__launch_over(list, launch, CLV__TASKS, cut.tasks);
}
