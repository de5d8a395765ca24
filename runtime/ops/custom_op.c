// SPDX-License-Identifier: Apache-2.0
// Ops of a program's own (include/cleave/custom_op.h) as descriptors like all others: functions that translate what the graph, plan and
// check ask. What the program's functions say is held against what can be, before anything runs.
#include "cleave/custom_op.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/device.h"
#include "device/source.h"
#include "ops/lower.h"
#include "ops/custom_op.h"

enum { NAME_BYTES = 64, MAX_OPS = 1024 };

typedef struct custom_op {
    clv__op op;
    clv_custom_op given;
    int n_attributes;
    char name[NAME_BYTES], stem[NAME_BYTES + 8];
    clv_op_signature signature;
    clv_op_value inputs[CLV_CUSTOM_OP_INPUTS + 1];
    char input_names[CLV_CUSTOM_OP_INPUTS][8], defaults[CLV_CUSTOM_OP_ATTRIBUTES][32];
    clv_op_attribute attributes[CLV_CUSTOM_OP_ATTRIBUTES + 1];
    clv__variant variants[2];
    clv__sample_row *rows;
    double *sample_attributes; // of all rows
} custom_op;

// Entries stay until the process ends: graphs and plans of any runtime point to them.
static custom_op *registered[MAX_OPS];
static int n_registered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const custom_op *custom_of(const clv__op_io *io) {
    return io->op->data;
}

static clv_op_use use_of(const clv__op_io *io) {
    clv_op_use use = {.n_in = io->n_in, .n_out = io->n_out};
    for (int i = 0; i < io->n_in; i++) use.in[i] = (clv_op_tensor){io->in[i].dtype, io->in[i].shape};
    for (int i = 0; i < io->n_out; i++) use.out[i] = (clv_op_tensor){io->out[i].dtype, io->out[i].shape};
    if (io->attrs)
        memcpy(use.attributes, io->attrs, (size_t)custom_of(io)->n_attributes * sizeof *use.attributes);
    return use;
}

// ---- what the graph asks --------------------------------------------------------------------------------------------

static clv_status infer(clv__op_io *io, clv__error *error) {
    const custom_op *custom = custom_of(io);
    clv_op_use use = use_of(io);
    use.n_out = 1;
    use.out[0] = use.in[0];
    const char *why = custom->given.infer ? custom->given.infer(&use) : NULL;
    if (why) CLV_FAIL(error, CLV_E_SHAPE, "%s", why);
    if (use.n_out < 1 || use.n_out > CLV_CUSTOM_OP_OUTPUTS)
        CLV_FAIL(error, CLV_E_VALUE, "its infer says that it has %d outputs, and 1 to %d are possible",
                 use.n_out, CLV_CUSTOM_OP_OUTPUTS);
    for (int i = 0; i < use.n_out; i++) {
        if (use.out[i].dtype != CLV_DTYPE_F32 && use.out[i].dtype != CLV_DTYPE_I32)
            CLV_FAIL(error, CLV_E_DTYPE, "its infer says that output %d is neither f32 nor i32", i);
        if (clv_shape_numel(&use.out[i].shape) < 0)
            CLV_FAIL(error, CLV_E_SHAPE, "its infer gives output %d a shape that cannot be (rank %d)", i,
                     use.out[i].shape.rank);
        io->out[i] = (clv__desc){use.out[i].dtype, use.out[i].shape};
    }
    io->n_out = use.n_out;
    return CLV_OK;
}

static void gradient(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__op_io *io = clv__node_io(node);
    const clv_op_use use = use_of(io);
    clv_tensor *in[CLV_CUSTOM_OP_INPUTS], *out[CLV_CUSTOM_OP_OUTPUTS];
    for (int i = 0; i < use.n_in; i++) in[i] = clv__node_in(node, i);
    for (int i = 0; i < use.n_out; i++) out[i] = clv__node_out(node, i);
    custom_of(io)->given.gradient(&use, in, out, dy, dx);
    for (int i = 0; i < use.n_in; i++) {
        if (!clv__wants_grad(node, i)) dx[i] = NULL;
        if (!dx[i]) continue;
        const clv_shape got = clv_tensor_shape(dx[i]);
        char is[128], wanted[128];
        if (clv_shape_equal(&got, &use.in[i].shape) && clv_tensor_dtype(dx[i]) != CLV_DTYPE_I32 &&
            clv_tensor_graph(dx[i]) == clv_tensor_graph(out[0]))
            continue;
        clv__graph_fail(clv_tensor_graph(out[0]), CLV_E_SHAPE,
                        "the gradient of '%s' makes a tensor %s %s of this or another graph for input %d, "
                        "whose gradient is a float %s",
                        io->op->name, clv_dtype_name(clv_tensor_dtype(dx[i])),
                        clv_shape_text(&got, is, sizeof is), i,
                        clv_shape_text(&use.in[i].shape, wanted, sizeof wanted));
        dx[i] = NULL;
    }
}

// ---- what the plan asks ---------------------------------------------------------------------------------------------

static bool supports(const clv_device_info *device, const clv__op_io *io) {
    const int group = custom_of(io)->given.group;
    return group <= 0 || device->max_work_group == 0 || (size_t)group <= device->max_work_group;
}

static void lower(clv__launches *list, const clv__op_io *io) {
    const custom_op *custom = custom_of(io);
    const clv_op_use use = use_of(io);
    const int64_t items = custom->given.items ? custom->given.items(&use) : clv__numel(&io->out[0]);
    if (items <= 0) return;
    clv__launch *launch = clv__launch_kernel(list, custom->stem, custom->given.entry);
    for (int i = 0; i < io->n_out; i++) clv__arg_out(list, launch, i);
    for (int i = 0; i < io->n_in; i++) clv__arg_in(list, launch, i);
    clv__arg_i32(list, launch, items);
    for (int i = 0; i < custom->n_attributes; i++) clv__arg_f32(list, launch, (float)use.attributes[i]);
    if (custom->given.group > 0)
        clv__launch_grid(launch, (size_t)items, (size_t)custom->given.group);
    else
        clv__launch_over(list, launch, CLV__ELEMENTS, items);
}

static void cost(const clv__op_io *io, clv__cost *out) {
    const clv_op_use use = use_of(io);
    custom_of(io)->given.cost(&use, &out->flops, &out->bytes);
}

static int64_t reduction(const clv__op_io *io) {
    const clv_op_use use = use_of(io);
    const int64_t length = custom_of(io)->given.sum_length(&use);
    return length < 1 ? 1 : length;
}

// ---- the reference --------------------------------------------------------------------------------------------------

enum { GUARD = 64 }; // doubles behind each output
static const double guard_value = -1.2345678901234567e301;

/** The program's function gets memory of its own with a guard behind it. If it writes there, what it says counts for nothing: every
 *  element is then a NaN, as one is that it does not write. */
static void reference(const clv__ref *ref) {
    const custom_op *custom = custom_of(ref->io);
    const clv_op_use use = use_of(ref->io);
    double *out[CLV_CUSTOM_OP_OUTPUTS] = {0};
    bool whole = true;
    for (int k = 0; k < use.n_out; k++) {
        const size_t n = (size_t)clv__numel(&ref->io->out[k]);
        if (!(out[k] = clv__alloc(n + GUARD, sizeof(double)))) whole = false;
        for (size_t i = 0; out[k] && i < n + GUARD; i++) out[k][i] = i < n ? (double)NAN : guard_value;
    }
    if (whole) custom->given.reference(&use, (const double *const *)ref->in, out);
    for (int k = 0; k < use.n_out; k++) {
        const size_t n = (size_t)clv__numel(&ref->io->out[k]);
        for (size_t i = n; out[k] && i < n + GUARD; i++) whole &= out[k][i] == guard_value;
    }
    for (int k = 0; k < use.n_out; k++) {
        const size_t n = (size_t)clv__numel(&ref->io->out[k]);
        for (size_t i = 0; i < n; i++) ref->out[k][i] = whole ? out[k][i] : (double)NAN;
        free(out[k]);
    }
}

// ---- registering ----------------------------------------------------------------------------------------------------

static const custom_op *find(const char *name) {
    const custom_op *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; name && i < n_registered && !found; i++)
        if (!strcmp(registered[i]->name, name)) found = registered[i];
    pthread_mutex_unlock(&lock);
    return found;
}

/** Which of the attributes has that name; -1: none. */
static int attribute_of(const custom_op *custom, const char *name) {
    for (int i = 0; name && i < custom->n_attributes; i++)
        if (!strcmp(custom->given.attributes[i].name, name)) return i;
    return -1;
}

/** Is it an op's name, a composite's too? */
static bool is_taken(const char *name) {
    for (int i = 0; clv__public_ops[i]; i++)
        if (!strcmp(clv__public_ops[i]->name, name)) return true;
    return clv__op_find(name) != NULL;
}

static bool name_is_fine(const char *name) {
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name && strlen(name) < NAME_BYTES - 24 && strspn(name, letters) == strlen(name) &&
           !(*name >= '0' && *name <= '9');
}

static clv_status check_attributes(custom_op *custom, clv__error *error) {
    const clv_attribute *list = custom->given.attributes;
    for (int i = 0; list && list[i].name; i++) {
        if (i == CLV_CUSTOM_OP_ATTRIBUTES)
            CLV_FAIL(error, CLV_E_VALUE, "op '%s' has more than %d attributes", custom->name,
                     CLV_CUSTOM_OP_ATTRIBUTES);
        if (attribute_of(custom, list[i].name) >= 0)
            CLV_FAIL(error, CLV_E_VALUE, "op '%s' has two attributes '%.100s'", custom->name, list[i].name);
        custom->n_attributes = i + 1;
    }
    return CLV_OK;
}

static clv_status check_kernel(const custom_op *custom, clv__error *error) {
    const clv_custom_op *op = &custom->given;
    char entry[NAME_BYTES + 16];
    if (!op->kernel)
        CLV_FAIL(error, CLV_E_VALUE, "op '%s' has neither a build function nor a kernel", custom->name);
    if (!op->reference)
        CLV_FAIL(error, CLV_E_VALUE, "op '%s' has a kernel and no reference to hold it against",
                 custom->name);
    if (!op->samples || !op->samples[0].label)
        CLV_FAIL(error, CLV_E_VALUE, "op '%s' has no samples: nothing could check it", custom->name);
    if (op->group < 0) CLV_FAIL(error, CLV_E_VALUE, "op '%s' has groups of %d", custom->name, op->group);
    if (!name_is_fine(op->entry))
        CLV_FAIL(error, CLV_E_VALUE, "op '%s': a kernel cannot be called '%.100s'", custom->name, op->entry);
    snprintf(entry, sizeof entry, "KERNEL(%s)", op->entry);
    if (!strstr(op->kernel, entry))
        CLV_FAIL(error, CLV_E_VALUE, "op '%s': its source has no kernel named %s", custom->name, entry);
    return CLV_OK;
}

/** The samples as the table that every op has. */
static clv_status make_rows(custom_op *custom, clv__error *error) {
    const clv_op_sample *samples = custom->given.samples;
    size_t n = 0;
    while (samples[n].label) n++;
    custom->rows = clv__alloc(n + 1, sizeof *custom->rows);
    custom->sample_attributes = clv__alloc(n * CLV_CUSTOM_OP_ATTRIBUTES, sizeof(double));
    if (!custom->rows || !custom->sample_attributes)
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for op '%s'", custom->name);
    for (size_t s = 0; s < n; s++) {
        clv__sample_row *row = &custom->rows[s];
        double *values = custom->sample_attributes + s * CLV_CUSTOM_OP_ATTRIBUTES;
        *row = (clv__sample_row){.label = samples[s].label,
                                 .n_in = custom->given.n_inputs,
                                 .attrs = values,
                                 .quick = samples[s].quick,
                                 .no_gradient = samples[s].no_gradient || !custom->given.gradient};
        for (int i = 0; i < custom->given.n_inputs; i++) {
            const bool whole = samples[s].in[i].dtype == CLV_DTYPE_I32;
            row->in[i] = samples[s].in[i].shape;
            row->fill[i] = (clv__fill){whole ? CLV__FILL_INTEGER : CLV__FILL_UNIFORM, samples[s].lo[i],
                                       samples[s].hi[i]};
            if (whole) row->i32 |= 1u << i;
            if (samples[s].in[i].dtype == CLV_DTYPE_NONE) row->left_out |= 1u << i;
        }
        for (int i = 0; i < custom->n_attributes; i++) values[i] = custom->given.attributes[i].value;
        for (int i = 0; i < CLV_CUSTOM_OP_ATTRIBUTES && samples[s].attributes[i].name; i++) {
            const int at = attribute_of(custom, samples[s].attributes[i].name);
            if (at < 0)
                CLV_FAIL(error, CLV_E_VALUE, "op '%s', sample '%.100s': there is no attribute '%.100s'",
                         custom->name, samples[s].label, samples[s].attributes[i].name);
            values[at] = samples[s].attributes[i].value;
        }
    }
    return CLV_OK;
}

static clv_status describe(custom_op *custom, clv__error *error) {
    const clv_custom_op *op = &custom->given;
    CLV_TRY(check_kernel(custom, error));
    CLV_TRY(make_rows(custom, error));
    snprintf(custom->stem, sizeof custom->stem, "custom/%s", custom->name);
    custom->variants[0] = (clv__variant){.name = "plain", .supports = supports, .lower = lower};
    custom->op = (clv__op){.signature = custom->signature,
                           .attrs_bytes = (size_t)custom->n_attributes * sizeof(double),
                           .data = custom,
                           .infer = infer,
                           .grad = op->gradient ? CLV__TRAINS(gradient) : NULL,
                           .variants = custom->variants,
                           .reference = reference,
                           .samples = CLV__TRAINS(custom->rows),
                           .cost = op->cost ? cost : NULL,
                           .reduction = op->sum_length ? reduction : NULL};
    if (!clv__source_bring(custom->stem, op->kernel))
        CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for op '%s'", custom->name);
    return CLV_OK;
}

static void destroy(custom_op *custom) {
    if (!custom) return;
    free(custom->rows);
    free(custom->sample_attributes);
    free(custom);
}

/** How it is called by name. */
static void sign(custom_op *custom) {
    static const clv_op_value outputs[] = {{"y", "any"}, {NULL, NULL}};
    for (int i = 0; i < custom->given.n_inputs; i++) {
        snprintf(custom->input_names[i], sizeof custom->input_names[i], "in%d", i);
        custom->inputs[i] =
            (clv_op_value){custom->input_names[i], custom->given.optional_inputs >> i & 1 ? "any?" : "any"};
    }
    for (int i = 0; i < custom->n_attributes; i++) {
        clv__format(custom->defaults[i], sizeof custom->defaults[i], "%.17g",
                    custom->given.attributes[i].value);
        custom->attributes[i] = (clv_op_attribute){.name = custom->given.attributes[i].name,
                                                   .kind = CLV_ATTRIBUTE_NUMBER,
                                                   .fallback = custom->defaults[i],
                                                   .at = (size_t)i * sizeof(double),
                                                   .bytes = sizeof(double)};
    }
    custom->signature = (clv_op_signature){custom->name, custom->inputs, custom->attributes, outputs};
}

static clv_status fill(custom_op *custom, clv__error *error) {
    const clv_custom_op *op = &custom->given;
    if (op->n_inputs < 1 || op->n_inputs > CLV_CUSTOM_OP_INPUTS)
        CLV_FAIL(error, CLV_E_VALUE, "op '%s' has %d inputs, and 1 to %d are possible", custom->name,
                 op->n_inputs, CLV_CUSTOM_OP_INPUTS);
    CLV_TRY(check_attributes(custom, error));
    sign(custom);
    if (!op->build) CLV_TRY(describe(custom, error));
    return CLV_OK;
}

/** Under the lock. */
static clv_status enlist(custom_op *custom, clv__error *error) {
    for (int i = 0; i < n_registered; i++)
        if (!strcmp(registered[i]->name, custom->name)) // by another thread, meanwhile
            CLV_FAIL(error, CLV_E_STATE, "there is an op '%s' already", custom->name);
    if (n_registered == MAX_OPS || (!custom->given.build && !clv__op_enlist(&custom->op)))
        CLV_FAIL(error, CLV_E_STATE, "there are %d ops already, and no room for '%s'", n_registered,
                 custom->name);
    registered[n_registered++] = custom;
    return CLV_OK;
}

/** The same functions, texts and numbers under that name. */
static bool is_same(const clv_custom_op *a, const clv_custom_op *b) {
    return a->n_inputs == b->n_inputs && a->group == b->group && a->build == b->build &&
           a->kernel == b->kernel && a->reference == b->reference && a->gradient == b->gradient &&
           a->infer == b->infer && a->samples == b->samples;
}

clv_status clv_op_register(clv_runtime *runtime, const clv_custom_op *op) {
    CLV_TRY(CLV__GIVEN(NULL, runtime));
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, op));
    if (op->bytes < sizeof *op)
        CLV_FAIL(error, CLV_E_VALUE,
                 "an op's descriptor says that it has %zu bytes, and this version's has %zu", op->bytes,
                 sizeof *op);
    CLV_TRY(CLV__GIVEN(error, op->name));
    if (!name_is_fine(op->name))
        CLV_FAIL(error, CLV_E_VALUE, "an op cannot be called '%.100s': letters, digits and _, 39 at most",
                 op->name);
    const custom_op *before = find(op->name);
    if (before && is_same(&before->given, op)) return CLV_OK;
    if (before || is_taken(op->name)) CLV_FAIL(error, CLV_E_STATE, "there is an op '%s' already", op->name);
    custom_op *custom = clv__alloc(1, sizeof *custom);
    if (!custom) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for op '%s'", op->name);
    custom->given = *op;
    custom->given.bytes = sizeof *op;
    snprintf(custom->name, sizeof custom->name, "%s", op->name);
    custom->given.name = custom->name;
    if (!custom->given.entry) custom->given.entry = custom->name;
    clv_status status = fill(custom, error);
    if (status == CLV_OK) {
        pthread_mutex_lock(&lock);
        status = enlist(custom, error);
        pthread_mutex_unlock(&lock);
        if (status != CLV_OK) return status; // its source stays too
    }
    if (status != CLV_OK) destroy(custom);
    return status;
}

/** The i-th that was registered; NULL past the last. */
static const custom_op *entry_at(int i) {
    pthread_mutex_lock(&lock);
    const custom_op *custom = i >= 0 && i < n_registered ? registered[i] : NULL;
    pthread_mutex_unlock(&lock);
    return custom;
}

const clv_custom_op *clv_custom_op_get(int i) {
    const custom_op *custom = entry_at(i);
    return custom ? &custom->given : NULL;
}

const clv_op_signature *clv__custom_op_signature(int i) {
    const custom_op *custom = entry_at(i);
    return custom ? &custom->signature : NULL;
}

// ---- using ----------------------------------------------------------------------------------------------------------

clv_tensor *clv__custom_op_add(const char *name, clv_tensor *const *inputs, int n,
                               const clv_attribute *attributes, int n_attributes) {
    clv_graph *graph = NULL;
    for (int i = 0; inputs && i < n && !graph; i++) graph = clv_tensor_graph(inputs[i]);
    if (!graph) return NULL;
    const custom_op *custom = find(name);
    clv_nearest nearest;
    if (!custom)
        return clv__graph_fail(graph, CLV_E_NOT_FOUND, "no op '%.100s' was registered%s", name ? name : "",
                               name ? clv__op_nearest(name, &nearest) : "");
    if (n > custom->given.n_inputs)
        return clv__graph_fail(graph, CLV_E_VALUE, "%s has %d inputs, and %d are given", custom->name,
                               custom->given.n_inputs, n);
    double values[CLV_CUSTOM_OP_ATTRIBUTES] = {0};
    for (int i = 0; i < custom->n_attributes; i++) values[i] = custom->given.attributes[i].value;
    for (int i = 0; attributes && i < n_attributes; i++) {
        const int at = attribute_of(custom, attributes[i].name);
        if (at < 0)
            return clv__graph_fail(graph, CLV_E_NOT_FOUND, "%s has no attribute '%.100s'", custom->name,
                                   attributes[i].name ? attributes[i].name : "");
        if (!isfinite((float)attributes[i].value))
            return clv__graph_fail(graph, CLV_E_VALUE, "%s: '%.100s' is not a finite f32", custom->name,
                                   attributes[i].name);
        values[at] = attributes[i].value;
    }
    clv_tensor *in[CLV_CUSTOM_OP_INPUTS] = {0};
    for (int i = 0; i < n; i++) in[i] = inputs[i];
    if (!custom->given.build)
        return clv__node_add_to(graph, &custom->op, values, in, custom->given.n_inputs,
                                custom->given.optional_inputs);
    for (int i = 0; i < custom->given.n_inputs; i++)
        if (!in[i] && !(custom->given.optional_inputs >> i & 1))
            return clv__graph_fail(graph, CLV_E_VALUE, "%s: input %d is NULL", custom->name, i);
    clv_tensor *made = custom->given.build(in, custom->given.n_inputs, values);
    return made ? made : clv__graph_fail(graph, CLV_E_VALUE, "%s: its build made nothing", custom->name);
}

clv_tensor *clv_op_output(clv_tensor *tensor, int i) {
    return i >= 0 && i < CLV_CUSTOM_OP_OUTPUTS ? clv__sibling(tensor, i) : NULL;
}
