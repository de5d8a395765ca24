// SPDX-License-Identifier: Apache-2.0
// The host backend: memory from malloc, and host functions called at once. It runs the ops' references, so it
// is what tests compare with, and what is left on a machine without OpenCL. It must not get kernels of its
// own: speed on CPUs comes from OpenCL. Every verb blocks, so a queue is simply what has been called so far.
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "device/backend.h"

enum {
    ALIGNMENT = 64, // a cache line, and the widest vector
};

struct clv__bdevice {
    int unused;
};

struct clv__bbuffer {
    char *data;
    size_t bytes;
    clv__pages *block; // that data lies in; NULL: it is nobody's here
    bool owns;         // is one of its users
};

/** What is recorded is already done; an event only remembers when. */
struct clv__bevent {
    uint64_t start_ns, end_ns;
};

/** Hand out an event, if one is wanted. */
static clv_status give_event(uint64_t start_ns, clv__bevent **event, clv__error *error) {
    if (!event) return CLV_OK;
    *event = malloc(sizeof **event);
    if (!*event) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an event");
    **event = (clv__bevent){start_ns, clv__nanoseconds()};
    return CLV_OK;
}

static clv_status startup(const clv_runtime_config *config, void **state, clv__error *error) {
    (void)config, (void)error;
    *state = NULL;
    return CLV_OK;
}

static void shutdown(void *state) {
    (void)state;
}

static clv_status enumerate(void *state, clv_status (*tell)(void *user, const clv__found *found), void *user,
                            clv__error *error) {
    (void)state, (void)error;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE),
         processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    struct utsname system;
    const char *label = uname(&system) == 0 ? system.machine : "host";
    clv__found found = {.info = {.label = label,
                                 .type = CLV_DEVICE_HOST,
                                 .platform = -1,
                                 .device = -1,
                                 .platform_name = "host",
                                 .usable = true,
                                 .memory_bytes = memory,
                                 .max_alloc_bytes = memory,
                                 .max_work_group = 1,
                                 .compute_units = processors > 0 ? (uint32_t)processors : 1,
                                 .alignment_bytes = ALIGNMENT,
                                 .vector_width = 1,
                                 .fp64 = true,
                                 .unified_memory = true},
                        .traits = {.host_memory = true}};
    return tell(user, &found);
}

static clv_status open_device(void *state, void *handle, clv__error *error, clv__bdevice **out) {
    (void)state, (void)handle;
    *out = clv__alloc(1, sizeof **out);
    if (!*out) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for the host device");
    return CLV_OK;
}

static bool close_device(clv__bdevice *device) {
    free(device);
    return true;
}

static clv_status buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    (void)device;
    *out = NULL;
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    clv__pages *block = buffer ? clv__pages_create(bytes) : NULL;
    if (!block) {
        free(buffer);
        CLV_FAIL(error, CLV_E_DEVICE_MEMORY, "the host has no memory for %zu bytes", bytes);
    }
    *buffer = (clv__bbuffer){block->pointer, bytes, block, true};
    *out = buffer;
    return CLV_OK;
}

static clv_status buffer_part(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                              clv__bbuffer **out) {
    *out = NULL;
    if (offset % ALIGNMENT != 0 || bytes == 0 || offset > parent->bytes || bytes > parent->bytes - offset)
        CLV_FAIL(error, CLV_E_INTERNAL, "a part at %zu of %zu bytes does not lie in a buffer of %zu", offset,
                 bytes, parent->bytes);
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    if (!buffer) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    *buffer = (clv__bbuffer){parent->data + offset, bytes, parent->block, false};
    *out = buffer;
    return CLV_OK;
}

static clv_status buffer_over(clv__bdevice *device, clv__pages *block, void *pointer, size_t bytes,
                              clv__error *error, clv__bbuffer **out) {
    (void)device;
    *out = clv__alloc(1, sizeof **out);
    if (!*out) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    if (block) clv__pages_take(block);
    **out = (clv__bbuffer){pointer, bytes, block, block != NULL};
    return CLV_OK;
}

static clv__pages *buffer_block(clv__bbuffer *buffer) {
    return buffer->block;
}

static void *buffer_pointer(clv__bbuffer *buffer) {
    return buffer->data;
}

static void buffer_destroy(clv__bbuffer *buffer) {
    if (buffer && buffer->owns) clv__pages_drop(buffer->block);
    free(buffer);
}

/** Does the range lie in the buffer? A driver would say so too. */
static clv_status check_range(const clv__bbuffer *buffer, size_t offset, size_t bytes, const char *verb,
                              clv__error *error) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return CLV_OK;
    CLV_FAIL(error, CLV_E_INTERNAL, "%s of %zu bytes at %zu does not lie in a buffer of %zu on host", verb,
             bytes, offset, buffer->bytes);
}

static clv_status write_buffer(clv__bdevice *device, clv__queue queue, clv__bbuffer *to, size_t offset,
                               size_t bytes, const void *source, clv__bevent *after, clv__bevent **event,
                               clv__error *error) {
    (void)device, (void)queue, (void)after;
    uint64_t start = clv__nanoseconds();
    CLV_TRY(check_range(to, offset, bytes, "write", error));
    if (bytes) memcpy(to->data + offset, source, bytes);
    return give_event(start, event, error);
}

static clv_status read_buffer(clv__bdevice *device, clv__queue queue, clv__bbuffer *from, size_t offset,
                              size_t bytes, void *target, clv__bevent *after, clv__bevent **event,
                              clv__error *error) {
    (void)device, (void)queue, (void)after;
    uint64_t start = clv__nanoseconds();
    CLV_TRY(check_range(from, offset, bytes, "read", error));
    if (bytes) memcpy(target, from->data + offset, bytes);
    return give_event(start, event, error);
}

static clv_status copy_buffer(clv__bdevice *device, clv__bbuffer *from, size_t from_offset, clv__bbuffer *to,
                              size_t to_offset, size_t bytes, clv__error *error) {
    (void)device;
    CLV_TRY(check_range(from, from_offset, bytes, "copy", error));
    CLV_TRY(check_range(to, to_offset, bytes, "copy", error));
    memmove(to->data + to_offset, from->data + from_offset, bytes);
    return CLV_OK;
}

static clv_status fill_buffer(clv__bdevice *device, clv__bbuffer *to, size_t offset, size_t bytes,
                              uint32_t pattern, clv__error *error) {
    (void)device;
    CLV_TRY(check_range(to, offset, bytes, "fill", error));
    for (size_t i = 0; i < bytes; i += 4)
        memcpy(to->data + offset + i, &pattern, bytes - i < 4 ? bytes - i : 4);
    return CLV_OK;
}

static clv_status no_kernels(clv__error *error) {
    CLV_FAIL(error, CLV_E_UNSUPPORTED, "the host device runs references, not kernels");
}

static clv_status program_build(clv__bdevice *device, const char *source, const char *options,
                                clv__error *error, clv__bprogram **out) {
    (void)device, (void)source, (void)options;
    *out = NULL;
    return no_kernels(error);
}

static void program_destroy(clv__bprogram *program) {
    (void)program;
}

static clv_status kernel_create(clv__bprogram *program, const char *name, const clv__barg *args, int n_args,
                                const clv__grid *grid, clv__error *error, clv__bkernel **out) {
    (void)program, (void)name, (void)args, (void)n_args, (void)grid;
    *out = NULL;
    return no_kernels(error);
}

static void kernel_destroy(clv__bkernel *kernel) {
    (void)kernel;
}

static clv_status launch(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event, clv__error *error) {
    (void)device, (void)kernel;
    if (event) *event = NULL;
    return no_kernels(error);
}

static clv_status call_function(clv__bdevice *device, clv__bcall call, void *context,
                                clv__bbuffer *const *buffers, int n, clv__error *error) {
    (void)device;
    void *pointers[64];
    if (n < 0 || n > (int)(sizeof pointers / sizeof *pointers))
        CLV_FAIL(error, CLV_E_INTERNAL, "a call over %d buffers is too wide", n);
    for (int i = 0; i < n; i++) pointers[i] = buffers[i] ? buffers[i]->data : NULL;
    call(context, pointers);
    return CLV_OK;
}

static clv_status wait_on_queue(clv__bdevice *device, clv__queue queue, clv__bevent *event,
                                clv__error *error) {
    (void)device, (void)queue, (void)event, (void)error;
    return CLV_OK;
}

static clv_status record(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error) {
    (void)device, (void)queue;
    return give_event(clv__nanoseconds(), event, error);
}

static clv_status event_wait(clv__bevent *event, clv__error *error) {
    (void)event, (void)error;
    return CLV_OK;
}

static clv_status elapsed(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error) {
    (void)error;
    *start_ns = event->start_ns;
    *end_ns = event->end_ns;
    return CLV_OK;
}

static void event_destroy(clv__bevent *event) {
    free(event);
}

static clv_status nothing_pending(clv__bdevice *device, clv__error *error) {
    (void)device, (void)error;
    return CLV_OK;
}

const clv__backend clv__backend_host = {
    .name = "host",
    .startup = startup,
    .shutdown = shutdown,
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .buffer_create = buffer_create,
    .buffer_part = buffer_part,
    .buffer_destroy = buffer_destroy,
    .buffer_pointer = buffer_pointer,
    .buffer_block = buffer_block,
    .buffer_over = buffer_over,
    .write = write_buffer,
    .read = read_buffer,
    .copy = copy_buffer,
    .fill = fill_buffer,
    .program_build = program_build,
    .program_destroy = program_destroy,
    .kernel_create = kernel_create,
    .kernel_destroy = kernel_destroy,
    .launch = launch,
    .call = call_function,
    .wait_on_queue = wait_on_queue,
    .record = record,
    .event_wait = event_wait,
    .elapsed = elapsed,
    .event_destroy = event_destroy,
    .flush = nothing_pending,
    .synchronize = nothing_pending,
};
