// SPDX-License-Identifier: Apache-2.0
// Every op by its name, from its signature alone: each sample of each op is called and comes back from a file as the same node; no
// builder of ops.h is without a signature; what a signature says of an output is so; every mistake that it names is refused.
#include <math.h>

#include "cleave/cleave.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "harness/harness.h"
#include "harness/same_node.h"

#define NUM(attribute, value)                                                                                \
    { .name = #attribute, .number = value }
#define LIST(attribute, ...)                                                                                 \
    {                                                                                                        \
        .name = #attribute, .list = (const int64_t[]){__VA_ARGS__},                                          \
        .n = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)                                        \
    }

// ---- samples, by name -----------------------------------------------------------------------------------------------

/** A graph with a sample's inputs. */
static clv_graph *graph_of(clv_runtime *runtime, const clv__sample *sample, clv_tensor **in) {
    char name[16];
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    for (int i = 0; i < sample->n_in; i++) {
        snprintf(name, sizeof name, "in%d", i);
        in[i] = sample->in[i].dtype ? clv_input(graph, name, sample->in[i].dtype, sample->in[i].shape) : NULL;
    }
    return graph;
}

/** The attributes of a call as its arguments. */
typedef struct arguments {
    clv_op_argument at[CLV_NODE_ARGUMENTS];
    int64_t lists[CLV_NODE_ARGUMENTS][CLV_MAX_RANK];
    int n;
} arguments;

static void arguments_of(const clv_op_attribute *list, const void *attrs, arguments *out) {
    out->n = clv__arguments_of(list, attrs, out->at, out->lists);
}

/** The graph comes back from a file node by node. */
static void comes_back(clv_runtime *runtime, const clv_graph *graph) {
    char *folder = clv__test_folder(), path[512];
    snprintf(path, sizeof path, "%s/graph.safetensors", folder);
    clv_graph *read = clv__test_graph(runtime);
    assert_status(clv_graph_write(graph, path), CLV_OK, runtime);
    assert_status(clv_graph_read(read, path), CLV_OK, runtime);
    assert_int_equal(read->n_nodes, graph->n_nodes);
    for (size_t k = 0; k < read->n_nodes; k++) clv__test_same_node(graph->nodes[k], read->nodes[k]);
    clv_graph_destroy(read);
    free(folder);
}

/** Is there room for a difference? Builders leave out what does nothing, and make some uses of other ops. */
static bool is_simplified(const clv__op *op) {
    static const char *const simplified[] = {
        "reshape",    "broadcast_to",   "matmul",  "concat", "adaptive_avg_pool2d",
        "pow_scalar", "self_attention", "dropout", "cast"};
    for (size_t i = 0; i < sizeof simplified / sizeof *simplified; i++)
        if (!strcmp(op->name, simplified[i])) return true;
    return false;
}

/** One sample: its node, and what a call by name makes of what the walk tells of that. */
static void same_node(clv_runtime *runtime, const clv__op *op, const clv__sample *sample) {
    clv_tensor *in[CLV__MAX_IN], *again[CLV__MAX_IN];
    clv_node_info node, twin;
    clv_graph *graph = graph_of(runtime, sample, in), *other = graph_of(runtime, sample, again);
    clv_tensor *made = clv__node_add_to(graph, op, sample->attrs, in, sample->n_in, UINT64_MAX);
    if (!made) fail_msg("%s, %s: %s", op->name, sample->label, clv_runtime_error(runtime));
    assert_true(clv_graph_node_get(graph, clv_graph_info_get(graph).n_nodes - 1, &node));
    assert_true(node.signature && node.n_inputs == sample->n_in && node.outputs[0] == made);
    clv_tensor *called = clv_op_call(other, node.op, again, sample->n_in, node.arguments, node.n_arguments);
    if (!called) fail_msg("%s, %s: %s", op->name, sample->label, clv_runtime_error(runtime));
    const clv_shape wanted = clv_tensor_shape(made), shape = clv_tensor_shape(called);
    assert_true(clv_shape_equal(&wanted, &shape));
    if (called->node && called->node->io.op == op && other->n_nodes == 1) {
        assert_true(clv_graph_node_get(
            other, 0, &twin)); // not the bytes: a sample may have what only the gradient's op reads
        assert_ptr_equal(node.signature, twin.signature);
        for (int i = 0; i < node.n_arguments; i++) {
            const clv_op_argument *a = &node.arguments[i], *b = &twin.arguments[i];
            if (memcmp(&a->number, &b->number, sizeof a->number) || a->n != b->n ||
                memcmp(a->list, b->list, (size_t)a->n * sizeof *a->list))
                fail_msg("%s, %s: %s is another", op->name, sample->label, a->name);
        }
    } else if (!is_simplified(op))
        fail_msg("%s, %s: the call by name makes other nodes", op->name, sample->label);
    comes_back(runtime, other);
    assert_false(clv_graph_node_get(graph, -1, &node));
    assert_false(clv_graph_node_get(graph, clv_graph_info_get(graph).n_nodes, &node));
    assert_null(node.op);
    clv_graph_destroy(graph);
    clv_graph_destroy(other);
}

static bool is_public(const clv__op *op) {
    for (int i = 0; clv__public_ops[i]; i++)
        if (clv__public_ops[i] == op) return true;
    return false;
}

TEST(samples_by_name) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv__sample sample;
    for (int k = 0; clv__ops[k]; k++) {
        const clv__op *op = clv__ops[k];
        int samples = 0;
        if (!is_public(op) || op->random || op->moves) continue;
        int least;
        bool list;
        const int most = clv__inputs_count(op->inputs, &least, &list);
        for (int i = 0; clv__op_sample(op, i, &sample) && samples < 12; i++)
            if (sample.n_in <= most || list) same_node(runtime, op, &sample), samples++;
        if (!samples) fail_msg("%s has no sample that could be called", op->name);
    }
    clv_runtime_destroy(runtime);
}

TEST(composites_by_name) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv__sample sample;
    for (int k = 0; clv__composites[k]; k++) {
        const clv__op *op = clv__composites[k];
        int i = 0;
        assert_true(clv__is_composite(op));
        for (; clv__op_sample(op, i, &sample); i++) {
            clv_tensor *in[CLV__MAX_IN];
            arguments a;
            clv_graph *graph = graph_of(runtime, &sample, in);
            arguments_of(op->attributes, sample.attrs, &a);
            if (!clv_op_call(graph, op->name, in, sample.n_in, a.at, a.n))
                fail_msg("%s, %s: %s", op->name, sample.label, clv_runtime_error(runtime));
            comes_back(runtime, graph);
            clv_graph_destroy(graph);
        }
        if (!i) fail_msg("%s has no samples", op->name);
    }
    clv_runtime_destroy(runtime);
}

/** Structures of C, in which a zero is a default, say what attributes say. */
TEST(configs_say_the_same) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, 4, 9, 8)),
               *w = clv_input(graph, "w", CLV_DTYPE_F32, CLV_SHAPE(4, 2, 3, 3)),
               *s = clv_input(graph, "s", CLV_DTYPE_F32, CLV_SHAPE(2, 5, 12)), *two[] = {x, w},
               *three[] = {s, s, s};
    const struct {
        clv_tensor *c, *named;
    } pairs[] = {
        {clv_conv2d(x, w, NULL,
                    &(clv_conv2d_config){.stride = {2}, .padding = {1, -1}, .dilation = {1, 2}, .groups = 2}),
         clv_op_call(
             graph, "conv2d", two, 2,
             (clv_op_argument[]){NUM(stride, 2), LIST(padding, 1, 0), LIST(dilation, 1, 2), NUM(groups, 2)},
             4)},
        {clv_conv_transpose2d(x, clv_reshape(w, CLV_SHAPE(4, 2, 3, 3)), NULL,
                              &(clv_conv_transpose2d_config){.stride = {2}, .output_padding = {1, -1}}),
         clv_op_call(graph, "conv_transpose2d", two, 2,
                     (clv_op_argument[]){NUM(stride, 2), LIST(output_padding, 1, 0)}, 2)},
        {clv_conv3d(clv_reshape(x, CLV_SHAPE(1, 4, 9, 4, 2)), clv_reshape(w, CLV_SHAPE(4, 2, 3, 3, 1)), NULL,
                    &(clv_conv3d_config){.stride = {2}, .padding = {1, -1, 2}, .groups = 2}),
         clv_op_call(graph, "conv3d",
                     (clv_tensor *[]){clv_reshape(x, CLV_SHAPE(1, 4, 9, 4, 2)),
                                      clv_reshape(w, CLV_SHAPE(4, 2, 3, 3, 1))},
                     2, (clv_op_argument[]){LIST(stride, 2), LIST(padding, 1, 0, 2), NUM(groups, 2)}, 3)},
        {clv_max_pool2d(
             x,
             &(clv_pool2d_config){.kernel = {3, 2}, .padding = {1}, .dilation = {2, 1}, .ceil_mode = true}),
         clv_op_call(graph, "max_pool2d", &x, 1,
                     (clv_op_argument[]){LIST(kernel, 3, 2), NUM(padding, 1), LIST(dilation, 2, 1),
                                         NUM(ceil_mode, 1)},
                     4)},
        {clv_avg_pool2d(
             x,
             &(clv_pool2d_config){.kernel = {3}, .stride = {2, 1}, .padding = {1}, .exclude_padding = true}),
         clv_op_call(graph, "avg_pool2d", &x, 1,
                     (clv_op_argument[]){NUM(kernel, 3), LIST(stride, 2, 1), NUM(padding, 1),
                                         NUM(exclude_padding, 1)},
                     4)},
        {clv_self_attention(s, 2, &(clv_attention_config){.causal = true, .scale = 0.5f}),
         clv_op_call(graph, "self_attention", &s, 1,
                     (clv_op_argument[]){NUM(heads, 2), NUM(causal, 1), NUM(scale, 0.5)}, 3)},
        {clv_scaled_dot_product_attention(s, s, s, &(clv_attention_config){.causal = true}),
         clv_op_call(graph, "scaled_dot_product_attention", three, 3, (clv_op_argument[]){NUM(causal, 1)},
                     1)},
    };
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const clv__node *a = pairs[i].c->node, *b = pairs[i].named->node;
        assert_ptr_equal(a->io.op, b->io.op);
        assert_memory_equal(a->attrs, b->attrs, a->io.op->attrs_bytes);
    }
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

/** A fill, a value and a scale may be NaN, as PyTorch's are. */
TEST(numbers_without_bounds_may_be_nan) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3, 3));
    assert_non_null(clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(2), NAN));
    assert_non_null(clv_causal_mask(x, NAN));
    assert_non_null(clv_causal_softmax(x, NAN));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

/** Padding has two numbers for each dimension, more than a shape has. */
TEST(padding_of_all_dimensions) {
    const int around[2 * CLV_MAX_RANK + 1] = {1, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0};
    const clv_shape wanted = CLV_SHAPE(5, 1, 1, 1, 1, 1, 2, 6);
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 1, 1, 1, 1, 1, 1, 3));
    const clv_shape shape = clv_tensor_shape(clv_pad(x, around, 2 * CLV_MAX_RANK, CLV_PAD_CONSTANT, 0));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_true(clv_shape_equal(&shape, &wanted));
    assert_null(clv_pad(x, around, 2 * CLV_MAX_RANK + 1, CLV_PAD_CONSTANT, 0));
    assert_status(clv_graph_status(graph), CLV_E_VALUE, runtime);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

/** What samples leave out: a random op, and one that crosses devices. */
TEST(the_others_by_name) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3, 3));
    const clv_tensor *dropped = clv_op_call(graph, "dropout", &x, 1, (clv_op_argument[]){NUM(p, 0.25)}, 1);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_true(*(const float *)dropped->node->attrs == 0.25f);
    const clv_tensor *half = clv_op_call(graph, "dropout", &x, 1, NULL, 0);
    assert_true(*(const float *)half->node->attrs == 0.5f);
    const clv_tensor *moved =
        clv_op_call(graph, "to", &x, 1, &(clv_op_argument){.name = "device", .text = "host"}, 1);
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    assert_string_equal(moved->node->place_hint, "host");
    comes_back(runtime, graph);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

/** The outputs that a signature names are those of the shape rule, in dtype and dimensions. */
TEST(outputs_are_as_they_say) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv__sample sample;
    int held = 0;
    for (int k = 0; clv__ops[k]; k++) {
        const clv__op *op = clv__ops[k];
        for (int i = 0; op->inputs && op->outputs && clv__op_sample(op, i, &sample); i++) {
            clv__op_io io = {.op = op, .attrs = sample.attrs, .n_in = sample.n_in, .in = sample.in};
            clv__error error;
            clv__error_init(&error);
            if (clv__op_infer(&io, &error) != CLV_OK || clv__op_outputs_check(&io, &error) != CLV_OK)
                fail_msg("%s, %s: %s", op->name, sample.label, error.text);
            clv__error_destroy(&error);
            held++;
        }
    }
    assert_true(held > 500);
    clv_runtime_destroy(runtime);
}

// ---- the header -----------------------------------------------------------------------------------------------------

TEST(none_is_forgotten) {
    static const char before[] = "clv_tensor *clv_";
    char line[512];
    int n = 0;
    FILE *header = fopen(CLV_OPS_H, "r");
    assert_non_null(header);
    while (fgets(line, sizeof line, header)) {
        char *name =
            strncmp(line, "static inline ", 14) && strncmp(line, "CLV_API ", 8) ? NULL : strstr(line, before);
        if (!name || name[sizeof before - 1] == '_') continue; // what the others are made of
        name += sizeof before - 1;
        name[strcspn(name, "(")] = 0;
        if (!clv_op_find(name)) fail_msg("clv_%s has no signature", name);
        n++;
    }
    fclose(header);
    for (int i = 0; i < n; i++) assert_null(clv_op_get(i)->custom);
    assert_true(!clv_op_get(n) || clv_op_get(n)->custom);
    assert_null(clv_op_get(-1));
    assert_null(clv_op_find("no_such_op"));
}

/** What is asked of a custom op's signature holds of the built-in ones. */
TEST(rows_are_valid) {
    for (int i = 0; clv__public_ops[i]; i++) {
        const clv__op *op = clv__public_ops[i];
        clv__error error;
        clv__error_init(&error);
        _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
        if (clv__signature_valid(&op->signature, op->infer || op->build, &error) != CLV_OK ||
            clv__attributes_valid(op->attributes, &error) != CLV_OK ||
            clv__attributes_valid_defaults(op->attributes, attrs, &error) != CLV_OK)
            fail_msg("%s: %s", op->name, error.text);
        clv__error_destroy(&error);
    }
}

// ---- mistakes -------------------------------------------------------------------------------------------------------

/** Call an op with a sample's inputs, one of them changed: refused, with a sentence about it. */
static void refuses_input(clv_runtime *runtime, const clv__op *op, clv__sample sample, int i,
                          clv_status status, const char *says) {
    clv_tensor *in[CLV__MAX_IN];
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    memcpy(attrs, sample.attrs, sizeof attrs);
    clv_graph *graph = graph_of(runtime, &sample, in);
    if (clv__node_add_to(graph, op, attrs, in, sample.n_in, UINT64_MAX))
        fail_msg("%s takes %s", op->name, says);
    char begin[64];
    snprintf(begin, sizeof begin, "%s %s", op->inputs[i].name, says);
    if (clv_graph_status(graph) != status || !strstr(clv_runtime_error(runtime), begin))
        fail_msg("%s, %s: %s", op->name, begin, clv_runtime_error(runtime));
    clv_graph_destroy(graph);
}

/** What every type refuses: nothing, another dtype, another rank, another length of a letter that is there twice. */
TEST(types_are_held) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    clv__sample sample, wrong;
    int held = 0;
    for (int k = 0; clv__ops[k]; k++) {
        const clv__op *op = clv__ops[k];
        if (!op->inputs || !clv__op_sample(op, 0, &sample)) continue;
        for (int i = 0; op->inputs[i].name && i < sample.n_in; i++) {
            const char *type = op->inputs[i].type;
            const size_t n = strlen(type);
            if (!sample.in[i].dtype || !strncmp(type, "any", 3) || (n > 3 && !strcmp(type + n - 3, "...")))
                continue;
            if (type[n - 1] != '?') {
                wrong = sample;
                wrong.in[i].dtype = CLV_DTYPE_NONE;
                refuses_input(runtime, op, wrong, i, CLV_E_VALUE, "is missing");
            }
            if (!strchr(type, '|') && strncmp(type, "like", 4)) {
                wrong = sample;
                wrong.in[i].dtype = type[0] == 'i' ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
                char says[64];
                snprintf(says, sizeof says, "is %s, it must be %.*s", clv_dtype_name(wrong.in[i].dtype),
                         (int)strcspn(type, "[?"), type);
                refuses_input(runtime, op, wrong, i, CLV_E_DTYPE, says);
            }
            if (strchr(type, '[') && !strchr(type, '*')) {
                wrong = sample;
                wrong.in[i].shape = CLV_SHAPE(1, 1, 1, 1, 1, 1, 1);
                refuses_input(runtime, op, wrong, i, CLV_E_SHAPE, "has 7 dimensions, it must have");
            }
            held++;
        }
    }
    assert_true(held > 60);
    clv_runtime_destroy(runtime);
}

/** Gradients have no signature of their own: what they take is held against the op whose they are. */
TEST(gradients_hold_what_they_take) {
    int held = 0;
    for (int k = 0; clv__ops[k]; k++) {
        const clv__op *op = clv__ops[k];
        clv__sample sample;
        if (op->infer != clv__pair_infer) continue;
        assert_true(clv__op_sample(op, 0, &sample));
        const clv__desc dy = sample.in[0];
        clv__op_io io = {.op = op, .attrs = sample.attrs, .n_in = sample.n_in, .in = sample.in};
        clv__error error;
        clv__error_init(&error);
        sample.in[0] = (clv__desc){0};
        assert_int_equal(clv__op_infer(&io, &error), CLV_E_VALUE);
        assert_holds(error.text, "is missing");
        sample.in[0] = (clv__desc){dy.dtype, CLV_SHAPE(1, 1, 1, 1, 1, 1, 1)};
        assert_int_equal(clv__op_infer(&io, &error), CLV_E_SHAPE);
        sample.in[0] = dy;
        assert_int_equal(clv__op_infer(&io, &error), CLV_OK);
        clv__error_destroy(&error);
        held++;
    }
    assert_true(held > 12);
}

/** A value of an attribute: a list has it once. */
static clv__attribute_value value_of(const clv_op_attribute *a, double number) {
    return (clv__attribute_value){
        .number = number, .list = {(int64_t)number}, .n = a->kind == CLV_ATTRIBUTE_LIST};
}

/** Each bound of each attribute: what lies just outside is refused, what lies on it is not for that reason. */
TEST(bounds_are_held) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    int held = 0;
    for (int k = 0; clv__public_ops[k]; k++) {
        const clv_op_attribute *list = clv__public_ops[k]->attributes;
        for (int i = 0; list && list[i].name; i++) {
            const clv_op_attribute *a = &list[i];
            const bool whole = a->kind != CLV_ATTRIBUTE_NUMBER;
            for (int high = 0; high < 2; high++) {
                if (!(high ? a->has_most : a->has_least) || isinf(high ? a->most : a->least)) continue;
                _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
                const double bound = high ? a->most : a->least, out = whole ? 1 : 1e-3;
                clv__error error;
                clv__error_init(&error);
                clv__attributes_default(list, attrs);
                for (int j = 0; list[j].name; j++) { // what must be given is as this one
                    const clv__attribute_value one = value_of(&list[j], 1);
                    if (!list[j].fallback) clv__attribute_set(&list[j], attrs, &one);
                }
                clv__attributes_default(list, attrs); // one's may be another's
                const clv__attribute_value outside = value_of(a, bound + (high ? out : -out));
                clv__attribute_set(a, attrs, &outside);
                assert_int_equal(clv__attributes_check(list, attrs, &error), CLV_E_VALUE);
                assert_memory_equal(error.text, a->name, strlen(a->name));
                clv__error_destroy(&error);
                held++;
            }
            if (a->kind == CLV_ATTRIBUTE_NUMBER && (a->has_least || a->has_most)) {
                _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
                clv__error error;
                clv__error_init(&error);
                clv__attributes_default(list, attrs);
                clv__attribute_set(a, attrs, &(clv__attribute_value){.number = (double)NAN});
                assert_int_equal(clv__attributes_check(list, attrs, &error), CLV_E_VALUE);
                clv__error_destroy(&error);
            }
        }
    }
    assert_true(held >= 10);
    clv_runtime_destroy(runtime);
}

static void make_tensors(clv_graph *graph, clv_tensor **in) {
    in[0] = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 5, 5));
    in[1] = clv_input(graph, "y", CLV_DTYPE_F32, CLV_SHAPE(2, 3, 5, 5));
}

static void refused(clv_runtime *runtime, const char *name, int n, clv_op_argument argument,
                    clv_status status, const char *sentence) {
    clv_tensor *in[2];
    clv_graph *graph = clv__test_graph(runtime);
    make_tensors(graph, in);
    assert_null(clv_op_call(graph, name, in, n, &argument, argument.name != NULL));
    assert_status(clv_graph_status(graph), status, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_graph_destroy(graph);
}

/** A pair of two numbers says both of them, zeros too, as in PyTorch. */
TEST(pairs_say_zero) {
    const struct {
        const char *op;
        clv_op_argument arguments[3];
        int64_t rows, columns; // of the result
    } cases[] = {
        {"conv2d", {LIST(padding, 3, 0)}, 10, 5},
        {"conv2d", {LIST(padding, 0, 3)}, 4, 11},
        {"conv2d", {LIST(padding, 3)}, 10, 11},
        {"conv2d", {NUM(padding, 3)}, 10, 11},
        {"conv2d", {LIST(padding, 0, 0)}, 4, 5},
        {"max_pool2d", {NUM(kernel, 4), NUM(stride, 1), LIST(padding, 2, 0)}, 7, 4},
        {"avg_pool2d", {NUM(kernel, 4), NUM(stride, 1), LIST(padding, 0, 2)}, 3, 8},
        {"max_pool2d", {LIST(kernel, 2, 3)}, 3, 2}, // its default is the kernel
    };
    clv_runtime *runtime = clv__test_runtime(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = 0;
        clv_graph *graph = clv__test_graph(runtime);
        clv_tensor *in[] = {clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(1, 1, 6, 7)),
                            clv_input(graph, "w", CLV_DTYPE_F32, CLV_SHAPE(1, 1, 3, 3))};
        while (n < 3 && cases[i].arguments[n].name) n++;
        clv_tensor *y = clv_op_call(graph, cases[i].op, in, i < 5 ? 2 : 1, cases[i].arguments, n);
        assert_status(clv_graph_status(graph), CLV_OK, runtime);
        const clv_shape shape = clv_tensor_shape(y);
        assert_int_equal(shape.dims[2], cases[i].rows);
        assert_int_equal(shape.dims[3], cases[i].columns);
        comes_back(runtime, graph);
        clv_graph_destroy(graph);
    }
    clv_runtime_destroy(runtime);
}

TEST(mistakes) {
    clv_runtime *runtime = clv__test_runtime(NULL);
    refused(runtime, "rellu", 1, (clv_op_argument){0}, CLV_E_NOT_FOUND, "did you mean 'relu'?");
    refused(runtime, "relu", 2, (clv_op_argument){0}, CLV_E_VALUE,
            "relu has the inputs 'x', and 2 are given");
    refused(runtime, "concat", 0, (clv_op_argument){0}, CLV_E_VALUE, "'inputs...', and 0 are given");
    refused(runtime, "linear", 1, (clv_op_argument){0}, CLV_E_VALUE, "'x, weight, bias?', and 1 are given");
    refused(runtime, "pow_scalar", 1, (clv_op_argument){0}, CLV_E_VALUE, "pow_scalar wants 'exponent'");
    refused(runtime, "relu", 1, (clv_op_argument)NUM(axis, 1), CLV_E_NOT_FOUND, "it has: none");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 0.5), CLV_E_VALUE,
            "'axis' wants a whole number");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 1e300), CLV_E_VALUE, "'axis' is too large");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 4294967296.0), CLV_E_VALUE,
            "'axis' is too large");
    refused(runtime, "max_pool2d", 1, (clv_op_argument)NUM(stride, 0), CLV_E_VALUE,
            "max_pool2d wants 'kernel'");
    refused(runtime, "sum", 1, (clv_op_argument)NUM(keepdim, 2), CLV_E_VALUE, "'keepdim' is 0 or 1");
    refused(runtime, "sum", 1, (clv_op_argument){.name = "axes", .n = 3}, CLV_E_VALUE, "'axes' is a list");
    refused(runtime, "sum", 1, (clv_op_argument)LIST(axes, 4294967296), CLV_E_VALUE, "'axes' holds a number");
    refused(runtime, "to", 1, (clv_op_argument)NUM(device, 1), CLV_E_VALUE, "'device' wants a text");
    refused(runtime, "softmax", 1, (clv_op_argument)NUM(axis, 7), CLV_E_VALUE, "axis 7");
    refused(runtime, "conv2d", 2, (clv_op_argument)LIST(stride, 2, 0), CLV_E_VALUE,
            "conv2d#0: stride is 0, it must be at least 1");
    refused(runtime, "conv2d", 2, (clv_op_argument)LIST(stride, 0, 2), CLV_E_VALUE, "stride is 0");
    refused(runtime, "conv2d", 2, (clv_op_argument)NUM(dilation, 0), CLV_E_VALUE, "dilation is 0");
    refused(runtime, "conv2d", 2, (clv_op_argument)NUM(groups, 0), CLV_E_VALUE, "groups is 0");
    refused(runtime, "conv2d", 2, (clv_op_argument)LIST(padding, -1, 3), CLV_E_VALUE,
            "padding is -1, it must be at least 0");
    refused(runtime, "max_pool2d", 1, (clv_op_argument)LIST(kernel, 3, 0), CLV_E_VALUE, "kernel is 0");
    assert_null(clv_op_call(NULL, "relu", NULL, 0, NULL, 0));
    clv_runtime_destroy(runtime);
}

static clv_tensor *twice(clv_graph *graph, const clv_op_use *use, clv_tensor *const *in) {
    return clv_mul_scalar(in[0], (float)(2 * use->attributes[0].number));
}

TEST(custom_ops_too) {
    static const clv_op_value inputs[] = {{"x", "f32"}, {NULL, NULL}},
                              outputs[] = {{"y", "like x"}, {NULL, NULL}};
    static const clv_op_attribute attributes[] = {
        {.name = "by", .kind = CLV_ATTRIBUTE_NUMBER, .fallback = "1.5"}, {.name = NULL}};
    const clv_custom_op op = {.bytes = sizeof op,
                              .name = "twice",
                              .inputs = inputs,
                              .attributes = attributes,
                              .outputs = outputs,
                              .build = twice};
    clv_runtime *runtime = clv__test_runtime(NULL);
    assert_status(clv_op_register(runtime, &op), CLV_OK, runtime);
    const clv_op_signature *signature = clv_op_find("twice");
    assert_non_null(signature);
    assert_ptr_equal(signature->inputs, inputs);
    assert_string_equal(signature->attributes[0].name, "by");
    assert_string_equal(signature->attributes[0].fallback, "1.5");
    assert_ptr_equal(signature->custom->build, twice);
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(3));
    assert_non_null(clv_op_call(graph, "twice", &x, 1, &(clv_op_argument)NUM(by, 3), 1));
    assert_status(clv_graph_status(graph), CLV_OK, runtime);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(NULL, NULL)
