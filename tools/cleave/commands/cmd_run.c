// SPDX-License-Identifier: Apache-2.0
// cleave run: a model's results for an array of images, whose floats are taken as they are, and whose bytes
// are normalised as the weights tell; for rows of a table, predictions; for named arrays, an array for each
// target. What a table or named arrays must be, the weights tell. Pictures are in run_images.c.
#include "datasets/datasets.h"
#include "models/models.h"
#include "plans/plans.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** What is run on what. */
typedef struct run_job {
    cli_session *session;
    const clv_placement *placement;
    const clv_model *model; // by its name; NULL until the weights tell it
    clv_model sized;
    clv_gpt_config gpt;
    clv_array input;    // --input, or the rows of a table
    const char *record; // of a table, that the weights tell; else NULL
    char *told;         // what a table's results are as a table, where no file of them is wanted
    size_t told_bytes;
    clv_table_report table;
    clv_archive *archive;           // named arrays; else NULL
    clv_array bytes[CLV_MAX_PORTS]; // those of them that hold bytes, normalised
    cli_fields fields;
    const clv_array *inputs[CLV_MAX_PORTS];
    int64_t n;
    clv_array results[CLV_MAX_PORTS];
    cli_profile profile;
} run_job;

// ---- an array ---------------------------------------------------------------------------------------------

static int check_images(const cli_args *args, const clv_model *model, const clv_array *images) {
    const bool tokens = model->dtype == CLV_DTYPE_I32;
    if (tokens && images->type != CLV_DTYPE_I32)
        return cli_fail(EXIT_FAILED,
                        "'%s' holds %s, and tokens must be int32; numpy mends it with x.astype('int32')",
                        args->input, clv_dtype_name(images->type));
    if (!tokens && images->type != CLV_DTYPE_F32)
        return cli_fail(
            EXIT_FAILED,
            "'%s' holds %s, and images must be float32; numpy mends it with x.astype('float32')%s",
            args->input, clv_dtype_name(images->type),
            images->type == CLV_DTYPE_U8 ? " / 255, as train and eval take bytes" : "");
    if (images->shape.rank < 1 || images->shape.dims[0] == 0)
        return cli_fail(EXIT_FAILED, "'%s' holds no %s", args->input, cli_unit_of(args, model).name);
    return EXIT_DONE;
}

/** The model for the samples; of texts as its weights say. */
static int size_model(run_job *job) {
    const cli_session *session = job->session;
    const clv_shape *shape = &job->input.shape;
    const clv_shape sample = clv_shape_make(shape->rank - 1, shape->dims + 1);
    clv_vocabulary *vocabulary = NULL;
    if (job->model->dtype != CLV_DTYPE_I32 || cli_is_onnx(job->model->name))
        return cli_size_model(session->runtime, session->args, job->model, &sample, &job->sized);
    clv_status status =
        clv_gpt_weights_read(session->runtime, session->args->weights, &job->gpt, &vocabulary);
    clv_vocabulary_destroy(vocabulary);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    job->sized = clv_gpt_model(&job->gpt);
    return cli_size_model(session->runtime, session->args, &job->sized, &sample, &job->sized);
}

/** Bytes as the weights learnt them; where they do not tell how, they stay bytes, which is refused. */
static int normalise(run_job *job) {
    const cli_args *args = job->session->args;
    char what[512];
    clv_array floats;
    if (job->input.type != CLV_DTYPE_U8 || job->input.shape.rank < 1 || !args->told ||
        !args->told->channels || job->model->dtype == CLV_DTYPE_I32)
        return EXIT_DONE;
    int code = size_model(job); // of channels last it says what to do
    snprintf(what, sizeof what, "'%.400s'", args->input);
    if (code == EXIT_DONE)
        code = cli_normalise(job->session->runtime, cli_told_scale(args), what, &job->input, &floats);
    if (code != EXIT_DONE || !floats.data) return code;
    clv_array_reset(&job->input);
    job->input = floats;
    return EXIT_DONE;
}

static int take_array(run_job *job) {
    const cli_args *args = job->session->args;
    const clv_status status = clv_npy_read(job->session->runtime, args->input, &job->input);
    if (status != CLV_OK) return cli_fail_status(job->session->runtime, status);
    cli_tell_scale(args, args->input, &job->input);
    int code = normalise(job);
    if (code != EXIT_DONE) return code;
    if (job->model->dtype == CLV_DTYPE_I32) { // tokens and truth values of any width
        clv_array whole = {0};
        if (!cli_as_i32(&job->input, &whole)) return cli_fail(EXIT_FAILED, "no memory for '%s'", args->input);
        if (whole.data) clv_array_reset(&job->input), job->input = whole;
    }
    code = check_images(args, job->model, &job->input);
    if (code != EXIT_DONE) return code;
    job->inputs[0] = &job->input;
    job->n = job->input.shape.dims[0];
    return size_model(job);
}

// ---- rows of a table, named arrays ------------------------------------------------------------------------

static int take_table(run_job *job) {
    const cli_args *args = job->session->args;
    clv_runtime *runtime = job->session->runtime;
    job->record = args->told->table;
    int code = cli_check_rows(job->model);
    if (code != EXIT_DONE) return code;
    const clv_status status = clv_table_rows_read(
        runtime, args->words[1], job->record,
        &(clv_table_rows_config){.ignore = args->ignore, .decimal_comma = args->decimal_comma}, &job->input,
        &job->table);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    cli_tell_table(args, &job->table, job->record);
    code = cli_size_rows(args, job->model, job->table.columns, &job->sized);
    if (code != EXIT_DONE) return code;
    memcpy(job->sized.target, args->told->target, sizeof job->sized.target);
    job->sized.classes = args->told->classes;
    job->inputs[0] = &job->input;
    job->n = job->input.shape.dims[0];
    return EXIT_DONE;
}

/** Are its samples of the port's shape? Leading dimensions of 1 may be left out. */
static bool is_of_port(const clv_array *array, const clv_port *port) {
    const clv_shape batch = clv_port_shape(port, 1), want = clv_shape_make(batch.rank - 1, batch.dims + 1),
                    have = clv_shape_make(array->shape.rank - 1, array->shape.dims + 1);
    int ones = 0;
    while (ones < want.rank && want.dims[ones] == 1 && want.rank - ones > have.rank) ones++;
    const clv_shape rest = clv_shape_make(want.rank - ones, want.dims + ones);
    return clv_shape_equal(&rest, &have);
}

static int take_input(run_job *job, int i) {
    const char *path = job->session->args->words[1], *name = job->fields.name[i];
    const clv_array *array = clv_archive_find(job->archive, name);
    char have[96], want[96];
    if (!array) return cli_no_array(job->archive, path, name);
    const bool whole = job->fields.port[i].dtype == CLV_DTYPE_I32;
    if (whole && !cli_as_i32(array, &job->bytes[i])) return cli_fail(EXIT_FAILED, "no memory for '%s'", name);
    snprintf(have, sizeof have, "'%.90s'", name);
    const clv_weights_info *told =
        i ? NULL : cli_told_scale(job->session->args); // of the first, as train has it
    const int code =
        whole ? EXIT_DONE : cli_normalise(job->session->runtime, told, have, array, &job->bytes[i]);
    if (code != EXIT_DONE) return code;
    if (job->bytes[i].data) array = &job->bytes[i];
    if (array->type != (whole ? CLV_DTYPE_I32 : CLV_DTYPE_F32))
        return cli_fail(EXIT_FAILED,
                        "'%s': '%s' holds %s, and the model takes %s; numpy mends it with %s.astype('%s')",
                        path, name, clv_dtype_name(array->type), whole ? "int32" : "float32", name,
                        whole ? "int32" : "float32");
    if (job->model->any_shape && job->model->build_all && array->shape.rank == 2)
        job->fields.port[i].dims[0] = array->shape.dims[1];
    if (array->shape.rank < 1 || !is_of_port(array, &job->fields.port[i])) {
        const clv_shape shape =
            clv_port_shape(&job->fields.port[i], array->shape.rank ? array->shape.dims[0] : 1);
        return cli_fail(EXIT_FAILED, "'%s': '%s' is %s, and the model takes %s", path, name,
                        clv_shape_text(&array->shape, have, sizeof have),
                        clv_shape_text(&shape, want, sizeof want));
    }
    if (i && array->shape.dims[0] != job->n)
        return cli_fail(EXIT_FAILED, "'%s': '%s' has %lld samples, and '%s' has %lld", path, name,
                        (long long)array->shape.dims[0], job->fields.name[0], (long long)job->n);
    job->n = array->shape.dims[0];
    job->inputs[i] = array;
    return job->n ? EXIT_DONE : cli_fail(EXIT_FAILED, "'%s': '%s' holds no samples", path, name);
}

static int take_arrays(run_job *job) {
    const cli_args *args = job->session->args;
    clv_runtime *runtime = job->session->runtime;
    int code = cli_fields_of_weights(runtime, args, &job->fields, &job->model);
    if (code != EXIT_DONE) return code;
    clv_status status = cli_read_arrays(runtime, args->words[1], &job->archive);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    for (int i = 0; code == EXIT_DONE && i < job->fields.n_inputs; i++) code = take_input(job, i);
    return code == EXIT_DONE ? cli_model_of_fields(runtime, args, job->model, &job->fields, &job->sized)
                             : code;
}

// ---- the results ------------------------------------------------------------------------------------------

static json_t *shape_json(const clv_shape *shape) {
    json_t *list = json_array();
    for (int d = 0; d < shape->rank; d++)
        json_array_append_new(list, json_integer((json_int_t)shape->dims[d]));
    return list;
}

/** The shape of each named result; null where they have no names. */
static json_t *outputs_json(const run_job *job) {
    if (!job->archive) return json_null();
    json_t *object = json_object();
    for (int i = 0; i < job->sized.n_targets; i++)
        json_object_set_new(object, job->sized.targets[i].name, shape_json(&job->results[i].shape));
    return object;
}

enum { MOST_TOLD = 10000 }; // values of a result that the JSON has

/** Lists within lists, as numpy's tolist() has them. */
static json_t *values_json(const clv_shape *shape, int d, const float **at) {
    if (d == shape->rank) return cli_real((double)*(*at)++);
    json_t *list = json_array();
    for (int64_t i = 0; i < shape->dims[d]; i++) json_array_append_new(list, values_json(shape, d + 1, at));
    return list;
}

static json_t *result_json(const clv_array *result) {
    const bool told = result->type == CLV_DTYPE_F32 && clv_shape_numel(&result->shape) <= MOST_TOLD;
    const float *at = result->data;
    char hint[96] = "";
    if (!told)
        snprintf(hint, sizeof hint, "at most %d values are shown; --output FILE writes them all", MOST_TOLD);
    return json_pack("{s:o, s:s, s:o, s:s?}", "shape", shape_json(&result->shape), "dtype",
                     clv_dtype_name(result->type), "values",
                     told ? values_json(&result->shape, 0, &at) : json_null(), "hint", told ? NULL : hint);
}

/** The results themselves, where no file has them; else null. A table's are its predictions. */
static json_t *results_json(const run_job *job) {
    if (job->session->args->output || job->record) return json_null();
    json_t *object = json_object();
    for (int i = 0; i < clv_model_port_count(&job->sized, CLV_PORT_TARGET); i++) {
        const char *name = job->archive ? job->sized.targets[i].name : NULL;
        json_object_set_new(object, name ? name : "logits", result_json(&job->results[i]));
        if (!name) break; // of --input there is one
    }
    return object;
}

static int report(const run_job *job, clv_predictor *predictor) {
    const cli_args *args = job->session->args;
    const double *shares = clv_predictor_info_get(predictor).shares;
    clv_plan *plan = clv_predictor_info_get(predictor).plan;
    if (cli_is_stdout(args->output)) { // nothing else goes there
        cli_profile_print(stderr, &job->profile);
        return EXIT_DONE;
    }
    if (args->json)
        return cli_print_json(json_pack(
            "{s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "model", job->sized.name,
            "device", clv_device_info_get(clv_plan_device_get(plan, 0))->name, "output", args->output,
            "shape", shape_json(&job->results[0].shape), "outputs", outputs_json(job), "results",
            results_json(job), "memory", cli_plan_memory_json(plan), "shares",
            cli_shares_json(job->placement, shares), "placement",
            cli_place_json(clv_predictor_info_get(predictor).place), "profile",
            cli_profile_json(&job->profile), "table", job->record ? cli_table_json(&job->table) : json_null(),
            "predictions",
            job->told ? cli_predictions_json(job->told, job->told_bytes, job->record) : json_null()));
    char text[96];
    if (args->quiet) {
        cli_profile_print(stdout, &job->profile);
        return cli_finish_output();
    }
    if (job->record)
        printf("predictions of %lld row%s are in %s\n", (long long)job->n, job->n == 1 ? "" : "s",
               args->output);
    for (int i = 0; job->archive && i < job->sized.n_targets; i++)
        printf("%s %s is in %s\n", job->sized.targets[i].name,
               clv_shape_text(&job->results[i].shape, text, sizeof text), args->output);
    if (!job->record && !job->archive)
        printf("logits %s are in %s\n", clv_shape_text(&job->results[0].shape, text, sizeof text),
               args->output);
    cli_shares_print(job->placement, shares);
    cli_plan_memory_tables(stdout, plan);
    cli_profile_print(stdout, &job->profile);
    return cli_finish_output();
}

/** Rows with a value that is not finite; `first`: which is the first, from 0. */
static int64_t count_not_finite(const clv_array *array, int64_t *first) {
    const int64_t n = array->shape.dims[0];
    const size_t row = clv_array_bytes(array) / sizeof(float) / (size_t)n;
    int64_t count = 0;
    if (array->type != CLV_DTYPE_F32) return 0;
    for (int64_t r = 0; r < n; r++) {
        const float *values = (const float *)array->data + (size_t)r * row;
        size_t i = 0;
        while (i < row && isfinite(values[i])) i++;
        if (i == row) continue;
        if (!count++) *first = r;
    }
    return count;
}

/** Results that are not finite are written, and told. */
static int check_results(const run_job *job, clv_session *weights) {
    const cli_args *args = job->session->args;
    const int n = clv_model_port_count(&job->sized, CLV_PORT_TARGET);
    int64_t first = 0, first_in = 0, bad = 0;
    for (int i = 0; i < n && !bad; i++) bad = count_not_finite(&job->results[i], &first);
    if (!bad) return EXIT_DONE;
    const int64_t bad_in = job->input.data ? count_not_finite(&job->input, &first_in) : 0;
    char why[400];
    cli_blame_weights(weights, args->weights, why, sizeof why);
    if (bad_in)
        snprintf(why, sizeof why, "in the input there are %lld, the first is row %lld", (long long)bad_in,
                 (long long)first_in);
    return cli_fail(EXIT_FAILED,
                    "%lld of %lld rows of '%s' are not finite (NaN or infinity), the first is row %lld; %s",
                    (long long)bad, (long long)job->n,
                    args->output  ? args->output
                    : args->input ? args->input
                                  : args->words[1],
                    (long long)first, why);
}

/** Named results in one file. */
static clv_status write_named(const run_job *job, const char *path) {
    clv_archive *archive = NULL;
    clv_status status = clv_archive_create(job->session->runtime, &archive);
    for (int i = 0; status == CLV_OK && i < job->sized.n_targets; i++)
        status = clv_archive_add(archive, job->sized.targets[i].name, CLV_DTYPE_F32, &job->results[i].shape,
                                 job->results[i].data, NULL);
    if (status == CLV_OK) status = clv_npz_write(archive, path);
    clv_archive_destroy(archive);
    return status;
}

static clv_status write_results(const run_job *job, const char *path) {
    clv_runtime *runtime = job->session->runtime;
    if (job->record) return clv_table_results_write(runtime, job->record, job->results[0].data, job->n, path);
    return job->archive ? write_named(job, path) : clv_npy_write(runtime, &job->results[0], path);
}

/** Results of a table for the JSON. */
static int keep_results(run_job *job) {
    const char *path = NULL;
    cli_outlet outlet;
    FILE *memory = open_memstream(&job->told, &job->told_bytes);
    if (!memory) return cli_fail(EXIT_FAILED, "no memory for the predictions");
    int code = cli_outlet_keep(&path, memory, &outlet);
    const clv_status status = code == EXIT_DONE ? write_results(job, path) : CLV_OK;
    const int ended = cli_outlet_end(&outlet);
    fclose(memory);
    if (code == EXIT_DONE) code = ended;
    return status == CLV_OK ? code : cli_fail_status(job->session->runtime, status);
}

static int compute_all(run_job *job, clv_predictor *predictor) {
    clv_runtime *runtime = job->session->runtime;
    const char *path = job->session->args->output;
    cli_outlet outlet;
    clv_status status = clv_predictor_forward_arrays(predictor, job->inputs, job->results);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    if (!path) return job->record ? keep_results(job) : EXIT_DONE;
    const int code = cli_outlet_begin(&path, &outlet);
    if (code != EXIT_DONE) return code;
    status = write_results(job, path);
    const int ended = cli_outlet_end(&outlet);
    return status == CLV_OK ? ended : cli_fail_status(runtime, status);
}

/** The predictor is made: load, compute, write, tell. */
static int compute(run_job *job, clv_predictor *predictor) {
    cli_session *session = job->session;
    clv_session *weights = clv_predictor_info_get(predictor).session;
    int code = cli_profile_predictor(session, predictor, &job->sized, &job->profile);
    if (code != EXIT_DONE) return code;
    code = compute_all(job, predictor);
    if (code == EXIT_DONE) code = report(job, predictor);
    int traced = cli_profile_trace(&job->profile);
    if (code == EXIT_DONE) code = traced;
    return code == EXIT_DONE ? check_results(job, weights) : code;
}

static int run(run_job *job) {
    const cli_args *args = job->session->args;
    clv_runtime *runtime = job->session->runtime;
    const clv_placement *placement = job->placement;
    int code = cli_data_is(args, "csv")      ? take_table(job)
               : cli_data_is(args, "arrays") ? take_arrays(job)
                                             : take_array(job);
    if (code == EXIT_DONE) code = cli_check_place(runtime, &job->sized, placement);
    if (code != EXIT_DONE) return code;
    clv_predictor_config config = {.device = placement->place ? NULL : job->session->device,
                                   .placement = *placement,
                                   .model = &job->sized,
                                   .batch = args->batch,
                                   .variants = args->variants,
                                   .no_fuse = cli_no_fuse(args),
                                   .precision = cli_precision(args)};
    if (!config.batch && job->n < 256)
        config.batch = job->n > placement->n_replicas ? job->n : placement->n_replicas;
    clv_predictor *predictor;
    clv_status status = clv_predictor_create(runtime, &config, &predictor);
    code = status == CLV_OK ? compute(job, predictor) : cli_fail_status(runtime, status);
    clv_predictor_destroy(predictor);
    cli_profile_end(&job->profile);
    return code;
}

/** Is it something to run on? */
static int check_kind(const cli_args *args) {
    const bool named = cli_data_is(args, "csv") || cli_data_is(args, "arrays"),
               pictures = cli_data_is(args, "images");
    if (args->n_words && cli_data_is(args, "text"))
        return cli_fail(
            EXIT_USAGE,
            "a text is nothing to run on: `cleave generate --prompt TEXT` goes on with one, and `cleave "
            "eval text FILE` tests on it");
    if (args->n_words && !named && !pictures)
        return cli_check_word(args) != EXIT_DONE
                   ? EXIT_USAGE
                   : cli_fail(EXIT_USAGE,
                              "'%s' is nothing to run on; there are images FILE, csv FILE, arrays FILE, and "
                              "--input FILE",
                              args->words[0]);
    if (named && args->n_more)
        return cli_fail(EXIT_USAGE, "'%s' is one word too many; see 'cleave run --help'", args->more[0]);
    return cli_check_data(args);
}

/** A pattern in quotes stays one: no shell has put names in its place. */
static int check_patterns(const cli_args *args) {
    for (int i = 0; i <= args->n_more; i++) {
        const char *path = i ? args->more[i - 1] : args->words[1];
        if (strpbrk(path, "*?[") && access(path, F_OK) != 0)
            return cli_fail(
                EXIT_FAILED,
                "there is no file '%s'; it looks like a pattern: without quotes the shell expands it", path);
    }
    return EXIT_DONE;
}

/** Would a file have the ending of another kind than what is written? */
static int check_ending(const cli_args *args) {
    static const char *const endings[] = {".npy", ".npz", ".csv"};
    const char *own = cli_data_is(args, "csv") || cli_data_is(args, "images") ? ".csv"
                      : cli_data_is(args, "arrays")                           ? ".npz"
                                                                              : ".npy";
    const char *dot = args->output ? strrchr(args->output, '.') : NULL;
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (!strcmp(dot, endings[i]) && strcmp(own, endings[i]) != 0)
            return cli_fail(EXIT_USAGE, "--output is '%s', and %s is written: name it %.*s%s", args->output,
                            own, (int)(dot - args->output), args->output, own);
    return EXIT_DONE;
}

/** Is it said on what, and where to? */
static int check_words(const cli_args *args) {
    const bool named = cli_data_is(args, "csv") || cli_data_is(args, "arrays") || cli_data_is(args, "images");
    if (named && args->n_words < 2)
        return cli_fail(EXIT_USAGE, "which file? `%s FILE` wants its name", args->words[0]);
    if (named && args->input)
        return cli_fail(EXIT_USAGE, "--input and `%s FILE` both say what to run on; give one of them",
                        args->words[0]);
    if (named && args->classes && !cli_data_is(args, "images"))
        return cli_fail(EXIT_USAGE, "--classes: the weights say how many there are");
    if (cli_data_is(args, "images") &&
        (check_patterns(args) != EXIT_DONE || cli_check_pictures(args) != EXIT_DONE))
        return EXIT_FAILED;
    if (!args->weights) return cli_fail(EXIT_USAGE, "which weights? --weights wants a .safetensors file");
    if (!named && !args->input)
        return cli_fail(EXIT_USAGE,
                        "on what? images FILE..., csv FILE or arrays FILE; or --input wants an .npy file");
    if (!args->output && !args->json && !cli_data_is(args, "images")) // the JSON has the results
        return cli_fail(
            EXIT_USAGE,
            "where to? --output wants the name of %s file; -o - is stdout, and --json tells values",
            cli_data_is(args, "csv")      ? "a .csv"
            : cli_data_is(args, "arrays") ? "an .npz"
                                          : "an .npy");
    return check_ending(args);
}

static void reset(run_job *job) {
    clv_array_reset(&job->input);
    for (int i = 0; i < CLV_MAX_PORTS; i++) {
        clv_array_reset(&job->bytes[i]);
        clv_array_reset(&job->results[i]);
    }
    clv_archive_destroy(job->archive);
    free(job->told);
}

static int run_data(const cli_args *args) {
    run_job job = {.model = NULL};
    if (!(job.model = cli_model(args->model))) return EXIT_USAGE;
    int code = cli_check_output(args, args->output);
    if (code == EXIT_DONE) code = cli_check_target(args->trace);
    cli_placement placement;
    if (code == EXIT_DONE) code = cli_read_placement(args, &placement);
    if (code != EXIT_DONE) return code;
    cli_session session;
    job.session = &session;
    job.placement = &placement.placement;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    code = run(&job);
    reset(&job);
    cli_stop(&session);
    return code;
}

int cmd_run(const cli_args *given) {
    cli_args args = *given;
    int code = check_kind(&args);
    if (code == EXIT_DONE) code = cli_load_own(&args);
    if (code == EXIT_DONE) code = cli_load_onnx(&args);
    if (code == EXIT_DONE) code = check_words(&args);
    if (code == EXIT_DONE) code = cli_tell_weights(&args);
    if (code == EXIT_DONE) code = cli_data_is(&args, "images") ? cli_run_images(&args) : run_data(&args);
    cli_forget_weights(&args);
    return code;
}
