// SPDX-License-Identifier: Apache-2.0
// How busy each device of a training was: the time in which it had work, as a part of each step. The rest is
// idle: a stage of a pipeline waits for another, a replica waits for parameters, or all wait for the host.
#include <stdlib.h>

#include "device/device.h"
#include "train/trainer.h"

clv_status clv__trainer_see_busy(clv_trainer *trainer, double seconds) {
    clv__busy *busy = &trainer->busy;
    size_t n = (size_t)trainer->n_devices;
    if (!busy->last) busy->last = clv__alloc(n, sizeof *busy->last);
    if (!busy->seconds) busy->seconds = clv__alloc(n, sizeof *busy->seconds);
    if (!busy->last || !busy->seconds)
        CLV_FAIL(clv__runtime_error_of(trainer->runtime), CLV_E_HOST_MEMORY, "no memory for a trainer");
    for (size_t i = 0; i < n; i++) {
        clv_activity now = clv_device_activity(trainer->devices[(int)i]);
        bool told = now.steps > busy->last[i].steps; // a driver may tell no times
        if (seconds > 0 && told) busy->seconds[i] += 1e-9 * (double)(now.busy_ns - busy->last[i].busy_ns);
        busy->last[i] = now;
    }
    if (seconds > 0) busy->elapsed += seconds;
    return CLV_OK;
}

double clv__trainer_busy(const clv_trainer *trainer, const clv_device *device) {
    const clv__busy *busy = &trainer->busy;
    int i = 0;
    while (i < trainer->n_devices && trainer->devices[i] != device) i++;
    if (i == trainer->n_devices || !busy->seconds || busy->elapsed == 0 || busy->last[i].steps == 0)
        return -1;
    double part = busy->seconds[i] / busy->elapsed;
    return part < 1 ? part : 1;
}
