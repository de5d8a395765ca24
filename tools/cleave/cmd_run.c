// SPDX-License-Identifier: Apache-2.0
// cleave run: a model's logits for an array of images. The images are taken as they are, without
// normalisation.
#include "cli.h"

#include <math.h>
#include <string.h>

static int check_images(const cli_args *args, const clv_model *model, const clv_array *images) {
    const bool tokens = model->dtype == CLV_DTYPE_I32;
    if (tokens && images->type != CLV_ARRAY_I32)
        return cli_fail(EXIT_FAILED,
                        "'%s' holds %s, and tokens must be int32; numpy mends it with x.astype('int32')",
                        args->input, clv_array_type_name(images->type));
    if (!tokens && images->type != CLV_ARRAY_F32)
        return cli_fail(
            EXIT_FAILED,
            "'%s' holds %s, and images must be float32; numpy mends it with x.astype('float32')%s",
            args->input, clv_array_type_name(images->type),
            images->type == CLV_ARRAY_U8 ? " / 255, as train and eval take bytes" : "");
    if (images->shape.rank < 1 || images->shape.dims[0] == 0)
        return cli_fail(EXIT_FAILED, "'%s' holds no %s", args->input, cli_samples_name(model));
    return EXIT_DONE;
}

static int report(cli_session *session, const clv_model *model, clv_predictor *predictor,
                  const clv_placement *placement, const clv_array *logits, const cli_profile *profile) {
    clv_plan *plan = clv_predictor_plan(predictor);
    if (session->args->json) {
        json_t *shape = json_array();
        for (int d = 0; d < logits->shape.rank; d++)
            json_array_append_new(shape, json_integer((json_int_t)logits->shape.dims[d]));
        return cli_print_json(
            json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "model", model->name, "device",
                      clv_device_info_get(clv_plan_device_get(plan, 0))->name, "output",
                      session->args->output, "shape", shape, "memory", cli_plan_memory_json(plan), "shares",
                      cli_shares_json(placement, clv_predictor_shares(predictor)), "placement",
                      cli_place_json(clv_predictor_place(predictor)), "profile", cli_profile_json(profile)));
    }
    char text[96];
    printf("logits %s are in %s\n", clv_shape_text(&logits->shape, text, sizeof text), session->args->output);
    cli_shares_print(placement, clv_predictor_shares(predictor));
    cli_plan_memory_tables(stdout, plan);
    cli_profile_print(stdout, profile);
    return cli_finish_output();
}

/** Rows with a value that is not finite; `first`: which is the first, from 0. */
static int64_t count_not_finite(const clv_array *array, int64_t *first) {
    const int64_t n = array->shape.dims[0];
    const size_t row = clv_array_bytes(array) / sizeof(float) / (size_t)n;
    int64_t count = 0;
    if (array->type != CLV_ARRAY_F32) return 0;
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
static int check_results(const cli_args *args, const clv_array *images, const clv_array *logits) {
    int64_t first = 0, first_in = 0;
    const int64_t bad = count_not_finite(logits, &first), bad_in = count_not_finite(images, &first_in);
    if (!bad) return EXIT_DONE;
    char why[128] = "the input is finite: look at the weights";
    if (bad_in)
        snprintf(why, sizeof why, "of the input: %lld, the first is row %lld", (long long)bad_in,
                 (long long)first_in);
    return cli_fail(
        EXIT_FAILED,
        "rows of '%s' that are not finite (NaN or infinity): %lld of %lld, the first is row %lld; %s",
        args->output, (long long)bad, (long long)logits->shape.dims[0], (long long)first, why);
}

static clv_device *device_of(const void *predictor, int index) {
    return clv_plan_device_get(clv_predictor_plan(predictor), index);
}

/** The predictor is made: load, compute, write, tell. */
static int compute(cli_session *session, const clv_model *model, clv_predictor *predictor,
                   const clv_placement *placement, const clv_array *images, clv_array *logits,
                   cli_profile *profile) {
    const cli_args *args = session->args;
    clv_runtime *runtime = session->runtime;
    clv_session *weights = clv_predictor_session(predictor);
    int64_t n = images->shape.dims[0];
    const clv_shape one = clv_predictor_result_shape(predictor);
    clv_shape shape = {one.rank + 1, {n}};
    memcpy(shape.dims + 1, one.dims, (size_t)one.rank * sizeof *one.dims);
    int code = cli_profile_begin(session, weights, device_of, predictor, profile);
    if (code != EXIT_DONE) return code;
    cli_print_place(args, clv_predictor_place(predictor));
    cli_tell_idle(session, clv_predictor_plan(predictor));
    clv_status status = clv_weights_load(weights, args->weights);
    if (status != CLV_OK) return cli_fail_sized(runtime, status, model);
    if (status == CLV_OK) status = clv_array_init(runtime, CLV_ARRAY_F32, &shape, logits);
    if (status == CLV_OK) status = clv_predictor_forward(predictor, images->data, n, logits->data);
    if (status == CLV_OK) status = clv_npy_write(runtime, logits, args->output);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    code = report(session, model, predictor, placement, logits, profile);
    int traced = cli_profile_trace(profile);
    if (code == EXIT_DONE) code = traced;
    return code == EXIT_DONE ? check_results(args, images, logits) : code;
}

/** The model for the samples; of texts as its weights say. */
static int size_model(cli_session *session, const clv_model *model, const clv_array *images,
                      clv_gpt_config *gpt, clv_model *out) {
    const clv_shape sample = clv_shape_make(images->shape.rank - 1, images->shape.dims + 1);
    clv_vocabulary *vocabulary = NULL;
    if (model->dtype != CLV_DTYPE_I32)
        return cli_size_model(session->runtime, session->args, model, &sample, out);
    clv_status status = clv_gpt_weights_read(session->runtime, session->args->weights, gpt, &vocabulary);
    clv_vocabulary_destroy(vocabulary);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    *out = clv_gpt_model(gpt);
    return cli_size_model(session->runtime, session->args, out, &sample, out);
}

static int run(cli_session *session, const clv_model *model, const clv_placement *placement,
               clv_array *images, clv_array *logits) {
    const cli_args *args = session->args;
    clv_status status = clv_npy_read(session->runtime, args->input, images);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    int code = check_images(args, model, images);
    if (code != EXIT_DONE) return code;
    clv_gpt_config gpt;
    clv_model sized;
    code = size_model(session, model, images, &gpt, &sized);
    if (code == EXIT_DONE) code = cli_check_place(session->runtime, &sized, placement);
    if (code != EXIT_DONE) return code;
    int64_t n = images->shape.dims[0];
    clv_predictor_config config = {.device = placement->place ? NULL : session->device,
                                   .placement = *placement,
                                   .model = &sized,
                                   .batch = args->batch,
                                   .variants = args->variants,
                                   .no_fuse = cli_no_fuse(args),
                                   .precision = cli_precision(args)};
    if (!config.batch && n < 256) config.batch = n > placement->n_replicas ? n : placement->n_replicas;
    clv_predictor *predictor;
    cli_profile profile = {0};
    status = clv_predictor_create(session->runtime, &config, &predictor);
    code = status == CLV_OK ? compute(session, &sized, predictor, placement, images, logits, &profile)
                            : cli_fail_status(session->runtime, status);
    clv_predictor_destroy(predictor);
    cli_profile_end(&profile);
    return code;
}

int cmd_run(const cli_args *args) {
    const clv_model *model = cli_model(args->model);
    if (!model) return EXIT_USAGE;
    if (!args->weights) return cli_fail(EXIT_USAGE, "which weights? --weights wants a .safetensors file");
    if (!args->input) return cli_fail(EXIT_USAGE, "on what? --input wants an .npy file");
    if (!args->output) return cli_fail(EXIT_USAGE, "where to? --output wants the name of an .npy file");
    int code = cli_check_target(args->output);
    if (code == EXIT_DONE) code = cli_check_target(args->trace);
    cli_placement placement;
    if (code == EXIT_DONE) code = cli_read_placement(args, &placement);
    if (code != EXIT_DONE) return code;
    cli_session session;
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    clv_array images = {0}, logits = {0};
    code = run(&session, model, &placement.placement, &images, &logits);
    clv_array_reset(&images);
    clv_array_reset(&logits);
    cli_stop(&session);
    return code;
}
