// SPDX-License-Identifier: Apache-2.0
// Which token comes next: the most probable one, or one drawn by its probability, among some of them.
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "cleave/generate.h"
#include "device/device.h"
#include "infer/sampling.h"

/** A token and what speaks for it. */
typedef struct candidate {
    int32_t token;
    double weight; // the logit, later e to the power of it
} candidate;

static int more_probable(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token); // the first of equals
}

static int32_t largest(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return (int32_t)best;
}

/** How many of those that are left, the most probable first, are drawn among. */
static int64_t keep(const candidate *all, int64_t n, double sum, const clv_sampling *sampling) {
    if (sampling->top_k > 0 && sampling->top_k < n) {
        n = sampling->top_k;
        sum = 0;
        for (int64_t i = 0; i < n; i++) sum += all[i].weight;
    }
    if (!(sampling->top_p > 0)) return n;
    double got = 0;
    for (int64_t i = 0; i < n; i++) {
        got += all[i].weight;
        if (got >= sampling->top_p * sum) return i + 1;
    }
    return n;
}

static int32_t draw(candidate *all, const float *logits, int64_t n, const clv_sampling *sampling,
                    uint64_t number) {
    const double most = (double)logits[largest(logits, n)];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const double weight = exp(((double)logits[i] - most) / sampling->temperature);
        all[i] = (candidate){(int32_t)i, weight};
        sum += all[i].weight;
    }
    if (sampling->top_k > 0 || sampling->top_p > 0) {
        qsort(all, (size_t)n, sizeof *all, more_probable);
        n = keep(all, n, sum, sampling);
        sum = 0;
        for (int64_t i = 0; i < n; i++) sum += all[i].weight;
    }
    clv__random random;
    clv__random_init(&random, sampling->seed, CLV__STREAM_GENERATE, number);
    const double high = clv__random_u32(&random), low = clv__random_u32(&random);
    double left = (high * 0x1p-32 + low * 0x1p-64) * sum;
    int64_t i = 0;
    while (i < n - 1 && left >= all[i].weight) left -= all[i++].weight;
    return all[i].token;
}

clv_status clv__sample_token(clv_runtime *runtime, const float *logits, int64_t n,
                             const clv_sampling *sampling, uint64_t number, int32_t *token) {
    static const clv_sampling greedy = {0};
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, logits));
    CLV_TRY(CLV__GIVEN(error, token));
    if (!sampling) sampling = &greedy;
    if (n < 1 || n > INT32_MAX) CLV_FAIL(error, CLV_E_VALUE, "a token among %lld", (long long)n);
    if (!(sampling->temperature >= 0) || !isfinite(sampling->temperature) || sampling->top_k < 0 ||
        !(sampling->top_p >= 0 && sampling->top_p <= 1))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "sampling with temperature %g, top_k %lld and top_p %g: the first two must be at least 0, the "
            "third 0 to 1",
            sampling->temperature, (long long)sampling->top_k, sampling->top_p);
    for (int64_t i = 0; i < n; i++)
        if (isnan(logits[i]) || logits[i] == INFINITY)
            CLV_FAIL(error, CLV_E_VALUE,
                     "no token can be chosen: the logit of token %lld is %s; the weights may not be finite, "
                     "as after a training that diverged",
                     (long long)i, isnan(logits[i]) ? "NaN" : "infinite");
    if (logits[largest(logits, n)] == -INFINITY)
        CLV_FAIL(error, CLV_E_VALUE, "no token can be chosen: the logits of all %lld are -infinity",
                 (long long)n);
    if (sampling->temperature == 0) {
        *token = largest(logits, n);
        return CLV_OK;
    }
    candidate *all = clv__alloc((size_t)n, sizeof *all);
    if (!all) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory to choose a token");
    *token = draw(all, logits, n, sampling, number);
    free(all);
    return CLV_OK;
}
