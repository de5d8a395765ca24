// SPDX-License-Identifier: Apache-2.0
// What the items of a group have, joined in local memory by a tree of fixed shape. `lanes` of them, a power of two, belong together;
// `lane` counts them, and their numbers in the group are `step` apart. `put` leaves an item's own in local memory, `join` adds that of the
// item `apart` lanes on to it. All items of a group come here. Afterwards the first lane's place has what all have, and all may read it;
// before it is used again there is a barrier.
//
// The last levels of a tree lie within a sub-group, whose items meet without the others: at TREE_MEET(n), n neighbours' numbers that
// begin at a multiple of n, a power of two. What is added to what does not depend on it: the bits are those of a device without sub-groups.
//
// SUB_GROUPS   1: the device has them, and they are neighbours (runtime/device/sub_groups.c has asked it). Default 0
#ifndef SUB_GROUPS
#define SUB_GROUPS 0
#endif
#if SUB_GROUPS
#ifdef cl_intel_subgroups
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#else
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif
#define TREE_MEET(n)                                                                                         \
    if ((n) <= (int)get_max_sub_group_size())                                                                \
        sub_group_barrier(CLK_LOCAL_MEM_FENCE);                                                              \
    else                                                                                                     \
        barrier(CLK_LOCAL_MEM_FENCE);
#else
#define TREE_MEET(n) barrier(CLK_LOCAL_MEM_FENCE);
#endif

#define GROUP_TREE_OF(lane, lanes, step, put, join)                                                          \
    put;                                                                                                     \
    for (int apart = (lanes) / 2; apart > 0; apart /= 2) {                                                   \
        TREE_MEET(2 * apart * (step))                                                                        \
        if ((lane) < apart) {                                                                                \
            join;                                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);
#define GROUP_TREE(lane, lanes, put, join) GROUP_TREE_OF(lane, lanes, 1, put, join)
