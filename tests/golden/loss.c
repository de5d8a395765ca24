// SPDX-License-Identifier: Apache-2.0
// Softmax and losses against PyTorch; the cases stand in make_loss.py in the same order.
#include <stdio.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(loss)

static void softmax(void **state) {
    static const struct {
        const char *name;
        int axis;
    } cases[] = {{"rows", 1},     {"long_rows", -1}, {"columns", 0},  {"middle", 1},
                 {"channels", 1}, {"large", 1},      {"infinite", 1}, {"masked", 1}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", i % 2 ? "log_softmax" : "softmax", cases[i / 2].name);
        golden *g = golden_begin(state, name);
        golden_expect(g, (i % 2 ? clv_log_softmax : clv_softmax)(golden_input(g, "x"), cases[i / 2].axis),
                      "y");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void cross_entropy(void **state) {
    static const char *const names[] = {"few", "many", "pixels", "images", "one_class", "large", "masked"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "cross_entropy_%s", names[i]);
        golden *g = golden_begin(state, name);
        clv_tensor *logits = golden_input(g, "logits");
        golden_expect(g, clv_cross_entropy(logits, golden_input(g, "labels")), "loss");
        golden_on_devices(g);
        golden_end(g);
    }
}

/** As torch's weight and ignore_index: weights of 0.5, 1.5 and 2.5 in turn, and a class that counts nothing; or -100 alone. */
static void weighted_cross_entropy(void **state) {
    static const char *const names[] = {"few", "pixels", "many"};
    float weights[41];
    for (int c = 0; c < 41; c++) weights[c] = (float)(c % 3) + 0.5f;
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        const bool ignored = i % 2;
        char name[64];
        snprintf(name, sizeof name, "cross_entropy_%s_%s", ignored ? "ignored" : "weights", names[i / 2]);
        golden *g = golden_begin(state, name);
        clv_tensor *logits = golden_input(g, "logits"), *labels = golden_input(g, "labels");
        clv_tensor *each = clv_nn_label_weights(labels, ignored ? NULL : weights,
                                                clv_tensor_shape(logits).dims[1], ignored ? -100 : 2);
        golden_expect(g, clv_cross_entropy_weighted(logits, labels, each), "loss");
        golden_on_devices(g);
        golden_end(g);
    }
}

static void mse_loss(void **state) {
    static const char *const names[] = {"mse_loss", "mse_loss_one"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        golden *g = golden_begin(state, names[i]);
        clv_tensor *x = golden_input(g, "x");
        golden_expect(g, clv_mse_loss(x, golden_input(g, "target")), "loss");
        golden_on_devices(g);
        golden_end(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax),
        cmocka_unit_test(cross_entropy),
        cmocka_unit_test(weighted_cross_entropy),
        cmocka_unit_test(mse_loss),
    };
    return cmocka_run_group_tests(tests, golden_open_loss, golden_close);
}
