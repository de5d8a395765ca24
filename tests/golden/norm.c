// SPDX-License-Identifier: Apache-2.0
// Batch and root mean square normalisation against PyTorch; the cases stand in make_norm.py in the same order.
#include <stdio.h>

#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(norm)

static void batch_norm(void **state) {
    static const char *const shapes[] = {"images", "large_images", "matrix", "length"};
    for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
        bool training = i % 2 == 0;
        char name[64];
        snprintf(name, sizeof name, "batch_norm_%s_%s", shapes[i / 2], training ? "train" : "eval");
        golden *g = golden_begin(state, name);
        clv_tensor *x = golden_input(g, "x"), *weight = golden_input(g, "weight"),
                   *bias = golden_input(g, "bias");
        clv_tensor *mean = golden_buffer(g, "running_mean"), *var = golden_buffer(g, "running_var");
        golden_expect(g, clv_batch_norm(x, weight, bias, mean, var, training, 0.1f, 1e-5f), "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void momentum(void **state) {
    golden *g = golden_begin(state, "batch_norm_momentum");
    clv_tensor *x = golden_input(g, "x");
    clv_tensor *mean = golden_buffer(g, "running_mean"), *var = golden_buffer(g, "running_var");
    golden_expect(g, clv_batch_norm(x, NULL, NULL, mean, var, true, 0.75f, 0.5f), "y");
    golden_on_devices(g);
    golden_end(g);
}

static void no_running_statistics(void **state) {
    golden *g = golden_begin(state, "batch_norm_no_running");
    golden_expect(g, clv_batch_norm(golden_input(g, "x"), NULL, NULL, NULL, NULL, true, 0.1f, 1e-5f), "y");
    golden_on_devices(g);
    golden_end(g);
}

static void rms_norm(void **state) {
    golden *g = golden_begin(state, "rms_norm");
    clv_tensor *x = golden_input(g, "x"), *weight = golden_input(g, "weight");
    golden_expect(g, clv_rms_norm(x, weight, 1e-5f), "y");
    golden_on_devices(g);
    golden_end(g);
    g = golden_begin(state, "rms_norm_alone");
    golden_expect(g, clv_rms_norm(golden_input(g, "x"), NULL, 0.25f), "y");
    golden_on_devices(g);
    golden_end(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_norm),
        cmocka_unit_test(momentum),
        cmocka_unit_test(no_running_statistics),
        cmocka_unit_test(rms_norm),
    };
    return cmocka_run_group_tests(tests, golden_open_norm, golden_close);
}
