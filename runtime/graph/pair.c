// SPDX-License-Identifier: Apache-2.0
// Gradients that are ops of their own (clv__op.gradient_of). A text says what such an op takes. From that and the op whose gradient it is
// come its node in the backward pass, its shape rule, its samples, and the ways to do it in parts.
#include <stdio.h>
#include <string.h>

#include "cleave/ops.h"
#include "graph/signature.h"
#include "tensor/dtype.h"

enum { MOST = 8 }; // inputs of a gradient, and of what it is the gradient of

/** The words of `takes`. */
typedef struct terms {
    struct {
        char kind; // d, i or o
        bool optional;
        int number;
    } in[MOST];
    int n_in, gives[CLV__MAX_OUT], n_out;
    int shape_of, less; // inputs; -1: none
} terms;

static terms terms_of(const clv__op *op) {
    terms t = {.shape_of = -1, .less = -1};
    for (const char *at = op->takes; *at; at += strspn(at, " ")) {
        const char kind = *at++;
        const int number = *at++ - '0';
        if (kind == 's')
            t.shape_of = number;
        else if (kind == 'n')
            t.less = number;
        else if (kind == 'g')
            t.gives[t.n_out++] = number;
        else {
            t.in[t.n_in].optional = kind == 'e';
            t.in[t.n_in].kind = kind == 'e' ? 'd' : kind;
            t.in[t.n_in++].number = number;
        }
    }
    return t;
}

/** The shape behind the attributes. */
static clv_shape *shape_in(const clv__op *op, void *attrs) {
    return (clv_shape *)(void *)((char *)attrs + op->attrs_bytes - sizeof(clv_shape));
}

static void put_shape(const clv__op *op, clv_shape shape, void *attrs) {
    clv_shape *to = shape_in(op, attrs);
    to->rank = shape.rank;
    for (int d = 0; d < shape.rank; d++) to->dims[d] = shape.dims[d];
}

// ---- in the backward pass -------------------------------------------------------------------------------------------

clv_tensor *clv__pair_node(const clv__op *op, const void *attrs, clv_tensor *const *dy, clv_tensor *const *in,
                           clv_tensor *const *out) {
    const terms t = terms_of(op);
    _Alignas(16) char own[CLV__ATTRS_BYTES] = {0};
    if (op->gradient_of->attrs_bytes) memcpy(own, attrs, op->gradient_of->attrs_bytes);
    if (t.shape_of >= 0) put_shape(op, clv_tensor_shape(in[t.shape_of]), own);
    clv_tensor *inputs[MOST];
    int n = 0;
    for (int k = 0; k < t.n_in; k++) {
        inputs[k] = (t.in[k].kind == 'd' ? dy : t.in[k].kind == 'i' ? in : out)[t.in[k].number];
        if (inputs[k]) n = k + 1;
    }
    return clv__node_add(op, own, inputs, n, UINT64_MAX);
}

void clv__pair_grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__op_io *io = clv__node_io(node);
    const terms t = terms_of(io->op->gradient);
    clv_tensor *in[MOST] = {0}, *out[CLV__MAX_OUT];
    const bool less = t.less >= 0 && clv__wants_grad(node, t.less);
    bool wanted = less;
    for (int m = 0; m < t.n_out; m++) wanted |= clv__wants_grad(node, t.gives[m]);
    for (int k = 0; k < t.n_in; k++) wanted &= t.in[k].kind != 'd' || t.in[k].optional || dy[t.in[k].number];
    if (!wanted) return; // or what has a gradient is what the op keeps for its own
    for (int i = 0; i < io->n_in; i++) in[i] = clv__node_in(node, i);
    for (int i = 0; i < io->n_out; i++) out[i] = clv__node_out(node, i);
    clv_tensor *made = clv__pair_node(io->op->gradient, clv__node_attrs(node), dy, in, out);
    for (int m = 0; m < t.n_out; m++)
        if (clv__wants_grad(node, t.gives[m])) dx[t.gives[m]] = clv__sibling(made, m);
    if (less) dx[t.less] = clv_neg(made);
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

/** A use of the other op. */
typedef struct other {
    clv__op_io io;
    clv__desc in[MOST];
} other;

static clv__desc as_float(clv__desc desc) {
    if (clv__is_half(desc.dtype)) desc.dtype = CLV_DTYPE_F32;
    return desc;
}

/** An input that is not taken: as an output whose type says that it is like it, if that or its gradient is taken. */
static clv__desc like_output(const clv__op_io *io, const terms *t, int input) {
    const clv__op *op = io->op->gradient_of;
    for (int k = 0; k < t->n_in; k++) {
        const char *type = t->in[k].kind == 'i' ? "" : op->outputs[t->in[k].number].type;
        if (!strncmp(type, "like ", 5) && !strcmp(type + 5, op->inputs[input].name) && clv__has_in(io, k))
            return as_float(io->in[k]);
    }
    return (clv__desc){0};
}

/** The other op's use that this one is the gradient of; its shape rule has been asked. */
static clv_status other_of(const clv__op_io *io, const terms *t, other *o, clv__error *error) {
    const clv__op *op = io->op->gradient_of;
    bool list;
    int least;
    *o = (other){.io = {.op = op, .attrs = io->attrs}};
    o->io.in = o->in;
    o->io.n_in = clv__inputs_count(op->inputs, &least, &list);
    for (int m = 0; m < t->n_out; m++) o->in[t->gives[m]] = like_output(io, t, t->gives[m]);
    if (t->shape_of >= 0)
        o->in[t->shape_of] = (clv__desc){clv__has_in(io, 0) ? as_float(io->in[0]).dtype : CLV_DTYPE_F32,
                                         *shape_in(io->op, (void *)io->attrs)};
    for (int k = 0; k < t->n_in; k++) {
        if (t->in[k].kind == 'i')
            o->in[t->in[k].number] = clv__has_in(io, k) ? as_float(io->in[k]) : (clv__desc){0};
        else if (!clv__has_in(io, k) && !t->in[k].optional)
            CLV_FAIL(error, CLV_E_VALUE, "%s%s is missing", t->in[k].kind == 'd' ? "d" : "",
                     op->outputs[t->in[k].number].name);
    }
    return clv__op_infer(&o->io, error);
}

clv_status clv__pair_infer(clv__op_io *io, clv__error *error) {
    const terms t = terms_of(io->op);
    other o;
    CLV_TRY(other_of(io, &t, &o, error));
    for (int k = 0; k < t.n_in; k++) {
        const clv__desc *wanted = &o.io.out[t.in[k].number];
        char is[128], must[128];
        if (t.in[k].kind == 'i' || !clv__has_in(io, k) ||
            (clv_shape_equal(&io->in[k].shape, &wanted->shape) && io->in[k].dtype == wanted->dtype))
            continue;
        CLV_FAIL(error, io->in[k].dtype == wanted->dtype ? CLV_E_SHAPE : CLV_E_DTYPE,
                 "%s%s is %s %s, it must be %s %s", t.in[k].kind == 'd' ? "d" : "",
                 o.io.op->outputs[t.in[k].number].name, clv_dtype_name(io->in[k].dtype),
                 clv_shape_text(&io->in[k].shape, is, sizeof is), clv_dtype_name(wanted->dtype),
                 clv_shape_text(&wanted->shape, must, sizeof must));
    }
    io->n_out = t.n_out;
    for (int m = 0; m < t.n_out; m++) {
        io->out[m] = o.in[t.gives[m]];
        if (io->out[m].dtype) continue; // else one that may be left out
        io->out[m].dtype = CLV_DTYPE_F32;
        CLV_TRY(clv__input_shape(&o.io, t.gives[m], &io->out[m].shape, error));
    }
    return CLV_OK;
}

// ---- samples --------------------------------------------------------------------------------------------------------

bool clv__pair_sample(const clv__op *op, int i, clv__sample *sample) {
    const terms t = terms_of(op);
    clv__sample of;
    if (!clv__op_sample(op->gradient_of, i, &of)) return false;
    clv__op_io io = {.op = op->gradient_of, .attrs = of.attrs, .n_in = of.n_in, .in = of.in};
    clv__error error = {0};
    *sample = of;
    sample->n_in = 0;
    memset(sample->in, 0, sizeof sample->in);
    memset(sample->fill, 0, sizeof sample->fill);
    if (clv__op_infer(&io, &error) != CLV_OK) return false; // samples are legal ones
    if (t.shape_of >= 0) put_shape(op, of.in[t.shape_of].shape, sample->attrs);
    for (int k = 0; k < t.n_in; k++) {
        const int number = t.in[k].number;
        sample->in[k] = t.in[k].kind == 'i' ? of.in[number] : io.out[number];
        if (t.in[k].kind == 'i') sample->fill[k] = of.fill[number];
        if (t.in[k].kind == 'o') sample->fill[k] = (clv__fill){CLV__FILL_UNIFORM, 0.5, 1.5}; // any values do
        if (sample->in[k].dtype) sample->n_in = k + 1;
    }
    return true;
}

// ---- in parts -------------------------------------------------------------------------------------------------------

/** The other op's way as one of the gradient: what each part reads whole has a gradient that is added up. */
static bool mirror(const terms *t, const clv__split *of, clv__split *out) {
    bool sums = false;
    out->length = of->one_for_one ? 0 : of->length;
    for (int k = 0; k < t->n_in; k++) {
        const int8_t *from = t->in[k].kind == 'i' ? of->in : of->out, way = from[t->in[k].number];
        out->in[k] = way == CLV__SPLIT_MEAN  ? CLV__SPLIT_SHARE
                     : way == CLV__SPLIT_SUM ? CLV__SPLIT_WHOLE
                                             : way;
    }
    for (int m = 0; m < t->n_out; m++) {
        const int8_t way = of->in[t->gives[m]];
        out->out[m] = way == CLV__SPLIT_WHOLE ? CLV__SPLIT_SUM : way;
        sums |= way == CLV__SPLIT_WHOLE;
    }
    return sums;
}

/** Ways without a sum come first. */
bool clv__pair_split(const clv__op_io *io, int i, clv__split *out) {
    const terms t = terms_of(io->op);
    other o;
    clv__error error = {0};
    if (other_of(io, &t, &o, &error) != CLV_OK) return false;
    for (int sums = 0; sums < 2; sums++) {
        for (int way = 0;; way++) {
            clv__split of = {.length = 0};
            memset(of.in, CLV__SPLIT_WHOLE, sizeof of.in);
            memset(of.out, CLV__SPLIT_WHOLE, sizeof of.out);
            if (!o.io.op->split(&o.io, way, &of)) break;
            if (mirror(&t, &of, out) == sums && i-- == 0) return true;
        }
    }
    return false;
}

void clv__pair_split_attrs(const clv__op_io *io, const clv__split *split, int64_t begin, int64_t end,
                           void *attrs) {
    const terms t = terms_of(io->op);
    for (int m = 0; m < t.n_out && t.shape_of >= 0; m++) {
        int64_t *dims = shape_in(io->op, attrs)->dims;
        const int d = split->out[m];
        if (t.gives[m] == t.shape_of && d >= 0) dims[d] = (end - begin) * (dims[d] / split->length);
    }
}
