// SPDX-License-Identifier: Apache-2.0
// Sessions: take the memory of plans once, give parameters their first values, read and write them.
#include "exec/session.h"

#include <stdlib.h>
#include <string.h>

#include "exec/worker.h"

clv_status clv_session_create(clv_runtime *runtime, const clv_session_config *config, clv_session **out) {
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
    clv__memory_destroy(&home->workspace);
    clv__memory_destroy(&home->io);
    clv__memory_destroy(&home->staging);
}

static void arenas_destroy(clv_session *session) {
    for (size_t i = 0; i < session->n_homes; i++) home_empty(session->homes[i]);
}

static void kept_destroy(clv__kept *kept) {
    clv__memory_destroy(&kept->memory);
    free(kept->name);
}

void clv_session_destroy(clv_session *session) {
    if (!session) return;
    arenas_destroy(session);
    for (size_t i = 0; i < session->n_homes; i++) free(session->homes[i]);
    free(session->homes);
    for (size_t i = 0; i < session->n_kept; i++) kept_destroy(&session->kept[i]);
    free(session->kept);
    free(session);
}

void clv_session_forget(clv_session *session, const clv_device *device) {
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
    const clv__backend *backend = t->device->backend;
    clv__error *error = clv__runtime_error_of(t->device->runtime);
    if (t->bytes == 0) return CLV_OK;
    if (t->source) {
        CLV_TRY(backend->write(t->device->open, CLV__QUEUE_COMPUTE, t->buffer, 0, t->bytes, t->source, NULL,
                               NULL, error));
    } else {
        CLV_TRY(backend->read(t->device->open, CLV__QUEUE_COMPUTE, t->buffer, 0, t->bytes, t->target, NULL,
                              NULL, error));
    }
    return backend->synchronize(t->device->open, error);
}

clv_status clv__session_copy(const clv__memory *memory, const void *source, void *target) {
    transfer t = {memory->device, memory->buffer, source, target, memory->bytes};
    return clv__worker_call(memory->device, do_transfer, &t);
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
    CLV_TRY(check_access(session, index, bytes, "read"));
    return clv__session_copy(&session->kept[index].memory, NULL, data);
}

clv_status clv_session_write(clv_session *session, int index, const void *data, size_t bytes) {
    CLV_TRY(check_access(session, index, bytes, "write"));
    return clv__session_copy(&session->kept[index].memory, data, NULL);
}

// ---- first values -----------------------------------------------------------------------------------------------------

static clv_status keep(clv_session *session, const clv_tensor *tensor, clv_device *device) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    const clv__kept *old = clv__session_kept(session, tensor->name, device);
    if (old) {
        if (clv_shape_equal(&old->desc.shape, &tensor->desc.shape) && old->desc.dtype == tensor->desc.dtype)
            return CLV_OK;
        char was[128], is[128];
        CLV_FAIL(error, CLV_E_SHAPE, "'%s' is in the session with shape %s, the plan wants %s", tensor->name,
                 clv_shape_text(&old->desc.shape, was, sizeof was),
                 clv_shape_text(&tensor->desc.shape, is, sizeof is));
    }
    size_t bytes = clv_tensor_bytes(tensor);
    char *name = clv__strdup(tensor->name);
    clv__kept kept = {
        .name = name, .desc = tensor->desc, .category = tensor->category, .trainable = tensor->trainable};
    clv_status status = CLV_E_HOST_MEMORY;
    if (!name ||
        !clv__grow(&session->kept, &session->kept_room, session->n_kept + 1, sizeof *session->kept)) {
        clv__error_set(error, status, "no host memory for '%s'", tensor->name);
        goto done;
    }
    status = clv__memory_create(device, bytes, tensor->category, tensor->layer, &kept.memory);
    if (status != CLV_OK) goto done;
    status = clv__first_values(tensor, session->seed, &kept.memory);
    if (status != CLV_OK) goto done;
    session->kept[session->n_kept++] = kept;
done:
    if (status != CLV_OK) {
        clv__memory_destroy(&kept.memory);
        free(name);
    }
    return status;
}

// ---- reserving ----------------------------------------------------------------------------------------------------------

clv__home *clv__session_home(const clv_session *session, const clv_device *device) {
    for (size_t i = 0; i < session->n_homes; i++) {
        if (session->homes[i]->device == device) return session->homes[i];
    }
    return NULL;
}

static clv_status home_create(clv_session *session, clv_device *device) {
    if (clv__session_home(session, device)) return CLV_OK;
    clv__home *home = clv__alloc(1, sizeof *home);
    if (!home ||
        !clv__grow(&session->homes, &session->homes_room, session->n_homes + 1, sizeof *session->homes)) {
        free(home);
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory for a session");
    }
    home->device = device;
    session->homes[session->n_homes++] = home;
    return CLV_OK;
}

static bool home_serves(const clv_session *session, const clv_plan *plan, const clv__place *place) {
    const clv__home *home = clv__session_home(session, place->device);
    if (!home || place->gradients.bytes > home->gradients.layout.bytes ||
        place->activations.bytes > home->activations.layout.bytes ||
        place->workspace_bytes > home->workspace.bytes || clv__io_bytes(place) > home->io.bytes ||
        clv__staging_bytes(place) > home->staging.bytes)
        return false;
    for (int i = 0; i < place->n_persistents; i++) {
        if (!clv__session_kept(session, plan->values[place->persistents[i]].tensor->name, place->device))
            return false;
    }
    return true;
}

static bool serves(const clv_session *session, clv_plan *const *plans, int n) {
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < plans[p]->n_places; i++) {
            if (!home_serves(session, plans[p], &plans[p]->places[i])) return false;
        }
    }
    return true;
}

static clv_status chunks_create(clv__home *home, const clv__layout *layout, clv_category category,
                                const char *layer, clv__chunks *chunks) {
    int n = 0;
    while (clv__layout_chunk(layout, n)) n++;
    chunks->items = clv__alloc((size_t)n, sizeof *chunks->items);
    if (!chunks->items)
        CLV_FAIL(clv__runtime_error_of(home->device->runtime), CLV_E_HOST_MEMORY, "no host memory");
    chunks->layout = *layout;
    for (; chunks->n < n; chunks->n++) {
        CLV_TRY(clv__memory_create(home->device, clv__layout_chunk(layout, chunks->n), category, layer,
                                   &chunks->items[chunks->n]));
    }
    return CLV_OK;
}

static void grow_layout(clv__layout *most, const clv__layout *layout) {
    if (layout->bytes > most->bytes || most->chunk == 0) *most = *layout;
}

static void grow_size(size_t *most, size_t bytes) {
    if (bytes > *most) *most = bytes;
}

/** What a home must hold for these plans: as much as the largest, in each kind of memory. */
typedef struct demand {
    clv__layout gradients, activations;
    size_t workspace, io, staging, largest;
} demand;

static demand demand_of(const clv__home *home, clv_plan *const *plans, int n) {
    demand d = {home->gradients.layout, home->activations.layout, home->workspace.bytes,
                home->io.bytes,         home->staging.bytes,      0};
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], home->device);
        if (!place) continue;
        grow_layout(&d.gradients, &place->gradients);
        grow_layout(&d.activations, &place->activations);
        grow_size(&d.workspace, place->workspace_bytes);
        grow_size(&d.io, clv__io_bytes(place));
        grow_size(&d.staging, clv__staging_bytes(place));
        grow_size(&d.largest, clv__place_largest(plans[p], place));
    }
    return d;
}

static size_t arena_bytes(const demand *d) {
    return d->gradients.bytes + d->activations.bytes + d->workspace + d->io + d->staging;
}

/** Bytes of persistents that the plans need on the device and the session does not have there yet. */
static size_t new_persistent_bytes(const clv_session *session, const clv__home *home, clv_plan *const *plans,
                                   int n) {
    uint64_t all = clv_plans_memory_on(plans, n, home->device).category[CLV_PARAMETERS] +
                   clv_plans_memory_on(plans, n, home->device).category[CLV_OPTIMIZER];
    for (size_t i = 0; i < session->n_kept; i++) {
        const clv__kept *kept = &session->kept[i];
        bool used = false;
        for (int p = 0; p < n && !used; p++) {
            const clv__place *place = clv__plan_place_of(plans[p], home->device);
            for (int v = 0; place && v < place->n_persistents && !used; v++)
                used = strcmp(plans[p]->values[place->persistents[v]].tensor->name, kept->name) == 0;
        }
        if (used && kept->memory.device == home->device) all -= kept->memory.bytes;
    }
    return (size_t)all;
}

static clv_status home_fill(clv_session *session, clv__home *home, const demand *d, clv_plan *const *plans,
                            int n) {
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], home->device);
        for (int i = 0; place && i < place->n_persistents; i++)
            CLV_TRY(keep(session, plans[p]->values[place->persistents[i]].tensor, home->device));
    }
    CLV_TRY(chunks_create(home, &d->gradients, CLV_GRADIENTS, "gradients of parameters", &home->gradients));
    CLV_TRY(chunks_create(home, &d->activations, CLV_ACTIVATIONS, "activations", &home->activations));
    CLV_TRY(clv__memory_create(home->device, d->workspace, CLV_WORKSPACE, "workspace of kernels",
                               &home->workspace));
    CLV_TRY(clv__memory_create(home->device, d->io, CLV_IO, "inputs and outputs", &home->io));
    return clv__memory_create(home->device, d->staging, CLV_STAGING, "staging", &home->staging);
}

/** Take everything, on every device. What must fit is checked on all of them before anything is taken on one. */
static clv_status take_memory(clv_session *session, clv_plan *const *plans, int n) {
    demand *demands = clv__alloc(session->n_homes, sizeof *demands);
    if (!demands) CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory");
    clv_status status = CLV_OK;
    for (size_t i = 0; i < session->n_homes; i++) demands[i] = demand_of(session->homes[i], plans, n);
    arenas_destroy(session);
    for (size_t i = 0; i < session->n_homes && status == CLV_OK; i++) {
        const clv__home *home = session->homes[i];
        size_t bytes = arena_bytes(&demands[i]) + new_persistent_bytes(session, home, plans, n);
        status = clv__memory_check(home->device, bytes, demands[i].largest, "the plan");
    }
    for (size_t i = 0; i < session->n_homes && status == CLV_OK; i++)
        status = home_fill(session, session->homes[i], &demands[i], plans, n);
    if (status != CLV_OK) arenas_destroy(session);
    free(demands);
    return status;
}

clv_status clv_session_reserve(clv_session *session, clv_plan *const *plans, int n) {
    CLV_TRY(clv__plans_prepare(plans, n));
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < plans[p]->n_places; i++)
            CLV_TRY(home_create(session, plans[p]->places[i].device));
    }
    if (serves(session, plans, n)) return CLV_OK;
    if (session->n_runs) {
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_STATE,
                 "a plan needs more memory than the session has reserved while runs of it exist: reserve for "
                 "all plans at once "
                 "before making runs");
    }
    return take_memory(session, plans, n);
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
    for (size_t i = 0; i < session->n_kept; i++) {
        if (strcmp(session->kept[i].name, name) == 0) return (int)i;
    }
    return -1;
}

clv__kept *clv__session_kept(const clv_session *session, const char *name, const clv_device *device) {
    for (size_t i = 0; i < session->n_kept; i++) {
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

uint64_t clv_session_seed(const clv_session *session) {
    return session->seed;
}

void clv_session_set_seed(clv_session *session, uint64_t seed) {
    session->seed = seed;
}
