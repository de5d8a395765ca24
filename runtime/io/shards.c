// SPDX-License-Identifier: Apache-2.0
// Weights in several safetensors files, and the index that says which tensor is in which of them, as Hugging Face writes it:
// {"metadata": {...}, "weight_map": {"tensor": "model-00001-of-00002.safetensors", ...}}. The files lie beside the index. Each tensor
// of the index must be in its file, and nothing else in any of them.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats.h"
#include "io/shown.h"

enum { MOST_BYTES = 64 << 20, MOST_FILES = 4096 };
static const char ending[] = ".index.json";

bool clv__shards_is(const char *path) {
    const size_t n = strlen(path), tail = sizeof ending - 1;
    return n >= tail && !strcmp(path + n - tail, ending);
}

typedef struct index {
    clv__error *error;
    const char *path;
    json_t *root, *map;
    const char **files; // each once, in the order in which they are named first; borrowed
    size_t n_files, room;
} index_of;

#define BAD(...) CLV_FAIL(index->error, CLV_E_FORMAT, __VA_ARGS__)

static clv_status read_json(index_of *index) {
    clv__input input;
    json_error_t why;
    CLV_TRY(clv__input_open(index->error, index->path, &input));
    char *text = input.bytes <= MOST_BYTES ? clv__alloc((size_t)input.bytes + 1, 1) : NULL;
    clv_status status = CLV_OK;
    if (input.bytes > MOST_BYTES)
        status =
            clv__error_set(index->error, CLV_E_FORMAT,
                           "'%s' is no index of weights: it has more than %d bytes", index->path, MOST_BYTES);
    else if (!text)
        status = clv__error_set(index->error, CLV_E_HOST_MEMORY, "'%s': no host memory", index->path);
    if (status == CLV_OK) status = clv__input_read(&input, 0, text, (size_t)input.bytes);
    if (status == CLV_OK) {
        index->root = json_loadb(text, (size_t)input.bytes, JSON_REJECT_DUPLICATES, &why);
        clv__shown_text shown;
        if (!index->root)
            status = clv__error_set(index->error, CLV_E_FORMAT, "'%s' is no index of weights: %s",
                                    index->path, clv__shown(why.text, &shown));
    }
    free(text);
    clv__input_close(&input);
    return status;
}

/** Is it the name of a file beside the index? */
static bool is_beside(const char *file) {
    static const char tail[] = ".safetensors";
    const size_t n = file ? strlen(file) : 0, m = sizeof tail - 1;
    return n > m && n < 256 && !strchr(file, '/') && !strchr(file, '\\') && *file != '.' &&
           !strcmp(file + n - m, tail);
}

static clv_status read_map(index_of *index) {
    const char *name;
    json_t *value;
    clv__shown_text a, b;
    index->map = json_object_get(index->root, "weight_map");
    if (!json_object_size(index->map))
        BAD("'%s' is no index of weights: it has no weight_map that names tensors", index->path);
    json_object_foreach(index->map, name, value) {
        const char *file = json_string_value(value);
        size_t i = 0;
        if (!is_beside(file))
            BAD("'%s': tensor '%s' is in '%s', which is no name of a .safetensors file beside it",
                index->path, clv__shown(name, &a), clv__shown(file ? file : "", &b));
        while (i < index->n_files && strcmp(index->files[i], file) != 0) i++;
        if (i < index->n_files) continue;
        if (i == MOST_FILES) BAD("'%s' names more than %d files", index->path, MOST_FILES);
        if (!clv__grow(&index->files, &index->room, i + 1, sizeof *index->files))
            CLV_FAIL(index->error, CLV_E_HOST_MEMORY, "'%s': no host memory", index->path);
        index->files[index->n_files++] = file;
    }
    return CLV_OK;
}

/** Move a file's arrays to the others. */
static clv_status take_arrays(index_of *index, const char *file, clv_archive *from, clv_archive *to) {
    clv__shown_text shown;
    for (size_t i = 0; i < from->n_arrays; i++) {
        const char *name = from->arrays[i]->name;
        json_t *told = json_object_get(index->map, name);
        if (!told) BAD("'%s' does not name tensor '%s' of '%s'", index->path, clv__shown(name, &shown), file);
        if (strcmp(json_string_value(told), file) != 0)
            BAD("'%s': tensor '%s' is in '%s' and not in '%s'", index->path, clv__shown(name, &shown), file,
                json_string_value(told));
        CLV_TRY(clv__archive_take(to, from->arrays[i]));
        if (from->n_stored && !clv__archive_store(to, from->stored[i]))
            CLV_FAIL(index->error, CLV_E_HOST_MEMORY, "'%s': no host memory", index->path);
    }
    return CLV_OK;
}

/** And the memory that they lie in. */
static clv_status take_mappings(index_of *index, clv_archive *from, clv_archive *to) {
    if (!clv__grow(&to->mappings, &to->mappings_room, to->n_mappings + from->n_mappings,
                   sizeof *to->mappings))
        CLV_FAIL(index->error, CLV_E_HOST_MEMORY, "'%s': no host memory", index->path);
    while (from->n_mappings) to->mappings[to->n_mappings++] = from->mappings[--from->n_mappings];
    return CLV_OK;
}

static clv_status read_files(clv_runtime *runtime, index_of *index, clv__archive_part which,
                             clv_archive *out) {
    const char *slash = strrchr(index->path, '/');
    const int folder = slash ? (int)(slash - index->path) + 1 : 0;
    for (size_t i = 0; i < index->n_files; i++) {
        char path[4096];
        clv_archive *part = NULL;
        snprintf(path, sizeof path, "%.*s%s", folder, index->path, index->files[i]);
        clv_status status = clv__safetensors_read_part(runtime, path, which, &part);
        if (status != CLV_OK) return clv__error_prefix(index->error, "'%s': ", index->path);
        status = take_mappings(index, part, out);
        if (status == CLV_OK) status = take_arrays(index, index->files[i], part, out);
        clv_archive_destroy(part);
        CLV_TRY(status);
    }
    return CLV_OK;
}

/** With as many arrays as the index names, and each of them named, none is missing. */
static clv_status check_all(const index_of *index, const clv_archive *archive) {
    const char *name;
    json_t *file;
    clv__shown_text shown;
    if (archive->n_arrays == json_object_size(index->map)) return CLV_OK;
    json_object_foreach(index->map, name, file) {
        if (!clv_archive_find(archive, name))
            BAD("'%s': tensor '%s' is not in '%s'", index->path, clv__shown(name, &shown),
                json_string_value(file));
    }
    return CLV_OK;
}

clv_status clv__shards_read(clv_runtime *runtime, const char *path, clv__archive_part part,
                            clv_archive **out) {
    index_of index = {.error = clv__io_error(runtime), .path = path};
    clv_archive *archive = NULL;
    clv_status status = read_json(&index);
    if (status == CLV_OK) status = read_map(&index);
    if (status == CLV_OK) status = clv__archive_create(index.error, path, &archive);
    if (status == CLV_OK && part != CLV__TEXTS_ALONE) status = read_files(runtime, &index, part, archive);
    if (status == CLV_OK && part != CLV__TEXTS_ALONE) status = check_all(&index, archive);
    json_decref(index.root);
    free(index.files);
    if (status == CLV_OK) {
        *out = archive;
    } else {
        clv_archive_destroy(archive);
    }
    return status;
}
