// SPDX-License-Identifier: Apache-2.0
// Ops of a program's own: the same bits as a built-in op with the same expression, checked as ours are, and every lie caught with a
// sentence.
#include <math.h>

#include "cleave/cleave.h"
#include "harness/harness.h"

// ---- a built-in op written as a custom one ----------------------------------------------------------------------------

static void square_reference(const clv_op_use *use, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < clv_shape_numel(&use->in[0].shape); i++) out[0][i] = in[0][i] * in[0][i];
}
static void square_gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                            clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_mul(clv_mul_scalar(dy[0], 2), in[0]);
}
static void square_wrong_gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                                  clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_mul(dy[0], in[0]);
}
static void gradient_of_other_shape(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                                    clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_sum(dy[0], NULL, 0, false);
}
static void writes_beyond(const clv_op_use *use, const double *const *in, double *const *out) {
    square_reference(use, in, out);
    out[0][clv_shape_numel(&use->out[0].shape)] = 1;
}
static const char *impossible(const clv_op_use *use, clv_op_tensor *out) {
    out[0].shape.dims[0] = -7;
    return NULL;
}
static const char *another_shape(const clv_op_use *use, clv_op_tensor *out) {
    out[0].shape.rank = 0;
    return NULL;
}
static const char *no_dtype(const clv_op_use *use, clv_op_tensor *out) {
    out[0].dtype = (clv_dtype)77;
    return NULL;
}
static const char *refuses(const clv_op_use *use, clv_op_tensor *out) {
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
static const clv_op_sample_input wide[] = {{.dtype = CLV_DTYPE_F32, .shape = {1, {17}}}},
                                 flat[] = {{.dtype = CLV_DTYPE_F32, .shape = {2, {3, 5}}, .lo = -3, .hi = 3}},
                                 empty[] = {{.dtype = CLV_DTYPE_F32, .shape = {1, {0}}}};
static const clv_op_sample samples[] = {{.label = "17", .in = wide, .n_in = 1, .quick = true},
                                        {.label = "3x5", .in = flat, .n_in = 1},
                                        {.label = "empty", .in = empty, .n_in = 1},
                                        {.label = NULL}};
static const clv_op_value x_f32[] = {{"x", "f32"}, {NULL, NULL}};
static const clv_op_value like_x[] = {{"y", "like x"}, {NULL, NULL}};
static const clv_op_variant square_variants[] = {{.name = "plain", .kernel = square_text, .entry = "square"},
                                                 {.name = NULL}};

static clv_custom_op square(const char *name) {
    return (clv_custom_op){.bytes = sizeof(clv_custom_op),
                           .name = name,
                           .inputs = x_f32,
                           .outputs = like_x,
                           .variants = square_variants,
                           .reference = square_reference,
                           .gradient = square_gradient,
                           .samples = samples};
}

/** Sum of squares of a layer's results, and the gradient of its weight, on a device. */
static void run_square(clv_runtime *runtime, clv_device *device, bool custom, float *loss, float *gradient) {
    int64_t ticket;
    float x[4 * 19];
    for (int i = 0; i < 4 * 19; i++) x[i] = sinf((float)i);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *in = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 19));
    clv_tensor *h = clv_nn_linear(in, "fc", 33, NULL);
    clv_tensor *y = custom ? clv_op_call(graph, "custom_square", &h, 1, NULL, 0) : clv_square(h);
    clv_tensor *sum = clv_mean(y, NULL, 0, false);
    clv_output(sum, "loss");
    clv_backward(sum);
    clv_tensor *dw = clv_gradient(clv_graph_find(graph, "fc.weight"));
    clv_output(dw, "dw");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 1});
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, in, x, sizeof x), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, sum, loss, sizeof *loss), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, dw, gradient, 33 * 19 * sizeof *gradient), CLV_OK, runtime);
    clv__test_end(run, session, plan, graph);
}

TEST(same_bits) {
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
    clv_free(report);
    return failed;
}

TEST(checked) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_custom_op wrong = square("wrong_kernel"), beyond = square("beyond_kernel"),
                  broken = square("broken_kernel"), slope = square("wrong_gradient"),
                  lie = square("lying_reference"), right = square("right_square");
    static const clv_op_variant of_wrong[] = {{.name = "plain", .kernel = wrong_text, .entry = "square"},
                                              {0}},
                                of_beyond[] = {{.name = "plain", .kernel = beyond_text, .entry = "square"},
                                               {0}},
                                of_broken[] = {{.name = "plain", .kernel = broken_text, .entry = "square"},
                                               {0}};
    wrong.variants = of_wrong, beyond.variants = of_beyond, broken.variants = of_broken;
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

TEST(bad_descriptors) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    static const clv_op_argument b_is_1[] = {{.name = "b", .number = 1}};
    static const clv_op_sample unknown[] = {
        {.label = "x", .in = wide, .n_in = 1, .attributes = b_is_1, .n_attributes = 1}, {0}};
    static const clv_op_sample two[] = {{.label = "x", .in = wide, .n_in = 2}, {0}};
    clv_custom_op op = square("relu");
    refused(runtime, &op, CLV_E_STATE, "there is an op 'relu' already");
    op = square("flatten"); // a builder, and no op
    refused(runtime, &op, CLV_E_STATE, "there is an op 'flatten' already");
    op = square("two words");
    refused(runtime, &op, CLV_E_VALUE, "cannot be called 'two words'");
    op = square("bad"), op.bytes = 8;
    refused(runtime, &op, CLV_E_VALUE, "8 bytes");
    op = square("bad"), op.variants = NULL;
    refused(runtime, &op, CLV_E_VALUE, "op 'bad': it has neither a build function nor a kernel");
    op = square("bad"), op.reference = NULL;
    refused(runtime, &op, CLV_E_VALUE, "no reference");
    op = square("bad"), op.samples = NULL;
    refused(runtime, &op, CLV_E_VALUE, "no samples");
    op = square("bad"), op.samples = unknown;
    refused(runtime, &op, CLV_E_NOT_FOUND, "op 'bad': sample 'x': bad has no attribute 'b'; it has: none");
    op = square("bad"), op.samples = two;
    refused(runtime, &op, CLV_E_VALUE, "bad has 1 inputs, and 2 are given");
    op = square("custom_square"), op.reference = writes_beyond;
    const clv_custom_op good = square("custom_square");
    assert_status(clv_op_register(runtime, &good), CLV_OK, runtime);
    refused(runtime, &op, CLV_E_STATE, "there is an op 'custom_square' already");
    op = good, op.inputs = like_x;
    refused(runtime, &op, CLV_E_STATE, "there is an op 'custom_square' already");
    assert_status(clv_op_register(runtime, &good), CLV_OK, runtime);
    assert_null(clv_op_find("bad"));
    clv_runtime_destroy(runtime);
}

TEST(bad_signatures) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    const struct {
        clv_op_value inputs[4], outputs[4];
        const char *sentence;
    } cases[] = {
        {{{"x y", "f32"}}, {{"y", "f32[1]"}}, "an input or output cannot be called 'x y'"},
        {{{"x", "f32"}, {"x", "f32"}}, {{"y", "f32[1]"}}, "two of its inputs and outputs are called 'x'"},
        {{{"x", "f32"}}, {{"x", "f32[1]"}}, "two of its inputs and outputs are called 'x'"},
        {{{"x", NULL}}, {{"y", "f32[1]"}}, "'x' has no type"},
        {{{"x", "f33"}}, {{"y", "f32[1]"}}, "'x' has the type 'f33', with an unknown dtype"},
        {{{"x", ""}}, {{"y", "f32[1]"}}, "without a dtype"},
        {{{"x", "f32|integer"}}, {{"y", "f32[1]"}}, "with an unknown dtype"},
        {{{"x", "f16"}}, {{"y", "f32[1]"}}, "what takes f16 must take f32"},
        {{{"x", "f32[N"}}, {{"y", "f32[1]"}}, "whose bracket is not closed"},
        {{{"x", "f32[N]!"}}, {{"y", "f32[1]"}}, "with more behind its bracket"},
        {{{"x", "f32[N+1]"}},
         {{"y", "f32[1]"}},
         "whose brackets hold something else than letters and numbers"},
        {{{"x", "f32[*,*]"}}, {{"y", "f32[1]"}}, "which has too many dimensions"},
        {{{"x", "like z"}}, {{"y", "f32[1]"}}, "no input that is always there has that name before it"},
        {{{"x", "f32?"}, {"z", "like x"}}, {{"y", "f32[1]"}}, "that is always there"},
        {{{"x", "f32..."}, {"z", "f32"}}, {{"y", "f32[1]"}}, "only the last input can be a list"},
        {{{"x", "f32"}}, {{"y", "like x?"}}, "an output is neither optional nor a list"},
        {{{"x", "f32"}}, {{NULL, NULL}}, "it has no outputs"},
        {{{"x", "f32[N]"}}, {{"y", "f32[M]"}}, "its inputs do not determine its output 'y' (f32[M])"},
        {{{"x", "f32[N]?"}}, {{"y", "f32[N]"}}, "its inputs do not determine its output 'y'"},
        {{{"x", "f32"}}, {{"y", "f32"}}, "its inputs do not determine its output 'y'"},
        {{{"x", "f32..."}}, {{"y", "f32[1]"}}, "a list of inputs is for an op with a build function"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_custom_op op = square("bad");
        op.inputs = cases[i].inputs, op.outputs = cases[i].outputs;
        refused(runtime, &op, CLV_E_VALUE, cases[i].sentence);
    }
    clv_runtime_destroy(runtime);
}

TEST(bad_attributes) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    const struct {
        clv_op_attribute attributes[4];
        const char *sentence;
    } cases[] = {
        {{{.name = "a-b", .kind = CLV_ATTRIBUTE_INT}}, "an attribute cannot be called 'a-b'"},
        {{{.name = "a", .kind = CLV_ATTRIBUTE_INT}, {.name = "a", .kind = CLV_ATTRIBUTE_INT}},
         "it has two attributes 'a'"},
        {{{.name = "a"}}, "attribute 'a' is of an unknown kind (0)"},
        {{{.name = "a", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "many"}},
         "attribute 'a' cannot be 'many' by default"},
        {{{.name = "a", .kind = CLV_ATTRIBUTE_LIST, .fallback = "1,,2"}}, "cannot be '1,,2' by default"},
        {{{.name = "a", .kind = CLV_ATTRIBUTE_TEXT, .fallback = "a text of more bytes than a use has"}},
         "cannot be 'a text of more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_custom_op op = square("bad");
        op.attributes = cases[i].attributes;
        refused(runtime, &op, CLV_E_VALUE, cases[i].sentence);
    }
    clv_op_attribute many[CLV_NODE_ARGUMENTS + 2] = {0};
    static char names[CLV_NODE_ARGUMENTS + 1][4];
    clv_custom_op op = square("bad");
    op.attributes = many;
    for (int i = 0; i <= CLV_NODE_ARGUMENTS; i++) {
        snprintf(names[i], sizeof names[i], "a%d", i % 100);
        many[i] = (clv_op_attribute){.name = names[i], .kind = CLV_ATTRIBUTE_LIST, .fallback = ""};
    }
    refused(runtime, &op, CLV_E_VALUE, "it has more than 16 attributes");
    many[CLV_NODE_ARGUMENTS].name = NULL;
    refused(runtime, &op, CLV_E_VALUE, "its attributes take 576 bytes, the most is 256");
    clv_runtime_destroy(runtime);
}

TEST(bad_variants) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    const struct {
        clv_op_variant variants[3];
        const char *sentence;
    } cases[] = {
        {{{.name = "plain", .kernel = square_text, .entry = "cube"}},
         "the source of variant 'plain' has no kernel named KERNEL(cube)"},
        {{{.name = "fast", .kernel = square_text, .entry = "square"}},
         "the first of its variants, and no other, is 'plain'; number 0 is 'fast'"},
        {{{.name = "plain", .kernel = square_text, .entry = "square"}, {.name = "plain", .entry = "square"}},
         "number 1 is 'plain'"},
        {{{.name = "plain", .entry = "square"}}, "variant 'plain' has no kernel"},
        {{{.name = "plain", .kernel = square_text, .entry = "square", .group = -2}}, "has groups of -2"},
        {{{.name = "plain", .kernel = square_text, .entry = "square", .relative = -1}},
         "a relative time below 0"},
        {{{.name = "plain", .kernel = square_text, .entry = "square"}, {.name = "a b", .entry = "square"}},
         "a variant cannot be called 'a b'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_custom_op op = square("bad");
        op.variants = cases[i].variants;
        refused(runtime, &op, CLV_E_VALUE, cases[i].sentence);
    }
    clv_runtime_destroy(runtime);
}

static void use_fails(clv_runtime *runtime, const char *name, int n, const clv_op_argument *argument,
                      const char *sentence) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x[2] = {clv_parameter(graph, "x", CLV_SHAPE(3), (clv_init){0})};
    x[1] = x[0];
    clv_tensor *y = clv_op_call(graph, name, x, n, argument, argument != NULL);
    if (y) clv_backward(clv_sum(y, NULL, 0, false));
    assert_true(clv_graph_status(graph) != CLV_OK);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(graph);
}

TEST(bad_uses) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_custom_op a = square("negative_shape"), b = square("other_shape"), c = square("rank_2"),
                  d = square("scalar_gradient"), e = square("no_gradient"), f = square("custom_square"),
                  g = square("no_dtype");
    a.infer = impossible, b.infer = another_shape, c.infer = refuses, g.infer = no_dtype;
    d.gradient = gradient_of_other_shape, e.gradient = NULL;
    const clv_custom_op *all[] = {&a, &b, &c, &d, &e, &f, &g};
    for (size_t i = 0; i < 7; i++) assert_status(clv_op_register(runtime, all[i]), CLV_OK, runtime);
    use_fails(runtime, "negative_shape", 1, NULL, "its infer gives output 'y' a shape that is not possible");
    use_fails(runtime, "other_shape", 1, NULL,
              "its infer contradicts its signature: output 0 is f32 [], not like x");
    use_fails(runtime, "no_dtype", 1, NULL, "its infer gives output 'y' a dtype that is not possible");
    use_fails(runtime, "rank_2", 1, NULL, "rank_2#0: x wants rank 2 (inputs: f32 [3])");
    use_fails(runtime, "scalar_gradient", 1, NULL, "the gradient of 'scalar_gradient' makes a tensor f32 []");
    use_fails(runtime, "no_gradient", 1, NULL, "the gradient stops at no_gradient#0");
    use_fails(runtime, "custom_sqare", 1, NULL, "did you mean 'custom_square'?");
    use_fails(runtime, "custom_square", 2, NULL, "custom_square has the inputs 'x', and 2 are given");
    use_fails(runtime, "custom_square", 1, &(clv_op_argument){.name = "beta"}, "has no attribute 'beta'");
    clv_runtime_destroy(runtime);
}

// ---- of existing ops ------------------------------------------------------------------------------------------------

static clv_tensor *build_scaled(clv_graph *graph, const clv_op_use *use, clv_tensor *const *in) {
    return clv_mul_scalar(in[1] ? clv_add(in[0], in[1]) : in[0], (float)use->attributes[0].number);
}
static clv_tensor *build_total(clv_graph *graph, const clv_op_use *use, clv_tensor *const *in) {
    clv_tensor *sum = in[0];
    for (int i = 1; i < use->n_in; i++) sum = clv_add(sum, in[i]);
    return sum;
}
static clv_tensor *build_other(clv_graph *graph, const clv_op_use *use, clv_tensor *const *in) {
    return clv_sum(in[0], NULL, 0, false);
}

TEST(composition) {
    static const clv_op_value two[] = {{"x", "f32[N]"}, {"z", "like x?"}, {NULL, NULL}},
                              many[] = {{"xs", "f32[*]..."}, {NULL, NULL}},
                              star[] = {{"y", "f32[*]"}, {NULL, NULL}};
    static const clv_op_attribute attributes[] = {
        {.name = "scale", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "2", .has_most = true, .most = 9}, {0}};
    const clv_custom_op scaled = {.bytes = sizeof scaled,
                                  .name = "scaled",
                                  .inputs = two,
                                  .outputs = like_x,
                                  .attributes = attributes,
                                  .build = build_scaled},
                        total = {.bytes = sizeof total,
                                 .name = "total",
                                 .inputs = many,
                                 .outputs = star,
                                 .build = build_total},
                        other = {.bytes = sizeof other,
                                 .name = "other",
                                 .inputs = x_f32,
                                 .outputs = like_x,
                                 .build = build_other};
    clv_runtime *runtime = clv__test_runtime(NULL);
    assert_status(clv_op_register(runtime, &scaled), CLV_OK, runtime);
    assert_status(clv_op_register(runtime, &total), CLV_OK, runtime);
    assert_status(clv_op_register(runtime, &other), CLV_OK, runtime);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_parameter(graph, "x", CLV_SHAPE(3), (clv_init){0}), *xs[] = {x, x, x, x, x, x, x};
    clv_tensor *y = clv_op_call(graph, "scaled", &x, 1, NULL, 0);
    assert_holds(clv_tensor_name(y), "mul_scalar");
    assert_non_null(clv_op_call(graph, "total", xs, 7, NULL, 0));
    clv_backward(clv_sum(y, NULL, 0, false));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_non_null(clv_gradient(x));
    clv_graph_destroy(graph);
    use_fails(runtime, "scaled", 1, &(clv_op_argument){.name = "scale", .number = 10},
              "scale is 10, it must be at most 9");
    use_fails(runtime, "other", 1, NULL,
              "other: its build contradicts its signature: output 0 is f32 [], not like x");
    graph = clv__test_graph(runtime);
    x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
    assert_null(clv_op_call(graph, "scaled", &x, 1, NULL, 0));
    assert_status(clv_graph_status(graph), CLV_E_SHAPE, runtime);
    assert_holds(clv_runtime_error(runtime), "x has 2 dimensions, it must have 1");
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

// ---- everything that an op can have ---------------------------------------------------------------------------------

// Five sums of six inputs, one of which may be left out and one of which is i32: each is a value of its own of all that is given. The
// weights are a list; `mode` says which sign the last has.
static const char five_text[] =
    "#define ADD(k) (weights[k] * (LOAD(T_a, a + i) + b[i] + c[i] + d[0] + (float)e[i]) + (f ? f[i] : "
    "0.0f))\n"
    "__kernel void KERNEL(five)(global T_u *u, global float *v, global float *w, global float *r, global int "
    "*s,\n"
    "                           global const T_a *a, global const float *b, global const float *c,\n"
    "                           global const float *d, global const int *e, global const float *f, int n,\n"
    "                           int h, int k, int m, int flip) {\n"
    "    const int weights[] = {L_weights}, i = get_global_id(0);\n"
    "    if (i >= n) return;\n"
    "    STORE(T_u, ADD(0), u + i);\n"
    "    v[i] = ADD(1) * h;\n"
    "    w[i] = ADD(2) * k;\n"
    "#ifdef IS_mode_minus\n"
    "    r[i] = -ADD(N_weights - 1) * m;\n"
    "#else\n"
    "    r[i] = ADD(N_weights - 1) * m;\n"
    "#endif\n"
    "    s[i] = flip ? -e[i] : e[i];\n"
    "}\n";
// The same, four elements an item.
static const char fours_text[] =
    "#define ADD(k) (weights[k] * (LOAD(T_a, a + i) + b[i] + c[i] + d[0] + (float)e[i]) + (f ? f[i] : "
    "0.0f))\n"
    "__kernel void KERNEL(fours)(global T_u *u, global float *v, global float *w, global float *r, global "
    "int *s,\n"
    "                            global const T_a *a, global const float *b, global const float *c,\n"
    "                            global const float *d, global const int *e, global const float *f, int n,\n"
    "                            int h, int k, int m, int flip) {\n"
    "    const int weights[] = {L_weights};\n"
    "    if ((int)get_global_id(0) >= n) return;\n"
    "    for (int i = 4 * (int)get_global_id(0); i < 4 * (int)get_global_id(0) + 4; i++) {\n"
    "        STORE(T_u, ADD(0), u + i);\n"
    "        v[i] = ADD(1) * h;\n"
    "        w[i] = ADD(2) * k;\n"
    "#ifdef IS_mode_minus\n"
    "        r[i] = -ADD(N_weights - 1) * m;\n"
    "#else\n"
    "        r[i] = ADD(N_weights - 1) * m;\n"
    "#endif\n"
    "        s[i] = flip ? -e[i] : e[i];\n"
    "    }\n"
    "}\n";

static void five_reference(const clv_op_use *use, const double *const *in, double *const *out) {
    enum { WEIGHTS, PAIR, M, FLIP, MODE };
    const clv_op_argument *a = use->attributes;
    assert_int_equal(use->n_attributes, 5);
    assert_int_equal(use->n_in, 6);
    assert_int_equal(use->n_out, 5);
    const double sign = strcmp(a[MODE].text, "minus") ? 1 : -1;
    const int last = a[WEIGHTS].n - 1;
    for (int64_t i = 0; i < clv_shape_numel(&use->out[0].shape); i++) {
        const double sum = in[0][i] + in[1][i] + in[2][i] + in[3][0] + in[4][i], f = in[5] ? in[5][i] : 0;
        out[0][i] = (double)a[WEIGHTS].list[0] * sum + f;
        out[1][i] = ((double)a[WEIGHTS].list[1] * sum + f) * (double)a[PAIR].list[0];
        out[2][i] = ((double)a[WEIGHTS].list[2] * sum + f) * (double)a[PAIR].list[1];
        out[3][i] = sign * ((double)a[WEIGHTS].list[last] * sum + f) * a[M].number;
        out[4][i] = a[FLIP].number != 0 ? -in[4][i] : in[4][i];
    }
}

static void five_gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                          clv_tensor *const *dy, clv_tensor **dx) {
    const clv_op_argument *a = use->attributes;
    const double sign = strcmp(a[4].text, "minus") ? 1 : -1;
    const double of[] = {1, (double)a[1].list[0], (double)a[1].list[1], sign * a[2].number};
    clv_tensor *sum = NULL, *plain = NULL;
    for (int k = 0; k < 4; k++) {
        if (!dy[k]) continue;
        const int64_t weight = a[0].list[k == 3 ? a[0].n - 1 : k];
        clv_tensor *d = clv_mul_scalar(dy[k], (float)of[k]), *s = clv_mul_scalar(d, (float)weight);
        sum = sum ? clv_add(sum, s) : s;
        plain = plain ? clv_add(plain, d) : d;
    }
    for (int k = 0; k < 3; k++) dx[k] = sum;
    dx[3] = clv_reshape(clv_sum(sum, NULL, 0, false), CLV_SHAPE(1));
    dx[5] = in[5] ? plain : NULL;
}

static int64_t fourth(const clv_op_use *use) {
    return clv_shape_numel(&use->out[0].shape) / 4;
}
static bool by_fours(const clv_device_info *device, const clv_op_use *use) {
    return device && clv_shape_numel(&use->out[0].shape) % 4 == 0;
}

static const clv_op_value six[] = {{"a", "f32|f16[N,*]"}, {"b", "f32[N,*]"}, {"c", "f32[N,*]"},
                                   {"d", "f32[1]"},       {"e", "i32[N,*]"}, {"f", "like b?"},
                                   {NULL, NULL}};
static const clv_op_value five_of[] = {{"u", "like a"},   {"v", "f32[N,*]"}, {"w", "f32[N,*]"},
                                       {"r", "f32[N,*]"}, {"s", "i32[N,*]"}, {NULL, NULL}};
static const clv_op_attribute of_five[] = {
    {.name = "weights", .kind = CLV_ATTRIBUTE_LIST, .fallback = "2,3,-4", .has_most = true, .most = 9},
    {.name = "pair", .kind = CLV_ATTRIBUTE_PAIR, .fallback = "2"},
    {.name = "m", .kind = CLV_ATTRIBUTE_INT},
    {.name = "flip", .kind = CLV_ATTRIBUTE_BOOL, .fallback = "0"},
    {.name = "mode", .kind = CLV_ATTRIBUTE_TEXT, .fallback = "plus"},
    {.name = NULL}};
static const clv_op_variant two_variants[] = {{.name = "plain", .kernel = five_text},
                                              {.name = "fours",
                                               .kernel = fours_text,
                                               .entry = "fours",
                                               .items = fourth,
                                               .supports = by_fours,
                                               .relative = 0.5},
                                              {.name = NULL}};
#define INPUT(...)                                                                                           \
    {                                                                                                        \
        .dtype = CLV_DTYPE_F32, .shape = { __VA_ARGS__ }                                                     \
    }
#define WHOLE(...)                                                                                           \
    { .dtype = CLV_DTYPE_I32, .shape = {__VA_ARGS__}, .lo = -5, .hi = 5 }
static const clv_op_sample_input of_4x3[] = {INPUT(2, {4, 3}), INPUT(2, {4, 3}), INPUT(2, {4, 3}),
                                             INPUT(1, {1}),    WHOLE(2, {4, 3}), INPUT(2, {4, 3})};
static const clv_op_sample_input of_7[] = {INPUT(1, {7}), INPUT(1, {7}), INPUT(1, {7}), INPUT(1, {1}),
                                           WHOLE(1, {7})};
static const clv_op_argument m_is_2[] = {{.name = "m", .number = 2}};
static const int64_t four_weights[] = {1, -2, 3, 5}, three_one[] = {3, 1};
static const clv_op_argument all_given[] = {{.name = "weights", .list = four_weights, .n = 4},
                                            {.name = "pair", .list = three_one, .n = 2},
                                            {.name = "m", .number = -3},
                                            {.name = "flip", .number = 1},
                                            {.name = "mode", .text = "minus"}};
static const clv_op_sample five_samples[] = {
    {.label = "4x3", .in = of_4x3, .n_in = 6, .attributes = m_is_2, .n_attributes = 1, .quick = true},
    {.label = "7, all attributes",
     .in = of_7,
     .n_in = 5,
     .attributes = all_given,
     .n_attributes = 5,
     .quick = true},
    {.label = NULL}};
static const clv_custom_op five = {.bytes = sizeof five,
                                   .name = "five",
                                   .inputs = six,
                                   .attributes = of_five,
                                   .outputs = five_of,
                                   .variants = two_variants,
                                   .reference = five_reference,
                                   .gradient = five_gradient,
                                   .samples = five_samples};

/** All its variants are: one that leaves out three of four elements is told by its name. */
TEST(five_is_checked) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_device *device;
    char sentence[512];
    static const clv_op_variant quarter[] = {
        {.name = "plain", .kernel = five_text, .entry = "five"},
        {.name = "quarter", .entry = "five", .items = fourth, .supports = by_fours},
        {.name = NULL}};
    clv_custom_op less = five;
    less.name = "quarter_of_five", less.variants = quarter;
    assert_status(clv_op_register(runtime, &five), CLV_OK, runtime);
    assert_status(clv_op_register(runtime, &less), CLV_OK, runtime);
    for (int k = -1; (device = clv__test_next_device(runtime, &k)) != NULL;) {
        const bool kernels = strcmp(clv_device_info_get(device)->backend, "host") != 0;
        if (failures_of(runtime, device, "five", sentence, sizeof sentence)) fail_msg("%s", sentence);
        const int failed = failures_of(runtime, device, "quarter_of_five", sentence, sizeof sentence);
        assert_int_equal(failed > 0, kernels);
        if (kernels) assert_holds(sentence, "quarter");
    }
    clv_runtime_destroy(runtime);
}

/** A graph that has one, and its results; `pin`: its variant. */
static void run_five(clv_runtime *runtime, clv_device *device, clv_graph *graph, const char *pin, float *u,
                     float *r) {
    int64_t ticket;
    float values[3][12], d = 0.5f;
    int32_t e[12];
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 3; k++) values[k][i] = (float)((7 * i + 3 * k) % 11) / 8 - 0.5f, e[i] = i % 5 - 2;
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device, .variants = pin});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 1});
    clv_run *run = clv__test_run(runtime, session, plan);
    const char *const names[] = {"a", "b", "c"};
    for (int k = 0; k < 3; k++)
        assert_status(clv_run_feed(run, clv_graph_find(graph, names[k]), values[k], sizeof values[k]), CLV_OK,
                      runtime);
    assert_status(clv_run_feed(run, clv_graph_find(graph, "d"), &d, sizeof d), CLV_OK, runtime);
    assert_status(clv_run_feed(run, clv_graph_find(graph, "e"), e, sizeof e), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, clv_graph_find(graph, "u"), u, 12 * sizeof *u), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, clv_graph_find(graph, "r"), r, 12 * sizeof *r), CLV_OK, runtime);
    clv__test_end(run, session, plan, NULL);
}

static clv_graph *graph_of_five(clv_runtime *runtime, clv_precision precision) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_precision(graph, precision);
    const clv_shape shape = CLV_SHAPE(4, 3);
    clv_tensor *in[] = {
        clv_input(graph, "a", CLV_DTYPE_F32, shape), clv_input(graph, "b", CLV_DTYPE_F32, shape),
        clv_input(graph, "c", CLV_DTYPE_F32, shape), clv_input(graph, "d", CLV_DTYPE_F32, CLV_SHAPE(1)),
        clv_input(graph, "e", CLV_DTYPE_I32, shape)};
    if (precision) in[0] = clv_cast(in[0], CLV_DTYPE_F16);
    clv_tensor *u = clv_op_call(graph, "five", in, 5, all_given, 5);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_int_equal(clv_tensor_dtype(u), precision ? CLV_DTYPE_F16 : CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(clv_op_output(u, 3)), CLV_DTYPE_F32);
    assert_int_equal(clv_tensor_dtype(clv_op_output(u, 4)), CLV_DTYPE_I32);
    assert_null(clv_op_output(u, 5));
    clv_output(precision ? clv_cast(u, CLV_DTYPE_F32) : clv_mul_scalar(u, 1), "u");
    clv_output(clv_op_output(u, 3), "r");
    return graph;
}

/** The attributes of the node, as the walk tells them. */
static void is_five(const clv_graph *graph, int index) {
    clv_node_info node;
    assert_true(clv_graph_node_get(graph, index, &node));
    assert_string_equal(node.op, "five");
    assert_ptr_equal(node.signature->custom->infer, NULL);
    assert_int_equal(node.n_arguments, 5);
    assert_int_equal(node.n_outputs, 5);
    assert_int_equal(node.arguments[0].n, 4);
    assert_memory_equal(node.arguments[0].list, four_weights, sizeof four_weights);
    assert_memory_equal(node.arguments[1].list, three_one, sizeof three_one);
    assert_true(node.arguments[2].number == -3 && node.arguments[3].number == 1);
    assert_string_equal(node.arguments[4].text, "minus");
}

TEST(five_in_every_form) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_device *device;
    char *folder = clv__test_folder(), path[512];
    assert_status(clv_op_register(runtime, &five), CLV_OK, runtime);
    clv_graph *graph = graph_of_five(runtime, CLV_PRECISION_F32);
    snprintf(path, sizeof path, "%s/five.safetensors", folder);
    clv_graph *read = clv__test_graph(runtime);
    assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
    assert_status(clv_graph_read(read, path), CLV_OK, runtime);
    is_five(graph, 0);
    is_five(read, 0);
    clv_graph *half = graph_of_five(runtime, CLV_PRECISION_MIXED);
    is_five(half, 1);
    for (int k = -1; (device = clv__test_next_device(runtime, &k)) != NULL;) {
        float u[4][12], r[4][12];
        run_five(runtime, device, graph, "five=plain", u[0], r[0]);
        run_five(runtime, device, read, "five=plain", u[1], r[1]);
        run_five(runtime, device, graph, NULL, u[2], r[2]);
        run_five(runtime, device, half, NULL, u[3], r[3]);
        assert_memory_equal(u[0], u[1], sizeof u[0]);
        assert_memory_equal(r[0], r[1], sizeof r[0]);
        for (int i = 0; i < 12; i++) {
            assert_true(fabsf(u[0][i] - u[2][i]) <= 1e-5f && fabsf(r[0][i] - r[2][i]) <= 1e-4f);
            assert_true(fabsf(u[0][i] - u[3][i]) <= 1e-2f && fabsf(r[0][i] - r[3][i]) <= 0.1f);
        }
        assert_true(fabsf(r[0][1] + r[0][2]) > 1e-3f); // they are not zeros
    }
    clv_graph_destroy(graph), clv_graph_destroy(read), clv_graph_destroy(half);
    free(folder);
    clv_runtime_destroy(runtime);
}

TEST(five_is_refused) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    const struct {
        int left_out; // an input that is NULL
        clv_op_argument argument, other;
        const char *sentence;
    } cases[] = {
        {-1, {0}, {0}, "five wants 'm'"},
        {1, m_is_2[0], {0}, "five: b is NULL"},
        {-1, m_is_2[0], {.name = "mode", .number = 3}, "five: 'mode' wants a text"},
        {-1,
         m_is_2[0],
         {.name = "mode", .text = "0123456789012345678901234567890123"},
         "five: 'mode' is a text that is too long: 31 bytes at most"},
        {-1,
         m_is_2[0],
         {.name = "weights", .list = (const int64_t[]){10}, .n = 1},
         "weights is 10, it must be at most 9"},
        {-1, m_is_2[0], {.name = "weights", .n = 3}, "five: 'weights' is a list that is too long, or NULL"},
        {-1, m_is_2[0], {.name = "m", .number = 3}, "five: 'm' is given twice"},
        {-1, {.name = "m", .number = 0.5}, {0}, "five: 'm' wants a whole number"},
        {-1, m_is_2[0], {.name = "flop"}, "it has: weights, pair, m, flip, mode"},
        {-2, m_is_2[0], {0}, "c is [3,4], it must be [4,3] as a is [4,3]"},
        {-3, m_is_2[0], {0}, "e is f32, it must be i32"},
    };
    assert_status(clv_op_register(runtime, &five), CLV_OK, runtime);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 3));
        clv_tensor *in[] = {x, x, x, clv_input(graph, "d", CLV_DTYPE_F32, CLV_SHAPE(1)),
                            clv_input(graph, "e", CLV_DTYPE_I32, CLV_SHAPE(4, 3))};
        const clv_op_argument arguments[] = {cases[i].argument, cases[i].other};
        if (cases[i].left_out >= 0) in[cases[i].left_out] = NULL;
        if (cases[i].left_out == -2) in[2] = clv_input(graph, "t", CLV_DTYPE_F32, CLV_SHAPE(3, 4));
        if (cases[i].left_out == -3) in[4] = x;
        const int n = !cases[i].argument.name ? 0 : cases[i].other.name ? 2 : 1;
        assert_null(clv_op_call(graph, "five", in, 5, arguments, n));
        assert_true(clv_graph_status(graph) != CLV_OK);
        assert_holds(clv_runtime_error(runtime), cases[i].sentence);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
