// SPDX-License-Identifier: Apache-2.0
// A library for `cleave train --ops`: a model of three inputs and two outputs, two of rows, an optimizer (Lion) and a loss, registered by name. It is
// not linked with Cleave: the command that loads it has all that it calls.
#include <cleave/cleave.h>
#include <locale.h>
#include <stdlib.h>

enum { WORDS = 5, KINDS = 3 };

static void fish(clv_tensor *const *in, clv_tensor **out, const clv_model *model) {
    const int64_t n = clv_tensor_shape(in[0]).dims[0];
    clv_tensor *rows[] = {in[0], clv_reshape(in[1], CLV_SHAPE(n, 1)),
                          clv_nn_embedding(in[2], "words", WORDS, 2, NULL)};
    clv_tensor *x = clv_relu(clv_nn_linear(clv_concat(rows, 3, 1), "body", 32, NULL));
    out[0] = clv_nn_linear(x, "kind", model->targets[0].classes, NULL);
    out[1] = clv_reshape(clv_nn_linear(x, "price", 1, NULL), CLV_SHAPE(n));
}

static const clv_port inputs[] = {
    {.name = "a", .dims = {2}}, {.name = "b"}, {.name = "word", .dtype = CLV_DTYPE_I32, .classes = WORDS}};
static const clv_port targets[] = {{.name = "kind", .classes = KINDS}, {.name = "price"}};
static const clv_model model = {
    .name = "fish", .build_all = fish, .inputs = inputs, .n_inputs = 3, .targets = targets, .n_targets = 2};

static clv_tensor *rows(clv_tensor *x, const clv_model *of) {
    x = clv_relu(clv_nn_linear(x, "body", 32, NULL));
    return clv_nn_linear(x, "out", of->classes ? of->classes : of->target[0], NULL);
}

/** As long as the rows are that it is given; of three numbers each. */
static const clv_model any_row = {.name = "row", .build = rows},
                       three = {.name = "row3", .build = rows, .input = {3}, .target = {1}};

static clv_tensor *mix(clv_tensor *a, clv_tensor *b, double part) {
    return clv_add(clv_mul_scalar(a, (float)part), clv_mul_scalar(b, (float)(1 - part)));
}

static void lion_update(const clv_update_use *use, clv_tensor **parameter, clv_tensor **states) {
    clv_tensor *g = use->gradient, *m = use->states[0], *way = mix(m, g, 0.9), *zero = clv_mul_scalar(way, 0);
    clv_tensor *none = clv_mul_scalar(use->lr, 0), *back = clv_mul_scalar(use->lr, -1);
    *parameter = clv_sub(use->parameter,
                         clv_where(clv_gt(way, zero), use->lr, clv_where(clv_gt(zero, way), back, none)));
    states[0] = mix(m, g, 0.99);
}

static const clv_optimizer_state states[] = {{"exp_avg", 0}, {NULL, 0}};
static const clv_custom_optimizer lion = {
    .bytes = sizeof lion, .name = "leo", .states = states, .update = lion_update};

static clv_tensor *absolute(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    return clv_mean(clv_abs(clv_sub(output, target)), NULL, 0, false);
}

static double absolute_sum(const float *output, const void *target, const clv_loss_sizes *sizes,
                           const clv_loss *loss) {
    const float *wanted = target;
    double sum = 0;
    for (int64_t i = 0; i < sizes->n * sizes->target; i++)
        sum += output[i] > wanted[i] ? (double)output[i] - (double)wanted[i]
                                     : (double)wanted[i] - (double)output[i];
    return sum / (double)sizes->target;
}

static const clv_loss loss = {.name = "absolute", .build = absolute, .sum = absolute_sum};

CLV_API clv_status clv_ops_init(clv_runtime *runtime);
clv_status clv_ops_init(clv_runtime *runtime) {
    const char *language = getenv("OWN_LOCALE"); // as a library with a surface of its own does
    if (language && !setlocale(LC_ALL, language)) return CLV_E_UNSUPPORTED;
    clv_status status = clv_optimizer_register(runtime, &lion);
    if (status == CLV_OK) status = clv_loss_register(runtime, &loss);
    if (status == CLV_OK) status = clv_model_register(runtime, &any_row);
    if (status == CLV_OK) status = clv_model_register(runtime, &three);
    return status == CLV_OK ? clv_model_register(runtime, &model) : status;
}
