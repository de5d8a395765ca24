// SPDX-License-Identifier: Apache-2.0
#include "ops/collapse.h"

void clv__strides_of(const clv_shape *shape, int64_t *strides) {
    int64_t stride = 1;
    for (int d = shape->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= shape->dims[d];
    }
}

void clv__strides_broadcast(const clv_shape *from, const clv_shape *to, int64_t *strides) {
    int64_t stride = 1;
    for (int d = to->rank - 1, f = from->rank - 1; d >= 0; d--, f--) {
        bool steps = f >= 0 && from->dims[f] != 1;
        strides[d] = steps ? stride : 0;
        if (f >= 0) stride *= from->dims[f];
    }
}

/** Do all tensors pass from dimension `a` to the next inner one, `b`, without a jump? */
static bool joins(const clv__walk *walk, int a, int b) {
    for (int t = 0; t < walk->n; t++) {
        if (walk->strides[t][a] != walk->strides[t][b] * walk->dims[b]) return false;
    }
    return true;
}

void clv__walk_collapse(clv__walk *walk) {
    int out = -1; // the last dimension kept
    for (int d = 0; d < walk->rank; d++) {
        if (walk->dims[d] == 1) continue;
        bool join = out >= 0 && joins(walk, out, d);
        if (!join) out++;
        walk->dims[out] = join ? walk->dims[out] * walk->dims[d] : walk->dims[d];
        for (int t = 0; t < walk->n; t++) walk->strides[t][out] = walk->strides[t][d];
    }
    if (out < 0) { // one element
        out = 0;
        walk->dims[0] = 1;
        for (int t = 0; t < walk->n; t++) walk->strides[t][0] = 1;
    }
    walk->rank = out + 1;
}

int64_t clv__walk_at(const clv__walk *walk, int t, int64_t index) {
    int64_t at = 0;
    for (int d = walk->rank - 1; d >= 0; d--) {
        at += index % walk->dims[d] * walk->strides[t][d];
        index /= walk->dims[d];
    }
    return at;
}
