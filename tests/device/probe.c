// SPDX-License-Identifier: Apache-2.0
// Questions that kernels put to a device: that one is asked at all, that the answer is kept, and that whatever goes wrong means no.
#include "device/probe.h"

#include <stdlib.h>

#include "unit/world.h"

/** The trees of common/tree.cl, on devices with sub-groups and without. */
static void test_trees(void **state) {
    (void)state;
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
        printf("%s: fp16 %d, native %d; sub-groups %d, used %d\n", device->name, device->info.fp16,
               device->f16_native, device->info.sub_groups, device->sub_groups);
    }
}

/** Questions about what a device says it has, on Intel's driver both. A question that no compiler takes would be a no for ever. */
static void test_what_a_driver_says_is_asked(void **state) {
    (void)state;
    clv_device *device;
    for (int d = -1; (device = clv__test_next_device(runtime, &d));) {
        if (strcmp(clv_device_info_get(device)->backend, "opencl")) continue;
        assert_status(clv__device_open(device), CLV_OK, runtime);
        if (device->info.fp16 && strstr(device->info.platform_name, "Intel")) assert_true(device->f16_native);
        if (device->info.sub_groups && device->info.execution == CLV_EXECUTION_LANES &&
            strstr(device->info.platform_name, "Intel"))
            assert_true(device->sub_groups);
    }
    clv_device *null;
    assert_status(clv_device_find(runtime, "null:0", &null), CLV_OK, runtime);
    assert_false(null->f16_native || null->sub_groups);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_trees),
                                       cmocka_unit_test(test_what_a_driver_says_is_asked)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
