// SPDX-License-Identifier: Apache-2.0
// Writes down every kernel that a device with lanes can get, with the macros it gets, as programs for compilers that need no
// device: each variant of each op that a null card with lanes supports, on every sample with its gradient, in f32, in f16 and followed
// by an epilogue; and each node of the plans of all models, in training and inference, with the epilogues that only a model makes.
// Elementwise kernels are one text around an expression: each expression is there, and each pair of other macros. Products and their
// epilogues alike; of programs over rows each pair of macros is there, the program being one. Of elementwise kernels and programs
// over rows those are left out again whose every pair another has, too.
// Programs are FOLDER/STEM.cl, as programs.h says, and there is FOLDER/kernels.tsv, a line for each kernel:
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

#include "bench/cases.h"
#include "check/subject.h"
#include "cleave/cleave.h"
#include "drivers/programs.h"
#include "plan/plan.h"

static programs all;
static const clv_device_info *device;
static char note[160]; // what is being looked at

static void fail(const char *why) {
    programs_fail("offline_kernels", why);
}

typedef struct feature {
    uint64_t hash; // of a macro, or of a pair of them
    size_t n;      // kernels that have it
} feature;
static feature *features;
static size_t n_features, features_room;

static feature *feature_of(uint64_t hash) {
    for (size_t i = 0; i < n_features; i++)
        if (features[i].hash == hash) return &features[i];
    if (!clv__grow(&features, &features_room, n_features + 1, sizeof *features)) fail("no memory");
    features[n_features] = (feature){hash, 0};
    return &features[n_features++];
}

/** Kernels that are one text around another, which comes in macros that begin alike: elementwise kernels around an expression,
 *  programs over rows, and every kernel with its epilogue, which follows the loops that are counted. */
static const struct {
    const char *stem, *inner; // NULL: any other
    bool looped; // the loops hold the inner text: it is wanted with each other macro; else it is wanted once
    bool pairs;  // of the other macros each pair is wanted; else all that come together
    bool thin;   // a kernel is left out again if others have all of its pairs
} texts[] = {{"elementwise", "EW_EXPR ", false, true, true},
             {"gemm", "EPI_", false, true, false},
             {"pool", "EPI_", false, true, true},
             {"rows", "ROW_", true, true, true},
             {NULL, "EPI_", false, false, false}};

static size_t text_of(const char *stem) {
    size_t t = 0;
    while (texts[t].stem && strcmp(texts[t].stem, stem) != 0) t++;
    return t;
}

enum { MOST_MACROS = 64, MOST_FEATURES = MOST_MACROS * (MOST_MACROS + 1) / 2 + 1 };

/** Hashes of all that is wanted of a kernel: of its inner text, and of its other macros, each alone and with each other. */
static size_t hashes_of(const program_kernel *found, uint64_t hashes[MOST_FEATURES]) {
    uint64_t units[MOST_MACROS], inner;
    const size_t t = text_of(found->at.stem);
    size_t n = 1, made = 0;
    inner = XXH3_64bits(found->at.stem,
                        strlen(found->at.stem)); // whatever the entry: that with vectors is met first
    units[0] = XXH3_64bits(found->at.entry, strlen(found->at.entry));
    for (const char *at = found->defines; *at;) {
        const size_t length = strcspn(at, "\n");
        if (!strncmp(at, texts[t].inner, strlen(texts[t].inner)))
            inner = XXH3_64bits_withSeed(at, length, inner);
        else if (!texts[t].pairs)
            units[0] = XXH3_64bits_withSeed(at, length, units[0]);
        else if (n < MOST_MACROS - 1)
            units[n++] = XXH3_64bits_withSeed(at, length, units[0]);
        else
            fail("a kernel has too many macros");
        at += length + (at[length] == '\n');
    }
    hashes[made++] = inner;
    if (texts[t].looped) units[n++] = inner;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k <= i; k++)
            hashes[made++] = XXH3_64bits_withSeed(&units[i], sizeof *units, units[k]);
    return made;
}

/** Whether kernels that were met have all that this one has; if not, it is counted among them. */
static bool nothing_new(const program_kernel *found) {
    uint64_t hashes[MOST_FEATURES];
    const size_t n = hashes_of(found, hashes);
    bool new = false;
    for (size_t i = 0; i < n; i++) new |= !feature_of(hashes[i])->n;
    for (size_t i = 0; new &&i < n; i++) feature_of(hashes[i])->n++;
    return !new;
}

/** Leave out each kernel of which others have everything: it was met before those that have more. */
static void thin_out(void) {
    size_t kept = 0;
    for (size_t k = 0; k < all.n; k++) {
        uint64_t hashes[MOST_FEATURES];
        const size_t n = hashes_of(&all.items[k], hashes);
        bool needed = !texts[text_of(all.items[k].at.stem)].thin;
        for (size_t i = 0; i < n; i++) needed |= feature_of(hashes[i])->n == 1;
        for (size_t i = 0; !needed && i < n; i++) feature_of(hashes[i])->n--;
        if (needed) all.items[kept++] = all.items[k];
    }
    all.n = kept;
}

static void meet(const clv__launch *launch, const char *op, const char *variant) {
    bool known;
    if (launch->kind != CLV__LAUNCH_KERNEL) return;
    if (!device->matrix_units && strstr(launch->defines, "MATRIX_TYPE ")) return; // an emulation
    program_kernel found = programs_look(&all, launch, &known);
    if (known || nothing_new(&found)) return;
    found.op = op, found.variant = variant;
    strcpy(found.met, note);
    programs_add(&all, &found);
}

static void meet_all(const clv__launches *launches, const char *op, const char *variant) {
    for (size_t i = 0; i < launches->n; i++) meet(&launches->items[i], op, variant);
}

/** Every variant of every node of a graph, that the device supports. */
/** plain_types: in f32 and without an epilogue; else variants are left out that differ from another in numbers alone (`gemm:32x64`). */
static void look_at_graph(const clv_graph *graph, bool plain_types) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const clv__op_io *io = &graph->nodes[i]->io;
        const clv__variant *v = io->op->variants;
        while (v && v->name) v++;
        while (v && v > io->op->variants) {
            v--;
            if (!plain_types && strchr(v->name, ':')) continue;
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
        for (int i = 0; clv__op_sample(*op, i, &sample); i++) {
            snprintf(note, sizeof note, "%s: %s, %s", (*op)->name, sample.label, device->name);
            for (int as = 0; as < 4; as++) { // f32; all in f16; every second in f16; followed by an epilogue
                clv__sample use = sample;
                if (as > 0 && !sample.quick) break; // a kernel's macros that come of shapes: in f32
                if (as == 1 || as == 2) clv__sample_store(*op, CLV_DTYPE_F16, as == 1, &use);
                if (as == 3 && !clv__sample_follow(*op, &use)) continue;
                clv__subject subject;
                if (clv__subject_init(&subject, runtime, *op, &use, as < 2) == CLV_OK)
                    look_at_graph(subject.graph, as == 0);
                clv__subject_reset(&subject);
            }
        }
    }
}

/** The nodes of every model's plans, as they are planned: chains of epilogues are not met otherwise. */
static void look_at_models(clv_runtime *runtime, clv_device *card) {
    enum { BATCH = 8 };
    clv__bench_cases cases;
    if (clv__bench_cases_init(runtime, &(clv_bench_config){.suite = "models", .batch = BATCH}, &cases))
        fail("no models");
    for (size_t c = 0; c < cases.n; c++) {
        clv__bench_graph g;
        clv_plan *plan;
        snprintf(note, sizeof note, "%s, %s, %s", cases.items[c].name, cases.items[c].mode, device->name);
        if (clv__bench_build(runtime, &cases.items[c], CLV_PRECISION_F32, &g)) fail(clv_runtime_error(runtime));
        if (clv_plan_create(g.graph, &(clv_plan_config){.device = card}, &plan))
            fail(clv_runtime_error(runtime));
        for (size_t i = 0; i < plan->n_nodes; i++) {
            const clv__plan_node *at = &plan->nodes[i];
            if (at->work == CLV__COMPUTE && at->variant)
                meet_all(&at->launches, at->node->io.op->name, at->variant->name);
        }
        clv_plan_destroy(plan);
        clv_graph_destroy(g.graph);
    }
    clv__bench_cases_reset(&cases);
}

static void write_table(const char *folder) {
    FILE *out = programs_file(folder, "kernels", ".tsv");
    for (const program_kernel *k = all.items; k < all.items + all.n; k++)
        fprintf(out, "%s_%016" PRIx64 "\t%s\t%s\t%08" PRIx32 "\t%s\t%s\t%zu\t%zu\t%s\n", k->at.entry, k->hash,
                k->at.stem, k->at.entry, k->key, k->op, k->variant, k->group, k->local, k->met);
    if (fclose(out)) fail("the table cannot be written");
}

int main(int argc, char **argv) {
    clv_runtime *runtime = NULL;
    if (argc != 2) fail("usage: offline_kernels FOLDER");
    if (clv_runtime_create(
            &(clv_runtime_config){
                .null_devices = true, .null_cards = true, .no_opencl = true, .visible_devices = ""},
            &runtime))
        fail("no runtime");
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        device = clv_device_info_get(clv_device_get(runtime, i));
        if (!strncmp(device->name, "null", 4) && device->execution == CLV_EXECUTION_LANES)
            look_at_samples(runtime);
    }
    for (int i = 0; i < clv_runtime_info_get(runtime).n_devices; i++) {
        clv_device *card = clv_device_get(runtime, i);
        device = clv_device_info_get(card);
        if (!strncmp(device->name, "null", 4) && device->execution == CLV_EXECUTION_LANES)
            look_at_models(runtime, card);
    }
    if (!all.n) fail("there is no device with lanes");
    thin_out();
    programs_sort(&all);
    write_table(argv[1]);
    programs_write(&all, argv[1]);
    clv_runtime_destroy(runtime);
    return 0;
}
