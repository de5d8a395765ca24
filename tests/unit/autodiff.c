// SPDX-License-Identifier: Apache-2.0
// clv_backward: gradients of graphs whose shape makes it hard, against numbers worked out by hand and, for all, against
// differences. Ops' own gradients are the checker's business.
#include <math.h>
#include <string.h>

#include "check/differences.h"
#include "cleave/ops.h"
#include "cleave/plan.h"
#include "device/device.h"
#include "harness/harness.h"

static clv_runtime *runtime;
static clv_graph *graph;
static clv__values values;

FIXTURE(begin) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    graph = clv__test_graph(runtime);
}

FIXTURE(end) {
    clv__values_reset(&values);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

static clv__error *error_of(void) {
    return clv__runtime_error_of(runtime);
}

static clv_tensor *parameter(const char *name, clv_shape shape) {
    return clv_parameter(graph, name, shape, (clv_init){0});
}

static clv_tensor *total(clv_tensor *x) {
    return clv_sum(x, NULL, 0, false);
}

/** Fill every parameter with small distinct numbers, evaluate forward and backward, hold all gradients against differences. */
static void evaluate(clv_tensor *loss) {
    clv_tensor *wrt[8];
    int n = clv_graph_info_get(graph).n_parameters;
    clv__distance worst;
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_status(clv__values_init(&values, graph, error_of()), CLV_OK, runtime);
    for (int k = 0; k < n; k++) {
        wrt[k] = clv_parameter_get(graph, k);
        for (int64_t i = 0; i < clv_tensor_numel(wrt[k]); i++)
            clv__values_of(&values, wrt[k])[i] = 0.5 + k + 0.125 * (double)i;
    }
    assert_status(clv__differences(&values, loss, wrt, n, 0, 1, error_of(), &worst), CLV_OK, runtime);
    if (worst.ratio > 1)
        fail_msg("direction %d: %.9g, differences give %.9g", (int)worst.index, worst.got, worst.want);
    assert_status(clv__interpret(&values, NULL, error_of()), CLV_OK, runtime);
}

static double gradient_at(const clv_tensor *tensor, int i) {
    clv_tensor *gradient = clv_gradient(tensor);
    assert_non_null(gradient);
    assert_true(clv_shape_equal(&gradient->desc.shape, &tensor->desc.shape));
    return clv__values_of(&values, gradient)[i];
}

TEST_WITHIN(a_value_used_many_times, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(3));
    clv_tensor *loss = total(clv_mul(clv_mul(x, x), x)); // x^3
    clv_backward(loss);
    evaluate(loss);
    assert_true(fabs(gradient_at(x, 1) - 3 * 0.625 * 0.625) < 1e-12);
}

TEST_WITHIN(a_value_plus_itself, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(2));
    clv_tensor *loss = total(clv_add(x, x));
    clv_backward(loss);
    evaluate(loss);
    assert_true(gradient_at(x, 0) == 2);
}

/** Windows of relu(x - 1.2), x from 0.5 to 2.4: the first has nothing above 0, so its first element wins. What relu made there
 *  gets the window's gradient, x nothing. */
TEST_WITHIN(pooling_what_relu_made, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(1, 1, 4, 4)), *offset = parameter("offset", CLV_SHAPE(1));
    clv_tensor *y = clv_relu(clv_sub(x, clv_mul_scalar(offset, 0.8f))); // the offset is 1.5
    clv_tensor *windows = clv_max_pool2d(y, &(clv_pool2d_config){.kernel = {2, 2}});
    clv_tensor *loss = total(clv_mul_scalar(clv_square(clv_add_scalar(windows, 1)), 0.5f));
    clv_backward(loss);
    evaluate(loss);
    int masked = 0, winners = 0;
    for (int i = 0; i < 16; i++) {
        double made = clv__values_of(&values, y)[i], of_y = gradient_at(y, i), of_x = gradient_at(x, i);
        assert_true(of_x == (made > 0 ? of_y : 0));
        winners += of_y != 0;
        masked += of_y != 0 && of_x == 0;
    }
    assert_int_equal(winners, 4);
    assert_int_equal(masked, 1);
    int pools = 0; // the one that x's gradient needs, and the one that y's is
    for (size_t i = 0; i < graph->n_nodes; i++)
        pools += !strcmp(graph->nodes[i]->io.op->name, "max_pool2d_backward");
    assert_int_equal(pools, 2);
}

TEST_WITHIN(a_shared_subexpression, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(4)), *shared = clv_exp(x);
    clv_tensor *left = clv_mul(shared, x), *right = clv_tanh(shared);
    clv_tensor *loss = total(clv_add(clv_mul(left, right), clv_sqrt(shared)));
    clv_backward(loss);
    int exps = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) exps += strcmp(graph->nodes[i]->io.op->name, "exp") == 0;
    assert_int_equal(exps, 1); // the backward pass uses what is there
    evaluate(loss);
}

TEST_WITHIN(a_diamond_of_many_levels, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(2)), *y = x;
    for (int i = 0; i < 20; i++) y = clv_add(clv_mul_scalar(y, 0.5f), clv_mul_scalar(y, 0.5f));
    clv_tensor *loss = total(y);
    clv_backward(loss);
    assert_true(graph->n_nodes < 200); // one visit for each node, not one for each of a million paths
    evaluate(loss);
    assert_true(gradient_at(x, 0) == 1);
}

TEST_WITHIN(an_unused_parameter_gets_none, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(2)), *unused = parameter("unused", CLV_SHAPE(3));
    clv_tensor *aside = parameter("aside", CLV_SHAPE(2));
    clv_exp(aside); // used, but not by the loss
    clv_tensor *loss = total(clv_square(x));
    clv_backward(loss);
    evaluate(loss);
    assert_null(clv_gradient(unused));
    assert_null(clv_gradient(aside));
    assert_true(gradient_at(x, 0) == 1);
}

TEST_WITHIN(broadcast_gradients_have_the_inputs_shape, begin, end) {
    clv_tensor *x = parameter("x", CLV_SHAPE(2, 3, 4)), *row = parameter("row", CLV_SHAPE(4));
    clv_tensor *column = parameter("column", CLV_SHAPE(3, 1)),
               *one = parameter("one", clv_shape_make(0, NULL));
    clv_tensor *y = clv_div(clv_mul(clv_add(x, row), column), one);
    clv_tensor *loss = total(clv_sub(y, clv_mul(row, column)));
    clv_backward(loss);
    evaluate(loss);
    for (int k = 0; k < 4; k++) gradient_at(clv_parameter_get(graph, k), 0);
}

TEST_WITHIN(inputs_only_when_asked, begin, end) {
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2)),
               *z = clv_input(graph, "z", CLV_DTYPE_F32, CLV_SHAPE(2));
    clv_tensor *w = parameter("w", CLV_SHAPE(2));
    clv_requires_grad(z, true);
    clv_tensor *loss = total(clv_mul(clv_mul(x, w), z));
    clv_backward(loss);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_null(clv_gradient(x));
    assert_non_null(clv_gradient(z));
    assert_non_null(clv_gradient(w));
}

TEST_WITHIN(nodes_of_the_backward_pass_carry_the_layers_name, begin, end) {
    clv_scope_push(graph, "block");
    clv_tensor *y = clv_exp(parameter("w", CLV_SHAPE(2)));
    clv_scope_pop(graph);
    size_t forward = graph->n_nodes;
    clv_tensor *loss = total(y);
    clv_backward(loss);
    bool found = false;
    for (size_t i = forward + 1; i < graph->n_nodes; i++) {
        assert_int_equal(graph->nodes[i]->phase, CLV__BACKWARD);
        found |= strcmp(graph->nodes[i]->layer, "block") == 0;
    }
    assert_true(found);
}

TEST_WITHIN(a_loss_of_many_elements_is_refused, begin, end) {
    clv_backward(clv_exp(parameter("w", CLV_SHAPE(2))));
    assert_status(clv_graph_status(graph), CLV_E_SHAPE, runtime);
}

TEST_WITHIN(a_loss_without_parameters_is_refused, begin, end) {
    clv_backward(total(clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2))));
    assert_status(clv_graph_status(graph), CLV_E_STATE, runtime);
}

TEST_WITHIN(a_second_backward_is_refused, begin, end) {
    clv_tensor *loss = total(clv_exp(parameter("w", CLV_SHAPE(2))));
    clv_backward(loss);
    clv_backward(loss);
    assert_status(clv_graph_status(graph), CLV_E_STATE, runtime);
}

TEST_WITHIN(steps_stop_a_gradient, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(3));
    clv_tensor *mask = clv_gt(w, clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(1), 0.55f));
    clv_tensor *loss = total(clv_where(mask, clv_square(w), clv_neg(w)));
    clv_backward(loss);
    evaluate(loss);
    assert_true(gradient_at(w, 0) == -1);
    assert_true(gradient_at(w, 1) == 2 * 0.625);
}

TEST_WITHIN(nothing_flows_through_what_is_detached, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(3));
    clv_tensor *square = clv_square(w), *fixed = clv_detach(square);
    clv_tensor *loss =
        total(clv_mul(fixed, clv_add(square, w))); // d/dw of c * (w^2 + w), c = w^2 as a constant
    clv_backward(loss);
    assert_null(clv_gradient(fixed));
    assert_true(clv_tensor_numel(fixed) == 3);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_status(clv__values_init(&values, graph, error_of()), CLV_OK, runtime);
    for (int i = 0; i < 3; i++) clv__values_of(&values, w)[i] = i + 1;
    assert_status(clv__interpret(&values, NULL, error_of()), CLV_OK, runtime);
    for (int i = 1; i <= 3; i++) assert_true(gradient_at(w, i - 1) == (double)(i * i) * (2 * i + 1));
}

TEST_WITHIN(a_frozen_parameter_has_no_gradient_and_no_update, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(3)), *frozen = parameter("frozen", CLV_SHAPE(3));
    clv_requires_grad(frozen, false);
    clv_graph_set_training(graph, true);
    clv_backward(total(clv_mul(clv_mul(w, frozen), w)));
    clv_optimizer_add(graph, &(clv_optimizer_config){.momentum = 0.9f});
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_non_null(clv_gradient(w));
    assert_null(clv_gradient(frozen));
    assert_non_null(clv_graph_find(graph, "w.momentum_buffer"));
    assert_null(clv_graph_find(graph, "frozen.momentum_buffer"));
}

TEST_WITHIN(the_result_of_an_op_can_be_frozen_too, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(3)), *h = clv_square(w);
    clv_requires_grad(h, false);
    clv_backward(total(clv_mul(h, w)));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_null(clv_gradient(h));
    assert_non_null(clv_gradient(w));
}

TEST_WITHIN(whole_numbers_have_no_gradients, begin, end) {
    clv_requires_grad(clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(3)), true);
    assert_status(clv_graph_status(graph), CLV_E_DTYPE, runtime);
    assert_holds(clv_runtime_error(runtime), "'labels' is i32: only floats have gradients");
}

/** The sentence of a backward pass that cannot be. */
static const char *refused(clv_tensor *loss, clv_status status) {
    clv_backward(loss);
    assert_status(clv_graph_status(graph), status, runtime);
    return clv_runtime_error(runtime);
}

TEST_WITHIN(the_op_that_stops_the_gradient_is_named, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(2, 3));
    clv_tensor *best = clv_argmax(clv_square(w), 1, false); // number 1
    assert_holds(refused(total(clv_cast(best, CLV_DTYPE_F32)), CLV_E_STATE),
                 "the gradient stops at argmax#1, whose result is i32");
}

TEST_WITHIN(its_layer_is_named_where_it_has_one, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(2, 3));
    clv_scope_push(graph, "head");
    clv_tensor *fixed = clv_detach(w);
    clv_scope_pop(graph);
    assert_holds(refused(total(clv_square(fixed)), CLV_E_STATE),
                 "the gradient stops at reshape 'head', whose result was detached");
}

TEST_WITHIN(a_loss_of_inputs_alone_says_so, begin, end) {
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3));
    assert_holds(refused(total(x), CLV_E_STATE), "no parameter leads to the loss 'sum#0', and nothing else");
}

TEST_WITHIN(an_op_in_no_layer_is_told_by_its_number, begin, end) {
    clv_tensor *w = parameter("w", CLV_SHAPE(2, 3));
    assert_null(clv_matmul(clv_relu(w), clv_square(w))); // number 2
    assert_status(clv_graph_status(graph), CLV_E_SHAPE, runtime);
    assert_holds(clv_runtime_error(runtime), "matmul#2: ");
}

TEST_WITHIN(a_scope_that_is_open_is_refused_by_the_plan, begin, end) {
    clv_plan *plan;
    clv_tensor *w = parameter("w", CLV_SHAPE(3));
    clv_scope_push(graph, "outer");
    clv_scope_push(graph, "in.ner");
    clv_output(clv_relu(w), "y");
    clv_scope_pop(graph);
    assert_status(clv_plan_create(graph, NULL, &plan), CLV_E_STATE, runtime);
    assert_holds(clv_runtime_error(runtime), "scope 'outer' was pushed and not popped");
    assert_null(plan);
    clv_scope_pop(graph);
    plan = clv__test_plan(runtime, graph, NULL);
    clv_plan_destroy(plan);
}

TEST_MAIN(NULL, NULL)
