// SPDX-License-Identifier: Apache-2.0
#include "exec/reference.h"

#include "tensor/dtype.h"

static void widen(const clv__desc *desc, const void *from, double *to) {
    clv__elements_widen(desc->dtype, from, clv__numel(desc), to);
}

static void narrow(const clv__desc *desc, const double *from, void *to) {
    clv__elements_narrow(desc->dtype, from, clv__numel(desc), to);
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
        if (io->op->mutates >> i & 1 && ref.in[i]) narrow(&io->in[i], ref.in[i], pointers[i]);
    }
    for (int i = 0; i < io->n_out; i++) narrow(&io->out[i], ref.out[i], pointers[io->n_in + i]);
}
