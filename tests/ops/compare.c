// SPDX-License-Identifier: Apache-2.0
// Does clv_compare name the op that is wrong, and only that? A model with an op of its own in the middle, y = x, made of a copy, so that
// no kernel stands in the way: right, or wrong in one way on the device while its reference on the host is not.
#include <math.h>

#include "cleave/check.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "graph/graph.h"
#include "harness/harness.h"

static clv_status infer(clv__op_io *io, clv__error *error) {
    CLV_TRY(clv__want_dtype(io, 0, "x", CLV_DTYPE_F32, error));
    io->n_out = 1;
    io->out[0] = io->in[0];
    return CLV_OK;
}

static void reference(const clv__ref *ref) {
    for (int64_t i = 0; i < clv__numel(&ref->io->in[0]); i++) ref->out[0][i] = ref->in[0][i];
}

/** Not what the device computes: element 17 is off by a hundredth. */
static void reference_of_another(const clv__ref *ref) {
    reference(ref);
    ref->out[0][17] += 0.01;
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    clv_tensor *in[] = {dy[0]};
    dx[0] = clv__node_add(node->io.op->data, NULL, in, 1, 0); // data: the op of the gradient
}

static void lower(clv__launches *list, const clv__op_io *io) {
    clv__launch_copy(list, 0, 0, (size_t)clv__numel(&io->in[0]) * 4);
}

static const clv__variant variants[] = {{"plain", .lower = lower}, {0}};

static const clv__op copy = {.name = "copy", .infer = infer, .variants = variants, .reference = reference};
static const clv__op wrong_copy = {
    .name = "wrong_copy", .infer = infer, .variants = variants, .reference = reference_of_another};
static const clv__op right = {.name = "right",
                              .data = &copy,
                              .infer = infer,
                              .grad = grad,
                              .variants = variants,
                              .reference = reference};
static const clv__op wrong = {.name = "wrong",
                              .data = &copy,
                              .infer = infer,
                              .grad = grad,
                              .variants = variants,
                              .reference = reference_of_another};
static const clv__op wrong_backward = {.name = "right",
                                       .data = &wrong_copy,
                                       .infer = infer,
                                       .grad = grad,
                                       .variants = variants,
                                       .reference = reference};

static clv_tensor *model_with(const clv__op *op, clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 24, NULL));
    clv_scope_push(graph, "middle");
    x = clv__node_add(op, NULL, &x, 1, 0);
    clv_scope_pop(graph);
    x = clv_nn_dropout(clv_relu(clv_nn_linear(x, "fc2", 16, NULL)), 0.25f);
    return clv_nn_linear(x, "fc3", model->classes, NULL);
}

static clv_tensor *build_right(clv_tensor *x, const clv_model *model) {
    return model_with(&right, x, model);
}

static clv_tensor *build_wrong(clv_tensor *x, const clv_model *model) {
    return model_with(&wrong, x, model);
}

static clv_tensor *build_wrong_backward(clv_tensor *x, const clv_model *model) {
    return model_with(&wrong_backward, x, model);
}

static const clv_model models[] = {
    {.name = "right", .build = build_right, .input = {1, 5, 7}, .classes = 3},
    {.name = "wrong", .build = build_wrong, .input = {1, 5, 7}, .classes = 3},
    {.name = "wrong_backward", .build = build_wrong_backward, .input = {1, 5, 7}, .classes = 3},
};

TEST_RUNTIME
static clv_device *host, *kernels; // kernels: a device that runs launches; NULL: there is none

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.null_devices = true});
    host = clv__test_device(runtime, "host");
    int i = -1;
    kernels = clv__test_next_device(runtime, &i);
    if (kernels == host) kernels = NULL;
}

static clv_compare_report *compare(clv_compare_config config) {
    clv_compare_report *report = NULL;
    assert_status(clv_compare(runtime, &config, &report), CLV_OK, runtime);
    assert_non_null(report);
    assert_true(report->n_values > 20);
    return report;
}

TEST(test_devices_that_are_right_agree) {
    if (!kernels) skip();
    clv_compare_report *report = compare((clv_compare_config){.a = kernels, .b = host, .model = &models[0]});
    print_message("%s\n", report->sentence);
    assert_int_equal(report->first, -1);
    assert_int_equal(report->n_wrong + report->n_drifted, 0);
    assert_true(report->values[report->worst].drift < 1e-5);
    assert_holds(report->sentence, "and host agree in all ");
    bool forward = true; // in the order of execution
    int updates = 0;
    for (int i = 0; i < report->n_values; i++) {
        const clv_compare_value *value = &report->values[i];
        if (strcmp(value->phase, "forward") != 0) forward = false;
        assert_true(forward == !strcmp(value->phase, "forward"));
        updates += !strcmp(value->phase, "update");
        assert_string_equal(value->variant_b, "reference");
    }
    assert_int_equal(updates, 2 * 6); // six parameters with their momentum
    clv_free(report);
}

TEST(test_a_device_agrees_with_itself_to_the_bit) {
    clv_compare_report *report = compare((clv_compare_config){.a = host, .b = host, .model = &models[0]});
    assert_int_equal(report->n_equal, report->n_values);
    assert_int_equal(report->n_judged, 0);
    clv_free(report);
}

/** One value is wrong, and everything after it is right for what it was given. `a_is_host` changes who is named. */
static void name_the_wrong(const clv_model *model, bool a_is_host, const char *op, const char *phase) {
    clv_compare_report *report = compare((clv_compare_config){
        .a = a_is_host ? host : kernels, .b = a_is_host ? kernels : host, .model = model});
    print_message("%s\n", report->sentence);
    assert_true(report->first >= 0);
    const clv_compare_value *first = &report->values[report->first];
    assert_string_equal(first->op, op);
    assert_string_equal(first->layer, "middle");
    assert_string_equal(first->phase, phase);
    assert_true(first->judged);
    assert_int_equal(first->wrong_a, !a_is_host);
    assert_int_equal(first->wrong_b, a_is_host);
    assert_int_equal(first->wrong_index, 17);
    assert_true(fabs(first->wrong_value + 0.01 - first->wanted) <= 1e-6);
    assert_int_equal(report->n_wrong, 1);
    assert_true(report->n_values - report->n_equal > 5); // its consequences
    char said[128];
    snprintf(said, sizeof said,
             "%s 'middle' (%s), output 0: %s is wrong for what it was given: element 17 is ", op, phase,
             clv_device_info_get(kernels)->name);
    assert_int_equal(strncmp(report->sentence, said, strlen(said)), 0);
    clv_free(report);
}

TEST(test_the_wrong_op_is_named_not_its_consequences) {
    if (!kernels) skip();
    name_the_wrong(&models[1], true, "wrong", "forward");
    name_the_wrong(&models[1], false, "wrong", "forward");
    name_the_wrong(&models[2], true, "wrong_copy", "backward");
}

/** A tolerance that no two devices hold: nothing is wrong, and it says so. */
TEST(test_drift_is_told_as_drift) {
    if (!kernels) skip();
    clv_compare_report *report = compare(
        (clv_compare_config){.a = kernels, .b = host, .model = &models[0], .tolerance = 1e-14, .seed = 5});
    assert_true(report->first >= 0);
    assert_int_equal(report->n_wrong, 0);
    assert_true(report->n_drifted > 0);
    assert_holds(report->sentence, "have drifted apart by ");
    assert_holds(report->sentence, "No op is wrong for what it was given: rounding grew");
    clv_free(report);
}

TEST(test_given_samples_are_used) {
    static float images[2 * 35]; // zeros: the first layer puts out its bias
    static const int32_t labels[2] = {1, 2};
    clv_compare_report *report = compare((clv_compare_config){
        .a = host, .b = host, .model = &models[0], .batch = 2, .images = images, .labels = labels});
    for (int i = 0; i < report->n_values; i++)
        if (!strcmp(report->values[i].layer, "fc1") && !strcmp(report->values[i].phase, "forward"))
            assert_int_equal(report->values[i].elements, 48);
    clv_free(report);
}

static bool stop_at_once(void *user, int done, int total, const char *op) {
    return false;
}

static void refuse(clv_compare_config config, clv_status status, const char *sentence) {
    clv_compare_report *report = (void *)&config;
    const uint64_t held = clv_device_memory(host).all.total_allocated;
    assert_status(clv_compare(runtime, &config, &report), status, runtime);
    assert_null(report);
    assert_string_equal(clv_runtime_error(runtime), sentence);
    if (!config.progress)
        assert_true(clv_device_memory(host).all.total_allocated == held); // nothing was taken
    assert_int_equal(clv_device_memory(host).all.current, 0);
}

TEST(test_bad_wishes_are_refused) {
    static float images[8 * 35];
    clv_device *null = clv__test_device(runtime, "null");
    const clv_model *model = &models[0];
    refuse((clv_compare_config){.a = host, .model = model}, CLV_E_VALUE,
           "compare: two devices must be given");
    refuse((clv_compare_config){.a = host, .b = host}, CLV_E_VALUE, "compare: a model must be given");
    refuse((clv_compare_config){.a = host, .b = null, .model = model}, CLV_E_UNSUPPORTED,
           "compare: device null:0 computes nothing");
    refuse((clv_compare_config){.a = host, .b = host, .model = model, .batch = -1}, CLV_E_VALUE,
           "compare: batch is -1, it must be at least 1");
    refuse((clv_compare_config){.a = host, .b = host, .model = model, .tolerance = -1}, CLV_E_VALUE,
           "compare: tolerance is -1, it must be at least 0");
    refuse((clv_compare_config){.a = host, .b = host, .model = model, .images = images}, CLV_E_VALUE,
           "compare: images and labels belong together");
    static const int32_t labels[8] = {0}; // fewer than targets of a model of numbers
    clv_model numbers = *model;
    numbers.classes = 0;
    numbers.target[0] = 3;
    refuse((clv_compare_config){.a = host, .b = host, .model = &numbers, .images = images, .labels = labels},
           CLV_E_VALUE,
           "compare: images and labels need a model that gives one class for each sample, and 'right' gives "
           "numbers");
    clv_compare_config stop = {.a = host, .b = host, .model = model, .progress = stop_at_once};
    clv_compare_report *report;
    assert_status(clv_compare(runtime, &stop, &report), CLV_E_INTERRUPTED, runtime);
    assert_int_equal(clv_device_memory(host).all.current, 0);
    clv_free(NULL);
}

TEST_MAIN(setup, end_runtime)
