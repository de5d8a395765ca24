// SPDX-License-Identifier: Apache-2.0
// The runtime object: its settings, its log, its devices from enumeration to the end.
// Which devices are seen, and under which names, is the business of select.c.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "device/select.h"

#define DEVICE_TIMEOUT 600.0 // seconds; the slowest step seen took a twentieth of that

const char *clv_version(void) {
    return CLEAVE_VERSION;
}

/** A setting from the config, else from the environment, else "". Copied to the arena; NULL if memory is out.
 */
static const char *setting(clv_runtime *runtime, const char *given, const char *variable) {
    if (!given && variable) given = getenv(variable);
    return clv__arena_strdup(&runtime->arena, given ? given : "");
}

/** Where the program cache is: the setting, else where the user's caches are; "" if there is no such
 *  place. */
static const char *cache_folder(clv_runtime *runtime) {
    const char *set = runtime->config.cache_dir ? runtime->config.cache_dir : getenv("CLEAVE_CACHE_DIR");
    if (set && *set) return clv__arena_strdup(&runtime->arena, set);
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    clv__text path = {0};
    if (xdg && *xdg == '/')
        clv__text_add(&path, "%s/cleave", xdg); // a relative one is to be ignored, says XDG
    else if (home && *home == '/')
        clv__text_add(&path, "%s/.cache/cleave", home);
    const char *copy = path.failed ? NULL : clv__arena_strdup(&runtime->arena, clv__text_get(&path));
    clv__text_reset(&path);
    return copy;
}

static bool copy_config(clv_runtime *runtime, const clv_runtime_config *config) {
    clv_runtime_config *own = &runtime->config;
    if (config) *own = *config;
    own->visible_devices = setting(runtime, own->visible_devices, "CLEAVE_VISIBLE_DEVICES");
    own->partition = setting(runtime, own->partition, "CLEAVE_PARTITION");
    own->execution = setting(runtime, own->execution, "CLEAVE_EXECUTION");
    own->left_out = setting(runtime, own->left_out, NULL);
    own->cache_dir = cache_folder(runtime);
    own->compile_helper = setting(runtime, own->compile_helper, "CLEAVE_COMPILE_HELPER");
    own->tuning = setting(runtime, own->tuning, "CLEAVE_TUNING");
    own->device_timeout = own->device_timeout < 0    ? 0 // none
                          : own->device_timeout == 0 ? DEVICE_TIMEOUT
                                                     : own->device_timeout;
    runtime->variants = setting(runtime, NULL, "CLEAVE_VARIANTS");
    const char *debug = getenv("CLEAVE_DEBUG");
    if (debug) runtime->debug = atoi(debug);
    return own->visible_devices && own->partition && own->execution && own->left_out && own->cache_dir &&
           own->tuning && own->compile_helper && runtime->variants;
}

/** Start a backend and remember it. One that cannot start is left out, with a note; only lack of memory is an
 * error. */
static clv_status start_backend(clv_runtime *runtime, const clv__backend *backend) {
    void *state = NULL;
    clv_status status = backend->startup(&runtime->config, &state, &runtime->error);
    if (status == CLV_E_HOST_MEMORY || status == CLV_E_VALUE) return status;
    if (status != CLV_OK) {
        clv__log(runtime, CLV_LOG_WARNING, "the %s backend is left out: %s", backend->name,
                 clv__error_text(&runtime->error));
        return CLV_OK;
    }
    runtime->backends[runtime->n_backends].backend = backend;
    runtime->backends[runtime->n_backends++].state = state;
    return CLV_OK;
}

static clv_status start_backends(clv_runtime *runtime) {
    const int products = (int)runtime->config.float32_products;
    if (products < CLV_FLOAT32_PRODUCTS_HIGHEST || products > CLV_FLOAT32_PRODUCTS_MEDIUM)
        CLV_FAIL(&runtime->error, CLV_E_VALUE,
                 "float32_products is %d; it is one of clv_float32_products, 0 to %d", products,
                 CLV_FLOAT32_PRODUCTS_MEDIUM);
#ifdef CLEAVE_OPENCL
    if (!runtime->config.no_opencl) CLV_TRY(start_backend(runtime, &clv__backend_opencl));
#endif
    CLV_TRY(start_backend(runtime, &clv__backend_host));
    if (runtime->config.null_devices) CLV_TRY(start_backend(runtime, &clv__backend_null));
    return CLV_OK;
}

clv_status clv_runtime_create(const clv_runtime_config *config, clv_runtime **out) {
    CLV_TRY(CLV__GIVEN(NULL, out));
    *out = NULL;
    clv_runtime *runtime = clv__alloc(1, sizeof *runtime);
    if (!runtime) return CLV_E_HOST_MEMORY;
    clv__error_init_by_thread(&runtime->error);
    pthread_mutex_init(&runtime->report_lock, NULL);
    pthread_mutex_init(&runtime->post_lock, NULL);
    clv_status status = CLV_E_HOST_MEMORY;
    if (copy_config(runtime, config)) status = start_backends(runtime);
    if (status == CLV_OK) status = clv__devices_list(runtime);
    if (status == CLV_E_HOST_MEMORY) {
        clv_runtime_destroy(runtime);
        return status;
    }
    if (status == CLV_OK) clv__error_forget(&runtime->error); // a backend that was left out is no failure
    *out = runtime;
    return status;
}

void clv_runtime_destroy(clv_runtime *runtime) {
    if (!runtime || !clv__error_at_home(&runtime->error)) return;
    const bool stuck = clv_runtime_info_get(runtime).is_stuck;
    clv__devices_forget(runtime);
    if (stuck) { // threads of a device's driver may still look at what it was given
        clv__leave(runtime);
        return;
    }
    for (int i = runtime->n_backends; i-- > 0;)
        runtime->backends[i].backend->shutdown(runtime->backends[i].state);
    clv__arena_reset(&runtime->arena);
    pthread_mutex_destroy(&runtime->report_lock);
    pthread_mutex_destroy(&runtime->post_lock);
    clv__error_destroy(&runtime->error);
    free(runtime);
}

clv_runtime_info clv_runtime_info_get(const clv_runtime *runtime) {
    if (!runtime) return (clv_runtime_info){0};
    clv_runtime *self = (clv_runtime *)(uintptr_t)runtime; // the lock is no part of what a reader sees
    clv_runtime_info info = {.n_devices = (int)runtime->n_devices, .cache_folder = runtime->config.cache_dir};
    for (size_t i = 0; i < runtime->n_devices; i++)
        info.is_stuck |= atomic_load(&runtime->devices[i]->silent);
    pthread_mutex_lock(&self->report_lock);
    info.programs = self->report;
    pthread_mutex_unlock(&self->report_lock);
    return info;
}
