// SPDX-License-Identifier: Apache-2.0
// The only way of this library to a file of the user's. Reading: whole files of known size, at checked
// offsets. Writing: beside the old file, synced, renamed, so that a fault leaves what was there. Nothing here
// knows a format.
#ifndef CLV_IO_FILE_H
#define CLV_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/** What a reader reads from: a regular file, or bytes in memory (the fuzz drivers). */
typedef struct clv__input {
    clv__error *error;
    const char *path; // borrowed; for sentences
    const uint8_t *memory;
    int fd;         // -1 when it is memory
    uint64_t bytes; // size of the file
} clv__input;

/** Open a file. On failure there is nothing to close. Errors  CLV_E_IO */
clv_status clv__input_open(clv__error *error, const char *path, clv__input *input);
void clv__input_memory(clv__error *error, const char *path, const void *bytes, size_t size,
                       clv__input *input);
/** Read exactly `bytes` at `offset`. Errors  CLV_E_IO  the driver fails, or the file has become shorter */
clv_status clv__input_read(const clv__input *input, uint64_t offset, void *to, size_t bytes);
void clv__input_close(clv__input *input);
/** The whole file in memory, to be read alone, until munmap of input->bytes; of an empty one an empty text, which is not unmapped. A file
 *  that somebody cuts meanwhile ends the process, as any mapping does. Errors  CLV_E_IO, CLV_E_UNSUPPORTED */
clv_status clv__input_map(const clv__input *input, const uint8_t **out);

/** A file that is being written. All zero is none. */
typedef struct clv__output {
    clv__error *error;
    const char *path; // borrowed; for sentences
    char *target,
        *temp; // where it goes (links followed), and the temporary beside it; temp NULL: written in place
    int fd;
    bool open;
    mode_t mode; // of the file that was there; 0: none was
} clv__output;

/**
 * Begin to write a file: opens `PATH.tmp`, alone (a lock keeps other writers out, and lets the next one take
 * over what a killed one left). A device or pipe is written in place; a pipe must have a reader. On failure
 * there is nothing to abort.
 * Errors  CLV_E_IO, CLV_E_HOST_MEMORY
 */
clv_status clv__output_open(clv__error *error, const char *path, clv__output *output);
/** Append. On failure the output is aborted. Errors  CLV_E_IO */
clv_status clv__output_write(clv__output *output, const void *bytes, size_t size);
/**
 * Sync, and put the file in its place; with `keep_previous` the one that was there becomes `PATH.prev`.
 * On failure the output is aborted, and what was there is there. Errors  CLV_E_IO, CLV_E_HOST_MEMORY
 */
clv_status clv__output_commit(clv__output *output, bool keep_previous);
/** Give up: the temporary goes, what was there stays. Fine on a finished, aborted or zeroed output. */
void clv__output_abort(clv__output *output);

/**
 * A trial before long work: can a file be written there at its end? Makes the temporary and takes it away
 * again. A pipe is not opened: that would end its reader.
 * Errors  as clv__output_open
 */
clv_status clv__output_try(clv__error *error, const char *path, bool keep_previous);

/** `PATH.prev`; NULL if memory is out. Free it. */
char *clv__previous_path(const char *path);

#endif
