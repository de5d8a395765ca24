// SPDX-License-Identifier: Apache-2.0
// causal_mask: what comes later in time is hidden from attention.
#include "cleave/ops.h"
#include "graph/signature.h"
#include "ops/lower.h"

typedef struct mask_attrs {
    float fill;
} mask_attrs;

static void plain(clv__launches *list, const clv__op_io *io) {
    const clv_shape *x = &io->in[0].shape;
    const int64_t n = clv__numel(&io->in[0]);
    CLV__LAUNCH(list, io, "mask", "causal_mask", CLV__ELEMENTS, n, "o0=T_Y i0=T_X",
                CLV__INTS(n, x->dims[x->rank - 2], x->dims[x->rank - 1]),
                CLV__FLOATS(((const mask_attrs *)io->attrs)->fill));
}

static void reference(const clv__ref *ref) {
    const clv_shape *x = &ref->io->in[0].shape;
    int64_t n = clv__numel(&ref->io->in[0]), T = x->dims[x->rank - 2], S = x->dims[x->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        int64_t s = i % S, t = i / S % T;
        ref->out[0][i] = s <= t + S - T ? ref->in[0][i] : (double)((const mask_attrs *)ref->io->attrs)->fill;
    }
}

static const clv__sample_row samples[] = {
    {"5x5", {CLV__DIMS(5, 5)}, .attrs = &(mask_attrs){-2.5f}, .quick = true},
    {"wider than high", {CLV__DIMS(3, 4, 7)}, .quick = true},
    {"higher than wide", {CLV__DIMS(9, 4)}, .attrs = &(mask_attrs){1}, .quick = true},
    {"heads",
     {CLV__DIMS(2, 3, 17, 17)},
     &(mask_attrs){-1e30f},
     .no_gradient = true}, // differences would be lost
    {"one", {CLV__DIMS(1, 1)}, .attrs = &(mask_attrs){3}},
    {"none", {CLV__DIMS(0, 4, 4)}, .n_in = 1},
    {0}};

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    (void)node;
    dx[0] = clv_causal_mask(dy[0], 0);
}

static const clv__variant variants[] = {{"plain", .lower = plain}, {0}};

CLV__OP(causal_mask) = {
    .name = "causal_mask",
    .inputs = CLV__INPUTS({"x", "f32[*,T,S]"}),
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(NUMBER, mask_attrs, fill, "-inf")}),
    .outputs = CLV__OUTPUTS({"y", "like x"}),
    .attrs_bytes = sizeof(mask_attrs),
    .inplace = 1,
    .half_in = 1,
    .half_out = 1,
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .samples = CLV__TRAINS(samples),
    .split = clv__split_matrices,
};
