// SPDX-License-Identifier: Apache-2.0
// One sample of an op as a graph: inputs, the op, a loss over its result, and the gradients.
#ifndef CLV_CHECK_SUBJECT_H
#define CLV_CHECK_SUBJECT_H

#include "check/interpret.h"

enum { CLV__MAX_TARGETS = 2 * CLV__MAX_IN + CLV__MAX_OUT };

typedef struct clv__subject {
    const clv__op *op;
    clv__sample sample;
    clv_graph *graph;
    clv__node *node;             // the op's; of a composite the last
    clv_tensor *in[CLV__MAX_IN]; // NULL: not there; sample.n_in of them, those of an epilogue included
    clv_tensor *loss;            // sum(output 0 * random weights); NULL if the sample has no gradient
    clv__values start; // inputs and persistents, by clv__subject_fill; all that a float can hold exactly
    clv_tensor *targets[CLV__MAX_TARGETS]; // what is compared: outputs, mutated inputs, gradients
    char what[CLV__MAX_TARGETS][96];
    int n_targets;
} clv__subject;

/** Random state of a subject's graph. */
enum { CLV__SUBJECT_STEP = 3 };

/** Values for a tensor, rounded to its dtype. The same seed and id give the same. */
void clv__fill_values(const clv__fill *fill, const clv__desc *desc, uint64_t seed, uint64_t id,
                      double *values);

/** The sample with what the op takes in two bytes stored so: all inputs, or every second one, and the outputs. */
void clv__sample_store(const clv__op *op, clv_dtype dtype, bool all, clv__sample *sample);

/** The sample with ops after it, of all kinds that an epilogue has: steps with and without a further input, the same shape twice, a
 *  parameter; where the op has channels, batch norm or a factor for each. False: the op takes none, there is no room, or no float
 *  to do it to. */
bool clv__sample_follow(const clv__op *op, clv__sample *sample);

/** Build the sample's graph. with_gradient: append the backward pass if the op has one. */
clv_status clv__subject_init(clv__subject *subject, clv_runtime *runtime, const clv__op *op,
                             const clv__sample *sample, bool with_gradient);
/** Make and fill `start`. */
clv_status clv__subject_fill(clv__subject *subject, uint64_t seed);
void clv__subject_reset(clv__subject *subject);

#endif
