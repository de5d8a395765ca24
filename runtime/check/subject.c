// SPDX-License-Identifier: Apache-2.0
// Samples as graphs; see subject.h.
#include "check/subject.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "graph/signature.h"
#include "ops/epilogue.h"
#include "tensor/dtype.h"

void clv__fill_values(const clv__fill *fill, const clv__desc *desc, uint64_t seed, uint64_t id,
                      double *values) {
    double lo = fill->lo, hi = fill->hi;
    int64_t n = clv__numel(desc);
    if (lo == 0 && hi == 0) lo = -1, hi = 1;
    clv__random random;
    clv__random_init(&random, seed, CLV__STREAM_TEST, id);
    clv__fill_kind kind = fill->kind;
    if (!clv__is_float(desc->dtype) && kind == CLV__FILL_UNIFORM) kind = CLV__FILL_INTEGER;
    for (int64_t i = 0; i < n; i++) {
        switch (kind) {
        case CLV__FILL_UNIFORM:
        case CLV__FILL_FIRST_INFINITE:
        case CLV__FILL_LAST_INFINITE: values[i] = lo + (hi - lo) * clv__random_uniform(&random); break;
        case CLV__FILL_INTEGER: values[i] = lo + clv__random_below(&random, (uint32_t)(hi - lo) + 1); break;
        // A quarter off the grid's corners: with a range around zero no value is nearer to zero than a quarter step.
        case CLV__FILL_DISTINCT: values[i] = lo + (hi - lo) * ((double)i + 0.25) / (double)n; break;
        }
    }
    for (int64_t i = n - 1; kind == CLV__FILL_DISTINCT && i > 0; i--) {
        int64_t j = clv__random_below(&random, (uint32_t)i + 1);
        double kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
    if (kind == CLV__FILL_FIRST_INFINITE && n > 0) values[0] = INFINITY;
    if (kind == CLV__FILL_LAST_INFINITE && n > 0) values[n - 1] = INFINITY;
    for (int64_t i = 0; i < n; i++) values[i] = clv__dtype_nearest(desc->dtype, values[i]);
}

void clv__sample_store(const clv__op *op, clv_dtype dtype, bool all, clv__sample *sample) {
    bool turn = true;
    size_t used = strlen(sample->label);
    for (int i = 0; i < sample->n_in; i++) {
        if (!(op->half_in >> i & 1) || sample->in[i].dtype != CLV_DTYPE_F32) continue;
        if (turn) sample->in[i].dtype = dtype;
        turn = all || !turn;
    }
    sample->stored = dtype;
    snprintf(sample->label + used, sizeof sample->label - used, ", %s%s", all ? "" : "some ",
             clv_dtype_name(dtype));
}

bool clv__sample_follow(const clv__op *op, clv__sample *sample) {
    size_t used = strlen(sample->label);
    clv__error error = {0};
    clv__op_io io = {.op = op, .attrs = sample->attrs, .n_in = sample->n_in, .in = sample->in};
    if (!op->epilogue || clv__epilogue_first(&io) + CLV__EPILOGUE_INPUTS > CLV__MAX_IN ||
        clv__op_infer(&io, &error) != CLV_OK || !clv__is_float(io.out[0].dtype) ||
        clv__numel(&io.out[0]) == 0)
        return false;
    sample->followed = sample->no_gradient = true;
    snprintf(sample->label + used, sizeof sample->label - used, ", with an epilogue");
    return true;
}

/** A further input of what follows. */
static clv_tensor *further(clv__subject *subject, clv_dtype dtype, clv_shape shape) {
    char name[16];
    int i = subject->sample.n_in++;
    snprintf(name, sizeof name, "further%d", i);
    subject->sample.in[i] = (clv__desc){dtype, shape};
    return subject->in[i] = clv_input(subject->graph, name, dtype, shape);
}

/** Batch norm with running statistics, of a result whose channels are where batch norm has them. */
static clv_tensor *normalised(clv__subject *subject, clv_tensor *y) {
    clv_tensor *of_channel[4];
    for (int k = 0; k < 4; k++)
        of_channel[k] = further(subject, CLV_DTYPE_F32, CLV_SHAPE(y->desc.shape.dims[1]));
    subject->sample.fill[subject->sample.n_in - 1] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 2};
    return clv_batch_norm(y, of_channel[0], of_channel[1], of_channel[2], of_channel[3], false, 0, 1e-5f);
}

/** What follows the op's result; it takes the place of it. Further inputs are made in the order in which they are read: the
 *  plan's use has them so. */
static clv_tensor *follow(clv__subject *subject, clv_tensor *y) {
    const clv_dtype dtype = y->desc.dtype;
    const clv_shape shape = y->desc.shape;
    int channels = subject->op->channels < 0 ? shape.rank + subject->op->channels : subject->op->channels;
    bool normalise = channels == 1 && shape.rank > 1;
    subject->sample.n_in = clv__epilogue_first(&subject->node->io);
    if (normalise) y = normalised(subject, y);
    y = clv_relu(clv_add(y, further(subject, dtype, shape)));
    if (!normalise && subject->op->channels < 0 && shape.rank > 1)
        y = clv_mul(y, further(subject, CLV_DTYPE_F32, CLV_SHAPE(shape.dims[channels])));
    else if (!normalise)
        y = clv_mul_scalar(y, 0.3f);
    return clv_sub(y, further(subject, dtype, shape));
}

static void add_target(clv__subject *subject, clv_tensor *tensor, const char *format, int i) {
    clv_output(tensor->kind == CLV__VALUE ? tensor : NULL, NULL);
    snprintf(subject->what[subject->n_targets], sizeof subject->what[0], format, i);
    subject->targets[subject->n_targets++] = tensor;
}

static void add_inputs(clv__subject *subject) {
    const clv__op *op = subject->op;
    const clv__sample *sample = &subject->sample;
    for (int i = 0; i < sample->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        if (sample->in[i].dtype == CLV_DTYPE_NONE) continue;
        if (op->random && i == sample->n_in - 1)
            subject->in[i] = clv__graph_random(subject->graph);
        else if (op->mutates >> i & 1)
            subject->in[i] =
                clv__persistent(subject->graph, name, sample->in[i], (clv_init){0}, CLV_PARAMETERS, false);
        else
            subject->in[i] = clv_input(subject->graph, name, sample->in[i].dtype, sample->in[i].shape);
    }
}

static void add_gradient(clv__subject *subject, clv_tensor *y) {
    clv_tensor *weights = clv_input(subject->graph, "loss_weights", CLV_DTYPE_F32, y->desc.shape);
    clv_tensor *loss = clv_sum(clv_mul(y, weights), NULL, 0, false);
    clv_backward(loss);
    if (subject->graph->error.status != CLV_OK) return;
    subject->loss = loss;
    add_target(subject, loss, "loss", 0);
    for (int i = 0; i < subject->sample.n_in; i++) {
        clv_tensor *gradient =
            subject->in[i] && subject->in[i]->requires_grad ? clv_gradient(subject->in[i]) : NULL;
        if (gradient && gradient->kind == CLV__VALUE) add_target(subject, gradient, "gradient of in%d", i);
    }
}

clv_status clv__subject_init(clv__subject *subject, clv_runtime *runtime, const clv__op *op,
                             const clv__sample *sample, bool with_gradient) {
    *subject = (clv__subject){.op = op, .sample = *sample};
    clv_status status = clv_graph_create(runtime, &subject->graph);
    if (status != CLV_OK) return status;
    add_inputs(subject);
    const bool composite = clv__is_composite(op);
    for (int i = 0; (op->grad || composite) && with_gradient && i < sample->n_in; i++)
        if (subject->in[i] && subject->in[i]->kind == CLV__INPUT && clv__is_float(subject->in[i]->desc.dtype))
            clv_requires_grad(subject->in[i], true);
    if (composite)
        op->build(&(clv__call){subject->graph, subject->in, sample->n_in, subject->sample.attrs, op});
    else
        clv__node_add_to(subject->graph, op, subject->sample.attrs, subject->in, sample->n_in, ~UINT64_C(0));
    if (subject->graph->error.status ==
        CLV_OK) { // an op that only updates in place has no output: ask for the node
        clv__node *node = subject->node = subject->graph->nodes[subject->graph->n_nodes - 1];
        clv_tensor *followed = sample->followed ? follow(subject, node->out[0]) : NULL;
        for (int i = 0; i < node->io.n_out; i++) {
            if (sample->stored != CLV_DTYPE_NONE && op->half_out >> i & 1)
                clv__stored_as(node->out[i], sample->stored, (size_t)node->id);
        }
        for (int i = 0; i < node->io.n_out && subject->graph->error.status == CLV_OK; i++)
            add_target(subject, i == 0 && followed ? followed : node->out[i], "out%d", i);
        for (int i = 0; i < sample->n_in; i++)
            if (subject->in[i] && op->mutates >> i & 1) add_target(subject, subject->in[i], "in%d after", i);
        // the other outputs are what the op keeps for its own gradient
        if (node->io.n_out && node->out[0]->requires_grad) add_gradient(subject, node->out[0]);
    }
    status = clv_graph_status(subject->graph);
    if (status != CLV_OK) clv__subject_reset(subject);
    return status;
}

clv_status clv__subject_fill(clv__subject *subject, uint64_t seed) {
    clv__values_reset(&subject->start);
    CLV_TRY(
        clv__values_init(&subject->start, subject->graph, clv__runtime_error_of(subject->graph->runtime)));
    clv_tensor *weights = subject->loss ? clv_graph_find(subject->graph, "loss_weights") : NULL;
    for (size_t i = 0; i < subject->graph->n_tensors; i++) { // of a composite: its constants
        const clv_tensor *tensor = subject->graph->tensors[i];
        if (tensor->values) clv__values_set(&subject->start, tensor, tensor->values);
    }
    for (int i = 0; i < subject->sample.n_in; i++)
        if (subject->in[i])
            clv__fill_values(&subject->sample.fill[i], &subject->in[i]->desc, seed, (uint64_t)i,
                             clv__values_of(&subject->start, subject->in[i]));
    if (weights)
        clv__fill_values(&(clv__fill){0}, &weights->desc, seed, CLV__MAX_IN,
                         clv__values_of(&subject->start, weights));
    clv__values_set_random(&subject->start, seed, CLV__SUBJECT_STEP);
    return CLV_OK;
}

void clv__subject_reset(clv__subject *subject) {
    clv__values_reset(&subject->start);
    clv_graph_destroy(subject->graph);
    *subject = (clv__subject){0};
}
