// SPDX-License-Identifier: Apache-2.0
// The losses that Cleave brings: in the graph for training, and on the host, in double, for evaluation.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/registry.h"
#include "cleave/ops.h"
#include "data/dataset.h"
#include "device/device.h"
#include "graph/op.h"
#include "infer/losses.h"
#include "infer/names.h"
#include "tensor/dtype.h"

/** Label smoothing, of the losses that know of it. */
static double smoothing_of(const clv_loss *loss) {
    return loss->user ? *(const double *)loss->user : 0;
}

// ---- cross entropy ----------------------------------------------------------------------------------------

/** Of rows of logits, with probabilities instead of classes. */
static clv_tensor *soft_cross_entropy(clv_tensor *logits, clv_tensor *log_p, clv_tensor *target) {
    const clv_shape shape = clv_tensor_shape(logits), wanted = clv_tensor_shape(target);
    char a[128], b[128];
    if (shape.rank != 2 || !clv_shape_equal(&shape, &wanted))
        return clv__graph_fail(clv_tensor_graph(logits), CLV_E_SHAPE,
                               "cross_entropy: probabilities %s do not fit logits %s; both must be [N,C]",
                               clv_shape_text(&wanted, a, sizeof a), clv_shape_text(&shape, b, sizeof b));
    return clv_mul_scalar(clv_mean(clv_mul(log_p, target), NULL, 0, false), -(float)shape.dims[1]);
}

/** Logits [N, ..., C] of labels [N, ...]: one row for each label. Or [N, C] of probabilities [N, C].
 *  weight: what each label counts; NULL: all alike. */
static clv_tensor *weighted_cross_entropy(clv_tensor *output, clv_tensor *target, clv_tensor *weight,
                                          double smoothing) {
    if (!output || !target) return clv_cross_entropy(output, target);
    const bool soft = clv__is_float(clv_tensor_dtype(target));
    const clv_shape shape = clv_tensor_shape(output);
    if (shape.rank > 2 && !soft) {
        const int64_t rows = clv_tensor_numel(target);
        target = clv_reshape(target, CLV_SHAPE(rows));
        output = clv_reshape(output, CLV_SHAPE(rows, shape.dims[shape.rank - 1]));
        if (weight) weight = clv_reshape(weight, CLV_SHAPE(rows));
    }
    if (!soft && !(smoothing > 0)) return clv_cross_entropy_weighted(output, target, weight);
    clv_tensor *log_p = clv_log_softmax(output, -1);
    clv_tensor *right =
        soft ? soft_cross_entropy(output, log_p, target) : clv_cross_entropy_weighted(output, target, weight);
    if (!(smoothing > 0)) return right;
    // The smoothed target is (1 - s) of it and s / C of each class, so the loss is a mean of two.
    if (weight) log_p = clv_mul(log_p, clv_reshape(weight, CLV_SHAPE(clv_tensor_numel(weight), 1)));
    clv_tensor *all = clv_mean(log_p, NULL, 0, false);
    return clv_sub(clv_mul_scalar(right, (float)(1 - smoothing)), clv_mul_scalar(all, (float)smoothing));
}

static clv_tensor *cross_entropy(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return weighted_cross_entropy(output, target, NULL, smoothing_of(loss));
}

/** log(sum(exp)) of a row. */
static double log_sum_exp(const float *row, int64_t n) {
    double max = row[0], total = 0;
    for (int64_t c = 1; c < n; c++) // not fmax: gcc 12 for aarch64 breaks off over it
        if (row[c] > max) max = row[c];
    for (int64_t c = 0; c < n; c++) total += exp(row[c] - max);
    return log(total) + max;
}

static double soft_cross_entropy_sum(const float *output, const float *target, const clv_loss_sizes *sizes) {
    double sum = 0;
    for (int64_t i = 0; i < sizes->n; i++, output += sizes->output, target += sizes->output) {
        const double all = log_sum_exp(output, sizes->output);
        for (int64_t c = 0; c < sizes->output; c++) sum += (double)target[c] * (all - (double)output[c]);
    }
    return sum;
}

/** Labels that count: the sum of their losses, and of what they count. */
static double label_sum(const float *output, const int32_t *labels, const clv_loss_sizes *sizes,
                        const float *class_weights, double *counted) {
    const int64_t rows = sizes->n * sizes->target, classes = sizes->output / sizes->target;
    double sum = 0, all = 0;
    for (int64_t i = 0; i < rows; i++, output += classes) {
        if (labels[i] == CLV_LABEL_IGNORED) continue;
        const double weight = class_weights ? (double)class_weights[labels[i]] : 1;
        all += weight;
        if (weight > 0) sum += weight * (log_sum_exp(output, classes) - (double)output[labels[i]]);
    }
    *counted += all / (double)sizes->target;
    return sum / (double)sizes->target;
}

static double cross_entropy_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                                const clv_loss *loss) {
    double counted = 0;
    (void)loss;
    if (sizes->target == sizes->output) return soft_cross_entropy_sum(output, target, sizes);
    return label_sum(output, target, sizes, NULL, &counted);
}

// ---- of logarithms of probabilities -----------------------------------------------------------------------

/** As cross_entropy with classes, of results [N, ..., C] that are logarithms already. */
static clv_tensor *nll(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    if (!output || !target) return NULL;
    const clv_shape shape = clv_tensor_shape(output);
    const int64_t rows = clv_tensor_numel(target);
    if (clv__is_float(clv_tensor_dtype(target)) || shape.rank < 2)
        return clv__graph_fail(clv_tensor_graph(output), CLV_E_DTYPE,
                               "nll: targets must be classes, and results [N, ..., C]");
    return clv_nll_loss(clv_reshape(output, CLV_SHAPE(rows, shape.dims[shape.rank - 1])),
                        clv_reshape(target, CLV_SHAPE(rows)), NULL, CLV_REDUCTION_MEAN);
}

static double nll_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                      const clv_loss *loss) {
    (void)loss;
    const int32_t *labels = target;
    const int64_t rows = sizes->n * sizes->target, classes = sizes->output / sizes->target;
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        sum -= labels[i] >= 0 && labels[i] < classes ? (double)output[i * classes + labels[i]] : NAN;
    return sum / (double)sizes->target;
}

/** Of targets that are probabilities, over the samples: PyTorch's batchmean. */
static clv_tensor *kl_div(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    return clv_kl_div(output, target, false, CLV_REDUCTION_BATCHMEAN);
}

static double kl_div_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                         const clv_loss *loss) {
    (void)loss;
    const float *p = target;
    double sum = 0;
    for (int64_t i = 0; i < sizes->n * sizes->target; i++)
        if (p[i] > 0) sum += (double)p[i] * (log((double)p[i]) - (double)output[i]);
    return sum;
}

// ---- mean squared error -----------------------------------------------------------------------------------

/** Of results [N, ...] as they are, or [N, 1] of targets [N]. */
static clv_tensor *as_target(clv_tensor *output, clv_tensor *target) {
    const bool alike = clv_tensor_numel(output) == clv_tensor_numel(target);
    return alike ? clv_reshape(output, clv_tensor_shape(target)) : output;
}

/** A loss of each number alone, by `id_of`: its sum. */
#define SUM_OF_EACH(id)                                                                                      \
    static double id##_sum(const float *output, const void *target, const clv_loss_sizes *sizes,             \
                           const clv_loss *loss) {                                                           \
        const float *wanted = target;                                                                        \
        double sum = 0;                                                                                      \
        (void)loss;                                                                                          \
        for (int64_t i = 0; i < sizes->n * sizes->target; i++)                                               \
            sum += id##_of((double)output[i], (double)wanted[i]);                                            \
        return sum / (double)sizes->target;                                                                  \
    }

static clv_tensor *mse(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    return clv_mse_loss(as_target(output, target), target);
}

static double mse_of(double x, double t) {
    return (x - t) * (x - t);
}
SUM_OF_EACH(mse)

// ---- other losses of numbers --------------------------------------------------------------------------------

static clv_tensor *l1(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    return clv_l1_loss(as_target(output, target), target, CLV_REDUCTION_MEAN);
}

static double l1_of(double x, double t) {
    return fabs(x - t);
}
SUM_OF_EACH(l1)

/** With PyTorch's delta of 1, which makes it smooth_l1 with PyTorch's beta, too. */
static clv_tensor *huber(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    return clv_huber_loss(as_target(output, target), target, 1, CLV_REDUCTION_MEAN);
}

static double huber_of(double x, double t) {
    const double off = fabs(x - t);
    return off <= 1 ? off * off / 2 : off - 0.5;
}
SUM_OF_EACH(huber)

/** Several labels for each sample, 0 or 1, with torchvision's alpha and gamma. */
static const float FOCAL_ALPHA = 0.25F, FOCAL_GAMMA = 2;

static clv_tensor *focal(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    return clv_sigmoid_focal_loss(as_target(output, target), target, FOCAL_ALPHA, FOCAL_GAMMA,
                                  CLV_REDUCTION_MEAN);
}

static double focal_of(double x, double t) {
    const double alpha = (double)FOCAL_ALPHA, p = 1 / (1 + exp(-x)), q = 1 / (1 + exp(x));
    const double entropy = (1 - t) * x + (x < 0 ? -x : 0) + log1p(exp(-fabs(x)));
    return (alpha * t + (1 - alpha) * (1 - t)) * pow(p * (1 - t) + q * t, (double)FOCAL_GAMMA) * entropy;
}
SUM_OF_EACH(focal)

// ---- binary cross entropy ---------------------------------------------------------------------------------

/** Several labels for each sample, 0 or 1: the mean of -y log(p) - (1-y) log(1-p), p = sigmoid(x). Since
 *  log(1-p) is log(p) - x, that is the mean of x - x y - log(p), which no large x makes infinite. */
static clv_tensor *bce_with_logits(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    const double smoothing = smoothing_of(loss);
    if (!output || !target) return NULL;
    const clv_shape wanted = clv_tensor_shape(target), shape = clv_tensor_shape(output);
    char a[128], b[128];
    if (!clv__is_float(clv_tensor_dtype(target)) || clv_shape_numel(&shape) != clv_shape_numel(&wanted))
        return clv__graph_fail(
            clv_tensor_graph(output), CLV_E_SHAPE,
            "bce_with_logits: targets %s of %s do not fit logits %s; a number, 0 or 1, is wanted for each",
            clv_shape_text(&wanted, a, sizeof a), clv_dtype_name(clv_tensor_dtype(target)),
            clv_shape_text(&shape, b, sizeof b));
    clv_tensor *x = clv_reshape(clv_cast(output, CLV_DTYPE_F32), wanted);
    if (smoothing > 0)
        target = clv_add_scalar(clv_mul_scalar(target, (float)(1 - smoothing)), (float)(smoothing / 2));
    return clv_mean(clv_sub(clv_sub(x, clv_mul(x, target)), clv_logsigmoid(x)), NULL, 0, false);
}

static double bce_with_logits_of(double x, double t) {
    return (x > 0 ? x : 0) - x * t + log1p(exp(x > 0 ? -x : x));
}
SUM_OF_EACH(bce_with_logits)

/** How many labels are told right: above 0 where it is 1, not where it is 0. */
static int64_t count_labels(const float *output, const float *labels, int64_t n) {
    int64_t right = 0;
    for (int64_t i = 0; i < n; i++) right += !isnan(output[i]) && (output[i] > 0) == (labels[i] > 0.5f);
    return right;
}

// ---- connectionist temporal classification -----------------------------------------------------------------

/** Scores [N,T,C] of labels [N,S], of which as many count as are not ignored; class 0 is the blank. */
static clv_tensor *ctc(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    if (!output || !target) return NULL;
    clv_graph *graph = clv_tensor_graph(output);
    const clv_shape shape = clv_tensor_shape(output), labels = clv_tensor_shape(target);
    const int last = 1;
    char a[128], b[128];
    if (shape.rank != 3 || labels.rank != 2 || clv__is_float(clv_tensor_dtype(target)))
        return clv__graph_fail(
            graph, CLV_E_SHAPE,
            "ctc: targets %s of %s do not fit results %s; results must be [N,T,C], a score "
            "for each class at each step, and targets [N,S], labels",
            clv_shape_text(&labels, b, sizeof b), clv_dtype_name(clv_tensor_dtype(target)),
            clv_shape_text(&shape, a, sizeof a));
    clv_tensor *steps = clv_full(graph, CLV_DTYPE_I32, CLV_SHAPE(shape.dims[0]), (float)shape.dims[1]);
    clv_tensor *counts = clv_ge(target, clv_full(graph, CLV_DTYPE_I32, (clv_shape){0}, 0));
    counts = clv_cast(clv_sum(clv_cast(counts, CLV_DTYPE_F32), &last, 1, false), CLV_DTYPE_I32);
    return clv_ctc_loss(clv_permute(clv_log_softmax(output, -1), (int[]){1, 0, 2}, 3), target, steps, counts,
                        0, false, CLV_REDUCTION_MEAN);
}

static double log_add(double a, double b) {
    const double most = fmax(a, b);
    return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

/** Of one sample: the loss of T steps and n labels. place: room for 2 * n + 1 numbers. */
static double ctc_of(const float *x, int64_t T, int64_t C, const int32_t *labels, int64_t n, double *place) {
    const int64_t L = 2 * n + 1;
    for (int64_t k = 0; k < n; k++)
        if (labels[k] < 1 || labels[k] >= C) return NAN;
    for (int64_t k = 0; k < L; k++) place[k] = k ? -INFINITY : 0; // before the first step
    for (int64_t t = 0; t < T; t++, x += C) {
        const double all = log_sum_exp(x, C);
        for (int64_t k = L - 1; k >= 0; k--) { // downwards: what is read is of the step before
            double v = k == 1 && !t ? 0 : place[k];
            if (t && k) v = log_add(v, place[k - 1]);
            if (t && k > 1 && k % 2 && labels[k / 2] != labels[k / 2 - 1]) v = log_add(v, place[k - 2]);
            place[k] = v + (double)x[k % 2 ? labels[k / 2] : 0] - all;
        }
    }
    return -log_add(place[L - 1], n ? place[L - 2] : -INFINITY);
}

static double ctc_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                      const clv_loss *loss) {
    (void)loss;
    const int32_t *labels = target;
    double sum = 0, *place = clv__alloc((size_t)(2 * sizes->target + 1), sizeof *place);
    for (int64_t i = 0; place && i < sizes->n; i++, labels += sizes->target, output += sizes->output) {
        int64_t n = 0;
        for (int64_t k = 0; k < sizes->target; k++) n += labels[k] >= 0;
        sum += ctc_of(output, sizes->output / sizes->classes, sizes->classes, labels, n, place) /
               (double)(n > 1 ? n : 1);
    }
    if (!place) sum = NAN;
    free(place);
    return sum;
}

// ---- all of them ------------------------------------------------------------------------------------------

static const clv_loss losses[] = {
    {.name = "cross_entropy",
     .build = CLV__TRAINS(cross_entropy),
     .sum = cross_entropy_sum,
     .of_classes = true},
    {.name = "mse", .build = CLV__TRAINS(mse), .sum = mse_sum},
    {.name = "l1", .build = CLV__TRAINS(l1), .sum = l1_sum},
    {.name = "huber", .build = CLV__TRAINS(huber), .sum = huber_sum},
    {.name = "focal", .build = CLV__TRAINS(focal), .sum = focal_sum},
    {.name = "bce_with_logits", .build = CLV__TRAINS(bce_with_logits), .sum = bce_with_logits_sum},
    {.name = "nll", .build = CLV__TRAINS(nll), .sum = nll_sum, .of_classes = true},
    {.name = "kl_div", .build = CLV__TRAINS(kl_div), .sum = kl_div_sum},
    {.name = "ctc", .build = CLV__TRAINS(ctc), .sum = ctc_sum, .of_classes = true, .of_sequences = true},
};

enum { N_LOSSES = sizeof losses / sizeof *losses };

const clv_loss *clv_loss_get(int index) {
    return index >= 0 && index < N_LOSSES ? &losses[index] : NULL;
}

static clv__registry registered = CLV__REGISTRY("loss");

const clv_loss *clv_loss_find(const char *name) {
    for (int i = 0; name && i < N_LOSSES; i++)
        if (!strcmp(losses[i].name, name)) return &losses[i];
    return clv__registry_find(&registered, name);
}

clv_status clv_loss_register(clv_runtime *runtime, const clv_loss *loss) {
    bool brought = false;
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, loss));
    if (!loss->build)
        CLV_FAIL(error, CLV_E_VALUE, "loss '%.100s' has no function `build`", loss->name ? loss->name : "");
    for (int i = 0; loss->name && i < N_LOSSES; i++) brought |= !strcmp(losses[i].name, loss->name);
    return clv__registry_add(&registered, error, loss->name, brought, loss);
}

const clv_loss *clv__loss_usual(clv_port target) {
    return clv_loss_find(target.classes ? "cross_entropy" : "mse");
}

const clv_loss *clv__loss_for(const clv_model *model) {
    return clv__loss_usual(clv_model_port_get(model, CLV_PORT_TARGET, 0));
}

// ---- of a model's targets ---------------------------------------------------------------------------------

/** Which of the model's targets it is of. */
static clv_status find_target(clv__error *error, const clv_model *model, const char *name, int *found) {
    clv__told_names names = {0};
    if (!name || !*name) CLV_FAIL(error, CLV_E_VALUE, "losses: one of them names no target");
    for (*found = 0; *found < clv_model_port_count(model, CLV_PORT_TARGET); ++*found) {
        const char *there = clv_model_port_get(model, CLV_PORT_TARGET, *found).name;
        if (!strcmp(there, name)) return CLV_OK;
        clv__told_add(&names, there);
    }
    CLV_FAIL(error, CLV_E_NOT_FOUND, "losses: model '%s' has no target '%s'; it has %s", model->name, name,
             names.text);
}

static clv_status check_losses(clv__error *error, const clv_train_config *config) {
    const int n = clv_model_port_count(config->model, CLV_PORT_TARGET);
    if (config->n_losses < 0 || (config->n_losses && !config->losses))
        CLV_FAIL(error, CLV_E_VALUE, "losses: %s, and n_losses is %d", config->losses ? "given" : "NULL",
                 config->n_losses);
    if (config->loss && config->n_losses)
        CLV_FAIL(error, CLV_E_VALUE, "loss and losses are given; one of them is enough");
    if (config->loss && n > 1)
        CLV_FAIL(error, CLV_E_VALUE, "loss is for one target, and model '%s' has %d: give losses",
                 config->model->name, n);
    return CLV_OK;
}

/** Does it know of weights of classes, and of ignored labels? */
static bool weighs(const clv_loss *loss) {
    return loss->sum == cross_entropy_sum;
}

/** The weights of a target's classes: as many as these, of a loss that knows of them. */
static clv_status check_class_weights(clv__error *error, const clv_train_loss *one, const clv_loss *loss,
                                      clv_port target) {
    double sum = 0;
    if (!one->class_weights && !one->n_class_weights) return CLV_OK;
    if (!weighs(loss) || !target.classes)
        CLV_FAIL(error, CLV_E_VALUE,
                 "losses: target '%.100s' has weights of classes, which are for classes and the loss "
                 "cross_entropy, not for '%.100s'",
                 one->target, loss->name ? loss->name : "");
    if (!one->class_weights || one->n_class_weights != target.classes)
        CLV_FAIL(
            error, CLV_E_VALUE,
            "losses: target '%.100s' has %lld weights of classes, and %lld classes: one is wanted for each",
            one->target, one->class_weights ? (long long)one->n_class_weights : 0LL,
            (long long)target.classes);
    for (int64_t c = 0; c < target.classes; c++) {
        const double weight = (double)one->class_weights[c];
        if (!isfinite(weight) || weight < 0)
            CLV_FAIL(
                error, CLV_E_VALUE,
                "losses: target '%.100s': the weight of class %lld is %g, it must be finite, and at least "
                "0",
                one->target, (long long)c, weight);
        sum += weight;
    }
    if (!(sum > 0))
        CLV_FAIL(error, CLV_E_VALUE, "losses: target '%.100s': the weights of all classes are 0",
                 one->target);
    return CLV_OK;
}

clv_status clv__losses_find(clv_runtime *runtime, const clv_train_config *config,
                            clv__target_loss out[CLV_MAX_PORTS]) {
    clv__error *error = clv__runtime_error_of(runtime);
    const clv_model *model = config->model;
    bool given[CLV_MAX_PORTS] = {false};
    CLV_TRY(check_losses(error, config));
    for (int i = 0; i < clv_model_port_count(model, CLV_PORT_TARGET); i++)
        out[i] = (clv__target_loss){
            config->loss ? config->loss : clv__loss_usual(clv_model_port_get(model, CLV_PORT_TARGET, i)), 1,
            NULL, false};
    for (int i = 0; i < config->n_losses; i++) {
        const clv_train_loss *one = &config->losses[i];
        int at = 0;
        CLV_TRY(find_target(error, model, one->target, &at));
        if (given[at]) CLV_FAIL(error, CLV_E_VALUE, "losses: target '%s' is named twice", one->target);
        if (!isfinite(one->weight) || one->weight < 0)
            CLV_FAIL(error, CLV_E_VALUE, "losses: the weight of target '%s' is %g, it must be %s",
                     one->target, one->weight, isfinite(one->weight) ? "at least 0" : "finite");
        given[at] = true;
        if (one->loss) out[at].loss = one->loss;
        if (one->weight != 0) out[at].weight = one->weight;
        CLV_TRY(
            check_class_weights(error, one, out[at].loss, clv_model_port_get(model, CLV_PORT_TARGET, at)));
        out[at].class_weights = one->class_weights;
    }
    for (int i = 0; config->train && i < clv_model_port_count(model, CLV_PORT_TARGET); i++)
        out[i].ignores = config->train->ignores && weighs(out[i].loss) &&
                         clv_model_port_get(model, CLV_PORT_TARGET, i).classes;
    return CLV_OK;
}

clv_tensor *clv__loss_build_weighted(const clv_loss *loss, clv_tensor *output, clv_tensor *target,
                                     clv_tensor *weight) {
    return weighted_cross_entropy(output, target, weight, smoothing_of(loss));
}

double clv__loss_sum(const clv__target_loss *of, const float *output, const void *targets,
                     const clv_loss_sizes *sizes, double *counted) {
    if (weighs(of->loss) && sizes->target != sizes->output)
        return label_sum(output, targets, sizes, of->class_weights, counted);
    *counted += (double)sizes->n;
    return of->loss->sum ? of->loss->sum(output, targets, sizes, of->loss) : (double)NAN;
}

int64_t clv__loss_counted(clv_port target, const void *targets, const clv_loss_sizes *sizes) {
    const int64_t n = sizes->n * sizes->target;
    const int32_t *labels = targets;
    int64_t ignored = 0;
    for (int64_t i = 0; target.classes && i < n; i++) ignored += labels[i] == CLV_LABEL_IGNORED;
    return n - ignored;
}

bool clv__loss_smooths(const clv_loss *loss) {
    return loss->sum == cross_entropy_sum || loss->sum == bce_with_logits_sum;
}

bool clv__loss_tells_right(const clv_loss *loss, clv_port target) {
    if (target.classes) return loss->sum != ctc_sum; // whose labels have no place of their own
    return loss->sum == bce_with_logits_sum || loss->sum == focal_sum;
}

int64_t clv__loss_count_right(const clv_loss *loss, clv_port target, const float *output, const void *targets,
                              const clv_loss_sizes *sizes) {
    const int64_t n = sizes->n * sizes->target;
    if (!clv__loss_tells_right(loss, target)) return 0;
    return target.classes ? clv__count_correct(output, targets, n, target.classes)
                          : count_labels(output, targets, n);
}
