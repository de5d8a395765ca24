// SPDX-License-Identifier: Apache-2.0
// Reading and writing what a session keeps, after the steps that are under way.
#include <stdlib.h>

#include "exec/ranks.h"
#include "exec/run.h"
#include "exec/session.h"

enum { USED_ALIGNMENT = 64 }; // of the widest vector that kernels read

/** Wait for the active run's steps. */
static clv_status wait_for_steps(clv_session *session) {
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
    return wait_for_steps(session);
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
    if (session->active) session->active->once = false; // what it made of parameters has to be made anew
    // rank 0 keeps what others hold, to write it to files; the others have no use for it
    const clv_device *device = session->kept[index].memory.device;
    if (device->elsewhere && session->runtime->rank != 0) return CLV_OK;
    return clv__holding_copy(&session->kept[index].memory, data, NULL);
}

clv_status clv_session_use(clv_session *session, int index, void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    clv__error *error = clv__runtime_error_of(session->runtime);
    CLV_TRY(CLV__USABLE(error, session));
    if (bytes) CLV_TRY(CLV__USABLE(error, data));
    CLV_TRY(check_access(session, index, bytes, "use"));
    clv__kept *kept = &session->kept[index];
    const clv_device *device = kept->memory.device;
    if (session->n_runs)
        CLV_FAIL(error, CLV_E_STATE, "'%s' is used by runs: make them when it lies where it is to be",
                 kept->name);
    if (!device->traits.host_memory || kept->memory.n > 1)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s' cannot lie in memory of the program's: %s", kept->name,
                 kept->memory.n > 1 ? "it lies in pieces" : "its device has memory of its own");
    if ((uintptr_t)data % USED_ALIGNMENT)
        CLV_FAIL(error, CLV_E_VALUE, "'%s' can lie at multiples of %d bytes, not at %p", kept->name,
                 USED_ALIGNMENT, data);
    if (bytes == 0) return CLV_OK;
    clv__bbuffer **buffer = &kept->memory.pieces[0].buffer, *over;
    CLV_TRY(device->backend->buffer_over(device->open, NULL, data, bytes, error, &over));
    device->backend->buffer_destroy(*buffer);
    *buffer = over;
    kept->used = true;
    return CLV_OK;
}

clv_status clv__session_read_whole(clv_session *session, int index, void *data) {
    const clv__kept *kept = &session->kept[index];
    clv_ranks *ranks = session->ranks;
    const int size = ranks->place.size, rank = ranks->place.rank;
    clv__message message;
    char *own = data;
    if (rank != 0) own = clv__alloc(1, kept->memory.bytes + 1);
    if (!own)
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory for '%s'",
                 kept->name);
    clv_status status =
        clv_session_read(session, index, own, kept->memory.bytes); // rank 0's part is the first
    if (status == CLV_OK && rank != 0) {
        status = clv__ranks_send(ranks, 0, CLV__TAG_CONTROL, own, kept->memory.bytes, &message);
        if (status == CLV_OK) status = clv__ranks_await(ranks, &message, 1, NULL);
    }
    for (int other = 1; rank == 0 && other < size && status == CLV_OK; other++) {
        const int64_t begin = clv__part_begin(kept->part_of, other, size),
                      end = clv__part_begin(kept->part_of, other + 1, size);
        status = clv__ranks_receive(ranks, other, CLV__TAG_CONTROL, own + (size_t)begin * sizeof(float),
                                    (size_t)(end - begin) * sizeof(float), &message);
        if (status == CLV_OK) status = clv__ranks_await(ranks, &message, 1, NULL);
    }
    if (rank != 0) free(own);
    return status;
}

clv_status clv__session_write_part(clv_session *session, int index, const void *whole) {
    const clv__kept *kept = &session->kept[index];
    const int64_t begin =
        clv__part_begin(kept->part_of, session->ranks->place.rank, session->ranks->place.size);
    return clv_session_write(session, index, (const char *)whole + (size_t)begin * sizeof(float),
                             kept->memory.bytes);
}

/** A tensor of another rank, to rank 0. */
static clv_status gather_one(clv_session *session, int index, void *data) {
    clv_ranks *ranks = session->ranks;
    const size_t bytes = session->kept[index].memory.bytes;
    const clv_device *device = session->kept[index].memory.device;
    const int owner = device->elsewhere ? device->rank : ranks->place.rank;
    clv__message message;
    if (owner == 0 || (owner != ranks->place.rank && ranks->place.rank != 0)) return CLV_OK;
    if (owner == ranks->place.rank) {
        CLV_TRY(clv_session_read(session, index, data, bytes));
        CLV_TRY(clv__ranks_send(ranks, 0, CLV__TAG_CONTROL, data, bytes, &message));
        return clv__ranks_await(ranks, &message, 1, NULL);
    }
    CLV_TRY(clv__ranks_receive(ranks, owner, CLV__TAG_CONTROL, data, bytes, &message));
    CLV_TRY(clv__ranks_await(ranks, &message, 1, NULL));
    return clv_session_write(session, index, data, bytes);
}

clv_status clv__session_gather(clv_session *session) {
    size_t most = 0;
    for (size_t i = 0; i < session->n_kept; i++)
        if (session->kept[i].memory.bytes > most) most = session->kept[i].memory.bytes;
    void *data = clv__alloc(1, most + 1);
    if (!data)
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY,
                 "no host memory for what other ranks hold");
    clv_status status = CLV_OK;
    for (size_t i = 0; i < session->n_kept && status == CLV_OK; i++)
        status = gather_one(session, (int)i, data);
    free(data);
    return status;
}
