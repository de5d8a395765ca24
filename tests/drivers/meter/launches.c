// SPDX-License-Identifier: Apache-2.0
// Writes down what a null card is asked to do, for meter.c and ptx/ptx.c: FOLDER/STEM.cl, the kernels; FOLDER/nodes.c, nodes with their launches
// and their memory as C, one beside the other where they are alike; FOLDER/data.bin, values for the samples; FOLDER/uses.txt, each
// `op:variant` that a null card with lanes can get.
//
//     a training step of resnet18, of mobilenet_v2 and of the GPT, on the card: nodes as its plan has them
//     every sample of every op, with its gradient, in f32: each variant of each node, with inputs and what the reference makes of them
//
//     with --others: a node for each variant that these training steps do not have (others.c), and uses.txt
//
// usage: meter_launches FOLDER CARD [--others]       CARD: null:rx-580
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases.h"
#include "check/subject.h"
#include "cleave/cleave.h"
#include "drivers/meter/nodes.h"
#include "drivers/meter/others.h"
#include "plan/plan.h"
#include "tensor/dtype.h"

static clv_runtime *runtime;
static clv_device *card;
static const clv_device_info *device; // of the card

static void must_be(clv_status status) {
    if (status != CLV_OK) nodes_fail(clv_runtime_error(runtime));
}

static void look_at_model(const char *name, bool others) {
    clv__bench_cases cases = {0};
    clv__bench_graph g;
    clv_plan *plan;
    const clv_bench_config config = {.suite = "models", .mode = "train", .model = name, .batch = METER_BATCH};
    must_be(clv__bench_cases_init(runtime, &config, &cases));
    if (cases.n != 1) nodes_fail("there is no such model");
    must_be(clv__bench_build(runtime, &cases.items[0], CLV_PRECISION_F32, &g));
    must_be(clv_plan_create(g.graph, &(clv_plan_config){.device = card}, &plan));
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        node_label label = {.alone = false};
        if (at->work != CLV__COMPUTE || !at->variant || !at->launches.n) continue;
        snprintf(label.model, sizeof label.model, "%s", name);
        snprintf(label.use, sizeof label.use, "%s:%s", at->node->io.op->name, at->variant->name);
        nodes_add(&label, &at->node->io, at->variant->name, &at->launches, NULL);
    }
    if (others) others_of_plan(plan, name);
    clv_plan_destroy(plan);
    clv_graph_destroy(g.graph);
    clv__bench_cases_reset(&cases);
}

// ---- samples -------------------------------------------------------------------------------------------------------------

/** A tensor's values as the kernel gets them. */
static long keep_elements(const clv_tensor *tensor, const double *from) {
    void *elements = malloc(clv__desc_bytes(&tensor->desc) + 1);
    if (!elements) nodes_fail("no memory");
    clv__elements_narrow(tensor->desc.dtype, from, clv__numel(&tensor->desc), elements);
    const long at = nodes_keep(elements, clv__desc_bytes(&tensor->desc));
    free(elements);
    return at;
}

static bool
is_whole(const clv_tensor
             *tensor) { // f32 and i32 alone are compared here; how others are stored, cleave check knows
    return !tensor || tensor->desc.dtype == CLV_DTYPE_F32 || tensor->desc.dtype == CLV_DTYPE_I32;
}

/** So many samples of each variant of each op are enough, and small ones. */
enum { SAMPLES = 3, MOST_ELEMENTS = 1 << 14, MOST_VARIANTS = 2048 };
static struct {
    const clv__variant *variant;
    const clv__op *op;
    int n;
} had[MOST_VARIANTS];

static bool is_wanted(const clv__op *op, const clv__variant *variant) {
    int i = 0;
    while (had[i].variant && (had[i].variant != variant || had[i].op != op)) i++;
    if (i == MOST_VARIANTS - 1) nodes_fail("too many variants");
    had[i].variant = variant, had[i].op = op;
    return had[i].n++ < SAMPLES;
}

static node_values keep_values(const clv__node *node, const clv__values *before, const clv__values *after) {
    node_values known = {0};
    for (int k = 0; k < node->io.n_in; k++) {
        const clv_tensor *tensor = node->in[k];
        known.given[k] =
            tensor ? keep_elements(tensor, (tensor->node ? after : before)->data[tensor->id]) : -1;
    }
    for (int k = 0; k < node->io.n_out; k++)
        known.wanted[k] = nodes_keep(after->data[node->out[k]->id],
                                     (size_t)clv__numel(&node->out[k]->desc) * sizeof(double));
    return known;
}

static bool is_small(const clv__node *node) {
    int64_t n = 0;
    for (int k = 0; k < node->io.n_in; k++) n += node->in[k] ? clv__numel(&node->in[k]->desc) : 0;
    for (int k = 0; k < node->io.n_out; k++) n += clv__numel(&node->out[k]->desc);
    bool small = n <= MOST_ELEMENTS;
    for (int k = 0; k < node->io.n_in; k++) small &= is_whole(node->in[k]);
    for (int k = 0; k < node->io.n_out; k++) small &= is_whole(node->out[k]);
    return small;
}

static void look_at_subject(clv__subject *subject, const char *label) {
    const clv_graph *graph = subject->graph;
    clv__error *error = clv__runtime_error_of(runtime);
    clv__values after = {0};
    must_be(clv__subject_fill(subject, 1));
    must_be(clv__values_init(&after, graph, error));
    for (size_t i = 0; i < graph->n_tensors; i++)
        memcpy(after.data[i], subject->start.data[i],
               (size_t)clv__numel(&graph->tensors[i]->desc) * sizeof(double));
    must_be(clv__interpret(&after, NULL, error));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__node *node = graph->nodes[i];
        node_values known;
        bool kept = false;
        for (const clv__variant *v = node->io.op->variants; is_small(node) && v && v->name; v++) {
            node_label sample = {.alone = false};
            clv__launches launches = {.device = device};
            if (!clv__variant_supports(v, device, &node->io)) continue;
            clv__variant_lower(v, &launches, &node->io);
            if (!launches.failed && launches.n && is_wanted(node->io.op, v)) {
                if (!kept) known = keep_values(node, &subject->start, &after);
                kept = true;
                snprintf(sample.use, sizeof sample.use, "%s:%s, %s", node->io.op->name, v->name, label);
                nodes_add(&sample, &node->io, v->name, &launches, &known);
            }
            clv__launches_reset(&launches);
        }
    }
    clv__values_reset(&after);
}

static void look_at_samples(void) {
    for (const clv__op *const *op = clv__ops; *op; op++) {
        clv__sample sample = {0};
        for (int i = 0; clv__op_sample(*op, i, &sample); i++) {
            clv__subject subject;
            must_be(clv__subject_init(&subject, runtime, *op, &sample, true));
            look_at_subject(&subject, sample.label);
            clv__subject_reset(&subject);
            sample = (clv__sample){0};
        }
    }
}

int main(int argc, char **argv) {
    const bool others = argc == 4 && !strcmp(argv[3], "--others");
    if (argc != 3 && !others) nodes_fail("usage: meter_launches FOLDER CARD [--others]");
    const clv_runtime_config config = {
        .null_devices = true, .null_cards = true, .no_opencl = true, .visible_devices = "", .tuning = "none"};
    if (clv_runtime_create(&config, &runtime) != CLV_OK) nodes_fail("no runtime");
    must_be(clv_device_find(runtime, argv[2], &card));
    device = clv_device_info_get(card);
    nodes_begin(argv[1]);
    for (const char *const *model = meter_models; *model; model++) look_at_model(*model, others);
    if (others) others_complete(runtime, card, argv[1]);
    look_at_samples();
    nodes_write(argv[1]);
    clv_runtime_destroy(runtime);
    return 0;
}
