// SPDX-License-Identifier: Apache-2.0
// An op of your own: kernel, reference, gradient; trained on two devices (the argument: a placement). Built as a shared library, the
// same file is for `cleave check --ops`.
#include <math.h>

#include "common.h"

static const char kernel[] =
    "__kernel void KERNEL(softplus_beta)(global T_y *y, global const T_x *x, int n, float beta) {\n"
    "    const int i = get_global_id(0);\n"
    "    if (i >= n) return;\n"
    "    const float v = LOAD(T_x, x + i);\n"
    "    STORE(T_y, fmax(v, 0.0f) + log1p(exp(-fabs(beta * v))) / beta, y + i);\n"
    "}\n";

static void reference(const clv_op_use *use, const double *const *in, double *const *out) {
    const double beta = use->attributes[0].number;
    for (int64_t i = 0; i < clv_shape_numel(&use->out[0].shape); i++)
        out[0][i] = log1p(exp(beta * in[0][i])) / beta;
}

/** dx = dy * sigmoid(beta * x), made of ops that there are. */
static void gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                     clv_tensor *const *dy, clv_tensor **dx) {
    (void)out;
    dx[0] = clv_mul(dy[0], clv_sigmoid(clv_mul_scalar(in[0], (float)use->attributes[0].number)));
}

// In mixed precision x may be stored in two bytes, and y as x is: the kernel loads and stores both ways.
static const clv_op_value inputs[] = {{"x", "f32|f16"}, {NULL, NULL}};
static const clv_op_value outputs[] = {{"y", "like x"}, {NULL, NULL}};
static const clv_op_attribute attributes[] = {
    {.name = "beta", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "1", .has_least = true, .above = true},
    {.name = NULL}};
static const clv_op_variant variants[] = {{.name = "plain", .kernel = kernel}, {.name = NULL}};

static const clv_op_sample_input vector[] = {
    {.dtype = CLV_DTYPE_F32, .shape = {1, {1003}}, .lo = -9, .hi = 9}};
static const clv_op_sample_input matrix[] = {{.dtype = CLV_DTYPE_F32, .shape = {2, {7, 5}}}};
static const clv_op_argument beta_3[] = {{.name = "beta", .number = 3}};
static const clv_op_sample cases[] = {
    {.label = "vector", .in = vector, .n_in = 1, .quick = true},
    {.label = "beta 3", .in = matrix, .n_in = 1, .attributes = beta_3, .n_attributes = 1, .quick = true},
    {.label = NULL}};

static const clv_custom_op softplus_beta = {.bytes = sizeof softplus_beta,
                                            .name = "softplus_beta",
                                            .inputs = inputs,
                                            .attributes = attributes,
                                            .outputs = outputs,
                                            .variants = variants,
                                            .reference = reference,
                                            .gradient = gradient,
                                            .samples = cases};

CLV_API clv_status clv_ops_init(clv_runtime *runtime);
clv_status clv_ops_init(clv_runtime *runtime) {
    return clv_op_register(runtime, &softplus_beta);
}

int main(int argc, char **argv) {
    enum { BATCH = 32, STEPS = 60 };
    clv_runtime *runtime = NULL;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    static float images[BATCH * 784];
    static int32_t classes[BATCH];
    float loss = 0;
    const char *place = argc > 1 ? argv[1] : "fc1=gpu|cpu|host,fc2=host";
    make_images(1, BATCH, images, classes);
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_ops_init(runtime));
    TRY(runtime, clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(BATCH, 784));
    clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(BATCH));
    clv_tensor *h = clv_nn_linear(x, "fc1", 64, NULL);
    h = clv_op_call(graph, "softplus_beta", &h, 1, &(clv_op_argument){.name = "beta", .number = 2}, 1);
    clv_tensor *mean = clv_cross_entropy(clv_nn_linear(h, "fc2", 10, NULL), labels);
    clv_output(mean, "loss");
    clv_backward(mean);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.place = place}, &plan));
    TRY(runtime, clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(runtime, clv_run_create(session, plan, &run));
    clv_feed feeds[] = {{x, images, sizeof images}, {labels, classes, sizeof classes}};
    clv_fetch fetches[] = {{mean, &loss, sizeof loss}};
    for (int i = 0; i < STEPS; i++) TRY(runtime, clv_run_do(run, &(clv_step){feeds, 2, 0.1, fetches, 1}));
    printf("%s: loss %.4f after %d steps\n", place, loss, STEPS);
    CHECK(loss < 0.5f); // log 10 at first
    clv_run_destroy(run), clv_session_destroy(session), clv_plan_destroy(plan);
    clv_graph_destroy(graph), clv_runtime_destroy(runtime);
    return 0;
}
