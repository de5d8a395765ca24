// SPDX-License-Identifier: Apache-2.0
// Where a tensor is and how large: a graph's tensors have shapes and sizes, a session's also a device.
#include "common.h"

#include <string.h>

int main(void) {
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, "cpu|host", &device));
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(8, 1, 28, 28));
    clv_tensor *y = clv_nn_conv2d(x, "conv1", 32, &(clv_nn_conv2d_config){.kernel = {3, 3}});
    clv_output(y, "y");
    char text[64];
    clv_shape shape = clv_tensor_shape(y);
    printf("y is %s, %zu bytes, on no device yet\n", clv_shape_text(&shape, text, sizeof text),
           clv_tensor_bytes(y));
    CHECK(clv_tensor_bytes(y) == 8 * 32 * 26 * 26 * sizeof(float));

    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(runtime, clv_session_create(runtime, NULL, &session));
    TRY(runtime, clv_session_reserve(session, &plan, 1));
    uint64_t parameters = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        clv_session_tensor tensor = clv_session_get(session, i);
        printf("%-14s %-14s %s, %zu bytes on %s\n", tensor.name,
               clv_shape_text(&tensor.shape, text, sizeof text), clv_dtype_name(tensor.dtype), tensor.bytes,
               clv_device_info_get(tensor.device)->name);
        CHECK(tensor.device == device);
        parameters += tensor.bytes;
    }
    CHECK(parameters == (32 * 9 + 32) * sizeof(float));
    CHECK(clv_device_memory(device).category[CLV_PARAMETERS].current == parameters);

    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    return 0;
}
