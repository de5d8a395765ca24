// SPDX-License-Identifier: Apache-2.0
// Finds out what a device's matrix units multiply (kernels_cl/matrix_units.cl). The compiler says whether it
// has their instructions; what these compute is asked. Any fault means no.
#include "device/matrix.h"

#include "device/probe.h"

uint32_t clv__matrix_units(clv_device *device) {
    enum { LANES = 32, GROUPS = 4 };
    static const struct {
        uint32_t bit;
        const char *begin, *note;
    } types[] = {{CLV_MATRIX_TF32, "#define MATRIX_TYPE tf32\n", "matrix units, tf32, 1"},
                 {CLV_MATRIX_F16, "#define MATRIX_TYPE f16\n", "matrix units, f16, 1"},
                 {CLV_MATRIX_BF16, "#define MATRIX_TYPE bf16\n", "matrix units, bf16, 1"}};
    uint32_t found = 0;
    if (device->info.execution != CLV_EXECUTION_LANES || device->info.max_work_group < LANES) return 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const clv__probe probe = {.begin = types[i].begin,
                                  .stem = "matrix_units",
                                  .entry = "matrix_faults",
                                  .items = LANES * GROUPS,
                                  .group = LANES,
                                  .note = types[i].note};
        if (clv__probe_passes(device, &probe)) found |= types[i].bit;
    }
    return found;
}
