// SPDX-License-Identifier: Apache-2.0
// Epilogues (clv__epilogue) as the kernels' parameters of kernels_cl/common/epilogue.cl.
#ifndef CLV_OPS_EPILOGUE_H
#define CLV_OPS_EPILOGUE_H

#include "graph/op.h"

/** An op that does the same to all elements of a channel, dimension 1 of input 0, as texts in OpenCL C: what is made once for each
 *  channel, and what is done to its elements. The other inputs are [C] in f32. The words are those of elementwise.def. */
typedef struct clv__channel_row {
    const char *names[CLV__STEP_INPUTS];           // of the inputs in the texts; NULL after the last
    const char *absent[CLV__STEP_INPUTS];          // what stands for an optional one that is not there
    const char *values[CLV__EPILOGUE_CHANNELS];    // names of what is made for a channel; NULL after the last
    const char *of_inputs[CLV__EPILOGUE_CHANNELS]; // over the names of the inputs but the first, and P0
    const char *expression;                        // over the first input's name and `values`
    float (*p0)(const void *attrs);                // P0
} clv__channel_row;

/** Can this use of an op be a step: floats in and out, and parameters that a text can have? */
bool clv__epilogue_takes(const clv__op_io *io);

/** What an input of a step is to an op whose result the step is done to. */
typedef enum clv__step_input {
    CLV__STEP_OTHER, // nothing that an epilogue can read
    CLV__STEP_ELEMENT,
    CLV__STEP_CHANNEL
} clv__step_input;
clv__step_input clv__epilogue_input(const clv__op *base, const clv__op_io *step, int i);

/** Where further inputs begin: behind every place of the op's signature, one that the node was added without too, as what stands there
 *  is that input to the op. */
int clv__epilogue_first(const clv__op_io *io);
/** Is there room for the epilogue in a launch? */
bool clv__epilogue_fits(const clv__epilogue *epilogue);
/** Tell a kernel what is done to its results besides, if anything is: the last of its arguments. */
void clv__arg_epilogue(clv__launches *list, clv__launch *launch, const clv__op_io *io);

#endif
