// SPDX-License-Identifier: Apache-2.0
// Sums, and products, along an axis of all elements up to each. Kernels: kernels_cl/cumsum.cl.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct cumsum_attrs {
    int axis, exclusive, reverse;
} cumsum_attrs;

/** x as [outer, V, inner]. */
typedef struct lines {
    int64_t outer, V, inner;
} lines;

static int axis_of(const clv__op_io *io) {
    const int axis = ((const cumsum_attrs *)io->attrs)->axis;
    return axis < 0 ? axis + io->in[0].shape.rank : axis;
}

/** Products, not sums? */
static bool multiplies(const clv__op_io *io) {
    return io->op->data != NULL;
}

static lines lines_of(const clv__op_io *io) {
    const clv_shape *shape = &io->in[0].shape;
    const int axis = axis_of(io);
    return (lines){clv__dims_product(shape, 0, axis), shape->dims[axis],
                   clv__dims_product(shape, axis + 1, shape->rank)};
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    int axis;
    CLV_TRY(clv__want_axis(((const cumsum_attrs *)io->attrs)->axis, io->in[0].shape.rank, &axis, error));
    return clv__one_out(io, io->in[0]);
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const cumsum_attrs *a = clv__node_attrs(node);
    if (clv__wants_grad(node, 0)) dx[0] = clv_cumsum(dy[0], a->axis, a->exclusive, !a->reverse);
}

static int64_t place_of(const lines *l, int64_t line, int64_t t) {
    return (line / l->inner * l->V + t) * l->inner + line % l->inner;
}

static void reference(const clv__ref *ref) {
    const cumsum_attrs *a = ref->io->attrs;
    const lines l = lines_of(ref->io);
    for (int64_t line = 0; line < l.outer * l.inner; line++) {
        double sum = multiplies(ref->io);
        for (int64_t t = 0; t < l.V; t++) {
            const int64_t at = place_of(&l, line, a->reverse ? l.V - 1 - t : t);
            const double before = sum;
            sum = multiplies(ref->io) ? sum * ref->in[0][at] : sum + ref->in[0][at];
            ref->out[0][at] = a->exclusive ? before : sum;
        }
    }
}

/** Each element's share in all products that it is a factor of. */
static void cumprod_backward_reference(const clv__ref *ref) {
    const cumsum_attrs *a = ref->io->attrs;
    const lines l = lines_of(ref->io);
    const double *dy = ref->in[0], *x = ref->in[1];
    clv__ref_zero(ref);
    for (int64_t i = 0; i < l.outer * l.inner * l.V * l.V; i++) {
        const int64_t line = i / l.V / l.V, t = i / l.V % l.V,
                      y = i % l.V; // the element, and the product's last one
        if (y < t || (a->exclusive && y == t)) continue;
        double others = dy[place_of(&l, line, a->reverse ? l.V - 1 - y : y)];
        for (int64_t k = 0; k < y + !a->exclusive; k++)
            if (k != t) others *= x[place_of(&l, line, a->reverse ? l.V - 1 - k : k)];
        ref->out[0][place_of(&l, line, a->reverse ? l.V - 1 - t : t)] += others;
    }
}

static int64_t reduction(const clv__op_io *io) {
    return lines_of(io).V;
}

static bool split(const clv__op_io *io, int i, clv__split *out) {
    if (i != axis_of(io)) clv__split_all(io, i, out);
    return i < io->in[0].shape.rank;
}

// ---- launches ---------------------------------------------------------------------------------------------

enum { ITEMS = 256 };

static void define_types(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    if (io->in[0].dtype == CLV_DTYPE_I32) {
        clv__launch_define(list, launch, "T_X", "int");
        clv__launch_define(list, launch, "T_Y", "int");
        clv__launch_define(list, launch, "SUM", "int");
    }
    clv__define_number(list, launch, "PRODUCT", multiplies(io), 0);
}

/** The sums of the chunks before each chunk of each line; of one chunk nothing. Groups: how chunks are added up. */
static clv__part parts_of(clv__launches *list, const clv__op_io *io, const lines *l, int64_t length,
                          int64_t chunks, bool groups) {
    const int reverse = ((const cumsum_attrs *)io->attrs)->reverse;
    const int64_t n = l->outer * l->inner;
    const clv__part part = clv__floats(list, chunks > 1 ? n * chunks : 0); // or as many ints
    if (!part.bytes) return part;
    clv__launch *launch = groups
                              ? clv__launch_kernel(list, "cumsum", "cumsum_group_sums")
                              : clv__launch_items(list, "cumsum", "cumsum_sums", CLV__ELEMENTS, n * chunks);
    define_types(list, launch, io);
    CLV__ARGS(list, launch, io, "w i0=T_X", .part = part);
    if (groups)
        CLV__ARGS_I32(list, launch, l->V, length, chunks, reverse);
    else
        CLV__ARGS_I32(list, launch, n, l->V, l->inner, length, chunks, reverse);
    if (groups) clv__launch_grid(launch, (size_t)(n * chunks * ITEMS), ITEMS);
    launch = clv__launch_items(list, "cumsum", "cumsum_parts", CLV__ELEMENTS, n);
    define_types(list, launch, io);
    CLV__ARGS(list, launch, NULL, "w", .part = part, CLV__INTS(n, chunks));
    return part;
}

static void result(clv__launches *list, clv__launch *launch, const clv__op_io *io, clv__part part) {
    define_types(list, launch, io);
    clv__arg_tensors(list, launch, io, "o0=T_Y i0=T_X");
    if (part.bytes)
        clv__arg_part(list, launch, part);
    else
        clv__arg_in(list, launch, 0); // any
}

/** Lines of up to so many elements are one chunk; of longer ones there are chunks for that many items. */
static void plain(clv__launches *list, const clv__op_io *io) {
    enum { WHOLE = 4096, LEAST = 1024, MOST_CHUNKS = 4096 };
    const cumsum_attrs *a = io->attrs;
    const lines l = lines_of(io);
    const int64_t n = l.outer * l.inner;
    if (n * l.V == 0) return;
    const int64_t length = l.V <= WHOLE ? l.V : clv__max64(LEAST, clv__div_up(l.V, MOST_CHUNKS)),
                  chunks = clv__div_up(l.V, length);
    const clv__part part = parts_of(list, io, &l, length, chunks, false);
    clv__launch *launch = clv__launch_items(list, "cumsum", "cumsum_lines",
                                            l.V > LEAST ? CLV__TASKS : CLV__ELEMENTS, n * chunks);
    result(list, launch, io, part);
    CLV__ARGS_I32(list, launch, n, l.V, l.inner, length, chunks, a->reverse, a->exclusive);
}

static bool columns_support(const clv_device_info *device, const clv__op_io *io) {
    const lines l = lines_of(io);
    return clv__threads(device) && l.inner >= clv__tile_lanes(device) && clv__loops_fit(device, l.V);
}

static void columns(clv__launches *list, const clv__op_io *io) {
    const cumsum_attrs *a = io->attrs;
    const lines l = lines_of(io);
    const int lanes = clv__tile_lanes(list->device);
    const int64_t across = clv__div_up(l.inner, lanes), n = l.V ? l.outer * across : 0;
    clv__launch *launch = clv__launch_items(list, "cumsum", "cumsum_columns", CLV__TASKS, n);
    define_types(list, launch, io);
    clv__define_number(list, launch, "VW", lanes, 16);
    clv__arg_tensors(list, launch, io, "o0=T_Y i0=T_X");
    CLV__ARGS_I32(list, launch, n, l.V, l.inner, across, a->reverse, a->exclusive);
}

/** Neighbours of a line lie side by side: of lanes, groups bring them to local memory. */
static bool groups_support(const clv_device_info *device, const clv__op_io *io) {
    const lines l = lines_of(io);
    return l.inner == 1 && l.V > 1 && device->loop_turns == 0 && device->max_work_group >= ITEMS &&
           clv__tile_local_bytes(device) >= 4 * (ITEMS * 5 + 2 * ITEMS);
}

static void groups(clv__launches *list, const clv__op_io *io) {
    enum { LENGTH = 8192 };
    const cumsum_attrs *a = io->attrs;
    const lines l = lines_of(io);
    if (l.outer * l.V == 0) return;
    const int64_t length = clv__min64(l.V, LENGTH), chunks = clv__div_up(l.V, length);
    const clv__part part = parts_of(list, io, &l, length, chunks, true);
    clv__launch *launch = clv__launch_kernel(list, "cumsum", "cumsum_group");
    result(list, launch, io, part);
    CLV__ARGS_I32(list, launch, l.V, length, chunks, a->reverse, a->exclusive);
    clv__launch_grid(launch, (size_t)(l.outer * chunks * ITEMS), ITEMS);
}

static const clv__variant variants[] = {
    {.name = "plain", .lower = plain},
    {"columns", columns_support, .lower = columns, .relative = 0.15},
    {"groups", groups_support, .lower = groups, .relative = 0.2, .lanes = true},
    {0}};

static void cumprod_backward(clv__launches *list, const clv__op_io *io) {
    const cumsum_attrs *a = io->attrs;
    const lines l = lines_of(io);
    CLV__LAUNCH(list, io, "cumsum", "cumprod_backward", l.V > 64 ? CLV__TASKS : CLV__ELEMENTS,
                l.V ? l.outer * l.inner : 0, "o0 i0=T_Y i1=T_X",
                CLV__INTS(l.outer * l.inner, l.V, l.inner, a->reverse, a->exclusive));
}

static bool backward_supports(const clv_device_info *device, const clv__op_io *io) {
    return clv__loops_fit(device, 2 * lines_of(io).V);
}

static bool backward_groups_support(const clv_device_info *device, const clv__op_io *io) {
    const lines l = lines_of(io);
    return l.inner == 1 && l.V > 1 && device->loop_turns == 0 && device->max_work_group >= ITEMS &&
           clv__tile_local_bytes(device) >= 4 * (2 * ITEMS * 5 + 4 * ITEMS);
}

/** What stands before each element, as cumprod makes it, and from that the gradient. */
static void backward_groups(clv__launches *list, const clv__op_io *io) {
    const cumsum_attrs *a = io->attrs;
    const lines l = lines_of(io);
    const clv__part before = clv__floats(list, l.outer * l.V);
    if (!before.bytes) return;
    clv__launch *launch = clv__launch_kernel(list, "cumsum", "cumsum_group");
    clv__define_number(list, launch, "PRODUCT", 1, 0);
    CLV__ARGS(list, launch, io, "w i1=T_X i1", .part = before, CLV__INTS(l.V, l.V, 1, a->reverse, 1));
    clv__launch_grid(launch, (size_t)(l.outer * ITEMS), ITEMS);
    launch = clv__launch_kernel(list, "cumsum", "cumprod_backward_group");
    CLV__ARGS(list, launch, io, "o0 i0=T_Y i1=T_X w", .part = before,
              CLV__INTS(l.V, a->reverse, a->exclusive));
    clv__launch_grid(launch, (size_t)(l.outer * ITEMS), ITEMS);
}

static const clv__variant backward_variants[] = {
    {"plain", backward_supports, .lower = cumprod_backward},
    {"groups", backward_groups_support, .lower = backward_groups, .relative = 0.2, .lanes = true},
    {0}};

// ---- the op -----------------------------------------------------------------------------------------------

#define ROW(text, axis, exclusive, reverse, ...)                                                             \
    .label = text, .in = {CLV__DIMS(__VA_ARGS__)}, .attrs = &(cumsum_attrs) {                                \
        axis, exclusive, reverse                                                                             \
    }
static const clv__sample_row samples[] = {
    {ROW("rows of 33", 1, 0, 0, 7, 33), .quick = true},
    {ROW("rows of 17, reverse", -1, 0, 1, 3, 17), .quick = true},
    {ROW("first axis, exclusive", 0, 1, 0, 9, 19), .quick = true},
    {ROW("middle axis, exclusive, reverse", 1, 1, 1, 2, 5, 6), .quick = true},
    {ROW("middle axis, inner 16", 1, 0, 0, 3, 4, 16)},
    {ROW("one element", 0, 0, 0, 1)},
    {ROW("axis of one, exclusive", 1, 1, 0, 3, 1, 2)},
    {ROW("rows of 1025", 1, 0, 1, 3, 1025)},
    {ROW("a long row", 0, 0, 0, 8193)},
    {ROW("a very long row", 1, 1, 0, 1, 66001), .no_gradient = true},
    {ROW("long columns", 0, 0, 1, 5003, 3)},
    {ROW("no elements along the axis", 1, 0, 0, 3, 0)},
    {ROW("no rows", 1, 0, 0, 0, 5)},
    {ROW("integers", 1, 0, 0, 5, 40), .fill = {{CLV__FILL_INTEGER, -99, 99}}, .i32 = 1, .no_gradient = true},
    {ROW("integers, columns, reverse", 0, 1, 1, 9, 20), .fill = {{CLV__FILL_INTEGER, -99, 99}}, .i32 = 1,
     .no_gradient = true},
    {0}};

#define NEAR(lo, hi) .fill = {{0, lo, hi}}
static const clv__sample_row cumprod_samples[] = {
    {ROW("rows of 33", 1, 0, 0, 7, 33), NEAR(0.7, 1.3), .quick = true},
    {ROW("first axis, exclusive", 0, 1, 0, 9, 19), NEAR(-1.3, 1.3), .quick = true},
    {ROW("middle axis, exclusive, reverse", 1, 1, 1, 2, 5, 6), NEAR(-1.3, 1.3), .quick = true},
    {ROW("middle axis, inner 16, reverse", 1, 0, 1, 3, 4, 16), NEAR(0.7, 1.3)},
    {ROW("zeros among them", 1, 0, 0, 5, 6), .fill = {{CLV__FILL_INTEGER, -1, 1}}},
    {ROW("zeros among them, exclusive", 0, 1, 0, 6, 5), .fill = {{CLV__FILL_INTEGER, -1, 1}}},
    {ROW("one element", 0, 0, 0, 1)},
    {ROW("rows of 1025", 1, 0, 1, 2, 1025), NEAR(0.999, 1.001), .no_gradient = true},
    {ROW("no elements along the axis", 1, 0, 0, 3, 0)},
    {0}};
#undef NEAR
#undef ROW

#define CUM(id, TYPE)                                                                                        \
    .name = #id, .inputs = CLV__INPUTS({"x", TYPE}),                                                         \
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, cumsum_attrs, axis, NULL)},                           \
                                  {CLV__ATTRIBUTE(BOOL, cumsum_attrs, exclusive, "0")},                      \
                                  {CLV__ATTRIBUTE(BOOL, cumsum_attrs, reverse, "0")}),                       \
    .outputs = CLV__OUTPUTS({"y", "like x"}), .attrs_bytes = sizeof(cumsum_attrs), .half_in = 1,             \
    .half_out = 1, .autocast = CLV__CAST_FLOAT, .infer = infer, .variants = variants,                        \
    .reference = reference, .reduction = reduction, .split = split
CLV__OP(cumsum) = {CUM(cumsum, "f32|i32"), .grad = CLV__TRAINS(grad), .samples = CLV__TRAINS(samples)};

static const int product = 1;
extern const clv__op clv__op_cumprod;
CLV__TRAIN_OP(cumprod_backward) = {
    CLV__GRADIENT_OF(cumprod, "d0 i0 g0"), .attrs_bytes = sizeof(cumsum_attrs),     .half_in = 3,
    .variants = backward_variants,         .reference = cumprod_backward_reference, .reduction = reduction};
CLV__OP(cumprod) = {CUM(cumprod, "f32"), .data = &product, CLV__GRADIENT(cumprod),
                    .samples = CLV__TRAINS(cumprod_samples)};
