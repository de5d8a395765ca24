// SPDX-License-Identifier: Apache-2.0
// The launches of recurrence and its gradient: one for each step, or, where work-items are threads, one in which each takes some rows
// through all steps, as no row needs another. Kernels: kernels_cl/recurrence.cl.
#include "ops/lower.h"
#include "ops/recurrent/recurrence.h"

enum { USUAL, GROUP };         // numbers of variants
enum { EDGE = 8, TERMS = 32 }; // of the kernel file
enum { FIRST = 32 };           // a bit of `given`; the others are those of the inputs in their order
enum { MOST_ROWS = 64 };       // of a task: what is read of them stays in caches

/** Bit b of `given`: input of[b] is there. */
static int given_of(const clv__op_io *io) {
    static const int forward[] = {CLV__RNN_BIAS, CLV__RNN_H0, CLV__RNN_C0, CLV__RNN_LENGTHS, CLV__RNN_IN},
                     backward[] = {CLV__RNN_B_DY, CLV__RNN_B_DH_N, CLV__RNN_B_DC_N, CLV__RNN_B_LENGTHS,
                                   CLV__RNN_B_C0};
    const int *of = clv__is_gradient(io) ? backward : forward;
    int given = 0;
    for (int b = 0; b < 5; b++) given |= clv__has_in(io, of[b]) << b;
    return given;
}

static clv__launch *launch_of(clv__launches *list, const clv__recurrence *r, const char *entry) {
    clv__launch *launch = clv__launch_kernel(list, "recurrence", entry);
    clv__define_number(list, launch, "CELL", r->cell, 0);
    clv__define_number(list, launch, "KEEP", r->keep && !r->backward, 0);
    return launch;
}

/** Those that only an LSTM has, only a GRU, only a use that keeps. */
static void only(clv__launches *list, clv__launch *launch, const clv__op_io *io, bool is,
                 const char *tensors) {
    if (is) clv__arg_tensors(list, launch, io, tensors);
}

// ---- a launch for each step -----------------------------------------------------------------------------------------

static void over_state(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                       const clv__recurrence *r) {
    clv__tile_define(list, launch);
    if (io->variant->number == GROUP)
        clv__launch_grid2(launch, (size_t)clv__round_up(r->H, EDGE), (size_t)clv__round_up(r->N, EDGE), EDGE,
                          EDGE);
    else
        clv__launch_over(list, launch, CLV__ELEMENTS, r->N * r->H);
}

/** The state goes to and fro between output h_n and the workspace, so that it ends in h_n; that of an LSTM's cell stays in its place. */
static void forward_step(clv__launches *list, const clv__op_io *io, const clv__recurrence *r, int64_t s,
                         clv__part other) {
    const bool lstm = r->cell == CLV_CELL_LSTM, to_output = (r->T - 1 - s) % 2 == 0;
    clv__launch *launch =
        launch_of(list, r, io->variant->number == GROUP ? "recur_step_group" : "recur_step");
    clv__arg_tensors(list, launch, io, "o0=T_Y");
    CLV__ARGS(list, launch, io, to_output ? "o1" : "w", other);
    only(list, launch, io, lstm, "o2");
    only(list, launch, io, r->keep, "o3 o4=T_PREV");
    clv__arg_tensors(list, launch, io, "i0=T_Z i1 i2");
    CLV__ARGS(list, launch, io, s == 0 ? "i3" : to_output ? "w" : "o1", other);
    only(list, launch, io, lstm, s == 0 ? "i4" : "o2");
    const int given = s == 0 ? given_of(io) : given_of(io) | 2 | 4;
    CLV__ARGS(list, launch, io, "i5", CLV__INTS(r->N, r->H, clv__recurrence_step(r, s), given));
    over_state(list, launch, io, r);
}

/** Step s back; s -1 makes the gradient of the first state. dh and dc stay in their outputs, the gates' gradients go to and fro. */
static void backward_step(clv__launches *list, const clv__op_io *io, const clv__recurrence *r, int64_t s,
                          const clv__part *gates) {
    const bool lstm = r->cell == CLV_CELL_LSTM;
    clv__launch *launch =
        launch_of(list, r, io->variant->number == GROUP ? "recur_back_group" : "recur_back");
    clv__arg_tensors(list, launch, io, "o0=T_Z o1");
    only(list, launch, io, lstm, "o2");
    only(list, launch, io, r->cell == CLV_CELL_GRU, "o3=T_DZH");
    CLV__ARGS(list, launch, io, "w i0=T_DY i1", gates[(s + 1) & 1]);
    only(list, launch, io, lstm, "i2");
    clv__arg_tensors(list, launch, io, "i3 i4 i5=T_PREV");
    only(list, launch, io, lstm, "i6");
    CLV__ARGS(list, launch, io, "i7 w", gates[s & 1],
              CLV__INTS(r->N, r->H, s < 0 ? -1 : clv__recurrence_step(r, s),
                        s < 1 ? -1 : clv__recurrence_step(r, s - 1),
                        given_of(io) | (s == r->T - 1 ? FIRST : 0)));
    over_state(list, launch, io, r);
}

static void steps(clv__launches *list, const clv__op_io *io) {
    const clv__recurrence r = clv__recurrence_of(io);
    if (r.N == 0) return;
    if (r.backward) {
        const clv__part gates[2] = {clv__floats(list, r.N * r.gates * r.H),
                                    clv__floats(list, r.N * r.gates * r.H)};
        for (int64_t s = r.T - 1; s >= -1; s--) backward_step(list, io, &r, s, gates);
    } else {
        const clv__part other = clv__floats(list, r.N * r.H);
        for (int64_t s = 0; s < r.T; s++) forward_step(list, io, &r, s, other);
    }
}

/** Terms of a product, each with one of each gate. */
static int64_t turns_of(const clv__recurrence *r) {
    return r->gates * r->H;
}

static bool plain_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__recurrence r = clv__recurrence_of(io);
    return clv__loops_fit(device, turns_of(&r) + 4 * r.gates);
}

/** CPU-class devices can run it too, so that it is checked where there is no GPU. */
static bool group_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__recurrence r = clv__recurrence_of(io);
    const uint64_t local = (uint64_t)(EDGE + 4 * EDGE) * (TERMS + 1) * sizeof(float);
    return clv__loops_fit(device, 4 * clv__round_up(turns_of(&r), TERMS)) &&
           device->max_work_group >= EDGE * EDGE && clv__tile_local_bytes(device) >= local;
}

// ---- tile: CPU-class ------------------------------------------------------------------------------------------------

/** How rows are dealt to tasks, and what each has: see the kernel file. */
typedef struct cut {
    int64_t NR, rows, tasks, panels, panel_floats, state_floats;
} cut;

static cut cut_of(const clv_device_info *device, const clv__recurrence *r) {
    const int64_t lanes = clv__tile_lanes(device), MR = lanes == 16 ? 8 : 4, K = turns_of(r);
    cut c = {.NR = 2 * lanes};
    const int64_t N = clv__max64(1, r->N), each = clv__div_up(N, clv__max64(1, device->compute_units));
    c.rows = clv__even_block(N, 1, clv__min64(each, MOST_ROWS));
    c.tasks = clv__div_up(N, c.rows);
    const int64_t all = clv__round_up(c.rows, MR), HP = clv__round_up(r->H, c.NR);
    c.panels = HP / c.NR * (r->backward ? 1 : r->gates);
    c.panel_floats = (r->backward ? K : r->H) * c.NR;
    c.state_floats = all * (r->backward ? 2 * HP + K : 3 * HP + r->gates * c.NR);
    return c;
}

static bool tile_supports(const clv_device_info *device, const clv__op_io *io) {
    const clv__recurrence r = clv__recurrence_of(io);
    const cut c = cut_of(device, &r);
    return clv__threads(device) && device->loop_turns == 0 &&
           c.panel_floats <= INT32_MAX / clv__max64(1, c.panels) &&
           c.state_floats <= INT32_MAX / clv__max64(1, c.tasks);
}

static void width_define(clv__launches *list, clv__launch *launch) {
    clv__define_number(list, launch, "VW", clv__tile_lanes(list->device), 16);
}

static void tile(clv__launches *list, const clv__op_io *io) {
    const clv__recurrence r = clv__recurrence_of(io);
    const bool lstm = r.cell == CLV_CELL_LSTM;
    if (r.N == 0) return;
    const cut c = cut_of(list->device, &r);
    const clv__part panels = clv__floats(list, c.panels * c.panel_floats),
                    state = clv__floats(list, c.tasks * c.state_floats);
    clv__launch *launch = launch_of(list, &r, "recur_pack");
    width_define(list, launch);
    CLV__ARGS(list, launch, io, r.backward ? "w i3" : "w i1", panels, CLV__INTS(c.panels, r.H, r.backward));
    clv__launch_over(list, launch, CLV__TASKS, c.panels);
    launch = launch_of(list, &r, r.backward ? "recur_tile_backward" : "recur_tile");
    width_define(list, launch);
    if (r.backward) {
        clv__arg_tensors(list, launch, io, "o0=T_Z o1");
        only(list, launch, io, lstm, "o2");
        only(list, launch, io, r.cell == CLV_CELL_GRU, "o3=T_DZH");
        clv__arg_tensors(list, launch, io, "i0=T_DY i1");
        only(list, launch, io, lstm, "i2");
        CLV__ARGS(list, launch, io, "w i4 i5=T_PREV", panels);
        only(list, launch, io, lstm, "i6");
        CLV__ARGS(list, launch, io, "i7 w", state);
    } else {
        clv__arg_tensors(list, launch, io, "o0=T_Y o1");
        only(list, launch, io, lstm, "o2");
        only(list, launch, io, r.keep, "o3 o4=T_PREV");
        CLV__ARGS(list, launch, io, "i0=T_Z w i2 i3", panels);
        only(list, launch, io, lstm, "i4");
        CLV__ARGS(list, launch, io, "i5 w", state);
    }
    CLV__ARGS_I32(list, launch, r.N, r.T, r.H, c.rows, r.reverse, given_of(io));
    clv__launch_over(list, launch, CLV__TASKS, c.tasks);
}

const clv__variant clv__recurrence_variants[] = {
    {"plain", plain_supports, .lower = steps},
    {"group", group_supports, .lower = steps, .relative = 0.1, .lanes = true, .number = GROUP},
    {"tile", tile_supports, .lower = tile, .relative = 0.02},
    {0}};
