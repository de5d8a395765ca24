// SPDX-License-Identifier: Apache-2.0
// A graph built by names, as a binding builds one, with an array of its own; to a file, and back in another graph: the same results.
#include "common.h"

#include <string.h>

/** scale * normalized x, chosen rows of it. */
static void build(clv_graph *graph) {
    static const float scale[3] = {1, 10, 100};
    static const int32_t rows[2] = {3, 0};
    const clv_op_argument eps = {.name = "eps", .number = 1e-3};
    int n_ops = 0;
    while (clv_op_get(n_ops)) n_ops++;
    printf("%d ops; rms_norm takes %s, and has %s\n", n_ops, clv_op_find("rms_norm")->inputs[1].name,
           clv_op_find("rms_norm")->attributes[0].name);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 3));
    clv_tensor *y = clv_op_call(graph, "layer_norm", &x, 1, &eps, 1);
    clv_output(clv_op_output(y, 1), "mean"); // some ops have further results
    y = clv_op_call(graph, "rms_norm", &x, 1, &eps, 1);
    clv_tensor *scaled[] = {y, clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(3), scale)};
    y = clv_op_call(graph, "mul", scaled, 2, NULL, 0);
    clv_tensor *chosen[] = {y, clv_constant(graph, CLV_DTYPE_I32, CLV_SHAPE(2), rows)};
    clv_output(clv_op_call(graph, "embedding", chosen, 2, NULL, 0), "y");
}

static void compute(clv_runtime *runtime, clv_graph *graph, float y[2][3]) {
    const float x[4][3] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {-1, 0, 1}};
    clv_device *device;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    int64_t ticket;
    TRY(runtime, clv_device_find(runtime, NULL, &device));
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){0}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));
    TRY(runtime, clv_run_feed(run, clv_graph_find(graph, "x"), x, sizeof x));
    TRY(runtime, clv_run_step(run, &ticket));
    TRY(runtime, clv_run_fetch(run, ticket, clv_graph_find(graph, "y"), y, 2 * sizeof *y));
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
}

int main(void) {
    clv_runtime *runtime;
    clv_graph *built, *read;
    float y[2][3], again[2][3];
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_graph_create(runtime, &built));
    build(built);
    TRY(runtime, clv_graph_write(built, "sample.graph"));
    TRY(runtime, clv_graph_create(runtime, &read));
    TRY(runtime, clv_graph_read(read, "sample.graph"));

    clv_archive *file; // safetensors: the constants, and the graph among the metadata
    const char *key, *text;
    TRY(runtime, clv_safetensors_read(runtime, "sample.graph", &file));
    for (size_t i = 0; (key = clv_archive_text_at(file, i, &text)); i++) printf("%s: %.40s...\n", key, text);
    CHECK(clv_archive_count(file) == 2);
    clv_archive_destroy(file);

    compute(runtime, built, y);
    compute(runtime, read, again);
    for (int i = 0; i < 2; i++) printf("%8.4f %8.4f %8.4f\n", y[i][0], y[i][1], y[i][2]);
    CHECK(!memcmp(y, again, sizeof y));
    CHECK(y[0][1] == 0 && y[0][0] < -1.2f && y[0][0] > -1.23f);
    clv_graph_destroy(read);
    clv_graph_destroy(built);
    clv_runtime_destroy(runtime);
    return 0;
}
