// SPDX-License-Identifier: Apache-2.0
// Runs launches straight through the device seam; see guarded.h.
//
// One allocation holds everything: guard, tensor, guard, tensor, ..., guard. Guards, outputs and workspace begin as words
// that are quiet NaNs as f32, as two f16 and as two bf16, and far out of range as i32, so that reading outside, or reading what was never written,
// shows in the results as surely as writing outside shows in the guards. Neighbouring words are other NaNs: arithmetic hands on a
// NaN's payload, and a kernel that carries what lies past its input to past its output must not find the same bits there.
#include "check/guarded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/program.h"
#include "exec/worker.h"

static uint32_t pattern_at(size_t word) {
    uint32_t low = (uint32_t)word & 0x3F, high = (uint32_t)(word >> 6) & 0x3F,
             sign = (uint32_t)(word >> 12) & 1;
    return 0x7FC07FC0u | high << 16 | low | sign << 15;
}

enum { GUARD_BYTES = 4096, ZONES = CLV__MAX_IN + CLV__MAX_OUT + 1 };

/** A tensor, or the workspace, inside the allocation. */
typedef struct zone {
    char name[16];
    bool there;
    size_t offset, bytes; // bytes may be 0: then the buffer lies in a guard
    const void *source;   // first contents; NULL: pattern
    void *result;         // NULL: must be as it was
    bool scratch;         // workspace: anything may be there afterwards
} zone;

/** A buffer over part of the allocation. */
typedef struct stretch {
    clv__bbuffer *buffer;
    size_t offset, bytes;
} stretch;

typedef struct field {
    clv_device *device;
    clv__error *error;
    const clv__op_io *io;
    size_t alignment, bytes;
    zone zones[ZONES]; // inputs, outputs, workspace
    clv__memory memory;
    char *before, *after, *again;
    stretch *parts;
    clv__bkernel **kernels;
    size_t n_parts, parts_room, n_kernels, kernels_room;
} field;

static zone *zone_of(field *f, const clv__slot *slot) {
    switch (slot->kind) {
    case CLV__SLOT_IN: return &f->zones[slot->index];
    case CLV__SLOT_OUT: return &f->zones[CLV__MAX_IN + slot->index];
    default: return &f->zones[ZONES - 1];
    }
}

static void place(field *f, zone *z, const char *kind, int index, size_t bytes) {
    snprintf(z->name, sizeof z->name, index < 0 ? "%s" : "%s%d", kind, index);
    z->there = true;
    z->offset = f->bytes;
    z->bytes = bytes;
    // The guard begins at the tensor's last byte, not at the next aligned one.
    f->bytes += clv__size_align(bytes + GUARD_BYTES, f->alignment);
}

static clv_status lay_out(field *f, const clv__launches *launches, const clv__guarded *tensors) {
    f->alignment = f->device->info.alignment_bytes > 128 ? f->device->info.alignment_bytes : 128;
    f->bytes = clv__size_align(GUARD_BYTES, f->alignment);
    for (int i = 0; i < f->io->n_in; i++) {
        if (!clv__has_in(f->io, i)) continue;
        place(f, &f->zones[i], "in", i, clv__desc_bytes(&f->io->in[i]));
        f->zones[i].source = tensors->in[i];
        f->zones[i].result = f->io->op->mutates >> i & 1 ? tensors->in_after[i] : NULL;
    }
    for (int i = 0; i < f->io->n_out; i++) {
        place(f, &f->zones[CLV__MAX_IN + i], "out", i, clv__desc_bytes(&f->io->out[i]));
        f->zones[CLV__MAX_IN + i].result = tensors->out[i];
    }
    if (launches->workspace_bytes) {
        place(f, &f->zones[ZONES - 1], "workspace", -1, launches->workspace_bytes);
        f->zones[ZONES - 1].scratch = true;
    }
    f->before = malloc(f->bytes);
    f->after = malloc(f->bytes);
    f->again = malloc(f->bytes);
    if (!f->before || !f->after || !f->again)
        CLV_FAIL(f->error, CLV_E_HOST_MEMORY, "no memory for %zu bytes of guarded tensors", f->bytes);
    for (size_t i = 0; i + sizeof(uint32_t) <= f->bytes; i += sizeof(uint32_t))
        memcpy(f->before + i, &(uint32_t){pattern_at(i / sizeof(uint32_t))}, sizeof(uint32_t));
    for (int i = 0; i < ZONES; i++)
        if (f->zones[i].there && f->zones[i].source)
            memcpy(f->before + f->zones[i].offset, f->zones[i].source, f->zones[i].bytes);
    return CLV_OK;
}

static clv_status part(field *f, const clv__slot *slot, clv__bbuffer **out) {
    const zone *z = zone_of(f, slot);
    *out = NULL;
    if (!z->there) return CLV_OK; // an optional input: a null pointer in the kernel
    bool inside = slot->kind == CLV__SLOT_WORKSPACE;
    size_t offset = z->offset + (inside ? slot->offset : 0), bytes = inside ? slot->bytes : z->bytes;
    if (inside && slot->offset + slot->bytes > z->bytes)
        CLV_FAIL(f->error, CLV_E_INTERNAL,
                 "workspace part at %zu of %zu bytes is outside the %zu bytes asked for", slot->offset,
                 slot->bytes, z->bytes);
    // One buffer for one stretch of memory: OpenCL promises nothing about two that overlap.
    for (size_t i = 0; i < f->n_parts; i++)
        if (f->parts[i].offset == offset && f->parts[i].bytes == bytes) *out = f->parts[i].buffer;
    if (*out) return CLV_OK;
    if (!clv__grow(&f->parts, &f->parts_room, f->n_parts + 1, sizeof *f->parts))
        CLV_FAIL(f->error, CLV_E_HOST_MEMORY, "no memory for a buffer");
    CLV_TRY(f->device->backend->buffer_part(f->memory.buffer, offset, bytes ? bytes : 4, f->error, out));
    f->parts[f->n_parts++] = (stretch){*out, offset, bytes};
    return CLV_OK;
}

static clv_status make_kernel(field *f, const clv__launch *launch, clv__bkernel **out) {
    clv__barg args[CLV__MAX_ARGS];
    clv__kernel_ref kernel;
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        args[i] = (clv__barg){.kind = CLV__BARG_BUFFER};
        switch (slot->kind) {
        case CLV__SLOT_I32: args[i] = (clv__barg){.kind = CLV__BARG_I32, .i32 = slot->i32}; break;
        case CLV__SLOT_F32: args[i] = (clv__barg){.kind = CLV__BARG_F32, .f32 = slot->f32}; break;
        case CLV__SLOT_LOCAL: args[i] = (clv__barg){.kind = CLV__BARG_LOCAL, .bytes = slot->bytes}; break;
        default: CLV_TRY(part(f, slot, &args[i].buffer));
        }
    }
    CLV_TRY(clv__programs_find(f->device, launch, &kernel));
    if (!clv__grow(&f->kernels, &f->kernels_room, f->n_kernels + 1, sizeof *f->kernels))
        CLV_FAIL(f->error, CLV_E_HOST_MEMORY, "no memory for a kernel");
    CLV_TRY(f->device->backend->kernel_create(kernel.program, kernel.name, args, launch->n_slots,
                                              &launch->grid, f->error, out));
    f->kernels[f->n_kernels++] = *out;
    return CLV_OK;
}

static size_t slot_offset(field *f, const clv__slot *slot) {
    return zone_of(f, slot)->offset + (slot->kind == CLV__SLOT_WORKSPACE ? slot->offset : 0);
}

static clv_status enqueue(field *f, const clv__launch *launch, clv__bkernel *kernel) {
    const clv__backend *backend = f->device->backend;
    clv__bdevice *open = f->device->open;
    clv__bbuffer *c, *a, *b;
    switch (launch->kind) {
    case CLV__LAUNCH_KERNEL: return backend->launch(open, kernel, NULL, f->error);
    case CLV__LAUNCH_COPY:
        return backend->copy(open, f->memory.buffer, slot_offset(f, &launch->slots[1]), f->memory.buffer,
                             slot_offset(f, &launch->slots[0]), launch->bytes, f->error);
    case CLV__LAUNCH_FILL:
        return backend->fill(open, f->memory.buffer, slot_offset(f, &launch->slots[0]), launch->bytes,
                             launch->pattern, f->error);
    case CLV__LAUNCH_GEMM:
        if (!backend->gemm) break;
        CLV_TRY(part(f, &launch->slots[0], &c));
        CLV_TRY(part(f, &launch->slots[1], &a));
        CLV_TRY(part(f, &launch->slots[2], &b));
        return backend->gemm(open, launch->gemm.transpose_a, launch->gemm.transpose_b, launch->gemm.m,
                             launch->gemm.n, launch->gemm.k, launch->gemm.alpha, a, launch->gemm.lda,
                             launch->gemm.stride_a, b, launch->gemm.ldb, launch->gemm.stride_b,
                             launch->gemm.beta, c, launch->gemm.ldc, launch->gemm.stride_c,
                             launch->gemm.n_batch, f->error);
    case CLV__LAUNCH_REFERENCE: break;
    }
    CLV_FAIL(f->error, CLV_E_UNSUPPORTED, "the %s backend has no such launch", backend->name);
}

static clv_status run_once(field *f, const clv__launches *launches, char *after) {
    const clv__backend *backend = f->device->backend;
    clv__bdevice *open = f->device->open;
    clv__bevent *done = NULL;
    CLV_TRY(backend->write(open, CLV__QUEUE_COMPUTE, f->memory.buffer, 0, f->bytes, f->before, NULL, NULL,
                           f->error));
    size_t kernel = 0;
    clv_status status = CLV_OK;
    for (size_t i = 0; status == CLV_OK && i < launches->n; i++)
        status = enqueue(f, &launches->items[i],
                         launches->items[i].kind == CLV__LAUNCH_KERNEL ? f->kernels[kernel++] : NULL);
    if (status == CLV_OK)
        status = backend->read(open, CLV__QUEUE_COMPUTE, f->memory.buffer, 0, f->bytes, after, NULL, &done,
                               f->error);
    if (status == CLV_OK) status = clv__device_wait(f->device, done, f->error);
    backend->event_destroy(done);
    // Whatever happened, nothing may be under way when buffers and host memory go.
    clv_status settled = clv__device_settle(f->device, status == CLV_OK ? f->error : NULL);
    return status == CLV_OK ? settled : status;
}

/** Everything outside the zones that may change must be as it was. */
static clv_status inspect(field *f, const char *after) {
    size_t at = 0;
    const char *last = "the first buffer";
    bool past = false; // `last` lies before the guard at hand
    for (int i = 0; i <= ZONES; i++) {
        const zone *z = i < ZONES ? &f->zones[i] : NULL;
        if (z && !z->there) continue;
        size_t end = z ? z->offset : f->bytes;
        for (size_t b = at; b < end; b++)
            if (f->before[b] != after[b])
                CLV_FAIL(f->error, CLV_E_DEVICE, "wrote outside its buffers: byte %zu %s %s%s%s", b - at,
                         past ? "after the end of" : "of the guard before", last, z ? ", before " : "",
                         z ? z->name : "");
        if (!z) break;
        for (size_t b = z->offset; !z->result && !z->scratch && b < z->offset + z->bytes; b++)
            if (f->before[b] != after[b])
                CLV_FAIL(f->error, CLV_E_DEVICE, "wrote into %s, which it may only read, at byte %zu",
                         z->name, b - z->offset);
        at = z->offset + z->bytes;
        last = z->name;
        past = true;
    }
    return CLV_OK;
}

static clv_status compare_runs(field *f) {
    for (int i = 0; i < ZONES; i++) {
        const zone *z = &f->zones[i];
        if (!z->there || !z->result) continue;
        for (size_t b = 0; b < z->bytes; b++)
            if (f->after[z->offset + b] != f->again[z->offset + b])
                CLV_FAIL(f->error, CLV_E_DEVICE, "two runs gave different bits at byte %zu of %s", b,
                         z->name);
        memcpy(z->result, f->after + z->offset, z->bytes);
    }
    return CLV_OK;
}

/** Microseconds of one use, over so many that are handed over without waiting. */
static clv_status time_uses(field *f, const clv__launches *launches, int uses, double *each) {
    double start = clv__seconds();
    for (int use = 0; use < uses; use++) {
        size_t kernel = 0;
        for (size_t i = 0; i < launches->n; i++)
            CLV_TRY(enqueue(f, &launches->items[i],
                            launches->items[i].kind == CLV__LAUNCH_KERNEL ? f->kernels[kernel++] : NULL));
    }
    CLV_TRY(clv__device_settle(f->device, f->error));
    *each = (clv__seconds() - start) * 1e6 / uses;
    return CLV_OK;
}

/** Several runs of so many uses that all of them take the time there is; their median. */
static clv_status time_launches(field *f, const clv__launches *launches, clv__timing *timing) {
    enum { RUNS = 7, MOST_USES = 10000 };
    double share = timing->seconds * 1e6 / (RUNS + 1), each, times[RUNS];
    CLV_TRY(time_uses(f, launches, 1, &each));
    timing->median_us = each;
    if (timing->enough_us > 0 && each > timing->enough_us) return CLV_OK;
    int uses = 1, runs = 0;
    while (uses * 2 <= MOST_USES &&
           each * uses * 2 <= share) { // a wait's share of the time falls as it grows
        uses *= 2;
        CLV_TRY(time_uses(f, launches, uses, &each));
    }
    for (double spent = 0; runs < RUNS && (runs < 3 || spent < share * RUNS); runs++) {
        CLV_TRY(time_uses(f, launches, uses, &each));
        spent += each * uses;
        int at = runs;
        for (; at > 0 && times[at - 1] > each; at--) times[at] = times[at - 1];
        times[at] = each;
    }
    timing->median_us = (times[(runs - 1) / 2] + times[runs / 2]) / 2;
    return CLV_OK;
}

static clv_status run(field *f, const clv__launches *launches, const clv__guarded *tensors) {
    const clv__launch **list = clv__alloc(launches->n + 1, sizeof *list);
    if (!list) CLV_FAIL(f->error, CLV_E_HOST_MEMORY, "no memory for %zu launches", launches->n);
    for (size_t i = 0; i < launches->n; i++) list[i] = &launches->items[i];
    clv_status status = clv__programs_build(f->device, list, launches->n);
    free(list);
    CLV_TRY(status);
    CLV_TRY(lay_out(f, launches, tensors));
    CLV_TRY(clv__memory_create(f->device, f->bytes, CLV_WORKSPACE, f->io->op->name, &f->memory));
    for (size_t i = 0; i < launches->n; i++) {
        clv__bkernel *kernel;
        if (launches->items[i].kind == CLV__LAUNCH_KERNEL)
            CLV_TRY(make_kernel(f, &launches->items[i], &kernel));
    }
    CLV_TRY(run_once(f, launches, f->after));
    CLV_TRY(inspect(f, f->after));
    CLV_TRY(run_once(f, launches, f->again));
    CLV_TRY(compare_runs(f));
    return tensors->timing ? time_launches(f, launches, tensors->timing) : CLV_OK;
}

typedef struct request {
    field *field;
    const clv__launches *launches;
    const clv__guarded *tensors;
} request;

// On the worker: the device's queues belong to it.
static clv_status on_worker(void *context) {
    request *r = context;
    field *f = r->field;
    clv_status status = run(f, r->launches, r->tensors);
    for (size_t i = 0; i < f->n_kernels; i++) f->device->backend->kernel_destroy(f->kernels[i]);
    for (size_t i = 0; i < f->n_parts; i++) f->device->backend->buffer_destroy(f->parts[i].buffer);
    clv__memory_destroy(&f->memory);
    return status;
}

clv_status clv__guarded_run(clv_device *device, const clv__op_io *io, const clv__launches *launches,
                            const clv__guarded *tensors) {
    field f = {.device = device, .error = clv__runtime_error_of(device->runtime), .io = io};
    clv_status status = clv__worker_start(device);
    if (status == CLV_OK) status = clv__worker_call(device, on_worker, &(request){&f, launches, tensors});
    free(f.kernels);
    free(f.parts);
    clv__device_free(device, f.before);
    clv__device_free(device, f.after);
    clv__device_free(device, f.again);
    return status;
}
