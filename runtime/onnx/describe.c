// SPDX-License-Identifier: Apache-2.0
// What can be asked of the parts of a model, and their names in sentences.
#include <stdio.h>
#include <string.h>

#include "io/shown.h"
#include "onnx/file.h"

bool clv__onnx_text_is(clv__onnx_text text, const char *as) {
    return text.n == strlen(as) && memcmp(text.data, as, text.n) == 0;
}

bool clv__onnx_text_equal(clv__onnx_text a, clv__onnx_text b) {
    return a.n == b.n && memcmp(a.data, b.data, a.n) == 0;
}

const clv__onnx_attribute *clv__onnx_attribute_find(const clv__onnx_node *node, const char *name) {
    for (size_t i = 0; i < node->n_attributes; i++)
        if (clv__onnx_text_is(node->attributes[i].name, name)) return &node->attributes[i];
    return NULL;
}

static const struct {
    const char *name;
    int bits;
} dtypes[CLV__ONNX_DTYPES] = {
#define D(id, name, bits, list, ours) {name, bits},
#include "onnx/dtypes.def"
#undef D
};

static bool known(clv__onnx_dtype dtype) {
    return (int)dtype >= 0 && dtype < CLV__ONNX_DTYPES;
}

int clv__onnx_dtype_bits(clv__onnx_dtype dtype) {
    return known(dtype) ? dtypes[dtype].bits : 0;
}

const char *clv__onnx_dtype_name(clv__onnx_dtype dtype) {
    return dtypes[known(dtype) ? dtype : CLV__ONNX_UNDEFINED].name;
}

const char *clv__onnx_node_shown(const clv__onnx_node *node, clv__onnx_node_text *room) {
    clv__shown_text op, name;
    clv__shown_bytes(node->op_type.data, node->op_type.n, &op);
    clv__onnx_text output = {.data = "", .n = 0};
    for (size_t i = 0; i < node->n_outputs && output.n == 0; i++) output = node->outputs[i];
    if (node->name.n) {
        clv__shown_bytes(node->name.data, node->name.n, &name);
        snprintf(room->text, sizeof room->text, "node '%s' (%s)", name.text, op.text);
    } else if (output.n) {
        clv__shown_bytes(output.data, output.n, &name);
        snprintf(room->text, sizeof room->text, "node (%s) of '%s'", op.text, name.text);
    } else {
        snprintf(room->text, sizeof room->text, "node (%s)", op.text);
    }
    return room->text;
}
