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
    } else if (clv_dtype_bytes(to) != sizeof(int32_t)) {
        const size_t bytes = clv_dtype_bytes(to);
        const char *word = bytes == 1               ? "uchar"
                           : bytes == 2             ? "ushort"
                           : list->device->no_int64 ? "int2"
                                                    : "i64";
        clv__launch_define(list, launch, "T_IN", "%s", word);
        clv__launch_define(list, launch, "T_OUT", "%s", word);
    }
    clv__arg_out(list, launch, 0);
    clv__arg_in(list, launch, m->in);
    return launch;
}

/** Do the walk's elements lie one after the other in that tensor, from a multiple of four on? */
static bool is_flat(const clv__move *m, int tensor, int64_t offset) {
    int64_t step = 1;
    for (int d = m->walk.rank - 1; d >= 0; d--) {
        if (m->walk.strides[tensor][d] != step) return false;
        step *= m->walk.dims[d];
    }
    return offset % 4 == 0;
}

/** Any walk: an element a work-item, or four of them. */
static void lower_walks(clv__launches *list, const clv__op_io *io, const char *entry, bool fours) {
    begin(list, io);
    for (int i = 0; i < move_count(io); i++) {
        const clv__move m = move_at(io, i);
        int64_t n = move_numel(&m);
        if (n == 0) continue;
        clv__launch *launch = launch_move(list, io, &m, entry);
        clv__launch_define(list, launch, "COPY_RANK", "%d", m.walk.rank);
        if (fours && is_flat(&m, 0, m.to_offset)) clv__launch_define(list, launch, "COPY_TO", "%d", 1);
        if (fours && is_flat(&m, 1, m.from_offset)) clv__launch_define(list, launch, "COPY_FROM", "%d", 1);
        CLV__ARGS_I32(list, launch, n, m.to_offset, m.from_offset);
        for (int d = m.walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, m.walk.dims[d]);
        for (int d = m.walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, m.walk.strides[0][d]);
        for (int d = m.walk.rank - 1; d >= 1; d--) clv__arg_i32(list, launch, m.walk.strides[1][d]);
        CLV__ARGS_I32(list, launch, m.walk.strides[0][0], m.walk.strides[1][0]);
        clv__launch_over(list, launch, CLV__ELEMENTS, fours ? clv__div_up(n, 4) : n);
    }
}

static void plain_lower(clv__launches *list, const clv__op_io *io) {
    lower_walks(list, io, "copy_plain", false);
}

/** Has the device numbers, and vectors of them, as large as the elements? */
static bool has_words(const clv_device_info *device, const clv__op_io *io) {
    return !device->no_int64 || clv_dtype_bytes(io->out[0].dtype) <= sizeof(int32_t);
}

static bool rows_supports(const clv_device_info *device, const clv__op_io *io) {
    if (!has_words(device, io)) return false;
    for (int i = 0; i < move_count(io); i++) {
        const clv__move m = move_at(io, i);
        const int inner = m.walk.rank - 1;
        if (m.walk.rank > 4 || m.walk.strides[0][inner] > 1 || m.walk.strides[1][inner] > 1) return false;
    }
    return true;
}

/** One side of each move is read or written by vectors, whatever the rows are. */
static bool fours_supports(const clv_device_info *device, const clv__op_io *io) {
    if (clv__threads(device) || !has_words(device, io)) return false;
    for (int i = 0; i < move_count(io); i++) {
        const clv__move m = move_at(io, i);
        if (!is_flat(&m, 0, m.to_offset) && !is_flat(&m, 1, m.from_offset)) return false;
    }
    return true;
}

static void fours_lower(clv__launches *list, const clv__op_io *io) {
    lower_walks(list, io, "copy_fours", true);
}

/** Every vector of every row lies at a multiple of its width, on both sides. */
static bool is_aligned(const clv__move *m, int width) {
    const int inner = m->walk.rank - 1;
    const bool repeats = m->walk.strides[1][inner] == 0;
    bool aligned = m->to_offset % width == 0 && (repeats || m->from_offset % width == 0);
    for (int d = 0; d < inner; d++)
        aligned &= m->walk.strides[0][d] % width == 0 && (repeats || m->walk.strides[1][d] % width == 0);
    return aligned && (inner == 0 || m->walk.dims[inner] % width == 0);
}

static double rows_rank(const clv_device_info *device, const clv__op_io *io) {
    const int width = clv__vector_width(device);
    clv__move m = move_at(io, 0);
    if (clv__threads(device)) return m.walk.dims[m.walk.rank - 1] >= width ? 0.2 : 1.1;
    for (int i = 0; i < move_count(io); i++) {
        m = move_at(io, i);
        if (!is_aligned(&m, width)) return 1.1;
    }
    return 0.5;
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
        if (!clv__threads(list->device) && is_aligned(&m, width))
            clv__launch_define(list, launch, "COPY_ACCESS", "A");
        CLV__ARGS_I32(list, launch, m.to_offset, m.from_offset, rows, per_item, dims[1], dims[2], length,
                      chunk, chunks, to[0], to[1], to[2], from[0], from[1], from[2]);
        clv__launch_over(list, launch, CLV__TASKS, clv__div_up(rows, per_item) * chunks);
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
    return clv__threads(device) && move_count(io) == 1 && transposed(&m) >= 0 && has_words(device, io);
}

static double tile_rank(const clv_device_info *device, const clv__op_io *io) {
    const clv__move m = move_at(io, 0);
    int64_t width = clv__vector_width(device);
    return m.walk.dims[transposed(&m)] >= width && m.walk.dims[m.walk.rank - 1] >= width ? 0.3 : 1.1;
}

enum { SIDE = 32, LOCAL_ITEMS = 256 }; // of a block of copy_local; of its group

static bool local_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__move m = move_at(io, 0);
    const size_t bytes = clv_dtype_bytes(io->out[0].dtype),
                 word = bytes > sizeof(float) ? bytes : sizeof(float);
    return device->max_work_group >= LOCAL_ITEMS && move_count(io) == 1 && transposed(&m) >= 0 &&
           clv__tile_local_bytes(device) >= SIDE * (SIDE + 1) * word && has_words(device, io);
}

/** By how much of the blocks is used. */
static double local_rank(const clv_device_info *device, const clv__op_io *io) {
    const clv__move m = move_at(io, 0);
    const int64_t high = m.walk.dims[transposed(&m)], wide = m.walk.dims[m.walk.rank - 1];
    const double blocks = (double)clv__round_up(high, SIDE) * (double)clv__round_up(wide, SIDE);
    return clv__threads(device) ? 2 : 0.25 * blocks / ((double)high * (double)wide);
}

/** Blocks of `side` rows; along a row of `chunk` columns. A work-item does one (copy_tile), or a group (copy_local). */
static void lower_blocks(clv__launches *list, const clv__op_io *io, int side, int64_t chunk, bool local) {
    begin(list, io);
    const clv__move m = move_at(io, 0);
    int64_t n = move_numel(&m);
    if (n == 0) return;
    int inner = m.walk.rank - 1, row = transposed(&m);
    int64_t high = m.walk.dims[row], wide = m.walk.dims[inner], strips = clv__div_up(high, side);
    int64_t dims[2] = {1, 1}, to[2] = {0}, from[2] = {0}; // the other dimensions, set to the right
    for (int d = inner - 1, k = 1; d >= 0; d--) {
        if (d == row) continue;
        dims[k] = m.walk.dims[d];
        to[k] = m.walk.strides[0][d];
        from[k--] = m.walk.strides[1][d];
    }
    clv__launch *launch = launch_move(list, io, &m, local ? "copy_local" : "copy_tile");
    const int64_t chunks = clv__div_up(wide, chunk), blocks = dims[0] * dims[1] * strips * chunks;
    CLV__ARGS_I32(list, launch, m.to_offset, m.from_offset);
    if (local) {
        CLV__ARGS_I32(list, launch, strips, chunks);
        clv__launch_grid(launch, (size_t)blocks * LOCAL_ITEMS, LOCAL_ITEMS);
    } else {
        clv__launch_define(list, launch, "COPY_VW", "%d", side);
        CLV__ARGS_I32(list, launch, blocks, strips, chunk, chunks);
        clv__launch_over(list, launch, CLV__TASKS, blocks);
    }
    CLV__ARGS_I32(list, launch, dims[1], high, wide, to[0], to[1], m.walk.strides[0][row], from[0], from[1],
                  m.walk.strides[1][inner]);
}

static void tile_lower(clv__launches *list, const clv__op_io *io) {
    lower_blocks(list, io, clv__vector_width(list->device), 1024, false);
}

static void local_lower(clv__launches *list, const clv__op_io *io) {
    lower_blocks(list, io, SIDE, SIDE, true);
}

const clv__variant clv__move_variants[] = {
    {.name = "plain", .lower = plain_lower},
    {.name = "rows", .supports = rows_supports, .rank = rows_rank, .lower = rows_lower},
    {.name = "fours", .supports = fours_supports, .lower = fours_lower, .relative = 0.7},
    {.name = "tile", .supports = tile_supports, .rank = tile_rank, .lower = tile_lower},
    {.name = "local", .supports = local_supports, .rank = local_rank, .lower = local_lower},
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
