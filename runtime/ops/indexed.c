// SPDX-License-Identifier: Apache-2.0
// Moves by an index as launches of kernels_cl/indexed.cl. To put, either each element of the table looks for
// what belongs to it, or each line walks over its part of the list, or the indices are brought into order
// first. All of them add in the list's order, so their bits are the same.
#include "ops/indexed.h"

#include <math.h>
#include <string.h>

#include "ops/collapse.h"
#include "ops/lower.h"

enum {
    ORDER_ITEMS = 256, // in a group of put_order
    CHUNK = 16384,     // indices that one launch looks at: a work-item's loops stay short
    ORDERS = 64,       // lists of indices that are brought into order, at most
    RUN = 16,          // neighbours with one index that are worth vectors on a CPU
    ITEM = 8192        // elements of a run that one work-item does there
};
enum { TABLE, LIST, INDEX, POSITION }; // tensors of a walk
enum { GO_ON, FROM_ZERO, FROM_BASE };  // `begin` of the kernels

// ---- what a use is ----------------------------------------------------------------------------------------

typedef struct move {
    clv__walk walk; // over the list, dimension by dimension
    int axis;       // its dimension that the index is for
    int64_t V;      // the table's elements there
    bool partial;   // beside the axis the table has more than the list
} move;

static const clv__indexed *how_of(const clv__op_io *io) {
    return io->op->data;
}

/** The axis, counted from the front; of tuples, how many dimensions all share. */
static int attribute_of(const clv__op_io *io, int rank) {
    const int axis = how_of(io)->no_attribute ? 0 : ((const clv__indexed_attrs *)io->attrs)->axis;
    return axis < 0 ? axis + rank : axis;
}

static const clv_shape *table_of(const clv__op_io *io) {
    return how_of(io)->mode == CLV__TAKE ? &io->in[0].shape : &io->out[0].shape;
}

/** Slices of `inner` elements, n for each of `outer`, of V. */
static void move_slices(move *m, int64_t outer, int64_t n, int64_t inner) {
    const int64_t V = m->V;
    m->axis = 1;
    m->walk = (clv__walk){3, 3, {outer, n, inner}, {{V * inner, inner, 1}, {n * inner, inner, 1}, {0, 1, 0}}};
}

static move move_of(const clv__op_io *io) {
    const clv_shape *table = table_of(io), *index = &io->in[1].shape;
    move m = {.axis = attribute_of(io, table->rank)};
    if (how_of(io)->kind == CLV__TUPLES_OF) {
        const int first = m.axis + (int)index->dims[index->rank - 1];
        m.V = clv__dims_product(table, 0, first);
        move_slices(&m, 1, clv__dims_product(index, 0, index->rank - 1),
                    clv__dims_product(table, first, table->rank));
        return m;
    }
    m.V = table->dims[m.axis];
    if (how_of(io)->kind == CLV__SLICES_OF) {
        move_slices(&m, clv__dims_product(table, 0, m.axis), clv_shape_numel(index),
                    clv__dims_product(table, m.axis + 1, table->rank));
        return m;
    }
    m.walk = (clv__walk){.rank = index->rank, .n = 3};
    memcpy(m.walk.dims, index->dims, sizeof m.walk.dims);
    clv__strides_of(table, m.walk.strides[TABLE]);
    clv__strides_of(index, m.walk.strides[LIST]);
    clv__strides_of(index, m.walk.strides[INDEX]);
    for (int d = 0; d < index->rank; d++) m.partial |= d != m.axis && table->dims[d] != index->dims[d];
    return m;
}

static int64_t count(const clv__walk *walk) {
    int64_t n = 1;
    for (int d = 0; d < walk->rank; d++) n *= walk->dims[d];
    return n;
}

static int inner_of(const clv__walk *walk) {
    return walk->rank - 1;
}

static int64_t step(const move *m, int tensor) {
    return m->walk.strides[tensor][m->axis];
}

/** The list's elements in their order; in the table, where their line begins. */
static clv__walk over_list(const move *m) {
    clv__walk w = m->walk;
    w.strides[TABLE][m->axis] = 0;
    clv__walk_collapse(&w);
    return w;
}

/** The table's elements that lie on lines of the list; in list and index, where their line begins. */
static clv__walk over_table(const move *m) {
    clv__walk w = m->walk;
    w.n = 4;
    w.dims[m->axis] = m->V;
    w.strides[LIST][m->axis] = w.strides[INDEX][m->axis] = 0;
    w.strides[POSITION][m->axis] = 1;
    clv__walk_collapse(&w);
    return w;
}

static clv__walk over_lines(const move *m) {
    clv__walk w = m->walk;
    w.dims[m->axis] = 1;
    clv__walk_collapse(&w);
    return w;
}

/** Do all lines have one list of indices? */
static bool shares_index(const clv__op_io *io, const clv__walk *lines) {
    return how_of(io)->kind != CLV__ELEMENTS_OF || count(lines) == 1;
}

/** Are the innermost elements neighbours in the table, with one index? */
static bool has_runs(const clv__walk *w) {
    return w->strides[TABLE][inner_of(w)] == 1 && w->strides[LIST][inner_of(w)] == 1 &&
           (w->strides[INDEX][inner_of(w)] == 0 || count(w) == 1);
}

/** Can the innermost dimension be counted in vectors of four? */
static bool has_vectors(const clv__op_io *io, const move *m, const clv__walk *w) {
    bool fits = how_of(io)->kind != CLV__ELEMENTS_OF && has_runs(w) && w->dims[inner_of(w)] % 4 == 0;
    for (int t = TABLE; t <= LIST && fits; t++) {
        fits = step(m, t) % 4 == 0;
        for (int d = 0; d < inner_of(w); d++) fits &= w->strides[t][d] % 4 == 0;
    }
    return fits;
}

static void count_vectors(clv__launches *list, clv__launch *launch, clv__walk *w) {
    const int inner = inner_of(w);
    w->dims[inner] /= 4;
    for (int t = TABLE; t <= LIST; t++) w->strides[t][inner] *= 4;
    clv__launch_define(list, launch, "WIDE", "4");
}

/** Without the innermost dimension. */
static clv__walk without_runs(const clv__walk *walk) {
    clv__walk w = *walk;
    if (w.rank > 1)
        w.rank--;
    else
        w.dims[0] = 1;
    return w;
}

// ---- arguments --------------------------------------------------------------------------------------------

/** Tell a kernel how a tensor is stored. */
static void arg_type(clv__launches *list, clv__launch *launch, const char *macro, clv_dtype dtype) {
    if (dtype == CLV_DTYPE_F32) return;
    const bool pair = dtype == CLV_DTYPE_I64 && list->device->no_int64;
    clv__launch_define(list, launch, macro, "%s", pair ? "int2" : clv__storage(dtype));
}

/** The arguments of a walk: of the tensors that are named by their numbers. */
static void arg_walk(clv__launches *list, clv__launch *launch, const clv__walk *w, const char *tensors) {
    clv__define_number(list, launch, "RANK", w->rank, 1);
    for (int d = inner_of(w); d >= 1; d--) clv__arg_i32(list, launch, w->dims[d]);
    for (const char *t = tensors; *t; t++)
        for (int d = inner_of(w); d >= 1; d--) clv__arg_i32(list, launch, w->strides[*t - '0'][d]);
    for (const char *t = tensors; *t; t++) clv__arg_i32(list, launch, w->strides[*t - '0'][0]);
}

/** Another input for what is put, or the only one. */
static int list_of(const clv__op_io *io) {
    return io->n_in > 2 ? 2 : 0;
}

static bool has_base(const clv__op_io *io) {
    return list_of(io) > 0;
}

static void arg_types(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    const bool takes = how_of(io)->mode == CLV__TAKE;
    arg_type(list, launch, "T_OUT", io->out[0].dtype);
    arg_type(list, launch, "T_IN", io->in[takes ? 0 : list_of(io)].dtype);
    if (!takes) arg_type(list, launch, "T_BASE", io->in[0].dtype);
    if (takes && !clv__is_float(io->out[0].dtype)) clv__launch_define(list, launch, "OUTSIDE", "0");
    if (how_of(io)->mode == CLV__COPY) clv__launch_define(list, launch, "ADD", "0");
}

/** The index, which is in the workspace if there were tuples. */
static void arg_index(clv__launches *list, clv__launch *launch, clv__part rows) {
    if (rows.bytes)
        clv__arg_part(list, launch, rows);
    else
        clv__arg_in(list, launch, 1);
}

/** Tuples become the numbers of rows first. */
static clv__part flatten(clv__launches *list, const clv__op_io *io, const move *m) {
    if (how_of(io)->kind != CLV__TUPLES_OF) return (clv__part){0};
    const clv_shape *table = table_of(io), *index = &io->in[1].shape;
    const int shared = attribute_of(io, 0), tuple = (int)index->dims[index->rank - 1];
    const int64_t n = m->walk.dims[m->axis];
    const clv__part rows = {clv__launch_workspace(list, (size_t)n * sizeof(int32_t)),
                            (size_t)n * sizeof(int32_t)};
    clv__launch *launch = clv__launch_items(list, "indexed", "flat", CLV__ELEMENTS, n);
    clv__arg_part(list, launch, rows);
    clv__arg_in(list, launch, 1);
    CLV__ARGS_I32(list, launch, n, tuple, clv__dims_product(index, shared, index->rank - 1),
                  clv__dims_product(table, shared, shared + tuple));
    for (int d = shared; d < shared + CLV_MAX_RANK; d++)
        clv__arg_i32(list, launch, d < shared + tuple ? table->dims[d] : 1);
    return rows;
}

// ---- take -------------------------------------------------------------------------------------------------

static bool is(const clv__op_io *io, const char *variant) {
    return !strcmp(io->variant->name, variant);
}

/** Has the device vectors of the elements? */
static bool has_words(const clv_device_info *device, const clv__op_io *io) {
    return !device->no_int64 || clv_dtype_bytes(io->out[0].dtype) <= sizeof(int32_t);
}

static void take(clv__launches *list, const clv__op_io *io) {
    const move m = move_of(io);
    clv__walk w = over_list(&m);
    const bool wide = is(io, "vector");
    const int64_t n = clv__numel(&io->out[0]) / (wide ? 4 : 1);
    if (n == 0) return;
    const clv__part rows = flatten(list, io, &m);
    clv__launch *launch = clv__launch_items(list, "indexed", "take", CLV__ELEMENTS, n);
    if (wide) count_vectors(list, launch, &w);
    arg_types(list, launch, io);
    clv__arg_tensors(list, launch, io, "o0 i0");
    arg_index(list, launch, rows);
    CLV__ARGS_I32(list, launch, n, m.V, step(&m, TABLE));
    arg_walk(list, launch, &w, "02");
}

static bool take_rows_support(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_list(&m);
    return clv__threads(device) && has_runs(&w) && w.dims[inner_of(&w)] >= RUN && has_words(device, io);
}

static void take_rows(clv__launches *list, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_list(&m), outer = without_runs(&w);
    const int64_t n = clv__numel(&io->out[0]), length = w.dims[inner_of(&w)];
    if (n == 0) return;
    const int64_t each = clv__rows_for(length), chunks = clv__div_up(length, ITEM);
    const clv__part rows = flatten(list, io, &m);
    clv__launch *launch =
        clv__launch_items(list, "indexed", "take_rows", CLV__TASKS, clv__div_up(n / length, each) * chunks);
    arg_types(list, launch, io);
    clv__arg_tensors(list, launch, io, "o0 i0");
    arg_index(list, launch, rows);
    CLV__ARGS_I32(list, launch, n / length, each, m.V, step(&m, TABLE), length, ITEM, chunks);
    arg_walk(list, launch, &outer, "02");
}

static bool vector_supports(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_list(&m);
    return has_vectors(io, &m, &w) && has_words(device, io);
}

const clv__variant clv__take_variants[] = {
    {"plain", .lower = take},
    {"rows", take_rows_support, .lower = take_rows, .relative = 0.2},
    {"vector", vector_supports, .lower = take, .relative = 0.2, .lanes = true},
    {0}};

// ---- put --------------------------------------------------------------------------------------------------

/** Each element that the walk has of the table, from list elements first to last - 1 along the axis. */
static void launch_put(clv__launches *list, const clv__op_io *io, const move *m, const clv__walk *w,
                       clv__part rows, int64_t first, int64_t last, int begin, bool runs) {
    const clv__walk outer = without_runs(w), *walk = runs ? &outer : w;
    const int64_t n = count(walk);
    clv__launch *launch =
        clv__launch_items(list, "indexed", runs ? "put_rows" : "put", runs ? CLV__TASKS : CLV__ELEMENTS, n);
    arg_types(list, launch, io);
    clv__arg_tensors(list, launch, io, "o0 i0");
    clv__arg_in(list, launch, list_of(io));
    arg_index(list, launch, rows);
    CLV__ARGS_I32(list, launch, n, first, last, step(m, LIST), runs ? begin : step(m, INDEX),
                  runs ? w->dims[inner_of(w)] : begin);
    arg_walk(list, launch, walk, runs ? "013" : "0123");
}

/** The whole table as it is before anything is put there. */
static void start(clv__launches *list, const clv__op_io *io, const move *m) {
    const int64_t n = clv__numel(&io->out[0]);
    const size_t bytes = (size_t)n * clv_dtype_bytes(io->out[0].dtype);
    const clv__walk all = {1, 4, {n}, {{1}, {0}, {0}, {0}}};
    if (!has_base(io))
        clv__launch_fill(list, 0, bytes, 0);
    else if (io->in[0].dtype == io->out[0].dtype)
        clv__launch_copy(list, 0, 0, bytes);
    else
        launch_put(list, io, m, &all, (clv__part){0}, 0, 0, FROM_BASE, false);
}

static void put(clv__launches *list, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_table(&m);
    const bool none = count(&m.walk) == 0;
    int begin = has_base(io) ? FROM_BASE : FROM_ZERO;
    if (clv__numel(&io->out[0]) == 0) return;
    if (none || m.partial) {
        start(list, io, &m);
        begin = GO_ON;
    }
    if (none) return;
    const clv__part rows = flatten(list, io, &m);
    const int64_t K = m.walk.dims[m.axis];
    for (int64_t first = 0; first < K; first += CHUNK, begin = GO_ON)
        launch_put(list, io, &m, &w, rows, first, clv__min64(first + CHUNK, K), begin, is(io, "rows"));
}

static void put_lines(clv__launches *list, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_lines(&m);
    const int64_t n = count(&w), K = m.walk.dims[m.axis];
    if (clv__numel(&io->out[0]) == 0) return;
    start(list, io, &m);
    if (n * K == 0) return;
    const clv__part rows = flatten(list, io, &m);
    for (int64_t first = 0; first < K; first += CHUNK) {
        clv__launch *launch = clv__launch_items(list, "indexed", "put_lines", CLV__ELEMENTS, n);
        arg_types(list, launch, io);
        clv__arg_out(list, launch, 0);
        clv__arg_in(list, launch, list_of(io));
        arg_index(list, launch, rows);
        CLV__ARGS_I32(list, launch, n, m.V, first, clv__min64(first + CHUNK, K), step(&m, TABLE),
                      step(&m, LIST), step(&m, INDEX));
        arg_walk(list, launch, &w, "012");
    }
}

/** Indices in their order: whoever owns the first of a value, or the last, does that place in the table. */
static void put_ordered(clv__launches *list, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_lines(&m);
    const bool shared = shares_index(io, &w), wide = has_vectors(io, &m, &w);
    const clv__walk lists = shared ? (clv__walk){1, 3, {1}, {{0}}} : w;
    const int64_t K = m.walk.dims[m.axis], lines = count(&w) / (wide ? 4 : 1);
    if (clv__numel(&io->out[0]) == 0) return;
    start(list, io, &m);
    const clv__part rows = flatten(list, io, &m);
    const size_t bytes = 2 * sizeof(int32_t) * (size_t)(count(&lists) * clv__min64(K, CHUNK));
    const clv__part order = {clv__launch_workspace(list, bytes), bytes};
    for (int64_t first = 0; first < K; first += CHUNK) {
        const int64_t n = clv__min64(K - first, CHUNK), groups = clv__div_up(n, ORDER_ITEMS);
        clv__walk walk = w;
        clv__launch *launch = clv__launch_kernel(list, "indexed", "put_order");
        clv__arg_part(list, launch, order);
        arg_index(list, launch, rows);
        CLV__ARGS_I32(list, launch, first, n, step(&m, INDEX), groups);
        arg_walk(list, launch, &lists, "2");
        clv__launch_grid(launch, (size_t)(count(&lists) * groups) * ORDER_ITEMS, ORDER_ITEMS);
        launch = clv__launch_items(list, "indexed", "put_ordered", CLV__ELEMENTS, n * lines);
        if (wide) count_vectors(list, launch, &walk);
        arg_types(list, launch, io);
        clv__arg_out(list, launch, 0);
        clv__arg_in(list, launch, list_of(io));
        clv__arg_part(list, launch, order);
        CLV__ARGS_I32(list, launch, n, m.V, lines, shared ? 0 : n, step(&m, TABLE), step(&m, LIST),
                      first == 0 && !has_base(io));
        arg_walk(list, launch, &walk, "01");
    }
}

static bool put_rows_support(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_table(&m);
    return clv__threads(device) && how_of(io)->kind != CLV__ELEMENTS_OF && has_runs(&w) &&
           w.dims[inner_of(&w)] >= RUN && has_words(device, io);
}

static bool ordered_supports(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_lines(&m);
    return device->max_work_group >= ORDER_ITEMS && clv__numel(&io->in[1]) > 0 &&
           (shares_index(io, &w) || count(&w) <= ORDERS) && has_words(device, io) &&
           clv__tile_local_bytes(device) >= ORDER_ITEMS * sizeof(int32_t) &&
           clv__loops_fit(device, CHUNK + CHUNK / ORDER_ITEMS);
}

// How long they take, in looks at an index by as many work-items as there are at once. The table may be long
// and the list short, or the other way round, so no one number will do.

static double turns(const clv_device_info *device, int64_t items, double each) {
    const double units = device->compute_units > 0 ? device->compute_units : 1;
    const double rounds = (double)items / (clv__threads(device) ? units : 128 * units);
    return (rounds > 1 ? rounds : 1) * each;
}

/** As part of plain's. */
static double relative(const clv_device_info *device, const move *m, double time) {
    const clv__walk w = over_table(m);
    const double plain = turns(device, count(&w), (double)m->walk.dims[m->axis]);
    return plain > 0 ? time / plain : 1;
}

static double put_rows_rank(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_table(&m);
    const double rows = turns(device, count(&w) / w.dims[inner_of(&w)], (double)m.walk.dims[m.axis] / 16);
    return relative(device, &m, rows + turns(device, count(&m.walk) / 16, 1));
}

/** On a CPU a line's elements lie far apart, and nothing is a vector. */
static double put_lines_rank(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_lines(&m);
    const double each = (clv__threads(device) ? 8 : 2) * (double)m.walk.dims[m.axis];
    return relative(device, &m, turns(device, count(&w), each));
}

/** Eight indices in local memory are as long as one that is not. */
static double ordered_rank(const clv_device_info *device, const clv__op_io *io) {
    const move m = move_of(io);
    const clv__walk w = over_lines(&m);
    const int64_t K = m.walk.dims[m.axis], lists = shares_index(io, &w) ? 1 : count(&w),
                  n = clv__min64(K, CHUNK);
    if (clv__threads(device)) return 2;
    return relative(device, &m,
                    (double)clv__div_up(K, CHUNK) * turns(device, lists * n, (double)n / 8) +
                        turns(device, count(&m.walk), 1));
}

const clv__variant clv__put_variants[] = {{"plain", .lower = put},
                                          {"rows", put_rows_support, put_rows_rank, .lower = put},
                                          {"lines", .rank = put_lines_rank, .lower = put_lines},
                                          {"ordered", ordered_supports, ordered_rank, .lower = put_ordered},
                                          {0}};

// ---- reference, cost --------------------------------------------------------------------------------------

/** Where on the axis the i-th element of the list belongs; -1: nowhere. */
static int64_t place_of(const clv__ref *ref, const move *m, int64_t i) {
    const clv__op_io *io = ref->io;
    const clv_shape *index = &io->in[1].shape;
    const int64_t at = clv__walk_at(&m->walk, INDEX, i);
    if (how_of(io)->kind != CLV__TUPLES_OF) {
        const double place = ref->in[1][at];
        return place >= 0 && place < (double)m->V ? (int64_t)place : -1;
    }
    const int shared = attribute_of(io, 0), tuple = (int)index->dims[index->rank - 1];
    int64_t row = at / clv__dims_product(index, shared, index->rank - 1);
    for (int k = 0; k < tuple; k++) {
        const int64_t size = table_of(io)->dims[shared + k];
        int64_t place = (int64_t)ref->in[1][at * tuple + k];
        if (place < 0) place += size;
        if (place < 0 || place >= size) return -1;
        row = row * size + place;
    }
    return row;
}

void clv__indexed_reference(const clv__ref *ref) {
    const clv__op_io *io = ref->io;
    const clv__indexed *how = how_of(io);
    const move m = move_of(io);
    clv__walk lines = m.walk;
    lines.strides[TABLE][m.axis] = 0;
    for (int64_t i = 0, n = clv__numel(&io->out[0]); i < n && how->mode != CLV__TAKE; i++)
        ref->out[0][i] = has_base(io) ? ref->in[0][i] : 0;
    for (int64_t i = 0, n = count(&m.walk); i < n; i++) {
        const int64_t place = place_of(ref, &m, i);
        const int64_t at = clv__walk_at(&lines, TABLE, i) + place * step(&m, TABLE);
        if (how->mode == CLV__TAKE)
            ref->out[0][i] = place >= 0 ? ref->in[0][at] : clv__is_float(io->out[0].dtype) ? (double)NAN : 0;
        else if (place >= 0)
            ref->out[0][at] = (how->mode == CLV__ADD ? ref->out[0][at] : 0) + ref->in[list_of(io)][i];
    }
}

void clv__indexed_cost(const clv__op_io *io, clv__cost *cost) {
    const double in = (double)clv__numel(&io->in[0]), out = (double)clv__numel(&io->out[0]);
    const double moved =
        (double)clv__numel(how_of(io)->mode == CLV__TAKE ? &io->out[0] : &io->in[list_of(io)]);
    *cost = (clv__cost){in < out ? in : out, 8 * (has_base(io) ? moved + out : moved)};
}

int64_t clv__indexed_reduction(const clv__op_io *io) {
    const int64_t n = how_of(io)->mode == CLV__ADD ? move_of(io).walk.dims[move_of(io).axis] : 0;
    return n + 1;
}

// ---- shapes -----------------------------------------------------------------------------------------------

static clv_status elements_shape(const clv__op_io *io, int axis, clv_shape *out, clv__error *error) {
    const clv_shape *table = &io->in[0].shape, *index = &io->in[1].shape;
    char is[128], most[128];
    bool fits = index->rank == table->rank;
    for (int d = 0; d < index->rank && fits; d++) fits = d == axis || index->dims[d] <= table->dims[d];
    if (!fits)
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s is %s, it must have x's rank, and be no longer than x, %s, outside of axis %d",
                 io->op->inputs[1].name, clv_shape_text(index, is, sizeof is),
                 clv_shape_text(table, most, sizeof most), axis);
    *out = *index;
    return CLV_OK;
}

/** The table's dimensions before `from`, the index's before `end`, the table's from `to` on. */
static clv_status slices_shape(const clv__op_io *io, int before, int from, int end, int to, clv_shape *out,
                               clv__error *error) {
    const clv_shape *table = &io->in[0].shape, *index = &io->in[1].shape;
    const int rank = before + end - from + table->rank - to;
    if (rank > CLV_MAX_RANK)
        CLV_FAIL(error, CLV_E_SHAPE, "there would be %d dimensions, the most is %d", rank, CLV_MAX_RANK);
    *out = (clv_shape){0};
    for (int d = 0; d < before; d++) out->dims[out->rank++] = table->dims[d];
    for (int d = from; d < end; d++) out->dims[out->rank++] = index->dims[d];
    for (int d = to; d < table->rank; d++) out->dims[out->rank++] = table->dims[d];
    return CLV_OK;
}

static clv_status tuples_shape(const clv__op_io *io, int shared, clv_shape *out, clv__error *error) {
    const clv_shape *table = &io->in[0].shape, *index = &io->in[1].shape;
    const char *name = io->op->inputs[1].name;
    char is[128], wanted[128];
    if (shared < 0 || shared >= table->rank || shared >= index->rank)
        CLV_FAIL(error, CLV_E_VALUE,
                 "batch_dims is %d, it must be at least 0, and below the ranks %d of x and %d of %s", shared,
                 table->rank, index->rank, name);
    bool fits = true;
    for (int d = 0; d < shared; d++) fits &= table->dims[d] == index->dims[d];
    if (!fits)
        CLV_FAIL(error, CLV_E_SHAPE, "%s is %s, with batch_dims %d it must begin as x does, %s", name,
                 clv_shape_text(index, is, sizeof is), shared, clv_shape_text(table, wanted, sizeof wanted));
    const int64_t tuple = index->dims[index->rank - 1];
    if (tuple < 1 || tuple > table->rank - shared)
        CLV_FAIL(error, CLV_E_SHAPE, "the last dimension of %s is %lld, it must be 1 to %d", name,
                 (long long)tuple, table->rank - shared);
    return slices_shape(io, 0, 0, index->rank - 1, shared + (int)tuple, out, error);
}

static clv_status list_shape(const clv__op_io *io, clv_shape *out, clv__error *error) {
    const int rank = io->in[0].shape.rank, given = attribute_of(io, 0);
    int axis;
    if (how_of(io)->kind == CLV__TUPLES_OF) return tuples_shape(io, given, out, error);
    CLV_TRY(clv__want_axis(given, rank, &axis, error));
    if (how_of(io)->kind == CLV__ELEMENTS_OF) return elements_shape(io, axis, out, error);
    return slices_shape(io, axis, 0, io->in[1].shape.rank, axis + 1, out, error);
}

clv_status clv__indexed_infer(clv__op_io *io, clv__error *error) {
    clv_shape shape;
    char is[128], wanted[128];
    CLV_TRY(list_shape(io, &shape, error));
    if (how_of(io)->mode == CLV__TAKE) return clv__one_out(io, (clv__desc){io->in[0].dtype, shape});
    const char *name = io->op->inputs[2].name;
    if (io->in[2].dtype != io->in[0].dtype)
        CLV_FAIL(error, CLV_E_DTYPE, "%s is %s, it must be %s as x is", name, clv_dtype_name(io->in[2].dtype),
                 clv_dtype_name(io->in[0].dtype));
    if (!clv_shape_equal(&io->in[2].shape, &shape))
        CLV_FAIL(error, CLV_E_SHAPE, "%s is %s, it must be %s", name,
                 clv_shape_text(&io->in[2].shape, is, sizeof is),
                 clv_shape_text(&shape, wanted, sizeof wanted));
    return clv__one_out(io, io->in[0]);
}

// ---- in parts ---------------------------------------------------------------------------------------------

/** Along dimension i of the list. What is put goes along where the table does. */
bool clv__indexed_split(const clv__op_io *io, int i, clv__split *out) {
    const bool takes = how_of(io)->mode == CLV__TAKE;
    const clv_shape *table = &io->in[0].shape, *index = &io->in[1].shape,
                    *list = takes ? &io->out[0].shape : &io->in[2].shape;
    const int given = attribute_of(io, table->rank), q = index->rank;
    int in_table = CLV__SPLIT_WHOLE, in_index = CLV__SPLIT_WHOLE;
    if (i >= list->rank) return false;
    out->length = list->dims[i];
    switch (how_of(io)->kind) {
    case CLV__ELEMENTS_OF:
        in_index = i;
        if (i != given) in_table = i;
        if (i != given && table->dims[i] != list->dims[i]) out->length = 0;
        break;
    case CLV__SLICES_OF:
        if (i < given || i >= given + q)
            in_table = i < given ? i : i - q + 1;
        else
            in_index = i - given;
        break;
    case CLV__TUPLES_OF:
        if (i < q - 1) in_index = i;
        if (i < given) in_table = i;
        if (i >= q - 1) in_table = given + (int)index->dims[q - 1] + i - (q - 1);
    }
    if (!takes && in_table < 0) out->length = 0;
    out->in[0] = (int8_t)in_table, out->in[1] = (int8_t)in_index;
    out->out[0] = (int8_t)(takes ? i : in_table);
    if (!takes) out->in[2] = (int8_t)i;
    return true;
}
