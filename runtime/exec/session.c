// SPDX-License-Identifier: Apache-2.0
// Sessions: take the memory of plans once, give parameters their first values, read and write them.
#include "exec/session.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/random.h"
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

static void arenas_destroy(clv_session *session) {
    chunks_destroy(&session->gradients);
    chunks_destroy(&session->activations);
    clv__memory_destroy(&session->workspace);
    clv__memory_destroy(&session->io);
    clv__memory_destroy(&session->staging);
}

void clv_session_destroy(clv_session *session) {
    if (!session) return;
    arenas_destroy(session);
    for (size_t i = 0; i < session->n_kept; i++) {
        clv__memory_destroy(&session->kept[i].memory);
        free(session->kept[i].name);
    }
    free(session->kept);
    free(session);
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
        CLV_TRY(backend->write(t->device->open, CLV__QUEUE_COMPUTE, t->buffer, 0, t->bytes, t->source, NULL, NULL, error));
    } else {
        CLV_TRY(backend->read(t->device->open, CLV__QUEUE_COMPUTE, t->buffer, 0, t->bytes, t->target, NULL, NULL, error));
    }
    return backend->synchronize(t->device->open, error);
}

clv_status clv__session_quiet(clv_session *session) {
    return session->active ? clv_run_finish(session->active) : CLV_OK;
}

static clv_status check_access(clv_session *session, int index, size_t bytes, const char *verb) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    if (index < 0 || (size_t)index >= session->n_kept) {
        CLV_FAIL(error, CLV_E_NOT_FOUND, "the session has %zu tensors, there is no number %d to %s", session->n_kept, index, verb);
    }
    if (bytes != session->kept[index].memory.bytes) {
        CLV_FAIL(error, CLV_E_SHAPE, "'%s' has %zu bytes, %zu were given to %s", session->kept[index].name,
                 session->kept[index].memory.bytes, bytes, verb);
    }
    return clv__session_quiet(session);
}

clv_status clv_session_read(clv_session *session, int index, void *data, size_t bytes) {
    CLV_TRY(check_access(session, index, bytes, "read"));
    transfer t = {session->device, session->kept[index].memory.buffer, NULL, data, bytes};
    return clv__worker_call(session->device, do_transfer, &t);
}

clv_status clv_session_write(clv_session *session, int index, const void *data, size_t bytes) {
    CLV_TRY(check_access(session, index, bytes, "write"));
    transfer t = {session->device, session->kept[index].memory.buffer, data, NULL, bytes};
    return clv__worker_call(session->device, do_transfer, &t);
}

// ---- first values -----------------------------------------------------------------------------------------------------

/** Values depend on seed and name alone, so that adding a layer leaves the others as they were. */
static void fill_first_values(const clv_tensor *tensor, uint64_t seed, float *values) {
    int64_t n = clv_tensor_numel(tensor);
    clv__random random;
    clv__random_init(&random, seed, CLV__STREAM_INIT, XXH64(tensor->name, strlen(tensor->name), 0));
    for (int64_t i = 0; i < n; i++) {
        switch (tensor->init.kind) {
        case CLV_INIT_ZEROS: values[i] = 0; break;
        case CLV_INIT_ONES: values[i] = 1; break;
        case CLV_INIT_UNIFORM:
            values[i] = tensor->init.a + (tensor->init.b - tensor->init.a) * clv__random_uniform(&random);
            break;
        case CLV_INIT_NORMAL:
            values[i] = (float)(tensor->init.a + tensor->init.b * clv__random_normal(&random));
            break;
        }
    }
    if (tensor->desc.dtype == CLV_DTYPE_I32) {
        for (int64_t i = 0; i < n; i++) {
            int32_t whole = (int32_t)values[i];
            memcpy(&values[i], &whole, sizeof whole);
        }
    }
}

static clv_status keep(clv_session *session, const clv_tensor *tensor) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    int at = clv_session_find(session, tensor->name);
    if (at >= 0) {
        const clv__kept *old = &session->kept[at];
        if (clv_shape_equal(&old->desc.shape, &tensor->desc.shape) && old->desc.dtype == tensor->desc.dtype) return CLV_OK;
        char was[128], is[128];
        CLV_FAIL(error, CLV_E_SHAPE, "'%s' is in the session with shape %s, the plan wants %s", tensor->name,
                 clv_shape_text(&old->desc.shape, was, sizeof was), clv_shape_text(&tensor->desc.shape, is, sizeof is));
    }
    size_t bytes = clv_tensor_bytes(tensor);
    float *values = clv__alloc(1, bytes);
    char *name = clv__strdup(tensor->name);
    clv__kept kept = {.name = name, .desc = tensor->desc, .category = tensor->category, .trainable = tensor->trainable};
    clv_status status = CLV_E_HOST_MEMORY;
    if (!values || !name || !clv__grow(&session->kept, &session->kept_room, session->n_kept + 1, sizeof *session->kept)) {
        clv__error_set(error, status, "no host memory for '%s'", tensor->name);
        goto done;
    }
    status = clv__memory_create(session->device, bytes, tensor->category, tensor->layer, &kept.memory);
    if (status != CLV_OK) goto done;
    fill_first_values(tensor, session->seed, values);
    transfer t = {session->device, kept.memory.buffer, values, NULL, bytes};
    status = clv__worker_call(session->device, do_transfer, &t);
    if (status != CLV_OK) goto done;
    session->kept[session->n_kept++] = kept;
done:
    free(values);
    if (status != CLV_OK) {
        clv__memory_destroy(&kept.memory);
        free(name);
    }
    return status;
}

// ---- reserving ----------------------------------------------------------------------------------------------------------

static bool covers(const clv__chunks *chunks, const clv__layout *layout) {
    return layout->bytes <= chunks->layout.bytes;
}

bool clv__session_serves(const clv_session *session, const clv_plan *plan) {
    if (session->device != plan->device || !covers(&session->gradients, &plan->gradients) ||
        !covers(&session->activations, &plan->activations) || plan->workspace_bytes > session->workspace.bytes ||
        clv__io_bytes(plan) > session->io.bytes || clv__staging_bytes(plan) > session->staging.bytes)
        return false;
    for (int i = 0; i < plan->n_persistents; i++) {
        if (clv_session_find(session, plan->graph->tensors[plan->persistents[i]]->name) < 0) return false;
    }
    return true;
}

static clv_status chunks_create(clv_session *session, const clv__layout *layout, clv_category category,
                                const char *layer, clv__chunks *chunks) {
    int n = 0;
    while (clv__layout_chunk(layout, n)) n++;
    chunks->items = clv__alloc((size_t)n, sizeof *chunks->items);
    if (!chunks->items) CLV_FAIL(clv__runtime_error_of(session->runtime), CLV_E_HOST_MEMORY, "no host memory");
    chunks->layout = *layout;
    for (; chunks->n < n; chunks->n++) {
        CLV_TRY(clv__memory_create(session->device, clv__layout_chunk(layout, chunks->n), category, layer,
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

/** The largest piece of memory that cannot be split. */
static size_t largest_piece(clv_plan *const *plans, int n) {
    size_t largest = 0;
    for (int p = 0; p < n; p++) {
        grow_size(&largest, plans[p]->workspace_bytes);
        grow_size(&largest, clv__io_bytes(plans[p]));
        for (int id = 0; id < plans[p]->n_tensors; id++) {
            if (plans[p]->tensors[id].segment != CLV__NOWHERE) grow_size(&largest, plans[p]->tensors[id].bytes);
        }
    }
    return largest;
}

clv_status clv_plans_fit(clv_plan *const *plans, int n) {
    if (n < 1) return CLV_E_VALUE;
    uint64_t bytes = clv_plans_memory(plans, n).predicted_peak_bytes;
    return clv__memory_check(plans[0]->device, (size_t)bytes, largest_piece(plans, n), "the plan");
}

/** What the session will hold besides what it holds now must fit; said before any of it is taken. */
static clv_status check_fit(clv_session *session, clv_plan *const *plans, int n) {
    clv_plan_memory memory = clv_plans_memory(plans, n);
    uint64_t more = memory.predicted_peak_bytes;
    for (size_t i = 0; i < session->n_kept; i++) {
        for (int p = 0; p < n; p++) {
            const clv_tensor *tensor = clv_graph_find(plans[p]->graph, session->kept[i].name);
            if (!tensor || plans[p]->tensors[tensor->id].segment != CLV__IN_SESSION) continue;
            more -= session->kept[i].memory.bytes; // is there already
            break;
        }
    }
    return clv__memory_check(session->device, (size_t)more, largest_piece(plans, n), "the plan");
}

clv_status clv_session_reserve(clv_session *session, clv_plan *const *plans, int n) {
    clv__error *error = clv__runtime_error_of(session->runtime);
    for (int p = 0; p < n; p++) {
        if (!session->device) session->device = plans[p]->device;
        if (plans[p]->device != session->device) {
            CLV_FAIL(error, CLV_E_MISMATCH, "the session is on %s, a plan is on %s", session->device->info.name,
                     plans[p]->device->info.name);
        }
        CLV_TRY(clv__plan_prepare(plans[p]));
    }
    bool served = true;
    for (int p = 0; p < n; p++) served &= clv__session_serves(session, plans[p]);
    if (served) return CLV_OK;
    if (session->n_runs) {
        CLV_FAIL(error, CLV_E_STATE, "a plan needs more memory than the session has reserved while runs of it exist: "
                                     "reserve for all plans at once before making runs");
    }

    clv__layout gradients = session->gradients.layout, activations = session->activations.layout;
    size_t workspace = session->workspace.bytes, io = session->io.bytes, staging = session->staging.bytes;
    for (int p = 0; p < n; p++) {
        grow_layout(&gradients, &plans[p]->gradients);
        grow_layout(&activations, &plans[p]->activations);
        grow_size(&workspace, plans[p]->workspace_bytes);
        grow_size(&io, clv__io_bytes(plans[p]));
        grow_size(&staging, clv__staging_bytes(plans[p]));
    }
    arenas_destroy(session);
    CLV_TRY(check_fit(session, plans, n));
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < plans[p]->n_persistents; i++)
            CLV_TRY(keep(session, plans[p]->graph->tensors[plans[p]->persistents[i]]));
    }
    clv_status status = chunks_create(session, &gradients, CLV_GRADIENTS, "gradients of parameters", &session->gradients);
    if (status == CLV_OK) status = chunks_create(session, &activations, CLV_ACTIVATIONS, "activations", &session->activations);
    if (status == CLV_OK) status = clv__memory_create(session->device, workspace, CLV_WORKSPACE, "workspace of kernels", &session->workspace);
    if (status == CLV_OK) status = clv__memory_create(session->device, io, CLV_IO, "inputs and outputs", &session->io);
    if (status == CLV_OK) status = clv__memory_create(session->device, staging, CLV_STAGING, "staging", &session->staging);
    if (status != CLV_OK) arenas_destroy(session);
    return status;
}

// ---- questions --------------------------------------------------------------------------------------------------------

clv_runtime *clv_session_runtime(const clv_session *session) {
    return session->runtime;
}

int clv_session_count(const clv_session *session) {
    return (int)session->n_kept;
}

clv_session_tensor clv_session_get(const clv_session *session, int index) {
    const clv__kept *kept = &session->kept[index];
    return (clv_session_tensor){
        .name = kept->name,
        .dtype = kept->desc.dtype,
        .shape = kept->desc.shape,
        .category = kept->category,
        .trainable = kept->trainable,
        .device = session->device,
        .bytes = kept->memory.bytes,
    };
}

int clv_session_find(const clv_session *session, const char *name) {
    for (size_t i = 0; i < session->n_kept; i++) {
        if (strcmp(session->kept[i].name, name) == 0) return (int)i;
    }
    return -1;
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
