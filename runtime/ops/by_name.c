// SPDX-License-Identifier: Apache-2.0
// Every op by its name: what has a builder in ops.h, by its signature, and behind that the ops of programs. For bindings and
// readers of graphs.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleave/custom_op.h"
#include "graph/signature.h"
#include "ops/custom_op.h"

const clv_op_signature *clv_op_get(int i) {
    int n = 0;
    if (i < 0) return NULL;
    while (clv__public_ops[n]) n++;
    return i < n ? &clv__public_ops[i]->signature : clv__custom_op_signature(i - n);
}

const clv_op_signature *clv_op_find(const char *name) {
    const clv_op_signature *signature;
    for (int i = 0; name && (signature = clv_op_get(i)); i++)
        if (!strcmp(signature->name, name)) return signature;
    return NULL;
}

static const clv__op *public_op(const clv_op_signature *signature) {
    for (int i = 0; clv__public_ops[i]; i++)
        if (&clv__public_ops[i]->signature == signature) return clv__public_ops[i];
    return NULL;
}

// ---- attributes ---------------------------------------------------------------------------------------------

/** NULL, or what is wrong with a list of at most `most` whole numbers. */
static const char *read_list(const clv_op_argument *given, int most, clv__attribute_value *out) {
    out->n = given->n;
    if (out->n < 0 || out->n > most || (out->n && !given->list)) return "is a list that is too long, or NULL";
    for (int i = 0; i < out->n; i++) {
        out->list[i] = given->list[i];
        if (given->list[i] != (int32_t)given->list[i]) return "holds a number that is too large";
    }
    return NULL;
}

/** NULL, or what is wrong with it. */
static const char *read_value(clv_attribute_kind kind, const clv_op_argument *given,
                              clv__attribute_value *out) {
    *out = (clv__attribute_value){.number = given->number, .text = given->text};
    if (kind == CLV_ATTRIBUTE_TEXT) return out->text ? NULL : "wants a text";
    if (kind == CLV_ATTRIBUTE_NUMBER) return isnan(out->number) ? "is not a number" : NULL;
    if (kind == CLV_ATTRIBUTE_LIST) return read_list(given, CLV_MAX_RANK, out);
    if (kind == CLV_ATTRIBUTE_PAIR && given->n) return read_list(given, 2, out);
    if (!(fabs(out->number) <= 9007199254740992.0) || out->number != floor(out->number))
        return "wants a whole number";
    if (kind == CLV_ATTRIBUTE_BOOL) return out->number == 0 || out->number == 1 ? NULL : "is 0 or 1";
    return fabs(out->number) > INT32_MAX ? "is too large" : NULL;
}

/** "axis, keepdim", for a sentence. */
static const char *names_of(const clv_op_attribute *list, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; list && list[i].name && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", list[i].name);
    return *text ? text : "none";
}

/** False, and a mistake in the graph. */
static bool read_attributes(clv_graph *graph, const clv_op_signature *signature,
                            const clv_op_argument *arguments, int n, void *attrs) {
    const clv_op_attribute *list = signature->attributes;
    bool given[CLV__MOST_ATTRIBUTES] = {0};
    char names[512];
    clv__attributes_default(list, attrs);
    for (int k = 0; list && list[k].name; k++) {
        for (int i = 0; i < n; i++) {
            if (!arguments[i].name || strcmp(arguments[i].name, list[k].name)) continue;
            clv__attribute_value value;
            const char *why = given[k] ? "is given twice" : read_value(list[k].kind, &arguments[i], &value);
            if (why)
                return clv__graph_fail(graph, CLV_E_VALUE, "%s: '%s' %s", signature->name, list[k].name, why);
            given[k] = true;
            clv__attribute_set(&list[k], attrs, &value);
        }
        if (!given[k] && !list[k].fallback)
            return clv__graph_fail(graph, CLV_E_VALUE, "%s wants '%s'", signature->name, list[k].name);
        clv__attribute_value first; // the default of a later one may be the value of this one
        clv__attribute_get(&list[k], attrs, &first);
        for (int later = k + 1; list[later].name; later++)
            if (list[later].fallback && !strcmp(list[later].fallback, list[k].name))
                clv__attribute_set(&list[later], attrs, &first);
    }
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (int k = 0; list && list[k].name && arguments[i].name; k++)
            known |= !strcmp(arguments[i].name, list[k].name);
        if (!known)
            return clv__graph_fail(graph, CLV_E_NOT_FOUND, "%s has no attribute '%.100s'; it has: %s",
                                   signature->name, arguments[i].name ? arguments[i].name : "",
                                   names_of(list, names, sizeof names));
    }
    return true;
}

// ---- calls --------------------------------------------------------------------------------------------------

/** "x, weight?", for a sentence. */
static const char *inputs_text(const clv_op_value *inputs, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; inputs[i].name && used < bytes; i++) {
        const size_t n = strlen(inputs[i].type);
        const bool list = n > 3 && !strcmp(inputs[i].type + n - 3, "...");
        used += (size_t)snprintf(text + used, bytes - used, "%s%s%s", i ? ", " : "", inputs[i].name,
                                 list                                ? "..."
                                 : n && inputs[i].type[n - 1] == '?' ? "?"
                                                                     : "");
    }
    return text;
}

static clv_tensor *call_custom(const clv_op_signature *signature, clv_tensor *const *inputs, int n,
                               const clv_op_argument *arguments, int n_arguments) {
    clv_attribute attributes[CLV_CUSTOM_OP_ATTRIBUTES];
    int n_attributes = 0;
    for (int i = 0; i < n_arguments && n_attributes < CLV_CUSTOM_OP_ATTRIBUTES; i++)
        attributes[n_attributes++] = (clv_attribute){arguments[i].name, arguments[i].number};
    return clv__custom_op_add(signature->name, inputs, n, attributes, n_attributes);
}

static clv_tensor *unknown(clv_graph *graph, const char *name) {
    clv_nearest nearest = {.word = name ? name : ""};
    for (int i = 0; clv_op_get(i); i++) clv_nearest_offer(&nearest, clv_op_get(i)->name);
    return clv__graph_fail(graph, CLV_E_NOT_FOUND, "there is no op '%.100s'%s", nearest.word,
                           clv_nearest_text(&nearest));
}

/** Is all there that the op cannot do without? Builders make nothing of NULL, and say nothing. */
static bool are_there(clv_graph *graph, const clv__op *op, clv_tensor *const *in, int n) {
    const uint64_t optional = clv__inputs_optional(op->inputs);
    for (int i = 0; i < n; i++)
        if (!in[i] && !(optional >> i & 1))
            return clv__graph_fail(graph, CLV_E_VALUE, "%s: %s is NULL", op->name, op->inputs[i].name);
    return true;
}

clv_tensor *clv_op_call(clv_graph *graph, const char *name, clv_tensor *const *inputs, int n,
                        const clv_op_argument *arguments, int n_arguments) {
    if (!graph) return NULL;
    if (!inputs) n = 0;
    if (!arguments) n_arguments = 0;
    const clv_op_signature *signature = clv_op_find(name);
    if (!signature) return unknown(graph, name);
    int least;
    bool list;
    char text[512];
    const int most = clv__inputs_count(signature->inputs, &least, &list);
    if (n < least || (n > most && !list))
        return clv__graph_fail(graph, CLV_E_VALUE, "%s has the inputs '%s', and %d are given",
                               signature->name, inputs_text(signature->inputs, text, sizeof text), n);
    const clv__op *op = public_op(signature);
    if (!op) return call_custom(signature, inputs, n, arguments, n_arguments);

    _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
    clv_tensor *padded[CLV__MAX_IN] = {0};
    if (!list) {
        for (int i = 0; i < n; i++) padded[i] = inputs[i];
        inputs = padded, n = most;
    }
    if (!read_attributes(graph, signature, arguments, n_arguments, attrs)) return NULL;
    clv__error mistake;
    clv__error_init(&mistake);
    const clv_status status = clv__attributes_check(op->attributes, attrs, &mistake);
    if (status != CLV_OK) clv__graph_fail(graph, status, "%s: %s", op->name, mistake.text);
    clv__error_destroy(&mistake);
    if (status != CLV_OK) return NULL;
    if (!list && !are_there(graph, op, inputs, n)) return NULL;
    if (op->build) return op->build(&(clv__call){graph, inputs, n, attrs});
    return clv__node_add_to(graph, op, attrs, inputs, n, clv__inputs_optional(op->inputs));
}
