// SPDX-License-Identifier: Apache-2.0
// Does the checker turn red? A right op, and ops that are wrong in one way each. They are made of copies and fills, so no
// kernel stands in the way: y is a copy of x, [5,7].
#include <math.h>

#include "check/check.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "harness/harness.h"
#include "ops/copy_op.h"

enum { NUMEL = 35 };

static bool sample(const clv__op *op, int i, clv__sample *s) {
    snprintf(s->label, sizeof s->label, "five by seven");
    s->n_in = 1;
    s->in[0] = clv__f32(CLV_SHAPE(5, 7));
    s->quick = true;
    return i == 0;
}

static void reference_off_by_little(const clv__ref *ref) {
    copy_reference(ref);
    ref->out[0][17] *= 1 + 1e-4;
}

static void grad(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_mul_scalar(dy[0], 1);
}

static void grad_off_by_little(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_mul_scalar(dy[0], 1.001f);
}

static void grad_forgotten(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {}

static void lower_into_the_input(clv__launches *list, const clv__op_io *io) {
    copy_lower(list, io);
    clv__launch_fill(list, 0, 4, 0);
    list->items[list->n - 1].slots[0].kind = CLV__SLOT_IN;
}

static void lower_without_source(clv__launches *list, const clv__op_io *io) {
    clv__launch *launch = clv__launch_kernel(list, "no_such_file", "no_such_kernel");
    clv__arg_out(list, launch, 0);
    clv__launch_grid(launch, NUMEL, 0);
}

static double last_choice(const clv_device_info *device, const clv__op_io *io) {
    return 9;
}

static const clv__variant right[] = {{"plain", .lower = copy_lower}, {0}};

/** plain is right; a second variant is not, and is chosen by no plan. */
#define SECOND(how)                                                                                          \
    (const clv__variant[]) {                                                                                 \
        {"plain", .lower = copy_lower}, {"second", .rank = last_choice, .lower = how}, {                     \
            0                                                                                                \
        }                                                                                                    \
    }

static const clv__op base = {.name = "copy",
                             .infer = copy_infer,
                             .grad = grad,
                             .variants = right,
                             .reference = copy_reference,
                             .sample = sample};

#define NAMES(...)                                                                                           \
    (const char *const[]) {                                                                                  \
        __VA_ARGS__, NULL                                                                                    \
    }

typedef struct world {
    clv_runtime *runtime;
    clv_device *kernels; // a device that runs launches; NULL: there is none
    clv_device *host;
} world;

static clv_check_report *check(world *w, clv_device *device, const clv__op *op) {
    const clv__op *const ops[] = {op, NULL};
    clv_check_report *report = NULL;
    assert_status(clv__check_ops(w->runtime, device, ops, NULL, NULL, &report), CLV_OK, w->runtime);
    assert_int_equal(report->cases, report->passed + report->failed);
    assert_int_equal(report->failed, report->n_failures);
    return report;
}

/** Checks the op on the device with launches; exactly one case fails: this variant, with these words. */
static void expect_red(void **state, const clv__op *op, const char *variant, const char *words) {
    world *w = *state;
    if (!w->kernels) skip();
    clv_check_report *report = check(w, w->kernels, op);
    for (int i = 0; i < report->n_failures; i++) print_message("%s\n", report->failures[i].sentence);
    assert_int_equal(report->failed, 1);
    assert_string_equal(report->failures[0].variant, variant);
    assert_string_equal(report->failures[0].sample, "five by seven");
    assert_holds(report->failures[0].sentence, words);
    clv_free(report);
}

TEST(a_right_op_passes) {
    world *w = *state;
    clv_check_report *report = check(w, w->host, &base);
    assert_int_equal(report->failed, 0);
    assert_int_equal(report->cases, 2); // plan, differences
    clv_free(report);
    if (!w->kernels) skip();
    report = check(w, w->kernels, &base);
    assert_int_equal(report->failed, 0);
    assert_int_equal(report->cases, 3); // plain too
    assert_int_equal(report->skipped_cases, 0);
    assert_int_equal(report->n_worst, 3);
    clv_free(report);
}

TEST(a_wrong_value) {
    world *w = *state;
    clv__op op = base;
    op.reference = reference_off_by_little; // as good as a kernel that is off
    op.grad = NULL;
    if (!w->kernels) skip();
    clv_check_report *report = check(w, w->kernels, &op);
    assert_int_equal(report->failed, 2); // plain, plan
    for (int i = 0; i < 2; i++) {
        assert_string_equal(report->failures[i].what, "out0");
        assert_int_equal(report->failures[i].index, 17);
        assert_true(fabs(report->failures[i].got - report->failures[i].want) > report->failures[i].tolerance);
    }
    assert_true(report->worst[0].error > report->worst[0].tolerance);
    assert_int_equal(report->worst[0].failed, 1);
    clv_free(report);
}

TEST(an_element_never_written) {
    clv__op op = base;
    op.variants = SECOND(copy_last_forgotten);
    expect_red(state, &op, "second", "out0[34] is nan");
}

TEST(a_write_past_the_end) {
    clv__op op = base;
    op.variants = SECOND(copy_past_the_end);
    expect_red(state, &op, "second", "wrote outside its buffers: byte 0 after the end of out0");
}

TEST(a_write_into_an_input) {
    clv__op op = base;
    op.variants = SECOND(lower_into_the_input);
    expect_red(state, &op, "second", "wrote into in0");
}

TEST(a_kernel_that_does_not_build) {
    clv__op op = base;
    op.variants = SECOND(lower_without_source);
    expect_red(state, &op, "second", "no_such_file");
}

TEST(a_wrong_gradient) {
    clv__op op = base;
    op.grad = grad_off_by_little;
    expect_red(state, &op, "differences", "derivative along direction");
}

TEST(a_gradient_that_does_not_arrive) {
    clv__op op = base;
    op.grad = grad_forgotten;
    expect_red(state, &op, "differences", "derivative along direction");
}

static void grad_that_cannot_be(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    dx[0] = clv_matmul(dy[0], dy[0]); // [5,7] by [5,7]
}

/** There is no graph with this gradient: neither a plan nor differences can be had, and both say why; the op itself is checked. */
TEST(a_gradient_that_is_a_mistake) {
    world *w = *state;
    if (!w->kernels) skip();
    clv__op op = base;
    op.grad = grad_that_cannot_be;
    clv_check_report *report = check(w, w->kernels, &op);
    assert_int_equal(report->cases, 3);
    assert_int_equal(report->failed, 2);
    assert_string_equal(report->failures[0].variant, "plan");
    assert_string_equal(report->failures[1].variant, "differences");
    for (int i = 0; i < 2; i++) assert_holds(report->failures[i].sentence, "matmul");
    clv_free(report);
}

static clv_status infer_refuses(clv__op_io *io, clv__error *error) {
    CLV_FAIL(error, CLV_E_SHAPE, "x is not liked");
}

TEST(a_sample_that_is_refused) {
    clv__op op = base;
    op.infer = infer_refuses;
    expect_red(state, &op, "plan", "x is not liked");
}

TEST(a_skipped_case_is_counted_and_has_not_passed) {
    world *w = *state;
    if (!w->kernels) skip();
    clv__op op = base;
    op.variants = (const clv__variant[]){
        {"plain", .lower = copy_lower}, {"picky", copy_never, .lower = copy_lower}, {0}};
    clv_check_report *report = check(w, w->kernels, &op);
    assert_int_equal(report->cases, 3);
    assert_int_equal(report->passed, 3);
    assert_int_equal(report->skipped_cases, 1);
    assert_int_equal(report->n_skipped, 1);
    assert_string_equal(report->skipped[0].op, "copy");
    assert_holds(report->skipped[0].reason, "picky");
    clv_free(report);
}

static bool no_sample(const clv__op *op, int i, clv__sample *s) {
    return false;
}

TEST(an_op_without_samples_is_skipped) {
    world *w = *state;
    clv__op op = base;
    op.sample = no_sample;
    clv_check_report *report = check(w, w->host, &op);
    assert_int_equal(report->cases, 0);
    assert_int_equal(report->n_skipped, 1);
    clv_free(report);
}

static bool stop_at_once(void *user, int done, int total, const char *op) {
    assert_int_equal(done, 1);
    assert_true(total > 1);
    assert_string_equal(op, "copy");
    return *(bool *)user;
}

TEST(what_cannot_be_checked) {
    world *w = *state;
    const clv__op *const ops[] = {&base, NULL};
    clv_check_report *report = (clv_check_report *)w;
    bool go_on = false;
    assert_status(
        clv__check_ops(w->runtime, w->host, ops, NULL, &(clv_check_config){.ops = NAMES("add")}, &report),
        CLV_E_NOT_FOUND, w->runtime);
    assert_null(report);
    assert_status(clv__check_ops(w->runtime, w->host, ops, NULL,
                                 &(clv_check_config){.progress = stop_at_once, .user = &go_on}, &report),
                  CLV_E_INTERRUPTED, w->runtime);
    assert_null(report);
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true});
    clv_device *null = clv__test_device(runtime, "null:0");
    assert_status(clv_check(runtime, null, NULL, &report), CLV_E_UNSUPPORTED, runtime);
    assert_holds(clv_runtime_error(runtime), "computes nothing");
    clv_runtime_destroy(runtime);
}

static int cases_of(world *w, clv_dtype dtype, bool quick) {
    clv_check_report *report = NULL;
    clv_check_config config = {.ops = NAMES("relu"), .dtype = dtype, .quick = quick};
    assert_status(clv_check(w->runtime, w->host, &config, &report), CLV_OK, w->runtime);
    assert_int_equal(report->passed, report->cases);
    int cases = report->cases;
    clv_free(report);
    return cases;
}

TEST(only_what_is_stored_in_a_dtype) {
    world *w = *state;
    static const clv_dtype dtypes[] = {CLV_DTYPE_F32, CLV_DTYPE_F16, CLV_DTYPE_BF16};
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        int cases = cases_of(w, dtypes[i], false);
        assert_true(cases > 0);
        assert_true(cases_of(w, dtypes[i], true) > 0);
        sum += cases;
    }
    assert_int_equal(sum, cases_of(w, CLV_DTYPE_NONE, false));
    clv_check_report *report = NULL;
    clv_check_config config = {.dtype = CLV_DTYPE_I32};
    assert_status(clv_check(w->runtime, w->host, &config, &report), CLV_E_VALUE, w->runtime);
    assert_string_equal(clv_runtime_error(w->runtime),
                        "check: floats are stored in f32, f16 or bf16, not in i32");
}

FIXTURE(set_up) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->runtime = clv__test_runtime(NULL);
    w->host = clv__test_device(w->runtime, "host");
    w->kernels = clv_device_get(w->runtime, 0);
    if (w->kernels == w->host || !w->kernels->info.usable) w->kernels = NULL;
    *state = w;
}

FIXTURE(tear_down) {
    world *w = *state;
    clv_runtime_destroy(w->runtime);
    free(w);
}

TEST_MAIN(set_up, tear_down)
