// SPDX-License-Identifier: Apache-2.0
// Data types, shapes, and what can be asked of a tensor (a value in a graph).
#ifndef CLEAVE_TENSOR_H
#define CLEAVE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Element types. NONE stands for "no tensor" where one is optional. F16 (IEEE 754 binary16) and BF16 (the upper half of a
 * binary32) are how values are stored: every op computes in f32. On the host their elements are uint16_t. U8, I8, I64 and BOOL
 * are stored too: of inputs, constants and buffers, moved (reshape, permute, slice, concat, ...), compared and cast; no arithmetic is
 * done in them. An element of BOOL is a byte: 0 is false, any other true; what is made is 0 or 1, and what is moved stays as it was
 * fed. Where an op wants `int` (indices, labels, conditions) it takes i32, and the others cast to it: what is beyond i32 is no
 * index either.
 */
typedef enum clv_dtype {
    CLV_DTYPE_NONE,
    CLV_DTYPE_F32,
    CLV_DTYPE_I32,
    CLV_DTYPE_F16,
    CLV_DTYPE_BF16,
    CLV_DTYPE_U8,
    CLV_DTYPE_I64,
    CLV_DTYPE_BOOL,
    CLV_DTYPE_I8
} clv_dtype;

enum { CLV_MAX_RANK = 8 };

/** Dimensions, outermost first, row-major. Rank 0 is a scalar of one element. */
typedef struct clv_shape {
    int rank;
    int64_t dims[CLV_MAX_RANK];
} clv_shape;

/** A shape from `rank` dimensions. With more than CLV_MAX_RANK of them, or dims NULL, it is one that every function refuses. */
static inline clv_shape clv_shape_make(int rank, CLV_COUNT(rank) const int64_t *dims) {
    clv_shape shape = {rank > 0 && !dims ? -1 : rank, {0}};
    for (int i = 0; dims && i < rank && i < CLV_MAX_RANK; i++) shape.dims[i] = dims[i];
    return shape;
}

/** `CLV_SHAPE(64, 784)` is the shape [64,784], in C and in C++. A scalar's is clv_shape_make(0, NULL). */
#ifdef __cplusplus
extern "C++" { // C++ has no compound literals
template <typename... Dims> inline clv_shape clv_shape_of(Dims... dims) {
    static_assert(sizeof...(dims) > 0, "CLV_SHAPE wants at least one dimension");
    const int64_t list[] = {static_cast<int64_t>(dims)...};
    return clv_shape_make(static_cast<int>(sizeof...(dims)), list);
}
}
#define CLV_SHAPE(...) clv_shape_of(__VA_ARGS__)
#else
#define CLV_SHAPE(...)                                                                                       \
    clv_shape_make((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#endif

/** Product of the dimensions (1 for a scalar), or -1 if a dimension is negative, the rank outside 0 to CLV_MAX_RANK, or the
 *  dimensions but zeros have a product above 2^55: [0, 2^62, 2^62] is refused as [2^62, 2^62] is. */
static inline int64_t clv_shape_numel(const clv_shape *shape) {
    // A zero does not hide what stands beside it: an op may take the zero away, or look at the other dimensions alone. So the product
    // of the dimensions but zeros is bounded, and with it each of them. Sums and bytes of such can be counted.
    const int64_t most = (int64_t)1 << 55;
    int64_t product = 1;
    bool empty = false;
    if (!shape || shape->rank < 0 || shape->rank > CLV_MAX_RANK) return -1;
    for (int i = 0; i < shape->rank; i++) {
        const int64_t dim = shape->dims[i];
        if (dim < 0 || (dim && product > most / dim)) return -1;
        if (dim)
            product *= dim;
        else
            empty = true;
    }
    return empty ? 0 : product;
}
/** The same rank and dimensions; a rank outside 0 to CLV_MAX_RANK equals nothing. */
static inline bool clv_shape_equal(const clv_shape *a, const clv_shape *b) {
    if (!a || !b || a->rank != b->rank || a->rank < 0 || a->rank > CLV_MAX_RANK) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}
/** Writes `[64,784]` into text (at most `bytes` with the end). Returns text. */
CLV_API char *clv_shape_text(const clv_shape *shape, CLV_OUT CLV_COUNT(bytes) char *text, size_t bytes);

/** What a model or a dataset has of a sample. */
typedef enum clv_port_role { CLV_PORT_INPUT, CLV_PORT_TARGET } clv_port_role;

/** One input of a model or one target, and one of a dataset's arrays: its name, and what a sample has of it. */
typedef struct clv_port {
    const char *name;
    clv_dtype dtype; /**< NONE: f32, and i32 of a target with classes */
    int64_t
        dims[CLV_MAX_RANK - 1]; /**< of a sample, up to the first 0; none at all: one number, or one class */
    int64_t
        classes; /**< of a target, 0: it is numbers; of an input of i32: values are 0 to classes - 1, 0: any */
    CLV_RESERVED(4);
} clv_port;

/** Inputs that a model or a dataset has at most, and targets. */
enum { CLV_MAX_PORTS = 16 };

/** The shape of it in a batch of n samples: [n, dims...]. */
static inline clv_shape clv_port_shape(const clv_port *port, int64_t n) {
    clv_shape shape = {1, {n}};
    for (int i = 0; i < CLV_MAX_RANK - 1 && port->dims[i]; i++) shape.dims[shape.rank++] = port->dims[i];
    return shape;
}

/** Bytes of one element; 0 for NONE. */
CLV_API size_t clv_dtype_bytes(clv_dtype dtype);
/** `f32`, `i32`, `f16`, `bf16`, `u8`, `i64`, `bool`, `i8`, `none`. */
CLV_API const char *clv_dtype_name(clv_dtype dtype);

/** A value in a graph. Owned by its graph; valid until the graph is destroyed. */
typedef struct clv_tensor clv_tensor;

struct clv_graph;
/** What a tensor is. All zero, "" and NONE of NULL, which a failed build gives. */
typedef struct clv_tensor_info {
    struct clv_graph *graph; /**< that it belongs to: functions that build layers ask this */
    const char *name;
    clv_dtype dtype;
    bool requires_grad; /**< it gets a gradient from clv_backward, if it leads to the loss */
    clv_shape shape;
    int64_t numel;
    size_t bytes; /**< element size times number of elements */
    CLV_RESERVED(4);
} clv_tensor_info;
CLV_API clv_tensor_info clv_tensor_info_get(CLV_OR_NULL const clv_tensor *tensor);

static inline struct clv_graph *clv_tensor_graph(const clv_tensor *tensor) {
    return clv_tensor_info_get(tensor).graph;
}
static inline clv_shape clv_tensor_shape(const clv_tensor *tensor) {
    return clv_tensor_info_get(tensor).shape;
}
static inline clv_dtype clv_tensor_dtype(const clv_tensor *tensor) {
    return clv_tensor_info_get(tensor).dtype;
}
static inline const char *clv_tensor_name(const clv_tensor *tensor) {
    return clv_tensor_info_get(tensor).name;
}
static inline int64_t clv_tensor_numel(const clv_tensor *tensor) {
    return clv_tensor_info_get(tensor).numel;
}
static inline size_t clv_tensor_bytes(const clv_tensor *tensor) {
    return clv_tensor_info_get(tensor).bytes;
}

#ifdef __cplusplus
}
#endif
#endif
