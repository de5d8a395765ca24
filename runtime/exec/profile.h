// SPDX-License-Identifier: Apache-2.0
// Inside of a profile. The worker puts an event beside each command (recording.c). The thread that waits for
// the step reads the events' times and adds them up (profile.c). Without a profile a run has no recordings,
// and a command costs one comparison of a pointer more.
#ifndef CLV_EXEC_PROFILE_H
#define CLV_EXEC_PROFILE_H

#include "cleave/profile.h"
#include "device/device.h"

// ---- what one slot on one device did ----------------------------------------------------------------------

/** From `begin` to `end`; or, where end is NULL, as long as the event `begin` itself. */
typedef struct clv__mark {
    int row; // of the run's rows
    clv__bevent *begin, *end;
} clv__mark;

/** The worker's until the step is enqueued, then the one's who waits for it. */
typedef struct clv__recording {
    clv__mark *marks; // NULL: nothing is recorded
    int n;
} clv__recording;

static inline bool clv__recording_on(const clv__recording *recording) {
    return recording->marks != NULL;
}
/** Where the command's own event goes. */
clv__bevent **clv__recording_event(clv__recording *recording, int row);
/** Before and after what gives no event: markers on its queue. */
clv_status clv__recording_open(clv__recording *recording, int row, clv_device *device, clv__queue queue,
                               clv__error *error);
clv_status clv__recording_close(clv__recording *recording, clv_device *device, clv__queue queue,
                                clv__error *error);
/** Forget what was recorded. */
void clv__recording_reset(clv__recording *recording, const clv_device *device);

// ---- what a profile keeps ---------------------------------------------------------------------------------

/** What is done in each step: a node of the plan by its position; behind them, for each place, `upload` and
 *  `read`. */
typedef struct clv__profiled_row {
    clv_profile_node node; // ns: the sum; strings in the profile's arena
    int place;
    bool transfer;                   // carries bytes and computes nothing
    uint64_t gradients, activations; // bytes that live there meanwhile, workspace among the activations
} clv__profiled_row;

typedef struct clv__profiled_place {
    clv_device *device;
    int64_t clock_ns;              // what is added to the device's clock to make it the host's
    bool known;                    // it has a clock
    uint64_t busy_ns, transfer_ns; // sums
    uint64_t held[CLV_CATEGORIES]; // bytes on the device when the run was made
} clv__profiled_place;

/** A step that is under way. */
typedef struct clv__profiled_step {
    int64_t ticket;
    uint64_t posted, begin, end; // on the host's clock
    int n_settled;               // places that have done it
    bool after_pause, kept;      // another run had its turn before; its slices are kept
} clv__profiled_step;

typedef struct clv__profiled {
    clv_profile *profile;
    int number; // of the profile's runs
    bool trains;
    clv__profiled_row *rows;
    int n_rows, n_nodes; // n_nodes: of the plan
    clv__profiled_place *places;
    int n_places;
    int most_marks; // of a step, on all places
    clv__profiled_step steps[2];
    bool paused;
    int64_t n_done, n_steps; // in all; in the sums
    uint64_t last_end, step_ns, host_ns;
} clv__profiled;

/** For the trace. */
typedef struct clv__slice {
    uint64_t start, end; // on the host's clock
    uint64_t bytes;      // of a slice of the host
    int64_t step;
    int run, row; // row below 0: of the host, see clv__host_slice
} clv__slice;

typedef enum clv__host_slice {
    CLV__HOST_FEED = -1,
    CLV__HOST_STEP = -2,
    CLV__HOST_FETCH = -3
} clv__host_slice;

struct clv_profile {
    clv_runtime *runtime;
    clv_profile_config config;
    clv__arena arena;
    clv__profiled **runs;
    size_t n_runs, room;
    clv__slice *slices;
    size_t n_slices;
    bool full;
    int64_t n_kept, n_left_out; // steps
};

/** The run's commands are made: begin to profile it, if its session has a profile. */
clv_status clv__profile_begin(clv_run *run);
/** The run goes. */
void clv__profile_end(clv_run *run);
/** A step is handed over in this slot; or another run had its turn. */
void clv__profile_posted(clv_run *run, int slot, int64_t ticket);
/** A place has done the slot's step, or failed in it (!done): read its recording, and begin it anew. */
void clv__profile_settle(clv_run *run, int place, int slot, bool done);
/** The host did something for a step, from `since` until now. */
void clv__profile_host(clv_run *run, clv__host_slice what, int64_t ticket, uint64_t bytes, uint64_t since);

#endif
