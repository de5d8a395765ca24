// SPDX-License-Identifier: Apache-2.0
// Matrix units of a device.
#ifndef CLV_DEVICE_MATRIX_H
#define CLV_DEVICE_MATRIX_H

#include "device/device.h"

#define CLV__MATRIX_TEXT "#define MATRIX_UNIT %d\n"

/**
 * What the device's matrix units multiply as kernels_cl/common/matrix.cl wants it: CLV_MATRIX_* bits, 0
 * without. Sets device->matrix_unit, the number of the unit there.
 * The device is open, and nothing else uses it yet.
 */
uint32_t clv__matrix_units(clv_device *device);

#endif
