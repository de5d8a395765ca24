// SPDX-License-Identifier: Apache-2.0
// Finds out what a device's matrix units multiply (kernels_cl/matrix_units.cl). Which may be there the driver
// says; what they compute is asked. Any fault means no, and so does a program that does not compile.
#include "device/matrix.h"

#include <stdio.h>

#include "device/probe.h"

/** What is asked of unit number `unit`. */
static uint32_t asked(clv_device *device, int unit, int lanes) {
    enum { GROUPS = 4 };
    static const struct {
        uint32_t bit;
        const char *name;
    } types[] = {{CLV_MATRIX_TF32, "tf32"}, {CLV_MATRIX_F16, "f16"}, {CLV_MATRIX_BF16, "bf16"}};
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char begin[80], note[40];
        snprintf(begin, sizeof begin, CLV__MATRIX_TEXT "#define MATRIX_TYPE %s\n", unit, types[i].name);
        snprintf(note, sizeof note, "matrix unit %d, %s, 3", unit, types[i].name);
        const clv__probe probe = {.begin = begin,
                                  .stem = "matrix_units",
                                  .entry = "matrix_faults",
                                  .items = lanes * GROUPS,
                                  .group = lanes,
                                  .note = note};
        if (clv__probe_passes(device, &probe)) found |= types[i].bit;
    }
    return found;
}

uint32_t clv__matrix_units(clv_device *device) {
    const clv__traits *traits = &device->traits;
    const struct {
        bool may_be; // a compiler need not see what it does not know
        int unit, lanes;
        uint32_t timed; // 0, or that no card has shown how fast it is
    } units[] = {       // as common/matrix.cl numbers them; of NVIDIA's the better one first
                 {traits->ptx, 2, 32, 0},
                 {traits->ptx, 1, 32, 0},
                 {traits->amdgcn, 3, 32, CLV_MATRIX_UNTIMED},
                 {traits->amdgcn, 4, 64, CLV_MATRIX_UNTIMED},
                 {traits->amdgcn, 6, 32, CLV_MATRIX_UNTIMED},
                 {traits->dpas, 5, 8, CLV_MATRIX_UNTIMED}};
    const uint32_t all = CLV_MATRIX_TF32 | CLV_MATRIX_F16 | CLV_MATRIX_BF16;
    uint32_t best = 0, timed = 0;
    device->matrix_unit = 0;
    if (device->info.execution != CLV_EXECUTION_LANES) return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units && best != all; i++) {
        if (!units[i].may_be || device->info.max_work_group < (uint32_t)units[i].lanes) continue;
        const uint32_t found = asked(device, units[i].unit, units[i].lanes);
        if ((found & ~best) == 0) continue;
        best = found;
        timed = units[i].timed;
        device->matrix_unit = units[i].unit;
    }
    return best | timed;
}
