// SPDX-License-Identifier: Apache-2.0
// Opening a device when it is first used. Below programs, memory and everything else that needs an open
// device.
#include "device/device.h"
#include "device/f16.h"
#include "device/matrix.h"
#include "device/sub_groups.h"
#include "device/select.h"

void *clv__backend_state(clv_runtime *runtime, const clv__backend *backend) {
    for (int i = 0; i < runtime->n_backends; i++) {
        if (runtime->backends[i].backend == backend) return runtime->backends[i].state;
    }
    return NULL;
}

clv_status clv__device_open(clv_device *device) {
    clv_runtime *runtime = device->runtime;
    pthread_mutex_lock(&device->open_lock);
    clv_status status = CLV_OK;
    if (!device->open) {
        if (!device->info.usable) {
            status = clv__error_set(&runtime->error, CLV_E_UNSUPPORTED, "device %s (%s) cannot be used: %s",
                                    device->name, device->info.label, device->info.reason);
        } else {
            status = device->backend->open(clv__backend_state(runtime, device->backend), device->handle,
                                           &runtime->error, &device->open);
            if (status != CLV_OK) {
                device->open = NULL;
                clv__error_prefix(&runtime->error, "device %s cannot be opened: ", device->name);
            } else {
                device->f16_way = clv__f16_way_of(device);
                device->sub_groups = clv__sub_groups_work(device);
                if (device->backend != &clv__backend_null)
                    device->info.matrix_units = clv__matrix_units(device);
                if (runtime->debug >= 1)
                    clv__log(runtime, CLV_LOG_DEBUG, "device %s opened (%s)%s%s%s", device->name,
                             device->info.label, device->sub_groups ? "; its sub-groups are used" : "",
                             device->info.matrix_units ? "; its matrix units are used" : "",
                             clv__f16_words(device));
            }
        }
    }
    pthread_mutex_unlock(&device->open_lock);
    return status;
}
