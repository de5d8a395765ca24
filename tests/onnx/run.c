// SPDX-License-Identifier: Apache-2.0
// Runs ONNX files for nodes.py: reads lines `MODEL PREFIX` and feeds PREFIX.in0.npy and so on, f32 or i32, whole as they are, not as
// batches. Writes PREFIX.out0.npy and so on, and a line: `ok`, or `no` and why.  onnx_run DEVICE
#include <cleave/cleave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "infer/weights.h"
#include "onnx/import.h"

enum { MOST = 64 };

typedef struct job {
    clv_runtime *runtime;
    clv_device *device;
    clv__onnx_model *file;
    clv_graph *graph;
    clv_plan *plan;
    clv_session *session;
    clv_run *run;
    clv_array fed[MOST];
    clv_tensor *in[MOST], *out[MOST];
    clv_tensor *none; // an input for a model without any; else NULL
    int n_in, n_out;
} job;

static clv_status read_inputs(job *j, const char *prefix) {
    char path[4200];
    for (size_t i = 0; i < j->file->graph.n_inputs && j->n_in < MOST; i++) {
        if (j->file->values[j->file->graph.inputs[i].value].initializer) continue;
        clv_array *array = &j->fed[j->n_in];
        snprintf(path, sizeof path, "%s.in%d.npy", prefix, j->n_in);
        clv_status status = clv_npy_read(j->runtime, path, array);
        if (status != CLV_OK) return status;
        char name[16];
        snprintf(name, sizeof name, "in%d", j->n_in);
        const clv_dtype dtype = array->type == CLV_DTYPE_F32 ? CLV_DTYPE_F32 : CLV_DTYPE_I32;
        j->in[j->n_in++] = clv_input(j->graph, name, dtype, array->shape);
    }
    return CLV_OK;
}

/** As something that a step computes, which inputs and constants are not. */
static clv_tensor *computed(job *j, clv_tensor *x) {
    const clv_dtype dtype = clv_tensor_dtype(x);
    return x ? clv_add(x, clv_full(j->graph, dtype, (clv_shape){0}, 0)) : NULL;
}

static clv_status build(job *j) {
    char name[16];
    if (!j->n_in) { // something must say which graph it is
        j->none = clv_input(j->graph, "none", CLV_DTYPE_F32, CLV_SHAPE(1));
        clv_output(clv_neg(j->none), "nothing");
    }
    clv__onnx_build(j->file, 0, j->n_in ? j->in : &j->none, j->out);
    for (j->n_out = 0; (size_t)j->n_out < j->file->graph.n_outputs; j->n_out++) {
        snprintf(name, sizeof name, "out%d", j->n_out);
        j->out[j->n_out] = computed(j, j->out[j->n_out]);
        clv_output(j->out[j->n_out], name);
    }
    return clv_graph_status(j->graph);
}

static clv_status run(job *j, const char *model, const char *prefix) {
    int64_t ticket;
    char path[4200];
    clv_status status = clv_plan_create(j->graph, &(clv_plan_config){.device = j->device}, &j->plan);
    if (status == CLV_OK) status = clv_session_create(j->runtime, NULL, &j->session);
    if (status == CLV_OK) status = clv_run_create(j->session, j->plan, &j->run);
    if (status == CLV_OK) status = clv_weights_load(j->session, model);
    for (int i = 0; status == CLV_OK && i < j->n_in; i++)
        status = clv_run_feed(j->run, j->in[i], j->fed[i].data, clv_array_bytes(&j->fed[i]));
    if (status == CLV_OK && j->none) status = clv_run_feed(j->run, j->none, &(float){0}, sizeof(float));
    if (status == CLV_OK) status = clv_run_step(j->run, &ticket);
    for (int i = 0; status == CLV_OK && i < j->n_out; i++) {
        const clv_shape shape = clv_tensor_shape(j->out[i]);
        const bool is_float = clv_tensor_dtype(j->out[i]) == CLV_DTYPE_F32;
        clv_array array = {0};
        status = clv_array_init(j->runtime, is_float ? CLV_DTYPE_F32 : CLV_DTYPE_I32, &shape, &array);
        if (status == CLV_OK)
            status = clv_run_fetch(j->run, ticket, j->out[i], array.data, clv_array_bytes(&array));
        snprintf(path, sizeof path, "%s.out%d.npy", prefix, i);
        if (status == CLV_OK) status = clv_npy_write(j->runtime, &array, path);
        clv_array_reset(&array);
    }
    return status;
}

static clv_status all(job *j, const char *model, const char *prefix) {
    clv_status status = clv__onnx_open(j->runtime, model, &j->file);
    if (status == CLV_OK) status = clv_graph_create(j->runtime, &j->graph);
    if (status == CLV_OK) status = read_inputs(j, prefix);
    if (status == CLV_OK) status = build(j);
    return status == CLV_OK ? run(j, model, prefix) : status;
}

int main(int argc, char **argv) {
    static char model[4096], prefix[4096];
    job base = {0};
    if (argc != 2 || clv_runtime_create(NULL, &base.runtime) != CLV_OK ||
        clv_device_find(base.runtime, argv[1], &base.device) != CLV_OK)
        return 2;
    while (scanf("%4095s %4095s", model, prefix) == 2) {
        job j = base;
        const clv_status status = all(&j, model, prefix);
        if (status == CLV_OK)
            puts("ok");
        else
            printf("no %s\n", clv_runtime_error(j.runtime));
        fflush(stdout);
        clv_run_destroy(j.run);
        clv_session_destroy(j.session);
        clv_plan_destroy(j.plan);
        clv_graph_destroy(j.graph);
        clv__onnx_close(j.file);
        for (int i = 0; i < j.n_in; i++) clv_array_reset(&j.fed[i]);
    }
    clv_runtime_destroy(base.runtime);
    return 0;
}
