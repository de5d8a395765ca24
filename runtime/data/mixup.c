// SPDX-License-Identifier: Apache-2.0
// Source: Zhang, Cisse, Dauphin, Lopez-Paz 2017, arXiv:1710.09412, section 2; torchvision's references/classification: the batch with
// itself, rolled by one. Gamma numbers: Marsaglia, Tsang 2000, "A simple method for generating gamma variables", sections 2 and 6.
#include "data/mixup.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/random.h"

clv__mixed clv__mixed_of(const clv_dataset *dataset, const clv_loader_config *config) {
    clv__mixed mixed = {.numel = dataset->numel,
                        .target_numel = dataset->target_numel,
                        .target_dtype = dataset->target_dtype};
    if (!(config->mixup > 0) || dataset->target_dtype != CLV_DTYPE_I32) return mixed;
    mixed.classes = true;
    mixed.target_numel = config->classes ? config->classes : dataset->classes;
    mixed.target_dtype = CLV_DTYPE_F32;
    return mixed;
}

clv_status clv__mixup_check(clv__error *error, const clv_dataset *dataset, const clv_loader_config *config) {
    if (!(config->mixup >= 0 && isfinite(config->mixup)))
        CLV_FAIL(error, CLV_E_VALUE, "mixup with alpha %g: it must be above 0, and finite; 0 means no mixup",
                 config->mixup);
    if (config->mixup == 0) return CLV_OK;
    if (dataset->ports)
        CLV_FAIL(error, CLV_E_VALUE, "mixup needs a dataset with one input and one target, without names");
    if (dataset->dtype != CLV_DTYPE_F32)
        CLV_FAIL(error, CLV_E_VALUE, "mixup needs samples that are numbers; these are tokens");
    if (dataset->target_dtype != CLV_DTYPE_I32) return CLV_OK;
    if (dataset->target_numel != 1)
        CLV_FAIL(
            error, CLV_E_VALUE,
            "mixup needs targets that are numbers, or one class for each sample; here a sample has %" PRId64
            " classes",
            dataset->target_numel);
    if (dataset->ignores)
        CLV_FAIL(error, CLV_E_VALUE,
                 "mixup needs a class for each sample; here labels are %d, which is ignored",
                 CLV_LABEL_IGNORED);
    if (config->classes < 0 || (config->classes && config->classes < dataset->classes))
        CLV_FAIL(error, CLV_E_VALUE, "mixup with %d classes, of a dataset that has %d", config->classes,
                 dataset->classes);
    return CLV_OK;
}

// ---- how much of which ------------------------------------------------------------------------------------

/** The logarithm of a number from Gamma(shape, 1): a small shape gives numbers that no double holds. */
static double draw_log_gamma(clv__random *random, double shape) {
    double boost = 0;
    if (shape < 1) {
        boost = fmax(log(((double)clv__random_u32(random) + 0.5) * 0x1p-32) / shape, -1e300);
        shape += 1;
    }
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = clv__random_normal(random), root = 1 + c * x, v = root * root * root;
        const double u = ((double)clv__random_u32(random) + 0.5) * 0x1p-32;
        if (root > 0 && log(u) < 0.5 * x * x + d - d * v + d * log(v)) return log(d * v) + boost;
    }
}

double clv__mixup_lambda(const clv__draw *draw, int64_t index, double alpha) {
    clv__random random;
    clv__random_init(&random, draw->seed, CLV__STREAM_MIXUP, (uint64_t)draw->epoch << 32 | (uint64_t)index);
    const double a = draw_log_gamma(&random, alpha), b = draw_log_gamma(&random, alpha);
    return 1 / (1 + exp(b - a));
}

// ---- mixing -----------------------------------------------------------------------------------------------

typedef struct parts {
    float own, other; // of a sample, and of the one before it
} parts;

/** Rows [n, numel]: a stretch of columns at a time, so that the last row need not be kept whole. */
static void mix_rows(parts p, int64_t n, int64_t numel, float *rows) {
    enum { STRETCH = 1024 };
    float last[STRETCH];
    for (int64_t from = 0; from < numel; from += STRETCH) {
        const int64_t length = numel - from < STRETCH ? numel - from : STRETCH;
        memcpy(last, rows + (n - 1) * numel + from, (size_t)length * sizeof *last);
        for (int64_t i = n - 1; i >= 0; i--) {
            float *row = rows + i * numel + from;
            const float *before = i > 0 ? row - numel : last;
            for (int64_t k = 0; k < length; k++) row[k] = row[k] * p.own + before[k] * p.other;
        }
    }
}

static int32_t class_of(const float *row) {
    int32_t label;
    memcpy(&label, row, sizeof label);
    return label;
}

/** Rows that begin with a class become those of probabilities. */
static void mix_classes(parts p, int64_t n, int64_t classes, float *rows) {
    const int32_t last = class_of(rows + (n - 1) * classes);
    for (int64_t i = n - 1; i >= 0; i--) {
        float *row = rows + i * classes;
        const int32_t own = class_of(row), before = i > 0 ? class_of(row - classes) : last;
        memset(row, 0, (size_t)classes * sizeof *row);
        row[own] = p.own;
        row[before] += p.other;
    }
}

void clv__mixup(const clv__mixed *mixed, double lambda, int64_t n, float *samples, void *targets) {
    const parts p = {(float)lambda, (float)(1 - lambda)};
    mix_rows(p, n, mixed->numel, samples);
    if (mixed->classes)
        mix_classes(p, n, mixed->target_numel, targets);
    else
        mix_rows(p, n, mixed->target_numel, targets);
}
