// SPDX-License-Identifier: Apache-2.0
// Gradients that cost less where another gradient comes right before them: the table that clv_backward looks into.
#include "graph/graph.h"

extern const clv__op clv__op_relu, clv__op_max_pool2d_backward;

/** For a relu whose result only a max_pool2d reads. A window's gradient goes to one element, and that is the window's result. So relu's
 *  mask is taken of the pool's result before the pool's gradient, instead of its input after it: the same bits, on fewer elements. The
 *  pool's gradient that this replaces stays for whoever asked for it. */
static clv_tensor *mask_before_pool(const clv__node *relu, const clv__node *back) {
    if (clv__node_in(back, 1) != clv__node_out(relu, 0)) return NULL;
    clv_tensor *result = clv__node_out(back->of, 0);
    clv_tensor *masked = clv__pair_node(relu->io.op->gradient, clv__node_attrs(relu),
                                        (clv_tensor *[]){clv__node_in(back, 0)}, NULL, &result);
    return clv__pair_node(back->io.op, clv__node_attrs(back), &masked,
                          (clv_tensor *[]){clv__node_in(back, 1)}, NULL);
}

const clv__gradient_rewrite clv__gradient_rewrites[] = {
    {&clv__op_relu, &clv__op_max_pool2d_backward, mask_before_pool},
    {0},
};
