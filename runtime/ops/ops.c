// SPDX-License-Identifier: Apache-2.0
// The registry: ops by number and by name, those of the library (list.cmake makes their table) and those of programs.
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "graph/op.h"

// Of programs: entries stay, so readers need no lock.
static const clv__op *enlisted[CLV__MAX_ENLISTED];
static atomic_int n_enlisted;

bool clv__op_enlist(const clv__op *op) {
    const int n = atomic_load(&n_enlisted);
    if (n == CLV__MAX_ENLISTED) return false;
    enlisted[n] = op;
    atomic_store(&n_enlisted, n + 1);
    return true;
}

bool clv__op_is_enlisted(const clv__op *op) {
    const int n = atomic_load(&n_enlisted);
    for (int i = 0; i < n; i++)
        if (enlisted[i] == op) return true;
    return false;
}

const clv__op *clv__op_at(int i) {
    if (i < clv__n_ops) return clv__ops[i];
    return i - clv__n_ops < atomic_load(&n_enlisted) ? enlisted[i - clv__n_ops] : NULL;
}

const clv__op *clv__op_find(const char *name) {
    const clv__op *op;
    for (int i = 0; name && (op = clv__op_at(i)); i++) {
        if (strcmp(op->name, name) == 0) return op;
    }
    return NULL;
}

const clv__variant *clv__variant_find(const clv__op *op, const char *name) {
    for (const clv__variant *v = op->variants; v && v->name; v++)
        if (strcmp(v->name, name) == 0) return v;
    return NULL;
}

const char *clv__op_nearest(const char *name, clv__nearest *nearest) {
    *nearest = (clv__nearest){.word = name};
    const clv__op *op;
    for (int i = 0; (op = clv__op_at(i)); i++) clv__nearest_offer(nearest, op->name);
    for (int i = 0; (op = clv__composites[i]); i++) clv__nearest_offer(nearest, op->name);
    return clv__nearest_text(nearest);
}

bool clv__op_sample(const clv__op *op, int i, clv__sample *sample) {
    *sample = (clv__sample){0};
    if (op->sample) return op->sample(op, i, sample);
    if (op->gradient_of) {
        if (!clv__pair_sample(op, i, sample)) return false;
        if (op->adapt) op->adapt(sample);
        return true;
    }
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
        if (row->whole && row->i32 & 1u << k) sample->in[k].dtype = row->whole;
        sample->fill[k] = row->fill[k];
    }
    sample->quick = row->quick;
    sample->no_gradient = row->no_gradient;
    if (op->adapt) op->adapt(sample);
    return true;
}
