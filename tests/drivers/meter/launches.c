// SPDX-License-Identifier: Apache-2.0
// Writes down what a null card is asked to do, for meter.c and ptx/ptx.c: FOLDER/STEM.cl, the kernels; FOLDER/nodes.c, nodes with their launches
// and their memory as C, one beside the other where they are alike; FOLDER/data.bin, values for the samples.
//
//     a training step of resnet18, of mobilenet_v2 and of the GPT, on the card: nodes as its plan has them
//     every sample of every op, with its gradient, in f32: each variant of each node, with inputs and what the reference makes of them
//
// usage: meter_launches FOLDER CARD       CARD: null:rx-580
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "bench/cases.h"
#include "check/subject.h"
#include "cleave/cleave.h"
#include "drivers/programs.h"
#include "plan/plan.h"
#include "tensor/half.h"

enum { WORKSPACE = CLV__MAX_IN + CLV__MAX_OUT, BUFFERS = WORKSPACE + 1, BATCH = 4 };

/** What is written of a node. */
typedef struct entry {
    char *text; // its launches as C, without a number
    char *head; // its buffers
    char model[32], use[160];
    uint64_t hash;
    size_t must;
    int n_launches, count;
} entry;

static programs all;
static entry *entries;
static size_t n_entries, entries_room;
static FILE *data;
static long data_bytes;
static clv_runtime *runtime;
static clv_device *card;
static const clv_device_info *device; // of the card

static void fail(const char *why) {
    programs_fail("meter_launches", why);
}
static void must_be(clv_status status) {
    if (status != CLV_OK) fail(clv_runtime_error(runtime));
}

// ---- launches as C -------------------------------------------------------------------------------------------------------

/** The buffer of a slot, and where in it. */
static int place_of(const clv__slot *slot, size_t *at) {
    *at = slot->kind == CLV__SLOT_WORKSPACE ? slot->offset : 0;
    return slot->kind == CLV__SLOT_IN    ? slot->index
           : slot->kind == CLV__SLOT_OUT ? CLV__MAX_IN + slot->index
                                         : WORKSPACE;
}

static void add_call(clv__text *calls, const clv__launch *launch, const program_kernel *kernel,
                     const char *name) {
    size_t local = 0;
    clv__text_add(calls,
                  "#ifndef METER_NO_CALLS\nstatic void %s(char *const *b, char *local) {\n    ((void (*)(",
                  name);
    for (int i = 0; i < launch->n_slots; i++)
        clv__text_add(calls, "%s%s", i ? ", " : "",
                      launch->slots[i].kind == CLV__SLOT_I32   ? "int"
                      : launch->slots[i].kind == CLV__SLOT_F32 ? "float"
                                                               : "char *");
    clv__text_add(calls, "))%s_%016" PRIx64 ")(", kernel->at.entry, kernel->hash);
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        uint32_t bits;
        memcpy(&bits, &slot->f32, sizeof bits);
        if (i) clv__text_add(calls, ", ");
        switch (slot->kind) {
        case CLV__SLOT_IN: clv__text_add(calls, "b[%d]", slot->index); break;
        case CLV__SLOT_OUT: clv__text_add(calls, "b[%d]", CLV__MAX_IN + slot->index); break;
        case CLV__SLOT_WORKSPACE: clv__text_add(calls, "b[%d] + %zu", WORKSPACE, slot->offset); break;
        case CLV__SLOT_I32: clv__text_add(calls, "%" PRId32, slot->i32); break;
        case CLV__SLOT_F32: clv__text_add(calls, "f(0x%08" PRIx32 "u)", bits); break;
        case CLV__SLOT_GRADIENTS: programs_fail(launch->entry, "gradients of a whole plan are not metered"); break;
        case CLV__SLOT_LOCAL:
            clv__text_add(calls, "local + %zu", local);
            local += (slot->bytes + 255) / 256 * 256;
        }
    }
    clv__text_add(calls, ");\n    (void)b;\n    (void)local;\n}\n#endif\n");
}

/** The same arguments as data. Only kernels for threads are handed local memory. */
static void add_args(clv__text *calls, const clv__launch *launch, const char *name) {
    clv__text_add(calls, "static const meter_arg args_%s[] = {", name);
    for (int i = 0; i < launch->n_slots; i++) {
        const clv__slot *slot = &launch->slots[i];
        uint32_t bits = (uint32_t)slot->i32;
        if (slot->kind == CLV__SLOT_LOCAL) fail("a kernel for lanes takes local memory as an argument");
        if (slot->kind == CLV__SLOT_F32) memcpy(&bits, &slot->f32, sizeof bits);
        const bool value = slot->kind == CLV__SLOT_I32 || slot->kind == CLV__SLOT_F32;
        size_t at = 0;
        const int buffer = value ? -1 : place_of(slot, &at);
        clv__text_add(calls, "{%d, %zu, 0x%" PRIx32 "u}%s", buffer, at, value ? bits : 0,
                      i + 1 < launch->n_slots ? ", " : "};\n");
    }
}

static void add_launch(clv__text *calls, clv__text *rows, const clv__launch *launch, const char *op,
                       const char *variant, const char *name) {
    const clv__grid *g = &launch->grid;
    if (launch->kind == CLV__LAUNCH_KERNEL) {
        bool known;
        program_kernel kernel = programs_look(&all, launch, &known);
        kernel.op = op, kernel.variant = variant;
        if (!known) programs_add(&all, &kernel);
        add_call(calls, launch, &kernel, name);
        add_args(calls, launch, name);
        clv__text_add(rows,
                      "    {.kind = METER_KERNEL, .entry = \"%s\", .key = \"%08" PRIx32
                      "\", .name = \"%s_%016" PRIx64
                      "\", .args = args_%s, .n_args = %d, .call = METER_CALL(%s), .global = {",
                      kernel.at.entry, kernel.key, kernel.at.entry, kernel.hash, name, launch->n_slots, name);
        for (int d = 0; d < 3; d++)
            clv__text_add(rows, "%zu%s", d < g->dims ? g->global[d] : 1, d < 2 ? ", " : "}, .local = {");
        for (int d = 0; d < 3; d++)
            clv__text_add(rows, "%zu%s", d < g->dims ? g->local[d] : 1, d < 2 ? ", " : "}},\n");
        return;
    }
    size_t to_at, from_at = 0;
    const int to = place_of(&launch->slots[0], &to_at);
    const int from = launch->kind == CLV__LAUNCH_COPY ? place_of(&launch->slots[1], &from_at) : 0;
    clv__text_add(rows,
                  "    {.kind = %s, .to = %d, .to_at = %zu, .from = %d, .from_at = %zu, .bytes = %zu, "
                  ".pattern = 0x%08" PRIx32 "u},\n",
                  launch->kind == CLV__LAUNCH_COPY ? "METER_COPY" : "METER_FILL", to, to_at, from, from_at,
                  launch->bytes, launch->pattern);
}

// ---- nodes ---------------------------------------------------------------------------------------------------------------

/** Where the values of a sample's tensors are in data.bin; -1: nowhere. */
typedef struct values {
    long given[CLV__MAX_IN], wanted[CLV__MAX_OUT];
} values;

static void add_buffer(clv__text *head, const clv__desc *desc, bool there, long given, long wanted) {
    if (!there) {
        clv__text_add(head, "    {0, -1, -1, 0, 0, 0, 0},\n");
        return;
    }
    const bool whole = desc->dtype == CLV_DTYPE_I32;
    clv__text_add(head, "    {%zu, %ld, %ld, %lld, %d, %s, %d},\n", clv__desc_bytes(desc), given, wanted,
                  (long long)clv__numel(desc), whole, whole ? "0" : "1e-4", whole);
}

/** A node, as a plan has it or by itself, with launches that can be run: kernels, copies, fills. */
static void add_node(const char *model, const char *use, const clv__op_io *io, const char *variant,
                     const clv__launches *launches, const values *known) {
    clv__text calls = {0}, rows = {0}, head = {0};
    entry new = {.count = 1, .n_launches = (int)launches->n};
    char name[64];
    for (size_t i = 0; i < launches->n; i++) {
        if (launches->items[i].kind == CLV__LAUNCH_GEMM || launches->items[i].kind == CLV__LAUNCH_REFERENCE)
            return;
        snprintf(name, sizeof name, "call_@_%zu", i);
        add_launch(&calls, &rows, &launches->items[i], io->op->name, variant, name);
    }
    for (int i = 0; i < CLV__MAX_IN; i++) {
        const bool there = i < io->n_in && clv__has_in(io, i);
        add_buffer(&head, &io->in[i], there, there && known ? known->given[i] : -1, -1);
        if (there)
            new.must += clv__desc_bytes(&io->in[i]) * (io->op->mutates >> i & 1 ? 2 : 1); // read and written
    }
    for (int i = 0; i < CLV__MAX_OUT; i++) {
        add_buffer(&head, &io->out[i], i < io->n_out, -1, i < io->n_out && known ? known->wanted[i] : -1);
        if (i < io->n_out) new.must += clv__desc_bytes(&io->out[i]);
    }
    clv__text_add(&head, "    {%zu, -1, -1, 0, 0, 0, 0},\n", launches->workspace_bytes);
    clv__text_add(&calls, "static const meter_launch launches_@[] = {\n%s};\n", clv__text_get(&rows));
    if (calls.failed || rows.failed || head.failed) fail("no memory");
    snprintf(new.model, sizeof new.model, "%s", model);
    snprintf(new.use, sizeof new.use, "%s", use);
    new.text = strdup(clv__text_get(&calls));
    new.head = strdup(clv__text_get(&head));
    new.hash = XXH3_64bits_withSeed(new.text, strlen(new.text), XXH3_64bits(new.head, strlen(new.head)));
    clv__text_reset(&calls);
    clv__text_reset(&rows);
    clv__text_reset(&head);
    for (size_t i = 0; i < n_entries; i++) { // one that is alike
        if (known || entries[i].hash != new.hash || strcmp(entries[i].model, model) ||
            strcmp(entries[i].use, use))
            continue;
        entries[i].count++;
        free(new.text);
        free(new.head);
        return;
    }
    if (!new.text || !new.head || !clv__grow(&entries, &entries_room, n_entries + 1, sizeof new))
        fail("no memory");
    entries[n_entries++] = new;
}

static void look_at_model(const char *name) {
    clv__bench_cases cases = {0};
    clv__bench_graph g;
    clv_plan *plan;
    const clv_bench_config config = {.suite = "models", .mode = "train", .model = name, .batch = BATCH};
    must_be(clv__bench_cases_init(runtime, &config, &cases));
    if (cases.n != 1) fail("there is no such model");
    must_be(clv__bench_build(runtime, &cases.items[0], &g));
    must_be(clv_plan_create(g.graph, &(clv_plan_config){.device = card}, &plan));
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const clv__plan_node *at = &plan->nodes[i];
        char use[160];
        if (at->work != CLV__COMPUTE || !at->variant || !at->launches.n) continue;
        snprintf(use, sizeof use, "%s:%s", at->node->io.op->name, at->variant->name);
        add_node(name, use, &at->node->io, at->variant->name, &at->launches, NULL);
    }
    clv_plan_destroy(plan);
    clv_graph_destroy(g.graph);
    clv__bench_cases_reset(&cases);
}

// ---- samples -------------------------------------------------------------------------------------------------------------

static long keep(const void *bytes, size_t n) {
    const long at = data_bytes;
    if (fwrite(bytes, 1, n, data) != n) fail("values cannot be written");
    data_bytes += (long)n;
    return at;
}

/** A tensor's values as the kernel gets them. */
static long keep_elements(const clv_tensor *tensor, const double *from) {
    void *elements = malloc(clv__desc_bytes(&tensor->desc) + 1);
    if (!elements) fail("no memory");
    clv__elements_narrow(tensor->desc.dtype, from, clv__numel(&tensor->desc), elements);
    const long at = keep(elements, clv__desc_bytes(&tensor->desc));
    free(elements);
    return at;
}

static bool
is_whole(const clv_tensor
             *tensor) { // f32 and i32 alone are compared here; how others are stored, cleave check knows
    return !tensor || !clv__is_half(tensor->desc.dtype);
}

/** So many samples of each variant of each op are enough, and small ones. */
enum { SAMPLES = 3, MOST_ELEMENTS = 1 << 14, MOST_VARIANTS = 512 };
static struct {
    const clv__variant *variant;
    const clv__op *op;
    int n;
} had[MOST_VARIANTS];

static bool is_wanted(const clv__op *op, const clv__variant *variant) {
    int i = 0;
    while (had[i].variant && (had[i].variant != variant || had[i].op != op)) i++;
    if (i == MOST_VARIANTS - 1) fail("too many variants");
    had[i].variant = variant, had[i].op = op;
    return had[i].n++ < SAMPLES;
}

static values keep_values(const clv__node *node, const clv__values *before, const clv__values *after) {
    values known;
    for (int k = 0; k < node->io.n_in; k++) {
        const clv_tensor *tensor = node->in[k];
        known.given[k] =
            tensor ? keep_elements(tensor, (tensor->node ? after : before)->data[tensor->id]) : -1;
    }
    for (int k = 0; k < node->io.n_out; k++)
        known.wanted[k] =
            keep(after->data[node->out[k]->id], (size_t)clv__numel(&node->out[k]->desc) * sizeof(double));
    return known;
}

static bool is_small(const clv__node *node) {
    int64_t n = 0;
    for (int k = 0; k < node->io.n_in; k++) n += node->in[k] ? clv__numel(&node->in[k]->desc) : 0;
    for (int k = 0; k < node->io.n_out; k++) n += clv__numel(&node->out[k]->desc);
    bool small = n <= MOST_ELEMENTS;
    for (int k = 0; k < node->io.n_in; k++) small &= is_whole(node->in[k]);
    for (int k = 0; k < node->io.n_out; k++) small &= is_whole(node->out[k]);
    return small;
}

static void look_at_subject(clv__subject *subject, const char *label) {
    const clv_graph *graph = subject->graph;
    clv__error *error = clv__runtime_error_of(runtime);
    clv__values after = {0};
    must_be(clv__subject_fill(subject, 1));
    must_be(clv__values_init(&after, graph, error));
    for (size_t i = 0; i < graph->n_tensors; i++)
        memcpy(after.data[i], subject->start.data[i],
               (size_t)clv__numel(&graph->tensors[i]->desc) * sizeof(double));
    must_be(clv__interpret(&after, NULL, error));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__node *node = graph->nodes[i];
        values known;
        bool kept = false;
        for (const clv__variant *v = node->io.op->variants; is_small(node) && v && v->name; v++) {
            char use[160];
            clv__launches launches = {.device = device};
            if (!clv__variant_supports(v, device, &node->io)) continue;
            clv__variant_lower(v, &launches, &node->io);
            if (!launches.failed && launches.n && is_wanted(node->io.op, v)) {
                if (!kept) known = keep_values(node, &subject->start, &after);
                kept = true;
                snprintf(use, sizeof use, "%s:%s, %s", node->io.op->name, v->name, label);
                add_node("", use, &node->io, v->name, &launches, &known);
            }
            clv__launches_reset(&launches);
        }
    }
    clv__values_reset(&after);
}

static void look_at_samples(void) {
    for (const clv__op *const *op = clv__ops; *op; op++) {
        clv__sample sample = {0};
        for (int i = 0; clv__op_sample(*op, i, &sample); i++) {
            clv__subject subject;
            must_be(clv__subject_init(&subject, runtime, *op, &sample, true));
            look_at_subject(&subject, sample.label);
            clv__subject_reset(&subject);
            sample = (clv__sample){0};
        }
    }
}

// ---- what is written -----------------------------------------------------------------------------------------------------

static void put_numbered(FILE *out, const char *text, size_t number) {
    for (; *text; text++)
        if (*text == '@')
            fprintf(out, "%zu", number);
        else
            fputc(*text, out);
}

static void write_nodes(const char *folder) {
    FILE *out = programs_file(folder, "nodes", ".c");
    fprintf(out, "#include \"meter.h\"\n#include <string.h>\n#ifndef METER_NO_CALLS\n"
                 "static inline float f(uint32_t bits) {\n    float v;\n    memcpy(&v, &bits, 4);\n    "
                 "return v;\n}\n");
    for (size_t i = 0; i < all.n; i++)
        fprintf(out, "void %s_%016" PRIx64 "();\n", all.items[i].at.entry, all.items[i].hash);
    fprintf(out, "#endif\n");
    for (size_t i = 0; i < n_entries; i++) {
        put_numbered(out, entries[i].text, i);
        fprintf(out, "static const meter_buffer buffers_%zu[] = {\n%s};\n", i, entries[i].head);
    }
    fprintf(out, "const meter_node meter_nodes[] = {\n");
    for (size_t i = 0; i < n_entries; i++)
        fprintf(out, "    {\"%s\", \"%s\", %d, buffers_%zu, %d, %zu, launches_%zu, %d},\n", entries[i].model,
                entries[i].use, entries[i].count, i, BUFFERS, entries[i].must, i, entries[i].n_launches);
    fprintf(out, "};\nconst int meter_n_nodes = %zu;\n", n_entries);
    if (fclose(out)) fail("nodes.c cannot be written");
}

int main(int argc, char **argv) {
    if (argc != 3) fail("usage: meter_launches FOLDER CARD");
    const clv_runtime_config config = {
        .null_devices = true, .null_cards = true, .no_opencl = true, .visible_devices = "", .tuning = "none"};
    if (clv_runtime_create(&config, &runtime) != CLV_OK) fail("no runtime");
    must_be(clv_device_find(runtime, argv[2], &card));
    device = clv_device_info_get(card);
    data = programs_file(argv[1], "data", ".bin");
    static const char *const models[] = {"resnet18", "mobilenet_v2", "gpt"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) look_at_model(models[i]);
    look_at_samples();
    if (fclose(data)) fail("values cannot be written");
    programs_sort(&all);
    programs_write(&all, argv[1]);
    write_nodes(argv[1]);
    clv_runtime_destroy(runtime);
    return 0;
}
