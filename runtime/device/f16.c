// SPDX-License-Identifier: Apache-2.0
// Finds out how a device converts f16 (kernels_cl/f16.cl). What the driver says is not enough: some have a
// half type that is wrong, and what they say of denormals and rounding is not always what they do. Any fault
// means no, and integers are used, which are right everywhere.
#include "device/f16.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/cache.h"
#include "device/compile.h"
#include "device/kernel_sources.h"
#include "device/program.h"

enum { ITEMS = 64 };

/** storage.cl and what else is common, with both ways in it, and the kernel that compares. False: not in this
 *  library. */
static bool write_source(clv__text *out) {
    bool found = false;
    clv__text_add(out, "%s", CLV__F16_NATIVE_TEXT);
    for (int common = 1; common >= 0; common--) {
        for (const clv__kernel_source *source = clv__kernel_sources; source->stem; source++) {
            bool asks = strcmp(source->stem, "f16") == 0;
            if (source->common != common || (!common && !asks)) continue;
            clv__text_add_bytes(out, source->text, source->bytes);
            clv__text_add(out, "\n");
            found |= asks;
        }
    }
    return found && !out->failed;
}

/** Run the kernel. Its few bytes are in nobody's account: they are gone before anything else is there. */
static clv_status ask(clv_device *device, const char *source, int32_t *differs) {
    const clv__backend *backend = device->backend;
    const size_t bytes = ITEMS * sizeof *differs;
    const clv__grid grid = {.dims = 1, .global = {ITEMS}, .local = {1}};
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
        status = backend->kernel_create(program, "f16_differences", &argument, 1, &grid, &error, &kernel);
    if (status == CLV_OK) status = backend->launch(device->open, kernel, NULL, &error);
    if (status == CLV_OK)
        status = backend->read(device->open, CLV__QUEUE_COMPUTE, out, 0, bytes, differs, NULL, NULL, &error);
    clv_status done = clv__device_settle(device, &error);
    backend->kernel_destroy(kernel);
    backend->program_destroy(program);
    backend->buffer_destroy(out);
    clv__error_destroy(&error);
    return status == CLV_OK ? done : status;
}

static bool is_right(clv_device *device, const char *source) {
    int32_t *differs = clv__alloc(ITEMS, sizeof *differs);
    bool right = differs && ask(device, source, differs) == CLV_OK;
    for (int i = 0; right && i < ITEMS; i++) right = differs[i] == 0;
    clv__device_free(device, differs);
    return right;
}

bool clv__f16_native(clv_device *device) {
    if (!device->info.fp16 || device->backend == &clv__backend_null) return false;
    clv__text source = {0};
    bool native = false;
    if (write_source(&source)) {
        const char *text = clv__text_get(&source);
        clv__cache_key key = clv__cache_key_of(device, text, "f16 converted to the same bits, 1");
        void *kept = NULL;
        size_t bytes = 0;
        bool keeps = !device->runtime->config.no_cache;
        if (keeps && clv__cache_read(device, key, &kept, &bytes) && bytes == 1) {
            native = *(const char *)kept == 1;
        } else {
            native = is_right(device, text);
            if (keeps) clv__cache_write(device, key, &(char){native}, 1);
        }
        free(kept);
    }
    clv__text_reset(&source);
    return native;
}
