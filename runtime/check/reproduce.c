// SPDX-License-Identifier: Apache-2.0
// A case as text: tensors with guards around them, as in guarded.c, the launches with their arguments resolved, the program's
// source, and what the results should be. Nothing is run.
#include "check/reproduce.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/program.h"
#include "tensor/dtype.h"

enum { GUARD_BYTES = 4096 };

typedef enum use { USE_READ, USE_RESULT, USE_SCRATCH } use;

/** A stretch of the allocation. */
typedef struct zone {
    char name[96];
    int key; // whose it is: an input, an output (behind the inputs), a value of the plan, workspace (-1 - node)
    size_t offset, bytes;
    use use;
    const clv_tensor *start, *target; // whose first values, and whose values to compare; NULL: none
} zone;

typedef struct writer {
    const clv__reproduction *of;
    clv__error *error;
    clv__text *out;
    size_t alignment, bytes;
    zone *zones;
    size_t n_zones, zones_room;
    const clv__launch **launches;
    size_t n_launches, launches_room;
} writer;

// ---- tensors --------------------------------------------------------------------------------------------------------

static zone *find_zone(const writer *w, int key) {
    for (size_t i = 0; i < w->n_zones; i++)
        if (w->zones[i].key == key) return &w->zones[i];
    return NULL;
}

static clv_status add_zone(writer *w, zone new) {
    zone *found = find_zone(w, new.key);
    if (found) { // a value in the place of another
        if (new.target) found->target = new.target, found->use = USE_RESULT;
        return CLV_OK;
    }
    if (!clv__grow(&w->zones, &w->zones_room, w->n_zones + 1, sizeof *w->zones))
        CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no memory for the tensors of '%s'", w->of->name);
    new.offset = w->bytes;
    // The guard begins at the tensor's last byte, not at the next aligned one.
    w->bytes += clv__size_align(new.bytes + GUARD_BYTES, w->alignment);
    w->zones[w->n_zones++] = new;
    return CLV_OK;
}

/** A use's outputs, and the inputs that it changes, are the subject's first targets, in this order. */
static clv_status lay_out_use(writer *w) {
    const clv__op_io *io = w->of->use;
    const clv__subject *subject = w->of->subject;
    int target = io->n_out;
    for (int i = 0; i < io->n_in; i++) {
        if (!clv__has_in(io, i)) continue;
        bool changes = io->op->mutates >> i & 1;
        zone new = {.key = i,
                    .bytes = clv__desc_bytes(&io->in[i]),
                    .use = changes ? USE_RESULT : USE_READ,
                    .start = subject->in[i],
                    .target = changes ? subject->targets[target++] : NULL};
        snprintf(new.name, sizeof new.name, "in%d", i);
        CLV_TRY(add_zone(w, new));
    }
    for (int i = 0; i < io->n_out; i++) {
        zone new = {.key = CLV__MAX_IN + i,
                    .bytes = clv__desc_bytes(&io->out[i]),
                    .use = USE_RESULT,
                    .target = subject->targets[i]};
        snprintf(new.name, sizeof new.name, "out%d", i);
        CLV_TRY(add_zone(w, new));
    }
    return CLV_OK;
}

/** The whole memory of a value of the plan: that of its root. */
static clv_status lay_out_value(writer *w, int value) {
    const clv_plan *plan = w->of->plan;
    if (value < 0) return CLV_OK;
    int root = plan->values[value].root;
    const clv_tensor *tensor = plan->values[root].tensor;
    zone new = {.key = root, .use = USE_SCRATCH, .start = tensor->kind == CLV__VALUE ? NULL : tensor};
    for (size_t i = 0; i < plan->n_values; i++) {
        const clv__value *v = &plan->values[i];
        if (v->root != root) continue;
        if (v->bytes > new.bytes) new.bytes = v->bytes;
        for (int t = 0; t < w->of->subject->n_targets; t++)
            if (w->of->subject->targets[t] == v->tensor) {
                new.target = v->tensor;
                new.use = USE_RESULT;
                snprintf(new.name, sizeof new.name, "%s", w->of->subject->what[t]);
            }
    }
    if (!new.target)
        snprintf(new.name, sizeof new.name, "%s", tensor->name && *tensor->name ? tensor->name : "value");
    return add_zone(w, new);
}

static clv_status lay_out_workspace(writer *w, int node, const clv__launches *launches) {
    zone new = {.key = -1 - node, .bytes = launches->workspace_bytes, .use = USE_SCRATCH};
    snprintf(new.name, sizeof new.name, "workspace of node %d", node);
    return launches->workspace_bytes ? add_zone(w, new) : CLV_OK;
}

static clv_status lay_out_plan(writer *w) {
    const clv_plan *plan = w->of->plan;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        for (int k = 0; k < at->node->io.n_in; k++) CLV_TRY(lay_out_value(w, at->in[k]));
        for (int k = 0; k < at->node->io.n_out; k++) CLV_TRY(lay_out_value(w, at->out[k]));
        CLV_TRY(lay_out_workspace(w, (int)i, &at->launches));
    }
    return CLV_OK;
}

// ---- text -----------------------------------------------------------------------------------------------------------

/** As a text of C; a comment is not ended by what stands in it. */
static void put_string(clv__text *out, const char *text, size_t n) {
    clv__text_add(out, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            clv__text_add(out, "\\%c", c);
        else if (c == '\n')
            clv__text_add(out, "\\n");
        else if (c < ' ' || c >= 0x7f)
            clv__text_add(out, "\\%03o", c);
        else
            clv__text_add(out, "%c", c);
    }
    clv__text_add(out, "\"");
}

static void put_comment(clv__text *out, const char *text) {
    for (; *text; text++)
        clv__text_add(out, "%c", *text == '*' && text[1] == '/' ? '+' : *text < ' ' ? ' ' : *text);
}

static void put_double(clv__text *out, double value) {
    if (isnan(value))
        clv__text_add(out, "NAN");
    else if (isinf(value))
        clv__text_add(out, value < 0 ? "-INFINITY" : "INFINITY");
    else
        clv__text_add(out, "%.17g", value);
}

static clv_status put_source(writer *w) {
    char *source = clv__programs_source(w->of->device, w->launches, w->n_launches);
    if (!source) CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no memory for the kernels of '%s'", w->of->name);
    clv__text_add(w->out, "#define OPTIONS \"%s\"\n\nstatic const char *const source[] = {\n",
                  clv__program_options(source));
    for (const char *line = source, *next; *line; line = next) {
        const char *end = strchr(line, '\n');
        next = end ? end + 1 : line + strlen(line);
        put_string(w->out, line, (size_t)(next - line));
        clv__text_add(w->out, ",\n");
    }
    clv__text_add(w->out, "};\n\n");
    free(source);
    return CLV_OK;
}

static clv_status put_start(writer *w, size_t i) {
    const zone *z = &w->zones[i];
    if (!z->start || !z->bytes) return CLV_OK;
    size_t words = (z->bytes + 3) / 4;
    uint32_t *elements = clv__alloc(words, sizeof *elements);
    if (!elements) CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no memory for the elements of '%s'", z->name);
    clv__values_get(&w->of->subject->start, z->start, elements);
    clv__text_add(w->out, "static const uint32_t start_%zu[] = { /* %s */", i, z->name);
    for (size_t k = 0; k < words; k++)
        clv__text_add(w->out, "%s0x%08" PRIx32 ",", k % 8 ? " " : "\n    ", elements[k]);
    clv__text_add(w->out, "\n};\n");
    free(elements);
    return CLV_OK;
}

/** What an element should be: what does not fit into the type is infinite there too. */
static double wanted(const writer *w, const clv_tensor *target, int64_t i, double *allowed) {
    double want = w->of->expected->want.data[target->id][i];
    *allowed = 0;
    if (clv__is_float(target->desc.dtype)) {
        const double rounded = clv__dtype_nearest(target->desc.dtype, want);
        if (!isfinite(rounded)) want = rounded;
    }
    if (isfinite(want)) *allowed = clv__tolerance(w->of->expected, target, i);
    return want;
}

static void put_wanted(writer *w, size_t at) {
    const clv_tensor *target = w->zones[at].target;
    int64_t n = target ? clv__numel(&target->desc) : 0;
    for (int pass = 0; n && pass < 2; pass++) {
        clv__text_add(w->out, "static const double %s_%zu[] = { /* %s */", pass ? "allowed" : "want", at,
                      w->zones[at].name);
        for (int64_t i = 0; i < n; i++) {
            double allowed, want = wanted(w, target, i, &allowed);
            clv__text_add(w->out, i % 4 ? " " : "\n    ");
            put_double(w->out, pass ? allowed : want);
            clv__text_add(w->out, ",");
        }
        clv__text_add(w->out, "\n};\n");
    }
}

static const char *type_name(const zone *z) {
    return clv__dtype(z->target ? z->target->desc.dtype : CLV_DTYPE_F32)->id;
}

static clv_status put_tensors(writer *w) {
    static const char *const uses[] = {"READ", "RESULT", "SCRATCH"};
    for (size_t i = 0; i < w->n_zones; i++) {
        CLV_TRY(put_start(w, i));
        put_wanted(w, i);
    }
    clv__text_add(w->out, "#define BYTES ((size_t)%zu)\nstatic const struct tensor tensors[] = {\n",
                  w->bytes);
    for (size_t i = 0; i < w->n_zones; i++) {
        const zone *z = &w->zones[i];
        bool compared = z->target && clv__numel(&z->target->desc);
        clv__text_add(w->out, "    {");
        put_string(w->out, z->name, strlen(z->name));
        clv__text_add(w->out, ", %zu, %zu, %s, %s, ", z->offset, z->bytes, uses[z->use], type_name(z));
        if (z->start && z->bytes)
            clv__text_add(w->out, "start_%zu, ", i);
        else
            clv__text_add(w->out, "NULL, ");
        if (compared)
            clv__text_add(w->out, "want_%zu, allowed_%zu},\n", i, i);
        else
            clv__text_add(w->out, "NULL, NULL},\n");
    }
    clv__text_add(w->out, "};\n\n");
    return CLV_OK;
}

// ---- commands -------------------------------------------------------------------------------------------------------

/** The tensor that a slot of a node's launch means; NULL: it is not there. */
static const zone *zone_of(const writer *w, int node, const clv__slot *slot) {
    const clv__plan_node *at = w->of->plan ? &w->of->plan->nodes[node] : NULL;
    int value;
    switch (slot->kind) {
    case CLV__SLOT_IN: value = at ? at->in[slot->index] : slot->index; break;
    case CLV__SLOT_OUT: value = at ? at->out[slot->index] : CLV__MAX_IN + slot->index; break;
    default: return find_zone(w, -1 - node);
    }
    if (at && value < 0) return NULL;
    return find_zone(w, at ? w->of->plan->values[value].root : value);
}

static void put_argument(writer *w, int node, const clv__slot *slot) {
    const zone *z;
    switch (slot->kind) {
    case CLV__SLOT_I32: clv__text_add(w->out, "{INTEGER, 0, 0, %" PRId32 ", 0}", slot->i32); break;
    case CLV__SLOT_F32:
        clv__text_add(w->out, "{FLOAT, 0, 0, 0, (float)");
        put_double(w->out, (double)slot->f32);
        clv__text_add(w->out, "}");
        break;
    case CLV__SLOT_LOCAL: clv__text_add(w->out, "{LOCAL, 0, %zu, 0, 0}", slot->bytes); break;
    default:
        z = zone_of(w, node, slot);
        if (!z)
            clv__text_add(w->out, "{NOTHING, 0, 0, 0, 0}");
        else if (slot->kind == CLV__SLOT_WORKSPACE)
            clv__text_add(w->out, "{BUFFER, %zu, %zu, 0, 0}", z->offset + slot->offset, slot->bytes);
        else
            clv__text_add(w->out, "{BUFFER, %zu, %zu, 0, 0}", z->offset, z->bytes);
    }
}

static void put_arguments(writer *w, int node, size_t number, const clv__launch *launch) {
    clv__text_add(w->out, "static const struct argument arguments_%zu[] = {\n", number);
    for (int i = 0; i < launch->n_slots; i++) {
        clv__text_add(w->out, "    ");
        put_argument(w, node, &launch->slots[i]);
        clv__text_add(w->out, ",\n");
    }
    clv__text_add(w->out, "};\n");
}

static size_t offset_of(const writer *w, int node, const clv__slot *slot) {
    const zone *z = zone_of(w, node, slot);
    return (z ? z->offset : 0) + (slot->kind == CLV__SLOT_WORKSPACE ? slot->offset : 0);
}

static clv_status put_command(writer *w, int node, size_t number, const clv__launch *launch) {
    const clv__grid *g = &launch->grid;
    char name[CLV__KERNEL_NAME_BYTES];
    switch (launch->kind) {
    case CLV__LAUNCH_KERNEL:
        CLV_TRY(clv__programs_kernel_name(launch, w->error, name));
        clv__text_add(
            w->out,
            "    {KERNEL, \"%s\", arguments_%zu, %d, %d, {%zu, %zu, %zu}, {%zu, %zu, %zu}, 0, 0, 0, 0},\n",
            name, number, launch->n_slots, g->dims, g->global[0], g->global[1], g->global[2], g->local[0],
            g->local[1], g->local[2]);
        return CLV_OK;
    case CLV__LAUNCH_COPY:
        clv__text_add(w->out, "    {COPY, NULL, NULL, 0, 0, {0}, {0}, %zu, %zu, %zu, 0},\n",
                      offset_of(w, node, &launch->slots[0]), offset_of(w, node, &launch->slots[1]),
                      launch->bytes);
        return CLV_OK;
    default:
        clv__text_add(w->out, "    {FILL, NULL, NULL, 0, 0, {0}, {0}, %zu, 0, %zu, 0x%08" PRIx32 "u},\n",
                      offset_of(w, node, &launch->slots[0]), launch->bytes, launch->pattern);
        return CLV_OK;
    }
}

static bool is_empty(const clv__launch *launch) {
    bool empty = launch->kind != CLV__LAUNCH_KERNEL && launch->bytes == 0;
    for (int d = 0; launch->kind == CLV__LAUNCH_KERNEL && d < launch->grid.dims; d++)
        empty |= launch->grid.global[d] == 0;
    return empty;
}

/** Each launch of the case with its node, in order: gathered, then with its arguments, then as a command. */
static clv_status each_launch(writer *w, int pass) {
    const clv_plan *plan = w->of->plan;
    size_t number = 0;
    for (int node = 0; node < (plan ? (int)plan->n_nodes : 1); node++) {
        const clv__launches *list = plan ? &plan->nodes[node].launches : w->of->launches;
        for (size_t i = 0; i < list->n; i++) {
            const clv__launch *launch = &list->items[i];
            if (is_empty(launch)) continue;
            if (launch->kind == CLV__LAUNCH_GEMM || launch->kind == CLV__LAUNCH_REFERENCE)
                CLV_FAIL(
                    w->error, CLV_E_UNSUPPORTED,
                    "'%s' cannot be a program of its own: a part of it is computed by %s, not by a kernel",
                    w->of->name, launch->kind == CLV__LAUNCH_GEMM ? "a vendor's library" : "the host");
            if (pass == 0) {
                if (!clv__grow(&w->launches, &w->launches_room, w->n_launches + 1, sizeof *w->launches))
                    CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no memory for the launches of '%s'", w->of->name);
                w->launches[w->n_launches++] = launch;
            } else if (pass == 1 && launch->kind == CLV__LAUNCH_KERNEL) {
                put_arguments(w, node, number, launch);
            } else if (pass == 2) {
                CLV_TRY(put_command(w, node, number, launch));
            }
            number++;
        }
    }
    return CLV_OK;
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static void put_title(writer *w) {
    const clv_device_info *info = &w->of->device->info;
    clv__text_add(w->out,
                  "/* A case of `cleave check`, Cleave " CLEAVE_VERSION ", seed %" PRIu64
                  ", without Cleave:\n   ",
                  w->of->seed);
    put_comment(w->out, w->of->name);
    clv__text_add(w->out, "\n   as it is run on ");
    put_comment(w->out, info->label);
    clv__text_add(w->out, " (");
    put_comment(w->out, info->platform_name);
    clv__text_add(w->out, ", ");
    put_comment(w->out, info->driver);
    clv__text_add(w->out, ")\n\n   cc repro.c -lOpenCL -o repro && ./repro [PART OF A DEVICE'S NAME]\n\n"
                          "   Exit code 0: the device is right. 1: it is wrong. 3: it could not run. */\n");
    clv__text_add(w->out, "%s\n#define CASE ", clv__reproduce_head);
    put_string(w->out, w->of->name, strlen(w->of->name));
    clv__text_add(w->out, "\n#define DEVICE ");
    put_string(w->out, info->label, strlen(info->label));
    clv__text_add(w->out, "\n");
}

static clv_status write_all(writer *w) {
    CLV_TRY(each_launch(w, 0));
    if (!w->n_launches)
        CLV_FAIL(w->error, CLV_E_UNSUPPORTED, "'%s' has nothing for a device to do", w->of->name);
    if (w->of->plan) {
        CLV_TRY(lay_out_plan(w));
    } else {
        CLV_TRY(lay_out_use(w));
        CLV_TRY(lay_out_workspace(w, 0, w->of->launches));
    }
    put_title(w);
    CLV_TRY(put_source(w));
    CLV_TRY(put_tensors(w));
    CLV_TRY(each_launch(w, 1));
    clv__text_add(w->out, "static const struct command commands[] = {\n");
    CLV_TRY(each_launch(w, 2));
    clv__text_add(w->out, "};\n\n%s", clv__reproduce_main);
    if (w->out->failed)
        CLV_FAIL(w->error, CLV_E_HOST_MEMORY, "no memory for the program of '%s'", w->of->name);
    return CLV_OK;
}

clv_status clv__reproduce(const clv__reproduction *of, clv__error *error, clv__text *out) {
    size_t alignment = of->device->info.alignment_bytes > 128 ? of->device->info.alignment_bytes : 128;
    writer w = {.of = of,
                .error = error,
                .out = out,
                .alignment = alignment,
                .bytes = clv__size_align(GUARD_BYTES, alignment)};
    clv_status status = write_all(&w);
    free(w.zones);
    free(w.launches);
    return status;
}
