// SPDX-License-Identifier: Apache-2.0
// Models of ONNX files: --model FILE.onnx, and `plan FILE.onnx`.
#include "datasets/datasets.h"
#include "models/models.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cli_is_onnx(const char *name) {
    const size_t n = name ? strlen(name) : 0;
    return n > 5 && !strcmp(name + n - 5, ".onnx");
}

enum { TARGETS = 2048 };

/** PyTorch's name of how many steps of each sample count, in CTC. */
static const char input_lengths[] = "input_lengths";

static bool is_among(const char *list, const char *name) {
    for (size_t n; list && *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == strlen(name) && !memcmp(list, name, n)) return true;
    }
    return false;
}

/** What weights were trained for, as --target has it; "": they do not tell. *lengths: with such an input? */
static void told_targets(clv_runtime *runtime, const char *weights, char out[TARGETS], bool *lengths) {
    cli_fields *fields = calloc(1, sizeof *fields);
    size_t n = 0;
    if (fields && cli_told_fields(runtime, weights, fields))
        for (int i = 0; n < TARGETS && i < fields->n_inputs + fields->n_targets; i++) {
            if (i < fields->n_inputs) {
                *lengths |= !strcmp(fields->name[i], input_lengths);
                continue;
            }
            const clv_loss *loss = fields->loss[i - fields->n_inputs].loss;
            const char *usual = fields->port[i].classes ? "" : "mse";
            n += (size_t)snprintf(out + n, TARGETS - n, "%s%s=%s", n ? "," : "", fields->name[i],
                                  loss ? loss->name : usual);
        }
    free(fields);
}

/** Read it, and register it: it lasts as long as the process, as what --ops has registered. */
static int load(const cli_args *args, const char *path, const clv_onnx **out) {
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_runtime *runtime;
    clv_onnx *onnx;
    if (clv_model_find(path)) return EXIT_DONE;
    if (clv_runtime_create(&config, &runtime) != CLV_OK)
        return cli_fail(EXIT_FAILED, "no runtime to read '%s' with", path);
    char told[TARGETS] = "";
    bool lengths = is_among(args->inputs, input_lengths);
    if (!args->target && args->weights) told_targets(runtime, args->weights, told, &lengths);
    clv_onnx_config of_file = {.dims = args->dims, .targets = args->target ? args->target : told};
    if (lengths && strstr(of_file.targets, "=ctc")) of_file.input_lengths = input_lengths;
    clv_status status = clv_onnx_read(runtime, path, &of_file, &onnx);
    if (status == CLV_OK) status = clv_model_register(runtime, clv_onnx_info_get(onnx).model);
    const int code = status == CLV_OK ? EXIT_DONE : cli_fail_status(runtime, status);
    clv_runtime_destroy(runtime);
    if (code == EXIT_DONE) *out = onnx;
    return code;
}

int cli_load_onnx(cli_args *args) {
    const char *path = args->command == CLI_PLAN ? args->n_words ? args->words[0] : NULL : args->model;
    if (!cli_is_onnx(path)) return EXIT_DONE;
    const int code = load(args, path, &args->onnx);
    if (code != EXIT_DONE || args->weights || args->resume || args->command == CLI_PLAN) return code;
    args->weights = path;
    args->given.weights = true;
    return EXIT_DONE;
}

const char *cli_onnx_anew(const cli_args *args, int64_t classes) {
    const clv_onnx_info info = clv_onnx_info_get(args->onnx);
    const bool own = args->onnx && args->model && args->weights && !strcmp(args->model, args->weights);
    if (!own || !info.model || !classes || classes == info.model->classes || !*info.class_parameters)
        return NULL;
    if (!args->quiet)
        fprintf(stderr, "'%s' has %lld classes, and here are %lld: '%s' gets new first weights\n",
                args->model, (long long)info.model->classes, (long long)classes, info.class_parameters);
    return info.class_parameters;
}

int cli_load_told_onnx(cli_args *args) {
    const char *told = args->told ? args->told->model : NULL;
    if (args->model || !cli_is_onnx(told)) return EXIT_DONE;
    if (access(told, R_OK) == 0) return load(args, told, &args->onnx);
    return cli_fail(EXIT_USAGE,
                    "'%s' holds weights of '%s', which is not there: --model FILE.onnx says where it is",
                    args->weights, told);
}
