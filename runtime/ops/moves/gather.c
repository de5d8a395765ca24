// SPDX-License-Identifier: Apache-2.0
// Moves by an index: embedding, gather and scatter in PyTorch's forms, and in ONNX's with tuples of indices.
// Each is a row that says what indexed.h has to know. The gradient of an op that takes adds; that of one that
// puts takes.
#include "cleave/ops.h"
#include "ops/indexed.h"

extern const clv__op clv__op_embedding, clv__op_gather, clv__op_index_select, clv__op_gather_nd;

#define AXIS CLV__ATTRIBUTES({CLV__ATTRIBUTE(INT, clv__indexed_attrs, axis, NULL)})
#define BATCH_DIMS                                                                                           \
    CLV__ATTRIBUTES({.name = "batch_dims",                                                                   \
                     .kind = CLV_ATTRIBUTE_INT,                                                              \
                     .fallback = "0",                                                                        \
                     .bytes = sizeof(int),                                                                   \
                     CLV__AT_LEAST(0)})

/** Fields of an op that takes, and of its gradient. */
#define TAKES(id, of, without, in, attributes_row)                                                           \
    .name = #id, .inputs = in, .attributes = attributes_row,                                                 \
    .attrs_bytes = without ? 0 : sizeof(clv__indexed_attrs), CLV__GRADIENT(id),                              \
    .samples = CLV__TRAINS(id##_samples), CLV__INDEXED_RULES, CLV__INDEXED(take, CLV__TAKE, of, without)
#define TAKES_BACKWARD(id, of, without)                                                                      \
    CLV__GRADIENT_OF(id, "d0 i1 s0 g0"),                                                                     \
        .attrs_bytes = without ? sizeof(clv_shape) : CLV__ATTRS_AND_SHAPE(clv__indexed_attrs),               \
        CLV__INDEXED(put, CLV__ADD, of, without)

/** Fields of an op that puts. */
#define PUTS(id, mode, of, in, attributes_row)                                                               \
    .name = #id, .inputs = in, .outputs = CLV__OUTPUTS({"y", "like x"}), .attributes = attributes_row,       \
    .attrs_bytes = sizeof(clv__indexed_attrs), .grad = CLV__TRAINS(put_grad),                                \
    .samples = CLV__TRAINS(id##_samples), CLV__INDEXED_RULES, CLV__INDEXED(put, mode, of, false)
#define HALVES .half_in = UINT64_MAX, .half_out = 1

// ---- gradients of what puts -------------------------------------------------------------------------------

static void put_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__op_io *io = clv__node_io(node);
    const clv__indexed *how = io->op->data;
    const clv__op *take = how->kind == CLV__ELEMENTS_OF ? &clv__op_gather
                          : how->kind == CLV__SLICES_OF ? &clv__op_index_select
                                                        : &clv__op_gather_nd;
    clv_tensor *in[] = {dy[0], clv__node_in(node, 1), NULL};
    if (clv__wants_grad(node, 2)) dx[2] = clv__node_add(take, clv__node_attrs(node), in, 2, 0);
    if (how->mode == CLV__ADD) {
        dx[0] = dy[0];
    } else if (clv__wants_grad(node, 0)) {
        in[2] = clv_full(clv__tensor_graph(dy[0]), CLV_DTYPE_F32, io->in[2].shape, 0);
        dx[0] = clv__node_add(io->op, clv__node_attrs(node), in, 3, 0);
    }
}

// ---- samples ----------------------------------------------------------------------------------------------

// Where indices are from -2 on, or to V and more, some are outside. What is copied twice to one place has no
// gradient by differences. Integers from 0 to 0 would be from -1 to 1: hence 0.5.
#define TO(last) .fill = {{0}, {CLV__FILL_INTEGER, 0, last}}, .i32 = 2
#define AGAIN(first, last) .fill = {{0}, {CLV__FILL_INTEGER, first, last}}, .i32 = 2, .no_gradient = true
#define ONCE(below) .fill = {{0}, {CLV__FILL_DISTINCT, 0, below}}, .i32 = 2
#define I32(first, last)                                                                                     \
    .fill = {{CLV__FILL_INTEGER, -99, 99}, {CLV__FILL_INTEGER, first, last}, {CLV__FILL_INTEGER, -99, 99}},  \
    .i32 = 7, .no_gradient = true
#define AT(n)                                                                                                \
    .attrs = &(clv__indexed_attrs) {                                                                         \
        n                                                                                                    \
    }
#define ROWS(what, V, D, indices, last) .label = what, .in = {CLV__DIMS(V, D), indices}, .n_in = 2, TO(last)
#define TAKE(what, axis, x, index, how) .label = what, AT(axis), .in = {x, index}, .n_in = 2, how
#define PUT(what, axis, x, index, src, how) .label = what, AT(axis), .in = {x, index, src}, .n_in = 3, how
#define D CLV__DIMS

static const clv__sample_row embedding_samples[] = {
    {ROWS("13 rows of 48, sentences", 13, 48, D(4, 9), 12), .quick = true},
    {ROWS("5 rows of 7", 5, 7, D(33), 4), .quick = true},
    {ROWS("65 rows of 19", 65, 19, D(3, 40), 64)},
    {ROWS("one row of one", 1, 1, D(1), 0.5)},
    {ROWS("one index, rank 0", 6, 17, {0}, 5)},
    {ROWS("more rows than indices", 300, 16, D(5), 299)},
    {ROWS("more indices than a chunk", 3, 2, D(16391), 2)},
    {ROWS("no indices", 4, 8, D(0, 3), 3)},
    {0}};
static const clv__sample_row gather_samples[] = {
    {TAKE("[7,5] along 0, [4,5]", 0, D(7, 5), D(4, 5), TO(6)), .quick = true},
    {TAKE("[3,9] along -1, [3,17]", -1, D(3, 9), D(3, 17), TO(8)), .quick = true},
    {TAKE("[4,6,7] along 1, less beside it", 1, D(4, 6, 7), D(3, 8, 2), TO(5)), .quick = true},
    {TAKE("[2,6,5,3] along 1, [2,9,5,3]", 1, D(2, 6, 5, 3), D(2, 9, 5, 3), TO(5))},
    {TAKE("[3,4,2,5,2] along 2, less of all", 2, D(3, 4, 2, 5, 2), D(2, 3, 7, 4, 1), TO(1))},
    {TAKE("[33] along 0, [70]", 0, D(33), D(70), TO(32))},
    {TAKE("[1] along 0, [1]", 0, D(1), D(1), TO(0.5))},
    {TAKE("[3,5] along 1, no index", 1, D(3, 5), D(3, 0), TO(4))},
    {TAKE("[5,4] along 0, from -2 on", 0, D(5, 4), D(9, 4), AGAIN(-2, 6))},
    {TAKE("[6,11] along 0, i32", 0, D(6, 11), D(9, 11), I32(-2, 7))},
    {TAKE("[64,1100] along 1, [64,1100]", 1, D(64, 1100), D(64, 1100), TO(1099))},
    {TAKE("[2,5] along 1, more than a chunk", 1, D(2, 5), D(2, 16391), TO(4))},
    {0}};
static const clv__sample_row index_select_samples[] = {
    {TAKE("4 of [7,5] along 0", 0, D(7, 5), D(4), TO(6)), .quick = true},
    {TAKE("9 of [3,6,20] along 1", 1, D(3, 6, 20), D(9), TO(5)), .quick = true},
    {TAKE("[2,3] of [2,6,4] along 1", 1, D(2, 6, 4), D(2, 3), TO(5)), .quick = true},
    {TAKE("11 of [4,5] along -1", -1, D(4, 5), D(11), TO(4))},
    {TAKE("rank 0 of [4,5,3] along 1", 1, D(4, 5, 3), {0}, TO(4))},
    {TAKE("5 of [3,4,17,2,2] along 2", 2, D(3, 4, 17, 2, 2), D(5), TO(16))},
    {TAKE("1 of [1]", 0, D(1), D(1), TO(0.5))},
    {TAKE("none of [3,5] along 1", 1, D(3, 5), D(0), TO(4))},
    {TAKE("7 of [6,32], i32", 0, D(6, 32), D(7), I32(-2, 7))},
    {TAKE("3 of [2,4,8200], longer than a work-item does", 1, D(2, 4, 8200), D(3), TO(3))},
    {0}};
static const clv__sample_row gather_nd_samples[] = {
    {TAKE("[4,5,6] by [7,2]", 0, D(4, 5, 6), D(7, 2), TO(3)), .quick = true},
    {TAKE("[2,3,4,5] by [2,6,1], batch of 2", 1, D(2, 3, 4, 5), D(2, 6, 1), TO(2)), .quick = true},
    {TAKE("[3,5] by [2,4,2], one element each", 0, D(3, 5), D(2, 4, 2), TO(2))},
    {TAKE("[2,3,4,5] by [2,3,1], batch of 2x3", 2, D(2, 3, 4, 5), D(2, 3, 1), TO(3))},
    {TAKE("[6,32] by [1], one slice", 0, D(6, 32), D(1), TO(5))},
    {TAKE("[3,4,2] by [9,2], outside, and from the end", 0, D(3, 4, 2), D(9, 2), AGAIN(-5, 4))},
    {TAKE("[3,4] by none", 0, D(3, 4), D(0, 2), TO(2))},
    {0}};
static const clv__sample_row scatter_samples[] = {
    {PUT("[20,3] along 0, [5,3]", 0, D(20, 3), D(5, 3), D(5, 3), ONCE(15)), .quick = true},
    {PUT("[3,5] along -1, [3,17]", -1, D(3, 5), D(3, 17), D(3, 17), AGAIN(0, 4)), .quick = true},
    {PUT("[4,40,5] along 1, less beside it", 1, D(4, 40, 5), D(3, 6, 2), D(3, 6, 2), ONCE(36))},
    {PUT("[70] along 0, from -2 on", 0, D(70), D(300), D(300), AGAIN(-2, 71))},
    {PUT("[1] along 0, [1]", 0, D(1), D(1), D(1), ONCE(1))},
    {PUT("[3,5] along 1, no index", 1, D(3, 5), D(3, 0), D(3, 0), TO(4))},
    {PUT("[6,11] along 0, i32", 0, D(6, 11), D(9, 11), D(9, 11), I32(0, 5))},
    {PUT("[2,5] along 1, more than a chunk", 1, D(2, 5), D(2, 16391), D(2, 16391), AGAIN(0, 4))},
    {0}};
static const clv__sample_row scatter_add_samples[] = {
    {PUT("[7,5] along 0, [12,5]", 0, D(7, 5), D(12, 5), D(12, 5), TO(6)), .quick = true},
    {PUT("[3,9] along -1, [3,17]", -1, D(3, 9), D(3, 17), D(3, 17), TO(8)), .quick = true},
    {PUT("[4,6,7] along 1, less beside it", 1, D(4, 6, 7), D(3, 8, 2), D(3, 8, 2), TO(5))},
    {PUT("[3,4,2,5,2] along 2", 2, D(3, 4, 2, 5, 2), D(3, 4, 7, 5, 2), D(3, 4, 7, 5, 2), TO(1))},
    {PUT("[900] along 0, [700]", 0, D(900), D(700), D(700), TO(899))},
    {PUT("[1] along 0, [1]", 0, D(1), D(1), D(1), TO(0.5))},
    {PUT("[3,5] along 1, no index", 1, D(3, 5), D(3, 0), D(3, 0), TO(4))},
    {PUT("[6,11] along 0, i32", 0, D(6, 11), D(9, 11), D(9, 11), I32(-2, 7))},
    {PUT("[2,5] along 1, more than a chunk", 1, D(2, 5), D(2, 16391), D(2, 16391), TO(4))},
    {PUT("[64,1100] along 1, [64,1100]", 1, D(64, 1100), D(64, 1100), D(64, 1100), TO(1099))},
    {0}};
static const clv__sample_row index_copy_samples[] = {
    {PUT("[20,3] along 0", 0, D(20, 3), D(5), D(5, 3), ONCE(20)), .quick = true},
    {PUT("[3,8,20] along 1", 1, D(3, 8, 20), D(7), D(3, 7, 20), ONCE(8)), .quick = true},
    {PUT("[4,5] along -1, places again", -1, D(4, 5), D(11), D(4, 11), AGAIN(0, 4))},
    {PUT("[1]", 0, D(1), D(1), D(1), ONCE(1))},
    {PUT("[3,5] along 1, no index", 1, D(3, 5), D(0), D(3, 0), TO(4))},
    {PUT("[6,32], i32", 0, D(6, 32), D(9), D(9, 32), I32(-2, 7))},
    {0}};
static const clv__sample_row index_add_samples[] = {
    {PUT("[7,5] along 0", 0, D(7, 5), D(12), D(12, 5), TO(6)), .quick = true},
    {PUT("[3,6,20] along 1", 1, D(3, 6, 20), D(9), D(3, 9, 20), TO(5)), .quick = true},
    {PUT("[4,5] along -1", -1, D(4, 5), D(11), D(4, 11), TO(4))},
    {PUT("[2,6,4] along 1 by [2,3]", 1, D(2, 6, 4), D(2, 3), D(2, 2, 3, 4), TO(5))},
    {PUT("[1]", 0, D(1), D(1), D(1), TO(0.5))},
    {PUT("[3,5] along 1, no index", 1, D(3, 5), D(0), D(3, 0), TO(4))},
    {PUT("[6,32], i32", 0, D(6, 32), D(9), D(9, 32), I32(-2, 7))},
    {PUT("[3,2] along 0, more than a chunk", 0, D(3, 2), D(16391), D(16391, 2), TO(2))},
    {0}};
static const clv__sample_row scatter_nd_samples[] = {
    {PUT("[9,5,6] by [7,1]", 0, D(9, 5, 6), D(7, 1), D(7, 5, 6), ONCE(7)), .quick = true},
    {PUT("[20,20] by [8,2], one element each", 0, D(20, 20), D(8, 2), D(8), ONCE(16)), .quick = true},
    {PUT("[3,4,2] by [9,2], outside, and from the end", 0, D(3, 4, 2), D(9, 2), D(9, 2), AGAIN(-5, 4))},
    {0}};
static const clv__sample_row scatter_nd_add_samples[] = {
    {PUT("[4,5,6] by [7,2]", 0, D(4, 5, 6), D(7, 2), D(7, 6), TO(3)), .quick = true},
    {PUT("[3,5] by [2,4,2], one element each", 0, D(3, 5), D(2, 4, 2), D(2, 4), TO(2)), .quick = true},
    {PUT("[2,3,5] by [2,6,1], batch of 2", 1, D(2, 3, 5), D(2, 6, 1), D(2, 6, 5), TO(2))},
    {PUT("[3,4] by none", 0, D(3, 4), D(0, 2), D(0), TO(2))},
    {0}};

// ---- the ops ----------------------------------------------------------------------------------------------

#define TAKEN(x, index) CLV__INPUTS({"x", x}, {index, "int"})
#define MOVED(x, index, src) CLV__INPUTS({"x", x}, {index, "int"}, {src, x})
#define Y(type) .outputs = CLV__OUTPUTS({"y", type})
#define NUMBERS "f32|i32"

CLV__TRAIN_OP(embedding_backward) = {TAKES_BACKWARD(embedding, CLV__SLICES_OF, true)};
CLV__OP(embedding) = {
    TAKES(embedding, CLV__SLICES_OF, true, CLV__INPUTS({"weight", "f32[V,E]"}, {"indices", "int[*]"}), NULL),
    Y("f32[*,E]")};
CLV__TRAIN_OP(gather_backward) = {TAKES_BACKWARD(gather, CLV__ELEMENTS_OF, false)};
CLV__OP(gather) = {TAKES(gather, CLV__ELEMENTS_OF, false, TAKEN("any", "index"), AXIS), HALVES, Y("any")};
CLV__TRAIN_OP(index_select_backward) = {TAKES_BACKWARD(index_select, CLV__SLICES_OF, false)};
CLV__OP(index_select) = {TAKES(index_select, CLV__SLICES_OF, false, TAKEN("any", "index"), AXIS), HALVES,
                         Y("any")};
CLV__TRAIN_OP(gather_nd_backward) = {TAKES_BACKWARD(gather_nd, CLV__TUPLES_OF, false)};
CLV__OP(gather_nd) = {TAKES(gather_nd, CLV__TUPLES_OF, false, TAKEN("any", "indices"), BATCH_DIMS), HALVES,
                      Y("any")};
CLV__OP(scatter) = {PUTS(scatter, CLV__COPY, CLV__ELEMENTS_OF, MOVED("any", "index", "src"), AXIS), HALVES};
CLV__OP(scatter_add) = {PUTS(scatter_add, CLV__ADD, CLV__ELEMENTS_OF, MOVED(NUMBERS, "index", "src"), AXIS)};
CLV__OP(index_copy) = {PUTS(index_copy, CLV__COPY, CLV__SLICES_OF, MOVED("any", "index", "source"), AXIS),
                       HALVES};
CLV__OP(index_add) = {PUTS(index_add, CLV__ADD, CLV__SLICES_OF, MOVED(NUMBERS, "index", "source"), AXIS)};
CLV__OP(scatter_nd) = {
    PUTS(scatter_nd, CLV__COPY, CLV__TUPLES_OF, MOVED("any", "indices", "updates"), BATCH_DIMS), HALVES};
CLV__OP(scatter_nd_add) = {
    PUTS(scatter_nd_add, CLV__ADD, CLV__TUPLES_OF, MOVED(NUMBERS, "indices", "updates"), BATCH_DIMS)};
