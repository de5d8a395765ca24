// SPDX-License-Identifier: Apache-2.0
// Cleave as an execution provider of ONNX Runtime: the two functions that it looks for in a library, devices, options of a session.
//
// A session takes it by its registered name, or by one of the devices below:
//     device      a device spec (clv_device_find): `gpu:0`, `cpu`, `gpu|cpu|host`
//
// Nothing here exits, prints or throws; failures are ONNX Runtime's own statuses with Cleave's sentence.
#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "provider.h"

#define EXPORT __attribute__((visibility("default")))
#define OPTION "ep.cleaveexecutionprovider." // ONNX Runtime writes the name in small letters

// ---- failures -------------------------------------------------------------------------------------------------------

OrtStatus *failure(const factory *f, clv_status status) {
    if (status == CLV_OK) return NULL;
    const bool callers = status == CLV_E_VALUE || status == CLV_E_SHAPE || status == CLV_E_NOT_FOUND;
    const char *sentence = f->runtime ? clv_runtime_error(f->runtime) : clv_status_text(status);
    return f->ort.CreateStatus(callers ? ERROR_ARGUMENT : ERROR_EP, sentence);
}

OrtStatus *no_memory(const factory *f) {
    return f->ort.CreateStatus(ERROR_EP, "Cleave: no host memory");
}

bool passed(const factory *f, OrtStatus *status) {
    if (status) f->ort.ReleaseStatus(status);
    return !status;
}

// ---- sessions ---------------------------------------------------------------------------------------------------------

/** The program that compiles kernels ahead, where a wheel has it: beside this library. */
static const char *helper(char *room, size_t bytes) {
    Dl_info here;
    if (getenv("CLEAVE_COMPILE_HELPER") || !dladdr((void *)&helper, &here) || !here.dli_fname) return NULL;
    const char *end = strrchr(here.dli_fname, '/');
    if (!end || *here.dli_fname != '/') return NULL;
    snprintf(room, bytes, "%.*s/cleave-compile-helper", (int)(end - here.dli_fname), here.dli_fname);
    return access(room, X_OK) == 0 ? room : NULL;
}

static OrtStatus *make_runtime(factory *f) {
    char room[1024];
    clv_runtime_config config = {.compile_helper = helper(room, sizeof room)};
    pthread_mutex_lock(&f->lock);
    OrtStatus *status = f->runtime ? NULL : failure(f, clv_runtime_create(&config, &f->runtime));
    pthread_mutex_unlock(&f->lock);
    return status;
}

/** The option `device`, and a failure for options that there are not. The text is borrowed from the pairs. */
static OrtStatus *read_options(const factory *f, const OrtKeyValuePairs *pairs, const char **device) {
    const char *const *keys = NULL, *const *values = NULL;
    char text[256];
    size_t n = 0;
    f->ort.GetKeyValuePairs(pairs, &keys, &values, &n);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(keys[i], OPTION, strlen(OPTION)) != 0) continue;
        const char *key = keys[i] + strlen(OPTION);
        if (strcmp(key, "device") == 0) {
            *device = values[i];
            continue;
        }
        snprintf(text, sizeof text, "Cleave has no option '%.100s'; there is 'device'", key);
        return f->ort.CreateStatus(ERROR_ARGUMENT, text);
    }
    return NULL;
}

static const char *ep_name(const OrtEp *self) {
    (void)self;
    return PROVIDER_NAME;
}

/** Which device, unless the session says it. */
static const char *spec_for(const factory *f, const OrtHardwareDevice *device) {
    if (device && f->ort.HardwareDevice_Type(device) == HARDWARE_GPU) return "gpu";
    return f->knows_gpu ? "cpu|host" : "gpu|cpu|host";
}

static OrtStatus *open_device(provider *p, const char *spec, const OrtSessionOptions *options) {
    factory *f = p->factory;
    OrtKeyValuePairs *pairs = NULL;
    ORT_TRY(make_runtime(f));
    ORT_TRY(f->ort.GetSessionOptionsConfigEntries(options, &pairs));
    OrtStatus *status = read_options(f, pairs, &spec);
    if (!status) status = failure(f, clv_device_find(f->runtime, spec, &p->device));
    f->ort.ReleaseKeyValuePairs(pairs);
    return status;
}

static OrtStatus *create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, size_t n,
                            const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **out) {
    factory *f = (factory *)self;
    (void)metadata;
    *out = NULL;
    provider *p = calloc(1, sizeof *p);
    if (!p) return no_memory(f);
    *p = (provider){.face = {.version = ORT_VERSION,
                             .get_name = ep_name,
                             .get_capability = get_capability,
                             .compile = compile,
                             .release_compute_infos = release_compute_infos},
                    .factory = f,
                    .logger = logger};
    OrtStatus *status = open_device(p, spec_for(f, n ? devices[0] : NULL), options);
    if (status)
        free(p);
    else
        *out = (OrtEp *)p;
    return status;
}

static void release_ep(OrtEpFactory *self, OrtEp *ep) {
    (void)self;
    free(ep);
}

// ---- devices ------------------------------------------------------------------------------------------------------------

/** GPUs, and the CPU, which stands for all of Cleave's devices where ONNX Runtime knows no GPU: it looks for those of few makers. */
static OrtStatus *get_supported_devices(OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t n,
                                        OrtEpDevice **out, size_t most, size_t *n_out) {
    factory *f = (factory *)self;
    bool cpu = false;
    *n_out = 0;
    for (size_t i = 0; i < n && *n_out < most; i++) {
        const OrtHardwareDeviceType type = f->ort.HardwareDevice_Type(devices[i]);
        if (type != HARDWARE_GPU && (type != HARDWARE_CPU || cpu)) continue;
        ORT_TRY(f->ep.CreateEpDevice(self, devices[i], NULL, NULL, &out[*n_out]));
        (*n_out)++;
        cpu = cpu || type == HARDWARE_CPU;
        f->knows_gpu = f->knows_gpu || type == HARDWARE_GPU;
    }
    return NULL;
}

static const char *factory_name(const OrtEpFactory *self) {
    (void)self;
    return PROVIDER_NAME;
}

static const char *vendor(const OrtEpFactory *self) {
    (void)self;
    return "Cleave";
}

static uint32_t vendor_id(const OrtEpFactory *self) {
    (void)self;
    return 0;
}

static const char *version(const OrtEpFactory *self) {
    (void)self;
    return clv_version();
}

/** Inputs and results lie in ONNX Runtime's own memory of the CPU. */
static OrtStatus *no_allocator(OrtEpFactory *self, const void *memory, const OrtKeyValuePairs *options,
                               void **out) {
    (void)self, (void)memory, (void)options;
    *out = NULL;
    return NULL;
}

static void release_nothing(OrtEpFactory *self, void *allocator) {
    (void)self, (void)allocator;
}

static OrtStatus *no_transfer(OrtEpFactory *self, void **out) {
    (void)self;
    *out = NULL;
    return NULL;
}

static bool no_streams(const OrtEpFactory *self) {
    (void)self;
    return false;
}

// ---- the library ----------------------------------------------------------------------------------------------------------

static void take_functions(factory *f, const void *table) {
    const char *places = table;
#define CALL(place, result, name, parameters)                                                                \
    memcpy(&f->ort.name, places + (place) * sizeof(void *), sizeof(void *));
#include "api.def"
#undef CALL
    memcpy(&f->ep, f->ort.GetEpApi(), sizeof f->ep);
}

EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                                    OrtEpFactory **factories, size_t most, size_t *n);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *self);

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t most, size_t *n) {
    (void)name, (void)logger;
    const void *table = base->GetApi(ORT_VERSION);
    *n = 0;
    if (!table) return NULL; // before 1.23: it offers no device
    factory *f = calloc(1, sizeof *f);
    if (f) take_functions(f, table);
    if (!f || !most) {
        free(f);
        return NULL;
    }
    f->face = (ort_factory){.version = ORT_VERSION,
                            .get_name = factory_name,
                            .get_vendor = vendor,
                            .get_supported_devices = get_supported_devices,
                            .create_ep = create_ep,
                            .release_ep = release_ep,
                            .get_vendor_id = vendor_id,
                            .get_version = version,
                            .create_allocator = no_allocator,
                            .release_allocator = release_nothing,
                            .create_data_transfer = no_transfer,
                            .is_stream_aware = no_streams};
    pthread_mutex_init(&f->lock, NULL);
    factories[(*n)++] = (OrtEpFactory *)f;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *self) {
    factory *f = (factory *)self;
    clv_runtime_destroy(f->runtime);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return NULL;
}
