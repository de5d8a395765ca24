// SPDX-License-Identifier: Apache-2.0
// First values of the tensors that a session keeps. They depend on the seed and the tensor's name alone, so
// adding a layer leaves the others as they were. They are functions of counters, so several threads may draw
// parts of one tensor and get the same bits. Where a device computes in the host's memory they are written in
// place, by threads that work while programs are built (parallel.h). Elsewhere constants are filled in on the
// device, and other values are drawn on the host and copied.
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/random.h"
#include "exec/session.h"
#include "exec/worker.h"
#include "tensor/dtype.h"

enum {
    PART = 1 << 16,
    BLOCK = 4,
    CHUNK = 256
}; // elements of a part; words of a counter; numbers drawn at once

/** Elements from `first` to before `end` of a tensor. It holds no tensor: a plan may be made anew
 *  meanwhile. */
typedef struct clv__first_part {
    clv_init init;
    const char *given; // the values themselves, of a graph's arena; NULL: they are drawn
    clv_dtype dtype;   // of what is written; numbers are drawn as floats
    uint64_t seed, id;
    float *values; // of elements from number `from` on: all, or a piece; of dtype where that is not f32
    int64_t from, first, end;
} clv__first_part;

/** Four bytes that repeat themselves? */
static bool is_constant(const clv_tensor *tensor, clv_dtype dtype) {
    return !tensor->values &&
           (tensor->init.kind == CLV_INIT_ZEROS ||
            (tensor->init.kind == CLV_INIT_ONES && clv_dtype_bytes(dtype) <= sizeof(uint32_t)));
}

static void draw_normals(const clv__first_part *p, clv__random *random) {
    const double mean = p->init.a,
                 deviation = p->init.b; // out of the way of what is written: then it is vectors
    double normals[CHUNK];
    for (int64_t i = p->first; i < p->end;) {
        int n = p->end - i < CHUNK ? (int)(p->end - i) : CHUNK;
        clv__random_normals(random, normals, n);
        float *values = p->values + (i - p->from);
        for (int j = 0; j < n; j++) values[j] = (float)(mean + deviation * normals[j]);
        i += n;
    }
}

static void draw_uniforms(const clv__first_part *p, clv__random *random) {
    const float least = p->init.a, width = p->init.b - p->init.a;
    float *values = p->values + (p->first - p->from);
    const int n = (int)(p->end - p->first);
    clv__random_uniforms(random, values, n);
    for (int i = 0; i < n; i++) values[i] = least + width * values[i];
}

static void write_constant(const clv__first_part *p, float constant) {
    float *values = p->values + (p->first - p->from);
    const int64_t n = p->end - p->first;
    for (int64_t i = 0; i < n; i++) values[i] = constant;
}

/** From a multiple of CHUNK on: there the numbers begin with a block of their own, a pair of their own. */
static void draw_aligned(const clv__first_part *p) {
    clv__random random;
    clv__random_init(&random, p->seed, CLV__STREAM_INIT, p->id);
    random.next = (uint32_t)((uint64_t)p->first / BLOCK); // each number takes a word
    switch (p->init.kind) {
    case CLV_INIT_ZEROS: write_constant(p, 0); break;
    case CLV_INIT_ONES: write_constant(p, 1); break;
    case CLV_INIT_UNIFORM: draw_uniforms(p, &random); break;
    case CLV_INIT_NORMAL: draw_normals(p, &random); break;
    }
}

/** A piece may begin anywhere: then the chunk in which it does is drawn from its own beginning. */
static void draw_floats(const clv__first_part *p) {
    const int64_t before = p->first % CHUNK;
    clv__first_part rest = *p;
    if (before) {
        float chunk[CHUNK];
        clv__first_part head = *p;
        head.values = chunk;
        head.first = head.from = p->first - before;
        if (head.end > head.first + CHUNK) head.end = head.first + CHUNK;
        draw_aligned(&head);
        memcpy(p->values + (p->first - p->from), chunk + before,
               (size_t)(head.end - p->first) * sizeof *chunk);
        rest.first = head.end;
    }
    if (rest.first < rest.end) draw_aligned(&rest);
}

/** Of another type than f32: some floats at a time, and of these the nearest that there are. */
static void draw_narrow(const clv__first_part *p, char *values) {
    const size_t each = clv_dtype_bytes(p->dtype);
    float floats[CHUNK];
    double numbers[CHUNK];
    clv__first_part some = *p;
    some.values = floats;
    for (int64_t n; some.first < p->end; some.first = some.end) {
        n = p->end - some.first < CHUNK ? p->end - some.first : CHUNK;
        some.from = some.first;
        some.end = some.first + n;
        draw_floats(&some);
        for (int64_t i = 0; i < n; i++) numbers[i] = (double)floats[i];
        clv__elements_narrow(p->dtype, numbers, n, values + (size_t)(some.first - p->from) * each);
    }
}

static void draw(const clv__first_part *p) {
    const size_t each = clv_dtype_bytes(p->dtype);
    char *values = (char *)p->values;
    if (p->given)
        memcpy(values + (size_t)(p->first - p->from) * each, p->given + (size_t)p->first * each,
               (size_t)(p->end - p->first) * each);
    else if (p->dtype == CLV_DTYPE_F32)
        draw_floats(p);
    else
        draw_narrow(p, values);
}

static void draw_part(void *context, size_t part) {
    const clv__first_values *values = context;
    draw(&values->parts[part]);
}

void clv__first_values_begin(clv__first_values *values) {
    clv__parallel_begin(&values->parallel, draw_part, values, values->n);
}

void clv__first_values_end(clv__first_values *values) {
    clv__parallel_end(&values->parallel);
    free(values->parts);
    *values = (clv__first_values){0};
}

/** The parts of n elements of a tensor from number `from` on, to be written to `target`. */
static clv_status add_parts(clv__first_values *values, const clv_tensor *tensor, clv_dtype dtype,
                            uint64_t seed, int64_t from, int64_t n, void *target, clv__error *error) {
    size_t n_parts = (size_t)(n / PART + 2);
    if (!clv__grow(&values->parts, &values->room, values->n + n_parts, sizeof *values->parts))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for '%s'", tensor->name);
    clv__first_part part = {.init = tensor->init,
                            .given = tensor->values,
                            .dtype = dtype,
                            .seed = seed,
                            .id = XXH64(tensor->name, strlen(tensor->name), 0),
                            .values = target,
                            .from = from};
    for (part.first = from; part.first < from + n; part.first = part.end) {
        part.end = (part.first / PART + 1) * PART;
        if (part.end > from + n) part.end = from + n;
        values->parts[values->n++] = part;
    }
    return CLV_OK;
}

// ---- devices with memory of their own ---------------------------------------------------------------------

typedef struct filling {
    const clv__memory *memory;
    uint32_t pattern;
} filling;

static clv_status fill(void *context) {
    const filling *f = context;
    clv_device *device = f->memory->device;
    clv__error *error = clv__runtime_error_of(device->runtime);
    CLV_TRY(device->backend->fill(device->open, f->memory->buffer, 0, f->memory->bytes, f->pattern, error));
    return clv__device_settle(device, error);
}

static clv_status fill_constant(const clv_tensor *tensor, clv_dtype dtype, const clv__memory *memory) {
    const double one = 1;
    const size_t each = clv_dtype_bytes(dtype);
    filling f = {memory, 0};
    for (size_t at = 0; tensor->init.kind == CLV_INIT_ONES && at < sizeof f.pattern; at += each)
        clv__elements_narrow(dtype, &one, 1, (char *)&f.pattern + at);
    return clv__worker_call(memory->device, fill, &f);
}

static clv_status draw_and_copy(const clv_tensor *tensor, clv_dtype dtype, uint64_t seed, int64_t from,
                                const clv__memory *memory) {
    clv__error *error = clv__runtime_error_of(memory->device->runtime);
    void *target = clv__alloc(1, memory->bytes);
    if (!target) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for '%s'", tensor->name);
    clv__first_values values = {0};
    const int64_t n = (int64_t)(memory->bytes / clv_dtype_bytes(dtype));
    clv_status status = add_parts(&values, tensor, dtype, seed, from, n, target, error);
    if (status == CLV_OK) clv__first_values_begin(&values);
    clv__first_values_end(&values);
    if (status == CLV_OK) status = clv__memory_copy(memory, target, NULL);
    free(target);
    return status;
}

/** Those of a piece, which begins with element number `from`. */
static clv_status add_piece(clv__first_values *values, const clv_tensor *tensor, clv_dtype dtype,
                            uint64_t seed, int64_t from, const clv__memory *memory) {
    const clv_device *device = memory->device;
    if (memory->bytes == 0) return CLV_OK;
    if (device->traits.host_memory)
        return add_parts(values, tensor, dtype, seed, from, (int64_t)(memory->bytes / clv_dtype_bytes(dtype)),
                         device->backend->buffer_pointer(memory->buffer),
                         clv__runtime_error_of(device->runtime));
    return is_constant(tensor, dtype) ? fill_constant(tensor, dtype, memory)
                                      : draw_and_copy(tensor, dtype, seed, from, memory);
}

clv_status clv__first_values_add(clv__first_values *values, const clv_tensor *tensor, clv_dtype dtype,
                                 uint64_t seed, const clv__holding *holding) {
    int64_t from = 0;
    for (int i = 0; i < holding->n; from += (int64_t)(holding->pieces[i++].bytes / clv_dtype_bytes(dtype)))
        CLV_TRY(add_piece(values, tensor, dtype, seed, from, &holding->pieces[i]));
    return CLV_OK;
}
