// SPDX-License-Identifier: Apache-2.0
// clv_run_do: the same bits as feed, hyper, step and fetch one by one, for each optimizer; and what it refuses.
#include <math.h>

#include "misuse/world.h"

enum { STEPS = 12 };

TEST_RUNTIME
static clv_device *host;

typedef struct training {
    clv_graph *graph;
    clv_tensor *x, *labels, *loss;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
} training;

static training begin_training(const clv_optimizer_config *optimizer) {
    training t = {0};
    t.graph = clv__test_graph(runtime);
    clv_graph_set_training(t.graph, true);
    t.x = clv_input(t.graph, "x", CLV_DTYPE_F32, CLV_SHAPE(ROWS, 1, 2, 3));
    t.labels = clv_input(t.graph, "labels", CLV_DTYPE_I32, CLV_SHAPE(ROWS));
    t.loss = clv_cross_entropy(net(t.x, &model), t.labels);
    clv_output(t.loss, "loss");
    if (optimizer) {
        clv_backward(t.loss);
        clv_optimizer_add(t.graph, optimizer);
    }
    t.plan = clv__test_plan(runtime, t.graph, &(clv_plan_config){.device = host});
    t.session = clv__test_session(runtime, &(clv_session_config){.seed = 3});
    t.run = clv__test_run(runtime, t.session, t.plan);
    return t;
}

static void end_training(training *t) {
    clv__test_end(t->run, t->session, t->plan, t->graph);
}

static double lr_of(int step) {
    return 0.1 / step;
}

TEST(the_same_as_its_parts) {
    static const clv_optimizer_config optimizers[] = {{.kind = CLV_SGD, .momentum = 0.9f, .dampening = 0.5f},
                                                      {.kind = CLV_ADAM},
                                                      {.kind = CLV_ADAMW, .clip_norm = 1}};
    static const float images[ROWS * 6] = {0.5f, -1, 2, 0.25f, 1, -0.5f, 0, 3, -2, 1, 1, 0.125f};
    static const int32_t classes[ROWS] = {0, 1, 2, 1};
    for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++) {
        training a = begin_training(&optimizers[k]), b = begin_training(&optimizers[k]);
        for (int step = 1; step <= STEPS; step++) {
            float at_once, in_parts, values[CLV_HYPER_VALUES];
            int64_t ticket;
            clv_feed feeds[] = {{a.x, images, sizeof images}, {a.labels, classes, sizeof classes}};
            clv_fetch fetches[] = {{a.loss, &at_once, sizeof at_once}};
            int n = step == 1 ? 2 : 0; // inputs keep their values
            assert_status(clv_run_do(a.run, &(clv_step){feeds, n, lr_of(step), fetches, 1}), CLV_OK, runtime);
            clv_optimizer_hyper_values(b.graph, step, lr_of(step), values);
            assert_status(clv_run_feed(b.run, b.x, images, sizeof images), CLV_OK, runtime);
            assert_status(clv_run_feed(b.run, b.labels, classes, sizeof classes), CLV_OK, runtime);
            assert_status(clv_run_feed(b.run, clv_optimizer_hyper(b.graph), values, sizeof values), CLV_OK,
                          runtime);
            assert_status(clv_run_step(b.run, &ticket), CLV_OK, runtime);
            assert_status(clv_run_fetch(b.run, ticket, b.loss, &in_parts, sizeof in_parts), CLV_OK, runtime);
            assert_memory_equal(&at_once, &in_parts, sizeof at_once);
        }
        assert_int_equal(clv_session_info_get(a.session).step, STEPS);
        end_training(&a);
        end_training(&b);
    }
}

TEST(without_an_optimizer_it_only_computes) {
    training t = begin_training(NULL);
    static const float images[ROWS * 6] = {1};
    static const int32_t classes[ROWS] = {0};
    float first = 0, again = 0;
    clv_feed feeds[] = {{t.x, images, sizeof images}, {t.labels, classes, sizeof classes}};
    assert_status(clv_run_do(t.run, &(clv_step){feeds, 2, NAN, &(clv_fetch){t.loss, &first, 4}, 1}), CLV_OK,
                  runtime);
    assert_status(clv_run_do(t.run, &(clv_step){.fetches = &(clv_fetch){t.loss, &again, 4}, .n_fetches = 1}),
                  CLV_OK, runtime);
    assert_true(first > 0);
    end_training(&t);
}

TEST(it_refuses_rates_that_are_none) {
    training t = begin_training(&(clv_optimizer_config){0});
    static const double wrong[] = {-0.1, NAN, INFINITY};
    for (int i = 0; i < 3; i++) {
        assert_status(clv_run_do(t.run, &(clv_step){.lr = wrong[i]}), CLV_E_VALUE, runtime);
        assert_holds(clv_runtime_error(runtime), "clv_run_do: the learning rate is");
    }
    assert_status(clv_run_do(t.run, &(clv_step){.lr = 1}), CLV_E_STATE, runtime); // nothing is fed
    assert_int_equal(clv_session_info_get(t.session).step, 0);
    end_training(&t);
}

FIXTURE(begin) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    host = clv__test_device(runtime, "host");
}

TEST_MAIN(begin, end_runtime)
