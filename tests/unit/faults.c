// SPDX-License-Identifier: Apache-2.0
// Every allocation fails once: building, differentiating, planning and running a small training on the host, checking an op,
// choosing devices for layers, and moving parameters. Each time there is a status with a sentence, nothing crashes, and nothing leaks (the sanitizers look). Without a
// fault the result is right. The linker sends the library's calls here (see CMakeLists.txt).
#include <stdatomic.h>

#include "cleave/check.h"
#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/place.h"
#include "cleave/train.h"
#include "device/device.h"
#include "device/kernel_sources.h"
#include "harness/harness.h"

static atomic_int left; // the left-th allocation from now on fails; 0 or less: none
static atomic_bool failed;

static bool fails(void) {
    if (atomic_fetch_sub(&left, 1) != 1) return false;
    atomic_store(&failed, true);
    return true;
}

#define WRAP(type, name, parameters, arguments)                                                              \
    type __real_##name parameters;                                                                           \
    type __wrap_##name parameters;                                                                           \
    type __wrap_##name parameters {                                                                          \
        return fails() ? NULL : __real_##name arguments;                                                     \
    }

WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, (void *old, size_t n), (old, n))
WRAP(void *, aligned_alloc, (size_t alignment, size_t n), (alignment, n))
WRAP(char *, strdup, (const char *text), (text))

static clv_device *device; // of the runtime at hand

#define TRY(expression)                                                                                      \
    do {                                                                                                     \
        status = (expression);                                                                               \
        if (status != CLV_OK) goto done;                                                                     \
    } while (0)

static clv_status train_two_steps(clv_runtime *runtime) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_run *run = NULL;
    clv_status status;
    float x[4 * 9] = {1, 2, 3}, hyper[CLV_HYPER_VALUES], loss = 0;
    int32_t labels[4] = {0, 1, 2, 0};
    int64_t ticket;
    const clv_optimizer_config adam = {.kind = CLV_ADAM, .clip_norm = 1};
    TRY(clv_graph_create(runtime, &graph));
    clv_graph_set_training(graph, true);
    clv_tensor *in = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 1, 3, 3));
    clv_tensor *classes = clv_input(graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(4));
    clv_tensor *h = clv_nn_conv2d(in, "conv", 2, &(clv_nn_conv2d_config){.kernel = {2}});
    h = clv_nn_dropout(clv_relu(clv_nn_batch_norm(h, "norm", NULL)), 0.1f);
    clv_tensor *mean = clv_cross_entropy(clv_nn_linear(clv_flatten(h, 1), "fc", 3, NULL), classes);
    clv_output(mean, "loss");
    clv_backward(mean);
    clv_optimizer_add(graph, &adam);
    TRY(clv_graph_status(graph));
    TRY(clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(clv_session_create(runtime, &(clv_session_config){.seed = 1}, &session));
    TRY(clv_run_create(session, plan, &run));
    TRY(clv_run_feed(run, in, x, sizeof x));
    TRY(clv_run_feed(run, classes, labels, sizeof labels));
    for (int step = 1; step <= 2; step++) {
        clv_optimizer_hyper_values(graph, step, 0.1, hyper);
        TRY(clv_run_feed(run, clv_optimizer_hyper(graph), hyper, sizeof hyper));
        TRY(clv_run_step(run, &ticket));
    }
    TRY(clv_run_fetch(run, ticket, mean, &loss, sizeof loss));
    if (!(loss > 0 && loss < 5)) status = CLV_E_INTERNAL;
done:
    clv__test_end(run, session, plan, graph);
    return status;
}

static clv_status check_an_op(clv_runtime *runtime) {
    clv_check_report *report = NULL;
    clv_status status =
        clv_check(runtime, device,
                  &(clv_check_config){.ops = (const char *const[]){"softmax", NULL}, .quick = true}, &report);
    // A case for which memory was out could not run, and says so: the op is not wrong.
    if (status == CLV_OK && report->failed) {
        print_message("called wrong: %s\n", report->failures[0].sentence);
        status = CLV_E_INTERNAL;
    }
    if (status == CLV_OK && report->not_run) status = CLV_E_HOST_MEMORY;
    if (status == CLV_OK && report->cases == 0) status = CLV_E_INTERNAL;
    clv_free(report);
    return status;
}

/** Layers of a small network over null devices, which need no measuring. */
static clv_status choose_places(clv_runtime *runtime) {
    static const char *const devices[] = {"null:0", "null:1"};
    clv_graph *graph = NULL;
    clv_place_choice *choice = NULL;
    clv_status status;
    TRY(clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(4, 8));
    clv_output(clv_nn_linear(clv_relu(clv_nn_linear(x, "a", 8, NULL)), "b", 8, NULL), "y");
    clv_backward(clv_mean(clv_nn_linear(x, "c", 1, NULL), NULL, 0, false));
    TRY(clv_place_choose(graph, &(clv_place_config){.devices = devices, .n_devices = 2}, &choice));
    if (choice->n_stages < 1 || !*choice->place) status = CLV_E_INTERNAL;
done:
    clv_free(choice);
    clv_graph_destroy(graph);
    return status;
}

/** Parameters to a null device and back. */
static clv_status move_parameters(clv_runtime *runtime) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_device *there;
    clv_status status;
    TRY(clv_device_find(runtime, "null:0", &there));
    TRY(clv_graph_create(runtime, &graph));
    clv_output(clv_nn_linear(clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3)), "fc", 4, NULL), "y");
    TRY(clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan));
    TRY(clv_session_create(runtime, NULL, &session));
    TRY(clv_session_reserve(session, &plan, 1));
    status = clv_session_move(session, NULL, there);
    // All of them are there, or none is.
    uint64_t moved = clv_device_memory(there).all.current;
    if (moved != (status == CLV_OK ? (3 * 4 + 4) * 4 : 0)) status = CLV_E_INTERNAL;
    if (status == CLV_OK) status = clv_session_move(session, "fc", device);
done:
    clv__test_end(NULL, session, plan, graph);
    return status;
}

/** Tensors in pieces on two devices, which are carried between them, and moved to a device where they are whole. */
static clv_status reserve_in_pieces(clv_runtime *runtime) {
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    clv_session *session = NULL;
    clv_device *first, *second;
    clv_status status;
    TRY(clv_device_find(runtime, "null:0", &first));
    TRY(clv_device_find(runtime, "null:1", &second));
    first->info.max_alloc_bytes = 4096;
    second->info.max_alloc_bytes = 8192;
    TRY(clv_graph_create(runtime, &graph));
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(60, 40));
    x = clv_nn_linear(clv_relu(clv_nn_linear(x, "a", 50, NULL)), "b", 60, NULL);
    clv_output(x = clv_mean(x, NULL, 0, false), "loss");
    clv_backward(x);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
    TRY(clv_plan_create(graph, &(clv_plan_config){.place = "a=null:0,b=null:1"}, &plan));
    if (clv_plan_info_get(plan).n_nodes < 60) status = CLV_E_INTERNAL;
    TRY(clv_session_create(runtime, NULL, &session));
    TRY(clv_session_reserve(session, &plan, 1));
    TRY(clv_session_move(session, "b", device));
done:
    clv__test_end(NULL, session, plan, graph);
    return status;
}

static clv_tensor *two_layers(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(clv_nn_linear(clv_flatten(x, 1), "a", 6, NULL), "b", model->classes, NULL);
}

/** What would make a training fit: as it is, or that host memory is out, but nothing else. */
static clv_status advise(clv_runtime *runtime) {
    static const clv_model model = {.name = "two", .build = two_layers, .input = {1, 32, 32}, .classes = 3};
    clv_train_config config = {.model = &model, .batch = 6};
    clv_train_advice advice;
    clv_status status;
    TRY(clv_device_find(runtime, "null:0", &config.device));
    clv_device_set_budget(config.device, 120000); // four samples
    TRY(clv_pass_advise(runtime, &config, CLV_PASS_TRAIN, &advice));
    if (advice.largest_batch != 4 || strcmp(advice.device, "null:1") != 0 || *advice.place) {
        print_message("largest %d, device '%s', place '%s'\n", (int)advice.largest_batch, advice.device,
                      advice.place);
        status = CLV_E_INTERNAL;
    }
done:
    return status;
}

static void every_allocation(clv_status (*work)(clv_runtime *runtime)) {
    for (int n = 1;; n++) {
        clv_runtime *runtime =
            clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .null_devices = true});
        device = clv__test_device(runtime, "host");
        atomic_store(&failed, false);
        atomic_store(&left, n);
        clv_status status = work(runtime);
        atomic_store(&left, 0);
        bool hit = atomic_load(&failed);
        if (!hit) assert_status(status, CLV_OK, runtime);
        // A fault may be survived (the name of a log line); otherwise it is told as what it is. The memory of the host device
        // is host memory.
        if (hit && status != CLV_OK && status != CLV_E_DEVICE_MEMORY) {
            if (status != CLV_E_HOST_MEMORY) print_message("allocation %d:\n", n);
            assert_status(status, CLV_E_HOST_MEMORY, runtime);
            assert_true(strlen(clv_runtime_error(runtime)) > 10);
        }
        uint64_t held = clv_device_memory(device).all.current;
        clv_runtime_destroy(runtime);
        assert_int_equal(held, 0);
        if (!hit) {
            print_message("%d allocations, each failed once\n", n - 1);
            return;
        }
    }
}

TEST(training) {
    every_allocation(train_two_steps);
}

TEST(pieces) {
    if (!clv__kernel_sources[0].stem)
        skip(); // on a null device, which is told of kernels, and this library has none
    every_allocation(reserve_in_pieces);
}

TEST(checking) {
    every_allocation(check_an_op);
}

TEST(choosing) {
    every_allocation(choose_places);
}

TEST(advising) {
    every_allocation(advise);
}

TEST(moving) {
    every_allocation(move_parameters);
}

TEST_MAIN(NULL, NULL)
