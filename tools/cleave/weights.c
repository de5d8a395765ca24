// SPDX-License-Identifier: Apache-2.0
// What --weights tells: model, classes, size of pictures. Options that were not given
// are taken from it, and ones that say something else are refused. And what is wrong with weights whose
// results are no numbers.
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int read_info(cli_args *args) {
    clv_runtime *runtime = NULL;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    int code = EXIT_DONE;
    if (clv_runtime_create(&config, &runtime) != CLV_OK) { // is told when the command's own is made
        clv_runtime_destroy(runtime);
        return EXIT_DONE;
    }
    const clv_status status = clv_weights_info_read(runtime, args->weights, &args->told);
    if (status != CLV_OK) code = cli_fail_status(runtime, status);
    clv_runtime_destroy(runtime);
    return code;
}

static int check_model(const cli_args *args) {
    const clv_weights_info *told = args->told;
    if (!args->model || !told->model || cli_begins_anew(args) || !strcmp(args->model, told->model))
        return EXIT_DONE;
    return cli_fail(EXIT_USAGE, "--model is %s, and '%s' holds weights of %s: leave --model out", args->model,
                    args->weights, told->model);
}

static int check_sizes(const cli_args *args) {
    const clv_weights_info *told = args->told;
    if (args->command == CLI_TRAIN) return EXIT_DONE; // the library's sentence has what can be done
    if (args->classes && told->classes && args->classes != told->classes)
        return cli_fail(EXIT_USAGE, "--classes is %lld, and '%s' has %lld classes: leave --classes out",
                        (long long)args->classes, args->weights, (long long)told->classes);
    if (args->image_size && told->resize && args->image_size != told->input[1])
        return cli_fail(EXIT_USAGE,
                        "--image-size is %lld, and the model of '%s' learnt pictures of %lld: leave "
                        "--image-size out",
                        (long long)args->image_size, args->weights, (long long)told->input[1]);
    return EXIT_DONE;
}

/** Labels and classes are not the same thing to learn. */
static int check_labels(const cli_args *args) {
    const clv_weights_info *told = cli_told_classes(args);
    if (!told || !cli_is_folder(args) || args->command == CLI_RUN) return EXIT_DONE;
    if (args->labels && told->classes)
        return cli_fail(EXIT_USAGE, "'%s' tells %lld classes apart, one for each picture: leave --labels out",
                        args->weights, (long long)told->classes);
    if (!args->labels && !told->classes)
        return cli_fail(EXIT_USAGE,
                        "'%s' tells %d labels of each picture (%s, ...): --labels TABLE wants those of these",
                        args->weights, told->n_names, told->names[0]);
    return EXIT_DONE;
}

static void take_sizes(cli_args *args) {
    const clv_weights_info *told = args->told;
    const bool square = told->input[0] == 3 && told->input[1] == told->input[2] && !told->input[3];
    const bool rows = cli_is_csv(args) || cli_is_arrays(args); // they tell it themselves
    if (!args->classes && !rows && !cli_begins_anew(args)) args->classes = told->classes;
    if (!args->image_size && square && cli_is_folder(args)) args->image_size = told->input[1];
}

int cli_tell_weights(cli_args *args) {
    if (!args->weights || cli_is_text(args)) return EXIT_DONE;
    int code = read_info(args);
    if (code != EXIT_DONE || !args->told) return code;
    code = check_model(args);
    if (code == EXIT_DONE) code = check_sizes(args);
    if (code == EXIT_DONE) code = check_labels(args);
    if (code != EXIT_DONE) return code;
    if (!args->model) args->model = args->told->model;
    take_sizes(args);
    return EXIT_DONE;
}

void cli_forget_weights(cli_args *args) {
    clv_weights_info_destroy(args->told);
    args->told = NULL;
}

// ---- weights that are no numbers --------------------------------------------------------------------------

/** The first element that is not finite; -1: there is none. */
static int64_t not_finite_at(const clv_array *array) {
    const int64_t n = array->type == CLV_ARRAY_F32 ? clv_shape_numel(&array->shape) : 0;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(((const float *)array->data)[i])) return i;
    return -1;
}

bool cli_blame_weights(clv_runtime *runtime, const char *path, char *text, size_t bytes) {
    clv_archive *archive = NULL;
    bool found = false;
    snprintf(text, bytes, "look at the inputs and the weights");
    if (clv_safetensors_read(runtime, path, &archive) != CLV_OK) return false;
    for (size_t i = 0; !found && i < clv_archive_count(archive); i++) {
        const clv_array *array = clv_archive_get(archive, i);
        const int64_t at = not_finite_at(array);
        if (at < 0) continue;
        snprintf(text, bytes, "'%.100s' of the weights '%.200s' has such a value (element %lld is %g)",
                 array->name, path, (long long)at, (double)((const float *)array->data)[at]);
        found = true;
    }
    clv_archive_destroy(archive);
    return found;
}
