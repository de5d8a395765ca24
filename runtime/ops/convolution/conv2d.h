// SPDX-License-Identifier: Apache-2.0
// Shared by the files of the convolution family: the problem, and the variants beside plain.
#ifndef CLV_OPS_CONV2D_H
#define CLV_OPS_CONV2D_H

#include "cleave/ops.h"
#include "ops/tiles.h"
#include "ops/window.h"

extern const clv__op clv__op_conv2d, clv__op_conv2d_backward_input, clv__op_conv2d_backward_weight,
    clv__op_conv_transpose2d;

/** Attributes of conv2d and its gradients, and the first ones of what shares their kernels; [0] is the outermost dimension of a window, H of
 *  an image. */
#define CLV__CONV2D_ATTRS                                                                                    \
    int32_t stride[CLV__WINDOW_DIMS], padding[CLV__WINDOW_DIMS], dilation[CLV__WINDOW_DIMS], groups
typedef struct clv__conv2d_attrs {
    CLV__CONV2D_ATTRS;
} clv__conv2d_attrs;

/** The convolution behind any of the ops. Channels are of one group; [0] is H, [1] is W. */
typedef struct clv__conv2d {
    int64_t n, groups, in_channels, out_channels;
    union {
        clv__windows windows;
        struct {
            CLV__WINDOWS;
        };
    };
    bool bias;
} clv__conv2d;

clv__conv2d clv__conv2d_of(const clv__op_io *io);
/** Is there anything to add up? Not without images, channels, or pixels (x may be all padding); plain kernels know that. */
static inline bool clv__conv2d_sums(const clv__conv2d *c) {
    return c->n > 0 && c->in_channels > 0 && c->out_channels > 0 && c->in[0] > 0 && c->in[1] > 0;
}
/** Pairs of a result's row (d 0) or column (d 1) and a tap of the kernel that meet inside of the image. */
int64_t clv__conv2d_meetings(const clv__conv2d *c, int d);
/** Append the sixteen sizes that the plain kernels and the weight kernel take in the same order. */
void clv__conv2d_sizes(clv__launches *list, clv__launch *launch, const clv__conv2d *c);

/** Append the launch that adds the n parts in the workspace, in order, to output 0: the weights' gradient. */
void clv__conv2d_add_parts(clv__launches *list, clv__part parts, int64_t size, int64_t n);
/** The same of what makes output 0 from dy and x, inputs 0 and 1: the parts, or output 0 where it is whole (no bytes), and both. */
void clv__conv2d_weight_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                                clv__part parts);

/** A transposed convolution's output padding is below the stride or, by PyTorch's rule, the dilation: the input with as many rows of zeros
 *  behind it as leave one below the stride (runtime/ops/convolution/conv_transpose.c). */
clv_tensor *clv__conv_extended(clv_tensor *x, int axis, int stride, int dilation, int *output_padding);

// runtime/ops/convolution/reference.c: y of x and weight; x, or what is as long, of y and weight; weight of y and x. Inputs and output 0
// are these, and input 2 the bias.
void clv__conv_forward(const clv__ref *ref, const clv__conv2d *c);
void clv__conv_back(const clv__ref *ref, const clv__conv2d *c);
void clv__conv_weight(const clv__ref *ref, const clv__conv2d *c);

// Of each file the variants: `supports`, `rank` and `lower` are of conv2d, and of its gradient by the input and conv_transpose2d, the same
// correlation with x and y exchanged. What ends in `weight` is of the gradient by the weights.
static inline bool clv__conv2d_back(const clv__op_io *io) {
    return io->op == &clv__op_conv2d_backward_input || io->op == &clv__op_conv_transpose2d;
}

// runtime/ops/convolution/conv2d.c, of conv2d and of clv__conv2d_back
extern const clv__variant clv__conv2d_variants[];
void clv__conv2d_cost(const clv__op_io *io, clv__cost *cost);
int64_t clv__conv2d_reduction(const clv__op_io *io);
void clv__conv2d_reference_back(const clv__ref *ref);
/** What descriptors of such ops have in common. */
#define CLV__CONV2D_SUMS .cost = clv__conv2d_cost, .reduction = clv__conv2d_reduction
#define CLV__CONV2D_OF_IMAGES                                                                                \
    .epilogue = true, .channels = 1, .half_in = 1, .half_out = 1, .variants = clv__conv2d_variants,          \
    CLV__CONV2D_SUMS

// runtime/ops/convolution/conv2d_tile.c
bool clv__conv2d_tile_supports(const clv_device_info *device, const clv__op_io *io);
bool clv__conv2d_tile_supports_weight(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_tile_lower(clv__launches *list, const clv__op_io *io);
void clv__conv2d_tile_weight(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_gemm.c, of all three ops
bool clv__conv2d_gemm_supports(const clv_device_info *device, const clv__op_io *io);
double clv__conv2d_gemm_rank(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_gemm_lower(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_channels.c
bool clv__conv2d_channels_supports(const clv_device_info *device, const clv__op_io *io);
bool clv__conv2d_channels_supports_weight(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_channels_lower(clv__launches *list, const clv__op_io *io);
void clv__conv2d_channels_weight(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_depthwise.c; it supports all three ops
bool clv__conv2d_depthwise_supports(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_depthwise_lower(clv__launches *list, const clv__op_io *io);
void clv__conv2d_depthwise_weight(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_images.c
bool clv__conv2d_images_supports(const clv_device_info *device, const clv__op_io *io);
double clv__conv2d_images_rank(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_images_lower(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_images_weight.c
bool clv__conv2d_images_supports_weight(const clv_device_info *device, const clv__op_io *io);
double clv__conv2d_images_rank_weight(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_images_weight(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_winograd.c
bool clv__conv2d_winograd_supports(const clv_device_info *device, const clv__op_io *io);
bool clv__conv2d_winograd_supports_weight(const clv_device_info *device, const clv__op_io *io);
double clv__conv2d_winograd_rank(const clv_device_info *device, const clv__op_io *io);
double clv__conv2d_winograd_rank_weight(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_winograd_lower(clv__launches *list, const clv__op_io *io);
void clv__conv2d_winograd_weight(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_winograd_lanes.c, `supports` and `rank` of all three ops
bool clv__conv2d_winograd_lanes_supports(const clv_device_info *device, const clv__op_io *io);
double clv__conv2d_winograd_lanes_rank(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_winograd_lanes_lower(clv__launches *list, const clv__op_io *io);
void clv__conv2d_winograd_lanes_weight(clv__launches *list, const clv__op_io *io);

// runtime/ops/convolution/conv2d_winograd_fused.c
bool clv__conv2d_winograd_fused_supports(const clv_device_info *device, const clv__op_io *io);
void clv__conv2d_winograd_fused_lower(clv__launches *list, const clv__op_io *io);

#endif
