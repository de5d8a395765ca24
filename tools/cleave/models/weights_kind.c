// SPDX-License-Identifier: Apache-2.0
// Weights of a table, of pictures, of a text, of named arrays or of samples: what they tell of themselves
// says which command takes them, where they are given to another one.
#include "datasets/datasets.h"
#include "models/models.h"

#include <stdlib.h>

/** What weights may be of, in the order in which they are asked for. */
enum { TABLE, TEXT, PICTURES, ARRAYS, SAMPLES, KINDS };

static const struct {
    const char *what, *data; // data: the word of train, eval and run; NULL: none, they take files of arrays
    const char *takes;       // behind these words
} kinds[KINDS] = {[TABLE] = {"a table", "csv", "csv FILE"},
                  [TEXT] = {"a text", "text", "text FILE"},
                  [PICTURES] = {"pictures", "images", "images FOLDER"},
                  [ARRAYS] = {"named arrays", "arrays", "arrays FILE"},
                  [SAMPLES] = {"samples", NULL, "--images FILE --labels FILE"}};

/** KINDS: they do not tell. */
static int kind_of(const clv_weights_info *told) {
    if (!told->model) return KINDS;
    if (told->table) return TABLE;
    if (cli_is_decoder(clv_model_find(told->model))) return TEXT;
    if (told->resize) return PICTURES;
    if (told->input[0]) return SAMPLES;
    return told->version ? ARRAYS : KINDS; // without a record nothing but the model's name is told
}

/** What a command is given; SAMPLES: a dataset by name; KINDS: arrays in files, whose shapes are looked
 *  at. */
static int kind_given(const cli_args *args) {
    if (args->command == CLI_GENERATE) return TEXT;
    for (int kind = 0; kind < SAMPLES; kind++)
        if (cli_data_is(args, kinds[kind].data)) return kind;
    return args->n_words ? SAMPLES : KINDS;
}

/** What weights tell of named arrays, to be freed; NULL: nothing. */
static cli_fields *fields_of(const cli_args *args) {
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    clv_runtime *runtime = NULL;
    cli_fields *fields = calloc(1, sizeof *fields);
    const bool there = fields && clv_runtime_create(&config, &runtime) == CLV_OK &&
                       cli_told_fields(runtime, cli_telling(args), fields);
    clv_runtime_destroy(runtime);
    if (there) return fields;
    free(fields);
    return NULL;
}

/** An array in a file stands for the input of one that was trained with, if its results need no scale; their
 *  shape is then told. */
static bool takes_array(const cli_args *args) {
    cli_fields *fields = fields_of(args);
    const bool takes =
        !fields || (fields->n_inputs == 1 && fields->n_targets == 1 && !(fields->scale[0] > 0));
    if (fields && takes) memcpy(args->told->input, fields->port[0].dims, sizeof args->told->input);
    free(fields);
    return takes;
}

static bool fits(const cli_args *args, int is, int given) {
    const bool measures = args->command == CLI_RUN || args->command == CLI_EVAL;
    if (given == KINDS && measures && is == TABLE) return false; // which it knows the columns and scales of
    if (given == KINDS && measures && is == ARRAYS) return takes_array(args);
    if (is == KINDS || given == KINDS || is == given) return true;
    if (given == ARRAYS && (is == SAMPLES || is == PICTURES))
        return args->command != CLI_RUN; // whose names the weights must tell
    if (is != SAMPLES) return false;
    if (given == PICTURES) return args->told->input[0] == 3;
    return given == TABLE && args->command == CLI_EVAL && args->target;
}

/** The first of them, behind a word. */
static void add_names(const char *word, const char *const *names, size_t n, char *text, size_t bytes) {
    enum { MOST = 4 };
    size_t at = n ? (size_t)snprintf(text, bytes, " with the %s", word) : 0;
    for (size_t i = 0; i < n && i < MOST && at < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%.60s", i ? ", " : " ", names[i]);
    if (n > MOST && at < bytes) snprintf(text + at, bytes - at, ", ...");
}

static void add_columns(const clv_weights_info *told, char *text, size_t bytes) {
    json_t *table = cli_json_read(told->table, strlen(told->table)),
           *columns = json_object_get(table, "columns");
    const size_t n = json_array_size(columns);
    const char **names = calloc(n ? n : 1, sizeof *names);
    size_t at = 0;
    for (size_t i = 0; names && i < n; i++) {
        const char *name = json_string_value(json_array_get(columns, i));
        if (name) names[at++] = name;
    }
    add_names(at == 1 ? "column" : "columns", names, at, text, bytes);
    free(names);
    const size_t used = strlen(text);
    if (told->input[0])
        snprintf(text + used, bytes - used, ", rows of %lld number%s", (long long)told->input[0],
                 told->input[0] == 1 ? "" : "s");
    json_decref(table);
}

static void add_shape(const clv_weights_info *told, char *text, size_t bytes) {
    int rank = 0;
    char shape[96];
    while (rank < CLV_MAX_RANK - 1 && told->input[rank]) rank++;
    const clv_shape sample = clv_shape_make(rank, told->input);
    snprintf(text, bytes, " %s", clv_shape_text(&sample, shape, sizeof shape));
}

/** The inputs by name, and the shape of a sample of each. */
static void add_inputs(const cli_args *args, char *text, size_t bytes) {
    cli_fields *fields = fields_of(args);
    char names[CLV_MAX_PORTS][200], shape[96];
    const char *list[CLV_MAX_PORTS];
    int n = 0;
    for (; fields && n < fields->n_inputs; n++) {
        const clv_shape batch = clv_port_shape(&fields->port[n], 1),
                        sample = clv_shape_make(batch.rank - 1, batch.dims + 1);
        snprintf(names[n], sizeof names[n], "%s%s%s", fields->name[n], sample.rank ? " " : "",
                 sample.rank ? clv_shape_text(&sample, shape, sizeof shape) : "");
        list[n] = names[n];
    }
    add_names(n == 1 ? "input" : "inputs", list, (size_t)n, text, bytes);
    free(fields);
}

/** The command that takes weights of a kind, for what this one does. */
static const char *command_for(const cli_args *args, int kind, char *text, size_t bytes) {
    const bool runs = args->command == CLI_RUN || args->command == CLI_GENERATE;
    const char *takes = runs && kind == SAMPLES    ? "--input FILE"
                        : runs && kind == PICTURES ? "images FILE"
                                                   : kinds[kind].takes;
#ifdef CLEAVE_INFERENCE
    const char *command = runs ? "run" : "eval";
#else
    const char *command = args->command == CLI_TRAIN ? "train" : runs ? "run" : "eval";
#endif
    if (runs && kind == TEXT)
        snprintf(text, bytes, "generate --prompt TEXT");
    else
        snprintf(text, bytes, "%s %s", command, takes);
    return text;
}

int cli_check_kind(const cli_args *args) {
    const int is = kind_of(args->told);
    char of[400] = "", command[64], more[96];
    if (fits(args, is, kind_given(args)) || cli_begins_anew(args)) return EXIT_DONE;
    if (is == TABLE) add_columns(args->told, of, sizeof of);
    if (is == ARRAYS) add_inputs(args, of, sizeof of);
    if (is == PICTURES) {
        const char *word = args->told->classes ? "classes" : "labels";
        add_names(word, args->told->names, (size_t)args->told->n_names, of, sizeof of);
    }
    if (is == SAMPLES) add_shape(args->told, of, sizeof of);
    return cli_fail(EXIT_FAILED, "'%s' holds weights of %s%s: `cleave %s --weights %s%s` takes them",
                    args->weights, kinds[is].what, of, command_for(args, is, command, sizeof command),
                    args->weights, cli_foreign_option(args, more, sizeof more));
}
