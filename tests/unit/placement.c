// SPDX-License-Identifier: Apache-2.0
// Automatic placement on null devices, whose speed is modelled, so that every run chooses alike. What is chosen is held against
// every other way to cut the layers, each planned.
#include <float.h>

#include "cleave/nn.h"
#include "cleave/ops.h"
#include "cleave/optim.h"
#include "cleave/place.h"
#include "harness/harness.h"
#include "placement/layers.h"

TEST_RUNTIME
static clv_device *devices[2];
static const char *const names[] = {"null:0", "null:1"};

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.null_devices = true});
    for (int i = 0; i < 2; i++) devices[i] = clv__test_device(runtime, names[i]);
}

/** `n` linear layers fc0, fc1, ... of widths[i] features each with relu between them, and a whole training step. */
static clv_graph *perceptron(int64_t batch, const int64_t *widths, int n) {
    char name[16];
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(batch, 64));
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "fc%d", i);
        x = clv_relu(clv_nn_linear(x, name, widths[i], NULL));
    }
    clv_tensor *loss = clv_mean(clv_square(x), NULL, 0, false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_ADAM});
    return graph;
}

static clv_status choose(clv_graph *graph, const char *method, clv_place_choice **out) {
    // estimates are of layers one by one, and so are the ways that they are held against
    const clv_place_config config = {.place = method, .devices = names, .n_devices = 2, .plan.no_fuse = true};
    return clv_place_choose(graph, &config, out);
}

/** One way to cut: the first `cut` layers on devices[first], the others on the other one. */
typedef struct way {
    bool fits;
    double slowest, total;
    uint64_t most, bytes[2];
} way;

static way try_way(clv_graph *graph, int n, int first, int cut) {
    char place[256] = "";
    for (int i = 0; i < n; i++)
        snprintf(place + strlen(place), sizeof place - strlen(place), "fc%d=%s,", i,
                 names[i < cut ? first : !first]);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.place = place, .no_fuse = true});
    way w = {.fits = clv_plans_fit(&plan, 1) == CLV_OK};
    for (int d = 0; d < 2; d++) {
        clv__speed speed;
        double seconds = 0;
        assert_status(clv__speed_of(devices[d], &speed), CLV_OK, runtime);
        for (size_t i = 0; i < plan->n_nodes; i++) {
            if (plan->places[plan->nodes[i].place].device == devices[d])
                seconds += clv__speed_seconds(&speed, plan, &plan->nodes[i]);
        }
        if (seconds > w.slowest) w.slowest = seconds;
        w.total += seconds;
        w.bytes[d] = clv_plans_memory(&plan, 1, devices[d]).predicted_peak_bytes;
        if (w.bytes[d] > w.most) w.most = w.bytes[d];
    }
    clv_plan_destroy(plan);
    return w;
}

/** The way that a choice went. */
static way way_of(clv_graph *graph, int n, const clv_place_choice *choice) {
    return try_way(graph, n, choice->stages[0].device == devices[1], choice->stages[0].layers);
}

static void budgets(uint64_t a, uint64_t b) {
    clv_device_set_budget(devices[0], a);
    clv_device_set_budget(devices[1], b);
}

static const int64_t equal[] = {1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024,
                                1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024};
static const int64_t unequal[] = {64, 1024, 32, 512, 512, 2048, 16};

TEST(test_auto_balances_time) {
    const struct {
        const int64_t *widths;
        int n;
    } models[] = {{equal, 16}, {equal, 4}, {unequal, 7}};
    for (int m = 0; m < 3; m++) {
        int n = models[m].n;
        clv_graph *graph = perceptron(512, models[m].widths, n);
        double slowest = DBL_MAX, total = DBL_MAX;
        for (int i = 0; i < 2 * (n + 1); i++) {
            way w = try_way(graph, n, i % 2, i / 2);
            if (w.slowest < slowest) slowest = w.slowest;
        }
        for (int i = 0; i < 2 * (n + 1); i++) {
            way w = try_way(graph, n, i % 2, i / 2);
            if (w.slowest <= slowest * 1.1 && w.total < total) total = w.total;
        }
        clv_place_choice *choice;
        assert_status(choose(graph, "auto", &choice), CLV_OK, runtime);
        way chosen = way_of(graph, n, choice);
        print_message("%s\n    slowest stage %.3g s of %.3g, together %.3g s of %.3g\n", choice->place,
                      chosen.slowest, slowest, chosen.total, total);
        assert_true(chosen.slowest <= slowest * 1.1001);
        assert_true(chosen.total <= total * 1.03);
        double seconds = 0;
        for (int i = 0; i < choice->n_stages; i++) seconds += choice->stages[i].seconds;
        assert_true(seconds > chosen.total * 0.999 && seconds < chosen.total * 1.001);
        clv_free(choice);
        clv_graph_destroy(graph);
    }
}

TEST(test_a_slow_device_gets_nothing) {
    clv_graph *graph = perceptron(512, equal, 4); // a quarter there takes longer than all of it here
    clv_place_choice *choice;
    assert_status(choose(graph, "auto", &choice), CLV_OK, runtime);
    assert_string_equal(choice->place, "*=null:0");
    assert_int_equal(choice->n_stages, 1);
    assert_ptr_equal(choice->stages[0].device, devices[0]);
    assert_int_equal(choice->stages[0].layers, 4);
    clv_free(choice);
    clv_graph_destroy(graph);
}

TEST(test_balanced_evens_out_bytes) {
    clv_graph *graph = perceptron(64, unequal, 7);
    uint64_t most = UINT64_MAX;
    for (int cut = 0; cut <= 7; cut++) {
        way w = try_way(graph, 7, 0, cut);
        if (w.most < most) most = w.most;
    }
    clv_place_choice *choice;
    assert_status(choose(graph, "balanced", &choice), CLV_OK, runtime);
    assert_int_equal(choice->n_stages, 2);
    way chosen = way_of(graph, 7, choice);
    assert_int_equal(chosen.most, most);
    assert_int_equal(choice->stages[0].bytes, chosen.bytes[0]);
    assert_int_equal(choice->stages[1].bytes, chosen.bytes[1]);
    clv_free(choice);
    clv_graph_destroy(graph);
}

TEST(test_sequential_fills_the_first) {
    clv_graph *graph = perceptron(64, unequal, 7);
    for (int want = 1; want < 7; want++) {
        way w = try_way(graph, 7, 0, want);
        budgets(w.bytes[0], 0);
        clv_place_choice *choice;
        assert_status(choose(graph, "sequential", &choice), CLV_OK, runtime);
        int most = want; // a longer run may hold no more
        while (most < 7 && try_way(graph, 7, 0, most + 1).bytes[0] <= w.bytes[0]) most++;
        assert_int_equal(choice->stages[0].layers, most);
        assert_ptr_equal(choice->stages[0].device, devices[0]);
        clv_free(choice);
    }
    budgets(0, 0);
    clv_place_choice *choice;
    assert_status(choose(graph, "sequential", &choice), CLV_OK, runtime);
    assert_string_equal(choice->place, "*=null:0");
    clv_free(choice);
    clv_graph_destroy(graph);
}

/** Bytes on null:0 when the first `cut` layers are there. */
static uint64_t bytes_of_first(clv_graph *graph, const clv__layers *layers, int cut) {
    char place[4096] = "";
    for (int i = 0; i < layers->n; i++)
        snprintf(place + strlen(place), sizeof place - strlen(place), "%s=%s,", layers->items[i].name,
                 names[i < cut ? 0 : 1]);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.place = place});
    uint64_t bytes = clv_plans_memory(&plan, 1, devices[0]).predicted_peak_bytes;
    clv_plan_destroy(plan);
    return bytes;
}

/** Arenas have holes that estimates know nothing of: with budgets at the edge the exact search has to find the cut. */
TEST(test_a_residual_network_to_the_byte) {
    clv_model model = clv_model_for(clv_model_find("resnet18"), 3, 32, 32, 10);
    clv__layers layers = {0};
    clv_graph *graph = clv__test_graph(runtime);
    clv_graph_set_training(graph, true);
    clv_tensor *x = clv_model_input(graph, &model, 16);
    clv_tensor *loss = clv_mean(clv_square(clv_model_build(&model, x)), NULL, 0, false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = devices[0]});
    assert_status(clv__layers_find(plan, &layers), CLV_OK, runtime);
    clv_plan_destroy(plan);
    for (int want = 4; want < layers.n; want += 9) {
        uint64_t budget = bytes_of_first(graph, &layers, want);
        clv_place_choice *choice;
        budgets(budget, 0);
        assert_status(choose(graph, "sequential", &choice), CLV_OK, runtime);
        int got = choice->stages[0].device == devices[0] ? choice->stages[0].layers : 0;
        print_message("%d layers fit into %llu bytes, %d chosen\n", want, (unsigned long long)budget, got);
        assert_true(got >= want);
        assert_true(choice->stages[0].bytes <= budget);
        assert_true(got == layers.n || bytes_of_first(graph, &layers, got + 1) > budget);
        clv_free(choice);
    }
    budgets(0, 0);
    clv__layers_reset(&layers);
    clv_graph_destroy(graph);
}

/** Whatever the budgets: what is chosen keeps them, and nothing is refused that could be done. */
TEST(test_budgets_are_kept) {
    clv_graph *graph = perceptron(64, unequal, 7);
    uint64_t whole = try_way(graph, 7, 0, 7).bytes[0];
    const char *const methods[] = {"auto", "balanced", "sequential"};
    int refused = 0, kept = 0;
    for (int a = 1; a <= 6; a++) {
        for (int b = 1; b <= 6; b++) {
            budgets(whole * (uint64_t)a / 6 + 1, whole * (uint64_t)b / 6 + 1);
            bool possible = false, in_order = false;
            for (int i = 0; i < 16; i++) {
                bool fits = try_way(graph, 7, i % 2, i / 2).fits;
                possible |= fits;
                in_order |= fits && i % 2 == 0;
            }
            for (int m = 0; m < 3; m++) {
                clv_place_choice *choice;
                clv_status status = choose(graph, methods[m], &choice);
                if (status == CLV_OK) {
                    assert_true(way_of(graph, 7, choice).fits);
                    kept++;
                } else {
                    assert_status(status, CLV_E_BUDGET, runtime);
                    assert_holds(clv_runtime_error(runtime), "placement: ");
                    assert_false(m == 0 ? possible : in_order);
                    refused++;
                }
                clv_free(choice);
            }
        }
    }
    print_message("%d kept, %d refused\n", kept, refused);
    assert_true(kept > 10 && refused > 10);
    budgets(0, 0);
    clv_graph_destroy(graph);
}

TEST(test_the_refusal_says_what_would_fit) {
    clv_graph *graph = perceptron(64, unequal, 7);
    budgets(9 << 20, 9 << 20);
    clv_place_choice *choice;
    assert_status(choose(graph, "auto", &choice), CLV_E_BUDGET, runtime);
    assert_null(choice);
    unsigned long long bytes[2];
    const char *sentence = clv_runtime_error(runtime), *on = strstr(sentence, "would hold ");
    assert_holds(sentence, "placement: nothing fits; the nearest, fc0=null:");
    assert_holds(sentence, "of 9.0 MiB: raise budgets to that, name more devices, or make the batch smaller");
    assert_non_null(on);
    for (int i = 0; i < 2; i++) {
        on = strchr(on, '(');
        assert_non_null(on);
        assert_int_equal(sscanf(on++, "(%llu bytes)", &bytes[i]), 1);
    }
    budgets(bytes[0], bytes[1]); // it is true
    assert_status(choose(graph, "auto", &choice), CLV_OK, runtime);
    clv_free(choice);
    budgets(0, 0);
    clv_graph_destroy(graph);
}

TEST(test_texts_are_short_and_safe) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(64, 512));
    static const char *const layers[][3] = {{"a", "", "0"},    {"a", "", "1"},    {"a", "", "2"},
                                            {"b*,=", "", "0"}, {"b*,=", "", "1"}, {"b*,=", "", "2"},
                                            {"c", "x", "0"},   {"c", "x", "1"},   {"", "", "d"}};
    for (int i = 0; i < 9; i++) {
        for (int k = 0; k < 2; k++) {
            if (*layers[i][k]) clv_scope_push(graph, layers[i][k]);
        }
        x = clv_relu(clv_nn_linear(x, layers[i][2], 512, NULL));
        for (int k = 0; k < 2; k++) {
            if (*layers[i][k]) clv_scope_pop(graph);
        }
    }
    clv_output(x, "y");
    clv_place_choice *choice;
    assert_status(choose(graph, "balanced", &choice), CLV_OK, runtime);
    assert_string_equal(choice->place,
                        "a.*=null:0,b???.0=null:0,b???.1=null:1,b???.2=null:1,c.*=null:1,d=null:1");
    clv_plan *plan; // as it was printed
    plan = clv__test_plan(runtime, graph, &(clv_plan_config){.place = choice->place});
    for (int i = 0; i < clv_plan_info_get(plan).n_nodes; i++) {
        clv_plan_node node = clv_plan_node_get(plan, i);
        if (strcmp(node.layer, "b*,=.0") == 0) assert_ptr_equal(node.device, devices[0]);
        if (strcmp(node.layer, "b*,=.2") == 0) assert_ptr_equal(node.device, devices[1]);
    }
    assert_int_equal(clv_plan_info_get(plan).n_transfers, 1);
    clv_plan_destroy(plan);
    clv_free(choice);
    clv_graph_destroy(graph);
}

/** A cut between blocks of a residual network carries one value there and one gradient back, not one for each block. */
TEST(test_residuals_are_carried_once) {
    clv_graph *graph = clv__test_graph(runtime);
    clv_tensor *tokens = clv_input(graph, "tokens", CLV_DTYPE_I32, CLV_SHAPE(4, 32));
    clv_tensor *loss =
        clv_mean(clv_square(clv_gpt(tokens, &(clv_gpt_config){.context = 32, .width = 96})), NULL, 0, false);
    clv_output(loss, "loss");
    clv_backward(loss);
    clv_optimizer_add(graph, &(clv_optimizer_config){.kind = CLV_SGD});
    clv_place_choice *choice;
    assert_status(choose(graph, "balanced", &choice), CLV_OK, runtime);
    clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.place = choice->place});
    print_message("%s: %d transfers\n", choice->place, clv_plan_info_get(plan).n_transfers);
    assert_int_equal(choice->n_stages, 2);
    assert_true(clv_plan_info_get(plan).n_transfers <=
                4); // the residual and a block's own value; their gradients
    clv_plan_destroy(plan);
    clv_free(choice);
    clv_graph_destroy(graph);
}

TEST(test_a_text_is_taken_as_it_is) {
    clv_graph *graph = perceptron(64, unequal, 7);
    clv_place_choice *choice;
    const clv_place_config config = {.place = "*=null:1,fc0=null:0"};
    assert_status(clv_place_check(graph, &config), CLV_OK, runtime);
    assert_status(clv_place_choose(graph, &config, &choice), CLV_OK, runtime);
    assert_string_equal(choice->place, config.place);
    assert_int_equal(choice->n_stages, 2);
    assert_ptr_equal(choice->stages[0].device, devices[1]); // as the text names them
    assert_int_equal(choice->stages[0].layers, 6);
    assert_int_equal(choice->stages[1].layers, 1);
    assert_int_equal(choice->stages[1].bytes, try_way(graph, 7, 0, 1).bytes[0]);
    clv_free(choice);
    clv_graph_destroy(graph);
}

static void refuse(clv_graph *graph, const clv_place_config *config, clv_status status,
                   const char *sentence) {
    clv_place_choice *choice;
    assert_status(clv_place_check(graph, config), status, runtime);
    assert_string_equal(clv_runtime_error(runtime), sentence);
    assert_status(clv_place_choose(graph, config, &choice), status, runtime);
    assert_string_equal(clv_runtime_error(runtime), sentence);
    assert_null(choice);
}

TEST(test_mistakes_are_told_before_anything_is_taken) {
    clv_graph *graph = perceptron(64, unequal, 2);
    const char *const twice[] = {"null:0", "null:0"}, *const same[] = {"null:0", "null"},
                      *const three[] = {"null:0", "null:1", "host"}, *const unknown[] = {"null:0", "nowhere"};
    clv_place_config config = {.place = "auto"};
    refuse(graph, &config, CLV_E_VALUE, "placement: 'auto' needs devices to choose from");
    config = (clv_place_config){.devices = twice, .n_devices = 2};
    refuse(graph, &config, CLV_E_VALUE, "placement: device 'null:0' is named twice");
    config.devices = same;
    refuse(graph, &config, CLV_E_VALUE, "placement: 'null:0' and 'null' are the same device, null:0");
    config = (clv_place_config){.devices = three, .n_devices = 3};
    refuse(graph, &config, CLV_E_VALUE, "placement: 3 devices for 2 layers with parameters: name at most 2");
    config = (clv_place_config){.devices = names, .n_devices = 17};
    refuse(graph, &config, CLV_E_VALUE, "placement: 17 devices, at most 16 are possible");
    config = (clv_place_config){.place = "balanced", .devices = names, .n_devices = 2};
    config.plan.explicit_transfers = true;
    refuse(
        graph, &config, CLV_E_VALUE,
        "placement: 'balanced' lets data cross between devices, and explicit transfers forbid it: say where "
        "layers are");
    config = (clv_place_config){.place = "fc0=null:0", .devices = names, .n_devices = 2};
    refuse(graph, &config, CLV_E_VALUE,
           "placement: 'fc0=null:0' says where layers are, devices to choose from are for auto, balanced and "
           "sequential");
    config = (clv_place_config){.place = "fc0=null:0"};
    refuse(graph, &config, CLV_E_VALUE,
           "placement: no pattern covers 'fc1'; add one, or `*=device` first for all others");
    config = (clv_place_config){.place = "*=null:0,fc7=null:1"};
    refuse(graph, &config, CLV_E_NOT_FOUND, "placement: no layer matches 'fc7'; did you mean 'fc0'?");
    config = (clv_place_config){.place = "fast"};
    refuse(graph, &config, CLV_E_VALUE, "placement: 'fast' is not of the form pattern=device");
    config = (clv_place_config){.devices = unknown, .n_devices = 2};
    assert_status(clv_place_check(graph, &config), CLV_E_NOT_FOUND, runtime);
    assert_holds(clv_runtime_error(runtime), "'nowhere'");

    clv_place_choice *choice;
    budgets(16640 - 1, 10000); // fc0 has 64 * 64 + 64 parameters
    assert_status(choose(graph, "auto", &choice), CLV_E_BUDGET, runtime);
    assert_string_equal(
        clv_runtime_error(runtime),
        "placement: layer 'fc0' has 16.2 KiB (16640 bytes) of parameters, more than any device may hold "
        "(null:0 16.2 KiB, null:1 9.8 KiB): raise a budget, or name a larger device");
    budgets(0, 0);
    clv_graph_destroy(graph);

    graph = clv__test_graph(runtime);
    clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 4));
    clv_graph_set_place(graph, "null:1");
    x = clv_nn_linear(x, "a", 4, NULL);
    clv_graph_set_place(graph, NULL);
    clv_output(clv_nn_linear(x, "b", 4, NULL), "y");
    config = (clv_place_config){.devices = names, .n_devices = 2};
    refuse(
        graph, &config, CLV_E_VALUE,
        "placement: linear 'a' was put on 'null:1' when the graph was built: say where the other layers are");
    clv_graph_destroy(graph);
    for (int i = 0; i < 2; i++) assert_int_equal(clv_device_memory(devices[i]).all.total_allocated, 0);
}

TEST(test_measured_devices_are_left_as_they_were) {
    clv_runtime *usual = runtime; // the host is always there, and no kept figures are
    runtime =
        clv__test_runtime(&(clv_runtime_config){.no_opencl = true, .no_cache = true, .null_devices = true});
    const char *real[] = {"host", "null:1"};
    clv_device *host = clv__test_device(runtime, "host");
    clv_graph *graph = perceptron(64, unequal, 7);
    const clv_place_config config = {.devices = real, .n_devices = 2};
    clv_place_choice *choice;
    assert_status(clv_place_choose(graph, &config, &choice), CLV_OK, runtime);
    clv_free(choice);
    assert_true(clv_device_memory(host).all.total_allocated > 0);
    assert_int_equal(clv_device_memory(host).all.current, 0);
    assert_int_equal(clv_device_memory(host).all.peak, 0);
    clv__speed speed;
    assert_status(clv__speed_of(host, &speed), CLV_OK, runtime);
    print_message("host: %.1f GFLOP/s, %.1f GB/s, read %.1f, write %.1f GB/s, launch %.1f us\n",
                  speed.flops * 1e-9, speed.bytes * 1e-9, speed.read * 1e-9, speed.write * 1e-9,
                  speed.launch * 1e6);
    assert_true(speed.flops > 1e6 && speed.flops < 1e13 && speed.launch > 0 && speed.launch < 1);
    uint64_t allocated = clv_device_memory(host).all.total_allocated;
    clv_device_set_budget(host, 1 << 20); // no room to measure in: the model will do
    assert_status(clv_place_choose(graph, &config, &choice), CLV_OK, runtime);
    assert_int_equal(clv_device_memory(host).all.total_allocated, allocated);
    clv_free(choice);
    clv_graph_destroy(graph);
    clv_runtime_destroy(runtime);
    runtime = usual;
}

TEST_MAIN(setup, end_runtime)
