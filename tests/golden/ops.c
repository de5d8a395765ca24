// SPDX-License-Identifier: Apache-2.0
// Ops against PyTorch, one by one: a golden file says of each case which op it is, its inputs and its attributes, and it is called by
// name.
// usage: test_golden_ops FILE: the name of the golden file
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cleave/custom_op.h"
#include "golden/golden.h"
#include "io/array.h"

enum { MOST = 64 };

/** Inputs in the file's order; null: left out. An array with values afterwards is a buffer. */
static int inputs_of(golden *g, const json_t *list, clv_tensor **in) {
    size_t i;
    const json_t *name;
    json_array_foreach(list, i, name) {
        char after[256];
        assert_true(i < MOST);
        in[i] = NULL;
        if (json_is_null(name)) continue;
        snprintf(after, sizeof after, "%s%s.after", g->prefix, json_string_value(name));
        in[i] =
            (clv_archive_find(g->archive, after) ? golden_buffer : golden_input)(g, json_string_value(name));
    }
    return (int)json_array_size(list);
}

static clv_dtype dtype_of(const char *text) {
    clv_dtype dtype = CLV_DTYPE_F32;
    while (strcmp(clv_dtype_name(dtype), text)) dtype++;
    return dtype;
}

static void one(golden *g, json_t *call) {
    clv_tensor *in[MOST];
    clv_op_argument arguments[8];
    int64_t lists[8][CLV_MAX_RANK];
    int n = 0;
    const char *name, *op = json_string_value(json_object_get(call, "op"));
    json_t *value;
    json_object_foreach(json_object_get(call, "attributes"), name, value) {
        arguments[n] = (clv_op_argument){.name = name, .number = json_number_value(value)};
        if (json_is_string(value)) arguments[n].number = dtype_of(json_string_value(value));
        if (json_is_array(value)) {
            arguments[n].n = (int)json_array_size(value);
            arguments[n].list = lists[n];
            for (int i = 0; i < arguments[n].n; i++)
                lists[n][i] = json_integer_value(json_array_get(value, (size_t)i));
        }
        n++;
    }
    const int n_in = inputs_of(g, json_object_get(call, "inputs"), in);
    char loss[256];
    snprintf(loss, sizeof loss, "%sloss", g->prefix);
    golden_expect(g, clv_op_call(g->graph, op, in, n_in, arguments, n),
                  clv_archive_find(g->archive, loss) ? "loss" : "y");
    if (n_in < 32) golden_on_devices(g); // more are joined in groups: it is about how many
    golden_end(g);
}

TEST(every_case) {
    golden *g = *state;
    int n = 0;
    for (size_t i = 0; i < g->archive->n_texts; i++) {
        json_t *call = json_loads(g->archive->texts[i].text, 0, NULL);
        assert_non_null(call);
        one(golden_begin(state, g->archive->texts[i].key), call);
        json_decref(call);
        n++;
    }
    assert_true(n > 0);
}

static const char *file;

static int open_file(void **state) {
    const int code = golden_open(state, file);
    golden *g = *state;
    snprintf(g->pinned_path, sizeof g->pinned_path, "%s/tests/golden/ops_%s.pinned", CLV_TEST_BINARY_DIR,
             file);
    return code;
}

int main(int argc, char **argv) {
    file = argc > 1 ? argv[1] : "elementwise";
    return clv__tests_run(open_file, golden_close);
}
