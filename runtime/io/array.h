// SPDX-License-Identifier: Apache-2.0
// Inside of arrays and archives: what the readers and writers of this folder need besides cleave/io.h.
#ifndef CLV_IO_ARRAY_H
#define CLV_IO_ARRAY_H

#include "base/error.h"
#include "base/memory.h"
#include "cleave/io.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file formats here are little-endian and are read and written as they lie in memory"
#endif

/** How an element type of a file becomes one of ours. */
typedef enum clv__element {
    CLV__ELEMENT_SAME,
    CLV__ELEMENT_F16,
    CLV__ELEMENT_BF16,
    CLV__ELEMENT_F64
} clv__element;

/** Bytes of an element in the file. */
size_t clv__element_bytes(clv__element element, clv_dtype type);
/** Convert n elements of a file into `to`; not for CLV__ELEMENT_SAME. Floats round to nearest. */
void clv__element_convert(clv__element element, const void *from, size_t n, float *to);

/** Elements times `element_bytes`; false if a dimension is negative or the product overflows. */
bool clv__shape_bytes(const clv_shape *shape, size_t element_bytes, size_t *out);

clv_status clv__array_init(clv__error *error, clv_dtype type, const clv_shape *shape, clv_array *array);

/** A text of an archive. */
typedef struct clv__archive_text {
    char *key, *text;
} clv__archive_text;

/** A file in memory. */
typedef struct clv__mapping {
    const uint8_t *bytes;
    size_t n;
} clv__mapping;

struct clv_archive {
    clv__error *error; // the runtime's
    char *path;        // the file it was read from; NULL for none
    clv_array **arrays;
    size_t n_arrays, arrays_room;
    clv__archive_text *texts;
    size_t n_texts, texts_room;
    // Of an archive in mappings: how the first n_stored arrays' data, which are the file's own bytes, become their elements.
    clv__element *stored;
    size_t n_stored, stored_room;
    clv__mapping *mappings; // owned
    size_t n_mappings, mappings_room;
    float *numbers; // of the array that clv__archive_data converted last, and room for so many
    size_t numbers_room;
    float *halves; // what each two bytes of f16 are
};

clv_status clv__archive_create(clv__error *error, const char *path, clv_archive **out);
/** Add without looking for duplicates: for readers that have done so. `array` is taken over, name and data.
 */
clv_status clv__archive_take(clv_archive *archive, clv_array *array);
clv_status clv__archive_append_text(clv_archive *archive, const char *key, const char *text);
/** How the data of the last array become its elements; those of all before it are said. false: no memory. */
bool clv__archive_store(clv_archive *archive, clv__element element);
/** The elements of one of its arrays, until the next call: of what is mapped, that alone is converted. CLV_E_HOST_MEMORY */
clv_status clv__archive_data(clv_archive *archive, const clv_array *array, const void **out);
/** Keys of texts that say why an array of the file was not read: this and its name. */
#define CLV__UNREAD "cleave.unread."
/** Why an array of the file was not read; NULL: there is none of that name, or it was. Borrowed. */
const char *clv__archive_unread(const clv_archive *archive, const char *name);

/** Where a runtime keeps its last sentence; NULL for no runtime. */
clv__error *clv__io_error(clv_runtime *runtime);

/** Bytes of one element; 0 for NONE, and for f16 and bf16, of which no array is made. */
size_t clv__array_dtype_bytes(clv_dtype type);

#endif
