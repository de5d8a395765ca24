// SPDX-License-Identifier: Apache-2.0
// Writes down every kernel that a device with lanes can get, with the macros it gets, as programs for compilers that need no
// device: each variant of each op that a null card with lanes supports, on every sample with its gradient, in f32, in f16 and followed
// by an epilogue. Elementwise kernels are one text around an expression: each expression is there, and each pair of other macros.
// One program a file of kernels_cl/, FOLDER/STEM.cl, and FOLDER/kernels.tsv, a line for each kernel:
//
//     name in the program   stem   entry   key   op   variant   work-items of a group   local bytes   what it was met in, and where
//
// The key is the entry and a hash of its defines, so it stays the same when the kernel's text changes.
// usage: offline_kernels FOLDER
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "check/subject.h"
#include "cleave/cleave.h"
#include "device/source.h"
#include "plan/plan.h"

typedef struct kernel {
    clv__source_entry at;
    char defines[CLV__DEFINES_BYTES], met[160];
    const char *op, *variant;
    size_t group, local;
    uint64_t hash, key;
} kernel;

static kernel *kernels;
static size_t n_kernels, room;
static clv__source_index sources;
static const clv_device_info *device;
static char note[160]; // what is being looked at

static void fail(const char *what) {
    fprintf(stderr, "offline_kernels: %s\n", what);
    exit(1);
}

static uint64_t *met; // hashes of what elementwise kernels were seen with
static size_t n_met, met_room;

static bool is_met(uint64_t hash) {
    for (size_t i = 0; i < n_met; i++)
        if (met[i] == hash) return true;
    if (!clv__grow(&met, &met_room, n_met + 1, sizeof *met)) fail("no memory");
    met[n_met++] = hash;
    return false;
}

/** An elementwise kernel is one text around an expression: each expression is wanted once, and each pair of other macros. */
static bool nothing_new(const kernel *found) {
    const char *lines[CLV__DEFINES_BYTES];
    size_t lengths[CLV__DEFINES_BYTES], n = 0, length;
    bool all_met = true;
    if (strcmp(found->at.stem, "elementwise") != 0) return false;
    const uint64_t entry = XXH3_64bits(found->at.entry, strlen(found->at.entry));
    for (const char *at = found->defines; *at; at += length + (at[length] == '\n')) {
        length = strcspn(at, "\n");
        if (strncmp(at, "EW_EXPR ", 8) != 0) {
            lines[n] = at;
            lengths[n++] = length;
        } else if (!is_met(XXH3_64bits_withSeed(at, length, entry))) {
            all_met = false;
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            if (!is_met(XXH3_64bits_withSeed(lines[i], lengths[i],
                                             XXH3_64bits_withSeed(lines[k], lengths[k], entry))))
                all_met = false;
    return all_met;
}

static void meet(const clv__launch *launch, const char *op, const char *variant) {
    if (launch->kind != CLV__LAUNCH_KERNEL) return;
    kernel found = {.op = op, .variant = variant, .group = 1};
    if (!clv__source_look_up(&sources, launch->source, launch->entry, &found.at)) fail("a launch names no source");
    for (int d = 0; d < launch->grid.dims; d++) found.group *= launch->grid.local[d] ? launch->grid.local[d] : 1;
    for (int i = 0; i < launch->n_slots; i++)
        if (launch->slots[i].kind == CLV__SLOT_LOCAL) found.local += launch->slots[i].bytes;
    strcpy(found.defines, launch->defines);
    strcpy(found.met, note);
    found.key = XXH3_64bits(launch->defines, strlen(launch->defines));
    found.hash = clv__source_hash(found.at.text_hash, launch->defines);
    for (size_t i = 0; i < n_kernels; i++)
        if (kernels[i].hash == found.hash && !strcmp(kernels[i].at.entry, launch->entry)) return;
    if (nothing_new(&found)) return;
    if (!clv__grow(&kernels, &room, n_kernels + 1, sizeof *kernels)) fail("no memory");
    kernels[n_kernels++] = found;
}

static void meet_all(const clv__launches *launches, const char *op, const char *variant) {
    for (size_t i = 0; i < launches->n; i++) meet(&launches->items[i], op, variant);
}

/** Every variant of every node of a graph, that the device supports. */
static void look_at_graph(const clv_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__op_io *io = &graph->nodes[i]->io;
        for (const clv__variant *v = io->op->variants; v && v->name; v++) {
            if (!clv__variant_supports(v, device, io)) continue;
            clv__launches launches = {.device = device};
            clv__variant_lower(v, &launches, io);
            if (!launches.failed) meet_all(&launches, io->op->name, v->name);
            clv__launches_reset(&launches);
        }
    }
}

static void look_at_samples(clv_runtime *runtime) {
    for (const clv__op *const *op = clv__ops; *op; op++) {
        clv__sample sample = {0};
        for (int i = 0; (*op)->sample && (*op)->sample(i, &sample); i++) {
            snprintf(note, sizeof note, "%s: %s, %s", (*op)->name, sample.label, device->name);
            for (int as = 0; as < 4; as++) { // f32; all in f16; every second in f16; followed by an epilogue
                clv__sample use = sample;
                if (as == 1 || as == 2) clv__sample_store(*op, CLV_DTYPE_F16, as == 1, &use);
                if (as == 3 && !clv__sample_follow(*op, &use)) continue;
                clv__subject subject;
                if (clv__subject_init(&subject, runtime, *op, &use, as < 2) == CLV_OK)
                    look_at_graph(subject.graph);
                clv__subject_reset(&subject);
            }
            sample = (clv__sample){0};
        }
    }
}

static int by_name(const void *a, const void *b) {
    const kernel *x = a, *y = b;
    int order = strcmp(x->at.stem, y->at.stem);
    if (!order) order = strcmp(x->at.entry, y->at.entry);
    return order ? order : x->key < y->key ? -1 : x->key > y->key;
}

static FILE *create(const char *folder, const char *name, const char *suffix) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *file = fopen(path, "w");
    if (!file) fail("a file cannot be made");
    return file;
}

static void write_table(const char *folder) {
    FILE *out = create(folder, "kernels", ".tsv");
    for (const kernel *k = kernels; k < kernels + n_kernels; k++)
        fprintf(out, "%s_%016" PRIx64 "\t%s\t%s\t%08" PRIx32 "\t%s\t%s\t%zu\t%zu\t%s\n", k->at.entry, k->hash, k->at.stem,
                k->at.entry, (uint32_t)k->key, k->op, k->variant, k->group, k->local, k->met);
    if (fclose(out)) fail("the table cannot be written");
}

/** One program a file: its instances behind each other, each with the kernels that were met. */
static void write_programs(const char *folder) {
    for (size_t i = 0; i < n_kernels;) {
        const clv__kernel_source *source = kernels[i].at.source;
        clv__text text = {0};
        clv__source_begin(&text, false, false);
        size_t end = i;
        while (end < n_kernels && kernels[end].at.source == source) end++;
        for (size_t first = i; first < end; first++) {
            clv__instance instance = {kernels[first].hash, source, kernels[first].defines, 0};
            bool done = false;
            for (size_t k = i; k < end; k++) {
                if (kernels[k].hash != instance.hash) continue;
                done |= k < first;
                instance.kernels |= kernels[k].at.kernel;
            }
            if (!done) clv__source_add(&text, &instance);
        }
        FILE *out = create(folder, source->stem, ".cl");
        if (text.failed || fwrite(text.data, 1, text.n, out) != text.n || fclose(out)) fail("a program cannot be written");
        clv__text_reset(&text);
        i = end;
    }
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    if (argc != 2) fail("usage: offline_kernels FOLDER");
    if (clv_runtime_create(
            &(clv_runtime_config){.null_devices = true, .null_cards = true, .no_opencl = true, .visible_devices = ""},
            &runtime))
        fail("no runtime");
    for (int i = 0; i < clv_device_count(runtime); i++) {
        device = clv_device_get_info(clv_device_get(runtime, i));
        if (!strncmp(device->name, "null", 4) && device->execution == CLV_EXECUTION_LANES) look_at_samples(runtime);
    }
    if (!n_kernels) fail("there is no device with lanes");
    qsort(kernels, n_kernels, sizeof *kernels, by_name);
    write_table(argv[1]);
    write_programs(argv[1]);
    clv_runtime_destroy(runtime);
    return 0;
}
