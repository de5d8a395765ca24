// SPDX-License-Identifier: Apache-2.0
// Does a device convert f16 as our kernels would do it by integers?
#ifndef CLV_DEVICE_F16_H
#define CLV_DEVICE_F16_H

#include "device/device.h"

/**
 * True if the device has cl_khr_fp16 and its conversions give the bits of those in
 * kernels_cl/common/storage.cl, for every f16 and around every rounding. A kernel of its own asks
 * (probe.h): the device is open, and nothing else uses it yet.
 */
bool clv__f16_native(clv_device *device);

/** The text that a program begins with on such a device. */
#define CLV__F16_NATIVE_TEXT "#define F16_NATIVE 1\n"

#endif
