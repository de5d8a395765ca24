// SPDX-License-Identifier: Apache-2.0
// A graph evaluated in double by the ops' references: the oracle of gradient checks and of whole models.
// Nothing of plan or exec is used, so that what they do can be held against it.
#ifndef CLV_CHECK_INTERPRET_H
#define CLV_CHECK_INTERPRET_H

#include "graph/graph.h"

/** The value of every tensor of a graph, as doubles, by tensor id. Zero-initialised is empty. */
typedef struct clv__values {
    const clv_graph *graph;
    double **data; // graph->n_tensors of them; every one is there after clv__values_init
    size_t n;
} clv__values;

/** Room for every tensor, all zero. The graph must not grow afterwards. */
clv_status clv__values_init(clv__values *values, const clv_graph *graph, clv__error *error);
void clv__values_reset(clv__values *values);

/** The values of a tensor: clv_tensor_numel of them. Borrowed. */
double *clv__values_of(const clv__values *values, const clv_tensor *tensor);

/** Copy from, or to, elements of the tensor's dtype. */
void clv__values_set(clv__values *values, const clv_tensor *tensor, const void *elements);
void clv__values_get(const clv__values *values, const clv_tensor *tensor, void *elements);
/** The random state that ops like dropout read; nothing if the graph has none. */
void clv__values_set_random(clv__values *values, uint64_t seed, int64_t step);

/** Of a disturbance's effect so many times as much is allowed: see tolerance.c. */
enum { CLV__SWAY_FACTOR = 8 };

/** What roundings in the longest sum of a use add up to. Independent of each other sqrt(K) of K terms; where all go one way, up to
 *  K, of which this is the part that makes K with the factor above. */
double clv__rounding_reach(const clv__op_io *io, bool one_way);

/** Small relative errors put on every float tensor, to learn how a graph carries them on. All zero: none. */
typedef struct clv__noise {
    double size;   // in units of FLT_EPSILON * what roundings in the longest sum that the tensor is part of add up to
    uint64_t seed; // which errors; the same seed gives the same signs and proportions at every size
    bool one_way;  // roundings go one way, not either: in a sum of K terms they add up to K, not to sqrt(K)
} clv__noise;

/**
 * Compute every node in order from the inputs and persistents in `values`. In-place updates change the persistents there,
 * as a step does. noise NULL: none.
 */
clv_status clv__interpret(clv__values *values, const clv__noise *noise, clv__error *error);

#endif
