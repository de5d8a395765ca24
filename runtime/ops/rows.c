// SPDX-License-Identifier: Apache-2.0
// How rows are done: by an item each, by groups, or, where they are long, in parts whose states are joined. All cuts follow from
// sizes and the largest group of the device, so that sums have one order.
#include "ops/rows.h"

#include <string.h>

// An item's part is short enough for devices that end long loops (kernels_cl/README.md).
enum { ITEM_PER = 4, ITEM_CHUNK = 2048, ITEM_JOIN = 256 };
enum { SMALL_GROUP = 64, LARGE_GROUP = 256, MOST_PER = 16, SUMS_PER = 8, FEW_PER = 4, WIDE = 32, SECTOR = 8 };
enum { FEW_PARTS = 16 }; // that one item joins
enum { FEW_GROUPS = 32, MANY_GROUPS = 64, MOST_TURNS = 32 };

enum { VECTOR = 16, VECTOR_PART = 16384, VECTOR_ROWS = 16 }; // fewer rows than these are cut into parts
enum { COLUMNS_PART = 128 };

typedef enum row_phase { WHOLE, PART, GIVEN } row_phase; // as in rows.cl

/** The macros of that name, and how long a part is. */
typedef struct schedule {
    int64_t group, lanes, rows, turns, per, chunk; // group = lanes * rows
    bool columns, run;
} schedule;

static int64_t power_of_two(int64_t n, int64_t most) {
    int64_t p = 1;
    while (p < n && p < most) p *= 2;
    return p;
}

static schedule by_items(bool given, bool columns) {
    return (schedule){.group = 1,
                      .lanes = 1,
                      .rows = 1,
                      .turns = 1,
                      .per = given ? 1 : ITEM_PER,
                      .chunk = given ? 1 : ITEM_CHUNK,
                      .columns = columns};
}

/** Elements that an item keeps in registers. Programs that also sum over rows keep six floats of each. */
static int64_t most_per(const clv__row_program *program) {
    return program->after ? SUMS_PER : MOST_PER;
}

/** Short rows that lie one after the other and begin anywhere: a group reads its own as one run. */
static bool as_run(const clv__rows *use) {
    enum { MOST_RUN = 256 }; // elements; of longer rows a sector more is nothing
    const clv__row_walk *w = &use->walk;
    const bool inner = w->inner == 1 || w->minor == w->count;
    const bool outer = w->inner >= w->rows || w->major == w->inner * w->count;
    return use->program->run && inner && outer && w->near == 1 && w->length >= w->count &&
           w->count % SECTOR != 0 && w->count > 1 && w->count <= MOST_RUN;
}

static schedule by_vector(const clv__row_walk *w, bool columns) {
    const bool few = w->rows < VECTOR_ROWS;
    return (schedule){.group = 1,
                      .rows = columns ? VECTOR
                              : few   ? 1
                                      : clv__rows_for(w->count),
                      .turns = 1,
                      .chunk = columns ? COLUMNS_PART
                               : few   ? VECTOR_PART
                                       : w->count,
                      .columns = columns};
}

static schedule by_groups(const clv_device_info *device, const clv__rows *use, bool columns) {
    const clv__row_walk *w = &use->walk;
    const int64_t most = device->max_work_group >= LARGE_GROUP ? LARGE_GROUP : SMALL_GROUP;
    const bool stores = use->program->store != NULL;
    schedule s = {.columns = columns, .run = as_run(use), .group = SMALL_GROUP, .turns = 1};
    if (columns) {
        int64_t wide = power_of_two(w->inner, WIDE);
        if (stores && wide > SECTOR && w->count > most / wide * most_per(use->program)) wide = SECTOR;
        s.lanes = power_of_two(w->count, most / wide);
        if (s.lanes * wide > SMALL_GROUP) s.group = most;
    } else {
        const int64_t large = w->count <= SMALL_GROUP * most_per(use->program) ? SMALL_GROUP : most;
        // Fewer lanes that have more elements each, where their reads begin with a sector.
        const int64_t few = clv__max64(WIDE / 2, clv__div_up(w->count, FEW_PER));
        s.lanes = power_of_two(w->count % SECTOR && !s.run ? w->count : clv__min64(few, w->count), large);
        if (use->program->once)
            s.turns = clv__min64(w->rows * s.lanes / (SMALL_GROUP * FEW_GROUPS), MOST_TURNS);
        s.turns = clv__max64(1, s.turns);
        if (large == most || w->rows * s.lanes >= s.turns * most * MANY_GROUPS) s.group = most;
    }
    const int64_t need = clv__div_up(w->count, s.lanes);
    s.per = need <= 1 ? 1 : need <= FEW_PER || !use->program->planes ? FEW_PER : most_per(use->program);
    s.chunk = s.lanes * s.per;
    s.rows = s.group / s.lanes;
    return s;
}

static bool by_vectors(const clv__op_io *io) {
    return io->variant->number == CLV__BY_VECTORS;
}

static clv__part new_states(clv__launches *list, const clv__rows *use, int64_t n) {
    return clv__floats(list, use->program->planes * use->walk.rows * n);
}

static void define_text(clv__launches *list, clv__launch *launch, const char *name, const char *text) {
    if (text) clv__launch_define(list, launch, name, "%s", text);
}

/** A launch with the program's text and its own arguments. */
static clv__launch *begin(clv__launches *list, const clv__op_io *io, const char *entry, const clv__rows *use,
                          const schedule *s) {
    const clv__row_program *p = use->program;
    clv__launch *launch = clv__launch_kernel(list, "rows", entry);
    define_text(list, launch, "ROW_PARAMS", p->params);
    define_text(list, launch, "ROW_BEGIN", p->begin);
    define_text(list, launch, "ROW_ONCE", p->once);
    define_text(list, launch, "ROW_LOAD", p->load);
    define_text(list, launch, "ROW_GATHER", p->gather);
    define_text(list, launch, "ROW_JOIN", p->join);
    define_text(list, launch, "ROW_START0", p->start0);
    define_text(list, launch, "ROW_START1", p->start1);
    define_text(list, launch, "ROW_T1", p->type1);
    define_text(list, launch, "ROW_FINISH", p->finish);
    define_text(list, launch, "ROW_RESULT", p->result);
    define_text(list, launch, "ROW_STORE", p->store);
    define_text(list, launch, "ROW_AFTER", p->after);
    clv__define_number(list, launch, "ROW_PLANES", p->planes, 1);
    clv__define_number(list, launch, "ROW_STORES", p->store != NULL, 0);
    clv__define_number(list, launch, "ROW_AGAIN", p->once != NULL, 0);
    clv__define_number(list, launch, "GROUP", s->group, 1);
    clv__define_number(list, launch, "FLAT", use->walk.length >= use->walk.count, 0);
    clv__arg_tensors(list, launch, io, p->tensors);
    if (use->scratch.bytes) clv__arg_workspace(list, launch, use->scratch.offset, use->scratch.bytes);
    return CLV__ARGS(list, launch, io, NULL, .n_ints = use->n_ints, .ints = use->ints,
                     .n_floats = use->n_floats, .floats = use->floats);
}

static void end(clv__launches *list, clv__launch *launch, const clv__row_walk *w, const schedule *s,
                int64_t units) {
    CLV__ARGS_I32(list, launch, w->count, w->inner, w->major, w->minor, w->length, w->far, w->near);
    if (s->group == 1)
        clv__launch_over(list, launch, CLV__ELEMENTS, units);
    else
        clv__launch_grid(launch, (size_t)(units * s->group), (size_t)s->group);
}

static void lower_row(clv__launches *list, const clv__op_io *io, const clv__rows *use, const schedule *s,
                      row_phase phase, clv__part states) {
    const int64_t chunks = clv__max64(1, clv__div_up(use->walk.count, s->chunk));
    const bool vectors = by_vectors(io) && phase != GIVEN;
    const char *entry = !vectors ? "row" : s->columns ? "row_columns" : "row_vector";
    clv__launch *launch = begin(list, io, entry, use, s);
    clv__define_number(list, launch, "PHASE", phase, WHOLE);
    if (!vectors) clv__define_number(list, launch, "PER", s->per, MOST_PER);
    if (!vectors) clv__define_number(list, launch, "COLUMNS", s->columns, 0);
    clv__define_number(list, launch, "RUN", s->run ? s->group * s->per : 0, 0);
    if (phase != WHOLE && use->program->planes) clv__arg_part(list, launch, states);
    const int64_t units = clv__div_up(use->walk.rows, s->rows * s->turns);
    if (vectors)
        CLV__ARGS_I32(list, launch, use->walk.rows, s->columns ? units : s->rows, s->chunk, chunks);
    else
        CLV__ARGS_I32(list, launch, use->walk.rows, s->lanes, s->turns, s->chunk, chunks);
    end(list, launch, &use->walk, s, units * chunks);
}

static bool in_groups(const clv__op_io *io) {
    return io->variant->number == CLV__BY_GROUPS;
}

/** Some states of each row to one, or, if `last`, to its result. */
static clv__part join(clv__launches *list, const clv__op_io *io, const clv__rows *use, clv__part from,
                      int64_t n, bool finish) {
    for (bool last = false; !last;) {
        const int64_t lanes = in_groups(io) && n > FEW_PARTS ? SMALL_GROUP : 1;
        const schedule s = {.group = lanes, .lanes = lanes, .rows = 1};
        const int64_t per = s.lanes > 1 ? n : ITEM_JOIN, n_out = clv__div_up(n, per);
        clv__part to = {0};
        last = n_out == 1;
        clv__launch *launch = begin(list, io, "row_join", use, &s);
        if (!last || !finish) {
            to = new_states(list, use, n_out);
            clv__launch_define(list, launch, "LAST", "0");
            clv__arg_part(list, launch, to);
        }
        CLV__ARGS(list, launch, io, "w", .part = from, CLV__INTS(use->walk.rows, s.lanes, n, per, n_out));
        end(list, launch, &use->walk, &s, use->walk.rows * n_out);
        from = to;
        n = n_out;
    }
    return from;
}

static schedule schedule_of(const clv__launches *list, const clv__op_io *io, const clv__rows *use,
                            bool given) {
    const bool columns = use->walk.minor == 1 && use->walk.near != 1;
    if (by_vectors(io) && !given) return by_vector(&use->walk, columns);
    return in_groups(io) ? by_groups(list->device, use, columns) : by_items(given, columns);
}

static clv__part states_of(clv__launches *list, const clv__op_io *io, const clv__rows *use, bool finish) {
    const schedule s = schedule_of(list, io, use, false);
    const int64_t chunks = clv__max64(1, clv__div_up(use->walk.count, s.chunk));
    const clv__part parts = new_states(list, use, chunks);
    lower_row(list, io, use, &s, PART, parts);
    return chunks > 1 || finish ? join(list, io, use, parts, chunks, finish) : parts;
}

clv__part clv__rows_states(clv__launches *list, const clv__op_io *io, const clv__rows *use) {
    return states_of(list, io, use, false);
}

void clv__rows_lower(clv__launches *list, const clv__op_io *io, const clv__rows *use) {
    const bool stores = use->program->store != NULL;
    if (use->walk.rows == 0 || (stores && use->walk.count == 0)) return;
    const schedule s = schedule_of(list, io, use, false);
    if (use->program->after && use->walk.count > s.chunk)
        list->failed = true; // clv__rows_partials was not asked of this program
    if (use->program->planes && use->walk.count <= s.chunk) {
        lower_row(list, io, use, &s, WHOLE, (clv__part){0});
        return;
    }
    clv__part states = {0};
    if (use->program->planes) states = states_of(list, io, use, !stores);
    if (stores) {
        const schedule store = schedule_of(list, io, use, true);
        lower_row(list, io, use, &store, GIVEN, states);
    }
}

int64_t clv__rows_partials(const clv__launches *list, const clv__op_io *io, const clv__rows *use) {
    const schedule s = schedule_of(list, io, use, false);
    return !in_groups(io) || use->walk.count > s.chunk
               ? 0
               : clv__div_up(use->walk.rows, s.rows * s.turns) * s.rows;
}

void clv__rows_total(clv__launches *list, const clv__op_io *io, clv__part from, int64_t n, float divisor) {
    static const clv__row_program total = {
        .params = "global float *restrict y, global const float *restrict x, float divisor",
        .tensors = "o0",
        CLV__ROW_SUM,
        .load = "a[k] = x[at];",
        .result = "y[r] = s0 / divisor;"};
    CLV__ROWS(list, io, .program = &total, .walk = clv__row_middle(1, n, 1), .scratch = from, .n_floats = 1,
              .floats = {divisor});
}

bool clv__rows_groups(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    enum { RUN = LARGE_GROUP * FEW_PER, TREES = 3 * (LARGE_GROUP + LARGE_GROUP / 32), TURNS = 4096 };
    const uint64_t local_bytes = (RUN + TREES) * sizeof(float);
    return device->max_work_group >= SMALL_GROUP && clv__tile_local_bytes(device) >= local_bytes &&
           clv__loops_fit(device, TURNS);
}

bool clv__rows_vectors(const clv_device_info *device, const clv__rows *use) {
    const clv__row_walk *w = &use->walk;
    const bool in_line = w->near == 1 && w->count >= VECTOR;
    const bool side_by_side =
        w->minor == 1 && w->rows >= VECTOR && !use->program->store && w->inner >= w->rows;
    return clv__threads(device) && use->program->vectors && w->length >= w->count &&
           (in_line || side_by_side) &&
           clv__loops_fit(device, 2 * clv__rows_for(w->count) * (w->count / VECTOR + 2 * VECTOR));
}

// ---- ops that are such a program and nothing else -------------------------------------------------------------------

/** The dimension that rows lie along. */
static int axis_of(const clv__op_io *io, int rank) {
    const int axis = clv__row_op_of(io)->axis ? *(const int *)io->attrs : -1;
    return axis < 0 ? axis + rank : axis;
}

clv__row_walk clv__row_op_walk(const clv__op_io *io) {
    const clv_shape *x = clv__is_gradient(io) ? &io->out[0].shape : &io->in[0].shape;
    const int axis = axis_of(io, x->rank);
    return clv__row_middle(clv__dims_product(x, 0, axis), x->dims[axis],
                           clv__dims_product(x, axis + 1, x->rank));
}

clv_status clv__row_op_infer(clv__op_io *io, clv__error *error) {
    int axis;
    CLV_TRY(clv__want_axis(*(const int *)io->attrs, io->in[0].shape.rank, &axis, error));
    return clv__one_out(io, io->in[0]);
}

bool clv__row_op_split(const clv__op_io *io, int i, clv__split *out) {
    const int rank = io->in[0].shape.rank;
    if (i != axis_of(io, rank)) clv__split_all(io, i, out);
    return i < rank;
}

void clv__row_op_lower(clv__launches *list, const clv__op_io *io) {
    const clv__row_op *op = clv__row_op_of(io);
    clv__rows use = {.program = &op->program, .walk = clv__row_op_walk(io)};
    if (op->scalars) op->scalars(io, &use);
    clv__rows_lower(list, io, &use);
}

static bool row_op_vectors(const clv_device_info *device, const clv__op_io *io) {
    return clv__rows_vectors(
        device, &(clv__rows){.program = &clv__row_op_of(io)->program, .walk = clv__row_op_walk(io)});
}

bool clv__row_op_groups(const clv_device_info *device, const clv__op_io *io) {
    return clv__row_op_count(io) > 1 && clv__rows_groups(device, io);
}

const clv__variant clv__row_op_variants[] = {{"plain", .lower = clv__row_op_lower},
                                             CLV__ROWS_VECTORS(row_op_vectors, clv__row_op_lower),
                                             CLV__ROWS_GROUPS(clv__row_op_groups, clv__row_op_lower),
                                             {0}};

/** Where row r begins in a tensor: of x's size, of one element a row, or read as a whole. */
static double *row_in(double *tensor, const clv__desc *desc, const clv__row_walk *w, int64_t r) {
    const int64_t n = clv__numel(desc);
    if (!tensor) return NULL;
    return tensor + (n == w->rows * w->count ? r / w->inner * w->major + r % w->inner : n == w->rows ? r : 0);
}

void clv__row_op_reference(const clv__ref *ref) {
    const clv__op_io *io = ref->io;
    const clv__row_walk w = clv__row_op_walk(io);
    for (int64_t r = 0; r < w.rows; r++) {
        clv__row_ref row = {.D = w.count, .step = w.near, .attrs = io->attrs};
        for (int i = 0; i < io->n_in; i++) row.in[i] = row_in(ref->in[i], &io->in[i], &w, r);
        for (int i = 0; i < io->n_out; i++) row.out[i] = row_in(ref->out[i], &io->out[i], &w, r);
        clv__row_op_of(io)->reference(&row);
    }
}

void clv__row_op_cost(const clv__op_io *io, clv__cost *cost) {
    const clv__row_walk w = clv__row_op_walk(io);
    const double n = (double)(w.rows * w.count);
    *cost = (clv__cost){clv__row_op_of(io)->flops * n, 4 * n * (io->n_in + 1)};
}

int64_t clv__row_op_count(const clv__op_io *io) {
    return clv__row_op_walk(io).count;
}
