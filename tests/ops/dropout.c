// SPDX-License-Identifier: Apache-2.0
// What samples cannot say of dropout and of the ops of random.c: that its random numbers are Philox's, on the host and in kernels, that masks of
// different steps, seeds and nodes differ, how many elements it drops, when it does nothing, and how what is drawn is distributed.
#include <math.h>

#include "base/random.h"
#include "check/interpret.h"
#include "cleave/cleave.h"
#include "graph/graph.h"
#include "harness/harness.h"

/** Random123's known answers: examples/kat_vectors, philox4x32 10. */
TEST(philox_known_answers) {
    static const struct {
        uint32_t counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const uint32_t *c = known[i].counter;
        clv__philox words = clv__philox_at(known[i].key[0], known[i].key[1], c[0], c[1], c[2], c[3]);
        assert_memory_equal(words.word, known[i].words, sizeof words.word);
    }
}

enum { N = 10007 };

/** Two dropouts of ones in a training graph, by a planned run on `device`. */
static void draw(clv_runtime *runtime, clv_device *device, uint64_t seed, int64_t step, float *first,
                 float *second) {
    int64_t ticket;
    float *ones = malloc(N * sizeof *ones);
    for (int i = 0; i < N; i++) ones[i] = 1;
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(N));
    clv_tensor *y = clv_dropout(x, 0.3f), *z = clv_dropout(x, 0.3f);
    clv_output(y, "y");
    clv_output(z, "z");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = seed, .step = step});
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, x, ones, N * sizeof *ones), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, y, first, N * sizeof *first), CLV_OK, runtime);
    assert_status(clv_run_fetch(run, ticket, z, second, N * sizeof *second), CLV_OK, runtime);
    clv__test_end(run, session, plan, graph);
    free(ones);
}

/** Where both agree about dropping: expected 0.3^2 + 0.7^2 = 0.58 of all for masks that know nothing of each other. */
static void assert_independent(const float *a, const float *b) {
    int same = 0;
    for (int i = 0; i < N; i++) same += (a[i] == 0) == (b[i] == 0);
    assert_true(fabs(same / (double)N - 0.58) < 5 * sqrt(0.58 * 0.42 / N));
}

TEST(masks) {
    const uint64_t seed = 0x123456789abcdef0ull, other = seed ^ (1ull << 40);
    clv_runtime *runtime = clv__test_runtime(NULL);
    float *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = malloc(N * sizeof *c),
          *d = malloc(N * sizeof *d);
    clv_device *device;
    for (int k = -1; (device = clv__test_next_device(runtime, &k)) != NULL;) {
        draw(runtime, device, seed, 5, a, b);
        int dropped = 0;
        for (int i = 0; i < N; i++) {
            clv__philox words = clv__philox_at((uint32_t)seed, (uint32_t)(seed >> 32) ^ CLV__STREAM_DROPOUT,
                                               (uint32_t)i / 4, 5, 0, 0);
            bool keep = clv__uniform(words.word[i % 4]) >= 0.3f;
            assert_true(keep ? fabsf(a[i] - 1 / 0.7f) < 1e-6f : a[i] == 0);
            dropped += !keep;
        }
        assert_true(fabs(dropped / (double)N - 0.3) < 5 * sqrt(0.3 * 0.7 / N));
        assert_independent(a, b); // another node
        draw(runtime, device, seed, 5, c, d);
        assert_memory_equal(a, c, N * sizeof *a);
        assert_memory_equal(b, d, N * sizeof *b);
        draw(runtime, device, seed, 6, c, d);
        assert_independent(a, c); // another step
        draw(runtime, device, other, 5, c, d);
        assert_independent(a, c); // another seed
    }
    free(a);
    free(b);
    free(c);
    free(d);
    clv_runtime_destroy(runtime);
}

enum { UNIFORM, NORMAL, CHANCE, CLASSES, KINDS };

/** A tensor of each kind, of rows `first` to before first + rows of N. */
static void draw_kinds(clv_runtime *runtime, clv_device *device, int64_t step, int64_t first, int64_t rows,
                       float *out) {
    static const float weights[] = {1, 0, 2, 1};
    int64_t ticket;
    float *p = malloc(N * sizeof *p);
    int32_t *classes = malloc(N * sizeof *classes);
    for (int i = 0; i < N; i++) p[i] = 0.3f;
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *in = clv_input(graph, "p", CLV_DTYPE_F32, CLV_SHAPE(rows));
    clv__parts parts = clv__parts_begin(graph);
    clv__parts_next(graph, &parts, (clv__cut){.first = first, .rows = rows});
    clv_tensor *y[KINDS] = {
        clv_random_uniform(graph, CLV_SHAPE(rows), -1, 3), clv_random_normal(graph, CLV_SHAPE(rows), 5, 2),
        clv_bernoulli(in),
        clv_reshape(
            clv_multinomial(clv_broadcast_to(clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(1, 4), weights),
                                             CLV_SHAPE(rows, 4)),
                            1, true),
            CLV_SHAPE(rows))};
    clv__parts_end(graph, &parts);
    for (int k = 0; k < KINDS; k++) clv_output(y[k], (const char *[]){"u", "n", "b", "m"}[k]);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7, .step = step});
    clv_run *run = clv__test_run(runtime, session, plan);
    assert_status(clv_run_feed(run, in, p, (size_t)rows * sizeof *p), CLV_OK, runtime);
    assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
    for (int k = 0; k < KINDS; k++)
        assert_status(clv_run_fetch(run, ticket, y[k], k == CLASSES ? (void *)classes : out + k * N,
                                    (size_t)rows * sizeof *out),
                      CLV_OK, runtime);
    for (int64_t i = 0; i < rows; i++) out[CLASSES * N + i] = (float)classes[i];
    clv__test_end(run, session, plan, graph);
    free(p);
    free(classes);
}

/** Moments of what is drawn, within five of their own deviations. */
TEST(distributions) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    float *a = malloc(KINDS * N * sizeof *a), *b = malloc(KINDS * N * sizeof *b);
    clv_device *device;
    for (int k = -1; (device = clv__test_next_device(runtime, &k)) != NULL;) {
        draw_kinds(runtime, device, 5, 0, N, a);
        double mean[KINDS] = {0}, square[KINDS] = {0}, within = 0, of[4] = {0};
        for (int kind = 0; kind < KINDS; kind++)
            for (int i = 0; i < N; i++) {
                const double v = (double)a[kind * N + i];
                mean[kind] += v / N, square[kind] += v * v / N;
                within += kind == NORMAL && fabs(v - 5) < 2;
                if (kind == CLASSES) of[(int)v] += 1;
            }
        for (int i = 0; i < N; i++) {
            clv__philox words = clv__philox_at(7, CLV__STREAM_RANDOM, (uint32_t)i / 4, 5, 0, 0);
            assert_true(a[i] == -1 + 4 * clv__uniform(words.word[i % 4]));
        }
        assert_true(fabs(mean[UNIFORM] - 1) < 5 * sqrt(16.0 / 12 / N));
        assert_true(fabs(mean[NORMAL] - 5) < 5 * 2 / sqrt(N));
        assert_true(fabs(square[NORMAL] - 25 - 4) < 5 * sqrt((2 * 16 + 4 * 25 * 4.0) / N));
        assert_true(fabs(within / N - 0.6827) < 5 * sqrt(0.6827 * 0.3173 / N));
        assert_true(fabs(mean[CHANCE] - 0.3) < 5 * sqrt(0.3 * 0.7 / N));
        assert_true(of[1] == 0 && fabs(of[2] / N - 0.5) < 5 * 0.5 / sqrt(N));
        assert_true(fabs(of[0] / N - 0.25) < 5 * sqrt(0.25 * 0.75 / N));
        draw_kinds(runtime, device, 6, 0, N,
                   b); // another step: one class of four and one of two agree by chance
        for (int kind = 0; kind < CHANCE; kind++)
            assert_true(memcmp(a + kind * N, b + kind * N, N * sizeof *a) != 0);
        draw_kinds(runtime, device, 5, 4001, 101, b); // a part of the batch draws its rows of the whole
        for (int kind = 0; kind < KINDS; kind++)
            assert_memory_equal(a + kind * N + 4001, b + kind * N, 101 * sizeof *a);
    }
    free(a);
    free(b);
    clv_runtime_destroy(runtime);
}

TEST(identity) {
    clv_runtime *runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3));
    assert_ptr_equal(clv_dropout(x, 0.5f), x); // evaluation
    clv_graph_set_training(graph, true);
    assert_ptr_equal(clv_dropout(x, 0), x);
    assert_ptr_not_equal(clv_dropout(x, 0.5f), x);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
