// SPDX-License-Identifier: Apache-2.0
// Ranks of products and convolutions held against times of a card (tests/golden/cards/h200-times.tsv). There each node was measured with one
// variant, the one that it had then. So what another would take is told by its rank and by how the times of its kind stand to their ranks:
// the median of measured / ranked, of an op and a variant, where there are MANY of them, else of the op's tiles. The step loses what
// today's choice takes longer by that than the best one. A card has to be asked about single nodes; that ranks of one kind of
// tile are all too high, or of large nodes beside small ones, is seen here.
#include <math.h>
#include <stdlib.h>

#include "cleave/nn.h"
#include "cleave/train.h"
#include "harness/harness.h"
#include "ops/product/gemm.h"
#include "plan/plan.h"

enum { MOST_NODES = 512, MOST_MODELS = 8, MANY = 5, NAME = 64 };
static const double most_lost = 0.05; // of a step

typedef struct measured {
    char model[NAME], layer[NAME], op[NAME], variant[NAME];
    double ms;
    const clv__plan_node *node; // today's
    double ratio;               // measured / ranked
} measured;

typedef struct table {
    measured items[MOST_NODES];
    int n;
    char models[MOST_MODELS][NAME];
    int batches[MOST_MODELS], n_models;
    double steps[MOST_MODELS];
} table;

static clv_runtime *runtime;
static clv_device *card;

static void read_table(table *out) {
    char line[512];
    FILE *file = fopen(CLV_TEST_SOURCE_DIR "/tests/golden/cards/h200-times.tsv", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        measured row = {.node = NULL};
        assert_int_equal(sscanf(line, "%63[^\t]\t%63[^\t]\t%63[^\t]\t%63[^\t]\t%lf", row.model, row.layer,
                                row.op, row.variant, &row.ms),
                         5);
        if (!strcmp(row.op, "step")) {
            assert_true(out->n_models < MOST_MODELS);
            memcpy(out->models[out->n_models], row.model, NAME);
            out->batches[out->n_models] = atoi(row.layer);
            out->steps[out->n_models++] = row.ms;
        } else {
            assert_true(out->n < MOST_NODES);
            out->items[out->n++] = row;
        }
    }
    fclose(file);
}

static const clv__op_io *ranked_as(const clv__plan_node *at) {
    return at->node->io.epilogue ? &at->fused->base->io : &at->node->io;
}

static bool may_have(const clv__plan_node *at, const clv__variant *v) {
    return clv__variant_supports(v, &card->info, &at->node->io) && v->roundoff == 0 && v->operands == 0;
}

/** A rank says how variants of a use stand to each other; this, in a unit that all uses share. */
static double cost_of(const clv__plan_node *at, double flops, const clv__variant *v) {
    const clv__op_io *io = ranked_as(at);
    const double results = (double)clv__numel(&io->out[0]);
    return clv__variant_rank(v, &card->info, io) /
           clv__lanes_rank(&card->info, 1, results, flops / 2 / results);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** The median of measured / ranked; of few, of all tiles of the op. Winograd's launches are alike in all ops: one that the table does not have
 *  is as its others. 0: nothing is known. */
static double usual(const table *all, const char *op, const char *variant) {
    double of_kind[MOST_NODES], of_tiles[MOST_NODES];
    int n = 0, n_tiles = 0;
    for (int i = 0; i < all->n; i++) {
        const measured *row = &all->items[i];
        if (strcmp(row->op, op) != 0 && strcmp(variant, "winograd_lanes") != 0) continue;
        if (!strcmp(row->variant, variant)) of_kind[n++] = row->ratio;
        if (!strncmp(row->variant, "gemm", 4)) of_tiles[n_tiles++] = row->ratio;
    }
    qsort(of_kind, (size_t)n, sizeof *of_kind, by_size);
    qsort(of_tiles, (size_t)n_tiles, sizeof *of_tiles, by_size);
    if (n >= MANY) return of_kind[n / 2];
    return n_tiles && (!strncmp(variant, "gemm", 4) || !strcmp(variant, "small")) ? of_tiles[n_tiles / 2] : 0;
}

/** Today's nodes, and how their times stand to ranks of the variants that were measured. */
static void look_up(table *all, int model) {
    const clv_train_config config = {.model = clv_model_find(all->models[model]),
                                     .device = card,
                                     .batch = all->batches[model],
                                     .optimizer = {.kind = CLV_SGD, .momentum = 0.9f}};
    clv_graph *graph = NULL;
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, config.batch, &graph), CLV_OK, runtime);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = card});
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv_plan_node node = clv_plan_node_get(plan, (int)i);
        const clv__plan_node *at = &plan->nodes[i];
        for (int k = 0; k < all->n && at->variant; k++) {
            measured *row = &all->items[k];
            if (row->node || strcmp(row->model, all->models[model]) != 0 ||
                strcmp(row->layer, node.layer) != 0 || strcmp(row->op, node.op) != 0)
                continue;
            row->node = at;
            for (const clv__variant *v = at->node->io.op->variants; v->name; v++)
                if (!strcmp(v->name, row->variant)) row->ratio = row->ms / cost_of(at, node.flops, v);
            break;
        }
    }
}

/** What today's choices lose of a step. Graphs and plans live until the runtime goes. */
static double lost_of(const table *all, int model) {
    double lost = 0;
    for (int i = 0; i < all->n; i++) {
        const measured *row = &all->items[i];
        if (strcmp(row->model, all->models[model]) != 0) continue;
        double best = INFINITY, chosen = 0, then = 0; // by ranks, put right by the usual ratio
        for (const clv__variant *v = row->node->node->io.op->variants; v->name; v++) {
            const double ratio = usual(all, row->op, v->name);
            if (!may_have(row->node, v) || ratio == 0) continue;
            const double ms = ratio * clv__variant_rank(v, &card->info, ranked_as(row->node));
            if (ms < best) best = ms;
            if (v == row->node->variant) chosen = ms;
            if (!strcmp(v->name, row->variant)) then = ms;
        }
        if (then > 0 && chosen > 0)
            lost += (chosen - best) * row->ms / then; // as slow as it was beside its kind
    }
    return lost;
}

TEST(choices_lose_little) {
    static table all;
    read_table(&all);
    for (int m = 0; m < all.n_models; m++) look_up(&all, m);
    for (int i = 0; i < all.n; i++)
        if (!all.items[i].node || all.items[i].ratio == 0)
            fail_msg("%s %s %s %s: there is no such node, or variant", all.items[i].model, all.items[i].layer,
                     all.items[i].op, all.items[i].variant);
    for (int m = 0; m < all.n_models; m++) {
        const double lost = lost_of(&all, m) / all.steps[m];
        print_message("%s: choices lose %.1f %% of a step\n", all.models[m], 100 * lost);
        if (lost > most_lost) fail_msg("more than %g %%", 100 * most_lost);
    }
}

int main(void) {
    runtime = clv__test_runtime(
        &(clv_runtime_config){.no_opencl = true, .null_devices = true, .null_cards = true, .tuning = "none"});
    if (clv_device_find(runtime, "null:h200", &card) != CLV_OK) return 1;
    return clv__tests_run(NULL, NULL);
}
