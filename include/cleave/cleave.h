// SPDX-License-Identifier: Apache-2.0
// Cleave: a deep learning runtime over OpenCL. Include this one; the headers below read in this order, as a course.
//
// 1. Every function that can fail returns a clv_status, which must be looked at. CLV_OK is 0; the sentence that says what
//    went wrong, where, and what to do stays in the runtime:
//
//        clv_runtime *runtime = NULL;
//        if (clv_runtime_create(NULL, &runtime) != CLV_OK) ...          // NULL: all defaults
//        puts(clv_runtime_error(runtime));
//
// 2. A device is found by a text. The code below is the same on each of them; without OpenCL there is still `host`.
//
//        clv_device *device = NULL;
//        clv_device_find(runtime, "gpu|cpu|host", &device);             // NULL: the best there is
//
// 3. A graph says what is computed. Builder calls nest and never fail on the spot: the first mistake sticks.
//
//        clv_graph *graph = NULL;
//        clv_graph_create(runtime, &graph);
//        clv_graph_set_training(graph, true);                           // dropout drops; leave it out to predict
//        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64, 784));
//        clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(64));
//        clv_tensor *h = clv_relu(clv_nn_linear(x, "fc1", 128, NULL));
//        clv_tensor *loss = clv_cross_entropy(clv_nn_linear(h, "fc2", 10, NULL), labels);
//        clv_output(loss, "loss");
//
// 4. To train, append gradients and updates: they are nodes like all others.
//
//        clv_freeze(graph, "fc1");                                      // what is not to be trained; leave it out to train all
//        clv_backward(loss);
//        clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f});
//
//    No gradient flows through clv_detach(h). To freeze a parameter, say clv_requires_grad(weight, false) before it is used; the
//    same call with true asks for the gradient of an input. Where no gradient arrives, clv_backward says which op stopped it.
//
// 5. A plan says how, on which device, with how many bytes; making it takes none of them. A session holds the parameters,
//    a run does the steps:
//
//        clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan);
//        clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session);
//        clv_run_create(session, plan, &run);
//        clv_feed feeds[] = {{x, images, sizeof images}, {labels, classes, sizeof classes}};
//        clv_fetch fetches[] = {{loss, &value, sizeof value}};
//        clv_run_do(run, &(clv_step){feeds, 2, 0.1, fetches, 1});       // one step, at a learning rate of 0.1
//
//    That waits for each step. clv_run_feed, clv_run_step and clv_run_fetch are its parts: fetch a step late, and the next one
//    is fed while the device computes.
//
// 6. What is made later is destroyed earlier: run, session, plan, graph, runtime. Every destroy takes NULL. What else may be NULL,
//    and what happens after a fork, stands in runtime.h.
//
// 7. Datasets and batches are in data.h, files in io.h, and a whole training in one call in train.h.
//
// The programs in samples/ are these pieces, whole and checked.
#ifndef CLEAVE_H
#define CLEAVE_H

#include "status.h"
#include "nearest.h"
#include "runtime.h"
#include "device.h"
#include "tensor.h"
#include "graph.h"
#include "ops.h"
#include "nn.h"
#include "optim.h"
#include "plan.h"
#include "place.h"
#include "profile.h"
#include "io.h"
#include "data.h"
#include "train.h"
#include "generate.h"
#include "check.h"
#include "bench.h"
#include "tune.h"
#include "own_op.h"

#endif
