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
    int result[CLV_MAX_PORTS]; // which of the file's a target is
    int64_t batch;             // the first dimension of all inputs; 0: open, or they differ
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

static void build_all(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    const clv_onnx *onnx = model->user;
    clv_tensor *all[CLV_MAX_PORTS] = {NULL};
    clv__onnx_build(onnx->file, model->build ? model->classes : 0, inputs, all);
    for (int i = 0; i < onnx->n_targets; i++) outputs[i] = all[onnx->result[i]];
}

static clv_tensor *build_one(clv_tensor *x, const clv_model *model) {
    clv_tensor *y = NULL;
    build_all(&x, &y, model);
    return y;
}

/** Is it in the list of targets? numbers: with a loss that is not of classes. */
static bool is_target(const char *list, const char *name, bool *numbers) {
    while (list && *list) {
        const size_t n = strcspn(list, ","), key = strcspn(list, ",="), loss = strcspn(list, ",*");
        const char *of = list + key + (key < n);
        if (key == strlen(name) && !memcmp(list, name, key)) {
            static const char classes[] = "cross_entropy";
            const size_t length = list + loss > of ? (size_t)(list + loss - of) : 0;
            *numbers = length && (length != sizeof classes - 1 || memcmp(of, classes, length) != 0);
            return true;
        }
        list += n + (list[n] == ',');
    }
    return false;
}

/** A result is what a target is compared with: classes, or numbers. */
static void read_output(clv_onnx *onnx, clv_tensor *tensor, const char *name, bool numbers) {
    clv_port *port = &onnx->ports[onnx->n_inputs + onnx->n_targets++];
    const clv_shape shape = clv_tensor_shape(tensor);
    bool tokens = true;
    for (int i = 0; i < onnx->n_inputs; i++) tokens = tokens && onnx->ports[i].dtype == CLV_DTYPE_I32;
    const bool classes =
        !numbers && (shape.rank == 2 || (shape.rank == 3 && tokens)) && shape.dims[shape.rank - 1] > 1;
    port->name = name;
    if (classes) port->classes = shape.dims[shape.rank - 1];
    for (int d = 1; d < shape.rank - classes; d++) port->dims[d - 1] = shape.dims[d];
    if (!classes && shape.rank == 2 && shape.dims[1] == 1) port->dims[0] = 0; // one number
}

/** Build it once, for the file's batch, or one of one, to see what comes out, and how many numbers are trained. */
static clv_status read_outputs(clv_onnx *onnx, clv__error *error, const clv_onnx_config *config) {
    clv_graph *graph = NULL;
    clv_tensor *inputs[CLV_MAX_PORTS], *outputs[CLV_MAX_PORTS] = {NULL};
    const clv__onnx_graph *file = &onnx->file->graph;
    if (file->n_outputs < 1 || file->n_outputs > CLV_MAX_PORTS)
        CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s': %zu results, and 1 to %d are known", onnx->file->path,
                 file->n_outputs, CLV_MAX_PORTS);
    const int64_t own = clv__onnx_batch_of(onnx->file), batch = own ? own : 1;
    clv_status status = clv_graph_create(onnx->runtime, &graph);
    for (int i = 0; status == CLV_OK && i < onnx->n_inputs; i++)
        inputs[i] = clv_input(graph, onnx->ports[i].name, onnx->ports[i].dtype,
                              clv_port_shape(&onnx->ports[i], batch));
    if (status == CLV_OK) {
        clv__onnx_build(onnx->file, 0, inputs, outputs);
        status = clv_graph_status(graph);
    }
    for (size_t i = 0; status == CLV_OK && i < graph->n_tensors; i++)
        if (graph->tensors[i]->trainable) onnx->n_parameters += clv__numel(&graph->tensors[i]->desc);
    const char *names[CLV_MAX_PORTS] = {NULL};
    bool some = false, numbers = false;
    for (size_t i = 0; status == CLV_OK && i < file->n_outputs; i++) {
        clv__shown_text shown;
        const char *name = clv__shown_bytes(file->outputs[i].name.data, file->outputs[i].name.n, &shown);
        names[i] = clv__arena_strdup(&onnx->names, name);
        some = some || (names[i] && is_target(config->targets, names[i], &numbers));
    }
    for (size_t i = 0; status == CLV_OK && i < file->n_outputs; i++) {
        numbers = false;
        if (some && !is_target(config->targets, names[i], &numbers)) continue;
        onnx->result[onnx->n_targets] = (int)i;
        read_output(onnx, outputs[i], names[i], config->numbers || numbers);
    }
    clv_graph_destroy(graph);
    return status;
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

static clv_status read_ports(clv_onnx *onnx, clv__error *error, const clv_onnx_config *config) {
    const clv__onnx_graph *file = &onnx->file->graph;
    CLV_TRY(clv__onnx_check_ops(error, onnx->file));
    CLV_TRY(check_dims(error, onnx->file, config->dims));
    for (size_t i = 0; i < file->n_inputs; i++)
        if (!onnx->file->values[file->inputs[i].value].initializer)
            CLV_TRY(read_input(onnx, error, &file->inputs[i], config->dims));
    if (!onnx->n_inputs) CLV_FAIL(error, CLV_E_UNSUPPORTED, "'%s' has no input", onnx->file->path);
    CLV_TRY(read_outputs(onnx, error, config));
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
    const int n = onnx->n_inputs + onnx->n_targets;
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
