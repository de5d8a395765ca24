// SPDX-License-Identifier: Apache-2.0
// Central differences along random directions; see differences.h.
#include "check/differences.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

// The error of a central difference is step^2/6 of the third derivative and 1e-16/step of the loss: both far below
// this. Attributes are floats, and a gradient may round a constant (1/N) to float: 6e-8.
static const double RELATIVE = 1e-5, ABSOLUTE = 1e-9;
enum { MIXED = 2 };

/** Where to go from the start: every tensor of the direction has a vector in [-1, 1]. */
typedef struct walk {
    const clv__values *start;
    const clv_tensor *loss;
    clv_tensor *const *wrt;
    int n, only; // only: index into wrt, or -1 for all
    uint64_t seed;
    clv__values scratch;
} walk;

static clv_status loss_at(walk *w, double step, clv__error *error, double *loss) {
    for (size_t i = 0; i < w->start->n; i++)
        memcpy(w->scratch.data[i], w->start->data[i],
               (size_t)clv__numel(&w->start->graph->tensors[i]->desc) * sizeof(double));
    for (int k = 0; k < w->n; k++) {
        if (w->only >= 0 && w->only != k) continue;
        double *x = clv__values_of(&w->scratch, w->wrt[k]);
        int64_t numel = clv__numel(&w->wrt[k]->desc);
        clv__random random;
        clv__random_init(&random, w->seed, CLV__STREAM_TEST, (3ull << 40) + (uint64_t)k);
        for (int64_t i = 0; i < numel; i++) x[i] += step * (2.0 * clv__random_uniform(&random) - 1.0);
    }
    CLV_TRY(clv__interpret(&w->scratch, NULL, error));
    *loss = clv__values_of(&w->scratch, w->loss)[0];
    return CLV_OK;
}

static void along_gradient(const walk *w, const clv__values *at, double *sum, double *magnitude) {
    *sum = *magnitude = 0;
    for (int k = 0; k < w->n; k++) {
        if (w->only >= 0 && w->only != k) continue;
        const clv_tensor *gradient = clv_gradient(w->wrt[k]);
        if (!gradient) continue; // says: the loss does not depend on it
        const double *g = clv__values_of(at, gradient);
        int64_t numel = clv__numel(&w->wrt[k]->desc);
        clv__random random;
        clv__random_init(&random, w->seed, CLV__STREAM_TEST, (3ull << 40) + (uint64_t)k);
        for (int64_t i = 0; i < numel; i++) {
            double part = g[i] * (2.0 * clv__random_uniform(&random) - 1.0);
            *sum += part;
            *magnitude += fabs(part);
        }
    }
}

static clv_status one_direction(walk *w, double step, clv__error *error, clv__distance *out) {
    double here, ahead, behind, magnitude;
    CLV_TRY(loss_at(w, 0, error, &here));
    *out = (clv__distance){.ratio = INFINITY};
    along_gradient(w, &w->scratch, &out->got, &magnitude);
    // A smaller step for a second try: the first may have crossed a kink, which is no fault of the gradient.
    for (double h = step; h >= 0.05 * step && !(out->ratio <= 1); h *= 0.1) {
        CLV_TRY(loss_at(w, h, error, &ahead));
        CLV_TRY(loss_at(w, -h, error, &behind));
        out->want = (ahead - behind) / (2 * h);
        out->error = fabs(out->got - out->want);
        out->tolerance = RELATIVE * magnitude + ABSOLUTE * (1 + fabs(here));
        out->ratio = isfinite(out->error) ? out->error / out->tolerance : INFINITY;
    }
    return CLV_OK;
}

clv_status clv__differences(const clv__values *start, const clv_tensor *loss, clv_tensor *const *wrt, int n,
                            double step, uint64_t seed, clv__error *error, clv__distance *out) {
    walk w = {.start = start, .loss = loss, .wrt = wrt, .n = n};
    *out = (clv__distance){.index = -1, .ratio = 0};
    CLV_TRY(clv__values_init(&w.scratch, start->graph, error));
    clv_status status = CLV_OK;
    for (int d = 0; status == CLV_OK && d < (n > 1 ? n + MIXED : MIXED); d++) {
        clv__distance here;
        w.only = n > 1 && d < n ? d : -1;
        w.seed = seed + (uint64_t)d;
        status = one_direction(&w, step > 0 ? step : 1e-5, error, &here);
        here.index = d;
        if (status == CLV_OK && (out->index < 0 || here.ratio > out->ratio)) *out = here;
    }
    clv__values_reset(&w.scratch);
    return status;
}
