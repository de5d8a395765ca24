// SPDX-License-Identifier: Apache-2.0
// Samples and targets: arrays, tables, texts, folders of pictures.
#ifndef CLEAVE_CLI_DATASETS_H
#define CLEAVE_CLI_DATASETS_H

#include "cli.h"

// ---- arrays.c: named arrays as dataset -------------------------------------------------------------------

/** Inputs and targets by name, and a model that has such ports. Points into itself: not to be copied. */
typedef struct cli_fields {
    int n_inputs, n_targets;
    char name[2 * CLV_MAX_PORTS][64];                 // of inputs, then of targets
    clv_port port[2 * CLV_MAX_PORTS];                 // the same
    clv_train_loss loss[CLV_MAX_PORTS];               // of each target
    double mean[CLV_MAX_PORTS], scale[CLV_MAX_PORTS]; // of targets that are numbers; scale 0: as they stand
    clv_train_loss trained[CLV_MAX_PORTS];            // `loss`, of deviations where there is a scale
    clv_port sized[2 * CLV_MAX_PORTS]; // of a model that names its ports, where they are as the arrays are
    clv_gpt_config gpt;                // of bert_base, what its weights tell
    bool places;                       // the model of a file tells the class of each place of [N,C,...]
    clv_model inner;                   // of one input and one output, which the named ones are made with
} cli_fields;

/** Are --inputs and --target as they can be? Prints and returns EXIT_USAGE if not. */
int cli_check_arrays(const cli_args *args, const clv_model *model);
/** Say that there is no array of that name, and which there are; EXIT_FAILED. */
int cli_no_array(const clv_archive *archive, const char *path, const char *name);
/** An .npz, or a folder of .npy. */
clv_status cli_read_arrays(clv_runtime *runtime, const char *path, clv_archive **out);
/** The model for such fields: one that names ports itself as it is. Prints what does not fit. */
int cli_model_of_fields(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                        cli_fields *fields, clv_model *out);
/** Mean and scale of a target in the record of weights; none: 0. False: they are no numbers. */
bool cli_field_scale(const json_t *target, double *mean, double *scale);
/** What weights keep of them, to be freed; NULL: no memory. */
char *cli_fields_record(const cli_fields *fields);
/** Save weights with that, and the sizes of a bert_base. */
clv_status cli_save_fields(clv_session *session, const cli_fields *fields, const char *path);
/** fields_told.c: what is kept, read; false: it is no such text. */
bool cli_parse_fields(const char *text, cli_fields *out);
/** What weights tell of them; false: nothing, or nothing that can be read. */
bool cli_told_fields(clv_runtime *runtime, const char *path, cli_fields *out);
/** Whole numbers and truth values as i32 into `out`, which others leave empty. false: no memory. */
bool cli_as_i32(const clv_array *array, clv_array *out);
/** The way back, and *model, unless it is set already. A model that names its ports, and an ONNX file, tell
 *  them themselves. Prints what is wrong. */
int cli_fields_of_weights(clv_runtime *runtime, const cli_args *args, cli_fields *out,
                          const clv_model **model);

// ---- source.c: samples and targets from a dataset, arrays, a text, a folder -----------------------------

/** Samples and targets, read by a thread while drivers are probed and the runtime starts. */
typedef struct cli_source {
    const cli_args *args;
    const clv_model *model;
    bool with_train;
    clv_runtime *runtime; // holds the sentence of what fails; no devices
    clv_status status;
    pthread_t thread;
    bool running;
    clv_dataset *train,
        *test; // arrays are trained on, or tested without `with_train`; the other stays NULL then
    clv_vocabulary *vocabulary; // of a text; else NULL
    clv_gpt_config gpt;         // of a text: the model's sizes
    clv_array text;             // while it is read
    clv_archive *archive;       // of named arrays; the datasets read from it
    cli_fields fields;          // of it
    bool told_rest;             // of what is beside the pictures
    int64_t told_broken;        // pictures that are broken: so many were told of
    int64_t left_out;           // samples of a text that each evaluation in a training leaves out
} cli_source;

/** Named arrays are read: datasets of them. */
int cli_make_arrays(cli_source *source);
/** arrays_scale.c: mean and scale of each target, by the rows that are trained on or as weights say, and the
 *  losses by that. */
void cli_scale_targets(cli_source *source, int64_t known);
/** The same file: are inputs that are trained on of very unlike sizes? On stderr. Quiet: nothing. */
void cli_tell_unlike(const cli_source *source);
/** Begin to read what the options ask for, for a model; with_train: also what is trained on. */
void cli_source_begin(cli_source *source, const cli_args *args, const clv_model *model, bool with_train);
/** Wait for it; prints what failed. */
int cli_source_wait(cli_source *source);
/** Free the datasets. A zeroed source is fine. */
void cli_source_end(cli_source *source);
/** Are dataset and arrays given as they can be? Prints and returns EXIT_USAGE if not. Reads no file. */
int cli_check_source(const cli_args *args);
/** `cleave train houses.csv`: which word is missing before it? Prints it and returns EXIT_USAGE, if so. */
int cli_check_word(const cli_args *args);
/** Is what `images` is given a table, a text or arrays? Prints which command takes it, and returns
 *  EXIT_FAILED, if so. */
int cli_check_pictures(const cli_args *args);
/** Are options that are of some data alone given with these? Prints and returns EXIT_USAGE if not. */
int cli_check_data(const cli_args *args);
/** The model for what was read: of a text of its vocabulary and context, else as cli_size_model. */
int cli_model_of_source(clv_runtime *runtime, cli_source *source, clv_model *out);
/** What data are counted in, and how many of these a sample is: `images`, `rows` of a table, `tokens`, or
 *  `samples` of others. */
typedef struct cli_unit {
    const char *name;
    int64_t each;
} cli_unit;
cli_unit cli_unit_of(const cli_args *args, const clv_model *model);
/** Words behind a loss that is not in the units of the data; "": it is. */
const char *cli_loss_units(const cli_source *source);

// ---- text.c: a text as dataset ----------------------------------------------------------------------------

/** Does the model take what is given, and do options of texts have one? Prints and returns EXIT_USAGE
 *  if not. */
int cli_check_text(const cli_args *args, const clv_model *model);
/** Read it, in the source's thread. */
clv_status cli_read_text(cli_source *source);
/** Say why it could not be read: how long a sample is, only a training that begins can say. */
int cli_fail_text(const cli_source *source);
/** What may be wrong with a text, and which samples are left out. */
void cli_tell_text(const cli_source *source);

// ---- csv.c: a table as dataset ----------------------------------------------------------------------------

/** Does the model take rows, and do options of tables have one? Prints and returns EXIT_USAGE if not. */
int cli_check_csv(const cli_args *args, const clv_model *model);
/** Read it, in the source's thread. */
clv_status cli_read_csv(cli_source *source);
/** What became of a table's rows, on stderr: left out, filled in, unknown words. Quiet: nothing. */
void cli_tell_table(const cli_args *args, const clv_table_report *report, const char *record);
/** Are there classes of a table of which each has few rows? On stderr. Quiet: nothing. */
void cli_tell_few_rows(const cli_args *args, const clv_dataset *dataset);
/** ids.c: does a column of a table have another whole number in each row? On stderr. Quiet: nothing. */
void cli_tell_ids(const cli_args *args, const clv_dataset *dataset);
/** folder.c: does a large model begin from nothing on few pictures, because none was named? On stderr.
 *  Quiet: nothing. */
void cli_tell_few_pictures(const cli_args *args, const clv_dataset *dataset);
json_t *cli_table_json(const clv_table_report *report);
/** The model for a table's columns and targets. Prints what does not fit. */
int cli_model_of_rows(const cli_source *source, const clv_dataset *dataset, clv_model *out);

// ---- folder.c: a folder of pictures as dataset ------------------------------------------------------------

/** Does the model take pictures, and do options of folders have one? Prints and returns EXIT_USAGE if not. */
int cli_check_folder(const cli_args *args, const clv_model *model);
/** Of a folder that holds PARENT/train, train on that, and test on PARENT/val (valid, validation, test)
 *  unless --val says otherwise, and tell so. parts: what args then point to, to be freed. */
void cli_find_parts(cli_args *args, char *parts[2]);
/** Read it, in the source's thread. */
clv_status cli_read_folder(cli_source *source);
/** Does a training begin with only some of the weights? Then what it learns may differ. */
bool cli_begins_anew(const cli_args *args);
/** The file whose texts are of what is used: --weights, or a LoRA's that has such. */
static inline const char *cli_telling(const cli_args *args) {
    return args->told_by ? args->told_by : args->weights;
}
/** The weights whose names of classes or labels must be kept to; NULL: they tell none, or a new last layer is
 *  to learn others. */
const clv_weights_info *cli_told_classes(const cli_args *args);
/** The weights, if they tell how samples were normalised: (x - mean) / std of each channel, bytes as 0..1.
 *  NULL: they were not, or it is not known. */
const clv_weights_info *cli_told_scale(const cli_args *args);
/** Say so of a file of samples, if it is known, and what becomes of these. */
void cli_tell_scale(const cli_args *args, const char *path, const clv_array *array);
/** Bytes as such floats, the caller's; told: cli_told_scale, and where it is NULL they become 0 to 1.
 *  `floats` stays empty of what is no bytes. Channels last, or others, are refused. */
int cli_normalise(clv_runtime *runtime, const clv_weights_info *told, const char *what,
                  const clv_array *bytes, clv_array *floats);
/** Size and normalisation of pictures as the weights know them. */
void cli_pictures_of_weights(const cli_args *args, clv_image_folder_config *config);
/** The loss of what is to be learnt, NULL for the model's usual one: several labels each have another. */
const clv_loss *cli_loss(const cli_args *args);
/** The model for a folder's size of pictures, its classes or its labels. */
void cli_model_of_folder(const cli_args *args, const clv_model *model, const clv_dataset *dataset,
                         clv_model *out);
/** How many broken pictures were found so far, and what is wrong with the first. */
int64_t cli_broken(const cli_source *source, const char **first);
/** Tell of those that have not been told of, on stderr. Quiet, or another dataset: nothing. */
void cli_tell_broken(cli_source *source);
/** The same of a dataset, where `told` were told of; how many there are. */
int64_t cli_tell_broken_of(const cli_args *args, const clv_dataset *dataset, int64_t told);

#endif
