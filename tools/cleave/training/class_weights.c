// SPDX-License-Identifier: Apache-2.0
// --class-weights and --ignore-index: what labels count, of each class, or not at all.
#include "training/training.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool cli_ignored_label(const cli_args *args, int32_t *out) {
    char *end = NULL;
    if (!args->ignore_index) return false;
    errno = 0;
    const long long value = strtoll(args->ignore_index, &end, 10);
    *out = (int32_t)value;
    return end != args->ignore_index && !*end && !errno && value == *out;
}

/** Numbers with commas between them, none below 0. Writes at most `room` of them. Returns how many; -1: they
 *  are none. */
static int64_t read_list(const char *text, float *out, int64_t room) {
    int64_t n = 0;
    for (const char *at = text;; at++, n++) {
        char *end;
        const double value = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite((float)value) || value < 0) return -1;
        if (n < room) out[n] = (float)value;
        at = end;
        if (!*at) return n + 1;
    }
}

int cli_check_labels(const cli_args *args) {
    int32_t ignored;
    if (args->ignore_index && !cli_ignored_label(args, &ignored))
        return cli_fail(EXIT_USAGE,
                        "--ignore-index wants a whole number that a label may have, as -100, not '%s'",
                        args->ignore_index);
    const char *weights = args->class_weights;
    if (!weights) return EXIT_DONE;
    if (strcmp(weights, "balanced") != 0 && read_list(weights, NULL, 0) < 0)
        return cli_fail(
            EXIT_USAGE,
            "--class-weights wants balanced, or a number of at least 0 for each class with commas "
            "between them, as 1,2.5,1, not '%s'",
            weights);
    const char *other = args->label_smoothing > 0 ? "label-smoothing" : args->mixup > 0 ? "mixup" : NULL;
    return other ? cli_fail(EXIT_USAGE,
                            "--class-weights does not go together with --%s: leave one of them out", other)
                 : EXIT_DONE;
}

/** Is it a target of classes whose loss knows of weights? */
static bool takes_weights(const clv_port *port, const clv_train_loss *loss) {
    return port->classes && (!loss->loss || loss->loss == clv_loss_find("cross_entropy"));
}

/** The weights of one target's classes, to be freed. Prints what is wrong. */
static int weights_of(clv_runtime *runtime, const cli_args *args, const clv_dataset *dataset,
                      const clv_port *port, float **out) {
    const int64_t classes = port->classes;
    float *weights = *out = calloc((size_t)classes, sizeof *weights);
    int at = 0;
    if (!weights)
        return cli_fail(EXIT_FAILED, "no memory for the weights of %lld classes", (long long)classes);
    for (int i = 0; i < clv_dataset_info_get(dataset).n_targets; i++)
        if (!strcmp(clv_dataset_port_get(dataset, CLV_PORT_TARGET, i).name, port->name)) at = i;
    if (!strcmp(args->class_weights, "balanced")) {
        const clv_status status = clv_dataset_class_weights(runtime, dataset, at, classes, weights);
        return status == CLV_OK ? EXIT_DONE : cli_fail_status(runtime, status);
    }
    const int64_t n = read_list(args->class_weights, weights, classes);
    if (n == classes) return EXIT_DONE;
    return cli_fail(EXIT_USAGE, "--class-weights names %lld weight%s, and there are %lld classes",
                    (long long)n, n == 1 ? "" : "s", (long long)classes);
}

int cli_class_weights(clv_runtime *runtime, const cli_args *args, clv_train_config *config,
                      cli_class_weights_of *out) {
    *out = (cli_class_weights_of){.n = 0};
    if (!args->class_weights) return EXIT_DONE;
    const clv_model *model = config->model;
    const int n = clv_model_port_count(model, CLV_PORT_TARGET);
    int weighted = 0;
    for (int i = 0; i < n; i++) {
        const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, i);
        out->loss[i] = (clv_train_loss){.target = port.name, .loss = config->loss};
        for (int k = 0; k < config->n_losses; k++)
            if (!strcmp(config->losses[k].target, port.name)) out->loss[i] = config->losses[k];
        weighted += takes_weights(&port, &out->loss[i]);
    }
    if (!weighted)
        return cli_fail(EXIT_USAGE, "--class-weights is for targets that are classes, with the loss "
                                    "cross_entropy; here there are none");
    if (weighted > 1 && strcmp(args->class_weights, "balanced") != 0)
        return cli_fail(EXIT_USAGE,
                        "--class-weights with numbers is for one target of classes, and here are %d; "
                        "balanced is for all of them",
                        weighted);
    for (int i = 0; i < n; i++) {
        const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, i);
        if (!takes_weights(&port, &out->loss[i])) continue;
        const int code = weights_of(runtime, args, config->train, &port, &out->own[out->n++]);
        if (code != EXIT_DONE) return code;
        out->loss[i].class_weights = out->own[out->n - 1];
        out->loss[i].n_class_weights = port.classes;
    }
    config->loss = NULL;
    config->losses = out->loss;
    config->n_losses = n;
    return EXIT_DONE;
}

void cli_class_weights_end(cli_class_weights_of *of) {
    while (of->n > 0) free(of->own[--of->n]);
}
