// SPDX-License-Identifier: Apache-2.0
// What samples of lstm, gru and rnn do not say: nodes do not grow with the steps, layers have PyTorch's names, a state goes on where a
// sequence was cut, and the last state has a gradient, in a graph that was built for training and in one that was not.
#include <math.h>

#include "check/differences.h"
#include "check/subject.h"
#include "cleave/nn.h"
#include "device/device.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "tensor/dtype.h"

TEST_RUNTIME_OF(&(clv_runtime_config){.no_opencl = true})

static clv_graph *new_graph(bool training) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, training);
    return graph;
}

/** Values that follow from a tensor's name. */
static clv__values filled(clv_graph *graph) {
    clv__values values = {0};
    clv__error *error = clv__runtime_error_of(runtime);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_status(clv__values_init(&values, graph, error), CLV_OK, runtime);
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const clv_tensor *tensor = graph->tensors[i];
        uint64_t id = 1;
        if (tensor->node) continue;
        for (const char *c = tensor->name; *c; c++) id = 31 * id + (uint64_t)*c;
        const clv__fill lengths = {CLV__FILL_INTEGER, 1, 5};
        clv__fill_values(clv__is_float(tensor->desc.dtype) ? &(clv__fill){0} : &lengths, &tensor->desc, 1, id,
                         clv__values_of(&values, tensor));
    }
    return values;
}

static clv__values computed(clv_graph *graph) {
    clv__values values = filled(graph);
    assert_status(clv__interpret(&values, NULL, clv__runtime_error_of(runtime)), CLV_OK, runtime);
    return values;
}

static void same(const clv__values *a, const clv_tensor *x, const clv__values *b, const clv_tensor *y) {
    const double *u = clv__values_of(a, x), *v = clv__values_of(b, y);
    assert_int_equal(clv_tensor_numel(x), clv_tensor_numel(y));
    for (int64_t i = 0; i < clv_tensor_numel(x); i++)
        if (!(fabs(u[i] - v[i]) <= 1e-12))
            fail_msg("%s[%lld] is %g and %g", x->name, (long long)i, u[i], v[i]);
}

// ---- nodes and names ------------------------------------------------------------------------------------------------

static int nodes_of(int64_t T) {
    clv_graph *graph = new_graph(true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(T, 2, 3));
    const clv_recurrent_config config = {.layers = 2, .bidirectional = true};
    clv_backward(clv_sum(clv_nn_lstm(x, NULL, "lstm", 4, &config, NULL), NULL, 0, false));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    const int n = clv_graph_info_get(graph).n_nodes;
    clv_graph_destroy(graph);
    return n;
}

TEST(nodes_do_not_grow_with_steps) {
    assert_int_equal(nodes_of(2), nodes_of(500));
}

TEST(names_are_pytorchs) {
    static const struct {
        const char *name;
        int64_t rows, columns;
    } wanted[] = {{"net.weight_ih_l0", 12, 3},         {"net.weight_hh_l0", 12, 4},
                  {"net.bias_ih_l0", 12, 0},           {"net.bias_hh_l0", 12, 0},
                  {"net.weight_ih_l0_reverse", 12, 3}, {"net.weight_hh_l0_reverse", 12, 4},
                  {"net.bias_ih_l0_reverse", 12, 0},   {"net.bias_hh_l0_reverse", 12, 0},
                  {"net.weight_ih_l1", 12, 8},         {"net.weight_hh_l1", 12, 4},
                  {"net.bias_ih_l1", 12, 0},           {"net.bias_hh_l1", 12, 0},
                  {"net.weight_ih_l1_reverse", 12, 8}, {"net.weight_hh_l1_reverse", 12, 4},
                  {"net.bias_ih_l1_reverse", 12, 0},   {"net.bias_hh_l1_reverse", 12, 0}};
    enum { N = sizeof wanted / sizeof *wanted };
    clv_graph *graph = new_graph(false);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 5, 3));
    clv_recurrent_state last = {NULL, NULL};
    clv_tensor *y =
        clv_nn_gru(x, NULL, "net", 4,
                   &(clv_recurrent_config){.layers = 2, .bidirectional = true, .batch_first = true}, &last);
    const clv_shape result = clv_tensor_shape(y), h = clv_tensor_shape(last.h),
                    of_result = CLV_SHAPE(2, 5, 8), of_h = CLV_SHAPE(4, 2, 4);
    assert_true(clv_shape_equal(&result, &of_result) && clv_shape_equal(&h, &of_h));
    assert_null(last.c);
    assert_int_equal(clv_graph_info_get(graph).n_parameters, N);
    for (int i = 0; i < N; i++) {
        const clv_tensor *parameter = clv_parameter_get(graph, i);
        const clv_shape shape = clv_tensor_shape(parameter);
        assert_string_equal(clv_tensor_name(parameter), wanted[i].name);
        assert_int_equal(shape.rank, wanted[i].columns ? 2 : 1);
        assert_int_equal(shape.dims[0], wanted[i].rows);
        if (wanted[i].columns) assert_int_equal(shape.dims[1], wanted[i].columns);
        assert_true(parameter->init.kind == CLV_INIT_UNIFORM && parameter->init.b == 0.5f); // 1 / sqrt(4)
    }
    clv_graph_destroy(graph);
}

// ---- states ---------------------------------------------------------------------------------------------------------

enum { T = 6, CUT = 4, N = 3, F = 5, H = 4 };

typedef clv_tensor *network(clv_tensor *x, clv_tensor *lengths, clv_tensor *const *weights, int n_weights,
                            const clv_recurrent_config *config, clv_recurrent_state *state);
static network *const networks[] = {clv_lstm, clv_gru, clv_rnn};
static const int gates[] = {4, 3, 1};
enum { KINDS = 3 };

static void weights_of(clv_graph *graph, int kind, clv_tensor **weights) {
    const int64_t rows = gates[kind] * H;
    weights[0] = clv_input(graph, "weight_ih", CLV_DTYPE_F32, CLV_SHAPE(rows, F));
    weights[1] = clv_input(graph, "weight_hh", CLV_DTYPE_F32, CLV_SHAPE(rows, H));
    weights[2] = clv_input(graph, "bias_ih", CLV_DTYPE_F32, CLV_SHAPE(rows));
    weights[3] = clv_input(graph, "bias_hh", CLV_DTYPE_F32, CLV_SHAPE(rows));
}

TEST(a_state_goes_on) {
    for (int kind = 0; kind < KINDS; kind++) {
        clv_graph *graph = new_graph(false);
        clv_tensor *weights[4], *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(T, N, F));
        clv_recurrent_state whole = {NULL, NULL}, parts = {NULL, NULL};
        weights_of(graph, kind, weights);
        clv_tensor *y = networks[kind](x, NULL, weights, 4, NULL, &whole);
        clv_tensor *first = networks[kind](clv_slice(x, 0, 0, CUT), NULL, weights, 4, NULL, &parts);
        clv_tensor *rest = networks[kind](clv_slice(x, 0, CUT, T - CUT), NULL, weights, 4, NULL, &parts);
        clv_tensor *joined = clv_concat((clv_tensor *[]){first, rest}, 2, 0);
        clv__values values = computed(graph);
        same(&values, y, &values, joined);
        same(&values, whole.h, &values, parts.h);
        if (kind == 0) same(&values, whole.c, &values, parts.c);
        clv__values_reset(&values);
        clv_graph_destroy(graph);
    }
}

/** A loss of the last states alone; its gradients by x and the weights go to wrt. */
static clv_tensor *loss_of_states(clv_graph *graph, int kind, clv_tensor **wrt) {
    clv_recurrent_state last = {NULL, NULL};
    clv_tensor *x = wrt[4] = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(T, N, F));
    weights_of(graph, kind, wrt);
    for (int i = 0; i < 5; i++) clv_requires_grad(wrt[i], true);
    clv_tensor *lengths = clv_input(graph, "lengths", CLV_DTYPE_I32, CLV_SHAPE(N));
    networks[kind](x, lengths, wrt, 4, NULL, &last);
    clv_tensor *loss = clv_sum(clv_square(last.h), NULL, 0, false);
    if (last.c) loss = clv_add(loss, clv_sum(clv_square(last.c), NULL, 0, false));
    clv_backward(loss);
    return loss;
}

TEST(the_last_state_has_a_gradient) {
    for (int kind = 0; kind < KINDS; kind++) {
        clv_graph *trained = new_graph(true), *other = new_graph(false);
        clv_tensor *a[5], *b[5], *loss = loss_of_states(trained, kind, a);
        loss_of_states(other, kind, b);
        clv__values values = computed(trained), again = computed(other), start = filled(trained);
        for (int i = 0; i < 5; i++) same(&values, clv_gradient(a[i]), &again, clv_gradient(b[i]));
        clv__distance worst;
        assert_status(clv__differences(&start, loss, a, 5, 0, 1, clv__runtime_error_of(runtime), &worst),
                      CLV_OK, runtime);
        assert_true(worst.ratio <= 1);
        clv__values_reset(&values);
        clv__values_reset(&again);
        clv__values_reset(&start);
        clv_graph_destroy(trained);
        clv_graph_destroy(other);
    }
}

TEST_MAIN(begin_runtime, end_runtime)
