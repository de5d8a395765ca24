// SPDX-License-Identifier: Apache-2.0
// Models by name, and made for samples of a size.
#include "cli.h"

#include <string.h>

const clv_model *cli_model(const char *name) {
    const clv_model *model = clv_model_find(name);
    if (model) return model;
    char names[256] = "";
    clv_nearest nearest = {.word = name ? name : ""};
    for (int i = 0; i < clv_model_count(); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", clv_model_get(i)->name);
        clv_nearest_offer(&nearest, clv_model_get(i)->name);
    }
    if (name)
        cli_fail(EXIT_USAGE, "unknown model '%s'; there are %s%s", name, names, clv_nearest_text(&nearest));
    else
        cli_fail(EXIT_USAGE, "which model? --model wants one of %s", names);
    return NULL;
}

clv_model cli_model_for(const cli_args *args, const clv_model *model) {
    return clv_model_for(model, 0, 0, 0, args->classes);
}

int cli_size_model(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                   const clv_shape *sample, clv_model *out) {
    const char *file = args->images ? args->images : args->input;
    char what[512] = "samples";
    if (file) snprintf(what, sizeof what, "images '%.400s'", file);
    const clv_model wanted = cli_model_for(args, model);
    clv_status status = clv_model_for_samples(runtime, &wanted, what, sample, out);
    return status == CLV_OK ? EXIT_DONE : cli_fail_status(runtime, status);
}

const char *cli_samples_name(const clv_model *model) {
    return model->dtype == CLV_DTYPE_I32 ? "samples" : "images";
}

int cli_fail_sized(clv_runtime *runtime, clv_status status, const clv_model *sized) {
    const clv_model *model = clv_model_find(sized->name);
    bool other = model && memcmp(model->input, sized->input, sizeof model->input) != 0;
    if (status != CLV_E_SHAPE || !other) return cli_fail_status(runtime, status);
    return cli_fail(
        EXIT_FAILED,
        "%s; the model was built for the samples, [%lld,%lld,%lld]: were the weights made for others? "
        "The model's own are [%lld,%lld,%lld]",
        cli_sentence(runtime), (long long)sized->input[0], (long long)sized->input[1],
        (long long)sized->input[2], (long long)model->input[0], (long long)model->input[1],
        (long long)model->input[2]);
}
