// SPDX-License-Identifier: Apache-2.0
// An op of a program's own in whole trainings: computed again, over replicas, placed, in parts of a batch, with values stored as halves,
// profiled. It is the built-in square written once more, so the weights of both trainings have the same bits. In mixed precision a custom op's
// result is f32, and the built-in one's a half: there they are near.
#include <math.h>
#include <string.h>

#include "cleave/custom_op.h"
#include "cleave/profile.h"
#include "train/small.h"

enum { MOST_FLOATS = 4096, BATCH = 8, SAMPLES = 24, EPOCHS = 2 };

static void square_reference(const clv_op_use *use, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < clv_shape_numel(&use->in[0].shape); i++) out[0][i] = in[0][i] * in[0][i];
}

static void square_gradient(const clv_op_use *use, clv_tensor *const *in, clv_tensor *const *out,
                            clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_mul(clv_mul_scalar(dy[0], 2), in[0]);
}

static const clv_op_value inputs[] = {{"x", "f32"}, {NULL, NULL}};
static const clv_op_value outputs[] = {{"y", "like x"}, {NULL, NULL}};
static const clv_op_sample samples[] = {
    {.label = "17",
     .in = (const clv_op_sample_input[]){{.dtype = CLV_DTYPE_F32, .shape = {1, {17}}}},
     .n_in = 1,
     .quick = true},
    {.label = NULL}};
static const clv_op_variant variants[] = {
    {.name = "plain",
     .kernel = "__kernel void KERNEL(square)(global float *y, global const float *x, int n) {\n"
               "    const int i = get_global_id(0);\n"
               "    if (i < n) y[i] = x[i] * x[i];\n"
               "}\n",
     .entry = "square"},
    {.name = NULL}};
static const clv_custom_op custom_square = {.bytes = sizeof custom_square,
                                            .name = "custom_square",
                                            .inputs = inputs,
                                            .outputs = outputs,
                                            .variants = variants,
                                            .reference = square_reference,
                                            .gradient = square_gradient,
                                            .samples = samples};

static bool custom; // which one the model takes

static clv_tensor *build(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_nn_conv2d(x, "conv", 3, &(clv_nn_conv2d_config){.kernel = {2, 3}});
    clv_scope_push(graph, "act");
    x = custom ? clv_op_call(graph, "custom_square", &x, 1, NULL, 0) : clv_square(x);
    clv_scope_pop(graph);
    return clv_nn_linear(clv_flatten(x, 1), "fc", model->classes, NULL);
}

static const clv_model model = {
    .name = "squares", .build = build, .input = {1, 4, 6}, .classes = SMALL_CLASSES};

typedef struct way {
    const char *name, *recompute, *place;
    bool replicas;
    int64_t parts;
    clv_precision precision;
} way;

/** What a training leaves; profiled: was the op seen in a profile, of its own name? */
static int train(const way *how, float *floats, bool *profiled) {
    static const char *const replicas[] = {"cpu:0", "cpu:1"};
    const bool two = how->replicas || how->place;
    const clv_runtime_config config = {.partition = two ? "cpu:0=2" : NULL};
    clv_runtime *runtime = NULL;
    assert_int_equal(clv_runtime_create(&config, &runtime), CLV_OK);
    assert_status(clv_op_register(runtime, &custom_square), CLV_OK, runtime);
    clv_dataset *dataset = small_dataset(runtime, SAMPLES);
    clv_train_config training = small_config(&model, dataset, BATCH, EPOCHS);
    training.device = clv__test_device(runtime, "cpu:0|host");
    training.recompute = how->recompute;
    training.micro_batches = how->parts;
    training.precision = how->precision;
    training.placement.place = how->place;
    if (how->replicas) {
        training.placement.replicas = replicas;
        training.placement.n_replicas = 2;
    }
    clv_trainer *trainer = clv__test_trainer(runtime, &training);
    clv_profile *profile = clv__test_profile(runtime, NULL);
    clv_session_set_profile(clv_trainer_info_get(trainer).session, profile);
    small_run(runtime, trainer);
    for (int r = 0; r < clv_profile_info_get(profile).n_runs; r++)
        for (int i = 0; i < clv_profile_run_get(profile, r).n_nodes; i++)
            *profiled |= !strcmp(clv_profile_node_get(profile, r, i).node.op, "custom_square");
    int n = 0;
    assert_status(small_read(clv_trainer_info_get(trainer).session, floats, MOST_FLOATS, &n), CLV_OK,
                  runtime);
    clv_trainer_destroy(trainer);
    clv_profile_destroy(profile);
    clv_dataset_destroy(dataset);
    clv_runtime_destroy(runtime);
    return n;
}

static bool two_halves(void) {
    const clv_runtime_config config = {.partition = "cpu:0=2"};
    clv_runtime *runtime = NULL;
    clv_device *device = NULL;
    const bool there = clv_runtime_create(&config, &runtime) == CLV_OK &&
                       clv_device_find(runtime, "cpu:1", &device) == CLV_OK;
    clv_runtime_destroy(runtime);
    return there;
}

TEST(same_bits_in_every_way) {
    static const way ways[] = {
        {.name = "plain"},
        {.name = "computed again", .recompute = "act"},
        {.name = "in parts", .parts = 2},
        {.name = "as f16", .precision = CLV_PRECISION_MIXED},
        {.name = "replicas", .replicas = true},
        {.name = "placed, in parts", .place = "conv=cpu:0,act=cpu:1,fc=cpu:1", .parts = 2}};
    const bool two = two_halves();
    if (!two) print_message("no device in two halves: replicas and placements are left out\n");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        static float floats[2][MOST_FLOATS];
        bool profiled[2] = {false, false};
        if ((ways[i].replicas || ways[i].place) && !two) continue;
        custom = false;
        const int n = train(&ways[i], floats[0], &profiled[0]);
        custom = true;
        assert_int_equal(train(&ways[i], floats[1], &profiled[1]), n);
        assert_true(n > 0 && !profiled[0]);
        if (!profiled[1]) fail_msg("%s: the op is in no profile", ways[i].name);
        for (int k = 0; k < n; k++) {
            const float apart = fabsf(floats[0][k] - floats[1][k]);
            if (!(apart <= (ways[i].precision ? 2e-3f : 0)))
                fail_msg("%s: number %d is %g, not %g", ways[i].name, k, floats[1][k], floats[0][k]);
        }
    }
}

TEST_MAIN(NULL, NULL)
