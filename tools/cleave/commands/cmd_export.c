// SPDX-License-Identifier: Apache-2.0
// cleave export: a model and its weights as an ONNX file, for other programs.
#include "cleave/onnx.h"
#include "datasets/datasets.h"
#include "models/models.h"

#include <string.h>

/** What is written. */
typedef struct export_job {
    const cli_args *args;
    clv_runtime *runtime;
    clv_model sized;
    clv_gpt_config gpt;
    cli_fields fields;
} export_job;

/** Named arrays tell their fields in a record of their own. */
static bool is_of_arrays(const clv_weights_info *told) {
    return told && told->model && told->version && !told->table && !told->resize && !told->input[0];
}

static int size_gpt(export_job *job) {
    clv_vocabulary *vocabulary = NULL;
    const clv_status status = clv_gpt_weights_read(job->runtime, job->args->weights, &job->gpt, &vocabulary);
    clv_vocabulary_destroy(vocabulary);
    if (status != CLV_OK) return cli_fail_status(job->runtime, status);
    job->sized = clv_gpt_model(&job->gpt);
    return EXIT_DONE;
}

/** The model as it was trained. */
static int size_model(export_job *job) {
    const cli_args *args = job->args;
    const clv_weights_info *told = args->told;
    const clv_model *model = args->model || !is_of_arrays(told) ? cli_model(args->model) : NULL;
    if (!model && !is_of_arrays(told)) return EXIT_USAGE;
    if (cli_is_decoder(model)) return size_gpt(job);
    if (is_of_arrays(told)) {
        const int code = cli_fields_of_weights(job->runtime, args, &job->fields, &model);
        return code == EXIT_DONE ? cli_model_of_fields(job->runtime, args, model, &job->fields, &job->sized)
                                 : code;
    }
    job->sized = cli_model_for(args, model);
    if (!told || !told->input[0] || model->build_all) return EXIT_DONE;
    memcpy(job->sized.input, told->input, sizeof told->input);
    memcpy(job->sized.target, told->target, sizeof told->target);
    job->sized.classes = told->classes;
    return EXIT_DONE;
}

static int report(const export_job *job) {
    const cli_args *args = job->args;
    const int64_t batch = args->batch;
    if (args->json)
        return cli_print_json(json_pack("{s:s, s:s, s:s, s:o}", "model", job->sized.name, "weights",
                                        args->weights, "output", args->output, "batch",
                                        batch ? json_integer((json_int_t)batch) : json_null()));
    printf("%s with the weights of '%s' is in %s\n", job->sized.name, args->weights, args->output);
    return cli_finish_output();
}

/** The host holds the weights; nothing is computed. */
static int write_out(export_job *job) {
    const cli_args *args = job->args;
    clv_predictor *predictor = NULL;
    const clv_onnx_write_config config = {.batch = args->batch};
    int code = size_model(job);
    if (code != EXIT_DONE) return code;
    clv_status status = clv_predictor_create(
        job->runtime, &(clv_predictor_config){.model = &job->sized, .batch = args->batch ? args->batch : 1},
        &predictor);
    clv_session *session = status == CLV_OK ? clv_predictor_info_get(predictor).session : NULL;
    if (status != CLV_OK) return cli_fail_status(job->runtime, status);
    status = clv_weights_load_lora(session, args->weights, NULL, args->lora_weights);
    if (status != CLV_OK) {
        code = cli_fail_sized(job->runtime, args, status, &job->sized);
    } else {
        status = clv_onnx_write(session, &job->sized, &config, args->output);
        code = status == CLV_OK ? report(job) : cli_fail_status(job->runtime, status);
    }
    clv_predictor_destroy(predictor);
    return code;
}

static int check_words(const cli_args *args) {
    if (!args->weights) return cli_fail(EXIT_USAGE, "--weights wants a file: the weights to write");
    if (!args->output) return cli_fail(EXIT_USAGE, "--output wants a file: the ONNX file to write");
    if (!cli_is_onnx(args->output))
        return cli_fail(EXIT_USAGE, "--output is '%s', and its name must end in .onnx", args->output);
    return cli_check_target(args->output);
}

int cmd_export(const cli_args *given) {
    cli_args args = *given;
    const clv_runtime_config config = {.no_opencl = true, .visible_devices = "", .partition = ""};
    export_job job = {.args = &args};
    int code = cli_load_own(&args);
    if (code == EXIT_DONE) code = cli_load_onnx(&args);
    if (code == EXIT_DONE) code = check_words(&args);
    if (code == EXIT_DONE) code = cli_tell_weights(&args);
    if (code == EXIT_DONE && clv_runtime_create(&config, &job.runtime) != CLV_OK)
        code = cli_fail(EXIT_FAILED, "no runtime to read '%s' with", args.weights);
    if (code == EXIT_DONE) code = write_out(&job);
    clv_runtime_destroy(job.runtime);
    cli_forget_weights(&args);
    return code;
}
