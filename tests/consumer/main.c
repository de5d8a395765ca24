/* SPDX-License-Identifier: Apache-2.0
 * What a user of the installed library writes, in the words that C99 and C++11 share: relu(x W) on the host device. */
#include <stdio.h>
#include <string.h>

#include <cleave/cleave.h>

int main(void) {
    static const int64_t x_dims[] = {2, 2}, w_dims[] = {2, 1};
    static const float x[] = {1, 2, -3, -4}, w[] = {0.5f, 0.25f};
    float y[2] = {-1, -1};
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    clv_plan_config config;
    int64_t ticket = 0;
    int ok = 0;

    memset(&config, 0, sizeof config);
    if (clv_runtime_create(NULL, &runtime) != CLV_OK) goto done;
    if (clv_device_find(runtime, "host", &device) != CLV_OK) goto done;
    if (clv_graph_create(runtime, &graph) != CLV_OK) goto done;
    {
        clv_tensor *a = clv_input(graph, "a", CLV_DTYPE_F32, clv_shape_make(2, x_dims));
        clv_tensor *b = clv_input(graph, "b", CLV_DTYPE_F32, clv_shape_make(2, w_dims));
        clv_tensor *out = clv_relu(clv_matmul(a, b));
        clv_output(out, "out");
        config.device = device;
        if (clv_plan_create(graph, &config, &plan) != CLV_OK) goto done;
        if (clv_session_create(runtime, NULL, &session) != CLV_OK) goto done;
        if (clv_run_create(session, plan, &run) != CLV_OK) goto done;
        if (clv_run_feed(run, a, x, sizeof x) != CLV_OK || clv_run_feed(run, b, w, sizeof w) != CLV_OK)
            goto done;
        if (clv_run_step(run, &ticket) != CLV_OK) goto done;
        if (clv_run_fetch(run, ticket, out, y, sizeof y) != CLV_OK) goto done;
    }
    ok = y[0] == 1.0f && y[1] == 0.0f;
    printf("cleave %s: relu(x W) = %g %g\n", clv_version(), (double)y[0], (double)y[1]);
done:
    if (!ok) fprintf(stderr, "failed: %s\n", runtime ? clv_runtime_error(runtime) : "no runtime");
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    return ok ? 0 : 1;
}
