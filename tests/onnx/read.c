// SPDX-License-Identifier: Apache-2.0
// Models that clv_onnx_read makes, or refuses, of files that are made here: ops that are missing are told together, open dimensions by
// their names; weights go from the file to the device without a copy of all of them.
#include "message.h"

#include <malloc.h>
#include <stdatomic.h>

#include "cleave/cleave.h"

/** x: floats [N, 8]; a name where a dimension is open. */
static message *put_tensor_info(message *graph, unsigned field, const char *name, int type,
                                const char *dims) {
    message shape = {0}, tensor_type = {0}, of_type = {0}, info = {0};
    for (const char *at = dims; *at; at += strcspn(at, ","), at += *at == ',') {
        message dim = {0};
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(at, ","), at);
        if (text[0] >= '0' && text[0] <= '9')
            put_int(&dim, 1, strtoll(text, NULL, 10));
        else if (text[0] != '?')
            put_text(&dim, 2, text);
        put(&shape, 1, &dim);
    }
    put_int(&tensor_type, 1, type);
    put(&tensor_type, 2, &shape);
    put(&of_type, 1, &tensor_type);
    put_text(&info, 1, name);
    put(&info, 2, &of_type);
    return put(graph, field, &info);
}

/** A node of several inputs, `a b c`. */
static message *put_call(message *graph, const char *name, const char *op, const char *inputs,
                         const char *output) {
    message m = {0};
    for (const char *at = inputs; *at; at += strcspn(at, " "), at += *at == ' ')
        put_data(&m, 1, at, strcspn(at, " "));
    put_text(put_text(put_text(&m, 2, output), 3, name), 4, op);
    return put(graph, 1, &m);
}

static message *put_i64(message *graph, const char *name, int64_t value) {
    message t = {0};
    put_text(put_int(&t, 2, 7), 8, name);
    put_data(&t, 9, &value, sizeof value);
    return put(graph, 5, &t);
}

static message *put_floats(message *graph, const char *name, int64_t n, const float *values) {
    message t = {0};
    put_text(put_int(put_int(&t, 1, n), 2, 1), 8, name);
    put_data(&t, 9, values, (size_t)n * sizeof *values);
    return put(graph, 5, &t);
}

/** From x [N,3], y. */
static clv_status read_graph(message *graph, const char *x, const char *dims, clv_onnx **out) {
    put_tensor_info(graph, 11, "x", 1, x);
    put_info(graph, 12, "y");
    message m = model_of(graph, 17);
    write_file("m.onnx", m.bytes, m.n);
    free(m.bytes);
    return clv_onnx_read(support_runtime, "m.onnx", &(clv_onnx_config){.dims = dims}, out);
}

static void refuse(message *graph, const char *x, const char *dims, clv_status status, const char *sentence) {
    clv_onnx *onnx = NULL;
    const clv_status got = read_graph(graph, x, dims, &onnx);
    assert_null(onnx);
    assert_string_equal(clv_runtime_error(support_runtime), sentence);
    assert_int_equal(got, status);
}

static void accept(message *graph, const char *x, const char *dims) {
    clv_onnx *onnx = NULL;
    expect_ok(read_graph(graph, x, dims, &onnx));
    clv_onnx_destroy(onnx);
}

TEST(tells_of_all_ops_that_are_missing) {
    message g = {0};
    put_i64(put_i64(put_i64(&g, "zero", 0), "one", 1), "three", 3);
    put_call(&g, "first", "Nowhere", "x", "a");
    put_call(&g, "places", "NonZero", "x", "b");
    put_call(&g, "more places", "NonZero", "a", "c");
    put_call(&g, "steps", "Range", "zero three one", "d"); // known, so fine
    put_call(&g, "known places", "NonZero", "d", "e");     // so is this
    put_call(&g, "fed steps", "Range", "zero c one", "f");
    put_call(&g, "", "Nowhere", "f", "y");
    refuse(
        &g, "N,3", NULL, CLV_E_UNSUPPORTED,
        "'m.onnx' wants 3 ops that Cleave does not have: Nowhere: 2 nodes, the first node 'first' (Nowhere); "
        "NonZero of what is fed: 2 nodes, the first node 'places' (NonZero); Range of what is fed: 1 node, "
        "the "
        "first node 'fed steps' (Range)");
}

/** What a branch wants is told with its If. */
TEST(looks_into_branches) {
    message g = {0}, branch = {0}, attribute = {0}, m = node("if", "If", "x", "y");
    put_node(&branch, "inner", "Nowhere", "x", "z");
    put_node(&branch, "inner places", "NonZero", "x", "w");
    put_info(&branch, 12, "z");
    put_text(put_int(&attribute, 20, 5), 1, "then_branch");
    put(&attribute, 6, &branch);
    put(&m, 5, &attribute);
    put(&g, 1, &m);
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "'m.onnx' wants 3 ops that Cleave does not have: Nowhere: 1 node, the first node 'inner' "
           "(Nowhere); NonZero "
           "of what is fed: 1 node, the first node 'inner places' (NonZero); If of what is fed: 1 node, the "
           "first node 'if' (If)");
}

/** A node with a graph as its attribute. */
static message *put_flow(message *graph, const char *op, const char *inputs, const char *output,
                         const char *first, message *body, const char *second, message *other) {
    message m = {0};
    for (const char *at = inputs; *at; at += strcspn(at, " "), at += *at == ' ')
        put_data(&m, 1, at, strcspn(at, " "));
    put_text(put_text(put_text(&m, 2, output), 3, op), 4, op);
    for (int i = 0; i < (other ? 2 : 1); i++) {
        message attribute = {0};
        put_text(put_int(&attribute, 20, 5), 1, i ? second : first);
        put(&attribute, 6, i ? other : body);
        put(&m, 5, &attribute);
    }
    return put(graph, 1, &m);
}

/** A turn: on, and b = op of what a loop hands on as a. */
static message turn_of(const char *op) {
    message g = {0};
    put_info(put_info(put_info(&g, 11, "i"), 11, "go"), 11, "a");
    put_call(&g, "", op, "a", "b");
    return *put_info(put_info(&g, 12, "go"), 12, "b");
}

/** However often a loop says it turns, and however deep loops are in loops. */
TEST(loops_have_a_bound) {
    message g = {0}, body = turn_of("Relu");
    put_i64(&g, "often", 1000000000);
    put_flow(&g, "Loop", "often  x", "y", "body", &body, NULL, NULL);
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "node 'Loop' (Loop): loops are unrolled, to at most 65536 nodes in a file, and these are more");
    body = turn_of("Identity"); // a turn makes nothing
    put_flow(&g, "Loop", "  x", "y", "body", &body, NULL, NULL);
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "node 'Loop' (Loop): loops are unrolled, to at most 65536 nodes in a file, and these are more");
    body = turn_of("Relu");
    for (int i = 0; i < 50; i++) {
        message around = {0};
        put_info(put_info(put_info(&around, 11, "i"), 11, "go"), 11, "a");
        put_flow(&around, "Loop", "twice  a", "b", "body", &body, NULL, NULL);
        body = *put_info(put_info(&around, 12, "go"), 12, "b");
    }
    put_i64(&g, "twice", 2);
    put_flow(&g, "Loop", "twice  x", "y", "body", &body, NULL, NULL);
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "node 'Loop' (Loop): loops are unrolled, to at most 65536 nodes in a file, and these are more");
}

TEST(flow_must_be_known) {
    message g = {0}, body = turn_of("Relu");
    put_call(&g, "", "ReduceMax", "x", "n");
    put_flow(&g, "Loop", "n  x", "y", "body", &body, NULL, NULL);
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "'m.onnx' wants 1 op that Cleave does not have: Loop of what is fed: 1 node, the first node "
           "'Loop' (Loop)");
    body = turn_of("Relu"), body.n = 0; // the condition is made of what is fed
    put_info(put_info(put_info(&body, 11, "i"), 11, "go"), 11, "a");
    put_call(put_call(&body, "", "Relu", "a", "b"), "", "ReduceMax", "a", "on");
    put_info(put_info(&body, 12, "on"), 12, "b");
    put_i64(&g, "twice", 2);
    put_flow(&g, "Loop", "twice  x", "y", "body", &body, NULL, NULL);
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "node 'Loop' (Loop): whether the loop goes on ('on') depends on the values that are fed, and must "
           "be known");
    body = turn_of("Relu");
    put_flow(&g, "Loop", "twice  x x", "y", "body", &body, NULL, NULL);
    put_i64(&g, "twice", 2);
    refuse(&g, "N,3", NULL, CLV_E_FORMAT,
           "node 'Loop' (Loop): its graph takes 3 values and gives 2, where 4 are given and 3 are wanted");
    put_call(&g, "Scan", "Scan", "x", "y");
    refuse(&g, "N,3", NULL, CLV_E_FORMAT, "node 'Scan' (Scan): it has no graph 'body'");
}

/** The sentence ends where its room does, and says so. */
TEST(tells_of_many) {
    message g = {0};
    for (int i = 0; i < 40; i++) {
        char op[48];
        snprintf(op, sizeof op, "AnOpThatNobodyEverHeardOf%d", i);
        put_call(&g, "n", op, "x", op);
    }
    put_call(&g, "relu", "Relu", "x", "y");
    clv_onnx *onnx = NULL;
    expect_failure(read_graph(&g, "N,3", NULL, &onnx), CLV_E_UNSUPPORTED, "'m.onnx' wants 40 ops that Cleave",
                   "AnOpThatNobodyEverHeardOf9: 1 node, the first", "; and ", " more");
}

/** Shapes, and initializers of floats too, are known to what the host alone computes. */
TEST(computes_what_is_known) {
    message g = {0};
    put_call(&g, "shape", "Shape", "x", "s");
    put_call(&g, "places", "NonZero", "s", "p");
    put_floats(&g, "mask", 3, (float[]){0, 2, 1});
    put_call(&g, "of mask", "NonZero", "mask", "q");
    put_call(&g, "", "Cast", "q", "unused");
    put_call(&g, "", "Gather", "x p", "y");
    accept(&g, "N,3", NULL);
}

TEST(says_what_a_range_is) {
    message g = {0};
    put_i64(put_i64(put_i64(&g, "zero", 0), "one", 1), "far", 5000000);
    put_call(&g, "steps", "Range", "zero far one", "d");
    put_call(&g, "", "Add", "x d", "y");
    refuse(&g, "N,3", NULL, CLV_E_UNSUPPORTED,
           "node 'steps' (Range): from 0 to 5e+06 in steps of 1 are 5e+06 numbers, and 1048576 are the most "
           "that a "
           "graph is built with");
    put_i64(put_i64(&g, "zero", 0), "far", 5);
    put_call(&g, "steps", "Range", "zero far zero", "d");
    put_call(&g, "", "Add", "x d", "y");
    refuse(&g, "N,3", NULL, CLV_E_VALUE, "node 'steps' (Range): steps of 0 never come from 0 to 5");
}

/** One that is too large for the host is made on the device. */
TEST(makes_a_large_constant) {
    message g = {0}, t = {0};
    put_text(put_int(put_int(&t, 1, 2), 2, 7), 8, "shape");
    put_data(&t, 9, (int64_t[]){1, 3000000}, 16);
    put(&g, 5, &t);
    put_call(&g, "fill", "ConstantOfShape", "shape", "d");
    put_call(&g, "", "Add", "x d", "y");
    accept(&g, "N,3000000", NULL);
}

TEST(wants_open_dimensions_by_name) {
    message g = {0};
    put_call(&g, "", "Relu", "x", "y");
    refuse(&g, "N,seq,4", NULL, CLV_E_VALUE,
           "'m.onnx': dimension 1 of the input 'x' is open: say how large 'seq' is (clv_onnx_config.dims = "
           "seq=128)");
    put_call(&g, "", "Relu", "x", "y");
    refuse(&g, "N,?,4", NULL, CLV_E_VALUE,
           "'m.onnx': dimension 1 of the input 'x' is open and has no name: write the file again with one, "
           "or with "
           "a number");
    static const char *const wrong[] = {"seq=0", "seq=", "seq", "seq=1x", "seq=-4"};
    for (int i = 0; i < 5; i++) {
        put_call(&g, "", "Relu", "x", "y");
        refuse(&g, "N,seq,4", wrong[i], CLV_E_VALUE,
               "'m.onnx': the dimension 'seq' must be a whole number from 1, as in seq=128 "
               "(clv_onnx_config.dims)");
    }
    static const char *const unknown[] = {"sequence=4", "se=4", "N=4"};
    for (int i = 0; i < 3; i++) {
        char sentence[160];
        snprintf(sentence, sizeof sentence,
                 "'m.onnx' has no open dimension '%.*s' behind the batch (clv_onnx_config.dims)",
                 (int)strcspn(unknown[i], "="), unknown[i]);
        put_call(&g, "", "Relu", "x", "y");
        refuse(&g, "N,seq,4", unknown[i], CLV_E_VALUE, sentence);
    }
    clv_onnx *onnx = NULL;
    put_call(&g, "", "Relu", "x", "y");
    expect_ok(read_graph(&g, "N,seq,height", "height=5,seq=7", &onnx));
    const clv_model *model = clv_onnx_info_get(onnx).model;
    assert_int_equal(model->input[0], 7);
    assert_int_equal(model->input[1], 5);
    clv_onnx_destroy(onnx);
}

/** What a model of a file builds for a batch of 2. */
static clv_status build_two(const clv_onnx *onnx, clv_shape *out) {
    const clv_model *model = clv_onnx_info_get(onnx).model;
    clv_graph *graph = NULL;
    expect_ok(clv_graph_create(support_runtime, &graph));
    const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, 0);
    *out =
        clv_tensor_shape(clv_model_build(model, clv_input(graph, "x", port.dtype, clv_port_shape(&port, 2))));
    const clv_status status = clv_graph_status(graph);
    clv_graph_destroy(graph);
    return status;
}

/** Results have the batch first, or second, which is exchanged, also where the file's own is as large as the dimension before it. */
TEST(gives_a_row_for_each_sample) {
    clv_onnx *onnx = NULL;
    clv_shape shape;
    static const char *const batches[] = {"N,3", "4,3", "3,3"};
    for (int i = 0; i < 3; i++) {
        message g = {0};
        put_call(&g, "turn", "Transpose", "x", "y");
        expect_ok(read_graph(&g, batches[i], NULL, &onnx));
        expect_ok(build_two(onnx, &shape));
        assert_true(shape.rank == 2 && shape.dims[0] == 2 && shape.dims[1] == 3);
        clv_onnx_destroy(onnx);
    }
    message g = {0};
    put_call(&g, "all", "ReduceSum", "x", "y");
    expect_ok(read_graph(&g, "N,3", NULL, &onnx));
    assert_int_equal(build_two(onnx, &shape), CLV_E_UNSUPPORTED);
    assert_string_equal(
        clv_runtime_error(support_runtime),
        "'m.onnx': the result 'y' of node 'all' (ReduceSum) is [1,1] and has no row for each of the 2 "
        "samples of a "
        "batch; export the model up to results that have (a loss is computed here), or name those "
        "(clv_onnx_config.targets)");
    clv_onnx_destroy(onnx);
}

/** Nodes and edges of one graph are no batch; an op's own sentence has its node before it. */
TEST(wants_a_batch) {
    message g = {0};
    put_tensor_info(&g, 11, "edges", 1, "2,5");
    put_call(&g, "sum", "Add", "x edges", "y");
    refuse(&g, "8,3", NULL, CLV_E_SHAPE,
           "'m.onnx': the first dimension of each input must be the batch, and 'edges' has 2, 'x' 8; a model "
           "without "
           "a batch, as one of a graph's nodes and edges, can be built by clv_onnx_append, or in Python by "
           "cleave.compile: node 'sum' (Add): add#0: shapes [1,3] and [1,5] do not broadcast: 3 and 5 meet, "
           "and neither is 1 "
           "(inputs: f32 [1,3], f32 [1,5])");
}

// ---- weights ------------------------------------------------------------------------------------------------------------

// The most bytes of heap that there are at once while `counting`, beyond those before. Several threads take them.
static atomic_bool counting;
static atomic_long held, most;

static void *count(void *pointer) {
    if (!counting || !pointer) return pointer;
    const long now =
        atomic_fetch_add(&held, (long)malloc_usable_size(pointer)) + (long)malloc_usable_size(pointer);
    for (long is = most; now > is && !atomic_compare_exchange_weak(&most, &is, now);) {
    }
    return pointer;
}

static void discount(void *pointer) {
    if (counting && pointer) atomic_fetch_sub(&held, (long)malloc_usable_size(pointer));
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__real_realloc(void *pointer, size_t bytes);
void *__wrap_realloc(void *pointer, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *pointer);
void __wrap_free(void *pointer);

void *__wrap_malloc(size_t bytes) {
    return count(__real_malloc(bytes));
}
void *__wrap_calloc(size_t n, size_t bytes) {
    return count(__real_calloc(n, bytes));
}
void *__wrap_realloc(void *pointer, size_t bytes) {
    discount(pointer);
    return count(__real_realloc(pointer, bytes));
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return count(__real_aligned_alloc(alignment, bytes));
}
void __wrap_free(void *pointer) {
    discount(pointer);
    __real_free(pointer);
}

enum { ROWS = 4, COLUMNS = 1 << 19, LAYERS = 4 }; // 8 MiB each of floats

/** Sums of x with as many weights, each of ROWS * COLUMNS numbers of 1 and 2. `type` 1: f32; 10: f16; 16: bf16. */
static message large_graph(int type) {
    const size_t each = type == 1 ? 4 : 2, n = (size_t)ROWS * COLUMNS;
    uint8_t *values = malloc(n * each);
    message g = {0};
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) {
        const uint32_t of_float = i % 3 ? 0x3f800000 : 0x40000000, of_bf16 = of_float >> 16,
                       of_half = i % 3 ? 0x3c00 : 0x4000;
        memcpy(values + i * each, type == 1 ? &of_float : type == 16 ? &of_bf16 : &of_half, each);
    }
    char to[16];
    put_call(&g, "", "Relu", "x", "a0");
    for (int l = 0; l < LAYERS; l++) {
        char w[16], from[32], name[24];
        message t = {0};
        snprintf(w, sizeof w, "w%d", l);
        snprintf(name, sizeof name, "sum%d", l);
        snprintf(from, sizeof from, "a%d w%d", l, l);
        snprintf(to, sizeof to, "a%d", l + 1);
        put_text(put_int(put_int(put_int(&t, 1, ROWS), 1, COLUMNS), 2, type), 8, w);
        put_data(&t, 9, values, n * each);
        put(&g, 5, &t);
        put_call(&g, name, "Add", from, to);
    }
    put_call(&g, "", "Relu", to, "y");
    free(values);
    return g;
}

/** A model of a graph, to be run on the host, without its weights. */
typedef struct loaded {
    clv_onnx *onnx;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} loaded;

static loaded begin_loading(message *g, const char *dims) {
    loaded l = {0};
    clv_device *device;
    expect_ok(read_graph(g, dims, NULL, &l.onnx));
    const clv_model *model = clv_onnx_info_get(l.onnx).model;
    expect_ok(clv_device_find(support_runtime, "host", &device));
    expect_ok(clv_graph_create(support_runtime, &l.graph));
    clv_output(clv_model_build(model, clv_model_input(l.graph, model, 1)), "y");
    expect_ok(clv_plan_create(l.graph, &(clv_plan_config){.device = device}, &l.plan));
    expect_ok(clv_session_create(support_runtime, NULL, &l.session));
    expect_ok(clv_run_create(l.session, l.plan, &l.run));
    return l;
}

static void end_loading(loaded *l) {
    clv_run_destroy(l->run);
    clv_session_destroy(l->session);
    clv_plan_destroy(l->plan);
    clv_graph_destroy(l->graph);
    clv_onnx_destroy(l->onnx);
}

/** The most bytes of heap that loading takes at once. */
static size_t load(int type) {
    char dims[32];
    message g = large_graph(type);
    snprintf(dims, sizeof dims, "N,%d,%d", ROWS, COLUMNS);
    loaded l = begin_loading(&g, dims);
    held = most = 0;
    counting = true;
    const clv_status status = clv_weights_load(l.session, "m.onnx");
    counting = false;
    expect_ok(status);
    const int at = clv_session_find(l.session, "w3");
    const size_t bytes = sizeof(float) * ROWS * COLUMNS;
    float *values = malloc(bytes);
    assert_non_null(values);
    expect_ok(clv_session_read(l.session, at, values, bytes));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        if (values[i] != (i % 3 ? 1.0f : 2.0f)) fail_msg("number %d is %g", i, (double)values[i]);
    free(values);
    end_loading(&l);
    return (size_t)most;
}

/** Both branches may call their weights the same. */
TEST(branches_have_weights_of_their_own) {
    for (int64_t yes = 0; yes < 2; yes++) {
        message g = {0}, branches[2] = {{0}, {0}};
        for (int i = 0; i < 2; i++) {
            put_floats(&branches[i], "w", 3, (float[]){10 + (float)i, 2, 3});
            put_info(put_call(&branches[i], "", "Add", "x w", "z"), 12, "z");
        }
        put_i64(&g, "yes", yes);
        put_flow(&g, "If", "yes", "y", "then_branch", &branches[1], "else_branch", &branches[0]);
        loaded l = begin_loading(&g, "N,3");
        float values[3];
        expect_ok(clv_weights_load(l.session, "m.onnx"));
        assert_int_equal(clv_session_info_get(l.session).n_tensors, 1);
        expect_ok(clv_session_read(l.session, 0, values, sizeof values));
        assert_float_equal(values[0], 10 + (float)yes, 0);
        end_loading(&l);
    }
}

/** Floats go from the mapping to the device, by way of a buffer of at most 16 MiB. Others become floats one tensor at a time. */
TEST(copies_no_weights) {
    const size_t limit = 1 << 20, each = sizeof(float) * ROWS * COLUMNS;
    size_t is = load(1);
    if (is > limit + each) fail_msg("%zu bytes for %d times %zu", is, LAYERS, each);
    for (int type = 10; type <= 16; type += 6) {
        is = load(type);
        if (is > limit + 2 * each) fail_msg("type %d: %zu bytes for %d times %zu", type, is, LAYERS, each);
    }
}

/** PyTorch's newer exporter says which initializers are buffers: those are not trained. */
TEST(trains_no_buffers) {
    for (int buffer = 0; buffer < 2; buffer++) {
        message g = {0}, info = {0}, other = {0}, property = {0};
        put_floats(put_floats(&g, "w", 3, (float[]){1, 2, 3}), "b", 3, (float[]){4, 5, 6});
        put_call(put_call(&g, "", "Mul", "x w", "p"), "", "Add", "p b", "y");
        put_text(put_text(&other, 1, "a"), 2, "BUFFER");
        put_text(put_text(&property, 1, "pkg.torch.export.graph_signature.InputSpec.kind"), 2,
                 buffer ? "BUFFER" : "PARAMETER");
        put(put(put_text(&info, 1, "b"), 9, &other), 9, &property);
        put(&g, 13, &info);
        loaded l = begin_loading(&g, "N,3");
        assert_int_equal(clv_onnx_info_get(l.onnx).n_parameters, buffer ? 3 : 6);
        expect_ok(clv_weights_load(l.session, "m.onnx"));
        const int at = clv_session_find(l.session, "b");
        float values[3];
        expect_ok(clv_session_read(l.session, at, values, sizeof values));
        assert_float_equal(values[2], 6, 0);
        assert_int_equal(clv_session_get(l.session, at).trainable, !buffer);
        end_loading(&l);
    }
}

/** Weights of bytes stay bytes: they and the floats of one layer at a time are what a plan needs, though the file makes all of them first. */
TEST(keeps_bytes) {
    enum { WIDTH = 512, N = 6 };
    const size_t bytes = (size_t)WIDTH * WIDTH;
    uint8_t *values = calloc(bytes, 1);
    message g = {0};
    char name[16], from[32], to[16];
    assert_non_null(values);
    put_floats(&g, "scale", 1, (float[]){0.5f});
    for (int l = 0; l < N; l++) {
        message t = {0};
        values[0] = (uint8_t)l; // else all are one constant
        snprintf(name, sizeof name, "w%d", l);
        put_text(put_int(put_int(put_int(&t, 1, WIDTH), 1, WIDTH), 2, 2), 8, name);
        put_data(&t, 9, values, bytes);
        put(&g, 5, &t);
        snprintf(from, sizeof from, "w%d scale", l);
        snprintf(to, sizeof to, "v%d", l);
        put_call(&g, to, "DequantizeLinear", from, to);
    }
    for (int l = 0; l < N; l++) {
        if (l)
            snprintf(from, sizeof from, "y%d v%d", l, l);
        else
            snprintf(from, sizeof from, "x v0");
        snprintf(to, sizeof to, l + 1 < N ? "y%d" : "y", l + 1);
        put_call(&g, to, "MatMul", from, to);
    }
    free(values);
    loaded l = begin_loading(&g, "N,512");
    const uint64_t held_bytes = clv_plans_memory(&l.plan, 1, NULL).category[CLV_ACTIVATIONS],
                   most_bytes = N * bytes + 3 * sizeof(float) * bytes;
    if (held_bytes > most_bytes)
        fail_msg("%llu bytes, more than %llu", (unsigned long long)held_bytes,
                 (unsigned long long)most_bytes);
    end_loading(&l);
}

/** Of several results those are targets that are named, as classes or as numbers. */
TEST(takes_some_results) {
    static const struct {
        const char *targets, *names[3];
        int classes[3];
    } cases[] = {{NULL, {"a", "b", "c"}, {3, 3, 3}},
                 {"elsewhere", {"a", "b", "c"}, {3, 3, 3}},
                 {"c", {"c"}, {3}},
                 {"c=mse*2,a=cross_entropy", {"a", "c"}, {3, 0}},
                 {"b=*0.5", {"b"}, {3}},
                 {"b=l1", {"b"}, {0}}};
    message g = {0};
    put_tensor_info(&g, 11, "x", 1, "N,3");
    for (const char *name = "a\0b\0c"; *name; name += 2) {
        put_call(&g, name, "Relu", "x", name);
        put_info(&g, 12, name);
        if (*name == 'c') break;
    }
    message m = model_of(&g, 17);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clv_onnx *onnx;
        const clv_onnx_config config = {.targets = cases[i].targets};
        expect_ok(clv_onnx_read_bytes(support_runtime, "bytes", m.bytes, m.n, &config, &onnx));
        const clv_onnx_info info = clv_onnx_info_get(onnx);
        int n = 0;
        for (; n < 3 && cases[i].names[n]; n++) {
            assert_string_equal(info.ports[1 + n].name, cases[i].names[n]);
            assert_string_equal(clv_onnx_value_get(onnx, 1 + n).name, cases[i].names[n]);
            assert_int_equal(info.ports[1 + n].classes, cases[i].classes[n]);
        }
        assert_int_equal(info.n_targets, n);
        clv_onnx_destroy(onnx);
    }
    free(m.bytes);
}

/** The graph of a MatMul, and a Mul if asked, of bytes, for inputs of any shapes. */
static clv_status read_any(message *graph, uint8_t **bytes, clv_onnx **out) {
    put_tensor_info(graph, 11, "x", 1, "?,?");
    put_tensor_info(graph, 11, "k", 7, "");
    put_info(graph, 12, "y");
    message m = model_of(graph, 17);
    *bytes = m.bytes;
    return clv_onnx_read_bytes(support_runtime, "bytes", m.bytes, m.n, &(clv_onnx_config){.any_shape = true},
                               out);
}

static clv_status append(const clv_onnx *onnx, clv_graph *graph, clv_shape x, clv_tensor **y,
                         int64_t *failed) {
    clv_tensor *inputs[] = {clv_input(graph, "x", CLV_DTYPE_F32, x),
                            clv_input(graph, "k", CLV_DTYPE_I64, clv_shape_make(0, NULL))};
    return clv_onnx_append(onnx, graph, inputs, 2, y, 1, failed);
}

TEST(takes_any_shape) {
    message g = {0}, w = {0};
    const float values[] = {1, 2, 3, 4, 5, 6}, x[] = {1, 1, 0, 2};
    uint8_t *bytes;
    clv_onnx *onnx;
    put_int(put_int(put_int(&w, 1, 2), 1, 3), 2, 1);
    put_data(put_text(&w, 8, "w"), 9, values, sizeof values);
    put(&g, 5, &w);
    put_call(&g, "product", "MatMul", "x w", "a");
    message attribute = {0}, cast = {0};
    put_int(put_int(put_text(&attribute, 1, "to"), 20, 2), 3, 1);
    put_text(put_text(&cast, 1, "k"), 2, "factor");
    put_text(&cast, 4, "Cast");
    put(&cast, 5, &attribute);
    put(&g, 1, &cast);
    put_call(&g, "scaled", "Mul", "a factor", "y");
    expect_ok(read_any(&g, &bytes, &onnx));
    const clv_onnx_info info = clv_onnx_info_get(onnx);
    assert_null(info.model);
    assert_string_equal(info.missing, "");
    assert_int_equal(info.n_inputs, 2);
    assert_int_equal(info.n_targets, 1);
    assert_string_equal(clv_onnx_value_get(onnx, 1).name, "k");
    assert_int_equal(clv_onnx_value_get(onnx, 1).type, 7);
    assert_int_equal(clv_onnx_value_get(onnx, 0).rank, 2);
    assert_int_equal(clv_onnx_value_get(onnx, 0).dims[0], -1);
    assert_string_equal(clv_onnx_value_get(onnx, 2).name, "y");
    assert_null(clv_onnx_value_get(onnx, 3).name);

    clv_graph *graph = NULL;
    clv_tensor *y = NULL;
    int64_t failed = 7;
    expect_ok(clv_graph_create(support_runtime, &graph));
    assert_int_equal(append(onnx, graph, CLV_SHAPE(2, 3), &y, &failed), CLV_E_SHAPE); // its product
    assert_int_equal(failed, 0);
    clv_graph_destroy(graph);

    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    expect_ok(clv_graph_create(support_runtime, &graph));
    expect_ok(append(onnx, graph, CLV_SHAPE(2, 2), &y, &failed));
    assert_int_equal(failed, -1);
    clv_output(y, NULL);
    clv_device *host;
    expect_ok(clv_device_find(support_runtime, "host", &host));
    expect_ok(clv_plan_create(graph, &(clv_plan_config){.device = host}, &plan));
    expect_ok(clv_session_create(support_runtime, NULL, &session));
    expect_ok(clv_session_reserve(session, &plan, 1));
    expect_ok(clv_onnx_weights_load(session, onnx));
    expect_ok(clv_run_create(session, plan, &run));
    float got[6];
    const int64_t k = 10;
    const clv_feed feeds[] = {{clv_graph_find(graph, "x"), x, sizeof x},
                              {clv_graph_find(graph, "k"), &k, sizeof k}};
    const clv_fetch fetch = {y, got, sizeof got};
    expect_ok(clv_run_do(run, &(clv_step){.feeds = feeds, .n_feeds = 2, .fetches = &fetch, .n_fetches = 1}));
    const float wanted[] = {50, 70, 90, 80, 100, 120};
    assert_memory_equal(got, wanted, sizeof got);
    clv_run_destroy(run);
    clv_session_destroy(session);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_onnx_destroy(onnx);
    free(bytes);
}

/** Missing ops are told, and refused when they are built, with the place of the first. */
TEST(tells_where_it_fails) {
    message g = {0};
    uint8_t *bytes;
    clv_onnx *onnx;
    clv_graph *graph = NULL;
    clv_tensor *y = NULL;
    int64_t failed = -1;
    put_call(&g, "fine", "Relu", "x", "a");
    put_call(&g, "odd", "Nowhere", "a k", "y");
    expect_ok(read_any(&g, &bytes, &onnx));
    assert_string_equal(clv_onnx_info_get(onnx).missing,
                        "'bytes' wants 1 op that Cleave does not have: Nowhere: 1 node, the first node 'odd' "
                        "(Nowhere)");
    expect_ok(clv_graph_create(support_runtime, &graph));
    assert_int_equal(append(onnx, graph, CLV_SHAPE(1, 1), &y, &failed), CLV_E_UNSUPPORTED);
    assert_int_equal(failed, 1);
    assert_int_equal(clv_onnx_append(onnx, graph, &y, 1, &y, 1, NULL), CLV_E_VALUE);
    assert_string_equal(clv_runtime_error(support_runtime),
                        "'bytes' has 2 inputs and 1 results, and was given 1 and 1");
    clv_graph_destroy(graph);
    clv_onnx_destroy(onnx);
    free(bytes);
}

TEST_MAIN(support_begin, support_end)
