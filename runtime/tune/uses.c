// SPDX-License-Identifier: Apache-2.0
// Gathers uses from plans, so that what passes make of a graph is what is raced; see uses.h.
#include "tune/uses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases.h"
#include "plan/plan.h"
#include "tuning/tuning.h"

typedef struct gathering {
    clv_device *device;
    clv__error *error;
    const clv_tune_config *config;
    const clv__op *op; // only uses of this one; NULL: all
    clv__uses *uses;
} gathering;

static clv_status add_use(gathering *g, const clv__op_io *io) {
    char key[CLV__TUNING_KEY_BYTES];
    clv__uses *uses = g->uses;
    clv__tuning_key(io, key);
    for (size_t i = 0; i < uses->n; i++)
        if (uses->items[i]->io.op == io->op && !strcmp(uses->keys[i], key)) {
            uses->items[i]->nodes++;
            return CLV_OK;
        }
    clv__trial *trial;
    CLV_TRY(clv__trial_create(g->device, io, &trial));
    if (trial->n_candidates < 2) { // nothing to choose
        clv__trial_destroy(trial);
        return CLV_OK;
    }
    char *copy = clv__strdup(key);
    if (!copy || !clv__grow(&uses->items, &uses->room, uses->n + 1, sizeof *uses->items) ||
        !clv__grow(&uses->keys, &uses->keys_room, uses->n + 1, sizeof *uses->keys)) {
        free(copy);
        clv__trial_destroy(trial);
        CLV_FAIL(g->error, CLV_E_HOST_MEMORY, "no memory for the uses of '%s'", io->op->name);
    }
    uses->items[uses->n] = trial;
    uses->keys[uses->n++] = copy;
    return CLV_OK;
}

/** The plan's nodes, but for those that only read a result back. */
static clv_status add_plan(gathering *g, const clv__bench_graph *graph) {
    clv_plan *plan = NULL;
    clv_status status = clv_plan_create(
        graph->graph,
        &(clv_plan_config){.device = g->device, .variants = "" /* pins are for runs */, .no_fuse = true},
        &plan);
    for (size_t i = 0; status == CLV_OK && i < plan->n_nodes; i++) {
        const clv__node *node = plan->nodes[i].node;
        if (plan->nodes[i].work != CLV__COMPUTE || node->io.op->view) continue;
        if (node->graph == graph->graph && (size_t)node->id >= graph->n_nodes) continue;
        if (!g->op || g->op == node->io.op) status = add_use(g, &node->io);
    }
    clv_plan_destroy(plan);
    return status;
}

static clv_status add_cases(gathering *g, const clv__bench_cases *cases) {
    static const char models[] = "models";
    for (size_t i = 0; i < cases->n; i++) {
        const clv__bench_case *c = &cases->items[i];
        if (!g->config->model && !strcmp(c->suite, models)) continue;
        clv__bench_graph graph;
        clv_status status = clv__bench_build(g->device->runtime, c, CLV_PRECISION_F32, &graph);
        if (status == CLV_OK) status = add_plan(g, &graph);
        clv_graph_destroy(graph.graph);
        CLV_TRY(status);
    }
    return CLV_OK;
}

/** Open races go first, then what all nodes of the use take together; of equals the one that came first. */
static bool goes_before(const clv__trial *a, const clv__trial *b) {
    bool open = clv__trial_is_open(a), other = clv__trial_is_open(b);
    return open != other ? open : a->weight * a->nodes > b->weight * b->nodes;
}

/** Few enough for insertion. */
static void sort(clv__uses *uses) {
    for (size_t i = 1; i < uses->n; i++) {
        clv__trial *trial = uses->items[i];
        char *key = uses->keys[i];
        size_t at = i;
        for (; at > 0 && goes_before(trial, uses->items[at - 1]); at--) {
            uses->items[at] = uses->items[at - 1];
            uses->keys[at] = uses->keys[at - 1];
        }
        uses->items[at] = trial;
        uses->keys[at] = key;
    }
}

static clv_status gather(gathering *g) {
    const clv_tune_config *config = g->config;
    if (config->model && config->size[0])
        CLV_FAIL(g->error, CLV_E_VALUE, "a model and the size of a product cannot be tuned together");
    clv__nearest nearest = {0};
    if (config->op && !(g->op = clv__op_find(config->op)))
        CLV_FAIL(g->error, CLV_E_NOT_FOUND, "there is no op '%s'%s", config->op,
                 clv__op_nearest(config->op, &nearest));
    clv_bench_config bench = {.suite = config->model     ? "models"
                                       : config->size[0] ? "gemm"
                                                         : NULL,
                              .model = config->model,
                              .batch = config->batch,
                              .seconds = config->seconds};
    memcpy(bench.size, config->size, sizeof bench.size);
    clv__bench_cases cases;
    CLV_TRY(clv__bench_cases_init(g->device->runtime, &bench, &cases));
    clv_status status = add_cases(g, &cases);
    clv__bench_cases_reset(&cases);
    CLV_TRY(status);
    if (!g->uses->n)
        CLV_FAIL(g->error, CLV_E_NOT_FOUND, "nothing to tune: no use of %s leaves a choice of variants on %s",
                 config->op ? config->op : "an op", g->device->info.name);
    sort(g->uses);
    return CLV_OK;
}

clv_status clv__uses_init(clv_device *device, const clv_tune_config *config, clv__uses *out) {
    gathering g = {
        .device = device, .error = clv__runtime_error_of(device->runtime), .config = config, .uses = out};
    *out = (clv__uses){0};
    clv_status status = gather(&g);
    if (status != CLV_OK) clv__uses_reset(out);
    return status;
}

void clv__uses_reset(clv__uses *uses) {
    for (size_t i = 0; i < uses->n; i++) {
        clv__trial_destroy(uses->items[i]);
        free(uses->keys[i]);
    }
    free(uses->items);
    free(uses->keys);
    *uses = (clv__uses){0};
}
