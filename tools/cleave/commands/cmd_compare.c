// SPDX-License-Identifier: Apache-2.0
// cleave compare: one training step on two devices; the first op that is wrong on one of them.
#include "datasets/datasets.h"
#include "models/models.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the result -------------------------------------------------------------------------------------------

static const char *verdict(const clv_compare_value *value, double tolerance) {
    if (value->wrong_a && value->wrong_b) return "both wrong";
    if (value->wrong_a) return "first wrong";
    if (value->wrong_b) return "second wrong";
    return value->difference == 0 ? "equal" : value->drift > tolerance ? "drifted" : "close";
}

static json_t *value_json(const clv_compare_value *value, double tolerance) {
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:I, s:o, s:o, s:s, s:b}", "layer", value->layer, "op",
        value->op, "phase", value->phase, "what", value->what, "variant_a", value->variant_a, "variant_b",
        value->variant_b, "elements", (json_int_t)value->elements, "drift", cli_real(value->drift),
        "difference", cli_real(value->difference), "index", (json_int_t)value->index, "a", cli_real(value->a),
        "b", cli_real(value->b), "verdict", verdict(value, tolerance), "judged", value->judged);
    if (value->wrong_a || value->wrong_b)
        json_object_set_new(object, "wrong",
                            json_pack("{s:I, s:o, s:o, s:o}", "index", (json_int_t)value->wrong_index,
                                      "value", cli_real(value->wrong_value), "wanted",
                                      cli_real(value->wanted), "limit", cli_real(value->wrong_limit)));
    return object;
}

static int print_json(const clv_compare_config *config, const clv_compare_report *report) {
    json_t *values = json_array();
    for (int i = 0; i < report->n_values; i++)
        json_array_append_new(values, value_json(&report->values[i], config->tolerance));
    json_t *first =
        report->first >= 0 ? value_json(&report->values[report->first], config->tolerance) : json_null();
    return cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:b, s:i, s:i, s:i, s:i, s:o, s:o, s:s, s:o}", "model",
        config->model->name, "a", clv_device_info_get(config->a)->name, "b",
        clv_device_info_get(config->b)->name, "batch", (json_int_t)config->batch, "tolerance",
        config->tolerance, "agree", report->first < 0, "equal_values", report->n_equal, "judged_values",
        report->n_judged, "wrong_values", report->n_wrong, "drifted_values", report->n_drifted,
        "largest_drift", report->worst >= 0 ? cli_real(report->values[report->worst].drift) : json_null(),
        "first", first, "sentence", report->sentence, "values", values));
}

/** The values that differ too much, the first few of them, and the sum. */
static int print_table(const clv_compare_config *config, const clv_compare_report *report) {
    enum { MOST_ROWS = 20 };
    const table_column columns[] = {
        {"phase", TABLE_TEXT, 60, 0, NULL},
        {"layer", TABLE_NAME, TABLE_KEEP, 10, NULL},
        {"op", TABLE_NAME, 95, 8, NULL},
        {"value", TABLE_NAME, 50, 12, NULL},
        {"drift", TABLE_NUMBER, 90, 0, NULL},
        {clv_device_info_get(config->a)->name, TABLE_NUMBER, 80, 0, NULL},
        {clv_device_info_get(config->b)->name, TABLE_NUMBER, 80, 0, NULL},
        {"verdict", TABLE_TEXT, TABLE_KEEP, 10, NULL},
    };
    int rows = 0, odd = 0;
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < report->n_values; i++) {
        const clv_compare_value *value = &report->values[i];
        const bool wrong = value->wrong_a || value->wrong_b;
        if (!wrong && !(value->drift > config->tolerance)) continue;
        odd++;
        if (rows++ >= MOST_ROWS) continue;
        table_add(t, "%s", value->phase);
        table_add(t, "%s", value->layer);
        table_add(t, "%s", value->op);
        table_add(t, "%s", value->what);
        table_add(t, "%.2g", value->drift);
        table_add(t, "%.7g", value->a);
        table_add(t, "%.7g", value->b);
        if (wrong) table_paint(t, "\033[31m");
        table_add(t, "%s", verdict(value, config->tolerance));
    }
    if (odd)
        table_print(t, stdout);
    else
        table_destroy(t);
    if (odd > MOST_ROWS) printf("and %d more\n", odd - MOST_ROWS);
    screen_say(stdout,
               "%d values: %d equal to the bit, %d held against references, %d wrong, %d drifted beyond %g",
               report->n_values, report->n_equal, report->n_judged, report->n_wrong, report->n_drifted,
               config->tolerance);
    screen_say(stdout, "%s", report->sentence);
    return cli_finish_output();
}

// ---- the command ------------------------------------------------------------------------------------------

/** The first samples of the arrays, as the library takes them; the caller frees. */
static int read_samples(cli_source *source, clv_compare_config *config, float **images, int32_t **labels) {
    const clv_shape sample =
        clv_dataset_info_get(source->test).sample; // as many numbers as the model takes: it was sized
    const int64_t count = clv_dataset_info_get(source->test).count, each = clv_shape_numel(&sample);
    if (count < config->batch)
        return cli_fail(EXIT_FAILED, "--images has %lld images, a batch of %lld was asked for",
                        (long long)count, (long long)config->batch);
    *images = malloc((size_t)(config->batch * each + 1) * sizeof **images);
    *labels = malloc((size_t)config->batch * sizeof **labels);
    if (!*images || !*labels) return cli_fail(EXIT_FAILED, "no memory for a batch of images");
    for (int64_t i = 0; i < config->batch; i++) {
        clv_dataset_read(source->test, i, (void *[]){*images + i * each, &(*labels)[i]});
        if ((*labels)[i] == CLV_LABEL_IGNORED)
            return cli_fail(
                EXIT_FAILED,
                "label %lld of --labels is %d, which is ignored: compare wants a class for each image",
                (long long)i, CLV_LABEL_IGNORED);
    }
    config->images = *images;
    config->labels = *labels;
    return EXIT_DONE;
}

static int compare(cli_session *session, clv_compare_config *config) {
    clv_compare_report *report = NULL;
    cli_steps steps = {&session->progress, "comparing", cli_catch_interrupts()};
    config->progress = cli_steps_draw;
    config->user = &steps;
    clv_status status = clv_compare(session->runtime, config, &report);
    cli_progress_clear(&session->progress);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    int code = session->args->json ? print_json(config, report) : print_table(config, report);
    if (code == EXIT_DONE && report->first >= 0) code = EXIT_FAILED;
    clv_free(report);
    return code;
}

/** A model of the sizes that its weights tell; what it points to. */
typedef struct sized_model {
    clv_model model;
    clv_gpt_config gpt;
    cli_fields fields;
} sized_model;

/** Of the weights' sizes, as `eval` and `run` have it: of pictures, rows, texts, and named arrays. */
static int size_by_weights(const cli_session *session, const clv_model *model, sized_model *out) {
    const cli_args *args = session->args;
    const clv_weights_info *told = args->told;
    out->model = cli_model_for(args, model);
    if (!told || !told->model || strcmp(told->model, model->name)) return EXIT_DONE;
    if (cli_is_onnx(args->weights)) return EXIT_DONE; // the file's own sizes
    if (model->dtype == CLV_DTYPE_I32) {
        clv_vocabulary *vocabulary = NULL;
        clv_status status = clv_gpt_weights_read(session->runtime, args->weights, &out->gpt, &vocabulary);
        clv_vocabulary_destroy(vocabulary);
        if (status != CLV_OK) return cli_fail_status(session->runtime, status);
        out->model = clv_gpt_model(&out->gpt);
    } else if (told->input[0]) {
        memcpy(out->model.input, told->input, sizeof out->model.input);
        memcpy(out->model.target, told->target, sizeof out->model.target);
        out->model.classes = told->classes;
    } else {
        const int code = cli_fields_of_weights(session->runtime, args, &out->fields, &model);
        if (code != EXIT_DONE) return code;
        return cli_model_of_fields(session->runtime, args, model, &out->fields, &out->model);
    }
    return EXIT_DONE;
}

static int with_devices(cli_session *session, cli_source *source, const clv_model *model) {
    const cli_args *args = session->args;
    clv_compare_config config = {.batch = args->batch ? args->batch : 8,
                                 .seed = args->given.seed ? args->seed : 1,
                                 .weights = args->weights,
                                 .variants = args->variants,
                                 .tolerance = args->tolerance > 0 ? args->tolerance : 1e-3};
    clv_device **devices[2] = {&config.a, &config.b};
    for (int i = 0; i < 2; i++) {
        clv_status status = clv_device_find(session->runtime, args->both.item[i], devices[i]);
        if (status == CLV_E_NOT_FOUND) return cli_fail_status(session->runtime, status), EXIT_USAGE;
        if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    }
    cli_tell_unused_budgets(session, (clv_device *[]){config.a, config.b}, 2);
    char why[400];
    if (args->weights && cli_blame_file(session->runtime, args->weights, why, sizeof why))
        return cli_fail(EXIT_FAILED, "there is nothing to compare: %s", why);
    if (clv_variants_check(session->runtime, args->variants) != CLV_OK)
        return cli_fail_status(session->runtime, CLV_E_VALUE), EXIT_USAGE;
    float *images = NULL;
    int32_t *labels = NULL;
    int code = EXIT_DONE;
    sized_model sized = {.model = cli_model_for(args, model)};
    if (args->images) {
        code = cli_source_wait(source);
        if (code != EXIT_DONE) return code;
        clv_shape sample = clv_dataset_info_get(source->test).sample;
        code = cli_size_model(session->runtime, args, model, &sample, &sized.model);
        if (code == EXIT_DONE) code = read_samples(source, &config, &images, &labels);
    } else {
        code = size_by_weights(session, model, &sized);
    }
    config.model = &sized.model;
    if (code == EXIT_DONE) code = compare(session, &config);
    free(images);
    free(labels);
    return code;
}

static int compare_models(const cli_args *args) {
    const clv_model *model = cli_model(args->model);
    if (!model) return EXIT_USAGE;
    if (args->both.n != 2)
        return cli_fail(EXIT_USAGE,
                        "which two devices? Give --device twice, as in --device host --device gpu");
    if (!args->images != !args->labels)
        return cli_fail(EXIT_USAGE, "--images and --labels belong together; --%s is missing",
                        args->images ? "labels" : "images");
    cli_session session;
    cli_source source = {0};
    cli_start_early(args, false, &session);
    if (args->images) cli_source_begin(&source, args, model, false);
    int code = cli_start(&session);
    if (code == EXIT_DONE) {
        code = with_devices(&session, &source, model);
        cli_stop(&session);
    }
    cli_source_end(&source);
    return code;
}

int cmd_compare(const cli_args *given) {
    cli_args args = *given;
    int code = cli_load_own(&args);
    if (code == EXIT_DONE) code = cli_load_onnx(&args);
    if (code == EXIT_DONE) code = cli_tell_weights(&args);
    if (code == EXIT_DONE) code = compare_models(&args);
    cli_forget_weights(&args);
    return code;
}
