// SPDX-License-Identifier: Apache-2.0
#include "exec/reference.h"

static void widen(const clv__desc *desc, const void *from, double *to) {
    int64_t n = clv__numel(desc);
    const float *f = from;
    const int32_t *i = from;
    for (int64_t at = 0; at < n; at++) to[at] = desc->dtype == CLV_DTYPE_I32 ? (double)i[at] : (double)f[at];
}

static void narrow(const clv__desc *desc, const double *from, void *to) {
    int64_t n = clv__numel(desc);
    float *f = to;
    int32_t *i = to;
    for (int64_t at = 0; at < n; at++) {
        if (desc->dtype == CLV_DTYPE_I32) {
            i[at] = (int32_t)from[at];
        } else {
            f[at] = (float)from[at];
        }
    }
}

void clv__reference_call(void *context, void *const *pointers) {
    const clv__op_io *io = context;
    double *room = pointers[io->n_in + io->n_out];
    double none[1];
    if (!room) room = none; // every tensor is empty: references still get addresses
    clv__ref ref = {.io = io};
    for (int i = 0; i < io->n_in; i++) {
        if (!clv__has_in(io, i)) continue;
        ref.in[i] = room;
        room += clv__numel(&io->in[i]);
        widen(&io->in[i], pointers[i], ref.in[i]);
    }
    for (int i = 0; i < io->n_out; i++) {
        ref.out[i] = room;
        room += clv__numel(&io->out[i]);
    }
    io->op->reference(&ref);
    for (int i = 0; i < io->n_in; i++) {
        if (io->op->mutates & (1u << i) && ref.in[i]) narrow(&io->in[i], ref.in[i], pointers[i]);
    }
    for (int i = 0; i < io->n_out; i++) narrow(&io->out[i], ref.out[i], pointers[io->n_in + i]);
}
