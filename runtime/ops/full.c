// SPDX-License-Identifier: Apache-2.0
// full: a tensor of one value. No kernel: every device can fill memory with four bytes, which an element is repeated to.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cleave/ops.h"
#include "graph/op.h"
#include "graph/signature.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef struct full_attrs {
    clv_dtype dtype;
    float value;
    clv_shape shape;
} full_attrs;

static clv_status full_infer(clv__op_io *io, clv__error *error) {
    const full_attrs *attrs = io->attrs;
    char text[128];
    const clv__dtype_row *row = clv__dtype(attrs->dtype);
    if (row->bytes == 0 || row->bytes > sizeof(uint32_t) || clv__is_half(attrs->dtype))
        CLV_FAIL(error, CLV_E_DTYPE, "the type is %s, it must be f32 or an integer of at most 4 bytes",
                 row->name);
    const char *fault = clv__shape_fault(&attrs->shape);
    if (fault)
        CLV_FAIL(error, CLV_E_SHAPE, "shape %s is not possible: %s",
                 clv_shape_text(&attrs->shape, text, sizeof text), fault);
    const double value = (double)attrs->value;
    if (attrs->dtype != CLV_DTYPE_F32 && (trunc(value) != value || value < row->least || value > row->most))
        CLV_FAIL(error, CLV_E_VALUE, "%g is no %s", value, row->name);
    return clv__one_out(io, (clv__desc){attrs->dtype, attrs->shape});
}

static void full_lower(clv__launches *list, const clv__op_io *io) {
    const full_attrs *attrs = io->attrs;
    int64_t n = clv__numel(&io->out[0]);
    if (n == 0) return;
    const size_t bytes = clv_dtype_bytes(attrs->dtype);
    const double value = (double)attrs->value;
    uint32_t pattern;
    for (size_t at = 0; at < sizeof pattern; at += bytes)
        clv__elements_narrow(attrs->dtype, &value, 1, (char *)&pattern + at);
    clv__launch_fill(list, 0, (size_t)n * bytes, pattern);
}

static void full_reference(const clv__ref *ref) {
    const full_attrs *attrs = ref->io->attrs;
    int64_t n = clv__numel(&ref->io->out[0]);
    for (int64_t i = 0; i < n; i++) ref->out[0][i] = attrs->value;
}

static bool full_sample(const clv__op *op, int i, clv__sample *sample) {
    (void)op;
    static const full_attrs cases[] = {
        {CLV_DTYPE_F32, 1.5f, {0}},           {CLV_DTYPE_I32, -7, {2, {3, 5}}},
        {CLV_DTYPE_F32, -0.25f, {1, {1025}}}, {CLV_DTYPE_F32, 1, {2, {0, 3}}},
        {CLV_DTYPE_U8, 200, {1, {7}}},        {CLV_DTYPE_BOOL, 1, {1, {6}}},
        {CLV_DTYPE_I8, -128, {1, {9}}},
    };
    if (i >= (int)(sizeof cases / sizeof *cases)) return false;
    char text[64];
    clv__format(sample->label, sizeof sample->label, "%s of %g",
                clv_shape_text(&cases[i].shape, text, sizeof text), (double)cases[i].value);
    memcpy(sample->attrs, &cases[i], sizeof cases[i]);
    sample->quick = true;
    return true;
}

static bool full_split(const clv__op_io *io, int i, clv__split *out) {
    if (i) return false;
    out->length = clv__split_length(&io->out[0].shape, 0);
    out->out[0] = 0;
    return true;
}

static void full_split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                             void *attrs) {
    (void)io;
    (void)split;
    ((full_attrs *)attrs)->shape.dims[0] = end - begin;
}

static const clv__variant full_variants[] = {{.name = "plain", .lower = full_lower}, {0}};

CLV__OP(full) = {
    .name = "full",
    .attrs_bytes = sizeof(full_attrs),
    .inputs = CLV__NO_INPUTS,
    .attributes = CLV__ATTRIBUTES({CLV__ATTRIBUTE(DTYPE, full_attrs, dtype, "1")},
                                  {CLV__ATTRIBUTE(LIST, full_attrs, shape, NULL)},
                                  {CLV__ATTRIBUTE(NUMBER, full_attrs, value, NULL)}),
    .outputs = CLV__OUTPUTS({"y", "any"}),
    .infer = full_infer,
    .variants = full_variants,
    .reference = full_reference,
    .sample = CLV__TRAINS(full_sample),
    .split = full_split,
    .split_attrs = full_split_attrs,
};
