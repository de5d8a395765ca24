// SPDX-License-Identifier: Apache-2.0
// Numbers in text, and letters in names, are the same in every locale: in sentences, defaults of ops, kernels, files. ctest runs
// this three times: as it is, where a comma is the decimal point, and where a small I is no i.
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/text.h"
#include "cleave/cleave.h"
#include "graph/graph.h"
#include "tuning/tuning.h"
#include "unit/world.h"

TEST(the_locale_is_the_one_asked_for) {
    const char *wanted = getenv("CLEAVE_TEST_LOCALE");
    assert_string_equal(localeconv()->decimal_point, wanted && *wanted ? "," : ".");
}

TEST(numbers_are_written_and_read_with_a_point) {
    char text[64], *end;
    assert_int_equal(clv__format(text, sizeof text, "%g %.3f %a %d", 0.5, 1234.5, 0.75, 7), 23);
    assert_string_equal(text, "0.5 1234.500 0x1.8p-1 7");
    assert_true(clv__number_read("1.5e3;", &end) == 1500 && *end == ';');
    assert_true(clv__number_read("0x1.8p-1", NULL) == 0.75);
    assert_true(clv__number_read("2,5", &end) == 2 && *end == ',');
    assert_true(clv__number_read("0.1", NULL) == 0.1); // correctly rounded
    assert_string_equal(clv__bytes_text(1536).text, "1.5 KiB");
    assert_string_equal(localeconv()->decimal_point, getenv("CLEAVE_TEST_LOCALE") ? "," : "."); // left alone
    clv__text grown = {0};
    clv__text_add(&grown, "%.2f", 0.25);
    assert_string_equal(clv__text_get(&grown), "0.25");
    clv__text_reset(&grown);
    json_t *value = json_real(0.1);
    char *written = json_dumps(value, JSON_ENCODE_ANY), *comma = strchr(written, ',');
    assert_null(comma); // jansson does the same by itself
    free(written);
    json_decref(value);
}

TEST(letters_are_those_of_ascii) {
    clv_device *device;
    assert_true(clv__text_holds("a GPU of INTEL", "intel"));
    assert_true(clv__same_letters("PIXEL", "pixel", 5) && !clv__same_letters("pi", "pixel", 5));
    assert_status(clv_device_find(runtime, "NULL:ILLINOIS", &device), CLV_E_NOT_FOUND, runtime);
    assert_holds(clv_runtime_error(runtime), "NULL:ILLINOIS");
    device = clv__test_device(runtime, "HOST");
}

TEST(sentences_have_a_point) {
    clv_graph *graph = new_graph();
    assert_null(clv_dropout(clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4)), 1.5f));
    assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "p is 1.5");
    clv_graph_destroy(graph);
}

// ---- on devices -----------------------------------------------------------------------------------------------------

enum { N = 8 };

/** y of one step. */
static void run_on(clv_device *device, clv_graph *graph, clv_tensor *x, const float *from, clv_tensor *y,
                   float *to, clv_profile *profile) {
    int64_t ticket;
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, NULL);
    clv_session_set_profile(session, profile);
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, x, from, N * sizeof *from), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, to, N * sizeof *to), CLV_OK, runtime);
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
}

/** Attributes that an epilogue writes into its kernel, and two that stand as words in the list of ops. */
TEST(attributes_and_their_defaults_arrive) {
    const float from[N] = {-4, -2, -1, 0, 1, 2, 3, 4};
    const float one = 1;
    int i = -1;
    for (clv_device *device; (device = clv__test_next_device(runtime, &i));) {
        float to[N];
        clv_graph *graph = new_graph();
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N, 1));
        clv_tensor *weight = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(1, 1), &one);
        clv_tensor *slope = clv_linear(x, weight, NULL);
        clv_tensor *y = clv_clamp(clv_op_call(graph, "leaky_relu", &slope, 1, NULL, 0), -0.03125f, 2.5f);
        clv_output(y, "y");
        run_on(device, graph, x, from, y, to, NULL);
        const float wanted[N] = {-0.03125f, -0.02f, -0.01f, 0, 1, 2, 2.5f, 2.5f};
        for (int k = 0; k < N; k++) assert_true(fabsf(to[k] - wanted[k]) < 1e-6f);
        clv_graph_destroy(graph);

        graph = new_graph();
        x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, N));
        y = clv_op_call(graph, "rms_norm", &x, 1, NULL, 0);
        clv_output(y, "y");
        run_on(device, graph, x, (const float[N]){0}, y, to, NULL);
        for (int k = 0; k < N; k++) assert_true(to[k] == 0); // 0 / sqrt(0 + eps): an eps of 0 gives NaN
        clv_graph_destroy(graph);
    }
}

// ---- files ----------------------------------------------------------------------------------------------------------

TEST(traces_are_json) {
    const float from[N] = {1};
    float to[N];
    char path[512], *folder = clv__test_folder();
    json_error_t fault;
    clv_profile *profile = clv__test_profile(runtime, &(clv_profile_config){.slices = 100});
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N)), *y = clv_exp(x);
    clv_output(y, "y");
    run_on(find("host"), graph, x, from, y, to, profile);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    assert_status(clv_profile_trace(profile, path), CLV_OK, runtime);
    json_t *trace = json_load_file(path, 0, &fault);
    if (!trace) fail_msg("line %d: %s", fault.line, fault.text);
    json_decref(trace);
    clv_profile_destroy(profile);
    clv_graph_destroy(graph);
    remove(path);
    assert_int_equal(rmdir(folder), 0);
    free(folder);
}

TEST(tuning_files_come_back) {
    clv_device *device = find("null");
    clv_graph *graph = new_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N));
    const clv__op *op = clv__node_io(clv_exp(x)->node)->op;
    clv__tuning tuning = {0}, back = {0};
    clv__text text = {0};
    clv__error error;
    clv__error_init(&error);
    assert_true(clv__tuning_put(
        &tuning, &(clv__tuned){.op = op, .key = "f32[8]", .variant = op->variants, .median_us = 12.25}));
    clv__tuning_write(device, &tuning, &text);
    assert_holds(clv__text_get(&text), " 12.25\n");
    assert_status(clv__tuning_parse(device, "a file", text.data, text.n, &error, &back), CLV_OK, runtime);
    assert_int_equal(back.n, 1);
    assert_true(back.rows[0].median_us == 12.25);
    clv__tuning_reset(&tuning);
    clv__tuning_reset(&back);
    clv__text_reset(&text);
    clv__error_destroy(&error);
    clv_graph_destroy(graph);
}

TEST_MAIN(setup, teardown)
