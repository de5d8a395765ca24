// SPDX-License-Identifier: Apache-2.0
// Devices, and every byte on them. A session takes its memory, and the account shows it, by category and by layer.
#include "common.h"

int main(void) {
    clv_runtime *runtime = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        const clv_device_info *info = clv_device_info_get(clv_device_get(runtime, i));
        printf("%-8s %s, %llu MiB%s%s\n", info->name, info->label,
               (unsigned long long)(info->memory_bytes >> 20),
               info->usable ? "" : ", not usable: ", info->reason);
    }
    clv_device *device = NULL;
    TRY(runtime, clv_device_find(runtime, "gpu|cpu|host", &device));
    clv_device_set_budget(device, 64u << 20); // hold at most 64 MiB there

    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(32, 1000));
    clv_output(clv_nn_linear(x, "big", 2000, NULL), "y");
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    uint64_t predicted =
        clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes; // known before anything is taken
    CHECK(clv_device_memory(device).all.current == 0);

    TRY(runtime, clv_session_create(runtime, NULL, &session));
    TRY(runtime, clv_session_reserve(session, &plan, 1));
    clv_memory_info memory = clv_device_memory(device);
    for (int i = 0; i < CLV_CATEGORIES; i++)
        printf("  %-12s %9llu bytes\n", clv_category_name((clv_category)i),
               (unsigned long long)memory.category[i].current);
    clv_memory_entry largest;
    clv_device_memory_entries(device, &largest, 1);
    printf("the largest is '%s': %llu bytes\n", largest.layer, (unsigned long long)largest.bytes);
    CHECK(memory.all.peak == predicted);
    CHECK(memory.category[CLV_PARAMETERS].current == (1000 + 1) * 2000 * sizeof(float));

    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    memory = clv_device_memory(device);
    CHECK(memory.all.current == 0 && memory.all.total_allocated == memory.all.total_freed);
    clv_runtime_destroy(runtime);
    return 0;
}
