// SPDX-License-Identifier: Apache-2.0
// Running averages in the place of parameters: averages.c.
#ifndef CLV_INFER_AVERAGES_H
#define CLV_INFER_AVERAGES_H

#include "cleave/train.h"

/** The number of the session's average of a parameter; -1: there is none. */
int clv__average_of(const clv_session *session, const clv_session_tensor *parameter);
/** The same where averages are used. */
int clv__average_find(const clv_session *session, const clv_session_tensor *parameter);
/** Make a forward pass read averages where the session's parameters have them, or will have them by a plan
 *  of the same session (NULL: by none). Before it is planned. Nothing where the session uses none. */
clv_status clv__averages_use(clv_graph *graph, const clv_session *session, const clv_plan *plan);
/** Before the first step: averages begin as the parameters are, which is what they are until a step updates
 *  something. */
clv_status clv__averages_begin(clv_session *session);

CLV_MUST_CHECK clv_status clv__averages_save(clv_session *session, const char *path);

#endif
