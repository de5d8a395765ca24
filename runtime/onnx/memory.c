// SPDX-License-Identifier: Apache-2.0
// What a model holds: memory, bounded by the size of its file, and mappings of that file and of those
// beside it. No path and no link leads out of the model's folder.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/text.h"
#include "io/file.h"
#include "io/shown.h"
#include "onnx/reader.h"

clv_status clv__onnx_no_memory(clv__onnx_reader *r) {
    r->status = CLV_E_HOST_MEMORY;
    CLV_FAIL(r->error, CLV_E_HOST_MEMORY, "no host memory to decode it");
}

size_t clv__onnx_limit(const clv__onnx_reader *r) {
    size_t limit;
    return clv__size_mul(r->n, CLV__ONNX_FACTOR, &limit) && clv__size_add(limit, CLV__ONNX_MORE_BYTES, &limit)
               ? limit
               : SIZE_MAX;
}

clv_status clv__onnx_too_much(clv__onnx_reader *r) {
    r->status = CLV_E_FORMAT;
    CLV_FAIL(r->error, CLV_E_FORMAT, "decoded it takes more than %s: its functions are called too often",
             clv__bytes_text(clv__onnx_limit(r)).text);
}

void *clv__onnx_take(clv__onnx_reader *r, size_t count, size_t size) {
    size_t bytes, held;
    if (!clv__size_mul(count, size, &bytes) || bytes > SIZE_MAX / 2 ||
        !clv__size_add(r->model->held_bytes, clv__size_align(bytes + !bytes, _Alignof(max_align_t)), &held) ||
        held > clv__onnx_limit(r)) {
        clv__onnx_too_much(r);
        return NULL;
    }
    void *memory = clv__arena_alloc(&r->model->memory->arena, count, size);
    if (memory)
        r->model->held_bytes = held;
    else
        clv__onnx_no_memory(r);
    return memory;
}

// ---- files -----------------------------------------------------------------------------------------------

clv_status clv__onnx_bad_tensor(clv__onnx_reader *r, const clv__onnx_tensor *t, const char *why) {
    clv__shown_text shown;
    CLV_FAIL(r->error, CLV_E_FORMAT, "tensor '%s' %s", clv__shown_bytes(t->name.data, t->name.n, &shown),
             why);
}

/** The real path of the model's folder. */
static clv_status find_folder(clv__onnx_reader *r) {
    if (r->folder) return CLV_OK;
    const char *path = r->model->path, *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!folder) return clv__onnx_no_memory(r);
    r->folder = realpath(folder, NULL);
    const int code = errno;
    free(folder);
    if (r->folder) return CLV_OK;
    clv__shown_text reason;
    CLV_FAIL(r->error, CLV_E_IO, "cannot read the model's folder: %s", clv__system_reason(code, &reason));
}

/** Is the real path in the folder, or in one below? */
static bool lies_in(const char *path, const char *folder) {
    size_t n = strlen(folder);
    while (n > 0 && folder[n - 1] == '/') n--; // the root alone ends so
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/** Is one of the path's parts `..`, or does it begin at the root? */
static bool leaves(const char *path) {
    if (*path == '/') return true;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (at[0] == '.' && at[1] == '.' && (at[2] == 0 || at[2] == '/')) return true;
    }
    return false;
}

/** Its real path, in the model's folder; to be freed. */
static clv_status find_file(clv__onnx_reader *r, const clv__onnx_tensor *t, clv__onnx_text location,
                            char **out) {
    *out = NULL;
    if (!r->has_folder)
        return clv__onnx_bad_tensor(r, t,
                                    "has its data in another file, and these are bytes without a folder");
    if (location.n == 0 || location.n >= PATH_MAX || memchr(location.data, 0, location.n))
        return clv__onnx_bad_tensor(r, t,
                                    "has its data in another file, which has no name that a file can have");
    char name[PATH_MAX];
    memcpy(name, location.data, location.n);
    name[location.n] = 0;
    if (leaves(name))
        return clv__onnx_bad_tensor(
            r, t, "has its data in a file outside the model's folder, and such a file is not read");
    CLV_TRY(find_folder(r));
    char *joined = malloc(strlen(r->folder) + location.n + 2);
    if (!joined) return clv__onnx_no_memory(r);
    strcat(strcat(strcpy(joined, r->folder), "/"), name);
    *out = realpath(joined, NULL);
    clv_status status = CLV_OK;
    if (!*out) {
        clv__shown_text reason;
        status = clv__error_set(r->error, CLV_E_IO, "cannot read '%s': %s", joined,
                                clv__system_reason(errno, &reason));
    } else if (!lies_in(*out, r->folder)) {
        status = clv__onnx_bad_tensor(
            r, t,
            "has its data in a file that is a link out of the model's folder, and such a file is not "
            "read; copy the file into the folder");
        free(*out);
        *out = NULL;
    }
    free(joined);
    return status;
}

clv_status clv__onnx_map(clv__error *error, const char *path, clv__onnx_mapping *mapping) {
    clv__input input;
    CLV_TRY(clv__input_open(error, path, &input));
    const clv_status status = clv__input_map(&input, &mapping->bytes);
    if (status == CLV_OK) mapping->n = (size_t)input.bytes;
    clv__input_close(&input);
    return status;
}

clv_status clv__onnx_map_beside(clv__onnx_reader *r, const clv__onnx_tensor *t, clv__onnx_text location,
                                const clv__onnx_mapping **out) {
    struct clv__onnx_memory *memory = r->model->memory;
    for (size_t i = memory->n_beside; i-- > 0;) {
        *out = &memory->beside[i];
        if (clv__onnx_text_equal((*out)->location, location)) return CLV_OK;
    }
    if (!clv__grow(&memory->beside, &memory->beside_room, memory->n_beside + 1, sizeof *memory->beside))
        return clv__onnx_no_memory(r);
    clv__onnx_mapping *mapping = &memory->beside[memory->n_beside];
    *mapping = (clv__onnx_mapping){.location = location};
    char *path;
    clv_status status = find_file(r, t, location, &path);
    if (status == CLV_OK) status = clv__onnx_map(r->error, path, mapping);
    free(path);
    if (status == CLV_E_IO) {
        clv__shown_text shown;
        clv__error_prefix(r->error,
                          "data of tensor '%s': ", clv__shown_bytes(t->name.data, t->name.n, &shown));
    }
    memory->n_beside += status == CLV_OK;
    *out = mapping;
    return status;
}

static void unmap(clv__onnx_mapping *mapping) {
    if (mapping->n) munmap((void *)(uintptr_t)mapping->bytes, mapping->n);
}

void clv__onnx_close(clv__onnx_model *model) {
    if (!model) return;
    struct clv__onnx_memory *memory = model->memory;
    if (memory) {
        for (size_t i = 0; i < memory->n_beside; i++) unmap(&memory->beside[i]);
        unmap(&memory->file);
        free(memory->beside);
        clv__arena_reset(&memory->arena);
    }
    free(memory);
    free(model);
}
