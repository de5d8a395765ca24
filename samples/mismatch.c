// SPDX-License-Identifier: Apache-2.0
// Data and model on different devices. By default values are carried to where they are needed; with explicit transfers that is
// an error which names the layer, the tensor, both devices and the fix, as PyTorch's is. And the fix. Takes two devices as
// arguments; by default the best one and the host.
#include "common.h"

#include <string.h>

/** Two layers on two devices; `to` moves what is between them by hand, NULL leaves that to the plan. */
static clv_status plan_layers(clv_runtime *runtime, const char *const devices[2], const char *to,
                              bool explicit_transfers, int *transfers) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    char place[160];
    snprintf(place, sizeof place, "features=%s,classifier=%s", devices[0], devices[1]);
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 784));
    x = clv_relu(clv_nn_linear(x, "features", 32, NULL));
    if (to) x = clv_to(x, to);
    clv_output(clv_nn_linear(x, "classifier", 10, NULL), "logits");
    clv_status status = clv_plan_create(
        graph, &(clv_plan_config){.place = place, .explicit_transfers = explicit_transfers}, &plan);
    *transfers = plan ? clv_plan_info_get(plan).n_transfers : 0;
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    return status;
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    clv_device *found[2];
    int transfers;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[1] : "gpu|cpu|host", &found[0]));
    TRY(runtime, clv_device_find(runtime, argc > 2 ? argv[2] : "host", &found[1]));
    const char *devices[2] = {clv_device_info_get(found[0])->name, clv_device_info_get(found[1])->name};
    if (found[0] == found[1]) { // nothing but the host here: no mismatch to be had
        clv_runtime_destroy(runtime);
        return 0;
    }

    TRY(runtime, plan_layers(runtime, devices, NULL, false, &transfers));
    printf("by default: %d value is carried\n", transfers);
    CHECK(transfers == 1);

    CHECK(plan_layers(runtime, devices, NULL, true, &transfers) == CLV_E_MISMATCH);
    const char *sentence = clv_runtime_error(runtime);
    printf("explicitly: %s\n", sentence);
    CHECK(strstr(sentence, "'classifier'") && strstr(sentence, devices[0]) && strstr(sentence, devices[1]) &&
          strstr(sentence, "clv_to"));

    TRY(runtime, plan_layers(runtime, devices, devices[1], true, &transfers));
    printf("with clv_to(x, \"%s\"): %d value is carried\n", devices[1], transfers);
    CHECK(transfers == 1);
    clv_runtime_destroy(runtime);
    return 0;
}
