// SPDX-License-Identifier: Apache-2.0
// Cleave: a deep learning runtime over OpenCL. Include this one. The steps below read as a course, from a training in one call to
// the seams beneath it, and the headers follow in the same order.
//
// 1. Train. A model is a function that builds layers, a dataset is samples with targets, a trainer does the rest:
//
//        static clv_tensor *net(clv_tensor *x, const clv_model *model) {
//            x = clv_relu(clv_nn_linear(clv_flatten(x, 1), "fc1", 128, NULL));
//            return clv_nn_linear(x, "fc2", model->classes, NULL);
//        }
//        ...
//        clv_runtime *runtime = NULL;
//        clv_dataset *images = NULL;
//        clv_trainer *trainer = NULL;
//        clv_model model = {.name = "net", .build = net, .input = {1, 28, 28}, .classes = 10};
//        clv_train_config config = {.model = &model, .batch = 64, .epochs = 3, .lr = 0.1};
//        clv_runtime_create(NULL, &runtime);                                // NULL: all defaults
//        clv_dataset_fashion_mnist(runtime, NULL, CLV_SPLIT_TRAIN, NULL, &images);
//        config.train = images;
//        clv_trainer_create(runtime, &config, &trainer);                    // plans it: how much memory, on which device
//        clv_trainer_run(trainer);
//        clv_weights_save(clv_trainer_info_get(trainer).session, "net.safetensors");
//
//    Every config is a struct in which zero means the default. train.h has the settings: schedules, checkpoints, replicas,
//    layers on several devices, mixed precision. clv_predictor uses what was trained, clv_evaluate measures it.
//    The command line takes these weights, too: `cleave eval fashion-mnist --weights net.safetensors --model mlp`, because the layers
//    are those of mlp; for other layers `--ops FILE` loads a library that registers the model (clv_model_register).
//
// 2. Every function that can fail returns a clv_status, which must be looked at. CLV_OK is 0; the sentence that says what
//    went wrong, where, and what to do stays in the runtime:
//
//        if (clv_trainer_run(trainer) != CLV_OK) puts(clv_runtime_error(runtime));
//
// 3. Data of your own: arrays, .npy files, a table, a text, a folder of pictures (data.h). Models that are there:
//    clv_model_find("resnet18"), or layers by the names and first values of PyTorch's (nn.h). A loss of your own is a struct with a
//    function (clv_loss), so are an op and an optimizer (custom_op.h, optim.h).
//
// 4. A device is found by a text. The code is the same on each of them; without OpenCL there is still `host`.
//
//        clv_device_find(runtime, "gpu|cpu|host", &config.device);          // NULL: the best there is
//
// 5. Where the trainer does not fit, write the loop yourself. A graph says what is computed. Builder calls nest and never fail on
//    the spot: the first mistake sticks.
//
//        clv_graph *graph = NULL;
//        clv_graph_create(runtime, &graph);
//        clv_graph_set_training(graph, true);                               // dropout drops; leave it out to predict
//        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64, 784));
//        clv_tensor *labels = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(64));
//        clv_tensor *h = clv_relu(clv_nn_linear(x, "fc1", 128, NULL));
//        clv_tensor *loss = clv_cross_entropy(clv_nn_linear(h, "fc2", 10, NULL), labels);
//        clv_output(loss, "loss");
//
// 6. To train, append gradients and updates: they are nodes like all others.
//
//        clv_freeze(graph, "fc1");                                          // what is not to be trained; leave it out to train all
//        clv_backward(loss);
//        clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD, .momentum = 0.9f});
//
//    No gradient flows through clv_detach(h). To freeze a parameter, say clv_requires_grad(weight, false) before it is used; the
//    same call with true asks for the gradient of an input. Where no gradient arrives, clv_backward says which op stopped it.
//
// 7. A plan says how, on which device, with how many bytes; making it takes none of them. A session holds the parameters,
//    a run does the steps:
//
//        clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan);
//        clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session);
//        clv_run_create(session, plan, &run);
//        clv_feed feeds[] = {{x, images, sizeof images}, {labels, classes, sizeof classes}};
//        clv_fetch fetches[] = {{loss, &value, sizeof value}};
//        clv_run_do(run, &(clv_step){feeds, 2, 0.1, fetches, 1});           // one step, at a learning rate of 0.1
//
//    That waits for each step. clv_run_feed, clv_run_step and clv_run_fetch are its parts: fetch a step late, and the next one
//    is fed while the device computes.
//
// 8. What is made later is destroyed earlier: run, session, plan, graph; trainer, dataset; runtime last. Every destroy takes NULL.
//    A struct or a text that a call gave (a report, a placement) goes by clv_free.
//    What else may be NULL, and what happens after a fork, stands in runtime.h.
//
// 9. The seams: plans node by node (plan.h), devices for layers (place.h), times (profile.h), ops by name and of your own (custom_op.h),
//    what is right (check.h), how fast it is (bench.h, tune.h).
//
// 10. What will stay: from 1.0 on, all but what is experimental. That is check.h, bench.h, tune.h, profile.h and place.h; in
//    custom_op.h and optim.h ops and optimizers of one's own, and the walk over a graph; in train.h graphs, shares and advice without a
//    trainer; the program cache. It stands between `#ifndef CLEAVE_STABLE_ONLY` and its #endif: define that, and a compiler shows what
//    of it a program uses. The marks before types (CLV_OUT, CLV_OR_NULL and so on) are explained in status.h.
//
// The programs in samples/ are these pieces, whole and checked.
#ifndef CLEAVE_H
#define CLEAVE_H

// trainings
#include "train.h"
#include "generate.h"
// what they are made of
#include "runtime.h"
#include "status.h"
#include "device.h"
#include "data.h"
#include "io.h"
#include "nn.h"
#include "onnx.h"
#include "optim.h"
// loops of one's own
#include "tensor.h"
#include "graph.h"
#include "ops.h"
#include "plan.h"
// the seams
#include "place.h"
#include "ranks.h"
#include "profile.h"
#include "custom_op.h"
#include "check.h"
#include "bench.h"
#include "tune.h"

#endif
