// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes: each node of a plan, on each device, by the device's own clock. And the same as a trace, to look
// at in a browser (ui.perfetto.dev, chrome://tracing).
//
//     clv_profile *profile;
//     clv_profile_create(runtime, NULL, &profile);
//     clv_session_set_profile(session, profile);            // a trainer's or predictor's session too
//     ... runs made from here on, and their steps ...
//     for (int i = 0; i < clv_profile_run_get(profile, 0).n_nodes; i++) use(clv_profile_node_get(profile, 0, i));
//     clv_profile_trace(profile, "step.json");
//     clv_profile_destroy(profile);                         // after the runs
//
// A profiled step asks for an event of each command and so takes a little longer; one that is not profiled does nothing more
// than without all this. Values are the same bits.
#ifndef CLEAVE_PROFILE_H
#define CLEAVE_PROFILE_H

#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CLEAVE_STABLE_ONLY // experimental

typedef struct clv_profile clv_profile;

/** Zero: the defaults. */
typedef struct clv_profile_config {
    int64_t warm_up; /**< first steps of each run that the averages leave out, if there are more; 0: 2 */
    int64_t slices;  /**< kept for a trace, 48 bytes each: later steps are left out; 0: none */
    CLV_RESERVED(8);
} clv_profile_config;

/** Errors  CLV_E_VALUE a negative number; CLV_E_HOST_MEMORY */
CLV_API CLV_MUST_CHECK clv_status clv_profile_create(clv_runtime *runtime,
                                                     CLV_OR_NULL const clv_profile_config *config,
                                                     clv_profile **out);
/** The runs that it saw are gone, and no session has it any more. NULL is fine. */
CLV_API void clv_profile_destroy(clv_profile *profile);

/** Profile the runs that are made of this session from now on; NULL: none of them. Sessions of one profile are used by one
 *  thread. */
CLV_API void clv_session_set_profile(clv_session *session, CLV_OR_NULL CLV_KEPT clv_profile *profile);

// ---- figures --------------------------------------------------------------------------------------------------------

/** A run that was profiled. Times are averages over its steps, in nanoseconds. */
typedef struct clv_profile_run {
    bool trains;
    int64_t done;  /**< steps that were profiled */
    int64_t steps; /**< averaged over */
    bool warm;     /**< are the first steps, of warm_up, left out? */
    int n_devices, n_nodes; /**< for clv_profile_device_get and clv_profile_node_get */
    /** from the end of a step to the end of the next, which was handed over in time; or from when that was handed over */
    double step_ns;
    double host_ns; /**< besides: from the end of a step until the host hands over the next one */
    /** part of step_ns in which devices have nothing to do, on the average of all of them: what a pipeline's bubble is */
    double bubble;
    CLV_RESERVED(4);
} clv_profile_run;

/** What a device had to do in a step of a run. */
typedef struct clv_profile_device {
    clv_device *device; /**< NULL: there is none */
    double busy_ns;     /**< computing */
    double transfer_ns; /**< uploads, reads, values sent and received; an upload may overlap the computing */
    double idle_ns;     /**< the rest of step_ns: launches, waits for other devices */
    bool known;         /**< false: the driver gives no times */
    CLV_RESERVED(4);
} clv_profile_device;

/** One node of the plan, or what was carried to or from the host: `upload`, `read` of phase `transfer`. Strings are the
 *  profile's. */
typedef struct clv_profile_node {
    clv_plan_node node; /**< `phase` of what is carried is `transfer` */
    double ns;
    CLV_RESERVED(4);
} clv_profile_node;

/** Runs in the order they were made; they stay when a run is gone. All zero past the end. */
CLV_API clv_profile_run clv_profile_run_get(const clv_profile *profile, int run);
typedef struct clv_profile_info {
    int n_runs;
    int main_run; /**< the run with the most steps, of those that train if there are any; -1: none did a step */
    int64_t traced_steps,
        left_out_steps; /**< of all runs: that the trace holds; and does not, as its slices were used up */
    CLV_RESERVED(4);
} clv_profile_info;
CLV_API clv_profile_info clv_profile_info_get(const clv_profile *profile);
CLV_API clv_profile_device clv_profile_device_get(const clv_profile *profile, int run, int index);
/** What has launches or moves bytes, in the order of execution. All zero past the end. */
CLV_API clv_profile_node clv_profile_node_get(const clv_profile *profile, int run, int index);

/** A sum of nodes. */
typedef struct clv_profile_work {
    int nodes;
    double ns, flops, bytes; /**< bytes read and written */
} clv_profile_work;

typedef enum clv_profile_by {
    CLV_PROFILE_LAYERS, /**< one row for each layer on each device; what is in none goes by its op */
    CLV_PROFILE_OPS     /**< one row for each variant of each op on each device, the longest first */
} clv_profile_by;

typedef struct clv_profile_row {
    const char *name, *variant; /**< of an op; variant of a layer: "" */
    clv_device *device;
    clv_profile_work forward, backward, update, transfer; /**< backward: with what is computed again for it */
    clv_profile_work all;
} clv_profile_row;

/**
 * Sum nodes up, by layer or by op.
 *
 * nodes  n of them, in the order of execution
 * rows   room for n, written
 * result how many rows there are
 */
CLV_API int clv_profile_sum(CLV_COUNT(n) const clv_profile_node *nodes, int n, clv_profile_by by,
                            CLV_OUT CLV_COUNT(n) clv_profile_row *rows);

// ---- trace ----------------------------------------------------------------------------------------------------------

/**
 * Write what was kept as a Chrome trace (JSON): a process for each device, with what it computed, what was carried, and how many
 * bytes lived meanwhile; and one for the host. Each slice has the number of its run, whether that run trains, and of its step,
 * which each run counts for itself. Atomic: a fault leaves the file that was there.
 *
 * Errors  CLV_E_STATE nothing is kept; CLV_E_IO; CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_profile_trace(const clv_profile *profile, const char *path);

#endif // CLEAVE_STABLE_ONLY

#ifdef __cplusplus
}
#endif
#endif
