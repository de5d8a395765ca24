// SPDX-License-Identifier: Apache-2.0
// A checkpoint is a safetensors file, so that ordinary tools open it, whose header begins with a checksum
// over every byte of the file (the checksum's own digits count as '0'). What is in it is the trainer's
// business.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "io/formats.h"
#include "io/shown.h"

// The file's first bytes after the length of the header: this, 16 hexadecimal digits, and a quote.
#define PREFIX "{\"__metadata__\":{\"" CLV__CHECKSUM_KEY "\":\"xxh64:"
#define ZERO_DIGITS "0000000000000000"
enum { DIGITS = sizeof ZERO_DIGITS - 1, DIGITS_AT = 8 + sizeof PREFIX - 1 };

static void write_digits(uint64_t hash, char *to) {
    char text[DIGITS + 1];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    memcpy(to, text, DIGITS);
}

clv_status clv__checkpoint_write(const clv_archive *archive, const char *path) {
    CLV_TRY(CLV__GIVEN(NULL, archive));
    CLV_TRY(CLV__GIVEN(archive->error, path));
    clv__safetensors_layout layout;
    CLV_TRY(clv__safetensors_layout_init(archive, path, "xxh64:" ZERO_DIGITS, &layout));
    clv_status status = CLV_OK;
    XXH64_state_t *state = XXH64_createState();
    if (state) {
        XXH64_reset(state, 0);
        XXH64_update(state, layout.header, layout.header_bytes);
        for (size_t i = 0; i < layout.n_arrays; i++) {
            size_t bytes = clv_array_bytes(layout.arrays[i]);
            if (bytes > 0) XXH64_update(state, layout.arrays[i]->data, bytes);
        }
        write_digits(XXH64_digest(state), layout.header + DIGITS_AT);
        XXH64_freeState(state);
        status = clv__safetensors_write(archive, &layout, path, true);
    } else {
        status = clv__error_set(archive->error, CLV_E_HOST_MEMORY,
                                "cannot write '%s': no host memory for a checksum", path);
    }
    clv__safetensors_layout_reset(&layout);
    return status;
}

/** The checksum of everything, and the digits that stand in the file. */
static clv_status hash_input(clv__input *input, XXH64_state_t *state, char *piece, size_t room,
                             char *digits) {
    XXH64_reset(state, 0);
    for (uint64_t at = 0; at < input->bytes;) {
        size_t n = input->bytes - at < room ? (size_t)(input->bytes - at) : room;
        CLV_TRY(clv__input_read(input, at, piece, n));
        if (at == 0) { // the caller has seen that the first piece holds prefix and digits
            memcpy(digits, piece + DIGITS_AT, DIGITS);
            memcpy(piece + DIGITS_AT, ZERO_DIGITS, DIGITS);
        }
        XXH64_update(state, piece, n);
        at += n;
    }
    return CLV_OK;
}

static clv_status verify(clv__input *input) {
    enum { PIECE = 1 << 20 };
    char digits[DIGITS], wanted[DIGITS], prefix[DIGITS_AT + DIGITS + 1];
    if (input->bytes < sizeof prefix) {
        CLV_FAIL(input->error, CLV_E_FORMAT, "'%s' is no checkpoint: it has %" PRIu64 " bytes", input->path,
                 input->bytes);
    }
    CLV_TRY(clv__input_read(input, 0, prefix, sizeof prefix));
    if (memcmp(prefix + 8, PREFIX, sizeof PREFIX - 1) != 0 || prefix[DIGITS_AT + DIGITS] != '"') {
        CLV_FAIL(input->error, CLV_E_FORMAT,
                 "'%s' is no checkpoint: its header does not begin with a checksum. "
                 "Weights can be loaded from it, but training cannot be resumed",
                 input->path);
    }
    XXH64_state_t *state = XXH64_createState();
    char *piece = malloc(PIECE);
    clv_status status = state && piece
                            ? hash_input(input, state, piece, PIECE, digits)
                            : clv__error_set(input->error, CLV_E_HOST_MEMORY,
                                             "'%s': no host memory to verify its checksum", input->path);
    if (status == CLV_OK) {
        write_digits(XXH64_digest(state), wanted);
        if (memcmp(digits, wanted, DIGITS) != 0) {
            clv__shown_text shown;
            status = clv__error_set(
                input->error, CLV_E_FORMAT, "'%s' is damaged: its checksum is %.*s, its content has %.*s",
                input->path, (int)DIGITS, clv__shown_bytes(digits, DIGITS, &shown), (int)DIGITS, wanted);
        }
    }
    if (state) XXH64_freeState(state);
    free(piece);
    return status;
}

clv_status clv__checkpoint_read(clv__input *input, clv_archive **out) {
    // The format first: "cut short at this tensor" says more than "the checksum differs".
    CLV_TRY(clv__safetensors_read(input, out));
    clv_status status = verify(input);
    if (status != CLV_OK) {
        clv_archive_destroy(*out);
        *out = NULL;
    }
    return status;
}

static clv_status read_file(clv__error *error, const char *path, clv_archive **out) {
    *out = NULL;
    clv__input input;
    CLV_TRY(clv__input_open(error, path, &input));
    clv_status status = clv__foreign_check(&input, CLV__WANT_CHECKPOINT);
    if (status == CLV_OK) status = clv__checkpoint_read(&input, out);
    clv__input_close(&input);
    return status;
}

clv_status clv__checkpoint_read_file(clv_runtime *runtime, const char *path, clv_archive **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), path));
    clv__error *error = clv__io_error(runtime);
    clv_status status = read_file(error, path, out);
    if (status != CLV_E_FORMAT && status != CLV_E_IO) return status;
    // Is the one before it whole? Its own faults are not told: the first sentence is the one that matters.
    char *previous = clv__previous_path(path);
    clv_archive *archive = NULL;
    if (previous && read_file(NULL, previous, &archive) == CLV_OK) {
        if (error) {
            clv__error_set(error, status, "%s. The one before it is whole: resume from '%s'",
                           clv__error_text(error), previous);
        }
    }
    clv_archive_destroy(archive);
    free(previous);
    return status;
}
