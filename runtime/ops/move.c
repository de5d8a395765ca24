// SPDX-License-Identifier: Apache-2.0
// Moves as launches of kernels_cl/shape.cl: element by element anywhere, by rows, or by tiles where two
// dimensions change places.
#include "ops/move.h"

#include "ops/lower.h"

static int move_count(const clv__op_io *io) {
    const clv__mover *how = io->op->data;
    return how->each_input ? io->n_in : 1;
}

static clv__move move_at(const clv__op_io *io, int i) {
    const clv__mover *how = io->op->data;
    clv__move m = {.in = how->each_input ? i : 0, .walk = {.n = 2}};
    how->move_of(io, i, &m);
    clv__walk_collapse(&m.walk);
    return m;
}

static int64_t move_numel(const clv__move *m) {
    int64_t n = 1;
    for (int d = 0; d < m->walk.rank; d++) n *= m->walk.dims[d];
    return n;
}

// ---- launches ---------------------------------------------------------------------------------------------

static void begin(clv__launches *list, const clv__op_io *io) {
    const clv__mover *how = io->op->data;
    int64_t n = clv__numel(&io->out[0]);
    if (how->zero_first && n > 0) clv__launch_fill(list, 0, (size_t)n * clv_dtype_bytes(io->out[0].dtype), 0);
}

static clv__launch *launch_move(clv__launches *list, const clv__op_io *io, const clv__move *m,
                                const char *entry) {
    clv__launch *launch = clv__launch_kernel(list, "shape", entry);
    clv_dtype from = io->in[m->in].dtype, to = io->out[0].dtype;
    if (from != to) {
        clv__launch_define(list, launch, "T_IN", "%s", clv__storage(from));
        clv__launch_define(list, launch, "T_OUT", "%s", clv__storage(to));
    } else if (clv_dtype_bytes(to) == 2) {
        clv__launch_define(list, launch, "T_IN", "ushort");
        clv__launch_define(list, launch, "T_OUT", "ushort");
    }
    clv__arg_out(list, launch, 0);
    clv__arg_in(list, launch, m->in);
    return launch;
}

static void plain_lower(clv__launches *list, const clv__op_io *io) {
    begin(list, io);
    for (int i = 0; i < move_count(io); i++) {
        const clv__move m = move_at(io, i);
        int64_t n = move_numel(&m);
        if (n == 0) continue;
        clv__launch *launch = launch_move(list, io, &m, "copy_plain");
        clv__launch_define(list, launch, "COPY_RANK", "%d", m.walk.rank);
        clv__arg_i32(list, launch, n);
        clv__arg_i32(list, launch, m.to_offset);
        clv__arg_i32(list, launch, m.from_offset);
        for (int d = m.walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, m.walk.dims[d]);
        for (int d = m.walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, m.walk.strides[0][d]);
        for (int d = m.walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, m.walk.strides[1][d]);
        clv__arg_i32(list, launch, m.walk.strides[0][0]);
        clv__arg_i32(list, launch, m.walk.strides[1][0]);
        clv__launch_over(list, launch, CLV__ELEMENTS, n);
    }
}

static bool is_rows(const clv__move *m) {
    int inner = m->walk.rank - 1;
    return m->walk.rank <= 4 && m->walk.strides[0][inner] <= 1 && m->walk.strides[1][inner] <= 1;
}

static bool rows_supports(const clv_device_info *device, const clv__op_io *io) {
    (void)device;
    for (int i = 0; i < move_count(io); i++) {
        const clv__move m = move_at(io, i);
        if (!is_rows(&m)) return false;
    }
    return true;
}

static double rows_rank(const clv_device_info *device, const clv__op_io *io) {
    const clv__move m = move_at(io, 0);
    bool vectors = m.walk.dims[m.walk.rank - 1] >= clv__vector_width(device);
    return clv__threads(device) ? (vectors ? 0.2 : 1.1) : (m.walk.rank == 1 ? 0.9 : 1.1);
}

static void rows_lower(clv__launches *list, const clv__op_io *io) {
    enum { ITEM = 8192 }; // elements of a work-item on a CPU
    begin(list, io);
    int width = clv__vector_width(list->device);
    for (int i = 0; i < move_count(io); i++) {
        const clv__move m = move_at(io, i);
        int64_t n = move_numel(&m);
        if (n == 0) continue;
        int inner = m.walk.rank - 1;
        int64_t length = m.walk.dims[inner], rows = n / length;
        int64_t chunk = clv__threads(list->device) ? ITEM : width, chunks = clv__div_up(length, chunk);
        int64_t per_item = chunks > 1 ? 1 : clv__div_up(chunk, length);
        // the outer dimensions as three, set to the right
        int64_t dims[3] = {1, 1, 1}, to[3] = {0}, from[3] = {0};
        for (int d = inner - 1, k = 2; d >= 0; d--, k--) {
            dims[k] = m.walk.dims[d];
            to[k] = m.walk.strides[0][d];
            from[k] = m.walk.strides[1][d];
        }
        clv__launch *launch = launch_move(list, io, &m, "copy_rows");
        clv__launch_define(list, launch, "COPY_VW", "%d", width);
        clv__launch_define(list, launch, "COPY_U", "%d", m.walk.strides[1][inner] == 0);
        const int64_t sizes[] = {m.to_offset, m.from_offset, rows,  per_item, dims[1], dims[2], length, chunk,
                                 chunks,      to[0],         to[1], to[2],    from[0], from[1], from[2]};
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) clv__arg_i32(list, launch, sizes[k]);
        size_t items = (size_t)(clv__div_up(rows, per_item) * chunks);
        clv__launch_over(list, launch, CLV__TASKS, items);
    }
}

/** The dimension along which the input is contiguous, if that is not the innermost; -1 if the walk is no
 *  transpose. */
static int transposed(const clv__move *m) {
    int inner = m->walk.rank - 1;
    if (m->walk.rank < 2 || m->walk.rank > 4 || m->walk.strides[0][inner] != 1 ||
        m->walk.strides[1][inner] <= 1)
        return -1;
    for (int d = 0; d < inner; d++) {
        if (m->walk.strides[1][d] == 1) return d;
    }
    return -1;
}

static bool tile_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__move m = move_at(io, 0);
    return clv__threads(device) && move_count(io) == 1 && transposed(&m) >= 0;
}

static double tile_rank(const clv_device_info *device, const clv__op_io *io) {
    const clv__move m = move_at(io, 0);
    int64_t width = clv__vector_width(device);
    return m.walk.dims[transposed(&m)] >= width && m.walk.dims[m.walk.rank - 1] >= width ? 0.3 : 1.1;
}

static void tile_lower(clv__launches *list, const clv__op_io *io) {
    begin(list, io);
    const clv__move m = move_at(io, 0);
    int64_t n = move_numel(&m);
    if (n == 0) return;
    int width = clv__vector_width(list->device), inner = m.walk.rank - 1, row = transposed(&m);
    int64_t high = m.walk.dims[row], wide = m.walk.dims[inner], strips = clv__div_up(high, width);
    int64_t dims[2] = {1, 1}, to[2] = {0}, from[2] = {0}; // the other dimensions, set to the right
    for (int d = inner - 1, k = 1; d >= 0; d--) {
        if (d == row) continue;
        dims[k] = m.walk.dims[d];
        to[k] = m.walk.strides[0][d];
        from[k--] = m.walk.strides[1][d];
    }
    clv__launch *launch = launch_move(list, io, &m, "copy_tile");
    clv__launch_define(list, launch, "COPY_VW", "%d", width);
    const int64_t chunk = 1024, chunks = clv__div_up(wide, chunk),
                  items = dims[0] * dims[1] * strips * chunks;
    const int64_t sizes[] = {m.to_offset, m.from_offset, items,
                             strips,      chunk,         chunks,
                             dims[1],     high,          wide,
                             to[0],       to[1],         m.walk.strides[0][row],
                             from[0],     from[1],       m.walk.strides[1][inner]};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) clv__arg_i32(list, launch, sizes[k]);
    clv__launch_over(list, launch, CLV__TASKS, items);
}

const clv__variant clv__move_variants[] = {
    {.name = "plain", .lower = plain_lower},
    {.name = "rows", .supports = rows_supports, .rank = rows_rank, .lower = rows_lower},
    {.name = "tile", .supports = tile_supports, .rank = tile_rank, .lower = tile_lower},
    {0},
};

void clv__move_reference(const clv__ref *ref) {
    const clv__op_io *io = ref->io;
    for (int64_t i = 0, n = clv__numel(&io->out[0]); i < n; i++) ref->out[0][i] = 0;
    for (int k = 0; k < move_count(io); k++) {
        const clv__move m = move_at(io, k);
        double *to = ref->out[0] + m.to_offset;
        const double *from = ref->in[m.in] + m.from_offset;
        for (int64_t i = 0, n = move_numel(&m); i < n; i++)
            to[clv__walk_at(&m.walk, 0, i)] = from[clv__walk_at(&m.walk, 1, i)];
    }
}

void clv__move_cost(const clv__op_io *io, clv__cost *cost) {
    cost->flops = 0;
    cost->bytes = 8.0 * (double)clv__numel(&io->out[0]);
}
