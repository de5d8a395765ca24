/* SPDX-License-Identifier: Apache-2.0
 * Every public header twice, and every public macro used, in the words that C99 to C23 and C++11 to C++23 share.
 * languages.sh compiles this as each of them, and looks for what is missing here. */
#include <cleave/bench.h>
#include <cleave/check.h>
#include <cleave/cleave.h>
#include <cleave/data.h>
#include <cleave/device.h>
#include <cleave/graph.h>
#include <cleave/io.h>
#include <cleave/nn.h>
#include <cleave/onnx.h>
#include <cleave/ops.h>
#include <cleave/optim.h>
#include <cleave/custom_op.h>
#include <cleave/place.h>
#include <cleave/plan.h>
#include <cleave/profile.h>
#include <cleave/ranks.h>
#include <cleave/runtime.h>
#include <cleave/status.h>
#include <cleave/tensor.h>
#include <cleave/train.h>
#include <cleave/generate.h>
#include <cleave/tune.h>

#include <stdio.h>
#include <string.h>

#if CLV_VERSION < CLV_VERSION_OF(0, 2, 0) || CLV_VERSION != CLV_VERSION_OF(CLV_VERSION_MAJOR, CLV_VERSION_MINOR, CLV_VERSION_PATCH)
#error "the version's macros do not agree"
#endif

/* A user's own function, marked as ours are. */
extern CLV_API CLV_MUST_CHECK clv_status made(clv_shape shape, int rank, int64_t numel);

/* And with the marks of ours, each before a type. */
extern CLV_OR_NULL const char *marked(CLV_KEPT clv_graph *graph, CLV_OUT CLV_COUNT(n) int *out, int n, CLV_INOUT int *both,
                                      CLV_TAKEN clv_array *array, CLV_BORROWED clv_device **device,
                                      CLV_ARRAY const float *many, CLV_UNTIL_NULL const char *const *list);

/* A user's own struct that may grow, as ours do. */
struct growing {
    int size;
    CLV_RESERVED(2);
};

/* Another one, and as those are that a Cleave for inference is without. */
extern CLV_TRAIN_API void trained(void);

CLV_API CLV_MUST_CHECK clv_status made(clv_shape shape, int rank, int64_t numel) {
    return sizeof(struct growing) == 24 && shape.rank == rank && clv_shape_numel(&shape) == numel ? CLV_OK : CLV_E_SHAPE;
}

static clv_tensor *build(clv_graph *graph) {
    int n = 2;
    unsigned features = 3;
    size_t hidden = 4;
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(n, features));
    return clv_softmax(
        clv_relu(clv_nn_linear(clv_reshape(x, CLV_SHAPE(n, 1, features)), "fc", (int64_t)hidden, NULL)), -1);
}

int main(void) {
    clv_runtime *runtime = NULL;
    clv_graph *graph = NULL;
    const char *init = CLV_OPS_INIT;
    clv_shape shape = CLV_SHAPE(64, 784), list[2];
    char text[64];
    int64_t dims[CLV_MAX_RANK] = {5, 7};
    short small = 3;
    int failed = 0;

    failed |=
        made(shape, 2, 64 * 784) || made(CLV_SHAPE(9), 1, 9) || made(CLV_SHAPE(dims[0], dims[1]), 2, 35);
    failed |=
        made(CLV_SHAPE(1, 2, 3, 4, 5, 6, 7, 8), 8, 40320) || made(CLV_SHAPE(small, 2u, 2ul, 2ll), 4, 24);
    failed |= strcmp(init, "clv_ops_init") != 0;
    list[0] = CLV_SHAPE(1 + 1, dims[0] > 0 ? 3 : 4);
    list[1] = CLV_SHAPE(2, 3);
    failed |= !clv_shape_equal(&list[0], &list[1]);
    failed |= strcmp(clv_shape_text(&shape, text, sizeof text), "[64,784]") != 0;
    failed |= clv_runtime_create(NULL, &runtime) != CLV_OK || clv_graph_create(runtime, &graph) != CLV_OK;
    if (!failed) {
        clv_shape result = clv_tensor_shape(build(graph));
        failed |= made(result, 3, 8);
    }
    if (failed) fprintf(stderr, "failed: %s\n", runtime ? clv_runtime_error(runtime) : "no runtime");
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    return failed;
}
