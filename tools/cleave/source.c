// SPDX-License-Identifier: Apache-2.0
// Where samples and targets come from: a dataset by name, two .npy files, a text (text.c), a table (csv.c) or
// a folder of pictures (folder.c).
#include "cli.h"

#include <string.h>

/** A dataset of the command line: its name, and how the library makes it. */
static const struct {
    const char *name;
    clv_status (*make)(clv_runtime *, const char *folder, clv_split, const clv_dataset_config *,
                       clv_dataset **);
} datasets[] = {{"fashion-mnist", clv_dataset_fashion_mnist}};

enum { N_DATASETS = sizeof datasets / sizeof *datasets };

static int find_dataset(const char *name) {
    for (int i = 0; i < N_DATASETS; i++)
        if (!strcmp(datasets[i].name, name)) return i;
    return -1;
}

int cli_check_source(const cli_args *args) {
    bool arrays = args->images || (args->labels && !cli_is_folder(args));
    if (args->n_words && arrays)
        return cli_fail(EXIT_USAGE, "give a dataset or --images and --labels, not both");
    if (arrays && !(args->images && args->labels))
        return cli_fail(EXIT_USAGE, "--images and --labels belong together; --%s is missing",
                        args->images ? "labels" : "images");
    if (!args->n_words && !arrays)
        return cli_fail(EXIT_USAGE, "on what? Give a dataset (fashion-mnist, images DIR, text FILE, csv "
                                    "FILE), or --images and --labels");
    if (arrays && args->data) return cli_fail(EXIT_USAGE, "--data is the folder of a dataset, not of arrays");
    if (args->validation >= 1)
        return cli_fail(EXIT_USAGE, "--validation is the part that is not trained on, below 1, not %g",
                        args->validation);
    if (cli_is_text(args) || cli_is_csv(args)) return EXIT_DONE;
    if (args->given_validation)
        return cli_fail(EXIT_USAGE, "--validation is of texts and tables: `text FILE`, `csv FILE`");
    if (cli_is_folder(args)) return EXIT_DONE;
    if (args->n_words > 1)
        return cli_fail(EXIT_USAGE, "'%s' is one word too many; see 'cleave %s --help'", args->words[1],
                        args->command == CLI_EVAL ? "eval" : "train");
    if (args->n_words && find_dataset(args->words[0]) < 0) {
        char names[128] = "";
        clv_nearest nearest = {.word = args->words[0]};
        for (int i = 0; i < N_DATASETS; i++) {
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                     datasets[i].name);
            clv_nearest_offer(&nearest, datasets[i].name);
        }
        clv_nearest_offer(&nearest, "text");
        clv_nearest_offer(&nearest, "csv");
        clv_nearest_offer(&nearest, "images");
        return cli_fail(EXIT_USAGE,
                        "unknown dataset '%s'; there are %s, images DIR, text FILE and csv FILE%s",
                        args->words[0], names, clv_nearest_text(&nearest));
    }
    return EXIT_DONE;
}

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
    const int64_t *dims = sample->dims;
    const char *file = args->images ? args->images : args->input;
    char what[512] = "samples";
    if (file) snprintf(what, sizeof what, "images '%.400s'", file);
    *out = cli_model_for(args, model);
    clv_status status = clv_model_check_samples(runtime, out, what, sample);
    if (status == CLV_OK) return EXIT_DONE;
    if (model->dtype == CLV_DTYPE_I32) return cli_fail_status(runtime, status);
    bool same = clv_shape_numel(sample) == model->input[0] * model->input[1] * model->input[2];
    if (same || sample->rank < 2 || sample->rank > 3 || clv_model_channels_last(out, sample))
        return cli_fail_status(runtime, status);
    *out = sample->rank == 2 ? clv_model_for(out, 1, dims[0], dims[1], 0)
                             : clv_model_for(out, dims[0], dims[1], dims[2], 0);
    return EXIT_DONE;
}

int cli_model_of_source(clv_runtime *runtime, const cli_source *source, clv_model *out) {
    const clv_dataset *dataset = source->train ? source->train : source->test;
    const clv_shape sample = clv_dataset_sample_shape(dataset);
    if (source->vocabulary)
        *out = clv_gpt_model(&source->gpt);
    else if (cli_is_csv(source->args))
        cli_model_of_rows(source->model, dataset, out);
    else if (cli_is_folder(source->args))
        cli_model_of_folder(source->args, source->model, dataset, out);
    else
        return cli_size_model(runtime, source->args, source->model, &sample, out);
    return EXIT_DONE;
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

static void *read_source(void *user) {
    cli_source *source = user;
    const cli_args *args = source->args;
    clv_dataset_config config = {.limit = args->limit,
                                 .classes = (int)(args->classes ? args->classes : source->model->classes)};
    clv_dataset **train = &source->train, **test = &source->test;
    if (args->images) {
        source->status = clv_dataset_npy(source->runtime, args->images, args->labels, &config,
                                         source->with_train ? train : test);
        return NULL;
    }
    if (cli_is_text(args) || cli_is_csv(args)) {
        source->status = cli_is_text(args) ? cli_read_text(source) : cli_read_csv(source);
        return NULL;
    }
    if (cli_is_folder(args)) {
        source->status = cli_read_folder(source);
        return NULL;
    }
    int i = find_dataset(args->words[0]);
    if (source->with_train)
        source->status = datasets[i].make(source->runtime, args->data, CLV_SPLIT_TRAIN, &config, train);
    if (source->status == CLV_OK)
        source->status = datasets[i].make(source->runtime, args->data, CLV_SPLIT_TEST, &config, test);
    return NULL;
}

void cli_source_begin(cli_source *source, const cli_args *args, const clv_model *model, bool with_train) {
    *source = (cli_source){.args = args, .model = model, .with_train = with_train};
    clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    source->status = clv_runtime_create(&config, &source->runtime);
    if (source->status != CLV_OK) return;
    source->running = !pthread_create(&source->thread, NULL, read_source, source);
    if (!source->running) read_source(source);
}

static void join(cli_source *source) {
    if (source->running) pthread_join(source->thread, NULL);
    source->running = false;
}

int cli_source_wait(cli_source *source) {
    const cli_args *args = source->args;
    join(source);
    if (source->status != CLV_OK) return cli_fail_status(source->runtime, source->status);
    if (source->train && (cli_is_folder(args) || cli_is_csv(args)) && clv_dataset_classes(source->train) == 1)
        return cli_fail(EXIT_FAILED,
                        cli_is_folder(args)
                            ? "'%s' has pictures of one class; to tell classes apart takes two or more, each "
                              "a folder of its own in it"
                            : "the targets of '%s' are of one class; to tell classes apart takes two or more",
                        args->words[1]);
    return EXIT_DONE;
}

void cli_source_end(cli_source *source) {
    join(source);
    clv_dataset_destroy(source->train);
    clv_dataset_destroy(source->test);
    clv_vocabulary_destroy(source->vocabulary);
    clv_array_reset(&source->text);
    clv_runtime_destroy(source->runtime);
}
