// SPDX-License-Identifier: Apache-2.0
// Dynamic programming over (devices used, layers placed), as in Narayanan et al. 2019, PipeDream
// (arXiv:1806.03377, section 3.1), without replication. It runs twice: the first run finds the least possible
// maximum over the stages, the second the least total among divisions whose maximum is about that.
#include "placement/divide.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_ORDERED = 4 }; // more devices are taken in the order in which they were named
static const double about_equal = 1.1, clearly_less = 0.98;

/** One way through the table: devices in an order. */
typedef struct dividing {
    const clv__layers *layers;
    const clv__limits *limits;
    clv__goal goal;
    int order[CLV__MOST_DEVICES];
    double *best; // [devices used][layers placed]
    int *from;    // [devices used][layers placed]: layers placed before the last device
} dividing;

static double bytes_of(const dividing *d, int device, int first, int end) {
    return (double)clv__layers_bytes(d->layers, device, first, end) * d->limits->factor[device];
}

/** What a stage counts for the maximum, infinite if it may not be. */
static double weight(const dividing *d, int device, int first, int end) {
    double bytes = bytes_of(d, device, first, end), limit = (double)d->limits->bytes[device];
    if (d->goal == CLV__GOAL_FILL) return bytes / (limit > 1 ? limit : 1);
    if (bytes > limit) return INFINITY;
    return d->goal == CLV__GOAL_SECONDS ? clv__layers_seconds(d->layers, device, first, end) : bytes;
}

/** What a stage adds to the total. */
static double share(const dividing *d, int device, int first, int end) {
    return d->goal == CLV__GOAL_SECONDS ? clv__layers_seconds(d->layers, device, first, end)
                                        : bytes_of(d, device, first, end);
}

/** Fill the table: the least maximum (`most` infinite), or the least total with no stage above `most`.
 *  Returns that. */
static double fill(const dividing *d, double most) {
    int n = d->layers->n, columns = n + 1;
    for (int j = 0; j <= n; j++) d->best[j] = j ? INFINITY : 0;
    for (int k = 1; k <= d->layers->n_devices; k++) {
        int device = d->order[k - 1];
        for (int j = 0; j <= n; j++) {
            double *best = &d->best[k * columns + j];
            *best = INFINITY;
            for (int i = j; i >= 0; i--) { // a device that does nothing is tried first
                double before = d->best[(k - 1) * columns + i], own = weight(d, device, i, j), both;
                if (isinf(before) || isinf(own) || own > most) continue;
                both = isinf(most) ? fmax(before, own) : before + share(d, device, i, j);
                if (both >= *best) continue;
                *best = both;
                d->from[k * columns + j] = i;
            }
        }
    }
    return d->best[d->layers->n_devices * columns + n];
}

static void read_back(const dividing *d, clv__division *out) {
    int end = d->layers->n;
    out->n = d->layers->n_devices;
    for (int k = out->n; k > 0; k--) {
        out->device[k - 1] = d->order[k - 1];
        out->end[k - 1] = end;
        end = d->from[k * (d->layers->n + 1) + end];
    }
}

/** The next order, in the order of a dictionary; false after the last. */
static bool next_order(int *order, int n) {
    int i = n - 2, j = n - 1;
    while (i >= 0 && order[i] > order[i + 1]) i--;
    if (i < 0) return false;
    while (order[j] < order[i]) j--;
    int swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
    for (int a = i + 1, b = n - 1; a < b; a++, b--)
        swapped = order[a], order[a] = order[b], order[b] = swapped;
    return true;
}

static void first_order(dividing *d) {
    for (int i = 0; i < d->layers->n_devices; i++) d->order[i] = i;
}

static bool divide_best(dividing *d, clv__division *out) {
    int n = d->layers->n_devices;
    bool any_order = d->goal == CLV__GOAL_SECONDS && n <= MOST_ORDERED;
    double least = INFINITY, least_total = INFINITY;
    first_order(d);
    do {
        least = fmin(least, fill(d, INFINITY));
    } while (any_order && next_order(d->order, n));
    if (isinf(least)) return false;
    first_order(d);
    do {
        double total = fill(d, least * about_equal);
        if (total >= least_total * clearly_less)
            continue; // the devices' own order, unless another is worth it
        least_total = total;
        read_back(d, out);
    } while (any_order && next_order(d->order, n));
    return !isinf(least_total);
}

static bool divide_in_turn(const dividing *d, clv__division *out) {
    int at = 0, n = d->layers->n;
    out->n = d->layers->n_devices;
    for (int k = 0; k < out->n; k++) {
        int end = n;
        while (end > at && isinf(weight(d, k, at, end))) end--;
        out->device[k] = k;
        out->end[k] = at = end;
    }
    return at == n;
}

bool clv__divide(const clv__layers *layers, clv__goal goal, const clv__limits *limits, clv__division *out) {
    dividing d = {.layers = layers, .limits = limits, .goal = goal};
    size_t cells = ((size_t)layers->n_devices + 1) * ((size_t)layers->n + 1);
    *out = (clv__division){0};
    if (goal == CLV__GOAL_FIRST) return divide_in_turn(&d, out);
    d.best = clv__alloc(cells, sizeof *d.best);
    d.from = clv__alloc(cells, sizeof *d.from);
    bool found = d.best && d.from && divide_best(&d, out);
    free(d.best);
    free(d.from);
    return found;
}
