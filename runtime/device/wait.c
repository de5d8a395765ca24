// SPDX-License-Identifier: Apache-2.0
// Waiting for a device, and what becomes of one that fails or does not answer: its driver may still use
// memory of the host, which is kept until the device is closed, or for ever.
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

/** Host memory that a lost device may still read or write. */
typedef struct clv__kept_host {
    void *pointer;
    struct clv__kept_host *next;
} clv__kept_host;

void clv__device_lose(clv_device *device) {
    pthread_mutex_lock(&device->ledger.lock);
    device->lost = true;
    pthread_mutex_unlock(&device->ledger.lock);
}

void clv__device_silence(clv_device *device) {
    clv__device_lose(device);
    atomic_store(&device->silent, true);
    if (device->backend->abandon) device->backend->abandon(device->open);
}

clv_status clv__device_silent(const clv_device *device, clv__error *error) {
    CLV_FAIL(error, CLV_E_DEVICE_LOST, "'%s' has not answered for %g s (clv_runtime_config.device_timeout)",
             device->info.label, device->runtime->config.device_timeout);
}

static _Thread_local const clv_device *served;

void clv__device_serve(const clv_device *device) {
    served = device;
}

void clv__device_come_back(clv_device *device) {
    enum { LOOK_MS = 50 };
    if (served != device) return;
    atomic_fetch_add(&device->beats, 1);
    while (atomic_load(&device->call_left)) poll(NULL, 0, LOOK_MS); // taken back if the beat was seen
}

/** A wait failed: was it in vain? */
static void look_if_silent(clv_device *device) {
    const clv__backend *backend = device->backend;
    if (backend->silent && backend->silent(device->open)) clv__device_silence(device);
}

clv_status clv__device_wait(clv_device *device, clv__bevent *event, clv__error *error) {
    clv_status status = device->backend->event_wait(event, error);
    clv__device_come_back(device);
    if (status != CLV_OK) look_if_silent(device);
    return status;
}

clv_status clv__device_settle(clv_device *device, clv__error *error) {
    const clv__backend *backend = device->backend;
    clv_status status = backend->synchronize(device->open, error);
    clv__device_come_back(device);
    if (status == CLV_OK) return CLV_OK;
    if (backend->still_runs && backend->still_runs(device->open)) clv__device_lose(device);
    look_if_silent(device);
    return status;
}

void clv__device_forget_host(clv_device *device, bool still_runs) {
    while (device->kept) {
        clv__kept_host *next = device->kept->next;
        if (still_runs)
            clv__leave(device->kept->pointer);
        else
            free(device->kept->pointer);
        free(device->kept);
        device->kept = next;
    }
}

void clv__device_free(clv_device *device, void *memory) {
    pthread_mutex_lock(&device->ledger.lock);
    bool lost = device->lost && memory;
    clv__kept_host *kept = lost ? clv__alloc(1, sizeof *kept) : NULL;
    if (kept) {
        *kept = (clv__kept_host){memory, device->kept};
        device->kept = kept;
    }
    pthread_mutex_unlock(&device->ledger.lock);
    if (!lost)
        free(memory);
    else if (!kept)
        clv__leave(memory); // better than too early
}

void clv__device_free_staging(clv_device *device, clv__bbuffer *staging) {
    pthread_mutex_lock(&device->ledger.lock);
    bool lost = device->lost;
    pthread_mutex_unlock(&device->ledger.lock);
    if (lost)
        clv__leave(staging);
    else
        device->backend->staging_destroy(staging);
}

// ---- Copies that are waited for ---------------------------------------------------------------------------

enum { COPY_BYTES = 16 << 20 }; // at once: they go through memory of our own

clv_status clv__device_copy(clv_device *device, clv__bbuffer *buffer, size_t bytes, const void *source,
                            void *target, clv__error *error) {
    if (bytes == 0) return CLV_OK;
    const clv__backend *backend = device->backend;
    size_t room = bytes < COPY_BYTES ? bytes : COPY_BYTES;
    char *between = clv__alloc(room, 1);
    if (!between) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a copy of %zu bytes", room);
    clv_status status = CLV_OK;
    for (size_t at = 0; at < bytes && status == CLV_OK; at += room) {
        size_t n = bytes - at < room ? bytes - at : room;
        if (source) memcpy(between, (const char *)source + at, n);
        status =
            source
                ? backend->write(device->open, CLV__QUEUE_COMPUTE, buffer, at, n, between, NULL, NULL, error)
                : backend->read(device->open, CLV__QUEUE_COMPUTE, buffer, at, n, between, NULL, NULL, error);
        clv_status settled = clv__device_settle(device, status == CLV_OK ? error : NULL);
        if (status == CLV_OK) status = settled;
        if (status == CLV_OK && target) memcpy((char *)target + at, between, n);
    }
    clv__device_free(device, between);
    return status;
}
