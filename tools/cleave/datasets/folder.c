// SPDX-License-Identifier: Apache-2.0
// Folders of pictures: the data set `images DIR`, how its pictures are changed for training, and what is said
// of broken ones.
#define _GNU_SOURCE // asprintf
#include "datasets/datasets.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** Have pictures several labels each, by a table? */
static bool has_table(const cli_args *args) {
    return cli_data_is(args, "images") && args->labels;
}

/** Do the options of tables of labels belong together? */
static int check_table(const cli_args *args) {
    if (args->val_labels && !args->labels)
        return cli_fail(EXIT_USAGE, "--val-labels needs --labels: which table has the labels to train on?");
    if (args->labels && args->val && !args->val_labels)
        return cli_fail(EXIT_USAGE, "which table has the labels of --val? --val-labels wants its name");
    if (args->labels && args->classes)
        return cli_fail(EXIT_USAGE, "--labels says how many labels there are: leave --classes out");
    return EXIT_DONE;
}

int cli_check_folder(const cli_args *args, const clv_model *model) {
    if (!cli_data_is(args, "images")) return EXIT_DONE;
    if (args->n_words < 2)
        return cli_fail(EXIT_USAGE,
                        "which folder? `images DIR` wants one with a folder of pictures for each class, "
                        "or of pictures with --labels TABLE");
    if (args->data)
        return cli_fail(EXIT_USAGE, "--data is the folder of a dataset; `images DIR` names its own");
    const int code = check_table(args);
    if (code != EXIT_DONE) return code;
    if (args->workers > 64)
        return cli_fail(EXIT_USAGE, "--workers is 1 to 64, not %lld", (long long)args->workers);
    if (args->image_size > 4096)
        return cli_fail(EXIT_USAGE, "--image-size is 1 to 4096, not %lld", (long long)args->image_size);
    if (model->dtype == CLV_DTYPE_I32)
        return cli_fail(EXIT_USAGE, "%s is a model of texts: give it one, `text FILE`", model->name);
    return EXIT_DONE;
}

/** The folder PARENT/NAME, to be freed, if it holds folders and nothing else that can be seen; or NULL. */
static char *part_of(const char *parent, const char *name) {
    char *path = NULL;
    int folders = 0, others = 0;
    if (asprintf(&path, "%s/%s", parent, name) < 0) return NULL;
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        struct stat what;
        if (*entry->d_name == '.') continue;
        const bool is = fstatat(dirfd(folder), entry->d_name, &what, 0) == 0 && S_ISDIR(what.st_mode);
        ++*(is ? &folders : &others);
    }
    if (folder) closedir(folder);
    if (folders && !others) return path;
    free(path);
    return NULL;
}

void cli_find_parts(cli_args *args, char *parts[2]) {
    static const char *const tested[] = {"val", "valid", "validation", "test"};
    parts[0] = parts[1] = NULL;
    if (!cli_data_is(args, "images") || args->n_words < 2 || args->labels) return;
    const char *parent = args->words[1];
    parts[0] = part_of(parent, "train");
    if (!parts[0]) return;
    for (size_t i = 0; !args->val && !parts[1] && i < sizeof tested / sizeof *tested; i++)
        parts[1] = part_of(parent, tested[i]);
    args->words[1] = parts[0];
    if (parts[1]) args->val = parts[1];
    if (!args->quiet)
        fprintf(stderr, "'%s' holds the splits of a data set: images '%s'%s%s%s\n", parent, parts[0],
                parts[1] ? " --val '" : "", parts[1] ? parts[1] : "", parts[1] ? "'" : "");
}

bool cli_begins_anew(const cli_args *args) {
    return args->command == CLI_TRAIN && args->except;
}

const clv_weights_info *cli_told_classes(const cli_args *args) {
    return args->told && args->told->names && !cli_begins_anew(args) ? args->told : NULL;
}

void cli_pictures_of_weights(const cli_args *args, clv_image_folder_config *config) {
    const clv_weights_info *told = args->told;
    if (!told || !told->channels) return;
    for (int c = 0; c < 3; c++) {
        config->mean[c] = told->mean[told->channels == 3 ? c : 0];
        config->std[c] = told->std[told->channels == 3 ? c : 0];
    }
    if (told->resize && config->size == told->input[1]) config->resize = told->resize;
    config->exif_transpose |= told->exif_transpose;
}

/** What pictures are cut to; 0: as large as they are. */
static int64_t size_of(const cli_args *args) {
    const clv_model *file = clv_onnx_info_get(args->onnx).model;
    if (args->image_size) return args->image_size;
    if (file && file->input[0] == 3) return file->input[1];
    return args->weights || args->resume ? 224 : 0; // what torchvision's weights learnt
}

clv_status cli_read_folder(cli_source *source) {
    const cli_args *args = source->args;
    const char *augment = args->augment ? args->augment : "crop";
    const clv_weights_info *told = cli_told_classes(args);
    clv_image_folder_config plain = {.size = size_of(args),
                                     .limit = args->limit,
                                     .labels = args->labels,
                                     .classes = told ? told->names : NULL,
                                     .n_classes = told ? told->n_names : 0,
                                     .workers = (int)args->workers,
                                     .draft = args->draft,
                                     .exif_transpose = args->exif_transpose,
                                     .strict = args->strict};
    cli_pictures_of_weights(args, &plain);
    clv_image_folder_config drawn = plain;
    drawn.augment = (clv_image_augment){.crop = !strcmp(augment, "crop"),
                                        .flip = strcmp(augment, "none") ? 0.5 : 0,
                                        .brightness = args->color_jitter,
                                        .contrast = args->color_jitter,
                                        .saturation = args->color_jitter};
    if (!source->with_train)
        return clv_dataset_image_folder(source->runtime, args->words[1], &plain, &source->test);
    clv_status status = clv_dataset_image_folder(source->runtime, args->words[1], &drawn, &source->train);
    plain.like = source->train;
    plain.classes = NULL;
    plain.labels = args->val_labels;
    const char *val = args->val ? args->val : args->val_labels ? args->words[1] : NULL;
    if (status == CLV_OK && val)
        status = clv_dataset_image_folder(source->runtime, val, &plain, &source->test);
    return status;
}

void cli_model_of_folder(const cli_args *args, const clv_model *model, const clv_dataset *dataset,
                         clv_model *out) {
    const clv_shape sample = clv_dataset_info_get(dataset).sample;
    const int64_t classes = args->classes ? args->classes : clv_dataset_info_get(dataset).classes;
    *out = clv_model_for(model, 3, sample.dims[1], sample.dims[2], classes);
    if (!has_table(args)) return;
    out->classes = 0;
    out->target[0] = clv_dataset_info_get(dataset).target.dims[0];
}

const clv_loss *cli_loss(const cli_args *args) {
    return has_table(args) ? clv_loss_find("bce_with_logits") : NULL;
}

int64_t cli_broken(const cli_source *source, const char **first) {
    const clv_image_folder_info train = clv_dataset_info_get(source->train).folder,
                                test = clv_dataset_info_get(source->test).folder;
    *first = train.first_broken ? train.first_broken : test.first_broken;
    return train.broken + test.broken;
}

int64_t cli_tell_broken_of(const cli_args *args, const clv_dataset *dataset, int64_t told) {
    const clv_image_folder_info info = clv_dataset_info_get(dataset).folder;
    const int64_t n = info.broken;
    const char *first = info.first_broken;
    if (n > told && !args->quiet)
        fprintf(stderr, "%lld picture%s broken and skipped; the first: %s (--strict refuses them)\n",
                (long long)n, n == 1 ? " is" : "s are", first ? first : "unknown");
    return n;
}

/** What one folder has beside its pictures. */
static void tell_rest(const clv_dataset *dataset, const char *folder) {
    const clv_image_folder_info rest = clv_dataset_info_get(dataset).folder;
    if (!rest.passed_over) return;
    const struct {
        int64_t n;
        const char *one, *several;
    } kinds[] = {{rest.endings, "file with an ending that is no picture's",
                  "files with an ending that is no picture's"},
                 {rest.folders, "folder within a class", "folders within classes"},
                 {rest.hidden, "hidden name", "hidden names"},
                 {rest.loose, "file beside the classes", "files beside the classes"}};
    char text[256] = "";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].n)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld %s", *text ? ", " : "",
                     (long long)kinds[i].n, kinds[i].n == 1 ? kinds[i].one : kinds[i].several);
    fprintf(stderr, "'%s': skipped: %s; the first: '%s' (--strict refuses them)\n", folder, text,
            rest.first_passed_over);
}

void cli_tell_few_pictures(const cli_args *args, const clv_dataset *dataset) {
    enum { FEW = 3000 };
    const int64_t n = clv_dataset_info_get(dataset).count;
    if (args->quiet || !cli_data_is(args, "images") || args->model || args->weights || args->resume ||
        n >= FEW)
        return;
    fprintf(stderr,
            "resnet18 is trained from scratch, and %lld picture%s few for that: --weights of a trained one "
            "with --except 'fc.*', or a smaller model, --model cnn --image-size 64, does better\n",
            (long long)n, n == 1 ? " is" : "s are");
}

void cli_tell_broken(cli_source *source) {
    const char *first = NULL;
    if (source->args->quiet || !cli_data_is(source->args, "images")) return;
    if (!source->told_rest) tell_rest(source->train, source->args->words[1]);
    if (!source->told_rest && (!source->train || source->args->val))
        tell_rest(source->test, source->train ? source->args->val : source->args->words[1]);
    source->told_rest = true;
    const int64_t n = cli_broken(source, &first);
    if (n > source->told_broken)
        fprintf(stderr, "%lld picture%s broken and skipped; the first: %s (--strict refuses them)\n",
                (long long)n, n == 1 ? " is" : "s are", first ? first : "unknown");
    source->told_broken = n;
}
