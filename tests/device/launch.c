// SPDX-License-Identifier: Apache-2.0
// Launch lists: what is written down is what was asked for, and what does not fit sets `failed` instead of breaking.
#include "harness/harness.h"

#include "device/launch.h"

TEST(arguments_keep_their_order) {
    clv__launches list = {0};
    clv__launch *launch = clv__launch_kernel(&list, "softmax", "softmax_rows");
    clv__launch_define(&list, launch, "TILE", "%d", 8);
    clv__launch_define(&list, launch, "NAME(x)", "%s", "x");
    clv__arg_out(&list, launch, 0);
    clv__arg_in(&list, launch, 1);
    clv__arg_workspace(&list, launch, 128, 64);
    clv__arg_i32(&list, launch, -7);
    clv__arg_f32(&list, launch, 0.25f);
    clv__arg_local(&list, launch, 32);
    assert_false(list.failed);
    assert_int_equal(list.n, 1);
    launch = &list.items[0];
    assert_string_equal(launch->defines, "TILE 8\nNAME(x) x\n");
    assert_int_equal(launch->n_slots, 6);
    static const clv__slot_kind kinds[] = {CLV__SLOT_OUT, CLV__SLOT_IN,  CLV__SLOT_WORKSPACE,
                                           CLV__SLOT_I32, CLV__SLOT_F32, CLV__SLOT_LOCAL};
    for (int i = 0; i < 6; i++) assert_int_equal(launch->slots[i].kind, kinds[i]);
    assert_int_equal(launch->slots[2].offset, 128);
    assert_int_equal(launch->slots[2].bytes, 64);
    assert_int_equal(launch->slots[3].i32, -7);
    assert_true(launch->slots[4].f32 == 0.25f);
    assert_int_equal(launch->slots[5].bytes, 32);
    clv__launch_copy(&list, 2, 3, 100);
    clv__launch_fill(&list, 1, 200, 0xffffffffu);
    assert_int_equal(list.n, 3);
    assert_int_equal(list.items[1].kind, CLV__LAUNCH_COPY);
    assert_int_equal(list.items[1].slots[0].kind, CLV__SLOT_OUT);
    assert_int_equal(list.items[1].slots[1].index, 3);
    assert_int_equal(list.items[2].kind, CLV__LAUNCH_FILL);
    assert_true(list.items[2].pattern == 0xffffffffu);
    clv__launches_reset(&list);
    assert_int_equal(list.n, 0);
    assert_null(list.items);
}

TEST(grids_cover_their_items) {
    clv__launch launch = {0};
    for (size_t items = 0; items < 40; items++) {
        for (size_t local = 0; local < 9; local++) {
            clv__launch_grid(&launch, items, local);
            assert_int_equal(launch.grid.dims, 1);
            assert_int_equal(launch.grid.local[0], local);
            assert_true(launch.grid.global[0] >= items &&
                        launch.grid.global[0] < items + (local ? local : 1));
            if (local) assert_int_equal(launch.grid.global[0] % local, 0);
        }
    }
    clv__launch_grid2(&launch, 10, 3, 4, 2);
    assert_int_equal(launch.grid.dims, 2);
    assert_int_equal(launch.grid.global[0], 12);
    assert_int_equal(launch.grid.global[1], 4);
    assert_int_equal(launch.grid.global[2], 0);
    clv__launch_grid3(&launch, 10, 3, 5, 4, 2, 0); // one dimension left open leaves all of them open
    assert_int_equal(launch.grid.dims, 3);
    assert_int_equal(launch.grid.global[0], 10);
    assert_int_equal(launch.grid.local[0], 0);
    assert_int_equal(launch.grid.local[1], 0);
}

TEST(workspace_is_aligned) {
    clv_device_info info = {.alignment_bytes = 128};
    clv__launches list = {.device = &info};
    assert_int_equal(clv__launch_workspace(&list, 1), 0);
    assert_int_equal(clv__launch_workspace(&list, 200), 128);
    assert_int_equal(clv__launch_workspace(&list, 0), 384);
    assert_int_equal(clv__launch_workspace(&list, 4), 384);
    assert_int_equal(list.workspace_bytes, 388);
    assert_false(list.failed);
    clv__launch_workspace(&list, SIZE_MAX - 100);
    assert_true(list.failed);
    clv__launches_reset(&list);
    assert_ptr_equal(list.device, &info);
    assert_false(list.failed);
}

TEST(too_much_fails) {
    clv__launches list = {0};
    clv__launch *launch = clv__launch_kernel(&list, "s", "e");
    for (int i = 0; i < CLV__MAX_ARGS; i++) clv__arg_i32(&list, launch, i);
    assert_false(list.failed);
    clv__arg_i32(&list, launch, 0);
    assert_true(list.failed);
    assert_int_equal(launch->n_slots, CLV__MAX_ARGS);
    clv__launches_reset(&list);
    launch = clv__launch_kernel(&list, "s", "e");
    clv__arg_i32(&list, launch, INT32_MAX);
    clv__arg_i32(&list, launch, INT32_MIN);
    assert_false(list.failed);
    clv__arg_i32(&list, launch, (int64_t)INT32_MAX + 1);
    assert_true(list.failed);
    clv__launches_reset(&list);
    launch = clv__launch_kernel(&list, "s", "e");
    for (int i = 0; !list.failed && i < CLV__DEFINES_BYTES; i++)
        clv__launch_define(&list, launch, "A_NAME", "%d", i);
    assert_true(list.failed);
    size_t n = strlen(launch->defines);
    assert_true(n < CLV__DEFINES_BYTES && launch->defines[n - 1] == '\n'); // whole lines only
    clv__launches_reset(&list);
}

TEST(lists_grow) {
    clv__launches list = {0};
    for (int i = 0; i < 1000; i++) {
        clv__launch *launch = clv__launch_kernel(&list, "s", "e");
        clv__arg_i32(&list, launch, i);
    }
    assert_false(list.failed);
    for (int i = 0; i < 1000; i++) assert_int_equal(list.items[i].slots[0].i32, i);
    clv__launches_reset(&list);
}

TEST_MAIN(NULL, NULL)
