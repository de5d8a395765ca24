// SPDX-License-Identifier: Apache-2.0
// What max_pool.c and avg_pool.c share: windows over [N,C,H,W]. Their kernels stand together in kernels_cl/pool.cl and take the
// same arguments in the same order.
#ifndef CLV_OPS_POOL_H
#define CLV_OPS_POOL_H

#include "cleave/ops.h"
#include "ops/window.h"

/** The attributes of all four ops; [0] is the outermost dimension of a window, H of an image. */
typedef struct clv__pool {
    int32_t kernel[CLV__WINDOW_DIMS], stride[CLV__WINDOW_DIMS], padding[CLV__WINDOW_DIMS],
        dilation[CLV__WINDOW_DIMS];
    int32_t ceil_mode, exclude_padding;
} clv__pool;

/** All sizes of one use, as kernels and references want them. */
typedef struct clv__pool_sizes {
    int64_t planes;
    union {
        clv__windows windows;
        struct {
            CLV__WINDOWS;
        };
    };
} clv__pool_sizes;

/** A work-item's loops may turn so often (kernels_cl/README.md), with some room. */
enum { CLV__POOL_TURNS = 65000 };
/** ROOM of the kernel file. */
enum { CLV__POOL_ROOM = 4096 };

/** Is it an average? Else a maximum, whose descriptors have no `data`. */
static inline bool clv__pool_is_mean(const clv__op_io *io) {
    return io->op->data != NULL;
}
static inline int clv__pool_excludes(const clv__op_io *io) {
    return ((const clv__pool *)io->attrs)->exclude_padding;
}

/** x is input 0. */
clv_status clv__pool_infer(clv__op_io *io, clv__error *error);
/** Along images or channels: a plane is by itself. */
bool clv__pool_split(const clv__op_io *io, int i, clv__split *out);

clv__pool_sizes clv__pool_sizes_of(const clv__op_io *io);
/** Turns of loops over the elements of one window. */
int64_t clv__pool_window_turns(const clv__pool_sizes *sizes);

// Arguments, in this order: y and x, or dx, dy and x if the op reads it; then n and the sizes, and dilation, or exclude_padding.

/** n sizes, and what comes behind them. */
void clv__pool_window_args(clv__launches *list, clv__launch *launch, const clv__op_io *io, int64_t n);
/** One work-item for each element of output 0. */
void clv__pool_each(clv__launches *list, const clv__op_io *io, const char *entry);

// Any window on devices with few, wide cores: by rows of outputs, or (the average's gradient) by planes of inputs.

bool clv__pool_rows_support(const clv_device_info *device, const clv__op_io *io);
/** Adds up in dx itself, which must not round. */
bool clv__pool_planes_support(const clv_device_info *device, const clv__op_io *io);
/** One launch over rows or planes; NULL where there are none. */
clv__launch *clv__pool_wide(clv__launches *list, const clv__op_io *io, const char *entry);
void clv__pool_rows(clv__launches *list, const clv__op_io *io);

/** Windows of few taps, on devices with lanes: an item looks at all that it needs. A row of the four tables of variants. */
bool clv__pool_direct_supports(const clv_device_info *device, const clv__op_io *io);
void clv__pool_direct_lower(clv__launches *list, const clv__op_io *io);
#define CLV__POOL_DIRECT                                                                                     \
    { "direct", clv__pool_direct_supports, .lower = clv__pool_direct_lower, .relative = 0.04, .lanes = true }

/** For references: the mean of a window of a plane, in each dimension from span[d][0] to before span[d][1], of `count` elements; or its
 *  gradient, the other way. `in` are the plane's lengths. */
void clv__pool_mean(double *plane, const int64_t *in, int64_t (*span)[2], double count, double *y,
                    bool backward);

void clv__pool_cost(const clv__op_io *io, clv__cost *out);
/** Elements of a window, for `reduction`. */
int64_t clv__pool_window_elements(const clv__op_io *io);
/** Cases of max_pool2d; those of avg_pool2d, which has no dilation, begin at number CLV__POOL_UNDILATED. */
extern const clv__sample_row clv__pool_samples[];
enum { CLV__POOL_UNDILATED = 6 };
/** What the descriptors have in common. */
#define CLV__POOL_OP .half_out = 1, .cost = clv__pool_cost

#endif
