// SPDX-License-Identifier: Apache-2.0
// Moving what a session keeps to another device. First everything that can fail: matching, room, memory,
// copies. Then the old memory is freed. So a move that fails has moved nothing.
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/modules.h"
#include "exec/session.h"
#include "exec/worker.h"

typedef struct moving {
    clv_session *session;
    clv_device *device; // where to
    clv__error *error;
    bool *moves;         // [kept]
    clv__holding *fresh; // [kept]: memory over there, of those that have none yet
} moving;

/** `features.*`, `fc1` (all that is in it), `fc1.weight`; NULL is all. */
static bool matches(const char *pattern, const char *name) {
    if (!pattern || fnmatch(pattern, name, 0) == 0) return true;
    size_t room = strlen(pattern) + 3;
    char *inside = clv__alloc(room, 1);
    if (!inside) return false;
    snprintf(inside, room, "%s.*", pattern);
    bool found = fnmatch(inside, name, 0) == 0;
    free(inside);
    return found;
}

/** A name that is kept on two other devices has two values. */
static clv_status check_once(const moving *m, size_t index) {
    const clv__kept *kept = m->session->kept;
    for (size_t i = 0; i < index; i++) {
        if (!m->moves[i] || strcmp(kept[i].name, kept[index].name) != 0) continue;
        CLV_FAIL(m->error, CLV_E_STATE, "'%s' is kept on %s and on %s: which values are to move to %s?",
                 kept[i].name, kept[i].memory.device->info.name, kept[index].memory.device->info.name,
                 m->device->info.name);
    }
    return CLV_OK;
}

static clv_status choose(const moving *m, const char *pattern) {
    const clv_session *session = m->session;
    uint64_t bytes = 0, largest = 0;
    bool any = false;
    for (size_t i = 0; i < session->n_kept; i++) {
        const clv__kept *kept = &session->kept[i];
        if (!matches(pattern, kept->name)) continue;
        any = true;
        if (kept->memory.device == m->device) continue;
        CLV_TRY(check_once(m, i));
        m->moves[i] = true;
        if (clv__session_kept(session, kept->name, m->device)) continue;
        bytes += kept->memory.bytes;
        const int64_t rows = clv__split_rows(&kept->desc, m->device);
        const size_t piece = rows > 0 ? (size_t)rows * (kept->memory.bytes / (size_t)kept->desc.shape.dims[0])
                                      : kept->memory.bytes;
        if (piece > largest) largest = piece;
    }
    if (!any && pattern) {
        clv__nearest nearest = {.word = pattern};
        for (size_t i = 0; i < session->n_kept; i++)
            clv__nearest_offer_modules(&nearest, session->kept[i].name);
        CLV_FAIL(m->error, CLV_E_NOT_FOUND, "nothing that the session keeps matches '%s'%s", pattern,
                 clv__nearest_text(&nearest));
    }
    return clv__memory_check(m->device, (size_t)bytes, (size_t)largest, "what is moved", "", false);
}

static clv_status copy_over(const moving *m, size_t index) {
    const clv__kept *kept = &m->session->kept[index];
    clv__kept *there = clv__session_kept(m->session, kept->name, m->device);
    clv__holding *to = there ? &there->memory : &m->fresh[index];
    if (there &&
        (!clv_shape_equal(&there->desc.shape, &kept->desc.shape) || there->desc.dtype != kept->desc.dtype))
        CLV_FAIL(m->error, CLV_E_SHAPE, "'%s' has another shape or type on %s than on %s", kept->name,
                 m->device->info.name, kept->memory.device->info.name);
    void *values = clv__alloc(1, kept->memory.bytes);
    if (!values) CLV_FAIL(m->error, CLV_E_HOST_MEMORY, "no host memory to move '%s'", kept->name);
    clv_status status = CLV_OK;
    if (!there)
        status =
            clv__holding_create(m->device, &kept->desc, kept->category, kept->memory.pieces[0].layer, to);
    if (status == CLV_OK) status = clv__holding_copy(&kept->memory, NULL, values);
    if (status == CLV_OK) status = clv__holding_copy(to, values, NULL);
    free(values);
    return status;
}

/** Free what was moved; a value that replaced another's is not kept twice. */
static void let_go(const moving *m) {
    clv_session *session = m->session;
    size_t n = 0;
    for (size_t i = 0; i < session->n_kept; i++) {
        clv__kept *kept = &session->kept[i];
        if (m->moves[i]) {
            clv__holding_destroy(&kept->memory);
            kept->memory = m->fresh[i];
            if (!kept->memory.device) { // its values went into memory that was there
                free(kept->name);
                continue;
            }
        }
        session->kept[n++] = *kept;
    }
    session->n_kept = n;
    clv__session_drop(session, n); // only to number them anew
}

/** Give up the arenas of devices on which nothing is kept any more. */
static void leave(clv_session *session) {
    for (size_t i = session->n_arenas; i-- > 0;) {
        const clv_device *device = session->arenas[i]->device;
        bool keeps = false;
        for (size_t k = 0; k < session->n_kept && !keeps; k++)
            keeps = session->kept[k].memory.device == device;
        if (!keeps) clv__session_forget(session, device);
    }
}

clv_status clv_session_move(clv_session *session, const char *pattern, clv_device *device) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), device));
    clv__error *error = clv__runtime_error_of(session->runtime);
    if (session->n_runs)
        CLV_FAIL(error, CLV_E_STATE,
                 "%d run%s of the session compute%s where its tensors are now: destroy %s before moving them",
                 session->n_runs, session->n_runs == 1 ? "" : "s", session->n_runs == 1 ? "s" : "",
                 session->n_runs == 1 ? "it" : "them");
    if (!device->info.usable)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "device %s cannot be used: %s", device->info.name,
                 device->info.reason);
    moving m = {.session = session,
                .device = device,
                .error = error,
                .moves = clv__alloc(session->n_kept, sizeof *m.moves),
                .fresh = clv__alloc(session->n_kept, sizeof *m.fresh)};
    clv_status status = CLV_OK;
    if (!m.moves || !m.fresh)
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory to move tensors");
    if (status == CLV_OK) status = choose(&m, pattern);
    if (status == CLV_OK) status = clv__worker_start(device);
    for (size_t i = 0; i < session->n_kept && status == CLV_OK; i++) {
        if (m.moves[i]) status = copy_over(&m, i);
    }
    if (status == CLV_OK) {
        let_go(&m);
        leave(session);
    }
    for (size_t i = 0; status != CLV_OK && m.fresh && i < session->n_kept; i++)
        clv__holding_destroy(&m.fresh[i]);
    free(m.moves);
    free(m.fresh);
    return status;
}
