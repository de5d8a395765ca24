// SPDX-License-Identifier: Apache-2.0
// Does a model take a dataset's samples, and do the targets fit its results? Which of the dataset's arrays is
// which of the model's.
#include <inttypes.h>
#include <string.h>

#include "data/dataset.h"
#include "device/device.h"
#include "nn/ports.h"
#include "infer/names.h"
#include "infer/step.h"

static clv_shape sample_shape(const clv_port *port) {
    const clv_shape batch = clv_port_shape(port, 1);
    return clv_shape_make(batch.rank - 1, batch.dims + 1);
}

static clv_status check_input(clv__error *error, const clv_model *model, const clv_port *port,
                              const clv_port *given) {
    const clv_shape sample = sample_shape(given);
    if (given->dtype != port->dtype)
        CLV_FAIL(error, CLV_E_DTYPE, "samples of %s do not fit model '%s', which wants %s",
                 clv_dtype_name(given->dtype), model->name, clv_dtype_name(port->dtype));
    return clv__port_check_samples(error, model, port, NULL, &sample);
}

/** Indices of a named field were all looked at. */
static clv_status check_indices(clv__error *error, const clv_model *model, const clv_port *port,
                                const clv_port *given) {
    if (port->dtype != CLV_DTYPE_I32 || !port->classes) return CLV_OK;
    if (!given->classes)
        CLV_FAIL(error, CLV_E_VALUE, "some indices are below 0, model '%s' takes 0 to %" PRId64, model->name,
                 port->classes - 1);
    if (given->classes > port->classes)
        CLV_FAIL(error, CLV_E_VALUE,
                 "indices up to %" PRId64 " do not fit model '%s', which takes 0 to %" PRId64,
                 given->classes - 1, model->name, port->classes - 1);
    return CLV_OK;
}

/** Numbers where classes are wanted: rows of as many as there are classes are one-hot, most likely. */
static clv_status refuse_numbers(clv__error *error, const clv_model *model, const clv_port *port,
                                 const clv_port *given) {
    const clv_shape target = sample_shape(given);
    char text[128];
    if (!target.rank || port->dims[0])
        CLV_FAIL(error, CLV_E_VALUE,
                 "targets that are numbers do not fit model '%s', which is a classifier: labels are whole "
                 "numbers; numpy mends it with y.astype('int64')",
                 model->name);
    clv_shape_text(&target, text, sizeof text);
    if (target.rank == 1 && target.dims[0] == 1)
        CLV_FAIL(error, CLV_E_VALUE,
                 "targets of shape %s do not fit model '%s', which is a classifier: a label is one whole "
                 "number; "
                 "numpy mends it with y[:,0].astype('int64')",
                 text, model->name);
    CLV_FAIL(
        error, CLV_E_VALUE,
        "targets of shape %s do not fit model '%s', which is a classifier: a label is one whole number%s",
        text, model->name,
        target.rank == 1 && target.dims[0] == port->classes
            ? "; of one-hot rows numpy makes labels with y.argmax(1)"
            : ", and numbers want a model that gives numbers");
}

/** Targets are what the model's results are compared with. */
static clv_status check_target(clv__error *error, const clv_model *model, const clv_port *port,
                               const clv_port *given) {
    const int64_t classes = given->classes;
    char a[128], b[128];
    if (!classes && port->classes) CLV_TRY(refuse_numbers(error, model, port, given));
    if (classes && !port->classes)
        CLV_FAIL(error, CLV_E_VALUE,
                 "labels of %" PRId64
                 " classes do not fit model '%s', which gives numbers: numpy mends it with "
                 "y.astype('float32')",
                 classes, model->name);
    if (classes > port->classes)
        CLV_FAIL(error, CLV_E_VALUE,
                 "labels of %" PRId64 " classes do not fit model '%s', which has %" PRId64, classes,
                 model->name, port->classes);
    const clv_shape target = sample_shape(given), want = sample_shape(port);
    const bool one = !want.rank && target.rank == 1 && target.dims[0] == 1; // [N,1] of a result that is [N,1]
    if (!one && !clv_shape_equal(&target, &want))
        CLV_FAIL(error, CLV_E_SHAPE, "targets of shape %s do not fit model '%s', which wants %s",
                 clv_shape_text(&target, a, sizeof a), model->name, clv_shape_text(&want, b, sizeof b));
    return CLV_OK;
}

// ---- by name ----------------------------------------------------------------------------------------------

/** Inputs, or targets, of a model and of a dataset. */
typedef struct side {
    const char *what, *other;
    clv_port_role role, others;
    int n_model, n_data;
} side;

static side side_of(const clv_model *model, const clv_dataset *dataset, clv_port_role role) {
    const clv_dataset_info info = clv_dataset_info_get(dataset);
    const bool input = role == CLV_PORT_INPUT;
    return (side){.what = input ? "input" : "target",
                  .other = input ? "a target" : "an input",
                  .role = role,
                  .others = input ? CLV_PORT_TARGET : CLV_PORT_INPUT,
                  .n_model = clv_model_port_count(model, role),
                  .n_data = input ? info.n_inputs : info.n_targets};
}

/** Which of the dataset's has that name; -1: none. */
static int find(const clv_dataset *dataset, clv_port_role role, const char *name) {
    const char *there;
    for (int i = 0; (there = clv_dataset_port_get(dataset, role, i).name); i++)
        if (!strcmp(there, name)) return i;
    return -1;
}

/** Each of the model's in the dataset, and none of the dataset's left. */
static clv_status match_side(clv__error *error, const clv_model *model, const clv_dataset *dataset,
                             const side *s, int *match) {
    clv__told_names names = {0};
    bool used[CLV_MAX_PORTS] = {false};
    for (int i = 0; i < s->n_data; i++) clv__told_add(&names, clv_dataset_port_get(dataset, s->role, i).name);
    for (int i = 0; i < s->n_model; i++) {
        const clv_port port = clv_model_port_get(model, s->role, i);
        match[i] = find(dataset, s->role, port.name);
        if (match[i] < 0 && find(dataset, s->others, port.name) >= 0)
            CLV_FAIL(error, CLV_E_VALUE, "model '%s' wants %s '%s', and the dataset has it as %s",
                     model->name, s->what, port.name, s->other);
        if (match[i] < 0)
            CLV_FAIL(error, CLV_E_NOT_FOUND, "model '%s' wants %s '%s', and the dataset has %s", model->name,
                     s->what, port.name, names.text);
        used[match[i]] = true;
    }
    names = (clv__told_names){0};
    for (int i = 0; i < s->n_model; i++) clv__told_add(&names, clv_model_port_get(model, s->role, i).name);
    for (int i = 0; i < s->n_data; i++)
        if (!used[i])
            CLV_FAIL(error, CLV_E_VALUE, "the dataset has %s '%s', and model '%s' takes %s", s->what,
                     clv_dataset_port_get(dataset, s->role, i).name, model->name, names.text);
    return CLV_OK;
}

/** The sentence says of which port it is, where there are several. */
static clv_status told(clv__error *error, clv_status status, const clv_model *model, const char *what,
                       const clv_port *port) {
    if (status == CLV_OK || !model->build_all) return status;
    return clv__error_prefix(error, "%s '%s': ", what, port->name);
}

clv_status clv__match_data(clv_runtime *runtime, const clv_model *model, const clv_dataset *dataset,
                           clv__match *match) {
    clv__error *error = clv__runtime_error_of(runtime);
    *match = (clv__match){.n_inputs = clv_dataset_info_get(dataset).n_inputs};
    CLV_TRY(clv__model_check(error, model));
    const side inputs = side_of(model, dataset, CLV_PORT_INPUT),
               targets = side_of(model, dataset, CLV_PORT_TARGET);
    const bool named = dataset->ports != NULL;
    if (!named && (inputs.n_model > 1 || targets.n_model > 1))
        CLV_FAIL(error, CLV_E_VALUE,
                 "model '%s' has %d inputs and %d targets, and the dataset one of each; "
                 "clv_dataset_from_fields makes "
                 "one of several",
                 model->name, inputs.n_model, targets.n_model);
    if (named) CLV_TRY(match_side(error, model, dataset, &inputs, match->input));
    if (named) CLV_TRY(match_side(error, model, dataset, &targets, match->target));
    for (int i = 0; i < inputs.n_model; i++) {
        const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, i),
                       given = clv_dataset_port_get(dataset, CLV_PORT_INPUT, match->input[i]);
        clv_status status = check_input(error, model, &port, &given);
        if (status == CLV_OK && named) status = check_indices(error, model, &port, &given);
        CLV_TRY(told(error, status, model, inputs.what, &port));
    }
    for (int i = 0; i < targets.n_model; i++) {
        const clv_port port = clv_model_port_get(model, CLV_PORT_TARGET, i),
                       given = clv_dataset_port_get(dataset, CLV_PORT_TARGET, match->target[i]);
        CLV_TRY(told(error, check_target(error, model, &port, &given), model, targets.what, &port));
    }
    return CLV_OK;
}
