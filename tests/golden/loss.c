// SPDX-License-Identifier: Apache-2.0
// Losses whose classes have weights, against PyTorch; see make_loss.py.
#include <stdio.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "golden/golden.h"

GOLDEN_OPEN(loss)

/** As torch's weight and ignore_index: weights of 0.5, 1.5 and 2.5 in turn, and a class that counts nothing; or -100 alone. */
TEST(weighted_cross_entropy) {
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

TEST_MAIN(golden_open_loss, golden_close)
