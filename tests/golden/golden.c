// SPDX-License-Identifier: Apache-2.0
// Golden files held against the interpreter and against devices; see golden.h.
#include "golden/golden.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/planned.h"
#include "check/tolerance.h"
#include "cleave/ops.h"
#include "device/device.h"
#include "io/array.h"
#include "tensor/dtype.h"

#ifndef CLV_TEST_SOURCE_DIR
#error "CLV_TEST_SOURCE_DIR says where the sources are"
#endif

// Of the tensor's largest value. The file holds floats (6e-8), and attributes such as eps are floats here.
static const double TOLERANCE = 2e-6;

static void succeed(const golden *g, clv_status status, const char *what) {
    if (status != CLV_OK) fail_msg("%s%s: %s", g->prefix, what, clv_runtime_error(g->runtime));
}

int golden_open(void **state, const char *name) {
    golden *g = calloc(1, sizeof *g);
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/%s.safetensors", CLV_TEST_SOURCE_DIR, name);
    assert_non_null(g);
    assert_int_equal(clv_runtime_create(NULL, &g->runtime), CLV_OK);
    succeed(g, clv_safetensors_read(g->runtime, path, &g->archive), path);
    snprintf(g->pinned_path, sizeof g->pinned_path, "%s/tests/golden/%s.pinned", CLV_TEST_BINARY_DIR, name);
    *state = g;
    return 0;
}

/** One name a line, for every_op.c. */
static void write_pinned(const golden *g) {
    FILE *file = fopen(g->pinned_path, "w");
    if (!file) fail_msg("%s cannot be written", g->pinned_path);
    for (int i = 0; i < g->n_pinned; i++) fprintf(file, "%s\n", g->pinned[i]->name);
    assert_int_equal(fclose(file), 0);
}

int golden_close(void **state) {
    golden *g = *state;
    write_pinned(g);
    clv_archive_destroy(g->archive);
    clv_runtime_destroy(g->runtime);
    free(g);
    return 0;
}

golden *golden_begin(void **state, const char *name) {
    golden *g = *state;
    // What a case that failed has left.
    clv__subject_reset(&g->subject);
    snprintf(g->prefix, sizeof g->prefix, "%s/", name);
    g->n_expected = 0;
    succeed(g, clv_graph_create(g->runtime, &g->subject.graph), "graph");
    g->graph = g->subject.graph;
    return g;
}

static const clv_array *find(const golden *g, const char *name, const char *suffix) {
    char full[256];
    snprintf(full, sizeof full, "%s%s%s", g->prefix, name, suffix);
    return clv_archive_find(g->archive, full);
}

static const clv_array *must_find(const golden *g, const char *name) {
    const clv_array *array = find(g, name, "");
    if (!array) fail_msg("the golden file has no %s%s", g->prefix, name);
    return array;
}

clv_tensor *golden_input(golden *g, const char *name) {
    const clv_array *array = must_find(g, name);
    clv_tensor *tensor = clv_input(g->graph, name, array->type, array->shape);
    if (find(g, name, ".grad")) clv_requires_grad(tensor, true);
    return tensor;
}

clv_tensor *golden_buffer(golden *g, const char *name) {
    const clv_array *array = must_find(g, name);
    return clv_buffer(g->graph, name, array->type, array->shape, (clv_init){0});
}

void golden_expect(golden *g, clv_tensor *tensor, const char *name) {
    assert_true(g->n_expected < 8);
    succeed(g, clv_graph_status(g->graph), name);
    assert_non_null(tensor);
    snprintf(g->expected_name[g->n_expected], sizeof g->expected_name[0], "%s", name);
    g->expected[g->n_expected++] = tensor;
}

static void compare(golden *g, const clv_tensor *tensor, const clv_array *array, const char *what) {
    if (!clv_shape_equal(&tensor->desc.shape, &array->shape)) {
        char is[128], was[128];
        fail_msg("%s%s has shape %s, PyTorch gives %s", g->prefix, what,
                 clv_shape_text(&tensor->desc.shape, is, sizeof is),
                 clv_shape_text(&array->shape, was, sizeof was));
    }
    assert_int_equal(tensor->desc.dtype, array->type);
    const double *got = clv__values_of(&g->subject.start, tensor);
    int64_t n = clv__numel(&tensor->desc);
    double scale = 0;
    for (int64_t i = 0; i < n && array->type == CLV_DTYPE_F32; i++)
        if (fabs((double)((float *)array->data)[i]) <= FLT_MAX)
            scale = fmax(scale, fabs(((float *)array->data)[i]));
    for (int64_t i = 0; i < n; i++) {
        double want;
        clv__elements_widen(tensor->desc.dtype,
                            (char *)array->data + (size_t)i * clv_dtype_bytes(tensor->desc.dtype), 1, &want);
        double have = array->type == CLV_DTYPE_F32 && !isfinite(want) ? (double)(float)got[i] : got[i];
        if (have == want || (isnan(have) && isnan(want))) continue;
        if (!(fabs(have - want) <= TOLERANCE * scale))
            fail_msg("%s%s[%lld] is %.9g, PyTorch gives %.9g", g->prefix, what, (long long)i, have, want);
    }
}

void golden_prepare(golden *g) {
    clv__subject *subject = &g->subject;
    clv_tensor *dy = NULL;
    if (subject->start.n) return;
    assert_true(g->n_expected > 0);
    bool loss = strcmp(g->expected_name[0], "loss") == 0;
    if (find(g, "dy", "")) dy = golden_input(g, "dy");
    if (dy) clv_backward(clv_sum(clv_mul(g->expected[0], dy), NULL, 0, false));
    if (!dy && loss) clv_backward(g->expected[0]);
    for (int i = 0; i < g->n_expected; i++) {
        snprintf(subject->what[subject->n_targets], sizeof subject->what[0], "%s", g->expected_name[i]);
        subject->targets[subject->n_targets++] = g->expected[i];
    }
    size_t n = g->graph->n_tensors;
    for (size_t i = 0; i < n; i++) {
        clv_tensor *tensor = g->graph->tensors[i];
        if (tensor->kind == CLV__VALUE || !find(g, tensor->name, ".grad")) continue;
        if (!clv_gradient(tensor)) fail_msg("%s%s has no gradient", g->prefix, tensor->name);
        assert_true(subject->n_targets < CLV__MAX_TARGETS);
        snprintf(subject->what[subject->n_targets], sizeof subject->what[0], "%.80s.grad", tensor->name);
        subject->targets[subject->n_targets++] = clv_gradient(tensor);
    }
    for (int i = 0; i < subject->n_targets; i++)
        if (subject->targets[i]->kind == CLV__VALUE) clv_output(subject->targets[i], NULL);
    succeed(g, clv_graph_status(g->graph), "graph");
    succeed(g, clv__values_init(&subject->start, g->graph, clv__runtime_error_of(g->runtime)), "values");
    for (size_t i = 0; i < g->graph->n_tensors; i++) {
        clv_tensor *tensor = g->graph->tensors[i];
        const clv_array *array = tensor->kind == CLV__VALUE ? NULL : find(g, tensor->name, "");
        if (tensor->values) clv__values_set(&subject->start, tensor, tensor->values);
        if (!array) continue;
        assert_true(clv_shape_equal(&array->shape, &tensor->desc.shape));
        clv__values_set(&subject->start, tensor, array->data);
    }
}

void golden_set(golden *g, clv_tensor *tensor, const float *values) {
    golden_prepare(g);
    clv__values_set(&g->subject.start, tensor, values);
}

void golden_pinned(golden *g, const clv__op *op) {
    for (int i = 0; i < g->n_pinned; i++)
        if (g->pinned[i] == op) return;
    assert_true((size_t)g->n_pinned < sizeof g->pinned / sizeof *g->pinned);
    g->pinned[g->n_pinned++] = op;
}

/** Whether a node writes a tensor in place. */
static bool mutates(const clv__node *node, const clv_tensor *tensor) {
    for (int i = 0; i < node->io.n_in; i++)
        if (node->in[i] == tensor && node->io.op->mutates >> i & 1u) return true;
    return false;
}

void golden_end(golden *g) {
    golden_prepare(g);
    clv__subject *subject = &g->subject;
    succeed(g, clv__interpret(&subject->start, NULL, clv__runtime_error_of(g->runtime)), "interpret");
    for (int i = 0; i < subject->n_targets; i++) {
        compare(g, subject->targets[i], must_find(g, subject->what[i]), subject->what[i]);
        if (subject->targets[i]->kind == CLV__VALUE) golden_pinned(g, subject->targets[i]->node->io.op);
    }
    for (size_t i = 0; i < g->graph->n_tensors; i++) {
        const clv_tensor *tensor = g->graph->tensors[i];
        const clv_array *after = tensor->kind == CLV__PERSISTENT ? find(g, tensor->name, ".after") : NULL;
        if (!after) continue;
        compare(g, tensor, after, tensor->name);
        for (size_t n = 0; n < g->graph->n_nodes; n++)
            if (mutates(g->graph->nodes[n], tensor)) golden_pinned(g, g->graph->nodes[n]->io.op);
    }
    clv__subject_reset(subject);
}

static void on_device(golden *g, clv_device *device, const clv__expected *expected) {
    clv__subject *subject = &g->subject;
    const char *name = clv_device_info_get(device)->name;
    void *results[CLV__MAX_TARGETS];
    clv_plan *plan;
    for (int i = 0; i < subject->n_targets; i++)
        assert_non_null(results[i] = calloc(1, clv_tensor_bytes(subject->targets[i]) + 1));
    succeed(g, clv_plan_create(g->graph, &(clv_plan_config){.device = device}, &plan), name);
    succeed(g, clv__planned_run(subject, plan, 1, results), name);
    clv_plan_destroy(plan);
    for (int i = 0; i < subject->n_targets; i++) {
        clv__distance worst = clv__expected_distance(expected, subject->targets[i], results[i]);
        print_message("%s, %s%s: error %.2g of tolerance %.2g\n", name, g->prefix, subject->what[i],
                      worst.error, worst.tolerance);
        if (!(worst.ratio <= 1))
            fail_msg("on %s %s%s[%lld] is %.9g, should be %.9g within %.3g", name, g->prefix,
                     subject->what[i], (long long)worst.index, worst.got, worst.want, worst.tolerance);
    }
    for (int i = 0; i < subject->n_targets; i++) free(results[i]);
}

void golden_on_devices(golden *g) {
    clv__expected expected;
    golden_prepare(g);
    succeed(g,
            clv__expected_init(&expected, &g->subject.start, g->subject.targets, g->subject.n_targets, NULL,
                               clv__runtime_error_of(g->runtime)),
            "tolerances");
    for (int i = 0; i < clv_runtime_info_get(g->runtime).n_devices; i++) {
        clv_device *device = clv_device_get(g->runtime, i);
        if (clv_device_info_get(device)->usable) on_device(g, device, &expected);
    }
    clv__expected_reset(&expected);
}
