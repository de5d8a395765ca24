// SPDX-License-Identifier: Apache-2.0
// Named arrays: the data set `arrays FILE`, an .npz or a folder of .npy. Which of its arrays are inputs,
// which targets, which loss goes with which; a model with ports of these names; and what weights tell of
// them, so that `run` and `eval` need no such options.
#include "datasets/datasets.h"
#include "models/models.h"
#include "training/training.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- the options ------------------------------------------------------------------------------------------

/** A name of a list with commas, without what is behind `=`. */
static int keep_name(const char *option, const char *at, size_t n, cli_fields *out) {
    const int i = out->n_inputs + out->n_targets;
    if (n < 1 || n >= sizeof out->name[i])
        return cli_fail(EXIT_USAGE, "--%s: '%.*s' is no name of an array, of 1 to %zu letters", option,
                        (int)n, at, sizeof out->name[i] - 1);
    snprintf(out->name[i], sizeof out->name[i], "%.*s", (int)n, at);
    out->port[i] = (clv_port){.name = out->name[i]};
    for (int k = 0; k < i; k++)
        if (!strcmp(out->name[k], out->name[i]))
            return cli_fail(EXIT_USAGE, "--%s: '%s' is named twice", option, out->name[i]);
    return EXIT_DONE;
}

/** `mse`, `mse*0.5` or `*0.5` of the target that was named last. */
static int keep_loss(const char *text, size_t n, cli_fields *out) {
    char word[64];
    const int i = out->n_inputs + out->n_targets;
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    char *star = strchr(word, '*'), *end = NULL;
    clv_train_loss *loss = &out->loss[out->n_targets];
    *loss = (clv_train_loss){.target = out->name[i]};
    if (star) *star = 0;
    if (*word && !(loss->loss = clv_loss_find(word))) {
        char names[128] = "";
        clv__nearest nearest = {.word = word};
        for (int k = 0; clv_loss_get(k); k++) {
            clv__nearest_offer(&nearest, clv_loss_get(k)->name);
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? ", " : "",
                     clv_loss_get(k)->name);
        }
        return cli_fail(EXIT_USAGE, "--target: there is no loss '%s', there are %s%s", word, names,
                        clv__nearest_text(&nearest));
    }
    if (star) loss->weight = strtod(star + 1, &end);
    if (n >= sizeof word || (star && (!star[1] || *end || !(loss->weight > 0))))
        return cli_fail(EXIT_USAGE,
                        "--target: '%.*s' is not of the form NAME=LOSS*WEIGHT, with a weight above 0", (int)n,
                        text);
    return EXIT_DONE;
}

static int read_inputs(const char *list, cli_fields *out) {
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, ",");
        if (out->n_inputs == CLV_MAX_PORTS)
            return cli_fail(EXIT_USAGE, "--inputs: more than %d names", CLV_MAX_PORTS);
        const int code = keep_name("inputs", at, n, out);
        if (code != EXIT_DONE) return code;
        out->n_inputs++;
        at += n + (at[n] == ',');
    }
    return EXIT_DONE;
}

/** Behind the inputs. */
static int read_targets(const char *list, cli_fields *out) {
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, ","), name = strcspn(at, ",=");
        if (out->n_targets == CLV_MAX_PORTS)
            return cli_fail(EXIT_USAGE, "--target: more than %d names", CLV_MAX_PORTS);
        int code = keep_name("target", at, name, out);
        if (code == EXIT_DONE) code = keep_loss(at + name + (name < n), n - name - (name < n), out);
        if (code != EXIT_DONE) return code;
        out->n_targets++;
        at += n + (at[n] == ',');
    }
    return EXIT_DONE;
}

/** --inputs and --target read. Prints what is wrong. */
static int read_fields(const char *inputs, const char *targets, cli_fields *out) {
    *out = (cli_fields){.n_inputs = 0};
    const int code = read_inputs(inputs, out);
    return code == EXIT_DONE ? read_targets(targets, out) : code;
}

int cli_check_arrays(const cli_args *args, const clv_model *model) {
    cli_fields fields; // looked at again when arrays are there
    if (!cli_data_is(args, "arrays")) return EXIT_DONE;
    if (args->n_words < 2)
        return cli_fail(EXIT_USAGE,
                        "which arrays? `arrays FILE` wants an .npz file, or a folder of .npy files");
    if (!model->build_all && model->dtype == CLV_DTYPE_I32 && !cli_is_onnx(model->name))
        return cli_fail(EXIT_USAGE, "%s is a model of texts: give it one, `text FILE`", model->name);
    if (args->command == CLI_TRAIN && !model->build_all && !args->target && !args->weights)
        return cli_fail(EXIT_USAGE, "which arrays are to be learnt? --target wants their names, as in "
                                    "--target price=mse*0.5,kind");
    const int code = read_fields(args->inputs, args->target, &fields);
    if (code == EXIT_DONE && args->classes && fields.n_targets > 1)
        return cli_fail(EXIT_USAGE, "--classes is for one target, and --target names %d", fields.n_targets);
    return code;
}

// ---- the arrays -------------------------------------------------------------------------------------------

#define UNREAD "cleave.unread." // and the name of an array: the key of the text that says why

/** A .npy file of the folder as an array of the archive; one of another type is left out. */
static clv_status add_file(clv_runtime *runtime, const char *folder, const char *file, clv_archive *archive) {
    char path[4096], name[256];
    clv_array read = {0}, *kept = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - 4), file);
    clv_status status = clv_npy_read(runtime, path, &read);
    if (status == CLV_E_UNSUPPORTED) { // as in an .npz file
        char key[sizeof name + sizeof UNREAD];
        snprintf(key, sizeof key, UNREAD "%s", name);
        return clv_archive_set_text(archive, key, cli_sentence(runtime));
    }
    if (status == CLV_OK) status = clv_archive_add(archive, name, read.type, &read.shape, NULL, &kept);
    if (status == CLV_OK && clv_array_bytes(&read)) memcpy(kept->data, read.data, clv_array_bytes(&read));
    clv_array_reset(&read);
    return status;
}

static int is_array(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name);
    return n > 4 && *entry->d_name != '.' && !strcmp(entry->d_name + n - 4, ".npy");
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

clv_status cli_read_arrays(clv_runtime *runtime, const char *path, clv_archive **out) {
    struct dirent **files = NULL;
    const int n =
        scandir(path, &files, is_array, by_name); // a folder's own order differs between copies of it
    if (n < 0) return errno == ENOMEM ? CLV_E_HOST_MEMORY : clv_npz_read(runtime, path, out);
    clv_status status = clv_archive_create(runtime, out);
    for (int i = 0; i < n; i++) {
        if (status == CLV_OK) status = add_file(runtime, path, files[i]->d_name, *out);
        free(files[i]);
    }
    free(files);
    return status;
}

static const char *unread(const clv_archive *archive, const char *name) {
    char key[512];
    snprintf(key, sizeof key, UNREAD "%s", name);
    return clv_archive_text(archive, key);
}

int cli_no_array(const clv_archive *archive, const char *path, const char *name) {
    const char *why = unread(archive, name);
    if (why) return cli_fail(EXIT_FAILED, "%s", why);
    char names[300] = "";
    clv__nearest nearest = {.word = name};
    for (size_t i = 0; clv_archive_get(archive, i); i++) {
        const char *one = clv_archive_get(archive, i)->name;
        const size_t used = strlen(names);
        clv__nearest_offer(&nearest, one);
        if (used < sizeof names - 8)
            snprintf(names + used, sizeof names - used, "%s%.100s", i ? ", " : "", one);
    }
    return cli_fail(EXIT_FAILED, "'%s' has no array '%s', it has %s%s", path, name, *names ? names : "none",
                    clv__nearest_text(&nearest));
}

/** Is it one of the targets? */
static bool is_target(const cli_fields *fields, const char *name) {
    for (int i = fields->n_inputs; i < fields->n_inputs + fields->n_targets; i++)
        if (!strcmp(fields->name[i], name)) return true;
    return false;
}

static void copy_fields(const cli_fields *from, cli_fields *to) {
    *to = *from;
    for (int i = 0; i < to->n_inputs + to->n_targets; i++) to->port[i].name = to->name[i];
    for (int i = 0; i < to->n_targets; i++) to->loss[i].target = to->name[to->n_inputs + i];
}

/** Arrays that cannot be read are no inputs: a line for each. */
static void tell_unread(const cli_args *args, const clv_archive *archive) {
    const char *why, *key;
    for (size_t i = 0; !args->quiet && (key = clv_archive_text_at(archive, i, &why)); i++)
        if (!strncmp(key, UNREAD, sizeof UNREAD - 1))
            fprintf(stderr, "'%s' is left out: %s\n", key + sizeof UNREAD - 1, why);
}

/** No inputs were named: all arrays that are no targets, before the targets. */
static int take_others(const clv_archive *archive, const char *path, cli_fields *fields) {
    cli_fields *with = calloc(1, sizeof *with);
    if (!with) return cli_fail(EXIT_FAILED, "no memory for the names of '%s'", path);
    int code = EXIT_DONE, n = 0;
    for (size_t i = 0; code == EXIT_DONE && clv_archive_get(archive, i); i++) {
        const char *name = clv_archive_get(archive, i)->name;
        if (is_target(fields, name)) continue;
        if (n++ == CLV_MAX_PORTS)
            code = cli_fail(EXIT_USAGE, "'%s' has too many arrays to be inputs: --inputs names them", path);
        else
            code = keep_name("inputs", name, strlen(name), with);
        with->n_inputs += code == EXIT_DONE;
    }
    if (code == EXIT_DONE && !n)
        code = cli_fail(EXIT_FAILED,
                        "'%s' has no array but the targets: there are no inputs to predict them from", path);
    for (int i = 0; code == EXIT_DONE && i < fields->n_targets; i++) {
        const int to = with->n_inputs + i;
        memcpy(with->name[to], fields->name[fields->n_inputs + i], sizeof with->name[to]);
        with->port[to] = (clv_port){.name = with->name[to]};
        with->loss[i] = fields->loss[i];
        with->loss[i].target = with->name[to];
    }
    with->n_targets = fields->n_targets;
    if (code == EXIT_DONE) copy_fields(with, fields);
    free(with);
    return code;
}

enum { MOST_CLASSES = 1 << 24 }; // as datasets have it

static int64_t whole_at(const clv_array *array, int64_t i) {
    switch (array->type) {
    case CLV_DTYPE_BOOL: return ((const uint8_t *)array->data)[i] != 0;
    case CLV_DTYPE_I8: return ((const int8_t *)array->data)[i];
    case CLV_DTYPE_U8: return ((const uint8_t *)array->data)[i];
    case CLV_DTYPE_I32: return ((const int32_t *)array->data)[i];
    default: return ((const int64_t *)array->data)[i];
    }
}

bool cli_as_i32(const clv_array *array, clv_array *out) {
    const int64_t n = clv_shape_numel(&array->shape);
    if (array->type == CLV_DTYPE_F32 || array->type == CLV_DTYPE_I32) return true;
    int32_t *data = malloc((size_t)n * sizeof *data + 1);
    if (!data) return false;
    for (int64_t i = 0; i < n; i++) {
        const int64_t value = whole_at(array, i);
        data[i] = (int32_t)(value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value);
    }
    *out = (clv_array){.type = CLV_DTYPE_I32, .shape = array->shape, .data = data};
    return true;
}

/** Is the i-th target's loss one of labels that have no place of their own among the steps of a result? */
static bool of_steps(const cli_fields *fields, int i) {
    return fields->loss[i].loss && fields->loss[i].loss->of_sequences;
}

/** The largest whole number of an array, but for ignored labels; -1 if there is one below 0. */
static int64_t largest(const cli_args *args, const clv_array *array) {
    int64_t most = 0;
    int32_t ignored;
    if (!cli_ignored_label(args, &ignored)) ignored = CLV_LABEL_IGNORED;
    const int64_t n = clv_shape_numel(&array->shape);
    for (int64_t i = 0; i < n; i++) {
        const int64_t value = whole_at(array, i);
        if (value == ignored) continue;
        if (value < 0) return -1;
        if (value > most) most = value;
    }
    return most;
}

/** What an array is as an input or a target. A model with ports of its own, or of a file, says what it takes.
 */
static int describe(const clv_archive *archive, const cli_args *args, const clv_model *model, int i,
                    cli_fields *fields) {
    const bool of_file = cli_is_onnx(model->name), own = model->build_all || of_file;
    const char *path = args->words[1], *name = fields->name[i];
    const clv_array *array = clv_archive_find(archive, name);
    const bool target = i >= fields->n_inputs;
    clv_port *port = &fields->port[i];
    if (!array) return cli_no_array(archive, path, name);
    if (array->shape.rank < 1 || clv_array_bytes(array) == 0)
        return cli_fail(EXIT_FAILED, "'%s': array '%s' holds no samples", path, name);
    memset(port->dims, 0, sizeof port->dims);
    for (int d = 1; d < array->shape.rank; d++) port->dims[d - 1] = array->shape.dims[d];
    const bool whole = array->type != CLV_DTYPE_F32;
    const clv_loss *loss = target ? fields->loss[i - fields->n_inputs].loss : NULL;
    if (target && whole && loss && !loss->of_classes)
        return cli_fail(EXIT_FAILED,
                        "'%s': target '%s' holds %s, which are classes, and %s wants numbers; numpy "
                        "mends it with %s.astype('float32')",
                        path, name, clv_dtype_name(array->type), loss->name, name);
    if (!target && whole && array->type != CLV_DTYPE_U8 && !own)
        return cli_fail(EXIT_FAILED,
                        "'%s': input '%s' holds %s, and the model takes numbers; numpy mends it with "
                        "%s.astype('float32')%s",
                        path, name, clv_dtype_name(array->type), name,
                        args->inputs ? "" : ", or name the inputs with --inputs");
    if (!target && of_file && !model->build_all) port->dtype = model->dtype;
    if (!target || !whole || (port->classes && !(own && model->any_shape))) return EXIT_DONE;
    const int64_t most = largest(args, array);
    if (most < 0)
        return cli_fail(EXIT_FAILED,
                        "'%s': target '%s' has classes below 0; --ignore-index=N ignores one label", path,
                        name);
    if (most >= MOST_CLASSES)
        return cli_fail(EXIT_FAILED, "'%s': target '%s' has class %lld; there can be %d", path, name,
                        (long long)most, MOST_CLASSES);
    int64_t theirs = of_file && model->classes > most ? model->classes : most + 1;
    if (port->classes > theirs) theirs = port->classes;
    port->classes = args->classes && fields->n_targets == 1 ? args->classes : theirs;
    return EXIT_DONE;
}

/** Rows first to first + n of an array, borrowed. */
static clv_array rows_of(const clv_array *array, int64_t first, int64_t n) {
    clv_array part = *array;
    const size_t row = clv_array_bytes(array) / (size_t)array->shape.dims[0];
    part.shape.dims[0] = n;
    part.data = (char *)array->data + (size_t)first * row;
    part.borrowed = true;
    part.name = NULL;
    return part;
}

static clv_status make_part(cli_source *source, int64_t first, int64_t n, clv_dataset **out) {
    const cli_fields *fields = &source->fields;
    clv_array part[2 * CLV_MAX_PORTS];
    clv_field field[2 * CLV_MAX_PORTS];
    const int count = fields->n_inputs + fields->n_targets;
    for (int i = 0; i < count; i++) {
        const bool target = i >= fields->n_inputs;
        part[i] = rows_of(clv_archive_find(source->archive, fields->name[i]), first, n);
        field[i] = (clv_field){.name = fields->name[i],
                               .role = target ? CLV_PORT_TARGET : CLV_PORT_INPUT,
                               .array = &part[i],
                               .classes = target ? (int)fields->port[i].classes : 0};
        const clv_weights_info *told = cli_told_scale(source->args);
        if (!i && told && part[i].type == CLV_DTYPE_U8) { // where not, bytes become 0 to 1
            field[i].channels = told->channels;
            field[i].means = told->mean;
            field[i].stds = told->std;
        }
    }
    int32_t ignored;
    clv_dataset_config config = {.limit = source->args->limit};
    if (cli_ignored_label(source->args, &ignored)) config.ignore_index = &ignored;
    return clv_dataset_from_fields(source->runtime, NULL, field, count, &config, out);
}

/** The file's arrays as a data set, which tells what is wrong with them by their places in the file. */
static clv_status look_through(const cli_source *source) {
    const cli_fields *fields = &source->fields;
    clv_field field[2 * CLV_MAX_PORTS];
    const int count = fields->n_inputs + fields->n_targets;
    clv_dataset *whole;
    for (int i = 0; i < count; i++) {
        const bool target = i >= fields->n_inputs;
        field[i] = (clv_field){.name = fields->name[i],
                               .role = target ? CLV_PORT_TARGET : CLV_PORT_INPUT,
                               .classes = target ? (int)fields->port[i].classes : 0};
    }
    int32_t ignored;
    clv_dataset_config config = {.ignore_index = cli_ignored_label(source->args, &ignored) ? &ignored : NULL};
    const clv_status status =
        clv_dataset_from_fields(source->runtime, source->archive, field, count, &config, &whole);
    if (status == CLV_OK) clv_dataset_destroy(whole);
    return status;
}

/** An archive of a folder's files has no name of its own in the library's sentences: it is the folder's. */
static int fail_named(const cli_source *source, clv_status status) {
    static const char unnamed[] = "'the archive'";
    const char *sentence = cli_sentence(source->runtime), *at = strstr(sentence, unnamed);
    if (!at) return cli_fail_status(source->runtime, status);
    return cli_fail(EXIT_FAILED, "%.*s'%s'%s", (int)(at - sentence), sentence, source->args->words[1],
                    at + sizeof unnamed - 1);
}

/** Samples to train on, and the last part to test on, of `eval` as of `train`. */
static int make_parts(cli_source *source) {
    const cli_args *args = source->args;
    const clv_array *first = clv_archive_find(source->archive, source->fields.name[0]);
    const int64_t n = first->shape.dims[0];
    const double part = args->given.validation ? args->validation : 0.1;
    const int64_t kept = n - (int64_t)ceil((double)n * part - 1e-9 * (double)n); // 0.8 of 100 leaves 20
    for (int i = 1; i < source->fields.n_inputs + source->fields.n_targets; i++) {
        const clv_array *array = clv_archive_find(source->archive, source->fields.name[i]);
        if (array->shape.dims[0] != n)
            return cli_fail(EXIT_FAILED, "'%s': array '%s' has %lld samples, and '%s' has %lld",
                            args->words[1], source->fields.name[i], (long long)array->shape.dims[0],
                            source->fields.name[0], (long long)n);
    }
    if (source->with_train && kept < 1)
        return cli_fail(EXIT_FAILED, "'%s': of %lld samples none is left to train on", args->words[1],
                        (long long)n);
    clv_status status = look_through(source);
    cli_tell_scale(args, args->words[1], first);
    if (status == CLV_OK) cli_scale_targets(source, kept);
    if (status == CLV_OK && source->with_train) status = make_part(source, 0, kept, &source->train);
    if (status == CLV_OK && kept < n) status = make_part(source, kept, n - kept, &source->test);
    return status == CLV_OK ? EXIT_DONE : fail_named(source, status);
}

// ---- the model --------------------------------------------------------------------------------------------

static int64_t numbers_of(const clv_port *port) {
    const clv_shape one = clv_port_shape(port, 1);
    return clv_shape_numel(&one) * (port->classes ? port->classes : 1);
}

/** A model of one input and one output, given several: inputs side by side in a row, outputs cut from one. */
static void build_named(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model) {
    const cli_fields *fields = model->user;
    clv_tensor *rows[CLV_MAX_PORTS], *x = inputs[0];
    const int64_t n = clv_tensor_shape(x).dims[0];
    for (int i = 0; fields->n_inputs > 1 && i < fields->n_inputs; i++) {
        const int64_t each = numbers_of(&fields->port[i]);
        rows[i] = clv_reshape(inputs[i], CLV_SHAPE(n, each));
    }
    if (fields->n_inputs > 1) x = clv_concat(rows, fields->n_inputs, 1);
    const clv_shape row = CLV_SHAPE(n, fields->inner.input[0]);
    if (fields->n_inputs == 1 && fields->inner.input[0] && !fields->inner.input[1] &&
        clv_tensor_shape(x).rank != 2)
        x = clv_reshape(x, row);
    clv_tensor *y = fields->inner.build(x, &fields->inner);
    const int rank = clv_tensor_shape(y).rank;
    if (fields->places && rank > 2) { // classes last
        int order[CLV_MAX_RANK] = {0};
        for (int d = 1; d < rank; d++) order[d] = d + 1 < rank ? d + 1 : 1;
        y = clv_permute(y, order, rank);
    }
    int64_t at = 0;
    for (int i = 0; i < fields->n_targets; i++) {
        const clv_port *port = &fields->port[fields->n_inputs + i];
        const int64_t each = numbers_of(port);
        clv_shape shape = clv_port_shape(port, n);
        if (port->classes) shape.dims[shape.rank++] = port->classes;
        outputs[i] = fields->n_targets > 1 ? clv_slice(y, 1, at, each) : y;
        if (!of_steps(fields, i)) outputs[i] = clv_reshape(outputs[i], shape);
        if (fields->scale[i] > 0) // in f32, which holds prices
            outputs[i] =
                clv_add_scalar(clv_mul_scalar(clv_cast(outputs[i], CLV_DTYPE_F32), (float)fields->scale[i]),
                               (float)fields->mean[i]);
        at += each;
    }
}

/** A file's result [N,C,...] is numbers, or logits of C classes for each place, as PyTorch's losses have
 *  them. */
static int take_places(const clv_model *model, cli_fields *fields) {
    clv_port *only = &fields->port[fields->n_inputs];
    const int64_t *result = model->target;
    if (fields->n_targets != 1 || !only->classes || memcmp(only->dims, result + 1, 3 * sizeof *result) != 0)
        return EXIT_DONE;
    if (only->classes > result[0])
        return cli_fail(EXIT_USAGE, "'%s' has %lld classes, and the array '%s' has labels up to %lld",
                        model->name, (long long)result[0], only->name, (long long)only->classes - 1);
    only->classes = result[0];
    fields->places = true;
    return EXIT_DONE;
}

/** A model that tells the class of each pixel has one target, of classes, as large as its input. */
static int take_pixels(const clv_model *model, cli_fields *fields) {
    const clv_port *only = &fields->port[fields->n_inputs];
    const int64_t *input = fields->inner.input;
    if (cli_is_onnx(model->name)) return take_places(model, fields);
    if (fields->n_targets != 1 || !only->classes || only->dims[0] != input[1] || only->dims[1] != input[2] ||
        only->dims[2])
        return cli_fail(
            EXIT_USAGE,
            "%s gives a class for each pixel: one target of whole numbers is wanted, [N,%lld,%lld]",
            model->name, (long long)input[1], (long long)input[2]);
    memcpy(fields->inner.target, only->dims, sizeof only->dims);
    fields->inner.classes = only->classes;
    return EXIT_DONE;
}

/** Ports as the arrays are where a model takes any shape. Labels of sequences always: fewer than results. */
static void size_ports(cli_fields *fields, clv_model *model) {
    for (int i = 0; i < model->n_inputs; i++) fields->sized[i] = model->inputs[i];
    for (int i = 0; i < model->n_targets; i++) fields->sized[model->n_inputs + i] = model->targets[i];
    model->inputs = fields->sized, model->targets = fields->sized + model->n_inputs;
    for (int i = 0; i < model->n_inputs + model->n_targets; i++)
        for (int k = 0; k < fields->n_inputs + fields->n_targets; k++) {
            clv_port *port = &fields->sized[i];
            const bool labels = k >= fields->n_inputs && of_steps(fields, k - fields->n_inputs);
            if (!(model->any_shape || labels) || strcmp(fields->name[k], port->name) != 0) continue;
            port->dims[0] = fields->port[k].dims[0];
            if (model->any_shape && i >= model->n_inputs) port->classes = fields->port[k].classes;
        }
}

/** A model of the sizes that its weights tell. */
static int size_by_weights(clv_runtime *runtime, const cli_args *args, cli_fields *fields, clv_model *model) {
    fields->gpt = (clv_gpt_config){.dropout = 0.1f};
    model->user = &fields->gpt;
    if (!args->weights) return EXIT_DONE;
    const clv_status status = clv_gpt_weights_read(runtime, args->weights, &fields->gpt, NULL);
    if (status == CLV_E_NOT_FOUND) return EXIT_DONE; // which tell none
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    if (!fields->gpt.model || strcmp(fields->gpt.model, model->name) != 0)
        return cli_fail(EXIT_FAILED, "'%s' holds weights of '%s', not of %s", args->weights,
                        fields->gpt.model ? fields->gpt.model : "gpt", model->name);
    clv_port *target = &fields->sized[model->n_inputs];
    if (!args->except && fields->gpt.classes > target->classes) target->classes = fields->gpt.classes;
    return EXIT_DONE;
}

clv_status cli_save_fields(clv_session *session, const cli_fields *fields, const char *path) {
    const clv_gpt_config *c = &fields->gpt;
    const struct {
        const char *key;
        int64_t size;
    } sizes[] = {{"cleave.context", c->context}, {"cleave.width", c->width},
                 {"cleave.heads", c->heads},     {"cleave.layers", c->layers},
                 {"cleave.hidden", c->hidden},   {"cleave.vocabulary", c->vocabulary}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    char *record = cli_fields_record(fields), numbers[SIZES][24];
    clv_weights_text texts[1 + SIZES] = {{"cleave.fields", record}};
    const bool told = c->model != NULL;
    for (int i = 0; i < SIZES; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)sizes[i].size);
        texts[1 + i] = (clv_weights_text){sizes[i].key, numbers[i]};
    }
    const clv_status status = clv_weights_save_texts(session, record ? texts : texts + 1,
                                                     (record ? 1 : 0) + (told ? SIZES : 0), path);
    free(record);
    return status;
}

int cli_model_of_fields(clv_runtime *runtime, const cli_args *args, const clv_model *model,
                        cli_fields *fields, clv_model *out) {
    if (model->build_all) {
        *out = *model;
        size_ports(fields, out);
        return model->takes_sizes ? size_by_weights(runtime, args, fields, out) : EXIT_DONE;
    }
    const bool rows = cli_takes_rows(model);
    if (!rows && fields->n_inputs > 1)
        return cli_fail(EXIT_USAGE, "%s takes one input, and there are %d; mlp and linear take several",
                        model->name, fields->n_inputs);
    fields->inner = *model;
    memset(fields->inner.target, 0, sizeof fields->inner.target);
    clv_port *first = &fields->port[0];
    if (fields->n_inputs == 1 && !model->input[0]) { // as the samples are
        memcpy(fields->inner.input, first->dims, sizeof first->dims);
    } else if (rows) {
        int64_t columns = 0;
        for (int i = 0; i < fields->n_inputs; i++) columns += numbers_of(&fields->port[i]);
        const int code = cli_size_rows(args, model, columns, &fields->inner);
        if (code != EXIT_DONE) return code;
        memset(fields->inner.target, 0, sizeof fields->inner.target);
    } else {
        clv_model sized;
        const clv_shape batch = clv_port_shape(first, 1),
                        sample = clv_shape_make(batch.rank - 1, batch.dims + 1);
        const int code = cli_size_model(runtime, args, model, &sample, &sized);
        if (code != EXIT_DONE) return code;
        memcpy(fields->inner.input, sized.input, sizeof sized.input);
        memcpy(first->dims, sized.input, sizeof sized.input);
    }
    for (int i = 0; i < fields->n_targets; i++)
        fields->inner.target[0] += numbers_of(&fields->port[fields->n_inputs + i]);
    const clv_port *only = fields->n_targets == 1 ? &fields->port[fields->n_inputs] : NULL;
    fields->inner.classes = only && !only->dims[0] ? only->classes : 0;
    if (fields->inner.classes) fields->inner.target[0] = 0; // one class: as the model has it
    const int code = model->target[1] ? take_pixels(model, fields) : EXIT_DONE;
    if (code != EXIT_DONE) return code;
    *out = (clv_model){.name = model->name,
                       .text = model->text,
                       .build_all = build_named,
                       .inputs = fields->port,
                       .n_inputs = fields->n_inputs,
                       .targets = fields->port + fields->n_inputs,
                       .n_targets = fields->n_targets,
                       .user = fields};
    return EXIT_DONE;
}

static int keep_ports(const clv_port *inputs, int n_inputs, const clv_port *targets, int n_targets,
                      cli_fields *fields) {
    *fields = (cli_fields){.n_inputs = 0};
    for (int i = 0; i < n_inputs + n_targets; i++) {
        const bool input = i < n_inputs;
        const clv_port *port = input ? &inputs[i] : &targets[i - n_inputs];
        const int code = keep_name(input ? "inputs" : "target", port->name, strlen(port->name), fields);
        if (code != EXIT_DONE) return code;
        fields->port[i] = *port;
        fields->port[i].name = fields->name[i];
        if (!input) fields->loss[fields->n_targets] = (clv_train_loss){.target = fields->name[i]};
        *(input ? &fields->n_inputs : &fields->n_targets) += 1;
    }
    return EXIT_DONE;
}

/** The ports of a model that names them. Prints what is wrong with their names. */
static int ports_of_model(const clv_model *model, cli_fields *fields) {
    return keep_ports(model->inputs, model->n_inputs, model->targets, model->n_targets, fields);
}

/** An ONNX file names its input and its result, where it has one of each, too. */
static int ports_of_onnx(const clv_onnx *onnx, cli_fields *fields) {
    const clv_onnx_info info = clv_onnx_info_get(onnx);
    return keep_ports(info.ports, info.n_inputs, info.ports + info.n_inputs, info.n_targets, fields);
}

static int read_told(clv_runtime *runtime, const char *path, cli_fields *out, const clv_model **model,
                     bool *there);

/** Are those that options name, from one on, the weights' own, in their order? None: they are. */
static bool are_theirs(const cli_fields *given, int first, int n, const cli_fields *theirs, int from,
                       int most) {
    if (n && n != most) return false;
    for (int i = 0; i < n; i++)
        if (strcmp(given->name[first + i], theirs->name[from + i]) != 0) return false;
    return true;
}

/** Weights know inputs and targets in the order in which the model has them; options may say the same, and
 *  other losses. */
static int keep_to_weights(const cli_source *source, cli_fields *fields, const clv_model **model) {
    const cli_args *args = source->args;
    cli_fields *theirs = calloc(1, sizeof *theirs);
    bool there = false;
    if (!theirs) return cli_fail(EXIT_FAILED, "no memory for the names of '%s'", args->weights);
    int code = read_told(source->runtime, cli_telling(args), theirs, model, &there);
    const bool inputs = are_theirs(fields, 0, fields->n_inputs, theirs, 0, theirs->n_inputs),
               targets = are_theirs(fields, fields->n_inputs, fields->n_targets, theirs, theirs->n_inputs,
                                    theirs->n_targets);
    if (code == EXIT_DONE && there && !(inputs && targets))
        code =
            cli_fail(EXIT_USAGE,
                     "--%s names other arrays than '%s' was trained with, or these in another order: leave "
                     "it out%s",
                     inputs ? "target" : "inputs", args->weights,
                     source->with_train ? ", or begin a new last layer (--except LAYER.*)" : "");
    for (int i = 0; code == EXIT_DONE && there && i < fields->n_targets; i++) {
        if (fields->loss[i].loss) theirs->loss[i].loss = fields->loss[i].loss;
        if (fields->loss[i].weight > 0) theirs->loss[i].weight = fields->loss[i].weight;
    }
    if (code == EXIT_DONE && there) copy_fields(theirs, fields);
    free(theirs);
    return code;
}

/** What is not named is what an ONNX file of one input and one result calls it, if there is such an array. */
static const char *name_in_file(const cli_source *source, clv_port_role role) {
    const clv_onnx_info info = clv_onnx_info_get(source->args->onnx);
    if (!source->args->onnx || source->model->build_all) return NULL;
    const char *name = info.ports[role == CLV_PORT_INPUT ? 0 : info.n_inputs].name;
    return !strpbrk(name, ",=") && clv_archive_find(source->archive, name) ? name : NULL;
}

int cli_make_arrays(cli_source *source) {
    cli_fields *fields = &source->fields;
    const cli_args *args = source->args;
    const clv_model *told = args->model ? source->model : NULL;
    int code = read_fields(args->inputs ? args->inputs : name_in_file(source, CLV_PORT_INPUT),
                           args->target ? args->target : name_in_file(source, CLV_PORT_TARGET), fields);
    if (code == EXIT_DONE && source->model->build_all && !fields->n_inputs && !fields->n_targets)
        code = ports_of_model(source->model, fields);
    if (code == EXIT_DONE && args->weights && !args->except) code = keep_to_weights(source, fields, &told);
    if (told) source->model = told;
    if (code == EXIT_DONE && !fields->n_targets)
        code = cli_fail(EXIT_USAGE, "which arrays are to be learnt? --target wants their names");
    for (int i = 0; code == EXIT_DONE && i < fields->n_targets; i++) {
        const char *name = fields->name[fields->n_inputs + i];
        if (!clv_archive_find(source->archive, name))
            code = cli_no_array(source->archive, args->words[1], name);
    }
    if (code == EXIT_DONE && !fields->n_inputs) {
        code = take_others(source->archive, args->words[1], fields);
        if (code == EXIT_DONE) tell_unread(args, source->archive);
    }
    for (int i = 0; code == EXIT_DONE && i < fields->n_inputs + fields->n_targets; i++)
        code = describe(source->archive, args, source->model, i, fields);
    return code == EXIT_DONE ? make_parts(source) : code;
}

// ---- what weights tell ------------------------------------------------------------------------------------

/** there: they tell it. */
static int read_told(clv_runtime *runtime, const char *path, cli_fields *out, const clv_model **model,
                     bool *there) {
    clv_archive *archive = NULL;
    *out = (cli_fields){.n_inputs = 0};
    if (cli_is_onnx(path)) return EXIT_DONE; // which tells them itself
    clv_status status = clv_safetensors_read(runtime, path, &archive);
    if (status != CLV_OK) return cli_fail_status(runtime, status);
    const char *text = clv_archive_text(archive, "cleave.fields"),
               *name = clv_archive_text(archive, "cleave.model");
    const bool good = cli_parse_fields(text, out);
    int code = EXIT_DONE;
    *there = text != NULL;
    if (text && !good)
        code = cli_fail(EXIT_FAILED,
                        "'%s' is damaged: what it tells of inputs and targets is no list of them", path);
    else if (text && model && !*model && !(*model = cli_model(name)))
        code = EXIT_USAGE;
    clv_archive_destroy(archive);
    return code;
}

int cli_fields_of_weights(clv_runtime *runtime, const cli_args *args, cli_fields *out,
                          const clv_model **model) {
    bool there = false;
    const bool named = *model && (*model)->build_all;
    const int code = named ? EXIT_DONE : read_told(runtime, cli_telling(args), out, model, &there);
    if (args->onnx && there && *model && !(*model)->build_all) out->port[0].dtype = (*model)->dtype;
    if (code != EXIT_DONE || there) return code;
    if (named) return ports_of_model(*model, out);
    if (args->onnx && *model) return ports_of_onnx(args->onnx, out);
    return cli_fail(EXIT_FAILED,
                    "'%s' does not tell its inputs and targets; `cleave train arrays FILE --save` writes "
                    "weights that do",
                    args->weights);
}
