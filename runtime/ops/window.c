// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

clv__windows clv__windows_of(const clv_shape *x, const clv_shape *y, const int64_t *kernel,
                             const int32_t *stride, const int32_t *padding, const int32_t *dilation) {
    clv__windows w = {.dims = x->rank - 2};
    for (int d = 0; d < w.dims && d < CLV__WINDOW_DIMS; d++) {
        w.in[d] = x->dims[2 + d];
        w.out[d] = y->dims[2 + d];
        w.kernel[d] = kernel[d];
        w.stride[d] = stride[d];
        w.padding[d] = padding[d];
        w.dilation[d] = dilation[d];
    }
    return w;
}

const char *clv__window_axis(int dims, int d) {
    static const char *const names[] = {"D", "H", "W"};
    return names[CLV__WINDOW_DIMS - dims + d];
}

int64_t clv__window_product(const clv__windows *w, const int64_t *sizes) {
    int64_t product = 1;
    for (int d = 0; d < w->dims; d++) product *= sizes[d];
    return product;
}

clv__windows clv__windows_solid(const clv__windows *w) {
    clv__windows s = {.dims = CLV__WINDOW_DIMS};
    for (int d = 0; d < CLV__WINDOW_DIMS; d++) {
        const int from = d - (CLV__WINDOW_DIMS - w->dims);
        s.in[d] = from < 0 ? 1 : w->in[from];
        s.out[d] = from < 0 ? 1 : w->out[from];
        s.kernel[d] = from < 0 ? 1 : w->kernel[from];
        s.stride[d] = from < 0 ? 1 : w->stride[from];
        s.padding[d] = from < 0 ? 0 : w->padding[from];
        s.dilation[d] = from < 0 ? 1 : w->dilation[from];
    }
    return s;
}

void clv__window_inside(const clv__windows *s, const int64_t *o, int64_t *start, int64_t *from, int64_t *to) {
    for (int d = 0; d < CLV__WINDOW_DIMS; d++) {
        const int64_t dilation = s->dilation[d], first = o[d] * s->stride[d] - s->padding[d];
        start[d] = first;
        from[d] = first < 0 ? clv__div_up(-first, dilation) : 0;
        to[d] = s->kernel[d];
        if (first + (to[d] - 1) * dilation >= s->in[d])
            to[d] = first < s->in[d] ? clv__div_up(s->in[d] - first, dilation) : 0;
    }
}

void clv__window_next(const clv__windows *s, int64_t *o) {
    for (int d = CLV__WINDOW_DIMS - 1; d >= 0 && ++o[d] == s->out[d]; d--) o[d] = 0;
}

bool clv__dhw(const clv__call *call, const char *name, clv__ints *list) {
    if (list->n != 1 && list->n != CLV__WINDOW_DIMS) {
        clv__graph_fail(call->graph, CLV_E_VALUE, "%s: %s has %d numbers, it must have 1 or 3",
                        call->op->name, name, list->n);
        return false;
    }
    for (; list->n < CLV__WINDOW_DIMS; list->n++) list->at[list->n] = list->at[0];
    return true;
}
