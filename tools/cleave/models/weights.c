// SPDX-License-Identifier: Apache-2.0
// What --weights tells: model, classes, size of pictures. Options that were not given
// are taken from it, and ones that say something else are refused. And what is wrong with weights whose
// results are no numbers.
#include "datasets/datasets.h"
#include "models/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** A LoRA may have other classes than its weights, and tells so, if it is not of another program. */
static void read_lora_info(clv_runtime *runtime, cli_args *args) {
    static const char *const ends[] = {"/adapter_model.safetensors", ""}; // a folder, or the file in it
    for (int i = 0; i < 2; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s%s", args->lora_weights, ends[i]);
        if (clv_weights_info_read(runtime, path, &args->told) == CLV_OK && args->told->model) {
            args->told_by = strdup(path);
            return;
        }
        clv_free(args->told);
        args->told = NULL;
    }
}

/** `quietly`: who reads the weights later tells what is wrong with the file. */
static int read_info(cli_args *args, bool quietly) {
    clv_runtime *runtime = NULL;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    int code = EXIT_DONE;
    if (clv_runtime_create(&config, &runtime) != CLV_OK) { // is told when the command's own is made
        clv_runtime_destroy(runtime);
        return EXIT_DONE;
    }
    if (args->lora_weights && args->command != CLI_TRAIN) read_lora_info(runtime, args);
    const clv_status status =
        args->told ? CLV_OK : clv_weights_info_read(runtime, args->weights, &args->told);
    if (status != CLV_OK && !quietly) code = cli_fail_status(runtime, status);
    clv_runtime_destroy(runtime);
    return code;
}

static int check_model(const cli_args *args) {
    const clv_weights_info *told = args->told;
    if (!args->model || !told->model || cli_begins_anew(args) || !strcmp(args->model, told->model))
        return EXIT_DONE;
    if (cli_is_foreign(told)) return EXIT_DONE; // whose tensors are looked at when they are loaded
    return cli_fail(EXIT_USAGE, "--model is %s, and '%s' holds weights of %s: leave --model out", args->model,
                    args->weights, told->model);
}

/** Words for a sentence on weights that tell nothing of themselves: why, and how to keep it. "": they do
 *  tell. */
static const char *lost_record(const cli_args *args) {
    const clv_weights_info *told = args->told;
    if (told && (told->model || told->version)) return "";
    return "the program that wrote it kept the tensors alone, as safetensors' save_file does; "
           "save_file(tensors, path, metadata=f.metadata()), with f = safe_open(the file that cleave wrote, "
           "'pt'), keeps what they know";
}

/** Weights that tell nothing: what stands in for it is said. */
static void tell_lost(const cli_args *args) {
    if (args->quiet || !*lost_record(args)) return;
    const char *what =
        cli_data_is(args, "csv")
            ? "columns are as this table has them, and numbers as they stand, but for --standardize"
        : cli_data_is(args, "arrays")  ? "inputs are all other arrays, and numbers as they stand"
        : !cli_data_is(args, "images") ? NULL
        : args->image_size
            ? "pictures are normalized as ImageNet's, and classes are numbered in the order of their names"
            : "pictures are normalized as ImageNet's and 224 x 224 (--image-size), and classes are "
              "numbered in the order of their names";
    if (what) fprintf(stderr, "'%s' does not tell what it was trained on: %s\n", args->weights, what);
}

/** Does the model that is named say itself what its inputs and targets are? */
static bool names_ports(const cli_args *args) {
    const clv_model *model = args->model ? clv_model_find(args->model) : NULL;
    return args->onnx || (model && model->build_all);
}

/** What a command cannot do without. */
static int check_record(const cli_args *args) {
    const clv_weights_info *told = args->told;
    const char *lost = lost_record(args);
    const bool named = args->command == CLI_EVAL && args->target;
    if (args->command != CLI_EVAL && args->command != CLI_RUN) return EXIT_DONE;
    if (cli_data_is(args, "csv") && !told->table && !named)
        return cli_fail(EXIT_FAILED, "'%s' does not tell the columns of its table; %s", args->weights,
                        *lost ? lost : "`cleave train csv FILE --save` writes weights that do");
    if (cli_data_is(args, "arrays") && *lost && !named && !names_ports(args))
        return cli_fail(EXIT_FAILED, "'%s' does not tell its inputs and targets; %s", args->weights, lost);
    char names[CLI_NAMES_BYTES];
    if (*lost && !args->model)
        return cli_fail(EXIT_USAGE, "which model? --model wants one of %s; '%s' does not tell it, for %s",
                        cli_model_names(names), args->weights, lost);
    tell_lost(args);
    return EXIT_DONE;
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
    if (!told || !cli_data_is(args, "images") || args->command == CLI_RUN) return EXIT_DONE;
    if (args->labels && told->classes)
        return cli_fail(EXIT_USAGE, "'%s' gives one of %lld classes for each picture: leave --labels out",
                        args->weights, (long long)told->classes);
    if (!args->labels && !told->classes)
        return cli_fail(EXIT_USAGE,
                        "'%s' gives %d labels for each picture (%s, ...): --labels TABLE needs the labels of "
                        "these pictures",
                        args->weights, told->n_names, told->names[0]);
    return EXIT_DONE;
}

const clv_weights_info *cli_told_scale(const cli_args *args) {
    const clv_weights_info *told = args->told;
    bool plain = true;
    for (int c = 0; told && c < told->channels; c++) plain &= told->mean[c] == 0 && told->std[c] == 1;
    return plain ? NULL : told;
}

static void list_of(const float *each, int n, char text[64]) {
    size_t used = (size_t)snprintf(text, 64, n > 1 ? "(" : "");
    for (int c = 0; c < n; c++)
        used += (size_t)snprintf(text + used, 64 - used, "%s%.4g", c ? ", " : "", (double)each[c]);
    if (n > 1) snprintf(text + used, 64 - used, ")");
}

/** Floats that were not normalised, most likely. */
static bool is_0_to_1(const clv_array *array) {
    const int64_t n = clv_shape_numel(&array->shape);
    const float *values = array->data;
    for (int64_t i = 0; i < n; i++)
        if (!(values[i] >= 0 && values[i] <= 1)) return false;
    return n > 0;
}

void cli_tell_scale(const cli_args *args, const char *path, const clv_array *array) {
    const clv_weights_info *told = cli_told_scale(args);
    char mean[64], std[64];
    if (args->quiet || !told) return;
    const char *each = told->channels > 1 ? " of each channel" : "";
    list_of(told->mean, told->channels, mean);
    list_of(told->std, told->channels, std);
    if (array->type == CLV_DTYPE_U8)
        fprintf(stderr, "'%s': bytes are normalised as the weights tell, (x / 255 - %s) / %s%s\n", path, mean,
                std, each);
    else if (array->type == CLV_DTYPE_F32 && is_0_to_1(array))
        fprintf(stderr,
                "'%s': floats are taken as they are, and these lie between 0 and 1, where the weights expect "
                "(x - %s) / %s of them%s: normalise them, or give bytes\n",
                path, mean, std, each);
    else if (array->type == CLV_DTYPE_F32)
        fprintf(stderr,
                "'%s': floats are taken as they are; the weights expect (x - %s) / %s%s, of x 0 to 1\n", path,
                mean, std, each);
}

int cli_normalise(clv_runtime *runtime, const clv_weights_info *told, const char *what,
                  const clv_array *bytes, clv_array *floats) {
    static const float zero[3] = {0, 0, 0}, one[3] = {1, 1, 1};
    const float *mean = told ? told->mean : zero, *std = told ? told->std : one;
    char text[96];
    *floats = (clv_array){0};
    if (bytes->type != CLV_DTYPE_U8 || bytes->shape.rank < 1 || clv_array_bytes(bytes) == 0) return EXIT_DONE;
    const int channels = told ? told->channels : 1;
    const clv_shape *shape = &bytes->shape;
    if (channels > 1 && (shape->rank < 2 || shape->dims[1] != channels))
        return cli_fail(EXIT_FAILED,
                        "%s is %s, and the weights tell mean and std of %d channels: [N,%d,height,width] is "
                        "wanted%s",
                        what, clv_shape_text(shape, text, sizeof text), channels, channels,
                        shape->rank == 4 && shape->dims[3] == channels
                            ? "; numpy mends it with x.transpose(0, 3, 1, 2)"
                            : "");
    const clv_status status = clv_array_init(runtime, CLV_DTYPE_F32, shape, floats);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    const int64_t n = clv_shape_numel(shape), plane = n / shape->dims[0] / channels;
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = i / plane % channels;
        ((float *)floats->data)[i] = ((float)((const uint8_t *)bytes->data)[i] / 255.0f - mean[c]) / std[c];
    }
    return EXIT_DONE;
}

/** What pictures were cut to. */
static void take_image_size(cli_args *args, const clv_weights_info *told) {
    const bool square = told->input[0] == 3 && told->input[1] == told->input[2] && !told->input[3];
    if (!args->image_size && square && cli_data_is(args, "images")) args->image_size = told->input[1];
}

static void take_sizes(cli_args *args) {
    const clv_weights_info *told = args->told;
    const bool rows = cli_data_is(args, "csv") || cli_data_is(args, "arrays"); // they tell it themselves
    if (!args->classes && !rows && !cli_begins_anew(args)) args->classes = told->classes;
    take_image_size(args, told);
}

#ifndef CLEAVE_INFERENCE
int cli_check_resume(cli_args *args) {
    const char *path = args->resume;
    clv_runtime *runtime = NULL;
    clv_weights_info *told = NULL;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    int code = EXIT_DONE;
    if (!path || clv_runtime_create(&config, &runtime) != CLV_OK) {
        clv_runtime_destroy(runtime);
        return EXIT_DONE;
    }
    const bool read = clv_weights_info_read(runtime, path, &told) == CLV_OK;
    if (read && told->checkpoint) take_image_size(args, told);
    if (read && !told->checkpoint)
        code = cli_fail(EXIT_FAILED,
                        "'%s' is no checkpoint but a file of weights: --weights %s begins with them, and "
                        "--checkpoint FILE writes what --resume goes on from",
                        path, path);
    clv_free(told);
    clv_runtime_destroy(runtime);
    return code;
}
#endif

void cli_forget_weights(cli_args *args) {
    clv_free(args->told);
    free(args->told_by);
    args->told = NULL;
    args->told_by = NULL;
}

int cli_tell_weights(cli_args *args) {
    const bool text = cli_data_is(args, "text") || args->command == CLI_GENERATE;
    if (!args->weights) return EXIT_DONE;
    int code = read_info(args, text);
    if (code != EXIT_DONE || !args->told) return code;
    code = cli_load_told_onnx(args);
    if (code == EXIT_DONE && !text) code = cli_check_foreign(args);
    if (code == EXIT_DONE) code = cli_check_kind(args);
    if (text) { // sizes and tokens are read with the weights
        cli_forget_weights(args);
        return code;
    }
    if (code == EXIT_DONE) code = check_record(args);
    if (code == EXIT_DONE) code = check_model(args);
    if (code == EXIT_DONE) code = check_sizes(args);
    if (code == EXIT_DONE) code = check_labels(args);
    if (code != EXIT_DONE) return code;
    if (!args->model) args->model = args->told->model;
    take_sizes(args);
    return EXIT_DONE;
}

// ---- weights that are no numbers --------------------------------------------------------------------------

/** Has it an element that is not finite? The sentence. */
static bool blame(const char *name, const float *values, int64_t n, const char *path, char *text,
                  size_t bytes) {
    int64_t at = 0;
    while (at < n && isfinite(values[at])) at++;
    if (at == n) return false;
    snprintf(text, bytes, "'%.100s' of the weights '%.200s' has such a value (element %lld is %g)", name,
             path, (long long)at, (double)values[at]);
    return true;
}

bool cli_blame_file(clv_runtime *runtime, const char *path, char *text, size_t bytes) {
    clv_archive *archive = NULL;
    bool found = false;
    if (clv_safetensors_read(runtime, path, &archive) != CLV_OK) return false;
    for (size_t i = 0; !found && clv_archive_get(archive, i); i++) {
        const clv_array *array = clv_archive_get(archive, i);
        if (array->type == CLV_DTYPE_F32)
            found = blame(array->name, array->data, clv_shape_numel(&array->shape), path, text, bytes);
    }
    clv_archive_destroy(archive);
    return found;
}

void cli_blame_weights(clv_session *weights, const char *path, char *text, size_t bytes) {
    const int n = clv_session_info_get(weights).n_tensors;
    bool found = false;
    snprintf(text, bytes, "look at the inputs and the weights");
    for (int i = 0; !found && i < n; i++) {
        const clv_session_tensor one = clv_session_get(weights, i);
        const size_t size = one.category == CLV_PARAMETERS && one.dtype == CLV_DTYPE_F32 ? one.bytes : 0;
        float *values = size ? malloc(size) : NULL;
        if (values && clv_session_read(weights, i, values, size) == CLV_OK)
            found = blame(one.name, values, (int64_t)(size / sizeof *values), path, text, bytes);
        free(values);
    }
}

// ---- weights that do not fit ------------------------------------------------------------------------------

/** Is it a column to be learnt that the table lacks, by the sentence? */
static bool lacks_target(const cli_args *args, const char *sentence) {
    const char *record = args->told ? args->told->table : NULL;
    json_t *table = record ? cli_json_read(record, strlen(record)) : NULL, *name;
    char words[300];
    bool found = false;
    size_t i;
    json_array_foreach(json_object_get(table, "targets"), i, name) {
        snprintf(words, sizeof words, "has no column '%s'", json_string_value(name));
        found |= strstr(sentence, words) != NULL;
    }
    json_decref(table);
    return found;
}

int cli_fail_csv(const cli_source *source) {
    const cli_args *args = source->args;
    const char *sentence = cli_sentence(source->runtime), *remedy = strstr(sentence, "; --"),
               *lost = lost_record(args);
    if (args->command == CLI_EVAL && lacks_target(args, sentence))
        return cli_fail(EXIT_FAILED,
                        "%s; of rows without it `cleave run csv %s --weights %s -o FILE` writes predictions",
                        sentence, args->words[1], args->weights);
    if (args->command != CLI_EVAL || !*lost) return cli_fail(EXIT_FAILED, "%s", sentence);
    return cli_fail(EXIT_FAILED, "%.*s; '%s' does not tell what to do with it: %s",
                    (int)(remedy ? remedy - sentence : (ptrdiff_t)strlen(sentence)), sentence, args->weights,
                    lost);
}

int cli_fail_made(clv_runtime *runtime, const cli_args *args, clv_status status) {
    static const char words[] = " takes images of ";
    const char *sentence = cli_sentence(runtime), *at = strstr(sentence, words);
    const int64_t side = at ? strtoll(at + sizeof words - 1, NULL, 10) : 0;
    if (side > 0 && cli_data_is(args, "images"))
        return cli_fail(EXIT_FAILED, "%s: --image-size %lld makes them larger", sentence, (long long)side);
    if (side > 0 && args->command == CLI_PLAN)
        return cli_fail(EXIT_FAILED, "%s: --input-size 3x%lldx%lld", sentence, (long long)side,
                        (long long)side);
    return cli_fail_status(runtime, status);
}

static clv_shape sample_of(const clv_model *model) {
    int rank = 0;
    while (rank < CLV_MAX_RANK - 1 && model->input[rank]) rank++;
    return clv_shape_make(rank, model->input);
}

/** Of another number of classes: the samples' size is no reason, and only `train` gives layers new first
 *  values. */
static int fail_classes(const cli_args *args, const char *sentence) {
    const char *anew = args->command == CLI_TRAIN ? NULL : strstr(sentence, ", or leave '");
    return cli_fail(EXIT_FAILED, "%.*s", anew ? (int)(anew - sentence) : (int)strlen(sentence), sentence);
}

int cli_fail_sized(clv_runtime *runtime, const cli_args *args, clv_status status, const clv_model *sized) {
    const clv_model *model = clv_model_find(sized->name);
    const char *lost = args->command == CLI_TRAIN ? "" : lost_record(args);
    char built[96];
    if (status == CLV_E_SHAPE && strstr(cli_sentence(runtime), "; build the model for "))
        return fail_classes(args, cli_sentence(runtime));
    const int64_t *learnt = model ? cli_told_input(args, model) : NULL;
    if (status != CLV_E_SHAPE || !model ||
        !memcmp(learnt ? learnt : model->input, sized->input, sizeof model->input))
        return cli_fail_status(runtime, status);
    const clv_shape of_samples = sample_of(sized);
    if (*lost && cli_data_is(args, "csv"))
        return cli_fail(
            EXIT_FAILED, "%s; rows are %s here, and '%s' does not tell the columns of its table: %s",
            cli_sentence(runtime), clv_shape_text(&of_samples, built, sizeof built), args->weights, lost);
    if (learnt) {
        char own[96];
        clv_model as_learnt = {0};
        memcpy(as_learnt.input, learnt, sizeof as_learnt.input);
        const clv_shape of_weights = sample_of(&as_learnt);
        return cli_fail(EXIT_FAILED, "%s; the samples here are %s, and '%s' was trained on samples of %s",
                        cli_sentence(runtime), clv_shape_text(&of_samples, built, sizeof built),
                        args->weights, clv_shape_text(&of_weights, own, sizeof own));
    }
    return cli_fail(EXIT_FAILED,
                    "%s; the model was built for the samples, %s: were the weights made for others?",
                    cli_sentence(runtime), clv_shape_text(&of_samples, built, sizeof built));
}
