// SPDX-License-Identifier: Apache-2.0
// A session's tensors in archives and back.
#ifndef CLV_INFER_WEIGHTS_H
#define CLV_INFER_WEIGHTS_H

#include "base/error.h"
#include "cleave/train.h"

/** The parts that this rank keeps of what rank 0 puts into a checkpoint (clv__state_put) go there. */
clv_status clv__state_hand_over(clv_session *session);
/** Add the session's tensors of a category to an archive, their names after the prefix. */
clv_status clv__state_put(clv_session *session, clv_category category, const char *prefix,
                          clv_archive *archive);
/** Add what is used of the parameters and buffers, under their names: running averages where the session has
 *  them and uses them. */
clv_status clv__weights_put(clv_session *session, clv_archive *archive);
/** Add what the weights are of, if the session knows it (weights_info.c). */
clv_status clv__weights_tell(const clv_session *session, clv_archive *archive);
/** Keep what an archive tells of its weights, unless the session knows it of its own. */
clv_status clv__weights_keep(clv_session *session, const clv_archive *archive);
/** Which tensors of a session stand in an archive, and under which names. */
typedef struct clv__section {
    clv_category category;
    const char *prefix;           // before their names there
    const char *except;           // patterns of those that are not read; NULL: none
    const struct clv__lora *lora; // whose whole tensors are not read; NULL: none
    bool whole;                   // it makes no sense to leave some out
} clv__section;

/** The way back. Names, dtypes and shapes must agree; nothing is changed before they do. `path` is for
 *  sentences. */
clv_status clv__state_take(clv_session *session, const clv__section *section, clv_archive *archive,
                           const char *path, clv__error *error);

/** What names of parameters and buffers begin with in a checkpoint. */
#define CLV__MODEL_SECTION "model."

/** Is it an archive that clv__checkpoint_save wrote? */
bool clv__checkpoint_is(const clv_archive *archive);

#endif
