// SPDX-License-Identifier: Apache-2.0
// Are sub-groups what common/tree.cl takes them for? runtime/device/sub_groups.c asks, no op uses this.
//
//   sub_group_faults   groups of GROUP items. out[i]: 0 if item i is where its number says, and trees over 2 to GROUP lanes, which lie
//                      beside each other or `step` apart, add up what they should
//
// GROUP   a power of two, default 64
//
// Where SUB_GROUPS is 0 the trees are asked alone.
#ifndef GROUP
#define GROUP 64
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void KERNEL(sub_group_faults)(global int *restrict out) {
    local int tree[GROUP];
    const int id = (int)get_local_id(0);
    int faults = 0;
#if SUB_GROUPS
    const int size = (int)get_max_sub_group_size();
    faults |= size < 1 || (size & (size - 1)) != 0;
    faults |= (int)get_sub_group_local_id() != id % size || (int)get_sub_group_id() != id / size;
#endif
    for (int lanes = 2; lanes <= GROUP; lanes *= 2) {
        for (int step = 1; step <= GROUP / lanes; step = step == 1 ? max(2, GROUP / lanes) : step * GROUP) {
            // as rows are told apart in rows.cl: beside each other, or a row's lanes far apart
            const int side = GROUP / lanes, lane = step > 1 ? id / side : id % lanes;
            const int first = step > 1 ? id % side : id - lane;
            int sum = 0;
            for (int i = 0; i < lanes; i++) sum += (first + i * step) * (first + i * step + 7);
            GROUP_TREE_OF(lane, lanes, step, tree[id] = id * (id + 7), tree[id] += tree[id + apart * step])
            faults |= tree[first] != sum;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
    out[get_global_id(0)] = faults;
}
