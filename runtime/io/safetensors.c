// SPDX-License-Identifier: Apache-2.0
// safetensors: a length (u64), a JSON header of that length, the data. The header says for each tensor its
// dtype, shape and place in the data; together the places cover the data exactly once. Source: the format's
// description (github.com/huggingface/safetensors, README, "Format").
#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/formats.h"
#include "io/json.h"
#include "io/members.h"
#include "io/shown.h"

/** Element types of the format that can be read. The order is the one in which a file keeps its tensors: by
 * rank here, then by name, so that every tensor is aligned for its type and files of other tools are laid out
 * alike. */
#define READ_FLOAT(id) CLV_DTYPE_##id, CLV__ELEMENT_SAME, true
#define READ_WHOLE READ_FLOAT
#define READ_TRUTH READ_FLOAT
#define READ_F16(id) CLV_DTYPE_F32, CLV__ELEMENT_F16, false
#define READ_BF16(id) CLV_DTYPE_F32, CLV__ELEMENT_BF16, false
static const struct {
    const char *name;
    clv_dtype type;
    clv__element element;
    bool written;
} dtypes[] = {
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy) {safetensors, READ_##kind(id)},
#include "tensor/dtypes.def"
};
/** Their names: ` I64 F32 ...`. */
static const char readable[] =
#define DTYPE(id, name, kind, type, least, most, kernels, safetensors, npy) " " safetensors
#include "tensor/dtypes.def"
    ;
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

// ---------------------------------------------------------------------------------------------------------------
// Reading. Everything the header says is checked before the first array's data is allocated. The header is read member by member:
// an array's place, and its data's, is all that is kept of it.

enum { MOST_DESCRIPTION = 64 * 1024 }; // bytes that describe a tensor; some two hundred are usual

/** A tensor of the header: its array has no data yet. */
typedef struct entry {
    clv_array *array;    // owned
    uint64_t begin : 56; // in the data
    uint64_t dtype : 8;  // index into dtypes
} entry;

/** What the header says of a tensor. */
typedef struct description {
    size_t dtype;
    clv_shape shape;
    uint64_t begin, end;
} description;

typedef struct header {
    entry *entries;
    size_t n_entries, room;
    clv__archive_text *texts; // of __metadata__; owned
    size_t n_texts, texts_room;
    bool has_metadata;
    clv__name_set names; // of tensors
    uint64_t data_offset, data_bytes;
} header;

static void header_reset(header *h) {
    for (size_t i = 0; i < h->n_entries; i++) {
        clv_array_reset(h->entries[i].array);
        free(h->entries[i].array);
    }
    for (size_t i = 0; i < h->n_texts; i++) {
        free(h->texts[i].key);
        free(h->texts[i].text);
    }
    free(h->entries);
    free(h->texts);
    clv__name_set_reset(&h->names);
    *h = (header){0};
}

#define BAD(...) CLV_FAIL(input->error, CLV_E_FORMAT, __VA_ARGS__)

/** Where the header lies: its length is plausible, and it is an object. */
static clv_status find_header(clv__input *input, header *h) {
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
    char first;
    CLV_TRY(clv__input_read(input, sizeof length, &first, 1));
    if (first != '{') BAD("'%s' is no safetensors file: its header does not begin with '{'", input->path);
    h->data_offset = sizeof length + n;
    h->data_bytes = input->bytes - h->data_offset;
    return CLV_OK;
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
             "'%s': tensor '%s' has dtype %s; these can be read:%s. Convert it before saving", input->path,
             clv__shown(name, &a), clv__shown(text, &b), readable);
}

static size_t element_bytes(size_t dtype) {
    return clv__element_bytes(dtypes[dtype].element, dtypes[dtype].type);
}

static clv_status parse_tree(clv__input *input, const char *name, const json_t *json, description *d) {
    clv__shown_text shown;
    if (!json_is_object(json)) {
        BAD("'%s': tensor '%s' is not described by a JSON object", input->path, clv__shown(name, &shown));
    }
    CLV_TRY(parse_dtype(input, name, json_object_get(json, "dtype"), &d->dtype));
    CLV_TRY(parse_shape(input, name, json_object_get(json, "shape"), &d->shape));
    const json_t *offsets = json_object_get(json, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        BAD("'%s': tensor '%s': its data_offsets are not two rising whole numbers", input->path,
            clv__shown(name, &shown));
    }
    d->begin = (uint64_t)json_integer_value(begin);
    d->end = (uint64_t)json_integer_value(end);
    return CLV_OK;
}

// A description as every tool writes it needs no tree: the three members, each once, in any order, plain numbers. What is not
// just so is left to jansson, which knows what is legal and what is not.

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool take(cursor *c, char wanted) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) c->at++;
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

/** A text without escapes. */
static bool take_word(cursor *c, const char **word, size_t *n) {
    if (!take(c, '"')) return false;
    *word = c->at;
    while (c->at<c->end && * c->at> 0x20 && *c->at < 0x7f && *c->at != '"' && *c->at != '\\') c->at++;
    *n = (size_t)(c->at - *word);
    return take(c, '"');
}

/** Whole, of at most 18 digits: a longer one, which might not fit, is not taken whole, and so not plain. */
static bool take_number(cursor *c, int64_t *out) {
    int64_t value = 0;
    int digits = 0;
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) c->at++;
    const char *first = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9' && digits < 18; c->at++, digits++)
        value = 10 * value + (*c->at - '0');
    *out = value;
    return digits >= 1 && (digits == 1 || *first != '0');
}

/** `[1,2,3]`: at most `most` numbers; their count, -1 if it is not that. */
static int take_numbers(cursor *c, int64_t *numbers, int most) {
    int n = 0;
    if (!take(c, '[')) return -1;
    if (take(c, ']')) return 0;
    do {
        if (n == most || !take_number(c, &numbers[n])) return -1;
        n++;
    } while (take(c, ','));
    return take(c, ']') ? n : -1;
}

static bool is(const char *word, size_t n, const char *text) {
    return strlen(text) == n && memcmp(word, text, n) == 0;
}

static bool take_dtype(cursor *c, size_t *dtype) {
    const char *word;
    size_t n;
    if (!take_word(c, &word, &n)) return false;
    for (*dtype = 0; *dtype < N_DTYPES; ++*dtype)
        if (is(word, n, dtypes[*dtype].name)) return true;
    return false;
}

/** false: it is not just so. */
static bool parse_plain(const char *text, size_t n, description *d) {
    cursor c = {text, text + n};
    unsigned seen = 0;
    if (!take(&c, '{')) return false;
    do {
        const char *word;
        size_t length;
        int64_t offsets[2];
        unsigned which = 0;
        if (!take_word(&c, &word, &length) || !take(&c, ':')) return false;
        if (is(word, length, "dtype") && take_dtype(&c, &d->dtype)) {
            which = 1;
        } else if (is(word, length, "shape")) {
            d->shape = (clv_shape){0};
            d->shape.rank = take_numbers(&c, d->shape.dims, CLV_MAX_RANK);
            which = d->shape.rank >= 0 ? 2 : 0;
        } else if (is(word, length, "data_offsets") && take_numbers(&c, offsets, 2) == 2 &&
                   offsets[0] <= offsets[1]) {
            d->begin = (uint64_t)offsets[0];
            d->end = (uint64_t)offsets[1];
            which = 4;
        }
        if (!which || seen & which) return false;
        seen |= which;
    } while (take(&c, ','));
    return take(&c, '}') && seen == 7 && c.at == c.end;
}

/** Does what it says add up? */
static clv_status check_description(clv__input *input, const header *h, const char *name,
                                    const description *d) {
    clv__shown_text shown;
    char text[128];
    size_t bytes, widest; // a shape is countable or not in every dtype: what is read can be written again
    if (!clv__shape_bytes(&d->shape, sizeof(double), &widest) ||
        !clv__shape_bytes(&d->shape, element_bytes(d->dtype), &bytes) || bytes > SIZE_MAX / 4) {
        BAD("'%s': tensor '%s': the shape %s is too large to count", input->path, clv__shown(name, &shown),
            clv_shape_text(&d->shape, text, sizeof text));
    }
    if (d->end > h->data_bytes) {
        BAD("'%s': tensor '%s' ends at byte %" PRIu64 " of the data, which has %" PRIu64
            "; the file is cut short, or damaged",
            input->path, clv__shown(name, &shown), d->end, h->data_bytes);
    }
    if (d->end - d->begin != bytes) {
        BAD("'%s': tensor '%s': %s of %s takes %zu bytes, but its data_offsets [%" PRIu64 ",%" PRIu64
            "] hold %" PRIu64,
            input->path, clv__shown(name, &shown), clv_shape_text(&d->shape, text, sizeof text),
            dtypes[d->dtype].name, bytes, d->begin, d->end, d->end - d->begin);
    }
    return CLV_OK;
}

/** The next member's value as a tensor's description. */
static clv_status read_description(clv__members *m, clv__input *input, const header *h, const char *name,
                                   description *d) {
    clv__shown_text shown;
    const char *text;
    size_t n;
    CLV_TRY(clv__members_value(m, MOST_DESCRIPTION, &text, &n));
    if (!text)
        BAD("'%s': tensor '%s' is described by more than %d bytes", input->path, clv__shown(name, &shown),
            MOST_DESCRIPTION);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\n' || text[n - 1] == '\t' || text[n - 1] == '\r'))
        n--;
    if (!parse_plain(text, n, d)) {
        json_t *json;
        CLV_TRY(clv__members_parse(m, text, n, &json));
        clv_status status = parse_tree(input, name, json, d);
        json_decref(json);
        CLV_TRY(status);
    }
    return check_description(input, h, name, d);
}

static clv_status told_twice(clv__members *m, const char *name) {
    clv__shown_text shown;
    char why[CLV__SHOWN_BYTES + 32];
    snprintf(why, sizeof why, "duplicate object key '%s'", clv__shown(name, &shown));
    return clv__members_bad(m, why);
}

static const char *name_of_entry(const void *header_, size_t i) {
    return ((const header *)header_)->entries[i].array->name;
}

static const char *key_of_text(const void *header_, size_t i) {
    return ((const header *)header_)->texts[i].key;
}

/** Keep a tensor; its name is taken. */
static clv_status keep_entry(clv__members *m, clv__input *input, header *h, char *name,
                             const description *d) {
    bool twice = false;
    clv_array *array = clv__alloc(1, sizeof *array);
    if (!array || !clv__grow(&h->entries, &h->room, h->n_entries + 1, sizeof *h->entries)) {
        free(array);
        free(name);
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %zu tensors", input->path,
                 h->n_entries + 1);
    }
    *array = (clv_array){.name = name, .type = dtypes[d->dtype].type, .shape = d->shape};
    h->entries[h->n_entries++] = (entry){array, d->begin, d->dtype}; // from now on the header's to free
    if (!clv__name_set_add(&h->names, &twice))
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %zu tensors", input->path,
                 h->n_entries);
    return twice ? told_twice(m, name) : CLV_OK;
}

/** The value of a key, which is taken. */
static clv_status read_text(clv__members *m, clv__input *input, header *h, clv__name_set *names, char *key) {
    clv__shown_text shown;
    bool twice = false;
    if (!clv__grow(&h->texts, &h->texts_room, h->n_texts + 1, sizeof *h->texts)) {
        free(key);
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its texts", input->path);
    }
    clv__archive_text *kept = &h->texts[h->n_texts++];
    *kept = (clv__archive_text){.key = key};
    CLV_TRY(clv__members_text(m, &kept->text));
    if (!kept->text) BAD("'%s': '%s' in __metadata__ is not a text", input->path, clv__shown(key, &shown));
    if (!clv__name_set_add(names, &twice))
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for its texts", input->path);
    return twice ? told_twice(m, key) : CLV_OK;
}

static clv_status read_metadata(clv__members *m, clv__input *input, header *h) {
    clv__name_set names = {.name_of = key_of_text, .owner = h};
    bool begun = false, is_object;
    if (h->has_metadata) return told_twice(m, "__metadata__");
    h->has_metadata = true;
    CLV_TRY(clv__members_enter(m, &is_object));
    if (!is_object) BAD("'%s': __metadata__ in the header is not a JSON object", input->path);
    clv_status status;
    char *key;
    while ((status = clv__members_next(m, &begun, &key)) == CLV_OK && key)
        if ((status = read_text(m, input, h, &names, key)) != CLV_OK) break;
    clv__name_set_reset(&names);
    return status;
}

static clv_status read_members(clv__members *m, clv__input *input, header *h) {
    bool begun = false, is_object;
    CLV_TRY(clv__members_enter(m, &is_object));
    for (;;) {
        char *name;
        description d = {0};
        CLV_TRY(clv__members_next(m, &begun, &name));
        if (!name) return clv__members_end(m);
        if (strcmp(name, "__metadata__") == 0) {
            free(name);
            CLV_TRY(read_metadata(m, input, h));
            continue;
        }
        clv__name_set_expect(&h->names, name);
        clv_status status = read_description(m, input, h, name, &d);
        if (status != CLV_OK) {
            free(name);
            return status;
        }
        CLV_TRY(keep_entry(m, input, h, name, &d));
    }
}

/** Where an entry's data ends. */
static uint64_t end_of(const entry *e) {
    size_t bytes = 0;
    clv__shape_bytes(&e->array->shape, element_bytes(e->dtype), &bytes);
    return e->begin + bytes;
}

static int by_place(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    uint64_t x_end = end_of(x), y_end = end_of(y);
    if (x_end != y_end) return x_end < y_end ? -1 : 1;
    return 0;
}

static void sort_by_place(header *h) {
    for (size_t i = 1; i < h->n_entries; i++) {
        if (by_place(&h->entries[i - 1], &h->entries[i]) <= 0) continue; // as every tool writes them
        qsort(h->entries, h->n_entries, sizeof *h->entries, by_place);
        return;
    }
}

/** Sorted by place, the tensors must cover the data exactly once. */
static clv_status check_places(clv__input *input, const header *h) {
    clv__shown_text a, b;
    uint64_t at = 0;
    for (size_t i = 0; i < h->n_entries; i++) {
        const entry *e = &h->entries[i];
        if (e->begin < at) {
            BAD("'%s': tensors '%s' and '%s' overlap at byte %" PRIu64 " of the data", input->path,
                clv__shown(h->entries[i - 1].array->name, &a), clv__shown(e->array->name, &b),
                (uint64_t)e->begin);
        }
        if (e->begin > at) {
            BAD("'%s': bytes %" PRIu64 " to %" PRIu64 " of the data, before tensor '%s', belong to no tensor",
                input->path, at, (uint64_t)e->begin, clv__shown(e->array->name, &b));
        }
        at = end_of(e);
    }
    if (at != h->data_bytes) {
        BAD("'%s': the last %" PRIu64 " bytes of the file belong to no tensor", input->path,
            h->data_bytes - at);
    }
    return CLV_OK;
}

static clv_status read_header(clv__input *input, header *h) {
    clv__members members;
    CLV_TRY(clv__foreign_check(input, CLV__WANT_WEIGHTS));
    CLV_TRY(find_header(input, h));
    h->names = (clv__name_set){.name_of = name_of_entry, .owner = h};
    clv__members_init(&members, input, 8, h->data_offset);
    clv_status status = read_members(&members, input, h);
    clv__members_reset(&members);
    clv__name_set_reset(&h->names);
    CLV_TRY(status);
    sort_by_place(h);
    return check_places(input, h);
}

/** Read elements that have to be converted, a piece at a time. */
static clv_status read_converted(clv__input *input, const entry *e, uint64_t data_offset) {
    char piece[16 * 1024];
    clv__element element = dtypes[e->dtype].element;
    size_t size = element_bytes(e->dtype), done = 0;
    for (uint64_t at = e->begin, end = end_of(e); at < end;) {
        size_t n = end - at < sizeof piece ? (size_t)(end - at) : sizeof piece;
        CLV_TRY(clv__input_read(input, data_offset + at, piece, n));
        clv__element_convert(element, piece, n / size, (float *)e->array->data + done);
        done += n / size;
        at += n;
    }
    return CLV_OK;
}

/** Give the entry's array its data, in the mapping if there is one. Of no elements it takes none: a million of them is no memory. */
static clv_status read_data(clv__input *input, const header *h, const entry *e, const uint8_t *mapping) {
    static const max_align_t nothing;
    clv__shown_text shown;
    clv_array with_data, *array = e->array;
    const bool empty = end_of(e) == e->begin;
    if (empty || mapping) {
        array->data =
            (void *)(uintptr_t)(empty ? (const void *)&nothing : mapping + h->data_offset + e->begin);
        array->borrowed = true;
        return CLV_OK;
    }
    if (clv__array_init(input->error, array->type, &array->shape, &with_data) != CLV_OK) {
        return clv__error_prefix(input->error, "'%s': tensor '%s': ", input->path,
                                 clv__shown(array->name, &shown));
    }
    array->data = with_data.data;
    return dtypes[e->dtype].element == CLV__ELEMENT_SAME
               ? clv__input_read(input, h->data_offset + e->begin, array->data,
                                 (size_t)(end_of(e) - e->begin))
               : read_converted(input, e, h->data_offset);
}

/** Hand texts over. */
static clv_status fill_texts(const header *h, clv_archive *archive) {
    for (size_t i = 0; i < h->n_texts; i++) {
        if (strcmp(h->texts[i].key, CLV__CHECKSUM_KEY) == 0)
            continue; // of this file; a copy would not be true of another
        CLV_TRY(clv__archive_append_text(archive, h->texts[i].key, h->texts[i].text));
    }
    return CLV_OK;
}

/** The file in memory, which the archive keeps. */
static clv_status map_file(clv__input *input, clv_archive *archive, const uint8_t **out) {
    if (!clv__grow(&archive->mappings, &archive->mappings_room, archive->n_mappings + 1,
                   sizeof *archive->mappings))
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory", input->path);
    CLV_TRY(clv__input_map(input, out));
    archive->mappings[archive->n_mappings++] = (clv__mapping){*out, (size_t)input->bytes};
    return CLV_OK;
}

/** Hand arrays and texts over. */
static clv_status fill_archive(clv__input *input, header *h, bool mapped, clv_archive *archive) {
    const uint8_t *mapping = NULL;
    if (mapped) CLV_TRY(map_file(input, archive, &mapping));
    for (size_t i = 0; i < h->n_entries; i++) CLV_TRY(read_data(input, h, &h->entries[i], mapping));
    if (!clv__grow(&archive->arrays, &archive->arrays_room, h->n_entries, sizeof *archive->arrays) ||
        (mapped &&
         !clv__grow(&archive->stored, &archive->stored_room, h->n_entries, sizeof *archive->stored)))
        CLV_FAIL(input->error, CLV_E_HOST_MEMORY, "'%s': no host memory for %zu tensors", input->path,
                 h->n_entries);
    for (size_t i = 0; i < h->n_entries; i++) {
        archive->arrays[i] = h->entries[i].array;
        if (mapped) archive->stored[i] = dtypes[h->entries[i].dtype].element;
    }
    archive->n_arrays = h->n_entries;
    archive->n_stored = mapped ? h->n_entries : 0;
    h->n_entries = 0;
    return fill_texts(h, archive);
}

static clv_status read_archive(clv__input *input, clv__archive_part part, clv_archive **out) {
    *out = NULL;
    header h = {0};
    clv_archive *archive = NULL;
    clv_status status = read_header(input, &h);
    if (status == CLV_OK) status = clv__archive_create(input->error, input->path, &archive);
    if (status == CLV_OK)
        status = part == CLV__TEXTS_ALONE ? fill_texts(&h, archive)
                                          : fill_archive(input, &h, part == CLV__MAPPED, archive);
    header_reset(&h);
    if (status == CLV_OK) {
        *out = archive;
    } else {
        clv_archive_destroy(archive);
    }
    return status;
}

clv_status clv__safetensors_read(clv__input *input, clv_archive **out) {
    return read_archive(input, CLV__COPIED, out);
}

clv_status clv__safetensors_read_part(clv_runtime *runtime, const char *path, clv__archive_part part,
                                      clv_archive **out) {
    *out = NULL;
    clv__input input;
    if (clv__shards_is(path)) return clv__shards_read(runtime, path, part, out);
    CLV_TRY(clv__input_open(clv__io_error(runtime), path, &input));
    clv_status status = read_archive(&input, part, out);
    clv__input_close(&input);
    return status;
}

clv_status clv_safetensors_read(clv_runtime *runtime, const char *path, clv_archive **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = NULL;
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    return clv__safetensors_read_part(runtime, path, CLV__COPIED, out);
}

// ---------------------------------------------------------------------------------------------------------------
// Writing.

static size_t written_dtype(clv_dtype type) {
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
    if (good && checksum) good = clv__json_set(json, CLV__CHECKSUM_KEY, json_string(checksum));
    for (size_t i = 0; good && i < archive->n_texts; i++) texts[i] = &archive->texts[i];
    if (good) qsort(texts, archive->n_texts, sizeof *texts, by_key);
    for (size_t i = 0; good && i < archive->n_texts; i++) {
        if (strcmp(texts[i]->key, CLV__CHECKSUM_KEY) == 0) continue;
        good = clv__json_set(json, texts[i]->key, json_string(texts[i]->text));
    }
    free(texts);
    if (good) return json;
    json_decref(json);
    return NULL;
}

static json_t *dim_item(const void *from, size_t i) {
    return json_integer(((const int64_t *)from)[i]);
}

static json_t *array_json(const clv_array *array, uint64_t begin, uint64_t end) {
    json_t *shape = clv__json_list(array->shape.dims, (size_t)array->shape.rank, dim_item);
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtypes[written_dtype(array->type)].name, "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/** The header's JSON text, to be reset; false if memory is out. */
static bool header_text(const clv_archive *archive, const char *checksum,
                        const clv__safetensors_layout *layout, clv__text *text) {
    json_t *root = json_object();
    bool good = root != NULL;
    if (good && (archive->n_texts > 0 || checksum)) {
        good = clv__json_set(root, "__metadata__", metadata_json(archive, checksum));
    }
    uint64_t at = 0;
    for (size_t i = 0; good && i < layout->n_arrays; i++) {
        uint64_t end = at + clv_array_bytes(layout->arrays[i]);
        good = clv__json_set(root, layout->arrays[i]->name, array_json(layout->arrays[i], at, end));
        at = end;
    }
    good = good && clv__json_write(root, JSON_COMPACT, text);
    json_decref(root);
    return good;
}

static clv_status layout_fill(const clv_archive *archive, const char *path, const char *checksum,
                              clv__safetensors_layout *layout) {
    layout->arrays = clv__alloc(archive->n_arrays, sizeof *layout->arrays);
    if (!layout->arrays) goto no_memory;
    for (size_t i = 0; i < archive->n_arrays; i++) layout->arrays[i] = archive->arrays[i];
    layout->n_arrays = archive->n_arrays;
    qsort(layout->arrays, layout->n_arrays, sizeof *layout->arrays, by_type_and_name);

    clv__text text = {0};
    if (!header_text(archive, checksum, layout, &text)) {
        clv__text_reset(&text);
        goto no_memory;
    }
    size_t padded = clv__size_align(text.n, 8); // the data begins at a multiple of 8
    if (padded > CLV__SAFETENSORS_HEADER_BYTES) {
        clv__text_reset(&text);
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
        memcpy(layout->header + 8, text.data, text.n);
    }
    clv__text_reset(&text);
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
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, path));
    clv__safetensors_layout layout;
    CLV_TRY(clv__safetensors_layout_init(archive, path, NULL, &layout));
    clv_status status = clv__safetensors_write(archive, &layout, path, false);
    clv__safetensors_layout_reset(&layout);
    return status;
}
