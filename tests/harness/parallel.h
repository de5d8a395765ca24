// SPDX-License-Identifier: Apache-2.0
// clv_data_parallel of one input and one result.
#ifndef CLV_TESTS_PARALLEL_H
#define CLV_TESTS_PARALLEL_H

#include "cleave/nn.h"

typedef struct one_to_one {
    clv_tensor *(*body)(clv_tensor *x, void *user);
    void *user;
} one_to_one;

static void build_one_to_one(clv_tensor *const *inputs, clv_tensor **results, void *user) {
    const one_to_one *of = user;
    results[0] = of->body(inputs[0], of->user);
}

static inline clv_tensor *parallel_of(clv_tensor *x, const char *const *devices, const double *shares, int n,
                                      clv_tensor *(*body)(clv_tensor *x, void *user), void *user) {
    one_to_one of = {body, user};
    clv_tensor *result;
    clv_data_parallel(&x, 1, devices, shares, n, build_one_to_one, &of, &result, 1);
    return result;
}

#endif
