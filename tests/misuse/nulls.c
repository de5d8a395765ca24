// SPDX-License-Identifier: Apache-2.0
// NULLs where no header's declaration shows them: within structs and arrays, and in the library's own functions; each is a status, and no
// crash. every_null.c has the parameters of all public functions.
#include "data/table.h"
#include "io/formats.h"
#include "harness/mistake.h"
#include "misuse/world.h"
#include "nn/models.h"
#include "infer/averages.h"
#include "infer/sampling.h"

static world w;

/** Call it; what comes must be a mistake, told by a sentence where a runtime was there to keep it. */
#define REFUSED(call)                                                                                        \
    do {                                                                                                     \
        clv_status refused_ = (call);                                                                        \
        if (refused_ == CLV_OK || refused_ == CLV_E_INTERNAL)                                                \
            fail_msg("%s is %s", #call, clv_status_name(refused_));                                          \
    } while (0)

TEST(own_functions_answer_null) {
    clv_runtime *rt = w.runtime;
    const clv_shape shape = CLV_SHAPE(2);
    const char *record = "{\"columns\":[\"a\"],\"targets\":[\"b\"]}";
    clv_array array = {0};
    const clv_array *there;
    clv_archive *archive;
    int64_t whole;
    double real;
    float number = 0;
    int32_t token = 0;
    REFUSED(clv__archive_require(NULL, "a", CLV_DTYPE_F32, &shape, &there));
    REFUSED(clv__archive_require(w.archive, NULL, CLV_DTYPE_F32, &shape, &there));
    REFUSED(clv__archive_require(w.archive, "a", CLV_DTYPE_F32, NULL, &there));
    REFUSED(clv__archive_require(w.archive, "a", CLV_DTYPE_F32, &shape, NULL));
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
    REFUSED(clv__checkpoint_read_file(rt, NULL, &archive));
    REFUSED(clv__checkpoint_read_file(rt, "x", NULL));
    REFUSED(clv__checkpoint_write(NULL, "x"));
    REFUSED(clv__checkpoint_write(w.archive, NULL));
    REFUSED(clv__table_results_unscale(rt, NULL, &number, 1));
    REFUSED(clv__table_results_unscale(rt, record, NULL, 1));
    REFUSED(clv__sample_token(rt, NULL, 1, NULL, 0, &token));
    REFUSED(clv__sample_token(rt, &number, 1, NULL, 0, NULL));
    REFUSED(clv__idx_read_file(rt, NULL, &array));
    REFUSED(clv__idx_read_file(rt, "x", NULL));
    REFUSED(clv__averages_save(NULL, "x"));
    REFUSED(clv__averages_save(w.session, NULL));
    REFUSED(clv__model_check_samples(rt, NULL, NULL, &shape));
    REFUSED(clv__model_check_samples(rt, &model, NULL, NULL));
}

TEST(what_structs_and_arrays_lack_is_refused) {
    clv_runtime *rt = w.runtime;
    float data[64] = {0}, *result = data;
    clv_array array = {0}, results[CLV_MAX_PORTS];
    clv_dataset *dataset;
    clv_predictor *predictor;
    clv_generator *generator = NULL;
    clv_vocabulary *vocabulary = NULL;
    clv_plan *no_plan = NULL;
    clv_place_choice *choice;
    clv_trainer *trainer;
    clv_compare_report *compare;
    clv_train_advice advice;
    double share;
    const clv_field field = {.name = "x", .array = &array};
    const clv_weights_text text = {NULL, "t"};
    const clv_array *no_array = NULL;
    const void *no_samples = NULL;
    REFUSED(clv_compile_helper(-1));
    REFUSED(clv_optimizer_register(rt, &(clv_custom_optimizer){0}));
    REFUSED(clv_model_register(rt, &(clv_model){0}));
    REFUSED(clv_loss_register(rt, &(clv_loss){.name = "l"}));
    REFUSED(clv_op_register(rt, &(clv_custom_op){0}));
    REFUSED(clv_dataset_table(rt, "x", &(clv_table_config){0}, &dataset));
    REFUSED(clv_dataset_text(rt, "x", 1, &(clv_text_config){0}, &dataset));
    REFUSED(clv_dataset_from_fields(rt, NULL, &(clv_field){0}, 1, NULL, &dataset));
    REFUSED(clv_dataset_from_fields(rt, NULL, &field, 1, NULL, &dataset));
    REFUSED(clv_dataset_from_fields(rt, w.archive, &(clv_field){0}, 1, NULL, &dataset));
    REFUSED(clv_vocabulary_create(rt, (clv_vocabulary_kind)7, "x", 1, &vocabulary));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_CHARACTERS, NULL, 1, &vocabulary));
    REFUSED(clv_vocabulary_create(rt, CLV_VOCABULARY_TOKENIZER, NULL, 1, &vocabulary));
    REFUSED(clv_generator_create(rt, &(clv_generator_config){0}, &generator));
    REFUSED(clv_plans_fit(&no_plan, 1));
    REFUSED(clv_place_check(w.graph, &(clv_place_config){0}));
    REFUSED(clv_place_choose(w.graph, &(clv_place_config){0}, &choice));
    REFUSED(clv_session_reserve(w.session, &no_plan, 1));
    REFUSED(clv_run_do(w.run, &(clv_step){.n_feeds = 1}));
    REFUSED(clv_run_do(w.run, &(clv_step){.n_fetches = 1}));
    REFUSED(clv_weights_save_texts(w.session, &text, 1, "x"));
    REFUSED(clv_predictor_create(rt, &(clv_predictor_config){0}, &predictor));
    REFUSED(clv_predictor_forward_all(w.predictor, &no_samples, 1, 1, &result, 1));
    REFUSED(clv_predictor_forward_arrays(w.predictor, &no_array, results));
    REFUSED(clv_pass_graph(rt, &(clv_train_config){0}, CLV_PASS_TRAIN, 1, &graph));
    REFUSED(clv_pass_graph(rt, &(clv_train_config){0}, CLV_PASS_PREDICT, 1, &graph));
    REFUSED(clv_pass_advise(rt, &(clv_train_config){.batch = 1}, CLV_PASS_TRAIN, &advice));
    REFUSED(clv_pass_advise(rt, &(clv_train_config){.batch = 1}, CLV_PASS_PREDICT, &advice));
    REFUSED(clv_pass_shares(rt, &(clv_train_config){.batch = 1}, CLV_PASS_TRAIN, &share));
    REFUSED(clv_pass_shares(rt, &(clv_train_config){.batch = 1}, CLV_PASS_PREDICT, &share));
    REFUSED(clv_trainer_create(rt, &(clv_train_config){0}, &trainer));
    REFUSED(clv_trainer_create(rt, &(clv_train_config){.model = &model}, &trainer));
    REFUSED(clv_compare(rt, &(clv_compare_config){0}, &compare));
    REFUSED(clv_compare(rt, &(clv_compare_config){.a = w.host, .b = w.host}, &compare));

    assert_status(clv_run_step(w.run, NULL), CLV_E_STATE, rt); // all of it changed nothing: nothing is fed
    world_step(&w, 1);
}

TEST(arrays_that_are_null_pass) {
    assert_null(clv_concat(NULL, 0, 0));
    assert_null(clv_concat(NULL, 2, 0));
    assert_null(clv_graph_find(NULL, "x"));
    assert_null(clv_graph_find(w.graph, NULL));
    assert_null(clv_custom_optimizer_find(NULL));
    assert_null(clv_tensor_graph(NULL));
    assert_string_equal(clv_runtime_error(NULL), "");
}

static clv_tensor *x;

static void make_inputs(void) {
    x = clv_input(graph, "x", CLV_DTYPE_F32, CLV_SHAPE(2, 3));
}

static void pass_on(void) {}

TEST(names_and_axes_that_are_null_stick) {
    MISTAKE(clv_input(graph, NULL, CLV_DTYPE_F32, CLV_SHAPE(1)), CLV_E_VALUE, "");
    MISTAKE(clv_parameter(graph, NULL, CLV_SHAPE(1), (clv_init){0}), CLV_E_VALUE, "");
    MISTAKE(clv_buffer(graph, NULL, CLV_DTYPE_F32, CLV_SHAPE(1), (clv_init){0}), CLV_E_VALUE, "");
    MISTAKE((clv_scope_push(graph, NULL), clv_relu(x)), CLV_E_VALUE, "");
    MISTAKE(clv_nn_linear(x, NULL, 1, NULL), CLV_E_VALUE, "");
    MISTAKE(clv_nn_layer_norm(x, NULL, 0), CLV_E_VALUE, "");
    MISTAKE(clv_nn_rms_norm(x, NULL, 0), CLV_E_VALUE, "");
    MISTAKE(clv_permute(x, NULL, 2), CLV_E_VALUE, "");
    MISTAKE(clv_sum(x, NULL, 1, false), CLV_E_VALUE, "");
    MISTAKE(clv_to(x, NULL), CLV_E_VALUE, "");
}

FIXTURE(begin) {
    setup(state);
    world_begin(&w);
}

FIXTURE(end) {
    world_end(&w);
    teardown(state);
}

TEST_MAIN(begin, end)
