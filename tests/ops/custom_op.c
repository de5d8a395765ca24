// SPDX-License-Identifier: Apache-2.0
// Ops of a program's own: the same bits as a built-in op with the same expression, checked as ours are, and every lie caught with a
// sentence.
#include <math.h>

#include "cleave/cleave.h"
#include "harness/harness.h"
#include "ops/custom_op.h"

// ---- a built-in op written as a custom one ----------------------------------------------------------------------------

static void square_reference(const clv_op_use *use, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < clv_shape_numel(&use->in[0].shape); i++) out[0][i] = in[0][i] * in[0][i];
}
static void square_gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                            clv_tensor *const *dy, clv_tensor **dx) {
    (void)use, (void)out;
    dx[0] = clv_mul(clv_mul_scalar(dy[0], 2), in[0]);
}
static void square_wrong_gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                                  clv_tensor *const *dy, clv_tensor **dx) {
    (void)use, (void)out;
    dx[0] = clv_mul(dy[0], in[0]);
}
static void gradient_of_other_shape(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                                    clv_tensor *const *dy, clv_tensor **dx) {
    (void)use, (void)in, (void)out;
    dx[0] = clv_sum(dy[0], NULL, 0, false);
}
static void writes_beyond(const clv_op_use *use, const double *const *in, double *const *out) {
    square_reference(use, in, out);
    out[0][clv_shape_numel(&use->out[0].shape)] = 1;
}
static const char *impossible(clv_op_use *use) {
    use->out[0].shape.dims[0] = -7;
    return NULL;
}
static const char *too_many(clv_op_use *use) {
    use->n_out = 40;
    return NULL;
}
static const char *refuses(clv_op_use *use) {
    return use->in[0].shape.rank == 2 ? NULL : "x wants rank 2";
}

static const char square_text[] =
    "__kernel void KERNEL(square)(global float *y, global const float *x, int n) {\n"
    "    const int i = get_global_id(0);\n"
    "    if (i < n) y[i] = x[i] * x[i];\n"
    "}\n";
static const char wrong_text[] =
    "__kernel void KERNEL(square)(global float *y, global const float *x, int n) {\n"
    "    const int i = get_global_id(0);\n"
    "    if (i < n) y[i] = x[i] * 2;\n"
    "}\n";
static const char beyond_text[] =
    "__kernel void KERNEL(square)(global float *y, global const float *x, int n) {\n"
    "    const int i = get_global_id(0);\n"
    "    if (i < n) y[i] = x[i] * x[i];\n"
    "    if (i == 0) y[n] = 1;\n"
    "}\n";
static const char broken_text[] =
    "__kernel void KERNEL(square)(global float *y, global const float *x, int n) {\n"
    "    y[0] = no_such_name;\n"
    "}\n";
static const clv_op_sample samples[] = {
    {.label = "17", .in = {{CLV_DTYPE_F32, {1, {17}}}}, .quick = true},
    {.label = "3x5", .in = {{CLV_DTYPE_F32, {2, {3, 5}}}}, .lo = {-3}, .hi = {3}},
    {.label = "empty", .in = {{CLV_DTYPE_F32, {1, {0}}}}},
    {0}};

static clv_custom_op square(const char *name) {
    return (clv_custom_op){.bytes = sizeof(clv_custom_op),
                           .name = name,
                           .n_inputs = 1,
                           .kernel = square_text,
                           .entry = "square",
                           .reference = square_reference,
                           .gradient = square_gradient,
                           .samples = samples};
}

/** Sum of squares of a layer's results, and the gradient of its weight, on a device. */
static void run_square(clv_runtime *runtime, clv_device *device, bool custom, float *loss, float *gradient) {
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    int64_t ticket;
    float x[4 * 19];
    for (int i = 0; i < 4 * 19; i++) x[i] = sinf((float)i);
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_tensor *in = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 19));
    clv_tensor *h = clv_nn_linear(in, "fc", 33, NULL);
    clv_tensor *y = custom ? clv__custom_op_add("custom_square", &h, 1, NULL, 0) : clv_square(h);
    clv_tensor *sum = clv_mean(y, NULL, 0, false);
    clv_output(sum, "loss");
    clv_backward(sum);
    clv_tensor *dw = clv_gradient(clv_graph_find(graph, "fc.weight"));
    clv_output(dw, "dw");
    assert_status(clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan), CLV_OK, runtime);
    assert_status(clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session), CLV_OK, runtime);
    assert_status(clv_run_create(session, plan, &run), CLV_OK, runtime);
    assert_status(clv_run_feed(run, in, x, sizeof x), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, sum, loss, sizeof *loss), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, dw, gradient, 33 * 19 * sizeof *gradient), CLV_OK, runtime);
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

static void same_bits(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    const clv_custom_op op = square("custom_square");
    clv_device *device;
    assert_status(clv_op_register(runtime, &op), CLV_OK, runtime);
    assert_status(clv_op_register(runtime, &op), CLV_OK, runtime); // the same again
    for (int k = -1; (device = clv__test_next_device(runtime, &k)) != NULL;) {
        float loss[2], gradient[2][33 * 19];
        run_square(runtime, device, false, &loss[0], gradient[0]);
        run_square(runtime, device, true, &loss[1], gradient[1]);
        assert_true(loss[0] > 0);
        assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
        assert_memory_equal(gradient[0], gradient[1], sizeof gradient[0]);
    }
    clv_runtime_destroy(runtime);
}

// ---- checked as ours are --------------------------------------------------------------------------------------------

/** Cases of an op on a device that failed, and the first one's sentence; kernels: only where kernels run. */
static int failures_of(clv_runtime *runtime, clv_device *device, const char *name, char *sentence,
                       size_t bytes) {
    const char *const names[] = {name, NULL};
    clv_check_report *report;
    assert_status(clv_check(runtime, device, &(clv_check_config){.ops = names}, &report), CLV_OK, runtime);
    assert_true(report->cases > 0);
    const int failed = report->failed;
    snprintf(sentence, bytes, "%s", failed ? report->failures[0].sentence : "");
    clv_check_report_destroy(report);
    return failed;
}

static void checked(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_custom_op wrong = square("wrong_kernel"), beyond = square("beyond_kernel"),
                  broken = square("broken_kernel"), slope = square("wrong_gradient"),
                  lie = square("lying_reference"), right = square("right_square");
    wrong.kernel = wrong_text, beyond.kernel = beyond_text, broken.kernel = broken_text;
    slope.gradient = square_wrong_gradient, lie.reference = writes_beyond;
    const clv_custom_op *all[] = {&right, &slope, &lie, &wrong, &beyond, &broken};
    for (size_t i = 0; i < 6; i++) assert_status(clv_op_register(runtime, all[i]), CLV_OK, runtime);
    clv_device *device;
    char sentence[512];
    for (int k = -1; (device = clv__test_next_device(runtime, &k)) != NULL;) {
        const bool kernels = strcmp(clv_device_info_get(device)->backend, "host") != 0;
        assert_int_equal(failures_of(runtime, device, "right_square", sentence, sizeof sentence), 0);
        assert_true(failures_of(runtime, device, "wrong_gradient", sentence, sizeof sentence) > 0);
        if (!kernels) continue;
        for (int i = 2; i < 6; i++)
            assert_true(failures_of(runtime, device, all[i]->name, sentence, sizeof sentence) > 0);
        assert_holds(sentence, "broken_kernel");
    }
    clv_runtime_destroy(runtime);
}

// ---- what is refused ------------------------------------------------------------------------------------------------

static void refused(clv_runtime *runtime, const clv_custom_op *op, clv_status status, const char *sentence) {
    assert_status(clv_op_register(runtime, op), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
}

static void bad_descriptors(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    static const clv_attribute twice[] = {{"a", 1}, {"a", 2}, {0}};
    static const clv_op_sample unknown[] = {
        {.label = "x", .in = {{CLV_DTYPE_F32, {1, {1}}}}, .attributes = {{"b", 1}}}, {0}};
    clv_custom_op op = square("relu");
    refused(runtime, &op, CLV_E_STATE, "there is an op 'relu' already");
    op = square("flatten"); // a builder, and no op
    refused(runtime, &op, CLV_E_STATE, "there is an op 'flatten' already");
    op = square("two words");
    refused(runtime, &op, CLV_E_VALUE, "cannot be called 'two words'");
    op = square("bad"), op.bytes = 8;
    refused(runtime, &op, CLV_E_VALUE, "8 bytes");
    op = square("bad"), op.n_inputs = 9;
    refused(runtime, &op, CLV_E_VALUE, "has 9 inputs");
    op = square("bad"), op.kernel = NULL;
    refused(runtime, &op, CLV_E_VALUE, "neither a build function nor a kernel");
    op = square("bad"), op.reference = NULL;
    refused(runtime, &op, CLV_E_VALUE, "no reference");
    op = square("bad"), op.samples = NULL;
    refused(runtime, &op, CLV_E_VALUE, "no samples");
    op = square("bad"), op.entry = "cube";
    refused(runtime, &op, CLV_E_VALUE, "no kernel named KERNEL(cube)");
    op = square("bad"), op.attributes = twice;
    refused(runtime, &op, CLV_E_VALUE, "two attributes 'a'");
    op = square("bad"), op.samples = unknown;
    refused(runtime, &op, CLV_E_VALUE, "there is no attribute 'b'");
    op = square("custom_square"), op.reference = writes_beyond;
    const clv_custom_op good = square("custom_square");
    assert_status(clv_op_register(runtime, &good), CLV_OK, runtime);
    refused(runtime, &op, CLV_E_STATE, "there is an op 'custom_square' already");
    op = good, op.n_inputs = 2;
    refused(runtime, &op, CLV_E_STATE, "there is an op 'custom_square' already");
    op = good, op.group = 64;
    refused(runtime, &op, CLV_E_STATE, "there is an op 'custom_square' already");
    assert_status(clv_op_register(runtime, &good), CLV_OK, runtime);
    clv_runtime_destroy(runtime);
}

static void use_fails(clv_runtime *runtime, const char *name, int n, const clv_attribute *attribute,
                      const char *sentence) {
    clv_graph *graph;
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_tensor *x[2] = {clv_parameter(graph, "x", CLV_SHAPE(3), (clv_init){0})};
    x[1] = x[0];
    clv_tensor *y = clv__custom_op_add(name, x, n, attribute, attribute != NULL);
    if (y) clv_backward(clv_sum(y, NULL, 0, false));
    assert_true(clv_graph_status(graph) != CLV_OK);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(graph);
}

static void bad_uses(void **state) {
    (void)state;
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_custom_op a = square("negative_shape"), b = square("many_outputs"), c = square("rank_2"),
                  d = square("scalar_gradient"), e = square("no_gradient"), f = square("custom_square");
    a.infer = impossible, b.infer = too_many, c.infer = refuses;
    d.gradient = gradient_of_other_shape, e.gradient = NULL;
    const clv_custom_op *all[] = {&a, &b, &c, &d, &e, &f};
    for (size_t i = 0; i < 6; i++) assert_status(clv_op_register(runtime, all[i]), CLV_OK, runtime);
    use_fails(runtime, "negative_shape", 1, NULL, "a shape that cannot be");
    use_fails(runtime, "many_outputs", 1, NULL, "40 outputs");
    use_fails(runtime, "rank_2", 1, NULL, "rank_2#0: x wants rank 2 (inputs: f32 [3])");
    use_fails(runtime, "scalar_gradient", 1, NULL, "the gradient of 'scalar_gradient' makes a tensor f32 []");
    use_fails(runtime, "no_gradient", 1, NULL, "the gradient stops at no_gradient#0");
    use_fails(runtime, "custom_sqare", 1, NULL, "did you mean 'custom_square'?");
    use_fails(runtime, "custom_square", 2, NULL, "has 1 inputs, and 2 are given");
    use_fails(runtime, "custom_square", 1, &(clv_attribute){"beta", 1}, "has no attribute 'beta'");
    clv_runtime_destroy(runtime);
}

// ---- of existing ops ------------------------------------------------------------------------------------------------

static clv_tensor *build_scaled(clv_tensor *const *in, int n, const double *attributes) {
    (void)n;
    return clv_mul_scalar(in[1] ? clv_add(in[0], in[1]) : in[0], (float)attributes[0]);
}

static void composition(void **state) {
    (void)state;
    static const clv_attribute attributes[] = {{"scale", 2}, {0}};
    const clv_custom_op op = {.bytes = sizeof op,
                              .name = "scaled",
                              .n_inputs = 2,
                              .optional_inputs = 2,
                              .attributes = attributes,
                              .build = build_scaled};
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_graph *graph;
    assert_status(clv_op_register(runtime, &op), CLV_OK, runtime);
    assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
    clv_tensor *x = clv_parameter(graph, "x", CLV_SHAPE(3), (clv_init){0});
    clv_tensor *y = clv__custom_op_add("scaled", &x, 1, NULL, 0);
    clv_backward(clv_sum(y, NULL, 0, false));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_non_null(clv_gradient(x));
    assert_holds(clv_tensor_name(y), "mul_scalar");
    bool found = false;
    for (int i = 0; clv_custom_op_get(i); i++) found |= strcmp(clv_custom_op_get(i)->name, "scaled") == 0;
    assert_true(found);
    assert_null(clv_custom_op_get(-1));
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(checked),
                                       cmocka_unit_test(bad_descriptors), cmocka_unit_test(bad_uses),
                                       cmocka_unit_test(composition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
