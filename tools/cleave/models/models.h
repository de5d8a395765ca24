// SPDX-License-Identifier: Apache-2.0
// Models by name, and what weights tell.
#ifndef CLEAVE_CLI_MODELS_H
#define CLEAVE_CLI_MODELS_H

#include "datasets/datasets.h"

// ---- weights.c: what --weights tells ---------------------------------------------------------------------

/** Read it, take from it what options leave open (--model, --classes, --image-size), and refuse
 *  options that say something else. No weights, a text, weights of other programs: nothing. Prints what
 *  fails; the caller forgets it in any case. */
int cli_tell_weights(cli_args *args);
void cli_forget_weights(cli_args *args);
/** Is what --resume names a file of weights? Prints that. Of a checkpoint what pictures were cut to is taken,
 *  where no option says it. Its header alone is read; what else is wrong with it the training tells. */
int cli_check_resume(cli_args *args);
/** weights_kind.c: are they weights of what the command is given, of a table for a table? Prints what they
 *  are of, and what takes them, if not. */
int cli_check_kind(const cli_args *args);
/** foreign_model.c: are the weights of a model that is neither built in nor registered? */
bool cli_is_foreign(const clv_weights_info *told);
/** Then a model must be said: prints which options do, and returns EXIT_USAGE, if none is. */
int cli_check_foreign(const cli_args *args);
/** What a command that takes such weights needs besides; "" for others. */
const char *cli_foreign_option(const cli_args *args, char *text, size_t bytes);
/** A table could not be read: the sentence. Of weights that do not tell its columns that is said in place of
 *  remedies, which are of the training. */
int cli_fail_csv(const cli_source *source);
/** The sentence of what failed; where weights do not fit a model that was built for samples of another size
 *  than its own, that too. */
int cli_fail_sized(clv_runtime *runtime, const cli_args *args, clv_status status, const clv_model *sized);
/** The same where a model was made: if pictures are too small for it, the option that makes them larger. */
int cli_fail_made(clv_runtime *runtime, const cli_args *args, clv_status status);
/** Which of the weights that a session has of a file is not finite, or where else to look where none is: for
 *  a sentence about results that are not. */
void cli_blame_weights(clv_session *weights, const char *path, char *text, size_t bytes);
/** The same of a safetensors file; false: none is. */
bool cli_blame_file(clv_runtime *runtime, const char *path, char *text, size_t bytes);

// ---- models.c: models by name ----------------------------------------------------------------------------

/** The model for these options (--classes), of its own size. */
clv_model cli_model_for(const cli_args *args, const clv_model *model);
/** The model for these options and samples, [C,H,W] or [H,W] of one channel: arrays may have other sizes than
 *  the model's own. Prints and returns EXIT_FAILED for others, channels last for example. */
int cli_size_model(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                   const clv_shape *sample, clv_model *out);
/** What the weights learnt, as clv_model.input; NULL: they do not tell, are of another model, or
 *  its first layer gets new first values. */
const int64_t *cli_told_input(const cli_args *args, const clv_model *model);
/** Is it a model of clv_gpt_model, whose weights tell its sizes? false of NULL. */
bool cli_is_decoder(const clv_model *model);
/** Is it a model of rows of numbers: mlp, linear, or one with `build` whose input is a row, or which is as
 *  large as its samples? */
bool cli_takes_rows(const clv_model *model);
/** Prints what it takes instead, and returns EXIT_USAGE, if not. */
int cli_check_rows(const clv_model *model);
/** Such a model for rows of so many numbers; prints and returns EXIT_FAILED if its own are others. */
int cli_size_rows(const cli_args *args, const clv_model *model, int64_t columns, clv_model *out);
/** The model of that name; prints and returns NULL if there is none. */
const clv_model *cli_model(const char *name);
enum { CLI_NAMES_BYTES = 512 };
/** The names of all, with commas. */
const char *cli_model_names(char names[CLI_NAMES_BYTES]);

// ---- onnx.c: models of ONNX files -------------------------------------------------------------------------

bool cli_is_onnx(const char *name);
/** If --model, or the model of `plan`, is such a file: read it, and it is a model of that name from then on.
 *  Without --weights its own are used. Prints what fails. */
int cli_load_onnx(cli_args *args);
/** The same of the file that weights were trained with, where --model names no other. */
int cli_load_told_onnx(cli_args *args);
/** Of a training of an ONNX file whose own weights are for other classes: which layers get new first values,
 *  with a note; NULL: nothing. */
const char *cli_onnx_anew(const cli_args *args, int64_t classes);

#endif
