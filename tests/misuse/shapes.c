// SPDX-License-Identifier: Apache-2.0
// Shapes that no tensor can have, given to every function that takes a shape: refused with a sentence, in one way.
#include <limits.h>

#include "cleave/cleave.h"
#include "harness/mistake.h"

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

static clv_tensor *x;

static void make_inputs(void) {
    x = clv_input(graph, "x", CLV_DTYPE_F32, (clv_shape){0}); // a scalar broadcasts to all
    assert_non_null(clv_parameter(graph, "w", (clv_shape){0}, (clv_init){0}));
}

static void pass_on(void) {}

/** A call is given each of them as `shape`. */
#define EACH(call)                                                                                           \
    for (int i = 0; i < N_WRONG; i++) {                                                                      \
        const clv_shape shape = wrong[i].shape;                                                              \
        MISTAKE(call, CLV_E_SHAPE, wrong[i].says);                                                           \
    }

TEST(every_function_refuses_them) {
    EACH(clv_input(graph, "y", CLV_DTYPE_F32, shape));
    EACH(clv_parameter(graph, "y", shape, (clv_init){0}));
    EACH(clv_parameter(graph, "w", shape, (clv_init){0})); // another than its first
    EACH(clv_buffer(graph, "y", CLV_DTYPE_I32, shape, (clv_init){0}));
    EACH(clv_full(graph, CLV_DTYPE_F32, shape, 1));
    EACH(clv_reshape(x, shape));
    EACH(clv_broadcast_to(x, shape));
    EACH(clv_sum_to(x, shape));
}

TEST(the_questions_bear_them) {
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

TEST(making_one_keeps_the_mistake) {
    clv_shape nine = CLV_SHAPE(1, 2, 3, 4, 5, 6, 7, 8, 9), none = clv_shape_make(2, NULL),
              scalar = clv_shape_make(0, NULL);
    assert_int_equal(clv_shape_numel(&nine), -1); // and not a shape of eight dimensions
    assert_int_equal(clv_shape_numel(&none), -1);
    assert_int_equal(clv_shape_numel(&scalar), 1);
    const clv_shape most = CLV_SHAPE(INT64_C(1) << 55), empty = CLV_SHAPE(0, INT64_C(1) << 55);
    assert_true(clv_shape_numel(&most) == INT64_C(1) << 55);
    assert_int_equal(clv_shape_numel(&empty), 0);
}

TEST_MAIN(setup, teardown)
