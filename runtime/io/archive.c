// SPDX-License-Identifier: Apache-2.0
// Named arrays and named texts. Archives are small (one entry per parameter of a model), so names are found
// by a walk.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/number.h"
#include "io/array.h"
#include "io/formats.h"
#include "io/shown.h"

clv_status clv__archive_create(clv__error *error, const char *path, clv_archive **out) {
    *out = NULL;
    clv_archive *archive = clv__alloc(1, sizeof *archive);
    if (archive && path) archive->path = clv__strdup(path);
    if (!archive || (path && !archive->path)) {
        free(archive);
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for an archive");
    }
    archive->error = error;
    *out = archive;
    return CLV_OK;
}

clv_status clv_archive_create(clv_runtime *runtime, clv_archive **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    return clv__archive_create(clv__io_error(runtime), NULL, out);
}

void clv_archive_destroy(clv_archive *archive) {
    if (!archive) return;
    for (size_t i = 0; i < archive->n_arrays; i++) {
        clv_array_reset(archive->arrays[i]);
        free(archive->arrays[i]);
    }
    for (size_t i = 0; i < archive->n_texts; i++) {
        free(archive->texts[i].key);
        free(archive->texts[i].text);
    }
    for (size_t i = 0; i < archive->n_mappings; i++)
        munmap((void *)(uintptr_t)archive->mappings[i].bytes, archive->mappings[i].n);
    free(archive->arrays);
    free(archive->texts);
    free(archive->stored);
    free(archive->mappings);
    free(archive->numbers);
    free(archive->halves);
    free(archive->path);
    free(archive);
}

clv_status clv__archive_take(clv_archive *archive, clv_array *array) {
    clv_array *kept = clv__alloc(1, sizeof *kept);
    if (!kept ||
        !clv__grow(&archive->arrays, &archive->arrays_room, archive->n_arrays + 1, sizeof(clv_array *))) {
        free(kept);
        CLV_FAIL(archive->error, CLV_E_HOST_MEMORY, "no host memory for the %zu-th array of an archive",
                 archive->n_arrays + 1);
    }
    *kept = *array;
    *array = (clv_array){0};
    archive->arrays[archive->n_arrays++] = kept;
    return CLV_OK;
}

bool clv__archive_store(clv_archive *archive, clv__element element) {
    if (!clv__grow(&archive->stored, &archive->stored_room, archive->n_arrays, sizeof *archive->stored))
        return false;
    archive->stored[archive->n_arrays - 1] = element;
    archive->n_stored = archive->n_arrays;
    return true;
}

/** By a table of all 65536: several times faster than one by one. */
static bool convert_f16(clv_archive *archive, const uint8_t *from, size_t n, float *to) {
    enum { HALVES = 1 << 16 };
    if (!archive->halves) {
        archive->halves = clv__alloc(HALVES, sizeof(float));
        for (unsigned i = 0; archive->halves && i < HALVES; i++) {
            const uint16_t half = (uint16_t)i;
            clv__element_convert(CLV__ELEMENT_F16, &half, 1, &archive->halves[i]);
        }
    }
    for (size_t i = 0; archive->halves && i < n; i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof half, sizeof half);
        to[i] = archive->halves[half];
    }
    return archive->halves != NULL;
}

clv_status clv__archive_data(clv_archive *archive, const clv_array *array, const void **out) {
    size_t i = 0;
    *out = array->data;
    while (i < archive->n_stored && archive->arrays[i] != array) i++;
    if (i == archive->n_stored || archive->stored[i] == CLV__ELEMENT_SAME) return CLV_OK;
    const size_t n = (size_t)clv_shape_numel(&array->shape);
    if (n > archive->numbers_room) { // no more than the largest takes
        free(archive->numbers);
        archive->numbers = clv__alloc(n, sizeof(float));
        archive->numbers_room = archive->numbers ? n : 0;
    }
    bool good = archive->numbers || !n;
    if (good && archive->stored[i] == CLV__ELEMENT_F16)
        good = convert_f16(archive, array->data, n, archive->numbers);
    else if (good)
        clv__element_convert(archive->stored[i], array->data, n, archive->numbers);
    if (!good)
        CLV_FAIL(archive->error, CLV_E_HOST_MEMORY, "no memory for the %zu numbers of '%s'", n, array->name);
    *out = archive->numbers;
    return CLV_OK;
}

static clv_status check_name(const clv_archive *archive, const char *what, const char *name) {
    clv__shown_text shown;
    if (!*name) CLV_FAIL(archive->error, CLV_E_VALUE, "%s needs a name", what);
    if (!clv__utf8_valid(name)) {
        CLV_FAIL(archive->error, CLV_E_VALUE, "%s '%s': the name is not UTF-8", what,
                 clv__shown(name, &shown));
    }
    return CLV_OK;
}

static clv_status check_new_array(const clv_archive *archive, const char *name) {
    clv__shown_text shown;
    CLV_TRY(check_name(archive, "an array of an archive", name));
    if (strcmp(name, "__metadata__") == 0) {
        CLV_FAIL(archive->error, CLV_E_VALUE,
                 "an array cannot have the name '__metadata__': files keep texts there");
    }
    if (clv_archive_find(archive, name)) {
        CLV_FAIL(archive->error, CLV_E_VALUE, "the archive has an array '%s' already",
                 clv__shown(name, &shown));
    }
    return CLV_OK;
}

/** Give the array its name and put it into the archive; on failure the array is reset. */
static clv_status name_and_take(clv_archive *archive, const char *name, clv_array *array) {
    array->name = clv__strdup(name);
    clv_status status = array->name ? clv__archive_take(archive, array)
                                    : clv__error_set(archive->error, CLV_E_HOST_MEMORY,
                                                     "no host memory for the name of an array");
    if (status != CLV_OK) clv_array_reset(array);
    return status;
}

/** An array over the caller's data: is it one that can be? */
static clv_status borrow(clv__error *error, clv_dtype type, const clv_shape *shape, const void *data,
                         clv_array *out) {
    char text[128];
    size_t bytes;
    if (clv__array_dtype_bytes(type) == 0)
        CLV_FAIL(error, CLV_E_VALUE, "an array needs an element type; this one has '%s'",
                 clv_dtype_name(type));
    if (!clv__shape_bytes(shape, clv__array_dtype_bytes(type), &bytes))
        CLV_FAIL(error, CLV_E_SHAPE,
                 "an array cannot have the shape %s: a dimension is negative or it is too large",
                 clv_shape_text(shape, text, sizeof text));
    *out = (clv_array){.type = type, .shape = *shape, .data = (void *)data, .borrowed = true};
    return CLV_OK;
}

clv_status clv_archive_add(clv_archive *archive, const char *name, clv_dtype type, const clv_shape *shape,
                           const void *data, clv_array **out) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, shape));
    if (out) *out = NULL;
    CLV_TRY(CLV__GIVEN(archive->error, name));
    CLV_TRY(check_new_array(archive, name));
    clv__shown_text shown;
    clv_array array;
    const clv_status status = data ? borrow(archive->error, type, shape, data, &array)
                                   : clv__array_init(archive->error, type, shape, &array);
    if (status != CLV_OK) return clv__error_prefix(archive->error, "'%s': ", clv__shown(name, &shown));
    CLV_TRY(name_and_take(archive, name, &array));
    if (out) *out = archive->arrays[archive->n_arrays - 1];
    return CLV_OK;
}

clv_array *clv_archive_get(const clv_archive *archive, size_t i) {
    return i < archive->n_arrays ? archive->arrays[i] : NULL;
}

clv_array *clv_archive_find(const clv_archive *archive, const char *name) {
    for (size_t i = 0; i < archive->n_arrays; i++) {
        if (strcmp(archive->arrays[i]->name, name) == 0) return archive->arrays[i];
    }
    return NULL;
}

/** How sentences call the archive. */
static const char *archive_name(const clv_archive *archive) {
    return archive->path ? archive->path : "the archive";
}

const char *clv__archive_unread(const clv_archive *archive, const char *name) {
    const size_t n = sizeof CLV__UNREAD - 1;
    for (size_t i = 0; i < archive->n_texts; i++)
        if (!strncmp(archive->texts[i].key, CLV__UNREAD, n) && !strcmp(archive->texts[i].key + n, name))
            return archive->texts[i].text;
    return NULL;
}

clv_status clv__archive_require(const clv_archive *archive, const char *name, clv_dtype type,
                                const clv_shape *shape, const clv_array **out) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, out));
    CLV_TRY(CLV__GIVEN(archive->error, name));
    CLV_TRY(CLV__GIVEN(archive->error, shape));
    *out = NULL;
    clv__shown_text shown;
    char has[128], wanted[128];
    const clv_array *array = clv_archive_find(archive, name);
    const char *unread = array ? NULL : clv__archive_unread(archive, name);
    if (unread) CLV_FAIL(archive->error, CLV_E_UNSUPPORTED, "%s", unread);
    if (!array) {
        clv__shown_text first;
        CLV_FAIL(archive->error, CLV_E_NOT_FOUND,
                 "%s: there is no tensor '%s' among its %zu%s%s%s; is it of another model?",
                 archive_name(archive), clv__shown(name, &shown), archive->n_arrays,
                 archive->n_arrays ? " (the first is '" : "",
                 archive->n_arrays ? clv__shown(archive->arrays[0]->name, &first) : "",
                 archive->n_arrays ? "')" : "");
    }
    if (!clv_shape_equal(&array->shape, shape)) {
        CLV_FAIL(archive->error, CLV_E_SHAPE,
                 "%s: tensor '%s' is %s, but %s is wanted; is it of another model?", archive_name(archive),
                 clv__shown(name, &shown), clv_shape_text(&array->shape, has, sizeof has),
                 clv_shape_text(shape, wanted, sizeof wanted));
    }
    if (array->type != type) {
        CLV_FAIL(archive->error, CLV_E_DTYPE, "%s: tensor '%s' holds %s, but %s is wanted",
                 archive_name(archive), clv__shown(name, &shown), clv_dtype_name(array->type),
                 clv_dtype_name(type));
    }
    *out = array;
    return CLV_OK;
}

static clv__archive_text *find_text(const clv_archive *archive, const char *key) {
    for (size_t i = 0; i < archive->n_texts; i++) {
        if (strcmp(archive->texts[i].key, key) == 0) return &archive->texts[i];
    }
    return NULL;
}

clv_status clv__archive_append_text(clv_archive *archive, const char *key, const char *text) {
    clv__archive_text entry = {clv__strdup(key), clv__strdup(text)};
    if (!entry.key || !entry.text ||
        !clv__grow(&archive->texts, &archive->texts_room, archive->n_texts + 1, sizeof entry)) {
        free(entry.key);
        free(entry.text);
        CLV_FAIL(archive->error, CLV_E_HOST_MEMORY, "no host memory for the %zu-th text of an archive",
                 archive->n_texts + 1);
    }
    archive->texts[archive->n_texts++] = entry;
    return CLV_OK;
}

clv_status clv_archive_set_text(clv_archive *archive, const char *key, const char *text) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, key));
    CLV_TRY(CLV__GIVEN(archive->error, text));
    CLV_TRY(check_name(archive, "a text of an archive", key));
    clv__shown_text shown;
    if (!clv__utf8_valid(text)) {
        CLV_FAIL(archive->error, CLV_E_VALUE, "the text of '%s' is not UTF-8", clv__shown(key, &shown));
    }
    clv__archive_text *old = find_text(archive, key);
    if (!old) return clv__archive_append_text(archive, key, text);
    char *copy = clv__strdup(text);
    if (!copy) CLV_FAIL(archive->error, CLV_E_HOST_MEMORY, "no host memory for a text of an archive");
    free(old->text);
    old->text = copy;
    return CLV_OK;
}

clv_status clv__archive_set_int(clv_archive *archive, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return clv_archive_set_text(archive, key, text);
}

clv_status clv__archive_set_real(clv_archive *archive, const char *key, double value) {
    char text[64];
    clv__format(text, sizeof text, "%.17g", value); // 17 digits bring the same bits back
    return clv_archive_set_text(archive, key, text);
}

const char *clv_archive_text(const clv_archive *archive, const char *key) {
    const clv__archive_text *entry = find_text(archive, key);
    return entry ? entry->text : NULL;
}

const char *clv_archive_text_at(const clv_archive *archive, size_t i, const char **text) {
    if (i >= archive->n_texts) return NULL;
    if (text) *text = archive->texts[i].text;
    return archive->texts[i].key;
}

/** The text of a key that must be there. */
static clv_status number_text(const clv_archive *archive, const char *key, const char **out) {
    clv__shown_text shown;
    *out = clv_archive_text(archive, key);
    if (!*out) {
        CLV_FAIL(archive->error, CLV_E_NOT_FOUND, "%s: it has no value '%s'", archive_name(archive),
                 clv__shown(key, &shown));
    }
    return CLV_OK;
}

static clv_status not_a_number(const clv_archive *archive, const char *key, const char *text,
                               const char *wanted) {
    clv__shown_text a, b;
    CLV_FAIL(archive->error, CLV_E_FORMAT, "%s: the value of '%s' is '%s', which is not %s",
             archive_name(archive), clv__shown(key, &a), clv__shown(text, &b), wanted);
}

clv_status clv__archive_get_int(const clv_archive *archive, const char *key, int64_t *out) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, key));
    CLV_TRY(CLV__GIVEN(archive->error, out));
    const char *text;
    CLV_TRY(number_text(archive, key, &text));
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool starts = (*text >= '0' && *text <= '9') || *text == '-';
    if (!starts || *end || end == text || errno)
        return not_a_number(archive, key, text, "a whole number of 64 bits");
    *out = value;
    return CLV_OK;
}

clv_status clv__archive_get_real(const clv_archive *archive, const char *key, double *out) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, key));
    CLV_TRY(CLV__GIVEN(archive->error, out));
    const char *text;
    CLV_TRY(number_text(archive, key, &text));
    char *end;
    double value = clv__number_read(text, &end);
    if (*text == ' ' || *end || end == text) return not_a_number(archive, key, text, "a number");
    *out = value;
    return CLV_OK;
}
