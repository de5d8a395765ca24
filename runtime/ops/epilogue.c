// SPDX-License-Identifier: Apache-2.0
// The text of an epilogue: each step as one statement, in a block that gives its inputs their names.
//
//     { const F x = v; v = SELECT(x < K(0.0), K(0.0), x); }        relu, a row of elementwise.def
//     { const F a = v, b = e0; v = a + b; }                        the value so far plus the first of the further inputs
//     { const F a = v, b = g0; v = a + b; }                        plus its channel's of one that has an element for each
//     { const F x = v, mean = g0, scale = g1, bias = g2; v = (x - mean) * scale + bias; }      batch_norm, a clv__channel_row
//
// A second text says for each channel what g0 to g3 are, over its elements h0 to h3 of the further inputs that have some:
//
//     g0 = h0;
//     { const F weight = h0, bias = h1, mean = h2, var = h3; g0 = mean; g1 = K(1.0) / sqrt(var + P0) * weight; g2 = bias; }
//
// Parameters stand in the texts as they are, bit for bit (hexadecimal).
#include "ops/epilogue.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "graph/signature.h"
#include "ops/elementwise.h"
#include "ops/lower.h"

// ---- what can be one --------------------------------------------------------------------------------------------------

static bool texts_have_parameters(const clv__op_io *io) {
    if (io->op->channelwise) return isfinite(((const clv__channel_row *)io->op->data)->p0(io->attrs));
    const clv__ew_attrs *attrs = io->attrs;
    return isfinite(attrs->p0) && isfinite(attrs->p1);
}

bool clv__epilogue_takes(const clv__op_io *io) {
    if ((!io->op->elementwise && !io->op->channelwise) || !clv__is_float(io->out[0].dtype)) return false;
    for (int i = 0; i < io->n_in; i++) {
        if (clv__has_in(io, i) && !clv__is_float(io->in[i].dtype)) return false;
    }
    return texts_have_parameters(io);
}

/** Does the input have one element for each index of the output's dimension, and is it the same along the others? */
static bool along(const clv_shape *in, const clv_shape *out, int dim) {
    int at = dim - (out->rank - in->rank); // shapes are aligned at the end
    return at >= 0 && in->dims[at] == out->dims[dim] && clv_shape_numel(in) == out->dims[dim];
}

clv__step_input clv__epilogue_input(const clv__op *base, const clv__op_io *step, int i) {
    const clv_shape *in = &step->in[i].shape, *out = &step->out[0].shape;
    if (clv_shape_equal(in, out)) return CLV__STEP_ELEMENT;
    int dim = base->channels < 0 ? out->rank + base->channels : base->channels;
    if (base->channels == 0 || dim < 0 || dim >= out->rank || step->in[i].dtype != CLV_DTYPE_F32)
        return CLV__STEP_OTHER;
    bool is = step->op->channelwise ? dim == 1 : along(in, out, dim);
    return is ? CLV__STEP_CHANNEL : CLV__STEP_OTHER;
}

// ---- the texts --------------------------------------------------------------------------------------------------------

typedef struct text {
    char bytes[1024];
    size_t used, room; // bytes that there are, or would be if there were room
} text;

typedef struct texts {
    text body, channel;
    int n_values; // of g0 to g3
} texts;

static void append(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(text *t, const char *format, ...) {
    size_t left = t->used < t->room ? t->room - t->used : 0;
    va_list args;
    va_start(args, format);
    int n = clv__format_list(left ? t->bytes + t->used : NULL, left, format, args);
    va_end(args);
    t->used += (size_t)n;
}

/** A further input's number among those of its kind: e0, e1 or h0 to h3. */
static int number_of(const clv__epilogue *epilogue, int k) {
    int n = 0;
    for (int i = 0; i < k; i++) n += epilogue->by_channel[i] == epilogue->by_channel[k];
    return n;
}

static void write_elementwise(texts *t, const clv__epilogue *epilogue, const clv__epilogue_step *step) {
    const clv__ew_row *row = step->op->data;
    const clv__ew_attrs *attrs = step->attrs;
    for (int i = 0; i < row->n_in; i++) {
        int k = step->from[i];
        append(&t->body, "%s%s = ", i ? ", " : "{ const F ", row->names[i]);
        if (k == CLV__SO_FAR) {
            append(&t->body, "v");
        } else if (epilogue->by_channel[k]) {
            append(&t->channel, "g%d = h%d; ", t->n_values, number_of(epilogue, k));
            append(&t->body, "g%d", t->n_values++);
        } else {
            append(&t->body, "e%d", number_of(epilogue, k));
        }
    }
    append(&t->body, "; ");
    if (strstr(row->expression, "P0"))
        append(&t->body, "const float p0 = %af, p1 = %af; ", (double)attrs->p0, (double)attrs->p1);
    append(&t->body, "v = %s; } ", row->expression);
}

static void write_channelwise(texts *t, const clv__epilogue *epilogue, const clv__epilogue_step *step) {
    const clv__channel_row *row = step->op->data;
    append(&t->channel, "{ const float p0 = %af; const F ", (double)row->p0(step->attrs));
    for (int i = 1; i < CLV__STEP_INPUTS && row->names[i]; i++) {
        append(&t->channel, "%s%s = ", i > 1 ? ", " : "", row->names[i]);
        if (step->from[i] == CLV__ABSENT)
            append(&t->channel, "%s", row->absent[i]);
        else
            append(&t->channel, "h%d", number_of(epilogue, step->from[i]));
    }
    append(&t->channel, "; ");
    append(&t->body, "{ const F %s = v", row->names[0]);
    for (int i = 0; i < CLV__EPILOGUE_CHANNELS && row->values[i]; i++) {
        append(&t->channel, "g%d = %s; ", t->n_values, row->of_inputs[i]);
        append(&t->body, ", %s = g%d", row->values[i], t->n_values++);
    }
    append(&t->channel, "} ");
    append(&t->body, "; v = %s; } ", row->expression);
}

/** False: it does not fit. Both texts do into a launch's defines, beside all else that is said there. */
static bool write_texts(texts *t, const clv__epilogue *epilogue) {
    *t = (texts){.body.room = sizeof t->body.bytes, .channel.room = 320};
    for (int i = 0; i < epilogue->n_steps; i++) {
        const clv__epilogue_step *step = &epilogue->steps[i];
        (step->op->channelwise ? write_channelwise : write_elementwise)(t, epilogue, step);
    }
    return t->body.used < t->body.room && t->channel.used < t->channel.room &&
           t->n_values <= CLV__EPILOGUE_CHANNELS;
}

int clv__epilogue_first(const clv__op_io *io) {
    int least;
    bool list = true;
    const int places = io->op->inputs ? clv__inputs_count(io->op->inputs, &least, &list) : 0;
    return list || places < io->n_in ? io->n_in : places;
}

bool clv__epilogue_fits(const clv__epilogue *epilogue) {
    texts t;
    return write_texts(&t, epilogue);
}

// ---- the launch -------------------------------------------------------------------------------------------------------

/** The further inputs of the output's shape, as arguments. */
static void add_elements(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    const clv__epilogue *epilogue = io->epilogue;
    char storage[] = "EPI_T0";
    int n = 0;
    for (int k = 0; k < epilogue->n_in; k++) {
        int in = epilogue->first + k;
        if (epilogue->by_channel[k]) continue;
        storage[sizeof storage - 2] = (char)('0' + n++);
        clv__launch_define(list, launch, storage, "%s", clv__storage(io->in[in].dtype));
        clv__arg_in(list, launch, in);
    }
    clv__launch_define(list, launch, "EPI_N", "%d", n);
}

/** Those with an element for each channel. Kernels take as many as can be: the first stands for what is not there. */
static void add_channels(clv__launches *list, clv__launch *launch, const clv__epilogue *epilogue,
                         const char *statements) {
    int first = -1, n = 0;
    for (int k = 0; k < epilogue->n_in; k++) {
        if (!epilogue->by_channel[k]) continue;
        if (first < 0) first = epilogue->first + k;
        clv__arg_in(list, launch, epilogue->first + k);
        n++;
    }
    if (n == 0) return;
    for (; n < CLV__EPILOGUE_CHANNELS; n++) clv__arg_in(list, launch, first);
    clv__launch_define(list, launch, "EPI_C", "1");
    clv__launch_define(list, launch, "EPI_CHANNEL", "%s", statements);
}

void clv__arg_epilogue(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    texts t;
    if (!io->epilogue) return;
    if (!write_texts(&t, io->epilogue)) list->failed = true;
    clv__launch_define(list, launch, "EPI_BODY", "%s", t.body.bytes);
    add_elements(list, launch, io);
    add_channels(list, launch, io->epilogue, t.channel.bytes);
}
