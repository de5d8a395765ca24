// SPDX-License-Identifier: Apache-2.0
// Sessions: what they keep, by name and device. reserve.c takes their memory, access.c reads and writes it.
#include "exec/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

clv_status clv_session_create(clv_runtime *runtime, const clv_session_config *config, clv_session **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    *out = clv__alloc(1, sizeof **out);
    if (!*out) CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_HOST_MEMORY, "no host memory for a session");
    (*out)->runtime = runtime;
    (*out)->seed = config ? config->seed : 0;
    (*out)->step = config ? config->step : 0;
    return CLV_OK;
}

void clv__session_about_reset(clv__session_about *about) {
    free(about->model);
    free(about->table);
    free(about->record);
    free(about->lora);
    free(about->whole);
    *about = (clv__session_about){0};
}

void clv__session_empty(clv_session *session) {
    for (size_t i = 0; i < session->n_arenas; i++) clv__arenas_empty(session->arenas[i]);
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
    for (size_t i = 0; i < session->n_arenas; i++) free(session->arenas[i]);
    free(session->arenas);
    clv__session_drop(session, 0);
    free(session->kept);
    clv__names_reset(&session->names);
    clv__session_about_reset(&session->about);
    free(session);
}

void clv__session_forget(clv_session *session, const clv_device *device) {
    if (!clv__error_at_home(clv__runtime_error_of(session->runtime))) return;
    size_t n = 0;
    for (size_t i = 0; i < session->n_arenas; i++) {
        if (session->arenas[i]->device != device) {
            session->arenas[n++] = session->arenas[i];
            continue;
        }
        clv__arenas_empty(session->arenas[i]);
        free(session->arenas[i]);
    }
    session->n_arenas = n;
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

// ---- questions --------------------------------------------------------------------------------------------

clv_session_info clv_session_info_get(const clv_session *session) {
    if (!session) return (clv_session_info){0};
    return (clv_session_info){.runtime = session->runtime,
                              .n_tensors = (int)session->n_kept,
                              .step = session->step,
                              .averages_swapped = session->swapped};
}

clv_session_tensor clv_session_get(const clv_session *session, int index) {
    if (index < 0 || index >= clv_session_info_get(session).n_tensors) return (clv_session_tensor){0};
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

clv__arenas *clv__session_arenas(const clv_session *session, const clv_device *device) {
    for (size_t i = 0; i < session->n_arenas; i++) {
        if (session->arenas[i]->device == device) return session->arenas[i];
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
