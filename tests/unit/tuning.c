// SPDX-License-Identifier: Apache-2.0
// Measured choices: keys, the file's text, what is told about files that cannot be used, and who wins in a plan.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/harness.h"

#include "cleave/ops.h"
#include "graph/quarantine.h"
#include "plan/plan.h"
#include "tuning/tuning.h"

static const char key_of_product[] = "f32[40,30];f32[50,30];(0,1)";

typedef struct world {
    clv_runtime *runtime;
    clv_device *device; // pretends to be a CPU
    char *folder;
    char log[4096];
    int warnings;
} world;

static void on_log(void *user, clv_log_level level, const char *sentence) {
    world *w = user;
    if (level != CLV_LOG_WARNING) return;
    w->warnings++;
    snprintf(w->log, sizeof w->log, "%s", sentence);
}

/** A runtime whose tuning comes from there. */
static void start(world *w, const char *tuning) {
    clv_runtime_destroy(w->runtime);
    w->warnings = 0;
    w->log[0] = 0;
    w->runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true,
                                                         .null_devices = true,
                                                         .cache_dir = w->folder,
                                                         .tuning = tuning,
                                                         .log = on_log,
                                                         .log_user = w});
    w->device = clv__test_device(w->runtime, "null:1");
}

FIXTURE(setup) {
    world *w = *state = calloc(1, sizeof *w);
    w->folder = clv__test_folder();
    start(w, "");
}

FIXTURE(teardown) {
    world *w = *state;
    clv_runtime_destroy(w->runtime);
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    assert_int_equal(system(command), 0);
    free(w->folder);
    free(w);
}

/** The head of a file for the device, and the line after it. */
static char *file_text(const clv_device *device, const char *rows) {
    clv__text text = {0};
    clv__tuning_write(device, &(clv__tuning){0}, &text);
    text.n -= strlen("end\n");
    text.data[text.n] = 0;
    clv__text_add(&text, "%s", rows);
    return text.data;
}

static void write_file(const world *w, const char *path, const char *rows) {
    char *text = file_text(w->device, rows);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    free(text);
}

/** A file in the place where the device's is looked for. */
static void write_own(const world *w, const char *rows) {
    char *path = clv__tuning_path(w->device, w->folder);
    write_file(w, path, rows);
    free(path);
}

static clv_graph *product(clv_runtime *runtime) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *a = clv_input(graph, "a", CLV_DTYPE_F32, CLV_SHAPE(40, 30));
    clv_tensor *b = clv_input(graph, "b", CLV_DTYPE_F32, CLV_SHAPE(50, 30));
    clv_output(clv_matmul_t(a, false, b, true), "y");
    return graph;
}

/** Plan the product on the device: this variant, for this reason. */
static void expect_choice(const world *w, clv_device *device, const char *pins, const char *variant,
                          const char *chosen) {
    clv_graph *graph = product(w->runtime);
    clv_plan_config config = {.device = device, .variants = pins};
    clv_plan *plan = clv__test_plan(w->runtime, graph, &config);
    clv_plan_node node = clv_plan_node_get(plan, 0);
    assert_string_equal(node.op, "matmul");
    assert_string_equal(node.variant, variant);
    assert_string_equal(node.chosen, chosen);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
}

// ---- keys and text ----------------------------------------------------------------------------------------------------

TEST_WITHIN(keys_hold_shapes_attributes_and_gaps, setup, teardown) {
    world *w = *state;
    char key[CLV__TUNING_KEY_BYTES];
    clv_graph *graph = product(w->runtime);
    clv__tuning_key(clv__node_io(graph->nodes[0]), key);
    assert_string_equal(key, key_of_product);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 8, 9));
    clv_tensor *weight = clv_input(graph, "weight", CLV_DTYPE_F32, CLV_SHAPE(4, 3, 3, 3));
    clv_tensor *y = clv_conv2d(x, weight, NULL, &(clv_conv2d_config){.stride = {2, 1}, .padding = {0, 1}});
    clv__tuning_key(clv__node_io(y->node), key);
    assert_string_equal(key, "f32[2,3,8,9];f32[4,3,3,3];-;(2,1,0,0,1,0,1,1,0,1)");
    clv__tuning_key(clv__node_io(clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(2), 0)->node), key);
    assert_int_equal(key[0], '('); // no inputs
    clv_graph_destroy(graph);
}

static const clv__variant *variant_of(const clv__op *op, const char *name) {
    const clv__variant *v = op->variants;
    while (strcmp(v->name, name) != 0) v++;
    return v;
}

TEST_WITHIN(what_is_written_is_read, setup, teardown) {
    world *w = *state;
    const clv__op *matmul = clv__op_find("matmul"), *conv2d = clv__op_find("conv2d");
    clv__tuning tuning = {0}, again;
    clv__tuned rows[] = {
        {matmul, "f32[2,2];f32[2,2];(0,0)", variant_of(matmul, "tile"), 12.5, "plain 100.00\nlocal # 3"},
        {matmul, NULL, variant_of(matmul, "gemm"), 0, "wrong"},
        {conv2d, "a", variant_of(conv2d, "tile"), 1e9 / 3, NULL},
        {matmul, "f32[1,1];f32[1,1];(0,0)", variant_of(matmul, "plain"), 1e-7, NULL},
        {matmul, "f32[2,2];f32[2,2];(0,0)", variant_of(matmul, "plain"), 7, NULL}, // replaces the first
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_true(clv__tuning_put(&tuning, &rows[i]));
    clv__text text = {0}, second = {0};
    clv__tuning_write(w->device, &tuning, &text);
    assert_holds(text.data, "device null, like a CPU\nplatform null\n");
    assert_holds(text.data, "\nconv2d a tile 333333333.33\navoid matmul gemm # wrong\n"
                            "matmul f32[1,1];f32[1,1];(0,0) plain 0.01\n"
                            "matmul f32[2,2];f32[2,2];(0,0) plain 7.00\nend\n");
    clv__error error;
    clv__error_init(&error);
    assert_int_equal(clv__tuning_parse(w->device, "x", text.data, text.n, &error, &again), CLV_OK);
    assert_int_equal(again.n, 4);
    assert_int_equal(again.passed_over, 0);
    clv__tuning_write(w->device, &again, &second);
    assert_string_equal(text.data, second.data);
    assert_ptr_equal(clv__tuning_find(&again, matmul, "f32[2,2];f32[2,2];(0,0)")->variant,
                     variant_of(matmul, "plain"));
    assert_null(clv__tuning_find(&again, matmul, "f32[2,2];f32[2,3];(0,0)"));
    assert_null(clv__tuning_find(&again, conv2d, "f32[2,2];f32[2,2];(0,0)"));
    clv__tuning_reset(&tuning);
    clv__tuning_reset(&again);
    clv__text_reset(&text);
    clv__text_reset(&second);
    clv__error_destroy(&error);
}

/** Put `to` where `from` stands, once. */
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

TEST_WITHIN(damaged_files_are_refused_with_a_sentence, setup, teardown) {
    world *w = *state;
    static const struct {
        const char *from, *to, *sentence; // "" appends
        clv_status status;
    } cases[] = {
        {"cleave-tuning 1", "cleave-tuning 2",
         "'x' is no tuning file: it does not begin with 'cleave-tuning 1'", CLV_E_FORMAT},
        {"platform null\n", "", "'x' is damaged: line 4 should tell the platform", CLV_E_FORMAT},
        {"device null, like a CPU", "device null, like a GPU",
         "'x' is of another device: 'null, like a GPU', and here it is 'null, like a CPU'",
         CLV_E_UNSUPPORTED},
        {"platform null", "platform void", "'x' is of another platform: 'void', and here it is 'null'",
         CLV_E_UNSUPPORTED},
        {"compute-units 8", "compute-units 4",
         "'x' is of another number of compute units: '4', and here it is '8'", CLV_E_UNSUPPORTED},
        {"kernels ", "kernels 0", "'x' was measured with other kernels: '0", CLV_E_UNSUPPORTED},
        {"end\n", "end", "'x' is damaged: it ends after line 10, without 'end'", CLV_E_FORMAT},
        {"end\n", "", "'x' is damaged: it ends after line 10, without 'end'", CLV_E_FORMAT},
        {"end\n", "end\n\n", "'x' is damaged: it goes on after 'end' in line 11", CLV_E_FORMAT},
        {"plain 9", "plain", "'x' is damaged: line 10 is neither 'op key variant microseconds' nor",
         CLV_E_FORMAT},
        {"plain 9", "plain 9 9", "line 10 is neither", CLV_E_FORMAT},
        {"plain 9", "plain -9", "line 10 is neither", CLV_E_FORMAT},
        {"plain 9", "plain 0", "line 10 is neither", CLV_E_FORMAT},
        {"plain 9", "plain nan", "line 10 is neither", CLV_E_FORMAT},
        {"plain 9", "plain 0x9", "line 10 is neither", CLV_E_FORMAT},
        {"plain 9", "plain 1e999", "line 10 is neither", CLV_E_FORMAT},
        {"matmul k plain 9", "avoid matmul", "line 10 is neither", CLV_E_FORMAT},
        {"matmul k", "mat\tmul k", "'x' is damaged: line 10 is not a line of text", CLV_E_FORMAT},
        {"end\n", "matmul k tile 3\nend\n", "'x' is damaged: line 11 repeats another line", CLV_E_FORMAT},
    };
    char *good = file_text(w->device, "matmul k plain 9\nend\n");
    clv__error error;
    clv__tuning tuning;
    clv__error_init(&error);
    assert_int_equal(clv__tuning_parse(w->device, "x", good, strlen(good), &error, &tuning), CLV_OK);
    clv__tuning_reset(&tuning);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *bad = replaced(good, cases[i].from, cases[i].to);
        clv_status status = clv__tuning_parse(w->device, "x", bad, strlen(bad), &error, &tuning);
        if (status != cases[i].status) print_error("'%s' for '%s'\n", cases[i].to, cases[i].from);
        assert_int_equal(status, cases[i].status);
        assert_holds(error.text, cases[i].sentence);
        assert_int_equal(tuning.n, 0);
        free(bad);
    }
    for (size_t n = 0; n < strlen(good); n++) // cut anywhere
        assert_int_equal(clv__tuning_parse(w->device, "x", good, n, &error, &tuning), CLV_E_FORMAT);
    clv__error_destroy(&error);
    free(good);
}

// ---- choosing ---------------------------------------------------------------------------------------------------------

TEST_WITHIN(pins_go_before_times_and_times_before_ranks, setup, teardown) {
    world *w = *state;
    char row[128];
    start(w, "");
    expect_choice(w, w->device, NULL, "tile", "ranked");
    snprintf(row, sizeof row, "matmul %s gemm 3 # by hand\nend\n", key_of_product);
    write_own(w, row);
    expect_choice(w, w->device, NULL, "tile", "ranked"); // looked for once
    start(w, "");
    for (int twice = 0; twice < 2; twice++) {
        expect_choice(w, w->device, NULL, "gemm", "tuned");
        expect_choice(w, w->device, "matmul=plain", "plain", "pinned");
        expect_choice(w, w->device, "*=tile", "tile", "pinned");
        expect_choice(w, w->device, "conv2d=plain", "gemm", "tuned");
        start(w, w->folder);
    }
    clv_device *other = clv__test_device(w->runtime, "null:0");
    expect_choice(w, other, NULL, "small", "ranked"); // has a file name of its own
    start(w, "none");
    expect_choice(w, w->device, NULL, "tile", "ranked");
    setenv("CLEAVE_TUNING", "none", 1);
    start(w, NULL);
    expect_choice(w, w->device, NULL, "tile", "ranked");
    setenv("CLEAVE_TUNING", "", 1);
    start(w, NULL);
    expect_choice(w, w->device, NULL, "gemm", "tuned");
    assert_int_equal(w->warnings, 0);
}

TEST_WITHIN(quarantine_goes_before_times, setup, teardown) {
    world *w = *state;
    char row[128];
    snprintf(row, sizeof row, "matmul %s gemm 3\nend\n", key_of_product);
    write_own(w, row);
    start(w, "");
    const clv__op *matmul = clv__op_find("matmul");
    assert_status(clv__quarantine_add(w->device, matmul, clv__variant_find(matmul, "gemm"), "a test"), CLV_OK,
                  w->runtime);
    expect_choice(w, w->device, NULL, "tile", "ranked");
    // the file puts variants there too, and says why
    write_own(w, "avoid matmul tile # element 3 was wrong\nend\n");
    start(w, "");
    expect_choice(w, w->device, NULL, "plain", "ranked");
    assert_int_equal(w->warnings, 1);
    assert_string_equal(w->log,
                        "null:1: variant 'tile' of matmul is not used on this device any more (`cleave "
                        "devices` tells how to use it again): element 3 was wrong");
}

TEST_WITHIN(a_choice_that_does_not_fit_is_passed_over, setup, teardown) {
    world *w = *state;
    char row[128];
    snprintf(row, sizeof row, "matmul %s library 3\nend\n",
             key_of_product); // the null devices have no library
    write_own(w, row);
    start(w, "");
    expect_choice(w, w->device, NULL, "tile", "ranked");
}

TEST_WITHIN(unusable_files_are_told_once, setup, teardown) {
    world *w = *state;
    char path[1200], row[256];
    snprintf(path, sizeof path, "%s/given.tuning", w->folder);
    // unknown names: one warning in all, and the other lines count
    snprintf(row, sizeof row, "matmul k tilde 3\nmatmul %s gemm 3\nmatmall k tile 3\nend\n", key_of_product);
    write_file(w, path, row);
    start(w, path);
    expect_choice(w, w->device, NULL, "gemm", "tuned");
    expect_choice(w, w->device, NULL, "gemm", "tuned");
    assert_int_equal(w->warnings, 1);
    assert_holds(w->log, "given.tuning': line 10: matmul has no variant 'tilde'; lines skipped: 2");
    write_file(w, path, "matmall k tile 3\nend\n");
    start(w, path);
    expect_choice(w, w->device, NULL, "tile", "ranked");
    assert_holds(w->log, "line 10: there is no op 'matmall'; lines skipped: 1");
    // of another device: the file suits null:1
    start(w, path);
    clv_device *other = clv__test_device(w->runtime, "null:0");
    expect_choice(w, other, NULL, "small", "ranked");
    expect_choice(w, w->device, NULL, "tile", "ranked");
    assert_int_equal(w->warnings, 1); // the second file's fault is not told any more
    assert_holds(w->log,
                 "is of another device: 'null, like a CPU', and here it is 'null, like a GPU'; variants are "
                 "chosen as without it ('cleave tune' makes one)");
    // damaged, where the device's own is looked for
    write_own(w, "matmul k tile\nend\n");
    start(w, "");
    expect_choice(w, w->device, NULL, "tile", "ranked");
    expect_choice(w, w->device, NULL, "tile", "ranked");
    assert_int_equal(w->warnings, 1);
    assert_holds(w->log, ".tuning' is damaged: line 10");
    // named, and not there; no file at all
    assert_int_equal(unlink(path), 0);
    start(w, path);
    expect_choice(w, w->device, NULL, "tile", "ranked");
    assert_int_equal(w->warnings, 1);
    assert_holds(w->log, "given.tuning' cannot be read: No such file or directory");
    start(w, "/dev/null");
    expect_choice(w, w->device, NULL, "tile", "ranked");
    assert_holds(w->log, "'/dev/null' is no tuning file: it is no file, or too large");
}

TEST_MAIN(NULL, NULL)
