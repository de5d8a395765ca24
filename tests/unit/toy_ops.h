// SPDX-License-Identifier: Apache-2.0
// Ops that only tests know, so that graph, plan and exec are tested without the ops of the library.
#ifndef CLV_TESTS_TOY_OPS_H
#define CLV_TESTS_TOY_OPS_H

#include "graph/graph.h"

static clv_status toy_same_shape(clv__op_io *io, clv__error *error) {
    if (io->n_in == 2 && !clv_shape_equal(&io->in[0].shape, &io->in[1].shape)) {
        CLV_FAIL(error, CLV_E_SHAPE, "inputs differ");
    }
    io->n_out = 1;
    io->out[0] = io->in[0];
    return CLV_OK;
}

static void toy_sum_reference(const clv__ref *ref) {
    for (int64_t i = 0; i < clv__numel(&ref->io->in[0]); i++) {
        ref->out[0][i] = 0;
        for (int j = 0; j < ref->io->n_in; j++) ref->out[0][i] += ref->in[j][i];
    }
}

static void toy_lower(clv__launches *list, const clv__op_io *io) {
    clv__launch *launch = clv__launch_kernel(list, "elementwise", "toy");
    clv__arg_out(list, launch, 0);
    for (int i = 0; i < io->n_in; i++) clv__arg_in(list, launch, i);
    clv__launch_grid(launch, (size_t)clv__numel(&io->out[0]), 0);
}

static const clv__variant toy_variants[] = {{"plain", .lower = toy_lower}, {0}};

/** y = a, or a + b. May be computed in place of its first input. */
static const clv__op toy_sum = {.name = "toy_sum",
                                .infer = toy_same_shape,
                                .reference = toy_sum_reference,
                                .variants = toy_variants,
                                .inplace = 1};
/** The same, never in place. */
static const clv__op toy_sum_apart = {.name = "toy_sum_apart",
                                      .infer = toy_same_shape,
                                      .reference = toy_sum_reference,
                                      .variants = toy_variants};

static void toy_wide_lower(clv__launches *list, const clv__op_io *io) {
    size_t bytes = 3 * (size_t)clv__numel(&io->out[0]) * sizeof(float),
           at = clv__launch_workspace(list, bytes);
    toy_lower(list, io);
    clv__arg_workspace(list, &list->items[list->n - 1], at, bytes);
}

static const clv__variant toy_wide_variants[] = {{"plain", .lower = toy_wide_lower}, {0}};

/** The same with a workspace three times as large as its result. */
static const clv__op toy_sum_wide = {.name = "toy_sum_wide",
                                     .infer = toy_same_shape,
                                     .reference = toy_sum_reference,
                                     .variants = toy_wide_variants};

static void toy_accumulate_reference(const clv__ref *ref) {
    for (int64_t i = 0; i < clv__numel(&ref->io->in[0]); i++) ref->in[0][i] += ref->in[1][i];
}

static clv_status toy_no_output(clv__op_io *io, clv__error *error) {
    io->n_out = 0;
    return CLV_OK;
}

/** a += b */
static const clv__op toy_accumulate = {.name = "toy_accumulate",
                                       .infer = toy_no_output,
                                       .reference = toy_accumulate_reference,
                                       .variants = toy_variants,
                                       .mutates = 1};

static inline clv_tensor *toy(const clv__op *op, clv_tensor *a, clv_tensor *b) {
    clv_tensor *in[2] = {a, b};
    return clv__node_add(op, NULL, in, b ? 2 : 1, 0);
}

#endif
