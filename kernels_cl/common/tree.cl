// SPDX-License-Identifier: Apache-2.0
// What the items of a group have, joined in local memory by a tree of fixed shape. `lanes` of them, a power of two, belong together;
// `lane` counts them. `put` leaves an item's own in local memory, `join` adds that of the item `apart` lanes on to it. All items of
// a group come here. Afterwards the first lane's place has what all have, and all may read it; before it is used again there is
// a barrier.
#define GROUP_TREE(lane, lanes, put, join)                                                                   \
    put;                                                                                                     \
    for (int apart = (lanes) / 2; apart > 0; apart /= 2) {                                                   \
        barrier(CLK_LOCAL_MEM_FENCE);                                                                        \
        if ((lane) < apart) {                                                                                \
            join;                                                                                            \
        }                                                                                                    \
    }                                                                                                        \
    barrier(CLK_LOCAL_MEM_FENCE);
