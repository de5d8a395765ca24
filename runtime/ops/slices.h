// SPDX-License-Identifier: Apache-2.0
// Launches over several tensors, each a slice of the launch (kernels_cl/common/slices.cl), for ops whose inputs come in groups.
#ifndef CLV_OPS_SLICES_H
#define CLV_OPS_SLICES_H

#include "ops/lower.h"

/** How a variant shares the slices out: `count` elements of one to so many work-items of a group, `wide` at a time. */
typedef struct clv__sharing {
    int items, count, wide;
} clv__sharing;

enum { CLV__SHARING_PLAIN, CLV__SHARING_VECTOR, CLV__SHARING_GROUPS, CLV__SHARINGS, CLV__SHARING_ITEMS = 64 };

/** The variants of such an op, whose `lower` finds its row of a table by clv__sharing_of. */
#define CLV__SHARING_VARIANTS(lower_)                                                                        \
    {                                                                                                        \
        [CLV__SHARING_PLAIN] = {"plain", .lower = lower_},                                                   \
        [CLV__SHARING_VECTOR] = {"vector", clv__sharing_vector, .lower = lower_, .relative = 0.2},           \
        [CLV__SHARING_GROUPS] = {"groups", clv__sharing_groups, .lower = lower_, .relative = 0.2,            \
                                 .lanes = true},                                                             \
        [CLV__SHARINGS] = {0},                                                                               \
    }

static inline const clv__sharing *clv__sharing_of(const clv__op_io *io,
                                                  const clv__sharing table[CLV__SHARINGS]) {
    return &table[io->variant - io->op->variants];
}

// What they support does not depend on sizes: a tensor alone and among others is computed alike, to the same bits.
static inline bool clv__sharing_vector(const clv_device_info *device, const clv__op_io *io) {
    (void)io;
    return clv__threads(device);
}
static inline bool clv__sharing_groups(const clv_device_info *device, const clv__op_io *io) {
    enum { TURNS = 2048 };
    (void)io;
    return device->max_work_group >= CLV__SHARING_ITEMS && clv__loops_fit(device, TURNS);
}
/** A launch over so many groups, with the macros that say so; NULL if there are none. */
static inline clv__launch *clv__sharing_launch(clv__launches *list, const clv__op_io *io, const char *source,
                                               const char *entry, const clv__sharing *share, int64_t groups) {
    if (groups == 0) return NULL;
    clv__launch *launch = clv__launch_kernel(list, source, entry);
    clv__launch_define(list, launch, "SLICES", "%d", clv__groups_most(io->op, list->device));
    if (share->items > 1) clv__launch_define(list, launch, "ITEMS", "%d", share->items);
    if (share->count > 1) clv__launch_define(list, launch, "COUNT", "%d", share->count);
    if (share->wide > 1) clv__launch_define(list, launch, "WIDE", "%d", share->wide);
    if (share->items > 1)
        clv__launch_grid(launch, (size_t)(groups * share->items), (size_t)share->items);
    else
        clv__launch_over(list, launch, share->count == 1 ? CLV__ELEMENTS : CLV__TASKS, groups);
    return launch;
}

#endif
