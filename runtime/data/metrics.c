// SPDX-License-Identifier: Apache-2.0
// What is counted on the host from a model's answers.
#include <math.h>
#include <stdbool.h>

#include "cleave/data.h"
#include "data/dataset.h"

int64_t clv__count_correct(const float *logits, const int32_t *labels, int64_t n, int64_t classes) {
    int64_t correct = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *row = logits + i * classes;
        int64_t best = 0;
        bool number = true;
        for (int64_t k = 0; k < classes; k++) {
            if (row[k] > row[best]) best = k;
            number = number && !isnan(row[k]);
        }
        if (number && best == labels[i]) correct++;
    }
    return correct;
}

/** Is score a before score b? */
static bool is_before(const float *logits, int64_t a, int64_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
}

int64_t clv_top_classes(const float *logits, int64_t classes, int64_t most, int32_t *which, double *p) {
    int64_t n = 0;
    double sum = 0;
    for (int64_t k = 0; k < classes; k++) {
        if (isnan(logits[k])) return 0;
        int64_t at = n < most ? n : most;
        while (at > 0 && is_before(logits, k, which[at - 1])) at--;
        if (at == most) continue;
        if (n < most) n++;
        for (int64_t i = n - 1; i > at; i--) which[i] = which[i - 1];
        which[at] = (int32_t)k;
    }
    if (n == 0 || !isfinite(logits[which[0]])) return 0;
    for (int64_t k = 0; k < classes; k++) sum += exp((double)logits[k] - (double)logits[which[0]]);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = exp((double)logits[which[i]] - (double)logits[which[0]]) / sum;
    return n;
}
