// SPDX-License-Identifier: Apache-2.0
// One text, one program: see compile.h. A compiler may die, and take the process along. So where one is not known as sound, or left
// a process behind that it had ended, a helper builds first what is not in the cache (trial.h); from there comes the binary too,
// so that nothing is compiled twice, but for drivers that give none.
#include "device/compile.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cache.h"
#include "device/helper.h"
#include "device/program.h"
#include "device/trial.h"

/** The one set of compiler options: OpenCL C 1.2 is the floor, and no fast-math (see numbers in the design). */
const char clv__program_options[] = "-cl-std=CL1.2";

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

/** A text that a helper built, where the driver keeps its programs itself or gives none: it is not tried again. */
static clv__cache_key proof_key(const clv_device *device, const char *source) {
    return clv__cache_key_of(device, source, "it builds");
}

/** A text that a process builds without a helper: the number of the process. What it leaves behind says that it died. */
static clv__cache_key mark_key(const clv_device *device, const char *source) {
    return clv__cache_key_of(device, source, "being built");
}

static bool has_proof(const clv_device *device, const char *source) {
    void *proof = NULL;
    size_t bytes = 0;
    bool has = !device->runtime->config.no_cache &&
               clv__cache_read(device, proof_key(device, source), &proof, &bytes);
    free(proof);
    return has;
}

/** Did a process end while it built this? */
static bool left_behind(const clv_device *device, const char *source) {
    void *mark = NULL;
    size_t bytes = 0;
    long process = 0;
    if (!device->runtime->config.no_cache &&
        clv__cache_read(device, mark_key(device, source), &mark, &bytes) && bytes == sizeof process)
        memcpy(&process, mark, sizeof process);
    free(mark);
    return process > 0 && process != (long)getpid() && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/** Build it here, leaving a mark on disk for the time that it takes. */
static clv_status build_marked(clv_device *device, const char *source, clv__error *error,
                               clv__bprogram **out) {
    const bool marks = !device->runtime->config.no_cache && clv__helper_wanted(device) &&
                       device->traits.compiler == CLV__COMPILER_SOUND;
    const long process = (long)getpid();
    if (marks) clv__cache_write(device, mark_key(device, source), &process, sizeof process);
    clv_status status =
        device->backend->program_build(device->open, source, clv__program_options, error, out);
    if (marks) clv__cache_remove(device, mark_key(device, source));
    return status;
}

/** Try it in a helper where the compiler may die; *out is set if that made the program already. */
static clv_status try_first(clv_device *device, const char *source, clv__cache_key key, bool keeps,
                            clv__error *error, clv__bprogram **out) {
    const bool trusted = clv__compiler_is_trusted(device), dead = trusted && left_behind(device, source);
    if (!clv__helper_wanted(device) || (trusted && !dead) || has_proof(device, source)) return CLV_OK;
    const bool loads =
        device->backend->program_load && device->backend->program_binary && !device->traits.caches_programs;
    void *binary = NULL;
    size_t bytes = 0;
    bool tried;
    clv_status status = clv__trial_build(device, source, loads, error, &tried, &binary, &bytes);
    if (dead && tried) clv__cache_remove(device, mark_key(device, source));
    if (tried && status == CLV_OK) {
        if (!binary || device->backend->program_load(device->open, binary, bytes, error, out) != CLV_OK)
            *out = NULL;
        if (*out && keeps)
            clv__cache_write(device, key, binary, bytes);
        else if (!*out && !device->runtime->config.no_cache)
            clv__cache_write(device, proof_key(device, source), "1", 1);
    }
    free(binary);
    return status;
}

clv_status clv__compile(clv_device *device, const char *source, clv__error *error, clv__bprogram **out,
                        bool *cached) {
    *out = NULL;
    *cached = false;
    const bool keeps = keeps_binaries(device);
    const clv__cache_key key =
        keeps ? clv__cache_key_of(device, source, clv__program_options) : (clv__cache_key){{0}};
    if (keeps && load_kept(device, key, error, out)) {
        *cached = true;
        return CLV_OK;
    }
    CLV_TRY(try_first(device, source, key, keeps, error, out));
    if (*out) return CLV_OK;
    CLV_TRY(build_marked(device, source, error, out));
    if (keeps) keep(device, key, *out, error);
    return CLV_OK;
}
