// SPDX-License-Identifier: Apache-2.0
// A training of several processes: `mpirun -n 2 ./ranks join`. Each computes a part of every batch, and all have the same
// parameters at the end. Alone it plans what one of four would send and hold.
#include "common.h"

enum { COUNT = 96 };

/** What one of four ranks would send in a step. */
static int plan_four(clv_runtime *runtime, clv_train_config config) {
    const clv_ranks_config four = {.planned = 4, .rank = 1};
    clv_ranks *ranks = NULL;
    clv_graph *graph = NULL;
    clv_plan *plan = NULL;
    TRY(runtime, clv_ranks_create(runtime, &four, &ranks));
    config.ranks = ranks;
    TRY(runtime, clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, config.batch, &graph));
    TRY(runtime, clv_plan_create(graph, &(clv_plan_config){.device = config.device}, &plan));
    const int64_t sent = clv_ranks_step_bytes(ranks, plan);
    printf("one of four ranks would send %lld bytes a step\n", (long long)sent);
    CHECK(sent > 0);
    clv_plan_destroy(plan);
    clv_graph_destroy(graph);
    clv_ranks_destroy(ranks);
    return 0;
}

int main(int argc, char **argv) {
    static float images[COUNT * 784];
    static int32_t classes[COUNT];
    clv_runtime *runtime = NULL;
    clv_ranks *ranks = NULL;
    clv_trainer *trainer = NULL;
    (void)argv;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    clv_dataset *data = made_up_dataset(runtime, COUNT, images, classes);
    clv_train_config config = {
        .model = clv_model_find("mlp"), .train = data, .batch = 32, .steps = 6, .lr = 0.05, .seed = 1};
    TRY(runtime, clv_device_find(runtime, "cpu|host", &config.device));
    if (plan_four(runtime, config)) return 1;
    if (argc > 1) { // join
        TRY(runtime, clv_ranks_create(runtime, NULL, &ranks));
        config.ranks = ranks;
        config.device = NULL;
        TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
        TRY(runtime, clv_trainer_run(trainer));
        printf("rank %d of %d: loss %.4f\n", clv_ranks_info_get(ranks).rank, clv_ranks_info_get(ranks).size,
               clv_trainer_result(trainer).train_loss);
    }
    clv_trainer_destroy(trainer);
    clv_ranks_destroy(ranks);
    clv_dataset_destroy(data);
    clv_runtime_destroy(runtime);
    return 0;
}
