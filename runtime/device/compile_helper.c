// SPDX-License-Identifier: Apache-2.0
// What a helper does (helper.h). How it tries programs is in trial.c. To compile ahead (ahead.h) it builds the same programs from the
// same text, which the driver has in its cache by now, and launches one group of each kernel, over memory as large as the tensors
// that nobody has touched: zeros, of which only what that group reads and writes is ever there.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/ahead.h"
#include "device/trial.h"

enum {
    MOST_LETTERS = 65536, // of a welcome that is believed
    MOST_TEXT = 1 << 16,  // the same
    LARGE_GRID =
        65535, // groups: PoCL compiles a kernel apart for as many, and this process launches only one
    PAGE = 4096,
};

/** Does who wants help still live? */
static bool is_wanted(int socket) {
    struct pollfd look = {.fd = socket, .events = POLLIN};
    return poll(&look, 1, 0) == 0; // what can be read now is the end
}

static char *receive_text(int socket, size_t bytes) {
    if (bytes == 0 || bytes > MOST_TEXT) return NULL;
    char *text = clv__alloc(bytes, 1);
    if (text && clv__helper_receive(socket, text, bytes, 0) && text[bytes - 1] == 0) return text;
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
    return device->backend->buffer_over(device->open, NULL, pointer, bytes, &device->runtime->error,
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

/** still_runs: what is mapped goes with this process. */
static void clear_stage(const clv_device *device, stage *s, bool still_runs) {
    for (int i = 0; i < CLV__MAX_ARGS; i++) {
        if (s->args[i].kind == CLV__BARG_BUFFER) device->backend->buffer_destroy(s->args[i].buffer);
        if (s->pointer[i] && !still_runs) munmap(s->pointer[i], s->bytes[i]);
    }
}

/** One group of a grid; false if there is none, if the driver chooses its size, or if the whole is compiled in another way. */
static bool one_group(const clv__grid *whole, clv__grid *one) {
    *one = *whole;
    if (clv__grid_is_large(whole)) return false;
    for (int i = 0; i < whole->dims; i++) {
        if (whole->local[i] == 0 || whole->global[i] == 0) return false;
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
    if (status == CLV_OK) status = clv__device_settle(device, error);
    backend->kernel_destroy(command);
    clear_stage(device, s, device->lost);
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
            if ((i % (size_t)w->n_helpers == (size_t)w->number) != (round == 0)) continue;
            if (!is_wanted(socket)) return;
            size_t at = i < w->n_first ? w->n_first - 1 - i : i;
            clv_status status = compile(device, &letters[at].launch);
            (void)status; // who asked will meet the same failure, and tell it
        }
    }
}

/** Letters as they can be used here; false if they cannot be. */
static bool read_letters(clv__letter *letters, size_t n, int socket) {
    if (!clv__helper_receive(socket, letters, n * sizeof *letters, 0))
        return false; // it was not wanted after all
    for (size_t i = 0; i < n; i++) {
        clv__letter *letter = &letters[i];
        clv__launch *launch = &letter->launch;
        if (launch->n_slots < 0 || launch->n_slots > CLV__MAX_ARGS || launch->grid.dims < 1 ||
            launch->grid.dims > 3)
            return false;
        letter->source[sizeof letter->source - 1] = letter->entry[sizeof letter->entry - 1] = 0;
        launch->defines[sizeof launch->defines - 1] = 0;
        launch->source = letter->source;
        launch->entry = letter->entry;
    }
    return true;
}

static clv_status work(clv_device *device, const clv__welcome *w, int socket) {
    CLV_TRY(clv__device_open(device));
    clv__letter *letters = clv__alloc(w->n, sizeof *letters);
    if (!letters) return CLV_E_HOST_MEMORY;
    clv_status status = CLV_OK;
    if (read_letters(letters, w->n, socket)) {
        status = build(device, letters, w->n);
        if (status == CLV_OK) compile_all(device, w, letters, socket);
    }
    free(letters);
    return status;
}

static bool is_believed(const clv__welcome *w) {
    return !memcmp(w->magic, clv__welcome_magic, sizeof w->magic) &&
           !strncmp(w->version, CLEAVE_VERSION, sizeof w->version) &&
           (w->kind == CLV__HELP_AHEAD || w->kind == CLV__HELP_TRIAL) &&
           w->letter_bytes == sizeof(clv__letter) && w->n <= MOST_LETTERS && w->n_first <= w->n &&
           w->n_helpers > 0 && w->number >= 0 && w->number < w->n_helpers &&
           w->device[sizeof w->device - 1] == 0;
}

clv_status clv_compile_helper(int socket) {
    clv__welcome w;
    if (!clv__helper_receive(socket, &w, sizeof w, 0)) return CLV_E_IO;
    if (!is_believed(&w)) return CLV_E_VALUE;
    char *texts[CLV__WELCOME_TEXTS] = {0};
    clv_status status = CLV_OK;
    for (int i = 0; i < CLV__WELCOME_TEXTS && status == CLV_OK; i++) {
        texts[i] = receive_text(socket, w.text_bytes[i]);
        if (!texts[i]) status = CLV_E_IO;
    }
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    const clv_runtime_config config = {.visible_devices = texts[0],
                                       .partition = texts[1],
                                       .left_out = texts[2],
                                       .cache_dir = texts[3],
                                       .no_cache = w.no_cache,
                                       .compile_helper = ""};
    if (status == CLV_OK) status = clv_runtime_create(&config, &runtime);
    if (status == CLV_OK) status = clv_device_find(runtime, w.device, &device);
    if (status == CLV_OK && w.kind == CLV__HELP_TRIAL)
        status = clv__trial_serve(device, socket);
    else if (status == CLV_OK)
        status = device->traits.compiles_at_launch ? work(device, &w, socket) : CLV_E_UNSUPPORTED;
    clv_runtime_destroy(runtime);
    for (int i = 0; i < CLV__WELCOME_TEXTS; i++) free(texts[i]);
    return status;
}
