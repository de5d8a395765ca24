// SPDX-License-Identifier: Apache-2.0
// Inside of a model's ports: is it a model at all, and are samples of a port's shape?
#ifndef CLV_NN_PORTS_H
#define CLV_NN_PORTS_H

#include "base/error.h"
#include "cleave/nn.h"

/** Does it give `build`, or `build_all` with ports that can be told apart? CLV_E_VALUE, CLV_E_DTYPE, CLV_E_SHAPE. */
clv_status clv__model_check(clv__error *error, const clv_model *model);

/** clv__model_check_samples of any of a model's inputs. */
clv_status clv__port_check_samples(clv__error *error, const clv_model *model, const clv_port *port,
                                   const char *what, const clv_shape *sample);

/** The layers of a model of one input did not fit x: if its images are too small, the graph's sentence then says how large they must
 *  be. */
void clv__model_tell_smallest(clv_graph *graph, const clv_model *model, const clv_shape *x);

#endif
