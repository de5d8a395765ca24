// SPDX-License-Identifier: Apache-2.0
// Programs over rows, for ops that load the elements of a row, reduce them and store: softmax, losses, norms, sums, argmax. An
// op says what is its own as OpenCL C (kernels_cl/rows.cl explains the words); how rows are cut and by whom they are done is here.
#ifndef CLV_OPS_ROWS_H
#define CLV_OPS_ROWS_H

#include "ops/lower.h"

/** Element j of row r is at r / inner * major + r % inner * minor + j / length * far + j % length * near, j < count. */
typedef struct clv__row_walk {
    int64_t rows, count, inner, major, minor, length, far, near;
} clv__row_walk;

/** Rows along the middle of [outer, D, inner]. */
static inline clv__row_walk clv__row_middle(int64_t outer, int64_t D, int64_t inner) {
    return (clv__row_walk){.rows = outer * inner,
                           .count = D,
                           .inner = inner,
                           .major = D * inner,
                           .minor = 1,
                           .length = D,
                           .near = inner};
}
/** Channels of [N, C, S]. */
static inline clv__row_walk clv__row_channels(int64_t N, int64_t C, int64_t S) {
    return (clv__row_walk){
        .rows = C, .count = N * S, .inner = C, .minor = S, .length = S, .far = C * S, .near = 1};
}

/** The macros of kernels_cl/rows.cl without their ROW_; NULL: the default. */
typedef struct clv__row_program {
    const char *params; // without the scratch memory's and the scalars', if there are any, they are not whole
    const char *tensors; // the first of them, as clv__args has them
    const char *begin, *once, *load;
    const char *gather, *join, *start0, *start1, *type1;
    int planes;
    const char *finish, *result, *store, *after;
    bool run;     // x is read by ROW_X alone, and y stored by ROW_Y
    bool vectors; // the text is for vectors, too: REAL, GET, PUT
} clv__row_program;

/** The state of a softmax: the largest element, and sum(exp(x - largest)). */
#define CLV__ROW_LOG_SUM_EXP                                                                                 \
    .planes = 2, .start0 = "-INFINITY",                                                                      \
    .gather = "EACH(s0 = fmax(s0, a[k]);) EACH(s1 += a[k] == -INFINITY ? 0.0f : exp(a[k] - s0);)",           \
    .join = "{ const float m = fmax(s0, t0); "                                                               \
            "s1 = (s0 == m ? s1 : s1 * exp(s0 - m)) + (t0 == m ? t1 : t1 * exp(t0 - m)); s0 = m; }"
/** The sum of a; the sums of a and b. */
#define CLV__ROW_SUM .planes = 1, .gather = "EACH(s0 += a[k];)", .join = "s0 += t0;"
#define CLV__ROW_SUMS .planes = 2, .gather = "EACH(s0 += a[k]; s1 += b[k];)", .join = "s0 += t0; s1 += t1;"
/** Mean, sum of squared differences from it, number of elements (Chan, Golub, LeVeque 1983, the pairwise formula). */
#define CLV__ROW_MOMENTS                                                                                     \
    .planes = 3,                                                                                             \
    .gather = "EACH(s0 += a[k]; s2 += 1.0f;) s0 /= fmax(s2, 1.0f); "                                         \
              "EACH(s1 += (a[k] - s0) * (a[k] - s0);)",                                                      \
    .join = "{ const REAL d = t0 - s0; const REAL share = t2 / fmax(s2 + t2, 1.0f); "                        \
            "s1 += t1 + d * (d * share) * s2; s0 += d * share; s2 += t2; }"

/** A use of a program. Its arguments: the tensors, the scratch memory, the scalars. */
typedef struct clv__rows {
    const clv__row_program *program;
    clv__row_walk walk;
    clv__part scratch; // of the workspace; no bytes: none
    int n_ints, n_floats;
    int64_t ints[2];
    float floats[2];
} clv__rows;

// The number of the variant at hand says by whom rows are done: groups of items do a row, or several rows, together; else an item does
// a row, or, by vectors, rows, as threads do.
enum { CLV__BY_ITEMS, CLV__BY_GROUPS, CLV__BY_VECTORS };

/** Append the launches. */
void clv__rows_lower(clv__launches *list, const clv__op_io *io, const clv__rows *use);
#define CLV__ROWS(list, io, ...) clv__rows_lower(list, io, &(clv__rows){__VA_ARGS__})
/** The states alone, a plane of one float for each row after the other. */
clv__part clv__rows_states(clv__launches *list, const clv__op_io *io, const clv__rows *use);
/** How many partial sums over rows `after` of the program has to write, if groups do the rows; 0: they do not, or the rows are too long
 *  for it, and what is launched must be a program without `after`. */
int64_t clv__rows_partials(const clv__launches *list, const clv__op_io *io, const clv__rows *use);
/** Output 0, the sum of n floats of the workspace over the divisor. */
void clv__rows_total(clv__launches *list, const clv__op_io *io, clv__part from, int64_t n, float divisor);

/** Can groups of items do rows here? */
bool clv__rows_groups(const clv_device_info *device, const clv__op_io *io);
/** Can vectors do these rows here? */
bool clv__rows_vectors(const clv_device_info *device, const clv__rows *use);
/** The variant that lets groups do them, of an op whose use is the same for all. */
#define CLV__ROWS_GROUPS(supports_, lower_)                                                                  \
    { "groups", supports_, .lower = lower_, .relative = 0.1, .lanes = true, .number = CLV__BY_GROUPS }
#define CLV__ROWS_VECTORS(supports_, lower_)                                                                 \
    { "vector", supports_, .lower = lower_, .relative = 0.2, .number = CLV__BY_VECTORS }

// ---- ops that are such a program and nothing else -------------------------------------------------------------------

/** One row of a reference: where its elements begin in each tensor, `step` apart. What has one element a row is by its number. */
typedef struct clv__row_ref {
    double *in[CLV__ROW_INPUTS], *out[CLV__MAX_OUT];
    int64_t D, step;
    const void *attrs;
} clv__row_ref;

/** What a descriptor's `data` points to. Rows lie along a dimension of input 0, of a gradient along one of output 0. */
typedef struct clv__row_op {
    clv__row_program program;
    bool
        axis; // the attributes begin with an int that says which dimension, from the end if negative; else the last one
    int kind;     // for functions of the op's own
    double flops; // for each element
    void (*scalars)(const clv__op_io *io,
                    clv__rows *use); // the program's, if it has some; the rest of `use` is made
    void (*reference)(const clv__row_ref *row);
} clv__row_op;

static inline const clv__row_op *clv__row_op_of(const clv__op_io *io) {
    return io->op->data;
}
/** The tensor whose rows they are, as [outer, D, inner]. */
clv__row_walk clv__row_op_walk(const clv__op_io *io);
clv_status clv__row_op_infer(clv__op_io *io,
                             clv__error *error); // of an op whose result is like x: is the axis inside?
bool clv__row_op_split(const clv__op_io *io, int i, clv__split *out); // the same: along every other dimension
void clv__row_op_lower(clv__launches *list, const clv__op_io *io);
bool clv__row_op_groups(const clv_device_info *device, const clv__op_io *io);
void clv__row_op_reference(const clv__ref *ref);
void clv__row_op_cost(const clv__op_io *io, clv__cost *cost);
int64_t clv__row_op_count(const clv__op_io *io);
/** The variants that each has. */
extern const clv__variant clv__row_op_variants[];
/** What its descriptor says, but for these; of an op with variants of its own the same. */
#define CLV__ROW_OP(row) CLV__ROW_OP_BY(row, clv__row_op_variants)
#define CLV__ROW_OP_BY(row, variants_)                                                                       \
    .data = row, .variants = variants_, .reference = clv__row_op_reference, .cost = clv__row_op_cost,        \
    .reduction = clv__row_op_count

#endif
