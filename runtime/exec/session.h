// SPDX-License-Identifier: Apache-2.0
// Inside of a session: tensors kept by name, and the memory that runs share.
#ifndef CLV_EXEC_SESSION_H
#define CLV_EXEC_SESSION_H

#include "base/names.h"
#include "exec/parallel.h"
#include "cleave/profile.h"
#include "exec/memory.h"
#include "plan/plan.h"

/** A tensor that outlives runs, on a device. */
typedef struct clv__kept {
    char *name;
    clv__desc desc;
    clv_category category;
    bool trainable, in_out; // as of clv_tensor
    int64_t part_of;        // a rank's part of so many elements; 0: all
    clv_shape whole;        // of these
    clv__holding memory;    // its device too
    bool used;              // it lies in memory of the program's: clv_session_use
} clv__kept;

/** What is told of a session's weights in files of them (infer/weights_info.c). All NULL: nothing. */
typedef struct clv__session_about {
    char *model, *table, *record;
    char *lora,
        *whole; // patterns: of layers that have adapters, and of what is trained beside these. NULL: none
    int64_t lora_rank;
    double lora_alpha;
} clv__session_about;
void clv__session_about_reset(clv__session_about *about);

struct clv_session {
    clv_runtime *runtime;
    uint64_t seed;
    int64_t step;
    bool averages; // who uses the parameters gets their running averages (infer/averages.c)
    bool swapped;  // parameters and averages are exchanged (train/swap.c): nothing may train
    clv__session_about about;
    clv__arenas **arenas; // one for each device, in the order they came
    size_t n_arenas, arenas_room;
    clv__kept *kept;
    size_t n_kept, kept_room;
    clv__names names; // of what is kept: its numbers
    int n_runs;
    struct clv_ranks *ranks; // that runs exchange values with; NULL: none
    clv_profile *profile;    // of runs that are made from now on; NULL: they are not profiled
    clv_run *active;         // whose steps may be under way; runs of a session take turns
};

/** Build the programs of plans, together; a variant that fails is put into quarantine and its plan made
 *  again. */
clv_status clv__plans_prepare(clv_plan *const *plans, int n);

/** The session's memory on a device; NULL if it has none there. */
clv__arenas *clv__session_arenas(const clv_session *session, const clv_device *device);
/** The kept tensor of that name on a device; NULL if it is not there. */
clv__kept *clv__session_kept(const clv_session *session, const char *name, const clv_device *device);

/** Read a tensor whole, of which each rank has a part: rank 0 into `data`, the others (data NULL) hand theirs
 *  over. All ranks do so in one order. */
clv_status clv__session_read_whole(clv_session *session, int index, void *data);
/** Write this rank's part of a whole. */
clv_status clv__session_write_part(clv_session *session, int index, const void *whole);

/** What lies on devices of other ranks is told to rank 0, where it can be read. On all ranks, in one
 *  order. */
clv_status clv__session_gather(clv_session *session);

/** Take back the arenas, on every device; and what is kept from number `first` on. */
void clv__session_empty(clv_session *session);
void clv__session_drop(clv_session *session, size_t first);

/** First values that are being drawn. Zero-initialised there are none. Not moved while they are. */
typedef struct clv__first_values {
    struct clv__first_part *parts;
    size_t n, room;
    clv__parallel parallel;
} clv__first_values;

/** A tensor's first values, stored as `dtype`, which depend on seed and name alone: for the parallel if the
 *  device computes in the host's memory, which must then stay until the end; else they are there on return.
 */
clv_status clv__first_values_add(clv__first_values *values, const clv_tensor *tensor, clv_dtype dtype,
                                 uint64_t seed, const clv__holding *holding);
void clv__first_values_begin(clv__first_values *values);
/** Wait until all are drawn. Without a begin nothing is. */
void clv__first_values_end(clv__first_values *values);

/** Give back what the session holds on a device, tensors that are kept there included. No run may use it. */
void clv__session_forget(clv_session *session, const clv_device *device);

#endif
