// SPDX-License-Identifier: Apache-2.0
// clv_onnx_write: models of this library as files for any batch, which give the same results when they are read; what the file says;
// weights in a file beside it; what cannot be written, and with which sentence.
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "cleave/onnx.h"
#include "device/device.h"
#include "graph/op.h"
#include "harness/harness.h"
#include "infer/weights.h"
#include "nn/models.h"
#include "onnx/write.h"

static clv_runtime *runtime;
static clv_device *host;
static char folder[] = "/tmp/cleave_onnx_write_XXXXXX", path[96];

static clv_predictor *predictor_of(const clv_model *model) {
    clv_predictor *predictor;
    assert_status(clv_predictor_create(runtime,
                                       &(clv_predictor_config){.device = host, .model = model, .batch = 2},
                                       &predictor),
                  CLV_OK, runtime);
    return predictor;
}

static clv_session *session_of(const clv_predictor *predictor) {
    return clv_predictor_info_get(predictor).session;
}

/** Results of n samples, the same for the same model. */
static clv_array results_of(clv_predictor *predictor, const clv_model *model, int64_t n) {
    const int n_inputs = clv_model_port_count(model, CLV_PORT_INPUT);
    clv_array fed[CLV_MAX_PORTS], out;
    const clv_array *all[CLV_MAX_PORTS] = {NULL};
    for (int k = 0; k < n_inputs; k++) {
        const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, k);
        const clv_shape shape = clv_port_shape(&port, n);
        const bool whole = port.dtype == CLV_DTYPE_I32;
        assert_status(clv_array_init(runtime, whole ? CLV_DTYPE_I32 : CLV_DTYPE_F32, &shape, &fed[k]), CLV_OK,
                      runtime);
        for (int64_t i = 0; i < clv_shape_numel(&shape); i++)
            if (whole)
                ((int32_t *)fed[k].data)[i] = (int32_t)(k ? i * i % 2 : i * 7 % 5);
            else
                ((float *)fed[k].data)[i] = sinf((float)i);
        all[k] = &fed[k];
    }
    assert_status(clv_predictor_forward_arrays(predictor, all, &out), CLV_OK, runtime);
    for (int k = 0; k < n_inputs; k++) clv_array_reset(&fed[k]);
    return out;
}

/** Read the file, load its weights, and compare for a batch of n. */
static void compare(const clv_model *model, clv_predictor *predictor, int64_t n) {
    clv_onnx *onnx;
    assert_status(clv_onnx_read(runtime, path, NULL, &onnx), CLV_OK, runtime);
    const clv_model read = *clv_onnx_info_get(onnx).model;
    clv_predictor *other = predictor_of(&read);
    assert_status(clv_weights_load(session_of(other), path), CLV_OK, runtime);
    clv_array a = results_of(predictor, model, n), b = results_of(other, &read, n);
    double most = 0, off = 0;
    assert_true(clv_shape_equal(&a.shape, &b.shape));
    for (int64_t i = 0; i < clv_shape_numel(&a.shape); i++) {
        const double x = (double)((float *)a.data)[i], y = (double)((float *)b.data)[i];
        most = fmax(most, fabs(x));
        off = fmax(off, fabs(x - y));
    }
    assert_true(most > 0);
    assert_true(off <= 2e-6 * most);
    clv_array_reset(&a);
    clv_array_reset(&b);
    clv_predictor_destroy(other);
    clv_onnx_destroy(onnx);
}

static void comes_back(const clv_model *model) {
    clv_predictor *predictor = predictor_of(model);
    assert_status(clv_onnx_write(session_of(predictor), model, NULL, path), CLV_OK, runtime);
    compare(model, predictor, 3);
    compare(model, predictor, 1);
    clv_predictor_destroy(predictor);
}

static clv_model pictures(const char *name) {
    return clv_model_for(clv_model_find(name), 3, 32, 32, 4);
}

TEST(models_come_back) {
    const clv_gpt_config gpt = {.vocabulary = 5, .context = 8, .layers = 2, .heads = 2, .width = 16};
    const clv_gpt_config gpt2 = {
        .model = "gpt2", .vocabulary = 5, .context = 8, .layers = 2, .heads = 2, .width = 16};
    const clv_gpt_config llama = {
        .model = "llama", .vocabulary = 5, .context = 8, .layers = 2, .heads = 4, .kv_heads = 2, .width = 16};
    const clv_gpt_config lstm = {.model = "lstm_lm", .vocabulary = 5, .context = 8, .layers = 2, .width = 16};
    static const clv_gpt_config bert_sizes = {
        .vocabulary = 9, .context = 8, .width = 16, .heads = 2, .layers = 2, .hidden = 20};
    static const clv_port bert_inputs[] = {{.name = "input_ids", .dtype = CLV_DTYPE_I32, .dims = {6}},
                                           {.name = "attention_mask", .dtype = CLV_DTYPE_I32, .dims = {6}},
                                           {.name = "token_type_ids", .dtype = CLV_DTYPE_I32, .dims = {6}}};
    clv_model bert = *clv_model_find("bert_base");
    bert.user = &bert_sizes;
    bert.inputs = bert_inputs;
    const clv_model all[] = {bert,
                             pictures("swin_t"),
                             pictures("deeplabv3_mobilenet_v3_large"),
                             clv_gpt_model(&gpt2),
                             clv_gpt_model(&llama),
                             clv_gpt_model(&lstm),
                             *clv_model_find("mlp"),
                             *clv_model_find("cnn"),
                             pictures("resnet18"),
                             pictures("mobilenet_v2"),
                             clv_gpt_model(&gpt)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) comes_back(&all[i]);
}

/** Every way in which the batch may stand in a shape. */
static clv_tensor *shapes(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    const int64_t n = clv_tensor_shape(x).dims[0];
    clv_tensor *twice = clv_concat((clv_tensor *[]){x, clv_neg(x)}, 2, 0); // [2n, 6]
    clv_tensor *first = clv_slice(twice, 0, n, n);                         // [n, 6], the second half
    clv_tensor *grown = clv_broadcast_to(clv_reshape(first, CLV_SHAPE(n * 6, 1)), CLV_SHAPE(n * 6, 2));
    clv_tensor *halves = clv_reshape(grown, CLV_SHAPE(2, n, 3, 2));
    clv_tensor *ones = clv_full(graph, CLV_DTYPE_F32, CLV_SHAPE(2, n, 3, 1), 1);
    return clv_sum(clv_add(halves, ones), (int[]){0, 3}, 2, false); // [n, 3]
}

static const clv_model of_shapes = {.name = "shapes", .build = shapes, .input = {6}};

TEST(sizes_follow_the_batch) {
    comes_back(&of_shapes);
}

/** Each kind of recurrence, behind a layer of its own and behind anything else. */
static clv_tensor *recurrences(clv_tensor *x, const clv_model *model) {
    const clv_recurrent_config both = {.layers = 2, .bidirectional = true, .batch_first = true},
                               relu = {.batch_first = true, .relu = true};
    clv_graph *graph = clv_tensor_graph(x);
    const clv_init init = {CLV_INIT_UNIFORM, -0.5F, 0.5F};
    clv_tensor *y = clv_nn_lstm(x, NULL, "lstm", 4, &both, NULL);
    y = clv_nn_rnn(clv_nn_gru(y, NULL, "gru", 4, &both, NULL), NULL, "rnn", 4, &relu, NULL);
    clv_tensor *z = clv_permute(clv_concat((clv_tensor *[]){y, y, y, y}, 4, 2), (int[]){1, 0, 2}, 3);
    y = clv_recurrence(z, clv_parameter(graph, "hh", CLV_SHAPE(16, 4), init), NULL, NULL, CLV_CELL_LSTM, true,
                       NULL);
    return clv_sum(y, (int[]){0}, 1, false);
}

TEST(recurrences_come_back) {
    comes_back(&(clv_model){.name = "recurrences", .build = recurrences, .input = {5, 3}});
}

/** The same with lengths, first states and last ones. */
static clv_tensor *states(clv_tensor *x, const clv_model *model) {
    const clv_recurrent_config two = {.layers = 2, .bidirectional = true, .batch_first = true},
                               back = {.reverse = true, .batch_first = true},
                               none = {.no_bias = true, .batch_first = true};
    clv_recurrent_state first = {NULL, NULL}, last = {NULL, NULL};
    clv_tensor *lengths =
        clv_cast(clv_mul_scalar(clv_abs(clv_max(x, (int[]){1, 2}, 2, false)), 4), CLV_DTYPE_I32);
    clv_tensor *y = clv_nn_lstm(x, NULL, "lstm", 4, &two, &first);
    y = clv_nn_gru(y, lengths, "gru", 4, &back, &last);
    y = clv_nn_rnn(y, lengths, "rnn", 4, &none, &last);
    clv_tensor *h = clv_sum(clv_add(clv_mul(first.h, first.c), last.h), (int[]){0}, 1, false);
    return clv_add(clv_sum(y, (int[]){1}, 1, false), h);
}

TEST(states_come_back) {
    comes_back(&(clv_model){.name = "states", .build = states, .input = {5, 3}});
}

static clv_tensor *of_mean(clv_tensor *x, const clv_model *model) {
    return clv_mul_scalar(x, 1.0F / (float)clv_tensor_shape(x).dims[0]);
}

static clv_tensor *of_loss(clv_tensor *x, const clv_model *model) {
    clv_tensor *loss = clv_mse_loss(x, clv_relu(x));
    return clv_broadcast_to(loss, clv_tensor_shape(x));
}

TEST(what_cannot_be_written) {
    const clv_model by_batch = {.name = "by_batch", .build = of_mean, .input = {4}},
                    losses = {.name = "losses", .build = of_loss, .input = {4}};
    clv_predictor *predictor = predictor_of(&by_batch);
    clv_session *session = session_of(predictor);
    assert_status(clv_onnx_write(session, &by_batch, NULL, path), CLV_E_UNSUPPORTED, runtime);
    assert_string_equal(
        clv_runtime_error(runtime),
        "mul_scalar cannot be written as ONNX: a number of its depends on the batch; a fixed batch helps "
        "(clv_onnx_write_config.batch)");
    assert_status(clv_onnx_write(session, &by_batch, &(clv_onnx_write_config){.batch = 2}, path), CLV_OK,
                  runtime);
    compare(&by_batch, predictor, 2);
    assert_status(clv_onnx_write(session, &losses, NULL, path), CLV_E_UNSUPPORTED, runtime);
    assert_string_equal(clv_runtime_error(runtime), "ONNX has no node for mse_loss: 1 node");
    assert_status(clv_onnx_write(session, &by_batch, &(clv_onnx_write_config){.batch = -1}, path),
                  CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "a batch of -1: 0 leaves it open");
    assert_int_equal(clv_onnx_write(session, clv_model_find("mlp"), NULL, path), CLV_E_NOT_FOUND);
    assert_int_equal(
        clv_onnx_write(session, &by_batch, &(clv_onnx_write_config){.batch = 1}, "/nowhere/x.onnx"),
        CLV_E_IO);
    clv_predictor_destroy(predictor);
}

TEST(weights_beside) {
    const clv_model *model = clv_model_find("mlp");
    clv_predictor *predictor = predictor_of(model);
    char beside[128];
    clv__onnx_writing what = {.n_inputs = 1, .n_outputs = 1, .graph_name = "mlp", .most = 1000};
    clv_archive *archive;
    what.input_names[0] = "x";
    what.output_names[0] = "logits";
    what.one.batch = 2;
    what.other.batch = 3;
    for (int i = 0; i < 2; i++) {
        clv__onnx_built *one = i ? &what.other : &what.one;
        assert_status(clv_graph_create(runtime, &one->graph), CLV_OK, runtime);
        one->inputs[0] = clv_model_input(one->graph, model, one->batch);
        one->outputs[0] = clv_model_build(model, one->inputs[0]);
    }
    assert_status(clv_archive_create(runtime, &archive), CLV_OK, runtime);
    assert_status(clv__weights_put(session_of(predictor), archive), CLV_OK, runtime);
    what.weights = archive;
    assert_status(clv__onnx_write(&what, path, clv__runtime_error_of(runtime)), CLV_OK, runtime);
    snprintf(beside, sizeof beside, "%s.data", path);
    assert_int_equal(access(beside, R_OK), 0);
    compare(model, predictor, 2);
    unlink(beside);
    clv_archive_destroy(archive);
    clv_graph_destroy(what.one.graph);
    clv_graph_destroy(what.other.graph);
    clv_predictor_destroy(predictor);
}

/** An op of ops.h has a row, or is none of a model that predicts, or is made of other ops. */
TEST(every_op_has_a_row) {
    static const char *const without[] = {"cross_entropy", "mse_loss"};
    int missing = 0;
    for (int i = 0; clv_op_get(i); i++) {
        bool known = clv__onnx_writes(clv_op_get(i)->name);
        for (size_t k = 0; clv__composites[k]; k++)
            known |= !strcmp(clv__composites[k]->name, clv_op_get(i)->name);
        for (size_t k = 0; k < sizeof without / sizeof *without; k++)
            known |= !strcmp(without[k], clv_op_get(i)->name);
        if (!known)
            print_error(
                "%s has no row in onnx/write_rows.c, write_moves.c, write_windows.c or write_recurrent.c\n",
                clv_op_get(i)->name);
        missing += !known;
    }
    assert_int_equal(missing, 0);
}

FIXTURE(begin) {
    runtime = clv__test_runtime(NULL);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    assert_status(clv_device_find(runtime, "host", &host), CLV_OK, runtime);
}

FIXTURE(end) {
    unlink(path);
    rmdir(folder);
    clv_runtime_destroy(runtime);
}

TEST_MAIN(begin, end)
