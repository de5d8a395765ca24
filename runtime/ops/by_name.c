// SPDX-License-Identifier: Apache-2.0
// The builders of ops.h by their names (by_name.def), for bindings and readers of graphs, and behind them ops of a program's own.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cleave/ops.h"
#include "cleave/own_op.h"
#include "graph/op.h"
#include "ops/by_name.h"
#include "ops/own_op.h"

typedef struct value {
    double number;
    int n; // of the list
    int64_t list[CLV_MAX_RANK];
    int ints[CLV_MAX_RANK];
    const char *text;
} value;

typedef struct call {
    clv_graph *graph;
    clv_tensor *const *in;
    int n_in;
    value at[CLV__MOST_ATTRIBUTES];
} call;

#define GRAPH c->graph
#define ALL c->in
#define N_IN c->n_in
#define IN(k) (k < c->n_in ? c->in[k] : NULL)
#define F(k) ((float)c->at[k].number)
#define I(k) ((int64_t)c->at[k].number)
#define B(k) (c->at[k].number != 0)
#define N(k) (c->at[k].n)
#define AXES(k) (c->at[k].ints)
#define SHAPE(k) clv_shape_make(c->at[k].n, c->at[k].list)
#define PAIR(k)                                                                                              \
    { c->at[k].ints[0], c->at[k].ints[1] }
#define TEXT(k) (c->at[k].text)
#define BUILDER(name, inputs, attributes, made)                                                              \
    static clv_tensor *build_##name(const call *c) {                                                         \
        return made;                                                                                         \
    }
#include "ops/by_name.def"
#undef BUILDER

static const struct builder {
    clv_op_signature signature;
    clv_tensor *(*build)(const call *c);
} builders[] = {
#define BUILDER(name, inputs, attributes, made) {{#name, inputs, attributes}, build_##name},
#include "ops/by_name.def"
#undef BUILDER
};
enum { N_BUILDERS = sizeof builders / sizeof *builders };

int clv_op_count(void) {
    return N_BUILDERS + clv_own_op_count();
}

const clv_op_signature *clv_op_get(int i) {
    if (i < 0) return NULL;
    return i < N_BUILDERS ? &builders[i].signature : clv__own_op_signature(i - N_BUILDERS);
}

const clv_op_signature *clv_op_find(const char *name) {
    const clv_op_signature *signature;
    for (int i = 0; name && (signature = clv_op_get(i)); i++)
        if (!strcmp(signature->name, name)) return signature;
    return NULL;
}

// ---- attributes -----------------------------------------------------------------------------------------------------

bool clv__attribute_next(const char **at, clv__attribute *out) {
    *at += strspn(*at, " ");
    const size_t n = strcspn(*at, " "), name = strcspn(*at, ":"), kind = strcspn(*at, "=");
    if (!n) return false;
    const size_t end = kind < n ? kind : n;
    *out = (clv__attribute){.has_fallback = kind < n};
    snprintf(out->name, sizeof out->name, "%.*s", (int)name, *at);
    snprintf(out->kind, sizeof out->kind, "%.*s", (int)(end - name - 1), *at + name + 1);
    if (kind < n) snprintf(out->fallback, sizeof out->fallback, "%.*s", (int)(n - kind - 1), *at + kind + 1);
    *at += n;
    return true;
}

bool clv__attribute_is(const clv__attribute *attribute, const char *kind) {
    return !strcmp(attribute->kind, kind);
}

/** NULL, or what is wrong with numbers that count from one. In C a zero stands for what is left out; here what is left out is
 *  not given, so a zero is a zero: two paddings of which one is 0 say so, and a stride of 0 is refused. */
static const char *read_counts(const clv__attribute *a, int given, value *out) {
    const bool zero = !out->ints[0] || (given > 1 && !out->ints[1]);
    if (!strcmp(a->name, "padding")) {
        if (given > 1 && !out->ints[1]) out->ints[1] = -1;
    } else if (zero && (given > 1 || !strcmp(a->fallback, "1"))) {
        return "is 0, and must be at least 1";
    }
    return NULL;
}

/** NULL, or what is wrong with it. */
static const char *read_value(const clv__attribute *a, const clv_op_argument *given, value *out) {
    *out = (value){.number = given ? given->number : clv__number_read(a->fallback, NULL)};
    if (clv__attribute_is(a, "text")) {
        out->text = given ? given->text : NULL;
        return out->text ? NULL : "wants a text";
    }
    if (clv__attribute_is(a, "number")) return isnan(out->number) ? "is not a number" : NULL;
    if (clv__attribute_is(a, "list") || (clv__attribute_is(a, "pair") && given && given->n)) {
        out->n = given ? given->n : 0;
        if (out->n < 0 || out->n > (clv__attribute_is(a, "pair") ? 2 : CLV_MAX_RANK) || (out->n && !given->list))
            return "is a list that is too long, or NULL";
        for (int i = 0; i < out->n; i++) {
            out->list[i] = given->list[i];
            out->ints[i] = (int)given->list[i];
            if (out->ints[i] != given->list[i]) return "holds a number that is too large";
        }
        return clv__attribute_is(a, "pair") ? read_counts(a, out->n, out) : NULL;
    }
    if (!(fabs(out->number) <= 9007199254740992.0) || out->number != floor(out->number))
        return "wants a whole number";
    if (clv__attribute_is(a, "bool")) return out->number == 0 || out->number == 1 ? NULL : "is 0 or 1";
    if (fabs(out->number) > INT32_MAX) return "is too large";
    out->ints[0] = (int)out->number;
    return given ? read_counts(a, 1, out) : NULL;
}

static clv_tensor *read_attributes(call *c, const clv_op_signature *signature,
                                   const clv_op_argument *arguments, int n, bool *good) {
    const char *at = signature->attributes;
    clv__attribute a;
    int known = 0;
    *good = false;
    for (int k = 0; k < CLV__MOST_ATTRIBUTES && clv__attribute_next(&at, &a); k++) {
        const clv_op_argument *given = NULL;
        for (int i = 0; i < n; i++)
            if (arguments[i].name && !strcmp(arguments[i].name, a.name)) given = &arguments[i], known++;
        if (!given && !a.has_fallback)
            return clv__graph_fail(c->graph, CLV_E_VALUE, "%s wants '%s'", signature->name, a.name);
        const char *why = read_value(&a, given, &c->at[k]);
        if (why) return clv__graph_fail(c->graph, CLV_E_VALUE, "%s: '%s' %s", signature->name, a.name, why);
    }
    if (known != n)
        return clv__graph_fail(
            c->graph, CLV_E_NOT_FOUND,
            "%s has not all the attributes that are given, or one is given twice; it has: %s",
            signature->name, *signature->attributes ? signature->attributes : "none");
    *good = true;
    return NULL;
}

// ---- calls ----------------------------------------------------------------------------------------------------------

/** Does the number of inputs fit? */
static bool inputs_fit(const clv_op_signature *signature, int n) {
    int most = 0, least = 0;
    for (const char *at = signature->inputs; *at;) {
        const size_t length = strcspn(at, " ");
        if (at[length - 1] == '.') return n >= 1;
        most++;
        least += at[length - 1] != '?';
        at += length;
        at += strspn(at, " ");
    }
    return n >= least && n <= most;
}

static clv_tensor *call_own(const clv_op_signature *signature, clv_tensor *const *inputs, int n,
                            const clv_op_argument *arguments, int n_arguments) {
    clv_attribute attributes[CLV_OWN_OP_ATTRIBUTES];
    int n_attributes = 0;
    for (int i = 0; i < n_arguments && n_attributes < CLV_OWN_OP_ATTRIBUTES; i++)
        attributes[n_attributes++] = (clv_attribute){arguments[i].name, arguments[i].number};
    return clv_op_add(signature->name, inputs, n, attributes, n_attributes);
}

clv_tensor *clv_op_call(clv_graph *graph, const char *name, clv_tensor *const *inputs, int n,
                        const clv_op_argument *arguments, int n_arguments) {
    call c = {.graph = graph, .in = inputs, .n_in = inputs ? n : 0};
    if (!graph) return NULL;
    const clv_op_signature *signature = clv_op_find(name);
    if (!signature) {
        clv_nearest nearest = {.word = name ? name : ""};
        for (int i = 0; clv_op_get(i); i++) clv_nearest_offer(&nearest, clv_op_get(i)->name);
        return clv__graph_fail(graph, CLV_E_NOT_FOUND, "there is no op '%.100s'%s", nearest.word,
                               clv_nearest_text(&nearest));
    }
    if (!inputs_fit(signature, c.n_in))
        return clv__graph_fail(graph, CLV_E_VALUE, "%s has the inputs '%s', and %d are given",
                               signature->name, signature->inputs, c.n_in);
    if (!arguments) n_arguments = 0;
    for (int i = 0; i < N_BUILDERS; i++) {
        if (signature != &builders[i].signature) continue;
        bool good;
        read_attributes(&c, signature, arguments, n_arguments, &good);
        return good ? builders[i].build(&c) : NULL;
    }
    return call_own(signature, inputs, n, arguments, n_arguments);
}
