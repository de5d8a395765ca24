// SPDX-License-Identifier: Apache-2.0
// Every public function that returns a status, with a NULL in each place that wants something: a status, and no crash. The list is
// held against the headers, so that a new function is not forgotten. Builders and destroys take NULL by promise.
#include <dirent.h>

#include "data/table.h"
#include "io/formats.h"
#include "misuse/world.h"
#include "nn/models.h"
#include "train/averages.h"
#include "train/trainer.h"

static world w;
static char tried[8192]; // names of functions, each between blanks

/** Call it; what comes must be a mistake, told by a sentence where a runtime was there to keep it. */
#define REFUSED(call)                                                                                        \
    do {                                                                                                     \
        clv_status refused_ = (call);                                                                        \
        if (refused_ == CLV_OK || refused_ == CLV_E_INTERNAL)                                                \
            fail_msg("%s is %s", #call, clv_status_name(refused_));                                          \
        note(#call);                                                                                         \
    } while (0)

static void note(const char *call) {
    size_t used = strlen(tried), n = strcspn(call, "(");
    assert_true(used + n + 2 < sizeof tried);
    memcpy(tried + used, call, n);
    memcpy(tried + used + n, " ", 2);
}

static clv_status fits_always(void *user, int64_t batch) {
    (void)user, (void)batch;
    return CLV_OK;
}

static void statuses_answer_null(void **state) {
    (void)state;
    clv_runtime *rt = w.runtime;
    clv_shape shape = CLV_SHAPE(2);
    float data[64] = {0};
    clv_array array = {0}, *an_array;
    const clv_array *there;
    clv_archive *archive;
    clv_dataset *dataset;
    clv_loader *loader;
    clv_predictor *predictor;
    clv_device *device;
    clv_graph *graph;
    clv_plan *plan, *no_plan = NULL;
    clv_session *session;
    clv_run *run;
    clv_place_choice *choice;
    clv_profile *profile;
    clv_trainer *trainer;
    clv_metrics metrics;
    clv_bench_peak peak;
    clv_bench_report *bench;
    clv_check_report *check;
    clv_compare_report *compare;
    clv_tune_report *tune;
    clv_batch batch;
    clv_train_advice advice;
    char *text;
    int64_t whole;
    double real;
    strcpy(tried, " ");

    REFUSED(clv_runtime_create(NULL, NULL));
    REFUSED(clv_compile_helper(-1));
    REFUSED(clv_device_find(NULL, "host", &device));
    REFUSED(clv_device_find(rt, "host", NULL));
    REFUSED(clv_cache_list(NULL, NULL, NULL));
    REFUSED(clv_cache_list(rt, NULL, NULL));
    REFUSED(clv_cache_clear(NULL, NULL, NULL));
    // files and arrays
    REFUSED(clv_array_init(rt, CLV_ARRAY_F32, &shape, NULL));
    REFUSED(clv_array_init(rt, CLV_ARRAY_F32, NULL, &array));
    REFUSED(clv_array_init(NULL, CLV_ARRAY_F32, NULL, NULL));
    REFUSED(clv_archive_create(rt, NULL));
    REFUSED(clv_archive_add(NULL, "a", CLV_ARRAY_F32, &shape, &an_array));
    REFUSED(clv_archive_add(w.archive, NULL, CLV_ARRAY_F32, &shape, &an_array));
    REFUSED(clv_archive_add(w.archive, "a", CLV_ARRAY_F32, NULL, &an_array));
    REFUSED(clv_archive_add(w.archive, "a", CLV_ARRAY_F32, &shape, NULL));
    REFUSED(clv_archive_add_borrowed(NULL, "a", CLV_ARRAY_F32, &shape, data));
    REFUSED(clv_archive_add_borrowed(w.archive, NULL, CLV_ARRAY_F32, &shape, data));
    REFUSED(clv_archive_add_borrowed(w.archive, "a", CLV_ARRAY_F32, NULL, data));
    REFUSED(clv_archive_add_borrowed(w.archive, "a", CLV_ARRAY_F32, &shape, NULL));
    REFUSED(clv__archive_require(NULL, "a", CLV_ARRAY_F32, &shape, &there));
    REFUSED(clv__archive_require(w.archive, NULL, CLV_ARRAY_F32, &shape, &there));
    REFUSED(clv__archive_require(w.archive, "a", CLV_ARRAY_F32, NULL, &there));
    REFUSED(clv__archive_require(w.archive, "a", CLV_ARRAY_F32, &shape, NULL));
    REFUSED(clv_archive_set_text(NULL, "k", "v"));
    REFUSED(clv_archive_set_text(w.archive, NULL, "v"));
    REFUSED(clv_archive_set_text(w.archive, "k", NULL));
    REFUSED(clv__archive_set_int(NULL, "k", 1));
    REFUSED(clv__archive_set_int(w.archive, NULL, 1));
    REFUSED(clv__archive_set_real(NULL, "k", 1));
    REFUSED(clv__archive_set_real(w.archive, NULL, 1));
    REFUSED(clv__archive_get_int(NULL, "k", &whole));
    REFUSED(clv__archive_get_int(w.archive, NULL, &whole));
    REFUSED(clv__archive_get_int(w.archive, "k", NULL));
    REFUSED(clv__archive_get_real(NULL, "k", &real));
    REFUSED(clv__archive_get_real(w.archive, NULL, &real));
    REFUSED(clv__archive_get_real(w.archive, "k", NULL));
    REFUSED(clv_safetensors_read(rt, NULL, &archive));
    REFUSED(clv_safetensors_read(rt, "x", NULL));
    REFUSED(clv_safetensors_write(NULL, "x"));
    REFUSED(clv_safetensors_write(w.archive, NULL));
    REFUSED(clv__checkpoint_read_file(rt, NULL, &archive));
    REFUSED(clv__checkpoint_read_file(rt, "x", NULL));
    REFUSED(clv__checkpoint_write(NULL, "x"));
    REFUSED(clv__checkpoint_write(w.archive, NULL));
    REFUSED(clv_optimizer_register(NULL, &(clv_own_optimizer){0}));
    REFUSED(clv_optimizer_register(rt, NULL));
    REFUSED(clv_optimizer_register(rt, &(clv_own_optimizer){0}));
    REFUSED(clv_model_register(NULL, &model));
    REFUSED(clv_model_register(rt, NULL));
    REFUSED(clv_model_register(rt, &(clv_model){0}));
    REFUSED(clv_loss_register(NULL, &(clv_loss){.name = "l"}));
    REFUSED(clv_loss_register(rt, NULL));
    REFUSED(clv_loss_register(rt, &(clv_loss){.name = "l"}));
    assert_null(clv_own_optimizer_find(NULL));
    const clv_own_op op = {0};
    REFUSED(clv_op_register(NULL, &op));
    REFUSED(clv_op_register(rt, NULL));
    clv_table_config columns = {.targets = "t"};
    clv_text_config letters = {0};
    clv_vocabulary *vocabulary = NULL;
    clv_gpt_config sizes;
    const int32_t tokens[4] = {0};
    REFUSED(clv_dataset_table(rt, NULL, &columns, &dataset));
    REFUSED(clv_dataset_table(rt, "x", NULL, &dataset));
    REFUSED(clv_dataset_table(rt, "x", &columns, NULL));
    REFUSED(clv_dataset_table(rt, "x", &(clv_table_config){0}, &dataset));
    clv_table_info info;
    const char *record = "{\"columns\":[\"a\"],\"targets\":[\"b\"]}";
    REFUSED(clv_table_info_get(rt, NULL, &info));
    REFUSED(clv_table_info_get(rt, record, NULL));
    clv_table_rows_config how = {0};
    clv_table_report report;
    clv_baseline baseline;
    float number = 0;
    REFUSED(clv_table_rows_read(rt, NULL, record, &how, &array, &report));
    REFUSED(clv_table_rows_read(rt, "x", NULL, &how, &array, &report));
    REFUSED(clv_table_rows_read(rt, "x", record, NULL, NULL, NULL));
    REFUSED(clv__table_results_unscale(rt, NULL, &number, 1));
    REFUSED(clv__table_results_unscale(rt, record, NULL, 1));
    REFUSED(clv_dataset_baseline(rt, NULL, 0, &baseline));
    REFUSED(clv_dataset_class_weights(rt, NULL, 0, 1, &(float){0}));
    report = clv_dataset_info_get(NULL).table_report;
    REFUSED(clv_table_rows_read(rt, NULL, record, NULL, &array, NULL));
    REFUSED(clv_table_rows_read(rt, "x", NULL, NULL, &array, NULL));
    REFUSED(clv_table_rows_read(rt, "x", record, NULL, NULL, NULL));
    REFUSED(clv_table_results_write(rt, NULL, data, 1, "x"));
    REFUSED(clv_table_results_write(rt, record, NULL, 1, "x"));
    REFUSED(clv_table_results_write(rt, record, data, 1, NULL));
    REFUSED(clv_dataset_image_folder(rt, NULL, NULL, &dataset));
    REFUSED(clv_dataset_image_folder(rt, "x", NULL, NULL));
    REFUSED(clv_dataset_image_files(rt, NULL, 1, NULL, &dataset));
    REFUSED(clv_dataset_text(rt, NULL, 1, &letters, &dataset));
    REFUSED(clv_dataset_text(rt, "x", 1, NULL, &dataset));
    REFUSED(clv_dataset_text(rt, "x", 1, &letters, NULL));
    REFUSED(clv_dataset_text(rt, "x", 1, &letters, &dataset)); // no vocabulary
    REFUSED(clv_text_read(rt, NULL, &array));
    REFUSED(clv_text_read(rt, "x", NULL));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_BYTES, NULL, 0, NULL));
    REFUSED(clv_vocabulary_create(rt, (clv_vocabulary_kind)7, "x", 1, &vocabulary));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_CHARACTERS, NULL, 1, &vocabulary));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_CHARACTERS, "x", 1, NULL));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_TOKENIZER, NULL, 1, &vocabulary));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_TOKENIZER, "x", 1, NULL));
    assert_status(clv_vocabulary_create(rt, CLV_VOCABULARY_BYTES, NULL, 0, &vocabulary), CLV_OK, rt);
    REFUSED(clv_vocabulary_encode(NULL, "x", 1, &array));
    REFUSED(clv_vocabulary_encode(vocabulary, NULL, 1, &array));
    REFUSED(clv_vocabulary_encode(vocabulary, "x", 1, NULL));
    REFUSED(clv_vocabulary_decode(NULL, tokens, 1, false, &array));
    REFUSED(clv_vocabulary_decode(vocabulary, NULL, 1, false, &array));
    REFUSED(clv_vocabulary_decode(vocabulary, tokens, 1, false, NULL));
    REFUSED(clv_gpt_weights_save(NULL, &sizes, vocabulary, "x"));
    REFUSED(clv_gpt_weights_save(w.session, NULL, NULL, "x"));
    REFUSED(clv_gpt_weights_save(w.session, NULL, vocabulary, NULL));
    clv_vocabulary_destroy(vocabulary);
    clv_generator *generator = NULL;
    clv_generator_config writes = {.gpt = &sizes};
    int32_t one = 0;
    float logit = 0;
    REFUSED(clv_generator_create(NULL, &writes, &generator));
    REFUSED(clv_generator_create(rt, NULL, &generator));
    REFUSED(clv_generator_create(rt, &writes, NULL));
    REFUSED(clv_generator_create(rt, &(clv_generator_config){0}, &generator));
    REFUSED(clv_generate(NULL, &one, 1, NULL, 1, NULL, NULL));
    REFUSED(clv__sample_token(rt, NULL, 1, NULL, 0, &one));
    REFUSED(clv__sample_token(rt, &logit, 1, NULL, 0, NULL));
    REFUSED(clv_gpt_weights_read(NULL, "x", &sizes, &vocabulary));
    REFUSED(clv_gpt_weights_read(rt, NULL, &sizes, &vocabulary));
    REFUSED(clv_gpt_weights_read(rt, "x", NULL, &vocabulary));
    REFUSED(clv_gpt_weights_read(rt, "x", &sizes, NULL));
    REFUSED(clv_npy_read(rt, NULL, &array));
    REFUSED(clv_npy_read(rt, "x", NULL));
    REFUSED(clv_npy_write(rt, NULL, "x"));
    REFUSED(clv_npy_write(rt, &array, NULL));
    REFUSED(clv_file_check(rt, NULL, false));
    REFUSED(clv_file_write(rt, NULL, "x", 1));
    REFUSED(clv_file_write(rt, "x", NULL, 1));
    REFUSED(clv__idx_read_file(rt, NULL, &array));
    REFUSED(clv__idx_read_file(rt, "x", NULL));
    // data
    REFUSED(clv_dataset_fashion_mnist(rt, NULL, CLV_SPLIT_TRAIN, NULL, NULL));
    REFUSED(clv_dataset_from_arrays(rt, NULL, &array, NULL, &dataset));
    REFUSED(clv_dataset_from_arrays(rt, &array, NULL, NULL, &dataset));
    REFUSED(clv_dataset_from_arrays(rt, &array, &array, NULL, NULL));
    const clv_field field = {.name = "x", .array = &array};
    REFUSED(clv_dataset_from_fields(rt, NULL, NULL, 1, NULL, &dataset));
    REFUSED(clv_dataset_from_fields(rt, NULL, &field, 1, NULL, NULL));
    REFUSED(clv_dataset_from_fields(rt, NULL, &(clv_field){0}, 1, NULL, &dataset));
    REFUSED(clv_dataset_from_fields(rt, NULL, &field, 1, NULL, &dataset));
    REFUSED(clv_dataset_from_fields(rt, w.archive, NULL, 1, NULL, &dataset));
    REFUSED(clv_dataset_from_fields(rt, w.archive, &field, 1, NULL, NULL));
    REFUSED(clv_dataset_from_fields(rt, w.archive, &(clv_field){0}, 1, NULL, &dataset));
    REFUSED(clv_npz_read(rt, NULL, &archive));
    REFUSED(clv_npz_read(rt, "x", NULL));
    REFUSED(clv_npz_write(NULL, "x"));
    REFUSED(clv_npz_write(w.archive, NULL));
    REFUSED(clv_dataset_npy(rt, NULL, "y", NULL, &dataset));
    REFUSED(clv_dataset_npy(rt, "x", NULL, NULL, &dataset));
    REFUSED(clv_dataset_npy(rt, "x", "y", NULL, NULL));
    REFUSED(clv_loader_create(rt, NULL, &(clv_loader_config){.batch = 1}, &loader));
    REFUSED(clv_loader_create(rt, w.dataset, NULL, &loader));
    REFUSED(clv_loader_create(rt, w.dataset, &(clv_loader_config){.batch = 1}, NULL));
    REFUSED(clv_loader_next(NULL, &batch));
    REFUSED(clv_loader_next(w.loader, NULL));
    REFUSED(clv_loader_seek(NULL, 0, 0));
    // graph, plan, session, run
    REFUSED(clv_graph_create(NULL, &graph));
    REFUSED(clv_graph_create(rt, NULL));
    REFUSED(clv_graph_status(NULL));
    REFUSED(clv_graph_write(NULL, "x"));
    REFUSED(clv_graph_write(w.graph, NULL));
    REFUSED(clv_graph_read(NULL, "x"));
    REFUSED(clv_graph_read(w.graph, NULL));
    REFUSED(clv_plan_create(NULL, NULL, &plan));
    REFUSED(clv_plan_create(w.graph, NULL, NULL));
    REFUSED(clv_variants_check(NULL, NULL));
    REFUSED(clv_device_activity_start(NULL));
    REFUSED(clv_device_quarantine(NULL, NULL, NULL));
    REFUSED(clv_device_quarantine(w.host, NULL, NULL));
    REFUSED(clv_plans_fit(NULL, 1));
    REFUSED(clv_plans_fit(&no_plan, 1));
    REFUSED(clv_batch_search(1, 1, NULL, NULL, &whole));
    REFUSED(clv_batch_search(1, 1, fits_always, NULL, NULL));
    REFUSED(clv_place_check(NULL, &(clv_place_config){0}));
    REFUSED(clv_place_check(w.graph, NULL));
    REFUSED(clv_place_check(w.graph, &(clv_place_config){0}));
    REFUSED(clv_place_choose(NULL, &(clv_place_config){0}, &choice));
    REFUSED(clv_place_choose(w.graph, NULL, &choice));
    REFUSED(clv_place_choose(w.graph, &(clv_place_config){0}, &choice));
    REFUSED(clv_place_choose(w.graph, &(clv_place_config){0}, NULL));
    REFUSED(clv_session_create(NULL, NULL, &session));
    REFUSED(clv_session_create(rt, NULL, NULL));
    REFUSED(clv_session_reserve(NULL, &w.plan, 1));
    REFUSED(clv_session_reserve(w.session, NULL, 1));
    REFUSED(clv_session_reserve(w.session, &no_plan, 1));
    REFUSED(clv_session_read(NULL, 0, data, 4));
    REFUSED(clv_session_read(w.session, 0, NULL, clv_session_get(w.session, 0).bytes));
    REFUSED(clv_session_write(NULL, 0, data, 4));
    REFUSED(clv_session_write(w.session, 0, NULL, clv_session_get(w.session, 0).bytes));
    REFUSED(clv_session_move(NULL, NULL, w.host));
    REFUSED(clv_session_move(w.session, NULL, NULL));
    REFUSED(clv_run_create(NULL, w.plan, &run));
    REFUSED(clv_run_create(w.session, NULL, &run));
    REFUSED(clv_run_create(w.session, w.plan, NULL));
    REFUSED(clv_run_feed(NULL, w.x, data, 4));
    REFUSED(clv_run_feed(w.run, NULL, data, 4));
    REFUSED(clv_run_feed(w.run, w.x, NULL, clv_tensor_bytes(w.x)));
    REFUSED(clv_run_step(NULL, NULL));
    REFUSED(clv_run_fetch(NULL, 0, w.loss, data, 4));
    REFUSED(clv_run_fetch(w.run, 0, NULL, data, 4));
    REFUSED(clv_run_fetch(w.run, 0, w.loss, NULL, 4));
    REFUSED(clv_run_do(NULL, &(clv_step){0}));
    REFUSED(clv_run_do(w.run, NULL));
    REFUSED(clv_run_do(w.run, &(clv_step){.n_feeds = 1}));
    REFUSED(clv_run_do(w.run, &(clv_step){.n_fetches = 1}));
    REFUSED(clv_run_finish(NULL));
    REFUSED(clv_profile_create(NULL, NULL, &profile));
    REFUSED(clv_profile_create(rt, NULL, NULL));
    REFUSED(clv_profile_trace(NULL, "x"));
    REFUSED(clv_profile_trace(w.profile, NULL));
    clv_weights_info *told;
    clv_confusion *confusion;
    // training
    REFUSED(clv_weights_describe(NULL, NULL));
    REFUSED(clv_weights_info_read(rt, NULL, &told));
    REFUSED(clv_confusion_create(rt, NULL, NULL, &confusion));
    REFUSED(clv_weights_save(NULL, "x"));
    REFUSED(clv_weights_save(w.session, NULL));
    const clv_weights_text nothing = {NULL, "t"};
    REFUSED(clv_weights_save_texts(NULL, NULL, 0, "x"));
    REFUSED(clv_weights_save_texts(w.session, NULL, 1, "x"));
    REFUSED(clv_weights_save_texts(w.session, &nothing, 1, "x"));
    REFUSED(clv_weights_save_texts(w.session, NULL, 0, NULL));
    REFUSED(clv_weights_load(NULL, "x"));
    REFUSED(clv_weights_load(w.session, NULL));
    REFUSED(clv_weights_load_except(NULL, "x", NULL));
    REFUSED(clv_weights_load_except(w.session, NULL, NULL));
    REFUSED(clv_averages_begin(NULL));
    REFUSED(clv_averages_swap(NULL));
    REFUSED(clv__averages_save(NULL, "x"));
    REFUSED(clv__averages_save(w.session, NULL));
    REFUSED(clv__model_check_samples(rt, NULL, NULL, &shape));
    REFUSED(clv__model_check_samples(rt, &model, NULL, NULL));
    clv_model sized;
    REFUSED(clv_model_for_samples(rt, NULL, NULL, &shape, &sized));
    REFUSED(clv_model_for_samples(rt, &model, NULL, NULL, &sized));
    REFUSED(clv_model_for_samples(rt, &model, NULL, &shape, NULL));
    REFUSED(clv_predictor_create(NULL, &(clv_predictor_config){0}, &predictor));
    REFUSED(clv_predictor_create(rt, NULL, &predictor));
    REFUSED(clv_predictor_create(rt, &(clv_predictor_config){0}, &predictor));
    REFUSED(clv_predictor_create(rt, &(clv_predictor_config){.model = &model}, NULL));
    REFUSED(clv_predictor_forward(NULL, data, 1, data));
    REFUSED(clv_predictor_forward(w.predictor, NULL, 1, data));
    REFUSED(clv_predictor_forward(w.predictor, data, 1, NULL));
    const void *no_samples = NULL;
    float *result = data;
    REFUSED(clv_predictor_forward_all(NULL, &no_samples, 1, &result));
    REFUSED(clv_predictor_forward_all(w.predictor, NULL, 1, &result));
    REFUSED(clv_predictor_forward_all(w.predictor, &no_samples, 1, &result));
    REFUSED(clv_predictor_forward_all(w.predictor, (const void *[]){data}, 1, NULL));
    clv_array results[CLV_MAX_PORTS];
    const clv_array none = {0}, *no_array = NULL, *empty = &none;
    REFUSED(clv_predictor_forward_arrays(NULL, &empty, results));
    REFUSED(clv_predictor_forward_arrays(w.predictor, NULL, results));
    REFUSED(clv_predictor_forward_arrays(w.predictor, &no_array, results));
    REFUSED(clv_predictor_forward_arrays(w.predictor, &empty, NULL));
    REFUSED(clv_evaluate(NULL, w.dataset, NULL, NULL, &metrics));
    REFUSED(clv_evaluate(w.predictor, NULL, NULL, NULL, &metrics));
    REFUSED(clv_evaluate(w.predictor, w.dataset, NULL, NULL, NULL));
    REFUSED(clv_train_graph(NULL, &(clv_train_config){.model = &model}, 1, &graph));
    REFUSED(clv_train_graph(rt, NULL, 1, &graph));
    REFUSED(clv_train_graph(rt, &(clv_train_config){0}, 1, &graph));
    REFUSED(clv_train_graph(rt, &(clv_train_config){.model = &model}, 1, NULL));
    REFUSED(clv_predict_graph(NULL, &(clv_train_config){.model = &model}, 1, &graph));
    REFUSED(clv_predict_graph(rt, NULL, 1, &graph));
    REFUSED(clv_predict_graph(rt, &(clv_train_config){0}, 1, &graph));
    REFUSED(clv_predict_graph(rt, &(clv_train_config){.model = &model}, 1, NULL));
    REFUSED(clv_train_advise(NULL, &(clv_train_config){.model = &model, .batch = 1}, &advice));
    REFUSED(clv_train_advise(rt, NULL, &advice));
    REFUSED(clv_train_advise(rt, &(clv_train_config){.batch = 1}, &advice));
    REFUSED(clv_train_advise(rt, &(clv_train_config){.model = &model, .batch = 1}, NULL));
    REFUSED(clv_predict_advise(NULL, &(clv_train_config){.model = &model, .batch = 1}, &advice));
    REFUSED(clv_predict_advise(rt, NULL, &advice));
    REFUSED(clv_predict_advise(rt, &(clv_train_config){.batch = 1}, &advice));
    REFUSED(clv_predict_advise(rt, &(clv_train_config){.model = &model, .batch = 1}, NULL));
    REFUSED(clv_train_shares(NULL, &(clv_train_config){.model = &model, .batch = 1}, &real));
    REFUSED(clv_train_shares(rt, NULL, &real));
    REFUSED(clv_train_shares(rt, &(clv_train_config){.batch = 1}, &real));
    REFUSED(clv_train_shares(rt, &(clv_train_config){.model = &model, .batch = 1}, NULL));
    REFUSED(clv_predict_shares(NULL, &(clv_train_config){.model = &model, .batch = 1}, &real));
    REFUSED(clv_predict_shares(rt, NULL, &real));
    REFUSED(clv_predict_shares(rt, &(clv_train_config){.batch = 1}, &real));
    REFUSED(clv_predict_shares(rt, &(clv_train_config){.model = &model, .batch = 1}, NULL));
    REFUSED(clv_trainer_create(NULL, &(clv_train_config){0}, &trainer));
    REFUSED(clv_trainer_create(rt, NULL, &trainer));
    REFUSED(clv_trainer_create(rt, &(clv_train_config){0}, &trainer));
    REFUSED(clv_trainer_create(rt, &(clv_train_config){.model = &model}, &trainer));
    REFUSED(clv_trainer_create(rt, &(clv_train_config){.model = &model, .train = w.dataset}, NULL));
    REFUSED(clv_trainer_run(NULL));
    // measuring
    REFUSED(clv_check(NULL, w.host, NULL, &check));
    REFUSED(clv_check(rt, NULL, NULL, &check));
    REFUSED(clv_check(rt, w.host, NULL, NULL));
    REFUSED(clv_check_reproduce(NULL, w.host, NULL, "add", &text));
    REFUSED(clv_check_reproduce(rt, NULL, NULL, "add", &text));
    REFUSED(clv_check_reproduce(rt, w.host, NULL, NULL, &text));
    REFUSED(clv_check_reproduce(rt, w.host, NULL, "add", NULL));
    REFUSED(clv_compare(NULL, &(clv_compare_config){0}, &compare));
    REFUSED(clv_compare(rt, NULL, &compare));
    REFUSED(clv_compare(rt, &(clv_compare_config){0}, &compare));
    REFUSED(clv_compare(rt, &(clv_compare_config){.a = w.host, .b = w.host}, &compare));
    REFUSED(clv_compare(rt, &(clv_compare_config){0}, NULL));
    REFUSED(clv_bench_peak_get(NULL, false, &peak));
    REFUSED(clv_bench_peak_get(w.host, false, NULL));
    REFUSED(clv_bench_peak_raise(NULL, &peak));
    REFUSED(clv_bench_peak_raise(w.host, NULL));
    REFUSED(clv_bench(NULL, w.host, NULL, &bench));
    REFUSED(clv_bench(rt, NULL, NULL, &bench));
    REFUSED(clv_bench(rt, w.host, NULL, NULL));
    REFUSED(clv_tune(NULL, w.host, NULL, &tune));
    REFUSED(clv_tune(rt, NULL, NULL, &tune));
    REFUSED(clv_tune(rt, w.host, NULL, NULL));

    assert_status(clv_run_step(w.run, NULL), CLV_E_STATE, rt); // all of it changed nothing: nothing is fed
    world_step(&w, 1);
}

static void the_sentence_names_function_and_argument(void **state) {
    (void)state;
    clv_run *run = NULL;
    assert_status(clv_run_create(w.session, NULL, &run), CLV_E_VALUE, w.runtime);
    assert_string_equal(clv_runtime_error(w.runtime), "clv_run_create: plan is NULL");
}

/** Each `clv_status clv__...(` of a header was tried. */
static void look_through(const char *header) {
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/include/cleave/%s", CLV_TEST_SOURCE_DIR, header);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        bool declares = !strncmp(line, "CLV_API", 7) || !strncmp(line, "CLV_TRAIN_API", 13);
        const char *at = declares ? strstr(line, "clv_status clv__") : NULL;
        if (!at) continue;
        char name[128] = " ";
        at += strlen("clv_status ");
        size_t n = strcspn(at, "( \n");
        assert_true(n + 3 < sizeof name);
        memcpy(name + 1, at, n);
        memcpy(name + 1 + n, " ", 2);
        if (!strstr(tried, name)) fail_msg("%s: nobody calls%swith a NULL", header, name);
    }
    fclose(file);
}

static void no_function_was_forgotten(void **state) {
    (void)state;
    DIR *folder = opendir(CLV_TEST_SOURCE_DIR "/include/cleave");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        size_t n = strlen(entry->d_name);
        if (n > 2 && !strcmp(entry->d_name + n - 2, ".h")) look_through(entry->d_name);
    }
    closedir(folder);
}

static void builders_pass_null_on(void **state) {
    (void)state;
    clv_init init = {0};
    assert_null(clv_input(NULL, "x", CLV_DTYPE_F32, CLV_SHAPE(1)));
    assert_null(clv_parameter(NULL, "x", CLV_SHAPE(1), init));
    assert_null(clv_buffer(NULL, "x", CLV_DTYPE_F32, CLV_SHAPE(1), init));
    assert_null(clv_constant(NULL, CLV_DTYPE_F32, CLV_SHAPE(1), &init));
    assert_null(clv_full(NULL, CLV_DTYPE_F32, CLV_SHAPE(1), 0));
    assert_null(clv_add(NULL, NULL));
    assert_null(clv_relu(NULL));
    assert_null(clv_cast(NULL, CLV_DTYPE_I32));
    assert_null(clv_where(NULL, NULL, NULL));
    assert_null(clv_sum(NULL, NULL, 0, false));
    assert_null(clv_max(NULL, NULL, 0, false));
    assert_null(clv_argmax(NULL, 0, false));
    assert_null(clv_reshape(NULL, CLV_SHAPE(-1)));
    assert_null(clv_detach(NULL));
    assert_null(clv_flatten(NULL, 0));
    assert_null(clv_permute(NULL, NULL, 0));
    assert_null(clv_transpose(NULL, 0, 1));
    assert_null(clv_broadcast_to(NULL, CLV_SHAPE(1)));
    assert_null(clv_sum_to(NULL, CLV_SHAPE(1)));
    assert_null(clv_slice(NULL, 0, 0, 0));
    assert_null(clv_concat(NULL, 0, 0));
    assert_null(clv_concat(NULL, 2, 0));
    assert_null(clv_to(NULL, NULL));
    assert_null(clv_matmul(NULL, NULL));
    assert_null(clv_linear(NULL, NULL, NULL));
    assert_null(clv_conv2d(NULL, NULL, NULL, NULL));
    assert_null(clv_max_pool2d(NULL, NULL));
    assert_null(clv_avg_pool2d(NULL, NULL));
    assert_null(clv_global_avg_pool2d(NULL));
    assert_null(clv_adaptive_avg_pool2d(NULL, 1, 1));
    assert_null(clv_softmax(NULL, 0));
    assert_null(clv_cross_entropy(NULL, NULL));
    assert_null(clv_cross_entropy_weighted(NULL, NULL, NULL));
    assert_null(clv_nn_label_weights(NULL, NULL, 0, -100));
    assert_null(clv_mse_loss(NULL, NULL));
    assert_null(clv_batch_norm(NULL, NULL, NULL, NULL, NULL, true, 0.1f, 1e-5f));
    assert_null(clv_layer_norm(NULL, NULL, NULL, 1e-5f));
    assert_null(clv_rms_norm(NULL, NULL, 1e-5f));
    assert_null(clv_embedding(NULL, NULL));
    assert_null(clv_scaled_dot_product_attention(NULL, NULL, NULL, NULL));
    assert_null(clv_self_attention(NULL, 1, NULL));
    assert_null(clv_dropout(NULL, 0.5f));
    assert_null(clv_nn_linear(NULL, NULL, 1, NULL));
    assert_null(clv_nn_conv2d(NULL, NULL, 1, NULL));
    assert_null(clv_nn_batch_norm(NULL, NULL, NULL));
    assert_null(clv_nn_layer_norm(NULL, NULL, 0));
    assert_null(clv_nn_rms_norm(NULL, NULL, 0));
    assert_null(clv_nn_embedding(NULL, NULL, 1, 1, NULL));
    assert_null(clv_gradient(NULL));
    assert_null(clv_graph_find(NULL, "x"));
    assert_null(clv_graph_find(w.graph, NULL));
    assert_null(clv_optimizer_hyper(NULL));
    assert_null(clv_tensor_graph(NULL));
    clv_output(NULL, NULL);
    clv_requires_grad(NULL, true);
    clv_backward(NULL);
    clv_optimizer_add(NULL, NULL);
    clv_optimizer_freeze(NULL, NULL);
    clv_averages_add(NULL, 0.5);
    clv_scaler_add(NULL, NULL);
    clv_scope_push(NULL, NULL);
    clv_scope_pop(NULL);
    clv_graph_set_place(NULL, NULL);
}

typedef clv_tensor *(*maker)(clv_graph *graph, clv_tensor *x);
static clv_tensor *unnamed_input(clv_graph *graph, clv_tensor *x) {
    (void)x;
    return clv_input(graph, NULL, CLV_DTYPE_F32, CLV_SHAPE(1));
}
static clv_tensor *unnamed_parameter(clv_graph *graph, clv_tensor *x) {
    (void)x;
    return clv_parameter(graph, NULL, CLV_SHAPE(1), (clv_init){0});
}
static clv_tensor *unnamed_buffer(clv_graph *graph, clv_tensor *x) {
    (void)x;
    return clv_buffer(graph, NULL, CLV_DTYPE_F32, CLV_SHAPE(1), (clv_init){0});
}
static clv_tensor *unnamed_scope(clv_graph *graph, clv_tensor *x) {
    clv_scope_push(graph, NULL);
    return clv_relu(x);
}
static clv_tensor *unnamed_layer(clv_graph *graph, clv_tensor *x) {
    (void)graph;
    return clv_nn_linear(x, NULL, 1, NULL);
}
static clv_tensor *unnamed_norm(clv_graph *graph, clv_tensor *x) {
    (void)graph;
    return clv_nn_layer_norm(x, NULL, 0);
}
static clv_tensor *unnamed_rms_norm(clv_graph *graph, clv_tensor *x) {
    (void)graph;
    return clv_nn_rms_norm(x, NULL, 0);
}
static clv_tensor *null_axes(clv_graph *graph, clv_tensor *x) {
    (void)graph;
    return clv_permute(x, NULL, 2);
}
static clv_tensor *null_sum_axes(clv_graph *graph, clv_tensor *x) {
    (void)graph;
    return clv_sum(x, NULL, 1, false);
}
static clv_tensor *null_place(clv_graph *graph, clv_tensor *x) {
    (void)graph;
    return clv_to(x, NULL);
}

static void names_and_axes_that_are_null_stick(void **state) {
    (void)state;
    static const maker makers[] = {unnamed_input, unnamed_parameter, unnamed_buffer,   unnamed_scope,
                                   unnamed_layer, unnamed_norm,      unnamed_rms_norm, null_axes,
                                   null_sum_axes, null_place};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        clv_graph *graph;
        assert_status(clv_graph_create(w.runtime, &graph), CLV_OK, w.runtime);
        clv_tensor *x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
        clv_tensor *made = makers[i](graph, x);
        if (made) print_error("number %zu\n", i);
        assert_null(made);
        assert_status(clv_graph_status(graph), CLV_E_VALUE, w.runtime);
        clv_graph_destroy(graph);
    }
}

static void destroys_take_null(void **state) {
    (void)state;
    clv_runtime_destroy(NULL), clv_graph_destroy(NULL), clv_plan_destroy(NULL), clv_session_destroy(NULL);
    clv_run_destroy(NULL), clv_archive_destroy(NULL), clv_array_reset(NULL), clv_dataset_destroy(NULL);
    clv_loader_destroy(NULL), clv_predictor_destroy(NULL), clv_trainer_destroy(NULL);
    clv_profile_destroy(NULL), clv_place_choice_destroy(NULL), clv_check_report_destroy(NULL);
    clv_compare_report_destroy(NULL), clv_bench_report_destroy(NULL), clv_tune_report_destroy(NULL);
    assert_string_equal(clv_runtime_error(NULL), "");
}

static int begin(void **state) {
    (void)state;
    world_begin(&w);
    return 0;
}

static int end(void **state) {
    (void)state;
    world_end(&w);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_answer_null),
        cmocka_unit_test(no_function_was_forgotten),
        cmocka_unit_test(the_sentence_names_function_and_argument),
        cmocka_unit_test(builders_pass_null_on),
        cmocka_unit_test(names_and_axes_that_are_null_stick),
        cmocka_unit_test(destroys_take_null),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
