// SPDX-License-Identifier: Apache-2.0
// The registry: ops.def as a table of descriptors. No op is known by name anywhere else.
#include <stdio.h>
#include <string.h>

#include "graph/op.h"

#define OP(symbol) extern const clv__op symbol;
#include "ops/ops.def"
#undef OP

const clv__op *const clv__ops[] = {
#define OP(symbol) &symbol,
#include "ops/ops.def"
#undef OP
    NULL,
};

const clv__op *clv__op_find(const char *name) {
    for (int i = 0; name && clv__ops[i]; i++) {
        if (strcmp(clv__ops[i]->name, name) == 0) return clv__ops[i];
    }
    return NULL;
}

const char *clv__op_nearest(const char *name, clv_nearest *nearest) {
    *nearest = (clv_nearest){.word = name};
    for (int i = 0; clv__ops[i]; i++) clv_nearest_offer(nearest, clv__ops[i]->name);
    return clv_nearest_text(nearest);
}

bool clv__op_sample(const clv__op *op, int i, clv__sample *sample) {
    *sample = (clv__sample){0};
    if (op->sample) return op->sample(i, sample);
    if (!op->samples || i < 0) return false;
    for (int k = 0; k <= i; k++)
        if (!op->samples[k].label) return false;
    const clv__sample_row *row = &op->samples[i];
    snprintf(sample->label, sizeof sample->label, "%s", row->label);
    if (row->attrs) memcpy(sample->attrs, row->attrs, op->attrs_bytes);
    sample->n_in = row->n_in ? row->n_in : 1;
    for (int k = 0; k < sample->n_in; k++) {
        if (row->left_out & 1u << k) continue;
        sample->in[k] = row->i32 & 1u << k ? clv__i32(row->in[k]) : clv__f32(row->in[k]);
        sample->fill[k] = row->fill[k];
    }
    sample->quick = row->quick;
    sample->no_gradient = row->no_gradient;
    if (op->adapt) op->adapt(sample);
    return true;
}
