// SPDX-License-Identifier: Apache-2.0
// What softmax and the softmax of attention have in common: a gradient that is made of dy and y, x and dx that may be stored in
// two bytes while dy and y are floats, and samples of the backward op made from those of the forward one.
#ifndef CLV_OPS_SOFTMAX_H
#define CLV_OPS_SOFTMAX_H

#include "ops/lower.h"

/** Is this a use of the backward op, whose inputs are dy and y? */
static inline bool clv__softmax_is_backward(const clv__op_io *io) {
    return io->n_in == 2;
}

/** The first arguments: the result and the inputs; T_X or T_DX is how x or dx is stored. */
static inline void clv__softmax_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io) {
    clv__arg_tensors(list, launch, io, clv__softmax_is_backward(io) ? "o0=T_DX i0 i1" : "o0 i0=T_X");
}

/** Make a forward op's sample one of its backward op. */
static inline void clv__softmax_sample_backward(clv__sample *sample) {
    sample->n_in = 2;
    sample->in[1] = sample->in[0];
    sample->fill[0] = (clv__fill){sample->fill[0].kind, -1, 1};
    sample->fill[1] = (clv__fill){CLV__FILL_UNIFORM, 0, 0.1}; // y; any values do for the formula
}

#endif
