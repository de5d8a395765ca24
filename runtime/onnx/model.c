// SPDX-License-Identifier: Apache-2.0
// A file's graph as a model: its ports, and how many numbers its weights have.
#include "cleave/onnx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/device.h"
#include "graph/graph.h"
#include "io/shown.h"
#include "onnx/import.h"
#include "onnx/known.h"
#include "onnx/weights.h"

struct clv_onnx {
    clv_runtime *runtime;
    clv__onnx_model *file;
    clv_model model;
    clv_port ports[2 * CLV_MAX_PORTS]; // inputs, then targets
    int n_inputs, n_targets;
    int result[CLV_MAX_PORTS];    // which of the file's a target is
    bool later[CLV_MAX_PORTS];    // the batch is that one's second dimension
    bool of_steps[CLV_MAX_PORTS]; // its loss is ctc
    bool input_lengths;           // the last input is none of the file's: how many steps count
    int64_t batch;                // the first dimension of all inputs; 0: open, or they differ
    clv__arena names;
    const char *producer, *class_parameters;
    int64_t n_parameters;
    bool any_shape; // no model: clv_onnx_append alone
    const char *missing;
    const char **value_names; // of inputs, then results
};

// ---- ports ----------------------------------------------------------------------------------------------------------

/** One entry of `seq=128,height=224`. */
typedef struct said {
    const char *name;
    size_t n;
    int64_t size; // 0: no number of 1 or more
} said;

/** The next entry; false: there is none. */
static bool next_said(const char **at, said *out) {
    if (!*at || !**at) return false;
    const size_t n = strcspn(*at, ","), name = strcspn(*at, "=,");
    char *end = NULL;
    *out = (said){.name = *at, .n = name};
    if (name < n) out->size = strtoll(*at + name + 1, &end, 10);
    if (end != *at + n || out->size < 1) out->size = 0;
    *at += n + ((*at)[n] == ',');
    return true;
}

/** What is said of a name; 0: nothing. */
static int64_t said_of(const char *dims, clv__onnx_text name) {
    said one;
    while (next_said(&dims, &one))
        if (one.n == name.n && !memcmp(one.name, name.data, name.n)) return one.size;
    return 0;
}

/** Has an input an open dimension of that name, behind the batch? */
static bool is_open(const clv__onnx_graph *file, const said *one) {
    for (size_t i = 0; i < file->n_inputs; i++)
        for (size_t d = 1; d < file->inputs[i].rank; d++) {
            const clv__onnx_text name = file->inputs[i].dims[d].name;
            if (one->n && name.n == one->n && !memcmp(one->name, name.data, name.n)) return true;
        }
    return false;
}

/** Each entry must be of a dimension that the file leaves open. */
static clv_status check_dims(clv__error *error, const clv__onnx_model *file, const char *dims) {
    clv__shown_text shown;
    said one;
    while (next_said(&dims, &one)) {
        const char *name = clv__shown_bytes(one.name, one.n, &shown);
        if (!is_open(&file->graph, &one))
            CLV_FAIL(error, CLV_E_VALUE,
                     "'%s' has no open dimension '%s' behind the batch (clv_onnx_config.dims)", file->path,
                     name);
        if (!one.size)
            CLV_FAIL(error, CLV_E_VALUE,
                     "'%s': the dimension '%s' must be a whole number from 1, as in %s=128 "
                     "(clv_onnx_config.dims)",
                     file->path, name, name);
    }
    return CLV_OK;
}

/** A dimension that neither the file nor anybody says. */
static clv_status refuse_open(clv__error *error, const char *path, const char *input, size_t d,
                              clv__onnx_text name) {
    clv__shown_text dim;
    const char *shown = clv__shown_bytes(name.data, name.n, &dim);
    if (!name.n)
        CLV_FAIL(
            error, CLV_E_VALUE,
            "'%s': dimension %zu of the input '%s' is open and has no name: write the file again with one, "
            "or with a number",
            path, d, input);
    CLV_FAIL(error, CLV_E_VALUE,
             "'%s': dimension %zu of the input '%s' is open: say how large '%s' is "
             "(clv_onnx_config.dims = %s=128)",
             path, d, input, shown, shown);
}

static clv_status read_input(clv_onnx *onnx, clv__error *error, const clv__onnx_info *info,
                             const char *dims) {
    clv__shown_text shown;
    const char *name = clv__shown_bytes(info->name.data, info->name.n, &shown), *path = onnx->file->path;
    if (info->kind != CLV__ONNX_OF_TENSOR || !info->has_shape || info->rank < 1)
        CLV_FAIL(error, CLV_E_UNSUPPORTED,
                 "'%s': the input '%s' is no tensor of a known rank, and the first dimension of a tensor is "
                 "the batch",
                 path, name);
    if (info->rank > CLV_MAX_RANK)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': the input '%s' has %zu dimensions, and %d are the most",
                 path, name, info->rank, CLV_MAX_RANK);
    if (onnx->n_inputs == CLV_MAX_PORTS)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': more than %d inputs", path, CLV_MAX_PORTS);
    const int64_t batch = info->dims[0].size > 0 ? info->dims[0].size : 0;
    onnx->batch = !onnx->n_inputs || batch == onnx->batch ? batch : 0;
    clv_port *port = &onnx->ports[onnx->n_inputs++];
    port->name = clv__arena_strdup(&onnx->names, name);
    port->dtype = clv__onnx_is_float((int)info->dtype) ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
    for (size_t d = 1; d < info->rank; d++) {
        const clv__onnx_dim *one = &info->dims[d];
        port->dims[d - 1] = one->size > 0 ? one->size : said_of(dims, one->name);
        if (port->dims[d - 1] < 1) return refuse_open(error, path, name, d, one->name);
    }
    return port->name ? CLV_OK : CLV_E_HOST_MEMORY;
}

/** x with its first two dimensions exchanged. */
static clv_tensor *batch_first(clv_tensor *x) {
    int order[CLV_MAX_RANK] = {1, 0};
    for (int d = 2; d < CLV_MAX_RANK; d++) order[d] = d;
    return clv_permute(x, order, clv_tensor_shape(x).rank);
}

/** Logarithms of probabilities [N,T,C]; past a sample's own steps only the blank, class 0, can be. */
static clv_tensor *own_steps(clv_tensor *x, clv_tensor *lengths) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_shape s = clv_tensor_shape(x);
    if (!graph || s.rank != 3) return x;
    clv_tensor *step = clv_arange(graph, 0, (double)s.dims[1], 1, CLV_DTYPE_I32),
               *class = clv_arange(graph, 0, (double)s.dims[2], 1, CLV_DTYPE_I32);
    clv_tensor *past = clv_ge(clv_reshape(step, CLV_SHAPE(1, s.dims[1], 1)),
                              clv_reshape(lengths, CLV_SHAPE(s.dims[0], 1, 1)));
    clv_tensor *never = clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, -1e30F),
               *sure = clv_full(graph, CLV_DTYPE_F32, (clv_shape){0}, 0);
    clv_tensor *blank =
        clv_where(clv_gt(class, clv_full(graph, CLV_DTYPE_I32, (clv_shape){0}, 0)), never, sure);
    return clv_where(past, blank, clv_log_softmax(x, -1));
}

/** Has each result a row for each sample? The sentence says what makes the one that has not. */
static bool has_rows(const clv_onnx *onnx, int i, clv_tensor *y, int64_t batch) {
    const clv_shape shape = clv_tensor_shape(y);
    if (!y || (shape.rank > 0 && shape.dims[0] == batch)) return true;
    const clv__onnx_info *info = &onnx->file->graph.outputs[onnx->result[i]];
    const clv__onnx_node *node = onnx->file->values[info->value].node;
    clv__onnx_node_text room;
    clv__shown_text name;
    char text[128];
    clv__graph_fail(
        clv_tensor_graph(y), CLV_E_UNSUPPORTED,
        "'%s': the result '%s' of %s is %s and has no row for each of the %lld samples of a batch; export "
        "the model up to results that have (a loss is computed here), or name those "
        "(clv_onnx_config.targets)",
        onnx->file->path, clv__shown_bytes(info->name.data, info->name.n, &name),
        node ? clv__onnx_node_shown(node, &room) : "no node", clv_shape_text(&shape, text, sizeof text),
        (long long)batch);
    return false;
}

static void build_all(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    const clv_onnx *onnx = model->user;
    clv_tensor *all[CLV_MAX_PORTS] = {NULL};
    clv__onnx_build(onnx->file, model->build ? model->classes : 0, inputs, all);
    for (int i = 0; i < onnx->n_targets; i++) {
        clv_tensor *y = all[onnx->result[i]];
        if (y && onnx->later[i]) y = batch_first(y);
        if (y && onnx->input_lengths && onnx->of_steps[i]) y = own_steps(y, inputs[onnx->n_inputs - 1]);
        outputs[i] = has_rows(onnx, i, y, clv_tensor_shape(inputs[0]).dims[0]) ? y : NULL;
    }
}

static clv_tensor *build_one(clv_tensor *x, const clv_model *model) {
    clv_tensor *y = NULL;
    build_all(&x, &y, model);
    return y;
}

/** The loss of a target, `loss` long; NULL: it is not in the list. */
static const char *loss_in(const char *list, const char *name, size_t *loss) {
    while (list && *list) {
        const size_t n = strcspn(list, ","), key = strcspn(list, ",="), end = strcspn(list, ",*"),
                     from = key + (key < n);
        *loss = end > from ? end - from : 0;
        if (key == strlen(name) && !memcmp(list, name, key)) return list + from;
        list += n + (list[n] == ',');
    }
    return NULL;
}

static bool is_loss(const char *loss, size_t n, const char *name) {
    return loss && n == strlen(name) && !memcmp(loss, name, n);
}

/** A result is what a target is compared with: classes, or numbers. */
static clv_status read_output(clv_onnx *onnx, clv__error *error, clv_shape shape, const char *name,
                              bool numbers) {
    const bool steps = onnx->of_steps[onnx->n_targets];
    clv_port *port = &onnx->ports[onnx->n_inputs + onnx->n_targets++];
    bool tokens = true;
    char text[128];
    for (int i = 0; i < onnx->n_inputs; i++) tokens = tokens && onnx->ports[i].dtype == CLV_DTYPE_I32;
    if (steps && (shape.rank != 3 || shape.dims[2] < 2))
        CLV_FAIL(error, CLV_E_SHAPE,
                 "'%s': the result '%s' is %s, and ctc wants a score for each class at each step, [N,T,C] or "
                 "[T,N,C]",
                 onnx->file->path, name, clv_shape_text(&shape, text, sizeof text));
    clv_port *lengths = steps && onnx->input_lengths ? &onnx->ports[onnx->n_inputs - 1] : NULL;
    if (lengths && (!lengths->classes || shape.dims[1] < lengths->classes))
        lengths->classes = shape.dims[1] + 1; // 0 to all steps: what a dataset has is held against it
    const bool classes = !numbers && (shape.rank == 2 || (shape.rank == 3 && (tokens || steps))) &&
                         shape.dims[shape.rank - 1] > 1;
    port->name = name;
    if (classes) port->classes = shape.dims[shape.rank - 1];
    for (int d = 1; d < shape.rank - classes; d++) port->dims[d - 1] = shape.dims[d];
    if (!classes && shape.rank == 2 && shape.dims[1] == 1) port->dims[0] = 0; // one number
    return CLV_OK;
}

/** Build it once for a batch: the shapes of the file's results. */
static clv_status build_for(clv_onnx *onnx, int64_t batch, clv_shape shapes[CLV_MAX_PORTS], bool count) {
    clv_graph *graph = NULL;
    clv_tensor *inputs[CLV_MAX_PORTS], *outputs[CLV_MAX_PORTS] = {NULL};
    clv_status status = clv_graph_create(onnx->runtime, &graph);
    for (int i = 0; status == CLV_OK && i < onnx->n_inputs; i++)
        inputs[i] = clv_input(graph, onnx->ports[i].name, onnx->ports[i].dtype,
                              clv_port_shape(&onnx->ports[i], batch));
    if (status == CLV_OK) {
        clv__onnx_build(onnx->file, 0, inputs, outputs);
        status = clv_graph_status(graph);
    }
    for (size_t i = 0; status == CLV_OK && count && i < graph->n_tensors; i++)
        if (graph->tensors[i]->trainable) onnx->n_parameters += clv__numel(&graph->tensors[i]->desc);
    for (size_t i = 0; status == CLV_OK && i < onnx->file->graph.n_outputs; i++)
        shapes[i] = clv_tensor_shape(outputs[i]);
    clv_graph_destroy(graph);
    return status;
}

/** Inputs that the file fixes unlike first dimensions of have no batch, which is most likely why it cannot be built. */
static clv_status tell_no_batch(const clv_onnx *onnx, clv__error *error, clv_status status) {
    const clv__onnx_graph *file = &onnx->file->graph;
    const clv__onnx_info *first = NULL;
    clv__shown_text a, b;
    for (size_t i = 0; i < file->n_inputs; i++) {
        const clv__onnx_info *one = &file->inputs[i];
        if (onnx->file->values[one->value].initializer || one->dims[0].size < 1) continue;
        if (!first) first = one;
        if (one->dims[0].size == first->dims[0].size) continue;
        return clv__error_prefix(error,
                                 "'%s': the first dimension of each input must be the batch, and '%s' has "
                                 "%lld, '%s' %lld; a model "
                                 "without a batch, as one of a graph's nodes and edges, can be built by "
                                 "clv_onnx_append, or in Python "
                                 "by cleave.compile: ",
                                 onnx->file->path, clv__shown_bytes(first->name.data, first->name.n, &a),
                                 (long long)first->dims[0].size,
                                 clv__shown_bytes(one->name.data, one->name.n, &b),
                                 (long long)one->dims[0].size);
    }
    return status;
}

/** Is the batch a result's second dimension, as PyTorch has it of sequences? Another batch tells. */
static bool is_later(clv_onnx *onnx, int i, int64_t batch, clv_shape *shape) {
    clv_shape others[CLV_MAX_PORTS];
    const int64_t first = shape->dims[0];
    if (shape->rank < 2 || shape->dims[1] != batch) return false;
    if (build_for(onnx, batch + 1, others, false) != CLV_OK || others[i].dims[0] != first ||
        others[i].dims[1] != batch + 1)
        return false;
    shape->dims[0] = batch, shape->dims[1] = first;
    return true;
}

/** Build it, for the file's batch, or one of one, to see what comes out, and how many numbers are trained. */
static clv_status read_outputs(clv_onnx *onnx, clv__error *error, const clv_onnx_config *config) {
    const clv__onnx_graph *file = &onnx->file->graph;
    if (file->n_outputs < 1 || file->n_outputs > CLV_MAX_PORTS)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': %zu results, and 1 to %d are known", onnx->file->path,
                 file->n_outputs, CLV_MAX_PORTS);
    const int64_t own = clv__onnx_batch_of(onnx->file), batch = own ? own : 1;
    clv_shape shapes[CLV_MAX_PORTS];
    clv_status status = build_for(onnx, batch, shapes, true);
    if (status != CLV_OK) return tell_no_batch(onnx, error, status);
    const char *names[CLV_MAX_PORTS] = {NULL};
    size_t n = 0;
    bool some = false;
    for (size_t i = 0; i < file->n_outputs; i++) {
        clv__shown_text shown;
        const char *name = clv__shown_bytes(file->outputs[i].name.data, file->outputs[i].name.n, &shown);
        names[i] = clv__arena_strdup(&onnx->names, name);
        if (!names[i]) return CLV_E_HOST_MEMORY;
        some = some || loss_in(config->targets, names[i], &n);
    }
    for (size_t i = 0; i < file->n_outputs; i++) {
        const char *loss = loss_in(config->targets, names[i], &n);
        const int to = onnx->n_targets;
        if (some && !loss) continue;
        onnx->result[to] = (int)i;
        onnx->of_steps[to] = is_loss(loss, n, "ctc");
        onnx->later[to] = is_later(onnx, (int)i, batch, &shapes[i]);
        const bool numbers =
            config->numbers || (loss && n && !onnx->of_steps[to] && !is_loss(loss, n, "nll") &&
                                !is_loss(loss, n, "cross_entropy"));
        CLV_TRY(read_output(onnx, error, shapes[i], names[i], numbers));
    }
    return CLV_OK;
}

static void make_model(clv_onnx *onnx) {
    const clv_port *inputs = onnx->ports, *targets = inputs + onnx->n_inputs;
    clv_model *model = &onnx->model;
    *model = (clv_model){.name = onnx->file->path, .text = "of an ONNX file", .user = onnx};
    if (onnx->n_inputs == 1 && onnx->n_targets == 1 && onnx->file->graph.n_outputs == 1) {
        model->build = build_one;
        model->dtype = inputs[0].dtype;
        model->classes = targets[0].classes;
        memcpy(model->input, inputs[0].dims, sizeof model->input);
        memcpy(model->target, targets[0].dims, sizeof model->target);
        return;
    }
    model->build_all = build_all;
    model->inputs = inputs;
    model->n_inputs = onnx->n_inputs;
    model->targets = targets;
    model->n_targets = onnx->n_targets;
}

/** Names of what other classes make otherwise, as patterns. */
static const char *class_parameters(clv_onnx *onnx) {
    clv__onnx_class_value last[CLV__ONNX_CLASS_VALUES];
    const size_t n = onnx->model.classes ? clv__onnx_class_values(onnx->file, last) : 0;
    clv__text text = {0};
    for (size_t i = 0; i < n; i++) {
        const clv__onnx_text name = onnx->file->values[last[i].value].name;
        clv__shown_text shown;
        clv__text_add(&text, "%s%s", i ? "," : "", clv__shown_bytes(name.data, name.n, &shown));
    }
    const char *all = clv__arena_strdup(&onnx->names, clv__text_get(&text));
    clv__text_reset(&text);
    return all;
}

/** An input behind the file's. */
static clv_status add_lengths(clv_onnx *onnx, clv__error *error, const char *name) {
    if (!name) return CLV_OK;
    if (onnx->n_inputs == CLV_MAX_PORTS)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': more than %d inputs", onnx->file->path, CLV_MAX_PORTS);
    clv_port *port = &onnx->ports[onnx->n_inputs++];
    *port = (clv_port){.name = clv__arena_strdup(&onnx->names, name), .dtype = CLV_DTYPE_I32};
    onnx->input_lengths = true;
    return port->name ? CLV_OK : CLV_E_HOST_MEMORY;
}

static clv_status read_ports(clv_onnx *onnx, clv__error *error, const clv_onnx_config *config) {
    const clv__onnx_graph *file = &onnx->file->graph;
    CLV_TRY(clv__onnx_check_ops(error, onnx->file));
    CLV_TRY(check_dims(error, onnx->file, config->dims));
    for (size_t i = 0; i < file->n_inputs; i++)
        if (!onnx->file->values[file->inputs[i].value].initializer)
            CLV_TRY(read_input(onnx, error, &file->inputs[i], config->dims));
    if (!onnx->n_inputs) CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s' has no input", onnx->file->path);
    CLV_TRY(add_lengths(onnx, error, config->input_lengths));
    CLV_TRY(read_outputs(onnx, error, config));
    bool steps = !config->input_lengths;
    for (int i = 0; i < onnx->n_targets; i++) steps |= onnx->of_steps[i];
    if (!steps)
        CLV_FAIL(error, CLV_E_VALUE,
                 "'%s': input_lengths are of targets with the loss ctc, and there is none", onnx->file->path);
    clv__shown_text shown;
    const clv__onnx_text producer = onnx->file->producer_name;
    onnx->producer = clv__arena_strdup(&onnx->names, clv__shown_bytes(producer.data, producer.n, &shown));
    make_model(onnx);
    onnx->class_parameters = class_parameters(onnx);
    return onnx->producer && onnx->class_parameters ? CLV_OK : CLV_E_HOST_MEMORY;
}

/** The i-th of the inputs that are fed, behind them the results; NULL: there is none. */
static const clv__onnx_info *info_at(const clv_onnx *onnx, int index) {
    const clv__onnx_graph *file = &onnx->file->graph;
    for (size_t i = 0; index >= 0 && i < file->n_inputs; i++)
        if (!onnx->file->values[file->inputs[i].value].initializer && index-- == 0) return &file->inputs[i];
    if (!onnx->any_shape && index >= 0 && index < onnx->n_targets) index = onnx->result[index];
    return index >= 0 && (size_t)index < file->n_outputs ? &file->outputs[index] : NULL;
}

/** Nothing of a batch: names, and which ops are missing. */
static clv_status read_values(clv_onnx *onnx, clv__error *error) {
    const clv__onnx_graph *file = &onnx->file->graph;
    if (file->n_inputs > INT_MAX / 2 || file->n_outputs > INT_MAX / 2)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': too many inputs or results", onnx->file->path);
    onnx->any_shape = true;
    for (size_t i = 0; i < file->n_inputs; i++)
        onnx->n_inputs += !onnx->file->values[file->inputs[i].value].initializer;
    onnx->n_targets = (int)file->n_outputs;
    const clv_status status = clv__onnx_check_ops(error, onnx->file);
    if (status != CLV_OK && status != CLV_E_UNSUPPORTED) return status;
    onnx->missing = clv__arena_strdup(&onnx->names, status == CLV_OK ? "" : clv_runtime_error(onnx->runtime));
    return onnx->missing ? CLV_OK : CLV_E_HOST_MEMORY;
}

static clv_status name_values(clv_onnx *onnx, clv__error *error) {
    const int n = onnx->n_inputs + onnx->n_targets - onnx->input_lengths; // the file's
    onnx->value_names = clv__arena_alloc(&onnx->names, (size_t)n + 1, sizeof *onnx->value_names);
    for (int i = 0; onnx->value_names && i < n; i++) {
        clv__shown_text shown;
        const clv__onnx_text name = info_at(onnx, i)->name;
        onnx->value_names[i] = clv__arena_strdup(&onnx->names, clv__shown_bytes(name.data, name.n, &shown));
        if (!onnx->value_names[i]) onnx->value_names = NULL;
    }
    if (!onnx->value_names) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for '%s'", onnx->file->path);
    return CLV_OK;
}

/** bytes NULL: of the file at `path`. */
static clv_status read_model(clv_runtime *runtime, const char *path, const void *bytes, size_t n,
                             const clv_onnx_config *config, clv_onnx **out) {
    static const clv_onnx_config defaults;
    clv__error *error = clv__runtime_error_of(runtime);
    if (!config) config = &defaults;
    clv_onnx *onnx = clv__alloc(1, sizeof *onnx);
    if (!onnx) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for '%s'", path);
    onnx->runtime = runtime;
    onnx->missing = "";
    clv_status status = bytes ? clv__onnx_open_bytes(error, path, bytes, n, &onnx->file)
                              : clv__onnx_open(runtime, path, &onnx->file);
    if (status == CLV_OK)
        status = config->any_shape ? read_values(onnx, error) : read_ports(onnx, error, config);
    if (status == CLV_OK) status = name_values(onnx, error);
    if (status == CLV_OK)
        *out = onnx;
    else
        clv_onnx_destroy(onnx);
    return status;
}

clv_status clv_onnx_read(clv_runtime *runtime, const char *path, const clv_onnx_config *config,
                         clv_onnx **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, out));
    *out = NULL;
    CLV_TRY(CLV__USABLE(error, path));
    return read_model(runtime, path, NULL, 0, config, out);
}

clv_status clv_onnx_read_bytes(clv_runtime *runtime, const char *name, const void *data, size_t bytes,
                               const clv_onnx_config *config, clv_onnx **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, out));
    *out = NULL;
    CLV_TRY(CLV__USABLE(error, name));
    CLV_TRY(CLV__USABLE(error, data));
    return read_model(runtime, name, data, bytes, config, out);
}

clv_onnx_value clv_onnx_value_get(const clv_onnx *onnx, int index) {
    const clv__onnx_info *info = onnx ? info_at(onnx, index) : NULL;
    clv_onnx_value value = {.rank = -1};
    if (!info) return value;
    value.name = onnx->value_names[index];
    if (info->kind != CLV__ONNX_OF_TENSOR) return value;
    value.type = (int)info->dtype;
    if (!info->has_shape || info->rank > CLV_MAX_RANK) return value;
    value.rank = (int)info->rank;
    for (size_t d = 0; d < info->rank; d++) value.dims[d] = info->dims[d].size >= 0 ? info->dims[d].size : -1;
    return value;
}

/** As importers have it: f32, or i32. */
static clv_tensor *as_fed(clv_tensor *x) {
    const clv_dtype dtype = clv__onnx_tensor_is_float(x) ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
    return clv_tensor_dtype(x) == dtype ? x : clv_cast(x, dtype);
}

clv_status clv_onnx_append(const clv_onnx *onnx, clv_graph *graph, clv_tensor *const *inputs, int n_inputs,
                           clv_tensor **outputs, int n_outputs, int64_t *failed) {
    CLV_TRY(CLV__GIVEN(NULL, onnx));
    clv__error *error = clv__runtime_error_of(onnx->runtime);
    CLV_TRY(CLV__USABLE(error, graph));
    if (n_inputs > 0) CLV_TRY(CLV__USABLE(error, inputs));
    if (n_outputs > 0) CLV_TRY(CLV__USABLE(error, outputs));
    if (failed) *failed = -1;
    if (n_inputs != onnx->n_inputs || n_outputs != onnx->n_targets)
        CLV_FAIL(error, CLV_E_VALUE, "'%s' has %d inputs and %d results, and was given %d and %d",
                 onnx->file->path, onnx->n_inputs, onnx->n_targets, n_inputs, n_outputs);
    clv_tensor **fed = clv__arena_alloc(&graph->arena, (size_t)n_inputs + 1, sizeof *fed);
    if (!fed) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for '%s'", onnx->file->path);
    for (int i = 0; i < n_inputs; i++) fed[i] = inputs[i] ? as_fed(inputs[i]) : NULL;
    for (int i = 0; i < n_outputs; i++) outputs[i] = NULL;
    if (graph->error.status != CLV_OK) return clv_graph_status(graph);
    const int64_t node = clv__onnx_build_in(onnx->file, graph, 0, fed, outputs);
    if (failed) *failed = node;
    return clv_graph_status(graph);
}

void clv_onnx_destroy(clv_onnx *onnx) {
    if (!onnx) return;
    clv__onnx_close(onnx->file);
    clv__arena_reset(&onnx->names);
    free(onnx);
}

const clv__onnx_model *clv__onnx_model_of(const clv_onnx *onnx) {
    return onnx->file;
}

clv_onnx_info clv_onnx_info_get(const clv_onnx *onnx) {
    if (!onnx) return (clv_onnx_info){0};
    const clv__onnx_model *file = onnx->file;
    clv_onnx_info info = {.model = onnx->any_shape ? NULL : &onnx->model,
                          .producer = onnx->producer,
                          .ir_version = file->ir_version,
                          .n_nodes = (int64_t)file->graph.n_nodes,
                          .n_parameters = onnx->n_parameters,
                          .ports = onnx->any_shape ? NULL : onnx->ports,
                          .n_inputs = onnx->n_inputs,
                          .n_targets = onnx->n_targets,
                          .batch = onnx->batch,
                          .missing = onnx->missing,
                          .class_parameters = onnx->class_parameters};
    for (size_t i = 0; i < file->n_opsets; i++)
        if (!file->opsets[i].domain.n) info.opset = file->opsets[i].version;
    return info;
}
