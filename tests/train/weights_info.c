// SPDX-License-Identifier: Apache-2.0
// What weights know of themselves: told by every file that a training writes, read back; of older files and of other programs' what
// they tell; and records that are damaged, each with its sentence.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "train/small.h"

#define WEIGHTS CLV_TEST_BINARY_DIR "/train_info.safetensors"
#define BEST CLV_TEST_BINARY_DIR "/train_info_best.safetensors"
#define CHECKPOINT CLV_TEST_BINARY_DIR "/train_info.ckpt"
#define TABLE CLV_TEST_BINARY_DIR "/train_info.csv"

static clv_runtime *runtime;
static clv_device *host;

FIXTURE(setup) {
    runtime = clv__test_runtime(&(clv_runtime_config){.no_opencl = true});
    host = clv__test_device(runtime, "host");
}

FIXTURE(teardown) {
    static const char *const files[] = {WEIGHTS, BEST, CHECKPOINT, CHECKPOINT ".prev", TABLE};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(files[i]);
    clv_runtime_destroy(runtime);
}

static clv_weights_info *read_info(const char *path) {
    clv_weights_info *info = NULL;
    assert_status(clv_weights_info_read(runtime, path, &info), CLV_OK, runtime);
    return info;
}

static void tells_the_small_model(const char *path) {
    clv_weights_info *info = read_info(path);
    assert_string_equal(info->model, "small");
    assert_int_equal(info->input[0], 1);
    assert_int_equal(info->input[2], 6);
    assert_int_equal(info->input[3], 0);
    assert_int_equal(info->classes, SMALL_CLASSES);
    assert_int_equal(info->channels, 1);
    assert_true(info->mean[0] == 0 && info->std[0] == 1);
    assert_string_equal(info->loss, "cross_entropy");
    assert_string_equal(info->precision, "f32");
    assert_string_equal(info->version, clv_version());
    assert_null(info->names);
    assert_null(info->table);
    assert_int_equal(info->resize, 0);
    assert_int_equal(info->checkpoint, !strcmp(path, CHECKPOINT));
    clv_free(info);
}

/** A trainer describes its session: whoever saves it, and however, tells it. */
TEST(of_a_training) {
    clv_dataset *dataset = small_dataset(runtime, 12);
    clv_train_config config = small_config(&small_model, dataset, 6, 1);
    config.device = host;
    config.best = BEST;
    config.checkpoint = CHECKPOINT;
    clv_trainer *trainer = small_trained(runtime, &config);
    const clv_weights_text text = {"mine", "a text of my own"};
    assert_status(clv_weights_save_texts(clv_trainer_info_get(trainer).session, &text, 1, WEIGHTS), CLV_OK,
                  runtime);
    tells_the_small_model(WEIGHTS);
    tells_the_small_model(BEST);
    tells_the_small_model(CHECKPOINT);
    clv_trainer_destroy(trainer);
    clv_dataset_destroy(dataset);
}

/** A session of a program's own, of a model of a table. */
TEST(of_a_loop_of_ones_own) {
    const clv_model *linear = clv_model_find("linear");
    clv_model model = *linear;
    clv_dataset *table = NULL;
    FILE *file = fopen(TABLE, "w");
    assert_non_null(file);
    fputs("a,b,side\n1,2,left\n3,4,right\n5,6,left\n", file);
    fclose(file);
    assert_status(clv_dataset_table(runtime, TABLE, &(clv_table_config){.targets = "side"}, &table), CLV_OK,
                  runtime);
    memset(model.input, 0, sizeof model.input);
    model.input[0] = model.classes = 2;
    const clv_predictor_config predicts = {.device = host, .model = &model, .batch = 1};
    clv_predictor *predictor = clv__test_predictor(runtime, &predicts);
    clv_session *session = clv_predictor_info_get(predictor).session;
    assert_status(clv_weights_save(session, WEIGHTS), CLV_OK, runtime);
    clv_weights_info *info = read_info(WEIGHTS); // nobody has described it
    assert_null(info->model);
    assert_int_equal(info->classes, 0);
    clv_free(info);
    clv_train_config config = {.model = &model, .train = table, .precision = CLV_PRECISION_MIXED};
    assert_status(clv_weights_describe(session, &config), CLV_OK, runtime);
    assert_status(clv_weights_describe(session, &config), CLV_OK, runtime); // again: the last counts
    assert_status(clv_weights_save(session, WEIGHTS), CLV_OK, runtime);
    info = read_info(WEIGHTS);
    assert_string_equal(info->model, "linear");
    assert_int_equal(info->input[0], 2);
    assert_int_equal(info->input[1], 0);
    assert_int_equal(info->n_names, 2);
    assert_string_equal(info->names[0], "left");
    assert_string_equal(info->names[1], "right");
    assert_string_equal(info->table, clv_dataset_info_get(table).table);
    assert_string_equal(info->precision, "mixed");
    clv_free(info);
    config.model = NULL;
    assert_status(clv_weights_describe(session, &config), CLV_E_VALUE, runtime);
    assert_string_equal(clv_runtime_error(runtime), "clv_weights_describe: model is NULL");
    config = (clv_train_config){.model = &model, .precision = (clv_precision)7};
    assert_status(clv_weights_describe(session, &config), CLV_E_VALUE, runtime);
    clv_predictor_destroy(predictor);
    clv_dataset_destroy(table);
    clv_free(NULL);
}

static clv_status read_told(const char *key, const char *text, clv_weights_info **out) {
    const float number = 1;
    const clv_shape one = CLV_SHAPE(1);
    clv_archive *archive = clv__test_archive(runtime);
    assert_status(clv_archive_add(archive, "w", CLV_DTYPE_F32, &one, &number, NULL), CLV_OK, runtime);
    if (key) assert_status(clv_archive_set_text(archive, key, text), CLV_OK, runtime);
    assert_status(clv_safetensors_write(archive, WEIGHTS), CLV_OK, runtime);
    clv_archive_destroy(archive);
    *out = (clv_weights_info *)&one;
    return clv_weights_info_read(runtime, WEIGHTS, out);
}

TEST(of_older_files) {
    clv_weights_info *info;
    assert_status(read_told("cleave.model", "mlp", &info), CLV_OK, runtime);
    assert_string_equal(info->model, "mlp");
    assert_null(info->version);
    clv_free(info);
    assert_status(read_told("cleave.record", "{\"names\":[\"a\",\"b\"],\"later\":[1]}", &info), CLV_OK,
                  runtime);
    assert_int_equal(info->n_names, 2); // what it does not know is passed over
    clv_free(info);
    assert_status(read_told(NULL, NULL, &info), CLV_OK, runtime);
    assert_null(info->model);
    clv_free(info);
}

TEST(damaged) {
    static const struct {
        const char *record, *said;
    } refused[] = {
        {"{", "it is no JSON object"},
        {"[]", "it is no JSON object"},
        {"{\"input\":3}", "a shape is no list of dimensions"},
        {"{\"input\":[1,2,3,4,5,6,7,8,9]}", "a shape is no list of dimensions"},
        {"{\"input\":[0]}", "a dimension is no number that a shape can have"},
        {"{\"input\":[65536,65536]}", "a dimension is no number that a shape can have"},
        {"{\"target\":[-1]}", "a dimension is no number that a shape can have"},
        {"{\"classes\":-1}", "'classes' is no number of classes"},
        {"{\"classes\":\"2\"}", "'classes' is no number of classes"},
        {"{\"classes\":4294967298}", "'classes' is no number of classes"},
        {"{\"names\":[]}", "'names' is no list of names"},
        {"{\"names\":[1]}", "'names' is no list of names"},
        {"{\"names\":\"a\"}", "'names' is no list of names"},
        {"{\"mean\":[0]}", "'mean' and 'std' are not of 1 or 3 channels"},
        {"{\"mean\":[0,0],\"std\":[1,1]}", "'mean' and 'std' are not of 1 or 3 channels"},
        {"{\"mean\":[0],\"std\":[0]}", "'mean' or 'std' is no number that can be used"},
        {"{\"mean\":[1e300],\"std\":[1]}", "'mean' or 'std' is no number that can be used"},
        {"{\"resize\":0}", "'resize' is no size of a picture"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        clv_weights_info *info;
        assert_status(read_told("cleave.record", refused[i].record, &info), CLV_E_FORMAT, runtime);
        assert_null(info);
        if (!strstr(clv_runtime_error(runtime), refused[i].said))
            fail_msg("%s: '%s'", refused[i].record, clv_runtime_error(runtime));
    }
    clv_weights_info *info;
    assert_status(clv_weights_info_read(runtime, "/none.safetensors", &info), CLV_E_IO, runtime);
    assert_status(clv_weights_info_read(runtime, NULL, &info), CLV_E_VALUE, runtime);
    assert_status(clv_weights_info_read(runtime, WEIGHTS, NULL), CLV_E_VALUE, runtime);
}

TEST_MAIN(setup, teardown)
