// SPDX-License-Identifier: Apache-2.0
// Graphs in files: constants, what is written is read as the same nodes, what no file can say is refused, and so is what is no graph.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/cleave.h"
#include "graph/graph.h"
#include "harness/harness.h"
#include "harness/same_node.h"
#include "tensor/dtype.h"

static clv_runtime *runtime;
static char *folder, path[512];

FIXTURE(setup) {
    runtime = clv__test_runtime(NULL);
    folder = clv__test_folder();
    snprintf(path, sizeof path, "%s/graph.safetensors", folder);
}

FIXTURE(teardown) {
    clv_runtime_destroy(runtime);
    free(folder);
}

static clv_graph *empty_graph(void) {
    return clv__test_graph(runtime);
}

/** What is read has the nodes that were written, up to those of gradients. */
static void comes_back(const clv_graph *graph) {
    clv_graph *read = empty_graph();
    assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
    assert_status(clv_graph_read(read, path), CLV_OK, runtime);
    assert_true(read->n_nodes <= graph->n_nodes);
    for (size_t i = 0; i < read->n_nodes; i++) clv__test_same_node(graph->nodes[i], read->nodes[i]);
    if (read->n_nodes < graph->n_nodes) assert_true(graph->nodes[read->n_nodes]->phase != CLV__FORWARD);
    assert_int_equal(clv_graph_info_get(read).n_parameters, clv_graph_info_get(graph).n_parameters);
    for (int i = 0; i < clv_graph_info_get(read).n_parameters; i++) {
        const clv_tensor *p = clv_parameter_get(graph, i), *q = clv_parameter_get(read, i);
        assert_string_equal(p->name, q->name);
        assert_string_equal(p->layer, q->layer);
        assert_int_equal(p->requires_grad, q->requires_grad);
        assert_memory_equal(&p->init, &q->init, sizeof p->init);
    }
    assert_int_equal(clv__graph_training(read), clv__graph_training(graph));
    clv_graph_destroy(read);
}

TEST(models_come_back) {
    const clv_gpt_config small = {
        .vocabulary = 17, .context = 8, .layers = 2, .heads = 2, .width = 12, .dropout = 0.1f};
    const clv_model gpt = clv_gpt_model(&small);
    for (int i = -1; clv_model_get(i); i++) {
        for (int precision = CLV_PRECISION_F32; precision <= CLV_PRECISION_MIXED_BF16; precision++) {
            const clv_train_config config = {.model = i < 0 ? &gpt : clv_model_get(i),
                                             .precision = (clv_precision)precision,
                                             .optimizer = {.kind = CLV_SGD, .momentum = 0.9f}};
            clv_graph *graph;
            assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, 2, &graph), CLV_OK, runtime);
            comes_back(graph);
            clv_graph_destroy(graph);
            assert_status(clv_pass_graph(runtime, &config, CLV_PASS_PREDICT, 3, &graph), CLV_OK, runtime);
            comes_back(graph);
            clv_graph_destroy(graph);
        }
    }
}

/** What is not of a builder's default: frozen parameters, detached values, devices, layers, types, numbers that JSON has not. */
TEST(what_was_asked_for_comes_back) {
    clv_graph *graph = empty_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 5, 5));
    clv_requires_grad(x, true);
    clv_scope_push(graph, "a.b");
    clv_tensor *y = clv_nn_conv2d(
        x, "c", 4, &(clv_nn_conv2d_config){.kernel = {3}, .padding = {1, -1}, .stride = {2, 1}});
    clv_scope_pop(graph);
    clv_freeze(graph, "a.b.c");
    y = clv_clamp(clv_detach(clv_relu(y)), -INFINITY, 1);
    clv_graph_set_place(graph, "host");
    y = clv_add(y, clv_nn_dropout(y, 0.5f));
    clv_graph_set_place(graph, NULL);
    y = clv_to(clv_cast(clv_cast(y, CLV_DTYPE_F16), CLV_DTYPE_F32), "host");
    clv_output(clv_sum(y, (int[]){-1, 0}, 2, true), "sums");
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    comes_back(graph);
    clv_graph_destroy(graph);
}

/** Casts that builders make for ops which take no half: the reader's builders make them again. */
TEST(casts_come_back) {
    clv_graph *graph = empty_graph();
    clv_graph_set_precision(graph, CLV_PRECISION_MIXED);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 4));
    clv_tensor *y = clv_nn_linear(x, "fc", 4, NULL);
    assert_int_equal(clv_tensor_dtype(y), CLV_DTYPE_F16);
    clv_tensor *z = clv_linear(x, y, NULL); // its weight is f32
    clv_output(clv_add(z, clv_linear(z, y, NULL)), "y");
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_int_equal(graph->n_nodes, 5); // one cast for both
    comes_back(graph);
    clv_graph_destroy(graph);
}

// ---- constants ------------------------------------------------------------------------------------------------------

static const float table[4][2] = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
static const int32_t chosen[3] = {3, 0, 2};

/** y = table[chosen] * x, by a graph that has been in a file or not. */
static void compute(clv_graph *graph, const char *device, float y[3][2]) {
    const float x[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    int64_t ticket;
    clv_device *on = clv__test_device(runtime, device);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = on});
    clv_session *session = clv__test_session(runtime, &(clv_session_config){.seed = 1});
    clv_run *run = clv__test_run(runtime, session, plan);
    for (int k = 0; k < 2; k++) { // constants last
        assert_status(clv_run_feed(run, clv_graph_find(graph, "x"), x, sizeof x), CLV_OK, runtime);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        assert_status(clv_run_fetch(run, ticket, clv_graph_find(graph, "y"), y, 3 * sizeof *y), CLV_OK,
                      runtime);
    }
    clv__test_end(run, session, plan, NULL);
}

static clv_graph *with_constants(void) {
    clv_graph *graph = empty_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3, 2));
    clv_tensor *rows = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(4, 2), table);
    assert_ptr_equal(clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(4, 2), table), rows);
    assert_ptr_not_equal(clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(2, 4), table), rows);
    assert_non_null(clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(0), NULL));
    clv_tensor *y = clv_mul(clv_embedding(rows, clv_constant(graph, CLV_DTYPE_I32, CLV_SHAPE(3), chosen)), x);
    for (clv_dtype dtype = CLV_DTYPE_F32; clv_dtype_bytes(dtype); dtype++) { // times 1 in each
        uint64_t one = 0;
        if (clv__is_half(dtype) || dtype == CLV_DTYPE_I64)
            continue; // a device may have no numbers of 64 bits
        clv__elements_narrow(dtype, &(double){1}, 1, &one);
        clv_tensor *is_one = clv_cast(clv_constant(graph, dtype, CLV_SHAPE(1), &one), CLV_DTYPE_BOOL);
        y = clv_mul(y, clv_cast(is_one, CLV_DTYPE_F32));
    }
    clv_output(y, "y");
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_int_equal(clv_graph_info_get(graph).n_parameters, 0);
    return graph;
}

TEST(constants_are_there) {
    const float wanted[3][2] = {{6, 14}, {0, 4}, {20, 30}};
    static const char *const devices[] = {"host", "cpu", "gpu"};
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        clv_device *found;
        if (d && clv_device_find(runtime, devices[d], &found) != CLV_OK) continue; // a build without OpenCL
        for (int from_file = 0; from_file < 2; from_file++) {
            float y[3][2];
            clv_graph *graph = with_constants();
            if (from_file) {
                assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
                clv_graph_destroy(graph);
                graph = empty_graph();
                assert_status(clv_graph_read(graph, path), CLV_OK, runtime);
            }
            compute(graph, devices[d], y);
            assert_memory_equal(y, wanted, sizeof y);
            clv_graph_destroy(graph);
        }
    }
}

/** One session, two graphs: each has its own. And large ones, that are written by several threads. */
TEST(constants_do_not_meet) {
    enum { N = 200001 };
    float *values = malloc(N * sizeof *values), got;
    clv_device *host = clv__test_device(runtime, "host");
    clv_session *session = clv__test_session(runtime, &(clv_session_config){0});
    for (int k = 0; k < 2; k++) {
        clv_graph *graph = empty_graph();
        int64_t ticket;
        for (int i = 0; i < N; i++) values[i] = (float)(i + k);
        clv_output(clv_slice(clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(N), values), 0, N - 1, 1), "y");
        memset(values, 0, N * sizeof *values); // it was copied
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
        clv_run *run = clv__test_run(runtime, session, plan);
        assert_status(clv_run_step(run, &ticket), CLV_OK, runtime);
        assert_status(clv_run_fetch(run, ticket, clv_graph_find(graph, "y"), &got, sizeof got), CLV_OK,
                      runtime);
        assert_true(got == (float)(N - 1 + k));
        clv_run_destroy(run);
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
    clv_session_destroy(session);
    free(values);
}

TEST(bad_constants) {
    const struct {
        clv_dtype dtype;
        clv_shape shape;
        const void *data;
        clv_status status;
        const char *sentence;
    } cases[] = {
        {CLV_DTYPE_F16, CLV_SHAPE(1), table, CLV_E_DTYPE, "a constant cannot be f16"},
        {CLV_DTYPE_F32, CLV_SHAPE(2), NULL, CLV_E_VALUE, "a constant needs its values"},
        {CLV_DTYPE_F32, CLV_SHAPE(-2), table, CLV_E_SHAPE, "a constant"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_graph *graph = empty_graph();
        assert_null(clv_constant(graph, cases[i].dtype, cases[i].shape, cases[i].data));
        assert_status(clv_graph_status(graph), cases[i].status, runtime);
        assert_holds(clv_runtime_error(runtime), cases[i].sentence);
        clv_graph_destroy(graph);
    }
}

// ---- what cannot be written, what cannot be read --------------------------------------------------------------------

TEST(what_no_file_can_say) {
    const clv_train_config config = {.model = clv_model_find("mlp"), .micro_batches = 2};
    clv_graph *graph;
    assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, 4, &graph), CLV_OK, runtime);
    assert_status(clv_graph_write(graph, path), CLV_E_UNSUPPORTED, runtime);
    assert_holds(clv_runtime_error(runtime), "it is computed for a part of the batch");
    clv_graph_destroy(graph);
    graph = empty_graph();
    clv_scope_push(graph, "open");
    assert_status(clv_graph_write(graph, path), CLV_E_STATE, runtime);
    clv_graph_destroy(graph);
    graph = with_constants();
    assert_status(clv_graph_write(graph, "/no/such/folder/graph"), CLV_E_IO, runtime);
    assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
    assert_status(clv_graph_read(graph, path), CLV_E_STATE, runtime);
    clv_graph_destroy(graph);
}

/** Files whose text is this, with ' for ". */
static void write_text(const char *text) {
    char *json = strdup(text);
    for (char *c = json; *c; c++)
        if (*c == '\'') *c = '"';
    clv_archive *archive = clv__test_archive(runtime);
    assert_status(clv_archive_set_text(archive, "cleave.graph", json), CLV_OK, runtime);
    assert_status(clv_safetensors_write(archive, path), CLV_OK, runtime);
    clv_archive_destroy(archive);
    free(json);
}

#define HEAD "{'version':1,'training':false,'precision':'f32',"
#define X "'inputs':[{'name':'x','dtype':'f32','shape':[2,3]}],'state':[]"
#define NODES(...) HEAD X ",'nodes':[" __VA_ARGS__ "],'outputs':[]}"
#define STATE(piece) HEAD "'inputs':[],'state':[" piece "],'nodes':[],'outputs':[]}"

/** Numbers of a file, and those that it leaves out, in any locale. */
TEST(numbers_are_as_the_c_calls_have_them) {
    clv_graph *graph = empty_graph(), *read = empty_graph();
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
    x = clv_leaky_relu(clv_leaky_relu(x, 0.01f), 1.25f);
    write_text(NODES("{'op':'leaky_relu','inputs':['x']},"
                     "{'op':'leaky_relu','inputs':[[0,0]],'attributes':{'negative_slope':1.25}}"));
    assert_status(clv_graph_read(read, path), CLV_OK, runtime);
    assert_int_equal(read->n_nodes, 2);
    for (size_t i = 0; i < read->n_nodes; i++) clv__test_same_node(graph->nodes[i], read->nodes[i]);
    clv_graph_destroy(graph);
    clv_graph_destroy(read);
}

TEST(what_is_no_graph) {
    static const struct {
        const char *text;
        clv_status status;
        const char *sentence;
    } cases[] = {
        {"{", CLV_E_FORMAT, "the graph: it is no JSON"},
        {"{}", CLV_E_FORMAT, "no whole number 'version'"},
        {"[]", CLV_E_FORMAT, "no whole number 'version'"},
        {"{'version':2}", CLV_E_UNSUPPORTED, "it is of version 2; this Cleave reads version 1"},
        {"{'version':1}", CLV_E_FORMAT, "'training' is neither true nor false"},
        {"{'version':1,'training':true,'precision':'f8'}", CLV_E_FORMAT, "'precision' is none of"},
        {HEAD "'inputs':0}", CLV_E_FORMAT, "the graph: no list 'inputs'"},
        {HEAD "'inputs':[0]}", CLV_E_FORMAT, "input 0: no text 'name'"},
        {HEAD "'inputs':[{'name':'x','dtype':'f64','shape':[]}]}", CLV_E_FORMAT, "there is no type 'f64'"},
        {HEAD "'inputs':[{'name':'x','dtype':'f32','shape':[1,1,1,1,1,1,1,1,1]}]}", CLV_E_FORMAT,
         "'shape' is no list"},
        {HEAD "'inputs':[{'name':'x','dtype':'f32','shape':[1.5]}]}", CLV_E_FORMAT,
         "'shape' holds what is no whole"},
        {HEAD "'inputs':[{'name':'x','dtype':'f32','shape':[-1]}]}", CLV_E_SHAPE, "input 0: 'x': shape [-1]"},
        {HEAD "'inputs':[{'name':'x','dtype':'i32','shape':[1],'requires_grad':true}]}", CLV_E_DTYPE,
         "only floats"},
        {HEAD "'inputs':[{'name':'x','dtype':'f32','shape':[1],'requires_grad':1}]}", CLV_E_FORMAT,
         "'requires_grad'"},
        {STATE("{'kind':'parameter','name':'w','dtype':'f32','shape':[2]}"), CLV_E_FORMAT,
         "state tensor 0: 'init'"},
        {STATE("{'kind':'thing','name':'w','dtype':'f32','shape':[2],'init':['ones',0,0]}"), CLV_E_FORMAT,
         "'kind'"},
        {STATE("{'kind':'parameter','name':'w','dtype':'i32','shape':[2],'init':['ones',0,0]}"), CLV_E_FORMAT,
         "a parameter cannot be i32"},
        {STATE("{'kind':'constant','name':'c','dtype':'f32','shape':[2]}"), CLV_E_NOT_FOUND, "'c'"},
        {NODES("{'op':'relu'}"), CLV_E_FORMAT, "node 0: no list 'inputs'"},
        {NODES("{'op':'rellu','inputs':['x']}"), CLV_E_NOT_FOUND,
         "node 0: there is no op 'rellu'; did you mean 'relu'?"},
        {NODES("{'op':'relu','inputs':['y']}"), CLV_E_FORMAT, "there is no 'y' to read"},
        {NODES("{'op':'relu','inputs':[0]}"), CLV_E_FORMAT, "it reads a result that is not there yet"},
        {NODES("{'op':'relu','inputs':[-1]}"), CLV_E_FORMAT, "it reads a result that is not there yet"},
        {NODES("{'op':'relu','inputs':[null]}"), CLV_E_VALUE, "relu: x is NULL"},
        {NODES("{'op':'relu','inputs':['x']},{'op':'relu','inputs':[[0,3]]}"), CLV_E_FORMAT,
         "output 3 of node 0"},
        {NODES("{'op':'relu','inputs':['x'],'attributes':[]}"), CLV_E_FORMAT, "'attributes' is no object"},
        {NODES("{'op':'relu','inputs':['x'],'attributes':{'a':1}}"), CLV_E_NOT_FOUND,
         "relu has no attribute 'a'; it has: none"},
        {NODES("{'op':'relu','inputs':['x'],'attributes':{'a':null}}"), CLV_E_FORMAT, "'a' is no number"},
        {NODES("{'op':'cast','inputs':['x'],'attributes':{'dtype':'f64'}}"), CLV_E_FORMAT,
         "'dtype' is no type"},
        {NODES("{'op':'softmax','inputs':['x'],'attributes':{'axis':7}}"), CLV_E_VALUE, "axis 7"},
        {NODES("{'op':'relu','inputs':['x'],'layer':''}"), CLV_E_VALUE, "a scope needs a name"},
        {HEAD X ",'nodes':[{'op':'relu','inputs':['x']}],'outputs':[0]}", CLV_E_FORMAT,
         "output 0: it is no pair"},
        {HEAD X ",'nodes':[{'op':'relu','inputs':['x']}],'outputs':[['x','y']]}", CLV_E_FORMAT,
         "output 0: it is no pair"},
        {HEAD X ",'nodes':[{'op':'relu','inputs':['x']}],'outputs':[[0,'x']]}", CLV_E_VALUE,
         "already has a tensor named"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_graph *graph = empty_graph();
        write_text(cases[i].text);
        assert_status(clv_graph_read(graph, path), cases[i].status, runtime);
        assert_holds(clv_runtime_error(runtime), cases[i].sentence);
        assert_holds(clv_runtime_error(runtime), path);
        assert_true(clv_graph_status(graph) != CLV_OK); // nobody builds on it
        clv_graph_destroy(graph);
    }
}

TEST(values_of_another_constant) {
    clv_graph *graph = with_constants();
    clv_archive *archive;
    assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
    assert_status(clv_safetensors_read(runtime, path, &archive), CLV_OK, runtime);
    size_t i = 0;
    while (!clv_array_bytes(clv_archive_get(archive, i))) i++;
    ((int32_t *)clv_archive_get(archive, i)->data)[0] ^= 1;
    assert_status(clv_safetensors_write(archive, path), CLV_OK, runtime);
    clv_archive_destroy(archive);
    clv_graph_destroy(graph);
    graph = empty_graph();
    assert_status(clv_graph_read(graph, path), CLV_E_FORMAT, runtime);
    assert_holds(clv_runtime_error(runtime), "the values are those of 'constant_");
    clv_graph_destroy(graph);
}

TEST(weights_are_no_graph) {
    clv_graph *graph = empty_graph();
    clv_archive *archive = clv__test_archive(runtime);
    assert_status(clv_safetensors_write(archive, path), CLV_OK, runtime);
    clv_archive_destroy(archive);
    assert_status(clv_graph_read(graph, path), CLV_E_FORMAT, runtime);
    assert_holds(clv_runtime_error(runtime), "holds no graph: its metadata has no 'cleave.graph'");
    clv_graph_destroy(graph);
}

TEST_MAIN(setup, teardown)
