// SPDX-License-Identifier: Apache-2.0
// Where samples and targets come from: a dataset by name, two .npy files, named arrays (arrays.c), a text
// (text.c), a table (csv.c) or a folder of pictures (folder.c).
#include "datasets/datasets.h"
#include "models/models.h"
#include "training/training.h"
#include "options/options.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/** A dataset of the command line: its name, and how the library makes it. */
static const struct {
    const char *name;
    clv_status (*make)(clv_runtime *, const char *folder, clv_split, const clv_dataset_config *,
                       clv_dataset **);
} datasets[] = {{"fashion-mnist", clv_dataset_fashion_mnist}};

enum { CROP_PADDING = 4 }; // as it is usual for images of 28 and 32 pixels

enum { N_DATASETS = sizeof datasets / sizeof *datasets };

static int find_dataset(const char *name) {
    for (int i = 0; i < N_DATASETS; i++)
        if (!strcmp(datasets[i].name, name)) return i;
    return -1;
}

/** What to do where an option of other data was meant. */
static const char *instead(const option_row *option, unsigned data) {
    if (data == OF_PICTURES && option->field == offsetof(cli_args, validation))
        return "; pictures to test on are another folder: --val DIR";
    if (data == OF_ARRAYS && option->field == offsetof(cli_args, standardize))
        return "; numpy standardizes the inputs of arrays: x = (x - mean) / std, with x.mean(0) and "
               "x.std(0) of the samples trained on, for all that come later too";
    return "";
}

/** A file in the place of a dataset: what is behind its name is most likely the word that is missing. */
static const char *word_for(const char *file) {
    static const char *const words[][2] = {
        {".csv", "csv"},    {".tsv", "csv"},     {".npz", "arrays"}, {".txt", "text"},    {".npy", "--input"},
        {".jpg", "images"}, {".jpeg", "images"}, {".png", "images"}, {".webp", "images"}, {".bmp", "images"},
        {".tif", "images"}, {".tiff", "images"}, {".gif", "images"}};
    const char *dot = strrchr(file, '.');
    struct stat what;
    if (stat(file, &what) != 0) return NULL;
    if (S_ISDIR(what.st_mode)) return "images";
    for (size_t i = 0; dot && i < sizeof words / sizeof *words; i++)
        if (!strcasecmp(dot, words[i][0])) return words[i][1];
    return NULL;
}

static bool is_folder(const char *path) {
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

/** What takes a text, in `run`. */
static int refuse_text(int code, const char *name) {
    return cli_fail(code,
                    "'%s' is a text: `cleave generate --prompt TEXT` goes on with one, and `cleave eval text "
                    "%s` tests on it",
                    name, name);
}

int cli_check_word(const cli_args *args) {
    const bool runs = args->command == CLI_RUN;
    const char *name = args->n_words == 1 || (runs && args->n_words) ? args->words[0] : NULL,
               *word = name ? word_for(name) : NULL;
    if (!word || find_dataset(name) >= 0 || cli_data_is(args, word)) return EXIT_DONE;
    if (!runs && (!strcmp(word, "--input") || (!strcmp(word, "images") && !is_folder(name))))
        return EXIT_DONE;
    if (runs && !strcmp(word, "text")) return refuse_text(EXIT_USAGE, name);
    return cli_fail(EXIT_USAGE, "'%s' is a %s: `cleave %s %s %s` takes it", name,
                    is_folder(name) ? "folder" : "file",
                    args->command == CLI_EVAL ? "eval"
                    : runs                    ? "run"
                                              : "train",
                    word, name);
}

int cli_check_pictures(const cli_args *args) {
    const char *path = args->words[1], *word = args->n_words > 1 ? word_for(path) : NULL;
    if (!word || is_folder(path) || !strcmp(word, "images") || !strcmp(word, "--input")) return EXIT_DONE;
    if (args->command == CLI_RUN && !strcmp(word, "text")) return refuse_text(EXIT_FAILED, path);
    const char *command = args->command == CLI_EVAL ? "eval" : args->command == CLI_RUN ? "run" : "train";
    return cli_fail(EXIT_FAILED, "'%s' is no picture%s: `cleave %s %s %s` takes it", path,
                    args->command == CLI_RUN ? "" : ", nor a folder of them", command, word, path);
}

int cli_check_data(const cli_args *args) {
    static const struct {
        unsigned data;
        const char *text;
    } said[] = {
        {OF_PICTURES, "folders of pictures: `images DIR`"},
        {OF_TEXTS, "texts: `text FILE`"},
        {OF_TABLES, "tables: `csv FILE`"},
        {OF_PICTURES | OF_IMAGES, "pictures: `images DIR`, Fashion-MNIST, or --images and --labels"},
        {OF_ARRAYS, "named arrays: `arrays FILE`"},
        {OF_TABLES | OF_ARRAYS, "tables: `csv FILE`, and of named arrays: `arrays FILE`"},
        {OF_TEXTS | OF_TABLES | OF_ARRAYS,
         "texts and tables, and named arrays: `text FILE`, `csv FILE`, `arrays FILE`"},
    };
    const unsigned data = cli_data_is(args, "images")   ? OF_PICTURES
                          : cli_data_is(args, "text")   ? OF_TEXTS
                          : cli_data_is(args, "csv")    ? OF_TABLES
                          : cli_data_is(args, "arrays") ? OF_ARRAYS
                                                        : OF_IMAGES;
    const int code = data != OF_IMAGES ? EXIT_DONE : cli_check_word(args);
    if (code != EXIT_DONE) return code;
    for (int i = 0; i < OPTIONS; i++) {
        const option_row *option = &option_rows[i];
        size_t of = 0;
        if (!option->only || option->only & data || !option_is_given(option, args)) continue;
        while (said[of].data != option->only) of++;
        const bool pictures = option->only == OF_PICTURES && args->command == CLI_RUN;
        return cli_fail(EXIT_USAGE, "--%s is of %s%s", option->name,
                        pictures ? "pictures: `images FILE...`" : said[of].text, instead(option, data));
    }
    return EXIT_DONE;
}

/** Is the first word a dataset? Prints which there are, and returns EXIT_USAGE, if not. */
static int check_name(const cli_args *args) {
    static const char *const words[] = {"text", "csv", "images", "arrays"};
    char names[128] = "";
    if (!args->n_words) return EXIT_DONE;
    clv__nearest nearest = {.word = args->words[0]};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (cli_data_is(args, words[i])) return EXIT_DONE;
        clv__nearest_offer(&nearest, words[i]);
    }
    if (find_dataset(args->words[0]) >= 0) return EXIT_DONE;
    const int code = cli_check_word(args);
    if (code != EXIT_DONE) return code;
    for (int i = 0; i < N_DATASETS; i++) {
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 datasets[i].name);
        clv__nearest_offer(&nearest, datasets[i].name);
    }
    return cli_fail(EXIT_USAGE,
                    "unknown dataset '%s'; there are %s, images DIR, text FILE, csv FILE and arrays FILE%s",
                    args->words[0], names, clv__nearest_text(&nearest));
}

int cli_check_source(const cli_args *args) {
    bool arrays = args->images || (args->labels && !cli_data_is(args, "images"));
    const int labels = cli_check_labels(args);
    if (labels != EXIT_DONE) return labels;
    if (args->ignore_index && !args->images && !cli_data_is(args, "arrays"))
        return cli_fail(EXIT_USAGE,
                        "--ignore-index is for labels in arrays: --labels FILE, or `arrays FILE`");
    if (args->n_words && arrays)
        return cli_fail(EXIT_USAGE, "give a dataset or --images and --labels, not both");
    if (arrays && !(args->images && args->labels))
        return cli_fail(EXIT_USAGE, "--images and --labels belong together; --%s is missing",
                        args->images ? "labels" : "images");
    if (!args->n_words && !arrays)
        return cli_fail(EXIT_USAGE, "on what? Give a dataset (fashion-mnist, images DIR, text FILE, csv "
                                    "FILE, arrays FILE), or --images and --labels");
    if (arrays && args->data) return cli_fail(EXIT_USAGE, "--data is the folder of a dataset, not of arrays");
    if (args->validation > 1 && args->command == CLI_EVAL)
        return cli_fail(EXIT_USAGE, "--validation is the part that is tested on, at most 1, not %g",
                        args->validation);
    if (args->validation >= 1 && args->command != CLI_EVAL)
        return cli_fail(EXIT_USAGE, "--validation is the part that is not trained on, below 1, not %g",
                        args->validation);
    int code = check_name(args); // before its options: of another word they are others
    if (code == EXIT_DONE) code = cli_check_data(args);
    if (code == EXIT_DONE && cli_data_is(args, "images")) code = cli_check_pictures(args);
    if (code != EXIT_DONE) return code;
    if (cli_data_is(args, "text") || cli_data_is(args, "csv") || cli_data_is(args, "arrays") ||
        cli_data_is(args, "images"))
        return EXIT_DONE;
    if (args->n_words > 1)
        return cli_fail(EXIT_USAGE, "'%s' is one word too many; see 'cleave %s --help'", args->words[1],
                        args->command == CLI_EVAL ? "eval" : "train");
    return EXIT_DONE;
}

cli_unit cli_unit_of(const cli_args *args, const clv_model *model) {
    cli_unit unit = {"tokens", 1};
    for (int d = 0; d < CLV_MAX_RANK - 1 && model->input[d]; d++) unit.each *= model->input[d];
    if (model->dtype == CLV_DTYPE_I32 && !model->build_all) return unit;
    const bool images = !model->build_all && model->input[1];
    return (cli_unit){cli_data_is(args, "csv") ? "rows" : images ? "images" : "samples", 1};
}

const char *cli_loss_units(const cli_source *source) {
    const clv_dataset *dataset = source->train ? source->train : source->test;
    const char *record = clv_dataset_info_get(dataset).table;
    const clv_shape target = clv_dataset_info_get(dataset).target;
    bool deviations = record && clv_shape_numel(&target) > 1 && strstr(record, "\"target_means\"");
    for (int i = 0; i < source->fields.n_targets; i++) deviations |= source->fields.scale[i] > 0;
    return deviations ? " (of standardized targets)" : "";
}

int cli_model_of_source(clv_runtime *runtime, cli_source *source, clv_model *out) {
    const clv_dataset *dataset = source->train ? source->train : source->test;
    const clv_shape sample = clv_dataset_info_get(dataset).sample;
    if (source->vocabulary)
        *out = clv_gpt_model(&source->gpt);
    else if (cli_data_is(source->args, "csv"))
        return cli_model_of_rows(source, dataset, out);
    else if (cli_data_is(source->args, "arrays"))
        return cli_model_of_fields(runtime, source->args, source->model, &source->fields, out);
    else if (cli_data_is(source->args, "images"))
        cli_model_of_folder(source->args, source->model, dataset, out);
    else
        return cli_size_model(runtime, source->args, source->model, &sample, out);
    return EXIT_DONE;
}

static void *read_source(void *user) {
    cli_source *source = user;
    const cli_args *args = source->args;
    clv_dataset_config config = {.limit = args->limit,
                                 .classes = (int)(args->classes ? args->classes : source->model->classes)};
    int32_t ignored;
    if (cli_ignored_label(args, &ignored)) config.ignore_index = &ignored;
    clv_dataset **train = &source->train, **test = &source->test;
    const char *augment = source->with_train && args->augment ? args->augment : "none";
    const int64_t padding = strcmp(augment, "crop") ? 0 : CROP_PADDING;
    const double flip = strcmp(augment, "none") ? 0.5 : 0;
    if (args->images) {
        config.crop_padding = padding;
        config.flip = flip;
        const clv_weights_info *told = cli_told_scale(args);
        if (told) {
            config.only_bytes = true;
            config.channels = told->channels;
            config.means = told->mean;
            config.stds = told->std;
        }
        clv_array images = {0};
        if (told && !args->quiet && clv_npy_read(source->runtime, args->images, &images) == CLV_OK)
            cli_tell_scale(args, args->images, &images);
        clv_array_reset(&images);
        source->status = clv_dataset_npy(source->runtime, args->images, args->labels, &config,
                                         source->with_train ? train : test);
        return NULL;
    }
    if (cli_data_is(args, "text") || cli_data_is(args, "csv")) {
        source->status = cli_data_is(args, "text") ? cli_read_text(source) : cli_read_csv(source);
        return NULL;
    }
    if (cli_data_is(args, "arrays")) {
        source->status = cli_read_arrays(source->runtime, args->words[1], &source->archive);
        return NULL;
    }
    if (cli_data_is(args, "images")) {
        source->status = cli_read_folder(source);
        return NULL;
    }
    int i = find_dataset(args->words[0]);
    clv_dataset_config drawn = config;
    drawn.crop_padding = padding;
    drawn.flip = flip;
    if (source->with_train)
        source->status = datasets[i].make(source->runtime, args->data, CLV_SPLIT_TRAIN, &drawn, train);
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
    if (source->status == CLV_E_NOT_FOUND && source->with_train && cli_data_is(args, "images") &&
        cli_told_classes(args))
        return cli_fail(EXIT_FAILED,
                        "%s; --except LAYER.* gives the last layer new first weights, to learn others",
                        cli_sentence(source->runtime));
    if ((source->status == CLV_E_FORMAT || source->status == CLV_E_NOT_FOUND) && cli_data_is(args, "csv"))
        return cli_fail_csv(source);
    if (source->status != CLV_OK && cli_data_is(args, "text")) return cli_fail_text(source);
    if (source->status != CLV_OK) return cli_fail_status(source->runtime, source->status);
    if (source->train && (cli_data_is(args, "images") || cli_data_is(args, "csv")) &&
        clv_dataset_info_get(source->train).classes == 1)
        return cli_fail(EXIT_FAILED,
                        cli_data_is(args, "images")
                            ? "'%s' has pictures of one class; a classifier needs two or more, each a folder "
                              "of its own in it"
                            : "the targets of '%s' are of one class; a classifier needs two or more",
                        args->words[1]);
    return cli_data_is(args, "arrays") ? cli_make_arrays(source) : EXIT_DONE;
}

void cli_source_end(cli_source *source) {
    join(source);
    clv_dataset_destroy(source->train);
    clv_dataset_destroy(source->test);
    clv_vocabulary_destroy(source->vocabulary);
    clv_array_reset(&source->text);
    clv_archive_destroy(source->archive);
    clv_runtime_destroy(source->runtime);
}
