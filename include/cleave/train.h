// SPDX-License-Identifier: Apache-2.0
// Training and using a whole model: weights, evaluation, schedules, and the trainer that ties them together.
// All of it is written with the headers that it includes; where it does not fit, write the loop yourself (cleave.h).
#ifndef CLEAVE_TRAIN_H
#define CLEAVE_TRAIN_H

#include "data.h"
#include "nn.h"
#include "optim.h"
#include "place.h"
#include "plan.h"
#include "ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

struct clv_train_config; // further down

// ---- weights ------------------------------------------------------------------------------------------------------

/** A text of a file of weights: whatever should be known of them. */
typedef struct clv_weights_text {
    const char *key, *text; /**< UTF-8; keys that begin with `cleave.` are Cleave's own */
} clv_weights_text;

/**
 * Write a session's parameters and buffers as a safetensors file, under their names. Atomic: a fault leaves the file
 * that was there. Of a training with ema_decay (clv_train_config): the running averages, under the parameters' names.
 *
 * texts  n of them, for the file's metadata; clv_safetensors_read gives them back (clv_archive_text). NULL: none
 *
 * Errors  CLV_E_IO; CLV_E_DEVICE
 */
CLV_API CLV_MUST_CHECK clv_status clv_weights_save_texts(clv_session *session,
                                                         CLV_COUNT(n) const clv_weights_text *texts, int n,
                                                         const char *path);
/** The same without texts. */
static inline CLV_MUST_CHECK clv_status clv_weights_save(clv_session *session, const char *path) {
    return clv_weights_save_texts(session, NULL, 0, path);
}

/**
 * Read a safetensors file, or the parameters of a checkpoint, into a session's parameters and buffers. The names must be the
 * same on both sides, and the shapes; nothing is changed otherwise. PyTorch's counters `*.num_batches_tracked` are skipped, and so
 * are `module.` and `_orig_mod.` before all names, which DataParallel and torch.compile put there.
 *
 *     clv_weights_load_except(session, "resnet18.safetensors", "fc.*");       // to train a model of other classes
 *
 * session   with its parameters reserved (clv_session_reserve)
 * patterns  over names of tensors and of the modules that they lie in (`*` any text, `?` one character), with commas: these keep their
 *           values, and the file may have them in any shape, or not at all. NULL: none
 *
 * Errors  CLV_E_IO, CLV_E_FORMAT, with the command that mends it for a file of PyTorch's own; CLV_E_NOT_FOUND names missing or
 *         unexpected, or a pattern that matches no tensor of session or file; CLV_E_SHAPE shapes that differ, of another number of
 *         classes for example; CLV_E_DTYPE. The sentence lists all.  CLV_E_VALUE nothing is left to read
 */
CLV_API CLV_MUST_CHECK clv_status clv_weights_load_except(clv_session *session, const char *path,
                                                          CLV_OR_NULL const char *patterns);
/** The same of all tensors. */
static inline CLV_MUST_CHECK clv_status clv_weights_load(clv_session *session, const char *path) {
    return clv_weights_load_except(session, path, NULL);
}

/**
 * The same, then apply a LoRA that was trained on these weights, as clv_lora_save or PEFT's save_pretrained writes it. Its whole
 * tensors (PEFT's modules_to_save) replace those of `path`. Where the session has adapters (clv_train_config.lora), A and B
 * are read into them; else they are merged into the weights.
 *
 * lora  the folder, or its adapter_model.safetensors, whose adapter_config.json lies beside it. NULL: none
 *
 * Errors  as clv_weights_load_except; CLV_E_FORMAT  adapter_config.json;  CLV_E_NOT_FOUND, CLV_E_SHAPE  a LoRA of another model, or of
 *         another rank than the session's: the sentence lists what differs;  CLV_E_UNSUPPORTED  another kind of adapter (DoRA)
 */
CLV_API CLV_MUST_CHECK clv_status clv_weights_load_lora(clv_session *session, const char *path,
                                                        CLV_OR_NULL const char *patterns,
                                                        CLV_OR_NULL const char *lora);
/**
 * Write the adapters of a trainer's session (clv_train_config.lora) into a folder, for clv_weights_load_lora and for
 * peft.PeftModel.from_pretrained: adapter_model.safetensors and adapter_config.json. Whole tensors of what was trained beside them, and
 * of buffers (running statistics), are among them; what the weights tell of themselves, too.
 *
 * texts   n of them, as clv_weights_save_texts. NULL: none
 * folder  made if it is not there
 * base    where the weights that it belongs to are, for adapter_config.json. NULL: it does not say
 *
 * Errors  CLV_E_STATE  the session has no adapters;  CLV_E_IO;  CLV_E_DEVICE
 */
CLV_API CLV_MUST_CHECK clv_status clv_lora_save(clv_session *session,
                                                CLV_COUNT(n) const clv_weights_text *texts, int n,
                                                const char *folder, CLV_OR_NULL const char *base);

// ---- what weights know of themselves --------------------------------------------------------------------------------

/** What a file of weights says of its model and its data. NULL and zero: it does not say. */
typedef struct clv_weights_info {
    const char *model; /**< its name, for clv_model_find */
    int64_t input[CLV_MAX_RANK - 1], target[CLV_MAX_RANK - 1],
        classes; /**< as of clv_model, where it has `build` */
    CLV_COUNT(n_names)
    const char *const *names; /**< n_names: of its classes, or of its labels, in the order of its results */
    int n_names;
    int channels; /**< how many means and stds there are, 1 or 3: samples are (x - mean) / std, where bytes count as 0..1 */
    float mean[3], std[3];
    int64_t resize;      /**< of pictures: the shorter side's size before the middle is cut out */
    bool exif_transpose; /**< pictures were turned as their Exif data say */
    bool checkpoint;     /**< the file is a checkpoint, from which a training can go on */
    const char *loss,
        *precision; /**< of the training: the loss of the first target, and `f32`, `mixed` or `mixed-bf16` */
    const char *table;   /**< clv_dataset_info.table of what was learnt */
    const char *version; /**< of the library that wrote them */
    CLV_RESERVED(8);
} clv_weights_info;

/**
 * Store in a session what its weights belong to: clv_weights_save and clv_gpt_weights_save then write it into their files.
 * A trainer does so with its own session.
 *
 * config  model; train, whose classes, normalisation and columns are kept, or NULL; loss, losses, precision. Other fields are not read
 *
 * Errors  CLV_E_VALUE  no model;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_weights_describe(clv_session *session,
                                                       const struct clv_train_config *config);
/**
 * What a file of weights, or a checkpoint, says of its model and its data. Its tensors are not read. All NULL and zero for files
 * that other programs wrote.
 *
 *     clv_weights_info_read(runtime, "pets.safetensors", &info);
 *     clv_model model = clv_model_for(clv_model_find(info->model), 0, info->input[1], info->input[2], info->classes);
 *
 * out     free it with clv_free; NULL on failure
 *
 * Errors  CLV_E_IO;  CLV_E_FORMAT  no weights, or what the file says of them is damaged;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_weights_info_read(clv_runtime *runtime, const char *path,
                                                        clv_weights_info **out);

// ---- averages of parameters -----------------------------------------------------------------------------------------

/**
 * Running averages (clv_averages_add) in a loop of your own:
 *
 *     clv_averages_add(graph, 0.999);              // each step moves them
 *     clv_averages_begin(session);                 // after weights were loaded, before the first step
 *     ... steps ...
 *     clv_averages_swap(session);                  // in: parameters are the averages
 *     ... test with any plan of the session, clv_weights_save ...
 *     clv_averages_swap(session);                  // and out again: the same bits as before
 *
 * clv_averages_begin  copies parameters into their averages: what these are until the first step that updates something
 * clv_averages_swap   exchanges the values of parameters and averages, through host memory. While they are exchanged no step of the
 *                     session may train (CLV_E_STATE), and weights that are saved are the averages. It waits for running steps
 *
 * Notes   buffers, running statistics of batch_norm for example, are those of the training. A trainer's session is used so by the
 *         trainer itself (clv_train_config.ema_decay); there is nothing to exchange.
 * Errors  CLV_E_STATE  the session keeps no averages; clv_averages_begin while they are exchanged; clv_averages_swap of a trainer's
 *         session;  CLV_E_HOST_MEMORY;  CLV_E_DEVICE  after it some values may be exchanged and others not;  as clv_weights_save
 * Source  torch.optim.swa_utils.AveragedModel
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_averages_begin(clv_session *session);
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_averages_swap(clv_session *session);

// ---- where layers are computed --------------------------------------------------------------------------------------

/**
 * Zero: all on one device. Strings and arrays must outlive what they are given to.
 *
 * `place` alone is model parallel, `replicas` alone data parallel. With both, the layers that `place` names are computed whole, where it
 * says, and all others by the replicas, each its share of the batch:
 *
 *     .replicas = {"gpu:0", "gpu:1"}, .n_replicas = 2, .place = "classifier.*=gpu:0"
 *
 * Values are joined before such a layer and cut after it, along their first dimension, which must count samples. What lies in no layer
 * with parameters (an activation, a loss) is computed where the newest of its data is. A trainer evaluates with the replicated layers
 * on the first replica. With micro_batches each of them is shared out.
 */
typedef struct clv_placement {
    /** layers on devices, as clv_plan_config.place: `conv*=cpu:0,fc*=gpu:0`. Or, without replicas, `auto`, `balanced`, `sequential`:
     *  chosen among `devices`, as clv_place_choose does. Of several ranks `fc*=1:gpu:0` is a device of rank 1, and one without a rank
     *  is rank 0's: then the ranks share out layers, and each sees whole batches */
    const char *place;
    CLV_COUNT(n_devices) const char *const *devices; /**< device specs */
    int n_devices;
    bool explicit_transfers; /**< as clv_plan_config */
    CLV_COUNT(n_replicas)
    const char *const
        *replicas; /**< data parallel: device specs, as clv_data_parallel; a trainer evaluates on the first */
    int n_replicas;
    CLV_COUNT(n_replicas) const double *shares; /**< of the batch, by replica; NULL: equal, or measured: */
    /** share by measured speed: on a few steps of each replica alone first, then, between epochs, by how long each had
     *  work in the steps before. So two trainings need not have the same bits; with given or equal shares they do. */
    bool measure_shares;
    CLV_RESERVED(8);
} clv_placement;

// ---- losses ---------------------------------------------------------------------------------------------------------

/** Sizes of the memory that clv_loss.sum reads: n samples, and the elements of each sample's result and target. */
typedef struct clv_loss_sizes {
    int64_t n, output, target;
    int64_t classes; /**< that the target has; 0: it is numbers */
} clv_loss_sizes;

/** A loss. Cleave brings some (clv_loss_find); one of your own is a struct with its functions, which must outlive its uses. */
typedef struct clv_loss {
    const char *name; /**< written to checkpoints: a training goes on with the same loss */
    /** Append it to the graph: from a model's result [N, ...] and the targets [N, ...] to one f32 element, a mean over the samples */
    clv_tensor *(*build)(clv_tensor *output, clv_tensor *target, const struct clv_loss *loss);
    /** The same on the host, for evaluation: its sum over the samples. NULL: evaluation gives NaN */
    double (*sum)(const float *output, const void *target, const clv_loss_sizes *sizes,
                  const struct clv_loss *loss);
    const void
        *user;       /**< for both; of cross_entropy and bce_with_logits NULL, or a double: label smoothing */
    bool of_classes; /**< targets are classes */
    bool of_sequences; /**< and of a sample fewer than it has results */
    CLV_RESERVED(3);
} clv_loss;

/**
 * The losses that Cleave brings.
 *
 *     cross_entropy    of logits [N, C] or [N, ..., C] and classes [N, ...]: clv_cross_entropy over all rows; or of logits [N, C] and
 *                      probabilities of the classes, [N, C] in f32: the mean of -sum(y * log_softmax(x)). Smoothing: torch's
 *                      CrossEntropyLoss(label_smoothing=s), which takes s of each label and spreads it evenly over all classes
 *     mse              of results and numbers of as many elements: clv_mse_loss
 *     l1, huber        the same: clv_l1_loss, and clv_huber_loss with a delta of 1, which is smooth L1 with a beta of 1
 *     focal            as bce_with_logits: clv_sigmoid_focal_loss with an alpha of 0.25 and a gamma of 2
 *     bce_with_logits  of logits and as many labels in f32, 0 or 1, several for each sample: the mean of -y log(p) - (1-y) log(1-p),
 *                      p = sigmoid(x), as torch's BCEWithLogitsLoss; finite for all logits. Smoothing: y becomes (1-s) y + s/2.
 *                      Evaluation counts a label as right where the logit is above 0 and it is 1, or not and it is 0
 *     nll              of results that are logarithms of probabilities, [N, C] or [N, ..., C], and classes [N, ...]: clv_nll_loss over all rows
 *     kl_div           of the same and probabilities of as many elements: clv_kl_div over the number of samples
 *     ctc              of scores [N, T, C], or logarithms of probabilities, and labels [N, S] from 1 to C - 1, behind the last of a sample
 *                      CLV_LABEL_IGNORED; class 0 is the blank: clv_ctc_loss of the log_softmax, over all T steps. A target is a port of C
 *                      classes and the dimension S. Where samples have fewer steps, the model gives the blank the probability 1 at the
 *                      others, which changes nothing of the loss (of ONNX files: clv_onnx_config.steps)
 *
 * Only training smooths labels. Evaluation measures the loss without it.
 *
 * cross_entropy ignores labels that are CLV_LABEL_IGNORED, as torch's does by ignore_index: its mean is over the others of a batch,
 * and 0 where there are none (PyTorch: NaN). clv_train_loss.class_weights weights the others.
 *
 * clv_loss_get gives NULL past the end, clv_loss_find where there is none of that name, brought or registered. Static.
 */
CLV_API CLV_OR_NULL const clv_loss *clv_loss_get(int index);
CLV_API CLV_OR_NULL const clv_loss *clv_loss_find(const char *name);
/**
 * Register a loss of your own for the whole process, under its name: for clv_loss_find, and so `cleave train arrays FILE --ops FILE
 * --target y=NAME`. The same one again is fine. It must outlive its uses.
 *
 * Errors  CLV_E_VALUE  no name, or no function `build`;  CLV_E_STATE  the name is taken, or 64 are registered
 */
CLV_API CLV_MUST_CHECK clv_status clv_loss_register(clv_runtime *runtime, CLV_KEPT const clv_loss *loss);

/** The loss of one of a model's targets, and its part of the whole. */
typedef struct clv_train_loss {
    const char *target;   /**< its name; must be given */
    const clv_loss *loss; /**< NULL: `cross_entropy` of classes, `mse` of numbers */
    double weight;        /**< 0: 1; never below 0 */
    /** of `cross_entropy`: what a label of each class counts, n_class_weights of them, as torch's CrossEntropyLoss(weight): the loss is
     *  sum(w[label] * loss) / sum(w[label]), in a training over each batch, in an evaluation over all samples. At least 0, not all 0.
     *  NULL: all alike. Not together with label_smoothing or mixup. clv_dataset_class_weights makes some */
    CLV_COUNT(n_class_weights) const float *class_weights;
    int64_t n_class_weights; /**< as many as the target has classes */
    CLV_RESERVED(2);
} clv_train_loss;

// ---- what an evaluation tells besides -------------------------------------------------------------------------------

/** What a metric's targets are. */
typedef enum clv_metric_targets {
    CLV_METRIC_ANY,
    CLV_METRIC_CLASSES, /**< i32; results are a score for each class and target */
    CLV_METRIC_NUMBERS  /**< f32; results are as many numbers */
} clv_metric_targets;

/** A metric. Cleave brings some (clv_metric_find); one of your own is a struct with its functions, which must outlive its uses. */
typedef struct clv_metric {
    const char *name; /**< not "loss" */
    /** Its sum over the samples of a batch, on the host. Each sample counts alike, so of several targets a sample has their mean. Labels
     *  that are CLV_LABEL_IGNORED add nothing to it, and are not among those that the mean is over */
    double (*sum)(const float *output, const void *target, const clv_loss_sizes *sizes,
                  const struct clv_metric *metric);
    /** What is told, from the mean over all samples: a root, for example. NULL: the mean itself */
    double (*finish)(double mean, const struct clv_metric *metric);
    bool larger_is_better;
    clv_metric_targets targets;
    const void *user; /**< for both */
    /** Which of the model's targets it is of: a copy of a metric with this set is of any. Or a name among clv_model.number_names: it is
     *  of that number alone. NULL: the first target */
    const char *target;
    CLV_RESERVED(3);
} clv_metric;

/**
 * The metrics that Cleave brings.
 *
 *     accuracy   of classes: the part of targets whose class has the largest score, the first of equal ones
 *     top5       of classes: the part whose class is among the five largest; 1 where there are no more
 *     mae        of numbers: mean of |result - target|
 *     rmse       of numbers: root of the mean of (result - target)^2 over all samples
 *
 * Each is of a model's first target. To ask for it of another one, copy it and name that: `clv_metric mae = *clv_metric_find("mae");
 * mae.target = "price";`.
 *
 * Scores with a NaN among them count as wrong. clv_metric_get gives NULL past the end, clv_metric_find where there is none of
 * that name. Static.
 */
CLV_API CLV_OR_NULL const clv_metric *clv_metric_get(int index);
CLV_API CLV_OR_NULL const clv_metric *clv_metric_find(const char *name);

enum { CLV_MOST_METRICS = 8 };

/**
 * A confusion matrix: how often targets of each class were predicted as each class. Evaluations count (clv_predictor_config.confusion),
 * or a loop of your own (clv_confusion_add). Without classes each number of a target is a label, predicted where its result is above 0.
 */
typedef struct clv_confusion clv_confusion;

/** Of one class, or one label; or their means. */
typedef struct clv_class_metrics {
    int64_t targets; /**< that are of it */
    int64_t told;    /**< that were predicted as it */
    int64_t right;   /**< both */
    double precision, recall,
        f1; /**< right / told, right / targets, 2 right / (told + targets); 0 where that is 0 / 0 */
    CLV_RESERVED(4);
} clv_class_metrics;

enum { CLV_CONFUSION_CLASSES = 1024 }; /**< with more classes, pairs of them are not counted */

/**
 * Make an empty confusion matrix for one of a model's targets.
 *
 * target  its name; NULL: the first
 *
 * Errors  CLV_E_NOT_FOUND  the model has no such target;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_confusion_create(clv_runtime *runtime, const clv_model *model,
                                                       CLV_OR_NULL const char *target, clv_confusion **out);
/** NULL is fine. */
CLV_API void clv_confusion_destroy(clv_confusion *confusion);
/** Count n samples: results as of clv_predictor_forward, targets as of clv_batch. A target with a NaN among its results is predicted
 *  as no class. */
CLV_API void clv_confusion_add(clv_confusion *confusion, CLV_ARRAY const float *results,
                               CLV_ARRAY const void *targets, int64_t n);
typedef struct clv_confusion_info {
    int64_t classes; /**< or labels */
    bool of_labels;  /**< it is of labels, each by itself */
    /**
     * The sums of targets, told and right, and the plain means of the others over all classes that have targets, or that were
     * predicted.
     *
     * Source  sklearn.metrics.precision_recall_fscore_support(average="macro", zero_division=0)
     */
    clv_class_metrics mean;
    CLV_RESERVED(4);
} clv_confusion_info;
CLV_API clv_confusion_info clv_confusion_info_get(const clv_confusion *confusion);
/** What was counted of class i; all zero past the end. */
CLV_API clv_class_metrics clv_confusion_get(const clv_confusion *confusion, int64_t i);
/** How many targets of class `of` were predicted as class `told`; -1 where that is not counted: of labels, of too many classes. */
CLV_API int64_t clv_confusion_count(const clv_confusion *confusion, int64_t of, int64_t told);

// ---- prediction and evaluation ------------------------------------------------------------------------------------

/** A model planned without gradients: memory for one layer's values at a time, not for all. */
typedef struct clv_predictor clv_predictor;

typedef struct clv_predictor_config {
    clv_device *device;                               /**< NULL: the best device */
    const clv_model *model;                           /**< must be given */
    const clv_loss *loss;                             /**< of evaluations; NULL: as clv_train_config */
    CLV_COUNT(n_losses) const clv_train_loss *losses; /**< n_losses of them, as clv_train_config */
    int n_losses;
    CLV_COUNT(n_metrics) const clv_metric *const *metrics; /**< to measure besides, n_metrics of them */
    int n_metrics;                                         /**< at most CLV_MOST_METRICS */
    int64_t batch;           /**< samples at a time; 0: 256, or fewer whose results are 256 MiB */
    clv_precision precision; /**< as clv_graph_set_precision; results are f32 */
    const char *variants;    /**< as clv_plan_config */
    bool no_fuse;            /**< as clv_plan_config */
    /** layers on devices, or replicas that share each batch: logits are joined on the first. Measured shares are measured once, by
     *  the forward pass of each replica alone */
    clv_placement placement;
    /** whose parameters to use, of a training with ema_decay their averages; NULL: a session of its own */
    clv_session *session;
    const clv_plan *same_session; /**< as clv_plan_config; a training's, if that uses the session */
    clv_confusion *confusion;     /**< evaluations count predicted classes there; NULL: nowhere */
    /** what will be evaluated: inputs that are bytes there are fed as bytes (u8), and the graph normalises them as this dataset
     *  would. Looked at in clv_predictor_create alone. NULL: all inputs are of the model's types */
    const clv_dataset *samples;
    CLV_RESERVED(6);
} clv_predictor_config;

/** Plan the model. With a session of its own its memory is taken too; else the session must be reserved with
 *  its plan (clv_predictor_info_get) before first use. */
CLV_API CLV_MUST_CHECK clv_status clv_predictor_create(clv_runtime *runtime,
                                                       CLV_KEPT const clv_predictor_config *config,
                                                       clv_predictor **out);
CLV_API void clv_predictor_destroy(clv_predictor *predictor);
/** What it uses; all borrowed. */
typedef struct clv_predictor_info {
    clv_session *session;
    clv_plan *plan;
    const clv_place_choice *place;  /**< that was chosen; NULL: none was to be chosen */
    CLV_ARRAY const double *shares; /**< of the replicas, as given or measured; NULL without replicas */
    /** of one sample's result for each of the model's targets: [classes], of classes */
    CLV_COUNT(n_results) const clv_shape *results;
    int n_results;
    CLV_RESERVED(4);
} clv_predictor_info;
CLV_API clv_predictor_info clv_predictor_info_get(const clv_predictor *predictor);

/**
 * Compute a model's results, logits for example.
 *
 * inputs   an array for each of the model's inputs, in their order: [n, input...] of its type, or bytes (clv_predictor_config.samples)
 * results  one for the output of each target, written: [n, ...], of which clv_predictor_info.results tells the rest; NULL: that output is
 *          not wanted
 *
 * Errors   CLV_E_VALUE  the model has other numbers of them, or an input is NULL
 */
CLV_API CLV_MUST_CHECK clv_status clv_predictor_forward_all(
    clv_predictor *predictor, CLV_COUNT(n_inputs) const void *const *inputs, int n_inputs, int64_t n,
    CLV_OUT CLV_COUNT(n_results) float *const *results, int n_results);
/** The same of a model with one input and one output. */
static inline CLV_MUST_CHECK clv_status clv_predictor_forward(clv_predictor *predictor, const void *samples,
                                                              int64_t n, float *results) {
    return clv_predictor_forward_all(predictor, &samples, 1, n, &results, 1);
}
/**
 * The same of arrays, which know their sizes: for what comes from a file or from elsewhere, as nothing is read that an array does
 * not have.
 *
 * inputs   for each of the model's inputs [n, input...], of its type and all of the same n; [height, width] does for [1, height,
 *          width], and for a row any shape of as many numbers
 * results  one for the output of each target, made here: [n, ...] f32, owned by the caller (clv_array_reset); all zero on failure
 *
 * Errors   CLV_E_DTYPE, CLV_E_SHAPE  an array does not fit its input;  CLV_E_VALUE  one is not given;  CLV_E_HOST_MEMORY
 */
CLV_API CLV_MUST_CHECK clv_status clv_predictor_forward_arrays(clv_predictor *predictor,
                                                               CLV_ARRAY const clv_array *const *inputs,
                                                               CLV_OUT CLV_ARRAY clv_array *results);

/** Of one of a model's targets. */
typedef struct clv_target_metrics {
    const char *name;         /**< the model's */
    int64_t targets, correct; /**< as in clv_metrics */
    double accuracy, loss;    /**< the loss without its weight */
    CLV_RESERVED(4);
} clv_target_metrics;

/** A metric as it came out. */
typedef struct clv_metric_value {
    const char *name; /**< as the metric's */
    double value;
    const char *target; /**< the model's name of it; NULL where the metric names none */
    CLV_RESERVED(1);
} clv_metric_value;

typedef struct clv_metrics {
    int64_t count; /**< samples */
    int64_t
        targets; /**< of these samples: as many, or more where a sample has several; without ignored labels */
    int64_t correct; /**< targets that were predicted right; 0 where accuracy is NaN */
    double accuracy; /**< correct / targets; NaN of numbers, unless the loss is bce_with_logits or focal */
    double
        loss; /**< mean of the loss over the samples, in double; without ignored labels, by the weights of classes */
    double seconds;
    /** Of each target, in the model's order. The counts above are sums over the targets that have classes, or over all if none has;
     *  the loss is their weighted sum. */
    clv_target_metrics each[CLV_MAX_PORTS];
    int n_each;
    int n_values; /**< of the metrics that were asked for: */
    clv_metric_value values[CLV_MOST_METRICS];
    int64_t not_finite; /**< samples with a result that is NaN or infinite */
    CLV_RESERVED(7);
} clv_metrics;

/**
 * Measure a model on a dataset.
 *
 * progress  called after each batch; returning false stops with CLV_E_INTERRUPTED. NULL: nobody listens
 *
 * Errors  CLV_E_SHAPE samples do not fit the model
 */
CLV_API CLV_MUST_CHECK clv_status clv_evaluate(clv_predictor *predictor, const clv_dataset *dataset,
                                               CLV_OR_NULL bool (*progress)(void *user, int64_t done,
                                                                            int64_t total),
                                               void *user, CLV_OUT clv_metrics *out);

// ---- schedules ----------------------------------------------------------------------------------------------------

typedef enum clv_schedule_kind {
    CLV_SCHEDULE_CONSTANT,
    CLV_SCHEDULE_STEP,
    CLV_SCHEDULE_COSINE,
    CLV_SCHEDULE_ONE_CYCLE,
    CLV_SCHEDULE_PLATEAU,
    CLV_SCHEDULE_EXPONENTIAL,
    CLV_SCHEDULE_POLYNOMIAL
} clv_schedule_kind;

/** How the learning rate goes. t counts epochs that are over, or steps if per_step. */
typedef struct clv_schedule {
    clv_schedule_kind kind;
    bool per_step;
    bool warmup_epochs; /**< `warmup` counts epochs, not steps */
    /** STEP: between two drops; COSINE, POLYNOMIAL: until min_lr, ONE_CYCLE: the whole cycle; 0: the rest of the training behind the warm-up.
     *  PLATEAU: epochs in a row that were no better before the rate drops, which is PyTorch's patience and one more; 0: 11 */
    int64_t period;
    double
        gamma; /**< STEP, PLATEAU: factor of a drop; 0: 0.1. EXPONENTIAL: of each t; 0: 0.95. POLYNOMIAL: the power; 0: 1 */
    double min_lr; /**< COSINE, PLATEAU, POLYNOMIAL: never below it */
    int64_t
        warmup; /**< the rate rises to `lr` over this many steps first; not of ONE_CYCLE, which rises itself */
    double div_factor;   /**< ONE_CYCLE: it begins with lr / div_factor; 0: 25 */
    double final_factor; /**< ONE_CYCLE: and ends with a final_factor-th of that; 0: 1e4 */
    double turn; /**< ONE_CYCLE: the part of the cycle until `lr` is reached, PyTorch's pct_start; 0: 0.3.
                                PLATEAU: better means by more than this part of the best value, its threshold; 0: 1e-4, below 0: none */
} clv_schedule;

/** Where a PLATEAU stands; begin with all zero. */
typedef struct clv_plateau {
    double lr;     /**< the rate now; 0: as it was given */
    double best;   /**< value so far */
    int64_t worse; /**< epochs in a row that were not better */
    bool seen;     /**< is there a best value? */
    CLV_RESERVED(3);
} clv_plateau;

/**
 * The learning rate for a step.
 *
 *     STEP       lr * gamma ^ floor(t / period)
 *     COSINE     min_lr + (lr - min_lr) * (1 + cos(pi * t / period)) / 2
 *     EXPONENTIAL  lr * gamma ^ t
 *     POLYNOMIAL   min_lr + (lr - min_lr) * (1 - t / period) ^ gamma, a straight line with 1;  min_lr behind the period
 *     ONE_CYCLE  along half a cosine from lr / div_factor up to lr, which is reached at turn * period - 1, and along another down to
 *                lr / div_factor / final_factor at period - 1. Momentum stays as it is (PyTorch: cycle_momentum=False)
 *     PLATEAU    lr: what clv_plateau_see makes of it
 *
 * In a warm-up of W steps, or epochs, the rate of the w-th, from 0, is (w + 1) / W of that. Where the schedule counts what the warm-up
 * counts, it begins behind it: t is less by W. Else both go on side by side, and the rate is their product.
 *
 * lr           the rate at the beginning
 * epoch, step  those that are over, from 0
 *
 * Source  torch.optim.lr_scheduler: StepLR, CosineAnnealingLR, ExponentialLR, PolynomialLR, OneCycleLR; LinearLR(start_factor=1/W, total_iters=W-1) before them by
 *         SequentialLR
 */
CLV_TRAIN_API double clv_schedule_lr(const clv_schedule *schedule, double lr, int64_t epoch, int64_t step);
/**
 * An epoch ended with this value of what is monitored: PLATEAU drops the rate after `period` of them in a row that were no better.
 *
 * lr      as for clv_schedule_lr, which is then called with state->lr
 * larger  is a larger value better?
 *
 * Source  torch.optim.lr_scheduler.ReduceLROnPlateau with threshold_mode='rel', cooldown=0, eps=1e-8
 */
CLV_TRAIN_API void clv_plateau_see(const clv_schedule *schedule, CLV_INOUT clv_plateau *state, double lr,
                                   double value, bool larger);

// ---- trainer ------------------------------------------------------------------------------------------------------

typedef struct clv_trainer clv_trainer;

/** One step that is done. Told in order, a step late: the device never waits for it. */
typedef struct clv_train_step {
    int64_t step;           /**< from 1, over the whole training */
    int64_t steps;          /**< of the whole training */
    int64_t epoch;          /**< from 1 */
    int64_t batch, batches; /**< of the epoch; batch from 1 */
    double loss, lr;
    double images_per_second;
    uint64_t used_bytes, peak_bytes; /**< on the device */
    CLV_RESERVED(4);
} clv_train_step;

/** An epoch that is done, or the rest of one when the training ends within it. */
typedef struct clv_train_epoch {
    int64_t epoch, epochs; /**< from 1 */
    /** mean over the epoch's samples, but those of mixed-precision steps whose loss is not finite */
    double train_loss;
    bool evaluated; /**< is there a test set? then: */
    clv_metrics test;
    bool best;      /**< the best so far (clv_train_config.monitor); false where nobody asks for it */
    double seconds; /**< of training, without evaluation */
    double lr;      /**< of its last step */
    /** of the replicas, when the epoch ended; NULL without replicas */
    CLV_ARRAY const double *shares;
    CLV_RESERVED(4);
} clv_train_epoch;

/** What to do when a device fails in a step. */
typedef enum clv_device_failure {
    CLV_DEVICE_FAILURE_STOP, /**< write the checkpoint, if one was asked for, and stop with CLV_E_DEVICE_LOST */
    CLV_DEVICE_FAILURE_CONTINUE /**< a replica: share its part out among the others, and do the step again with the same samples.
                           Without the first, which keeps the parameters, there is no going on */
} clv_device_failure;

/** What to do when one of several ranks is lost. */
typedef enum clv_rank_failure {
    CLV_RANK_FAILURE_STOP, /**< nothing goes on; the checkpoint can be resumed by any number of ranks */
    /** those that are left can go on from the last checkpoint: clv_trainer_run fails with CLV_E_RANK_LOST, and clv_ranks_go_on makes
     *  fewer ranks of them. Whether that can be is seen before the first step: the engine must let the others live, layers must not be
     *  on devices of several ranks, and a checkpoint must be asked for, where all can read it */
    CLV_RANK_FAILURE_CONTINUE
} clv_rank_failure;

/** What to do when the loss is infinite or not a number. */
typedef enum clv_on_nan {
    /** after three such steps in a row stop with CLV_E_NOT_FINITE, and a sentence that says whose values were the first. Checkpoints
     *  are not written from such parameters; at the end they are refused as well. A step that the loss scaler skips counts only when
     *  parameters are not finite either, or a hundred are skipped in a row */
    CLV_NAN_STOP,
    CLV_NAN_CONTINUE /**< say it once, and go on */
} clv_on_nan;

/**
 * LoRA: linear layers keep their weights W, and learn what small matrices A [rank, in] and B [out, rank] add to them:
 *
 *     y = W x + bias + alpha / rank * B A x        A uniform within 1 / sqrt(in) at first, B zero
 *
 * Beside them only those parameters are trained that `weights_except` names, a head of other classes for example; all others
 * have neither gradients nor optimizer state. Of any model, of an ONNX file, too: a linear layer is a linear or matmul by a parameter
 * of two dimensions.
 *
 * In the session A and B are `fc1.lora_A.weight` and `fc1.lora_B.weight` for `fc1.weight`; checkpoints hold them. Weights that are
 * saved (clv_weights_save, clv_onnx_write) are merged, W + alpha / rank * B A, for whoever knows nothing of it. clv_lora_save
 * writes A and B alone.
 *
 * Notes   a weight that another op reads too (an embedding that is tied to it) changes for that when it is merged.
 * Source  Hu et al. 2021, arXiv:2106.09685; peft.LoraConfig
 */
typedef struct clv_lora {
    /** patterns of the layers, as clv_freeze; the last names of a layer will do: `q_proj,v_proj`. NULL: no LoRA */
    const char *layers;
    int64_t rank; /**< 0: 8 */
    double alpha; /**< 0: as rank */
    const char
        *weights; /**< begin with these A and B, as of clv_weights_load_lora. NULL: with first values */
    CLV_RESERVED(4);
} clv_lora;

/** Zero means the default. Everything that is pointed to must outlive the trainer. */
typedef struct clv_train_config {
    clv_device *device; /**< NULL: the best device, or the first of the placement */
    clv_placement placement;
    const clv_model *model; /**< must be given */
    const clv_loss *
        loss; /**< of a model of one target; NULL: the usual one, `cross_entropy` of classes, `mse` of numbers */
    /** n_losses of them, in any order: the loss is their weighted sum. NULL, and for a target that none names: the loss that
     *  is usual for it, weight 1 */
    CLV_COUNT(n_losses) const clv_train_loss *losses;
    int n_losses;
    const clv_dataset *train; /**< must be given */
    const clv_dataset *test;  /**< NULL: no evaluation */
    int64_t batch;            /**< samples in a step; 0: 64. The last batch of an epoch may be smaller. */
    /** cut each batch into this many parts (clv_micro_batches): less memory for activations, and a pipeline where layers are
     *  placed on several devices. The last batch of an epoch is cut in parts no larger. Of replicas each cuts its share, unless
     *  layers are placed beside them. 0: 1 */
    int64_t micro_batches;
    int64_t epochs; /**< 0: 1 */
    int64_t steps;  /**< > 0: stop after this many steps, whatever the epochs */
    bool no_shuffle;
    uint64_t seed; /**< of first weights, order of samples, dropout */
    clv_optimizer_config optimizer;
    double lr; /**< must be given, > 0 */
    clv_schedule schedule;
    const char *variants;  /**< as clv_plan_config */
    bool no_fuse;          /**< as clv_plan_config */
    const char *recompute; /**< as clv_plan_config */
    /** as clv_graph_set_precision, for training and evaluation. MIXED scales the loss (clv_scaler_add, its defaults);
     *  `gradients` are written unscaled. */
    clv_precision precision;
    const char *weights; /**< begin with these, safetensors */
    /** but not with these of them: patterns as of clv_weights_load_except, `fc.*` for a new head. NULL: all */
    const char *weights_except;
    const char *freeze; /**< patterns of parameters that are not trained, as clv_freeze. NULL: none */
    /** go on from this checkpoint; the data and the other settings must be those it was written with, but epochs and steps. A
     *  schedule whose period is 0 goes on along one that is as long as this training */
    const char *resume;
    const char *checkpoint;   /**< write one here after each epoch, and when interrupted */
    int64_t checkpoint_every; /**< > 0: also every N steps */
    /** write the last step's gradients here, safetensors, under the parameters' names */
    const char *gradients;
    /** metrics to measure on the test set, n_metrics of them, at most CLV_MOST_METRICS */
    CLV_COUNT(n_metrics) const clv_metric *const *metrics;
    int n_metrics;
    /** > 0: end after this many epochs in a row that were no better on the test set than the best one before */
    int64_t patience;
    double min_delta; /**< better means by more than this; at least 0 */
    /** what is compared, for these and for CLV_SCHEDULE_PLATEAU: the name of one of the metrics, `target:name` where it names its target, or `loss`; NULL: loss */
    const char *monitor;
    /** write the weights of the best epoch so far here, as clv_weights_save does */
    const char *best;
    /** writes it instead of clv_weights_save; NULL: clv_weights_save */
    clv_status (*save_best)(void *user, clv_session *session, const char *path);
    /**
     * 0 < ema_decay < 1: keep a running average of each parameter that is trained, as `<parameter>.average` in the session.
     *
     *     average = parameter after the first step, then  average = ema_decay * average + (1 - ema_decay) * parameter
     *
     * The test set, `best`, clv_weights_save and predictors of the session use the averages; buffers (running statistics) are those
     * of the training. A step that the loss scaler skips moves none.
     * Source  torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn
     */
    double ema_decay;
    CLV_COUNT(1)
    const volatile int
        *interrupt; /**< becomes nonzero: finish the step, write the checkpoint, CLV_E_INTERRUPTED */
    clv_device_failure on_device_failure;
    clv_on_nan on_nan;
    /** Callbacks; NULL: nobody listens. Returning false stops as an interruption does. */
    void *user;
    bool (*on_step)(void *user, const clv_train_step *step);
    bool (*on_epoch)(void *user, const clv_train_epoch *epoch);
    bool (*on_evaluate)(void *user, int64_t done, int64_t total);
    double label_smoothing; /**< of cross_entropy and bce_with_logits, 0 to below 1; evaluation has none */
    /** > 0: mix each sample, and its target, with the one before it in the batch: lambda of it and 1 - lambda of the other, where lambda is
     *  drawn for each batch from Beta(mixup, mixup), as clv_loader_config says. Classes become probabilities, [N, classes] in f32,
     *  for the loss. Evaluation mixes nothing */
    double mixup;
    CLV_COUNT(1)
    const double *
        dropout; /**< of all layers that drop values, 0 for none (clv_graph_set_dropout); NULL: the model's own */
    /** of a step that is planned without `train`, where this is not known: the model's inputs of three dimensions are pictures, fed as bytes
     *  and normalised by the graph */
    bool bytes;
    clv_lora lora;
    /** several processes train, each of them so: each computes its part of every batch, to the bits of as many replicas in one process
     *  (clv_ranks_create). All other settings, and the data, are the same on all; `device` and what callbacks do may differ. Rank 0 tests,
     *  and writes `checkpoint`, `best` and `gradients`; every rank reads `weights` and `resume`. NULL: this process alone */
    struct clv_ranks *ranks;
    /** of several ranks: gradients are sent as bf16, half the bytes; the sums are f32, rounded to bf16 as well. Each rank then updates
     *  all parameters. PyTorch's hook of this name */
    bool bf16_compress;
    /** of several ranks: batch normalisation takes the statistics of the whole batch, and not of this rank's part; as
     *  torch.nn.SyncBatchNorm */
    bool sync_batch_norm;
    clv_rank_failure on_rank_failure;
    /** of each batch, for each of several ranks, a sum of 1. NULL: equal, or with placement.measure_shares and without replicas by
     *  measured speed */
    CLV_ARRAY const double *rank_shares;
    CLV_RESERVED(3);
} clv_train_config;

#ifndef CLEAVE_STABLE_ONLY // experimental
/** What is done with a batch. */
typedef enum clv_pass {
    CLV_PASS_TRAIN,  /**< a step of a training: forward, backward, updates */
    CLV_PASS_PREDICT /**< a forward pass alone, as a predictor's */
} clv_pass;

/**
 * The graph of such a pass. To plan it in other ways than a trainer or a predictor does, or to look at. Needs the model and what else
 * decides about the graph (placement.replicas, micro_batches, precision, optimizer, gradients); no data set. Takes no device memory.
 *
 *     TRAIN    model, loss, gradients, updates
 *     PREDICT  the model, over the replicas if there are any: input `x`, output `logits`, in f32, also where they are other numbers. Of a
 *              model with `build_all` inputs and outputs have the names of its inputs and targets
 *
 * batch  samples of it, instead of config->batch
 * out    the caller destroys it, after a failure too
 *
 * Errors  the graph's first mistake;  CLV_E_UNSUPPORTED  TRAIN, of a library built for inference alone
 */
CLV_API CLV_MUST_CHECK clv_status clv_pass_graph(clv_runtime *runtime,
                                                 CLV_KEPT const clv_train_config *config, clv_pass pass,
                                                 int64_t batch, clv_graph **out);
#endif // CLEAVE_STABLE_ONLY

/**
 * Build and plan everything a training needs: steps, the smaller last batch, evaluation. Takes no device memory, but where
 * speed is measured first (clv_placement: measure_shares, `place` auto): that is given back before this returns.
 *
 * Errors  CLV_E_VALUE; CLV_E_SHAPE samples do not fit the model; as clv_plan_create
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_trainer_create(clv_runtime *runtime,
                                                           CLV_KEPT const clv_train_config *config,
                                                           clv_trainer **out);
CLV_TRAIN_API void clv_trainer_destroy(clv_trainer *trainer);

/** A device that failed. The training went on without it. */
typedef struct clv_lost_device {
    clv_device *device;
    int64_t step;       /**< that it failed in; the others did it again */
    const char *reason; /**< what its driver said; borrowed, until the trainer goes */
    CLV_RESERVED(4);
} clv_lost_device;

/** What it uses; all borrowed. */
typedef struct clv_trainer_info {
    clv_session *session; /**< to read or save its parameters. Holds nothing before clv_trainer_run */
    const clv_plan
        *plan; /**< of its steps (the smaller last one's, if no other is done), until the shares change */
    const clv_place_choice *place; /**< that was chosen; NULL: none was to be chosen */
    CLV_ARRAY const double *
        shares; /**< of the replicas, as given or measured so far, 0 for one that is lost; NULL without replicas */
    CLV_COUNT(n_devices)
    clv_device *const
        *devices; /**< n_devices, lost ones too; the first is the one of clv_train_config.device */
    int n_devices, n_lost;
    CLV_COUNT(n_lost) const clv_lost_device *lost; /**< n_lost, in the order they were lost */
    CLV_RESERVED(4);
} clv_trainer_info;
CLV_TRAIN_API clv_trainer_info clv_trainer_info_get(const clv_trainer *trainer);

/** What a training does with a device. */
typedef struct clv_trainer_device_info {
    /** what it will hold there at most: exact. When shares change between epochs (measure_shares), for those so far: arenas only grow */
    clv_plan_memory memory;
    /** the part of the steps' time in which the device had work, 0 to 1; the rest it waited for others or for the host. As measured,
     *  without the first step and the one after each evaluation; below 0: not known */
    double busy;
    double predicted_busy; /**< the same as it was planned for a whole batch (clv_plan_device_info) */
    CLV_RESERVED(4);
} clv_trainer_device_info;
/** device NULL: the first. */
CLV_TRAIN_API clv_trainer_device_info clv_trainer_device_info_get(const clv_trainer *trainer,
                                                                  CLV_OR_NULL clv_device *device);

#ifndef CLEAVE_STABLE_ONLY // experimental
/** The shares that such a pass of these replicas begins with, as far as planning tells: those given, else equal ones; with
 *  placement.measure_shares moved as far as budgets ask for. n_replicas of them. Takes no device memory. */
CLV_API CLV_MUST_CHECK clv_status
clv_pass_shares(clv_runtime *runtime, const clv_train_config *config, clv_pass pass,
                CLV_OUT CLV_COUNT(config->placement.n_replicas) double *shares);

/** Changes that each make a pass fit that does not. Each was planned. */
typedef struct clv_train_advice {
    int64_t largest_batch;      /**< that fits with all else as it is, up to the batch asked for; 0: none */
    int64_t largest_recomputed; /**< the same with `recompute` auto; 0: none, or it is asked for already */
    char place[768]; /**< for clv_placement.place: the last layers on other devices; "": none found */
    char device[64]; /**< another device, on which it fits as it is; "": none found */
    /** of parameters; of parameters, gradients and optimizer state: no batch fits in less. 0 with several devices */
    uint64_t parameter_bytes, lasting_bytes;
    /** all of it as a sentence with fields of the config, `.batch = 32, or .recompute = auto`; "": nothing was found */
    char text[1024];
    CLV_RESERVED(4);
} clv_train_advice;

/**
 * Plan a pass in other ways, after a plan of it was refused. Needs the model, a batch and what else decides about memory; no data set.
 * Takes no device memory, and some tens of plans' time. The runtime's sentence stays the plan's refusal; where the advice knows that no
 * batch fits, it does not speak of a smaller batch any more, which the plan itself cannot know.
 *
 * Errors  CLV_E_HOST_MEMORY nothing is known; CLV_E_NOT_FOUND there is no device;  CLV_E_UNSUPPORTED  as clv_pass_graph
 */
CLV_API CLV_MUST_CHECK clv_status clv_pass_advise(clv_runtime *runtime, const clv_train_config *config,
                                                  clv_pass pass, CLV_OUT clv_train_advice *out);
#endif // CLEAVE_STABLE_ONLY

/**
 * Train. Resuming gives the same bits as not having been interrupted.
 *
 * Errors  CLV_E_INTERRUPTED after the step was finished and the checkpoint, if one was asked for, written;
 *         CLV_E_NOT_FINITE the loss, or a parameter, is not finite any more (clv_on_nan);
 *         CLV_E_RANK_LOST another rank ended, or does not answer: which, and after which step;
 *         CLV_E_DEVICE_LOST a device failed in a step: which, and where the parameters are. Those of the session are as they
 *         were after the last step that is done, unless the device kept some of them;
 *         memory, files, devices: as the calls behind it
 */
CLV_TRAIN_API CLV_MUST_CHECK clv_status clv_trainer_run(clv_trainer *trainer);

/** Why a training ended. */
typedef enum clv_train_end {
    CLV_END_NOT,     /**< it has not: not begun, interrupted, or failed */
    CLV_END_STEPS,   /**< all steps are done */
    CLV_END_PATIENCE /**< no epoch was better for as many as `patience` says */
} clv_train_end;

typedef struct clv_train_result {
    int64_t steps, epochs; /**< done, those before a resume included */
    double train_loss;     /**< of the last epoch */
    bool evaluated;
    clv_metrics test;
    /** of training, without the first step of each size of batch, which compiles kernels, and without evaluation; 0: nothing was timed */
    double images_per_second;
    double step_ms;        /**< median of the same steps */
    double loss_scale;     /**< of mixed precision in f16, now; 0 without */
    int64_t skipped_steps; /**< whose gradients overflowed: they are among `steps` and updated nothing */
    clv_train_end end;
    int64_t best_epoch; /**< from 1, with `patience` or `best`; 0: none is known */
    double best_value;  /**< of what is monitored, in that epoch; NaN: none is known */
    int64_t
        tested_step; /**< the step after which `test` was measured; the last one, unless it was interrupted */
    CLV_RESERVED(7);
} clv_train_result;

/** What came out of it so far. */
CLV_TRAIN_API clv_train_result clv_trainer_result(const clv_trainer *trainer);

#ifdef __cplusplus
}
#endif
#endif
