// SPDX-License-Identifier: Apache-2.0
// Taking the memory of plans, once: parameters with their first values, and arenas. Everything is checked
// before any memory is taken. Building programs takes a while, mostly on one thread. The tensors of a new
// session depend on no program, so their first values are drawn meanwhile.
#include <stdlib.h>
#include <string.h>

#include "exec/session.h"

/** Take memory for a tensor that is not there yet, and add its first values to what is drawn. */
static clv_status keep(clv_session *session, const clv__value *value, clv_device *device,
                       clv__first_values *values) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    const clv_tensor *tensor = value->tensor;
    const clv__kept *old = clv__session_kept(session, tensor->name, device);
    if (old) {
        if (clv_shape_equal(&old->desc.shape, &value->desc.shape) && old->desc.dtype == value->desc.dtype)
            return CLV_OK;
        char was[128], is[128];
        CLV_FAIL(error, CLV_E_SHAPE, "'%s' is in the session with shape %s, the plan wants %s", tensor->name,
                 clv_shape_text(&old->desc.shape, was, sizeof was),
                 clv_shape_text(&value->desc.shape, is, sizeof is));
    }
    char *name = clv__strdup(tensor->name);
    clv__kept kept = {.name = name,
                      .desc = value->desc,
                      .category = tensor->category,
                      .trainable = tensor->trainable,
                      .in_out = tensor->in_out,
                      .part_of = tensor->is_part ? clv_shape_numel(&tensor->whole) : 0,
                      .whole = tensor->whole};
    clv_status status = CLV_E_HOST_MEMORY;
    if (!name ||
        !clv__grow(&session->kept, &session->kept_room, session->n_kept + 1, sizeof *session->kept)) {
        clv__error_set(error, status, "no host memory for '%s'", tensor->name);
        goto done;
    }
    status = clv__holding_create(device, &value->desc, tensor->category, tensor->layer, &kept.memory);
    if (status != CLV_OK) goto done;
    if (!device->elsewhere) // else its rank draws them
        status = clv__first_values_add(values, tensor, value->desc.dtype, session->seed, &kept.memory);
    if (status != CLV_OK) goto done;
    if (!clv__names_add(&session->names, name, session->n_kept)) {
        status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for '%s'", tensor->name);
        goto done;
    }
    session->kept[session->n_kept++] = kept;
done:
    if (status != CLV_OK) {
        clv__holding_destroy(&kept.memory);
        free(name);
    }
    return status;
}

// ---- arenas -----------------------------------------------------------------------------------------------

static clv_status arenas_create(clv_session *session, clv_device *device) {
    if (clv__session_arenas(session, device)) return CLV_OK;
    clv__arenas *arenas = clv__alloc(1, sizeof *arenas);
    if (!arenas ||
        !clv__grow(&session->arenas, &session->arenas_room, session->n_arenas + 1, sizeof *session->arenas)) {
        free(arenas);
        CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory for a session");
    }
    arenas->device = device;
    session->arenas[session->n_arenas++] = arenas;
    return CLV_OK;
}

static bool arenas_serves(const clv_session *session, const clv_plan *plan, const clv__place *place) {
    const clv__arenas *arenas = clv__session_arenas(session, place->device);
    if (!arenas || place->gradients.bytes > arenas->gradients.layout.bytes ||
        place->activations.bytes > arenas->activations.layout.bytes ||
        place->once.bytes > arenas->once.layout.bytes || place->workspace_bytes > arenas->workspace.bytes ||
        clv__io_bytes(place) > arenas->io.layout.bytes || clv__staging_bytes(place) > arenas->staging.bytes)
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
            if (!arenas_serves(session, plans[p], &plans[p]->places[i])) return false;
        }
    }
    return true;
}

static clv_status chunks_create(clv__arenas *arenas, const clv__layout *layout, clv_category category,
                                const char *layer, clv__chunks *chunks) {
    int n = 0;
    while (clv__layout_chunk(layout, n)) n++;
    chunks->items = clv__alloc((size_t)n, sizeof *chunks->items);
    if (!chunks->items)
        CLV_FAIL(clv__runtime_error_of(arenas->device->runtime), CLV_E_HOST_MEMORY, "no host memory");
    chunks->layout = *layout;
    for (; chunks->n < n; chunks->n++) {
        CLV_TRY(clv__memory_create(arenas->device, clv__layout_chunk(layout, chunks->n), category, layer,
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

/** What a arenas must hold for these plans: as much as the largest, in each kind of memory. */
typedef struct demand {
    clv__layout gradients, activations, once, io;
    size_t workspace, staging;
} demand;

/** `had`: what the session has there. */
static demand demand_of(const clv__arenas *arenas, const demand *had, clv_plan *const *plans, int n) {
    demand d = *had;
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], arenas->device);
        if (!place) continue;
        grow_layout(&d.gradients, &place->gradients);
        grow_layout(&d.activations, &place->activations);
        grow_layout(&d.once, &place->once);
        grow_size(&d.workspace, place->workspace_bytes);
        grow_layout(&d.io, &place->io);
        grow_size(&d.staging, clv__staging_bytes(place));
    }
    return d;
}

static size_t arena_bytes(const demand *d) {
    return d->gradients.bytes + d->activations.bytes + d->once.bytes + d->workspace + d->io.bytes +
           d->staging;
}

/** Does an earlier plan keep this tensor on the device? */
static bool kept_before(clv_plan *const *plans, int p, const clv__arenas *arenas, const clv_tensor *tensor) {
    for (int q = 0; q < p; q++) {
        const clv__place *place = clv__plan_place_of(plans[q], arenas->device);
        if (place && clv__place_keeps(plans[q], place, tensor->name)) return true;
    }
    return false;
}

/** Bytes of persistents that the plans need on the device and the session does not have there yet. */
static size_t new_persistent_bytes(const clv_session *session, const clv__arenas *arenas,
                                   clv_plan *const *plans, int n) {
    size_t all = 0;
    for (int p = 0; p < n; p++) {
        const clv__place *place = clv__plan_place_of(plans[p], arenas->device);
        for (int v = 0; place && v < place->n_persistents; v++) {
            const clv__value *value = &plans[p]->values[place->persistents[v]];
            if (!clv__session_kept(session, value->tensor->name, arenas->device) &&
                !kept_before(plans, p, arenas, value->tensor))
                all += value->bytes;
        }
    }
    return all;
}

static clv_status arenas_fill(clv__arenas *arenas, const demand *d) {
    CLV_TRY(
        chunks_create(arenas, &d->gradients, CLV_GRADIENTS, "gradients of parameters", &arenas->gradients));
    CLV_TRY(chunks_create(arenas, &d->activations, CLV_ACTIVATIONS, "activations", &arenas->activations));
    CLV_TRY(chunks_create(arenas, &d->once, CLV_WORKSPACE, "what is made of parameters once", &arenas->once));
    CLV_TRY(clv__memory_create(arenas->device, d->workspace, CLV_WORKSPACE, "workspace of kernels",
                               &arenas->workspace));
    CLV_TRY(chunks_create(arenas, &d->io, CLV_IO, "inputs and outputs", &arenas->io));
    return clv__memory_create(arenas->device, d->staging, CLV_STAGING, "staging", &arenas->staging);
}

/** Take memory for all that is to be kept and is not there yet, and begin to draw its first values. */
static clv_status keep_all(clv_session *session, clv_plan *const *plans, int n, clv__first_values *values) {
    for (size_t h = 0; h < session->n_arenas; h++) {
        clv_device *device = session->arenas[h]->device;
        for (int p = 0; p < n; p++) {
            const clv__place *place = clv__plan_place_of(plans[p], device);
            for (int i = 0; place && i < place->n_persistents; i++)
                CLV_TRY(keep(session, &plans[p]->values[place->persistents[i]], device, values));
        }
    }
    clv__first_values_begin(values);
    return CLV_OK;
}

/** What every device must hold, if that fits; else without what is kept of nodes that are done once, if plans
 *  have such. */
static clv_status find_demands(const clv_session *session, clv_plan *const *plans, int n, const demand *had,
                               demand *demands) {
    for (;;) {
        bool again = false;
        clv_status status = CLV_OK;
        for (size_t i = 0; i < session->n_arenas && status == CLV_OK; i++) {
            const clv__arenas *arenas = session->arenas[i];
            demands[i] = demand_of(arenas, &had[i], plans, n);
            const size_t bytes = arena_bytes(&demands[i]) + new_persistent_bytes(session, arenas, plans, n);
            status = clv__plans_check(plans, n, arenas->device, bytes);
        }
        if (status != CLV_E_BUDGET && status != CLV_E_DEVICE_MEMORY) return status;
        for (int p = 0; p < n; p++) CLV_TRY(clv__plan_each_step(plans[p], &again));
        if (!again) return status;
        CLV_TRY(clv__plans_prepare(plans, n));
    }
}

/** Take everything, on every device. What must fit is checked on all of them before anything is taken on
 *  one. */
static clv_status take_memory(clv_session *session, clv_plan *const *plans, int n,
                              clv__first_values *values) {
    demand *demands = clv__alloc(session->n_arenas, sizeof *demands),
           *had = clv__alloc(session->n_arenas, sizeof *had);
    clv_status status = CLV_OK;
    if (!demands || !had)
        status = clv__error_set(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory");
    for (size_t i = 0; i < session->n_arenas && status == CLV_OK; i++) {
        const clv__arenas *arenas = session->arenas[i];
        had[i] = (demand){arenas->gradients.layout, arenas->activations.layout, arenas->once.layout,
                          arenas->io.layout,        arenas->workspace.bytes,    arenas->staging.bytes};
    }
    if (status == CLV_OK) {
        clv__session_empty(session);
        status = find_demands(session, plans, n, had, demands);
    }
    if (status == CLV_OK && !values->n) status = keep_all(session, plans, n, values);
    for (size_t i = 0; i < session->n_arenas && status == CLV_OK; i++)
        status = arenas_fill(session->arenas[i], &demands[i]);
    if (status != CLV_OK) clv__session_empty(session);
    free(demands);
    free(had);
    return status;
}

/** Build programs, then take what is not there yet. While there are runs nothing can be taken: then nothing
 *  is kept of nodes that are done once. */
static clv_status prepare_and_take(clv_session *session, clv_plan *const *plans, int n,
                                   clv__first_values *values) {
    for (bool again = true; again;) {
        CLV_TRY(clv__plans_prepare(plans, n));
        if (serves(session, plans, n)) return CLV_OK;
        if (!session->n_runs) return take_memory(session, plans, n, values);
        again = false;
        for (int p = 0; p < n; p++) CLV_TRY(clv__plan_each_step(plans[p], &again));
    }
    CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_STATE,
             "a plan needs more memory than the session has reserved while runs of it exist: reserve for "
             "all plans at once "
             "before making runs");
}

clv_status clv_session_reserve(clv_session *session, clv_plan *const *plans, int n) {
    CLV_TRY(CLV__GIVEN(NULL, session));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), session));
    for (int p = 0; p < n; p++) {
        CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), plans));
        CLV_TRY(CLV__USABLE(clv__runtime_error_of(session->runtime), plans[p]));
        for (int i = 0; i < plans[p]->n_places; i++)
            CLV_TRY(arenas_create(session, plans[p]->places[i].device));
    }
    clv__first_values values = {0};
    size_t had = session->n_kept;
    clv_status status = CLV_OK;
    // Where a plan does not fit, one with other variants may: that shows when programs are built.
    if (had == 0 && clv_plans_fit(plans, n) == CLV_OK) status = keep_all(session, plans, n, &values);
    if (status == CLV_OK) status = prepare_and_take(session, plans, n, &values);
    clv__first_values_end(&values);
    if (status != CLV_OK) clv__session_drop(session, had);
    return status;
}
