// SPDX-License-Identifier: Apache-2.0
// Does a device convert f16 as our kernels would do it by integers?
#ifndef CLV_DEVICE_F16_H
#define CLV_DEVICE_F16_H

#include "device/device.h"

/**
 * How its programs convert f16: the first way of clv__f16_way that gives the bits of the integers in
 * kernels_cl/common/storage.cl, for every f16 and around every rounding. A kernel of its own asks
 * (probe.h): the device is open, and nothing else uses it yet.
 */
clv__f16_way clv__f16_way_of(clv_device *device);

/** The text that a program begins with on such a device, with its way. */
#define CLV__F16_TEXT "#define F16_WAY %d\n"

/** "; it converts f16 by ..." for the log; "" where there is no other way than by integers. */
const char *clv__f16_words(const clv_device *device);

#endif
