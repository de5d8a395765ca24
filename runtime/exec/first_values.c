// SPDX-License-Identifier: Apache-2.0
// First values of what a session keeps. They depend on seed and name alone, so that adding a layer leaves the others as they were;
// and on counters, so that several threads may draw the parts of a large tensor and give the same bits. Constants are filled in on
// the device, unless it computes in the host's memory: there all is written in place.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/random.h"
#include "exec/session.h"
#include "exec/worker.h"

enum { MOST_THREADS = 16, LEAST_PART = 1 << 16, BLOCK = 4 }; // BLOCK: words that a counter gives

/** Elements from `first` to before `end`; both multiples of BLOCK, or the tensor's end. */
typedef struct part {
    const clv_tensor *tensor;
    uint64_t seed;
    float *values; // of the whole tensor
    int64_t first, end;
    pthread_t thread;
    bool threaded;
} part;

static bool is_constant(const clv_init *init) {
    return init->kind == CLV_INIT_ZEROS || init->kind == CLV_INIT_ONES;
}

static void draw(const part *p) {
    const clv_init *init = &p->tensor->init;
    if (is_constant(init)) {
        for (int64_t i = p->first; i < p->end; i++) p->values[i] = init->kind == CLV_INIT_ONES ? 1.0f : 0.0f;
        return;
    }
    const char *name = p->tensor->name;
    clv__random random;
    clv__random_init(&random, p->seed, CLV__STREAM_INIT, XXH64(name, strlen(name), 0));
    // a normal number takes two words, a uniform one takes one
    random.next = (uint32_t)((uint64_t)p->first * (init->kind == CLV_INIT_NORMAL ? 2 : 1) / BLOCK);
    if (init->kind == CLV_INIT_NORMAL) {
        double normals[256];
        for (int64_t i = p->first; i < p->end;) {
            int n = p->end - i < 256 ? (int)(p->end - i) : 256;
            clv__random_normals(&random, normals, n);
            for (int j = 0; j < n; j++) p->values[i++] = (float)(init->a + init->b * normals[j]);
        }
        return;
    }
    for (int64_t i = p->first; i < p->end;) {
        int n = p->end - i < 4096 ? (int)(p->end - i) : 4096;
        clv__random_uniforms(&random, p->values + i, n);
        for (int64_t end = i + n; i < end; i++) p->values[i] = init->a + (init->b - init->a) * p->values[i];
    }
}

static void *draw_on_thread(void *context) {
    draw(context);
    return NULL;
}

/** All of it, on as many threads as are worth it; a thread that cannot start is done without. */
static void draw_all(const clv_tensor *tensor, uint64_t seed, float *values) {
    part parts[MOST_THREADS];
    int64_t n = clv_tensor_numel(tensor), threads = n / LEAST_PART,
            processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (threads > processors) threads = processors;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads < 1) threads = 1;
    int64_t each = (n / threads + BLOCK - 1) / BLOCK * BLOCK;
    for (int64_t t = 0; t < threads; t++) {
        int64_t end = t + 1 < threads ? (t + 1) * each : n;
        parts[t] = (part){.tensor = tensor, .seed = seed, .values = values, .first = t * each, .end = end};
        parts[t].threaded = t > 0 && pthread_create(&parts[t].thread, NULL, draw_on_thread, &parts[t]) == 0;
    }
    for (int64_t t = 0; t < threads; t++) {
        if (!parts[t].threaded) draw(&parts[t]);
    }
    for (int64_t t = 0; t < threads; t++) {
        if (parts[t].threaded) pthread_join(parts[t].thread, NULL);
    }
    if (tensor->desc.dtype != CLV_DTYPE_I32) return;
    for (int64_t i = 0; i < n; i++) {
        int32_t whole = (int32_t)values[i];
        memcpy(&values[i], &whole, sizeof whole);
    }
}

typedef struct filling {
    const clv__memory *memory;
    uint32_t pattern;
} filling;

static clv_status fill(void *context) {
    const filling *f = context;
    clv_device *device = f->memory->device;
    clv__error *error = clv__runtime_error_of(device->runtime);
    CLV_TRY(device->backend->fill(device->open, f->memory->buffer, 0, f->memory->bytes, f->pattern, error));
    return device->backend->synchronize(device->open, error);
}

clv_status clv__first_values(const clv_tensor *tensor, uint64_t seed, const clv__memory *memory) {
    const clv_device *device = memory->device;
    if (memory->bytes == 0) return CLV_OK;
    if (device->traits.host_memory) { // written where they are to be
        draw_all(tensor, seed, device->backend->buffer_pointer(memory->buffer));
        return CLV_OK;
    }
    if (is_constant(&tensor->init)) {
        const bool whole = tensor->desc.dtype == CLV_DTYPE_I32;
        const float one = 1;
        filling f = {memory, 0};
        if (tensor->init.kind == CLV_INIT_ONES && whole) f.pattern = 1;
        if (tensor->init.kind == CLV_INIT_ONES && !whole) memcpy(&f.pattern, &one, sizeof one);
        return clv__worker_call(memory->device, fill, &f);
    }
    float *values = clv__alloc(1, memory->bytes);
    if (!values)
        CLV_FAIL(clv__runtime_error_of(device->runtime), CLV_E_HOST_MEMORY, "no host memory for '%s'",
                 tensor->name);
    draw_all(tensor, seed, values);
    clv_status status = clv__session_copy(memory, values, NULL);
    free(values);
    return status;
}
