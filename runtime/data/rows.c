// SPDX-License-Identifier: Apache-2.0
// What is found out by looking at the rows of a dataset: the first value that is not finite, and a number by which a training
// knows its data again.
#include "data/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"

// ---- values that are not finite -----------------------------------------------------------------------------

/** Room for one row of each field; NULL: none, and what was taken is freed. */
static bool take_room(const clv_dataset *dataset, int n, void **rows, int64_t *numel) {
    for (int k = 0; k < n; k++) {
        const clv_port port = clv__dataset_field(dataset, k);
        const clv_shape shape = clv_port_shape(&port, 1);
        numel[k] = clv_shape_numel(&shape);
        rows[k] = clv__alloc((size_t)numel[k], sizeof(float)); // i32 is as large
        if (rows[k]) continue;
        while (k-- > 0) free(rows[k]);
        return false;
    }
    return true;
}

static bool all_finite(const float *values, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(values[i]) && values[i] != -INFINITY) return false; // masks are made of that
    return true;
}

int64_t clv__dataset_not_finite(const clv_dataset *dataset) {
    void *rows[CLV__MOST_FIELDS];
    int64_t numel[CLV__MOST_FIELDS], found = -1;
    const int n = clv__dataset_fields(dataset);
    if (dataset->draw || !take_room(dataset, n, rows, numel)) return -1;
    for (int64_t i = 0; i < dataset->count && found < 0; i++) {
        clv_dataset_read(dataset, i, rows);
        for (int k = 0; k < n && found < 0; k++)
            if (clv__dataset_field(dataset, k).dtype != CLV_DTYPE_I32 && !all_finite(rows[k], numel[k]))
                found = i;
    }
    for (int k = 0; k < n; k++) free(rows[k]);
    return found;
}

// ---- known again --------------------------------------------------------------------------------------------

static uint64_t digest_add(uint64_t digest, const void *bytes, size_t n) {
    return XXH64(bytes, n, digest);
}

uint64_t clv__digest_number(uint64_t digest, int64_t number) {
    uint8_t bytes[8]; // the same on machines of either byte order
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    return digest_add(digest, bytes, sizeof bytes);
}

uint64_t clv__digest_text(uint64_t digest, const char *text) {
    return digest_add(digest, text, strlen(text) + 1);
}

static uint64_t digest_row(uint64_t digest, const int32_t *values, int64_t n) {
    for (int64_t i = 0; i < n; i++) digest = clv__digest_number(digest, values[i]);
    return digest;
}

bool clv__dataset_digest(const clv_dataset *dataset, uint64_t *out) {
    enum { ROWS = 64 }; // of all, evenly spread, the first and the last among them
    void *rows[CLV__MOST_FIELDS];
    int64_t numel[CLV__MOST_FIELDS];
    const int n = clv__dataset_fields(dataset);
    uint64_t digest = clv__digest_number(0, dataset->count);
    for (int k = 0; k < n; k++) {
        const clv_port port = clv__dataset_field(dataset, k);
        digest = clv__digest_text(digest, port.name);
        digest = clv__digest_number(clv__digest_number(digest, port.dtype), port.classes);
        for (int d = 0; d < CLV_MAX_RANK - 1 && port.dims[d]; d++)
            digest = clv__digest_number(digest, port.dims[d]);
    }
    if (dataset->digest) {
        *out = dataset->digest(dataset, digest);
        return true;
    }
    if (!take_room(dataset, n, rows, numel)) return false;
    for (int64_t i = 0; i < ROWS && i < dataset->count; i++) {
        const int64_t at = dataset->count <= ROWS ? i : i * (dataset->count - 1) / (ROWS - 1);
        clv_dataset_read(dataset, at, rows);
        for (int k = 0; k < n; k++) digest = digest_row(digest, rows[k], numel[k]);
    }
    for (int k = 0; k < n; k++) free(rows[k]);
    *out = digest;
    return true;
}
