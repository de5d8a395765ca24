// SPDX-License-Identifier: Apache-2.0
// How a training is done, and what came of it, in words.
#ifndef CLEAVE_CLI_TRAINING_H
#define CLEAVE_CLI_TRAINING_H

#include "datasets/datasets.h"

// ---- summary.c: a training in words -----------------------------------------------------------------------

/** What is about to be trained, and how, on stderr. Quiet: nothing. */
void cli_tell_training(const cli_args *args, const clv_train_config *config, const clv_trainer *trainer);
/** What came of it: accuracy, time, where the weights are. */
void cli_tell_result(FILE *out, const cli_source *source, const clv_train_result *result, bool interrupted);

// ---- ranks.c: several processes that train together -------------------------------------------------------

typedef struct cli_ranks {
    struct clv_ranks *ranks; // NULL: this process alone
    const cli_args *given;
    cli_args args;      // of this rank, which may write nothing
    char log[4096];     // its own: FILE.rank1
    int output, errors; // where its stdout and stderr were; -1: they are there
    bool begun;         // the trainer runs: it tells the others what fails
    bool lost;          // and failed, since another rank is lost
} cli_ranks;
/** Join them, if --ranks asks for it: all but the first are silent from then on, and write no files. Prints
 *  what fails. */
int cli_ranks_join(cli_session *session, cli_ranks *out);
/** Another is lost, and --on-rank-failure continue: those that are left are joined, each with its new part,
 *  to train again. False: it was not so, or cannot be, which is printed; code: what it ends with. */
bool cli_ranks_go_on(cli_session *session, cli_ranks *ranks, int *code);
/** Leave them. What failed (cli_hold_failures) is told here: once, by the rank whose it is, or by the
 *  first. */
void cli_ranks_end(cli_ranks *ranks);
/** The process ends with --ranks, and may not have joined them: what failed is told once. Returns the
 *  code. */
int cli_ranks_refuse(int code);

// ---- epochs.c: a training's epochs as lines ---------------------------------------------------------------

/** What is kept of them; zero: none was seen. */
typedef struct cli_epochs {
    int64_t seen, best_epoch; // best_epoch 0: none was tested
    double best, last;        // of --monitor, or the loss of the test set
    bool larger;              // is better
    char untold[1024];        // the last one's line; "": it is written
    bool best_untold;         // the best one's line was left out
} cli_epochs;
/** One has ended: its line on stderr, where that is no terminal only some of many. Quiet: nothing. */
void cli_epochs_see(cli_epochs *epochs, const cli_args *args, const clv_placement *placement,
                    const clv_train_epoch *epoch);
/** None follows: write the last line, if it was left out. */
void cli_epochs_end(cli_epochs *epochs);
/** One sentence, if an earlier one was better by more than a twentieth and --save-best did not keep it. */
void cli_epochs_say_worse(FILE *out, const cli_epochs *epochs, const cli_source *source);

// ---- baseline_told.c: is it better than always the same? --------------------------------------------------

/** What always the commonest class, or the mean, would get, beside what a model got. */
typedef struct cli_least {
    char target[64];       // the first that is no better, where there are several; else ""
    clv_baseline baseline; // its loss in the units in which the model's is told
    const char *units;     // behind that loss
    double accuracy, loss; // the model's; NaN: not told
    bool known, no_better; // by accuracy of classes, by loss of numbers
    bool are_large;        // numbers of arrays, far from what a model begins with
    bool are_tokens;       // classes are the tokens of a text
    char sorted[600];      // what is tested on differs from what was trained on; "": it does not
} cli_least;
/** Of an evaluation on `tested`; NULL: of `trained` and the loss of the training. */
cli_least cli_least_of(clv_runtime *runtime, const cli_source *source, const clv_dataset *tested,
                       const clv_metrics *metrics, const clv_dataset *trained, double train_loss,
                       const clv_loss *loss);
/** sorted.c: a sentence, if what is tested on differs in a target from what was trained on (NULL: not known)
 *  in a way that no training mends. */
void cli_tell_sorted(const cli_args *args, const clv_dataset *tested, const clv_dataset *trained, int target,
                     char *out, size_t bytes);
/** One sentence, if it is no better, or was tested on something else than it learnt. */
void cli_least_say(FILE *out, const cli_least *least);
json_t *cli_least_json(const cli_least *least);

// ---- baseline_metrics.c: the same in the metrics of a model -----------------------------------------------

/** What always the commonest class, or the mean, gets in what `metrics` has: accuracy, mae, rmse. Nothing
 *  where it has none of them. */
void cli_baseline_say(FILE *out, clv_runtime *runtime, const clv_dataset *tested, const clv_metrics *metrics);

// ---- recipes.c: how a model is trained unless the options say otherwise -----------------------------------

/** Is there such an optimizer? Prints and returns EXIT_USAGE if not. */
int cli_check_optimizer(const cli_args *args);
/** Do the options for optimizer and schedule belong to those that are used? Prints and returns EXIT_USAGE if
 *  not. */
int cli_check_recipe(const cli_args *args, const clv_model *model);
/** What options set; and optimizer, rate, schedule, batch and, where samples are known, epochs, of options
 *  and recipe. */
void cli_recipe(const cli_args *args, const clv_model *model, clv_train_config *config);
/** The optimizer, as --optimizer names it. */
const char *cli_optimizer_name(const clv_optimizer_config *config);

// ---- param_groups.c: --param-group and --weight-decay-skip ------------------------------------------------

enum { CLI_GROUP_BYTES = 512 };
typedef struct cli_groups {
    clv_param_group group[CLI_MAX_TEXTS];
    char text[CLI_MAX_TEXTS][CLI_GROUP_BYTES]; // that the groups' patterns lie in
    int n;
} cli_groups;
/** Prints what is wrong and returns EXIT_USAGE. */
int cli_read_groups(const cli_args *args, cli_groups *out);
/** Do names of --freeze and of groups fit the model? Prints and returns EXIT_USAGE if not. */
int cli_check_groups(clv_runtime *runtime, const clv_model *model, const cli_groups *groups);

// ---- class_weights.c: --class-weights, --ignore-index -----------------------------------------------------

/** The losses of a training with weights of classes. */
typedef struct cli_class_weights_of {
    clv_train_loss loss[CLV_MAX_PORTS];
    float *own[CLV_MAX_PORTS]; // n of them, to be freed
    int n;
} cli_class_weights_of;

/** Are they what they can be? Prints and returns EXIT_USAGE if not. */
int cli_check_labels(const cli_args *args);
/** The label that counts nothing; false: none is named. */
bool cli_ignored_label(const cli_args *args, int32_t *out);
/** Give a training, which has its model and its samples, the weights of its classes; without the option
 *  nothing changes. Prints what is wrong. */
int cli_class_weights(clv_runtime *runtime, const cli_args *args, clv_train_config *config,
                      cli_class_weights_of *out);
void cli_class_weights_end(cli_class_weights_of *of);

// ---- metrics.c: --metric, --monitor -----------------------------------------------------------------------

typedef struct cli_metrics {
    const clv_metric *metric[CLV_MOST_METRICS]; // point to `own`
    clv_metric own[CLV_MOST_METRICS];
    char target[CLV_MOST_METRICS][64]; // of `target:metric`
    int n;
} cli_metrics;
enum { CLI_METRIC_BYTES = 96 }; // of `target:metric`
/** `metric`, or `target:metric` where it names its target. */
const char *cli_metric_name(const clv_metric_value *value, char name[CLI_METRIC_BYTES]);
/** Those of --metric, and the one of --monitor. Prints what is wrong and returns EXIT_USAGE. */
int cli_read_metrics(const cli_args *args, cli_metrics *out);
/** For a model: mae and rmse of each target of a table or of arrays that is numbers, unless --metric says it.
 *  A metric of several numbers or targets that names none becomes one of each: their units differ. Prints
 *  what is wrong and returns EXIT_USAGE. */
int cli_model_metrics(const cli_args *args, const clv_model *model, cli_metrics *out);
/** Is what goes with --patience and --save-best given without them? Prints and returns EXIT_USAGE. */
int cli_check_stopping(const cli_args *args);
/** Are there data to test on, where an option needs some? Prints and returns EXIT_USAGE if not. */
int cli_check_tested(const cli_args *args, bool tested);
/** How many tokens a model of texts wavers between: e to the power of its loss, which is the mean cross
 *  entropy of a token. NaN of other data. */
double cli_perplexity(const cli_args *args, const clv_metrics *metrics);
/** per_class.c: what was counted of classes, with their names, as JSON (null for NULL) and as tables. */
json_t *cli_classes_json(const cli_source *source, const clv_confusion *confusion);
void cli_classes_print(FILE *out, const cli_source *source, const clv_confusion *confusion);
/** What an evaluation told: as an object by name; in an epoch's line; a line each. */
json_t *cli_metrics_json(const clv_metrics *metrics);
void cli_metrics_line(screen_line *line, const clv_metrics *metrics);
void cli_metrics_say(FILE *out, const clv_metrics *metrics);

#endif
