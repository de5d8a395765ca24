// SPDX-License-Identifier: Apache-2.0
// The formats' readers and writers on inputs and outputs of any kind: the public functions open files, the
// fuzz drivers hand over bytes. Results belong to the caller; on failure they are NULL or zeroed.
#ifndef CLV_IO_FORMATS_H
#define CLV_IO_FORMATS_H

#include "io/array.h"
#include "io/file.h"

/** Length of the header of a safetensors file at most, in bytes; the format's own limit. */
enum { CLV__SAFETENSORS_HEADER_BYTES = 100000000 };

/** The text whose value is a checkpoint's checksum; the readers below leave it out of the archive. */
#define CLV__CHECKSUM_KEY "cleave.checksum"

clv_status clv__safetensors_read(clv__input *input, clv_archive **out);
/** What is read of a file: all, into memory; the texts alone; or all, where it lies in the file, whose elements clv__archive_data gives. The
 *  header is checked in any case. */
typedef enum clv__archive_part { CLV__COPIED, CLV__TEXTS_ALONE, CLV__MAPPED } clv__archive_part;
clv_status clv__safetensors_read_part(clv_runtime *runtime, const char *path, clv__archive_part part,
                                      clv_archive **out);
/** Is it an index of weights in several files, by its name? */
bool clv__shards_is(const char *path);
/** What such an index names as one archive; of the texts alone no file but the index is read. As clv_safetensors_read. */
clv_status clv__shards_read(clv_runtime *runtime, const char *path, clv__archive_part part,
                            clv_archive **out);
/** What somebody asked for who gave a file. */
typedef enum clv__wanted {
    CLV__WANT_WEIGHTS,
    CLV__WANT_CHECKPOINT,
    CLV__WANT_ARRAY,
    CLV__WANT_ARRAYS,
    CLV__WANT_TABLE,
    CLV__WANT_TEXT, // any bytes, but those that stand for others
    CLV__WANT_TOKENIZER,
    CLV__WANT_MODEL, // as ONNX
    CLV__WANTED
} clv__wanted;
/** CLV_E_FORMAT for a file of a known kind that is not what is wanted: what it is, and what to do. */
clv_status clv__foreign_check(const clv__input *input, clv__wanted wanted);
/** What such bytes begin a file of, `a picture`; NULL: of a text, or of nothing that is known. Static. */
const char *clv__foreign_name(const void *bytes, size_t n);

/** The header of an archive, its length word included, and its arrays in the file's order. */
typedef struct clv__safetensors_layout {
    char *header;
    size_t header_bytes;
    const clv_array **arrays; // with their data one after the other this is the file
    size_t n_arrays;
} clv__safetensors_layout;

/** `checksum` NULL, or the text that becomes the first entry of the header. */
clv_status clv__safetensors_layout_init(const clv_archive *archive, const char *path, const char *checksum,
                                        clv__safetensors_layout *layout);
void clv__safetensors_layout_reset(clv__safetensors_layout *layout);
clv_status clv__safetensors_write(const clv_archive *archive, const clv__safetensors_layout *layout,
                                  const char *path, bool keep_previous);

clv_status clv__checkpoint_read(clv__input *input, clv_archive **out);
clv_status clv__npy_read(clv__input *input, clv_array *out);
enum { CLV__NPY_HEADER_BYTES = 384 }; // of a header that is written, at most
/** The header of an array's .npy file, and how many bytes of data follow it. CLV_E_VALUE */
clv_status clv__npy_header(clv__error *error, const clv_array *array, const char *path,
                           char header[CLV__NPY_HEADER_BYTES], size_t *header_bytes, size_t *data_bytes);
clv_status clv__npz_read(clv__input *input, clv_archive **out);
clv_status clv__idx_read(clv__input *input, clv_array *out);

/**
 * The array of that name, which must have this type and shape.
 *
 * Errors  CLV_E_NOT_FOUND  no such array;  CLV_E_DTYPE, CLV_E_SHAPE  it differs; the sentence has both, and
 *         the file
 */
CLV_MUST_CHECK clv_status clv__archive_require(const clv_archive *archive, const char *name, clv_dtype type,
                                               const clv_shape *shape, const clv_array **out);
CLV_MUST_CHECK clv_status clv__archive_set_int(clv_archive *archive, const char *key, int64_t value);
/** Written so that the same bits come back. */
CLV_MUST_CHECK clv_status clv__archive_set_real(clv_archive *archive, const char *key, double value);
/** A text that must be there and be a whole number, or a number.
 *  Errors  CLV_E_NOT_FOUND, CLV_E_FORMAT; the sentence names the file and the key. */
CLV_MUST_CHECK clv_status clv__archive_get_int(const clv_archive *archive, const char *key, int64_t *out);
CLV_MUST_CHECK clv_status clv__archive_get_real(const clv_archive *archive, const char *key, double *out);
/**
 * Write a checkpoint: a safetensors file with a checksum over every byte. The one that was there becomes
 * `PATH.prev`. At every moment one whole checkpoint is on the disk. Name arrays by section:
 * `model.fc.weight`, `optimizer.…`.
 *
 * Errors  as clv_safetensors_write
 */
CLV_MUST_CHECK clv_status clv__checkpoint_write(const clv_archive *archive, const char *path);
/**
 * Read a checkpoint and verify its checksum. If it is missing or damaged and `PATH.prev` is whole, the
 * sentence says that one can resume from that.
 *
 * Errors  as clv_safetensors_read;  CLV_E_FORMAT  also: no checkpoint, or the checksum does not match
 */
CLV_MUST_CHECK clv_status clv__checkpoint_read_file(clv_runtime *runtime, const char *path,
                                                    clv_archive **out);
/**
 * Read an IDX file, gzipped or not: unsigned bytes, i32 or f32.
 *
 * Errors  CLV_E_IO, CLV_E_FORMAT (magic, sizes, truncated, trailing bytes, bad CRC), CLV_E_UNSUPPORTED (other
 *         types), CLV_E_HOST_MEMORY
 * Source  LeCun, Cortes, Burges, "The MNIST database of handwritten digits", file format; RFC 1952 (gzip)
 */
CLV_MUST_CHECK clv_status clv__idx_read_file(clv_runtime *runtime, const char *path, clv_array *out);

#endif
