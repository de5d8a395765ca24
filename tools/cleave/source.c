// SPDX-License-Identifier: Apache-2.0
// Where images and labels come from: a dataset by name, or two .npy files.
#include "cli.h"

#include <string.h>

/** A dataset of the command line: its name, and how the library makes it. */
static const struct {
    const char *name;
    clv_status (*make)(clv_runtime *, const char *folder, clv_split, const clv_dataset_config *, clv_dataset **);
} datasets[] = {{"fashion-mnist", clv_dataset_fashion_mnist}};

enum { N_DATASETS = sizeof datasets / sizeof *datasets };

static int find_dataset(const char *name) {
    for (int i = 0; i < N_DATASETS; i++)
        if (!strcmp(datasets[i].name, name)) return i;
    return -1;
}

int cli_check_source(const cli_args *args) {
    bool arrays = args->images || args->labels;
    if (args->n_words && arrays)
        return cli_fail(EXIT_USAGE, "give a dataset or --images and --labels, not both");
    if (arrays && !(args->images && args->labels))
        return cli_fail(EXIT_USAGE, "--images and --labels belong together; --%s is missing",
                        args->images ? "labels" : "images");
    if (!args->n_words && !arrays)
        return cli_fail(EXIT_USAGE, "on what? Give a dataset (fashion-mnist), or --images and --labels");
    if (arrays && args->data) return cli_fail(EXIT_USAGE, "--data is the folder of a dataset, not of arrays");
    if (args->n_words && find_dataset(args->words[0]) < 0) {
        char names[128] = "";
        for (int i = 0; i < N_DATASETS; i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", datasets[i].name);
        return cli_fail(EXIT_USAGE, "unknown dataset '%s'; there is %s", args->words[0], names);
    }
    return EXIT_DONE;
}

int cli_load(cli_session *session, const clv_model *model, clv_dataset **train, clv_dataset **test) {
    const cli_args *args = session->args;
    clv_dataset_config config = {.limit = args->limit, .classes = (int)model->classes};
    clv_status status = CLV_OK;
    if (args->images) {
        status = clv_dataset_npy(session->runtime, args->images, args->labels, &config, train ? train : test);
    } else {
        int i = find_dataset(args->words[0]);
        if (train) status = datasets[i].make(session->runtime, args->data, CLV_SPLIT_TRAIN, &config, train);
        if (status == CLV_OK) status = datasets[i].make(session->runtime, args->data, CLV_SPLIT_TEST, &config, test);
    }
    return status == CLV_OK ? EXIT_DONE : cli_fail_status(session->runtime, status);
}
