// SPDX-License-Identifier: Apache-2.0
// Every op by its name: those of ops.h, whose functions call clv_op_call, and behind them the ops of programs.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cleave/custom_op.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "ops/custom_op.h"

const clv_op_signature *clv_op_get(int i) {
    if (i < 0) return NULL;
    return i < clv__n_public_ops ? &clv__public_ops[i]->signature
                                 : clv__custom_op_signature(i - clv__n_public_ops);
}

const clv_op_signature *clv_op_find(const char *name) {
    const clv_op_signature *signature;
    // Each node is built by this: most names differ in the first letter.
    for (int i = 0; name && i < clv__n_public_ops; i++)
        if (*clv__public_ops[i]->name == *name && !strcmp(clv__public_ops[i]->name, name))
            return &clv__public_ops[i]->signature;
    for (int i = 0; name && (signature = clv__custom_op_signature(i)); i++)
        if (!strcmp(signature->name, name)) return signature;
    return NULL;
}

/** Every signature is the first that its op's descriptor has. */
_Static_assert(offsetof(clv__op, signature) == 0, "an op would not be found by its signature");
static const clv__op *op_of(const clv_op_signature *signature) {
    return (const clv__op *)(const void *)signature;
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

static clv_tensor *unknown(clv_graph *graph, const char *name) {
    clv__nearest nearest = {.word = name ? name : ""};
    for (int i = 0; clv_op_get(i); i++) clv__nearest_offer(&nearest, clv_op_get(i)->name);
    return clv__graph_fail(graph, CLV_E_NOT_FOUND, "there is no op '%.100s'%s", nearest.word,
                           clv__nearest_text(&nearest));
}

/** The arguments are read once more, for the sentence. */
static clv_tensor *refused(clv_graph *graph, const clv__op *op, const clv_op_argument *arguments, int n) {
    _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
    clv__error mistake;
    clv__error_init(&mistake);
    const clv_status status = clv__arguments_read(op->name, op->attributes, arguments, n, attrs, &mistake);
    clv__graph_fail(graph, status, "%s", mistake.text);
    clv__error_destroy(&mistake);
    return NULL;
}

/** Is all there that the op cannot do without? */
static bool are_there(clv_graph *graph, const clv__op *op, clv_tensor *const *in, int n) {
    const uint64_t optional = clv__inputs_optional(op->inputs);
    for (int i = 0; i < n; i++)
        if (!in[i] && !(optional >> i & 1))
            return clv__graph_fail(graph, CLV_E_VALUE, "%s: %s is NULL", op->name, op->inputs[i].name);
    return true;
}

clv_tensor *clv_op_call(clv_graph *graph, const char *name, clv_tensor *const *inputs, int n,
                        const clv_op_argument *arguments, int n_arguments) {
    if (!inputs) n = 0;
    if (!arguments) n_arguments = 0;
    for (int i = 0; i < n && !graph; i++) graph = clv__tensor_graph(inputs[i]);
    if (!graph || graph->error.status != CLV_OK) return NULL;
    const clv_op_signature *signature = clv_op_find(name);
    if (!signature) return unknown(graph, name);
    int least;
    bool list;
    char text[512];
    const int most = clv__inputs_count(signature->inputs, &least, &list);
    if (n < least || (n > most && !list))
        return clv__graph_fail(graph, CLV_E_VALUE, "%s has the inputs '%s', and %d are given",
                               signature->name, inputs_text(signature->inputs, text, sizeof text), n);
    const clv__op *op = op_of(signature);
    _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
    clv_tensor *padded[CLV__MAX_IN] = {0};
    if (!list) {
        for (int i = 0; i < n; i++) padded[i] = inputs[i];
        inputs = padded, n = most;
    }
    if (clv__arguments_read(op->name, op->attributes, arguments, n_arguments, attrs, NULL) != CLV_OK)
        return refused(graph, op, arguments, n_arguments);
    if (!list && !are_there(graph, op, inputs, n)) return NULL;
    const clv__call call = {graph, inputs, n, attrs, op};
    if (op->build) return clv__call_fits(&call) ? op->build(&call) : NULL;
    return clv__node_add_to(graph, op, attrs, inputs, n, clv__inputs_optional(op->inputs));
}
