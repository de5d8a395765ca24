// SPDX-License-Identifier: Apache-2.0
// cleave run images: what a model tells of pictures. Of classes the most probable ones, of labels the
// probability of each; as a table, as CSV, as JSON.
#include "datasets/datasets.h"
#include "models/models.h"
#include "plans/plans.h"
#include "pages/page.h"
#include "table.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct images_job {
    cli_session *session;
    const cli_args *args;
    const clv_placement *placement;
    clv_model sized;
    clv_dataset *pictures;
    int64_t n, each; // pictures, and results of one
    float *results;  // [n, each]
    bool labels;     // results are of labels, not of classes
    int64_t top;     // classes that are told
    int32_t *which;  // [top]
    double *p;       // [top]
    int64_t told_broken;
    cli_profile profile;
    const volatile int *interrupt;
} images_job;

// ---- words ----------------------------------------------------------------------------------------------

/** The name of a class or label; its number where weights tell none. Good until the next call. */
static const char *name_of(const images_job *job, int64_t i, char text[24]) {
    const clv_weights_info *told = job->args->told;
    if (told && i < told->n_names) return told->names[i];
    snprintf(text, 24, "%lld", (long long)i);
    return text;
}

static double sigmoid(float x) {
    return 1 / (1 + exp(-(double)x));
}

/** How many classes of a picture are told: `which` and `p`. 0: its results are no numbers. */
static int64_t classes_of(const images_job *job, int64_t i) {
    return clv_top_classes(job->results + i * job->each, job->each, job->top, job->which, job->p);
}

static bool is_told(const images_job *job, int64_t i) {
    bool broken;
    clv_image_folder_file(job->pictures, i, &broken);
    return !broken;
}

// ---- a table --------------------------------------------------------------------------------------------

static void add_classes(const images_job *job, int64_t i, const char *file, table *t) {
    char text[24];
    const int64_t n = classes_of(job, i);
    if (!n) {
        table_add(t, "%s", file);
        table_rest(t, "no numbers");
    }
    for (int64_t k = 0; k < n; k++) {
        table_add(t, "%s", k ? "" : file);
        table_add(t, "%s", name_of(job, job->which[k], text));
        table_add(t, "%.4f", job->p[k]);
    }
}

static void add_labels(const images_job *job, int64_t i, const char *file, table *t) {
    char text[24];
    for (int64_t k = 0; k < job->each; k++) {
        table_add(t, "%s", k ? "" : file);
        table_add(t, "%s", name_of(job, k, text));
        table_add(t, "%.4f", sigmoid(job->results[i * job->each + k]));
    }
}

static void print_table(const images_job *job) {
    const table_column columns[] = {{"picture", TABLE_NAME, TABLE_KEEP, 12, NULL},
                                    {"label", TABLE_TEXT, TABLE_KEEP, 8, NULL},
                                    {"probability", TABLE_NUMBER, TABLE_KEEP, 0, NULL}};
    table *t = table_create(columns, sizeof columns / sizeof *columns);
    for (int64_t i = 0; i < job->n; i++)
        if (is_told(job, i))
            (job->labels ? add_labels : add_classes)(job, i, clv_image_folder_file(job->pictures, i, NULL),
                                                     t);
    table_print(t, stdout);
}

// ---- CSV ------------------------------------------------------------------------------------------------

/** A value, in quotes where it needs them (RFC 4180). Not printf: what stands in a file is not shortened. */
static void put_value(FILE *out, const char *value) {
    const bool quoted = strpbrk(value, ",;\t\"\r\n") != NULL;
    if (quoted) fputc('"', out);
    for (const char *at = value; *at; at++) {
        if (*at == '"') fputc('"', out);
        fputc(*at, out);
    }
    if (quoted) fputc('"', out);
}

static void put_head(const images_job *job, FILE *out) {
    char text[24];
    fputs("file", out);
    for (int64_t k = 0; job->labels && k < job->each; k++) {
        fputc(',', out);
        put_value(out, name_of(job, k, text));
    }
    if (!job->labels) fputs(",label,probability", out);
    for (int64_t k = 1; !job->labels && k < job->top; k++)
        fprintf(out, ",label%lld,probability%lld", (long long)k + 1, (long long)k + 1);
    fputc('\n', out);
}

static void put_row(const images_job *job, int64_t i, FILE *out) {
    char text[24];
    put_value(out, clv_image_folder_file(job->pictures, i, NULL));
    const int64_t n = job->labels ? 0 : classes_of(job, i);
    for (int64_t k = 0; job->labels && k < job->each; k++)
        fprintf(out, ",%.9g", sigmoid(job->results[i * job->each + k]));
    for (int64_t k = 0; !job->labels && k < job->top; k++) {
        fputc(',', out);
        if (k < n) put_value(out, name_of(job, job->which[k], text));
        fputc(',', out);
        if (k < n) fprintf(out, "%.9g", job->p[k]);
    }
    fputc('\n', out);
}

static int write_csv(const images_job *job) {
    char *text = NULL;
    size_t n;
    FILE *memory = open_memstream(&text, &n);
    if (!memory) return cli_fail(EXIT_FAILED, "no memory for '%s'", job->args->output);
    put_head(job, memory);
    for (int64_t i = 0; i < job->n; i++)
        if (is_told(job, i)) put_row(job, i, memory);
    int code =
        fclose(memory) == 0 ? EXIT_DONE : cli_fail(EXIT_FAILED, "no memory for '%s'", job->args->output);
    if (code == EXIT_DONE) code = cli_write_whole(job->args->output, text, n);
    free(text);
    return code;
}

// ---- JSON -----------------------------------------------------------------------------------------------

static json_t *label_json(const images_job *job, int64_t i, double p) {
    char text[24];
    const char *name = name_of(job, i, text);
    return json_pack("{s:o, s:I, s:o}", "label", json_stringn(name, strlen(name)), "index", (json_int_t)i,
                     "probability", cli_real(p));
}

static json_t *picture_json(const images_job *job, int64_t i) {
    json_t *list = json_array();
    const int64_t n = job->labels ? 0 : classes_of(job, i);
    for (int64_t k = 0; k < n; k++) json_array_append_new(list, label_json(job, job->which[k], job->p[k]));
    for (int64_t k = 0; job->labels && k < job->each; k++)
        json_array_append_new(list, label_json(job, k, sigmoid(job->results[i * job->each + k])));
    const char *file = clv_image_folder_file(job->pictures, i, NULL);
    json_t *name = json_string(file); // names of files need not be UTF-8
    return json_pack("{s:o, s:o}", "file", name ? name : json_null(), "labels", list);
}

static json_t *result_json(const images_job *job, clv_predictor *predictor) {
    clv_plan *plan = clv_predictor_info_get(predictor).plan;
    json_t *list = json_array();
    for (int64_t i = 0; i < job->n; i++)
        if (is_told(job, i)) json_array_append_new(list, picture_json(job, i));
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "model", job->sized.name, "device",
        clv_device_info_get(clv_plan_device_get(plan, 0))->name, "output",
        job->args->output ? json_string(job->args->output) : json_null(), "pictures", list, "broken_pictures",
        (json_int_t)clv_dataset_info_get(job->pictures).folder.broken, "memory", cli_plan_memory_json(plan),
        "shares", cli_shares_json(job->placement, clv_predictor_info_get(predictor).shares), "placement",
        cli_place_json(clv_predictor_info_get(predictor).place), "profile", cli_profile_json(&job->profile));
}

// ---- done -----------------------------------------------------------------------------------------------

static int report(images_job *job, clv_predictor *predictor) {
    const cli_args *args = job->args;
    int code = args->output ? write_csv(job) : EXIT_DONE;
    if (code != EXIT_DONE) return code;
    if (args->json) return cli_print_json(result_json(job, predictor));
    if (args->output && !args->quiet && !cli_is_stdout(args->output))
        printf("results of %lld picture%s are in %s\n", (long long)job->n, job->n == 1 ? "" : "s",
               args->output);
    if (!args->output) print_table(job);
    cli_profile_print(cli_is_stdout(args->output) ? stderr : stdout, &job->profile);
    return cli_finish_output();
}

/** Results that are not finite are told as they are, and that they are none. */
static int check_results(const images_job *job, clv_session *weights) {
    char why[400];
    int64_t bad = 0, first = -1;
    for (int64_t i = 0; i < job->n; i++) {
        int64_t k = 0;
        while (k < job->each && isfinite(job->results[i * job->each + k])) k++;
        if (k == job->each) continue;
        if (!bad++) first = i;
    }
    if (!bad) return EXIT_DONE;
    cli_blame_weights(weights, job->args->weights, why, sizeof why);
    return cli_fail(
        EXIT_FAILED,
        "results of %lld of %lld pictures are not finite (NaN or infinity), the first is '%s'; %s",
        (long long)bad, (long long)job->n, clv_image_folder_file(job->pictures, first, NULL), why);
}

/** Batch by batch, as the threads of a loader decode them. */
static clv_status compute(images_job *job, clv_predictor *predictor, clv_loader *loader) {
    bool last = false;
    for (int64_t done = 0; !last;) {
        clv_batch batch;
        char text[64];
        clv_status status = clv_loader_next(loader, &batch);
        if (status != CLV_OK) return status;
        status = clv_predictor_forward(predictor, batch.samples, batch.n, job->results + done * job->each);
        done += batch.n;
        last = batch.last || *job->interrupt;
        clv_loader_release(loader, &batch);
        if (status != CLV_OK) return status;
        snprintf(text, sizeof text, "%lld/%lld", (long long)done, (long long)job->n);
        cli_progress_draw(&job->session->progress, "pictures", (double)done, (double)job->n, text);
    }
    return CLV_OK;
}

static clv_status compute_all(images_job *job, clv_predictor *predictor, int64_t batch) {
    clv_loader *loader = NULL;
    clv_runtime *runtime = job->session->runtime;
    clv_status status = clv_loader_create(runtime, job->pictures,
                                          &(clv_loader_config){.batch = batch, .bytes = true}, &loader);
    if (status == CLV_OK) status = compute(job, predictor, loader);
    clv_loader_destroy(loader);
    cli_progress_clear(&job->session->progress);
    return status;
}

static int take_room(images_job *job, clv_predictor *predictor) {
    const clv_shape shape = clv_predictor_info_get(predictor).results[0];
    job->each = clv_shape_numel(&shape);
    job->labels = job->sized.classes == 0;
    job->top = job->args->top ? job->args->top : 1;
    if (job->top > job->each) job->top = job->each;
    job->results = calloc((size_t)job->n, (size_t)job->each * sizeof *job->results);
    job->which = calloc((size_t)job->top, sizeof *job->which);
    job->p = calloc((size_t)job->top, sizeof *job->p);
    return job->results && job->which && job->p
               ? EXIT_DONE
               : cli_fail(EXIT_FAILED, "no memory for the results of %lld pictures", (long long)job->n);
}

/** The predictor is made: load, compute, tell. */
static int with_predictor(images_job *job, clv_predictor *predictor, int64_t batch) {
    cli_session *session = job->session;
    clv_session *weights = clv_predictor_info_get(predictor).session;
    int code = take_room(job, predictor);
    if (code == EXIT_DONE) code = cli_profile_predictor(session, predictor, &job->sized, &job->profile);
    if (code != EXIT_DONE) return code;
    const clv_status status = compute_all(job, predictor, batch);
    if (status != CLV_OK) return cli_fail_status(session->runtime, status);
    if (*job->interrupt) return EXIT_INTERRUPTED;
    job->told_broken = cli_tell_broken_of(job->args, job->pictures, job->told_broken);
    code = report(job, predictor);
    const int traced = cli_profile_trace(&job->profile);
    if (code == EXIT_DONE) code = traced;
    return code == EXIT_DONE ? check_results(job, weights) : code;
}

/** The model for pictures of this size, and for what its weights tell apart. */
static int size_model(images_job *job, const clv_model *model, int64_t size) {
    const cli_args *args = job->args;
    const clv_weights_info *told = args->told;
    if (told && told->input[0] && (told->input[0] != 3 || !told->input[2] || told->input[3]))
        return cli_fail(EXIT_FAILED,
                        "'%s' holds weights of a model for samples of %s, and a picture has three channels; "
                        "--input takes such samples",
                        args->weights, told->input[2] ? "another number of channels" : "another kind");
    job->sized = clv_model_for(model, 3, size, size, args->classes);
    if (told && !told->classes && told->target[0]) {
        job->sized.classes = 0;
        memcpy(job->sized.target, told->target, sizeof told->target);
    }
    return cli_check_place(job->session->runtime, &job->sized, job->placement);
}

static clv_status read_pictures(images_job *job, int64_t size) {
    const cli_args *args = job->args;
    const int n = args->n_more + 1;
    const char **paths = calloc((size_t)n, sizeof *paths);
    clv_image_folder_config config = {.size = size,
                                      .workers = (int)args->workers,
                                      .draft = args->draft,
                                      .exif_transpose = args->exif_transpose,
                                      .strict = args->strict};
    if (!paths) return CLV_E_HOST_MEMORY;
    cli_pictures_of_weights(args, &config);
    paths[0] = args->words[1];
    for (int i = 1; i < n; i++) paths[i] = args->more[i - 1];
    const clv_status status =
        clv_dataset_image_files(job->session->runtime, paths, n, &config, &job->pictures);
    free(paths);
    return status;
}

static int run(images_job *job, const clv_model *model) {
    const cli_args *args = job->args;
    const int64_t size = args->image_size ? args->image_size : 224;
    int code = size_model(job, model, size);
    if (code != EXIT_DONE) return code;
    clv_status status = read_pictures(job, size);
    if (status != CLV_OK) return cli_fail_status(job->session->runtime, status);
    job->told_broken = cli_tell_broken_of(args, job->pictures, 0);
    job->n = clv_dataset_info_get(job->pictures).count;
    const int64_t most = args->batch ? args->batch : 32, replicas = job->placement->n_replicas,
                  fit = job->n < most ? job->n : most, batch = fit > replicas ? fit : replicas;
    const clv_predictor_config config = {.device = job->placement->place ? NULL : job->session->device,
                                         .placement = *job->placement,
                                         .model = &job->sized,
                                         .batch = batch,
                                         .variants = args->variants,
                                         .no_fuse = cli_no_fuse(args),
                                         .precision = cli_precision(args),
                                         .samples = job->pictures};
    clv_predictor *predictor;
    status = clv_predictor_create(job->session->runtime, &config, &predictor);
    code = status == CLV_OK ? with_predictor(job, predictor, batch)
                            : cli_fail_made(job->session->runtime, job->session->args, status);
    clv_predictor_destroy(predictor);
    cli_profile_end(&job->profile);
    return code;
}

static int check(const cli_args *args, const clv_model *model) {
    if (args->workers > 64)
        return cli_fail(EXIT_USAGE, "--workers is 1 to 64, not %lld", (long long)args->workers);
    if (args->image_size > 4096)
        return cli_fail(EXIT_USAGE, "--image-size is 1 to 4096, not %lld", (long long)args->image_size);
    if (model->dtype == CLV_DTYPE_I32 || model->build_all)
        return cli_fail(EXIT_USAGE, "%s is no model of pictures", model->name);
    if (args->told && !args->told->classes && args->told->input[0] && !args->told->target[0])
        return cli_fail(EXIT_FAILED, "'%s' tells neither classes nor labels", args->weights);
    const int code = cli_check_output(args, args->output);
    return code == EXIT_DONE ? cli_check_target(args->trace) : code;
}

int cli_run_images(const cli_args *args) {
    const clv_model *model = cli_model(args->model);
    cli_placement placement;
    cli_session session;
    if (!model) return EXIT_USAGE;
    int code = check(args, model);
    if (code == EXIT_DONE) code = cli_read_placement(args, &placement);
    if (code != EXIT_DONE) return code;
    images_job job = {.session = &session, .args = args, .placement = &placement.placement};
    cli_start_early(args, true, &session);
    code = cli_start(&session);
    if (code != EXIT_DONE) return code;
    job.interrupt = cli_catch_interrupts();
    code = run(&job, model);
    clv_dataset_destroy(job.pictures);
    free(job.results);
    free(job.which);
    free(job.p);
    cli_stop(&session);
    return code;
}
