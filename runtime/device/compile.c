// SPDX-License-Identifier: Apache-2.0
// One text, one program: see compile.h. The binary comes from the cache on disk, else from a helper process
// where the compiler may end this one (helpers/helpers.h), else from the compiler in this process.
#include "device/compile.h"

#include <stdlib.h>

#include "device/cache.h"
#include "device/helpers/helpers.h"
#include "device/program.h"

/** Do we keep the driver's binaries? */
static bool keeps_binaries(const clv_device *device) {
    return !device->runtime->config.no_cache && !device->traits.caches_programs &&
           device->backend->program_load && device->backend->program_binary;
}

static bool load_kept(clv_device *device, clv__cache_key key, clv__error *error, clv__bprogram **out) {
    void *binary = NULL;
    size_t bytes = 0;
    bool loaded = clv__cache_read(device, key, &binary, &bytes) &&
                  device->backend->program_load(device->open, binary, bytes, error, out) == CLV_OK;
    free(binary);
    return loaded;
}

static void keep(clv_device *device, clv__cache_key key, clv__bprogram *program, clv__error *error) {
    void *binary = NULL;
    size_t bytes = 0;
    if (device->backend->program_binary(program, &binary, &bytes, error) != CLV_OK) return;
    clv__cache_write(device, key, binary, bytes);
    free(binary);
}

clv_status clv__compile(clv_device *device, const char *source, clv__error *error, clv__bprogram **out,
                        bool *cached) {
    *out = NULL;
    *cached = false;
    const bool keeps = keeps_binaries(device);
    const clv__cache_key key =
        keeps ? clv__cache_key_of(device, source, clv__program_options(source)) : (clv__cache_key){{0}};
    if (keeps && load_kept(device, key, error, out)) {
        *cached = true;
        return CLV_OK;
    }
    clv__built built;
    clv_status status = clv__helpers_build(device, source, error, &built);
    *out = built.program;
    if (*out && keeps) clv__cache_write(device, key, built.binary, built.bytes);
    free(built.binary);
    if (status != CLV_OK || *out) return status;
    CLV_TRY(clv__helpers_build_here(device, source, error, out));
    if (keeps) keep(device, key, *out, error);
    return CLV_OK;
}
