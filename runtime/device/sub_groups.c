// SPDX-License-Identifier: Apache-2.0
// Finds out whether sub-groups can be used (kernels_cl/sub_groups.cl). A driver that says it has them may
// have them in a later language only, and the specification leaves open which items are in one. Any fault
// means no.
#include "device/sub_groups.h"

#include "device/probe.h"

bool clv__sub_groups_work(clv_device *device) {
    enum { SMALL = 64, LARGE = 256, GROUPS = 3 }; // the groups that trees are in
    static const clv__probe small = {.begin = CLV__SUB_GROUPS_TEXT,
                                     .stem = "sub_groups",
                                     .entry = "sub_group_faults",
                                     .items = SMALL * GROUPS,
                                     .group = SMALL,
                                     .note = "sub-groups of 64, 1"},
                            large = {.begin = CLV__SUB_GROUPS_TEXT "#define GROUP 256\n",
                                     .stem = "sub_groups",
                                     .entry = "sub_group_faults",
                                     .items = LARGE * GROUPS,
                                     .group = LARGE,
                                     .note = "sub-groups of 256, 1"};
    const clv_device_info *info = &device->info;
    return info->sub_groups && info->execution == CLV_EXECUTION_LANES && info->max_work_group >= SMALL &&
           clv__probe_passes(device, &small) &&
           (info->max_work_group < LARGE || clv__probe_passes(device, &large));
}
