// SPDX-License-Identifier: Apache-2.0
// First values: those of one sequence, whatever the number of threads that draw them, and constants; normal numbers.
#include "harness/harness.h"

#include <math.h>
#include <xxhash.h>

#include "base/random.h"
#include "cleave/ops.h"
#include "cleave/plan.h"

TEST_RUNTIME_OF(NULL)

/** The values that a session gives a parameter of n elements; free them. */
static float *first_values(clv_device *device, clv_init init, int64_t n) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_output(clv_relu(clv_parameter(graph, "weight", CLV_SHAPE(n), init)), "y");
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = device});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 7});
    assert_status(clv_session_reserve(session, &plan, 1), CLV_OK, runtime);
    float *values = malloc((size_t)n * sizeof *values);
    assert_non_null(values);
    assert_status(
        clv_session_read(session, clv_session_find(session, "weight"), values, (size_t)n * sizeof *values),
        CLV_OK, runtime);
    clv__test_end(NULL, session, plan, graph);
    return values;
}

static float expected(clv__random *random, clv_init init) {
    switch (init.kind) {
    case CLV_INIT_ZEROS: return 0;
    case CLV_INIT_ONES: return 1;
    case CLV_INIT_UNIFORM: return init.a + (init.b - init.a) * clv__random_uniform(random);
    case CLV_INIT_NORMAL: return (float)(init.a + init.b * clv__random_normal(random));
    }
    return NAN;
}

/** Sizes about where another thread begins, and one that is no multiple of anything. */
TEST(test_values_are_those_of_one_sequence) {
    static const clv_init inits[] = {{CLV_INIT_ZEROS, 0, 0},
                                     {CLV_INIT_ONES, 0, 0},
                                     {CLV_INIT_UNIFORM, -0.5f, 0.25f},
                                     {CLV_INIT_NORMAL, 1, 0.5f}};
    static const int64_t sizes[] = {1, 7, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 399989};
    int i = -1;
    clv_device *device = clv__test_next_device(runtime, &i);
    for (size_t k = 0; k < sizeof inits / sizeof *inits; k++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            float *values = first_values(device, inits[k], sizes[s]);
            clv__random random;
            clv__random_init(&random, 7, CLV__STREAM_INIT, XXH64("weight", 6, 0));
            int64_t same = 0;
            for (int64_t j = 0; j < sizes[s]; j++) same += values[j] == expected(&random, inits[k]);
            assert_int_equal(same, sizes[s]);
            free(values);
        }
    }
}

/** A parameter of two shapes is refused, and the session is as it was. */
TEST(test_a_refusal_leaves_nothing) {
    static const int64_t sizes[] = {(1 << 17) + 1, 5};
    int index = -1;
    clv_device *device = clv__test_next_device(runtime, &index);
    clv_graph *graphs[2];
    clv_plan *plans[2];
    for (int i = 0; i < 2; i++) {
        graphs[i] = clv__test_graph(runtime);
        clv_tensor *weight =
            clv_parameter(graphs[i], "weight", CLV_SHAPE(sizes[i]), (clv_init){CLV_INIT_NORMAL, 0, 1});
        clv_output(clv_relu(weight), "y");
        plans[i] = clv__test_plan(runtime, graphs[i], &(clv_plan_config){.device = device});
    }
    uint64_t before = clv_device_memory(device).all.current;
    clv_session *session = clv__test_session(runtime, NULL);
    assert_status(clv_session_reserve(session, plans, 2), CLV_E_SHAPE, runtime);
    assert_string_equal(clv_runtime_error(runtime),
                        "'weight' is in the session with shape [131073], the plan wants [5]");
    assert_int_equal(clv_session_info_get(session).n_tensors, 0);
    assert_int_equal(clv_device_memory(device).all.current, before);
    assert_status(clv_session_reserve(session, plans + 1, 1), CLV_OK, runtime);
    assert_int_equal(clv_session_info_get(session).n_tensors, 1);
    clv_session_destroy(session);
    for (int i = 0; i < 2; i++) {
        clv_plan_destroy(plans[i]);
        clv_graph_destroy(graphs[i]);
    }
}

/** Ours against the library's logarithm, cosine and sine, one at a time and many; and that they are normal at all. */
TEST(test_normals_are_those_of_the_formula) {
    enum { N = 200003 };
    clv__random words, one, many;
    clv__random_init(&words, 7, CLV__STREAM_TEST, 1);
    one = many = words;
    double *normals = malloc(N * sizeof *normals), worst = 0, sum = 0, squares = 0, fourths = 0, radius = 0,
           angle = 0;
    assert_non_null(normals);
    clv__random_normals(&many, normals, 3); // where it stops does not matter
    clv__random_normals(&many, normals + 3, N - 3);
    for (int i = 0; i < N; i++) {
        if (i % 2 == 0) {
            radius = sqrt(-2 * log(((double)clv__random_u32(&words) + 1) * 0x1p-32));
            angle = 2 * acos(-1.0) * (clv__random_u32(&words) * 0x1p-32);
        }
        double want = radius * (i % 2 ? sin(angle) : cos(angle)), x = normals[i];
        worst = fmax(worst, fabs(x - want));
        assert_true(clv__random_normal(&one) == x);
        sum += x / N, squares += x * x / N, fourths += x * x * x * x / N;
    }
    print_message("largest difference %.1e, moments %.4f %.4f %.4f\n", worst, sum, squares, fourths);
    assert_true(worst < 1e-11);
    assert_true(fabs(sum) < 0.01 && fabs(squares - 1) < 0.02 && fabs(fourths - 3) < 0.1);
    free(normals);
}

/** Many at once are those of one at a time, from any word of a counter on and up to any, next to where a block of them ends too. */
TEST(test_many_are_those_of_one_at_a_time) {
    enum { MOST = 700 };
    static const int sizes[] = {1, 63, 64, 65, 127, 128, 129, MOST};
    double normals[MOST];
    float uniforms[MOST];
    for (int before = 0; before < 5; before++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            clv__random one, many;
            clv__random_init(&one, 0x123456789abcdef0, CLV__STREAM_TEST, 0xfedcba9876543210);
            one.next = UINT32_MAX - 40; // a counter that runs over
            for (int i = 0; i < before; i++) clv__random_u32(&one);
            many = one;
            clv__random_normals(&many, normals, sizes[s]);
            clv__random_uniforms(&many, uniforms, sizes[s]);
            for (int i = 0; i < sizes[s]; i++) assert_true(clv__random_normal(&one) == normals[i]);
            for (int i = 0; i < sizes[s]; i++) assert_true(clv__random_uniform(&one) == uniforms[i]);
            assert_int_equal(clv__random_u32(&one), clv__random_u32(&many));
        }
    }
}

TEST_MAIN(begin_runtime, end_runtime)
