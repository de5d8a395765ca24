// SPDX-License-Identifier: Apache-2.0
// What the planner makes of every model: on null devices, in training and evaluation, with replicas, layers on two devices,
// micro-batches, budgets, tensors in pieces. Each plan is printed (plan/print.h), and a number made of the text is held against
// tests/golden/plans.tsv, so that a pass that is written in another way is seen to do the same. CLV_UPDATE=1 writes the table
// again; CLV_TRACES=FOLDER puts the texts there, one file a row, to be compared by `diff`.
#include <stdlib.h>

#include "base/text.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/train.h"
#include "plan/print.h"
#include "harness/harness.h"

TEST_RUNTIME_OF(&(clv_runtime_config){
    .no_opencl = true, .null_devices = true, .null_cards = true, .tuning = "none"})

enum { BATCH = 8 };

/** How a model is planned. */
typedef struct mode {
    const char *name;
    bool evaluates, threads, shared, mixed, no_fuse, alone, split, adam;
    int replicas, micro_batches;
    bool placed; // the first half of its layers on null:0, the others on null:1
    const char *recompute;
    double budget;   // of what it needs without
    bool small_only; // of large models it takes long
} mode;

static const mode modes[] = {
    {"training", .adam = true},
    {"evaluation", .evaluates = true, .alone = true},
    {"evaluation, not alone", .evaluates = true},
    {"training on threads", .threads = true},
    {"training, not fused", .no_fuse = true},
    {"training, mixed precision", .mixed = true},
    {"training, 3 micro-batches", .micro_batches = 3},
    {"training in pieces", .split = true},
    {"training, 2 replicas", .replicas = 2},
    {"training, 2 replicas that see one memory", .replicas = 2, .shared = true},
    {"training, 3 replicas, 2 of which see one memory", .replicas = 3, .shared = true},
    {"evaluation, 2 replicas", .replicas = 2, .evaluates = true, .shared = true},
    {"training, placed", .placed = true},
    {"training, placed, one memory, 4 micro-batches", .placed = true, .shared = true, .micro_batches = 4},
    {"training, placed, one memory", .placed = true, .shared = true},
    {"evaluation, placed, one memory", .placed = true, .shared = true, .evaluates = true},
    {"training, modules computed again", .recompute = "*"},
    {"training, budget", .recompute = "auto", .budget = 0.85, .small_only = true},
    {"training, placed, budget", .placed = true, .recompute = "auto", .budget = 0.9, .small_only = true},
};

static const char *const specs[] = {"null:0", "null:1", "null:rx-580"};

static clv_device *find(const char *name) {
    return clv__test_device(runtime, name);
}

/** The devices as they are at first. */
static clv_device_info infos[2];

static void make_devices(const mode *m) {
    for (int i = 0; i < 2; i++) {
        clv_device *device = find(specs[i]);
        device->info = infos[i];
        device->traits.host_memory = m->shared;
        if (m->shared) { // of one kind
            device->info.type = infos[0].type;
            device->info.execution = infos[0].execution;
            device->info.compute_units = infos[0].compute_units;
            device->info.driver = infos[0].driver;
        }
        if (m->threads) device->info.execution = CLV_EXECUTION_THREADS;
        if (m->split) device->info.max_alloc_bytes = 1 << 20;
        clv_device_set_budget(device, 0);
    }
}

static clv_status model_graph(const clv_model *model, const mode *m, clv_graph **out) {
    const clv_train_config config = {
        .model = model,
        .batch = BATCH,
        .optimizer = m->adam ? (clv_optimizer_config){.kind = CLV_ADAM}
                             : (clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f},
        .micro_batches = m->micro_batches,
        .precision = m->mixed ? CLV_PRECISION_MIXED : 0,
        .placement = {.replicas = m->replicas ? specs : NULL, .n_replicas = m->replicas},
    };
    return clv_pass_graph(runtime, &config, m->evaluates ? CLV_PASS_PREDICT : CLV_PASS_TRAIN, BATCH, out);
}

/** Of the layers with parameters, the first half on null:0, the others on null:1. */
static void place_halves(const clv_graph *graph, clv__text *out) {
    const char *last = "";
    int n = 0, k = 0;
    clv__text_add(out, "*=%s", specs[0]);
    for (int pass = 0; pass < 2; pass++, last = "") {
        for (size_t i = 0; i < graph->n_nodes; i++) {
            const clv__node *node = graph->nodes[i];
            bool has = false;
            for (int j = 0; j < node->io.n_in; j++) has |= node->in[j] && node->in[j]->trainable;
            if (!has || node->phase != CLV__FORWARD || !*node->layer || strcmp(node->layer, last) == 0)
                continue;
            last = node->layer;
            if (pass == 0)
                n++;
            else
                clv__text_add(out, ",%s=%s", last, specs[2 * k++ >= n]);
        }
    }
}

typedef struct table {
    clv__text text;
    int rows;
} table;

static void plan_it(const clv_model *model, const mode *m, table *out) {
    clv_graph *graph;
    clv_plan *plan = NULL;
    clv__text place = {0}, text = {0};
    make_devices(m);
    assert_status(model_graph(model, m, &graph), CLV_OK, runtime);
    if (m->placed) place_halves(graph, &place);
    clv_plan_config config = {.device = find("null:0"),
                              .place = m->placed ? clv__text_get(&place) : NULL,
                              .no_fuse = m->no_fuse,
                              .own_session = m->alone};
    for (int pass = m->budget > 0; pass >= 0; pass--) {
        config.recompute = pass ? NULL : m->recompute;
        plan = clv__test_plan(runtime, graph, &config);
        for (int i = 0; pass && i < clv_plan_info_get(plan).n_devices; i++) {
            clv_device *device = clv_plan_device_get(plan, i);
            const double peak = (double)clv_plans_memory(&plan, 1, device).predicted_peak_bytes;
            clv_device_set_budget(device, (uint64_t)(peak * m->budget));
        }
        if (pass) clv_plan_destroy(plan);
    }
    clv__plan_print(plan, &text);
    assert_false(text.failed);
    uint64_t hash = 0xcbf29ce484222325;
    int lines = 0;
    for (const char *at = clv__text_get(&text); *at; at++) {
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3; // FNV-1a
        lines += *at == '\n';
    }
    clv__text_add(&out->text, "%s\t%s\t%zu\t%zu\t%zu\t%d\t%016llx\n", model->name, m->name, plan->n_nodes,
                  plan->n_values, plan->n_transfers, lines, (unsigned long long)hash);
    const char *folder = getenv("CLV_TRACES");
    if (folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s, %s.txt", folder, model->name, m->name);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_true(fputs(clv__text_get(&text), file) >= 0 && fclose(file) == 0);
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv__text_reset(&text);
    clv__text_reset(&place);
}

static bool is_small(const char *name) {
    return strcmp(name, "mlp") == 0 || strcmp(name, "cnn") == 0 || strcmp(name, "resnet18") == 0;
}

/** A model as it is, and a large one of texts with few tokens: its logits alone would be thousands of pieces. */
static clv_model sized(const clv_model *model) {
    clv_model small = *model;
    if (model->dtype != CLV_DTYPE_I32 || model->build_all) return small;
    if (small.classes > 512) small.classes = 512;
    if (small.input[0] > 128) small.input[0] = small.target[0] = 128;
    return small;
}

TEST(test_plans_are_as_the_table_says) {
    table got = {0};
    char path[4096];
    for (int i = 0; i < 2; i++) infos[i] = find(specs[i])->info;
    clv__text_add(&got.text, "model\tmode\tnodes\tvalues\ttransfers\tlines\tnumber of its text\n");
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        for (int i = 0; clv_model_get(i); i++) {
            const clv_model model = sized(clv_model_get(i));
            if (!modes[k].small_only || is_small(model.name)) plan_it(&model, &modes[k], &got);
        }
    }
    snprintf(path, sizeof path, "%s/tests/golden/plans.tsv", CLV_TEST_SOURCE_DIR);
    if (getenv("CLV_UPDATE")) {
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_true(fputs(clv__text_get(&got.text), file) >= 0 && fclose(file) == 0);
    }
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char want[512];
    int different = 0;
    for (const char *at = clv__text_get(&got.text); *at; at += strcspn(at, "\n") + 1) {
        const size_t n = strcspn(at, "\n") + 1;
        if (!fgets(want, sizeof want, file)) *want = 0;
        if ((strlen(want) != n || memcmp(want, at, n) != 0) && different++ < 8)
            print_error("the table has\n%sand the plan is\n%.*s", want, (int)n, at);
    }
    const bool more = fgets(want, sizeof want, file) != NULL;
    fclose(file);
    clv__text_reset(&got.text);
    if (different || more)
        fail_msg("%d plans differ from %s; CLV_TRACES=FOLDER writes them down, CLV_UPDATE=1 the table",
                 different, path);
}

TEST_MAIN(begin_runtime, end_runtime)
