// SPDX-License-Identifier: Apache-2.0
// Nodes with their launches and their memory as C; see nodes.h.
#include "drivers/meter/nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "drivers/meter/meter.h"
#include "drivers/programs.h"

enum { WORKSPACE = CLV__MAX_IN + CLV__MAX_OUT, GRADIENTS, BUFFERS = GRADIENTS + CLV__GRADIENT_CHUNKS };
_Static_assert((int)BUFFERS <= (int)METER_MOST_BUFFERS, "meter.h has too few");

/** What is written of a node. */
typedef struct entry {
    char *text; // its launches as C, without a number
    char *head; // its buffers
    node_label label;
    uint64_t hash;
    size_t must;
    int n_launches, count;
} entry;

static programs all;
static entry *entries;
static size_t n_entries, entries_room;
static FILE *data;
static long data_bytes;

// ---- launches as C -------------------------------------------------------------------------------------------------------

/** The buffer of a slot, and where in it. */
static int place_of(const clv__slot *slot, size_t *at) {
    *at = slot->kind == CLV__SLOT_WORKSPACE ? slot->offset : 0;
    return slot->kind == CLV__SLOT_IN          ? slot->index
           : slot->kind == CLV__SLOT_OUT       ? CLV__MAX_IN + slot->index
           : slot->kind == CLV__SLOT_GRADIENTS ? GRADIENTS + slot->index
                                               : WORKSPACE;
}

void nodes_fail(const char *why) {
    programs_fail("meter_launches", why);
}

void nodes_begin(const char *folder) {
    data = programs_file(folder, "data", ".bin");
}

long nodes_keep(const void *bytes, size_t n) {
    const long at = data_bytes;
    if (fwrite(bytes, 1, n, data) != n) nodes_fail("values cannot be written");
    data_bytes += (long)n;
    return at;
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
        case CLV__SLOT_GRADIENTS: clv__text_add(calls, "b[%d]", GRADIENTS + slot->index); break;
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
        if (slot->kind == CLV__SLOT_LOCAL) nodes_fail("a kernel for lanes takes local memory as an argument");
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

/** How far a result may be off, as a part of the largest: by f32's roundings, or by those of operands. */
static double within_of(const clv__op *op, const char *variant) {
    const double usual = 1e-4;
    const clv__variant *v = op->variants;
    while (v && v->name && strcmp(v->name, variant) != 0) v++;
    return v && v->name && clv__variant_roundoff(v) > usual ? clv__variant_roundoff(v) : usual;
}

/** desc NULL: the tensor is not there. */
static void add_buffer(clv__text *head, const clv__desc *desc, long given, long wanted, double within) {
    if (!desc) {
        clv__text_add(head, "    {0, -1, -1, 0, 0, 0, 0},\n");
        return;
    }
    const bool whole = desc->dtype == CLV_DTYPE_I32;
    clv__text_add(head, "    {%zu, %ld, %ld, %lld, %d, %g, %d},\n", clv__desc_bytes(desc), given, wanted,
                  (long long)clv__numel(desc), whole, whole ? 0 : within, whole);
}

bool nodes_add(const node_label *label, const clv__op_io *io, const char *variant,
               const clv__launches *launches, const node_values *known) {
    clv__text calls = {0}, rows = {0}, head = {0};
    entry new = {.label = *label, .count = 1, .n_launches = (int)launches->n};
    char name[64];
    for (size_t i = 0; i < launches->n; i++) {
        if (launches->items[i].kind == CLV__LAUNCH_GEMM || launches->items[i].kind == CLV__LAUNCH_REFERENCE)
            return false;
        snprintf(name, sizeof name, "call_@_%zu", i);
        add_launch(&calls, &rows, &launches->items[i], io->op->name, variant, name);
    }
    for (int i = 0; i < CLV__MAX_IN; i++) {
        const clv__desc *in = clv__has_in(io, i) ? &io->in[i] : NULL;
        add_buffer(&head, in, in && known ? known->given[i] : -1, -1, 0);
        if (in) new.must += clv__desc_bytes(in) * (io->op->mutates >> i & 1 ? 2 : 1); // read and written
    }
    for (int i = 0; i < CLV__MAX_OUT; i++) {
        const clv__desc *out = i < io->n_out ? &io->out[i] : NULL;
        add_buffer(&head, out, -1, out && known ? known->wanted[i] : -1, within_of(io->op, variant));
        if (out) new.must += clv__desc_bytes(out);
    }
    clv__text_add(&head, "    {%zu, -1, -1, 0, 0, 0, 0},\n", launches->workspace_bytes);
    for (int i = 0; i < CLV__GRADIENT_CHUNKS; i++) {
        const size_t bytes = known ? known->gradients[i] : 0;
        clv__text_add(&head, "    {%zu, -1, -1, 0, 0, 0, 0},\n", bytes);
        new.must += bytes;
    }
    clv__text_add(&calls, "static const meter_launch launches_@[] = {\n%s};\n", clv__text_get(&rows));
    if (calls.failed || rows.failed || head.failed) nodes_fail("no memory");
    new.text = strdup(clv__text_get(&calls));
    new.head = strdup(clv__text_get(&head));
    new.hash = XXH3_64bits_withSeed(new.text, strlen(new.text), XXH3_64bits(new.head, strlen(new.head)));
    clv__text_reset(&calls);
    clv__text_reset(&rows);
    clv__text_reset(&head);
    for (size_t i = 0; i < n_entries; i++) { // one that is alike
        const node_label *other = &entries[i].label;
        if (known || entries[i].hash != new.hash || other->alone != label->alone ||
            strcmp(other->model, label->model) != 0 || strcmp(other->use, label->use) != 0)
            continue;
        entries[i].count++;
        free(new.text);
        free(new.head);
        return true;
    }
    if (!new.text || !new.head || !clv__grow(&entries, &entries_room, n_entries + 1, sizeof new))
        nodes_fail("no memory");
    entries[n_entries++] = new;
    return true;
}

// ---- what is written -----------------------------------------------------------------------------------------------------

static void put_numbered(FILE *out, const char *text, size_t number) {
    for (; *text; text++)
        if (*text == '@')
            fprintf(out, "%zu", number);
        else
            fputc(*text, out);
}

void nodes_write(const char *folder) {
    if (fclose(data)) nodes_fail("values cannot be written");
    programs_sort(&all);
    programs_write(&all, folder);
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
        fprintf(out, "    {\"%s\", \"%s\", %d, %d, buffers_%zu, %d, %zu, launches_%zu, %d},\n",
                entries[i].label.model, entries[i].label.use, entries[i].label.alone, entries[i].count, i,
                BUFFERS, entries[i].must, i, entries[i].n_launches);
    fprintf(out, "};\nconst int meter_n_nodes = %zu;\n", n_entries);
    if (fclose(out)) nodes_fail("nodes.c cannot be written");
}
