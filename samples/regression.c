// SPDX-License-Identifier: Apache-2.0
// Numbers instead of classes: a model of one's own learns columns of a table, once with the built-in mean squared error and once with a
// loss of one's own that outliers do not impress. regression cpu
#include "common.h"

enum { ROWS = 400 };

/** price = 2 a - b + 0.5, and every twentieth is far off. */
static void write_table(const char *path) {
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("id,a,b,price\n", file);
    for (int i = 0; i < ROWS; i++) {
        const double a = i % 19 / 9.0 - 1, b = i % 7 / 3.0 - 1;
        fprintf(file, "%d,%g,%g,%g\n", i, a, b, 2 * a - b + 0.5 + (i % 20 == 0 ? 10 : 0));
    }
    CHECK(fclose(file) == 0);
}

static clv_tensor *line(clv_tensor *x, const clv_model *model) {
    return clv_nn_linear(x, "fc", model->target[0], NULL);
}

/** Smooth: squares of small differences, the rest counted once: sqrt(1 + d^2) - 1, its mean. */
static clv_tensor *build_robust(clv_tensor *output, clv_tensor *target, const clv_loss *loss) {
    (void)loss;
    clv_tensor *off = clv_sqrt(clv_add_scalar(clv_square(clv_sub(output, target)), 1));
    return clv_mean(clv_add_scalar(off, -1), NULL, 0, false);
}

/** Train, and read what stands before a, before b, and alone. */
static void learn(clv_runtime *runtime, const clv_train_config *config, float found[3]) {
    clv_trainer *trainer = NULL;
    TRY(runtime, clv_trainer_create(runtime, config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    clv_session *session = clv_trainer_info_get(trainer).session;
    TRY(runtime, clv_session_read(session, clv_session_find(session, "fc.weight"), found, 2 * sizeof *found));
    TRY(runtime, clv_session_read(session, clv_session_find(session, "fc.bias"), found + 2, sizeof *found));
    printf("price = %.2f a %+.2f b %+.2f\n", (double)found[0], (double)found[1], (double)found[2]);
    clv_trainer_destroy(trainer);
}

int main(int argc, char **argv) {
    const char *path = "regression.csv";
    const clv_model model = {.name = "line", .build = line, .input = {2}, .target = {1}};
    const clv_loss robust = {.name = "robust", .build = build_robust};
    const clv_table_config columns = {.targets = "price", .ignore = "id"};
    clv_train_config config = {.model = &model, .batch = 40, .epochs = 60, .lr = 0.1};
    clv_runtime *runtime = NULL;
    clv_dataset *table = NULL;
    float squares[3], smooth[3];
    write_table(path);
    TRY(runtime, clv_runtime_create(NULL, &runtime));
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    TRY(runtime, clv_dataset_table(runtime, path, &columns, &table));
    config.train = table;
    learn(runtime, &config, squares);
    config.loss = &robust;
    learn(runtime, &config, smooth);
    CHECK(squares[2] > 0.9f);                      // drawn up by what is far off: 0.5 + 10 / 20
    CHECK(smooth[2] > 0.45f && smooth[2] < 0.65f); // hardly
    CHECK(smooth[0] > 1.9f && smooth[0] < 2.1f && smooth[1] < -0.9f && smooth[1] > -1.1f);
    clv_dataset_destroy(table);
    clv_runtime_destroy(runtime);
    remove(path);
    return 0;
}
