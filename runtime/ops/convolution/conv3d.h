// SPDX-License-Identifier: Apache-2.0
// Shared by conv3d.c and conv3d_planes.c.
#ifndef CLV_OPS_CONV3D_H
#define CLV_OPS_CONV3D_H

#include "graph/signature.h"
#include "ops/convolution/conv2d.h"

extern const clv__op clv__op_conv3d, clv__op_conv3d_backward_input, clv__op_conv3d_backward_weight,
    clv__op_conv_transpose3d;

/** Lists of three numbers, of D, H and W. */
#define CLV__CONV3D_ATTRS                                                                                    \
    clv__ints stride, padding, dilation;                                                                     \
    int32_t groups
typedef struct clv__conv3d_attrs {
    CLV__CONV3D_ATTRS;
} clv__conv3d_attrs;
typedef struct clv__transpose3d_attrs { // the same first
    CLV__CONV3D_ATTRS;
    clv__ints output_padding;
} clv__transpose3d_attrs;

/** Is it y that is read, and x, or what is as long, that is made? */
static inline bool clv__conv3d_back(const clv__op_io *io) {
    return io->op == &clv__op_conv3d_backward_input || io->op == &clv__op_conv_transpose3d;
}

/** The convolution behind any of the four ops: of three dimensions. */
clv__conv2d clv__conv3d_of(const clv__op_io *io);

// runtime/ops/convolution/conv3d_planes.c
bool clv__conv3d_planes_supports(const clv_device_info *device, const clv__op_io *io);
double clv__conv3d_planes_rank(const clv_device_info *device, const clv__op_io *io);
void clv__conv3d_planes_lower(clv__launches *list, const clv__op_io *io);
void clv__conv3d_planes_weight(clv__launches *list, const clv__op_io *io);

#endif
