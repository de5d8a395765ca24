// SPDX-License-Identifier: Apache-2.0
// Small helpers for the `lower` functions of ops.
#ifndef CLV_OPS_LOWER_H
#define CLV_OPS_LOWER_H

#include "graph/op.h"
#include "ops/tiles.h"
#include "tensor/dtype.h"

/**
 * Arguments of a launch, in this order. The tensors are a text: "o0=T_Y w i0=T_X i2 b" is output 0, stored as the kernel's macro
 * T_Y says, `part`, input 0 as T_X says, input 2, always in f32 or i32, and `bias`. Without macros in it io may be NULL.
 */
typedef struct clv__args {
    const char *tensors; // NULL: none
    clv__part part;
    int bias; // an input: without a bias, any
    int n_ints;
    const int64_t *ints;
    int n_floats;
    const float *floats;
} clv__args;
#define CLV__INTS(...)                                                                                       \
    .n_ints = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .ints = (int64_t[]) {                      \
        __VA_ARGS__                                                                                          \
    }
#define CLV__HW(size) (size)[0], (size)[1] // two of them
#define CLV__FLOATS(...)                                                                                     \
    .n_floats = sizeof((float[]){__VA_ARGS__}) / sizeof(float), .floats = (float[]) {                        \
        __VA_ARGS__                                                                                          \
    }

clv__launch *clv__args_add(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                           const clv__args *args);
/** Append arguments; the launch. CLV__ARGS(list, launch, io, "o0 i0", CLV__INTS(n), CLV__FLOATS(eps)). */
#define CLV__ARGS(list, launch, io, ...) clv__args_add(list, launch, io, &(clv__args){.tensors = __VA_ARGS__})
#define CLV__ARGS_I32(list, launch, ...) CLV__ARGS(list, launch, NULL, NULL, CLV__INTS(__VA_ARGS__))
#define CLV__ARGS_F32(list, launch, ...) CLV__ARGS(list, launch, NULL, NULL, CLV__FLOATS(__VA_ARGS__))
static inline void clv__arg_tensors(clv__launches *list, clv__launch *launch, const clv__op_io *io,
                                    const char *tensors) {
    CLV__ARGS(list, launch, io, tensors);
}
/** clv__launch_items with its arguments. */
#define CLV__LAUNCH(list, io, source, entry, kind, n, ...)                                                   \
    CLV__ARGS(list, clv__launch_items(list, source, entry, kind, n), io, __VA_ARGS__)

/** `split` along every dimension but the last two. */
bool clv__split_matrices(const clv__op_io *io, int i, clv__split *out);

/** How many rows of `width` elements one work-item does on a device with few, wide cores: about 8192
 * elements. */
static inline int64_t clv__rows_for(int64_t width) {
    return width >= 8192 ? 1 : 8192 / (width > 0 ? width : 1);
}

/** Floats in the vectors that suit a device, within what OpenCL C has: 4, 8 or 16. */
static inline int clv__vector_width(const clv_device_info *device) {
    int want = clv__threads(device) ? (int)device->vector_width : 4;
    return want >= 16 ? 16 : want >= 8 ? 8 : 4;
}

/** May a work-item's loops turn so often on this device, all of them together? */
static inline bool clv__loops_fit(const clv_device_info *device, int64_t turns) {
    return device->loop_turns == 0 || turns <= (int64_t)device->loop_turns;
}

/** Dimensions from `from` up to `to` (not included) multiplied. */
static inline int64_t clv__dims_product(const clv_shape *shape, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= shape->dims[i];
    return product;
}

/** Workspace for n floats; of none there is none. */
clv__part clv__floats(clv__launches *list, int64_t n);
static inline void clv__arg_part(clv__launches *list, clv__launch *launch, clv__part part) {
    clv__arg_workspace(list, launch, part.offset, part.bytes);
}
/** Tell a kernel a number by a macro, unless it is the kernel file's default. */
static inline void clv__define_number(clv__launches *list, clv__launch *launch, const char *macro,
                                      int64_t value, int64_t usual) {
    if (value != usual) clv__launch_define(list, launch, macro, "%d", (int)value);
}

/** Bytes of what there is of a use's tensors, as floats. */
static inline double clv__float_bytes(const clv__op_io *io) {
    double n = (double)clv__numel(&io->out[0]);
    for (int i = 0; i < io->n_in; i++) n += clv__has_in(io, i) ? (double)clv__numel(&io->in[i]) : 0;
    return 4 * n;
}

/** The name of a dtype in kernels, as kernels_cl/common/storage.cl has it. */
static inline const char *clv__storage(clv_dtype dtype) {
    return clv__dtype(dtype)->kernels;
}

/** Tell a kernel how a tensor is stored, if it is in two bytes: floats are every kernel's default. */
static inline void clv__define_storage(clv__launches *list, clv__launch *launch, const char *macro,
                                       clv_dtype dtype) {
    if (clv__is_half(dtype)) clv__launch_define(list, launch, macro, "%s", clv__storage(dtype));
}

/** Output or input `index` as an argument, and its storage as the kernel's macro. */
static inline void clv__arg_out_as(clv__launches *list, clv__launch *launch, const clv__op_io *io, int index,
                                   const char *macro) {
    clv__define_storage(list, launch, macro, io->out[index].dtype);
    clv__arg_out(list, launch, index);
}

static inline void clv__arg_in_as(clv__launches *list, clv__launch *launch, const clv__op_io *io, int index,
                                  const char *macro) {
    clv__define_storage(list, launch, macro, clv__has_in(io, index) ? io->in[index].dtype : CLV_DTYPE_NONE);
    clv__arg_in(list, launch, index);
}

#endif
