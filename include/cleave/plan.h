// SPDX-License-Identifier: Apache-2.0
// A plan says how a graph is computed on a device: variants, order, memory to the byte. Making one takes no device memory.
// A session holds what runs share: parameters by name, and one arena. A run does a plan, step by step.
//
//     clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan);
//     clv_session_create(runtime, NULL, &session);
//     clv_run_create(session, plan, &run);
//     for (...) { clv_run_feed(run, x, images, bytes); clv_run_step(run, &ticket); clv_run_fetch(run, ticket, loss, &value, 4); }
#ifndef CLEAVE_PLAN_H
#define CLEAVE_PLAN_H

#include "device.h"
#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_plan clv_plan;
typedef struct clv_session clv_session;
typedef struct clv_run clv_run;

typedef struct clv_plan_config {
    clv_device *device; /**< NULL: the best device */
    /** Layers on devices: `features.*=cpu:0,classifier.*=gpu:0`. Patterns over layer paths (`*`, `?`), the last match wins,
     *  every layer with parameters must be covered. What has no layer of its own follows the newest of its data.
     *  clv_place_choose writes such texts. NULL: all on `device`. */
    const char *place;
    bool explicit_transfers; /**< a value needed on another device than its own is an error */
    /** pinned choices, `matmul=plain,conv2d=tile`; `*=plain` for all. NULL: CLEAVE_VARIANTS, else none */
    const char *variants;
    /**
     * Results that are dropped after the forward pass and computed again for the backward pass, to save memory; gradients stay
     * the same bit for bit. NULL: none. `auto`: if the plan does not fit the devices' budgets and memory, what makes it fit,
     * with little computed again; else none. Or modules by name, as `layer1.*,layer2.0`: each is treated as one wrapped in
     * torch.utils.checkpoint: everything computed inside is dropped, except what leaves it. Patterns are as in `place` and name
     * a module with all that lies in it: `layer?.?.*` each block, `*` each outermost module by itself.
     */
    const char *recompute;
    bool no_fuse; /**< one launch for each use of an op: ops are not fused */
    /** a larger plan of the same session: where that has activations this one puts workspaces that find no room among its own.
     *  `recompute` auto makes both fit together; then it must outlive this one. NULL: none */
    const clv_plan *same_session;
    /** no other plan uses its session: workspaces then lie among the activations where that takes less, and count as such.
     *  Plans that share a session share the memory of both, each kind as large as one of them needs */
    bool own_session;
    CLV_RESERVED(8);
} clv_plan_config;

/**
 * Plan a graph: everything that leads to its outputs, and every in-place update. The graph must stay until the plan is gone.
 *
 * Errors  the graph's first mistake; CLV_E_VALUE no outputs, or variants names what is not there;
 *         CLV_E_NOT_FOUND a pattern of place or recompute matches no layer;
 *         CLV_E_UNSUPPORTED a pinned variant cannot run here
 */
CLV_API CLV_MUST_CHECK clv_status clv_plan_create(CLV_KEPT clv_graph *graph,
                                                  CLV_OR_NULL CLV_KEPT const clv_plan_config *config,
                                                  clv_plan **out);
CLV_API void clv_plan_destroy(clv_plan *plan);
#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * List the variants in quarantine on a device, one call of `tell` for each: plans do not use them, because they failed there. They
 * failed in this process, or its tuning file, which clv_tune and clv_check write, says to avoid them. `tell` uses nothing of
 * the runtime.
 *
 * Errors  memory
 */
CLV_API CLV_MUST_CHECK clv_status clv_device_quarantine(clv_device *device,
                                                        void (*tell)(void *user, const char *op,
                                                                     const char *variant, const char *why),
                                                        void *user);

/** Are these pinned choices well formed, of ops and variants that there are? NULL: those of CLEAVE_VARIANTS, if it is set.
 *  Errors  CLV_E_VALUE, with a sentence that says where they came from */
CLV_API CLV_MUST_CHECK clv_status clv_variants_check(clv_runtime *runtime, CLV_OR_NULL const char *variants);
#endif // CLEAVE_STABLE_ONLY

/** What is computed again in each step. All zero: nothing. */
typedef struct clv_plan_recomputed {
    int nodes; /**< how many nodes are computed once more */
    uint64_t
        saved_bytes; /**< of activations and workspace, on all devices together; some by a tighter layout, so even with 0 nodes */
    double extra_time; /**< expected, from the ops' costs: a part of the step without it (0.3: 30 % longer) */
    CLV_RESERVED(4);
} clv_plan_recomputed;

/** What a plan is made of: counts of what the functions below return by an index. */
typedef struct clv_plan_info {
    int n_devices, n_nodes, n_kept, n_transfers;
    clv_plan_recomputed recomputed;
    CLV_RESERVED(4);
} clv_plan_info;
CLV_API clv_plan_info clv_plan_info_get(const clv_plan *plan);

/** The devices it runs on, in the order the placement names them; NULL past the end. */
CLV_API CLV_OR_NULL clv_device *clv_plan_device_get(const clv_plan *plan, int index);

/** Bytes that a plan, or several plans that share a session, will hold on the device: exact. */
typedef struct clv_plan_memory {
    clv_device *device;
    uint64_t predicted_peak_bytes;
    uint64_t category[CLV_CATEGORIES];
    CLV_RESERVED(4);
} clv_plan_memory;

/** What a session that serves these plans will hold on a device, before any of it is taken; NULL: the first plan's first device. */
CLV_API clv_plan_memory clv_plans_memory(CLV_COUNT(n) clv_plan *const *plans, int n,
                                         CLV_OR_NULL clv_device *device);

/** Would a new session for these plans fit on their devices now? Takes nothing.
 *  Errors  CLV_E_BUDGET, CLV_E_DEVICE_MEMORY as clv_session_reserve; CLV_E_VALUE no plan */
CLV_API CLV_MUST_CHECK clv_status clv_plans_fit(CLV_COUNT(n) clv_plan *const *plans, int n);

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * The largest batch that fits, by trying: from `asked` upwards if that fits, else downwards, and then between the last two. Memory
 * need not grow with the batch, so a larger one than is found may fit too; but what is found was tried, and one more as well, and
 * where more than `asked` may be found the next eight.
 *
 * asked   tried first
 * most    none above it is tried, at least 1
 * fits    makes and gives up a plan for a batch, and tells whether it fits (clv_plans_fit): CLV_OK, or why not; called some ten
 *         to sixty times
 * largest fits, and the next do not or are above `most`; 0: none that was tried fits
 *
 * Errors  CLV_E_HOST_MEMORY  `fits` gave it: what could not be planned is not what does not fit, so nothing is known
 */
CLV_API CLV_MUST_CHECK clv_status clv_batch_search(int64_t asked, int64_t most,
                                                   clv_status (*fits)(void *user, int64_t batch), void *user,
                                                   CLV_OUT int64_t *largest);
#endif // CLEAVE_STABLE_ONLY

/** One node of a plan, in the order of execution. Strings are borrowed from the plan. */
typedef struct clv_plan_node {
    const char *layer, *op, *variant;
    const char *phase; /**< `forward`, `backward`, `update`, `recompute`: forward once more, or `once`: in a run's first step, and
                         *   again after a parameter was written */
    const char
        *chosen; /**< why this variant: `pinned`, `tuned` (clv_tune), `ranked`; "" where there is no choice */
    clv_device *device;
    clv_shape output_shape;
    int64_t parameters; /**< elements of the parameters it reads first */
    uint64_t bytes;     /**< of its outputs and workspace */
    double flops;
    double traffic; /**< bytes that it must read and write, caches or not */
    int launches;
    int fused;        /**< how many nodes of the graph are done as this one; 0: it is one of them */
    const char *also; /**< ops done to its result before that is stored, `add+relu`; "" */
    int micro_batch;  /**< from 0; -1: of none (clv_micro_batches) */
    /** since a tensor is larger than the device's largest allocation, it does part `part` of so many of the graph's node, or, if that is
     *  -1, takes parts and puts them together; parts 0: it is done whole. output_shape is the whole's */
    int part, parts;
    /** bytes of memory of its own that it writes results to, and of its workspace: nothing for a view, or for what is written over an
     *  input. Nodes whose results do not live at the same time share memory, so sums are more than a plan holds */
    uint64_t made[CLV_CATEGORIES];
    CLV_RESERVED(4);
} clv_plan_node;

/** The index-th in the order of execution; all zero past the end. */
CLV_API clv_plan_node clv_plan_node_get(const clv_plan *plan, int index);

/** A tensor that a plan's session keeps between steps: a parameter, a buffer, or optimizer state. Strings are borrowed from the graph. */
typedef struct clv_plan_kept {
    const char *name;
    clv_category category; /**< CLV_PARAMETERS, CLV_OPTIMIZER, or CLV_ACTIVATIONS: a cache */
    clv_shape shape;
    uint64_t bytes;
    bool parameter; /**< it may be trained; else a buffer (running statistics), or optimizer state */
    bool frozen;    /**< a parameter that takes no gradient (clv_freeze) */
    int pieces;     /**< allocations that it lies in: 1, but where it is larger than the device's largest */
    clv_device *device;
    CLV_RESERVED(4);
} clv_plan_kept;

/** The index-th, device by device; all zero past the end. */
CLV_API clv_plan_kept clv_plan_kept_get(const clv_plan *plan, int index);

/** A value carried between devices in each step. Strings are borrowed from the graph. */
typedef struct clv_plan_transfer {
    clv_device *from, *to;
    const char *tensor;
    uint64_t bytes;
    bool shared; /**< no byte moves: both compute in the host's memory, `to` reads the value where it is */
    CLV_RESERVED(4);
} clv_plan_transfer;

/** The index-th; all zero past the end. */
CLV_API clv_plan_transfer clv_plan_transfer_get(const clv_plan *plan, int index);

/** What a device of a plan has to do in a step. */
typedef struct clv_plan_device_info {
    /** the part of a step in which it computes, 0 to 1, the rest being waits for other devices: predicted from the ops' costs and the
     *  devices' speeds, if each was measured before (clv_place_choose keeps what it measures); else as if all devices were equally fast
     *  and transfers took no time. Of S equal stages and n micro-batches that is n / (n + S - 1) */
    double busy;
    /** seconds that it takes at least, if it reaches its maker's figures: of each of its nodes the longer of its counted work and its
     *  counted bytes, added up. Work is a quarter of the op's where Winograd's algorithm does with that. 0 where no figures are known
     *  (clv_device_info.peak_bytes_per_second). Without figures for work, bytes alone */
    double least_seconds;
    CLV_RESERVED(4);
} clv_plan_device_info;
/** All zero for a device that has no part in the plan. */
CLV_API clv_plan_device_info clv_plan_device_info_get(const clv_plan *plan, const clv_device *device);

// ---- session ------------------------------------------------------------------------------------------------------

typedef struct clv_session_config {
    uint64_t seed; /**< first values of parameters, and dropout */
    int64_t step;  /**< clv_session_info.step to begin with, of a loop of your own that goes on */
    CLV_RESERVED(7);
} clv_session_config;

CLV_API CLV_MUST_CHECK clv_status clv_session_create(clv_runtime *runtime,
                                                     CLV_OR_NULL const clv_session_config *config,
                                                     clv_session **out);
/** Its runs must be gone. NULL is fine. */
CLV_API void clv_session_destroy(clv_session *session);

typedef struct clv_session_info {
    clv_runtime *runtime; /**< that it was made from */
    int n_tensors;        /**< that it holds (clv_session_get) */
    int64_t step;         /**< training steps done: a part of the random state (dropout) */
    bool averages_swapped; /**< parameters are their running averages now (clv_averages_swap) */
    CLV_RESERVED(4);
} clv_session_info;
/** All zero of NULL. */
CLV_API clv_session_info clv_session_info_get(CLV_OR_NULL const clv_session *session);

/**
 * Take all device memory that these plans need, once: parameters that are not there yet (with their first values), and
 * arenas as large as the largest plan's. Afterwards runs of these plans take nothing more.
 *
 * Errors  CLV_E_BUDGET, CLV_E_DEVICE_MEMORY with a report of what would fit; CLV_E_STATE a larger arena is needed while
 *         runs exist; CLV_E_SHAPE a parameter is there with another shape
 */
CLV_API CLV_MUST_CHECK clv_status clv_session_reserve(clv_session *session,
                                                      CLV_COUNT(n) clv_plan *const *plans, int n);

/** One tensor kept in a session. Strings are borrowed until the session goes. */
typedef struct clv_session_tensor {
    const char *name;
    clv_dtype dtype;
    clv_shape shape;
    clv_category category; /**< CLV_PARAMETERS, CLV_OPTIMIZER, or CLV_ACTIVATIONS: a cache */
    bool trainable;
    clv_device *device;
    size_t bytes;
    CLV_RESERVED(4);
} clv_session_tensor;

/** Tensors the session holds, in the order they were made; all zero past the end. */
CLV_API clv_session_tensor clv_session_get(const clv_session *session, int index);
/** Position of a name, -1 if it is not there. */
CLV_API int clv_session_find(const clv_session *session, const char *name);

/** Copy a tensor of the session to host memory, or from it; bytes must be its size. Waits for running steps. There is no
 *  other way to a tensor's values: the host never looks at a device's memory unasked. */
CLV_API CLV_MUST_CHECK clv_status clv_session_read(clv_session *session, int index,
                                                   CLV_OUT CLV_COUNT(bytes) void *data, size_t bytes);
CLV_API CLV_MUST_CHECK clv_status clv_session_write(clv_session *session, int index,
                                                    CLV_COUNT(bytes) const void *data, size_t bytes);

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * Have a tensor of the session lie in memory of the program's from now on, on a device that computes in the host's memory: what the
 * program writes there before a step the step reads, and what the step writes is there when it is done. It counts as before.
 *
 * data   its values, at a multiple of 64; must stay until the session is gone, or the tensor lies elsewhere
 * bytes  the tensor's size
 *
 * Errors  CLV_E_UNSUPPORTED  the device has memory of its own, or the tensor lies in pieces;  CLV_E_VALUE  data is not at a
 *         multiple of 64;  CLV_E_STATE  the session has runs;  CLV_E_NOT_FOUND, CLV_E_SHAPE  as clv_session_write
 */
CLV_API CLV_MUST_CHECK clv_status clv_session_use(clv_session *session, int index,
                                                  CLV_KEPT CLV_INOUT CLV_COUNT(bytes) void *data,
                                                  size_t bytes);
#endif // CLEAVE_STABLE_ONLY
/**
 * Move tensors with their values to another device, as PyTorch's `module.to(device)`: plans for that device find them there
 * afterwards. Optimizer state has its parameter's name before its own (`fc1.weight.momentum_buffer`), so it goes along. The
 * memory they had is freed; where nothing is kept any more, arenas too. A value that is there already under the same name
 * is replaced. Positions (clv_session_get) may change. After an error everything is where it was.
 *
 * pattern  over names: `features.*`, `fc1` (all that is in it), `fc1.weight`; NULL: all
 *
 * Errors   CLV_E_STATE the session has runs, or a name is kept on two other devices; CLV_E_NOT_FOUND nothing matches;
 *          CLV_E_BUDGET, CLV_E_DEVICE_MEMORY they do not fit there; CLV_E_UNSUPPORTED the device cannot be used
 */
CLV_API CLV_MUST_CHECK clv_status clv_session_move(clv_session *session, CLV_OR_NULL const char *pattern,
                                                   clv_device *device);

// ---- run ------------------------------------------------------------------------------------------------------------

/** Build programs, set every argument once. Reserves memory if clv_session_reserve has not been called for the plan. */
CLV_API CLV_MUST_CHECK clv_status clv_run_create(CLV_KEPT clv_session *session, CLV_KEPT clv_plan *plan,
                                                 clv_run **out);
CLV_API void clv_run_destroy(clv_run *run);

/** Copy values for an input of the next step; bytes must be its size. The memory is free again on return. May wait for
 *  the step before the last. An input that is not fed again keeps its last values. A late input (clv_input_late) is one of the step
 *  that was begun last: CLV_E_STATE where that is over. */
CLV_API CLV_MUST_CHECK clv_status clv_run_feed(clv_run *run, const clv_tensor *input,
                                               CLV_COUNT(bytes) const void *data, size_t bytes);

/** Hand one step to the device's worker and return at once. *ticket names it for clv_run_fetch; NULL: not wanted. */
CLV_API CLV_MUST_CHECK clv_status clv_run_step(clv_run *run, CLV_OUT CLV_OR_NULL int64_t *ticket);

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * Do the rest of a step whose graph has late inputs (clv_input_late), which are fed by now. Returns at once, as clv_run_step.
 * Between the two the step holds its activations and nothing of it is under way, so it may as well never be resumed: the next
 * step, one of another run of the session, or the run's end drops it.
 *
 * ticket  of clv_run_step
 *
 * Errors  CLV_E_STATE  the step was resumed already, or dropped; a late input was never fed;  else as clv_run_step
 */
CLV_API CLV_MUST_CHECK clv_status clv_run_resume(clv_run *run, int64_t ticket);
#endif // CLEAVE_STABLE_ONLY
/** Wait for the step and copy an output of it. Outputs of the last two steps are kept; older: CLV_E_STATE. So is one that a
 *  step makes of late inputs, before clv_run_resume. */
CLV_API CLV_MUST_CHECK clv_status clv_run_fetch(clv_run *run, int64_t ticket, const clv_tensor *output,
                                                CLV_OUT CLV_COUNT(bytes) void *data, size_t bytes);

#ifndef CLEAVE_STABLE_ONLY // experimental
/**
 * Where an output lies, on a device that computes in the host's memory. After a step (clv_run_finish) its values are there until the
 * next step of the session begins; those of an output that is made of late inputs until its rest does (clv_run_resume). It is not
 * copied for clv_run_fetch any more, which then has the last step's alone. Call it before the run's first step.
 *
 * data  borrowed until the session is gone, or reserves memory for other plans
 *
 * Errors  CLV_E_UNSUPPORTED  the device has memory of its own, the output lies in pieces, or is made of late inputs and what comes before
 *         those uses its memory;  CLV_E_STATE  steps were done;  CLV_E_VALUE  it is no output
 */
CLV_API CLV_MUST_CHECK clv_status clv_run_see(clv_run *run, const clv_tensor *output,
                                              CLV_BORROWED void **data);
#endif // CLEAVE_STABLE_ONLY
/** Values for an input, and room for those of an output; bytes is the tensor's size. */
typedef struct clv_feed {
    const clv_tensor *input;
    CLV_COUNT(bytes) const void *data;
    size_t bytes;
} clv_feed;
typedef struct clv_fetch {
    const clv_tensor *output;
    CLV_OUT CLV_COUNT(bytes) void *data;
    size_t bytes;
} clv_fetch;

typedef struct clv_step {
    CLV_COUNT(n_feeds)
    const clv_feed *feeds; /**< n_feeds of them; an input that is not fed again keeps its last values */
    int n_feeds;
    double lr; /**< learning rate, where the graph has an optimizer; 0 changes nothing */
    CLV_COUNT(n_fetches) const clv_fetch *fetches; /**< n_fetches of them */
    int n_fetches;
} clv_step;

/**
 * A whole step: feed the inputs and what the optimizer wants (clv_optimizer_hyper), run, and fetch. With an output to fetch it
 * waits for the step; programs that want the next step fed meanwhile call the four one by one, and fetch a step late.
 *
 * Errors  as clv_run_feed, clv_run_step, clv_run_fetch;  CLV_E_VALUE  lr is negative or not a number
 */
CLV_API CLV_MUST_CHECK clv_status clv_run_do(clv_run *run, const clv_step *step);

/** Wait until every step is done. */
CLV_API CLV_MUST_CHECK clv_status clv_run_finish(clv_run *run);

/** What is left of a run in which a device failed. */
typedef struct clv_run_failure {
    clv_status status;    /**< of the failure; CLV_OK: there was none */
    clv_device *device;   /**< whose driver failed */
    const char *sentence; /**< what it said; borrowed, until the run goes */
    int64_t done; /**< steps before this ticket are done: their updates are made, later ones' are not, */
    /** parameters are partially updated: some updates of step `done` are made and others not. Only where tensors of the session are
     *  kept, or updated, on several devices, or on the one that failed */
    bool partial;
    CLV_RESERVED(4);
} clv_run_failure;

/**
 * Ask after a run's failure; waits for what is under way. A run that failed does no more steps: destroy it, and make another
 * one, of a plan without that device if it is gone. What the session keeps on other devices is as `done` says, and outputs
 * of steps before it that are still kept can be fetched. No code of OpenCL says that a device is gone: any failure within
 * a step may mean that, or that the driver was out of memory.
 */
CLV_API clv_run_failure clv_run_failed(clv_run *run);

#ifdef __cplusplus
}
#endif
#endif
