// SPDX-License-Identifier: Apache-2.0
// Two devices, one training step: what is the first thing that they disagree about?
//
// Values are compared in the order of execution. That two devices differ says little by itself: rounding differs, and grows from
// layer to layer. So where a value differs by more than its op's rounding, and by more than what came in, the op's reference is
// computed from what each device was given, and says which of the two is wrong. A fault is reported where it arises: what
// comes after it is right for what it was given.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "check/side.h"
#include "check/subject.h"
#include "check/tolerance.h"
#include "device/device.h"
#include "nn/ports.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

// A value is looked at closely if its largest difference, relative to its largest element, is beyond this many roundings of a sum of
// its length, and beyond so many times what its inputs differ by. Generous to ops: only the reference judges.
static const double CLOSE_ULP = 16, CLOSE_GROWTH = 4, USUAL_TOLERANCE = 1e-3;

typedef struct comparison {
    const clv_compare_config *config;
    clv__error *error;
    clv__scene scene;
    clv__side a, b;
    double *apart; // by tensor id: largest difference relative to the largest element
    clv_compare_report *report;
    size_t room;
    double tolerance;
} comparison;

static double element(const clv_tensor *tensor, const void *elements, int64_t i) {
    const clv_dtype dtype = tensor->desc.dtype;
    double value;
    clv__elements_widen(dtype, (const char *)elements + (size_t)i * clv_dtype_bytes(dtype), 1, &value);
    return value;
}

/** Measure how far two tensors are apart. Returns the largest difference relative to the largest element. */
static double measure(const clv_tensor *tensor, const void *a, const void *b, clv_compare_value *value) {
    double square = 0, size = 0, largest = 0;
    value->elements = clv_tensor_numel(tensor);
    value->index = -1;
    for (int64_t i = 0; i < value->elements; i++) {
        double x = element(tensor, a, i), y = element(tensor, b, i), difference = fabs(x - y);
        if (x == y || (isnan(x) && isnan(y))) difference = 0; // infinities too
        if (isnan(difference)) difference = INFINITY;
        square += difference * difference;
        if (isfinite(x)) size += x * x, largest = fmax(largest, fabs(x));
        if (value->index < 0 || difference > value->difference) {
            value->index = i;
            value->difference = difference;
            value->a = x;
            value->b = y;
        }
    }
    if (value->difference == 0) return 0;
    value->drift = size > 0 && isfinite(square) ? sqrt(square / size) : INFINITY;
    return largest > 0 ? value->difference / largest : INFINITY;
}

// ---- who is wrong -------------------------------------------------------------------------------------------------------

/** The node alone, as a case of its op. */
static clv__sample sample_of(const clv__node *node) {
    clv__sample sample = {.n_in = node->io.n_in};
    memcpy(sample.attrs, node->attrs, sizeof sample.attrs);
    for (int i = 0; i < node->io.n_in; i++) sample.in[i] = node->io.in[i];
    return sample;
}

static clv_status expect(clv__subject *subject, const clv__node *node, const clv__side *side,
                         clv__expected *expected, clv__error *error) {
    clv__values_reset(&subject->start);
    CLV_TRY(clv__values_init(&subject->start, subject->graph, error));
    for (int i = 0; i < node->io.n_in; i++) {
        if (subject->in[i])
            clv__values_set(&subject->start, subject->in[i], clv__side_given(side, node->in[i]));
    }
    return clv__expected_init(expected, &subject->start, subject->targets, subject->n_targets, side->device,
                              error);
}

/** Is what the side has in `tensor` right for what its node was given there? target: of the subject. */
static clv_status judge_side(comparison *c, clv__subject *subject, int target, const clv__node *node,
                             const clv__side *side, const clv_tensor *tensor, clv_compare_value *value,
                             bool *wrong) {
    clv__expected expected = {0};
    CLV_TRY(expect(subject, node, side, &expected, c->error));
    clv__distance worst =
        clv__expected_distance(&expected, subject->targets[target], side->after[tensor->id]);
    clv__expected_reset(&expected);
    *wrong = worst.ratio > 1;
    if (!*wrong) return CLV_OK;
    value->wrong_index = worst.index;
    value->wrong_value = worst.got;
    value->wanted = worst.want;
    value->wrong_limit = worst.tolerance;
    return CLV_OK;
}

/** Hold both sides against the reference. target: outputs first, then inputs that are updated, as a subject has them. */
static clv_status judge(comparison *c, const clv__node *node, int target, const clv_tensor *tensor,
                        clv_compare_value *value) {
    const clv__op *op = node->io.op;
    if (op->view || !op->reference) return CLV_OK;
    clv__sample sample = sample_of(node);
    clv__subject subject;
    CLV_TRY(clv__subject_init(&subject, c->scene.graph->runtime, op, &sample, false));
    clv_status status = judge_side(c, &subject, target, node, &c->a, tensor, value, &value->wrong_a);
    if (status == CLV_OK)
        status = judge_side(c, &subject, target, node, &c->b, tensor, value, &value->wrong_b);
    clv__subject_reset(&subject);
    value->judged = status == CLV_OK;
    return status;
}

// ---- the walk -----------------------------------------------------------------------------------------------------------

static bool looks_odd(const comparison *c, const clv__node *node, double apart) {
    double inputs = 0;
    for (int i = 0; i < node->io.n_in; i++)
        if (node->in[i] && node->in[i]->kind == CLV__VALUE) inputs = fmax(inputs, c->apart[node->in[i]->id]);
    const clv__op *op = node->io.op;
    double terms = op->reduction ? (double)op->reduction(&node->io) : 1;
    return apart > CLOSE_ULP * FLT_EPSILON * sqrt(fmax(1, terms)) && apart > CLOSE_GROWTH * inputs;
}

static const char *phase_name(clv__phase phase) {
    return phase == CLV__FORWARD ? "forward" : phase == CLV__BACKWARD ? "backward" : "update";
}

static clv_status compare_tensor(comparison *c, const clv__node *node, int target, const clv_tensor *tensor,
                                 bool updated) {
    const void *a = c->a.after[tensor->id], *b = c->b.after[tensor->id];
    clv_compare_report *report = c->report;
    if (!a || !b) return CLV_OK; // nothing that is computed needs it
    if (!clv__grow(&report->values, &c->room, (size_t)report->n_values + 1, sizeof *report->values))
        CLV_FAIL(c->error, CLV_E_HOST_MEMORY, "no memory for the comparison of %d values", report->n_values);
    clv_compare_value *value = &report->values[report->n_values];
    *value = (clv_compare_value){.op = node->io.op->name,
                                 .phase = phase_name(node->phase),
                                 .variant_a = clv__side_variant(&c->a, node),
                                 .variant_b = clv__side_variant(&c->b, node)};
    if (*node->layer)
        snprintf(value->layer, sizeof value->layer, "%s", node->layer);
    else
        snprintf(value->layer, sizeof value->layer, "#%d", node->id);
    if (updated)
        snprintf(value->what, sizeof value->what, "'%.120s' after it", tensor->name);
    else
        snprintf(value->what, sizeof value->what, "output %d", tensor->output_index);
    double apart = measure(tensor, a, b, value);
    if (looks_odd(c, node, apart)) CLV_TRY(judge(c, node, target, tensor, value));
    if (!updated) c->apart[tensor->id] = apart;
    report->n_equal += value->difference == 0;
    report->n_judged += value->judged;
    report->n_wrong += value->wrong_a || value->wrong_b;
    report->n_drifted += value->drift > c->tolerance;
    if (report->worst < 0 || value->drift > report->values[report->worst].drift)
        report->worst = report->n_values;
    report->n_values++;
    return CLV_OK;
}

static clv_status compare_node(comparison *c, const clv__node *node) {
    int target = 0;
    for (int i = 0; i < node->io.n_out; i++) CLV_TRY(compare_tensor(c, node, target++, node->out[i], false));
    for (int i = 0; i < node->io.n_in; i++)
        if (node->in[i] && node->io.op->mutates >> i & 1)
            CLV_TRY(compare_tensor(c, node, target++, node->in[i], true));
    return CLV_OK;
}

static clv_status walk(comparison *c) {
    const clv_graph *graph = c->scene.graph;
    static const clv__phase order[] = {CLV__FORWARD, CLV__BACKWARD, CLV__UPDATE};
    int done = 0;
    for (int p = 0; p < 3; p++) {
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const clv__node *node = graph->nodes[i];
            if (node->phase != order[p]) continue;
            if (c->config->progress &&
                !c->config->progress(c->config->user, done, (int)graph->n_nodes, node->io.op->name))
                CLV_FAIL(c->error, CLV_E_INTERRUPTED, "interrupted after %d of %zu ops", done,
                         graph->n_nodes);
            CLV_TRY(compare_node(c, node));
            done++;
        }
    }
    return CLV_OK;
}

// ---- the verdict --------------------------------------------------------------------------------------------------------

/** The first that is wrong, else the first that drifted. */
static int find_first(const comparison *c) {
    const clv_compare_report *report = c->report;
    for (int i = 0; i < report->n_values; i++)
        if (report->values[i].wrong_a || report->values[i].wrong_b) return i;
    for (int i = 0; i < report->n_values; i++)
        if (report->values[i].drift > c->tolerance) return i;
    return -1;
}

static void say(const comparison *c) {
    clv_compare_report *report = c->report;
    const char *a = c->a.device->info.name, *b = c->b.device->info.name;
    const clv_compare_value *worst = report->worst >= 0 ? &report->values[report->worst] : NULL,
                            *first = report->first >= 0 ? &report->values[report->first] : NULL;
    if (!first) {
        clv__format(
            report->sentence, sizeof report->sentence,
            "%s and %s agree in all %d values; the largest difference is %.2g of a value (%s '%s', %s)", a, b,
            report->n_values, worst ? worst->drift : 0, worst ? worst->op : "", worst ? worst->layer : "",
            worst ? worst->phase : "");
    } else if (first->wrong_a || first->wrong_b) {
        bool both = first->wrong_a && first->wrong_b;
        clv__format(
            report->sentence, sizeof report->sentence,
            "%s '%s' (%s), %s: %s %s wrong for what %s given: element %lld is %.9g, it should be %.9g "
            "and may be "
            "off by %.2g (variant '%s' on %s, '%s' on %s)",
            first->op, first->layer, first->phase, first->what,
            both             ? "both devices"
            : first->wrong_a ? a
                             : b,
            both ? "are" : "is", both ? "they were" : "it was", (long long)first->wrong_index,
            first->wrong_value, first->wanted, first->wrong_limit, first->variant_a, a, first->variant_b, b);
    } else {
        clv__format(
            report->sentence, sizeof report->sentence,
            "%s '%s' (%s), %s: %s and %s have drifted apart by %.2g, %.2g is allowed; element %lld is "
            "%.9g on %s and "
            "%.9g on %s. No op is wrong for what it was given: rounding grew",
            first->op, first->layer, first->phase, first->what, a, b, first->drift, c->tolerance,
            (long long)first->index, first->a, a, first->b, b);
    }
}

// ---- public -------------------------------------------------------------------------------------------------------------

static clv_status check_config(const clv_compare_config *config, clv__error *error) {
    const clv_device *devices[2] = {config->a, config->b};
    for (int i = 0; i < 2; i++) {
        if (!devices[i]) CLV_FAIL(error, CLV_E_VALUE, "compare: two devices must be given");
        if (!devices[i]->info.usable || !strcmp(devices[i]->info.backend, "null"))
            CLV_FAIL(error, CLV_E_UNSUPPORTED, "compare: device %s computes nothing%s%s",
                     devices[i]->info.name, *devices[i]->info.reason ? ": " : "", devices[i]->info.reason);
    }
    if (!config->model) CLV_FAIL(error, CLV_E_VALUE, "compare: a model must be given");
    if (config->batch < 0)
        CLV_FAIL(error, CLV_E_VALUE, "compare: batch is %lld, it must be at least 1",
                 (long long)config->batch);
    if (!(config->tolerance >= 0))
        CLV_FAIL(error, CLV_E_VALUE, "compare: tolerance is %g, it must be at least 0", config->tolerance);
    if (!config->images != !config->labels)
        CLV_FAIL(error, CLV_E_VALUE, "compare: images and labels belong together");
    CLV_TRY(clv__model_check(error, config->model));
    if (config->images && (clv_model_port_count(config->model, CLV_PORT_INPUT) > 1 ||
                           clv_model_port_count(config->model, CLV_PORT_TARGET) > 1))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "compare: images and labels need a model of one input and one target, model '%s' has %d and %d",
            config->model->name, clv_model_port_count(config->model, CLV_PORT_INPUT),
            clv_model_port_count(config->model, CLV_PORT_TARGET));
    const clv_port target = clv_model_port_get(config->model, CLV_PORT_TARGET, 0);
    if (config->images && (!target.classes || target.dims[0]))
        CLV_FAIL(
            error, CLV_E_VALUE,
            "compare: images and labels need a model that gives one class for each sample, and '%s' gives %s",
            config->model->name, target.classes ? "several" : "numbers");
    return CLV_OK;
}

static clv_status compare(comparison *c, clv_runtime *runtime) {
    CLV_TRY(clv__scene_init(&c->scene, runtime, c->config));
    c->apart = clv__alloc(c->scene.graph->n_tensors + 1, sizeof *c->apart);
    if (!c->apart) CLV_FAIL(c->error, CLV_E_HOST_MEMORY, "no memory to compare two devices");
    CLV_TRY(clv__side_init(&c->a, &c->scene, c->config->a));
    CLV_TRY(clv__side_init(&c->b, &c->scene, c->config->b));
    CLV_TRY(walk(c));
    c->report->first = find_first(c);
    say(c);
    return CLV_OK;
}

static void report_end(void *what) {
    clv_compare_report *report = what;
    free(report->values);
}

clv_status clv_compare(clv_runtime *runtime, const clv_compare_config *config, clv_compare_report **out) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), out));
    CLV_TRY(CLV__USABLE(clv__runtime_error_of(runtime), config));
    *out = NULL;
    comparison c = {.config = config,
                    .error = clv__runtime_error_of(runtime),
                    .tolerance = config->tolerance > 0 ? config->tolerance : USUAL_TOLERANCE};
    CLV_TRY(check_config(config, c.error));
    c.report = clv__owned(sizeof *c.report, report_end);
    if (!c.report) CLV_FAIL(c.error, CLV_E_HOST_MEMORY, "no memory to compare two devices");
    c.report->first = c.report->worst = -1;
    clv_status status = compare(&c, runtime);
    clv__side_reset(&c.a, &c.scene);
    clv__side_reset(&c.b, &c.scene);
    clv__scene_reset(&c.scene);
    free(c.apart);
    if (status == CLV_OK)
        *out = c.report;
    else
        clv_free(c.report);
    return status;
}
