// SPDX-License-Identifier: Apache-2.0
// How launches are cut into groups, of every variant of every op on all samples, in f32, f16 and bf16, for devices of many limits and for
// the cards of the null backend. What is asked: groups are whole, none is larger than the device allows, lanes get multiples of what
// they prefer and never groups of one, and threads get what drivers for CPUs are fast with.
#include "check/subject.h"
#include "cleave/ops.h"
#include "harness/harness.h"

typedef struct limits {
    uint32_t multiple, most, units;
} limits;

static const limits lanes[] = {{32, 1024, 132}, {64, 256, 36}, {16, 1024, 4}, {8, 512, 96}, {0, 256, 1},
                               {128, 1024, 6},  {24, 1000, 8}, {64, 64, 2},   {32, 16, 2}};

static clv_device_info device_of(const limits *l) {
    return (clv_device_info){.type = CLV_DEVICE_GPU,
                             .execution = CLV_EXECUTION_LANES,
                             .memory_bytes = 8ull << 30,
                             .max_alloc_bytes = 4ull << 30,
                             .local_bytes = 64 << 10,
                             .max_work_group = l->most,
                             .preferred_multiple = l->multiple,
                             .compute_units = l->units,
                             .alignment_bytes = 128,
                             .vector_width = 1,
                             .fp16 = true,
                             .local_memory = true};
}

/** What is wrong with a grid on lanes; NULL if nothing is. */
static const char *fault_on_lanes(const clv_device_info *device, const clv__grid *grid) {
    const size_t multiple = device->preferred_multiple ? device->preferred_multiple : 64;
    size_t group = 1;
    for (int d = 0; d < grid->dims; d++) {
        if (grid->local[d] == 0) return "the driver chooses groups";
        if (grid->global[d] % grid->local[d] != 0) return "the last group is not whole";
        group *= grid->local[d];
    }
    if (group == 1) return "groups of one";
    if (group > device->max_work_group) return "groups larger than the device's";
    // kernels that know their group have one size for all devices: lanes that are known are 4 to 64 wide, or twice that
    if (group % (grid->any_local ? multiple : 64) != 0 && group != device->max_work_group)
        return "groups that fill lanes in part";
    return NULL;
}

/** On threads: what the driver chooses is exact, what is given divides. */
static const char *fault_on_threads(const clv_device_info *device, const clv__grid *grid) {
    size_t group = 1;
    for (int d = 0; d < grid->dims; d++) {
        if (grid->local[d] && grid->global[d] % grid->local[d] != 0) return "the last group is not whole";
        group *= grid->local[d] ? grid->local[d] : 1;
    }
    if (group > device->max_work_group) return "groups larger than the device's";
    const size_t local = grid->any_local ? grid->local[0] : 0;
    if (local > 1 && local != 16 && local != 64 && local != 1024) return "groups of another size";
    return NULL;
}

static int look_at(const clv_device_info *device, const clv__op_io *io, const char *sample) {
    const bool on_lanes = device->execution == CLV_EXECUTION_LANES;
    int faults = 0;
    for (const clv__variant *v = io->op->variants; v && v->name; v++) {
        if (!clv__variant_supports(v, device, io)) continue;
        clv__launches list = {.device = device};
        clv__variant_lower(v, &list, io);
        for (size_t i = 0; i < list.n; i++) {
            const clv__launch *launch = &list.items[i];
            if (launch->kind != CLV__LAUNCH_KERNEL) continue;
            const char *why = (on_lanes ? fault_on_lanes : fault_on_threads)(device, &launch->grid);
            if (!why) continue;
            print_error("%s: %s, %s, '%s': %s: [%zu %zu %zu] in [%zu %zu %zu]: %s\n",
                        device->name ? device->name : "limits", io->op->name, v->name, sample, launch->entry,
                        launch->grid.global[0], launch->grid.global[1], launch->grid.global[2],
                        launch->grid.local[0], launch->grid.local[1], launch->grid.local[2], why);
            faults++;
        }
        clv__launches_reset(&list);
    }
    return faults;
}

/** All nodes of a sample's graph, its gradients among them. */
static int look_at_sample(clv_runtime *runtime, const clv__op *op, const clv__sample *sample,
                          const clv_device_info *devices, size_t n_devices) {
    clv__subject subject;
    int faults = 0;
    if (clv__subject_init(&subject, runtime, op, sample, true) == CLV_OK)
        for (size_t i = 0; i < subject.graph->n_nodes; i++)
            for (size_t d = 0; d < n_devices; d++)
                faults += look_at(&devices[d], &subject.graph->nodes[i]->io, sample->label);
    clv__subject_reset(&subject);
    return faults;
}

static void look_everywhere(const clv_device_info *devices, size_t n_devices) {
    static const clv_dtype stored[] = {
        CLV_DTYPE_F16, CLV_DTYPE_BF16}; // tiles are cut in another way where results would be rounded
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    int faults = 0;
    for (const clv__op *const *op = clv__ops; *op; op++) {
        clv__sample sample = {0};
        for (int i = 0; clv__op_sample(*op, i, &sample) && faults < 20; i++) {
            faults += look_at_sample(runtime, *op, &sample, devices, n_devices);
            for (size_t k = 0; k < sizeof stored / sizeof *stored; k++) {
                clv__sample half = sample;
                clv__sample_store(*op, stored[k], true, &half);
                faults += look_at_sample(runtime, *op, &half, devices, n_devices);
            }
            clv__sample followed = sample;
            if (clv__sample_follow(*op, &followed))
                faults += look_at_sample(runtime, *op, &followed, devices, n_devices);
        }
    }
    clv_runtime_destroy(runtime);
    assert_int_equal(faults, 0);
}

TEST(lanes_get_whole_groups) {
    clv_device_info devices[sizeof lanes / sizeof *lanes];
    for (size_t i = 0; i < sizeof lanes / sizeof *lanes; i++) devices[i] = device_of(&lanes[i]);
    look_everywhere(devices, sizeof lanes / sizeof *lanes);
}

TEST(threads_get_tasks) {
    clv_device_info devices[3] = {device_of(&lanes[0]), device_of(&lanes[0]), device_of(&lanes[0])};
    for (int i = 0; i < 3; i++) {
        devices[i].execution = CLV_EXECUTION_THREADS;
        devices[i].vector_width = 16;
        devices[i].local_bytes = 1 << 20;
        devices[i].fp16 = false;
    }
    devices[1].max_work_group = 1;
    devices[2].max_work_group = 12; // an embedded profile's
    devices[2].local_bytes = 4 << 10;
    look_everywhere(devices, 3);
}

TEST(cards_get_what_their_limits_allow) {
    enum { CARDS = 96 };
    clv_device_info cards[CARDS];
    size_t n = 0, lanes_of_them = 0;
    clv_runtime *runtime =
        clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true, .null_cards = true});
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices;
         i++) { // as the runtime sees them: with their class
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        if (!strncmp(info->name, "null:", 5) && info->peak_bytes_per_second > 0) {
            assert_true(n < CARDS);
            cards[n++] = *info;
            lanes_of_them += info->execution == CLV_EXECUTION_LANES;
        }
    }
    assert_true(n >= 50);
    assert_true(lanes_of_them >= 9);
    look_everywhere(cards, n);
    clv_runtime_destroy(runtime); // the names are its own
}

/** The grid of n work-items of a kind. */
static clv__grid grid_of(const clv_device_info *device, clv__items kind, int64_t n) {
    clv__launches list = {.device = device};
    clv__launch launch = {0};
    clv__launch_over(&list, &launch, kind, n);
    return launch.grid;
}

TEST(groups_grow_with_the_work) {
    clv_device_info gpu = device_of(&lanes[0]);
    static const clv__items kinds[] = {CLV__ELEMENTS, CLV__SHORT, CLV__TASKS};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        assert_int_equal(grid_of(&gpu, kinds[k], 1).local[0], 32);
        assert_int_equal(grid_of(&gpu, kinds[k], 1).global[0], 32);
        assert_int_equal(grid_of(&gpu, kinds[k], 10007).local[0], 32);
        assert_int_equal(grid_of(&gpu, kinds[k], 10007).global[0], 10016);
        assert_int_equal(grid_of(&gpu, kinds[k], 1000003).local[0],
                         128); // 132 units have several groups of these each
        assert_true(grid_of(&gpu, kinds[k], 7).any_local);
        assert_int_equal(grid_of(&gpu, kinds[k], 0).global[0], 0);
    }
    gpu.execution = CLV_EXECUTION_THREADS;
    assert_int_equal(grid_of(&gpu, CLV__ELEMENTS, 10048).local[0], 0);
    assert_int_equal(grid_of(&gpu, CLV__ELEMENTS, 10048).global[0], 10048);
    assert_int_equal(grid_of(&gpu, CLV__ELEMENTS, 10007).local[0], 16); // 132 units have several of them each
    assert_int_equal(grid_of(&gpu, CLV__ELEMENTS, 10007).global[0], 10016);
    assert_int_equal(grid_of(&gpu, CLV__ELEMENTS, 100007).local[0], 64);
    assert_int_equal(grid_of(&gpu, CLV__ELEMENTS, 1000003).local[0], 1024);
    assert_int_equal(grid_of(&gpu, CLV__SHORT, 10007).local[0], 16);
    assert_int_equal(grid_of(&gpu, CLV__TASKS, 10007).local[0], 1);
    gpu.max_work_group = 1;
    assert_int_equal(grid_of(&gpu, CLV__SHORT, 10007).local[0], 0);
}

TEST_MAIN(NULL, NULL)
