// SPDX-License-Identifier: Apache-2.0
// Shapes.
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

clv_shape clv_shape_make(int rank, const int64_t *dims) {
    clv_shape shape = {.rank = rank > 0 && !dims ? -1 : rank};
    for (int i = 0; dims && i < rank && i < CLV_MAX_RANK; i++) shape.dims[i] = dims[i];
    return shape;
}

clv_shape clv_port_shape(const clv_port *port, int64_t n) {
    clv_shape shape = {1, {n}};
    for (int i = 0; i < CLV_MAX_RANK - 1 && port->dims[i]; i++) shape.dims[shape.rank++] = port->dims[i];
    return shape;
}

static bool has_rank(const clv_shape *shape) {
    return shape && shape->rank >= 0 && shape->rank <= CLV_MAX_RANK;
}

// A zero does not hide what stands beside it: an op may take the zero away, or look at the other dimensions alone. So the product
// of the dimensions but zeros is bounded, and with it each of them, and any product of some. Sums and bytes of such stay countable.
static const int64_t most_elements = INT64_C(1) << 55;

int64_t clv_shape_numel(const clv_shape *shape) {
    int64_t product = 1;
    bool empty = false;
    if (!has_rank(shape)) return -1;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t dim = shape->dims[i];
        if (dim < 0 || (dim && product > most_elements / dim)) return -1;
        if (dim)
            product *= dim;
        else
            empty = true;
    }
    return empty ? 0 : product;
}

const char *clv__shape_fault(const clv_shape *shape) {
    _Static_assert(CLV_MAX_RANK == 8, "the sentence below names it");
    if (!has_rank(shape)) return "its rank is outside 0 to 8";
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return "a dimension is negative";
    }
    return clv_shape_numel(shape) < 0 ? "it has too many elements to count" : NULL;
}

bool clv_shape_equal(const clv_shape *a, const clv_shape *b) {
    return has_rank(a) && has_rank(b) && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

char *clv_shape_text(const clv_shape *shape, char *text, size_t bytes) {
    size_t used = 0;
    if (!text || bytes == 0) return text;
    text[0] = 0;
    if (!has_rank(shape)) {
        if (shape) snprintf(text, bytes, "[rank %d]", shape->rank);
        return text;
    }
    for (int i = 0; i <= shape->rank && used < bytes; i++) {
        int n = i == shape->rank
                    ? snprintf(text + used, bytes - used, i ? "]" : "[]")
                    : snprintf(text + used, bytes - used, "%c%lld", i ? ',' : '[', (long long)shape->dims[i]);
        if (n < 0) break;
        used += (size_t)n;
    }
    return text;
}
