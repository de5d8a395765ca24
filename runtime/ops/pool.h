// SPDX-License-Identifier: Apache-2.0
// What max_pool.c and avg_pool.c share: windows over [N,C,H,W]. Their kernels stand together in kernels_cl/pool.cl and take the
// same arguments in the same order.
#ifndef CLV_OPS_POOL_H
#define CLV_OPS_POOL_H

#include "cleave/ops.h"
#include "ops/lower.h"

/** The attributes of all four ops; [0] is H, [1] is W. */
typedef struct clv__pool {
    int kernel[2], stride[2], padding[2], dilation[2];
    int ceil_mode, exclude_padding;
    int size[2]; // avg_pool2d_backward: H and W of x, which it does not read
} clv__pool;

/** All sizes of one use, as kernels and references want them. */
typedef struct clv__pool_sizes {
    int64_t planes, H, W, OH, OW, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h,
        dilation_w;
} clv__pool_sizes;

/** A work-item's loops may turn so often (kernels_cl/README.md), with some room. */
enum { CLV__POOL_TURNS = 65000 };

/** x is input 0. `dilates`: the op has dilation. */
clv_status clv__pool_infer(clv__op_io *io, bool dilates, clv__error *error);
/** Along images or channels: a plane is by itself. */
bool clv__pool_split(const clv__op_io *io, int i, clv__split *out);
/** dy is input 0; dx gets the shape of x, and dy must have that of y. */
clv_status clv__pool_backward_infer(clv__op_io *io, const clv_shape *x, bool dilates, clv__error *error);

clv__pool_sizes clv__pool_forward_sizes(const clv__op_io *io);
clv__pool_sizes clv__pool_backward_sizes(const clv__op_io *io);
/** Turns of loops over the elements of one window. */
int64_t clv__pool_window_turns(const clv__pool_sizes *sizes);

// Arguments, in this order: y and x, or dx and dy, or dx, dy and x if the op reads it; then n and the sizes.

void clv__pool_x_y(clv__launches *list, clv__launch *launch, const clv__op_io *io);
/** Kernels take dx for stored as x, which is a float where they have none. */
void clv__pool_dx_dy(clv__launches *list, clv__launch *launch, const clv__op_io *io, clv_dtype x);
void clv__pool_dx_dy_x(clv__launches *list, clv__launch *launch, const clv__op_io *io);
void clv__pool_window_args(clv__launches *list, clv__launch *launch, int64_t n, const clv__pool_sizes *sizes,
                           bool dilates);

// Any window on devices with few, wide cores: by rows of outputs, or (the average's gradient) by planes of inputs.

bool clv__pool_rows_support(const clv_device_info *device, const clv__op_io *io);
/** Adds up in dx itself, which must not round. */
bool clv__pool_planes_support(const clv_device_info *device, const clv__op_io *io);
double clv__pool_wide_rank(const clv_device_info *device, const clv__op_io *io);
/** One launch over n rows or planes of `width` elements: as above with a number of rows in place of elements. NULL: none, n is 0. */
clv__launch *clv__pool_wide(clv__launches *list, const clv__op_io *io, const char *entry,
                            const clv__pool_sizes *sizes, int64_t n, int64_t width, bool dilates,
                            bool backward);

void clv__pool_cost(const clv__op_io *io, clv__cost *out);
void clv__pool_backward_cost(const clv__op_io *io, clv__cost *out);
/** Elements of a window, for `reduction`. */
int64_t clv__pool_window_elements(const clv__op_io *io);
bool clv__pool_sample(int i, clv__sample *out, bool dilates, bool backward);
clv_tensor *clv__pool_build(const clv__op *op, clv_tensor *x, const clv_pool2d_config *config);

#endif
