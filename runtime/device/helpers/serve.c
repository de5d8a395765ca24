// SPDX-License-Identifier: Apache-2.0
// The helper's side: clv_compile_helper, called in the helper process. One that compiles ahead builds the
// same programs from the same text, which the driver has in its cache by now, and launches one group of each
// kernel. The buffers of these launches are as large as the tensors, and untouched: they hold zeros, and only
// the pages that the group reads or writes exist. One that builds first builds what it is sent until it dies
// or the socket is shut.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/helpers/internal.h"
#include "device/select.h"

enum {
    // A handshake or request with more is refused.
    MOST_LAUNCHES = 65536,
    MOST_TEXT = 1 << 16,
    MOST_SOURCE = 1 << 28,
    PAGE = 4096,
};

/** Is the other end of the socket still open? */
static bool is_wanted(int socket) {
    struct pollfd look = {.fd = socket, .events = POLLIN};
    return poll(&look, 1, 0) == 0; // all was read: what comes now is the end
}

static char *receive_text(int socket, size_t bytes) {
    if (bytes == 0 || bytes > MOST_TEXT) return NULL;
    char *text = clv__alloc(bytes, 1);
    if (text && clv__helper_receive(socket, text, bytes, 0) && text[bytes - 1] == 0) return text;
    free(text);
    return NULL;
}

// ---- one kernel -------------------------------------------------------------------------------------------

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

/** One group of a grid; false if there is none, if the driver chooses its size, or if the whole is compiled
 *  in another way. */
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

// ---- compiling ahead --------------------------------------------------------------------------------------

static clv_status build_programs(clv_device *device, const clv__sent_launch *sent, size_t n) {
    const clv__launch **launches = clv__alloc(n, sizeof *launches);
    if (!launches) return CLV_E_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) launches[i] = &sent[i].launch;
    clv_status status = clv__programs_build(device, launches, n);
    free(launches);
    return status;
}

/** The first n_first from the last to the first, then the others. Each helper compiles its own share, then
 *  what is left of all. */
static void compile_all(clv_device *device, const clv__handshake *w, const clv__sent_launch *sent,
                        int socket) {
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < w->n; i++) {
            if ((i % (size_t)w->n_helpers == (size_t)w->number) != (round == 0)) continue;
            if (!is_wanted(socket)) return;
            size_t at = i < w->n_first ? w->n_first - 1 - i : i;
            clv_status status = compile(device, &sent[at].launch);
            (void)status; // the asking process meets the same failure, and reports it
        }
    }
}

/** Receive the launches and make them usable here; false if that cannot be. */
static bool receive_launches(clv__sent_launch *sent, size_t n, int socket) {
    if (!clv__helper_receive(socket, sent, n * sizeof *sent, 0)) return false; // help is not needed after all
    for (size_t i = 0; i < n; i++) {
        clv__sent_launch *one = &sent[i];
        clv__launch *launch = &one->launch;
        if (launch->n_slots < 0 || launch->n_slots > CLV__MAX_ARGS || launch->grid.dims < 1 ||
            launch->grid.dims > 3)
            return false;
        one->source[sizeof one->source - 1] = one->entry[sizeof one->entry - 1] = 0;
        launch->defines[sizeof launch->defines - 1] = 0;
        launch->source = one->source;
        launch->entry = one->entry;
    }
    return true;
}

static clv_status compile_ahead(clv_device *device, const clv__handshake *w, int socket) {
    CLV_TRY(clv__device_open(device));
    clv__sent_launch *sent = clv__alloc(w->n, sizeof *sent);
    if (!sent) return CLV_E_HOST_MEMORY;
    clv_status status = CLV_OK;
    if (receive_launches(sent, w->n, socket)) {
        status = build_programs(device, sent, w->n);
        if (status == CLV_OK) compile_all(device, w, sent, socket);
    }
    free(sent);
    return status;
}

// ---- building first ---------------------------------------------------------------------------------------

/** Build a program and send how it went; false: the other end is shut. */
static bool serve_one(clv_device *device, const clv__build_request *wanted, const char *source, int socket) {
    const clv__backend *backend = device->backend;
    clv__error error;
    clv__bprogram *program = NULL;
    void *binary = NULL;
    size_t bytes = 0;
    clv__error_init(&error);
    clv_status status =
        backend->program_build(device->open, source, clv__program_options(source), &error, &program);
    // Asked for even if nobody wants it: some compile no earlier than this.
    if (status == CLV_OK && backend->program_binary &&
        backend->program_binary(program, &binary, &bytes, &error) != CLV_OK)
        binary = NULL;
    const bool sends = binary && wanted->want_binary;
    const char *text = status == CLV_OK ? "" : error.text;
    const clv__build_reply how = {status, strlen(text), sends ? bytes : 0};
    bool sent = clv__helper_send(socket, &how, sizeof how) &&
                clv__helper_send(socket, text, how.text_bytes) &&
                (!sends || clv__helper_send(socket, binary, bytes));
    backend->program_destroy(program);
    free(binary);
    clv__error_destroy(&error);
    return sent;
}

static clv_status build_all(clv_device *device, int socket) {
    clv_runtime *runtime = device->runtime;
    if (device->traits.compiler == CLV__NO_COMPILER) return CLV_E_UNSUPPORTED;
    // Not clv__device_open: that builds a program of its own (f16.c), which is asked for like any other.
    CLV_TRY(device->backend->open(clv__backend_state(runtime, device->backend), device->handle,
                                  &runtime->error, &device->open));
    const clv__build_reply ready = {.status = CLV_OK};
    bool wanted = clv__helper_send(socket, &ready, sizeof ready);
    clv__build_request next;
    while (wanted && clv__helper_receive(socket, &next, sizeof next, 0)) {
        char *source =
            next.source_bytes && next.source_bytes <= MOST_SOURCE ? malloc(next.source_bytes) : NULL;
        wanted = source && clv__helper_receive(socket, source, next.source_bytes, 0) &&
                 source[next.source_bytes - 1] == 0 && serve_one(device, &next, source, socket);
        free(source);
    }
    return CLV_OK;
}

// ---- the handshake ----------------------------------------------------------------------------------------

static bool is_valid(const clv__handshake *w) {
    return !memcmp(w->magic, clv__handshake_magic, sizeof w->magic) &&
           !strncmp(w->version, CLEAVE_VERSION, sizeof w->version) &&
           (w->kind == CLV__HELP_AHEAD || w->kind == CLV__HELP_ISOLATED) &&
           w->launch_bytes == sizeof(clv__sent_launch) && w->n <= MOST_LAUNCHES && w->n_first <= w->n &&
           w->n_helpers > 0 && w->number >= 0 && w->number < w->n_helpers &&
           w->device[sizeof w->device - 1] == 0;
}

clv_status clv_compile_helper(int socket) {
    clv__handshake w;
    if (!clv__helper_receive(socket, &w, sizeof w, 0)) return CLV_E_IO;
    if (!is_valid(&w)) return CLV_E_VALUE;
    char *texts[CLV__HANDSHAKE_TEXTS] = {0};
    clv_status status = CLV_OK;
    for (int i = 0; i < CLV__HANDSHAKE_TEXTS && status == CLV_OK; i++) {
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
    if (status == CLV_OK && w.kind == CLV__HELP_ISOLATED)
        status = build_all(device, socket);
    else if (status == CLV_OK)
        status = device->traits.compiles_at_launch ? compile_ahead(device, &w, socket) : CLV_E_UNSUPPORTED;
    clv_runtime_destroy(runtime);
    for (int i = 0; i < CLV__HANDSHAKE_TEXTS; i++) free(texts[i]);
    return status;
}
