// SPDX-License-Identifier: Apache-2.0
// Matrix products: matmul (batched, either side transposed) and linear (x W^T + bias). Both are the same
// kernels with other strides. Kernels: kernels_cl/matmul.cl; for CPU-class devices: matmul_tile.c.
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/epilogue.h"
#include "ops/product/gemm.h"
#include "ops/product/lora.h"
#include "ops/lower.h"
#include "ops/product/matmul.h"

typedef struct matmul_attrs {
    int32_t transpose_a, transpose_b;
} matmul_attrs;

extern const clv__op clv__op_matmul, clv__op_linear;

// ---- the problem behind both ops --------------------------------------------------------------------------

static int64_t leading(const clv_shape *shape, int keep) {
    return clv__dims_product(shape, 0, shape->rank - keep);
}

clv__product clv__product_of(const clv__op_io *io) {
    const clv_shape *a = &io->in[0].shape, *b = &io->in[1].shape;
    clv__product p = {0};
    if (io->op == &clv__op_linear) {
        p = (clv__product){
            .batch = 1, .m = leading(a, 1), .n = b->dims[0], .k = b->dims[1], .bias = clv__has_in(io, 2)};
        p.a_m = p.b_n = p.k;
        p.a_k = p.b_k = 1;
        p.transpose_b = true;
        return p;
    }
    const matmul_attrs *attrs = io->attrs;
    int64_t a_rows = a->dims[a->rank - 2], a_columns = a->dims[a->rank - 1];
    int64_t b_rows = b->dims[b->rank - 2], b_columns = b->dims[b->rank - 1];
    p.transpose_a = attrs->transpose_a;
    p.transpose_b = attrs->transpose_b;
    p.m = attrs->transpose_a ? a_columns : a_rows;
    p.k = attrs->transpose_a ? a_rows : a_columns;
    p.n = attrs->transpose_b ? b_rows : b_columns;
    p.a_m = attrs->transpose_a ? 1 : a_columns;
    p.a_k = attrs->transpose_a ? a_columns : 1;
    p.b_k = attrs->transpose_b ? 1 : b_columns;
    p.b_n = attrs->transpose_b ? b_columns : 1;
    p.batch = clv__max64(leading(a, 2), leading(b, 2));
    if (a->rank > 2 && leading(a, 2) == 0) p.batch = 0;
    if (b->rank > 2 && leading(b, 2) == 0) p.batch = 0;
    p.a_batch = a->rank > 2 ? p.m * p.k : 0;
    p.b_batch = b->rank > 2 ? p.k * p.n : 0;
    if (b->rank == 2 && !attrs->transpose_a) { // one tall matrix instead of many
        p.m *= p.batch;
        p.batch = 1;
        p.a_batch = 0;
    }
    return p;
}

bool clv__product_is_empty(const clv__product *p) {
    return p->batch == 0 || p->m == 0 || p->n == 0;
}

/** Columns of the result side by side, as each sum by itself would wait for its last addition, and so many terms
 *  of them that all rows meet while they are in the cache. Each sum adds its terms in order. */
enum { SIDE_BY_SIDE = 8, TERMS = 256 };

static void product_reference(const clv__ref *ref) {
    const clv__product p = clv__product_of(ref->io);
    double panel[TERMS][SIDE_BY_SIDE] = {{0}};
    for (int64_t z = 0; z < p.batch; z++)
        for (int64_t n = 0; n < p.n; n += SIDE_BY_SIDE)
            for (int64_t first = 0; first == 0 || first < p.k; first += TERMS) {
                const int64_t count = clv__min64(p.n - n, SIDE_BY_SIDE),
                              terms = clv__min64(p.k - first, TERMS);
                const double *b = ref->in[1] + z * p.b_batch + first * p.b_k + n * p.b_n;
                for (int64_t k = 0; k < terms; k++)
                    for (int64_t i = 0; i < count; i++) panel[k][i] = b[k * p.b_k + i * p.b_n];
                for (int64_t m = 0; m < p.m; m++) {
                    const double *a = ref->in[0] + z * p.a_batch + m * p.a_m + first * p.a_k;
                    double *row = ref->out[0] + (z * p.m + m) * p.n + n, sums[SIDE_BY_SIDE] = {0};
                    for (int64_t i = 0; i < count; i++)
                        sums[i] = first ? row[i] : p.bias ? ref->in[2][n + i] : 0;
                    for (int64_t k = 0; k < terms; k++)
                        for (int64_t i = 0; i < SIDE_BY_SIDE; i++) sums[i] += a[k * p.a_k] * panel[k][i];
                    for (int64_t i = 0; i < count; i++) row[i] = sums[i];
                }
            }
}

static void product_cost(const clv__op_io *io, clv__cost *cost) {
    clv__product p = clv__product_of(io);
    cost->flops = 2.0 * (double)p.batch * (double)p.m * (double)p.n * (double)p.k;
    cost->bytes = clv__float_bytes(io);
}

static int64_t product_reduction(const clv__op_io *io) {
    return clv__product_of(io).k;
}

// ---- plain ------------------------------------------------------------------------------------------------

void clv__product_arguments(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                            const clv__product *p) {
    clv__arg_tensors(list, launch, io, "i0=T_A i1=T_B");
    if (io->in[0].dtype != io->in[1].dtype) clv__launch_define(list, launch, "APART", "1");
    CLV__ARGS(list, launch, io, "b", .bias = p->bias ? 2 : 0,
              CLV__INTS(p->batch, p->m, p->n, p->k, p->a_batch, p->a_m, p->a_k, p->b_batch, p->b_k, p->b_n,
                        p->bias, 0 /* accumulate */));
}

static void plain_lower(clv__launches *list, const clv__op_io *io) {
    clv__product p = clv__product_of(io);
    if (clv__product_is_empty(&p)) return;
    clv__launch *launch = clv__launch_kernel(list, "matmul", "matmul_plain");
    clv__tile_define(list, launch);
    clv__arg_out_as(list, launch, io, 0, "T_C");
    clv__product_arguments(list, launch, io, &p);
    clv__arg_epilogue(list, launch, io);
    clv__launch_over(list, launch, CLV__ELEMENTS, p.batch * p.m * p.n);
}

// ---- gemm: lanes ------------------------------------------------------------------------------------------

static clv__gemm gemm_of(const clv__product *p) {
    return (clv__gemm){.batches = p->batch,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .k_1 = 1,
                       .k_0 = 1,
                       .n_1 = 1,
                       .n_0 = 1,
                       .a_z = p->a_batch,
                       .a_m = p->a_m,
                       .a_k2 = p->a_k,
                       .b_z = p->b_batch,
                       .b_k2 = p->b_k,
                       .b_n2 = p->b_n,
                       .c_z = p->m * p->n,
                       .c_m = p->n,
                       .c_n2 = 1,
                       .a_rows = p->a_k == 1,
                       .b_rows = p->b_n != 1};
}

static clv__gemms gemms_of(const clv__product *p, const clv__gemm *gemm) {
    return (clv__gemms){.b = 1, .bias = p->bias ? 2 : -1, .inner = 1, .n_channels = gemm->n, .product = gemm};
}

static double gemm_rank(const clv_device_info *device, const clv__op_io *io) {
    clv__product p = clv__product_of(io);
    const clv__gemm gemm = gemm_of(&p);
    const clv__gemms gemms = gemms_of(&p, &gemm);
    return clv__gemm_rank(device, io, &gemms);
}

static void gemm_lower(clv__launches *list, const clv__op_io *io) {
    clv__product p = clv__product_of(io);
    if (clv__product_is_empty(&p)) return;
    const clv__gemm gemm = gemm_of(&p);
    const clv__gemms gemms = gemms_of(&p, &gemm);
    clv__gemm_lower(list, io, &gemms);
}

// ---- library ----------------------------------------------------------------------------------------------

/** It knows floats only, and no epilogue. On CPU-class devices it begins in seconds and is ten times slower. */
static bool library_supports(const clv_device_info *device, const clv__op_io *io) {
    bool floats = io->in[0].dtype == CLV_DTYPE_F32 && io->in[1].dtype == CLV_DTYPE_F32 &&
                  io->out[0].dtype == CLV_DTYPE_F32;
    return device->gemm && floats && !io->epilogue && !clv__threads(device) && clv__product_of(io).k > 0;
}

/** Only where it was measured as the fastest, or is asked for: it allocates on the device in the midst of a step,
 *  which no account knows of. On an H100 it took 1.3 times as long as the tiles, and 2.5 ms of the host a
 *  product of VGG-16's classifier. */
static double library_rank(const clv_device_info *device, const clv__op_io *io) {
    (void)device, (void)io;
    return 2;
}

static void library_lower(clv__launches *list, const clv__op_io *io) {
    clv__product p = clv__product_of(io);
    if (clv__product_is_empty(&p)) return;
    clv__launch *launch = clv__launch_kernel(list, "", "");
    launch->kind = CLV__LAUNCH_GEMM;
    clv__arg_tensors(list, launch, io, "o0 i0 i1");
    launch->gemm.transpose_a = p.transpose_a;
    launch->gemm.transpose_b = p.transpose_b;
    launch->gemm.m = (int)p.m;
    launch->gemm.n = (int)p.n;
    launch->gemm.k = (int)p.k;
    launch->gemm.lda = (int)(p.transpose_a ? p.a_k : p.a_m);
    launch->gemm.ldb = (int)(p.transpose_b ? p.b_n : p.b_k);
    launch->gemm.ldc = (int)p.n;
    launch->gemm.n_batch = (int)p.batch;
    launch->gemm.stride_a = p.a_batch;
    launch->gemm.stride_b = p.b_batch;
    launch->gemm.stride_c = p.m * p.n;
    launch->gemm.alpha = 1;
    if (!p.bias) return;
    launch = clv__launch_kernel(list, "matmul", "matmul_bias");
    clv__tile_define(list, launch);
    CLV__ARGS(list, launch, io, "o0 i2", CLV__INTS(p.batch * p.m * p.n, p.n));
    clv__launch_over(list, launch, CLV__ELEMENTS, p.batch * p.m * p.n);
}

static const clv__variant product_variants[] = {
    {.name = "plain", .lower = plain_lower},
    CLV__GEMM_VARIANTS(clv__gemm_supports, gemm_rank, gemm_lower),
    CLV__GEMM_VARIANT("gemm:64x16", 64X16, clv__gemm_supports, gemm_rank, gemm_lower),
    CLV__GEMM_HALVES(clv__gemm_supports, gemm_rank, gemm_lower),
    CLV__GEMM_MATRIX(clv__gemm_supports, gemm_rank, gemm_lower),
    CLV__GEMM_HALF_SUMS(clv__gemm_supports, gemm_rank, gemm_lower),
    {"small", clv__product_small_supports, clv__product_small_rank, .lower = clv__product_small},
    {"library", library_supports, library_rank, .lower = library_lower},
    {"tile", clv__product_tile_supports, clv__product_tile_rank, .lower = clv__product_tile},
    {"dots", clv__product_dots_supports, .lower = clv__product_dots, .relative = 0.01},
    {0},
};

// ---- matmul -----------------------------------------------------------------------------------------------

static clv_status matmul_infer(clv__op_io *io, clv__error *error) {
    const matmul_attrs *attrs = io->attrs;
    const clv_shape *a = &io->in[0].shape, *b = &io->in[1].shape;
    if (a->rank < 2 || b->rank < 2)
        CLV_FAIL(error, CLV_E_SHAPE, "%s has no rows and columns", a->rank < 2 ? "a" : "b");
    int64_t a_k = a->dims[a->rank - (attrs->transpose_a ? 2 : 1)],
            b_k = b->dims[b->rank - (attrs->transpose_b ? 1 : 2)];
    if (a_k != b_k) {
        CLV_FAIL(error, CLV_E_SHAPE, "%s of a is %lld, %s of b is %lld, they must be equal",
                 attrs->transpose_a ? "height" : "width", (long long)a_k,
                 attrs->transpose_b ? "width" : "height", (long long)b_k);
    }
    const clv_shape *batch = a->rank > 2 ? a : b;
    if (a->rank > 2 && b->rank > 2) {
        bool same = a->rank == b->rank;
        for (int i = 0; same && i < a->rank - 2; i++) same = a->dims[i] == b->dims[i];
        if (!same) CLV_FAIL(error, CLV_E_SHAPE, "the batch dimensions of a and b do not match");
    }
    clv_shape c = *batch;
    c.dims[c.rank - 2] = a->dims[a->rank - (attrs->transpose_a ? 1 : 2)];
    c.dims[c.rank - 1] = b->dims[b->rank - (attrs->transpose_b ? 2 : 1)];
    return clv__one_out(io, clv__f32(c));
}

static clv_tensor *matmul_node(clv_tensor *a, bool transpose_a, clv_tensor *b, bool transpose_b) {
    matmul_attrs attrs = {transpose_a, transpose_b};
    return clv__node_add(&clv__op_matmul, &attrs, (clv_tensor *[]){a, b}, 2, 0);
}

/** All but the last dimension as one: a view. */
static clv_tensor *as_rows(clv_tensor *x) {
    clv_shape shape = clv_tensor_shape(x);
    if (shape.rank == 2 || shape.rank == 0) return x;
    return clv_reshape(x, CLV_SHAPE(leading(&shape, 1), shape.dims[shape.rank - 1]));
}

static void matmul_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const matmul_attrs *attrs = clv__node_attrs(node);
    bool ta = attrs->transpose_a, tb = attrs->transpose_b;
    clv_tensor *a = clv__node_in(node, 0), *b = clv__node_in(node, 1), *dc = dy[0];
    clv_shape a_shape = clv_tensor_shape(a), b_shape = clv_tensor_shape(b);
    if (clv__wants_grad(node, 0)) {
        dx[0] = ta ? matmul_node(b, tb, dc, true) : matmul_node(dc, false, b, !tb);
        if (a_shape.rank < b_shape.rank) dx[0] = clv_sum_to(dx[0], a_shape);
    }
    if (clv__wants_grad(node, 1)) {
        bool shared = b_shape.rank < a_shape.rank; // b met every matrix of a's batch
        if (shared && !ta) {                       // then the batch is part of the sum
            a = as_rows(a);
            dc = as_rows(dc);
        }
        dx[1] = tb ? matmul_node(dc, true, a, ta) : matmul_node(a, !ta, dc, false);
        if (shared && ta) dx[1] = clv_sum_to(dx[1], b_shape);
    }
}

#define ROW(what, ta, tb, quick_, a, b)                                                                      \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS a, CLV__DIMS b}, .attrs = &(matmul_attrs){ta, tb}, .quick = quick_,  \
        .n_in = 2                                                                                            \
    }
// Beyond the last term a tile has zeros, of both matrices: of one alone the other's last term, if that is there again, would make NaN.
#define INFINITE(what, ta, tb, of_a, of_b, a, b)                                                             \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS a, CLV__DIMS b}, .attrs = &(matmul_attrs){ta, tb}, .n_in = 2,        \
        .fill = {{CLV__FILL_##of_a, -1, 1}, {CLV__FILL_##of_b, -1, 1}}, .no_gradient = true                  \
    }
static const clv__sample_row matmul_samples[] = {
    ROW("one element", 0, 0, true, (1, 1), (1, 1)),
    ROW("primes", 0, 0, true, (13, 7), (7, 31)),
    ROW("primes, a transposed", 1, 0, true, (7, 13), (7, 31)),
    ROW("primes, b transposed", 0, 1, true, (13, 7), (31, 7)),
    ROW("primes, both transposed", 1, 1, true, (7, 13), (31, 7)),
    ROW("whole tiles", 0, 0, false, (28, 32), (32, 64)),
    ROW("one past the tiles", 0, 0, false, (29, 33), (33, 65)),
    ROW("whole vectors", 0, 0, true, (24, 40), (40, 48)),
    ROW("whole vectors, a transposed", 1, 0, true, (40, 24), (40, 48)),
    ROW("whole vectors, b transposed", 0, 1, true, (24, 40), (48, 40)),
    ROW("whole vectors, both transposed", 1, 1, true, (40, 24), (48, 40)),
    ROW("whole vectors, more than a tile", 0, 0, false, (136, 72), (72, 200)),
    ROW("whole vectors, more than a tile, both transposed", 1, 1, false, (72, 136), (200, 72)),
    ROW("one short of the tiles, both transposed", 1, 1, false, (31, 27), (63, 31)),
    ROW("a row by a matrix", 0, 1, false, (1, 129), (17, 129)),
    ROW("a matrix by a column", 0, 0, false, (17, 129), (129, 1)),
    ROW("rank one update", 1, 0, false, (1, 33), (1, 47)),
    ROW("long sum, cut into parts", 0, 1, false, (3, 2051), (5, 2051)),
    ROW("long sum, cut into parts, a transposed", 1, 0, false, (1025, 15), (1025, 17)),
    ROW("more than a block in every dimension", 0, 0, false, (131, 300), (300, 283)),
    ROW("rows that are left fill a smaller tile", 0, 0, false, (36, 300), (300, 64)),
    ROW("rows that are left fill a smaller tile, a transposed", 1, 0, false, (300, 22), (300, 97)),
    ROW("more rows than a block, a short sum", 0, 1, false, (300, 37), (65, 37)),
    ROW("more rows than a block, a short sum, a transposed", 1, 0, false, (37, 300), (37, 65)),
    ROW("more than a block, both transposed", 1, 1, false, (270, 127), (265, 270)),
    ROW("batch", 0, 0, true, (3, 5, 6), (3, 6, 7)),
    ROW("batch, b transposed", 0, 1, false, (2, 17, 16), (2, 15, 16)),
    ROW("batch, a transposed", 1, 0, false, (2, 16, 17), (2, 16, 15)),
    ROW("batch, long sum", 0, 0, false, (2, 3, 1031), (2, 1031, 2)),
    ROW("batch, one b", 0, 1, true, (4, 3, 8), (9, 8)),
    ROW("batch, one b, a transposed", 1, 0, false, (4, 8, 3), (8, 9)),
    ROW("batch, one a", 0, 0, false, (3, 8), (4, 8, 9)),
    ROW("batch, one a, both transposed", 1, 1, false, (8, 3), (4, 9, 8)),
    ROW("two batch dimensions", 0, 1, false, (2, 3, 9, 4), (2, 3, 5, 4)),
    ROW("a sum of more than 65,535 terms", 0, 0, false, (1, 70001), (70001, 2)),
    ROW("empty sum", 0, 0, false, (3, 0), (0, 5)),
    ROW("no rows", 0, 0, false, (0, 3), (3, 5)),
    ROW("empty batch", 0, 0, false, (0, 2, 3), (0, 3, 5)),
    INFINITE("the last term of a is infinite", 0, 0, LAST_INFINITE, UNIFORM, (29, 37), (37, 65)),
    INFINITE("the last term of a is infinite, a transposed", 1, 0, LAST_INFINITE, UNIFORM, (37, 29),
             (37, 65)),
    INFINITE("the last term of b is infinite", 0, 0, UNIFORM, LAST_INFINITE, (29, 37), (37, 65)),
    INFINITE("the last term of b is infinite, b transposed", 0, 1, UNIFORM, LAST_INFINITE, (29, 37),
             (65, 37)),
    INFINITE("the last term of a is infinite, few rows", 0, 0, LAST_INFINITE, UNIFORM, (3, 37), (37, 65)),
    INFINITE("the last term of b is infinite, few rows", 0, 1, UNIFORM, LAST_INFINITE, (3, 37), (65, 37)),
    {0},
};
#undef ROW
#undef INFINITE

/** Along the batch, the rows, the columns, or the sums. */
static bool matmul_split(const clv__op_io *io, int i, clv__split *out) {
    const clv_shape *a = &io->in[0].shape, *b = &io->in[1].shape, *c = &io->out[0].shape;
    const matmul_attrs *attrs = io->attrs;
    const int a_row = a->rank - 2, b_row = b->rank - 2;
    if (i == 0 && c->rank > 2) { // there is a batch
        out->length = c->dims[0];
        out->out[0] = 0;
        if (a->rank == c->rank) out->in[0] = 0;
        if (b->rank == c->rank) out->in[1] = 0;
    } else if (i == 1) {
        out->in[0] = (int8_t)(attrs->transpose_a ? a_row + 1 : a_row);
        out->out[0] = (int8_t)(c->rank - 2);
        out->length = c->dims[c->rank - 2];
    } else if (i == 2) {
        out->in[1] = (int8_t)(attrs->transpose_b ? b_row : b_row + 1);
        out->out[0] = (int8_t)(c->rank - 1);
        out->length = c->dims[c->rank - 1];
    } else if (i == 3) {
        out->in[0] = (int8_t)(attrs->transpose_a ? a_row : a_row + 1);
        out->in[1] = (int8_t)(attrs->transpose_b ? b_row + 1 : b_row);
        out->out[0] = CLV__SPLIT_SUM;
        out->length = a->dims[out->in[0]];
    }
    return i < 4;
}

#define COMMON                                                                                               \
    .epilogue = true, .channels = -1, .half_out = 1, .autocast = CLV__CAST_HALF,                             \
    .variants = product_variants, .reference = product_reference, .cost = product_cost,                      \
    .reduction = product_reduction

/** Give both the batch dimensions of NumPy's broadcasting, where they are not what infer takes as they are. */
static void broadcast_batches(clv_tensor **a, clv_tensor **b) {
    clv_shape sa = clv_tensor_shape(*a), sb = clv_tensor_shape(*b);
    if (sa.rank <= 2 || sb.rank <= 2) return;
    int rank = sa.rank > sb.rank ? sa.rank : sb.rank;
    clv_shape wa = {.rank = rank}, wb = {.rank = rank};
    for (int i = 0; i < rank; i++) { // from the end
        int64_t da = i < sa.rank ? sa.dims[sa.rank - 1 - i] : 1,
                db = i < sb.rank ? sb.dims[sb.rank - 1 - i] : 1;
        if (i >= 2 && da != db && da != 1 && db != 1) return; // infer tells
        wa.dims[rank - 1 - i] = i < 2 || da != 1 ? da : db;
        wb.dims[rank - 1 - i] = i < 2 || db != 1 ? db : da;
    }
    if (!clv_shape_equal(&sa, &wa)) *a = clv_broadcast_to(*a, wa);
    if (!clv_shape_equal(&sb, &wb)) *b = clv_broadcast_to(*b, wb);
}

static clv_tensor *build_matmul(const clv__call *call) {
    clv_tensor *a = call->in[0], *b = call->in[1];
    bool transpose_a = ((const matmul_attrs *)call->attrs)->transpose_a,
         transpose_b = ((const matmul_attrs *)call->attrs)->transpose_b;
    clv_shape sa = clv_tensor_shape(a), sb = clv_tensor_shape(b);
    bool vector_a = sa.rank == 1, vector_b = sb.rank == 1;
    if (vector_a) {
        a = clv_reshape(a, CLV_SHAPE(1, sa.dims[0]));
        transpose_a = false;
    }
    if (vector_b) {
        b = clv_reshape(b, CLV_SHAPE(sb.dims[0], 1));
        transpose_b = false;
    }
    clv_tensor *x = transpose_a || vector_b ? NULL : a, *weight = b;
    broadcast_batches(&a, &b);
    clv_tensor *c = matmul_node(a, transpose_a, b, transpose_b);
    if (x) c = clv__lora_add(c, x, weight, !transpose_b);
    if (!c || (!vector_a && !vector_b)) return c;
    clv_shape with = clv_tensor_shape(c), without = {0};
    for (int i = 0; i < with.rank; i++) {
        bool dropped = (vector_a && i == with.rank - 2) || (vector_b && i == with.rank - 1);
        if (!dropped) without.dims[without.rank++] = with.dims[i];
    }
    return clv_reshape(c, without);
}

CLV__COMPOSITE(matmul_t) = {
    .name = "matmul_t", // as matmul is; files of older graphs have it
    .inputs = CLV__INPUTS({"a", "f32"}, {"b", "f32"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(BOOL, matmul_attrs, transpose_a, "0")},
                                  {CLV__ATTRIBUTE(BOOL, matmul_attrs, transpose_b, "0")}),
    .outputs = CLV__OUTPUTS({"y", "f32"}),
    .attributes_of_call = true,
    .attrs_bytes = sizeof(matmul_attrs),
    .samples = CLV__TRAINS(((const clv__sample_row[]){{.label = "b turned",
                                                       .quick = true,
                                                       .in = {CLV__DIMS(2, 3), CLV__DIMS(4, 3)},
                                                       .attrs = &(matmul_attrs){0, 1},
                                                       .n_in = 2},
                                                      {.label = "a turned, batches",
                                                       .in = {CLV__DIMS(5, 3, 2), CLV__DIMS(3, 4)},
                                                       .attrs = &(matmul_attrs){1, 0},
                                                       .n_in = 2},
                                                      {0}})),
    .build = build_matmul};

CLV__OP(matmul) = {.name = "matmul",
                   .inputs = CLV__INPUTS({"a", "f32"}, {"b", "f32"}),
                   .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(BOOL, matmul_attrs, transpose_a, "0")},
                                                 {CLV__ATTRIBUTE(BOOL, matmul_attrs, transpose_b, "0")}),
                   .outputs = CLV__OUTPUTS({"y", "f32"}),
                   .build = build_matmul,
                   .attrs_bytes = sizeof(matmul_attrs),
                   .half_in = 3,
                   .infer = matmul_infer,
                   .grad = CLV__TRAINS(matmul_grad),
                   .samples = CLV__TRAINS(matmul_samples),
                   .split = matmul_split,
                   COMMON};

// ---- linear -----------------------------------------------------------------------------------------------

static void linear_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *x = clv__node_in(node, 0), *weight = clv__node_in(node, 1);
    clv_tensor *rows = as_rows(dy[0]);
    if (clv__wants_grad(node, 0)) {
        clv_tensor *dx_rows = matmul_node(rows, false, weight, false);
        dx[0] = clv_tensor_shape(x).rank == 2 ? dx_rows : clv_reshape(dx_rows, clv_tensor_shape(x));
    }
    if (clv__wants_grad(node, 1)) dx[1] = matmul_node(rows, true, as_rows(x), false);
    if (clv__wants_grad(node, 2)) dx[2] = clv_sum(rows, (int[]){0}, 1, false);
}

#define ROW(what, x_, rows, columns, bias, quick_)                                                           \
    {                                                                                                        \
        .label = what, .in = {CLV__DIMS x_, CLV__DIMS(rows, columns), CLV__DIMS(rows)},                      \
        .left_out = (bias) ? 0 : 1u << 2, .quick = quick_, .n_in = 3                                         \
    }
static const clv__sample_row linear_samples[] = {
    ROW("one element", (1, 1), 1, 1, 1, true),
    ROW("primes", (5, 7), 3, 7, 1, true),
    ROW("without bias", (5, 7), 3, 7, 0, true),
    ROW("one row", (19), 11, 19, 1, false),
    ROW("one row, long", (191), 33, 191, 1, true),
    ROW("three dimensions", (2, 3, 8), 5, 8, 1, true),
    ROW("one past the tiles", (15, 17), 33, 17, 1, false),
    ROW("long sum, cut into parts", (9, 1537), 33, 1537, 1, false),
    ROW("ten classes", (64, 128), 10, 128, 1, false),
    ROW("more than a block", (130, 270), 290, 270, 1, false),
    ROW("no features", (3, 0), 4, 0, 1, false),
    ROW("no rows", (0, 3), 4, 3, 1, false),
    {0},
};
#undef ROW

/** Along the rows of x, or those of weight, the result's columns; or, without a bias, along the sums. */
static bool linear_split(const clv__op_io *io, int i, clv__split *out) {
    const int last = io->in[0].shape.rank - 1;
    const clv_shape *weight = &io->in[1].shape;
    if (i == 0 && last > 0) {
        out->in[0] = out->out[0] = 0;
        out->length = io->in[0].shape.dims[0];
    } else if (i == 1) {
        out->in[1] = 0;
        if (clv__has_in(io, 2)) out->in[2] = 0;
        out->out[0] = (int8_t)last;
        out->length = weight->dims[0];
    } else if (i == 2 && !clv__has_in(io, 2)) {
        out->in[0] = (int8_t)last;
        out->in[1] = 1;
        out->out[0] = CLV__SPLIT_SUM;
        out->length = weight->dims[1];
    }
    return i < 3;
}

static clv_tensor *build_linear(const clv__call *call) {
    clv_tensor *x = call->in[0], *weight = call->in[1];
    return clv__lora_add(clv__linear_node(x, weight, call->in[2]), x, weight, false);
}

CLV__OP(linear) = {.name = "linear",
                   .build = build_linear,
                   .inputs = CLV__INPUTS({"x", "f32[*,C]"}, {"weight", "f32[O,C]"}, {"bias", "f32[O]?"}),
                   .outputs = CLV__OUTPUTS({"y", "f32[*,O]"}),
                   .half_in = 1, // weight and bias are parameters: f32
                   .grad = CLV__TRAINS(linear_grad),
                   .samples = CLV__TRAINS(linear_samples),
                   .split = linear_split,
                   COMMON};

clv_tensor *clv__linear_node(clv_tensor *x, clv_tensor *weight, clv_tensor *bias) {
    return clv__node_add(&clv__op_linear, NULL, (clv_tensor *[]){x, weight, bias}, 3, 1u << 2);
}
