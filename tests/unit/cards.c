// SPDX-License-Identifier: Apache-2.0
// Devices that are not here: what four of them get, of every model, in training and inference: variants and launches, held against the
// tables in tests/golden/cards/. So a change in what GPUs get is seen without one. CLV_UPDATE=1 writes the tables
// again, after which `git diff` shows the change. And: plans on all of them, how many launches a step has, and what `plain` kernels do.
#include <stdlib.h>

#include "base/text.h"
#include "cleave/nn.h"
#include "cleave/train.h"
#include "harness/harness.h"
#include "ops/convolution/conv2d.h"
#include "plan/plan.h"

TEST_RUNTIME_OF(&(clv_runtime_config){
    .no_opencl = true, .null_devices = true, .null_cards = true, .tuning = "none"})

enum { BATCH = 8, MOST_ROWS = 256 };

static const char *const all_cards[] = {"h200",    "rx-6700-xt",   "rx-580",     "arc-a770",
                                        "iris-xe", "uhd-620",      "adreno-740", "mali-g610",
                                        "gc7000l", "videocore-iv", "ti-c66x"};
static const char *const tables[] = {"rx-580", "h200", "iris-xe", "mali-g610"};

static clv_device *find(const char *name) {
    return clv__test_device(runtime, name);
}

static clv_device *card(const char *name) {
    char spec[64];
    snprintf(spec, sizeof spec, "null:%s", name);
    return find(spec);
}

static clv_status make_plan(const clv_model *model, bool train, clv_device *device, clv_graph **graph,
                            clv_plan **plan) {
    const clv_train_config config = {
        .model = model, .device = device, .batch = BATCH, .optimizer = {.kind = CLV_SGD, .momentum = 0.9f}};
    *plan = NULL;
    clv_status status =
        clv_pass_graph(runtime, &config, train ? CLV_PASS_TRAIN : CLV_PASS_PREDICT, BATCH, graph);
    return status == CLV_OK
               ? clv_plan_create(*graph, &(clv_plan_config){.device = device, .own_session = !train}, plan)
               : status;
}

// ---- tables -------------------------------------------------------------------------------------------------------

/** Nodes that get the same. */
typedef struct row {
    char *text;
    int nodes;
    double work_items;
} row;

typedef struct rows {
    row items[MOST_ROWS];
    int n;
} rows;

/** `conv2d_plain/64`: an entry point and its group. */
static void add_launch(clv__text *text, const clv__launch *launch, double *work_items) {
    static const char *const others[] = {[CLV__LAUNCH_COPY] = "copy",
                                         [CLV__LAUNCH_FILL] = "fill",
                                         [CLV__LAUNCH_GEMM] = "library",
                                         [CLV__LAUNCH_REFERENCE] = "reference"};
    if (launch->kind != CLV__LAUNCH_KERNEL) {
        clv__text_add(text, " %s", others[launch->kind]);
        return;
    }
    double items = 1;
    clv__text_add(text, " %s", launch->entry);
    for (int d = 0; d < launch->grid.dims; d++) {
        clv__text_add(text, "%s%zu", d ? "x" : "/", launch->grid.local[d]);
        items *= (double)launch->grid.global[d];
    }
    *work_items += items;
}

static void count_row(rows *all, const char *text, double work_items) {
    int i = 0;
    while (i < all->n && strcmp(all->items[i].text, text) != 0) i++;
    if (i == all->n) {
        assert_true(all->n < MOST_ROWS);
        all->items[all->n++] = (row){.text = strdup(text)};
        assert_non_null(all->items[i].text);
    }
    all->items[i].nodes++;
    all->items[i].work_items += work_items;
}

static int by_text(const void *a, const void *b) {
    return strcmp(((const row *)a)->text, ((const row *)b)->text);
}

static void add_plan(clv__text *out, const clv_plan *plan) {
    rows all = {.n = 0};
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv_plan_node node = clv_plan_node_get(plan, (int)i);
        const clv__launches *launches = &plan->nodes[i].launches;
        clv__text text = {0};
        double work_items = 0;
        if (!node.launches) continue; // views
        clv__text_add(&text, "%s %s%s%s %s:", node.phase, node.op, *node.also ? "+" : "", node.also,
                      node.variant);
        for (size_t k = 0; k < launches->n; k++) add_launch(&text, &launches->items[k], &work_items);
        count_row(&all, clv__text_get(&text), work_items);
        clv__text_reset(&text);
    }
    qsort(all.items, (size_t)all.n, sizeof *all.items, by_text);
    for (int i = 0; i < all.n; i++) {
        clv__text_add(out, "  %d x %s; %.0f items\n", all.items[i].nodes, all.items[i].text,
                      all.items[i].work_items);
        free(all.items[i].text);
    }
}

/** Everything that a card gets. */
static void write_table(clv__text *out, const char *name) {
    clv_device *device = card(name);
    clv__text_add(
        out, "# What %s gets: nodes alike x phase op variant: kernels/groups; work-items in all. Batch %d.\n",
        name, BATCH);
    static const char *const models[] = {
        "linear",      "mlp",      "cnn",      "alexnet",      "vgg11",
        "vgg16",       "resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0",
        "densenet121", "vit_b_16", "gpt"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (int train = 0; train < 2; train++) {
            clv_graph *graph = NULL;
            clv_plan *plan;
            assert_status(make_plan(clv_model_find(models[m]), train, device, &graph, &plan), CLV_OK,
                          runtime);
            clv__text_add(out, "%s, %s\n", models[m], train ? "training" : "inference");
            add_plan(out, plan);
            clv_plan_destroy(plan);
            clv_graph_destroy(graph);
        }
    }
    assert_false(out->failed);
}

static char *read_all(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return strdup("");
    clv__text text = {0};
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof block - 1, file)) > 0;) {
        block[n] = 0;
        clv__text_add(&text, "%s", block);
    }
    fclose(file);
    char *copy = strdup(clv__text_get(&text));
    clv__text_reset(&text);
    return copy;
}

/** The first line that differs, for the reader; the number of lines that do. */
static int tell_difference(const char *name, const char *want, const char *got) {
    int different = 0;
    while (*want || *got) {
        const size_t w = strcspn(want, "\n"), g = strcspn(got, "\n");
        if ((w != g || strncmp(want, got, w) != 0) && !different++)
            print_error("%s: the table has\n%.*s\nand it gets\n%.*s\n", name, (int)w, want, (int)g, got);
        want += w + (want[w] == '\n');
        got += g + (got[g] == '\n');
    }
    return different;
}

TEST(cards_get_what_the_tables_say) {
    int different = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char path[4096];
        clv__text text = {0};
        snprintf(path, sizeof path, "%s/tests/golden/cards/%s.txt", CLV_TEST_SOURCE_DIR, tables[i]);
        write_table(&text, tables[i]);
        if (getenv("CLV_UPDATE")) {
            FILE *file = fopen(path, "wb");
            assert_non_null(file);
            assert_int_equal(fputs(clv__text_get(&text), file) >= 0 && fclose(file) == 0, 1);
        }
        char *want = read_all(path);
        different += tell_difference(tables[i], want, clv__text_get(&text));
        free(want);
        clv__text_reset(&text);
    }
    if (different)
        fail_msg("what cards get differs from %s/tests/golden/cards; if that is meant: CLV_UPDATE=1",
                 CLV_TEST_SOURCE_DIR);
}

// ---- plans ----------------------------------------------------------------------------------------------------------

/** A launch takes a device's time whatever it does: some microseconds. A batch norm in slabs has two, and a weights' gradient by Winograd four
 *  or five, of which ranks know that. */
TEST(a_training_step_has_few_launches) {
    enum { FULL_SIZE = 8, MOST = 480 };
    for (int i = 0; i < FULL_SIZE; i++) {
        clv_graph *graph = NULL;
        clv_plan *plan;
        int launches = 0;
        assert_status(make_plan(clv_model_find("resnet50"), true, card(all_cards[i]), &graph, &plan), CLV_OK,
                      runtime);
        for (int n = 0; n < clv_plan_info_get(plan).n_nodes; n++)
            launches += clv_plan_node_get(plan, n).launches;
        if (launches > MOST) fail_msg("%s: %d launches, more than %d", all_cards[i], launches, MOST);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
}

/** Which part of a model's work, and of the bytes that it moves, kernels do that know nothing of the device. */
static int look_for_plain(const char *card_name, const clv_model *model, bool train) {
    clv_graph *graph = NULL;
    clv_plan *plan;
    double flops[2] = {0}, bytes[2] = {0}; // of all, of `plain`
    if (make_plan(model, train, card(card_name), &graph, &plan) != CLV_OK)
        fail_msg("%s", clv_runtime_error(runtime));
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        const clv_plan_node node = clv_plan_node_get(plan, i);
        const bool plain = !strcmp(node.variant, "plain");
        if (!*node.chosen) continue;
        flops[0] += node.flops, flops[1] += plain ? node.flops : 0;
        bytes[0] += node.traffic, bytes[1] += plain ? node.traffic : 0;
    }
    // a card without memory for the model has the largest tensors in pieces, which are put together by kernels of `plain`
    const bool in_pieces =
        clv_plans_memory(&plan, 1, NULL).predicted_peak_bytes > card(card_name)->info.memory_bytes;
    const bool too_much = !in_pieces && (flops[1] > 0.01 * flops[0] || bytes[1] > 0.01 * bytes[0]);
    if (too_much)
        print_error("%s, %s of %s: kernels of `plain` do %.1f %% of the FLOPs, %.1f %% of the bytes\n",
                    card_name, train ? "training" : "inference", model->name, 100 * flops[1] / flops[0],
                    100 * bytes[1] / bytes[0]);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    return too_much;
}

TEST(next_to_nothing_is_plain) {
    enum { WITH_LANES = 9 };
    int plain = 0;
    for (int i = 0; i < WITH_LANES; i++)
        for (int m = 0; clv_model_get(m); m++)
            for (int train = 0; train < 2; train++)
                plain += look_for_plain(all_cards[i], clv_model_get(m), train);
    // Of threads one has 4 KiB of local memory: there depthwise convolutions, and convolutions cut into pieces of few channels, stay
    // plain. No model that has them fits into its 16 MiB.
    static const char *const dense[] = {"linear", "mlp", "cnn", "resnet18", "gpt"};
    for (size_t i = WITH_LANES; i < sizeof all_cards / sizeof *all_cards; i++)
        for (size_t m = 0; m < sizeof dense / sizeof *dense; m++)
            for (int train = 0; train < 2; train++)
                plain += look_for_plain(all_cards[i], clv_model_find(dense[m]), train);
    assert_int_equal(plain, 0);
}

/** Of resnet50's products and convolutions on a card: how many there are, and of how many operands are rounded so far and no further. */
static void count_rounded(const char *name, clv_float32_products products, clv_precision precision,
                          double least, double most, int *all, int *rounded) {
    clv_runtime *other = clv__test_runtime(&(clv_runtime_config){.no_opencl = true,
                                                                 .null_devices = true,
                                                                 .null_cards = true,
                                                                 .tuning = "none",
                                                                 .float32_products = products});
    clv_graph *graph = NULL;
    clv_device *device = clv__test_device(other, name);
    const clv_train_config config = {.model = clv_model_find("resnet50"),
                                     .device = device,
                                     .batch = BATCH,
                                     .precision = precision,
                                     .optimizer = {.kind = CLV_SGD}};
    assert_status(clv_pass_graph(other, &config, CLV_PASS_TRAIN, BATCH, &graph), CLV_OK, other);
    clv_plan *plan = clv__test_plan(other, graph, &(clv_plan_config){.device = device});
    *all = *rounded = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__variant *v = plan->nodes[i].variant;
        if (!v || !strstr("conv2d_backward_input conv2d_backward_weight matmul linear",
                          plan->nodes[i].node->io.op->name))
            continue;
        ++*all;
        *rounded += v->operands >= least && v->operands <= most && v->operands > 0;
        if (v->operands > most) fail_msg("%s: '%s' rounds further than it may", name, v->name);
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_runtime_destroy(other);
}

/** Matrix units are used as far as float32_products, or halves, allow; an emulation never is. */
TEST(products_round_as_they_may) {
    static const struct {
        const char *card;
        clv_float32_products products;
        clv_precision precision;
        double least, most;
        bool used;
    } cases[] = {
        {"null:h200", CLV_FLOAT32_PRODUCTS_HIGHEST, CLV_PRECISION_F32, 0, 0, false},
        {"null:h200", CLV_FLOAT32_PRODUCTS_HIGH, CLV_PRECISION_F32, 0, 0x1p-11, true},
        {"null:rtx-3060", CLV_FLOAT32_PRODUCTS_MEDIUM, CLV_PRECISION_F32, 0x1p-8, 0x1p-8, true},
        {"null:h200", CLV_FLOAT32_PRODUCTS_HIGHEST, CLV_PRECISION_MIXED, 0x1p-11, 0x1p-11, true},
        {"null:h200", CLV_FLOAT32_PRODUCTS_HIGHEST, CLV_PRECISION_MIXED_BF16, 0x1p-8, 0x1p-8, true},
        {"null:rx-6700-xt", CLV_FLOAT32_PRODUCTS_MEDIUM, CLV_PRECISION_MIXED, 0, 1, false}, // has none
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int all, rounded;
        count_rounded(cases[i].card, cases[i].products, cases[i].precision, cases[i].least, cases[i].most,
                      &all, &rounded);
        assert_true(all > 100);
        if (cases[i].used ? rounded < all * 9 / 10 : rounded > 0)
            fail_msg("case %zu: of %d products and convolutions %d use matrix units", i, all, rounded);
    }
}

static void look_for_tiles_of_one_row(const clv_plan *plan, int least) {
    int found = 0;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv_plan_node node = clv_plan_node_get(plan, (int)i);
        if (strncmp(node.op, "conv2d", 6) != 0) continue;
        const clv__conv2d c = clv__conv2d_of(&plan->nodes[i].node->io);
        if (c.groups == 1 || c.in_channels > 1 || c.out_channels > 1) continue;
        found++;
        if (!strncmp(node.variant, "gemm", 4))
            fail_msg("%s of %lld channels of %lld x %lld goes through %s", node.op, (long long)c.groups,
                     (long long)c.in[0], (long long)c.in[1], node.variant);
    }
    assert_true(found >= least);
}

/** Where each channel is by itself a tile has one row in use. */
TEST(depthwise_convolutions_have_no_tiles) {
    static const struct {
        int64_t n, c, side, k;
        int stride;
    } cases[] = {
        {64, 96, 112, 5, 2}, {64, 240, 28, 5, 1}, {2, 32, 640, 3, 1}, {1, 24, 1024, 5, 2}, {64, 32, 7, 7, 1}};
    clv_graph *graph;
    clv_plan *plan;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graph = clv__test_graph(runtime);
        const int64_t n = cases[i].n, c = cases[i].c, side = cases[i].side, k = cases[i].k;
        clv_tensor *x = clv_parameter(graph, "x", CLV_SHAPE(n, c, side, side), (clv_init){0});
        clv_tensor *w = clv_parameter(graph, "w", CLV_SHAPE(c, 1, k, k), (clv_init){0});
        clv_tensor *y = clv_conv2d(x, w, NULL,
                                   &(clv_conv2d_config){.stride = {cases[i].stride, cases[i].stride},
                                                        .padding = {(int)k / 2, (int)k / 2},
                                                        .groups = (int)c});
        clv_backward(clv_mean(clv_square(y), NULL, 0, false));
        for (int p = 0; p < 2; p++) clv_output(clv_gradient(clv_parameter_get(graph, p)), p ? "dw" : "dx");
        plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = card("h200")});
        look_for_tiles_of_one_row(plan, 3);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    assert_status(make_plan(clv_model_find("mobilenet_v2"), true, card("h200"), &graph, &plan), CLV_OK,
                  runtime);
    look_for_tiles_of_one_row(plan, 3 * 17);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

/** The i-th device if it is a card; else NULL. */
static clv_device *card_at(int i) {
    clv_device *device = clv_device_get(runtime, i);
    const clv_device_info *info = clv_device_info_get(device);
    return !strncmp(info->name, "null:", 5) && info->peak_bytes_per_second > 0 ? device : NULL;
}

TEST(every_card_plans_every_small_model) {
    static const char *const models[] = {"linear", "mlp", "cnn"};
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        for (size_t m = 0; card_at(i) && m < sizeof models / sizeof *models; m++) {
            clv_graph *graph = NULL;
            clv_plan *plan;
            clv_device *device = card_at(i);
            assert_status(make_plan(clv_model_find(models[m]), true, device, &graph, &plan), CLV_OK, runtime);
            assert_true(clv_plan_device_info_get(plan, device).least_seconds > 0);
            assert_true(clv_plan_device_info_get(plan, find("null:0")).least_seconds ==
                        0); // nothing is known of it
            clv_plan_destroy(plan);
            clv_graph_destroy(graph);
        }
    }
}

/** A faster card takes less, a larger one takes more: what the figures are for. */
TEST(least_times_follow_the_figures) {
    double seconds[2] = {0};
    static const char *const two[] = {"h200", "uhd-620"};
    for (int i = 0; i < 2; i++) {
        clv_graph *graph = NULL;
        clv_plan *plan;
        assert_status(make_plan(clv_model_find("resnet18"), true, card(two[i]), &graph, &plan), CLV_OK,
                      runtime);
        seconds[i] = clv_plan_device_info_get(plan, card(two[i])).least_seconds;
        double flops = 0, bytes = 0;
        for (int n = 0; n < clv_plan_info_get(plan).n_nodes; n++) {
            const clv_plan_node node = clv_plan_node_get(plan, n);
            flops += node.flops * (strncmp(node.variant, "winograd", 8) == 0 ? 0.25 : 1); // of F(4x4, 3x3)
            bytes += node.traffic;
        }
        const clv_device_info *info = clv_device_info_get(card(two[i]));
        assert_true(seconds[i] >= flops / info->peak_flops);
        assert_true(seconds[i] >= bytes / info->peak_bytes_per_second);
        assert_true(seconds[i] <= flops / info->peak_flops + bytes / info->peak_bytes_per_second);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    assert_true(seconds[0] * 20 < seconds[1]);
}

TEST(classes_are_of_their_traits) {
    int cards = 0;
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        if (!card_at(i)) continue;
        const clv_device_info *info = clv_device_info_get(card_at(i));
        const bool threads = !strcmp(info->name, "null:videocore-iv") || !strcmp(info->name, "null:ti-c66x");
        assert_int_equal(info->execution, threads ? CLV_EXECUTION_THREADS : CLV_EXECUTION_LANES);
        assert_true(info->max_alloc_bytes <= info->memory_bytes && info->max_alloc_bytes > 0);
        cards++;
    }
    assert_int_equal(clv_runtime_info_get(runtime).n_devices, 3 + cards);
    // Of each maker the oldest and the newest that people own.
    static const char *const owned[] = {"rtx-3060", "rtx-5090",    "rx-7600",     "rx-9070-xt",
                                        "arc-b580", "radeon-780m", "radeon-8060s"};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) assert_non_null(card(owned[i]));
}

TEST_MAIN(begin_runtime, end_runtime)
