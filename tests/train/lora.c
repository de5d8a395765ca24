// SPDX-License-Identifier: Apache-2.0
// LoRA: gradients, losses and adapters as PyTorch had them by the formula; what is frozen keeps its bits and takes neither gradients nor
// optimizer state; files of adapters and merged weights predict the same; checkpoints; and what is refused.
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleave/generate.h"
#include "cleave/ops.h"
#include "cleave/train.h"
#include "harness/harness.h"

enum { STEPS = 3, MOST = 4096 };

static clv_runtime *runtime;
static clv_archive *golden;

static clv_tensor *build_mlp(clv_tensor *x, const clv_model *model) {
    clv_graph *graph = clv_tensor_graph(x);
    const clv_init init = {CLV_INIT_UNIFORM, -0.1f, 0.1f};
    x = clv_relu(clv_nn_linear(x, "fc1", 10, NULL));
    x = clv_relu(clv_matmul(x, clv_parameter(graph, "mid", CLV_SHAPE(10, 10), init)));
    return clv_nn_linear(x, "fc2", model->classes, NULL);
}

/** A training of the golden file. */
typedef struct golden_case {
    const char *name, *layers;
    clv_model model;
    int64_t rank, batch;
    double alpha;
    int adapters;
} golden_case;

enum { CASES = 2 };
static golden_case cases[CASES] = {
    {"mlp", "fc*,mid", {.name = "mlp", .build = build_mlp, .input = {8}, .classes = 3}, 3, 6, 6, 6},
    {"gpt", "c_attn, c_proj", {0}, 2, 3, 3, 12}};
static clv_dataset *datasets[CASES];

static const clv_array *find(const golden_case *c, const char *part, const char *name) {
    char key[256];
    snprintf(key, sizeof key, "%s/%s%s%s", c->name, part, *name ? "/" : "", name);
    const clv_array *array = clv_archive_find(golden, key);
    if (!array) fail_msg("no '%s' in the golden file", key);
    return array;
}

/** Where the base and the adapters that PyTorch began with are. */
static const char *path_of(const golden_case *c, const char *what) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], CLV_TEST_BINARY_DIR "/train_lora_%s_%s", c->name, what);
    return path;
}

static void write_config(const char *folder, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    assert_status(clv_file_write(runtime, path, text, strlen(text)), CLV_OK, runtime);
}

/** The arrays of a part of the golden file as a file, their names behind a prefix. */
static void write_part(const golden_case *c, const char *part, const char *prefix, const char *path) {
    char begin[64], name[256];
    snprintf(begin, sizeof begin, "%s/%s/", c->name, part);
    clv_archive *archive = clv__test_archive(runtime);
    for (size_t i = 0; clv_archive_get(golden, i); i++) {
        const clv_array *array = clv_archive_get(golden, i);
        if (strncmp(array->name, begin, strlen(begin))) continue;
        snprintf(name, sizeof name, "%s%s", prefix, array->name + strlen(begin));
        clv_status status = clv_archive_add(archive, name, array->type, &array->shape, array->data, NULL);
        assert_status(status, CLV_OK, runtime);
    }
    assert_status(clv_safetensors_write(archive, path), CLV_OK, runtime);
    clv_archive_destroy(archive);
}

FIXTURE(setup) {
    static const clv_gpt_config gpt = {.vocabulary = 11, .context = 7, .width = 12, .heads = 3, .layers = 2};
    runtime = clv__test_runtime(NULL);
    cases[1].model = clv_gpt_model(&gpt);
    assert_status(
        clv_safetensors_read(runtime, CLV_TEST_SOURCE_DIR "/tests/golden/lora.safetensors", &golden), CLV_OK,
        runtime);
    for (int i = 0; i < CASES; i++) {
        const golden_case *c = &cases[i];
        char text[128], path[600];
        clv_array x = *find(c, "x", ""), y = *find(c, "labels", "");
        x.borrowed = y.borrowed = true;
        const clv_field fields[] = {
            {.name = "x", .role = CLV_PORT_INPUT, .array = &x},
            {.name = "labels", .role = CLV_PORT_TARGET, .array = &y, .classes = (int)c->model.classes}};
        assert_status(clv_dataset_from_fields(runtime, NULL, fields, 2, NULL, &datasets[i]), CLV_OK, runtime);
        write_part(c, "before", "", path_of(c, "base.safetensors"));
        mkdir(path_of(c, "first"), 0755);
        snprintf(path, sizeof path, "%s/adapter_model.safetensors", path_of(c, "first"));
        write_part(c, "lora", "base_model.model.", path);
        snprintf(text, sizeof text, "{\"peft_type\": \"LORA\", \"r\": %d, \"lora_alpha\": %g}", (int)c->rank,
                 c->alpha);
        write_config(path_of(c, "first"), text);
    }
}

FIXTURE(teardown) {
    for (int i = 0; i < CASES; i++) clv_dataset_destroy(datasets[i]);
    clv_archive_destroy(golden);
    clv_runtime_destroy(runtime);
}

static void near(const char *what, double got, double want, double scale, double relative) {
    if (!(fabs(got - want) <= relative * fmax(scale, fabs(want))))
        fail_msg("%s is %.9g, not %.9g", what, got, want);
}

static bool on_step(void *user, const clv_train_step *step) {
    near("loss", step->loss, ((const float *)user)[step->step - 1], 1, 2e-5);
    return true;
}

static clv_train_config config_of(int i, clv_device *device) {
    const golden_case *c = &cases[i];
    return (clv_train_config){
        .device = device,
        .model = &c->model,
        .train = datasets[i],
        .test = datasets[i],
        .batch = c->batch,
        .epochs = STEPS,
        .no_shuffle = true,
        .lr = 0.05,
        .weights = path_of(c, "base.safetensors"),
        .lora = {.layers = c->layers, .rank = c->rank, .alpha = c->alpha, .weights = path_of(c, "first")},
        .user = find(c, "losses", "")->data,
        .on_step = on_step};
}

static clv_trainer *run(const clv_train_config *config) {
    clv_trainer *trainer = clv__test_trainer(runtime, config);
    assert_status(clv_trainer_run(trainer), CLV_OK, runtime);
    return trainer;
}

static bool is_adapter(const char *name) {
    return strstr(name, ".lora_A.weight") || strstr(name, ".lora_B.weight");
}

static void compare_session(const golden_case *c, clv_session *session) {
    int adapters = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const clv_session_tensor tensor = clv_session_get(session, i);
        float values[MOST];
        if (tensor.category != CLV_PARAMETERS) continue;
        assert_true(tensor.bytes <= sizeof values);
        assert_status(clv_session_read(session, i, values, tensor.bytes), CLV_OK, runtime);
        const bool trained = is_adapter(tensor.name);
        const clv_array *want = find(c, trained ? "after" : "before", tensor.name);
        assert_int_equal(clv_array_bytes(want), tensor.bytes);
        if (!trained) assert_memory_equal(values, want->data, tensor.bytes);
        for (size_t j = 0; j < tensor.bytes / sizeof(float); j++)
            near(tensor.name, values[j], ((float *)want->data)[j], 1, 5e-6);
        adapters += trained;
    }
    assert_int_equal(adapters, c->adapters);
}

/** Results of files. */
static void predict(int i, clv_device *device, const char *weights, const char *lora, float *out) {
    const golden_case *c = &cases[i];
    const clv_predictor_config config = {.device = device, .model = &c->model, .batch = c->batch};
    clv_predictor *predictor = clv__test_predictor(runtime, &config);
    clv_session *session = clv_predictor_info_get(predictor).session;
    assert_status(clv_weights_load_lora(session, weights, NULL, lora), CLV_OK, runtime);
    assert_status(clv_predictor_forward(predictor, find(c, "x", "")->data, c->batch, out), CLV_OK, runtime);
    clv_predictor_destroy(predictor);
}

static void compare_results(const golden_case *c, const char *what, const float *got, double relative) {
    const clv_array *want = find(c, "logits", "");
    for (int64_t j = 0; j < clv_shape_numel(&want->shape); j++)
        near(what, got[j], ((float *)want->data)[j], 1, relative);
}

static void first_gradients(int i, clv_device *device) {
    const golden_case *c = &cases[i];
    clv_train_config config = config_of(i, device);
    clv_archive *gradients;
    config.steps = 1;
    config.gradients = path_of(c, "gradients.safetensors");
    clv_trainer_destroy(run(&config));
    assert_status(clv_safetensors_read(runtime, config.gradients, &gradients), CLV_OK, runtime);
    assert_int_equal(clv_archive_count(gradients), c->adapters);
    for (int k = 0; k < c->adapters; k++) {
        const clv_array *got = clv_archive_get(gradients, (size_t)k), *want = find(c, "gradient", got->name);
        assert_int_equal(clv_array_bytes(got), clv_array_bytes(want));
        for (size_t j = 0; j < clv_array_bytes(got) / sizeof(float); j++)
            near(got->name, ((float *)got->data)[j], ((float *)want->data)[j], 0.01, 2e-5);
    }
    clv_archive_destroy(gradients);
}

/** The training, and then its weights by each way there is. */
static void on_device(const char *spec) {
    clv_device *device = clv__test_device_or_skip(runtime, spec);
    for (int i = 0; i < CASES; i++) {
        const golden_case *c = &cases[i];
        float got[MOST];
        first_gradients(i, device);
        const clv_train_config config = config_of(i, device);
        clv_trainer *trainer = run(&config);
        clv_session *session = clv_trainer_info_get(trainer).session;
        compare_session(c, session);
        near("loss of the test", clv_trainer_result(trainer).test.loss,
             ((float *)find(c, "losses", "")->data)[STEPS], 1, 2e-5);
        const char *merged = path_of(c, "merged.safetensors"), *folder = path_of(c, "saved");
        assert_status(clv_weights_save(session, merged), CLV_OK, runtime);
        assert_status(clv_lora_save(session, NULL, 0, folder, config.weights), CLV_OK, runtime);
        clv_trainer_destroy(trainer);
        predict(i, device, merged, NULL, got);
        compare_results(c, "merged when saved", got, 2e-5);
        predict(i, device, config.weights, folder, got);
        compare_results(c, "merged when read", got, 2e-5);
    }
}

TEST_ON_DEVICES(on_device)

/** Optimizer state and gradients of adapters alone, and what is planned says so. */
TEST(test_memory) {
    const clv_model *mlp = clv_model_find("mlp");
    const int64_t adapters = 4 * (784 + 128) + 4 * (128 + 10), all = 784 * 128 + 128 + 128 * 10 + 10;
    for (int with = 0; with < 2; with++) {
        clv_train_config config = {.model = mlp, .batch = 16, .optimizer = {.kind = CLV_ADAM}};
        if (with) config.lora = (clv_lora){.layers = "fc1,fc2", .rank = 4};
        clv_graph *graph;
        uint64_t states = 0;
        clv_device *host = clv__test_device(runtime, "host");
        assert_status(clv_pass_graph(runtime, &config, CLV_PASS_TRAIN, 16, &graph), CLV_OK, runtime);
        clv_plan *plan = clv__test_plan(runtime, graph, &(clv_plan_config){.device = host});
        for (int n = 0; n < clv_plan_info_get(plan).n_kept; n++) {
            const clv_plan_kept kept = clv_plan_kept_get(plan, n);
            if (kept.category == CLV_OPTIMIZER) states += (uint64_t)clv_shape_numel(&kept.shape);
            if (with && kept.category == CLV_PARAMETERS)
                assert_int_equal(kept.frozen, !is_adapter(kept.name));
        }
        assert_int_equal(states, 2 * (with ? adapters : all));
        clv_plan_destroy(plan);
        clv_graph_destroy(graph);
    }
}

/** All that is kept, one after the other. */
static size_t read_all(clv_session *session, float *out) {
    size_t n = 0;
    for (int i = 0; i < clv_session_info_get(session).n_tensors; i++) {
        const size_t bytes = clv_session_get(session, i).bytes;
        assert_true(n + bytes / sizeof(float) <= 4 * MOST);
        assert_status(clv_session_read(session, i, out + n, bytes), CLV_OK, runtime);
        n += bytes / sizeof(float);
    }
    return n;
}

/** Stopped after a step and gone on with: the same bits, averages and a new head too; with another rank it is refused. */
TEST(test_resume) {
    static float values[2][4 * MOST];
    const golden_case *c = &cases[0];
    clv_device *host = clv__test_device(runtime, "host");
    clv_train_config config = config_of(0, host);
    config.on_step = NULL;
    config.lora.weights = NULL;
    config.weights_except = "fc2";
    config.optimizer.kind = CLV_ADAMW;
    config.ema_decay = 0.5;
    clv_trainer *whole = run(&config);
    const size_t n = read_all(clv_trainer_info_get(whole).session, values[0]);
    clv_trainer_destroy(whole);
    config.checkpoint = path_of(c, "checkpoint");
    config.steps = 1;
    clv_trainer_destroy(run(&config));
    config.weights = NULL;
    config.resume = config.checkpoint;
    config.checkpoint = NULL;
    config.steps = 0;
    clv_trainer *resumed = run(&config);
    assert_int_equal(read_all(clv_trainer_info_get(resumed).session, values[1]), n);
    assert_memory_equal(values[0], values[1], n * sizeof(float));
    // files have the averages, merged or not, and the head as it was learnt
    float one[MOST], other[MOST];
    const char *merged = path_of(c, "averages.safetensors"), *folder = path_of(c, "averages");
    clv_session *session = clv_trainer_info_get(resumed).session;
    assert_status(clv_weights_save(session, merged), CLV_OK, runtime);
    assert_status(clv_lora_save(session, NULL, 0, folder, NULL), CLV_OK, runtime);
    clv_trainer_destroy(resumed);
    predict(0, host, merged, NULL, one);
    predict(0, host, path_of(c, "base.safetensors"), folder, other);
    for (int j = 0; j < 6 * 3; j++) near("with a new head", other[j], one[j], 1, 1e-5);
    config.lora.rank = 2;
    resumed = clv__test_trainer(runtime, &config);
    assert_status(clv_trainer_run(resumed), CLV_E_VALUE, runtime);
    assert_holds(clv_runtime_error(runtime), "was written with lora 'fc*,mid rank 3 scale 2, whole fc2'");
    clv_trainer_destroy(resumed);
}

static void refused(const clv_train_config *config, clv_status expected, const char *sentence) {
    clv_trainer *trainer = NULL;
    clv_status status = clv_trainer_create(runtime, config, &trainer);
    if (status == CLV_OK) status = clv_trainer_run(trainer);
    assert_status(status, expected, runtime);
    assert_holds(clv_runtime_error(runtime), sentence);
    clv_trainer_destroy(trainer);
}

TEST(test_settings) {
    clv_device *host = clv__test_device(runtime, "host");
    clv_train_config config = config_of(0, host);
    config.lora.layers = "fc1,fc3";
    refused(&config, CLV_E_NOT_FOUND, "lora: no linear layer matches 'fc3'; did you mean 'fc");
    config.lora.layers = "fc1.bias";
    refused(&config, CLV_E_NOT_FOUND, "lora: no linear layer matches 'fc1.bias'");
    config.lora = (clv_lora){.layers = "fc1", .rank = -1};
    refused(&config, CLV_E_VALUE, "the rank must be at least 1");
    config.lora = (clv_lora){.layers = "fc1", .alpha = -1};
    refused(&config, CLV_E_VALUE, "alpha must be at least 0");
    config = config_of(0, host);
    config.lora.layers = NULL;
    refused(&config, CLV_E_VALUE, "which layers?");
    config = config_of(0, host);
    config.weights = NULL;
    refused(&config, CLV_E_VALUE, "which weights do they belong to?");
    config = config_of(0, host);
    config.lora.alpha = 5;
    refused(&config, CLV_E_VALUE, "was trained with an alpha of 6");
    config = config_of(0, host);
    config.lora.layers = "fc1";
    refused(&config, CLV_E_NOT_FOUND,
            "is a LoRA of another model, or of other layers: unexpected 'fc2.lora_A.weight'");
    config = config_of(0, host);
    config.lora.rank = 4;
    config.lora.alpha = 8;
    refused(&config, CLV_E_SHAPE, "'fc1.lora_A.weight' is [3,8] beside 'fc1.lora_A.weight' [4,8]");
    config = config_of(0, host);
    config.lora.weights = path_of(&cases[1], "first");
    refused(&config, CLV_E_NOT_FOUND, "unexpected 'transformer.h.0.attn.c_attn.lora_A.weight'");
    clv_session *plain = clv__test_session(runtime, NULL);
    assert_status(clv_lora_save(plain, NULL, 0, "nowhere", NULL), CLV_E_STATE, runtime);
    clv_session_destroy(plain);
}

/** A folder whose files are damaged, or of something else: a sentence, and the session as it was. */
TEST(test_files) {
    static const struct {
        const char *config;
        clv_status status;
        const char *sentence;
    } texts[] = {
        {"", CLV_E_FORMAT, "is no JSON object"},
        {"[1]", CLV_E_FORMAT, "is no JSON object"},
        {"{\"peft_type\":\"LORA\"}", CLV_E_FORMAT, "lacks a rank `r` of at least 1"},
        {"{\"peft_type\":\"LORA\",\"r\":0,\"lora_alpha\":1}", CLV_E_FORMAT, "lacks a rank `r` of at least 1"},
        {"{\"peft_type\":\"LORA\",\"r\":3,\"lora_alpha\":\"a\"}", CLV_E_FORMAT,
         "lacks a rank `r` of at least 1"},
        {"{\"peft_type\":\"IA3\",\"r\":3,\"lora_alpha\":6}", CLV_E_UNSUPPORTED, "another kind than LORA"},
        {"{\"peft_type\":\"LORA\",\"use_dora\":true,\"r\":3,\"lora_alpha\":6}", CLV_E_UNSUPPORTED, "DoRA"},
        {"{\"peft_type\":\"LORA\",\"alpha_pattern\":{\"fc1\":1},\"r\":3,\"lora_alpha\":6}", CLV_E_UNSUPPORTED,
         "another alpha for some layers"},
    };
    const golden_case *c = &cases[0];
    const char *folder = path_of(c, "damaged"), *base = path_of(c, "base.safetensors");
    char tensors[600], config[600];
    clv_predictor *predictor =
        clv__test_predictor(runtime, &(clv_predictor_config){.model = &c->model, .batch = 1});
    clv_session *session = clv_predictor_info_get(predictor).session;
    mkdir(folder, 0755);
    snprintf(tensors, sizeof tensors, "%s/adapter_model.safetensors", folder);
    snprintf(config, sizeof config, "%s/adapter_config.json", folder);
    unlink(config);
    assert_status(clv_weights_load_lora(session, base, NULL, folder), CLV_E_IO, runtime);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_config(folder, texts[i].config);
        assert_status(clv_weights_load_lora(session, base, NULL, folder), texts[i].status, runtime);
        assert_holds(clv_runtime_error(runtime), texts[i].sentence);
    }
    write_config(folder, "{\"peft_type\":\"LORA\",\"r\":3,\"lora_alpha\":6}");
    write_part(c, "before", "base_model.model.", tensors);
    assert_status(clv_weights_load_lora(session, base, NULL, folder), CLV_E_FORMAT, runtime);
    assert_holds(clv_runtime_error(runtime), "holds no adapters");
    write_part(c, "lora", "", tensors); // without PEFT's prefix they are the same
    assert_status(clv_weights_load_lora(session, base, NULL, folder), CLV_OK, runtime);
    write_part(c, "lora", "other.", tensors);
    assert_status(clv_weights_load_lora(session, base, NULL, folder), CLV_E_NOT_FOUND, runtime);
    assert_holds(clv_runtime_error(runtime),
                 "of another model, or of other layers: unexpected 'other.fc1.lora_A.weight'");
    write_part(c, "after", "base_model.model.fc1.", tensors);
    assert_status(clv_weights_load_lora(session, base, NULL, folder), CLV_E_NOT_FOUND, runtime);
    clv_predictor_destroy(predictor);
}

TEST_MAIN(setup, teardown)
