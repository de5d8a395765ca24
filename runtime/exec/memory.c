// SPDX-License-Identifier: Apache-2.0
// Memory on a device: tensors in pieces, arenas in chunks, copies through the device's worker.
#include "exec/memory.h"

#include <stdlib.h>

#include "exec/worker.h"
#include "plan/split.h"

static void chunks_destroy(clv__chunks *chunks) {
    for (int i = 0; i < chunks->n; i++) clv__memory_destroy(&chunks->items[i]);
    free(chunks->items);
    *chunks = (clv__chunks){0};
}

void clv__arenas_empty(clv__arenas *arenas) {
    chunks_destroy(&arenas->gradients);
    chunks_destroy(&arenas->activations);
    chunks_destroy(&arenas->once);
    chunks_destroy(&arenas->io);
    clv__memory_destroy(&arenas->workspace);
    clv__memory_destroy(&arenas->staging);
}

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

clv_status clv__memory_copy(const clv__memory *memory, const void *source, void *target) {
    transfer t = {memory->device, memory->buffer, source, target, memory->bytes};
    return clv__worker_call(memory->device, do_transfer, &t);
}

clv_status clv__holding_create(clv_device *device, const clv__desc *desc, clv_category category,
                               const char *layer, clv__holding *out) {
    clv__error *error = clv__runtime_error_of(device->runtime);
    const int64_t rows = clv__split_rows(desc, device), all = clv__split_length(&desc->shape, 0);
    const int n =
        rows > 0 && rows < all ? (int)((all + rows - 1) / rows) : 1; // one that does not fit is refused
    *out = (clv__holding){.device = device, .bytes = clv__desc_bytes(desc)};
    out->pieces = clv__alloc((size_t)n, sizeof *out->pieces);
    clv_status status = CLV_OK;
    if (!out->pieces) status = clv__error_set(error, CLV_E_HOST_MEMORY, "no host memory for '%s'", layer);
    for (; status == CLV_OK && out->n < n; out->n++) {
        const size_t bytes =
            n == 1 ? out->bytes : out->bytes / (size_t)all * (size_t)clv__split_piece(desc, rows, out->n);
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
        CLV_TRY(clv__memory_copy(&holding->pieces[i], source ? (const char *)source + at : NULL,
                                 target ? (char *)target + at : NULL));
    }
    return CLV_OK;
}
