// SPDX-License-Identifier: Apache-2.0
// Questions that kernels put to a device: that one is asked at all, that the answer is kept, and that whatever goes wrong means no.
#include "device/probe.h"

#include <stdlib.h>

#include "device/f16.h"
#include "unit/world.h"

/** The trees of common/tree.cl, on devices with sub-groups and without. */
TEST(test_trees) {
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl")) continue;
        if (clv_device_info_get(device)->max_work_group < 32) continue;
        assert_status(clv__device_open(device), CLV_OK, runtime);
        const clv__probe trees = {.begin = "#define GROUP 32\n",
                                  .stem = "sub_groups",
                                  .entry = "sub_group_faults",
                                  .items = 96,
                                  .group = 32,
                                  .note = "trees, tests"};
        assert_true(clv__probe_passes(device, &trees));
        assert_true(clv__probe_passes(device, &trees)); // as it is kept
        clv__probe other = trees;
        other.begin = "#define GROUP 32\n#define get_local_id(d) (get_local_id(d) / 2 + 1)\n";
        assert_false(clv__probe_passes(device, &other)); // what it asks is not so
        other = trees;
        other.begin = "#error no\n";
        assert_false(clv__probe_passes(device, &other));
        other = trees;
        other.entry = "no_such_kernel";
        other.note = "another note";
        assert_false(clv__probe_passes(device, &other));
        printf("%s: fp16 %d, its way %d; sub-groups %d, used %d\n", device->name, device->info.fp16,
               (int)device->f16_way, device->info.sub_groups, device->sub_groups);
    }
}

// The conversions by integers in place of PTX; behind each, what is done to its result.
#define INSTEAD(way, lanes, of_f16, to_f16, of_bf16, to_bf16)                                                \
    "#define F16_WAY " way "\n#define CVT1(what, to, v) to = what(v); THEN_##what\n"                         \
    "#define CVT2(what, to, v) to = what##2(v); THEN_##what\n"                                               \
    "#define CVT4(what, to, v) to = what##4(v); THEN_##what\n"                                               \
    "#define CVT8(what, to, v) to = what##8(v" lanes "); THEN_##what\n"                                      \
    "#define THEN_float_of_f16 " of_f16 "\n#define THEN_f16_of_float " to_f16 "\n"                           \
    "#define THEN_float_of_bf16 " of_bf16 "\n#define THEN_bf16_of_float " to_bf16 "\n"
#define NO_INFINITY "to = min(to, 1e38f)"
#define NO_ZERO "to = max(to, (ushort)1)"

/** The ways of converting halves by PTX: what is made around the instructions is right, and one that is wrong is seen. */
TEST(test_f16_by_ptx) {
    static const struct {
        const char *begin;
        bool right;
    } cases[] = {{INSTEAD("2", "", "", "", "", ""), true},
                 {INSTEAD("2", ".s10234567", "", "", "", ""), false},
                 {INSTEAD("3", "", NO_INFINITY, "", "", ""), false},
                 {INSTEAD("3", "", "", NO_ZERO, "", ""), false},
                 {INSTEAD("2", "", "", "", NO_INFINITY, ""), false},
                 {INSTEAD("2", "", "", "", "", NO_ZERO), false},
                 {INSTEAD("3", "", "", "", NO_INFINITY, NO_ZERO), true}}; // bf16 stay with the integers
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl")) continue;
        assert_status(clv__device_open(device), CLV_OK, runtime);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const clv__probe probe = {.begin = cases[i].begin,
                                      .stem = "f16",
                                      .entry = "f16_differences",
                                      .items = 64,
                                      .group = 1,
                                      .note = "f16 by PTX, tests"};
            if (clv__probe_passes(device, &probe) != cases[i].right)
                fail_msg("%s: case %zu is %s", device->name, i, cases[i].right ? "refused" : "taken");
        }
        if (device->info.fp16 || device->traits.ptx) continue;
        device->traits.ptx = true; // as if its driver said so: instructions that no compiler takes are no way
        assert_int_equal(clv__f16_way_of(device), CLV__F16_INTEGERS);
        device->traits.ptx = false;
    }
}

/** Matrix units: the question is asked of the emulation, which passes, and of one whose items do not wait for each other, which does not. */
TEST(test_matrix_units) {
#define EMULATED(type, layout, more)                                                                         \
    "#define MATRIX_UNIT 0\n#define MATRIX_ANY 1\n#define MATRIX_TYPE " type                                 \
    "\n#define MATRIX_LAYOUT " #layout "\n" more
#define EMULATED_ALL(layout, lanes)                                                                          \
    {EMULATED("tf32", layout, ""), lanes, true}, {EMULATED("f16", layout, ""), lanes, true}, {               \
        EMULATED("bf16", layout, ""), lanes, true                                                            \
    }
    static const struct {
        const char *begin;
        int lanes;
        bool right;
    } cases[] = {EMULATED_ALL(1, 32),
                 EMULATED_ALL(3, 32),
                 EMULATED_ALL(4, 64),
                 EMULATED_ALL(5, 8),
                 EMULATED_ALL(6, 32),
                 {EMULATED("tf32", 1, "#define barrier(flags)\n"), 32, false},
                 {"#define MATRIX_UNIT 0\n", 32, false}}; // none
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl")) continue;
        if (clv_device_info_get(device)->max_work_group < 64) continue;
        assert_status(clv__device_open(device), CLV_OK, runtime);
        const bool llvmpipe =
            strstr(device->info.label, "llvmpipe") != NULL; // it allows this kernel groups of 32
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            if (llvmpipe && cases[i].lanes > 32) continue;
            const clv__probe probe = {.begin = cases[i].begin,
                                      .stem = "matrix_units",
                                      .entry = "matrix_faults",
                                      .items = 128,
                                      .group = cases[i].lanes,
                                      .note = "matrix units, tests"};
            if (clv__probe_passes(device, &probe) != cases[i].right)
                fail_msg("%s: case %zu is %s", device->name, i, cases[i].right ? "refused" : "taken");
        }
    }
}

/** Questions about what a device says it has, on Intel's driver both. A question that no compiler takes would be a no for ever. */
TEST(test_what_a_driver_says_is_asked) {
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl")) continue;
        assert_status(clv__device_open(device), CLV_OK, runtime);
        if (device->info.fp16 && strstr(device->info.platform_name, "Intel"))
            assert_int_equal(device->f16_way, CLV__F16_NATIVE);
        if (device->info.sub_groups && device->info.execution == CLV_EXECUTION_LANES &&
            strstr(device->info.platform_name, "Intel"))
            assert_true(device->sub_groups);
    }
    clv_device *null = clv__test_device(runtime, "null:0");
    assert_true(null->f16_way == CLV__F16_INTEGERS && !null->sub_groups);
}

TEST_MAIN(setup, teardown)
