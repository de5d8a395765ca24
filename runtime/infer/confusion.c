// SPDX-License-Identifier: Apache-2.0
// Which classes were told for which: counts on the host, and precision, recall and F1 of each class.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/device.h"
#include "nn/ports.h"
#include "infer/confusion.h"
#include "infer/names.h"

struct clv_confusion {
    int64_t classes, each;           // targets of a sample
    bool labels;                     // each by itself
    int target;                      // the model's
    int64_t *targets, *told, *right; // [classes]
    int64_t *table;                  // [classes, classes]: of which, told as which; NULL: not kept
};

static clv_status find_target(clv_runtime *runtime, const clv_model *model, const char *name, int *out) {
    clv__told_names names = {0};
    const int n = clv_model_port_count(model, CLV_PORT_TARGET);
    for (*out = 0; name && *out < n; ++*out) {
        const char *one = clv_model_port_get(model, CLV_PORT_TARGET, *out).name;
        if (!strcmp(one, name)) break;
        clv__told_add(&names, one);
    }
    if (*out == n)
        CLV_FAIL(clv__runtime_error_of(runtime), CLV_E_NOT_FOUND,
                 "model '%.100s' has no target '%.100s'; it has %s", model->name, name, names.text);
    return CLV_OK;
}

clv_status clv_confusion_create(clv_runtime *runtime, const clv_model *model, const char *target,
                                clv_confusion **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    int index;
    CLV_TRY(CLV__USABLE(error, model));
    CLV_TRY(CLV__USABLE(error, out));
    *out = NULL;
    CLV_TRY(clv__model_check(error, model));
    CLV_TRY(find_target(runtime, model, target, &index));
    const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, index);
    const clv_shape shape = clv_port_shape(&port, 1);
    const int64_t numel = clv_shape_numel(&shape);
    clv_confusion *own = clv__alloc(1, sizeof *own);
    if (!own) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to count classes");
    *own = (clv_confusion){.classes = port.classes ? port.classes : numel,
                           .each = port.classes ? numel : 1,
                           .labels = !port.classes,
                           .target = index};
    const size_t n = (size_t)own->classes;
    own->targets = clv__alloc(n, sizeof *own->targets);
    own->told = clv__alloc(n, sizeof *own->told);
    own->right = clv__alloc(n, sizeof *own->right);
    const bool table = !own->labels && own->classes <= CLV_CONFUSION_CLASSES;
    if (table) own->table = clv__alloc(n * n, sizeof *own->table);
    if (own->targets && own->told && own->right && (!table || own->table)) {
        *out = own;
        return CLV_OK;
    }
    clv_confusion_destroy(own);
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to count %" PRId64 " classes", port.classes);
}

void clv_confusion_destroy(clv_confusion *confusion) {
    if (!confusion) return;
    free(confusion->targets);
    free(confusion->told);
    free(confusion->right);
    free(confusion->table);
    free(confusion);
}

int clv__confusion_target(const clv_confusion *confusion) {
    return confusion->target;
}

clv_status clv__confusion_check(const clv_confusion *confusion, const clv_model *model, bool tells_right,
                                clv__error *error) {
    const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, confusion->target);
    const clv_shape shape = clv_port_shape(&port, 1);
    if (!port.name || !port.classes != confusion->labels ||
        confusion->classes != (port.classes ? port.classes : clv_shape_numel(&shape)))
        CLV_FAIL(error, CLV_E_VALUE, "clv_predictor_config.confusion counts the classes of another model");
    if (!tells_right)
        CLV_FAIL(error, CLV_E_VALUE,
                 "target '%.100s' of model '%.100s' gives numbers: there are no classes to count", port.name,
                 model->name);
    return CLV_OK;
}

static void count_class(clv_confusion *own, const float *scores, int32_t label) {
    int32_t told;
    if (label < 0 || label >= own->classes) return;
    own->targets[label]++;
    if (!clv_top_classes(scores, own->classes, 1, &told, NULL)) return;
    own->told[told]++;
    own->right[told] += told == label;
    if (own->table) own->table[label * own->classes + told]++;
}

static void count_label(clv_confusion *own, int64_t i, float result, float label) {
    own->targets[i] += label > 0.5f;
    own->told[i] += result > 0;
    own->right[i] += label > 0.5f && result > 0;
}

void clv_confusion_add(clv_confusion *confusion, const float *results, const void *targets, int64_t n) {
    clv_confusion *own = confusion;
    for (int64_t i = 0; !own->labels && i < n * own->each; i++)
        count_class(own, results + i * own->classes, ((const int32_t *)targets)[i]);
    for (int64_t i = 0; own->labels && i < n * own->classes; i++)
        count_label(own, i % own->classes, results[i], ((const float *)targets)[i]);
}

int64_t clv_confusion_count(const clv_confusion *confusion, int64_t of, int64_t told) {
    const int64_t n = confusion->classes;
    if (!confusion->table || of < 0 || of >= n || told < 0 || told >= n) return -1;
    return confusion->table[of * n + told];
}

static double part(int64_t of, int64_t all) {
    return all ? (double)of / (double)all : 0;
}

clv_class_metrics clv_confusion_get(const clv_confusion *confusion, int64_t i) {
    if (i < 0 || i >= confusion->classes) return (clv_class_metrics){0};
    const int64_t targets = confusion->targets[i], told = confusion->told[i], right = confusion->right[i];
    return (clv_class_metrics){.targets = targets,
                               .told = told,
                               .right = right,
                               .precision = part(right, told),
                               .recall = part(right, targets),
                               .f1 = part(2 * right, told + targets)};
}

static clv_class_metrics mean_of(const clv_confusion *confusion) {
    clv_class_metrics mean = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < confusion->classes; i++) {
        const clv_class_metrics one = clv_confusion_get(confusion, i);
        mean.targets += one.targets;
        mean.told += one.told;
        mean.right += one.right;
        mean.precision += one.precision;
        mean.recall += one.recall;
        mean.f1 += one.f1;
        n += one.targets || one.told;
    }
    if (!n) return mean;
    mean.precision /= (double)n;
    mean.recall /= (double)n;
    mean.f1 /= (double)n;
    return mean;
}

clv_confusion_info clv_confusion_info_get(const clv_confusion *confusion) {
    return (clv_confusion_info){
        .classes = confusion->classes, .of_labels = confusion->labels, .mean = mean_of(confusion)};
}
