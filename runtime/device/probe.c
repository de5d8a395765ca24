// SPDX-License-Identifier: Apache-2.0
// A kernel's question to a device. Whatever goes wrong, a compiler's refusal included, means no.
#include "device/probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/cache.h"
#include "device/compile.h"
#include "device/kernel_sources.h"
#include "device/program.h"

/** What is common, and the kernel that asks, whose macros have the defaults that `begin` leaves. False: it is
 *  not in this library. */
static bool write_source(const clv__probe *probe, clv__text *out) {
    bool found = false;
    clv__text_add(out, "#define KERNEL(name) name\n%s", probe->begin);
    for (int common = 1; common >= 0; common--) {
        for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
            bool asks = strcmp(source->stem, probe->stem) == 0;
            if (source->common != common || (!common && !asks)) continue;
            clv__text_add_bytes(out, source->text, source->bytes);
            clv__text_add(out, "\n");
            found |= asks;
        }
    }
    return found && !out->failed;
}

/** Run the kernel. Its few bytes are in nobody's account: they are gone before anything else is there. */
static clv_status ask(clv_device *device, const clv__probe *probe, const char *source, int32_t *faults) {
    const clv__backend *backend = device->backend;
    const size_t bytes = (size_t)probe->items * sizeof *faults;
    const clv__grid grid = {.dims = 1, .global = {(size_t)probe->items}, .local = {(size_t)probe->group}};
    clv__error error;
    clv__bbuffer *out = NULL;
    clv__bprogram *program = NULL;
    clv__bkernel *kernel = NULL;
    bool cached;
    clv__error_init(&error);
    clv_status status = backend->buffer_create(device->open, bytes, &error, &out);
    const clv__barg argument = {.kind = CLV__BARG_BUFFER, .buffer = out};
    if (status == CLV_OK) status = clv__compile(device, source, &error, &program, &cached);
    if (status == CLV_OK)
        status = backend->kernel_create(program, probe->entry, &argument, 1, &grid, &error, &kernel);
    if (status == CLV_OK) status = backend->launch(device->open, kernel, NULL, &error);
    if (status == CLV_OK)
        status = backend->read(device->open, CLV__QUEUE_COMPUTE, out, 0, bytes, faults, NULL, NULL, &error);
    clv_status done = clv__device_settle(device, &error);
    backend->kernel_destroy(kernel);
    backend->program_destroy(program);
    backend->buffer_destroy(out);
    clv__error_destroy(&error);
    return status == CLV_OK ? done : status;
}

static bool is_right(clv_device *device, const clv__probe *probe, const char *source) {
    int32_t *faults = clv__alloc((size_t)probe->items, sizeof *faults);
    bool right = faults && ask(device, probe, source, faults) == CLV_OK;
    for (int i = 0; right && i < probe->items; i++) right = faults[i] == 0;
    clv__device_free(device, faults);
    return right;
}

bool clv__probe_passes(clv_device *device, const clv__probe *probe) {
    if (device->backend == &clv__backend_null) return false;
    clv__text source = {0};
    bool passes = false;
    if (write_source(probe, &source)) {
        const char *text = clv__text_get(&source);
        clv__cache_key key = clv__cache_key_of(device, text, probe->note);
        void *kept = NULL;
        size_t bytes = 0;
        bool keeps = !device->runtime->config.no_cache;
        if (keeps && clv__cache_read(device, key, &kept, &bytes) && bytes == 1) {
            passes = *(const char *)kept == 1;
        } else {
            passes = is_right(device, probe, text);
            if (keeps) clv__cache_write(device, key, &(char){passes}, 1);
        }
        free(kept);
    }
    clv__text_reset(&source);
    return passes;
}
