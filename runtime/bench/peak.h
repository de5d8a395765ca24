// SPDX-License-Identifier: Apache-2.0
// What a device can do at most: a loop of fused multiply-adds, and a copy.
#ifndef CLV_BENCH_PEAK_H
#define CLV_BENCH_PEAK_H

#include "cleave/bench.h"

/** The device's peak, from the cache's folder or measured (`again`: always measured) and kept there. Zeros for a device
 *  without kernels. */
clv_status clv__bench_peak(clv_device *device, bool again, clv_bench_peak *out);

#endif
