// SPDX-License-Identifier: Apache-2.0
// Sessions: what they keep, by name and device, to read and to write. reserve.c takes their memory.
#include "exec/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exec/worker.h"

clv_status clv_session_create(clv_runtime *runtime, const clv_session_config *config, clv_session **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    *out = clv__alloc(1, sizeof **out);
    if (!*out) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no host memory for a session");
    (*out)->runtime = runtime;
    (*out)->seed = config ? config->seed : 0;
    return CLV_OK;
}

static void chunks_destroy(clv__chunks *chunks) {
    for (int i = 0; i < chunks->n; i++) clv__memory_destroy(&chunks->items[i]);
    free(chunks->items);
    *chunks = (clv__chunks){0};
}

static void home_empty(clv__home *home) {
    chunks_destroy(&home->gradients);
    chunks_destroy(&home->activations);
    chunks_destroy(&home->io);
    clv__memory_destroy(&home->workspace);
    clv__memory_destroy(&home->staging);
}

void clv__session_empty(clv_session *session) {
    for (size_t i = 0; i < session->n_homes; i++) home_empty(session->homes[i]);
}

static void kept_destroy(clv__kept *kept) {
    clv__holding_destroy(&kept->memory);
    free(kept->name);
}

/** Number what is kept anew. There were at least as many names before, so there is room. */
static void name_all(clv_session *session) {
    clv__names_empty(&session->names);
    for (size_t i = 0; i < session->n_kept; i++) {
        bool named = clv__names_add(&session->names, session->kept[i].name, i);
        assert(named), (void)named;
    }
}

void clv__session_drop(clv_session *session, size_t first) {
    while (session->n_kept > first) kept_destroy(&session->kept[--session->n_kept]);
    name_all(session);
}

void clv_session_destroy(clv_session *session) {
    if (!session || !clv__error_at_home(clv__runtime_error_of(session->runtime))) return;
    clv__session_empty(session);
    for (size_t i = 0; i < session->n_homes; i++) free(session->homes[i]);
    free(session->homes);
    clv__session_drop(session, 0);
    free(session->kept);
    clv__names_reset(&session->names);
    free(session);
}

void clv_session_forget(clv_session *session, const clv_device *device) {
    if (!clv__error_at_home(clv__runtime_error_of(session->runtime))) return;
    size_t n = 0;
    for (size_t i = 0; i < session->n_homes; i++) {
        if (session->homes[i]->device != device) {
            session->homes[n++] = session->homes[i];
            continue;
        }
        home_empty(session->homes[i]);
        free(session->homes[i]);
    }
    session->n_homes = n;
    n = 0;
    for (size_t i = 0; i < session->n_kept; i++) {
        if (session->kept[i].memory.device == device)
            kept_destroy(&session->kept[i]);
        else
            session->kept[n++] = session->kept[i];
    }
    session->n_kept = n;
    name_all(session);
}

// ---- reading and writing ----------------------------------------------------------------------------------------------

typedef struct transfer {
    clv_device *device;
    clv__bbuffer *buffer;
    const void *source; // write, or
    void *target;       // read
    size_t bytes;
} transfer;

static clv_status do_transfer(void *context) {
    const transfer *t = context;
    return clv__device_copy(t->device, t->buffer, t->bytes, t->source, t->target,
                            clv__runtime_error_of(t->device->runtime));
}

clv_status clv__session_copy(const clv__memory *memory, const void *source, void *target) {
    transfer t = {memory->device, memory->buffer, source, target, memory->bytes};
    return clv__worker_call(memory->device, do_transfer, &t);
}

clv_status clv__holding_create(clv_device *device, const clv__desc *desc, clv_category category, const char *layer,
                               clv__holding *out) {
    clv__error *error = clv__runtime_error_of(device->runtime);
    const int64_t rows = clv__split_rows(desc, device), all = clv__split_length(&desc->shape, 0);
    const int n = rows > 0 && rows < all ? (int)((all + rows - 1) / rows) : 1; // one that does not fit is refused
    *out = (clv__holding){.device = device, .bytes = clv__desc_bytes(desc)};
    out->pieces = clv__alloc((size_t)n, sizeof *out->pieces);
    clv_status status = CLV_OK;
    if (!out->pieces) status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for '%s'", layer);
    for (; status == CLV_OK && out->n < n; out->n++) {
        const size_t bytes = n == 1 ? out->bytes : out->bytes / (size_t)all * (size_t)clv__split_piece(desc, rows, out->n);
        status = clv__memory_create(device, bytes, category, layer, &out->pieces[out->n]);
        if (status != CLV_OK) break;
    }
    if (status != CLV_OK) clv__holding_destroy(out);
    return status;
}

void clv__holding_destroy(clv__holding *holding) {
    for (int i = 0; i < holding->n; i++) clv__memory_destroy(&holding->pieces[i]);
    free(holding->pieces);
    *holding = (clv__holding){0};
}

clv_status clv__holding_copy(const clv__holding *holding, const void *source, void *target) {
    size_t at = 0;
    for (int i = 0; i < holding->n; at += holding->pieces[i++].bytes) {
        CLV_TRY(clv__session_copy(&holding->pieces[i], source ? (const char *)source + at : NULL,
                                  target ? (char *)target + at : NULL));
    }
    return CLV_OK;
}

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
    CLV_TRY(check_access(session, index, bytes, "read"));
    if (bytes) CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), data));
    return clv__holding_copy(&session->kept[index].memory, NULL, data);
}

clv_status clv_session_write(clv_session *session, int index, const void *data, size_t bytes) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), session));
    CLV_TRY(check_access(session, index, bytes, "write"));
    if (bytes) CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), data));
    return clv__holding_copy(&session->kept[index].memory, data, NULL);
}

// ---- questions --------------------------------------------------------------------------------------------------------

clv_runtime *clv_session_runtime(const clv_session *session) {
    return session->runtime;
}

int clv_session_count(const clv_session *session) {
    return (int)session->n_kept;
}

clv_session_tensor clv_session_get(const clv_session *session, int index) {
    if (index < 0 || index >= clv_session_count(session)) return (clv_session_tensor){0};
    const clv__kept *kept = &session->kept[index];
    return (clv_session_tensor){
        .name = kept->name,
        .dtype = kept->desc.dtype,
        .shape = kept->desc.shape,
        .category = kept->category,
        .trainable = kept->trainable,
        .device = kept->memory.device,
        .bytes = kept->memory.bytes,
    };
}

int clv_session_find(const clv_session *session, const char *name) {
    int found = -1;
    size_t at = 0, i;
    while (clv__names_next(&session->names, name, &at, &i)) {
        if ((found < 0 || (int)i < found) && strcmp(session->kept[i].name, name) == 0) found = (int)i;
    }
    return found;
}

clv__home *clv__session_home(const clv_session *session, const clv_device *device) {
    for (size_t i = 0; i < session->n_homes; i++) {
        if (session->homes[i]->device == device) return session->homes[i];
    }
    return NULL;
}

clv__kept *clv__session_kept(const clv_session *session, const char *name, const clv_device *device) {
    size_t at = 0, i;
    while (clv__names_next(&session->names, name, &at, &i)) {
        clv__kept *kept = &session->kept[i];
        if (kept->memory.device == device && strcmp(kept->name, name) == 0) return kept;
    }
    return NULL;
}

int64_t clv_session_step(const clv_session *session) {
    return session->step;
}

void clv_session_set_step(clv_session *session, int64_t step) {
    session->step = step;
}
