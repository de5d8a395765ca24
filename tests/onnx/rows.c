// SPDX-License-Identifier: Apache-2.0
// Every row of the importer: a file of one node, its results, and the gradients of its inputs, against what PyTorch computed
// (make_rows.py). On an OpenCL device with a number in CLEAVE_TURN every third case. On the host once more from a file that clv_onnx_write
// makes of the graph.
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "cleave/cleave.h"
#include "device/device.h"
#include "harness/harness.h"
#include "onnx/import.h"
#include "onnx/write.h"

enum { MOST = 9 };

TEST_RUNTIME_OF(NULL)

typedef struct job {
    const char *name; // of the case
    clv_archive *archive;
    clv__onnx_model *file;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    clv_tensor *in[MOST], *out[MOST], *dy;
    int n_in, n_out;
    bool failed, again; // again: from a file that is written
} job;

static const clv_array *part(const job *j, const char *what, int i) {
    char name[128];
    snprintf(name, sizeof name, i < 0 ? "%s/%s" : "%s/%s%d", j->name, what, i);
    return clv_archive_find(j->archive, name);
}

/** A case that fails is told, and does not hide the others. */
static bool must(job *j, clv_status status) {
    if (status != CLV_OK && !j->failed) print_error("%s: %s\n", j->name, clv_runtime_error(runtime));
    j->failed |= status != CLV_OK;
    return !j->failed;
}

/** Inputs of which a gradient is held are parameters. */
static void make_inputs(job *j) {
    const clv_array *fed;
    for (; (fed = part(j, "in", j->n_in)); j->n_in++) {
        char name[16];
        snprintf(name, sizeof name, "in%d", j->n_in);
        assert_true(j->n_in < MOST);
        j->in[j->n_in] = part(j, "grad", j->n_in) ? clv_parameter(j->graph, name, fed->shape, (clv_init){0})
                                                  : clv_input(j->graph, name, fed->type, fed->shape);
    }
}

/** What a step computes, which inputs and constants are not. */
static clv_tensor *computed(const job *j, clv_tensor *x) {
    return x ? clv_add(x, clv_full(j->graph, clv_tensor_dtype(x), (clv_shape){0}, 0)) : NULL;
}

static void make_outputs(job *j) {
    clv__onnx_build(j->file, 0, j->in, j->out);
    if (!must(j, clv_graph_status(j->graph))) return;
    for (; part(j, "out", j->n_out); j->n_out++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", j->n_out);
        j->out[j->n_out] = computed(j, j->out[j->n_out]);
        clv_output(j->out[j->n_out], name);
    }
    const clv_array *dy = part(j, "dy", -1);
    if (!dy) return;
    j->dy = clv_input(j->graph, "dy", CLV_DTYPE_F32, dy->shape);
    clv_backward(clv_sum(clv_mul(j->out[0], j->dy), NULL, 0, false));
    for (int i = 0; i < j->n_in; i++) {
        char name[16];
        snprintf(name, sizeof name, "grad%d", i);
        if (part(j, "grad", i)) clv_output(clv_gradient(j->in[i]), name);
    }
}

static void feed(job *j) {
    for (int i = 0; i < j->n_in; i++) {
        const clv_array *fed = part(j, "in", i);
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        if (!part(j, "grad", i))
            must(j, clv_run_feed(j->run, j->in[i], fed->data, clv_array_bytes(fed)));
        else
            must(j, clv_session_write(j->session, clv_session_find(j->session, name), fed->data,
                                      clv_array_bytes(fed)));
    }
    const clv_array *dy = part(j, "dy", -1);
    if (dy) must(j, clv_run_feed(j->run, j->dy, dy->data, clv_array_bytes(dy)));
}

static double number(const void *data, clv_dtype type, int64_t i) {
    return type == CLV_DTYPE_F32 ? (double)((const float *)data)[i] : (double)((const int32_t *)data)[i];
}

/** Within 2e-5 of the largest; whole numbers are the same. */
static void compare(job *j, int64_t ticket, clv_tensor *tensor, const char *what, int i) {
    const clv_array *wanted = part(j, what, i);
    const clv_shape shape = clv_tensor_shape(tensor);
    const clv_dtype type = clv_tensor_dtype(tensor);
    const int64_t n = clv_shape_numel(&shape);
    char text[96], other[96];
    if (!clv_shape_equal(&shape, &wanted->shape) || type != wanted->type) {
        print_error("%s: %s%d is %s %s, not %s %s\n", j->name, what, i, clv_dtype_name(type),
                    clv_shape_text(&shape, text, sizeof text), clv_dtype_name(wanted->type),
                    clv_shape_text(&wanted->shape, other, sizeof other));
        j->failed = true;
        return;
    }
    void *is = calloc((size_t)n + 1, 4);
    double most = 1;
    assert_non_null(is);
    must(j, clv_run_fetch(j->run, ticket, tensor, is, clv_tensor_bytes(tensor)));
    for (int64_t k = 0; k < n; k++) most = fmax(most, fabs(number(wanted->data, type, k)));
    for (int64_t k = 0; k < n && !j->failed; k++) {
        const double a = number(is, type, k), b = number(wanted->data, type, k);
        if (fabs(a - b) <= (type == CLV_DTYPE_F32 ? 2e-5 * most : 0)) continue;
        print_error("%s: %s%d[%lld] is %.9g, not %.9g\n", j->name, what, i, (long long)k, a, b);
        j->failed = true;
    }
    free(is);
}

static void run(job *j) {
    int64_t ticket = 0;
    feed(j);
    if (!must(j, clv_run_step(j->run, &ticket))) return;
    for (int i = 0; i < j->n_out; i++) compare(j, ticket, j->out[i], "out", i);
    for (int i = 0; i < j->n_in; i++)
        if (part(j, "grad", i)) compare(j, ticket, clv_gradient(j->in[i]), "grad", i);
}

/** The file that is written of the graph in place of the one that was read. */
static void write_again(job *j) {
    static const char *const in[MOST] = {"in0", "in1", "in2", "in3", "in4", "in5", "in6", "in7", "in8"},
                             *const out[MOST] = {"out0", "out1", "out2", "out3", "out4",
                                                 "out5", "out6", "out7", "out8"};
    char path[] = "/tmp/cleave_rows_XXXXXX";
    clv__onnx_writing what = {.one = {.batch = 1}, .graph_name = "case"};
    clv_archive *weights = NULL;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    if (!must(j, clv_graph_create(runtime, &what.one.graph))) return;
    for (const clv_array *fed; (fed = part(j, "in", what.n_inputs)); what.n_inputs++)
        what.one.inputs[what.n_inputs] = clv_input(what.one.graph, in[what.n_inputs], fed->type, fed->shape);
    while (part(j, "out", what.n_outputs)) what.n_outputs++;
    clv__onnx_build(j->file, 0, what.one.inputs, what.one.outputs);
    memcpy(what.input_names, in, sizeof in);
    memcpy(what.output_names, out, sizeof out);
    what.other = what.one;
    if (must(j, clv_graph_status(what.one.graph)) && must(j, clv_archive_create(runtime, &weights))) {
        what.weights = weights;
        must(j, clv__onnx_write(&what, path, clv__runtime_error_of(runtime)));
    }
    clv_archive_destroy(weights);
    clv_graph_destroy(what.one.graph);
    clv__onnx_close(j->file);
    j->file = NULL;
    if (!j->failed) must(j, clv__onnx_open(runtime, path, &j->file));
    unlink(path);
}

static bool do_case(job *j, clv_device *device) {
    const clv_array *model = part(j, "model", -1);
    clv__error *error = clv__runtime_error_of(runtime);
    if (must(j, clv__onnx_open_bytes(error, j->name, model->data, clv_array_bytes(model), &j->file)) &&
        j->again)
        write_again(j);
    if (!j->failed && must(j, clv_graph_create(runtime, &j->graph))) {
        make_inputs(j);
        make_outputs(j);
        if (must(j, clv_graph_status(j->graph)) &&
            must(j, clv_plan_create(j->graph, &(clv_plan_config){.device = device}, &j->plan)) &&
            must(j, clv_session_create(runtime, NULL, &j->session)) &&
            must(j, clv_run_create(j->session, j->plan, &j->run)))
            run(j);
    }
    clv__test_end(j->run, j->session, j->plan, j->graph);
    clv__onnx_close(j->file);
    return !j->failed;
}

static clv_archive *read_rows(void) {
    clv_archive *archive;
    assert_status(clv_safetensors_read(runtime, CLV_TEST_SOURCE_DIR "/tests/onnx/rows.safetensors", &archive),
                  CLV_OK, runtime);
    return archive;
}

/** The name of case `i`, in memory of its own; NULL: the array is of something else. */
static char *case_of(const clv_archive *archive, size_t i) {
    const char *name = clv_archive_get(archive, i)->name, *end = strrchr(name, '/');
    if (strcmp(end, "/model")) return NULL;
    char *copy = strdup(name);
    assert_non_null(copy);
    copy[end - name] = 0;
    return copy;
}

static void compares(const char *device_name, int share, bool again) {
    clv_archive *archive = read_rows();
    clv_device *device;
    const char *turn = getenv("CLEAVE_TURN");
    const long mine = turn && *turn ? strtol(turn, NULL, 10) % share : -1;
    int n = 0, done = 0, failed = 0;
    if (clv_device_find(runtime, device_name, &device) != CLV_OK) skip();
    for (size_t i = 0; i < clv_archive_count(archive); i++) {
        char *name = case_of(archive, i);
        if (name && (mine < 0 || n % share == mine)) {
            failed += !do_case(&(job){.name = name, .archive = archive, .again = again}, device);
            done++;
        }
        n += name != NULL;
        free(name);
    }
    print_message("%s: %d of %d cases\n", device_name, done, n);
    clv_archive_destroy(archive);
    assert_true(n > 0);
    assert_int_equal(failed, 0);
}

TEST(on_the_host) {
    compares("host", 1, false);
}

TEST(written) {
    compares("host", 1, true);
}

TEST(on_opencl) {
    const char *device = getenv("CLEAVE_TEST_DEVICE");
    compares(device ? device : "cpu:0", 3, false);
}

/** A row without a case is held by nobody; what is made of nothing but known numbers is in cases of others. */
TEST(every_row_has_a_case) {
    clv_archive *archive = read_rows();
    int rows = 0, without = 0;
    for (const clv__onnx_table *table = clv__onnx_tables; table->rows; table++)
        for (const clv__onnx_row *row = table->rows; row->op && table->side != CLV__ONNX_HOST;
             row++, rows++) {
            bool found = false;
            for (size_t i = 0; i < clv_archive_count(archive) && !found; i++) {
                const char *name = clv_archive_get(archive, i)->name;
                const size_t n = strlen(row->op);
                found = !strncmp(name, row->op, n) && (name[n] == ' ' || name[n] == '/');
            }
            if (!found) print_error("%s has no case in make_rows.py\n", row->op);
            without += !found;
        }
    clv_archive_destroy(archive);
    assert_true(rows > 100);
    assert_int_equal(without, 0);
}

TEST_MAIN(begin_runtime, end_runtime)
