// SPDX-License-Identifier: Apache-2.0
// Closing a device: whatever was made on it goes first, from the worker down to the account of bytes.
#include <stdlib.h>

#include "device/device.h"
#include "device/helpers/helpers.h"
#include "device/program.h"
#include "device/select.h"

void clv__device_destroy(clv_device *device) {
    if (!device) return;
    if (atomic_load(
            &device->silent)) { // its worker may be inside a call of the driver, with any of it at hand
        if (device->worker) device->worker_leave(device->worker);
        clv__helpers_end(device);
        clv__device_forget_host(device, true);
        clv__leave(device);
        return;
    }
    if (device->worker && device->worker_destroy) device->worker_destroy(device->worker);
    clv__helpers_end(device);
    clv__programs_reset(device);
    bool quiet = !device->open || device->backend->close(device->open);
    clv__device_forget_host(device, !quiet);
    while (device->quarantine) {
        clv__quarantine *next = device->quarantine->next;
        free(device->quarantine->why);
        free(device->quarantine);
        device->quarantine = next;
    }
    if (device->tuned) device->tuned_destroy(device->tuned);
    clv__ledger_destroy(&device->ledger);
    pthread_mutex_destroy(&device->open_lock);
    free(device);
}
