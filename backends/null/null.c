// SPDX-License-Identifier: Apache-2.0
// The null backend: devices that take nothing and compute nothing. They pretend to be a GPU and a CPU, check
// what a driver would check, and record the commands they are given: for planner tests, golden launch traces,
// and dry runs for devices that are not there. Reads give zeros.
#include "null.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "cards.h"

enum { TRACE_BYTES = 4 << 20 }; // a record longer than this is cut: nobody reads it

static const clv_device_info models[] = {
    {.label = "null, like a GPU",
     .type = CLV_DEVICE_GPU,
     .memory_bytes = 8ull << 30,
     .max_alloc_bytes = 2ull << 30,
     .local_bytes = 48 << 10,
     .max_work_group = 1024,
     .compute_units = 32,
     .alignment_bytes = 256,
     .vector_width = 1,
     .preferred_multiple = 32,
     .fp16 = true,
     .fp64 = true,
     .local_memory = true},
    {.label = "null, like a CPU",
     .type = CLV_DEVICE_CPU,
     .memory_bytes = 16ull << 30,
     .max_alloc_bytes = 4ull << 30,
     .local_bytes = 1 << 20,
     .max_work_group = 4096,
     .compute_units = 8,
     .alignment_bytes = 128,
     .vector_width = 16,
     .fp64 = true,
     .unified_memory = true},
};

struct clv__bdevice {
    const clv_device_info *model;
    pthread_mutex_t lock;
    clv__text trace;
    unsigned n_buffers;
    bool cut;
    bool keeps;  // what is written can be read again: it stands for a device of another rank
    bool driven; // somebody has enqueued:
    pthread_t driver;
};

struct clv__bbuffer {
    clv__bdevice *device;
    unsigned number;
    size_t offset, bytes; // in the buffer of that number
    clv__bbuffer *whole;  // of a part
    char *kept;           // NULL until something is written
};

struct clv__bprogram {
    clv__bdevice *device;
};

struct clv__bkernel {
    clv__bdevice *device;
    clv__text line;
    bool empty;
};

struct clv__bevent {
    clv__bdevice *device;
    clv__queue queue;
};

static const char *const queue_names[CLV__QUEUES] = {"compute", "upload", "download"};

static void note(clv__bdevice *device, const char *line) {
    pthread_mutex_lock(&device->lock);
    if (device->trace.n + strlen(line) > TRACE_BYTES) device->cut = true;
    if (!device->cut) clv__text_add(&device->trace, "%s\n", line);
    pthread_mutex_unlock(&device->lock);
}

char *clv__null_trace(clv__bdevice *device) {
    pthread_mutex_lock(&device->lock);
    char *copy = device->cut || device->trace.failed ? NULL : clv__strdup(clv__text_get(&device->trace));
    pthread_mutex_unlock(&device->lock);
    return copy;
}

void clv__null_trace_reset(clv__bdevice *device) {
    pthread_mutex_lock(&device->lock);
    clv__text_reset(&device->trace);
    device->cut = false;
    pthread_mutex_unlock(&device->lock);
}

// ---- Devices ----------------------------------------------------------------------------------------------

static clv_status startup(const clv_runtime_config *config, void **state, clv__error *error) {
    (void)error;
    *state = (void *)(uintptr_t)config; // stays until shutdown
    return CLV_OK;
}

static void shutdown(void *state) {
    (void)state;
}

static clv_status tell_model(const clv_device_info *model,
                             clv_status (*tell)(void *user, const clv__found *found), void *user) {
    clv__found found = {.info = *model, .handle = (void *)(uintptr_t)model};
    found.info.platform = found.info.device = -1;
    found.info.platform_name = "null";
    if (!model->opencl_c) found.info.opencl_c = "1.2";
    found.info.compiler = found.info.usable = true;
    return tell(user, &found);
}

static clv_status enumerate(void *state, clv_status (*tell)(void *user, const clv__found *found), void *user,
                            clv__error *error) {
    (void)error;
    const clv_runtime_config *config = state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) CLV_TRY(tell_model(&models[i], tell, user));
    for (const clv_device_info *card = clv__null_cards; config && config->null_cards && card->name; card++)
        CLV_TRY(tell_model(card, tell, user));
    return CLV_OK;
}

static clv_status open_device(void *state, void *handle, clv__error *error, clv__bdevice **out) {
    (void)state;
    *out = clv__alloc(1, sizeof **out);
    if (!*out) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a null device");
    (*out)->model = handle;
    (*out)->keeps = (*out)->model->backend && !strcmp((*out)->model->backend, "rank");
    pthread_mutex_init(&(*out)->lock, NULL);
    return CLV_OK;
}

static bool close_device(clv__bdevice *device) {
    if (!device) return true;
    clv__text_reset(&device->trace);
    pthread_mutex_destroy(&device->lock);
    free(device);
    return true;
}

/** A command was enqueued. event NULL: not wanted. */
static clv_status give_event(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error) {
    pthread_mutex_lock(&device->lock);
    device->driven = true;
    device->driver = pthread_self();
    pthread_mutex_unlock(&device->lock);
    if (!event) return CLV_OK;
    *event = clv__alloc(1, sizeof **event);
    if (!*event) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an event");
    **event = (clv__bevent){device, queue};
    return CLV_OK;
}

// ---- Buffers ----------------------------------------------------------------------------------------------

static clv_status buffer_create(clv__bdevice *device, size_t bytes, clv__error *error, clv__bbuffer **out) {
    *out = NULL;
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    if (!buffer) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    pthread_mutex_lock(&device->lock);
    *buffer = (clv__bbuffer){.device = device, .number = ++device->n_buffers, .bytes = bytes};
    buffer->whole = buffer;
    pthread_mutex_unlock(&device->lock);
    *out = buffer;
    return CLV_OK;
}

static clv_status buffer_part(clv__bbuffer *parent, size_t offset, size_t bytes, clv__error *error,
                              clv__bbuffer **out) {
    *out = NULL;
    if (bytes == 0 || offset > parent->bytes || bytes > parent->bytes - offset ||
        offset % parent->device->model->alignment_bytes != 0)
        CLV_FAIL(error, CLV_E_INTERNAL,
                 "a part at %zu of %zu bytes does not lie in a buffer of %zu, or not aligned", offset, bytes,
                 parent->bytes);
    clv__bbuffer *buffer = clv__alloc(1, sizeof *buffer);
    if (!buffer) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a buffer");
    *buffer = (clv__bbuffer){.device = parent->device,
                             .number = parent->number,
                             .offset = parent->offset + offset,
                             .bytes = bytes,
                             .whole = parent->whole};
    *out = buffer;
    return CLV_OK;
}

static void buffer_destroy(clv__bbuffer *buffer) {
    if (buffer) free(buffer->kept);
    free(buffer);
}

static clv_status check_range(const clv__bbuffer *buffer, size_t offset, size_t bytes, clv__error *error) {
    if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return CLV_OK;
    CLV_FAIL(error, CLV_E_INTERNAL, "%zu bytes at %zu do not lie in a buffer of %zu on '%s'", bytes, offset,
             buffer->bytes, buffer->device->model->label);
}

/** `b3+256:1024` */
static void add_range(clv__text *line, const clv__bbuffer *buffer, size_t offset, size_t bytes) {
    clv__text_add(line, " b%u+%zu:%zu", buffer->number, buffer->offset + offset, bytes);
}

/** On other queues than that of kernels its name is noted. */
static clv_status note_range(clv__bdevice *device, const char *verb, clv__queue queue,
                             const clv__bbuffer *buffer, size_t offset, size_t bytes, clv__error *error) {
    CLV_TRY(check_range(buffer, offset, bytes, error));
    if (bytes == 0) return CLV_OK;
    clv__text line = {0};
    clv__text_add(&line, "%s", verb);
    if (queue != CLV__QUEUE_COMPUTE) clv__text_add(&line, " %s", queue_names[queue]);
    add_range(&line, buffer, offset, bytes);
    note(device, clv__text_get(&line));
    clv__text_reset(&line);
    return CLV_OK;
}

static clv_status write_buffer(clv__bdevice *device, clv__queue queue, clv__bbuffer *to, size_t offset,
                               size_t bytes, const void *source, clv__bevent *after, clv__bevent **event,
                               clv__error *error) {
    (void)after;
    if (event) *event = NULL;
    CLV_TRY(note_range(device, "write", queue, to, offset, bytes, error));
    if (device->keeps && bytes) {
        clv__bbuffer *whole = to->whole;
        if (!whole->kept) whole->kept = clv__alloc(1, whole->bytes);
        if (!whole->kept) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for what another rank holds");
        memcpy(whole->kept + to->offset + offset, source, bytes);
    }
    return give_event(device, queue, event, error);
}

static clv_status read_buffer(clv__bdevice *device, clv__queue queue, clv__bbuffer *from, size_t offset,
                              size_t bytes, void *target, clv__bevent *after, clv__bevent **event,
                              clv__error *error) {
    (void)after;
    if (event) *event = NULL;
    CLV_TRY(note_range(device, "read", queue, from, offset, bytes, error));
    const char *kept = from->whole->kept;
    if (bytes && kept) memcpy(target, kept + from->offset + offset, bytes);
    if (bytes && !kept) memset(target, 0, bytes);
    return give_event(device, queue, event, error);
}

static clv_status copy_buffer(clv__bdevice *device, clv__bbuffer *from, size_t from_offset, clv__bbuffer *to,
                              size_t to_offset, size_t bytes, clv__error *error) {
    CLV_TRY(check_range(from, from_offset, bytes, error));
    CLV_TRY(check_range(to, to_offset, bytes, error));
    if (bytes == 0) return CLV_OK;
    clv__text line = {0};
    clv__text_add(&line, "copy");
    add_range(&line, to, to_offset, bytes);
    add_range(&line, from, from_offset, bytes);
    note(device, clv__text_get(&line));
    clv__text_reset(&line);
    return CLV_OK;
}

static clv_status fill_buffer(clv__bdevice *device, clv__bbuffer *to, size_t offset, size_t bytes,
                              uint32_t pattern, clv__error *error) {
    CLV_TRY(check_range(to, offset, bytes, error));
    if (bytes == 0) return CLV_OK;
    clv__text line = {0};
    clv__text_add(&line, "fill");
    add_range(&line, to, offset, bytes);
    clv__text_add(&line, " 0x%08x", (unsigned)pattern);
    note(device, clv__text_get(&line));
    clv__text_reset(&line);
    return CLV_OK;
}

// ---- Kernels ----------------------------------------------------------------------------------------------

static clv_status program_build(clv__bdevice *device, const char *source, const char *options,
                                clv__error *error, clv__bprogram **out) {
    (void)source, (void)options;
    *out = clv__alloc(1, sizeof **out);
    if (!*out) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a program");
    (*out)->device = device;
    return CLV_OK;
}

static void program_destroy(clv__bprogram *program) {
    free(program);
}

/** The length of a kernel's name without the `_<16 hexadecimal digits>` of its instance. */
static int plain_name(const char *name) {
    size_t n = strlen(name);
    if (n <= 17 || name[n - 17] != '_') return (int)n;
    for (size_t i = n - 16; i < n; i++) {
        if (!isxdigit((unsigned char)name[i])) return (int)n;
    }
    return (int)n - 17;
}

static void add_sizes(clv__text *line, const size_t *sizes, int dims) {
    for (int d = 0; d < dims; d++) clv__text_add(line, "%s%zu", d ? "," : "[", sizes[d]);
    clv__text_add(line, "]");
}

static clv_status check_grid(const clv_device_info *model, const char *name, const clv__grid *grid,
                             size_t local_bytes, clv__error *error) {
    size_t given = 1;
    for (int d = 0; d < grid->dims; d++) {
        given *= grid->local[d] ? grid->local[d] : 1;
        if (grid->local[d] && grid->global[d] % grid->local[d] != 0)
            CLV_FAIL(error, CLV_E_INTERNAL,
                     "kernel '%s': %zu work-items do not fall into groups of %zu (dimension %d)", name,
                     grid->global[d], grid->local[d], d);
    }
    if (given > model->max_work_group)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "kernel '%s' wants groups of %zu work-items, '%s' allows it %u",
                 name, given, model->label, (unsigned)model->max_work_group);
    if (local_bytes > model->local_bytes)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "kernel '%s' wants %zu bytes of local memory, '%s' has %zu", name,
                 local_bytes, model->label, (size_t)model->local_bytes);
    return CLV_OK;
}

static clv_status kernel_create(clv__bprogram *program, const char *name, const clv__barg *args, int n_args,
                                const clv__grid *grid, clv__error *error, clv__bkernel **out) {
    *out = NULL;
    clv__bdevice *device = program->device;
    size_t local_bytes = 0;
    for (int i = 0; i < n_args; i++) local_bytes += args[i].kind == CLV__BARG_LOCAL ? args[i].bytes : 0;
    CLV_TRY(check_grid(device->model, name, grid, local_bytes, error));
    clv__bkernel *kernel = clv__alloc(1, sizeof *kernel);
    if (!kernel) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a kernel");
    kernel->device = device;
    for (int d = 0; d < grid->dims; d++) kernel->empty |= grid->global[d] == 0;
    clv__text_add(&kernel->line, "launch %.*s ", plain_name(name), name);
    add_sizes(&kernel->line, grid->global, grid->dims);
    if (grid->local[0]) {
        clv__text_add(&kernel->line, "/");
        add_sizes(&kernel->line, grid->local, grid->dims);
    }
    for (int i = 0; i < n_args; i++) {
        switch (args[i].kind) {
        case CLV__BARG_BUFFER:
            if (args[i].buffer)
                add_range(&kernel->line, args[i].buffer, 0, args[i].buffer->bytes);
            else
                clv__text_add(&kernel->line, " null");
            break;
        case CLV__BARG_I32: clv__text_add(&kernel->line, " i32:%d", (int)args[i].i32); break;
        case CLV__BARG_F32: clv__text_add(&kernel->line, " f32:%.9g", (double)args[i].f32); break;
        case CLV__BARG_LOCAL: clv__text_add(&kernel->line, " local:%zu", args[i].bytes); break;
        }
    }
    if (kernel->line.failed) {
        clv__text_reset(&kernel->line);
        free(kernel);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a kernel");
    }
    *out = kernel;
    return CLV_OK;
}

static void kernel_destroy(clv__bkernel *kernel) {
    if (!kernel) return;
    clv__text_reset(&kernel->line);
    free(kernel);
}

static clv_status launch(clv__bdevice *device, clv__bkernel *kernel, clv__bevent **event, clv__error *error) {
    if (event) *event = NULL;
    if (!kernel->empty) note(device, clv__text_get(&kernel->line));
    return give_event(device, CLV__QUEUE_COMPUTE, event, error);
}

// ---- Order ------------------------------------------------------------------------------------------------

static clv_status wait_on_queue(clv__bdevice *device, clv__queue queue, clv__bevent *event,
                                clv__error *error) {
    char line[64];
    snprintf(line, sizeof line, "wait %s for %s", queue_names[queue], queue_names[event->queue]);
    note(device, line);
    return give_event(device, queue, NULL, error);
}

static clv_status record(clv__bdevice *device, clv__queue queue, clv__bevent **event, clv__error *error) {
    *event = NULL;
    char line[64];
    snprintf(line, sizeof line, "record %s", queue_names[queue]);
    note(device, line);
    return give_event(device, queue, event, error);
}

static clv_status event_wait(clv__bevent *event, clv__error *error) {
    (void)error;
    clv__bdevice *device = event->device;
    pthread_mutex_lock(&device->lock);
    bool blocks = device->driven && pthread_equal(device->driver, pthread_self());
    pthread_mutex_unlock(&device->lock);
    if (blocks) note(device, "blocks");
    return CLV_OK;
}

static clv_status keep_times(clv__bdevice *device, clv__error *error) {
    (void)error;
    note(device, "keep times");
    return CLV_OK;
}

static clv_status elapsed(clv__bevent *event, uint64_t *start_ns, uint64_t *end_ns, clv__error *error) {
    (void)event, (void)error;
    *start_ns = *end_ns = 0;
    return CLV_OK;
}

static void event_destroy(clv__bevent *event) {
    free(event);
}

static clv_status flush(clv__bdevice *device, clv__error *error) {
    (void)device, (void)error;
    return CLV_OK;
}

static clv_status synchronize(clv__bdevice *device, clv__error *error) {
    (void)error;
    note(device, "synchronize"); // one inside a step is a bug, so a trace shows it
    return CLV_OK;
}

const clv__backend clv__backend_null = {
    .name = "null",
    .startup = startup,
    .shutdown = shutdown,
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .buffer_create = buffer_create,
    .buffer_part = buffer_part,
    .buffer_destroy = buffer_destroy,
    .write = write_buffer,
    .read = read_buffer,
    .copy = copy_buffer,
    .fill = fill_buffer,
    .program_build = program_build,
    .program_destroy = program_destroy,
    .kernel_create = kernel_create,
    .kernel_destroy = kernel_destroy,
    .launch = launch,
    .wait_on_queue = wait_on_queue,
    .record = record,
    .event_wait = event_wait,
    .keep_times = keep_times,
    .elapsed = elapsed,
    .event_destroy = event_destroy,
    .flush = flush,
    .synchronize = synchronize,
};
