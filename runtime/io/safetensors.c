// SPDX-License-Identifier: Apache-2.0
// safetensors: a length (u64), a JSON header of that length, the data. The header says for each tensor its
// dtype, shape and place in the data; together the places cover the data exactly once. Source: the format's
// description (github.com/huggingface/safetensors, README, "Format").
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/formats.h"
#include "io/shown.h"

/** Element types of the format that can be read. The order is the one in which a file keeps its tensors: by
 * rank here, then by name, so that every tensor is aligned for its type and files of other tools are laid out
 * alike. */
static const struct {
    const char *name;
    clv_array_type type;
    clv__element element;
    bool written;
} dtypes[] = {
    {"I64", CLV_ARRAY_I64, CLV__ELEMENT_SAME, true}, {"F32", CLV_ARRAY_F32, CLV__ELEMENT_SAME, true},
    {"I32", CLV_ARRAY_I32, CLV__ELEMENT_SAME, true}, {"BF16", CLV_ARRAY_F32, CLV__ELEMENT_BF16, false},
    {"F16", CLV_ARRAY_F32, CLV__ELEMENT_F16, false}, {"U8", CLV_ARRAY_U8, CLV__ELEMENT_SAME, true},
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

// ---------------------------------------------------------------------------------------------------------------
// Reading. Everything the header says is checked before the first array is allocated.

typedef struct entry {
    const char *name; // in the JSON tree
    size_t dtype;     // index into dtypes
    clv_shape shape;
    uint64_t begin, end; // in the data
} entry;

typedef struct header {
    json_t *json;
    entry *entries;
    size_t n_entries;
    const json_t *metadata; // in the JSON tree; NULL for none
    uint64_t data_offset, data_bytes;
} header;

static void header_reset(header *h) {
    json_decref(h->json);
    free(h->entries);
    *h = (header){0};
}

#define BAD(...) CLV_FAIL(input->error, CLV_E_FORMAT, __VA_ARGS__)

/** Read and parse the JSON text. */
static clv_status read_json(clv__input *input, header *h) {
    uint8_t length[8];
    if (input->bytes < sizeof length) {
        BAD("'%s' is no safetensors file: it has %" PRIu64 " bytes, too few for the length of a header",
            input->path, input->bytes);
    }
    CLV_TRY(clv__input_read(input, 0, length, sizeof length));
    uint64_t n;
    memcpy(&n, length, sizeof n);
    if (n < 2 || n > CLV__SAFETENSORS_HEADER_BYTES) {
        BAD("'%s' is no safetensors file: its header would have %" PRIu64 " bytes (2 to %d are legal)",
            input->path, n, CLV__SAFETENSORS_HEADER_BYTES);
    }
    if (n > input->bytes - sizeof length) {
        BAD("'%s' is no safetensors file, or is cut short: its header would have %" PRIu64
            " bytes, the whole file has %" PRIu64,
            input->path, n, input->bytes);
    }
    char *text = malloc((size_t)n);
    if (!text)
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %" PRIu64 " bytes of header",
                 input->path, n);
    clv_status status = clv__input_read(input, sizeof length, text, (size_t)n);
    if (status == CLV_OK && text[0] != '{') {
        status =
            clv__error_set(input->error, CLV_E_FORMAT,
                           "'%s' is no safetensors file: its header does not begin with '{'", input->path);
    }
    if (status == CLV_OK) {
        json_error_t why;
        clv__shown_text shown;
        h->json = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &why);
        if (!h->json && (why.text[0] == 0 || json_error_code(&why) == json_error_out_of_memory)) {
            status = clv__error_set(input->error, CLV_E_HOST_MEMORY,
                                    "'%s': no host memory to parse its header", input->path);
        } else if (!h->json) {
            status = clv__error_set(input->error, CLV_E_FORMAT,
                                    "'%s': the header is not JSON: %s (byte %d of the file)", input->path,
                                    clv__shown(why.text, &shown), 8 + why.position);
        }
    }
    free(text);
    h->data_offset = sizeof length + n;
    h->data_bytes = input->bytes - h->data_offset;
    return status;
}

static clv_status parse_shape(clv__input *input, const char *name, const json_t *json, clv_shape *shape) {
    clv__shown_text shown;
    if (!json_is_array(json)) {
        BAD("'%s': tensor '%s' has no shape in the header", input->path, clv__shown(name, &shown));
    }
    if (json_array_size(json) > CLV_MAX_RANK) {
        CLV_FAIL(input->error, CLV_E_UNSUPPORTED, "'%s': tensor '%s' has rank %zu; at most %d is supported",
                 input->path, clv__shown(name, &shown), json_array_size(json), CLV_MAX_RANK);
    }
    *shape = (clv_shape){.rank = (int)json_array_size(json)};
    for (int i = 0; i < shape->rank; i++) {
        const json_t *dim = json_array_get(json, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0) {
            BAD("'%s': tensor '%s': dimension %d of its shape is not a whole number >= 0", input->path,
                clv__shown(name, &shown), i);
        }
        shape->dims[i] = json_integer_value(dim);
    }
    return CLV_OK;
}

static clv_status parse_dtype(clv__input *input, const char *name, const json_t *json, size_t *out) {
    clv__shown_text a, b;
    if (!json_is_string(json)) {
        BAD("'%s': tensor '%s' has no dtype in the header", input->path, clv__shown(name, &a));
    }
    const char *text = json_string_value(json);
    for (size_t i = 0; i < N_DTYPES; i++) {
        if (strcmp(text, dtypes[i].name) == 0) {
            *out = i;
            return CLV_OK;
        }
    }
    CLV_FAIL(input->error, CLV_E_UNSUPPORTED,
             "'%s': tensor '%s' has dtype %s; F32, F16, BF16, I32, I64 and U8 can be read. Convert it before "
             "saving",
             input->path, clv__shown(name, &a), clv__shown(text, &b));
}

static clv_status parse_entry(clv__input *input, const header *h, const char *name, const json_t *json,
                              entry *e) {
    clv__shown_text shown;
    char text[128];
    *e = (entry){.name = name};
    if (!json_is_object(json)) {
        BAD("'%s': tensor '%s' is not described by a JSON object", input->path, clv__shown(name, &shown));
    }
    CLV_TRY(parse_dtype(input, name, json_object_get(json, "dtype"), &e->dtype));
    CLV_TRY(parse_shape(input, name, json_object_get(json, "shape"), &e->shape));
    const json_t *offsets = json_object_get(json, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        BAD("'%s': tensor '%s': its data_offsets are not two rising whole numbers", input->path,
            clv__shown(name, &shown));
    }
    e->begin = (uint64_t)json_integer_value(begin);
    e->end = (uint64_t)json_integer_value(end);
    size_t bytes;
    if (!clv__shape_bytes(&e->shape, clv__element_bytes(dtypes[e->dtype].element, dtypes[e->dtype].type),
                          &bytes) ||
        bytes > SIZE_MAX / 4) { // conversion to f32 at most doubles it
        BAD("'%s': tensor '%s': the shape %s is too large to count", input->path, clv__shown(name, &shown),
            clv_shape_text(&e->shape, text, sizeof text));
    }
    if (e->end > h->data_bytes) {
        BAD("'%s': tensor '%s' ends at byte %" PRIu64 " of the data, which has %" PRIu64
            "; the file is cut short, or damaged",
            input->path, clv__shown(name, &shown), e->end, h->data_bytes);
    }
    if (e->end - e->begin != bytes) {
        BAD("'%s': tensor '%s': %s of %s takes %zu bytes, but its data_offsets [%" PRIu64 ",%" PRIu64
            "] hold %" PRIu64,
            input->path, clv__shown(name, &shown), clv_shape_text(&e->shape, text, sizeof text),
            dtypes[e->dtype].name, bytes, e->begin, e->end, e->end - e->begin);
    }
    return CLV_OK;
}

static clv_status check_metadata(clv__input *input, const json_t *json) {
    clv__shown_text shown;
    if (!json_is_object(json)) BAD("'%s': __metadata__ in the header is not a JSON object", input->path);
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)json, key, value) {
        if (!json_is_string(value)) {
            BAD("'%s': '%s' in __metadata__ is not a text", input->path, clv__shown(key, &shown));
        }
    }
    return CLV_OK;
}

static int by_place(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

/** Sorted by place, the tensors must cover the data exactly once. */
static clv_status check_places(clv__input *input, const header *h) {
    clv__shown_text a, b;
    uint64_t at = 0;
    for (size_t i = 0; i < h->n_entries; i++) {
        const entry *e = &h->entries[i];
        if (e->begin < at) {
            BAD("'%s': tensors '%s' and '%s' overlap at byte %" PRIu64 " of the data", input->path,
                clv__shown(h->entries[i - 1].name, &a), clv__shown(e->name, &b), e->begin);
        }
        if (e->begin > at) {
            BAD("'%s': bytes %" PRIu64 " to %" PRIu64 " of the data, before tensor '%s', belong to no tensor",
                input->path, at, e->begin, clv__shown(e->name, &b));
        }
        at = e->end;
    }
    if (at != h->data_bytes) {
        BAD("'%s': the last %" PRIu64 " bytes of the file belong to no tensor", input->path,
            h->data_bytes - at);
    }
    return CLV_OK;
}

static clv_status read_header(clv__input *input, header *h) {
    CLV_TRY(read_json(input, h));
    h->entries = clv__alloc(json_object_size(h->json), sizeof *h->entries);
    if (!h->entries) {
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %zu tensors", input->path,
                 json_object_size(h->json));
    }
    const char *name;
    json_t *value;
    json_object_foreach(h->json, name, value) {
        if (strcmp(name, "__metadata__") == 0) {
            CLV_TRY(check_metadata(input, value));
            h->metadata = value;
        } else {
            CLV_TRY(parse_entry(input, h, name, value, &h->entries[h->n_entries]));
            h->n_entries++;
        }
    }
    qsort(h->entries, h->n_entries, sizeof *h->entries, by_place);
    return check_places(input, h);
}

/** Read elements that have to be converted, a piece at a time. */
static clv_status read_converted(clv__input *input, const entry *e, uint64_t data_offset, clv_array *array) {
    char piece[16 * 1024];
    clv__element element = dtypes[e->dtype].element;
    size_t size = clv__element_bytes(element, array->type), done = 0;
    for (uint64_t at = e->begin; at < e->end;) {
        size_t n = e->end - at < sizeof piece ? (size_t)(e->end - at) : sizeof piece;
        CLV_TRY(clv__input_read(input, data_offset + at, piece, n));
        clv__element_convert(element, piece, n / size, (float *)array->data + done);
        done += n / size;
        at += n;
    }
    return CLV_OK;
}

static clv_status read_array(clv__input *input, const header *h, const entry *e, clv_archive *archive) {
    clv__shown_text shown;
    clv_array array;
    if (clv__array_init(input->error, dtypes[e->dtype].type, &e->shape, &array) != CLV_OK) {
        return clv__error_prefix(input->error, "'%s': tensor '%s': ", input->path,
                                 clv__shown(e->name, &shown));
    }
    clv_status status =
        dtypes[e->dtype].element == CLV__ELEMENT_SAME
            ? clv__input_read(input, h->data_offset + e->begin, array.data, (size_t)(e->end - e->begin))
            : read_converted(input, e, h->data_offset, &array);
    if (status == CLV_OK) {
        array.name = clv__strdup(e->name);
        status = array.name ? clv__archive_take(archive, &array)
                            : clv__error_set(input->error, CLV_E_HOST_MEMORY,
                                             "'%s': no host memory for a name", input->path);
    }
    clv_array_reset(&array);
    return status;
}

static clv_status fill_archive(clv__input *input, const header *h, clv_archive *archive) {
    for (size_t i = 0; i < h->n_entries; i++) CLV_TRY(read_array(input, h, &h->entries[i], archive));
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)h->metadata, key, value) {
        if (strcmp(key, CLV__CHECKSUM_KEY) == 0)
            continue; // of this file; a copy would not be true of another
        CLV_TRY(clv__archive_append_text(archive, key, json_string_value(value)));
    }
    return CLV_OK;
}

clv_status clv__safetensors_read(clv__input *input, clv_archive **out) {
    *out = NULL;
    header h = {0};
    clv_archive *archive = NULL;
    clv_status status = read_header(input, &h);
    if (status == CLV_OK) status = clv__archive_create(input->error, input->path, &archive);
    if (status == CLV_OK) status = fill_archive(input, &h, archive);
    header_reset(&h);
    if (status == CLV_OK) {
        *out = archive;
    } else {
        clv_archive_destroy(archive);
    }
    return status;
}

clv_status clv_safetensors_read(clv_runtime *runtime, const char *path, clv_archive **out) {
    *out = NULL;
    clv__input input;
    CLV_TRY(clv__input_open(clv__io_error(runtime), path, &input));
    clv_status status = clv__safetensors_read(&input, out);
    clv__input_close(&input);
    return status;
}

// ---------------------------------------------------------------------------------------------------------------
// Writing.

static size_t written_dtype(clv_array_type type) {
    size_t i = 0;
    while (i < N_DTYPES && !(dtypes[i].written && dtypes[i].type == type)) i++;
    return i;
}

static int by_type_and_name(const void *a, const void *b) {
    const clv_array *x = *(const clv_array *const *)a, *y = *(const clv_array *const *)b;
    size_t i = written_dtype(x->type), j = written_dtype(y->type);
    if (i != j) return i < j ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_key(const void *a, const void *b) {
    return strcmp((*(const clv__archive_text *const *)a)->key, (*(const clv__archive_text *const *)b)->key);
}

/** The texts, the checksum first, then by key. NULL if memory is out. */
static json_t *metadata_json(const clv_archive *archive, const char *checksum) {
    json_t *json = json_object();
    const clv__archive_text **texts = clv__alloc(archive->n_texts, sizeof *texts);
    bool good = json && texts;
    if (good && checksum) good = json_object_set_new(json, CLV__CHECKSUM_KEY, json_string(checksum)) == 0;
    for (size_t i = 0; good && i < archive->n_texts; i++) texts[i] = &archive->texts[i];
    if (good) qsort(texts, archive->n_texts, sizeof *texts, by_key);
    for (size_t i = 0; good && i < archive->n_texts; i++) {
        if (strcmp(texts[i]->key, CLV__CHECKSUM_KEY) == 0) continue;
        good = json_object_set_new(json, texts[i]->key, json_string(texts[i]->text)) == 0;
    }
    free(texts);
    if (good) return json;
    json_decref(json);
    return NULL;
}

static json_t *array_json(const clv_array *array, uint64_t begin, uint64_t end) {
    json_t *shape = json_array();
    for (int i = 0; shape && i < array->shape.rank; i++) {
        if (json_array_append_new(shape, json_integer(array->shape.dims[i])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtypes[written_dtype(array->type)].name, "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/** The header's JSON text; NULL if memory is out. */
static char *header_text(const clv_archive *archive, const char *checksum,
                         const clv__safetensors_layout *layout) {
    json_t *root = json_object();
    bool good = root != NULL;
    if (good && (archive->n_texts > 0 || checksum)) {
        good = json_object_set_new(root, "__metadata__", metadata_json(archive, checksum)) == 0;
    }
    uint64_t at = 0;
    for (size_t i = 0; good && i < layout->n_arrays; i++) {
        uint64_t end = at + clv_array_bytes(layout->arrays[i]);
        good =
            json_object_set_new(root, layout->arrays[i]->name, array_json(layout->arrays[i], at, end)) == 0;
        at = end;
    }
    char *text = good ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

static clv_status layout_fill(const clv_archive *archive, const char *path, const char *checksum,
                              clv__safetensors_layout *layout) {
    layout->arrays = clv__alloc(archive->n_arrays, sizeof *layout->arrays);
    if (!layout->arrays) goto no_memory;
    for (size_t i = 0; i < archive->n_arrays; i++) layout->arrays[i] = archive->arrays[i];
    layout->n_arrays = archive->n_arrays;
    qsort(layout->arrays, layout->n_arrays, sizeof *layout->arrays, by_type_and_name);

    char *text = header_text(archive, checksum, layout);
    if (!text) goto no_memory;
    size_t length = strlen(text), padded = clv__size_align(length, 8); // the data begins at a multiple of 8
    if (padded > CLV__SAFETENSORS_HEADER_BYTES) {
        free(text);
        CLV_FAIL(archive->error, CLV_E_VALUE,
                 "cannot write '%s': names and texts take %zu bytes of header; the format "
                 "allows %d",
                 path, padded, CLV__SAFETENSORS_HEADER_BYTES);
    }
    layout->header_bytes = 8 + padded;
    layout->header = clv__alloc(layout->header_bytes, 1);
    if (layout->header) {
        uint64_t n = padded;
        memcpy(layout->header, &n, sizeof n);
        memset(layout->header + 8, ' ', padded);
        memcpy(layout->header + 8, text, length);
    }
    free(text);
    if (layout->header) return CLV_OK;
no_memory:
    CLV_FAIL(archive->error, CLV_E_HOST_MEMORY, "cannot write '%s': no host memory for its header", path);
}

clv_status clv__safetensors_layout_init(const clv_archive *archive, const char *path, const char *checksum,
                                        clv__safetensors_layout *layout) {
    *layout = (clv__safetensors_layout){0};
    clv_status status = layout_fill(archive, path, checksum, layout);
    if (status != CLV_OK) clv__safetensors_layout_reset(layout);
    return status;
}

void clv__safetensors_layout_reset(clv__safetensors_layout *layout) {
    free(layout->header);
    free(layout->arrays);
    *layout = (clv__safetensors_layout){0};
}

clv_status clv__safetensors_write(const clv_archive *archive, const clv__safetensors_layout *layout,
                                  const char *path, bool keep_previous) {
    clv__output output;
    CLV_TRY(clv__output_open(archive->error, path, &output));
    CLV_TRY(clv__output_write(&output, layout->header, layout->header_bytes)); // aborts when it fails
    for (size_t i = 0; i < layout->n_arrays; i++) {
        CLV_TRY(clv__output_write(&output, layout->arrays[i]->data, clv_array_bytes(layout->arrays[i])));
    }
    return clv__output_commit(&output, keep_previous);
}

clv_status clv_safetensors_write(const clv_archive *archive, const char *path) {
    clv__safetensors_layout layout;
    CLV_TRY(clv__safetensors_layout_init(archive, path, NULL, &layout));
    clv_status status = clv__safetensors_write(archive, &layout, path, false);
    clv__safetensors_layout_reset(&layout);
    return status;
}
