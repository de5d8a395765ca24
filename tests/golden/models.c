// SPDX-License-Identifier: Apache-2.0
// Whole models against PyTorch: loss, logits, every gradient; by the interpreter and on every device. See make_models.py.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/nn.h"
#include "golden/golden.h"

GOLDEN_OPEN(models)

/** The formula of make_models.py. */
static float weight_at(int k, int64_t i, double scale) {
    return (float)(((double)((i * 7919 + (k + 1) * 104729) % 2003) / 2003 - 0.5) * scale);
}

static void whole_model(void **state, const char *name, const double *scales) {
    golden *g = golden_begin(state, name);
    clv_tensor *x = golden_input(g, "x"), *labels = golden_input(g, "labels");
    const clv_model ten = clv_model_for(clv_model_find(name), 0, 0, 0, 10);
    clv_tensor *logits = clv_model_build(&ten, x);
    golden_expect(g, clv_cross_entropy(logits, labels), "loss");
    golden_expect(g, logits, "logits");
    for (int k = 0; k < clv_graph_info_get(g->graph).n_parameters; k++) {
        clv_tensor *parameter = clv_parameter_get(g->graph, k);
        float *values = malloc(clv_tensor_bytes(parameter));
        assert_non_null(values);
        for (int64_t i = 0; i < clv_tensor_numel(parameter); i++) values[i] = weight_at(k, i, scales[k]);
        golden_set(g, parameter, values);
        free(values);
    }
    assert_int_equal(g->subject.n_targets, 2 + clv_graph_info_get(g->graph).n_parameters);
    golden_on_devices(g);
    golden_end(g);
}

TEST(mlp) {
    whole_model(state, "mlp", (double[]){0.25, 0.25, 0.25, 0.25});
}

TEST(cnn) {
    whole_model(state, "cnn", (double[]){0.6, 0.6, 0.12, 0.12, 0.12, 0.12, 0.18, 0.18});
}

TEST_MAIN(golden_open_models, golden_close)
