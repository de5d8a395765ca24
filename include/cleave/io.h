// SPDX-License-Identifier: Apache-2.0
// Arrays on the host and the files they live in: safetensors (weights), checkpoints, .npy, IDX.
// Every writer puts a new file together beside the old one and renames it at the end: a fault, a full disk or
// a kill leaves what was there. Every reader treats the file as hostile: it refuses before it allocates.
#ifndef CLEAVE_IO_H
#define CLEAVE_IO_H

#include "runtime.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A row-major array in host memory. All zero is an array of nothing; clv_array_reset gives it back to that. Its type is any
 *  but f16 and bf16: of those that are read, arrays of f32 are made. */
typedef struct clv_array {
    char *name; /**< in its file or archive; NULL for none */
    clv_dtype type;
    clv_shape shape;
    CLV_COUNT(shape) void *data; /**< aligned for its type when the library allocated it */
    bool borrowed;               /**< data belongs to someone else and outlives the array */
} clv_array;

/**
 * Storage of zeros for an array.
 *
 * array   the caller's; what it held is forgotten, not freed
 *
 * Errors  CLV_E_VALUE  type is NONE, f16 or bf16;  CLV_E_SHAPE  a negative dimension, or too large to count;
 *         CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_array_init(clv_runtime *runtime, clv_dtype type, const clv_shape *shape,
                                                 CLV_OUT clv_array *array);
/** Free the storage unless it is borrowed, and the name. NULL and a zeroed array are fine. */
CLV_API void clv_array_reset(clv_array *array);
/** Elements times element size. */
CLV_API size_t clv_array_bytes(const clv_array *array);

// ---------------------------------------------------------------------------------------------------------------
// Files

/**
 * A trial before long work: can a file be written there at the work's end? Makes the temporary file beside it
 * and takes it away again, so a folder that is missing or may not be written, a name that leaves no room for
 * the temporary's, and a file in the way are found now. A full disk is not. A pipe is not opened, as that would
 * end its reader.
 *
 * keep_previous   the file that is there will be kept as PATH.prev, as a checkpoint is
 *
 * Errors  CLV_E_IO; CLV_E_VALUE  no name; CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_file_check(clv_runtime *runtime, const char *path, bool keep_previous);
/**
 * Write a whole file. The one that is there is replaced when all of the new one is on the disk. A device or a
 * pipe is written in place.
 *
 * Errors  CLV_E_IO; CLV_E_VALUE  no name; CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_file_write(clv_runtime *runtime, const char *path,
                                                 CLV_COUNT(size) const void *bytes, size_t size);

// ---------------------------------------------------------------------------------------------------------------
// An archive: named arrays and named texts. What a safetensors file or a checkpoint holds.

typedef struct clv_archive clv_archive;

/** An empty archive. Destroy it with clv_archive_destroy, before the runtime. */
CLV_API CLV_MUST_CHECK clv_status clv_archive_create(clv_runtime *runtime, clv_archive **out);
CLV_API void clv_archive_destroy(clv_archive *archive);

/**
 * Add an array.
 *
 * name    UTF-8, not empty, not `__metadata__`, not there yet; copied
 * data    stays the caller's, is not copied, and must outlive the archive. NULL: zeros of the archive's own, to be filled through
 *         (*out)->data
 * out     borrowed, until the archive goes. NULL: not wanted
 *
 * Errors  CLV_E_VALUE  the name;  as clv_array_init
 */
CLV_API CLV_MUST_CHECK clv_status clv_archive_add(clv_archive *archive, const char *name, clv_dtype type,
                                                  const clv_shape *shape,
                                                  CLV_OR_NULL CLV_KEPT CLV_COUNT(shape) const void *data,
                                                  CLV_OR_NULL CLV_BORROWED clv_array **out);
/** The i-th array: in the order they were added, or stand in the file. NULL past the end. */
CLV_API CLV_OR_NULL clv_array *clv_archive_get(const clv_archive *archive, size_t i);
/** How many there are, by looking at each. */
static inline size_t clv_archive_count(const clv_archive *archive) {
    size_t n = 0;
    while (clv_archive_get(archive, n)) n++;
    return n;
}
/** The array of that name; NULL if there is none. */
CLV_API CLV_OR_NULL clv_array *clv_archive_find(const clv_archive *archive, const char *name);

/** Set a text (a safetensors file's metadata); replaces one of that key. Both are UTF-8 and copied. */
CLV_API CLV_MUST_CHECK clv_status clv_archive_set_text(clv_archive *archive, const char *key,
                                                       const char *text);
/** The text of a key; NULL if there is none. Borrowed, until the key is set again or the archive goes. */
CLV_API CLV_OR_NULL const char *clv_archive_text(const clv_archive *archive, const char *key);
/** The i-th key and its text; NULL past the end. */
CLV_API CLV_OR_NULL const char *clv_archive_text_at(const clv_archive *archive, size_t i,
                                                    CLV_OUT CLV_OR_NULL const char **text);

// ---------------------------------------------------------------------------------------------------------------
// Files.

/**
 * Read a safetensors file.
 *
 * Reads every dtype; F16 and BF16 become f32. The file's `__metadata__` becomes the archive's texts.
 * Refused: anything that is not exactly a header and its data (holes, overlaps, trailing bytes, duplicate
 * keys, sizes that overflow or disagree).
 *
 * out     owned by the caller; NULL on failure
 *
 * Errors  CLV_E_IO  cannot be read;  CLV_E_FORMAT  what is wrong, in which tensor, where;
 *         CLV_E_UNSUPPORTED  another dtype;  CLV_E_HOST_MEMORY
 * Source  the safetensors format, version 0.x (github.com/huggingface/safetensors, "Format")
 */
CLV_API CLV_MUST_CHECK clv_status clv_safetensors_read(clv_runtime *runtime, const char *path,
                                                       clv_archive **out);
/**
 * Write a safetensors file. The same archive gives the same bytes, in whatever order it was filled.
 *
 * Errors  CLV_E_IO  cannot be written, the disk is full; the file that was there is untouched
 */
CLV_API CLV_MUST_CHECK clv_status clv_safetensors_write(const clv_archive *archive, const char *path);

/**
 * Read an array in numpy's format: versions 1, 2, 3; little-endian f4, i4, i8, u1; f2 and f8 become f32
 * (rounded); C order; rank at most CLV_MAX_RANK.
 *
 * out     the caller's; reset it when done; all zero on failure
 *
 * Errors  CLV_E_IO, CLV_E_FORMAT, CLV_E_UNSUPPORTED (dtype, Fortran order, rank), CLV_E_HOST_MEMORY
 * Source  NEP 1, "A simple file format for NumPy arrays"
 */
CLV_API CLV_MUST_CHECK clv_status clv_npy_read(clv_runtime *runtime, const char *path,
                                               CLV_OUT clv_array *out);
/**
 * Read numpy's archive: arrays as of clv_npy_read, below 4 GiB. One that cannot be read is left out; text cleave.unread.NAME says why.
 *
 * out     owned by the caller; NULL on failure
 *
 * Errors  as clv_npy_read; CLV_E_FORMAT  also: no ZIP archive of .npy files, or a damaged one;
 *         CLV_E_UNSUPPORTED  also: encrypted, larger, packed in another way
 * Source  APPNOTE.TXT of the ZIP format; RFC 1951
 */
CLV_API CLV_MUST_CHECK clv_status clv_npz_read(clv_runtime *runtime, const char *path, clv_archive **out);
/**
 * Write an archive's arrays as numpy.savez does, for numpy.load: stored, without its texts. The same archive gives the same bytes. Below
 * 4 GiB.
 *
 * Errors  CLV_E_IO  cannot be written; the file that was there is untouched;  CLV_E_UNSUPPORTED  larger, or more than 65534 arrays
 */
CLV_API CLV_MUST_CHECK clv_status clv_npz_write(const clv_archive *archive, const char *path);
/** Write an array in numpy's format, version 1.0. Errors as clv_safetensors_write. */
CLV_API CLV_MUST_CHECK clv_status clv_npy_write(clv_runtime *runtime, const clv_array *array,
                                                const char *path);

#ifdef __cplusplus
}
#endif
#endif
