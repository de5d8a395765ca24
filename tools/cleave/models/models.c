// SPDX-License-Identifier: Apache-2.0
// Models by name, and made for samples of a size.
#include "models/models.h"

#include <string.h>
#include <unistd.h>

const char *cli_model_names(char names[CLI_NAMES_BYTES]) {
    *names = 0;
    for (int i = 0; clv_model_get(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, CLI_NAMES_BYTES - used, "%s%s", i ? ", " : "", clv_model_get(i)->name);
    }
    return names;
}

const clv_model *cli_model(const char *name) {
    const clv_model *model = clv_model_find(name);
    if (model) return model;
    char names[CLI_NAMES_BYTES];
    clv__nearest nearest = {.word = name ? name : ""};
    cli_model_names(names);
    for (int i = 0; clv_model_get(i); i++) clv__nearest_offer(&nearest, clv_model_get(i)->name);
    if (name && access(name, F_OK) == 0)
        cli_fail(
            EXIT_USAGE,
            "'%s' is a file, and a model's name is wanted, one of %s; eval, run and train take weights by "
            "--weights FILE",
            name, names);
    else if (name)
        cli_fail(EXIT_USAGE, "unknown model '%s'; there are %s%s", name, names, clv__nearest_text(&nearest));
    else
        cli_fail(EXIT_USAGE, "which model? --model wants one of %s", names);
    return NULL;
}

bool cli_is_decoder(const clv_model *model) {
    return model && model->build && model->takes_sizes;
}

bool cli_takes_rows(const clv_model *model) {
    return !model->build_all && model->dtype != CLV_DTYPE_I32 &&
           (model->any_shape || !model->input[0] || !model->input[1]);
}

int cli_check_rows(const clv_model *model) {
    if (cli_takes_rows(model)) return EXIT_DONE;
    if (model->build_all)
        return cli_fail(EXIT_USAGE,
                        "%s names its inputs and targets itself (build_all), and a table is rows of numbers: "
                        "give it `arrays FILE`, or write the model with `build`",
                        model->name);
    return cli_fail(EXIT_USAGE,
                    "%s is no model of rows of numbers; mlp and linear are, and models of --ops whose input "
                    "is a row, {columns}, or left out",
                    model->name);
}

int cli_size_rows(const cli_args *args, const clv_model *model, int64_t columns, clv_model *out) {
    const bool fixed = model->input[0] && !model->input[1], table = cli_data_is(args, "csv");
    if (fixed && model->input[0] != columns)
        return cli_fail(
            EXIT_FAILED, "the rows of '%s' are %lld number%s%s, and model '%s' takes %lld: %s, or %s",
            args->words[1], (long long)columns, columns == 1 ? "" : "s",
            table ? " (one for each word of a column of words)" : "", model->name, (long long)model->input[0],
            table ? "--ignore leaves columns out" : "--inputs names the arrays that it takes",
            cli_is_onnx(model->name) ? "export the model again for rows of that length"
                                     : "leave `input` of the model out, and it takes rows of any length");
    *out = *model;
    memset(out->input, 0, sizeof out->input);
    out->input[0] = columns;
    return EXIT_DONE;
}

clv_model cli_model_for(const cli_args *args, const clv_model *model) {
    return clv_model_for(model, 0, 0, 0, args->classes);
}

const int64_t *cli_told_input(const cli_args *args, const clv_model *model) {
    const clv_weights_info *told = args->told;
    const bool known = told && told->model && told->input[0] && model->build && model->dtype != CLV_DTYPE_I32;
    return known && !strcmp(told->model, model->name) && !cli_begins_anew(args) ? told->input : NULL;
}

int cli_size_model(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                   const clv_shape *sample, clv_model *out) {
    const char *file = args->images ? args->images : args->input;
    char what[512] = "samples";
    if (file) snprintf(what, sizeof what, "images '%.400s'", file);
    clv_model wanted = cli_model_for(args, model);
    const int64_t *told = cli_told_input(args, model);
    if (told) memcpy(wanted.input, told, sizeof wanted.input);
    clv_status status = clv_model_for_samples(runtime, &wanted, what, sample, out);
    if (status == CLV_OK) return EXIT_DONE;
    if (told) return cli_fail(EXIT_FAILED, "%s, as '%s' was trained", cli_sentence(runtime), args->weights);
    if (args->images && args->labels && sample->rank == 1 && !strstr(cli_sentence(runtime), "numpy mends"))
        return cli_fail(EXIT_FAILED,
                        "%s; rows of numbers are named arrays: numpy.savez('data.npz', x=x, y=y), and then "
                        "`arrays data.npz --target y`",
                        cli_sentence(runtime));
    return cli_fail_status(runtime, status);
}
