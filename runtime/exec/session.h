// SPDX-License-Identifier: Apache-2.0
// Inside of a session: tensors kept by name, and the memory that runs share.
#ifndef CLV_EXEC_SESSION_H
#define CLV_EXEC_SESSION_H

#include "plan/plan.h"

/** A tensor that outlives runs. */
typedef struct clv__kept {
    char *name;
    clv__desc desc;
    clv_category category;
    bool trainable;
    clv__memory memory;
} clv__kept;

/** Memory of an arena, in chunks no larger than the device allows. */
typedef struct clv__chunks {
    clv__memory *items;
    int n;
    clv__layout layout;
} clv__chunks;

struct clv_session {
    clv_runtime *runtime;
    clv_device *device; // NULL before the first reserve
    uint64_t seed;
    int64_t step;
    clv__kept *kept;
    size_t n_kept, kept_room;
    clv__chunks gradients, activations;
    clv__memory workspace, io, staging;
    int n_runs;
    clv_run *active; // whose steps may be under way; runs of a session take turns
};

/** Build the plan's programs; a variant that fails is put into quarantine and the plan made again. */
clv_status clv__plan_prepare(clv_plan *plan);

/** Does the session hold all that the plan needs? */
bool clv__session_serves(const clv_session *session, const clv_plan *plan);

/** Wait for the active run's steps. */
clv_status clv__session_quiet(clv_session *session);

#endif
