// SPDX-License-Identifier: Apache-2.0
// Running averages in loops of one's own: their first values, parameters and averages exchanged, averages
// as a file of weights. A trainer reads averages by name instead (averages.c), and exchanges nothing.
#include <stdlib.h>

#include "exec/session.h"
#include "ops/update/averages.h"
#include "infer/averages.h"

/** Does the session keep an average of any of its parameters? The sentence says how to. */
static clv_status check_kept(const clv_session *session, const char *call) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        if (clv__average_of(session, &tensor) >= 0) return CLV_OK;
    }
    CLV_FAIL(error, CLV_E_STATE,
             "%s: the session keeps no averages: clv_averages_add appends them to the graph of its steps, "
             "before clv_session_reserve or clv_run_create",
             call);
}

clv_status clv_averages_begin(clv_session *session) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(check_kept(session, "clv_averages_begin"));
    if (session->swapped)
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_STATE,
                 "clv_averages_begin: the parameters hold their averages; swap them back first");
    return clv__averages_begin(session);
}

/** Bytes of the largest parameter that has an average. */
static size_t largest(const clv_session *session) {
    size_t most = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        if (clv__average_of(session, &tensor) >= 0 && tensor.bytes > most) most = tensor.bytes;
    }
    return most;
}

static clv_status exchange(clv_session *session, void *a, void *b) {
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        const int average = clv__average_of(session, &tensor);
        if (average < 0) continue;
        CLV_TRY(clv_session_read(session, i, a, tensor.bytes));
        CLV_TRY(clv_session_read(session, average, b, tensor.bytes));
        CLV_TRY(clv_session_write(session, i, b, tensor.bytes));
        CLV_TRY(clv_session_write(session, average, a, tensor.bytes));
    }
    return CLV_OK;
}

clv_status clv_averages_swap(clv_session *session) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv__error *error = clv__runtime_error_of(session->runtime);
    CLV_TRY(check_kept(session, "clv_averages_swap"));
    if (session->averages)
        CLV_FAIL(
            error, CLV_E_STATE,
            "clv_averages_swap: the session is a trainer's, which tests and saves the averages by itself");
    const size_t bytes = largest(session);
    void *a = clv__alloc(1, bytes), *b = clv__alloc(1, bytes);
    clv_status status = a && b ? exchange(session, a, b)
                               : clv__error_set(error, CLV_E_HOST_MEMORY,
                                                "clv_averages_swap: no host memory for %zu bytes", 2 * bytes);
    if (status == CLV_OK) session->swapped = !session->swapped;
    free(a);
    free(b);
    return status;
}

clv_status clv__averages_save(clv_session *session, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), path));
    CLV_TRY(check_kept(session, "clv__averages_save"));
    const bool used = session->averages;
    session->averages = !session->swapped; // exchanged, the parameters are the averages
    const clv_status status = clv_weights_save(session, path);
    session->averages = used;
    return status;
}
