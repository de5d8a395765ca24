// SPDX-License-Identifier: Apache-2.0
// Models that PyTorch exported, against what PyTorch computed: results, and three steps of a training.
#include <math.h>

#include "cleave/cleave.h"
#include "harness/harness.h"

#define FOLDER CLV_TEST_SOURCE_DIR "/tests/onnx/models/"

TEST_RUNTIME_OF(NULL)

static void must(clv_status status) {
    if (status != CLV_OK) fail_msg("%s", clv_runtime_error(runtime));
}

/** The largest difference, over the largest value. */
static double off(const float *a, const float *b, int64_t n) {
    double most = 0, size = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    return most / size;
}

static void near(const char *what, const float *a, const clv_array *b, double tolerance) {
    const double is = off(a, b->data, clv_shape_numel(&b->shape));
    if (!(is <= tolerance)) fail_msg("%s: %g of the largest, and %g is allowed", what, is, tolerance);
}

typedef struct golden {
    clv_archive *archive;
    clv_onnx *onnx;
    clv_model model;
    const clv_array *x, *y, *target;
    char path[512];
} golden;

static golden open_golden(const char *name, bool numbers) {
    golden g = {0};
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s.safetensors", name);
    snprintf(g.path, sizeof g.path, FOLDER "%s.onnx", name);
    must(clv_safetensors_read(runtime, path, &g.archive));
    must(clv_onnx_read(runtime, g.path, &(clv_onnx_config){.numbers = numbers}, &g.onnx));
    g.model = *clv_onnx_info_get(g.onnx).model;
    g.x = clv_archive_find(g.archive, "x");
    g.y = clv_archive_find(g.archive, "y");
    g.target = clv_archive_find(g.archive, "target");
    return g;
}

static void close_golden(golden *g) {
    clv_onnx_destroy(g->onnx);
    clv_archive_destroy(g->archive);
}

/** A step of the model, whole: its graph, plan, session with the file's weights, and run. */
typedef struct step {
    clv_graph *graph;
    clv_tensor *x, *target, *result, *loss;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} step;

static step make_step(const golden *g, clv_device *device, bool train, bool numbers) {
    step s = {0};
    must(clv_graph_create(runtime, &s.graph));
    if (train) {
        clv_graph_modes modes = clv_graph_modes_get(s.graph);
        modes.training = true;
        clv_graph_modes_set(s.graph, &modes);
    }
    s.x = clv_model_input(s.graph, &g->model, g->x->shape.dims[0]);
    s.result = clv_model_build(&g->model, s.x);
    if (train) {
        s.target = clv_input(s.graph, "target", numbers ? CLV_DTYPE_F32 : CLV_DTYPE_I32, g->target->shape);
        clv_tensor *labels = s.target, *logits = s.result;
        if (!numbers && g->target->shape.rank == 2) { // one class for each place of a sentence
            const clv_shape shape = clv_tensor_shape(logits);
            const int64_t rows = shape.dims[0] * shape.dims[1];
            logits = clv_reshape(logits, CLV_SHAPE(rows, shape.dims[2]));
            labels = clv_reshape(labels, CLV_SHAPE(rows));
        }
        s.loss = numbers ? clv_mse_loss(s.result, s.target) : clv_cross_entropy(logits, labels);
        clv_output(s.loss, "loss");
        clv_backward(s.loss);
        for (int i = 0; clv_parameter_get(s.graph, i); i++) {
            char name[256];
            clv_tensor *parameter = clv_parameter_get(s.graph, i);
            snprintf(name, sizeof name, "gradient/%s", clv_tensor_name(parameter));
            if (clv_gradient(parameter)) clv_output(clv_gradient(parameter), name);
        }
        clv_optimizer_add(s.graph, &(clv_optimizer_config){.kind = CLV_SGD});
    } else {
        clv_output(s.result, "y");
    }
    must(clv_graph_status(s.graph));
    must(clv_plan_create(s.graph, &(clv_plan_config){.device = device}, &s.plan));
    must(clv_session_create(runtime, NULL, &s.session));
    must(clv_run_create(s.session, s.plan, &s.run));
    must(clv_weights_load(s.session, g->path));
    return s;
}

static void end_step(step *s) {
    clv__test_end(s->run, s->session, s->plan, s->graph);
}

static void forward(const char *name, bool numbers, clv_device *device) {
    golden g = open_golden(name, numbers);
    step s = make_step(&g, device, false, numbers);
    float *y = malloc(clv_array_bytes(g.y));
    assert_non_null(y);
    must(clv_run_do(s.run, &(clv_step){&(clv_feed){s.x, g.x->data, clv_array_bytes(g.x)}, 1, 0,
                                       &(clv_fetch){s.result, y, clv_array_bytes(g.y)}, 1}));
    near(name, y, g.y, 1e-5);
    free(y);
    end_step(&s);
    close_golden(&g);
}

static void train(const char *name, bool numbers, clv_device *device) {
    golden g = open_golden(name, numbers);
    step s = make_step(&g, device, true, numbers);
    const float *losses = clv_archive_find(g.archive, "losses")->data;
    float *gradients[64] = {NULL};
    int n = 0;
    for (int k = 0; k < 3; k++) {
        float loss = 0;
        clv_fetch fetches[65] = {{s.loss, &loss, sizeof loss}};
        for (n = 0; clv_parameter_get(s.graph, n); n++) {
            clv_tensor *gradient = clv_gradient(clv_parameter_get(s.graph, n));
            assert_true(n < 64);
            if (!k) gradients[n] = malloc(clv_tensor_bytes(gradient));
            fetches[n + 1] = (clv_fetch){gradient, gradients[n], clv_tensor_bytes(gradient)};
        }
        const clv_feed feeds[] = {{s.x, g.x->data, clv_array_bytes(g.x)},
                                  {s.target, g.target->data, clv_array_bytes(g.target)}};
        must(clv_run_do(s.run, &(clv_step){feeds, 2, 0.1, fetches, k ? 1 : n + 1}));
        if (fabs((double)loss - (double)losses[k]) > 1e-5 * fabs((double)losses[k]))
            fail_msg("%s: the loss of step %d is %g, and was %g", name, k, (double)loss, (double)losses[k]);
    }
    for (int i = 0; i < n; i++) {
        char key[256];
        snprintf(key, sizeof key, "gradient/%s", clv_tensor_name(clv_parameter_get(s.graph, i)));
        const clv_array *wanted = clv_archive_find(g.archive, key);
        if (!wanted) fail_msg("%s: PyTorch has no %s", name, key);
        near(key, gradients[i], wanted, 1e-4);
        free(gradients[i]);
    }
    int compared = 0;
    for (int i = 0; i < clv_session_info_get(s.session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(s.session, i);
        char key[256];
        snprintf(key, sizeof key, "after/%s", tensor.name);
        const clv_array *wanted = clv_archive_find(g.archive, key);
        if (!wanted) continue;
        float *now = malloc(tensor.bytes);
        must(clv_session_read(s.session, i, now, tensor.bytes));
        near(key, now, wanted, 1e-5);
        free(now);
        compared++;
    }
    assert_true(compared >= n);
    end_step(&s);
    close_golden(&g);
}

TEST(models) {
    static const struct {
        const char *name;
        bool numbers;
    } all[] = {{"cnn", false}, {"tokens", false}, {"pictures", true}, {"steps", false}};
    static const char *const devices[] = {"host", "cpu:0"};
    for (int d = 0; d < 2; d++) {
        clv_device *device;
        if (clv_device_find(runtime, devices[d], &device) != CLV_OK) continue;
        for (int i = 0; i < 3; i++) {
            forward(all[i].name, all[i].numbers, device);
            train(all[i].name, all[i].numbers, device);
        }
    }
}

/** Ports, and another number of classes. */
TEST(ports) {
    golden g = open_golden("cnn", false);
    assert_int_equal(g.model.classes, 5);
    assert_int_equal(g.model.input[1], 8);
    const clv_model other = clv_model_for(&g.model, 0, 0, 0, 3);
    clv_graph *graph;
    must(clv_graph_create(runtime, &graph));
    clv_tensor *y = clv_model_build(&other, clv_model_input(graph, &other, 7));
    must(clv_graph_status(graph));
    const clv_shape shape = clv_tensor_shape(y);
    assert_int_equal(shape.dims[0], 7);
    assert_int_equal(shape.dims[1], 3);
    clv_graph_destroy(graph);
    close_golden(&g);
}

/** Lengths are 0 to all steps: PyTorch refuses others, too. */
TEST(lengths) {
    clv_onnx *onnx;
    must(clv_onnx_read(runtime, FOLDER "sounds.onnx",
                       &(clv_onnx_config){.targets = "y=ctc", .input_lengths = "steps"}, &onnx));
    const clv_model *model = clv_onnx_info_get(onnx).model;
    assert_int_equal(model->inputs[1].classes, 8);
    static const char *const sentences[] = {
        "input 'steps': indices up to 8 do not fit model '" FOLDER "sounds.onnx', which takes 0 to 7",
        "input 'steps': some indices are below 0, model '" FOLDER "sounds.onnx' takes 0 to 7", NULL};
    for (int32_t last = 0; last < 3; last++) {
        float x[2 * 7 * 3] = {0};
        int32_t y[2 * 7] = {1, 2, 3}, steps[2] = {7, (int32_t[]){8, -1, 0}[last]};
        for (int k = 3; k < 14; k++) y[k] = CLV_LABEL_IGNORED;
        clv_array arrays[] = {{NULL, CLV_DTYPE_F32, CLV_SHAPE(2, 7, 3), x, .borrowed = true},
                              {NULL, CLV_DTYPE_I32, CLV_SHAPE(2), steps, .borrowed = true},
                              {NULL, CLV_DTYPE_I32, CLV_SHAPE(2, 7), y, .borrowed = true}};
        const clv_field fields[] = {
            {.name = "x", .array = &arrays[0]},
            {.name = "steps", .array = &arrays[1]},
            {.name = "y", .role = CLV_PORT_TARGET, .array = &arrays[2], .classes = 5}};
        clv_dataset *dataset;
        clv_trainer *trainer = NULL;
        must(clv_dataset_from_fields(runtime, NULL, fields, 3, NULL, &dataset));
        const clv_train_loss loss = {.target = "y", .loss = clv_loss_find("ctc")};
        const clv_train_config config = {
            .model = model, .train = dataset, .losses = &loss, .n_losses = 1, .lr = 0.1};
        const clv_status status = clv_trainer_create(runtime, &config, &trainer);
        if (!sentences[last]) must(status);
        if (sentences[last]) assert_int_equal(status, CLV_E_VALUE);
        if (sentences[last]) assert_string_equal(clv_runtime_error(runtime), sentences[last]);
        clv_trainer_destroy(trainer);
        clv_dataset_destroy(dataset);
    }
    clv_onnx_destroy(onnx);
}

TEST_MAIN(begin_runtime, end_runtime)
