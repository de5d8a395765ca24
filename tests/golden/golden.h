// SPDX-License-Identifier: Apache-2.0
// What golden tests share: see README.md for the names in the files.
//
//     TEST(avg_padding) {
//         golden *g = golden_begin(state, "avg_padding");
//         clv_tensor *x = golden_input(g, "x");
//         golden_expect(g, clv_avg_pool2d(x, &(clv_pool2d_config){.kernel = {2, 2}, .padding = {1, 1}}), "y");
//         golden_end(g);
//     }
//     TEST_MAIN(golden_open_pool, golden_close)
#ifndef CLV_TESTS_GOLDEN_H
#define CLV_TESTS_GOLDEN_H

#include "check/subject.h"
#include "cleave/io.h"
#include "harness/harness.h"

typedef struct golden {
    clv_runtime *runtime;
    clv_archive *archive; // the whole file
    char prefix[64];      // "case/"
    clv_graph *graph;     // of the case at hand
    clv__subject subject; // its start values and what is compared
    clv_tensor *expected[8];
    char expected_name[8][32];
    int n_expected;
    const clv__op *pinned[256]; // ops that were compared so far, see golden_pinned
    int n_pinned;
    char pinned_path[1024]; // where golden_close writes their names
} golden;

/** Group set-up: reads tests/golden/NAME.safetensors. Use through GOLDEN_OPEN. */
int golden_open(void **state, const char *name);
int golden_close(void **state);
#define GOLDEN_OPEN(name)                                                                                    \
    static int golden_open_##name(void **state) {                                                            \
        return golden_open(state, #name);                                                                    \
    }

/** A graph for the case; the graph's `training` is off. */
golden *golden_begin(void **state, const char *name);

/** An input, or a buffer, with the shape and values of the file's array of that name. Wants a gradient if the file has it. */
clv_tensor *golden_input(golden *g, const char *name);
clv_tensor *golden_buffer(golden *g, const char *name);

/** Give values of your own to a parameter (models whose weights follow a formula); after the graph is built. */
void golden_set(golden *g, clv_tensor *tensor, const float *values);

void golden_expect(golden *g, clv_tensor *tensor, const char *name);

/** Append the backward pass if the file has dy, or the first expected tensor is `loss`; give every tensor its values. Called
 *  by golden_end if it has not been called. */
void golden_prepare(golden *g);

/** Evaluate by the interpreter, compare everything the file has for this case, and free the graph. */
void golden_end(golden *g);

/** Say that a comparison of this program has pinned an op. golden_end says so itself of each op that made a compared tensor or
 *  changed it in place. every_op.c asks that each op there is was named by one program. */
void golden_pinned(golden *g, const clv__op *op);

/** The same on every usable device, within the tolerances of the checker; before golden_end. */
void golden_on_devices(golden *g);

#endif
