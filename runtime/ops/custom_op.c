// SPDX-License-Identifier: Apache-2.0
// Ops of a program's own (include/cleave/custom_op.h) as descriptors like all others. What they take, and what is refused, comes from
// their signature as of any op; here are the functions that pass a use to the program's functions, and check what those return
// before anything runs.
#include "cleave/custom_op.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/device.h"
#include "device/source.h"
#include "graph/signature.h"
#include "ops/custom_op.h"
#include "ops/lower.h"
#include "tensor/half.h"

enum { NAME_BYTES = 64, MAX_OPS = 1024 };

/** The stem of a variant's source. */
typedef struct stem {
    char text[2 * NAME_BYTES];
} stem;

typedef struct custom_op {
    clv__op op;
    clv_custom_op given;
    char name[NAME_BYTES];
    clv_op_attribute attributes[CLV_NODE_ARGUMENTS + 1]; // as given, each in its place
    clv__variant *variants;                              // as given.variants
    stem *stems;                                         // of each
} custom_op;

// Entries stay until the process ends: graphs and plans of any runtime point to them.
static custom_op *registered[MAX_OPS];
static int n_registered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const clv_custom_op *given_of(const clv__op_io *io) {
    return &((const custom_op *)io->op->data)->given;
}

/** A use as the program's functions see it, and what it points to. */
typedef struct view {
    clv_op_use use;
    clv_op_argument arguments[CLV_NODE_ARGUMENTS];
    int64_t lists[CLV_NODE_ARGUMENTS][CLV_MAX_RANK];
} view;

static const clv_op_use *use_of(const clv__op_io *io, view *room) {
    const int n = clv__arguments_of(io->op->attributes, io->attrs, room->arguments, room->lists);
    room->use = (clv_op_use){.n_in = io->n_in,
                             .n_out = io->n_out,
                             .n_attributes = n,
                             .in = io->in,
                             .out = io->out,
                             .attributes = room->arguments};
    return &room->use;
}

// ---- what the graph asks --------------------------------------------------------------------------------------------

/** What an infer or a build function made, against the outputs' types; `who` did. */
static clv_status check_outputs(const clv__op_io *io, const char *who, clv__error *error) {
    char text[CLV__ERROR_BYTES];
    for (int i = 0; i < io->n_out; i++) {
        const char *name = io->op->outputs[i].name;
        if (!clv_dtype_bytes(io->out[i].dtype) || clv__is_half(io->out[i].dtype))
            CLV_FAIL(error, CLV_E_DTYPE, "its %s gives output '%s' a dtype that is not possible", who, name);
        if (clv_shape_numel(&io->out[i].shape) < 0)
            CLV_FAIL(error, CLV_E_SHAPE, "its %s gives output '%s' a shape that is not possible (rank %d)",
                     who, name, io->out[i].shape.rank);
    }
    if (clv__op_outputs_check(io, error) == CLV_OK) return CLV_OK;
    clv__error_read(error, text);
    CLV_FAIL(error, CLV_E_SHAPE, "its %s contradicts its signature: %s", who, text);
}

static clv_status infer(clv__op_io *io, clv__error *error) {
    view room;
    CLV_TRY(clv__outputs_of_types(io, error));
    const char *why = given_of(io)->infer(use_of(io, &room), io->out);
    if (why) CLV_FAIL(error, CLV_E_SHAPE, "%s", why);
    return check_outputs(io, "infer", error);
}

static void gradient(const clv__node *node, clv_tensor *const *dy, clv_tensor **dx) {
    const clv__op_io *io = clv__node_io(node);
    view room;
    clv_tensor *in[CLV__MAX_IN], *out[CLV__MAX_OUT];
    for (int i = 0; i < io->n_in; i++) in[i] = clv__node_in(node, i);
    for (int i = 0; i < io->n_out; i++) out[i] = clv__node_out(node, i);
    given_of(io)->gradient(use_of(io, &room), in, out, dy, dx);
    for (int i = 0; i < io->n_in; i++) {
        if (!clv__wants_grad(node, i)) dx[i] = NULL;
        if (!dx[i]) continue;
        const clv_shape got = clv_tensor_shape(dx[i]);
        char is[128], wanted[128];
        if (clv_shape_equal(&got, &io->in[i].shape) && clv__is_float(clv_tensor_dtype(dx[i])) &&
            clv_tensor_graph(dx[i]) == clv_tensor_graph(out[0]))
            continue;
        clv__graph_fail(clv_tensor_graph(out[0]), CLV_E_SHAPE,
                        "the gradient of '%s' makes a tensor %s %s of this or another graph for input '%s', "
                        "whose gradient is a float %s",
                        io->op->name, clv_dtype_name(clv_tensor_dtype(dx[i])),
                        clv_shape_text(&got, is, sizeof is), io->op->inputs[i].name,
                        clv_shape_text(&io->in[i].shape, wanted, sizeof wanted));
        dx[i] = NULL;
    }
}

/** Type and shape of a tensor as types see it, to which every float is an f32. */
static clv__desc desc_of(const clv_tensor *tensor) {
    if (!tensor) return (clv__desc){CLV_DTYPE_NONE, {0}};
    const clv_dtype dtype = clv_tensor_dtype(tensor);
    return (clv__desc){clv__is_half(dtype) ? CLV_DTYPE_F32 : dtype, clv_tensor_shape(tensor)};
}

static clv_tensor *build_checked(const clv__call *call, clv__error *error) {
    view room;
    clv__desc in[CLV__MAX_IN];
    clv__op_io io = {.op = call->op, .attrs = call->attrs, .n_in = call->n_in, .in = in};
    for (int i = 0; i < call->n_in; i++) in[i] = desc_of(call->in[i]);
    clv_tensor *made = given_of(&io)->build(call->graph, use_of(&io, &room), call->in);
    io.n_out = 1;
    io.out[0] = desc_of(made);
    return made && check_outputs(&io, "build", error) == CLV_OK ? made : NULL;
}

static clv_tensor *build(const clv__call *call) {
    clv__error mistake;
    if (call->n_in > CLV__MAX_IN)
        return clv__graph_fail(call->graph, CLV_E_VALUE, "%s has %d inputs, the most is %d", call->op->name,
                               call->n_in, CLV__MAX_IN);
    clv__error_init(&mistake);
    clv_tensor *made = build_checked(call, &mistake);
    if (!made && mistake.status != CLV_OK)
        clv__graph_fail(call->graph, mistake.status, "%s: %s", call->op->name, mistake.text);
    else if (!made) // if nothing was told
        clv__graph_fail(call->graph, CLV_E_VALUE, "%s: its build made nothing", call->op->name);
    clv__error_destroy(&mistake);
    return made;
}

// ---- what the plan asks ---------------------------------------------------------------------------------------------

static bool supports(const clv_device_info *device, const clv__op_io *io) {
    view room;
    const clv_op_variant *variant = &given_of(io)->variants[io->variant->number];
    if (variant->group > 0 && device->max_work_group && (size_t)variant->group > device->max_work_group)
        return false;
    return !variant->supports || variant->supports(device, use_of(io, &room));
}

/** Output or input `name` as an argument, and its storage as a macro. */
static void add_tensor(clv__launches *list, clv__launch *launch, const char *name, const clv__desc *desc) {
    char macro[CLV__VALUE_NAME_BYTES + 4];
    snprintf(macro, sizeof macro, "T_%s", name);
    clv__launch_define(list, launch, macro, "%s", clv__storage(desc->dtype));
}

static void define_list(clv__launches *list, clv__launch *launch, const clv_op_argument *value) {
    char macro[CLV__VALUE_NAME_BYTES + 4], numbers[CLV_MAX_RANK * 16] = "";
    size_t used = 0;
    for (int i = 0; i < value->n && used < sizeof numbers; i++)
        used += (size_t)snprintf(numbers + used, sizeof numbers - used, "%s%lld", i ? "," : "",
                                 (long long)value->list[i]);
    snprintf(macro, sizeof macro, "N_%s", value->name);
    clv__launch_define(list, launch, macro, "%d", value->n);
    snprintf(macro, sizeof macro, "L_%s", value->name);
    clv__launch_define(list, launch, macro, "%s", numbers);
}

/** An attribute as an argument, or as macros. */
static void add_attribute(clv__launches *list, clv__launch *launch, clv_attribute_kind kind,
                          const clv_op_argument *value) {
    char macro[CLV__VALUE_NAME_BYTES + CLV__TEXT_BYTES + 8];
    switch (kind) {
    case CLV_ATTRIBUTE_NUMBER: clv__arg_f32(list, launch, (float)value->number); break;
    case CLV_ATTRIBUTE_INT:
    case CLV_ATTRIBUTE_BOOL:
    case CLV_ATTRIBUTE_DTYPE: clv__arg_i32(list, launch, (int64_t)value->number); break;
    case CLV_ATTRIBUTE_PAIR: CLV__ARGS_I32(list, launch, value->list[0], value->list[1]); break;
    case CLV_ATTRIBUTE_LIST: define_list(list, launch, value); break;
    case CLV_ATTRIBUTE_TEXT:
        if (!clv__is_value_name(value->text)) break;
        snprintf(macro, sizeof macro, "IS_%s_%s", value->name, value->text);
        clv__launch_define(list, launch, macro, "1");
    }
}

static void lower(clv__launches *list, const clv__op_io *io) {
    view room;
    const custom_op *custom = io->op->data;
    const clv_op_variant *variant = &custom->given.variants[io->variant->number];
    const clv_op_use *use = use_of(io, &room);
    const int64_t items = variant->items ? variant->items(use) : clv__numel(&io->out[0]);
    if (items <= 0) return;
    clv__launch *launch = clv__launch_kernel(list, custom->stems[io->variant->number].text,
                                             variant->entry ? variant->entry : custom->name);
    for (int i = 0; i < io->n_out; i++) add_tensor(list, launch, io->op->outputs[i].name, &io->out[i]);
    for (int i = 0; i < io->n_in; i++) add_tensor(list, launch, io->op->inputs[i].name, &io->in[i]);
    for (int i = 0; i < io->n_out; i++) clv__arg_out(list, launch, i);
    for (int i = 0; i < io->n_in; i++) clv__arg_in(list, launch, i);
    clv__arg_i32(list, launch, items);
    for (int i = 0; i < use->n_attributes; i++)
        add_attribute(list, launch, io->op->attributes[i].kind, &use->attributes[i]);
    if (variant->group > 0)
        clv__launch_grid(launch, (size_t)items, (size_t)variant->group);
    else
        clv__launch_over(list, launch, CLV__ELEMENTS, items);
}

static void cost(const clv__op_io *io, clv__cost *out) {
    view room;
    given_of(io)->cost(use_of(io, &room), &out->flops, &out->bytes);
}

static int64_t reduction(const clv__op_io *io) {
    view room;
    const int64_t length = given_of(io)->sum_length(use_of(io, &room));
    return length < 1 ? 1 : length;
}

// ---- the reference and the cases ------------------------------------------------------------------------------------

enum { GUARD = 64 }; // doubles behind each output
static const double guard_value = -1.2345678901234567e301;

/** The program's function gets memory of its own with a guard behind it. If it writes there, what it says counts for nothing: every
 *  element is then a NaN, as one is that it does not write. */
static void reference(const clv__ref *ref) {
    view room;
    const clv_op_use *use = use_of(ref->io, &room);
    double *out[CLV__MAX_OUT] = {0};
    bool whole = true;
    for (int k = 0; k < use->n_out; k++) {
        const size_t n = (size_t)clv__numel(&ref->io->out[k]);
        if (!(out[k] = clv__alloc(n + GUARD, sizeof(double)))) whole = false;
        for (size_t i = 0; out[k] && i < n + GUARD; i++) out[k][i] = i < n ? (double)NAN : guard_value;
    }
    if (whole) given_of(ref->io)->reference(use, (const double *const *)ref->in, out);
    for (int k = 0; k < use->n_out; k++) {
        const size_t n = (size_t)clv__numel(&ref->io->out[k]);
        for (size_t i = n; out[k] && i < n + GUARD; i++) whole &= out[k][i] == guard_value;
    }
    for (int k = 0; k < use->n_out; k++) {
        const size_t n = (size_t)clv__numel(&ref->io->out[k]);
        for (size_t i = 0; i < n; i++) ref->out[k][i] = whole ? out[k][i] : (double)NAN;
        free(out[k]);
    }
}

static clv_status read_sample(const clv__op *op, const clv_op_sample *from, clv__sample *out,
                              clv__error *error) {
    int least;
    bool list;
    const int n = clv__inputs_count(op->inputs, &least, &list);
    if (from->n_in < least || from->n_in > n)
        CLV_FAIL(error, CLV_E_VALUE, "%s has %d inputs, and %d are given", op->name, n, from->n_in);
    snprintf(out->label, sizeof out->label, "%s", from->label);
    out->n_in = n;
    for (int i = 0; i < from->n_in; i++) {
        const bool whole = !clv__is_float(from->in[i].dtype);
        out->in[i] = (clv__desc){from->in[i].dtype, from->in[i].shape};
        out->fill[i] =
            (clv__fill){whole ? CLV__FILL_INTEGER : CLV__FILL_UNIFORM, from->in[i].lo, from->in[i].hi};
    }
    out->quick = from->quick;
    out->no_gradient = from->no_gradient || !op->grad;
    CLV_TRY(clv__arguments_read(op->name, op->attributes, from->attributes, from->n_attributes, out->attrs,
                                error));
    return clv__attributes_check(op->attributes, out->attrs, error);
}

static bool sample(const clv__op *op, int i, clv__sample *out) {
    const clv_op_sample *samples = ((const custom_op *)op->data)->given.samples;
    clv__error mistake;
    for (int k = 0; k <= i; k++)
        if (!samples[k].label) return false;
    clv__error_init(&mistake);
    const clv_status status = i < 0 ? CLV_E_VALUE : read_sample(op, &samples[i], out, &mistake);
    clv__error_destroy(&mistake);
    return status == CLV_OK;
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

static clv_status check_samples(const custom_op *custom, clv__error *error) {
    const clv_op_sample *samples = custom->given.samples;
    char text[CLV__ERROR_BYTES];
    if (!samples || !samples[0].label)
        CLV_FAIL(error, CLV_E_VALUE, "it has no samples: nothing could check it");
    for (int i = 0; samples[i].label; i++) {
        clv__sample made = {0};
        const clv_status status = read_sample(&custom->op, &samples[i], &made, error);
        if (status == CLV_OK) continue;
        clv__error_read(error, text);
        CLV_FAIL(error, status, "sample '%.100s': %s", samples[i].label, text);
    }
    return CLV_OK;
}

/** Arguments of a kernel. */
static int arguments_of(const clv__op *op) {
    int least, n = 1;
    bool list;
    n += clv__inputs_count(op->inputs, &least, &list) + clv__inputs_count(op->outputs, &least, &list);
    for (const clv_op_attribute *a = op->attributes; a->name; a++)
        n += a->kind == CLV_ATTRIBUTE_PAIR ? 2
                                           : a->kind != CLV_ATTRIBUTE_LIST && a->kind != CLV_ATTRIBUTE_TEXT;
    return n;
}

static clv_status check_variant(const custom_op *custom, int i, const char *kernel, clv__error *error) {
    const clv_op_variant *variant = &custom->given.variants[i];
    const char *wanted = variant->entry ? variant->entry : custom->name;
    char entry[NAME_BYTES + 16];
    if (!name_is_fine(variant->name))
        CLV_FAIL(error, CLV_E_VALUE, "a variant cannot be called '%.100s'", variant->name);
    if ((i == 0) != !strcmp(variant->name, "plain"))
        CLV_FAIL(error, CLV_E_VALUE, "the first of its variants, and no other, is 'plain'; number %d is '%s'",
                 i, variant->name);
    for (int k = 0; k < i; k++)
        if (!strcmp(custom->given.variants[k].name, variant->name))
            CLV_FAIL(error, CLV_E_VALUE, "it has two variants '%s'", variant->name);
    if (!kernel) CLV_FAIL(error, CLV_E_VALUE, "variant '%s' has no kernel", variant->name);
    if (variant->group < 0)
        CLV_FAIL(error, CLV_E_VALUE, "variant '%s' has groups of %d", variant->name, variant->group);
    if (!(variant->relative >= 0))
        CLV_FAIL(error, CLV_E_VALUE, "variant '%s' has a relative time below 0", variant->name);
    if (!name_is_fine(wanted)) CLV_FAIL(error, CLV_E_VALUE, "a kernel cannot be called '%.100s'", wanted);
    snprintf(entry, sizeof entry, "KERNEL(%s)", wanted);
    if (!strstr(kernel, entry))
        CLV_FAIL(error, CLV_E_VALUE, "the source of variant '%s' has no kernel named %s", variant->name,
                 entry);
    return CLV_OK;
}

static clv_status no_memory(clv__error *error) {
    CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for it");
}

/** The descriptor's variants, and their sources: a text that several have is brought once. */
static clv_status make_variants(custom_op *custom, clv__error *error) {
    const clv_op_variant *given = custom->given.variants;
    const char *kernel = NULL;
    size_t n = 0;
    while (given && given[n].name) n++;
    if (!n) CLV_FAIL(error, CLV_E_VALUE, "it has neither a build function nor a kernel");
    for (size_t i = 0; i < n; i++) {
        if (given[i].kernel) kernel = given[i].kernel;
        CLV_TRY(check_variant(custom, (int)i, kernel, error));
    }
    custom->variants = clv__alloc(n + 1, sizeof *custom->variants);
    custom->stems = clv__alloc(n, sizeof *custom->stems);
    if (!custom->variants || !custom->stems) return no_memory(error);
    for (size_t i = 0; i < n; i++) {
        custom->variants[i] = (clv__variant){.name = given[i].name,
                                             .supports = supports,
                                             .lower = lower,
                                             .relative = given[i].relative,
                                             .number = (int)i};
        if (given[i].kernel)
            snprintf(custom->stems[i].text, sizeof custom->stems[i].text, "custom/%s/%s", custom->name,
                     given[i].name);
        else
            custom->stems[i] = custom->stems[i - 1];
    }
    return CLV_OK;
}

/** Sources stay for the rest of the process, so they are brought when nothing is wrong any more. */
static clv_status bring_sources(custom_op *custom, clv__error *error) {
    for (int i = 0; custom->given.variants[i].name; i++) {
        if (!custom->given.variants[i].kernel ||
            clv__source_bring(custom->stems[i].text, custom->given.variants[i].kernel))
            continue;
        if (i) custom->stems = NULL; // those that were brought are in use
        return no_memory(error);
    }
    return CLV_OK;
}

/** Of an op with kernels. */
static clv_status describe(custom_op *custom, clv__error *error) {
    const clv_custom_op *op = &custom->given;
    int least;
    bool list;
    clv__inputs_count(custom->op.inputs, &least, &list);
    if (list) CLV_FAIL(error, CLV_E_VALUE, "a list of inputs is for an op with a build function");
    if (arguments_of(&custom->op) > CLV__SURE_ARGS)
        CLV_FAIL(error, CLV_E_VALUE, "its kernel has %d arguments, the most is %d", arguments_of(&custom->op),
                 CLV__SURE_ARGS);
    CLV_TRY(make_variants(custom, error));
    if (!op->reference) CLV_FAIL(error, CLV_E_VALUE, "it has a kernel and no reference to hold it against");
    custom->op.half_in = clv__values_halves(custom->op.inputs, custom->op.inputs);
    custom->op.half_out = clv__values_halves(custom->op.outputs, custom->op.inputs);
    custom->op.infer = op->infer ? infer : NULL;
    custom->op.grad = op->gradient ? CLV__TRAINS(gradient) : NULL;
    custom->op.variants = custom->variants;
    custom->op.reference = reference;
    custom->op.sample = CLV__TRAINS(sample);
    custom->op.cost = op->cost ? cost : NULL;
    custom->op.reduction = op->sum_length ? reduction : NULL;
    CLV_TRY(check_samples(custom, error));
    return bring_sources(custom, error);
}

static void destroy(custom_op *custom) {
    free(custom->variants);
    free(custom->stems);
    free(custom);
}

/** What every op has: its signature, and where its attributes are. */
static clv_status sign(custom_op *custom, clv__error *error) {
    static const clv_op_value none[] = {{NULL, NULL}};
    const clv_custom_op *op = &custom->given;
    _Alignas(16) char attrs[CLV__ATTRS_BYTES] = {0};
    CLV_TRY(clv__attributes_valid(op->attributes, error));
    for (int i = 0; op->attributes && op->attributes[i].name; i++) custom->attributes[i] = op->attributes[i];
    custom->op = (clv__op){.name = custom->name,
                           .inputs = op->inputs ? op->inputs : none,
                           .attributes = custom->attributes,
                           .outputs = op->outputs ? op->outputs : none,
                           .custom = op,
                           .attrs_bytes = clv__attributes_place(custom->attributes),
                           .data = custom};
    if (custom->op.attrs_bytes > sizeof attrs)
        CLV_FAIL(error, CLV_E_VALUE,
                 "its attributes take %zu bytes, the most is %zu: a list takes %zu, a text %d",
                 custom->op.attrs_bytes, sizeof attrs, sizeof(clv__ints), CLV__TEXT_BYTES);
    CLV_TRY(clv__attributes_valid_defaults(custom->attributes, attrs, error));
    return clv__signature_valid(&custom->op.signature, op->build || op->infer, error);
}

static clv_status fill(custom_op *custom, clv__error *error) {
    CLV_TRY(sign(custom, error));
    if (!custom->given.build) return describe(custom, error);
    if (custom->op.outputs[1].name)
        CLV_FAIL(error, CLV_E_VALUE, "an op with a build function has one output");
    custom->op.build = build;
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

/** The same functions, lists and texts under that name. */
static bool is_same(clv_custom_op a, clv_custom_op b) {
    a.name = b.name = NULL, a.bytes = b.bytes = 0;
    return memcmp(&a, &b, sizeof a) == 0;
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
    if (before && is_same(before->given, *op)) return CLV_OK;
    if (before || is_taken(op->name)) CLV_FAIL(error, CLV_E_STATE, "there is an op '%s' already", op->name);
    custom_op *custom = clv__alloc(1, sizeof *custom);
    if (!custom) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no host memory for op '%s'", op->name);
    custom->given = *op;
    custom->given.bytes = sizeof *op;
    snprintf(custom->name, sizeof custom->name, "%s", op->name);
    custom->given.name = custom->name;
    char text[CLV__ERROR_BYTES];
    clv_status status = fill(custom, error);
    if (status == CLV_OK) {
        pthread_mutex_lock(&lock);
        status = enlist(custom, error);
        pthread_mutex_unlock(&lock);
        return status; // its source stays too
    }
    destroy(custom);
    clv__error_read(error, text);
    CLV_FAIL(error, status, "op '%s': %s", op->name, text);
}

const clv_op_signature *clv__custom_op_signature(int i) {
    pthread_mutex_lock(&lock);
    const custom_op *custom = i >= 0 && i < n_registered ? registered[i] : NULL;
    pthread_mutex_unlock(&lock);
    return custom ? &custom->op.signature : NULL;
}

clv_tensor *clv_op_output(clv_tensor *tensor, int i) {
    return i >= 0 && i < CLV__MAX_OUT ? clv__sibling(tensor, i) : NULL;
}
