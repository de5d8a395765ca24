// SPDX-License-Identifier: Apache-2.0
// Are a device's sub-groups what our kernels take them for?
#ifndef CLV_DEVICE_SUB_GROUPS_H
#define CLV_DEVICE_SUB_GROUPS_H

#include "device/device.h"

/**
 * True if the device has sub-groups, in the language that our programs are written in, whose items have
 * neighbouring numbers in their group, and that meet without the others (kernels_cl/common/tree.cl). A kernel
 * of its own asks, as for f16.h.
 */
bool clv__sub_groups_work(clv_device *device);

/** The text that a program begins with on such a device. */
#define CLV__SUB_GROUPS_TEXT "#define SUB_GROUPS 1\n"

#endif
