// SPDX-License-Identifier: Apache-2.0
// A dataset of named fields, for models of several inputs and several targets. As in dataset.c everything is checked here once, so that
// assembling a batch cannot fail.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "data/finite.h"
#include "io/array.h"

/** One field: what its elements are, and where they lie. */
typedef struct column {
    clv_array
        data; // [N, ...] f32 or u8, the caller's until all is well, then its own unless it is borrowed; or i32, a copy
    clv_array *given;
    int64_t numel; // of a sample's
    clv__scale scale;
} column;

typedef struct named {
    clv_dataset common;
    clv_port
        ports[CLV__MOST_FIELDS]; // inputs, then targets, each in the order they were given; names are owned
    column columns[CLV__MOST_FIELDS];
    int n;
} named;

static const clv_dataset_config none;

// ---- what is given ----------------------------------------------------------------------------------------------------

static clv_status check_one(clv__error *error, const clv_field *field, const clv_field *first) {
    const clv_array *array = field->array;
    char text[128];
    if (!array) CLV_FAIL(error, CLV_E_VALUE, "field '%s' has no array", field->name);
    clv_shape_text(&array->shape, text, sizeof text);
    if (array->type == CLV_DTYPE_NONE)
        CLV_FAIL(error, CLV_E_DTYPE, "field '%s': the type is none", field->name);
    if (array->shape.rank < 1)
        CLV_FAIL(error, CLV_E_SHAPE, "field '%s': one number; [N,...] is wanted", field->name);
    if (clv_array_bytes(array) == 0)
        CLV_FAIL(error, CLV_E_SHAPE, "field '%s': %s holds no samples", field->name, text);
    if (array->shape.dims[0] != first->array->shape.dims[0])
        CLV_FAIL(error, CLV_E_SHAPE, "field '%s' has %" PRId64 " samples, field '%s' has %" PRId64,
                 field->name, array->shape.dims[0], first->name, first->array->shape.dims[0]);
    const bool numbers = array->type == CLV_DTYPE_F32,
               bytes = array->type == CLV_DTYPE_U8 && field->role == CLV_PORT_INPUT;
    if (field->classes < 0)
        CLV_FAIL(error, CLV_E_VALUE, "field '%s': %d classes", field->name, field->classes);
    if (field->classes && (numbers || bytes))
        CLV_FAIL(error, CLV_E_VALUE, "field '%s' has classes, and %s of %s: classes are whole numbers",
                 field->name, field->role == CLV_PORT_INPUT ? "is an input" : "is a target",
                 clv_dtype_name(array->type));
    const bool scaled = field->mean != 0 || field->std != 0 || field->channels;
    if (scaled && (field->role == CLV_PORT_TARGET || !(numbers || bytes)))
        CLV_FAIL(error, CLV_E_VALUE, "field '%s': mean and std are for inputs of f32 or u8", field->name);
    clv__norm norm;
    if (clv__norm_init(error, field->mean, field->std, field->channels, field->means, field->stds, &norm) !=
        CLV_OK)
        return clv__error_prefix(error, "field '%s': ", field->name);
    snprintf(text, sizeof text, "field '%.100s'", field->name);
    return clv__norm_fits(error, &norm, text, &array->shape);
}

static clv_status check_names(clv__error *error, const clv_field *fields, int n) {
    int inputs = 0, targets = 0;
    for (int i = 0; i < n; i++) {
        const char *name = fields[i].name;
        if (!name || !*name) CLV_FAIL(error, CLV_E_VALUE, "field %d has no name", i);
        for (int j = 0; j < i; j++)
            if (!strcmp(name, fields[j].name))
                CLV_FAIL(error, CLV_E_VALUE, "two fields are called '%s'", name);
        if (fields[i].role != CLV_PORT_INPUT && fields[i].role != CLV_PORT_TARGET)
            CLV_FAIL(error, CLV_E_VALUE, "field '%s' is neither an input nor a target (role %d)", name,
                     (int)fields[i].role);
        inputs += fields[i].role == CLV_PORT_INPUT;
        targets += fields[i].role == CLV_PORT_TARGET;
    }
    if (!inputs) CLV_FAIL(error, CLV_E_VALUE, "none of %d fields is an input", n);
    if (!targets) CLV_FAIL(error, CLV_E_VALUE, "none of %d fields is a target", n);
    if (inputs > CLV_MAX_PORTS || targets > CLV_MAX_PORTS)
        CLV_FAIL(error, CLV_E_VALUE, "%d inputs and %d targets; %d of each are possible", inputs, targets,
                 CLV_MAX_PORTS);
    return CLV_OK;
}

static clv_status check(clv__error *error, const clv_field *fields, int n, const clv_dataset_config *config) {
    if (config->limit < 0)
        CLV_FAIL(error, CLV_E_VALUE, "a limit of %" PRId64 " samples: it must be >= 0", config->limit);
    if (config->mean != 0 || config->std != 0 || config->channels || config->classes)
        CLV_FAIL(error, CLV_E_VALUE, "mean, std and classes belong to each field, not to the dataset");
    CLV_TRY(check_names(error, fields, n));
    for (int i = 0; i < n; i++) CLV_TRY(check_one(error, &fields[i], &fields[0]));
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (fields[i].array == fields[j].array && !fields[i].array->borrowed)
                CLV_FAIL(error, CLV_E_VALUE,
                         "fields '%s' and '%s' have the same array, and only one of them can own it; make it "
                         "borrowed",
                         fields[j].name, fields[i].name);
    return CLV_OK;
}

// ---- what becomes of it -----------------------------------------------------------------------------------------------

/** Whole numbers as i32, each looked at: classes of a target, indices of an input, which may be below 0 where nobody says
 *  otherwise. */
static clv_status copy_whole(clv__error *error, const clv_field *field, const clv_dataset_config *config,
                             clv_dataset *common, clv_port *port, column *to) {
    const bool any = field->role == CLV_PORT_INPUT && !field->classes;
    const int64_t count = common->count, n = count * to->numel, least = any ? INT32_MIN : 0,
                  most = field->classes ? field->classes - 1
                         : any          ? INT32_MAX
                                        : (1 << 24) - 1;
    int64_t smallest = 0, largest = 0;
    clv_shape shape = field->array->shape;
    shape.dims[0] = count;
    if (clv__array_init(error, CLV_DTYPE_I32, &shape, &to->data) != CLV_OK)
        return clv__error_prefix(error, "field '%s': ", field->name);
    for (int64_t i = 0; i < n; i++) {
        const int64_t value = clv__whole_at(field->array, i);
        if (field->role == CLV_PORT_TARGET && clv__label_ignored(config, value)) {
            ((int32_t *)to->data.data)[i] = CLV_LABEL_IGNORED;
            common->ignores = true;
            continue;
        }
        if (value < least || value > most)
            CLV_FAIL(error, CLV_E_VALUE,
                     "field '%s': row %" PRId64 " has %" PRId64 ", but values are %" PRId64 " to %" PRId64,
                     field->name, i / to->numel, value, least, most);
        ((int32_t *)to->data.data)[i] = (int32_t)value;
        if (value > largest) largest = value;
        if (value < smallest) smallest = value;
    }
    port->classes = field->classes ? field->classes : smallest < 0 ? 0 : largest + 1;
    return CLV_OK;
}

static clv_status add(clv__error *error, named *own, const clv_field *field,
                      const clv_dataset_config *config) {
    clv_port *port = &own->ports[own->n];
    column *to = &own->columns[own->n++];
    const clv_shape *shape = &field->array->shape;
    *port = (clv_port){.name = clv__strdup(field->name), .dtype = CLV_DTYPE_F32};
    if (!port->name) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a dataset");
    for (int d = 1; d < shape->rank; d++) port->dims[d - 1] = shape->dims[d];
    const clv_shape one = clv_port_shape(port, 1);
    to->numel = clv_shape_numel(&one);
    const bool bytes = field->array->type == CLV_DTYPE_U8 && field->role == CLV_PORT_INPUT;
    if (field->array->type == CLV_DTYPE_F32 || bytes) {
        clv__norm norm;
        CLV_TRY(clv__norm_init(error, field->mean, field->std, field->channels, field->means, field->stds,
                               &norm));
        to->given = field->array;
        clv__scale_init(&to->scale, field->array, &norm);
        if (field->role == CLV_PORT_INPUT && own->n == 1) own->common.norm = norm; // of the first, as all
        return CLV_OK;
    }
    port->dtype = CLV_DTYPE_I32;
    return copy_whole(error, field, config, &own->common, port, to);
}

static void read_fields(const named *own, int64_t i, bool bytes, void *const *to) {
    for (int k = 0; k < own->n; k++) {
        const column *c = &own->columns[k];
        if (!to[k]) continue;
        if (own->ports[k].dtype == CLV_DTYPE_I32)
            memcpy(to[k], (const int32_t *)c->data.data + i * c->numel, (size_t)c->numel * sizeof(int32_t));
        else if (bytes && c->data.type == CLV_DTYPE_U8)
            memcpy(to[k], (const uint8_t *)c->data.data + i * c->numel, (size_t)c->numel);
        else
            clv__scale_read(&c->scale, &c->data, i, to[k]);
    }
}

static void read_all(const clv_dataset *dataset, int64_t i, void *const *to) {
    read_fields((const named *)dataset, i, false, to);
}

static void read_bytes(const clv_dataset *dataset, int64_t i, void *const *to) {
    read_fields((const named *)dataset, i, true, to);
}

static clv__norm bytes_of(const clv_dataset *dataset, int k) {
    const column *c = &((const named *)dataset)->columns[k];
    if (c->data.type != CLV_DTYPE_U8) return (clv__norm){0};
    return c->scale.norm;
}

static void read_first(const clv_dataset *dataset, int64_t i, void *sample, void *target) {
    void *to[CLV__MOST_FIELDS] = {sample};
    to[dataset->n_inputs] = target;
    read_all(dataset, i, to);
}

static void destroy(clv_dataset *dataset) {
    named *own = (named *)dataset;
    for (int k = 0; k < own->n; k++) {
        clv_array_reset(&own->columns[k].data);
        free((char *)(uintptr_t)own->ports[k].name);
    }
    free(own);
}

static clv_shape shape_of(const clv_port *port) {
    const clv_shape batch = clv_port_shape(port, 1);
    return clv_shape_make(batch.rank - 1, batch.dims + 1);
}

/** What every dataset tells is told of the first input and the first target. */
static void tell_first(named *own) {
    clv_dataset *dataset = &own->common;
    const clv_port *input = &own->ports[0], *target = &own->ports[dataset->n_inputs];
    dataset->sample = shape_of(input);
    dataset->dtype = input->dtype;
    dataset->numel = own->columns[0].numel;
    dataset->target = shape_of(target);
    dataset->target_dtype = target->dtype;
    dataset->target_numel = own->columns[dataset->n_inputs].numel;
    dataset->classes = (int)target->classes;
}

/** All is well: arrays that are kept as they are change hands. */
static void take_over(named *own) {
    for (int k = 0; k < own->n; k++) {
        column *c = &own->columns[k];
        if (!c->given) continue;
        c->data = *c->given;
        if (c->given->borrowed)
            c->data.name = NULL; // the name stays the caller's
        else
            *c->given = (clv_array){0};
    }
}

static clv_status fill(clv__error *error, named *own, const clv_field *fields, int n,
                       const clv_dataset_config *config) {
    for (int role = CLV_PORT_INPUT; role <= CLV_PORT_TARGET; role++) {
        for (int i = 0; i < n; i++)
            if ((int)fields[i].role == role) CLV_TRY(add(error, own, &fields[i], config));
        if (role == CLV_PORT_INPUT) own->common.n_inputs = own->n;
    }
    own->common.n_targets = own->n - own->common.n_inputs;
    return CLV_OK;
}

static clv_status from_fields(clv_runtime *runtime, const clv_field *fields, int n,
                              const clv_dataset_config *config, clv_dataset **out) {
    clv__error *error = clv__io_error(runtime);
    if (!config) config = &none;
    CLV_TRY(check(error, fields, n, config));
    named *own = clv__alloc(1, sizeof *own);
    if (!own) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for a dataset");
    const int64_t count = fields[0].array->shape.dims[0];
    own->common = (clv_dataset){.read = read_first,
                                .read_all = read_all,
                                .bytes = bytes_of,
                                .read_bytes = read_bytes,
                                .destroy = destroy,
                                .ports = own->ports};
    own->common.count = config->limit && config->limit < count ? config->limit : count;
    clv_status status = fill(error, own, fields, n, config);
    if (status != CLV_OK) {
        destroy(&own->common);
        return status;
    }
    tell_first(own);
    take_over(own);
    for (int i = 0; i < n; i++) // of what was copied nothing is needed any more
        if (!fields[i].array->borrowed) clv_array_reset(fields[i].array);
    *out = &own->common;
    return CLV_OK;
}

static clv_status from_archive(clv_runtime *runtime, const clv_archive *archive, const clv_field *fields,
                               int n, const clv_dataset_config *config, clv_dataset **out) {
    clv__error *error = clv__io_error(runtime);
    if (n < 0 || n > CLV__MOST_FIELDS)
        CLV_FAIL(error, CLV_E_VALUE, "%d fields; %d are possible", n, CLV__MOST_FIELDS);
    clv_field found[CLV__MOST_FIELDS] = {0};
    clv_array arrays[CLV__MOST_FIELDS];
    for (int i = 0; i < n; i++) {
        const clv_array *array = fields[i].name ? clv_archive_find(archive, fields[i].name) : NULL;
        if (fields[i].array)
            CLV_FAIL(error, CLV_E_VALUE,
                     "field '%s' has an array of its own; this one reads it from the archive",
                     fields[i].name ? fields[i].name : "");
        const char *unread = fields[i].name && !array ? clv__archive_unread(archive, fields[i].name) : NULL;
        if (unread) CLV_FAIL(error, CLV_E_UNSUPPORTED, "%s", unread);
        if (fields[i].name && !array)
            CLV_FAIL(error, CLV_E_NOT_FOUND, "no array '%s' in '%s'", fields[i].name,
                     archive->path ? archive->path : "the archive");
        found[i] = fields[i];
        arrays[i] = array ? *array : (clv_array){0};
        arrays[i].borrowed = true;
        found[i].array = &arrays[i];
    }
    CLV_TRY(from_fields(runtime, found, n, config, out));
    for (int i = 0; i < n; i++) {
        char what[512];
        snprintf(what, sizeof what, "'%.300s', array '%.100s'", archive->path ? archive->path : "the archive",
                 found[i].name);
        const clv_status status = clv__array_finite(error, what, &arrays[i], (*out)->count);
        if (status == CLV_OK) continue;
        clv_dataset_destroy(*out);
        *out = NULL;
        return status;
    }
    return CLV_OK;
}

clv_status clv_dataset_from_fields(clv_runtime *runtime, const clv_archive *archive, const clv_field *fields,
                                   int n, const clv_dataset_config *config, clv_dataset **out) {
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), out));
    *out = NULL;
    CLV_TRY(CLV__GIVEN(clv__io_error(runtime), fields));
    return archive ? from_archive(runtime, archive, fields, n, config, out)
                   : from_fields(runtime, fields, n, config, out);
}
