// SPDX-License-Identifier: Apache-2.0
// What rows call to write nodes: values and their names, attributes, constants, sizes that follow the batch.
#include "onnx/writer.h"

#include <stdio.h>
#include <string.h>

// ---- values ---------------------------------------------------------------------------------------------------------

void clv__writer_out_of_memory(clv__onnx_writer *w) {
    if (w->status == CLV_OK)
        w->status =
            clv__error_set(w->error, CLV_E_HOST_MEMORY, "no host memory for the text of an ONNX file");
}

void clv__writer_cannot(clv__onnx_writer *w, const char *why) {
    if (w->status != CLV_OK) return;
    w->status = clv__error_set(w->error, CLV_E_UNSUPPORTED, "%s%s%s cannot be written as ONNX: %s",
                               w->node.op, *w->node.layer ? " of " : "", w->node.layer, why);
}

clv__onnx_dtype clv__writer_dtype_of(clv_dtype dtype) {
    static const clv_dtype ours[] = {
#define D(id, name, bits, list, ours) CLV_DTYPE_##ours,
#include "onnx/dtypes.def"
#undef D
    };
    for (int i = 0; i < CLV__ONNX_DTYPES; i++)
        if (ours[i] == dtype) return (clv__onnx_dtype)i;
    return CLV__ONNX_UNDEFINED;
}

size_t clv__writer_bytes_of(const clv_tensor *tensor) {
    return (size_t)clv_shape_numel(&tensor->desc.shape) * clv_dtype_bytes(tensor->desc.dtype);
}

const char *clv__writer_own_name(clv__onnx_writer *w, bool last) {
    char text[700];
    if (last)
        snprintf(text, sizeof text, "%s", w->base);
    else
        snprintf(text, sizeof text, "%s/%d", w->base, w->n_made++);
    const char *name = clv__arena_strdup(&w->arena, text);
    if (!name) clv__writer_out_of_memory(w);
    return name ? name : "";
}

const char *clv__writer_result_of(clv__onnx_writer *w, int which) {
    const clv_tensor *tensor = w->node.outputs[which];
    const char *name = NULL;
    for (int i = 0; i < w->what->n_outputs && !name; i++)
        if (w->what->one.outputs[i] == tensor) name = w->what->output_names[i];
    if (!name) name = clv__writer_own_name(w, which == 0);
    return w->names[tensor->id] = name;
}

const char *clv__writer_result(clv__onnx_writer *w) {
    return clv__writer_result_of(w, 0);
}

const char *clv__writer_name_of(const clv__onnx_writer *w, const clv_tensor *tensor) {
    return !tensor ? NULL : w->names[tensor->id] ? w->names[tensor->id] : tensor->name;
}

const clv_shape *clv__writer_in_shape(const clv__onnx_writer *w, int i) {
    return &w->node.inputs[i]->desc.shape;
}

/** An array that is part of the graph, where it is first read. */
static const char *constant_of(clv__onnx_writer *w, const clv_tensor *tensor, int input) {
    const clv_tensor *other = w->other.inputs[input];
    if (!clv_shape_equal(&other->desc.shape, &tensor->desc.shape) || !other->values ||
        memcmp(other->values, tensor->values, clv__writer_bytes_of(tensor)) != 0) {
        clv__writer_cannot(w, "it reads an array that is another one for each batch; a fixed batch helps "
                              "(clv_onnx_write_config.batch)");
        return "";
    }
    return clv__writer_constant(w, tensor->desc.dtype, &tensor->desc.shape, tensor->values);
}

const char *clv__writer_in(clv__onnx_writer *w, int i) {
    const clv_tensor *tensor = i < w->node.n_inputs ? w->node.inputs[i] : NULL;
    if (!tensor) return NULL;
    if (!w->names[tensor->id])
        w->names[tensor->id] = tensor->values ? constant_of(w, tensor, i) : tensor->name;
    return w->names[tensor->id];
}

// ---- nodes ----------------------------------------------------------------------------------------------------------

void clv__writer_begin(clv__onnx_writer *w, const char *op, const char *const *inputs) {
    clv__wire_put_text(&w->now, NODE_OP_TYPE, op);
    for (; *inputs; inputs++) clv__wire_put_text(&w->now, NODE_INPUT, *inputs);
}

void clv__writer_put_input(clv__onnx_writer *w, const char *name) {
    clv__wire_put_text(&w->now, NODE_INPUT, name);
}

static void end_attribute(clv__onnx_writer *w, clv__text *attribute, clv__onnx_attribute_type type) {
    clv__wire_put_int(attribute, ATTRIBUTE_TYPE, type);
    clv__wire_put_message(&w->now, NODE_ATTRIBUTE, attribute);
}

void clv__writer_put_int(clv__onnx_writer *w, const char *name, int64_t value) {
    clv__text attribute = {0};
    clv__wire_put_text(&attribute, ATTRIBUTE_NAME, name);
    clv__wire_put_int(&attribute, ATTRIBUTE_I, value);
    end_attribute(w, &attribute, CLV__ONNX_ATTRIBUTE_INT);
}

void clv__writer_put_float(clv__onnx_writer *w, const char *name, float value) {
    clv__text attribute = {0};
    clv__wire_put_text(&attribute, ATTRIBUTE_NAME, name);
    clv__wire_put_float(&attribute, ATTRIBUTE_F, value);
    end_attribute(w, &attribute, CLV__ONNX_ATTRIBUTE_FLOAT);
}

void clv__writer_put_ints(clv__onnx_writer *w, const char *name, const int64_t *values, int n) {
    clv__text attribute = {0};
    clv__wire_put_text(&attribute, ATTRIBUTE_NAME, name);
    for (int i = 0; i < n; i++) clv__wire_put_int(&attribute, ATTRIBUTE_INTS, values[i]);
    end_attribute(w, &attribute, CLV__ONNX_ATTRIBUTE_INTS);
}

void clv__writer_put_texts(clv__onnx_writer *w, const char *name, const char *text) {
    clv__text attribute = {0};
    clv__wire_put_text(&attribute, ATTRIBUTE_NAME, name);
    clv__wire_put_text(&attribute, ATTRIBUTE_STRINGS, text);
    end_attribute(w, &attribute, CLV__ONNX_ATTRIBUTE_STRINGS);
}

void clv__writer_put_text(clv__onnx_writer *w, const char *name, const char *text) {
    clv__text attribute = {0};
    clv__wire_put_text(&attribute, ATTRIBUTE_NAME, name);
    clv__wire_put_text(&attribute, ATTRIBUTE_S, text);
    end_attribute(w, &attribute, CLV__ONNX_ATTRIBUTE_STRING);
}

void clv__writer_end_with(clv__onnx_writer *w, const char *const *results) {
    clv__wire_put_text(&w->now, NODE_NAME, *results);
    for (; *results; results++) clv__wire_put_text(&w->now, NODE_OUTPUT, *results);
    clv__wire_put_message(&w->nodes, GRAPH_NODE, &w->now);
}

const char *clv__writer_also(clv__onnx_writer *w) {
    return clv__writer_own_name(w, false);
}

const char *clv__writer_end(clv__onnx_writer *w, const char *as) {
    if (!as) as = clv__writer_own_name(w, false);
    clv__writer_end_with(w, (const char *const[]){as, NULL});
    return as;
}

const char *clv__writer_cast(clv__onnx_writer *w, const char *value, clv__onnx_dtype to, const char *as) {
    clv__writer_begin(w, "Cast", (const char *const[]){value, NULL});
    clv__writer_put_int(w, "to", to);
    return clv__writer_end(w, as);
}

// ---- constants ------------------------------------------------------------------------------------------------------

void clv__writer_put_type(clv__text *tensor, clv_dtype dtype, const clv_shape *shape) {
    for (int i = 0; i < shape->rank; i++) clv__wire_put_int(tensor, TENSOR_DIMS, shape->dims[i]);
    clv__wire_put_int(tensor, TENSOR_DTYPE, clv__writer_dtype_of(dtype));
}

const char *clv__writer_constant(clv__onnx_writer *w, clv_dtype dtype, const clv_shape *shape,
                                 const void *data) {
    clv__text node = {0}, attribute = {0}, tensor = {0};
    const char *name = clv__writer_own_name(w, false);
    clv__writer_put_type(&tensor, dtype, shape);
    clv__wire_put_bytes(&tensor, TENSOR_RAW, data, (size_t)clv_shape_numel(shape) * clv_dtype_bytes(dtype));
    clv__wire_put_text(&attribute, ATTRIBUTE_NAME, "value");
    clv__wire_put_message(&attribute, ATTRIBUTE_T, &tensor);
    clv__wire_put_int(&attribute, ATTRIBUTE_TYPE, CLV__ONNX_ATTRIBUTE_TENSOR);
    clv__wire_put_text(&node, NODE_OP_TYPE, "Constant");
    clv__wire_put_message(&node, NODE_ATTRIBUTE, &attribute);
    clv__wire_put_text(&node, NODE_OUTPUT, name);
    clv__wire_put_text(&node, NODE_NAME, name);
    clv__wire_put_message(&w->nodes, GRAPH_NODE, &node);
    return name;
}

const char *clv__writer_scalar(clv__onnx_writer *w, float value) {
    const clv_shape shape = {0};
    return clv__writer_constant(w, CLV_DTYPE_F32, &shape, &value);
}

const char *clv__writer_list(clv__onnx_writer *w, const int64_t *values, int n) {
    const clv_shape shape = {1, {n}};
    return clv__writer_constant(w, CLV_DTYPE_I64, &shape, values);
}

// ---- what follows the batch -----------------------------------------------------------------------------------------

static void follows(clv__onnx_writer *w) {
    clv__writer_cannot(
        w, "a number of its depends on the batch; a fixed batch helps (clv_onnx_write_config.batch)");
}

clv__onnx_size clv__writer_size_of(clv__onnx_writer *w, int64_t one, int64_t other) {
    const int64_t batch = w->what->one.batch;
    if (one == other) return (clv__onnx_size){.value = one};
    if (one % batch != 0 || one / batch * w->what->other.batch != other) follows(w);
    return (clv__onnx_size){.value = one / batch, .of_batch = true};
}

const clv_op_argument *clv__writer_argument(const clv_node_info *node, const char *name) {
    static const clv_op_argument none;
    for (int i = 0; i < node->n_arguments; i++)
        if (!strcmp(node->arguments[i].name, name)) return &node->arguments[i];
    return &none;
}

double clv__writer_number(clv__onnx_writer *w, const char *name) {
    const double one = clv__writer_argument(&w->node, name)->number;
    const double other = clv__writer_argument(&w->other, name)->number;
    if (one != other && !(one != one && other != other)) follows(w);
    return one;
}

int clv__writer_sizes_of(clv__onnx_writer *w, const char *name, clv__onnx_size out[CLV_MAX_RANK]) {
    const clv_op_argument *one = clv__writer_argument(&w->node, name);
    const clv_op_argument *other = clv__writer_argument(&w->other, name);
    if (one->n != other->n) follows(w);
    for (int i = 0; i < one->n && i < other->n; i++)
        out[i] = clv__writer_size_of(w, one->list[i], other->list[i]);
    return one->n;
}

int clv__writer_numbers(clv__onnx_writer *w, const char *name, int64_t out[CLV_MAX_RANK]) {
    clv__onnx_size sizes[CLV_MAX_RANK] = {0};
    const int n = clv__writer_sizes_of(w, name, sizes);
    for (int i = 0; i < n; i++) {
        if (sizes[i].of_batch) follows(w);
        out[i] = sizes[i].value;
    }
    return n;
}

/** [batch], as the first input has it. */
static const char *batch_of(clv__onnx_writer *w) {
    if (w->batch) return w->batch;
    clv__writer_begin(w, "Shape", (const char *const[]){w->what->input_names[0], NULL});
    clv__writer_put_int(w, "start", 0);
    clv__writer_put_int(w, "end", 1);
    return w->batch = clv__writer_end(w, NULL);
}

const char *clv__writer_sizes(clv__onnx_writer *w, const clv__onnx_size *sizes, int n, bool reshape) {
    int64_t values[CLV_MAX_RANK];
    const char *parts[CLV_MAX_RANK + 1] = {0};
    int of_batch = 0, zero = 0;
    for (int i = 0; i < n; i++) {
        of_batch += sizes[i].of_batch;
        zero += sizes[i].value == 0;
        values[i] = sizes[i].of_batch ? -1 : sizes[i].value;
    }
    if (!of_batch || (reshape && of_batch == 1 && !zero)) return clv__writer_list(w, values, n);
    for (int i = 0; i < n; i++) {
        const int64_t value = sizes[i].value;
        if (!sizes[i].of_batch)
            parts[i] = clv__writer_list(w, &value, 1);
        else if (value == 1)
            parts[i] = batch_of(w);
        else
            parts[i] = clv__writer_node_of(w, "Mul", NULL, batch_of(w), clv__writer_list(w, &value, 1));
    }
    if (n == 1) return parts[0];
    clv__writer_begin(w, "Concat", parts);
    clv__writer_put_int(w, "axis", 0);
    return clv__writer_end(w, NULL);
}
