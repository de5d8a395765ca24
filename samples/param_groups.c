// SPDX-License-Identifier: Apache-2.0
// Parameter groups: no weight decay on biases, the first layer at a tenth of the learning rate, as one does when weights that are there are
// trained on. What the groups do is read from the weights after one step. The argument: a device.
#include "common.h"

#include <math.h>

enum { N = 64 };

/** The largest difference of a parameter after a step from what it was: both trainings begin with the same. */
static float moved(clv_runtime *runtime, clv_train_config *config, float lr, const char *name, size_t n,
                   const float *before, float *after) {
    clv_trainer *trainer = NULL;
    float most = 0;
    config->lr = lr;
    TRY(runtime, clv_trainer_create(runtime, config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    clv_session *session = clv_trainer_info_get(trainer).session;
    TRY(runtime, clv_session_read(session, clv_session_find(session, name), after, n * sizeof *after));
    for (size_t i = 0; before && i < n; i++) most = fmaxf(most, fabsf(after[i] - before[i]));
    clv_trainer_destroy(trainer);
    return most;
}

int main(int argc, char **argv) {
    static float images[N * 784], first[128 * 784], before[128 * 784], after[128 * 784];
    static int32_t classes[N];
    const clv_param_group groups[] = {{.patterns = "fc1.*", .lr = 0.1f}, {.max_rank = 1, .weight_decay = -1}};
    clv_train_config config = {.model = clv_model_find("mlp"), .batch = N, .epochs = 1};
    clv_runtime *runtime = NULL;
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    clv_dataset *dataset = made_up_dataset(runtime, N, images, classes);
    config.train = dataset;
    config.optimizer = (clv_optimizer_config){.kind = CLV_SGD, .weight_decay = 0.01f};
    moved(runtime, &config, 1e-30f, "fc1.weight", 128 * 784, NULL, first); // where both begin
    const float whole = moved(runtime, &config, 0.5f, "fc1.weight", 128 * 784, first, before);
    config.optimizer.groups = groups;
    config.optimizer.n_groups = 2;
    const float tenth = moved(runtime, &config, 0.5f, "fc1.weight", 128 * 784, first, after);
    printf("fc1 moves by %.5f, in its group by %.5f\n", (double)whole, (double)tenth);
    CHECK(tenth > 0.09f * whole && tenth < 0.11f * whole);
    clv_dataset_destroy(dataset), clv_runtime_destroy(runtime);
    return 0;
}
