// SPDX-License-Identifier: Apache-2.0
// Reading and writing what a session keeps, after the steps that are under way.
#include "exec/session.h"

clv_status clv__session_quiet(clv_session *session) {
    return session->active ? clv_run_finish(session->active) : CLV_OK;
}

static clv_status check_access(clv_session *session, int index, size_t bytes, const char *verb) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    if (index < 0 || (size_t)index >= session->n_kept) {
        CLV_FAIL(error, CLV_E_NOT_FOUND, "the session has %zu tensors, there is no number %d to %s",
                 session->n_kept, index, verb);
    }
    if (bytes != session->kept[index].memory.bytes) {
        CLV_FAIL(error, CLV_E_SHAPE, "'%s' has %zu bytes, %zu were given to %s", session->kept[index].name,
                 session->kept[index].memory.bytes, bytes, verb);
    }
    return clv__session_quiet(session);
}

clv_status clv_session_read(clv_session *session, int index, void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), session));
    if (bytes) CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), data));
    CLV_TRY(check_access(session, index, bytes, "read"));
    return clv__holding_copy(&session->kept[index].memory, NULL, data);
}

clv_status clv_session_write(clv_session *session, int index, const void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), session));
    if (bytes) CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), data));
    CLV_TRY(check_access(session, index, bytes, "write"));
    return clv__holding_copy(&session->kept[index].memory, data, NULL);
}
