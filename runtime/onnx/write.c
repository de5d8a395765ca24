// SPDX-License-Identifier: Apache-2.0
// A graph as an ONNX file: all nodes by their rows, inputs and results, weights. The file is written from its beginning to its end, with
// the weights as they lie in their archive.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/runtime.h"
#include "io/file.h"
#include "io/formats.h"
#include "onnx/writer.h"

enum { MOST_BYTES = 2000000000 };

// ---- all nodes ------------------------------------------------------------------------------------------------------

static const clv__onnx_write_row *row_of(const char *op) {
    static const clv__onnx_write_row same[] = {
        {"dropout", NULL, NULL}, {"to", NULL, NULL}, {"detach", NULL, NULL}};
    const clv__onnx_write_row *const tables[] = {clv__onnx_write_rows, clv__onnx_write_moves,
                                                 clv__onnx_write_recurrent, clv__onnx_write_windows};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const clv__onnx_write_row *row = tables[t]; row->op; row++)
            if (!strcmp(row->op, op)) return row;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!strcmp(same[i].op, op)) return &same[i];
    return NULL;
}

bool clv__onnx_writes(const char *op) {
    return row_of(op) != NULL;
}

/** All ops without a row in one sentence, before anything is written. */
static clv_status check_ops(const clv__onnx_writer *w) {
    char text[CLV__ERROR_BYTES / 2] = "";
    size_t used = 0;
    int n = 0;
    clv_node_info node, earlier;
    for (int i = 0; clv_graph_node_get(w->what->one.graph, i, &node); i++) {
        int count = 1;
        if (row_of(node.op)) continue;
        bool told = false;
        for (int k = 0; k < i && !told; k++)
            told = clv_graph_node_get(w->what->one.graph, k, &earlier) && !strcmp(earlier.op, node.op);
        for (int k = i + 1; clv_graph_node_get(w->what->one.graph, k, &earlier); k++)
            count += !strcmp(earlier.op, node.op);
        if (told || used + strlen(node.op) + strlen(node.layer) + 48 > sizeof text) continue;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s: %d node%s%s%s", n++ ? "; " : "", node.op,
                             count, count == 1 ? "" : "s", *node.layer ? ", the first in " : "", node.layer);
    }
    if (n) CLV_FAIL(w->error, CLV_E_UNSUPPORTED, "ONNX has no node for %s", text);
    return CLV_OK;
}

static void write_node(clv__onnx_writer *w) {
    const clv__onnx_write_row *row = w->row = row_of(w->node.op);
    char base[640];
    snprintf(base, sizeof base, "%s%s%s_%d", w->node.layer, *w->node.layer ? "/" : "", w->node.op,
             w->node.outputs[0]->id);
    w->base = base;
    w->n_made = 0;
    if (clv__writer_feeds_recurrence(w->node.outputs[0])) return;
    if (row->write) {
        row->write(w);
    } else if (row->onnx) {
        clv__writer_begin(w, row->onnx, (const char *const[]){NULL});
        for (int i = 0; i < w->node.n_inputs; i++) clv__writer_put_input(w, clv__writer_in(w, i));
        clv__writer_end(w, clv__writer_result(w));
    } else {
        w->names[w->node.outputs[0]->id] = clv__writer_in(w, 0);
    }
}

static clv_status differ(clv__onnx_writer *w) {
    CLV_FAIL(w->error, CLV_E_UNSUPPORTED,
             "the model has other nodes for each batch and cannot be written as ONNX; a fixed batch helps "
             "(clv_onnx_write_config.batch)");
}

/** Whole numbers that are fed are i64 there, as PyTorch has them. */
static void write_inputs(clv__onnx_writer *w) {
    for (int i = 0; i < w->what->n_inputs; i++) {
        const clv_tensor *input = w->what->one.inputs[i];
        w->names[input->id] = w->what->input_names[i];
        if (input->desc.dtype != CLV_DTYPE_I32) continue;
        char base[640];
        snprintf(base, sizeof base, "%s/i32", w->what->input_names[i]);
        w->base = base;
        w->names[input->id] =
            clv__writer_cast(w, w->what->input_names[i], CLV__ONNX_INT32, clv__writer_own_name(w, true));
    }
}

/** Results that another node, or none, has made under another name. */
static void name_outputs(clv__onnx_writer *w) {
    for (int i = 0; i < w->what->n_outputs; i++) {
        const clv_tensor *output = w->what->one.outputs[i];
        const char *name = w->names[output->id] ? w->names[output->id] : output->name;
        if (strcmp(name, w->what->output_names[i]) != 0)
            clv__writer_node_of(w, "Identity", w->what->output_names[i], name);
    }
}

static clv_status write_nodes(clv__onnx_writer *w) {
    const clv__onnx_built *one = &w->what->one, *other = &w->what->other;
    CLV_TRY(check_ops(w));
    if (one->graph->n_nodes != other->graph->n_nodes) return differ(w);
    write_inputs(w);
    for (int i = 0; w->status == CLV_OK && clv_graph_node_get(one->graph, i, &w->node); i++) {
        clv_graph_node_get(other->graph, i, &w->other);
        if (strcmp(w->node.op, w->other.op) != 0 || w->node.n_inputs != w->other.n_inputs) return differ(w);
        if (!strcmp(w->node.phase, "forward")) write_node(w);
    }
    if (w->status == CLV_OK) name_outputs(w);
    if (w->nodes.failed || w->now.failed) clv__writer_out_of_memory(w);
    return w->status;
}

// ---- ports ----------------------------------------------------------------------------------------------------------

/** ValueInfoProto: name, type, shape; the batch by its name if it is open. */
static void put_port(clv__text *graph, uint32_t field, const clv__onnx_writing *what, const char *name,
                     const clv_tensor *one, const clv_tensor *other) {
    enum {
        INFO_NAME = 1,
        INFO_TYPE,
        TYPE_TENSOR = 1,
        TENSOR_ELEMENT = 1,
        TENSOR_SHAPE,
        SHAPE_DIM = 1,
        DIM_VALUE = 1,
        DIM_PARAM
    };
    clv__text info = {0}, type = {0}, tensor = {0}, shape = {0};
    const bool fed = field == GRAPH_INPUT && one->desc.dtype == CLV_DTYPE_I32;
    for (int i = 0; i < one->desc.shape.rank; i++) {
        clv__text dim = {0};
        const int64_t size = one->desc.shape.dims[i];
        if (size == other->desc.shape.dims[i])
            clv__wire_put_int(&dim, DIM_VALUE, size);
        else if (size == what->one.batch)
            clv__wire_put_text(&dim, DIM_PARAM, "batch");
        clv__wire_put_message(&shape, SHAPE_DIM, &dim);
    }
    clv__wire_put_int(&tensor, TENSOR_ELEMENT, fed ? CLV__ONNX_INT64 : clv__writer_dtype_of(one->desc.dtype));
    clv__wire_put_message(&tensor, TENSOR_SHAPE, &shape);
    clv__wire_put_message(&type, TYPE_TENSOR, &tensor);
    clv__wire_put_text(&info, INFO_NAME, name);
    clv__wire_put_message(&info, INFO_TYPE, &type);
    clv__wire_put_message(graph, field, &info);
}

static void put_ports(clv__text *graph, const clv__onnx_writing *what) {
    for (int i = 0; i < what->n_inputs; i++)
        put_port(graph, GRAPH_INPUT, what, what->input_names[i], what->one.inputs[i], what->other.inputs[i]);
    for (int i = 0; i < what->n_outputs; i++)
        put_port(graph, GRAPH_OUTPUT, what, what->output_names[i], what->one.outputs[i],
                 what->other.outputs[i]);
}

// ---- weights --------------------------------------------------------------------------------------------------------

/** A parameter or buffer, and what stands before its bytes. */
typedef struct weight {
    const clv_array *array;
    size_t bytes;
    uint64_t at;    // in the file beside it
    clv__text head; // the field of the graph up to its bytes, where they lie in it; else all of it
} weight;

typedef struct weights {
    weight *list;
    size_t n;
    uint64_t bytes, in_graph; // of all; of the fields in the graph
    bool beside;
} weights;

static bool is_weight(const clv_tensor *tensor) {
    return tensor->kind == CLV__PERSISTENT && tensor->category == CLV_PARAMETERS && !tensor->values;
}

/** Those that the graph has, each of which the archive must hold in its shape. */
static clv_status find_weights(const clv__onnx_writer *w, weights *all) {
    const clv_graph *graph = w->what->one.graph;
    all->list = clv__alloc(graph->n_tensors + 1, sizeof *all->list);
    if (!all->list) CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no host memory for the text of an ONNX file");
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        if (!is_weight(tensor)) continue;
        const clv_array *array;
        CLV_TRY(clv__archive_require(w->what->weights, tensor->name, tensor->desc.dtype, &tensor->desc.shape,
                                     &array));
        all->list[all->n++] =
            (weight){.array = array, .bytes = clv__writer_bytes_of(tensor), .at = all->bytes};
        all->bytes += clv__size_align(clv__writer_bytes_of(tensor), 64);
    }
    return CLV_OK;
}

static void put_entry(clv__text *to, uint32_t field, const char *key, const char *value) {
    clv__text entry = {0};
    clv__wire_put_text(&entry, ENTRY_KEY, key);
    clv__wire_put_text(&entry, ENTRY_VALUE, value);
    clv__wire_put_message(to, field, &entry);
}

/** TensorProto, without its bytes where they follow. */
static void put_weight(weight *one, const char *beside) {
    clv__text tensor = {0};
    clv__writer_put_type(&tensor, one->array->type, &one->array->shape);
    clv__wire_put_text(&tensor, TENSOR_NAME, one->array->name);
    if (!beside) {
        clv__wire_put_length(&tensor, TENSOR_RAW, one->bytes);
        clv__wire_put_length(&one->head, GRAPH_INITIALIZER, tensor.n + one->bytes);
        clv__text_add_bytes(&one->head, clv__text_get(&tensor), tensor.n);
        one->head.failed |= tensor.failed;
        clv__text_reset(&tensor);
        return;
    }
    char at[24], n[24];
    snprintf(at, sizeof at, "%" PRIu64, one->at);
    snprintf(n, sizeof n, "%zu", one->bytes);
    put_entry(&tensor, TENSOR_EXTERNAL, "location", beside);
    put_entry(&tensor, TENSOR_EXTERNAL, "offset", at);
    put_entry(&tensor, TENSOR_EXTERNAL, "length", n);
    clv__wire_put_int(&tensor, TENSOR_LOCATION, 1);
    clv__wire_put_message(&one->head, GRAPH_INITIALIZER, &tensor);
}

static clv_status put_weights(const clv__onnx_writer *w, weights *all, const char *beside) {
    for (size_t i = 0; i < all->n; i++) {
        put_weight(&all->list[i], beside);
        if (all->list[i].head.failed)
            CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no host memory for the text of an ONNX file");
        all->in_graph += all->list[i].head.n + (beside ? 0 : all->list[i].bytes);
    }
    return CLV_OK;
}

static void weights_reset(weights *all) {
    for (size_t i = 0; i < all->n; i++) clv__text_reset(&all->list[i].head);
    free(all->list);
}

/** The file of weights beside the model's. */
static clv_status write_beside(const weights *all, const char *path, clv__error *error) {
    static const char zeros[64];
    clv__output output;
    CLV_TRY(clv__output_open(error, path, &output));
    for (size_t i = 0; i < all->n; i++) {
        const size_t bytes = all->list[i].bytes;
        CLV_TRY(clv__output_write(&output, all->list[i].array->data, bytes));
        CLV_TRY(clv__output_write(&output, zeros, clv__size_align(bytes, 64) - bytes));
    }
    return clv__output_commit(&output, false);
}

// ---- the file -------------------------------------------------------------------------------------------------------

/** ModelProto up to its graph's bytes. */
static void put_model(clv__text *model, const clv__onnx_writing *what) {
    clv__text opset = {0};
    clv__wire_put_int(model, MODEL_IR, CLV__ONNX_WRITTEN_IR);
    clv__wire_put_text(model, MODEL_PRODUCER, "cleave");
    clv__wire_put_text(model, MODEL_PRODUCER_VERSION, clv_version());
    enum { OPSET_VERSION = 2 };
    clv__wire_put_int(&opset, OPSET_VERSION, CLV__ONNX_WRITTEN_OPSET);
    clv__wire_put_message(model, MODEL_OPSET, &opset);
    for (size_t i = 0; i < what->weights->n_texts; i++)
        put_entry(model, MODEL_METADATA, what->weights->texts[i].key, what->weights->texts[i].text);
}

static clv_status put_out(const clv__onnx_writer *w, const weights *all, const clv__text *model,
                          const clv__text *ports, const char *path) {
    clv__output output;
    CLV_TRY(clv__output_open(w->error, path, &output));
    CLV_TRY(clv__output_write(&output, model->data, model->n));
    CLV_TRY(clv__output_write(&output, clv__text_get(&w->nodes), w->nodes.n));
    for (size_t i = 0; i < all->n; i++) {
        CLV_TRY(clv__output_write(&output, all->list[i].head.data, all->list[i].head.n));
        if (!all->beside) CLV_TRY(clv__output_write(&output, all->list[i].array->data, all->list[i].bytes));
    }
    CLV_TRY(clv__output_write(&output, ports->data, ports->n));
    return clv__output_commit(&output, false);
}

static clv_status write_file(const clv__onnx_writer *w, weights *all, const char *path) {
    clv__text model = {0}, ports = {0}, beside = {0};
    clv_status status = CLV_OK;
    all->beside = all->bytes + w->nodes.n > (w->what->most ? w->what->most : MOST_BYTES);
    clv__text_add(&beside, "%s.data", path);
    clv__wire_put_text(&ports, GRAPH_NAME, w->what->graph_name);
    put_ports(&ports, w->what);
    put_model(&model, w->what);
    if (all->beside) {
        const char *slash = strrchr(clv__text_get(&beside), '/');
        status = put_weights(w, all, slash ? slash + 1 : clv__text_get(&beside));
        if (status == CLV_OK) status = write_beside(all, clv__text_get(&beside), w->error);
    } else {
        status = put_weights(w, all, NULL);
    }
    clv__wire_put_length(&model, MODEL_GRAPH, w->nodes.n + all->in_graph + ports.n);
    if (status == CLV_OK && (model.failed || ports.failed || beside.failed))
        status = clv__error_set(w->error, CLV_E_HOST_MEMORY, "no host memory for the text of an ONNX file");
    if (status == CLV_OK) status = put_out(w, all, &model, &ports, path);
    clv__text_reset(&model);
    clv__text_reset(&ports);
    clv__text_reset(&beside);
    return status;
}

clv_status clv__onnx_write(const clv__onnx_writing *what, const char *path, clv__error *error) {
    clv__onnx_writer w = {.what = what, .error = error};
    weights all = {0};
    clv_status status = CLV_OK;
    w.names = clv__alloc(what->one.graph->n_tensors + 1, sizeof *w.names);
    if (!w.names) clv__writer_out_of_memory(&w);
    status = w.status;
    if (status == CLV_OK) status = write_nodes(&w);
    if (status == CLV_OK) status = find_weights(&w, &all);
    if (status == CLV_OK) status = write_file(&w, &all, path);
    weights_reset(&all);
    clv__text_reset(&w.nodes);
    clv__text_reset(&w.now);
    clv__arena_reset(&w.arena);
    free(w.names);
    return status;
}
