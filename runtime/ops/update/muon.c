// SPDX-License-Identifier: Apache-2.0
// Muon: the step of a matrix is its momentum made orthogonal by five steps of Newton and Schulz, in f32. What has not two dimensions is
// updated as by AdamW.
// Source: torch.optim.Muon, release 2.15 (which iterates in bf16); Jordan et al. 2024, "Muon: An optimizer for hidden layers".
#include <math.h>

#include "cleave/ops.h"
#include "ops/update/custom_optimizer.h"
#include "ops/update/update.h"

/** The nearest orthogonal matrix, almost: singular values from 0.7 to 1.2. x [M, N] */
static clv_tensor *orthogonal(clv_tensor *x) {
    static const float a = 3.4445f, b = -4.7750f, c = 2.0315f, least = 1e-7f;
    static const int swap[] = {1, 0};
    const clv_shape shape = clv_tensor_shape(x);
    const bool high = shape.rank == 2 && shape.dims[0] > shape.dims[1];
    if (high) x = clv_permute(x, swap, 2);
    clv_tensor *norm = clv_sqrt(clv_sum(clv_square(x), NULL, 0, false));
    x = clv_div(x, clv_clamp(norm, least, INFINITY));
    for (int i = 0; i < 5; i++) {
        clv_tensor *gram = clv_matmul_t(x, false, x, true);
        gram = clv_add(clv_mul_scalar(gram, b), clv_mul_scalar(clv_matmul(gram, gram), c));
        x = clv_add(clv_mul_scalar(x, a), clv_matmul(gram, x));
    }
    return high ? clv_permute(x, swap, 2) : x;
}

void clv__muon_add(const clv_optimizer_config *config, float lr_factor, clv_tensor *parameter,
                   const clv__gradients *all) {
    clv_graph *graph = parameter->graph;
    const clv_shape *shape = &parameter->desc.shape;
    const clv_precision precision = graph->precision;
    const double momentum = clv__update_or(config->momentum, 0.95);
    const double decay = config->weight_decay < 0 ? 0 : clv__update_or(config->weight_decay, 0.1);
    clv_optimizer_config adamw = *config;
    adamw.kind = CLV_ADAMW;
    adamw.weight_decay = decay > 0 ? (float)decay : -1;
    if (shape->rank != 2 || !shape->dims[0] || !shape->dims[1]) {
        clv__adam_add(&adamw, lr_factor, parameter, all);
        return;
    }
    graph->precision = CLV_PRECISION_F32;
    clv_tensor *g = all->factor ? clv_mul(parameter->gradient, all->factor) : parameter->gradient;
    clv_tensor *lr = clv_mul_scalar(clv_slice(all->hyper, 0, 0, 1), lr_factor);
    clv_tensor *buffer = clv__update_state(parameter, "momentum_buffer");
    g = clv_mul_scalar(g, (float)(1 - momentum));
    clv_tensor *moved = clv_add(clv_mul_scalar(buffer, (float)momentum), g);
    const double higher = (double)shape->dims[0] / (double)shape->dims[1];
    clv_tensor *step = orthogonal(clv_add(g, clv_mul_scalar(moved, (float)momentum)));
    step = clv_mul_scalar(step, (float)sqrt(higher > 1 ? higher : 1));
    if (decay > 0) step = clv_add(step, clv_mul_scalar(parameter, (float)decay));
    clv_tensor *value = clv_sub(parameter, clv_mul(step, lr));
    clv__assign_add(parameter, value, 0, all);
    clv__assign_add(buffer, moved, 0, all);
    graph->precision = precision;
}
