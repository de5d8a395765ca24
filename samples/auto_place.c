// SPDX-License-Identifier: Apache-2.0
// Automatic placement: the library chooses a device for each layer, under a budget; what it chose is a text to print, change
// and give again, and holds exactly as many bytes as it says. Devices are those of the machine, the budget is the sample's.
#include "common.h"

#include <string.h>

/** A training step of resnet18 on small images. */
static void build(clv_runtime *runtime, clv_graph **graph) {
    clv_model model = clv_model_for(clv_model_find("resnet18"), 3, 32, 32, 10);
    TRY(runtime, clv_graph_create(runtime, graph));
    clv_graph_set_training(*graph, true);
    clv_tensor *x = clv_model_input(*graph, &model, 4);
    clv_tensor *labels = clv_input(*graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(4));
    clv_tensor *loss = clv_cross_entropy(clv_model_build(&model, x), labels);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(*graph, &(clv_optimizer_config){.kind = CLV_SGD});
}

int main(void) {
    clv_runtime *runtime = NULL;
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_place_choice *choice = NULL;
    clv_device *first = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, "gpu|cpu|host", &first));
    const char *devices[2] = {clv_device_info_get(first)->name, "host"};
    clv_place_config config = {.devices = devices, .n_devices = strcmp(devices[0], "host") ? 2 : 1};

    build(runtime, &graph);
    for (int budgeted = 0; budgeted < config.n_devices; budgeted++) {
        if (budgeted) clv_device_set_budget(first, 60 << 20); // less than all of it needs
        for (int i = 0; i < 3; i++) {
            config.place = (const char *[]){"auto", "balanced", "sequential"}[i];
            TRY(runtime, clv_place_choose(graph, &config, &choice));
            printf("%s%s: %s\n", config.place, budgeted ? " under a budget" : "", choice->place);
            // Said by hand it is the same.
            TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.place = choice->place}, &plan));
            TRY(runtime, clv_plans_fit(&plan, 1));
            for (int k = 0; k < choice->n_stages; k++) {
                const clv_place_stage *stage = &choice->stages[k];
                printf("  %-8s %3d layers %10llu bytes, %.2f ms a step, as predicted\n",
                       clv_device_info_get(stage->device)->name, stage->layers,
                       (unsigned long long)stage->bytes, 1e3 * stage->seconds);
                CHECK(clv_plans_memory(&plan, 1, stage->device).predicted_peak_bytes == stage->bytes);
                CHECK(!budgeted || stage->device != first || stage->bytes <= 60 << 20);
            }
            clv_plan_destroy(plan);
            clv_free(choice);
        }
    }

    // What cannot be is said before anything is taken.
    clv_device_set_budget(first, 1 << 20);
    config.n_devices = 1;
    CHECK(clv_place_choose(graph, &config, &choice) == CLV_E_BUDGET);
    printf("refused: %s\n", clv_runtime_error(runtime));
    CHECK(strstr(clv_runtime_error(runtime), "more than any device may hold"));
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    return 0;
}
