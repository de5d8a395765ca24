// SPDX-License-Identifier: Apache-2.0
// causal_mask: what comes later in time is hidden from attention.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "ops/lower.h"

typedef struct mask_attrs {
    float fill;
} mask_attrs;

static clv_status infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 0, "x", CLV_DTYPE_F32, error));
    if (io->in[0].shape.rank < 2) CLV_FAIL(error, CLV_E_SHAPE, "x must be [...,T,S]");
    io->n_out = 1;
    io->out[0] = io->in[0];
    return CLV_OK;
}

static void plain(clv__launches *list, const clv__op_io *io) {
    const clv_shape *x = &io->in[0].shape;
    int64_t n = clv__numel(&io->in[0]);
    if (n == 0) return;
    clv__launch *launch = clv__launch_kernel(list, "mask", "causal_mask");
    clv__arg_out_as(list, launch, io, 0, "T_Y");
    clv__arg_in_as(list, launch, io, 0, "T_X");
    CLV__ARGS_I32(list, launch, n, x->dims[x->rank - 2], x->dims[x->rank - 1]);
    clv__arg_f32(list, launch, ((const mask_attrs *)io->attrs)->fill);
    clv__launch_over(list, launch, CLV__ELEMENTS, n);
}

static void reference(const clv__ref *ref) {
    const clv_shape *x = &ref->io->in[0].shape;
    int64_t n = clv__numel(&ref->io->in[0]), T = x->dims[x->rank - 2], S = x->dims[x->rank - 1];
    for (int64_t i = 0; i < n; i++) {
        int64_t s = i % S, t = i / S % T;
        ref->out[0][i] = s <= t + S - T ? ref->in[0][i] : (double)((const mask_attrs *)ref->io->attrs)->fill;
    }
}

static bool sample(int i, clv__sample *out) {
    static const struct {
        const char *label;
        int rank;
        int64_t x[4];
        float fill;
    } cases[] = {
        {"5x5", 2, {5, 5}, -2.5f},
        {"wider than high", 3, {3, 4, 7}, 0},
        {"higher than wide", 2, {9, 4}, 1},
        {"heads", 4, {2, 3, 17, 17}, -1e30f},
        {"one", 2, {1, 1}, 3},
        {"none", 3, {0, 4, 4}, 0},
    };
    if (i < 0 || (size_t)i >= sizeof cases / sizeof *cases) return false;
    snprintf(out->label, sizeof out->label, "%s", cases[i].label);
    memcpy(out->attrs, &(mask_attrs){cases[i].fill}, sizeof(mask_attrs));
    out->n_in = 1;
    out->in[0] = clv__f32(clv_shape_make(cases[i].rank, cases[i].x));
    out->no_gradient = cases[i].fill < -1e3f; // sums in which differences would be lost
    out->quick = i < 3;
    return true;
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    (void)node;
    dx[0] = clv_causal_mask(dy[0], 0);
}

static const clv__variant variants[] = {{"plain", .lower = plain}, {0}};

/** Along every dimension but the last two. */
static bool split(const clv__op_io *io, int i, clv__split *out) {
    clv__split_all(io, i, out);
    return i + 2 < io->in[0].shape.rank;
}

const clv__op clv__op_causal_mask = {
    .name = "causal_mask",
    .attrs_bytes = sizeof(mask_attrs),
    .inplace = 1,
    .half_in = 1,
    .half_out = 1,
    .infer = infer,
    .grad = CLV__TRAINS(grad),
    .variants = variants,
    .reference = reference,
    .sample = CLV__TRAINS(sample),
    .split = split,
};

clv_tensor *clv_causal_mask(clv_tensor *x, float fill) {
    return clv__node_add(&clv__op_causal_mask, &(mask_attrs){fill}, &x, 1, 0);
}
