// SPDX-License-Identifier: Apache-2.0
// Any text as the graph of a file: refused with a sentence, or a graph that is written, read and written again as the same text, and
// that a plan is made of or refused.
#include "cleave/cleave.h"
#include "fuzz/fuzz.h"
#include "nn/graph_file.h"

static clv_runtime *runtime;
static clv_device *device;
static clv_archive *archive;

/** The file's arrays: one that a graph may name. */
static void begin(void) {
    if (runtime) return;
    static const float numbers[4] = {1, 2, 3, 4};
    const clv_runtime_config config = {
        .null_devices = true, .no_opencl = true, .visible_devices = "", .partition = ""};
    clv_graph *graph;
    REQUIRE(clv_runtime_create(&config, &runtime) == CLV_OK);
    REQUIRE(clv_device_find(runtime, "null:0", &device) == CLV_OK);
    REQUIRE(clv_archive_create(runtime, &archive) == CLV_OK);
    REQUIRE(clv_graph_create(runtime, &graph) == CLV_OK);
    const clv_tensor *constant = clv_constant(graph, CLV_DTYPE_F32, CLV_SHAPE(4), numbers);
    const clv_shape shape = clv_tensor_shape(constant);
    REQUIRE(clv_archive_add(archive, clv_tensor_name(constant), CLV_DTYPE_F32, &shape, numbers, NULL) ==
            CLV_OK);
    clv_graph_destroy(graph);
}

static void require_printable(void) {
    const char *said = clv_runtime_error(runtime);
    REQUIRE(*said);
    for (const char *c = said; *c; c++) {
        const bool printable = (unsigned char)*c >= 0x20 && *c != 0x7f;
        if (!printable) fprintf(stderr, "the sentence: %s\n", said);
        REQUIRE(printable);
    }
}

/** The graph's text; the archive that holds it is the caller's. */
static const char *text_of(const clv_graph *graph, clv_archive **out) {
    REQUIRE(clv_archive_create(runtime, out) == CLV_OK);
    const clv_status status = clv__graph_to_archive(graph, *out);
    if (status != CLV_OK) fprintf(stderr, "not written: %s\n", clv_runtime_error(runtime));
    REQUIRE(status == CLV_OK);
    return clv_archive_text(*out, CLV__GRAPH_KEY);
}

static void comes_back(const clv_graph *graph) {
    clv_archive *first, *second;
    clv_graph *again;
    const char *text = text_of(graph, &first);
    REQUIRE(clv_graph_create(runtime, &again) == CLV_OK);
    REQUIRE(clv__graph_from_archive(again, first, "x") == CLV_OK);
    REQUIRE(!strcmp(text_of(again, &second), text));
    clv_archive_destroy(second);
    clv_archive_destroy(first);
    clv_graph_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    begin();
    char *text = malloc(size + 1);
    clv_graph *graph;
    clv_plan *plan = NULL;
    REQUIRE(text);
    memcpy(text, data, size);
    text[size] = 0;
    const bool possible = clv_archive_set_text(archive, CLV__GRAPH_KEY, text) == CLV_OK; // UTF-8
    free(text);
    if (!possible) return 0;
    REQUIRE(clv_graph_create(runtime, &graph) == CLV_OK);
    if (clv__graph_from_archive(graph, archive, "x") == CLV_OK) {
        comes_back(graph);
        if (clv_plan_create(graph, &(clv_plan_config){.device = device}, &plan) != CLV_OK)
            require_printable();
        clv_plan_destroy(plan);
    } else {
        require_printable();
    }
    clv_graph_destroy(graph);
    return 0;
}
