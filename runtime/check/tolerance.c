// SPDX-License-Identifier: Apache-2.0
// Tolerances from three parts: what a driver's functions may be off, what a sum of K terms may be off, and how much the
// computation at hand multiplies the rounding of what comes before. The last is measured, not guessed: the graph is
// evaluated again in double with errors of float size on every tensor. Sources: Higham 2002, "Accuracy and Stability of
// Numerical Algorithms", sections 3.1 and 4.2 (sums: K eps at worst, sqrt(K) eps when roundings are independent);
// OpenCL 1.2 specification, section 7.4 (ULP).
#include "check/tolerance.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/dtype.h"

// The least exact functions a full-profile driver may have are erf and pow with 16 ULP; an ULP is at most FLT_EPSILON of
// the value. The same again, absolute, for functions that end in a difference of values up to 1 (1 + erf, 1 - y*y), or
// up to the tensor's largest value where that is smaller.
static const double FUNCTION_ULP = 16;

// Such a difference may also be scaled by another input (dy * (1 + erf)), and all results of a small tensor happen to be
// small: half of 16 ULP of a value below 1, so 4 FLT_EPSILON, of the smaller input.
static const double INSIDE_ULP = 4;

// A disturbance puts uniform errors of at most 1 FLT_EPSILON (times sqrt(K)) on each value; roundings are at most half
// of one and functions 3 to 5 ULP. Eight times the effect (CLV__SWAY_FACTOR) leaves a sum in any order 20 standard deviations of
// room. Roundings toward zero are not independent: there K terms may be off by K, which is the worst case, and no more is given.

enum { TRIALS = 4 };

static clv_status values_copy(clv__values *to, const clv__values *from, clv__error *error) {
    if (to->n == 0) CLV_TRY(clv__values_init(to, from->graph, error));
    for (size_t i = 0; i < from->n; i++)
        memcpy(to->data[i], from->data[i],
               (size_t)clv__numel(&from->graph->tensors[i]->desc) * sizeof(double));
    return CLV_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Four trials can miss: an element is given at least a quarter of what its middle neighbour has.
static clv_status lift_low(double *sway, int64_t n, clv__error *error) {
    if (n == 0) return CLV_OK;
    double *sorted = clv__alloc((size_t)n, sizeof *sorted);
    if (!sorted) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory to sort %lld values", (long long)n);
    memcpy(sorted, sway, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_doubles);
    double least = 0.25 * sorted[(n - 1) / 2];
    free(sorted);
    for (int64_t i = 0; i < n; i++)
        if (sway[i] < least) sway[i] = least;
    return CLV_OK;
}

// One and two parts of disturbance must move an element by one and two parts. Where they do not, it jumped (a comparison
// of equal numbers, a tie), and the tolerance must not hide a jump: the device sees the undisturbed numbers.
static void add_trial(double *sway, const double *want, const double *one, const double *two, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double d1 = one[i] - want[i], d2 = two[i] - want[i];
        if (!isfinite(d1) || !isfinite(d2)) continue;
        if (fabs(d2 - 2 * d1) > 0.5 * fabs(d1) + 1e-13 * fabs(want[i])) continue;
        sway[i] += d1 * d1 / TRIALS;
    }
}

/** Does the device round to nearest, as one does that does not tell? */
static bool rounds_one_way(const clv_device *device) {
    const uint32_t floats = device ? clv_device_info_get(device)->floats : 0;
    return floats && !(floats & CLV_FLOATS_ROUND_NEAREST);
}

clv_status clv__expected_init(clv__expected *expected, const clv__values *start, clv_tensor *const *targets,
                              int n, const clv_device *device, clv__error *error) {
    clv__values one = {0}, two = {0};
    clv_status status;
    *expected = (clv__expected){.one_way = rounds_one_way(device)};
    expected->sway = clv__alloc(start->n + 1, sizeof *expected->sway);
    expected->scale = clv__alloc(start->n + 1, sizeof *expected->scale);
    status =
        expected->sway && expected->scale
            ? CLV_OK
            : clv__error_set(error, CLV_E_HOST_MEMORY, "no memory for tolerances of %zu tensors", start->n);
    if (status == CLV_OK) status = values_copy(&expected->want, start, error);
    if (status == CLV_OK) status = clv__interpret(&expected->want, NULL, error);
    for (size_t id = 0; status == CLV_OK && id < start->n; id++) {
        int64_t numel = clv__numel(&start->graph->tensors[id]->desc);
        for (int64_t i = 0; i < numel; i++) {
            double v = fabs(expected->want.data[id][i]);
            if (v <= FLT_MAX && v > expected->scale[id]) expected->scale[id] = v;
        }
    }
    for (int k = 0; status == CLV_OK && k < n; k++) {
        int id = targets[k]->id;
        int64_t numel = clv__numel(&targets[k]->desc);
        if (!clv__is_float(targets[k]->desc.dtype) || expected->sway[id]) continue;
        expected->sway[id] = clv__alloc((size_t)numel + 1, sizeof(double));
        if (!expected->sway[id])
            status = clv__error_set(error, CLV_E_HOST_MEMORY, "no memory for tolerances of '%s'",
                                    targets[k]->name);
    }
    for (uint64_t trial = 0; status == CLV_OK && trial < TRIALS; trial++) {
        status = values_copy(&one, start, error);
        if (status == CLV_OK) status = values_copy(&two, start, error);
        if (status == CLV_OK)
            status = clv__interpret(&one, &(clv__noise){1, trial, expected->one_way}, error);
        if (status == CLV_OK)
            status = clv__interpret(&two, &(clv__noise){2, trial, expected->one_way}, error);
        for (size_t id = 0; status == CLV_OK && id < start->n; id++)
            if (expected->sway[id])
                add_trial(expected->sway[id], expected->want.data[id], one.data[id], two.data[id],
                          clv__numel(&start->graph->tensors[id]->desc));
    }
    for (size_t id = 0; status == CLV_OK && id < start->n; id++) {
        if (!expected->sway[id]) continue;
        int64_t numel = clv__numel(&start->graph->tensors[id]->desc);
        for (int64_t i = 0; i < numel; i++) expected->sway[id][i] = sqrt(expected->sway[id][i]);
        status = lift_low(expected->sway[id], numel, error);
    }
    clv__values_reset(&one);
    clv__values_reset(&two);
    if (status != CLV_OK) clv__expected_reset(expected);
    return status;
}

void clv__expected_reset(clv__expected *expected) {
    for (size_t i = 0; expected->sway && i < expected->want.n; i++) free(expected->sway[i]);
    free(expected->sway);
    free(expected->scale);
    clv__values_reset(&expected->want);
    *expected = (clv__expected){0};
}

/** What sums of products may be off whose terms are rounded otherwise than to f32: of `terms` roundings that are independent, four
 *  standard deviations with the largest of both factors, so many more with usual ones. Where other ops follow: what f32's roundings
 *  come to, so many times. */
static double rounded_sums(const clv__expected *expected, const clv__node *node, int64_t terms, double sway) {
    const double coarser = expected->roundoff / FLT_EPSILON * sway;
    if (!node || !node->io.op->reduction || !node->in[0] || !node->in[1]) return coarser;
    return fmin(coarser, sway + 4 * expected->roundoff * sqrt((double)terms) *
                                    expected->scale[node->in[0]->id] * expected->scale[node->in[1]->id]);
}

double clv__tolerance(const clv__expected *expected, const clv_tensor *target, int64_t index) {
    clv_dtype dtype = target->desc.dtype;
    if (!clv__is_float(dtype)) return 0;
    const clv__op_io *io = target->node ? &target->node->io : NULL;
    int64_t terms = io && io->op->reduction ? io->op->reduction(io) : 1;
    double sum_ulp = terms <= 1 ? 0 : expected->one_way ? (double)terms : sqrt((double)terms);
    double want = fabs(expected->want.data[target->id][index]);
    double scale = fmin(1, expected->scale[target->id]), inside = 1;
    for (int i = 0; io && i < io->n_in; i++)
        if (clv__is_float(io->in[i].dtype)) inside = fmin(inside, expected->scale[target->node->in[i]->id]);
    double stored =
        clv__is_half(dtype) ? clv__dtype_epsilon(dtype) / 2 * fmax(want, clv__dtype_smallest(dtype)) : 0;
    double sway = CLV__SWAY_FACTOR * expected->sway[target->id][index];
    if (expected->roundoff > 0) sway = rounded_sums(expected, target->node, terms, sway);
    return stored +
           FLT_EPSILON *
               ((FUNCTION_ULP + sum_ulp) * want + FUNCTION_ULP * scale + (io ? INSIDE_ULP * inside : 0)) +
           sway + FLT_MIN; // FLT_MIN: denormals may be flushed to zero
}

/** As OpenCL 1.2, section 7.4, has it: the distance of the two floats around a value. */
static double ulp_of(clv_dtype dtype, double value) {
    int exponent;
    frexp(fmax(fabs(value), clv__dtype_smallest(dtype)), &exponent);
    return ldexp(clv__dtype_epsilon(dtype), exponent - 1);
}

clv__distance clv__expected_distance(const clv__expected *expected, const clv_tensor *target,
                                     const void *got) {
    clv__distance worst = {.index = -1, .ratio = -1};
    int64_t n = clv__numel(&target->desc);
    for (int64_t i = 0; i < n; i++) {
        clv_dtype dtype = target->desc.dtype;
        clv__distance here = {.index = i, .want = expected->want.data[target->id][i]};
        clv__elements_widen(dtype, (const char *)got + (size_t)i * clv_dtype_bytes(dtype), 1, &here.got);
        if (clv__is_float(dtype)) {
            // What does not fit into the type is infinite there too.
            double rounded;
            uint64_t element;
            clv__elements_narrow(dtype, &here.want, 1, &element);
            clv__elements_widen(dtype, &element, 1, &rounded);
            if (!isfinite(rounded)) here.want = rounded;
        }
        here.tolerance = isfinite(here.want) ? clv__tolerance(expected, target, i) : 0;
        if (here.got == here.want || (isnan(here.got) && isnan(here.want))) {
            here.error = here.ratio = 0;
        } else if (!isfinite(here.got) || !isfinite(here.want)) {
            here.error = here.ratio = INFINITY;
        } else {
            here.error = fabs(here.got - here.want);
            here.ratio = here.tolerance > 0 ? here.error / here.tolerance : INFINITY;
        }
        if (here.ratio > worst.ratio) worst = here;
    }
    if (n == 0) worst.ratio = 0;
    if (clv__is_float(target->desc.dtype) && isfinite(worst.want) && n > 0)
        worst.ulp = ulp_of(target->desc.dtype, worst.want);
    return worst;
}

static double element(const clv_tensor *tensor, const void *elements, int64_t i) {
    const clv_dtype dtype = tensor->desc.dtype;
    double value;
    clv__elements_widen(dtype, (const char *)elements + (size_t)i * clv_dtype_bytes(dtype), 1, &value);
    return value;
}

bool clv__tolerance_agree(const clv_tensor *target, const clv_device *device, const void *a, const void *b) {
    const clv__op_io *io = target->node ? &target->node->io : NULL;
    int64_t n = clv__numel(&target->desc);
    double scale = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(element(target, a, i));
        if (x <= FLT_MAX && x > scale) scale = x;
    }
    double allowed =
        !clv__is_float(target->desc.dtype)
            ? 0
            : CLV__SWAY_FACTOR * FLT_EPSILON *
                      (FUNCTION_ULP + (io ? clv__rounding_reach(io, rounds_one_way(device)) : 1)) * scale +
                  FLT_MIN;
    for (int64_t i = 0; i < n; i++) {
        double x = element(target, a, i), y = element(target, b, i);
        if (!(fabs(x - y) <= allowed) && !(x == y) && !(isnan(x) && isnan(y))) return false;
    }
    return true;
}
