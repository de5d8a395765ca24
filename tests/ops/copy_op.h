// SPDX-License-Identifier: Apache-2.0
// An op y = x made of copies, for tests of what judges ops: no kernel stands in the way.
#ifndef CLV_TESTS_OPS_COPY_OP_H
#define CLV_TESTS_OPS_COPY_OP_H

#include "graph/op.h"

static clv_status copy_infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 0, "x", CLV_DTYPE_F32, error));
    io->n_out = 1;
    io->out[0] = io->in[0];
    return CLV_OK;
}

static void copy_reference(const clv__ref *ref) {
    for (int64_t i = 0; i < clv__numel(&ref->io->in[0]); i++) ref->out[0][i] = ref->in[0][i];
}

static inline size_t copy_bytes(const clv__op_io *io) {
    return (size_t)clv__numel(&io->in[0]) * sizeof(float);
}

static void copy_lower(clv__launches *list, const clv__op_io *io) {
    clv__launch_copy(list, 0, 0, copy_bytes(io));
}

static void copy_last_forgotten(clv__launches *list, const clv__op_io *io) {
    clv__launch_copy(list, 0, 0, copy_bytes(io) - sizeof(float));
}

/** One element more than there is; then what is right. */
static void copy_past_the_end(clv__launches *list, const clv__op_io *io) {
    clv__launch_fill(list, 0, copy_bytes(io) + sizeof(float), 0);
    copy_lower(list, io);
}

static bool copy_never(const clv_device_info *device, const clv__op_io *io) {
    return false;
}

#endif
