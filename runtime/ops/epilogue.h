// SPDX-License-Identifier: Apache-2.0
// Epilogues (clv__epilogue) as the kernels' parameters of kernels_cl/common/epilogue.cl.
#ifndef CLV_OPS_EPILOGUE_H
#define CLV_OPS_EPILOGUE_H

#include "graph/op.h"

/** Can this use of an elementwise op be a step: floats in and out, all inputs of the output's shape? */
bool clv__epilogue_takes(const clv__op_io *io);
/** Is there room for the epilogue in a launch? */
bool clv__epilogue_fits(const clv__epilogue *epilogue);
/** Tell a kernel what is done to its results besides, if anything is: the last of its arguments. */
void clv__arg_epilogue(clv__launches *list, clv__launch *launch, const clv__op_io *io);

#endif
