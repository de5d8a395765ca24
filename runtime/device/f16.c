// SPDX-License-Identifier: Apache-2.0
// Finds out how a device converts f16 (kernels_cl/f16.cl). What the driver says is not enough: some have a
// half type that is wrong, and what they say of denormals and rounding is not always what they do. Any fault
// means no, and integers are used, which are right everywhere.
#include "device/f16.h"

#include "device/probe.h"

bool clv__f16_native(clv_device *device) {
    static const clv__probe probe = {.begin = CLV__F16_NATIVE_TEXT,
                                     .stem = "f16",
                                     .entry = "f16_differences",
                                     .items = 64,
                                     .group = 1,
                                     .note = "f16 converted to the same bits, 1"};
    return device->info.fp16 && clv__probe_passes(device, &probe);
}
