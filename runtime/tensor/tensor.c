// SPDX-License-Identifier: Apache-2.0
// Shapes.
#include "tensor/shape.h"

#include <stdio.h>

static bool has_rank(const clv_shape *shape) {
    return shape && shape->rank >= 0 && shape->rank <= CLV_MAX_RANK;
}

const char *clv__shape_fault(const clv_shape *shape) {
    _Static_assert(CLV_MAX_RANK == 8, "the sentence below names it");
    if (!has_rank(shape)) return "its rank is outside 0 to 8";
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return "a dimension is negative";
    }
    return clv_shape_numel(shape) < 0 ? "it has too many elements to count" : NULL;
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
