// SPDX-License-Identifier: Apache-2.0
// Variants that failed on a device. They are kept in the device, so they outlive plans.
#include "graph/quarantine.h"

#include <stdio.h>
#include <stdlib.h>

bool clv__quarantined(const clv_device *device, const clv__op *op, const clv__variant *variant) {
    bool found = false;
    pthread_mutex_lock(&device->runtime->report_lock);
    for (const clv__quarantine *q = device->quarantine; q && !found; q = q->next)
        found = q->op == op && q->variant == variant;
    pthread_mutex_unlock(&device->runtime->report_lock);
    return found;
}

void clv__quarantine_why(const clv_device *device, const clv__op *op, char *out, size_t bytes) {
    *out = 0;
    pthread_mutex_lock(&device->runtime->report_lock);
    for (const clv__quarantine *q = device->quarantine; q && !*out; q = q->next)
        if (q->op == op)
            snprintf(out, bytes, ", '%s' because of: %s", ((const clv__variant *)q->variant)->name, q->why);
    pthread_mutex_unlock(&device->runtime->report_lock);
}

static void destroy(clv__quarantine *q) {
    if (!q) return;
    free(q->why);
    free(q);
}

clv_status clv__quarantine_put(clv_device *device, const clv__op *op, const clv__variant *variant,
                               const char *why) {
    clv__quarantine *q = clv__alloc(1, sizeof *q);
    if (q) *q = (clv__quarantine){.op = op, .variant = variant, .why = clv__strdup(why)};
    if (!q || !q->why) {
        destroy(q);
        CLV_FAIL(clv__runtime_error_of(device->runtime), CLV_E_HOST_MEMORY, "no host memory");
    }
    pthread_mutex_lock(&device->runtime->report_lock);
    q->next = device->quarantine;
    device->quarantine = q;
    pthread_mutex_unlock(&device->runtime->report_lock);
    return CLV_OK;
}

void clv__quarantine_remove(clv_device *device, const clv__op *op, const clv__variant *variant) {
    pthread_mutex_lock(&device->runtime->report_lock);
    for (clv__quarantine **at = &device->quarantine; *at;) {
        clv__quarantine *q = *at;
        if (q->op != op || q->variant != variant) {
            at = &q->next;
            continue;
        }
        *at = q->next;
        destroy(q);
    }
    pthread_mutex_unlock(&device->runtime->report_lock);
}

clv__quarantine *clv__quarantine_lift(clv_device *device) {
    pthread_mutex_lock(&device->runtime->report_lock);
    clv__quarantine *all = device->quarantine;
    device->quarantine = NULL;
    pthread_mutex_unlock(&device->runtime->report_lock);
    return all;
}

void clv__quarantine_give_back(clv_device *device, clv__quarantine *lifted) {
    pthread_mutex_lock(&device->runtime->report_lock);
    clv__quarantine **end = &device->quarantine;
    while (*end) end = &(*end)->next;
    *end = lifted;
    pthread_mutex_unlock(&device->runtime->report_lock);
}

clv_status clv__quarantine_add(clv_device *device, const clv__op *op, const clv__variant *variant,
                               const char *why) {
    CLV_TRY(clv__quarantine_put(device, op, variant, why));
    clv__log(
        device->runtime, CLV_LOG_WARNING,
        "%s: variant '%s' of %s is not used on this device any more (`cleave devices` tells how to use it "
        "again): %s",
        device->info.name, variant->name, op->name, why);
    return CLV_OK;
}
