// SPDX-License-Identifier: Apache-2.0
// What someone gets who looks at no sample: the commonest class, or the mean, of a dataset's targets.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "io/array.h"

static clv_status no_memory(clv__error *error) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to count a dataset's targets");
}

/** -p log(p) */
static double entropy(double p) {
    return p > 0 ? -p * log(p) : 0;
}

/** Reads the i-th sample's target of `which`, [numel] f32 or i32. */
static void read_target(const clv_dataset *dataset, int64_t i, int which, void *out) {
    void *to[CLV__MOST_FIELDS] = {NULL};
    to[clv_dataset_info_get(dataset).n_inputs + which] = out;
    clv_dataset_read(dataset, i, to);
}

/** Labels of each class, and of all. */
static clv_status count_labels(clv__error *error, const clv_dataset *dataset, int which, int64_t numel,
                               int64_t classes, int64_t *counts, int64_t *all) {
    int32_t *row = clv__alloc((size_t)numel, sizeof *row);
    if (!row) return no_memory(error);
    for (int64_t i = 0; i < dataset->count; i++) {
        read_target(dataset, i, which, row);
        for (int64_t k = 0; k < numel; k++)
            if (row[k] >= 0 && row[k] < classes) ++*all, counts[row[k]]++;
    }
    free(row);
    return CLV_OK;
}

static clv_status count_classes(clv__error *error, const clv_dataset *dataset, int which, int64_t numel,
                                int64_t classes, clv_baseline *out) {
    int64_t *counts = clv__alloc((size_t)classes, sizeof *counts);
    clv_status status = counts ? CLV_OK : no_memory(error);
    if (status == CLV_OK) status = count_labels(error, dataset, which, numel, classes, counts, &out->targets);
    for (int64_t c = 0; status == CLV_OK && c < classes; c++) {
        if (counts[c] > out->correct) out->correct = counts[c];
        out->loss += entropy((double)counts[c] / (double)out->targets);
    }
    free(counts);
    return status;
}

/** Of each number of a target: mean, sum of squares off it, how often it is 1. */
typedef struct column {
    double mean, squares;
    int64_t ones;
} column;

/** In the units that a loss is told in: several standardized targets have none but their deviations. */
static void sum_up(const clv_dataset *dataset, const column *columns, int64_t numel, bool labels,
                   clv_baseline *out) {
    const double n = (double)dataset->count;
    for (int64_t k = 0; k < numel; k++) {
        const double scale = dataset->target_scales && numel == 1 ? dataset->target_scales[1] : 1;
        const int64_t zeros = dataset->count - columns[k].ones;
        out->loss += columns[k].squares / n * scale * scale / (double)numel;
        if (labels) out->correct += columns[k].ones > zeros ? columns[k].ones : zeros;
    }
    if (labels) out->targets = dataset->count * numel;
}

static clv_status measure_numbers(clv__error *error, const clv_dataset *dataset, int which, int64_t numel,
                                  clv_baseline *out) {
    column *columns = clv__alloc((size_t)numel, sizeof *columns);
    float *row = clv__alloc((size_t)numel, sizeof *row);
    const clv_status status = columns && row ? CLV_OK : no_memory(error);
    bool labels = true;
    for (int64_t i = 0; status == CLV_OK && i < dataset->count; i++) {
        read_target(dataset, i, which, row);
        for (int64_t k = 0; k < numel; k++) {
            const double off = (double)row[k] - columns[k].mean;
            columns[k].mean += off / (double)(i + 1);
            columns[k].squares += off * ((double)row[k] - columns[k].mean);
            columns[k].ones += row[k] == 1.0f;
            labels = labels && (row[k] == 0.0f || row[k] == 1.0f);
        }
    }
    if (status == CLV_OK) sum_up(dataset, columns, numel, labels && !dataset->target_scales, out);
    free(columns);
    free(row);
    return status;
}

static clv_status check_target(clv__error *error, const clv_dataset *dataset, int target) {
    if (target < 0 || target >= clv_dataset_info_get(dataset).n_targets)
        CLV_FAIL(error, CLV_E_VALUE, "target %d of a dataset that has %d", target,
                 clv_dataset_info_get(dataset).n_targets);
    return CLV_OK;
}

clv_status clv_dataset_class_weights(clv_runtime *runtime, const clv_dataset *dataset, int target,
                                     int64_t classes, float *out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, dataset));
    CLV_TRY(CLV__GIVEN(error, out));
    CLV_TRY(check_target(error, dataset, target));
    const clv_port port = clv_dataset_port_get(dataset, CLV_PORT_TARGET, target);
    const clv_shape one = clv_port_shape(&port, 1);
    if (!port.classes)
        CLV_FAIL(error, CLV_E_VALUE, "target %d of the dataset holds numbers: only classes have weights",
                 target);
    if (classes < port.classes)
        CLV_FAIL(error, CLV_E_VALUE, "weights of %" PRId64 " classes, of a dataset that has %" PRId64,
                 classes, (int64_t)port.classes);
    int64_t *counts = clv__alloc((size_t)classes, sizeof *counts), all = 0;
    if (!counts) return no_memory(error);
    const clv_status status =
        count_labels(error, dataset, target, clv_shape_numel(&one), classes, counts, &all);
    for (int64_t c = 0; status == CLV_OK && c < classes; c++)
        out[c] = counts[c] ? (float)((double)all / ((double)classes * (double)counts[c])) : 1;
    free(counts);
    return status;
}

clv_status clv_dataset_baseline(clv_runtime *runtime, const clv_dataset *dataset, int target,
                                clv_baseline *out) {
    clv__error *error = clv__io_error(runtime);
    CLV_TRY(CLV__GIVEN(error, dataset));
    CLV_TRY(CLV__GIVEN(error, out));
    *out = (clv_baseline){0};
    CLV_TRY(check_target(error, dataset, target));
    const clv_port port = clv_dataset_port_get(dataset, CLV_PORT_TARGET, target);
    const clv_shape one = clv_port_shape(&port, 1);
    const int64_t numel = clv_shape_numel(&one);
    CLV_TRY(port.classes ? count_classes(error, dataset, target, numel, port.classes, out)
                         : measure_numbers(error, dataset, target, numel, out));
    out->accuracy = out->targets ? (double)out->correct / (double)out->targets : (double)NAN;
    return CLV_OK;
}
