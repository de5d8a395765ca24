// SPDX-License-Identifier: Apache-2.0
// Which node shows a variant; see others.h. Pairs of op and variant are counted over all samples, as tests/drivers/offline/kernels.c
// meets kernels: in f32, in f16 and partly in f16, with gradients, on each null card with lanes. Each pair gets one node of the first
// of these that has one, of several the one with the most work:
//
//     the training steps: for each model that does the op, even if another model's plan chose the variant
//     the same models' inference, in f32 and in mixed precision; their steps in mixed precision, with clipping, AdamW and running averages
//     the same models, with nothing made one of several nodes; all other models' steps
//     samples: in f32, in f16, partly in f16
#include "drivers/meter/others.h"

#include <stdlib.h>
#include <string.h>

#include "check/subject.h"
#include "cleave/cleave.h"
#include "drivers/meter/nodes.h"
#include "drivers/programs.h"
#include "plan/passes.h"
#include "train/trainer.h"

const char *const meter_models[] = {"resnet18", "mobilenet_v2", "gpt", NULL};

/** An op's variant, and the best node so far to show it. */
typedef struct pair {
    const clv__op *op;
    const clv__variant *variant;
    bool can;          // a null card can get it
    bool has;          // it has a node
    const char *model; // whose plan chose it last; NULL: none did
    double work;       // of the node; 0: there is none
    clv__op_io io;     // its epilogue is the plan's own
    clv__desc in[CLV__MAX_IN];
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    char label[128];
} pair;

static pair *pairs;
static size_t n_pairs, pairs_room;

static pair *pair_of(const clv__op *op, const clv__variant *variant) {
    for (size_t i = 0; i < n_pairs; i++)
        if (pairs[i].op == op && pairs[i].variant == variant) return &pairs[i];
    if (!clv__grow(&pairs, &pairs_room, n_pairs + 1, sizeof *pairs)) nodes_fail("no memory");
    pairs[n_pairs] = (pair){.op = op, .variant = variant};
    return &pairs[n_pairs++];
}

static bool lowers(const clv__variant *variant, const clv_device_info *device, const clv__op_io *io,
                   clv__launches *launches) {
    *launches = (clv__launches){.device = device};
    clv__variant_lower(variant, launches, io);
    return !launches->failed && launches->n > 0;
}

static double work_of(const clv__op_io *io) {
    clv__cost cost = {0};
    clv__op_cost(io, &cost);
    return cost.flops / 10 > cost.bytes ? cost.flops / 10 : cost.bytes;
}

/** The pair may be shown by this node, if there is no better one. */
static void offer(pair *at, const clv__op_io *io, const char *label) {
    const double work = work_of(io) + 1;
    if (work <= at->work) return;
    at->work = work;
    at->io = *io;
    memcpy(at->in, io->in, (size_t)io->n_in * sizeof *io->in);
    if (io->attrs) memcpy(at->attrs, io->attrs, io->op->attrs_bytes);
    snprintf(at->label, sizeof at->label, "%s", label);
}

/** Add the nodes that were found. Plans they are of must still be there. */
static void settle(const clv_device_info *device) {
    for (pair *at = pairs; at < pairs + n_pairs; at++) {
        if (at->work == 0) continue;
        clv__launches launches;
        node_label label = {.alone = true};
        at->io.in = at->in;
        if (at->io.attrs) at->io.attrs = at->attrs;
        snprintf(label.model, sizeof label.model, "%s", at->label);
        snprintf(label.use, sizeof label.use, "%s:%s", at->op->name, at->variant->name);
        if (lowers(at->variant, device, &at->io, &launches))
            at->has |= nodes_add(&label, &at->io, at->variant->name, &launches, NULL);
        clv__launches_reset(&launches);
        at->work = 0;
    }
}

// ---- plans ---------------------------------------------------------------------------------------------------------------

static const clv_device_info *device_of(const clv_plan *plan) {
    return &plan->places[0].device->info;
}

/** Offer a plan's nodes; `model`: whose plan it is if what another one chose is wanted again. */
static void offer_plan(const clv_plan *plan, const char *label, const char *model) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        if (at->work != CLV__COMPUTE || !at->variant || !at->launches.n) continue;
        for (const clv__variant *v = at->node->io.op->variants; v->name; v++) {
            pair *of = pair_of(at->node->io.op, v);
            const bool wanted = model ? of->model != model : !of->has;
            if (wanted && clv__variant_supports(v, device_of(plan), &at->node->io))
                offer(of, &at->node->io, label);
        }
    }
    settle(device_of(plan));
}

void others_of_plan(const clv_plan *plan, const char *model) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        if (at->work != CLV__COMPUTE || !at->variant || !at->launches.n) continue;
        pair *of = pair_of(at->node->io.op, at->variant);
        of->model = model;
        of->has = true;
    }
    offer_plan(plan, model, model);
}

static bool is_metered(const clv_model *model) {
    for (const char *const *name = meter_models; *name; name++)
        if (!strcmp(*name, model->name)) return true;
    return false;
}

/** Where the gradients of a table lie. */
static long keep_table(const clv_plan *plan, int value, size_t chunk) {
    const clv__value *table = &plan->values[value];
    void *rows = calloc(1, table->bytes);
    if (!rows) nodes_fail("no memory");
    table->writer->write(plan, value, chunk, rows);
    const long at = nodes_keep(rows, table->bytes);
    free(rows);
    return at;
}

/** Whole chains of a plan, which go through all gradients at once: each pair has one use of a few gradients besides. */
static void add_chains(const clv_plan *plan, const char *model) {
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        const int n = at->node ? at->node->io.n_in : 0;
        if (at->work != CLV__COMPUTE || !at->variant || !at->launches.n || n == CLV__MAX_IN ||
            at->in[n] < 0 || !plan->values[at->in[n]].writer)
            continue;
        const clv__layout *gradients = &plan->places[at->place].gradients;
        clv__op_io io = at->node->io;
        node_label label = {.alone = true};
        node_values known = {0};
        snprintf(label.model, sizeof label.model, "%s", model);
        snprintf(label.use, sizeof label.use, "%s:%s", io.op->name, at->variant->name);
        memset(known.given, -1, sizeof known.given);
        memset(known.wanted, -1, sizeof known.wanted);
        clv__desc in[CLV__MAX_IN] = {0}; // gradients are read where they lie
        in[n] = plan->values[at->in[n]].desc;
        io.in = in;
        io.n_in = n + 1;
        known.given[n] = keep_table(plan, at->in[n], gradients->chunk);
        for (int c = 0; c < CLV__GRADIENT_CHUNKS; c++) known.gradients[c] = clv__layout_chunk(gradients, c);
        nodes_add(&label, &io, at->variant->name, &at->launches, &known);
    }
}

/** What a model's graph is for, and how it is planned. */
typedef struct way {
    const char *name;
    bool training, no_fuse;
    clv_precision precision;
} way;
static const way other_ways[] = {{"inference", false, false, CLV_PRECISION_F32},
                                 {"mixed inference", false, false, CLV_PRECISION_MIXED},
                                 {"mixed training", true, false, CLV_PRECISION_MIXED}},
                 training = {"training", true, false, CLV_PRECISION_F32},
                 not_fused[] = {{"training not fused", true, true, CLV_PRECISION_F32},
                                {"inference not fused", false, true, CLV_PRECISION_F32}};

/** A training step has all around it that it may have. */
static void build(clv_graph *graph, const clv_model *model, const way *as) {
    clv_graph_set_training(graph, as->training);
    clv_graph_set_precision(graph, as->precision);
    clv_tensor *in[CLV_MAX_PORTS], *out[CLV_MAX_PORTS];
    clv_model_tensors(graph, model, CLV_PORT_INPUT, METER_BATCH, in);
    clv_model_build_all(model, in, clv_model_port_count(model, CLV_PORT_INPUT), out, 1);
    clv_tensor *y = out[0];
    if (!as->training) {
        clv_output(y, "logits");
        return;
    }
    const clv_loss *loss = clv__loss_for(model);
    y = loss->build(y, clv_model_target(graph, model, METER_BATCH), loss);
    clv_output(y, "loss");
    if (as->precision == CLV_PRECISION_MIXED) clv_scaler_add(graph, NULL);
    clv_backward(y);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_ADAMW, .clip_norm = 1});
    clv_averages_add(graph, 0.99);
}

static void look_at_model(clv_runtime *runtime, clv_device *card, const clv_model *model, const way *as) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    char label[128];
    const clv_plan_config config = {.device = card, .no_fuse = as->no_fuse};
    snprintf(label, sizeof label, "%s, %s", model->name, as->name);
    if (clv_graph_create(runtime, &graph) != CLV_OK) nodes_fail(clv_runtime_error(runtime));
    build(graph, model, as);
    if (clv_plan_create(graph, &config, &plan) != CLV_OK) nodes_fail(clv_runtime_error(runtime));
    offer_plan(plan, label, NULL);
    if (is_metered(model)) add_chains(plan, label);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

static void look_at_metered(clv_runtime *runtime, clv_device *card, const way *ways, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (const char *const *name = meter_models; *name; name++)
            look_at_model(runtime, card, clv_model_find(*name), &ways[i]);
}

static void look_at_models(clv_runtime *runtime, clv_device *card) {
    look_at_metered(runtime, card, other_ways, sizeof other_ways / sizeof *other_ways);
    look_at_metered(runtime, card, not_fused, sizeof not_fused / sizeof *not_fused);
    for (int i = 0; clv_model_get(i); i++)
        if (!is_metered(clv_model_get(i))) look_at_model(runtime, card, clv_model_get(i), &training);
}

// ---- samples -------------------------------------------------------------------------------------------------------------

/** How a sample's floats are stored. */
typedef enum stored { AS_F32, AS_F16, PARTLY_F16, N_STORED } stored;

typedef void sample_look(const clv_graph *graph, const char *label, void *to);

static void each_sample(clv_runtime *runtime, stored as, sample_look *look, void *to) {
    for (const clv__op *const *op = clv__ops; *op; op++) {
        clv__sample sample = {0};
        for (int i = 0; clv__op_sample(*op, i, &sample); i++) {
            clv__subject subject;
            char label[128];
            if (as != AS_F32) clv__sample_store(*op, CLV_DTYPE_F16, as == AS_F16, &sample);
            snprintf(label, sizeof label, "sample of %s: %s", (*op)->name, sample.label);
            if (clv__subject_init(&subject, runtime, *op, &sample, true) == CLV_OK)
                look(subject.graph, label, to);
            clv__subject_reset(&subject);
            sample = (clv__sample){0};
        }
    }
}

/** Note what null cards can get. */
static void count_pairs(const clv_graph *graph, const char *label, void *to) {
    clv_runtime *runtime = to;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__op_io *io = &graph->nodes[i]->io;
        for (const clv__variant *v = io->op->variants; v && v->name; v++) {
            pair *of = pair_of(io->op, v);
            for (int d = 0; d < clv_runtime_info_get(runtime).n_devices && !of->can; d++) {
                const clv_device_info *device = clv_device_info_get(clv_device_get(runtime, d));
                clv__launches launches;
                if (strncmp(device->name, "null", 4) != 0 || device->execution != CLV_EXECUTION_LANES ||
                    !clv__variant_supports(v, device, io))
                    continue;
                of->can = lowers(v, device, io, &launches);
                clv__launches_reset(&launches);
            }
        }
    }
}

static void offer_sample(const clv_graph *graph, const char *label, void *to) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__op_io *io = &graph->nodes[i]->io;
        for (const clv__variant *v = io->op->variants; v && v->name; v++) {
            pair *of = pair_of(io->op, v);
            if (!of->has && clv__variant_supports(v, to, io)) offer(of, io, label);
        }
    }
}

void others_complete(clv_runtime *runtime, clv_device *card, const char *folder) {
    const clv_device_info *device = clv_device_info_get(card);
    for (stored as = AS_F32; as < N_STORED; as++) each_sample(runtime, as, count_pairs, runtime);
    look_at_models(runtime, card);
    for (stored as = AS_F32; as < N_STORED; as++) {
        each_sample(runtime, as, offer_sample, (void *)device);
        settle(device);
    }
    FILE *out = programs_file(folder, "uses", ".txt");
    for (const pair *at = pairs; at < pairs + n_pairs; at++)
        if (at->can) fprintf(out, "%s:%s\n", at->op->name, at->variant->name);
    if (fclose(out)) nodes_fail("uses.txt cannot be written");
    free(pairs);
}
