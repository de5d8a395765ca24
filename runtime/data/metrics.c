// SPDX-License-Identifier: Apache-2.0
// What is counted on the host from a model's answers.
#include <math.h>

#include "cleave/data.h"

int64_t clv_count_correct(const float *logits, const int32_t *labels, int64_t n, int64_t classes) {
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
