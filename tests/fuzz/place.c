// SPDX-License-Identifier: Apache-2.0
// Any text as a placement, as patterns of what is computed again, and as pinned variants (one a line) of a small plan: refused with
// a sentence, or a plan whose every node has a place.
#include "fuzz/fuzz.h"

#include "cleave/cleave.h"
#include "plan/plan.h"

static clv_runtime *runtime;
static clv_graph *graph;

static void begin(void) {
    if (runtime) return;
    clv_runtime_config config = {
        .null_devices = true, .no_opencl = true, .visible_devices = "", .partition = ""};
    REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    REQUIRE(clv_graph_create(runtime, &graph) == CLV_OK);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4));
    clv_scope_push(graph, "features");
    x = clv_relu(clv_nn_linear(x, "fc1", 8, NULL));
    clv_scope_pop(graph);
    x = clv_nn_linear(x, "fc2", 3, NULL);
    clv_output(x, "logits");
    REQUIRE(clv_graph_status(graph) == CLV_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    begin();
    char text[3][512] = {"", "", ""};
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        size_t n = 0;
        while (at < size && data[at] != '\n' && n < sizeof text[i] - 1) {
            text[i][n] = (char)data[at++];
            if (!text[i][n++]) break;
        }
        while (at < size && data[at] != '\n') at++;
        at++;
    }
    clv_plan_config config = {.place = *text[0] ? text[0] : NULL,
                              .recompute = *text[1] ? text[1] : NULL,
                              .variants = *text[2] ? text[2] : NULL};
    if (!config.place) REQUIRE(clv_device_find(runtime, "null:0", &config.device) == CLV_OK);
    clv_plan *plan = NULL;
    clv_status status = clv_plan_create(graph, &config, &plan);
    REQUIRE((status == CLV_OK) == (plan != NULL));
    if (plan) {
        for (size_t i = 0; i < plan->n_nodes; i++)
            REQUIRE(plan->nodes[i].place >= 0 && plan->nodes[i].place < plan->n_places);
    } else {
        const char *said = clv_runtime_error(runtime);
        REQUIRE(*said);
        for (const char *c = said; *c; c++) REQUIRE((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
    clv_plan_destroy(plan);
    return 0;
}
