// SPDX-License-Identifier: Apache-2.0
// The helper's side of compiling ahead (ahead.h): builds the same programs from the same text, which the driver has in its cache
// by now, and launches one group of each kernel, over memory as large as the tensors that nobody has touched: zeros, of which
// only what that group reads and writes is ever there.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/ahead.h"

enum {
    MOST_LETTERS = 65536, // of a welcome that is believed
    MOST_TEXT = 1 << 16,  // the same
    LARGE_GRID =
        65535, // groups: PoCL compiles a kernel apart for as many, and this process launches only one
    PAGE = 4096,
};

static bool receive(int socket, void *data, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(socket, (char *)data + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

/** Does who wants help still live? */
static bool is_wanted(int socket) {
    struct pollfd look = {.fd = socket, .events = POLLIN};
    return poll(&look, 1, 0) == 0; // what can be read now is the end
}

static char *receive_text(int socket, size_t bytes) {
    if (bytes == 0 || bytes > MOST_TEXT) return NULL;
    char *text = clv__alloc(bytes, 1);
    if (text && receive(socket, text, bytes) && text[bytes - 1] == 0) return text;
    free(text);
    return NULL;
}

// ---- one kernel ---------------------------------------------------------------------------------------------------------

/** The memory behind a launch's arguments. */
typedef struct stage {
    void *pointer[CLV__MAX_ARGS];
    size_t bytes[CLV__MAX_ARGS];
    clv__barg args[CLV__MAX_ARGS];
} stage;

static clv_status set_buffer(clv_device *device, stage *s, int i, size_t bytes) {
    s->args[i] = (clv__barg){.kind = CLV__BARG_BUFFER};
    if (bytes == 0) return CLV_OK;
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    void *pointer =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pointer == MAP_FAILED) return CLV_E_HOST_MEMORY;
    s->pointer[i] = pointer;
    s->bytes[i] = bytes;
    return device->backend->buffer_over(device->open, pointer, bytes, &device->runtime->error,
                                        &s->args[i].buffer);
}

static clv_status set_stage(clv_device *device, const clv__launch *launch, stage *s) {
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        switch (slot->kind) {
        case CLV__SLOT_I32: s->args[i] = (clv__barg){.kind = CLV__BARG_I32, .i32 = slot->i32}; break;
        case CLV__SLOT_F32: s->args[i] = (clv__barg){.kind = CLV__BARG_F32, .f32 = slot->f32}; break;
        case CLV__SLOT_LOCAL: s->args[i] = (clv__barg){.kind = CLV__BARG_LOCAL, .bytes = slot->bytes}; break;
        default: CLV_TRY(set_buffer(device, s, i, slot->bytes));
        }
    }
    return CLV_OK;
}

static void clear_stage(const clv_device *device, stage *s) {
    for (int i = 0; i < CLV__MAX_ARGS; i++) {
        if (s->args[i].kind == CLV__BARG_BUFFER) device->backend->buffer_destroy(s->args[i].buffer);
        if (s->pointer[i]) munmap(s->pointer[i], s->bytes[i]);
    }
}

/** One group of a grid; false if there is none, if the driver chooses its size, or if the whole is compiled in another way. */
static bool one_group(const clv__grid *whole, clv__grid *one) {
    *one = *whole;
    for (int i = 0; i < whole->dims; i++) {
        if (whole->local[i] == 0 || whole->global[i] == 0) return false;
        if (whole->global[i] / whole->local[i] >= LARGE_GRID) return false;
        one->global[i] = whole->local[i];
    }
    return true;
}

static clv_status compile(clv_device *device, const clv__launch *launch) {
    const clv__backend *backend = device->backend;
    clv__error *error = &device->runtime->error;
    clv__grid grid;
    clv__kernel_ref kernel;
    clv__bkernel *command = NULL;
    if (!one_group(&launch->grid, &grid)) return CLV_OK;
    CLV_TRY(clv__programs_find(device, launch, &kernel));
    stage *s = clv__alloc(1, sizeof *s);
    if (!s) return CLV_E_HOST_MEMORY;
    clv_status status = set_stage(device, launch, s);
    if (status == CLV_OK)
        status = backend->kernel_create(kernel.program, kernel.name, s->args, launch->n_slots, &grid, error,
                                        &command);
    if (status == CLV_OK) status = backend->launch(device->open, command, NULL, error);
    if (status == CLV_OK) status = backend->synchronize(device->open, error);
    backend->kernel_destroy(command);
    clear_stage(device, s);
    free(s);
    return status;
}

// ---- all of them --------------------------------------------------------------------------------------------------------

static clv_status build(clv_device *device, const clv__letter *letters, size_t n) {
    const clv__launch **launches = clv__alloc(n, sizeof *launches);
    if (!launches) return CLV_E_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) launches[i] = &letters[i].launch;
    clv_status status = clv__programs_build(device, launches, n);
    free(launches);
    return status;
}

/** From the last of those that are wanted first to the first, then the others; each helper takes its own before those of all. */
static void compile_all(clv_device *device, const clv__welcome *w, const clv__letter *letters, int socket) {
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < w->n; i++) {
            if (w->n_helpers && (i % (size_t)w->n_helpers == (size_t)w->number) != (round == 0)) continue;
            if (!is_wanted(socket)) return;
            size_t at = i < w->n_first ? w->n_first - 1 - i : i;
            clv_status status = compile(device, &letters[at].launch);
            (void)status; // who asked will meet the same failure, and tell it
        }
    }
}

static clv_status work(clv_device *device, const clv__welcome *w, int socket) {
    CLV_TRY(clv__device_open(device));
    clv__letter *letters = clv__alloc(w->n, sizeof *letters);
    if (!letters) return CLV_E_HOST_MEMORY;
    clv_status status = CLV_OK;
    if (receive(socket, letters, w->n * sizeof *letters)) {
        for (size_t i = 0; i < w->n; i++) {
            letters[i].source[sizeof letters[i].source - 1] = letters[i].entry[sizeof letters[i].entry - 1] =
                0;
            letters[i].launch.source = letters[i].source;
            letters[i].launch.entry = letters[i].entry;
        }
        status = build(device, letters, w->n);
        if (status == CLV_OK) compile_all(device, w, letters, socket);
    } // else it was not wanted after all
    free(letters);
    return status;
}

clv_status clv_compile_helper(int socket) {
    clv__welcome w;
    if (!receive(socket, &w, sizeof w)) return CLV_E_IO;
    if (memcmp(w.magic, clv__welcome_magic, sizeof w.magic) != 0 || strcmp(w.version, CLEAVE_VERSION) != 0 ||
        w.letter_bytes != sizeof(clv__letter) || w.n > MOST_LETTERS || w.n_first > w.n)
        return CLV_E_VALUE;
    w.device[sizeof w.device - 1] = 0;
    char *visible = receive_text(socket, w.visible_bytes),
         *partition = receive_text(socket, w.partition_bytes);
    clv_runtime *runtime = NULL;
    clv_status status = CLV_E_IO;
    if (visible && partition) {
        clv_runtime_config config = {
            .visible_devices = visible, .partition = partition, .compile_helper = ""};
        status = clv_runtime_create(&config, &runtime);
    }
    clv_device *device = NULL;
    if (status == CLV_OK) status = clv_device_find(runtime, w.device, &device);
    if (status == CLV_OK && !(device->traits.compiles_at_launch && device->traits.host_memory))
        status = CLV_E_UNSUPPORTED;
    if (status == CLV_OK) status = work(device, &w, socket);
    clv_runtime_destroy(runtime);
    free(visible);
    free(partition);
    return status;
}
