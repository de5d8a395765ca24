// SPDX-License-Identifier: Apache-2.0
// Shapes that no tensor can have, given to every function that takes a shape: refused with a sentence, in one way.
#include <limits.h>

#include "misuse/world.h"

static clv_runtime *runtime;

/** Shapes that are none. What stands behind the eight dimensions must not be read. */
static const struct {
    clv_shape shape;
    const char *says;
} wrong[] = {
    {{.rank = -1}, "its rank is outside 0 to 8"},
    {{.rank = INT_MIN}, "its rank is outside 0 to 8"},
    {{.rank = 9, .dims = {1, 1, 1, 1, 1, 1, 1, 1}}, "its rank is outside 0 to 8"},
    {{.rank = 99, .dims = {1, 1, 1, 1, 1, 1, 1, 1}}, "its rank is outside 0 to 8"},
    {{.rank = INT_MAX}, "its rank is outside 0 to 8"},
    {{.rank = 2, .dims = {2, -3}}, "a dimension is negative"},
    {{.rank = 2, .dims = {INT64_MAX, 2}}, "it has too many elements to count"},
    {{.rank = 3, .dims = {0, INT64_C(1) << 62, INT64_C(1) << 62}}, "it has too many elements to count"},
    {{.rank = 3, .dims = {INT64_C(1) << 62, INT64_C(1) << 62, 0}}, "it has too many elements to count"},
    {{.rank = 2, .dims = {INT64_MAX, 0}}, "it has too many elements to count"},
    {{.rank = 1, .dims = {(INT64_C(1) << 55) + 1}}, "it has too many elements to count"},
};
enum { N_WRONG = sizeof wrong / sizeof *wrong };

typedef clv_tensor *(*use)(clv_graph *graph, clv_tensor *x, clv_shape shape);
static clv_tensor *input(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)x;
    return clv_input(graph, "y", CLV_DTYPE_F32, shape);
}
static clv_tensor *parameter(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)x;
    return clv_parameter(graph, "y", shape, (clv_init){0});
}
static clv_tensor *parameter_again(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)x;
    return clv_parameter(graph, "w", shape, (clv_init){0});
}
static clv_tensor *buffer(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)x;
    return clv_buffer(graph, "y", CLV_DTYPE_I32, shape, (clv_init){0});
}
static clv_tensor *full(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)x;
    return clv_full(graph, CLV_DTYPE_F32, shape, 1);
}
static clv_tensor *reshape(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)graph;
    return clv_reshape(x, shape);
}
static clv_tensor *broadcast_to(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)graph;
    return clv_broadcast_to(x, shape);
}
static clv_tensor *sum_to(clv_graph *graph, clv_tensor *x, clv_shape shape) {
    (void)graph;
    return clv_sum_to(x, shape);
}

static void every_function_refuses_them(void **state) {
    (void)state;
    static const struct {
        use call;
        const char *name;
    } uses[] = {{input, "input"},
                {parameter, "parameter"},
                {parameter_again, "parameter again"},
                {buffer, "buffer"},
                {full, "full"},
                {reshape, "reshape"},
                {sum_to, "sum_to"},
                {broadcast_to, "broadcast_to"}};
    for (size_t u = 0; u < sizeof uses / sizeof *uses; u++) {
        for (int i = 0; i < N_WRONG; i++) {
            clv_graph *graph;
            assert_status(clv_graph_create(runtime, &graph), CLV_OK, runtime);
            clv_tensor *x =
                clv_input(graph, "x", CLV_DTYPE_F32, (clv_shape){0}); // a scalar broadcasts to all
            assert_non_null(clv_parameter(graph, "w", (clv_shape){0}, (clv_init){0}));
            clv_tensor *made = uses[u].call(graph, x, wrong[i].shape);
            if (made) print_error("%s, shape %d\n", uses[u].name, i);
            assert_null(made);
            clv_status status = clv_graph_status(graph);
            if (status != CLV_E_SHAPE) print_error("%s, shape %d\n", uses[u].name, i);
            assert_status(status, CLV_E_SHAPE, runtime);
            assert_holds(clv_runtime_error(runtime), wrong[i].says);
            clv_graph_destroy(graph);
        }
    }
}

static void the_questions_bear_them(void **state) {
    (void)state;
    char text[64], small[3];
    for (int i = 0; i < N_WRONG; i++) {
        const clv_shape *shape = &wrong[i].shape;
        assert_int_equal(clv_shape_numel(shape), -1);
        assert_true(clv_shape_text(shape, text, sizeof text) == text);
        assert_true(strlen(clv_shape_text(shape, small, sizeof small)) < sizeof small);
        if (shape->rank < 0 || shape->rank > CLV_MAX_RANK) assert_false(clv_shape_equal(shape, shape));
        clv_array array;
        assert_status(clv_array_init(runtime, CLV_DTYPE_F32, shape, &array), CLV_E_SHAPE, runtime);
    }
    assert_string_equal(clv_shape_text(&wrong[2].shape, text, sizeof text), "[rank 9]");
    assert_int_equal(clv_shape_numel(NULL), -1);
    assert_false(clv_shape_equal(NULL, NULL));
}

static void making_one_keeps_the_mistake(void **state) {
    (void)state;
    clv_shape nine = CLV_SHAPE(1, 2, 3, 4, 5, 6, 7, 8, 9), none = clv_shape_make(2, NULL),
              scalar = clv_shape_make(0, NULL);
    assert_int_equal(clv_shape_numel(&nine), -1); // and not a shape of eight dimensions
    assert_int_equal(clv_shape_numel(&none), -1);
    assert_int_equal(clv_shape_numel(&scalar), 1);
    const clv_shape most = CLV_SHAPE(INT64_C(1) << 55), empty = CLV_SHAPE(0, INT64_C(1) << 55);
    assert_true(clv_shape_numel(&most) == INT64_C(1) << 55);
    assert_int_equal(clv_shape_numel(&empty), 0);
}

static int begin(void **state) {
    (void)state;
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    return 0;
}

static int end(void **state) {
    (void)state;
    clv_runtime_destroy(runtime);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_refuses_them),
        cmocka_unit_test(the_questions_bear_them),
        cmocka_unit_test(making_one_keeps_the_mistake),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
