// SPDX-License-Identifier: Apache-2.0
// Metrics: what an evaluation tells besides the loss. A metric is a sum over samples, on the host in double,
// and what its mean is made into. Those that Cleave brings, and all of them added up batch by batch.
#include "infer/metric.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "nn/ports.h"
#include "infer/names.h"

// ---- of classes -------------------------------------------------------------------------------------------

/** Is the label's score among the `most` largest, the first of equal ones being the larger? */
static bool is_among(const float *scores, int64_t classes, int32_t label, int64_t most) {
    int64_t before = 0;
    for (int64_t c = 0; c < classes; c++) {
        if (isnan(scores[c])) return false;
        before += scores[c] > scores[label] || (scores[c] == scores[label] && c < label);
    }
    return before < most;
}

static double count_among(const float *output, const void *target, const clv_loss_sizes *sizes,
                          int64_t most) {
    const int64_t rows = sizes->n * sizes->target, classes = sizes->output / sizes->target;
    const int32_t *labels = target;
    int64_t right = 0;
    for (int64_t i = 0; i < rows; i++)
        if (labels[i] != CLV_LABEL_IGNORED) right += is_among(output + i * classes, classes, labels[i], most);
    return (double)right / (double)sizes->target;
}

static double accuracy_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                           const clv_metric *metric) {
    (void)metric;
    return count_among(output, target, sizes, 1);
}

static double top5_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                       const clv_metric *metric) {
    (void)metric;
    return count_among(output, target, sizes, 5);
}

// ---- of numbers -------------------------------------------------------------------------------------------

static double mae_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                      const clv_metric *metric) {
    (void)metric;
    return clv_loss_find("l1")->sum(output, target, sizes, NULL);
}

static double square_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                         const clv_metric *metric) {
    (void)metric;
    return clv_loss_find("mse")->sum(output, target, sizes, NULL);
}

static double root(double mean, const clv_metric *metric) {
    (void)metric;
    return sqrt(mean);
}

// ---- all of them ------------------------------------------------------------------------------------------

static const clv_metric metrics_brought[] = {
    {.name = "accuracy", .sum = accuracy_sum, .larger_is_better = true, .targets = CLV_METRIC_CLASSES},
    {.name = "top5", .sum = top5_sum, .larger_is_better = true, .targets = CLV_METRIC_CLASSES},
    {.name = "mae", .sum = mae_sum, .targets = CLV_METRIC_NUMBERS},
    {.name = "rmse", .sum = square_sum, .finish = root, .targets = CLV_METRIC_NUMBERS},
};

enum { N_BROUGHT = sizeof metrics_brought / sizeof *metrics_brought };

const clv_metric *clv_metric_get(int index) {
    return index >= 0 && index < N_BROUGHT ? &metrics_brought[index] : NULL;
}

const clv_metric *clv_metric_find(const char *name) {
    for (int i = 0; name && i < N_BROUGHT; i++)
        if (!strcmp(metrics_brought[i].name, name)) return &metrics_brought[i];
    return NULL;
}

// ---- in an evaluation -------------------------------------------------------------------------------------

/** How many names a model has for the numbers of its target. */
static int64_t named_numbers(const clv_model *model) {
    if (!model->number_names || model->build_all || model->classes) return 0;
    const clv_port target = clv_model_port_get(model, CLV_PORT_TARGET, 0);
    const clv_shape one = clv_port_shape(&target, 1);
    return clv_shape_numel(&one);
}

/** Which of these a metric is of alone; -1: of the whole target. */
static int64_t number_of(const clv_model *model, const clv_metric *metric) {
    for (int64_t k = 0; metric->target && k < named_numbers(model); k++)
        if (!strcmp(model->number_names[k], metric->target)) return k;
    return -1;
}

/** Which of the model's targets a metric is of; -1: there is no such one. */
static int target_of(const clv_model *model, const clv_metric *metric) {
    if (!metric->target || number_of(model, metric) >= 0) return 0;
    for (int i = 0; i < clv_model_port_count(model, CLV_PORT_TARGET); i++)
        if (!strcmp(clv_model_port_get(model, CLV_PORT_TARGET, i).name, metric->target)) return i;
    return -1;
}

bool clv__metric_is(const clv_metric *metric, const char *name) {
    const size_t n = metric->target ? strlen(metric->target) : 0;
    if (!metric->target) return !strcmp(metric->name, name);
    return !strncmp(metric->target, name, n) && name[n] == ':' && !strcmp(metric->name, name + n + 1);
}

static clv_status no_target(const clv_model *model, const clv_metric *metric, clv__error *error) {
    clv__told_names names = {0};
    const int64_t numbers = named_numbers(model);
    for (int64_t k = 0; k < numbers; k++) clv__told_add(&names, model->number_names[k]);
    for (int i = 0; !numbers && i < clv_model_port_count(model, CLV_PORT_TARGET); i++)
        clv__told_add(&names, clv_model_port_get(model, CLV_PORT_TARGET, i).name);
    CLV_FAIL(error, CLV_E_NOT_FOUND, "metric '%.100s': model '%.100s' has no target '%.100s'; it has %s",
             metric->name, model->name, metric->target, names.text);
}

/** Are the targets of the kind that it is of? */
static clv_status check_kind(const clv_model *model, const clv_metric *metric, const clv_port *target,
                             clv__error *error) {
    const bool of_classes = metric->targets == CLV_METRIC_CLASSES;
    if (metric->targets == CLV_METRIC_ANY || of_classes == (target->classes > 0)) return CLV_OK;
    const char *instead = of_classes ? "take mae or rmse" : "take accuracy or top5";
    if (metric->target)
        CLV_FAIL(error, CLV_E_VALUE, "metric '%.100s' is for %s, and target '%.100s' holds %s: %s",
                 metric->name, of_classes ? "classes" : "numbers", metric->target,
                 of_classes ? "numbers" : "classes", instead);
    CLV_FAIL(error, CLV_E_VALUE, "metric '%.100s' is for models that %s, and '%.100s' %s: %s", metric->name,
             of_classes ? "give classes" : "give numbers", model->name,
             of_classes ? "gives numbers" : "gives classes", instead);
}

static clv_status check_one(const clv_model *model, const clv_metric *const *metrics, int i,
                            clv__error *error) {
    const clv_metric *metric = metrics[i];
    if (!metric || !metric->name || !*metric->name || !metric->sum)
        CLV_FAIL(error, CLV_E_VALUE, "metric %d of those asked for needs a name and a function `sum`", i + 1);
    if (!strcmp(metric->name, "loss"))
        CLV_FAIL(error, CLV_E_VALUE, "a metric cannot be called 'loss', which evaluation gives in any case");
    const int at = target_of(model, metric);
    if (at < 0) return no_target(model, metric, error);
    for (int k = 0; k < i; k++)
        if (!strcmp(metric->name, metrics[k]->name) && at == target_of(model, metrics[k]) &&
            number_of(model, metric) == number_of(model, metrics[k]))
            CLV_FAIL(error, CLV_E_VALUE, "metric '%.100s' is asked for twice", metric->name);
    const clv_port target = clv_model_port_get(model, CLV_PORT_TARGET, at);
    return check_kind(model, metric, &target, error);
}

clv_status clv__metrics_check(const clv_model *model, const clv_metric *const *metrics, int n,
                              clv__error *error) {
    if (n < 0 || n > CLV_MOST_METRICS || (n && !metrics))
        CLV_FAIL(error, CLV_E_VALUE, "%d metrics: there can be 0 to %d", n, CLV_MOST_METRICS);
    for (int i = 0; i < n; i++) CLV_TRY(check_one(model, metrics, i, error));
    return CLV_OK;
}

clv_status clv__metrics_fit(const clv_model *model, const clv_metric *const *metrics, int n,
                            const int64_t outputs[CLV_MAX_PORTS], clv__error *error) {
    CLV_TRY(clv__metrics_check(model, metrics, n, error));
    for (int i = 0; i < n; i++) {
        const int at = target_of(model, metrics[i]);
        const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, at);
        const clv_shape shape = clv_port_shape(&port, 1);
        const int64_t target = clv_shape_numel(&shape),
                      wanted = port.classes ? target * port.classes : target;
        const bool any = metrics[i]->targets == CLV_METRIC_ANY && number_of(model, metrics[i]) < 0;
        if (any || outputs[at] == wanted) continue;
        CLV_FAIL(error, CLV_E_SHAPE,
                 "metric '%.100s' wants %" PRId64
                 " numbers of each sample, and model '%.100s' gives %" PRId64,
                 metrics[i]->name, wanted, model->name, outputs[at]);
    }
    return CLV_OK;
}

/** The sum over one number of each sample. */
static double sum_of_number(const clv_metric *metric, int64_t number, const float *output, const void *target,
                            const clv_loss_sizes *sizes) {
    const clv_loss_sizes one = {.n = 1, .output = 1, .target = 1};
    double sum = 0;
    for (int64_t i = 0; i < sizes->n; i++)
        sum += metric->sum(output + i * sizes->output + number,
                           (const float *)target + i * sizes->target + number, &one, metric);
    return sum;
}

void clv__metrics_add(const clv_model *model, int i, const clv_metric *const *metrics, int n,
                      const float *output, const void *target, const clv_loss_sizes *sizes,
                      clv_metric_value values[CLV_MOST_METRICS]) {
    for (int k = 0; k < n; k++) {
        if (target_of(model, metrics[k]) != i) continue;
        const int64_t number = number_of(model, metrics[k]);
        values[k].value += number < 0 ? metrics[k]->sum(output, target, sizes, metrics[k])
                                      : sum_of_number(metrics[k], number, output, target, sizes);
    }
}

void clv__metrics_end(const clv_model *model, const clv_metric *const *metrics, int n,
                      const double samples[CLV_MAX_PORTS], clv_metric_value values[CLV_MOST_METRICS]) {
    for (int i = 0; i < n; i++) {
        const clv_metric *metric = metrics[i];
        const double mean = values[i].value / samples[target_of(model, metric)];
        values[i] = (clv_metric_value){.name = metric->name,
                                       .value = metric->finish ? metric->finish(mean, metric) : mean};
        const int64_t number = number_of(model, metric);
        if (number >= 0)
            values[i].target = model->number_names[number];
        else if (metric->target)
            values[i].target = clv_model_port_get(model, CLV_PORT_TARGET, target_of(model, metric)).name;
    }
}
