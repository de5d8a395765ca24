// SPDX-License-Identifier: Apache-2.0
// A list of launches: what an op asks a device to do, written down before any device is touched. A launch
// names a kernel (source, entry, defines), its arguments as references to the op's tensors, and a grid. The
// ops' variants fill the list when a plan is made. exec turns it into commands with real buffers and kernel
// objects.
#ifndef CLV_DEVICE_LAUNCH_H
#define CLV_DEVICE_LAUNCH_H

#include "base/memory.h"
#include "device/backend.h"

// Every device takes CLV__SURE_ARGS arguments; only ops whose inputs come in groups have more, where there is
// room (clv__groups_most).
enum { CLV__MAX_ARGS = 78, CLV__SURE_ARGS = 50, CLV__DEFINES_BYTES = 1536 };

typedef enum clv__slot_kind {
    CLV__SLOT_IN,        // the op's input `index`; a missing optional input is a null pointer
    CLV__SLOT_OUT,       // the op's output `index`
    CLV__SLOT_WORKSPACE, // `offset` bytes into the op's workspace
    CLV__SLOT_I32,
    CLV__SLOT_F32,
    CLV__SLOT_LOCAL,    // `offset` bytes of local memory
    CLV__SLOT_GRADIENTS // the device's gradients, all of their chunk `index`; read only
} clv__slot_kind;

typedef struct clv__slot {
    clv__slot_kind kind;
    union {
        int index;
        int32_t i32;
        float f32;
    };
    size_t offset,
        bytes; // WORKSPACE: part at offset of bytes; LOCAL: bytes; IN, OUT: of the tensor, noted by the plan
} clv__slot;

typedef enum clv__launch_kind {
    CLV__LAUNCH_KERNEL,
    CLV__LAUNCH_COPY,     // slot 1 -> slot 0, `bytes`, both whole tensors or workspace parts
    CLV__LAUNCH_FILL,     // slot 0 with `pattern`, `bytes`
    CLV__LAUNCH_GEMM,     // slots 0 C, 1 A, 2 B and `gemm`: the backend's library
    CLV__LAUNCH_REFERENCE // the op's reference, on devices that run host functions
} clv__launch_kind;

typedef struct clv__launch {
    clv__launch_kind kind;
    const char *source; // stem of a file in kernels_cl/, static
    const char *entry;  // entry point, static
    char defines
        [CLV__DEFINES_BYTES]; // lines "NAME value\n", each becomes a #define before the source; order matters
    clv__slot slots[CLV__MAX_ARGS];
    int n_slots;
    clv__grid grid;
    size_t bytes;
    uint32_t pattern;
    struct {
        bool transpose_a, transpose_b;
        int m, n, k, lda, ldb, ldc, n_batch;
        int64_t stride_a, stride_b, stride_c;
        float alpha, beta;
    } gemm;
} clv__launch;

/** The launches of one node, and the workspace they share. Zero-initialised is empty. */
typedef struct clv__launches {
    const clv_device_info *device; // whose limits the launches must respect
    clv__launch *items;
    size_t n, room;
    size_t workspace_bytes; // most that any launch needs, alignment included
    bool failed;        // memory ran out, or a value or a number of arguments is too large; told by the plan
    bool out_of_memory; // the first of these
    clv__launch *
        spare; // handed out when memory is out; whoever has launches written down lends one (NULL afterwards)
} clv__launches;

/** Append a kernel launch. Never NULL (a spare is returned, and `failed` set, if memory is out).
 *  Borrowed until the next launch is appended. */
clv__launch *clv__launch_kernel(clv__launches *list, const char *source, const char *entry);
/** Append a define: clv__launch_define(l, "TILE", "%d", 8). */
void clv__launch_define(clv__launches *list, clv__launch *launch, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Arguments, in the kernel's order: outputs, inputs, sizes, scalars. Workspace that an earlier launch has
// filled is read by a later one of the node, unless it is that one's first argument (plan/once.c).
void clv__arg_out(clv__launches *list, clv__launch *launch, int index);
void clv__arg_in(clv__launches *list, clv__launch *launch, int index);
void clv__arg_workspace(clv__launches *list, clv__launch *launch, size_t offset, size_t bytes);
void clv__arg_gradients(clv__launches *list, clv__launch *launch, int chunk);
void clv__arg_i32(clv__launches *list, clv__launch *launch,
                  int64_t value); // sets `failed` if it does not fit
void clv__arg_f32(clv__launches *list, clv__launch *launch, float value);
void clv__arg_local(clv__launches *list, clv__launch *launch, size_t bytes);

/** What the work-items of a launch are. With the device's class and limits it decides their groups. */
typedef enum clv__items {
    CLV__ELEMENTS, // many short ones: an element each, or a vector of them
    CLV__SHORT,    // the same, where a driver for few, wide cores does them faster in groups of sixteen
    CLV__TASKS     // longer ones: a row, a channel, a part of a sum, as many elements as suit the device
} clv__items;

/**
 * A grid of at least n work-items of a kind, in groups that suit the device: the one place where that is
 * chosen. A kernel launched so skips items beyond n, and knows nothing of its group.
 *
 * Threads  groups of one for tasks: so the driver spreads them, and compiles one size of group. It chooses
 *          for elements whose number is a multiple of 64, and no item is beyond n. Of other numbers it could
 *          choose odd groups only, each a size to compile: they get 16, 64 or 1,024.
 * Lanes    the preferred multiple (64 where it is not told: a multiple of all that are known); 128 or more
 *          where there are enough for several groups on each unit.
 */
void clv__launch_over(const clv__launches *list, clv__launch *launch, clv__items kind, int64_t n);

/** Append a launch over n work-items of a kind; NULL, and no launch, if n is 0: all that takes a launch takes
 *  NULL and does nothing. */
clv__launch *clv__launch_items(clv__launches *list, const char *source, const char *entry, clv__items kind,
                               int64_t n);

/** For kernels that know their group. A one-dimensional grid of at least `items`; local 0 lets the driver
 *  choose, else global is rounded up to it. */
void clv__launch_grid(clv__launch *launch, size_t items, size_t local);
/** Two- and three-dimensional grids of work-items; local as above in each dimension. */
void clv__launch_grid2(clv__launch *launch, size_t x, size_t y, size_t local_x, size_t local_y);
void clv__launch_grid3(clv__launch *launch, size_t x, size_t y, size_t z, size_t local_x, size_t local_y,
                       size_t local_z);

/**
 * Reserve `bytes` of the node's workspace; returns the offset, a multiple of the device's alignment.
 * All launches of a node share one workspace and it is dead after the node.
 */
size_t clv__launch_workspace(clv__launches *list, size_t bytes);

/** Whole-tensor copy of input `in` to output `out`, and a fill of output `out`. */
void clv__launch_copy(clv__launches *list, int out, int in, size_t bytes);
void clv__launch_fill(clv__launches *list, int out, size_t bytes, uint32_t pattern);

/** All is written down: give back what the list has too much of. A launch is large, and a plan has one for
 *  each node. */
void clv__launches_trim(clv__launches *list);
void clv__launches_reset(clv__launches *list);

#endif
