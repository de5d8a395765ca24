// SPDX-License-Identifier: Apache-2.0
// Weights of a model that is not built in: of a program of one's own. --ops FILE loads a library that
// registers it; where names and shapes of its tensors are those of a built-in model, --model NAME is enough.
#include "datasets/datasets.h"
#include "models/models.h"

#include <string.h>

bool cli_is_foreign(const clv_weights_info *told) {
    return told && told->model && !clv_model_find(told->model);
}

// ---- do the tensors fit? ----------------------------------------------------------------------------------

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/** Tensors of the file that are parameters: running statistics of batch norm are none. */
static int count_parameters(const clv_archive *archive) {
    int n = 0;
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const char *name = clv_archive_get(archive, i)->name;
        n += !ends_with(name, ".running_mean") && !ends_with(name, ".running_var") &&
             !ends_with(name, ".num_batches_tracked");
    }
    return n;
}

static bool has_parameters(const clv_archive *archive, const clv_graph *graph) {
    const int n = clv_graph_info_get(graph).n_parameters;
    bool all = n == count_parameters(archive);
    for (int i = 0; all && i < n; i++) {
        const clv_tensor_info is = clv_tensor_info_get(clv_parameter_get(graph, i));
        const clv_array *array = clv_archive_find(archive, is.name);
        all = array && clv_shape_equal(&array->shape, &is.shape);
    }
    return all;
}

/** Has the model such tensors, when it is made for what the weights learnt? */
static bool fits(clv_runtime *runtime, const clv_weights_info *told, const clv_archive *archive,
                 const clv_model *model) {
    clv_model sized = *model;
    clv_graph *graph = NULL;
    if (!model->build || model->dtype == CLV_DTYPE_I32) return false;
    memcpy(sized.input, told->input, sizeof sized.input);
    memcpy(sized.target, told->target, sizeof sized.target);
    sized.classes = told->classes;
    const bool same = clv_pass_graph(runtime, &(clv_train_config){.model = &sized}, CLV_PASS_PREDICT, 1,
                                     &graph) == CLV_OK &&
                      has_parameters(archive, graph);
    clv_graph_destroy(graph);
    return same;
}

/** The built-in models that fit: `mlp`, `mlp and linear`. "": none, or they cannot be compared. */
static void models_of(const cli_args *args, char *names, size_t bytes) {
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_runtime *runtime = NULL;
    clv_archive *archive = NULL;
    *names = 0;
    if (args->told->input[0] && !args->told->checkpoint && clv_runtime_create(&config, &runtime) == CLV_OK &&
        clv_safetensors_read(runtime, args->weights, &archive) == CLV_OK)
        for (int i = 0; clv_model_get(i); i++) {
            const size_t used = strlen(names);
            if (fits(runtime, args->told, archive, clv_model_get(i)))
                snprintf(names + used, bytes - used, "%s--model %s", used ? " or " : "",
                         clv_model_get(i)->name);
        }
    clv_archive_destroy(archive);
    clv_runtime_destroy(runtime);
}

// ---- what to do -------------------------------------------------------------------------------------------

int cli_check_foreign(const cli_args *args) {
    char names[400];
    if (!cli_is_foreign(args->told) || args->model || cli_begins_anew(args)) return EXIT_DONE;
    models_of(args, names, sizeof names);
    return cli_fail(
        EXIT_USAGE,
        "'%s' holds weights of '%s', which is no built-in model: --ops FILE loads a library (.so) "
        "that registers it%s%s%s",
        args->weights, args->told->model, *names ? "; or " : "", names,
        *names ? ", which has tensors of the same names and shapes" : "");
}

const char *cli_foreign_option(const cli_args *args, char *text, size_t bytes) {
    *text = 0;
    if (cli_is_foreign(args->told))
        snprintf(text, bytes, "%s%s", args->model ? " --model " : " --ops FILE",
                 args->model ? args->model : "");
    return text;
}
